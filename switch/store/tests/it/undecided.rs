//! What comes after a prefix that is not there yet, and covers it.

use crate::common::*;
use std::net::IpAddr;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

/// Two ports, a default route by the first, another route by the second. So many commands are on their way at once.
fn router(outstanding: usize) -> Rig {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.store = Store::new(Config {
        max_outstanding: [outstanding; 2],
        ..r.chip.config(Policy::Trap)
    });
    with_default(&mut r);
    r
}

/// Plays until nothing is to do, routes before what they lead to where the chip may. The first `refused` CREATEs of routes
/// fail. `each`: after each command and answer.
fn play(r: &mut Rig, mut refused: usize, each: impl FnMut(&Rig)) {
    let fate = |p: &Planned| match p.cls == TND_CLS_ROUTE && p.op == TND_OP_CREATE && refused > 0 {
        true => {
            refused -= 1;
            Fate::Refused(TND_ST_FAULT)
        }
        false => Fate::Done,
    };
    r.play(1, fate, each);
    assert_eq!(refused, 0);
}

/// A /16 by a gateway, then what covers it by another port: nobody is answered by that one for the /16, whether it is made
/// or was there before and changes.
fn cover_after(r: &mut Rig, gateway: u8, refused: usize) {
    let to: IpAddr = "40.1.0.1".parse().unwrap();
    let gw = format!("10.1.0.{gateway}");
    let before = r.chip.lookup(to);
    for cover in ["40.0.0.0/8", "0.0.0.0/0"] {
        r.up(neigh(11, &gw, 100 + gateway));
        r.up(via("40.1.0.0/16", 11, &gw));
        r.up(via(cover, 12, "10.2.0.2"));
        let mut answers = Vec::new();
        play(r, refused, |r| answers.push(r.chip.lookup(to)));
        assert!(by(100 + gateway, answers.last().unwrap()));
        for a in answers {
            let allowed = by(100 + gateway, &a) || a == before || a == Answer::Trap;
            assert!(allowed, "{cover}: {a:?}");
        }
        // and nothing traps for it any more
        assert!(by(102, &r.chip.lookup("40.2.0.1".parse().unwrap())));
        r.del(Key::Route(key("40.1.0.0/16")));
        r.del(Key::Route(key("40.0.0.0/8")));
        r.up(via("0.0.0.0/0", 11, "10.1.0.2"));
        r.settle();
        assert_eq!(r.chip.lookup(to), before);
    }
}

#[test]
fn a_cover_does_not_overtake_whose_next_hop_is_on_its_way() {
    cover_after(&mut router(64), 3, 0);
}

/// A route goes, and one for a part of it has come before by a gateway that was not known: that part is never answered by what
/// is above.
#[test]
fn a_route_that_goes_waits_for_who_takes_its_place() {
    let mut r = router(64);
    let to: IpAddr = "40.1.0.1".parse().unwrap();
    r.up(via("40.0.0.0/8", 12, "10.2.0.2"));
    r.settle();
    r.up(neigh(11, "10.1.0.7", 107));
    r.up(via("40.1.0.0/16", 11, "10.1.0.7"));
    r.del(Key::Route(key("40.0.0.0/8")));
    let mut answers = Vec::new();
    play(&mut r, 0, |r| answers.push(r.chip.lookup(to)));
    assert!(by(107, answers.last().unwrap()));
    for a in answers {
        assert!(by(107, &a) || by(102, &a) || a == Answer::Trap, "{a:?}");
    }
    assert!(by(101, &r.chip.lookup("40.2.0.1".parse().unwrap())));
}

#[test]
fn a_cover_does_not_overtake_what_is_to_be_tried_again() {
    for outstanding in [1, 64] {
        let mut r = router(outstanding);
        // its next hop is there
        r.up(neigh(11, "10.1.0.4", 104));
        r.up(via("60.0.0.0/8", 11, "10.1.0.4"));
        r.settle();
        cover_after(&mut r, 4, 1);
    }
}

/// The next hop of the more specific one does not come to be: it traps, and the cover goes on.
#[test]
fn who_waits_in_vain_holds_nobody_up() {
    let mut r = router(64);
    r.up(neigh(11, "10.1.0.5", 105));
    r.up(via("40.1.0.0/16", 11, "10.1.0.5"));
    r.up(via("40.0.0.0/8", 12, "10.2.0.2"));
    r.plan();
    r.del(Key::Neigh(11, "10.1.0.5".parse().unwrap()));
    r.settle();
    assert_eq!(r.chip.lookup("40.1.0.1".parse().unwrap()), Answer::Trap);
    assert!(by(102, &r.chip.lookup("40.2.0.1".parse().unwrap())));
    // a host's route: nothing is below it
    r.up(neigh(11, "10.1.0.6", 106));
    r.up(via("40.1.0.1/32", 11, "10.1.0.6"));
    r.up(via("40.1.0.2/32", 12, "10.2.0.2"));
    r.settle();
    assert!(by(106, &r.chip.lookup("40.1.0.1".parse().unwrap())));
    assert!(by(102, &r.chip.lookup("40.1.0.2".parse().unwrap())));
}

/// The default route changes twice, the second time while a command for it is on its way, and more are below it than are looked
/// at: it traps only where something that is queued would be passed.
#[test]
fn a_route_over_many_does_not_trap_for_itself() {
    let mut r = router(1);
    for n in 0..5000u32 {
        let prefix = format!("100.{}.{}.0/24", n / 256, n % 256);
        r.up(via(&prefix, 11, "10.1.0.2"));
    }
    r.settle();
    let of_default = |p: &Planned| p.cls == TND_CLS_ROUTE && p.body.bytes()[5] == 0;
    for (other, passes) in [
        (None, false),
        (Some("2001:db8::/32"), false),
        (Some("200.0.0.0/8"), true),
    ] {
        r.up(via("0.0.0.0/0", 12, "10.2.0.2"));
        r.plan();
        r.up(via("0.0.0.0/0", 11, "10.1.0.2"));
        if let Some(other) = other {
            r.up(Object::Route(Route {
                kind: RouteType::Blackhole,
                ..route(other, RouteNextHops::None)
            }));
        }
        let mut traps = 0;
        let fate = |p: &Planned| {
            traps += u32::from(of_default(p) && p.op == TND_OP_SET_TRAP);
            Fate::Done
        };
        r.play(1, fate, |_| ());
        assert_eq!(traps > 0, passes, "{other:?}");
        assert!(by(101, &r.chip.lookup("1.0.0.1".parse().unwrap())));
    }
}

/// A route of one gateway goes, and the multipath route that it hid takes its place while that one's group loses a member: nobody
/// is sent by the member.
#[test]
fn a_route_that_moves_to_a_group_waits_for_what_the_group_becomes() {
    let many = |metric| Route {
        key: RouteKey {
            metric,
            ..key("40.0.0.0/8")
        },
        ..route(
            "40.0.0.0/8",
            RouteNextHops::Many([hop(11, "10.1.0.2"), hop(12, "10.2.0.2")].into()),
        )
    };
    let to: IpAddr = "40.1.0.1".parse().unwrap();
    let mut r = router(64);
    r.up(neigh(12, "10.2.0.9", 109));
    r.up(via("40.0.0.0/8", 12, "10.2.0.9"));
    r.up(Object::Route(many(10)));
    // the same next hops, in use
    let used = Route {
        key: key("41.0.0.0/8"),
        ..many(0)
    };
    r.up(Object::Route(used));
    r.settle();
    assert!(by(109, &r.chip.lookup(to)));
    r.up(Object::Link(Link {
        carrier: false,
        ..swp(1)
    }));
    r.up(Object::Netconf(Netconf {
        ignore_linkdown: Some(true),
        ..match forwarding(Family::V4, ConfScope::Interface(11)) {
            Object::Netconf(n) => n,
            _ => unreachable!(),
        }
    }));
    r.del(Key::Route(key("40.0.0.0/8")));
    let mut answers = Vec::new();
    play(&mut r, 0, |r| answers.push(r.chip.lookup(to)));
    assert!(by(102, answers.last().unwrap()));
    for a in answers {
        assert!(by(109, &a) || by(102, &a) || a == Answer::Trap, "{a:?}");
    }
    // one that is written anew goes at once
    r.up(via("42.0.0.0/8", 12, "10.2.0.2"));
    r.settle();
    assert!(by(102, &r.chip.lookup("42.0.0.1".parse().unwrap())));
}

/// A port goes down, and with it a route and one that covers it: nobody is answered by that one for the other.
#[test]
fn of_two_routes_that_go_the_wider_one_goes_first() {
    let to: IpAddr = "40.1.0.1".parse().unwrap();
    for order in [[20, 16, 8], [16, 20, 8], [16, 8, 20], [8, 16, 20]] {
        let mut r = router(64);
        let default = r.chip.lookup(to);
        r.up(via("40.0.0.0/8", 12, "10.2.0.2"));
        // each by a station of its own
        r.up(neigh(11, "10.1.0.8", 108));
        r.up(neigh(11, "10.1.0.9", 109));
        r.up(via("40.1.0.0/16", 11, "10.1.0.9"));
        r.up(via("40.1.0.0/20", 11, "10.1.0.8"));
        r.settle();
        for len in order {
            let prefix = if len == 8 { "40.0.0.0" } else { "40.1.0.0" };
            r.del(Key::Route(key(&format!("{prefix}/{len}"))));
        }
        let mut answers = Vec::new();
        play(&mut r, 0, |r| answers.push(r.chip.lookup(to)));
        assert_eq!(answers.last().unwrap(), &default);
        for a in answers {
            let as_kernel = by(108, &a) || a == Answer::Trap || a == default;
            assert!(as_kernel, "{order:?}: {a:?}");
        }
    }
}

/// A group loses a member, and a route goes that stood below one by that group: nobody is answered by the member for it.
#[test]
fn a_route_stays_until_the_group_above_it_is_what_it_shall_be() {
    let to: IpAddr = "40.1.0.1".parse().unwrap();
    let mut r = router(64);
    r.up(neigh(11, "10.1.0.8", 108));
    r.up(neigh(11, "10.1.0.9", 109));
    r.up(neigh(12, "10.2.0.7", 107));
    let ways = [(11, "10.1.0.8"), (11, "10.1.0.9"), (12, "10.2.0.7")];
    for (id, (ifindex, gateway)) in (1..).zip(ways) {
        r.up(single(id, ifindex, gateway));
    }
    let group = |ids: &[u32]| {
        let members = ids.iter().map(|i| (*i, 1)).collect();
        object(10, NexthopKind::Group(members))
    };
    let by_object = |prefix, id| Object::Route(route(prefix, RouteNextHops::Object(id)));
    r.up(group(&[1, 3]));
    r.up(by_object("40.0.0.0/8", 10));
    r.up(by_object("40.1.0.0/16", 2));
    r.settle();
    assert!(by(109, &r.chip.lookup(to)));
    r.up(group(&[3]));
    r.del(Key::Route(key("40.1.0.0/16")));
    let mut answers = Vec::new();
    play(&mut r, 0, |r| answers.push(r.chip.lookup(to)));
    assert!(by(107, answers.last().unwrap()));
    for a in answers {
        let as_kernel = by(109, &a) || by(107, &a) || a == Answer::Trap;
        assert!(as_kernel, "{a:?}");
    }
    // and so does what is below it
    r.up(group(&[1, 3]));
    r.up(by_object("40.1.0.0/16", 2));
    r.up(neigh(11, "10.1.0.7", 117));
    r.up(via("40.1.0.0/20", 11, "10.1.0.7"));
    r.settle();
    r.up(group(&[3]));
    for prefix in ["40.1.0.0/16", "40.1.0.0/20"] {
        r.del(Key::Route(key(prefix)));
    }
    let mut answers = Vec::new();
    play(&mut r, 0, |r| answers.push(r.chip.lookup(to)));
    assert!(by(107, answers.last().unwrap()));
    for a in answers {
        let as_kernel = by(117, &a) || by(107, &a) || a == Answer::Trap;
        assert!(as_kernel, "{a:?}");
    }
}

/// A next hop that always has a next change waiting holds nobody where the kernel no longer has him: neither a route that goes and
/// is above all that this one answers, nor one that moves to it.
#[test]
fn a_target_that_changes_all_the_time_keeps_nothing_that_was() {
    let mut r = router(64);
    r.up(neigh(11, "10.1.0.9", 109));
    r.up(via("40.0.0.0/8", 11, "10.1.0.9"));
    r.up(via("40.1.0.0/16", 12, "10.2.0.2"));
    r.up(via("41.0.0.0/8", 12, "10.2.0.2"));
    r.settle();
    let goes: IpAddr = "40.1.0.1".parse().unwrap();
    let moves: IpAddr = "41.0.0.1".parse().unwrap();
    let comes: IpAddr = "50.1.0.1".parse().unwrap();
    for to in [goes, moves, comes] {
        assert!(by(102, &r.chip.lookup(to)));
    }
    let mut station = 110;
    for round in 0..20 {
        r.up(neigh(11, "10.1.0.9", station));
        station += 1;
        if round == 1 {
            r.del(Key::Route(key("40.1.0.0/16")));
            r.up(via("41.0.0.0/8", 11, "10.1.0.9"));
            r.up(via("50.1.0.0/16", 11, "10.1.0.9"));
        }
        r.plan();
        // the next change comes before the answer
        r.up(neigh(11, "10.1.0.9", station));
        station += 1;
        while r.run(0) || r.run(1) {}
    }
    for to in [goes, moves, comes] {
        assert!(!by(102, &r.chip.lookup(to)), "{to}");
    }
    r.settle();
    for to in [goes, moves, comes] {
        assert!(by(station - 1, &r.chip.lookup(to)), "{to}");
    }
}

/// Prefixes come below one all the time, so that one of them is always on its way. It moves, or goes, nonetheless, and so does what
/// is below it and goes with it.
#[test]
fn who_covers_what_comes_all_the_time_keeps_nothing_that_was() {
    let (of_it, below): (IpAddr, IpAddr) =
        ("40.200.0.1".parse().unwrap(), "40.201.0.1".parse().unwrap());
    for moves in [true, false] {
        let mut r = router(64);
        r.up(neigh(11, "10.1.0.9", 109));
        r.up(via("40.0.0.0/8", 11, "10.1.0.9"));
        r.up(via("40.201.0.0/16", 11, "10.1.0.9"));
        r.settle();
        for round in 0..20 {
            r.up(via(&format!("40.{round}.0.0/24"), 12, "10.2.0.2"));
            if round == 1 {
                r.del(Key::Route(key("40.201.0.0/16")));
                match moves {
                    true => r.up(via("40.0.0.0/8", 12, "10.2.0.2")),
                    false => r.del(Key::Route(key("40.0.0.0/8"))),
                }
            }
            r.plan();
            if round > 0 {
                r.run(1);
            }
        }
        for to in [of_it, below] {
            assert!(!by(109, &r.chip.lookup(to)), "{moves} {to}");
        }
        r.settle();
        for to in [of_it, below] {
            assert!(by(101 + u8::from(moves), &r.chip.lookup(to)));
        }
    }
}

/// A route leaves a next hop, far behind others in the queue, and the next hop becomes another station: that does not wait for
/// the others.
#[test]
fn a_target_does_not_wait_for_the_queue() {
    let mut r = router(1);
    r.up(neigh(11, "10.1.0.9", 109));
    r.up(via("40.0.0.0/8", 11, "10.1.0.9"));
    r.up(via("45.0.0.0/8", 11, "10.1.0.9"));
    r.settle();
    for n in 0..1000u32 {
        let prefix = format!("100.{}.{}.0/24", n / 256, n % 256);
        r.up(via(&prefix, 11, "10.1.0.2"));
    }
    r.up(via("40.0.0.0/8", 12, "10.2.0.2"));
    r.up(neigh(11, "10.1.0.9", 110));
    let stays: IpAddr = "45.0.0.1".parse().unwrap();
    let (mut commands, mut needed) = (0, None);
    r.play(
        0,
        |_| Fate::Done,
        |r| {
            commands += 1;
            assert!(!by(110, &r.chip.lookup("40.0.0.1".parse().unwrap())));
            if needed.is_none() && by(110, &r.chip.lookup(stays)) {
                needed = Some(commands);
            }
        },
    );
    assert!(needed.is_some_and(|n| n < 20), "{needed:?}");
}

/// The chip never deletes a route: that is given up, and neither the queue nor the route's target waits for it.
#[test]
fn who_can_not_be_deleted_holds_nobody_up() {
    let mut r = router(64);
    r.up(neigh(11, "10.1.0.9", 109));
    r.up(via("40.0.0.0/8", 11, "10.1.0.9"));
    r.up(via("45.0.0.0/8", 11, "10.1.0.9"));
    r.settle();
    r.del(Key::Route(key("40.0.0.0/8")));
    let mut tries = 0;
    let fate = |p: &Planned| match p.cls == TND_CLS_ROUTE && p.op == TND_OP_DELETE {
        true => {
            tries += 1;
            Fate::Refused(TND_ST_FAULT)
        }
        false => Fate::Done,
    };
    r.play(1, fate, |_| ());
    assert!(tries < 10, "{tries}");
    r.up(neigh(11, "10.1.0.9", 110));
    r.settle();
    assert!(by(110, &r.chip.lookup("45.0.0.1".parse().unwrap())));
    // it comes back, and goes
    r.up(via("40.0.0.0/8", 12, "10.2.0.2"));
    r.settle();
    assert!(by(102, &r.chip.lookup("40.0.0.1".parse().unwrap())));
    r.del(Key::Route(key("40.0.0.0/8")));
    r.settle();
    assert!(by(101, &r.chip.lookup("40.0.0.1".parse().unwrap())));
}

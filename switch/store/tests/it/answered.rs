//! What is written only when the chip has answered what came before it: a lost command is no order that the kernel had.

use crate::common::bridged::*;
use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

const BLOCKING: u8 = 4;

/// Classes of the commands that are on their way.
fn on_its_way(r: &mut Rig) -> Vec<u16> {
    r.plan();
    r.chip.rings[0].iter().map(|p| p.cls).collect()
}

/// These, each when those before it are on their way: classes of commands in the order in which the chip gets them, and each of them
/// alone.
fn one_by_one(r: &mut Rig, objects: impl IntoIterator<Item = Object>) -> Vec<u16> {
    for o in objects {
        r.up(o);
        r.plan();
    }
    let mut all = Vec::new();
    loop {
        let now = on_its_way(r);
        assert!(now.len() < 2, "{now:?} at once");
        if now.is_empty() {
            r.settle();
            return all;
        }
        all.extend(now);
        assert!(r.run(0));
    }
}

const PORT: u16 = TND_CLS_PORT;
const STATION: u16 = TND_CLS_FDB;
const MEMBER: u16 = TND_CLS_VLAN_MEMBER;

fn station(n: u16) -> Object {
    Object::Fdb(fdb(n, 11, FdbKind::Static))
}

#[test]
fn a_port_waits_for_the_answer_about_another() {
    let mut r = bridged("spectrum-sn2700");
    let both = [1, 2].map(|n| in_state(n, BLOCKING));
    assert_eq!(one_by_one(&mut r, both), [PORT, PORT]);
    // read together or not
    for n in [1, 2] {
        r.up(in_state(n, BR_STATE_FORWARDING));
    }
    assert_eq!(one_by_one(&mut r, []), [PORT, PORT]);
}

/// What got no answer is said again before what came behind it.
#[test]
fn who_got_no_answer_is_still_the_first() {
    let mut r = bridged("spectrum-sn2700");
    let with_the_first_lost = |r: &mut Rig, objects: [Object; 2]| {
        for o in objects {
            r.up(o);
            r.plan();
        }
        let mut order = Vec::new();
        let fate = |p: &Planned| {
            let port = (p.cls == PORT).then(|| p.body.bytes()[2]);
            order.push(port.map_or("station".into(), |port| format!("swp{port}")));
            match order.len() {
                1 => Fate::Lost(false),
                _ => Fate::Done,
            }
        };
        r.play(0, fate, |_| {});
        order
    };
    let both = [2, 1].map(|n| in_state(n, BLOCKING));
    let order = with_the_first_lost(&mut r, both);
    assert_eq!(order, ["swp2", "swp2", "swp1"]);
    let both = [station(1), in_state(1, BR_STATE_FORWARDING)];
    let order = with_the_first_lost(&mut r, both);
    assert_eq!(order, ["station", "station", "swp1"]);
}

#[test]
fn stations_and_ports_wait_for_each_other() {
    let mut r = bridged("spectrum-sn2700");
    let both = [in_state(2, BLOCKING), station(1)];
    assert_eq!(one_by_one(&mut r, both), [PORT, STATION]);
    let all = [station(2), in_state(2, BR_STATE_FORWARDING), station(3)];
    assert_eq!(one_by_one(&mut r, all), [STATION, PORT, STATION]);
    // among themselves they do not
    for n in 4..8 {
        r.up(station(n));
        r.plan();
    }
    assert_eq!(on_its_way(&mut r), [STATION; 4]);
    r.settle();
}

/// A port is the bridge's before it is a member: one that is a member takes part in what is flooded.
#[test]
fn a_membership_waits_for_its_port() {
    let mut r = bridged("spectrum-sn2700");
    r.up(Object::Link(swp(3)));
    r.settle();
    r.up(in_state(3, BR_STATE_DISABLED));
    r.up(station(1));
    r.up(in_state(3, BR_STATE_FORWARDING));
    assert_eq!(one_by_one(&mut r, []), [STATION, PORT, MEMBER]);
}

/// Of a port that waits for stations no other port's membership knows: who has left is no member when a station moves.
#[test]
fn a_membership_waits_for_its_own_port_alone() {
    let mut r = bridged("spectrum-sn2700");
    for n in [3, 4] {
        r.up(joined(n));
    }
    r.up(station(2));
    r.settle();
    r.up(station(1));
    r.up(Object::Link(swp(2)));
    r.up(Object::Fdb(fdb(2, 13, FdbKind::Static)));
    r.up(station(3));
    r.up(in_state(4, BLOCKING));
    let there = fdb(2, 13, FdbKind::Static).mac;
    let look = |r: &Rig| {
        let moved = r.chip.fdb[&(FID, there)].port == 3;
        assert!(!moved || !r.chip.members.keys().any(|k| k.0 == 2));
    };
    r.play(0, |_| Fate::Done, look);
    assert_eq!(r.chip.fdb[&(FID, there)].port, 3);
}

/// Its port waits for a station that came behind it.
#[test]
fn a_lost_membership_is_still_the_first() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    while on_its_way(&mut r) != [MEMBER] {
        assert!(r.run(0));
    }
    r.up(station(1));
    r.up(in_state(3, BLOCKING));
    let lost = r.chip.rings[0].pop_front().unwrap();
    r.store.timed_out(lost.token, r.now);
    assert_eq!(one_by_one(&mut r, []), [MEMBER, STATION, PORT]);
}

/// A station changes while its own command is on its way.
#[test]
fn a_station_that_changes_on_its_way_is_before_a_port_still() {
    let mut r = bridged("spectrum-sn2700");
    let moves = Object::Fdb(fdb(1, 12, FdbKind::Static));
    let all = [station(1), moves, in_state(2, BLOCKING)];
    assert_eq!(one_by_one(&mut r, all), [STATION, STATION, PORT]);
    // and one that is what it was: nobody waits for it
    let moves = Object::Fdb(fdb(1, 12, FdbKind::Static));
    let all = [
        station(1),
        moves,
        station(1),
        in_state(2, BR_STATE_FORWARDING),
    ];
    assert_eq!(one_by_one(&mut r, all), [STATION, PORT]);
}

/// A port leaves, and a station moves: who comes in by that port never finds it where it is then.
#[test]
fn a_station_waits_for_a_membership() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    r.up(station(1));
    r.settle();
    r.up(Object::Link(swp(2)));
    assert!(on_its_way(&mut r).contains(&MEMBER));
    r.up(Object::Fdb(fdb(1, 13, FdbKind::Static)));
    while on_its_way(&mut r).contains(&MEMBER) {
        assert!(!on_its_way(&mut r).contains(&STATION));
        assert!(r.run(0));
    }
    r.settle();
    let there = fdb(1, 13, FdbKind::Static).mac;
    assert_eq!(r.chip.fdb[&(FID, there)].port, 3);
}

/// A port goes down, and a route comes: what comes in there is never routed by it.
#[test]
fn no_route_is_written_while_a_port_closes() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(via("50.0.0.0/8", 12, "10.2.0.2"));
    r.settle();
    r.up(Object::Link(Link {
        admin_up: false,
        ..swp(1)
    }));
    r.up(via("20.0.0.0/8", 12, "10.2.0.2"));
    closes_first(&mut r);
}

/// The port that is up in the chip closes, and then the route to 20.0.0.0/8 is written.
fn closes_first(r: &mut Rig) {
    let up = |r: &Rig| r.chip.ports[&1].flags & TND_PORT_UP != 0;
    assert!(up(r));
    while up(r) {
        r.plan();
        assert_eq!(r.chip.rings[1].len(), 0);
        assert!(r.run(0), "it does not close");
    }
    r.settle();
    assert!(by(102, &r.chip.lookup("20.0.0.1".parse().unwrap())));
}

/// It was about to open, and the answer comes or gets lost: it may be open.
#[test]
fn no_route_is_written_while_a_port_may_be_open() {
    for answered in [true, false] {
        let mut r = two_ports("spectrum-sn2700", Policy::Trap);
        r.up(via("50.0.0.0/8", 12, "10.2.0.2"));
        let is_up = |admin_up| Object::Link(Link { admin_up, ..swp(1) });
        r.up(is_up(false));
        r.settle();
        r.up(is_up(true));
        assert_eq!(on_its_way(&mut r), [PORT]);
        r.up(is_up(false));
        r.up(via("20.0.0.0/8", 12, "10.2.0.2"));
        assert_eq!(on_its_way(&mut r), [PORT]);
        assert_eq!(r.chip.rings[1].len(), 0);
        if answered {
            assert!(r.run(0));
        } else {
            let (token, _) = r.chip.run(0).unwrap();
            r.store.timed_out(token, r.now);
        }
        closes_first(&mut r);
    }
}

/// While nobody listened a route went, and then its gateway was another station. The chip has the route until the sweep.
#[test]
fn a_gateway_that_moved_unheard_traps_until_the_sweep() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(via("50.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    r.attach_warm();
    r.del(Key::Route(key("50.0.0.0/8")));
    r.up(neigh(11, "10.1.0.2", 150));
    r.up(via("60.0.0.0/8", 11, "10.1.0.2"));
    let mut swept = false;
    loop {
        r.plan();
        let ends = |p: &Planned| p.op == TND_OP_END_RESYNC;
        swept |= r.chip.rings[0].front().is_some_and(ends);
        if !r.run(0) && !r.run(1) {
            break;
        }
        let gone = r.chip.lookup("50.0.0.1".parse().unwrap());
        assert!(swept || !by(150, &gone), "it never went there");
    }
    r.settle();
    assert!(swept && by(150, &r.chip.lookup("60.0.0.1".parse().unwrap())));
}

/// Ports and stations in the order in which the chip gets them, with what becomes of the first command. Each object is told when those
/// before it are on their way.
fn written(r: &mut Rig, objects: impl IntoIterator<Item = Object>, first: Fate) -> Vec<String> {
    for o in objects {
        r.up(o);
        r.plan();
    }
    let mut all = Vec::new();
    let fate = |p: &Planned| {
        let body = p.body.bytes();
        all.push(match p.cls {
            PORT => format!("swp{}", body[2]),
            MEMBER => "member".to_owned(),
            STATION => {
                let (b, _) = tandem_abi::object::read_object::<tnd_fdb>(body).unwrap();
                format!("station {}", b.mac[5])
            }
            cls => format!("class {cls}"),
        });
        match all.len() {
            1 => first,
            _ => Fate::Done,
        }
    };
    r.play(0, fate, |_| {});
    all
}

/// A station before a port got no answer, or has to be written once more: who came behind the port is written behind it still.
#[test]
fn who_is_tried_again_keeps_its_place() {
    for first in [
        Fate::Lost(false),
        Fate::Lost(true),
        Fate::Refused(TND_ST_FAULT),
    ] {
        let mut r = bridged("spectrum-sn2700");
        let all = [station(1), station(2), in_state(2, BLOCKING), station(3)];
        let order = written(&mut r, all, first);
        let wanted = ["station 1", "station 2", "station 1", "swp2", "station 3"];
        assert_eq!(order, wanted, "{first:?}");
        // and where an entry is not there that was to be changed
        let moves = |n| Object::Fdb(fdb(n, 12, FdbKind::Static));
        let all = [
            moves(1),
            moves(2),
            in_state(2, BR_STATE_FORWARDING),
            moves(3),
        ];
        r.chip.age(FID, fdb(1, 12, FdbKind::Static).mac);
        let order = written(&mut r, all, Fate::Done);
        assert_eq!(order, wanted);
    }
    // a port, and what the kernel changed behind it
    let mut r = bridged("spectrum-sn2700");
    let all = [in_state(2, BLOCKING), station(1), in_state(1, BLOCKING)];
    let order = written(&mut r, all, Fate::Refused(TND_ST_FAULT));
    assert_eq!(order, ["swp2", "swp2", "station 1", "swp1"]);
}

/// Stations that are queued behind one that got no answer, and a port behind some of them: it is behind these still.
#[test]
fn a_station_that_is_tried_again_moves_nobody_else() {
    let mut r = bridged("spectrum-sn2700");
    r.store = Store::new(Config {
        max_outstanding: [1; 2],
        ..r.chip.config(Policy::Trap)
    });
    r.begin();
    r.up(bridge(300));
    for n in [1, 2] {
        r.up(joined(n));
    }
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    let all = [station(1), station(2), in_state(2, BLOCKING), station(3)];
    let order = written(&mut r, all, Fate::Lost(false));
    let wanted = ["station 1", "station 1", "station 2", "swp2", "station 3"];
    assert_eq!(order, wanted);
}

/// A port leaves, and the DELETE of its membership gets lost: another one that changes behind it waits.
#[test]
fn a_port_waits_for_a_membership() {
    for lost in [true, false] {
        let mut r = bridged("spectrum-sn2700");
        r.up(joined(3));
        r.settle();
        r.up(Object::Link(swp(3)));
        while on_its_way(&mut r) != [MEMBER] {
            assert!(r.run(0));
        }
        r.up(in_state(2, BLOCKING));
        assert_eq!(on_its_way(&mut r), [MEMBER]);
        if lost {
            let lost = r.chip.rings[0].pop_front().unwrap();
            r.store.timed_out(lost.token, r.now);
            assert_eq!(on_its_way(&mut r), [MEMBER]);
        }
        assert!(r.run(0));
        let all = on_its_way(&mut r);
        assert!(all.iter().all(|cls| *cls == PORT) && !all.is_empty());
        r.settle();
    }
}

/// A port leaves at once, with no state told before: a station that the kernel had changed before is written before.
#[test]
fn a_port_that_leaves_at_once_is_behind_stations() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    r.settle();
    let all = [station(1), Object::Link(swp(3)), station(2)];
    let order = written(&mut r, all, Fate::Lost(false));
    let wanted = ["station 1", "station 1", "member", "swp3", "station 2"];
    assert_eq!(order, wanted);
}

/// Stations and a route: a station, a port that opens or a membership gets no answer, and the route behind it waits.
#[test]
fn a_route_waits_for_what_decides_where_a_bridges_frames_go() {
    let opens = in_state(4, BR_STATE_FORWARDING);
    let moves = |n| Object::Fdb(fdb(n, 14, FdbKind::Static));
    for (what, cls) in [(behind_3(1), STATION), (moves(9), STATION), (opens, PORT)] {
        for lost in [Fate::Done, Fate::Lost(false), Fate::Lost(true)] {
            let mut r = router_with_bridge();
            r.up(what.clone());
            assert_eq!(on_its_way(&mut r), [cls]);
            r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
            assert_eq!(on_its_way(&mut r), [cls]);
            assert_eq!(r.chip.rings[1].len(), 0);
            let token = r.chip.rings[0].front().unwrap().token;
            match lost {
                Fate::Done => assert!(r.run(0)),
                _ => {
                    if let Fate::Lost(true) = lost {
                        r.chip.run(0).unwrap();
                    } else {
                        r.chip.rings[0].pop_front().unwrap();
                    }
                    r.store.timed_out(token, r.now);
                    assert_eq!(on_its_way(&mut r), [cls]);
                    assert_eq!(r.chip.rings[1].len(), 0);
                    assert!(r.run(0));
                }
            }
            r.plan();
            assert_eq!(r.chip.rings[1].len(), 1);
            r.settle();
        }
    }
}

/// A port joins, and another one leaves, or the other way round, told at once or not; the first membership's command may get lost. Who sends
/// to an unknown station reaches one of the two all the time, or never both.
#[test]
fn ports_of_a_bridge_come_and_go_one_after_the_other() {
    let fates = [Fate::Done, Fate::Lost(false), Fate::Lost(true)];
    for (joins_first, at_once) in [(true, true), (true, false), (false, true), (false, false)] {
        for ((joins, leaves), first) in [(3, 2), (2, 3)].iter().flat_map(|x| fates.map(|f| (x, f)))
        {
            let mut r = bridged("spectrum-sn2700");
            r.up(joined(*leaves));
            r.up(Object::Link(swp(*joins)));
            r.settle();
            let mut both = [joined(*joins), Object::Link(swp(*leaves))];
            if !joins_first {
                both.reverse();
            }
            for o in both {
                r.up(o);
                if !at_once {
                    r.plan();
                }
            }
            let mut members = 0;
            let fate = |p: &Planned| {
                members += usize::from(p.cls == MEMBER);
                match (p.cls, members) {
                    (MEMBER, 1) => first,
                    _ => Fate::Done,
                }
            };
            let gets = |r: &Rig, n: u16| {
                let open = r.chip.ports[&n].stp_state == BR_STATE_FORWARDING;
                usize::from(open && r.chip.members.keys().any(|k| k.0 == n))
            };
            let never = if joins_first { 0 } else { 2 };
            let look = |r: &Rig| assert_ne!(gets(r, *joins) + gets(r, *leaves), never);
            r.play(0, fate, look);
            assert_eq!([*joins, *leaves].map(|n| gets(&r, n)), [1, 0]);
            assert!(members > 1);
        }
    }
}

/// swp2 changes in its bridge, another port joins while that is on its way, and swp2 leaves: not in the turn that it has, but behind who came
/// meanwhile.
#[test]
fn a_port_that_leaves_while_it_is_written_leaves_behind_who_came_meanwhile() {
    for to in [0, 51] {
        for at_once in [true, false] {
            let mut r = bridged("spectrum-sn2700");
            r.up(other_bridge());
            r.up(Object::Link(swp(3)));
            r.settle();
            r.up(isolated(2));
            assert_eq!(on_its_way(&mut r), [PORT]);
            let leaves = match to {
                0 => Object::Link(swp(2)),
                _ => in_other(2, BR_STATE_FORWARDING),
            };
            for o in [joined(3), leaves] {
                r.up(o);
                if !at_once {
                    r.plan();
                }
            }
            let is_in = |r: &Rig, n| {
                let mut all = r.chip.members.iter();
                all.any(|(k, m)| k.0 == n && m.fid == FID)
            };
            let look = |r: &Rig| assert!(is_in(r, 2) || is_in(r, 3), "to {to}");
            r.play(0, |_| Fate::Done, look);
            assert_eq!([2, 3].map(|n| is_in(&r, n)), [false, true]);
        }
    }
}

/// A port joins, and changes while that is on its way: the rest of its joining is not for its next turn, where another one joins between.
#[test]
fn a_port_that_changes_while_it_joins_joins_before_who_comes_meanwhile() {
    let mut r = bridged("spectrum-sn2700");
    for n in [3, 4] {
        r.up(Object::Link(swp(n)));
    }
    r.settle();
    r.up(joined(3));
    assert_eq!(on_its_way(&mut r), [PORT]);
    r.up(joined(4));
    r.up(isolated(3));
    let is_in = |r: &Rig, n| r.chip.members.keys().any(|k| k.0 == n);
    r.play(0, |_| Fate::Done, |r| assert!(is_in(r, 3) || !is_in(r, 4)));
    assert!(is_in(&r, 4) && r.chip.ports[&3].flags & TND_PORT_ISOLATED != 0);
}

/// A port of the bridge, isolated.
fn isolated(n: u16) -> Object {
    Object::Link(Link {
        master: BRIDGE,
        bridge_port: Some(BridgePort {
            isolated: true,
            state: BR_STATE_FORWARDING,
            ..BridgePort::default()
        }),
        ..swp(n)
    })
}

/// br1, beside br0.
fn other_bridge() -> Object {
    Object::Link(Link {
        ifindex: 51,
        name: "br1".into(),
        kind: LinkKind::Bridge(BridgeInfo::default()),
        ..swp(9)
    })
}

/// A port of it.
fn in_other(n: u16, state: u8) -> Object {
    Object::Link(Link {
        master: 51,
        bridge_port: Some(BridgePort {
            state,
            ..BridgePort::default()
        }),
        ..swp(n)
    })
}

/// Two that wait for each other's place are both written: one is behind a station of the bridge that it leaves.
#[test]
fn a_port_that_waits_for_another_holds_no_station_that_this_one_waits_for() {
    let mut r = bridged("spectrum-sn2700");
    r.up(other_bridge());
    r.up(in_other(4, BR_STATE_FORWARDING));
    r.settle();
    r.up(station(1));
    r.up(in_other(2, BR_STATE_FORWARDING));
    r.up(in_other(4, BLOCKING));
    r.up(station(2));
    r.settle();
    assert_eq!(r.chip.ports[&4].stp_state, BLOCKING);
    assert_eq!(r.chip.fdb.len(), 2);
}

/// The same where the one that it waits for waits for a third one, which has come to stand behind a station since.
#[test]
fn a_port_that_waits_for_two_holds_no_station_that_the_first_one_waits_for() {
    let mut r = bridged("spectrum-sn2700");
    r.up(other_bridge());
    r.up(in_other(4, BR_STATE_FORWARDING));
    r.up(Object::Link(swp(3)));
    r.settle();
    r.up(joined(3));
    r.up(in_other(2, BR_STATE_FORWARDING));
    r.up(in_other(4, BLOCKING));
    r.up(station(1));
    r.up(in_state(3, BLOCKING));
    r.settle();
    assert_eq!([3, 4].map(|n| r.chip.ports[&n].stp_state), [BLOCKING; 2]);
    assert_eq!(r.chip.fdb.len(), 1);
}

/// A port's command got no answer, a station comes behind it, and the port changes once more: it goes on before the station.
#[test]
fn a_port_that_is_tried_again_stays_before_the_stations_since() {
    let mut r = bridged("spectrum-sn2700");
    r.up(in_state(2, BLOCKING));
    r.plan();
    let token = r.chip.rings[0].pop_front().unwrap().token;
    r.store.timed_out(token, r.now);
    r.up(station(1));
    r.up(in_state(2, BR_STATE_FORWARDING));
    assert_eq!(on_its_way(&mut r), [PORT]);
    r.settle();
}

/// One that changes without end, before each answer, keeps no other one of its bridge from its turn.
#[test]
fn a_port_waits_for_no_other_that_changes_without_end() {
    let mut r = bridged("spectrum-sn2700");
    r.up(in_state(1, BLOCKING));
    r.plan();
    r.up(in_state(2, BLOCKING));
    let is_written = |r: &Rig| r.chip.ports[&2].stp_state == BLOCKING;
    for state in [BR_STATE_FORWARDING, BLOCKING].repeat(3) {
        r.up(in_state(1, state));
        r.run(0);
        r.plan();
    }
    assert!(is_written(&r));
    r.settle();
    assert_eq!([1, 2].map(|n| r.chip.ports[&n].stp_state), [BLOCKING; 2]);
}

/// A station's write fails, and it is by then what it was: nothing is tried again, and the route behind it is written.
#[test]
fn a_route_waits_for_nobody_who_has_nothing_to_write() {
    let mut r = router_with_bridge();
    r.up(Object::Fdb(fdb(9, 14, FdbKind::Static)));
    assert_eq!(on_its_way(&mut r), [STATION]);
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.plan();
    let p = r.chip.rings[0].pop_front().unwrap();
    let fault = Completion {
        status: TND_ST_FAULT,
        ..Completion::default()
    };
    r.store.complete(p.token, &fault, r.now);
    r.up(behind_3(9));
    r.plan();
    assert_eq!([0, 1].map(|ring| r.chip.rings[ring].len()), [0, 1]);
    r.settle();
}

/// A station of that bridge.
fn behind_3(n: u16) -> Object {
    Object::Fdb(fdb(n, 13, FdbKind::Static))
}

/// A router of two ports, and a bridge of two others, one of which is not in service.
fn router_with_bridge() -> Rig {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(bridge(300));
    r.up(joined(3));
    r.up(in_state(4, BLOCKING));
    r.up(behind_3(9));
    r.up(via("50.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    r
}

/// Stations come without end: routes are written all the same.
#[test]
fn routes_are_written_though_stations_come_all_the_time() {
    let mut r = router_with_bridge();
    let mut since = 0;
    for n in 0..200u16 {
        r.up(behind_3(100 + n));
        r.up(via(&format!("20.{n}.0.0/16"), 11, "10.1.0.2"));
        r.plan();
        // one is on its way always
        if r.chip.rings[0].len() > 1 {
            assert!(r.run(0));
        }
        since = if r.run(1) { 0 } else { since + 1 };
        assert!(since < 4, "no route is written");
    }
    r.settle();
}

/// The same where the chip fails to write each of them at first: what is tried again has not become older than the routes.
#[test]
fn routes_are_written_though_stations_are_tried_again_all_the_time() {
    let mut r = router_with_bridge();
    let mut tried = std::collections::HashSet::new();
    let (mut since, mut refused) = (0, 0);
    for n in 0..200u16 {
        r.up(behind_3(100 + n));
        r.up(via(&format!("20.{n}.0.0/16"), 11, "10.1.0.2"));
        r.plan();
        // as many answers as there are commands: one is on its way always
        for _ in 0..2 {
            if r.chip.rings[0].len() < 2 {
                break;
            }
            let p = r.chip.rings[0].front().unwrap();
            if tried.insert(p.body.bytes().to_vec()) {
                let p = r.chip.rings[0].pop_front().unwrap();
                let fault = Completion {
                    status: TND_ST_FAULT,
                    ..Completion::default()
                };
                r.store.complete(p.token, &fault, r.now);
                refused += 1;
            } else {
                assert!(r.run(0));
            }
            r.plan();
        }
        since = if r.run(1) { 0 } else { since + 1 };
        assert!(since < 6, "no route is written");
    }
    assert!(refused > 50, "{refused}");
    r.settle();
}

/// A port closes behind many stations: a route behind it waits until the port gives all to the CPU, not for the stations.
#[test]
fn routes_do_not_wait_for_a_port_behind_stations() {
    let mut r = router_with_bridge();
    for n in 0..1000 {
        r.up(behind_3(1000 + n));
    }
    r.up(in_state(3, BLOCKING));
    r.up(behind_3(1));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    let to = "20.0.0.1".parse().unwrap();
    let mut written = 0;
    while !by(101, &r.chip.lookup(to)) {
        r.plan();
        if !r.run(1) {
            let p = r.chip.rings[0].front().unwrap();
            written += usize::from(p.cls == STATION);
            assert!(r.run(0));
        }
        let port = r.chip.ports[&3];
        let open = port.flags & TND_PORT_TRAP_ALL == 0 && port.stp_state == BR_STATE_FORWARDING;
        assert!(!open || !by(101, &r.chip.lookup(to)));
        assert_eq!(port.stp_state, BR_STATE_FORWARDING, "it keeps its place");
    }
    assert!(written < 500, "{written} stations before the route");
    let mut stations = written;
    loop {
        r.plan();
        let Some(p) = r.chip.rings[0].front() else {
            break;
        };
        let is_port = p.cls == PORT;
        stations += usize::from(p.cls == STATION);
        assert!(r.run(0));
        if is_port {
            assert_eq!(stations, 1000);
        }
    }
    r.settle();
    let port = r.chip.ports[&3];
    assert_eq!(port.stp_state, BLOCKING);
    assert_eq!(port.flags & TND_PORT_TRAP_ALL, 0);
}

/// An interface has no address any more and goes, and a route comes: who comes in there never goes by it.
#[test]
fn no_route_is_written_while_an_interface_goes() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(via("50.0.0.0/8", 12, "10.2.0.2"));
    r.up(Object::Link(swp(3)));
    r.up(forwarding(Family::V4, ConfScope::Interface(13)));
    let Object::Addr(a) = addr(13, "10.3.0.1/24") else {
        panic!("no address");
    };
    r.up(Object::Addr(a));
    r.settle();
    let rifs = r.chip.rifs.len();
    r.del(Key::Addr(a));
    assert_eq!(on_its_way(&mut r), [TND_CLS_RIF]);
    r.up(via("20.0.0.0/8", 12, "10.2.0.2"));
    assert_eq!(on_its_way(&mut r), [TND_CLS_RIF]);
    assert_eq!(r.chip.rings[1].len(), 0);
    assert!(r.run(0));
    assert_eq!(r.chip.rifs.len(), rifs - 1);
    r.plan();
    assert_eq!(r.chip.rings[1].len(), 1);
    r.settle();
}

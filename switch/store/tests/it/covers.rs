//! Who answers for a prefix that the chip does not have, while what covers it changes.

use crate::common::*;
use std::net::IpAddr;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;
use zerocopy::IntoBytes;

const MISSING: &str = "20.1.1.1";

/// A chip of `routes` routes: what two interfaces need, and 20.0.0.0/8 by the first one.
fn chip(routes: u32) -> Rig {
    let mut r = Rig::tiny(routes, Policy::Trap);
    r.begin();
    interface(&mut r, 1);
    interface(&mut r, 2);
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

/// 20.1.1.0/24 by the second interface has no room, and 20.1.0.0/16 by the first traps for it: there is no reserve.
fn crowded() -> Rig {
    let mut r = chip(7);
    r.up(via("20.1.0.0/16", 11, "10.1.0.2"));
    r.up(via("60.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    r.up(via("20.1.1.0/24", 12, "10.2.0.2"));
    r.settle();
    assert_eq!(r.store.counters().waiting, 1);
    assert_eq!(answer(&r, MISSING), Answer::Trap);
    assert_eq!(answer(&r, "20.1.2.1"), Answer::Trap);
    assert!(by(101, &answer(&r, "20.2.0.1")));
    r
}

fn answer(r: &Rig, to: &str) -> Answer {
    r.chip.lookup(to.parse::<IpAddr>().unwrap())
}

/// The missing one's packets go its own way or to the CPU.
fn honest(r: &Rig) {
    let a = answer(r, MISSING);
    assert!(a == Answer::Trap || by(102, &a), "{a:?}");
}

/// What covers one missing prefix goes: the next one traps before.
#[test]
fn the_next_cover_traps_before_the_first_goes() {
    let mut r = crowded();
    r.del(Key::Route(key("20.1.0.0/16")));
    r.play(1, |_| Fate::Done, honest);
    // there is room now
    assert!(by(102, &answer(&r, MISSING)));
    assert!(by(101, &answer(&r, "20.2.0.1")));
}

/// The next one trapped by itself, and is to forward: that is on its way when the first is to go.
#[test]
fn a_cover_that_is_about_to_forward_is_none_yet() {
    let mut r = crowded();
    r.up(Object::Route(Route {
        kind: RouteType::Unreachable,
        ..route("20.0.0.0/8", RouteNextHops::None)
    }));
    r.settle();
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.del(Key::Route(key("20.1.0.0/16")));
    r.play(1, |_| Fate::Done, honest);
    assert!(by(102, &answer(&r, MISSING)));
    assert!(by(101, &answer(&r, "20.2.0.1")));
}

/// 20.0.0.0/8 traps for 20.1.1.0/24, because the one slot that is kept for aggregate traps is in use; and is not any more.
fn relieved() -> Rig {
    let mut r = chip(12);
    for n in [30, 60, 61, 62, 63] {
        r.up(via(&format!("{n}.0.0.0/8"), 11, "10.1.0.2"));
    }
    r.settle();
    // the first takes the slot, and its cover goes on
    for prefix in ["30.1.1.0/24", "20.1.1.0/24"] {
        r.up(via(prefix, 12, "10.2.0.2"));
        r.settle();
    }
    assert!(by(101, &answer(&r, "30.2.0.1")));
    assert_eq!(answer(&r, "20.2.0.1"), Answer::Trap);
    r.del(Key::Route(key("30.1.1.0/24")));
    r
}

fn is_aggregate(p: &Planned) -> bool {
    p.op == TND_OP_CREATE && p.flags & TND_CMD_LEASE != 0
}

/// The aggregate trap fails a few times, or its answer gets lost, before it stands: its cover traps as long, and no longer.
#[test]
fn a_cover_forwards_again_when_the_aggregate_stands() {
    for fate in [
        Fate::Refused(TND_ST_FAULT),
        Fate::Lost(false),
        Fate::Lost(true),
    ] {
        for times in 0..3 {
            let mut r = relieved();
            let mut left = times;
            let first = |p: &Planned| match is_aggregate(p) && left > 0 {
                true => {
                    left -= 1;
                    fate
                }
                false => Fate::Done,
            };
            r.play(0, first, honest);
            assert_eq!(left, 0);
            assert!(by(101, &answer(&r, "20.2.0.1")), "{fate:?} {times}");
            assert_eq!(answer(&r, MISSING), Answer::Trap);
            r.chip.accounting();
        }
    }
}

/// The slot that the aggregate was to draw on is not there any more: its cover traps until there is another one.
#[test]
fn a_cover_traps_while_the_aggregate_has_no_slot() {
    let mut r = relieved();
    let lease = loop {
        r.plan();
        match r.chip.rings[1].front() {
            Some(p) if is_aggregate(p) => break p.lease,
            _ => assert!(r.run(0) || r.run(1)),
        }
    };
    let release = tnd_cmd {
        op: TND_OP_RELEASE,
        lease,
        ..Default::default()
    };
    let c = r.chip.fw.execute(&release, &[], &mut Vec::new(), 0);
    assert_eq!(c.status, TND_ST_OK);
    let refused = r.store.counters().failed;
    r.play(1, |_| Fate::Done, honest);
    assert!(r.store.counters().failed > refused);
    assert!(by(101, &answer(&r, "20.2.0.1")));
    assert_eq!(answer(&r, MISSING), Answer::Trap);
}

/// A broadcast address is left out while its connected prefix traps. That leads to a gateway now: nothing that is sent to
/// the address goes there.
#[test]
fn what_was_left_out_stands_before_its_cover_forwards() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(via("50.0.0.0/8", 12, "10.2.0.2"));
    r.settle();
    let rows = |r: &Rig| {
        let mut rows = Vec::new();
        r.store.routes(Family::V4, 0, 100, &mut rows);
        rows
    };
    assert!(
        rows(&r)
            .iter()
            .any(|x| x.prefix == "10.1.0.255/32" && x.state == State::Omitted)
    );
    r.up(via("10.1.0.0/24", 12, "10.2.0.2"));
    r.play(
        1,
        |_| Fate::Done,
        |r| assert_eq!(answer(r, "10.1.0.255"), Answer::Trap),
    );
    assert!(by(102, &answer(&r, "10.1.0.77")));
}

/// A cover is gone from the chip, nobody knows why, and is not made again at once: the one above it traps meanwhile for who
/// is missing.
#[test]
fn a_cover_that_is_gone_covers_nobody() {
    let mut r = crowded();
    let mut all = r.chip.routes.values();
    let there = all.find(|x| x.prefix_len == 16).unwrap();
    let gone = Planned {
        token: u64::MAX,
        ring: Ring::Bulk,
        op: TND_OP_DELETE,
        cls: TND_CLS_ROUTE,
        flags: 0,
        lease: 0,
        body: Body::Arena(there.as_bytes().into()),
    };
    r.chip.post(gone);
    assert_eq!(r.chip.run(1).unwrap().1.status, TND_ST_OK);
    // it is written for another reason, and the chip says that it is not there
    r.up(Object::Route(Route {
        kind: RouteType::Local,
        ..route("20.1.0.0/16", RouteNextHops::One(hop(11, "")))
    }));
    let tried = std::cell::Cell::new(0);
    let fate = |p: &Planned| match (p.cls, p.op, tried.get()) {
        (TND_CLS_ROUTE, TND_OP_CREATE, 0..3) => {
            tried.set(tried.get() + 1);
            Fate::Refused(TND_ST_FAULT)
        }
        _ => Fate::Done,
    };
    r.play(1, fate, |r| {
        if tried.get() > 1 {
            honest(r);
        }
    });
    assert_eq!(tried.get(), 3);
    assert_eq!(answer(&r, "20.1.2.1"), Answer::Trap);
    assert!(by(101, &answer(&r, "20.2.0.1")));
}

/// How long a route has had no room counts from the first time, whatever is tried meanwhile.
#[test]
fn a_route_without_room_says_since_when() {
    let mut r = crowded();
    let since = |r: &Rig| {
        let e = r.store.explain_route("20.1.1.0/24".parse().unwrap());
        assert!(!e.in_hardware && words(&e.reason).contains("full"), "{e:?}");
        e.since_ns
    };
    let first = since(&r);
    let tries = r.store.counters().retries;
    r.now += 60_000_000_000;
    // what comes takes what is freed
    r.del(Key::Route(key("60.0.0.0/8")));
    r.up(via("61.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    assert!(by(101, &answer(&r, "61.0.0.1")));
    assert!(r.store.counters().retries > tries);
    assert_eq!(since(&r), first);
}

/// Slots of the IPv4 table that the chip keeps for leases.
fn leased(r: &mut Rig) -> u32 {
    let pools = r.chip.pools();
    let lpm = pools.iter().find(|p| p.name.starts_with(b"ipv4-lpm"));
    lpm.unwrap().committed
}

/// The first command of a route that is one of `which` gets no answer, and was carried out or not (`done`).
fn lose(r: &mut Rig, done: bool, which: impl Fn(&Planned) -> bool) {
    let mut lost = false;
    let fate = |p: &Planned| match !lost && p.cls == TND_CLS_ROUTE && which(p) {
        true => {
            lost = true;
            Fate::Lost(done)
        }
        false => Fate::Done,
    };
    r.play(1, fate, |_| ());
    assert!(lost);
}

/// An aggregate trap goes, and the answer to that gets lost: its slot is kept for the next one all the same.
#[test]
fn the_slot_of_a_lost_delete_is_leased_again() {
    for done in [true, false] {
        let mut r = relieved();
        r.settle();
        assert!(by(101, &answer(&r, "20.2.0.1")));
        let before = leased(&mut r);
        r.del(Key::Route(key("20.1.1.0/24")));
        lose(&mut r, done, |p| p.op == TND_OP_DELETE);
        assert_eq!(leased(&mut r), before + 1, "{done}");
        r.up(via("64.0.0.0/8", 11, "10.1.0.2"));
        r.up(via("20.1.1.0/24", 12, "10.2.0.2"));
        r.settle();
        assert!(by(101, &answer(&r, "20.2.0.1")), "{done}");
        assert_eq!(answer(&r, MISSING), Answer::Trap);
        r.chip.accounting();
    }
}

/// A local prefix draws on the reserve, and the answer to that gets lost: it comes to stand on the one slot that there is, and
/// that is leased again when it goes.
#[test]
fn a_lost_create_of_a_local_prefix_loses_no_lease() {
    for done in [true, false] {
        let mut r = relieved();
        r.settle();
        let before = leased(&mut r);
        r.up(local("70.0.0.1/32", 11, RouteType::Local));
        lose(&mut r, done, is_aggregate);
        let e = r.store.explain_route("70.0.0.1/32".parse().unwrap());
        assert!(e.in_hardware, "{done}: {e:?}");
        assert_eq!(leased(&mut r), before - 1, "{done}");
        r.del(Key::Route(RouteKey {
            table: TABLE_LOCAL,
            ..key("70.0.0.1/32")
        }));
        r.settle();
        assert_eq!(leased(&mut r), before, "{done}");
        r.chip.accounting();
    }
}

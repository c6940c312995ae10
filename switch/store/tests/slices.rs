//! What one event means for many routes goes in slices, and nothing is planned between them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
use common::*;
use tandem_store::model::*;
use tandem_store::*;

const ROUTES: usize = 95;
const SLICE: usize = 10;

/// Two ports, and many routes by one way of the first.
fn many(to: RouteNextHops) -> Rig {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(neigh(11, "10.1.0.2", 2));
    r.up(neigh(12, "10.2.0.2", 3));
    r.up(single(1, 11, "10.1.0.2"));
    for n in 0..ROUTES {
        r.up(Object::Route(route(&format!("40.0.{n}.0/24"), to.clone())));
    }
    r.settle();
    assert_eq!(forwarded(&r), ROUTES);
    r.store.set_slice(SLICE);
    r
}

fn fill(r: &mut Rig, to: &RouteNextHops) {
    r.up(neigh(11, "10.1.0.2", 2));
    r.up(neigh(12, "10.2.0.2", 3));
    r.up(single(1, 11, "10.1.0.2"));
    for n in 0..ROUTES {
        let route = route(&format!("40.0.{n}.0/24"), to.clone());
        r.up(Object::Route(route));
    }
}

/// Routes to `40.0.0.0/16` that are desired.
fn there(r: &Rig) -> usize {
    let mut rows = Vec::new();
    let mut cursor = 0;
    loop {
        cursor = r.store.routes(Family::V4, cursor, 1000, &mut rows);
        if cursor == 0 {
            break;
        }
    }
    // one of nobody is still on the chip alone
    let said = rows.iter().filter(|r| r.source != 0);
    said.filter(|r| r.prefix.starts_with("40.0.")).count()
}

/// As many of these as the chip forwards.
fn forwarded(r: &Rig) -> usize {
    let all = r.chip.routes.values().filter(|x| x.addr[0] == 40);
    all.filter(|x| x.action == tandem_abi::raw::TND_ACT_FORWARD)
        .count()
}

/// As many slices as that takes, none of them larger; nothing is handed out before the last.
fn in_slices(r: &mut Rig) {
    let commands = r.store.counters().commands;
    let mut slices = 1;
    while r.store.behind() {
        assert!(!r.store.idle());
        r.now += 1000;
        let before = there(r);
        slices += 1;
        if slices == 3 {
            assert_eq!(r.store.plan_some(&mut Vec::new(), r.now), 0);
        } else {
            r.store.catch_up(r.now);
        }
        assert!(before - there(r) <= SLICE);
    }
    assert_eq!(slices, ROUTES.div_ceil(SLICE));
    assert_eq!(r.store.counters().commands, commands);
}

fn down() -> Object {
    let mut l = swp(1);
    (l.admin_up, l.carrier) = (false, false);
    Object::Link(l)
}

#[test]
fn routes_over_a_port_that_goes_down_go_in_slices() {
    let mut r = many(RouteNextHops::One(hop(11, "10.1.0.2")));
    r.up(down());
    assert!(there(&r) >= ROUTES - SLICE);
    in_slices(&mut r);
    assert_eq!(there(&r), 0);
    r.settle();
    assert_eq!(forwarded(&r), 0);
}

#[test]
fn what_comes_meanwhile_finds_them_gone() {
    let mut r = many(RouteNextHops::One(hop(11, "10.1.0.2")));
    r.up(down());
    assert!(r.store.behind());
    // the same one, said after its port went down: it leads nowhere, and is there
    let same = RouteNextHops::One(NextHop {
        dead: true,
        ..hop(11, "10.1.0.2")
    });
    r.up(Object::Route(route("40.0.94.0/24", same)));
    r.up(via("40.0.93.0/24", 12, "10.2.0.2"));
    assert_eq!(there(&r), 2);
    r.settle();
    assert_eq!(forwarded(&r), 1);
}

#[test]
fn routes_of_an_object_that_changes_go_in_slices() {
    let mut r = many(RouteNextHops::Object(1));
    r.up(single(1, 12, "10.2.0.2"));
    in_slices(&mut r);
    r.settle();
    assert_eq!(forwarded(&r), ROUTES);
    // and those of one that goes
    r.del(Key::Nexthop(1));
    in_slices(&mut r);
    r.settle();
    assert_eq!(there(&r), 0);
    assert_eq!(forwarded(&r), 0);
}

#[test]
fn routes_that_wait_for_their_next_hop_are_queued_in_slices() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    fill(&mut r, &RouteNextHops::One(hop(11, "10.1.0.2")));
    let mut turns = 0;
    loop {
        let mut out = Vec::new();
        r.now += 1000;
        r.store.plan_some(&mut out, r.now);
        for p in out {
            r.chip.post(p);
        }
        if !r.store.unfinished() {
            break;
        }
        turns += 1;
    }
    // each looks at so many that find it missing, at the most
    assert!((ROUTES / SLICE..ROUTES).contains(&turns), "{turns}");
    // its answer wakes them
    let mut was_behind = false;
    while forwarded(&r) < ROUTES {
        let mut out = Vec::new();
        r.now += 1000;
        r.store.plan_some(&mut out, r.now);
        was_behind |= r.store.behind();
        for p in out {
            r.chip.post(p);
        }
        let ran = [r.run(0), r.run(1)];
        assert!(r.store.behind() || ran.contains(&true));
        was_behind |= r.store.behind();
    }
    assert!(was_behind);
    r.settle();
}

/// A target that changes while the routes of the change before are being looked at: those looked at already are looked at again.
#[test]
fn a_target_that_changes_again_meanwhile() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(neigh(11, "10.1.0.2", 2));
    r.up(neigh(12, "10.2.0.2", 3));
    r.up(single(1, 11, "10.1.0.2"));
    r.up(single(3, 12, "10.2.0.2"));
    r.up(object(5, NexthopKind::Group(vec![(1, 1)])));
    r.up(object(6, NexthopKind::Group(vec![(1, 1), (3, 1)])));
    for n in 0..ROUTES {
        let prefix = format!("40.0.{n}.0/24");
        r.up(Object::Route(route(&prefix, RouteNextHops::Object(6))));
    }
    r.settle();
    assert_eq!(forwarded(&r), ROUTES);
    r.store.set_slice(SLICE);
    // the paths of what leads over the second port are to be looked at, and the first one goes down meanwhile
    let mut l = swp(2);
    l.mtu = 1400;
    r.up(Object::Link(l));
    r.up(down());
    r.settle();
    assert_eq!(forwarded(&r), ROUTES);
}

//! Interfaces that take more or less than they did, and routes of the same moment: two rings, and the kernel's order.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;
use common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

/// A policy rule that nobody is routed beside.
fn rule() -> Rule {
    Rule {
        family: Family::V4,
        priority: 100,
        table: 0,
        is_default: false,
        l3mdev: false,
        iif: String::new(),
        text: "from all blackhole".into(),
    }
}

fn rig() -> Rig {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    // its next hop is there
    r.up(via("50.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    r
}

fn routed(r: &Rig) -> bool {
    let lets = |x: &tnd_rif| x.flags & TND_RIF_V4 != 0;
    assert!(!r.chip.rifs.is_empty());
    r.chip.rifs.values().any(lets)
}

/// What waits on a ring.
fn waits(r: &Rig, ring: usize) -> usize {
    r.chip.rings[ring].len()
}

#[test]
fn no_route_is_written_while_an_interface_closes() {
    let mut r = rig();
    assert!(routed(&r));
    r.up(Object::Rule(rule()));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.plan();
    assert_eq!((waits(&r, 1), routed(&r)), (0, true));
    while routed(&r) {
        assert_eq!(waits(&r, 1), 0);
        assert!(r.run(0), "nothing is left to do");
    }
    // all of them are answered first; none is waited for that did not get through in the end
    r.settle();
    assert!(r.store.idle());
    assert!(by(101, &r.chip.lookup("20.0.0.1".parse().unwrap())));
}

/// A lost answer: it is not known to have closed.
#[test]
fn an_interface_that_got_no_answer_has_not_closed() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.plan();
    while let Some((token, _)) = r.chip.run(0) {
        r.store.timed_out(token, r.now);
    }
    r.plan();
    assert_eq!(waits(&r, 1), 0);
    r.settle();
    assert!(r.store.idle() && !routed(&r));
    assert!(by(101, &r.chip.lookup("20.0.0.1".parse().unwrap())));
}

/// What opens it is on its way still when it is to close again.
#[test]
fn who_is_to_close_while_it_opens_may_be_open() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    r.del(Key::Rule(rule()));
    r.plan();
    assert!(waits(&r, 0) > 0);
    r.up(Object::Rule(rule()));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    // the first answer, of what opened it, is lost
    for lost in [false, true] {
        r.plan();
        assert_eq!(waits(&r, 1), 0, "a route is written beside");
        match r.chip.run(0) {
            Some((token, _)) if lost => r.store.timed_out(token, r.now),
            Some((token, answer)) => r.store.complete(token, &answer, r.now),
            None => break,
        }
    }
    while routed(&r) {
        r.plan();
        assert_eq!(waits(&r, 1), 0, "a route is written beside");
        assert!(r.run(0), "it does not close");
    }
    r.settle();
    assert!(r.store.idle() && !routed(&r));
}

#[test]
fn an_interface_opens_behind_the_routes_of_before() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    assert!(!routed(&r));
    // by a gateway that is new: its next hop has to be made before it
    r.up(via("20.0.0.0/8", 11, "10.1.0.3"));
    r.up(neigh(11, "10.1.0.3", 13));
    r.del(Key::Rule(rule()));
    for _ in 0..50 {
        r.plan();
        let there = by(13, &r.chip.lookup("20.0.0.1".parse().unwrap()));
        assert!(there || !routed(&r));
        // the synchronous ring is ahead
        if !r.run(0) && !r.run(1) {
            break;
        }
    }
    r.settle();
    assert!(routed(&r) && r.store.idle());
}

/// Routes come without end: it opens all the same.
#[test]
fn an_interface_does_not_wait_for_routes_that_came_later() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.del(Key::Rule(rule()));
    for n in 0..200 {
        r.up(via(&format!("21.0.{n}.0/24"), 11, "10.1.0.2"));
        r.plan();
        r.run(0);
        r.run(1);
        if routed(&r) {
            return;
        }
    }
    panic!("it waits for all of them");
}

/// Another core has left interfaces shut, for a rule that has gone since, and so has a route come: they open behind it.
#[test]
fn what_was_left_shut_opens_behind_all_routes() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    assert!(!routed(&r));
    r.chip.reload();
    r.store.adopt(Left {
        rifs: r.chip.dump(TND_CLS_RIF),
        ports: r.chip.dump(TND_CLS_PORT),
        ..Left::default()
    });
    r.store.attach(Attach::Warm, r.now);
    r.del(Key::Rule(rule()));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    loop {
        r.plan();
        let there = by(101, &r.chip.lookup("20.0.0.1".parse().unwrap()));
        assert!(there || !routed(&r));
        // the synchronous ring is ahead
        if !r.run(0) && !r.run(1) {
            break;
        }
    }
    r.settle();
    assert!(routed(&r) && r.store.idle());
}

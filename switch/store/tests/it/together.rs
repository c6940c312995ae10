//! What changes at once, by an event or by a dump: whatever the chip has done of it by then, a packet's answer is the one of before or
//! the one of after, or the CPU's.
//!
//! ```text
//!   swp1 ── 10.1.0.0/24, gateway 10.1.0.2 (station 101)       0.0.0.0/0 via swp1, then by swp2
//!   swp2 ── 10.2.0.0/24, gateway 10.2.0.2 (station 102)
//! ```

use crate::common::*;
use std::net::IpAddr;
use tandem_store::model::*;
use tandem_store::*;

/// Two ports with gateways, one command on its way at a time.
fn router() -> Rig {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.store = Store::new(Config {
        max_outstanding: [1; 2],
        ..r.chip.config(Policy::Trap)
    });
    dump(&mut r);
    r
}

/// One begins, and has the interfaces.
fn dump(r: &mut Rig) {
    r.begin();
    interface(r, 1);
    interface(r, 2);
}

fn ready(r: &mut Rig) {
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
}

/// The answers for an address after each command; those of routes before others.
fn answers(r: &mut Rig, to: &str) -> Vec<Answer> {
    let to: IpAddr = to.parse().unwrap();
    let mut all = vec![r.chip.lookup(to)];
    loop {
        let planned = r.plan() > 0;
        let ran = r.run(1) || r.run(0);
        all.push(r.chip.lookup(to));
        if !planned && !ran {
            return all;
        }
    }
}

fn second(prefix: &str) -> Object {
    let mut other = route(prefix, RouteNextHops::One(hop(12, "10.2.0.2")));
    other.key.metric = 20;
    Object::Route(other)
}

/// The connected network goes with the link, and so does what the default route goes by.
#[test]
fn a_link_that_goes_down_takes_the_widest_first() {
    let mut r = router();
    r.up(via("0.0.0.0/0", 11, "10.1.0.2"));
    r.up(second("0.0.0.0/0"));
    ready(&mut r);
    r.up(Object::Link(Link {
        admin_up: false,
        carrier: false,
        ..swp(1)
    }));
    let all = answers(&mut r, "10.1.0.77");
    assert!(!all.iter().any(|a| by(101, a)), "{all:?}");
    assert!(by(102, all.last().unwrap()), "{all:?}");
    r.settle();
}

/// A dump has the wider prefix first, where the kernel had the longer one first.
#[test]
fn a_dump_makes_the_longest_first() {
    let mut r = router();
    ready(&mut r);
    dump(&mut r);
    r.up(via("40.0.0.0/8", 11, "10.1.0.2"));
    let mut all = answers(&mut r, "40.1.0.1");
    r.up(via("40.1.0.0/16", 12, "10.2.0.2"));
    r.end();
    all.extend(answers(&mut r, "40.1.0.1"));
    assert!(!all.iter().any(|a| by(101, a)), "{all:?}");
    assert!(by(102, all.last().unwrap()), "{all:?}");
    r.settle();
}

/// What a dump has lost, and what it has as another one: the wider one changes before the longer one goes.
#[test]
fn a_dump_changes_the_widest_first() {
    let mut r = router();
    r.up(neigh(11, "10.1.0.3", 103));
    r.up(via("40.1.0.0/16", 11, "10.1.0.3"));
    r.up(via("40.0.0.0/8", 11, "10.1.0.2"));
    r.up(second("40.0.0.0/8"));
    ready(&mut r);
    dump(&mut r);
    r.up(neigh(11, "10.1.0.3", 103));
    r.up(second("40.0.0.0/8"));
    r.end();
    let all = answers(&mut r, "40.1.0.1");
    assert!(!all.iter().any(|a| by(101, a)), "{all:?}");
    assert!(by(102, all.last().unwrap()), "{all:?}");
    r.settle();
}

/// What a dump brings stands before what it has lost is taken away, or the next one above would answer.
#[test]
fn a_dump_makes_before_it_takes_away() {
    let mut r = router();
    r.up(neigh(11, "10.1.0.3", 103));
    r.up(via("40.0.0.0/8", 11, "10.1.0.3"));
    r.up(via("40.1.0.0/16", 11, "10.1.0.2"));
    ready(&mut r);
    dump(&mut r);
    r.up(neigh(11, "10.1.0.3", 103));
    r.up(via("40.0.0.0/8", 11, "10.1.0.3"));
    r.up(via("40.1.0.0/17", 12, "10.2.0.2"));
    r.end();
    let all = answers(&mut r, "40.1.0.1");
    assert!(!all.iter().any(|a| by(103, a)), "{all:?}");
    assert!(by(102, all.last().unwrap()), "{all:?}");
    r.settle();
}

/// A dump that does not end, or one with very many changes, holds nothing up for long.
#[test]
fn a_dump_that_does_not_end_holds_nothing_for_long() {
    let mut r = router();
    ready(&mut r);
    dump(&mut r);
    r.up(via("40.0.0.0/8", 11, "10.1.0.2"));
    while r.plan() > 0 || r.run(0) || r.run(1) {}
    let to: IpAddr = "40.0.0.1".parse().unwrap();
    assert_eq!(r.chip.lookup(to), Answer::Trap);
    // released, and what it leads to made; it waits for that, and so for the dump once more
    for _ in 0..2 {
        r.now += 5_000_000_000;
        while r.plan() > 0 || r.run(0) || r.run(1) {}
    }
    assert!(by(101, &r.chip.lookup(to)));
    r.end();
    r.settle();

    dump(&mut r);
    r.up(via("40.0.0.0/8", 11, "10.1.0.2"));
    for n in 0..1 << 16 {
        let prefix = format!("50.{}.{}.0/24", n >> 8, n & 255);
        r.up(via(&prefix, 11, "10.1.0.2"));
    }
    assert!(r.plan() > 0);
    while r.run(1) {}
    r.end();
    r.settle();
    // the last ones have no room
    assert!(by(101, &r.chip.lookup("50.100.0.1".parse().unwrap())));
    assert_eq!(r.chip.lookup("50.255.255.1".parse().unwrap()), Answer::Trap);
}

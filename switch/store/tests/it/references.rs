//! References between objects of the chip: made before what needs them, taken away behind it, and given back whatever the
//! chip answers.

use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

fn routed() -> Rig {
    two_ports("spectrum-sn2700", Policy::Trap)
}

fn done(_: &Planned) -> Fate {
    Fate::Done
}

fn is(p: &Planned, cls: u16, op: u16) -> bool {
    (p.cls, p.op) == (cls, op)
}

/// A route comes while the next hop that it needs is on its way out: it waits until that is made again, and the chip has
/// nothing to refuse.
#[test]
fn a_route_waits_for_a_next_hop_that_is_going() {
    for first in [0, 1] {
        let mut r = routed();
        r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
        r.settle();
        let refused = r.store.counters().failed;
        r.del(Key::Route(key("20.0.0.0/8")));
        // until the next hop's DELETE is posted
        for _ in 0..100 {
            r.plan();
            match r.chip.rings[0].is_empty() {
                true => assert!(r.run(1)),
                false => break,
            }
        }
        let on_its_way = r.chip.rings[0].front().unwrap();
        assert!(is(on_its_way, TND_CLS_NEXTHOP, TND_OP_DELETE));
        r.up(via("21.0.0.0/8", 11, "10.1.0.2"));
        r.play(first, done, |_| {});
        assert!(by(101, &r.chip.lookup("21.0.0.1".parse().unwrap())));
        assert_eq!(r.store.counters().failed, refused, "{first}");
    }
}

/// The answer to a next hop's CREATE gets lost, and it was not carried out: it is made before a route leads to it, and the
/// chip has nothing to refuse.
#[test]
fn a_route_waits_for_a_next_hop_that_may_be_there() {
    for first in [0, 1] {
        let mut r = routed();
        let refused = r.store.counters().failed;
        r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
        let mut lost = 0;
        let fate = |p: &Planned| match is(p, TND_CLS_NEXTHOP, TND_OP_CREATE) && lost == 0 {
            true => {
                lost += 1;
                Fate::Lost(false)
            }
            false => Fate::Done,
        };
        r.play(first, fate, |_| {});
        assert_eq!(lost, 1);
        assert!(by(101, &r.chip.lookup("20.0.0.1".parse().unwrap())));
        assert_eq!(r.store.counters().failed, refused, "{first}");
    }
}

/// A route's next state gets no answer, though the chip has it, and by then the former one is wanted again: that is what the
/// chip has in the end.
#[test]
fn a_route_that_goes_back_while_its_answer_is_lost() {
    let mut r = routed();
    let to = "20.0.0.1".parse().unwrap();
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.up(via("21.0.0.0/8", 12, "10.2.0.2"));
    r.settle();
    r.up(via("20.0.0.0/8", 12, "10.2.0.2"));
    r.plan();
    let token = r.chip.rings[1].front().unwrap().token;
    r.chip.run(1);
    assert!(by(102, &r.chip.lookup(to)));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.store.timed_out(token, r.now);
    r.settle();
    assert!(by(101, &r.chip.lookup(to)));
}

/// A group's next state has no room, and the one after that is smaller: it is tried without waiting for room.
#[test]
fn a_group_that_could_not_grow_shrinks() {
    let mut r = routed();
    let to = "30.0.0.1".parse().unwrap();
    let group = |members: &[(u32, u32)]| object(9, NexthopKind::Group(members.to_vec()));
    r.up(single(1, 11, "10.1.0.2"));
    r.up(single(2, 12, "10.2.0.2"));
    r.up(group(&[(1, 2), (2, 2)]));
    r.up(Object::Route(route("30.0.0.0/8", RouteNextHops::Object(9))));
    r.settle();
    let both = r.chip.lookup(to);
    assert!(matches!(&both, Answer::Ways(w) if w.len() == 2), "{both:?}");
    r.up(group(&[(1, 256), (2, 255)]));
    let full = |p: &Planned| match p.cls {
        TND_CLS_NHG => Fate::Refused(TND_ST_TABLE_FULL),
        _ => Fate::Done,
    };
    r.play(0, full, |_| {});
    assert_eq!(r.chip.lookup(to), Answer::Trap);
    r.up(group(&[(1, 2), (2, 1)]));
    r.settle();
    assert_eq!(r.chip.lookup(to), both);
    assert!(r.store.failures(10).is_empty());
}

/// Something that the store does not know of refers to a router interface, and is gone with a neighbour's entry: the
/// interface's is deleted then.
#[test]
fn what_was_in_use_goes_behind_any_other_object() {
    let mut r = routed();
    r.del(Key::Link(12));
    let mut refused = 0;
    let in_use = |p: &Planned| match is(p, TND_CLS_RIF, TND_OP_DELETE) {
        true => {
            refused += 1;
            Fate::Refused(TND_ST_IN_USE)
        }
        false => Fate::Done,
    };
    r.play(0, in_use, |_| {});
    assert!(refused > 0);
    assert_eq!((r.store.undeletable(), r.chip.rifs.len()), (1, 2));
    r.del(Key::Neigh(11, "10.1.0.2".parse().unwrap()));
    r.settle();
    assert_eq!((r.store.undeletable(), r.chip.rifs.len()), (0, 1));
    assert!(r.store.failures(10).is_empty());
}

/// An update of a next hop finds nothing, or its answer gets lost: what it refers to can go with it all the same.
#[test]
fn nothing_is_held_by_an_update_that_came_to_nothing() {
    for fate in [
        Fate::Refused(TND_ST_NOENT),
        Fate::Lost(true),
        Fate::Lost(false),
    ] {
        let mut r = routed();
        r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
        r.settle();
        r.up(neigh(11, "10.1.0.2", 111));
        let mut times = 0;
        let once = |p: &Planned| match is(p, TND_CLS_NEXTHOP, TND_OP_UPDATE) && times == 0 {
            true => {
                times += 1;
                fate
            }
            false => Fate::Done,
        };
        r.play(0, once, |_| {});
        assert_eq!(times, 1);
        assert!(by(111, &r.chip.lookup("20.0.0.1".parse().unwrap())));
        r.del(Key::Link(11));
        r.settle();
        assert!(r.chip.nexthops.is_empty(), "{fate:?}");
        assert_eq!(r.chip.rifs.len(), 1, "{fate:?}");
        r.chip.accounting();
    }
}

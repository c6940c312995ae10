//! What the kernel does without a message of its own, told of in other ones: without a kernel.

use std::collections::{BTreeMap, BTreeSet};

use tandem_linux::netlink as nl;
use tandem_linux::netlink::{NewMode, Nexthops, Route, RouteNexthop};
use tandem_store::model::{Event, Key, Object, RouteNextHops};

use super::super::view::KernelView;
use super::told::{group, link, new, next_hop, of, route, said, single};

const UP: u32 = 1;
const RUNNING: u32 = 0x40;
const LOWER_UP: u32 = 0x1_0000;

fn gone(object: nl::Object) -> nl::Event {
    nl::Event::Del(object)
}

fn append(route: &Route) -> nl::Event {
    nl::Event::New(of(route), NewMode::Append)
}

fn port(index: u32, flags: u32) -> nl::Event {
    new(nl::Object::Link(nl::Link {
        flags,
        ..link(index, 0, nl::LinkKind::Tun)
    }))
}

fn address(ifindex: u32, local: &str) -> nl::Object {
    nl::Object::Addr(nl::Addr {
        ifindex,
        local: local.parse().unwrap(),
        prefix_len: 24,
        peer: None,
        flags: 0,
        scope: 0,
    })
}

/// What goes with a device goes the widest first, by objects and by gateways alike: in between nobody has a prefix that answers for one
/// below it, and is about to go.
#[test]
fn what_goes_in_silence_goes_the_widest_first() {
    let mut v = KernelView::default();
    said(&mut v, port(7, UP | RUNNING | LOWER_UP));
    said(&mut v, new(single(1, 7)));
    let lens = [24, 8, 32, 12, 0, 30, 16, 20, 4, 28];
    for (n, len) in lens.into_iter().enumerate() {
        let dst = format!("0.0.0.0/{len}");
        let route = match n % 2 {
            0 => by(&dst, 1),
            _ => route(&dst, Nexthops::One(next_hop(7, "10.7.0.2"))),
        };
        said(&mut v, append(&route));
    }
    let events = said(&mut v, port(7, 0));
    let gone: Vec<u8> = (events.iter())
        .filter_map(|e| match e {
            Event::Remove(_, Key::Route(k)) => Some(k.prefix.prefix_len()),
            _ => None,
        })
        .collect();
    assert_eq!(gone, [0, 4, 8, 12, 16, 20, 24, 28, 30, 32]);
}

/// A route by a next-hop object.
fn by(dst: &str, nh_id: u32) -> Route {
    Route {
        nh_id,
        ..route(dst, Nexthops::None)
    }
}

/// A route by one device.
fn on(ifindex: u32) -> Route {
    route(
        "172.16.0.0/16",
        Nexthops::One(next_hop(ifindex, "10.0.0.2")),
    )
}

/// Two links that are up, with 10.0.N.1 on each.
fn two() -> KernelView {
    let mut v = KernelView::default();
    for i in [7, 8] {
        said(&mut v, port(i, UP | RUNNING | LOWER_UP));
        said(&mut v, new(address(i, &format!("10.0.{i}.1"))));
    }
    v.take_doubts();
    v
}

fn routes_gone(events: &[Event]) -> usize {
    let route = |e: &&Event| matches!(e, Event::Remove(_, Key::Route(_)));
    events.iter().filter(route).count()
}

fn objects_gone(events: &[Event]) -> Vec<u32> {
    let object = |e: &Event| match e {
        Event::Remove(_, Key::Nexthop(id)) => Some(*id),
        _ => None,
    };
    events.iter().filter_map(object).collect()
}

/// The devices of a key's routes in their order, as whoever takes all events has them.
fn in_order(events: &[Event]) -> Vec<u32> {
    let mut there = BTreeMap::new();
    for event in events {
        match event {
            Event::Upsert(_, Object::Route(r)) => {
                there.insert(r.key.position, r.nexthops.clone());
            }
            Event::Remove(_, Key::Route(key)) => {
                there.remove(&key.position);
            }
            _ => {}
        }
    }
    let device = |n: &RouteNextHops| match n {
        RouteNextHops::One(hop) => hop.ifindex,
        _ => 0,
    };
    there.values().map(device).collect()
}

#[test]
fn routes_go_with_the_last_address_and_not_before() {
    let mut v = two();
    said(&mut v, new(address(7, "10.0.9.1")));
    said(&mut v, new(of(&on(7))));
    let events = said(&mut v, gone(address(7, "10.0.7.1")));
    assert_eq!(routes_gone(&events), 0);
    let events = said(&mut v, gone(address(7, "10.0.9.1")));
    assert_eq!(routes_gone(&events), 1);
}

/// Next hops die with the last address: of a route that has others that is said before routes that prefer the address go with it. What is
/// below such a one, and wider than it, is never looked up with a next hop that is dead.
#[test]
fn next_hops_die_before_their_address_goes() {
    let mut v = two();
    let ways = [7, 8].map(|i| next_hop(i, &format!("10.0.{i}.2")));
    said(
        &mut v,
        append(&route("20.0.0.0/8", Nexthops::Many(ways.into()))),
    );
    said(&mut v, append(&on(7)));
    let events = said(&mut v, gone(address(7, "10.0.7.1")));
    let at = |which: fn(&Event) -> bool| events.iter().position(which).unwrap();
    let dies = at(|e| matches!(e, Event::Upsert(_, Object::Route(_))));
    let address = at(|e| matches!(e, Event::Remove(_, Key::Addr(_))));
    let goes = at(|e| matches!(e, Event::Remove(_, Key::Route(_))));
    assert!(dies < address && address < goes);
    let said = |e: &&Event| matches!(e, Event::Upsert(_, Object::Route(_)));
    assert_eq!(events.iter().filter(said).count(), 1);
}

#[test]
fn next_hops_that_an_address_brings_back_are_asked_for() {
    let mut v = two();
    said(&mut v, gone(address(7, "10.0.7.1")));
    v.take_doubts();
    said(&mut v, new(address(7, "10.0.7.1")));
    assert!(v.take_doubts().links.contains(&7));
    // it had one before: nothing comes back with another
    said(&mut v, new(address(7, "10.0.9.1")));
    assert!(!v.take_doubts().links.contains(&7));
}

/// The message of its last address is lost, and a dump shows the next hop dead: an address brings it back all the same.
#[test]
fn next_hops_that_a_dump_has_dead_are_asked_for() {
    let mut v = two();
    let out = &mut |_: Event| {};
    v.begin_full(out);
    for i in [7, 8] {
        v.dumped(nl::Object::Link(link(i, 0, nl::LinkKind::Tun)), &mut |_| {});
    }
    v.dumped(address(8, "10.0.8.1"), &mut |_| {});
    let dead = RouteNexthop {
        flags: 1,
        ..next_hop(7, "10.0.7.2")
    };
    let both = Nexthops::Many([dead, next_hop(8, "10.0.8.2")].into());
    v.dumped(of(&route("172.16.0.0/16", both)), &mut |_| {});
    v.end_full(None, &mut |_| {});
    v.take_doubts();
    said(&mut v, new(address(8, "10.0.9.1")));
    assert!(!v.take_doubts().links.contains(&8));
    said(&mut v, new(address(7, "10.0.7.1")));
    assert!(v.take_doubts().links.contains(&7));
}

/// A device that lost its last address and was set up again has routes like any other.
#[test]
fn a_device_that_is_up_again_needs_no_address() {
    let mut v = two();
    said(&mut v, gone(address(7, "10.0.7.1")));
    said(&mut v, port(7, 0));
    said(&mut v, port(7, UP | RUNNING | LOWER_UP));
    let both = Nexthops::Many([next_hop(7, "10.0.7.2"), next_hop(8, "10.0.8.2")].into());
    said(&mut v, new(of(&route("172.16.0.0/16", both))));
    let events = said(&mut v, port(8, 0));
    assert_eq!(routes_gone(&events), 0, "{events:?}");
    let events = said(&mut v, port(7, 0));
    assert_eq!(routes_gone(&events), 1, "{events:?}");
}

/// Which next hops on a device are dead that lost its last address: those that it had then, and none that came later.
#[test]
fn a_next_hop_that_came_after_the_address_had_gone_is_alive() {
    let both = || Nexthops::Many([next_hop(7, "10.0.7.2"), next_hop(8, "10.0.8.2")].into());
    for (before, wanted) in [(true, 1), (false, 0)] {
        let mut v = two();
        let told = new(of(&route("172.16.0.0/16", both())));
        if before {
            said(&mut v, told.clone());
        }
        let events = said(&mut v, gone(address(7, "10.0.7.1")));
        if before {
            // no message says so
            let [Event::Upsert(_, Object::Route(r)), Event::Remove(..)] = events.as_slice() else {
                panic!("{events:?}");
            };
            let RouteNextHops::Many(hops) = &r.nexthops else {
                panic!("{r:?}");
            };
            let dead: Vec<bool> = hops.iter().map(|h| h.dead).collect();
            assert_eq!(dead, [true, false]);
        } else {
            said(&mut v, told);
        }
        let events = said(&mut v, port(8, 0));
        assert_eq!(routes_gone(&events), wanted, "{before}: {events:?}");
    }
}

/// A look at one device no longer finds the first of two routes, and the message of what took its place is still to be read:
/// the second one, by an object, which such a look passes over, stays, and all routes are asked for.
#[test]
fn what_took_the_place_of_a_route_that_a_look_missed_took_no_other() {
    let mut v = two();
    said(&mut v, new(single(3, 8)));
    said(&mut v, new(single(4, 8)));
    said(&mut v, new(of(&on(7))));
    said(&mut v, append(&by("172.16.0.0/16", 3)));
    v.take_doubts();
    v.begin_check(Some(7), false);
    assert_eq!(v.end_check(Some(7), false, &mut |_| {}), 1);
    let replacing = by("172.16.0.0/16", 4);
    let replaced = nl::Event::New(of(&replacing), NewMode::Replace(7));
    let events = said(&mut v, replaced.clone());
    assert_eq!((in_order(&events).len(), routes_gone(&events)), (1, 0));
    assert!(v.take_doubts().routes);
    let events = said(&mut v, gone(of(&replacing)));
    assert_eq!((routes_gone(&events), v.routes()), (1, 1), "{events:?}");
    assert!(!v.take_doubts().routes);
    // once all is read, the first is the first
    v.caught_up();
    said(&mut v, replaced);
    assert!(!v.take_doubts().routes);
    assert_eq!(v.routes(), 1);
}

#[test]
fn routes_of_a_group_that_prefer_an_address_are_asked_for() {
    let mut v = two();
    for object in [single(1, 7), single(2, 8), group(10, &[1, 2], false)] {
        said(&mut v, new(object));
    }
    let preferred = Route {
        prefsrc: Some("10.0.9.1".parse().unwrap()),
        ..by("172.16.0.0/16", 10)
    };
    said(&mut v, new(address(7, "10.0.9.1")));
    said(&mut v, new(of(&preferred)));
    v.take_doubts();
    said(&mut v, gone(address(7, "10.0.9.1")));
    assert_eq!(v.take_doubts().links, BTreeSet::from([7, 8]));
}

/// A route's message calls its next hop dead before the kernel has told of the device: it is looked at when that is told.
#[test]
fn a_next_hop_that_was_told_dead_is_looked_at() {
    let mut v = two();
    let dead = RouteNexthop {
        flags: 1,
        ..next_hop(7, "10.0.7.2")
    };
    said(
        &mut v,
        new(of(&route("172.16.0.0/16", Nexthops::One(dead)))),
    );
    v.take_doubts();
    let same = || port(7, UP | RUNNING | LOWER_UP);
    said(&mut v, same());
    assert!(v.take_doubts().links.contains(&7));
    // once
    said(&mut v, same());
    assert!(!v.take_doubts().links.contains(&7));
}

/// Two flags say that there is no carrier: next-hop objects go with the second, whichever that is.
#[test]
fn next_hop_objects_go_with_the_second_flag() {
    for first in [RUNNING, LOWER_UP] {
        let mut v = two();
        said(&mut v, new(single(1, 7)));
        let events = said(&mut v, port(7, UP | first));
        assert_eq!(objects_gone(&events), [0; 0], "{first:x}");
        let events = said(&mut v, port(7, UP));
        assert_eq!(objects_gone(&events), [1], "{first:x}");
    }
}

/// With a device go its own addresses' routes, and it is asked which objects went.
#[test]
fn a_device_that_is_gone_leaves_nothing() {
    let own = Route {
        table: 255,
        kind: 2,
        scope: 254,
        ..route("10.0.7.1/32", Nexthops::One(next_hop(7, "")))
    };
    let mut v = two();
    said(&mut v, new(of(&own)));
    let events = said(&mut v, port(7, 0));
    assert_eq!(routes_gone(&events), 0, "it is only down");
    assert!(!v.take_doubts().nexthops);
    said(&mut v, port(7, UP | RUNNING | LOWER_UP));
    said(&mut v, new(single(1, 7)));
    v.take_doubts();
    let events = said(
        &mut v,
        gone(nl::Object::Link(link(7, 0, nl::LinkKind::Tun))),
    );
    assert_eq!(routes_gone(&events), 1);
    assert_eq!(objects_gone(&events), [1]);
    assert!(v.take_doubts().nexthops, "the kernel may have kept it");
}

#[test]
fn a_group_goes_with_its_last_member() {
    let mut v = two();
    for object in [single(1, 7), single(2, 8), group(10, &[1, 2], false)] {
        said(&mut v, new(object));
    }
    said(&mut v, new(of(&by("172.16.0.0/16", 10))));
    let events = said(&mut v, gone(single(1, 7)));
    assert_eq!((objects_gone(&events), routes_gone(&events)), (vec![1], 0));
    let events = said(&mut v, gone(single(2, 8)));
    assert_eq!(objects_gone(&events), [10, 2]);
    assert_eq!(routes_gone(&events), 1);
}

/// Nobody says which buckets the rest of a group has: they are read.
#[test]
fn the_buckets_of_a_member_that_went_are_read() {
    let mut v = two();
    let dump = |v: &mut KernelView, members: &[u32]| {
        for (index, nexthop) in (0..).zip(members) {
            let bucket = nl::NexthopBucket {
                group: 10,
                index,
                nexthop: *nexthop,
            };
            v.dumped(nl::Object::NexthopBucket(bucket), &mut |_| {});
        }
    };
    let objects = |members: &[u32]| {
        [
            single(1, 7),
            single(2, 8),
            single(3, 8),
            group(10, members, true),
        ]
    };
    // the buckets of a dump are of before the group's change, or not
    for (members, read) in [([1, 2], false), ([2, 3], true)] {
        v.begin_full(&mut |_| {});
        dump(&mut v, &[1, 1, 2, 2]);
        for object in objects(&members) {
            v.dumped(object, &mut |_| {});
        }
        v.end_full(None, &mut |_| {});
        assert_eq!(v.take_mixed().contains(&10), read, "{members:?}");
    }
    v.begin_buckets(10);
    dump(&mut v, &[2, 2, 3, 3]);
    v.end_buckets(10, &mut |_| {});
    assert!(!v.is_mixed());
    said(&mut v, gone(single(3, 8)));
    assert!(v.is_mixed());
    assert_eq!(v.take_mixed(), BTreeSet::from([10]));
}

/// A look at one device has found a route before its message, which puts it behind another.
#[test]
fn what_is_appended_stands_behind_what_was_before() {
    let mut v = two();
    let mut events = said(&mut v, new(of(&on(3))));
    v.begin_check(Some(7), false);
    v.dumped(of(&on(7)), &mut |e| events.push(e));
    v.end_check(Some(7), false, &mut |e| events.push(e));
    events.extend(said(&mut v, append(&on(8))));
    events.extend(said(&mut v, append(&on(7))));
    assert_eq!(in_order(&events), [3, 8, 7]);
}

/// The first route of a key: whatever was known of that key went in silence.
#[test]
fn a_first_route_is_the_only_one() {
    let mut v = two();
    let mut events = said(&mut v, new(of(&on(3))));
    events.extend(said(&mut v, append(&on(7))));
    assert_eq!(in_order(&events), [3, 7]);
    events.extend(said(&mut v, new(of(&on(8)))));
    assert_eq!(in_order(&events), [8]);
}

/// The last next hop of an IPv6 route that had several is told as an ordinary route, whose weight means nothing.
#[test]
fn the_last_next_hop_of_an_ipv6_route_has_no_weight() {
    let dst = "2001:db8:a::/48";
    let weighted = |ifindex, weight| RouteNexthop {
        weight,
        ..next_hop(ifindex, "fe80::1")
    };
    let mut v = two();
    let both = Nexthops::Many([weighted(7, 1), weighted(8, 3)].into());
    said(&mut v, new(of(&route(dst, both))));
    let one = |ifindex| route(dst, Nexthops::One(next_hop(ifindex, "fe80::1")));
    said(&mut v, gone(of(&one(7))));
    v.take_doubts();
    let events = said(&mut v, gone(of(&one(8))));
    assert_eq!(routes_gone(&events), 1);
    assert!(!v.has_doubts());
    assert_eq!(v.contents(), 0);
}

//! Which ways of a route the chip uses: what the kernel says of neighbours, carriers, addresses and buckets.

use crate::common::*;
use std::net::IpAddr;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

fn routed() -> Rig {
    two_ports("spectrum-sn2700", Policy::Trap)
}

fn ways(r: &Rig, to: &str) -> Vec<[u8; 6]> {
    match r.chip.lookup(to.parse::<IpAddr>().unwrap()) {
        Answer::Ways(w) => w.iter().map(|x| x.1).collect(),
        _ => Vec::new(),
    }
}

/// A neighbour that was being asked for does not answer: a group leaves it out as soon as the kernel says so.
#[test]
fn a_group_leaves_out_who_never_answered() {
    let mut r = routed();
    let state = |state| {
        Object::Neigh(Neigh {
            ifindex: 12,
            addr: "10.2.0.9".parse().unwrap(),
            mac: [0; 6],
            state,
        })
    };
    r.up(state(nud::INCOMPLETE));
    r.up(single(1, 11, "10.1.0.2"));
    r.up(single(2, 12, "10.2.0.9"));
    r.up(object(9, NexthopKind::Group(vec![(1, 1), (2, 1)])));
    r.up(Object::Route(route("30.0.0.0/8", RouteNextHops::Object(9))));
    r.settle();
    let of_it = |r: &Rig| -> Vec<_> {
        let members = r.chip.groups.values().flatten();
        members
            .map(|m| r.chip.nexthops[&m.0].action)
            .collect::<Vec<_>>()
    };
    let (forward, trap) = (TND_ACT_FORWARD, TND_ACT_TRAP);
    assert_eq!(of_it(&r), [forward, trap], "the kernel is asked for it");
    r.up(state(nud::FAILED));
    r.settle();
    assert_eq!(of_it(&r), [forward, forward], "nobody is asked for it");
    assert_eq!(ways(&r, "30.0.0.1"), [mac(101)]);
    r.up(state(nud::INCOMPLETE));
    r.settle();
    assert_eq!(of_it(&r), [forward, trap]);
}

/// A way without a carrier is the kernel's as long as nobody has asked to leave such ways out.
#[test]
fn a_way_without_carrier_is_used_where_nobody_asked() {
    let mut r = routed();
    let of = |scope, ignore_linkdown| {
        let Object::Netconf(n) = forwarding(Family::V4, scope) else {
            unreachable!()
        };
        Object::Netconf(Netconf {
            ignore_linkdown,
            ..n
        })
    };
    let conf = |ignore_linkdown| of(ConfScope::Interface(13), ignore_linkdown);
    r.up(Object::Link(swp(3)));
    r.up(conf(None));
    r.up(addr(13, "10.3.0.1/24"));
    r.up(via("10.3.0.0/24", 13, ""));
    r.up(neigh(13, "10.3.0.2", 103));
    let both = RouteNextHops::Many([hop(11, "10.1.0.2"), hop(13, "10.3.0.2")].into());
    r.up(Object::Route(route("30.0.0.0/8", both)));
    r.up(Object::Link(Link {
        carrier: false,
        ..swp(3)
    }));
    r.settle();
    assert_eq!(ways(&r, "30.0.0.1"), [mac(101), mac(103)]);
    r.up(conf(Some(true)));
    r.settle();
    assert_eq!(ways(&r, "30.0.0.1"), [mac(101)]);
    r.up(conf(Some(false)));
    r.settle();
    assert_eq!(ways(&r, "30.0.0.1"), [mac(101), mac(103)]);
    // or it is asked of all devices
    r.up(of(ConfScope::All, Some(true)));
    r.settle();
    assert_eq!(ways(&r, "30.0.0.1"), [mac(101)]);
}

/// Buckets of two members that are the same way lie side by side: together they may be more than a member of the chip's
/// group can be.
#[test]
fn buckets_of_one_way_are_as_many_members_as_they_need() {
    let mut r = routed();
    r.up(single(1, 11, "10.1.0.2"));
    r.up(single(2, 12, "10.2.0.2"));
    r.up(single(3, 12, "10.2.0.2"));
    r.up(object(
        9,
        NexthopKind::Buckets(vec![(1, 3), (2, 200), (3, 100)]),
    ));
    r.up(Object::Route(route("30.0.0.0/8", RouteNextHops::Object(9))));
    r.settle();
    assert!(r.store.failures(10).is_empty());
    assert_eq!(ways(&r, "30.0.0.1"), [mac(101), mac(102)]);
    let shares = r.chip.groups.values().flatten().map(|m| m.1);
    assert_eq!(shares.collect::<Vec<_>>(), [3, 256, 44]);
}

/// An interface without an address has a router interface as long as routes lead by it.
#[test]
fn a_router_interface_goes_with_the_last_gateway() {
    let mut r = routed();
    r.up(Object::Link(swp(3)));
    r.up(forwarding(Family::V4, ConfScope::Interface(13)));
    r.up(neigh(13, "10.3.0.2", 103));
    let onlink = NextHop {
        onlink: true,
        ..hop(13, "10.3.0.2")
    };
    let there = |r: &Rig| r.chip.rifs.values().any(|x| x.mac == mac(3));
    assert!(!there(&r));
    for prefix in ["40.0.0.0/8", "41.0.0.0/8"] {
        r.up(Object::Route(route(prefix, RouteNextHops::One(onlink))));
    }
    r.settle();
    assert!(there(&r));
    assert_eq!(ways(&r, "40.0.0.1"), [mac(103)]);
    r.del(Key::Route(key("40.0.0.0/8")));
    r.settle();
    assert!(there(&r));
    r.del(Key::Route(key("41.0.0.0/8")));
    r.settle();
    assert!(!there(&r));
}

/// Routes that prefer an address as their source go with it in silence, when no interface has it any more.
#[test]
fn a_preferred_source_that_another_interface_has() {
    let mut r = routed();
    let on = |ifindex| Addr {
        ifindex,
        addr: "10.9.0.1".parse().unwrap(),
        prefix_len: 32,
    };
    r.up(Object::Addr(on(11)));
    r.up(Object::Addr(on(12)));
    r.up(Object::Route(Route {
        prefsrc: Some("10.9.0.1".parse().unwrap()),
        ..route("20.0.0.0/8", RouteNextHops::One(hop(11, "10.1.0.2")))
    }));
    r.settle();
    r.del(Key::Addr(on(12)));
    r.settle();
    assert_eq!(ways(&r, "20.0.0.1"), [mac(101)]);
    r.del(Key::Addr(on(11)));
    r.settle();
    assert_eq!(ways(&r, "20.0.0.1"), [[0; 6]; 0]);
}

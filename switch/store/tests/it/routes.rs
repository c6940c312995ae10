//! Routes from kernel events to the chip: what is programmed, what traps, what the full table says.

use crate::common::*;
use std::collections::BTreeSet;
use std::net::IpAddr;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

fn ways(w: &[(u16, u8)]) -> Answer {
    Answer::Ways(w.iter().map(|&(r, m)| (r, mac(m))).collect())
}

#[test]
fn a_route_via_a_resolved_gateway_forwards() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    assert_eq!(
        r.chip.lookup("20.1.2.3".parse().unwrap()),
        ways(&[(1, 101)])
    );
    assert_eq!(
        r.chip.lookup("10.1.0.2".parse().unwrap()),
        ways(&[(1, 101)])
    );
    assert_eq!(r.chip.lookup("10.1.0.3".parse().unwrap()), Answer::Trap);
    let e = r.store.explain_route("20.0.0.0/8".parse().unwrap());
    assert!(e.in_hardware && e.reason.is_none(), "{e:?}");
    assert_eq!(e.target, "via 10.1.0.2 dev swp1");
    // The gateway's neighbour goes: one update of the next hop, the route stays.
    let writes = r.chip.writes;
    r.del(Key::Neigh(11, "10.1.0.2".parse().unwrap()));
    r.settle();
    assert_eq!(r.chip.lookup("20.1.2.3".parse().unwrap()), Answer::Trap);
    assert_eq!(r.chip.writes - writes, 2, "the next hop and the host entry");
    r.up(neigh(11, "10.1.0.2", 77));
    r.settle();
    assert_eq!(r.chip.lookup("20.1.2.3".parse().unwrap()), ways(&[(1, 77)]));
    r.chip.accounting();
}

#[test]
fn multipath_swaps_members_by_one_update() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    let many = || RouteNextHops::Many(vec![hop(11, "10.1.0.2"), hop(12, "10.2.0.2")].into());
    for i in 0..50 {
        r.up(Object::Route(route(&format!("20.{i}.0.0/16"), many())));
    }
    r.settle();
    assert_eq!(r.chip.groups.len(), 1);
    assert_eq!(
        r.chip.lookup("20.7.0.1".parse().unwrap()),
        ways(&[(1, 101), (2, 102)])
    );
    // A link goes down: one member less. Its own routes vanish, the group is updated once.
    let before = r.store.counters().writes;
    r.up(Object::Link(Link {
        admin_up: false,
        ..swp(2)
    }));
    r.settle();
    assert_eq!(
        r.chip.lookup("20.7.0.1".parse().unwrap()),
        ways(&[(1, 101)])
    );
    assert!(
        r.store.counters().writes - before < 10,
        "{}",
        r.store.counters().writes - before
    );
    assert_eq!(r.chip.lookup("10.2.0.2".parse().unwrap()), Answer::Trap);
    r.chip.accounting();
}

#[test]
fn members_of_a_multipath_route_that_trap_are_named() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    let many = vec![hop(11, "10.1.0.2"), hop(12, "10.2.0.77")];
    r.up(Object::Route(route(
        "20.0.0.0/8",
        RouteNextHops::Many(many.into()),
    )));
    r.settle();
    let explain = |r: &Rig| r.store.explain_route("20.0.0.0/8".parse().unwrap());
    let e = explain(&r);
    assert!(e.in_hardware && e.reason.is_none(), "{e:?}");
    assert_eq!(
        e.details,
        ["flows via 10.2.0.77 dev swp2 go to the CPU: this next hop is not resolved"]
    );
    r.del(Key::Neigh(11, "10.1.0.2".parse().unwrap()));
    r.settle();
    let e = explain(&r);
    assert_eq!(r.chip.lookup("20.0.0.1".parse().unwrap()), Answer::Trap);
    assert_eq!(e.reason, Some(Reason::NextHopsUnresolved(2)));
    assert!(e.details.is_empty(), "{e:?}");
    r.up(neigh(11, "10.1.0.2", 77));
    r.up(neigh(12, "10.2.0.77", 78));
    r.settle();
    let e = explain(&r);
    assert!(e.reason.is_none() && e.details.is_empty(), "{e:?}");
}

/// Router interfaces look nothing up for a family that the kernel does not forward.
#[test]
fn forwarding_that_is_off_is_told() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(via("20.0.0.0/8", 12, "10.2.0.2"));
    r.settle();
    let explain = |r: &Rig| r.store.explain_route("20.0.0.0/8".parse().unwrap());
    let set = |r: &mut Rig, scope, on| {
        let Object::Netconf(n) = forwarding(Family::V4, scope) else {
            unreachable!()
        };
        r.up(Object::Netconf(Netconf {
            forwarding: Some(on),
            ..n
        }));
        r.settle();
    };
    let e = explain(&r);
    assert!(e.unreached.is_none() && e.details.is_empty(), "{e:?}");
    set(&mut r, ConfScope::All, true);
    set(&mut r, ConfScope::Interface(11), false);
    let e = explain(&r);
    assert!(e.unreached.is_none(), "{e:?}");
    assert_eq!(
        e.details,
        [
            "what comes in on swp1 goes to the CPU: the kernel does not forward what comes in there \
            (net.ipv4.conf.*.forwarding is 0)"
        ]
    );
    set(&mut r, ConfScope::All, false);
    set(&mut r, ConfScope::Interface(12), false);
    assert!(r.chip.rifs.values().all(|x| x.flags & TND_RIF_V4 == 0));
    let off = "what comes in goes to the CPU: the kernel does not forward IPv4 (net.ipv4.ip_forward is 0)";
    let e = explain(&r);
    assert_eq!(words(&e.unreached), off);
    assert!(e.details.is_empty(), "{e:?}");
    // the entry itself is as it should be: the audit compares it
    assert!(e.reason.is_none() && e.action == Action::Forward, "{e:?}");
    let mut rows = Vec::new();
    r.store.routes(Family::V4, 0, 100, &mut rows);
    assert!(rows.iter().all(|r| words(&r.unreached) == off), "{rows:?}");
    // reasons of all interfaces are put together once for all rows
    let mut reasons = rows.iter().filter_map(|r| match &r.unreached {
        Some(Reason::Unreached(all)) => Some(all),
        _ => None,
    });
    let first = reasons.next().unwrap();
    assert!(rows.len() > 1 && reasons.all(|all| std::sync::Arc::ptr_eq(all, first)));
    assert_eq!(words(&r.store.neighbours()[0].unreached), off);
    assert!(r.store.routes_forward(Family::V4) && !r.store.routes_forward(Family::V6));
}

#[test]
fn nexthop_objects_and_their_silent_removal() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(single(1, 11, "10.1.0.2"));
    r.up(single(2, 12, "10.2.0.2"));
    r.up(object(9, NexthopKind::Group(vec![(1, 1), (2, 1)])));
    r.up(Object::Route(route("30.0.0.0/8", RouteNextHops::Object(9))));
    r.up(Object::Route(route("31.0.0.0/8", RouteNextHops::Object(2))));
    r.settle();
    assert_eq!(
        r.chip.lookup("30.0.0.1".parse().unwrap()),
        ways(&[(1, 101), (2, 102)])
    );
    assert_eq!(
        r.chip.lookup("31.0.0.1".parse().unwrap()),
        ways(&[(2, 102)])
    );
    r.up(Object::Link(Link {
        admin_up: false,
        ..swp(2)
    }));
    r.settle();
    assert_eq!(
        r.chip.lookup("30.0.0.1".parse().unwrap()),
        ways(&[(1, 101)])
    );
    assert!(!r.store.explain_route("31.0.0.0/8".parse().unwrap()).known);
    r.del(Key::Nexthop(1));
    r.settle();
    assert!(
        !r.store.explain_route("30.0.0.0/8".parse().unwrap()).known,
        "an empty group goes with its routes"
    );
    assert!(r.chip.groups.is_empty());
}

/// The kernel's buckets decide, in their order: a member that goes leaves the others' flows where they are, and what is
/// too mixed for a group of the chip traps and says so.
#[test]
fn resilient_groups_go_by_the_kernels_buckets() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    let group = |runs: &[(u32, u32)], unsupported| {
        Object::Nexthop(NexthopObject {
            id: 9,
            kind: NexthopKind::Buckets(runs.to_vec()),
            unsupported,
        })
    };
    r.up(single(1, 11, "10.1.0.2"));
    r.up(single(2, 12, "10.2.0.2"));
    r.up(single(3, 12, "10.2.0.3"));
    r.up(group(&[], Some(Unsupported::BucketsUnread)));
    r.up(Object::Route(route("30.0.0.0/8", RouteNextHops::Object(9))));
    r.settle();
    let why = |r: &Rig| r.store.explain_route("30.0.0.0/8".parse().unwrap());
    assert_eq!(
        words(&why(&r).reason),
        "the buckets of the resilient group are not read yet"
    );
    let weights = |r: &Rig| -> Vec<u32> {
        let groups = r.chip.groups.values();
        groups.flatten().map(|m| m.1).collect()
    };
    r.up(group(&[(1, 3), (2, 300), (1, 2), (3, 5)], None));
    r.settle();
    assert_eq!(weights(&r), [3, 256, 44, 2, 5]);
    assert_eq!(
        why(&r).target,
        "via 10.1.0.2 dev swp1 5 of 310 buckets, via 10.2.0.2 dev swp2 300 of 310 buckets, \
         via 10.2.0.3 dev swp2 5 of 310 buckets"
    );
    // whoever is left keeps the buckets: those of the first member go to whoever is behind, 3 and 2
    r.del(Key::Nexthop(1));
    r.settle();
    assert_eq!(weights(&r), [256, 47, 7]);
    // more pieces than the chip's group has members
    r.up(single(1, 11, "10.1.0.2"));
    let mixed: Vec<_> = (0..258).map(|i| (1 + i % 2, 1)).collect();
    r.up(group(&mixed, None));
    r.settle();
    assert!(r.chip.groups.is_empty());
    assert_eq!(
        words(&why(&r).reason),
        "the group's buckets lie in 258 pieces, and a group of the chip has 256"
    );
    r.up(group(&mixed[..256], None));
    r.settle();
    assert_eq!(weights(&r), [1; 256]);
}

/// A group that is left with a way without a gateway is a route to the hosts there; beside others such a way traps.
#[test]
fn a_group_that_is_left_with_a_way_without_gateway_is_connected() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(single(1, 11, ""));
    r.up(single(2, 12, "10.2.0.2"));
    r.up(object(9, NexthopKind::Group(vec![(1, 1), (2, 3)])));
    r.up(Object::Route(route(
        "10.1.0.0/25",
        RouteNextHops::Object(9),
    )));
    r.settle();
    let host: IpAddr = "10.1.0.2".parse().unwrap();
    assert_eq!(r.chip.lookup(host), Answer::Trap);
    let swp2 = |up| {
        Object::Link(Link {
            admin_up: up,
            ..swp(2)
        })
    };
    r.up(swp2(false));
    r.settle();
    assert_eq!(r.chip.lookup(host), ways(&[(1, 101)]));
    // one that comes in again is one of several
    r.up(swp2(true));
    r.up(addr(12, "10.2.0.1/24"));
    r.up(neigh(12, "10.2.0.2", 102));
    r.up(single(2, 12, "10.2.0.2"));
    r.up(object(9, NexthopKind::Group(vec![(1, 1), (2, 3)])));
    r.settle();
    assert_eq!(r.chip.lookup(host), Answer::Trap);
}

/// A group of next-hop objects leaves out a member whose neighbour does not answer: its flows go to the next one, and
/// come back when it does. The host's own lists of next hops don't, unless `fib_multipath_use_neigh` says so.
#[test]
fn a_group_leaves_out_a_member_that_does_not_answer() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    let state = |state: u16| {
        let mut n = match neigh(12, "10.2.0.2", 102) {
            Object::Neigh(n) => n,
            _ => unreachable!(),
        };
        n.state = state;
        Object::Neigh(n)
    };
    r.up(single(1, 11, "10.1.0.2"));
    r.up(single(2, 12, "10.2.0.2"));
    r.up(object(9, NexthopKind::Group(vec![(1, 1), (2, 3)])));
    r.up(Object::Route(route("30.0.0.0/8", RouteNextHops::Object(9))));
    let own = RouteNextHops::Many([hop(11, "10.1.0.2"), hop(12, "10.2.0.2")].into());
    r.up(Object::Route(route("31.0.0.0/8", own)));
    r.settle();
    let of_objects: IpAddr = "30.0.0.1".parse().unwrap();
    let both = ways(&[(1, 101), (2, 102)]);
    assert_eq!(r.chip.lookup(of_objects), both);
    r.up(state(nud::FAILED));
    r.settle();
    assert_eq!(r.chip.lookup(of_objects), ways(&[(1, 101)]));
    let weights = |r: &Rig, n: usize| {
        let groups = r.chip.groups.values().filter(|m| m.len() == n);
        groups
            .map(|m| m.iter().map(|x| x.1).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    assert_eq!(weights(&r, 2), [[1, 3], [1, 1]], "shares stay as they are");
    let of_those = |r: &Rig| -> Vec<usize> {
        let next_hops = |m: &Vec<(u32, u32)>| m.iter().map(|x| x.0).collect::<BTreeSet<_>>().len();
        r.chip.groups.values().map(next_hops).collect()
    };
    assert_eq!(
        of_those(&r),
        [1, 2],
        "a route's own list keeps the member, which asks the kernel"
    );
    r.up(state(nud::REACHABLE));
    r.settle();
    assert_eq!(r.chip.lookup(of_objects), both);
    // nobody answers: the kernel is asked
    r.up(state(nud::FAILED));
    r.del(Key::Neigh(11, "10.1.0.2".parse().unwrap()));
    r.up(Object::Neigh(Neigh {
        ifindex: 11,
        addr: "10.1.0.2".parse().unwrap(),
        mac: [0; 6],
        state: nud::FAILED,
    }));
    r.settle();
    assert_eq!(r.chip.lookup(of_objects), Answer::Trap);
    r.up(state(nud::REACHABLE));
    r.settle();
    assert_eq!(r.chip.lookup(of_objects), ways(&[(2, 102)]));
}

#[test]
fn aliases_take_over_by_metric() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    let with = |metric, i, g: &str| {
        let mut x = route("20.0.0.0/8", RouteNextHops::One(hop(i, g)));
        x.key.metric = metric;
        Object::Route(x)
    };
    r.up(with(20, 12, "10.2.0.2"));
    r.up(with(10, 11, "10.1.0.2"));
    r.settle();
    assert_eq!(
        r.chip.lookup("20.0.0.1".parse().unwrap()),
        ways(&[(1, 101)])
    );
    // In silence: the link of the better one goes down.
    r.up(Object::Link(Link {
        admin_up: false,
        ..swp(1)
    }));
    r.settle();
    assert_eq!(
        r.chip.lookup("20.0.0.1".parse().unwrap()),
        ways(&[(2, 102)])
    );
    // A TOS route: only the kernel can tell.
    let mut t = route("20.0.0.0/8", RouteNextHops::One(hop(12, "10.2.0.2")));
    t.key.tos = 16;
    let k = t.key;
    r.up(Object::Route(t));
    r.settle();
    assert_eq!(r.chip.lookup("20.0.0.1".parse().unwrap()), Answer::Trap);
    r.del(Key::Route(k));
    r.settle();
    assert_eq!(
        r.chip.lookup("20.0.0.1".parse().unwrap()),
        ways(&[(2, 102)])
    );
}

#[test]
fn a_host_entry_yields_to_a_more_specific_prefix() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(neigh(11, "10.1.0.130", 50));
    r.settle();
    assert_eq!(
        r.chip.lookup("10.1.0.130".parse().unwrap()),
        ways(&[(1, 50)])
    );
    r.up(via("10.1.0.128/25", 12, "10.2.0.2"));
    r.settle();
    assert_eq!(
        r.chip.lookup("10.1.0.130".parse().unwrap()),
        ways(&[(2, 102)])
    );
    assert!(
        r.store.explain_neighbour("10.1.0.130".parse().unwrap())[0].reason
            == Some(Reason::NotConnected)
    );
    r.del(Key::Route(key("10.1.0.128/25")));
    r.settle();
    assert_eq!(
        r.chip.lookup("10.1.0.130".parse().unwrap()),
        ways(&[(1, 50)])
    );
}

/// The kernel's blackholes have no next hop (IPv4) or lo (IPv6): the chip needs none to drop.
#[test]
fn a_blackhole_is_dropped_by_the_chip_and_said_so() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    for (prefix, nexthops) in [
        ("30.0.0.0/24", RouteNextHops::None),
        ("2001:db8:30::/48", RouteNextHops::One(hop(1, ""))),
    ] {
        let mut x = route(prefix, nexthops);
        x.kind = RouteType::Blackhole;
        r.up(Object::Route(x));
        r.settle();
        let net: ipnet::IpNet = prefix.parse().unwrap();
        assert_eq!(r.chip.lookup(net.addr()), Answer::Drop);
        let e = r.store.explain_route(net);
        assert!(
            e.in_hardware && e.action == Action::Drop && e.reason.is_none(),
            "{e:?}"
        );
        let mut rows = Vec::new();
        r.store.routes(Family::of(&net.addr()), 0, 100, &mut rows);
        let row = rows.iter().find(|r| r.prefix == prefix).unwrap();
        assert_eq!(
            (row.state, row.action, words(&row.reason).as_str()),
            (State::Installed, Action::Drop, ""),
        );
    }
    // The others owe an answer, and trap.
    let mut x = route("31.0.0.0/24", RouteNextHops::None);
    x.kind = RouteType::Unreachable;
    r.up(Object::Route(x));
    r.settle();
    let e = r.store.explain_route("31.0.0.0/24".parse().unwrap());
    assert_eq!(
        (e.action, words(&e.reason).as_str()),
        (Action::Trap, "the kernel owes an ICMP error")
    );
}

/// Seed 002's experiment: 0.0.0.0/0 is installed, 13.0.0.0/24 no longer fits.
fn full(policy: Policy) -> Rig {
    let mut r = two_ports("tiny", policy);
    r.up(via("0.0.0.0/0", 11, "10.1.0.2"));
    r.settle();
    let mut n = 0;
    while r.store.counters().waiting == 0 {
        r.up(via(&format!("40.{n}.0.0/16"), 11, "10.1.0.2"));
        n += 1;
        r.settle();
    }
    r.up(via("13.0.0.0/24", 12, "10.2.0.2"));
    r.settle();
    r
}

#[test]
fn full_traps_or_fails_by_policy() {
    let mut r = full(Policy::Trap);
    assert_eq!(r.chip.lookup("13.0.0.1".parse().unwrap()), Answer::Trap);
    assert_eq!(
        r.chip.lookup("40.0.0.1".parse().unwrap()),
        ways(&[(1, 101)]),
        "what fits still forwards"
    );
    let e = r.store.explain_route("13.0.0.0/24".parse().unwrap());
    assert!(
        words(&e.reason).starts_with("IPv4 LPM full (needs 1, free 0 of "),
        "{e:?}"
    );
    assert!(!e.in_hardware && !e.cover.is_empty());
    // Room again: everything goes back to hardware.
    r.del(Key::Route(key("40.0.0.0/16")));
    r.del(Key::Route(key("40.1.0.0/16")));
    r.del(Key::Route(key("40.2.0.0/16")));
    r.settle();
    assert_eq!(r.store.counters().waiting, 0);
    assert_eq!(
        r.chip.lookup("13.0.0.1".parse().unwrap()),
        ways(&[(2, 102)])
    );
    assert_eq!(
        r.chip.lookup("99.0.0.1".parse().unwrap()),
        ways(&[(1, 101)])
    );

    let mut r = full(Policy::Fail);
    assert_eq!(
        r.chip.lookup("13.0.0.1".parse().unwrap()),
        ways(&[(1, 101)]),
        "the papers' wrong answer"
    );
    assert_eq!(
        r.store.explain_route("13.0.0.0/24".parse().unwrap()).action,
        Action::None
    );
    r.chip.accounting();
}

/// What does not fit shares one trap, and that answers for a part of a larger route as well.
#[test]
fn an_aggregate_trap_is_told_of_all_that_it_answers_for() {
    let mut r = two_ports("tiny", Policy::Trap);
    r.up(via("20.16.0.0/12", 11, "10.1.0.2"));
    for i in 0..24 {
        r.up(via(&format!("60.0.{i}.0/24"), 12, "10.2.0.2"));
        r.settle();
    }
    let lost: Vec<String> = (16..32)
        .step_by(2)
        .map(|i| format!("20.{i}.0.0/24"))
        .collect();
    for p in &lost {
        r.up(via(p, 12, "10.2.0.2"));
        r.settle();
    }
    let mut rows = Vec::new();
    r.store.routes(Family::V4, 0, 1000, &mut rows);
    let merged: Vec<ipnet::Ipv4Net> = rows
        .iter()
        .filter(|r| r.kind.is_none())
        .map(|r| r.prefix.parse().unwrap())
        .collect();
    assert!(!merged.is_empty(), "{rows:?}");
    let large = r.store.explain_route("20.16.0.0/12".parse().unwrap());
    assert!(large.in_hardware && large.reason.is_none(), "{large:?}");
    for net in merged {
        assert!(
            large
                .details
                .iter()
                .any(|d| d.starts_with(&format!("{net} of it goes to the CPU"))),
            "{large:?}"
        );
        let e = r.store.explain_route(net.into());
        assert!(e.in_hardware && e.action == Action::Trap, "{e:?}");
        assert!(words(&e.reason).contains("an aggregate trap"), "{e:?}");
        assert!(e.cover.is_empty(), "{e:?}");
        assert!(e.innocent.iter().any(|p| lost.contains(p)), "{e:?}");
        // an address there that the kernel forwards by the large route
        let addr: IpAddr = (net.broadcast()).into();
        assert_eq!(r.chip.lookup(addr), Answer::Trap);
        let e = r.store.explain_route(addr.into());
        assert_eq!((e.key.as_str(), e.action), ("20.16.0.0/12", Action::Trap));
        assert_eq!(r.store.route_of(0, addr), e.net);
        assert!(words(&e.reason).contains("an aggregate trap"), "{e:?}");
        assert_eq!(e.cover, net.to_string());
    }
    let addr: IpAddr = "20.31.255.255".parse().unwrap();
    if r.chip.lookup(addr) != Answer::Trap {
        assert!(r.store.explain_route(addr.into()).reason.is_none());
    }
}

#[test]
fn a_full_group_table_traps_in_place() {
    let mut r = Rig::new("tiny", Policy::Trap);
    r.begin();
    for n in 1..=2 {
        interface(&mut r, n);
    }
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    // Two groups fit.
    let g = |a: u32, b: u32| {
        RouteNextHops::Many(
            vec![
                NextHop {
                    weight: a,
                    ..hop(11, "10.1.0.2")
                },
                NextHop {
                    weight: b,
                    ..hop(12, "10.2.0.2")
                },
            ]
            .into(),
        )
    };
    r.up(Object::Route(route("20.0.0.0/8", g(1, 1))));
    r.up(Object::Route(route("21.0.0.0/8", g(1, 2))));
    r.up(Object::Route(route("22.0.0.0/8", g(1, 3))));
    r.settle();
    assert_eq!(r.chip.groups.len(), 2);
    assert_eq!(r.chip.lookup("22.0.0.1".parse().unwrap()), Answer::Trap);
    let e = r.store.explain_route("22.0.0.0/8".parse().unwrap());
    assert!(
        e.in_hardware && e.action == Action::Trap && words(&e.reason).contains("full"),
        "{e:?}"
    );
    r.del(Key::Route(key("20.0.0.0/8")));
    r.settle();
    assert_eq!(
        r.chip.lookup("22.0.0.1".parse().unwrap()),
        ways(&[(1, 101), (2, 102)])
    );
}

#[test]
fn resync_and_warm_attach_rewrite_nothing_that_was_right() {
    let mut r = full(Policy::Trap);
    let state = r.chip.routes.clone();
    // A resync where the dump says the same.
    let writes = (r.chip.writes, r.store.counters().commands);
    r.begin();
    interface(&mut r, 1);
    interface(&mut r, 2);
    r.up(via("0.0.0.0/0", 11, "10.1.0.2"));
    for n in 0..64 {
        if state
            .iter()
            .any(|(k, x)| k.1[0] == 40 && k.1[1] == n && x.action == TND_ACT_FORWARD)
        {
            r.up(via(&format!("40.{n}.0.0/16"), 11, "10.1.0.2"));
        }
    }
    r.settle_unsynced();
    r.end();
    r.settle();
    assert_eq!(
        r.store.counters().swept,
        2,
        "the two that did not fit were not in the dump"
    );
    assert_eq!(
        r.chip.writes,
        writes.0 + 3,
        "the aggregate traps of the two go and the next hop of one, nothing else is touched"
    );
    // Warm attach of the same store: equal objects are created again, nothing changes.
    let (state, hosts) = (r.chip.routes.clone(), r.chip.hosts.clone());
    let writes = r.chip.writes;
    r.chip.fw.attach(true);
    r.store.attach(Attach::Warm, 0);
    r.settle();
    assert_eq!(r.chip.routes, state);
    assert_eq!(r.chip.hosts, hosts);
    assert_eq!(
        r.chip.writes,
        writes,
        "{:?}",
        &r.chip.log[r.chip.log.len() - 40..]
    );
    r.chip.accounting();
}

/// A network without an address of the switch's own: a route to the interface itself leads to its hosts.
#[test]
fn a_route_to_an_interface_without_an_address() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(Object::Link(swp(3)));
    r.up(forwarding(Family::V4, ConfScope::Interface(13)));
    r.up(neigh(13, "10.9.0.5", 55));
    r.settle();
    let (rifs, host) = (r.chip.rifs.len(), "10.9.0.5".parse().unwrap());
    r.up(via("10.9.0.0/24", 13, ""));
    r.settle();
    assert!(by(55, &r.chip.lookup(host)));
    assert_eq!(r.chip.rifs.len(), rifs + 1);
    r.del(Key::Route(key("10.9.0.0/24")));
    r.settle();
    assert_eq!(r.chip.lookup(host), Answer::Trap);
    assert_eq!(r.chip.rifs.len(), rifs);
}

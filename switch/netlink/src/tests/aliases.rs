//! Routes of one key: messages that name another than the first of them, and routes that differ in little.

use tandem_linux::netlink::{self as nl, NewMode, Nexthops, RouteNexthop};
use tandem_store::model::{Event, Key, Object, RouteNextHops};

use super::super::fib::{Change, FibCopy, Op};
use super::super::view::KernelView;
use super::cases::lab;
use super::{Lab, told};
use tandem_core::source::Source;

/// Plays groups of commands; after each the view must be the kernel's, order included.
fn play(what: &str, steps: &[&str]) -> Option<Lab> {
    let mut lab = lab(what, "")?;
    let mut history = String::new();
    for step in steps {
        for line in step.lines() {
            match line.strip_prefix("sysctl ") {
                Some(set) => assert!(lab.exec(&["sysctl", "-qw", set])),
                None => lab.ip(&format!("{line}\n")),
            }
        }
        history += step;
        lab.check_routes(&history);
    }
    Some(lab)
}

/// The source says what it does without a dump of everything.
fn without_resync(lab: Option<Lab>) {
    if let Some(lab) = lab {
        let status = lab.source.status();
        assert_eq!((status.overruns, status.resyncs), (0, 1));
    }
}

const OBJECTS: &str = "nexthop add id 3 blackhole
nexthop add id 4 via 10.0.1.2 dev v1
nexthop add id 6 blackhole
route add 172.16.0.0/16 nhid 6
route append 172.16.0.0/16 nhid 3
route append 172.16.0.0/16 nhid 4
route prepend 172.16.0.0/16 metric 5 nhid 4
route append 172.16.0.0/16 metric 5 nhid 3
";

#[test]
fn a_replaced_next_hop_object_moves_no_route() {
    let steps = [
        OBJECTS,
        "nexthop replace id 3 via 10.0.2.2 dev v2\n",
        "nexthop replace id 3 via 10.0.2.3 dev v2\n",
        "nexthop replace id 4 blackhole\n",
        "nexthop add id 10 group 3\nroute append 172.16.0.0/16 nhid 10\nnexthop replace id 3 blackhole\n",
        "nexthop replace id 3 via 10.0.2.2 dev v2\nnexthop replace id 10 group 3,3\n",
        "route replace 172.16.0.0/16 via 10.0.1.9\n",
        "route del 172.16.0.0/16 nhid 3\nnexthop del id 4\n",
    ];
    without_resync(play("nhmoves", &steps));
}

/// The same while the kernel does not tell the routes of a replaced object.
#[test]
fn a_replaced_next_hop_object_without_compat_mode() {
    let steps = [
        "sysctl net.ipv4.nexthop_compat_mode=0\n",
        OBJECTS,
        "nexthop replace id 3 via 10.0.2.2 dev v2\nnexthop replace id 6 via 10.0.1.2 dev v1\n",
        "nexthop replace id 4 blackhole\nroute del 172.16.0.0/16 nhid 4\n",
        "route replace 172.16.0.0/16 nhid 4\n",
    ];
    without_resync(play("nhquiet", &steps));
}

#[test]
fn a_replaced_next_hop_object_moves_no_ipv6_route() {
    let steps = [
        "nexthop add id 3 via fe80::9 dev v1
nexthop add id 4 via fe80::2 dev v1
nexthop add id 6 via fe80::3 dev v2
route add 2001:db8:a::/48 nhid 6
route append 2001:db8:a::/48 nhid 3
route append 2001:db8:a::/48 nhid 4
route append 2001:db8:a::/48 via fe80::7 dev v2
",
        "-6 nexthop replace id 3 blackhole\n",
        "nexthop replace id 3 via fe80::5 dev v2\n",
        "nexthop replace id 4 via fe80::6 dev v2\nroute append 2001:db8:a::/48 via fe80::8 dev v2\n",
        "route del 2001:db8:a::/48 nhid 6\n",
        "-6 nexthop replace id 4 blackhole\nroute del 2001:db8:a::/48 nhid 3\n",
    ];
    without_resync(play("nhmoves6", &steps));
}

#[test]
fn routes_that_differ_in_a_metric_alone() {
    let steps = [
        "route add 172.16.0.0/16 via 10.0.1.2 advmss 1400
route append 172.16.0.0/16 via 10.0.1.2 advmss 1300
route append 172.16.0.0/16 via 10.0.2.2
route append 172.16.0.0/16 via 10.0.1.2 realm 5
route append 172.16.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.2.2
route append 172.16.0.0/16 nexthop via 10.0.2.2 nexthop via 10.0.1.2
",
        "route del 172.16.0.0/16 via 10.0.1.2 advmss 1400\n",
        "route del 172.16.0.0/16 via 10.0.1.2 realm 5\n",
        "route replace 172.16.0.0/16 via 10.0.1.2\n",
        "route del 172.16.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.2.2\n",
    ];
    without_resync(play("metrics", &steps));
}

/// `replace` puts an IPv6 route into the first one's place though it is there already: then it is there twice.
#[test]
fn an_ipv6_route_that_is_there_twice() {
    let twice = "route add 2001:db8:a::/48 dev v1
route append 2001:db8:a::/48 dev v2
route append 2001:db8:a::/48 dev lo
route replace 2001:db8:a::/48 dev v2
";
    let steps = [
        twice,
        "route del 2001:db8:a::/48 dev v2\n",
        "route del 2001:db8:a::/48 dev v2\n",
        "route flush 2001:db8:a::/48\n",
        twice,
        "route replace 2001:db8:a::/48 dev v1\n",
        "route del 2001:db8:a::/48 dev v1\n",
    ];
    play("twice", &steps);
}

/// Who adds a route with `proto ra` joins others; what the kernel has learned itself does not, and no message tells them
/// apart.
#[test]
fn routes_with_proto_ra_join_when_they_do() {
    let steps = [
        "route add 2001:db8:a::/48 via fe80::1 dev v1 proto ra\n",
        "route append 2001:db8:a::/48 via fe80::2 dev v1 proto ra\n",
        "route append 2001:db8:a::/48 via fe80::3 dev v2\n",
        "route del 2001:db8:a::/48 via fe80::1 dev v1\n",
        "route del 2001:db8:a::/48 via fe80::3 dev v2\n",
        "route append 2001:db8:a::/48 dev v2\n",
    ];
    without_resync(play("ra", &steps));
}

/// A driver has set a route's flags, and the kernel tells of it (`fib_notify_on_flag_change`): nothing moves.
#[test]
fn a_message_about_flags_moves_no_route() {
    for family in ["172.16.0.0/16", "2001:db8:a::/48"] {
        let route = |ifindex| {
            nl::Object::Route(told::route(
                family,
                Nexthops::One(told::next_hop(ifindex, "")),
            ))
        };
        let mut view = KernelView::new([(1, 1), (2, 2), (3, 3)].into());
        let mut said = Vec::new();
        for ifindex in 1..=3 {
            let new = nl::Event::New(route(ifindex), NewMode::Append);
            view.event(new, &mut |e| said.push(e));
        }
        said.clear();
        for ifindex in [2, 1, 3] {
            let told = nl::Event::New(route(ifindex), NewMode::Told);
            view.event(told, &mut |e| said.push(e));
        }
        assert_eq!(said, []);
        view.take_doubts();
        // of one that is not there: a look at the kernel
        view.event(nl::Event::New(route(4), NewMode::Told), &mut |e| {
            said.push(e)
        });
        assert_eq!(said, []);
        assert!(view.has_doubts());
        assert_eq!(view.contents(), 3, "nothing is kept of it");
    }
}

/// The request that replaced an object is not the one that puts its route in another's place.
#[test]
fn a_route_put_in_anothers_place_by_its_object() {
    let steps = [
        "nexthop add id 3 via fe80::9 dev v1
nexthop add id 6 via fe80::3 dev v2
route add 2001:db8:a::/48 nhid 6
route append 2001:db8:a::/48 nhid 3
nexthop replace id 3 via fe80::8 dev v1
route replace 2001:db8:a::/48 nhid 3
",
        "route del 2001:db8:a::/48 nhid 3\n",
    ];
    play("nhplace", &steps);
}

/// Two routes that nothing tells apart: what a deletion took only a look says, until there is one again.
#[test]
fn what_is_no_twin_any_more_needs_no_look() {
    let route = told::route(
        "172.16.0.0/16",
        Nexthops::One(told::next_hop(1, "10.0.1.2")),
    );
    let object = || nl::Object::Route(route.clone());
    let mut v = KernelView::default();
    let mut said = 0;
    let mut look = |v: &mut KernelView, there: usize| {
        v.begin_check(Some(1), false);
        for _ in 0..there {
            v.dumped(object(), &mut |_| said += 1);
        }
        v.end_check(Some(1), false, &mut |_| said += 1);
    };
    v.event(nl::Event::New(object(), NewMode::Plain), &mut |_| ());
    look(&mut v, 2);
    for looks in [true, false] {
        let mut removed = 0;
        v.event(nl::Event::Del(object()), &mut |_| removed += 1);
        assert_eq!(v.take_doubts().links.contains(&1), looks);
        assert_eq!(removed, usize::from(!looks));
        if looks {
            // a look at the other family says nothing of it
            v.begin_check(Some(1), true);
            v.end_check(Some(1), true, &mut |_| ());
            v.event(nl::Event::Del(object()), &mut |_| ());
            assert!(v.take_doubts().links.contains(&1));
            look(&mut v, 1);
        }
    }
}

/// IPv6 tells the next hops of one route in changing order: whoever hears it in another one has the same route. To IPv4 it is
/// another route.
#[test]
fn the_next_hops_of_an_ipv6_route_stand_in_one_order() {
    let heard = |dst: &str, next_hops: [u32; 2]| {
        let next_hops = next_hops.map(|ifindex| told::next_hop(ifindex, "fe80::1"));
        let route = told::route(dst, Nexthops::Many(next_hops.into()));
        let mut said = Vec::new();
        let new = nl::Event::New(nl::Object::Route(route), NewMode::Plain);
        KernelView::default().event(new, &mut |e| said.push(e));
        assert_eq!(said.len(), 1);
        said
    };
    let in_one = |dst| heard(dst, [1, 2]) == heard(dst, [2, 1]);
    assert!(in_one("2001:db8:a::/48"));
    assert!(!in_one("172.16.0.0/16"));
}

/// A look at a device finds a route that has replaced another one before the message that says so: the other goes.
#[test]
fn a_replacement_that_a_look_found_first_is_one_all_the_same() {
    let route = |ifindex| {
        let next_hop = Nexthops::One(told::next_hop(ifindex, "10.0.1.2"));
        nl::Object::Route(told::route("172.16.0.0/16", next_hop))
    };
    let mut v = KernelView::default();
    let mut there = std::collections::BTreeMap::new();
    let mut said = Vec::new();
    let new = nl::Event::New(route(1), NewMode::Plain);
    v.event(new, &mut |e| said.push(e));
    v.begin_check(Some(2), false);
    v.dumped(route(2), &mut |e| said.push(e));
    v.end_check(Some(2), false, &mut |e| said.push(e));
    let new = nl::Event::New(route(2), NewMode::Replace(7));
    v.event(new, &mut |e| said.push(e));
    for event in said {
        match event {
            Event::Upsert(_, Object::Route(r)) => {
                there.insert(r.key.position, r.nexthops);
            }
            Event::Remove(_, Key::Route(key)) => {
                there.remove(&key.position);
            }
            _ => {}
        }
    }
    let left: Vec<u32> = there
        .values()
        .map(|n| match n {
            RouteNextHops::One(hop) => hop.ifindex,
            _ => 0,
        })
        .collect();
    assert_eq!(left, [2]);
}

/// A next hop is dead as long as its device has no IPv4 address, though the link is up: also where another route of the key makes
/// this one stand elsewhere.
#[test]
fn a_route_that_is_moved_keeps_its_dead_next_hops() {
    let route = |kind, dead: u8, next_hops: &[u32]| {
        let next_hop = |&ifindex: &u32| RouteNexthop {
            flags: if ifindex == 1 { dead } else { 0 },
            ..told::next_hop(ifindex, &format!("10.{ifindex}.0.2"))
        };
        let nexthops = match next_hops {
            [] => Nexthops::None,
            next_hops => Nexthops::Many(next_hops.iter().map(next_hop).collect()),
        };
        nl::Route {
            kind,
            ..told::route("23.0.0.0/31", nexthops)
        }
    };
    for (dead, next_hops) in [(1, &[1u32, 2][..]), (1, &[2, 1, 3]), (0, &[1, 2])] {
        let mut fib = FibCopy::default();
        let mut said = Vec::new();
        let mut take = |r: &nl::Route, op| {
            said.clear();
            fib.apply(r, op, &|_| 0, &mut |c| {
                if let Change::Upsert(r, position) = c {
                    said.push((position, r.nexthops.clone()));
                }
            })
        };
        assert!(take(&route(1, 0, next_hops), Op::New(NewMode::Plain)));
        assert!(take(
            &route(1, dead, next_hops),
            Op::Dumped { again: false }
        ));
        assert!(take(&route(8, 0, &[]), Op::New(NewMode::Prepend)));
        let moved = said.iter().find(|(position, _)| *position == 1);
        let next_hops: Vec<(u32, u8)> = moved
            .unwrap()
            .1
            .as_slice()
            .iter()
            .map(|h| (h.ifindex, h.flags))
            .collect();
        let expected = |&(i, flags): &(u32, u8)| flags == if i == 1 { dead } else { 0 };
        assert!(
            next_hops.len() > 1 && next_hops.iter().all(expected),
            "{next_hops:?}"
        );
    }
}

//! Several IPv6 routes of one prefix: which of them the kernel takes (net/ipv6/route.c `find_rr_leaf`).

use crate::common::*;
use tandem_store::model::*;
use tandem_store::*;

const TO: &str = "2001:db8:9::1";
const PREFIX: &str = "2001:db8:9::/64";

/// Three ports with a station each: fd0N::2.
fn rig() -> Rig {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.begin();
    for n in 1..=3u16 {
        let i = 10 + u32::from(n);
        r.up(Object::Link(swp(n)));
        r.up(forwarding(Family::V6, ConfScope::Interface(i)));
        r.up(addr(i, &format!("fd0{n}::1/64")));
        r.up(via(&format!("fd0{n}::/64"), i, ""));
        r.up(neigh(i, &format!("fd0{n}::2"), 100 + n as u8));
    }
    r.up(forwarding(Family::V6, ConfScope::All));
    r.up(via("2001:db8::/32", 13, "fd03::2"));
    for (id, kind) in [
        (1, NexthopKind::Single(hop(11, "fd01::2"))),
        (2, NexthopKind::Single(hop(12, "fd02::2"))),
        (9, NexthopKind::Blackhole),
    ] {
        r.up(Object::Nexthop(NexthopObject {
            id,
            kind,
            unsupported: None,
        }));
    }
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

fn by(n: u32) -> RouteNextHops {
    RouteNextHops::One(hop(10 + n, &format!("fd0{n}::2")))
}

fn way(n: u8) -> Answer {
    Answer::Ways([(u16::from(n), mac(100 + n))].into())
}

fn nth(position: u16, metric: u32, nexthops: RouteNextHops) -> Route {
    let mut r = route(PREFIX, nexthops);
    (r.key.position, r.key.metric) = (position, metric);
    r
}

fn answer(routes: &[Route]) -> Answer {
    let mut r = rig();
    for x in routes {
        r.up(Object::Route(x.clone()));
    }
    r.settle();
    let there = r.chip.lookup(TO.parse().unwrap());
    // and taken away again
    for x in routes {
        r.del(Key::Route(x.key));
    }
    r.settle();
    assert_eq!(r.chip.lookup(TO.parse().unwrap()), way(3));
    there
}

fn dead(nexthops: RouteNextHops) -> RouteNextHops {
    match nexthops {
        RouteNextHops::One(h) => RouteNextHops::One(NextHop { dead: true, ..h }),
        other => other,
    }
}

#[test]
fn an_object_that_is_a_blackhole_takes_all_wherever_it_stands() {
    let object = RouteNextHops::Object(9);
    assert_eq!(
        answer(&[nth(0, 1024, by(1)), nth(1, 1024, object.clone())]),
        Answer::Drop
    );
    let many = RouteNextHops::Many([hop(11, "fd01::2"), hop(12, "fd02::2")].into());
    assert_eq!(
        answer(&[nth(0, 1024, many), nth(1, 1024, object.clone())]),
        Answer::Drop
    );
    // but not before a better metric, unless nothing of that is alive
    assert_eq!(
        answer(&[nth(0, 1, by(1)), nth(0, 2, object.clone())]),
        way(1)
    );
    assert_eq!(
        answer(&[nth(0, 1, dead(by(1))), nth(0, 2, by(2)), nth(0, 3, object)]),
        Answer::Drop
    );
}

/// A route by the device that a packet came in by goes before others of its metric: the chip does not know.
#[test]
fn routes_by_several_devices_go_to_the_cpu() {
    for first in [RouteNextHops::Object(1), by(1)] {
        for second in [RouteNextHops::Object(2), RouteNextHops::One(hop(12, ""))] {
            let both = [nth(0, 1024, first.clone()), nth(1, 1024, second)];
            assert_eq!(answer(&both), Answer::Trap, "{both:?}");
        }
    }
    // all that is left, whatever its metric, where nothing of the best one is alive
    assert_eq!(
        answer(&[nth(0, 1, dead(by(3))), nth(0, 2, by(1)), nth(0, 3, by(2))]),
        Answer::Trap
    );
    assert_eq!(answer(&[nth(0, 1, by(1)), nth(0, 3, by(2))]), way(1));
}

#[test]
fn others_that_nobody_comes_in_by_change_nothing() {
    let reject = |position, metric| Route {
        kind: RouteType::Unreachable,
        ..nth(position, metric, RouteNextHops::None)
    };
    assert_eq!(answer(&[nth(0, 1024, by(1)), reject(1, 1024)]), way(1));
    assert_eq!(answer(&[nth(0, 1024, by(1)), reject(0, u32::MAX)]), way(1));
    assert_eq!(
        answer(&[nth(0, 1024, dead(by(1))), nth(1, 1024, by(2))]),
        way(2)
    );
    // the same way twice
    assert_eq!(
        answer(&[nth(0, 1024, by(1)), nth(1, 1024, RouteNextHops::Object(1))]),
        way(1)
    );
}

/// Two links with one prefix: a host's entry answers for packets that the kernel looks for on the other link.
#[test]
fn hosts_of_a_prefix_of_two_links_have_no_entries() {
    let mut r = rig();
    let mut second = route("fd01::/64", RouteNextHops::One(hop(12, "")));
    second.key.position = 1;
    let to = "fd01::2".parse().unwrap();
    assert_eq!(r.chip.lookup(to), way(1));
    r.up(Object::Route(second.clone()));
    r.settle();
    assert_eq!(r.chip.lookup(to), Answer::Trap);
    assert!(r.chip.hosts.values().all(|h| h.rif != 1));
    r.del(Key::Route(second.key));
    r.settle();
    assert_eq!(r.chip.lookup(to), way(1));
}

/// A route for some sources answers them before all others do.
#[test]
fn a_route_for_some_sources_sends_all_to_the_cpu() {
    let from = Route {
        unsupported: Some(Unsupported::SourcePrefix),
        ..nth(0, 2048, by(2))
    };
    assert_eq!(answer(&[nth(0, 1024, by(1)), from]), Answer::Trap);
}

/// A route of which nothing is known but that it is there may be the one that the kernel takes.
#[test]
fn a_route_that_the_kernel_hides_sends_all_to_the_cpu() {
    let hidden = Route {
        unsupported: Some(Unsupported::Hidden),
        ..nth(1, 1024, RouteNextHops::None)
    };
    let several = RouteNextHops::Many([hop(11, "fd01::2"), hop(12, "fd02::2")].into());
    let routes = [nth(0, 1024, several), hidden.clone()];
    assert_eq!(answer(&routes), Answer::Trap);
    assert_eq!(answer(std::slice::from_ref(&hidden)), Answer::Trap);
    // one of a better metric decides
    let [several, _] = routes.clone();
    let better = nth(0, 10, by(1));
    assert_eq!(answer(&[better, several, hidden]), way(1));
    let mut r = rig();
    for x in routes {
        r.up(Object::Route(x));
    }
    r.settle();
    let said = r.store.explain_route(PREFIX.parse().unwrap());
    assert!(words(&said.reason).contains("does not show"), "{said:?}");
}

//! IPv6 routes that no dump shows: what stands between two next hops of a multipath route (net/ipv6/ip6_fib.c `fib6_dump_node`).
//!
//! ```text
//!   lines of net/ipv6_route  -  next hops and routes of the dump  =  hidden ones      by destination and metric, of all tables
//! ```
//!
//! The kernel says it by itself: what the switch believes to be hidden excuses nothing.

use ipnet::IpNet;
use tandem_linux::netlink as nl;
use tandem_store::model::{Route, RouteNextHops, Unsupported};

use crate::kernel::Rest;

/// So many routes of a destination and metric are in no dump.
fn hidden(rest: &Rest, dst: &IpNet, metric: u32) -> usize {
    let dumped = rest
        .routes()
        .filter(|r| (r.dst, r.metric) == (*dst, metric));
    let dumped: usize = dumped.map(lines).sum();
    // of a destination with one line alone, and of the kernel's own, the recording has none
    rest.lines6(dst, metric).saturating_sub(dumped)
}

/// Lines that a route of a dump has.
fn lines(r: &nl::Route) -> usize {
    match r.nh_id {
        0 => r.nexthops.as_slice().len().max(1),
        _ => 1,
    }
}

/// Others stand between the next hops of this route, or of one of another table with its destination and metric.
#[must_use]
pub fn hides(rest: &Rest, r: &nl::Route) -> bool {
    let several = matches!(r.nexthops, nl::Nexthops::Many(_)) && r.nh_id == 0;
    several && hidden(rest, &r.dst, r.metric) > 0
}

/// Whether the switch has as many hidden routes as the kernel. `several`: its routes of keys that have several
/// (`Store::several6`). `twins`: routes for which one of those stands as well, as nothing tells them apart (`Stepped::twins6`).
pub fn check(
    rest: &Rest,
    several: &[Vec<Route>],
    twins: &[(u32, IpNet, u32)],
) -> Result<(), String> {
    for key in several.iter().filter_map(|list| Some(list.first()?.key)) {
        let same = |r: &Route| (r.key.prefix, r.key.metric) == (key.prefix, key.metric);
        let lists = several.iter().filter(|list| list.first().is_some_and(same));
        let (mut has, mut unknown) = (0, false);
        for list in lists {
            let table = list.first().map(|r| r.key.table);
            let dumped = rest.routes().filter(|r| {
                Some(r.table) == table && (r.dst, r.metric) == (key.prefix, key.metric)
            });
            let twin =
                |t: &&(u32, IpNet, u32)| (Some(t.0), t.1, t.2) == (table, key.prefix, key.metric);
            let twins = twins.iter().filter(twin).count();
            let told: usize = list.iter().map(told).sum();
            has += (told + twins).saturating_sub(dumped.map(lines).sum());
            unknown |= list.iter().any(is_unknown);
        }
        let is = hidden(rest, &key.prefix, key.metric);
        let fits = match unknown {
            true => has < is,
            false => has == is,
        };
        if !fits {
            let metric = key.metric;
            let more = if unknown {
                " and some that it does not know"
            } else {
                ""
            };
            return Err(format!(
                "of {} metric {metric} the switch has {has} routes that no dump shows{more}, the kernel {is}",
                key.prefix
            ));
        }
    }
    Ok(())
}

/// A route of which no message told.
fn is_unknown(r: &Route) -> bool {
    r.unsupported == Some(Unsupported::Hidden)
}

/// Lines that a route of the switch's should have; none is known of one that no message told of.
fn told(r: &Route) -> usize {
    match &r.nexthops {
        _ if is_unknown(r) => 0,
        RouteNextHops::Many(hops) => hops.len(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::Arc;
    use tandem_store::model::{NextHop, RouteKey, RouteType};

    const DST: &str = "fd22::/64";

    fn next_hop(ifindex: u32) -> nl::RouteNexthop {
        nl::RouteNexthop {
            ifindex,
            gateway: "fd01::2".parse().ok(),
            weight: 1,
            flags: 0,
            encap: false,
        }
    }

    fn dumped(nexthops: nl::Nexthops, nh_id: u32) -> nl::Route {
        nl::Route {
            table: 254,
            dst: DST.parse().unwrap(),
            tos: 0,
            metric: 1024,
            kind: 1,
            scope: 0,
            protocol: 3,
            flags: 0,
            nh_id,
            nexthops,
            src: None,
            prefsrc: None,
            mtu: 0,
            other: 0,
        }
    }

    fn many(nh_id: u32) -> nl::Route {
        dumped(nl::Nexthops::Many([next_hop(1), next_hop(2)].into()), nh_id)
    }

    /// The kernel dumps these routes, and its file has so many lines of their place, and one of another metric.
    fn rest(routes: &[nl::Route], lines: usize) -> Rest {
        let none = "0".repeat(32);
        let line = |metric: u32| {
            format!(
                "fd22{} 40 {none} 00 {none} {metric:08x} 0 0 1 swp1\n",
                "0".repeat(28)
            )
        };
        let text = line(1024).repeat(lines) + &line(1);
        let files = HashMap::from([(tandem_netlink::ROUTES6.to_owned(), text)]);
        let objects = routes.iter().cloned().map(nl::Object::Route);
        Rest::new(objects, Arc::new(files), &[])
    }

    #[test]
    fn more_lines_than_the_dump_makes_are_hidden_routes() {
        let one = dumped(nl::Nexthops::One(next_hop(3)), 0);
        assert!(!hides(&rest(&[many(0)], 2), &many(0)));
        assert!(hides(&rest(&[many(0)], 3), &many(0)));
        assert!(!hides(&rest(&[many(0), one.clone()], 3), &many(0)));
        assert!(hides(&rest(&[many(0), one.clone()], 4), &many(0)));
        // a recording that has no lines of them
        assert!(!hides(&rest(&[many(0), one.clone()], 0), &many(0)));
        // a group has one line, and hides nothing, as little as a single next hop
        assert!(!hides(&rest(&[many(7)], 2), &many(7)));
        assert!(!hides(&rest(std::slice::from_ref(&one), 2), &one));
    }

    fn has(table: u32, hops: u32, unsupported: Option<Unsupported>) -> Route {
        let hop = |ifindex| NextHop {
            ifindex,
            gateway: "fd01::2".parse().ok(),
            weight: 1,
            dead: false,
            linkdown: false,
            onlink: false,
        };
        Route {
            key: RouteKey {
                table,
                prefix: DST.parse().unwrap(),
                tos: 0,
                metric: 1024,
                position: 0,
            },
            kind: RouteType::Unicast,
            scope: 0,
            protocol: 3,
            prefsrc: None,
            nexthops: RouteNextHops::Many((1..=hops).map(hop).collect()),
            unsupported,
        }
    }

    #[test]
    fn the_switch_has_what_the_kernel_hides_and_no_more() {
        let well =
            |list: &[Route], lines| check(&rest(&[many(0)], lines), &[list.to_vec()], &[]).is_ok();
        let list = [has(254, 2, None), has(254, 1, None)];
        assert!(well(&list, 3));
        assert!(!well(&list, 2), "it forgot to take one out");
        assert!(!well(&list, 4), "there is one more");
        // of which no message told: at least one
        let list = [has(254, 2, None), has(254, 0, Some(Unsupported::Hidden))];
        assert!(well(&list, 3) && well(&list, 4));
        assert!(!well(&list, 2));
        // of two tables, each of them may hide it
        let other = [has(10, 1, None)].to_vec();
        let both = |lines| {
            let table10 = nl::Route {
                table: 10,
                ..dumped(nl::Nexthops::One(next_hop(3)), 0)
            };
            let lists = [
                [has(254, 2, None), has(254, 1, None)].to_vec(),
                other.clone(),
            ];
            check(&rest(&[many(0), table10], lines), &lists, &[]).is_ok()
        };
        assert!(both(4) && !both(3) && !both(5));
    }

    /// Two equal routes are one to the switch and two to the kernel, in its dump or hidden from it.
    #[test]
    fn equal_routes_are_counted_each() {
        let twin = (254, DST.parse().unwrap(), 1024);
        let list = [[has(254, 1, None), has(254, 2, None)].to_vec()];
        let one = || dumped(nl::Nexthops::One(next_hop(3)), 0);
        let shown = rest(&[one(), one(), many(0)], 4);
        assert_eq!(check(&shown, &list, &[twin]), Ok(()));
        let hidden = rest(&[many(0)], 4);
        assert_eq!(check(&hidden, &list, &[twin]), Ok(()));
        for lines in [3, 5] {
            assert!(check(&rest(&[many(0)], lines), &list, &[twin]).is_err());
        }
        assert!(check(&hidden, &list, &[]).is_err());
        let elsewhere = (10, twin.1, twin.2);
        assert!(check(&hidden, &list, &[elsewhere]).is_err());
    }
}

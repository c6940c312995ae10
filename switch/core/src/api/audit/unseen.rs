//! Routes that no dump shows.
//!
//! ```text
//!   the kernel      next hop 1, X, next hop 2, Y      IPv6 routes of one key, in their order
//!   its dump        next hop 1 + next hop 2, Y        net/ipv6/ip6_fib.c `fib6_dump_node` goes on behind the last next hop
//!   switchd         next hop 1 + next hop 2, X, Y     as messages told
//! ```

use std::collections::HashMap;

use tandem_store::model::{Object, Route, RouteKey, RouteNextHops};

/// Where the running store's routes of a key are the dump's, and others behind one with several ways, the dump gets them
/// as the store has them. How many.
pub(super) fn add(objects: &mut Vec<Object>, running: &[Vec<Route>]) -> usize {
    let mut dumped: HashMap<RouteKey, Vec<&Route>> = HashMap::new();
    let keys = running.iter().filter_map(|list| list.first());
    dumped.extend(keys.map(|r| (bare(&r.key), Vec::new())));
    if dumped.is_empty() {
        return 0;
    }
    for object in objects.iter() {
        if let Object::Route(r) = object
            && let Some(list) = dumped.get_mut(&bare(&r.key))
        {
            list.push(r);
        }
    }
    let mut whole: HashMap<RouteKey, &[Route]> = HashMap::new();
    let mut unseen = 0;
    for list in running {
        let Some(key) = list.first().map(|r| bare(&r.key)) else {
            continue;
        };
        let Some(seen) = dumped.get_mut(&key) else {
            continue;
        };
        seen.sort_unstable_by_key(|r| r.key.position);
        if let Some(n @ 1..) = beyond(seen, list) {
            unseen += n;
            whole.insert(key, list);
        }
    }
    if unseen > 0 {
        objects.retain(|o| match o {
            Object::Route(r) => !whole.contains_key(&bare(&r.key)),
            _ => true,
        });
        let routes = whole.into_values().flatten();
        objects.extend(routes.map(|r| Object::Route(r.clone())));
    }
    unseen
}

fn bare(key: &RouteKey) -> RouteKey {
    RouteKey {
        position: 0,
        ..*key
    }
}

/// So many routes stand in `list` behind one with several ways and not in `seen`; none: the two differ otherwise.
fn beyond(seen: &[&Route], list: &[Route]) -> Option<usize> {
    let mut seen = seen.iter().peekable();
    let (mut behind, mut n) = (false, 0);
    for r in list {
        let same = |o: &&&Route| {
            (o.kind, &o.nexthops, o.unsupported) == (r.kind, &r.nexthops, r.unsupported)
        };
        if seen.next_if(same).is_some() {
            behind = matches!(r.nexthops, RouteNextHops::Many(_));
        } else if behind {
            n += 1;
        } else {
            return None;
        }
    }
    seen.next().is_none().then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_store::model::{NextHop, RouteType};

    fn route(position: u16, nexthops: RouteNextHops) -> Route {
        Route {
            key: RouteKey {
                table: 254,
                prefix: "2001:db8::/32".parse().unwrap(),
                tos: 0,
                metric: 1024,
                position,
            },
            kind: RouteType::Unicast,
            scope: 0,
            protocol: 3,
            prefsrc: None,
            nexthops,
            unsupported: None,
        }
    }

    fn many(position: u16) -> Route {
        let next_hop = |ifindex| NextHop {
            ifindex,
            gateway: "fe80::1".parse().ok(),
            weight: 1,
            dead: false,
            linkdown: false,
            onlink: false,
        };
        route(
            position,
            RouteNextHops::Many([next_hop(1), next_hop(2)].into()),
        )
    }

    fn by(position: u16, object: u32) -> Route {
        route(position, RouteNextHops::Object(object))
    }

    fn added(dumped: &[Route], running: &[Route]) -> (usize, Vec<Object>) {
        let mut objects = dumped.iter().cloned().map(Object::Route).collect();
        let n = add(&mut objects, &[running.to_vec()]);
        (n, objects)
    }

    #[test]
    fn what_stands_between_the_next_hops_of_another_is_as_told() {
        let running = [many(3), by(4, 7), by(5, 8)];
        let all: Vec<Object> = running.iter().cloned().map(Object::Route).collect();
        assert_eq!(added(&[many(0), by(1, 8)], &running), (1, all.clone()));
        assert_eq!(added(&[many(0)], &running), (2, all));
    }

    #[test]
    fn nothing_else_is_taken_over() {
        let same = |dumped: &[Route], running: &[Route]| {
            let objects: Vec<Object> = dumped.iter().cloned().map(Object::Route).collect();
            assert_eq!(added(dumped, running), (0, objects));
        };
        // before it
        same(&[many(0)], &[by(1, 7), many(2)]);
        // behind another one
        same(&[many(0), by(1, 7)], &[many(0), by(1, 7), by(2, 8)]);
        // the dump has what the store has not
        same(&[many(0), by(1, 9)], &[many(0), by(1, 7)]);
        same(&[by(0, 9)], &[many(0), by(1, 7)]);
        same(&[many(0), by(1, 7)], &[many(4), by(6, 7)]);
    }
}

//! Routes over 46 ports: by one next hop each, by two in the route, by groups of two next-hop objects.

use super::objects::*;
use super::{BONDED, Bed, Change, Depends, SPARE, SRC};
use anyhow::Result;
use std::net::Ipv4Addr;
use tandem_store::model::*;

/// Ports by which they go, from 1 on.
const WAYS: u32 = BONDED as u32 - 1;
/// The port that most events are about, and the one that shares its routes where there are two ways.
const PORT: u32 = 1;

/// How a route names its next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// One, in the route.
    One,
    /// Two, in the route.
    Two,
    /// A group of two next-hop objects.
    Group,
}

/// The port behind it.
fn next(port: u32) -> u32 {
    port % WAYS + 1
}

fn gateway(port: u32) -> Ipv4Addr {
    Ipv4Addr::from((10 << 24) + (port << 8) + 2)
}

fn by_port(port: u32) -> NextHop {
    hop(port, Some(gateway(port)))
}

/// Route `i`: a /24 from 20.0.0.0 on.
fn far(i: u32, to: RouteNextHops) -> Result<Object> {
    let net = Ipv4Addr::from((20 << 24) + (i << 8));
    let mut r = route((net, 24), TABLE_MAIN, RouteType::Unicast, hop(0, None))?;
    if let Object::Route(r) = &mut r {
        (r.nexthops, r.scope) = (to, 0);
    }
    Ok(r)
}

fn object(id: u32, kind: NexthopKind) -> Object {
    Object::Nexthop(NexthopObject {
        id,
        kind,
        unsupported: None,
    })
}

/// The object that is the way by a port.
fn single(port: u32) -> Object {
    object(port, NexthopKind::Single(by_port(port)))
}

/// A group by its first port: id, and the ports that it has.
fn group(first: u32, ports: &[u32]) -> Object {
    let members = ports.iter().map(|&p| (p, 1)).collect();
    object(100 + first, NexthopKind::Group(members))
}

impl By {
    pub(super) fn text(self) -> &'static str {
        match self {
            By::One => "routes by 46 ports",
            By::Two => "routes by two of 46 ports each",
            By::Group => "routes by groups of two objects, 46 ports",
        }
    }

    fn to(self, port: u32) -> RouteNextHops {
        match self {
            By::One => RouteNextHops::One(by_port(port)),
            By::Two => RouteNextHops::Many([by_port(port), by_port(next(port))].into()),
            By::Group => RouteNextHops::Object(100 + port),
        }
    }

    /// Those of `n` whose first port is this one.
    fn first_by(self, port: u32, n: usize) -> Result<Vec<Object>> {
        let all = (0..n as u32).filter(|i| i % WAYS + 1 == port);
        all.map(|i| far(i, self.to(port))).collect()
    }

    pub(super) fn build(self, n: usize, bed: &mut Bed) -> Result<()> {
        for port in 1..=WAYS {
            bed.up(Object::Link(swp(port as u16)));
            for o in addressed(port, port)? {
                bed.up(o);
            }
            if self == By::Group {
                bed.up(single(port));
            }
        }
        for port in (1..=WAYS).filter(|_| self == By::Group) {
            bed.up(group(port, &[port, next(port)]));
        }
        for i in 0..n as u32 {
            bed.up(far(i, self.to(i % WAYS + 1))?);
        }
        Ok(())
    }

    /// The port goes down, and up again: what the kernel would say, besides of neighbours.
    fn flap(self, n: usize) -> Result<[Vec<Event>; 2]> {
        let link = |up| {
            Object::Link(Link {
                admin_up: up,
                carrier: up,
                ..swp(PORT as u16)
            })
        };
        // its own routes and the neighbour come back
        let mut down = vec![link(false)];
        let mut up = vec![link(true)];
        up.extend(addressed(PORT, PORT)?);
        let before = (1..=WAYS).find(|&p| next(p) == PORT).unwrap_or(PORT);
        match self {
            By::One => up.extend(self.first_by(PORT, n)?),
            // the kernel marks the way dead, and alive, without a word
            By::Two => {}
            By::Group => {
                down.push(group(PORT, &[next(PORT)]));
                down.push(group(before, &[before]));
                up.push(single(PORT));
                up.push(group(PORT, &[PORT, next(PORT)]));
                up.push(group(before, &[before, PORT]));
            }
        }
        let said = |l: Vec<Object>| l.into_iter().map(|o| Event::Upsert(SRC, o)).collect();
        let gone = Event::Remove(SRC, Key::Neigh(PORT, gateway(PORT).into()));
        let mut down: Vec<Event> = said(down);
        down.push(gone);
        Ok([down, said(up)])
    }

    pub(super) fn events(self, n: usize) -> Result<Vec<Change>> {
        let set = |o: Object| vec![Event::Upsert(SRC, o)];
        let gone = |k: Key| vec![Event::Remove(SRC, k)];
        let neigh = |port: u32, host: u8, mac: u8, state| {
            let [a, b, c, _] = gateway(port).octets();
            Object::Neigh(Neigh {
                ifindex: port,
                addr: Ipv4Addr::from([a, b, c, host]).into(),
                mac: [2, 1, 0, 0, mac, port as u8],
                state,
            })
        };
        let beside = neigh(PORT, 77, 7, nud::REACHABLE);
        let beside_key = match &beside {
            Object::Neigh(x) => Key::Neigh(x.ifindex, x.addr),
            _ => Key::Neigh(0, Ipv4Addr::UNSPECIFIED.into()),
        };
        let port = swp(PORT as u16);
        let linked = |l: Link| set(Object::Link(l));
        let dull = Link {
            carrier: false,
            ..port.clone()
        };
        let large = Link {
            mtu: 9000,
            ..port.clone()
        };
        // a second network at the port, without its neighbour
        let mut second = addressed(PORT, 0x100 + PORT)?;
        second.retain(|o| matches!(o, Object::Addr(_) | Object::Route(_)));
        let mut not_second: Vec<Key> = second.iter().filter_map(key_of).collect();
        not_second.reverse();
        let mut f = filter();
        f.key.ifindex = PORT;
        let middle = n as u32 / 2;
        let one = far(middle, self.to(middle % WAYS + 1))?;
        let elsewhere = far(middle, self.to(next(middle % WAYS + 1)))?;
        let one_key = key_of(&one).into_iter();
        let to_spare = hop(u32::from(SPARE), Some(Ipv4Addr::new(10, 255, 255, 2)));
        let any = (Ipv4Addr::UNSPECIFIED, 0);
        let default = route(any, TABLE_MAIN, RouteType::Unicast, to_spare)?;
        // all of them are in the default route; in these so are all of a tenth, and 786,432 of a million
        let wide = |kind| {
            let mut wide = route((Ipv4Addr::new(16, 0, 0, 0), 4), TABLE_MAIN, kind, to_spare)?;
            if let Object::Route(r) = &mut wide
                && kind == RouteType::Blackhole
            {
                (r.nexthops, r.scope) = (RouteNextHops::None, 0);
            }
            Ok::<Object, anyhow::Error>(wide)
        };
        let (way, hole) = (wide(RouteType::Unicast)?, wide(RouteType::Blackhole)?);
        let there_and_gone = |o: &Object| {
            let k = key_of(o).into_iter();
            vec![set(o.clone()), k.flat_map(gone).collect()]
        };
        let flap = self.flap(n)?;
        let (flaps, depends) = match self {
            By::One => (
                "a port goes down, and up with its routes, 1 of 46",
                Depends::Entries,
            ),
            By::Two | By::Group => ("a port of 2 of 46 goes down, and up", Depends::None),
        };
        Ok(vec![
            (
                "a neighbour that they go by is another station, and back",
                Depends::None,
                vec![
                    set(neigh(PORT, 2, 9, nud::REACHABLE)),
                    set(neigh(PORT, 2, 0, nud::REACHABLE)),
                ],
            ),
            (
                "a neighbour that they go by fails, and answers",
                Depends::None,
                vec![
                    set(neigh(PORT, 2, 0, nud::FAILED)),
                    set(neigh(PORT, 2, 0, nud::REACHABLE)),
                ],
            ),
            (
                "another neighbour at one of their ports, and gone",
                Depends::None,
                vec![set(beside), gone(beside_key)],
            ),
            (
                "a network at one of their ports, and gone",
                Depends::None,
                vec![
                    second.iter().cloned().flat_map(set).collect(),
                    not_second.into_iter().flat_map(gone).collect(),
                ],
            ),
            (
                "a filter at one of their ports, and gone",
                Depends::None,
                vec![
                    set(Object::Filter(Box::new(f.clone()))),
                    gone(Key::Filter(f.key)),
                ],
            ),
            (
                "one of their ports has another MTU, and back",
                Depends::None,
                vec![linked(large), linked(port.clone())],
            ),
            (
                "the carrier of one of their ports goes, and is back",
                Depends::None,
                vec![linked(dull), linked(port)],
            ),
            (
                "one of them goes, and is back",
                Depends::None,
                vec![one_key.flat_map(gone).collect(), set(one.clone())],
            ),
            (
                "one of them leads elsewhere, and back",
                Depends::None,
                vec![set(elsewhere), set(one)],
            ),
            (
                "a default route, and gone",
                Depends::None,
                there_and_gone(&default),
            ),
            (
                "a wide route, and gone",
                Depends::None,
                there_and_gone(&way),
            ),
            (
                "a wide blackhole, and gone",
                Depends::None,
                there_and_gone(&hole),
            ),
            (flaps, depends, flap.into()),
        ])
    }
}

fn key_of(o: &Object) -> Option<Key> {
    match o {
        Object::Route(r) => Some(Key::Route(r.key)),
        Object::Addr(a) => Some(Key::Addr(*a)),
        _ => None,
    }
}

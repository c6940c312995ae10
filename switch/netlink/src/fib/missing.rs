//! IPv6 routes that no dump has shown, and that are there.
//!
//! ```text
//!   dump, dump … ──► nodes passed over ──► an address of each, which no longer prefix has ──► lookup ──► it is there: as if dumped
//!                                                                                                 └────► anything else says nothing
//! ```
//!
//! The kernel's dump finds its place by counting the prefixes that it has behind it (net/ipv6/ip6_fib.c `fib6_dump_table`): where
//! others go meanwhile it passes over some, each with all its routes, and dump after dump the same ones, as their datagrams end at
//! the same places. A lookup by address counts nothing.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv6Net};
use tandem_linux::netlink::consts::{RT_TABLE_LOCAL, RTN_BLACKHOLE, RTN_PROHIBIT, RTN_UNREACHABLE};
use tandem_linux::netlink::{Found, Lookup, Route};

use super::super::aliases::{Alias, Key, Key6, MARK, Rest};
use super::super::dead::rebuild;
use super::{Change, Content, Emit, FibCopy, HopFlags};

/// Addresses of a prefix that are tried until one is in no longer prefix.
const TRIES: u32 = 16;

/// `RT_TABLE_DEFAULT`: it, the main and the local table are looked up one after the other.
const RT_TABLE_DEFAULT: u32 = 253;

/// Of one prefix (and sources): all routes of it that no dump has shown.
#[derive(Debug)]
pub(crate) struct Missing {
    table: u32,
    dst: Ipv6Net,
    src: Option<IpNet>,
    keys: Vec<Key6>,
    /// What the kernel answers where the first of them refuses packets, and no wider one that does so may be meant.
    refuses: Option<i32>,
    /// How to ask for it.
    pub(crate) lookup: Lookup,
}

/// Tables that are looked up together.
const fn together(table: u32) -> u32 {
    match table {
        RT_TABLE_DEFAULT..=RT_TABLE_LOCAL => RT_TABLE_LOCAL,
        other => other,
    }
}

/// The prefixes of a table, and of those that are looked up with it.
type Lengths = HashMap<u32, Vec<Rest>>;

/// What a lookup ends with that such a route answers (net/ipv6/route.c `fib6_prop`).
const fn refusal(kind: u8) -> Option<i32> {
    match kind {
        RTN_BLACKHOLE => Some(libc::EINVAL),
        RTN_PROHIBIT => Some(libc::EACCES),
        RTN_UNREACHABLE => Some(libc::EHOSTUNREACH),
        _ => None,
    }
}

/// An address of the prefix: one near its begin, then in its middle, at a quarter, three quarters, an eighth …
fn address(net: &Ipv6Net, n: u32) -> Ipv6Addr {
    let last_of_each = u128::MAX / u128::from(2 * TRIES);
    let bits = u128::from(n).reverse_bits() | last_of_each;
    let host = bits.checked_shr(u32::from(net.prefix_len()));
    (u128::from(net.network()) | host.unwrap_or(0)).into()
}

impl FibCopy {
    /// Prefixes known of which the dumps that have ended showed no route: of all, or of those that use a device. At most so many.
    /// `vrf`: the VRF's device of a table, 0 where it has none.
    pub(in super::super) fn missing6(
        &self,
        device: Option<u32>,
        most: usize,
        vrf: &dyn Fn(u32) -> u32,
    ) -> Vec<Missing> {
        type Node = (u32, IpNet, Option<IpNet>);
        let mut nodes: BTreeMap<Node, (u32, u16, u8, Vec<Key6>)> = BTreeMap::new();
        let counts = |c: &Content| device.is_none_or(|i| c.uses(i)) && !c.is_hidden();
        self.v6.aliases.visit(|key, a| {
            let content = self.contents.get(a.content).filter(|c| counts(c));
            if let Some(c) = content.filter(|_| a.state & MARK == 0)
                && let Some(r) = key.route()
            {
                let node = nodes.entry((r.table, r.dst, c.src)).or_insert((
                    u32::MAX,
                    u16::MAX,
                    0,
                    Vec::new(),
                ));
                if (r.metric, a.position) <= (node.0, node.1) {
                    (node.0, node.1, node.2) = (r.metric, a.position, c.kind);
                }
                node.3.push(*key);
            }
        });
        let mut lengths = Lengths::new();
        for rest in self.v6.aliases.rests() {
            lengths.entry(together(rest.table)).or_default().push(rest);
        }
        let nodes = nodes.into_iter().filter_map(|((table, dst, src), node)| {
            let IpNet::V6(dst) = dst else { return None };
            let (_, _, kind, mut keys) = node;
            keys.dedup();
            let around = lengths.get(&together(table))?;
            let mut tried = (0..TRIES).map(|n| address(&dst, n));
            let to = tried.find(|a| !self.is_longer(around, &dst, *a))?;
            let wider = || self.is_wider(around, &dst, kind);
            Some(Missing {
                table,
                dst,
                src,
                keys,
                refuses: refusal(kind).filter(|_| !wider()),
                lookup: Lookup {
                    dst: to,
                    src: match src.map(|s| s.addr()) {
                        Some(std::net::IpAddr::V6(src)) => Some(src),
                        _ => None,
                    },
                    oif: device.unwrap_or_else(|| vrf(table)),
                },
            })
        });
        nodes.take(most).collect()
    }

    /// Routes to this address by a longer prefix.
    fn is_longer(&self, around: &[Rest], net: &Ipv6Net, addr: Ipv6Addr) -> bool {
        let longer = around.iter().filter(|rest| rest.len > net.prefix_len());
        longer
            .filter_map(|rest| Key6::at(*rest, addr))
            .any(|key| self.v6.aliases.holds(&key))
    }

    /// A route of this kind by a shorter prefix.
    fn is_wider(&self, around: &[Rest], net: &Ipv6Net, kind: u8) -> bool {
        let shorter = around.iter().filter(|rest| rest.len < net.prefix_len());
        let mut keys = shorter.filter_map(|rest| Key6::at(*rest, net.network()));
        let same = |a: &Alias| {
            let content = self.contents.get(a.content);
            content.is_some_and(|c| c.kind == kind)
        };
        keys.any(|key| self.v6.aliases.list(&key).iter().any(same))
    }

    /// The kernel's answer to a lookup of [`FibCopy::missing6`]. A route that was known: it and the others of its prefix are there,
    /// as a dump would have shown them (`again`: and they are said). Gives one that was not known, and is there as well.
    pub(in super::super) fn looked_up6(
        &mut self,
        of: &Missing,
        found: Found,
        again: bool,
        next_hops: &HopFlags<'_>,
        emit: &mut Emit<'_>,
    ) -> Option<Route> {
        match found {
            Ok(r) if (r.table, r.dst, r.src) == (of.table, IpNet::V6(of.dst), of.src) => {
                if !self.is_missing(of, &r) {
                    return Some(r);
                }
            }
            Err(e) if Some(e.errno) == of.refuses && e.extack.is_empty() => {}
            _ => return None,
        }
        for key in &of.keys {
            let (Some(bare), mut list) = (key.route(), self.v6.aliases.list(key)) else {
                continue;
            };
            for a in list.iter_mut().filter(|a| a.state & MARK == 0) {
                let content = self.contents.get(a.content);
                let Some(c) = content.filter(|c| c.src == of.src && !c.is_hidden()) else {
                    continue;
                };
                if again {
                    let route = rebuild(bare.clone(), c, a.state, next_hops);
                    emit(Change::Upsert(&route, a.position));
                }
                a.state |= MARK;
            }
            self.v6.aliases.set(*key, &list);
        }
        None
    }

    /// The route is one of those that were known, and that no dump has shown.
    fn is_missing(&self, of: &Missing, r: &Route) -> bool {
        let content = Content::of(r);
        let known = |key: &Key6| {
            let list = self.v6.aliases.list(key);
            let known = |a: &Alias| self.contents.get(a.content) == Some(&content);
            list.iter().any(|a| a.state & MARK == 0 && known(a))
        };
        let metric = |key: &Key6| key.route().map(|r| r.metric);
        let mut keys = of.keys.iter().filter(|key| metric(key) == Some(r.metric));
        keys.any(known)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Op;
    use super::*;
    use tandem_linux::netlink::{Family, NewMode, Nexthops};

    fn known(routes: &[(u32, &str)]) -> FibCopy {
        let mut fib = FibCopy::default();
        for (table, dst) in routes {
            let route = Route {
                table: *table,
                dst: dst.parse().unwrap(),
                tos: 0,
                metric: 1024,
                kind: 1,
                scope: 0,
                protocol: 4,
                flags: 0,
                nh_id: 0,
                nexthops: Nexthops::None,
                src: None,
                prefsrc: None,
                mtu: 0,
                other: 0,
            };
            assert!(route.family() == Family::V6);
            let new = Op::New(NewMode::Plain);
            assert!(fib.apply(&route, new, &|_| 0, &mut |_| {}));
        }
        fib.unmark(|_| true);
        fib
    }

    fn lookups(fib: &FibCopy) -> Vec<(u32, u32, Ipv6Addr)> {
        let all = fib.missing6(None, 100, &|table| if table == 10 { 7 } else { 0 });
        let of = all.iter().filter(|m| m.dst.prefix_len() == 32);
        of.map(|m| (m.table, m.lookup.oif, m.lookup.dst)).collect()
    }

    /// Longer prefixes of a VRF are not in another's way, nor in that of the main table; those of the local table are in that one's.
    #[test]
    fn a_vrf_is_asked_by_its_device() {
        let alone = [(10, "2001:db8::/32"), (254, "2001:db8::/32")];
        let first = lookups(&known(&alone));
        let [(10, 7, a), (254, 0, b)] = first[..] else {
            panic!("{first:?}");
        };
        assert_eq!(a, b);
        let with = |table| {
            let longer = (table, "2001:db8::/36");
            let all = lookups(&known(&[alone[0], alone[1], longer]));
            let address = |of| all.iter().find(|l| l.0 == of).map(|l| l.2);
            (address(10) == Some(a), address(254) == Some(b))
        };
        assert_eq!(with(10), (false, true));
        assert_eq!(with(255), (true, false));
        assert_eq!(with(11), (true, true));
    }

    #[test]
    fn addresses_are_of_the_prefix() {
        for net in ["::/0", "2001:db8::/32", "2001:db8::/127", "2001:db8::1/128"] {
            let net: Ipv6Net = net.parse().unwrap();
            let all: std::collections::BTreeSet<_> = (0..TRIES).map(|n| address(&net, n)).collect();
            assert!(all.iter().all(|a| net.contains(a)), "{net}: {all:?}");
            let most = 1usize << (128 - net.prefix_len()).min(4);
            assert_eq!(all.len(), most, "{net}");
        }
    }
}

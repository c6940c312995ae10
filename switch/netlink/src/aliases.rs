//! Routes by key, several to a key where the kernel has aliases: most of what the listener remembers of a large table.
//!
//! ```text
//!  what many routes share ──► their addresses ──► Alias (8 bytes)                 nearly always there is one
//!  (table, length, metric, tos)      └──────────► marked SEVERAL ──► several: (whole key) ──► [alias, …]
//! ```
//!
//! Two steps, so that an entry is an address and an alias, 12 bytes for IPv4 instead of 32, and so that growing moves the
//! routes of one prefix length and not all: with a million routes that is 70 MB less at the peak.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tandem_linux::netlink::{Nexthops, Route};

/// Seen by the dump that runs.
pub(super) const MARK: u16 = 1 << 15;
/// In place of a content: look into [`Aliases::several`].
const SEVERAL: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alias {
    /// Of `Contents`; never the largest number.
    pub(super) content: u32,
    pub(super) position: u16,
    /// Dead and linkdown of the next hops, folded into 15 bits; [`MARK`].
    pub(super) state: u16,
}

const PLACEHOLDER: Alias = Alias {
    content: SEVERAL,
    position: 0,
    state: 0,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key4 {
    addr: u32,
    rest: Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key6 {
    addr: [u32; 4],
    rest: Rest,
}

/// What routes of a table share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Rest {
    pub(super) table: u32,
    metric: u32,
    pub(super) len: u8,
    /// IPv6: 0
    tos: u8,
}

/// What both families' keys can do.
pub(super) trait Key: Copy + Eq + Hash {
    /// The part that differs between the routes of one [`Rest`].
    type Addr: Copy + Eq + Hash;
    fn parts(&self) -> (Rest, Self::Addr);
    fn of(rest: Rest, addr: Self::Addr) -> Self;
    /// A route of this key, nothing else in it.
    fn route(&self) -> Option<Route>;
}

fn bare(rest: Rest, dst: IpNet) -> Route {
    Route {
        table: rest.table,
        dst,
        tos: rest.tos,
        metric: rest.metric,
        kind: 0,
        scope: 0,
        protocol: 0,
        flags: 0,
        nh_id: 0,
        nexthops: Nexthops::None,
        src: None,
        prefsrc: None,
        mtu: 0,
        other: 0,
    }
}

impl Key for Key4 {
    type Addr = u32;

    fn parts(&self) -> (Rest, u32) {
        (self.rest, self.addr)
    }

    fn of(rest: Rest, addr: u32) -> Self {
        Key4 { addr, rest }
    }

    fn route(&self) -> Option<Route> {
        let net = Ipv4Net::new(self.addr.into(), self.rest.len).ok()?;
        Some(bare(self.rest, IpNet::V4(net)))
    }
}

impl Key for Key6 {
    type Addr = [u32; 4];

    fn parts(&self) -> (Rest, [u32; 4]) {
        (self.rest, self.addr)
    }

    fn of(rest: Rest, addr: [u32; 4]) -> Self {
        Key6 { addr, rest }
    }

    fn route(&self) -> Option<Route> {
        let [a, b, c, d] = self.addr.map(u128::from);
        let addr = a << 96 | b << 64 | c << 32 | d;
        let net = Ipv6Net::new(addr.into(), self.rest.len).ok()?;
        Some(bare(self.rest, IpNet::V6(net)))
    }
}

impl Key6 {
    /// Whose prefix this address is in.
    pub(super) fn at(rest: Rest, addr: Ipv6Addr) -> Option<Self> {
        let net = Ipv6Net::new(addr, rest.len).ok()?.trunc();
        Some(key6(&bare(rest, IpNet::V6(net)), &net))
    }
}

pub(super) fn key4(r: &Route, net: &Ipv4Net) -> Key4 {
    Key4 {
        addr: net.addr().into(),
        rest: Rest {
            table: r.table,
            metric: r.metric,
            len: net.prefix_len(),
            tos: r.tos,
        },
    }
}

pub(super) fn key6(r: &Route, net: &Ipv6Net) -> Key6 {
    let a = u128::from(net.addr());
    Key6 {
        addr: [
            (a >> 96) as u32,
            (a >> 64) as u32,
            (a >> 32) as u32,
            a as u32,
        ],
        rest: Rest {
            table: r.table,
            metric: r.metric,
            len: net.prefix_len(),
            tos: 0,
        },
    }
}

/// How many aliases a key has.
#[derive(Debug)]
pub(super) enum Shown<'a> {
    None,
    One(&'a mut Alias),
    Several,
}

/// With a short hash, drawn anew by each process: between two lookups is so little that the processor waits for the memory
/// of several at once ([`Aliases::holds`] for many keys in a row).
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The aliases of every key of a family.
#[derive(Debug)]
pub(super) struct Aliases<K: Key> {
    by_rest: Map<Rest, Map<K::Addr, Alias>>,
    /// Two or more, in the kernel's order; their place above has [`SEVERAL`].
    several: HashMap<K, Vec<Alias>>,
    /// Addresses in all of `by_rest`.
    keys: usize,
}

impl<K: Key> Default for Aliases<K> {
    fn default() -> Self {
        Aliases {
            by_rest: Map::default(),
            several: HashMap::new(),
            keys: 0,
        }
    }
}

impl<K: Key> Aliases<K> {
    /// Keys that have an alias.
    pub(super) fn len(&self) -> usize {
        self.keys
    }

    /// What routes of a table share, each once.
    pub(super) fn rests(&self) -> impl Iterator<Item = Rest> {
        self.by_rest.keys().copied()
    }

    /// Whether a key has an alias.
    pub(super) fn holds(&self, key: &K) -> bool {
        let (rest, addr) = key.parts();
        self.by_rest
            .get(&rest)
            .is_some_and(|routes| routes.contains_key(&addr))
    }

    /// What stands for a key: its alias where it has exactly one.
    pub(super) fn shown(&mut self, key: &K) -> Shown<'_> {
        let (rest, addr) = key.parts();
        let routes = self.by_rest.get_mut(&rest);
        match routes.and_then(|routes| routes.get_mut(&addr)) {
            None => Shown::None,
            Some(a) if a.content == SEVERAL => Shown::Several,
            Some(a) => Shown::One(a),
        }
    }

    /// The aliases of a key, in the kernel's order.
    pub(super) fn list(&self, key: &K) -> Vec<Alias> {
        let (rest, addr) = key.parts();
        match self.by_rest.get(&rest).and_then(|r| r.get(&addr)) {
            None => Vec::new(),
            Some(a) if a.content != SEVERAL => vec![*a],
            Some(_) => self.several.get(key).cloned().unwrap_or_default(),
        }
    }

    /// The key has these aliases now.
    pub(super) fn set(&mut self, key: K, list: &[Alias]) {
        let (rest, addr) = key.parts();
        let shown = match list {
            [] => None,
            [one] => Some(*one),
            _ => Some(PLACEHOLDER),
        };
        let old = match shown {
            Some(a) => self.by_rest.entry(rest).or_default().insert(addr, a),
            None => self.take(rest, addr),
        };
        self.keys += usize::from(shown.is_some());
        self.keys -= usize::from(old.is_some());
        if list.len() > 1 {
            self.several.insert(key, list.to_vec());
        } else if old.is_some_and(|old| old.content == SEVERAL) {
            self.several.remove(&key);
        }
    }

    fn take(&mut self, rest: Rest, addr: K::Addr) -> Option<Alias> {
        let routes = self.by_rest.get_mut(&rest)?;
        let old = routes.remove(&addr);
        if routes.is_empty() {
            self.by_rest.remove(&rest);
        }
        old
    }

    /// Visits every alias.
    pub(super) fn each(&mut self, mut f: impl FnMut(&mut Alias)) {
        let single = self.by_rest.values_mut().flat_map(HashMap::values_mut);
        for a in single.filter(|a| a.content != SEVERAL) {
            f(a);
        }
        for a in self.several.values_mut().flatten() {
            f(a);
        }
    }

    /// Visits every alias with its key.
    pub(super) fn visit(&self, mut f: impl FnMut(&K, &Alias)) {
        for (rest, routes) in &self.by_rest {
            for (addr, a) in routes.iter().filter(|(_, a)| a.content != SEVERAL) {
                f(&K::of(*rest, *addr), a);
            }
        }
        for (key, list) in &self.several {
            list.iter().for_each(|a| f(key, a));
        }
    }

    /// Visits the aliases of every key that has several, in the kernel's order.
    pub(super) fn each_list(&mut self, mut f: impl FnMut(&K, &mut [Alias])) {
        for (key, list) in &mut self.several {
            f(key, list);
        }
    }

    /// Keeps the aliases that `f` wants: the widest prefixes first, in the kernel's order within a key. So where many change at once
    /// whoever hears of it never has a prefix that answers for one below it which has gone, and is to go or change itself.
    pub(super) fn retain(&mut self, mut f: impl FnMut(&K, &Alias) -> bool) {
        let (several, keys) = (&mut self.several, &mut self.keys);
        let mut widest_first: Vec<Rest> = self.by_rest.keys().copied().collect();
        widest_first.sort_unstable_by_key(|rest| rest.len);
        for rest in widest_first {
            let Some(routes) = self.by_rest.get_mut(&rest) else {
                continue;
            };
            let before = routes.len();
            routes.retain(|addr, a| {
                let key = K::of(rest, *addr);
                if a.content != SEVERAL {
                    return f(&key, a);
                }
                let Some(list) = several.get_mut(&key) else {
                    return false;
                };
                list.retain(|a| f(&key, a));
                match list.as_slice() {
                    [_, _, ..] => return true,
                    [one] => *a = *one,
                    [] => {}
                }
                several.remove(&key);
                a.content != SEVERAL
            });
            *keys -= before - routes.len();
            if routes.is_empty() {
                self.by_rest.remove(&rest);
            }
        }
    }
}

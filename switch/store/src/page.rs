//! Long lists in pages, for whoever must not stop the core for all of them. A page goes on behind the last key of the one
//! before, so entries may come and go in between: what is there all along is in exactly one of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;

use crate::Store;
use crate::api::{FdbRow, MdbRow, NeighRow};
use crate::explain::{Unreached, mac_text};
use crate::mdb::GroupKey;
use crate::model::{FdbKey, GroupAddr};

/// Some rows of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<R> {
    /// In the order of their keys.
    pub rows: Vec<R>,
    /// Behind what the next page goes on; `None`: this is the last one.
    pub next: Option<String>,
}

/// The keys behind one, at most `limit` and at least one, and whether there are more.
fn behind<K: Ord + Copy, V>(map: &BTreeMap<K, V>, from: Option<K>, limit: usize) -> (Vec<K>, bool) {
    let from = from.map_or(Bound::Unbounded, Bound::Excluded);
    let mut all = map.range((from, Bound::Unbounded)).map(|(k, _)| *k);
    let keys = all.by_ref().take(limit.max(1)).collect();
    (keys, all.next().is_some())
}

/// `None`: it is none; `Some(None)`: it is the beginning.
fn key<K>(after: &str, parse: impl FnOnce(&str) -> Option<K>) -> Option<Option<K>> {
    match after {
        "" => Some(None),
        text => parse(text).map(Some),
    }
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut parts = text.split(':');
    let mut mac = [0; 6];
    for byte in &mut mac {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

fn neighbour(text: &str) -> Option<(IpAddr, u32)> {
    let (addr, ifindex) = text.split_once('/')?;
    Some((addr.parse().ok()?, ifindex.parse().ok()?))
}

fn station(text: &str) -> Option<FdbKey> {
    let mut parts = text.split('/');
    let mut next = || parts.next();
    Some(FdbKey {
        bridge: next()?.parse().ok()?,
        vlan: next()?.parse().ok()?,
        mac: mac(next()?)?,
    })
}

/// Where the list of groups is: those of all bridges come first, then the router ports of each.
enum Group {
    Members(GroupKey),
    Routers(u32),
}

fn group(text: &str) -> Option<Group> {
    let parts: Vec<&str> = text.split('/').collect();
    Some(match *parts.as_slice() {
        [bridge] => Group::Routers(bridge.parse().ok()?),
        [bridge, vlan, group, source] => Group::Members(GroupKey {
            bridge: bridge.parse().ok()?,
            vlan: vlan.parse().ok()?,
            group: match group.parse() {
                Ok(addr) => GroupAddr::Ip(addr),
                Err(_) => GroupAddr::Mac(mac(group)?),
            },
            source: match source {
                "" => None,
                addr => Some(addr.parse().ok()?),
            },
        }),
        _ => return None,
    })
}

fn group_text(k: &GroupKey) -> String {
    let source = k.source.map_or_else(String::new, |s| s.to_string());
    format!("{}/{}/{}/{source}", k.bridge, k.vlan, k.group)
}

impl Store {
    /// Neighbours of links that packets are forwarded by, behind `after` (empty: from the first one). `limit` of all are looked
    /// at. `None`: no page has said this `after`; so with the lists below.
    #[must_use]
    pub fn neighbour_page(&self, after: &str, limit: usize) -> Option<Page<NeighRow>> {
        let (keys, more) = behind(&self.neighs, key(after, neighbour)?, limit);
        let last = keys.last().filter(|_| more);
        let next = last.map(|(addr, ifindex)| format!("{addr}/{ifindex}"));
        let shown = keys.iter().filter(|(_, ifindex)| !self.is_vrf(*ifindex));
        let mut unreached = Unreached::default();
        let rows = shown.map(|k| self.neigh_row(k.0, k.1, &mut unreached));
        let rows = rows.collect();
        Some(Page { rows, next })
    }

    /// FDB entries.
    #[must_use]
    pub fn fdb_page(&self, after: &str, limit: usize) -> Option<Page<FdbRow>> {
        let (keys, more) = behind(&self.fdb, key(after, station)?, limit);
        let last = keys.last().filter(|_| more);
        let next = last.map(|k| format!("{}/{}/{}", k.bridge, k.vlan, mac_text(k.mac)));
        let rows = keys.iter().map(|k| self.fdb_row(*k)).collect();
        Some(Page { rows, next })
    }

    /// Groups, and behind them per bridge the ports to multicast routers as the group `routers`.
    #[must_use]
    pub fn mdb_page(&self, after: &str, limit: usize) -> Option<Page<MdbRow>> {
        let (groups, bridge) = match key(after, group)? {
            None => (Some(None), None),
            Some(Group::Members(k)) => (Some(Some(k)), None),
            Some(Group::Routers(bridge)) => (None, Some(bridge)),
        };
        let mut rows = Vec::new();
        if let Some(from) = groups {
            let (keys, more) = behind(self.group_members(), from, limit);
            let groups = self.group_members();
            let there = keys.iter().filter_map(|k| Some((k, groups.get(k)?)));
            rows.extend(there.map(|(k, members)| self.mdb_row(k, members)));
            if let Some(last) = keys.last().filter(|_| more) {
                let next = Some(group_text(last));
                return Some(Page { rows, next });
            }
        }
        let mut at = bridge;
        while let Some(bridge) = self.router_bridge(at) {
            if rows.len() >= limit.max(1) {
                // 0 is no interface: behind it are all bridges
                let next = Some(at.unwrap_or(0).to_string());
                return Some(Page { rows, next });
            }
            rows.push(self.router_row(bridge));
            at = Some(bridge);
        }
        Some(Page { rows, next: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_page_has_said_is_none() {
        let store = Store::new(crate::Config::default());
        for text in ["x", "1", "10.0.0.1", "10.0.0.1/", "/1", "1/2"] {
            assert!(store.neighbour_page(text, 1).is_none(), "{text}");
        }
        for text in [
            "1/2",
            "1/2/3",
            "1/2/02:00:00:00:00",
            "1/65536/02:00:00:00:00:01",
            "a",
        ] {
            assert!(store.fdb_page(text, 1).is_none(), "{text}");
        }
        for text in ["x", "1/2", "1/2/224.0.0.1", "1/2/224.0.0.1/x", "1/2/3/"] {
            assert!(store.mdb_page(text, 1).is_none(), "{text}");
        }
        assert!(store.mdb_page("7", 1).is_some_and(|p| p.rows.is_empty()));
    }
}

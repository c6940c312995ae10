//! Who owns what: each port, device, VRF and domain is one source's.
//!
//! ```text
//!   event of a source ─► admit ─┬─ what it names is its own, or nobody's yet ─► apply
//!                               └─ somebody else's ─► refused, counted: nothing changes
//! ```
//!
//! Ports are given to sources before anything is said. A device (bridges and so their domains, VRFs and so their tables)
//! is its who said it first, and what stands on a device is the business of the device's owner: what others said of it
//! before it was there goes when it comes. What has no place of its own (the default VRF, policy rules, base chains, settings) is the first source's. To *refer* to what another source
//! owns is allowed: a route over its interface, a port in its bridge.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::Store;
use crate::model::{
    ConfScope, Event, Family, FdbEntry, FdbKey, Key, Link, LinkKind, Object, SourceId,
    TABLE_DEFAULT, TABLE_LOCAL, TABLE_MAIN,
};

/// The sources of a store.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// In their order; empty: one that nobody named.
    sources: Vec<SourceId>,
    ports: HashMap<u16, SourceId>,
}

/// An event that was refused: what it is about is another source's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Whose event.
    pub source: SourceId,
    /// Whose object.
    pub owner: SourceId,
    /// Which: `port 3`, `device 17`, `table 100`, `next-hop object 5`.
    pub what: String,
}

/// The first number that a source which is not the kernel may give to a device that it makes, or to a next-hop object: below are
/// the kernel's, and both are in one space.
pub const OWN_NUMBERS: u32 = 1 << 31;

impl Store {
    /// Names the sources and the ports that are theirs. Nothing is planned before each of them has told all that it has
    /// (its first `EndSync`). Without this there is one source, whichever.
    pub fn set_sources(&mut self, sources: &[(SourceId, Vec<u16>)]) {
        self.owners.sources = sources.iter().map(|s| s.0).collect();
        let ports = sources
            .iter()
            .flat_map(|(id, p)| p.iter().map(|p| (*p, *id)));
        self.owners.ports = ports.collect();
        self.look_who_reached();
    }

    /// Whether this event is its source's to say: whoever brings events asks before [`Store::apply`].
    ///
    /// # Errors
    /// Another source owns what it is about: it is counted, and must not be applied.
    pub fn admit(&mut self, event: &Event) -> Result<(), Refused> {
        if self.owners.sources.len() < 2 {
            return Ok(());
        }
        let (source, owner) = match event {
            Event::Upsert(source, object @ Object::Link(l)) => {
                let owners = [
                    self.owner_of_kind(&l.kind),
                    self.owner_of(&Key::Link(l.ifindex)),
                ];
                let mut owners = owners.into_iter().flatten();
                (
                    *source,
                    owners
                        .find(|o| o.0 != *source)
                        .or_else(|| self.kernels_number(*source, object)),
                )
            }
            Event::Upsert(source, object) => (
                *source,
                self.owner_of_object(object)
                    .filter(|o| o.0 != *source)
                    .or_else(|| self.kernels_number(*source, object)),
            ),
            Event::Remove(source, key) => (*source, self.owner_of(key)),
            Event::BeginSync(..) | Event::EndSync(_) => return Ok(()),
        };
        match owner {
            Some((owner, what)) if owner != source => {
                self.counters.refused += 1;
                Err(Refused {
                    source,
                    owner,
                    what,
                })
            }
            _ => Ok(()),
        }
    }

    /// This event brings a device: what others had said of it before its owner said that it is there. It is counted as
    /// refused, and to be removed before [`Store::apply`].
    pub fn said_too_early(&mut self, event: &Event) -> Vec<(Refused, Key)> {
        let Event::Upsert(owner, Object::Link(link)) = event else {
            return Vec::new();
        };
        let i = link.ifindex;
        if self.owners.sources.len() < 2 || self.links.contains_key(&i) {
            return Vec::new();
        }
        let addrs = self.addrs.iter().filter(|(a, _)| a.ifindex == i);
        let neighs = self.neighs.iter().filter(|(k, _)| k.1 == i);
        let fdb = self.fdb.iter().filter(|(k, _)| k.bridge == i);
        let fdb = fdb.filter(|(_, r)| r.kernel.is_some());
        let vlans = self.vlans.range((i, 0)..=(i, u16::MAX));
        let filters = self.filters.all().iter().filter(|(k, _)| k.ifindex == i);
        let conf = [Family::V4, Family::V6].map(|f| (f, ConfScope::Interface(i)));
        let conf = conf
            .iter()
            .filter_map(|k| Some((k, self.netconf.get(k)?.source)));
        let mut all: Vec<(u8, Key)> = addrs.map(|(a, v)| (v.0, Key::Addr(*a))).collect();
        all.extend(neighs.map(|(k, n)| (n.source, Key::Neigh(i, k.0))));
        all.extend(fdb.map(|(k, r)| (r.source, Key::Fdb(*k))));
        all.extend(vlans.map(|(k, v)| (v.1, Key::BridgeVlan(i, k.1))));
        all.extend(filters.map(|(k, f)| (f.1, Key::Filter(*k))));
        all.extend(conf.map(|(k, source)| (source, Key::Netconf(k.0, k.1))));
        all.extend(self.groups_said_of(i));
        all.retain(|(source, _)| *source != owner.0);
        self.counters.refused += all.len() as u64;
        let refused = |source| Refused {
            source: SourceId(source),
            owner: *owner,
            what: format!("device {i}"),
        };
        all.into_iter().map(|(s, key)| (refused(s), key)).collect()
    }

    /// A device, as its source has said it.
    #[must_use]
    pub fn link(&self, ifindex: u32) -> Option<&Link> {
        self.links.get(&ifindex).map(|l| &l.link)
    }

    /// State of a neighbour (`nud::*`), as its source has said it.
    #[must_use]
    pub fn neighbour_state(&self, ifindex: u32, addr: IpAddr) -> Option<u16> {
        self.neighs.get(&(addr, ifindex)).map(|n| n.state)
    }

    /// An FDB entry, as its source has said it.
    #[must_use]
    pub fn fdb_entry(&self, key: &FdbKey) -> Option<&FdbEntry> {
        self.fdb.get(key)?.kernel.as_ref()
    }

    /// Who said this device.
    pub fn link_owner(&self, ifindex: u32) -> Option<SourceId> {
        self.links.get(&ifindex).map(|l| SourceId(l.source))
    }

    /// All sources have told all that they had.
    pub(crate) fn look_who_reached(&mut self) {
        let reached = |s: &SourceId| self.syncs.get(s).is_some_and(|s| s.reached);
        self.synced = match self.owners.sources.as_slice() {
            [] => self.syncs.values().any(|s| s.reached),
            all => all.iter().all(reached),
        };
    }

    /// Several sources may refer to each other's objects.
    pub(crate) fn several_sources(&self) -> bool {
        self.owners.sources.len() > 1
    }

    /// A new object of another source than the kernel has a number that the kernel may give to one of its own at any time. Front-panel
    /// ports are there before either.
    fn kernels_number(&self, source: SourceId, object: &Object) -> Option<(SourceId, String)> {
        let kernel = SourceId::NETLINK;
        if source == kernel || !self.owners.sources.contains(&kernel) {
            return None;
        }
        let (what, number) = match object {
            Object::Link(l) if !matches!(l.kind, LinkKind::Swp { .. }) => ("device", l.ifindex),
            Object::Nexthop(o) => ("next-hop object", o.id),
            _ => return None,
        };
        (number < OWN_NUMBERS).then(|| (kernel, format!("{what} {number} (below {OWN_NUMBERS})")))
    }

    /// It is its whose policy rules, base chains and settings are.
    pub(crate) fn is_firsts(&self, ifindex: u32) -> bool {
        let first = self.owners.sources.first();
        first.is_none_or(|first| self.link_owner(ifindex) == Some(*first))
    }

    fn first(&self, what: &str) -> Option<(SourceId, String)> {
        Some((*self.owners.sources.first()?, what.into()))
    }

    fn device(&self, ifindex: u32) -> Option<(SourceId, String)> {
        Some((self.link_owner(ifindex)?, format!("device {ifindex}")))
    }

    /// Who owns what a device stands for: a port, a table, a group's number.
    fn owner_of_kind(&self, kind: &LinkKind) -> Option<(SourceId, String)> {
        match kind {
            LinkKind::Swp { port } => {
                let owner = self.owners.ports.get(port)?;
                Some((*owner, format!("port {port}")))
            }
            LinkKind::Vrf { table } => self.table(*table),
            LinkKind::Bond(b) => self.device(*self.lags.on.get(&b.lag)?),
            _ => None,
        }
    }

    fn table(&self, table: u32) -> Option<(SourceId, String)> {
        match table {
            TABLE_LOCAL | TABLE_MAIN | TABLE_DEFAULT => self.first("the default VRF"),
            _ => {
                let slot = self.vrfs.by_table.get(&table)?;
                let owner = self.link_owner(self.vrfs.slots.get(slot)?.ifindex)?;
                Some((owner, format!("table {table}")))
            }
        }
    }

    fn owner_of_object(&self, object: &Object) -> Option<(SourceId, String)> {
        match object {
            Object::Link(l) => self.owner_of(&Key::Link(l.ifindex)),
            Object::Addr(a) => self.device(a.ifindex),
            Object::Neigh(n) => self.device(n.ifindex),
            Object::Fdb(f) => self.device(f.bridge),
            Object::BridgeVlan(v) => self.device(v.ifindex),
            Object::Nexthop(o) => self.owner_of(&Key::Nexthop(o.id)),
            Object::Route(r) => self.table(r.key.table),
            Object::Rule(_) | Object::BaseChain(_) | Object::Settings(_) => self.first("policy"),
            Object::Filter(f) => self.device(f.key.ifindex),
            Object::Mdb(e) => self.device(e.bridge),
            Object::RouterPort(r) => self.device(r.bridge),
            Object::VlanSnooping(v) => self.device(v.bridge),
            Object::Netconf(n) => self.owner_of(&Key::Netconf(n.family, n.scope)),
        }
    }

    fn owner_of(&self, key: &Key) -> Option<(SourceId, String)> {
        match key {
            Key::Link(i)
            | Key::Neigh(i, _)
            | Key::BridgeVlan(i, _)
            | Key::RouterPort(i, _)
            | Key::VlanSnooping(i, _) => self.device(*i),
            Key::Addr(a) => self.device(a.ifindex),
            Key::Fdb(k) => self.device(k.bridge),
            Key::Mdb(k) => self.device(k.bridge),
            Key::Filter(k) => self.device(k.ifindex),
            Key::Netconf(_, ConfScope::Interface(i)) => self.device(*i),
            Key::Netconf(..) | Key::Rule(_) | Key::BaseChain(..) => self.first("policy"),
            Key::Nexthop(id) => {
                let owner = self.paths.objects.get(id)?.1;
                Some((SourceId(owner), format!("next-hop object {id}")))
            }
            Key::Route(k) => self.table(k.table),
        }
    }
}

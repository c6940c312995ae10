//! Who owns what: each port, device, VRF and domain is one source's.
//!
//! ```text
//!   event of a source ─► admit ─┬─ what it names is its own, or nobody's yet ─► apply
//!                               └─ somebody else's ─► refused, counted: nothing changes
//! ```
//!
//! Ports are given to sources before anything is said. A device (bridges and so their domains, VRFs and so their tables)
//! is its who said it first, and what stands on a device is the business of the device's owner. What has no place of its
//! own (the default VRF, policy rules, base chains, settings) is the first source's. To *refer* to what another source
//! owns is allowed: a route over its interface, a port in its bridge.

use std::collections::HashMap;

use crate::Store;
use crate::model::{
    ConfScope, Event, Key, LinkKind, Object, SourceId, TABLE_DEFAULT, TABLE_LOCAL, TABLE_MAIN,
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
            Event::Upsert(source, Object::Link(l)) => {
                let owners = [
                    self.owner_of_kind(&l.kind),
                    self.owner_of(&Key::Link(l.ifindex)),
                ];
                (
                    *source,
                    owners.into_iter().flatten().find(|o| o.0 != *source),
                )
            }
            Event::Upsert(source, object) => (*source, self.owner_of_object(object)),
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
            Object::Netconf(n) => self.owner_of(&Key::Netconf(n.family, n.scope)),
        }
    }

    fn owner_of(&self, key: &Key) -> Option<(SourceId, String)> {
        match key {
            Key::Link(i) | Key::Neigh(i, _) | Key::BridgeVlan(i, _) | Key::RouterPort(i, _) => {
                self.device(*i)
            }
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

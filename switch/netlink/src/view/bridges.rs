//! Bridges: VLANs, ports, multicast groups and who asks for them.

use std::net::IpAddr;

use tandem_linux::netlink as nl;
use tandem_store::model::{self, Key, KindSet, Object};

use super::super::convert;
use super::super::querier;
use super::{KernelView, Op, Sink, remove, upsert};

/// What of a bridge's snooping decides which groups are told of.
pub(super) fn snoops(l: &model::Link) -> (bool, u8, u8, u8) {
    match l.kind {
        model::LinkKind::Bridge(b) => (
            b.mcast_snooping,
            b.mcast_router,
            b.igmp_version,
            b.mld_version,
        ),
        _ => (false, 0, 0, 0),
    }
}

impl KernelView {
    /// A query (its response time in ms, by family), or another sign of a multicast router, passed through the CPU.
    pub(in super::super) fn heard(&mut self, delays: [Option<u64>; 2]) {
        for (family, delay) in delays.into_iter().enumerate() {
            if let Some(delay) = delay {
                self.heard.query(family, delay, self.now);
            }
        }
        self.doubts.kinds |= KindSet::MDB.0;
    }

    /// When the bridges should be looked at, ms.
    pub(in super::super) fn querier_due(&self) -> Option<u64> {
        self.querier_due
    }

    /// A look at all of them begins.
    pub(in super::super) fn begin_look(&mut self) {
        self.querier_due = None;
        if self.routers.values().any(|both| *both) {
            self.doubts.kinds |= KindSet::MDB.0;
        }
    }

    // -- VLANs of bridges --------------------------------------------------------------------

    pub(super) fn bridge_vlan(&mut self, v: model::BridgeVlan, out: &mut Sink<'_>) {
        let again = match &mut self.full {
            Some(seen) => {
                seen.vlans.insert((v.ifindex, v.vid));
                true
            }
            None => false,
        };
        if v.pvid {
            // the one before is none any more, and no message says so
            let before: Vec<model::BridgeVlan> = self
                .vlans
                .range((v.ifindex, 0)..=(v.ifindex, u16::MAX))
                .map(|(_, o)| *o)
                .filter(|o| o.pvid && o.vid != v.vid)
                .collect();
            for old in before {
                let old = model::BridgeVlan { pvid: false, ..old };
                self.vlans.insert((old.ifindex, old.vid), old);
                upsert(out, Object::BridgeVlan(old));
            }
        }
        if self.vlans.insert((v.ifindex, v.vid), v) != Some(v) || again {
            upsert(out, Object::BridgeVlan(v));
        }
    }

    /// A device left its bridge or is gone: its VLANs are as well.
    pub(super) fn vlans_gone(&mut self, ifindex: u32, out: &mut Sink<'_>) {
        let keys: Vec<(u32, u16)> = self
            .vlans
            .range((ifindex, 0)..=(ifindex, u16::MAX))
            .map(|(k, _)| *k)
            .collect();
        for k in keys {
            self.vlans.remove(&k);
            remove(out, Key::BridgeVlan(k.0, k.1));
        }
    }

    pub(super) fn bridge_port(
        &mut self,
        ifindex: u32,
        master: u32,
        port: Option<&nl::BridgePort>,
        out: &mut Sink<'_>,
    ) {
        self.router_setting(ifindex, master, port);
        let Some(link) = self.links.get_mut(&ifindex) else {
            return;
        };
        let mut new = link.model.clone();
        new.master = master;
        new.bridge_port = match (master, port) {
            (0, _) => None,
            (_, Some(port)) => Some(convert::bridge_port(port)),
            (_, None) => new.bridge_port,
        };
        // the bridge device itself comes in such messages as well, as a port of nothing
        if matches!(new.kind, model::LinkKind::Bridge(_)) {
            return;
        }
        if new != link.model {
            link.model = new.clone();
            upsert(out, Object::Link(new));
        }
    }

    /// A port that is set to lead to a router leads to routers of both families. The kernel tells of it only if it led
    /// to none before (net/bridge/br_multicast.c `br_multicast_add_router`).
    pub(super) fn router_setting(
        &mut self,
        ifindex: u32,
        master: u32,
        port: Option<&nl::BridgePort>,
    ) {
        let new = match (master, port) {
            (0, _) => 1,
            (_, Some(port)) => port.mcast_router,
            (_, None) => return, // some messages leave the settings out
        };
        let old = match new {
            1 => self.router_set.remove(&ifindex),
            _ => self.router_set.insert(ifindex, new),
        };
        if old.unwrap_or(1) != new {
            self.doubts.kinds |= KindSet::MDB.0;
        }
    }

    // -- multicast groups ----------------------------------------------------------------------

    pub(super) fn mdb(&mut self, m: &nl::Mdb, op: Op, out: &mut Sink<'_>) {
        for e in &m.entries {
            upsert(out, Object::Mdb(convert::mdb_entry(m.bridge, e)));
        }
        if matches!(op, Op::Dumped { .. }) {
            for r in &m.routers {
                self.routers.insert((m.bridge, r.ifindex), r.v4 && r.v6);
                upsert(out, Object::RouterPort(convert::router_port(m.bridge, r)));
            }
        } else {
            self.doubt_groups(m);
        }
    }

    /// A message about a router port does not say of which family; one about a source does not say what it does to the
    /// group's other entries (the bridge's own part in them, say).
    pub(super) fn doubt_groups(&mut self, m: &nl::Mdb) {
        let by_source = |e: &nl::MdbEntry| e.source.is_some() || e.mode.is_some();
        if !m.routers.is_empty() || m.entries.iter().any(by_source) {
            self.doubts.kinds |= KindSet::MDB.0;
        }
    }

    /// Whether there are queriers that the kernel goes by.
    pub(super) fn queriers(&mut self, index: u32, told: &nl::BridgeInfo) -> [model::Querier; 2] {
        if !told.mcast_snooping {
            self.queriers.remove(&index);
            return [model::Querier::None; 2];
        }
        let from = IpAddr::from(told.mcast.address6);
        if self.settled {
            return querier::believed(&told.mcast);
        }
        // addresses come after the devices in a dump of everything
        let there = self.addrs6.get(&index).is_some_and(|a| a.contains(&from));
        let own = there || self.full.is_some() && !from.is_unspecified();
        let tracker = self.queriers.entry(index).or_default();
        let (is, due) = tracker.look(&told.mcast, own, &self.heard, self.now);
        let again = self.full.is_some() && told.mcast.querier;
        let due = due.into_iter().chain(again.then_some(self.now));
        self.querier_due = due.chain(self.querier_due).min();
        is
    }
}

//! VLANs: which forwarding domains there are, who is in them, and VLAN interfaces.
//!
//! ```text
//!   br0 (vlan_filtering)        domain (br0, 10) ── members (swp1, 10), (swp2, 10) ──► VLAN, VLAN_MEMBER
//!     swp1: 1 pvid, 10                │
//!     swp2: 10 pvid untagged          └── br0.10 has addresses, br0 is in VLAN 10 itself ──► RIF on the domain
//!
//!   swp3, in no bridge
//!     └── swp3.20 has addresses ──► RIF on VLAN 20 of the port; untagged frames: RIF on the port
//! ```

use crate::Store;
use crate::api::Domain;
use crate::hw::bodies::{Member, RifPlace, Vlan};
use crate::hw::table::Sent;
use crate::hw::{Cls, Ref};
use crate::model::{BR_STATE_FORWARDING, BridgeInfo, BridgeVlan, FdbKey, Link, LinkKind, SourceId};
use std::collections::{BTreeMap, BTreeSet};
use tandem_abi::raw::*;

/// Memberships by port and VID.
pub(crate) type Members = BTreeMap<(u16, u16), Member>;

impl Domain {
    /// Of an FDB entry.
    pub(crate) fn of(key: &FdbKey) -> Domain {
        Domain {
            dev: key.bridge,
            vlan: key.vlan,
        }
    }
}

impl Store {
    pub(crate) fn upsert_bridge_vlan(&mut self, source: SourceId, v: BridgeVlan, generation: u16) {
        let key = (v.ifindex, v.vid);
        let old = self.vlans.insert(key, (v, source.0, generation));
        if old.is_some_and(|o| o.0 == v) {
            self.counters.unchanged += 1;
        } else {
            self.topo.dirty = true;
        }
    }

    /// VLANs of a port, or of a bridge itself.
    pub(crate) fn vlans_of(&self, ifindex: u32) -> impl Iterator<Item = &BridgeVlan> {
        self.vlans
            .range((ifindex, 0)..=(ifindex, u16::MAX))
            .map(|(_, v)| &v.0)
    }

    /// Why a bridge with VLAN filtering that has this port can't be offloaded.
    pub(crate) fn port_vlan_reason(&self, ifindex: u32) -> Option<String> {
        self.vlans_of(ifindex).find_map(|v| {
            if v.state != BR_STATE_FORWARDING {
                Some(format!("VLAN {} has a state of its own", v.vid))
            } else {
                let u = v.unsupported?;
                Some(format!("{u} of VLAN {} is not offloaded", v.vid))
            }
        })
    }

    // -- VLAN interfaces --------------------------------------------------------------------------------------------

    /// A VLAN interface whose frames the chip can tell from those of the device beneath, and which wants no others.
    pub(crate) fn plain_vlan(&self, l: &Link, lower: &Link) -> bool {
        matches!(l.kind, LinkKind::Vlan { vid } if (1..=4094).contains(&vid))
            && l.mac == lower.mac
            && self.vrf_master(l).is_some()
            && !self.links.values().any(|u| u.link.lower == l.ifindex)
            && self.hooked(l).is_none()
    }

    /// The place of a VLAN interface's router interface, or why it has none.
    pub(crate) fn vlan_place(&self, l: &Link, vid: u16) -> Result<RifPlace, String> {
        let Some(lower) = self.links.get(&l.lower).map(|r| &r.link) else {
            return Err("what it is on is not here".into());
        };
        if let Some(h) = self.hooked(l) {
            return Err(format!("{h} it"));
        }
        if let Some(u) = self.links.values().find(|u| u.link.lower == l.ifindex) {
            return Err(format!("{} is on top of it", u.link.name));
        }
        if let Some(r) = self.topo.reasons.get(&lower.ifindex) {
            return Err(format!("{}: {r}", lower.name));
        }
        match lower.kind {
            LinkKind::Swp { port } => match (1..=self.config.ports).contains(&port) {
                true if self.vrf_master(lower).is_some() => Ok(RifPlace::PortVlan(port, vid)),
                true => Err(format!("{} is in a bridge", lower.name)),
                false => Err(format!("the chip has no port {port}")),
            },
            LinkKind::Bond(_) => match self.topo.port_of.get(&lower.ifindex) {
                Some(port) if self.vrf_master(lower).is_some() => {
                    Ok(RifPlace::PortVlan(*port, vid))
                }
                Some(_) => Err(format!("{} is in a bridge", lower.name)),
                None => Err(format!("{} is no group of the chip", lower.name)),
            },
            LinkKind::Bridge(b) if !b.vlan_filtering => Err(format!(
                "a VLAN interface on {}, which does not filter by VLAN, is not offloaded",
                lower.name
            )),
            LinkKind::Bridge(_) => match self.vlans.get(&(lower.ifindex, vid)) {
                None => Err(format!("{} itself is not in VLAN {}", lower.name, vid)),
                Some(x) if x.0.untagged => {
                    Err(format!("{} gets VLAN {} untagged itself", lower.name, vid))
                }
                Some(_) => {
                    let d = Domain {
                        dev: lower.ifindex,
                        vlan: vid,
                    };
                    let fid = self.topo.fid_of.get(&d).copied();
                    fid.map(RifPlace::Vlan)
                        .ok_or_else(|| format!("no front-panel port is in VLAN {vid}"))
                }
            },
            _ => Err(format!(
                "{} is neither a front-panel port nor a bridge of such",
                lower.name
            )),
        }
    }

    /// Why VLAN interfaces have no router interface.
    pub(crate) fn vlan_device_reasons(&mut self) {
        let mut found = Vec::new();
        for (i, r) in &self.links {
            if let LinkKind::Vlan { vid } = r.link.kind
                && let Err(reason) = self.vlan_place(&r.link, vid)
            {
                found.push((*i, reason));
            }
        }
        self.topo.reasons.extend(found);
    }

    // -- forwarding domains -----------------------------------------------------------------------------------------

    pub(crate) fn refresh_domains(
        &mut self,
        bridges: &BTreeMap<u32, (BridgeInfo, String)>,
        now: u64,
    ) {
        let mut wanted: BTreeSet<Domain> = BTreeSet::new();
        for (b, (info, reason)) in bridges {
            if !reason.is_empty() {
                self.topo.reasons.insert(*b, reason.clone());
            }
            if !info.vlan_filtering {
                wanted.insert(Domain { dev: *b, vlan: 0 });
                continue;
            }
            let ports = self
                .links
                .values()
                .map(|r| &r.link)
                .filter(|l| l.master == *b && self.topo.port_of.contains_key(&l.ifindex));
            for p in ports {
                let vids = self.vlans_of(p.ifindex).map(|v| v.vid);
                wanted.extend(vids.map(|vlan| Domain { dev: *b, vlan }));
            }
        }
        let gone: Vec<(Domain, u32)> = self
            .topo
            .fid_of
            .iter()
            .filter(|(d, _)| !wanted.contains(d))
            .map(|(d, f)| (*d, *f))
            .collect();
        for (d, f) in gone {
            self.topo.fid_of.remove(&d);
            self.topo.domain_of.remove(&f);
            // What the chip has learned there goes with it: if the domain comes back, it is to be written.
            for (_, rec) in self.fdb.iter_mut().filter(|(k, _)| Domain::of(k) == d) {
                rec.device = None;
            }
            self.hw.want::<Vlan>(f, None, now);
        }
        for d in wanted {
            if !self.topo.fid_of.contains_key(&d) {
                let f = self.hw.vlans.take();
                self.topo.fid_of.insert(d, f);
                self.topo.domain_of.insert(f, d);
            }
            if let Some(&f) = self.topo.fid_of.get(&d) {
                self.want_vlan(f, now);
            }
        }
    }

    /// The VLAN object of a domain as it should be now.
    pub(crate) fn want_vlan(&mut self, f: u32, now: u64) {
        let Some(&d) = self.topo.domain_of.get(&f) else {
            return;
        };
        let Some(link) = self.links.get(&d.dev).map(|r| &r.link) else {
            return;
        };
        let LinkKind::Bridge(info) = link.kind else {
            return;
        };
        // With ageing time 0 the kernel's bridge learns nothing, and on the chip it would mean never: what was learned
        // ages away at once instead.
        let mut flags = match info.learning_limited {
            _ if info.ageing_s == 0 => 0,
            // the kernel counts what it has learned itself, and nothing else
            true => TND_VLAN_CPU_LEARN,
            false => TND_VLAN_LEARNING,
        };
        if info.no_link_local_learning {
            flags |= TND_VLAN_NO_LL_LEARN;
        }
        // The bridge's own device takes part: always without VLAN filtering, with it where it is a member.
        if link.admin_up && (d.vlan == 0 || self.vlans.contains_key(&(d.dev, d.vlan))) {
            flags |= TND_VLAN_CPU_COPY;
        }
        flags |= self.multicast_flags(f, d.dev, &info);
        // A missing entry would be flooded: unknown unicast goes to the CPU instead.
        if self.fdb_failed.contains_key(&f) || self.knocking.contains_key(&d) {
            flags |= TND_VLAN_UC_TRAP;
        }
        self.hw.want(
            f,
            Some(Vlan {
                flags,
                ageing_s: info.ageing_s.max(1),
            }),
            now,
        );
    }

    // -- memberships ------------------------------------------------------------------------------------------------

    /// Memberships that a front-panel port should have.
    pub(crate) fn port_members(&self, port: u16, l: &Link) -> Members {
        let mut out = Members::new();
        let lag = self.lag_of_port(port);
        let mut put = |dev, vlan, vid, flags| {
            if let Some(&f) = self.topo.fid_of.get(&Domain { dev, vlan }) {
                let member = Member {
                    vlan: f,
                    port,
                    vid,
                    flags,
                    lag,
                };
                out.insert((port, vid), member);
            }
        };
        if l.bridge_port.is_none() {
            return out;
        }
        let any = TND_MEMBER_PVID | TND_MEMBER_UNTAGGED;
        put(l.master, 0, TND_VID_ANY, any);
        for v in self.vlans_of(l.ifindex) {
            let flag = |on, f| if on { f } else { 0 };
            let flags = flag(v.pvid, TND_MEMBER_PVID) | flag(v.untagged, TND_MEMBER_UNTAGGED);
            put(l.master, v.vid, v.vid, flags);
        }
        out
    }

    /// Makes a port's memberships those wanted. The chip has a port VLAN-aware or not: memberships of the one kind go
    /// before those of the other come. True: that is under way.
    pub(crate) fn want_members(&mut self, port: u16, mut wanted: Members, now: u64) -> bool {
        let is_any = |vid: u16| vid == TND_VID_ANY;
        let there: Vec<(u16, u32)> = self
            .member_ids
            .range((port, 0)..=(port, u16::MAX))
            .map(|(k, id)| (k.1, *id))
            .collect();
        let on_chip = |s: &Self, id| {
            let o = s.hw.members.get(id);
            o.is_some_and(|o| o.have.is_some() || !matches!(o.sent, Sent::Nothing))
        };
        let kind = wanted.keys().next().map(|k| is_any(k.1));
        let other = there
            .iter()
            .any(|(vid, id)| kind.is_some_and(|k| k != is_any(*vid)) && on_chip(self, *id));
        let all_there = wanted.iter().all(|(k, m)| {
            let id = self.member_ids.get(k);
            id.and_then(|id| self.hw.members.get(*id))
                .is_some_and(|o| o.have.as_ref() == Some(m))
        });
        if other {
            self.topo.switching.insert(port);
            wanted.clear();
        } else if all_there {
            self.topo.switching.remove(&port);
        }
        for (vid, id) in there {
            if !wanted.contains_key(&(port, vid)) {
                self.hw.want::<Member>(id, None, now);
            }
        }
        // The new PVID before the old one is none any more: untagged frames have a domain all the time.
        let pvid_first = |m: &Member| m.flags & TND_MEMBER_PVID == 0;
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort_by_key(|(k, m)| (pvid_first(m), k.1));
        for (key, m) in wanted {
            let id = match self.member_ids.get(&key) {
                Some(id) => *id,
                None => {
                    let id = self.hw.members.take();
                    self.member_ids.insert(key, id);
                    self.member_keys.insert(id, key);
                    id
                }
            };
            self.hw.want(id, Some(m), now);
        }
        self.topo.switching.contains(&port)
    }

    /// Why a bridge is incomplete on the chip: a domain, or a port's membership, that did not get there.
    pub(crate) fn incomplete(&self, bridge: u32) -> Option<String> {
        let of_bridge = |f: u32| self.topo.domain_of.get(&f).is_some_and(|d| d.dev == bridge);
        for (d, f) in &self.topo.fid_of {
            if d.dev == bridge
                && let Some(o) = self.hw.vlans.get(*f)
                && let (Some(fail), Some(_)) = (&o.fail, &o.want)
            {
                return Some(format!("VLAN {}: {}", d.vlan, self.fail_text(fail)));
            }
        }
        for (key, id) in &self.member_ids {
            if let Some(o) = self.hw.members.get(*id)
                && let (Some(fail), Some(m)) = (&o.fail, &o.want)
                && of_bridge(m.vlan)
            {
                let port = self.topo.if_of_port.get(&key.0).map(|i| self.dev(*i));
                return Some(format!(
                    "{} in VLAN {}: {}",
                    port.unwrap_or_default(),
                    key.1,
                    self.fail_text(fail)
                ));
            }
        }
        None
    }

    /// A membership came to stand or failed.
    pub(crate) fn member_changed(&mut self, id: u32) {
        let o = self.hw.members.get(id);
        let failed = o.is_some_and(|o| o.fail.is_some() && o.want.is_some());
        let switching = self
            .member_keys
            .get(&id)
            .is_some_and(|k| self.topo.switching.contains(&k.0));
        self.degraded_by(failed);
        self.topo.dirty |= switching;
    }

    /// A domain came to stand or failed.
    pub(crate) fn vlan_changed(&mut self, id: u32) {
        let o = self.hw.vlans.get(id);
        self.degraded_by(o.is_some_and(|o| o.fail.is_some() && o.want.is_some()));
    }

    fn degraded_by(&mut self, failed: bool) {
        if failed || self.topo.degraded {
            self.topo.degraded = self.hw.vlans.failed() + self.hw.members.failed() > 0;
            self.topo.dirty = true;
        }
    }

    /// Why an FDB entry's domain is not on the chip.
    pub(crate) fn no_domain_text(&self, k: &FdbKey) -> String {
        self.no_domain_of(k.bridge, k.vlan)
    }

    /// Why what is known of a bridge's VLAN is not on the chip.
    pub(crate) fn no_domain_of(&self, dev: u32, vlan: u16) -> String {
        let bridge = self.dev(dev);
        match self.links.get(&dev).map(|r| &r.link.kind) {
            Some(LinkKind::Bridge(b)) if b.vlan_filtering && vlan == 0 => {
                format!("{bridge} filters by VLAN: an entry without one answers nothing")
            }
            Some(LinkKind::Bridge(b)) if !b.vlan_filtering && vlan != 0 => {
                format!("{bridge} does not filter by VLAN: an entry of one answers nothing")
            }
            _ if vlan != 0 => format!("no front-panel port of {bridge} is in VLAN {vlan}"),
            _ => format!("{bridge} has no front-panel port"),
        }
    }

    /// The sweep is over: what stood in the place of a membership is gone.
    pub(crate) fn retry_members(&mut self) {
        for id in self.hw.members.ids() {
            self.hw.retry_dependent(Ref::new(Cls::Member, id));
        }
    }
}

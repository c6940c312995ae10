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
use crate::hw::{CLASSES, Cls, Fail, Ref};
use crate::model::{BR_STATE_FORWARDING, BridgeVlan, FdbKey, Link, LinkKind, SourceId};
use crate::reason::Reason;
use crate::slices::{Span, Walk};
use std::collections::BTreeMap;
use tandem_abi::raw::*;

/// Memberships by port and VID.
pub(crate) type Members = BTreeMap<(u16, u16), Member>;

impl Domain {
    pub(crate) const FIRST: Domain = Domain { dev: 0, vlan: 0 };
    pub(crate) const LAST: Domain = Domain {
        dev: u32::MAX,
        vlan: u16::MAX,
    };

    /// Of an FDB entry.
    pub(crate) fn of(key: &FdbKey) -> Domain {
        Domain {
            dev: key.bridge,
            vlan: key.vlan,
        }
    }
}

/// It may take what goes up in a bridge's VLAN: of TUNs and TAPs alone is what they send a VLAN's.
fn is_tap(l: &Link) -> bool {
    matches!(&l.kind, LinkKind::Other(kind) if kind == "tun")
}

impl Store {
    pub(crate) fn upsert_bridge_vlan(&mut self, source: SourceId, v: BridgeVlan, generation: u16) {
        let key = (v.ifindex, v.vid);
        let old = self.vlans.insert(key, (v, source.0, generation));
        if old.is_some_and(|o| o.0 == v) {
            self.counters.unchanged += 1;
        } else {
            self.bridge_vlan_changed(old.map(|o| o.0).as_ref(), Some(&v));
        }
    }

    pub(crate) fn remove_bridge_vlan(&mut self, ifindex: u32, vid: u16) {
        if let Some((old, ..)) = self.vlans.remove(&(ifindex, vid)) {
            self.bridge_vlan_changed(Some(&old), None);
        }
    }

    /// VLANs of a port, or of a bridge itself.
    pub(crate) fn vlans_of(&self, ifindex: u32) -> impl Iterator<Item = &BridgeVlan> {
        self.vlans
            .range((ifindex, 0)..=(ifindex, u16::MAX))
            .map(|(_, v)| &v.0)
    }

    /// Why a bridge with VLAN filtering that has this port can't be offloaded.
    pub(crate) fn port_vlan_reason(&self, ifindex: u32) -> Option<Reason> {
        let all = (ifindex, 0)..=(ifindex, u16::MAX);
        let odd = self.topo.odd_vlans.range(all);
        odd.filter_map(|k| self.vlans.get(k)).find_map(|(v, ..)| {
            if v.state != BR_STATE_FORWARDING {
                Some(Reason::VlanState(v.vid))
            } else {
                Some(Reason::VlanOption(v.unsupported?, v.vid))
            }
        })
    }

    // -- VLAN interfaces --------------------------------------------------------------------------------------------

    /// A VLAN interface whose frames the chip can tell from those of the device beneath, and which wants no others.
    pub(crate) fn plain_vlan(&self, l: &Link, lower: &Link) -> bool {
        matches!(l.kind, LinkKind::Vlan { vid } if (1..=4094).contains(&vid))
            && l.mac == lower.mac
            && self.vrf_master(l).is_some()
            && self.devices_on(l.ifindex).next().is_none()
            && self.hooked(l).is_none()
    }

    /// What a device is on, and with which VID, if its packets are those of a VLAN: a VLAN interface says it itself, of
    /// any other one a bridge may say that it takes what goes up there.
    pub(crate) fn vlan_of(&self, l: &Link) -> Option<(u32, u16)> {
        match l.kind {
            LinkKind::Vlan { vid } => Some((l.lower, vid)),
            _ if is_tap(l) => self.vlans_taken_by(l.ifindex).next(),
            _ => None,
        }
    }

    /// VLANs of bridges of which a device takes what goes up.
    pub(crate) fn vlans_taken_by(&self, tap: u32) -> impl Iterator<Item = (u32, u16)> {
        let all = self
            .topo
            .taps
            .range((tap, 0, 0)..=(tap, u32::MAX, u16::MAX));
        all.map(|(_, bridge, vid)| (*bridge, *vid))
    }

    /// The place of the router interface of a device of this VLAN, or why it has none.
    pub(crate) fn vlan_place(&self, l: &Link, on: u32, vid: u16) -> Result<RifPlace, Reason> {
        let Some(lower) = self.links.get(&on).map(|r| &r.link) else {
            return Err(Reason::NothingBeneath);
        };
        let is_tap = is_tap(l);
        if is_tap && self.vlans_taken_by(l.ifindex).nth(1).is_some() {
            return Err(Reason::SeveralVlans);
        }
        if let Some(h) = self.hooked(l) {
            return Err(Reason::Hooked(h));
        }
        if let Some(u) = self.devices_on(l.ifindex).next() {
            return Err(Reason::OnTop(u.name.clone()));
        }
        let name = || lower.name.clone();
        let stacked = matches!(lower.kind, LinkKind::Vlan { .. });
        if let (false, Some(r)) = (stacked, self.topo.reasons.get(&lower.ifindex)) {
            return Err(Reason::Of(name(), r.clone().into()));
        }
        match lower.kind {
            LinkKind::Swp { port } => match (1..=self.config.ports).contains(&port) {
                true if self.vrf_master(lower).is_some() => Ok(RifPlace::PortVlan(port, vid)),
                true => Err(Reason::InBridge(name())),
                false => Err(Reason::NoSuchPort(port)),
            },
            LinkKind::Bond(_) => match self.topo.port_of.get(&lower.ifindex) {
                Some(port) if self.vrf_master(lower).is_some() => {
                    Ok(RifPlace::PortVlan(*port, vid))
                }
                Some(_) => Err(Reason::InBridge(name())),
                None => Err(Reason::NoGroup(name())),
            },
            LinkKind::Bridge(b) if !b.vlan_filtering => Err(Reason::OnPlainBridge(name())),
            LinkKind::Bridge(_) => match self.vlans.get(&(lower.ifindex, vid)) {
                None => Err(Reason::BridgeNotIn(name(), vid)),
                // a place has one router interface
                Some(x) if x.0.tap != 0 && !is_tap => {
                    Err(Reason::TakenByTap(vid, self.dev(x.0.tap)))
                }
                Some(x) if x.0.untagged => Err(Reason::BridgeUntagged(name(), vid)),
                Some(_) => {
                    let d = Domain {
                        dev: lower.ifindex,
                        vlan: vid,
                    };
                    let fid = self.topo.fid_of.get(&d).copied();
                    fid.map(RifPlace::Vlan).ok_or(Reason::NobodyInVlan(vid))
                }
            },
            _ => Err(Reason::NeitherPortNorBridge(name())),
        }
    }

    /// Why the next VLAN interface has no router interface.
    pub(crate) fn step_vlan_devices(&mut self) -> bool {
        let Some(i) = self.topo.dirty.vlan_devices.pop_first() else {
            return false;
        };
        // it takes as long as two others
        self.slices.left_over(1);
        self.slices.look();
        if let Some(l) = self.links.get(&i).map(|r| &r.link)
            && let LinkKind::Vlan { .. } | LinkKind::Other(_) = l.kind
        {
            let of_vlan = self.vlan_of(l);
            let reason = of_vlan.and_then(|(on, vid)| self.vlan_place(l, on, vid).err());
            self.set_reason(i, reason);
            // the place may be another one
            self.topo.dirty.rifs.insert(i);
        }
        true
    }

    // -- forwarding domains -----------------------------------------------------------------------------------------

    /// Domains of the next bridge whose VLANs may be others: those that there are, and those that its ports ask for.
    pub(crate) fn step_vlan_set(&mut self, now: u64) -> bool {
        let Some(dev) = self.topo.dirty.vlan_sets.pop_first() else {
            return false;
        };
        self.topo.looked_bridges.insert(dev);
        let there = self.topo.domains_of(dev);
        self.slices.left_over(there.len());
        self.topo.dirty.domains.extend(there);
        match self.topo.bridges.get(&dev) {
            None => {}
            Some((info, _)) if !info.vlan_filtering => {
                self.topo.dirty.domains.insert(Domain { dev, vlan: 0 });
            }
            Some(_) => self.walk(Walk::VlansIn(Span::new((dev, 0), (dev, u32::MAX))), now),
        }
        true
    }

    /// The domains that one port of a bridge asks for.
    pub(crate) fn step_vlans_in(&mut self, s: Span<(u32, u32)>) -> bool {
        let Some(&at) = self.topo.within.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::VlansIn(s.behind(at)));
        let (dev, i) = at;
        if self.topo.port_of.contains_key(&i) {
            let of_it: Vec<u16> = self.vlans_of(i).map(|v| v.vid).collect();
            self.slices.left_over(of_it.len().saturating_sub(1));
            for vlan in of_it {
                self.slices.look();
                self.topo.dirty.domains.insert(Domain { dev, vlan });
            }
        }
        true
    }

    /// Domains go before others come.
    pub(crate) fn step_gone(&mut self, s: Span<Domain>, now: u64) -> bool {
        let Some(&d) = self.topo.dirty.domains.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::Gone(s.behind(d)));
        if self.topo.fid_of.contains_key(&d) && !self.domain_wanted(d) {
            self.domain_goes(d, now);
        }
        true
    }

    /// The next domain that is to be looked at.
    pub(crate) fn step_come(&mut self, now: u64) -> bool {
        let Some(d) = self.topo.dirty.domains.pop_first() else {
            return false;
        };
        self.topo.looked_bridges.insert(d.dev);
        if let Some(&f) = self.topo.fid_of.get(&d) {
            self.want_vlan(f, now);
        } else if self.domain_wanted(d) {
            let f = self.hw.vlans.take();
            self.topo.fid_of.insert(d, f);
            self.topo.domain_of.insert(f, d);
            self.mark_domain(d);
            self.want_vlan(f, now);
        }
        true
    }

    fn domain_goes(&mut self, d: Domain, now: u64) {
        let Some(f) = self.topo.fid_of.remove(&d) else {
            return;
        };
        self.topo.domain_of.remove(&f);
        self.fdb_failed.remove(&f);
        // What the chip has learned there goes with it: if the domain comes back, it is to be written.
        self.walk(Walk::Forget(FdbKey::in_domain(d)), now);
        self.hw.want::<Vlan>(f, None, now);
        self.mark_domain(d);
    }

    /// Why the frames of the next bridge are the kernel's.
    pub(crate) fn step_bridge_reason(&mut self) -> bool {
        let Some(b) = self.topo.looked_bridges.pop_first() else {
            return false;
        };
        let of_bridge = self.topo.bridges.get(&b).and_then(|b| b.1.clone());
        let reason = of_bridge.or_else(|| self.bridge_device_reason(b));
        let bridge = |r: &crate::topo::LinkRec| matches!(r.link.kind, LinkKind::Bridge(_));
        if self.links.get(&b).is_some_and(bridge) {
            self.set_reason(b, reason);
        }
        true
    }

    fn domain_wanted(&self, d: Domain) -> bool {
        match self.topo.bridges.get(&d.dev) {
            None => false,
            Some((info, _)) if !info.vlan_filtering => d.vlan == 0,
            Some(_) => {
                let mut ports = self.devices_in(d.dev).map(|l| l.ifindex);
                ports.any(|i| {
                    self.topo.port_of.contains_key(&i) && self.vlans.contains_key(&(i, d.vlan))
                })
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
        flags |= self.multicast_flags(f, d);
        // A missing entry would be flooded: unknown unicast goes to the CPU instead.
        if self.fdb_failed.contains_key(&f) || self.knocking.contains_key(&d) {
            flags |= TND_VLAN_UC_TRAP;
        }
        self.hw.want(
            f,
            Some(Vlan {
                domain: d,
                flags,
                ageing_s: info.ageing_s.max(1),
            }),
            now,
        );
        self.look_complete(Ref::new(Cls::Vlan, f), false);
    }

    // -- memberships ------------------------------------------------------------------------------------------------

    /// Memberships that a front-panel port should have.
    pub(crate) fn port_members(&self, port: u16, l: &Link) -> Members {
        let any = self.member(port, l, 0, TND_MEMBER_PVID | TND_MEMBER_UNTAGGED);
        let tagged = self
            .vlans_of(l.ifindex)
            .map(|v| self.vlan_member(port, l, v));
        let all = std::iter::once(any).chain(tagged).flatten();
        all.map(|m| ((port, m.vid), m)).collect()
    }

    fn vlan_member(&self, port: u16, l: &Link, v: &BridgeVlan) -> Option<Member> {
        let flag = |on, f| if on { f } else { 0 };
        let flags = flag(v.pvid, TND_MEMBER_PVID) | flag(v.untagged, TND_MEMBER_UNTAGGED);
        self.member(port, l, v.vid, flags)
    }

    /// A port's membership in a VLAN of its bridge, or (0) in a bridge without VLANs.
    fn member(&self, port: u16, l: &Link, vlan: u16, flags: u32) -> Option<Member> {
        l.bridge_port?;
        let domain = Domain {
            dev: l.master,
            vlan,
        };
        Some(Member {
            vlan: *self.topo.fid_of.get(&domain)?,
            port,
            vid: domain.vid(),
            flags,
            lag: self.lag_of_port(port),
        })
    }

    /// All memberships of one port, as they should be; how many are looked at for that.
    pub(crate) fn want_all_members(&mut self, port: u16, now: u64) -> usize {
        let link = self.link_of_port(port);
        let wanted = link.map_or_else(Members::new, |l| self.port_members(port, l));
        let there = self.member_ids.range((port, 0)..=(port, u16::MAX));
        let n = wanted.len() + there.count();
        let was = self.topo.switching.contains(&port);
        if self.want_members(port, wanted, now) != was {
            self.topo.dirty.ports.insert(port);
        }
        n
    }

    /// Memberships of a port of which one says nothing of the others: no other kind is there.
    pub(crate) fn members_alone(&self, port: u16) -> bool {
        !self.member_ids.contains_key(&(port, TND_VID_ANY))
            && !self.topo.switching.contains(&port)
            && self.link_of_port(port).is_some()
    }

    /// Some of them: where they are not alone, all.
    pub(crate) fn want_some_members(&mut self, port: u16, some: &[(u16, u16)], now: u64) -> usize {
        let alone = self.members_alone(port);
        let Some(l) = self.link_of_port(port).filter(|_| alone) else {
            return self.want_all_members(port, now);
        };
        let mut wanted = Members::new();
        for (_, vid) in some {
            let vlan = self.vlans.get(&(l.ifindex, *vid)).map(|v| &v.0);
            if let Some(m) = vlan.and_then(|v| self.vlan_member(port, l, v)) {
                wanted.insert((port, *vid), m);
            }
        }
        for key in some.iter().filter(|k| !wanted.contains_key(k)) {
            if let Some(id) = self.member_ids.get(key) {
                self.want_member(port, *id, None, now);
            }
        }
        self.put_members(wanted, now);
        some.len()
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
        }
        for (vid, id) in there {
            if !wanted.contains_key(&(port, vid)) {
                self.want_member(port, id, None, now);
            }
        }
        self.put_members(wanted, now);
        // also where the last one that was to be another is so no more by this: none will answer for it
        if !other && all_there && self.members_answered(port) {
            self.topo.switching.remove(&port);
        }
        self.topo.switching.contains(&port)
    }

    fn put_members(&mut self, wanted: Members, now: u64) {
        // The new PVID before the old one is none any more: untagged frames have a domain all the time.
        let pvid_first = |m: &Member| m.flags & TND_MEMBER_PVID == 0;
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort_by_key(|(k, m)| (pvid_first(m), k.1));
        for (key, m) in wanted {
            let id = *self.member_ids.entry(key).or_insert_with(|| {
                let id = self.hw.members.take();
                self.member_keys.insert(id, key);
                id
            });
            self.want_member(key.0, id, Some(m), now);
            self.look_complete(Ref::new(Cls::Member, id), false);
        }
    }

    fn want_member(&mut self, port: u16, id: u32, want: Option<Member>, now: u64) {
        if self.hw.members.at(id).is_settled(want.as_ref()) {
            // wanted otherwise for a moment alone: none will answer for it
            self.topo.moving.remove(&(port, id));
            self.look_who_floods(port);
        } else {
            self.topo.moving.insert((port, id));
        }
        self.hw.want(id, want, now);
    }

    /// Why a bridge is incomplete on the chip: a domain, or a port's membership, that did not get there.
    pub(crate) fn incomplete(&self, bridge: u32) -> Option<Reason> {
        let all = self.topo.lacks.range((bridge, Ref::new(CLASSES[0], 0))..);
        let of_it = all.take_while(|x| x.0 == bridge);
        let why = |fail: Option<&Fail>| -> Box<Reason> {
            Box::new(fail.map_or(Reason::NotWritten, |f| self.fail_reason(f)))
        };
        for (_, Ref { cls, id }) in of_it {
            let reason = match cls {
                Cls::Vlan => {
                    let there = self.hw.vlans.get(*id).zip(self.topo.domain_of.get(id));
                    there.map(|(o, d)| Reason::Domain {
                        vlan: d.vlan,
                        why: why(o.failed()),
                    })
                }
                _ => {
                    let there = self.hw.members.get(*id).zip(self.member_keys.get(id));
                    there.map(|(o, (port, vlan))| {
                        let port = self.topo.if_of_port.get(port).map(|i| self.dev(*i));
                        Reason::Membership {
                            port: port.unwrap_or_default(),
                            vlan: *vlan,
                            why: why(o.failed()),
                        }
                    })
                }
            };
            if reason.is_some() {
                return reason;
            }
        }
        None
    }

    /// Whether a domain or a membership that is wanted failed: where that is new, or no longer so, its bridge is looked at, and
    /// where the chip has `answered`. One that had no room, and was not wanted for a moment, still has none: nobody will say so.
    fn look_complete(&mut self, r: Ref, answered: bool) {
        let domain = match r.cls {
            Cls::Vlan => (self.hw.vlans.get(r.id).filter(|o| o.missing())).map(|_| r.id),
            _ => {
                let member = self.hw.members.get(r.id).filter(|o| o.missing());
                member.and_then(|o| Some(o.want.as_ref()?.vlan))
            }
        };
        let dev = domain
            .and_then(|f| self.topo.domain_of.get(&f))
            .map(|d| d.dev);
        let before = match dev {
            Some(dev) => self.topo.incomplete.insert(r, dev),
            None => self.topo.incomplete.remove(&r),
        };
        if before != dev {
            let lacks = &mut self.topo.lacks;
            before.map(|d| lacks.remove(&(d, r)));
            lacks.extend(dev.map(|d| (d, r)));
        }
        if answered || before != dev {
            self.topo
                .dirty
                .bridges
                .extend(before.into_iter().chain(dev));
        }
    }

    /// A membership came to stand or failed.
    pub(crate) fn member_changed(&mut self, id: u32) {
        self.look_complete(Ref::new(Cls::Member, id), true);
        if let Some((port, _)) = self.member_keys.get(&id).copied() {
            self.look_whether_switched(port);
        }
    }

    /// A domain came to stand or failed.
    pub(crate) fn vlan_changed(&mut self, r: Ref, now: u64) {
        self.look_complete(r, true);
        self.base_changed(r, now);
    }

    /// Why what is known of a bridge's VLAN is not on the chip.
    pub(crate) fn no_domain(&self, dev: u32, vlan: u16) -> Reason {
        let bridge = self.dev(dev);
        match self.links.get(&dev).map(|r| &r.link.kind) {
            Some(LinkKind::Bridge(b)) if b.vlan_filtering && vlan == 0 => {
                Reason::FiltersByVlan(bridge)
            }
            Some(LinkKind::Bridge(b)) if !b.vlan_filtering && vlan != 0 => {
                Reason::FiltersNoVlan(bridge)
            }
            _ if vlan != 0 => Reason::NoPortInVlan(bridge, vlan),
            _ => Reason::NoPort(bridge),
        }
    }
}

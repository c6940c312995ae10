//! What is to be looked at again after an event, and what follows from what.
//!
//! ```text
//!   everything ─► which netdev is which port, which bond a group; another kind of device; attaches: all sets are filled
//!
//!   rule, settings, chain ► router ── another reason ─► all rifs;  rules and VRFs look at some: those rifs
//!   chain, filter of a device ► that device and what asks for its hooks;  other chains, settings: bridges with ports
//!   name ────────────────► the same, and who has it in a reason
//!   VRF ─────────────────► vrfs;  what is in it, on that and beneath
//!   bond, its ports, what is on those ► lags ─┬─ groups are others ─► everything
//!                                             └─ another reason ─► the bond and its ports
//!
//!   link of a port ──────► ports ──► reasons ─┬─► VLAN interfaces on it ─► reasons ─► rifs
//!     its master changed ─► bridges, memberships, stations    └─► rehide: may its bridge's RIFs stand? ─► rifs
//!   link of a bridge ────► bridges, ports of it; domains of it (flags); with another reason: VLAN interfaces, rif
//!   link of a VLAN device ► vlan_devices ─► rifs;  what it is on: ports, bridges, vlan_devices
//!   VLAN of a port ──────► domains ─┬─► members, stations, VLAN interfaces with its VID, rif of the bridge
//!                          member   └─► the VLAN object
//!   VLAN of a bridge ────► domains, VLAN interfaces with its VID, rif (PVID)
//!   address, sysctl of an interface, first and last gateway ─► rifs ─► gateways and neighbours on it, paths over it
//!   domain, membership that failed, or no longer ─► bridges
//!   filter at a port ────► its rules;  a port that has filters, or that they send to: lists of who asks
//! ```
//!
//! Each stage of [`Store::refresh_topology`] takes its set and fills those of later stages where its result is another
//! one; none fills an earlier one.

use crate::Store;
use crate::api::Domain;
use crate::model::{BR_STATE_FORWARDING, BaseChain, BridgeVlan, FilterKey, Link, LinkKind, Rule};
use crate::reason::Reason;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Sets of what to look at, in the order in which it is done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirty {
    /// Everything.
    pub all: bool,
    /// Why everything routed traps.
    pub router: bool,
    /// Bonds: which are groups, of whom?
    pub lags: bool,
    /// VRFs: is one wanted?
    pub vrfs: bool,
    /// Bridges: can they be offloaded?
    pub bridges: BTreeSet<u32>,
    /// Bridges whose domains may be others.
    pub vlan_sets: BTreeSet<u32>,
    /// One domain: is it wanted, and how?
    pub domains: BTreeSet<Domain>,
    /// Ports all of whose memberships are looked at.
    pub memberships: BTreeSet<u16>,
    /// Single memberships, by port and VID.
    pub members: BTreeSet<(u16, u16)>,
    /// Ports.
    pub ports: BTreeSet<u16>,
    /// VLAN interfaces: can they have a router interface?
    pub vlan_devices: BTreeSet<u32>,
    /// Masters of devices that got a reason, or lost theirs.
    pub rehide: BTreeSet<u32>,
    /// Interfaces: have they a router interface, and which?
    pub rifs: BTreeSet<u32>,
    /// All lists of filters.
    pub filters: bool,
    /// Devices whose filters are others.
    pub lists: BTreeSet<u32>,
    /// Single filters of ports.
    pub rules: BTreeSet<FilterKey>,
    /// Interfaces with another router interface: gateways and neighbours there.
    pub neighbours: BTreeSet<u32>,
    /// Domains that came, went or are other ones: stations and groups there.
    pub stations: BTreeSet<Domain>,
    /// Devices with another master: stations behind them.
    pub behind: BTreeSet<u32>,
    /// Bridges whose groups look again.
    pub groups: BTreeSet<u32>,
}

impl Dirty {
    /// Something is to be looked at.
    pub fn any(&self) -> bool {
        *self != Dirty::default()
    }
}

/// One with a state or options of its own.
pub(super) fn odd(v: &BridgeVlan) -> bool {
    v.state != BR_STATE_FORWARDING || v.unsupported.is_some()
}

impl Store {
    /// A device came, changed or went. `self.links` has it as it is now.
    pub(super) fn link_changed(&mut self, old: Option<&Link>, new: Option<&Link>) {
        self.index_link(old, new);
        if self.concerns_all(old, new) {
            self.topo.dirty.all = true;
            return;
        }
        let (Some(l), both) = (new.or(old), old.zip(new)) else {
            return;
        };
        let i = l.ifindex;
        let at_bond = old.into_iter().chain(new).any(|l| self.of_bond(l));
        self.topo.dirty.lags |= at_bond;
        let differs = |f: fn(&Link, &Link) -> bool| both.is_none_or(|(a, b)| f(a, b));
        let moved = differs(|a, b| a.master != b.master);
        let said = || old.into_iter().chain(new);
        self.mark_device(i);
        if differs(|a, b| (a.lower, a.mac, a.master) != (b.lower, b.mac, b.master)) {
            for l in said() {
                self.mark_beneath(l.lower);
            }
        }
        if moved || differs(|a, b| a.kind != b.kind) {
            self.mark_vlan_devices_on(i);
        }
        if moved || differs(|a, b| a.bridge_port.is_some() != b.bridge_port.is_some()) {
            if let Some(port) = self.topo.port_of.get(&i) {
                self.topo.dirty.memberships.insert(*port);
            }
            self.topo.dirty.behind.insert(i);
            self.mark_unheard();
            let vids: Vec<u16> = self.vlans_of(i).map(|v| v.vid).collect();
            for dev in said().map(|l| l.master).filter(|m| *m != 0) {
                let d = &mut self.topo.dirty;
                d.bridges.insert(dev);
                d.rehide.insert(dev);
                d.domains
                    .extend(vids.iter().map(|&vlan| Domain { dev, vlan }));
            }
        }
        // whether one of its ports is in service decides about a bridge that is down
        let state = |l: Option<&Link>| l.and_then(|l| Some((l.master, l.bridge_port?.state)));
        if state(old) != state(new) {
            let bridges = said().map(|l| l.master).filter(|m| *m != 0);
            self.topo.dirty.rifs.extend(bridges);
        }
        let unsupported =
            |l: Option<&Link>| l.and_then(|l| l.bridge_port).and_then(|p| p.unsupported);
        if both.is_none() || unsupported(old) != unsupported(new) {
            let of_it = self.groups.bridges_of_member(i);
            self.topo.dirty.groups.extend(of_it);
        }
        if moved || differs(|a, b| a.mtu != b.mtu) {
            self.mark_lists(i);
        }
        if differs(|a, b| a.name != b.name) && both.is_some() {
            for l in said() {
                self.mark_name(l);
            }
        }
        if both.is_none() {
            // they have its name in their reasons
            self.mark_taken(i);
            self.mark_ports_of(i, false);
            if let LinkKind::Bond(_) = l.kind {
                let t = &self.topo;
                let within = t.within.range((i, 0)..=(i, u32::MAX));
                for (_, member) in within.copied().collect::<Vec<_>>() {
                    self.mark_lists(member);
                }
            }
        }
        if let LinkKind::Vrf { .. } = l.kind {
            match differs(|a, b| a.kind != b.kind) {
                true => self.mark_vrf(i),
                false => self.mark_rifs_in(i),
            }
        }
        if matches!(l.kind, LinkKind::Bridge(_)) {
            let known = differs(|a, b| a.kind != b.kind);
            if known
                || differs(|a, b| (a.admin_up, a.mc_forwarding) != (b.admin_up, b.mc_forwarding))
            {
                let of_it = self.topo.domains_of(i);
                self.topo.dirty.domains.extend(of_it);
                self.mark_ports_of(i, false);
            }
            if known {
                self.topo.dirty.vlan_sets.insert(i);
                self.topo.dirty.groups.insert(i);
                self.topo.dirty.rehide.insert(i);
                self.mark_ports_of(i, true);
            }
        }
    }

    /// What can't be said by the sets: who is which port, and a device of another kind.
    fn concerns_all(&self, old: Option<&Link>, new: Option<&Link>) -> bool {
        let port = |l: Option<&Link>| match l.map(|l| &l.kind) {
            Some(LinkKind::Swp { port }) => Some(*port),
            _ => None,
        };
        let kind = |l: &Link| std::mem::discriminant(&l.kind);
        port(old) != port(new) || old.zip(new).is_some_and(|(a, b)| kind(a) != kind(b))
    }

    fn is_bond(&self, i: u32) -> bool {
        let kind = self.links.get(&i).map(|r| &r.link.kind);
        matches!(kind, Some(LinkKind::Bond(_)))
    }

    /// A bond, a device in one, or one on top of that.
    fn of_bond(&self, l: &Link) -> bool {
        let below = self.links.get(&l.lower).map_or(0, |r| r.link.master);
        matches!(l.kind, LinkKind::Bond(_)) || self.is_bond(l.master) || self.is_bond(below)
    }

    /// What packets pass at a device's own hooks is another: who asks for them looks again.
    pub(super) fn mark_hooked(&mut self, i: u32) {
        self.mark_device(i);
        let Some(l) = self.links.get(&i).map(|r| &r.link) else {
            return;
        };
        let (lower, master, of_bond) = (l.lower, l.master, self.of_bond(l));
        let is_vrf = matches!(l.kind, LinkKind::Vrf { .. });
        let d = &mut self.topo.dirty;
        d.lags |= of_bond;
        d.bridges.insert(master);
        self.mark_beneath(lower);
        if is_vrf {
            self.mark_rifs_in(i);
        }
    }

    /// A device has, or had, another name: chains and rules go by it, reasons have it.
    fn mark_name(&mut self, l: &Link) {
        let i = l.ifindex;
        self.mark_hooked(i);
        self.mark_taken(i);
        self.mark_vlan_devices_on(i);
        self.mark_ports_of(i, false);
        self.mark_lists(i);
        let of_it = self.groups.bridges_of_member(i);
        self.topo.dirty.groups.extend(of_it);
        if self.filters.binds_failed {
            let t = &mut self.topo;
            t.dirty.ports.extend(t.if_of_port.keys());
        }
    }

    /// VLAN interfaces in whose place a TAP is.
    fn mark_taken(&mut self, tap: u32) {
        let taken: Vec<(u32, u16)> = self.vlans_taken_by(tap).collect();
        for (bridge, vid) in taken {
            self.mark_vlan_device(bridge, vid);
        }
    }

    /// Filters of a device, and those that send there.
    fn mark_lists(&mut self, i: u32) {
        self.topo.dirty.lists.extend(self.filters.that_ask(i));
    }

    /// A VRF came, went or has another table.
    fn mark_vrf(&mut self, i: u32) {
        self.topo.dirty.vrfs = true;
        let inside: Vec<(u32, u32)> = self.devices_in(i).map(|l| (l.ifindex, l.lower)).collect();
        for (member, lower) in inside {
            self.mark_device(member);
            self.mark_beneath(lower);
            self.mark_vlan_devices_on(member);
        }
    }

    /// Interfaces of a VRF.
    fn mark_rifs_in(&mut self, vrf: u32) {
        let t = &mut self.topo;
        let inside = t.within.range((vrf, 0)..=(vrf, u32::MAX));
        t.dirty.rifs.extend(inside.map(|x| x.1));
    }

    /// A policy rule came or went: interfaces that it looks at, and those of VRFs where it is one of those that order the
    /// tables.
    pub(super) fn mark_rule(&mut self, rule: &Rule) {
        let t = &mut self.topo;
        t.dirty.router = true;
        if rule.iif.is_empty() {
            let orders = rule.is_default || rule.l3mdev;
            let of_slots = t.ingress.range(u8::from(orders)..);
            let looked = of_slots.flat_map(|(_, of_slot)| of_slot.keys());
            t.dirty.rifs.extend(looked);
            return;
        }
        for i in t.named(&rule.iif) {
            t.dirty.rifs.insert(i);
            let inside = t.within.range((i, 0)..=(i, u32::MAX));
            t.dirty.rifs.extend(inside.map(|x| x.1));
        }
    }

    /// A base chain came or went.
    pub(super) fn mark_chain(&mut self, c: &BaseChain) {
        match (c.family, c.hook) {
            (5, _) | (1, 5) => {
                let names = c.devices.iter().flat_map(|d| self.topo.named_like(d));
                for i in names.collect::<BTreeSet<u32>>() {
                    self.mark_hooked(i);
                }
            }
            _ => {
                self.topo.dirty.router = true;
                self.mark_bridges();
            }
        }
    }

    /// Bridges with ports of the chip.
    pub(super) fn mark_bridges(&mut self) {
        let t = &mut self.topo;
        t.dirty.bridges.extend(t.bridges.keys());
    }

    /// All that may be router interfaces.
    pub(super) fn mark_rifs(&mut self) {
        let t = &mut self.topo;
        t.dirty
            .rifs
            .extend(t.rif_of.keys().chain(t.routable.keys()));
    }

    fn index_link(&mut self, old: Option<&Link>, new: Option<&Link>) {
        let t = &mut self.topo;
        if let Some(l) = old {
            t.names.remove(&(l.name.clone(), l.ifindex));
            if let LinkKind::Bond(_) = l.kind {
                t.bonds.remove(&l.ifindex);
            }
            t.within.remove(&(l.master, l.ifindex));
            t.above.remove(&(l.lower, l.ifindex));
            if let LinkKind::Vlan { vid } = l.kind {
                t.vlans_on.remove(&(l.lower, vid, l.ifindex));
            }
        }
        if let Some(l) = new {
            t.names.insert((l.name.clone(), l.ifindex));
            if let LinkKind::Bond(_) = l.kind {
                t.bonds.insert(l.ifindex);
            }
            t.within.insert((l.master, l.ifindex));
            t.above.insert((l.lower, l.ifindex));
            if let LinkKind::Vlan { vid } = l.kind {
                t.vlans_on.insert((l.lower, vid, l.ifindex));
            }
        }
    }

    /// A VLAN of a port or a bridge came, changed or went.
    pub(crate) fn bridge_vlan_changed(
        &mut self,
        old: Option<&BridgeVlan>,
        new: Option<&BridgeVlan>,
    ) {
        let Some(v) = new.or(old) else {
            return;
        };
        let (i, vid) = (v.ifindex, v.vid);
        match new.is_some_and(odd) {
            true => self.topo.odd_vlans.insert((i, vid)),
            false => self.topo.odd_vlans.remove(&(i, vid)),
        };
        let taps = |v: Option<&BridgeVlan>| v.map(|v| v.tap).filter(|tap| *tap != 0);
        let t = &mut self.topo;
        if let Some(tap) = taps(old) {
            t.taps.remove(&(tap, i, vid));
        }
        if let Some(tap) = taps(new) {
            t.taps.insert((tap, i, vid));
        }
        // others may have named it as well
        t.dirty
            .vlan_devices
            .extend(taps(old).into_iter().chain(taps(new)));
        let Some(l) = self.links.get(&i).map(|r| &r.link) else {
            return;
        };
        let master = l.master;
        if matches!(l.kind, LinkKind::Bridge(_)) {
            self.topo.dirty.domains.insert(Domain { dev: i, vlan: vid });
            self.mark_vlan_device(i, vid);
            if old.into_iter().chain(new).any(|v| v.pvid) {
                self.topo.dirty.rifs.insert(i);
            }
        }
        if master == 0 {
            return;
        }
        let d = &mut self.topo.dirty;
        d.domains.insert(Domain {
            dev: master,
            vlan: vid,
        });
        if let Some(port) = self.topo.port_of.get(&i) {
            d.members.insert((*port, vid));
        }
        if old.into_iter().chain(new).any(odd) {
            d.bridges.insert(master);
        }
    }

    /// A filter at a device came or went: at a port it is one of a list, elsewhere a reason to leave what passes there to
    /// the kernel.
    pub(crate) fn filter_changed(&mut self, k: &FilterKey) {
        match self.alone(k.ifindex) {
            true => _ = self.topo.dirty.rules.insert(*k),
            false => self.mark_hooked(k.ifindex),
        }
    }

    /// A device is looked at, whatever it is.
    pub(crate) fn mark_device(&mut self, i: u32) {
        let kind = self.links.get(&i).map(|r| &r.link.kind);
        let d = &mut self.topo.dirty;
        d.rifs.insert(i);
        match kind {
            Some(LinkKind::Vlan { .. } | LinkKind::Other(_)) => _ = d.vlan_devices.insert(i),
            // one that has gone may have been a bridge
            Some(LinkKind::Bridge(_)) | None => _ = d.bridges.insert(i),
            _ => {}
        }
        if let Some(port) = self.topo.port_of.get(&i) {
            d.ports.insert(*port);
        }
    }

    /// Something is on top of this device now, or is no longer, or otherwise. What a VLAN interface is on asks what is on
    /// that.
    fn mark_beneath(&mut self, lower: u32) {
        if lower == 0 {
            return;
        }
        self.mark_device(lower);
        if let Some(Link {
            kind: LinkKind::Vlan { .. },
            lower,
            ..
        }) = self.links.get(&lower).map(|r| &r.link)
        {
            let next = *lower;
            self.mark_device(next);
        }
    }

    /// VLAN interfaces on a device.
    pub(super) fn mark_vlan_devices_on(&mut self, lower: u32) {
        let on = self.interfaces_on(lower, 0..=u16::MAX);
        self.topo.dirty.vlan_devices.extend(on);
    }

    /// VLAN interfaces on a device with a VID.
    pub(super) fn mark_vlan_device(&mut self, lower: u32, vid: u16) {
        let on = self.interfaces_on(lower, vid..=vid);
        self.topo.dirty.vlan_devices.extend(on);
    }

    /// VLAN interfaces on a device with one of these VIDs, and what takes their place.
    pub(super) fn interfaces_on(&self, lower: u32, vids: RangeInclusive<u16>) -> Vec<u32> {
        let (from, to) = (*vids.start(), *vids.end());
        let on = (lower, from, 0)..=(lower, to, u32::MAX);
        let on = self.topo.vlans_on.range(on).map(|x| x.2);
        // a port has as many entries as VLANs, and none of them names a TAP: those of bridges do, or what was one until now
        if self.topo.port_of.contains_key(&lower) || self.topo.taps.is_empty() {
            return on.collect();
        }
        let of_it = self.vlans.range((lower, from)..=(lower, to));
        let taps = of_it.map(|(_, v)| v.0.tap).filter(|tap| *tap != 0);
        on.chain(taps).collect()
    }

    /// Ports of a bridge, and their memberships.
    pub(crate) fn mark_ports_of(&mut self, bridge: u32, memberships: bool) {
        let t = &mut self.topo;
        for (_, i) in t.within.range((bridge, 0)..=(bridge, u32::MAX)) {
            if let Some(port) = t.port_of.get(i) {
                t.dirty.ports.insert(*port);
                if memberships {
                    t.dirty.memberships.insert(*port);
                }
            }
        }
    }

    /// A domain came or went.
    pub(crate) fn mark_domain(&mut self, d: Domain) {
        if self.topo.everything {
            return;
        }
        self.topo.dirty.stations.insert(d);
        let own = self.vlans.get(&(d.dev, d.vlan));
        if d.vlan == 0 || own.is_some_and(|v| v.0.pvid) {
            self.topo.dirty.rifs.insert(d.dev);
        }
        self.mark_vlan_device(d.dev, d.vlan);
        let t = &mut self.topo;
        let within = t.within.range((d.dev, 0)..=(d.dev, u32::MAX));
        self.slices.costs(within.clone().count());
        for (_, i) in within {
            let Some(port) = t.port_of.get(i) else {
                continue;
            };
            if d.vlan == 0 {
                t.dirty.memberships.insert(*port);
            } else if self.vlans.contains_key(&(*i, d.vlan)) {
                t.dirty.members.insert((*port, d.vlan));
            }
        }
    }

    /// Why packets of a device are the kernel's, if they are. Who asks for it looks again.
    pub(crate) fn set_reason(&mut self, i: u32, reason: Option<Reason>) {
        if self.topo.reasons.get(&i) == reason.as_ref() {
            return;
        }
        match reason {
            Some(reason) => _ = self.topo.reasons.insert(i, reason),
            None => _ = self.topo.reasons.remove(&i),
        }
        if self.topo.everything {
            return;
        }
        self.mark_vlan_devices_on(i);
        let master = self.links.get(&i).map_or(0, |r| r.link.master);
        let d = &mut self.topo.dirty;
        d.rifs.insert(i);
        if master != 0 {
            d.rehide.insert(master);
        }
        // a filter may send packets there
        self.mark_lists(i);
    }

    /// Fills all sets.
    pub(super) fn mark_everything(&mut self) {
        let t = &mut self.topo;
        t.reasons.clear();
        let d = &mut t.dirty;
        *d = Dirty::default();
        d.filters = true;
        d.bridges.extend(t.bridges.keys());
        d.rifs.extend(t.rif_of.keys().chain(t.routable.keys()));
        for (i, r) in &self.links {
            d.rifs.insert(*i);
            match r.link.kind {
                LinkKind::Bridge(_) => _ = d.bridges.insert(*i),
                LinkKind::Vlan { .. } | LinkKind::Other(_) => _ = d.vlan_devices.insert(*i),
                _ => {}
            }
            if r.link.master != 0 {
                d.rehide.insert(r.link.master);
            }
        }
        d.rehide.extend(&t.hidden);
        d.vlan_sets = d.bridges.clone();
        d.vlan_sets.extend(t.fid_of.keys().map(|x| x.dev));
        d.domains.extend(t.fid_of.keys());
        d.ports.extend(1..=self.config.ports);
        d.ports.extend(&self.lag_ports);
        d.ports
            .extend(t.if_of_port.keys().filter(|p| **p > self.config.ports));
        d.memberships = d.ports.clone();
    }
}

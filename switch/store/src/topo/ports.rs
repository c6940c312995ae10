//! Front-panel ports, and those that stand for groups: their objects and why their frames are the kernel's.

use crate::Store;
use crate::hw::bodies::{Member, Port, Vlan};
use crate::hw::table::{Obj, Sent};
use crate::hw::{Cls, Ref};
use crate::model::{BR_STATE_DISABLED, BR_STATE_FORWARDING, BridgePort, Link, SourceId};
use crate::reason::Reason;
use crate::sync::Phase;
use crate::vlan::Members;
use std::collections::BTreeSet;
use tandem_abi::raw::*;

impl Store {
    /// Memberships of the next port that are to be looked at.
    pub(crate) fn step_members(&mut self, now: u64) -> bool {
        let d = &self.topo.dirty;
        let whole = d.memberships.first().copied();
        let Some(port) = whole.or_else(|| d.members.first().map(|m| m.0)) else {
            return false;
        };
        let all = (port, 0)..=(port, u16::MAX);
        let single: Vec<_> = d.members.range(all.clone()).copied().collect();
        let said = |l: &Link| self.vlans_of(l.ifindex).count();
        // some of them are looked at alone where no other one hangs on them
        let n = match whole.is_some() || !self.members_alone(port) {
            true => self
                .member_ids
                .range(all)
                .count()
                .max(self.link_of_port(port).map_or(0, said)),
            false => single.len(),
        };
        if self.slices.begins_next(n) {
            return true;
        }
        let d = &mut self.topo.dirty;
        d.memberships.remove(&port);
        for m in &single {
            d.members.remove(m);
        }
        let n = match whole {
            Some(_) => self.want_all_members(port, now),
            None => self.want_some_members(port, &single, now),
        };
        self.slices.costs(n);
        true
    }

    /// Ports of groups: there as long as the group is.
    pub(super) fn refresh_group_ports(&mut self, now: u64) {
        if !self.topo.everything {
            return;
        }
        // Table ids are port − 1: take them all once, in order.
        while self.ports_taken < u32::from(self.config.ports) {
            self.hw.ports.take();
            self.ports_taken += 1;
        }
        let groups: BTreeSet<u16> = self.lags.on.keys().map(|lag| self.lag_port(*lag)).collect();
        for port in self
            .lag_ports
            .difference(&groups)
            .copied()
            .collect::<Vec<_>>()
        {
            self.lag_ports.remove(&port);
            self.topo.dirty.ports.remove(&port);
            self.topo.dirty.memberships.remove(&port);
            self.want_members(port, Members::new(), now);
            self.hw.want::<Port>(u32::from(port) - 1, None, now);
        }
        for port in groups {
            while self.ports_taken < u32::from(port) {
                self.hw.ports.take();
                self.ports_taken += 1;
            }
            self.lag_ports.insert(port);
            self.topo.dirty.ports.insert(port);
            self.topo.dirty.memberships.insert(port);
        }
    }

    /// These ports in the order in which the kernel has changed them; first those that it has not.
    fn as_changed(&self, ports: &BTreeSet<u16>) -> Vec<u16> {
        let changed = &self.topo.changed;
        let mut all: Vec<u16> = ports.iter().copied().collect();
        all.sort_by_key(|port| changed.iter().position(|c| c == port));
        all
    }

    pub(crate) fn link_of_port(&self, port: u16) -> Option<&Link> {
        let i = self.topo.if_of_port.get(&port)?;
        self.links.get(i).map(|r| &r.link)
    }

    /// Ports that are to be looked at.
    pub(super) fn refresh_ports(&mut self, now: u64) {
        let mut ports = std::mem::take(&mut self.topo.dirty.ports);
        self.guard_bridges(&mut ports);
        let ports = self.as_changed(&ports);
        self.topo.changed.clear();
        let unheard = self.has_left_unheard();
        for port in ports {
            let group = self.lag_ports.contains(&port);
            if port == 0 || (port > self.config.ports && !group) {
                continue;
            }
            let link = self.link_of_port(port).cloned();
            if link.is_none() {
                self.topo.shut.remove(&port);
            }
            let body = match link {
                None if group => continue,
                None if self.topo.away.contains(&port) => Port::AWAY,
                None => Port::CUT_OFF,
                Some(l) => {
                    self.note_shut(port, &l, now);
                    let (mut body, reason) = self.port_body(port, &l);
                    self.set_reason(l.ifindex, reason);
                    self.still_bridged(port, &l, &mut body);
                    self.guarded(port, &l, &mut body);
                    if unheard && l.bridge_port.is_some() && body.flags & TND_PORT_UP != 0 {
                        body.flags |= TND_PORT_TRAP_ALL;
                    }
                    body
                }
            };
            let id = u32::from(port) - 1;
            self.note_port(id);
            self.hw.want(id, Some(body), now);
        }
        self.step_guards();
    }

    /// A port that is out of service, while its netdev and the bridge are up: the kernel says so first when the port leaves or the bridge
    /// goes down (net/bridge/br_if.c `br_del_if`, br_stp_if.c `br_stp_disable_bridge`). Nothing more may come: somebody set that state, or
    /// it has no carrier; so what a dump has of it at an attach is taken to stay.
    fn note_shut(&mut self, port: u16, l: &Link, now: u64) {
        let state = l.bridge_port.map(|b| b.state);
        let bridge = self.links.get(&l.master);
        let up = l.admin_up && bridge.is_some_and(|b| b.link.admin_up);
        match state == Some(BR_STATE_DISABLED) && up {
            true => {
                let source = self.links.get(&l.ifindex).map(|r| r.source);
                let told = source.is_some_and(|s| self.topo.told.contains(&s));
                let under_way = self.phase == Phase::Normal && !told;
                self.topo
                    .shut
                    .entry(port)
                    .or_insert(under_way.then_some(now));
            }
            false => _ = self.topo.shut.remove(&port),
        }
    }

    /// A source has told all that has happened: what its ports are, they stay.
    pub fn told_all(&mut self, source: SourceId) {
        // some of it may not have been looked at yet
        self.topo.told.insert(source.0);
        self.told_before(source, u64::MAX);
    }

    /// As much for what was looked at by then, ns.
    pub fn told_before(&mut self, source: SourceId, by: u64) {
        let all = self.topo.shut.iter();
        let under_way = all.filter(|(_, since)| since.is_some_and(|s| s <= by));
        let of_it = |port: &u16| {
            let i = self.topo.if_of_port.get(port)?;
            let link = self.links.get(i)?;
            (link.source == source.0).then_some(*port)
        };
        let stay: Vec<u16> = under_way.filter_map(|(port, _)| of_it(port)).collect();
        for port in stay {
            self.topo.shut.insert(port, None);
            self.topo.dirty.ports.insert(port);
        }
    }

    /// A port leaves a bridge with its last membership there, in one write. Until that is answered it is the bridge's port that it
    /// was: isolated, with its spanning tree's state. Where it goes straight to another bridge it is as closed as either says.
    fn still_bridged(&mut self, port: u16, l: &Link, body: &mut Port) {
        let master = l.bridge_port.map_or(0, |_| l.master);
        let leaves = self.leaves(port, master);
        let was = self.hw.ports.get(u32::from(port) - 1);
        let was = was.and_then(|o| o.want.as_ref()).filter(|_| leaves);
        let was = was.map(|was| (was.flags, was.stp));
        // those that an earlier core has left go with the sweep
        let swept = master == 0 && self.warm && self.phase != Phase::Normal;
        let left = || self.hw.ids.left_bridged(port).filter(|_| swept);
        match was.or_else(left) {
            Some((flags, stp)) => {
                let traps = flags & TND_PORT_TRAP_ALL != 0;
                let (mut flags, mut stp) = (flags & BRIDGED, stp);
                if master != 0 {
                    let closed = TND_PORT_ISOLATED | TND_PORT_LOCKED;
                    flags = flags & body.flags & !closed | (flags | body.flags) & closed;
                    // disabled, blocking or listening, learning, forwarding
                    let open = |state| [0, 1, 2, 3, 1].get(usize::from(state)).copied();
                    stp = if open(body.stp) < open(stp) {
                        body.stp
                    } else {
                        stp
                    };
                }
                body.flags = body.flags & !BRIDGED | flags;
                body.stp = stp;
                if (swept || traps) && body.flags & TND_PORT_UP != 0 {
                    // what is said meanwhile is not for who comes in here, or the bridge is the kernel's
                    body.flags |= TND_PORT_TRAP_ALL;
                }
                self.topo.leaving.insert(port);
            }
            None if self.topo.leaving.remove(&port) => self.forget_left_behind(port),
            None => {}
        }
    }

    /// A port left its bridge while nobody listened: until the sweep it is a member on the chip, and who is in a bridge by now would be
    /// flooded to it, which the kernel may never have done.
    fn has_left_unheard(&self) -> bool {
        let out = |port: u16| {
            let link = self.link_of_port(port);
            link.is_none_or(|l| l.bridge_port.is_none())
        };
        let swept = self.warm && self.phase != Phase::Normal;
        swept && self.hw.ids.all_left_bridged().any(out)
    }

    /// A port has joined a bridge, or left it, and there is a sweep to come: whether one has left unheard is asked again.
    pub(super) fn mark_unheard(&mut self) {
        if self.warm && self.phase != Phase::Normal {
            self.swept();
        }
    }

    /// The sweep has taken away what was left: ports that waited for that look again.
    pub(crate) fn swept(&mut self) {
        if self.hw.ids.all_left_bridged().next().is_some() {
            let t = &mut self.topo;
            t.dirty.ports.extend(t.if_of_port.keys());
        }
    }

    /// An entry of the FDB behind a port that leaves goes after the port: before that, what is sent to its station would be flooded,
    /// to this port as well. So does one that has moved there of which the chip has not heard yet.
    pub(crate) fn goes_with_its_port(&mut self, r: Ref) -> bool {
        if r.cls != Cls::Fdb || self.topo.leaving.is_empty() {
            return false;
        }
        let entry = self.hw.fdb.get(r.id).filter(|o| o.want.is_none());
        let Some(have) = entry.and_then(|o| Some(o.have.as_ref()?.port)) else {
            return false;
        };
        let last = self.topo.last_behind.get(&r.id).copied();
        let mut ports = std::iter::once(have).chain(last);
        let Some(port) = ports.find(|p| self.topo.leaving.contains(p)) else {
            return false;
        };
        self.hw.unqueue(r);
        self.topo.left_behind.insert((port, r.id));
        true
    }

    /// The port has left, or stays after all.
    fn forget_left_behind(&mut self, port: u16) {
        let of = |(p, id): &(u16, u32)| (*p == port).then_some(Ref::new(Cls::Fdb, *id));
        let entries = self.topo.left_behind.range((port, 0)..=(port, u32::MAX));
        self.hw.woken.extend(entries.filter_map(of));
        self.topo.left_behind.retain(|(p, _)| *p != port);
    }

    /// The chip has a membership of this port in a bridge that is not its master, or gets one.
    fn leaves(&mut self, port: u16, master: u32) -> bool {
        let all = self.topo.moving.range((port, 0)..=(port, u32::MAX));
        let mut looked = 0;
        // each answer asks: the first one that says so is enough
        let leaves = all.inspect(|_| looked += 1).any(|(_, id)| {
            let o = self.hw.members.get(*id);
            o.is_some_and(|o| self.is_of_another(o, master))
        });
        self.slices.costs(looked);
        leaves
    }

    pub(super) fn is_of_another(&self, o: &Obj<Member>, master: u32) -> bool {
        let of_another = |m: &Member| {
            let domain = self.topo.domain_of.get(&m.vlan);
            domain.is_none_or(|d| d.dev != master)
        };
        match &o.sent {
            Sent::Put(m) if of_another(m) => true,
            Sent::Delete => o.have.as_ref().is_some_and(of_another),
            // one that can't be written, or taken away, says nothing of how long it stays
            _ => o.fail.is_none() && o.have.as_ref().is_some_and(of_another),
        }
    }

    /// The chip answered a membership's write: its port may have left its bridge, or has all memberships of the other kind, also where
    /// the last of them was there and is now what it shall be.
    pub(crate) fn member_answered(&mut self, id: u32) {
        let Some((port, _)) = self.member_keys.get(&id).copied() else {
            return;
        };
        let o = self.hw.members.get(id);
        if o.is_none_or(|o| o.is_settled(o.want.as_ref())) {
            self.topo.moving.remove(&(port, id));
        }
        if self.topo.leaving.contains(&port) {
            self.topo.dirty.ports.insert(port);
        }
        self.look_whether_switched(port);
        self.look_who_floods(port);
    }

    /// A domain whose unknown stations are the CPU's is to flood to them, and a port is on its way out of it: one of them may have been
    /// behind that port, which would get its frames once more. Or one of its ports is written still, and is not yet what it was in the
    /// kernel when the last such station went.
    pub(crate) fn floods_early(&mut self, r: Ref) -> bool {
        if r.cls != Cls::Vlan {
            return false;
        }
        let traps = |v: &Vlan| v.flags & TND_VLAN_UC_TRAP != 0;
        let o = self.hw.vlans.get(r.id);
        let both = o.and_then(|o| o.have.as_ref().zip(o.want.as_ref()));
        let floods = both.is_some_and(|(have, want)| traps(have) && !traps(want));
        let leaves = |id: u32| {
            self.hw.members.get(id).is_some_and(|o| {
                let is_in = |m: &Option<Member>| m.as_ref().is_some_and(|m| m.vlan == r.id);
                o.fail.is_none() && is_in(&o.have) && !is_in(&o.want)
            })
        };
        let changes = |id: &u32| {
            let o = self.hw.ports.get(*id).filter(|o| o.fail.is_none());
            o.is_some_and(|o| !o.is_settled(o.want.as_ref())) && self.is_member(*id, r.id)
        };
        let waits = floods
            && (self.topo.moving.iter().any(|(_, id)| leaves(*id))
                || self.doors.ports().any(changes));
        if waits {
            self.topo.floods.insert(r.id);
        }
        waits
    }

    /// The chip has this port (by table id) in this domain.
    fn is_member(&self, port: u32, vlan: u32) -> bool {
        let number = u16::try_from(port + 1).unwrap_or(u16::MAX);
        let vid = self.topo.domain_of.get(&vlan).map(|d| d.vid());
        let id = vid.and_then(|vid| self.member_ids.get(&(number, vid)));
        let o = id.and_then(|id| self.hw.members.get(*id));
        let have = o.and_then(|o| o.have.as_ref());
        have.is_some_and(|m| m.vlan == vlan)
    }

    /// Memberships of a port are answered: domains that waited for such look again.
    pub(crate) fn look_who_floods(&mut self, port: u16) {
        if self.members_answered(port) {
            self.flood_again();
        }
    }

    /// A port was written, or had nothing to write: the same.
    pub(crate) fn flood_again(&mut self) {
        for id in std::mem::take(&mut self.topo.floods) {
            self.hw.queue(Ref::new(Cls::Vlan, id));
        }
    }

    pub(crate) fn port_answered(&mut self) {
        self.step_guards();
        self.flood_again();
    }

    /// A port whose memberships of one kind give way to those of the other is looked at when those on their way are answered.
    pub(crate) fn look_whether_switched(&mut self, port: u16) {
        if self.topo.switching.contains(&port) && self.members_answered(port) {
            self.topo.dirty.memberships.insert(port);
        }
    }

    /// No membership of this port is on its way, but for those that can't be written.
    pub(crate) fn members_answered(&self, port: u16) -> bool {
        let all = self.topo.moving.range((port, 0)..=(port, u32::MAX));
        let mut members = all.filter_map(|(_, id)| self.hw.members.get(*id));
        members.all(|o| o.fail.is_some())
    }

    /// A port's object, and why its frames are the kernel's.
    fn port_body(&self, port: u16, l: &Link) -> (Port, Option<Reason>) {
        let mut flags = if l.admin_up { TND_PORT_UP } else { 0 };
        let mut stp = BR_STATE_FORWARDING;
        let mut reason = self.port_device_reason(l).or_else(|| self.no_lists(port));
        if let Some(why) = self.bond_of(l) {
            // what is set here sleeps while the port is in its group: until then all of it is the kernel's
            flags |= TND_PORT_TRAP_ALL;
            reason = why;
        } else if self.vrf_master(l).is_none() {
            let known = self.topo.bridges.get(&l.master);
            let bridge = known.and_then(|b| b.1.clone());
            let bridge = bridge.map(|why| Reason::Of(self.dev(l.master), why.into()));
            match (known, &l.bridge_port) {
                (Some((info, _)), Some(bp)) => {
                    stp = bp.state;
                    flags |= bridge_port_flags(bp) | self.router_flags(l.master, l.ifindex);
                    // it is about to leave, or the bridge goes down
                    if self.topo.shut.get(&port).is_some_and(Option::is_some) {
                        flags |= TND_PORT_TRAP_ALL;
                    }
                    if let Some(u) = bp.unsupported {
                        reason = Some(Reason::PortOption(u));
                    } else if bp.locked && bp.learning && info.no_link_local_learning {
                        // the chip would learn the very stations that ask to be let in (EAPOL)
                        reason = Some(Reason::LockedLearning);
                    }
                    reason = reason.or(bridge);
                }
                _ => {
                    let none = || Reason::Master(self.dev(l.master));
                    reason = Some(bridge.unwrap_or_else(none));
                }
            }
        }
        if self.topo.switching.contains(&port) {
            reason = reason.or(Some(Reason::Switching));
        }
        if reason.is_some() {
            flags |= TND_PORT_TRAP_ALL;
        }
        let body = Port {
            flags,
            mtu: l.mtu,
            stp,
            mac: l.mac,
            lag: self.lag_of_port(port),
        };
        (body, reason)
    }

    /// Why what is attached to a port's device needs every frame.
    fn port_device_reason(&self, l: &Link) -> Option<Reason> {
        let free = self.vrf_master(l).is_some();
        let upper = self
            .devices_on(l.ifindex)
            .find(|u| !(free && self.plain_vlan(u, l)));
        if let Some(upper) = upper {
            return Some(Reason::OnTop(upper.name.clone()));
        }
        self.chained(&l.name).map(Reason::Hooked)
    }
}

/// What a port has of its bridge.
pub(super) const BRIDGED: u32 = TND_PORT_LEARNING
    | TND_PORT_FLOOD_UC
    | TND_PORT_FLOOD_MC
    | TND_PORT_FLOOD_BC
    | TND_PORT_ISOLATED
    | TND_PORT_HAIRPIN
    | TND_PORT_LOCKED
    | TND_PORT_ROUTER4
    | TND_PORT_ROUTER6;

/// What a bridge port's settings are on the chip.
fn bridge_port_flags(bp: &BridgePort) -> u32 {
    [
        (bp.learning, TND_PORT_LEARNING),
        (bp.unicast_flood, TND_PORT_FLOOD_UC),
        (bp.mcast_flood, TND_PORT_FLOOD_MC),
        (bp.bcast_flood, TND_PORT_FLOOD_BC),
        (bp.isolated, TND_PORT_ISOLATED),
        (bp.hairpin, TND_PORT_HAIRPIN),
        (bp.locked, TND_PORT_LOCKED),
    ]
    .into_iter()
    .filter(|(on, _)| *on)
    .fold(0, |all, (_, flag)| all | flag)
}

//! Multicast groups of bridges that snoop: who is a member, where routers are, and when the chip may use it.
//!
//! ```text
//!   RTM_NEWMDB ──► (bridge, VLAN, group, source) ─ ports, the bridge itself ──► MDB entry
//!                                                     a port that the chip has not, multicast to unicast ──► entry traps
//!   router ports ──► PORT flag       querier: none ──► flooded    there ──► members    not sure ──► the kernel forwards
//!
//!   (S, G) does not fit ──► (*, G) traps        no entry fits ──► groups without one trap
//! ```
//!
//! Without a querier the kernel floods whatever it knows of members, and so does the chip: the entries stand and wait.

use crate::Store;
use crate::api::{Action, Domain, Explanation, MdbRow, Policy, State};
use crate::hw::bodies::Mdb;
use crate::model::{
    BridgeInfo, GroupAddr, Key, LinkKind, MdbEntry, MdbKey, Querier, RouterPort, SourceId,
    VlanSnooping,
};
use crate::reason::Reason;
use crate::slices::{Span, Then, Walk};
use crate::sync::Phase;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use tandem_abi::raw::*;

/// What one entry of the chip stands for: all members of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub bridge: u32,
    pub vlan: u16,
    pub group: GroupAddr,
    pub source: Option<IpAddr>,
}

impl GroupKey {
    fn of(k: &MdbKey) -> GroupKey {
        GroupKey {
            bridge: k.bridge,
            vlan: k.vlan,
            group: k.group,
            source: k.source,
        }
    }

    /// Before and behind all others.
    pub const FIRST: GroupKey = GroupKey::first(0, 0);
    pub const LAST: GroupKey = GroupKey::last(u32::MAX, u16::MAX);

    /// Before all groups of a domain.
    const fn first(bridge: u32, vlan: u16) -> GroupKey {
        GroupKey {
            bridge,
            vlan,
            group: GroupAddr::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            source: None,
        }
    }

    /// Behind all groups of a domain: those of MAC addresses are the last ones, and have no source.
    const fn last(bridge: u32, vlan: u16) -> GroupKey {
        GroupKey {
            bridge,
            vlan,
            group: GroupAddr::Mac([u8::MAX; 6]),
            source: None,
        }
    }

    /// All of a bridge.
    pub fn of_bridge(bridge: u32) -> Span<GroupKey> {
        Span::new(GroupKey::first(bridge, 0), GroupKey::last(bridge, u16::MAX))
    }

    /// All of a domain.
    pub fn in_domain(d: Domain) -> Span<GroupKey> {
        Span::new(
            GroupKey::first(d.dev, d.vlan),
            GroupKey::last(d.dev, d.vlan),
        )
    }

    fn domain(&self) -> Domain {
        Domain {
            dev: self.bridge,
            vlan: self.vlan,
        }
    }
}

/// What one object is known by, with who said so and in which generation.
pub(crate) type Said<T> = (T, u8, u16);

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// Members by group.
    pub members: BTreeMap<GroupKey, BTreeMap<u32, Said<MdbEntry>>>,
    /// Groups by member.
    pub of_member: BTreeSet<(u32, GroupKey)>,
    /// By bridge and port.
    routers: BTreeMap<(u32, u32), Said<RouterPort>>,
    /// By bridge and VLAN.
    snooping: BTreeMap<(u32, u16), Said<VlanSnooping>>,
    pub ids: HashMap<GroupKey, u32>,
    keys: HashMap<u32, GroupKey>,
    /// Entries that did not fit, by domain.
    failed: HashMap<u32, HashMap<u32, GroupKey>>,
    /// Why an entry of the chip traps.
    pub reasons: HashMap<GroupKey, Reason>,
}

impl Groups {
    /// Bridges that have a device in one of their groups.
    pub fn bridges_of_member(&self, ifindex: u32) -> BTreeSet<u32> {
        self.groups_with(ifindex).map(|k| k.bridge).collect()
    }

    /// The index of members, from what it is of.
    #[cfg(feature = "oracle")]
    pub fn members_anew(&self) -> BTreeSet<(u32, GroupKey)> {
        let all = self.members.iter();
        all.flat_map(|(k, of_group)| of_group.keys().map(|i| (*i, *k)))
            .collect()
    }

    fn groups_with(&self, ifindex: u32) -> impl Iterator<Item = &GroupKey> {
        let all = self.of_member.range((ifindex, GroupKey::first(0, 0))..);
        all.take_while(move |x| x.0 == ifindex).map(|x| &x.1)
    }

    fn of_bridge(&self, bridge: u32) -> impl Iterator<Item = &BTreeMap<u32, Said<MdbEntry>>> {
        let all = self.members.range(GroupKey::first(bridge, 0)..);
        let of_it = all.take_while(move |(k, _)| k.bridge == bridge);
        of_it.map(|(_, of_group)| of_group)
    }
}

/// How the chip deals with a kind of multicast in a domain.
#[derive(Clone, Copy)]
struct Bits {
    members: u32,
    trap: u32,
    cpu: u32,
}

const V4: Bits = Bits {
    members: TND_VLAN_MC4_MEMBERS,
    trap: TND_VLAN_MC4_TRAP,
    cpu: TND_VLAN_MC4_CPU,
};
const V6: Bits = Bits {
    members: TND_VLAN_MC6_MEMBERS,
    trap: TND_VLAN_MC6_TRAP,
    cpu: TND_VLAN_MC6_CPU,
};

impl Store {
    pub(crate) fn upsert_mdb(&mut self, source: SourceId, e: MdbEntry, generation: u16, now: u64) {
        let key = e.key();
        let group = GroupKey::of(&key);
        let said = (e, source.0, generation);
        self.groups.of_member.insert((key.ifindex, group));
        let of_group = self.groups.members.entry(group).or_default();
        if of_group.insert(key.ifindex, said).is_some_and(|o| o.0 == e) {
            self.counters.unchanged += 1;
            return;
        }
        self.reeval_group(group, now);
    }

    pub(crate) fn remove_mdb(&mut self, source: SourceId, key: &MdbKey, now: u64) {
        let group = GroupKey::of(key);
        let Some(of_group) = self.groups.members.get_mut(&group) else {
            return;
        };
        if of_group.get(&key.ifindex).is_none_or(|e| e.1 != source.0) {
            return;
        }
        of_group.remove(&key.ifindex);
        self.groups.of_member.remove(&(key.ifindex, group));
        if of_group.is_empty() {
            self.groups.members.remove(&group);
        }
        self.reeval_group(group, now);
    }

    /// Members and router ports of a bridge, with who said them.
    pub(crate) fn groups_said_of(&self, bridge: u32) -> Vec<(u8, Key)> {
        let members = self.groups.of_bridge(bridge).flat_map(BTreeMap::values);
        let mut all: Vec<(u8, Key)> = members.map(|m| (m.1, Key::Mdb(m.0.key()))).collect();
        let ports = self.groups.routers.range((bridge, 0)..=(bridge, u32::MAX));
        all.extend(ports.map(|(k, r)| (r.1, Key::RouterPort(bridge, k.1))));
        let vlans = self.groups.snooping.range((bridge, 0)..=(bridge, u16::MAX));
        all.extend(vlans.map(|(k, v)| (v.1, Key::VlanSnooping(bridge, k.1))));
        all
    }

    pub(crate) fn upsert_router_port(&mut self, source: SourceId, r: RouterPort, generation: u16) {
        let said = (r, source.0, generation);
        let old = self.groups.routers.insert((r.bridge, r.ifindex), said);
        if old.is_some_and(|o| o.0 == r) {
            self.counters.unchanged += 1;
        } else {
            self.mark_device(r.ifindex);
        }
    }

    pub(crate) fn remove_router_port(&mut self, source: SourceId, bridge: u32, ifindex: u32) {
        let key = (bridge, ifindex);
        if self
            .groups
            .routers
            .get(&key)
            .is_some_and(|r| r.1 == source.0)
        {
            self.groups.routers.remove(&key);
            self.mark_device(ifindex);
        }
    }

    pub(crate) fn upsert_vlan_snooping(
        &mut self,
        source: SourceId,
        v: VlanSnooping,
        generation: u16,
    ) {
        let said = (v, source.0, generation);
        let old = self.groups.snooping.insert((v.bridge, v.vlan), said);
        if old.is_some_and(|o| o.0 == v) {
            self.counters.unchanged += 1;
        } else {
            self.snooping_changed(v.bridge, v.vlan, old.is_none());
        }
    }

    pub(crate) fn remove_vlan_snooping(&mut self, source: SourceId, bridge: u32, vlan: u16) {
        let key = (bridge, vlan);
        let there = self.groups.snooping.get(&key);
        if there.is_some_and(|v| v.1 == source.0) {
            self.groups.snooping.remove(&key);
            self.snooping_changed(bridge, vlan, true);
        }
    }

    /// The domain has other flags. `anew`: it begins or ends to snoop, and its groups have entries, or none.
    fn snooping_changed(&mut self, dev: u32, vlan: u16, anew: bool) {
        let d = Domain { dev, vlan };
        self.topo.dirty.domains.insert(d);
        if anew {
            self.topo.dirty.stations.insert(d);
        }
    }

    /// A device is gone, with what it had.
    pub(crate) fn groups_of_link_gone(&mut self, ifindex: u32, now: u64) {
        self.for_groups_of_member(ifindex, now);
        let of_bridge = GroupKey::of_bridge(ifindex);
        self.walk(Walk::Groups(of_bridge, Then::Remove), now);
        let of_it = |k: &(u32, u32)| k.0 == ifindex || k.1 == ifindex;
        self.groups.routers.retain(|k, _| !of_it(k));
        self.groups.snooping.retain(|k, _| k.0 != ifindex);
    }

    /// All members of a group go.
    pub(crate) fn remove_group(&mut self, key: GroupKey, now: u64) {
        let all = self.groups.members.get(&key);
        let all: Vec<u32> = all.into_iter().flatten().map(|(i, _)| *i).collect();
        for ifindex in all {
            self.remove_member(ifindex, key, now);
        }
    }

    /// Whoever said that it is one.
    pub(crate) fn remove_member(&mut self, ifindex: u32, key: GroupKey, now: u64) {
        let of_group = self.groups.members.get(&key);
        if let Some((e, source, _)) = of_group.and_then(|all| all.get(&ifindex)) {
            let (source, key) = (SourceId(*source), e.key());
            self.remove_mdb(source, &key, now);
        }
    }

    /// What a dump did not confirm: `stale` of its source and generation.
    pub(crate) fn groups_unconfirmed(&self, stale: impl Fn(u8, u16) -> bool) -> Vec<Key> {
        let members = self.groups.members.values().flat_map(BTreeMap::values);
        let members = members.filter(|e| stale(e.1, e.2));
        let routers = self.groups.routers.iter().filter(|(_, r)| stale(r.1, r.2));
        let routers = routers.map(|(k, _)| Key::RouterPort(k.0, k.1));
        let vlans = self.groups.snooping.iter();
        let vlans = vlans.filter(|(_, v)| stale(v.1, v.2));
        let vlans = vlans.map(|(k, _)| Key::VlanSnooping(k.0, k.1));
        members
            .map(|e| Key::Mdb(e.0.key()))
            .chain(routers)
            .chain(vlans)
            .collect()
    }

    // -- what follows -------------------------------------------------------------------------------------------------

    /// Flags of a bridge port where multicast routers are behind it.
    pub(crate) fn router_flags(&self, bridge: u32, ifindex: u32) -> u32 {
        let Some((r, ..)) = self.groups.routers.get(&(bridge, ifindex)) else {
            return 0;
        };
        let flag = |on, f| if on { f } else { 0 };
        flag(r.v4, TND_PORT_ROUTER4) | flag(r.v6, TND_PORT_ROUTER6)
    }

    /// What of a domain's flags is about multicast.
    pub(crate) fn multicast_flags(&self, f: u32, d: Domain) -> u32 {
        let Some(info) = self.snooping_of(d) else {
            return 0;
        };
        if !info.mcast_snooping {
            return 0;
        }
        if info.mcast_unsupported.is_some() {
            return TND_VLAN_MC_TRAP;
        }
        let failed = self.groups.failed.get(&f);
        let missing = |kind: fn(&GroupAddr) -> bool| {
            failed.is_some_and(|all| all.values().any(|k| kind(&k.group)))
                && self.config.policy == Policy::Trap
        };
        // the entries come after the domain
        let filling = !self.warm && self.phase != Phase::Normal;
        let router = match info.mcast_router {
            0 => false,
            2 => true,
            _ => self.is_multicast_router(d.dev),
        };
        let mut flags = TND_VLAN_SNOOP;
        let v4 = |g: &GroupAddr| matches!(g, GroupAddr::Ip(IpAddr::V4(_)));
        let v6 = |g: &GroupAddr| matches!(g, GroupAddr::Ip(IpAddr::V6(_)));
        for (querier, bits, missing) in [
            (info.querier4, V4, missing(v4)),
            (info.querier6, V6, missing(v6)),
        ] {
            flags |= match querier {
                Querier::None => 0,
                Querier::Unsure => bits.trap,
                Querier::There => {
                    let trap = if missing || filling { bits.trap } else { 0 };
                    let cpu = if router { bits.cpu } else { 0 };
                    bits.members | trap | cpu
                }
            };
        }
        if filling || missing(|g| matches!(g, GroupAddr::Mac(_))) {
            flags |= TND_VLAN_MAC_TRAP;
        }
        flags
    }

    /// The bridge device takes part in multicast routing: somebody set it up (`mc_forwarding`).
    fn is_multicast_router(&self, bridge: u32) -> bool {
        self.links
            .get(&bridge)
            .is_some_and(|l| l.link.mc_forwarding)
    }

    /// A bridge, as it snoops in this domain.
    pub(crate) fn snooping_of(&self, d: Domain) -> Option<BridgeInfo> {
        let LinkKind::Bridge(info) = self.links.get(&d.dev)?.link.kind else {
            return None;
        };
        let own = self.groups.snooping.get(&(d.dev, d.vlan));
        Some(own.map_or(info, |(own, ..)| BridgeInfo {
            mcast_snooping: true,
            querier4: own.querier4,
            querier6: own.querier6,
            ..info
        }))
    }

    /// One group as it should be on the chip.
    pub(crate) fn reeval_group(&mut self, key: GroupKey, now: u64) {
        self.slices.look();
        let (body, reason) = match self.group_body(&key) {
            Some((body, reason)) => (Some(body), reason),
            None => (None, None),
        };
        match reason {
            Some(reason) => _ = self.groups.reasons.insert(key, reason),
            None => _ = self.groups.reasons.remove(&key),
        }
        let id = match self.groups.ids.get(&key) {
            Some(id) => *id,
            None if body.is_none() => return,
            None => {
                let id = self.hw.mdb.take();
                self.groups.ids.insert(key, id);
                self.groups.keys.insert(id, key);
                id
            }
        };
        self.hw.want(id, body, now);
    }

    /// The entry, and why it traps.
    fn group_body(&self, key: &GroupKey) -> Option<(Mdb, Option<Reason>)> {
        let members = self.groups.members.get(key)?;
        let &vlan = self.topo.fid_of.get(&key.domain())?;
        let info = self.snooping_of(key.domain())?;
        if !info.mcast_snooping || info.mcast_unsupported.is_some() {
            return None;
        }
        let by_source = match key.group {
            GroupAddr::Ip(IpAddr::V4(_)) => info.igmp_version == 3,
            GroupAddr::Ip(IpAddr::V6(_)) => info.mld_version == 2,
            GroupAddr::Mac(_) => false,
        };
        // the kernel looks for the source only with these versions
        if key.source.is_some() && !by_source {
            return None;
        }
        let mut body = Mdb {
            vlan,
            group: key.group,
            source: key.source,
            trap: false,
            cpu: false,
            ports: Vec::new(),
        };
        let mut reason = None;
        for (ifindex, (e, ..)) in members {
            if *ifindex == key.bridge {
                body.cpu = true;
                continue;
            }
            // one that wants some sources only is not served for all of them
            if e.blocked || (by_source && key.source.is_none() && e.include) {
                continue;
            }
            let port = self.topo.port_of.get(ifindex);
            let option = self.links.get(ifindex).and_then(|l| l.link.bridge_port);
            match (port, option.and_then(|p| p.unsupported)) {
                (Some(port), None) => body.ports.push(*port),
                (Some(_), Some(u)) => {
                    reason = Some(Reason::MemberOption(self.dev(*ifindex), u));
                }
                (None, _) => reason = Some(Reason::Alien(self.dev(*ifindex))),
            }
        }
        body.ports.sort_unstable();
        body.ports.dedup();
        if body.ports.len() > TND_MDB_MAX_PORTS {
            reason = Some(Reason::ManyMembers(TND_MDB_MAX_PORTS));
        }
        if key.source.is_none()
            && let Some(s) = self.missing_source(key, vlan)
        {
            reason = Some(Reason::SourceLacking(s));
        }
        if reason.is_some() {
            (body.trap, body.cpu) = (true, false);
            body.ports.clear();
        }
        Some((body, reason))
    }

    /// A source of this group whose own entry did not fit: that of all sources would answer for it.
    fn missing_source(&self, key: &GroupKey, vlan: u32) -> Option<IpAddr> {
        if self.config.policy != Policy::Trap {
            return None;
        }
        let failed = self.groups.failed.get(&vlan)?;
        failed
            .values()
            .find(|k| k.group == key.group && k.source.is_some())?
            .source
    }

    /// An entry came to stand, went, or failed.
    pub(crate) fn group_changed(&mut self, id: u32, now: u64) {
        let o = self.hw.mdb.get(id);
        let failed = o.is_some_and(|o| o.fail.is_some() && o.want.is_some() && o.have.is_none());
        let key = self.groups.keys.get(&id).copied();
        let place = key.and_then(|k| Some((*self.topo.fid_of.get(&k.domain())?, k)));
        // the domains that lack one more or one less, and whose group it is
        let mut touched: Vec<(u32, GroupKey)> = Vec::new();
        for (vlan, all) in &mut self.groups.failed {
            let here = failed && place.is_some_and(|(v, _)| v == *vlan);
            if !here && let Some(was) = all.remove(&id) {
                touched.push((*vlan, was));
            }
        }
        if let (true, Some((vlan, k))) = (failed, place) {
            let all = self.groups.failed.entry(vlan).or_default();
            if all.insert(id, k).is_none() {
                touched.push((vlan, k));
            }
        }
        self.groups.failed.retain(|_, all| !all.is_empty());
        for (vlan, k) in touched {
            // first what would answer for it, then what has no entry
            if k.source.is_some() {
                self.reeval_group(GroupKey { source: None, ..k }, now);
            }
            self.want_vlan(vlan, now);
        }
    }

    pub(crate) fn group_released(&mut self, id: u32) {
        if let Some(k) = self.groups.keys.remove(&id) {
            self.groups.ids.remove(&k);
        }
    }

    /// Nothing is known of the chip any more.
    pub(crate) fn forget_groups(&mut self) {
        self.groups.failed.clear();
    }

    /// The chip has everything now: what was held back while it was filled is not any more.
    pub(crate) fn groups_filled(&mut self) {
        let snoops = |d: &Domain| self.snooping_of(*d).is_some_and(|b| b.mcast_snooping);
        if !self.warm {
            let domains = self.topo.fid_of.keys().filter(|d| snoops(d));
            let domains: Vec<Domain> = domains.copied().collect();
            self.topo.dirty.domains.extend(domains);
        }
    }

    // -- for people ---------------------------------------------------------------------------------------------------

    /// Why a group is the kernel's to forward, and what else decides who gets it.
    fn querier_reason(&self, key: &GroupKey) -> (Option<Reason>, &'static str) {
        let Some(info) = self.snooping_of(key.domain()) else {
            return (None, "");
        };
        let bridge = self.dev(key.bridge);
        if !info.mcast_snooping {
            return (None, "flooded: the bridge does not snoop");
        }
        if let Some(u) = info.mcast_unsupported {
            return (Some(Reason::Says(bridge, u)), "");
        }
        let querier = match key.group {
            GroupAddr::Ip(IpAddr::V4(_)) => info.querier4,
            GroupAddr::Ip(IpAddr::V6(_)) => info.querier6,
            GroupAddr::Mac(_) => Querier::There,
        };
        match querier {
            Querier::There => (None, ""),
            Querier::None => (None, "flooded, as the kernel does: no querier is known"),
            Querier::Unsure => (Some(Reason::QuerierUnsure(bridge)), ""),
        }
    }

    pub(crate) fn mdb_row(
        &self,
        key: &GroupKey,
        members: &BTreeMap<u32, Said<MdbEntry>>,
    ) -> MdbRow {
        let o = self.groups.ids.get(key).and_then(|id| self.hw.mdb.get(*id));
        let (mut state, mut reason) = crate::explain::object_state(self, o);
        if reason.is_none() {
            reason = self.groups.reasons.get(key).cloned();
            if reason.is_some() && state == State::Installed {
                state = State::Trap;
            }
        }
        let (unsure, note) = self.querier_reason(key);
        reason = reason.or(unsure);
        if reason.is_none() && state == State::Omitted {
            reason = Some(match key.source {
                Some(_) => Reason::NoSources,
                None => self.no_domain(key.bridge, key.vlan),
            });
        }
        let named = members.iter().map(|(i, (e, ..))| {
            let mode = match e {
                e if e.blocked => " (blocked)",
                e if e.include && key.source.is_none() => " (include)",
                _ => "",
            };
            format!("{}{mode}", self.dev(*i))
        });
        let mut members: Vec<String> = named.collect();
        if !note.is_empty() {
            members.push(format!("({note})"));
        }
        MdbRow {
            bridge: self.dev(key.bridge),
            vlan: key.vlan,
            group: Some(key.group),
            source: key.source,
            members,
            state,
            reason,
        }
    }

    /// All groups, with their members.
    pub(crate) fn group_members(&self) -> &BTreeMap<GroupKey, BTreeMap<u32, Said<MdbEntry>>> {
        &self.groups.members
    }

    /// The next bridge behind this one that has router ports; `None`: the first.
    pub(crate) fn router_bridge(&self, behind: Option<u32>) -> Option<u32> {
        let from = behind.map_or(Some(0), |b| b.checked_add(1))?;
        let mut of_them = self.groups.routers.range((from, 0)..);
        of_them.next().map(|(k, _)| k.0)
    }

    /// A bridge's router ports.
    pub(crate) fn router_row(&self, bridge: u32) -> MdbRow {
        let of_it = self.groups.routers.range((bridge, 0)..=(bridge, u32::MAX));
        let named = of_it.map(|(_, (r, ..))| {
            let families = match (r.v4, r.v6) {
                (true, true) => "",
                (true, false) => " (IPv4)",
                _ => " (IPv6)",
            };
            format!("{}{families}", self.dev(r.ifindex))
        });
        MdbRow {
            bridge: self.dev(bridge),
            vlan: 0,
            group: None,
            source: None,
            members: named.collect(),
            state: State::Installed,
            reason: self.topo.reasons.get(&bridge).cloned(),
        }
    }

    /// All of [`mdb_page`](Self::mdb_page).
    pub fn mdb(&self) -> Vec<MdbRow> {
        self.mdb_page("", usize::MAX)
            .map_or_else(Vec::new, |p| p.rows)
    }

    /// Why is this group in hardware, or not? One answer per bridge and source that knows it.
    pub fn explain_group(&self, group: GroupAddr) -> Vec<Explanation> {
        let all = self.groups.members.iter().filter(|(k, _)| k.group == group);
        all.map(|(k, members)| {
            let row = self.mdb_row(k, members);
            let o = self.groups.ids.get(k).and_then(|id| self.hw.mdb.get(*id));
            let fail = o.and_then(|o| o.fail.as_ref());
            let have = o.and_then(|o| o.have.as_ref());
            let mut key = group.to_string();
            if let Some(source) = k.source {
                key.push_str(&format!(" source {source}"));
            }
            if k.vlan != 0 {
                key.push_str(&format!(" vlan {}", k.vlan));
            }
            key.push_str(&format!(" master {}", row.bridge));
            Explanation {
                key,
                known: true,
                in_hardware: have.is_some(),
                state: row.state,
                action: have.map_or(Action::None, |h| match h.trap {
                    true => Action::Trap,
                    false => Action::Forward,
                }),
                target: row.members.join(" "),
                cost: self.cost_of(None, o),
                table: self.pool_of::<Mdb>(None, fail),
                reason: row.reason,
                since_ns: o.map_or(0, |o| o.since),
                cover: match fail {
                    Some(_) if k.source.is_some() => format!("{group} of all sources"),
                    Some(_) => format!("groups of {} without an entry", row.bridge),
                    None => String::new(),
                },
                waiting_for: self.waits_for(fail),
                source: members.values().next().map_or(0, |e| e.1),
                ..Explanation::default()
            }
        })
        .collect()
    }
}

//! Links, bridges, addresses, rules and sysctls: what becomes a port, a forwarding domain, a member, a router interface.
//!
//! Such changes are rare and touch many things at once, so everything here is computed anew when one came.

use crate::Store;
use crate::api::Domain;
use crate::fib::{Alias, Content, F_OMIT, V4};
use crate::hw::bodies::{Port, Rif, RifPlace};
use crate::hw::table::Sent;
use crate::hw::{Cls, Ref};
use crate::model::{
    Addr, BR_STATE_FORWARDING, BaseChain, BridgeInfo, BridgePort, ConfScope, Family, Link,
    LinkKind, Netconf, NexthopKind, RouteNextHops, Rule, Settings, SourceId,
};
use crate::vlan::Members;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use tandem_abi::raw::*;

/// RT_SCOPE_HOST: a route to an own address survives its link going down.
const SCOPE_HOST: u8 = 254;

/// A device as announced.
#[derive(Debug)]
pub(crate) struct LinkRec {
    pub link: Link,
    pub source: u8,
    pub generation: u16,
}

/// Sysctls of one scope.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conf {
    pub forwarding: Option<bool>,
    pub rp_filter: Option<u8>,
    pub ignore_linkdown: Option<bool>,
    pub send_redirects: Option<bool>,
    pub disabled: Option<bool>,
    pub source: u8,
    pub generation: u16,
}

/// What was derived from links.
#[derive(Debug, Default)]
pub(crate) struct Topo {
    /// Something changed: compute anew.
    pub dirty: bool,
    /// Table id of the router interface, by ifindex.
    pub rif_of: HashMap<u32, u32>,
    /// The reverse.
    pub if_of_rif: HashMap<u32, u32>,
    /// Interfaces that can be router interfaces, with the place.
    pub routable: HashMap<u32, RifPlace>,
    /// Table id of the VLAN, by what it stands for.
    pub fid_of: HashMap<Domain, u32>,
    /// The reverse.
    pub domain_of: HashMap<u32, Domain>,
    /// Ports whose netdevs are in another network namespace.
    pub away: BTreeSet<u16>,
    /// A router interface waits until that of another VRF is gone from its place.
    pub rif_moving: bool,
    /// Ports whose memberships are being replaced by those of the other kind (VLAN-aware or not).
    pub switching: BTreeSet<u16>,
    /// A forwarding domain or a membership of it failed: their bridges trap.
    pub degraded: bool,
    /// Port by ifindex and back.
    pub port_of: HashMap<u32, u16>,
    pub if_of_port: HashMap<u16, u32>,
    /// Why a device (or what comes in on it) isn't offloaded.
    pub reasons: HashMap<u32, String>,
    /// Why everything routed traps; empty if it doesn't.
    pub router_reason: String,
    /// Router interfaces by table of routes ("slot"), each with why packets that come in on it never get to the routes:
    /// of IPv4, of IPv6; empty if they do.
    pub ingress: BTreeMap<u8, Vec<(u32, [String; 2])>>,
    /// Some router interface filters by reverse path, loosely.
    pub rpf_loose: bool,
}

impl Topo {
    /// The interface has a router interface or gets one as soon as something needs it.
    pub fn may_have_rif(&self, ifindex: u32) -> bool {
        self.routable.contains_key(&ifindex)
    }
}

impl Store {
    // -- events -----------------------------------------------------------------------------------------------------

    pub(crate) fn upsert_link(&mut self, source: SourceId, link: Link, generation: u16, now: u64) {
        let ifindex = link.ifindex;
        let mut went_down = false;
        if let Some(r) = self.links.get_mut(&ifindex) {
            r.generation = generation;
            if r.link == link {
                self.counters.unchanged += 1;
                return;
            }
            went_down = r.link.admin_up && !link.admin_up;
        }
        self.vrf_link(source, &link);
        self.links.insert(
            ifindex,
            LinkRec {
                link,
                source: source.0,
                generation,
            },
        );
        self.topo.dirty = true;
        if went_down {
            self.link_gone(ifindex, source.0, false, now);
        }
        self.touch_paths_on(ifindex);
    }

    pub(crate) fn remove_link(&mut self, ifindex: u32, now: u64) {
        let Some(LinkRec { source, .. }) = self.links.remove(&ifindex) else {
            return;
        };
        self.topo.dirty = true;
        self.vrf_gone(ifindex, now);
        self.link_gone(ifindex, source, true, now);
        self.addrs.retain(|a, _| a.ifindex != ifindex);
        let neighs: Vec<_> = self
            .neighs
            .keys()
            .filter(|k| k.1 == ifindex)
            .copied()
            .collect();
        for k in neighs {
            self.remove_neigh(k.1, k.0, now);
        }
        let fdb: Vec<_> = self
            .fdb
            .iter()
            .filter(|(k, r)| k.bridge == ifindex || r.ifindex() == Some(ifindex))
            .map(|(k, _)| *k)
            .collect();
        for k in fdb {
            self.remove_fdb(k, now);
        }
        self.groups_of_link_gone(ifindex, now);
        self.vlans.retain(|k, _| k.0 != ifindex);
        self.filters_gone(ifindex);
        self.netconf
            .remove(&(Family::V4, ConfScope::Interface(ifindex)));
        self.netconf
            .remove(&(Family::V6, ConfScope::Interface(ifindex)));
        self.touch_paths_on(ifindex);
    }

    fn touch_paths_on(&mut self, ifindex: u32) {
        for p in self.paths.ids() {
            let uses = match &self.paths.sets[p].key {
                None => false,
                Some(k) => match &k.nexthops {
                    RouteNextHops::None => false,
                    RouteNextHops::One(n) => n.ifindex == ifindex,
                    RouteNextHops::Many(l) => l.iter().any(|n| n.ifindex == ifindex),
                    RouteNextHops::Object(_) => true,
                },
            };
            if uses {
                self.paths.touch(p);
            }
        }
    }

    /// What the kernel removes in silence when a link goes down (or away): IPv4 routes all of whose next hops lead there,
    /// and next-hop objects on it. Routes to own addresses stay while the device is there (fib_sync_down_dev). Of IPv6
    /// routes it tells, and a message about the link may be older than what a dump has brought since. Other sources than the
    /// link's own know nothing of that: what of theirs leads there stays, and traps.
    fn link_gone(&mut self, ifindex: u32, source: u8, unregistered: bool, now: u64) {
        for p in self.paths.ids() {
            let dead = match &self.paths.sets[p].key {
                None => continue,
                Some(k) => match &k.nexthops {
                    RouteNextHops::One(n) => n.ifindex == ifindex,
                    RouteNextHops::Many(l) => {
                        l.iter().any(|n| n.ifindex == ifindex)
                            && l.iter().all(|n| {
                                n.ifindex == ifindex
                                    || self.links.get(&n.ifindex).is_none_or(|l| !l.link.admin_up)
                            })
                    }
                    _ => false,
                },
            };
            if dead {
                self.remove_users(p, now, |a: &Alias| {
                    !a.v6 && a.source == source && (unregistered || a.scope != SCOPE_HOST)
                });
            }
        }
        let mut objects: Vec<u32> = self
            .paths
            .objects
            .iter()
            .filter(|(_, (o, src, _))| {
                *src == source && matches!(o.kind, NexthopKind::Single(n) if n.ifindex == ifindex)
            })
            .map(|(id, _)| *id)
            .collect();
        objects.sort_unstable();
        for id in objects {
            self.remove_nexthop(id, now);
        }
    }

    pub(crate) fn upsert_addr(&mut self, source: SourceId, a: Addr, generation: u16) {
        if self.addrs.insert(a, (source.0, generation)).is_some() {
            self.counters.unchanged += 1;
        } else {
            self.topo.dirty = true;
        }
    }

    /// With an IPv4 address go, in silence, the routes that prefer it as their source (fib_sync_down_addr).
    pub(crate) fn remove_addr(&mut self, a: Addr, now: u64) {
        if self.addrs.remove(&a).is_none() {
            return;
        }
        self.topo.dirty = true;
        if let IpAddr::V4(v4) = a.addr
            && !self.addrs.keys().any(|x| x.addr == a.addr)
        {
            for p in self.paths.ids() {
                if self.paths.sets[p]
                    .key
                    .as_ref()
                    .is_some_and(|k| k.prefsrc == Some(v4))
                {
                    self.remove_users(p, now, |r| !r.v6);
                }
            }
        }
    }

    pub(crate) fn upsert_rule(&mut self, source: SourceId, rule: Rule, generation: u16) {
        match self.rules.iter_mut().find(|r| r.0 == rule) {
            Some(r) => {
                r.2 = generation;
                self.counters.unchanged += 1;
            }
            None => {
                self.rules.push((rule, source.0, generation));
                self.topo.dirty = true;
            }
        }
    }

    pub(crate) fn remove_rule(&mut self, rule: &Rule) {
        self.rules.retain(|r| r.0 != *rule);
        self.topo.dirty = true;
    }

    pub(crate) fn upsert_chain(&mut self, source: SourceId, chain: BaseChain, generation: u16) {
        let same = |c: &BaseChain| {
            (c.family, &c.table, &c.name) == (chain.family, &chain.table, &chain.name)
        };
        match self.chains.iter_mut().find(|c| same(&c.0)) {
            Some(c) if c.0 == chain => {
                c.2 = generation;
                self.counters.unchanged += 1;
                return;
            }
            Some(c) => *c = (chain, source.0, generation),
            None => self.chains.push((chain, source.0, generation)),
        }
        self.topo.dirty = true;
    }

    pub(crate) fn remove_chain(&mut self, family: u8, table: &str, name: &str) {
        self.chains
            .retain(|c| !(c.0.family == family && c.0.table == table && c.0.name == name));
        self.topo.dirty = true;
    }

    pub(crate) fn upsert_netconf(&mut self, source: SourceId, n: Netconf, generation: u16) {
        let new = !self.netconf.contains_key(&(n.family, n.scope));
        let c = self.netconf.entry((n.family, n.scope)).or_default();
        let state = |c: &Conf| {
            (
                c.forwarding,
                c.rp_filter,
                c.ignore_linkdown,
                c.send_redirects,
                c.disabled,
            )
        };
        let before = state(c);
        c.forwarding = n.forwarding.or(c.forwarding);
        c.rp_filter = n.rp_filter.or(c.rp_filter);
        c.ignore_linkdown = n.ignore_linkdown.or(c.ignore_linkdown);
        c.send_redirects = n.send_redirects.or(c.send_redirects);
        c.disabled = n.disabled.or(c.disabled);
        (c.source, c.generation) = (source.0, generation);
        if before == state(c) && !new {
            self.counters.unchanged += 1;
            return;
        }
        self.topo.dirty = true;
        if let ConfScope::Interface(i) = n.scope {
            self.touch_paths_on(i);
        }
    }

    pub(crate) fn upsert_settings(&mut self, s: Settings) {
        if s != self.settings {
            self.settings = s;
            self.topo.dirty = true;
            for p in self.paths.ids() {
                self.paths.touch(p);
            }
        }
    }

    pub(crate) fn conf(&self, family: Family, scope: ConfScope) -> Conf {
        self.netconf
            .get(&(family, scope))
            .copied()
            .unwrap_or_default()
    }

    // -- what follows from them ---------------------------------------------------------------------------------------

    /// Computes ports, forwarding domains, members and router interfaces anew.
    pub(crate) fn refresh_topology(&mut self, now: u64) {
        self.topo.dirty = false;
        self.topo.reasons.clear();
        self.topo.router_reason = self.router_reason();
        self.refresh_maps();
        self.refresh_lags(now);
        self.refresh_vrfs(now);
        let bridges = self.bridges();
        self.refresh_domains(&bridges, now);
        self.refresh_ports(&bridges, now);
        self.bridge_device_reasons();
        self.vlan_device_reasons();
        self.refresh_rifs(&bridges, now);
        self.refresh_filters(now);
        for p in self.paths.ids() {
            self.paths.touch(p);
        }
        self.refresh_paths(now);
        for id in 0..self.paths.gateway_info.len() as u32 {
            self.update_gateway(id, now);
        }
        self.reeval_all_neighbours(now);
        self.reeval_all_fdb(now);
        self.reeval_all_groups(now);
    }

    fn refresh_maps(&mut self) {
        self.topo.port_of.clear();
        self.topo.if_of_port.clear();
        for (i, r) in &self.links {
            if let LinkKind::Swp { port } = r.link.kind {
                self.topo.port_of.insert(*i, port);
                self.topo.if_of_port.insert(port, *i);
            }
        }
    }

    /// Why everything routed must go to the CPU.
    fn router_reason(&self) -> String {
        if let Some(u) = self.settings.unsupported {
            return u.into();
        }
        for family in [Family::V4, Family::V6] {
            let of = |t| {
                self.rules
                    .iter()
                    .any(|r| r.0.family == family && r.0.is_default && r.0.table == t)
            };
            let any = self.rules.iter().any(|r| r.0.family == family);
            // A missing default rule changes the answer as much as an extra one.
            if any && !(of(crate::model::TABLE_LOCAL) && of(crate::model::TABLE_MAIN)) {
                return format!("a default policy rule of {family:?} is missing");
            }
        }
        // NFPROTO_INET, IPV4, IPV6 at prerouting, forward, postrouting (a local-in or -out chain sees no forwarded
        // packet).
        let hooked = self
            .chains
            .iter()
            .find(|c| matches!(c.0.family, 1 | 2 | 10) && matches!(c.0.hook, 0 | 2 | 4));
        if let Some(c) = hooked {
            return format!(
                "nftables base chain {}/{} sees forwarded packets",
                c.0.table, c.0.name
            );
        }
        String::new()
    }

    fn refresh_ports(&mut self, bridges: &BTreeMap<u32, (BridgeInfo, String)>, now: u64) {
        // Table ids are port − 1: take them all once, in order.
        while self.ports_taken < u32::from(self.config.ports) {
            self.hw.ports.take();
            self.ports_taken += 1;
        }
        for port in 1..=self.config.ports {
            let ifindex = self.topo.if_of_port.get(&port).copied();
            let link = ifindex
                .and_then(|i| self.links.get(&i))
                .map(|r| r.link.clone());
            let body = match &link {
                None if self.topo.away.contains(&port) => Port::AWAY,
                None => Port::CUT_OFF,
                Some(l) => self.port_body(port, l, bridges, now),
            };
            if link.is_none() {
                self.want_members(port, Members::new(), now);
            }
            self.hw.want(u32::from(port) - 1, Some(body), now);
        }
        // The groups' ports: there as long as the group is.
        let groups: Vec<(u16, u32)> = self
            .lags
            .on
            .iter()
            .map(|(lag, i)| (self.lag_port(*lag), *i))
            .collect();
        let gone: Vec<u16> = self
            .lag_ports
            .iter()
            .copied()
            .filter(|p| !groups.iter().any(|g| g.0 == *p))
            .collect();
        for port in gone {
            self.lag_ports.remove(&port);
            self.want_members(port, Members::new(), now);
            self.hw.want::<Port>(u32::from(port) - 1, None, now);
        }
        for (port, ifindex) in groups {
            while self.ports_taken < u32::from(port) {
                self.hw.ports.take();
                self.ports_taken += 1;
            }
            let Some(link) = self.links.get(&ifindex).map(|r| r.link.clone()) else {
                continue;
            };
            self.lag_ports.insert(port);
            let body = self.port_body(port, &link, bridges, now);
            self.hw.want(u32::from(port) - 1, Some(body), now);
        }
    }

    /// A port's object, and its memberships on the way.
    fn port_body(
        &mut self,
        port: u16,
        l: &Link,
        bridges: &BTreeMap<u32, (BridgeInfo, String)>,
        now: u64,
    ) -> Port {
        let mut flags = if l.admin_up { TND_PORT_UP } else { 0 };
        let mut stp = BR_STATE_FORWARDING;
        let mut reason = self.port_device_reason(l);
        if let (true, Some(why)) = (reason.is_empty(), self.no_lists(port)) {
            reason = why;
        }
        if let Some(why) = self.bond_of(l) {
            // what is set here sleeps while the port is in its group: until then all of it is the kernel's
            flags |= TND_PORT_TRAP_ALL;
            reason = why;
        } else if self.vrf_master(l).is_none() {
            let bridge = self.topo.reasons.get(&l.master).cloned();
            match (bridges.contains_key(&l.master), &l.bridge_port) {
                (true, Some(bp)) => {
                    stp = bp.state;
                    flags |= bridge_port_flags(bp) | self.router_flags(l.master, l.ifindex);
                    if let Some(u) = bp.unsupported {
                        reason = format!("bridge port option {u} is not offloaded");
                    } else if let (true, true, Some((b, _))) =
                        (bp.locked, bp.learning, bridges.get(&l.master))
                        && b.no_link_local_learning
                    {
                        // the chip would learn the very stations that ask to be let in (EAPOL)
                        reason =
                            "locked, learning and no_linklocal_learn are not offloaded together"
                                .into();
                    }
                    if let (true, Some(b)) = (reason.is_empty(), bridge) {
                        reason = format!("{}: {b}", self.dev(l.master));
                    }
                }
                _ => {
                    reason = match bridge {
                        Some(b) => format!("{}: {b}", self.dev(l.master)),
                        None => format!(
                            "its master {} is not an offloaded bridge",
                            self.dev(l.master)
                        ),
                    };
                }
            }
        }
        let members = self.port_members(port, l);
        if self.want_members(port, members, now) && reason.is_empty() {
            reason = "its VLANs are being replaced".into();
        }
        if !reason.is_empty() {
            flags |= TND_PORT_TRAP_ALL;
            self.topo.reasons.insert(l.ifindex, reason);
        }
        Port {
            flags,
            mtu: l.mtu,
            stp,
            mac: l.mac,
            lag: self.lag_of_port(port),
        }
    }

    /// Why what is attached to a port's device needs every frame.
    fn port_device_reason(&self, l: &Link) -> String {
        let free = self.vrf_master(l).is_some();
        let upper = self
            .links
            .values()
            .map(|r| &r.link)
            .filter(|u| u.lower == l.ifindex && !(free && self.plain_vlan(u, l)))
            .min_by_key(|u| u.ifindex);
        if let Some(upper) = upper {
            return format!("{} is on top of it", upper.name);
        }
        match self
            .device_chain(&l.name, false)
            .or_else(|| self.device_chain(&l.name, true))
        {
            Some(c) => format!("nftables base chain {c} is attached to it"),
            None => String::new(),
        }
    }

    fn refresh_rifs(&mut self, bridges: &BTreeMap<u32, (BridgeInfo, String)>, now: u64) {
        self.topo.routable.clear();
        // A place has one router interface on the chip: that of another VRF goes, with all that refers to it, first.
        let mut held: HashMap<RifPlace, u8> = HashMap::new();
        for id in self.hw.rifs.ids() {
            let o = self.hw.rifs.at(id);
            let on_way = match &o.sent {
                Sent::Put(b) => Some(b),
                _ => None,
            };
            for b in on_way.into_iter().chain(&o.have) {
                held.insert(b.place, b.vrf);
            }
        }
        self.topo.rif_moving = false;
        let mut wanted: BTreeMap<u32, Rif> = BTreeMap::new();
        let mut ingress = HashMap::new();
        let mut gaps: BTreeMap<u8, Vec<(u32, [String; 2])>> = BTreeMap::new();
        for (i, r) in &self.links {
            let l = &r.link;
            let place = match l.kind {
                _ if self.vrf_master(l).is_none() || self.topo.reasons.contains_key(i) => continue,
                LinkKind::Swp { port } if port >= 1 && port <= self.config.ports => {
                    RifPlace::Port(port)
                }
                LinkKind::Bond(_) => match self.topo.port_of.get(i) {
                    Some(port) => RifPlace::Port(*port),
                    None => continue,
                },
                LinkKind::Bridge(info) => {
                    let own = if info.vlan_filtering {
                        let pvid = self.vlans_of(*i).find(|v| v.pvid && v.untagged);
                        pvid.map(|v| v.vid)
                    } else {
                        Some(0)
                    };
                    let domain = own.map(|vlan| Domain { dev: *i, vlan });
                    match domain.and_then(|d| self.topo.fid_of.get(&d)) {
                        Some(f) if bridges.contains_key(i) && !self.hidden_hosts(*i) => {
                            RifPlace::Vlan(*f)
                        }
                        _ => continue,
                    }
                }
                LinkKind::Vlan { vid } if !self.hidden_hosts(l.lower) => {
                    match self.vlan_place(l, vid) {
                        Ok(place) => place,
                        Err(_) => continue,
                    }
                }
                _ => continue,
            };
            let vrf = self.vrf_master(l).unwrap_or(0);
            if held.get(&place).is_some_and(|v| *v != vrf) {
                self.topo.rif_moving = true;
                continue;
            }
            self.topo.routable.insert(*i, place);
            let needed = self.addrs.keys().any(|a| a.ifindex == *i)
                || self.paths.on_interface.contains_key(i);
            if needed {
                let (mut flags, mut reason) = self.rif_flags(*i);
                // Its port may be up and bring packets that nobody takes.
                if matches!(l.kind, LinkKind::Vlan { .. }) && !l.admin_up {
                    flags |= TND_RIF_TRAP_ALL;
                    reason = "the interface is down".into();
                }
                let of = |family| self.ingress_gap(*i, family, flags, &reason);
                let gap = [of(Family::V4), of(Family::V6)];
                gaps.entry(vrf).or_default().push((*i, gap));
                if !reason.is_empty() {
                    ingress.insert(*i, reason);
                }
                wanted.insert(
                    *i,
                    Rif {
                        vrf,
                        place,
                        mac: l.mac,
                        flags,
                        mtu: l.mtu,
                        lag: match place {
                            RifPlace::Port(p) | RifPlace::PortVlan(p, _) => self.lag_of_port(p),
                            RifPlace::Vlan(_) => None,
                        },
                    },
                );
            }
        }
        self.ingress_reasons = ingress;
        self.topo.ingress = gaps;
        let loose = wanted.values().any(|r| r.flags & TND_RIF_RPF_LOOSE != 0);
        if loose != self.topo.rpf_loose {
            self.topo.rpf_loose = loose;
            // Broadcast addresses below their connected prefix: needed now, or no longer.
            self.requeue_below::<V4>(V4::default(), 0, |x| {
                x.is(F_OMIT) || x.want == Content::trap(TND_TRAP_LOCAL)
            });
        }
        let gone: Vec<(u32, u32)> = self
            .topo
            .rif_of
            .iter()
            .filter(|(i, _)| !wanted.contains_key(i))
            .map(|(i, r)| (*i, *r))
            .collect();
        for (i, r) in gone {
            self.topo.rif_of.remove(&i);
            self.topo.if_of_rif.remove(&r);
            self.hw.want::<Rif>(r, None, now);
        }
        for (i, body) in wanted {
            // Another place is another object: a RIF doesn't move.
            if let Some(&r) = self.topo.rif_of.get(&i)
                && self
                    .hw
                    .rifs
                    .at(r)
                    .want
                    .as_ref()
                    .is_some_and(|w| w.place != body.place)
            {
                self.topo.rif_of.remove(&i);
                self.topo.if_of_rif.remove(&r);
                self.hw.want::<Rif>(r, None, now);
            }
            let r = match self.topo.rif_of.get(&i) {
                Some(r) => *r,
                None => {
                    let r = self.hw.rifs.take();
                    self.topo.rif_of.insert(i, r);
                    self.topo.if_of_rif.insert(r, i);
                    r
                }
            };
            self.hw.want(r, Some(body), now);
        }
    }

    /// A policy rule beyond the kernel's own that looks at what comes in here.
    fn rule_at(&self, family: Family, ifindex: u32) -> Option<&Rule> {
        let name = self.dev(ifindex);
        let vrf = self.vrf_name(self.slot_of(ifindex));
        self.rules.iter().map(|r| &r.0).find(|r| {
            r.family == family
                && !r.is_default
                && !r.l3mdev
                && (r.iif.is_empty() || r.iif == name || r.iif == vrf)
        })
    }

    /// A member of this bridge that traps everything may hide a host from the chip.
    fn hidden_hosts(&self, bridge: u32) -> bool {
        self.links
            .values()
            .any(|m| m.link.master == bridge && self.topo.reasons.contains_key(&m.link.ifindex))
    }

    /// Flags of a router interface, and why what comes in there traps.
    fn rif_flags(&self, ifindex: u32) -> (u32, String) {
        let own4 = self.conf(Family::V4, ConfScope::Interface(ifindex));
        let all4 = self.conf(Family::V4, ConfScope::All);
        // IPv6 forwarding is decided by conf/all alone (ip6_forward), but an interface with disable_ipv6 or without any
        // IPv6 settings (its MTU is below 1280) takes no IPv6 packet at all.
        let has6 = self
            .netconf
            .contains_key(&(Family::V6, ConfScope::Interface(ifindex)));
        let own6 = self.conf(Family::V6, ConfScope::Interface(ifindex));
        let all6 = self.conf(Family::V6, ConfScope::All);
        let mut flags = 0;
        let mut reason = String::new();
        if own4.forwarding == Some(true) {
            flags |= TND_RIF_V4;
        }
        if all6.forwarding == Some(true) && has6 && own6.disabled != Some(true) {
            flags |= TND_RIF_V6;
        }
        match own4.rp_filter.unwrap_or(0).max(all4.rp_filter.unwrap_or(0)) {
            0 => {}
            1 => {
                flags |= TND_RIF_TRAP_ALL;
                reason = "rp_filter 1 (strict) is not offloaded".into();
            }
            // Without an IPv4 address the kernel takes only sources whose route leads back there.
            _ if !self
                .addrs
                .keys()
                .any(|a| a.ifindex == ifindex && a.addr.is_ipv4()) =>
            {
                flags &= !TND_RIF_V4;
                reason = "rp_filter 2 (loose) without an IPv4 address is not offloaded".into();
            }
            _ => flags |= TND_RIF_RPF_LOOSE,
        }
        if own4.send_redirects == Some(false) && all4.send_redirects == Some(false) {
            flags |= TND_RIF_NO_REDIRECT;
        }
        for (family, flag) in [(Family::V4, TND_RIF_V4), (Family::V6, TND_RIF_V6)] {
            if let Some(r) = self.rule_at(family, ifindex) {
                flags &= !flag;
                reason = format!("policy rule \"{}\"", r.text);
            }
        }
        let vrf = self.vrf_reason(self.slot_of(ifindex));
        if !vrf.is_empty() {
            flags |= TND_RIF_TRAP_ALL;
            reason = vrf;
        }
        if !self.topo.router_reason.is_empty() {
            flags |= TND_RIF_TRAP_ALL;
            reason.clone_from(&self.topo.router_reason);
        }
        (flags, reason)
    }

    /// A router interface or a forwarding domain came to stand or failed: what depends on it looks again.
    pub(crate) fn base_changed(&mut self, r: Ref) {
        let ids: [(Cls, Vec<u32>); 3] = match r.cls {
            Cls::Rif => [
                (Cls::Nexthop, self.hw.nexthops.ids()),
                (Cls::Neigh, self.hw.neighs.ids()),
                (Cls::Rif, vec![]),
            ],
            Cls::Vlan => [
                (Cls::Member, self.hw.members.ids()),
                (Cls::Rif, self.hw.rifs.ids()),
                (Cls::Fdb, self.hw.fdb.ids()),
            ],
            _ => return,
        };
        for (cls, ids) in ids {
            for id in ids {
                self.hw.retry_dependent(Ref::new(cls, id));
            }
        }
        if r.cls == Cls::Vlan {
            self.retry_groups();
        }
    }
}

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

//! Links, bridges, addresses, rules and sysctls: what becomes a port, a forwarding domain, a member, a router interface.
//!
//! An event says which of it may be another now ([`Dirty`], whose file draws what follows from what); what it says is
//! computed anew before something is programmed.

mod dirty;
mod guard;
#[cfg(feature = "oracle")]
mod oracle;
mod ports;
mod refresh;
mod rifs;

use crate::Store;
use crate::api::Domain;
use crate::hw::Ref;
use crate::hw::bodies::{Rif, RifPlace};
use crate::model::{
    Addr, BaseChain, BridgeInfo, ConfScope, Family, FdbKey, Link, LinkKind, Netconf, RouteNextHops,
    Rule, Settings, SourceId,
};
use crate::reason::Reason;
use crate::slices::{Going, Span, Then, Walk, Work};
use dirty::Dirty;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};

/// A device as announced.
#[derive(Debug)]
pub(crate) struct LinkRec {
    pub link: Link,
    pub source: u8,
    pub generation: u16,
}

/// Sysctls of one scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// What is to be looked at again.
    pub dirty: Dirty,
    /// How far that has come, where some of it is left over.
    pub stage: Option<refresh::Stage>,
    /// All of it is being looked at: nobody need say what follows.
    pub everything: bool,
    /// Bridges that are being looked at; then those whose reasons are.
    pub looked_bridges: BTreeSet<u32>,
    /// Of interfaces that were looked at: router interfaces that are to go, and those that are wanted.
    pub rifs_gone: BTreeMap<u32, u32>,
    pub rifs_wanted: BTreeMap<u32, Rif>,
    /// How often that was.
    #[cfg(feature = "oracle")]
    pub wholes: usize,
    /// Devices by master, and by what they are on.
    pub within: BTreeSet<(u32, u32)>,
    pub above: BTreeSet<(u32, u32)>,
    /// VLAN interfaces by what they are on and VID.
    pub vlans_on: BTreeSet<(u32, u16, u32)>,
    /// Devices that take what goes up in a VLAN, with the bridge and the VID.
    pub taps: BTreeSet<(u32, u32, u16)>,
    /// Devices by name, and bonds.
    pub names: BTreeSet<(String, u32)>,
    pub bonds: BTreeSet<u32>,
    /// VLANs with a state or options of their own, by device.
    pub odd_vlans: BTreeSet<(u32, u16)>,
    /// Bridges with front-panel ports: why one can't be offloaded.
    pub bridges: BTreeMap<u32, (BridgeInfo, Option<Reason>)>,
    /// Bridges with a member whose frames are all the kernel's.
    pub hidden: BTreeSet<u32>,
    /// Table id of the router interface, by ifindex.
    pub rif_of: HashMap<u32, u32>,
    /// The reverse.
    pub if_of_rif: HashMap<u32, u32>,
    /// Router interfaces by place, those that go as well, until they are gone; and back.
    pub at_place: BTreeSet<(RifPlace, u32)>,
    pub place_of: HashMap<u32, RifPlace>,
    /// Interfaces that can be router interfaces, with the place.
    pub routable: HashMap<u32, RifPlace>,
    /// Table id of the VLAN, by what it stands for.
    pub fid_of: BTreeMap<Domain, u32>,
    /// The reverse.
    pub domain_of: HashMap<u32, Domain>,
    /// Ports whose netdevs are in another network namespace.
    pub away: BTreeSet<u16>,
    /// Interfaces whose router interface waits until that of another VRF is gone from its place.
    pub rif_moving: BTreeSet<u32>,
    /// Ports whose memberships are being replaced by those of the other kind (VLAN-aware or not).
    pub switching: BTreeSet<u16>,
    /// Forwarding domains and memberships of such that failed, by id, with the device of the domain: a bridge traps.
    pub incomplete: BTreeMap<Ref, u32>,
    /// The same by device.
    pub lacks: BTreeSet<(u32, Ref)>,
    /// Memberships by port that were wanted otherwise than they stood: those of a bridge that the port has left are among them.
    pub moving: BTreeSet<(u16, u32)>,
    /// Domains that are to flood to unknown stations again when the ports have left that leave them, by table id.
    pub floods: BTreeSet<u32>,
    /// Ports with memberships of a bridge that they have left: what they have of it stays until those are gone.
    pub leaving: BTreeSet<u16>,
    /// Entries of the FDB that go when such a port has left, with the port.
    pub left_behind: BTreeSet<(u16, u32)>,
    /// Entries of the FDB that are to go, with the port that they were to be behind last: the chip may not have heard of that.
    pub last_behind: HashMap<u32, u16>,
    /// Ports that were taken out of service in a bridge that is up: since when, ns; none: that is all their source had to say.
    pub shut: BTreeMap<u16, Option<u64>>,
    /// Sources that have told all, and of no link since.
    pub told: BTreeSet<u8>,
    /// Ports in the order in which the kernel has changed them since ports were looked at.
    pub changed: Vec<u16>,
    /// Bridges that went down or came up, since ports were looked at.
    pub turned: BTreeSet<u32>,
    /// Bridges that go down or come up.
    pub guards: BTreeMap<u32, guard::Guard>,
    /// Port by ifindex and back.
    pub port_of: HashMap<u32, u16>,
    pub if_of_port: HashMap<u16, u32>,
    /// Why a device (or what comes in on it) isn't offloaded.
    pub reasons: HashMap<u32, Reason>,
    /// Why everything routed traps.
    pub router_reason: Option<Reason>,
    /// Router interfaces by table of routes ("slot") and ifindex, each with why packets that come in on it never get to the routes:
    /// of IPv4, of IPv6; none if they do.
    pub ingress: BTreeMap<u8, BTreeMap<u32, [Option<Reason>; 2]>>,
    /// Router interfaces that filter by reverse path, loosely.
    pub loose: BTreeSet<u32>,
}

impl Topo {
    /// The interface has a router interface or gets one as soon as something needs it.
    pub fn may_have_rif(&self, ifindex: u32) -> bool {
        self.routable.contains_key(&ifindex)
    }

    /// Devices with this name.
    pub fn named(&self, name: &str) -> Vec<u32> {
        let from = (name.to_owned(), 0)..;
        let of_it = self.names.range(from).take_while(|x| x.0 == name);
        of_it.map(|x| x.1).collect()
    }

    /// Devices that a chain is at: with this name, or (`*`) with one that begins so.
    pub fn named_like(&self, name: &str) -> Vec<u32> {
        let Some(start) = name.strip_suffix('*') else {
            return self.named(name);
        };
        let from = (start.to_owned(), 0)..;
        let of_it = self
            .names
            .range(from)
            .take_while(|x| x.0.starts_with(start));
        of_it.map(|x| x.1).collect()
    }

    /// Domains of a bridge.
    pub fn domains_of(&self, dev: u32) -> Vec<Domain> {
        let all = Domain { dev, vlan: 0 }..=Domain {
            dev,
            vlan: u16::MAX,
        };
        self.fid_of.range(all).map(|(d, _)| *d).collect()
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
            if r.link.admin_up != link.admin_up && matches!(link.kind, LinkKind::Bridge(_)) {
                self.topo.turned.insert(ifindex);
            }
            if let Some(port) = self.topo.port_of.get(&ifindex)
                && !self.topo.changed.contains(port)
            {
                self.topo.changed.push(*port);
            }
            let [was, is] = [&r.link, &link].map(|l| l.bridge_port.as_ref().map(|_| l.master));
            let turns = r.link.admin_up != link.admin_up
                || was != is
                || r.link.bridge_port != link.bridge_port;
            if turns
                && was.or(is).is_some()
                && let Some(port) = self.topo.port_of.get(&ifindex)
            {
                let (id, bridges) = (u32::from(*port) - 1, [r.link.master, link.master]);
                // one that joins comes to stand behind stations with the state that it is told then
                if was.is_some() {
                    self.hw.goes_behind(id, bridges);
                }
                self.takes_turn(id, bridges);
            }
        }
        self.topo.told.remove(&source.0);
        self.vrf_link(source, &link);
        let rec = LinkRec {
            link: link.clone(),
            source: source.0,
            generation,
        };
        let old = self.links.insert(ifindex, rec);
        self.link_changed(old.as_ref().map(|r| &r.link), Some(&link));
        if went_down {
            self.link_gone(ifindex, source.0, false, now);
        }
        self.touch_paths_on(ifindex);
    }

    pub(crate) fn remove_link(&mut self, ifindex: u32, now: u64) {
        let Some(LinkRec { source, link, .. }) = self.links.remove(&ifindex) else {
            return;
        };
        self.vrf_gone(ifindex, now);
        self.link_gone(ifindex, source, true, now);
        for a in self.addresses_of(ifindex) {
            self.addrs.remove(&a);
        }
        self.for_neighbours_on(ifindex, Then::Remove, now);
        self.for_stations_behind(ifindex, Then::Remove, now);
        let of_bridge = FdbKey::of_bridge(ifindex);
        self.walk(Walk::Stations(of_bridge, Then::Remove), now);
        self.groups_of_link_gone(ifindex, now);
        self.netconf
            .remove(&(Family::V4, ConfScope::Interface(ifindex)));
        self.netconf
            .remove(&(Family::V6, ConfScope::Interface(ifindex)));
        self.topo.reasons.remove(&ifindex);
        self.link_changed(Some(&link), None);
        self.touch_paths_on(ifindex);
        self.walk(Walk::VlansOf(ifindex), now);
        self.walk(Walk::FiltersOf(ifindex), now);
    }

    fn addresses_of(&self, ifindex: u32) -> Vec<Addr> {
        let all = self.addrs.range(first_address(ifindex)..);
        let of_it = all.take_while(|(a, _)| a.ifindex == ifindex);
        of_it.map(|(a, _)| *a).collect()
    }

    /// It has an address of this kind.
    fn has_address(&self, ifindex: u32, kind: impl Fn(&Addr) -> bool) -> bool {
        let all = self.addrs.range(first_address(ifindex)..);
        let mut of_it = all.take_while(|(a, _)| a.ifindex == ifindex);
        of_it.any(|(a, _)| kind(a))
    }

    /// Paths over an interface look again.
    pub(crate) fn touch_paths_on(&mut self, ifindex: u32) {
        for p in self.paths.over(ifindex) {
            self.paths.touch(p);
        }
    }

    /// What the kernel removes in silence when a link goes down (or away): IPv4 routes all of whose next hops lead there,
    /// and next-hop objects on it. Routes to own addresses stay while the device is there (fib_sync_down_dev). Of IPv6
    /// routes it tells, and a message about the link may be older than what a dump has brought since. Other sources than the
    /// link's own know nothing of that: what of theirs leads there stays, and traps.
    fn link_gone(&mut self, ifindex: u32, source: u8, unregistered: bool, now: u64) {
        let going = Going::Of {
            source,
            own: unregistered,
        };
        self.walk(Walk::Leading(ifindex, 0, going), now);
        let objects = Span::new((ifindex, 0), (ifindex, u32::MAX));
        self.walk(Walk::Objects(objects, source), now);
    }

    /// The kernel takes the routes of a path that leads to an interface with that.
    pub(crate) fn goes_with(&self, path: u32, ifindex: u32) -> bool {
        let down = |i: u32| self.links.get(&i).is_none_or(|l| !l.link.admin_up);
        match self.paths.sets[path].key.as_ref().map(|k| &k.nexthops) {
            Some(RouteNextHops::One(_)) => true,
            Some(RouteNextHops::Many(l)) => {
                l.iter().all(|n| n.ifindex == ifindex || down(n.ifindex))
            }
            _ => false,
        }
    }

    pub(crate) fn upsert_addr(&mut self, source: SourceId, a: Addr, generation: u16) {
        if self.addrs.insert(a, (source.0, generation)).is_some() {
            self.counters.unchanged += 1;
        } else {
            self.topo.dirty.rifs.insert(a.ifindex);
        }
    }

    /// With an IPv4 address go, in silence, the routes that prefer it as their source (fib_sync_down_addr). Not `said`: a dump did not
    /// have it, and the routes that it has are there.
    pub(crate) fn remove_addr(&mut self, a: Addr, said: bool, now: u64) {
        if self.addrs.remove(&a).is_none() {
            return;
        }
        self.topo.dirty.rifs.insert(a.ifindex);
        if let (IpAddr::V4(v4), true) = (a.addr, said)
            && let Some(paths) = self.paths.preferring.get(&v4).cloned()
            && !self.addrs.keys().any(|x| x.addr == a.addr)
        {
            for p in paths {
                self.for_users(p, Work::Remove(Going::V4), now);
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
                self.mark_rule(&rule);
                self.rules.push((rule, source.0, generation));
            }
        }
    }

    pub(crate) fn remove_rule(&mut self, rule: &Rule) {
        self.rules.retain(|r| r.0 != *rule);
        self.mark_rule(rule);
    }

    pub(crate) fn upsert_chain(&mut self, source: SourceId, chain: BaseChain, generation: u16) {
        let same = |c: &BaseChain| {
            (c.family, &c.table, &c.name) == (chain.family, &chain.table, &chain.name)
        };
        let said = (chain.clone(), source.0, generation);
        let old = match self.chains.iter_mut().find(|c| same(&c.0)) {
            Some(c) if c.0 == chain => {
                c.2 = generation;
                self.counters.unchanged += 1;
                return;
            }
            Some(c) => Some(std::mem::replace(c, said)),
            None => {
                self.chains.push(said);
                None
            }
        };
        for c in old.iter().map(|c| &c.0).chain([&chain]) {
            self.mark_chain(c);
        }
    }

    pub(crate) fn remove_chain(&mut self, family: u8, table: &str, name: &str) {
        let it = |c: &BaseChain| c.family == family && c.table == table && c.name == name;
        if let Some(at) = self.chains.iter().position(|c| it(&c.0)) {
            let (gone, ..) = self.chains.remove(at);
            self.mark_chain(&gone);
        }
    }

    pub(crate) fn upsert_netconf(&mut self, source: SourceId, n: Netconf, generation: u16) {
        let new = !self.netconf.contains_key(&(n.family, n.scope));
        let c = self.netconf.entry((n.family, n.scope)).or_default();
        let before = *c;
        c.forwarding = n.forwarding.or(c.forwarding);
        c.rp_filter = n.rp_filter.or(c.rp_filter);
        c.ignore_linkdown = n.ignore_linkdown.or(c.ignore_linkdown);
        c.send_redirects = n.send_redirects.or(c.send_redirects);
        c.disabled = n.disabled.or(c.disabled);
        let same = before == *c && !new;
        (c.source, c.generation) = (source.0, generation);
        if same {
            self.counters.unchanged += 1;
            return;
        }
        self.netconf_changed(n.scope);
    }

    /// Sysctls of a scope are others, or gone.
    pub(crate) fn netconf_changed(&mut self, scope: ConfScope) {
        match scope {
            ConfScope::Interface(i) => {
                self.topo.dirty.rifs.insert(i);
                self.touch_paths_on(i);
            }
            ConfScope::All => {
                self.mark_rifs();
                self.touch_paths();
            }
            // what new devices begin with
            ConfScope::Default => {}
        }
    }

    pub(crate) fn upsert_settings(&mut self, s: Settings) {
        if s != self.settings {
            self.settings = s;
            self.topo.dirty.router = true;
            self.mark_bridges();
            self.touch_paths();
        }
    }

    pub(crate) fn touch_paths(&mut self) {
        for p in self.paths.ids() {
            self.paths.touch(p);
        }
    }

    pub(crate) fn conf(&self, family: Family, scope: ConfScope) -> Conf {
        self.netconf
            .get(&(family, scope))
            .copied()
            .unwrap_or_default()
    }
}

/// Before all addresses of an interface.
fn first_address(ifindex: u32) -> Addr {
    Addr {
        ifindex,
        addr: Ipv4Addr::UNSPECIFIED.into(),
        prefix_len: 0,
    }
}

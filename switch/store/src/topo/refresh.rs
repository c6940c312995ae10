//! The stages: what follows from links, bridges, addresses, rules and sysctls, in the order in which it does.

use crate::Store;
use crate::api::Domain;
use crate::hw::{Cls, Ref};
use crate::mdb::GroupKey;
use crate::model::{Family, FdbKey, Link, LinkKind};
use crate::reason::Reason;
use crate::slices::{FIRST_ADDRESS, LAST_ADDRESS, Span, Then, Walk};

/// What is to be done next of a look at the topology, where it goes in slices: bridges and their domains, memberships,
/// VLAN interfaces, router interfaces, rules of lists, each with what comes before it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    Bridges,
    Members,
    Ports,
    Rifs,
    Rules,
    Lists,
    Follow,
}

impl Store {
    /// Looks at what [`super::Dirty`] names: ports, forwarding domains, members, router interfaces, and what is on them.
    pub(crate) fn refresh_topology(&mut self, now: u64) {
        if std::mem::take(&mut self.topo.dirty.lags) && !self.topo.dirty.all {
            self.refresh_lags(now);
        }
        if std::mem::take(&mut self.topo.dirty.vrfs) {
            self.refresh_vrfs(now);
        }
        if std::mem::take(&mut self.topo.dirty.router) {
            let reason = self.router_reason();
            if reason != self.topo.router_reason {
                self.topo.router_reason = reason;
                self.mark_rifs();
            }
        }
        self.topo.everything = self.topo.dirty.all;
        if self.topo.everything {
            #[cfg(feature = "oracle")]
            {
                self.topo.wholes += 1;
            }
            self.topo.router_reason = self.router_reason();
            self.refresh_maps();
            self.refresh_lags(now);
            self.refresh_vrfs(now);
            self.mark_everything();
        }
        self.topo.stage = Some(Stage::Bridges);
        self.next_stages(now);
    }

    /// Goes on with the stages, each as soon as nothing of the one before is left over.
    pub(crate) fn next_stages(&mut self, now: u64) {
        while !self.slices.any()
            && let Some(stage) = self.topo.stage
        {
            self.topo.stage = match stage {
                Stage::Bridges => {
                    // one of which an answer says more from here on is looked at after this
                    self.topo.looked_bridges = std::mem::take(&mut self.topo.dirty.bridges);
                    self.walk(Walk::Bridges(Span::new(0, u32::MAX)), now);
                    self.walk(Walk::VlanSets, now);
                    self.walk(Walk::Gone(Span::new(Domain::FIRST, Domain::LAST)), now);
                    self.walk(Walk::Come, now);
                    self.walk(Walk::BridgeReasons, now);
                    Some(Stage::Members)
                }
                Stage::Members => {
                    self.refresh_group_ports(now);
                    self.walk(Walk::Members, now);
                    Some(Stage::Ports)
                }
                Stage::Ports => {
                    self.refresh_ports(now);
                    self.walk(Walk::VlanDevices, now);
                    Some(Stage::Rifs)
                }
                Stage::Rifs => {
                    self.refresh_hidden();
                    self.walk(Walk::Rifs, now);
                    Some(Stage::Rules)
                }
                Stage::Rules => {
                    self.name_rules();
                    self.walk(Walk::Rules, now);
                    Some(Stage::Lists)
                }
                Stage::Lists => {
                    self.end_unused(now);
                    self.walk(Walk::Lists, now);
                    Some(Stage::Follow)
                }
                Stage::Follow => {
                    self.follow(now);
                    None
                }
            };
        }
    }

    /// What depends on router interfaces and domains looks again.
    fn follow(&mut self, now: u64) {
        if std::mem::take(&mut self.topo.everything) {
            return self.follow_all(now);
        }
        self.refresh_paths(now);
        for i in std::mem::take(&mut self.topo.dirty.neighbours) {
            self.for_gateways_on(i, Then::Reeval, now);
            self.for_neighbours_on(i, Then::Reeval, now);
        }
        for d in std::mem::take(&mut self.topo.dirty.stations) {
            self.for_domain(d, Then::Reeval, now);
        }
        for i in std::mem::take(&mut self.topo.dirty.behind) {
            self.for_stations_behind(i, Then::Reeval, now);
        }
        for bridge in std::mem::take(&mut self.topo.dirty.groups) {
            let all = GroupKey::of_bridge(bridge);
            self.walk(Walk::Groups(all, Then::Reeval), now);
        }
    }

    /// Does something with the stations and groups of a domain.
    fn for_domain(&mut self, d: Domain, then: Then, now: u64) {
        self.walk(Walk::Stations(FdbKey::in_domain(d), then), now);
        self.walk(Walk::Groups(GroupKey::in_domain(d), then), now);
    }

    fn follow_all(&mut self, now: u64) {
        self.topo.dirty.neighbours.clear();
        self.topo.dirty.stations.clear();
        self.touch_paths();
        self.refresh_paths(now);
        let gateways = Span::new((0, FIRST_ADDRESS), (u32::MAX, LAST_ADDRESS));
        self.walk(Walk::Gateways(gateways, Then::Reeval), now);
        let neighbours = Span::new((FIRST_ADDRESS, 0), (LAST_ADDRESS, u32::MAX));
        let stations = Span::new(FdbKey::FIRST, FdbKey::LAST);
        let groups = Span::new(GroupKey::FIRST, GroupKey::LAST);
        self.walk(Walk::Neighbours(neighbours), now);
        self.walk(Walk::Stations(stations, Then::Reeval), now);
        self.walk(Walk::Groups(groups, Then::Reeval), now);
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
    fn router_reason(&self) -> Option<Reason> {
        if let Some(u) = self.settings.unsupported {
            return Some(Reason::Machine(u));
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
                return Some(Reason::NoDefaultRule(family));
            }
        }
        // NFPROTO_INET, IPV4, IPV6 at prerouting, forward, postrouting (a local-in or -out chain sees no forwarded
        // packet).
        let mut all = self.chains.iter().map(|c| &c.0);
        all.find(|c| matches!(c.family, 1 | 2 | 10) && matches!(c.hook, 0 | 2 | 4))
            .map(|c| Reason::Forwarded(c.text()))
    }

    /// Devices on top of one, by ifindex.
    pub(crate) fn devices_on(&self, lower: u32) -> impl Iterator<Item = &Link> {
        let on = self.topo.above.range((lower, 0)..=(lower, u32::MAX));
        on.filter_map(|x| self.links.get(&x.1)).map(|r| &r.link)
    }

    /// Devices in a bridge, bond or VRF, by ifindex.
    pub(crate) fn devices_in(&self, master: u32) -> impl Iterator<Item = &Link> {
        let of = self.topo.within.range((master, 0)..=(master, u32::MAX));
        of.filter_map(|x| self.links.get(&x.1)).map(|r| &r.link)
    }

    /// Bridges with a member whose frames are all the kernel's: it may hide a host from the chip.
    fn refresh_hidden(&mut self) {
        for b in std::mem::take(&mut self.topo.dirty.rehide) {
            let hides = self
                .devices_in(b)
                .any(|m| self.topo.reasons.contains_key(&m.ifindex));
            let changed = match b != 0 && hides {
                true => self.topo.hidden.insert(b),
                false => self.topo.hidden.remove(&b),
            };
            if changed && !self.topo.everything {
                self.topo.dirty.rifs.insert(b);
                let on = self.interfaces_on(b, 0..=u16::MAX);
                self.topo.dirty.rifs.extend(on);
            }
        }
    }

    /// A router interface or a forwarding domain came to stand or failed: what depends on it looks again.
    pub(crate) fn base_changed(&mut self, r: Ref, now: u64) {
        // of one that is not desired any more nobody knows what depends on it
        let all: &[Cls] = match r.cls {
            Cls::Rif => match self.topo.if_of_rif.get(&r.id).copied() {
                Some(i) => {
                    self.for_neighbours_on(i, Then::Retry, now);
                    self.for_gateways_on(i, Then::Retry, now);
                    &[]
                }
                None => &[Cls::Nexthop, Cls::Neigh],
            },
            Cls::Vlan => match self.topo.domain_of.get(&r.id).copied() {
                Some(d) => {
                    self.for_domain(d, Then::Retry, now);
                    self.retry_in_domain(d);
                    &[]
                }
                None => &[Cls::Member, Cls::Rif, Cls::Fdb, Cls::Mdb],
            },
            _ => &[],
        };
        for cls in all {
            self.walk(Walk::Retry(*cls, 0), now);
        }
    }

    /// Memberships and router interfaces of a domain try again.
    fn retry_in_domain(&mut self, d: Domain) {
        let vid = d.vid();
        let ports = self
            .devices_in(d.dev)
            .filter_map(|l| self.topo.port_of.get(&l.ifindex));
        let members = ports.filter_map(|p| self.member_ids.get(&(*p, vid)).copied());
        let interfaces = self.interfaces_on(d.dev, d.vlan..=d.vlan);
        let interfaces = interfaces.into_iter().chain([d.dev]);
        let rifs = interfaces.filter_map(|i| self.topo.rif_of.get(&i).copied());
        let members = members.map(|id| Ref::new(Cls::Member, id));
        let all: Vec<Ref> = members
            .chain(rifs.map(|id| Ref::new(Cls::Rif, id)))
            .collect();
        for r in all {
            self.hw.retry_dependent(r);
        }
    }
}

//! The stages: what follows from links, bridges, addresses, rules and sysctls, in the order in which it does.

use crate::Store;
use crate::api::Domain;
use crate::hw::{Cls, Ref};
use crate::model::{Family, Link, LinkKind};
use crate::reason::Reason;
use std::net::{IpAddr, Ipv6Addr};
use tandem_abi::raw::TND_VID_ANY;

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
        self.refresh_bridges();
        self.refresh_domains(now);
        self.refresh_members(now);
        self.refresh_ports(now);
        self.refresh_vlan_devices();
        self.refresh_hidden();
        self.refresh_rifs(now);
        self.refresh_filters(now);
        match std::mem::take(&mut self.topo.everything) {
            true => self.follow_all(now),
            false => self.follow(now),
        }
    }

    /// What depends on router interfaces and domains looks again.
    fn follow(&mut self, now: u64) {
        self.refresh_paths(now);
        for i in std::mem::take(&mut self.topo.dirty.neighbours) {
            for g in self.paths.gateways_on(i) {
                self.update_gateway(g, now);
            }
            for addr in self.neighbours_on(i) {
                self.reeval_neighbour(addr, i, now);
            }
        }
        for d in std::mem::take(&mut self.topo.dirty.stations) {
            for k in self.stations_in(d) {
                self.reeval_fdb(k, now);
            }
            self.reeval_groups_in(d, now);
        }
        for i in std::mem::take(&mut self.topo.dirty.behind) {
            for k in self.stations_behind(i) {
                self.reeval_fdb(k, now);
            }
        }
        for bridge in std::mem::take(&mut self.topo.dirty.groups) {
            self.reeval_groups_of(bridge, now);
        }
    }

    fn follow_all(&mut self, now: u64) {
        self.topo.dirty.neighbours.clear();
        self.topo.dirty.stations.clear();
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

    /// Addresses of neighbours on an interface.
    pub(crate) fn neighbours_on(&self, i: u32) -> Vec<IpAddr> {
        let first = IpAddr::from([0; 4]);
        let last = IpAddr::from(Ipv6Addr::from(u128::MAX));
        let on = self.neighs_on.range((i, first)..=(i, last));
        on.map(|x| x.1).collect()
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
                let t = &mut self.topo;
                let on = t.vlans_on.range((b, 0, 0)..=(b, u16::MAX, u32::MAX));
                t.dirty.rifs.extend(on.map(|x| x.2));
            }
        }
    }

    /// A router interface or a forwarding domain came to stand or failed: what depends on it looks again.
    pub(crate) fn base_changed(&mut self, r: Ref) {
        let domain = match r.cls {
            Cls::Vlan => self.topo.domain_of.get(&r.id).copied(),
            _ => None,
        };
        let all: Vec<(Cls, Vec<u32>)> = match r.cls {
            Cls::Rif => match self.topo.if_of_rif.get(&r.id) {
                Some(i) => self.on_interface(*i),
                None => vec![
                    (Cls::Nexthop, self.hw.nexthops.ids()),
                    (Cls::Neigh, self.hw.neighs.ids()),
                ],
            },
            Cls::Vlan => match domain {
                Some(d) => self.on_domain(d),
                None => vec![
                    (Cls::Member, self.hw.members.ids()),
                    (Cls::Rif, self.hw.rifs.ids()),
                    (Cls::Fdb, self.hw.fdb.ids()),
                ],
            },
            _ => return,
        };
        for (cls, ids) in all {
            for id in ids {
                self.hw.retry_dependent(Ref::new(cls, id));
            }
        }
        if r.cls == Cls::Vlan {
            self.retry_groups(domain);
        }
    }

    /// Gateways and neighbours on an interface.
    fn on_interface(&self, i: u32) -> Vec<(Cls, Vec<u32>)> {
        let neighbours = self.neighbours_on(i).into_iter();
        let ids = neighbours.filter_map(|a| self.neigh_ids.get(&(a, i)).copied());
        vec![
            (Cls::Nexthop, self.paths.gateways_on(i)),
            (Cls::Neigh, ids.collect()),
        ]
    }

    /// Memberships, router interfaces and stations of a domain.
    fn on_domain(&self, d: Domain) -> Vec<(Cls, Vec<u32>)> {
        let vid = if d.vlan == 0 { TND_VID_ANY } else { d.vlan };
        let ports = self
            .devices_in(d.dev)
            .filter_map(|l| self.topo.port_of.get(&l.ifindex));
        let members = ports.filter_map(|p| self.member_ids.get(&(*p, vid)).copied());
        let on = (d.dev, d.vlan, 0)..=(d.dev, d.vlan, u32::MAX);
        let interfaces = self.topo.vlans_on.range(on).map(|x| x.2);
        let interfaces = interfaces.chain([d.dev]);
        let rifs = interfaces.filter_map(|i| self.topo.rif_of.get(&i).copied());
        let stations = self.stations_in(d).into_iter();
        let stations = stations.filter_map(|k| self.fdb_ids.get(&k).copied());
        vec![
            (Cls::Member, members.collect()),
            (Cls::Rif, rifs.collect()),
            (Cls::Fdb, stations.collect()),
        ]
    }
}

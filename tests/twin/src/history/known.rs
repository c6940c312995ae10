//! What a history has made so far, as far as the next command depends on it: so that most of what is drawn can succeed.
//!
//! No model of the kernel: what it takes for possible may be refused and the other way round; nobody relies on it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::bridging::PortFlag;
use super::op::{BRIDGE_INDEX, NextHop, PORT_INDEX, Policy, Target, Verb, Way};
use super::{Op, bridging, stacked};

/// Of resilient groups: their number can't change.
const BUCKETS: u16 = 8;

/// One thing that may be done, not yet a message.
#[derive(Debug, Clone)]
pub(super) enum Intent {
    Route(Verb, Way),
    /// Replaced or added, id, IPv6; no next hop: a blackhole.
    Nexthop(bool, u32, bool, Option<NextHop>),
    /// Replaced or added, id, members and their weights.
    Group(bool, u32, Vec<(u32, u8)>),
    /// The same, resilient.
    Resilient(bool, u32, Vec<(u32, u8)>),
    NexthopDel(u32),
    Link(u32, bool),
    Cable(u16, bool),
    Address(bool, u32, IpNet),
    Neighbour(u32, IpAddr, Option<[u8; 6]>, bool),
    Rule(bool, Policy),
    Sysctl(String, String),
    PortFlag(u32, PortFlag, u8),
    /// And the VLAN; 0: none.
    Fdb(Verb, u32, [u8; 6], bool, u16),
    Master(u32, Option<u32>),
    /// A port comes into a bridge and learns nothing there.
    StillPort(u32, u32),
    BridgeVlan(bool, u32, u16, bool),
    /// Added or deleted, bridge, port, group.
    Mdb(bool, u32, u32, [u8; 4]),
}

impl Intent {
    pub fn op(&self) -> Op {
        match self {
            Self::Route(verb, way) => Op::route(*verb, way),
            Self::Nexthop(replace, id, six, next_hop) => {
                Op::nexthop(*replace, *id, *six, next_hop.as_ref())
            }
            Self::Group(replace, id, members) => Op::group(*replace, *id, members),
            Self::Resilient(replace, id, members) => Op::resilient(*replace, *id, members, BUCKETS),
            Self::NexthopDel(id) => Op::nexthop_del(*id),
            Self::Link(dev, up) => Op::link(*dev, *up),
            Self::Cable(port, up) => Op::cable(*port, *up),
            Self::Address(add, dev, net) => Op::address(*add, *dev, *net),
            Self::Neighbour(dev, addr, mac, permanent) => {
                Op::neighbour(*dev, *addr, *mac, *permanent)
            }
            Self::Rule(add, policy) => Op::rule(*add, policy),
            Self::Sysctl(key, value) => Op::sysctl(key, value),
            Self::PortFlag(dev, flag, value) => Op::port_flag(*dev, flag, *value),
            Self::Fdb(verb, dev, mac, is_static, vlan) => {
                Op::fdb(*verb, *dev, *mac, *is_static, *vlan)
            }
            Self::Master(dev, master) => Op::master(*dev, *master),
            Self::StillPort(dev, bridge) => Op::still_port(*dev, *bridge),
            Self::BridgeVlan(add, dev, vid, untagged) => {
                Op::bridge_vlan(*add, *dev, *vid, *untagged)
            }
            Self::Mdb(add, bridge, port, group) => Op::mdb(*add, *bridge, *port, *group),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hop {
    Blackhole,
    /// By this device.
    Single(u32),
    Group(Vec<u32>),
}

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Known {
    addresses: Vec<(u32, IpNet)>,
    /// And whether it is permanent.
    neighbours: Vec<(u32, IpAddr, bool)>,
    hops: BTreeMap<u32, Hop>,
    /// An IPv6 route of several next hops is one for each; each next hop has its device.
    pub routes: Vec<Way>,
    pub rules: Vec<Policy>,
    /// Port, station, VLAN.
    fdb: Vec<(u32, [u8; 6], u16)>,
    /// Port, VLAN.
    vlans: BTreeSet<(u32, u16)>,
    /// Port, group.
    groups: BTreeSet<(u32, [u8; 4])>,
    /// Devices in the VRF.
    pub vrf: BTreeSet<u32>,
    /// Bridge ports, and their bridge.
    pub masters: BTreeMap<u32, u32>,
    pub down: BTreeSet<u32>,
    pub cut: BTreeSet<u16>,
    /// Devices without IPv6.
    pub without6: BTreeSet<u32>,
}

pub(super) const fn is_six(way: &Way) -> bool {
    matches!(way.dst, IpNet::V6(_))
}

/// Do both stand at the same place of a table?
pub(super) fn same_key(a: &Way, b: &Way) -> bool {
    let metric = |w: &Way| match (w.metric, is_six(w)) {
        (0, true) => 1024,
        (m, _) => m,
    };
    (a.table, a.dst, a.tos, metric(a)) == (b.table, b.dst, b.tos, metric(b))
}

impl Known {
    fn up(&self, dev: u32) -> bool {
        !self.down.contains(&dev)
    }

    fn carrier(&self, dev: u32) -> bool {
        let wire =
            |dev: u32| self.up(dev) && !self.cut.contains(&(dev.saturating_sub(PORT_INDEX) as u16));
        if let Some((on, _)) = stacked::lower(dev) {
            return self.up(dev) && self.carrier(on);
        }
        if dev <= BRIDGE_INDEX {
            return wire(dev);
        }
        let mut ports = self.masters.iter().filter(|(_, master)| **master == dev);
        self.up(dev) && ports.any(|(port, _)| wire(*port))
    }

    /// Members of groups of several.
    pub fn members(&self) -> Vec<u32> {
        let several = |h: &Hop| match h {
            Hop::Group(members) if members.len() > 1 => members.clone(),
            _ => Vec::new(),
        };
        self.hops.values().flat_map(several).collect()
    }

    /// Next-hop objects with a next hop.
    pub fn singles(&self) -> Vec<u32> {
        let all = self.hops.iter();
        let single = |(id, hop): (&u32, &Hop)| matches!(hop, Hop::Single(_)).then_some(*id);
        all.filter_map(single).collect()
    }

    pub fn has(&self, dev: u32, net: IpNet) -> bool {
        self.addresses.contains(&(dev, net))
    }

    /// By which device a route of that table reaches a gateway, if it is by this one (0: by any).
    fn reached(&self, via: IpAddr, dev: u32, table: u32) -> Option<u32> {
        let nearer = |r: &&Way| {
            let connected = if is_six(r) { 64 } else { 24 };
            r.table == table && r.dst.prefix_len() > connected && r.dst.contains(&via)
        };
        let direct =
            |r: &Way| matches!(&r.target, Target::NextHops(l) if l.iter().all(|l| l.via.is_none()));
        if self.routes.iter().filter(nearer).any(|r| !direct(r)) {
            return None;
        }
        let mut all = self.addresses.iter();
        let there = |d: u32, net: &IpNet| {
            let in_table = self.vrf.contains(&d) == (table == stacked::VRF_TABLE);
            (d == dev || dev == 0 && in_table) && net.contains(&via) && self.up(d)
        };
        all.find(|(d, net)| there(*d, net)).map(|(d, _)| *d)
    }

    fn next_hop(&self, next_hop: &NextHop, six: bool, many: bool, table: u32) -> bool {
        match next_hop.via {
            // IPv6 has no routes of several next hops without gateways
            None => {
                self.up(next_hop.dev) && !(six && (many || self.without6.contains(&next_hop.dev)))
            }
            Some(_) if next_hop.onlink && !six => self.up(next_hop.dev),
            Some(via) => self.reached(via, next_hop.dev, table).is_some(),
        }
    }

    /// Where it leads to, with each next hop's device.
    fn resolved(&self, way: &Way) -> Target {
        let Target::NextHops(next_hops) = &way.target else {
            return way.target.clone();
        };
        let next_hop = |l: &NextHop| {
            let found = l.via.filter(|_| l.dev == 0);
            let dev = found.and_then(|via| self.reached(via, 0, way.table));
            let dev = dev.unwrap_or(l.dev);
            NextHop { dev, ..l.clone() }
        };
        Target::NextHops(next_hops.iter().map(next_hop).collect())
    }

    /// As they stand in the table.
    fn entries(&self, way: &Way) -> Vec<Way> {
        let target = self.resolved(way);
        let one = |target| Way {
            target,
            ..way.clone()
        };
        match target {
            Target::NextHops(next_hops) if is_six(way) => next_hops
                .into_iter()
                .map(|l| one(Target::NextHops(vec![NextHop { weight: 0, ..l }])))
                .collect(),
            target => vec![one(target)],
        }
    }

    /// The routes of that key, in order.
    fn of_key<'a>(&'a self, way: &'a Way) -> impl Iterator<Item = &'a Way> {
        self.routes.iter().filter(move |r| same_key(r, way))
    }

    /// Is it the same entry? IPv6 tells ways that lead nowhere by their device alone, which is lo.
    fn same(a: &Way, b: &Way) -> bool {
        let special = |w: &Way| matches!(w.target, Target::Special(_));
        same_key(a, b)
            && (a.target == b.target && (is_six(a) || a.src == b.src)
                || is_six(a) && special(a) && special(b))
    }

    /// Does a request to delete mean this route?
    fn meant(&self, way: &Way, route: &Way) -> bool {
        let target = match (&way.target, &route.target) {
            (Target::Any, _) => true,
            (Target::NextHops(a), Target::NextHops(b)) => {
                let next_hop =
                    |(a, b): (&NextHop, &NextHop)| (a.dev == 0 || a.dev == b.dev) && a.via == b.via;
                a.len() == b.len() && a.iter().zip(b).all(next_hop)
            }
            (a, b) => a == b,
        };
        (way.table, way.dst, way.tos) == (route.table, route.dst, route.tos)
            && (way.metric == 0 || way.metric == route.metric)
            && target
    }

    fn can_lead(&self, way: &Way) -> bool {
        let six = is_six(way);
        let there = match &way.target {
            Target::Object(id) => self.hops.contains_key(id),
            Target::NextHops(next_hops) => {
                let many = next_hops.len() > 1;
                let distinct = |(n, l): (usize, &NextHop)| {
                    let mut others = next_hops.iter().skip(n + 1);
                    !six || others.all(|o| (o.dev, o.via) != (l.dev, l.via))
                };
                next_hops
                    .iter()
                    .all(|l| self.next_hop(l, six, many, way.table))
                    && next_hops.iter().enumerate().all(distinct)
            }
            Target::Local(dev) => self.up(*dev),
            Target::Special(_) | Target::Any => true,
        };
        let own = |src: IpAddr| {
            // IPv6 wants it on the device that the route leads to
            let near = |dev: u32| match self.resolved(way) {
                Target::NextHops(next_hops) => next_hops.iter().all(|l| l.dev == dev),
                _ => false,
            };
            let mut all = self.addresses.iter();
            all.any(|(dev, net)| net.addr() == src && (!six || near(*dev)))
        };
        there && way.src.is_none_or(own)
    }

    fn can_route(&self, verb: Verb, way: &Way) -> bool {
        if verb == Verb::Delete {
            let all: Vec<Way> = match &way.target {
                Target::NextHops(_) if is_six(way) => self.entries(way),
                _ => vec![way.clone()],
            };
            return all
                .iter()
                .all(|w| self.routes.iter().any(|r| self.meant(w, r)));
        }
        let new = self.entries(way);
        let exists = self.of_key(way).next().is_some();
        let twice = new
            .iter()
            .any(|n| self.of_key(way).any(|r| Self::same(r, n)));
        let first = self.of_key(way).next().zip(new.first());
        let first = first.is_some_and(|(r, n)| Self::same(r, n));
        self.can_lead(way)
            && match verb {
                Verb::Add => !exists,
                Verb::Append | Verb::Prepend => !twice,
                Verb::Replace => is_six(way) || !twice || first,
                Verb::Change => exists && (is_six(way) || !twice || first),
                Verb::Delete => false,
            }
    }

    /// Can the kernel do that, as far as is known?
    pub fn takes(&self, intent: &Intent) -> bool {
        match intent {
            Intent::Route(verb, way) => self.can_route(*verb, way),
            Intent::Nexthop(replace, id, six, next_hop) => {
                let grouped = |h: &Hop| matches!(h, Hop::Group(m) if m.len() > 1 && m.contains(id));
                (*replace || !self.hops.contains_key(id))
                    && match next_hop {
                        Some(next_hop) => {
                            self.carrier(next_hop.dev) && self.next_hop(next_hop, *six, false, 0)
                        }
                        None => !self.hops.values().any(grouped),
                    }
            }
            Intent::Group(replace, id, members) | Intent::Resilient(replace, id, members) => {
                let fits = |(m, _): &(u32, u8)| match self.hops.get(m) {
                    Some(Hop::Single(_)) => true,
                    Some(Hop::Blackhole) => members.len() == 1,
                    _ => false,
                };
                (*replace || !self.hops.contains_key(id)) && members.iter().all(fits)
            }
            Intent::NexthopDel(id) => self.hops.contains_key(id),
            Intent::Address(add, dev, net) => {
                let without = net.addr().is_ipv6() && self.without6.contains(dev);
                !without && self.has(*dev, *net) != *add
            }
            Intent::Neighbour(dev, addr, None, _) => self
                .neighbours
                .iter()
                .any(|(d, a, _)| (d, a) == (dev, addr)),
            Intent::Neighbour(dev, addr, ..) => !(addr.is_ipv6() && self.without6.contains(dev)),
            Intent::Rule(true, policy) => !self.rules.contains(policy),
            Intent::Rule(false, policy) => {
                let same = |r: &Policy| (r.v6, r.pref) == (policy.v6, policy.pref);
                self.rules.iter().any(same)
            }
            Intent::PortFlag(dev, flag, value) => {
                let state = *flag != bridging::PORT_STATE || self.carrier(*dev) || *value == 0;
                self.masters.contains_key(dev) && state
            }
            Intent::Fdb(verb, dev, mac, _, vlan) => {
                let there = self.fdb.iter().any(|(_, m, v)| (m, v) == (mac, vlan));
                let here = self.fdb.contains(&(*dev, *mac, *vlan));
                self.masters.contains_key(dev)
                    && (*vlan == 0 || self.vlans.contains(&(*dev, *vlan)))
                    && match verb {
                        Verb::Add => !there,
                        Verb::Delete => here,
                        _ => true,
                    }
            }
            Intent::BridgeVlan(add, dev, vid, _) => {
                (self.masters.contains_key(dev) || (21..30).contains(dev))
                    && (*add || self.vlans.contains(&(*dev, *vid)))
            }
            Intent::Mdb(add, bridge, port, group) => {
                self.masters.get(port) == Some(bridge)
                    && self.up(*bridge)
                    && self.up(*port)
                    && self.groups.contains(&(*port, *group)) != *add
            }
            Intent::Link(..)
            | Intent::Cable(..)
            | Intent::Sysctl(..)
            | Intent::Master(..)
            | Intent::StillPort(..) => true,
        }
    }

    /// It was done.
    pub fn done(&mut self, intent: &Intent) {
        match intent {
            Intent::Route(verb, way) => self.route(*verb, way),
            Intent::Nexthop(_, id, _, next_hop) => {
                let hop = next_hop
                    .as_ref()
                    .map_or(Hop::Blackhole, |l| Hop::Single(l.dev));
                self.hops.insert(*id, hop);
            }
            Intent::Group(_, id, members) | Intent::Resilient(_, id, members) => {
                let members = members.iter().map(|(m, _)| *m).collect();
                self.hops.insert(*id, Hop::Group(members));
            }
            Intent::NexthopDel(id) => self.lose_hop(*id),
            Intent::Link(dev, true) => {
                self.down.remove(dev);
            }
            Intent::Link(dev, false) => {
                let before = self.lit();
                self.down.insert(*dev);
                self.went_down(*dev);
                self.darken(&before);
            }
            Intent::Cable(port, true) => {
                self.cut.remove(port);
            }
            Intent::Cable(port, false) => {
                let before = self.lit();
                self.cut.insert(*port);
                let dev = PORT_INDEX + u32::from(*port);
                self.neighbours
                    .retain(|(d, _, permanent)| *d != dev || *permanent);
                self.darken(&before);
            }
            Intent::Address(true, dev, net) => self.addresses.push((*dev, *net)),
            Intent::Address(false, dev, net) => self.address_gone(*dev, *net),
            Intent::Neighbour(dev, addr, mac, permanent) => {
                self.neighbours.retain(|(d, a, _)| (d, a) != (dev, addr));
                if mac.is_some() {
                    self.neighbours.push((*dev, *addr, *permanent));
                }
            }
            Intent::Rule(true, policy) => self.rules.push(policy.clone()),
            Intent::Rule(false, policy) => {
                let same = |r: &Policy| (r.v6, r.pref) == (policy.v6, policy.pref);
                if let Some(at) = self.rules.iter().position(same) {
                    self.rules.remove(at);
                }
            }
            Intent::Sysctl(key, value) => self.sysctl(key, value),
            Intent::Fdb(verb, dev, mac, _, vlan) => {
                self.fdb.retain(|(_, m, v)| (m, v) != (mac, vlan));
                if *verb != Verb::Delete {
                    self.fdb.push((*dev, *mac, *vlan));
                }
            }
            Intent::BridgeVlan(true, dev, vid, _) => {
                self.vlans.insert((*dev, *vid));
            }
            Intent::BridgeVlan(false, dev, vid, _) => {
                self.vlans.remove(&(*dev, *vid));
                self.fdb.retain(|(d, _, v)| (d, v) != (dev, vid));
            }
            Intent::Mdb(true, _, port, group) => {
                self.groups.insert((*port, *group));
            }
            Intent::Mdb(false, _, port, group) => {
                self.groups.remove(&(*port, *group));
            }
            // a device that changes its VRF goes down and up
            Intent::Master(dev, Some(stacked::VRF)) => {
                self.vrf.insert(*dev);
                self.lose_hops(*dev);
                self.went_down(*dev);
            }
            Intent::Master(dev, None) if self.vrf.contains(dev) => {
                self.vrf.remove(dev);
                self.lose_hops(*dev);
                self.went_down(*dev);
            }
            Intent::StillPort(dev, bridge) => self.done(&Intent::Master(*dev, Some(*bridge))),
            Intent::Master(dev, master) => {
                let before = self.lit();
                self.fdb.retain(|(d, ..)| d != dev);
                self.vlans.retain(|(d, _)| d != dev);
                self.groups.retain(|(d, _)| d != dev);
                self.masters.remove(dev);
                if let Some(master) = master {
                    self.masters.insert(*dev, *master);
                }
                self.darken(&before);
            }
            Intent::PortFlag(..) => {}
        }
    }

    fn route(&mut self, verb: Verb, way: &Way) {
        let new = self.entries(way);
        match verb {
            Verb::Delete => {
                for one in if is_six(way) { new } else { vec![way.clone()] } {
                    if let Some(at) = self.routes.iter().position(|r| self.meant(&one, r)) {
                        self.routes.remove(at);
                    }
                }
            }
            Verb::Replace | Verb::Change => {
                let first = self.routes.iter().position(|r| same_key(r, way));
                let at = first.unwrap_or(self.routes.len());
                if is_six(way) {
                    self.routes.retain(|r| !same_key(r, way));
                } else if first.is_some() {
                    self.routes.remove(at);
                }
                let at = at.min(self.routes.len());
                self.routes.splice(at..at, new);
            }
            Verb::Prepend => {
                self.routes.splice(0..0, new);
            }
            Verb::Add | Verb::Append => self.routes.extend(new),
        }
    }

    fn sysctl(&mut self, key: &str, value: &str) {
        let key = key.strip_prefix("ipv6/conf/");
        let Some(name) = key.and_then(|k| k.strip_suffix("/disable_ipv6")) else {
            return;
        };
        let all: Vec<u32> = self.addresses.iter().map(|(d, _)| *d).collect();
        let Some(dev) = all.into_iter().find(|d| super::op::device(*d) == name) else {
            return;
        };
        if value == "0" {
            self.without6.remove(&dev);
            return;
        }
        self.without6.insert(dev);
        self.neighbours.retain(|(d, a, _)| *d != dev || a.is_ipv4());
        self.lose_address(dev, |net| net.addr().is_ipv6());
        self.lose_next_hops(dev, is_six);
    }

    fn went_down(&mut self, dev: u32) {
        self.neighbours.retain(|(d, ..)| *d != dev);
        self.groups.retain(|(d, _)| *d != dev);
        self.lose_address(dev, |net| net.addr().is_ipv6());
        self.lose_next_hops(dev, |_| true);
    }

    /// Devices with carrier.
    fn lit(&self) -> Vec<u32> {
        let all: BTreeSet<u32> = self
            .hops
            .values()
            .filter_map(|h| match h {
                Hop::Single(dev) => Some(*dev),
                _ => None,
            })
            .collect();
        all.into_iter().filter(|d| self.carrier(*d)).collect()
    }

    /// Next-hop objects of devices that have lost their carrier are gone.
    fn darken(&mut self, before: &[u32]) {
        for dev in before {
            if !self.carrier(*dev) {
                self.lose_hops(*dev);
            }
        }
    }

    fn lose_hops(&mut self, dev: u32) {
        let gone = self.hops.iter().filter(|(_, h)| **h == Hop::Single(dev));
        let gone: Vec<u32> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            self.lose_hop(id);
        }
    }

    fn lose_hop(&mut self, id: u32) {
        self.hops.remove(&id);
        self.routes.retain(|r| r.target != Target::Object(id));
        let mut empty = Vec::new();
        for (group, hop) in &mut self.hops {
            if let Hop::Group(members) = hop {
                members.retain(|m| *m != id);
                if members.is_empty() {
                    empty.push(*group);
                }
            }
        }
        for group in empty {
            self.lose_hop(group);
        }
    }

    /// Routes that lead by that device alone.
    fn lose_next_hops(&mut self, dev: u32, which: impl Fn(&Way) -> bool) {
        let only = |target: &Target| match target {
            Target::NextHops(next_hops) => next_hops.iter().all(|l| l.dev == dev),
            Target::Local(d) => *d == dev,
            _ => false,
        };
        self.routes.retain(|r| !(which(r) && only(&r.target)));
    }

    fn lose_address(&mut self, dev: u32, which: impl Fn(&IpNet) -> bool) {
        self.addresses.retain(|(d, net)| *d != dev || !which(net));
    }

    fn address_gone(&mut self, dev: u32, net: IpNet) {
        let of = |(d, n): &&(u32, IpNet)| *d == dev && n.trunc() == net.trunc();
        let primary = self
            .addresses
            .iter()
            .find(of)
            .is_some_and(|(_, n)| *n == net);
        let all = primary && net.addr().is_ipv4();
        let trunc = net.trunc();
        self.lose_address(dev, |n| if all { n.trunc() == trunc } else { *n == net });
        if net.addr().is_ipv6() {
            return;
        }
        let own: Vec<IpAddr> = self.addresses.iter().map(|(_, n)| n.addr()).collect();
        self.routes
            .retain(|r| is_six(r) || r.src.is_none_or(|s| own.contains(&s)));
        if !self
            .addresses
            .iter()
            .any(|(d, n)| *d == dev && n.addr().is_ipv4())
        {
            self.lose_next_hops(dev, |r| !is_six(r));
            self.neighbours.retain(|(d, a, _)| *d != dev || a.is_ipv6());
        }
    }
}

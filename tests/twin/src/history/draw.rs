//! What is drawn: a topology, then commands. Few prefixes, few next-hop objects and few gateways in one history, so that
//! they meet. Most commands are drawn anew until they can succeed, as far as is known of what was done before.

use std::net::IpAddr;

use ipnet::IpNet;

use super::bridging::{LEARNING, PORT_FLAGS, PORT_STATE, PortFlag};
use super::known::{Intent, Known};
use super::op::{BRIDGE_INDEX, NextHop, PORT_INDEX, Policy, Target, VERBS, Verb, Way};
use super::stacked::{self, BridgeKind, VLAN_DEVICES, VLANS, VRF, VRF_TABLE};
use super::{
    BRIDGES, COMMANDS, History, Op, PORTS, PROBES, Rng, STILL_BRIDGES, bridge_mac, host_mac,
    probes, rare, v4, v6,
};

const POOL4: [&str; 14] = [
    "0.0.0.0/0",
    "20.0.0.0/8",
    "20.1.0.0/16",
    "20.1.1.0/24",
    "20.1.1.128/25",
    "20.1.1.129/32",
    "20.2.0.0/15",
    "21.0.0.0/24",
    "22.0.0.0/24",
    "22.0.0.64/26",
    "23.0.0.0/31",
    "10.1.0.2/32",
    "10.2.0.2/31",
    "10.3.0.0/25",
];
const POOL6: [&str; 9] = [
    "::/0",
    "fd20::/16",
    "fd20:1::/32",
    "fd20:1:1::/48",
    "fd20:1:1:1::/64",
    "fd20:1:1:1::9/128",
    "fd21::/16",
    "fd22::/64",
    "fd02::2/128",
];
/// Ids of next-hop objects; those of the other family have ten more, groups a hundred.
const IDS: [u32; 6] = [1, 2, 3, 4, 5, 6];
const GROUPS: [u32; 3] = [100, 101, 102];
/// Resilient groups.
const RESILIENT: u32 = 107;
pub(super) const OTHER_TABLE: u32 = 99;
/// So many of a hundred commands are taken as they are drawn, whether they can succeed or not.
const NONSENSE: u64 = 38;
/// A command is drawn so often until it can succeed.
pub(super) const TRIES: usize = 30;
const BLACKHOLE: u8 = 6;
const UNREACHABLE: u8 = 7;
const PROHIBIT: u8 = 8;
const THROW: u8 = 9;

/// A history being drawn.
pub(super) struct Draw {
    pub rng: Rng,
    history: History,
    /// Has it IPv6 too?
    pub six: bool,
    /// Interfaces with addresses.
    pub routed: Vec<u32>,
    /// Ports in bridges, and their bridge.
    pub bridged: Vec<(u32, u32)>,
    /// Prefixes that its routes have, by family.
    pub prefixes: [Vec<IpNet>; 2],
    pub ids: Vec<u32>,
    pub groups: Vec<u32>,
    metrics: Vec<u32>,
    pub known: Known,
    /// Ports and VLANs whose frames are tagged on the wire.
    pub tagged: Vec<(u16, u16)>,
    bridge_kind: BridgeKind,
    /// Bridges learn nothing: what becomes of a frame does not hang on those before it.
    still: bool,
    /// There are resilient groups.
    resilient: bool,
    /// This command is about the VRF.
    pub in_vrf: bool,
    /// What it is mostly about: weights of the kinds of commands.
    pub weights: [u32; 11],
    /// It is about what is rare, and most about this (`rare.rs`).
    pub focus: Option<rare::Route>,
    /// What can be done since the last command has made way for it.
    pub prepared: Option<rare::Aim>,
    /// What was made, in words; true: it can't succeed, as far as is known.
    #[cfg(test)]
    pub hopes: Vec<(String, bool)>,
}

const fn port(n: u16) -> u32 {
    PORT_INDEX + n as u32
}

impl Draw {
    pub fn new(seed: u64, have: &[String]) -> Self {
        let mut rng = Rng::new(seed);
        let (n4, n6) = (rng.below(3) + 2, rng.below(3) + 1);
        let pool = |texts: &[&str]| {
            texts
                .iter()
                .filter_map(|t| t.parse().ok())
                .collect::<Vec<IpNet>>()
        };
        let prefixes = [rng.some(&pool(&POOL4), n4), rng.some(&pool(&POOL6), n6)];
        let (ids, groups) = (rng.below(3) + 3, rng.below(3) + 1);
        let focus = rare::focus(seed);
        Self {
            six: rng.percent(50) || focus.is_some_and(|f| f.six),
            ids: rng.some(&IDS, ids),
            groups: rng.some(&GROUPS, groups),
            metrics: if rng.percent(50) {
                vec![0]
            } else {
                vec![0, 0, 10, 20]
            },
            prefixes,
            rng,
            history: History {
                seed,
                have: have.to_vec(),
                ..History::default()
            },
            routed: Vec::new(),
            bridged: Vec::new(),
            known: Known::default(),
            tagged: Vec::new(),
            bridge_kind: BridgeKind::default(),
            still: true,
            resilient: false,
            in_vrf: false,
            weights: [0; 11],
            focus,
            prepared: None,
            #[cfg(test)]
            hopes: Vec::new(),
        }
    }

    fn has(&self, construct: &str) -> bool {
        self.history.have.iter().any(|h| h == construct)
    }

    const fn rare(&self) -> bool {
        self.focus.is_some()
    }

    pub fn history(&mut self) -> History {
        let bridges = [BRIDGES, STILL_BRIDGES, "vlan"];
        let shape = if bridges.iter().any(|b| self.has(b)) {
            self.rng.weighted(&[60, 25, 15])
        } else {
            0
        };
        self.resilient = self.rng.percent(if self.rare() { 50 } else { 12 });
        let bridged: &[u16] = match shape {
            0 => &[],
            1 => &[3, 4],
            _ => &[1, 2, 3, 4],
        };
        let mut made = Vec::new();
        if !bridged.is_empty() {
            self.draw_bridge(bridged, &mut made);
        }
        for n in 1..=PORTS {
            if !bridged.contains(&n) {
                self.routed.push(port(n));
            }
        }
        if self.has("vlan") && self.routed.contains(&port(1)) && self.rng.percent(30) {
            for (dev, ..) in VLAN_DEVICES.iter().filter(|(_, on, _)| *on == port(1)) {
                made.push(Op::vlan_device(*dev));
                made.push(self.make(&Intent::Link(*dev, true)));
                self.routed.push(*dev);
            }
        }
        let vrf = self.has("vrf") && self.routed.len() > 1 && self.rng.percent(45);
        if vrf {
            made.push(Op::vrf(VRF, VRF_TABLE));
            made.push(self.make(&Intent::Link(VRF, true)));
            let count = 1 + self.rng.below(2);
            for dev in self.rng.some(&self.routed.clone(), count) {
                made.push(self.make(&Intent::Master(dev, Some(VRF))));
            }
        }
        for dev in self.routed.clone() {
            made.extend(self.addresses(dev));
        }
        // route, next-hop object, link, cable, address, neighbour, bridge, rule, sysctl, delete an object, VRF
        self.weights = match self.rng.below(4) {
            _ if self.rare() => [45, 14, 4, 3, 5, 5, 0, 0, 8, 5, 0],
            0 => [50, 35, 4, 2, 2, 2, 0, 0, 0, 8, 0],
            1 => [40, 10, 10, 8, 8, 10, 0, 0, 2, 2, 0],
            _ => [45, 20, 6, 4, 4, 6, 0, 0, 1, 4, 0],
        };
        if vrf {
            self.weights[10] = 3;
        }
        if !self.bridged.is_empty() {
            self.weights[6] = if self.rare() { 80 } else { 40 };
        }
        if self.has("rule") && self.rng.percent(if self.rare() { 60 } else { 15 }) {
            self.weights[7] = 15;
        }
        if self.routed.is_empty() {
            self.weights = [0, 0, 10, 6, 0, 0, 60, 0, 0, 0, 0];
        }
        if !self.routed.is_empty() {
            for id in self.ids.clone() {
                if self.rng.percent(60) {
                    let six = self.six && self.rng.percent(50);
                    let hop = self.single(false, id, six);
                    made.push(self.make(&hop));
                }
            }
        }
        for _ in 0..self.rng.below(9) {
            let op = self.command();
            made.push(op);
        }
        let count = COMMANDS + self.rng.below(5);
        let commands: Vec<Op> = (0..count).map(|_| self.command()).collect();
        let probes = (0..PROBES).map(|n| probes::draw(self, n)).collect();
        History {
            topology: made,
            commands,
            probes,
            ..self.history.clone()
        }
    }

    /// A bridge of these ports, and what is on it.
    fn draw_bridge(&mut self, ports: &[u16], made: &mut Vec<Op>) {
        let dev = BRIDGE_INDEX + 1;
        self.still = !self.has(BRIDGES) || (self.has(STILL_BRIDGES) && self.rng.percent(50));
        let may_plain = self.has(BRIDGES) || self.has(STILL_BRIDGES);
        let vlans = self.has("vlan") && self.still && (!may_plain || self.rng.percent(60));
        let snooping = self.still && self.rng.percent(25);
        self.bridge_kind = BridgeKind { vlans, snooping };
        made.push(Op::bridge(dev, bridge_mac(1), self.bridge_kind));
        if snooping {
            made.push(Op::querier(dev));
        }
        for n in ports {
            made.push(self.make(&Intent::Master(port(*n), Some(dev))));
            self.bridged.push((port(*n), dev));
            if self.still {
                made.push(self.make(&Intent::PortFlag(port(*n), LEARNING, 0)));
            }
            let untagged = self.rng.of(&VLANS);
            for vid in VLANS.into_iter().filter(|_| vlans) {
                if vid != untagged {
                    self.tagged.push((*n, vid));
                }
                if self.rng.percent(88) {
                    let vlan = Intent::BridgeVlan(true, port(*n), vid, vid == untagged);
                    made.push(self.make(&vlan));
                }
            }
        }
        made.push(self.make(&Intent::Link(dev, true)));
        if self.still {
            let vids = self.vids();
            for n in ports {
                for vid in &vids {
                    let fdb = Intent::Fdb(Verb::Add, port(*n), host_mac(*n, 2), true, *vid);
                    if self.known.takes(&fdb) && self.rng.percent(90) {
                        made.push(self.make(&fdb));
                    }
                }
            }
        }
        if vlans {
            for (on_it, _, vid) in VLAN_DEVICES.into_iter().filter(|(_, on, _)| *on == dev) {
                if self.rng.percent(80) {
                    made.push(self.make(&Intent::BridgeVlan(true, dev, vid, false)));
                    made.push(Op::vlan_device(on_it));
                    made.push(self.make(&Intent::Link(on_it, true)));
                    self.routed.push(on_it);
                }
            }
        } else if ports.len() < usize::from(PORTS) || self.rng.percent(70) {
            self.routed.push(dev);
        }
    }

    /// The VLANs of the bridge; 0: it knows none.
    fn vids(&self) -> Vec<u16> {
        match self.bridge_kind.vlans {
            true => VLANS.to_vec(),
            false => vec![0],
        }
    }

    /// Addresses of an interface, its stations, and a network behind the first of them.
    fn addresses(&mut self, dev: u32) -> Vec<Op> {
        let nets = |last| {
            [
                IpNet::new_assert(v4(dev, last), 24),
                IpNet::new_assert(v6(dev, last), 64),
            ]
        };
        let [own4, own6] = nets(1);
        let mut made = vec![self.make(&Intent::Address(true, dev, own4))];
        if self.six {
            made.push(self.make(&Intent::Address(true, dev, own6)));
        }
        for (n, mac) in self.stations(dev) {
            for addr in [v4(dev, n), v6(dev, n)] {
                if (self.six || addr.is_ipv4()) && self.rng.percent(92) {
                    let permanent = self.rng.percent(80);
                    made.push(self.make(&Intent::Neighbour(dev, addr, Some(mac), permanent)));
                }
            }
        }
        // who is far away can be answered: frames come from there
        for (dst, via) in [
            (probes::behind4(dev), v4(dev, 2)),
            (probes::behind6(dev), v6(dev, 2)),
        ] {
            if self.six || dst.addr().is_ipv4() {
                let target = Target::NextHops(vec![NextHop {
                    via: Some(via),
                    ..NextHop::default()
                }]);
                let in_vrf = self.known.vrf.contains(&dev);
                let way = Way {
                    dst,
                    table: if in_vrf { VRF_TABLE } else { 0 },
                    metric: 0,
                    tos: 0,
                    src: None,
                    target,
                };
                made.push(self.make(&Intent::Route(Verb::Add, way)));
            }
        }
        made
    }

    /// Who is on the network of an interface: the last part of an address, and a MAC address.
    pub fn stations(&self, dev: u32) -> Vec<(u8, [u8; 6])> {
        let dev = stacked::lower(dev).map_or(dev, |(on, _)| on);
        if dev > BRIDGE_INDEX {
            let members = self.bridged.iter().filter(|(_, bridge)| *bridge == dev);
            return members
                .enumerate()
                .map(|(n, (p, _))| (n as u8 + 2, host_mac((p - PORT_INDEX) as u16, 2)))
                .collect();
        }
        let n = (dev - PORT_INDEX) as u16;
        vec![(2, host_mac(n, 2)), (3, host_mac(n, 3))]
    }

    /// At which port's wire a station of an interface is.
    pub fn port_of(&self, dev: u32, station: u8) -> u16 {
        let dev = stacked::lower(dev).map_or(dev, |(on, _)| on);
        if dev <= BRIDGE_INDEX {
            return (dev - PORT_INDEX) as u16;
        }
        let mut members = self.bridged.iter().filter(|(_, bridge)| *bridge == dev);
        members
            .nth(usize::from(station.saturating_sub(2)))
            .map_or(1, |(p, _)| (p - PORT_INDEX) as u16)
    }

    /// The VLAN by which frames of an interface are tagged at a port.
    pub fn tag(&self, dev: u32, port: u16) -> Option<u16> {
        let (on, vid) = stacked::lower(dev)?;
        (on <= BRIDGE_INDEX || self.tagged.contains(&(port, vid))).then_some(vid)
    }

    /// Has the bridge multicast snooping?
    pub const fn snoops(&self) -> bool {
        self.bridge_kind.snooping
    }

    /// It is done, and known if it can succeed.
    fn make(&mut self, intent: &Intent) -> Op {
        let op = intent.op();
        let takes = self.known.takes(intent);
        if takes {
            self.known.done(intent);
        }
        #[cfg(test)]
        self.hopes.push((op.text.clone(), !takes));
        op
    }

    fn command(&mut self) -> Op {
        if self.rare() {
            let intent = self.rare_command();
            return self.make(&intent);
        }
        let kind = self.rng.weighted(&self.weights.clone());
        let mut intent = self.of_kind(kind);
        if !self.rng.percent(NONSENSE) {
            for n in 0..TRIES {
                if self.known.takes(&intent) {
                    break;
                }
                // that kind may have nothing that can be done
                let kind = match n * 2 < TRIES {
                    true => kind,
                    false => self.rng.weighted(&self.weights.clone()),
                };
                intent = self.of_kind(kind);
            }
        }
        self.make(&intent)
    }

    pub fn of_kind(&mut self, kind: usize) -> Intent {
        self.in_vrf = !self.known.vrf.is_empty() && self.rng.percent(40);
        match kind {
            0 => self.route(),
            1 => self.nexthop(),
            2 => self.link(),
            3 => {
                let n = self.rng.below(usize::from(PORTS)) as u16 + 1;
                Intent::Cable(n, self.known.cut.contains(&n))
            }
            4 => self.address(),
            5 => self.neighbour(),
            6 => self.bridge(),
            7 => self.rule(),
            8 => self.sysctl(),
            10 => {
                let dev = self.rng.of(&self.routed);
                let out = self.known.vrf.contains(&dev);
                Intent::Master(dev, (!out).then_some(VRF))
            }
            _ => {
                let mut all: Vec<u32> = [self.ids.clone(), self.groups.clone()].concat();
                all.extend(self.resilient.then_some(RESILIENT));
                let six = self.six && self.rng.percent(30);
                let more = if six { 10 } else { 0 };
                Intent::NexthopDel(self.rng.of(&all) + more)
            }
        }
    }

    fn sysctl(&mut self) -> Intent {
        let dev = self.rng.of(&self.routed);
        let value = if self.rng.percent(50) { "1" } else { "0" };
        let name = super::op::device(dev);
        let (key, value) = match self.rng.below(12) {
            0..=2 => (format!("ipv4/conf/{name}/forwarding"), value),
            3..=4 if self.six => (format!("ipv6/conf/{name}/forwarding"), value),
            n @ (5 | 8 | 9) if self.six && (n == 5 || self.rare()) => {
                let there = self.known.without6.contains(&dev);
                let value = if there { "0" } else { "1" };
                (format!("ipv6/conf/{name}/disable_ipv6"), value)
            }
            6 if self.six => ("ipv6/fib_multipath_hash_policy".into(), value),
            6 | 7 => ("ipv4/fib_multipath_hash_policy".into(), value),
            _ => (
                format!("ipv4/conf/{name}/ignore_routes_with_linkdown"),
                value,
            ),
        };
        Intent::Sysctl(key, value.into())
    }

    /// A gateway, on one of the interfaces; now and then nobody's.
    pub fn gateway(&mut self, six: bool) -> (u32, IpAddr) {
        let here = |dev: &u32| self.known.vrf.contains(dev) == self.in_vrf;
        let near: Vec<u32> = self.routed.iter().copied().filter(here).collect();
        let dev = self
            .rng
            .of(if near.is_empty() { &self.routed } else { &near });
        let station = match self.rng.below(20) {
            0 => 77,
            n => 2 + (n % 2) as u8,
        };
        (
            dev,
            if six {
                v6(dev, station)
            } else {
                v4(dev, station)
            },
        )
    }

    pub fn next_hop(&mut self, six: bool) -> NextHop {
        let (dev, via) = self.gateway(six);
        let (other, _) = self.gateway(six);
        match self.rng.below(12) {
            0 => NextHop {
                dev,
                ..NextHop::default()
            },
            // a gateway that is not on that link
            1 => NextHop {
                dev: other,
                via: Some(via),
                onlink: true,
                ..NextHop::default()
            },
            2..=4 => NextHop {
                via: Some(via),
                ..NextHop::default()
            },
            _ => NextHop {
                dev,
                via: Some(via),
                ..NextHop::default()
            },
        }
    }

    /// The main one mostly, or that of the VRF.
    pub fn table(&mut self) -> u32 {
        match self.rng.percent(4) {
            true => OTHER_TABLE,
            false if self.in_vrf => VRF_TABLE,
            false => 0,
        }
    }

    fn route(&mut self) -> Intent {
        let six = self.six && self.rng.percent(45);
        let dst = self.rng.of(&self.prefixes[usize::from(six)]);
        let metric = self.rng.of(&self.metrics.clone());
        let table = self.table();
        let tos = if !six && self.rng.percent(6) { 0x10 } else { 0 };
        let at = self.rng.weighted(&[20, 28, 9, 24, 6, 13]);
        let verb = VERBS.get(at).copied().unwrap_or_default();
        if verb == Verb::Delete && !self.known.routes.is_empty() && self.rng.percent(70) {
            let all = self.known.routes.len();
            let at = self.rng.below(all);
            if let Some(there) = self.known.routes.get(at).cloned() {
                let target = match self.rng.percent(50) {
                    true => Target::Any,
                    false => there.target,
                };
                let way = Way {
                    src: None,
                    target,
                    ..there
                };
                return Intent::Route(verb, way);
            }
        }
        let target = if verb == Verb::Delete && self.rng.percent(50) {
            Target::Any
        } else {
            self.target(six)
        };
        let src = (self.rng.percent(5)).then(|| {
            let dev = self.rng.of(&self.routed);
            if six { v6(dev, 1) } else { v4(dev, 1) }
        });
        let way = Way {
            dst,
            table,
            metric,
            tos,
            src: src.filter(|_| verb != Verb::Delete),
            target,
        };
        Intent::Route(verb, way)
    }

    fn target(&mut self, six: bool) -> Target {
        match self.rng.weighted(&[35, 10, 28, 12, 15, 1]) {
            0 => self.object(six, false),
            1 => self.object(six, true),
            2 => Target::NextHops(vec![self.next_hop(six)]),
            3 => self.several(six),
            4 => Target::Special(self.rng.of(&[
                BLACKHOLE,
                BLACKHOLE,
                UNREACHABLE,
                UNREACHABLE,
                PROHIBIT,
                THROW,
            ])),
            _ => Target::Local(self.rng.of(&self.routed)),
        }
    }

    /// To a next-hop object, or a group of them.
    pub fn object(&mut self, six: bool, group: bool) -> Target {
        let more = if six { 10 } else { 0 };
        Target::Object(match group {
            false => self.rng.of(&self.ids) + more,
            true if self.resilient && self.rng.percent(50) => RESILIENT + more,
            true => self.rng.of(&self.groups) + more,
        })
    }

    /// By two or three next hops.
    pub fn several(&mut self, six: bool) -> Target {
        let count = 2 + self.rng.below(2);
        let next_hops = (0..count).map(|_| NextHop {
            weight: self.rng.below(3) as u8 + 1,
            ..self.next_hop(six)
        });
        Target::NextHops(next_hops.collect())
    }

    fn nexthop(&mut self) -> Intent {
        let six = self.six && self.rng.percent(40);
        let more = if six { 10 } else { 0 };
        let (replace, group) = if self.rare() { (50, 35) } else { (75, 22) };
        let replace = self.rng.percent(replace);
        if self.rng.percent(group) {
            let count = 1 + self.rng.below(3);
            let members: Vec<(u32, u8)> = self
                .rng
                .some(&self.ids.clone(), count)
                .into_iter()
                .map(|id| (id + more, self.rng.below(3) as u8 + 1))
                .collect();
            if self.resilient && self.rng.percent(40) {
                return Intent::Resilient(replace, RESILIENT + more, members);
            }
            return Intent::Group(replace, self.rng.of(&self.groups) + more, members);
        }
        let id = self.rng.of(&self.ids);
        self.single(replace, id, six)
    }

    /// A next-hop object that is no group: a gateway, a device, or nowhere.
    fn single(&mut self, replace: bool, id: u32, six: bool) -> Intent {
        let next_hop = (!self.rng.percent(25)).then(|| {
            let (dev, via) = self.gateway(six);
            NextHop {
                dev,
                via: (!self.rng.percent(10)).then_some(via),
                ..NextHop::default()
            }
        });
        let more = if six { 10 } else { 0 };
        Intent::Nexthop(replace, id + more, six, next_hop)
    }

    fn link(&mut self) -> Intent {
        let mut all: Vec<u32> = (1..=PORTS).map(port).collect();
        all.extend(self.bridged.first().map(|(_, bridge)| *bridge));
        all.extend(
            self.routed
                .iter()
                .filter(|dev| stacked::lower(**dev).is_some()),
        );
        let dev = self.rng.of(&all);
        Intent::Link(dev, self.known.down.contains(&dev))
    }

    fn address(&mut self) -> Intent {
        let dev = self.rng.of(&self.routed);
        // 9: a second one in the same network
        let last = if self.rng.percent(65) { 1 } else { 9 };
        let net = if self.six && self.rng.percent(45) {
            IpNet::new_assert(v6(dev, last), 64)
        } else {
            IpNet::new_assert(v4(dev, last), 24)
        };
        // what is missing comes back sooner than what is there goes
        let there = self.known.has(dev, net);
        let add = self.rng.percent(if there { 50 } else { 85 });
        Intent::Address(add, dev, net)
    }

    fn neighbour(&mut self) -> Intent {
        let dev = self.rng.of(&self.routed);
        let all = self.stations(dev);
        let (last, mac) = self.rng.of(&all);
        let addr = if self.six && self.rng.percent(45) {
            v6(dev, last)
        } else {
            v4(dev, last)
        };
        let mac = match self.rng.below(10) {
            0..=3 => None,
            4 => Some(host_mac(
                1 + self.rng.below(usize::from(PORTS)) as u16,
                0x33,
            )),
            _ => Some(mac),
        };
        let permanent = self.rng.percent(80);
        Intent::Neighbour(dev, addr, mac, permanent)
    }

    fn bridge(&mut self) -> Intent {
        let (dev, bridge) = self.rng.of(&self.bridged);
        let host = 1 + self.rng.below(usize::from(PORTS)) as u16;
        let mac = match self.rng.below(8) {
            0 => [2, 0, 0, 0, 0, 0x77],
            1 => host_mac(host, 3),
            _ => host_mac(host, 2),
        };
        let vlan = self.rng.of(&self.vids());
        let weights = [
            30,
            30,
            12,
            10,
            if self.still && !self.rare() { 2 } else { 9 },
            if self.still && !self.rare() { 0 } else { 9 },
            if self.bridge_kind.vlans { 20 } else { 0 },
            if self.bridge_kind.snooping { 20 } else { 0 },
        ];
        match self.rng.weighted(&weights) {
            0 => {
                let off = |flag: &PortFlag| self.still && *flag == LEARNING;
                let may = |flag: &&PortFlag| self.rare() || !off(flag);
                let flags: Vec<PortFlag> = PORT_FLAGS.iter().filter(may).cloned().collect();
                let flag = self.rng.of(&flags);
                let on = !off(&flag) && self.rng.percent(50);
                Intent::PortFlag(dev, flag, u8::from(on))
            }
            1 => {
                let verb = if self.rng.percent(40) {
                    Verb::Add
                } else {
                    Verb::Replace
                };
                Intent::Fdb(verb, dev, mac, self.still || self.rng.percent(65), vlan)
            }
            2 => Intent::Fdb(Verb::Delete, dev, mac, true, vlan),
            3 => Intent::PortFlag(dev, PORT_STATE, self.rng.of(&[0, 1, 2, 3, 3, 3])),
            4 => Intent::Master(dev, None),
            5 if self.still => Intent::StillPort(dev, bridge),
            5 => Intent::Master(dev, Some(bridge)),
            6 => {
                let own = self.rng.percent(15);
                let untagged = !own && self.rng.percent(50);
                let dev = if own { bridge } else { dev };
                Intent::BridgeVlan(self.rng.percent(60), dev, vlan, untagged)
            }
            _ => {
                let group = self.rng.of(&probes::GROUPS);
                Intent::Mdb(self.rng.percent(60), bridge, dev, group)
            }
        }
    }

    pub fn rule(&mut self) -> Intent {
        let six = self.six && self.rng.percent(if self.rare() { 60 } else { 35 });
        let dev = self.rng.of(&self.routed);
        let from = if six {
            probes::behind6(dev)
        } else {
            probes::behind4(dev)
        };
        let policy = Policy {
            v6: six,
            pref: 100 + self.rng.below(3) as u32,
            from: self.rng.percent(60).then_some(from),
            iif: if self.rng.percent(30) { dev } else { 0 },
            table: if self.rng.percent(if self.rare() { 25 } else { 70 }) {
                OTHER_TABLE as u8
            } else {
                0
            },
            action: self.rng.of(&[BLACKHOLE, UNREACHABLE, PROHIBIT]),
        };
        Intent::Rule(self.rng.percent(55), policy)
    }
}

//! What is drawn: a topology, then commands. Few prefixes, few next-hop objects and few gateways in one history, so that
//! they meet.

use std::net::IpAddr;

use ipnet::IpNet;

use super::bridging::{PORT_FLAGS, PORT_STATE};
use super::op::{BRIDGE_INDEX, Leg, PORT_INDEX, Policy, Target, Verb, Way};
use super::{
    BRIDGES, COMMANDS, History, Op, PORTS, PROBES, Rng, bridge_mac, host_mac, probes, v4, v6,
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
const OTHER_TABLE: u32 = 99;
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
    ids: Vec<u32>,
    groups: Vec<u32>,
    metrics: Vec<u32>,
    down: Vec<u32>,
    cut: Vec<u16>,
    /// What it is mostly about: weights of the kinds of commands.
    weights: [u32; 10],
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
        Self {
            six: rng.percent(50),
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
            down: Vec::new(),
            cut: Vec::new(),
            weights: [0; 10],
        }
    }

    fn has(&self, construct: &str) -> bool {
        self.history.have.iter().any(|h| h == construct)
    }

    pub fn history(mut self) -> History {
        let shape = if self.has(BRIDGES) {
            self.rng.weighted(&[60, 25, 15])
        } else {
            0
        };
        let bridged: &[u16] = match shape {
            0 => &[],
            1 => &[3, 4],
            _ => &[1, 2, 3, 4],
        };
        let mut made = Vec::new();
        if !bridged.is_empty() {
            let dev = BRIDGE_INDEX + 1;
            made.push(Op::bridge(dev, bridge_mac(1)));
            for n in bridged {
                made.push(Op::master(port(*n), Some(dev)));
                self.bridged.push((port(*n), dev));
            }
            made.push(Op::link(dev, true));
            if shape == 1 || self.rng.percent(70) {
                self.routed.push(dev);
            }
        }
        for n in 1..=PORTS {
            if !bridged.contains(&n) {
                self.routed.push(port(n));
            }
        }
        for dev in self.routed.clone() {
            made.extend(self.addresses(dev));
        }
        // route, next-hop object, link, cable, address, neighbour, bridge, rule, sysctl, delete an object
        self.weights = match self.rng.below(4) {
            0 => [50, 35, 4, 2, 2, 2, 0, 0, 0, 8],
            1 => [40, 10, 10, 8, 8, 10, 0, 0, 2, 2],
            _ => [45, 20, 6, 4, 4, 6, 0, 0, 1, 4],
        };
        if !self.bridged.is_empty() {
            self.weights[6] = 40;
        }
        if self.has("rule") && self.rng.percent(15) {
            self.weights[7] = 15;
        }
        if self.routed.is_empty() {
            self.weights = [0, 0, 10, 6, 0, 0, 60, 0, 0, 0];
        }
        if !self.routed.is_empty() {
            for id in self.ids.clone() {
                if self.rng.percent(60) {
                    let six = self.six && self.rng.percent(50);
                    made.push(self.single(false, id, six));
                }
            }
        }
        for _ in 0..self.rng.below(9) {
            let op = self.command();
            made.push(op);
        }
        let count = COMMANDS + self.rng.below(5);
        let commands: Vec<Op> = (0..count).map(|_| self.command()).collect();
        let probes = (0..PROBES).map(|n| probes::draw(&mut self, n)).collect();
        History {
            topology: made,
            commands,
            probes,
            ..self.history
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
        let mut made = vec![Op::address(true, dev, own4)];
        if self.six {
            made.push(Op::address(true, dev, own6));
        }
        for (n, mac) in self.stations(dev) {
            for addr in [v4(dev, n), v6(dev, n)] {
                if (self.six || addr.is_ipv4()) && self.rng.percent(92) {
                    let permanent = self.rng.percent(80);
                    made.push(Op::neighbour(dev, addr, Some(mac), permanent));
                }
            }
        }
        // who is far away can be answered: frames come from there
        for (dst, via) in [
            (probes::behind4(dev), v4(dev, 2)),
            (probes::behind6(dev), v6(dev, 2)),
        ] {
            if self.six || dst.addr().is_ipv4() {
                made.push(Op::route(
                    Verb::Add,
                    &Way {
                        dst,
                        table: 0,
                        metric: 0,
                        tos: 0,
                        src: None,
                        target: Target::Legs(vec![Leg {
                            via: Some(via),
                            ..Leg::default()
                        }]),
                    },
                ));
            }
        }
        made
    }

    /// Who is on the network of an interface: the last part of an address, and a MAC address.
    pub fn stations(&self, dev: u32) -> Vec<(u8, [u8; 6])> {
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
        if dev <= BRIDGE_INDEX {
            return (dev - PORT_INDEX) as u16;
        }
        let mut members = self.bridged.iter().filter(|(_, bridge)| *bridge == dev);
        members
            .nth(usize::from(station.saturating_sub(2)))
            .map_or(1, |(p, _)| (p - PORT_INDEX) as u16)
    }

    fn command(&mut self) -> Op {
        match self.rng.weighted(&self.weights.clone()) {
            0 => self.route(),
            1 => self.nexthop(),
            2 => self.link(),
            3 => {
                let n = self.rng.below(usize::from(PORTS)) as u16 + 1;
                let up = self.cut.contains(&n);
                self.cut.retain(|p| *p != n);
                if !up {
                    self.cut.push(n);
                }
                Op::cable(n, up)
            }
            4 => self.address(),
            5 => self.neighbour(),
            6 => self.bridge(),
            7 => self.rule(),
            8 => {
                let dev = self.rng.of(&self.routed);
                let value = if self.rng.percent(50) { "1" } else { "0" };
                let name = super::op::device(dev);
                let key = match self.rng.below(3) {
                    0 => format!("ipv4/conf/{name}/forwarding"),
                    1 if self.six => format!("ipv6/conf/{name}/forwarding"),
                    _ => format!("ipv4/conf/{name}/ignore_routes_with_linkdown"),
                };
                Op::sysctl(&key, value)
            }
            _ => {
                let all: Vec<u32> = [self.ids.clone(), self.groups.clone()].concat();
                let id = self.rng.of(&all)
                    + if self.six && self.rng.percent(30) {
                        10
                    } else {
                        0
                    };
                Op::nexthop_del(id)
            }
        }
    }

    /// A gateway, on one of the interfaces; now and then nobody's.
    fn gateway(&mut self, six: bool) -> (u32, IpAddr) {
        let dev = self.rng.of(&self.routed);
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

    fn leg(&mut self, six: bool) -> Leg {
        let (dev, via) = self.gateway(six);
        let (other, _) = self.gateway(six);
        match self.rng.below(12) {
            0 => Leg {
                dev,
                ..Leg::default()
            },
            // a gateway that is not on that link
            1 => Leg {
                dev: other,
                via: Some(via),
                onlink: true,
                ..Leg::default()
            },
            2..=4 => Leg {
                via: Some(via),
                ..Leg::default()
            },
            _ => Leg {
                dev,
                via: Some(via),
                ..Leg::default()
            },
        }
    }

    fn route(&mut self) -> Op {
        let six = self.six && self.rng.percent(45);
        let dst = self.rng.of(&self.prefixes[usize::from(six)]);
        let metric = self.rng.of(&self.metrics.clone());
        let table = if self.rng.percent(4) { OTHER_TABLE } else { 0 };
        let tos = if !six && self.rng.percent(6) { 0x10 } else { 0 };
        let verbs = [
            Verb::Add,
            Verb::Append,
            Verb::Prepend,
            Verb::Replace,
            Verb::Change,
            Verb::Delete,
        ];
        let at = self.rng.weighted(&[20, 28, 9, 24, 6, 13]);
        let verb = verbs.get(at).copied().unwrap_or_default();
        let target = if verb == Verb::Delete && self.rng.percent(50) {
            Target::Any
        } else {
            self.target(six)
        };
        let src = (self.rng.percent(5)).then(|| {
            let dev = self.rng.of(&self.routed);
            if six { v6(dev, 1) } else { v4(dev, 1) }
        });
        Op::route(
            verb,
            &Way {
                dst,
                table,
                metric,
                tos,
                src: src.filter(|_| verb != Verb::Delete),
                target,
            },
        )
    }

    fn target(&mut self, six: bool) -> Target {
        let more = if six { 10 } else { 0 };
        match self.rng.weighted(&[35, 10, 28, 12, 15, 1]) {
            0 => Target::Object(self.rng.of(&self.ids) + more),
            1 => Target::Object(self.rng.of(&self.groups) + more),
            2 => Target::Legs(vec![self.leg(six)]),
            3 => {
                let count = 2 + self.rng.below(2);
                let legs = (0..count).map(|_| Leg {
                    weight: self.rng.below(3) as u8 + 1,
                    ..self.leg(six)
                });
                Target::Legs(legs.collect())
            }
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

    fn nexthop(&mut self) -> Op {
        let six = self.six && self.rng.percent(40);
        let more = if six { 10 } else { 0 };
        let replace = self.rng.percent(75);
        if self.rng.percent(22) {
            let count = 1 + self.rng.below(3);
            let members: Vec<(u32, u8)> = self
                .rng
                .some(&self.ids.clone(), count)
                .into_iter()
                .map(|id| (id + more, self.rng.below(3) as u8 + 1))
                .collect();
            return Op::group(replace, self.rng.of(&self.groups) + more, &members);
        }
        let id = self.rng.of(&self.ids);
        self.single(replace, id, six)
    }

    /// A next-hop object that is no group: a gateway, a device, or nowhere.
    fn single(&mut self, replace: bool, id: u32, six: bool) -> Op {
        let leg = (!self.rng.percent(25)).then(|| {
            let (dev, via) = self.gateway(six);
            Leg {
                dev,
                via: (!self.rng.percent(10)).then_some(via),
                ..Leg::default()
            }
        });
        let more = if six { 10 } else { 0 };
        Op::nexthop(replace, id + more, six, leg.as_ref())
    }

    fn link(&mut self) -> Op {
        let mut all: Vec<u32> = (1..=PORTS).map(port).collect();
        all.extend(self.bridged.first().map(|(_, bridge)| *bridge));
        let dev = self.rng.of(&all);
        let up = self.down.contains(&dev);
        self.down.retain(|d| *d != dev);
        if !up {
            self.down.push(dev);
        }
        Op::link(dev, up)
    }

    fn address(&mut self) -> Op {
        let dev = self.rng.of(&self.routed);
        // 9: a second one in the same network
        let last = if self.rng.percent(65) { 1 } else { 9 };
        let net = if self.six && self.rng.percent(45) {
            IpNet::new_assert(v6(dev, last), 64)
        } else {
            IpNet::new_assert(v4(dev, last), 24)
        };
        Op::address(self.rng.percent(50), dev, net)
    }

    fn neighbour(&mut self) -> Op {
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
        Op::neighbour(dev, addr, mac, permanent)
    }

    fn bridge(&mut self) -> Op {
        let (dev, bridge) = self.rng.of(&self.bridged);
        let host = 1 + self.rng.below(usize::from(PORTS)) as u16;
        let mac = match self.rng.below(8) {
            0 => [2, 0, 0, 0, 0, 0x77],
            1 => host_mac(host, 3),
            _ => host_mac(host, 2),
        };
        match self.rng.weighted(&[30, 30, 12, 10, 9, 9]) {
            0 => {
                let flag = self.rng.of(&PORT_FLAGS);
                Op::port_flag(dev, &flag, u8::from(self.rng.percent(50)))
            }
            1 => {
                let verb = if self.rng.percent(40) {
                    Verb::Add
                } else {
                    Verb::Replace
                };
                Op::fdb(verb, dev, mac, self.rng.percent(65))
            }
            2 => Op::fdb(Verb::Delete, dev, mac, true),
            3 => Op::port_flag(dev, &PORT_STATE, self.rng.of(&[0, 1, 2, 3, 3, 3])),
            4 => Op::master(dev, None),
            _ => Op::master(dev, Some(bridge)),
        }
    }

    fn rule(&mut self) -> Op {
        let six = self.six && self.rng.percent(35);
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
            table: if self.rng.percent(70) {
                OTHER_TABLE as u8
            } else {
                0
            },
            action: self.rng.of(&[BLACKHOLE, UNREACHABLE, PROHIBIT]),
        };
        Op::rule(self.rng.percent(55), &policy)
    }
}

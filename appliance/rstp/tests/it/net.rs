// SPDX-License-Identifier: Apache-2.0
//! A network of bridges without a network: LANs carry frames after their delay, time is a number, and after each change
//! of a port's state it is looked whether what forwards has a loop.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tandem_rstp::{Action, Bridge, Config, Link, PortConfig, PortState, Role};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1000 * MS;

/// A port of a bridge: the bridge's place, the port's number.
pub type At = (usize, u16);

/// xorshift64*: what a case draws, from its seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

pub struct Lan {
    pub ends: Vec<At>,
    pub up: bool,
    pub delay: u64,
    pub mbps: u32,
    /// How often it has gone down: what was on its way then is lost.
    cuts: u64,
}

pub struct Node {
    /// `None`: without power.
    pub bridge: Option<Bridge>,
    pub config: Config,
    pub ports: BTreeMap<u16, PortConfig>,
    /// As the actions said.
    pub states: BTreeMap<u16, PortState>,
}

struct Delivery {
    lan: usize,
    cuts: u64,
    to: At,
    frame: Vec<u8>,
}

pub struct Net {
    pub now: u64,
    pub nodes: Vec<Node>,
    pub lans: Vec<Lan>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    deliveries: BTreeMap<u64, Delivery>,
    count: u64,
    /// One frame in so many is lost; 0: none.
    pub loss: u64,
    random: Random,
    /// From when to when what forwards had a loop, and which port made it one.
    pub loops: Vec<(u64, u64, At)>,
    looping: Option<(u64, At)>,
    pub flushes: Vec<(u64, At)>,
    pub sent: u64,
    /// When a port's state changed last.
    pub changed: u64,
    pub err_disabled: Vec<At>,
    /// Ports that hear nothing of what is sent to them.
    pub deaf: Vec<At>,
}

impl Net {
    pub fn new(seed: u64) -> Net {
        Net {
            now: 0,
            nodes: Vec::new(),
            lans: Vec::new(),
            queue: BinaryHeap::new(),
            deliveries: BTreeMap::new(),
            count: 0,
            loss: 0,
            random: Random::new(seed),
            loops: Vec::new(),
            looping: None,
            flushes: Vec::new(),
            sent: 0,
            changed: 0,
            err_disabled: Vec::new(),
            deaf: Vec::new(),
        }
    }

    /// A bridge, with power, and its number in the list.
    pub fn bridge(&mut self, config: Config) -> usize {
        self.nodes.push(Node {
            bridge: Some(Bridge::new(config.clone()).unwrap()),
            config,
            ports: BTreeMap::new(),
            states: BTreeMap::new(),
        });
        self.nodes.len() - 1
    }

    /// A bridge whose address ends in its number, with a priority.
    pub fn plain(&mut self, priority: u16) -> usize {
        let n = self.nodes.len() as u8;
        let config = Config {
            priority,
            ..Config::new([2, 0, 0, 0, n, 0])
        };
        self.bridge(config)
    }

    /// A new port of a bridge, by its number.
    pub fn port(&mut self, node: usize, change: impl FnOnce(&mut PortConfig)) -> At {
        let n = &mut self.nodes[node];
        let number = n.ports.len() as u16 + 1;
        let mut mac = n.config.mac;
        mac[5] = number as u8;
        let mut config = PortConfig::new(mac);
        change(&mut config);
        n.ports.insert(number, config.clone());
        let actions = n
            .bridge
            .as_mut()
            .unwrap()
            .set_port(number, config, self.now)
            .unwrap();
        self.carry_out(node, actions);
        (node, number)
    }

    /// A LAN between ports, which is down.
    pub fn lan(&mut self, ends: &[At], delay: u64, mbps: u32) -> usize {
        self.lans.push(Lan {
            ends: ends.to_vec(),
            up: false,
            delay,
            mbps,
            cuts: 0,
        });
        self.lans.len() - 1
    }

    /// A 1 Gbit/s link of new ports, up.
    pub fn link(&mut self, a: usize, b: usize) -> usize {
        let ends = [self.port(a, |_| {}), self.port(b, |_| {})];
        let lan = self.lan(&ends, 10_000, 1000);
        self.up(lan);
        lan
    }

    /// With two ends, full duplex; a LAN of more is a hub's.
    pub fn up(&mut self, lan: usize) {
        self.lans[lan].up = true;
        for (node, port) in self.lans[lan].ends.clone() {
            self.port_up(lan, node, port);
        }
    }

    fn port_up(&mut self, lan: usize, node: usize, port: u16) {
        let l = &self.lans[lan];
        let link = Link {
            mbps: l.mbps,
            full_duplex: l.ends.len() <= 2,
        };
        let now = self.now;
        self.tell(node, |b| b.port_up(port, link, now).unwrap());
    }

    pub fn down(&mut self, lan: usize) {
        self.lans[lan].up = false;
        self.lans[lan].cuts += 1;
        self.look_for_loops(self.lans[lan].ends[0]);
        let now = self.now;
        for (node, port) in self.lans[lan].ends.clone() {
            self.tell(node, |b| b.port_down(port, now).unwrap());
        }
    }

    /// The bridge loses its power: nothing of it forwards; at a link between two, the other one sees that.
    pub fn power_off(&mut self, node: usize) {
        self.nodes[node].bridge = None;
        self.nodes[node].states.clear();
        self.look_for_loops((node, 0));
        for lan in 0..self.lans.len() {
            if self.lans[lan].up && self.lans[lan].ends.iter().any(|e| e.0 == node) {
                self.lans[lan].cuts += 1;
                if self.lans[lan].ends.len() <= 2 {
                    self.down(lan);
                }
            }
        }
    }

    pub fn power_on(&mut self, node: usize) {
        if self.nodes[node].bridge.is_some() {
            return;
        }
        let n = &mut self.nodes[node];
        n.bridge = Some(Bridge::new(n.config.clone()).unwrap());
        for (number, config) in n.ports.clone() {
            let now = self.now;
            self.tell(node, |b| b.set_port(number, config, now).unwrap());
        }
        for lan in 0..self.lans.len() {
            let l = &self.lans[lan];
            if !l.ends.iter().any(|e| e.0 == node) {
                continue;
            }
            match l.ends.len() <= 2 {
                true if !l.up && l.ends.iter().all(|e| self.nodes[e.0].bridge.is_some()) => {
                    self.up(lan)
                }
                true => {}
                false => {
                    for (n, port) in l.ends.clone() {
                        if n == node && self.lans[lan].up {
                            self.port_up(lan, n, port);
                        }
                    }
                }
            }
        }
    }

    /// Says something to a bridge, if it has power, and does what it answers.
    pub fn tell(&mut self, node: usize, what: impl FnOnce(&mut Bridge) -> Vec<Action>) {
        if let Some(bridge) = self.nodes[node].bridge.as_mut() {
            let actions = what(bridge);
            self.carry_out(node, actions);
        }
    }

    fn carry_out(&mut self, node: usize, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { port, frame } => self.send((node, port), frame),
                Action::State { port, state } => {
                    if self.nodes[node].states.insert(port, state) != Some(state) {
                        self.changed = self.now;
                    }
                    self.look_for_loops((node, port));
                }
                Action::Flush { port } => self.flushes.push((self.now, (node, port))),
                Action::ErrDisabled { port } => self.err_disabled.push((node, port)),
            }
        }
    }

    fn send(&mut self, from: At, frame: Vec<u8>) {
        self.sent += 1;
        for lan in 0..self.lans.len() {
            let l = &self.lans[lan];
            if !l.up || !l.ends.contains(&from) {
                continue;
            }
            for to in l.ends.clone() {
                let l = &self.lans[lan];
                if to == from
                    || self.deaf.contains(&to)
                    || self.loss > 0 && self.random.below(self.loss) == 0
                {
                    continue;
                }
                self.count += 1;
                self.queue.push(Reverse((self.now + l.delay, self.count)));
                let delivery = Delivery {
                    lan,
                    cuts: l.cuts,
                    to,
                    frame: frame.clone(),
                };
                self.deliveries.insert(self.count, delivery);
            }
        }
    }

    /// Lets time go by.
    pub fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        loop {
            let frame = self.queue.peek().map(|Reverse((t, _))| *t);
            let tick = self
                .nodes
                .iter()
                .enumerate()
                .filter_map(|(i, n)| Some((n.bridge.as_ref()?.next_deadline()?, i)))
                .min();
            let next = frame.into_iter().chain(tick.map(|t| t.0)).min();
            let Some(at) = next.filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(at);
            let now = self.now;
            if frame == Some(at) {
                let Some(Reverse((_, key))) = self.queue.pop() else {
                    continue;
                };
                let Some(d) = self.deliveries.remove(&key) else {
                    continue;
                };
                if self.lans[d.lan].cuts == d.cuts {
                    self.tell(d.to.0, |b| {
                        b.receive(d.to.1, &d.frame, now).unwrap_or_default()
                    });
                }
            } else if let Some((_, i)) = tick {
                self.tell(i, |b| b.tick(now));
            }
        }
    }

    pub fn forwards(&self, at: At) -> bool {
        self.nodes[at.0].states.get(&at.1) == Some(&PortState::Forwarding)
    }

    pub fn role(&self, at: At) -> Role {
        let view = self.nodes[at.0].bridge.as_ref().unwrap().show();
        view.ports.iter().find(|p| p.number == at.1).unwrap().role
    }

    /// Is there a loop, and since when.
    fn look_for_loops(&mut self, newest: At) {
        match (self.has_loop(), self.looping) {
            (true, None) => self.looping = Some((self.now, newest)),
            (false, Some((since, at))) => {
                self.loops.push((since, self.now, at));
                self.looping = None;
            }
            _ => {}
        }
    }

    /// What forwards, bridges and LANs as its points, has no loop if each forwarding port joins two parts.
    fn has_loop(&self) -> bool {
        let mut part: Vec<usize> = (0..self.nodes.len() + self.lans.len()).collect();
        fn root(part: &[usize], mut at: usize) -> usize {
            while part[at] != at {
                at = part[at];
            }
            at
        }
        for (i, lan) in self.lans.iter().enumerate().filter(|(_, l)| l.up) {
            for end in lan.ends.iter().filter(|e| self.forwards(**e)) {
                let (a, b) = (root(&part, end.0), root(&part, self.nodes.len() + i));
                if a == b {
                    return true;
                }
                part[a] = b;
            }
        }
        false
    }
}

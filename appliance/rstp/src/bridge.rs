// SPDX-License-Identifier: Apache-2.0
//! The bridge: what comes in, the machines' turn, what is to be done.

use crate::bpdu::{Bpdu, Malformed};
use crate::config::{Config, Link, MOST_PORTS, PortConfig, Refusal};
use crate::machines::{
    edge, information, migration, receive, selection, state, timers, topology, transition, transmit,
};
use crate::port::{Port, PortState};
use crate::priority::{BridgeId, PortId, Vector};
use crate::times::Times;

const SECOND_NS: u64 = 1_000_000_000;
/// Transitions of one turn, for each port: more than any turn of the tests needs. A turn that would need more goes on when
/// something happens next, at the latest after a second.
const MOST_TRANSITIONS: usize = 256;

/// What is to be done, in the order in which it is said: a port discards before its neighbour hears that it agrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The port sends this frame.
    Send {
        /// Its number.
        port: u16,
        /// From the destination's address to the padding.
        frame: Vec<u8>,
    },
    /// The port does this with frames from now on.
    State {
        /// Its number.
        port: u16,
        /// The state.
        state: PortState,
    },
    /// Stations that were learned behind this port are forgotten.
    Flush {
        /// Its number.
        port: u16,
    },
    /// BPDU guard: the port is out of service until [`Bridge::recover`], or its link comes anew.
    ErrDisabled {
        /// Its number.
        port: u16,
    },
}

/// A bridge that speaks RSTP. Time is an argument (ns, monotonic); what it answers is to be done in that order.
#[derive(Clone, Debug)]
pub struct Bridge {
    pub(crate) config: Config,
    /// By number.
    pub(crate) ports: Vec<Port>,
    pub(crate) root_priority: Vector,
    pub(crate) root_port: Option<PortId>,
    pub(crate) root_times: Times,
    pub(crate) actions: Vec<Action>,
    pub(crate) changes: u64,
    /// When the topology changed last, and at which port.
    pub(crate) changed: Option<(u64, u16)>,
    /// Turns that were cut short (there should be none).
    pub(crate) cut_short: u64,
    /// When the timers count down next.
    due: Option<u64>,
    now_ns: u64,
}

impl Bridge {
    /// A bridge without ports.
    pub fn new(config: Config) -> Result<Bridge, Refusal> {
        config.check()?;
        let mut bridge = Bridge {
            config,
            ports: Vec::new(),
            root_priority: Vector::default(),
            root_port: None,
            root_times: Times::default(),
            actions: Vec::new(),
            changes: 0,
            changed: None,
            cut_short: 0,
            due: None,
            now_ns: 0,
        };
        bridge.begin();
        Ok(bridge)
    }

    /// `BridgeIdentifier` (17.18.2).
    pub fn id(&self) -> BridgeId {
        BridgeId::new(self.config.priority, self.config.mac)
    }

    /// `BridgeTimes` (17.18.4).
    pub(crate) fn bridge_times(&self) -> Times {
        Times::of_root(
            self.config.max_age,
            self.config.hello,
            self.config.forward_delay,
        )
    }

    /// What is set.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sets what is to be. Another address or version begins from the start (17.13.4), with all ports discarding.
    pub fn configure(&mut self, config: Config, now_ns: u64) -> Result<Vec<Action>, Refusal> {
        config.check()?;
        // without ports there is no role to be selected, and nothing that BEGIN would interrupt
        let anew = config.version != self.config.version
            || config.mac != self.config.mac
            || self.ports.is_empty();
        if config == self.config {
            return Ok(Vec::new());
        }
        self.config = config;
        match anew {
            true => self.begin(),
            false => self.ask_for_selection(),
        }
        Ok(self.turn(now_ns))
    }

    /// Makes a port, or sets what is to be of one that there is. A new one has no link.
    pub fn set_port(
        &mut self,
        number: u16,
        config: PortConfig,
        now_ns: u64,
    ) -> Result<Vec<Action>, Refusal> {
        if !(1..=4095).contains(&number) {
            return Err(Refusal::PortNumber(number));
        }
        config.check()?;
        match self.place(number) {
            Ok(i) => {
                let p = &mut self.ports[i];
                let selects = |p: &Port| (p.id(), p.cost(), p.config.root_guard);
                let before = selects(p);
                p.config = config;
                if before != selects(p) {
                    p.ask_for_selection();
                }
            }
            Err(_) if self.ports.len() >= MOST_PORTS => return Err(Refusal::TooManyPorts),
            Err(i) => {
                self.ports.insert(i, Port::new(number, config));
                self.begin_port(i);
            }
        }
        Ok(self.turn(now_ns))
    }

    /// Takes a port away.
    pub fn remove_port(&mut self, number: u16, now_ns: u64) -> Result<Vec<Action>, Refusal> {
        let mut actions = self.port_down(number, now_ns)?;
        if let Ok(i) = self.place(number) {
            self.ports.remove(i);
            self.ask_for_selection();
        }
        actions.extend(self.turn(now_ns));
        Ok(actions)
    }

    /// The port has a link, or another one than before.
    pub fn port_up(
        &mut self,
        number: u16,
        link: Link,
        now_ns: u64,
    ) -> Result<Vec<Action>, Refusal> {
        let p = self.port(number)?;
        if p.link != Some(link) {
            if p.link.is_none() {
                p.err_disabled = false;
            }
            p.link = Some(link);
            p.ask_for_selection();
        }
        Ok(self.turn(now_ns))
    }

    /// The port has no link.
    pub fn port_down(&mut self, number: u16, now_ns: u64) -> Result<Vec<Action>, Refusal> {
        self.port(number)?.link = None;
        Ok(self.turn(now_ns))
    }

    /// A port that BPDU guard took out of service comes back.
    pub fn recover(&mut self, number: u16, now_ns: u64) -> Result<Vec<Action>, Refusal> {
        self.port(number)?.err_disabled = false;
        Ok(self.turn(now_ns))
    }

    /// `mcheck` (17.19.13): are the neighbours, who spoke the old protocol once, still such?
    pub fn migration_check(&mut self, number: u16, now_ns: u64) -> Result<Vec<Action>, Refusal> {
        let rapid = crate::machines::rstp_version(self.config.version);
        self.port(number)?.mcheck = rapid;
        Ok(self.turn(now_ns))
    }

    /// A frame to the bridges' group address has come in by a port. What is no BPDU is counted and named.
    pub fn receive(
        &mut self,
        number: u16,
        frame: &[u8],
        now_ns: u64,
    ) -> Result<Vec<Action>, Ignored> {
        let p = self.port(number).map_err(|_| Ignored::NoPort(number))?;
        let bpdu = Bpdu::from_frame(frame).map_err(|why| {
            p.counters.refused += 1;
            Ignored::Malformed(why)
        })?;
        if !p.enabled() {
            return Err(Ignored::Disabled);
        }
        if p.config.bpdu_guard {
            p.counters.received += 1;
            p.err_disabled = true;
            self.actions.push(Action::ErrDisabled { port: number });
            return Ok(self.turn(now_ns));
        }
        // 9.3.4: what the port itself has sent, and a loop has brought back
        if let Bpdu::Config(info) = &bpdu {
            let port = p.id();
            if info.vector.bridge == p.designated_priority.bridge && info.vector.port == port {
                p.counters.refused += 1;
                return Err(Ignored::Own);
            }
        }
        p.counters.received += 1;
        p.bpdu = Some(bpdu);
        p.rcvd_bpdu = true;
        Ok(self.turn(now_ns))
    }

    /// When [`Bridge::tick`] has something to do; `None`: when a port has got a link.
    pub fn next_deadline(&self) -> Option<u64> {
        self.due
    }

    /// The timers count down if a second has gone by since they did. Who asks too late has lost that time: what waited
    /// as long as this process did, a neighbour's BPDUs, is not to be taken for absent.
    pub fn tick(&mut self, now_ns: u64) -> Vec<Action> {
        let Some(due) = self.due.filter(|due| *due <= now_ns) else {
            return Vec::new();
        };
        for p in &mut self.ports {
            timers::tick(p);
        }
        let next = due.saturating_add(SECOND_NS);
        self.due = match (self.ports.iter().any(Port::enabled), next > now_ns) {
            (false, _) => None,
            (true, true) => Some(next),
            (true, false) => Some(now_ns.saturating_add(SECOND_NS)),
        };
        self.turn(now_ns)
    }

    /// A change of the topology is counted.
    pub(crate) fn topology_changed(&mut self, i: usize) {
        self.changes += 1;
        self.changed = Some((self.now_ns, self.ports[i].number));
    }

    /// Where a port is, or would be.
    pub(crate) fn place(&self, number: u16) -> Result<usize, usize> {
        self.ports.binary_search_by_key(&number, |p| p.number)
    }

    fn port(&mut self, number: u16) -> Result<&mut Port, Refusal> {
        match self.place(number) {
            Ok(i) => Ok(&mut self.ports[i]),
            Err(_) => Err(Refusal::NoPort(number)),
        }
    }

    /// BEGIN, of all.
    fn begin(&mut self) {
        let id = self.id();
        self.root_priority = Vector {
            root: id,
            cost: 0,
            bridge: id,
            port: PortId(0),
        };
        self.root_port = None;
        self.root_times = self.bridge_times();
        for i in 0..self.ports.len() {
            self.begin_port(i);
        }
    }

    /// BEGIN, of one port's machines. Roles are selected anew, which is role selection's own BEGIN.
    fn begin_port(&mut self, i: usize) {
        let version = self.config.version;
        let times = self.bridge_times();
        let p = &mut self.ports[i];
        p.designated_times = times;
        p.bpdu = None;
        receive::begin(p);
        migration::begin(p, version);
        edge::begin(p);
        transmit::begin(p);
        information::begin(p);
        transition::begin(p);
        state::begin(self, i);
        topology::begin(self, i);
    }

    fn ask_for_selection(&mut self) {
        for p in &mut self.ports {
            p.ask_for_selection();
        }
    }

    /// All machines, until none has a transition to make; what was said meanwhile.
    fn turn(&mut self, now_ns: u64) -> Vec<Action> {
        self.now_ns = now_ns;
        if self.due.is_none() && self.ports.iter().any(Port::enabled) {
            self.due = Some(now_ns.saturating_add(SECOND_NS));
        }
        let mut left = MOST_TRANSITIONS.saturating_mul(self.ports.len().max(1));
        while left > 0 {
            let made = self.round();
            if made == 0 {
                break;
            }
            left = left.saturating_sub(made);
        }
        self.cut_short += u64::from(left == 0);
        std::mem::take(&mut self.actions)
    }

    /// Each machine of each port once. What is sent comes last, when the rest has come to rest: one BPDU says it all.
    fn round(&mut self) -> usize {
        let version = self.config.version;
        let mut made = 0;
        for i in 0..self.ports.len() {
            let p = &mut self.ports[i];
            made += usize::from(receive::step(p));
            made += usize::from(migration::step(p, version));
            made += usize::from(edge::step(p));
            made += usize::from(information::step(p, version));
        }
        made += usize::from(selection::step(self));
        for i in 0..self.ports.len() {
            made += usize::from(transition::step(self, i));
            made += usize::from(state::step(self, i));
            made += usize::from(topology::step(self, i));
        }
        if made == 0 {
            for i in 0..self.ports.len() {
                made += usize::from(transmit::step(self, i));
            }
        }
        made
    }
}

/// Why a frame has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// There is no such port.
    NoPort(u16),
    /// It has no link, or is out of service.
    Disabled,
    /// A Config BPDU that this very port has sent.
    Own,
    /// No BPDU.
    Malformed(Malformed),
}

impl std::fmt::Display for Ignored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ignored::NoPort(n) => write!(f, "there is no port {n}"),
            Ignored::Disabled => f.write_str("the port is not in service"),
            Ignored::Own => f.write_str("the port has sent it itself"),
            Ignored::Malformed(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for Ignored {}

// SPDX-License-Identifier: Apache-2.0
//! The spanning tree's bridge, between links and BPDUs and the states of ports, whosever those are.
//!
//! ```text
//!   configuration ─► Bridge ─► actions, one after the other ─┬─► Ports: their states, stations forgotten
//!   links, BPDUs, seconds ─┘                                 └─► BPDUs that leave, for who has packets
//!                            a port closes ─► asks the chip ─► it is there ─► what was said after it
//! ```
//!
//! **A port discards before its neighbour hears of it**: what was said after a port has closed (BPDUs, another port that
//! opens) waits until it is known that the chip has it. Where that takes longer than [`PATIENCE`] the BPDUs are
//! dropped, as if the wire had lost them; ports open later, or not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_rstp::{Action, Bridge, Link, PointToPoint, PortConfig, PortState, Role};
use tandem_swconfig::tree::{self, PortTree};
use tandem_swconfig::{Config, Interface, Mode, Name, channel};

/// What waits for the chip for so long is out of date, ns.
const PATIENCE: u64 = 2_000_000_000;
/// BPDUs that wait to be sent at most: one that is lost is said again.
const OUT: usize = 1024;

/// All that is set of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of the bridge.
    pub tree: tree::Tree,
    /// Of ports that are not out of the box: what is set, and whether they are shut down.
    pub ports: BTreeMap<u16, (PortTree, bool)>,
    /// Port-channels, each one port of the tree: what it is called, its ports, which are none, and whether those are not shut
    /// down.
    pub groups: BTreeMap<u16, (Name, BTreeMap<u16, bool>)>,
}

impl Wanted {
    /// What a configuration says; `number` is who a port or port-channel is to [`Ports`]. Without a tree nothing of it is
    /// wanted.
    #[must_use]
    pub fn of(config: &Config, number: impl Fn(&Name) -> u16) -> Wanted {
        let access = |of: &Interface| {
            let port = of.switchport.as_ref();
            port.is_some_and(|p| p.mode == Mode::Access)
        };
        let all = PortTree::default().with(&config.tree, true);
        let set = |(name, of): (&Name, &Interface)| {
            // where copies go nobody speaks
            let out = of.shutdown || config.monitors_to(name).is_some();
            let tree = of.tree.with(&config.tree, access(of));
            let usual = tree == all && !out;
            let is_one = name.is_switched() && of.channel.is_none();
            let is_set = is_one && !usual && config.tree.on;
            is_set.then_some((number(name), (tree, out)))
        };
        let mut groups: BTreeMap<u16, (Name, BTreeMap<u16, bool>)> = BTreeMap::new();
        for (name, of) in config.interfaces.iter().filter(|_| config.tree.on) {
            let Some(channel) = of.channel else { continue };
            let group = channel::name(channel.number);
            let shut = of.shutdown || config.interface(&group).shutdown;
            let (_, ports) = groups
                .entry(number(&group))
                .or_insert((group, BTreeMap::new()));
            ports.insert(name.number, !shut);
        }
        Wanted {
            tree: match config.tree.on {
                true => config.tree.clone(),
                false => tree::Tree::default(),
            },
            ports: config.interfaces.iter().filter_map(set).collect(),
            groups,
        }
    }
}

/// What can't be asked of it, whether there is a tree or not.
///
/// # Errors
/// Why, in one line.
pub fn check(config: &Config, ports: &[Name]) -> Result<(), String> {
    let words = |e: tandem_rstp::Refusal| format!("spanning tree: {e}");
    bridge([0; 6], &config.tree).check().map_err(words)?;
    for (name, of) in &config.interfaces {
        let set = port([0; 6], &of.tree).check();
        set.map_err(|e| format!("{name}: {}", words(e)))?;
    }
    match config.tree.on && ports.len() > tandem_rstp::MOST_PORTS {
        true => Err(words(tandem_rstp::Refusal::TooManyPorts)),
        false => Ok(()),
    }
}

/// Who has the ports.
pub trait Ports: Send + Sync {
    /// A port's state from now on. False: it was so already.
    fn set(&self, port: u16, state: PortState) -> bool;

    /// The stations that were learned there are forgotten.
    fn forget(&self, port: u16);
}

/// One of the front panel, as the tree knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub number: u16,
    /// Its name.
    pub name: Name,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Mb/s, where nothing else is known.
    pub mbps: u32,
}

/// The bridge's values as the protocol has them.
fn bridge(mac: [u8; 6], set: &tree::Tree) -> tandem_rstp::Config {
    let usual = tandem_rstp::Config::new(mac);
    tandem_rstp::Config {
        priority: set.priority.unwrap_or(usual.priority),
        hello: set.hello.unwrap_or(usual.hello),
        max_age: set.max_age.unwrap_or(usual.max_age),
        forward_delay: set.forward.unwrap_or(usual.forward_delay),
        ..usual
    }
}

/// A port's.
fn port(mac: [u8; 6], set: &PortTree) -> PortConfig {
    let usual = PortConfig::new(mac);
    PortConfig {
        priority: set.priority.unwrap_or(usual.priority),
        cost: set.cost,
        admin_edge: set.edge,
        point_to_point: match set.point_to_point {
            None => PointToPoint::Auto,
            Some(true) => PointToPoint::Yes,
            Some(false) => PointToPoint::No,
        },
        bpdu_guard: set.guard,
        ..usual
    }
}

/// The port that an action is of.
fn port_of(action: &Action) -> u16 {
    match action {
        Action::State { port, .. }
        | Action::Flush { port }
        | Action::Send { port, .. }
        | Action::ErrDisabled { port } => *port,
    }
}

/// Asks for a word ([`Tree::passed`]) when all that ports were told is in the chip. False: it can't be asked now.
pub type Ask = Box<dyn Fn(u64) -> bool + Send>;

#[derive(Default)]
struct Inner {
    /// None: there is no tree.
    bridge: Option<Bridge>,
    wanted: Wanted,
    /// Ports that the guard took out of service, and when they come back, ns.
    out_until: BTreeMap<u16, u64>,
    /// Carriers and speeds, as far as the chip has said.
    links: BTreeMap<u16, (bool, u32)>,
    todo: VecDeque<Action>,
    out: VecDeque<(u16, Vec<u8>)>,
    /// None before anybody may be asked: what is found then is what is wanted.
    ask: Option<Ask>,
    /// Ports have closed so often,
    closed: u64,
    /// the chip has had so many of these,
    passed: u64,
    /// this many are asked for,
    asked: u64,
    /// and since when the oldest waits, ns.
    since: u64,
    /// Stations were forgotten so often.
    flushed: u64,
}

/// The tree, for the engine and for who has packets.
pub struct Tree {
    mac: [u8; 6],
    members: Vec<Member>,
    ports: Box<dyn Ports>,
    wake: Arc<EventFd>,
    inner: Mutex<Inner>,
}

impl Inner {
    /// Ports that are out of service come back when their time has come. When the next one does.
    fn recover(&mut self, now: u64) -> Option<u64> {
        let (set, b) = (&self.wanted.tree, self.bridge.as_mut()?);
        let after = u64::from(set.interval.unwrap_or(tree::RECOVERS_AFTER)) * 1_000_000_000;
        let ports = b.show().ports.into_iter();
        let out: BTreeSet<u16> = ports
            .filter(|p| p.err_disabled && set.recovers)
            .map(|p| p.number)
            .collect();
        self.out_until.retain(|n, _| out.contains(n));
        for number in out {
            let until = *self.out_until.entry(number).or_insert(now + after);
            if until > now {
                continue;
            }
            self.out_until.remove(&number);
            match b.recover(number, now) {
                Ok(said) => self.todo.extend(said),
                Err(e) => tracing::error!("spanning tree: port {number}: {e}"),
            }
        }
        self.out_until.values().min().copied()
    }
}

impl Tree {
    /// Without a tree. `mac` is the switch's, `wake` is of who has packets.
    #[must_use]
    pub fn new(
        mac: [u8; 6],
        members: Vec<Member>,
        ports: Box<dyn Ports>,
        wake: Arc<EventFd>,
    ) -> Tree {
        Tree {
            mac,
            members,
            ports,
            wake,
            inner: Mutex::default(),
        }
    }

    fn member(&self, number: u16) -> Option<&Member> {
        self.members.iter().find(|m| m.number == number)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on the chip may be asked.
    pub fn set_ask(&self, ask: Ask) {
        self.lock().ask = Some(ask);
    }

    /// Is there a tree?
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.lock().bridge.is_some()
    }

    /// The ports of the tree, with their MACs: those in no group, and groups.
    fn bridged(&self, inner: &Inner) -> Vec<(u16, [u8; 6])> {
        let groups = &inner.wanted.groups;
        let is_in = |n: &u16| groups.values().any(|(_, of)| of.contains_key(n));
        let single = self.members.iter().filter(|m| !is_in(&m.number));
        let single = single.map(|m| (m.number, m.mac));
        single
            .chain(groups.keys().map(|n| (*n, self.mac)))
            .collect()
    }

    fn name(&self, inner: &Inner, number: u16) -> Option<Name> {
        let group = inner.wanted.groups.get(&number);
        group
            .map(|(name, _)| *name)
            .or_else(|| self.member(number).map(|m| m.name))
    }

    /// Makes the tree be as it is wanted.
    ///
    /// # Errors
    /// What the protocol can't have, in one line.
    pub fn configure(&self, wanted: &Wanted) -> Result<(), String> {
        let now = clock::now_ns();
        let mut inner = self.lock();
        let times = |of: &Wanted| (of.tree.recovers, of.tree.interval);
        if times(&inner.wanted) != times(wanted) {
            // a time that is set now begins now
            inner.out_until.clear();
        }
        inner.wanted = wanted.clone();
        let done = match wanted.tree.on {
            true => self.set(&mut inner, now),
            false => {
                let was = inner.bridge.take().map(|b| b.show().ports);
                inner.todo.clear();
                inner.out.clear();
                let was = was.iter().flatten().map(|p| p.number);
                for number in was.chain(self.members.iter().map(|m| m.number)) {
                    self.ports.set(number, PortState::Forwarding);
                }
                Ok(())
            }
        };
        self.carry_out(&mut inner, now);
        drop(inner);
        self.wake.ring();
        done.map_err(|e| format!("spanning tree: {e}"))
    }

    fn set(&self, inner: &mut Inner, now: u64) -> Result<(), tandem_rstp::Refusal> {
        let config = bridge(self.mac, &inner.wanted.tree);
        let new = inner.bridge.is_none();
        let mut b = match inner.bridge.take() {
            None => Bridge::new(config)?,
            Some(mut b) => {
                let said = b.configure(config, now);
                inner.bridge = Some(b.clone());
                inner.todo.extend(said?);
                b
            }
        };
        let mut said = Vec::new();
        let usual = (PortTree::default().with(&inner.wanted.tree, true), false);
        let ports = self.bridged(inner);
        let stays = |n: u16| ports.iter().any(|p| p.0 == n);
        for gone in b.show().ports.iter().filter(|p| !stays(p.number)) {
            said.extend(b.remove_port(gone.number, now)?);
            self.ports.set(gone.number, PortState::Forwarding);
        }
        for (n, mac) in &ports {
            let (set, _) = inner.wanted.ports.get(n).unwrap_or(&usual);
            said.extend(b.set_port(*n, port(*mac, set), now)?);
        }
        inner.todo.extend(said);
        // what was to become of a port that has gone is nobody's
        inner.todo.retain(|a| stays(port_of(a)));
        inner.out.retain(|(n, _)| stays(*n));
        inner.bridge = Some(b);
        for (n, _) in ports {
            self.follow(inner, n, now);
        }
        if new {
            // each port goes from where it was to where it begins: hosts are not cut off for a moment
            let mut begun = BTreeSet::new();
            let last = |a: &Action| match a {
                Action::State { port, .. } => begun.insert(*port),
                _ => true,
            };
            let all = std::mem::take(&mut inner.todo).into_iter().rev();
            let kept: Vec<Action> = all.filter(last).collect();
            inner.todo = kept.into_iter().rev().collect();
        }
        Ok(())
    }

    /// A port's link is for the bridge what it is. One of which the chip has said nothing yet is none, unless hosts alone
    /// are there: such a port forwards on while this process begins.
    fn follow(&self, inner: &mut Inner, number: u16, now: u64) {
        let usual = (PortTree::default().with(&inner.wanted.tree, true), false);
        let (set, shut) = inner.wanted.ports.get(&number).unwrap_or(&usual);
        let link = |n: &u16| {
            let (up, mbps) = inner.links.get(n).copied().unwrap_or((set.edge, 0));
            let board = self.member(*n).map_or(0, |m| m.mbps);
            up.then_some(if mbps == 0 { board } else { mbps })
        };
        let speed = match inner.wanted.groups.get(&number) {
            None => link(&number),
            Some((_, group)) => {
                let up = group.iter().filter(|(_, up)| **up);
                let speeds: Vec<u32> = up.filter_map(|(n, _)| link(n)).collect();
                (!speeds.is_empty()).then(|| speeds.iter().sum())
            }
        };
        let speed = speed.filter(|_| !shut);
        let Some(b) = &mut inner.bridge else { return };
        let said = match speed {
            Some(mbps) => {
                let link = Link {
                    mbps,
                    full_duplex: true,
                };
                b.port_up(number, link, now)
            }
            None => b.port_down(number, now),
        };
        match said {
            Ok(said) => inner.todo.extend(said),
            Err(e) => tracing::error!("spanning tree: port {number}: {e}"),
        }
    }

    /// The chip has said how a port's link is.
    pub fn link(&self, number: u16, up: bool, mbps: u32, now: u64) {
        let mut inner = self.lock();
        inner.links.insert(number, (up, mbps));
        let mut groups = inner.wanted.groups.iter();
        let group = groups.find(|(_, (_, of))| of.contains_key(&number));
        let port = group.map_or(number, |(group, _)| *group);
        self.follow(&mut inner, port, now);
        self.carry_out(&mut inner, now);
    }

    /// There is no chip: it says anew how links are when it is back. What is not known to be so is not held for it.
    pub fn detached(&self, now: u64) {
        let mut inner = self.lock();
        inner.links.clear();
        for (n, _) in self.bridged(&inner) {
            self.follow(&mut inner, n, now);
        }
        self.carry_out(&mut inner, now);
        inner.out.clear();
    }

    /// A frame to the bridges' address. False: there is no tree, and it is like any other.
    pub fn receive(&self, number: u16, frame: &[u8], now: u64) -> bool {
        let mut inner = self.lock();
        let Some(b) = &mut inner.bridge else {
            return false;
        };
        match b.receive(number, frame, now) {
            Ok(said) => inner.todo.extend(said),
            Err(why) => tracing::debug!("spanning tree: port {number}: {why}"),
        }
        self.carry_out(&mut inner, now);
        true
    }

    /// What is due by now. When it is to be asked again, ns; `None`: when something happens.
    pub fn tick(&self, now: u64) -> Option<u64> {
        let mut inner = self.lock();
        let again = inner.recover(now);
        let b = inner.bridge.as_mut()?;
        let before = b.next_deadline();
        let said = b.tick(now);
        let due = b.next_deadline();
        inner.todo.extend(said);
        if before != due && inner.asked > inner.passed {
            // whom was asked has not answered for a second
            inner.asked = inner.passed;
        }
        self.carry_out(&mut inner, now);
        due.into_iter().chain(again).min()
    }

    /// How often stations of a port were forgotten, as they may be elsewhere now.
    #[must_use]
    pub fn flushed(&self) -> u64 {
        self.lock().flushed
    }

    /// A BPDU that is to leave, and by which port.
    pub fn next_out(&self) -> Option<(u16, Vec<u8>)> {
        self.lock().out.pop_front()
    }

    /// So many closings are in the chip, or it was not to be known.
    pub fn passed(&self, number: u64, yes: bool) {
        let mut inner = self.lock();
        if yes {
            inner.passed = inner.passed.max(number);
            self.carry_out(&mut inner, clock::now_ns());
        }
        drop(inner);
        self.wake.ring();
    }

    fn close(&self, inner: &mut Inner, port: u16) {
        if self.ports.set(port, PortState::Discarding) {
            inner.closed += 1;
            if inner.ask.is_none() {
                inner.passed = inner.closed;
            }
        }
    }

    /// A port closes at once, whatever waits; what was to become of it before is out of date. So what waits is one state, one
    /// flush and one word of BPDU guard for each port, and BPDUs of [`PATIENCE`].
    fn close_ahead(&self, inner: &mut Inner) {
        let (mut states, mut others) = (BTreeSet::new(), BTreeSet::new());
        let mut kept = VecDeque::new();
        for action in std::mem::take(&mut inner.todo).into_iter().rev() {
            let stays = match action {
                Action::State { port, state } => {
                    let last = states.insert(port);
                    if state == PortState::Discarding {
                        self.close(inner, port);
                    }
                    last && state != PortState::Discarding
                }
                Action::Flush { port } => others.insert((port, false)),
                Action::ErrDisabled { port } => others.insert((port, true)),
                Action::Send { .. } => true,
            };
            if stays {
                kept.push_front(action);
            }
        }
        inner.todo = kept;
    }

    /// Does what was said, up to what has to wait.
    fn carry_out(&self, inner: &mut Inner, now: u64) {
        while let Some(action) = inner.todo.pop_front() {
            let waits = inner.closed > inner.passed;
            match action {
                Action::State {
                    port,
                    state: PortState::Discarding,
                } => {
                    if !waits {
                        inner.since = now;
                    }
                    self.close(inner, port);
                }
                action if waits => {
                    inner.todo.push_front(action);
                    self.close_ahead(inner);
                    break;
                }
                Action::State { port, state } => {
                    self.ports.set(port, state);
                }
                Action::Flush { port } => {
                    self.ports.forget(port);
                    inner.flushed += 1;
                }
                Action::Send { port, frame } => {
                    if inner.out.len() < OUT {
                        inner.out.push_back((port, frame));
                    }
                }
                Action::ErrDisabled { port } => {
                    let name = self.name(inner, port).map(|n| n.to_string());
                    let name = name.unwrap_or_default();
                    tracing::warn!("{name}: a BPDU came, and BPDU guard takes it out of service");
                }
            }
        }
        if inner.closed <= inner.passed {
            return;
        }
        if now.saturating_sub(inner.since) > PATIENCE {
            inner.since = now;
            let before = inner.todo.len();
            inner.todo.retain(|a| !matches!(a, Action::Send { .. }));
            let lost = before - inner.todo.len();
            tracing::warn!(
                "spanning tree: a port's state is not in the chip yet, {lost} BPDUs are not sent"
            );
        }
        if inner.asked < inner.closed
            && inner.asked <= inner.passed
            && inner.ask.as_ref().is_some_and(|ask| ask(inner.closed))
        {
            inner.asked = inner.closed;
        }
    }

    /// Ports that BPDU guard has taken out of service.
    #[must_use]
    pub fn err_disabled(&self) -> Vec<u16> {
        let inner = self.lock();
        let ports = inner.bridge.as_ref().map(|b| b.show().ports);
        let out = ports.into_iter().flatten().filter(|p| p.err_disabled);
        out.map(|p| p.number).collect()
    }

    /// How it is.
    #[must_use]
    pub fn view(&self) -> Option<tree::View> {
        let inner = self.lock();
        let b = inner.bridge.as_ref()?;
        let v = b.show();
        let set = b.config();
        let now = clock::now_ns();
        let left = |n: &u16| {
            let until = inner.out_until.get(n)?;
            u32::try_from(until.saturating_sub(now).div_ceil(1_000_000_000)).ok()
        };
        let port = |p: &tandem_rstp::PortView| {
            Some(tree::PortView {
                name: self.name(&inner, p.number)?,
                number: p.number,
                role: match p.role {
                    Role::Root => tree::Role::Root,
                    Role::Designated => tree::Role::Designated,
                    Role::Alternate => tree::Role::Alternate,
                    Role::Backup => tree::Role::Backup,
                    Role::Disabled => tree::Role::Disabled,
                },
                state: match p.state {
                    PortState::Discarding => tree::State::Discarding,
                    PortState::Learning => tree::State::Learning,
                    PortState::Forwarding => tree::State::Forwarding,
                },
                cost: p.cost,
                priority: p.id.priority(),
                edge: p.edge,
                point_to_point: p.point_to_point,
                old_neighbour: p.stp_neighbour,
                err_disabled: p.err_disabled,
                recovers_in: left(&p.number),
            })
        };
        Some(tree::View {
            bridge: (v.id.priority(), v.id.mac()),
            root: (v.root.priority(), v.root.mac()),
            cost: v.cost,
            root_port: v.root_port.and_then(|n| self.name(&inner, n)),
            root_times: [v.hello, v.max_age, v.forward_delay],
            times: [set.hello, set.max_age, set.forward_delay].map(u16::from),
            ports: v.ports.iter().filter_map(port).collect(),
        })
    }
}

#[cfg(test)]
mod tests;

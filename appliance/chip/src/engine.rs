// SPDX-License-Identifier: Apache-2.0
//! The engine: steps, and their way back when one of them is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_swconfig::channel;
use tandem_swconfig::probe::Prober;
use tandem_swconfig::snooping::{Protocol, View};
use tandem_swconfig::{Config, Engine, Kind, Link, Name, Platform, Station, Switchport, routing};
use tandem_swstack::tree::Tree;
use tandem_vlans::{Database, Port, Switch, group_of_port};

use crate::acl::{self, Rules};
use crate::channels;
use crate::check::check;
use crate::devices::Devices;
use crate::snoop::{self, Snoop};
use crate::steps::{Neighbour, Says, Stack, Step, mode, steps};
use crate::taps::Taps;

/// The front panel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    /// The switch's MAC: its VLAN interfaces have it.
    pub mac: [u8; 6],
    /// Number, name, MAC and Mb/s of each port.
    pub ports: Vec<(u16, String, [u8; 6], u32)>,
}

impl Board {
    /// The database that it begins with: every port in VLAN 1.
    #[must_use]
    pub fn database(&self) -> Database {
        let mut d = Database::new(self.mac);
        for (number, name, mac, _) in &self.ports {
            let port = Port {
                name: name.clone(),
                mac: *mac,
                mtu: 1500,
                up: true,
                mode: mode(&Switchport::default()),
            };
            if let Err(e) = d.set_port(*number, port) {
                tracing::error!("{name}: {e}");
            }
        }
        d
    }

    /// Ports and their Mb/s.
    fn speeds(&self) -> impl Iterator<Item = (Name, u32)> {
        self.ports
            .iter()
            .filter_map(|p| Some((self.name(p.0)?, p.3)))
    }

    pub(crate) fn name(&self, number: u16) -> Option<Name> {
        let port = self.ports.iter().find(|p| p.0 == number);
        let port = port.map(|port| Name {
            kind: Kind::of_speed(port.3),
            number,
        });
        port.or_else(|| channels::name(number))
    }
}

/// How a port is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// Its number.
    pub port: u16,
    /// Whether its cable has a signal.
    pub carrier: bool,
    /// Mb/s; 0: not known.
    pub speed: u32,
    /// Frames and octets in, frames and octets out.
    pub counters: [u64; 4],
}

/// What the engine asks of those who have the chip.
pub trait Chip: Send + Sync {
    /// Waits until all that was said is in the chip, or has its reason: what the chip has refused, and why. None: it is
    /// not known, for there is no chip, or it does not answer.
    fn settle(&self) -> Option<BTreeMap<String, String>>;

    /// How its ports are.
    fn ports(&self) -> Vec<PortState>;

    /// How many packets the rules of ports have met: by the port, whether it is of what leaves, and the rule's place.
    fn matches(&self) -> BTreeMap<(u16, bool, u16), u64> {
        BTreeMap::new()
    }

    /// What policers have let pass and dropped, by their numbers.
    fn policed(&self) -> BTreeMap<u32, [u64; 2]> {
        BTreeMap::new()
    }

    /// As [`Engine::platform`].
    ///
    /// # Errors
    /// It does not answer, or knows nothing of that.
    fn platform(&self, what: &Platform) -> Result<Vec<Vec<String>>, String>;
}

/// The reason of what is refused for want of another object.
const FOLLOWS: &str = "what it refers to is not in hardware";

/// What people call an object that the chip refuses.
fn called(object: &str) -> &str {
    const WORDS: [(&str, &str); 7] = [
        ("Rule ", "a rule of an access list"),
        ("AclTable ", "an access list"),
        ("AclBind ", "an access list"),
        ("AclRange ", "a range of ports"),
        ("Policer ", "a policer"),
        ("Mirror ", "a mirror"),
        ("Lag ", "a port-channel"),
    ];
    let words = WORDS.iter().find(|(kind, _)| object.starts_with(kind));
    words.map_or(object, |(_, words)| words)
}

/// Engine `chip`.
pub struct ChipEngine {
    board: Board,
    switch: Switch,
    /// Of who carries something out, for as long as that takes.
    stack: Mutex<Box<dyn Stack>>,
    /// The same for who looks.
    says: Box<dyn Says>,
    taps: Arc<Taps>,
    tree: Arc<Tree>,
    /// Of ports, while LLDP runs.
    devices: Arc<Devices>,
    snoop: Arc<Snoop>,
    /// None before the core runs.
    chip: Option<Box<dyn Chip>>,
    stays: Mutex<Arc<Stays>>,
}

/// What is carried out, as far as who looks has to know; exchanged as a whole.
#[derive(Debug, Default)]
struct Stays {
    /// Loopbacks that there are.
    loopbacks: Vec<Name>,
    /// Rules that are set.
    rules: Rules,
}

impl ChipEngine {
    /// With nothing set. `switch` is of [`Board::database`].
    #[must_use]
    pub fn new(board: Board, switch: Switch, stack: Box<dyn Stack>, taps: Arc<Taps>) -> ChipEngine {
        let tree = crate::tree::tree(&board, switch.clone(), taps.bell());
        let snoop = Snoop::new(&board, switch.clone(), taps.bell());
        ChipEngine {
            tree: Arc::new(tree),
            devices: Arc::new(Devices::new(taps.bell())),
            snoop: Arc::new(snoop),
            board,
            switch,
            says: stack.says(),
            stack: Mutex::new(stack),
            taps,
            chip: None,
            stays: Mutex::default(),
        }
    }

    fn stack(&self) -> MutexGuard<'_, Box<dyn Stack>> {
        self.stack.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stays(&self) -> Arc<Stays> {
        let stays = self.stays.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&stays)
    }

    /// The spanning tree, for who has its links and BPDUs.
    #[must_use]
    pub fn tree(&self) -> Arc<Tree> {
        Arc::clone(&self.tree)
    }

    /// The devices of ports, for who moves their frames.
    #[must_use]
    pub fn devices(&self) -> Arc<Devices> {
        Arc::clone(&self.devices)
    }

    /// IGMP and MLD snooping, for who has the messages.
    #[must_use]
    pub fn snoop(&self) -> Arc<Snoop> {
        Arc::clone(&self.snoop)
    }

    /// Before the core begins: what an engine of before has left is taken over where it is still wanted, and goes where it
    /// is not; then all of the configuration is carried out.
    ///
    /// # Errors
    /// As [`Engine::apply`].
    pub fn restore(&mut self, kept: Vec<(u16, OwnedFd)>, now: &Config) -> Result<(), String> {
        for (vid, fd) in kept {
            if !self.taps.adopt(vid, fd) {
                self.taps.remove(vid);
            }
        }
        // also of those that an earlier attempt, which was refused, has taken over
        for (vid, _) in self.taps.list() {
            let name = Name {
                kind: Kind::Vlan,
                number: vid,
            };
            if !now.interfaces.contains_key(&name) {
                self.taps.remove(vid);
            }
        }
        let mut stack = self.stack();
        stack.forward(now.routing)?;
        let wanted: BTreeSet<_> = now.routes.iter().map(|r| (r.to, r.distance)).collect();
        for (to, distance) in stack.routes()? {
            if !wanted.contains(&(to, distance)) {
                stack.route(to, distance, &BTreeSet::new())?;
            }
        }
        let wanted = tandem_swstack::neighbours(now);
        for (at, address) in stack.fixed()? {
            if !wanted.contains_key(&(at, address)) {
                stack.neighbour(at, address, None)?;
            }
        }
        drop(stack);
        self.apply(&Config::default(), now)
    }

    /// The core runs: from here on a refusal of the chip undoes what was asked for.
    pub fn set_chip(&mut self, chip: Box<dyn Chip>) {
        self.chip = Some(chip);
    }

    /// Takes steps: how many were begun, and why it was not all of them.
    fn take(&self, stack: &mut dyn Stack, all: &[Step]) -> Result<(), (usize, String)> {
        // what has waited for room before says nothing of these
        let before = self.chip.as_ref().and_then(|chip| chip.settle());
        for (n, step) in all.iter().enumerate() {
            step.take(&self.switch, &self.tree, stack)
                .map_err(|why| (n + 1, why))?;
        }
        // where it is not known what has waited before, nothing tells that from what is refused now
        let (Some(chip), Some(before)) = (&self.chip, before) else {
            return Ok(());
        };
        let refused = chip.settle().unwrap_or_default();
        let new = refused.iter().filter(|(o, _)| !before.contains_key(*o));
        // what is refused for want of another one says less than that one's reason
        if let Some((what, why)) = new.min_by_key(|(_, why)| why.as_str() == FOLLOWS) {
            let what = called(what);
            return Err((all.len(), format!("the chip refuses {what}: {why}")));
        }
        Ok(())
    }

    /// Snoops as the second one wants it, if that is another one.
    fn set_snooping(&self, [was, now]: &[snoop::Wanted; 2]) {
        if was != now {
            self.snoop.configure(now);
        }
    }

    /// Static routes and neighbours that the kernel has dropped with a device or an address come back, and routes that
    /// waited for a gateway are tried again.
    fn again(&self, stack: &mut dyn Stack, now: &Config) {
        for step in steps(&Config::default(), &acl::without_monitors(now)) {
            if let Step::Route(..) | Step::Neighbour(..) = step
                && let Err(why) = step.take(&self.switch, &self.tree, stack)
            {
                tracing::warn!("static route or neighbour: {why}");
            }
        }
    }
}

impl Engine for ChipEngine {
    fn name(&self) -> &'static str {
        "chip"
    }

    fn ports(&self) -> Vec<Name> {
        let all = self.board.ports.iter();
        all.filter_map(|p| self.board.name(p.0)).collect()
    }

    fn called(&self) -> Vec<(Name, String)> {
        let all = self.board.ports.iter();
        all.filter_map(|p| Some((self.board.name(p.0)?, p.1.clone())))
            .collect()
    }

    fn apply(&self, was: &Config, now: &Config) -> Result<(), String> {
        let ports = self.ports();
        check(now, &ports)?;
        let speeds: Vec<(Name, u32)> = self.board.speeds().collect();
        let [was_set, now_set] = [was, now].map(acl::without_monitors);
        let pair = [&*was_set, &*now_set].map(|c| acl::rules(c, &speeds, self.board.mac));
        acl::check(now, &pair[1])?;
        let mut rules = pair.clone();
        let mut all = steps(&was_set, &now_set);
        let lists = Step::Rules(Box::new(pair));
        all.splice(..0, Some(lists).filter(Step::is_change));
        if now.services.lldp {
            self.devices.make(&self.board)?;
        }
        let snooped = [was, now].map(|c| snoop::wanted(c, self.board.mac));
        if all.is_empty() {
            self.set_snooping(&snooped);
            if !now.services.lldp {
                self.devices.remove();
            }
            return Ok(());
        }
        let mut stack = self.stack();
        let mut done = self.take(&mut **stack, &all);
        let stays = match &mut done {
            Ok(()) => {
                rules.swap(0, 1);
                // nobody refuses it, so it comes when all else is there
                self.set_snooping(&snooped);
                // who was a member behind a port has not said that it is behind the port-channel
                let regrouped =
                    |s: &Step| matches!(s, Step::Port(_, p) if p[0].channel != p[1].channel);
                if all.iter().any(regrouped) {
                    self.snoop.restart();
                }
                now
            }
            Err((begun, why)) => {
                for step in all.iter().take(*begun).rev() {
                    if let Err(more) = step.back().take(&self.switch, &self.tree, &mut **stack) {
                        tracing::error!("on the way back: {more}");
                        // who is told that it is refused takes it that all is as it was
                        why.push_str(&format!("; and what was before is not back: {more}"));
                    }
                }
                was
            }
        };
        if all.iter().any(|s| matches!(s, Step::Interface(..))) {
            self.again(&mut **stack, stays);
        }
        if !stays.services.lldp {
            self.devices.remove();
        }
        let [rules, _] = rules;
        let names = stays.interfaces.keys();
        let loopbacks = names.filter(|n| n.kind == Kind::Loopback);
        let stays = Stays {
            loopbacks: loopbacks.copied().collect(),
            rules,
        };
        *self.stays.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(stays);
        // carriers follow what was changed of ports and VLANs
        self.taps.touch();
        done.map_err(|(_, why)| why)
    }

    fn links(&self) -> Vec<Link> {
        let mut all = Vec::new();
        let states = self.chip.as_ref().map_or_else(Vec::new, |c| c.ports());
        let out = self.tree.err_disabled();
        for (number, platform, mac, speed) in &self.board.ports {
            let state = states.iter().find(|s| s.port == *number);
            let state = state.copied().unwrap_or_default();
            all.extend(self.board.name(*number).map(|name| Link {
                name,
                linux: platform.clone(),
                mac: *mac,
                carrier: state.carrier && !out.contains(number),
                speed: if state.speed == 0 {
                    *speed
                } else {
                    state.speed
                },
                counters: state.counters,
            }));
        }
        let groups: Vec<(u16, Vec<u16>)> = self.switch.ask(|d| {
            let groups = d.ports().keys().filter_map(|p| group_of_port(*p));
            groups.map(|n| (n, d.group(n).collect())).collect()
        });
        for (n, members) in groups {
            let of = |l: &&Link| members.contains(&l.name.number);
            let of: Vec<&Link> = all.iter().filter(|l| l.name.is_port()).filter(of).collect();
            let out = out.contains(&channels::number(&channel::name(n)));
            all.push(channels::link(n, self.board.mac, &of, out));
        }
        let counters = self.says.counters();
        for (vid, _) in self.taps.list() {
            let linux = format!("vlan{vid}");
            all.push(Link {
                name: Name {
                    kind: Kind::Vlan,
                    number: vid,
                },
                counters: counters.get(&linux).copied().unwrap_or_default(),
                linux,
                mac: self.board.mac,
                carrier: self.switch.ask(|d| d.is_alive(vid)) == Some(true),
                speed: 0,
            });
        }
        all.extend(self.stays().loopbacks.iter().map(|name| Link {
            name: *name,
            linux: "lo".into(),
            mac: [0; 6],
            carrier: true,
            speed: 0,
            counters: [0; 4],
        }));
        all
    }

    fn stations(&self) -> Vec<Station> {
        let station = |(vlan, mac, port), fixed| Station {
            vlan,
            mac,
            fixed,
            port: self.board.name(port),
        };
        let own = |vlan, mac| Station {
            vlan,
            mac,
            fixed: true,
            port: None,
        };
        let mut all: Vec<Station> = self.switch.ask(|d| {
            let learned = d.stations().map(|s| station(s, false));
            learned.chain(d.fixed().map(|s| station(s, true))).collect()
        });
        let taps = self.taps.list();
        all.extend(taps.iter().map(|(vid, _)| own(*vid, self.board.mac)));
        all.sort();
        all
    }

    fn matches(&self) -> BTreeMap<(bool, String, u32), u64> {
        let met = self.chip.as_ref().map(|c| c.matches()).unwrap_or_default();
        let mut all = BTreeMap::new();
        for ((port, out), rules) in &self.stays().rules.ports {
            for (at, rule) in (1u16..).zip(rules) {
                let n = met.get(&(*port, *out, at)).copied().unwrap_or(0);
                for line in rule.of.iter().filter(|_| n > 0) {
                    *all.entry(line.clone()).or_default() += n;
                }
            }
        }
        all
    }

    fn policed(&self) -> BTreeMap<(Name, String), [u64; 2]> {
        let counts = self.chip.as_ref().map(|c| c.policed()).unwrap_or_default();
        let of = |(index, (port, what)): (&u32, &(u16, String))| {
            let name = self.board.name(*port)?;
            Some(((name, what.clone()), *counts.get(index)?))
        };
        self.stays().rules.limits.iter().filter_map(of).collect()
    }

    fn snooping(&self, of: Protocol) -> Option<View> {
        Some(self.snoop.view(of))
    }

    fn spanning_tree(&self) -> Option<tandem_swconfig::tree::View> {
        self.tree.view()
    }

    fn forget_stations(&self, vlan: Option<u16>, port: Option<&Name>) -> Result<(), String> {
        self.switch
            .change(|d| d.forget_stations(vlan, port.map(channels::number)));
        Ok(())
    }

    fn protocols(&self, what: routing::Ask) -> Result<String, String> {
        self.says.ask(what)
    }

    fn learned(&self) -> Vec<routing::Learned> {
        self.says.learned()
    }

    fn neighbours(&self) -> Vec<Neighbour> {
        self.says.neighbours()
    }

    fn forget_neighbours(&self) -> Result<(), String> {
        self.stack().forget_neighbours()
    }

    fn prober(&self, source: Option<Ipv4Addr>) -> Result<Box<dyn Prober>, String> {
        self.says.prober(source)
    }

    fn notes(&self) -> Vec<String> {
        self.stack().notes()
    }

    fn platform(&self, what: &Platform) -> Result<Vec<Vec<String>>, String> {
        match &self.chip {
            Some(chip) => chip.platform(what),
            None => Err("The chip is not attached yet".into()),
        }
    }
}

#[cfg(test)]
mod tests;

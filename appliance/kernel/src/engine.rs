// SPDX-License-Identifier: Apache-2.0
//! The engine: steps, and their way back when one of them is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_linux::netlink::Membership;
use tandem_swconfig::acl::Groups;
use tandem_swconfig::monitor::Storm;
use tandem_swconfig::probe::Prober;
use tandem_swconfig::{
    Config, Engine, Interface, Kind, Link, Name, Net, Platform, Station, Via, routing,
};
use tandem_swfrr::Line;
use tandem_swstack::tree::{self, Tree};
use tandem_swstack::{Beside, Device, Neighbour, RouteKey, Wanted};

use crate::drift::drift;
use crate::plan::{Board, Plan, plan};
use crate::steps::{At, Step, steps};

/// How a netdev is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Netdev {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Has it carrier?
    pub carrier: bool,
}

/// A station of the bridge's table: VLAN, MAC, set by hand, behind which port.
pub type Known = (u16, [u8; 6], bool, u16);

/// What the engine needs of the kernel. What is asked for and is so already is no error: a way back may meet it.
pub trait Kernel: Send {
    /// Puts somebody into VLANs, or takes it out.
    ///
    /// # Errors
    /// One line, here and below.
    fn members(&mut self, at: At, vids: (u16, u16), of: Option<Membership>) -> Result<(), String>;

    /// A port's administrative state.
    ///
    /// # Errors
    /// As above.
    fn up(&mut self, port: u16, up: bool) -> Result<(), String>;

    /// A port's MTU.
    ///
    /// # Errors
    /// As above.
    fn mtu(&mut self, port: u16, mtu: u32) -> Result<(), String>;

    /// The bridge's ageing time, seconds.
    ///
    /// # Errors
    /// As above.
    fn aging(&mut self, seconds: u32) -> Result<(), String>;

    /// A station set by hand at a port; or no more.
    ///
    /// # Errors
    /// As above.
    fn station(&mut self, key: (u16, [u8; 6]), port: u16, on: bool) -> Result<(), String>;

    /// Makes a VLAN's device, down and without addresses, or deletes it.
    ///
    /// # Errors
    /// As above.
    fn device(&mut self, vid: u16, on: bool) -> Result<(), String>;

    /// Changes what differs of a device.
    ///
    /// # Errors
    /// As above.
    fn change(&mut self, device: Device, was: &Wanted, now: &Wanted) -> Result<(), String>;

    /// Whether it routes.
    ///
    /// # Errors
    /// As above.
    fn forward(&mut self, on: bool) -> Result<(), String>;

    /// A static route; with no next hop it goes.
    ///
    /// # Errors
    /// As above.
    fn route(&mut self, to: Net<IpAddr>, distance: u8, via: &BTreeSet<Via>) -> Result<(), String>;

    /// Static routes that are there.
    ///
    /// # Errors
    /// As above.
    fn routes(&mut self) -> Result<Vec<RouteKey>, String>;

    /// Makes the bridge if there is none, and takes ports into it that are in none. True: it was made.
    ///
    /// # Errors
    /// As above.
    fn begin(&mut self) -> Result<bool, String>;

    /// As it is; of loopbacks, those of `wanted`.
    ///
    /// # Errors
    /// As above.
    fn read(&self, wanted: &Plan) -> Result<Plan, String>;

    /// Netdevs by name.
    ///
    /// # Errors
    /// As above.
    fn netdevs(&self) -> Result<BTreeMap<String, Netdev>, String>;

    /// Stations behind ports.
    ///
    /// # Errors
    /// As above.
    fn known(&self) -> Result<Vec<Known>, String>;

    /// Forgets such stations.
    ///
    /// # Errors
    /// As above.
    fn forget(&mut self, all: &[Known]) -> Result<(), String>;

    /// Makes routing protocols be so: all of it, or as they were.
    ///
    /// # Errors
    /// As above.
    fn protocols(&mut self, now: &[Line]) -> Result<(), String>;

    /// Makes the spanning tree be so; without one all ports forward, and BPDUs are frames like others.
    ///
    /// # Errors
    /// As above.
    fn tree(&mut self, wanted: &tree::Wanted) -> Result<(), String>;

    /// The spanning tree, if there may be one.
    fn spanning_tree(&self) -> Option<Arc<Tree>> {
        None
    }

    /// Who stands beside: FRR, neighbours, those who ask other hosts.
    fn beside(&self) -> Beside {
        Beside::default()
    }

    /// Packets and octets in, packets and octets out, of all devices by name.
    fn counters(&self) -> BTreeMap<String, [u64; 4]>;
}

/// How a port of the chip is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// Its number.
    pub port: u16,
    /// Mb/s; 0: not known.
    pub speed: u32,
    /// Frames and octets in, frames and octets out.
    pub counters: [u64; 4],
}

/// What is asked of those below the kernel.
pub trait Below: Send + Sync {
    /// How the chip's ports are.
    fn ports(&self) -> Vec<PortState>;

    /// As [`Engine::platform`].
    ///
    /// # Errors
    /// It does not answer, or knows nothing of that.
    fn platform(&self, what: &Platform) -> Result<Vec<Vec<String>>, String>;
}

/// What was carried out when the engine begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Was<'a> {
    /// This, and nothing else: what is otherwise others have changed.
    Said(&'a Config),
    /// Nobody knows: all is made as it is to be.
    Unknown,
}

/// Is told before a change, with nothing, and after it, with what is carried out then.
pub type Record = Box<dyn FnMut(Option<&Config>) + Send>;

/// Engine `kernel`.
pub struct KernelEngine {
    board: Board,
    /// Of who carries something out, for as long as that takes.
    kernel: Mutex<Box<dyn Kernel>>,
    /// Of who looks: it changes nothing.
    looks: Mutex<Box<dyn Kernel>>,
    below: Box<dyn Below>,
    record: Mutex<Record>,
    /// As it is carried out.
    plan: Mutex<Arc<Plan>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KernelEngine {
    /// Before anything is carried out: [`KernelEngine::restore`] comes next. `looks` is the same kernel, for who looks while
    /// something is carried out.
    #[must_use]
    pub fn new(
        board: Board,
        [kernel, looks]: [Box<dyn Kernel>; 2],
        below: Box<dyn Below>,
        record: Record,
    ) -> KernelEngine {
        KernelEngine {
            board,
            kernel: Mutex::new(kernel),
            looks: Mutex::new(looks),
            below,
            record: Mutex::new(record),
            plan: Mutex::default(),
        }
    }

    /// Begins: ports that are in no bridge come into this one, and are as out of their box. Of the rest what differs between
    /// what was carried out and what is to be is changed, and what is not there is made.
    ///
    /// # Errors
    /// As [`Engine::apply`].
    pub fn restore(&mut self, was: Was<'_>, now: &Config) -> Result<(), String> {
        let names = self.board.names();
        check(now, &names)?;
        let wanted = plan(now, &names);
        let said = match was {
            Was::Said(config) => Some(plan(config, &names)),
            Was::Unknown => None,
        };
        // loopbacks can be told only by what was put there, or is to be
        let mut looked = wanted.clone();
        looked
            .devices
            .extend(said.iter().flat_map(|p| p.devices.clone()));
        let mut kernel = lock(&self.kernel);
        let before = kernel.read(&looked)?;
        let new = kernel.begin()?;
        let is = kernel.read(&looked)?;
        drop(kernel);
        let mut from = match said {
            Some(said) if !new => begin_with(said, &before, &is, &wanted),
            _ => is,
        };
        if wanted.tree.tree.on {
            // this process has no tree yet, whatever another one has left
            from.tree = tree::Wanted::default();
        }
        let was = match was {
            Was::Said(config) if !new => Some(config),
            _ => None,
        };
        self.go((&from, was), (wanted, now))
    }

    /// From one plan to another, each with its configuration, if that is known.
    fn go(
        &self,
        (was, before): (&Plan, Option<&Config>),
        (now, config): (Plan, &Config),
    ) -> Result<(), String> {
        let all = steps(was, &now);
        if !all.is_empty() {
            lock(&self.record)(None);
        }
        let mut kernel = lock(&self.kernel);
        let mut done = Ok(());
        let mut stays = before;
        for (n, step) in all.iter().enumerate() {
            if let Err(mut why) = step.take(&mut **kernel) {
                for step in all.iter().take(n + 1).rev() {
                    if let Err(more) = step.back().take(&mut **kernel) {
                        tracing::error!("on the way back: {more}");
                        // who is told that it is refused takes it that all is as it was
                        why.push_str(&format!("; and what was before is not back: {more}"));
                        stays = None;
                    }
                }
                done = Err(why);
                break;
            }
        }
        let moved = all.iter().any(|s| matches!(s, Step::Device(..)));
        let plan = match &done {
            Ok(()) => {
                stays = Some(config);
                Arc::new(now)
            }
            Err(_) => Arc::new(was.clone()),
        };
        *lock(&self.plan) = Arc::clone(&plan);
        lock(&self.record)(stays);
        if moved {
            routes_again(&mut **kernel, &plan);
        }
        done
    }

    /// FRR and the others are asked without a lock: who waits for them holds nobody up.
    fn beside(&self) -> Beside {
        lock(&self.looks).beside()
    }

    fn plan(&self) -> Arc<Plan> {
        Arc::clone(&lock(&self.plan))
    }

    fn drift(&self) -> Result<Vec<Vec<String>>, String> {
        let plan = self.plan();
        let is = lock(&self.looks).read(&plan)?;
        Ok(drift(&self.board, &plan, &is))
    }
}

/// Static routes that the kernel has dropped with a device or an address come back, and those that waited for a gateway
/// are tried again, as are those of several ways, of which one may be missing. The others that are there stay as they are.
fn routes_again(kernel: &mut dyn Kernel, plan: &Plan) {
    let there: BTreeSet<RouteKey> = match kernel.routes() {
        Ok(all) => all.into_iter().collect(),
        Err(e) => return tracing::warn!("static routes: {e}"),
    };
    for ((to, distance), via) in &plan.routes {
        let whole = via.len() == 1 && there.contains(&(*to, *distance));
        if !whole && let Err(why) = kernel.route(*to, *distance, via) {
            tracing::warn!("static route: {why}");
        }
    }
}

/// What is changed from: what was carried out, but for what is not there (any more). What others have changed of the rest
/// is not in it, so that it stays.
fn begin_with(mut said: Plan, before: &Plan, is: &Plan, wanted: &Plan) -> Plan {
    for (number, port) in &is.ports {
        if !before.ports.contains_key(number) {
            // out of its box
            said.ports.insert(*number, port.clone());
            said.stations.retain(|_, at| at != number);
        }
    }
    said.ports.retain(|n, _| is.ports.contains_key(n));
    said.devices.retain(|d, set| match (d, is.devices.get(d)) {
        (Device::Loopback(_), Some(there)) => {
            set.addresses.clone_from(&there.addresses);
            true
        }
        (_, there) => there.is_some(),
    });
    said.routes.retain(|key, _| is.routes.contains_key(key));
    // this process has told them nothing yet, and looks after what it has told alone
    said.protocols.clear();
    // a device that was never said, and is there, is as it is
    for (device, set) in &is.devices {
        if wanted.devices.contains_key(device) {
            said.devices.entry(*device).or_insert_with(|| set.clone());
        }
    }
    said
}

/// What this engine can't carry out.
fn check(now: &Config, ports: &[Name]) -> Result<(), String> {
    tandem_swstack::check(now, ports, "kernel")?;
    let not = |what: &str| Err(format!("engine kernel has no {what} yet: engine chip has"));
    let any = |f: &dyn Fn(&Interface) -> bool| now.interfaces.values().any(f);
    tree::check(now, ports)?;
    if now.interfaces.keys().any(|n| n.kind == Kind::PortChannel) {
        return not("port-channels");
    }
    if !now.neighbours.is_empty() {
        return not("neighbours set by hand");
    }
    if now.igmp.on || now.mld.on {
        return not("snooping that is configured");
    }
    if any(&|i| i.groups != Groups::default()) {
        return not("access lists at interfaces");
    }
    if !now.sessions.is_empty() {
        return not("monitor sessions");
    }
    if any(&|i| i.storm != Storm::default()) {
        return not("storm control");
    }
    if any(&|i| i.policy.is_some()) {
        return not("policies at interfaces");
    }
    Ok(())
}

impl Engine for KernelEngine {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn ports(&self) -> Vec<Name> {
        self.board.names()
    }

    fn called(&self) -> Vec<(Name, String)> {
        let all = self.board.ports.iter();
        all.filter_map(|p| Some((self.board.name(p.0)?, p.1.clone())))
            .collect()
    }

    fn apply(&self, was: &Config, now: &Config) -> Result<(), String> {
        let names = self.board.names();
        check(now, &names)?;
        let (from, wanted) = (plan(was, &names), plan(now, &names));
        self.go((&from, Some(was)), (wanted, now))
    }

    fn links(&self) -> Vec<Link> {
        let netdevs = lock(&self.looks).netdevs();
        let netdevs = netdevs.unwrap_or_else(|e| {
            tracing::warn!("{e}");
            BTreeMap::new()
        });
        let states = self.below.ports();
        let tree = lock(&self.looks).spanning_tree();
        let out = tree.map(|t| t.err_disabled()).unwrap_or_default();
        let mut all = Vec::new();
        for (number, netdev, mac, speed) in &self.board.ports {
            let state = states.iter().find(|s| s.port == *number);
            let state = state.copied().unwrap_or_default();
            let is = netdevs.get(netdev);
            all.extend(self.board.name(*number).map(|name| Link {
                name,
                linux: netdev.clone(),
                mac: is.map_or(*mac, |n| n.mac),
                carrier: is.is_some_and(|n| n.carrier) && !out.contains(number),
                speed: match state.speed {
                    0 => *speed,
                    speed => speed,
                },
                counters: state.counters,
            }));
        }
        let counters = lock(&self.looks).counters();
        for device in self.plan().devices.keys() {
            all.push(match device {
                Device::Vlan(vid) => {
                    let linux = format!("vlan{vid}");
                    let is = netdevs.get(&linux).cloned().unwrap_or_default();
                    Link {
                        name: Name {
                            kind: Kind::Vlan,
                            number: *vid,
                        },
                        counters: counters.get(&linux).copied().unwrap_or_default(),
                        linux,
                        mac: is.mac,
                        carrier: is.carrier,
                        speed: 0,
                    }
                }
                Device::Loopback(number) => Link {
                    name: Name {
                        kind: Kind::Loopback,
                        number: *number,
                    },
                    linux: "lo".into(),
                    mac: [0; 6],
                    carrier: true,
                    speed: 0,
                    counters: [0; 4],
                },
            });
        }
        all
    }

    fn stations(&self) -> Vec<Station> {
        let known = lock(&self.looks).known();
        let known = known.unwrap_or_else(|e| {
            tracing::warn!("{e}");
            Vec::new()
        });
        let behind = known.into_iter().map(|(vlan, mac, fixed, port)| Station {
            vlan,
            mac,
            fixed,
            port: self.board.name(port),
        });
        let netdevs = lock(&self.looks).netdevs().unwrap_or_default();
        let plan = self.plan();
        let own = plan.devices.keys().filter_map(|d| match d {
            Device::Vlan(vlan) => Some(Station {
                vlan: *vlan,
                mac: netdevs.get(&format!("vlan{vlan}"))?.mac,
                fixed: true,
                port: None,
            }),
            Device::Loopback(_) => None,
        });
        let mut all: Vec<Station> = behind.chain(own).collect();
        all.sort();
        all
    }

    fn forget_stations(&self, vlan: Option<u16>, port: Option<&Name>) -> Result<(), String> {
        let mut kernel = lock(&self.kernel);
        let mut all = kernel.known()?;
        all.retain(|(vid, _, fixed, at)| {
            let here = vlan.is_none_or(|v| v == *vid) && port.is_none_or(|p| p.number == *at);
            here && !fixed
        });
        kernel.forget(&all)
    }

    fn spanning_tree(&self) -> Option<tandem_swconfig::tree::View> {
        let tree = lock(&self.looks).spanning_tree()?;
        tree.view()
    }

    fn protocols(&self, what: routing::Ask) -> Result<String, String> {
        self.beside().ask(what)
    }

    fn learned(&self) -> Vec<routing::Learned> {
        self.beside().learned()
    }

    fn neighbours(&self) -> Vec<Neighbour> {
        self.beside().neighbours()
    }

    fn forget_neighbours(&self) -> Result<(), String> {
        self.beside().forget_neighbours()
    }

    fn prober(&self, source: Option<Ipv4Addr>) -> Result<Box<dyn Prober>, String> {
        self.beside().prober(source)
    }

    fn notes(&self) -> Vec<String> {
        self.beside().notes()
    }

    fn platform(&self, what: &Platform) -> Result<Vec<Vec<String>>, String> {
        match what {
            Platform::Drift => self.drift(),
            what => self.below.platform(what),
        }
    }
}

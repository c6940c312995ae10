// SPDX-License-Identifier: Apache-2.0
//! What differs between two configurations, as steps that can be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use tandem_swconfig::probe::Prober;
use tandem_swconfig::routing::{Ask, Learned};
use tandem_swconfig::{Config, Interface, Kind, Mode, Net, Switchport, Via, Vlan, channel};
use tandem_swfrr::Line;
use tandem_swstack::tree::{self, Tree};
use tandem_swstack::{NeighbourKey, RouteKey, aging, keys, neighbours, routes};
use tandem_vlans::{
    Database, Mode as PortMode, Port, Refusal, State, Switch, TapMaker, VlanSet, port_of_group,
};

use crate::acl::Rules;
use crate::channels;

pub use tandem_swstack::{Device, Neighbour, Wanted};

/// The kernel's IP stack: what the engine needs of it.
pub trait Stack: TapMaker + Send {
    /// Makes a device be as wanted, whatever is there.
    ///
    /// # Errors
    /// One line.
    fn set(&mut self, device: Device, wanted: &Wanted) -> Result<(), String>;

    /// Whether it routes.
    ///
    /// # Errors
    /// One line.
    fn forward(&mut self, on: bool) -> Result<(), String>;

    /// Makes a static route be so; with no next hop it goes. One whose gateway is on no link waits for it, and that is no
    /// error.
    ///
    /// # Errors
    /// One line.
    fn route(&mut self, to: Net<IpAddr>, distance: u8, via: &BTreeSet<Via>) -> Result<(), String>;

    /// Static routes that are there and were set by an engine.
    ///
    /// # Errors
    /// One line.
    fn routes(&mut self) -> Result<Vec<(Net<IpAddr>, u8)>, String>;

    /// A neighbour set by hand; without a MAC it goes.
    ///
    /// # Errors
    /// One line.
    fn neighbour(
        &mut self,
        at: Device,
        address: Ipv4Addr,
        mac: Option<[u8; 6]>,
    ) -> Result<(), String>;

    /// Neighbours that were set by hand.
    ///
    /// # Errors
    /// One line.
    fn fixed(&mut self) -> Result<Vec<NeighbourKey>, String> {
        Ok(Vec::new())
    }

    /// Makes routing protocols be so: all of it, or as they were.
    ///
    /// # Errors
    /// One line.
    fn protocols(&mut self, now: &[Line]) -> Result<(), String> {
        let _ = now;
        Ok(())
    }

    /// Forgets those that are not set by hand.
    ///
    /// # Errors
    /// One line.
    fn forget_neighbours(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// What has to be said of the last [`Stack::protocols`], once.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Who says how it is, whatever is being changed.
    fn says(&self) -> Box<dyn Says>;
}

/// What is known of the kernel's IP stack: who asks waits for no change.
pub trait Says: Send + Sync {
    /// The routes that others than an engine have put there.
    fn learned(&self) -> Vec<Learned> {
        Vec::new()
    }

    /// What routing protocols say.
    ///
    /// # Errors
    /// They do not answer.
    fn ask(&self, what: Ask) -> Result<String, String> {
        let _ = what;
        Err("There are no routing protocols".into())
    }

    /// Neighbours: where, which address, and whose it is if that is known.
    fn neighbours(&self) -> Vec<Neighbour> {
        Vec::new()
    }

    /// Who asks other hosts.
    ///
    /// # Errors
    /// There is none.
    fn prober(&self, source: Option<Ipv4Addr>) -> Result<Box<dyn Prober>, String> {
        let _ = source;
        Err("Nobody may ask here".into())
    }

    /// Packets and octets in, packets and octets out, of all devices by name.
    fn counters(&self) -> BTreeMap<String, [u64; 4]>;
}

/// One change; the first of each pair is what was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Rules of ports, by access lists.
    Rules(Box<[Rules; 2]>),
    Vlan(u16, [Option<Vlan>; 2]),
    Port(u16, Box<[Interface; 2]>),
    /// A port-channel, by its number.
    Group(u16, Box<[Option<Interface>; 2]>),
    TagNative([bool; 2]),
    Tree(Box<[tree::Wanted; 2]>),
    Aging([u32; 2]),
    /// A station set by hand, and its port.
    Fixed((u16, [u8; 6]), [Option<u16>; 2]),
    Interface(Device, Box<[Option<Interface>; 2]>),
    Routing([bool; 2]),
    Route(RouteKey, [BTreeSet<Via>; 2]),
    /// One set by hand, by its MAC.
    Neighbour(NeighbourKey, [Option<[u8; 6]>; 2]),
    Protocols([Vec<Line>; 2]),
}

/// What is to be done, in order: what goes of the IP stack, the database, what comes of the IP stack.
pub(crate) fn steps(was: &Config, now: &Config) -> Vec<Step> {
    let (mut gone, mut database, mut comes) = (Vec::new(), Vec::new(), Vec::new());
    // port-channels come before their ports (their names are in front), and those that go are left by them before
    let mut groups = Vec::new();
    for vid in keys(&was.vlans, &now.vlans) {
        let of = |c: &Config| c.vlans.get(&vid).cloned();
        database.push(Step::Vlan(vid, [of(was), of(now)]));
    }
    for name in keys(&was.interfaces, &now.interfaces) {
        match Device::of(&name) {
            Some(device) => {
                // what routing protocols have of it is a step of their own
                let of = |c: &Config| {
                    let set = c.interfaces.get(&name).cloned();
                    set.map(|set| Interface {
                        ospf: BTreeSet::new(),
                        ..set
                    })
                };
                let pair = Box::new([of(was), of(now)]);
                match pair[1] {
                    None => gone.push(Step::Interface(device, pair)),
                    Some(_) => comes.push(Step::Interface(device, pair)),
                }
            }
            None if name.kind == Kind::PortChannel => {
                let of = |c: &Config| c.interfaces.get(&name).cloned();
                let pair = Box::new([of(was), of(now)]);
                let list = match pair[1] {
                    None => &mut groups,
                    Some(_) => &mut database,
                };
                list.push(Step::Group(name.number, pair));
            }
            None => {
                let pair = [was, now].map(|c| channels::interface(c, &name));
                database.push(Step::Port(name.number, Box::new(pair)));
            }
        }
    }
    database.push(Step::Tree(Box::new([
        tree::Wanted::of(was, channels::number),
        tree::Wanted::of(now, channels::number),
    ])));
    database.push(Step::TagNative([was.tag_native, now.tag_native]));
    database.push(Step::Aging([aging(was), aging(now)]));
    for key in keys(&was.stations, &now.stations) {
        let of = |c: &Config| c.stations.get(&key).map(channels::number);
        database.push(Step::Fixed(key, [of(was), of(now)]));
    }
    database.extend(groups);
    comes.push(Step::Routing([was.routing, now.routing]));
    let (before, after) = (routes(was), routes(now));
    for key in keys(&before, &after) {
        let of = |all: &BTreeMap<RouteKey, BTreeSet<Via>>| all.get(&key).cloned();
        let pair = [&before, &after].map(|all| of(all).unwrap_or_default());
        comes.push(Step::Route(key, pair));
    }
    let (before, after) = (neighbours(was), neighbours(now));
    for key in keys(&before, &after) {
        let step = Step::Neighbour(key, [&before, &after].map(|all| all.get(&key).copied()));
        // it goes before its device does, and on the way back comes after it
        match after.contains_key(&key) {
            true => comes.push(step),
            false => gone.insert(0, step),
        }
    }
    comes.push(Step::Protocols([was, now].map(tandem_swfrr::lines)));
    let all = gone.into_iter().chain(database).chain(comes);
    all.filter(Step::is_change).collect()
}

fn differ<T: PartialEq>([a, b]: &[T; 2]) -> bool {
    a != b
}

fn turn<T: Clone>([a, b]: &[T; 2]) -> [T; 2] {
    [b.clone(), a.clone()]
}

impl Step {
    pub fn is_change(&self) -> bool {
        match self {
            Step::Rules(p) => differ(p),
            Step::Vlan(_, p) => differ(p),
            Step::Port(_, p) => differ(p),
            Step::Group(_, p) => differ(p),
            Step::TagNative(p) | Step::Routing(p) => differ(p),
            Step::Tree(p) => differ(p),
            Step::Aging(p) => differ(p),
            Step::Fixed(_, p) => differ(p),
            Step::Interface(_, p) => differ(p),
            Step::Route(_, p) => differ(p),
            Step::Neighbour(_, p) => differ(p),
            Step::Protocols(p) => differ(p),
        }
    }

    /// The way back.
    pub fn back(&self) -> Step {
        match self {
            Step::Rules(p) => Step::Rules(Box::new(turn(p))),
            Step::Vlan(vid, p) => Step::Vlan(*vid, turn(p)),
            Step::Port(n, p) => Step::Port(*n, Box::new(turn(p))),
            Step::Group(n, p) => Step::Group(*n, Box::new(turn(p))),
            Step::TagNative(p) => Step::TagNative(turn(p)),
            Step::Tree(p) => Step::Tree(Box::new(turn(p))),
            Step::Aging(p) => Step::Aging(turn(p)),
            Step::Fixed(k, p) => Step::Fixed(*k, turn(p)),
            Step::Interface(d, p) => Step::Interface(*d, Box::new(turn(p))),
            Step::Routing(p) => Step::Routing(turn(p)),
            Step::Route(k, p) => Step::Route(*k, turn(p)),
            Step::Neighbour(k, p) => Step::Neighbour(*k, turn(p)),
            Step::Protocols(p) => Step::Protocols(turn(p)),
        }
    }

    /// Does it. What it has done of it when it fails is undone by its way back.
    pub fn take(&self, switch: &Switch, tree: &Tree, stack: &mut dyn Stack) -> Result<(), String> {
        let change = |f: &dyn Fn(&mut Database) -> Result<(), Refusal>| {
            switch.change(f).map_err(|e| e.to_string())
        };
        match self {
            Step::Rules(pair) => {
                switch.change(|d| pair[1].set(&pair[0], d));
                Ok(())
            }
            Step::Vlan(vid, [_, Some(vlan)]) => {
                change(&|d| d.set_vlan(*vid, of_database(*vid, vlan)))
            }
            // VLAN 1 stays, and is as it was out of the box
            Step::Vlan(1, [_, None]) => {
                change(&|d| d.set_vlan(1, of_database(1, &Vlan::default())))
            }
            Step::Vlan(vid, [_, None]) => change(&|d| match d.vlans().contains_key(vid) {
                true => d.remove_vlan(*vid),
                false => Ok(()),
            }),
            Step::Port(number, pair) => {
                let alone = pair[0].channel.is_some() && pair[1].channel.is_none();
                // asked before: the tree locks itself, and then the database
                let closed = alone && tree.is_on();
                change(&|d| {
                    // a port of the bridge that is new to its spanning tree begins closed
                    if closed {
                        d.set_state(*number, State::Blocking);
                    }
                    set_port(d, *number, &pair[1])
                })
            }
            Step::Group(number, pair) => {
                let closed = tree.is_on();
                change(&|d| {
                    let port = port_of_group(*number);
                    match &pair[1] {
                        Some(of) => {
                            if !d.ports().contains_key(&port) && closed {
                                d.set_state(port, State::Blocking);
                            }
                            set_group(d, *number, of)
                        }
                        // on the way back of one that was refused it may not be there
                        None if d.ports().contains_key(&port) => d.remove_port(port),
                        None => Ok(()),
                    }
                })
            }
            Step::Tree(pair) => tree.configure(&pair[1]),
            Step::TagNative([_, on]) => {
                switch.change(|d| d.set_tag_native(*on));
                Ok(())
            }
            Step::Aging([_, seconds]) => {
                switch.change(|d| d.set_ageing(*seconds));
                Ok(())
            }
            Step::Fixed((vid, mac), [_, port]) => change(&|d| d.fix(*vid, *mac, *port)),
            Step::Interface(device, pair) => interface(*device, pair[1].as_ref(), switch, stack),
            Step::Routing([_, on]) => stack.forward(*on),
            Step::Route((to, distance), [_, via]) => stack.route(*to, *distance, via),
            Step::Neighbour((at, address), [_, mac]) => stack.neighbour(*at, *address, *mac),
            Step::Protocols([_, now]) => stack.protocols(now),
        }
    }
}

fn interface(
    device: Device,
    now: Option<&Interface>,
    switch: &Switch,
    stack: &mut dyn Stack,
) -> Result<(), String> {
    let Some(now) = now else {
        return match device {
            Device::Vlan(vid) => switch.unroute(vid, stack).map_err(|e| e.to_string()),
            Device::Loopback(_) => stack.set(device, &Wanted::default()),
        };
    };
    if let Device::Vlan(vid) = device {
        switch.route(vid, stack)?;
    }
    stack.set(device, &Wanted::of(now))
}

fn of_database(vid: u16, vlan: &Vlan) -> tandem_vlans::Vlan {
    let name = match (vid, &vlan.name) {
        (_, Some(name)) => name.clone(),
        (1, None) => "default".into(),
        (_, None) => format!("VLAN{vid:04}"),
    };
    tandem_vlans::Vlan {
        name,
        active: !vlan.suspended,
    }
}

/// What a port's VLANs are.
pub(crate) fn mode(port: &Switchport) -> PortMode {
    match port.mode {
        Mode::Access => PortMode::Access(port.access),
        Mode::Trunk => PortMode::Trunk {
            native: port.native,
            allowed: match &port.allowed {
                None => VlanSet::all(),
                Some(some) => some.iter().copied().collect(),
            },
        },
    }
}

/// A port as an interface says.
fn as_set(of: &Interface, port: Port) -> Port {
    Port {
        mtu: of.mtu.unwrap_or(1500),
        up: !of.shutdown,
        mode: mode(of.switchport.as_ref().unwrap_or(&Switchport::default())),
        ..port
    }
}

fn set_port(d: &mut Database, number: u16, of: &Interface) -> Result<(), Refusal> {
    let there = d.ports().get(&number).cloned();
    let port = there.ok_or(Refusal::NoSuchPort(number))?;
    d.set_port(number, as_set(of, port))?;
    d.join(number, of.channel.map(|c| c.number))
}

fn set_group(d: &mut Database, number: u16, of: &Interface) -> Result<(), Refusal> {
    let port = Port {
        name: channel::name(number).to_string(),
        mac: d.mac(),
        mtu: 1500,
        up: true,
        mode: PortMode::Access(1),
    };
    d.set_port(port_of_group(number), as_set(of, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_swconfig::Name;
    use tandem_swstack::NEVER;

    #[test]
    fn no_ageing_is_none_and_not_at_once() {
        let never = Config {
            aging: Some(0),
            ..Config::default()
        };
        let out_of_the_box = Config::default();
        let all = steps(&out_of_the_box, &never);
        assert_eq!(all, [Step::Aging([300, NEVER])]);
        let said = Config {
            aging: Some(300),
            ..Config::default()
        };
        assert_eq!(steps(&out_of_the_box, &said), []);
    }

    #[test]
    fn without_a_mode_nothing_of_the_tree_is_done() {
        let port = Name {
            kind: Kind::Gigabit,
            number: 1,
        };
        let mut set = Interface::new(&port);
        set.tree.edge = true;
        let with = |on| {
            let mut config = Config::default();
            config.interfaces.insert(port, set.clone());
            config.tree.priority = Some(0);
            config.tree.on = on;
            config
        };
        let trees = |steps: Vec<Step>| {
            let all = steps.into_iter();
            all.filter(|s| matches!(s, Step::Tree(..))).count()
        };
        assert_eq!(trees(steps(&Config::default(), &with(false))), 0);
        assert_eq!(trees(steps(&with(false), &with(true))), 1);
    }

    #[test]
    fn what_goes_of_the_ip_stack_goes_first() {
        let vlan = |number| Name {
            kind: Kind::Vlan,
            number,
        };
        let of = |number| Config {
            interfaces: BTreeMap::from([(vlan(number), Interface::default())]),
            vlans: BTreeMap::from([(2, Vlan::default())]),
            ..Config::default()
        };
        let without = Config {
            vlans: BTreeMap::new(),
            ..of(3)
        };
        let device = |step: &Step| match step {
            Step::Interface(Device::Vlan(vid), _) => *vid,
            _ => 0,
        };
        let order: Vec<u16> = steps(&of(4), &without).iter().map(device).collect();
        assert_eq!(order, [4, 0, 3]);
    }
}

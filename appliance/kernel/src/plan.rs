// SPDX-License-Identifier: Apache-2.0
//! What a configuration comes to in the kernel.

use std::collections::{BTreeMap, BTreeSet};

use tandem_linux::netlink::Membership;
use tandem_swconfig::{Config, Kind, Mode, Name, Switchport, Via};
use tandem_swfrr::Line;
use tandem_swstack::tree;
use tandem_swstack::{Device, RouteKey, Wanted};

/// The front panel: number, netdev, MAC and Mb/s of each port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    /// Its ports.
    pub ports: Vec<(u16, String, [u8; 6], u32)>,
}

impl Board {
    /// A port's name, by its speed.
    pub(crate) fn name(&self, number: u16) -> Option<Name> {
        let port = self.ports.iter().find(|p| p.0 == number)?;
        Some(Name {
            kind: Kind::of_speed(port.3),
            number,
        })
    }

    /// The switch's MAC: that of its first port.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        self.ports.first().map_or([2, 0, 0, 0, 0, 1], |p| p.2)
    }

    /// What the ports are called.
    #[must_use]
    pub fn names(&self) -> Vec<Name> {
        self.ports.iter().filter_map(|p| self.name(p.0)).collect()
    }

    /// What Linux calls it.
    pub(crate) fn netdev(&self, number: u16) -> Option<&str> {
        let port = self.ports.iter().find(|p| p.0 == number)?;
        Some(&port.1)
    }
}

/// A port of the bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// `ip link set … up`.
    pub up: bool,
    /// Octets of the payload.
    pub mtu: u32,
    /// Its VLANs.
    pub vlans: BTreeMap<u16, Membership>,
}

/// All of it: as it is wanted, or as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Ports that are in the bridge.
    pub ports: BTreeMap<u16, Port>,
    /// VLANs that the bridge itself is in: what is for the switch goes up there.
    pub own: BTreeMap<u16, Membership>,
    /// Seconds.
    pub aging: u32,
    /// Stations set by hand, with their port.
    pub stations: BTreeMap<(u16, [u8; 6]), u16>,
    /// VLAN devices and loopbacks.
    pub devices: BTreeMap<Device, Wanted>,
    /// Forwarding.
    pub routing: bool,
    /// Static routes; as they are, without their ways.
    pub routes: BTreeMap<RouteKey, BTreeSet<Via>>,
    /// What routing protocols are told; as it is: nothing, FRR itself knows.
    pub protocols: Vec<Line>,
    /// The spanning tree; as it is: whether a port is closed by one.
    pub tree: tree::Wanted,
}

/// The VLANs of a port: those that there are, and are not suspended.
fn vlans(port: &Switchport, active: &BTreeSet<u16>, tag_native: bool) -> BTreeMap<u16, Membership> {
    let bare = Membership {
        pvid: true,
        untagged: true,
    };
    match port.mode {
        Mode::Access => {
            let own = active.get(&port.access);
            own.map(|vid| (*vid, bare)).into_iter().collect()
        }
        Mode::Trunk => {
            let allowed = |vid: &&u16| port.allowed.as_ref().is_none_or(|some| some.contains(vid));
            let how = |vid: &u16| match *vid == port.native && !tag_native {
                true => (*vid, bare),
                false => (*vid, Membership::default()),
            };
            active.iter().filter(allowed).map(how).collect()
        }
    }
}

/// What a configuration comes to with these ports.
#[must_use]
pub fn plan(config: &Config, ports: &[Name]) -> Plan {
    let set = config.vlans.iter();
    let mut active: BTreeSet<u16> = set.filter(|(_, v)| !v.suspended).map(|(n, _)| *n).collect();
    active.insert(1);
    let port = |name: &Name| {
        let set = config.interface(name);
        let switched = set.switchport.clone().unwrap_or_default();
        let port = Port {
            up: !set.shutdown,
            mtu: set.mtu.unwrap_or(1500),
            vlans: vlans(&switched, &active, config.tag_native),
        };
        (name.number, port)
    };
    let ports: BTreeMap<u16, Port> = ports.iter().map(port).collect();
    let devices: BTreeMap<Device, Wanted> = config
        .interfaces
        .iter()
        .filter_map(|(name, set)| Some((Device::of(name)?, Wanted::of(set))))
        .collect();
    let own = devices.keys().filter_map(|d| match d {
        Device::Vlan(vid) => active.get(vid).map(|v| (*v, Membership::default())),
        Device::Loopback(_) => None,
    });
    // a station of a VLAN that its port is not in waits for that
    let stations = config.stations.iter().filter_map(|(key, name)| {
        let port = ports.get(&name.number)?;
        let there = port.vlans.contains_key(&key.0);
        there.then_some((*key, name.number))
    });
    Plan {
        own: own.collect(),
        stations: stations.collect(),
        aging: tandem_swstack::aging(config),
        routing: config.routing,
        routes: tandem_swstack::routes(config),
        protocols: tandem_swfrr::lines(config),
        tree: tree::Wanted::of(config, |name| name.number),
        ports,
        devices,
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What both engines have in common: what no engine can carry out, the kernel's addresses, routes and sysctls, and what
//! stands beside those: routing protocols by FRR, neighbours, `ping`, the spanning tree.
//!
//! ```text
//!   engine chip ───┐
//!                  ├──► check: refused in words, before anything is done
//!   engine kernel ─┘──► Ip: addresses of vlanN and lo, static routes, forwarding ──► kernel
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use tandem_swconfig::{Config, Interface, Kind, Name, Net, Via};

mod beside;
mod check;
mod ip;
mod learned;
mod neighbours;
mod probes;
pub mod tree;

pub use beside::Beside;
pub use check::{addresses, check, network};
pub use ip::{Ip, PROTOCOL, counters, ipv6, setting};
pub use neighbours::{Neighbour, fixed as fixed_neighbours};
pub use probes::Probes;

/// Seconds: stations that are not heard are not forgotten in anybody's time.
pub const NEVER: u32 = 1_000_000_000;

/// Where addresses stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// The device of a VLAN, `vlanN`.
    Vlan(u16),
    /// A loopback, by its number.
    Loopback(u16),
}

impl Device {
    /// Where an interface's addresses stand, if it may have some.
    #[must_use]
    pub fn of(name: &Name) -> Option<Device> {
        match name.kind {
            Kind::Vlan => Some(Device::Vlan(name.number)),
            Kind::Loopback => Some(Device::Loopback(name.number)),
            _ => None,
        }
    }
}

/// How such a device is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Not shut down.
    pub up: bool,
    /// Octets of the payload.
    pub mtu: u32,
    /// The first one first.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl Wanted {
    /// As an interface says.
    #[must_use]
    pub fn of(interface: &Interface) -> Wanted {
        Wanted {
            up: !interface.shutdown,
            mtu: interface.mtu.unwrap_or(1500),
            addresses: addresses(interface),
        }
    }
}

/// Where a route leads, and how far it is away: its key.
pub type RouteKey = (Net<IpAddr>, u8);

/// The static routes, the ways of each.
#[must_use]
pub fn routes(config: &Config) -> BTreeMap<RouteKey, BTreeSet<Via>> {
    let mut all: BTreeMap<RouteKey, BTreeSet<Via>> = BTreeMap::new();
    for r in &config.routes {
        all.entry((r.to, r.distance))
            .or_default()
            .insert(r.via.clone());
    }
    all
}

/// A neighbour set by hand: on which device, and its address.
pub type NeighbourKey = (Device, Ipv4Addr);

/// Neighbours set by hand, on the VLAN interfaces whose network they are of; others wait for one.
#[must_use]
pub fn neighbours(config: &Config) -> BTreeMap<NeighbourKey, [u8; 6]> {
    let mut all = BTreeMap::new();
    for (name, of) in config.interfaces.iter().filter(|(_, of)| !of.shutdown) {
        let Some(device @ Device::Vlan(_)) = Device::of(name) else {
            continue;
        };
        let own = addresses(of);
        let nets: Vec<_> = own
            .iter()
            .filter_map(|(a, p)| network(*a, *p).ok())
            .collect();
        for (address, mac) in &config.neighbours {
            let ip = IpAddr::V4(*address);
            if nets.iter().any(|n| n.contains(&ip)) && own.iter().all(|(a, _)| *a != ip) {
                all.insert((device, *address), *mac);
            }
        }
    }
    all
}

/// The ageing time in seconds.
#[must_use]
pub fn aging(config: &Config) -> u32 {
    match config.aging {
        None => 300,
        // never, where kernel and store take it for at once
        Some(0) => NEVER,
        Some(seconds) => seconds,
    }
}

/// The keys of either.
pub fn keys<'a, K: Ord + Clone, V>(
    a: &'a BTreeMap<K, V>,
    b: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = K> {
    let all: BTreeSet<K> = a.keys().chain(b.keys()).cloned().collect();
    all.into_iter()
}

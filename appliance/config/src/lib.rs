// SPDX-License-Identifier: Apache-2.0
//! The configuration of a switch as data (seed 004, *Configuration management*): what is set, and by which engine it
//! is carried out.
//!
//! ```text
//!   console ──► Config (candidate) ──► Engine::apply(was, now) ──► VLAN database + kernel     (engine chip)
//!                  │                                            └► bridge, VLAN interfaces … (engine kernel)
//!                  └► running-config, startup-config
//! ```
//!
//! A [`Config`] says only what differs from a switch out of its box, and is the same whichever engine carries it out.
#![deny(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub mod acl;
pub mod channel;
pub mod monitor;
pub mod name;
pub mod policy;
pub mod probe;
pub mod routing;
pub mod services;
pub mod snooping;
pub mod tree;
pub mod users;

pub use name::{Kind, Name};

/// An address with the length of its network: `10.10.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Net<A> {
    /// As it was written, host bits included.
    pub address: A,
    /// Bits of the network.
    pub prefix: u8,
}

/// A VLAN of the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vlan {
    /// `name`; without one it is `VLAN0010`.
    pub name: Option<String>,
    /// `state suspend`: nothing is forwarded in it.
    pub suspended: bool,
}

/// `switchport mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// One VLAN, untagged.
    #[default]
    Access,
    /// The allowed VLANs, tagged, the native one untagged (unless `vlan dot1q tag native`).
    Trunk,
}

/// `switchport …` of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switchport {
    /// `switchport mode`.
    pub mode: Mode,
    /// `switchport access vlan`, 1 to 4094.
    pub access: u16,
    /// `switchport trunk native vlan`.
    pub native: u16,
    /// `switchport trunk allowed vlan`; `None`: all. An empty set is `none`.
    pub allowed: Option<BTreeSet<u16>>,
}

impl Default for Switchport {
    fn default() -> Switchport {
        Switchport {
            mode: Mode::Access,
            access: 1,
            native: 1,
            allowed: None,
        }
    }
}

/// What is set of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// `description`.
    pub description: Option<String>,
    /// `shutdown`.
    pub shutdown: bool,
    /// `mtu`, octets of the payload; `None`: 1500.
    pub mtu: Option<u32>,
    /// A switched port's, or port-channel's; `None`: `no switchport`, and always of VLAN and loopback interfaces.
    pub switchport: Option<Switchport>,
    /// `ip address`.
    pub ipv4: Option<Net<Ipv4Addr>>,
    /// `ip address … secondary`.
    pub secondary: BTreeSet<Net<Ipv4Addr>>,
    /// `ipv6 address`.
    pub ipv6: BTreeSet<Net<Ipv6Addr>>,
    /// `channel-group`, of ports alone: what [`Interface::follow`] names is as its port-channel's.
    pub channel: Option<channel::Channel>,
    /// `spanning-tree …`, of ports and port-channels.
    pub tree: tree::PortTree,
    /// `ip ospf …`, of routed interfaces alone.
    pub ospf: BTreeSet<routing::AtInterface>,
    /// `ip access-group`, `ipv6 traffic-filter`.
    pub groups: acl::Groups,
    /// `storm-control …`, of ports alone.
    pub storm: monitor::Storm,
    /// `service-policy input …`, of ports alone; one that is not there lets everything pass.
    pub policy: Option<String>,
    /// `ip helper-address`, of routed interfaces alone.
    pub helpers: BTreeSet<Ipv4Addr>,
}

impl Interface {
    /// As it is before anything was said of it.
    #[must_use]
    pub fn new(name: &Name) -> Interface {
        Interface {
            switchport: name.is_switched().then(Switchport::default),
            ..Interface::default()
        }
    }
}

/// Where a static route leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// A gateway.
    Gateway(IpAddr),
    /// `Null0`: packets are dropped.
    Null,
}

/// `ip route` or `ipv6 route`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The destination, without host bits.
    pub to: Net<IpAddr>,
    /// Its next hop.
    pub via: Via,
    /// The administrative distance, 1 to 255; 1 unless said.
    pub distance: u8,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `hostname`; `None`: `Switch`.
    pub hostname: Option<String>,
    /// VLANs beside 1, which is always there, active and called `default`; 1 is here only if something is set of it.
    pub vlans: BTreeMap<u16, Vlan>,
    /// Interfaces of which something is set; a VLAN interface, loopback or port-channel that is here exists.
    pub interfaces: BTreeMap<Name, Interface>,
    /// `ip routing`.
    pub routing: bool,
    /// Static routes.
    pub routes: BTreeSet<Route>,
    /// `vlan dot1q tag native`.
    pub tag_native: bool,
    /// `mac address-table aging-time`, seconds, 0: never; `None`: 300.
    pub aging: Option<u32>,
    /// `mac address-table static MAC vlan N interface I`.
    pub stations: BTreeMap<(u16, [u8; 6]), Name>,
    /// `arp A.B.C.D H.H.H arpa`.
    pub neighbours: BTreeMap<Ipv4Addr, [u8; 6]>,
    /// `spanning-tree …`.
    pub tree: tree::Tree,
    /// `ip igmp snooping …`.
    pub igmp: snooping::Snooping,
    /// `ipv6 mld snooping …`.
    pub mld: snooping::Snooping,
    /// Users, secrets, lines, banners.
    pub access: users::Access,
    /// `router …`: one of each protocol at most.
    pub routers: BTreeMap<routing::Router, BTreeSet<routing::Setting>>,
    /// Access lists of IPv4, by name or number.
    pub lists: BTreeMap<String, acl::List>,
    /// Access lists of IPv6.
    pub lists6: BTreeMap<String, acl::List>,
    /// `monitor session …`, by number.
    pub sessions: BTreeMap<u8, monitor::Session>,
    /// `class-map …`, by name.
    pub classes: BTreeMap<String, policy::Class>,
    /// `policy-map …`, by name.
    pub policies: BTreeMap<String, policy::Policy>,
    /// The log, the clock, NTP, SNMP.
    pub services: services::Services,
}

impl Config {
    /// What is set of IGMP or MLD snooping.
    #[must_use]
    pub fn snooping(&self, of: snooping::Protocol) -> &snooping::Snooping {
        match of {
            snooping::Protocol::Igmp => &self.igmp,
            snooping::Protocol::Mld => &self.mld,
        }
    }

    /// What is set of an interface, or how it is without that.
    #[must_use]
    pub fn interface(&self, name: &Name) -> Interface {
        self.interfaces
            .get(name)
            .cloned()
            .unwrap_or_else(|| Interface::new(name))
    }
}

/// How an interface is, for `show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Which one.
    pub name: Name,
    /// What Linux calls it, or the chip's platform where it has no interface of its own there; may be typed as well.
    pub linux: String,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Has it carrier, or is it a VLAN interface with a port that has.
    pub carrier: bool,
    /// Mb/s; 0: not known.
    pub speed: u32,
    /// Frames and octets in, frames and octets out.
    pub counters: [u64; 4],
}

/// A station of the MAC address table, for `show`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Station {
    /// Its VLAN.
    pub vlan: u16,
    /// Its address.
    pub mac: [u8; 6],
    /// Set by hand, or the switch itself.
    pub fixed: bool,
    /// Behind which port; `None`: the switch itself.
    pub port: Option<Name>,
}

/// What `show platform` asks: what lies below the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Platform {
    /// How full the chip's memories are.
    Resources,
    /// What floods have cost (seed 004, *Minimum Data Copy Optimization*).
    Replication,
    /// Why a route (`10.2.0.0/24`) is in the chip, or is not.
    Route(String),
    /// Why a station is.
    Mac([u8; 6]),
    /// Why a neighbour is.
    Neighbour(IpAddr),
    /// What others have changed of what the configuration says.
    Drift,
}

/// Who carries a configuration out, and says how things are.
///
/// One at a time changes something. Whoever looks, looks at any time: while something is carried out as well, and waits for
/// no more than what it asks, the kernel or the chip.
pub trait Engine: Send + Sync {
    /// `chip` or `kernel`.
    fn name(&self) -> &'static str;

    /// The ports that there are, whatever is set of them.
    fn ports(&self) -> Vec<Name>;

    /// What Linux calls ports, or the chip's platform: nobody is asked for it.
    fn called(&self) -> Vec<(Name, String)>;

    /// Carries out what differs, all of it or nothing.
    ///
    /// # Errors
    /// What was refused, by whom, and what to do, in one line; then everything is as `was` says.
    fn apply(&self, was: &Config, now: &Config) -> Result<(), String>;

    /// How interfaces are: ports, port-channels, VLAN interfaces, loopbacks.
    fn links(&self) -> Vec<Link>;

    /// The MAC address table.
    fn stations(&self) -> Vec<Station>;

    /// Forgets the learned stations of all VLANs, of one, of a port.
    ///
    /// # Errors
    /// As `apply`.
    fn forget_stations(&self, vlan: Option<u16>, port: Option<&Name>) -> Result<(), String>;

    /// How many packets the rules of access lists have met, by the list (of IPv6 or not) and the sequence number.
    fn matches(&self) -> BTreeMap<(bool, String, u32), u64> {
        BTreeMap::new()
    }

    /// What limits of ports have let pass, and dropped, in packets: by the port, and the class of its policy or the kind of
    /// its storm control.
    fn policed(&self) -> BTreeMap<(Name, String), [u64; 2]> {
        BTreeMap::new()
    }

    /// How the spanning tree is; `None`: there is none.
    fn spanning_tree(&self) -> Option<tree::View> {
        None
    }

    /// How IGMP or MLD snooping is; `None`: this engine does not snoop.
    fn snooping(&self, of: snooping::Protocol) -> Option<snooping::View> {
        let _ = of;
        None
    }

    /// What routing protocols say, as text in the form of `show`.
    ///
    /// # Errors
    /// There are none, or they do not answer.
    fn protocols(&self, what: routing::Ask) -> Result<String, String> {
        let _ = what;
        Err(format!("Engine {} has no routing protocols", self.name()))
    }

    /// The routes of protocols that are in the kernel.
    fn learned(&self) -> Vec<routing::Learned> {
        Vec::new()
    }

    /// The neighbours that are known: where, which address, and whose it is if that is known.
    fn neighbours(&self) -> Vec<(Name, IpAddr, Option<[u8; 6]>)> {
        Vec::new()
    }

    /// Forgets those that are not set by hand.
    ///
    /// # Errors
    /// As `apply`.
    fn forget_neighbours(&self) -> Result<(), String> {
        Err(format!("Engine {} knows of no neighbours", self.name()))
    }

    /// Who asks other hosts, from this address if it is said.
    ///
    /// # Errors
    /// There is none, or that is no address of this switch.
    fn prober(&self, source: Option<Ipv4Addr>) -> Result<Box<dyn probe::Prober>, String> {
        let _ = source;
        Err(format!("Engine {} asks nobody", self.name()))
    }

    /// What has to be said of what was carried out last, a line each; once.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What lies below: rows of a table, the first one its heads; or without heads, if there is an empty row first, what and how it is.
    ///
    /// # Errors
    /// Nothing lies below, or it does not answer.
    fn platform(&self, what: &Platform) -> Result<Vec<Vec<String>>, String> {
        let _ = what;
        Err(format!("Engine {} has no chip of its own", self.name()))
    }
}

// SPDX-License-Identifier: Apache-2.0
//! `router ospf|rip|bgp`: what is set of routing protocols, as a set of facts. FRR carries them out.

use std::collections::BTreeSet;
use std::mem::discriminant;
use std::net::Ipv4Addr;

use crate::{Name, Net};

/// A protocol; the order is that of a running-config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Router {
    /// OSPF, by the number of its process, which means nothing to others.
    Ospf(u16),
    /// RIP.
    Rip,
    /// BGP, by its AS number.
    Bgp(u32),
}

/// Whose routes are told to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Origin {
    Connected,
    Static,
    Rip,
    /// Of this process.
    Ospf(u16),
    /// Of this AS.
    Bgp(u32),
}

/// What kind of area one is that is no usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// `stub`, and with `no-summary` if so.
    Stub(bool),
    /// `nssa`, likewise.
    Nssa(bool),
}

/// What is set of a neighbour in BGP.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Peer {
    RemoteAs(u32),
    Description(String),
    Shutdown,
    Password(String),
    EbgpMultihop(u8),
    UpdateSource(Name),
    /// Keepalive and hold time, seconds.
    Timers(u16, u16),
    /// Told IPv4 routes, or not: where that is not what is so without it.
    Activate(bool),
    NextHopSelf,
    ReflectorClient,
}

/// One thing that is set of a protocol; the order is that of a running-config.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// `router-id`, `bgp router-id`.
    RouterId(Ipv4Addr),
    /// `log-adjacency-changes`, `bgp log-neighbor-changes`.
    LogChanges,
    /// `no bgp default ipv4-unicast`.
    NoDefaultUnicast,
    /// `version` of RIP.
    Version(u8),
    /// `area N stub|nssa`.
    Area(u32, Area),
    /// `redistribute`, with its metric.
    Redistribute(Origin, Option<u32>),
    /// `passive-interface default`.
    PassiveDefault,
    /// `passive-interface`, or `no passive-interface` where that is the default.
    Passive(Name, bool),
    /// `network`; in OSPF with its area.
    Network(Net<Ipv4Addr>, Option<u32>),
    /// `neighbor`.
    Neighbor(Ipv4Addr, Peer),
    /// `maximum-paths`.
    MaximumPaths(u8),
    /// `default-information originate`, and `always` if so.
    DefaultInformation(bool),
}

impl Setting {
    /// Does one take the place of the other?
    #[must_use]
    pub fn is_of(&self, other: &Setting) -> bool {
        use Setting::{Area, Neighbor, Network, Passive, Redistribute};
        discriminant(self) == discriminant(other)
            && match (self, other) {
                (Area(a, _), Area(b, _)) => a == b,
                // whatever the number of the process: there is one
                (Redistribute(a, _), Redistribute(b, _)) => discriminant(a) == discriminant(b),
                (Passive(a, _), Passive(b, _)) => a == b,
                (Network(a, _), Network(b, _)) => a == b,
                (Neighbor(a, p), Neighbor(b, q)) => a == b && discriminant(p) == discriminant(q),
                _ => true,
            }
    }
}

/// One thing that is set of OSPF at an interface: `ip ospf …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AtInterface {
    /// `network point-to-point`.
    PointToPoint,
    /// `PROCESS area AREA`.
    Area(u16, u32),
    /// `cost`.
    Cost(u16),
    /// `hello-interval`, seconds.
    Hello(u16),
    /// `dead-interval`, seconds.
    Dead(u16),
    /// `priority`.
    Priority(u8),
}

/// Sets one thing, in the place of what it replaces.
pub fn set(all: &mut BTreeSet<Setting>, one: Setting) {
    all.retain(|s| !s.is_of(&one));
    all.insert(one);
}

/// The same of an interface.
pub fn set_at(all: &mut BTreeSet<AtInterface>, one: AtInterface) {
    all.retain(|s| discriminant(s) != discriminant(&one));
    all.insert(one);
}

/// What is asked of the protocols, for `show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Ask {
    Ospf,
    OspfNeighbours,
    OspfInterfaces,
    /// With the number of the process, which FRR does not know.
    OspfInterfacesBrief(u16),
    OspfDatabase(u16),
    Bgp,
    BgpSummary,
    BgpNeighbours,
    Rip,
    /// No question: sessions with this neighbour, or with all of them, begin anew.
    BgpAnew(Option<Ipv4Addr>),
    /// Neither: all that OSPF knows is learned again.
    OspfAnew,
}

/// A route that a protocol, or somebody else, has put into the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// Where it leads.
    pub to: Net<std::net::IpAddr>,
    /// As `show ip route` marks it: `O`, `O IA`, `B`, `R`.
    pub code: &'static str,
    /// Administrative distance and metric.
    pub distance: u8,
    /// The same.
    pub metric: u32,
    /// How long it is there, as it is shown; empty: not known.
    pub age: String,
    /// Gateways, and by which interface; a way without either is `Null0`'s.
    pub ways: Vec<(Option<std::net::IpAddr>, Option<Name>)>,
}

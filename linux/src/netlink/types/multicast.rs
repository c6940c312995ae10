//! Multicast of bridges.

use std::net::IpAddr;

/// `IFLA_BR_MCAST_*`: what decides who gets multicast. Times in 1/100 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BridgeMcast {
    /// `mcast_router`: 0 off, 1 by what it hears, 2 on.
    pub router: u8,
    /// The bridge itself is a querier.
    pub querier: bool,
    /// `mcast_igmp_version`: 2, 3.
    pub igmp: u8,
    /// `mcast_mld_version`: 1, 2.
    pub mld: u8,
    /// Snooping per VLAN.
    pub per_vlan: bool,
    /// How long another querier counts after its last query.
    pub querier_interval: u64,
    /// Between two queries of its own.
    pub query_interval: u64,
    /// How long members may take to answer.
    pub response_interval: u64,
    /// How long the other querier counts on, IPv4 and IPv6; none: there is no other.
    pub other: [Option<u64>; 2],
    /// The kernel tells of queriers (5.16).
    pub tells: bool,
    /// The address that IPv6 queries came from last; zero: none.
    pub address6: [u8; 16],
}

/// What one message says of a bridge's multicast groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mdb {
    /// The bridge.
    pub bridge: u32,
    /// Members of groups.
    pub entries: Vec<MdbEntry>,
    /// Ports to multicast routers.
    pub routers: Vec<RouterPort>,
}

/// A group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MdbGroup {
    /// Of IP packets.
    Ip(IpAddr),
    /// Of frames that are not IP.
    Mac([u8; 6]),
}

/// A member of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MdbEntry {
    /// The port, or the bridge itself.
    pub ifindex: u32,
    /// VLAN, 0 without.
    pub vlan: u16,
    /// Group.
    pub group: MdbGroup,
    /// One sender, or all.
    pub source: Option<IpAddr>,
    /// Of IGMP 3 and MLD 2: wants only the senders that are named (INCLUDE).
    pub mode: Option<bool>,
    /// Does not want this sender.
    pub blocked: bool,
}

/// A port to multicast routers; a notification says neither family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouterPort {
    /// The port.
    pub ifindex: u32,
    /// Of IPv4.
    pub v4: bool,
    /// Of IPv6.
    pub v6: bool,
}

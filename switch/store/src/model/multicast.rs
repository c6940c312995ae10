//! Multicast groups of bridges.

use std::net::IpAddr;

/// A querier of multicast groups, as the kernel's bridge sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Querier {
    /// There is none: the bridge floods.
    #[default]
    None,
    /// One may be there, or may be gone, or is not believed yet: only the kernel knows.
    Unsure,
    /// There is one: groups go to their members.
    There,
}

/// A multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupAddr {
    /// Of IP packets.
    Ip(IpAddr),
    /// Of frames that are not IP.
    Mac([u8; 6]),
}

impl std::fmt::Display for GroupAddr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GroupAddr::Ip(a) => a.fmt(f),
            GroupAddr::Mac([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
        }
    }
}

/// A member of a multicast group. Key: all but `include` and `blocked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MdbEntry {
    /// Bridge.
    pub bridge: u32,
    /// VLAN, 0 without filtering.
    pub vlan: u16,
    /// Group.
    pub group: GroupAddr,
    /// MDBA_MDB_EATTR_SOURCE
    pub source: Option<IpAddr>,
    /// The port, or the bridge itself.
    pub ifindex: u32,
    /// MDBA_MDB_EATTR_GROUP_MODE is INCLUDE: wants only the sources that have entries of their own.
    pub include: bool,
    /// MDB_FLAGS_BLOCKED: does not want this source.
    pub blocked: bool,
}

impl MdbEntry {
    /// Its key.
    pub fn key(&self) -> MdbKey {
        MdbKey {
            bridge: self.bridge,
            vlan: self.vlan,
            group: self.group,
            source: self.source,
            ifindex: self.ifindex,
        }
    }
}

/// Key of an [`MdbEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MdbKey {
    /// Bridge.
    pub bridge: u32,
    /// VLAN, 0 without filtering.
    pub vlan: u16,
    /// Group.
    pub group: GroupAddr,
    /// One source, or all.
    pub source: Option<IpAddr>,
    /// The port, or the bridge itself.
    pub ifindex: u32,
}

/// How a bridge that filters by VLAN snoops in one VLAN, whatever its `BridgeInfo` says for all of it. Key: `bridge`, `vlan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanSnooping {
    /// Bridge.
    pub bridge: u32,
    /// 1..=4094
    pub vlan: u16,
    /// Is there a querier of IGMP in this VLAN?
    pub querier4: Querier,
    /// The same of MLD.
    pub querier6: Querier,
}

/// A port behind which multicast routers are. Key: `bridge`, `ifindex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterPort {
    /// Bridge.
    pub bridge: u32,
    /// Port.
    pub ifindex: u32,
    /// Of IPv4.
    pub v4: bool,
    /// Of IPv6.
    pub v6: bool,
}

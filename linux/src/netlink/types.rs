//! What the kernel's tables hold, as plain structs.
//!
//! The numbers (table ids, scopes, flags, states) are the kernel's own, from `linux/rtnetlink.h`,
//! `linux/neighbour.h`, `linux/if_link.h`; constants for those that are used are in
//! [`super::consts`]. What is not decoded here does not matter for forwarding.

mod multicast;

use std::net::IpAddr;

use ipnet::IpNet;

pub use multicast::{BridgeMcast, Mdb, MdbEntry, MdbGroup, RouterPort};

/// Address family of a routing object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The kernel's number: `AF_INET` or `AF_INET6`.
    #[must_use]
    pub const fn raw(self) -> u8 {
        match self {
            Self::V4 => libc::AF_INET as u8,
            Self::V6 => libc::AF_INET6 as u8,
        }
    }

    /// The family of the kernel's number, if it is one of the two.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw as i32 {
            libc::AF_INET => Some(Self::V4),
            libc::AF_INET6 => Some(Self::V6),
            _ => None,
        }
    }

    /// The family of an address.
    #[must_use]
    pub const fn of(addr: &IpAddr) -> Self {
        match addr {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// What kind of device a link is (`IFLA_INFO_KIND`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkKind {
    /// A bridge, with what the switch needs to know of it.
    Bridge(BridgeInfo),
    /// TUN or TAP.
    Tun,
    /// A VLAN device (802.1Q or 802.1ad) on top of another.
    Vlan(VlanInfo),
    /// A VRF: its table (`IFLA_VRF_TABLE`).
    Vrf(u32),
    /// A bond of other devices.
    Bond(BondInfo),
    /// Any other kind; empty for a device without one (a physical NIC, loopback).
    Other(String),
}

/// `IFLA_VLAN_*` of a VLAN device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VlanInfo {
    /// VLAN id.
    pub id: u16,
    /// Protocol of the tag: 0x8100, 0x88a8.
    pub protocol: u16,
    /// `VLAN_FLAG_REORDER_HDR`: packets come up without their tag.
    pub reorder_hdr: bool,
    /// Packets leave with other priorities than 0.
    pub egress_qos: bool,
}

/// `IFLA_BOND_*` of a bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BondInfo {
    /// `BOND_MODE_*`: 0 balance-rr, 1 active-backup, 2 balance-xor, 3 broadcast, 4 802.3ad, 5 balance-tlb, 6 balance-alb.
    pub mode: u8,
    /// `BOND_XMIT_POLICY_*`: 0 layer2, 1 layer3+4, 2 layer2+3 …
    pub hash: u8,
    /// Frames that come in by a backup are taken.
    pub all_active: bool,
    /// Links are watched by ARP, or neighbour discovery, and by when members last sent and received anything.
    pub arp_monitor: bool,
}

/// `IFLA_BOND_SLAVE_*` of a device in a bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BondMember {
    /// It takes part (`BOND_STATE_ACTIVE`), as far as the bond's mode says.
    pub active: bool,
    /// The bond thinks that its link is up.
    pub up: bool,
}

/// `IFLA_BR_*` of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BridgeInfo {
    /// The bridge tells VLANs apart.
    pub vlan_filtering: bool,
    /// FDB ageing time in 1/100 s (USER_HZ), as the kernel counts it.
    pub ageing_time: u32,
    /// Forward delay in 1/100 s.
    pub forward_delay: u32,
    /// Spanning tree has told of a topology change: until it is over, the forward delay is the ageing time
    /// (net/bridge/br_private.h `hold_time`).
    pub topology_change: bool,
    /// IGMP and MLD snooping is on.
    pub mcast_snooping: bool,
    /// Queriers, versions and routers of IGMP and MLD.
    pub mcast: BridgeMcast,
    /// STP: 0 off, 1 kernel, 2 user space.
    pub stp_state: u32,
    /// Which of 01:80:c2:00:00:0X the bridge forwards (bit X).
    pub group_fwd_mask: u16,
    /// PVID that a port gets (only with `vlan_filtering`).
    pub default_pvid: u16,
    /// Tag protocol of its VLANs: 0x8100, 0x88a8; 0: not told.
    pub vlan_protocol: u16,
    /// Multiple spanning trees (`mst_enabled`).
    pub mst: bool,
    /// Frames to 01:80:c2:00:00:0X teach nothing (`no_linklocal_learn`).
    pub no_link_local_learning: bool,
    /// Stations that it learns at most (`fdb_max_learned`); 0: no limit.
    pub max_learned: u32,
    /// Bridged frames pass the chains of the IP families, by this bridge's own switches.
    pub nf_call: NfCall,
}

/// Which bridged frames pass the IP families' firewall chains as well (br_netfilter).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NfCall {
    /// `nf_call_iptables`: IPv4.
    pub ip: bool,
    /// `nf_call_ip6tables`: IPv6.
    pub ip6: bool,
    /// `nf_call_arptables`: ARP.
    pub arp: bool,
}

/// VLANs of a bridge or of a port, neighbours in number and equal in all else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeVlan {
    /// First VLAN id.
    pub first: u16,
    /// Last one.
    pub last: u16,
    /// Untagged frames belong to it.
    pub pvid: bool,
    /// The tag is removed at egress.
    pub untagged: bool,
    /// STP state of the port in this VLAN, as in [`BridgePort`].
    pub state: u8,
    /// A setting that changes forwarding and is not one of the above, by `bridge vlan`'s name for it.
    pub other: Option<&'static str>,
}

/// What one message says of a device's VLANs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeVlans {
    /// The port, or the bridge itself.
    pub ifindex: u32,
    /// Never empty.
    pub vlans: Vec<BridgeVlan>,
}

/// `IFLA_BRPORT_*` of a device that is a bridge's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgePort {
    /// STP state: 0 disabled, 1 listening, 2 learning, 3 forwarding, 4 blocking.
    pub state: u8,
    /// The kernel learns source addresses here.
    pub learning: bool,
    /// Unknown unicast is flooded to here.
    pub unicast_flood: bool,
    /// Multicast without an MDB entry is flooded to here.
    pub mcast_flood: bool,
    /// Broadcast is flooded to here.
    pub bcast_flood: bool,
    /// A frame may leave by the port it came from.
    pub hairpin: bool,
    /// Isolated ports do not talk to each other.
    pub isolated: bool,
    /// Only known source addresses may speak (802.1X style).
    pub locked: bool,
    /// The bridge answers ARP and ND for hosts it knows.
    pub neigh_suppress: bool,
    /// `mcast_router`: 0 no router is behind it, 1 by what it hears, 2 there is one, 3 there is one for a while.
    pub mcast_router: u8,
    /// The first setting, if any, that changes forwarding and that is not one of the above, by
    /// `bridge link`'s name for it (guard, proxy_arp, mcast_to_unicast …).
    pub other: Option<&'static str>,
}

impl Default for BridgePort {
    /// A port as `ip link set … master` makes it, before STP let it forward.
    fn default() -> Self {
        Self {
            state: 0,
            learning: true,
            unicast_flood: true,
            mcast_flood: true,
            bcast_flood: true,
            hairpin: false,
            isolated: false,
            locked: false,
            neigh_suppress: false,
            mcast_router: 1,
            other: None,
        }
    }
}

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Interface index.
    pub index: u32,
    /// Name, at most 15 bytes.
    pub name: String,
    /// Kind of device.
    pub kind: LinkKind,
    /// `IFF_*`.
    pub flags: u32,
    /// MTU in bytes.
    pub mtu: u32,
    /// MAC address, if the device has one of 6 bytes.
    pub mac: Option<[u8; 6]>,
    /// Index of the bridge, bond or VRF that the device belongs to; 0: none.
    pub master: u32,
    /// The kind of `master` (`IFLA_INFO_SLAVE_KIND`), as `bridge`; empty: none or not told.
    pub slave_kind: String,
    /// `IFLA_LINK`: the device beneath (VLAN, macvlan), the peer of a veth; 0: none.
    pub lower: u32,
    /// `lower` is an index of another namespace.
    pub lower_elsewhere: bool,
    /// RFC 2863 operational state (`IF_OPER_*`; 6 = up).
    pub operstate: u8,
    /// How many want every frame of the device (`IFLA_PROMISCUITY`): a sniffer, a device on top with a MAC of its
    /// own, `ip link set … promisc on`.
    pub promiscuity: u32,
    /// Bridge port settings, when `master` is a bridge.
    pub brport: Option<BridgePort>,
    /// Its part in a bond, when `master` is one.
    pub bond: Option<BondMember>,
}

impl Link {
    /// `IFF_UP`: the administrator wants it up.
    #[must_use]
    pub const fn admin_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }

    /// `IFF_LOWER_UP`: carrier.
    #[must_use]
    pub const fn carrier(&self) -> bool {
        self.flags & libc::IFF_LOWER_UP as u32 != 0
    }
}

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Addr {
    /// Interface index.
    pub ifindex: u32,
    /// The local address (on point-to-point links the near end).
    pub local: IpAddr,
    /// Prefix length.
    pub prefix_len: u8,
    /// The far end of a point-to-point address.
    pub peer: Option<IpAddr>,
    /// `IFA_F_*` (tentative, dadfailed, deprecated, secondary …).
    pub flags: u32,
    /// Scope (`RT_SCOPE_*`).
    pub scope: u8,
}

/// A neighbour (ARP or ND) entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Neigh {
    /// Interface index.
    pub ifindex: u32,
    /// The neighbour's address.
    pub addr: IpAddr,
    /// Its MAC address, when known.
    pub mac: Option<[u8; 6]>,
    /// `NUD_*`.
    pub state: u16,
    /// `NTF_*`.
    pub flags: u8,
    /// `NTF_EXT_*` (managed).
    pub ext_flags: u32,
}

impl Neigh {
    /// The kernel would send to `mac` now (`NUD_VALID`: all states in which the address may be used).
    #[must_use]
    pub const fn usable(&self) -> bool {
        const VALID: u16 = super::consts::NUD_PERMANENT
            | super::consts::NUD_NOARP
            | super::consts::NUD_REACHABLE
            | super::consts::NUD_PROBE
            | super::consts::NUD_STALE
            | super::consts::NUD_DELAY;
        self.state & VALID != 0 && self.mac.is_some()
    }
}

/// An entry of a bridge's forwarding database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FdbEntry {
    /// The port's interface index (the bridge's own, for an entry on the bridge itself).
    pub ifindex: u32,
    /// The bridge (`NDA_MASTER`); 0 for entries of the device itself (`self`), such as multicast filters.
    pub master: u32,
    /// MAC address.
    pub mac: [u8; 6],
    /// VLAN id; 0: none.
    pub vlan: u16,
    /// `NUD_*`: permanent = local, noarp = static, reachable and stale = dynamic.
    pub state: u16,
    /// `NTF_*` (self, master, ext_learned, sticky, offloaded …).
    pub flags: u8,
    /// `NTF_EXT_*` (locked).
    pub ext_flags: u32,
}

/// One way out of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RouteNexthop {
    /// Output interface; 0: none (blackhole …).
    pub ifindex: u32,
    /// Gateway; `None`: the destination is on the link. May be IPv6 for an IPv4 route (`RTA_VIA`).
    pub gateway: Option<IpAddr>,
    /// Weight, from 1 (the kernel's `rtnh_hops` + 1).
    pub weight: u16,
    /// `RTNH_F_*`: dead, linkdown, onlink, offload, trap.
    pub flags: u8,
    /// Packets get a header put on (MPLS, SRv6, tunnel).
    pub encap: bool,
}

/// The ways out of a route, without allocation for the usual single one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Nexthops {
    /// None (blackhole, unreachable, throw …).
    #[default]
    None,
    /// One.
    One(RouteNexthop),
    /// `RTA_MULTIPATH`.
    Many(Box<[RouteNexthop]>),
}

impl Nexthops {
    /// As a slice.
    #[must_use]
    pub fn as_slice(&self) -> &[RouteNexthop] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    /// Routing table.
    pub table: u32,
    /// Destination prefix; its family is the route's.
    pub dst: IpNet,
    /// TOS / DSCP that the route is for; 0: all. IPv4 only.
    pub tos: u8,
    /// Priority: the lowest wins.
    pub metric: u32,
    /// `RTN_*`.
    pub kind: u8,
    /// `RT_SCOPE_*`.
    pub scope: u8,
    /// `RTPROT_*`.
    pub protocol: u8,
    /// `RTM_F_*` and, of a single-path route, `RTNH_F_*`.
    pub flags: u32,
    /// Next-hop object (`RTA_NH_ID`); 0: none.
    pub nh_id: u32,
    /// The ways out. With `nh_id` the kernel may tell them as well (`nexthop_compat_mode`).
    pub nexthops: Nexthops,
    /// IPv6 source-specific routing (`from`).
    pub src: Option<IpNet>,
    /// Preferred source address.
    pub prefsrc: Option<IpAddr>,
    /// `RTAX_MTU`; 0: the interface's.
    pub mtu: u32,
    /// Hash of what else tells routes of one key apart (IPv4 metrics, realms, encapsulation); 0: nothing.
    pub other: u32,
}

impl Route {
    /// The family, from the prefix.
    #[must_use]
    pub const fn family(&self) -> Family {
        match self.dst {
            IpNet::V4(_) => Family::V4,
            IpNet::V6(_) => Family::V6,
        }
    }
}

/// What a next-hop object stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NexthopKind {
    /// A device and perhaps a gateway.
    Single {
        /// Output interface.
        ifindex: u32,
        /// Gateway.
        gateway: Option<IpAddr>,
        /// A header is put on.
        encap: bool,
    },
    /// Drops.
    Blackhole,
    /// A weighted group of other objects.
    Group {
        /// Members: (id, weight from 1 to 65536).
        members: Vec<(u32, u32)>,
        /// A resilient group (bucket table) instead of hash-threshold.
        resilient: bool,
    },
}

/// A next-hop object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nexthop {
    /// Its id.
    pub id: u32,
    /// `AF_INET`, `AF_INET6`; 0 for groups.
    pub family: u8,
    /// `RTPROT_*`.
    pub protocol: u8,
    /// `RTNH_F_*`.
    pub flags: u32,
    /// For VXLAN FDB entries, never for routes.
    pub fdb: bool,
    /// What it stands for.
    pub kind: NexthopKind,
}

/// A bucket of a resilient group (`linux/nexthop.h`, NHA_RES_BUCKET_*): flows whose hash is the index modulo the
/// number of buckets go by its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NexthopBucket {
    /// The group's id.
    pub group: u32,
    /// From 0.
    pub index: u16,
    /// The member's id.
    pub nexthop: u32,
}

/// A policy rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Family.
    pub family: Family,
    /// Preference: the lowest is tried first.
    pub priority: u32,
    /// Table that it looks up.
    pub table: u32,
    /// `FR_ACT_*` (1 = look up a table).
    pub action: u8,
    /// It applies to all packets: no selector and no suppressor.
    pub matches_all: bool,
    /// Its only selector is `l3mdev`: the kernel's own rule for VRFs.
    pub l3mdev: bool,
    /// It looks only at what comes in by the interface of this name; empty: anywhere.
    pub iif: String,
    /// Everything in the message, in about `ip rule`'s words: tells rules apart, and a person what they are.
    pub text: String,
}

impl Rule {
    /// One of the three rules that every namespace starts with: local, main, default.
    ///
    /// Selftests move the local rule to another preference, so only tables and their order count;
    /// the order is for the reader of all rules to check.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.matches_all
            && self.action == super::consts::FR_ACT_TO_TBL
            && matches!(self.table, 253..=255)
    }
}

/// Whom a netconf message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NetconfTarget {
    /// `conf/all`.
    All,
    /// `conf/default`.
    Default,
    /// One interface.
    Link(u32),
}

/// Sysctls that the kernel tells of (`RTM_NEWNETCONF`); `None`: not in this message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Netconf {
    /// Family.
    pub family: Family,
    /// Whom it is about.
    pub target: NetconfTarget,
    /// `forwarding`.
    pub forwarding: Option<bool>,
    /// `rp_filter`: 0, 1 strict, 2 loose. IPv4.
    pub rp_filter: Option<u8>,
    /// `ignore_routes_with_linkdown`.
    pub ignore_linkdown: Option<bool>,
    /// `mc_forwarding`: multicast routing is on.
    pub mc_forwarding: Option<bool>,
    /// `proxy_arp` / `proxy_ndp`.
    pub proxy_neigh: Option<bool>,
    /// `bc_forwarding`: directed broadcasts are forwarded. IPv4.
    pub bc_forwarding: Option<bool>,
}

/// A base chain of nftables: a place where packets are looked at by rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseChain {
    /// `NFPROTO_*`: 1 inet, 2 ip, 3 arp, 5 netdev, 7 bridge, 10 ip6.
    pub family: u8,
    /// Table's name.
    pub table: String,
    /// Chain's name.
    pub name: String,
    /// Hook number within the family (`NF_INET_*`: 0 prerouting, 1 input, 2 forward, 3 output,
    /// 4 postrouting, 5 ingress of `inet`). `None`: not a base chain, or a message that leaves it out (a deletion).
    pub hook: Option<u32>,
    /// Devices, for `netdev` chains and ingress chains of `inet`; one that ends in `*` is the beginning of a name.
    pub devices: Vec<String>,
}

/// The two hooks of a device at which traffic control's filters look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hook {
    /// What comes in.
    Ingress,
    /// What leaves.
    Egress,
}

/// A `clsact` or `ingress` qdisc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Qdisc {
    /// The device.
    pub ifindex: u32,
    /// Its filters are those of a block that devices share.
    pub shared: bool,
}

/// A filter at one of the two hooks of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The device.
    pub ifindex: u32,
    /// Where.
    pub hook: Hook,
    /// Chain: 0 is the one that packets begin with.
    pub chain: u32,
    /// Preference: the lowest is tried first.
    pub priority: u16,
    /// Ethertype that it is asked for: 0x0003 all, 0x8100 tagged.
    pub protocol: u16,
    /// Its number within the preference.
    pub handle: u32,
    /// Kind of classifier.
    pub name: String,
    /// It came with its options. Not so the head of the list of a preference in a dump.
    pub whole: bool,
    /// What it looks at.
    pub kind: FilterKind,
}

/// What a filter looks at and does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterKind {
    /// `flower`
    Flower {
        /// Fields.
        key: Box<FlowerKey>,
        /// In order.
        actions: Vec<FilterAction>,
        /// Not for hardware.
        skip_hw: bool,
    },
    /// `matchall`
    Matchall {
        /// In order.
        actions: Vec<FilterAction>,
        /// Not for hardware.
        skip_hw: bool,
    },
    /// Any other.
    Other,
}

/// `TCA_FLOWER_KEY_*`: values, and masks where they have one. Numbers in host order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowerKey {
    /// Destination MAC address.
    pub dst_mac: ([u8; 6], [u8; 6]),
    /// Source MAC address.
    pub src_mac: ([u8; 6], [u8; 6]),
    /// Ethertype; behind a tag that of the payload.
    pub ethertype: Option<u16>,
    /// IP protocol.
    pub protocol: Option<u8>,
    /// Source address, IPv4 in the first four bytes.
    pub src_ip: ([u8; 16], [u8; 16]),
    /// Destination address.
    pub dst_ip: ([u8; 16], [u8; 16]),
    /// Source port; ICMP: type.
    pub src_port: (u16, u16),
    /// Destination port; ICMP: code.
    pub dst_port: (u16, u16),
    /// Source ports from, to.
    pub src_range: Option<(u16, u16)>,
    /// Destination ports from, to.
    pub dst_range: Option<(u16, u16)>,
    /// VLAN id.
    pub vlan_id: Option<u16>,
    /// Priority in the tag.
    pub vlan_prio: Option<u8>,
    /// Ethertype behind the tag.
    pub vlan_ethertype: Option<u16>,
    /// `TCA_FLOWER_KEY_FLAGS_*`: bit 0 a fragment, bit 1 the first one.
    pub flags: (u32, u32),
    /// TCP flags.
    pub tcp_flags: (u16, u16),
    /// TOS or traffic class.
    pub tos: (u8, u8),
    /// TTL or hop limit.
    pub ttl: (u8, u8),
    /// It looks at something else as well.
    pub other: bool,
}

/// An action of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterAction {
    /// gact: `TC_ACT_*`.
    Decide(i32),
    /// mirred.
    Mirred {
        /// `TCA_EGRESS_REDIR` 1, `TCA_EGRESS_MIRROR` 2, 3 and 4 the same to ingress.
        what: u32,
        /// To this device.
        ifindex: u32,
        /// `TC_ACT_*` afterwards.
        then: i32,
    },
    /// police.
    Police(Police),
    /// Another one, or one of the above with something that is not decoded: its kind.
    Other(String),
}

/// A rate and how much may come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ranged {
    /// Per second; 0: no limit.
    pub rate: u64,
    /// At once.
    pub burst: u64,
}

/// A policer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Police {
    /// Its number: filters with the same one share it.
    pub index: u32,
    /// `TC_ACT_*` for what exceeds it.
    pub exceed: i32,
    /// `TC_ACT_*` for the rest.
    pub conform: i32,
    /// What is longer exceeds it.
    pub mtu: u32,
    /// In bytes.
    pub rate: Ranged,
    /// In packets.
    pub packets: Ranged,
    /// It has more than these.
    pub other: bool,
}

/// Anything that a dump or a notification can speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// A device.
    Link(Link),
    /// A device's bridge port settings alone (AF_BRIDGE message): port, bridge, settings.
    BridgePort {
        /// The port's interface index.
        ifindex: u32,
        /// The bridge; 0 when the port left.
        master: u32,
        /// The settings, when the message has them.
        brport: Option<BridgePort>,
    },
    /// An address.
    Addr(Addr),
    /// A neighbour.
    Neigh(Neigh),
    /// An FDB entry.
    Fdb(FdbEntry),
    /// A next-hop object.
    Nexthop(Nexthop),
    /// A bucket of a resilient group.
    NexthopBucket(NexthopBucket),
    /// A route.
    Route(Route),
    /// A rule.
    Rule(Rule),
    /// Sysctls.
    Netconf(Netconf),
    /// VLANs of a bridge or of a port.
    BridgeVlans(BridgeVlans),
    /// Multicast groups of a bridge.
    Mdb(Mdb),
    /// A base chain.
    BaseChain(BaseChain),
    /// A filter of traffic control.
    Filter(Filter),
    /// A qdisc with such filters.
    Qdisc(Qdisc),
    /// A table of nftables went, with all its chains: family, name (`None`: all tables).
    NftTable {
        /// `NFPROTO_*`.
        family: u8,
        /// Name.
        name: Option<String>,
    },
}

/// How a new object was put in: the notification's header flags, which decide where an alias of an
/// IPv4 route stands among those of equal prefix, TOS and metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewMode {
    /// From a dump, or there was no equal key before: at the end.
    #[default]
    Plain,
    /// In place of the first one of equal key, or of the next-hop object with this id (`NLM_F_REPLACE`). The number is
    /// the request's that asked for it: the kernel uses the same flag for routes whose next-hop object was replaced,
    /// wherever they stand, and answers that one request with all of them (net/ipv4/nexthop.c `nexthop_replace_notify`).
    Replace(u64),
    /// It is where it was: something of it changed (`fib_notify_on_flag_change`).
    Told,
    /// After all of equal key (`NLM_F_APPEND`).
    Append,
    /// Before all of equal key (create without exclusive, append or replace: `ip route prepend`).
    Prepend,
}

/// One message, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An object is there, or changed.
    New(Object, NewMode),
    /// An object went.
    Del(Object),
    /// Messages were lost: dump again.
    Overrun,
}

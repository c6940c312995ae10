//! What a source says: the kernel's objects as the store understands them, and the events that change them.
//!
//! ```text
//!  netlink source ─┐
//!  OpenFlow agent ─┼──► Event { Upsert | Remove | BeginSync | EndSync } ──► Store::apply
//!  VLAN database  ─┘      every one with the SourceId that owns the object
//! ```
//!
//! The types carry meaning, not wire formats: a source converts its messages into them. They are transient; the
//! store keeps compact forms of its own (one module per kind).

mod multicast;
mod nexthop;
mod unsupported;

use ipnet::IpNet;
use std::net::IpAddr;

pub use multicast::{GroupAddr, MdbEntry, MdbKey, Querier, RouterPort, VlanSnooping};
pub use nexthop::{NextHop, NexthopKind, NexthopObject, add_run, hand_on};
pub use unsupported::Unsupported;

/// Who said so. Every object in the store has exactly one source; a front-panel port belongs to one source at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct SourceId(pub u8);

impl SourceId {
    /// The Linux kernel, by rtnetlink.
    pub const NETLINK: SourceId = SourceId(1);
}

/// `RT_TABLE_DEFAULT`, `RT_TABLE_MAIN`, `RT_TABLE_LOCAL` of linux/rtnetlink.h.
pub const TABLE_DEFAULT: u32 = 253;
/// The main table.
pub const TABLE_MAIN: u32 = 254;
/// The kernel's own table of local, broadcast and anycast routes.
pub const TABLE_LOCAL: u32 = 255;

/// Address family of an object that exists once per family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub enum Family {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

impl Family {
    /// The family of an address.
    pub fn of(addr: &IpAddr) -> Family {
        match addr {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Links

/// What a network device is to the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// The TAP that stands for front-panel port `port` (numbered from 1, as in `tnd_port.port`).
    Swp {
        /// Front-panel port.
        port: u16,
    },
    /// A Linux bridge.
    Bridge(BridgeInfo),
    /// An 802.1Q VLAN device whose packets look as a chip makes them: up without the tag, out with priority 0.
    Vlan {
        /// VLAN id.
        vid: u16,
    },
    /// A VRF: its routing table.
    Vrf {
        /// IFLA_VRF_TABLE
        table: u32,
    },
    /// A bond of other devices.
    Bond(BondInfo),
    /// Loopback.
    Loopback,
    /// Anything else; the text is IFLA_INFO_KIND or, without it, a word for the device type.
    Other(String),
}

/// A bond, as a group of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BondInfo {
    /// The group's number in the chip, which follows from the device's: 1..=[`BONDS`].
    pub lag: u16,
    /// `TND_LAG_HASH_*`
    pub hash: u16,
    /// What of it the chip can't do.
    pub unsupported: Option<&'static str>,
}

/// Groups of the chip that bonds may get.
pub const BONDS: u16 = 512;

/// IFLA_BR_*: what of a bridge changes forwarding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeInfo {
    /// IFLA_BR_VLAN_FILTERING.
    pub vlan_filtering: bool,
    /// BR_BOOLOPT_NO_LL_LEARN: frames to 01:80:c2:00:00:0X teach nothing.
    pub no_link_local_learning: bool,
    /// IFLA_BR_FDB_MAX_LEARNED: the bridge learns so many stations at most.
    pub learning_limited: bool,
    /// IFLA_BR_MCAST_SNOOPING.
    pub mcast_snooping: bool,
    /// Of multicast the kernel does what can't be told from its messages: its reason. All of it is the kernel's then.
    pub mcast_unsupported: Option<&'static str>,
    /// IFLA_BR_MCAST_ROUTER: 0 the bridge itself is no multicast router, 1 if it seems to be one, 2 it is.
    pub mcast_router: u8,
    /// IFLA_BR_MCAST_IGMP_VERSION: 2, 3.
    pub igmp_version: u8,
    /// IFLA_BR_MCAST_MLD_VERSION: 1, 2.
    pub mld_version: u8,
    /// Is there a querier of IGMP? Without one the kernel floods.
    pub querier4: Querier,
    /// The same of MLD.
    pub querier6: Querier,
    /// IFLA_BR_AGEING_TIME in seconds, rounded up; 0 = the bridge does not learn.
    pub ageing_s: u32,
    /// IFLA_BR_NF_CALL_*: the bridge's own switches.
    pub nf_call: NfCall,
    /// A feature of the bridge that the chip can't do (802.1ad, multiple spanning trees): its name for the reason.
    pub unsupported: Option<&'static str>,
}

/// A VLAN of a bridge's port, or of the bridge itself (what may go up to its own device). Key: `ifindex`, `vid`. Means
/// nothing while the bridge does not filter by VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeVlan {
    /// The port, or the bridge.
    pub ifindex: u32,
    /// 1..=4094
    pub vid: u16,
    /// Untagged frames belong to it. One per device.
    pub pvid: bool,
    /// The tag is removed at egress.
    pub untagged: bool,
    /// `BR_STATE_*` of the port in this VLAN, besides the port's own.
    pub state: u8,
    /// A setting that the chip can't do, by its name.
    pub unsupported: Option<&'static str>,
    /// Of a bridge itself: the device, another source's perhaps, that takes what goes up in this VLAN instead of a VLAN
    /// interface, and routes it. 0: none.
    pub tap: u32,
}

/// Which bridged frames pass the chains of the IP families as well (br_netfilter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NfCall {
    /// IPv4: chains of `ip` and `inet`, legacy iptables.
    pub ip: bool,
    /// IPv6: chains of `ip6` and `inet`, legacy ip6tables.
    pub ip6: bool,
    /// ARP: legacy arptables (an nftables chain has no forward hook there).
    pub arp: bool,
}

/// `BR_STATE_*` of linux/if_bridge.h, as in `enum tnd_stp_state`.
pub const BR_STATE_DISABLED: u8 = 0;
/// A port that forwards.
pub const BR_STATE_FORWARDING: u8 = 3;
/// BR_STATE_LEARNING
pub const BR_STATE_LEARNING: u8 = 2;

/// IFLA_BRPORT_*: present while the device is a bridge's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgePort {
    /// IFLA_BRPORT_STATE: `BR_STATE_*`.
    pub state: u8,
    /// IFLA_BRPORT_LEARNING: stations are learned here, by the chip and by the kernel's bridge from what the CPU gets.
    pub learning: bool,
    /// IFLA_BRPORT_UNICAST_FLOOD
    pub unicast_flood: bool,
    /// IFLA_BRPORT_MCAST_FLOOD
    pub mcast_flood: bool,
    /// IFLA_BRPORT_BCAST_FLOOD
    pub bcast_flood: bool,
    /// IFLA_BRPORT_MODE (hairpin)
    pub hairpin: bool,
    /// IFLA_BRPORT_ISOLATED
    pub isolated: bool,
    /// IFLA_BRPORT_LOCKED
    pub locked: bool,
    /// A feature that the chip can't do (neighbour suppression, proxy ARP, multicast to unicast, guard …): its
    /// name for the reason, e.g. `"neigh_suppress"`. The port traps.
    pub unsupported: Option<&'static str>,
}

impl Default for BridgePort {
    /// The kernel's defaults for a new port (net/bridge/br_if.c `new_nbp`), forwarding.
    fn default() -> Self {
        BridgePort {
            state: BR_STATE_FORWARDING,
            learning: true,
            unicast_flood: true,
            mcast_flood: true,
            bcast_flood: true,
            hairpin: false,
            isolated: false,
            locked: false,
            unsupported: None,
        }
    }
}

/// A network device. Key: `ifindex`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Interface index, from 1.
    pub ifindex: u32,
    /// IFLA_IFNAME
    pub name: String,
    /// What it is.
    pub kind: LinkKind,
    /// IFLA_MASTER; 0 = none.
    pub master: u32,
    /// The device beneath this one in the same namespace (IFLA_LINK of a VLAN, macvlan, ipvlan device …); 0 = none.
    /// Zero for veth, whose IFLA_LINK is its peer.
    pub lower: u32,
    /// Somebody wants every frame of the device (IFF_PROMISC, IFLA_PROMISCUITY): a sniffer, a device on top with a MAC
    /// of its own, perhaps in another namespace. Filled for bridges only: a port of one always is.
    pub promiscuous: bool,
    /// IFF_UP
    pub admin_up: bool,
    /// IFF_LOWER_UP: carrier.
    pub carrier: bool,
    /// IFLA_MTU, bytes of L3 packet.
    pub mtu: u32,
    /// IFLA_ADDRESS; zero if it isn't six bytes.
    pub mac: [u8; 6],
    /// Present while `master` is a bridge.
    pub bridge_port: Option<BridgePort>,
    /// `master` is a bond, and this one takes part in it.
    pub bond_active: bool,
    /// Somebody routes multicast through it (IFF_ALLMULTI). Filled for bridges only.
    pub mc_forwarding: bool,
}

/// An address of an interface. Key: all of it but the lifetime flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addr {
    /// Interface.
    pub ifindex: u32,
    /// IFA_LOCAL (IFA_ADDRESS for IPv6).
    pub addr: IpAddr,
    /// Length of the connected prefix.
    pub prefix_len: u8,
}

// ---------------------------------------------------------------------------------------------------------------
// Neighbours and FDB

/// `NUD_*` of linux/neighbour.h.
pub mod nud {
    /// Being resolved.
    pub const INCOMPLETE: u16 = 0x01;
    /// Confirmed lately.
    pub const REACHABLE: u16 = 0x02;
    /// Usable, not confirmed lately.
    pub const STALE: u16 = 0x04;
    /// Usable, a probe follows.
    pub const DELAY: u16 = 0x08;
    /// Usable, being probed.
    pub const PROBE: u16 = 0x10;
    /// Nobody answered.
    pub const FAILED: u16 = 0x20;
    /// Needs no resolution.
    pub const NOARP: u16 = 0x40;
    /// Set by hand.
    pub const PERMANENT: u16 = 0x80;
    /// `NUD_VALID`: the kernel sends packets with this link-layer address.
    pub const VALID: u16 = PERMANENT | NOARP | REACHABLE | PROBE | STALE | DELAY;
}

/// A neighbour (ARP or ND). Key: `ifindex`, `addr`. Proxy entries (NTF_PROXY) are not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neigh {
    /// Interface.
    pub ifindex: u32,
    /// Protocol address.
    pub addr: IpAddr,
    /// Link-layer address; zero when the entry has none.
    pub mac: [u8; 6],
    /// `nud::*`.
    pub state: u16,
}

impl Neigh {
    /// The kernel would send a packet to this neighbour at once.
    pub fn usable(&self) -> bool {
        self.state & nud::VALID != 0 && self.mac != [0; 6] && self.mac[0] & 1 == 0
    }
}

/// What kind of FDB entry the kernel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum FdbKind {
    /// The bridge's or a port's own address (`permanent`): frames to it go up.
    Local,
    /// `static`: set by hand; does not age, and moves with its station unless it is sticky.
    Static,
    /// `extern_learn`: learned by the ASIC and written into the kernel, or by another control plane.
    ExternLearn,
    /// Learned by the kernel's bridge itself from what the CPU gets, or set by hand as `dynamic`: ages, moves.
    Dynamic,
    /// `locked`: a station that knocked at a port with MAC authentication (`mab`), and whom nobody has let in.
    Locked,
    /// `blackhole`: dropped.
    Blackhole,
}

impl FdbKind {
    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            FdbKind::Local => "local",
            FdbKind::Static => "static",
            FdbKind::ExternLearn => "extern_learn",
            FdbKind::Dynamic => "dynamic",
            FdbKind::Locked => "locked",
            FdbKind::Blackhole => "blackhole",
        }
    }
}

/// One entry of a bridge's forwarding database. Key: `bridge`, `vlan`, `mac`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdbEntry {
    /// ifindex of the bridge (NDA_MASTER; the bridge itself for its own addresses).
    pub bridge: u32,
    /// NDA_VLAN; 0 without VLAN filtering.
    pub vlan: u16,
    /// Address.
    pub mac: [u8; 6],
    /// ifindex of the device behind which it is (the bridge itself for its own addresses).
    pub ifindex: u32,
    /// Kind.
    pub kind: FdbKind,
    /// NTF_STICKY: does not move.
    pub sticky: bool,
}

/// Key of an [`FdbEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FdbKey {
    /// ifindex of the bridge.
    pub bridge: u32,
    /// VLAN, 0 without filtering.
    pub vlan: u16,
    /// Address.
    pub mac: [u8; 6],
}

// ---------------------------------------------------------------------------------------------------------------
// Next hops and routes

/// RTN_*
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[repr(u8)]
pub enum RouteType {
    /// Gateway or direct.
    Unicast = 1,
    /// An own address.
    Local = 2,
    /// Accepted here as broadcast, sent as broadcast.
    Broadcast = 3,
    /// Accepted here as broadcast, sent as unicast.
    Anycast = 4,
    /// Multicast route.
    Multicast = 5,
    /// Dropped in silence.
    Blackhole = 6,
    /// Dropped with ICMP unreachable.
    Unreachable = 7,
    /// Dropped with ICMP prohibited.
    Prohibit = 8,
    /// Look in the next table.
    Throw = 9,
}

impl RouteType {
    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            RouteType::Unicast => "unicast",
            RouteType::Local => "local",
            RouteType::Broadcast => "broadcast",
            RouteType::Anycast => "anycast",
            RouteType::Multicast => "multicast",
            RouteType::Blackhole => "blackhole",
            RouteType::Unreachable => "unreachable",
            RouteType::Prohibit => "prohibit",
            RouteType::Throw => "throw",
        }
    }
}

/// What identifies a route in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteKey {
    /// RTA_TABLE
    pub table: u32,
    /// Destination; host bits zero.
    pub prefix: IpNet,
    /// rtm_tos (IPv4).
    pub tos: u8,
    /// RTA_PRIORITY
    pub metric: u32,
    /// Order among routes equal in all of the above (`ip route append`): the lowest one that is usable counts. The
    /// source numbers them; removing one does not renumber the others.
    pub position: u16,
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RouteNextHops {
    /// Nowhere: local, blackhole and the like may have none.
    None,
    /// One way, in the route itself.
    One(NextHop),
    /// Several, in the route itself.
    Many(Box<[NextHop]>),
    /// RTA_NH_ID.
    Object(u32),
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Key.
    pub key: RouteKey,
    /// RTN_*
    pub kind: RouteType,
    /// RT_SCOPE_*: 0 universe, 253 link, 254 host.
    pub scope: u8,
    /// RTPROT_*: who installed it.
    pub protocol: u8,
    /// RTA_PREFSRC, if any: removing that address removes an IPv4 route.
    pub prefsrc: Option<IpAddr>,
    /// Where it leads.
    pub nexthops: RouteNextHops,
    /// Set if the chip can't do it.
    pub unsupported: Option<Unsupported>,
}

// ---------------------------------------------------------------------------------------------------------------
// Policy and sysctls

/// One policy rule (`ip rule`). Key: all of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule {
    /// Family.
    pub family: Family,
    /// FRA_PRIORITY
    pub priority: u32,
    /// Table looked up; 0 = another action.
    pub table: u32,
    /// One of the kernel's own: no selector, action *to table*, and table local, main or default. Tell it by that,
    /// never by its priority.
    pub is_default: bool,
    /// The kernel's own rule for VRFs: no selector but `l3mdev`, action *to table*.
    pub l3mdev: bool,
    /// FRA_IIFNAME: it looks only at what comes in there (a VRF's name: on any of its interfaces); empty: anywhere.
    pub iif: String,
    /// As `ip rule` would print it: for the reason.
    pub text: String,
}

/// One nftables base chain. Key: `family`, `table`, `name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BaseChain {
    /// NFPROTO_*: 1 inet, 2 ip, 3 arp, 5 netdev, 7 bridge, 10 ip6.
    pub family: u8,
    /// Table.
    pub table: String,
    /// Chain.
    pub name: String,
    /// NF_INET_*: 0 prerouting, 1 input, 2 forward, 3 output, 4 postrouting, 5 ingress (inet); netdev: 0 ingress,
    /// 1 egress.
    pub hook: u32,
    /// Devices of a chain of the netdev family or of inet's ingress hook, by name; one that ends in `*` is the beginning
    /// of names.
    pub devices: Vec<String>,
}

impl BaseChain {
    /// Its table and name, as people write them.
    pub fn text(&self) -> String {
        format!("{}/{}", self.table, self.name)
    }
}

/// What identifies a filter of traffic control. In the order in which the kernel tries those of one hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilterKey {
    /// The device.
    pub ifindex: u32,
    /// At the hook for what leaves, not for what comes in.
    pub egress: bool,
    /// Chain; packets begin with 0.
    pub chain: u32,
    /// Preference: the lower goes first.
    pub priority: u16,
    /// Within the preference.
    pub handle: u32,
}

/// What a filter decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterVerdict {
    /// The packet goes on its way.
    Permit,
    /// It ends here.
    Drop,
    /// Out of this device, as it is.
    Redirect(u32),
    /// The next filter is asked.
    Next,
}

/// A policer of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterPolice {
    /// Filters with the same number share it. Not 0.
    pub index: u32,
    /// Packets, else bytes.
    pub packets: bool,
    /// Per second.
    pub rate: u64,
    /// At once.
    pub burst: u64,
    /// What is longer, in bytes, exceeds it.
    pub longest: u32,
}

/// A filter of traffic control at a device. Key: `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Key.
    pub key: FilterKey,
    /// In about `tc filter`'s words.
    pub text: String,
    /// Fields of a frame that it looks at, as the chip's rules do. If [`Filter::kernel`] says so these are fewer than the
    /// kernel looks at, never others.
    pub fields: tandem_abi::raw::tnd_acl_key,
    /// The bits of them that count.
    pub mask: tandem_abi::raw::tnd_acl_key,
    /// Source ports from, to.
    pub src_ports: Option<(u16, u16)>,
    /// Destination ports from, to.
    pub dst_ports: Option<(u16, u16)>,
    /// Decision.
    pub verdict: FilterVerdict,
    /// A copy goes out of this device.
    pub mirror: Option<u32>,
    /// What exceeds it is dropped; what does not, goes by the verdict.
    pub police: Option<FilterPolice>,
    /// Why only the kernel can tell what happens to packets that match.
    pub kernel: Option<String>,
}

/// Whose sysctl: `conf/all`, `conf/default`, or one interface's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConfScope {
    /// NETCONFA_IFINDEX_ALL
    All,
    /// NETCONFA_IFINDEX_DEFAULT
    Default,
    /// One interface.
    Interface(u32),
}

/// RTM_NEWNETCONF. Key: `family`, `scope`. An attribute that the message did not carry is None and leaves the
/// value known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Netconf {
    /// Family.
    pub family: Family,
    /// Whose.
    pub scope: ConfScope,
    /// NETCONFA_FORWARDING
    pub forwarding: Option<bool>,
    /// NETCONFA_RP_FILTER (IPv4): 0, 1, 2.
    pub rp_filter: Option<u8>,
    /// NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN
    pub ignore_linkdown: Option<bool>,
    /// `send_redirects` (IPv4): not in the message, read from procfs.
    pub send_redirects: Option<bool>,
    /// `disable_ipv6` (IPv6): the interface drops what comes in. Not in the message, read from procfs.
    pub disabled: Option<bool>,
}

/// Sysctls of the namespace that no message announces: read at a resync and on a slow timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// net.ipv4.fib_multipath_hash_policy
    pub hash_policy_v4: u8,
    /// net.ipv6.fib_multipath_hash_policy
    pub hash_policy_v6: u8,
    /// net.ipv4.fib_multipath_use_neigh
    pub multipath_use_neigh: bool,
    /// net.bridge.bridge-nf-call-*: for all bridges, besides their own switches.
    pub nf_call: NfCall,
    /// Legacy arptables has tables.
    pub arptables: bool,
    /// Legacy iptables or ip6tables has tables.
    pub iptables: bool,
    /// A setting outside the list that makes the chip's answer unsure, for the reason; everything routed traps.
    pub unsupported: Option<&'static str>,
}

// ---------------------------------------------------------------------------------------------------------------
// Events

/// Any object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// Device.
    Link(Link),
    /// Address.
    Addr(Addr),
    /// Neighbour.
    Neigh(Neigh),
    /// FDB entry.
    Fdb(FdbEntry),
    /// VLAN of a bridge port or a bridge.
    BridgeVlan(BridgeVlan),
    /// Next-hop object.
    Nexthop(NexthopObject),
    /// Route.
    Route(Route),
    /// Policy rule.
    Rule(Rule),
    /// nftables base chain.
    BaseChain(BaseChain),
    /// Filter of traffic control.
    Filter(Box<Filter>),
    /// Member of a multicast group.
    Mdb(MdbEntry),
    /// Port to multicast routers.
    RouterPort(RouterPort),
    /// How a bridge snoops in one of its VLANs.
    VlanSnooping(VlanSnooping),
    /// Per-interface sysctls.
    Netconf(Netconf),
    /// Namespace-wide sysctls.
    Settings(Settings),
}

/// The key of any object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// ifindex
    Link(u32),
    /// The address itself.
    Addr(Addr),
    /// ifindex, address.
    Neigh(u32, IpAddr),
    /// Bridge, VLAN, MAC.
    Fdb(FdbKey),
    /// ifindex, VLAN id.
    BridgeVlan(u32, u16),
    /// Id.
    Nexthop(u32),
    /// Route key; with `position` the one to remove.
    Route(RouteKey),
    /// The rule itself.
    Rule(Rule),
    /// Family, table, name.
    BaseChain(u8, String, String),
    /// Device, hook, chain, preference, handle.
    Filter(FilterKey),
    /// Bridge, VLAN, group, source, port.
    Mdb(MdbKey),
    /// Bridge, port.
    RouterPort(u32, u32),
    /// Bridge, VLAN.
    VlanSnooping(u32, u16),
    /// Family, scope.
    Netconf(Family, ConfScope),
}

/// Kinds of objects, for a sync of some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct KindSet(pub u16);

// A line for each kind, with the objects that are of it.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $first:ident $(| $more:ident)*;)*) => {
        enum Place { $($first),* }

        impl KindSet {
            $($(#[$doc])* pub const $kind: KindSet = KindSet(1 << Place::$first as u16);)*
            /// So many there are.
            pub const COUNT: usize = [$(Place::$first),*].len();
            /// Everything.
            pub const ALL: KindSet = KindSet((1 << KindSet::COUNT) - 1);
        }

        impl Object {
            /// What it is confirmed with.
            pub fn kind(&self) -> KindSet {
                match self {
                    $(Object::$first(_) $(| Object::$more(_))* => KindSet::$kind,)*
                }
            }
        }
    };
}

kinds! {
    /// Devices.
    LINK = Link;
    /// Addresses.
    ADDR = Addr;
    /// Neighbours.
    NEIGH = Neigh;
    /// FDB.
    FDB = Fdb;
    /// Next-hop objects.
    NEXTHOP = Nexthop;
    /// Routes.
    ROUTE = Route;
    /// Policy rules.
    RULE = Rule;
    /// nftables base chains.
    BASE_CHAIN = BaseChain;
    /// Sysctls.
    NETCONF = Netconf | Settings;
    /// VLANs of bridges and their ports.
    BRIDGE_VLAN = BridgeVlan;
    /// Filters of traffic control.
    FILTER = Filter;
    /// Multicast groups, router ports, and VLANs that snoop.
    MDB = Mdb | RouterPort | VlanSnooping;
}

impl KindSet {
    /// All kinds of `other` are in `self`.
    pub fn contains(self, other: KindSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Without those of `other`.
    pub fn without(self, other: KindSet) -> KindSet {
        KindSet(self.0 & !other.0)
    }

    /// Either.
    pub fn union(self, other: KindSet) -> KindSet {
        KindSet(self.0 | other.0)
    }
}

/// What a source delivers, in the order in which it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The object is there now, new or changed.
    Upsert(SourceId, Object),
    /// The object is gone. Of an unknown object: ignored.
    Remove(SourceId, Key),
    /// A dump of these kinds begins: what is upserted from here on, by dump or by notification, is confirmed. A second
    /// BeginSync before the end starts afresh (NLM_F_DUMP_INTR).
    BeginSync(SourceId, KindSet),
    /// The dump is complete: what was not confirmed is removed. Objects that were confirmed and equal are untouched.
    EndSync(SourceId),
}

impl Event {
    /// Who tells it.
    pub fn source(&self) -> SourceId {
        let (Event::Upsert(id, _)
        | Event::Remove(id, _)
        | Event::BeginSync(id, _)
        | Event::EndSync(id)) = self;
        *id
    }
}

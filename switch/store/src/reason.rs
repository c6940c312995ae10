//! Why something is not in hardware, or why its packets are the kernel's: each class of reasons with what it is about,
//! and its words, which are nowhere else. Nobody reads them back: the store asks whether there is a reason, and which.

use crate::model::{Family, Unsupported};
use std::net::IpAddr;
use std::sync::Arc;
use thiserror::Error;

/// What packets of a device pass, of the kernel's own.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Hook {
    /// Table and chain.
    #[error("nftables base chain {0}")]
    Chain(String),
    /// As tc shows it.
    #[error("a tc filter ({0})")]
    Filter(String),
}

/// A reason. Devices, tables and VRFs are named as they are called now.
#[expect(missing_docs, reason = "the words of each say what it is")]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    // -- the chip
    /// A table.
    #[error("{table} full (needs {needed}, free {free} of {size})")]
    Full {
        table: String,
        needed: u32,
        free: u32,
        size: u32,
    },
    /// A table that has room elsewhere.
    #[error("{table} has no slot for this key (needs {needed}, free {free} of {size})")]
    NoSlot {
        table: String,
        needed: u32,
        free: u32,
        size: u32,
    },
    #[error("what it refers to is not in hardware")]
    Depends,
    #[error("the hardware failed the write")]
    Fault,
    #[error("the chip does not know such objects")]
    NoSuchClass,
    #[error("something in hardware still refers to it")]
    InUse,
    /// `TND_ST_*`.
    #[error("the chip answered with status {0}")]
    Status(u16),
    #[error("not written yet")]
    NotWritten,

    // -- somebody else's reason
    /// A device's.
    #[error("{0}: {1}")]
    Of(String, Box<Reason>),
    /// What a bridge has, or has set.
    #[error("{0}: {1}")]
    Says(String, &'static str),
    /// Its VRF's.
    #[error("its VRF: {0}")]
    Vrf(Box<Reason>),
    #[error("next hop: {0}")]
    NextHop(Box<Reason>),
    /// A device that a path leads over.
    #[error("{0} is not offloaded{rest}", rest = because(.1))]
    NotOffloaded(String, Option<Box<Reason>>),
    /// An interface that a neighbour is on.
    #[error("{0} has no router interface{rest}", rest = because(.1))]
    NoRouterInterface(String, Option<Box<Reason>>),
    /// A bridge's domain, or a port's membership in it.
    #[error("VLAN {vlan}: {why}")]
    Domain { vlan: u16, why: Box<Reason> },
    #[error("{port} in VLAN {vlan}: {why}")]
    Membership {
        port: String,
        vlan: u16,
        why: Box<Reason>,
    },
    /// Those of all interfaces that packets may come in by.
    #[error("what comes in goes to the CPU: {rest}", rest = joined(.0))]
    Unreached(Arc<[Reason]>),

    // -- devices
    #[error("its netdev is in another network namespace")]
    NetdevAway,
    #[error("its netdev is gone")]
    NetdevGone,
    #[error("{0} is attached to it")]
    Hooked(Hook),
    #[error("{0} is attached to its member {1}")]
    HookedMember(Hook, String),
    #[error("{0} is attached to {1}")]
    HookedVrf(Hook, String),
    #[error("{0} is on top of it")]
    OnTop(String),
    #[error("{0} is on top of its member {1}")]
    OnTopOfMember(String, String),
    /// A member of a bridge, bond or group.
    #[error("{0} is a member and not a front-panel port")]
    Alien(String),
    #[error("{0} is not offloaded")]
    Setting(&'static str),
    #[error("another bond has its number in the chip")]
    NumberTaken,
    #[error("down, and its members' packets are the kernel's")]
    BondDown,
    #[error("bridge port option {0} is not offloaded")]
    PortOption(&'static str),
    #[error("locked, learning and no_linklocal_learn are not offloaded together")]
    LockedLearning,
    #[error("its master {0} is not an offloaded bridge")]
    Master(String),
    #[error("its VLANs are being replaced")]
    Switching,

    // -- bridges
    #[error("VLAN {0} has a state of its own")]
    VlanState(u16),
    #[error("{0} of VLAN {1} is not offloaded")]
    VlanOption(&'static str, u16),
    #[error("nftables base chain {0} sees bridged frames")]
    Bridged(String),
    /// With bridge-nf-call: the chain, or the tables, that see them.
    #[error("{0} sees bridged frames (bridge-nf-call)")]
    BridgedByIp(String),
    #[error("nftables base chain {0} sees what leaves by {1}")]
    Leaves(String, String),
    #[error("it is promiscuous: somebody wants every frame")]
    Promiscuous,
    #[error("{0} filters by VLAN: an entry without one answers nothing")]
    FiltersByVlan(String),
    #[error("{0} does not filter by VLAN: an entry of one answers nothing")]
    FiltersNoVlan(String),
    #[error("no front-panel port of {0} is in VLAN {1}")]
    NoPortInVlan(String, u16),
    #[error("{0} has no front-panel port")]
    NoPort(String),
    #[error("locked: nobody has let this station in")]
    Locked,

    // -- VLAN interfaces
    #[error("what it is on is not here")]
    NothingBeneath,
    #[error("{0} is in a bridge")]
    InBridge(String),
    #[error("the chip has no port {0}")]
    NoSuchPort(u16),
    #[error("{0} is no group of the chip")]
    NoGroup(String),
    #[error("a VLAN interface on {0}, which does not filter by VLAN, is not offloaded")]
    OnPlainBridge(String),
    #[error("{0} itself is not in VLAN {1}")]
    BridgeNotIn(String, u16),
    #[error("{0} gets VLAN {1} untagged itself")]
    BridgeUntagged(String, u16),
    #[error("no front-panel port is in VLAN {0}")]
    NobodyInVlan(u16),
    #[error("{1} takes what goes up in VLAN {0}")]
    TakenByTap(u16, String),
    #[error("it is the TAP of several VLANs")]
    SeveralVlans,
    #[error("{0} is neither a front-panel port nor a bridge of such")]
    NeitherPortNorBridge(String),

    // -- what is routed
    /// A setting of the whole machine, as its source names it.
    #[error("{0}")]
    Machine(&'static str),
    #[error("a default policy rule of {0:?} is missing")]
    NoDefaultRule(Family),
    #[error("nftables base chain {0} sees forwarded packets")]
    Forwarded(String),
    #[error("its VRF {0} is down")]
    VrfDown(String),
    #[error("no rule of {0:?} looks up VRFs (l3mdev)")]
    NoVrfRule(Family),
    #[error(
        "{family:?} looks up the table local (rule {local}) before those of VRFs (rule {vrf}): move it behind"
    )]
    LocalBeforeVrf {
        family: Family,
        local: u32,
        vrf: u32,
    },
    #[error("the interface is down")]
    Down,
    #[error("rp_filter 1 (strict) is not offloaded")]
    StrictReversePath,
    #[error("rp_filter 2 (loose) without an IPv4 address is not offloaded")]
    LooseWithoutAddress,
    #[error("policy rule \"{0}\"")]
    PolicyRule(String),
    #[error("an own prefix is not in hardware: the kernel refuses who claims to be from there")]
    OwnPrefix,
    #[error("the kernel does not forward what comes in there (net.ipv4.conf.*.forwarding is 0)")]
    NotForwarding,
    #[error("the kernel does not forward IPv4 (net.ipv4.ip_forward is 0)")]
    NoForwarding4,
    #[error("the kernel does not forward IPv6 (net.ipv6.conf.all.forwarding is 0)")]
    NoForwarding6,
    #[error("the kernel takes no IPv6 there")]
    NoIpv6,

    // -- neighbours
    #[error("not resolved")]
    NotResolved,
    #[error("the longest match of its address is not the connected route of its interface")]
    NotConnected,

    // -- routes
    #[error("an aggregate trap of the reserve: prefixes below it do not fit")]
    Aggregate,
    #[error("{}, and it answers first", Reason::Aggregate)]
    AggregateFirst,
    #[error("the kernel has it no more: it is on its way out")]
    Leaving,
    #[error("the parser sends such packets to the CPU before any lookup")]
    Parser,
    #[error("the prefix above it goes to the CPU as well: no entry is needed")]
    LeftOut,
    #[error("its VRF is not in hardware yet")]
    VrfPending,
    #[error("a route of this prefix has a TOS")]
    Tos,
    #[error("a wider route of the local table answers first")]
    Shadowed,
    #[error("{}", .0.text())]
    Unsupported(Unsupported),
    #[error(
        "the kernel chooses among this prefix's routes by the device that a packet comes in by"
    )]
    ByIngress,
    #[error("a connected route: hosts have entries of their own")]
    Connected,
    #[error("an own address")]
    Own,
    #[error("the kernel owes an ICMP error")]
    IcmpError,
    #[error("this route type is not offloaded")]
    RouteType,
    #[error("it would answer for {0} more specific prefixes that do not fit")]
    Cover(u32),
    #[error("its next hop is not resolved")]
    NextHopUnresolved,
    #[error("none of its {0} next hops is resolved")]
    NextHopsUnresolved(usize),
    #[error("every next hop is dead")]
    Dead,

    // -- paths
    #[error("the route has no next hop")]
    Nowhere,
    #[error("next-hop object {0} is not known")]
    NoObject(u32),
    #[error("a multipath member has no gateway")]
    ConnectedMember,
    #[error("the group is larger than 256 members or weights")]
    TooLarge,
    #[error("the group's buckets lie in {0} pieces, and a group of the chip has {most}", most = tandem_abi::raw::TND_NHG_MAX_MEMBERS)]
    Pieces(u32),
    #[error("fib_multipath_hash_policy {0} is not offloaded")]
    HashPolicy(u8),

    // -- multicast
    /// A member's bridge port.
    #[error("{0} has {1}")]
    MemberOption(String, &'static str),
    #[error("more than {0} members")]
    ManyMembers(usize),
    #[error("its entry for source {0} is not in hardware")]
    SourceLacking(IpAddr),
    #[error("{0}: whether the kernel goes by a querier is not sure yet")]
    QuerierUnsure(String),
    #[error("the bridge does not look at sources (IGMP 2, MLD 1)")]
    NoSources,

    // -- filters
    /// As its source says it.
    #[error("{0}")]
    Filter(String),
    #[error("redirect of what leaves is not offloaded")]
    RedirectOut,
    #[error("it decides nothing")]
    DecidesNothing,
    #[error("its policer drops packets longer than {longest} bytes, and the port takes {mtu}")]
    PolicerLongest { longest: u32, mtu: u32 },
    #[error(
        "its policer's burst of {burst} bytes is less than a frame of {frame}, which the port takes"
    )]
    PolicerBurst { burst: u64, frame: u64 },
    #[error("{0} is no front-panel port")]
    NoFrontPanelPort(String),
    #[error("{0} is the port itself")]
    PortItself(String),
    #[error("what leaves by {0} is the kernel's")]
    WayOutKernels(String),
    #[error("only reached from another chain ({0})")]
    OtherChain(u32),
    #[error("tc filters at {0}: {1}")]
    Lists(String, Box<Reason>),
    #[error("tc ingress filters: {0}")]
    IngressList(Box<Reason>),
    #[error("tc egress filters: {0}")]
    EgressList(Box<Reason>),
    #[error("its rules are being written")]
    RulesPending,
    #[error("the list is not all in hardware: {0}")]
    ListPartly(Box<Reason>),
}

fn because(why: &Option<Box<Reason>>) -> String {
    why.as_ref().map_or_else(String::new, |r| format!(": {r}"))
}

fn joined(reasons: &[Reason]) -> String {
    let all: Vec<String> = reasons.iter().map(Reason::to_string).collect();
    all.join("; ")
}

//! What can be dumped, and how it is asked for.

use super::socket::Protocol;
use super::types::{Family, Hook};
use super::wire::Writer;
use super::{
    RouteFilter, addr, filter, link, mdb, neigh, netconf, nexthop, nft, route, rule, vlan,
};

/// What a dump shall hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dump {
    /// All devices.
    Links,
    /// All addresses.
    Addrs,
    /// Neighbours of a family.
    Neighs(Family),
    /// All bridges' FDB entries.
    Fdb,
    /// Next-hop objects.
    Nexthops,
    /// Buckets of this resilient group, or of all of them.
    NexthopBuckets(Option<u32>),
    /// Routes.
    Routes(Family, RouteFilter),
    /// Policy rules.
    Rules(Family),
    /// Per-interface sysctls.
    Netconf(Family),
    /// nftables' base chains.
    BaseChains,
    /// VLANs of bridges and their ports.
    BridgeVlans,
    /// Multicast groups of bridges.
    Mdb,
    /// Qdiscs with filters, of all devices.
    Qdiscs,
    /// The filters of a device's hook.
    Filters(u32, Hook),
}

impl Dump {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Links => "dump links",
            Self::Addrs => "dump addresses",
            Self::Neighs(_) => "dump neighbours",
            Self::Fdb => "dump FDB",
            Self::Nexthops => "dump next-hop objects",
            Self::NexthopBuckets(_) => "dump next-hop buckets",
            Self::Routes(..) => "dump routes",
            Self::Rules(_) => "dump rules",
            Self::Netconf(_) => "dump netconf",
            Self::BaseChains => "dump base chains",
            Self::BridgeVlans => "dump bridge VLANs",
            Self::Mdb => "dump multicast groups",
            Self::Qdiscs => "dump qdiscs",
            Self::Filters(..) => "dump filters",
        }
    }

    /// Which protocol it is asked for by.
    #[must_use]
    pub const fn protocol(self) -> Protocol {
        match self {
            Self::BaseChains => Protocol::Netfilter,
            _ => Protocol::Route,
        }
    }

    /// Writes the request.
    pub(super) fn write(self, w: &mut Writer, seq: u32) {
        match self {
            Self::Links => link::dump(w, seq),
            Self::Addrs => addr::dump(w, seq),
            Self::Neighs(family) => neigh::dump(w, seq, family),
            Self::Fdb => neigh::dump_fdb(w, seq),
            Self::Nexthops => nexthop::dump(w, seq),
            Self::NexthopBuckets(group) => nexthop::dump_buckets(w, seq, group),
            Self::Routes(family, filter) => route::dump(w, seq, family, filter),
            Self::Rules(family) => rule::dump(w, seq, family),
            Self::Netconf(family) => netconf::dump(w, seq, family),
            Self::BaseChains => nft::dump(w, seq),
            Self::BridgeVlans => vlan::dump(w, seq),
            Self::Mdb => mdb::dump(w, seq),
            Self::Qdiscs => filter::dump_qdiscs(w, seq),
            Self::Filters(ifindex, hook) => filter::dump(w, seq, ifindex, hook),
        }
    }
}

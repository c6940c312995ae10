//! Netlink: the only place in the house that speaks it.
//!
//! ```text
//!  kernel ──► Monitor (all groups, one order) ──► decode ──► Event { New, Del, Overrun } ──► a source
//!         ◄─► Requests: dumps by steps, changes with the kernel's answer
//! ```
//!
//! Messages are decoded straight from the receive buffer, by one attribute walker
//! ([`wire`]) for every kind: half of the kinds (next-hop objects, netconf, nftables, bridge port
//! settings) exist in no typed library, and a route costs 0.03 µs here against 0.6 µs as a typed
//! message (`bench_decode` in the tests), a fifth of all the time that a route has at 300,000 a
//! second. The typed library is the oracle of the tests instead. Socket handling is `netlink-sys`.

#[cfg(feature = "testing")]
pub mod blast;
pub mod clsw;
pub mod consts;
pub mod tc;
pub mod wire;

mod addr;
mod bridge;
mod dump;
mod error;
mod filter;
mod flower;
mod link;
mod lookup;
mod mdb;
mod mmsg;
mod neigh;
mod netconf;
mod nexthop;
mod nft;
#[cfg(feature = "testing")]
mod raw;
mod route;
mod rule;
mod socket;
mod types;
mod vlan;
mod xfrm;

pub use bridge::{BridgeOf, Membership};
pub use link::PortIs;
pub use lookup::{Found, Lookup};
pub use route::RouteFilter;
pub use socket::{Dump, Error, Monitor, Protocol, Requests, Result, Step, decode};
pub use types::{
    Addr, BaseChain, BondInfo, BondMember, BridgeInfo, BridgeMcast, BridgePort, BridgeVlan,
    BridgeVlans, Event, Family, FdbEntry, Filter, FilterAction, FilterKind, FlowerKey, Hook, Link,
    LinkKind, Mdb, MdbEntry, MdbGroup, Neigh, Netconf, NetconfTarget, NewMode, Nexthop,
    NexthopBucket, NexthopKind, Nexthops, NfCall, Object, Police, Qdisc, Ranged, Route,
    RouteNexthop, RouterPort, Rule, VlanInfo,
};

use consts::*;

/// Decodes one message of a routing socket.
#[inline]
fn decode_route_family(msg: &wire::Msg<'_>) -> Option<Event> {
    let p = msg.payload;
    match msg.kind {
        RTM_NEWROUTE => route::decode(p).map(|o| Event::New(o, mode(msg))),
        RTM_DELROUTE => route::decode(p).map(Event::Del),
        RTM_NEWNEIGH => neigh::decode(p).map(new),
        RTM_DELNEIGH => neigh::decode(p).map(Event::Del),
        RTM_NEWLINK => link::decode(p).map(new),
        RTM_DELLINK => link::decode(p).map(Event::Del),
        RTM_NEWADDR => addr::decode(p).map(new),
        RTM_DELADDR => addr::decode(p).map(Event::Del),
        RTM_NEWNEXTHOP => nexthop::decode(p).map(|o| Event::New(o, NewMode::Replace(request(msg)))),
        RTM_DELNEXTHOP => nexthop::decode(p).map(Event::Del),
        RTM_NEWNEXTHOPBUCKET => nexthop::decode_bucket(p).map(new),
        RTM_NEWRULE => rule::decode(p).map(new),
        RTM_DELRULE => rule::decode(p).map(Event::Del),
        RTM_NEWNETCONF => netconf::decode(p).map(new),
        RTM_DELNETCONF => netconf::decode(p).map(Event::Del),
        RTM_NEWVLAN => vlan::decode(p).map(new),
        RTM_DELVLAN => vlan::decode(p).map(Event::Del),
        RTM_NEWMDB | RTM_GETMDB => mdb::decode(p).map(new),
        RTM_DELMDB => mdb::decode(p).map(Event::Del),
        RTM_NEWTFILTER => filter::decode(p).map(new),
        RTM_DELTFILTER => filter::decode(p).map(Event::Del),
        RTM_NEWQDISC => filter::decode_qdisc(p).map(new),
        RTM_DELQDISC => filter::decode_qdisc(p).map(Event::Del),
        _ => None,
    }
}

const fn new(object: Object) -> Event {
    Event::New(object, NewMode::Plain)
}

/// Whose request a notification answers: the port and the number that the sender gave it.
fn request(msg: &wire::Msg<'_>) -> u64 {
    u64::from(msg.port) << 32 | u64::from(msg.seq)
}

/// Where an alias went, from a notification's flags (net/ipv4/fib_trie.c, `fib_table_insert`; `fib_alias_hw_flags_set`
/// sets none).
fn mode(msg: &wire::Msg<'_>) -> NewMode {
    let flags = msg.flags;
    if flags & NLM_F_REPLACE != 0 {
        NewMode::Replace(request(msg))
    } else if flags & (NLM_F_APPEND | NLM_F_CREATE | NLM_F_MULTI) == 0 {
        NewMode::Told
    } else if flags & NLM_F_APPEND != 0 {
        NewMode::Append
    } else if flags & NLM_F_CREATE != 0 && flags & NLM_F_EXCL == 0 {
        NewMode::Prepend
    } else {
        NewMode::Plain
    }
}

#[cfg(test)]
mod tests;

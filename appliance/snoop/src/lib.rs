// SPDX-License-Identifier: Apache-2.0
//! IGMP and MLD snooping (RFC 4541): who wants which group, and where routers are. No sockets, no clocks, no threads.
//!
//! ```text
//!   receive, tick, port_down, configure ──► Snooping: one segment for each VLAN and family ──► changes, to be done in order
//!        └► where the message goes on                 └► groups, routers: for people         └► queries to be sent
//! ```
//!
//! [`Snooping`] is told of messages and time. It answers whom a message is for, and what has changed: members that came or
//! went, ports of routers, whether there is a querier (without one all groups are flooded), queries that it sends itself.
//!
//! **Groups, not sources**: of IGMPv3 and MLDv2 a report's records are taken as joins and leaves of all sources, as a bridge
//! of the kernel with `mcast_igmp_version 2` and `mcast_mld_version 1` does, which is the judge (`tests/kernel.rs`).
#![deny(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)
)]

mod checksum;
mod machine;
mod message;
mod query;
mod segment;

pub use machine::{GROUPS, MEMBERS, Snooping};
pub use message::{Asked, Broken, Family, Message, Record, parse};
pub use query::{Query, from_nobody, query};
pub use segment::{Change, Forward, HOST, Now, Set, To};

/// A second, in the unit of all times: nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// How long things are believed, and how often is asked, ns: RFC 2236 8, RFC 3810 9, RFC 4541.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// A member that says nothing is gone after it.
    pub membership: u64,
    /// So is another querier, and the router behind a port.
    pub querier: u64,
    /// Between our own queries.
    pub query: u64,
    /// Between the first of them.
    pub startup: u64,
    /// Members may take so long to answer them.
    pub response: u64,
    /// And so long to those of one group, after somebody has left it,
    pub last_member: u64,
    /// which are so many.
    pub last_members: u32,
}

impl Default for Times {
    /// The protocols' own.
    fn default() -> Times {
        Times {
            membership: 260 * SECOND,
            querier: 255 * SECOND,
            query: 125 * SECOND,
            startup: 125 * SECOND / 4,
            response: 10 * SECOND,
            last_member: SECOND,
            last_members: 2,
        }
    }
}

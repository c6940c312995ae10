// SPDX-License-Identifier: Apache-2.0
//! An OpenFlow switch without sockets: controllers' bytes and ports' frames in, bytes and frames out.
//!
//! ```text
//!   controller ══bytes══► Conn: framer, version, role ──► request ──► Datapath: tables, groups, meters, ports
//!   controller ◄══bytes══ Conn: output, bounded      ◄── replies, errors     │
//!              ◄───────── packet-in, flow-removed, port-status ◄─────────────┤
//!                                                                            │
//!   port ══frame══► frame(): the tables, or a learning switch of its own ────┴──► Wires: frames out of ports
//! ```
//!
//! Nothing here reads a clock, sleeps or knows sockets: the time (`now_ns`, of a monotonic clock) is an argument, and
//! [`Agent::tick`] says when it wants to be called next. What leaves by a port goes to [`Wires`] at once; what goes to a
//! controller waits in its connection until the caller takes it ([`Agent::output`], [`Agent::sent`]).
//!
//! [`datapath`] is the seam for a chip: every change of the tables and every packet passes it.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
mod below;
mod buffers;
mod conn;
pub mod datapath;
mod kept;
mod learning;
mod leaves;
mod multipart;
mod ports;
mod requests;
mod roles;
mod tables;
mod takes;
#[cfg(test)]
mod tests;
mod trace;

pub use agent::{Agent, CONNECTIONS, ConnId};
pub use conn::{Conn, Counts, Pace};
pub use datapath::Datapath;
pub use leaves::Wires;
pub use ports::{Lost, PortEntry};
pub use trace::Step;

use tandem_openflow::Version;

/// What a switch does while no controller is connected (§6.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fail {
    /// The tables go on; what they send to a controller is dropped.
    #[default]
    Secure,
    /// It is an ordinary learning switch; the tables stand still.
    Standalone,
}

/// What a switch is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `datapath_id`.
    pub datapath: u64,
    /// What is offered to controllers.
    pub versions: Vec<Version>,
    /// Tables of 1.3; 1.0 has one.
    pub tables: u8,
    /// Flows at most, of all tables together.
    pub max_flows: u32,
    /// Without controllers.
    pub fail: Fail,
    /// `OFPMP_DESC`.
    pub desc: tandem_openflow::model::Desc,
    /// Queues of each port, numbered from 0: counted, not scheduled.
    pub queues: u32,
    /// There will be a port `LOCAL`; without one an output there is refused.
    pub local: bool,
    /// Packet-ins a second for each controller.
    pub packet_ins: u64,
    /// Silence after which a controller is asked whether it lives, and after as much again given up.
    pub probe_ns: u64,
    /// Seed of the tables' hashes.
    pub secret: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            datapath: 1,
            versions: vec![Version::V10, Version::V13],
            tables: 255,
            max_flows: 1_000_000,
            fail: Fail::Secure,
            desc: tandem_openflow::model::Desc::default(),
            queues: 8,
            local: false,
            packet_ins: 20_000,
            probe_ns: 5_000_000_000,
            secret: 0x5bd1_e995_27d4_eb2f,
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The switch itself: features (§7.3.1), config (§7.3.2), tables (§7.3.3), roles and async filters (§7.3.9, §7.3.10).

use super::{Port, numbered};

/// Bits of `ofp_capabilities`.
pub mod capabilities {
    /// `OFPC_FLOW_STATS`.
    pub const FLOW_STATS: u32 = 1;
    /// `OFPC_TABLE_STATS`.
    pub const TABLE_STATS: u32 = 1 << 1;
    /// `OFPC_PORT_STATS`.
    pub const PORT_STATS: u32 = 1 << 2;
    /// `OFPC_GROUP_STATS`. Not in 1.0.
    pub const GROUP_STATS: u32 = 1 << 3;
    /// `OFPC_IP_REASM`.
    pub const IP_REASM: u32 = 1 << 5;
    /// `OFPC_QUEUE_STATS`.
    pub const QUEUE_STATS: u32 = 1 << 6;
    /// `OFPC_PORT_BLOCKED`. Not in 1.0.
    pub const PORT_BLOCKED: u32 = 1 << 8;
}

/// `ofp_switch_features`. That ARP's addresses are matched (1.0) is always said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// `datapath_id`.
    pub datapath: u64,
    /// Packets that can be kept at once.
    pub buffers: u32,
    /// Tables.
    pub tables: u8,
    /// 0: the main connection. Not in 1.0.
    pub auxiliary: u8,
    /// [`capabilities`].
    pub capabilities: u32,
    /// 1.0 alone: all ports.
    pub ports: Vec<Port>,
}

numbered! {
    /// `ofp_config_flags`.
    Fragments: u16 {
        /// `OFPC_FRAG_NORMAL`.
        Normal = 0,
        /// `OFPC_FRAG_DROP`.
        Drop = 1,
        /// `OFPC_FRAG_REASM`.
        Reassemble = 2,
    }
}

/// `ofp_switch_config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// What happens to fragments of IP packets.
    pub fragments: Fragments,
    /// Bytes of a packet that goes to the controller because nothing matched (1.0) or without its own limit.
    pub miss_send_len: u16,
}

/// `ofp_table_mod`: its only bits are those that 1.3 no longer uses, so that there is nothing to configure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMod {
    /// [`super::TABLE_ALL`] for all.
    pub table: u8,
    /// At most `OFPTC_DEPRECATED_MASK`.
    pub config: u32,
}

numbered! {
    /// `ofp_controller_role`.
    Role: u32 {
        /// `OFPCR_ROLE_NOCHANGE`: a question.
        NoChange = 0,
        /// `OFPCR_ROLE_EQUAL`.
        Equal = 1,
        /// `OFPCR_ROLE_MASTER`.
        Master = 2,
        /// `OFPCR_ROLE_SLAVE`.
        Slave = 3,
    }
}

/// `ofp_role_request`, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleRequest {
    /// Wished, or had.
    pub role: Role,
    /// For master and slave: not older than the last that was seen (§6.3.5).
    pub generation: u64,
}

/// `ofp_async_config`: of each kind of message the reasons that are sent, bit n for the reason of number n; first for
/// a master or equal, then for a slave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Async {
    /// [`super::PacketReason`].
    pub packet_in: [u32; 2],
    /// [`super::PortReason`].
    pub port_status: [u32; 2],
    /// [`super::RemovedReason`].
    pub flow_removed: [u32; 2],
}

impl Default for Async {
    /// What §6.3.4 has: a slave hears of ports alone, and nobody of TTLs.
    fn default() -> Self {
        Async {
            packet_in: [0b011, 0],
            port_status: [0b111, 0b111],
            flow_removed: [0b1111, 0],
        }
    }
}

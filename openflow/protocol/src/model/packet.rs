// SPDX-License-Identifier: Apache-2.0
//! Packets: `ofp_packet_out` (§7.3.7) and `ofp_packet_in` (§7.4.1).

use super::numbered;
use crate::{Action, Oxm};

/// `ofp_packet_out`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut<'a> {
    /// The packet, if the switch has it.
    pub buffer: Option<u32>,
    /// As if it had come there: a port, [`crate::port::CONTROLLER`], [`crate::port::LOCAL`] or [`crate::port::ANY`].
    pub in_port: u32,
    /// In their order.
    pub actions: Vec<Action>,
    /// The packet, if there is no buffer.
    pub data: &'a [u8],
}

numbered! {
    /// `ofp_packet_in_reason`.
    PacketReason: u8 {
        /// `OFPR_NO_MATCH`: the table-miss flow sent it.
        NoMatch = 0,
        /// `OFPR_ACTION`.
        Action = 1,
        /// `OFPR_INVALID_TTL`; 1.0 is told of an action.
        InvalidTtl = 2,
    }
}

/// `ofp_packet_in`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketIn<'a> {
    /// Where the switch keeps it.
    pub buffer: Option<u32>,
    /// Of the whole packet.
    pub total_len: u16,
    /// Why.
    pub reason: PacketReason,
    /// Whose flow.
    pub table: u8,
    /// The flow's; all ones if there is none.
    pub cookie: u64,
    /// `in_port` at least; what else of the pipeline's fields is not zero (§7.4.1).
    pub fields: &'a [Oxm],
    /// As much of it as was wished.
    pub data: &'a [u8],
}

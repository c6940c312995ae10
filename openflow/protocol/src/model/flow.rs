// SPDX-License-Identifier: Apache-2.0
//! Flows: `ofp_flow_mod` (§7.3.4.1) and `ofp_flow_removed` (§7.4.2).

use super::numbered;
use crate::{Instructions, Match};

numbered! {
    /// `ofp_flow_mod_command`.
    FlowCommand: u8 {
        /// `OFPFC_ADD`.
        Add = 0,
        /// `OFPFC_MODIFY`.
        Modify = 1,
        /// `OFPFC_MODIFY_STRICT`.
        ModifyStrict = 2,
        /// `OFPFC_DELETE`.
        Delete = 3,
        /// `OFPFC_DELETE_STRICT`.
        DeleteStrict = 4,
    }
}

impl FlowCommand {
    /// Either of the two that delete: instructions, timeouts and buffer mean nothing then.
    pub const fn deletes(self) -> bool {
        matches!(self, FlowCommand::Delete | FlowCommand::DeleteStrict)
    }
}

/// Bits of `ofp_flow_mod_flags`; 1.0 has the first two.
pub mod flow_flags {
    /// `OFPFF_SEND_FLOW_REM`.
    pub const SEND_FLOW_REM: u16 = 1;
    /// `OFPFF_CHECK_OVERLAP`.
    pub const CHECK_OVERLAP: u16 = 1 << 1;
    /// `OFPFF_RESET_COUNTS`.
    pub const RESET_COUNTS: u16 = 1 << 2;
    /// `OFPFF_NO_PKT_COUNTS`.
    pub const NO_PKT_COUNTS: u16 = 1 << 3;
    /// `OFPFF_NO_BYT_COUNTS`.
    pub const NO_BYT_COUNTS: u16 = 1 << 4;
    /// Every bit that is defined.
    pub const ALL: u16 = 0x1f;
}

/// `ofp_flow_mod`. Decoded, its command, flags, match, actions and instructions are each valid in themselves; whether
/// tables, ports, groups and meters exist, and whether actions fit to the match, is the tables' to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod {
    /// Opaque.
    pub cookie: u64,
    /// Modify and delete: only flows whose cookie has these bits as `cookie` has them.
    pub cookie_mask: u64,
    /// [`super::TABLE_ALL`] for deletes alone, and always for 1.0's; else 1.0 has 0.
    pub table: u8,
    /// What to do.
    pub command: FlowCommand,
    /// Seconds, 0: none.
    pub idle_timeout: u16,
    /// Seconds, 0: none.
    pub hard_timeout: u16,
    /// The higher first.
    pub priority: u16,
    /// The packet that then goes through the tables (1.0: through the actions).
    pub buffer: Option<u32>,
    /// Deletes: only flows that output there; [`crate::port::ANY`] for all.
    pub out_port: u32,
    /// Deletes: only flows that have this group; [`super::GROUP_ANY`] for all.
    pub out_group: u32,
    /// [`flow_flags`].
    pub flags: u16,
    /// What it is for.
    pub matching: Match,
    /// What it does; 1.0's actions are applied.
    pub instructions: Instructions,
}

numbered! {
    /// `ofp_flow_removed_reason`.
    RemovedReason: u8 {
        /// `OFPRR_IDLE_TIMEOUT`.
        IdleTimeout = 0,
        /// `OFPRR_HARD_TIMEOUT`.
        HardTimeout = 1,
        /// `OFPRR_DELETE`.
        Delete = 2,
        /// `OFPRR_GROUP_DELETE`; 1.0 is told of a deletion.
        GroupDelete = 3,
    }
}

/// Since when: seconds and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Whole seconds.
    pub sec: u32,
    /// Beyond them.
    pub nsec: u32,
}

/// `ofp_flow_removed`. A counter that is not kept is all ones (§7.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    /// The flow's.
    pub cookie: u64,
    /// The flow's.
    pub priority: u16,
    /// Why.
    pub reason: RemovedReason,
    /// Where it was.
    pub table: u8,
    /// How long it was there.
    pub lifetime: Lifetime,
    /// The flow's.
    pub idle_timeout: u16,
    /// The flow's.
    pub hard_timeout: u16,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// The flow's.
    pub matching: Match,
}

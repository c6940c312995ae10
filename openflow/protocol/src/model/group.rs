// SPDX-License-Identifier: Apache-2.0
//! Groups: `ofp_group_mod` (§7.3.4.2).

use super::numbered;
use crate::Action;

/// `OFPG_MAX`.
pub const GROUP_MAX: u32 = 0xffff_ff00;
/// `OFPG_ALL`.
pub const GROUP_ALL: u32 = 0xffff_fffc;
/// `OFPG_ANY`.
pub const GROUP_ANY: u32 = 0xffff_ffff;

numbered! {
    /// `ofp_group_mod_command`.
    GroupCommand: u8 {
        /// `OFPGC_ADD`.
        Add = 0,
        /// `OFPGC_MODIFY`.
        Modify = 1,
        /// `OFPGC_DELETE`.
        Delete = 2,
    }
}

numbered! {
    /// `ofp_group_type`.
    GroupType: u8 {
        /// `OFPGT_ALL`.
        All = 0,
        /// `OFPGT_SELECT`.
        Select = 1,
        /// `OFPGT_INDIRECT`.
        Indirect = 2,
        /// `OFPGT_FF`.
        FastFailover = 3,
    }
}

/// `ofp_bucket`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// Of select groups.
    pub weight: u16,
    /// Of fast-failover groups; [`crate::port::ANY`]: none.
    pub watch_port: u32,
    /// Of fast-failover groups; [`GROUP_ANY`]: none.
    pub watch_group: u32,
    /// An action set.
    pub actions: Vec<Action>,
}

/// `ofp_group_mod`. Decoded, the number is one that the command may name, and the buckets' actions are each valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod {
    /// What to do.
    pub command: GroupCommand,
    /// How buckets are chosen.
    pub kind: GroupType,
    /// Number; [`GROUP_ALL`] for deletes alone.
    pub group: u32,
    /// In their order.
    pub buckets: Vec<Bucket>,
}

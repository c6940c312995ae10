// SPDX-License-Identifier: Apache-2.0
//! Meters: `ofp_meter_mod` (§7.3.4.4).

use super::numbered;

/// `OFPM_MAX`.
pub const METER_MAX: u32 = 0xffff_0000;
/// `OFPM_SLOWPATH`.
pub const METER_SLOWPATH: u32 = 0xffff_fffd;
/// `OFPM_CONTROLLER`.
pub const METER_CONTROLLER: u32 = 0xffff_fffe;
/// `OFPM_ALL`.
pub const METER_ALL: u32 = 0xffff_ffff;

numbered! {
    /// `ofp_meter_mod_command`.
    MeterCommand: u8 {
        /// `OFPMC_ADD`.
        Add = 0,
        /// `OFPMC_MODIFY`.
        Modify = 1,
        /// `OFPMC_DELETE`.
        Delete = 2,
    }
}

/// Bits of `ofp_meter_flags`.
pub mod meter_flags {
    /// `OFPMF_KBPS`.
    pub const KBPS: u16 = 1;
    /// `OFPMF_PKTPS`.
    pub const PKTPS: u16 = 1 << 1;
    /// `OFPMF_BURST`.
    pub const BURST: u16 = 1 << 2;
    /// `OFPMF_STATS`.
    pub const STATS: u16 = 1 << 3;
    /// Every bit that is defined.
    pub const ALL: u16 = 0xf;
}

/// `ofp_meter_band_header` and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Band {
    /// kb/s or packets/s, by the meter's flags.
    pub rate: u32,
    /// kb or packets, if the meter's flags say that it counts.
    pub burst: u32,
    /// What happens to packets above it.
    pub kind: BandType,
}

/// `ofp_meter_band_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BandType {
    /// `OFPMBT_DROP`.
    Drop,
    /// `OFPMBT_DSCP_REMARK`: drop precedences to add.
    DscpRemark(u8),
}

/// `ofp_meter_mod`. Decoded, the number is one that the command may name and the flags don't contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod {
    /// What to do.
    pub command: MeterCommand,
    /// [`meter_flags`].
    pub flags: u16,
    /// Number; [`METER_ALL`] for deletes alone.
    pub meter: u32,
    /// In their order.
    pub bands: Vec<Band>,
}

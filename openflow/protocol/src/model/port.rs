// SPDX-License-Identifier: Apache-2.0
//! Ports: `ofp_port` (§7.2.1), `ofp_port_mod` (§7.3.4.3), queues (§7.2.2).

use super::numbered;

/// Bits of `ofp_port_config`.
pub mod port_config {
    /// `OFPPC_PORT_DOWN`.
    pub const PORT_DOWN: u32 = 1;
    /// 1.0, `OFPPC_NO_STP`.
    pub const NO_STP10: u32 = 1 << 1;
    /// `OFPPC_NO_RECV`.
    pub const NO_RECV: u32 = 1 << 2;
    /// 1.0, `OFPPC_NO_RECV_STP`.
    pub const NO_RECV_STP10: u32 = 1 << 3;
    /// 1.0, `OFPPC_NO_FLOOD`.
    pub const NO_FLOOD10: u32 = 1 << 4;
    /// `OFPPC_NO_FWD`.
    pub const NO_FWD: u32 = 1 << 5;
    /// `OFPPC_NO_PACKET_IN`.
    pub const NO_PACKET_IN: u32 = 1 << 6;
    /// 1.3's.
    pub const ALL: u32 = PORT_DOWN | NO_RECV | NO_FWD | NO_PACKET_IN;
    /// 1.0's.
    pub const ALL10: u32 = 0x7f;
}

/// Bits of `ofp_port_state`.
pub mod port_state {
    /// `OFPPS_LINK_DOWN`.
    pub const LINK_DOWN: u32 = 1;
    /// `OFPPS_BLOCKED`.
    pub const BLOCKED: u32 = 1 << 1;
    /// `OFPPS_LIVE`.
    pub const LIVE: u32 = 1 << 2;
}

/// Bits of `ofp_port_features`.
pub mod port_features {
    /// Every bit that is defined.
    pub const ALL: u32 = 0xffff;
    /// `OFPPF_10MB_FD`.
    pub const FD_10MB: u32 = 1 << 1;
    /// `OFPPF_100MB_FD`.
    pub const FD_100MB: u32 = 1 << 3;
    /// `OFPPF_1GB_FD`.
    pub const FD_1GB: u32 = 1 << 5;
    /// `OFPPF_10GB_FD`.
    pub const FD_10GB: u32 = 1 << 6;
    /// `OFPPF_40GB_FD`.
    pub const FD_40GB: u32 = 1 << 7;
    /// `OFPPF_100GB_FD`.
    pub const FD_100GB: u32 = 1 << 8;
    /// `OFPPF_OTHER`.
    pub const OTHER: u32 = 1 << 10;
    /// `OFPPF_COPPER`.
    pub const COPPER: u32 = 1 << 11;
    /// `OFPPF_FIBER`.
    pub const FIBER: u32 = 1 << 12;
    /// `OFPPF_AUTONEG`.
    pub const AUTONEG: u32 = 1 << 13;
    /// `OFPPF_PAUSE`.
    pub const PAUSE: u32 = 1 << 14;
    /// `OFPPF_PAUSE_ASYM`.
    pub const PAUSE_ASYM: u32 = 1 << 15;
}

/// `ofp_port`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Number.
    pub number: u32,
    /// MAC address.
    pub hw_addr: [u8; 6],
    /// Up to 15 bytes are sent.
    pub name: String,
    /// [`port_config`].
    pub config: u32,
    /// [`port_state`].
    pub state: u32,
    /// [`port_features`].
    pub current: u32,
    /// [`port_features`].
    pub advertised: u32,
    /// [`port_features`].
    pub supported: u32,
    /// [`port_features`].
    pub peer: u32,
    /// kb/s. Not in 1.0.
    pub current_speed: u32,
    /// kb/s. Not in 1.0.
    pub max_speed: u32,
}

numbered! {
    /// `ofp_port_reason`.
    PortReason: u8 {
        /// `OFPPR_ADD`.
        Add = 0,
        /// `OFPPR_DELETE`.
        Delete = 1,
        /// `OFPPR_MODIFY`.
        Modify = 2,
    }
}

/// `ofp_port_mod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMod {
    /// Number.
    pub port: u32,
    /// Has to be the port's.
    pub hw_addr: [u8; 6],
    /// [`port_config`].
    pub config: u32,
    /// Bits of `config` that are to change.
    pub mask: u32,
    /// [`port_features`]; 0: as it is.
    pub advertise: u32,
}

/// `ofp_packet_queue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Number.
    pub queue: u32,
    /// Its port. Not in 1.0.
    pub port: u32,
    /// Tenths of a percent.
    pub min_rate: Option<u16>,
    /// Tenths of a percent. Not in 1.0.
    pub max_rate: Option<u16>,
}

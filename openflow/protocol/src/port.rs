// SPDX-License-Identifier: Apache-2.0
//! Port numbers (§7.2.1, `ofp_port_no`), in 1.3's 32 bits; 1.0 has the same with 16 bits, and `NONE` where 1.3 has `ANY`.

/// The highest number of a real port.
pub const MAX: u32 = 0xffff_ff00;
/// Back out of the port it came in by; nothing else sends there.
pub const IN_PORT: u32 = 0xffff_fff8;
/// Through the flow tables: in a packet-out alone.
pub const TABLE: u32 = 0xffff_fff9;
/// As an ordinary switch would.
pub const NORMAL: u32 = 0xffff_fffa;
/// All ports of the VLAN, or of the switch, but the one it came in by and those that are blocked.
pub const FLOOD: u32 = 0xffff_fffb;
/// All ports but the one it came in by.
pub const ALL: u32 = 0xffff_fffc;
/// To the controllers, as a packet-in.
pub const CONTROLLER: u32 = 0xffff_fffd;
/// The switch's own networking stack.
pub const LOCAL: u32 = 0xffff_fffe;
/// None in particular: a wildcard in requests.
pub const ANY: u32 = 0xffff_ffff;

/// `OFPCML_NO_BUFFER`: the whole packet goes to the controller, none of it is buffered.
pub const NO_BUFFER_LEN: u16 = 0xffff;

/// A port of 1.0's 16 bits.
pub const fn from10(port: u16) -> u32 {
    if port >= 0xff00 {
        0xffff_0000 | port as u32
    } else {
        port as u32
    }
}

/// In 1.0's 16 bits, where it has any: ports from 0xff00 on that are not reserved have none.
pub const fn to10(port: u32) -> Option<u16> {
    if port < 0xff00 || port >= 0xffff_ff00 {
        Some(port as u16)
    } else {
        None
    }
}

/// Is it a real port, or one of the reserved ones that an output may name? Not 0, nor [`ANY`], nor what lies between.
pub const fn can_output(port: u32) -> bool {
    port != 0 && (port <= MAX || (port >= IN_PORT && port != ANY))
}

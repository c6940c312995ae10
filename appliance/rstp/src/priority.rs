// SPDX-License-Identifier: Apache-2.0
//! Identifiers and priority vectors: 9.2.5, 9.2.7, 17.5, 17.6. Of two, the numerically lower is the better one.

use std::fmt;

/// Four bits of priority, twelve of system identifier (0 here), 48 of MAC address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BridgeId(pub u64);

impl BridgeId {
    /// `priority` counts in steps of 4096 (9.2.5): its lower bits are not of it.
    pub fn new(priority: u16, mac: [u8; 6]) -> BridgeId {
        let [a, b, c, d, e, f] = mac;
        let address = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        BridgeId(u64::from(priority & 0xf000) << 48 | address)
    }

    /// The first two octets: priority and system identifier.
    pub fn priority(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The bridge's address.
    pub fn mac(self) -> [u8; 6] {
        let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// Whichever priority it has, it is one bridge.
    pub fn same_bridge(self, other: BridgeId) -> bool {
        self.mac() == other.mac()
    }
}

impl fmt::Debug for BridgeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for BridgeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}.{:012x}",
            self.priority(),
            self.0 & 0xffff_ffff_ffff
        )
    }
}

/// Four bits of priority, twelve of port number (9.2.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PortId(pub u16);

impl PortId {
    /// `priority` counts in steps of 16.
    pub fn new(priority: u8, number: u16) -> PortId {
        PortId(u16::from(priority & 0xf0) << 8 | number & 0xfff)
    }

    /// 0 to 240.
    pub fn priority(self) -> u8 {
        (self.0 >> 8) as u8 & 0xf0
    }

    /// 1 to 4095.
    pub fn number(self) -> u16 {
        self.0 & 0xfff
    }
}

impl fmt::Debug for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.priority(), self.number())
    }
}

/// A spanning tree priority vector without its last part, the port that receives (17.5): who compares the vectors of
/// several ports has that beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Vector {
    /// The root's identifier.
    pub root: BridgeId,
    /// What the way there costs.
    pub cost: u32,
    /// The designated bridge's identifier.
    pub bridge: BridgeId,
    /// The designated port's.
    pub port: PortId,
}

impl Vector {
    /// 17.6: better, or another word of the very port that said the old one.
    pub fn supersedes(&self, old: &Vector) -> bool {
        self < old || self.bridge.same_bridge(old.bridge) && self.port.number() == old.port.number()
    }
}

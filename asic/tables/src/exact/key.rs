//! Keys, and the words that stand for them in memory.

use super::MAX_FID;
use crate::index::mix;

/// What is looked up. Addresses in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A MAC address in a forwarding domain; `fid` ≤ [`MAX_FID`].
    Mac {
        /// Forwarding domain.
        fid: u16,
        /// The address.
        mac: [u8; 6],
    },
    /// An IPv4 host in a VRF.
    Host4 {
        /// Virtual router.
        vrf: u16,
        /// The address.
        addr: [u8; 4],
    },
    /// An IPv6 host in a VRF.
    Host6 {
        /// Virtual router.
        vrf: u16,
        /// The address.
        addr: [u8; 16],
    },
}

/// The three kinds of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// [`Key::Mac`]
    Mac,
    /// [`Key::Host4`]
    Host4,
    /// [`Key::Host6`]
    Host6,
}

impl Key {
    /// Which kind this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Key::Mac { .. } => Kind::Mac,
            Key::Host4 { .. } => Kind::Host4,
            Key::Host6 { .. } => Kind::Host6,
        }
    }
}

/// A key as the memory holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    /// kind (4 bits), FID (12) or VRF, MAC or IPv4 address
    pub(super) head: u64,
    /// IPv6 address, else 0
    pub(super) tail: [u64; 2],
}

const KIND_SHIFT: u32 = 60;
const KIND_MAC: u64 = 1;
const KIND_HOST4: u64 = 2;
const KIND_HOST6: u64 = 3;

impl Packed {
    #[inline]
    pub(super) fn mac(fid: u16, mac: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = mac;
        let m = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        Self {
            head: KIND_MAC << KIND_SHIFT | u64::from(fid & MAX_FID) << 48 | m,
            tail: [0; 2],
        }
    }
    #[inline]
    pub(super) fn host4(vrf: u16, addr: [u8; 4]) -> Self {
        let head =
            KIND_HOST4 << KIND_SHIFT | u64::from(vrf) << 32 | u64::from(u32::from_be_bytes(addr));
        Self { head, tail: [0; 2] }
    }
    #[inline]
    pub(super) fn host6(vrf: u16, addr: [u8; 16]) -> Self {
        let a = u128::from_be_bytes(addr);
        Self {
            head: KIND_HOST6 << KIND_SHIFT | u64::from(vrf),
            tail: [(a >> 64) as u64, a as u64],
        }
    }
    pub(super) fn of(key: &Key) -> Self {
        match *key {
            Key::Mac { fid, mac } => Self::mac(fid, mac),
            Key::Host4 { vrf, addr } => Self::host4(vrf, addr),
            Key::Host6 { vrf, addr } => Self::host6(vrf, addr),
        }
    }
    pub(super) fn key(&self) -> Key {
        match self.head >> KIND_SHIFT {
            KIND_MAC => {
                let [_, _, a, b, c, d, e, f] = self.head.to_be_bytes();
                Key::Mac {
                    fid: (self.head >> 48) as u16 & MAX_FID,
                    mac: [a, b, c, d, e, f],
                }
            }
            KIND_HOST4 => Key::Host4 {
                vrf: (self.head >> 32) as u16,
                addr: (self.head as u32).to_be_bytes(),
            },
            _ => {
                let a = u128::from(self.tail[0]) << 64 | u128::from(self.tail[1]);
                Key::Host6 {
                    vrf: self.head as u16,
                    addr: a.to_be_bytes(),
                }
            }
        }
    }
    #[inline]
    pub(super) fn wide(&self) -> bool {
        self.head >> KIND_SHIFT == KIND_HOST6
    }
    #[inline]
    pub(super) fn is_host(&self) -> bool {
        self.head >> KIND_SHIFT != KIND_MAC
    }
    #[inline]
    pub(super) fn hash(&self, seed: u64) -> u64 {
        let h = mix(self.head ^ seed);
        if self.wide() {
            mix(mix(h ^ self.tail[0]) ^ self.tail[1].rotate_left(17))
        } else {
            h
        }
    }
}

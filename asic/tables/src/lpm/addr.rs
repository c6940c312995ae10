//! Addresses as numbers: what the tree needs of them, for both families.

use crate::index::mix;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u128 {}
}

/// An address as a number in host byte order: `u32` or `u128`.
pub trait Addr: Copy + Eq + Ord + std::fmt::Debug + sealed::Sealed + 'static {
    /// Bits of an address.
    const BITS: u8;
    /// `n` bits (1 to 24) that start `at` bits from the left.
    fn bits(self, at: u8, n: u8) -> usize;
    /// The address with all bits beyond the first `plen` cleared.
    #[must_use]
    fn masked(self, plen: u8) -> Self;
    /// Leading bits that two addresses share.
    fn common(self, other: Self) -> u8;
    /// No bit set.
    const ZERO: Self;
    /// A hash.
    fn hash(self) -> u64;
}

impl Addr for u32 {
    const ZERO: Self = 0;
    #[inline]
    fn common(self, other: Self) -> u8 {
        (self ^ other).leading_zeros() as u8
    }
    const BITS: u8 = 32;
    #[inline]
    fn bits(self, at: u8, n: u8) -> usize {
        (self << at >> (32 - n)) as usize
    }
    #[inline]
    fn masked(self, plen: u8) -> Self {
        self & u32::MAX
            .checked_shl(u32::from(32u8.saturating_sub(plen)))
            .unwrap_or(0)
    }
    #[inline]
    fn hash(self) -> u64 {
        u64::from(self)
    }
}

impl Addr for u128 {
    const ZERO: Self = 0;
    #[inline]
    fn common(self, other: Self) -> u8 {
        (self ^ other).leading_zeros() as u8
    }
    const BITS: u8 = 128;
    #[inline]
    fn bits(self, at: u8, n: u8) -> usize {
        (self << at >> (128 - n)) as usize
    }
    #[inline]
    fn masked(self, plen: u8) -> Self {
        self & u128::MAX
            .checked_shl(u32::from(128u8.saturating_sub(plen)))
            .unwrap_or(0)
    }
    #[inline]
    fn hash(self) -> u64 {
        mix((self >> 64) as u64) ^ (self as u64)
    }
}

//! Addresses as strings of bits, most significant first.

/// An address type that prefixes are made of.
pub trait Bits: Copy + Eq + Ord + core::fmt::Debug + Default {
    /// Number of bits.
    const WIDTH: u8;
    /// Bit `i` counted from the most significant; 0 beyond the width.
    fn bit(self, i: u8) -> usize;
    /// Number of leading bits that two addresses share.
    fn common(self, other: Self) -> u8;
    /// The address with all bits from `len` on cleared.
    fn mask(self, len: u8) -> Self;
    /// From network byte order; IPv4 uses the first four bytes.
    fn from_bytes(b: &[u8; 16]) -> Self;
    /// To network byte order; the rest is zero.
    fn to_bytes(self) -> [u8; 16];
}

/// An IPv4 address, host byte order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct V4(pub u32);

/// An IPv6 address as four words, most significant first: four-byte alignment keeps trie nodes small.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct V6(pub [u32; 4]);

impl V6 {
    /// From a 128-bit number.
    pub fn from_u128(v: u128) -> V6 {
        V6([
            (v >> 96) as u32,
            (v >> 64) as u32,
            (v >> 32) as u32,
            v as u32,
        ])
    }

    /// As a 128-bit number.
    pub fn to_u128(self) -> u128 {
        let [a, b, c, d] = self.0;
        u128::from(a) << 96 | u128::from(b) << 64 | u128::from(c) << 32 | u128::from(d)
    }
}

impl Bits for V4 {
    const WIDTH: u8 = 32;

    fn bit(self, i: u8) -> usize {
        if i >= 32 {
            0
        } else {
            (self.0 >> (31 - i) & 1) as usize
        }
    }

    fn common(self, other: Self) -> u8 {
        (self.0 ^ other.0).leading_zeros() as u8
    }

    fn mask(self, len: u8) -> Self {
        V4(if len == 0 {
            0
        } else {
            self.0 & (u32::MAX << (32 - u32::from(len.min(32))))
        })
    }

    fn from_bytes(b: &[u8; 16]) -> Self {
        let [a, b, c, d, ..] = *b;
        V4(u32::from_be_bytes([a, b, c, d]))
    }

    fn to_bytes(self) -> [u8; 16] {
        let [a, b, c, d] = self.0.to_be_bytes();
        [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    }
}

impl Bits for V6 {
    const WIDTH: u8 = 128;

    fn bit(self, i: u8) -> usize {
        if i >= 128 {
            0
        } else {
            (self.0[usize::from(i / 32)] >> (31 - i % 32) & 1) as usize
        }
    }

    fn common(self, other: Self) -> u8 {
        (self.to_u128() ^ other.to_u128()).leading_zeros() as u8
    }

    fn mask(self, len: u8) -> Self {
        let v = self.to_u128();
        V6::from_u128(if len == 0 {
            0
        } else {
            v & (u128::MAX << (128 - u32::from(len.min(128))))
        })
    }

    fn from_bytes(b: &[u8; 16]) -> Self {
        V6::from_u128(u128::from_be_bytes(*b))
    }

    fn to_bytes(self) -> [u8; 16] {
        self.to_u128().to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_common_bits() {
        assert_eq!(V4(0xffff_ffff).mask(0), V4(0));
        assert_eq!(V4(0xffff_ffff).mask(24), V4(0xffff_ff00));
        assert_eq!(V4(0xffff_ffff).mask(32), V4(0xffff_ffff));
        assert_eq!(V4(0x0a00_0000).common(V4(0x0a00_0001)), 31);
        assert_eq!(V4(0x0a00_0000).bit(4), 1);
        let a = V6::from_u128(0x2001_0db8 << 96);
        assert_eq!(a.mask(16).to_u128(), 0x2001 << 112);
        assert_eq!(a.common(V6::from_u128(0x2001_0db9 << 96)), 31);
        assert_eq!(a.bit(2), 1);
        assert_eq!(V6::from_bytes(&a.to_bytes()), a);
    }
}

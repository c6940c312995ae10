//! Numbers that look random and follow from a seed: SplitMix64 (Steele, Lea, Flood 2014).

/// A generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed; any will do.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`; 0 for none.
    pub const fn below(&mut self, n: usize) -> usize {
        if n == 0 {
            return 0;
        }
        ((self.next() as u128 * n as u128) >> 64) as usize
    }

    /// True in so many of a thousand cases.
    pub const fn permille(&mut self, n: u16) -> bool {
        n > 0 && self.below(1000) < n as usize
    }
}

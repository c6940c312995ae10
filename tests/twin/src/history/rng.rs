//! Numbers from a seed: the same for ever, on every machine (SplitMix64, Steele and others, OOPSLA 2014).

/// The generator.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// From a seed; neighbouring seeds have nothing in common.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed ^ 0x7477_696e)
    }

    /// 64 random bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n` - 1; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        match n {
            0 => 0,
            n => (self.next() % n as u64) as usize,
        }
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, p: u64) -> bool {
        self.next() % 100 < p
    }

    /// One of them; the default if there are none.
    pub fn of<T: Clone + Default>(&mut self, all: &[T]) -> T {
        all.get(self.below(all.len())).cloned().unwrap_or_default()
    }

    /// A place, each as likely as its weight says.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let sum: u32 = weights.iter().sum();
        let mut at = self.below(sum as usize) as u32;
        for (n, w) in weights.iter().enumerate() {
            if at < *w {
                return n;
            }
            at -= w;
        }
        0
    }

    /// `n` of them, in their order.
    pub fn some<T: Clone>(&mut self, all: &[T], n: usize) -> Vec<T> {
        let mut left = all.to_vec();
        while left.len() > n {
            left.remove(self.below(left.len()));
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_numbers_for_ever() {
        // the published sequence of that seed
        let mut rng = Rng(1_234_567);
        assert_eq!(
            [rng.next(), rng.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.weighted(&[0, 0, 5, 0]), 2);
        assert_eq!(rng.some(&[1, 2, 3, 4], 2).len(), 2);
        assert_eq!(rng.of::<u8>(&[]), 0);
    }
}

//! Weighted multipath: hash-threshold selection (RFC 2992) over 32-bit flow hashes.
//!
//! ```text
//!   hash space 0 ───────────┬──────────────────────┬────────── 2³²
//!                member 0   │      member 1 (w=2)  │ member 2        boundary = ⌈2³² · Σ weights so far / Σ weights⌉
//! ```

/// The members of one group: where each one's share of the hashes ends, and what went out by it.
#[derive(Debug, Clone)]
pub struct Ways {
    /// First hash value that is *not* the member's, minus one, and its target.
    bounds: Box<[(u32, u32)]>,
    /// Packets that went out by each member.
    packets: Box<[u64]>,
}

impl Ways {
    /// Targets and their weights, none of which may be 0, in the order in which hashes find them.
    #[must_use]
    pub fn new(members: &[(u32, u32)]) -> Ways {
        let total: u64 = members.iter().map(|(_, w)| u64::from(*w)).sum();
        let mut sum = 0u64;
        let bounds = members.iter().map(|(target, w)| {
            sum += u64::from(*w);
            (((sum << 32).div_ceil(total.max(1)) - 1) as u32, *target)
        });
        Ways {
            bounds: bounds.collect(),
            packets: vec![0; members.len()].into_boxed_slice(),
        }
    }

    /// A flow's member and its target.
    #[inline]
    #[must_use]
    pub fn select(&self, hash: u32) -> Option<(u32, u32)> {
        let at = if self.bounds.len() <= 8 {
            self.bounds.iter().position(|b| hash <= b.0)?
        } else {
            self.bounds.partition_point(|b| b.0 < hash)
        };
        self.bounds.get(at).map(|b| (at as u32, b.1))
    }

    /// Packets that went out by each member.
    #[must_use]
    pub fn packets(&self) -> &[u64] {
        &self.packets
    }

    /// The same, to be set.
    pub fn packets_mut(&mut self) -> &mut [u64] {
        &mut self.packets
    }

    /// Packets went out by a member.
    #[inline]
    pub fn count(&mut self, member: u32, packets: u64) {
        if let Some(c) = self.packets.get_mut(member as usize) {
            *c += packets;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ways(weights: &[u32]) -> Ways {
        let members: Vec<(u32, u32)> = (10..).zip(weights.iter().copied()).collect();
        Ways::new(&members)
    }

    #[test]
    fn every_hash_has_a_member_and_bounds_are_sharp() {
        for weights in [&[1][..], &[1, 255], &[256; 9], &[7; 256]] {
            let g = ways(weights);
            assert_eq!(g.select(0), Some((0, 10)));
            let last = weights.len() as u32 - 1;
            assert_eq!(g.select(u32::MAX), Some((last, 10 + last)));
        }
        let g = ways(&[1, 1]);
        assert_eq!(g.select(0x7fff_ffff), Some((0, 10)));
        assert_eq!(g.select(0x8000_0000), Some((1, 11)));
        assert_eq!(Ways::new(&[]).select(7), None);
    }

    proptest! {
        /// As RFC 2992 says it, with fractions: the member in whose share the hash lies.
        #[test]
        fn select_equals_the_oracle(weights in prop::collection::vec(1u32..=256, 1..20), hash: u32) {
            let total: u128 = weights.iter().map(|w| u128::from(*w)).sum();
            let mut sum = 0;
            let naive = weights.iter().position(|w| {
                sum += u128::from(*w);
                u128::from(hash) * total < sum << 32
            });
            let found = ways(&weights).select(hash).map(|(at, _)| at as usize);
            prop_assert_eq!(found, naive);
        }
    }
}

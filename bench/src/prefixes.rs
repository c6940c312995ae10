//! Prefixes and addresses to measure with: same seed, same list.
//!
//! Lengths follow the public IPv4 table (per cent, about: /24 60, /23 10, /22 12, /21 5, /20 4.5, /19 2.6, /18 1.4,
//! /17 0.8, /16 1.4, shorter 0.8); prefixes cluster in allocated blocks of /12.

use std::collections::HashSet;

/// SplitMix64: small, good enough for test data, the same everywhere.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n` (n > 0).
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }
}

/// One IPv4 prefix with a next hop id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Host byte order, bits beyond `len` zero.
    pub addr: u32,
    /// 0..=32
    pub len: u8,
    /// 1..=250
    pub nexthop: u32,
}

const MIX: [(u8, u64); 10] = [
    (24, 600),
    (23, 100),
    (22, 120),
    (21, 50),
    (20, 45),
    (19, 26),
    (18, 14),
    (17, 8),
    (16, 14),
    (15, 8),
];

/// The network mask of a length, host byte order.
pub fn mask(len: u8) -> u32 {
    if len == 0 {
        0
    } else {
        u32::MAX << (32 - u32::from(len.min(32)))
    }
}

/// `count` different prefixes in unicast space.
pub fn table(count: usize, seed: u64) -> Vec<Prefix> {
    let mut rng = Rng::new(seed);
    let total: u64 = MIX.iter().map(|m| m.1).sum();
    // About 60 % of the /12 blocks of unicast space are in use
    let blocks: Vec<u32> = (0x010..0xdf0u32)
        .filter(|b| b >> 4 != 10 && b >> 4 != 127)
        .filter(|_| rng.below(10) < 6)
        .map(|b| b << 20)
        .collect();
    let mut seen = HashSet::with_capacity(count);
    let mut out = Vec::with_capacity(count);
    while out.len() < count {
        let mut pick = rng.below(total);
        let mut len = 24;
        for (l, w) in MIX {
            if pick < w {
                len = l;
                break;
            }
            pick -= w;
        }
        let block = blocks[rng.below(blocks.len() as u64) as usize];
        let addr = (block | (rng.bits() as u32 & 0x000f_ffff)) & mask(len);
        if seen.insert((addr, len)) {
            out.push(Prefix {
                addr,
                len,
                nexthop: (out.len() % 250 + 1) as u32,
            });
        }
    }
    out
}

/// Addresses uniform over the whole space.
pub fn uniform(count: usize, seed: u64) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    (0..count).map(|_| rng.bits() as u32).collect()
}

/// Addresses uniform over the prefixes, random inside each.
pub fn inside(prefixes: &[Prefix], count: usize, seed: u64) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    (0..count)
        .map(|_| {
            let p = prefixes[rng.below(prefixes.len() as u64) as usize];
            p.addr | (rng.bits() as u32 & !mask(p.len))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_repeatable_and_has_the_public_mix() {
        let a = table(20_000, 7);
        assert_eq!(a, table(20_000, 7));
        let n24 = a.iter().filter(|p| p.len == 24).count() as f64 / a.len() as f64;
        assert!((0.55..0.67).contains(&n24), "{n24}");
        assert!(a.iter().all(|p| p.addr & !mask(p.len) == 0));
    }

    #[test]
    fn inside_addresses_match_a_prefix() {
        let t = table(100, 1);
        for a in inside(&t, 1000, 2) {
            assert!(t.iter().any(|p| a & mask(p.len) == p.addr));
        }
    }
}

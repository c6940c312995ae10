//! Which way of several a flow takes: the kernel's hash of its addresses, and how ways share the hashes.

/// The sysctl `fib_multipath_hash_seed` that the recorder sets.
const SEED: u64 = 7;

/// Gives each its last hash, by weight; those without weight get none (`fib_rebalance`, `nh_hthr_group_rebalance`,
/// `rt6_multipath_upper_bound_set`).
pub fn bounds<'a>(ways: impl Iterator<Item = (&'a mut i64, u32)>) {
    let ways: Vec<(&mut i64, u32)> = ways.collect();
    let total: u64 = ways.iter().map(|(_, w)| u64::from(*w)).sum();
    let mut sum = 0;
    for (upper, weight) in ways {
        sum += u64::from(weight);
        *upper = match weight {
            0 => -1,
            _ => (((sum << 31) + total / 2) / total) as i64 - 1,
        };
    }
}

/// `fib_multipath_hash`, policy 0
pub fn flow4(source: u32, destination: u32) -> i64 {
    let (mut a, mut b) = (source.to_be_bytes(), destination.to_be_bytes());
    // `__flow_hash_consistentify` compares them as they stand in memory
    if u32::from_le_bytes(b) < u32::from_le_bytes(a) {
        std::mem::swap(&mut a, &mut b);
    }
    let mut keys = [0; 48];
    keys[36..40].copy_from_slice(&a);
    keys[40..44].copy_from_slice(&b);
    hash(&keys)
}

fn hash(keys: &[u8]) -> i64 {
    let key = SEED << 32 | SEED;
    let hash = siphash(key, key, keys) as u32;
    i64::from(hash.max(1) >> 1)
}

/// SipHash-2-4 (lib/siphash.c) of a whole number of words.
fn siphash(k0: u64, k1: u64, data: &[u8]) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let last = (data.len() as u64) << 56;
    let words = data.chunks_exact(8).map(|c| {
        let mut w = [0; 8];
        w.copy_from_slice(c);
        u64::from_le_bytes(w)
    });
    for m in words.chain([last]) {
        v[3] ^= m;
        round(&mut v);
        round(&mut v);
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of the paper: 8 bytes 00 01 … under the key 00 01 … 0f.
    #[test]
    fn siphash_as_in_its_paper() {
        let (k0, k1) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let data: Vec<u8> = (0..8).collect();
        assert_eq!(siphash(k0, k1, &data), 0x93f5_f579_9a93_2462);
        assert_eq!(siphash(k0, k1, &[]), 0x726f_db47_dd0e_0e31);
    }

    #[test]
    fn ways_share_by_weight() {
        let mut uppers = [0, 0, 0];
        let weights = [1, 0, 3];
        bounds(uppers.iter_mut().zip(weights));
        assert_eq!(uppers, [(1 << 29) - 1, -1, (1 << 31) - 1]);
    }
}

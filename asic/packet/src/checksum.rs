//! The Internet checksum: RFC 1071, incremental update by RFC 1624, completion of a partial one.

use crate::{Frame, PartialChecksum};

/// One's-complement sum of `b` as 16-bit big-endian words, folded, not inverted; an odd last byte is padded with zero.
#[inline]
pub fn sum(b: &[u8]) -> u16 {
    fold(add(0, b))
}

/// Adds `b` to an unfolded sum. Pieces must have even length, except the last.
#[inline]
pub fn add(start: u64, b: &[u8]) -> u64 {
    let mut s = start;
    let mut words = b.chunks_exact(4);
    for w in &mut words {
        let mut four = [0; 4];
        four.copy_from_slice(w);
        s += u64::from(u32::from_be_bytes(four));
    }
    match *words.remainder() {
        [a, b, c] => s + u64::from(u32::from_be_bytes([a, b, c, 0])),
        [a, b] => s + u64::from(u16::from_be_bytes([a, b])),
        [a] => s + u64::from(u16::from_be_bytes([a, 0])),
        _ => s,
    }
}

/// Folds carries until 16 bits are left.
#[inline]
pub fn fold(mut s: u64) -> u16 {
    while s > 0xffff {
        s = (s >> 16) + (s & 0xffff);
    }
    s as u16
}

/// Is the checksum of a 20-byte IPv4 header right?
#[inline]
pub fn ip4_header_ok(h: &[u8; 20]) -> bool {
    sum(h) == 0xffff
}

/// Computes and writes the checksum of an IPv4 header (`h` is the header with options, nothing behind).
pub fn ip4_set(h: &mut [u8]) {
    if h.len() < 20 {
        return;
    }
    put16(h, 10, 0);
    let c = !sum(h);
    put16(h, 10, c);
}

/// RFC 1624 equation 3: the new checksum after one 16-bit word changed from `old` to `new`.
#[inline]
pub fn update(check: u16, old: u16, new: u16) -> u16 {
    let s = u32::from(!check) + u32::from(!old) + u32::from(new);
    let s = (s >> 16) + (s & 0xffff);
    !(((s >> 16) + (s & 0xffff)) as u16)
}

/// Unfolded sum of a TCP or UDP pseudo header. Addresses both 4 or both 16 bytes long.
pub fn pseudo(src: &[u8], dst: &[u8], protocol: u8, len: u32) -> u64 {
    add(add(0, src), dst) + u64::from(protocol) + u64::from(len)
}

/// Computes a partial checksum to its end: sums from `csum.start` to the end of the frame (the pseudo header's sum is
/// already in the field) and writes the result. A UDP sum of zero becomes 0xffff (RFC 768; harmless for TCP, where both
/// mean the same). False: the offsets point outside of the frame, nothing was written.
#[must_use]
pub fn complete_at(b: &mut [u8], csum: PartialChecksum) -> bool {
    let start = usize::from(csum.start);
    let at = start + usize::from(csum.offset);
    if at + 2 > b.len() {
        return false;
    }
    let c = match !sum(b.get(start..).unwrap_or_default()) {
        0 => 0xffff,
        c => c,
    };
    put16(b, at, c);
    true
}

/// Completes a frame's partial checksum, if it has one, and takes the mark off. Not for GSO frames: those are
/// segmented. False: the offsets were nonsense (the mark is taken off all the same).
pub fn complete(frame: &mut Frame<'_>) -> bool {
    match frame.offload.csum.take() {
        Some(c) => complete_at(frame.bytes_mut(), c),
        None => true,
    }
}

#[inline]
pub(crate) fn put16(b: &mut [u8], at: usize, v: u16) {
    if let Some(field) = b.get_mut(at..at + 2) {
        field.copy_from_slice(&v.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Textbook version, one word at a time.
    fn naive(b: &[u8]) -> u16 {
        let mut s = 0u32;
        for (i, x) in b.iter().enumerate() {
            s += u32::from(*x) << if i % 2 == 0 { 8 } else { 0 };
            if s > 0xffff {
                s -= 0xffff;
            }
        }
        s as u16
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn equals_the_textbook(b in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(sum(&b), naive(&b));
        }

        /// RFC 1624: updating equals computing anew, for a header whose TTL and protocol word changes.
        #[test]
        fn incremental_equals_full(mut h in proptest::collection::vec(any::<u8>(), 20), ttl: u8) {
            h[0] = 0x45;
            ip4_set(&mut h);
            let old = u16::from_be_bytes([h[8], h[9]]);
            let check = u16::from_be_bytes([h[10], h[11]]);
            h[8] = ttl;
            let new = u16::from_be_bytes([h[8], h[9]]);
            let quick = update(check, old, new);
            put16(&mut h, 10, quick);
            prop_assert_eq!(sum(&h), 0xffff);
            // never the form that a full computation would not give, but for an all-zero header
            ip4_set(&mut h);
            prop_assert_eq!(u16::from_be_bytes([h[10], h[11]]), quick);
        }

        /// A partial checksum completed equals etherparse's.
        #[test]
        fn completion_equals_etherparse(tcp: bool, v6: bool, payload in proptest::collection::vec(any::<u8>(), 0..90)) {
            let b = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]);
            let b = if v6 { b.ipv6([1; 16], [2; 16], 9) } else { b.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9) };
            let mut want = Vec::new();
            if tcp { b.tcp(1, 2, 3, 4).write(&mut want, &payload).unwrap() } else { b.udp(1, 2).write(&mut want, &payload).unwrap() }
            let start = if v6 { 54 } else { 34 };
            let offset = if tcp { 16 } else { 6 };
            let proto = if tcp { 6 } else { 17 };
            let mut f = want.clone();
            let len = (f.len() - start) as u32;
            let p = if v6 { pseudo(&[1; 16], &[2; 16], proto, len) } else { pseudo(&[10, 0, 0, 1], &[10, 0, 0, 2], proto, len) };
            put16(&mut f, start + offset, fold(p));
            let ok = complete_at(&mut f, PartialChecksum { start: start as u16, offset: offset as u16 });
            prop_assert!(ok);
            prop_assert_eq!(f, want);
        }
    }

    #[test]
    fn offsets_outside_are_refused() {
        let mut b = [0u8; 20];
        assert!(!complete_at(
            &mut b,
            PartialChecksum {
                start: 14,
                offset: 5
            }
        ));
        assert!(!complete_at(
            &mut b,
            PartialChecksum {
                start: u16::MAX,
                offset: u16::MAX
            }
        ));
    }
}

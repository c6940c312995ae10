//! What routing, and rules, do to a packet.

use crate::checksum;
use crate::ether::Mac;

/// Writes destination and source address.
#[inline]
pub fn set_macs(frame: &mut [u8], dst: &Mac, src: &Mac) {
    if let Some(head) = frame.first_chunk_mut::<12>() {
        let (d, s) = head.split_at_mut(6);
        d.copy_from_slice(dst);
        s.copy_from_slice(src);
    }
}

/// Takes one off the IPv4 TTL and updates the checksum (RFC 1624). `b` starts at the IP header.
#[inline]
pub fn decrement_ttl(b: &mut [u8]) {
    if let Some(h) = b.first_chunk_mut::<20>() {
        let old = u16::from_be_bytes([h[8], h[9]]);
        let new = old.wrapping_sub(0x0100);
        let check = checksum::update(u16::from_be_bytes([h[10], h[11]]), old, new);
        h[8] = h[8].wrapping_sub(1);
        let [c0, c1] = check.to_be_bytes();
        h[10] = c0;
        h[11] = c1;
    }
}

/// Takes one off the IPv6 hop limit. `b` starts at the IP header.
#[inline]
pub fn decrement_hop_limit(b: &mut [u8]) {
    if let Some(hops) = b.get_mut(7) {
        *hops = hops.wrapping_sub(1);
    }
}

/// Writes the DSCP of IPv4 and updates the checksum; ECN stays. `b` starts at the IP header.
pub fn set_dscp4(b: &mut [u8], dscp: u8) {
    if let Some(h) = b.first_chunk_mut::<20>() {
        let tos = dscp << 2 | h[1] & 3;
        let (old, new) = ([h[0], h[1]], [h[0], tos]);
        let check = checksum::update(
            u16::from_be_bytes([h[10], h[11]]),
            u16::from_be_bytes(old),
            u16::from_be_bytes(new),
        );
        h[1] = tos;
        [h[10], h[11]] = check.to_be_bytes();
    }
}

/// Writes the DSCP of IPv6; ECN stays. `b` starts at the IP header.
pub fn set_dscp6(b: &mut [u8], dscp: u8) {
    if let Some([a, b, ..]) = b.first_chunk_mut::<2>() {
        *a = *a & 0xf0 | dscp >> 2;
        *b = *b & 0x3f | dscp << 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dscp_leaves_all_else() {
        for (dscp, tos) in (0..64u8).flat_map(|d| [0u8, 1, 3, 0xb8, 0xff].map(|t| (d, t))) {
            let mut h = [
                0x45, tos, 0, 40, 1, tos, 0x40, 0, 9, 6, 0, 0, 10, 0, tos, 1, 10, 9, 8, 7,
            ];
            checksum::ip4_set(&mut h);
            set_dscp4(&mut h, dscp);
            assert_eq!(h[1], dscp << 2 | tos & 3);
            let quick = [h[10], h[11]];
            checksum::ip4_set(&mut h);
            assert_eq!(quick, [h[10], h[11]], "{dscp} {tos}");
            let mut six = (0x6000_0000 | u32::from(tos) << 20 | 0x000a_bcde).to_be_bytes();
            set_dscp6(&mut six, dscp);
            let traffic = u32::from(dscp << 2 | tos & 3);
            let want = 0x6000_0000 | traffic << 20 | 0x000a_bcde;
            assert_eq!(u32::from_be_bytes(six), want, "{dscp} {tos}");
        }
        set_dscp4(&mut [0; 5], 1);
        set_dscp6(&mut [0], 1);
    }

    #[test]
    fn checksum_stays_right_for_every_ttl() {
        for ttl in 1..=255u8 {
            for salt in [0u8, 1, 0x7f, 0xff] {
                let mut h = [
                    0x45, 0, 0, 40, 1, salt, 0x40, 0, ttl, 6, 0, 0, 10, 0, salt, 1, 10, 9, 8, 7,
                ];
                checksum::ip4_set(&mut h);
                decrement_ttl(&mut h);
                assert_eq!(h[8], ttl - 1);
                assert!(checksum::ip4_header_ok(&h), "ttl {ttl} salt {salt}");
                let quick = [h[10], h[11]];
                checksum::ip4_set(&mut h);
                assert_eq!(quick, [h[10], h[11]]);
            }
        }
        decrement_ttl(&mut [0; 5]);
        decrement_hop_limit(&mut []);
    }
}

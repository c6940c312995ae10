// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum (RFC 1071).

/// Of all parts, each of which but the last one has an even length. 0: the checksum in it is right.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for two in part.chunks(2) {
            let word = match two {
                [a, b] => u16::from_be_bytes([*a, *b]),
                [a] => u16::from_be_bytes([*a, 0]),
                _ => 0,
            };
            sum += u64::from(word);
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(u16::try_from(sum).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 3.
    #[test]
    fn as_in_the_rfc() {
        let all = [0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&[&all]), !0xddf2);
        assert_eq!(checksum(&[&all[..2], &all[2..]]), !0xddf2);
        assert_eq!(checksum(&[&all, &(!0xddf2u16).to_be_bytes()]), 0);
        assert_eq!(checksum(&[&[1]]), !0x0100);
    }
}

//! Traffic classes: which of a port's eight queues a frame is for, by what it says of itself when it comes in.

/// Queues of a port; class 7 is the most urgent one.
pub const CLASSES: usize = 8;

/// What of a frame is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Nothing: every frame is best effort.
    None,
    /// The priority of the outer 802.1Q tag (PCP).
    Pcp,
    /// The DSCP of an IP packet.
    Dscp,
    /// The tag's priority if there is a tag, else the DSCP.
    #[default]
    Both,
}

/// Best effort: IEEE 802.1Q table 8-5, priority 0.
const BEST_EFFORT: u8 = 1;
const TPID_C: [u8; 2] = [0x81, 0x00];
const TPID_S: [u8; 2] = [0x88, 0xa8];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// Class of an 802.1Q priority, with eight queues (IEEE 802.1Q table 8-5): best effort (0) comes before background (1).
#[inline]
pub fn class_of_priority(priority: u8) -> u8 {
    match priority & 7 {
        0 => 1,
        1 => 0,
        p => p,
    }
}

/// Class of a frame as it came in. DSCP counts by its three upper bits, the class selector (RFC 2474 §4.2.2).
#[inline]
pub fn class_of(bytes: &[u8], trust: Trust) -> u8 {
    if trust == Trust::None {
        return BEST_EFFORT;
    }
    let Some(head) = bytes.get(12..16) else {
        return BEST_EFFORT;
    };
    let [t0, t1, b0, b1] = *head else {
        return BEST_EFFORT;
    };
    if [t0, t1] == TPID_C || [t0, t1] == TPID_S {
        if trust != Trust::Dscp {
            return class_of_priority(b0 >> 5);
        }
        return bytes.get(16..20).map_or(BEST_EFFORT, |inner| match inner {
            [i0, i1, a, b] => by_dscp([*i0, *i1], *a, *b),
            _ => BEST_EFFORT,
        });
    }
    match trust {
        Trust::Pcp => BEST_EFFORT,
        _ => by_dscp([t0, t1], b0, b1),
    }
}

/// `a` and `b`: the first two bytes behind the EtherType.
#[inline]
fn by_dscp(ethertype: [u8; 2], a: u8, b: u8) -> u8 {
    match ethertype {
        IPV4 => class_of_priority(b >> 5),
        // traffic class: lower half of the first byte, upper half of the second
        IPV6 => class_of_priority((a & 0x0f) >> 1),
        _ => BEST_EFFORT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        let mut f = vec![0u8; 12];
        for p in parts {
            f.extend_from_slice(p);
        }
        f.resize(64, 0);
        f
    }

    #[test]
    fn priorities_and_code_points() {
        let tagged = |pcp: u8, rest: &[&[u8]]| {
            let tci = [pcp << 5, 10];
            let mut parts: Vec<&[u8]> = vec![&TPID_C, &tci];
            parts.extend_from_slice(rest);
            frame(&parts)
        };
        for (priority, class) in [(0, 1), (1, 0), (2, 2), (5, 5), (7, 7)] {
            assert_eq!(class_of_priority(priority), class);
            let f = tagged(priority, &[&IPV4, &[0x45, 0xb8]]);
            assert_eq!(class_of(&f, Trust::Both), class);
            assert_eq!(class_of(&f, Trust::Pcp), class);
            assert_eq!(
                class_of(&f, Trust::Dscp),
                5,
                "the IP packet behind it is EF"
            );
            assert_eq!(class_of(&f, Trust::None), BEST_EFFORT);
        }
        // EF is 46: selector 5. IPv6 spreads it over two bytes.
        assert_eq!(class_of(&frame(&[&IPV4, &[0x45, 46 << 2]]), Trust::Both), 5);
        assert_eq!(class_of(&frame(&[&IPV6, &[0x6b, 0x80]]), Trust::Both), 5);
        assert_eq!(class_of(&frame(&[&IPV6, &[0x60, 0x00]]), Trust::Dscp), 1);
        // CS1 is less than best effort (RFC 3662)
        assert_eq!(class_of(&frame(&[&IPV4, &[0x45, 8 << 2]]), Trust::Both), 0);
        assert_eq!(class_of(&frame(&[&IPV4, &[0x45, 46 << 2]]), Trust::Pcp), 1);
        assert_eq!(
            class_of(&frame(&[&[0x08, 0x06], &[0xff, 0xff]]), Trust::Both),
            1
        );
        for short in 0..16 {
            assert_eq!(class_of(&vec![0xff; short], Trust::Both), BEST_EFFORT);
        }
    }
}

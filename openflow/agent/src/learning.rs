// SPDX-License-Identifier: Apache-2.0
//! What an ordinary switch knows: which address is behind which port, by VLAN. For `NORMAL` and for a switch without a
//! controller.

use std::collections::BTreeMap;

use tandem_packet::ether;

/// Addresses at most; further ones are not learned, and flooded to.
pub const ADDRESSES: usize = 16_384;
/// IEEE 802.1D's ageing time.
const AGE_NS: u64 = 300_000_000_000;

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// To one port.
    To(u32),
    /// To all others.
    Everywhere,
    /// Nowhere.
    Nowhere,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    port: u32,
    at_ns: u64,
}

/// Addresses by VLAN (0: untagged) and address.
#[derive(Debug, Default)]
pub struct Learning {
    known: BTreeMap<(u16, [u8; 6]), Seen>,
}

fn vlan(frame: &[u8]) -> u16 {
    match frame.get(12..16) {
        Some(&[0x81, 0x00, a, b]) | Some(&[0x88, 0xa8, a, b]) => u16::from_be_bytes([a, b]) & 0xfff,
        _ => 0,
    }
}

/// None: it is no frame, or between neighbours alone (802.1D 7.12.6).
fn destination(frame: &[u8]) -> Option<&[u8; 6]> {
    let dst = frame.first_chunk::<6>().filter(|_| frame.len() >= 12)?;
    (!ether::is_link_local(dst)).then_some(dst)
}

impl Learning {
    /// Learns a frame's source, unless it came from no port, and says where it goes.
    pub fn see(&mut self, port: Option<u32>, frame: &[u8], now_ns: u64) -> Goes {
        if let Some(port) = port
            && destination(frame).is_some()
            && let Some(src) = frame.get(6..).and_then(|f| f.first_chunk::<6>())
            && ether::is_valid_source(src)
        {
            let vid = vlan(frame);
            let room = self.known.len() < ADDRESSES;
            let seen = Seen {
                port,
                at_ns: now_ns,
            };
            match self.known.get_mut(&(vid, *src)) {
                Some(old) => *old = seen,
                None if room => {
                    self.known.insert((vid, *src), seen);
                }
                None => {}
            }
        }
        self.goes(frame, now_ns)
    }

    /// Where a frame would go.
    pub fn goes(&self, frame: &[u8], now_ns: u64) -> Goes {
        let Some(dst) = destination(frame) else {
            return Goes::Nowhere;
        };
        match self.known.get(&(vlan(frame), *dst)) {
            Some(s) if now_ns.saturating_sub(s.at_ns) <= AGE_NS => Goes::To(s.port),
            _ => Goes::Everywhere,
        }
    }

    /// A port is gone, or its link.
    pub fn forget_port(&mut self, port: u32) {
        self.known.retain(|_, s| s.port != port);
    }

    /// Forgets what is too old.
    pub fn expire(&mut self, now_ns: u64) {
        self.known
            .retain(|_, s| now_ns.saturating_sub(s.at_ns) <= AGE_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(dst: u8, src: u8, vid: Option<u16>) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src];
        if let Some(v) = vid {
            f.extend([0x81, 0]);
            f.extend(v.to_be_bytes());
        }
        f.extend([8, 0, 1, 2, 3]);
        f
    }

    #[test]
    fn addresses_are_learned_by_vlan_age_and_go_with_their_port() {
        let mut l = Learning::default();
        assert_eq!(l.see(Some(1), &frame(9, 1, None), 0), Goes::Everywhere);
        assert_eq!(l.see(Some(2), &frame(1, 2, None), 0), Goes::To(1));
        assert_eq!(l.see(Some(2), &frame(1, 2, Some(5)), 0), Goes::Everywhere);
        assert_eq!(l.see(None, &frame(2, 7, None), 0), Goes::To(2));
        assert_eq!(l.see(None, &frame(7, 2, None), 0), Goes::Everywhere);
        assert_eq!(
            l.see(None, &frame(1, 2, None), AGE_NS + 1),
            Goes::Everywhere
        );
        l.forget_port(1);
        assert_eq!(l.see(None, &frame(1, 2, None), 0), Goes::Everywhere);
        let mut neighbour = frame(1, 2, None);
        neighbour[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0]);
        assert_eq!(l.see(Some(1), &neighbour, 0), Goes::Nowhere);
        assert_eq!(l.see(Some(1), &[1, 2, 3], 0), Goes::Nowhere);
        l.expire(AGE_NS + 1);
        assert!(l.known.is_empty());
    }
}

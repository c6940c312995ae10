//! Who takes the slow path: routed packets that the chip sent to the CPU, by destination.
//!
//! `explain` answers with it how many packets a route or a neighbour has cost the CPU so far. Bounded: a
//! destination beyond the limit is counted under *others*; now and then those that were seen once
//! make room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use tandem_abi::raw;

/// Where a packet came in: from it follows whose routes the kernel looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Ingress port.
    pub port: u16,
    /// The chip's domain, 0 = none.
    pub fid: u16,
    /// VLAN of its tag, 0 = none.
    pub vid: u16,
}

/// Destinations counted one by one at most.
const DESTINATIONS: usize = 4096;

#[derive(Debug, Default)]
struct Counts {
    by_destination: HashMap<(Place, IpAddr), u64>,
    others: u64,
}

/// Counters by destination since start.
#[derive(Debug, Default)]
pub struct SlowPath(Mutex<Counts>);

/// Reasons that a route or a neighbour is to blame for.
fn counts(reason: u16) -> bool {
    matches!(
        reason,
        raw::TND_TRAP_UNRESOLVED
            | raw::TND_TRAP_LPM_MISS
            | raw::TND_TRAP_ROUTE
            | raw::TND_TRAP_CONNECTED
            | raw::TND_TRAP_UNSUPPORTED
    )
}

/// Destination of an IP packet in an Ethernet frame with at most one tag, and that tag's VLAN.
fn destination(frame: &[u8]) -> Option<(u16, IpAddr)> {
    let ethertype = |at: usize| -> Option<u16> {
        let b = frame.get(at..at + 2)?;
        Some(u16::from_be_bytes(b.try_into().ok()?))
    };
    let (at, vid) = match ethertype(12)? {
        0x8100 | 0x88a8 => (16, ethertype(14)? & 0xfff),
        _ => (12, 0),
    };
    let packet = frame.get(at + 2..)?;
    match ethertype(at)? {
        0x0800 => {
            let b: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            Some((vid, IpAddr::from(b)))
        }
        0x86dd => {
            let b: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            Some((vid, IpAddr::from(b)))
        }
        _ => None,
    }
}

impl SlowPath {
    /// Counts a packet that came for `reason` by this port, in this domain of the chip (0: none).
    pub fn note(&self, reason: u16, port: u16, fid: u16, frame: &[u8]) {
        if !counts(reason) {
            return;
        }
        let Some((vid, to)) = destination(frame) else {
            return;
        };
        let to = (Place { port, fid, vid }, to);
        let mut c = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(n) = c.by_destination.get_mut(&to) {
            *n += 1;
            return;
        }
        if c.by_destination.len() >= DESTINATIONS {
            c.others += 1;
            if c.others.is_multiple_of(DESTINATIONS as u64) {
                let before = c.by_destination.len();
                c.by_destination.retain(|_, n| *n > 1);
                c.others += (before - c.by_destination.len()) as u64;
            }
            return;
        }
        c.by_destination.insert(to, 1);
    }

    /// Packets from places to destinations that `matches` says yes to.
    pub fn count(&self, mut matches: impl FnMut(Place, IpAddr) -> bool) -> u64 {
        // copied first: what `matches` asks may take a while
        let all: Vec<((Place, IpAddr), u64)> = {
            let c = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            c.by_destination.iter().map(|(a, n)| (*a, *n)).collect()
        };
        all.into_iter()
            .filter(|((place, a), _)| matches(*place, *a))
            .map(|(_, n)| n)
            .sum()
    }

    /// Packets that were not counted by destination.
    pub fn others(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4(to: [u8; 4]) -> Vec<u8> {
        let mut f = vec![0; 12];
        f.extend_from_slice(&[8, 0]);
        f.extend_from_slice(&[0; 16]);
        f.extend_from_slice(&to);
        f
    }

    #[test]
    fn counted_by_destination_and_bounded() {
        let s = SlowPath::default();
        for _ in 0..3 {
            s.note(raw::TND_TRAP_ROUTE, 1, 0, &v4([10, 0, 0, 1]));
        }
        s.note(raw::TND_TRAP_ROUTE, 2, 0, &v4([10, 0, 0, 1]));
        s.note(raw::TND_TRAP_ARP, 1, 0, &v4([10, 0, 0, 1]));
        let first = |p: Place, a| p.port == 1 && a == IpAddr::from([10, 0, 0, 1]);
        assert_eq!(s.count(first), 3);
        assert_eq!(s.count(|_, a| a == IpAddr::from([10, 0, 0, 1])), 4);
        for n in 0..3 * DESTINATIONS as u32 {
            let frame = v4((0x1400_0000 + n).to_be_bytes());
            s.note(raw::TND_TRAP_LPM_MISS, 3, 7, &frame);
        }
        // a flood of others costs the one that counts nothing
        assert_eq!(s.count(first), 3);
        assert_eq!(
            s.count(|_, _| true) + s.others(),
            4 + 3 * DESTINATIONS as u64
        );
    }

    #[test]
    fn tags_are_skipped() {
        let mut f = v4([10, 0, 0, 1]);
        f.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(destination(&f), Some((5, IpAddr::from([10, 0, 0, 1]))));
    }

    proptest! {
        #[test]
        fn any_frame_is_read(frame in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = destination(&frame);
        }
    }
}

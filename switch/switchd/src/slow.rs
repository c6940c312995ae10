//! Who takes the slow path: routed packets that the chip sent to the CPU, by destination.
//!
//! `explain` answers with it how many packets a route or a neighbour has cost the CPU so far. Bounded: a
//! destination beyond the limit is counted under *others*; now and then those that were seen once
//! make room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use tandem_abi::raw;

/// Destinations counted one by one at most.
const DESTINATIONS: usize = 4096;

#[derive(Debug, Default)]
struct Counts {
    by_destination: HashMap<IpAddr, u64>,
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

/// Destination of an IP packet in an Ethernet frame with at most one tag.
fn destination(frame: &[u8]) -> Option<IpAddr> {
    let ethertype = |at: usize| -> Option<u16> {
        let b = frame.get(at..at + 2)?;
        Some(u16::from_be_bytes(b.try_into().ok()?))
    };
    let at = match ethertype(12)? {
        0x8100 | 0x88a8 => 16,
        _ => 12,
    };
    let packet = frame.get(at + 2..)?;
    match ethertype(at)? {
        0x0800 => {
            let b: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            Some(IpAddr::from(b))
        }
        0x86dd => {
            let b: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            Some(IpAddr::from(b))
        }
        _ => None,
    }
}

impl SlowPath {
    /// Counts a packet that came for `reason`.
    pub fn note(&self, reason: u16, frame: &[u8]) {
        if !counts(reason) {
            return;
        }
        let Some(to) = destination(frame) else {
            return;
        };
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

    /// Packets to destinations that `matches` says yes to.
    pub fn count(&self, mut matches: impl FnMut(IpAddr) -> bool) -> u64 {
        // copied first: what `matches` asks may take a while
        let all: Vec<(IpAddr, u64)> = {
            let c = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            c.by_destination.iter().map(|(a, n)| (*a, *n)).collect()
        };
        all.into_iter()
            .filter(|(a, _)| matches(*a))
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
            s.note(raw::TND_TRAP_ROUTE, &v4([10, 0, 0, 1]));
        }
        s.note(raw::TND_TRAP_ARP, &v4([10, 0, 0, 1]));
        assert_eq!(s.count(|a| a == IpAddr::from([10, 0, 0, 1])), 3);
        for n in 0..3 * DESTINATIONS as u32 {
            s.note(raw::TND_TRAP_LPM_MISS, &v4((0x1400_0000 + n).to_be_bytes()));
        }
        // a flood of others costs the one that counts nothing
        assert_eq!(s.count(|a| a == IpAddr::from([10, 0, 0, 1])), 3);
        assert_eq!(s.count(|_| true) + s.others(), 3 + 3 * DESTINATIONS as u64);
    }

    #[test]
    fn tags_are_skipped() {
        let mut f = v4([10, 0, 0, 1]);
        f.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(destination(&f), Some(IpAddr::from([10, 0, 0, 1])));
    }

    proptest! {
        #[test]
        fn any_frame_is_read(frame in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = destination(&frame);
        }
    }
}

//! What became of a probe: which frame is a copy of it, and which one the kernel made.

use crate::history::probe_of;
use crate::recording::{Answer, Bytes, Out, Probe};
use std::collections::HashMap;

const ETHER: usize = 14;
/// So many errors of routes an address gets at once (net/ipv4/route.c `ip_rt_error_burst` / `ip_rt_error_cost`).
const ERRORS: u32 = 5;

/// Answers of one rest.
#[derive(Debug, Default)]
pub(super) struct Got {
    pub answers: Vec<Answer>,
    /// Frames that say of which probe they come.
    pub frames: u64,
    /// Others.
    pub other: u64,
}

/// How many errors of routes each IPv4 address may have had.
pub(super) type Errors = HashMap<[u8; 4], u32>;

/// Is `out` the probe itself, forwarded: switched, or routed with its hop count changed? Otherwise the kernel made it.
#[must_use]
pub fn is_copy(probe: &[u8], out: &[u8]) -> bool {
    let (a, b) = (untagged(probe), untagged(out));
    if a.is_empty() || a.len() != b.len() {
        return false;
    }
    // what a router changes: hop count and, in IPv4, checksum
    let changed: &[usize] = match a.first_chunk() {
        Some([8, 0]) => &[10, 12, 13],
        Some([0x86, 0xdd]) => &[9],
        _ => &[],
    };
    a.iter()
        .zip(b)
        .enumerate()
        .all(|(n, (x, y))| x == y || changed.contains(&n))
}

/// Its VLAN tag's number; 0: it has none.
#[must_use]
pub fn vid(frame: &[u8]) -> u16 {
    match frame.get(ETHER - 2..) {
        Some([0x81, 0, high, low, ..]) => u16::from_be_bytes([*high, *low]) & 0xfff,
        _ => 0,
    }
}

/// From its type on, without a VLAN tag.
#[must_use]
pub fn untagged(frame: &[u8]) -> &[u8] {
    match frame.get(ETHER - 2..) {
        Some([0x81, 0, _, _, rest @ ..]) => rest,
        rest => rest.unwrap_or(&[]),
    }
}

/// Is it an ICMP error that the kernel counts by whom it goes to (net/ipv4/route.c `ip_error`): no route, unreachable,
/// prohibited?
#[must_use]
pub fn is_route_error(frame: &[u8]) -> bool {
    let ip = untagged(frame);
    ip.get(..2) == Some(&[8, 0])
        && ip.get(2 + 9) == Some(&1)
        && ip.get(2 + 20) == Some(&3)
        && matches!(ip.get(2 + 21), Some(0 | 1 | 13))
}

fn source(frame: &[u8]) -> Option<[u8; 4]> {
    let ip = untagged(frame);
    if ip.get(..2) != Some(&[8, 0]) {
        return None;
    }
    ip.get(2 + 12..2 + 16)?.first_chunk().copied()
}

impl Got {
    pub fn new(probes: usize) -> Self {
        Self {
            answers: vec![Answer::default(); probes],
            ..Self::default()
        }
    }

    /// A frame came out at a port.
    pub fn take(&mut self, probes: &[Probe], port: u16, frame: &[u8]) {
        let found = probe_of(frame).and_then(|n| Some((self.answers.get_mut(n)?, probes.get(n)?)));
        let Some((answer, probe)) = found else {
            self.other += 1;
            return;
        };
        self.frames += 1;
        answer.out.push(Out {
            port,
            frame: Bytes(frame.to_vec()),
            made: !is_copy(&probe.frame.0, frame),
        });
    }

    /// That was all: sorts them, and notes whose errors may be kept back. One that does not come out, because there is no
    /// way back, counts as well; so every probe without an answer may have been one.
    pub fn end(&mut self, probes: &[Probe], errors: &mut Errors) {
        for (answer, probe) in self.answers.iter_mut().zip(probes) {
            answer.out.sort();
            let Some(source) = source(&probe.frame.0) else {
                continue;
            };
            let nothing = answer.out.is_empty();
            if nothing
                || answer
                    .out
                    .iter()
                    .any(|o| o.made && is_route_error(&o.frame.0))
            {
                let had = errors.entry(source).or_default();
                answer.limited = nothing && *had >= ERRORS;
                *had += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_probe_but_for_what_a_router_changes() {
        let mut probe = vec![7; 60];
        (probe[12], probe[13]) = (8, 0);
        let mut out = probe.clone();
        out[..12].fill(9);
        (out[22], out[24], out[25]) = (6, 1, 2);
        assert!(is_copy(&probe, &out));
        out[30] = 0;
        assert!(!is_copy(&probe, &out), "another destination");
        let mut arp = probe.clone();
        arp[13] = 6;
        let mut out = arp.clone();
        out[22] = 0;
        assert!(!is_copy(&arp, &out), "no router has changed that");
        assert!(!is_copy(&probe, &probe[..59]));
        let mut tagged = probe.clone();
        tagged.splice(12..12, [0x81, 0, 0, 10]);
        assert!(
            is_copy(&probe, &tagged) && is_copy(&tagged, &probe),
            "in another VLAN"
        );
    }

    /// An address gets five errors, then it is not known any more whether there would be one.
    #[test]
    fn errors_are_counted_by_whom_they_go_to() {
        let mut frame = vec![0; 60];
        (frame[12], frame[13], frame[26]) = (8, 0, 9);
        let probes = [Probe {
            port: 1,
            frame: Bytes(frame),
        }];
        let mut errors = Errors::new();
        for n in 0..8 {
            let mut got = Got::new(1);
            got.end(&probes, &mut errors);
            assert_eq!(got.answers[0].limited, n >= 5, "{n}");
        }
    }
}

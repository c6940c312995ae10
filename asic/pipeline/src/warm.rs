//! Looking ahead: brings what a burst's lookups will need into the cache.
//!
//! One lookup is a chain of loads, each of which waits for the one before; the lookups of different frames are
//! independent. A pass over a burst that does nothing but lookups lets the processor wait for many of them at once, so
//! [`process`](crate::process) then finds its lines near. Answers don't depend on it.

use std::hint::black_box;

use tandem_abi::raw;
use tandem_packet::{EtherType, Mac};
use tandem_tables::exact::Seen;
use tandem_tables::lpm::Answer;

use crate::state::{State, Untagged};

/// Frames of a burst that are looked at.
const MANY: usize = 128;

/// What was found out about a frame ahead. It saves time and changes no answer: whatever has changed since, or belongs to
/// another frame, is looked up again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hint {
    /// Source address in the domain of untagged frames.
    pub(crate) src: Seen,
    /// Destination.
    pub(crate) dst: Seen,
}

/// The router that frames of a port meet.
#[derive(Debug, Clone, Copy)]
struct Router {
    mac: Mac,
    vrf: u16,
    v4: bool,
}

/// What the frames of a burst will be looked up by, and what was found. With 900,000 routes a burst that was seen ahead is
/// processed more than twice as fast. Frames beyond 128 are not looked at.
#[derive(Debug, Clone)]
pub struct Ahead {
    router: Option<Router>,
    /// Domain of untagged frames, 0 = none.
    fid: u16,
    sources: [Mac; MANY],
    destinations: [Mac; MANY],
    bridged: usize,
    seen_sources: [Seen; MANY],
    seen_destinations: [Seen; MANY],
    /// Entries of the two that are of this burst.
    hints: usize,
    ip4: [u32; MANY],
    routed: usize,
    answers: [Answer; MANY],
}

impl Default for Ahead {
    fn default() -> Self {
        Ahead {
            router: None,
            fid: 0,
            sources: [[0; 6]; MANY],
            destinations: [[0; 6]; MANY],
            bridged: 0,
            seen_sources: [Seen::default(); MANY],
            seen_destinations: [Seen::default(); MANY],
            hints: 0,
            ip4: [0; MANY],
            routed: 0,
            answers: [Answer::default(); MANY],
        }
    }
}

impl Ahead {
    /// A burst of port `ingress` follows.
    pub fn begin(&mut self, state: &State, ingress: u16) {
        (self.bridged, self.hints, self.routed) = (0, 0, 0);
        let port = state.port(ingress);
        self.fid = match port.map(|p| p.untagged) {
            _ if port.is_some_and(|p| p.has(raw::TND_PORT_FLOWS)) => raw::TND_FLOWS_FID,
            Some(Untagged::Any(fid) | Untagged::Pvid(fid)) => fid,
            _ => 0,
        };
        let rif = match self.fid {
            0 => port.and_then(|p| p.rif),
            fid => state.vlan(fid).and_then(|v| v.rif),
        };
        self.router = rif.and_then(|r| state.rif(r)).map(|rif| Router {
            mac: rif.mac,
            vrf: rif.vrf,
            v4: rif.has(raw::TND_RIF_V4),
        });
    }

    /// The next frame of it, in the order in which they will be processed; bytes are enough, so a ring's slots can be
    /// looked at where they lie.
    #[inline]
    pub fn see(&mut self, state: &State, frame: &[u8]) {
        if self.fid != 0 {
            let (mut src, mut dst) = ([0; 6], [0; 6]);
            if let Some([a, b, c, d, e, f, g, h, i, j, k, l]) = frame.first_chunk::<12>() {
                dst = [*a, *b, *c, *d, *e, *f];
                src = [*g, *h, *i, *j, *k, *l];
            }
            let n = self.bridged;
            if let (Some(s), Some(d)) = (self.sources.get_mut(n), self.destinations.get_mut(n)) {
                (*s, *d) = (src, dst);
                self.bridged += 1;
            }
        }
        let (Some(router), Some(head)) = (self.router, frame.first_chunk::<34>()) else {
            return;
        };
        if head.first_chunk::<6>() != Some(&router.mac) {
            return;
        }
        let ethertype = u16::from_be_bytes([head[12], head[13]]);
        if ethertype == EtherType::IPV4.0 && router.v4 {
            let to = [head[30], head[31], head[32], head[33]];
            if let Some(place) = self.ip4.get_mut(self.routed) {
                *place = u32::from_be_bytes(to);
                self.routed += 1;
            }
        } else if ethertype == EtherType::IPV6.0
            && let Some(to) = frame.get(38..54).and_then(|a| a.first_chunk::<16>())
        {
            let route = state.lpm6.lookup(router.vrf, u128::from_be_bytes(*to));
            black_box(route.map_or(0, |r| r.value));
        }
    }

    /// That was the burst: looks everything up.
    pub fn finish(&mut self, state: &State) {
        let n = self.bridged.min(MANY);
        if n > 0 {
            let exact = &state.exact;
            let (src, dst) = (&self.sources[..n], &self.destinations[..n]);
            exact.see_macs(self.fid, src, &mut self.seen_sources[..n], true);
            exact.see_macs(self.fid, dst, &mut self.seen_destinations[..n], false);
            self.hints = n;
        }
        let n = self.routed.min(MANY);
        if let (Some(router), true) = (self.router, n > 0) {
            let answers = &mut self.answers[..n];
            let lpm = &state.lpm4;
            lpm.lookup_bulk(router.vrf, &self.ip4[..n], answers);
            black_box(answers);
        }
    }

    /// What was found out about the `n`th frame, from 0.
    #[inline]
    #[must_use]
    pub fn hint(&self, n: usize) -> Hint {
        match (self.seen_sources.get(n), self.seen_destinations.get(n)) {
            (Some(src), Some(dst)) if n < self.hints => Hint {
                src: *src,
                dst: *dst,
            },
            _ => Hint::default(),
        }
    }
}

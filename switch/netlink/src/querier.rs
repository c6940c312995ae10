//! Is there a querier that the kernel's bridge goes by? Then it sends groups to their members, else it floods.
//!
//! ```text
//!   __br_multicast_querier_exists():  no delay running, and (the bridge is one itself, or another was heard of late)
//!
//!   query of a new one ──► delay (its own response time): still flooding ──► members ── no query for long ──► flooding
//!        NONE                          UNSURE                               THERE   └ UNSURE ┘                 NONE
//! ```
//!
//! The kernel tells how long the other querier counts on, but not of the delay, and no message comes when either ends.
//! So the delay is timed here, from the query that passed through the CPU, and where the end is near it is *unsure*: the
//! kernel forwards meanwhile.

use tandem_linux::netlink::BridgeMcast;
use tandem_store::model::Querier;

/// Longest delay that an IGMPv2 and an MLDv1 query can ask for, ms: where the query itself was not seen.
const LONGEST: [u64; 2] = [25_500, 65_535];
/// Added to every delay: timers of the kernel end late, and its clock ticks.
const SLACK: u64 = 200;
/// So long before the other querier is forgotten it is no longer sure: two looks and a margin.
const END: u64 = 5_000;
/// A query that was seen is the one that made the difference for so long.
const FRESH: u64 = 3_000;

/// The response time of a bridge that nobody set, ms (net/bridge/br_multicast.c `br_multicast_ctx_init`).
const RESPONSE: u64 = 10_000;

/// The longest interval that is reckoned with, ms: decades. The kernel takes whatever an operator sets.
const FOREVER: u64 = 1 << 40;

/// Hundredths of a second, as the kernel tells intervals, in ms.
fn ms(hundredths: u64) -> u64 {
    hundredths.saturating_mul(10).min(FOREVER)
}

/// Of one bridge.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tracker {
    families: [Track; 2],
    /// Seen before: what is new now was not there then.
    known: bool,
    /// The response time that was told last, ms.
    response: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Track {
    own: bool,
    /// When the other querier is forgotten, ms.
    other_until: Option<u64>,
    /// When the kernel believes it, at the latest.
    delay_until: u64,
    /// The bridge's address was gone, and the kernel has not tried to send since.
    no_address: bool,
}

/// Queries that passed through the CPU: longest response time, and when, by family.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heard {
    last: [Option<(u64, u64)>; 2],
}

impl Heard {
    /// A query with this response time (ms) was seen.
    pub fn query(&mut self, family: usize, delay: u64, now: u64) {
        if let Some(slot) = self.last.get_mut(family) {
            let before = slot
                .filter(|(_, at)| at + FRESH > now)
                .map_or(0, |(d, _)| d);
            *slot = Some((delay.max(before), now));
        }
    }

    fn delay(&self, family: usize, now: u64) -> Option<u64> {
        let (delay, at) = self.last.get(family).copied().flatten()?;
        (at + FRESH > now).then_some(delay)
    }
}

/// The same without memory: whatever is there the kernel has gone by for long.
pub(super) fn believed(m: &BridgeMcast) -> [Querier; 2] {
    let own6 = m.querier && m.address6 != [0; 16];
    let is = |own, other: bool| match (own || other, m.querier) {
        (true, _) => Querier::There,
        (false, true) => Querier::Unsure,
        (false, false) => Querier::None,
    };
    let [other4, other6] = m.other.map(|o| o.is_some());
    [is(m.querier, other4), is(own6, other6)]
}

impl Tracker {
    /// What the kernel told at `now` (ms). `has6`: the address that its IPv6 queries come from is there still. Gives both
    /// families, and when that may change without a message.
    pub fn look(
        &mut self,
        m: &BridgeMcast,
        has6: bool,
        heard: &Heard,
        now: u64,
    ) -> ([Querier; 2], Option<u64>) {
        let known = std::mem::replace(&mut self.known, true);
        // set together, the querier begins by the response time of before (net/bridge/br_netlink.c `br_changelink`)
        let response = ms(m.response_interval);
        let before = self.response.replace(response).unwrap_or(RESPONSE);
        let mut next: Option<u64> = None;
        let mut out = [Querier::None; 2];
        for (family, (t, out)) in self.families.iter_mut().zip(&mut out).enumerate() {
            let other = m
                .other
                .get(family)
                .copied()
                .flatten()
                .map(|left| now + ms(left));
            let mut delay = |time: u64| t.delay_until = t.delay_until.max(now + time + SLACK);
            let own = m.querier && (family == 0 || has6);
            if own && !t.own {
                // without an address the kernel finds out with its next query
                let first = if t.no_address { m.query_interval } else { 0 };
                delay(ms(first).max(response).max(before));
            }
            t.no_address = m.querier && !own;
            // another one, or one that was forgotten meanwhile
            let new = other.is_some() && t.other_until.is_none_or(|until| until <= now);
            if let (true, Some(until)) = (new, other) {
                let longest = LONGEST.get(family).copied().unwrap_or_default();
                if known {
                    delay(heard.delay(family, now).unwrap_or(longest));
                } else {
                    // how long ago it was heard last
                    let ago = ms(m.querier_interval).saturating_sub(until - now);
                    delay(longest.saturating_sub(ago));
                }
            }
            (t.own, t.other_until) = (own, other);
            let ends = other
                .filter(|_| !own)
                .map(|until| until.saturating_sub(END));
            *out = match other {
                None if !m.querier => Querier::None,
                None if !own => Querier::Unsure,
                _ if now < t.delay_until => Querier::Unsure,
                _ if ends.is_some_and(|e| e <= now) => Querier::Unsure,
                _ => Querier::There,
            };
            let due = match *out {
                Querier::Unsure if now < t.delay_until => Some(t.delay_until),
                Querier::Unsure => other,
                Querier::There => ends,
                Querier::None => None,
            };
            next = due.into_iter().chain(next).min();
        }
        (out, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Querier::{None as No, There, Unsure};

    fn bridge() -> BridgeMcast {
        BridgeMcast {
            router: 1,
            igmp: 2,
            mld: 1,
            querier_interval: 25_500,
            query_interval: 12_500,
            response_interval: 1000,
            tells: true,
            ..BridgeMcast::default()
        }
    }

    fn with(other: [Option<u64>; 2]) -> BridgeMcast {
        BridgeMcast { other, ..bridge() }
    }

    #[test]
    fn its_own_is_believed_after_the_response_time() {
        let (mut t, heard) = (Tracker::default(), Heard::default());
        assert_eq!(t.look(&bridge(), true, &heard, 0).0, [No, No]);
        let on = BridgeMcast {
            querier: true,
            ..bridge()
        };
        let (is, due) = t.look(&on, true, &heard, 1000);
        assert_eq!((is, due), ([Unsure; 2], Some(11_200)));
        assert_eq!(t.look(&on, true, &heard, 11_199).0, [Unsure; 2]);
        assert_eq!(t.look(&on, true, &heard, 11_200), ([There; 2], None));
        // the address that IPv6 queries come from goes, and is back
        assert_eq!(t.look(&on, false, &heard, 20_000).0, [There, Unsure]);
        assert_eq!(t.look(&on, true, &heard, 21_000).0, [There, Unsure]);
        assert_eq!(t.look(&on, true, &heard, 140_000).0, [There, Unsure]);
        assert_eq!(t.look(&on, true, &heard, 146_200).0, [There, There]);
        assert_eq!(t.look(&bridge(), true, &heard, 150_000).0, [No, No]);
    }

    /// The kernel takes the querier first, and the response time after it.
    #[test]
    fn set_together_the_time_of_before_counts() {
        let short = BridgeMcast {
            response_interval: 0,
            ..bridge()
        };
        let on = BridgeMcast {
            querier: true,
            ..short
        };
        let heard = Heard::default();
        // a bridge is made so
        let (is, due) = Tracker::default().look(&on, true, &heard, 1000);
        assert_eq!((is, due), ([Unsure; 2], Some(11_200)));
        // it had another one
        let mut t = Tracker::default();
        t.look(&bridge(), true, &heard, 0);
        assert_eq!(t.look(&on, true, &heard, 1000).1, Some(11_200));
        // set before
        let mut t = Tracker::default();
        t.look(&short, true, &heard, 0);
        assert_eq!(t.look(&on, true, &heard, 1000).1, Some(1200));
    }

    #[test]
    fn an_interval_may_be_anything() {
        for long in [u64::MAX, u64::MAX / 10 + 1, 1 << 62] {
            let (mut t, heard) = (Tracker::default(), Heard::default());
            let bridge = BridgeMcast {
                querier: true,
                querier_interval: long,
                query_interval: long,
                response_interval: long,
                other: [Some(long); 2],
                ..bridge()
            };
            let (is, due) = t.look(&bridge, false, &heard, 1000);
            assert_eq!(is, [Unsure; 2]);
            assert!(due.is_some_and(|at| at > 1000));
        }
    }

    #[test]
    fn another_one_after_the_time_that_its_query_names() {
        let (mut t, mut heard) = (Tracker::default(), Heard::default());
        t.look(&bridge(), true, &heard, 0);
        heard.query(0, 400, 5000);
        let (is, due) = t.look(&with([Some(25_500), None]), true, &heard, 5010);
        assert_eq!((is, due), ([Unsure, No], Some(5610)));
        assert_eq!(
            t.look(&with([Some(25_400), None]), true, &heard, 5610).0,
            [There, No]
        );
        // no query for long: shortly before the kernel forgets it nothing is sure
        assert_eq!(
            t.look(&with([Some(501), None]), true, &heard, 250_000).0,
            [There, No]
        );
        assert_eq!(
            t.look(&with([Some(500), None]), true, &heard, 250_010).0,
            [Unsure, No]
        );
        assert_eq!(t.look(&bridge(), true, &heard, 256_000).0, [No, No]);
        // one whose query nobody saw may have asked for a long time
        let (is, due) = t.look(&with([None, Some(25_000)]), true, &heard, 300_000);
        assert_eq!((is, due), ([No, Unsure], Some(365_735)));
    }

    #[test]
    fn one_that_was_forgotten_between_two_looks_begins_anew() {
        let (mut t, mut heard) = (Tracker::default(), Heard::default());
        t.look(&bridge(), true, &heard, 0);
        heard.query(0, 100, 0);
        t.look(&with([Some(600), None]), true, &heard, 10);
        assert_eq!(
            t.look(&with([Some(570), None]), true, &heard, 310).0,
            [There, No]
        );
        assert_eq!(
            t.look(&with([Some(600), None]), true, &heard, 9000).0,
            [Unsure, No]
        );
    }

    #[test]
    fn at_a_start_by_when_it_was_heard_last() {
        let heard = Heard::default();
        let mut t = Tracker::default();
        // 30 s ago
        let told = with([Some(22_500), None]);
        assert_eq!(t.look(&told, true, &heard, 1000).0, [Unsure, No]);
        assert_eq!(t.look(&told, true, &heard, 1300).0, [There, No]);
        let mut t = Tracker::default();
        // just now
        assert_eq!(
            t.look(&with([Some(25_500), None]), true, &heard, 1000).1,
            Some(26_700)
        );
    }

    #[test]
    fn the_longest_of_several_queries_counts() {
        let mut h = Heard::default();
        h.query(0, 5000, 100);
        h.query(0, 100, 200);
        assert_eq!(h.delay(0, 300), Some(5000));
        assert_eq!(h.delay(0, 300 + FRESH), None);
        assert_eq!(h.delay(1, 300), None);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Numbers that are told, beside those of the software alone.

use super::World;
use crate::Past;
use tandem_openflow::model::TABLE_ALL;

impl World {
    /// No number is wrong that is told: where frames came in since the last read, none is that they count for.
    pub(super) fn check_numbers(&mut self) {
        let both = self.soft.table_stats().zip(self.whole.table_stats());
        for ((s, w), (lookups, matched)) in both.zip(self.chip.looked_up()) {
            let of = [
                (lookups, s.count.lookups, w.count.lookups),
                (matched, s.count.matched, w.count.matched),
            ];
            let right = of.iter().all(|(c, s, w)| c.is_none_or(|n| n + s == *w));
            assert!(
                right,
                "chip, software, all: {:#?}\n{}",
                (s.table, of, self.flows()),
                self.history()
            );
        }
        for n in self.whole.flows_of(TABLE_ALL) {
            let (Some(s), Some(w)) = (self.soft.flow_count(n), self.whole.flow_count(n)) else {
                panic!("flow {n}");
            };
            let (packets, bytes) = self.chip.counted(n);
            if let Some(p) = packets {
                assert_eq!(
                    p + s.packets,
                    w.packets,
                    "packets of {n}\n{:#?}\n{}",
                    self.flows(),
                    self.history()
                );
            }
            if let Some(b) = bytes {
                assert_eq!(b + s.bytes, w.bytes, "bytes of {n}");
            }
        }
        self.check_groups();
    }

    /// All is read, and no number is wrong that is told then.
    pub fn check_counts(&mut self) {
        self.rest();
        self.read();
        let stale = self.chip.is_silent() || self.chip.counts.is_stale();
        assert!(!stale, "it answers\n{}", self.history());
        self.check_numbers();
        let all = self.whole.flows_of(TABLE_ALL).into_iter();
        let told = all.filter(|n| self.chip.counted(*n).0.is_some_and(|p| p > 0));
        self.seen.told += told.count() as u64;
        for n in self.whole.flows_of(TABLE_ALL) {
            let (Some(s), Some(w)) = (self.soft.flow_count(n), self.whole.flow_count(n)) else {
                panic!("flow {n}");
            };
            // One that was perhaps used, as counters were lost, goes later, never sooner
            let t = self.chip.troubles();
            let busy = self.chip.is_busy_with(n);
            let known = match (t.attaches, t.refused + t.unanswered + u64::from(self.kills)) {
                (1, 0) if !self.unsure.contains(&n) => s.last_ns == w.last_ns,
                _ => s.last_ns >= w.last_ns,
            };
            assert!(
                w.flow.idle == 0 || known || busy,
                "the last packet of {n}, which ends when it is idle: {} {}\n{:#?}\n{}",
                s.last_ns,
                w.last_ns,
                self.flows(),
                self.history()
            );
        }
        if self.last_counts() > 0 {
            // A question whose answer was lost is asked again when that is sure
            self.wait();
            self.rest();
        }
        assert_eq!(self.last_counts(), 0, "last counts never come");
        self.keep();
        let past = self.chip.past();
        for n in self.whole.flows_of(TABLE_ALL) {
            let of = |p: &Past| p.flows.get(&n).copied().unwrap_or_default();
            assert_eq!(of(&past), of(&self.kept), "what is written of {n}");
        }
        assert_eq!(past.counters, self.kept.counters);
    }

    /// Of how many flows that went the last counts are on their way still.
    pub fn last_counts(&mut self) -> usize {
        let chip = &mut self.chip;
        self.leaving.retain(|l| match chip.whole(l.tally) {
            Some(c) => {
                World::left(c, l.soft, l.whole);
                false
            }
            None => true,
        });
        self.leaving.len()
    }
}

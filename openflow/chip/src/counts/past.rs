// SPDX-License-Identifier: Apache-2.0
//! Counts over the end of a process: what of them is written down, so that the next one, with what the chip's counters say
//! then, comes to the same sums.
//!
//! ```text
//!   a flow's sum = base (counters that are gone) + what its counters say     written down: bases, and whose a counter is
//! ```
//!
//! So nothing has to be written while packets are counted.

use std::collections::{BTreeMap, BTreeSet};

use tandem_abi::raw;
use tandem_ofcompose::FlowId;

use super::{Counted, Counter, Counts, IDS, Tally};
use crate::groups::is_group;

/// What an earlier process has written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// The counter that was taken last.
    pub last: u32,
    /// Bases, where they are not nothing.
    pub flows: BTreeMap<FlowId, Counted>,
    /// Whose a counter is.
    pub counters: BTreeMap<u32, Vec<FlowId>>,
}

/// What of it is to be written down anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// Nothing of what was written down holds any more.
    pub anew: bool,
    /// The counter that was taken last.
    pub last: u32,
    /// Bases.
    pub flows: Vec<(FlowId, Counted)>,
    /// Whose a counter is; `None`: it is gone.
    pub counters: Vec<(u32, Option<Vec<FlowId>>)>,
}

impl Past {
    /// As it is with what is new.
    pub fn take(&mut self, unwritten: Unwritten) {
        if unwritten.anew {
            *self = Past::default();
        }
        self.last = unwritten.last;
        self.flows.extend(unwritten.flows);
        for (id, flows) in unwritten.counters {
            match flows {
                Some(flows) => self.counters.insert(id, flows),
                None => self.counters.remove(&id),
            };
        }
    }
}

/// What is not written down yet.
#[derive(Debug, Default)]
pub(super) struct Changed {
    pub anew: bool,
    pub flows: BTreeSet<FlowId>,
    pub counters: BTreeSet<u32>,
    /// All of them whose rows are gone.
    pub retiring: bool,
}

impl Counts {
    fn last(&self) -> u32 {
        self.base + self.last_id
    }

    /// What is new.
    pub fn take_unwritten(&mut self) -> Unwritten {
        let mut changed = std::mem::take(&mut self.changed);
        if changed.retiring {
            changed.counters.extend(&self.retiring);
        }
        Unwritten {
            anew: changed.anew,
            last: self.last(),
            flows: changed
                .flows
                .iter()
                .filter(|f| !is_group(**f))
                .map(|f| (*f, self.base_of(*f)))
                .collect(),
            counters: changed
                .counters
                .iter()
                .map(|id| (*id, self.whose(*id)))
                .collect(),
        }
    }

    /// All that there is.
    pub fn past(&self) -> Past {
        let flows = self.of.keys().chain(&self.uncounted);
        let flows = flows
            .filter(|f| !is_group(**f))
            .map(|f| (*f, self.base_of(*f)));
        let counters = self.counters.keys();
        Past {
            last: self.last(),
            flows: flows.filter(|(_, c)| *c != Counted::default()).collect(),
            counters: counters
                .filter_map(|id| Some((*id, self.whose(*id)?)))
                .collect(),
        }
    }

    fn whose(&self, id: u32) -> Option<Vec<FlowId>> {
        let c = self.counters.get(&id)?;
        let now = |t: &Tally| {
            let flow = self.sums.get(t)?.flow?;
            // The next process numbers groups anew, and does not know what was counted for them
            (self.of.get(&flow) == Some(t) && !is_group(flow)).then_some(flow)
        };
        Some(c.tallies.iter().filter_map(now).collect())
    }

    fn base_of(&self, flow: FlowId) -> Counted {
        let sum = self.of.get(&flow).and_then(|t| self.sums.get(t));
        let base = sum.map_or_else(Counted::default, |s| Counted {
            packets: s.base.0,
            bytes: s.base.1,
            ..s.counted
        });
        let lost = self.uncounted.contains(&flow);
        Counted {
            lost: base.lost || lost,
            lost_bytes: base.lost_bytes || lost,
            ..base
        }
    }

    /// Of a group that is there?
    fn is_of_group(&self, tally: Tally) -> bool {
        let flow = self.sums.get(&tally).and_then(|s| s.flow);
        flow.is_some_and(is_group)
    }

    /// These are an earlier process's. What its counters say is not known yet.
    pub fn restore(&mut self, past: &Past, slice: crate::Slice, bytes: bool) {
        self.restored = true;
        self.last_id = past.last.saturating_sub(self.base).min(IDS);
        self.last_past = self.last_id;
        // The rest is as it was written
        let all = past.counters.values().flatten();
        self.changed.flows.extend(past.flows.keys().chain(all));
        for (flow, c) in &past.flows {
            let (_, s) = self.sum(*flow);
            // What is known to be lost stays so: the flow may be one by now that no counter tells of
            let (lost, lost_bytes) = (s.counted.lost, s.counted.lost_bytes);
            s.counted = *c;
            s.counted.lost |= lost;
            s.counted.lost_bytes |= lost_bytes || !bytes && c.packets > 0;
            s.base = (c.packets, c.bytes);
        }
        for (id, flows) in &past.counters {
            let own = slice.has_counter(*id);
            let mut tallies = Vec::new();
            for flow in flows {
                let (tally, s) = self.sum(*flow);
                s.counted.lost |= !own;
                s.counted.lost_bytes |= !bytes;
                s.live += u32::from(own);
                s.past += u32::from(own);
                tallies.push(tally);
            }
            if own {
                self.pasts += 1;
                let c = Counter {
                    tallies,
                    made: true,
                    past: true,
                    ..Counter::default()
                };
                self.counters.insert(*id, c);
            }
        }
    }

    /// A flow that no row of this process has may have been met for the earlier one.
    pub fn meet_past(&mut self, flow: FlowId, now_ns: u64) {
        self.used.insert(flow, now_ns);
    }

    /// A flow that may have been met, of which nothing is written down.
    pub fn know(&mut self, flow: FlowId, now_ns: u64) {
        self.sum(flow);
        self.used.insert(flow, now_ns);
    }

    /// What the chip says of the counters of an earlier process. False: it has such as were taken when nobody wrote it down
    /// any more.
    pub fn settle_past(&mut self, held: &BTreeMap<u32, raw::tnd_acl_counter>, now_ns: u64) -> bool {
        self.restored = false;
        let last = self.base + self.last_past;
        let newer = |id: &u32| matches!((id.wrapping_sub(last)) & IDS, 1..=0x7f_ffff);
        // Rows that are wanted here have numbers behind the last one, too
        let known = !held.keys().any(|id| newer(id) && !self.is_known(*id));
        let past = self.counters.iter().filter(|(_, c)| c.past);
        let past: Vec<u32> = past.map(|(id, _)| *id).collect();
        for id in past {
            match held.get(&id) {
                Some(c) => {
                    self.tell(c, false, now_ns);
                }
                None => self.lose(id, now_ns),
            }
        }
        known
    }

    /// Was the chip told to have it, by this process or as an earlier one has written down?
    pub fn is_known(&self, id: u32) -> bool {
        self.counters.get(&id).is_some_and(|c| c.past || c.made)
    }

    /// Rows' counters are those that the chip has for them, if they are of the same flows: of groups nothing is said, as what
    /// they have counted is not known. Others have numbers that the chip
    /// does not have. Which they are now, in the same order. What nobody has is read for the last time.
    pub fn hand_over(
        &mut self,
        rows: &[(u32, Option<u32>)],
        held: &BTreeMap<u32, raw::tnd_acl_counter>,
        now_ns: u64,
    ) -> Vec<u32> {
        let own: BTreeSet<u32> = rows.iter().map(|(id, _)| *id).collect();
        let mut left: BTreeSet<u32> = self.counters.keys().copied().collect();
        left.retain(|id| !own.contains(id));
        let mut new = Vec::with_capacity(rows.len());
        for (id, there) in rows {
            let same = |t: &u32| {
                let of = |id: &u32| {
                    let tallies = self.counters.get(id)?.tallies.iter();
                    let flow = |t: &&Tally| !self.is_of_group(**t);
                    Some(tallies.filter(flow).copied().collect::<BTreeSet<Tally>>())
                };
                of(t) == of(id)
            };
            let there = there.filter(|t| left.contains(t)).filter(same);
            if let Some(there) = there.filter(|_| self.counters.contains_key(id)) {
                left.remove(&there);
                self.end(*id);
                new.push(there);
                continue;
            }
            if held.contains_key(id)
                && let Some(c) = self.counters.remove(id)
            {
                let number = loop {
                    let n = self.number();
                    if !held.contains_key(&n) {
                        break n;
                    }
                };
                self.changed.counters.extend([*id, number]);
                self.counters.insert(number, c);
                new.push(number);
                continue;
            }
            new.push(*id);
        }
        let over = self.counters.len() > self.size as usize;
        for id in left {
            match over {
                true => self.lose(id, now_ns),
                false => self.retire(id),
            }
        }
        new
    }

    /// What was answered of any flow is not known.
    pub fn lose_all(&mut self, now_ns: u64) {
        let all: Vec<Tally> = self.of.values().copied().collect();
        for t in all {
            self.unknown(t, now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slice;

    const BOTH: [FlowId; 2] = [7, 8];

    fn counts() -> Counts {
        let mut c = Counts::new(Slice::default());
        c.size = 8;
        c
    }

    fn said(id: u32, packets: u64) -> raw::tnd_acl_counter {
        raw::tnd_acl_counter {
            counter: id,
            packets,
            bytes: 100 * packets,
            ..Default::default()
        }
    }

    /// A row's counter, which has counted so much.
    fn row(c: &mut Counts, flows: &[FlowId], packets: u64) -> u32 {
        let id = c.take(flows).unwrap();
        c.make(id);
        c.tell(&said(id, packets), false, 1);
        id
    }

    fn packets(c: &Counts, flow: FlowId) -> Option<u64> {
        let of = c.of(flow);
        (!of.lost).then_some(of.packets)
    }

    /// The process is killed; the next one, which has not looked at the chip yet.
    fn killed(past: &Past) -> Counts {
        let mut c = counts();
        c.restore(past, Slice::default(), true);
        c
    }

    fn held(all: &[(u32, u64)]) -> BTreeMap<u32, raw::tnd_acl_counter> {
        all.iter().map(|(id, n)| (*id, said(*id, *n))).collect()
    }

    /// Its rows went, and nobody has read their counter for the last time: what that says is not the flow's any more when
    /// its counts begin anew, nor for the next process.
    #[test]
    fn a_flow_that_was_reset_has_nothing_of_its_old_counters() {
        let (mut c, mut past) = (counts(), Past::default());
        let old = row(&mut c, &BOTH, 3);
        past.take(c.take_unwritten());
        c.retire(old);
        past.take(c.take_unwritten());
        c.reset(7);
        let new = row(&mut c, &[7], 2);
        past.take(c.take_unwritten());
        assert_eq!(past.counters, c.past().counters);
        let mut c = killed(&past);
        assert!(c.settle_past(&held(&[(old, 5), (new, 4)]), 9));
        assert_eq!(BOTH.map(|f| packets(&c, f)), [Some(4), Some(5)]);
    }

    /// The chip was not looked at yet, as an attempt to attach failed: what its counters say is not the flow's any more when
    /// its counts begin anew, nor for a third process.
    #[test]
    fn a_flow_that_is_reset_before_the_chip_is_looked_at_has_nothing_of_it() {
        let (mut c, mut past) = (counts(), Past::default());
        let old = row(&mut c, &BOTH, 3);
        past.take(c.take_unwritten());
        let mut c = killed(&past);
        c.reset(7);
        past.take(c.take_unwritten());
        let mut c = killed(&past);
        assert!(c.settle_past(&held(&[(old, 5)]), 9));
        assert_eq!(BOTH.map(|f| packets(&c, f)), [Some(0), Some(5)]);
    }

    /// A row has the chip's counter only if it counted for its flows: one of a flow that went is read for the last time.
    #[test]
    fn a_row_has_not_the_counter_of_flows_that_are_gone() {
        let (mut c, mut past) = (counts(), Past::default());
        let gone = row(&mut c, &[7], 3);
        let stays = row(&mut c, &[8], 6);
        past.take(c.take_unwritten());
        // as whoever writes it down does when a flow goes
        for flows in past.counters.values_mut() {
            flows.retain(|f| *f != 7);
        }
        let mut c = killed(&past);
        let all = held(&[(gone, 3), (stays, 6)]);
        assert!(c.settle_past(&all, 9));
        // rows of one content as the one that is gone, and as the one that stays
        let rows = [&[9][..], &[8]].map(|flows| c.take(flows).unwrap());
        let new = c.hand_over(&[(rows[0], Some(gone)), (rows[1], Some(stays))], &all, 9);
        assert_eq!(new[1], stays);
        assert!(![gone, stays].contains(&new[0]), "{new:?}");
        assert_eq!(c.ask(), [gone]);
        assert_eq!([8, 9].map(|f| packets(&c, f)), [Some(6), Some(0)]);
    }

    /// What the chip has counted since it was written down is not known before it is looked at.
    #[test]
    fn no_number_is_told_before_the_chip_was_looked_at() {
        let (mut c, mut past) = (counts(), Past::default());
        let id = row(&mut c, &BOTH, 3);
        past.take(c.take_unwritten());
        let mut c = killed(&past);
        assert_eq!(BOTH.map(|f| packets(&c, f)), [None; 2]);
        let went = c.leave(7);
        assert!(matches!(went, Err(of) if of.lost), "{went:?}");
        assert!(c.settle_past(&held(&[(id, 11)]), 9));
        assert_eq!(packets(&c, 8), Some(11));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What the rows have counted, by flow: a row's packets met each flow of its rule's chain. A counter outlives its row, so it is read for the last time when the row is gone.
//!
//! ```text
//!   row ──► counter ──► sums of the rule's flows   QUERY, after the row's DELETE: the last count
//!                 DUMP, when somebody asks: what it has grown by since the last time
//! ```

mod past;

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashSet};
use tandem_abi::raw;
use tandem_ofcompose::FlowId;

use crate::part::Slice;
pub use past::{Past, Unwritten};

/// Numbers that counters have, behind the base.
const IDS: u32 = (1 << 24) - 1;
/// A read that is refused so often, again and again, is given up.
const TRIES: u32 = 3;

/// One flow's sum, which outlives the flow: numbers of flows are used again, these are not.
pub type Tally = u64;

/// What rows counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets that rows answered.
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// There were packets that nobody counted.
    pub lost: bool,
    /// Or that were not counted in bytes.
    pub lost_bytes: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    counted: Counted,
    /// Packets and bytes of it that no counter says that is there.
    base: (u64, u64),
    /// Counters of an earlier process that were not read yet.
    past: u32,
    /// The flow, while it is there.
    flow: Option<FlowId>,
    /// Counters that are not read for the last time yet.
    live: u32,
    /// Nobody asks for it any more.
    unwanted: bool,
}

#[derive(Clone, Debug, Default)]
struct Counter {
    tallies: Vec<Tally>,
    packets: u64,
    bytes: u64,
    /// The chip was told to have it: one that it was not counts for nobody.
    made: bool,
    /// Its row is gone.
    retires: bool,
    /// Its last question was answered, with its end behind that; and so it was when it was asked again.
    said: bool,
    said_before: bool,
    /// It is an earlier process's, and was not read yet.
    past: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sums: HashMap<Tally, Sum>,
    of: HashMap<FlowId, Tally>,
    /// Sums of flows whose counts began anew: what their counters still say is use of the flow, and no more.
    before: BTreeSet<Tally>,
    counters: BTreeMap<u32, Counter>,
    /// Those of them whose rows are gone.
    retiring: BTreeSet<u32>,
    /// Those whose last question is to be asked.
    last: BTreeSet<u32>,
    /// Those that were asked for the last time when the read began; and those of them that had not answered when it ended: it
    /// does not have what they counted.
    asked: BTreeSet<u32>,
    overdue: BTreeSet<u32>,
    /// Those of an earlier process that were not read yet.
    pasts: u32,
    /// Sums are an earlier process's, and the chip was not looked at yet.
    restored: bool,
    /// Flows whose packets were perhaps answered where nobody counts.
    uncounted: HashSet<FlowId>,
    /// Sums that counters add to which nobody can read: the chip is lost, and may count on.
    unread: HashSet<Tally>,
    /// The same while it does not answer, and then until this read is done: it adds to these.
    stale: Option<u64>,
    stales: HashSet<Tally>,
    changed: past::Changed,
    last_tally: Tally,
    last_id: u32,
    /// What that was when an earlier process wrote it down.
    last_past: u32,
    /// Numbers of counters begin behind this.
    base: u32,
    /// How many there may be.
    pub size: u32,
    /// Flows that packets met, as far as is known, and when at the latest.
    used: HashMap<FlowId, u64>,
    /// Reads asked for, begun, and done.
    pub wanted: u64,
    begun: Option<u64>,
    pub done: u64,
    /// Reads that were refused, one after the other.
    refused: u32,
    /// The last read was given up: rows may have counted anything since the one before.
    pub given_up: bool,
    /// Packets that any counter has told of.
    pub told: u64,
}

impl Counts {
    /// None, of a part of the chip.
    pub fn new(slice: Slice) -> Counts {
        Counts {
            base: slice.counters(),
            ..Counts::default()
        }
    }

    fn sum(&mut self, flow: FlowId) -> (Tally, &mut Sum) {
        let tally = match self.of.get(&flow) {
            Some(t) => *t,
            None => {
                self.last_tally += 1;
                self.of.insert(flow, self.last_tally);
                self.last_tally
            }
        };
        let sum = self.sums.entry(tally).or_default();
        sum.flow = Some(flow);
        (tally, sum)
    }

    /// Is no counter left?
    pub fn is_full(&self) -> bool {
        self.used() >= self.size
    }

    /// Those that are in use, or to be read once more.
    pub fn used(&self) -> u32 {
        (self.counters.len() as u32).saturating_sub(self.pasts)
    }

    /// A counter for a row of a rule of these flows. `None`: there are no more; the packets of these flows are not known
    /// from here on.
    pub fn take(&mut self, flows: &[FlowId]) -> Option<u32> {
        let full = self.is_full();
        let mut tallies = Vec::new();
        for flow in flows {
            let (tally, sum) = self.sum(*flow);
            sum.counted.lost |= full;
            sum.live += u32::from(!full);
            tallies.push(tally);
        }
        if full {
            self.changed.flows.extend(flows);
            return None;
        }
        let id = self.number();
        self.changed.counters.insert(id);
        self.counters.insert(
            id,
            Counter {
                tallies,
                ..Counter::default()
            },
        );
        Some(id)
    }

    /// The chip is told to have it.
    pub fn make(&mut self, id: u32) {
        if let Some(c) = self.counters.get_mut(&id) {
            c.made = true;
            if self.stale.is_some() {
                self.stales.extend(&c.tallies);
            }
        }
    }

    /// That was thrown away before the chip was told.
    pub fn unmake(&mut self, id: u32) {
        if let Some(c) = self.counters.get_mut(&id) {
            c.made = false;
            if c.retires {
                self.end(id);
            }
        }
    }

    /// One that no counter has. Numbers come again late.
    fn number(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id % IDS + 1;
            let id = self.base + self.last_id;
            if !self.counters.contains_key(&id) {
                return id;
            }
        }
    }

    /// Its row goes: it is to be read once more, if the chip has it.
    pub fn retire(&mut self, id: u32) {
        let made = self.counters.get(&id).is_some_and(|c| c.made);
        if !made {
            self.end(id);
        } else if let Some(c) = self.counters.get_mut(&id) {
            c.retires = true;
            self.last.insert(id);
            self.retiring.insert(id);
            self.changed.counters.insert(id);
        }
    }

    /// Those whose last question is to be asked, which is done now.
    pub fn ask(&mut self) -> Vec<u32> {
        let all = std::mem::take(&mut self.last);
        for id in &all {
            if let Some(c) = self.counters.get_mut(id) {
                c.said_before = std::mem::take(&mut c.said);
            }
        }
        all.into_iter().collect()
    }

    /// It has said what it had counted, and its end is executed next, or refused as its row counts on.
    pub fn said(&mut self, id: u32) {
        if let Some(c) = self.counters.get_mut(&id) {
            c.said = true;
        }
    }

    /// The chip does not have it. Was its end executed, so that what it had said was its last word?
    pub fn had_said(&self, id: u32) -> bool {
        self.counters.get(&id).is_some_and(|c| c.said_before)
    }

    /// The question was thrown away before the chip had it.
    pub fn not_posted(&mut self, id: u32) {
        if let Some(c) = self.counters.get_mut(&id) {
            c.said = c.said_before;
        }
        self.not_asked(id);
    }

    /// The question, or its answer, was lost.
    pub fn not_asked(&mut self, id: u32) {
        if self.counters.contains_key(&id) {
            self.last.insert(id);
        }
    }

    /// What the device says of a counter. True: that was the last time.
    pub fn tell(&mut self, of: &raw::tnd_acl_counter, last: bool, now_ns: u64) -> bool {
        let Some(c) = self.counters.get_mut(&of.counter) else {
            return false;
        };
        let more = (
            of.packets.checked_sub(c.packets),
            of.bytes.checked_sub(c.bytes),
        );
        (c.packets, c.bytes) = (of.packets, of.bytes);
        self.told = self.told.saturating_add(more.0.unwrap_or(0));
        let past = std::mem::take(&mut c.past);
        self.pasts -= u32::from(past);
        let ends = last && c.retires;
        for tally in &c.tallies {
            let Some(s) = self.sums.get_mut(tally) else {
                continue;
            };
            s.past -= u32::from(past);
            match more {
                (Some(p), Some(b)) => {
                    s.counted.packets += p;
                    s.counted.bytes += b;
                    if let (Some(flow), true) = (s.flow, p > 0) {
                        let at = if of.used_ns == 0 { now_ns } else { of.used_ns };
                        let used = self.used.entry(flow).or_default();
                        *used = (*used).max(at.min(now_ns));
                    }
                }
                _ => {
                    s.counted.lost = true;
                    self.changed.flows.extend(s.flow);
                }
            }
        }
        if ends {
            self.end(of.counter);
        }
        ends
    }

    /// All that are in use, or to be read once more.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.counters.keys().copied()
    }

    /// What it had counted when it was read last.
    pub fn packets(&self, id: u32) -> u64 {
        self.counters.get(&id).map_or(0, |c| c.packets)
    }

    /// Is it in use, or to be read once more?
    pub fn has(&self, id: u32) -> bool {
        self.counters.contains_key(&id)
    }

    /// A counter is gone, whatever it had counted.
    pub fn lose(&mut self, id: u32, now_ns: u64) {
        for tally in self
            .counters
            .get(&id)
            .map_or_else(Vec::new, |c| c.tallies.clone())
        {
            self.unknown(tally, now_ns);
        }
        self.end(id);
    }

    /// What a flow had to do is not known: it may have been used just now.
    fn unknown(&mut self, tally: Tally, now_ns: u64) {
        if let Some(s) = self.sums.get_mut(&tally) {
            s.counted.lost = true;
            if let Some(flow) = s.flow {
                self.used.insert(flow, now_ns);
                self.changed.flows.insert(flow);
            }
        }
    }

    /// The chip has it no more, and nothing was counted since it was asked: that was its last word.
    pub fn gone(&mut self, id: u32) {
        if self.counters.get(&id).is_some_and(|c| c.retires) {
            self.end(id);
        }
    }

    fn end(&mut self, id: u32) {
        let Some(c) = self.counters.remove(&id) else {
            return;
        };
        self.last.remove(&id);
        self.retiring.remove(&id);
        self.overdue.remove(&id);
        self.changed.counters.insert(id);
        self.pasts -= u32::from(c.past);
        for tally in c.tallies {
            if let Some(s) = self.sums.get_mut(&tally) {
                s.live = s.live.saturating_sub(1);
                s.past -= u32::from(c.past);
                s.base.0 += c.packets;
                s.base.1 += c.bytes;
                self.changed.flows.extend(s.flow);
                if s.live == 0 && s.unwanted {
                    self.drop_sum(tally);
                }
            }
        }
    }

    /// The counters can't be read: nobody knows what their rows have answered.
    pub fn unreadable(&mut self, now_ns: u64) {
        let tallies: Vec<Tally> = self
            .counters
            .values()
            .flat_map(|c| c.tallies.clone())
            .collect();
        for t in tallies {
            self.unknown(t, now_ns);
        }
    }

    /// Nobody is there to ask for last counts: those that are to come do not.
    pub fn give_up(&mut self, now_ns: u64) {
        let retiring = self.counters.iter().filter(|(_, c)| c.retires);
        let retiring: Vec<u32> = retiring.map(|(id, _)| *id).collect();
        for id in retiring {
            self.lose(id, now_ns);
        }
    }

    /// The chip can't be asked from here on: flows of its rows may have been used until now, and what it has counted since
    /// the last read, and counts perhaps on, nobody knows.
    pub fn unasked(&mut self, now_ns: u64) {
        self.give_up(now_ns);
        self.fresh();
        for c in self.counters.values() {
            for tally in &c.tallies {
                if let Some(flow) = self.sums.get(tally).and_then(|s| s.flow) {
                    self.used.insert(flow, now_ns);
                }
                if c.made {
                    self.unread.insert(*tally);
                }
            }
        }
    }

    /// The chip does not answer: what it has counted since the last read is not known, until it does.
    pub fn silent(&mut self) {
        self.stale = Some(u64::MAX);
        let made = self.counters.values().filter(|c| c.made);
        self.stales = made.flat_map(|c| &c.tallies).copied().collect();
    }

    /// It does, and this read is to have it.
    pub fn hears(&mut self, read: u64) {
        self.stale = self.stale.map(|_| read);
    }

    /// Is what it has counted not known?
    pub fn is_stale(&self) -> bool {
        self.stale.is_some()
    }

    fn fresh(&mut self) {
        self.stale = None;
        self.stales = HashSet::default();
    }

    /// The chip's tables were emptied: counters begin anew, and what they had counted since they were read is lost.
    pub fn emptied(&mut self, now_ns: u64) {
        self.give_up(now_ns);
        if std::mem::take(&mut self.restored) {
            // What was answered until then nobody has looked at
            let past = self.counters.iter().filter(|(_, c)| c.past);
            let past: Vec<u32> = past.map(|(id, _)| *id).collect();
            past.into_iter().for_each(|id| self.lose(id, now_ns));
            self.lose_all(now_ns);
        }
        let mut tallies = Vec::new();
        for c in self.counters.values_mut() {
            if std::mem::take(&mut c.made) {
                tallies.extend(&c.tallies);
            }
            (c.packets, c.bytes) = (0, 0);
        }
        for t in tallies {
            self.unknown(t, now_ns);
        }
        // From here on what is lost of them is lost for good, and what they count is known
        self.unread.clear();
        self.begun = None;
    }

    /// What a flow's rows have counted, as of the last read.
    pub fn of(&self, flow: FlowId) -> Counted {
        let tally = self.of.get(&flow);
        let sum = tally.and_then(|t| Some((t, self.sums.get(t)?)));
        let mut overdue = self.overdue.iter().filter_map(|id| self.counters.get(id));
        let lacks = overdue.any(|c| tally.is_some_and(|t| c.tallies.contains(t)));
        let known = sum.map(|(t, s)| Counted {
            lost: s.counted.lost
                || s.past > 0
                || lacks
                || self.unread.contains(t)
                || self.stales.contains(t),
            ..s.counted
        });
        known.unwrap_or_default()
    }

    /// The flow is gone. Its sum, while its rows' last counts are on their way; `Err`: it is known now.
    pub fn leave(&mut self, flow: FlowId) -> Result<Tally, Counted> {
        self.used.remove(&flow);
        self.uncounted.remove(&flow);
        for t in &self.before {
            if let Some(s) = self.sums.get_mut(t).filter(|s| s.flow == Some(flow)) {
                s.flow = None;
            }
        }
        let Some(tally) = self.of.remove(&flow) else {
            return Err(Counted::default());
        };
        let Some(s) = self.sums.get_mut(&tally) else {
            return Err(Counted::default());
        };
        s.flow = None;
        s.counted.lost |= s.past > 0 || self.unread.contains(&tally);
        match s.live.saturating_sub(s.past) {
            0 => {
                let counted = s.counted;
                self.drop_sum(tally);
                Err(counted)
            }
            _ => Ok(tally),
        }
    }

    /// The whole sum of a flow that is gone, once it is known.
    pub fn whole(&mut self, tally: Tally) -> Option<Counted> {
        match self.sums.get(&tally) {
            None => Some(Counted::default()),
            Some(s) if s.live > 0 => None,
            Some(s) => {
                let counted = s.counted;
                self.drop_sum(tally);
                Some(counted)
            }
        }
    }

    /// The flow's counts begin anew: what its old counters say counts for nobody.
    pub fn reset(&mut self, flow: FlowId) {
        self.uncounted.remove(&flow);
        self.changed.flows.insert(flow);
        if let Some(tally) = self.of.remove(&flow) {
            self.before.insert(tally);
            self.forget(tally);
            // Those that retire say nothing of it any more
            self.changed.retiring = true;
            if self.pasts > 0 {
                // Nor do those of an earlier process, which no row of this one has
                let of = |c: &Counter| c.past && c.tallies.contains(&tally);
                let past = self.counters.iter().filter(|(_, c)| of(c));
                self.changed.counters.extend(past.map(|(id, _)| *id));
            }
        }
    }

    fn drop_sum(&mut self, tally: Tally) {
        self.sums.remove(&tally);
        self.before.remove(&tally);
        self.unread.remove(&tally);
        self.stales.remove(&tally);
    }

    /// Nobody asks for the sum of a flow that is gone.
    pub fn forget(&mut self, tally: Tally) {
        if let Some(s) = self.sums.get_mut(&tally) {
            s.unwanted = true;
            if s.live == 0 {
                self.drop_sum(tally);
            }
        }
    }

    /// What else was answered of a flow nobody counted.
    pub fn lose_flow(&mut self, flow: FlowId, packets: bool, bytes: bool) {
        let (_, sum) = self.sum(flow);
        sum.counted.lost |= packets;
        sum.counted.lost_bytes |= bytes;
        self.changed.flows.insert(flow);
    }

    /// Packets of these may be answered from here on, and nobody counts them.
    pub fn uncounted(&mut self, flows: &[FlowId]) {
        for f in flows {
            if self.uncounted.insert(*f) {
                self.changed.flows.insert(*f);
            }
        }
    }

    /// What the chip answered of a flow for an earlier process nobody knows: it may have been used just now.
    pub fn lose_past(&mut self, flow: FlowId, now_ns: u64) {
        let (tally, _) = self.sum(flow);
        self.unknown(tally, now_ns);
    }

    /// All flows are gone.
    pub fn clear(&mut self) {
        *self = Counts {
            last_tally: self.last_tally,
            last_id: self.last_id,
            last_past: self.last_past,
            base: self.base,
            size: self.size,
            wanted: self.wanted,
            // One that is under way ends, and is none of those that are asked for then
            begun: self.begun,
            // Tables that begin anew make no chip answer; the read that is to end that is waited for
            done: match self.stale {
                Some(_) => self.done,
                None => self.wanted,
            },
            stale: self.stale,
            changed: past::Changed {
                anew: true,
                ..Default::default()
            },
            ..Counts::default()
        };
    }

    pub fn take_used(&mut self) -> Vec<(FlowId, u64)> {
        self.used.drain().collect()
    }

    // -- reads

    /// A read is to begin, and none is under way.
    pub fn begins(&mut self) -> bool {
        if self.begun.is_some() || self.done >= self.wanted {
            return false;
        }
        self.begun = Some(self.wanted);
        self.asked = self.retiring.difference(&self.last).copied().collect();
        true
    }

    /// A page of the read was refused: it begins anew, or its counters are not to be read.
    pub fn refused(&mut self, now_ns: u64) {
        self.refused += 1;
        let done = self.refused >= TRIES;
        if done {
            self.unreadable(now_ns);
        }
        self.ends(done);
        self.given_up = done;
    }

    /// The read that was begun is done, or was lost.
    pub fn ends(&mut self, done: bool) {
        if let Some(n) = self.begun.take()
            && done
        {
            self.done = self.done.max(n);
            (self.refused, self.given_up) = (0, false);
            let late = std::mem::take(&mut self.asked).into_iter();
            self.overdue = late.filter(|id| self.counters.contains_key(id)).collect();
            if self.stale.is_some_and(|read| n >= read) {
                self.fresh();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for so many.
    fn eight() -> Counts {
        Counts {
            size: 8,
            ..Counts::default()
        }
    }

    /// The answer to a row's last question was lost: the read behind it does not have what the row counted, and says so until
    /// it is asked again.
    #[test]
    fn a_last_count_that_does_not_come_is_not_known_meanwhile() {
        let mut counts = eight();
        let id = counts.take(&[1]).unwrap();
        counts.make(id);
        counts.retire(id);
        // Not asked yet when the read begins: that has it
        for (asked, lost) in [(false, false), (true, true)] {
            if asked {
                assert_eq!(counts.ask(), [id]);
            }
            counts.wanted += 1;
            assert!(counts.begins());
            counts.ends(true);
            assert_eq!(counts.of(1).lost, lost, "{asked}");
            assert!(!counts.of(2).lost);
        }
        counts.not_asked(id);
        let told = raw::tnd_acl_counter {
            counter: id,
            packets: 3,
            ..Default::default()
        };
        assert!(counts.tell(&told, true, 0));
        assert_eq!((counts.of(1).packets, counts.of(1).lost), (3, false));
    }

    /// Tables that begin anew make no counter that an earlier process wrote down one that nobody knows.
    #[test]
    fn what_was_written_down_is_known_behind_tables_that_began_anew() {
        let mut counts = eight();
        let past = Past {
            last: 5,
            counters: [(4, vec![1])].into(),
            ..Past::default()
        };
        counts.restore(&past, crate::Slice::default(), true);
        counts.clear();
        let held = |id| [(id, raw::tnd_acl_counter::default())].into();
        assert!(counts.settle_past(&held(4), 0));
        assert!(!counts.settle_past(&held(6), 0));
    }

    /// A read that is under way when tables begin anew is not the one that is asked for then: that begins behind it.
    #[test]
    fn a_read_goes_on_where_tables_begin_anew() {
        let mut counts = eight();
        counts.wanted += 1;
        assert!(counts.begins());
        counts.clear();
        counts.wanted += 1;
        assert!(!counts.begins());
        counts.ends(true);
        assert_eq!(counts.done, 1);
        assert!(counts.begins());
        counts.ends(true);
        assert_eq!(counts.done, 2);
    }

    /// Its last question was answered, and its end was behind that. Asked again, the chip does not have it: that was its last
    /// word, unless it was asked in between and nothing was heard.
    #[test]
    fn a_counter_that_has_said_all_is_known_when_it_is_gone() {
        let mut counts = eight();
        let id = counts.take(&[1]).unwrap();
        counts.make(id);
        counts.retire(id);
        let asks = |c: &mut Counts| {
            assert_eq!(c.ask(), [id]);
            c.had_said(id)
        };
        assert!(!asks(&mut counts));
        counts.said(id);
        counts.not_asked(id);
        assert!(asks(&mut counts));
        // thrown away before the chip had it
        counts.not_posted(id);
        assert!(asks(&mut counts));
        counts.not_asked(id);
        assert!(!asks(&mut counts));
        counts.not_posted(id);
        assert!(!asks(&mut counts));
    }
}

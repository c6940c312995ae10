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

#[derive(Clone, Debug)]
struct Counter {
    tallies: Vec<Tally>,
    packets: u64,
    bytes: u64,
    /// The chip was told to have it: one that it was not counts for nobody.
    made: bool,
    /// Its row is gone.
    retires: bool,
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
    /// Those of an earlier process that were not read yet.
    pasts: u32,
    /// Sums are an earlier process's, and the chip was not looked at yet.
    restored: bool,
    /// Flows whose packets were perhaps answered where nobody counts.
    uncounted: HashSet<FlowId>,
    changed: past::Changed,
    last_tally: Tally,
    last_id: u32,
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
                packets: 0,
                bytes: 0,
                made: false,
                retires: false,
                past: false,
            },
        );
        Some(id)
    }

    /// The chip is told to have it.
    pub fn make(&mut self, id: u32) {
        if let Some(c) = self.counters.get_mut(&id) {
            c.made = true;
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
        std::mem::take(&mut self.last).into_iter().collect()
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

    fn end(&mut self, id: u32) {
        let Some(c) = self.counters.remove(&id) else {
            return;
        };
        self.last.remove(&id);
        self.retiring.remove(&id);
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

    /// The chip can't be asked from here on: flows of its rows may have been used until now.
    pub fn unasked(&mut self, now_ns: u64) {
        self.give_up(now_ns);
        for tally in self.counters.values().flat_map(|c| &c.tallies) {
            if let Some(flow) = self.sums.get(tally).and_then(|s| s.flow) {
                self.used.insert(flow, now_ns);
            }
        }
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
        self.begun = None;
    }

    /// What a flow's rows have counted, as of the last read.
    pub fn of(&self, flow: FlowId) -> Counted {
        let sum = self.of.get(&flow).and_then(|t| self.sums.get(t));
        let known = sum.map(|s| Counted {
            lost: s.counted.lost || s.past > 0,
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
        s.counted.lost |= s.past > 0;
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
        }
    }

    fn drop_sum(&mut self, tally: Tally) {
        self.sums.remove(&tally);
        self.before.remove(&tally);
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
            base: self.base,
            size: self.size,
            wanted: self.wanted,
            done: self.wanted,
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
    }

    /// The read that was begun is done, or was lost.
    pub fn ends(&mut self, done: bool) {
        if let Some(n) = self.begun.take()
            && done
        {
            self.done = self.done.max(n);
            self.refused = 0;
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Flows with an idle timeout in the MAC table, which does not tell whether an entry is used: it is asked, by trapping.
//!
//! ```text
//!            half of the timeout            confirmed: used until now      no packet for the whole timeout
//!  forwards ─────────────────────► traps ────────────────────────────────────────────────► the flow ends, idle
//!     ▲                              │ a packet, by the software
//!     └──────────────────────────────┘
//! ```
//!
//! While an entry forwards, and until the chip has said that it traps, its flows are *busy*: each moment may have a packet.
//! So none ends earlier than its timeout after its last packet; it may live longer by what the entry forwarded behind
//! that packet, half of the timeout. A flow that was busy is *stale* until a packet is seen to meet it: an entry of a rule
//! that has such a flow begins by trapping, so that none lives on for being written again.

use std::collections::{BTreeSet, VecDeque};

use foldhash::{HashMap, HashSet};
use tandem_ofcompose::{FlowId, RuleId};
use tandem_ofoffload::{Forwards, MacKey};

use crate::Chip;

const SECOND: u64 = 1_000_000_000;
/// Entries that begin to be asked in one turn.
pub(crate) const ASKS: usize = 256;

#[derive(Clone, Debug)]
struct Entry {
    flows: Vec<FlowId>,
    key: Option<MacKey>,
    is: Is,
}

#[derive(Clone, Debug)]
enum Is {
    /// It forwards, and is to be asked then.
    Open(u64),
    /// It traps until none of its flows is stale.
    Asked,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// The timeouts of flows that have one.
    timeouts: HashMap<FlowId, u64>,
    entries: HashMap<RuleId, Entry>,
    due: BTreeSet<(u64, RuleId)>,
    rules: HashMap<FlowId, BTreeSet<RuleId>>,
    open: HashMap<MacKey, RuleId>,
    /// Of each flow so many entries that forward, as far as the chip has confirmed.
    busy: HashMap<FlowId, u32>,
    /// Flows that packets may have met since one was seen to.
    stale: HashSet<FlowId>,
    /// Flows of entries that don't forward any more, once what was written up to a mark is confirmed.
    closing: VecDeque<(u64, Vec<FlowId>)>,
    /// Flows that packets may have met until then.
    used: Vec<(FlowId, u64)>,
    /// Flows whose next packet is to be told.
    asks: Vec<FlowId>,
    /// Rules that may stand otherwise than is known here.
    pub touched: BTreeSet<RuleId>,
}

impl Uses {
    /// A flow's timeout, in seconds; 0: none, or the flow is gone.
    pub fn set_timeout(&mut self, flow: FlowId, seconds: u16) {
        if seconds == 0 {
            self.timeouts.remove(&flow);
            self.stale.remove(&flow);
            self.touched
                .extend(self.rules.get(&flow).into_iter().flatten());
        } else {
            self.timeouts.insert(flow, u64::from(seconds) * SECOND);
        }
    }

    /// Those of a rule's flows that have one.
    pub fn timed(&self, flows: &[FlowId]) -> Vec<FlowId> {
        let timed = flows.iter().filter(|f| self.timeouts.contains_key(*f));
        timed.copied().collect()
    }

    /// An entry is written, or goes: whoever forwarded there may not any more.
    pub fn written(&mut self, key: &MacKey) {
        self.touched.extend(self.open.get(key));
    }

    /// Must an entry of these flows begin by trapping?
    pub fn is_stale(&self, flows: &[FlowId]) -> bool {
        flows.iter().any(|f| self.stale.contains(f))
    }

    /// How a rule stands: with these flows, in the MAC table or not. True: it traps, and nobody would be asked.
    pub fn stands(
        &mut self,
        rule: RuleId,
        flows: Vec<FlowId>,
        entry: Option<Forwards>,
        now_ns: u64,
        mark: u64,
    ) -> bool {
        let key = entry.map(|e| e.key);
        let (forwards, asked) = entry.map_or((false, false), |e| (e.now, e.asked));
        if let Some(e) = self.entries.get(&rule) {
            let as_is = match e.is {
                Is::Open(_) => forwards,
                Is::Asked => asked,
            };
            if e.flows == flows && e.key == key && as_is {
                return false;
            }
        }
        self.leave(rule, mark);
        if flows.is_empty() || asked && !self.is_stale(&flows) {
            return asked;
        }
        if asked {
            self.enter(rule, flows, key, Is::Asked);
        } else if forwards {
            let shortest = flows.iter().filter_map(|f| self.timeouts.get(f)).min();
            let due = now_ns + shortest.map_or(0, |t| t / 2).max(SECOND);
            for f in &flows {
                *self.busy.entry(*f).or_default() += 1;
            }
            self.due.insert((due, rule));
            if let Some(k) = key {
                self.open.insert(k, rule);
            }
            self.enter(rule, flows, key, Is::Open(due));
        }
        false
    }

    fn enter(&mut self, rule: RuleId, flows: Vec<FlowId>, key: Option<MacKey>, is: Is) {
        for f in &flows {
            self.rules.entry(*f).or_default().insert(rule);
        }
        self.entries.insert(rule, Entry { flows, key, is });
    }

    fn leave(&mut self, rule: RuleId, mark: u64) {
        let Some(e) = self.entries.remove(&rule) else {
            return;
        };
        for f in &e.flows {
            if let Some(of) = self.rules.get_mut(f) {
                of.remove(&rule);
                if of.is_empty() {
                    self.rules.remove(f);
                }
            }
        }
        if let Is::Open(due) = e.is {
            self.due.remove(&(due, rule));
            if let Some(k) = e.key.filter(|k| self.open.get(k) == Some(&rule)) {
                self.open.remove(&k);
            }
            // A flow that is gone leaves its number to another one, which is not asked
            let timed = self.timed(&e.flows);
            self.stale.extend(&timed);
            self.asks.extend(&timed);
            self.closing.push_back((mark, e.flows));
        }
    }

    /// When an entry is to be asked next.
    pub fn next_ns(&self) -> Option<u64> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Entries that are to trap from here on.
    pub fn due(&self, now_ns: u64) -> Vec<RuleId> {
        let due = self.due.iter().take_while(|(at, _)| *at <= now_ns);
        due.take(ASKS).map(|(_, r)| *r).collect()
    }

    /// Packets met these: rules whose entries may forward again.
    pub fn met(&mut self, flows: &[FlowId]) -> Vec<RuleId> {
        for f in flows {
            self.stale.remove(f);
        }
        let rules = flows.iter().filter_map(|f| self.rules.get(f)).flatten();
        let may = |r: &&RuleId| {
            let e = self.entries.get(*r);
            e.is_some_and(|e| matches!(e.is, Is::Asked) && !self.is_stale(&e.flows))
        };
        let all: BTreeSet<RuleId> = rules.filter(may).copied().collect();
        all.into_iter().collect()
    }

    /// What was written up to a mark is confirmed, as far as `is_settled` says.
    pub fn settle(&mut self, now_ns: u64, is_settled: impl Fn(u64) -> bool) {
        while self.closing.front().is_some_and(|(m, _)| is_settled(*m)) {
            let (_, flows) = self.closing.pop_front().unwrap_or_default();
            self.release(&flows, now_ns);
        }
    }

    fn release(&mut self, flows: &[FlowId], now_ns: u64) {
        for f in flows {
            self.used.push((*f, now_ns));
            if let Some(n) = self.busy.get_mut(f) {
                *n = n.saturating_sub(1);
                if *n == 0 {
                    self.busy.remove(f);
                }
            }
        }
    }

    /// May packets meet a flow at this moment?
    pub fn is_busy(&self, flow: FlowId) -> bool {
        self.busy.contains_key(&flow)
    }

    /// The chip is lost: what is known of those that were busy is as of now.
    pub fn lost(&mut self, now_ns: u64) {
        let busy = self.busy.keys().map(|f| (*f, now_ns));
        self.used.extend(busy);
    }

    /// All flows are gone.
    pub fn clear(&mut self) {
        *self = Uses::default();
    }

    pub fn take_used(&mut self) -> Vec<(FlowId, u64)> {
        std::mem::take(&mut self.used)
    }

    pub fn take_asks(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.asks)
    }
}

impl Chip {
    /// Rules' entries trap, so that it is seen whether they are used, or no longer.
    pub(crate) fn ask(&mut self, rules: &[RuleId], to: bool) {
        if rules.is_empty() {
            return;
        }
        let flows: Vec<(RuleId, bool)> = rules.iter().map(|r| (*r, to)).collect();
        for w in self.offload.ask(&flows) {
            self.write(w);
        }
        for rule in rules {
            self.stands(*rule);
        }
    }

    /// The flows of a rule that have an idle timeout.
    pub(crate) fn timed(&self, rule: RuleId) -> Vec<FlowId> {
        let flows = self.flows_of.get(&rule);
        self.uses.timed(flows.map_or(&[][..], Vec::as_slice))
    }

    /// Who asks whether a rule's entry is used learns how it stands.
    pub(crate) fn stands(&mut self, rule: RuleId) {
        let (flows, entry) = (self.timed(rule), self.offload.forwards(rule));
        let (now, mark) = (self.now_ns, self.mark());
        if self.uses.stands(rule, flows, entry, now, mark) {
            self.ask(&[rule], false);
        }
    }
}

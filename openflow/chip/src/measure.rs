// SPDX-License-Identifier: Apache-2.0
//! How many packets a second each rule has to answer, where it depends on that which rules stand in the chip (seed 003 §IV.C
//! lets those stay in software that do not fit; which these are it leaves open).
//!
//! ```text
//!   counters of its rows, as the chip counts ──────┐
//!   counters of its flows, as the software counts ─┴─► packets/s of each rule ─► Offload::measured: who stands where
//! ```
//!
//! | a rule | what it has to do |
//! |---|---|
//! | in rows of the ACL | what these have counted, and what is the software's all the same |
//! | in software | as much as the one of its flows that has counted least there: all of its packets met each of them |
//! | in the MAC table, which counts nothing, or in a row without a counter | as was measured of it elsewhere, while not less than half is answered so in all: what came in at the ports, and neither the CPU has seen nor a row counted. From then on, and where it was never measured, it has an equal part of that |
//!
//! That is looked at every two seconds, and more seldom where there are many rules; and only while something found no room, or
//! traps, or makes others trap. A rule counts as changed when it has twice as much as before, or half: traffic is never quite
//! the same, and each change of mind costs writes.

use foldhash::{HashMap, HashSet};
use tandem_ofcompose::{FlowId, RuleId};
use tandem_ofoffload::Share;
use tandem_ofpipeline::Switch;

use crate::flow::MISS;
use crate::{Chip, groups, lookups};

const SECOND: u64 = 1_000_000_000;
/// How often.
const PERIOD: u64 = 2 * SECOND;
/// And so much more for each rule: a look at one costs about a microsecond.
const FOR_EACH: u64 = 100_000;
/// Rules that are looked at in one turn.
const LOOKED_AT: usize = 1024;
/// Rules with other traffic that are told of in one turn: for one of the MAC table all behind it may be looked at.
const CHANGES: usize = if cfg!(test) { 3 } else { 16 };

/// What a rule had done.
#[derive(Clone, Copy, Debug)]
struct Seen {
    chip: u64,
    soft: u64,
    at_ns: u64,
    uncounted: bool,
}

/// What is answered where nobody counts.
#[derive(Clone, Debug, Default)]
struct Unseen {
    /// Packets that ports have taken in and that the CPU did not see; those of them that rows have counted.
    kept: u64,
    counted: u64,
    at_ns: u64,
    /// Packets a second that nobody counted, in all; and of one rule.
    rates: Option<(u64, u64)>,
    /// Rules that answer so, as far as was looked.
    rules: u64,
}

/// A rule with its new traffic.
#[derive(Clone, Copy, Debug)]
struct Changed {
    rule: RuleId,
    traffic: u64,
    /// Told before the others nobody moves for it alone: it stands and has more, or waits and has less.
    first: bool,
}

/// All that is measured.
#[derive(Debug, Default)]
pub(crate) struct Measure {
    due_ns: u64,
    /// The read that is awaited.
    reading: Option<u64>,
    /// Rules that are to be looked at behind it.
    round: Vec<RuleId>,
    seen: HashMap<RuleId, Seen>,
    /// Rules whose traffic was measured where packets are counted.
    own: HashSet<RuleId>,
    unseen: Option<Unseen>,
    changed: Vec<Changed>,
}

impl Measure {
    /// A rule is another one, or gone.
    pub fn forget(&mut self, rule: RuleId) {
        self.seen.remove(&rule);
        self.own.remove(&rule);
    }

    /// What was counted before is compared with nothing that is counted from here on.
    pub fn begin(&mut self) {
        *self = Measure {
            own: std::mem::take(&mut self.own),
            ..Measure::default()
        };
    }
}

/// Packets a second; `None`: no time has passed.
fn rate(packets: u64, from_ns: u64, to_ns: u64) -> Option<u64> {
    let ns = to_ns.checked_sub(from_ns).filter(|ns| *ns > 0)?;
    let rate = u128::from(packets) * u128::from(SECOND) / u128::from(ns);
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// What a counter has grown by. One that is smaller than before has begun anew.
fn grown(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

impl Chip {
    /// Measures, where that decides something, and decides by it. When to be called again; `None`: when flows have changed.
    pub fn measure(&mut self, switch: &Switch, now_ns: u64) -> Option<u64> {
        if !self.offload.trades() || !self.answers() || self.is_silent() {
            self.measure.begin();
            return None;
        }
        if !self.measure.changed.is_empty() && self.measure.round.is_empty() {
            return Some(self.trade(now_ns));
        }
        if let Some(read) = self.measure.reading {
            if self.counts.done < read {
                return Some(now_ns + SECOND);
            }
            self.measure.reading = None;
            if self.counts.given_up {
                // busy rows would look idle
                self.measure.seen.clear();
            } else {
                self.measure.round = self.flows_of.keys().copied().collect();
                self.look_at_ports(now_ns);
            }
        }
        if self.measure.round.is_empty() {
            if now_ns < self.measure.due_ns {
                return Some(self.measure.due_ns);
            }
            self.measure.due_ns = now_ns + PERIOD + FOR_EACH * self.flows_of.len() as u64;
            self.measure.reading = Some(self.read());
            return Some(now_ns + SECOND);
        }
        let left = self.measure.round.len().saturating_sub(LOOKED_AT);
        for rule in self.measure.round.split_off(left) {
            self.look_at(rule, switch, now_ns);
        }
        if left > 0 {
            return Some(now_ns);
        }
        // A change of flows in between decides by what was told so far; taken from the end
        let changed = &mut self.measure.changed;
        changed.sort_unstable_by_key(|c| (c.first, c.rule));
        Some(self.trade(now_ns))
    }

    /// What was answered since the last look where nobody counts.
    fn look_at_ports(&mut self, now_ns: u64) {
        let Some(kept) = self.lookups.kept() else {
            self.measure.unseen = None;
            return;
        };
        let counted = self.counts.told;
        let before = self.measure.unseen.take();
        // what the miss drops is no rule's
        let before = before.filter(|b| kept >= b.kept && !self.miss.real());
        let rates = before.filter(|b| b.rules > 0).and_then(|b| {
            let unseen = (kept - b.kept).saturating_sub(grown(counted, b.counted));
            let all = rate(unseen, b.at_ns, now_ns)?;
            Some((all, all / b.rules))
        });
        self.measure.unseen = Some(Unseen {
            kept,
            counted,
            at_ns: now_ns,
            rates,
            rules: 0,
        });
    }

    fn look_at(&mut self, rule: RuleId, switch: &Switch, now_ns: u64) {
        let Some(flows) = self.flows_of.get(&rule) else {
            return;
        };
        let own = |f: &&FlowId| **f != MISS && !lookups::is_table(**f) && !groups::is_group(**f);
        let counted = flows.iter().filter(own);
        let counted = counted.filter_map(|f| Some(switch.flow_count(*f)?.packets));
        // All ones: it does not count
        let soft = counted.filter(|n| *n != u64::MAX).min();
        let entry = self.offload.forwards(rule);
        let mut uncounted = entry.is_some_and(|f| f.now);
        let idle = self.compose.rule(rule).is_some_and(|r| r.idle);
        let (mut chip, mut rows) = (0, 0);
        for (at, act) in self.offload.rows(rule) {
            let counter = self.want.rows.get(&at).map_or(0, |r| r.counter);
            // one that is asked whether it is used traps then
            uncounted |= act.real() && counter == 0 && !idle;
            rows += u32::from(counter != 0);
            chip += self.counts.packets(counter);
        }
        let unseen = self.measure.unseen.as_mut().filter(|_| uncounted);
        let rates = unseen.and_then(|u| {
            u.rules += 1;
            u.rates
        });
        // An entry that traps for a moment, to be asked whether it is used, has forwarded before
        let asked = entry.is_some_and(|f| f.asked);
        if asked || soft.is_none() && rows == 0 && !uncounted {
            self.measure.seen.remove(&rule);
            return;
        }
        let seen = Seen {
            chip,
            soft: soft.unwrap_or(0),
            at_ns: now_ns,
            uncounted,
        };
        let before = self.measure.seen.insert(rule, seen);
        let Some(before) = before.filter(|b| b.uncounted == uncounted) else {
            return;
        };
        let more = |now, then| rate(grown(now, then), before.at_ns, now_ns);
        let (Some(chip), Some(soft)) = (more(chip, before.chip), more(seen.soft, before.soft))
        else {
            return;
        };
        let share = self.offload.share(rule);
        let old = self.offload.traffic(rule).unwrap_or(0);
        let traffic = match uncounted {
            true => match (rates, self.measure.own.contains(&rule)) {
                (None, _) => old,
                (Some((all, _)), true) => {
                    let most = old.min(all);
                    if most <= old / 2 {
                        // What it has from here on nobody has measured
                        self.measure.own.remove(&rule);
                    }
                    most
                }
                (Some((_, each)), false) => each,
            },
            // A row's packets may be the software's all the same, as those with a header that is not whole
            false => chip.saturating_add(soft),
        };
        if !uncounted && traffic > 1 {
            self.measure.own.insert(rule);
        }
        // What is idle is worth as much as what was not measured
        let traffic = traffic.max(1);
        if old == 0 || traffic >= old.saturating_mul(2) || traffic <= old / 2 {
            self.measure.changed.push(Changed {
                rule,
                traffic,
                first: (share != Some(Share::Nothing)) == (traffic > old),
            });
        }
    }

    /// Decides by what has changed, a part of it in one turn. When to be called again.
    fn trade(&mut self, now_ns: u64) -> u64 {
        if self.is_busy() {
            return now_ns + SECOND / 10;
        }
        let changed = &mut self.measure.changed;
        let mut part = changed.split_off(changed.len().saturating_sub(CHANGES));
        let last = changed.is_empty();
        part.retain(|c| self.measure.seen.contains_key(&c.rule));
        let traffic: Vec<(RuleId, u64)> = part.iter().map(|c| (c.rule, c.traffic)).collect();
        self.offload.weighed(&traffic);
        if !last {
            return now_ns;
        }
        let writes = self.offload.measured(&[]);
        self.apply(writes);
        self.resize();
        // The look itself may have taken that long
        self.measure.due_ns = self.measure.due_ns.max(now_ns + PERIOD / 2);
        self.measure.due_ns
    }
}

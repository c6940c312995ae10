// SPDX-License-Identifier: Apache-2.0
//! What to do without room: who makes some, who waits for it, and who is asked again when there is.
use crate::index::Side;
use crate::{Entry, Id, Offload, Stand, Write};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Flows that found no room and are looked at after one change, and of these so many that turn out not to fit after
/// all.
const LOOKED_AT: usize = if cfg!(test) { 96 } else { 256 };
const TRIED: usize = if cfg!(test) { 64 } else { 8 };
const ROUNDS: usize = 8;
/// Flows that come in for others after one measurement.
const SWAPS: usize = 32;
/// Rows that may make room for another, the cheapest by their own traffic.
const CANDIDATES: usize = 4;

/// A table that a flow had to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Acl,
    Mac,
    Pairs,
}

/// Who waits: most traffic first, then who is here longest.
pub(crate) type Waits = (Reverse<u64>, u64, Id);

impl Offload {
    /// Is it among those that are tried again when there is room?
    pub(crate) fn note(&mut self, id: Id) {
        let Some(e) = self.flows.get(&id) else {
            return;
        };
        let waits = e.state.stand == Stand::Full || e.acl_denied || e.mac_denied || self.no_set(e);
        let pair = !waits && e.class_denied;
        let entry = (Reverse(e.flow.traffic), e.since, id);
        for (list, to) in [(&mut self.denied, waits), (&mut self.no_pair, pair)] {
            if to {
                list.insert(entry);
            } else {
                list.remove(&entry);
            }
        }
    }

    /// Does it not stand in the MAC table for want of a port set alone?
    fn no_set(&self, e: &Entry) -> bool {
        e.state.stand != Stand::Mac && self.mac_can(e) && !self.set_free(e)
    }

    pub(crate) fn deny(&mut self, id: Id, acl: bool, mac: bool, class: bool) {
        if let Some(e) = self.flows.get_mut(&id) {
            e.acl_denied |= acl;
            e.mac_denied |= mac;
            e.class_denied |= class;
        }
        self.note(id);
        self.wake(id);
    }

    /// Who makes room: of the cheapest flows the one whose leaving traps least, with what it would turn.
    fn victim(&self) -> Option<Id> {
        let harm = |id: Id| {
            let mut sum = 0u64;
            if let Some(e) = self.flows.get(&id) {
                sum = e.flow.traffic;
                let _ =
                    self.real
                        .meets(&self.order, &e.value, &e.mask, e.place, Side::Behind, |g| {
                            let g = self.flows.get(&g).filter(|g| g.holes == 0);
                            sum = sum.saturating_add(g.map_or(0, |g| g.flow.traffic));
                            ControlFlow::Continue(())
                        });
            }
            sum
        };
        let cheapest = self.in_acl.iter().take(CANDIDATES).map(|(_, _, id)| *id);
        cheapest.min_by_key(|id| harm(*id))
    }

    /// While a table has more than fits, somebody leaves it. Who has left which.
    pub(crate) fn overflow(&mut self) -> Vec<(Id, Left)> {
        let mut left = Vec::new();
        loop {
            // Pairs first: each that goes gives a line of the ACL back, and nobody else has to leave for it
            if self.class_over() {
                let Some(id) = self.least_pair() else { break };
                self.deny(id, false, false, true);
                left.push((id, Left::Pairs));
            } else if self.acl_used > self.chip.acl.size {
                let Some(id) = self.victim() else { break };
                self.deny(id, true, false, false);
                left.push((id, Left::Acl));
            } else if self.mac_used > self.chip.mac.map_or(0, |m| m.size) {
                let Some((_, _, id)) = self.in_mac.first().copied() else {
                    break;
                };
                self.deny(id, false, true, false);
                left.push((id, Left::Mac));
            } else {
                break;
            }
            self.run();
        }
        left
    }

    /// Those that found no room, as far as there is some. One that comes in may let go of lines elsewhere, so there
    /// are several rounds.
    pub(crate) fn retry(&mut self) {
        for _ in 0..ROUNDS {
            if !self.round() {
                return;
            }
        }
    }

    /// Did anything change? Who was tried in vain may have made another leave.
    fn round(&mut self) -> bool {
        let full = |o: &Offload| {
            (
                o.acl_used,
                o.mac_used,
                o.class_used,
                o.turned,
                o.denied.len() + o.no_pair.len(),
            )
        };
        let before = full(self);
        let (waiting, next) = Offload::next(&self.denied, self.resume.take());
        self.resume = self.attempt(waiting, next);
        // Who waits for a pair alone has rows that trap, or needs none
        if !self.class_full() {
            let (waiting, next) = Offload::next(&self.no_pair, self.resume_pair.take());
            self.resume_pair = self.attempt(waiting, next);
        }
        full(self) != before
    }

    /// So many as are looked at, from there on round the list, and who is behind these.
    fn next(list: &BTreeSet<Waits>, from: Option<Waits>) -> (Vec<Waits>, Option<Waits>) {
        let from = from.unwrap_or((Reverse(u64::MAX), 0, 0));
        let rest = list.range(from..).chain(list.range(..from));
        let mut waiting: Vec<_> = rest.take(LOOKED_AT + 1).copied().collect();
        let next = waiting.get(LOOKED_AT).copied();
        waiting.truncate(LOOKED_AT);
        (waiting, next)
    }

    /// Tries these, and says where the next change goes on.
    fn attempt(&mut self, waiting: Vec<Waits>, next: Option<Waits>) -> Option<Waits> {
        let mut missed = 0;
        for at in waiting {
            if missed >= TRIED {
                return Some(at);
            }
            let id = at.2;
            let Some(e) = self.flows.get(&id) else {
                continue;
            };
            let free = self.chip.acl.size.saturating_sub(self.acl_used);
            let least = e.lines(Stand::Acl { wide: true });
            let mac = e.state.stand != Stand::Mac
                && self.mac_used < self.chip.mac.map_or(0, |m| m.size)
                && self.mac_can(e)
                && self.set_free(e);
            let pair = e.state.stand != Stand::Pair && e.writes && self.pair_fits(e);
            if !mac && !pair && (e.state.stand != Stand::Full || least > free) {
                continue;
            }
            let old = e.state;
            self.admit(id, mac, pair);
            if self.flows.get(&id).is_some_and(|e| e.state == old) {
                missed += 1;
            }
        }
        next
    }

    /// Tries once more.
    fn admit(&mut self, id: Id, mac: bool, pair: bool) {
        let was = self.flows.get(&id).map(|e| e.acl_denied);
        if let Some(e) = self.flows.get_mut(&id) {
            e.acl_denied = false;
            if mac {
                e.mac_denied = false;
            }
            // Without room for a pair it is let in with rows that trap
            e.class_denied = e.writes && !pair;
        }
        self.wake(id);
        self.run();
        if self.over() {
            // Nobody leaves for it: what came with it goes with it
            let acl = !pair || was == Some(true);
            self.deny(id, acl, mac, pair);
            self.run();
            self.overflow();
        }
    }

    pub(crate) fn over(&self) -> bool {
        self.acl_used > self.chip.acl.size
            || self.class_over()
            || self.mac_used > self.chip.mac.map_or(0, |m| m.size)
    }

    /// Other sizes: what the chip has promised of memory that others share. Of less, what does not fit any more is
    /// deleted by these writes.
    pub fn resize(&mut self, acl: u32, mac: u32) -> Vec<Write> {
        self.chip.acl.size = acl;
        if let Some(m) = &mut self.chip.mac {
            m.size = mac;
        }
        self.decide();
        self.plan()
    }

    /// The same of the lines of what classifies.
    pub fn resize_class(&mut self, lines: u32) -> Vec<Write> {
        if let Some(c) = &mut self.chip.class {
            c.rows.size = lines;
        }
        self.decide();
        self.plan()
    }

    /// The same of groups of flows with two forms, of those that the chip has.
    pub fn resize_forms(&mut self, groups: u32) -> Vec<Write> {
        let most = self.chip.class.as_ref().map_or(0, |c| c.forms.into());
        let size = groups.min(most);
        if size == self.forms_size {
            return Vec::new();
        }
        self.forms_size = size;
        self.decide();
        self.plan()
    }

    /// Another measurement of a flow's traffic.
    pub(crate) fn weigh(&mut self, id: Id, traffic: u64) {
        let Some(e) = self.flows.get_mut(&id) else {
            return;
        };
        let (old, since) = (e.flow.traffic, e.since);
        if old == traffic {
            return;
        }
        let real = e.state.real;
        let (place, answers, all) = (e.place, e.answers(), e.answers_all());
        if !all {
            self.software = self.software - u128::from(old) + u128::from(traffic);
        }
        if real {
            self.reprice(id, false);
        }
        if let Some(e) = self.flows.get_mut(&id) {
            e.flow.traffic = traffic;
        }
        if real {
            self.real.remove(&answers.0, &answers.1, id);
            self.real
                .insert_weighed(&answers.0, &answers.1, place, traffic);
            self.reprice(id, true);
        }
        self.push(id, Some(old), Some(traffic));
        self.wake(id);
        for list in [&mut self.in_acl, &mut self.in_mac, &mut self.in_class] {
            if list.remove(&(old, Reverse(since), id)) {
                list.insert((traffic, Reverse(since), id));
            }
        }
        for list in [&mut self.denied, &mut self.no_pair] {
            if list.remove(&(Reverse(old), since, id)) {
                list.insert((Reverse(traffic), since, id));
            }
        }
        let Some(e) = self.flows.get(&id).filter(|e| e.state.real) else {
            return;
        };
        let (value, mask, place) = (e.value, *e.mask, e.place);
        let mut wide = self.widened_over(&value, &mask, place);
        let _ = self
            .sensitive
            .meets(&self.order, &value, &mask, place, Side::Front, |g| {
                if self
                    .flows
                    .get(&g)
                    .is_some_and(|g| g.wide() || g.pushed.0 > 0)
                {
                    wide.push(g);
                }
                ControlFlow::Continue(())
            });
        for g in wide {
            self.wake(g);
        }
    }

    /// Those that wait for a pair come in for pairs with less than half of their traffic, one by one.
    fn swap_pairs(&mut self) {
        for _ in 0..SWAPS {
            let Some((least, _, _)) = self.in_class.first().copied() else {
                return;
            };
            let waits = |id: &Id| self.flows.get(id).is_some_and(|e| e.class_denied);
            let both = self.denied.iter().take(LOOKED_AT);
            let both = both.filter(|(_, _, id)| waits(id)).take(1);
            let first = both.chain(self.no_pair.first()).min().copied();
            let Some((_, _, id)) = first.filter(|(t, _, _)| t.0 > least.saturating_mul(2)) else {
                return;
            };
            if let Some(e) = self.flows.get_mut(&id) {
                e.class_denied = false;
            }
            self.wake(id);
            self.decide();
            if self.flows.get(&id).is_some_and(|e| e.class_denied) {
                // nobody has left for it
                return;
            }
        }
    }

    /// Does it depend on traffic where flows stand? Some found no room, trap for others, or may make others trap.
    pub fn trades(&self) -> bool {
        let waits = !self.denied.is_empty() || !self.no_pair.is_empty();
        waits || !self.holes.is_empty() || !self.wides.is_empty()
    }

    /// What flows have to do, as measured. What trades traffic for traffic is decided anew.
    pub fn measured(&mut self, traffic: &[(Id, u64)]) -> Vec<Write> {
        self.weighed(traffic);
        self.decide();
        self.swap();
        self.plan()
    }

    /// Some of what flows have to do, before [`Offload::measured`] has the rest of it: that decides.
    pub fn weighed(&mut self, traffic: &[(Id, u64)]) {
        for (id, traffic) in traffic {
            self.weigh(*id, *traffic);
        }
    }

    /// What a flow has to do, as far as is known: packets a second.
    pub fn traffic(&self, id: Id) -> Option<u64> {
        self.flows.get(&id).map(|e| e.flow.traffic)
    }

    /// Of flows that wait those with most traffic come in for others, if they have more than twice the traffic of what would
    /// have to leave the ACL for their lines: less is not worth the writes, as what is measured comes and goes. Who would not
    /// answer then, or whose coming makes others trap that have as much, stays out after all.
    fn swap(&mut self) {
        self.swap_pairs();
        if std::mem::take(&mut self.all_missed) {
            self.missed.clear();
        }
        let from = self.resume_swap.take();
        // Those with most traffic of their own, and as many others in turns: who has most may never be worth it
        let may = |id: &Id| self.waits(*id).is_some() && !self.missed.contains(id);
        let first = self.denied.iter().map(|w| w.2).filter(may);
        let mut waiting: Vec<Id> = first.take(LOOKED_AT).collect();
        let (others, next) = Offload::next(&self.denied, from);
        waiting.extend(others.iter().map(|w| w.2).filter(may));
        waiting.sort_unstable();
        waiting.dedup();
        let worth = |id| Some((Reverse(self.worth(id)?), id));
        let mut waiting: Vec<(Reverse<u64>, Id)> = waiting.into_iter().filter_map(worth).collect();
        waiting.sort_unstable();
        self.resume_swap = next;
        let (mut tried, mut missed) = (0, 0);
        for (Reverse(worth), id) in waiting {
            let Some(lines) = self.waits(id).map(|e| e.lines(Stand::Acl { wide: true })) else {
                continue;
            };
            // What follows would find it out as well
            if self
                .leaving(lines)
                .is_none_or(|t| worth <= t.saturating_mul(2))
            {
                continue;
            }
            let before = self.software;
            self.let_in(id, Left::Acl);
            let left = self.overflow();
            if before.saturating_sub(self.software) <= u128::from(worth / 2) {
                self.deny(id, true, false, false);
                self.run();
                self.put_back(id, left);
                // Those behind it have their turn before it is tried again
                self.missed.insert(id);
                missed += 1;
            }
            tried += 1;
            if tried == SWAPS || missed == TRIED {
                break;
            }
        }
        // Until then they can be told why
        self.all_missed = missed < TRIED;
        if tried > 0 {
            self.retry();
        }
    }

    /// Nobody denies it that table any more.
    fn let_in(&mut self, id: Id, to: Left) {
        if let Some(e) = self.flows.get_mut(&id) {
            match to {
                Left::Acl => e.acl_denied = false,
                Left::Mac => e.mac_denied = false,
                Left::Pairs => e.class_denied = false,
            }
        }
        self.wake(id);
        self.run();
    }

    /// All but one that have left come back to where they were: there was room for them.
    fn put_back(&mut self, but: Id, left: Vec<(Id, Left)>) {
        let back = left.into_iter().filter(|(id, _)| *id != but);
        let back: Vec<(Id, Left)> = back.collect();
        self.back = back.iter().map(|(id, _)| *id).collect();
        for (id, from) in back.into_iter().rev() {
            self.let_in(id, from);
        }
        let _ = self.overflow();
        self.back.clear();
    }

    /// A flow that waits for lines of the ACL.
    fn waits(&self, id: Id) -> Option<&Entry> {
        let e = self.flows.get(&id)?;
        (e.state.stand == Stand::Full).then_some(e.as_ref())
    }

    /// What would not be the software's any more if a flow that waits came in: what it would answer, and what answers behind
    /// it again.
    pub(crate) fn worth(&self, id: Id) -> Option<u64> {
        let e = self.waits(id)?;
        let answers = self.row_act(e).real() && e.rows.iter().any(|r| r.exact) && e.holes == 0;
        let mut sum = if answers { e.flow.traffic } else { 0 };
        let _ = self
            .real
            .meets(&self.order, &e.value, &e.mask, e.place, Side::Behind, |g| {
                let g = self.flows.get(&g).filter(|g| g.holes == 1);
                sum = sum.saturating_add(g.map_or(0, |g| g.flow.traffic));
                ControlFlow::Continue(())
            });
        Some(sum)
    }

    /// The traffic of the cheapest flows that would have to leave the ACL for so many lines. `None`: it has not so many.
    pub(crate) fn leaving(&self, lines: u32) -> Option<u64> {
        let mut free = self.chip.acl.size.saturating_sub(self.acl_used);
        let mut sum = 0u64;
        for (traffic, _, id) in &self.in_acl {
            if free >= lines {
                break;
            }
            let e = self.flows.get(id)?;
            free += e.lines(e.state.stand);
            sum = sum.saturating_add(*traffic);
        }
        (free >= lines).then_some(sum)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What to do without room: who makes some, who waits for it, and who is asked again when there is.
use crate::index::Side;
use crate::{Entry, Id, Offload, Stand};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Flows that found no room and are looked at after one change, and of these so many that turn out not to fit after
/// all.
const LOOKED_AT: usize = if cfg!(test) { 64 } else { 256 };
const TRIED: usize = if cfg!(test) { 64 } else { 8 };
const ROUNDS: usize = 8;
/// Rows that may make room for another, the cheapest by their own traffic.
const CANDIDATES: usize = 4;

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

    /// While a table has more than fits, somebody leaves it.
    pub(crate) fn overflow(&mut self) {
        loop {
            // Pairs first: each that goes gives a line of the ACL back, and nobody else has to leave for it
            if self.class_over() {
                let Some((_, _, id)) = self.in_class.first().copied() else {
                    break;
                };
                self.deny(id, false, false, true);
            } else if self.acl_used > self.chip.acl.size {
                let Some(id) = self.victim() else { break };
                self.deny(id, true, false, false);
            } else if self.mac_used > self.chip.mac.map_or(0, |m| m.size) {
                let Some((_, _, id)) = self.in_mac.first().copied() else {
                    break;
                };
                self.deny(id, false, true, false);
            } else {
                break;
            }
            self.run();
        }
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

    /// Another measurement of a flow's traffic.
    pub(crate) fn weigh(&mut self, id: Id, traffic: u64) {
        let Some(e) = self.flows.get_mut(&id) else {
            return;
        };
        let (old, since) = (e.flow.traffic, e.since);
        if old == traffic {
            return;
        }
        let real = e.state.priced();
        let (place, answers) = (e.place, e.answers());
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
        let (value, mask, place) = (e.value, e.mask, e.place);
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

    /// The same of pairs.
    fn swap_pairs(&mut self) {
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
    }

    /// A flow that waits and has more than twice the traffic of the cheapest one in the ACL comes in for it.
    pub(crate) fn swap(&mut self) {
        self.swap_pairs();
        let full = |id: &Id| {
            let e = self.flows.get(id);
            e.is_some_and(|e| e.state.stand == Stand::Full)
        };
        let mut first = self.denied.iter().take(LOOKED_AT);
        let Some((Reverse(most), _, id)) = first.find(|(_, _, id)| full(id)).copied() else {
            return;
        };
        let Some((least, _, _)) = self.in_acl.first().copied() else {
            return;
        };
        if most > least.saturating_mul(2) {
            if let Some(e) = self.flows.get_mut(&id) {
                e.acl_denied = false;
            }
            self.wake(id);
            self.decide();
        }
    }
}

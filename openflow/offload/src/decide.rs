// SPDX-License-Identifier: Apache-2.0
//! Where each flow stands. Where the flows in front of it stand does not matter to a flow's place, only which there
//! are: so a change is followed from the back of the order to its front, and only to flows that meet what changed:
//!
//! ```text
//!   back ◄──────────────────────── order ────────────────────────► front
//!     changed flow ─► those in front that meet it, and whose place depends on what is behind them ─► …
//!     hole         ◄─ each counts, at every flow behind that it meets
//! ```
use crate::expand::{ALL, Row};
use crate::index::{Index, Side};
use crate::order::Place;
use crate::{ABSENT, Act, Entry, Id, Offload, Only, Price, Stand, State, Vlan, tables};
use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;
use tandem_ofpipeline::key::Key;

/// Flows whose writes are looked for may stand twice in the list, and so many more.
const SPARE: usize = 1024;

/// What of a flow is summed up.
#[derive(Clone, Copy, Default)]
struct Summed {
    turned: bool,
    answers: bool,
}

impl Offload {
    pub(crate) fn enter(&mut self, id: Id, mut e: Entry) {
        let mut holes = 0;
        let (value, mask) = e.answers();
        let _ = self
            .holes
            .meets(&self.order, &value, &mask, e.place, Side::Front, |_| {
                holes += 1;
                ControlFlow::Continue(())
            });
        e.holes = holes;
        let mut pushed = (0, 0);
        let _ = self
            .lossy
            .find(&self.order, &e.value, &e.mask, e.place, Side::Front, |g| {
                pushed.0 += 1;
                pushed.1 += i128::from(g.weight);
                ControlFlow::Continue(())
            });
        e.pushed = pushed;
        self.all.insert(&e.value, &e.mask, e.place);
        let (value_of, mask_of, place, bars) = (e.value, *e.mask, e.place, e.bars());
        let mut covered = Vec::new();
        self.all
            .covers(&self.order, &e.value, &e.mask, e.place, |g| covered.push(g));
        self.software += u128::from(e.flow.traffic);
        self.flows.insert(id, Box::new(e));
        self.sense(id, true);
        self.wake(id);
        for g in covered {
            self.wake(g);
        }
        if bars {
            self.wake_pairs(&value_of, &mask_of, place);
        }
    }

    pub(crate) fn leave(&mut self, id: Id) {
        self.settle(id, ABSENT);
        self.sense(id, false);
        let Some(e) = self.flows.remove(&id) else {
            return;
        };
        self.software -= u128::from(e.flow.traffic);
        self.missed.remove(&id);
        self.all.remove(&e.value, &e.mask, id);
        for r in e.rows.iter().filter(|r| !r.exact) {
            self.wides.remove(&r.value, &r.mask, id);
            // This flow's, and the list's
            if Arc::strong_count(r) == 2 {
                self.wide_rows.remove(r);
            }
        }
        for list in [&mut self.denied, &mut self.no_pair] {
            list.remove(&(Reverse(e.flow.traffic), e.since, id));
        }
        let mut covered = Vec::new();
        self.all
            .covers(&self.order, &e.value, &e.mask, e.place, |g| covered.push(g));
        for g in covered {
            if self
                .flows
                .get(&g)
                .is_some_and(|g| matches!(g.state.stand, Stand::Dead(_)))
            {
                self.wake(g);
            }
        }
        self.wake_kept_out(&e.value, &e.mask, e.place);
        self.gone.push(*e);
    }

    /// Would a flow of the MAC table be answered by the ACL in part only, or not at all?
    fn is_lossy(&self, e: &Entry) -> bool {
        e.mac_act().real() && self.mac_can(e) && (e.wide() || !self.row_act(e).real())
    }

    /// At those behind it that meet it, a flow that the MAC table alone can answer counts, so often and with so much
    /// traffic, where it did so before with that.
    pub(crate) fn push(&mut self, id: Id, before: Option<u64>, now: Option<u64>) {
        let Some(e) = self.flows.get(&id).filter(|e| self.is_lossy(e)) else {
            return;
        };
        if before.is_some() {
            self.lossy.remove(&e.value, &e.mask, id);
        }
        if let Some(traffic) = now {
            self.lossy
                .insert_weighed(&e.value, &e.mask, e.place, traffic);
        }
        let mut behind = Vec::new();
        let _ = self
            .all
            .meets(&self.order, &e.value, &e.mask, e.place, Side::Behind, |g| {
                behind.push(g);
                ControlFlow::Continue(())
            });
        for g in behind {
            if let Some(e) = self.flows.get_mut(&g) {
                e.pushed.0 = e.pushed.0 + u32::from(now.is_some()) - u32::from(before.is_some());
                e.pushed.1 += i128::from(now.unwrap_or(0)) - i128::from(before.unwrap_or(0));
            }
            self.wake(g);
        }
    }

    /// In or out of the lists of those whose place depends on what is behind them, and on whom that of others depends.
    pub(crate) fn sense(&mut self, id: Id, to: bool) {
        let Some(e) = self.flows.get(&id) else {
            return;
        };
        let traffic = Some(e.flow.traffic);
        if to {
            self.push(id, None, traffic);
        } else {
            self.push(id, traffic, None);
        }
        let Some(e) = self.flows.get(&id) else {
            return;
        };
        if e.writes {
            if to {
                self.writers.insert(&e.value, &e.mask, e.place);
            } else {
                self.writers.remove(&e.value, &e.mask, id);
            }
        }
        if e.mac.is_some() || e.wide() || !self.row_act(e).real() {
            if to {
                self.sensitive.insert(&e.value, &e.mask, e.place);
            } else {
                self.sensitive.remove(&e.value, &e.mask, id);
            }
        }
    }

    /// The flow is to be decided.
    pub(crate) fn wake(&mut self, id: Id) {
        if let Some(e) = self.flows.get_mut(&id)
            && !e.queued
        {
            e.queued = true;
            self.queue.push((self.order.full(e.place), id));
        }
    }

    /// What the ACL does for a flow's exact rows.
    pub(crate) fn row_act(&self, e: &Entry) -> Act {
        match e.act {
            _ if e.only == Some(Only::Mac) || e.second.is_some() => Act::Cpu,
            Act::Out { ports, rewrite }
                if !tables::redirects(&self.chip.acl, ports)
                    || !tables::writes(self.chip.acl.rewrites, rewrite) =>
            {
                Act::Cpu
            }
            act => act,
        }
    }

    fn real_as(&self, e: &Entry, stand: Stand) -> bool {
        match stand {
            Stand::Mac => e.mac_act().real(),
            Stand::Miss | Stand::Pair => e.act.real(),
            Stand::Acl { .. } => self.row_act(e).real() && e.rows.iter().any(|r| r.exact),
            _ => false,
        }
    }

    /// Could its answer be given by the MAC table, were there nothing else?
    pub(crate) fn mac_can(&self, e: &Entry) -> bool {
        let Some(table) = self.chip.mac else {
            return false;
        };
        let act = match e.act {
            _ if e.second.is_some() => true,
            // It writes nothing: there it would trap, where rows do no better
            Act::Out { rewrite, .. } if rewrite != crate::Rewrite::default() => {
                !self.row_act(e).real()
            }
            Act::Out { ports, .. } => {
                ports.count() == 1 || ports.count() > 1 && table.port_sets > 0
            }
            Act::Cpu => true,
            Act::Drop => false,
        };
        let table = e.mac.is_some() && e.only != Some(Only::Acl);
        // Whether it is idle the rows see by themselves
        let rows = e.flow.idle && !e.wide() && self.row_act(e).real();
        table && act && !rows && !e.flow.counted
    }

    pub(crate) fn set_free(&self, e: &Entry) -> bool {
        match e.mac_act() {
            Act::Out { ports, .. } if ports.count() > 1 => {
                self.sets.contains_key(&ports)
                    || (self.sets.len() as u32) < self.chip.mac.map_or(0, |m| m.port_sets)
            }
            _ => true,
        }
    }

    /// What is behind a flow and would decide, or might, before its entry in the MAC table does.
    pub(crate) fn obstacle(&self, e: &Entry) -> Option<Id> {
        let mut found = None;
        let _ = self
            .rows
            .meets(&self.order, &e.value, &e.mask, e.place, Side::Behind, |g| {
                found = Some(g);
                ControlFlow::Break(())
            });
        let key = e.mac?;
        found.or_else(|| {
            let same = self.macs.get(&key.address)?;
            same.iter().copied().find(|g| {
                self.flows.get(g).is_some_and(|g| {
                    self.order.cmp(g.place, e.place).is_gt()
                        && g.mac.is_some_and(|k| {
                            k.vlan == key.vlan || k.vlan == Vlan::Any || key.vlan == Vlan::Any
                        })
                })
            })
        })
    }

    /// Is anything behind it that answers packets of it?
    fn needed(&self, e: &Entry) -> bool {
        self.real
            .meets(
                &self.order,
                &e.value,
                &e.mask,
                e.place,
                Side::Behind,
                |_| ControlFlow::Break(()),
            )
            .is_break()
    }

    /// Packets of an entry behind that a flow's wide rows would trap, each in [`ALL`] parts.
    fn widened(e: &Entry, g: &Entry) -> i128 {
        let times = |r: &Arc<Row>| {
            let (mine, both) = (r.value.and(&g.mask), r.mask.and(&g.mask));
            if both == *r.mask && g.value.and(&r.mask) == r.value {
                r.part(true)
            } else if mine.and(&both) == g.value.and(&both) {
                r.part(false)
            } else {
                0
            }
        };
        let rows = e.rows.iter().filter(|r| !r.exact);
        rows.map(times).sum::<i128>() * i128::from(g.flow.traffic)
    }

    /// What a flow's wide rows would trap, and what the entries have that would have to trap instead; both in parts.
    fn prices(&self, e: &Entry) -> Price {
        let mut price = Price::default();
        let (of, order) = (&self.real, &self.order);
        let _ = of.find(order, &e.value, &e.mask, e.place, Side::Behind, |g| {
            price.turned += ALL * i128::from(g.weight);
            ControlFlow::Continue(())
        });
        for r in e.rows.iter().filter(|r| !r.exact) {
            let _ = of.find(order, &r.value, &r.mask, e.place, Side::Behind, |g| {
                price.widened += i128::from(g.weight) * r.part(g.whole);
                ControlFlow::Continue(())
            });
        }
        price
    }

    /// An entry that answers has come, gone, or has other traffic: what was weighed in front of it changes by that.
    pub(crate) fn reprice(&mut self, id: Id, now: bool) {
        let Some(g) = self.flows.get(&id).cloned() else {
            return;
        };
        let sign = if now { 1 } else { -1 };
        let (value, mask) = g.answers();
        let mut front = Vec::new();
        let _ = self
            .sensitive
            .meets(&self.order, &value, &mask, g.place, Side::Front, |e| {
                front.push(e);
                ControlFlow::Continue(())
            });
        for id in front {
            if let Some(e) = self.flows.get_mut(&id)
                && let Some(p) = &mut e.price
            {
                p.turned += sign * ALL * i128::from(g.flow.traffic);
            }
        }
        let mut wide = self.widened_over(&g.value, &g.mask, g.place);
        wide.sort_unstable();
        wide.dedup();
        for id in wide {
            if let Some(e) = self.flows.get_mut(&id) {
                let change = sign * Offload::widened(e, &g);
                if let Some(p) = &mut e.price {
                    p.widened += change;
                }
            }
        }
    }

    /// Where a flow stands, as those behind it stand.
    fn judge(&self, id: Id, price: &mut Option<Price>) -> State {
        let Some(e) = self.flows.get(&id) else {
            return ABSENT;
        };
        let state = |stand, hole| State {
            stand,
            real: self.real_as(e, stand),
            hole,
        };
        if let Some(by) = self.all.covered_by(&self.order, &e.value, &e.mask, e.place) {
            return state(Stand::Dead(by), false);
        }
        let all = e.flow.fields.is_empty() && e.only.is_none();
        let unseen = !e.flow.counted && !e.flow.idle;
        if all && e.act == Act::Drop && self.chip.miss_drop && unseen {
            return state(Stand::Miss, false);
        }
        if self.pairs(e) {
            return state(Stand::Pair, false);
        }
        let mac = self.mac_can(e) && !e.mac_denied && self.set_free(e);
        if e.mac_act().real() && mac && self.obstacle(e).is_none() {
            return state(Stand::Mac, false);
        }
        let answers = self.row_act(e).real() && e.rows.iter().any(|r| r.exact);
        // In its way are flows in front that only the MAC table does, and that have more traffic
        let pushes = e.pushed.0 > 0 && e.pushed.1 >= i128::from(e.flow.traffic);
        if answers && !e.wide() && pushes {
            return state(Stand::Pushes, true);
        }
        if answers && !e.wide() {
            let acl = Stand::Acl { wide: false };
            return if self.fits(e, acl) {
                state(acl, false)
            } else {
                state(Stand::Full, true)
            };
        }
        if !self.needed(e) {
            let acl = Stand::Acl { wide: false };
            return if answers && !pushes && self.fits(e, acl) {
                state(acl, false)
            } else {
                state(Stand::Idle, false)
            };
        }
        if mac && self.obstacle(e).is_none() {
            return state(Stand::Mac, false);
        }
        if e.rows.is_empty() {
            return state(Stand::NoRow, true);
        }
        if e.wide() || e.pushed.0 > 0 {
            let price = *price.get_or_insert_with(|| self.prices(e));
            // What the rows would push out of the MAC table, and the ACL does not do, is trapped as well
            if price.widened + ALL * e.pushed.1 > price.turned {
                let acl = Stand::Acl { wide: false };
                return if answers && !pushes && self.fits(e, acl) {
                    state(acl, true)
                } else {
                    state(Stand::Costly, true)
                };
            }
        }
        let acl = Stand::Acl { wide: true };
        if self.fits(e, acl) {
            state(acl, false)
        } else {
            state(Stand::Full, true)
        }
    }

    /// Is there no reason against a flow's rows? Whether there are lines for them is seen when all is decided, but
    /// for flows of the MAC table that they would push into the ACL: if there are more than there is room for, it is
    /// this one that stays out.
    fn fits(&self, e: &Entry, stand: Stand) -> bool {
        if e.acl_denied {
            return false;
        }
        if matches!(e.state.stand, Stand::Acl { .. }) || self.back.contains(&e.place.id) {
            return true;
        }
        let free = self.chip.acl.size.saturating_sub(self.acl_used);
        let own = e.lines(stand);
        if own > self.chip.acl.size {
            return false;
        }
        let mut pushed = 0;
        let Stand::Acl { wide } = stand else {
            return true;
        };
        for r in e.rows.iter().filter(|r| r.exact || wide) {
            let over =
                self.sensitive
                    .meets(&self.order, &r.value, &r.mask, e.place, Side::Front, |g| {
                        if let Some(g) = self.flows.get(&g)
                            && g.state.stand == Stand::Mac
                        {
                            pushed += g.lines(Stand::Acl { wide: true });
                        }
                        if pushed > 0 && own + pushed > free {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    });
            if over.is_break() {
                return false;
            }
        }
        true
    }

    /// A flow stands so from here on; who depends on it is to be decided.
    pub(crate) fn settle(&mut self, id: Id, new: State) {
        let Some(e) = self.flows.get(&id) else {
            return;
        };
        let old = e.state;
        if old == new {
            return;
        }
        let (value, mask, place) = (e.value, *e.mask, e.place);
        let (answers, unknown) = (e.answers(), e.is_unknown());
        let worth = (e.flow.traffic, Reverse(e.since), id);
        // Rows, entries, and their room
        if old.stand != new.stand {
            for (stand, now) in [(old.stand, false), (new.stand, true)] {
                let lines = e.lines(stand);
                match stand {
                    Stand::Acl { wide } => {
                        for r in e.rows.iter().filter(|r| r.exact || wide) {
                            if now {
                                self.rows.insert(&r.value, &r.mask, place);
                            } else {
                                self.rows.remove(&r.value, &r.mask, id);
                            }
                        }
                        if now {
                            self.acl_used += lines;
                            self.in_acl.insert(worth);
                        } else {
                            self.acl_used -= lines;
                            self.in_acl.remove(&worth);
                        }
                    }
                    Stand::Pair if now => {
                        self.rows.insert(&value, &mask, place);
                        self.acl_used += lines;
                        self.in_acl.insert(worth);
                        self.class_used += e.class_lines();
                        self.in_forms += u32::from(e.second.is_some());
                        self.in_class.insert(worth);
                    }
                    Stand::Pair => {
                        self.rows.remove(&value, &mask, id);
                        self.acl_used -= lines;
                        self.in_acl.remove(&worth);
                        self.class_used -= e.class_lines();
                        self.in_forms -= u32::from(e.second.is_some());
                        self.in_class.remove(&worth);
                    }
                    Stand::Mac => {
                        let set = match e.mac_act() {
                            Act::Out { ports, .. } if ports.count() > 1 => Some(ports),
                            _ => None,
                        };
                        let list = self.macs.entry(e.mac.map_or(0, |k| k.address)).or_default();
                        if now {
                            list.push(id);
                            self.mac_used += 1;
                            self.in_mac.insert(worth);
                            if let Some(s) = set {
                                *self.sets.entry(s).or_default() += 1;
                            }
                        } else {
                            list.retain(|g| *g != id);
                            if list.is_empty() {
                                self.macs.remove(&e.mac.map_or(0, |k| k.address));
                            }
                            self.mac_used -= 1;
                            self.in_mac.remove(&worth);
                            if let Some(s) = set
                                && let Some(n) = self.sets.get_mut(&s)
                            {
                                *n -= 1;
                                if *n == 0 {
                                    self.sets.remove(&s);
                                }
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        if old.stand.weighed() != new.stand.weighed() {
            for r in e.rows.iter().filter(|r| !r.exact) {
                if new.stand.weighed() {
                    self.wides.insert(&r.value, &r.mask, place);
                } else {
                    self.wides.remove(&r.value, &r.mask, id);
                }
            }
        }
        if old.real != new.real {
            if new.real {
                self.real
                    .insert_weighed(&answers.0, &answers.1, place, worth.0);
            } else {
                self.real.remove(&answers.0, &answers.1, id);
            }
        }
        // Those in front
        let mut front = Vec::new();
        if old.seen() != new.seen() {
            let wide = [old.stand, new.stand].contains(&Stand::Acl { wide: true });
            let ways = e.rows.iter().filter(|r| wide && !r.exact);
            let ways = ways.map(|r| (&r.value, &*r.mask)).chain([(&value, &mask)]);
            for (v, m) in ways {
                let _ = self
                    .sensitive
                    .meets(&self.order, v, m, place, Side::Front, |g| {
                        front.push(g);
                        ControlFlow::Continue(())
                    });
            }
        }
        if old.real != new.real {
            front.extend(self.widened_over(&value, &mask, place));
        }
        // Those behind
        let mut behind = Vec::new();
        if old.hole != new.hole {
            if new.hole {
                self.holes.insert(&value, &mask, place);
            } else {
                self.holes.remove(&value, &mask, id);
            }
            let _ = self
                .all
                .meets(&self.order, &value, &mask, place, Side::Behind, |g| {
                    behind.push(g);
                    ControlFlow::Continue(())
                });
        }
        let was = self.summed(id);
        if let Some(e) = self.flows.get_mut(&id) {
            e.state = new;
            if !new.stand.weighed() {
                e.price = None;
            }
        }
        if old.real != new.real {
            self.reprice(id, new.real);
        }
        self.sum_up(id, was);
        self.touched.push(id);
        for g in front {
            self.wake(g);
        }
        for g in behind {
            if self.flows.get(&g).is_some_and(|g| g.is_apart(unknown)) {
                continue;
            }
            let was = self.summed(g);
            if let Some(e) = self.flows.get_mut(&g) {
                e.holes = if new.hole {
                    e.holes + 1
                } else {
                    e.holes.saturating_sub(1)
                };
            }
            if self.summed(g).turned != was.turned {
                self.touched.push(g);
            }
            self.sum_up(g, was);
        }
    }

    fn summed(&self, id: Id) -> Summed {
        let e = self.flows.get(&id);
        e.map_or(Summed::default(), |e| Summed {
            turned: e.holes > 0 && e.state.real,
            answers: e.answers_all(),
        })
    }

    /// Sums follow what a flow was and is.
    fn sum_up(&mut self, id: Id, was: Summed) {
        let is = self.summed(id);
        match (was.turned, is.turned) {
            (false, true) => self.turned += 1,
            (true, false) => self.turned -= 1,
            _ => {}
        }
        let traffic = u128::from(self.traffic(id).unwrap_or(0));
        match (was.answers, is.answers) {
            (false, true) => self.software -= traffic,
            (true, false) => self.software += traffic,
            _ => {}
        }
    }

    /// Decides what is queued, from the back of the order to its front.
    pub(crate) fn run(&mut self) {
        while let Some((_, id)) = self.queue.pop() {
            let Some(e) = self.flows.get_mut(&id) else {
                continue;
            };
            e.queued = false;
            self.look_in_front(id);
            let Some(e) = self.flows.get(&id) else {
                continue;
            };
            let mut price = e.price;
            let state = self.judge(id, &mut price);
            if let Some(e) = self.flows.get_mut(&id) {
                e.price = price;
            }
            self.settle(id, state);
            self.note(id);
            // A flow that changed its action in place
            self.touched.push(id);
            // Where there is no room flows are decided again and again
            if self.touched.len() > 2 * self.flows.len() + SPARE {
                self.touched.sort_unstable();
                self.touched.dedup();
            }
        }
    }

    /// Everything, room included.
    pub(crate) fn decide(&mut self) {
        self.run();
        self.overflow();
        self.retry();
    }

    /// Flows in front whose wide rows meet this match: what they trap is weighed against it.
    pub(crate) fn widened_over(&self, value: &Key, mask: &Key, place: Place) -> Vec<Id> {
        let mut wide = Vec::new();
        let _ = self
            .wides
            .meets(&self.order, value, mask, place, Side::Front, |g| {
                wide.push(g);
                ControlFlow::Continue(())
            });
        wide
    }
}

/// For what reads indexes of its own.
pub(crate) fn meeting(of: &Index, o: &Offload, e: &Entry, side: Side, mut f: impl FnMut(Id)) {
    let _ = of.meets(&o.order, &e.value, &e.mask, e.place, side, |g| {
        f(g);
        ControlFlow::Continue(())
    });
}

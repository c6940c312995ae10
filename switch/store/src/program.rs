//! Programming: what to post next, and what an answer means.

use crate::Store;
use crate::api::{Body, Completion, Planned, Policy, Ring};
use crate::fib::{
    Content, Entry, F_DEFERRED, F_DELETE, F_DEPEND, F_FAILED, F_FLIGHT, F_GIVEN_UP, F_HELD,
    F_LEASE, F_MOVED, F_OMIT, F_PARSER, F_QUEUED, F_REPEAT, F_RETRY, F_UNDECIDED, Fam, SLOT_BITS,
    V4, V6, coarse,
};
use crate::hw::{
    CLASSES, Cls, DepState, Fail, Flight, HwClass, MAX_ATTEMPTS, Ref, body_of, is_full, ring_no,
    with_class,
};
use crate::reserve::State;
use crate::routes::Redundant;
use crate::sync::Phase;
use crate::undecided::{UNKNOWN, perhaps_absent};
use tandem_abi::raw::*;
use tandem_cover::NONE;

impl Store {
    /// Hands out commands to post, in order, as many as may be outstanding. Returns how many were added. Call it after
    /// events and completions, until it returns 0.
    pub fn plan(&mut self, out: &mut Vec<Planned>, now_ns: u64) -> usize {
        loop {
            self.catch_up_all(now_ns);
            let n = self.plan_some(out, now_ns);
            if n > 0 || !self.unfinished() {
                return n;
            }
        }
    }

    /// The same, but not for long: where something follows for many routes it hands out nothing, and the store is
    /// [behind](Store::behind); where many routes have to wait it looks at [`crate::SLICE`] of them. With 0 it has come to the end
    /// unless the store is [unfinished](Store::unfinished).
    pub fn plan_some(&mut self, out: &mut Vec<Planned>, now_ns: u64) -> usize {
        // What was given back may let something else in: that is looked at before this says that nothing is to do.
        for _ in 0..4 {
            let n = self.plan_once(out, now_ns);
            if n > 0 || self.unfinished() || !self.topo.dirty.any() {
                return n;
            }
        }
        0
    }

    fn plan_once(&mut self, out: &mut Vec<Planned>, now_ns: u64) -> usize {
        let before = out.len();
        (self.slices.cut, self.slices.searched) = (false, 0);
        if !self.settled(now_ns) {
            return 0;
        }
        self.name_left_by_members();
        if let Some(p) = self.step_phase(now_ns) {
            out.push(p);
        }
        if !matches!(self.phase, Phase::Replay | Phase::Normal) {
            return self.count(out, before);
        }
        let [max_sync, max_bulk] = self.config.max_outstanding;
        self.unshut();
        self.use_credits();
        self.hw.retry_in_use();
        self.drain_touched();
        // ports that close have room, whatever is queued
        let room = max_sync - self.doors.shut_next.min(max_sync / 2);
        self.step_objects(out, room, now_ns);
        if self.behind() {
            // routes of an object that failed just now are not all in their queue yet
            return self.count(out, before);
        }
        // Everything that routes refer to is settled before routes are programmed anew.
        let own_stand = self.replay.own_stand();
        let mut filled = false;
        if self.replay.holds()
            && self.hw.queues_empty(own_stand)
            && self.hw.flights.outstanding[0] == 0
        {
            self.replay.open = true;
            filled = self.is_filled();
        }
        let (mut in_vain, mut held) = (0, false);
        self.doors.shut_next = 0;
        if !self.urgent.is_empty() || !self.route_queue.is_empty() {
            self.shut_early(out, max_sync, now_ns);
            // what is said anew is in no order
            held = self.phase == Phase::Normal && self.hw.flights.holds_routes();
        }
        // what a route means for those below it may be left over
        while !held
            && self.hw.flights.outstanding[1] < max_bulk
            && !self.behind()
            && !self.doors_close()
        {
            if in_vain + self.slices.searched >= self.slices.size {
                self.slices.cut = true;
                break;
            }
            let first = self.urgent.pop_front();
            let urgent = first.is_some();
            let queue = CLASSES.len() + usize::from(!urgent);
            let r = match first.or_else(|| self.next_queued()) {
                Some(r) => {
                    self.progress.taken[queue] += 1;
                    r
                }
                None => {
                    if self.hw.flights.outstanding[1] > 0 {
                        break;
                    }
                    match self.replay.next() {
                        true => {
                            self.route_queue.extend(self.replay.take());
                            continue;
                        }
                        false => break,
                    }
                }
            };
            let p = match r.cls {
                Cls::Route4 => self.step_route::<V4>(r.id, urgent, now_ns),
                Cls::Route6 => self.step_route::<V6>(r.id, urgent, now_ns),
                _ => None,
            };
            in_vain += usize::from(p.is_none());
            out.extend(p);
            self.drain_touched();
        }
        self.look_at_shut();
        let placed = !own_stand && self.replay.own_stand();
        if !self.behind() && (self.open_doors() || filled || placed) {
            self.step_objects(out, max_sync, now_ns);
        }
        self.drop_released();
        // The last answer of a replay came: it ends here.
        out.extend(self.step_phase(now_ns));
        self.slices.cut |= !self.hw.woken.is_empty();
        self.count(out, before)
    }

    fn count(&mut self, out: &[Planned], before: usize) -> usize {
        let n = out.len() - before;
        self.counters.commands += n as u64;
        n
    }

    /// Nodes whose part in the cover rule changed.
    pub(crate) fn drain_touched(&mut self) {
        self.drain_touched_of::<V4>();
        self.drain_touched_of::<V6>();
    }

    fn drain_touched_of<F: Fam>(&mut self) {
        while F::fib(&self.fibs).cover.has_touched() {
            let fib = F::fib_mut(&mut self.fibs);
            for node in fib.cover.take_touched() {
                if !fib.cover.alive(node) {
                    continue;
                }
                let e = match fib.at_node(node) {
                    Some(e) => e,
                    None if fib.cover.aggregate(node) => {
                        let e = fib.entries.insert(Entry {
                            node,
                            ..Entry::default()
                        });
                        fib.cover.set_value(node, e);
                        e
                    }
                    None => continue,
                };
                if !fib.entries[e].is(F_FLIGHT) {
                    // Ahead of everything else; it keeps its place in the other queue.
                    self.urgent.push_back(Ref::new(F::CLS, e));
                }
            }
        }
    }

    // -- one route ----------------------------------------------------------------------------------------------------

    /// `urgent`: ahead of its place in the queue.
    pub(crate) fn step_to_wanted<F: Fam>(
        &mut self,
        e: u32,
        urgent: bool,
        now: u64,
    ) -> Option<Planned> {
        let r = Ref::new(F::CLS, e);
        let fib = F::fib_mut(&mut self.fibs);
        let entry = fib.entries[e];
        fib.entries[e].set(F_DEFERRED | F_HELD, false);
        if !urgent {
            fib.entries[e].set(F_QUEUED, false);
        }
        if entry.node == NONE || entry.is(F_FLIGHT) {
            return None;
        }
        if !urgent {
            fib.entries[e].set(F_MOVED, false);
        }
        let early = entry.is(F_MOVED) || (urgent && entry.is(F_QUEUED));
        self.decided::<F>(e);
        let node = entry.node;
        let kernel = entry.want.present();
        let failed = entry.is(F_FAILED)
            && !entry.is(F_RETRY)
            && !matches!(self.redundant::<F>(e), Redundant::Yes);
        if failed {
            // whether that matters to who sends from there depends on interfaces as well
            self.look_lacking::<F>(e);
        }
        let fib = F::fib_mut(&mut self.fibs);
        let mut aggregate = false;
        let d = if kernel && entry.is(F_PARSER) {
            Content::ABSENT
        } else if kernel && !failed {
            match self.wanted_on_chip::<F>(e, entry.is(F_UNDECIDED), now)? {
                Some(d) => d,
                None => Content::ABSENT,
            }
        } else if fib.cover.aggregate(node) {
            aggregate = true;
            Content::trap(TND_TRAP_ROUTE)
        } else {
            Content::ABSENT
        };
        let fib = F::fib_mut(&mut self.fibs);
        if !d.present() && !aggregate && fib.cover.aggregate(node) {
            // Left out by itself, but an aggregate trap is wanted here.
            aggregate = true;
        }
        let d = if aggregate {
            Content::trap(TND_TRAP_ROUTE)
        } else {
            d
        };
        let have = fib.entries[e].have;
        let ends = !d.present() && !kernel;
        let changes = have != d.on_chip() && !d.is_trap();
        let d = if early && (changes || ends) && self.passes::<F>(e, ends) {
            // what has come between is written before it
            self.queue_route::<F>(e);
            let fib = F::fib_mut(&mut self.fibs);
            if ends && !have.present() {
                // there is nothing to trap by: what goes below it traps, as if it were there
                fib.entries[e].flags |= F_UNDECIDED;
                return None;
            }
            Content::trap(TND_TRAP_ROUTE)
        } else {
            d
        };
        let fib = F::fib_mut(&mut self.fibs);
        if !d.present() {
            return self.step_delete::<F>(e, have, kernel, early);
        }
        if have == d.on_chip() && !entry.is(F_REPEAT) {
            if aggregate {
                fib.cover.aggregate_up(node, true);
            } else {
                self.stands::<F>(e, now);
            }
            return None;
        }
        if have.present() {
            if d.is_trap() {
                return Some(self.post_route::<F>(
                    e,
                    TND_OP_SET_TRAP,
                    d.on_chip(),
                    aggregate,
                    None,
                ));
            }
            // Back from a forced trap: not before the aggregate traps that relieve it stand.
            if have.is_trap() && self.pending_aggregates > 0 {
                self.defer::<F>(e);
                return None;
            }
            return Some(self.post_route::<F>(e, TND_OP_UPDATE, d.on_chip(), aggregate, None));
        }
        let family = Self::family_index::<F>();
        let lease = if aggregate {
            match self.reserve.for_aggregate(family) {
                Some(s) => {
                    F::fib_mut(&mut self.fibs).cover.aggregate_up(node, true);
                    self.pending_aggregates += 1;
                    Some(s)
                }
                None => {
                    if !self.reserve.waiting.contains(&r) {
                        self.reserve.waiting.push(r);
                    }
                    return None;
                }
            }
        } else if entry.is(F_LEASE) {
            self.reserve.for_local(family)
        } else {
            None
        };
        Some(self.post_route::<F>(e, TND_OP_CREATE, d.on_chip(), aggregate, lease))
    }

    /// What the chip should say for a kernel prefix. `None`: wait; `Some(None)`: nothing. `waited`: it did so before.
    fn wanted_on_chip<F: Fam>(
        &mut self,
        e: u32,
        waited: bool,
        now: u64,
    ) -> Option<Option<Content>> {
        let fib = F::fib_mut(&mut self.fibs);
        let entry = fib.entries[e];
        let node = entry.node;
        if !entry.is(F_RETRY) {
            match self.redundant::<F>(e) {
                Redundant::Yes => {
                    let fib = F::fib_mut(&mut self.fibs);
                    fib.entries[e].set(F_OMIT, true);
                    // Counted like a missing one: whoever answers for it must go on trapping.
                    fib.cover.missing(node);
                    if entry.is(F_FAILED) {
                        fib.entries[e].set(F_FAILED, false);
                        self.fails.remove(&Ref::new(F::CLS, e));
                        self.look_lacking::<F>(e);
                    }
                    if !entry.is(F_OMIT) {
                        self.requeue_own_below::<F>(e, now);
                    }
                    return Some(None);
                }
                other => {
                    F::fib_mut(&mut self.fibs).entries[e].set(F_OMIT, false);
                    if matches!(other, Redundant::Wait) && !entry.have.present() {
                        self.undecided::<F>(e);
                        return None;
                    }
                }
            }
        }
        if entry.want.is_trap() {
            return Some(Some(entry.want));
        }
        let fib = F::fib(&self.fibs);
        let installed = fib.cover.is_installed(node);
        if fib.cover.forced(node) > 0
            || (!installed && fib.cover.starts_as_trap(node))
            || entry.is(F_DEPEND)
        {
            return Some(Some(Content::trap(TND_TRAP_ROUTE)));
        }
        if entry.have != entry.want.on_chip() && self.overtakes::<F>(e) {
            return Some(Some(Content::trap(TND_TRAP_ROUTE)));
        }
        if entry.have != entry.want.on_chip()
            && let Some(long) = self.waits_for_made::<F>(e)
        {
            self.undecided::<F>(e);
            return long.then_some(Some(Content::trap(TND_TRAP_ROUTE)));
        }
        let dep = entry.want.dep();
        match dep.map(|d| self.hw.dep_state(d)) {
            // it was never the kernel's to send by what stands there until then
            Some(DepState::Ready)
                if entry.have != entry.want.on_chip()
                    && dep.is_some_and(|d| self.hw.is_changing(d)) =>
            {
                let all = dep.map(|d| self.hw.awaited.entry(d).or_default());
                all.into_iter()
                    .for_each(|x| _ = x.insert(Ref::new(F::CLS, e)));
                self.undecided::<F>(e);
                // one that is changed again and again keeps nobody where the kernel no longer has him
                waited.then_some(Some(Content::trap(TND_TRAP_ROUTE)))
            }
            None | Some(DepState::Ready) => Some(Some(entry.want)),
            Some(DepState::Pending) => {
                self.undecided::<F>(e);
                None
            }
            // The prefix fits, its next hop does not.
            Some(DepState::Failed) => match self.config.policy {
                Policy::Trap => Some(Some(Content::trap(TND_TRAP_ROUTE))),
                Policy::Fail => Some(None),
            },
        }
    }

    /// The entry goes, or isn't there.
    fn step_delete<F: Fam>(
        &mut self,
        e: u32,
        have: Content,
        kernel: bool,
        early: bool,
    ) -> Option<Planned> {
        let r = Ref::new(F::CLS, e);
        let fib = F::fib_mut(&mut self.fibs);
        let entry = fib.entries[e];
        let node = entry.node;
        if !have.present() {
            if !kernel && entry.head == NONE && !entry.is(F_QUEUED) {
                fib.cover.set_value(node, NONE);
                fib.entries.remove(e);
                fib.waits_since.remove(&e);
                self.fails.remove(&r);
                self.attempts.remove(&r);
            }
            return None;
        }
        // What goes with it, and is above it, goes first: it would answer.
        if entry.is(F_GIVEN_UP) || self.goes_after::<F>(e, early) {
            return None;
        }
        let made = self.waits_for_made::<F>(e);
        F::fib_mut(&mut self.fibs).entries[e].set(F_HELD, made.is_some());
        if made == Some(false) {
            return None;
        }
        // Who took its place, or did for a part of it, is not there yet, or is being changed: the next one would answer, or neither
        // before nor after. That may last.
        if made.is_some()
            || self.uncovers_changing::<F>(e)
            || self.overtakes::<F>(e)
            || self.uncovers::<F>(e, early)
        {
            let stands = have.is_trap() && !entry.is(F_REPEAT);
            let trap = Content::trap(TND_TRAP_ROUTE);
            return (!stands).then(|| self.post_route::<F>(e, TND_OP_SET_TRAP, trap, false, None));
        }
        let fib = F::fib_mut(&mut self.fibs);
        // What it covers is the next one's now, which must trap before this one is gone.
        if fib.cover.is_installed(node) {
            fib.cover.withdrawn(node);
        } else {
            fib.cover.aggregate_up(node, false);
        }
        if fib.cover.uncovered(node) > 0
            && let Some(c) = fib.cover.next_cover(node)
        {
            let safe = fib.at_node(c).is_none_or(|x| {
                let x = &fib.entries[x];
                x.have.is_trap() && !x.is(F_FLIGHT | F_REPEAT)
            });
            if !safe {
                self.drain_touched();
                self.defer::<F>(e);
                return None;
            }
        }
        Some(self.post_route::<F>(e, TND_OP_DELETE, have, false, None))
    }

    /// The entry stands as it should.
    fn stands<F: Fam>(&mut self, e: u32, now: u64) {
        let fib = F::fib_mut(&mut self.fibs);
        let entry = fib.entries[e];
        let node = entry.node;
        if !fib.cover.is_installed(node) {
            fib.cover.installed(node);
        }
        if entry.is(F_FAILED | F_RETRY | F_LEASE) {
            fib.entries[e].set(F_FAILED | F_RETRY | F_LEASE, false);
            self.fails.remove(&Ref::new(F::CLS, e));
            self.look_lacking::<F>(e);
        }
        self.requeue_own_below::<F>(e, now);
    }

    pub(crate) fn post_route<F: Fam>(
        &mut self,
        e: u32,
        op: u16,
        content: Content,
        aggregate: bool,
        lease: Option<usize>,
    ) -> Planned {
        let r = Ref::new(F::CLS, e);
        let fib = F::fib_mut(&mut self.fibs);
        let delete = op == TND_OP_DELETE;
        fib.entries[e].flags |= if delete {
            F_FLIGHT | F_DELETE
        } else {
            F_FLIGHT
        };
        let (bits, prefix_len) = fib.cover.prefix(fib.entries[e].node);
        if !delete && perhaps_absent(&fib.entries[e]) {
            fib.made += 1;
            fib.making
                .entry((bits, prefix_len))
                .or_insert((fib.made, Vec::new()));
        }
        let target = match content.kind {
            TND_RT_NEXTHOP if !delete => self.hw.ids.nexthops.of(content.target),
            TND_RT_NHG if !delete => self.hw.ids.nhgs.of(content.target),
            _ => 0,
        };
        let body: Body = body_of(&tnd_route {
            struct_size: size_of::<tnd_route>() as u16,
            vrf: self.hw.ids.vrf(bits.slot()),
            family: F::AF,
            prefix_len: prefix_len.saturating_sub(SLOT_BITS),
            action: if delete { TND_ACT_TRAP } else { content.action },
            reason: if delete {
                TND_TRAP_ROUTE as u8
            } else {
                content.reason
            },
            target_kind: if target != 0 {
                content.kind
            } else {
                TND_RT_NONE
            },
            target,
            addr: bits.to_bytes(),
            ..Default::default()
        });
        if !delete && let Some(d) = content.dep() {
            self.hw.hold(d, 1);
        }
        let lease_id = lease.and_then(|s| self.reserve.lease_id(s));
        if let (Some(s), Some(_)) = (lease, lease_id) {
            self.reserve.slots[s].state = State::Used(r);
        }
        let token = self.hw.flights.start(Flight {
            what: r,
            op,
            ring: Ring::Bulk,
            content,
            aggregate,
            lease: match (lease, lease_id) {
                (Some(s), Some(_)) => s as u32 + 1,
                _ => 0,
            },
        });
        let flags = match (delete, lease_id) {
            (true, _) => TND_CMD_IDEMPOTENT,
            (false, Some(_)) => TND_CMD_LEASE,
            (false, None) => 0,
        };
        Planned {
            token,
            ring: Ring::Bulk,
            op,
            cls: TND_CLS_ROUTE,
            flags,
            lease: lease_id.unwrap_or(0),
            body,
        }
    }

    // -- answers ------------------------------------------------------------------------------------------------------

    /// The device answered. Tokens of an earlier attach are ignored.
    pub fn complete(&mut self, token: u64, completion: &Completion, now_ns: u64) {
        let Some(f) = self.hw.flights.end(token) else {
            return;
        };
        self.progress.answered[ring_no(f.ring)] += 1;
        let c = completion;
        for d in c.deltas.iter().take(usize::from(c.delta_count)) {
            if d.1 < 0 {
                self.freed(d.0, u64::from(d.1.unsigned_abs()));
            }
        }
        // A compensating delete found nothing: what was freed was freed by the command whose answer got lost.
        if f.op == TND_OP_DELETE && c.status == TND_ST_OK && c.delta_count == 0 {
            self.credit_all(1);
        }
        match f.op {
            TND_OP_BEGIN_RESYNC | TND_OP_END_RESYNC => return self.phase_done(f.op, c, now_ns),
            TND_OP_LEASE => return self.complete_lease(&f, c, now_ns),
            _ => {}
        }
        self.together.goes_on_or_begins();
        if c.status != TND_ST_OK {
            self.counters.failed += 1;
            self.counters.full += u64::from(is_full(c.status));
        } else if self.phase == Phase::Replay && self.warm && f.op == TND_OP_CREATE {
            self.counters.replayed += 1;
        } else {
            self.counters.writes += 1;
        }
        match f.what.cls {
            Cls::Route4 => self.complete_route::<V4>(&f, c, now_ns),
            Cls::Route6 => self.complete_route::<V6>(&f, c, now_ns),
            Cls::Lease => {}
            _ => {
                if self.hw.complete(&f, c, now_ns) {
                    self.refund(c.table);
                    self.wait_for(f.what, c.table, false);
                }
                with_class!(f.what.cls, T => T::ANSWERED(self, f.what, now_ns));
                if f.what.cls == Cls::Nexthop && c.status == TND_ST_EXISTS {
                    self.found_otherwise(f.what.id, now_ns);
                }
            }
        }
        self.drain_changed(now_ns);
        self.drain_touched();
        if !self.behind() && !self.together.goes_on {
            self.together_ends(now_ns);
        }
    }

    fn complete_route<F: Fam>(&mut self, f: &Flight, c: &Completion, now: u64) {
        let e = f.what.id;
        let fib = F::fib_mut(&mut self.fibs);
        fib.entries[e].set(F_FLIGHT | F_DELETE, false);
        self.answered::<F>(e);
        let entry = F::fib(&self.fibs).entries[e];
        let old = entry.have;
        if f.aggregate && f.op == TND_OP_CREATE {
            self.pending_aggregates = self.pending_aggregates.saturating_sub(1);
        }
        let ok = c.status == TND_ST_OK || (f.op == TND_OP_DELETE && c.status == TND_ST_NOENT);
        if ok {
            if !self.attempts.is_empty() {
                self.attempts.remove(&f.what);
                if let Some(d) = f.content.dep().filter(|_| f.op != TND_OP_DELETE) {
                    self.attempts.remove(&d);
                }
            }
            let fib = F::fib_mut(&mut self.fibs);
            fib.entries[e].since = coarse(now);
            if f.op == TND_OP_DELETE {
                fib.entries[e].have = Content::ABSENT;
                fib.entries[e].set(F_REPEAT, false);
                // A lost DELETE may have found it, where it is known that it was made.
                let lost = entry.is(F_REPEAT) && old != UNKNOWN;
                self.give_back(f.what, c.delta_count > 0 || lost);
            } else {
                fib.entries[e].have = f.content;
                fib.entries[e].set(F_REPEAT, false);
                match (
                    f.content.is_trap(),
                    old.is_trap(),
                    entry.want.is_trap(),
                    old.present(),
                ) {
                    (true, false, false, true) => self.counters.covers_set += 1,
                    (false, true, false, true) => self.counters.covers_restored += 1,
                    _ => {}
                }
                if !f.aggregate {
                    // On a slot of the reserve for aggregates that was leased again: an ordinary entry now.
                    self.stands::<F>(e, now);
                }
            }
            if let Some(d) = old.dep() {
                self.hw.hold(d, -1);
            }
            // what the chip has had, whatever is known of it, refers to nothing any more
            if f.op != TND_OP_CREATE {
                self.hw.released |= !self.hw.in_use.is_empty();
            }
        } else {
            if f.op != TND_OP_DELETE
                && let Some(d) = f.content.dep()
            {
                self.hw.hold(d, -1);
            }
            if f.aggregate && f.op == TND_OP_CREATE {
                // It does not stand (yet): whom it was to relieve answers for its packets.
                let fib = F::fib_mut(&mut self.fibs);
                fib.cover.aggregate_up(entry.node, false);
            }
            self.route_failed::<F>(f, c, old, now);
        }
        self.look_leaving::<F>(e, old);
        if let Some(d) = f.content.dep() {
            self.hw.landed(d);
        }
        self.queue_route::<F>(e);
        if F::fib(&self.fibs).entries[e].is(F_MOVED) {
            // its turn has come already
            self.urgent.push_back(f.what);
        }
        self.requeue_deferred();
    }

    fn route_failed<F: Fam>(&mut self, f: &Flight, c: &Completion, old: Content, now: u64) {
        let e = f.what.id;
        let family = Self::family_index::<F>();
        if f.lease > 0 {
            // What a refused command was to draw on is still there, unless the chip says that it is not.
            self.not_drawn(f.lease as usize - 1, c.status != TND_ST_LEASE);
        }
        let fib = F::fib_mut(&mut self.fibs);
        let node = fib.entries[e].node;
        match (f.op, c.status) {
            (TND_OP_CREATE, TND_ST_EXISTS) => {
                fib.entries[e].have = UNKNOWN;
                return;
            }
            (TND_OP_UPDATE | TND_OP_SET_TRAP, TND_ST_NOENT) => {
                // Gone under our feet, or never made: nothing stands there.
                fib.entries[e].have = Content::ABSENT;
                fib.entries[e].set(F_REPEAT, false);
                if let Some(d) = old.dep() {
                    self.hw.hold(d, -1);
                }
                let fib = F::fib_mut(&mut self.fibs);
                if fib.cover.is_installed(node) {
                    fib.cover.withdrawn(node);
                }
                self.give_back(f.what, old != UNKNOWN);
                self.tried_again::<F>(f);
                return;
            }
            (TND_OP_CREATE | TND_OP_UPDATE, TND_ST_DEPEND) if f.content.dep().is_some() => {
                // It traps until its target is there. The store believes that it is: that is written again a few times.
                fib.entries[e].flags |= F_DEPEND;
                if let Some(d) = f.content.dep() {
                    let n = self.attempts.entry(d).or_insert(0);
                    *n = n.saturating_add(1);
                    self.hw.doubt(d, *n < MAX_ATTEMPTS);
                }
                self.tried_again::<F>(f);
                return;
            }
            (_, status) if !is_full(status) => {
                let n = self.attempts.entry(f.what).or_insert(0);
                *n += 1;
                if *n < MAX_ATTEMPTS {
                    self.tried_again::<F>(f);
                    return;
                }
                self.attempts.remove(&f.what);
            }
            _ => {}
        }
        if f.op == TND_OP_DELETE {
            // It can't be deleted: it stands for nothing any more as far as the store can help it.
            self.fails.insert(f.what, Fail::of(c, now));
            fib.entries[e].flags |= F_GIVEN_UP;
            return;
        }
        let fib = F::fib_mut(&mut self.fibs);
        if f.aggregate {
            fib.cover.aggregate_failed(node);
            return;
        }
        let entry = fib.entries[e];
        let urgent = entry.want.is_trap()
            && (entry.want.is_connected() || u16::from(entry.want.reason) == TND_TRAP_LOCAL);
        if urgent
            && !entry.is(F_LEASE)
            && is_full(c.status)
            && self.reserve.for_local(family).is_some()
        {
            F::fib_mut(&mut self.fibs).entries[e].flags |= F_LEASE;
            self.tried_again::<F>(f);
            return;
        }
        let fib = F::fib_mut(&mut self.fibs);
        let x = &mut fib.entries[e];
        let again = x.is(F_RETRY);
        x.set(F_RETRY | F_LEASE, false);
        if !x.want.present() {
            return;
        }
        x.flags |= F_FAILED;
        if self.config.policy == Policy::Trap {
            fib.cover.missing(node);
        }
        if again {
            self.refund(c.table);
        }
        let since = self.fails.get(&f.what).map_or(now, |x| x.since);
        self.fails.insert(
            f.what,
            Fail {
                since,
                ..Fail::of(c, now)
            },
        );
        self.look_lacking::<F>(e);
        self.requeue_own_below::<F>(e, now);
        self.wait_for(
            f.what,
            if is_full(c.status) { c.table } else { u16::MAX },
            urgent,
        );
    }
}

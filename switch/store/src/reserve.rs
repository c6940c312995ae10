//! Slots of the route tables kept free by leases: for aggregate traps, and for local and connected prefixes.
//!
//! Each slot is a lease of its own for one route. It is held until an entry draws on it; when that entry is deleted the
//! slot is leased again, before anything else may take what was freed.

use crate::Store;
use crate::api::{Completion, Planned};
use crate::fib::{F_RETRY, Fam, V4, V6};
use crate::hw::{Cls, Flight, Ref, body_of, is_full};
use std::collections::HashSet;
use tandem_abi::raw::*;

/// See [`Store::refund`].
const MAX_REFUNDS: u32 = 16;

/// What a slot of the reserve is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// To be leased; in the queue.
    Due,
    /// The command is on its way.
    Asking,
    /// Nothing was free: asks again when something is freed in this pool.
    Wait(u16),
    /// The chip has no leases, or the write failed: not asked again before the next attach.
    Off,
    /// Free for use.
    Held(u32),
    /// An entry stands on it.
    Used(Ref),
    /// Asked again while an entry stands on it: with the answer yes, that entry becomes an ordinary one.
    Replacing(Ref),
}

/// One slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Index of the family: 0 = IPv4, 1 = IPv6.
    pub family: usize,
    /// For local and connected prefixes; else for aggregate traps.
    pub local: bool,
    pub state: State,
    /// The lease that it was granted last.
    pub lease: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Reserve {
    pub slots: Vec<Slot>,
    pub queue: Vec<usize>,
    /// Aggregate traps that wait for a slot.
    pub waiting: Vec<Ref>,
}

/// How many units a table of this many slots keeps: the wish, but at most an eighth.
pub(crate) fn scaled(wish: u32, slots: u32) -> u32 {
    wish.min(slots / 8)
}

impl Reserve {
    /// All slots are to be leased.
    pub fn new(aggregates: u32, locals: u32, route_slots: [u32; 2]) -> Reserve {
        let mut r = Reserve::default();
        for (family, &size) in route_slots.iter().enumerate() {
            for (local, n) in [
                (true, scaled(locals, size)),
                (false, scaled(aggregates, size)),
            ] {
                for _ in 0..n {
                    r.queue.push(r.slots.len());
                    r.slots.push(Slot {
                        family,
                        local,
                        state: State::Due,
                        lease: 0,
                    });
                }
            }
        }
        r
    }

    fn find(&self, family: usize, local: bool) -> Option<usize> {
        self.slots.iter().position(|s| {
            s.family == family && s.local == local && matches!(s.state, State::Held(_))
        })
    }

    /// A held slot for an aggregate trap.
    pub fn for_aggregate(&self, family: usize) -> Option<usize> {
        self.find(family, false)
    }

    /// A held slot for a local or connected prefix.
    pub fn for_local(&self, family: usize) -> Option<usize> {
        self.find(family, true)
    }

    pub fn of_entry(&self, r: Ref) -> Option<usize> {
        self.slots.iter().position(|s| s.state == State::Used(r))
    }

    /// Entries of a class that stand on the reserve.
    pub fn users(&self, cls: Cls) -> impl Iterator<Item = u32> {
        self.slots.iter().filter_map(move |s| match s.state {
            State::Used(r) | State::Replacing(r) if r.cls == cls => Some(r.id),
            _ => None,
        })
    }

    /// Lease id of a held slot.
    pub fn lease_id(&self, slot: usize) -> Option<u32> {
        match self.slots.get(slot)?.state {
            State::Held(id) => Some(id),
            _ => None,
        }
    }

    /// Slots of a family that count as units for aggregates: held or in use.
    pub fn units(&self, family: usize) -> usize {
        self.slots
            .iter()
            .filter(|s| {
                s.family == family
                    && !s.local
                    && matches!(
                        s.state,
                        State::Held(_) | State::Used(_) | State::Replacing(_)
                    )
            })
            .count()
    }
}

impl Store {
    pub(crate) fn family_index<F: Fam>() -> usize {
        usize::from(F::CLS == Cls::Route6)
    }

    pub(crate) fn update_units(&mut self) {
        let (a, b) = (self.reserve.units(0), self.reserve.units(1));
        if self.fibs.v4.cover.units() != a {
            self.fibs.v4.cover.set_units(a);
        }
        if self.fibs.v6.cover.units() != b {
            self.fibs.v6.cover.set_units(b);
        }
    }

    /// The next lease to ask for.
    pub(crate) fn step_reserve(&mut self) -> Option<Planned> {
        let i = self.reserve.queue.pop()?;
        let slot = self.reserve.slots.get_mut(i)?;
        match slot.state {
            State::Due => slot.state = State::Asking,
            State::Replacing(_) => {}
            _ => return None,
        }
        let head = tnd_lease {
            struct_size: size_of::<tnd_lease>() as u16,
            count: 1,
            ..Default::default()
        };
        let item = tnd_lease_item {
            cls: TND_CLS_ROUTE,
            family: if slot.family == 0 {
                TND_AF_INET
            } else {
                TND_AF_INET6
            },
            count: 1,
            ..Default::default()
        };
        #[derive(zerocopy::IntoBytes, zerocopy::Immutable)]
        #[repr(C)]
        struct One(tnd_lease, tnd_lease_item);
        let body = body_of(&One(head, item));
        Some(self.hw.flights.ask(i as u32, TND_OP_LEASE, body))
    }

    pub(crate) fn complete_lease(&mut self, f: &Flight, c: &Completion, now: u64) {
        let i = f.what.id as usize;
        let Some(slot) = self.reserve.slots.get_mut(i) else {
            return;
        };
        let was = slot.state;
        if c.status == TND_ST_OK {
            slot.lease = c.result as u32;
            slot.state = State::Held(slot.lease);
            if let State::Replacing(r) = was {
                // The entry on the old slot is an ordinary one from now on.
                self.retry_now(r);
            }
            let waiting = std::mem::take(&mut self.reserve.waiting);
            for r in waiting {
                self.queue_ref(r);
            }
        } else {
            let pool = if is_full(c.status) { c.table } else { u16::MAX };
            slot.state = match was {
                State::Replacing(r) => State::Used(r),
                _ if is_full(c.status) => State::Wait(pool),
                _ => State::Off,
            };
            if let State::Replacing(r) = was {
                self.refund(pool);
                self.wait_for(r, pool, false);
            }
        }
        let _ = now;
        self.update_units();
    }

    /// An entry that stood on a slot of the reserve is gone: the slot is leased again. `stood`: not so if there was nothing,
    /// because its CREATE got lost on the way.
    pub(crate) fn give_back(&mut self, r: Ref, stood: bool) {
        let mut given = None;
        let mut again = false;
        for (i, s) in self.reserve.slots.iter_mut().enumerate() {
            match s.state {
                State::Used(x) if x == r => given = Some(i),
                // The lease asked for as a replacement is simply the slot's own.
                State::Replacing(x) if x == r => {
                    again = true;
                    s.state = match self.reserve.queue.contains(&i) {
                        true => State::Due,
                        false => State::Asking,
                    };
                }
                _ => {}
            }
        }
        if again {
            // the entry waits for that answer no longer, and is in no list of those that wait
            self.retry_now(r);
        }
        if let Some(i) = given {
            // one unit less for a moment: who could do with it looks again when it is back
            self.reserve.slots[i].state = State::Due;
            self.update_units();
            self.not_drawn(i, !stood);
        } else {
            self.update_units();
        }
    }

    /// No entry stands on this slot. Its lease may be there still, and is free for use; else it is asked for again.
    pub(crate) fn not_drawn(&mut self, i: usize, there: bool) {
        let Some(s) = self.reserve.slots.get_mut(i) else {
            return;
        };
        if there {
            s.state = State::Held(s.lease);
            for r in std::mem::take(&mut self.reserve.waiting) {
                self.queue_ref(r);
            }
        } else {
            s.state = State::Due;
            self.reserve.queue.push(i);
        }
        self.update_units();
    }

    /// Marks an entry for another try at once.
    pub(crate) fn retry_now(&mut self, r: Ref) {
        fn mark<F: Fam>(s: &mut Store, e: u32) {
            let x = &mut F::fib_mut(&mut s.fibs).entries[e];
            if x.is(crate::fib::F_FAILED) {
                x.flags |= F_RETRY;
                s.counters.retries += 1;
            }
            s.queue_route::<F>(e);
        }
        match r.cls {
            Cls::Route4 => mark::<V4>(self, r.id),
            Cls::Route6 => mark::<V6>(self, r.id),
            Cls::Lease => {}
            _ => {
                self.counters.retries += 1;
                self.hw.retry(r);
            }
        }
    }

    pub(crate) fn queue_ref(&mut self, r: Ref) {
        match r.cls {
            Cls::Route4 => self.queue_route::<V4>(r.id),
            Cls::Route6 => self.queue_route::<V6>(r.id),
            Cls::Lease => {}
            _ => self.hw.queue(r),
        }
    }

    /// Puts an object into the list of those that wait for a pool.
    pub(crate) fn wait_for(&mut self, r: Ref, pool: u16, urgent: bool) {
        let w = self.hw.waiting.entry(pool).or_default();
        let list = if urgent { &mut w.urgent } else { &mut w.normal };
        list.push_back(r);
        if list.len() < w.compact_at.max(1024) {
            return;
        }
        // Objects that came and went leave their places behind: no more than as many as really wait.
        let mut list = std::mem::take(if urgent { &mut w.urgent } else { &mut w.normal });
        let mut seen = HashSet::new();
        list.retain(|&x| self.still_waits(x) && seen.insert(x));
        if let Some(w) = self.hw.waiting.get_mut(&pool) {
            w.compact_at = list.len() * 2;
            *(if urgent { &mut w.urgent } else { &mut w.normal }) = list;
        }
    }

    /// A retry still did not fit (it may need more than others): its turn goes to the next, a bounded number of times.
    pub(crate) fn refund(&mut self, pool: u16) {
        if let Some(w) = self.hw.waiting.get_mut(&pool)
            && w.refunds > 0
        {
            w.refunds -= 1;
            w.credits += 1;
        }
    }

    /// Slots were freed somewhere that no delta names.
    pub(crate) fn credit_all(&mut self, n: u64) {
        for w in self.hw.waiting.values_mut() {
            w.credits += n;
            w.refunds = MAX_REFUNDS;
        }
    }

    /// Tries what waits, as far as slots were freed: the reserve first, then local and connected prefixes, then the
    /// longest waiting.
    pub(crate) fn use_credits(&mut self) {
        let pools: Vec<u16> = self
            .hw
            .waiting
            .iter()
            .filter(|(_, w)| w.credits > 0)
            .map(|(p, _)| *p)
            .collect();
        for pool in pools {
            while let Some(w) = self.hw.waiting.get_mut(&pool) {
                if w.credits == 0 {
                    break;
                }
                let lease = self
                    .reserve
                    .slots
                    .iter()
                    .position(|s| s.state == State::Wait(pool));
                if let Some(i) = lease {
                    self.reserve.slots[i].state = State::Due;
                    self.reserve.queue.push(i);
                    w.credits -= 1;
                    continue;
                }
                let Some(r) = w.urgent.pop_front().or_else(|| w.normal.pop_front()) else {
                    w.credits = 0;
                    break;
                };
                if self.try_again(r)
                    && let Some(w) = self.hw.waiting.get_mut(&pool)
                {
                    w.credits -= 1;
                }
            }
        }
    }

    /// Something waits for freed slots of this pool: only then are they counted.
    pub(crate) fn freed(&mut self, pool: u16, slots: u64) {
        let lease = self
            .reserve
            .slots
            .iter()
            .any(|s| s.state == State::Wait(pool));
        match self.hw.waiting.get_mut(&pool) {
            Some(w) => {
                w.credits += slots;
                w.refunds = MAX_REFUNDS;
            }
            None if lease => self.hw.waiting.entry(pool).or_default().credits += slots,
            None => {}
        }
        if let Some(w) = self.hw.waiting.get_mut(&u16::MAX) {
            w.credits += 1;
        }
    }

    fn still_waits(&mut self, r: Ref) -> bool {
        fn waits<F: Fam>(s: &Store, e: u32) -> bool {
            let x = &F::fib(&s.fibs).entries[e];
            x.node != tandem_cover::NONE
                && x.is(crate::fib::F_FAILED)
                && !x.is(F_RETRY)
                && x.want.present()
        }
        match r.cls {
            Cls::Route4 => waits::<V4>(self, r.id),
            Cls::Route6 => waits::<V6>(self, r.id),
            Cls::Lease => false,
            _ => self.hw.failed_full(r),
        }
    }

    /// One more try for an object, if it still waits. Returns true if it used a freed slot.
    fn try_again(&mut self, r: Ref) -> bool {
        let still = self.still_waits(r);
        if !still {
            return false;
        }
        // An aggregate trap stands in its place: with a new lease for the reserve it becomes the route itself.
        if let Some(i) = self.reserve.of_entry(r) {
            self.reserve.slots[i].state = State::Replacing(r);
            self.reserve.queue.push(i);
            return true;
        }
        self.retry_now(r);
        true
    }
}

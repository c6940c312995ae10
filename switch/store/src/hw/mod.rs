//! The hardware's side: what each object should be there, what it is, what is on its way.
//!
//! ```text
//!            want ──┐
//!   kernel state    ├─ different, nothing on its way, dependencies stand ──► command ──► completion ──► have
//!            have ──┘
//! ```
//!
//! One small state machine for every class but routes (those have a compact form, see `fib`). Level-triggered: a
//! change of `want` or `have` puts the object into the queue, the step compares and posts one command.

pub(crate) mod acl;
pub(crate) mod bodies;
pub(crate) mod classes;
mod flight;
mod ids;
mod learned;
mod queues;
pub(crate) mod table;
mod turns;

use crate::api::{Body, Completion, Planned, Ring};
pub(crate) use classes::{CLASSES, Cls, Hw, HwClass, each_class, with_class};
pub(crate) use flight::{Flight, Flights, ring_no};
pub(crate) use ids::{Ids, gateway_hash};
use std::collections::VecDeque;
use table::{HwBody, Obj, Sent};
use tandem_abi::raw::*;

/// One object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ref {
    pub cls: Cls,
    pub id: u32,
}

impl Ref {
    pub fn new(cls: Cls, id: u32) -> Ref {
        Ref { cls, id }
    }
}

/// Why an object is not in hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Fail {
    pub status: u16,
    pub table: u16,
    pub needed: u32,
    pub free: u32,
    pub size: u32,
    pub since: u64,
}

impl Fail {
    pub fn of(c: &Completion, now: u64) -> Fail {
        Fail {
            status: c.status,
            table: c.table,
            needed: c.needed,
            free: c.free,
            size: c.size,
            since: now,
        }
    }

    /// A table or bucket was full: freed slots may help.
    pub fn full(&self) -> bool {
        is_full(self.status)
    }
}

pub(crate) fn is_full(status: u16) -> bool {
    status == TND_ST_TABLE_FULL || status == TND_ST_BUCKET_FULL
}

/// Objects that failed for want of space in one pool.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Local and connected prefixes: they go first.
    pub urgent: VecDeque<Ref>,
    /// Longest waiting first.
    pub normal: VecDeque<Ref>,
    /// Slots freed since the last look.
    pub credits: u64,
    /// How many more may be tried in place of those that still don't fit, until something is freed again.
    pub refunds: u32,
    /// Length at which entries that no longer wait are dropped from the lists.
    pub compact_at: usize,
}

/// What a dependency can be for its dependents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DepState {
    #[default]
    Ready,
    Pending,
    Failed,
}

impl Hw {
    /// Says what an object should be; None: it should go.
    pub fn want<B: HwClass>(&mut self, id: u32, want: Option<B>, now: u64) {
        let o = B::table(self).at(id);
        if o.want != want {
            // It was on its way out, and stays: who waits for it need wait no longer.
            let back = o.want.is_none() && o.have.is_some();
            o.want = want;
            o.since = now;
            if back {
                self.in_use.remove(&Ref::new(B::CLS, id));
                self.changed.push(Ref::new(B::CLS, id));
            }
            let o = B::table(self).at(id);
            // Another object may fit where this one did not, only if its key's slots are the same it doesn't: an
            // object that failed for space stays failed until something is freed.
            if o.fail.is_some_and(|f| !f.full()) {
                o.fail = None;
            } else if o.fail.is_some() && o.have.is_some() {
                // An update that did not fit; another one may.
                o.retry = true;
            }
            self.queue(Ref::new(B::CLS, id));
        }
    }

    /// It should go.
    pub fn unwant(&mut self, r: Ref, now: u64) {
        with_class!(r.cls, T => self.want::<T>(r.id, None, now));
    }

    pub fn queue(&mut self, r: Ref) {
        let fresh = with_class!(r.cls, T => {
            let o = T::table(self).at(r.id);
            !std::mem::replace(&mut o.queued, true)
        });
        if fresh {
            self.queues[r.cls as usize].push_back(r.id);
        }
    }

    pub fn dep_state(&mut self, r: Ref) -> DepState {
        fn look<B: HwClass>(o: &Obj<B>) -> DepState {
            match (&o.have, &o.sent) {
                (_, Sent::Delete) => DepState::Pending,
                _ if o.unsure && o.fail.is_none() => DepState::Pending,
                _ if o.unsure => DepState::Failed,
                // Its update failed: what stands there is out of date.
                (Some(_), _) if o.fail.is_some() && o.have != o.want => DepState::Failed,
                (Some(_), _) if o.want.is_some() => DepState::Ready,
                _ if o.fail.is_some() => DepState::Failed,
                _ => DepState::Pending,
            }
        }
        with_class!(r.cls, T => look(T::table(self).at(r.id)))
    }

    /// A target that stands is to be another one: a route that only now moves to it would go by what it was.
    pub fn is_changing(&self, r: Ref) -> bool {
        fn look<B: HwClass>(o: Option<&Obj<B>>) -> bool {
            o.is_some_and(|o| !matches!(o.sent, Sent::Nothing) || o.have != o.want)
        }
        match r.cls {
            Cls::Nexthop => look(self.nexthops.get(r.id)),
            Cls::Nhg => look(self.nhgs.get(r.id)),
            _ => false,
        }
    }

    /// It was looked at, or answered: who waits for that is told.
    pub fn look_who_waits(&mut self, r: Ref) {
        if !self.awaited.is_empty() {
            self.woken
                .extend(self.awaited.remove(&r).into_iter().flatten());
        }
    }

    /// One more (or one less) entry in hardware refers to this object.
    pub fn hold(&mut self, r: Ref, by: i32) {
        let idle = with_class!(r.cls, T => {
            let o = T::table(self).at(r.id);
            o.refs = o.refs.saturating_add_signed(by);
            o.refs == 0 && o.want.is_none()
        });
        if idle {
            self.queue(r);
        }
    }

    /// What it refers to came to stand: an object that failed for want of it tries again.
    pub fn retry_dependent(&mut self, r: Ref) {
        with_class!(r.cls, T => {
            let o = T::table(self).at(r.id);
            if o.fail.is_some_and(|f| !f.full()) {
                o.fail = None;
            }
        });
        self.queue(r);
    }

    /// Something was freed that it waits for.
    pub fn retry(&mut self, r: Ref) {
        with_class!(r.cls, T => {
            let o = T::table(self).at(r.id);
            if o.fail.is_some() {
                o.retry = true;
            }
        });
        self.queue(r);
    }

    /// It waits for space, and is not being tried.
    pub fn failed_full(&mut self, r: Ref) -> bool {
        with_class!(r.cls, T => {
            let o = T::table(self).at(r.id);
            let tried = o.retry || !matches!(o.sent, Sent::Nothing);
            o.fail.is_some_and(|f| f.full()) && !tried && o.want.is_some()
        })
    }

    /// Something was taken away: what could not be deleted before is tried once more.
    pub fn retry_in_use(&mut self) {
        if !std::mem::take(&mut self.released) {
            return;
        }
        for r in std::mem::take(&mut self.in_use) {
            with_class!(r.cls, T => {
                let o = T::table(self).at(r.id);
                if o.fail.is_some_and(|f| f.status == TND_ST_IN_USE) {
                    o.fail = None;
                }
            });
            self.queue(r);
        }
    }

    /// The chip says that this object is not there, whatever the store believes: who refers to it is told when it is
    /// written, which is now (`again`) or when it changes.
    pub fn doubt(&mut self, r: Ref, again: bool) {
        with_class!(r.cls, T => {
            let o = T::table(self).at(r.id);
            if let Some(have) = o.have.as_mut().filter(|_| again) {
                have.spoil();
            }
            o.told = true;
        });
        if again {
            self.queue(r);
        }
    }

    fn hold_deps<B: HwClass>(&mut self, body: &B, by: i32) {
        body.deps(&mut |r| self.hold(r, by));
    }

    /// Looks at one object and posts what it needs; `waits`: it may not take more than it does.
    pub fn step(&mut self, r: Ref, waits: bool, now: u64) -> Option<Planned> {
        let posted = with_class!(r.cls, T => self.step_of::<T>(r.id, waits, now));
        if posted.is_none() {
            self.look_who_waits(r);
        }
        posted
    }

    fn step_of<B: HwClass>(&mut self, id: u32, waits: bool, now: u64) -> Option<Planned> {
        let bare = self.bare || B::CLS == Cls::Port && self.trapping.contains(&id);
        let o = B::table(self).at(id);
        o.queued = false;
        if !matches!(o.sent, Sent::Nothing) {
            return None;
        }
        let mut want = o.want.clone();
        if let Some(want) = &mut want {
            if let Some(have) = o.have.as_ref().filter(|_| waits) {
                want.not_yet(have);
            }
            want.as_left(&self.ids);
            if bare {
                want.on_bare();
            }
        }
        let o = B::table(self).at(id);
        match (o.have.clone(), want) {
            (None, None) => {
                let failed = o.recovered();
                if o.refs == 0 {
                    B::table(self).release(id);
                    self.ids.free::<B>(id);
                }
                if failed {
                    self.changed.push(Ref::new(B::CLS, id));
                }
                None
            }
            (Some(have), None) => {
                if B::FIXED {
                    o.have = None;
                    self.hold_deps(&have, -1);
                    return None;
                }
                if o.refs > 0 {
                    return None;
                }
                o.sent = Sent::Delete;
                self.post::<B>(id, TND_OP_DELETE, have, now)
            }
            (Some(have), Some(want)) if !B::FIXED && !have.same_key(&want) => {
                if o.refs > 0 {
                    return None;
                }
                o.sent = Sent::Delete;
                self.post::<B>(id, TND_OP_DELETE, have, now)
            }
            (have, Some(want)) => {
                let unsure = o.unsure;
                if have.as_ref() == Some(&want) && !unsure {
                    // It stands, though it was told that it does not: another state of it had no room.
                    o.retry = false;
                    if o.recovered() {
                        self.changed.push(Ref::new(B::CLS, id));
                    }
                    return None;
                }
                if o.fail.is_some() && !o.retry {
                    return None;
                }
                let mut state = DepState::Ready;
                want.deps(&mut |r| match self.dep_state(r) {
                    DepState::Ready => {}
                    DepState::Pending if state == DepState::Ready => state = DepState::Pending,
                    DepState::Pending => {}
                    DepState::Failed => state = DepState::Failed,
                });
                match state {
                    DepState::Ready => {}
                    DepState::Pending => return None,
                    DepState::Failed => {
                        let o = B::table(self).at(id);
                        let fresh = o.fail.is_none();
                        o.fail = Some(Fail {
                            status: TND_ST_DEPEND,
                            since: now,
                            ..Fail::default()
                        });
                        o.told = true;
                        let astray = have.filter(|h| h.is_astray(&want));
                        if astray.is_some() {
                            o.sent = Sent::Delete;
                        }
                        if fresh {
                            self.changed.push(Ref::new(B::CLS, id));
                        }
                        return self.post::<B>(id, TND_OP_DELETE, astray?, now);
                    }
                }
                let o = B::table(self).at(id);
                o.retry = false;
                o.sent = Sent::Put(want.clone());
                // What may be there or not is made once more: an equal one stays in its place, one that differs says so.
                // Deleted first, whatever is behind it would answer meanwhile.
                let op = if have.is_some() && !unsure || B::FIXED {
                    TND_OP_UPDATE
                } else {
                    TND_OP_CREATE
                };
                self.hold_deps(&want, 1);
                self.post::<B>(id, op, want, now)
            }
        }
    }

    /// The command, unless the chip has it so already: then it counts as done.
    fn post<B: HwClass>(&mut self, id: u32, op: u16, mut body: B, now: u64) -> Option<Planned> {
        let flight = Flight::sync(Ref::new(B::CLS, id), op);
        let overtaken = op != TND_OP_CREATE && self.ids.overtaken::<B>(id);
        if overtaken || self.ids.port_stands(id, &body) {
            self.complete_of::<B>(&flight, &Completion::default(), now);
            return None;
        }
        if op == TND_OP_CREATE {
            body.name(id, &mut self.ids);
        }
        let token = self.flights.start(flight);
        Some(Planned {
            token,
            ring: Ring::Sync,
            op,
            cls: B::ABI,
            flags: if op == TND_OP_DELETE {
                TND_CMD_IDEMPOTENT
            } else {
                0
            },
            lease: 0,
            body: body.encode(id, &self.ids),
        })
    }

    /// An answer came. Returns true if the object failed for want of space.
    pub fn complete(&mut self, f: &Flight, c: &Completion, now: u64) -> bool {
        let full = with_class!(f.what.cls, T => self.complete_of::<T>(f, c, now));
        self.has_ended(f.what);
        self.look_who_waits(f.what);
        full
    }

    fn complete_of<B: HwClass>(&mut self, f: &Flight, c: &Completion, now: u64) -> bool {
        let id = f.what.id;
        let o = B::table(self).at(id);
        let sent = std::mem::replace(&mut o.sent, Sent::Nothing);
        let unsure = std::mem::take(&mut o.unsure);
        let had = o.have.is_some() && !unsure;
        let (mut full, mut again) = (false, false);
        match sent {
            Sent::Nothing => {}
            Sent::Delete => {
                if c.status == TND_ST_OK || c.status == TND_ST_NOENT {
                    o.cost = 0;
                    o.fail = None;
                    if let Some(old) = o.have.take() {
                        self.hold_deps(&old, -1);
                    }
                    self.released |= !self.in_use.is_empty();
                } else if c.status == TND_ST_IN_USE {
                    // Something that the store knows nothing of refers to it, an answer that got lost or what a sweep
                    // will take: it waits until something is taken away.
                    o.fail = Some(Fail::of(c, now));
                    self.in_use.insert(f.what);
                    self.changed.push(f.what);
                    return false;
                } else {
                    // The write failed: a few more tries, then it stays, and is said to.
                    self.changed.push(f.what);
                    let o = B::table(self).at(id);
                    o.unsure = unsure;
                    o.attempts += 1;
                    if o.attempts >= MAX_ATTEMPTS {
                        o.fail = Some(Fail::of(c, now));
                        return false;
                    }
                    again = true;
                }
            }
            Sent::Put(body) => {
                let old = o.have.take();
                match c.status {
                    TND_ST_OK => {
                        o.have = Some(body);
                        o.attempts = 0;
                        let had = !o.recovered() && had;
                        o.cost = (i64::from(o.cost)
                            + c.deltas
                                .iter()
                                .take(usize::from(c.delta_count))
                                .map(|d| i64::from(d.1))
                                .sum::<i64>())
                        .max(0) as u32;
                        o.since = now;
                        if let Some(old) = old {
                            self.hold_deps(&old, -1);
                            self.released |= !self.in_use.is_empty();
                        }
                        if !had {
                            self.changed.push(f.what);
                        }
                    }
                    TND_ST_EXISTS => {
                        // Another object has this key: it is there, and gets updated. What waits for it need wait
                        // no longer (the update changes nothing that is there, so it would not wake them).
                        let mut there = body.clone();
                        there.spoil();
                        o.have = Some(there);
                        again = true;
                        if let Some(old) = old {
                            self.hold_deps(&old, -1);
                        }
                        if !had {
                            self.changed.push(f.what);
                        }
                    }
                    TND_ST_NOENT if f.op == TND_OP_UPDATE && !B::FIXED => {
                        // Gone under our feet: make it again.
                        self.hold_deps(&body, -1);
                        if let Some(old) = old {
                            self.hold_deps(&old, -1);
                        }
                        // There is another one in its place that only a sweep removes.
                        let o = B::table(self).at(id);
                        o.attempts += 1;
                        again = o.attempts < MAX_ATTEMPTS;
                        if !again {
                            o.fail = Some(Fail::of(c, now));
                            o.told = true;
                            self.changed.push(f.what);
                        }
                    }
                    status => {
                        o.attempts += 1;
                        again = status == TND_ST_FAULT && o.attempts < MAX_ATTEMPTS;
                        full = is_full(status);
                        // Only a failed write leaves it open whether the key is there.
                        o.unsure = unsure && status == TND_ST_FAULT;
                        let gone = unsure && !o.unsure;
                        o.have = old.clone().filter(|_| !gone);
                        if !again {
                            o.fail = Some(Fail::of(c, now));
                            o.told = true;
                        }
                        // One that nobody wants any more is to be given back, and one that stands as wanted, where
                        // it is the refused body that nobody wants any more, has not failed: these have another turn.
                        let done = !again && o.want.is_some() && o.have != o.want;
                        self.hold_deps(&body, -1);
                        if let Some(old) = old.filter(|_| gone) {
                            self.hold_deps(&old, -1);
                        }
                        self.changed.push(f.what);
                        if done {
                            return full;
                        }
                    }
                }
            }
        }
        // one that nothing holds back, and that is as wanted, need not have another turn
        let o = B::table(self).at(id);
        let stands =
            B::CLS == Cls::AclEntry && o.fail.is_none() && o.have.is_some() && o.have == o.want;
        match again {
            true => self.goes_again(f.what),
            false if stands => {}
            false => self.queue(f.what),
        }
        full
    }

    /// A command of this object got no answer. Whether a CREATE or a DELETE was done is not known: the object keeps its
    /// place, and is made (or deleted) once more.
    pub fn lost(&mut self, r: Ref, op: u16) {
        with_class!(r.cls, T => self.lost_of::<T>(r.id, op));
        // Dependents may have waited for the command.
        self.changed.push(r);
        self.goes_again(r);
        self.has_ended(r);
    }

    fn lost_of<B: HwClass>(&mut self, id: u32, op: u16) {
        let o = B::table(self).at(id);
        let sent = std::mem::replace(&mut o.sent, Sent::Nothing);
        match (sent, op) {
            // Perhaps it was made, or was there before: it counts as there, references and all.
            (Sent::Put(mut body), TND_OP_CREATE) => {
                body.spoil();
                o.unsure = true;
                o.fail = None;
                if let Some(old) = o.have.replace(body) {
                    self.hold_deps(&old, -1);
                }
            }
            // What is there from the start, and was never written: perhaps it is so.
            (Sent::Put(mut body), _) if B::FIXED && o.have.is_none() => {
                body.spoil();
                o.have = Some(body);
            }
            // It is there, with the old or the new content: written once more.
            (Sent::Put(body), _) => {
                if let Some(have) = &mut o.have {
                    have.spoil();
                }
                self.hold_deps(&body, -1);
            }
            // Perhaps it is gone.
            (Sent::Delete, _) => {
                o.unsure = true;
                if let Some(have) = &mut o.have {
                    have.spoil();
                }
            }
            (Sent::Nothing, _) => {}
        }
    }

    /// The device is a new one, or its content is to be confirmed: nothing is known to be there.
    pub fn forget(&mut self) {
        self.flights.clear();
        self.waiting.clear();
        self.changed.clear();
        self.awaited.clear();
        self.leaving.clear();
        self.parting.clear();
        self.woken.clear();
        self.in_use.clear();
        self.found_otherwise.clear();
        self.released = false;
        self.behind = queues::Behind::default();
        for q in &mut self.queues {
            q.clear();
        }
        each_class!(T => {
            T::table(self).forget();
            for id in T::all(self).ids() {
                self.queue(Ref::new(T::CLS, id));
            }
        });
    }

    /// Objects that wait for something, routes not counted.
    pub fn failed(&self) -> usize {
        let mut failed = 0;
        each_class!(T => failed += T::all(self).failed());
        failed
    }
}

/// How often a write that the hardware failed is tried.
pub(crate) const MAX_ATTEMPTS: u8 = 4;

/// A body from a struct of the ABI.
pub(crate) fn body_of<T: zerocopy::IntoBytes + zerocopy::Immutable>(v: &T) -> Body {
    let b = v.as_bytes();
    let mut data = [0u8; 64];
    match data.get_mut(..b.len()) {
        Some(d) => {
            d.copy_from_slice(b);
            Body::Inline {
                len: b.len() as u8,
                data,
            }
        }
        None => Body::Arena(b.into()),
    }
}

//! Warm attach: BEGIN_RESYNC makes every object "not confirmed", commands that name it confirm it, END_RESYNC sweeps
//! the rest, dependents first. A sweep may remove a million routes, so it is done in slices between bursts of packets.

use crate::Firmware;
use crate::classes::{self, Class};
use crate::dump::SECOND;
use crate::object::{Failure, INVALID, Object, add_delta};
use crate::objects::CLASSES;
use crate::pools::PoolId;
use crate::turn::{Entries, REMOVE, Walk};
use std::collections::HashSet;

/// A set of small numbers.
#[derive(Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn set(&mut self, i: u32, on: bool) {
        let word = i as usize / 64;
        if word >= self.0.len() {
            if !on {
                return;
            }
            self.0.resize(word + 1, 0);
        }
        if let Some(w) = self.0.get_mut(word) {
            if on {
                *w |= 1 << (i % 64);
            } else {
                *w &= !(1 << (i % 64));
            }
        }
    }
    pub(crate) fn has(&self, i: u32) -> bool {
        self.0
            .get(i as usize / 64)
            .is_some_and(|w| w >> (i % 64) & 1 != 0)
    }
}

/// Positions of one class.
#[derive(Debug)]
enum Positions {
    /// From 0 on, in one table or two (`dump::SECOND`).
    Dense([Bits; 2]),
    /// Anywhere.
    Sparse(HashSet<u64>),
}

impl Positions {
    fn set(&mut self, at: u64, on: bool) {
        match self {
            Positions::Dense([first, _]) if at < SECOND => first.set(at as u32, on),
            Positions::Dense([_, second]) => second.set(at as u32, on),
            Positions::Sparse(all) if on => drop(all.insert(at)),
            Positions::Sparse(all) => drop(all.remove(&at)),
        }
    }

    fn has(&self, at: u64) -> bool {
        match self {
            Positions::Dense([first, _]) if at < SECOND => first.has(at as u32),
            Positions::Dense([_, second]) => second.has(at as u32),
            Positions::Sparse(all) => all.contains(&at),
        }
    }
}

/// What has been confirmed, by the tables' own positions.
#[derive(Debug)]
pub(crate) struct Confirmed {
    /// In the order of [`CLASSES`].
    classes: Vec<Positions>,
    /// How far the sweep is: which class, and the first position not looked at.
    stage: usize,
    cursor: u64,
    /// Through the addresses of an object that goes.
    walk: Option<(Entries, Walk)>,
    swept: u64,
    deltas: Vec<(PoolId, i64)>,
}

impl Default for Confirmed {
    fn default() -> Self {
        let none = |class: &Class| match class.sparse {
            true => Positions::Sparse(HashSet::new()),
            false => Positions::Dense(Default::default()),
        };
        Confirmed {
            classes: CLASSES.iter().map(none).collect(),
            stage: 0,
            cursor: 0,
            walk: None,
            swept: 0,
            deltas: Vec::new(),
        }
    }
}

impl Confirmed {
    /// END_RESYNC has begun.
    pub(crate) fn sweeping(&self) -> bool {
        self.stage > 0 || self.cursor > 0
    }

    /// The object of a class at this position was named.
    pub(crate) fn has<O: Object>(&self, at: u64) -> bool {
        let class = classes::place(O::CLASS).and_then(|i| self.classes.get(i));
        class.is_some_and(|c| c.has(at))
    }

    fn set<O: Object>(&mut self, at: u64, on: bool) {
        if let Some(c) = classes::place(O::CLASS).and_then(|i| self.classes.get_mut(i)) {
            c.set(at, on);
        }
    }
}

impl Firmware {
    /// The driver has named an object: a resync that is on keeps it.
    pub(crate) fn confirm<O: Object>(&mut self, object: &O) {
        self.mark(object, true);
    }

    /// Removes an object. Whatever comes to its position is not confirmed by it. What a walk has read may be what a flip has made
    /// of it: the references that it gives back are those of its original.
    pub(crate) fn discard<O: Object>(&mut self, object: &O) {
        self.mark(object, false);
        if self.flips.is_empty() {
            return object.remove(self);
        }
        object.unflip(self);
        let whole = object.find(self);
        whole.as_ref().unwrap_or(object).remove(self);
    }

    fn mark<O: Object>(&mut self, object: &O, on: bool) {
        if self.resync.is_some()
            && let Some(at) = object.position(self)
            && let Some(c) = &mut self.resync
        {
            c.set::<O>(at, on);
        }
    }

    /// Sweeps what is left to sweep; gives how many objects went, all slices together. Learned FDB entries stay if their
    /// domain was confirmed: the chip learned them, it ages them. Those of other domains go one by one, and count, also if
    /// the domain then stays because something confirmed refers to it.
    pub(crate) fn end_resync(&mut self) -> Result<u64, Failure> {
        while !self.sweep_slice(u64::MAX) {}
        let c = self.resync.take().ok_or(INVALID)?;
        self.set_resync(None);
        self.cx.deltas = c.deltas;
        Ok(c.swept)
    }

    /// A resync begins, or there is none any more.
    pub(crate) fn set_resync(&mut self, resync: Option<Box<Confirmed>>) {
        self.state.replayed = resync.is_some();
        self.resync = resync;
    }

    /// Sweeps on, within units of work. True: nothing is left, or there is no resync.
    pub(crate) fn sweep_slice(&mut self, mut budget: u64) -> bool {
        let Some(mut c) = self.resync.take() else {
            return true;
        };
        self.cx.deltas.clear();
        while let Some(class) = CLASSES.get(c.stage)
            && budget > 0
        {
            if (class.sweep)(self, &mut c, &mut budget) {
                c.stage += 1;
                c.cursor = 0;
            }
        }
        for (pool, slots) in self.cx.deltas.drain(..) {
            add_delta(&mut c.deltas, pool, slots);
        }
        let done = c.stage >= CLASSES.len();
        self.resync = Some(c);
        done
    }

    /// One class, from the cursor on. True: all of it.
    pub(crate) fn sweep_class<O: Object>(&mut self, c: &mut Confirmed, budget: &mut u64) -> bool {
        while *budget > 0 {
            let (some, next) = self.collect::<O>(c.cursor, budget);
            // The way to these is gone: all of them are looked at, however little is left. Only what walks itself, a group
            // or a domain, ends a slice before that, and it is a short way back to the others.
            let mut most = budget.saturating_add(some.len() as u64 * REMOVE);
            for (at, object) in some {
                c.cursor = at;
                if most == 0 {
                    return false;
                }
                let before = self.state.work.done();
                let done = self.sweep(c, at, &object, (*budget).max(1));
                let cost = self.state.work.done() - before;
                *budget = budget.saturating_sub(cost);
                most = most.saturating_sub(cost);
                if !done {
                    return false;
                }
            }
            match next {
                Some(next) => c.cursor = next,
                None => return true,
            }
        }
        false
    }

    /// Objects of a class from a cursor on, no more than the budget has units to look for and to remove, and where to go on.
    fn collect<O: Object>(&self, cursor: u64, budget: &mut u64) -> (Vec<(u64, O)>, Option<u64>) {
        let before = self.state.work.done();
        let looked = || self.state.work.done() - before;
        let mut some = Vec::new();
        let mut next = None;
        for (at, object) in O::walk(self, cursor) {
            some.extend(object.map(|o| (at, o)));
            if some.len() == SOME || looked() + some.len() as u64 * REMOVE >= *budget {
                next = Some(at + 1);
                break;
            }
        }
        *budget = budget.saturating_sub(looked());
        (some, next)
    }

    /// One object, within units of work; true: done. An object that a confirmed one still refers to stays.
    fn sweep<O: Object>(&mut self, c: &mut Confirmed, at: u64, object: &O, units: u64) -> bool {
        let stays = object.confirmed(c, at);
        if !stays
            && !object.held(self)
            && let Some(all) = object.entries(self)
        {
            if c.walk.as_ref().is_none_or(|(of, _)| *of != all) {
                c.walk = Some((all, Walk::default()));
            }
            if let Some((_, walk)) = &mut c.walk {
                let done = self.empty(all, walk, units);
                for (pool, slots) in walk.deltas.drain(..) {
                    add_delta(&mut c.deltas, pool, slots);
                }
                if !done {
                    return false;
                }
            }
            c.walk = None;
        }
        if stays || object.in_use(self) {
            self.state.work.add(1);
        } else {
            self.discard(object);
            c.swept += 1;
            self.state.work.add(REMOVE);
        }
        self.walked = None;
        true
    }
}

/// Objects that are looked at together.
const SOME: usize = 256;

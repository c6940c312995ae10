//! Warm attach: BEGIN_RESYNC makes every object "not confirmed", commands that name it confirm it, END_RESYNC sweeps
//! the rest, dependents first. A sweep may remove a million routes, so it is done in slices between bursts of packets.

use crate::Firmware;
use crate::classes::CLASSES;
use crate::object::{Failure, INVALID, Object, add_delta};
use crate::pools::PoolId;
use crate::turn::REMOVE;
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

/// Lists of rules and what rules refer to.
#[derive(Debug, Default)]
pub(crate) struct ConfirmedAcl {
    pub(crate) bind: Bits,
    /// By slot.
    pub(crate) table: Bits,
    /// By list and priority.
    pub(crate) entry: HashSet<(u32, u32)>,
    pub(crate) counter: HashSet<u32>,
    pub(crate) policer: HashSet<u32>,
    pub(crate) mirror: HashSet<u16>,
}

/// What has been confirmed, by the tables' own ids.
#[derive(Debug, Default)]
pub(crate) struct Confirmed {
    pub(crate) exact: Bits,
    pub(crate) lpm4: Bits,
    pub(crate) lpm6: Bits,
    pub(crate) nexthop: Bits,
    pub(crate) nhg: Bits,
    pub(crate) rif: Bits,
    pub(crate) vlan: Bits,
    pub(crate) vrf: Bits,
    pub(crate) member: HashSet<(u16, u16)>,
    pub(crate) acl: ConfirmedAcl,
    pub(crate) lag: Bits,
    pub(crate) mdb: Bits,
    /// How far the sweep is: which class, and the first position not looked at.
    stage: usize,
    cursor: u64,
    swept: u64,
    deltas: Vec<(PoolId, i64)>,
}

impl Confirmed {
    /// END_RESYNC has begun.
    pub(crate) fn sweeping(&self) -> bool {
        self.stage > 0 || self.cursor > 0
    }
}

impl Firmware {
    /// Sweeps what is left to sweep; gives how many objects went, all slices together. Learned FDB entries stay if their
    /// domain was confirmed: the chip learned them, it ages them. Those of other domains go one by one, and count, also if
    /// the domain then stays because something confirmed refers to it.
    pub(crate) fn end_resync(&mut self) -> Result<u64, Failure> {
        while !self.sweep_slice(u64::MAX) {}
        let c = self.resync.take().ok_or(INVALID)?;
        self.cx.deltas = c.deltas;
        Ok(c.swept)
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
            let (some, all) = self.collect::<O>(c.cursor, budget);
            // The way to these is gone: all of them are looked at, however little is left. Only what walks itself, a group
            // or a domain, ends a slice before that, and it is a short way back to the others.
            let mut most = budget.saturating_add(some.len() as u64 * REMOVE);
            for (at, object) in some {
                if most == 0 {
                    return false;
                }
                let cost = self.sweep(c, at, &object);
                *budget = budget.saturating_sub(cost);
                most = most.saturating_sub(cost);
            }
            if all {
                return true;
            }
        }
        false
    }

    /// Objects of a class from a cursor on, no more than the budget has units to look for and to remove; true: there are
    /// no more.
    fn collect<O: Object>(&self, cursor: u64, budget: &mut u64) -> (Vec<(u64, O)>, bool) {
        let before = self.state.work.done();
        let looked = || self.state.work.done() - before;
        let mut some = Vec::new();
        let mut left = O::walk(self, cursor);
        let all = loop {
            let Some(next) = left.next() else {
                break true;
            };
            some.push(next);
            if some.len() == SOME || looked() + some.len() as u64 * REMOVE >= *budget {
                break false;
            }
        };
        *budget = budget.saturating_sub(looked());
        (some, all)
    }

    /// One object; gives the units that it took, its own walks among them. An object that a confirmed one still refers to
    /// stays.
    fn sweep<O: Object>(&mut self, c: &mut Confirmed, at: u64, object: &O) -> u64 {
        c.cursor = at.saturating_add(1);
        let before = self.state.work.done();
        if object.confirmed(c, at) || object.in_use(self) {
            self.state.work.add(1);
        } else {
            object.unflip(self);
            object.remove(self);
            c.swept += 1;
            self.state.work.add(REMOVE);
        }
        self.state.work.done() - before
    }
}

/// Objects that are looked at together.
const SOME: usize = 256;

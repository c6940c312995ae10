//! Warm attach: BEGIN_RESYNC makes every object "not confirmed", commands that name it confirm it, END_RESYNC sweeps
//! the rest, dependents first. A sweep may remove a million routes, so it is done in slices between bursts of packets.

use crate::Firmware;
use crate::object::{Failure, INVALID, Object, add_delta};
use crate::objects::{
    acl_bind::AclBind, acl_counter::AclCounter, acl_entry::AclEntry, acl_table::AclTable,
    mirror::Mirror, policer::Policer,
};
use crate::objects::{
    fdb::Fdb, lag::Lag, mdb::Mdb, member::Member, neigh::Neigh, nexthop::NextHop, nhg::Nhg,
};
use crate::objects::{rif::Rif, route::Route, vlan::Vlan, vrf::Vrf};
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
    /// How far the sweep is: which kind of object, and the first position not looked at.
    stage: u8,
    cursor: u32,
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
    /// Sweeps what is left to sweep; gives how many objects went, all slices together. Learned FDB entries stay: the
    /// chip learned them, it ages them.
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
        while c.stage < STAGES && budget > 0 {
            if self.sweep_stage(&mut c, &mut budget) {
                c.stage += 1;
                c.cursor = 0;
            }
        }
        for (pool, slots) in self.cx.deltas.drain(..) {
            add_delta(&mut c.deltas, pool, slots);
        }
        let done = c.stage >= STAGES;
        self.resync = Some(c);
        done
    }

    /// One kind of object, from the cursor on. True: all of it.
    fn sweep_stage(&mut self, c: &mut Confirmed, budget: &mut u64) -> bool {
        if c.stage < ACL_STAGES {
            return self.sweep_acl(c, budget);
        }
        let from = c.cursor;
        let most = usize::try_from(*budget).unwrap_or(usize::MAX);
        match c.stage - ACL_STAGES {
            0 => {
                while let Some((next, route)) = Route::next4(self, c.cursor, u32::MAX) {
                    let confirmed = c.lpm4.has(next - 1);
                    if !self.sweep(c, budget, next, &route, confirmed) {
                        return false;
                    }
                }
                true
            }
            1 => {
                while let Some((next, route)) = Route::next6(self, c.cursor, u32::MAX) {
                    let confirmed = c.lpm6.has(next - 1);
                    if !self.sweep(c, budget, next, &route, confirmed) {
                        return false;
                    }
                }
                true
            }
            2 => {
                while let Some((next, e)) = self.state.exact.next(c.cursor) {
                    let confirmed = c.exact.has(next - 1);
                    let more = if let Some(n) = Neigh::from_entry(&e) {
                        self.sweep(c, budget, next, &n, confirmed)
                    } else if let Some(f) = Fdb::from_entry(&e) {
                        // what was learned goes with its domain
                        let stays = f.learned() && c.vlan.has(f.fid().into());
                        self.sweep(c, budget, next, &f, confirmed || stays)
                    } else {
                        true
                    };
                    if !more {
                        return false;
                    }
                }
                true
            }
            3 => {
                let all = self.state.mdb.iter();
                let all: Vec<(u32, Mdb)> = all
                    .map(|(at, e)| (at, Mdb::from_state(e)))
                    .filter(|(at, _)| *at >= from)
                    .take(most)
                    .collect();
                self.sweep_list(c, budget, all, |c, at| c.mdb.has(at))
            }
            4 => {
                let all = self.state.nhgs().map(|(at, g)| (at, Nhg::from_group(g)));
                let all: Vec<(u32, Nhg)> = all.filter(|(at, _)| *at >= from).take(most).collect();
                self.sweep_list(c, budget, all, |c, at| c.nhg.has(at))
            }
            5 => {
                let all = self
                    .state
                    .nexthops()
                    .filter(|(at, _)| *at >= from)
                    .take(most);
                let all: Vec<(u32, NextHop)> =
                    all.map(|(at, n)| (at, NextHop::from_state(n))).collect();
                self.sweep_list(c, budget, all, |c, at| c.nexthop.has(at))
            }
            6 => {
                let all = self
                    .state
                    .rifs()
                    .map(|(id, r)| (u32::from(id), Rif::from_state(id, r)));
                let all: Vec<(u32, Rif)> = all.filter(|(at, _)| *at >= from).take(most).collect();
                self.sweep_list(c, budget, all, |c, at| c.rif.has(at))
            }
            7 => {
                while let Some((at, m)) = Member::next(self, c.cursor) {
                    let confirmed = c.member.contains(&((at >> 16) as u16, at as u16));
                    if !self.sweep(c, budget, at.saturating_add(1), &m, confirmed) {
                        return false;
                    }
                }
                true
            }
            8 => {
                let all = self
                    .state
                    .vlans()
                    .map(|(fid, v)| (u32::from(fid), Vlan::from_state(fid, v.config)));
                let all: Vec<(u32, Vlan)> = all.filter(|(at, _)| *at >= from).take(most).collect();
                self.sweep_list(c, budget, all, |c, at| c.vlan.has(at))
            }
            9 => {
                let all = self.state.lags();
                let all: Vec<(u32, Lag)> = all
                    .map(|(lag, l)| (u32::from(lag), Lag::from_state(lag, &l.config)))
                    .filter(|(at, _)| *at >= from)
                    .collect();
                self.sweep_list(c, budget, all, |c, at| c.lag.has(at))
            }
            _ => {
                let all = self
                    .state
                    .vrfs()
                    .iter()
                    .map(|v| (u32::from(*v), Vrf::from_state(*v)));
                let all: Vec<(u32, Vrf)> = all.filter(|(at, _)| *at >= from).take(most).collect();
                self.sweep_list(c, budget, all, |c, at| c.vrf.has(at))
            }
        }
    }

    /// Bindings, then rules, then lists and what rules refer to. These are few: what was not confirmed is collected anew
    /// for each slice, so there is no cursor.
    fn sweep_acl(&mut self, c: &mut Confirmed, budget: &mut u64) -> bool {
        let most = usize::try_from(*budget / REMOVE).map_or(usize::MAX, |n| n.saturating_add(1));
        let acl = &self.state.acl;
        match c.stage {
            0 => {
                let all = acl.binds();
                let all = all.map(|(port, stage, b)| AclBind::from_state(port, stage, b));
                let all: Vec<AclBind> = all
                    .filter(|b| !c.acl.bind.has(b.position()))
                    .take(most)
                    .collect();
                self.sweep_all(c, budget, most, &all)
            }
            1 => {
                let all = acl.tables().flat_map(|(_, t)| t.rules.iter(0));
                let all: Vec<AclEntry> = all
                    .map(|(_, _, r)| AclEntry::of_rule(r))
                    .filter(|e| !c.acl.entry.contains(&e.key()))
                    .take(most)
                    .collect();
                self.sweep_all(c, budget, most, &all)
            }
            2 => {
                let all = acl.tables().filter(|(at, _)| !c.acl.table.has(*at));
                let all: Vec<AclTable> = all.map(|(_, t)| AclTable::from_state(t)).collect();
                self.sweep_all(c, budget, usize::MAX, &all)
            }
            3 => {
                let all = acl.counters().map(|(_, x)| x);
                let all: Vec<AclCounter> = all
                    .filter(|x| !c.acl.counter.contains(&x.id))
                    .map(AclCounter::from_state)
                    .collect();
                self.sweep_all(c, budget, usize::MAX, &all)
            }
            4 => {
                let all = acl.policers().map(|(_, x)| x);
                let all: Vec<Policer> = all
                    .filter(|x| !c.acl.policer.contains(&x.id))
                    .map(Policer::from_state)
                    .collect();
                self.sweep_all(c, budget, usize::MAX, &all)
            }
            _ => {
                let all = acl.mirrors().map(|(_, x)| x);
                let all: Vec<Mirror> = all
                    .filter(|x| !c.acl.mirror.contains(&x.id))
                    .map(Mirror::from_state)
                    .collect();
                self.sweep_all(c, budget, usize::MAX, &all)
            }
        }
    }

    /// Removes all of these that nothing refers to. True: no more than these were there (fewer than `most`).
    fn sweep_all<O: Object>(
        &mut self,
        c: &mut Confirmed,
        budget: &mut u64,
        most: usize,
        all: &[O],
    ) -> bool {
        for o in all {
            if !o.in_use(self) {
                o.remove(self);
                c.swept += 1;
                self.state.work.add(REMOVE);
                *budget = budget.saturating_sub(REMOVE);
            }
        }
        // the budget may be overdrawn by one list: never by more than the chip has lists, counters and policers
        *budget = budget.saturating_sub(1);
        all.len() < most
    }

    fn sweep_list<O: Object>(
        &mut self,
        c: &mut Confirmed,
        budget: &mut u64,
        all: Vec<(u32, O)>,
        confirmed: impl Fn(&Confirmed, u32) -> bool,
    ) -> bool {
        let cut = u64::try_from(all.len()).is_ok_and(|n| n >= *budget);
        for (at, o) in all {
            let yes = confirmed(c, at);
            if !self.sweep(c, budget, at.saturating_add(1), &o, yes) {
                return false;
            }
        }
        !cut
    }

    /// One object; `next` is the position behind it. An object that a confirmed one still refers to stays. False: the
    /// budget is used up.
    fn sweep<O: Object>(
        &mut self,
        c: &mut Confirmed,
        budget: &mut u64,
        next: u32,
        object: &O,
        confirmed: bool,
    ) -> bool {
        c.cursor = next;
        let mut cost = 1;
        if !confirmed && !object.in_use(self) {
            object.unflip(self);
            object.remove(self);
            c.swept += 1;
            cost = REMOVE;
        }
        self.state.work.add(cost);
        *budget = budget.saturating_sub(cost);
        *budget > 0
    }
}

/// Kinds of objects, in the order in which they go.
const STAGES: u8 = ACL_STAGES + 11;
/// Those of rules go first: they refer to next hops.
const ACL_STAGES: u8 = 6;

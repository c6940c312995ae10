//! Making room: a bounded search for entries that can step aside, as hardware with a relocation engine does it.
//!
//! Entries are moved while the search goes on and moved back if it fails; runs of slots that are being cleared are
//! pinned, so that nothing moves into them.

use super::{Buckets, ExactMatch, IN_STASH, NONE, Packed, run_mask};

/// Runs that one insert looks at before it gives up.
pub const BUDGET: u32 = 768;
/// Longest chain of entries, each making room for the one before.
pub const MAX_DEPTH: u32 = 3;

/// State of one search; kept in the table so that an insert allocates nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// Moves done: entry and the slot it came from.
    undo: Vec<(u32, u32)>,
    /// Bucket and slots that are being cleared.
    pins: Vec<(u32, u8)>,
    budget: u32,
    drain: usize,
}

impl Search {
    /// As in a new table, so that a driver's model that starts anew places as the table does.
    pub(super) fn reset(&mut self) {
        self.drain = 0;
    }

    /// Positions in the stash, round robin.
    pub(super) fn next_drain(&mut self, len: usize) -> usize {
        self.drain = (self.drain + 1) % len.max(1);
        self.drain
    }

    fn pinned(&self, bucket: u32) -> u8 {
        self.pins
            .iter()
            .filter(|(b, _)| *b == bucket)
            .fold(0, |m, (_, p)| m | p)
    }
}

impl ExactMatch {
    /// A free run of `width` slots in a key's buckets, cleared by moving others if need be. Gives the slot and the
    /// number of entries moved.
    pub(super) fn find_room(&mut self, p: &Packed, width: u32) -> Option<(u32, u32)> {
        let buckets = self.buckets(p);
        if let Some(slot) = self.free_run(&buckets, width) {
            return Some((slot, 0));
        }
        let mut s = std::mem::take(&mut self.search);
        s.budget = BUDGET;
        let mut found = None;
        for depth in 1..=MAX_DEPTH {
            s.undo.clear();
            s.pins.clear();
            found = self.clear_run(&buckets, width, depth, &mut s);
            if found.is_some() || s.budget == 0 {
                break;
            }
        }
        let moves = s.undo.len() as u32;
        self.search = s;
        found.map(|slot| (slot, moves))
    }

    /// The tightest free run among the buckets: full buckets first, then the run whose neighbours are taken, so that
    /// wide entries find whole runs later.
    pub(super) fn free_run(&self, buckets: &Buckets, width: u32) -> Option<u32> {
        self.free_run_pinned(buckets, width, None)
    }

    fn free_run_pinned(&self, buckets: &Buckets, width: u32, s: Option<&Search>) -> Option<u32> {
        let per_bucket = self.geometry.slots_per_bucket;
        let mut best: Option<(u32, u32)> = None;
        for &b in &buckets[..self.geometry.banks as usize] {
            let mut taken = self.occupied[b as usize];
            if let Some(s) = s {
                taken |= s.pinned(b);
            }
            let mut at = 0;
            while at < per_bucket {
                if taken & run_mask(at, width) == 0 {
                    let pair = run_mask(at & !1, 2);
                    let quad = run_mask(at & !3, 4);
                    let score = u32::from(taken & pair != 0) * 32
                        + (taken & quad).count_ones() * 4
                        + taken.count_ones().min(3);
                    if best.is_none_or(|(s, _)| score > s) {
                        best = Some((score, b * per_bucket + at));
                    }
                }
                at += width;
            }
        }
        best.map(|(_, slot)| slot)
    }

    fn clear_run(
        &mut self,
        buckets: &Buckets,
        width: u32,
        depth: u32,
        s: &mut Search,
    ) -> Option<u32> {
        let per_bucket = self.geometry.slots_per_bucket;
        let mut order = *buckets;
        let banks = self.geometry.banks as usize;
        // stable: which of two equal buckets is tried first is what a driver's model must know too
        order[..banks].sort_by_key(|b| self.occupied[*b as usize].count_ones());
        for &b in &order[..banks] {
            let mut at = 0;
            while at < per_bucket {
                if s.budget == 0 {
                    return None;
                }
                s.budget -= 1;
                if let Some(slot) = self.try_run(b, at, width, depth, s) {
                    return Some(slot);
                }
                at += width;
            }
        }
        None
    }

    /// Moves everything out of one run, or nothing.
    fn try_run(
        &mut self,
        bucket: u32,
        at: u32,
        width: u32,
        depth: u32,
        s: &mut Search,
    ) -> Option<u32> {
        let per_bucket = self.geometry.slots_per_bucket;
        let run = run_mask(at, width);
        let (ids, count, covered) = self.occupants(bucket, at, width);
        if s.pinned(bucket) & (run | covered) != 0
            || s.undo.len() + count > self.geometry.max_moves as usize
        {
            return None;
        }
        let mark = s.undo.len();
        s.pins.push((bucket, run | covered));
        let ok = ids[..count].iter().all(|&id| self.step_aside(id, depth, s));
        s.pins.pop();
        if ok {
            return Some(bucket * per_bucket + at);
        }
        while s.undo.len() > mark {
            if let Some((id, from)) = s.undo.pop() {
                self.move_entry(id, from);
            }
        }
        None
    }

    fn step_aside(&mut self, id: u32, depth: u32, s: &mut Search) -> bool {
        let Some(info) = self.infos.get(id as usize).copied() else {
            return false;
        };
        if info.place & IN_STASH != 0 || s.undo.len() >= self.geometry.max_moves as usize {
            return false;
        }
        let Some((p, _)) = self.read(info.place) else {
            return false;
        };
        let buckets = self.buckets(&p);
        let width = u32::from(info.width);
        let to = match self.free_run_pinned(&buckets, width, Some(s)) {
            Some(slot) => Some(slot),
            None if depth > 1 => self.clear_run(&buckets, width, depth - 1, s),
            None => None,
        };
        // clearing may have used up the moves that were left
        match to {
            Some(slot) if s.undo.len() < self.geometry.max_moves as usize => {
                s.undo.push((id, info.place));
                self.move_entry(id, slot);
                true
            }
            _ => false,
        }
    }

    /// Entries that reach into a run, and the slots they take.
    fn occupants(&self, bucket: u32, at: u32, width: u32) -> ([u32; 8], usize, u8) {
        let per_bucket = self.geometry.slots_per_bucket;
        let first = bucket * per_bucket;
        let (mut ids, mut count, mut covered) = ([NONE; 8], 0, 0u8);
        for i in 0..per_bucket {
            let id = self.heads[(first + i) as usize];
            let Some(info) = self.infos.get(id as usize) else {
                continue;
            };
            let m = run_mask(i, u32::from(info.width));
            if m & run_mask(at, width) != 0 {
                ids[count] = id;
                count += 1;
                covered |= m;
            }
        }
        (ids, count, covered)
    }

    fn move_entry(&mut self, id: u32, to: u32) {
        let Some(info) = self.infos.get(id as usize).copied() else {
            return;
        };
        let Some((p, value)) = self.read(info.place) else {
            return;
        };
        let width = u32::from(info.width);
        let stamp = self.stamp(info.place);
        self.clear_slots(info.place, width);
        self.write_slots(to, width, id, &p, value, stamp);
        if let Some(i) = self.infos.get_mut(id as usize) {
            i.place = to;
        }
    }
}

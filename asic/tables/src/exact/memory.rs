//! The memory itself: slots, entry ids, stash.

use super::{EntryId, ExactMatch, IN_STASH, Info, NONE, Packed, Stamp, run_mask};

impl ExactMatch {
    pub(super) fn in_stash(&self, id: u32) -> bool {
        self.infos
            .get(id as usize)
            .is_some_and(|i| i.place != NONE && i.place & IN_STASH != 0)
    }

    /// Where an entry is: its first slot, or bit 31 and its position in the stash. For comparisons with a driver's model.
    #[must_use]
    pub fn place(&self, id: EntryId) -> Option<u32> {
        let info = self.infos.get(id.0 as usize)?;
        (info.place != NONE).then_some(info.place)
    }

    pub(super) fn new_id(&mut self, place: u32, width: u32) -> u32 {
        let info = Info {
            place,
            width: width as u8,
        };
        match self.free_ids.pop() {
            Some(id) => {
                if let Some(i) = self.infos.get_mut(id as usize) {
                    *i = info;
                }
                id
            }
            None => {
                self.infos.push(info);
                self.infos.len() as u32 - 1
            }
        }
    }

    pub(super) fn cell(&self, slot: u32) -> [u64; 2] {
        self.lines[slot as usize / 4].0[slot as usize % 4]
    }

    pub(super) fn set_cell(&mut self, slot: u32, v: [u64; 2]) {
        self.lines[slot as usize / 4].0[slot as usize % 4] = v;
    }

    pub(super) fn read(&self, place: u32) -> Option<(Packed, u64)> {
        if place & IN_STASH != 0 {
            return self
                .stash
                .get((place & !IN_STASH) as usize)
                .map(|s| (s.key, s.value));
        }
        let [head, value] = self.cell(place);
        let mut p = Packed { head, tail: [0; 2] };
        if p.wide() {
            p.tail = self.cell(place + 1);
        }
        Some((p, value))
    }

    pub(super) fn write_value(&mut self, id: u32, value: u64) {
        let Some(place) = self.infos.get(id as usize).map(|i| i.place) else {
            return;
        };
        if place & IN_STASH != 0 {
            if let Some(s) = self.stash.get_mut((place & !IN_STASH) as usize) {
                s.value = value;
            }
        } else {
            let head = self.cell(place)[0];
            self.set_cell(place, [head, value]);
        }
    }

    pub(super) fn write_slots(
        &mut self,
        slot: u32,
        width: u32,
        id: u32,
        p: &Packed,
        value: u64,
        stamp: Stamp,
    ) {
        self.set_cell(slot, [p.head, value]);
        if p.wide() {
            self.set_cell(slot + 1, p.tail);
        }
        self.changes = self.changes.wrapping_add(1);
        self.signs[slot as usize / 4].set(slot as usize % 4, p.hash(self.seed));
        self.heads[slot as usize] = id;
        self.stamps[slot as usize] = stamp;
        let w = self.geometry.slots_per_bucket;
        self.occupied[(slot / w) as usize] |= run_mask(slot % w, width);
    }

    pub(super) fn clear_slots(&mut self, slot: u32, width: u32) {
        for s in slot..slot + width {
            self.set_cell(s, [0; 2]);
        }
        self.changes = self.changes.wrapping_add(1);
        self.signs[slot as usize / 4].clear(slot as usize % 4);
        self.heads[slot as usize] = NONE;
        let w = self.geometry.slots_per_bucket;
        self.occupied[(slot / w) as usize] &= !run_mask(slot % w, width);
    }

    pub(super) fn remove_stashed(&mut self, pos: u32) {
        let Some(s) = self.stash.get(pos as usize).copied() else {
            return;
        };
        self.stash_used -= self
            .infos
            .get(s.id as usize)
            .map_or(0, |i| u32::from(i.width));
        let (seed, stash) = (self.seed, &self.stash);
        let hash_of = |i: u32| stash.get(i as usize).map_or(0, |s| s.key.hash(seed));
        let last = self.stash.len() as u32 - 1;
        self.stash_index.del(s.key.hash(seed), pos, hash_of);
        if pos != last {
            // the last one takes the gap
            let moved = self.stash[last as usize];
            self.stash_index.del(moved.key.hash(seed), last, hash_of);
            self.stash_index.add(moved.key.hash(seed), pos);
            if let Some(i) = self.infos.get_mut(moved.id as usize) {
                i.place = IN_STASH | pos;
            }
        }
        self.stash.swap_remove(pos as usize);
    }

    /// Slots became free in the banks: a few entries of the stash try their buckets again, so that the stash, which
    /// every guarantee stands on, recovers with normal churn.
    pub(super) fn drain_stash(&mut self) {
        for _ in 0..2 {
            if self.stash.is_empty() {
                return;
            }
            let pos = self.search.next_drain(self.stash.len());
            let Some(s) = self.stash.get(pos).copied() else {
                return;
            };
            let width = self
                .infos
                .get(s.id as usize)
                .map_or(1, |i| u32::from(i.width));
            let buckets = self.buckets(&s.key);
            if let Some(slot) = self.free_run(&buckets, width) {
                self.remove_stashed(pos as u32);
                self.write_slots(slot, width, s.id, &s.key, s.value, s.stamp);
                if let Some(i) = self.infos.get_mut(s.id as usize) {
                    i.place = slot;
                }
            }
        }
    }
}

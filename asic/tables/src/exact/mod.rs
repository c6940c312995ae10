//! Banked multi-way exact-match hash shared by MAC addresses, IPv4 hosts and IPv6 hosts (seed 000 §2.7, figure 10).
//!
//! ```text
//!             hash 0        hash 1      …  hash B-1            a key has one bucket per bank
//!           ┌────────┐    ┌────────┐     ┌────────┐
//!   bank 0  │s s s s │    │        │     │        │   bank B-1    bucket = W slots = one or two cache lines
//!           │s s s s │    │s s s s │     │        │               entry  = 1, 2 or 4 slots, aligned to its width
//!           └────────┘    └────────┘     └────────┘
//!   nothing free in B buckets: move up to `max_moves` entries to their other buckets (bounded search, undone if it fails)
//!   nothing found:             overflow stash, any entry fits there; its free slots are what a guarantee can be based on
//!   stash taken or promised:   bucket full; no slot free at all: table full
//! ```
//!
//! A slot is 16 bytes: a key word (kind, FID or VRF, MAC or IPv4 address) and the value; an IPv6 entry keeps its address
//! in its second slot. Entries have an [`EntryId`] that stays when they move, so a dump by cursor and an ageing scan see
//! each of them once, whatever inserts happen in between.

mod geometry;
mod key;
mod lookup;
mod memory;
mod presence;
mod search;
#[cfg(test)]
mod tests;

use crate::index::{Index, mix};
pub use crate::pool::{Full, FullKind, Pool};
pub use geometry::{BadGeometry, Geometry, Widths, check};
use key::Packed;
pub use key::{Key, Kind};
use lookup::Signs;
pub use lookup::{Found, Place, STAMP_NS, Seen};
use presence::Presence;
use search::Search;
pub use search::{BUDGET, MAX_DEPTH};

/// Most banks that a geometry can have.
pub const MAX_BANKS: usize = 8;

/// Free on both sides of [`EntryId`] and slot numbers.
const NONE: u32 = u32::MAX;
/// Where an entry is: bit 31 set = position in the stash, else slot in the banks.
const IN_STASH: u32 = 1 << 31;
/// Largest FID: 12 bits, so that kind, FID and MAC fill one word.
pub const MAX_FID: u16 = 4095;

/// Names an entry as long as it is there; stays when the entry is moved by other inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(pub u32);

/// Answer of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// For [`ExactMatch::touch`].
    pub id: EntryId,
    /// What was stored.
    pub value: u64,
}

/// Answer of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The entry.
    pub id: EntryId,
    /// Slots newly taken; 0 if the key was there and only its value changed.
    pub slots: u32,
    /// Entries that were moved to make room.
    pub moves: u32,
    /// The entry went to the overflow stash.
    pub in_stash: bool,
}

/// Why an insert failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// No room.
    #[error("exact-match {0}")]
    Full(Full),
    /// A FID above [`MAX_FID`].
    #[error("FID is {0}, at most {MAX_FID}")]
    BadFid(u16),
}

/// One entry, as dumps and ageing scans see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The entry.
    pub id: EntryId,
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: u64,
    /// When it was inserted, or touched last, in ns.
    pub stamp_ns: u64,
    /// Touched since [`ExactMatch::take_active`].
    pub active: bool,
}

/// Four slots, one cache line. A slot is (key word, value), or the (high, low) address of the entry before it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([[u64; 2]; 4]);

/// Where an entry is.
#[derive(Clone, Copy, Debug)]
struct Info {
    place: u32,
    width: u8,
}

/// When an entry was used last (63 bits of ns), and whether it was since [`ExactMatch::take_active`] (the lowest bit).
#[derive(Clone, Copy, Debug, Default)]
struct Stamp(u64);

impl Stamp {
    fn new(now_ns: u64, active: bool) -> Stamp {
        Stamp(now_ns << 1 | u64::from(active))
    }
    fn ns(self) -> u64 {
        self.0 >> 1
    }
    fn active(self) -> bool {
        self.0 & 1 != 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Stashed {
    key: Packed,
    value: u64,
    id: u32,
    stamp: Stamp,
}

/// The table. See the module.
#[derive(Clone, Debug)]
pub struct ExactMatch {
    geometry: Geometry,
    widths: Widths,
    seed: u64,
    bank_seed: [u64; MAX_BANKS],
    lines: Vec<Line>,
    /// Entry that starts at a slot, [`NONE`] for free slots and the rest of wide entries.
    heads: Vec<u32>,
    /// One bit per slot of a bucket: taken.
    occupied: Vec<u8>,
    infos: Vec<Info>,
    /// Writes of slots so far: what was found before one may be elsewhere now.
    changes: u32,
    /// By line.
    signs: Vec<Signs>,
    /// By slot, of the entry that starts there: the packet path finds a slot and needs no id.
    stamps: Vec<Stamp>,
    /// Hosts alone: most MAC addresses that are looked up are there.
    presence: Presence,
    free_ids: Vec<u32>,
    stash: Vec<Stashed>,
    stash_index: Index,
    stash_used: u32,
    entries: u32,
    per_kind: [u32; 3],
    /// MAC addresses by FID.
    per_fid: Box<[u32]>,
    pool: Pool,
    /// Part of `pool.in_flight()` that came out of leases: the stash backs it, as it backs what is committed.
    promised_in_flight: u32,
    search: Search,
}

type Buckets = [u32; MAX_BANKS];

impl ExactMatch {
    /// An empty table. The same seed and the same calls give the same placement.
    ///
    /// # Errors
    /// [`BadGeometry`] names the number that can't be.
    pub fn new(geometry: Geometry, widths: Widths, seed: u64) -> Result<Self, BadGeometry> {
        check(geometry, widths)?;
        let buckets = geometry.banks as usize * geometry.buckets_per_bank as usize;
        let slots = buckets * geometry.slots_per_bucket as usize;
        let mut bank_seed = [0; MAX_BANKS];
        for (i, s) in bank_seed.iter_mut().enumerate() {
            *s = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i as u64 + 1)));
        }
        Ok(Self {
            geometry,
            widths,
            seed: mix(seed ^ 0x5851_f42d_4c95_7f2d),
            bank_seed,
            lines: vec![Line::default(); slots / 4],
            heads: vec![NONE; slots],
            occupied: vec![0; buckets],
            infos: Vec::new(),
            changes: 0,
            signs: vec![Signs::default(); slots / 4],
            stamps: vec![Stamp::default(); slots],
            presence: Presence::new(geometry.size()),
            free_ids: Vec::new(),
            stash: Vec::new(),
            stash_index: Index::new(geometry.stash as usize),
            stash_used: 0,
            entries: 0,
            per_kind: [0; 3],
            per_fid: vec![0; usize::from(MAX_FID) + 1].into_boxed_slice(),
            pool: Pool::new(geometry.size()),
            promised_in_flight: 0,
            search: Search::default(),
        })
    }

    /// How the memory is organised.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }
    /// Slots per entry of each kind.
    #[must_use]
    pub fn widths(&self) -> Widths {
        self.widths
    }
    /// The counters.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
    /// Entries of all kinds.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.entries
    }
    /// No entry at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }
    /// Entries of one kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u32 {
        self.per_kind[kind as usize]
    }
    /// MAC addresses of one forwarding domain.
    #[must_use]
    pub fn count_fid(&self, fid: u16) -> u32 {
        self.per_fid.get(usize::from(fid)).copied().unwrap_or(0)
    }

    fn fid_mut(&mut self, key: &Key) -> Option<&mut u32> {
        match key {
            Key::Mac { fid, .. } => self.per_fid.get_mut(usize::from(*fid)),
            _ => None,
        }
    }

    /// Slots taken in the overflow stash.
    #[must_use]
    pub fn stash_used(&self) -> u32 {
        self.stash_used
    }
    /// Slots of the stash that neither an entry nor a promise holds: what [`Self::commit`] can still give.
    #[must_use]
    pub fn stash_free(&self) -> u32 {
        self.geometry
            .stash
            .saturating_sub(self.stash_used)
            .saturating_sub(self.pool.committed())
            .saturating_sub(self.promised_in_flight)
    }

    /// Entries of a kind that fit whatever their keys are: each might hash into buckets that are full and can't be
    /// cleared, so only the stash counts.
    #[must_use]
    pub fn free_guaranteed(&self, kind: Kind) -> u32 {
        self.stash_free().min(self.pool.free()) / self.widths.of(kind)
    }

    /// Entries of a kind that fit if keys spread evenly. Measured: see `first_failure_*` in the tests.
    #[must_use]
    pub fn free_expected(&self, kind: Kind) -> u32 {
        let w = self.widths.of(kind);
        // The search leaves up to about 1/256 of the banks behind for single slots, more for wide entries.
        let banks = self.pool.size() - self.geometry.stash;
        let left_behind = banks / 256 * w;
        (self.pool.free().saturating_sub(left_behind) / w).max(self.free_guaranteed(kind))
    }

    /// Slot where bucket `i` of a key starts, one per bank.
    #[inline]
    fn bucket(&self, hash: u64, bank: usize) -> u32 {
        let g = mix_bank(hash ^ self.bank_seed[bank]);
        let i = ((g >> 32) * u64::from(self.geometry.buckets_per_bank)) >> 32;
        bank as u32 * self.geometry.buckets_per_bank + i as u32
    }

    fn buckets(&self, p: &Packed) -> Buckets {
        let h = p.hash(self.seed);
        let mut out = [0; MAX_BANKS];
        for (bank, b) in out
            .iter_mut()
            .enumerate()
            .take(self.geometry.banks as usize)
        {
            *b = self.bucket(h, bank);
        }
        out
    }

    /// Buckets that a key may live in, one per bank, numbered through all banks.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn buckets_of(&self, key: &Key) -> Vec<u32> {
        let b = self.buckets(&Packed::of(key));
        b.iter()
            .copied()
            .take(self.geometry.banks as usize)
            .collect()
    }

    /// Looks any key up.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Hit> {
        if matches!(key, Key::Mac { fid, .. } if *fid > MAX_FID) {
            return None;
        }
        let found = self.find(&Packed::of(key))?;
        let id = EntryId(self.id_at(found.place)?);
        let value = found.value;
        Some(Hit { id, value })
    }

    /// The entry was used now: sets its stamp and its activity bit.
    pub fn touch(&mut self, id: EntryId, now_ns: u64) {
        if let Some(stamp) = self.place(id).and_then(|p| self.stamp_mut(p)) {
            *stamp = Stamp::new(now_ns, true);
        }
    }

    /// Reads and clears an entry's activity bit.
    pub fn take_active(&mut self, id: EntryId) -> bool {
        let Some(stamp) = self.place(id).and_then(|p| self.stamp_mut(p)) else {
            return false;
        };
        let was = stamp.active();
        *stamp = Stamp::new(stamp.ns(), false);
        was
    }

    /// Writes a key: a new entry from free slots, or a new value in place if the key is there.
    ///
    /// # Errors
    /// [`InsertError::Full`] with what was needed and free; nothing has changed then.
    pub fn insert(&mut self, key: Key, value: u64, now_ns: u64) -> Result<Placed, InsertError> {
        self.insert_from(key, value, now_ns, false)
    }

    /// As [`Self::insert`], but a new entry uses slots that were promised by [`Self::commit`]: committed → used.
    /// With enough of them committed it can't fail.
    ///
    /// # Errors
    /// [`InsertError::Full`] when fewer slots are committed than needed.
    pub fn insert_committed(
        &mut self,
        key: Key,
        value: u64,
        now_ns: u64,
    ) -> Result<Placed, InsertError> {
        self.insert_from(key, value, now_ns, true)
    }

    fn insert_from(
        &mut self,
        key: Key,
        value: u64,
        now_ns: u64,
        promised: bool,
    ) -> Result<Placed, InsertError> {
        if let Key::Mac { fid, .. } = key
            && fid > MAX_FID
        {
            return Err(InsertError::BadFid(fid));
        }
        let p = Packed::of(&key);
        if let Some(id) = self.find(&p).and_then(|f| self.id_at(f.place)) {
            self.write_value(id, value);
            return Ok(Placed {
                id: EntryId(id),
                slots: 0,
                moves: 0,
                in_stash: self.in_stash(id),
            });
        }
        let width = self.widths.of(key.kind());
        let full = |kind, pool: &Pool| {
            InsertError::Full(Full {
                kind,
                ..pool.full(width)
            })
        };
        if promised {
            if self.pool.committed() < width {
                return Err(full(FullKind::Table, &self.pool));
            }
            self.pool.release(width);
        }
        let out = if self.pool.free() < width {
            Err(full(FullKind::Table, &self.pool))
        } else if let Some((slot, moves)) = self.find_room(&p, width) {
            let id = self.new_id(slot, width);
            self.write_slots(slot, width, id, &p, value, Stamp::new(now_ns, false));
            Ok(Placed {
                id: EntryId(id),
                slots: width,
                moves,
                in_stash: false,
            })
        } else if self.stash_free() >= width {
            let id = self.new_id(IN_STASH | self.stash.len() as u32, width);
            self.stash_index
                .add(p.hash(self.seed), self.stash.len() as u32);
            self.stash.push(Stashed {
                key: p,
                value,
                id,
                stamp: Stamp::new(now_ns, false),
            });
            self.stash_used += width;
            Ok(Placed {
                id: EntryId(id),
                slots: width,
                moves: 0,
                in_stash: true,
            })
        } else {
            Err(full(FullKind::Bucket, &self.pool))
        };
        match out {
            Ok(_) => {
                self.entries += 1;
                self.per_kind[key.kind() as usize] += 1;
                if key.kind() != Kind::Mac {
                    self.presence.add(p.hash(self.seed));
                }
                if let Some(n) = self.fid_mut(&key) {
                    *n += 1;
                }
                // free ≥ width was checked above
                let _ = self.pool.take(width);
            }
            Err(_) if promised => {
                let _ = self.pool.commit(width);
            }
            Err(_) => {}
        }
        out
    }

    /// Changes the value of a key that is there. Takes no space, can't fail otherwise.
    pub fn update(&mut self, key: &Key, value: u64) -> bool {
        match self.get(key) {
            Some(hit) => {
                self.write_value(hit.id.0, value);
                true
            }
            None => false,
        }
    }

    /// Changes the value of an entry.
    pub fn set_value(&mut self, id: EntryId, value: u64) -> bool {
        let there = self
            .infos
            .get(id.0 as usize)
            .is_some_and(|i| i.place != NONE);
        if there {
            self.write_value(id.0, value);
        }
        there
    }

    /// Removes a key; gives its value and the slots that are free now.
    pub fn remove(&mut self, key: &Key) -> Option<(u64, u32)> {
        let hit = self.get(key)?;
        let info = *self.infos.get(hit.id.0 as usize)?;
        let width = u32::from(info.width);
        if info.place & IN_STASH != 0 {
            self.remove_stashed(info.place & !IN_STASH);
        } else {
            self.clear_slots(info.place, width);
        }
        if let Some(i) = self.infos.get_mut(hit.id.0 as usize) {
            i.place = NONE;
        }
        self.free_ids.push(hit.id.0);
        self.entries -= 1;
        self.per_kind[key.kind() as usize] -= 1;
        if key.kind() != Kind::Mac {
            self.presence.del(Packed::of(key).hash(self.seed));
        }
        if let Some(n) = self.fid_mut(key) {
            *n -= 1;
        }
        self.pool.give(width);
        if info.place & IN_STASH == 0 {
            self.drain_stash();
        }
        Some((hit.value, width))
    }

    /// Promises `slots` to a lease. Only what the stash can back is promised: then the keys don't matter.
    ///
    /// # Errors
    /// [`Full`] with the slots that can be guaranteed as `free`.
    pub fn commit(&mut self, slots: u32) -> Result<(), Full> {
        let backed = self.stash_free();
        if backed < slots {
            return Err(Full {
                kind: FullKind::Table,
                needed: slots,
                free: backed,
                size: self.pool.size(),
            });
        }
        self.pool.commit(slots)
    }

    /// Gives a promise back.
    pub fn release(&mut self, slots: u32) {
        self.pool.release(slots);
    }

    /// A command that may need `slots` was accepted; with `promised` they come out of a lease and stay guaranteed.
    ///
    /// # Errors
    /// [`Full`] when they are not there.
    pub fn begin(&mut self, slots: u32, promised: bool) -> Result<(), Full> {
        if !promised {
            return self.pool.begin(slots);
        }
        self.pool.begin_committed(slots)?;
        self.promised_in_flight += slots;
        Ok(())
    }

    /// The command is about to be executed: its slots are free, or committed, again for it.
    pub fn end(&mut self, slots: u32, promised: bool) {
        if promised {
            self.promised_in_flight = self.promised_in_flight.saturating_sub(slots);
            self.pool.end_committed(slots);
        } else {
            self.pool.end(slots);
        }
    }

    /// The first entry at or after `cursor`, and the cursor that goes on behind it. Starts at 0; `None` is the end.
    #[must_use]
    pub fn next(&self, cursor: u32) -> Option<(u32, Entry)> {
        self.next_before(cursor, u32::MAX)
    }

    /// The same, looking at no position at or after `end`: whoever may not look far goes on there.
    #[must_use]
    pub fn next_before(&self, cursor: u32, end: u32) -> Option<(u32, Entry)> {
        let end = end.min(self.positions());
        let at = (cursor..end).find(|i| {
            let info = self.infos.get(*i as usize);
            info.is_some_and(|info| info.place != NONE)
        })?;
        self.entry(EntryId(at)).map(|e| (at + 1, e))
    }

    /// Where positions end.
    #[must_use]
    pub fn positions(&self) -> u32 {
        self.infos.len() as u32
    }

    /// Looks at no more than `budget` entry ids from `cursor` on and calls `f` for those in use. Gives the cursor for
    /// the next call, 0 after the last: an ageing scan that never stalls anybody.
    pub fn scan(&self, cursor: u32, budget: u32, mut f: impl FnMut(Entry)) -> u32 {
        let end = cursor.saturating_add(budget).min(self.infos.len() as u32);
        for i in cursor..end {
            if let Some(e) = self.entry(EntryId(i)) {
                f(e);
            }
        }
        if end as usize >= self.infos.len() {
            0
        } else {
            end
        }
    }

    /// One entry.
    #[must_use]
    pub fn entry(&self, id: EntryId) -> Option<Entry> {
        let info = self.infos.get(id.0 as usize)?;
        if info.place == NONE {
            return None;
        }
        let (p, value) = self.read(info.place)?;
        let stamp = self.stamp(info.place);
        Some(Entry {
            id,
            key: p.key(),
            value,
            stamp_ns: stamp.ns(),
            active: stamp.active(),
        })
    }

    /// Forgets all entries, promises and counters: a cold reset.
    pub fn clear(&mut self) {
        self.lines.fill(Line::default());
        self.heads.fill(NONE);
        self.occupied.fill(0);
        self.infos.clear();
        self.changes = self.changes.wrapping_add(1);
        self.signs.fill(Signs::default());
        self.stamps.fill(Stamp::default());
        self.presence.clear();
        self.free_ids.clear();
        self.stash.clear();
        self.stash_index.clear();
        self.stash_used = 0;
        self.entries = 0;
        self.per_kind = [0; 3];
        self.per_fid.fill(0);
        self.promised_in_flight = 0;
        self.search.reset();
        self.pool.reset();
    }

    /// Counts the slots that are taken in the memory itself, for audits: must equal `pool().used()`.
    #[must_use]
    pub fn recount(&self) -> u32 {
        let banks: u32 = self.occupied.iter().map(|m| m.count_ones()).sum();
        let stash: u32 = self
            .stash
            .iter()
            .filter_map(|s| self.infos.get(s.id as usize))
            .map(|i| u32::from(i.width))
            .sum();
        banks + stash
    }
}

/// Bits of `width` slots from `at` on.
#[inline]
fn run_mask(at: u32, width: u32) -> u8 {
    (((1u32 << width) - 1) << at) as u8
}

/// One multiplication is enough: its input is already mixed, the high half of the product depends on all of it.
#[inline]
fn mix_bank(x: u64) -> u64 {
    let m = u128::from(x) * 0xe703_7ed1_a0b4_28db_u128;
    (m >> 64) as u64 ^ m as u64
}

// SPDX-License-Identifier: Apache-2.0
//! The flow cache: which flows packets of one key met, table after table.
//!
//! ```text
//!   key & (all bits that any flow of any table looks at), first table ──hash──► two slots ──► flows of up to four tables
//! ```
//!
//! A way through the tables depends on the bits that flows look at and on nothing else, so one slot serves all packets
//! that agree in them. It ends where a packet's bytes decide on, and not its key: behind an action that uncovers other
//! headers ([`crate::process`]); there the next way begins, with the key that the packet has then.
//!
//! A slot is asked, when it is hit, whether it still holds. A flow that was removed or given other instructions has another
//! generation. Added flows are kept in a short log: the slot holds if none of those since matches the packet. Nothing
//! is thrown away when flows change, unless they look at bits that none has looked at before.
use crate::key::{Key, WORDS};
use crate::table::hash;

/// Tables of one way, at most.
pub const STEPS: usize = 4;
/// No flow of the table matched.
pub const MISS: u32 = u32::MAX;
/// Words of a slot before its key; behind it are the steps. With up to five words of key and one table in use it is one
/// line of a processor's cache.
const META: usize = 2;
/// Words of a line.
const LINE: usize = 8;
/// Added flows that a slot is compared with; one that is older is looked up again.
const LOG: usize = 32;

/// Part of a way: the flow, by its number and generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which, or [`MISS`].
    pub flow: u32,
    /// The table it is in.
    pub table: u8,
}

/// What a way is cached by, and where it would be.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    words: [u64; WORDS],
    hash: u32,
    first: u8,
}

/// A way that is being found.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    flows: [u64; STEPS],
    /// So many of them.
    pub len: usize,
    /// Did a set-field action change the key between two of them?
    pub rewritten: bool,
    tables: [u8; STEPS],
}

impl Default for Way {
    fn default() -> Way {
        Way {
            flows: [0; STEPS],
            len: 0,
            rewritten: false,
            tables: [0; STEPS],
        }
    }
}

impl Way {
    /// The step of this number.
    #[inline]
    pub fn step(&self, n: usize) -> Option<Step> {
        if n >= self.len {
            return None;
        }
        Some(Step {
            flow: *self.flows.get(n)? as u32,
            table: *self.tables.get(n)?,
        })
    }

    /// One more; nothing when it is full.
    #[inline]
    pub fn push(&mut self, table: u8, flow: u32, generation: u32) {
        if let (Some(f), Some(t)) = (self.flows.get_mut(self.len), self.tables.get_mut(self.len)) {
            *f = u64::from(generation) << 32 | u64::from(flow);
            *t = table;
            self.len += 1;
        }
    }
}

/// Slots, each of so many lines. Zeros that come from the system are pages that nothing stands behind until one is written: a
/// switch whose chip answers has them for nothing.
#[derive(Clone, Debug, Default)]
struct Slots {
    words: Vec<u64>,
    /// Words before the first line of the processor's cache.
    skip: usize,
}

impl Slots {
    fn new(lines: usize) -> Slots {
        let words = vec![0; (lines + 1) * LINE];
        let skip = words.as_ptr().align_offset(LINE * 8) % LINE;
        Slots { words, skip }
    }

    /// The lines from this one on.
    #[inline]
    fn get(&self, at: usize, lines: usize) -> Option<&[u64]> {
        let from = self.skip + at * LINE;
        self.words.get(from..from + lines * LINE)
    }

    #[inline]
    fn get_mut(&mut self, at: usize, lines: usize) -> Option<&mut [u64]> {
        let from = self.skip + at * LINE;
        self.words.get_mut(from..from + lines * LINE)
    }
}

/// A word of a slot.
#[inline]
fn word(slot: &[u64], at: usize) -> u64 {
    slot.get(at).copied().unwrap_or(0)
}

#[derive(Clone, Copy, Debug)]
struct Added {
    table: u8,
    value: Key,
    mask: Key,
    words: u16,
}

/// The cache. Of size 0 it holds nothing.
#[derive(Clone, Debug)]
pub struct Cache {
    slots: Slots,
    /// Pairs of slots, a power of two, or 0.
    pairs: usize,
    mask: Key,
    words: Vec<(u8, u64)>,
    /// Tables that have had flows: no way has more steps.
    tables: [u64; 4],
    steps: usize,
    secret: u64,
    log: Vec<Added>,
    /// Flows added so far, plus one.
    added: u32,
    turn: u32,
    /// Ways found, and ways not found or not holding.
    pub hits: u64,
    /// See `hits`.
    pub misses: u64,
}

impl Cache {
    /// About so many slots.
    pub fn new(slots: usize, secret: u64) -> Cache {
        let pairs = if slots < 2 {
            0
        } else {
            (slots / 2).next_power_of_two()
        };
        Cache {
            slots: Slots::new(pairs * 2),
            pairs,
            mask: Key::default(),
            words: Vec::new(),
            tables: [0; 4],
            steps: 1,
            secret,
            log: Vec::with_capacity(LOG),
            added: 1,
            turn: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// Forgets everything; the bits looked at are those of `mask` from here on.
    pub fn flush(&mut self, mask: Key) {
        self.mask = mask;
        self.words = (0u8..).zip(mask.0).filter(|(_, w)| *w != 0).collect();
        // Before the new ones are there: both would be twice as many
        self.slots = Slots::default();
        self.slots = Slots::new(self.pairs * 2 * self.stride());
        self.log.clear();
        self.added = 1;
    }

    /// Lines of a slot.
    #[inline]
    fn stride(&self) -> usize {
        (META + self.words.len() + self.steps).div_ceil(LINE)
    }

    /// Is this slot for that place?
    #[inline]
    fn is_at(&self, slot: &[u64], place: &Place) -> bool {
        let first = word(slot, 0);
        first >> 32 == u64::from(place.hash)
            && first as u32 != 0
            && word(slot, 1) as u8 == place.first
            && (META..)
                .zip(&place.words)
                .take(self.words.len())
                .all(|(at, w)| word(slot, at) == *w)
    }

    /// A flow was added, not in the place of one with the same match and priority.
    pub fn flow_added(&mut self, table: u8, value: &Key, mask: &Key) {
        if self.pairs == 0 {
            return;
        }
        if let Some(w) = self.tables.get_mut(usize::from(table / 64)) {
            *w |= 1 << (table % 64);
        }
        let tables: u32 = self.tables.iter().map(|w| w.count_ones()).sum();
        let steps = STEPS.min(tables as usize);
        if steps > self.steps || !self.mask.covers(mask) || self.added == u32::MAX {
            self.steps = steps;
            let mask = self.mask.or(mask);
            self.flush(mask);
            return;
        }
        let new = Added {
            table,
            value: *value,
            mask: *mask,
            words: mask.used(),
        };
        let at = self.added as usize % LOG;
        match self.log.get_mut(at) {
            Some(place) => *place = new,
            // The places before it were never written since the last flush, and no slot is older than that
            None => self.log.resize(at + 1, new),
        }
        self.added += 1;
    }

    /// Tables of one way.
    #[inline]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Is there a cache at all?
    #[inline]
    pub fn is_on(&self) -> bool {
        self.pairs > 0
    }

    /// Where packets of this key that begin at table `first` are.
    #[inline]
    pub fn place(&self, key: &Key, first: u8) -> Place {
        let mut words = [0; WORDS];
        for (place, (w, m)) in words.iter_mut().zip(&self.words) {
            *place = key.word(*w) & m;
        }
        let used = words.get(..self.words.len()).unwrap_or_default();
        Place {
            words,
            hash: hash(self.secret ^ u64::from(first) << 56, used.iter().copied()),
            first,
        }
    }

    /// The way, if it is there and holds. `generation` answers for a flow of this number.
    #[inline]
    pub fn get(
        &mut self,
        place: &Place,
        key: &Key,
        generation: impl Fn(u32) -> u32,
    ) -> Option<Way> {
        let stride = self.stride();
        let keys = self.words.len();
        let base = (place.hash as usize & self.pairs.wrapping_sub(1)) * 2 * stride;
        for at in [base, base + stride] {
            let Some(slot) = self.slots.get(at, stride) else {
                break;
            };
            if !self.is_at(slot, place) {
                continue;
            }
            let (since, meta) = (word(slot, 0) as u32, word(slot, 1));
            let mut way = Way {
                flows: [0; STEPS],
                len: usize::from((meta >> 8) as u8),
                rewritten: meta >> 16 & 1 != 0,
                tables: ((meta >> 32) as u32).to_le_bytes(),
            };
            for (at, flow) in (META + keys..).zip(way.flows.iter_mut().take(way.len)) {
                *flow = word(slot, at);
            }
            let holds = way.flows.iter().take(way.len).all(|f| {
                let flow = *f as u32;
                flow == MISS || generation(flow) == (f >> 32) as u32
            }) && (since == self.added || self.holds_since(since, &way, key));
            if !holds {
                break;
            }
            if since != self.added
                && let Some([first, ..]) = self.slots.get_mut(at, 1)
            {
                *first = u64::from(place.hash) << 32 | u64::from(self.added);
            }
            self.hits += 1;
            return Some(way);
        }
        self.misses += 1;
        None
    }

    /// Does no flow that was added since then match in one of the way's tables?
    fn holds_since(&self, since: u32, way: &Way, key: &Key) -> bool {
        if (self.added - since) as usize > LOG {
            return false;
        }
        (since..self.added).all(|n| {
            let Some(a) = self.log.get(n as usize % LOG) else {
                return false;
            };
            let Some(step) = way.tables.iter().take(way.len).position(|t| *t == a.table) else {
                return true;
            };
            // The key at a later table may be another than the one at hand
            if step > 0 && way.rewritten {
                return false;
            }
            let mut left = a.words;
            while left != 0 {
                let w = left.trailing_zeros() as usize % WORDS;
                if key.0[w] & a.mask.0[w] != a.value.0[w] {
                    return true;
                }
                left &= left - 1;
            }
            false
        })
    }

    /// Keeps a way: in a slot that is free or has the same key, or in one of the two by turns.
    pub fn put(&mut self, place: &Place, way: &Way) {
        if self.pairs == 0 || way.len == 0 {
            return;
        }
        let stride = self.stride();
        let base = (place.hash as usize & (self.pairs - 1)) * 2 * stride;
        let same = |at: usize| {
            self.slots
                .get(at, stride)
                .is_some_and(|s| word(s, 0) as u32 == 0 || self.is_at(s, place))
        };
        let at = if same(base) {
            base
        } else if same(base + stride) {
            base + stride
        } else {
            self.turn = self.turn.wrapping_mul(0x915f_77f5).wrapping_add(1);
            base + stride * (self.turn >> 31) as usize
        };
        let Some(slot) = self.slots.get_mut(at, stride) else {
            return;
        };
        let meta = [
            u64::from(place.hash) << 32 | u64::from(self.added),
            u64::from(place.first)
                | (way.len as u64) << 8
                | u64::from(way.rewritten) << 16
                | u64::from(u32::from_le_bytes(way.tables)) << 32,
        ];
        let keys = place.words.iter().take(self.words.len());
        let words = meta.iter().chain(keys).chain(&way.flows);
        let words = words.take(META + self.words.len() + self.steps);
        for (to, w) in slot.iter_mut().zip(words) {
            *to = *w;
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! One flow table: a tuple space, one hash table for each mask in use.
//!
//! ```text
//!   key ──► subtables, by (highest priority in it, rank of its mask), greatest first
//!            │ mask A, up to 900:  hash(key & A) ──► entry ──► flow, 900 ──► those of lower priority
//!            │    │                asked only if the sieve knows one word of key & A: the first stage of the lookup
//!            │ mask B, up to 500:  asked only while nothing better than (500, B) was found
//!            ▼
//! ```
//!
//! The order of rules is total and has no memory: of two flows that match a packet the one with the higher priority wins,
//! of equal priority the one whose mask has the higher [`Key::rank`]. Two flows of one mask, one priority and one packet
//! are the same flow.
use crate::key::Key;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// No flow.
pub const NONE: u32 = u32::MAX;

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ (wide >> 64) as u64
}

/// Hash of words; the secret keeps the colliding keys of one switch from being known to others.
#[inline]
pub fn hash(secret: u64, words: impl Iterator<Item = u64>) -> u32 {
    let mut h = secret;
    for w in words {
        h = fold(h ^ w, 0x9e37_79b9_7f4a_7c15);
    }
    (h ^ h >> 32) as u32
}

/// Open addressing over numbers that stand elsewhere: a slot is a hash and the number plus one.
#[derive(Clone, Debug, Default)]
struct Index {
    slots: Vec<u64>,
    len: usize,
}

impl Index {
    #[inline]
    fn find(&self, hash: u32, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & last;
        loop {
            let slot = *self.slots.get(at)?;
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == hash {
                let number = slot as u32 - 1;
                if is(number) {
                    return Some(number);
                }
            }
            at = (at + 1) & last;
        }
    }

    fn insert(&mut self, hash: u32, number: u32) {
        if self.slots.len() < (self.len + 1) * 2 {
            let size = (self.slots.len() * 2).max(8);
            let old = std::mem::replace(&mut self.slots, vec![0; size]);
            for slot in old.into_iter().filter(|s| *s != 0) {
                self.place(slot);
            }
        }
        self.place(u64::from(hash) << 32 | u64::from(number + 1));
        self.len += 1;
    }

    fn place(&mut self, slot: u64) {
        let last = self.slots.len() - 1;
        let mut at = (slot >> 32) as usize & last;
        while self.slots[at] != 0 {
            at = (at + 1) & last;
        }
        self.slots[at] = slot;
    }

    fn remove(&mut self, hash: u32, number: u32) {
        let last = self.slots.len().wrapping_sub(1);
        let wanted = u64::from(hash) << 32 | u64::from(number + 1);
        let mut hole = hash as usize & last;
        while let Some(&slot) = self.slots.get(hole) {
            if slot == wanted {
                break;
            }
            if slot == 0 {
                return;
            }
            hole = (hole + 1) & last;
        }
        if self.slots.is_empty() {
            return;
        }
        self.len -= 1;
        // What stands behind the hole moves up, unless it would get before its own place
        let mut at = (hole + 1) & last;
        while self.slots[at] != 0 {
            let home = (self.slots[at] >> 32) as usize & last;
            if (at.wrapping_sub(home) & last) >= (at.wrapping_sub(hole) & last) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = (at + 1) & last;
        }
        self.slots[hole] = 0;
    }
}

/// Which values of one word the entries of a mask have: a bit for each, at its hash. Most packets meet no flow of most
/// masks, and one word tells that of nearly all of them, without the hash of the others and a look at the index.
#[derive(Clone, Debug)]
struct Sieve {
    /// The word, and its place among those of the mask.
    word: u8,
    place: usize,
    mask: u64,
    bits: Vec<u64>,
    /// Entries that went since the bits were made: theirs are still there.
    gone: usize,
}

impl Sieve {
    /// Bits for an entry, at least: one in eight packets that meet none passes.
    const EACH: usize = 8;

    /// Of the words of a mask, by the one with the most bits: addresses differ more than types.
    fn new(words: &[(u8, u64)]) -> Sieve {
        let most = (0..).zip(words).max_by_key(|(_, (_, m))| m.count_ones());
        let (place, (word, mask)) = most.map_or((0, (0, 0)), |(n, w)| (n, *w));
        Sieve {
            word,
            place,
            mask,
            bits: vec![0],
            gone: 0,
        }
    }

    #[inline]
    fn at(&self, secret: u64, value: u64) -> (usize, u64) {
        let h = fold(secret ^ value, 0x9e37_79b9_7f4a_7c15) as usize;
        (h >> 6 & (self.bits.len() - 1), 1 << (h & 63))
    }

    /// May an entry be there for this key? If not, none is.
    #[inline]
    fn passes(&self, secret: u64, key: &Key) -> bool {
        let (at, bit) = self.at(secret, key.word(self.word) & self.mask);
        self.bits.get(at).is_none_or(|b| b & bit != 0)
    }

    fn put(&mut self, secret: u64, value: u64) {
        let (at, bit) = self.at(secret, value);
        if let Some(b) = self.bits.get_mut(at) {
            *b |= bit;
        }
    }
}

/// Has an entry flows? Else its place is free.
fn is_there(entry: &&[u64]) -> bool {
    entry.last() != Some(&u64::from(NONE))
}

/// Flows of one mask. An entry is the words of a masked key, and in one more word the first flow of its chain with that
/// flow's priority.
#[derive(Clone, Debug)]
pub struct Subtable {
    mask: Key,
    /// The words of the mask that are not zero, in order.
    words: Vec<(u8, u64)>,
    sieve: Sieve,
    index: Index,
    entries: Vec<u64>,
    free: Vec<u32>,
    priorities: BTreeMap<u16, u32>,
    flows: u32,
}

impl Subtable {
    fn new(mask: Key) -> Subtable {
        let words = (0u8..)
            .zip(mask.0)
            .filter(|(_, w)| *w != 0)
            .collect::<Vec<_>>();
        Subtable {
            mask,
            sieve: Sieve::new(&words),
            words,
            index: Index::default(),
            entries: Vec::new(),
            free: Vec::new(),
            priorities: BTreeMap::new(),
            flows: 0,
        }
    }

    /// Its mask.
    pub fn mask(&self) -> &Key {
        &self.mask
    }

    /// What a look at all its flows costs: how many there are, or how many places for keys it keeps.
    pub fn looks(&self) -> usize {
        (self.entries.len() / self.stride()).max(self.flows as usize)
    }

    /// Has it flows of this priority?
    pub fn has_priority(&self, priority: u16) -> bool {
        self.priorities.contains_key(&priority)
    }

    fn highest(&self) -> u16 {
        self.priorities.last_key_value().map_or(0, |(p, _)| *p)
    }

    fn stride(&self) -> usize {
        self.words.len() + 1
    }

    #[inline]
    fn masked<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = u64> + 'a {
        self.words.iter().map(|(w, m)| key.word(*w) & m)
    }

    #[inline]
    fn find(&self, secret: u64, key: &Key) -> Option<u32> {
        let stride = self.stride();
        self.index.find(hash(secret, self.masked(key)), |number| {
            let at = number as usize * stride;
            match self.entries.get(at..at + stride - 1) {
                Some(entry) => entry.iter().copied().eq(self.masked(key)),
                None => false,
            }
        })
    }

    /// The first flow of the chain for this key with its priority.
    #[inline]
    pub fn first(&self, secret: u64, key: &Key) -> Option<(u16, u32)> {
        if !self.sieve.passes(secret, key) {
            return None;
        }
        let number = self.find(secret, key)? as usize;
        let last = *self.entries.get((number + 1) * self.stride() - 1)?;
        Some(((last >> 32) as u16, last as u32))
    }

    fn set_first(&mut self, secret: u64, key: &Key, priority: u16, flow: u32) {
        let last = u64::from(priority) << 32 | u64::from(flow);
        let stride = self.stride();
        if let Some(number) = self.find(secret, key) {
            self.entries[(number as usize + 1) * stride - 1] = last;
            return;
        }
        let words: Vec<u64> = self.masked(key).collect();
        let hash = hash(secret, words.iter().copied());
        let number = match self.free.pop() {
            Some(n) => n,
            None => {
                let n = (self.entries.len() / stride) as u32;
                self.entries.resize(self.entries.len() + stride, 0);
                n
            }
        };
        let at = number as usize * stride;
        self.entries[at..at + stride - 1].copy_from_slice(&words);
        self.entries[at + stride - 1] = last;
        self.index.insert(hash, number);
        if self.index.len * Sieve::EACH > self.sieve.bits.len() * 64 {
            self.sift(secret);
        } else {
            let value = words.get(self.sieve.place);
            self.sieve.put(secret, value.copied().unwrap_or(0));
        }
    }

    /// Lets go of the places of what went.
    fn pack(&mut self, secret: u64) {
        let old = std::mem::take(&mut self.entries);
        (self.index, self.free) = (Index::default(), Vec::new());
        for (number, entry) in (0..).zip(old.chunks_exact(self.words.len() + 1).filter(is_there)) {
            self.entries.extend_from_slice(entry);
            let words = &entry[..self.words.len()];
            self.index
                .insert(hash(secret, words.iter().copied()), number);
        }
    }

    /// Makes the sieve anew, twice as large as it has to be. That looks at all places, so there are no more of them than a
    /// few for each entry.
    fn sift(&mut self, secret: u64) {
        if self.entries.len() / self.stride() > self.index.len * 4 + 64 {
            self.pack(secret);
        }
        let bits = (self.index.len * Sieve::EACH * 2).next_power_of_two();
        self.sieve.bits = vec![0; bits.div_ceil(64)];
        self.sieve.gone = 0;
        for entry in self
            .entries
            .chunks_exact(self.words.len() + 1)
            .filter(is_there)
        {
            let words = &entry[..self.words.len()];
            let value = words.get(self.sieve.place);
            self.sieve.put(secret, value.copied().unwrap_or(0));
        }
    }

    fn drop_entry(&mut self, secret: u64, key: &Key) {
        if let Some(number) = self.find(secret, key) {
            let hash = hash(secret, self.masked(key));
            self.index.remove(hash, number);
            self.free.push(number);
            let at = (number as usize + 1) * self.stride() - 1;
            self.entries[at] = u64::from(NONE);
            self.sieve.gone += 1;
            if self.sieve.gone > self.index.len + 64 {
                self.sift(secret);
            }
        }
    }

    /// The first flow of each chain whose key has `value` in the bits of `mask`, all of which are bits of this mask too.
    pub fn firsts<'a>(&'a self, mask: &'a Key, value: &'a Key) -> impl Iterator<Item = u32> + 'a {
        self.entries
            .chunks_exact(self.stride())
            .filter(|entry| {
                let mut words = entry.iter().zip(&self.words);
                words.all(|(have, (w, _))| {
                    have & mask.0[usize::from(*w)] == value.0[usize::from(*w)]
                })
            })
            .filter_map(|e| e.last())
            .map(|last| *last as u32)
            .filter(|f| *f != NONE)
    }
}

/// A subtable's turn in the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    highest: u16,
    /// Of its mask, among the masks of the table: see [`Table::by_rank`].
    rank: u32,
    subtable: u32,
}

/// Where a mask stands among others.
type Rank = ((u32, Key), Key);

/// One table. Chains of flows (same mask, same masked key) go through `next` of the flows, highest priority first: see
/// [`crate::flows`].
#[derive(Clone, Debug, Default)]
pub struct Table {
    subtables: Vec<Option<Box<Subtable>>>,
    by_mask: BTreeMap<Key, u32>,
    /// A number for each mask in the order of ranks, with gaps so that a new one seldom moves others, and its subtable.
    by_rank: BTreeMap<Rank, (u32, u32)>,
    turns: Vec<Turn>,
    /// Flows in it.
    pub len: u32,
}

impl Table {
    /// The flow that a packet of this key meets.
    #[inline]
    pub fn lookup(&self, secret: u64, key: &Key) -> Option<u32> {
        let mut best: Option<(u16, u32, u32)> = None;
        for turn in &self.turns {
            if best.is_some_and(|(p, r, _)| (p, r) >= (turn.highest, turn.rank)) {
                break;
            }
            let Some(Some(sub)) = self.subtables.get(turn.subtable as usize) else {
                continue;
            };
            if let Some((priority, flow)) = sub.first(secret, key) {
                let found = (priority, turn.rank, flow);
                if best.is_none_or(|(p, r, _)| (priority, turn.rank) > (p, r)) {
                    best = Some(found);
                }
            }
        }
        best.map(|(_, _, flow)| flow)
    }

    /// The subtable of a mask.
    pub fn subtable(&self, mask: &Key) -> Option<&Subtable> {
        let number = *self.by_mask.get(mask)?;
        self.subtables.get(number as usize)?.as_deref()
    }

    /// All subtables.
    pub fn all(&self) -> impl Iterator<Item = &Subtable> {
        self.by_mask
            .values()
            .filter_map(|n| self.subtables.get(*n as usize)?.as_deref())
    }

    /// How many masks are in use.
    pub fn masks(&self) -> usize {
        self.by_mask.len()
    }

    /// Says that a flow of this mask and priority is there, the first of its chain being `first`.
    pub fn added(
        &mut self,
        secret: u64,
        value: &Key,
        mask: &Key,
        priority: u16,
        first: (u16, u32),
    ) {
        let number = match self.by_mask.get(mask) {
            Some(n) => *n as usize,
            None => self.make(mask),
        };
        self.len += 1;
        let Some(Some(sub)) = self.subtables.get_mut(number) else {
            return;
        };
        sub.flows += 1;
        let before = sub.highest();
        *sub.priorities.entry(priority).or_default() += 1;
        let fresh = sub.flows == 1;
        sub.set_first(secret, value, first.0, first.1);
        if fresh || priority > before {
            self.turn(number);
        }
    }

    /// Says that a flow of this mask and priority is gone, the first of its chain being `first`, if there is one left.
    pub fn removed(
        &mut self,
        secret: u64,
        value: &Key,
        mask: &Key,
        priority: u16,
        first: Option<(u16, u32)>,
    ) {
        let Some(&number) = self.by_mask.get(mask) else {
            return;
        };
        let number = number as usize;
        self.len -= 1;
        let Some(Some(sub)) = self.subtables.get_mut(number) else {
            return;
        };
        sub.flows -= 1;
        match first {
            Some((p, f)) => sub.set_first(secret, value, p, f),
            None => sub.drop_entry(secret, value),
        }
        let before = sub.highest();
        if let Some(n) = sub.priorities.get_mut(&priority) {
            *n -= 1;
            if *n == 0 {
                sub.priorities.remove(&priority);
            }
        }
        if sub.flows == 0 {
            self.by_mask.remove(mask);
            self.by_rank.remove(&(mask.rank(), *mask));
            self.subtables[number] = None;
            self.turns.retain(|t| t.subtable as usize != number);
        } else if sub.highest() != before {
            self.turn(number);
        }
    }

    fn make(&mut self, mask: &Key) -> usize {
        let number = match self.subtables.iter().position(Option::is_none) {
            Some(n) => n,
            None => {
                self.subtables.push(None);
                self.subtables.len() - 1
            }
        };
        self.subtables[number] = Some(Box::new(Subtable::new(*mask)));
        self.by_mask.insert(*mask, number as u32);
        let (rank, subtable) = ((mask.rank(), *mask), number as u32);
        let known = |of: Option<(&Rank, &(u32, u32))>| of.map(|(_, (n, _))| *n);
        let (less, more) = (..rank, (Excluded(rank), Unbounded));
        let low = known(self.by_rank.range(less).next_back()).unwrap_or(0);
        let high = known(self.by_rank.range(more).next()).unwrap_or(u32::MAX);
        let between = low + (high - low) / 2;
        self.by_rank.insert(rank, (between, subtable));
        self.turns.push(Turn {
            highest: 0,
            rank: between,
            subtable,
        });
        if between == low {
            self.spread();
        }
        self.sort();
        number
    }

    /// All numbers of masks anew, as far apart as they go.
    fn spread(&mut self) {
        let gap = u32::MAX / (self.by_rank.len() as u32 + 1);
        let mut number_of = vec![0; self.subtables.len()];
        for (n, (number, subtable)) in (1..).zip(self.by_rank.values_mut()) {
            *number = n * gap;
            number_of[*subtable as usize] = *number;
        }
        for t in &mut self.turns {
            t.rank = number_of[t.subtable as usize];
        }
    }

    fn turn(&mut self, number: usize) {
        let highest = self.subtables[number].as_ref().map_or(0, |s| s.highest());
        if let Some(t) = self
            .turns
            .iter_mut()
            .find(|t| t.subtable as usize == number)
        {
            t.highest = highest;
        }
        self.sort();
    }

    fn sort(&mut self) {
        self.turns.sort_unstable_by(|a, b| b.cmp(a));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A mask of some bits, by a number.
    fn mask(n: u64) -> Key {
        let mut key = Key::default();
        key.0[1] = n;
        key
    }

    /// Of 10,000 packets that meet no flow of a mask, how many get past its sieve.
    fn passes(sub: &Subtable) -> usize {
        let none = 1 << 40..(1 << 40) + 10_000;
        none.filter(|n| sub.sieve.passes(7, &mask(*n))).count()
    }

    /// Of packets that meet no flow of a mask one in eight gets past its sieve, and two behind flows that came and went.
    #[test]
    fn sieve_keeps_others_back() {
        let mut sub = Subtable::new(mask(u64::MAX));
        for n in 0..500 {
            sub.set_first(7, &mask(n), 5, 1);
            assert!(passes(&sub) < 1_400, "{n}: {}", passes(&sub));
        }
        for n in 500..20_000 {
            sub.set_first(7, &mask(n), 5, 1);
            sub.drop_entry(7, &mask(n - 500));
        }
        assert!(passes(&sub) < 2_500);
        assert_eq!(sub.index.len, 500);
        assert!(sub.sieve.bits.len() * 64 <= 500 * 32, "four bytes for each");
    }

    /// The places of many flows that went are no more to be looked at.
    #[test]
    fn places_go_with_the_flows() {
        let mut sub = Subtable::new(mask(u64::MAX));
        for n in 0..10_000 {
            sub.set_first(7, &mask(n), 5, n as u32);
        }
        for n in (0..10_000).filter(|n| n % 1_000 != 3) {
            sub.drop_entry(7, &mask(n));
        }
        assert!(sub.looks() <= 4 * 74 + 64, "{}", sub.looks());
        for n in 0..10_000 {
            let want = (n % 1_000 == 3).then_some((5, n as u32));
            assert_eq!(sub.first(7, &mask(n)), want, "{n}");
        }
        sub.set_first(7, &mask(5), 5, 5);
        assert_eq!(sub.first(7, &mask(5)), Some((5, 5)));
    }

    #[test]
    fn what_matches_everything_passes_the_sieve_however_often_it_came_and_went() {
        let mut sub = Subtable::new(Key::default());
        for _ in 0..100 {
            sub.set_first(7, &Key::default(), 5, 1);
            assert_eq!(sub.first(7, &mask(3)), Some((5, 1)));
            sub.set_first(7, &Key::default(), 5, 2);
            assert_eq!(sub.first(7, &mask(3)), Some((5, 2)));
            sub.drop_entry(7, &Key::default());
            assert_eq!(sub.first(7, &mask(3)), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Turns of one priority go by the rank of their mask, whichever way masks come and go; far more than gaps last for.
        #[test]
        fn masks_stand_by_their_rank(all in proptest::collection::vec((0u64..1 << 20, any::<bool>()), 0..200), up in 0u64..200) {
            let mut table = Table::default();
            let mut there = BTreeSet::new();
            let grows = (1..=up).map(|n| ((1 << n.min(40)) - 1 + n, true));
            for (n, comes) in grows.chain(all) {
                let (value, m) = (Key::default(), mask(n));
                if comes && there.insert(n) {
                    table.added(7, &value, &m, 5, (5, 1));
                } else if !comes && there.remove(&n) {
                    table.removed(7, &value, &m, 5, None);
                }
            }
            let mut want: Vec<_> = there.iter().map(|n| mask(*n)).collect();
            want.sort_by_key(|m| std::cmp::Reverse((m.rank(), *m)));
            let has = table.turns.iter().map(|t| table.subtables[t.subtable as usize].as_ref().unwrap().mask);
            prop_assert_eq!(has.collect::<Vec<_>>(), want);
        }

        /// A subtable finds what was put in and not taken out, whatever its sieve still knows of what went; one word is the
        /// sieve's, another tells entries apart that are one to it.
        #[test]
        fn sieve_keeps_nothing_back(steps in proptest::collection::vec((any::<bool>(), 0u64..200, 0u64..3), 0..900)) {
            let mut mask = mask(u64::MAX);
            mask.0[2] = 3;
            let key = |(a, b)| {
                let mut key = Key::default();
                (key.0[1], key.0[2]) = (a, b);
                key
            };
            let mut sub = Subtable::new(mask);
            let mut want = BTreeSet::new();
            for (put, a, b) in steps {
                if put {
                    want.insert((a, b));
                    sub.set_first(7, &key((a, b)), 5, 1);
                } else {
                    want.remove(&(a, b));
                    sub.drop_entry(7, &key((a, b)));
                }
            }
            for of in (0..200).flat_map(|a| (0..3).map(move |b| (a, b))) {
                prop_assert_eq!(sub.first(7, &key(of)).is_some(), want.contains(&of));
            }
        }

        /// The index holds what was put in and not taken out, whatever the hashes.
        #[test]
        fn index_is_a_set(steps in proptest::collection::vec((any::<bool>(), 0u32..40), 0..300)) {
            let hash = |n: u32| if n.is_multiple_of(3) { 7 } else { n * 5 };
            let mut index = Index::default();
            let mut want = BTreeSet::new();
            for (put, n) in steps {
                if put && want.insert(n) {
                    index.insert(hash(n), n);
                } else if !put && want.remove(&n) {
                    index.remove(hash(n), n);
                }
                for n in 0..40 {
                    prop_assert_eq!(index.find(hash(n), |m| m == n).is_some(), want.contains(&n));
                }
            }
        }
    }
}

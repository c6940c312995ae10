//! The rules of one mask: a hash from the masked key to the first of them.

use super::{NONE, WORDS, Words, word};
use std::collections::BTreeSet;

/// What tells the keys of one mask apart.
type Tag = [u64; 3];

/// One place of the hash: a tag, and the first rule with its priority; half a cache line.
#[derive(Clone, Copy, Debug)]
struct Cell {
    tag: Tag,
    first: First,
}

/// The best rule of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First {
    pub(super) rule: u32,
    pub(super) priority: u32,
}

const NOBODY: First = First {
    rule: NONE,
    priority: u32::MAX,
};

const EMPTY: Cell = Cell {
    tag: [0; 3],
    first: NOBODY,
};

/// See the module. A mask within the first three words (IPv4, transport, tag) makes the masked words the tag, and a cell
/// that matches is the rule; other masks have hashes for a tag, and the rule is compared.
#[derive(Clone, Debug)]
pub(super) struct Tuple {
    pub(super) mask: Words,
    /// Lowest priority number of its rules.
    pub(super) best: u32,
    /// The priority numbers of all.
    priorities: BTreeSet<u32>,
    /// How many of them have ranges.
    ranged: usize,
    /// A cell that matches is a hit: nothing else to compare.
    pub(super) sure: bool,
    narrow: bool,
    /// Words that the mask touches, for wide ones.
    used: Vec<u8>,
    cells: Box<[Cell]>,
    /// A bit for each hash that is in a cell, and for some that were; [`FILTER`] bits for a cell. Most tuples have nothing for
    /// a frame, and this says so without a guess.
    filter: Box<[u64]>,
    filled: usize,
    /// Keys that left a bit in the filter.
    left: usize,
}

/// See [`Tuple::filter`]: at half of the cells filled, one in 32 says perhaps for nothing.
const FILTER: usize = 16;
/// One in so many cells may have left a bit: a key that goes costs as little as one that comes.
const LEFT: usize = 8;
const CELLS: usize = 4;

fn filter(cells: usize) -> Box<[u64]> {
    vec![0; cells * FILTER / 64].into_boxed_slice()
}

impl Tuple {
    pub(super) fn new(mask: Words) -> Tuple {
        let narrow = mask[word::META + 1..].iter().all(|m| *m == 0);
        Tuple {
            mask,
            best: u32::MAX,
            priorities: BTreeSet::new(),
            ranged: 0,
            sure: narrow,
            narrow,
            used: (0..WORDS)
                .filter(|i| mask[*i] != 0)
                .map(|i| i as u8)
                .collect(),
            cells: vec![EMPTY; CELLS].into_boxed_slice(),
            filter: filter(CELLS),
            filled: 0,
            left: 0,
        }
    }

    /// A rule comes, or goes.
    pub(super) fn count(&mut self, priority: u32, ranged: bool, comes: bool) {
        let new = match comes {
            true => self.priorities.insert(priority),
            false => self.priorities.remove(&priority),
        };
        match (new && ranged, comes) {
            (true, true) => self.ranged += 1,
            (true, false) => self.ranged -= 1,
            (false, _) => {}
        }
        self.best = self.priorities.first().copied().unwrap_or(u32::MAX);
        self.sure = self.narrow && self.ranged == 0;
    }

    /// Has it no rule?
    pub(super) fn is_empty(&self) -> bool {
        self.priorities.is_empty()
    }

    #[inline]
    fn tag(&self, key: &Words) -> Tag {
        if self.narrow {
            return [
                key[word::IP4] & self.mask[word::IP4],
                key[word::L4] & self.mask[word::L4],
                key[word::META] & self.mask[word::META],
            ];
        }
        let (mut a, mut b) = (0x7461_6e64_656d_3031u64, 0u64);
        for i in &self.used {
            let i = usize::from(*i) % WORDS;
            let w = key[i] & self.mask[i];
            a = (a ^ w).wrapping_mul(0xa076_1d64_78bd_642f);
            a ^= a >> 32;
            b = (b.rotate_left(23) ^ w).wrapping_mul(0xe703_7ed1_a0b4_28db);
        }
        [a, b, 0]
    }

    #[inline]
    fn home(&self, tag: &Tag) -> usize {
        hash(tag) as usize & (self.cells.len() - 1)
    }

    /// The word and the bit of a hash in the filter.
    #[inline]
    fn bit(&self, hash: u64) -> (usize, u32) {
        bit(hash, self.filter.len() - 1)
    }

    /// False: no rule has this key.
    #[inline]
    pub(super) fn may(&self, key: &Words) -> bool {
        let (word, bit) = self.bit(hash(&self.tag(key)));
        self.filter.get(word).is_some_and(|w| w >> bit & 1 != 0)
    }

    /// The first rule of a key.
    #[inline]
    pub(super) fn find(&self, key: &Words) -> First {
        let tag = self.tag(key);
        let mut i = self.home(&tag);
        loop {
            match self.cells.get(i) {
                Some(c) if c.first.rule == NONE => return NOBODY,
                Some(c) if same(&c.tag, &tag) => return c.first,
                Some(_) => i = (i + 1) & (self.cells.len() - 1),
                None => return NOBODY,
            }
        }
    }

    /// Makes `first` the first of a key.
    pub(super) fn set(&mut self, key: &Words, first: First) {
        if (self.filled + 1) * 2 > self.cells.len() {
            let old = std::mem::take(&mut self.cells);
            self.cells = vec![EMPTY; old.len() * 2].into_boxed_slice();
            self.filter = filter(self.cells.len());
            (self.filled, self.left) = (0, 0);
            for c in old.iter().filter(|c| c.first.rule != NONE) {
                self.place(*c);
            }
        }
        let tag = self.tag(key);
        self.place(Cell { tag, first });
    }

    fn place(&mut self, cell: Cell) {
        let (word, bit) = self.bit(hash(&cell.tag));
        if let Some(w) = self.filter.get_mut(word) {
            *w |= 1 << bit;
        }
        let mut i = self.home(&cell.tag);
        let mask = self.cells.len() - 1;
        while let Some(c) = self.cells.get_mut(i) {
            if c.first.rule == NONE {
                self.filled += 1;
                *c = cell;
                return;
            }
            if c.tag == cell.tag {
                *c = cell;
                return;
            }
            i = (i + 1) & mask;
        }
    }

    /// A key has no rule any more.
    pub(super) fn clear(&mut self, key: &Words) {
        let tag = self.tag(key);
        let mask = self.cells.len() - 1;
        let at = |i: usize| self.cells.get(i).filter(|c| c.first.rule != NONE);
        let mut hole = self.home(&tag);
        while at(hole).is_some_and(|c| c.tag != tag) {
            hole = (hole + 1) & mask;
        }
        if at(hole).is_none() {
            return;
        }
        // What stands behind the hole moves up, unless it would get before its own place
        let mut i = (hole + 1) & mask;
        while let Some(c) = self.cells.get(i).copied().filter(|c| c.first.rule != NONE) {
            let home = self.home(&c.tag);
            if (i.wrapping_sub(home) & mask) >= (i.wrapping_sub(hole) & mask) {
                self.put(hole, c);
                hole = i;
            }
            i = (i + 1) & mask;
        }
        self.put(hole, EMPTY);
        self.filled -= 1;
        self.left += 1;
        if self.filled == 0 || self.left * LEFT > self.cells.len() {
            self.mark();
        }
    }

    fn put(&mut self, at: usize, cell: Cell) {
        if let Some(c) = self.cells.get_mut(at) {
            *c = cell;
        }
    }

    /// The filter has the bits of what is there, and no others.
    fn mark(&mut self) {
        self.left = 0;
        let mut bits = std::mem::take(&mut self.filter);
        bits.fill(0);
        let words = bits.len() - 1;
        for c in self.cells.iter().filter(|c| c.first.rule != NONE) {
            let (word, bit) = bit(hash(&c.tag), words);
            if let Some(w) = bits.get_mut(word) {
                *w |= 1 << bit;
            }
        }
        self.filter = bits;
    }
}

/// Equal, word by word: `==` compares vectors, and a vector of words that were only just written has to wait for them.
#[inline]
fn same(a: &Tag, b: &Tag) -> bool {
    a.iter().zip(b).fold(0, |d, (a, b)| d | (a ^ b)) == 0
}

/// The word and the bit of a hash, of words up to a number that is one less than a power of two.
#[inline]
fn bit(hash: u64, last: usize) -> (usize, u32) {
    let i = (hash >> 32) as usize;
    ((i / 64) & last, i as u32 % 64)
}

/// Hash of a tag.
#[inline]
fn hash(tag: &Tag) -> u64 {
    let [a, b, c] = *tag;
    let mut h = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    h ^= c.wrapping_mul(0x1656_67b1_9e37_79f9);
    h = (h ^ h >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    h ^ h >> 29
}

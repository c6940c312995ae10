//! An open-addressing index from a hash to a `u32` handle. Keys live with the caller, who compares them.
//!
//! Sized once for the table's capacity, so that no insert ever pays for a rehash. Linear probing with backward-shift
//! deletion: no tombstones, no decay under churn.

/// Handle that means "no entry".
const EMPTY: u32 = u32::MAX;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    cells: Vec<u32>,
    mask: usize,
}

impl Index {
    /// Room for `capacity` handles at no more than half load.
    pub(crate) fn new(capacity: usize) -> Self {
        let n = (capacity.max(4) * 2).next_power_of_two();
        Self {
            cells: vec![EMPTY; n],
            mask: n - 1,
        }
    }

    /// The handle with this hash that `same` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut i = hash as usize & self.mask;
        loop {
            let h = *self.cells.get(i)?;
            if h == EMPTY {
                return None;
            }
            if same(h) {
                return Some(h);
            }
            i = (i + 1) & self.mask;
        }
    }

    /// Adds a handle whose key is not there. The caller holds the capacity.
    pub(crate) fn add(&mut self, hash: u64, handle: u32) {
        let mut i = hash as usize & self.mask;
        loop {
            match self.cells.get_mut(i) {
                Some(c) if *c == EMPTY => {
                    *c = handle;
                    return;
                }
                Some(_) => i = (i + 1) & self.mask,
                None => return,
            }
        }
    }

    /// Removes a handle; `hash_of` tells the hash of any handle that is in.
    pub(crate) fn del(&mut self, hash: u64, handle: u32, hash_of: impl Fn(u32) -> u64) {
        let mut hole = hash as usize & self.mask;
        while self.cells[hole] != handle {
            if self.cells[hole] == EMPTY {
                return;
            }
            hole = (hole + 1) & self.mask;
        }
        let mut i = hole;
        loop {
            i = (i + 1) & self.mask;
            let h = self.cells[i];
            if h == EMPTY {
                break;
            }
            let home = hash_of(h) as usize & self.mask;
            // h may fill the hole only if its home is not between the hole and itself
            if (i.wrapping_sub(home) & self.mask) >= (i.wrapping_sub(hole) & self.mask) {
                self.cells[hole] = h;
                hole = i;
            }
        }
        self.cells[hole] = EMPTY;
    }

    /// Bytes.
    pub(crate) fn memory(&self) -> usize {
        self.cells.len() * size_of::<u32>()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.cells.fill(EMPTY);
    }
}

/// A 64-bit finaliser: every input bit changes every output bit with probability one half.
#[inline]
pub(crate) fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 29;
    x = x.wrapping_mul(0xa076_1d64_78bd_642f);
    x ^ (x >> 32)
}

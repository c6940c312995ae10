//! Which hosts are surely not in the table: counters by hash, small enough for the cache.
//!
//! Most packets that are routed go to no neighbour of ours. Without this each of them would wait for a line of every
//! bank, to learn that its address is in none.

/// Most that a counter counts; one that has been there stays, as nobody knows any more how many are behind it.
const MANY: u8 = u8::MAX;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    counts: Box<[u8]>,
}

impl Presence {
    /// For a table of so many slots: a counter for four of them.
    pub(super) fn new(slots: u32) -> Self {
        let n = (slots as usize / 4).next_power_of_two().max(64);
        Self {
            counts: vec![0; n].into_boxed_slice(),
        }
    }

    #[inline]
    fn at(&self, hash: u64) -> usize {
        (hash >> 36) as usize & (self.counts.len() - 1)
    }

    /// False: no key with this hash is there.
    #[inline]
    pub(super) fn may(&self, hash: u64) -> bool {
        self.counts.get(self.at(hash)).is_none_or(|c| *c != 0)
    }

    pub(super) fn add(&mut self, hash: u64) {
        let at = self.at(hash);
        if let Some(c) = self.counts.get_mut(at) {
            *c = c.saturating_add(1);
        }
    }

    pub(super) fn del(&mut self, hash: u64) {
        let at = self.at(hash);
        if let Some(c) = self.counts.get_mut(at).filter(|c| **c != MANY) {
            *c = c.saturating_sub(1);
        }
    }

    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_never_denied() {
        let mut p = Presence::new(0);
        let hash = |n: u64| n << 36;
        assert!(!p.may(hash(5)));
        // 64 counters: 5 and 69 share one
        p.add(hash(5));
        p.add(hash(69));
        p.del(hash(5));
        assert!(p.may(hash(69)));
        p.del(hash(69));
        assert!(!p.may(hash(69)));
        for _ in 0..300 {
            p.add(hash(7));
        }
        for _ in 0..299 {
            p.del(hash(7));
        }
        assert!(p.may(hash(7)));
        p.clear();
        assert!(!p.may(hash(7)));
    }
}

//! A slab in chunks: 32-bit ids, no moving when it grows, no doubling of a large vector.

/// No id.
pub const NONE: u32 = u32::MAX;

const CHUNK_BITS: u32 = 12;
const CHUNK: usize = 1 << CHUNK_BITS;

/// Values by 32-bit id. An id is valid from [`Slab::insert`] to [`Slab::remove`]; the owner keeps track.
#[derive(Debug, Clone)]
pub struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
    next: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            chunks: Vec::new(),
            free: Vec::new(),
            next: 0,
        }
    }
}

impl<T: Default> Slab<T> {
    /// Adds a value, returns its id.
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self[id] = value;
            return id;
        }
        let id = self.next;
        self.next += 1;
        if id as usize & (CHUNK - 1) == 0 {
            // Small slabs start small; from the second chunk on whole chunks are taken.
            self.chunks.push(if id == 0 {
                Vec::new()
            } else {
                Vec::with_capacity(CHUNK)
            });
        }
        self.chunks[(id >> CHUNK_BITS) as usize].push(value);
        id
    }

    /// Gives the id back; the slot holds the default until reused.
    pub fn remove(&mut self, id: u32) -> T {
        self.free.push(id);
        std::mem::take(&mut self[id])
    }
}

impl<T> Slab<T> {
    /// Ids in use.
    pub fn len(&self) -> usize {
        self.next as usize - self.free.len()
    }

    /// Nothing in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One more than the largest id ever given out.
    pub fn bound(&self) -> u32 {
        self.next
    }

    /// The slot, if the id was ever given out; a free slot reads as the default.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.chunks
            .get((id >> CHUNK_BITS) as usize)?
            .get(id as usize & (CHUNK - 1))
    }

    /// Bytes allocated.
    #[cfg(feature = "testing")]
    pub fn bytes(&self) -> usize {
        self.chunks
            .iter()
            .map(|c| c.capacity() * size_of::<T>())
            .sum::<usize>()
            + self.chunks.capacity() * size_of::<Vec<T>>()
            + self.free.capacity() * 4
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, id: u32) -> &T {
        &self.chunks[(id >> CHUNK_BITS) as usize][id as usize & (CHUNK - 1)]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.chunks[(id >> CHUNK_BITS) as usize][id as usize & (CHUNK - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_reused_and_bounded() {
        let mut s = Slab::default();
        let ids: Vec<u32> = (0..10_000u32).map(|i| s.insert(i)).collect();
        assert_eq!(s.len(), 10_000);
        assert!(ids.iter().all(|&i| s[i] == i));
        for &i in ids.iter().step_by(2) {
            assert_eq!(s.remove(i), i);
        }
        assert_eq!(s.len(), 5_000);
        for i in 0..5_000 {
            s.insert(i);
        }
        assert_eq!(s.bound(), 10_000);
        assert!(s.bytes() < 10_000 * 4 + 50_000);
    }
}

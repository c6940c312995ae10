//! Objects in dense slots, which the packet path indexes: next hops, groups, lists, counters.

use std::collections::HashMap;
use std::hash::Hash;

/// Objects in dense slots, named by the driver's own keys.
#[derive(Debug, Clone)]
pub struct Slots<T, K = u32> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
    by_key: HashMap<K, u32>,
}

impl<T, K> Default for Slots<T, K> {
    fn default() -> Self {
        Slots {
            entries: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
        }
    }
}

impl<T, K: Eq + Hash> Slots<T, K> {
    /// The object in a slot.
    #[inline]
    pub fn at(&self, slot: u32) -> Option<&T> {
        self.entries.get(slot as usize)?.as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub fn at_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.entries.get_mut(slot as usize)?.as_mut()
    }

    /// The slot of a key: the same until it is removed.
    pub fn slot(&self, key: K) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// The object of a key.
    pub fn get(&self, key: K) -> Option<&T> {
        self.at(self.slot(key)?)
    }

    /// Puts a new object into a free slot, or replaces the one with this key.
    pub fn put(&mut self, key: K, value: T) -> u32 {
        let slot = match self.by_key.get(&key) {
            Some(slot) => *slot,
            None => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.entries.push(None);
                    self.entries.len() as u32 - 1
                });
                self.by_key.insert(key, slot);
                slot
            }
        };
        if let Some(e) = self.entries.get_mut(slot as usize) {
            *e = Some(value);
        }
        slot
    }

    /// Removes an object.
    pub fn remove(&mut self, key: K) -> Option<T> {
        let slot = self.by_key.remove(&key)?;
        self.free.push(slot);
        self.entries.get_mut(slot as usize)?.take()
    }

    /// All objects by slot, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.from(0)
    }

    /// The same from one slot on.
    pub fn from(&self, slot: u32) -> impl Iterator<Item = (u32, &T)> {
        let all = self.entries.iter().enumerate().skip(slot as usize);
        all.filter_map(|(slot, e)| e.as_ref().map(|e| (slot as u32, e)))
    }

    /// Slots, used or free: all are below.
    pub fn slots(&self) -> u32 {
        self.entries.len() as u32
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn equals_the_oracle(steps in prop::collection::vec((0u32..12, prop::option::of(0u8..)), 0..200)) {
            let (mut slots, mut naive) = (Slots::<u8>::default(), BTreeMap::new());
            let mut places: BTreeMap<u32, u32> = BTreeMap::new();
            for (key, value) in steps {
                match value {
                    Some(v) => {
                        let slot = slots.put(key, v);
                        naive.insert(key, v);
                        // it keeps its slot, and nobody else has it
                        prop_assert_eq!(*places.entry(key).or_insert(slot), slot);
                    }
                    None => {
                        prop_assert_eq!(slots.remove(key), naive.remove(&key));
                        places.remove(&key);
                    }
                }
                prop_assert_eq!(slots.len(), naive.len());
                let mut by_slot: Vec<(u32, u8)> = places.iter().map(|(k, s)| (*s, naive[k])).collect();
                by_slot.sort_unstable();
                prop_assert!(by_slot.iter().all(|(s, _)| *s < slots.slots()));
                let all: Vec<(u32, u8)> = slots.iter().map(|(s, v)| (s, *v)).collect();
                prop_assert_eq!(&all, &by_slot);
                let rest: Vec<(u32, u8)> = slots.from(3).map(|(s, v)| (s, *v)).collect();
                by_slot.retain(|(s, _)| *s >= 3);
                prop_assert_eq!(rest, by_slot);
            }
        }
    }
}

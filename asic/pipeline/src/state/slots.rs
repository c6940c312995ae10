//! Objects that the driver names by 32-bit ids, kept in dense slots that the packet path indexes.

use std::collections::HashMap;

/// Objects in dense slots, named by the driver's own ids.
#[derive(Debug, Clone)]
pub(crate) struct Slots<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
    by_id: HashMap<u32, u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots {
            entries: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::new(),
        }
    }
}

impl<T> Slots<T> {
    #[inline]
    pub(crate) fn at(&self, slot: u32) -> Option<&T> {
        self.entries.get(slot as usize)?.as_ref()
    }
    #[inline]
    pub(crate) fn at_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.entries.get_mut(slot as usize)?.as_mut()
    }
    pub(super) fn slot(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }
    pub(super) fn get(&self, id: u32) -> Option<&T> {
        self.at(self.slot(id)?)
    }
    /// Puts a new object into a free slot, or replaces the one with this id.
    pub(super) fn put(&mut self, id: u32, value: T) -> u32 {
        let slot = match self.slot(id) {
            Some(slot) => slot,
            None => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.entries.push(None);
                    self.entries.len() as u32 - 1
                });
                self.by_id.insert(id, slot);
                slot
            }
        };
        if let Some(e) = self.entries.get_mut(slot as usize) {
            *e = Some(value);
        }
        slot
    }
    pub(super) fn remove(&mut self, id: u32) -> Option<T> {
        let slot = self.by_id.remove(&id)?;
        self.free.push(slot);
        self.entries.get_mut(slot as usize)?.take()
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(slot, e)| e.as_ref().map(|e| (slot as u32, e)))
    }
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }
}

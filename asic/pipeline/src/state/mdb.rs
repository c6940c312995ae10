//! Multicast groups: which ports of a forwarding domain get a group's frames.
//!
//! ```text
//!  (fid, family, group, source) ─┐
//!  (fid, family, group, any)    ─┴─► slot ─► action, ports as bits, a copy to the CPU
//! ```

use std::collections::HashMap;

use crate::entry::Action;

/// No slot: nobody is a member.
pub(crate) const NONE: u32 = u32::MAX;

/// Key of `struct tnd_mdb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MdbKey {
    /// Forwarding domain.
    pub fid: u16,
    /// `TND_AF_*`, 0: frames that are not IP, by MAC address.
    pub family: u8,
    /// IPv4 in the first four bytes, MAC in the first six; the rest zero.
    pub addr: [u8; 16],
    /// The same of the sender; zero: any.
    pub source: [u8; 16],
}

/// `struct tnd_mdb` without its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MdbConfig {
    /// Forward or trap.
    pub action: Action,
    /// A copy to the CPU.
    pub cpu: bool,
    /// Who gets it, ascending.
    pub ports: Vec<u16>,
}

/// A group in its slot.
#[derive(Debug, Clone)]
pub struct MdbEntry {
    /// The driver's key.
    pub key: MdbKey,
    /// As configured.
    pub config: MdbConfig,
    /// [`MdbConfig::ports`], port *n* is bit *n*.
    bits: Box<[u64]>,
}

impl MdbEntry {
    fn new(key: MdbKey, config: MdbConfig) -> MdbEntry {
        let words = config
            .ports
            .iter()
            .max()
            .map_or(0, |p| usize::from(*p) / 64 + 1);
        let mut bits = vec![0u64; words].into_boxed_slice();
        for port in &config.ports {
            if let Some(w) = bits.get_mut(usize::from(*port) / 64) {
                *w |= 1 << (port % 64);
            }
        }
        MdbEntry { key, config, bits }
    }

    #[inline]
    fn has(&self, port: u16) -> bool {
        self.bits
            .get(usize::from(port) / 64)
            .is_some_and(|w| w >> (port % 64) & 1 != 0)
    }
}

/// The table.
#[derive(Debug, Clone, Default)]
pub struct Mdb {
    index: HashMap<MdbKey, u32>,
    slots: Vec<Option<MdbEntry>>,
    free: Vec<u32>,
    /// Groups by domain.
    of_fid: HashMap<u16, u32>,
    /// Entries of one source.
    sources: u32,
}

impl Mdb {
    /// The slot of a key.
    pub fn slot(&self, key: &MdbKey) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// What is in a slot.
    pub fn at(&self, slot: u32) -> Option<&MdbEntry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// The entry that answers for a frame: its source's own, else that of all sources.
    #[inline]
    pub(crate) fn lookup(&self, mut key: MdbKey) -> Option<(u32, &MdbEntry)> {
        if self.sources > 0
            && let Some(slot) = self.slot(&key)
        {
            return Some((slot, self.at(slot)?));
        }
        key.source = [0; 16];
        let slot = self.slot(&key)?;
        Some((slot, self.at(slot)?))
    }

    /// Is the port a member of the group in this slot?
    #[inline]
    pub(crate) fn has(&self, slot: u32, port: u16) -> bool {
        self.at(slot).is_some_and(|e| e.has(port))
    }

    /// Creates or changes a group; its slot.
    pub fn set(&mut self, key: MdbKey, config: MdbConfig) -> u32 {
        let entry = Some(MdbEntry::new(key, config));
        if let Some(slot) = self.slot(&key) {
            if let Some(e) = self.slots.get_mut(slot as usize) {
                *e = entry;
            }
            return slot;
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(e) = self.slots.get_mut(slot as usize) {
                    *e = entry;
                }
                slot
            }
            None => {
                self.slots.push(entry);
                self.slots.len() as u32 - 1
            }
        };
        self.index.insert(key, slot);
        *self.of_fid.entry(key.fid).or_default() += 1;
        self.sources += u32::from(key.source != [0; 16]);
        slot
    }

    /// Removes a group; the slot that it had.
    pub fn remove(&mut self, key: &MdbKey) -> Option<u32> {
        let slot = self.index.remove(key)?;
        if let Some(e) = self.slots.get_mut(slot as usize) {
            *e = None;
        }
        self.free.push(slot);
        if let Some(n) = self.of_fid.get_mut(&key.fid) {
            *n -= 1;
            if *n == 0 {
                self.of_fid.remove(&key.fid);
            }
        }
        self.sources -= u32::from(key.source != [0; 16]);
        Some(slot)
    }

    /// Some group is in this domain.
    pub fn in_domain(&self, fid: u16) -> bool {
        self.of_fid.contains_key(&fid)
    }

    /// All groups with their slots, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &MdbEntry)> {
        let all = self.slots.iter().enumerate();
        all.filter_map(|(i, e)| e.as_ref().map(|e| (i as u32, e)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
}

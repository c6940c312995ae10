//! Multicast groups: which ports of a forwarding domain get a group's frames.
//!
//! ```text
//!  (fid, family, group, source) ─┐
//!  (fid, family, group, any)    ─┴─► slot ─► action, ports as bits, a copy to the CPU
//! ```

use std::collections::HashMap;

use crate::slots::Slots;

/// No slot: nobody is a member.
pub const NONE: u32 = u32::MAX;

/// What names a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Forwarding domain.
    pub fid: u16,
    /// Address family as the driver numbers them, 0: frames that are not IP, by MAC address.
    pub family: u8,
    /// IPv4 in the first four bytes, MAC in the first six; the rest zero.
    pub addr: [u8; 16],
    /// The same of the sender; zero: any.
    pub source: [u8; 16],
}

/// A group without its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config<A> {
    /// What becomes of its frames.
    pub action: A,
    /// A copy to the CPU.
    pub cpu: bool,
    /// Who gets it, ascending.
    pub ports: Vec<u16>,
}

/// A group in its slot.
#[derive(Debug, Clone)]
pub struct Entry<A> {
    /// The driver's key.
    pub key: Key,
    /// As configured.
    pub config: Config<A>,
    /// [`Config::ports`], port *n* is bit *n*.
    bits: Box<[u64]>,
}

impl<A> Entry<A> {
    fn new(key: Key, config: Config<A>) -> Self {
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
        Entry { key, config, bits }
    }

    #[inline]
    fn has(&self, port: u16) -> bool {
        self.bits
            .get(usize::from(port) / 64)
            .is_some_and(|w| w >> (port % 64) & 1 != 0)
    }
}

/// The table.
#[derive(Debug, Clone)]
pub struct Mdb<A> {
    slots: Slots<Entry<A>, Key>,
    /// Groups by domain.
    of_fid: HashMap<u16, u32>,
    /// Entries of one source.
    sources: u32,
}

impl<A> Default for Mdb<A> {
    fn default() -> Self {
        Mdb {
            slots: Slots::default(),
            of_fid: HashMap::new(),
            sources: 0,
        }
    }
}

impl<A> Mdb<A> {
    /// The slot of a key.
    pub fn slot(&self, key: &Key) -> Option<u32> {
        self.slots.slot(*key)
    }

    /// What is in a slot.
    pub fn at(&self, slot: u32) -> Option<&Entry<A>> {
        self.slots.at(slot)
    }

    /// The entry that answers for a frame: its source's own, else that of all sources.
    #[inline]
    pub fn lookup(&self, mut key: Key) -> Option<(u32, &Entry<A>)> {
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
    pub fn has(&self, slot: u32, port: u16) -> bool {
        self.at(slot).is_some_and(|e| e.has(port))
    }

    /// Creates or changes a group; its slot.
    pub fn set(&mut self, key: Key, config: Config<A>) -> u32 {
        if self.slot(&key).is_none() {
            *self.of_fid.entry(key.fid).or_default() += 1;
            self.sources += u32::from(key.source != [0; 16]);
        }
        self.slots.put(key, Entry::new(key, config))
    }

    /// Removes a group; the slot that it had.
    pub fn remove(&mut self, key: &Key) -> Option<u32> {
        let slot = self.slot(key)?;
        self.slots.remove(*key);
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

    /// Slots, used or free: all are below.
    pub fn slots(&self) -> u32 {
        self.slots.slots()
    }

    /// All groups with their slots, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Entry<A>)> {
        self.slots.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

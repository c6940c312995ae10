//! Single-producer / single-consumer rings in shared memory.
//!
//! ```text
//!            prod line (64 B)              cons line (64 B)
//!            index ─ producer writes       index, flags ─ consumer writes
//!                    │                             │
//!   entries: ┌───┬───▼───┬───────┬───────┬───┬─────▼─┬───┐     free-running 32-bit indices
//!            │   │ free  │ free  │ free  │   │ filled│   │     empty: prod == cons
//!            └───┴───────┴───────┴───────┴───┴───────┴───┘     full:  prod − cons == count
//! ```
//!
//! Each side keeps its own index in private memory and only ever *publishes* it, so the other side
//! can't move it. The index of the other side is checked at every look: a producer may be ahead by
//! at most the ring's size, a consumer by at most what was published, and neither goes back. What
//! breaks this is [`Corrupt`]: the session is over, there is nothing to resynchronise on.
//!
//! Barriers: entry before index (store-release), index before entry (load-acquire), and one full
//! barrier on each side of the doorbell decision, as virtio does it.

use crate::memory::Memory;
use crate::raw;

/// Where `tnd_ring_cons.flags` lies in the consumer's line.
const FLAGS: usize = std::mem::offset_of!(raw::tnd_ring_cons, flags);

/// One ring of the directory, checked against the region by [`crate::layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLayout {
    /// `TND_RING_*`.
    pub kind: u16,
    /// Command pair; 0 for the other kinds.
    pub pair: u16,
    /// Bytes between entries, a multiple of 64.
    pub entry_size: usize,
    /// Entries, a power of two.
    pub entry_count: u32,
    /// Doorbell that the producer rings.
    pub doorbell: u32,
    /// Offset of `struct tnd_ring_prod`.
    pub prod: usize,
    /// Offset of `struct tnd_ring_cons`.
    pub cons: usize,
    /// Offset of the first entry.
    pub entries: usize,
}

impl RingLayout {
    /// Where the entry of a free-running index lies. `entry_count` is a power of two, so the
    /// position is continuous when the index wraps at 2³².
    fn entry(&self, index: u32) -> usize {
        let slot = index & (self.entry_count - 1);
        self.entries + slot as usize * self.entry_size
    }

    /// Name for messages: `command ring 1`.
    pub fn name(&self) -> String {
        match self.kind {
            raw::TND_RING_CMD => format!("command ring {}", self.pair),
            raw::TND_RING_CPL => format!("completion ring {}", self.pair),
            raw::TND_RING_EVENT => "event ring".into(),
            raw::TND_RING_RX => "rx ring".into(),
            raw::TND_RING_TX => "tx ring".into(),
            other => format!("ring of kind {other}"),
        }
    }
}

/// The other side's index is impossible: the ring is dead (`TND_FAIL_RING_INDEX`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{side} index {theirs} of a ring (kind {kind}, pair {pair}, {count} entries) is impossible, own index is {own}"
)]
pub struct Corrupt {
    /// "producer" or "consumer": whose index it is.
    pub side: &'static str,
    /// `TND_RING_*`.
    pub kind: u16,
    /// Command pair.
    pub pair: u16,
    /// Entries of the ring.
    pub count: u32,
    /// What was read.
    pub theirs: u32,
    /// The reader's own index.
    pub own: u32,
}

/// Why an entry was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// No free entry; try again when the consumer moved on.
    #[error("ring full")]
    Full,
    /// The parts are longer than an entry.
    #[error("{len} bytes don't fit a ring entry of {entry_size}")]
    TooLong {
        /// Bytes given.
        len: usize,
        /// Bytes of an entry.
        entry_size: usize,
    },
    /// The ring is dead.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// The side that fills a ring. Posting neither sleeps nor allocates.
#[derive(Debug)]
pub struct Producer<M> {
    mem: M,
    ring: RingLayout,
    /// Next entry to fill; `published` follows it.
    head: u32,
    published: u32,
    /// Last checked consumer index: the shared word is only read when the ring looks full.
    cons: u32,
    /// The consumer says when it sleeps; else every publication rings.
    hint: bool,
}

impl<M: Memory> Producer<M> {
    /// For tests of what a hostile other side does.
    #[doc(hidden)]
    pub fn memory(&self) -> &M {
        &self.mem
    }

    /// For a ring that an attach has just emptied: both indices start at zero.
    pub fn new(mem: M, ring: RingLayout) -> Self {
        Self::starting_at(mem, ring, 0)
    }

    /// For tests of the wrap at 2³²: both shared indices are `index` already.
    #[doc(hidden)]
    pub fn starting_at(mem: M, ring: RingLayout, index: u32) -> Self {
        Producer {
            mem,
            ring,
            head: index,
            published: index,
            cons: index,
            hint: true,
        }
    }

    /// Without `TND_FEAT_DOORBELL_HINT` the consumer may never set `TND_RING_NEED_KICK`: then every
    /// publication asks for the doorbell.
    pub fn set_hint(&mut self, hint: bool) {
        self.hint = hint;
    }

    /// The ring's place and size.
    pub fn ring(&self) -> &RingLayout {
        &self.ring
    }

    fn refresh(&mut self) -> Result<(), Corrupt> {
        let theirs = self.mem.load_acquire(self.ring.cons);
        // it may have moved from `cons` up to `published`, not further and not back
        if theirs.wrapping_sub(self.cons) > self.published.wrapping_sub(self.cons) {
            return Err(Corrupt {
                side: "consumer",
                kind: self.ring.kind,
                pair: self.ring.pair,
                count: self.ring.entry_count,
                theirs,
                own: self.published,
            });
        }
        self.cons = theirs;
        Ok(())
    }

    fn free_cached(&self) -> u32 {
        self.ring.entry_count - self.head.wrapping_sub(self.cons)
    }

    /// Entries that can be posted now.
    pub fn free_slots(&mut self) -> Result<u32, Corrupt> {
        self.refresh()?;
        Ok(self.free_cached())
    }

    /// Entries that the consumer has not taken yet, posted but unpublished ones included.
    pub fn occupancy(&mut self) -> Result<u32, Corrupt> {
        Ok(self.ring.entry_count - self.free_slots()?)
    }

    /// Fills one entry with the parts, one after the other; the rest of the entry keeps old bytes
    /// (lengths travel in descriptors). Invisible to the consumer until [`publish`](Self::publish).
    pub fn push(&mut self, parts: &[&[u8]]) -> Result<(), PushError> {
        let len = parts.iter().map(|p| p.len()).sum();
        if len > self.ring.entry_size {
            return Err(PushError::TooLong {
                len,
                entry_size: self.ring.entry_size,
            });
        }
        if self.free_cached() == 0 {
            self.refresh()?;
            if self.free_cached() == 0 {
                return Err(PushError::Full);
            }
        }
        let mut at = self.ring.entry(self.head);
        for part in parts {
            self.mem.write(at, part);
            at += part.len();
        }
        self.head = self.head.wrapping_add(1);
        Ok(())
    }

    /// Makes everything pushed so far visible. True: the consumer sleeps or is about to, ring the
    /// doorbell.
    #[must_use = "a true answer asks for the doorbell"]
    pub fn publish(&mut self) -> bool {
        if self.head == self.published {
            return false;
        }
        self.mem.store_release(self.ring.prod, self.head);
        self.published = self.head;
        // index first, then the flag: pairs with the barrier in Consumer::arm
        self.mem.fence();
        !self.hint || self.mem.load_acquire(self.ring.cons + FLAGS) & raw::TND_RING_NEED_KICK != 0
    }

    /// For a device that is told to misbehave: until the next publication the consumer sees an index that can't be.
    pub fn scribble(&mut self) {
        let impossible = self.published.wrapping_add(2 * self.ring.entry_count);
        self.mem.store_release(self.ring.prod, impossible);
    }
}

/// The side that empties a ring.
#[derive(Debug)]
pub struct Consumer<M> {
    mem: M,
    ring: RingLayout,
    tail: u32,
    /// Last checked producer index.
    prod: u32,
    armed: bool,
}

impl<M: Memory> Consumer<M> {
    /// For a ring that an attach has just emptied: both indices start at zero.
    pub fn new(mem: M, ring: RingLayout) -> Self {
        Self::starting_at(mem, ring, 0)
    }

    /// For tests of the wrap at 2³²: both shared indices are `index` already.
    #[doc(hidden)]
    pub fn starting_at(mem: M, ring: RingLayout, index: u32) -> Self {
        Consumer {
            mem,
            ring,
            tail: index,
            prod: index,
            armed: false,
        }
    }

    /// The ring's place and size.
    pub fn ring(&self) -> &RingLayout {
        &self.ring
    }

    fn refresh(&mut self) -> Result<(), Corrupt> {
        let theirs = self.mem.load_acquire(self.ring.prod);
        let filled = theirs.wrapping_sub(self.tail);
        // not more than the ring holds, and never behind what was already seen
        if filled > self.ring.entry_count || filled < self.prod.wrapping_sub(self.tail) {
            return Err(Corrupt {
                side: "producer",
                kind: self.ring.kind,
                pair: self.ring.pair,
                count: self.ring.entry_count,
                theirs,
                own: self.tail,
            });
        }
        self.prod = theirs;
        Ok(())
    }

    /// Entries that wait, checked.
    pub fn pending(&mut self) -> Result<u32, Corrupt> {
        self.refresh()?;
        Ok(self.prod.wrapping_sub(self.tail))
    }

    /// The offset of the next entry, if there is one.
    fn next(&mut self) -> Result<Option<usize>, Corrupt> {
        if self.prod == self.tail {
            self.refresh()?;
            if self.prod == self.tail {
                return Ok(None);
            }
        }
        Ok(Some(self.ring.entry(self.tail)))
    }

    fn advance(&mut self) {
        self.tail = self.tail.wrapping_add(1);
        self.mem.store_release(self.ring.cons, self.tail);
    }

    /// Copies the next entry (as much of it as `out` holds) and gives it back to the producer.
    /// The answer is the number of bytes copied; `None`: the ring is empty.
    pub fn pop(&mut self, out: &mut [u8]) -> Result<Option<usize>, Corrupt> {
        let Some(at) = self.next()? else {
            return Ok(None);
        };
        let n = out.len().min(self.ring.entry_size);
        if let Some(out) = out.get_mut(..n) {
            self.mem.read(at, out);
        }
        self.advance();
        Ok(Some(n))
    }

    /// Copies the next entry as one struct.
    pub fn pop_struct<T>(&mut self) -> Result<Option<T>, Corrupt>
    where
        T: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable,
    {
        let mut value = T::new_zeroed();
        Ok(self.pop(value.as_mut_bytes())?.map(|_| value))
    }

    /// Copies a head of fixed size, asks `len` how many bytes follow it, and copies those: a packet
    /// ring's entry is not copied in full. A length beyond the entry is cut to it; `body` is
    /// cleared first and holds what was copied. `None`: the ring is empty.
    pub fn pop_packet<T>(
        &mut self,
        body: &mut Vec<u8>,
        len: impl FnOnce(&T) -> usize,
    ) -> Result<Option<T>, Corrupt>
    where
        T: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable,
    {
        body.clear();
        let Some(at) = self.next()? else {
            return Ok(None);
        };
        let mut head = T::new_zeroed();
        let head_size = std::mem::size_of::<T>();
        if head_size <= self.ring.entry_size {
            self.mem.read(at, head.as_mut_bytes());
            body.resize(len(&head).min(self.ring.entry_size - head_size), 0);
            self.mem.read(at + head_size, body);
        }
        self.advance();
        Ok(Some(head))
    }

    /// Before sleeping: asks the producer for the doorbell and looks once more. True: the ring is
    /// empty, sleep. False: entries wait, don't.
    pub fn arm(&mut self) -> Result<bool, Corrupt> {
        if !self.armed {
            self.mem
                .store_release(self.ring.cons + FLAGS, raw::TND_RING_NEED_KICK);
            self.armed = true;
        }
        // flag first, then the index: pairs with the barrier in Producer::publish
        self.mem.fence();
        Ok(self.pending()? == 0)
    }

    /// After waking: doorbells are not needed while the consumer polls.
    pub fn disarm(&mut self) {
        if self.armed {
            self.mem.store_release(self.ring.cons + FLAGS, 0);
            self.armed = false;
        }
    }
}

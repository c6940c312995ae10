//! One shared region, as the rings and the handshake see it.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A region that another, untrusted party reads and writes at the same time.
///
/// Offsets count bytes from the region's start. An access that does not lie within the region, or
/// an index word that is not 4-aligned, has no effect: loads and reads give zeroes, stores and
/// writes are dropped. Layouts are checked against [`len`](Memory::len) once, so this happens to
/// no correct caller; it is what keeps a wrong one from touching anything else.
///
/// Implementations: the carrier's mapping, words of `loom` and of plain atomics in tests.
pub trait Memory {
    /// Bytes of the region; constant while it lives.
    fn len(&self) -> usize;
    /// True for a region without any bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A 32-bit word with acquire order: what the other side wrote before it released is seen after.
    fn load_acquire(&self, off: usize) -> u32;
    /// A 32-bit word with release order.
    fn store_release(&self, off: usize, v: u32);
    /// A full barrier: orders an earlier store with a later load (`smp_mb` of the kernel).
    fn fence(&self);
    /// Copies out, once. The other side may be writing: what was copied must be checked after.
    fn read(&self, off: usize, out: &mut [u8]);
    /// Copies in.
    fn write(&self, off: usize, data: &[u8]);
}

impl<M: Memory + ?Sized> Memory for &M {
    fn len(&self) -> usize {
        (**self).len()
    }
    fn load_acquire(&self, off: usize) -> u32 {
        (**self).load_acquire(off)
    }
    fn store_release(&self, off: usize, v: u32) {
        (**self).store_release(off, v);
    }
    fn fence(&self) {
        (**self).fence();
    }
    fn read(&self, off: usize, out: &mut [u8]) {
        (**self).read(off, out);
    }
    fn write(&self, off: usize, data: &[u8]) {
        (**self).write(off, data);
    }
}

impl<M: Memory + ?Sized> Memory for std::sync::Arc<M> {
    fn len(&self) -> usize {
        (**self).len()
    }
    fn load_acquire(&self, off: usize) -> u32 {
        (**self).load_acquire(off)
    }
    fn store_release(&self, off: usize, v: u32) {
        (**self).store_release(off, v);
    }
    fn fence(&self) {
        (**self).fence();
    }
    fn read(&self, off: usize, out: &mut [u8]) {
        (**self).read(off, out);
    }
    fn write(&self, off: usize, data: &[u8]) {
        (**self).write(off, data);
    }
}

/// Copies one ABI struct out of the region.
pub fn read_struct<T: FromBytes + IntoBytes + Immutable>(mem: &impl Memory, off: usize) -> T {
    let mut value = T::new_zeroed();
    mem.read(off, value.as_mut_bytes());
    value
}

/// Copies one ABI struct into the region.
pub fn write_struct<T: IntoBytes + Immutable>(mem: &impl Memory, off: usize, value: &T) {
    mem.write(off, value.as_bytes());
}

/// The driver's memory for long bodies and for results: a window of the region.
///
/// Offsets are those of `tnd_cmd.body_offset` and `out_offset`: from the start of the arena.
#[derive(Clone, Debug)]
pub struct Arena<M> {
    mem: M,
    offset: usize,
    size: usize,
}

/// An access outside of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes at {offset} lie outside the arena of {size} bytes")]
pub struct OutOfArena {
    /// Offset from the start of the arena.
    pub offset: u32,
    /// Bytes wanted.
    pub len: usize,
    /// Bytes of the arena.
    pub size: usize,
}

impl<M: Memory> Arena<M> {
    /// The window `[offset, offset + size)`; cut to the region if it is larger.
    pub fn new(mem: M, offset: usize, size: usize) -> Self {
        let size = size.min(mem.len().saturating_sub(offset));
        Arena { mem, offset, size }
    }

    /// Bytes of the arena.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Where `len` bytes at `offset` lie in the region.
    fn at(&self, offset: u32, len: usize) -> Result<usize, OutOfArena> {
        let err = OutOfArena {
            offset,
            len,
            size: self.size,
        };
        let start = usize::try_from(offset).map_err(|_| err)?;
        let end = start.checked_add(len).ok_or(err)?;
        if end > self.size {
            return Err(err);
        }
        Ok(self.offset + start)
    }

    /// Checks a range without touching it.
    pub fn check(&self, offset: u32, len: usize) -> Result<(), OutOfArena> {
        self.at(offset, len).map(|_| ())
    }

    /// Copies out, once; `out` is untouched on error.
    pub fn read(&self, offset: u32, out: &mut [u8]) -> Result<(), OutOfArena> {
        self.mem.read(self.at(offset, out.len())?, out);
        Ok(())
    }

    /// Copies in.
    pub fn write(&self, offset: u32, data: &[u8]) -> Result<(), OutOfArena> {
        self.mem.write(self.at(offset, data.len())?, data);
        Ok(())
    }
}

/// A region of this process: for tests, and for driver and device in one process. Clones share it.
///
/// Words are atomic; bytes beside each other in one word must not be written by two threads at once
/// (the rings never do: sides write different lines).
#[derive(Clone, Debug)]
pub struct HeapMemory {
    words: std::sync::Arc<[AtomicU32]>,
}

impl HeapMemory {
    /// A zeroed region; `len` is rounded up to a multiple of 4.
    pub fn new(len: usize) -> Self {
        HeapMemory {
            words: (0..len.div_ceil(4)).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn word(&self, off: usize) -> Option<&AtomicU32> {
        if off.is_multiple_of(4) {
            self.words.get(off / 4)
        } else {
            None
        }
    }

    fn in_range(&self, off: usize, len: usize) -> bool {
        off.checked_add(len).is_some_and(|end| end <= self.len())
    }
}

impl Memory for HeapMemory {
    fn len(&self) -> usize {
        self.words.len() * 4
    }

    fn load_acquire(&self, off: usize) -> u32 {
        self.word(off).map_or(0, |w| w.load(Ordering::Acquire))
    }

    fn store_release(&self, off: usize, v: u32) {
        if let Some(w) = self.word(off) {
            w.store(v, Ordering::Release);
        }
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn read(&self, off: usize, out: &mut [u8]) {
        if !self.in_range(off, out.len()) {
            out.fill(0);
            return;
        }
        for (at, b) in (off..).zip(out) {
            let word = self.word(at & !3).map_or(0, |w| w.load(Ordering::Relaxed));
            *b = (word >> (8 * (at & 3))) as u8;
        }
    }

    fn write(&self, off: usize, data: &[u8]) {
        if !self.in_range(off, data.len()) {
            return;
        }
        for (at, b) in (off..).zip(data) {
            if let Some(w) = self.word(at & !3) {
                let shift = 8 * (at & 3);
                let old = w.load(Ordering::Relaxed);
                w.store(
                    old & !(0xff << shift) | u32::from(*b) << shift,
                    Ordering::Relaxed,
                );
            }
        }
    }
}

//! One shared region, as the rings and the handshake see it.

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

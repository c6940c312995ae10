//! Shared memory: a sealed memfd, mapped, and accesses that another process may race with.
//!
//! The mapping is only ever touched through atomics, so that a peer that writes at the same time
//! can spoil data and nothing else. The memfd is sealed against shrinking: no access faults.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// The seals that both sides insist on.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Why memory can't be shared.
#[derive(Debug, thiserror::Error)]
pub enum ShmError {
    /// A descriptor that could be shrunk or grown under our feet.
    #[error("shared memory is not sealed against {0}: refused")]
    NotSealed(&'static str),
    /// Empty, larger than allowed, or not a multiple of 8.
    #[error("shared memory of {size} bytes: need 8 to {max}, a multiple of 8")]
    Size {
        /// Bytes.
        size: u64,
        /// The caller's limit.
        max: usize,
    },
    /// The system's answer.
    #[error("{what}: {source}")]
    Sys {
        /// The call.
        what: &'static str,
        /// Its error.
        source: std::io::Error,
    },
}

fn sys(what: &'static str) -> impl Fn(rustix::io::Errno) -> ShmError {
    move |e| ShmError::Sys {
        what,
        source: e.into(),
    }
}

/// A mapped, sealed memfd.
///
/// Accesses outside of it, and misaligned words, have no effect: loads and reads give zeroes.
#[derive(Debug)]
pub struct Shared {
    base: NonNull<u8>,
    len: usize,
    fd: OwnedFd,
}

// SAFETY: the mapping is process-wide and lives until drop; every access goes through atomics.
unsafe impl Send for Shared {}
// SAFETY: as above; there are no plain loads or stores and no references into the mapping leave it.
unsafe impl Sync for Shared {}

impl Shared {
    /// Makes a zeroed region of `len` bytes and seals it against shrink, grow and further seals.
    pub fn create(name: &str, len: usize) -> Result<Self, ShmError> {
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(sys("memfd_create"))?;
        rustix::fs::ftruncate(&fd, len as u64).map_err(sys("ftruncate"))?;
        rustix::fs::fcntl_add_seals(&fd, SEALS).map_err(sys("seal memfd"))?;
        Self::map(fd, len)
    }

    /// Maps a descriptor that came from somebody else: it must be a memfd with our seals, of at
    /// most `max` bytes.
    pub fn open(fd: OwnedFd, max: usize) -> Result<Self, ShmError> {
        let seals = rustix::fs::fcntl_get_seals(&fd).map_err(sys("read seals"))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(ShmError::NotSealed("shrink"));
        }
        if !seals.contains(SealFlags::GROW) {
            return Err(ShmError::NotSealed("grow"));
        }
        let size = rustix::fs::fstat(&fd).map_err(sys("fstat"))?.st_size;
        let size = u64::try_from(size).unwrap_or(0);
        match usize::try_from(size) {
            Ok(len) if len <= max => Self::map(fd, len),
            _ => Err(ShmError::Size { size, max }),
        }
    }

    fn map(fd: OwnedFd, len: usize) -> Result<Self, ShmError> {
        if len < 8 || !len.is_multiple_of(8) || isize::try_from(len).is_err() {
            return Err(ShmError::Size {
                size: len as u64,
                max: isize::MAX as usize,
            });
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of ours; the
        // file has `len` bytes and, being sealed, keeps them.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &fd,
                0,
            )
        }
        .map_err(sys("mmap"))?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(ShmError::Size {
            size: len as u64,
            max: 0,
        })?;
        Ok(Shared { base, len, fd })
    }

    /// Bytes of the region.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a region has at least 8 bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn in_range(&self, off: usize, len: usize) -> bool {
        off.checked_add(len).is_some_and(|end| end <= self.len)
    }

    fn word(&self, off: usize) -> Option<&AtomicU32> {
        if !self.in_range(off, 4) || !off.is_multiple_of(4) {
            return None;
        }
        // SAFETY: off..off+4 lies in the mapping (checked above) and is 4-aligned, as the mapping
        // is page aligned; the mapping outlives &self; other accesses, here and in the other
        // process, are atomic or outside of this program's memory model.
        Some(unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(off).cast()) })
    }

    /// A word, acquire; 0 outside of the region.
    #[inline]
    pub fn load_acquire(&self, off: usize) -> u32 {
        self.word(off).map_or(0, |w| w.load(Ordering::Acquire))
    }

    /// A word, release; nothing outside of the region.
    #[inline]
    pub fn store_release(&self, off: usize, v: u32) {
        if let Some(w) = self.word(off) {
            w.store(v, Ordering::Release);
        }
    }

    /// A full barrier.
    #[inline]
    pub fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    /// Copies out, each byte loaded once. Outside of the region: zeroes.
    pub fn read(&self, off: usize, out: &mut [u8]) {
        if !self.in_range(off, out.len()) {
            out.fill(0);
            return;
        }
        let head = out.len().min(off.wrapping_neg() & 7);
        let (first, rest) = out.split_at_mut(head);
        self.read_bytes(off, first);
        let mut at = off + head;
        let mut words = rest.chunks_exact_mut(8);
        for chunk in &mut words {
            // SAFETY: at..at+8 lies in the range checked on entry and `at` is 8-aligned (head made
            // it so, steps of 8 keep it); atomics as in word().
            let v = unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
                .load(Ordering::Relaxed);
            chunk.copy_from_slice(&v.to_ne_bytes());
            at += 8;
        }
        self.read_bytes(at, words.into_remainder());
    }

    /// The few bytes before and after whole words; the range was checked by the caller.
    fn read_bytes(&self, off: usize, out: &mut [u8]) {
        debug_assert!(self.in_range(off, out.len()));
        for (i, b) in out.iter_mut().enumerate() {
            // SAFETY: off + i lies in the mapping: read() checked the range; bytes need no
            // alignment; atomics as in word().
            *b = unsafe { AtomicU8::from_ptr(self.base.as_ptr().add(off + i)) }
                .load(Ordering::Relaxed);
        }
    }

    /// Copies in. Outside of the region: nothing.
    pub fn write(&self, off: usize, data: &[u8]) {
        if !self.in_range(off, data.len()) {
            return;
        }
        let head = data.len().min(off.wrapping_neg() & 7);
        let (first, rest) = data.split_at(head);
        self.write_bytes(off, first);
        let mut at = off + head;
        let (words, tail) = rest.as_chunks::<8>();
        for chunk in words {
            // SAFETY: as in read(): in range, 8-aligned, atomic.
            unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
                .store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
            at += 8;
        }
        self.write_bytes(at, tail);
    }

    /// The few bytes before and after whole words; the range was checked by the caller.
    fn write_bytes(&self, off: usize, data: &[u8]) {
        debug_assert!(self.in_range(off, data.len()));
        for (i, b) in data.iter().enumerate() {
            // SAFETY: as in read_bytes(): write() checked the range.
            unsafe { AtomicU8::from_ptr(self.base.as_ptr().add(off + i)) }
                .store(*b, Ordering::Relaxed);
        }
    }
}

impl AsFd for Shared {
    /// The memfd, to be handed to the other side.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: base and len are those of mmap in map(); nothing borrows from the mapping beyond
        // &self, and self is going away.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sealed_and_seen_by_both_mappings() {
        let a = Shared::create("abi-test", 4096).unwrap();
        let fd = a.as_fd().try_clone_to_owned().unwrap();
        assert!(rustix::fs::ftruncate(&fd, 0).is_err());
        assert!(rustix::fs::ftruncate(&fd, 8192).is_err());
        let b = Shared::open(fd, 4096).unwrap();
        a.write(3, b"hello, other side");
        a.store_release(64, 7);
        assert_eq!(b.load_acquire(64), 7);
        let mut out = [0; 17];
        b.read(3, &mut out);
        assert_eq!(&out, b"hello, other side");
    }

    #[test]
    fn what_could_shrink_or_is_too_large_is_refused() {
        let open = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("abi-test", open).unwrap();
        rustix::fs::ftruncate(&fd, 4096).unwrap();
        let e = Shared::open(fd, 4096).unwrap_err().to_string();
        assert!(e.contains("not sealed against shrink"), "{e}");
        let a = Shared::create("abi-test", 8192).unwrap();
        let fd = a.as_fd().try_clone_to_owned().unwrap();
        let e = Shared::open(fd, 4096).unwrap_err().to_string();
        assert!(e.contains("8192 bytes"), "{e}");
        assert!(Shared::open(std::fs::File::open("/dev/null").unwrap().into(), 4096).is_err());
    }

    proptest! {
        #[test]
        fn any_range_is_copied_exactly_or_has_no_effect(
            off in 0usize..140, data in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let a = Shared::create("abi-test", 128).unwrap();
            a.write(0, &[0xee; 128]);
            a.write(off, &data);
            let mut all = [0; 128];
            a.read(0, &mut all);
            let mut want = [0xee; 128];
            let fits = off + data.len() <= 128;
            if fits {
                want[off..off + data.len()].copy_from_slice(&data);
            }
            prop_assert_eq!(all, want);
            let mut back = vec![1; data.len()];
            a.read(off, &mut back);
            prop_assert_eq!(back, if fits { data } else { vec![0; data.len()] });
            prop_assert_eq!(a.load_acquire(126), 0);
            prop_assert_eq!(a.load_acquire(usize::MAX - 1), 0);
        }
    }
}

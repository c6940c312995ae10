//! AF_XDP sockets (Documentation/networking/af_xdp.rst; linux/if_xdp.h).
//!
//! [`open`] gives two halves on one queue of a netdev, each with a socket. Frames lie in a memory of ours that the
//! kernel knows (umem), in chunks of 2 KiB; four rings say whose a chunk is:
//!
//! ```text
//!            receive half                                     sending half
//!   ┌── fill: free chunks ──► kernel              ┌── tx: address, length ──► kernel ──► netdev
//!   chunks 0 … 2047             │                 chunks 2048 … 2559            │
//!   └── rx: address, length ◄───┘ ◄── netdev      └── completion: address ◄─────┘
//! ```
//!
//! Each half has chunks of its own, so what one of them lends out the other never writes. A frame longer than a chunk is
//! several descriptors (XDP_USE_SG, Linux 6.6): on receiving it is put together in the caller's memory. There are two
//! sockets (XDP_SHARED_UMEM) because each frame that has been sent looks for whom to wake at its own (the kernel's
//! sock_wfree): at the receiving half's somebody waits, and 7 % of all time went there.
//!
//! The rings are shared with the kernel. What is read there is checked all the same: a cursor that runs away counts as
//! an empty ring, an address outside of the half's own chunks is counted and not used, and so is a chunk that comes
//! back twice.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapMut, MmapOptions, MmapRaw};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::packet_socket::{FETCH_AHEAD, prefetch, set_option};
use crate::xdp_program::{NOTE_LEN, Note};

/// Bytes of a chunk. The kernel keeps 256 of them free before a frame that it puts there, and [`NOTED_HEADROOM`] more
/// where notes are put in front.
pub const CHUNK: usize = 2048;
/// The note and the first 48 bytes of its frame, headers that the pipeline reads, are one line of the cache.
const NOTED_HEADROOM: u32 = 16;
const _: () = assert!((256 + NOTED_HEADROOM as usize) % 64 >= NOTE_LEN);
const RX_CHUNKS: u32 = 2048;
const TX_CHUNKS: u32 = 512;
/// Chunks of one frame that is sent: what a socket buffer holds in the kernel (MAX_SKB_FRAGS).
const TX_FRAME_CHUNKS: usize = 17;
const SEND_BUFFER: libc::c_int = 16 << 20;
/// Frames that one system call sends, before Linux 6.18 (TX_BATCH_SIZE in net/xdp/xsk.c).
const KERNEL_BATCH: u32 = 32;
/// linux/if_xdp.h, Linux 6.18: more frames for one system call.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// linux/if_xdp.h, Linux 6.6: frames in several chunks.
const XDP_USE_SG: u16 = 1 << 4;
const XDP_PKT_CONTD: u32 = 1;

/// How a frame lies in memory when it is received.
pub struct RxFrame<'a> {
    /// Memory that belongs to the callee until it returns; the frame is `start..end` of it.
    pub mem: &'a mut [u8],
    /// First byte of the frame. The bytes before it are free to use.
    pub start: usize,
    /// End of the frame.
    pub end: usize,
    /// What is not in its bytes.
    pub note: Note,
}

/// What the receiving half counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxStats {
    /// Frames handed over.
    pub frames: u64,
    /// Of these, in several chunks and copied.
    pub copied: u64,
    /// Lost in the kernel because there was no free chunk or the ring was full.
    pub overrun: u64,
    /// Descriptors that made no sense, frames longer than the caller's memory.
    pub malformed: u64,
}

/// What the sending half counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxStats {
    /// Frames that the kernel was given.
    pub frames: u64,
    /// Frames that it did not take or dropped, and longer ones than can be sent.
    pub dropped: u64,
}

/// A ring: its cursors are shared with the kernel, one of them is moved by us.
struct Ring {
    map: MmapRaw,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    entry: usize,
    size: u32,
    /// The cursor that is ours; published by [`Ring::produced`] or [`Ring::consumed`].
    at: u32,
}

// The rings in the order in which XDP_MMAP_OFFSETS describes them; linux/if_xdp.h
struct Kind {
    option: libc::c_int,
    page: u64,
    entry: usize,
}

const RX: Kind = Kind {
    option: libc::XDP_RX_RING,
    page: 0,
    entry: size_of::<libc::xdp_desc>(),
};
const TX: Kind = Kind {
    option: libc::XDP_TX_RING,
    page: 0x8000_0000,
    entry: size_of::<libc::xdp_desc>(),
};
const FILL: Kind = Kind {
    option: libc::XDP_UMEM_FILL_RING,
    page: 0x1_0000_0000,
    entry: size_of::<u64>(),
};
const DONE: Kind = Kind {
    option: libc::XDP_UMEM_COMPLETION_RING,
    page: 0x1_8000_0000,
    entry: size_of::<u64>(),
};

impl Ring {
    /// Makes the ring and maps it. `size` is a power of two.
    fn new(fd: &OwnedFd, kind: &Kind, size: u32) -> io::Result<Self> {
        set_option(fd, libc::SOL_XDP, kind.option, &size)?;
        // SAFETY: all-zero offsets are valid values of plain integers.
        let mut all: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        let want = size_of::<libc::xdp_mmap_offsets>();
        let got = get_option(fd, libc::XDP_MMAP_OFFSETS, &mut all)?;
        if got != want {
            return Err(io::Error::other(
                "a kernel before Linux 5.4: no need_wakeup",
            ));
        }
        let o = match kind.option {
            libc::XDP_RX_RING => &all.rx,
            libc::XDP_TX_RING => &all.tx,
            libc::XDP_UMEM_FILL_RING => &all.fr,
            _ => &all.cr,
        };
        let at = |n: u64| usize::try_from(n).map_err(io::Error::other);
        let (producer, consumer, flags, entries) =
            (at(o.producer)?, at(o.consumer)?, at(o.flags)?, at(o.desc)?);
        let len = entries + size as usize * kind.entry;
        let fits = |n: usize| n.is_multiple_of(4) && n + 4 <= len;
        if !fits(producer) || !fits(consumer) || !fits(flags) || !entries.is_multiple_of(8) {
            return Err(io::Error::other("offsets of a ring make no sense"));
        }
        let map = MmapOptions::new().offset(kind.page).len(len).map_raw(fd)?;
        Ok(Ring {
            map,
            producer,
            consumer,
            flags,
            entries,
            entry: kind.entry,
            size,
            at: 0,
        })
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: `at` is one of the three offsets that `new` has checked: inside the mapping, 4-byte aligned (the mapping
        // begins at a page). The word lives as long as `self`, and both sides access it atomically.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    /// Entries that the kernel has produced and we have not consumed; a cursor that ran away gives 0.
    #[inline]
    fn filled(&self) -> u32 {
        let n = self
            .word(self.producer)
            .load(Ordering::Acquire)
            .wrapping_sub(self.at);
        if n > self.size { 0 } else { n }
    }

    /// Entries that we have produced and the kernel has not consumed.
    #[inline]
    fn outstanding(&self) -> u32 {
        self.at
            .wrapping_sub(self.word(self.consumer).load(Ordering::Acquire))
    }

    #[inline]
    fn consumed(&self) {
        self.word(self.consumer).store(self.at, Ordering::Release);
    }

    #[inline]
    fn produced(&self) {
        self.word(self.producer).store(self.at, Ordering::Release);
    }

    #[inline]
    fn needs_wakeup(&self) -> bool {
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// The entry under a cursor. `T` is what the ring's kind has: a descriptor or an address.
    #[inline]
    fn slot<T: Copy>(&self, cursor: u32) -> *mut T {
        debug_assert_eq!(size_of::<T>(), self.entry);
        let index = (cursor & (self.size - 1)) as usize;
        // SAFETY: size is a power of two, so index < size and the entry lies inside the mapping, whose length is
        // entries + size * entry.
        unsafe { self.map.as_mut_ptr().add(self.entries + index * self.entry) }.cast()
    }

    #[inline]
    fn read<T: Copy>(&self, cursor: u32) -> T {
        // SAFETY: inside the mapping (see `slot`), aligned to 8 bytes; between `filled` (acquire) and `consumed`
        // (release) the kernel leaves it alone. Any bytes are a valid T: plain integers.
        unsafe { self.slot::<T>(cursor).read() }
    }

    #[inline]
    fn write<T: Copy>(&self, cursor: u32, value: T) {
        // SAFETY: as in `read`; a producer's entry is ours: there are never more
        // chunks in a ring than it has entries, and a chunk comes back after its entry was read.
        unsafe { self.slot::<T>(cursor).write(value) }
    }
}

/// What both halves hold, with the receiving half's socket: when the last one goes the kernel lets go of the netdev's queue.
struct Shared {
    fd: OwnedFd,
    umem: MmapRaw,
    zero_copy: bool,
}

/// Wakes the kernel up to send what is in the tx ring (or, with `receive`, to take what is in the fill ring).
fn wake(socket: &OwnedFd, receive: bool) -> io::Result<()> {
    let (fd, none) = (socket.as_raw_fd(), std::ptr::null_mut());
    // SAFETY: no buffer, length 0, no address: nothing is read or written but the socket's own rings and memory.
    let ret = unsafe {
        if receive {
            libc::recvfrom(fd, none, 0, libc::MSG_DONTWAIT, none.cast(), none.cast())
        } else {
            libc::sendto(fd, none, 0, libc::MSG_DONTWAIT, none.cast(), 0)
        }
    };
    (ret >= 0)
        .then_some(())
        .ok_or_else(io::Error::last_os_error)
}

/// Receiving half.
pub struct XdpRx {
    shared: Arc<Shared>,
    rx: Ring,
    fill: Ring,
    /// The program puts notes in front of frames.
    notes: bool,
    /// Whose a chunk is: ours (true) or the kernel's.
    ours: Vec<bool>,
    stats: RxStats,
}

/// Sending half.
pub struct XdpTx {
    socket: OwnedFd,
    shared: Arc<Shared>,
    tx: Ring,
    done: Ring,
    /// Chunks that are ours.
    free: Vec<u32>,
    /// Whose a chunk is: ours (true) or the kernel's.
    ours: Vec<bool>,
    stats: TxStats,
}

fn socket() -> io::Result<OwnedFd> {
    rustix::net::socket_with(
        AddressFamily::from_raw(libc::AF_XDP as _),
        SocketType::RAW,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .map_err(|e| named(e.into(), "socket(AF_XDP)"))
}

/// Opens both halves on queue `queue` of interface `ifindex` of the calling thread's network namespace: zero copy where
/// the driver can. Nothing arrives before a program sends frames to it. `notes`: that program is one of
/// [`crate::xdp_program::load_noting`].
pub fn open(ifindex: u32, queue: u32, notes: bool) -> io::Result<(XdpRx, XdpTx)> {
    let (fd, sending) = (socket()?, socket()?);
    let chunks = (RX_CHUNKS + TX_CHUNKS) as usize;
    let umem = MmapRaw::from(MmapMut::map_anon(chunks * CHUNK)?);
    let reg = libc::xdp_umem_reg {
        addr: umem.as_ptr() as u64,
        len: (chunks * CHUNK) as u64,
        chunk_size: CHUNK as u32,
        headroom: if notes { NOTED_HEADROOM } else { 0 },
        flags: 0,
        tx_metadata_len: 0,
    };
    set_option(&fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &reg)
        .map_err(|e| named(e, "XDP_UMEM_REG"))?;
    let ring = |s: &OwnedFd, kind, n| Ring::new(s, kind, n).map_err(|e| named(e, "AF_XDP rings"));
    // Twice as large as it can get full: the kernel tells late what it has taken from it
    let mut fill = ring(&fd, &FILL, 2 * RX_CHUNKS)?;
    let done = ring(&fd, &DONE, TX_CHUNKS)?;
    let rx = ring(&fd, &RX, RX_CHUNKS)?;
    let tx = ring(&sending, &TX, TX_CHUNKS)?;
    let buffer = |option| set_option(&sending, libc::SOL_SOCKET, option, &SEND_BUFFER);
    buffer(libc::SO_SNDBUFFORCE).or_else(|_| buffer(libc::SO_SNDBUF))?;
    // An older kernel takes 32 frames a call
    let _ = set_option(&sending, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &TX_CHUNKS);
    for chunk in 0..RX_CHUNKS {
        fill.write(fill.at, u64::from(chunk) * CHUNK as u64);
        fill.at = fill.at.wrapping_add(1);
    }
    fill.produced();
    bind(&fd, ifindex, queue, None)?;
    bind(&sending, ifindex, queue, Some(&fd))?;
    let mut options = libc::xdp_options { flags: 0 };
    get_option(&fd, libc::XDP_OPTIONS, &mut options)?;
    let shared = Arc::new(Shared {
        fd,
        umem,
        zero_copy: options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0,
    });
    Ok((
        XdpRx {
            shared: Arc::clone(&shared),
            rx,
            fill,
            notes,
            ours: vec![false; RX_CHUNKS as usize],
            stats: RxStats::default(),
        },
        XdpTx {
            socket: sending,
            shared,
            tx,
            done,
            free: (0..TX_CHUNKS).rev().collect(),
            ours: vec![true; TX_CHUNKS as usize],
            stats: TxStats::default(),
        },
    ))
}

impl XdpRx {
    /// The kernel puts frames straight from the netdev into our memory, without a copy.
    pub fn zero_copy(&self) -> bool {
        self.shared.zero_copy
    }

    /// Counters so far; asks the kernel for those it keeps.
    pub fn stats(&mut self) -> RxStats {
        // SAFETY: all-zero statistics are valid values of plain integers.
        let mut kernel: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        if get_option(&self.shared.fd, libc::XDP_STATISTICS, &mut kernel).is_ok() {
            self.stats.overrun = kernel.rx_dropped + kernel.rx_ring_full;
        }
        self.stats
    }

    /// Is there a frame? Looks at memory only.
    #[inline]
    pub fn pending(&self) -> bool {
        self.rx.filled() > 0
    }

    /// Hands up to `budget` frames to `f`, in order, and returns how many. `scratch` takes frames that are longer than a
    /// chunk; its first `headroom` bytes are left free.
    pub fn receive<F>(
        &mut self,
        budget: usize,
        scratch: &mut [u8],
        headroom: usize,
        f: &mut F,
    ) -> usize
    where
        F: FnMut(RxFrame<'_>),
    {
        let mut left = self.rx.filled();
        let mut done = 0;
        for n in 0..FETCH_AHEAD as u32 {
            self.fetch(left, n);
        }
        while done < budget && left > 0 {
            let first: libc::xdp_desc = self.rx.read(self.rx.at);
            self.fetch(left, FETCH_AHEAD as u32);
            let used = if first.options & XDP_PKT_CONTD == 0 {
                self.take(&first, f);
                1
            } else {
                self.gather(left, scratch, headroom, f)
            };
            if used == 0 {
                break;
            }
            self.rx.at = self.rx.at.wrapping_add(used);
            left -= used;
            done += 1;
        }
        if done > 0 {
            self.rx.consumed();
            self.fill.produced();
            if self.fill.needs_wakeup() {
                // A netdev that is down is no matter: it asks again when it is up
                let _ = wake(&self.shared.fd, true);
            }
        }
        done
    }

    /// Shows up to `budget` frames that the next [`XdpRx::receive`] will hand out, without taking them; of a frame in
    /// several chunks the first one.
    pub fn lookahead(&self, budget: usize, mut f: impl FnMut(&[u8])) {
        let (mut shown, mut inside) = (0, false);
        for n in 0..self.rx.filled() {
            if shown == budget {
                return;
            }
            let desc: libc::xdp_desc = self.rx.read(self.rx.at.wrapping_add(n));
            let first = !inside;
            inside = desc.options & XDP_PKT_CONTD != 0;
            if !first {
                continue;
            }
            shown += 1;
            if let Some((chunk, start, end)) = place(&desc, 0, RX_CHUNKS)
                && self.ours.get(chunk) == Some(&false)
            {
                // SAFETY: as in `memory`; the chunk is on its way to us (its descriptor is in the rx ring, and the kernel
                // doesn't touch it until it is in the fill ring again), and `receive`, which lends it out for writing,
                // needs `&mut self`.
                let mem = unsafe {
                    std::slice::from_raw_parts(self.shared.umem.as_ptr().add(chunk * CHUNK), CHUNK)
                };
                f(mem.get(start..end).unwrap_or_default());
            }
        }
    }

    /// Lets the headers of the next `budget` frames come, which another processor has written: whoever does something
    /// long before [`XdpRx::receive`] finds them near then.
    pub fn bring(&self, budget: usize) {
        let waiting = self.rx.filled() as usize;
        for n in 0..waiting.min(budget) as u32 {
            let desc: libc::xdp_desc = self.rx.read(self.rx.at.wrapping_add(n));
            if let Some((chunk, start, _)) = place(&desc, 0, RX_CHUNKS) {
                let at = chunk * CHUNK + start;
                prefetch(self.shared.umem.as_ptr().wrapping_add(at), 1);
            }
        }
    }

    /// Lets the bytes of the `n`th frame from here come, if there is one and it has one chunk.
    #[inline]
    fn fetch(&self, left: u32, n: u32) {
        if n >= left {
            return;
        }
        let desc: libc::xdp_desc = self.rx.read(self.rx.at.wrapping_add(n));
        if let Some((chunk, start, _)) = place(&desc, 0, RX_CHUNKS) {
            let at = chunk * CHUNK + start;
            prefetch(
                self.shared.umem.as_ptr().wrapping_add(at),
                desc.len as usize,
            );
        }
    }

    /// A frame of one chunk.
    #[inline]
    fn take<F: FnMut(RxFrame<'_>)>(&mut self, desc: &libc::xdp_desc, f: &mut F) {
        let Some((chunk, start, end)) = self.claim(desc) else {
            return;
        };
        let notes = self.notes;
        let mem = self.memory(chunk);
        let note = note_at(notes, mem, start);
        f(RxFrame {
            mem,
            start,
            end,
            note,
        });
        self.stats.frames += 1;
        self.give_back(chunk);
    }

    /// A frame of several chunks, put together in `scratch`: how many they were. 0: its end isn't there yet.
    #[cold]
    fn gather<F: FnMut(RxFrame<'_>)>(
        &mut self,
        left: u32,
        scratch: &mut [u8],
        headroom: usize,
        f: &mut F,
    ) -> u32 {
        let at = self.rx.at;
        let desc = |n| self.rx.read::<libc::xdp_desc>(at.wrapping_add(n));
        let Some(last) = (0..left).find(|n| desc(*n).options & XDP_PKT_CONTD == 0) else {
            return 0;
        };
        let (mut end, mut whole, mut note) = (headroom, true, Note::default());
        for n in 0..=last {
            let desc = self.rx.read(at.wrapping_add(n));
            let Some((chunk, from, to)) = self.claim(&desc) else {
                whole = false;
                continue;
            };
            let notes = self.notes;
            let mem = self.memory(chunk);
            if n == 0 {
                note = note_at(notes, mem, from);
            }
            let part = mem.get(from..to).unwrap_or_default();
            match scratch.get_mut(end..end + part.len()) {
                Some(room) => room.copy_from_slice(part),
                None => whole = false,
            }
            end += part.len();
            self.give_back(chunk);
        }
        if whole {
            self.stats.frames += 1;
            self.stats.copied += 1;
            f(RxFrame {
                mem: scratch,
                start: headroom,
                end,
                note,
            });
        } else {
            self.stats.malformed += 1;
        }
        last + 1
    }

    /// Takes over the chunk of a descriptor: its number, the frame's start and end in it. None: the descriptor makes no
    /// sense, or the chunk is ours already.
    #[inline]
    fn claim(&mut self, desc: &libc::xdp_desc) -> Option<(usize, usize, usize)> {
        let found = place(desc, 0, RX_CHUNKS);
        if let Some((chunk, _, _)) = found
            && let Some(ours @ false) = self.ours.get_mut(chunk)
        {
            *ours = true;
            return found;
        }
        self.stats.malformed += 1;
        None
    }

    #[inline]
    fn give_back(&mut self, chunk: usize) {
        if let Some(ours) = self.ours.get_mut(chunk) {
            *ours = false;
        }
        self.fill.write(self.fill.at, (chunk * CHUNK) as u64);
        self.fill.at = self.fill.at.wrapping_add(1);
    }

    /// A chunk that was claimed.
    #[inline]
    fn memory(&mut self, chunk: usize) -> &mut [u8] {
        let chunk = chunk.min(RX_CHUNKS as usize - 1);
        // SAFETY: chunk < RX_CHUNKS, so it lies inside the mapping and is none of the sending half's. It was claimed and
        // not yet given back, so the kernel does not touch it; `&mut self` keeps a second borrow away.
        unsafe {
            std::slice::from_raw_parts_mut(self.shared.umem.as_mut_ptr().add(chunk * CHUNK), CHUNK)
        }
    }
}

/// Chunk of a descriptor, relative to the `count` chunks from `first`, and the frame's start and end in it.
#[inline]
fn place(desc: &libc::xdp_desc, first: u32, count: u32) -> Option<(usize, usize, usize)> {
    let chunk = (desc.addr / CHUNK as u64).checked_sub(u64::from(first))?;
    let start = (desc.addr % CHUNK as u64) as usize;
    let end = start + desc.len as usize;
    (chunk < u64::from(count) && end <= CHUNK).then_some((chunk as usize, start, end))
}

#[inline]
fn note_at(notes: bool, mem: &[u8], start: usize) -> Note {
    if !notes {
        return Note::default();
    }
    start
        .checked_sub(NOTE_LEN)
        .and_then(|at| mem.get(at..start)?.first_chunk())
        .map(Note::read)
        .unwrap_or_default()
}

impl XdpTx {
    /// Counters so far.
    pub fn stats(&self) -> TxStats {
        self.stats
    }

    /// Sends a frame with the next [`XdpTx::flush`]. Order is kept.
    #[inline]
    pub fn queue(&mut self, frame: &[u8]) {
        let chunks = frame.len().div_ceil(CHUNK);
        if chunks == 0 || chunks > TX_FRAME_CHUNKS {
            self.stats.dropped += 1;
            return;
        }
        if self.free.len() < chunks {
            self.reap();
            if self.free.len() < chunks {
                // What waits is all that may wait
                self.flush();
                if self.free.len() < chunks {
                    self.stats.dropped += 1;
                    return;
                }
            }
        }
        let mut parts = frame.chunks(CHUNK).peekable();
        while let Some(part) = parts.next() {
            let Some(chunk) = self.free.pop() else {
                return;
            };
            if let Some(ours) = self.ours.get_mut(chunk as usize) {
                *ours = false;
            }
            let chunk = (RX_CHUNKS + chunk) as usize;
            // SAFETY: the chunk comes from `free`, which has numbers below TX_CHUNKS only: it lies inside the mapping, is
            // none of the receiving half's, and the kernel has given it back. `part` is at most CHUNK bytes and no part
            // of the mapping that is being written: frames of the receiving half are in other chunks.
            unsafe {
                let to = self.shared.umem.as_mut_ptr().add(chunk * CHUNK);
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
            }
            let more = u32::from(parts.peek().is_some());
            let desc = libc::xdp_desc {
                addr: (chunk * CHUNK) as u64,
                len: part.len() as u32,
                options: more * XDP_PKT_CONTD,
            };
            // There is room: the ring has as many entries as there are chunks
            self.tx.write(self.tx.at, desc);
            self.tx.at = self.tx.at.wrapping_add(1);
        }
        self.stats.frames += 1;
    }

    /// Sends what was queued. False: the netdev takes nothing more for now; what is left waits for the next flush. What
    /// it refuses for another reason is dropped and counted.
    #[inline]
    pub fn flush(&mut self) -> bool {
        let waiting = self.tx.outstanding();
        if waiting == 0 {
            return true;
        }
        self.tx.produced();
        let sent = self.kick(waiting);
        self.reap();
        sent
    }

    fn kick(&mut self, waiting: u32) -> bool {
        // One call sends a batch of the kernel's; one more for each that it drops
        let mut calls = waiting + waiting / KERNEL_BATCH + 2;
        while calls > 0 && self.tx.needs_wakeup() {
            calls -= 1;
            let Err(e) = wake(&self.socket, false) else {
                return true;
            };
            match e.raw_os_error() {
                // The driver dropped a frame; the others go on
                Some(libc::EBUSY) if !self.shared.zero_copy => {
                    self.stats.frames = self.stats.frames.saturating_sub(1);
                    self.stats.dropped += 1;
                }
                // A batch is out and there is more, or there is no room for more
                Some(libc::EAGAIN | libc::ENOBUFS) => {
                    calls = calls.min(calls.saturating_sub(KERNEL_BATCH) + 1);
                }
                // Down or gone: what waits stays in the ring, what comes is dropped when it is full
                _ => return true,
            }
        }
        self.tx.outstanding() == 0 || !self.tx.needs_wakeup()
    }

    /// Takes back the chunks whose frames are sent.
    fn reap(&mut self) {
        let n = self.done.filled();
        for _ in 0..n {
            let addr: u64 = self.done.read(self.done.at);
            self.done.at = self.done.at.wrapping_add(1);
            let chunk = (addr / CHUNK as u64).wrapping_sub(u64::from(RX_CHUNKS));
            if let Some(ours @ false) = usize::try_from(chunk)
                .ok()
                .and_then(|chunk| self.ours.get_mut(chunk))
            {
                *ours = true;
                self.free.push(chunk as u32);
            }
        }
        if n > 0 {
            self.done.consumed();
        }
    }
}

impl AsFd for XdpRx {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }
}

fn named(e: io::Error, what: &str) -> io::Error {
    io::Error::new(e.kind(), format!("{what}: {e}"))
}

/// `first`: the socket whose memory it uses, as it uses it.
fn bind(fd: &OwnedFd, ifindex: u32, queue: u32, first: Option<&OwnedFd>) -> io::Result<()> {
    let alone = libc::XDP_USE_NEED_WAKEUP | XDP_USE_SG;
    let addr = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: first.map_or(alone, |_| libc::XDP_SHARED_UMEM),
        sxdp_ifindex: ifindex,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: first.map_or(0, |f| f.as_raw_fd().cast_unsigned()),
    };
    // SAFETY: the pointer is to a sockaddr_xdp of the length given, alive during the call.
    let ret = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const addr).cast(),
            size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
        )
    };
    if ret < 0 {
        let e = io::Error::last_os_error();
        let why = match e.raw_os_error() {
            Some(libc::EBUSY) => "another AF_XDP socket has the queue",
            Some(libc::EINVAL) => "no such queue, or a kernel before Linux 6.6",
            _ => "binding an AF_XDP socket",
        };
        return Err(named(e, why));
    }
    Ok(())
}

/// Reads an option of AF_XDP; returns how many bytes the kernel wrote. `T` must be the plain structure of integers that
/// it is documented to fill.
fn get_option<T: Copy>(fd: &OwnedFd, name: i32, value: &mut T) -> io::Result<usize> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes behind a reference that outlives the call.
    let ret = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            name,
            std::ptr::from_mut(value).cast(),
            &raw mut len,
        )
    };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desc(addr: u64, len: u32) -> libc::xdp_desc {
        libc::xdp_desc {
            addr,
            len,
            options: 0,
        }
    }

    #[test]
    fn only_a_place_inside_a_chunk_of_the_half_counts() {
        assert_eq!(place(&desc(256, 60), 0, 2), Some((0, 256, 316)));
        assert_eq!(place(&desc(2048, 2048), 0, 2), Some((1, 0, 2048)));
        for (addr, len) in [
            (4096, 60),
            (2048, 2049),
            (u64::MAX, 1),
            (u64::MAX - 2047, u32::MAX),
        ] {
            assert_eq!(place(&desc(addr, len), 0, 2), None, "{addr} {len}");
        }
        assert_eq!(place(&desc(2048, 1), 2, 2), None, "the other half's");
    }
}

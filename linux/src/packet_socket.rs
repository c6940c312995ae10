//! Packet sockets (packet(7), Documentation/networking/packet_mmap.rst).
//!
//! [`open`] gives the two halves of one socket that is bound to one netdev:
//!
//! ```text
//!   netdev ──► TPACKET_V2 ring, one slot per frame ──► PacketRx::receive(…)   in place, no copy
//!                └── too long for a slot: also queued whole, slot says COPY ──► recvmsg
//!   netdev ◄── sending ring ◄───┬── PacketTx::queue(…), flush()                QDISC_BYPASS
//!          ◄── sendmmsg, sendmsg ◄┘ too long for a slot or the MTU, super-frames; all while the ring is full
//! ```
//!
//! Version 2 of the ring and not 3: a V3 block is handed over when it is full or after a
//! time-out of milliseconds. Slots are small (2 KiB for an MTU of 1500) because a slot is
//! touched for every frame; super-frames take the COPY way, at one copy of 64 KiB each, which
//! costs less than the cache and memory that 64 KiB slots would.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::packet_ring::SendRing;
use memmap2::{MmapOptions, MmapRaw};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};

const ETHER_HEADER: usize = 14;
/// Bytes of `struct virtio_net_hdr` before a frame.
pub const VNET_HDR_LEN: usize = 10;
/// Frames of one `sendmmsg`.
pub const TX_BATCH: usize = 64;

const ETH_P_ALL: u16 = 3;
/// Most frames leave again and are copied for it, and another processor has written them: so many frames before one is
/// worked on its bytes are asked for.
pub(crate) const FETCH_AHEAD: usize = 4;
/// Bytes of a line of a processor's cache.
const LINE: usize = 64;
/// Free bytes before each frame in the ring, so that a tag can be pushed in place.
const RESERVE: u32 = 64;
/// Bytes of a slot that are not frame: headers, reserve, alignment.
const SLOT_OVERHEAD: u32 = 192;
const RING_BYTES: u32 = 4 << 20;
const SOCKET_BUFFER: libc::c_int = 16 << 20;
/// Frames of up to this length are collected into batches; longer ones are sent at once.
const BATCHED_FRAME: usize = 4096;
const BATCH_BYTES: usize = 128 * 1024;

/// How a frame lies in memory when it is received.
pub struct RxFrame<'a> {
    /// Memory that belongs to the callee until it returns; the frame is `start..end` of it.
    pub mem: &'a mut [u8],
    /// First byte of the frame. The bytes before it are free to use.
    pub start: usize,
    /// End of the frame.
    pub end: usize,
    /// `struct virtio_net_hdr`; offsets count from the frame as it lies here, without the tag.
    pub vnet: [u8; VNET_HDR_LEN],
    /// Outer VLAN tag that the kernel took out: TPID, TCI.
    pub tag: Option<(u16, u16)>,
}

/// What the receiving half counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxStats {
    /// Frames handed over.
    pub frames: u64,
    /// Of these, longer than a slot and copied.
    pub copied: u64,
    /// Lost because they were longer than a slot and the socket's buffer had no room, or longer
    /// than 64 KiB.
    pub truncated: u64,
    /// Lost in the kernel because the ring was full.
    pub ring_full: u64,
}

/// What the sending half counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxStats {
    /// Frames the netdev took.
    pub frames: u64,
    /// Frames it did not take: queue full, down, too long.
    pub dropped: u64,
}

#[derive(Debug)]
struct Shared {
    fd: OwnedFd,
    ifindex: u32,
}

/// Receiving half.
#[derive(Debug)]
pub struct PacketRx {
    shared: Arc<Shared>,
    ring: MmapRaw,
    slot_size: usize,
    slots: usize,
    next: usize,
    stats: RxStats,
}

/// Sending half.
#[derive(Debug)]
pub struct PacketTx {
    shared: Arc<Shared>,
    /// Its frames go before those of the batch. None: the kernel gave none.
    ring: Option<SendRing>,
    mtu: Arc<AtomicU32>,
    batch: Vec<u8>,
    lens: Vec<usize>,
    stats: TxStats,
}

/// Opens a packet socket on interface `ifindex` of the calling thread's network namespace:
/// every protocol, promiscuous, without the netdev's own outgoing frames. `mtu` decides how
/// large a slot is.
pub fn open(ifindex: u32, mtu: u32) -> io::Result<(PacketRx, PacketTx)> {
    let fd = sending_socket()?;
    let packet = libc::SOL_PACKET;
    set_int(&fd, packet, libc::PACKET_RESERVE, RESERVE as libc::c_int)
        .map_err(|e| named(e, "PACKET_RESERVE"))?;
    set_int(&fd, packet, libc::PACKET_COPY_THRESH, 1)
        .map_err(|e| named(e, "PACKET_COPY_THRESH"))?;
    set_int(&fd, packet, libc::PACKET_IGNORE_OUTGOING, 1)
        .map_err(|e| named(e, "PACKET_IGNORE_OUTGOING"))?;
    let (force, plain) = (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF);
    if set_int(&fd, libc::SOL_SOCKET, force, SOCKET_BUFFER).is_err() {
        set_int(&fd, libc::SOL_SOCKET, plain, SOCKET_BUFFER)?;
    }
    let slot_size = (mtu.clamp(1500, 16_000) + SLOT_OVERHEAD + 26).next_power_of_two();
    let block_size = slot_size.max(64 << 10);
    let slots = RING_BYTES / slot_size;
    let request = libc::tpacket_req {
        tp_block_size: block_size,
        tp_block_nr: RING_BYTES / block_size,
        tp_frame_size: slot_size,
        tp_frame_nr: slots,
    };
    set_option(&fd, packet, libc::PACKET_RX_RING, &request)
        .map_err(|e| named(e, "PACKET_RX_RING"))?;
    let ring = MmapOptions::new()
        .len(RING_BYTES as usize)
        .map_raw(&fd)
        .map_err(|e| named(e, "mapping the receive ring"))?;
    set_promiscuous(&fd, ifindex)?;
    bind(&fd, ifindex, ETH_P_ALL).map_err(|e| named(e, "binding a packet socket"))?;
    let shared = Arc::new(Shared { fd, ifindex });
    Ok((
        PacketRx {
            shared: Arc::clone(&shared),
            ring,
            slot_size: slot_size as usize,
            slots: slots as usize,
            next: 0,
            stats: RxStats::default(),
        },
        PacketTx {
            shared,
            // Without one everything goes the other way
            ring: SendRing::open(ifindex, slot_size).ok(),
            mtu: Arc::new(AtomicU32::new(mtu)),
            batch: Vec::with_capacity(BATCH_BYTES),
            lens: Vec::with_capacity(TX_BATCH),
            stats: TxStats::default(),
        },
    ))
}

/// With protocol 0: nothing arrives before it is bound to another.
fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        AddressFamily::PACKET,
        SocketType::RAW,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None::<Protocol>,
    )?)
}

/// A packet socket that frames can leave by, past queueing disciplines; to be bound.
pub(crate) fn sending_socket() -> io::Result<OwnedFd> {
    let fd = socket()?;
    let packet = libc::SOL_PACKET;
    set_int(&fd, packet, libc::PACKET_VERSION, 1)
        .map_err(|e| named(e, "PACKET_VERSION TPACKET_V2"))?;
    set_int(&fd, packet, libc::PACKET_VNET_HDR, 1).map_err(|e| named(e, "PACKET_VNET_HDR"))?;
    set_int(&fd, packet, libc::PACKET_QDISC_BYPASS, 1)
        .map_err(|e| named(e, "PACKET_QDISC_BYPASS"))?;
    let (force, plain) = (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF);
    if set_int(&fd, libc::SOL_SOCKET, force, SOCKET_BUFFER).is_err() {
        set_int(&fd, libc::SOL_SOCKET, plain, SOCKET_BUFFER)?;
    }
    Ok(fd)
}

/// Sets interface `ifindex` of the calling thread's network namespace promiscuous for as long as the descriptor lives.
pub fn promiscuous(ifindex: u32) -> io::Result<OwnedFd> {
    let fd = socket()?;
    set_promiscuous(&fd, ifindex)?;
    Ok(fd)
}

fn set_promiscuous(fd: &OwnedFd, ifindex: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: ifindex as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(
        fd,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &membership,
    )
    .map_err(|e| named(e, "promiscuous mode"))
}

impl PacketRx {
    /// The interface it is bound to.
    pub fn ifindex(&self) -> u32 {
        self.shared.ifindex
    }

    /// Counters so far; asks the kernel for those it keeps.
    pub fn stats(&mut self) -> RxStats {
        let mut kernel = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the pointers are to a tpacket_stats and its size, both outlive the call.
        let ret = unsafe {
            libc::getsockopt(
                self.shared.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut kernel).cast(),
                &raw mut len,
            )
        };
        if ret == 0 {
            // Reading resets the kernel's counters
            self.stats.ring_full += u64::from(kernel.tp_drops);
        }
        self.stats
    }

    /// Takes an error off the socket (the netdev went down), so that it does not wake up again.
    pub fn take_error(&self) -> Option<io::Error> {
        match rustix::net::sockopt::socket_error(&self.shared.fd) {
            Ok(Ok(())) => None,
            Ok(Err(e)) | Err(e) => Some(e.into()),
        }
    }

    /// Is there a frame? Looks at memory only.
    #[inline]
    pub fn pending(&self) -> bool {
        self.status(self.next).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Hands up to `budget` frames to `f`, in order, and returns how many. `scratch` takes frames
    /// that are longer than a slot; its first `headroom` bytes are left free.
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
        let mut done = 0;
        for n in 0..FETCH_AHEAD {
            self.fetch(n);
        }
        while done < budget {
            self.fetch(FETCH_AHEAD);
            let slot = self.next;
            let status = self.status(slot).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            self.take(slot, status, scratch, headroom, f);
            self.status(slot)
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = if slot + 1 == self.slots { 0 } else { slot + 1 };
            done += 1;
        }
        done
    }

    /// Shows up to `budget` frames that the next [`PacketRx::receive`] will hand out, without taking them: for lookups
    /// that are worth starting early. A frame longer than a slot is left out, a tag that the kernel took off is not there.
    pub fn lookahead(&self, budget: usize, mut f: impl FnMut(&[u8])) {
        for n in 0..budget.min(self.slots) {
            let Some(frame) = self.shown(self.after(n)) else {
                return;
            };
            if !frame.is_empty() {
                f(frame);
            }
        }
    }

    /// Lets the bytes of the `n`th frame from here come.
    #[inline]
    fn fetch(&self, n: usize) {
        if let Some(frame) = self.shown(self.after(n)) {
            prefetch(frame.as_ptr(), frame.len());
        }
    }

    #[inline]
    fn after(&self, n: usize) -> usize {
        let slot = self.next + n;
        if slot < self.slots {
            slot
        } else {
            slot - self.slots
        }
    }

    /// The frame in a slot, nothing of one that is longer than a slot; None: there is none yet.
    #[inline]
    fn shown(&self, slot: usize) -> Option<&[u8]> {
        let status = self.status(slot).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        if status & libc::TP_STATUS_COPY != 0 {
            return Some(&[]);
        }
        let size = self.slot_size;
        // SAFETY: as in `take`: the slot lies inside the mapping, and its status word says that it is ours until
        // `receive`, which needs `&mut self`, gives it back; nobody writes to it meanwhile. The first word, which is
        // the status, is left out.
        let mem = unsafe {
            std::slice::from_raw_parts(self.ring.as_ptr().add(slot * size + 4), size - 4)
        };
        // struct tpacket2_hdr: tp_snaplen at 8, tp_mac at 12, counted from the status word
        let snaplen = word(mem, 4) as usize;
        let mac = usize::from(half(mem, 8)).saturating_sub(4);
        Some(
            mem.get(mac..mac.saturating_add(snaplen))
                .unwrap_or_default(),
        )
    }

    fn take<F>(&mut self, slot: usize, status: u32, scratch: &mut [u8], headroom: usize, f: &mut F)
    where
        F: FnMut(RxFrame<'_>),
    {
        let size = self.slot_size;
        // SAFETY: the slot lies inside the mapping (slot < slots, slots * slot_size == its
        // length). The status word says that it is ours until we store TP_STATUS_KERNEL, which
        // happens after this function: the kernel does not touch it and `&mut self` keeps other
        // callers out. The first word is the status itself; it is only read here.
        let mem = unsafe {
            std::slice::from_raw_parts_mut(self.ring.as_mut_ptr().add(slot * size), size)
        };
        // struct tpacket2_hdr
        let len = word(mem, 4) as usize;
        let snaplen = word(mem, 8) as usize;
        let mac = usize::from(half(mem, 12));
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
                half(mem, 26)
            } else {
                0x8100
            };
            (tpid, half(mem, 24))
        });
        if status & libc::TP_STATUS_COPY != 0 {
            match self.receive_copy(scratch, headroom) {
                Some((vnet, end)) => {
                    self.stats.frames += 1;
                    self.stats.copied += 1;
                    f(RxFrame {
                        mem: scratch,
                        start: headroom,
                        end,
                        vnet,
                        tag,
                    });
                }
                None => self.stats.truncated += 1,
            }
            return;
        }
        let end = mac.saturating_add(snaplen);
        let vnet = mac
            .checked_sub(VNET_HDR_LEN)
            .and_then(|at| mem.get(at..mac))
            .and_then(|b| <[u8; VNET_HDR_LEN]>::try_from(b).ok());
        match vnet {
            Some(vnet) if snaplen == len && end <= size => {
                self.stats.frames += 1;
                // The status word and the rest of the header are kept out of reach: 32 bytes
                // of tpacket2_hdr and 20 of sockaddr_ll lie before the reserve.
                let (_, frame) = mem.split_at_mut(HEADER.min(size));
                f(RxFrame {
                    mem: frame,
                    start: mac.saturating_sub(HEADER),
                    end: end.saturating_sub(HEADER),
                    vnet,
                    tag,
                });
            }
            _ => self.stats.truncated += 1,
        }
    }

    /// The whole frame of a slot marked COPY: the next one in the socket's own queue.
    fn receive_copy(
        &self,
        scratch: &mut [u8],
        headroom: usize,
    ) -> Option<([u8; VNET_HDR_LEN], usize)> {
        let mut vnet = [0u8; VNET_HDR_LEN];
        let room = scratch.get_mut(headroom..)?;
        let mut iov = [
            libc::iovec {
                iov_base: vnet.as_mut_ptr().cast(),
                iov_len: VNET_HDR_LEN,
            },
            libc::iovec {
                iov_base: room.as_mut_ptr().cast(),
                iov_len: room.len(),
            },
        ];
        // SAFETY: an all-zero msghdr is a valid one without name, control data and iovec.
        let mut msg: libc::msghdr = unsafe { std::mem::zeroed() };
        msg.msg_iov = iov.as_mut_ptr();
        msg.msg_iovlen = 2;
        // SAFETY: `msg` points to two live, exclusively borrowed buffers with their lengths.
        let n =
            unsafe { libc::recvmsg(self.shared.fd.as_raw_fd(), &raw mut msg, libc::MSG_DONTWAIT) };
        let n = usize::try_from(n).ok()?.checked_sub(VNET_HDR_LEN)?;
        (msg.msg_flags & libc::MSG_TRUNC == 0).then_some((vnet, headroom + n))
    }

    #[inline]
    fn status(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: the first word of a slot is its status; it is 4-byte aligned, inside the
        // mapping, lives as long as `self`, and both sides access it atomically.
        unsafe { AtomicU32::from_ptr(self.ring.as_mut_ptr().add(slot * self.slot_size).cast()) }
    }
}

/// Asks for bytes that will be read soon.
#[inline]
pub(crate) fn prefetch(from: *const u8, len: usize) {
    let into_line = from.addr() % LINE;
    let from = from.wrapping_sub(into_line);
    for at in (0..into_line + len).step_by(LINE) {
        // SAFETY: a hint, which reads nothing and takes any address.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (from, at);
    }
}

/// `struct tpacket2_hdr` and `struct sockaddr_ll` at the start of a slot.
const HEADER: usize = 52;

impl PacketTx {
    /// The interface it is bound to.
    pub fn ifindex(&self) -> u32 {
        self.shared.ifindex
    }

    /// Counters so far.
    pub fn stats(&self) -> TxStats {
        self.stats
    }

    /// Sends a frame, together with others at the next [`PacketTx::flush`] or when a batch is
    /// full. Order is kept. The VLAN tag, if any, is in the frame.
    #[inline]
    pub fn queue(&mut self, vnet: &[u8; VNET_HDR_LEN], frame: &[u8]) {
        if !self.by_ring(vnet, frame) {
            self.by_message(vnet, frame);
        }
    }

    /// The netdev's MTU in bytes, for whoever watches it: the kernel looks at it only for frames that don't go by the ring.
    pub fn mtu(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.mtu)
    }

    #[inline]
    fn by_ring(&mut self, vnet: &[u8; VNET_HDR_LEN], frame: &[u8]) -> bool {
        let Some(ring) = &mut self.ring else {
            return false;
        };
        let longest = self.mtu.load(Ordering::Relaxed) as usize + ETHER_HEADER;
        // Nothing overtakes the batch
        if frame.len() > longest || !self.lens.is_empty() {
            return false;
        }
        if ring.waiting() >= TX_BATCH {
            ring.flush(&mut self.stats);
        }
        ring.put(vnet, frame)
    }

    fn by_message(&mut self, vnet: &[u8; VNET_HDR_LEN], frame: &[u8]) {
        if frame.len() > BATCHED_FRAME {
            if self.flush() {
                self.send_now(vnet, frame);
            } else {
                self.stats.dropped += 1;
            }
            return;
        }
        if self.lens.len() == TX_BATCH
            || self.batch.len() + frame.len() + VNET_HDR_LEN > BATCH_BYTES
        {
            self.flush();
            // still full: the netdev takes nothing
            if !self.lens.is_empty() {
                self.stats.dropped += 1;
                return;
            }
        }
        self.batch.extend_from_slice(vnet);
        self.batch.extend_from_slice(frame);
        self.lens.push(VNET_HDR_LEN + frame.len());
    }

    /// Nothing waits for a flush.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lens.is_empty() && self.ring.as_ref().is_none_or(|ring| ring.waiting() == 0)
    }

    /// Sends what was queued. False: the netdev takes nothing more for now; what is left waits for the next flush. What
    /// it refuses for another reason is dropped and counted.
    #[inline]
    pub fn flush(&mut self) -> bool {
        let by_ring = match &mut self.ring {
            Some(ring) => ring.flush(&mut self.stats),
            None => true,
        };
        by_ring && (self.lens.is_empty() || self.flush_batch())
    }

    fn flush_batch(&mut self) -> bool {
        // SAFETY: all-zero iovec and mmsghdr are valid: no buffer, no name, no control data.
        let (mut iov, mut msgs): ([libc::iovec; TX_BATCH], [libc::mmsghdr; TX_BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut at = 0;
        let mut count = 0;
        for ((len, iov), msg) in self.lens.iter().zip(iov.iter_mut()).zip(msgs.iter_mut()) {
            let Some(bytes) = self.batch.get(at..at + len) else {
                break;
            };
            iov.iov_base = bytes.as_ptr().cast_mut().cast();
            iov.iov_len = *len;
            msg.msg_hdr.msg_iov = iov;
            msg.msg_hdr.msg_iovlen = 1;
            at += len;
            count += 1;
        }
        let mut sent = 0;
        let mut full = false;
        while let Some(rest) = msgs.get_mut(sent..count) {
            if rest.is_empty() {
                break;
            }
            // SAFETY: each of the `rest` messages points to an iovec above, and that to bytes of
            // `self.batch`, which is not changed before the call returns; the kernel only reads.
            let n = unsafe {
                libc::sendmmsg(
                    self.shared.fd.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(n) {
                Ok(n) if n > 0 => {
                    sent += n;
                    self.stats.frames += n as u64;
                }
                _ => {
                    let errno = io::Error::last_os_error().raw_os_error();
                    if errno == Some(libc::EAGAIN) {
                        full = true;
                        break;
                    }
                    let gone = matches!(errno, Some(libc::ENETDOWN | libc::ENXIO));
                    // Down: the others would fail too. Otherwise only this frame.
                    let lost = if gone { count - sent } else { 1 };
                    sent += lost;
                    self.stats.dropped += lost as u64;
                }
            }
        }
        if full {
            let bytes = self.lens.iter().take(sent).sum::<usize>();
            self.batch.drain(..bytes);
            self.lens.drain(..sent);
            return false;
        }
        self.batch.clear();
        self.lens.clear();
        true
    }

    fn send_now(&mut self, vnet: &[u8; VNET_HDR_LEN], frame: &[u8]) {
        let mut iov = [
            libc::iovec {
                iov_base: vnet.as_ptr().cast_mut().cast(),
                iov_len: VNET_HDR_LEN,
            },
            libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            },
        ];
        // SAFETY: an all-zero msghdr is a valid one without name, control data and iovec.
        let mut msg: libc::msghdr = unsafe { std::mem::zeroed() };
        msg.msg_iov = iov.as_mut_ptr();
        msg.msg_iovlen = 2;
        // SAFETY: `msg` points to two live buffers with their lengths; the kernel only reads.
        let n = unsafe {
            libc::sendmsg(
                self.shared.fd.as_raw_fd(),
                &raw const msg,
                libc::MSG_DONTWAIT,
            )
        };
        if n < 0 {
            self.stats.dropped += 1;
        } else {
            self.stats.frames += 1;
        }
    }
}

impl AsFd for PacketRx {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }
}

fn named(e: io::Error, what: &str) -> io::Error {
    io::Error::new(e.kind(), format!("{what}: {e}"))
}

/// `protocol`: what is received, or 0.
pub(crate) fn bind(fd: &OwnedFd, ifindex: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: an all-zero sockaddr_ll is valid.
    let mut addr: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    addr.sll_family = libc::AF_PACKET as libc::c_ushort;
    addr.sll_protocol = protocol.to_be();
    addr.sll_ifindex = ifindex as libc::c_int;
    // SAFETY: the pointer is to a sockaddr_ll of the length given, alive during the call.
    let ret = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const addr).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn set_int(fd: &OwnedFd, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    set_option(fd, level, name, &value)
}

/// `T` must be the plain structure that the option is documented to take.
pub(crate) fn set_option<T: Copy>(
    fd: &OwnedFd,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads size_of::<T>() bytes behind a reference that outlives the call.
    let ret = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn word(b: &[u8], at: usize) -> u32 {
    b.get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_ne_bytes)
}

fn half(b: &[u8], at: usize) -> u16 {
    b.get(at..at + 2)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    /// What the kernel doesn't take waits, in order; nothing is sent twice.
    #[test]
    fn a_full_queue_keeps_the_rest() {
        let (a, b) = UnixDatagram::pair().unwrap();
        b.set_nonblocking(true).unwrap();
        let mut tx = PacketTx {
            shared: Arc::new(Shared {
                fd: a.into(),
                ifindex: 1,
            }),
            ring: None,
            mtu: Arc::new(AtomicU32::new(1500)),
            batch: Vec::new(),
            lens: Vec::new(),
            stats: TxStats::default(),
        };
        let vnet = [0; VNET_HDR_LEN];
        let mut asked = 0u32;
        while tx.flush() {
            for _ in 0..TX_BATCH {
                tx.queue(&vnet, &asked.to_be_bytes());
                asked += 1;
            }
            assert!(asked < 1_000_000, "the socket takes everything");
        }
        assert!(!tx.is_empty());
        // the batch is bounded: what comes on top is lost, and counted
        let before = tx.stats().dropped;
        for _ in 0..2 * TX_BATCH {
            tx.queue(&vnet, &asked.to_be_bytes());
            asked += 1;
        }
        assert!(tx.stats().dropped - before >= TX_BATCH as u64);
        let mut seen = Vec::new();
        let mut buffer = [0; 64];
        loop {
            while let Ok(n) = b.recv(&mut buffer) {
                let number = buffer[..n].last_chunk::<4>().unwrap();
                seen.push(u32::from_be_bytes(*number));
            }
            if tx.flush() {
                break;
            }
        }
        while let Ok(n) = b.recv(&mut buffer) {
            seen.push(u32::from_be_bytes(*buffer[..n].last_chunk::<4>().unwrap()));
        }
        assert!(seen.is_sorted_by(|a, b| a < b));
        assert_eq!(seen.len() as u64, tx.stats().frames);
        assert_eq!(tx.stats().frames + tx.stats().dropped, u64::from(asked));
    }
}

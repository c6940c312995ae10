//! The sending ring of a packet socket (Documentation/networking/packet_mmap.rst).
//!
//! ```text
//!   SendRing::put(…) ──► slot: header │ virtio_net_hdr │ frame ──► flush(): one sendto ──► netdev
//!                         status SEND_REQUEST                        └─ AVAILABLE again when the frame is freed
//! ```
//!
//! For each frame of `sendmmsg` the kernel copies a header, a vector and the bytes out of the process, each with its
//! checks; here it reads a slot that it has mapped itself. Frames are asked for in one piece (`hdr_len` is all of it): in
//! pages of the ring, as the kernel would have it otherwise, most receivers copy them once more.
//!
//! What the kernel doesn't check on this way is for the caller to check: the netdev's MTU.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::packet_socket::{self, TxStats, VNET_HDR_LEN};

const RING_BYTES: u32 = 1 << 20;
/// `struct tpacket2_hdr`, aligned: where the data of a slot begins. The status is its first word, the length its second.
const HEADER: usize = 32;
/// An Ethernet header: what is shorter is no frame.
const SHORTEST: usize = 14;
/// flags, gso_type, hdr_len, gso_size, csum_start, csum_offset; linux/virtio_net.h
const NEEDS_CSUM: u8 = 1;
/// A header longer than the frame: the kernel skips such a slot (PACKET_LOSS).
const UNSENDABLE: [u8; 2] = [0xff, 0xff];

/// The ring and a socket for it alone: one that has a ring can't send otherwise.
#[derive(Debug)]
pub(crate) struct SendRing {
    fd: OwnedFd,
    map: MmapRaw,
    slot_size: usize,
    slots: usize,
    /// The slot that the next frame goes to.
    next: usize,
    /// Slots before `next` that the kernel has not looked at.
    waiting: usize,
    /// The first of them is one that the kernel is to skip.
    skipped: bool,
}

impl SendRing {
    /// On interface `ifindex` of the calling thread's network namespace. `slot_size` is a power of two, at most 64 KiB.
    pub(crate) fn open(ifindex: u32, slot_size: u32) -> io::Result<Self> {
        let fd = packet_socket::sending_socket()?;
        // What it can't read it skips, and goes on
        packet_socket::set_option(&fd, libc::SOL_PACKET, libc::PACKET_LOSS, &1i32)?;
        let request = libc::tpacket_req {
            tp_block_size: 64 << 10,
            tp_block_nr: RING_BYTES / (64 << 10),
            tp_frame_size: slot_size,
            tp_frame_nr: RING_BYTES / slot_size,
        };
        packet_socket::set_option(&fd, libc::SOL_PACKET, libc::PACKET_TX_RING, &request)?;
        let map = MmapOptions::new().len(RING_BYTES as usize).map_raw(&fd)?;
        packet_socket::bind(&fd, ifindex, 0)?;
        Ok(SendRing {
            fd,
            map,
            slot_size: slot_size as usize,
            slots: (RING_BYTES / slot_size) as usize,
            next: 0,
            waiting: 0,
            skipped: false,
        })
    }

    /// Frames that wait for a flush.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes a frame for the next flush. False: there is no free slot, or this frame is not for a ring.
    #[inline]
    pub(crate) fn put(&mut self, vnet: &[u8; VNET_HDR_LEN], frame: &[u8]) -> bool {
        let len = VNET_HDR_LEN + frame.len();
        let busy = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING;
        if HEADER + len > self.slot_size
            || frame.len() < SHORTEST
            || !plain(vnet, frame.len())
            || self.status(self.next).load(Ordering::Acquire) & busy != 0
        {
            return false;
        }
        let mut vnet = *vnet;
        vnet[2..4].copy_from_slice(&(frame.len() as u16).to_le_bytes());
        // SAFETY: the slot lies inside the mapping (next < slots, slots * slot_size is its length), and HEADER + len bytes
        // inside the slot. Its status says that it is ours: the kernel reads it only once that is SEND_REQUEST, and
        // `&mut self` keeps other writers out. Neither `vnet` nor `frame` can be part of the mapping: it is lent to nobody.
        unsafe {
            let slot = self.map.as_mut_ptr().add(self.next * self.slot_size);
            slot.add(4).cast::<u32>().write(len as u32);
            let data = slot.add(HEADER);
            std::ptr::copy_nonoverlapping(vnet.as_ptr(), data, VNET_HDR_LEN);
            std::ptr::copy_nonoverlapping(frame.as_ptr(), data.add(VNET_HDR_LEN), frame.len());
        }
        self.status(self.next)
            .store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next = self.after(self.next, 1);
        self.waiting += 1;
        true
    }

    /// Sends what waits. False: the kernel takes nothing more for now, and the rest waits. What the netdev refuses for
    /// another reason is dropped and counted.
    pub(crate) fn flush(&mut self, stats: &mut TxStats) -> bool {
        while self.waiting > 0 {
            let none = std::ptr::null();
            let fd = self.fd.as_raw_fd();
            // SAFETY: no buffer, length 0, no address: the kernel reads slots of its own ring only.
            let ret = unsafe { libc::sendto(fd, none, 0, libc::MSG_DONTWAIT, none.cast(), 0) };
            let error = match ret < 0 {
                true => io::Error::last_os_error().raw_os_error(),
                false => None,
            };
            self.settle(stats);
            match error {
                _ if self.waiting == 0 => {}
                None | Some(libc::EAGAIN) => return false,
                // Down or gone: the others would fail too
                Some(libc::ENETDOWN | libc::ENXIO) => self.take_back(stats),
                Some(_) if self.skipped => self.take_back(stats),
                Some(_) => self.skip_first(stats),
            }
        }
        true
    }

    /// Counts what the kernel has taken.
    fn settle(&mut self, stats: &mut TxStats) {
        while self.waiting > 0 {
            let status = self.status(self.first()).load(Ordering::Acquire);
            if status & libc::TP_STATUS_SEND_REQUEST != 0 {
                return;
            }
            self.waiting -= 1;
            stats.frames += u64::from(!std::mem::take(&mut self.skipped));
        }
    }

    /// All that waits is lost; the kernel goes on where the first of it was, and so does this.
    fn take_back(&mut self, stats: &mut TxStats) {
        stats.dropped += (self.waiting - usize::from(std::mem::take(&mut self.skipped))) as u64;
        let first = self.first();
        for n in 0..self.waiting {
            self.status(self.after(first, n))
                .store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
        }
        self.next = first;
        self.waiting = 0;
    }

    /// The netdev dropped the first frame that waits, which the kernel would send again.
    fn skip_first(&mut self, stats: &mut TxStats) {
        stats.dropped += u64::from(!std::mem::replace(&mut self.skipped, true));
        let at = self.first() * self.slot_size + HEADER + 2;
        // SAFETY: inside the slot and so inside the mapping; the slot waits for the kernel, which looks at it in `flush` only,
        // with `&mut self`.
        unsafe {
            self.map
                .as_mut_ptr()
                .add(at)
                .cast::<[u8; 2]>()
                .write(UNSENDABLE)
        };
    }

    /// The first slot that waits.
    fn first(&self) -> usize {
        self.after(self.next, self.slots - self.waiting)
    }

    #[inline]
    fn after(&self, slot: usize, n: usize) -> usize {
        // A power of two: slots are, and the ring is
        (slot + n) & (self.slots - 1)
    }

    #[inline]
    fn status(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: the first word of a slot is its status; it is 4-byte aligned, inside the mapping, lives as long as
        // `self`, and both sides access it atomically.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(slot * self.slot_size).cast()) }
    }
}

/// No super-frame, and a checksum to be completed lies inside the frame: nothing that the kernel would refuse.
#[inline]
fn plain(vnet: &[u8; VNET_HDR_LEN], len: usize) -> bool {
    let [flags, gso, _, _, _, _, s0, s1, o0, o1] = *vnet;
    let end = usize::from(u16::from_le_bytes([s0, s1]))
        + usize::from(u16::from_le_bytes([o0, o1]))
        + size_of::<u16>();
    gso == 0 && (flags & NEEDS_CSUM == 0 || end <= len)
}

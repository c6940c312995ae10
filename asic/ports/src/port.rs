//! The two halves of a port, whatever its kind.

use std::os::fd::BorrowedFd;

use tandem_packet::Frame;

use crate::dgram::{DgramRx, DgramTx};
use crate::packet::{PacketRx, PacketTx};
use crate::pcap::{PcapRx, PcapTx};
use crate::tap::{TapRx, TapTx};
use crate::xdp::{XdpRx, XdpTx};

/// What a receiving half counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxStats {
    /// Frames handed to the pipeline (a super-frame counts once).
    pub frames: u64,
    /// Lost because a queue before the switch was full.
    pub overrun: u64,
    /// Lost because they could not be read whole or their offload marks made no sense.
    pub malformed: u64,
}

/// What a sending half counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxStats {
    /// Frames that left (a super-frame counts once unless it was segmented here).
    pub frames: u64,
    /// Frames that the cable did not take: queue full, netdev down, longer than its MTU.
    pub dropped: u64,
}

/// Receiving half.
pub enum RxPort {
    /// A netdev, by a packet socket.
    Packet(PacketRx),
    /// A netdev, by an AF_XDP socket.
    Xdp(Box<XdpRx>),
    /// A TAP.
    Tap(TapRx),
    /// A process.
    Dgram(DgramRx),
    /// A capture.
    Pcap(Box<PcapRx>),
}

/// Sending half.
pub enum TxPort {
    /// A netdev, by a packet socket.
    Packet(PacketTx),
    /// A netdev, by an AF_XDP socket.
    Xdp(Box<XdpTx>),
    /// A TAP.
    Tap(TapTx),
    /// A process.
    Dgram(Box<DgramTx>),
    /// A capture.
    Pcap(Box<PcapTx>),
}

impl RxPort {
    /// Descriptor that becomes readable when there are frames; `None` for a capture, which has
    /// [`RxPort::due`].
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            RxPort::Packet(p) => Some(p.fd()),
            RxPort::Xdp(p) => Some(p.fd()),
            RxPort::Tap(p) => Some(p.fd()),
            RxPort::Dgram(p) => Some(p.fd()),
            RxPort::Pcap(_) => None,
        }
    }

    /// When a capture's next frame is due; `None` for other kinds and at the end.
    pub fn due(&mut self, now_ns: u64) -> Option<u64> {
        match self {
            RxPort::Pcap(p) => p.due(now_ns),
            _ => None,
        }
    }

    /// The far end is gone for good: a capture has ended.
    pub fn ended(&self) -> bool {
        matches!(self, RxPort::Pcap(p) if p.ended())
    }

    /// Takes a pending error off the descriptor, so that it doesn't wake up again.
    pub fn take_error(&self) {
        if let RxPort::Packet(p) = self {
            p.take_error();
        }
    }

    /// Hands up to `budget` frames to `f`, in order, and returns how many. `scratch` has
    /// [`crate::SCRATCH`] bytes.
    #[inline]
    pub fn receive<F>(&mut self, now_ns: u64, budget: usize, scratch: &mut [u8], f: &mut F) -> usize
    where
        F: FnMut(&mut Frame<'_>),
    {
        match self {
            RxPort::Packet(p) => p.receive(budget, scratch, f),
            RxPort::Xdp(p) => p.receive(budget, scratch, f),
            RxPort::Tap(p) => p.receive(budget, scratch, f),
            RxPort::Dgram(p) => p.receive(budget, scratch, f),
            RxPort::Pcap(p) => p.receive(now_ns, budget, f),
        }
    }

    /// Shows what the next [`RxPort::receive`] will hand out, where that lies in memory already.
    pub fn lookahead(&self, budget: usize, f: impl FnMut(&[u8])) {
        match self {
            RxPort::Packet(p) => p.lookahead(budget, f),
            RxPort::Xdp(p) => p.lookahead(budget, f),
            RxPort::Tap(_) | RxPort::Dgram(_) | RxPort::Pcap(_) => {}
        }
    }

    /// Lets the headers of up to `budget` frames that wait come into the cache, where that can be.
    #[inline]
    pub fn bring(&self, budget: usize) {
        if let RxPort::Xdp(p) = self {
            p.bring(budget);
        }
    }

    /// Counters; may ask the kernel.
    pub fn stats(&mut self) -> RxStats {
        match self {
            RxPort::Packet(p) => p.stats(),
            RxPort::Xdp(p) => p.stats(),
            RxPort::Tap(p) => p.stats(),
            RxPort::Dgram(p) => p.stats(),
            RxPort::Pcap(p) => p.stats(),
        }
    }
}

impl TxPort {
    /// Sends a frame, at the latest at the next [`TxPort::flush`]; order is kept. A frame with
    /// offload marks goes as it is if the cable takes that, else completed and segmented.
    #[inline]
    pub fn queue(&mut self, frame: &Frame<'_>, now_ns: u64) {
        match self {
            TxPort::Packet(p) => p.queue(frame),
            TxPort::Xdp(p) => p.queue(frame),
            TxPort::Tap(p) => p.queue(frame),
            TxPort::Dgram(p) => p.queue(frame),
            TxPort::Pcap(p) => p.queue(frame, now_ns),
        }
    }

    /// Lets go of everything queued. False: the cable takes nothing more for now, and the rest waits for the next call.
    #[inline]
    pub fn flush(&mut self) -> bool {
        match self {
            TxPort::Packet(p) => return p.flush(),
            TxPort::Xdp(p) => return p.flush(),
            TxPort::Tap(_) | TxPort::Dgram(_) => {}
            TxPort::Pcap(p) => p.flush(),
        }
        true
    }

    /// Counters.
    pub fn stats(&self) -> TxStats {
        match self {
            TxPort::Packet(p) => p.stats(),
            TxPort::Xdp(p) => p.stats(),
            TxPort::Tap(p) => p.stats(),
            TxPort::Dgram(p) => p.stats(),
            TxPort::Pcap(p) => p.stats(),
        }
    }
}

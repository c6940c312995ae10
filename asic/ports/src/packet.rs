//! AF_PACKET ports: any netdev.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tandem_linux::ifreq::Features;
use tandem_linux::packet_socket as socket;
use tandem_packet::{Buffer, Frame, Gso, HEADROOM, Offload, segment};

use crate::port::{RxStats, TxStats};

const TPID_8021Q: [u8; 2] = [0x81, 0x00];
const TPID_8021AD: [u8; 2] = [0x88, 0xa8];

/// Which super-frames the netdev takes whole. Shared with the thread that watches the netdev.
///
/// PACKET_QDISC_BYPASS drops a frame that the kernel would have to segment in software
/// (`__dev_direct_xmit`), so what the netdev can't do is segmented here.
#[derive(Debug, Default)]
pub struct Takes(AtomicU32);

impl Takes {
    const TCP4: u32 = 1;
    const TCP6: u32 = 2;
    const ECN: u32 = 4;
    const UDP: u32 = 8;
    /// Also behind one VLAN tag.
    const TAGGED: u32 = 16;

    /// Sets it from the netdev's features. `vlan` says that they hold for tagged frames too,
    /// which the kernel tells nobody; veth does.
    pub fn set(&self, f: Features, vlan: bool) {
        let mut bits = 0;
        if f.csum {
            bits = (u32::from(f.tso4) * Self::TCP4)
                | (u32::from(f.tso6) * Self::TCP6)
                | (u32::from(f.tso_ecn) * Self::ECN)
                | (u32::from(f.uso) * Self::UDP)
                | (u32::from(vlan) * Self::TAGGED);
        }
        self.0.store(bits, Ordering::Relaxed);
    }

    fn whole(&self, frame: &Frame<'_>) -> bool {
        let mut need = match frame.offload.gso {
            None => return true,
            Some(Gso::Tcp4) => Self::TCP4,
            Some(Gso::Tcp6) => Self::TCP6,
            Some(Gso::UdpL4) => Self::UDP,
        };
        if frame.offload.ecn {
            need |= Self::ECN;
        }
        let tag = |at: usize| {
            frame
                .bytes()
                .get(at..at + 2)
                .is_some_and(|t| t == TPID_8021Q || t == TPID_8021AD)
        };
        if tag(12) {
            if tag(16) {
                // Linux segments double-tagged frames in software, always (vlan_features_check)
                return false;
            }
            need |= Self::TAGGED;
        }
        self.0.load(Ordering::Relaxed) & need == need
    }
}

/// Receiving half.
pub struct PacketRx {
    socket: socket::PacketRx,
    malformed: u64,
}

/// Sending half.
pub struct PacketTx {
    socket: socket::PacketTx,
    takes: Arc<Takes>,
    scratch: Buffer,
    malformed: u64,
}

/// The two halves of a port on a packet socket.
pub fn halves(
    (rx, tx): (socket::PacketRx, socket::PacketTx),
    takes: Arc<Takes>,
) -> (PacketRx, PacketTx) {
    (
        PacketRx {
            socket: rx,
            malformed: 0,
        },
        PacketTx {
            socket: tx,
            takes,
            scratch: Buffer::new(),
            malformed: 0,
        },
    )
}

impl PacketRx {
    /// Readable when there are frames.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes a pending error (netdev down) off the socket.
    pub fn take_error(&self) {
        if let Some(e) = self.socket.take_error() {
            tracing::debug!("packet socket: {e}");
        }
    }

    /// Hands up to `budget` frames to `f`, in the ring's own memory, tags restored.
    #[inline]
    pub fn receive<F>(&mut self, budget: usize, scratch: &mut [u8], f: &mut F) -> usize
    where
        F: FnMut(&mut Frame<'_>),
    {
        let malformed = &mut self.malformed;
        self.socket.receive(budget, scratch, HEADROOM, &mut |rx| {
            let Some(offload) = Offload::from_virtio(&rx.vnet) else {
                *malformed += 1;
                return;
            };
            let mut frame = Frame::new(rx.mem, rx.start, rx.end, offload);
            if let Some((tpid, tci)) = rx.tag
                && !frame.push_tag(tpid, tci)
            {
                *malformed += 1;
                return;
            }
            f(&mut frame);
        })
    }

    /// Shows the frames that the next [`PacketRx::receive`] will hand out; see [`tandem_linux::packet_socket`].
    pub fn lookahead(&self, budget: usize, f: impl FnMut(&[u8])) {
        self.socket.lookahead(budget, f);
    }

    /// Counters; asks the kernel for the ring's overruns.
    pub fn stats(&mut self) -> RxStats {
        let s = self.socket.stats();
        RxStats {
            frames: s.frames.saturating_sub(self.malformed),
            overrun: s.ring_full,
            malformed: s.truncated + self.malformed,
        }
    }
}

impl PacketTx {
    /// Queues a frame.
    #[inline]
    pub fn queue(&mut self, frame: &Frame<'_>) {
        if self.takes.whole(frame) {
            self.socket.queue(&frame.offload.to_virtio(), frame.bytes());
        } else {
            self.cut(frame);
        }
    }

    #[cold]
    fn cut(&mut self, frame: &Frame<'_>) {
        let PacketTx {
            socket,
            scratch,
            malformed,
            ..
        } = self;
        let none = Offload::NONE.to_virtio();
        if segment::segment_frame(frame, scratch, |bytes| socket.queue(&none, bytes)).is_err() {
            *malformed += 1;
        }
    }

    /// Sends what is queued. False: the netdev takes nothing more for now, and the rest waits.
    #[inline]
    pub fn flush(&mut self) -> bool {
        self.socket.flush()
    }

    /// Counters.
    pub fn stats(&self) -> TxStats {
        let s = self.socket.stats();
        TxStats {
            frames: s.frames,
            dropped: s.dropped + self.malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_with(gso: Option<Gso>, tags: usize, mem: &mut [u8]) -> Frame<'_> {
        for t in 0..tags {
            mem[64 + 12 + 4 * t..64 + 14 + 4 * t].copy_from_slice(&TPID_8021Q);
        }
        Frame::new(
            mem,
            64,
            164,
            Offload {
                gso,
                gso_size: 10,
                ..Offload::NONE
            },
        )
    }

    #[test]
    fn only_what_the_netdev_segments_goes_whole() {
        let takes = Takes::default();
        let mut m = [0u8; 200];
        assert!(takes.whole(&frame_with(None, 0, &mut m)));
        assert!(!takes.whole(&frame_with(Some(Gso::Tcp4), 0, &mut m)));
        let f = Features {
            tso4: true,
            csum: true,
            ..Features::default()
        };
        takes.set(f, false);
        assert!(takes.whole(&frame_with(Some(Gso::Tcp4), 0, &mut m)));
        assert!(!takes.whole(&frame_with(Some(Gso::Tcp6), 0, &mut m)));
        assert!(!takes.whole(&frame_with(Some(Gso::Tcp4), 1, &mut m)));
        takes.set(f, true);
        assert!(takes.whole(&frame_with(Some(Gso::Tcp4), 1, &mut m)));
        assert!(!takes.whole(&frame_with(Some(Gso::Tcp4), 2, &mut m)));
        takes.set(Features { csum: false, ..f }, true);
        assert!(!takes.whole(&frame_with(Some(Gso::Tcp4), 1, &mut m)));
    }
}

//! TAP ports: the TAP netdev's network stack is the far end of the cable.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tandem_linux::tap::{Tap, TapOptions};
use tandem_packet::{Frame, HEADROOM, Offload, VIRTIO_NET_HDR_LEN};

use crate::port::{RxStats, TxStats};

/// Receiving half.
pub struct TapRx {
    tap: Arc<Tap>,
    stats: RxStats,
}

/// Sending half.
pub struct TapTx {
    tap: Arc<Tap>,
    stats: TxStats,
}

/// Makes the TAP netdev `name` in the calling thread's network namespace, with partial checksums
/// and super-frames both ways, and carrier off.
pub fn open(name: &str) -> io::Result<Arc<Tap>> {
    let tap = Tap::open(
        name,
        TapOptions {
            multi_queue: false,
            vnet_hdr: true,
        },
    )?;
    tap.set_offload(true, true)?;
    Ok(Arc::new(tap))
}

/// The two halves of a TAP made by [`open`].
pub fn halves(tap: &Arc<Tap>) -> (TapRx, TapTx) {
    (
        TapRx {
            tap: Arc::clone(tap),
            stats: RxStats::default(),
        },
        TapTx {
            tap: Arc::clone(tap),
            stats: TxStats::default(),
        },
    )
}

impl TapRx {
    /// Readable when there are frames.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }

    /// Hands up to `budget` frames to `f`.
    pub fn receive<F>(&mut self, budget: usize, scratch: &mut [u8], f: &mut F) -> usize
    where
        F: FnMut(&mut Frame<'_>),
    {
        let mut done = 0;
        while done < budget {
            // The virtio header lands in the headroom, the frame right behind it
            let at = HEADROOM - VIRTIO_NET_HDR_LEN;
            let Some(room) = scratch.get_mut(at..) else {
                break;
            };
            let Ok(n) = self.tap.read(room) else {
                break;
            };
            done += 1;
            let vnet = room
                .get(..VIRTIO_NET_HDR_LEN.min(n))
                .and_then(|b| <[u8; VIRTIO_NET_HDR_LEN]>::try_from(b).ok());
            match vnet.as_ref().and_then(Offload::from_virtio) {
                Some(offload) => {
                    self.stats.frames += 1;
                    f(&mut Frame::new(scratch, HEADROOM, at + n, offload));
                }
                None => self.stats.malformed += 1,
            }
        }
        done
    }

    /// Counters.
    pub fn stats(&self) -> RxStats {
        self.stats
    }
}

impl TapTx {
    /// Writes a frame; the kernel segments and checksums it where its way needs that.
    pub fn queue(&mut self, frame: &Frame<'_>) {
        let vnet = frame.offload.to_virtio();
        let parts = [io::IoSlice::new(&vnet), io::IoSlice::new(frame.bytes())];
        match self.tap.writev(&parts) {
            Ok(_) => self.stats.frames += 1,
            Err(_) => self.stats.dropped += 1,
        }
    }

    /// Counters.
    pub fn stats(&self) -> TxStats {
        self.stats
    }
}

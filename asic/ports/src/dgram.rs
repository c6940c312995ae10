//! Unix datagram ports: a cable to a process, one datagram per frame. The NIC of a virtual machine
//! is cabled by them without privileges: `-netdev dgram,local.type=unix,local.path=REMOTE,
//! remote.type=unix,remote.path=LOCAL` of QEMU (7.2 and newer).
//!
//! ```text
//!   asicd ── LOCAL ◄──── datagrams ──── REMOTE ── QEMU
//!              └───────── datagrams ──────►┘
//! ```
//!
//! The link is up while somebody has REMOTE open. There are no offload marks: a frame is completed
//! and cut here, as on a wire.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tandem_packet::{Buffer, Frame, HEADROOM, Offload, segment};

use crate::port::{RxStats, TxStats};

/// An Ethernet header; less is no frame.
const SHORTEST: usize = 14;

/// Receiving half.
pub struct DgramRx {
    socket: Arc<Socket>,
    stats: RxStats,
}

/// Sending half.
pub struct DgramTx {
    socket: Arc<Socket>,
    scratch: Buffer,
    stats: TxStats,
}

/// Our end; its file goes with it.
pub struct Socket {
    socket: UnixDatagram,
    local: PathBuf,
    remote: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.local);
    }
}

impl Socket {
    /// Makes LOCAL (0600), over the leftover of a process that ended. One that is in use, and a
    /// file that is no socket, stay what they are.
    pub fn open(local: &Path, remote: &Path) -> io::Result<Arc<Self>> {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", local.display()));
        match std::fs::symlink_metadata(local) {
            Ok(m) if !m.file_type().is_socket() => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    format!("{} is there and is no socket", local.display()),
                ));
            }
            Ok(_) if answers(local) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    format!("{} is in use by another process", local.display()),
                ));
            }
            Ok(_) => std::fs::remove_file(local).map_err(named)?,
            Err(_) => {}
        }
        let socket = UnixDatagram::bind(local).map_err(named)?;
        std::fs::set_permissions(local, std::fs::Permissions::from_mode(0o600)).map_err(named)?;
        socket.set_nonblocking(true)?;
        Ok(Arc::new(Socket {
            socket,
            local: local.into(),
            remote: remote.into(),
        }))
    }

    /// Somebody has the far end open.
    pub fn linked(&self) -> bool {
        answers(&self.remote)
    }
}

/// A socket of that name is open.
fn answers(path: &Path) -> bool {
    UnixDatagram::unbound().is_ok_and(|s| s.connect(path).is_ok())
}

/// The two halves of a port.
pub fn halves(socket: &Arc<Socket>) -> (DgramRx, DgramTx) {
    (
        DgramRx {
            socket: Arc::clone(socket),
            stats: RxStats::default(),
        },
        DgramTx {
            socket: Arc::clone(socket),
            scratch: Buffer::new(),
            stats: TxStats::default(),
        },
    )
}

impl DgramRx {
    /// Readable when there are frames.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.socket.as_fd()
    }

    /// Hands up to `budget` frames to `f`.
    pub fn receive<F>(&mut self, budget: usize, scratch: &mut [u8], f: &mut F) -> usize
    where
        F: FnMut(&mut Frame<'_>),
    {
        let mut done = 0;
        while done < budget {
            let Some(room) = scratch.get_mut(HEADROOM..) else {
                break;
            };
            let most = room.len();
            let Ok(n) = self.socket.socket.recv(room) else {
                break;
            };
            done += 1;
            // A datagram that fills the room may have been longer
            if n < SHORTEST || n == most {
                self.stats.malformed += 1;
                continue;
            }
            self.stats.frames += 1;
            f(&mut Frame::new(
                scratch,
                HEADROOM,
                HEADROOM + n,
                Offload::NONE,
            ));
        }
        done
    }

    /// Counters.
    pub fn stats(&self) -> RxStats {
        self.stats
    }
}

impl DgramTx {
    /// Sends a frame as it would be on the wire: segmented, checksummed. Nobody there, or no room
    /// with the receiver: dropped.
    pub fn queue(&mut self, frame: &Frame<'_>) {
        let DgramTx {
            socket,
            scratch,
            stats,
        } = self;
        let cut = segment::segment_frame(frame, scratch, |bytes| {
            match socket.socket.send_to(bytes, &socket.remote) {
                Ok(_) => stats.frames += 1,
                Err(_) => stats.dropped += 1,
            }
        });
        if cut.is_err() {
            self.stats.dropped += 1;
        }
    }

    /// Counters.
    pub fn stats(&self) -> TxStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tandem-dgram-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn frames_go_both_ways_and_odd_ones_are_counted() {
        let dir = folder("both");
        let (local, remote) = (dir.join("a"), dir.join("b"));
        let socket = Socket::open(&local, &remote).unwrap();
        assert!(!socket.linked(), "nobody there");
        let (mut rx, mut tx) = halves(&socket);
        let mut memory = vec![0; crate::SCRATCH];
        let mut frame = [0u8; 60];
        frame[0] = 2;
        memory[HEADROOM..HEADROOM + 60].copy_from_slice(&frame);
        tx.queue(&Frame::new(
            &mut memory,
            HEADROOM,
            HEADROOM + 60,
            Offload::NONE,
        ));
        assert_eq!((tx.stats().frames, tx.stats().dropped), (0, 1));

        let far = UnixDatagram::bind(&remote).unwrap();
        assert!(socket.linked());
        memory[HEADROOM..HEADROOM + 60].copy_from_slice(&frame);
        tx.queue(&Frame::new(
            &mut memory,
            HEADROOM,
            HEADROOM + 60,
            Offload::NONE,
        ));
        let mut got = [0; 100];
        assert_eq!(far.recv(&mut got).unwrap(), 60);
        assert_eq!(got[..60], frame);

        far.send_to(&frame, &local).unwrap();
        far.send_to(&frame[..13], &local).unwrap();
        let mut seen = Vec::new();
        let n = rx.receive(9, &mut memory, &mut |f| seen.push(f.bytes().to_vec()));
        assert_eq!((n, seen), (2, vec![frame.to_vec()]));
        assert_eq!((rx.stats().frames, rx.stats().malformed), (1, 1));
        drop((socket, rx, tx));
        assert!(!local.exists(), "its file goes with it");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn leftovers_are_taken_and_nothing_else() {
        let dir = folder("left");
        let local = dir.join("a");
        drop(UnixDatagram::bind(&local).unwrap());
        let first = Socket::open(&local, &dir.join("b")).unwrap();
        let said = |r: io::Result<Arc<Socket>>| r.err().unwrap().to_string();
        assert!(said(Socket::open(&local, &dir.join("b"))).contains("in use"));
        drop(first);
        std::fs::write(&local, "precious").unwrap();
        assert!(said(Socket::open(&local, &dir.join("b"))).contains("no socket"));
        assert_eq!(std::fs::read(&local).unwrap(), b"precious");
        std::fs::remove_dir_all(dir).unwrap();
    }
}

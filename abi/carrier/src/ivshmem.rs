//! The carrier between a VM and asicd: one memory that a server owns, doorbells between its peers.
//!
//! ```text
//!   VM's driver            tandem-ivshmem-server                       asicd
//!   BAR2 ◄── QEMU ◄── memory, peers' eventfds ──► Peer ──► Seat in DeviceSide
//!     │        │               (Unix stream socket)         │
//!     └────────┼────────── region, 32 MiB ──────────────────┘
//!   BAR0 +12: device_peer<<16 | number ──► asicd's eventfd of that number
//!   MSI-X vector of that number        ◄── the VM's eventfd of that number
//! ```
//!
//! The protocol is QEMU's ivshmem, version 0 (QEMU's `docs/specs/ivshmem-spec`): the server alone
//! speaks, in signed 64-bit little-endian numbers, some with a descriptor beside them:
//!
//! | number | descriptor | means |
//! |---|---|---|
//! | 0 | – | the version, first |
//! | id | – | who you are, second |
//! | −1 | memory | third |
//! | a peer's id | eventfd | its next vector, from 0; your own id: yours, to be waited for |
//! | a peer's id | – | it is gone |

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_abi::layout::{DOORBELL_HEADER, REGION_MAX};
use tandem_abi::{Layout, LayoutSpec, Memory, handshake, raw};
use tandem_linux::eventfd::EventFd;
use tandem_linux::fdpass::{self, Received};
use tandem_linux::shm::Shared;

use crate::{Bell, CarrierError, Region, io};

/// The only version there is.
pub const VERSION: i64 = 0;
/// The number that comes with the memory.
pub const MEMORY: i64 = -1;
/// Vectors of one peer at most: more are a broken server.
pub const VECTORS_MAX: usize = 64;
/// Peers beside oneself at most.
pub const PEERS_MAX: usize = 64;
/// Numbers taken in one go.
const BURST: usize = 256;
const SLICE: Duration = Duration::from_millis(10);

/// Server: one number, with its descriptor. `ErrorKind::WouldBlock`: the peer doesn't read.
pub fn send(socket: impl AsFd, number: i64, fd: Option<BorrowedFd<'_>>) -> std::io::Result<()> {
    fdpass::send(socket, &number.to_le_bytes(), fd.as_slice())
}

/// What came from the server.
#[derive(Debug)]
enum Note {
    Nothing,
    Closed,
    Number(i64, Option<OwnedFd>),
    Bad(String),
}

fn receive(socket: impl AsFd) -> Note {
    let mut buf = [0; 8];
    match fdpass::recv(socket, &mut buf) {
        Ok(Received::Nothing) => Note::Nothing,
        Ok(Received::Closed) => Note::Closed,
        Ok(Received::Message(8, mut fds)) if fds.len() < 2 => {
            Note::Number(i64::from_le_bytes(buf), fds.pop())
        }
        Ok(Received::Message(n, fds)) => {
            Note::Bad(format!("{n} bytes with {} descriptors", fds.len()))
        }
        Ok(Received::Truncated) => Note::Bad("descriptors cut off".into()),
        Err(e) => Note::Bad(e.to_string()),
    }
}

/// What happened among the peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerEvent {
    /// This peer is gone; its vectors are forgotten.
    Left(u16),
    /// The server is gone, or said something that can't be. Memory and doorbells live on, but
    /// nobody will say any more who comes and goes. Said once.
    NoServer(String),
}

/// A peer of an ivshmem server: the memory, its own vectors and the other peers'.
#[derive(Debug)]
pub struct Peer {
    socket: Option<OwnedFd>,
    id: u16,
    region: Region,
    own: Vec<Bell>,
    others: BTreeMap<u16, Vec<Bell>>,
}

impl Peer {
    /// Joins the server at `path` and waits for identity and memory, at most `timeout`.
    pub fn join(path: &Path, timeout: Duration) -> Result<Self, CarrierError> {
        let socket = fdpass::connect_stream(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                CarrierError::NoServer(path.into())
            }
            _ => io("connect to the ivshmem server")(e),
        })?;
        let next = || -> Result<(i64, Option<OwnedFd>), CarrierError> {
            for _ in 0..slices(timeout) {
                match receive(&socket) {
                    Note::Number(n, fd) => return Ok((n, fd)),
                    Note::Nothing => wait(&socket)?,
                    Note::Closed => {
                        return Err(CarrierError::Refused(format!(
                            "{}: the ivshmem server takes no further peer",
                            path.display()
                        )));
                    }
                    Note::Bad(why) => return Err(protocol(why)),
                }
            }
            Err(CarrierError::Timeout("ivshmem HELLO"))
        };
        let id = match (next()?, next()?) {
            ((VERSION, None), (id, None)) => {
                u16::try_from(id).map_err(|_| protocol(format!("identity {id}")))?
            }
            ((version, _), _) => {
                return Err(protocol(format!("version {version}, need {VERSION}")));
            }
        };
        let (MEMORY, Some(memory)) = next()? else {
            return Err(protocol("no memory came after the identity"));
        };
        Ok(Peer {
            region: Region::new(Shared::open(memory, REGION_MAX)?),
            socket: Some(socket),
            id,
            own: Vec::new(),
            others: BTreeMap::new(),
        })
    }

    /// Who we are.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The memory.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Our vectors: rung by others, waited for here.
    pub fn own(&self) -> &[Bell] {
        &self.own
    }

    /// The vectors of another peer, to be rung.
    pub fn bells_of(&self, peer: u16) -> Option<&[Bell]> {
        self.others.get(&peer).map(Vec::as_slice)
    }

    /// What to poll for input: the server's socket, while there is one, and our vectors.
    pub fn poll_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let socket = self.socket.iter().map(AsFd::as_fd);
        socket.chain(self.own.iter().map(|b| b.as_ref().as_fd()))
    }

    /// Takes what the server has said. Never sleeps, bounded per call.
    pub fn handle(&mut self) -> Vec<PeerEvent> {
        let mut events = Vec::new();
        for _ in 0..BURST {
            let Some(socket) = &self.socket else {
                break;
            };
            let lost = match receive(socket) {
                Note::Nothing => break,
                Note::Closed => "it closed".into(),
                Note::Bad(why) => why,
                Note::Number(n, fd) => match self.note(n, fd) {
                    Ok(event) => {
                        events.extend(event);
                        continue;
                    }
                    Err(why) => why,
                },
            };
            self.socket = None;
            events.push(PeerEvent::NoServer(lost));
        }
        events
    }

    fn note(&mut self, number: i64, fd: Option<OwnedFd>) -> Result<Option<PeerEvent>, String> {
        let id = u16::try_from(number).map_err(|_| format!("unexpected number {number}"))?;
        let Some(fd) = fd else {
            return Ok(self.others.remove(&id).map(|_| PeerEvent::Left(id)));
        };
        let peers = self.others.len();
        let bells = if id == self.id {
            &mut self.own
        } else if peers < PEERS_MAX || self.others.contains_key(&id) {
            self.others.entry(id).or_default()
        } else {
            return Err(format!("more than {PEERS_MAX} peers"));
        };
        if bells.len() >= VECTORS_MAX {
            return Err(format!("more than {VECTORS_MAX} vectors for peer {id}"));
        }
        let bell = EventFd::from_fd(fd).map_err(|e| format!("vector of peer {id}: {e}"))?;
        bells.push(Arc::new(bell));
        Ok(None)
    }

    /// Waits until `ready` holds, at most `timeout`; what happens meanwhile is handled.
    pub fn wait_until(
        &mut self,
        what: &'static str,
        timeout: Duration,
        mut ready: impl FnMut(&Self) -> bool,
    ) -> Result<(), CarrierError> {
        for _ in 0..slices(timeout) {
            for event in self.handle() {
                if let PeerEvent::NoServer(why) = event {
                    return Err(protocol(format!("the ivshmem server is gone: {why}")));
                }
            }
            if ready(self) {
                return Ok(());
            }
            match &self.socket {
                Some(socket) => wait(socket)?,
                None => return Err(CarrierError::Gone),
            }
        }
        Err(CarrierError::Timeout(what))
    }
}

fn slices(timeout: Duration) -> u128 {
    timeout.as_millis() / SLICE.as_millis() + 1
}

/// One slice at most.
fn wait(socket: &OwnedFd) -> Result<(), CarrierError> {
    let limit = Timespec::try_from(SLICE).ok();
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(io("wait for the ivshmem server")(e.into())),
    }
}

fn protocol(why: impl Into<String>) -> CarrierError {
    CarrierError::Protocol(format!("ivshmem: {}", why.into()))
}

/// The device's place at the server: what outlives the drivers.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) peer: Peer,
    pub(crate) layout: Layout,
    /// Last request seen in the region.
    pub(crate) seen: u32,
}

impl Seat {
    /// Joins, writes the frame (over that of a device process that is gone: its epoch comes back,
    /// to go on from) and wakes whoever waits for a device.
    pub(crate) fn take(
        path: &Path,
        spec: &LayoutSpec,
        timeout: Duration,
    ) -> Result<(Seat, u32), CarrierError> {
        let layout = Layout::new(spec)?;
        let (n_device, _) = layout.doorbells();
        let mut peer = Peer::join(path, timeout)?;
        let have = peer.region.len();
        if have < layout.size {
            return Err(CarrierError::TooSmall {
                need: layout.size,
                have,
            });
        }
        peer.wait_until("its ivshmem vectors", timeout, |p| {
            p.own.len() >= n_device as usize
        })
        .map_err(|e| match (e, peer.own.len()) {
            (CarrierError::Timeout(_), n) if n > 0 => CarrierError::Vectors {
                need: n_device,
                have: n,
            },
            (e, _) => e,
        })?;
        let region = peer.region.clone();
        let mut epoch = 0;
        if handshake::has_frame(&region) {
            let (holder, _) = handshake::peers(&region);
            let state = handshake::state(&region).0;
            if let Some(id) = holder
                && id != peer.id
                && state != raw::TND_DEV_ABSENT
                && peer.others.contains_key(&id)
            {
                return Err(CarrierError::Refused(format!(
                    "{}: peer {id} is the device of this memory already",
                    path.display()
                )));
            }
            // an attach of the process before us is over, whoever saw it
            epoch = handshake::epoch(&region).wrapping_add(1);
        }
        let mut seat = Seat {
            peer,
            layout,
            seen: 0,
        };
        seat.write_frame(spec, epoch);
        // a request that nobody answered was made of another frame
        let (seq, answered) = handshake::last_request(&region);
        seat.seen = seq;
        if !answered {
            let ack = handshake::Ack {
                status: raw::TND_ST_STALE,
                epoch,
            };
            handshake::acknowledge(&region, seq, ack);
        }
        seat.show(raw::TND_DEV_READY, raw::TND_FAIL_NONE);
        Ok((seat, epoch))
    }

    /// Header, directory and platform as they should be; a driver may have spoilt them.
    pub(crate) fn write_frame(&self, spec: &LayoutSpec, epoch: u32) {
        let region = &self.peer.region;
        self.layout.write_absent(region, spec);
        handshake::set_epoch(region, epoch);
        handshake::set_device_peer(region, self.peer.id);
    }

    /// Whether the frame still says what was written into it. The VM can write to it, and so can a
    /// bug of the VM's: a driver that can't read the frame rings doorbell 0.
    pub(crate) fn frame_stands(&self, state: u32, epoch: u32) -> bool {
        let region = &self.peer.region;
        handshake::state(region).0 == state
            && handshake::epoch(region) == epoch
            && handshake::peers(region).0 == Some(self.peer.id)
            && Layout::read(region).is_ok_and(|l| l == self.layout)
    }

    /// Changes the state that everybody sees, and rings everybody.
    pub(crate) fn show(&self, state: u32, reason: u32) {
        handshake::set_state(&self.peer.region, state, reason);
        for bells in self.peer.others.values() {
            if let Some(bell) = bells.get(DOORBELL_HEADER as usize) {
                bell.ring();
            }
        }
    }

    /// The doorbells of the driver that the header names, and what to call it.
    pub(crate) fn driver(&self) -> Result<(Vec<Bell>, String), String> {
        let region = &self.peer.region;
        let (_, n_driver) = self.layout.doorbells();
        let (_, Some(id)) = handshake::peers(region) else {
            return Err("the driver doesn't say which peer it is".into());
        };
        let bells = self.peer.bells_of(id).unwrap_or(&[]);
        if bells.len() < n_driver as usize {
            return Err(format!(
                "driver at peer {id}: needs {n_driver} vectors, has {}",
                bells.len()
            ));
        }
        let name = handshake::driver_name(region);
        Ok((bells.to_vec(), format!("{name} (ivshmem peer {id})")))
    }

    /// Whether `holder`'s doorbells, as [`driver`](Self::driver) gave them, are still those of a
    /// peer that is there.
    pub(crate) fn has(&self, bells: &[Bell]) -> bool {
        self.peer
            .others
            .values()
            .any(|b| match (b.first(), bells.first()) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                _ => false,
            })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.show(raw::TND_DEV_ABSENT, raw::TND_FAIL_NONE);
    }
}

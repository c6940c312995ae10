//! The ivshmem server: owns the memory, introduces peers to each other, and marks the region when
//! the device's process is gone.
//!
//! ```text
//!            connect                    poll: listener, peers, stop
//!   QEMU ───────────► ┌────────────────────────────────────────────┐
//!        ◄─ version, id, memory, others' vectors, own vectors ──── │
//!   asicd ──────────► │ memory (memfd, sealed against shrink, grow) │
//!        ◄─ the same; then who comes and who goes ──────────────── │
//!                     └────────────────────────────────────────────┘
//! ```
//!
//! QEMU maps the first memory it gets for as long as it runs, so that memory belongs to a process
//! that has nothing else to do and no reason to restart: asicd may be replaced under a running VM.
//! The protocol is described in [`tandem_carrier::ivshmem`].
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use tandem_abi::{Memory, handshake, raw};
use tandem_carrier::{EventFd, Region, ivshmem};
use tandem_linux::fdpass::{self, Received};
use tandem_linux::shm::{Shared, ShmError};

/// A VM and its device; a second VM would write into the first one's rings.
pub const PEERS: usize = 2;
/// Bytes of memory at most: 1 GiB.
pub const SIZE_MAX: usize = tandem_abi::layout::REGION_MAX;

/// Why there is no server. Displays as one line.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// ivshmem shows the memory as a PCI BAR.
    #[error("ivshmem memory of {0} bytes: need a power of two from 4096 to {SIZE_MAX}")]
    Size(usize),
    /// Doorbells of one peer.
    #[error("{0} vectors: need 1 to {max}", max = ivshmem::VECTORS_MAX)]
    Vectors(usize),
    /// The socket is taken.
    #[error("{path} is in use by a running server, or is no socket", path = .0.display())]
    InUse(PathBuf),
    /// No memory.
    #[error(transparent)]
    Memory(#[from] ShmError),
    /// The system's answer.
    #[error("{what}: {source}")]
    Io {
        /// The call.
        what: &'static str,
        /// Its error.
        source: std::io::Error,
    },
}

fn io(what: &'static str) -> impl Fn(std::io::Error) -> ServerError {
    move |source| ServerError::Io { what, source }
}

struct Member {
    socket: OwnedFd,
    bells: Vec<EventFd>,
}

/// The server.
pub struct Server {
    listener: OwnedFd,
    path: PathBuf,
    region: Region,
    vectors: usize,
    members: BTreeMap<u16, Member>,
    /// No identity is given twice while anybody remembers it: QEMU (7.2 at least) frees the
    /// vectors of a peer that leaves and uses them again when its number comes back.
    next: u16,
}

impl Server {
    /// Listens at `path`, mode 0600, with fresh zeroed memory of `size` bytes (a power of two, 4096
    /// to [`SIZE_MAX`]); every peer gets `vectors` doorbells.
    pub fn new(path: &Path, size: usize, vectors: usize) -> Result<Self, ServerError> {
        if !size.is_power_of_two() || !(4096..=SIZE_MAX).contains(&size) {
            return Err(ServerError::Size(size));
        }
        if !(1..=ivshmem::VECTORS_MAX).contains(&vectors) {
            return Err(ServerError::Vectors(vectors));
        }
        let listener = fdpass::listen_stream(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::AddrInUse => ServerError::InUse(path.into()),
            _ => io("listen on the ivshmem socket")(e),
        })?;
        Ok(Server {
            listener,
            path: path.into(),
            region: Region::new(Shared::create("tandem-ivshmem", size)?),
            vectors,
            members: BTreeMap::new(),
            next: 0,
        })
    }

    /// Serves until `stop` is rung.
    pub fn serve(&mut self, stop: &EventFd) -> Result<(), ServerError> {
        while !stop.drain() {
            let mut fds = vec![
                PollFd::new(stop, PollFlags::IN),
                PollFd::new(&self.listener, PollFlags::IN),
            ];
            fds.extend(
                self.members
                    .values()
                    .map(|m| PollFd::new(&m.socket, PollFlags::IN)),
            );
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(io("poll")(e.into())),
            }
            drop(fds);
            // who is gone first: a new asicd takes the seat of the old one
            self.listen_to_members();
            self.accept()?;
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), ServerError> {
        let Some(socket) = fdpass::accept(&self.listener).map_err(io("accept"))? else {
            return Ok(());
        };
        match fdpass::peer(&socket) {
            Ok(peer) if peer.uid == fdpass::own_uid() => {}
            Ok(peer) => {
                eprintln!(
                    "refused process {} of user {}: the memory is for user {}",
                    peer.pid,
                    peer.uid,
                    fdpass::own_uid()
                );
                return Ok(());
            }
            Err(e) => {
                eprintln!("refused a peer without credentials: {e}");
                return Ok(());
            }
        }
        if self.members.len() >= PEERS {
            eprintln!("refused a peer: {PEERS} of {PEERS} seats taken, by a VM and its device");
            return Ok(());
        }
        if self.members.is_empty() {
            self.next = 0;
        }
        let id = self.next;
        let Some(next) = id.checked_add(1) else {
            eprintln!("refused a peer: 65535 came and went while the VM ran: start it again");
            return Ok(());
        };
        self.next = next;
        let bells = (0..self.vectors)
            .map(|_| EventFd::new())
            .collect::<Result<Vec<_>, _>>()
            .map_err(io("eventfd"))?;
        println!("peer {id} is here");
        self.members.insert(id, Member { socket, bells });
        // first: what the newcomer does then is done by somebody the others know
        self.tell_others(id);
        if let Err(e) = self.welcome(id) {
            self.remove(id, &e.to_string());
        }
        Ok(())
    }

    fn welcome(&self, id: u16) -> std::io::Result<()> {
        let Some(Member { socket, bells }) = self.members.get(&id) else {
            return Ok(());
        };
        ivshmem::send(socket, ivshmem::VERSION, None)?;
        ivshmem::send(socket, i64::from(id), None)?;
        ivshmem::send(socket, ivshmem::MEMORY, Some(self.region.as_fd()))?;
        for (other, member) in self.members.iter().filter(|(other, _)| **other != id) {
            for bell in &member.bells {
                ivshmem::send(socket, i64::from(*other), Some(bell.as_fd()))?;
            }
        }
        for bell in bells {
            ivshmem::send(socket, i64::from(id), Some(bell.as_fd()))?;
        }
        Ok(())
    }

    /// A newcomer's vectors to everybody else.
    fn tell_others(&mut self, id: u16) {
        let Some(newcomer) = self.members.get(&id) else {
            return;
        };
        let deaf: Vec<u16> = self
            .members
            .iter()
            .filter(|(other, _)| **other != id)
            .filter(|(_, member)| {
                newcomer.bells.iter().any(|bell| {
                    ivshmem::send(&member.socket, i64::from(id), Some(bell.as_fd())).is_err()
                })
            })
            .map(|(other, _)| *other)
            .collect();
        for other in deaf {
            self.remove(other, "it doesn't read what it is told");
        }
    }

    fn listen_to_members(&mut self) {
        let mut gone = Vec::new();
        for (id, member) in &self.members {
            let mut buf = [0; 8];
            match fdpass::recv(&member.socket, &mut buf) {
                Ok(Received::Nothing) => {}
                Ok(Received::Closed) => gone.push((*id, "closed".to_owned())),
                Ok(_) => gone.push((*id, "a peer must not speak".to_owned())),
                Err(e) => gone.push((*id, e.to_string())),
            }
        }
        for (id, why) in gone {
            self.remove(id, &why);
        }
    }

    fn remove(&mut self, id: u16, why: &str) {
        if self.members.remove(&id).is_none() {
            return;
        }
        println!("peer {id} is gone: {why}");
        let mut deaf = Vec::new();
        for (other, member) in &self.members {
            if ivshmem::send(&member.socket, i64::from(id), None).is_err() {
                deaf.push(*other);
            }
        }
        if handshake::has_frame(&self.region) && handshake::peers(&self.region).0 == Some(id) {
            // a device that was killed couldn't say so itself
            handshake::set_state(&self.region, raw::TND_DEV_ABSENT, raw::TND_FAIL_NONE);
            for bell in self.members.values().filter_map(|m| m.bells.first()) {
                bell.ring();
            }
        }
        for other in deaf {
            self.remove(other, "it doesn't read what it is told");
        }
    }

    /// Bytes of the memory.
    pub fn size(&self) -> usize {
        self.region.len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

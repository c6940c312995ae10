//! What the packet thread sleeps on.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::epoll;

/// Who is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A port: frames, or an error of its netdev (`true`).
    Port(u16, bool),
    /// The carrier: doorbell, socket.
    Carrier,
    /// The bell of API requests and port updates.
    Bell,
}

const CARRIER: u64 = 1 << 32;
const BELL: u64 = 2 << 32;

/// An epoll instance; the carrier's descriptors, which come and go, are in one of their own inside.
pub struct Poller {
    epoll: OwnedFd,
    carrier: OwnedFd,
    carrier_fds: Vec<RawFd>,
    events: Vec<epoll::Event>,
}

impl Poller {
    /// With the bell that wakes the thread for requests.
    pub fn new(bell: impl AsFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let carrier = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = epoll::EventFlags::IN;
        epoll::add(&epoll, bell, epoll::EventData::new_u64(BELL), flags)?;
        epoll::add(&epoll, &carrier, epoll::EventData::new_u64(CARRIER), flags)?;
        Ok(Poller {
            epoll,
            carrier,
            carrier_fds: Vec::new(),
            events: Vec::with_capacity(128),
        })
    }

    /// Watches a port's descriptor.
    pub fn add_port(&self, port: u16, fd: BorrowedFd<'_>) -> io::Result<()> {
        let data = epoll::EventData::new_u64(u64::from(port));
        Ok(epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN)?)
    }

    /// Forgets a port's descriptor, before it is closed.
    pub fn remove_port(&self, fd: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// The carrier's descriptors may have changed; `changed` says that they certainly have.
    pub fn set_carrier<'a>(
        &mut self,
        fds: impl Iterator<Item = BorrowedFd<'a>>,
        changed: bool,
    ) -> io::Result<()> {
        let fds: Vec<BorrowedFd<'a>> = fds.collect();
        let numbers: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        if !changed && numbers == self.carrier_fds {
            return Ok(());
        }
        // A number may be another file by now, so all are added anew
        let fresh = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for fd in fds {
            epoll::add(
                &fresh,
                fd,
                epoll::EventData::new_u64(0),
                epoll::EventFlags::IN,
            )?;
        }
        let data = epoll::EventData::new_u64(CARRIER);
        epoll::add(&self.epoll, &fresh, data, epoll::EventFlags::IN)?;
        epoll::delete(&self.epoll, &self.carrier)?;
        self.carrier = fresh;
        self.carrier_fds = numbers;
        Ok(())
    }

    /// Sleeps up to `timeout_ns` (0: only looks) and calls `f` for everybody who is ready.
    pub fn wait(&mut self, timeout_ns: u64, mut f: impl FnMut(Ready)) -> io::Result<()> {
        let limit = Some(Duration::from_nanos(timeout_ns));
        tandem_linux::epoll::wait(&self.epoll, limit, &mut self.events)?;
        for event in &self.events {
            let flags = event.flags;
            f(match event.data.u64() {
                CARRIER => Ready::Carrier,
                BELL => Ready::Bell,
                port => Ready::Port(
                    port as u16,
                    flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP),
                ),
            });
        }
        Ok(())
    }
}

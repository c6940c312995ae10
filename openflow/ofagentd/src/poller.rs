// SPDX-License-Identifier: Apache-2.0
//! What the switch's thread sleeps on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Frames of a port, or an error of its netdev.
    Port(u32),
    /// A controller's connection, or one that is being made.
    Link(u32),
    /// Somebody calls.
    Listener(u32),
    /// Requests of the API, events of cables.
    Bell,
    /// The chip: answers, packets, links, or its end.
    Chip,
}

impl Token {
    fn bits(self) -> u64 {
        let (kind, n) = match self {
            Token::Bell => (0, 0),
            Token::Port(n) => (1, n),
            Token::Link(n) => (2, n),
            Token::Listener(n) => (3, n),
            Token::Chip => (4, 0),
        };
        kind << 32 | u64::from(n)
    }

    fn of(bits: u64) -> Token {
        let n = bits as u32;
        match bits >> 32 {
            1 => Token::Port(n),
            2 => Token::Link(n),
            3 => Token::Listener(n),
            4 => Token::Chip,
            _ => Token::Bell,
        }
    }
}

/// Who is ready, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Who.
    pub token: Token,
    /// It can be read, or has come to its end.
    pub read: bool,
    /// It can be written, or has come to its end.
    pub write: bool,
    /// Something is wrong with it.
    pub error: bool,
}

/// An epoll instance.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

fn flags(read: bool, write: bool) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, read);
    flags.set(epoll::EventFlags::OUT, write);
    flags
}

impl Poller {
    /// Without anybody in it.
    pub fn new() -> io::Result<Poller> {
        Ok(Poller {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(128),
        })
    }

    /// One that can't look after anything, as its descriptor is no epoll instance's.
    #[cfg(test)]
    pub fn broken() -> Poller {
        Poller {
            epoll: std::fs::File::open("/dev/null").unwrap().into(),
            events: Vec::new(),
        }
    }

    /// Looks after a descriptor, too.
    pub fn add(&self, token: Token, fd: impl AsFd, read: bool, write: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.bits());
        Ok(epoll::add(&self.epoll, fd, data, flags(read, write))?)
    }

    /// For something else.
    pub fn change(&self, token: Token, fd: impl AsFd, read: bool, write: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.bits());
        Ok(epoll::modify(&self.epoll, fd, data, flags(read, write))?)
    }

    /// No more; before it is closed.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Sleeps for at most `timeout_ns`, and appends who is ready.
    pub fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        let limit = Some(Duration::from_nanos(timeout_ns));
        tandem_linux::epoll::wait(&self.epoll, limit, &mut self.events)?;
        for event in &self.events {
            let has = |f| { event.flags }.intersects(f);
            let error = has(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            ready.push(Ready {
                token: Token::of(event.data.u64()),
                read: error || has(epoll::EventFlags::IN),
                write: error || has(epoll::EventFlags::OUT),
                error,
            });
        }
        Ok(())
    }
}

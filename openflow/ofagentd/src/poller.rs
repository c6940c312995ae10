// SPDX-License-Identifier: Apache-2.0
//! What the switch's thread sleeps on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;

use crate::lsi::At;

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Frames of a port, or an error of its netdev.
    Port(At),
    /// A controller's connection, or one that is being made: of which switch, and its number.
    Link(u16, u32),
    /// Somebody calls there.
    Listener(u16, u32),
    /// Requests of the API, events of cables.
    Bell,
    /// The chip: answers, packets, links, or its end.
    Chip,
}

impl Token {
    fn bits(self) -> u64 {
        let (kind, lsi, n) = match self {
            Token::Bell => (0, 0, 0),
            Token::Port(at) => (1, at.lsi, at.number),
            Token::Link(lsi, n) => (2, lsi, n),
            Token::Listener(lsi, n) => (3, lsi, n),
            Token::Chip => (4, 0, 0),
        };
        kind << 48 | u64::from(lsi) << 32 | u64::from(n)
    }

    fn of(bits: u64) -> Token {
        let (lsi, number) = ((bits >> 32) as u16, bits as u32);
        match bits >> 48 {
            1 => Token::Port(At { lsi, number }),
            2 => Token::Link(lsi, number),
            3 => Token::Listener(lsi, number),
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

// SPDX-License-Identifier: Apache-2.0
//! Connections, whatever they are made of. None of them blocks.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use crate::tls::{Tls, TlsStream};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

/// A connection.
pub enum Stream {
    /// By TCP.
    Tcp(TcpStream),
    /// By a Unix socket.
    Unix(UnixStream),
    /// By TLS over TCP.
    Tls(Box<TlsStream>),
}

/// Where connections come.
pub enum Listener {
    /// By TCP.
    Tcp(TcpListener),
    /// By a Unix socket.
    Unix(UnixListener),
}

fn open(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        family,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

fn connect(fd: &OwnedFd, to: &impl rustix::net::addr::SocketAddrArg) -> io::Result<()> {
    match rustix::net::connect(fd, to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

impl Stream {
    /// Begins a connection; [`Stream::check`] says what became of it.
    pub fn to_tcp(at: SocketAddr) -> io::Result<Stream> {
        let family = match at {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let fd = open(family)?;
        connect(&fd, &at)?;
        let stream = TcpStream::from(fd);
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    /// As [`Stream::to_tcp`].
    pub fn to_unix(path: &Path) -> io::Result<Stream> {
        let fd = open(AddressFamily::UNIX)?;
        connect(&fd, &rustix::net::SocketAddrUnix::new(path)?)?;
        Ok(Stream::Unix(UnixStream::from(fd)))
    }

    /// The connection was made, or why not.
    pub fn check(&self) -> io::Result<()> {
        sockopt::socket_error(self.as_fd())?.map_err(io::Error::from)
    }

    /// Goes on with TLS's handshake; none: there is nothing to be done any more, else whether it waits to read, to write.
    pub fn handshake(&mut self) -> io::Result<Option<(bool, bool)>> {
        match self {
            Stream::Tls(s) => s.handshake(),
            Stream::Tcp(_) | Stream::Unix(_) => Ok(None),
        }
    }

    /// Who is there.
    pub fn peer(&self) -> Option<String> {
        match self {
            Stream::Tcp(s) => s.peer_addr().ok().map(|a| a.to_string()),
            Stream::Tls(s) => s.tcp.peer_addr().ok().map(|a| a.to_string()),
            Stream::Unix(_) => None,
        }
    }

    /// Bytes may wait in it that its socket does not tell of.
    pub fn is_tls(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }

    /// What is there, 0 at its end.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.read(into),
            Stream::Unix(s) => s.read(into),
            Stream::Tls(s) => s.read(into),
        }
    }

    /// As much as it takes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.write(bytes),
            Stream::Unix(s) => s.write(bytes),
            Stream::Tls(s) => s.write(bytes),
        }
    }

    /// Lets go of what was written; false: not all of it yet.
    pub fn flush(&mut self) -> io::Result<bool> {
        match self {
            Stream::Tls(s) => s.flush(),
            Stream::Tcp(_) | Stream::Unix(_) => Ok(true),
        }
    }

    /// With TLS, if it is TCP: `host` was called, or (none) somebody calls.
    pub fn secure(self, tls: &Tls, host: Option<&str>) -> io::Result<Stream> {
        let Stream::Tcp(tcp) = self else {
            return Ok(self);
        };
        let stream = match host {
            Some(host) => tls.call(host, tcp)?,
            None => tls.answer(tcp)?,
        };
        Ok(Stream::Tls(Box::new(stream)))
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(s) => s.as_fd(),
            Stream::Unix(s) => s.as_fd(),
            Stream::Tls(s) => s.tcp.as_fd(),
        }
    }
}

impl Listener {
    /// At an address of this machine.
    pub fn tcp(at: SocketAddr) -> io::Result<Listener> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(Listener::Tcp(listener))
    }

    /// At a path, for its owner alone; a socket that nobody answers on is replaced.
    pub fn unix(path: &Path) -> anyhow::Result<Listener> {
        let listener = tandem_mgmt::server::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Listener::Unix(listener))
    }

    /// The next who calls; `None` if nobody does.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        let accepted = match self {
            Listener::Tcp(l) => l.accept().and_then(|(s, _)| {
                s.set_nonblocking(true)?;
                s.set_nodelay(true)?;
                Ok(Stream::Tcp(s))
            }),
            Listener::Unix(l) => l.accept().and_then(|(s, _)| {
                s.set_nonblocking(true)?;
                Ok(Stream::Unix(s))
            }),
        };
        match accepted {
            Ok(s) => Ok(Some(s)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(l) => l.as_fd(),
            Listener::Unix(l) => l.as_fd(),
        }
    }
}

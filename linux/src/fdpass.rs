//! Messages with descriptors over Unix sockets (`SOCK_SEQPACKET`, unix(7)).
//!
//! Sockets made here are non-blocking: callers poll. The `_stream` variants are for protocols of others, whose
//! messages have a fixed length (ivshmem).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

/// Descriptors in one message at most; the kernel's own limit is 253.
pub const FDS_MAX: usize = 64;

/// What came in.
#[derive(Debug)]
pub enum Received {
    /// Nothing yet.
    Nothing,
    /// The other side has closed.
    Closed,
    /// A message: its length in the buffer, and its descriptors (close-on-exec).
    Message(usize, Vec<OwnedFd>),
    /// A message that was longer than the buffer, or descriptors that didn't fit into this process.
    Truncated,
}

/// Who is at the other end (`SO_PEERCRED`: as of its connect or listen).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process; 0: of a PID namespace that is not seen from here.
    pub pid: u32,
    /// Effective user.
    pub uid: u32,
}

fn socket(kind: SocketType) -> std::io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        kind,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?)
}

/// Listens at `path` with mode 0600. A socket that nobody answers on is replaced;
/// `ErrorKind::AddrInUse` when somebody does or when something else is in the way.
pub fn listen(path: &Path) -> std::io::Result<OwnedFd> {
    listen_as(path, SocketType::SEQPACKET)
}

/// As [`listen`], `SOCK_STREAM`.
pub fn listen_stream(path: &Path) -> std::io::Result<OwnedFd> {
    listen_as(path, SocketType::STREAM)
}

fn listen_as(path: &Path, kind: SocketType) -> std::io::Result<OwnedFd> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(std::io::ErrorKind::AddrInUse.into());
        }
        Ok(_) if connect_as(path, kind).is_ok() => return Err(std::io::ErrorKind::AddrInUse.into()),
        _ => {}
    }
    // under another name first, so that it never has another mode under its own
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{}", std::process::id()));
    let fresh = Path::new(&fresh);
    let _ = std::fs::remove_file(fresh);
    let fd = socket(kind)?;
    rustix::net::bind(&fd, &SocketAddrUnix::new(fresh)?)?;
    let publish = || -> std::io::Result<()> {
        rustix::fs::chmod(fresh, Mode::RUSR | Mode::WUSR)?;
        rustix::net::listen(&fd, 8)?;
        std::fs::rename(fresh, path)
    };
    publish().inspect_err(|_| {
        let _ = std::fs::remove_file(fresh);
    })?;
    Ok(fd)
}

/// The next connection, if there is one.
pub fn accept(listener: impl AsFd) -> std::io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    match rustix::io::retry_on_intr(|| rustix::net::accept_with(&listener, flags)) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::AGAIN | Errno::CONNABORTED) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Connects; does not wait: a listener whose queue is full answers `ErrorKind::WouldBlock`.
pub fn connect(path: &Path) -> std::io::Result<OwnedFd> {
    connect_as(path, SocketType::SEQPACKET)
}

/// As [`connect`], `SOCK_STREAM`.
pub fn connect_stream(path: &Path) -> std::io::Result<OwnedFd> {
    connect_as(path, SocketType::STREAM)
}

fn connect_as(path: &Path, kind: SocketType) -> std::io::Result<OwnedFd> {
    let fd = socket(kind)?;
    rustix::net::connect(&fd, &SocketAddrUnix::new(path)?)?;
    Ok(fd)
}

/// Two connected sockets, for tests.
pub fn pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?)
}

/// Who is at the other end.
pub fn peer(fd: impl AsFd) -> std::io::Result<Peer> {
    let (pid, uid) = crate::peercred::of(fd)?;
    let pid = pid.and_then(|p| u32::try_from(p.as_raw_nonzero().get()).ok());
    Ok(Peer {
        pid: pid.unwrap_or(0),
        uid,
    })
}

/// The effective user of this process.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Sends one message with descriptors. `ErrorKind::WouldBlock`: the other side doesn't read.
pub fn send(fd: impl AsFd, data: &[u8], fds: &[BorrowedFd<'_>]) -> std::io::Result<()> {
    if fds.len() > FDS_MAX {
        return Err(Errno::INVAL.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::INVAL.into());
    }
    let sent = rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(
            &fd,
            &[IoSlice::new(data)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
    })?;
    if sent == data.len() {
        Ok(())
    } else {
        Err(Errno::MSGSIZE.into())
    }
}

/// Receives one message; never sleeps. Whatever came with a truncated one is closed.
pub fn recv(fd: impl AsFd, buf: &mut [u8]) -> std::io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut receive = || {
        rustix::io::retry_on_intr(|| {
            let mut iov = [IoSliceMut::new(&mut *buf)];
            rustix::net::recvmsg(&fd, &mut iov, &mut control, RecvFlags::CMSG_CLOEXEC)
        })
    };
    // A side that closes with something unread makes the other's next receive fail once with ECONNRESET, before what
    // it said at last (a refusal, say) can be read: that comes with the call after.
    let msg = match receive() {
        Err(Errno::CONNRESET) => receive(),
        other => other,
    };
    let msg = match msg {
        Ok(msg) => msg,
        Err(Errno::AGAIN) => return Ok(Received::Nothing),
        Err(Errno::CONNRESET) => return Ok(Received::Closed),
        Err(e) => return Err(e.into()),
    };
    let mut fds = Vec::new();
    for m in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = m {
            fds.extend(rights);
        }
    }
    if msg
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Ok(Received::Truncated);
    }
    if msg.bytes == 0 && fds.is_empty() {
        return Ok(Received::Closed);
    }
    Ok(Received::Message(msg.bytes, fds))
}

/// True when the other side is gone (hang-up), whatever is still to be read.
pub fn hung_up(fd: impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(&fd, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok()
        && fds
            .iter()
            .any(|f| f.revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_last_word_is_read_even_if_ours_was_not() {
        let (ours, theirs) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        send(&ours, b"hello", &[]).unwrap();
        send(&theirs, b"refused", &[]).unwrap();
        drop(theirs);
        let mut buf = [0u8; 16];
        let Received::Message(n, _) = recv(&ours, &mut buf).unwrap() else {
            panic!("the last word is lost");
        };
        assert_eq!(&buf[..n], b"refused");
        assert!(matches!(recv(&ours, &mut buf).unwrap(), Received::Closed));
    }

    #[test]
    fn descriptors_travel_and_a_hang_up_is_seen() {
        let (a, b) = pair().unwrap();
        let mut buf = [0; 64];
        assert!(matches!(recv(&b, &mut buf).unwrap(), Received::Nothing));
        let (mut r, w) = std::io::pipe().unwrap();
        send(&a, b"take this", &[w.as_fd()]).unwrap();
        drop(w);
        let Received::Message(9, fds) = recv(&b, &mut buf).unwrap() else {
            panic!("no message");
        };
        let [w] = <[OwnedFd; 1]>::try_from(fds).unwrap();
        std::io::Write::write_all(&mut std::fs::File::from(w), b"x").unwrap();
        let mut got = String::new();
        r.read_to_string(&mut got).unwrap();
        assert_eq!(got, "x");
        assert_eq!(peer(&b).unwrap().uid, own_uid());
        assert!(!hung_up(&b));
        drop(a);
        assert!(hung_up(&b));
        assert!(matches!(recv(&b, &mut buf).unwrap(), Received::Closed));
    }

    #[test]
    fn a_message_that_is_too_long_is_not_half_taken() {
        let (a, b) = pair().unwrap();
        send(&a, &[1; 100], &[]).unwrap();
        let mut buf = [0; 64];
        assert!(matches!(recv(&b, &mut buf).unwrap(), Received::Truncated));
        assert!(send(&a, b"x", &vec![a.as_fd(); FDS_MAX + 1]).is_err());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = std::env::temp_dir().join(format!("tandem-fdpass-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("driver.sock");
        drop(listen(&path).unwrap());
        assert!(path.exists());
        let live = listen(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            listen(&path).unwrap_err().kind(),
            std::io::ErrorKind::AddrInUse
        );
        // the probe above has connected and gone
        assert!(accept(&live).unwrap().is_some());
        assert!(accept(&live).unwrap().is_none());
        std::fs::remove_dir_all(dir).unwrap();
    }
}

//! Who is at the other end of a Unix socket (`SO_PEERCRED`), as plain numbers: the kernel says process 0 of one in a PID
//! namespace that this process does not see, and rustix's type has no such value. And that process itself (`SO_PEERPIDFD`,
//! since Linux 6.5), of whatever namespace; rustix knows it not.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::process::Pid;

/// Who it is: the process, if its number is known here, and the effective user.
pub(crate) fn of(socket: impl AsFd) -> io::Result<(Option<Pid>, u32)> {
    let mut cred = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the pointers are to locals that outlive the call; the kernel writes `len` bytes at most, which is the
    // structure's size, and any integers are a `ucred`.
    let ret = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut cred).cast(),
            &mut len,
        )
    };
    match ret {
        0 => Ok((pid(cred.pid), cred.uid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The process itself, whoever has its number later.
///
/// # Errors
/// The kernel is older, or says of nobody.
pub(crate) fn process_of(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut fd: libc::c_int = -1;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointers are to locals that outlive the call; the kernel writes `len` bytes at most, which is an
    // integer's size.
    let ret = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            std::ptr::from_mut(&mut fd).cast(),
            &mut len,
        )
    };
    match (ret, fd) {
        // SAFETY: the kernel has made this descriptor for this call, and nobody else knows of it.
        (0, 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        (0, _) => Err(io::ErrorKind::NotFound.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn pid(raw: libc::pid_t) -> Option<Pid> {
    Pid::from_raw(raw).filter(|_| raw > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known_and_one_that_is_not_seen_is_none() {
        let (a, _b) = crate::fdpass::pair().unwrap();
        let (own, uid) = of(&a).unwrap();
        assert_eq!(own, Some(rustix::process::getpid()));
        assert_eq!(uid, crate::fdpass::own_uid());
        assert_eq!(pid(0), None);
        let not_a_socket = std::fs::File::open("/dev/null").unwrap();
        assert!(of(not_a_socket).is_err());
        // a socket that is connected to nobody: as of a process that is not seen
        let alone = rustix::net::socket(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::SEQPACKET,
            None,
        )
        .unwrap();
        assert_eq!(of(&alone).unwrap().0, None);
        assert_eq!(crate::fdpass::peer(&alone).unwrap().pid, 0);
        assert!(process_of(&alone).is_err());
        assert!(crate::process::Process::of_peer(&alone).is_err());
    }

    /// Run a second time, by itself, with a socket of the first run as standard input: in a PID namespace in which that one has
    /// no number.
    #[test]
    fn a_process_of_another_namespace_is_known_by_the_socket() {
        const SECOND: &str = "TANDEM_TEST_PEER";
        if std::env::var_os(SECOND).is_some() {
            let socket = std::io::stdin();
            assert_eq!(of(&socket).unwrap().0, None);
            let peer = crate::process::Process::of_peer(&socket).unwrap();
            assert!(!peer.has_ended());
            return;
        }
        let (a, _b) = crate::fdpass::pair().unwrap();
        let older = matches!(process_of(&a), Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT));
        if older || crate::fdpass::own_uid() != 0 {
            eprintln!("skipped: who is in another namespace: needs Linux 6.5 and root");
            return;
        }
        let name = "peercred::tests::a_process_of_another_namespace_is_known_by_the_socket";
        let out = std::process::Command::new("unshare")
            .args(["--pid", "--fork", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(SECOND, "1")
            .stdin(a)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && said.contains("1 passed"), "{said}");
    }
}

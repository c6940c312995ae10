//! Who is at the other end of a Unix socket (`SO_PEERCRED`), as plain numbers: the kernel says process 0 of one in a PID
//! namespace that this process does not see, and rustix's type has no such value.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

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
        assert!(crate::process::Process::of_peer(&alone).is_err());
    }
}

//! Waking up when something about links changes (rtnetlink(7), group RTNLGRP_LINK).
//!
//! Only the wake-up is used; what changed is then asked with [`crate::ifreq`]. So a lost
//! notification costs nothing: overrun is just another wake-up.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

const RTMGRP_LINK: u32 = 1;

/// A socket that becomes readable when a link of its network namespace changes.
#[derive(Debug)]
pub struct LinkNotify(Socket);

impl LinkNotify {
    /// Opens one in the calling thread's network namespace.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.set_non_blocking(true)?;
        socket.bind(&SocketAddr::new(0, RTMGRP_LINK))?;
        Ok(LinkNotify(socket))
    }

    /// Takes all waiting notifications; true if there was one.
    pub fn drain(&self) -> bool {
        let mut any = false;
        let mut buf = [0u8; 16 * 1024];
        // Bounded: what comes later wakes up again
        for _ in 0..1024 {
            match self.0.recv(&mut &mut buf[..], 0) {
                Ok(_) => any = true,
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => any = true,
                Err(_) => break,
            }
        }
        any
    }
}

impl AsFd for LinkNotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for LinkNotify {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

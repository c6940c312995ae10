//! `recvmmsg(2)`: many datagrams for one system call. Notifications come one message to a datagram,
//! so at 300,000 a second a call for each would cost more than all the rest.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams for one call.
const BATCH: usize = 64;
/// Bytes for one datagram; the kernel's own limit for a dump's is 32 KiB, notifications are smaller.
const SIZE: usize = 32 * 1024;

/// What one call brought.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    /// Datagrams given to the caller.
    pub datagrams: usize,
    /// A datagram was cut: something is lost.
    pub truncated: bool,
}

/// Buffers, allocated once.
#[derive(Debug)]
pub(super) struct Mmsg {
    buf: Vec<u8>,
}

impl Mmsg {
    pub(super) fn new() -> Self {
        Self {
            buf: vec![0; BATCH * SIZE],
        }
    }

    /// Receives what is there, without waiting, and gives each datagram that the kernel sent to
    /// `sink`. Nothing there: 0 datagrams.
    ///
    /// # Errors
    /// `ENOBUFS` when the kernel had to drop messages; anything else from `recvmmsg`.
    pub(super) fn recv(
        &mut self,
        fd: BorrowedFd<'_>,
        mut sink: impl FnMut(&[u8]),
    ) -> io::Result<Received> {
        // SAFETY: all three are plain C structures for which zero is a valid value.
        let (mut names, mut iovs, mut hdrs): (
            [libc::sockaddr_nl; BATCH],
            [libc::iovec; BATCH],
            [libc::mmsghdr; BATCH],
        ) = unsafe { (zeroed(), zeroed(), zeroed()) };
        let slots = self.buf.chunks_exact_mut(SIZE);
        for (((hdr, iov), name), chunk) in hdrs.iter_mut().zip(&mut iovs).zip(&mut names).zip(slots)
        {
            iov.iov_base = chunk.as_mut_ptr().cast();
            iov.iov_len = chunk.len();
            hdr.msg_hdr.msg_name = std::ptr::from_mut(name).cast();
            hdr.msg_hdr.msg_namelen = size_of::<libc::sockaddr_nl>() as u32;
            hdr.msg_hdr.msg_iov = iov;
            hdr.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: every header points at a name, an iovec and a buffer that outlive the call and that
        // nothing else refers to meanwhile; their lengths are those given.
        let n = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                hdrs.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if n < 0 {
            let e = io::Error::last_os_error();
            return match e.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Received::default()),
                _ => Err(e),
            };
        }
        let mut got = Received::default();
        for ((hdr, name), chunk) in hdrs
            .iter()
            .zip(&names)
            .zip(self.buf.chunks_exact(SIZE))
            .take(n as usize)
        {
            if name.nl_pid != 0 {
                continue; // another process, not the kernel
            }
            got.truncated |= hdr.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            got.datagrams += 1;
            sink(chunk.get(..hdr.msg_len as usize).unwrap_or(&[]));
        }
        Ok(got)
    }
}

//! One packet socket (packet(7)) for all devices of a namespace: sends frames by any of them, takes what comes by any.
//!
//! ```text
//!   Wires::send([(device, frame) …])  ──► sendmmsg, past queueing disciplines
//!   Wires::receive(|device, frame| …) ◄── recvmmsg; a VLAN tag that the kernel took out is put back
//! ```
//!
//! For tests and tools that stand for many hosts at once, and for a protocol of bridges at many ports (what goes to one
//! group alone); a port of the switch has a ring of its own ([`crate::packet_socket`]).
#![allow(unsafe_code)]

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};

/// Frames of one system call.
const BATCH: usize = 64;
/// Bytes of the longest frame that is taken whole.
const FRAME: usize = 10 * 1024;
/// Bytes for one frame's ancillary data: a header and `struct tpacket_auxdata`.
const CONTROL: usize = 64;
const RECEIVE_BUFFER: libc::c_int = 64 << 20;
/// Of a protocol, which says a frame a second at a port.
const GROUP_BUFFER: libc::c_int = 1 << 20;

/// The socket and its buffers.
#[derive(Debug)]
pub struct Wires {
    fd: OwnedFd,
    frames: Vec<u8>,
    control: Vec<u64>,
    tagged: Vec<u8>,
}

impl Wires {
    /// In the calling thread's network namespace, where it stays.
    ///
    /// # Errors
    /// What the kernel says; `EPERM` without CAP_NET_RAW.
    pub fn open() -> io::Result<Self> {
        Wires::bound(None)
    }

    /// The same, which takes only what goes to this group, before a bridge above a device has it.
    ///
    /// # Errors
    /// As above.
    pub fn of_group(group: [u8; 6]) -> io::Result<Self> {
        Wires::bound(Some(group))
    }

    fn bound(group: Option<[u8; 6]>) -> io::Result<Self> {
        let fd = rustix::net::socket_with(
            AddressFamily::PACKET,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None::<Protocol>,
        )?;
        for (option, value) in [
            (libc::PACKET_IGNORE_OUTGOING, 1),
            (libc::PACKET_AUXDATA, 1),
            (libc::PACKET_QDISC_BYPASS, 1),
        ] {
            set(&fd, libc::SOL_PACKET, option, value)?;
        }
        if let Some(group) = group {
            take_only(&fd, group)?;
        }
        let buffer = group.map_or(RECEIVE_BUFFER, |_| GROUP_BUFFER);
        // as much as rmem_max allows where more is not
        if set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer).is_err() {
            set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, buffer)?;
        }
        let address = libc::sockaddr_ll {
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            ..link_address(0)
        };
        // SAFETY: the pointer is to a sockaddr_ll of the given size, which outlives the call.
        let ret = unsafe {
            libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if ret != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            fd,
            frames: vec![0; BATCH * FRAME],
            control: vec![0; BATCH * CONTROL / size_of::<u64>()],
            tagged: Vec::with_capacity(FRAME),
        })
    }

    /// Sends frames, each by the device of that index, in their order. One that a device does not take (it is down, the
    /// frame too long or too short) is passed over; returns how many were taken.
    ///
    /// # Errors
    /// When the kernel takes none for want of memory.
    pub fn send(&mut self, frames: &[(u32, &[u8])]) -> io::Result<usize> {
        let mut taken = 0;
        for batch in frames.chunks(BATCH) {
            let mut rest = batch;
            while !rest.is_empty() {
                match self.send_some(rest) {
                    Ok(n) => {
                        taken += n;
                        rest = rest.get(n..).unwrap_or(&[]);
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) if e.raw_os_error() == Some(libc::ENOMEM) => return Err(e),
                    Err(_) => rest = rest.get(1..).unwrap_or(&[]),
                }
            }
        }
        Ok(taken)
    }

    /// One call, of at most [`BATCH`] frames.
    fn send_some(&mut self, frames: &[(u32, &[u8])]) -> io::Result<usize> {
        // SAFETY: all three are plain C structures for which zero is a valid value.
        let (mut names, mut iovs, mut hdrs): (
            [libc::sockaddr_ll; BATCH],
            [libc::iovec; BATCH],
            [libc::mmsghdr; BATCH],
        ) = unsafe { (zeroed(), zeroed(), zeroed()) };
        let slots = hdrs.iter_mut().zip(&mut iovs).zip(&mut names);
        let mut count = 0;
        for (((hdr, iov), name), (ifindex, frame)) in slots.zip(frames) {
            *name = link_address(*ifindex);
            // the kernel only reads what a message to be sent points at
            iov.iov_base = frame.as_ptr().cast_mut().cast();
            iov.iov_len = frame.len();
            hdr.msg_hdr.msg_name = std::ptr::from_mut(name).cast();
            hdr.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            hdr.msg_hdr.msg_iov = iov;
            hdr.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: the first `count` headers point at names, iovecs and frames that outlive the call.
        let n = unsafe { libc::sendmmsg(self.fd.as_raw_fd(), hdrs.as_mut_ptr(), count, 0) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }

    /// Takes what is there, up to one batch, without waiting: device and frame, with its tag. Returns how many.
    ///
    /// # Errors
    /// What the kernel says; frames longer than 10 KiB are an error too.
    pub fn receive(&mut self, mut sink: impl FnMut(u32, &[u8])) -> io::Result<usize> {
        // SAFETY: all three are plain C structures for which zero is a valid value.
        let (mut names, mut iovs, mut hdrs): (
            [libc::sockaddr_ll; BATCH],
            [libc::iovec; BATCH],
            [libc::mmsghdr; BATCH],
        ) = unsafe { (zeroed(), zeroed(), zeroed()) };
        let buffers = self.frames.chunks_exact_mut(FRAME);
        let controls = self.control.chunks_exact_mut(CONTROL / size_of::<u64>());
        let slots = hdrs.iter_mut().zip(&mut iovs).zip(&mut names);
        for (((hdr, iov), name), (buffer, control)) in slots.zip(buffers.zip(controls)) {
            iov.iov_base = buffer.as_mut_ptr().cast();
            iov.iov_len = buffer.len();
            hdr.msg_hdr.msg_name = std::ptr::from_mut(name).cast();
            hdr.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            hdr.msg_hdr.msg_iov = iov;
            hdr.msg_hdr.msg_iovlen = 1;
            hdr.msg_hdr.msg_control = control.as_mut_ptr().cast();
            hdr.msg_hdr.msg_controllen = CONTROL as _;
        }
        // SAFETY: every header points at a name, an iovec, a buffer and a control buffer of the given lengths, which
        // outlive the call and which nothing else refers to meanwhile.
        let n = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                hdrs.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let Ok(n) = usize::try_from(n) else {
            let e = io::Error::last_os_error();
            return match e.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                // a device went down: what there is to read comes with the next call
                _ if e.raw_os_error() == Some(libc::ENETDOWN) => Ok(0),
                _ => Err(e),
            };
        };
        let frames = self.frames.chunks_exact(FRAME);
        for ((hdr, name), buffer) in hdrs.iter().zip(&names).zip(frames).take(n) {
            if hdr.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                return Err(io::Error::other("a frame longer than 10 KiB"));
            }
            let frame = buffer.get(..hdr.msg_len as usize).unwrap_or(&[]);
            let ifindex = name.sll_ifindex as u32;
            match tag(&hdr.msg_hdr).zip(frame.split_at_checked(12)) {
                None => sink(ifindex, frame),
                Some(((tpid, tci), (addresses, rest))) => {
                    self.tagged.clear();
                    self.tagged.extend_from_slice(addresses);
                    self.tagged.extend_from_slice(&tpid.to_be_bytes());
                    self.tagged.extend_from_slice(&tci.to_be_bytes());
                    self.tagged.extend_from_slice(rest);
                    sink(ifindex, &self.tagged);
                }
            }
        }
        Ok(n)
    }

    /// Frames that the kernel threw away since the last question because the socket was full.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn lost(&self) -> io::Result<u32> {
        // SAFETY: a plain C structure for which zero is a valid value.
        let mut stats: libc::tpacket_stats = unsafe { zeroed() };
        let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the pointers are to a tpacket_stats and its size, both outlive the call.
        let ret = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut len,
            )
        };
        if ret == 0 {
            Ok(stats.tp_drops)
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

impl AsFd for Wires {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The classic program that takes frames to a group, all of their bytes.
fn program(group: [u8; 6]) -> [libc::sock_filter; 6] {
    let [a, b, c, d, e, f] = group;
    let insn = |code: u32, jf, k| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let (load, equal) = (libc::BPF_LD | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ);
    [
        insn(load | libc::BPF_W, 0, 0),
        insn(equal, 3, u32::from_be_bytes([a, b, c, d])),
        insn(load | libc::BPF_H, 0, 4),
        insn(equal, 1, u32::from(u16::from_be_bytes([e, f]))),
        insn(libc::BPF_RET, 0, u32::MAX),
        insn(libc::BPF_RET, 0, 0),
    ]
}

fn take_only(fd: &OwnedFd, group: [u8; 6]) -> io::Result<()> {
    let mut program = program(group);
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the pointer is to a sock_fprog of the given size, and that one's to its instructions; both outlive the call.
    let ret = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if ret == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The tag that the kernel took out of a frame: TPID, TCI.
fn tag(hdr: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: the kernel filled the control buffer and set its length; the macros walk inside it.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(hdr);
        while !at.is_null() {
            if (*at).cmsg_level == libc::SOL_PACKET && (*at).cmsg_type == libc::PACKET_AUXDATA {
                let aux: libc::tpacket_auxdata =
                    std::ptr::read_unaligned(libc::CMSG_DATA(at).cast());
                let is = |bit| aux.tp_status & bit != 0;
                return is(libc::TP_STATUS_VLAN_VALID).then(|| {
                    let known = is(libc::TP_STATUS_VLAN_TPID_VALID);
                    let tpid = if known { aux.tp_vlan_tpid } else { 0x8100 };
                    (tpid, aux.tp_vlan_tci)
                });
            }
            at = libc::CMSG_NXTHDR(hdr, at);
        }
    }
    None
}

fn link_address(ifindex: u32) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: 0,
        sll_ifindex: ifindex as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

fn set(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer is to a c_int of the given size, which outlives the call.
    let ret = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if ret == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    /// A socket of any family runs the program over what is sent to it.
    #[test]
    fn what_goes_to_others_is_not_taken() {
        let (to, from) = UnixDatagram::pair().unwrap();
        let from = OwnedFd::from(from);
        take_only(&from, [1, 0x80, 0xc2, 0, 0, 0]).unwrap();
        let mut buffer = [0; 64];
        for (last, frame) in [(1u8, [0u8; 20]), (0, [7; 20])] {
            let frame = [&[1, 0x80, 0xc2, 0, 0, last], &frame[..]].concat();
            let _ = to.send(&frame);
        }
        to.send(&[1, 0x80]).unwrap_or(0);
        to.shutdown(std::net::Shutdown::Write).unwrap();
        let (n, _) =
            rustix::net::recv(&from, &mut buffer, rustix::net::RecvFlags::empty()).unwrap();
        assert_eq!((n, buffer[5], buffer[6]), (26, 0, 7));
        let rest = rustix::net::recv(&from, &mut buffer, rustix::net::RecvFlags::DONTWAIT);
        assert!(rest.map_or(true, |(n, _)| n == 0));
    }
}

//! TAP devices (kernel: Documentation/networking/tuntap.rst, drivers/net/tun.c).
//!
//! One [`Tap`] is one queue of a TAP netdev. With [`TapOptions::multi_queue`] opening the same
//! name again adds a queue; queues are numbered in the order of opening and the kernel stores
//! the number in the packets it takes from them. The netdev disappears with its last descriptor
//! (it loses carrier even with IFF_PERSIST), so a copy kept elsewhere keeps it up.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::ifreq::{self, IfReq};

// linux/if_tun.h
const TUNSETIFF: libc::Ioctl = 0x4004_54ca_u32 as libc::Ioctl;
const TUNGETIFF: libc::Ioctl = 0x8004_54d2_u32 as libc::Ioctl;
const TUNSETOFFLOAD: libc::Ioctl = 0x4004_54d0_u32 as libc::Ioctl;
const TUNSETQUEUE: libc::Ioctl = 0x4004_54d9_u32 as libc::Ioctl;
const TUNSETCARRIER: libc::Ioctl = 0x4004_54e2_u32 as libc::Ioctl;
const TUNGETDEVNETNS: libc::Ioctl = 0x54e3_u32 as libc::Ioctl;

const IFF_TAP: u16 = 0x0002;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
const IFF_MULTI_QUEUE: u16 = 0x0100;
const IFF_ATTACH_QUEUE: u16 = 0x0200;
const IFF_DETACH_QUEUE: u16 = 0x0400;

const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO4: libc::c_ulong = 0x02;
const TUN_F_TSO6: libc::c_ulong = 0x04;
const TUN_F_TSO_ECN: libc::c_ulong = 0x08;
const TUN_F_USO4: libc::c_ulong = 0x20;
const TUN_F_USO6: libc::c_ulong = 0x40;

/// How to open a TAP device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapOptions {
    /// Several queues: every further open of the name adds one.
    pub multi_queue: bool,
    /// A 10-byte `virtio_net_hdr` stands before every frame, both ways.
    pub vnet_hdr: bool,
}

/// One queue of a TAP netdev, non-blocking, without packet information header.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    name: String,
}

/// Why there are no TAPs, and what to do about it.
fn no_tun(e: &io::Error) -> String {
    let help = match e.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            ": the kernel's driver for TAPs is wanted (modprobe tun); a container has to be given the device"
        }
        Some(libc::EPERM | libc::EACCES) => {
            ": a container has to be given the device (root alone does not help there)"
        }
        _ => "",
    };
    format!("/dev/net/tun: {e}{help}")
}

/// Why a TAP netdev can't be opened, and what then.
fn no_tap(name: &str, e: &io::Error) -> String {
    let help = match e.raw_os_error() {
        Some(libc::EINVAL) => ": there is an interface of this name, which is no such TAP",
        Some(libc::EBUSY) => ": another process has it",
        _ => "",
    };
    format!("TAP {name}: {e}{help}")
}

impl Tap {
    /// Opens a queue of the TAP netdev `name` in the calling thread's network namespace and
    /// makes the netdev if it is not there.
    pub fn open(name: &str, options: TapOptions) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(|e| io::Error::new(e.kind(), no_tun(&e)))?;
        let mut flags = IFF_TAP | IFF_NO_PI;
        if options.multi_queue {
            flags |= IFF_MULTI_QUEUE;
        }
        if options.vnet_hdr {
            flags |= IFF_VNET_HDR;
        }
        let mut req = IfReq::new(name)?;
        req.set_u16(flags);
        let fd = OwnedFd::from(file);
        ifreq::ioctl(fd.as_fd(), TUNSETIFF, &mut req)
            .map_err(|e| io::Error::new(e.kind(), no_tap(name, &e)))?;
        Ok(Tap {
            fd,
            name: req.name(),
        })
    }

    /// Takes over a queue that another process opened (passed by SCM_RIGHTS).
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        let mut req = IfReq::empty();
        ifreq::ioctl(fd.as_fd(), TUNGETIFF, &mut req)?;
        Ok(Tap {
            name: req.name(),
            fd,
        })
    }

    /// The netdev's name when this value was made. It may have been renamed since: see
    /// [`Tap::current_name`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The netdev's name now; an error when the netdev was deleted.
    pub fn current_name(&self) -> io::Result<String> {
        let mut req = IfReq::empty();
        ifreq::ioctl(self.fd.as_fd(), TUNGETIFF, &mut req)?;
        Ok(req.name())
    }

    /// Carrier of the netdev, on or off. Independent of its administrative state.
    pub fn set_carrier(&self, up: bool) -> io::Result<()> {
        let mut v = libc::c_int::from(up);
        // SAFETY: TUNSETCARRIER reads one int behind the pointer, which outlives the call.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), TUNSETCARRIER, &raw mut v) })
    }

    /// Turns this queue off or on again; a detached queue takes no frames from the kernel.
    pub fn set_attached(&self, attached: bool) -> io::Result<()> {
        let mut req = IfReq::empty();
        req.set_u16(if attached {
            IFF_ATTACH_QUEUE
        } else {
            IFF_DETACH_QUEUE
        });
        ifreq::ioctl(self.fd.as_fd(), TUNSETQUEUE, &mut req)
    }

    /// Lets the kernel hand over partial checksums and, with `gso`, TCP and UDP super-frames.
    /// Needs [`TapOptions::vnet_hdr`]. UDP segmentation is left out where the kernel lacks it.
    pub fn set_offload(&self, csum: bool, gso: bool) -> io::Result<()> {
        let mut base = 0;
        if csum {
            base |= TUN_F_CSUM;
        }
        if csum && gso {
            base |= TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
            if self
                .ioctl_value(TUNSETOFFLOAD, base | TUN_F_USO4 | TUN_F_USO6)
                .is_ok()
            {
                return Ok(());
            }
        }
        self.ioctl_value(TUNSETOFFLOAD, base)
    }

    /// The network namespace that the netdev lives in now (it may have been moved), as nsfs
    /// descriptor.
    pub fn netns(&self) -> io::Result<OwnedFd> {
        // SAFETY: TUNGETDEVNETNS takes no argument and returns a new descriptor or -1.
        let fd = unsafe { libc::ioctl(self.fd.as_raw_fd(), TUNGETDEVNETNS, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// One frame from the kernel into `buf`; `WouldBlock` when there is none.
    pub fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.fd, buf)?)
    }

    /// One frame to the kernel.
    pub fn write(&self, frame: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.fd, frame)?)
    }

    /// One frame to the kernel, gathered from several pieces.
    pub fn writev(&self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(&self.fd, parts)?)
    }

    fn ioctl_value(&self, op: libc::Ioctl, value: libc::c_ulong) -> io::Result<()> {
        // SAFETY: these requests take their argument by value.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), op, value) })
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn check(ret: libc::c_int) -> io::Result<()> {
    if ret < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

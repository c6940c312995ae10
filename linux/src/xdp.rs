//! Attaching XDP programs, and those of measurements and tests: the fastest sender a kernel has, a sink that costs next to
//! nothing, a sender of frames whose tag lies beside them.
//!
//! ```text
//!  blast ──BPF_PROG_TEST_RUN, live frames──► redirect ──► veth ──► …device under test… ──► veth ──► XDP_DROP
//! ```
//!
//! Kernel documentation: Documentation/bpf/bpf_prog_run.rst ("Running XDP programs in live frame mode").
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::bpf::{Insn, ProgType, Reg, XDP_HAS_FRAGS, load, load_with, tc_act};

const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_XDP: u32 = 37;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
const BPF_FUNC_CLONE_REDIRECT: i32 = 13;
const BPF_FUNC_SKB_VLAN_PUSH: i32 = 18;
const BPF_FUNC_REDIRECT: i32 = 23;
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;

/// `flags` of a link that the driver itself must run (XDP_FLAGS_DRV_MODE, linux/if_link.h).
const DRIVER_MODE: u32 = 1 << 2;

/// Attaches an XDP program to an interface until the returned link is closed.
pub fn attach(prog: BorrowedFd<'_>, ifindex: u32) -> io::Result<OwnedFd> {
    attach_with(prog, ifindex, 0)
}

/// As [`attach`], but only where the driver runs the program itself, before it makes a socket buffer of the frame.
pub fn attach_native(prog: BorrowedFd<'_>, ifindex: u32) -> io::Result<OwnedFd> {
    attach_with(prog, ifindex, DRIVER_MODE)
}

fn attach_with(prog: BorrowedFd<'_>, ifindex: u32, flags: u32) -> io::Result<OwnedFd> {
    // prog_fd, target_ifindex, attach_type, flags: the head of the kernel's link_create
    let attr: [u32; 4] = [prog.as_raw_fd().cast_unsigned(), ifindex, BPF_XDP, flags];
    // SAFETY: `attr` has the layout of the kernel's union up to `flags`, and its size is passed.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_LINK_CREATE,
            attr.as_ptr(),
            size_of_val(&attr),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us; it fits an int.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// A program that drops every frame where it came in.
pub fn load_drop() -> io::Result<OwnedFd> {
    load_with(
        ProgType::Xdp,
        XDP_HAS_FRAGS,
        "tnd_sink",
        &[Insn::mov_imm(Reg::R0, XDP_DROP), Insn::exit()],
    )
}

/// A program that passes every frame on; on a veth it makes the other end able to redirect into this one.
pub fn load_pass() -> io::Result<OwnedFd> {
    load(
        ProgType::Xdp,
        "tnd_pass",
        &[Insn::mov_imm(Reg::R0, XDP_PASS), Insn::exit()],
    )
}

/// A program that sends every frame out of `ifindex`.
pub fn load_redirect(ifindex: u32) -> io::Result<OwnedFd> {
    let ifindex = i32::try_from(ifindex).map_err(io::Error::other)?;
    load(
        ProgType::Xdp,
        "tnd_blast",
        &[
            Insn::mov_imm(Reg::R1, ifindex),
            Insn::mov_imm(Reg::R2, 0),
            Insn::call(BPF_FUNC_REDIRECT),
            Insn::exit(),
        ],
    )
}

/// A program for traffic control that gives a frame a VLAN tag as the kernel's own VLAN devices do, beside its bytes, and
/// sends it out of `ifindex`.
pub fn load_tag_and_send(ifindex: u32, tpid: u16, tci: u16) -> io::Result<OwnedFd> {
    let ifindex = i32::try_from(ifindex).map_err(io::Error::other)?;
    load(
        ProgType::SchedCls,
        "tnd_tag",
        &[
            Insn::mov(Reg::R6, Reg::R1),
            Insn::mov_imm(Reg::R2, i32::from(tpid.to_be())),
            Insn::mov_imm(Reg::R3, i32::from(tci)),
            Insn::call(BPF_FUNC_SKB_VLAN_PUSH),
            Insn::mov(Reg::R1, Reg::R6),
            Insn::mov_imm(Reg::R2, ifindex),
            Insn::mov_imm(Reg::R3, 0),
            Insn::call(BPF_FUNC_CLONE_REDIRECT),
            Insn::mov_imm(Reg::R0, tc_act::SHOT),
            Insn::exit(),
        ],
    )
}

/// Runs a program for traffic control once, on `frame`, in the calling thread's network namespace.
pub fn run_once(prog: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    test_run(TestRun {
        prog_fd: prog.as_raw_fd().cast_unsigned(),
        data_size_in: u32::try_from(frame.len()).map_err(io::Error::other)?,
        data_in: frame.as_ptr() as u64,
        repeat: 1,
        ..TestRun::default()
    })
}

/// The part of `union bpf_attr` that BPF_PROG_TEST_RUN uses.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    reserved: u32,
}

/// Runs `prog` on `repeat` copies of `frame`, as fast as the kernel can, in the calling thread.
pub fn blast(prog: BorrowedFd<'_>, frame: &[u8], repeat: u32) -> io::Result<()> {
    send(prog, frame, repeat, 64)
}

/// As [`blast`], in bursts of `burst` frames.
pub fn send(prog: BorrowedFd<'_>, frame: &[u8], repeat: u32, burst: u32) -> io::Result<()> {
    test_run(TestRun {
        prog_fd: prog.as_raw_fd().cast_unsigned(),
        data_size_in: u32::try_from(frame.len()).map_err(io::Error::other)?,
        data_in: frame.as_ptr() as u64,
        repeat,
        flags: BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: burst,
        ..TestRun::default()
    })
}

/// `attr.data_in` points to `data_size_in` bytes that live; no output is asked for.
fn test_run(mut attr: TestRun) -> io::Result<()> {
    // SAFETY: `attr` is laid out as the kernel's union, its size up to batch_size is passed, and data_in points to
    // data_size_in readable bytes that outlive the call (both callers above have them from a slice); with data_out and
    // data_size_out 0 nothing is written back but retval, sizes and duration, into `attr` itself.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_TEST_RUN,
            &raw mut attr,
            size_of::<TestRun>() - 4,
        )
    };
    if ret < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_pass_the_verifier() {
        for prog in [
            load_drop(),
            load_pass(),
            load_redirect(1),
            load_tag_and_send(1, 0x88a8, 5),
        ] {
            match prog {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    eprintln!("skipped: loading BPF needs root (CAP_BPF, CAP_NET_ADMIN)");
                    return;
                }
                other => drop(other.unwrap()),
            }
        }
    }
}

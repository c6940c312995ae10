//! Attaching XDP programs; a sender of frames whose tag lies beside them, for asicd's self-test of ports.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::bpf::{Insn, ProgType, Reg, load, tc_act};

const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_XDP: u32 = 37;
const BPF_FUNC_CLONE_REDIRECT: i32 = 13;
const BPF_FUNC_SKB_VLAN_PUSH: i32 = 18;

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
    test_run(prog, frame, 1, 0, 0)
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

/// Runs `prog` on `repeat` copies of `frame`, in the calling thread. `burst`: how many live frames at a time.
pub(crate) fn test_run(
    prog: BorrowedFd<'_>,
    frame: &[u8],
    repeat: u32,
    flags: u32,
    burst: u32,
) -> io::Result<()> {
    let mut attr = TestRun {
        prog_fd: prog.as_raw_fd().cast_unsigned(),
        data_size_in: u32::try_from(frame.len()).map_err(io::Error::other)?,
        data_in: frame.as_ptr() as u64,
        repeat,
        flags,
        batch_size: burst,
        ..TestRun::default()
    };
    // SAFETY: `attr` is laid out as the kernel's union, its size up to batch_size is passed, and data_in points to
    // data_size_in readable bytes, those of `frame`, which outlives the call; with data_out and data_size_out 0 nothing
    // is written back but retval, sizes and duration, into `attr` itself.
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
    fn a_program_passes_the_verifier() {
        match load_tag_and_send(1, 0x88a8, 5) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("skipped: loading BPF needs root (CAP_BPF, CAP_NET_ADMIN)");
            }
            other => drop(other.unwrap()),
        }
    }
}

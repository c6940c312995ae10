//! XDP programs of measurements and tests: the fastest sender a kernel has, a sink that costs next to nothing.
//!
//! ```text
//!  blast ──BPF_PROG_TEST_RUN, live frames──► redirect ──► veth ──► …device under test… ──► veth ──► XDP_DROP
//! ```
//!
//! Kernel documentation: Documentation/bpf/bpf_prog_run.rst ("Running XDP programs in live frame mode").

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::bpf::{Insn, ProgType, Reg, XDP_HAS_FRAGS, load, load_with};
use crate::xdp::test_run;

const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
const BPF_FUNC_REDIRECT: i32 = 23;
const XDP_DROP: i32 = 1;

/// A program that drops every frame where it came in.
pub fn load_drop() -> io::Result<OwnedFd> {
    load_with(
        ProgType::Xdp,
        XDP_HAS_FRAGS,
        "tnd_sink",
        &[Insn::mov_imm(Reg::R0, XDP_DROP), Insn::exit()],
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

/// Runs `prog` on `repeat` copies of `frame`, as fast as the kernel can, in the calling thread.
pub fn blast(prog: BorrowedFd<'_>, frame: &[u8], repeat: u32) -> io::Result<()> {
    send(prog, frame, repeat, 64)
}

/// As [`blast`], in bursts of `burst` frames.
pub fn send(prog: BorrowedFd<'_>, frame: &[u8], repeat: u32, burst: u32) -> io::Result<()> {
    test_run(prog, frame, repeat, BPF_F_TEST_XDP_LIVE_FRAMES, burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_pass_the_verifier() {
        for prog in [load_drop(), load_redirect(1)] {
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

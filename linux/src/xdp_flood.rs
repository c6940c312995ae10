//! XDP programs of measurements and tests: the fastest sender a kernel has, a sink that costs next to nothing.
//!
//! ```text
//!  blast ──BPF_PROG_TEST_RUN, live frames──► redirect ──► veth ──► …device under test… ──► veth ──► XDP_DROP
//! ```
//!
//! Kernel documentation: Documentation/bpf/bpf_prog_run.rst ("Running XDP programs in live frame mode").

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::bpf::{Alu, Cond, Insn, ProgType, Reg, Width, XDP_HAS_FRAGS, load, load_with};
use crate::xdp::test_run;

const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
const BPF_FUNC_GET_PRANDOM_U32: i32 = 7;
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

/// As [`load_redirect`], but each frame is first given a random one of `stations` addresses as its source: 02:00, then
/// the station's number as this machine has it in memory.
pub fn load_redirect_from(ifindex: u32, stations: u32) -> io::Result<OwnedFd> {
    let ifindex = i32::try_from(ifindex).map_err(io::Error::other)?;
    let stations = i32::try_from(stations).map_err(io::Error::other)?;
    load(
        ProgType::Xdp,
        "tnd_stations",
        &[
            // struct xdp_md: data, data_end
            Insn::load(Width::W, Reg::R7, Reg::R1, 0),
            Insn::load(Width::W, Reg::R8, Reg::R1, 4),
            Insn::mov(Reg::R0, Reg::R7),
            Insn::alu_imm(Alu::Add, Reg::R0, 12),
            Insn::jump_reg(Cond::Le, Reg::R0, Reg::R8, 2),
            Insn::mov_imm(Reg::R0, XDP_DROP),
            Insn::exit(),
            Insn::call(BPF_FUNC_GET_PRANDOM_U32),
            Insn::alu_imm(Alu::Mod, Reg::R0, stations),
            Insn::store(Width::W, Reg::R7, 8, Reg::R0),
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
        for prog in [load_drop(), load_redirect(1), load_redirect_from(1, 1000)] {
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

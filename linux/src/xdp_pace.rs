//! A sender that keeps a rate: the XDP program waits.
//!
//! ```text
//!  BPF_PROG_TEST_RUN, one call ──► for each frame: wait until it is due ──► redirect ──► veth
//!                                    └─ at the end of a burst of 32: hand over, and run the receiver's softirq
//! ```
//!
//! Each call of BPF_PROG_TEST_RUN makes memory for its frames, and waits for some 20 ms until that is given back, so a
//! sender that makes a call per burst gets to some 10,000 frames a second. This one makes one call per measurement, and
//! its program keeps the time: as fast a sender as there is in the kernel, at any rate below.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::bpf::{self, Alu, Cond, Insn, ProgType, Reg, Width};
use crate::xdp_flood;

const HELPER_MAP_LOOKUP: i32 = 1;
const HELPER_KTIME_NS: i32 = 5;
const HELPER_REDIRECT: i32 = 23;
const XDP_DROP: i32 = 1;

/// Frames that are handed over together.
pub const BURST: u32 = 32;
/// Times that the program looks at the clock before it sends a frame all the same, at some 30 ns each: more than the time
/// between two frames of 10,000 a second. The verifier follows half as many again at most.
const LOOKS: i32 = 4000;

// The words of the program's map
const WORDS: usize = 5;
const DUE: i16 = 0;
const INTERVAL: i16 = 8;
const SLACK: i16 = 16;
const FIRST: i16 = 24;
const LAST: i16 = 32;

/// Sends out of one interface at one rate.
pub struct Pacer {
    map: OwnedFd,
    program: OwnedFd,
}

impl Pacer {
    /// Frames leave through `ifindex` of the calling thread's network namespace, one every `interval_ns`. After it was
    /// held up it catches up with a burst at most, and forgets the rest.
    pub fn new(ifindex: u32, interval_ns: u64) -> io::Result<Self> {
        let slack = interval_ns.saturating_mul(u64::from(BURST));
        let map = bpf::words_map::<WORDS>("tnd_pace", &[0, interval_ns, slack, 0, 0])?;
        let ifindex = i32::try_from(ifindex).map_err(io::Error::other)?;
        let mut code = vec![Insn::store_imm(Width::W, Reg::R10, -4, 0)];
        code.extend(Insn::load_map(Reg::R1, map.as_fd()));
        code.extend([
            Insn::mov(Reg::R2, Reg::R10),
            Insn::alu_imm(Alu::Add, Reg::R2, -4),
            Insn::call(HELPER_MAP_LOOKUP),
            Insn::jump_imm(Cond::Ne, Reg::R0, 0, 2),
            Insn::mov_imm(Reg::R0, XDP_DROP),
            Insn::exit(),
            Insn::mov(Reg::R6, Reg::R0),
            // Wait: until now >= due, or it has looked often enough
            Insn::load(Width::Dw, Reg::R7, Reg::R6, DUE),
            Insn::mov_imm(Reg::R8, LOOKS),
            Insn::call(HELPER_KTIME_NS),
            Insn::jump_reg(Cond::Ge, Reg::R0, Reg::R7, 2),
            Insn::alu_imm(Alu::Sub, Reg::R8, 1),
            Insn::jump_imm(Cond::Ne, Reg::R8, 0, -4),
            // When it began, without a burst to catch up with, and how far it got
            Insn::load(Width::Dw, Reg::R1, Reg::R6, FIRST),
            Insn::jump_imm(Cond::Ne, Reg::R1, 0, 2),
            Insn::store(Width::Dw, Reg::R6, FIRST, Reg::R0),
            Insn::mov(Reg::R7, Reg::R0),
            Insn::store(Width::Dw, Reg::R6, LAST, Reg::R0),
            // due = max(due, now - slack) + interval
            Insn::load(Width::Dw, Reg::R1, Reg::R6, SLACK),
            Insn::alu(Alu::Sub, Reg::R0, Reg::R1),
            Insn::jump_reg(Cond::Ge, Reg::R7, Reg::R0, 1),
            Insn::mov(Reg::R7, Reg::R0),
            Insn::load(Width::Dw, Reg::R1, Reg::R6, INTERVAL),
            Insn::alu(Alu::Add, Reg::R7, Reg::R1),
            Insn::store(Width::Dw, Reg::R6, DUE, Reg::R7),
            Insn::mov_imm(Reg::R1, ifindex),
            Insn::mov_imm(Reg::R2, 0),
            Insn::call(HELPER_REDIRECT),
            Insn::exit(),
        ]);
        let program = bpf::load(ProgType::Xdp, "tnd_pace", &code)?;
        Ok(Pacer { map, program })
    }

    /// Sends `count` copies of `frame` in the calling thread, and returns frames per second from the first to the last.
    pub fn send(&self, frame: &[u8], count: u32) -> io::Result<f64> {
        xdp_flood::send(self.program.as_fd(), frame, count, BURST)?;
        let [.., first, last] = bpf::read_words::<WORDS>(self.map.as_fd())?;
        let took = last.saturating_sub(first).max(1);
        Ok(f64::from(count.saturating_sub(1)) * 1e9 / took as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Out of the loopback interface of a namespace of its own, where nobody takes them.
    #[test]
    fn it_keeps_its_rate() {
        let rate = crate::netns::run_in_new(|| Pacer::new(1, 10_000)?.send(&[0; 60], 2_000));
        let rate = match rate {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("skipped: network namespaces and BPF need root");
                return;
            }
            other => other.unwrap(),
        };
        // No frame before its time; after it, when another process had the processor meanwhile
        assert!((1_000.0..=100_000.0).contains(&rate), "{rate}");
    }
}

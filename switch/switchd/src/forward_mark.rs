//! The forward mark: what `offload_fwd_mark` is to a kernel driver, for TAP ports.
//!
//! ```text
//!   RX ring ─► trapped ──► queue 0 ─┐                                    ┌─► other swp: passes
//!              copy ─────► queue 1 ─┤ swpN ─ clsact ingress ─► bridge, ──┤
//!                                   │        queue 1: stamp     IP stack │
//!                                   └───────────────────────             └─► egress of any swp:
//!                                                                            stamped ⇒ dropped
//! ```
//!
//! A frame that the ASIC has forwarded already must not leave once more by the kernel's bridge, but
//! the kernel shall consume it (ARP, protocols, a veth in the same bridge). A frame that the ASIC
//! trapped is the kernel's to forward. The TAP's queue carries this one bit into the kernel: the
//! tun driver records the queue in the packet, a program at the port's ingress turns queue 1 into a
//! stamp, a program at every port's egress drops what carries it.
//!
//! The stamp stands in `skb->tc_index`: it belongs to traffic control alone (users see neither mark
//! nor priority change), it is copied with clones, survives bridging and routing, and a fresh packet
//! has zero there. For a copy the ingress program answers *ok* with the stamp as its class, which is how
//! the kernel writes the field: filters of the user's own don't see it, the chip has applied them to the
//! frame itself. In all other cases both programs answer *unspecified*, and the user's filters follow.
//!
//! The programs stay while the netdev lives in its namespace, whatever becomes of switchd; a running
//! switchd looks every two seconds whether they are there, and attaches them again.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tandem_linux::bpf::{self, Cond, Insn, ProgType, Reg, Width, skb, tc_act};
use tandem_linux::netlink::tc::{Direction, Slot, Tc};

/// TAP queue for frames that the kernel must forward.
pub const QUEUE_TRAPPED: usize = 0;
/// TAP queue for copies of frames that the ASIC forwarded.
pub const QUEUE_COPY: usize = 1;
/// Queues of a port.
pub const QUEUES: usize = 2;

/// In `skb->tc_index` of a stamped frame.
const STAMP: i32 = 0x7d4d;

const INGRESS: [Insn; 6] = [
    Insn::load(Width::W, Reg::R2, Reg::R1, skb::QUEUE_MAPPING),
    Insn::mov_imm(Reg::R0, tc_act::UNSPEC),
    // the tun driver records queue q as q + 1
    Insn::jump_imm(Cond::Ne, Reg::R2, QUEUE_COPY as i32 + 1, 2),
    Insn::store_imm(Width::W, Reg::R1, skb::TC_CLASSID, STAMP),
    Insn::mov_imm(Reg::R0, tc_act::OK),
    Insn::exit(),
];

const EGRESS: [Insn; 5] = [
    Insn::load(Width::W, Reg::R2, Reg::R1, skb::TC_INDEX),
    Insn::mov_imm(Reg::R0, tc_act::UNSPEC),
    Insn::jump_imm(Cond::Ne, Reg::R2, STAMP, 1),
    Insn::mov_imm(Reg::R0, tc_act::SHOT),
    Insn::exit(),
];

/// Place of the programs: first, so that no other filter can let a stamped frame pass.
pub(crate) const PRIORITY: u16 = 1;
/// Their number there.
pub(crate) const HANDLE: u32 = 0x7d;

fn slot(ifindex: u32, direction: Direction) -> Slot {
    Slot {
        ifindex,
        direction,
        priority: PRIORITY,
        handle: HANDLE,
    }
}

/// The two programs, loaded once for all ports.
#[derive(Debug)]
pub struct ForwardMark {
    ingress: OwnedFd,
    egress: OwnedFd,
}

impl ForwardMark {
    /// Loads the programs.
    pub fn load() -> io::Result<Self> {
        Ok(ForwardMark {
            ingress: bpf::load(ProgType::SchedCls, "tandem_mark", &INGRESS)?,
            egress: bpf::load(ProgType::SchedCls, "tandem_once", &EGRESS)?,
        })
    }

    /// Attaches them to a netdev of the calling thread's namespace. Programs of an earlier switchd
    /// are replaced without a gap.
    pub fn attach(&self, tc: &mut Tc, ifindex: u32) -> io::Result<()> {
        tc.ensure_clsact(ifindex)?;
        // egress first: a stamp that nobody looks at is harmless, but only while none is given
        for (direction, program, name) in [
            (Direction::Egress, &self.egress, "tandem_once"),
            (Direction::Ingress, &self.ingress, "tandem_mark"),
        ] {
            tc.replace_bpf(slot(ifindex, direction), program.as_fd(), name)?;
        }
        Ok(())
    }

    /// Whether both are there. A visit to another namespace and `tc qdisc del` take them away.
    pub fn attached(tc: &mut Tc, ifindex: u32) -> io::Result<bool> {
        Ok(tc.has_bpf(slot(ifindex, Direction::Egress))?
            && tc.has_bpf(slot(ifindex, Direction::Ingress))?)
    }
}

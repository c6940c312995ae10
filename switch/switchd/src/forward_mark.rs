//! The forward mark: what `offload_fwd_mark` is to a kernel driver, for TAP ports.
//!
//! ```text
//!   RX ring ─► trapped ──► queue 0 ─┐                                    ┌─► other swp: passes
//!              copy ─────► queue 1 ─┤ swpN ─── tcx ingress ──► bridge, ──┤
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
//! has zero there. For a copy the ingress program answers *pass* with the stamp as its class, which is how
//! the kernel writes the field: filters of the user's own don't see it, the chip has applied them to the
//! frame itself. In all other cases both programs answer *next*, and the user's filters follow.
//!
//! **Where they stand.** In front of all others in tcx, where the kernel has it (6.6): `clsact` is the user's then. By
//! BPF_PROG_ATTACH and not by a link, which would die with switchd. Before 6.6, in a `clsact` of switchd's own, at preference 1.
//! Both ways the programs stay while the netdev lives, whatever becomes of switchd.
//!
//! **Whose they are.** A program has no mark of its owner's, so asicd keeps their descriptors beside those of the TAPs: the
//! next switchd takes over the very same programs, or replaces them by its own where these are others. So none is ever there
//! twice. Nothing is loaded after the start.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tandem_core::plant::Fault;
use tandem_linux::bpf::{self, Cond, Insn, ProgInfo, ProgType, Reg, Tcx, Width, skb, tc_act};
use tandem_linux::netlink::tc::{Direction, Slot, Tc};
use tandem_netlink::{HANDLE, PRIORITY};

use crate::ports::Keeper;

/// TAP queue for frames that the kernel must forward.
pub const QUEUE_TRAPPED: usize = 0;
/// TAP queue for copies of frames that the ASIC forwarded.
pub const QUEUE_COPY: usize = 1;
/// Queues of a port.
pub const QUEUES: usize = 2;

/// In `skb->tc_index` of a stamped frame.
const STAMP: i32 = 0x7d4d;

const INGRESS: [Insn; 7] = [
    Insn::load(Width::W, Reg::R2, Reg::R1, skb::QUEUE_MAPPING),
    Insn::mov_imm(Reg::R0, tc_act::UNSPEC),
    // the tun driver records queue q as q + 1
    Insn::jump_imm(Cond::Ne, Reg::R2, QUEUE_COPY as i32 + 1, 3),
    // kernels before 6.4 take no constant here (kernel/bpf/verifier.c: "BPF_ST stores into R1 ctx")
    Insn::mov_imm(Reg::R2, STAMP),
    Insn::store(Width::W, Reg::R1, skb::TC_CLASSID, Reg::R2),
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

/// Their names there begin with this. Those of versions that turned a port's `learning` off were this alone.
const CLSACT_NAMES: [(Direction, &str); 2] = [
    (Direction::Egress, "tandem_once"),
    (Direction::Ingress, "tandem_mark"),
];
/// Behind the names of versions that leave `learning` to the user.
const VERSION: &str = ".2";

/// Where the programs stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Hook {
    /// In tcx: kernel 6.6.
    Tcx,
    /// In `clsact`.
    Clsact,
}

impl Hook {
    /// What this kernel has.
    pub fn best() -> Hook {
        if bpf::has_tcx() {
            Hook::Tcx
        } else {
            Hook::Clsact
        }
    }
}

fn slot(ifindex: u32, direction: Direction) -> Slot {
    Slot {
        ifindex,
        direction,
        priority: PRIORITY,
        handle: HANDLE,
    }
}

#[derive(Debug)]
struct Program {
    fd: OwnedFd,
    info: ProgInfo,
}

impl Program {
    fn new(fd: OwnedFd) -> io::Result<Program> {
        let info = bpf::info(fd.as_fd())?;
        Ok(Program { fd, info })
    }

    fn load(name: &str, insns: &[Insn]) -> io::Result<Program> {
        Program::new(bpf::load(ProgType::SchedCls, name, insns)?)
    }
}

/// Under which name a program is kept: `mark/ingress/TAG`.
fn kept_name(hook: Tcx, info: &ProgInfo) -> String {
    let tag: String = info.tag.iter().map(|b| format!("{b:02x}")).collect();
    format!("{}{tag}", kept_prefix(hook))
}

fn kept_prefix(hook: Tcx) -> &'static str {
    match hook {
        Tcx::Ingress => "mark/ingress/",
        Tcx::Egress => "mark/egress/",
    }
}

/// The two programs, loaded once for all ports.
#[derive(Debug)]
pub struct ForwardMark {
    hook: Hook,
    ingress: Program,
    egress: Program,
    /// Programs of another version of switchd, where they may stand, and under which names they are kept.
    stale: Vec<(Tcx, Program, String)>,
}

impl ForwardMark {
    /// Loads the programs.
    pub fn load(hook: Hook) -> io::Result<Self> {
        Ok(ForwardMark {
            hook,
            ingress: Program::load("tandem_mark", &INGRESS)?,
            egress: Program::load("tandem_once", &EGRESS)?,
            stale: Vec::new(),
        })
    }

    /// Where the programs stand.
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// Takes over what an earlier switchd has left with `keeper`, and leaves there what this one uses. Where it can't be
    /// kept, `clsact` it is: whose a program in tcx is could not be told after a restart.
    pub fn settle(&mut self, keeper: &mut dyn Keeper) -> anyhow::Result<()> {
        let names = keeper.kept()?;
        for hook in [Tcx::Egress, Tcx::Ingress] {
            for name in &names {
                if !name.starts_with(kept_prefix(hook)) {
                    continue;
                }
                let Some(fd) = keeper.get(name)? else {
                    continue;
                };
                let kept = Program::new(fd)?;
                let own = self.program_mut(hook);
                if kept.info.tag == own.info.tag {
                    *own = kept;
                } else {
                    self.stale.push((hook, kept, name.clone()));
                }
            }
        }
        self.keep(keeper);
        Ok(())
    }

    /// Leaves the programs with `keeper`, before they are attached anywhere.
    fn keep(&mut self, keeper: &mut dyn Keeper) {
        let mut programs = self.to_keep().into_iter();
        let refused = programs.find_map(|(name, fd)| keeper.keep(&name, fd).err());
        if let Some(e) = refused {
            self.not_kept(&e);
        }
    }

    /// What is to be left with a keeper, before the programs are attached anywhere.
    pub fn to_keep(&self) -> Vec<(String, BorrowedFd<'_>)> {
        if self.hook == Hook::Clsact {
            return Vec::new();
        }
        let one = |hook| {
            let program = self.program(hook);
            (kept_name(hook, &program.info), program.fd.as_fd())
        };
        [Tcx::Egress, Tcx::Ingress].map(one).into()
    }

    /// The keeper has no room for them.
    pub fn not_kept(&mut self, why: &dyn std::fmt::Display) {
        tracing::warn!("forward mark: {why}: in clsact, not in tcx");
        self.hook = Hook::Clsact;
    }

    /// All ports have been attached: what another version had left is nowhere any more.
    pub fn settled(&mut self, keeper: &mut dyn Keeper) -> anyhow::Result<()> {
        for (_, _, name) in std::mem::take(&mut self.stale) {
            keeper.forget(&name)?;
        }
        Ok(())
    }

    fn program(&self, hook: Tcx) -> &Program {
        match hook {
            Tcx::Ingress => &self.ingress,
            Tcx::Egress => &self.egress,
        }
    }

    fn program_mut(&mut self, hook: Tcx) -> &mut Program {
        match hook {
            Tcx::Ingress => &mut self.ingress,
            Tcx::Egress => &mut self.egress,
        }
    }

    /// Attaches them to a netdev of the calling thread's namespace. Programs of an earlier switchd
    /// are replaced without a gap.
    pub fn attach(&self, tc: &mut Tc, ifindex: u32) -> io::Result<()> {
        let old = Self::left_in_clsact(tc, ifindex)?;
        match self.hook {
            Hook::Tcx => {
                self.attach_tcx(ifindex)?;
                if old.is_some() {
                    Self::leave_clsact(tc, ifindex)?;
                }
            }
            Hook::Clsact => {
                self.attach_clsact(tc, ifindex)?;
                self.leave_tcx(ifindex)?;
            }
        }
        Ok(())
    }

    /// Whether the programs at a netdev are those of a switchd that had turned `learning` off.
    pub fn had_learning_off(tc: &mut Tc, ifindex: u32) -> io::Result<bool> {
        Ok(Self::left_in_clsact(tc, ifindex)? == Some(true))
    }

    fn attach_tcx(&self, ifindex: u32) -> io::Result<()> {
        // egress first: a stamp that nobody looks at is harmless, but only while none is given
        for hook in [Tcx::Egress, Tcx::Ingress] {
            let program = self.program(hook);
            let there = bpf::tcx_programs(ifindex, hook)?;
            let mut attached = there.contains(&program.info.id);
            for (_, old, _) in self.stale.iter().filter(|(h, ..)| *h == hook) {
                if !there.contains(&old.info.id) {
                    continue;
                }
                if attached {
                    bpf::tcx_detach(ifindex, hook, old.fd.as_fd())?;
                } else {
                    bpf::tcx_replace(ifindex, hook, old.fd.as_fd(), program.fd.as_fd())?;
                    attached = true;
                }
            }
            if !attached {
                bpf::tcx_attach_first(ifindex, hook, program.fd.as_fd())?;
            }
        }
        Ok(())
    }

    fn leave_tcx(&self, ifindex: u32) -> io::Result<()> {
        if !bpf::has_tcx() {
            return Ok(());
        }
        for hook in [Tcx::Ingress, Tcx::Egress] {
            let own = [self.program(hook)];
            let stale = self.stale.iter().filter(|(h, ..)| *h == hook);
            for program in own.into_iter().chain(stale.map(|(_, p, _)| p)) {
                bpf::tcx_detach(ifindex, hook, program.fd.as_fd())?;
            }
        }
        Ok(())
    }

    fn attach_clsact(&self, tc: &mut Tc, ifindex: u32) -> io::Result<()> {
        tc.ensure_clsact(ifindex)?;
        for (direction, name) in CLSACT_NAMES {
            let program = match direction {
                Direction::Ingress => &self.ingress,
                Direction::Egress => &self.egress,
            };
            let name = format!("{name}{VERSION}");
            tc.replace_bpf(slot(ifindex, direction), program.fd.as_fd(), &name)?;
        }
        Ok(())
    }

    /// Whether a switchd has left programs in `clsact`; true: one that had turned `learning` off.
    fn left_in_clsact(tc: &mut Tc, ifindex: u32) -> io::Result<Option<bool>> {
        let mut left = None;
        for (direction, name) in CLSACT_NAMES {
            let there = tc.bpf_name(slot(ifindex, direction))?;
            if let Some(n) = there.filter(|n| n.starts_with(name)) {
                left = Some(left.unwrap_or_default() || n == name);
            }
        }
        Ok(left)
    }

    /// Takes the programs out of `clsact`, and that away where it has nothing of anybody's.
    fn leave_clsact(tc: &mut Tc, ifindex: u32) -> io::Result<()> {
        for (direction, _) in CLSACT_NAMES.into_iter().rev() {
            tc.remove_bpf(slot(ifindex, direction))?;
        }
        if !tc.has_filters(ifindex, Direction::Ingress)?
            && !tc.has_filters(ifindex, Direction::Egress)?
        {
            tc.remove_clsact(ifindex)?;
        }
        Ok(())
    }

    /// What is wrong with the mark at a netdev. `tc qdisc del` takes away the programs in `clsact`, anybody may those in tcx.
    pub fn fault(&self, tc: &mut Tc, ifindex: u32) -> io::Result<Option<Fault>> {
        let mut found = None;
        for (hook, direction) in [
            (Tcx::Egress, Direction::Egress),
            (Tcx::Ingress, Direction::Ingress),
        ] {
            let fault = match self.hook {
                Hook::Clsact => (!tc.has_bpf(slot(ifindex, direction))?).then_some(Fault::Missing),
                Hook::Tcx => {
                    let id = self.program(hook).info.id;
                    match bpf::tcx_programs(ifindex, hook)?
                        .iter()
                        .position(|i| *i == id)
                    {
                        None => Some(Fault::Missing),
                        Some(0) => None,
                        Some(_) => Some(Fault::NotFirst),
                    }
                }
            };
            if fault == Some(Fault::Missing) {
                return Ok(fault);
            }
            found = found.or(fault);
        }
        Ok(found)
    }
}

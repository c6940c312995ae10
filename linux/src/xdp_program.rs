//! The XDP program of an AF_XDP port: every frame goes to the socket of its queue, with what a socket buffer knows of
//! it in front.
//!
//! ```text
//!   a veth's frame is a socket buffer underneath:          what the AF_XDP socket gets:
//!     vlan tag beside the frame  ── kfunc ──────────┐        … │ Note, 12 bytes │ frame …
//!     partial checksum: start, offset ── kfuncs ────┴──────────────────▲
//! ```
//!
//! Two things of a frame are not in its bytes: an outer VLAN tag that its sender left beside it, and a transport
//! checksum that nobody has computed yet. A packet socket gets both from the kernel; an XDP program has to ask. The
//! tag: `bpf_xdp_metadata_rx_vlan_tag` (Linux 6.8; Documentation/networking/xdp-rx-metadata.rst). For the checksum
//! there is no such function; veth keeps a pointer to the socket buffer right behind its `struct xdp_buff`
//! (drivers/net/veth.c, `struct veth_xdp_buff`), and the program reads it there with `bpf_rdonly_cast` (Linux 6.2), at
//! offsets from the running kernel's own type information. Such reads can't do harm (they fault to zero), but a kernel
//! that keeps the pointer elsewhere would give wrong answers: a port is therefore tested before this is used.
//!
//! A NIC's frames come from a wire and have complete checksums; its tags are in the frame while the receive VLAN
//! offload is off. For those there is the plain program without notes.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::bpf::{self, Alu, Cond, Insn, ProgType, Reg, Width};
use crate::btf::Btf;
use crate::netlink::wire::{u16_at, u32_at};

const HELPER_REDIRECT_MAP: i32 = 51;
const HELPER_ADJUST_META: i32 = 54;
const XDP_DROP: i32 = 1;
// struct xdp_md (linux/bpf.h)
const MD_DATA: i16 = 0;
const MD_DATA_META: i16 = 8;
const MD_QUEUE: i16 = 16;
/// `skb->ip_summed` of a partial checksum (linux/skbuff.h).
const CHECKSUM_PARTIAL: i32 = 3;

/// Bytes of a [`Note`] in front of a frame.
pub const NOTE_LEN: usize = 12;
const HAS_TAG: u32 = 1;
const HAS_CSUM: u32 = 2;

/// What is not in a frame's own bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// A partial checksum: where summing starts, bytes from the start of the frame; where the result goes from there.
    pub csum: Option<(u16, u16)>,
    /// Outer VLAN tag beside the frame: TPID, TCI.
    pub tag: Option<(u16, u16)>,
}

impl Note {
    /// Reads it as the program writes it: start and offset of the checksum, TPID (network order), TCI, flags.
    #[inline]
    pub fn read(b: &[u8; NOTE_LEN]) -> Self {
        let flags = u32_at(b, 8);
        if flags == 0 {
            return Note::default();
        }
        Note {
            csum: (flags & HAS_CSUM != 0).then(|| (u16_at(b, 0), u16_at(b, 2))),
            tag: (flags & HAS_TAG != 0).then(|| (u16::from_be(u16_at(b, 4)), u16_at(b, 6))),
        }
    }
}

/// Where the running kernel has what the program for veth needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    vlan_tag: i32,
    cast_ctx: i32,
    cast: i32,
    xdp_buff: i32,
    xdp_buff_size: i32,
    xdp_buff_data: i16,
    sk_buff: i32,
    head: i16,
    data: i16,
    csum_start: i16,
    csum_offset: i16,
    ip_summed: i16,
    ip_summed_shift: u32,
}

impl Layout {
    /// Reads it from the kernel's type information; an error says what this kernel has not.
    pub fn of_kernel() -> io::Result<Self> {
        let btf = Btf::kernel()?;
        let int = |n: u32| i32::try_from(n).map_err(io::Error::other);
        let short = |n: u32| i16::try_from(n).map_err(io::Error::other);
        let function = |name| btf.function(name).and_then(int);
        let (xdp_buff, xdp_buff_size) = btf.structure("xdp_buff")?;
        let (sk_buff, _) = btf.structure("sk_buff")?;
        let member = |name| btf.member(sk_buff, name);
        let offset = |name| member(name).and_then(|m| short(m.byte()));
        let summed = member("ip_summed")?;
        if summed.bits != 2 || summed.bit % 8 > 6 {
            return Err(io::Error::other(
                "skb->ip_summed is no field of two bits here",
            ));
        }
        Ok(Layout {
            vlan_tag: function("bpf_xdp_metadata_rx_vlan_tag")?,
            cast_ctx: function("bpf_cast_to_kern_ctx")?,
            cast: function("bpf_rdonly_cast")?,
            xdp_buff: int(xdp_buff)?,
            xdp_buff_size: int(xdp_buff_size)?,
            xdp_buff_data: short(btf.member(xdp_buff, "data")?.byte())?,
            sk_buff: int(sk_buff)?,
            head: offset("head")?,
            data: offset("data")?,
            csum_start: offset("csum_start")?,
            csum_offset: offset("csum_offset")?,
            ip_summed: short(summed.byte())?,
            ip_summed_shift: summed.bit % 8,
        })
    }
}

/// Loads the program for a NIC: no notes.
pub fn load_plain(map: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut code = vec![Insn::mov(Reg::R6, Reg::R1)];
    redirect(&mut code, map);
    bpf::load_with(ProgType::Xdp, bpf::XDP_HAS_FRAGS, "tnd_port", &code)
}

/// Loads the program for the veth `ifindex` of the calling thread's network namespace: every frame gets a [`Note`].
pub fn load_noting(map: BorrowedFd<'_>, ifindex: u32, l: &Layout) -> io::Result<OwnedFd> {
    bpf::load_bound(ifindex, "tnd_port_note", &noting(map, l)?)
}

/// `return bpf_redirect_map(map, ctx->rx_queue_index, XDP_DROP)`, context in R6.
fn redirect(code: &mut Vec<Insn>, map: BorrowedFd<'_>) {
    code.extend(Insn::load_map(Reg::R1, map));
    code.extend([
        Insn::load(Width::W, Reg::R2, Reg::R6, MD_QUEUE),
        Insn::mov_imm(Reg::R3, XDP_DROP),
        Insn::call(HELPER_REDIRECT_MAP),
        Insn::exit(),
    ]);
}

// The note on the stack, before it is copied
const AT_START: i16 = -16;
const AT_OFFSET: i16 = -14;
const AT_TPID: i16 = -12;
const AT_TCI: i16 = -10;
const AT_FLAGS: i16 = -8;

fn noting(map: BorrowedFd<'_>, l: &Layout) -> io::Result<Vec<Insn>> {
    let mut a = Assembler::default();
    a.op(Insn::mov(Reg::R6, Reg::R1));
    // Room for the note; without it the frame could not be told from one with an old note
    a.op(Insn::mov_imm(Reg::R2, -(NOTE_LEN as i32)));
    a.op(Insn::call(HELPER_ADJUST_META));
    a.jump(Label::Drop, Insn::jump_imm(Cond::Ne, Reg::R0, 0, 0));
    a.op(Insn::store_imm(Width::Dw, Reg::R10, AT_START, 0));
    a.op(Insn::store_imm(Width::Dw, Reg::R10, AT_FLAGS, 0));
    // The tag
    a.op(Insn::mov(Reg::R1, Reg::R6));
    for (reg, at) in [(Reg::R2, AT_TPID), (Reg::R3, AT_TCI)] {
        a.op(Insn::mov(reg, Reg::R10));
        a.op(Insn::alu_imm(Alu::Add, reg, i32::from(at)));
    }
    a.op(Insn::call_kernel(l.vlan_tag));
    a.jump(Label::NoTag, Insn::jump_imm(Cond::Ne, Reg::R0, 0, 0));
    a.op(Insn::store_imm(
        Width::W,
        Reg::R10,
        AT_FLAGS,
        HAS_TAG as i32,
    ));
    a.here(Label::NoTag);
    // The word behind struct xdp_buff, read as if another one began there: its member `data` is a plain number
    a.op(Insn::mov(Reg::R1, Reg::R6));
    a.op(Insn::call_kernel(l.cast_ctx));
    a.op(Insn::mov(Reg::R1, Reg::R0));
    let behind = l.xdp_buff_size - i32::from(l.xdp_buff_data);
    a.op(Insn::alu_imm(Alu::Add, Reg::R1, behind));
    a.op(Insn::mov_imm(Reg::R2, l.xdp_buff));
    a.op(Insn::call_kernel(l.cast));
    a.op(Insn::load(Width::Dw, Reg::R1, Reg::R0, l.xdp_buff_data));
    a.jump(Label::NoSum, Insn::jump_imm(Cond::Eq, Reg::R1, 0, 0));
    // The socket buffer
    a.op(Insn::mov_imm(Reg::R2, l.sk_buff));
    a.op(Insn::call_kernel(l.cast));
    let mask = CHECKSUM_PARTIAL << l.ip_summed_shift;
    a.op(Insn::load(Width::B, Reg::R1, Reg::R0, l.ip_summed));
    a.op(Insn::alu_imm(Alu::And, Reg::R1, mask));
    a.jump(Label::NoSum, Insn::jump_imm(Cond::Ne, Reg::R1, mask, 0));
    // csum_start counts from head, the note from the frame
    a.op(Insn::load(Width::H, Reg::R1, Reg::R0, l.csum_start));
    a.op(Insn::load(Width::Dw, Reg::R2, Reg::R0, l.data));
    a.op(Insn::load(Width::Dw, Reg::R3, Reg::R0, l.head));
    a.op(Insn::alu(Alu::Add, Reg::R1, Reg::R3));
    a.op(Insn::alu(Alu::Sub, Reg::R1, Reg::R2));
    a.op(Insn::store(Width::H, Reg::R10, AT_START, Reg::R1));
    a.op(Insn::load(Width::H, Reg::R1, Reg::R0, l.csum_offset));
    a.op(Insn::store(Width::H, Reg::R10, AT_OFFSET, Reg::R1));
    a.op(Insn::load(Width::W, Reg::R1, Reg::R10, AT_FLAGS));
    a.op(Insn::alu_imm(Alu::Or, Reg::R1, HAS_CSUM as i32));
    a.op(Insn::store(Width::W, Reg::R10, AT_FLAGS, Reg::R1));
    a.here(Label::NoSum);
    // In front of the frame
    a.op(Insn::load(Width::W, Reg::R1, Reg::R6, MD_DATA_META));
    a.op(Insn::load(Width::W, Reg::R2, Reg::R6, MD_DATA));
    a.op(Insn::mov(Reg::R3, Reg::R1));
    a.op(Insn::alu_imm(Alu::Add, Reg::R3, NOTE_LEN as i32));
    a.jump(Label::Drop, Insn::jump_reg(Cond::Gt, Reg::R3, Reg::R2, 0));
    for n in 0..3 {
        a.op(Insn::load(Width::W, Reg::R3, Reg::R10, AT_START + 4 * n));
        a.op(Insn::store(Width::W, Reg::R1, 4 * n, Reg::R3));
    }
    redirect(&mut a.code, map);
    a.here(Label::Drop);
    a.op(Insn::mov_imm(Reg::R0, XDP_DROP));
    a.op(Insn::exit());
    a.finish()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    NoTag,
    NoSum,
    Drop,
}

/// Jumps forward, by name.
#[derive(Default)]
struct Assembler {
    code: Vec<Insn>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Assembler {
    fn op(&mut self, insn: Insn) {
        self.code.push(insn);
    }

    fn jump(&mut self, to: Label, insn: Insn) {
        self.jumps.push((self.code.len(), to));
        self.code.push(insn);
    }

    fn here(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    fn finish(mut self) -> io::Result<Vec<Insn>> {
        for (at, label) in self.jumps {
            let found = self.labels.iter().find(|(l, _)| *l == label);
            let skip = found.and_then(|(_, to)| i16::try_from(to.checked_sub(at + 1)?).ok());
            match (self.code.get_mut(at), skip) {
                (Some(insn), Some(skip)) => *insn = insn.skipping(skip),
                _ => return Err(io::Error::other("a jump of an XDP program leads nowhere")),
            }
        }
        Ok(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn notes_are_read() {
        let mut b = [0; NOTE_LEN];
        b[..4].copy_from_slice(&[34, 0, 16, 0]);
        assert_eq!(Note::read(&b), Note::default());
        b[8] = 2;
        let csum = Some((34, 16));
        assert_eq!(Note::read(&b), Note { csum, tag: None });
        b[4..8].copy_from_slice(&[0x88, 0xa8, 0x05, 0x20]);
        b[8] = 3;
        let tag = Some((0x88a8, 0x2005));
        assert_eq!(Note::read(&b), Note { csum, tag });
    }

    #[test]
    fn the_plain_program_passes_the_verifier() {
        match bpf::socket_map("t_map", 1).and_then(|map| load_plain(map.as_fd())) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("skipped: loading BPF needs root (CAP_BPF, CAP_NET_ADMIN)");
            }
            other => drop(other.unwrap()),
        }
    }
}

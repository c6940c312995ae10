//! Loading small hand-assembled BPF programs (bpf(2); instruction set: kernel
//! Documentation/bpf/standardization/instruction-set.rst).
//!
//! Programs of a few instructions need no compiler; the verifier's complaint is returned in the
//! error.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Registers. `R1` holds the context at entry, `R0` the answer, `R10` the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Reg {
    R0 = 0,
    R1 = 1,
    R2 = 2,
    R3 = 3,
    R4 = 4,
    R5 = 5,
    R6 = 6,
    R7 = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Width {
    /// 32 bits.
    W = 0x00,
    /// 16 bits.
    H = 0x08,
    /// 8 bits.
    B = 0x10,
    /// 64 bits.
    Dw = 0x18,
}

/// Condition of a jump that compares a register with a constant, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cond {
    /// Equal.
    Eq = 0x10,
    /// Greater.
    Gt = 0x20,
    /// Greater or equal.
    Ge = 0x30,
    /// Any bit in common.
    Set = 0x40,
    /// Not equal.
    Ne = 0x50,
    /// Less.
    Lt = 0xa0,
    /// Less or equal.
    Le = 0xb0,
}

/// Arithmetic on 64 bits with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Alu {
    /// Add.
    Add = 0x00,
    /// Subtract.
    Sub = 0x10,
    /// Or.
    Or = 0x40,
    /// And.
    And = 0x50,
    /// Shift left.
    Lsh = 0x60,
    /// Shift right, zero filled.
    Rsh = 0x70,
    /// What is left of a division, unsigned.
    Mod = 0x90,
    /// Exclusive or.
    Xor = 0xa0,
}

/// One instruction: `struct bpf_insn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Insn {
    code: u8,
    regs: u8,
    off: i16,
    imm: i32,
}

impl Insn {
    /// Any instruction, by its fields.
    pub const fn raw(code: u8, dst: Reg, src: Reg, off: i16, imm: i32) -> Self {
        Insn {
            code,
            regs: dst as u8 | ((src as u8) << 4),
            off,
            imm,
        }
    }

    /// `dst = imm` (64 bits, sign extended).
    pub const fn mov_imm(dst: Reg, imm: i32) -> Self {
        Self::raw(0xb7, dst, Reg::R0, 0, imm)
    }

    /// `dst = src`.
    pub const fn mov(dst: Reg, src: Reg) -> Self {
        Self::raw(0xbf, dst, src, 0, 0)
    }

    /// `dst = dst op imm`.
    pub const fn alu_imm(op: Alu, dst: Reg, imm: i32) -> Self {
        Self::raw(op as u8 | 0x07, dst, Reg::R0, 0, imm)
    }

    /// `dst = dst op src`.
    pub const fn alu(op: Alu, dst: Reg, src: Reg) -> Self {
        Self::raw(op as u8 | 0x0f, dst, src, 0, 0)
    }

    /// `dst = *(width *)(src + off)`.
    pub const fn load(width: Width, dst: Reg, src: Reg, off: i16) -> Self {
        Self::raw(0x61 | width as u8, dst, src, off, 0)
    }

    /// `*(width *)(dst + off) = src`.
    pub const fn store(width: Width, dst: Reg, off: i16, src: Reg) -> Self {
        Self::raw(0x63 | width as u8, dst, src, off, 0)
    }

    /// `*(width *)(dst + off) = imm`.
    pub const fn store_imm(width: Width, dst: Reg, off: i16, imm: i32) -> Self {
        Self::raw(0x62 | width as u8, dst, Reg::R0, off, imm)
    }

    /// `if dst cond imm: skip off instructions`.
    pub const fn jump_imm(cond: Cond, dst: Reg, imm: i32, off: i16) -> Self {
        Self::raw(0x05 | cond as u8, dst, Reg::R0, off, imm)
    }

    /// `if dst cond src: skip off instructions`.
    pub const fn jump_reg(cond: Cond, dst: Reg, src: Reg, off: i16) -> Self {
        Self::raw(0x0d | cond as u8, dst, src, off, 0)
    }

    /// Skip `off` instructions.
    pub const fn jump(off: i16) -> Self {
        Self::raw(0x05, Reg::R0, Reg::R0, off, 0)
    }

    /// The same jump with another distance.
    pub const fn skipping(self, off: i16) -> Self {
        Insn { off, ..self }
    }

    /// Call helper function `id` (linux/bpf.h, `BPF_FUNC_*`).
    pub const fn call(id: i32) -> Self {
        Self::raw(0x85, Reg::R0, Reg::R0, 0, id)
    }

    /// Call function `id` of the kernel itself (its number in the kernel's type information: [`crate::btf`]).
    pub const fn call_kernel(id: i32) -> Self {
        Self::raw(0x85, Reg::R0, Reg::R2, 0, id)
    }

    /// `dst = map`: takes the room of two instructions.
    pub fn load_map(dst: Reg, map: BorrowedFd<'_>) -> [Self; 2] {
        [
            Self::raw(0x18, dst, Reg::R1, 0, map.as_raw_fd()),
            Self::raw(0, Reg::R0, Reg::R0, 0, 0),
        ]
    }

    /// Return R0.
    pub const fn exit() -> Self {
        Self::raw(0x95, Reg::R0, Reg::R0, 0, 0)
    }
}

/// Offsets of `struct __sk_buff` (linux/bpf.h) that programs here use.
pub mod skb {
    /// Queue: at ingress the number of the rx queue + 1, 0 = not recorded.
    pub const QUEUE_MAPPING: i16 = 12;
    /// Traffic control index, writable, 16 bits.
    pub const TC_INDEX: i16 = 44;
    /// Traffic control class id, writable.
    pub const TC_CLASSID: i16 = 72;
}

/// Answers of a direct-action traffic control program (linux/pkt_cls.h).
pub mod tc_act {
    /// Go on as configured.
    pub const UNSPEC: i32 = -1;
    /// Let it pass.
    pub const OK: i32 = 0;
    /// Drop it.
    pub const SHOT: i32 = 2;
}

/// What a program may be attached to (`enum bpf_prog_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ProgType {
    /// Traffic control classifier.
    SchedCls = 3,
    /// XDP.
    Xdp = 6,
}

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_long = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_ATTACH: libc::c_long = 8;
const BPF_PROG_DETACH: libc::c_long = 9;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_PROG_QUERY: libc::c_long = 16;
const BPF_F_REPLACE: u32 = 1 << 2;
const BPF_F_BEFORE: u32 = 1 << 3;
/// Programs at one hook at most (`BPF_MPROG_MAX`).
const TCX_MAX: usize = 64;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;

/// The part of `union bpf_attr` that BPF_PROG_LOAD of a plain program needs.
#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

/// `prog_flags` of a program that takes packets in several pieces (BPF_F_XDP_HAS_FRAGS): an interface with a large MTU
/// wants it.
pub const XDP_HAS_FRAGS: u32 = 1 << 5;

/// `prog_flags` of a program that asks one netdev, and no other, what it knows of a frame (BPF_F_XDP_DEV_BOUND_ONLY).
const XDP_DEV_BOUND_ONLY: u32 = 1 << 6;

/// Loads a program. `name` is shown by `bpftool`/`tc`, at most 15 bytes of letters, digits, `_`.
pub fn load(kind: ProgType, name: &str, insns: &[Insn]) -> io::Result<OwnedFd> {
    load_with(kind, 0, name, insns)
}

/// As [`load`], with `prog_flags` of bpf(2).
pub fn load_with(kind: ProgType, flags: u32, name: &str, insns: &[Insn]) -> io::Result<OwnedFd> {
    load_for(kind, flags, 0, name, insns)
}

/// An XDP program that takes frames in several pieces and may ask the netdev `ifindex` of the calling thread's network
/// namespace what it knows of them; it runs on that one only.
pub fn load_bound(ifindex: u32, name: &str, insns: &[Insn]) -> io::Result<OwnedFd> {
    let flags = XDP_HAS_FRAGS | XDP_DEV_BOUND_ONLY;
    load_for(ProgType::Xdp, flags, ifindex, name, insns)
}

fn load_for(
    kind: ProgType,
    flags: u32,
    ifindex: u32,
    name: &str,
    insns: &[Insn],
) -> io::Result<OwnedFd> {
    match try_load(kind, flags, ifindex, name, insns, None) {
        Ok(fd) => Ok(fd),
        Err(first) => {
            let mut log = vec![0u8; 16 * 1024];
            match try_load(kind, flags, ifindex, name, insns, Some(&mut log)) {
                Ok(fd) => Ok(fd),
                Err(_) => {
                    let text: Vec<u8> = log.into_iter().take_while(|b| *b != 0).collect();
                    let text = String::from_utf8_lossy(&text);
                    let last = text
                        .lines()
                        .rfind(|l| !l.is_empty() && !l.starts_with("processed "))
                        .unwrap_or("");
                    Err(io::Error::new(
                        first.kind(),
                        format!("BPF program {name}: {first} {last}"),
                    ))
                }
            }
        }
    }
}

fn try_load(
    kind: ProgType,
    flags: u32,
    ifindex: u32,
    name: &str,
    insns: &[Insn],
    log: Option<&mut [u8]>,
) -> io::Result<OwnedFd> {
    let license = c"Dual BSD/GPL";
    let mut attr = ProgLoad {
        prog_type: kind as u32,
        insn_cnt: u32::try_from(insns.len()).map_err(io::Error::other)?,
        insns: insns.as_ptr() as u64,
        license: license.as_ptr() as u64,
        prog_flags: flags,
        prog_ifindex: ifindex,
        ..ProgLoad::default()
    };
    for (to, from) in attr.prog_name.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    if let Some(log) = log {
        attr.log_level = 1;
        attr.log_size = u32::try_from(log.len()).map_err(io::Error::other)?;
        attr.log_buf = log.as_mut_ptr() as u64;
    }
    // SAFETY: `attr` is laid out as the kernel's union up to expected_attach_type and its size is passed;
    // the pointers in it are to memory that outlives the call, with the lengths given.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_LOAD,
            &raw const attr,
            size_of::<ProgLoad>(),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us (close-on-exec); it fits an int.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// What the kernel calls a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgInfo {
    /// Number, as `bpftool` and [`tcx_programs`] show it.
    pub id: u32,
    /// Hash of its instructions: the same for equal programs.
    pub tag: [u8; 8],
}

/// The part of `union bpf_attr` that BPF_OBJ_GET_INFO_BY_FD uses.
#[repr(C)]
struct ObjInfo {
    fd: u32,
    size: u32,
    at: u64,
}

/// Number and tag of a program.
pub fn info(program: BorrowedFd<'_>) -> io::Result<ProgInfo> {
    // the head of struct bpf_prog_info: type, id, tag
    let mut head = [0u32; 4];
    let attr = ObjInfo {
        fd: program.as_raw_fd().cast_unsigned(),
        size: u32::try_from(size_of_val(&head)).map_err(io::Error::other)?,
        at: (&raw mut head) as u64,
    };
    // SAFETY: `attr` is laid out as the kernel's union, its size is passed, and the buffer in it has the writable bytes
    // that it says and outlives the call.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_OBJ_GET_INFO_BY_FD,
            &raw const attr,
            size_of::<ObjInfo>(),
        )
    };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    let [_, id, a, b] = head;
    let mut tag = [0; 8];
    for (to, from) in tag
        .iter_mut()
        .zip(a.to_ne_bytes().into_iter().chain(b.to_ne_bytes()))
    {
        *to = from;
    }
    Ok(ProgInfo { id, tag })
}

/// A hook of tcx (kernel 6.6): programs at a netdev, in an order, before the filters of `clsact` and without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Tcx {
    /// Frames that the netdev received.
    Ingress = 46,
    /// Frames that leave by it.
    Egress = 47,
}

/// The part of `union bpf_attr` that BPF_PROG_ATTACH and BPF_PROG_DETACH use.
#[repr(C)]
#[derive(Default)]
struct Attach {
    ifindex: u32,
    program: u32,
    kind: u32,
    flags: u32,
    replaced: u32,
    relative: u32,
    revision: u64,
}

/// The part of `union bpf_attr` that BPF_PROG_QUERY uses.
#[repr(C)]
#[derive(Default)]
struct Query {
    ifindex: u32,
    kind: u32,
    query_flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    pad: u32,
    ids_flags: u64,
    links: u64,
    links_flags: u64,
    revision: u64,
}

/// Numbers of the programs at a netdev's hook, in the order in which they run. The netdev is one of the calling thread's
/// network namespace. `InvalidInput`: this kernel has no tcx, or there is no such netdev.
pub fn tcx_programs(ifindex: u32, hook: Tcx) -> io::Result<Vec<u32>> {
    let mut ids = vec![0u32; TCX_MAX];
    let mut attr = Query {
        ifindex,
        kind: hook as u32,
        ids: ids.as_mut_ptr() as u64,
        count: u32::try_from(TCX_MAX).map_err(io::Error::other)?,
        ..Query::default()
    };
    // SAFETY: `attr` is laid out as the kernel's union and its size is passed; the kernel writes at most `count` numbers to
    // `ids`, which outlives the call.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_QUERY,
            &raw mut attr,
            size_of::<Query>(),
        )
    };
    if ret < 0 {
        return match io::Error::last_os_error() {
            // nothing was ever attached here
            e if e.raw_os_error() == Some(libc::ENOENT) => Ok(Vec::new()),
            e => Err(e),
        };
    }
    ids.truncate(usize::try_from(attr.count).unwrap_or(TCX_MAX));
    Ok(ids)
}

/// Whether this kernel has tcx.
pub fn has_tcx() -> bool {
    // 1 is the loopback device of every namespace
    tcx_programs(1, Tcx::Ingress).is_ok()
}

/// Attaches a program before all that are there. It stays until it is detached or the netdev goes, whoever closes its
/// descriptor.
pub fn tcx_attach_first(ifindex: u32, hook: Tcx, program: BorrowedFd<'_>) -> io::Result<()> {
    attach(BPF_PROG_ATTACH, ifindex, hook, program, BPF_F_BEFORE, None)
}

/// Puts a program in the place of another, without a gap.
pub fn tcx_replace(
    ifindex: u32,
    hook: Tcx,
    old: BorrowedFd<'_>,
    program: BorrowedFd<'_>,
) -> io::Result<()> {
    attach(
        BPF_PROG_ATTACH,
        ifindex,
        hook,
        program,
        BPF_F_REPLACE,
        Some(old),
    )
}

/// Detaches a program; absent is fine.
pub fn tcx_detach(ifindex: u32, hook: Tcx, program: BorrowedFd<'_>) -> io::Result<()> {
    match attach(BPF_PROG_DETACH, ifindex, hook, program, 0, None) {
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        done => done,
    }
}

fn attach(
    command: libc::c_long,
    ifindex: u32,
    hook: Tcx,
    program: BorrowedFd<'_>,
    flags: u32,
    replaced: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let attr = Attach {
        ifindex,
        program: program.as_raw_fd().cast_unsigned(),
        kind: hook as u32,
        flags,
        replaced: replaced.map_or(0, |fd| fd.as_raw_fd().cast_unsigned()),
        ..Attach::default()
    };
    // SAFETY: `attr` is laid out as the kernel's union and its size is passed; there are no pointers in it.
    let ret =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw const attr, size_of::<Attach>()) };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The part of `union bpf_attr` that BPF_MAP_UPDATE_ELEM and BPF_MAP_LOOKUP_ELEM use.
#[repr(C)]
#[derive(Default)]
struct MapElement {
    map_fd: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A map of AF_XDP sockets by number, 0 to `entries` - 1.
pub fn socket_map(name: &str, entries: u32) -> io::Result<OwnedFd> {
    create_map(BPF_MAP_TYPE_XSKMAP, 4, entries, name)
}

/// A map with one value, of `N` 64-bit words; its key is 0.
pub fn words_map<const N: usize>(name: &str, words: &[u64; N]) -> io::Result<OwnedFd> {
    let size = u32::try_from(size_of_val(words)).map_err(io::Error::other)?;
    let map = create_map(BPF_MAP_TYPE_ARRAY, size, 1, name)?;
    // SAFETY: the map has just been made for values of this size.
    unsafe { update(map.as_fd(), 0, (&raw const *words).cast()) }?;
    Ok(map)
}

/// The words of a map that [`words_map`] made of as many.
pub fn read_words<const N: usize>(map: BorrowedFd<'_>) -> io::Result<[u64; N]> {
    let (key, mut words) = (0u32, [0u64; N]);
    let attr = MapElement {
        map_fd: map.as_raw_fd().cast_unsigned(),
        key: (&raw const key) as u64,
        value: (&raw mut words) as u64,
        ..MapElement::default()
    };
    // SAFETY: `attr` is laid out as the kernel's union and its size is passed; the key has 4 readable bytes, the value as
    // many writable ones as the map was made for; both outlive the call.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_LOOKUP_ELEM,
            &raw const attr,
            size_of::<MapElement>(),
        )
    };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(words)
}

fn create_map(kind: u32, value_size: u32, entries: u32, name: &str) -> io::Result<OwnedFd> {
    // map_type, key_size, value_size, max_entries, map_flags, inner_map_fd, numa_node, map_name: the head of the union
    let mut attr = [0u32; 11];
    let head = [kind, 4, value_size, entries];
    for (to, from) in attr.iter_mut().zip(head) {
        *to = from;
    }
    let mut text = [0u8; 16];
    for (to, from) in text.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    for (to, from) in attr.iter_mut().skip(7).zip(text.chunks_exact(4)) {
        *to = from.first_chunk().map_or(0, |c| u32::from_ne_bytes(*c));
    }
    // SAFETY: `attr` has the layout of the kernel's union up to map_name, and its size is passed.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_CREATE,
            attr.as_ptr(),
            size_of_val(&attr),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us (close-on-exec); it fits an int.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Puts a socket into a map that [`socket_map`] made.
pub fn set_socket(map: BorrowedFd<'_>, key: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = socket.as_raw_fd();
    // SAFETY: a socket map's values are descriptors, 4 bytes each.
    unsafe { update(map, key, (&raw const value).cast()) }
}

/// # Safety
/// `value` points to as many readable bytes as the map's values have.
unsafe fn update(map: BorrowedFd<'_>, key: u32, value: *const u8) -> io::Result<()> {
    let attr = MapElement {
        map_fd: map.as_raw_fd().cast_unsigned(),
        key: (&raw const key) as u64,
        value: value as u64,
        ..MapElement::default()
    };
    // SAFETY: `attr` is laid out as the kernel's union and its size is passed; the key has 4 readable bytes, as all maps
    // here are made for, the value as many as the caller promises; both outlive the call.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_UPDATE_ELEM,
            &raw const attr,
            size_of::<MapElement>(),
        )
    };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_encoded_as_the_kernel_wants() {
        let i = Insn::mov_imm(Reg::R0, 2);
        assert_eq!((i.code, i.regs, i.off, i.imm), (0xb7, 0, 0, 2));
        let i = Insn::load(Width::W, Reg::R2, Reg::R1, skb::QUEUE_MAPPING);
        assert_eq!((i.code, i.regs, i.off, i.imm), (0x61, 0x12, 12, 0));
        assert_eq!(size_of::<Insn>(), 8);
    }

    #[test]
    fn verifier_accepts_drop_and_explains_a_refusal() {
        let drop_all = [Insn::mov_imm(Reg::R0, tc_act::SHOT), Insn::exit()];
        match load(ProgType::SchedCls, "t_drop", &drop_all) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("skipped: loading BPF needs root (CAP_BPF, CAP_NET_ADMIN)");
                return;
            }
            Err(e) => panic!("{e}"),
        }
        // R0 is not set: the verifier says so
        let e = load(ProgType::SchedCls, "t_bad", &[Insn::exit()]).unwrap_err();
        assert!(e.to_string().contains("R0"), "{e}");
    }
}

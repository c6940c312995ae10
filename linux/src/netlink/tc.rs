//! Traffic control: the `clsact` qdisc and BPF programs at its two hooks (tc-bpf(8)).
//!
//! A small raw rtnetlink socket of its own; messages are built here because only five of them
//! are ever sent.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

// linux/rtnetlink.h, linux/netlink.h
const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;
const RTM_GETTFILTER: u16 = 46;
const RTMGRP_TC: u32 = 1 << 3;
const TCMSG_LEN: usize = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x01;
const NLM_F_ACK: u16 = 0x04;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_CREATE: u16 = 0x400;
// linux/pkt_sched.h
const TC_H_CLSACT: u32 = 0xffff_fff1;
const TC_H_CLSACT_MAJOR: u32 = 0xffff_0000;
// linux/pkt_cls.h
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_OPS_LEN: u16 = 4;
const TCA_BPF_OPS: u16 = 5;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
const ETH_P_ALL: u16 = 3;
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;

/// Which of the two hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Frames that the netdev received, after packet sockets saw them, before the local stack.
    Ingress,
    /// Frames that the local stack sends, before the netdev. PACKET_QDISC_BYPASS skips it.
    Egress,
}

impl Direction {
    fn parent(self) -> u32 {
        TC_H_CLSACT_MAJOR
            | match self {
                Direction::Ingress => 0xfff2,
                Direction::Egress => 0xfff3,
            }
    }
}

/// Place of a filter on a hook: lower priorities run first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The netdev.
    pub ifindex: u32,
    /// The hook.
    pub direction: Direction,
    /// 1..65535.
    pub priority: u16,
    /// Number of the filter within its priority, from 1.
    pub handle: u32,
}

/// One instruction of classic BPF: `struct sock_filter` (linux/filter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassicInsn {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if a jump's condition holds.
    pub jt: u8,
    /// Instructions to skip if it doesn't.
    pub jf: u8,
    /// Constant.
    pub k: u32,
}

/// The classic program that drops every frame: how a front-panel netdev is cut off from the local
/// stack. It loads `note` first, which does nothing but be read again by [`noted`].
///
/// ```text
///   ld  #note
///   ret #2       TC_ACT_SHOT
/// ```
pub fn drop_all(note: u32) -> [ClassicInsn; 2] {
    [(0x00, note), (0x06, 2)].map(|(code, k)| ClassicInsn {
        code,
        jt: 0,
        jf: 0,
        k,
    })
}

/// The note in a program that [`drop_all`] made.
pub fn noted(program: &[ClassicInsn]) -> Option<u32> {
    let note = program.first()?.k;
    (program == drop_all(note)).then_some(note)
}

/// A rtnetlink socket for traffic control, in the network namespace of the thread that opened it.
pub struct Tc {
    socket: Socket,
    seq: u32,
}

impl Tc {
    /// Opens the socket.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.set_ext_ack(true)?;
        Ok(Tc { socket, seq: 0 })
    }

    /// Makes sure that the netdev has a `clsact` qdisc; true when it was made by this call.
    pub fn ensure_clsact(&mut self, ifindex: u32) -> io::Result<bool> {
        let mut m = Message::new(
            RTM_NEWQDISC,
            NLM_F_CREATE | NLM_F_EXCL,
            ifindex,
            TC_H_CLSACT_MAJOR,
            TC_H_CLSACT,
            0,
        );
        m.attr(TCA_KIND, b"clsact\0");
        match self.request(m) {
            Ok(()) => Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::EEXIST) => Ok(false),
            Err(e) => Err(named(e, "clsact qdisc")),
        }
    }

    /// Removes the `clsact` qdisc with all filters on it; absent is fine.
    pub fn remove_clsact(&mut self, ifindex: u32) -> io::Result<()> {
        let mut m = Message::new(RTM_DELQDISC, 0, ifindex, TC_H_CLSACT_MAJOR, TC_H_CLSACT, 0);
        m.attr(TCA_KIND, b"clsact\0");
        absent_is_fine(self.request(m)).map_err(|e| named(e, "removing clsact"))
    }

    /// Puts a direct-action program at `slot`, in place of the one that is there, without a gap.
    /// The `clsact` qdisc must be there. `name` is what `tc filter show` prints.
    pub fn replace_bpf(
        &mut self,
        slot: Slot,
        program: BorrowedFd<'_>,
        name: &str,
    ) -> io::Result<()> {
        let mut m = Message::filter(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE, slot);
        m.attr(TCA_KIND, b"bpf\0");
        let options = m.begin(TCA_OPTIONS);
        m.attr(TCA_BPF_FD, &program.as_raw_fd().to_ne_bytes());
        let mut cname = name.as_bytes().to_vec();
        cname.push(0);
        m.attr(TCA_BPF_NAME, &cname);
        m.attr(TCA_BPF_FLAGS, &TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes());
        m.end(options);
        self.request(m).map_err(|e| named(e, "BPF filter"))
    }

    /// As [`Tc::replace_bpf`] with a classic BPF program, which needs neither bpf(2) nor its
    /// capability: CAP_NET_ADMIN over the netdev's namespace is enough.
    pub fn replace_classic(&mut self, slot: Slot, program: &[ClassicInsn]) -> io::Result<()> {
        let mut m = Message::filter(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE, slot);
        m.attr(TCA_KIND, b"bpf\0");
        let options = m.begin(TCA_OPTIONS);
        let len = u16::try_from(program.len()).map_err(io::Error::other)?;
        m.attr(TCA_BPF_OPS_LEN, &len.to_ne_bytes());
        let mut ops = Vec::with_capacity(program.len() * 8);
        for insn in program {
            ops.extend_from_slice(&insn.code.to_ne_bytes());
            ops.extend_from_slice(&[insn.jt, insn.jf]);
            ops.extend_from_slice(&insn.k.to_ne_bytes());
        }
        m.attr(TCA_BPF_OPS, &ops);
        m.attr(TCA_BPF_FLAGS, &TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes());
        m.end(options);
        self.request(m).map_err(|e| named(e, "classic BPF filter"))
    }

    /// Whether a BPF filter is at `slot`. A netdev that is not in this namespace has none.
    pub fn has_bpf(&mut self, slot: Slot) -> io::Result<bool> {
        Ok(self.read_bpf(slot)?.is_some())
    }

    /// The classic program at `slot`; none: nothing is there, or something else is.
    pub fn classic(&mut self, slot: Slot) -> io::Result<Option<Vec<ClassicInsn>>> {
        Ok(self.read_bpf(slot)?.as_deref().and_then(parse_classic))
    }

    /// The name under which the BPF filter at `slot` was put there (`TCA_BPF_NAME`; empty: it has none).
    pub fn bpf_name(&mut self, slot: Slot) -> io::Result<Option<String>> {
        let Some(filter) = self.read_bpf(slot)? else {
            return Ok(None);
        };
        let name = find(&filter, TCA_OPTIONS)
            .and_then(|o| find(o, TCA_BPF_NAME))
            .and_then(|n| n.split(|b| *b == 0).next())
            .unwrap_or_default();
        Ok(Some(String::from_utf8_lossy(name).into_owned()))
    }

    /// Whether a hook of the netdev's `clsact` has filters.
    pub fn has_filters(&mut self, ifindex: u32, direction: Direction) -> io::Result<bool> {
        let m = Message::new(
            RTM_GETTFILTER,
            NLM_F_DUMP,
            ifindex,
            0,
            direction.parent(),
            0,
        );
        let mut any = false;
        let done = self.ask(m, &mut |_| any = true);
        match done {
            _ if any => Ok(true),
            Ok(()) => Ok(false),
            Err(e) if absent(&e) => Ok(false),
            Err(e) => Err(named(e, "listing filters")),
        }
    }

    /// The attributes of the BPF filter at `slot`, empty if the kernel gave none.
    fn read_bpf(&mut self, slot: Slot) -> io::Result<Option<Vec<u8>>> {
        let mut m = Message::filter(RTM_GETTFILTER, 0, slot);
        m.attr(TCA_KIND, b"bpf\0");
        let mut filter = Vec::new();
        match self.ask(m, &mut |answer| filter.extend_from_slice(answer)) {
            Ok(()) => Ok(Some(filter)),
            Err(e) if absent(&e) => Ok(None),
            Err(e) => Err(named(e, "reading a BPF filter")),
        }
    }

    /// Removes the filter at `slot`; absent is fine.
    pub fn remove_bpf(&mut self, slot: Slot) -> io::Result<()> {
        let mut m = Message::filter(RTM_DELTFILTER, 0, slot);
        m.attr(TCA_KIND, b"bpf\0");
        absent_is_fine(self.request(m)).map_err(|e| named(e, "removing a BPF filter"))
    }

    fn request(&mut self, message: Message) -> io::Result<()> {
        self.ask(message, &mut |_| ())
    }

    /// `found` gets the attributes of every filter in the answer.
    fn ask(&mut self, message: Message, found: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.seq = self.seq.wrapping_add(1);
        let bytes = message.finish(self.seq);
        self.socket.send(&bytes, 0)?;
        // One answer per request; answers to requests that an error cut short are passed over.
        for _ in 0..16 {
            let (answer, _) = self.socket.recv_from_full()?;
            if let Some(result) = parse_answer(&answer, self.seq, found) {
                return result;
            }
        }
        Err(io::Error::other("traffic control: no acknowledgement"))
    }
}

/// Says when a `clsact` or `ingress` qdisc was deleted, and its filters with it.
pub struct QdiscWatch {
    socket: Socket,
}

impl QdiscWatch {
    /// Listens in the network namespace of the calling thread.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, RTMGRP_TC))?;
        socket.set_non_blocking(true)?;
        Ok(QdiscWatch { socket })
    }

    /// Whether one was deleted since the last call; also when messages were lost.
    pub fn deleted(&mut self) -> bool {
        let mut any = false;
        // what is beyond waits for the next call
        for _ in 0..64 {
            match self.socket.recv_from_full() {
                Ok((datagram, _)) => any |= deletes_clsact(&datagram),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => any = true,
            }
        }
        any
    }
}

impl AsFd for QdiscWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a message of the datagram says that a `clsact` or `ingress` qdisc is gone.
fn deletes_clsact(datagram: &[u8]) -> bool {
    let mut rest = datagram;
    while let (Some(len), Some(kind)) = (word(rest, 0), half(rest, 4)) {
        // handle and parent of struct tcmsg
        let ours = word(rest, 16 + 8) == Some(TC_H_CLSACT_MAJOR)
            || word(rest, 16 + 12) == Some(TC_H_CLSACT);
        if kind == RTM_DELQDISC && ours {
            return true;
        }
        let Some(next) = rest.get((len.max(16) as usize + 3) & !3..) else {
            return false;
        };
        rest = next;
    }
    false
}

fn named(e: io::Error, what: &str) -> io::Error {
    io::Error::new(e.kind(), format!("tc: {what}: {e}"))
}

fn absent_is_fine(r: io::Result<()>) -> io::Result<()> {
    match r {
        Err(e) if absent(&e) => Ok(()),
        other => other,
    }
}

fn absent(e: &io::Error) -> bool {
    matches!(
        e.raw_os_error(),
        Some(libc::ENOENT | libc::EINVAL | libc::ENODEV)
    )
}

/// The acknowledgement with sequence `seq` among the messages in `answer`; filters before it go to
/// `found`.
fn parse_answer(answer: &[u8], seq: u32, found: &mut dyn FnMut(&[u8])) -> Option<io::Result<()>> {
    let mut rest = answer;
    while let (Some(len), Some(kind), Some(flags), Some(got)) =
        (word(rest, 0), half(rest, 4), half(rest, 6), word(rest, 8))
    {
        let len = len as usize;
        let body = rest.get(16..len)?;
        if kind == NLMSG_ERROR && got == seq {
            let code = word(body, 0)? as i32;
            if code == 0 {
                return Some(Ok(()));
            }
            let os = io::Error::from_raw_os_error(-code);
            return Some(Err(match extack(body, flags) {
                // The number stays readable for callers that compare it
                Some(text) if !matches!(-code, libc::EEXIST | libc::ENOENT | libc::EINVAL) => {
                    io::Error::new(os.kind(), format!("{text} ({os})"))
                }
                _ => os,
            }));
        }
        if kind == NLMSG_DONE && got == seq {
            return Some(Ok(()));
        }
        if kind == RTM_NEWTFILTER && got == seq {
            found(body.get(TCMSG_LEN..)?);
        }
        rest = rest.get((len + 3) & !3..)?;
    }
    None
}

/// The value of the first attribute `kind` in `attrs`.
fn find(attrs: &[u8], kind: u16) -> Option<&[u8]> {
    let mut at = 0;
    while let (Some(len), Some(have)) = (half(attrs, at), half(attrs, at + 2)) {
        let len = usize::from(len);
        if len < 4 {
            return None;
        }
        if have & 0x3fff == kind {
            return attrs.get(at + 4..at + len);
        }
        at += (len + 3) & !3;
    }
    None
}

/// The classic program in a filter's attributes.
fn parse_classic(filter: &[u8]) -> Option<Vec<ClassicInsn>> {
    let ops = find(find(filter, TCA_OPTIONS)?, TCA_BPF_OPS)?;
    ops.chunks_exact(8)
        .map(|op| {
            Some(ClassicInsn {
                code: half(op, 0)?,
                jt: *op.get(2)?,
                jf: *op.get(3)?,
                k: word(op, 4)?,
            })
        })
        .collect()
}

/// Text of an extended acknowledgement (linux/netlink.h, NLMSGERR_ATTR_MSG).
fn extack(body: &[u8], flags: u16) -> Option<String> {
    if flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let original = word(body, 4)? as usize;
    let at = if flags & NLM_F_CAPPED != 0 {
        4 + 16
    } else {
        4 + ((original + 3) & !3)
    };
    let text = find(body.get(at..)?, NLMSGERR_ATTR_MSG)?;
    let text = text.split(|b| *b == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn word(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(b.get(at..at + 4)?.try_into().ok()?))
}

fn half(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

/// `struct nlmsghdr` + `struct tcmsg` + attributes.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16, ifindex: u32, handle: u32, parent: u32, info: u32) -> Self {
        let mut b = Vec::with_capacity(128);
        b.extend_from_slice(&0u32.to_ne_bytes());
        b.extend_from_slice(&kind.to_ne_bytes());
        b.extend_from_slice(&(flags | NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        b.extend_from_slice(&[0; 8]);
        b.extend_from_slice(&[0; 4]); // family, padding
        for word in [ifindex, handle, parent, info] {
            b.extend_from_slice(&word.to_ne_bytes());
        }
        Message(b)
    }

    fn filter(kind: u16, flags: u16, slot: Slot) -> Self {
        let info = u32::from(slot.priority) << 16 | u32::from(ETH_P_ALL.to_be());
        Self::new(
            kind,
            flags,
            slot.ifindex,
            slot.handle,
            slot.direction.parent(),
            info,
        )
    }

    fn attr(&mut self, kind: u16, data: &[u8]) {
        let at = self.begin(kind);
        self.0.extend_from_slice(data);
        self.end(at);
    }

    fn begin(&mut self, kind: u16) -> usize {
        let at = self.0.len();
        self.0.extend_from_slice(&0u16.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        at
    }

    fn end(&mut self, at: usize) {
        let len = (self.0.len() - at) as u16;
        if let Some(to) = self.0.get_mut(at..at + 2) {
            to.copy_from_slice(&len.to_ne_bytes());
        }
        while !self.0.len().is_multiple_of(4) {
            self.0.push(0);
        }
    }

    fn finish(mut self, seq: u32) -> Vec<u8> {
        let len = self.0.len() as u32;
        if let Some(to) = self.0.get_mut(0..4) {
            to.copy_from_slice(&len.to_ne_bytes());
        }
        if let Some(to) = self.0.get_mut(8..12) {
            to.copy_from_slice(&seq.to_ne_bytes());
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_aligned_and_sized() {
        let mut m = Message::new(RTM_NEWQDISC, 0, 7, 1, 2, 3);
        m.attr(TCA_KIND, b"bpf\0");
        let nest = m.begin(TCA_OPTIONS);
        m.attr(TCA_BPF_NAME, b"ab\0");
        m.end(nest);
        let b = m.finish(9);
        assert_eq!(word(&b, 0).unwrap() as usize, b.len());
        assert_eq!(word(&b, 8), Some(9));
        assert_eq!(b.len(), 16 + 20 + 8 + 4 + 8);
        assert_eq!(half(&b, 44), Some(12), "a nest counts its inner padding");
    }

    #[test]
    fn a_deleted_clsact_is_seen_behind_other_messages() {
        let other = Message::new(RTM_NEWQDISC, 0, 7, TC_H_CLSACT_MAJOR, TC_H_CLSACT, 0).finish(1);
        let root = Message::new(RTM_DELQDISC, 0, 7, 0x8001_0000, 0xffff_ffff, 0).finish(1);
        let clsact = Message::new(RTM_DELQDISC, 0, 7, TC_H_CLSACT_MAJOR, TC_H_CLSACT, 0).finish(1);
        assert!(!deletes_clsact(&[&other[..], &root].concat()));
        assert!(deletes_clsact(&[&other[..], &root, &clsact].concat()));
    }

    #[test]
    fn a_note_is_read_again() {
        let mut m = Message(Vec::new());
        m.attr(TCA_KIND, b"bpf\0");
        let options = m.begin(TCA_OPTIONS);
        m.attr(
            TCA_BPF_OPS,
            &[0, 0, 0, 0, 220, 5, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0],
        );
        m.end(options);
        let program = parse_classic(&m.0).unwrap();
        assert_eq!(program, drop_all(1500));
        assert_eq!(noted(&program), Some(1500));
        assert_eq!(noted(&program[1..]), None);
        assert_eq!(noted(&[]), None);
    }

    #[test]
    fn cut_answers_are_no_answer() {
        for n in 0..20 {
            assert!(parse_answer(&vec![1u8; n], 1, &mut |_| ()).is_none());
            assert!(parse_classic(&vec![1u8; n]).is_none());
            assert!(!deletes_clsact(&vec![0u8; n]));
        }
    }
}

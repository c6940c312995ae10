//! Traffic control: the `clsact` qdisc and BPF programs at its two hooks (tc-bpf(8)).

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_sys::{Socket, protocols};

use super::consts::{
    NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLMSG_DONE, RTM_DELQDISC, RTM_DELTFILTER,
    RTM_GETTFILTER, RTM_NEWQDISC, RTM_NEWTFILTER, group,
};
use super::socket::{Error, RECV, Requests, Result, listen, recv};
use super::wire::{Attrs, Msgs, Writer, text, u8_at, u16_at, u32_at};

/// Bytes of `struct tcmsg` (linux/rtnetlink.h).
const TCMSG: usize = 20;
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

/// Which of the two hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Frames that the netdev received, after packet sockets saw them, before the local stack.
    Ingress,
    /// Frames that the local stack sends, before the netdev. PACKET_QDISC_BYPASS skips it.
    Egress,
}

impl Direction {
    pub(super) fn parent(self) -> u32 {
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

/// Asks for traffic control, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Tc {
    pub(super) requests: Requests,
}

impl Tc {
    /// Opens the socket.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open() -> Result<Self> {
        let requests = Requests::open()?;
        Ok(Tc { requests })
    }

    /// Makes sure that the netdev has a `clsact` qdisc; true when it was made by this call.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn ensure_clsact(&mut self, ifindex: u32) -> Result<bool> {
        let made = self.requests.ask("tc: add a clsact qdisc", |w, f, s| {
            clsact(w, RTM_NEWQDISC, f | NLM_F_CREATE | NLM_F_EXCL, s, ifindex);
        });
        match made {
            Ok(()) => Ok(true),
            Err(e) if e.errno == libc::EEXIST => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Removes the `clsact` qdisc with all filters on it; absent is fine.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remove_clsact(&mut self, ifindex: u32) -> Result<()> {
        absent_is_fine(self.requests.ask("tc: remove clsact", |w, f, s| {
            clsact(w, RTM_DELQDISC, f, s, ifindex);
        }))
    }

    /// Puts a direct-action program at `slot`, in place of the one that is there, without a gap.
    /// The `clsact` qdisc must be there. `name` is what `tc filter show` prints.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn replace_bpf(&mut self, slot: Slot, program: BorrowedFd<'_>, name: &str) -> Result<()> {
        let name = [name.as_bytes(), &[0]].concat();
        self.replace("tc: put a BPF filter", slot, |w| {
            w.attr(TCA_BPF_FD, &program.as_raw_fd().to_ne_bytes());
            w.attr(TCA_BPF_NAME, &name);
        })
    }

    /// As [`Tc::replace_bpf`] with a classic BPF program, which needs neither bpf(2) nor its
    /// capability: CAP_NET_ADMIN over the netdev's namespace is enough.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn replace_classic(&mut self, slot: Slot, program: &[ClassicInsn]) -> Result<()> {
        self.replace("tc: put a classic BPF filter", slot, |w| {
            write_classic(w, program);
        })
    }

    fn replace(
        &mut self,
        request: &'static str,
        slot: Slot,
        options: impl Fn(&mut Writer),
    ) -> Result<()> {
        self.requests.ask(request, |w, f, s| {
            filter(w, RTM_NEWTFILTER, f | NLM_F_CREATE | NLM_F_REPLACE, s, slot);
            let nest = w.nest(TCA_OPTIONS);
            options(w);
            w.attr_u32(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
            w.end_nest(nest);
        })
    }

    /// Whether a BPF filter is at `slot`. A netdev that is not in this namespace has none.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn has_bpf(&mut self, slot: Slot) -> Result<bool> {
        Ok(self.read_bpf(slot, |_| ())?.is_some())
    }

    /// The classic program at `slot`; none: nothing is there, or something else is.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn classic(&mut self, slot: Slot) -> Result<Option<Vec<ClassicInsn>>> {
        Ok(self.read_bpf(slot, read_classic)?.flatten())
    }

    /// The name under which the BPF filter at `slot` was put there (`TCA_BPF_NAME`; empty: it has none).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn bpf_name(&mut self, slot: Slot) -> Result<Option<String>> {
        self.read_bpf(slot, |options| {
            options.get(TCA_BPF_NAME).map(text).unwrap_or_default()
        })
    }

    /// Whether a hook of the netdev's `clsact` has filters, a shared block's included.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn has_filters(&mut self, ifindex: u32, direction: Direction) -> Result<bool> {
        let any = Cell::new(false);
        let listed = self.requests.ask_one(
            "tc: list filters",
            |w, s| {
                let fixed = tcmsg(ifindex, 0, direction.parent(), 0);
                w.begin(RTM_GETTFILTER, NLM_F_DUMP, s, &fixed);
            },
            |msg| {
                any.set(any.get() || msg.kind == RTM_NEWTFILTER);
                (msg.kind == NLMSG_DONE).then_some(())
            },
        );
        match listed {
            Err(e) if !any.get() && !absent(&e) => Err(e),
            _ => Ok(any.get()),
        }
    }

    /// What `read` makes of the options of the BPF filter at `slot`.
    fn read_bpf<T>(&mut self, slot: Slot, read: impl Fn(&Attrs<'_>) -> T) -> Result<Option<T>> {
        let answer = self.requests.ask_one(
            "tc: read a BPF filter",
            |w, s| filter(w, RTM_GETTFILTER, 0, s, slot),
            |msg| {
                let attrs = Attrs::after(msg.payload, TCMSG);
                let options = Attrs::new(attrs.get(TCA_OPTIONS).unwrap_or(&[]));
                (msg.kind == RTM_NEWTFILTER).then(|| read(&options))
            },
        );
        match answer {
            Err(e) if absent(&e) => Ok(None),
            other => other,
        }
    }

    /// Removes the filter at `slot`; absent is fine.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remove_bpf(&mut self, slot: Slot) -> Result<()> {
        absent_is_fine(self.requests.ask("tc: remove a BPF filter", |w, f, s| {
            filter(w, RTM_DELTFILTER, f, s, slot);
        }))
    }
}

/// Kernel memory for messages that nobody has read yet: the default of `net.core.rmem_default` and more.
const WATCH_BYTES: usize = 256 * 1024;

/// Says when a `clsact` or `ingress` qdisc was deleted, and its filters with it.
pub struct QdiscWatch {
    socket: Socket,
    buf: Vec<u8>,
}

impl QdiscWatch {
    /// Listens in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open() -> Result<Self> {
        let socket = listen(protocols::NETLINK_ROUTE, WATCH_BYTES, &[group::TC])?;
        socket
            .set_non_blocking(true)
            .map_err(|e| Error::io("tc: watch qdiscs", &e))?;
        let buf = vec![0; RECV];
        Ok(QdiscWatch { socket, buf })
    }

    /// Whether one was deleted since the last call; also when messages were lost.
    pub fn deleted(&mut self) -> bool {
        let mut any = false;
        // what is beyond waits for the next call
        for _ in 0..64 {
            match recv(&self.socket, &mut self.buf, "tc: watch qdiscs") {
                Ok(n) => any |= deletes_clsact(self.buf.get(..n).unwrap_or(&[])),
                Err(e) if e.errno == libc::EAGAIN => break,
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
    Msgs::new(datagram).any(|msg| {
        // handle and parent of struct tcmsg
        let ours =
            u32_at(msg.payload, 8) == TC_H_CLSACT_MAJOR || u32_at(msg.payload, 12) == TC_H_CLSACT;
        msg.kind == RTM_DELQDISC && ours
    })
}

pub(super) fn absent_is_fine(r: Result<()>) -> Result<()> {
    match r {
        Err(e) if absent(&e) => Ok(()),
        other => other,
    }
}

fn absent(e: &Error) -> bool {
    matches!(e.errno, libc::ENOENT | libc::EINVAL | libc::ENODEV)
}

/// `struct tcmsg`.
pub(super) fn tcmsg(ifindex: u32, handle: u32, parent: u32, info: u32) -> [u8; TCMSG] {
    let mut b = [0; TCMSG];
    for (to, word) in b[4..]
        .chunks_exact_mut(4)
        .zip([ifindex, handle, parent, info])
    {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    b
}

fn clsact(w: &mut Writer, kind: u16, flags: u16, seq: u32, ifindex: u32) {
    let fixed = tcmsg(ifindex, TC_H_CLSACT_MAJOR, TC_H_CLSACT, 0);
    w.begin(kind, flags, seq, &fixed);
    w.attr(TCA_KIND, b"clsact\0");
}

fn filter(w: &mut Writer, kind: u16, flags: u16, seq: u32, slot: Slot) {
    let info = u32::from(slot.priority) << 16 | u32::from(ETH_P_ALL.to_be());
    let fixed = tcmsg(slot.ifindex, slot.handle, slot.direction.parent(), info);
    w.begin(kind, flags, seq, &fixed);
    w.attr(TCA_KIND, b"bpf\0");
}

fn write_classic(w: &mut Writer, program: &[ClassicInsn]) {
    w.attr(TCA_BPF_OPS_LEN, &(program.len() as u16).to_ne_bytes());
    let mut ops = Vec::with_capacity(program.len() * 8);
    for insn in program {
        ops.extend_from_slice(&insn.code.to_ne_bytes());
        ops.extend_from_slice(&[insn.jt, insn.jf]);
        ops.extend_from_slice(&insn.k.to_ne_bytes());
    }
    w.attr(TCA_BPF_OPS, &ops);
}

/// The classic program in a filter's options.
fn read_classic(options: &Attrs<'_>) -> Option<Vec<ClassicInsn>> {
    let ops = options.get(TCA_BPF_OPS)?;
    let insn = |op: &[u8]| ClassicInsn {
        code: u16_at(op, 0),
        jt: u8_at(op, 2),
        jf: u8_at(op, 3),
        k: u32_at(op, 4),
    };
    Some(ops.chunks_exact(8).map(insn).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_clsact_is_seen_behind_other_messages() {
        let qdisc = |kind, handle, parent| {
            let mut w = Writer::new();
            w.begin(kind, 0, 1, &tcmsg(7, handle, parent, 0));
            w
        };
        let other = qdisc(RTM_NEWQDISC, TC_H_CLSACT_MAJOR, TC_H_CLSACT);
        let root = qdisc(RTM_DELQDISC, 0x8001_0000, 0xffff_ffff);
        let clsact = qdisc(RTM_DELQDISC, TC_H_CLSACT_MAJOR, TC_H_CLSACT);
        assert!(!deletes_clsact(&[other.bytes(), root.bytes()].concat()));
        assert!(deletes_clsact(
            &[other.bytes(), root.bytes(), clsact.bytes()].concat()
        ));
    }

    #[test]
    fn a_note_is_read_again() {
        let mut w = Writer::new();
        w.begin(RTM_NEWTFILTER, 0, 1, &[]);
        write_classic(&mut w, &drop_all(1500));
        let msg = Msgs::new(w.bytes()).next().unwrap();
        let program = read_classic(&Attrs::new(msg.payload)).unwrap();
        assert_eq!(program, drop_all(1500));
        assert_eq!(noted(&program), Some(1500));
        assert_eq!(noted(&program[1..]), None);
        assert_eq!(noted(&[]), None);
    }

    #[test]
    fn cut_messages_are_none() {
        for n in 0..20 {
            assert!(read_classic(&Attrs::new(&vec![1u8; n])).is_none());
            assert!(!deletes_clsact(&vec![0u8; n]));
        }
    }
}

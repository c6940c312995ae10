//! A chip of the profile `tiny` under a script of commands and frames: firmware, command processor and pipeline as
//! asicd has them, without its rings.
//!
//! ```text
//!   commands: from an empty chip    command … command, attach, time, fault, flip, frame
//!   frames:   from a configured one: bridge, VLANs, router, groups, LAG, lists of rules
//! ```
//!
//! After every command the accounts hold; every frame has one fate; at the end every command has its answer.

use tandem_abi::{object, raw};
use tandem_firmware::{
    CplSink, Fault, FaultAction, Firmware, FlipTable, Processor, Profile, SubmitError, turn,
};
use tandem_packet::{Buffer, Offload, segment};
use tandem_pipeline::{self as pipeline, CpuMeta, Event, Frame, Sink};

use crate::input::Input;

mod frame;
mod setup;

/// Command pairs.
const PAIRS: usize = 2;
/// Commands and frames of one input.
const STEPS: usize = 256;
/// Turns that the processor gets, at the end, for what still waits: each command may wait for another's, and for time.
const TURNS: usize = 4096;
/// Longest frame of a script; a super-frame is 64 KiB.
const LONGEST: usize = 65_535;

/// From an empty chip.
pub(crate) fn commands(data: &[u8]) {
    let mut chip = Chip::new();
    let mut input = Input::new(data);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        match input.u8() % 16 {
            0..=11 => chip.command(&mut input),
            12 => chip.attach(&mut input),
            13 => chip.time(&mut input),
            14 => chip.fault(&mut input),
            _ => chip.frame(&mut input),
        }
    }
    chip.finish();
}

/// From a chip on which frames get far.
pub(crate) fn frames(data: &[u8]) {
    let mut chip = Chip::new();
    chip.configure();
    let mut input = Input::new(data);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        match input.u8() % 16 {
            0..=10 => chip.frame(&mut input),
            11..=13 => chip.command(&mut input),
            14 => chip.time(&mut input),
            _ => chip.carrier(&mut input),
        }
    }
    chip.finish();
}

/// Bytes of the struct that a body of this class begins with; 0: none.
fn struct_size(op: u16, cls: u16) -> usize {
    if op == raw::TND_OP_LEASE {
        return size_of::<raw::tnd_lease>();
    }
    object::struct_size(cls)
}

/// Everything that came out for a frame.
#[derive(Debug, Default)]
struct Out {
    tx: Vec<(u16, usize)>,
    cpu: Vec<(CpuMeta, Vec<u8>)>,
}

impl Sink for Out {
    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        self.tx.push((port, frame.len()));
    }
    fn cpu(&mut self, meta: CpuMeta, frame: &Frame<'_>) {
        self.cpu.push((meta, frame.bytes().to_vec()));
    }
    fn event(&mut self, _event: Event) {}
}

/// The driver's side of the completion rings: answers of a pair come in the order of its commands.
#[derive(Default)]
struct Answers {
    next: [u32; PAIRS],
    /// Completions that still fit.
    room: usize,
    leases: Vec<u32>,
}

impl CplSink for Answers {
    fn room(&mut self, pair: usize, completions: u32) -> bool {
        pair < PAIRS && self.room >= completions as usize
    }
    fn complete(&mut self, pair: usize, cmd: &raw::tnd_cmd, cpl: &raw::tnd_cpl, out: &[u8]) {
        self.room = self.room.checked_sub(1).expect("there was room");
        let next = self.next.get_mut(pair).expect("a pair");
        assert!(cmd.seq >= *next, "answers of a pair out of order");
        *next = cmd.seq + 1;
        answered(cmd, cpl, out);
        if cmd.op == raw::TND_OP_LEASE && cpl.status == raw::TND_ST_OK {
            self.leases.push(cpl.result as u32);
        }
    }
}

/// What holds for every answer.
fn answered(cmd: &raw::tnd_cmd, cpl: &raw::tnd_cpl, out: &[u8]) {
    assert_eq!(
        (cpl.op, cpl.cls, cpl.cookie, cpl.seq),
        (cmd.op, cmd.cls, cmd.cookie, cmd.seq)
    );
    assert!(out.len() <= cmd.out_size as usize);
    assert_eq!(cpl.out_len as usize, out.len());
    assert!(usize::from(cpl.delta_count) <= raw::TND_MAX_DELTAS);
}

struct Chip {
    fw: Firmware,
    processor: Processor,
    /// Of the next driver's commands: they take time.
    latency: bool,
    answers: Answers,
    seq: [u32; PAIRS],
    epoch: u32,
    now: u64,
    buffer: Buffer,
    /// Packets that nobody forwarded, but the CPU got a copy of.
    heard_only: u64,
    /// A mirror's copy is a second fate: the accounts of packets can't be closed any more.
    mirrored: bool,
}

impl Chip {
    fn new() -> Self {
        use std::sync::OnceLock;
        static PROFILE: OnceLock<Profile> = OnceLock::new();
        let profile = PROFILE.get_or_init(|| Profile::builtin("tiny").expect("a profile"));
        let mut chip = Chip {
            fw: Firmware::new(profile.clone()).expect("a chip"),
            processor: Processor::new(false),
            latency: false,
            answers: Answers::default(),
            seq: [0; PAIRS],
            epoch: 1,
            now: 1_000_000_000,
            buffer: Buffer::with_capacity(LONGEST + 64),
            heard_only: 0,
            mirrored: false,
        };
        // what a class's policer drops is trapped all the same: here each trap is to be seen
        for class in pipeline::trap::ORDER {
            chip.fw.state.police.set_class(class, 0, 0);
        }
        chip.processor.reset(&mut chip.fw, PAIRS, 1);
        chip
    }

    fn command(&mut self, input: &mut Input<'_>) {
        const USUAL: [u16; 8] = [
            raw::TND_OP_CREATE,
            raw::TND_OP_CREATE,
            raw::TND_OP_CREATE,
            raw::TND_OP_UPDATE,
            raw::TND_OP_DELETE,
            raw::TND_OP_SET_TRAP,
            raw::TND_OP_QUERY,
            raw::TND_OP_CREATE,
        ];
        let op = match input.u8() {
            n if n < 0x80 => USUAL.get(usize::from(n % 8)).copied().unwrap_or(1),
            n => u16::from(n) % 15,
        };
        let cls = u16::from(input.u8()) % 37;
        let how = input.u8();
        let mut cmd = raw::tnd_cmd {
            op,
            cls,
            out_size: if how & 0x40 == 0 {
                1 << 16
            } else {
                u32::from(input.u8())
            },
            epoch: if how & 0x80 != 0 && input.u8() == 7 {
                self.epoch.wrapping_add(1)
            } else {
                self.epoch
            },
            ..Default::default()
        };
        if how & 1 != 0 || op == raw::TND_OP_RELEASE {
            cmd.flags |= raw::TND_CMD_LEASE;
            let at = input.u8();
            let known = self.answers.leases.get(usize::from(at) % 16).copied();
            cmd.lease = known.unwrap_or(u32::from(at));
        }
        if how & 2 != 0 {
            cmd.flags |= raw::TND_CMD_WAIT;
            cmd.wait_pair = u16::from(input.u8()) % 4;
            cmd.wait_seq = u32::from(input.u8());
        }
        if how & 4 != 0 {
            cmd.flags |= raw::TND_CMD_BARRIER;
        }
        if how & 8 != 0 {
            cmd.arg = u64::from(input.u16());
            cmd.cookie = u64::from(input.u8());
        }
        let whole = struct_size(op, cls);
        let len = usize::from(input.u8());
        let mut body = Vec::new();
        if how & 0x10 == 0 && whole > 0 {
            body.extend((whole as u16).to_le_bytes());
        }
        body.extend(input.take(len));
        if how & 0x10 == 0 {
            body.resize(body.len().max(whole), 0);
        }
        cmd.body_size = body.len() as u32;
        if how & 0x20 == 0 {
            self.execute(&cmd, &body);
        } else {
            self.submit(cmd, &body);
        }
    }

    fn execute(&mut self, cmd: &raw::tnd_cmd, body: &[u8]) {
        let mut out = Vec::new();
        let cpl = self.fw.execute(cmd, body, &mut out, self.now);
        answered(cmd, &cpl, &out);
        if cmd.op == raw::TND_OP_LEASE && cpl.status == raw::TND_ST_OK {
            self.answers.leases.push(cpl.result as u32);
        }
        self.settled();
    }

    fn submit(&mut self, mut cmd: raw::tnd_cmd, body: &[u8]) {
        let pair = usize::from(cmd.wait_pair & 1);
        let seq = self.seq.get_mut(pair).expect("a pair");
        cmd.seq = *seq;
        match self
            .processor
            .submit(&mut self.fw, pair, &cmd, body, self.now)
        {
            Ok(()) => *seq += 1,
            Err(SubmitError::Busy) => assert_eq!(self.processor.room(pair), 0),
            Err(e) => panic!("{e}"),
        }
        self.settled();
        self.run(4, 2);
    }

    fn run(&mut self, room: usize, budget: usize) {
        self.answers.room = room;
        let units = budget as u64 * turn::COMMAND;
        let ran = self
            .processor
            .run(&mut self.fw, self.now, units, &mut self.answers);
        assert!(ran.executed <= budget);
        if ran.reset {
            // what asicd does: the session ends, the driver attaches anew
            self.reset(false);
        }
        self.settled();
    }

    fn settled(&mut self) {
        self.mirrored |= !self.fw.state.acl.mirrors().is_empty();
        assert_eq!(self.fw.check_accounting(), Ok(()));
    }

    fn reset(&mut self, warm: bool) {
        self.epoch += 1;
        self.fw.attach(warm);
        self.processor.detach(&mut self.fw);
        self.processor = Processor::new(self.latency);
        self.processor.reset(&mut self.fw, PAIRS, self.epoch);
        self.seq = [0; PAIRS];
        self.answers = Answers::default();
        if !warm {
            self.heard_only = 0;
            self.mirrored = false;
        }
        self.settled();
    }

    fn attach(&mut self, input: &mut Input<'_>) {
        let warm = input.u8() & 1 != 0;
        self.accounts();
        self.reset(warm);
    }

    fn time(&mut self, input: &mut Input<'_>) {
        let unit = 10_u64.pow(u32::from(input.u8() % 10));
        self.now = self.now.saturating_add(unit * u64::from(input.u8()));
        let how = input.u8();
        self.latency = how & 1 != 0;
        let mut out = Out::default();
        pipeline::age(&mut self.fw.state, self.now, 1024, &mut out);
        assert!(out.tx.is_empty() && out.cpu.is_empty());
        self.run(usize::from(how >> 4), 16);
    }

    fn fault(&mut self, input: &mut Input<'_>) {
        let (what, n) = (input.u8(), input.u8());
        let action = match what % 8 {
            0 => FaultAction::Fail,
            1 => FaultAction::Delay(u64::from(n) * 1_000_000),
            2 => FaultAction::DropCompletion,
            3 => FaultAction::Reset,
            4 => {
                self.fw.faults.clear();
                return;
            }
            _ => {
                const TABLES: [FlipTable; 5] = [
                    FlipTable::Fdb,
                    FlipTable::Neigh,
                    FlipTable::Route4,
                    FlipTable::Route6,
                    FlipTable::Nexthop,
                ];
                let table = TABLES.get(usize::from(n) % 5).copied();
                let _ = self.fw.flip(table.expect("a table"), u32::from(n) / 5 % 16);
                self.settled();
                return;
            }
        };
        let some = |bit: u8, v: u16| (what & bit != 0).then_some(v);
        let _ = self.fw.faults.add(Fault {
            action,
            op: some(0x10, u16::from(n % 15)),
            cls: some(0x20, u16::from(n % 37)),
            pool: some(0x40, u16::from(n % 24)),
            after: u64::from(n % 5),
            count: u64::from(n % 3),
        });
    }

    fn carrier(&mut self, input: &mut Input<'_>) {
        let n = input.u8();
        let _ = self.fw.state.set_link(u16::from(n % 10), n & 0x80 == 0);
    }

    fn frame(&mut self, input: &mut Input<'_>) {
        let port = u16::from(input.u8() % 10);
        let how = input.u8();
        let mut bytes = if how & 0x80 != 0 {
            let n = usize::from(input.u8());
            input.take(n).to_vec()
        } else {
            frame::composed(input, how, port)
        };
        for _ in 0..(how >> 4) % 4 {
            let (at, value) = (usize::from(input.u8()), input.u8());
            if let Some(b) = bytes.get_mut(at) {
                *b = value;
            }
        }
        let more = input.u8();
        if more & 0x0f == 0x0f {
            let len = usize::from(input.u16());
            bytes.resize(len.min(LONGEST), more);
        }
        let mut offload = Offload::NONE;
        if more & 0xf0 == 0xf0 {
            let mut header = [0; 10];
            for (to, from) in header.iter_mut().zip(input.take(10)) {
                *to = *from;
            }
            offload = Offload::from_virtio(&header).unwrap_or_default();
        }
        self.forward(port, &bytes, offload);
    }

    /// One frame through the pipeline: one fate, ports that are up, no port twice, at most one tag more.
    fn forward(&mut self, port: u16, bytes: &[u8], offload: Offload) {
        let state = &mut self.fw.state;
        let before: u64 = state.counters.drops.iter().sum();
        assert!(self.buffer.set(bytes));
        let mut out = Out::default();
        let mut frame = self.buffer.frame(offload);
        pipeline::process(state, &mut frame, port, self.now, &mut out);
        let dropped = state.counters.drops.iter().sum::<u64>() > before;
        for (to, len) in &out.tx {
            assert!(state.port(*to).is_some_and(pipeline::state::Port::is_up));
            assert!(
                *len <= bytes.len() + 4,
                "{len} bytes of {} left",
                bytes.len()
            );
        }
        for (meta, got) in &out.cpu {
            assert!(meta.class < raw::TND_TC_COUNT && meta.port == port);
            assert!(self.mirrored || got == bytes, "the CPU gets what came in");
        }
        if !self.mirrored {
            let forwarded = raw::TND_RX_L2_FORWARDED | raw::TND_RX_L3_FORWARDED;
            let copies = out
                .cpu
                .iter()
                .filter(|c| c.0.flags & forwarded != 0)
                .count();
            let trapped = out.cpu.len() - copies;
            assert!(trapped <= 1 && copies <= 1);
            // a redirect's copy is of what is routed, and what is routed may still be dropped by its port
            let heard = out
                .cpu
                .iter()
                .any(|c| c.0.flags & forwarded != 0 && c.0.reason != raw::TND_TRAP_REDIRECT);
            let fates = usize::from(dropped) + trapped + usize::from(!out.tx.is_empty() || heard);
            assert_eq!(fates, 1, "{out:?}");
            if heard && out.tx.is_empty() {
                self.heard_only += segment::wire(bytes, &offload).packets;
            }
            let mut ports: Vec<u16> = out.tx.iter().map(|t| t.0).collect();
            ports.sort_unstable();
            ports.dedup();
            assert_eq!(ports.len(), out.tx.len(), "a port got the frame twice");
        }
        if bytes.len().is_multiple_of(8) {
            let counters = state.counters.clone();
            let trace = pipeline::trace::trace(state, bytes, port, self.now);
            assert!(!trace.lines.is_empty());
            assert!(counters == state.counters, "a trace has no effect");
        }
    }

    /// What came in is accounted for, packet by packet.
    fn accounts(&self) {
        let mut fates = self.heard_only;
        let mut came = 0;
        for p in &self.fw.state.counters.ports {
            came += p.rx.packets;
            fates += p.l2_forwarded + p.l3_forwarded + p.trapped + p.drops.iter().sum::<u64>();
        }
        assert!(self.mirrored || came == fates, "{came} came, {fates} fates");
    }

    /// No command waits for ever.
    fn finish(&mut self) {
        self.accounts();
        for _ in 0..TURNS {
            if self.processor.pending() == 0 {
                break;
            }
            self.now = self.now.max(self.processor.next_due().unwrap_or(self.now));
            self.run(64, 64);
        }
        assert_eq!(self.processor.pending(), 0, "commands wait for ever");
        self.settled();
    }
}

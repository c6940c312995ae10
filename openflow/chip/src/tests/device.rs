// SPDX-License-Identifier: Apache-2.0
//! The chip in the process, one command at a time: the firmware and the pipeline themselves. Answers can be refused or lost.

use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use tandem_abi::{Status, raw};
use tandem_firmware::{Firmware, Profile};
use tandem_packet::{Buffer, Frame, Offload};
use tandem_pipeline::{CpuMeta, Event, Sink};
use tandem_sal::control::{ControlCounters, TIMEOUT_NS};
use tandem_sal::{Device, Outcome, PostError, Request, SalError};

/// Commands that the pair holds: few, so that it is full at times.
const LIMIT: usize = 64;
const OUT: u32 = 4 << 10;

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Done,
    /// Not executed, and refused.
    Refused,
    /// Executed, and the answer lost.
    Lost,
    /// Not executed, nor answered.
    Ignored,
}

struct Command {
    seq: u64,
    cmd: raw::tnd_cmd,
    body: Vec<u8>,
}

pub struct Inner {
    pub firmware: Firmware,
    buffer: Buffer,
    queue: VecDeque<Command>,
    visible: usize,
    answers: VecDeque<(u64, raw::tnd_cpl, Vec<u8>)>,
    epoch: u32,
    pub dead: bool,
    /// It answers nothing that is waited for.
    pub deaf: bool,
    /// What it answers comes when it is so no more.
    pub silent: bool,
    pub executed: u64,
    /// Of these, what changes what the chip holds.
    pub writes: u64,
}

#[derive(Clone)]
pub struct Shared(Arc<Mutex<Inner>>);

/// What became of a frame in the chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub out: Vec<(u16, Vec<u8>)>,
    pub cpu: Vec<Vec<u8>>,
}

struct Look<'a, const DRY: bool>(&'a mut Passed);

impl<const DRY: bool> Sink for Look<'_, DRY> {
    const DRY: bool = DRY;
    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        self.0.out.push((port, frame.bytes().to_vec()));
    }
    fn cpu(&mut self, meta: CpuMeta, frame: &Frame<'_>) {
        let copy = meta.flags & (raw::TND_RX_L2_FORWARDED | raw::TND_RX_L3_FORWARDED) != 0;
        assert!(!copy, "a copy");
        self.0.cpu.push(frame.bytes().to_vec());
    }
    fn event(&mut self, _event: Event) {}
}

impl Shared {
    pub fn new(profile: &str) -> Shared {
        let mut p = Profile::builtin(profile).unwrap();
        let all = tandem_firmware::profile::Policer {
            rate_pps: 1_000_000_000,
            burst: 1_000_000_000,
        };
        p.traps.flow = Some(all);
        let mut firmware = Firmware::new(p).unwrap();
        firmware.cold_reset();
        firmware.faults.clear();
        for port in 1..=firmware.profile().port_count() {
            let _ = firmware.state.set_link(port, true);
        }
        Shared(Arc::new(Mutex::new(Inner {
            firmware,
            buffer: Buffer::new(),
            queue: VecDeque::new(),
            visible: 0,
            answers: VecDeque::new(),
            epoch: 0,
            dead: false,
            deaf: false,
            silent: false,
            executed: 0,
            writes: 0,
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub fn attach(&self, warm: bool) -> Box<dyn Device> {
        let mut i = self.lock();
        i.firmware.attach(warm);
        i.epoch += 1;
        i.queue.clear();
        i.answers.clear();
        i.visible = 0;
        (i.dead, i.silent) = (false, false);
        Box::new(Stepped {
            chip: self.clone(),
            epoch: i.epoch,
            pending: HashMap::new(),
            order: VecDeque::new(),
            seq: 0,
            counters: ControlCounters::default(),
        })
    }
}

impl Inner {
    /// Executes the next command. None: nothing waits.
    pub fn step(&mut self, now: u64, fate: impl FnOnce(&raw::tnd_cmd) -> Fate) -> Option<String> {
        if self.visible == 0 || self.dead {
            return None;
        }
        self.visible -= 1;
        self.executed += 1;
        let Command { seq, cmd, body } = self.queue.pop_front()?;
        let write = [raw::TND_OP_CREATE, raw::TND_OP_UPDATE, raw::TND_OP_DELETE];
        self.writes += u64::from(write.contains(&cmd.op));
        let fate = fate(&cmd);
        let mut out = Vec::new();
        let cpl = match fate {
            Fate::Ignored => None,
            Fate::Refused => Some(raw::tnd_cpl {
                op: cmd.op,
                cls: cmd.cls,
                status: raw::TND_ST_FAULT,
                cookie: cmd.cookie,
                ..Default::default()
            }),
            Fate::Done | Fate::Lost => Some(self.firmware.execute(&cmd, &body, &mut out, now)),
        };
        let said = format!(
            "op {} class {} {fate:?} {:?} {:02x?}",
            cmd.op,
            cmd.cls,
            cpl.map(|c| Status::from_raw(c.status)),
            &body[..body.len().min(24)]
        );
        if let Some(cpl) = cpl.filter(|_| fate != Fate::Lost) {
            self.answers.push_back((seq, cpl, out));
        }
        Some(said)
    }

    fn pass<const DRY: bool>(&mut self, port: u16, frame: &[u8], now: u64) -> Passed {
        let mut passed = Passed::default();
        if self.buffer.set(frame) {
            tandem_pipeline::process(
                &mut self.firmware.state,
                &mut self.buffer.frame(Offload::NONE),
                port,
                now,
                &mut Look::<DRY>(&mut passed),
            );
        }
        passed.out.sort();
        passed
    }

    /// What would become of a frame.
    pub fn look(&mut self, port: u16, frame: &[u8], now: u64) -> Passed {
        self.pass::<true>(port, frame, now)
    }

    /// A frame comes in.
    pub fn send(&mut self, port: u16, frame: &[u8], now: u64) -> Passed {
        self.pass::<false>(port, frame, now)
    }
}

struct Stepped {
    chip: Shared,
    epoch: u32,
    pending: HashMap<u64, u64>,
    order: VecDeque<(u64, u64)>,
    seq: u64,
    counters: ControlCounters,
}

impl Stepped {
    fn command(&mut self, token: u64, request: &Request<'_>) -> Command {
        self.seq += 1;
        let mut cmd = request.command(token, self.epoch).unwrap();
        cmd.out_size = if request.output { OUT } else { 0 };
        Command {
            seq: self.seq,
            cmd,
            body: request.body.to_vec(),
        }
    }
}

impl Device for Stepped {
    fn epoch(&self) -> u32 {
        self.epoch
    }
    fn counters(&self) -> ControlCounters {
        self.counters
    }
    fn limit(&self, pair: usize) -> usize {
        if pair < 2 { LIMIT } else { 0 }
    }
    fn outstanding(&self) -> usize {
        self.pending.len()
    }
    fn post(
        &mut self,
        pair: usize,
        token: u64,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), PostError> {
        assert_eq!(pair, 1, "all on one pair");
        if self.pending.len() >= LIMIT {
            return Err(PostError::Full);
        }
        let c = self.command(token, request);
        self.pending.insert(c.seq, token);
        self.order.push_back((now_ns + TIMEOUT_NS, c.seq));
        let chip = self.chip.clone();
        let mut chip = chip.lock();
        assert_eq!(chip.epoch, self.epoch);
        chip.queue.push_back(c);
        Ok(())
    }
    fn flush(&mut self) {
        let mut chip = self.chip.lock();
        chip.visible = chip.queue.len();
    }
    fn reap(
        &mut self,
        now_ns: u64,
        budget: usize,
        sink: &mut dyn FnMut(Outcome),
    ) -> Result<usize, SalError> {
        let mut n = 0;
        let mut chip = self.chip.lock();
        if chip.dead {
            return Err(SalError::Unanswered(1));
        }
        while n < budget
            && !chip.silent
            && let Some((seq, cpl, output)) = chip.answers.pop_front()
        {
            if let Some(token) = self.pending.remove(&seq) {
                n += 1;
                sink(Outcome::Done { token, cpl, output });
            }
        }
        while let Some(&(deadline, seq)) = self.order.front() {
            if let Some(token) = self.pending.get(&seq) {
                if deadline > now_ns {
                    break;
                }
                n += 1;
                sink(Outcome::TimedOut { token: *token });
                self.pending.remove(&seq);
            }
            self.order.pop_front();
        }
        Ok(n)
    }
    fn arm(&mut self) -> Result<bool, SalError> {
        Ok(true)
    }
    fn disarm(&mut self) {}
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
    fn next_deadline_ns(&self) -> Option<u64> {
        self.order.front().map(|o| o.0)
    }
    fn call(
        &mut self,
        what: &'static str,
        request: &Request<'_>,
    ) -> Result<(raw::tnd_cpl, Vec<u8>), SalError> {
        let mut c = self.command(u64::MAX, request);
        c.cmd.out_size = 64 << 10;
        let mut out = Vec::new();
        let mut chip = self.chip.lock();
        if chip.deaf {
            return Err(SalError::Timeout(what));
        }
        let cpl = chip.firmware.execute(&c.cmd, &c.body, &mut out, 0);
        let status = Status::from_raw(cpl.status);
        if !status.is_ok() {
            return Err(SalError::Refused { what, status });
        }
        Ok((cpl, out))
    }
}

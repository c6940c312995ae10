//! The command pairs: post with sequence and epoch, many outstanding, reap completions.
//!
//! ```text
//!   post ─► [seq, epoch, token, body] ─► command ring ──► device
//!   flush ─► publish, doorbell only if the device sleeps
//!   reap ◄─ Outcome::Done { token, completion, output } ◄── completion ring
//!        ◄─ Outcome::TimedOut { token }  no answer in time: the key is unknown now
//! ```
//!
//! Outstanding commands are bounded by the completion ring, so the device can always answer.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use tandem_abi::{Arena, Consumer, Corrupt, DriverPair, Producer, PushError, Status, raw};
use tandem_carrier::{Bell, Region};
use zerocopy::IntoBytes;

use crate::SalError;
use crate::arena::{Slot, Slots};

/// How long a command may go unanswered, in ns: 4096 writes of 60 µs each and a long burst of
/// packets take less than a second.
pub const TIMEOUT_NS: u64 = 5_000_000_000;
/// One step of a synchronous wait.
const SLICE: Duration = Duration::from_millis(10);
/// Steps of a synchronous wait: 5 s.
const SLICES: u32 = 500;
/// Answered commands behind an unanswered one stay in the order of deadlines: so many ring sizes.
const ORDER_MAX: usize = 64;

/// What to post.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// `TND_OP_*`
    pub op: u16,
    /// `TND_CLS_*`
    pub cls: u16,
    /// `TND_CMD_*`, without `TND_CMD_ARENA`.
    pub flags: u32,
    /// With `TND_CMD_LEASE`, or for RELEASE.
    pub lease: u32,
    /// DUMP, ACTIVITY: cursor.
    pub arg: u64,
    /// Body; goes through the arena when it is too long for the descriptor.
    pub body: &'a [u8],
    /// The command writes results.
    pub output: bool,
}

impl Request<'_> {
    /// The command, without where its body and its results lie.
    ///
    /// # Errors
    /// A body longer than any object.
    pub fn command(&self, token: u64, epoch: u32) -> Result<raw::tnd_cmd, PostError> {
        Ok(raw::tnd_cmd {
            op: self.op,
            cls: self.cls,
            flags: self.flags & !raw::TND_CMD_ARENA,
            cookie: token,
            lease: self.lease,
            body_size: u32::try_from(self.body.len()).map_err(|_| PostError::Impossible)?,
            arg: self.arg,
            epoch,
            ..Default::default()
        })
    }
}

/// Why a command was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// Ring or arena full: reap, then try again.
    #[error("command ring full")]
    Full,
    /// No such pair, or a body longer than any object.
    #[error("command can't be posted: no such pair, or its body is too long")]
    Impossible,
    /// The ring is dead.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// What became of a posted command.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Answered.
    Done {
        /// As given to [`SalControl::post`].
        token: u64,
        /// The answer; `delta_count` is at most `TND_MAX_DELTAS`.
        cpl: raw::tnd_cpl,
        /// What it wrote, for commands with output.
        output: Vec<u8>,
    },
    /// Not answered in time. Its key is unknown: an idempotent delete must follow. A late answer is
    /// dropped.
    TimedOut {
        /// As given to [`SalControl::post`].
        token: u64,
    },
}

#[derive(Debug)]
struct Pending {
    token: u64,
    op: u16,
    cls: u16,
    /// Synchronous calls answer here, not through `reap`.
    call: bool,
    deadline_ns: u64,
    body: Option<Slot>,
    output: Option<Slot>,
    given_up: bool,
}

#[derive(Debug)]
struct Pair {
    cmd: Producer<Region>,
    cpl: Consumer<Region>,
    kick: Bell,
    wake: Bell,
    next_seq: u32,
    pending: HashMap<u32, Pending>,
    /// Posting order with deadlines: the front is the oldest.
    order: VecDeque<(u32, u64)>,
    given_up: usize,
    limit: usize,
}

/// Counters of the control path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlCounters {
    /// Commands posted.
    pub posted: u64,
    /// Completions taken.
    pub completed: u64,
    /// Doorbells rung.
    pub kicks: u64,
    /// Commands not answered in time.
    pub timed_out: u64,
    /// Completions that answer nothing: of another epoch, unknown, twice.
    pub stray: u64,
    /// Most commands outstanding at once.
    pub outstanding_max: u64,
}

/// The control half of an attach.
#[derive(Debug)]
pub struct SalControl {
    pairs: Vec<Pair>,
    arena: Arena<Region>,
    slots: Slots,
    epoch: u32,
    answers: VecDeque<(raw::tnd_cpl, Vec<u8>)>,
    backlog: VecDeque<Outcome>,
    calls: u64,
    counters: ControlCounters,
}

impl SalControl {
    pub(crate) fn new(
        pairs: Vec<(DriverPair<Region>, Bell, Bell)>,
        arena: Arena<Region>,
        epoch: u32,
    ) -> Self {
        let slots = Slots::new(arena.size());
        SalControl {
            pairs: pairs
                .into_iter()
                .map(|(pair, kick, wake)| Pair {
                    limit: pair.cmd.ring().entry_count.min(pair.cpl.ring().entry_count) as usize,
                    cmd: pair.cmd,
                    cpl: pair.cpl,
                    kick,
                    wake,
                    next_seq: 0,
                    pending: HashMap::new(),
                    order: VecDeque::new(),
                    given_up: 0,
                })
                .collect(),
            arena,
            slots,
            epoch,
            answers: VecDeque::new(),
            backlog: VecDeque::new(),
            calls: 0,
            counters: ControlCounters::default(),
        }
    }

    /// Epoch of this attach.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Counters.
    pub fn counters(&self) -> ControlCounters {
        self.counters
    }

    /// Number of command pairs.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Commands that a pair can hold.
    pub fn limit(&self, pair: usize) -> usize {
        self.pairs.get(pair).map_or(0, |p| p.limit)
    }

    /// Commands posted and not answered, those given up not counted.
    pub fn outstanding(&self) -> usize {
        self.pairs
            .iter()
            .map(|p| p.pending.len() - p.given_up)
            .sum()
    }

    /// Posts one command; invisible to the device until [`flush`](Self::flush).
    pub fn post(
        &mut self,
        pair: usize,
        token: u64,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), PostError> {
        self.post_as(pair, token, request, now_ns, false)
    }

    fn post_as(
        &mut self,
        pair: usize,
        token: u64,
        request: &Request<'_>,
        now_ns: u64,
        call: bool,
    ) -> Result<(), PostError> {
        let p = self.pairs.get_mut(pair).ok_or(PostError::Impossible)?;
        if p.pending.len() >= p.limit || p.order.len() >= ORDER_MAX * p.limit {
            return Err(PostError::Full);
        }
        if p.cmd.free_slots()? == 0 {
            return Err(PostError::Full);
        }
        let mut cmd = request.command(token, self.epoch)?;
        cmd.seq = p.next_seq;
        let mut body = None;
        if request.body.len() <= raw::TND_BODY_INLINE {
            for (to, from) in cmd.body.iter_mut().zip(request.body) {
                *to = *from;
            }
        } else {
            let slot = self.slots.take_body().ok_or(PostError::Full)?;
            // looked at first: behind the slot lies somebody else's
            if request.body.len() > slot.size as usize
                || self.arena.write(slot.offset, request.body).is_err()
            {
                self.slots.give_body(Some(slot));
                return Err(PostError::Impossible);
            }
            cmd.flags |= raw::TND_CMD_ARENA;
            cmd.body_offset = slot.offset;
            body = Some(slot);
        }
        let mut output = None;
        if request.output {
            let Some(slot) = self.slots.take_output() else {
                self.slots.give_body(body);
                return Err(PostError::Full);
            };
            cmd.out_offset = slot.offset;
            cmd.out_size = slot.size;
            output = Some(slot);
        }
        match p.cmd.push(&[cmd.as_bytes()]) {
            Ok(()) => {}
            Err(e) => {
                self.slots.give_body(body);
                self.slots.give_output(output);
                return Err(match e {
                    PushError::Full => PostError::Full,
                    PushError::TooLong { .. } => PostError::Impossible,
                    PushError::Corrupt(c) => PostError::Corrupt(c),
                });
            }
        }
        let deadline_ns = now_ns.saturating_add(TIMEOUT_NS);
        p.pending.insert(
            cmd.seq,
            Pending {
                token,
                op: cmd.op,
                cls: cmd.cls,
                call,
                deadline_ns,
                body,
                output,
                given_up: false,
            },
        );
        p.order.push_back((cmd.seq, deadline_ns));
        p.next_seq = p.next_seq.wrapping_add(1);
        self.counters.posted += 1;
        let outstanding = self.outstanding() as u64;
        self.counters.outstanding_max = self.counters.outstanding_max.max(outstanding);
        Ok(())
    }

    /// Shows the device what was posted.
    pub fn flush(&mut self) {
        for p in &mut self.pairs {
            if p.cmd.publish() {
                p.kick.ring();
                self.counters.kicks += 1;
            }
        }
    }

    /// Takes completions, at most `budget`, then looks for commands that are overdue.
    pub fn reap(
        &mut self,
        now_ns: u64,
        budget: usize,
        sink: &mut dyn FnMut(Outcome),
    ) -> Result<usize, SalError> {
        let mut n = 0;
        while let Some(o) = self.backlog.pop_front() {
            n += 1;
            sink(o);
        }
        for i in 0..self.pairs.len() {
            while n < budget {
                let Some(outcome) = self.take(i)? else { break };
                if let Some(outcome) = outcome {
                    n += 1;
                    sink(outcome);
                }
            }
        }
        let mut given_up = 0;
        for p in &mut self.pairs {
            while let Some(&(seq, deadline)) = p.order.front() {
                match p.pending.get_mut(&seq) {
                    Some(c) if !c.given_up && deadline == c.deadline_ns => {
                        if deadline > now_ns {
                            break;
                        }
                        c.given_up = true;
                        p.given_up += 1;
                        self.counters.timed_out += 1;
                        n += 1;
                        if !c.call {
                            sink(Outcome::TimedOut { token: c.token });
                        }
                    }
                    _ => {}
                }
                p.order.pop_front();
            }
            given_up += p.given_up;
            if p.given_up * 2 > p.limit {
                return Err(SalError::Unanswered(given_up));
            }
        }
        Ok(n)
    }

    /// One completion of a pair. `Some(None)`: there was one, but nobody waits for it.
    fn take(&mut self, pair: usize) -> Result<Option<Option<Outcome>>, SalError> {
        let Some(p) = self.pairs.get_mut(pair) else {
            return Ok(None);
        };
        let Some(mut cpl) = p.cpl.pop_struct::<raw::tnd_cpl>()? else {
            return Ok(None);
        };
        let known = p.pending.get(&cpl.seq).is_some_and(|c| {
            cpl.epoch == self.epoch && (c.token, c.op, c.cls) == (cpl.cookie, cpl.op, cpl.cls)
        });
        let command = if known {
            p.pending.remove(&cpl.seq)
        } else {
            None
        };
        let Some(command) = command else {
            self.counters.stray += 1;
            return Ok(Some(None));
        };
        // what the device says of sizes is cut to what it was given
        cpl.delta_count = cpl.delta_count.min(raw::TND_MAX_DELTAS as u16);
        let mut output = Vec::new();
        if let Some(slot) = command.output {
            output.resize(cpl.out_len.min(slot.size) as usize, 0);
            if self.arena.read(slot.offset, &mut output).is_err() {
                output.clear();
            }
        }
        self.slots.give_body(command.body);
        self.slots.give_output(command.output);
        self.counters.completed += 1;
        if p.order.front().is_some_and(|&(seq, _)| seq == cpl.seq) {
            p.order.pop_front();
        }
        if command.given_up {
            p.given_up -= 1;
            return Ok(Some(None));
        }
        if command.call {
            self.answers.push_back((cpl, output));
            return Ok(Some(None));
        }
        Ok(Some(Some(Outcome::Done {
            token: command.token,
            cpl,
            output,
        })))
    }

    /// Descriptors that are readable when completions came; after [`arm`](Self::arm).
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pairs.iter().map(|p| p.wake.as_fd())
    }

    /// Before sleeping: asks for doorbells. True: nothing waits.
    pub fn arm(&mut self) -> Result<bool, SalError> {
        let mut empty = self.backlog.is_empty();
        for p in &mut self.pairs {
            empty &= p.cpl.arm()?;
        }
        Ok(empty)
    }

    /// After waking.
    pub fn disarm(&mut self) {
        for p in &mut self.pairs {
            p.cpl.disarm();
            p.wake.drain();
        }
    }

    /// When the oldest outstanding command is overdue, for the owner's sleep.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.pairs
            .iter()
            .filter_map(|p| p.order.front().map(|&(_, d)| d))
            .min()
    }

    // -- synchronous helpers: at attach and for questions, on pair 0

    /// Posts, waits, answers. Completions of other commands that come meanwhile are given by the
    /// next [`reap`](Self::reap).
    pub fn call(
        &mut self,
        what: &'static str,
        request: &Request<'_>,
    ) -> Result<(raw::tnd_cpl, Vec<u8>), SalError> {
        self.answers.clear();
        self.calls += 1;
        let token = self.calls;
        match self.post_as(0, token, request, u64::MAX, true) {
            Ok(()) => {}
            Err(PostError::Corrupt(c)) => return Err(c.into()),
            Err(_) => return Err(SalError::RingFull(what)),
        }
        self.flush();
        for _ in 0..SLICES {
            while let Some(o) = self.take(0)? {
                self.backlog.extend(o);
            }
            if let Some((cpl, output)) = self.answers.pop_front() {
                // a late answer to an earlier call
                if cpl.cookie != token {
                    continue;
                }
                let status = Status::from_raw(cpl.status);
                if !status.is_ok() {
                    return Err(SalError::Refused { what, status });
                }
                return Ok((cpl, output));
            }
            let Some(p) = self.pairs.first_mut() else {
                break;
            };
            if p.cpl.arm()? {
                let wake = p.wake.clone();
                let _ = wake.wait(SLICE);
                wake.drain();
            }
            if let Some(p) = self.pairs.first_mut() {
                p.cpl.disarm();
            }
        }
        if let Some(p) = self.pairs.first_mut() {
            for c in p.pending.values_mut() {
                if c.call && !c.given_up {
                    c.given_up = true;
                    p.given_up += 1;
                    self.counters.timed_out += 1;
                }
            }
        }
        Err(SalError::Timeout(what))
    }

    /// Reserves room for objects whatever their keys are; the answer is the lease's id.
    pub fn lease(&mut self, items: &[raw::tnd_lease_item]) -> Result<u32, SalError> {
        let mut body = raw::tnd_lease {
            struct_size: std::mem::size_of::<raw::tnd_lease>() as u16,
            count: u16::try_from(items.len()).unwrap_or(u16::MAX),
            ..Default::default()
        }
        .as_bytes()
        .to_vec();
        body.extend_from_slice(items.as_bytes());
        let (cpl, _) = self.call(
            "lease",
            &Request {
                op: raw::TND_OP_LEASE,
                body: &body,
                ..Default::default()
            },
        )?;
        Ok(u32::try_from(cpl.result).unwrap_or(u32::MAX))
    }

    /// Gives back what is left of a lease.
    pub fn release(&mut self, lease: u32) -> Result<(), SalError> {
        self.call(
            "release",
            &Request {
                op: raw::TND_OP_RELEASE,
                lease,
                ..Default::default()
            },
        )
        .map(|_| ())
    }
}

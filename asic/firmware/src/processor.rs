//! The command processor: order, waiting, latency and sequence checks between the rings and [`Firmware::execute`].
//!
//! ```text
//!   ring 0 ── submit ──► queue 0 ─┐ head: wait for another pair's command? due yet?
//!   ring 1 ── submit ──► queue 1 ─┤ ── execute ──► completion, in order per ring
//!                                 └ in flight: its slots are counted so until it completes
//! ```
//!
//! Commands of one ring are executed one after the other, so `TND_CMD_BARRIER` holds by construction; different rings
//! overtake each other freely unless `TND_CMD_WAIT` says otherwise. Pure: descriptors come in as values, time as an
//! argument. The daemon copies each descriptor (and its body from the arena) once and posts what comes out.

use crate::Firmware;
use crate::fault::{Fault, FaultAction};
use crate::pools::Held;
use crate::turn::{COMMAND, Walk};
use std::collections::VecDeque;
use tandem_abi::raw;

/// Commands that one pair holds between submit and completion; the rest waits in its ring.
pub const MAX_PENDING: usize = 256;
/// Most command pairs.
pub const MAX_PAIRS: usize = 16;

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// [`MAX_PENDING`] reached: call [`Processor::run`], then again.
    #[error("command queue full (needs 1, free 0 of {MAX_PENDING})")]
    Busy,
    /// The sequence number is wrong (`TND_FAIL_SEQUENCE`): the ring can't be trusted any more.
    #[error("command sequence is {got}, expected {want}: detach")]
    Sequence {
        /// In the descriptor.
        got: u32,
        /// Next in order.
        want: u32,
    },
    /// No such pair.
    #[error("no command pair {0}")]
    NoPair(usize),
}

/// Where completions go.
pub trait CplSink {
    /// There is room for so many completions of this pair. The processor asks before it executes.
    fn room(&mut self, pair: usize, completions: u32) -> bool;
    /// One completion; `out` belongs at the command's `out_offset`.
    fn complete(&mut self, pair: usize, cmd: &raw::tnd_cmd, cpl: &raw::tnd_cpl, out: &[u8]);
}

#[derive(Debug)]
struct Pending {
    cmd: raw::tnd_cmd,
    body: Vec<u8>,
    fault: Option<Fault>,
    held: Held,
    cost_ns: u64,
    submitted_ns: u64,
    due_ns: Option<u64>,
    /// How far its work is that is done in slices.
    walk: Walk,
}

#[derive(Debug, Default)]
struct Pair {
    queue: VecDeque<Pending>,
    /// Sequence number that the next descriptor must have.
    next_seq: u32,
    /// Sequence number of the first command that is not complete.
    done_seq: u32,
    done_ns: u64,
    /// Its head has done a slice in this run.
    sliced: bool,
}

/// What a run may do.
#[derive(Debug, Clone, Copy)]
struct Turn {
    now_ns: u64,
    units: u64,
    /// Of them, what a pair may spend on a slice.
    slice: u64,
}

/// What a run found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ran {
    /// Commands executed.
    pub executed: usize,
    /// Units of work done ([`crate::turn`]).
    pub units: u64,
    /// A long command did a slice of its work and is not done: run again after the next packets.
    pub sliced: bool,
    /// A fault reset the chip: tables are empty, the daemon must fail the attach (`TND_FAIL_INTERNAL`).
    pub reset: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Processor {
    pairs: Vec<Pair>,
    epoch: u32,
    latency: bool,
    out: Vec<u8>,
    first: usize,
}

impl Processor {
    /// A processor without pairs: call [`Self::reset`] at attach. `latency` switches the profile's latency model on.
    #[must_use]
    pub fn new(latency: bool) -> Self {
        Self {
            latency,
            ..Self::default()
        }
    }

    /// An attach or reset: commands that wait are void, sequences start at 0.
    pub fn reset(&mut self, fw: &mut Firmware, pairs: usize, epoch: u32) {
        self.detach(fw);
        self.pairs = (0..pairs.min(MAX_PAIRS)).map(|_| Pair::default()).collect();
        self.epoch = epoch;
    }

    /// The driver is gone: commands that wait are void.
    pub fn detach(&mut self, fw: &mut Firmware) {
        for p in self.pairs.drain(..) {
            p.queue.into_iter().for_each(|c| fw.end(&c.held));
        }
    }

    /// As if each pair had completed as many commands as it takes to `seq`: no test waits until sequence numbers wrap.
    #[cfg(test)]
    pub(crate) fn at_sequence(&mut self, seq: u32) {
        for p in &mut self.pairs {
            (p.next_seq, p.done_seq) = (seq, seq);
        }
    }

    /// Commands that can still be submitted to a pair.
    #[must_use]
    pub fn room(&self, pair: usize) -> usize {
        self.pairs
            .get(pair)
            .map_or(0, |p| MAX_PENDING - p.queue.len())
    }

    /// Commands submitted and not complete, all pairs.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pairs.iter().map(|p| p.queue.len()).sum()
    }

    /// Takes one command. `body` is a copy: the inline bytes or those of the arena, `body_size` of them.
    ///
    /// # Errors
    /// [`SubmitError`]; after `Sequence` the daemon detaches.
    pub fn submit(
        &mut self,
        fw: &mut Firmware,
        pair: usize,
        cmd: &raw::tnd_cmd,
        body: &[u8],
        now_ns: u64,
    ) -> Result<(), SubmitError> {
        let p = self.pairs.get_mut(pair).ok_or(SubmitError::NoPair(pair))?;
        if p.queue.len() >= MAX_PENDING {
            return Err(SubmitError::Busy);
        }
        if cmd.seq != p.next_seq {
            return Err(SubmitError::Sequence {
                got: cmd.seq,
                want: p.next_seq,
            });
        }
        p.next_seq = p.next_seq.wrapping_add(1);
        let stale = cmd.epoch != self.epoch;
        let fault = if stale {
            None
        } else {
            fw.check_fault(cmd, body)
        };
        let mut cost_ns = if self.latency && !stale {
            fw.cost_ns(cmd.op)
        } else {
            0
        };
        if let Some(Fault {
            action: FaultAction::Delay(ns),
            ..
        }) = fault
        {
            cost_ns = cost_ns.saturating_add(ns);
        }
        // with a cost of 0 a command is never seen in flight
        let held = if cost_ns > 0 {
            fw.begin(cmd, body)
        } else {
            Held::default()
        };
        p.queue.push_back(Pending {
            cmd: *cmd,
            body: body.to_vec(),
            fault,
            held,
            cost_ns,
            submitted_ns: now_ns,
            due_ns: None,
            walk: Walk::default(),
        });
        Ok(())
    }

    /// Executes what is due, pairs in turn, until it has done so many units of work ([`crate::turn`]): at most one command
    /// more than that. A pair whose command is done in slices does one of them, and has its share of the units for that.
    /// Stops at a full completion ring.
    pub fn run(
        &mut self,
        fw: &mut Firmware,
        now_ns: u64,
        units: u64,
        sink: &mut impl CplSink,
    ) -> Ran {
        let mut ran = Ran::default();
        let n = self.pairs.len();
        let mut waiting = 0;
        for p in &mut self.pairs {
            p.sliced = false;
            waiting += u64::from(!p.queue.is_empty());
        }
        let turn = Turn {
            now_ns,
            units,
            slice: (units / waiting.max(1)).max(1),
        };
        let mut idle = 0;
        while n > 0 && idle < n && ran.units < units && !ran.reset {
            let pair = self.first % n;
            self.first = (pair + 1) % n;
            if self.step(fw, pair, turn, sink, &mut ran) {
                idle = 0;
            } else {
                idle += 1;
            }
        }
        ran
    }

    /// When the next command is due, for the daemon's timer; `None` if nothing waits for time.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        self.pairs
            .iter()
            .filter_map(|p| p.queue.front()?.due_ns)
            .min()
    }

    fn step(
        &mut self,
        fw: &mut Firmware,
        pair: usize,
        turn: Turn,
        sink: &mut impl CplSink,
        ran: &mut Ran,
    ) -> bool {
        let now_ns = turn.now_ns;
        let head = self.pairs.get(pair).filter(|p| !p.sliced);
        let Some(head) = head.and_then(|p| p.queue.front()) else {
            return false;
        };
        let mut deadlock = false;
        let mut due = head.due_ns;
        if due.is_none() {
            let mut start = head
                .submitted_ns
                .max(self.pairs.get(pair).map_or(0, |p| p.done_ns));
            match self.waits_for(&head.cmd) {
                Some((other, seq)) if !self.complete(other, seq) => {
                    deadlock = self.circular(pair);
                    if !deadlock {
                        return false;
                    }
                }
                Some((other, _)) => {
                    start = start.max(self.pairs.get(other).map_or(0, |p| p.done_ns))
                }
                None => {}
            }
            due = Some(if deadlock {
                now_ns
            } else {
                start.saturating_add(head.cost_ns)
            });
        }
        let due = due.unwrap_or(now_ns);
        let Some(p) = self.pairs.get_mut(pair) else {
            return false;
        };
        if let Some(head) = p.queue.front_mut() {
            // found again if there is no room for its completion now
            head.due_ns = Some(due).filter(|_| !deadlock);
        }
        let head = p.queue.front();
        let action = head.and_then(|c| c.fault).map(|f| f.action);
        let twice = action == Some(FaultAction::DuplicateCompletion);
        if due > now_ns || !sink.room(pair, 1 + u32::from(twice)) {
            return false;
        }
        let fails = matches!(action, Some(FaultAction::Fail | FaultAction::Reset));
        let before = fw.state.work.done();
        if let Some(c) = p.queue.front_mut()
            && !fails
            && !deadlock
            && c.cmd.epoch == self.epoch
        {
            let slice = turn.slice.min(turn.units - ran.units);
            if !fw.prepare(&c.cmd, &c.body, &mut c.walk, slice) {
                (p.sliced, ran.sliced) = (true, true);
                ran.units += fw.state.work.done() - before;
                return true;
            }
        }
        let Some(c) = p.queue.pop_front() else {
            return false;
        };
        fw.end(&c.held);
        self.out.clear();
        let mut cpl = if c.cmd.epoch != self.epoch {
            crate::answer(&c.cmd, raw::TND_ST_STALE)
        } else if deadlock {
            crate::answer(&c.cmd, raw::TND_ST_INVALID)
        } else {
            fw.execute_with(&c.cmd, &c.body, &mut self.out, now_ns, c.fault)
        };
        cpl.epoch = self.epoch;
        cpl.cost_ns = if self.latency { c.cost_ns } else { cpl.cost_ns };
        p.done_seq = c.cmd.seq.wrapping_add(1);
        p.done_ns = due;
        ran.executed += 1;
        ran.units += COMMAND + (fw.state.work.done() - before);
        match c.fault.map(|f| f.action) {
            Some(FaultAction::DropCompletion) => {}
            Some(FaultAction::Reset) => ran.reset = true,
            Some(FaultAction::DuplicateCompletion) => {
                sink.complete(pair, &c.cmd, &cpl, &self.out);
                sink.complete(pair, &c.cmd, &cpl, &self.out);
            }
            _ => sink.complete(pair, &c.cmd, &cpl, &self.out),
        }
        true
    }

    /// The pair and sequence number that a command waits for.
    fn waits_for(&self, cmd: &raw::tnd_cmd) -> Option<(usize, u32)> {
        let other = usize::from(cmd.wait_pair);
        (cmd.flags & raw::TND_CMD_WAIT != 0).then_some((other, cmd.wait_seq))
    }

    fn complete(&self, pair: usize, seq: u32) -> bool {
        // serial number arithmetic (RFC 1982): sequence numbers wrap
        self.pairs
            .get(pair)
            .is_some_and(|p| (p.done_seq.wrapping_sub(seq) as i32) > 0)
    }

    /// The head of `pair` waits for itself, through others or directly, or for a pair that is not there: it would wait
    /// for ever.
    fn circular(&self, pair: usize) -> bool {
        let mut at = pair;
        for _ in 0..=self.pairs.len() {
            let Some(head) = self.pairs.get(at).and_then(|p| p.queue.front()) else {
                return false;
            };
            match self.waits_for(&head.cmd) {
                Some((other, seq)) if !self.complete(other, seq) => {
                    if other == pair || other >= self.pairs.len() {
                        return true;
                    }
                    at = other;
                }
                _ => return false,
            }
        }
        false
    }
}

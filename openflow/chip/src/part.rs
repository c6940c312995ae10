// SPDX-License-Identifier: Apache-2.0
//! One device for several switches: each posts by itself, and has its own answers.
//!
//! ```text
//!   Chip of red  ─ post ─┐                                        ┌─► inbox of red
//!                        ├─► Device: one command pair ─► answers ─┤   by the token's highest bits
//!   Chip of blue ─ post ─┘                                        └─► inbox of blue
//! ```

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_abi::raw;
use tandem_sal::control::ControlCounters;
use tandem_sal::{Device, Outcome, PostError, Request, SalError};

/// A token's number has so many bits; above them it says whose it is.
const BITS: u32 = 48;

/// The number of the first switch's list that classifies; below are lists of rows.
const CLASS: u32 = 257;

/// Above these, by the port that frames leave by, lists for the form in which they do: a port is one switch's.
const FORMS: u32 = 1024;

/// Which of several switches on one chip: names and room of each are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Of them, from 0.
    pub index: u8,
    /// How many there are.
    pub of: u8,
    /// Has each a domain of the MAC table of its own?
    pub domains: bool,
}

impl Default for Slice {
    fn default() -> Slice {
        Slice {
            index: 0,
            of: 1,
            domains: false,
        }
    }
}

/// The list for the form in which frames leave a port.
pub(crate) fn form_table(port: u8) -> u32 {
    FORMS + u32::from(port)
}

/// The port whose list that is.
pub(crate) fn form_port(table: u32) -> Option<u8> {
    table.checked_sub(FORMS).and_then(|p| u8::try_from(p).ok())
}

impl Slice {
    /// Its first token.
    pub(crate) fn token(self) -> u64 {
        u64::from(self.index) << BITS
    }

    /// Its list of rows.
    pub(crate) fn table(self) -> u32 {
        1 + u32::from(self.index)
    }

    /// Its list of rows that classify.
    pub(crate) fn class_table(self) -> u32 {
        CLASS + u32::from(self.index)
    }

    /// The list of a port at a stage.
    pub(crate) fn list(self, stage: u16, port: u8) -> u32 {
        match stage {
            raw::TND_ACL_FLOW_CLASS => self.class_table(),
            raw::TND_ACL_FLOW_EGRESS => form_table(port),
            _ => self.table(),
        }
    }

    /// Is it such a list of one of the switches?
    pub(crate) fn has_class(self, table: u32) -> bool {
        (CLASS..CLASS + u32::from(self.of)).contains(&table)
    }

    /// Its groups of packets, of so many: the first, and how many.
    pub(crate) fn groups(self, first: u8, all: u8) -> (u8, u8) {
        let of = |index| u32::from(all) / u32::from(self.of.max(1)) * index;
        let before = of(u32::from(self.index))
            + u32::from(self.index).min(u32::from(all) % u32::from(self.of.max(1)));
        (
            first.saturating_add(before as u8),
            self.part(u32::from(all)) as u8,
        )
    }

    /// Numbers of its counters begin behind this.
    pub(crate) fn counters(self) -> u32 {
        u32::from(self.index) << 24
    }

    /// Is it a list of one of the switches?
    pub(crate) fn has_list(self, table: u32) -> bool {
        (1..=u32::from(self.of)).contains(&table)
    }

    /// Is it a number of its counters?
    pub(crate) fn has_counter(self, id: u32) -> bool {
        id >> 24 == u32::from(self.index)
    }

    /// Is it a number of its port sets?
    pub(crate) fn has_set(self, id: u16) -> bool {
        !self.domains || id >> 12 == u16::from(self.index)
    }

    /// Is it a domain of one of the switches, for frames whatever their tag?
    pub(crate) fn has_domain(self, fid: u16) -> bool {
        self.domains && fid > raw::TND_FLOWS_FID - u16::from(self.of)
    }

    /// Has it entries of the MAC table? Their keys do not say whose port a frame came in by: so one alone has, or each in
    /// a domain of its own.
    pub(crate) fn has_mac(self) -> bool {
        self.index == 0 || self.domains
    }

    /// The domain of frames whatever their tag. That of the first is everybody's who is in no other.
    pub(crate) fn fid(self) -> u16 {
        match self.has_mac() {
            true => raw::TND_FLOWS_FID - u16::from(self.index),
            false => raw::TND_FLOWS_FID,
        }
    }

    /// Are its ports to be put into that domain?
    pub(crate) fn joins(self) -> bool {
        self.fid() != raw::TND_FLOWS_FID
    }

    /// A number for a port set, of 4,096.
    pub(crate) fn set(self, n: u16) -> u16 {
        u16::from(self.index) << 12 | n & 0xfff
    }

    /// Its part of what the chip has of something: none has to wait for another, or to give way.
    pub(crate) fn part(self, all: u32) -> u32 {
        let of = u32::from(self.of.max(1));
        all / of + u32::from(u32::from(self.index) < all % of)
    }
}

/// A session that lasted so long counts without a sign (asicd's deadline), so the device hears of signs from then on: one that
/// always has something to do gives none, and silence of all the others would be none.
const HELD: u64 = 10_000_000_000;
/// The cookie of an answer that is not the device's: no token.
const OWN: u64 = u64::MAX;

struct Hub {
    device: Box<dyn Device>,
    inboxes: Vec<VecDeque<Outcome>>,
    /// Who has not come as far as a sign in this session. The first one that the device sees says of all of them that what was
    /// overdue has ended, so before each has one they are answered here.
    unsigned: BTreeSet<usize>,
    /// When something was posted first.
    since_ns: Option<u64>,
}

/// A sign that was given.
fn signed(token: u64) -> Outcome {
    let cpl = raw::tnd_cpl {
        op: raw::TND_OP_NOP,
        cookie: OWN,
        ..raw::tnd_cpl::default()
    };
    let output = Vec::new();
    Outcome::Done { token, cpl, output }
}

impl Hub {
    fn sort(&mut self, outcome: Outcome) {
        let (Outcome::Done { token, .. } | Outcome::TimedOut { token }) = &outcome;
        let of = usize::try_from(token >> BITS).unwrap_or(usize::MAX);
        if let Some(inbox) = self.inboxes.get_mut(of) {
            inbox.push_back(outcome);
        }
    }
}

/// Does this say that the device answers?
pub(crate) fn is_answer(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done { cpl, .. } if cpl.cookie != OWN)
}

/// The device as one of the switches has it.
pub struct Part {
    hub: Arc<Mutex<Hub>>,
    index: usize,
}

/// A device for so many switches. Its descriptors are looked after by who has made it.
pub fn parts(device: Box<dyn Device>, count: usize) -> Vec<Part> {
    let inboxes = (0..count).map(|_| VecDeque::new()).collect();
    let hub = Arc::new(Mutex::new(Hub {
        device,
        inboxes,
        unsigned: (0..count).collect(),
        since_ns: None,
    }));
    let part = |index| Part {
        hub: Arc::clone(&hub),
        index,
    };
    (0..count).map(part).collect()
}

impl Part {
    fn hub(&self) -> MutexGuard<'_, Hub> {
        // one thread has them all
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for Part {
    fn epoch(&self) -> u32 {
        self.hub().device.epoch()
    }

    fn counters(&self) -> ControlCounters {
        self.hub().device.counters()
    }

    fn limit(&self, pair: usize) -> usize {
        self.hub().device.limit(pair)
    }

    fn outstanding(&self) -> usize {
        self.hub().device.outstanding()
    }

    fn post(
        &mut self,
        pair: usize,
        token: u64,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), PostError> {
        let mut hub = self.hub();
        let since = *hub.since_ns.get_or_insert(now_ns);
        if request.op == raw::TND_OP_NOP {
            hub.unsigned.remove(&self.index);
            if !hub.unsigned.is_empty() && now_ns.saturating_sub(since) < HELD {
                hub.sort(signed(token));
                return Ok(());
            }
        }
        hub.device.post(pair, token, request, now_ns)
    }

    fn flush(&mut self) {
        self.hub().device.flush();
    }

    fn reap(
        &mut self,
        now_ns: u64,
        budget: usize,
        sink: &mut dyn FnMut(Outcome),
    ) -> Result<usize, SalError> {
        let mut hub = self.hub();
        let mut came = Vec::new();
        let reaped = hub.device.reap(now_ns, budget, &mut |o| came.push(o));
        for outcome in came {
            hub.sort(outcome);
        }
        let mut taken = 0;
        while taken < budget
            && let Some(o) = hub
                .inboxes
                .get_mut(self.index)
                .and_then(VecDeque::pop_front)
        {
            taken += 1;
            sink(o);
        }
        reaped.map(|_| taken)
    }

    fn arm(&mut self) -> Result<bool, SalError> {
        let index = self.index;
        let mut hub = self.hub();
        let quiet = hub.device.arm()?;
        Ok(quiet && hub.inboxes.get(index).is_none_or(VecDeque::is_empty))
    }

    fn disarm(&mut self) {
        self.hub().device.disarm();
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.hub().device.next_deadline_ns()
    }

    fn call(
        &mut self,
        what: &'static str,
        request: &Request<'_>,
    ) -> Result<(raw::tnd_cpl, Vec<u8>), SalError> {
        self.hub().device.call(what, request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_sal::told::Told;

    /// A switch that has nothing to write gives its sign, and another one has not come so far: the device hears of none before.
    #[test]
    fn the_first_sign_is_that_of_all() {
        let mut all = parts(Box::new(Told::new(&[], [])), 2);
        let mut token = 0;
        // who, and whether the device is to hear of it
        for (who, heard) in [(0, false), (0, false), (1, true), (0, true)] {
            let sign = Request {
                op: raw::TND_OP_NOP,
                ..Request::default()
            };
            token += 1;
            let own = (who as u64) << BITS | token;
            assert!(all[who].post(1, own, &sign, 0).is_ok());
            assert_eq!(all[who].outstanding() > 0, heard, "{token}");
            let mut answers = Vec::new();
            all[who].reap(0, 8, &mut |o| answers.push(o)).unwrap();
            let answered = |o: &Outcome| matches!(o, Outcome::Done { token, .. } if *token == own);
            assert!(answers.len() == 1 && answers.iter().all(answered));
            // one that was answered here says nothing of the device
            assert_eq!(answers.iter().all(is_answer), heard, "{token}");
        }
        // who has always something to do gives none: the others are not held up by it
        let mut all = parts(Box::new(Told::new(&[], [])), 2);
        for (now_ns, heard) in [(5, false), (HELD + 4, false), (HELD + 5, true)] {
            let sign = Request {
                op: raw::TND_OP_NOP,
                ..Request::default()
            };
            assert!(all[0].post(1, now_ns, &sign, now_ns).is_ok());
            assert_eq!(all[0].outstanding() > 0, heard, "{now_ns}");
        }
        // what is no sign it hears at once
        let mut all = parts(Box::new(Told::new(&[], [])), 2);
        let read = Request {
            op: raw::TND_OP_SNAPSHOT,
            ..Request::default()
        };
        assert!(all[1].post(1, 1 << BITS, &read, 0).is_ok());
        assert_eq!(all[1].outstanding(), 1);
    }
}

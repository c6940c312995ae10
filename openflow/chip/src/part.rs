// SPDX-License-Identifier: Apache-2.0
//! One device for several switches: each posts by itself, and has its own answers.
//!
//! ```text
//!   Chip of red  ─ post ─┐                                        ┌─► inbox of red
//!                        ├─► Device: one command pair ─► answers ─┤   by the token's highest bits
//!   Chip of blue ─ post ─┘                                        └─► inbox of blue
//! ```

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_abi::raw;
use tandem_sal::control::ControlCounters;
use tandem_sal::{Device, Outcome, PostError, Request, SalError};

/// A token's number has so many bits; above them it says whose it is.
const BITS: u32 = 48;

/// The number of the first switch's list that classifies; below are lists of rows.
const CLASS: u32 = 257;

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

    /// Its list at a stage.
    pub(crate) fn list(self, stage: u16) -> u32 {
        match stage {
            raw::TND_ACL_FLOW_CLASS => self.class_table(),
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

struct Hub {
    device: Box<dyn Device>,
    inboxes: Vec<VecDeque<Outcome>>,
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

/// The device as one of the switches has it.
pub struct Part {
    hub: Arc<Mutex<Hub>>,
    index: usize,
}

/// A device for so many switches. Its descriptors are looked after by who has made it.
pub fn parts(device: Box<dyn Device>, count: usize) -> Vec<Part> {
    let inboxes = (0..count).map(|_| VecDeque::new()).collect();
    let hub = Arc::new(Mutex::new(Hub { device, inboxes }));
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
        self.hub().device.post(pair, token, request, now_ns)
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

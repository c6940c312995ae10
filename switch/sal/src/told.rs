// SPDX-License-Identifier: Apache-2.0
//! A device that does nothing, and answers as it was told to, one command at a time: for tests and fuzz targets of what
//! drives one.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use tandem_abi::raw;
use zerocopy::IntoBytes;

use crate::control::{ControlCounters, Outcome, PostError, Request};
use crate::{Device, SalError};

/// Commands that it holds.
const LIMIT: usize = 64;

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done, or refused: a status of the ABI.
    Status(u16),
    /// It is given up.
    TimedOut,
    /// Neither this one nor what is behind it is answered any more.
    Silent,
    /// The same for so many nanoseconds from when it is looked for. Then it goes on, with this one.
    Pauses(u64),
    /// The device dies.
    Dies,
}

/// The device.
#[derive(Debug, Default)]
pub struct Told {
    pools: Vec<raw::tnd_pool>,
    answers: VecDeque<Answer>,
    posted: VecDeque<(u64, raw::tnd_cpl)>,
    /// Since when it pauses.
    since_ns: Option<u64>,
}

impl Told {
    /// With pools, by name and size, all free. After `answers` every command is done.
    pub fn new(pools: &[(&str, u32)], answers: impl IntoIterator<Item = Answer>) -> Told {
        let pool = |(name, size): &(&str, u32)| {
            let mut pool = raw::tnd_pool {
                size: *size,
                free: *size,
                ..raw::tnd_pool::default()
            };
            tandem_abi::set_name(&mut pool.name, name);
            pool
        };
        Told {
            pools: pools.iter().map(pool).collect(),
            answers: answers.into_iter().collect(),
            posted: VecDeque::new(),
            since_ns: None,
        }
    }

    /// Is something waited for that does not come yet?
    fn pauses(&mut self, now_ns: u64) -> bool {
        while let (Some(Answer::Pauses(ns)), false) = (self.answers.front(), self.posted.is_empty())
        {
            let since = *self.since_ns.get_or_insert(now_ns);
            if now_ns < since.saturating_add(*ns) {
                return true;
            }
            self.since_ns = None;
            self.answers.pop_front();
        }
        false
    }
}

impl Device for Told {
    fn epoch(&self) -> u32 {
        1
    }

    fn counters(&self) -> ControlCounters {
        ControlCounters::default()
    }

    fn limit(&self, _pair: usize) -> usize {
        LIMIT
    }

    fn outstanding(&self) -> usize {
        self.posted.len()
    }

    fn post(
        &mut self,
        _pair: usize,
        token: u64,
        request: &Request<'_>,
        _now_ns: u64,
    ) -> Result<(), PostError> {
        if self.posted.len() >= LIMIT {
            return Err(PostError::Full);
        }
        let cpl = raw::tnd_cpl {
            op: request.op,
            cls: request.cls,
            ..raw::tnd_cpl::default()
        };
        self.posted.push_back((token, cpl));
        Ok(())
    }

    fn flush(&mut self) {}

    fn reap(
        &mut self,
        now_ns: u64,
        _budget: usize,
        sink: &mut dyn FnMut(Outcome),
    ) -> Result<usize, SalError> {
        if self.pauses(now_ns) || self.answers.front() == Some(&Answer::Silent) {
            return Ok(0);
        }
        let Some((token, mut cpl)) = self.posted.pop_front() else {
            return Ok(0);
        };
        match self.answers.pop_front() {
            Some(Answer::Dies) => return Err(SalError::Unanswered(1)),
            Some(Answer::TimedOut) => {
                sink(Outcome::TimedOut { token });
                return Ok(1);
            }
            Some(Answer::Status(status)) => cpl.status = status,
            Some(Answer::Silent | Answer::Pauses(_)) | None => {}
        }
        let output = Vec::new();
        sink(Outcome::Done { token, cpl, output });
        Ok(1)
    }

    fn arm(&mut self) -> Result<bool, SalError> {
        Ok(true)
    }

    fn disarm(&mut self) {}

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    /// Answered with the pools, whatever is asked.
    fn call(
        &mut self,
        _what: &'static str,
        _request: &Request<'_>,
    ) -> Result<(raw::tnd_cpl, Vec<u8>), SalError> {
        Ok((raw::tnd_cpl::default(), self.pools.as_bytes().to_vec()))
    }
}

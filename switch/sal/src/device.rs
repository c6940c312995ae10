//! The seam to a device: what the core needs of a chip, whatever carries its commands.
//!
//! ```text
//!   core ── post, flush ──► SalControl: rings of the ABI ──────► asicd
//!        ◄──── reap ─────── any other: firmware in the process (tests, simulation)
//! ```
//!
//! A device doesn't read a clock: time comes in with each call.

use std::os::fd::BorrowedFd;

use tandem_abi::object::{Object, records};
use tandem_abi::raw;

use crate::SalError;
use crate::control::{ControlCounters, Outcome, PostError, Request, SalControl};
use crate::pages::Pages;

/// The command half of an attached chip.
pub trait Device: Send {
    /// Epoch of this attach; never 0.
    fn epoch(&self) -> u32;

    /// Counters.
    fn counters(&self) -> ControlCounters;

    /// Commands that a pair can hold.
    fn limit(&self, pair: usize) -> usize;

    /// Commands posted and not answered, those given up not counted.
    fn outstanding(&self) -> usize;

    /// Posts one command; invisible to the chip until [`flush`](Self::flush). Commands of a pair are executed in order.
    ///
    /// # Errors
    /// See [`PostError`].
    fn post(
        &mut self,
        pair: usize,
        token: u64,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), PostError>;

    /// Shows the chip what was posted.
    fn flush(&mut self);

    /// Takes completions, at most `budget`, then looks for commands that are overdue.
    ///
    /// # Errors
    /// The device can't be used any more: attach again.
    fn reap(
        &mut self,
        now_ns: u64,
        budget: usize,
        sink: &mut dyn FnMut(Outcome),
    ) -> Result<usize, SalError>;

    /// Before sleeping: asks to be woken. True: nothing waits.
    ///
    /// # Errors
    /// As [`reap`](Self::reap).
    fn arm(&mut self) -> Result<bool, SalError>;

    /// After waking.
    fn disarm(&mut self);

    /// Descriptors that are readable when completions came; after [`arm`](Self::arm).
    fn fds(&self) -> Vec<BorrowedFd<'_>>;

    /// When the oldest outstanding command is overdue, for the owner's sleep.
    fn next_deadline_ns(&self) -> Option<u64>;

    /// Posts, waits, answers: at a daemon's start, and where nobody else waits. Completions of other commands that come meanwhile
    /// are given by the next [`reap`](Self::reap).
    ///
    /// # Errors
    /// Refused, not answered in time, or the device can't be used any more.
    fn call(
        &mut self,
        what: &'static str,
        request: &Request<'_>,
    ) -> Result<(raw::tnd_cpl, Vec<u8>), SalError>;
}

impl<'a> dyn Device + 'a {
    /// All objects of a class, each with what follows it.
    ///
    /// # Errors
    /// As [`Device::call`]; or the list has no end.
    pub fn dump<T: Object>(&mut self, mut each: impl FnMut(T, &[u8])) -> Result<(), SalError> {
        let mut pages = Pages::default();
        loop {
            let (cpl, out) = self.call(
                "dump",
                &Request {
                    op: raw::TND_OP_DUMP,
                    cls: T::CLASS,
                    arg: pages.cursor(),
                    output: true,
                    ..Default::default()
                },
            )?;
            for (object, tail) in records::<T>(&out).take(cpl.out_count as usize) {
                each(object, tail);
            }
            let more = pages.goes_on(cpl.result);
            let what = "dump";
            if !more.map_err(|why| SalError::List { what, why })? {
                return Ok(());
            }
        }
    }
}

impl Device for SalControl {
    fn epoch(&self) -> u32 {
        SalControl::epoch(self)
    }

    fn counters(&self) -> ControlCounters {
        SalControl::counters(self)
    }

    fn limit(&self, pair: usize) -> usize {
        SalControl::limit(self, pair)
    }

    fn outstanding(&self) -> usize {
        SalControl::outstanding(self)
    }

    fn post(
        &mut self,
        pair: usize,
        token: u64,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), PostError> {
        SalControl::post(self, pair, token, request, now_ns)
    }

    fn flush(&mut self) {
        SalControl::flush(self);
    }

    fn reap(
        &mut self,
        now_ns: u64,
        budget: usize,
        sink: &mut dyn FnMut(Outcome),
    ) -> Result<usize, SalError> {
        SalControl::reap(self, now_ns, budget, sink)
    }

    fn arm(&mut self) -> Result<bool, SalError> {
        SalControl::arm(self)
    }

    fn disarm(&mut self) {
        SalControl::disarm(self);
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        SalControl::fds(self).collect()
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        SalControl::next_deadline_ns(self)
    }

    fn call(
        &mut self,
        what: &'static str,
        request: &Request<'_>,
    ) -> Result<(raw::tnd_cpl, Vec<u8>), SalError> {
        SalControl::call(self, what, request)
    }
}

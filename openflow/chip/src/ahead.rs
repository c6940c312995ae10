// SPDX-License-Identifier: Apache-2.0
//! What a device tells at an attach, read before a switch asks for it, by a thread that may wait: a device that is stopped
//! does not answer for seconds.
//!
//! ```text
//!   a thread ─► Ahead::read ─► SNAPSHOT, DUMP … ═► asicd, which may be slow
//!                  │ the device, and its answers
//!                  ▼
//!   switch's thread ─► Chip::attach, Chip::adopt ─► call ─► answered from what was read
//! ```

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use tandem_abi::object::Object;
use tandem_abi::{Status, raw};
use tandem_sal::control::ControlCounters;
use tandem_sal::{Device, Outcome, PostError, Request, SalError};

type Told = Result<(raw::tnd_cpl, Vec<u8>), Status>;

/// A device with its answers to what an attach asks. With the first command that is posted they are no longer true, and
/// forgotten.
pub struct Ahead {
    device: Box<dyn Device>,
    /// By operation, class, cursor.
    told: HashMap<(u16, u16, u64), Told>,
    reads: bool,
}

impl Ahead {
    /// Asks all that [`Chip::attach`](crate::Chip::attach) asks; `warm`: and [`Chip::adopt`](crate::Chip::adopt). Waits for
    /// each answer.
    ///
    /// # Errors
    /// One did not come. What is refused is refused again where it matters.
    pub fn read(device: Box<dyn Device>, warm: bool) -> Result<Ahead, SalError> {
        let mut ahead = Ahead {
            device,
            told: HashMap::new(),
            reads: true,
        };
        let snapshot = Request {
            op: raw::TND_OP_SNAPSHOT,
            output: true,
            ..Default::default()
        };
        match ahead.call("snapshot", &snapshot) {
            Ok(_) | Err(SalError::Refused { .. }) => {}
            Err(e) => return Err(e),
        }
        ahead.all::<raw::tnd_port_stats>()?;
        if warm {
            ahead.all::<raw::tnd_acl_table>()?;
            ahead.all::<raw::tnd_acl_bind>()?;
            ahead.all::<raw::tnd_acl_entry>()?;
            ahead.all::<raw::tnd_acl_counter>()?;
            ahead.all::<raw::tnd_vlan>()?;
            ahead.all::<raw::tnd_vlan_member>()?;
            ahead.all::<raw::tnd_port>()?;
            ahead.all::<raw::tnd_port_set>()?;
            ahead.all::<raw::tnd_fdb>()?;
        }
        ahead.reads = false;
        Ok(ahead)
    }

    fn all<T: Object>(&mut self) -> Result<(), SalError> {
        let device: &mut dyn Device = self;
        match device.dump(|_: T, _| {}) {
            Ok(()) | Err(SalError::Refused { .. }) => Ok(()),
            Err(e) => Err(e),
        }
    }
}

impl Device for Ahead {
    fn epoch(&self) -> u32 {
        self.device.epoch()
    }

    fn counters(&self) -> ControlCounters {
        self.device.counters()
    }

    fn limit(&self, pair: usize) -> usize {
        self.device.limit(pair)
    }

    fn outstanding(&self) -> usize {
        self.device.outstanding()
    }

    fn post(
        &mut self,
        pair: usize,
        token: u64,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), PostError> {
        if !self.told.is_empty() {
            self.told = HashMap::new();
        }
        self.device.post(pair, token, request, now_ns)
    }

    fn flush(&mut self) {
        self.device.flush();
    }

    fn reap(
        &mut self,
        now_ns: u64,
        budget: usize,
        sink: &mut dyn FnMut(Outcome),
    ) -> Result<usize, SalError> {
        self.device.reap(now_ns, budget, sink)
    }

    fn arm(&mut self) -> Result<bool, SalError> {
        self.device.arm()
    }

    fn disarm(&mut self) {
        self.device.disarm();
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.device.fds()
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.device.next_deadline_ns()
    }

    fn call(
        &mut self,
        what: &'static str,
        request: &Request<'_>,
    ) -> Result<(raw::tnd_cpl, Vec<u8>), SalError> {
        let key = (request.op, request.cls, request.arg);
        if let Some(told) = self.told.get(&key) {
            let refused = |status| SalError::Refused { what, status };
            return told.clone().map_err(refused);
        }
        let answer = self.device.call(what, request);
        if self.reads {
            let told = match &answer {
                Ok(told) => Ok(told.clone()),
                Err(SalError::Refused { status, .. }) => Err(*status),
                Err(_) => return answer,
            };
            self.told.insert(key, told);
        }
        answer
    }
}

//! What is around the core here: ports that are nothing but names, and the chip in the process.

use std::os::fd::BorrowedFd;

use rustix::event::Timespec;
use tandem_core::Plant;
use tandem_core::plant::{Attached, Front, Names, NotYet, Progress, Waits};
use tandem_sal::Attach;
use tandem_store::Policy;

use crate::chip::{Direct, Shared};

/// The plant of a test.
pub struct Bench {
    /// The chip.
    pub chip: Shared,
    /// The ports.
    pub front: Vec<Front>,
    /// An attach that was begun.
    pub begun: Option<Begun>,
}

/// An attach that was begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    cold: bool,
    /// How often it was asked after.
    asked: usize,
    /// How often the chip had died by then.
    deaths: u64,
}

impl Plant for Bench {
    fn names(&self) -> Names {
        Names {
            daemon: "the twin",
            device: "the chip",
            origin: "the kernel",
        }
    }

    fn policy(&self) -> Policy {
        Policy::Trap
    }

    fn chip(&self) -> &str {
        "twin"
    }

    fn ports(&self) -> &[Front] {
        &self.front
    }

    fn lives(&self, _port: u16) -> bool {
        true
    }

    fn set_carrier(&self, up: bool) {
        self.chip.lock().seen.dark = !up;
    }

    fn is_marked(&mut self, _ifindex: u32) -> bool {
        true
    }

    fn mark(&mut self, _ifindex: u32) -> Result<(), String> {
        Ok(())
    }

    fn check(&self) -> Result<(), NotYet> {
        match self.chip.lock().dead {
            true => Err(NotYet::away("power failed")),
            false => Ok(()),
        }
    }

    fn begin_attach(&mut self, cold: bool) -> Result<(), NotYet> {
        let mut chip = self.chip.lock();
        chip.seen.begun += 1;
        self.begun = Some(Begun {
            cold,
            asked: 0,
            deaths: chip.deaths,
        });
        Ok(())
    }

    fn go_on(&mut self) -> Result<Progress, NotYet> {
        let Some(begun) = &mut self.begun else {
            return Err(NotYet::refused("nothing was begun"));
        };
        let mut chip = self.chip.lock();
        if begun.deaths != chip.deaths {
            return Err(NotYet::away("power failed"));
        }
        if begun.asked < chip.slow.saturating_mul(chip.questions + 1) {
            let step = begun.asked / chip.slow;
            begun.asked += 1;
            let what = match step {
                0 => "connecting to it",
                _ => "it is asked",
            };
            return Ok(Progress::Waits(Waits {
                what: what.into(),
                which: String::new(),
                answers: step as u64,
            }));
        }
        if let Some(why) = chip.refuses.clone() {
            return Err(NotYet::refused(why));
        }
        let how = match chip.kept && !begun.cold {
            true => Attach::Warm,
            false => Attach::Cold,
        };
        let io = chip.packets.take();
        drop(chip);
        self.begun = None;
        Ok(Progress::Done(Attached {
            how,
            control: Box::new(Direct::attach(&self.chip, how)),
            io,
        }))
    }

    fn give_up(&mut self) {
        self.begun = None;
    }

    fn detach(&mut self) {}

    fn sleep(&self, _fds: &[BorrowedFd<'_>], limit: &Timespec) {
        let ns = limit.tv_sec * 1_000_000_000 + limit.tv_nsec;
        self.chip.lock().seen.sleep_ns = ns.unsigned_abs();
    }
}

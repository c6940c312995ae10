//! What is around the core: the ports' netdevs with their programs, and the way to the device.
//!
//! ```text
//!   Core ── ports, carrier, marks ──► Plant ── attach ──► Attached { Device, SalIo }
//!                                       ├─ Wired: TAPs, tcx, asicd's socket        the daemon
//!                                       └─ any other: no netdevs, no socket        tests, simulation
//! ```

use std::os::fd::BorrowedFd;

use rustix::event::Timespec;
use tandem_sal::{Attach, Device, SalIo};
use tandem_store::Policy;

/// A front-panel port as the core knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Its number, from 1.
    pub port: u16,
    /// Its name in the platform's map.
    pub name: String,
    /// The netdev's interface index.
    pub ifindex: u32,
}

/// A device that was just attached.
pub struct Attached {
    /// Whether its tables were kept.
    pub how: Attach,
    /// Its command pairs.
    pub control: Box<dyn Device>,
    /// Its packets and events, for the io thread; none where there is no such thread.
    pub io: Option<Box<SalIo>>,
}

/// Why there is no device yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotYet {
    /// One line.
    pub text: String,
    /// A person should know: it does not go away by itself.
    pub warn: bool,
}

impl<E: std::fmt::Display> From<E> for NotYet {
    fn from(e: E) -> Self {
        NotYet {
            text: e.to_string(),
            warn: false,
        }
    }
}

/// What stands in the way of the mark at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A program is not there.
    Missing,
    /// Somebody's program runs before it: what that one accepts is not stamped.
    NotFirst,
}

/// What those around the core are called, in texts for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The program that has the core: `switchd`.
    pub daemon: &'static str,
    /// Whoever runs the chip: `asicd`.
    pub device: &'static str,
    /// Whose tables the chip follows, and whose packets the ports send: `the kernel`.
    pub origin: &'static str,
}

/// What the core needs of what is around it.
pub trait Plant: Send {
    /// What those around the core are called.
    fn names(&self) -> Names;
    /// What happens to what does not fit.
    fn policy(&self) -> Policy;
    /// The chip's name.
    fn chip(&self) -> &str;
    /// The front panel, by number.
    fn ports(&self) -> &[Front];
    /// Whether the netdev of a port lives, in this network namespace or another.
    fn lives(&self, port: u16) -> bool;
    /// Carrier of all netdevs.
    fn set_carrier(&self, up: bool);
    /// Whether the forward mark is at a netdev; where that can't be told: yes.
    fn is_marked(&mut self, ifindex: u32) -> bool;
    /// What is wrong with the forward mark at a netdev; where that can't be told: nothing.
    fn mark_fault(&mut self, ifindex: u32) -> Option<Fault> {
        (!self.is_marked(ifindex)).then_some(Fault::Missing)
    }
    /// Something has happened that may have taken a mark away.
    fn marks_doubtful(&mut self) -> bool {
        false
    }
    /// Attaches the forward mark.
    ///
    /// # Errors
    /// One line.
    fn mark(&mut self, ifindex: u32) -> Result<(), String>;
    /// `learning`, which an earlier version of the daemon had turned off, is on again.
    fn relearned(&mut self) {}
    /// Whether the device is there.
    ///
    /// # Errors
    /// Why it is not: one line.
    fn check(&self) -> Result<(), String>;
    /// Attaches the device; `cold`: with empty tables in any case.
    ///
    /// # Errors
    /// It is not there (yet).
    fn attach(&mut self, cold: bool) -> Result<Attached, NotYet>;
    /// Gives the device up: it is dead, or about to be attached again.
    fn give_up(&mut self);
    /// Detaches in good order: its tables stay.
    fn detach(&mut self);
    /// Sleeps until one of `fds` is readable or the device's state changes, at most `limit`.
    fn sleep(&self, fds: &[BorrowedFd<'_>], limit: &Timespec);
}

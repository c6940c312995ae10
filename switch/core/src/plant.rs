//! What is around the core: the ports' netdevs with their programs, and the way to the device.
//!
//! ```text
//!   Core ── ports, carrier, marks ──► Plant ── begin_attach, go_on ──► not yet | Attached { Device, SalIo }
//!                                       ├─ Wired: TAPs, tcx, asicd's socket        the daemon
//!                                       └─ any other: no netdevs, no socket        tests, simulation
//! ```

use std::os::fd::BorrowedFd;

use rustix::event::Timespec;
use tandem_sal::{Attach, Device, PostError, SalError, SalIo};
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

/// How far an attach is.
pub enum Progress {
    /// The device has not answered.
    Waits(Waits),
    /// It is attached.
    Done(Attached),
}

/// What an attach waits for. Displays as `reading its FDB, page 3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// In a few words, the same for all of a kind: `reading its FDB`.
    pub what: String,
    /// Which of them it is: `page 3`. Empty: there is but one.
    pub which: String,
    /// Answers so far; after each one the next has its time anew.
    pub answers: u64,
}

impl std::fmt::Display for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.which.as_str() {
            "" => f.write_str(&self.what),
            which => write!(f, "{}, {which}", self.what),
        }
    }
}

/// Why there is no device yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotYet {
    /// One line.
    pub text: String,
    /// A person should know: it does not go away by itself.
    pub warn: bool,
}

impl NotYet {
    /// Nobody is there, or nobody any more: whoever it is comes by itself.
    #[must_use]
    pub fn away(text: impl Into<String>) -> Self {
        NotYet {
            text: text.into(),
            warn: false,
        }
    }

    /// It is there, and that doesn't help.
    #[must_use]
    pub fn refused(text: impl Into<String>) -> Self {
        NotYet {
            text: text.into(),
            warn: true,
        }
    }
}

impl From<SalError> for NotYet {
    fn from(e: SalError) -> Self {
        match e.is_away() {
            true => NotYet::away(e.to_string()),
            false => NotYet::refused(e.to_string()),
        }
    }
}

impl From<PostError> for NotYet {
    fn from(e: PostError) -> Self {
        NotYet::refused(e.to_string())
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
    /// Why it is not.
    fn check(&self) -> Result<(), NotYet>;
    /// Begins to attach the device; `cold`: with empty tables in any case. What was begun before is given up.
    ///
    /// # Errors
    /// It is not there (yet).
    fn begin_attach(&mut self, cold: bool) -> Result<(), NotYet>;
    /// Goes on with it, without waiting; called again until it is done or fails. [`sleep`](Self::sleep) wakes when there may
    /// be an answer.
    ///
    /// # Errors
    /// It is gone, or refuses: the attach is begun anew.
    fn go_on(&mut self) -> Result<Progress, NotYet>;
    /// Gives the device up: it is dead, or about to be attached again; or one that is being attached.
    fn give_up(&mut self);
    /// Detaches in good order: its tables stay.
    fn detach(&mut self);
    /// Sleeps until one of `fds` is readable or the device's state changes, at most `limit`.
    fn sleep(&self, fds: &[BorrowedFd<'_>], limit: &Timespec);
}

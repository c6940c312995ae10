//! SAL, the switch abstraction layer: the user-space driver of the ABI.
//!
//! ```text
//!                 Sal (one connection to asicd: platform, kept descriptors, attach; for whoever can't wait, all in two halves)
//!                   │ attach(cold | warm)
//!         ┌─────────┴──────────┐
//!    SalControl (a Device)   SalIo                      each to a thread of its own
//!    post ─► command rings   event ◄─ event ring
//!    reap ◄─ completions     receive ◄─ rx ring, transmit ─► tx ring
//! ```
//!
//! Nothing here reads a clock or starts a thread: time comes in as `now_ns` (monotonic). The device
//! is not trusted: what comes from it is copied once, then checked; an impossible index ends the
//! attach, an impossible completion is counted and dropped.
//!
//! When asicd goes away, both parts answer errors or stand still; the owner drops them, connects a
//! new [`Sal`] and attaches again: cold, because a new asicd has empty tables.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod arena;
pub mod control;
pub mod device;
#[cfg(feature = "testing")]
pub mod fuzz;
pub mod io;
mod pages;
pub mod platform;
mod session;
#[cfg(feature = "testing")]
pub mod told;

pub use control::{Outcome, PostError, Request, SalControl};
pub use device::Device;
pub use io::{Event, RxMeta, SalIo};
pub use pages::{PAGES_MAX, Pages};
pub use platform::{Platform, PlatformPort, Splits};
pub use session::{Attach, Connected, Connecting, Sal};

use tandem_abi::{Corrupt, Status};
use tandem_carrier::CarrierError;

/// What went wrong with the device. Displays as one line.
#[derive(Debug, thiserror::Error)]
pub enum SalError {
    /// The carrier: connection, handshake.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    /// A ring is dead: attach again.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// The platform description.
    #[error(transparent)]
    Platform(#[from] platform::PlatformError),
    /// A synchronous command was refused.
    #[error("{what}: {status}")]
    Refused {
        /// The command.
        what: &'static str,
        /// The answer.
        status: Status,
    },
    /// A synchronous command was not answered.
    #[error("no answer from the ASIC to {0} in time")]
    Timeout(&'static str),
    /// A synchronous command did not fit the ring.
    #[error("{0}: command ring full")]
    RingFull(&'static str),
    /// What the device lists can't be so.
    #[error("the ASIC's {what} can't be read: {why}")]
    List {
        /// Of what: `FDB`.
        what: &'static str,
        /// In words.
        why: String,
    },
    /// Too many commands were never answered to go on: attach again.
    #[error("{0} commands were never answered")]
    Unanswered(usize),
}

impl SalError {
    /// Nobody is there to be driven, or nobody any more: whoever it is comes by itself.
    #[must_use]
    pub fn is_away(&self) -> bool {
        let SalError::Carrier(e) = self else {
            return false;
        };
        matches!(e, CarrierError::NoAsic(_) | CarrierError::Gone)
    }
}

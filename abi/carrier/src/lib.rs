//! The carrier between processes: a sealed memfd, eventfds as doorbells, and a Unix socket.
//!
//! ```text
//!   driver process                                        asicd
//!   DriverSide ──── driver.sock (SEQPACKET, 0600) ──────► DeviceSide      one driver at a time
//!        │   HELLO ─►   ◄─ WELCOME + memfd + doorbells        │           closed = driver gone
//!        │   KEEP name + fd, GET name, …                      │
//!        └──────────── region (memfd, sealed) ────────────────┘           a fresh one per connection
//!              requests in the header's words, doorbell 0
//! ```
//!
//! The rings don't know any of this: between a VM and asicd [`ivshmem`] brings the same region and
//! other doorbells, behind the same two types.
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod device;
mod driver;
pub mod ivshmem;
mod message;
mod region;

pub use device::{DeviceEvent, DeviceSide, Holder};
pub use driver::{Connecting, Connection, DriverSide};
#[cfg(feature = "testing")]
pub use message::fuzz_message;
pub use message::{KEPT_MAX, NAME_MAX};
pub use region::Region;

pub use tandem_linux::eventfd::EventFd;

use std::path::PathBuf;

/// A doorbell, shared by whoever rings it.
pub type Bell = std::sync::Arc<EventFd>;

/// What went wrong between driver and device. Displays as one line.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// Nobody listens.
    #[error("no ASIC to drive: nobody listens on {path}: start asicd", path = .0.display())]
    NoAsic(PathBuf),
    /// Nobody owns the memory.
    #[error("no ivshmem server listens on {path}: start tandem-ivshmem-server", path = .0.display())]
    NoServer(PathBuf),
    /// The server's memory can't hold the region.
    #[error(
        "ivshmem memory too small (needs {need} bytes, has {have}): give the server a larger --size"
    )]
    TooSmall {
        /// Bytes of the region.
        need: usize,
        /// Bytes of the memory.
        have: usize,
    },
    /// The server has fewer doorbells than the region's rings.
    #[error("too few ivshmem vectors (needs {need}, has {have}): give the server more --vectors")]
    Vectors {
        /// Doorbells in one direction.
        need: u32,
        /// Vectors of a peer.
        have: usize,
    },
    /// The socket is taken.
    #[error("{path} is in use by a running asicd, or is no socket", path = .0.display())]
    InUse(PathBuf),
    /// The device refuses, in its own words: another driver holds the chip, a name is not kept, …
    #[error("{0}")]
    Refused(String),
    /// No answer in time.
    #[error("no answer from the ASIC to {0} in time")]
    Timeout(&'static str),
    /// The device closed the connection or went away.
    #[error("the ASIC is gone")]
    Gone,
    /// The device failed the session: `TND_FAIL_*`.
    #[error("the ASIC ended the session: {text}", text = tandem_abi::handshake::fail_reason_text(*.0))]
    Failed(u32),
    /// The device refused a request: `TND_ST_*`.
    #[error("the ASIC refused {what}: {status}")]
    Status {
        /// The request.
        what: &'static str,
        /// Its answer.
        status: tandem_abi::Status,
    },
    /// An answer that the protocol doesn't allow.
    #[error("carrier protocol: {0}")]
    Protocol(String),
    /// The region's frame can't be used.
    #[error(transparent)]
    Layout(#[from] tandem_abi::LayoutError),
    /// The region can't be shared.
    #[error(transparent)]
    Shm(#[from] tandem_linux::shm::ShmError),
    /// The system's answer.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// Its error.
        source: std::io::Error,
    },
}

pub(crate) fn io(what: &'static str) -> impl Fn(std::io::Error) -> CarrierError {
    move |source| CarrierError::Io { what, source }
}

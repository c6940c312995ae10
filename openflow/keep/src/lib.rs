// SPDX-License-Identifier: Apache-2.0
//! A switch's tables as a log that outlives its process: flows, groups and meters with their ages and counters, ports'
//! configuration, and what else a controller has set.
//!
//! ```text
//!   a turn's changes ─► Journal: records ─► one batch, length and sum ─► end of the file     before any answer leaves
//!   now and then: all that there is, in slices, between the turns' batches ─► another file, which takes its place
//!
//!   file ─► batches, up to the first that is not whole ─► State: the last record of each ─► a Switch
//! ```
//!
//! A process may be killed at any instruction: what is not a whole batch was not acknowledged, and is nothing. Records say
//! what is, not what was asked for, so that reading them needs no rules, and a flow's record may come twice.
//!
//! Nothing here reads a clock; [`Store`] alone knows files.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod batch;
mod journal;
mod record;
mod state;
mod store;
#[cfg(test)]
mod tests;

pub use batch::Boot;
pub use journal::Journal;
pub use record::{ChipFlow, PortPast};
pub use state::{ChipPast, Left, State};
pub use store::Store;

/// Why a file holds no tables for this switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It was not written by this.
    #[error("it is no file of tables, or of another version of this program")]
    Foreign,
    /// Its times mean nothing.
    #[error("it is of another start of this machine")]
    OtherBoot,
    /// A batch that is whole and says what can't be read.
    #[error("it says what can't be read, {0} bytes behind its beginning")]
    Garbled(usize),
}

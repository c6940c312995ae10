//! The twin in the process: histories that a real kernel lived through, recorded once, played against many chips.
//!
//! ```text
//!   seed ─► history ─► player ── netlink, frames ──► kernel (a namespace of its own, veth ports)
//!                         │◄─ errnos, notifications, dumps, what came out at the ports
//!                         ▼
//!                     Recording ──► play: decoder, listener, store, core ─► firmware, pipeline      × many chips, faults
//!                                     each frame's answer: one that the kernel gave, or the CPU
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod bench;
pub mod chip;
pub mod coverage;
pub mod fold;
pub mod hidden;
pub mod history;
pub mod kernel;
pub mod model;
pub mod normal;
pub mod paths;
pub mod play;
pub mod player;
pub mod random;
pub mod recording;
pub mod shrink;
pub mod tally;
pub mod verdict;
pub mod wired;

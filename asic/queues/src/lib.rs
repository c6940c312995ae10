//! What lies between a chip's ingress and its egress (seed 000 §2.5, §2.6.3, §2.6.4).
//!
//! ```text
//!   pipeline ──► Fabric::offer ── port idle, within its speed ──────────────────────────────► cable (no copy, no queue)
//!                     │ congested
//!                     ▼ ingress slice            crossbar                egress slice
//!              VOQ[port][class] ─────┐                            ┌► queue[port][class] ─► Scheduler ─► Shaper ─► cable
//!              (or one FIFO)         ├─► Arbiter: one frame per ──┤
//!              multicast[slice] ─────┘   slice and round          └► replicas, tail drop
//! ```
//!
//! Nothing here reads a clock or knows what a port is cabled to: time is an argument, and frames leave through [`Wire`].
//! `docs/queues.md` says what of a real chip this models and what not.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod arbiter;
mod class;
mod config;
mod egress;
mod fabric;
mod ingress;
mod shaper;
mod stats;

pub use arbiter::Arbiter;
pub use class::{CLASSES, Trust, class_of, class_of_priority};
pub use config::{Config, ConfigError, Ingress};
pub use fabric::{Fabric, Handling, Packet, Wire};
pub use shaper::Shaper;
pub use stats::{FabricStats, QueueStats};

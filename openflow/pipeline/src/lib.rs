// SPDX-License-Identifier: Apache-2.0
//! The OpenFlow software pipeline, of 1.3.5 and 1.0: what a switch does with packets, flow tables, groups and meters.
//!
//! ```text
//!              FlowMod GroupMod MeterMod      FlowFilter
//!                     │ checked, whole or not at all │ stats
//!   ┌─────────────────▼──────────────────────────────▼────────────────────────┐
//!   │ Switch   rules: tables 0–254 (tuple space), flows, groups                │
//!   │          live:  counters, meters, ports, deadlines                       │
//!   │          cache: flows met, by the bits that flows look at                │
//!   └─────▲──────────────────────────┬────────────────────────▲───────────────┘
//!         │ process(frame, in_port)  │ Sink: output, packet_in, │ expire(now)
//!         │ packet_out(…)            ▼       normal             │ ─► FlowRemoved
//!
//!   frame ─► parse ─► Key ─► table 0 ─► flow: meter, apply, clear, write, metadata, goto ─► … ─► action set ─► Sink
//! ```
//!
//! A library without sockets, clocks and threads: frames, messages and the time (`now_ns`, of any monotonic clock) are
//! arguments, and what leaves goes to a [`Sink`] or is an answer. Sections in comments are those of *OpenFlow Switch
//! Specification 1.3.5*, unless they say 1.0.
//!
//! Modules: [`key`] and [`parse`] (what of a frame is matched), `rewrite` (what actions do to it), `table` and
//! `cache` (which flow a packet meets), [`flows`], [`groups`], [`meters`], [`ports`] (state and its changes), `check`
//! (what is refused), [`process`] (a packet's way), [`stats`].
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod cache;
mod check;
pub mod flows;
pub mod groups;
pub mod key;
pub mod meters;
pub mod parse;
pub mod past;
pub mod ports;
pub mod process;
mod rewrite;
pub mod stats;
mod table;

mod actions;
mod switch;

pub use ports::Port;
pub use process::{PacketIn, Sink, Why};
pub use switch::{Change, ChangeKind, Config, Fragments, Switch, TableCount};

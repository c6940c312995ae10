//! switchd: the switch daemon for kernels without the module (`docs/switchd.md`).
//!
//! ```text
//!   kernel ──netlink──► source (listener thread) ──► core (store, SAL control) ──commands──► ASIC
//!     ▲ │                                              ▲      │
//!     │ └──────────── TAPs ◄──► io thread ◄── events, rx, tx ─┼───────────────────────────► ASIC
//!     └───── FDB write-back ──────┘            views, counters┘
//! ```
//!
//! The daemon is wiring: what is decided is decided in `tandem_store` and `tandem_core`, what is spoken is spoken by
//! `tandem_linux` and `tandem_sal`. Who says what the switch shall do is the kernel here (`tandem_netlink`), a
//! [source](tandem_core::source) like any other.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod args;
pub mod daemon;
pub mod forward_mark;
pub mod io;
pub mod ports;
pub mod reattach;
pub mod takeover;
pub mod wired;

//! switchd: the switch daemon for kernels without the module (`docs/switchd.md`).
//!
//! ```text
//!   kernel ──netlink──► source (listener thread) ──► core (store, SAL control) ──commands──► ASIC
//!     ▲ │                                              ▲      │
//!     │ └──────────── TAPs ◄──► io thread ◄── events, rx, tx ─┼───────────────────────────► ASIC
//!     └───── FDB write-back ──────┘            views, counters┘
//! ```
//!
//! The daemon is wiring: what is decided is decided in `tandem_store`, what is spoken is spoken by
//! `tandem_linux` and `tandem_sal`. [`source`] is the seam to whoever says what the switch shall do.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod api;
pub mod args;
pub mod clock;
pub mod core;
pub mod daemon;
pub mod forward_mark;
pub mod io;
mod membership;
mod places;
pub mod ports;
pub mod slow;
pub mod source;
pub mod takeover;
pub mod view;

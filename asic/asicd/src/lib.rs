//! asicd, the software ASIC's daemon: wiring of firmware, pipeline, ports and carrier.
//!
//! ```text
//!   api thread ──requests (bounded, eventfd)──►┌──────────────────────────────┐
//!              ◄──────────answers──────────────│ packet thread                │
//!   keeper thread ──port updates (bounded)────►│  epoll: ports, doorbells,    │
//!     watches netdevs, opens and shuts them    │  driver.sock, timer          │
//!                                              │  bursts: ports ► pipeline    │
//!   driver process ══ rings in a memfd ═══════►│          commands ► firmware │
//!                  ◄═ events, packets ═════════│          tx ring ► pipeline  │
//!                                              └──────────────────────────────┘
//! ```
//!
//! One thread owns every table, port and ring, and runs each burst to completion; nothing it does
//! waits for a lock, a file or another thread. Each kind of work has a budget per turn, so that
//! half a million route writes don't stall forwarding and a flood doesn't stall writes.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod api;
pub mod args;
pub mod asic;
pub mod capture;
pub mod cpu;
pub mod daemon;
pub mod deadline;
pub mod events;
pub mod flap;
pub mod keeper;
pub mod output;
pub mod poller;
pub mod slot;
pub mod spin;

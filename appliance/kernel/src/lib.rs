// SPDX-License-Identifier: Apache-2.0
//! Engine `kernel`: a configuration carried out by one bridge of the kernel that filters by VLAN, and VLAN devices on it.
//! The kernel is the truth: `ip` and `bridge` show and change the same, and switchd offloads it.
//!
//! ```text
//!   Config was, now ─► check ─► Plan was, now ─► steps: what differs ─► Kernel: br0, swpN, vlanN, lo, routes
//!                                                 a refusal ◄─────────┘  undoes the steps before it, the last one first
//!   Config now ─► Plan ─┐
//!              kernel ──┴─► drift: what others have changed, shown and left alone
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod drift;
mod engine;
mod netlink;
mod plan;
mod states;
mod steps;

#[cfg(test)]
mod tests;

pub use engine::{Below, Kernel, KernelEngine, PortState, Was};
pub use netlink::{BRIDGE, Netlink, does};
pub use plan::{Board, Plan, Port, plan};
pub use states::{BRIDGES, PortLink, States};
pub use tandem_linux::netlink::Membership;

// SPDX-License-Identifier: Apache-2.0
//! Engine `chip`: a configuration carried out by the VLAN database and the kernel's IP stack.
//!
//! ```text
//!   Config was, now ─► check ─► steps ─┬─► Database: VLANs, ports, stations      ─► core ─► chip
//!                                      └─► Stack: TAPs, addresses, routes        ─► kernel ─► core ─► chip
//!                      a refusal ◄─────┘   undoes the steps before it, the last one first
//!                                          and so does a table of the chip that is full
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod acl;
mod bridge;
mod channels;
mod check;
mod devices;
mod engine;
mod kernel;
mod layers;
mod policy;
mod snoop;
mod steps;
mod taps;
mod tree;

pub use bridge::{Copies, Done, copies};
pub use devices::{Devices, is_lldp};
pub use engine::{Board, Chip, ChipEngine, PortState};
pub use kernel::Kernel;
pub use snoop::{Onward, Snoop};
pub use steps::{Device, Neighbour, Says, Stack, Wanted};
pub use tandem_snoop::{To, from_nobody};
pub use tandem_swstack::tree::{Ask, Tree};
pub use taps::{Keeper, NoKeeper, Taps};

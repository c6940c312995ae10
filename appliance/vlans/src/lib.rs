//! A VLAN database as a source of the core, beside the kernel.
//!
//! ```text
//!   vlan 10, interface Gi1/0/1 …, interface vlan 10          what the chip learned
//!        │                            │                           │
//!        ▼                            ▼                           ▼
//!   Database: VLANs, ports, stations  TapMaker: one TAP      WriteBack
//!        │ what was touched           │ its number                │
//!        ▼                            ▼                           ▼
//!   Teller ──► one bridge that filters by VLAN; its VLAN 10 goes up to device 57 ──► core ◄── the kernel: device 57
//! ```
//!
//! There is no netdev for a VLAN, nor for a port's membership: the database says them to the store as the VLANs of one
//! bridge that the kernel does not have. Where a VLAN is routed it has a TAP, and the database says which device of the
//! kernel's that is. All else of that device (state, addresses, neighbours, routes over it) the kernel says.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod database;
mod frames;
mod groups;
mod multicast;
mod rules;
mod source;
mod states;
mod taps;
mod vlanset;

pub use database::{Database, Mode, Port, Refusal, STATIONS, TapOf, Vlan};
pub use frames::{tagged, untagged};
pub use groups::{group_of_port, port_of_group};
pub use rules::{Judged, RULES, first_piece};
pub use source::{Switch, Teller, Turn, Vlans};
pub use states::State;
pub use taps::{KernelTaps, TapMaker, is_here};
pub use vlanset::VlanSet;

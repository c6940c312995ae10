// SPDX-License-Identifier: Apache-2.0
//! swcfgd: the core with two sources, the packets between chip, ports and TAPs, and the engine that a console drives.
//!
//! ```text
//!   swcfgd.sock ─► ChipEngine ─┬─► Database ─► Teller ─┐
//!                              └─► kernel ─► netlink ──┴─► core ──commands──► ASIC
//!                                                           ▲ events            │
//!                        TAPs vlanN ◄──► packet thread ◄────┴─── events, rx, tx ┘
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod args;
pub mod below;
pub mod bpdus;
pub mod chip;
pub mod daemon;
pub mod door;
pub mod drift;
pub mod frr;
pub mod kernel;
pub mod log;
pub mod names;
pub mod packets;
pub mod plant;
pub mod services;

// SPDX-License-Identifier: Apache-2.0
//! Routing protocols by FRR, never by a second implementation: a configuration as lines of its daemons, a way to them that
//! says what differs and takes back what is refused, and what they show in the form of IOS.
//!
//! ```text
//!   Config ── lines ──► Vec<Line> ── Frr::set ──► /run/frr/{ospfd,ripd,bgpd}.vty
//!                                    Frr::tick ─► who has come back hears all of it
//!   show ip ospf, show ip bgp ─ show ◄── Frr::ask ── their text and JSON; vlan10 is Vlan10
//! ```
#![deny(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)
)]

pub mod lines;
pub mod show;
mod talk;
mod vty;

pub use lines::{Daemon, Line, lines};
pub use talk::Frr;

#[cfg(test)]
mod tests;

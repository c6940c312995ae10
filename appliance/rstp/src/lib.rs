// SPDX-License-Identifier: Apache-2.0
//! Rapid Spanning Tree: IEEE 802.1D-2004, clause 17. One tree, one bridge, no sockets, no clocks, no threads.
//!
//! ```text
//!   port_up, port_down, receive, tick ──► Bridge: machines until they are at rest ──► Vec<Action>, to be done in order
//!                                            └► show: roles, states, the root
//! ```
//!
//! [`Bridge`] is told of links, frames and time, and answers what is to be done: frames to send, states to set, stations
//! to forget. See `docs/rstp.md` for what is there and what is not.
#![deny(unsafe_code)]

pub mod bpdu;
mod bridge;
mod config;
mod machines;
mod port;
mod priority;
mod show;
mod times;

pub use bridge::{Action, Bridge, Ignored};
pub use config::{Config, Link, MOST_COST, MOST_PORTS, PointToPoint, PortConfig, Refusal, Version};
pub use port::{Counters, PortState, Role};
pub use priority::{BridgeId, PortId, Vector};
pub use show::{BridgeView, PortView};
pub use times::{SECOND, Times, seconds};

// SPDX-License-Identifier: Apache-2.0
//! OpenFlow 1.0 and 1.3 on the wire, the switch's side: fields, actions, messages, errors.
//!
//! ```text
//!   bytes of a controller ──► message views (borrowed, bounds-checked) ──► Oxm, Action, Instructions, Error
//! ```
//!
//! Sources: *OpenFlow Switch Specification 1.3.5* (ONF TS-023) and *1.0.0* (wire protocol 0x01); a section number in a
//! comment is 1.3.5's unless it says otherwise. Nothing here knows sockets, tables or time.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod action;
pub mod error;
pub mod oxm;
pub mod port;

pub use action::{Action, Instructions};
pub use error::Error;
pub use oxm::{Field, Oxm};

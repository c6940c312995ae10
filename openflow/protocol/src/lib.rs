// SPDX-License-Identifier: Apache-2.0
//! OpenFlow 1.0 and 1.3 on the wire, the switch's side: fields, actions, messages, errors.
//!
//! ```text
//!   bytes ──► Framer ──► a message ──► decode ──► Request, its payload borrowed     or Malformed: Error, and words
//!   bytes ◄────────────────────────── encode ◄── Reply;  Multiparts ◄── Part
//! ```
//!
//! Sources: *OpenFlow Switch Specification 1.3.5* (ONF TS-023) and *1.0.0* (wire protocol 0x01); a section number in a
//! comment is 1.3.5's unless it says otherwise. Nothing here knows sockets, tables or time.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod action;
mod codec;
pub mod error;
mod frame;
mod hello;
mod matching;
pub mod model;
pub mod oxm;
pub mod port;
#[cfg(any(test, feature = "testing"))]
pub mod random;
#[cfg(test)]
mod tests;
mod v10;
mod v13;
mod wire;

pub use action::{Action, Instructions};
pub use codec::{ERROR_DATA, Multiparts, decode, encode, encode_flow_mod, encode_request};
pub use error::Error;
pub use frame::{Framer, HEADER, Header, LONGEST, TooLong, Version};
pub use hello::{Hello, negotiate};
pub use matching::Match;
pub use oxm::{Field, Oxm};
pub use wire::{Malformed, Result};

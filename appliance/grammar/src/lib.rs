// SPDX-License-Identifier: Apache-2.0
//! The console's commands as data: what may be typed where, what it is called in help, how it is taken back, and where
//! it stands in a running-config.
//!
//! ```text
//!   table.rs   one row a command ──► paths (with `no`, `default`, what is optional)      words.rs   help of each word
//!                                        │                                                   │
//!   line ──► words ──► walk ─────────────┴──► Parsed { id, form, keys, args }                │
//!                       │                     Failure { invalid at, incomplete, ambiguous }  │
//!                       └──► what may follow ──────────────────────────────► `?`, Tab ◄──────┘
//! ```
//!
//! It knows nothing of a configuration but what interfaces are called. Who carries commands out is the console's.
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod args;
mod rule;
pub mod table;
pub mod walk;
pub mod words;

pub use args::{Arg, Ports};
pub use table::{COMMANDS, Command, Form, Id, Mode, Undo};
pub use walk::{Failure, Grammar, Parsed};

#[cfg(test)]
mod tests;

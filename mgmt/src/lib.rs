//! The management API: types, HTTP server and client on Unix sockets, instances.
//!
//! Both daemons answer HTTP/1.1 + JSON on a Unix socket of mode 0600 (`docs/api.md` has the keys).
//! This crate knows nothing of switches: [`types`] names what is exchanged, [`server`] and
//! [`client`] carry it, [`instance`] finds the sockets, [`mod@log`] reads a level, [`signals`] says when a daemon shall stop, [`service`]
//! that it is ready, [`hex`] writes frames,
//! [`deadline`] reads how long a chip may forward alone.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod client;
pub mod deadline;
pub mod hex;
pub mod instance;
pub mod log;
pub mod server;
pub mod service;
pub mod signals;
pub mod types;

pub use client::{Client, ClientError};
pub use instance::{Daemon, Instance};
pub use server::{ApiError, ApiResult, ServerHandle, serve};

// SPDX-License-Identifier: Apache-2.0
//! Bridges among themselves, and among others' bridges.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod expected;
mod hostile;
mod net;
mod network;
mod two;

//! The twin's tests, one program, without those of the recorder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod attach;
// the store's tests use the rest of it
#[allow(dead_code)]
#[path = "../../../../switch/store/tests/it/common/mod.rs"]
mod common;
mod fake;
mod model;
mod play;
mod questions;
mod sources;

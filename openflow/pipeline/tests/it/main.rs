//! The pipeline's tests, one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod any_bytes;
mod common;
mod oracle;
mod pages;
mod rewriting;
mod state;
mod switching;

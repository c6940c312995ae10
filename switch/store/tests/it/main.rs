//! The store's tests, one program: to build and to link one for each file takes several times as long. One file:
//! `cargo test -p tandem-store --test it stations::`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod another_dumps;
mod answered;
mod answers;
mod bare;
mod bonds;
mod bridge_and_v6;
mod choice6;
mod common;
mod covers;
mod doors;
mod filters;
mod groups;
mod kernel_answers;
mod knocking;
mod leaving;
mod lost;
mod memberships;
mod memory;
mod numbers;
mod order;
mod own;
mod pages;
mod property;
mod references;
mod routes;
mod slices;
mod stations;
mod together;
mod topology;
mod undecided;
mod vlan;
mod vlans;
mod vrfs;
mod ways;

//! Everything that speaks to the Linux kernel: netlink, TAP, packet sockets, BPF, shared memory.
//!
//! This is the only crate that makes raw system calls; the modules that need `unsafe` say so at
//! their top, and `docs/unsafe.md` lists them.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod bpf;
pub mod btf;
pub mod clock;
pub mod epoll;
pub mod eventfd;
pub mod fdpass;
pub mod heap;
pub mod ifreq;
pub mod jobs;
pub mod link_notify;
pub mod netlink;
pub mod netns;
mod packet_ring;
pub mod packet_socket;
mod peercred;
pub mod process;
pub mod sandbox;
pub mod shm;
pub mod tap;
pub mod wires;
pub mod xdp;
#[cfg(feature = "testing")]
pub mod xdp_flood;
#[cfg(feature = "testing")]
pub mod xdp_pace;
pub mod xdp_program;
pub mod xdp_socket;

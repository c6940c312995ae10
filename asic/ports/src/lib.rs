//! Front-panel ports: AF_PACKET on any netdev, AF_XDP where it is as good, TAP, Unix datagram sockets, pcap files.
//!
//! ```text
//!   PortSpec "swp1=eth3@blue" ──► Cable ──check()──► Opened { RxPort, TxPort, link }
//!                                   │                        │         │
//!                                   │ link, gone, back       ▼         ▼
//!                                   └──► Change          receive()   queue(), flush()
//! ```
//!
//! A [`Cable`] is one port's connection to the outside world; it opens, closes and watches it and
//! may need locks of the kernel, so a daemon calls it from a helper thread. [`RxPort`] and
//! [`TxPort`] never block and belong to the packet thread. Receiving and sending are separate
//! objects because a frame may leave by the port that it came in on while it is still in that
//! port's ring. Nothing here reads a clock: time comes in as an argument.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod cable;
pub mod dgram;
pub mod kept;
pub mod packet;
pub mod pcap;
mod port;
pub mod self_test;
mod spec;
pub mod tap;
pub mod xdp;

pub use cable::{Cable, Change, Link, Opened};
pub use kept::{Keeper, Kept};
pub use port::{RxPort, RxStats, TxPort, TxStats};
pub use spec::{Pace, PortKind, PortSpec, SpecError, check, rights};

/// Bytes of scratch memory that [`RxPort::receive`] needs: headroom and the longest frame.
pub const SCRATCH: usize = tandem_packet::HEADROOM + tandem_packet::MAX_FRAME;

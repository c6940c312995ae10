//! The packet pipeline of the software ASIC.
//!
//! ```text
//!  port ─► ingress_mac ─► parser ─► vlan ─► learning ─► l2_lookup ─┬─► egress ─► port        (one port)
//!                                                                 ├─► flood ─► egress ─► …   (many ports)
//!                                                                 └─► l3_header ─► l3_lookup ─► l3_egress ─► egress
//!                                     any stage ─► cpu (reason, class, policer)
//! ```
//!
//! [`process`] takes one frame through all stages of seed 000 §2.6 and hands the answers to a [`Sink`]. It neither
//! allocates nor copies a frame, reads no clock and does no I/O. `docs/life-of-a-packet.md` tells where what is counted,
//! `docs/mapping.md` what the answers have to be.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod acl;
mod age;
pub mod counters;
mod egress;
pub mod entry;
mod flows;
mod forms;
pub mod group;
mod io;
mod l2;
mod l3;
mod mcast;
pub mod names;
pub mod police;
mod run;
pub mod shares;
pub mod state;
mod tag;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod trap;
mod warm;

pub use age::age;
pub use io::{CpuMeta, Event, Sink};
pub use names::{DropReason, Stage};
pub use state::State;
pub use tandem_packet::{Buffer, Frame, Mac, Offload, Tag};
pub use warm::{Ahead, Hint};

/// Takes one frame that came in on `ingress` (from 1) at `now_ns` (monotonic) through the pipeline. Afterwards the
/// frame's bytes are whatever the last answer made of them.
pub fn process<S: Sink>(
    state: &mut State,
    frame: &mut Frame<'_>,
    ingress: u16,
    now_ns: u64,
    sink: &mut S,
) {
    run::process(state, frame, ingress, now_ns, sink, Hint::default());
}

/// The same for a frame that [`Ahead`] has seen.
pub fn process_seen<S: Sink>(
    state: &mut State,
    frame: &mut Frame<'_>,
    ingress: u16,
    now_ns: u64,
    sink: &mut S,
    hint: Hint,
) {
    run::process(state, frame, ingress, now_ns, sink, hint);
}

/// Sends a frame of the CPU out of `port` (or a member of that group) as it is: counted, nothing else. False: no such port, or it is down.
pub fn transmit<S: Sink>(state: &mut State, frame: &Frame<'_>, port: u16, sink: &mut S) -> bool {
    if !state.port(port).is_some_and(state::Port::is_up) {
        return false;
    }
    let Some(port) = state.member_for(port, frame.bytes()) else {
        return false;
    };
    if !S::DRY {
        egress::count_tx(state, frame, port);
    }
    sink.tx(port, frame);
    true
}

//! What comes out of the pipeline.

use crate::names::Stage;
use tandem_packet::{Frame, Mac, Tag};

/// What goes with a packet to the CPU: the fields of `struct tnd_rx` that the pipeline knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuMeta {
    /// Ingress port, from 1.
    pub port: u16,
    /// `TND_TRAP_*`.
    pub reason: u16,
    /// `TND_TC_*` of the reason.
    pub class: u16,
    /// `TND_RX_*`.
    pub flags: u16,
    /// Forwarding domain, 0 = none.
    pub fid: u16,
    /// The frame's outer tag, which is also in the frame.
    pub tag: Option<Tag>,
    /// The `now_ns` of the call.
    pub time_ns: u64,
}

/// What the driver is told about the FDB. The caller numbers events; one comes before the packet that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// New address: `TND_EV_LEARN`.
    Learn {
        /// Forwarding domain.
        fid: u16,
        /// Address.
        mac: Mac,
        /// Where it is.
        port: u16,
    },
    /// `TND_EV_MOVE`
    Move {
        /// Forwarding domain.
        fid: u16,
        /// Address.
        mac: Mac,
        /// Where it is now.
        port: u16,
        /// Where it was.
        old_port: u16,
    },
    /// Not seen for the ageing time, removed: `TND_EV_AGE`.
    Age {
        /// Forwarding domain.
        fid: u16,
        /// Address.
        mac: Mac,
        /// Where it was.
        port: u16,
    },
}

/// Where the pipeline's answers go. Frames are only lent: whoever keeps one copies it.
pub trait Sink {
    /// Call [`Sink::trace`]? False costs nothing.
    const TRACE: bool = false;
    /// Only look: no learning, no counters, no tokens taken, no activity bits.
    const DRY: bool = false;

    /// Send `frame` out of `port` (a front-panel port that is up).
    fn tx(&mut self, port: u16, frame: &Frame<'_>);
    /// Give `frame`, as it came in, to the CPU.
    fn cpu(&mut self, meta: CpuMeta, frame: &Frame<'_>);
    /// Tell the driver.
    fn event(&mut self, event: Event);
    /// One line of a trace.
    fn trace(&mut self, _stage: Stage, _text: std::fmt::Arguments<'_>) {}
}

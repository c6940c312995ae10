//! Counters: plain numbers, written by the pipeline alone.

use crate::names::{DropReason, Stage};
use crate::trap::REASONS;
use tandem_packet::ether;
use tandem_packet::segment::Wire;

/// One direction of a port. A super-frame counts as the packets it is on the wire.
///
/// Packets and bytes are apart: side by side they are added as one vector, loaded from where two words were stored just
/// before, and such a load waits until every earlier store is done, cache misses included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Direction {
    /// Packets.
    pub packets: u64,
    /// Packets to one station.
    pub unicast: u64,
    /// Packets to a group other than broadcast.
    pub multicast: u64,
    /// Packets to ff:ff:ff:ff:ff:ff.
    pub broadcast: u64,
    /// Bytes without FCS.
    pub bytes: u64,
}

impl Direction {
    #[inline]
    pub(crate) fn count(&mut self, frame: &[u8], wire: Wire) {
        self.packets += wire.packets;
        self.bytes += wire.bytes;
        match frame.first_chunk::<6>() {
            Some(dst) if ether::is_group(dst) => {
                if *dst == ether::BROADCAST {
                    self.broadcast += wire.packets;
                } else {
                    self.multicast += wire.packets;
                }
            }
            _ => self.unicast += wire.packets,
        }
    }
}

/// One port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortCounters {
    /// Came in, dropped ones included.
    pub rx: Direction,
    /// Went out.
    pub tx: Direction,
    /// Came in here and were dropped, by [`DropReason`] (index).
    pub drops: [u64; DropReason::COUNT],
    /// Came in here and went to the CPU instead of being forwarded.
    pub trapped: u64,
    /// Came in here, were forwarded, and the CPU got a copy.
    pub copied: u64,
    /// Came in here and were bridged or flooded.
    pub l2_forwarded: u64,
    /// Came in here and were routed.
    pub l3_forwarded: u64,
}

impl Default for PortCounters {
    fn default() -> Self {
        PortCounters {
            rx: Direction::default(),
            tx: Direction::default(),
            drops: [0; DropReason::COUNT],
            trapped: 0,
            copied: 0,
            l2_forwarded: 0,
            l3_forwarded: 0,
        }
    }
}

/// One trap reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrapCounters {
    /// Packets handed to the CPU queue.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that the reason's policer dropped.
    pub policed: u64,
}

/// The FDB's life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LearnCounters {
    /// New entries.
    pub learned: u64,
    /// Entries that moved to another port.
    pub moved: u64,
    /// Addresses not learned because the table was full.
    pub full: u64,
    /// Entries that aged out.
    pub aged: u64,
}

/// Replication.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FloodCounters {
    /// Frames flooded.
    pub frames: u64,
    /// Frames sent for them. None of these is a copy of the payload.
    pub sent: u64,
    /// Tags pushed, removed or rewritten for them.
    pub tag_changes: u64,
    /// The most that one frame needed.
    pub most_tag_changes: u64,
    /// What a bridge over VLAN interfaces would have changed for them: it takes each tag off as a frame comes in, and puts
    /// one on for each port that wants one.
    pub stacked_tag_changes: u64,
}

impl FloodCounters {
    /// One frame, so often sent, with so many changes of its tag, where VLAN interfaces would have needed `stacked`.
    pub(crate) fn count(&mut self, sent: u64, changes: u64, stacked: u64) {
        self.frames += 1;
        self.stacked_tag_changes += stacked;
        self.sent += sent;
        self.tag_changes += changes;
        self.most_tag_changes = self.most_tag_changes.max(changes);
    }
}

/// All counters of the pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    /// By port number; index 0 counts frames of ports that do not exist.
    pub ports: Vec<PortCounters>,
    /// Frames that entered a stage, by [`Stage`] (index).
    pub stages: [u64; Stage::COUNT],
    /// Packets dropped, by [`DropReason`] (index).
    pub drops: [u64; DropReason::COUNT],
    /// By `TND_TRAP_*`.
    pub traps: [TrapCounters; REASONS],
    /// Learning and ageing.
    pub learn: LearnCounters,
    /// Flooding.
    pub flood: FloodCounters,
    /// Tags pushed, removed or rewritten, whatever for.
    pub tag_changes: u64,
}

impl Counters {
    /// Zeroes for ports 1..=`ports`.
    pub fn new(ports: u16) -> Counters {
        Counters {
            ports: vec![PortCounters::default(); usize::from(ports) + 1],
            stages: [0; Stage::COUNT],
            drops: [0; DropReason::COUNT],
            traps: [TrapCounters::default(); REASONS],
            learn: LearnCounters::default(),
            flood: FloodCounters::default(),
            tag_changes: 0,
        }
    }

    /// One port's counters.
    pub fn port(&self, port: u16) -> Option<&PortCounters> {
        self.ports.get(usize::from(port))
    }

    #[inline]
    pub(crate) fn stage(&mut self, stage: Stage) {
        if let Some(c) = self.stages.get_mut(stage as usize) {
            *c += 1;
        }
    }

    #[inline]
    pub(crate) fn port_mut(&mut self, port: u16) -> Option<&mut PortCounters> {
        self.ports.get_mut(usize::from(port))
    }

    #[inline]
    pub(crate) fn drop(&mut self, port: u16, reason: DropReason, packets: u64) {
        if let Some(c) = self.drops.get_mut(reason as usize) {
            *c += packets;
        }
        let port = usize::from(port);
        let at = if port < self.ports.len() { port } else { 0 };
        if let Some(c) = self
            .ports
            .get_mut(at)
            .and_then(|p| p.drops.get_mut(reason as usize))
        {
            *c += packets;
        }
    }
}

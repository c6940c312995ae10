//! What is counted.

/// One class of one port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets that left by the cable (segments of a super-frame count each).
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// Packets of these that had to wait.
    pub queued: u64,
    /// Packets lost because a queue, or the buffer, was full.
    pub tail_drops: u64,
    /// Their bytes.
    pub tail_drop_bytes: u64,
    /// Bytes that wait now, on both sides of the crossbar.
    pub depth: u64,
    /// Most bytes that ever waited.
    pub watermark: u64,
}

impl QueueStats {
    pub(crate) fn deepen(&mut self, bytes: u64) {
        self.depth += bytes;
        self.watermark = self.watermark.max(self.depth);
    }
}

/// The crossbar and the buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FabricStats {
    /// Frames that crossed for one port.
    pub unicast: u64,
    /// Frames that crossed for several ports of a slice.
    pub multicast: u64,
    /// Places in egress queues that these took: replication at the egress slice.
    pub replicas: u64,
    /// Rounds of arbitration in which something crossed.
    pub rounds: u64,
    /// Frame bytes in the buffer.
    pub buffered: u64,
    /// Most there ever were.
    pub watermark: u64,
}

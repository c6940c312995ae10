// SPDX-License-Identifier: Apache-2.0
//! What a history's frames met in the chip, in numbers.

/// What became of frames that the chip was shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub trapped: u64,
    pub sent: u64,
    pub dropped: u64,
    /// Sent while sources were asked for.
    pub asked: u64,
    /// Sent while there were flows of several tables.
    pub chained: u64,
    /// Sent with another tag than it came with, or in two forms.
    pub forms: u64,
    /// Sent with something written by what classifies.
    pub written: u64,
    /// Flows that were idle.
    pub ended: u64,
    /// Counts of groups and buckets that are known, of packets that the chip answered.
    pub counted: u64,
    /// Numbers of flows that are known, and not zero, at a history's end.
    pub told: u64,
    /// Counted while writes were under way.
    pub between: u64,
    /// Sent or dropped while a flow goes through a group that is the chip's.
    pub grouped: u64,
    /// How often all numbers were looked at while it answered nothing.
    pub silent: u64,
    /// And between its first answer and the read behind that.
    pub heard: u64,
    /// How often flows' traffic, as measured, wrote something.
    pub traded: u64,
}

impl Seen {
    pub fn answered(&self) -> u64 {
        self.sent + self.dropped
    }

    pub fn add(&mut self, other: &Seen) {
        self.trapped += other.trapped;
        self.sent += other.sent;
        self.dropped += other.dropped;
        self.asked += other.asked;
        self.chained += other.chained;
        self.ended += other.ended;
        self.forms += other.forms;
        self.written += other.written;
        self.counted += other.counted;
        self.grouped += other.grouped;
        self.between += other.between;
        self.silent += other.silent;
        self.told += other.told;
        self.heard += other.heard;
        self.traded += other.traded;
    }
}

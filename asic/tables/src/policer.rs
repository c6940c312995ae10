//! Policers: a token bucket each, of packets or of bytes, and what it has let pass.

use crate::bucket::Bucket;

/// What a token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A packet.
    Packets,
    /// A byte.
    Bytes,
}

/// One policer.
#[derive(Debug, Clone)]
pub struct Policer {
    unit: Unit,
    /// Tokens.
    pub bucket: Bucket,
    /// Packets that passed.
    pub passed: u64,
    /// Packets that it dropped.
    pub dropped: u64,
}

impl Policer {
    /// With a full bucket. `old`: the one that it replaces, whose counts it keeps.
    #[must_use]
    pub fn new(unit: Unit, rate: u64, burst: u64, old: Option<&Policer>) -> Policer {
        Policer {
            unit,
            bucket: Bucket::new(rate, burst),
            passed: old.map_or(0, |o| o.passed),
            dropped: old.map_or(0, |o| o.dropped),
        }
    }

    fn tokens(&self, packets: u64, bytes: u64) -> u64 {
        match self.unit {
            Unit::Packets => packets,
            Unit::Bytes => bytes,
        }
    }

    /// Would it let these packets, of so many bytes together, pass?
    #[must_use]
    pub fn admits(&self, packets: u64, bytes: u64, now_ns: u64) -> bool {
        self.bucket.admits(self.tokens(packets, bytes), now_ns)
    }

    /// Charges what passed, or counts what did not.
    pub fn charge(&mut self, packets: u64, bytes: u64, now_ns: u64, passed: bool) {
        if passed {
            let tokens = self.tokens(packets, bytes);
            self.bucket.charge(tokens, now_ns);
            self.passed += packets;
        } else {
            self.dropped += packets;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_counts() {
        let mut bytes = Policer::new(Unit::Bytes, 1000, 1000, None);
        assert!(bytes.admits(1, 1000, 0));
        bytes.charge(2, 1000, 0, true);
        assert!(!bytes.admits(1, 1, 0));
        bytes.charge(3, 1, 0, false);
        let mut packets = Policer::new(Unit::Packets, 10, 2, Some(&bytes));
        assert_eq!((packets.passed, packets.dropped), (2, 3));
        assert!(packets.admits(2, 9000, 0));
        packets.charge(2, 9000, 0, true);
        assert!(!packets.admits(1, 60, 99_999_999) && packets.admits(1, 60, 100_000_000));
    }
}

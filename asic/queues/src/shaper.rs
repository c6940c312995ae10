//! A port's speed: how long the wire is busy with what has been sent.

use tandem_tables::bucket::Bucket;

/// Preamble, start delimiter, frame check sequence and inter-packet gap: what a frame takes on the wire beside its
/// bytes (IEEE 802.3 §3.1.1, §4.4.2).
const OVERHEAD: u64 = 24;
/// Frames may leave so much ahead of time, half a millisecond's bits per Mbit/s: a daemon that wakes up late catches up.
const SLACK: u64 = 500;

/// One port's wire: a bucket of bits that a frame may overdraw. The next one waits until that is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shaper {
    mbps: u32,
    bits: Bucket,
}

impl Shaper {
    /// A wire of so many Mbit/s; 0: without limit.
    pub fn new(mbps: u32) -> Self {
        let speed = u64::from(mbps);
        Shaper {
            mbps,
            bits: Bucket::new(speed * 1_000_000, speed * SLACK),
        }
    }

    /// Its speed.
    pub fn mbps(&self) -> u32 {
        self.mbps
    }

    /// May a frame start now?
    #[inline]
    pub fn ready(&self, now_ns: u64) -> bool {
        self.bits.admits(0, now_ns)
    }

    /// When the next frame may start.
    pub fn free_at_ns(&self) -> u64 {
        self.bits.free_at_ns()
    }

    /// Sends `packets` of `bytes` together.
    #[inline]
    pub fn send(&mut self, packets: u64, bytes: u64, now_ns: u64) {
        let bits = (bytes + packets * OVERHEAD) * 8;
        self.bits.overdraw(bits, u64::MAX, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_carries_its_speed_and_no_more() {
        // 10 Mbit/s: 1,226 bytes with overhead 1,250 take 1 ms
        let mut s = Shaper::new(10);
        let mut sent = 0u64;
        for now in (1_000_000_000..2_000_000_000u64).step_by(100_000) {
            while s.ready(now) {
                s.send(1, 1226, now);
                sent += 1;
            }
        }
        assert!((1000..=1001).contains(&sent), "{sent} frames in a second");
        // a super-frame takes as long as its segments
        let mut a = Shaper::new(100);
        let mut b = Shaper::new(100);
        a.send(3, 4500, 1_000_000_000);
        for _ in 0..3 {
            b.send(1, 1500, 1_000_000_000);
        }
        assert_eq!(a, b);
        let mut none = Shaper::new(0);
        none.send(1000, 1_500_000, 5);
        assert!(none.ready(5));
    }
}

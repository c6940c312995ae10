//! A port's speed: how long the wire is busy with what has been sent.

/// Preamble, start delimiter, frame check sequence and inter-packet gap: what a frame takes on the wire beside its
/// bytes (IEEE 802.3 §3.1.1, §4.4.2).
const OVERHEAD: u64 = 24;
/// Frames may leave so much ahead of time: a daemon that wakes up late catches up.
const SLACK_PS: u128 = 500_000_000;
const PS: u128 = 1000;

/// One port's wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shaper {
    mbps: u32,
    /// In picoseconds: at 100 Gbit/s a small frame takes 6.72 ns.
    free_at_ps: u128,
}

impl Shaper {
    /// A wire of so many Mbit/s; 0: without limit.
    pub fn new(mbps: u32) -> Self {
        Shaper {
            mbps,
            free_at_ps: 0,
        }
    }

    /// Its speed.
    pub fn mbps(&self) -> u32 {
        self.mbps
    }

    /// May a frame start now?
    #[inline]
    pub fn ready(&self, now_ns: u64) -> bool {
        self.free_at_ps <= u128::from(now_ns) * PS
    }

    /// When the next frame may start.
    pub fn free_at_ns(&self) -> u64 {
        u64::try_from(self.free_at_ps.div_ceil(PS)).unwrap_or(u64::MAX)
    }

    /// Sends `packets` of `bytes` together.
    #[inline]
    pub fn send(&mut self, packets: u64, bytes: u64, now_ns: u64) {
        if self.mbps == 0 {
            return;
        }
        let bits = u128::from(bytes + packets * OVERHEAD) * 8;
        let from = self
            .free_at_ps
            .max((u128::from(now_ns) * PS).saturating_sub(SLACK_PS));
        self.free_at_ps = from + bits * 1_000_000 / u128::from(self.mbps);
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

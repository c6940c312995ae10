//! Token buckets.

/// Time zero of a bucket: far enough from 0 that a burst reaches back before the clock's start.
const BIAS: u128 = 1 << 80;
/// Largest rate and burst: 17 Tbyte, beyond what any port does, and small enough that no product overflows.
pub const MAX: u64 = 1 << 44;
/// Nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;

/// A token bucket, kept as the time at which it would be empty (virtual scheduling, ITU-T I.371 annex A), in units of
/// 1 / (rate · 10⁹) s: exact for every rate, one number, no timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    rate: u64,
    burst: u64,
    empty_at: u128,
}

impl Bucket {
    /// A full bucket of `burst` tokens that gets `rate` a second. Rate 0 lets everything pass.
    pub fn new(rate: u64, burst: u64) -> Bucket {
        Bucket {
            rate: rate.min(MAX),
            burst: burst.clamp(1, MAX),
            empty_at: 0,
        }
    }

    /// Tokens per second.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// Tokens of a full bucket.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    fn next(&self, tokens: u64, now_ns: u64) -> (u128, u128) {
        let now = BIAS + u128::from(now_ns) * u128::from(self.rate);
        let full = now.saturating_sub(u128::from(self.burst) * SECOND);
        // what is longer than a full bucket must not starve for ever
        let wanted = u128::from(tokens.min(self.burst)) * SECOND;
        (self.empty_at.max(full) + wanted, now)
    }

    /// Are there so many tokens?
    #[inline]
    pub fn admits(&self, tokens: u64, now_ns: u64) -> bool {
        let (next, now) = self.next(tokens, now_ns);
        self.rate == 0 || next <= now
    }

    /// Takes tokens that [`Bucket::admits`] has found.
    #[inline]
    pub fn charge(&mut self, tokens: u64, now_ns: u64) {
        if self.rate > 0 {
            self.empty_at = self.next(tokens, now_ns).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_then_rate() {
        // 1,000 bytes/s, 1,500 at once
        let mut b = Bucket::new(1000, 1500);
        let mut now = 0;
        assert!(b.admits(1500, now));
        b.charge(1500, now);
        assert!(!b.admits(1, now));
        now += 999_999;
        assert!(!b.admits(1, now));
        now += 1;
        assert!(b.admits(1, now) && !b.admits(2, now));
        let mut passed = 0;
        for _ in 0..10_000 {
            now += 10_000_000;
            if b.admits(100, now) {
                b.charge(100, now);
                passed += 100;
            }
        }
        assert!((99_900..=101_500).contains(&passed), "{passed}");
        // longer than the bucket: passes when it is full
        now += 10_000_000_000;
        assert!(b.admits(9000, now));
        b.charge(9000, now);
        assert!(!b.admits(1, now));
    }

    #[test]
    fn no_rate_no_limit() {
        let b = Bucket::new(0, 0);
        assert!(b.admits(u64::MAX, u64::MAX));
        let mut b = Bucket::new(u64::MAX, u64::MAX);
        b.charge(u64::MAX, u64::MAX);
        assert_eq!((b.rate(), b.burst()), (MAX, MAX));
    }
}

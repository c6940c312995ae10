//! The token bucket: of policers, storm control, trap policers and their shares, and the shapers of ports.

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

    fn units(&self, now_ns: u64) -> u128 {
        BIAS + u128::from(now_ns) * u128::from(self.rate)
    }

    fn next(&self, tokens: u64, now_ns: u64) -> (u128, u128) {
        let now = self.units(now_ns);
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

    /// Takes tokens whether they are there or not: the bucket gets into debt, by no more than `most` tokens.
    #[inline]
    pub fn overdraw(&mut self, tokens: u64, most: u64, now_ns: u64) {
        if self.rate > 0 {
            let (there, now) = self.next(0, now_ns);
            let next = there + u128::from(tokens.min(MAX)) * SECOND;
            self.empty_at = next.min(now + u128::from(most.min(MAX)) * SECOND);
        }
    }

    /// Another rate and burst; what is there, or owed, stays, as far as there is room.
    pub fn resize(&mut self, rate: u64, burst: u64, now_ns: u64) {
        let mut new = Bucket::new(rate, burst);
        // units are tokens for whatever rate
        let (there, now) = (self.next(0, now_ns).0, self.units(now_ns));
        new.empty_at = (new.units(now_ns) + there).saturating_sub(now);
        *self = new;
    }

    /// When a debt is paid.
    pub fn free_at_ns(&self) -> u64 {
        let owed = self.empty_at.saturating_sub(BIAS);
        let at = owed.div_ceil(u128::from(self.rate.max(1)));
        u64::try_from(at).unwrap_or(u64::MAX)
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
    fn debts_are_paid_before_anything_passes() {
        // 10 a second, 5 at once
        let mut b = Bucket::new(10, 5);
        let now = 1_000_000_000;
        b.overdraw(7, 100, now);
        assert!(!b.admits(0, now) && b.free_at_ns() == now + 200_000_000);
        assert!(b.admits(0, now + 200_000_000) && !b.admits(1, now + 299_999_999));
        assert!(b.admits(1, now + 300_000_000));
        b.overdraw(1000, 3, now);
        assert_eq!(b.free_at_ns(), now + 300_000_000);
        let mut none = Bucket::new(0, 1);
        none.overdraw(MAX, MAX, now);
        assert!(none.admits(1, now) && none.free_at_ns() == 0);
    }

    #[test]
    fn another_size_keeps_what_is_there() {
        let now = 5_000_000_000;
        let mut b = Bucket::new(10, 8);
        b.charge(2, now);
        b.resize(1000, 20, now);
        assert!(b.admits(6, now) && !b.admits(7, now));
        b.resize(1, 4, now);
        assert!(b.admits(4, now));
        b.overdraw(6, 9, now);
        b.resize(4, 4, now);
        assert_eq!(b.free_at_ns(), now + 500_000_000);
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

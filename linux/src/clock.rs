//! The daemons' only clock: what lies below them takes the time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds, as every other process has it.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    let part = |n: i64| u64::try_from(n).unwrap_or_default();
    part(t.tv_sec)
        .saturating_mul(1_000_000_000)
        .saturating_add(part(t.tv_nsec))
}

/// Nanoseconds from 1970 to the zero of [`now_ns`].
#[must_use]
pub fn epoch_ns() -> u64 {
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
    wall.saturating_sub(now_ns())
}

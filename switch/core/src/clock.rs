//! The only clock of the daemon: everything below takes the time as an argument.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds since the first call, monotonic. Never zero.
pub fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos())
        .unwrap_or(u64::MAX)
        .saturating_add(1)
}

/// CLOCK_MONOTONIC in nanoseconds, as other processes have it: to be shown, not to count with.
pub fn shared_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |n: i64| u64::try_from(n).unwrap_or_default();
    part(t.tv_sec)
        .saturating_mul(SECOND_NS)
        .saturating_add(part(t.tv_nsec))
}

/// A second.
pub const SECOND_NS: u64 = 1_000_000_000;

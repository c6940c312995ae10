//! The daemon's only clock: everything below takes the time as an argument.

/// CLOCK_MONOTONIC in nanoseconds, as every other process has it.
#[must_use]
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |n: i64| u64::try_from(n).unwrap_or_default();
    part(t.tv_sec)
        .saturating_mul(1_000_000_000)
        .saturating_add(part(t.tv_nsec))
}

// SPDX-License-Identifier: Apache-2.0
//! The daemon's only clock: everything below takes the time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

/// CLOCK_MONOTONIC in nanoseconds, as every other process has it.
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |n: i64| u64::try_from(n).unwrap_or_default();
    part(t.tv_sec)
        .saturating_mul(1_000_000_000)
        .saturating_add(part(t.tv_nsec))
}

/// Nanoseconds from 1970 to the zero of [`now_ns`].
pub fn epoch_ns() -> u64 {
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
    wall.saturating_sub(now_ns())
}

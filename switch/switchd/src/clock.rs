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

/// A second.
pub const SECOND_NS: u64 = 1_000_000_000;

// SPDX-License-Identifier: Apache-2.0
//! The state machines of clause 17, each in a file of its own.
//!
//! `begin` is what BEGIN does to a port; `step` makes one transition if there is one that can be made, and says whether.
//! The bridge asks all machines until none has one ([`crate::Bridge`]'s `run`).

pub(crate) mod edge;
pub(crate) mod information;
pub(crate) mod migration;
pub(crate) mod receive;
pub(crate) mod selection;
pub(crate) mod state;
pub(crate) mod timers;
pub(crate) mod topology;
pub(crate) mod transition;
pub(crate) mod transmit;

#[cfg(test)]
mod tests;

use crate::config::Version;
use crate::port::Port;
use crate::times::seconds;

/// `MigrateTime` (17.20.9, table 17-1), seconds.
pub(crate) const MIGRATE_TIME: u16 = 3;

/// `FwdDelay` (17.20.6).
pub(crate) fn fwd_delay(p: &Port) -> u16 {
    seconds(p.designated_times.forward_delay)
}

/// `HelloTime` (17.20.7), never 0: a timer that starts anew with it would be over at once.
pub(crate) fn hello_time(p: &Port) -> u16 {
    seconds(p.designated_times.hello).max(1)
}

/// `MaxAge` (17.20.8).
pub(crate) fn max_age(p: &Port) -> u16 {
    seconds(p.designated_times.max_age)
}

/// `forwardDelay` (17.20.5): a port that speaks RSTP needs no longer than its neighbours' word takes.
pub(crate) fn forward_delay(p: &Port) -> u16 {
    match p.send_rstp {
        true => hello_time(p),
        false => fwd_delay(p),
    }
}

/// `EdgeDelay` (17.20.4).
pub(crate) fn edge_delay(p: &Port) -> u16 {
    match p.point_to_point() {
        true => MIGRATE_TIME,
        false => max_age(p),
    }
}

/// `rstpVersion` (17.20.11).
pub(crate) fn rstp_version(version: Version) -> bool {
    version == Version::Rstp
}

//! The highest rate at which nothing is lost (RFC 2544, section 26.1: throughput), by bisection.
//!
//! ```text
//!   0 ──────────── passed ──── try ──── lost ──────── a bit more than it takes of a blast
//!                    └───────── halves each time ──────┘
//! ```

use crate::blast::{Trial, Under};
use anyhow::Result;

/// Seconds of a trial. RFC 2544 has 60; more than one in a hundred of what fits a search of seven steps here.
const SECONDS: f64 = 1.0;
/// Halvings: to one part in 64 of where it begins.
const STEPS: u32 = 6;
/// Where it begins, above what arrives of a blast.
const ABOVE: f64 = 1.15;
/// A trial passes with so much lost: other processes take a processor away for longer than any of the queues last.
pub const TOLERANCE: f64 = 0.001;
/// A lost trial is repeated so often.
const AGAIN: u32 = 1;
/// A sender that reaches less of the rate it was asked for is the limit itself.
const KEPT: f64 = 0.97;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Million frames per second. If something was lost at every rate that was tried: the lowest of these.
    pub mpps: f64,
    /// The sender didn't keep a higher rate (its own limit, or a machine that is busy): it may be more.
    pub sender: bool,
}

/// Of a device that lets `blast` million frames per second arrive when it is offered too many.
pub fn find(under: &Under, frame: &[u8], blast: f64) -> Result<Found> {
    under.trials(frame, |trial| {
        search(blast * ABOVE, |mpps| trial(mpps, SECONDS))
    })
}

fn search(top: f64, mut trial: impl FnMut(f64) -> Result<Trial>) -> Result<Found> {
    let (mut low, mut high) = (0.0, top);
    let mut found = Found {
        mpps: 0.0,
        sender: false,
    };
    for _ in 0..STEPS {
        let asked = (low + high) / 2.0;
        let mut best = trial(asked)?;
        for _ in 0..AGAIN {
            if best.lost > TOLERANCE || best.mpps < asked * KEPT {
                let other = trial(asked)?;
                if other.lost <= TOLERANCE && (best.lost > TOLERANCE || other.mpps > best.mpps) {
                    best = other;
                }
            }
        }
        if best.lost > TOLERANCE {
            high = asked;
            continue;
        }
        low = asked;
        if best.mpps >= found.mpps {
            found = Found {
                mpps: best.mpps,
                sender: best.mpps < asked * KEPT,
            };
        }
        if found.sender {
            // It sends no faster if it is asked for more
            break;
        }
    }
    if low == 0.0 {
        found.mpps = high;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that takes so much, with a sender that can send so much.
    fn device(takes: f64, sends: f64) -> Result<Found> {
        search(1.0, |asked| {
            let mpps = asked.min(sends);
            let lost = (1.0 - takes / mpps).max(0.0);
            Ok(Trial { mpps, lost })
        })
    }

    #[test]
    fn it_finds_what_a_device_takes() -> Result<()> {
        for takes in [0.1, 0.5, 0.77] {
            let found = device(takes, 2.0)?;
            let (least, most) = (takes - 1.0 / 60.0, takes * 1.001 + 1e-9);
            assert!(!found.sender && (least..most).contains(&found.mpps));
        }
        Ok(())
    }

    #[test]
    fn a_sender_that_is_too_slow_is_told() -> Result<()> {
        let found = device(0.9, 0.5)?;
        assert!(found.sender && found.mpps == 0.5, "{found:?}");
        // one that loses at any rate
        assert!(device(0.0, 2.0)?.mpps < 0.02);
        // below its limit it is none
        assert!(!device(0.4, 0.5)?.sender);
        Ok(())
    }

    #[test]
    fn one_loss_among_many_trials_is_not_held_against_it() -> Result<()> {
        let mut n = 0;
        let found = search(1.0, |mpps| {
            n += 1;
            let lost = if mpps > 0.6 || n == 2 { 0.5 } else { 0.0 };
            Ok(Trial { mpps, lost })
        })?;
        assert!(found.mpps > 0.58);
        Ok(())
    }
}

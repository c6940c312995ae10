//! Fault plans: the chip misbehaves as told. Given at the start or live, over the management API.
//!
//! A fault matches commands by op, class and pool, lets `after - 1` of them pass and then fires `count` times.

use crate::pools::PoolId;
use serde::{Deserialize, Serialize};

/// Most faults that a plan holds.
pub const MAX_FAULTS: usize = 64;

/// What happens to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// Completes with `TND_ST_FAULT` (`TND_ST_TABLE_FULL` if a pool is named); nothing is written.
    Fail,
    /// Takes so much longer, in ns.
    Delay(u64),
    /// Is executed, but the completion never comes.
    DropCompletion,
    /// Is executed once, and its completion comes twice.
    DuplicateCompletion,
    /// The chip resets itself: tables and accounting are empty, the driver is detached.
    Reset,
}

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What happens.
    pub action: FaultAction,
    /// Only commands with this `TND_OP_*`.
    #[serde(default)]
    pub op: Option<u16>,
    /// Only commands of this `TND_CLS_*`.
    #[serde(default)]
    pub cls: Option<u16>,
    /// Only creates that need slots of this pool (id of a SNAPSHOT).
    #[serde(default)]
    pub pool: Option<u16>,
    /// Fires with the nth match; 1 is the first.
    #[serde(default = "one")]
    pub after: u64,
    /// How often it fires; 0 = from then on always.
    #[serde(default = "one")]
    pub count: u64,
}

impl Fault {
    /// Of the next command, whichever that is.
    #[must_use]
    pub fn of(action: FaultAction) -> Fault {
        Fault {
            action,
            op: None,
            cls: None,
            pool: None,
            after: 1,
            count: 1,
        }
    }
}

fn one() -> u64 {
    1
}

/// All faults that are armed.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan {
    faults: Vec<(Fault, u64)>,
    fired: u64,
}

impl FaultPlan {
    /// Arms one more.
    ///
    /// # Errors
    /// One line when the plan is full.
    pub fn add(&mut self, fault: Fault) -> Result<(), String> {
        if self.faults.len() >= MAX_FAULTS {
            return Err(format!(
                "fault plan full (needs 1, free 0 of {MAX_FAULTS}): clear it first"
            ));
        }
        self.faults.push((fault, 0));
        Ok(())
    }

    /// Disarms all.
    pub fn clear(&mut self) {
        self.faults.clear();
    }

    /// Nothing is armed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// What is armed, with the matches so far.
    pub fn iter(&self) -> impl Iterator<Item = (&Fault, u64)> {
        self.faults.iter().map(|(f, n)| (f, *n))
    }

    /// How often a fault has fired.
    #[must_use]
    pub fn fired(&self) -> u64 {
        self.fired
    }

    /// The action for a command, if one fires. Every fault that matches counts it; the first that fires wins.
    pub(crate) fn check(&mut self, op: u16, cls: u16, pools: &[PoolId]) -> Option<Fault> {
        let mut out = None;
        for (f, seen) in &mut self.faults {
            let matches = f.op.is_none_or(|o| o == op)
                && f.cls.is_none_or(|c| c == cls)
                && f.pool.is_none_or(|p| pools.iter().any(|q| *q as u16 == p));
            if !matches {
                continue;
            }
            *seen += 1;
            let from = f.after.max(1);
            if *seen >= from && (f.count == 0 || *seen - from < f.count) && out.is_none() {
                out = Some(*f);
            }
        }
        self.fired += u64::from(out.is_some());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_match_fires_so_often() {
        let mut p = FaultPlan::default();
        p.add(Fault {
            action: FaultAction::Fail,
            op: Some(1),
            cls: None,
            pool: None,
            after: 2,
            count: 2,
        })
        .unwrap();
        let fires: Vec<bool> = [1, 2, 1, 1, 1]
            .iter()
            .map(|op| p.check(*op, 4, &[]).is_some())
            .collect();
        assert_eq!(fires, [false, false, true, true, false]);
        assert_eq!(p.fired(), 2);
    }

    #[test]
    fn the_plan_is_bounded() {
        let mut p = FaultPlan::default();
        let f = Fault {
            action: FaultAction::Reset,
            op: None,
            cls: None,
            pool: None,
            after: 1,
            count: 1,
        };
        for _ in 0..MAX_FAULTS {
            p.add(f).unwrap();
        }
        assert_eq!(
            p.add(f).unwrap_err(),
            "fault plan full (needs 1, free 0 of 64): clear it first"
        );
    }
}

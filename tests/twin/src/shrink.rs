//! Makes a failure small: while it still fails, whatever can go goes.
//!
//! A recording can't lose a command, as the kernel's later answers follow from it; but it can begin at any rest, end at any,
//! and two steps can become one. Probes and misfortunes can go one by one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chip::{Faults, Sizes};
use crate::kernel::Prepared;
use crate::play::{Failure, Shelf, Variant, play};
use crate::recording::{Recording, Step};

/// A failure that is kept: what was played, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What was seen, for people.
    #[serde(default)]
    pub what: String,
    /// How it is played.
    pub variant: Variant,
    /// What is played.
    pub recording: Recording,
}

struct Shrinker {
    kept: Kept,
    failure: Option<Failure>,
    shelf: Shelf,
}

impl Shrinker {
    /// Whether this fails as well; if so it is kept.
    fn fails(&mut self, recording: Recording, variant: Variant) -> bool {
        let prepared = Arc::new(Prepared::new(recording));
        let Err(failure) = play(&prepared, &variant, &mut self.shelf) else {
            return false;
        };
        let Some(prepared) = Arc::into_inner(prepared) else {
            return false;
        };
        self.kept = Kept {
            what: failure.to_string(),
            variant,
            recording: prepared.recording,
        };
        self.failure = Some(failure);
        true
    }

    fn recording(&mut self, change: impl FnOnce(&mut Recording)) -> bool {
        let mut recording = self.kept.recording.clone();
        change(&mut recording);
        recording != self.kept.recording && self.fails(recording, self.kept.variant.clone())
    }

    fn variant(&mut self, change: impl FnOnce(&mut Variant)) {
        let mut variant = self.kept.variant.clone();
        change(&mut variant);
        if variant != self.kept.variant {
            self.fails(self.kept.recording.clone(), variant);
        }
    }
}

/// The smallest that still fails, and how it does; what was given, if it did not fail this time.
#[must_use]
pub fn shrink(recording: &Recording, variant: &Variant) -> (Kept, Option<Failure>) {
    let mut s = Shrinker {
        kept: Kept {
            what: String::new(),
            variant: variant.clone(),
            recording: recording.clone(),
        },
        failure: None,
        shelf: Shelf::default(),
    };
    if !s.fails(recording.clone(), variant.clone()) {
        return (s.kept, None);
    }
    for _ in 0..2 {
        // nothing behind the failure matters
        if let Some(at) = s.failure.as_ref().map(|f| f.step) {
            s.recording(|r| r.steps.truncate(at + 1));
        }
        misfortunes(&mut s);
        probes(&mut s);
        steps(&mut s);
    }
    (s.kept, s.failure)
}

fn misfortunes(s: &mut Shrinker) {
    s.variant(|v| {
        *v = Variant {
            seed: v.seed,
            ..Variant::plain()
        };
    });
    s.variant(|v| v.faults = Faults::default());
    s.variant(|v| v.faults.late = 0);
    s.variant(|v| v.faults.lost = 0);
    s.variant(|v| v.faults.ignored = 0);
    s.variant(|v| v.faults.doubled = 0);
    s.variant(|v| v.faults.refused = 0);
    s.variant(|v| v.restarts[0] = 0);
    s.variant(|v| v.restarts[1] = 0);
    s.variant(|v| v.overflows = 0);
    s.variant(|v| v.behind = 1);
    s.variant(|v| v.ahead = 0);
    s.variant(|v| v.burst = usize::MAX);
    s.variant(|v| v.turns = 0);
    s.variant(|v| v.sizes = Sizes::BIG);
    s.variant(|v| v.sizes = Sizes::TINY);
}

fn probes(s: &mut Shrinker) {
    let Some(probe) = s.failure.as_ref().and_then(|f| f.probe) else {
        s.recording(|r| keep(r, &[]));
        return;
    };
    if s.recording(|r| keep(r, &[probe])) {
        return;
    }
    // by halves, then what is left one by one
    let mut size = s.kept.recording.probes.len() / 2;
    while size > 0 {
        let mut from = 0;
        while from < s.kept.recording.probes.len() {
            let all = 0..s.kept.recording.probes.len();
            let left: Vec<usize> = all.filter(|n| !(from..from + size).contains(n)).collect();
            if !s.recording(|r| keep(r, &left)) {
                from += size;
            }
        }
        size /= 2;
    }
}

/// Keeps these probes only.
fn keep(r: &mut Recording, probes: &[usize]) {
    let old = std::mem::take(&mut r.probes);
    r.probes = probes.iter().filter_map(|p| old.get(*p).cloned()).collect();
    for step in &mut r.steps {
        let old = std::mem::take(&mut step.answers);
        step.answers = probes.iter().filter_map(|p| old.get(*p).cloned()).collect();
    }
}

fn steps(s: &mut Shrinker) {
    // begin as late as possible
    let mut jump = s.kept.recording.steps.len() / 2;
    while jump > 0 {
        while s.kept.recording.steps.len() > jump + 1 && s.recording(|r| begin_at(r, jump)) {}
        jump /= 2;
    }
    // two rests less one
    let mut at = 1;
    while at + 1 < s.kept.recording.steps.len() {
        if !s.recording(|r| join(r, at)) {
            at += 1;
        }
    }
}

/// The first rest is that of step `at`.
fn begin_at(r: &mut Recording, at: usize) {
    let mut files = std::collections::BTreeMap::new();
    for step in r.steps.drain(..at) {
        files.extend(step.files);
    }
    if let Some(first) = r.steps.first_mut() {
        files.append(&mut first.files);
        first.files = files;
        first.command = None;
        first.told.clear();
    }
}

/// Step `at` and the one behind it become one: its rest is not looked at.
fn join(r: &mut Recording, at: usize) {
    if at + 1 >= r.steps.len() {
        return;
    }
    let first: Step = r.steps.remove(at);
    if let Some(second) = r.steps.get_mut(at) {
        let mut told = first.told;
        told.append(&mut second.told);
        second.told = told;
        let mut files = first.files;
        files.append(&mut second.files);
        second.files = files;
        if let (Some(a), Some(b)) = (first.command, &mut second.command) {
            b.text = format!("{}; {}", a.text, b.text);
        }
    }
}

//! Prefixes that change at once: by one event, or by one dump, which says what has changed since the last one.
//!
//! ```text
//!   the kernel         0.0.0.0/0 via A,  10.3.0.0/24 on swp3     swp3 goes down:   0.0.0.0/0 via B
//!   the chip           the /24 goes first: what was for it goes by A for a moment, which the kernel never did
//! ```
//!
//! So of what changes at once prefixes that are new are written first, the longest ones before those that cover them; then what is
//! another one or goes, the widest ones first. Whatever is written by then, a packet's answer is the one of before or the one of
//! after: a new prefix is not there before all new ones below it, and what goes or changes leaves its packets to the new ones, or to
//! something wider which is as it shall be. In which order a dump, an index or a list of users has them does not matter.
//!
//! What a dump changes waits for its end, with all that is queued meanwhile: of what is told nobody can tell which the dump has, and
//! what is not held would be written ahead of it. That is so for [`HELD`] prefixes and for [`HOLD_NS`] at most: a dump may be given up.

use crate::Store;
use crate::hw::Ref;
use crate::model::{KindSet, SourceId};
use std::collections::BTreeMap;

/// So many changed prefixes wait for the end of a dump. With more each further load of them is written by itself.
pub(crate) const HELD: usize = 1 << 16;
/// And so long.
pub(crate) const HOLD_NS: u64 = 5_000_000_000;

/// Prefixes in the order in which they are written. New ones first, of them the longest; then the widest.
#[derive(Debug, Default)]
struct Ordered {
    all: BTreeMap<(bool, u8), Vec<Ref>>,
    len: usize,
}

impl Ordered {
    fn push(&mut self, r: Ref, place: (bool, u8)) {
        self.all.entry(place).or_default().push(r);
        self.len += 1;
    }

    fn append(&mut self, other: &mut Ordered) {
        self.len += std::mem::take(&mut other.len);
        for (place, mut refs) in std::mem::take(&mut other.all) {
            self.all.entry(place).or_default().append(&mut refs);
        }
    }
}

/// Prefixes that are queued together.
#[derive(Debug, Default)]
pub(crate) struct Together {
    /// Of the event that is being worked off, or of what is derived.
    now: Ordered,
    /// They are gathered.
    open: bool,
    /// What is derived was left over in its midst: what is derived next belongs to it.
    pub goes_on: bool,
    /// Whose event it is; none: it follows from several, or from an answer.
    source: Option<SourceId>,
    /// Of a dump that has not come to its end.
    held: Ordered,
    /// Since when, ns; 0: nothing is held.
    since: u64,
}

impl Together {
    /// Begins with an event, or with what follows from several or from an answer.
    pub fn begin(&mut self, source: Option<SourceId>) {
        self.open = true;
        self.source = source;
    }

    /// The same with an answer: what comes between two slices of something belongs to that, whosever it is.
    pub fn goes_on_or_begins(&mut self) {
        if !self.open {
            self.begin(None);
        }
    }

    /// Takes one in, `there` on the chip or not. False: it is one by itself, and nothing is held that it could pass.
    pub fn take(&mut self, r: Ref, len: u8, there: bool) -> bool {
        let place = match there {
            false => (false, u8::MAX - len),
            true => (true, len),
        };
        match (self.open, self.held.len) {
            (true, _) => self.now.push(r, place),
            (false, 0) => return false,
            _ => self.held.push(r, place),
        }
        true
    }

    pub fn clear(&mut self) {
        (self.now, self.held) = (Ordered::default(), Ordered::default());
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = &Ref> {
        let all = self.held.all.values().chain(self.now.all.values());
        all.flatten()
    }

    pub fn len(&self) -> usize {
        self.held.len + self.now.len
    }
}

impl Store {
    /// The event has been worked off: what it changed is queued, or waits for the end of a dump.
    pub(crate) fn together_ends(&mut self, now: u64) {
        let t = &mut self.together;
        t.open = false;
        let source = t.source.take();
        if t.is_empty() {
            return;
        }
        // of another source, or of an answer: behind what is held, if anything is
        let of_dump = source.is_none_or(|s| self.dumps(s));
        let dumped = self.synced && self.dump_runs() && (of_dump || self.together.held.len > 0);
        let t = &mut self.together;
        if t.held.len == 0 {
            t.since = now;
        }
        t.held.append(&mut t.now);
        let late = now.saturating_sub(t.since) >= HOLD_NS;
        if !dumped || t.held.len >= HELD || late {
            self.release_held();
        }
    }

    /// What a dump has changed waits no longer.
    fn release_held(&mut self) {
        let held = std::mem::take(&mut self.together.held);
        for refs in held.all.into_values() {
            self.route_queue.extend(refs);
        }
    }

    /// A dump of this source's routes runs.
    fn dumps(&self, source: SourceId) -> bool {
        let running = self.syncs.get(&source).and_then(|s| s.running);
        running.is_some_and(|k| k.contains(KindSet::ROUTE))
    }

    fn dump_runs(&self) -> bool {
        self.syncs.keys().any(|s| self.dumps(*s))
    }
}

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
//! What a dump changes waits for its end, with what is told of its source meanwhile: nobody can tell the one from the other. More
//! than [`HELD`] do not.

use crate::Store;
use crate::fib::{Fam, V4, V6};
use crate::hw::{Cls, Ref};
use crate::model::{KindSet, SourceId};
use std::cmp::Reverse;

/// So many changed prefixes wait for the end of a dump. With more each further load of them is written by itself.
pub(crate) const HELD: usize = 1 << 16;

/// Prefixes that are queued together.
#[derive(Debug, Default)]
pub(crate) struct Together {
    /// Of the event that is being worked off, or of what is derived.
    now: Vec<Ref>,
    /// They are gathered.
    open: bool,
    /// Whose event it is.
    source: Option<SourceId>,
    /// Of a dump that has not come to its end.
    held: Vec<Ref>,
}

impl Together {
    /// Begins with an event, or with what follows from several (`None`).
    pub fn begin(&mut self, source: Option<SourceId>) {
        self.open = true;
        self.source = source;
    }

    /// Takes one in. False: it is one by itself.
    pub fn take(&mut self, r: Ref) -> bool {
        if self.open {
            self.now.push(r);
        }
        self.open
    }

    pub fn clear(&mut self) {
        self.now.clear();
        self.held.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.now.is_empty() && self.held.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Ref> {
        self.held.iter().chain(&self.now)
    }

    pub fn len(&self) -> usize {
        self.held.len() + self.now.len()
    }
}

impl Store {
    /// The event has been worked off: what it changed is queued, or waits for its source's dump.
    pub(crate) fn together_ends(&mut self) {
        let t = &mut self.together;
        t.open = false;
        let source = t.source.take();
        if t.now.is_empty() && t.held.is_empty() {
            return;
        }
        let running = source.and_then(|s| self.syncs.get(&s)?.running);
        let dumped = running.is_some_and(|k| k.contains(KindSet::ROUTE)) && self.synced;
        if dumped {
            let t = &mut self.together;
            t.held.append(&mut t.now);
            if t.held.len() < HELD {
                return;
            }
        }
        let mut all = std::mem::take(&mut self.together.now);
        if dumped || !self.dump_runs() {
            all.append(&mut self.together.held);
        }
        self.queue_together(all);
    }

    /// A dump begins anew, before the last one has come to its end: what that one has changed waits no longer.
    pub(crate) fn release_held(&mut self) {
        let held = std::mem::take(&mut self.together.held);
        self.queue_together(held);
    }

    fn dump_runs(&self) -> bool {
        let of_routes = |k: KindSet| k.contains(KindSet::ROUTE);
        self.syncs
            .values()
            .any(|s| s.running.is_some_and(of_routes))
    }

    fn queue_together(&mut self, mut all: Vec<Ref>) {
        if all.len() > 1 {
            let of = |r: &Ref| match r.cls {
                Cls::Route4 => self.written_as::<V4>(r.id),
                _ => self.written_as::<V6>(r.id),
            };
            all.sort_by_cached_key(of);
        }
        self.route_queue.extend(all);
    }

    /// New ones first, the longest of them before others; then the widest.
    fn written_as<F: Fam>(&self, e: u32) -> (bool, Reverse<u8>, u8) {
        let fib = F::fib(&self.fibs);
        let Some(x) = fib.entries.get(e) else {
            return (true, Reverse(0), 0);
        };
        let len = fib.cover.prefix(x.node).1;
        match x.have.present() {
            false => (false, Reverse(len), 0),
            true => (true, Reverse(0), len),
        }
    }
}

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
use std::collections::{BTreeMap, VecDeque};

/// So many changed prefixes wait for the end of a dump. With more each further load of them is written by itself.
pub(crate) const HELD: usize = 1 << 16;
/// And so long.
pub(crate) const HOLD_NS: u64 = 5_000_000_000;

/// Prefixes in the order in which they are written. New ones first, of them the longest; then the widest.
#[derive(Debug, Default)]
struct Ordered {
    /// The only one: most that is answered or told changes one prefix.
    one: Option<(Ref, (bool, u8))>,
    all: BTreeMap<(bool, u8), Vec<Ref>>,
    len: usize,
}

impl Ordered {
    fn push(&mut self, r: Ref, place: (bool, u8)) {
        self.len += 1;
        if self.len == 1 {
            self.one = Some((r, place));
            return;
        }
        self.several();
        self.all.entry(place).or_default().push(r);
    }

    /// There is another one besides.
    fn several(&mut self) {
        if let Some((r, place)) = self.one.take() {
            self.all.entry(place).or_default().push(r);
        }
    }

    /// All of them, behind those of a queue; the shorter list is copied.
    fn queued_in(self, queue: &mut VecDeque<Ref>) {
        queue.extend(self.one.map(|(r, _)| r));
        for refs in self.all.into_values() {
            let mut refs = VecDeque::from(refs);
            if refs.len() <= queue.len() {
                queue.append(&mut refs);
                continue;
            }
            std::mem::swap(queue, &mut refs);
            for r in refs.into_iter().rev() {
                queue.push_front(r);
            }
        }
    }

    fn append(&mut self, other: &mut Ordered) {
        if let Some((r, place)) = other.one.take() {
            other.len = 0;
            return self.push(r, place);
        }
        if other.len > 0 {
            self.several();
        }
        self.len += std::mem::take(&mut other.len);
        for (place, mut refs) in std::mem::take(&mut other.all) {
            let own = self.all.entry(place).or_default();
            match own.is_empty() {
                // a million of them are not copied
                true => *own = refs,
                false => own.append(&mut refs),
            }
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
        let ones = self.held.one.iter().chain(&self.now.one).map(|(r, _)| r);
        ones.chain(all.flatten())
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
        held.queued_in(&mut self.route_queue);
    }

    /// A dump of this source's routes runs.
    fn dumps(&self, source: SourceId) -> bool {
        let running = self.syncs.get(&source).and_then(|s| s.running);
        running.is_some_and(|k| k.contains(KindSet::ROUTE))
    }

    /// A dump of some source's routes runs.
    pub(crate) fn dump_runs(&self) -> bool {
        self.syncs.keys().any(|s| self.dumps(*s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hw::Cls;

    fn list(of: &[(u32, bool, u8)]) -> Ordered {
        let mut o = Ordered::default();
        for (id, there, len) in of {
            o.push(Ref::new(Cls::Route4, *id), (*there, *len));
        }
        o
    }

    fn ids(o: Ordered) -> Vec<u32> {
        let mut queue = VecDeque::new();
        o.queued_in(&mut queue);
        queue.into_iter().map(|r| r.id).collect()
    }

    /// The only one is kept beside the lists: it has its place when others come, by themselves or all at once.
    #[test]
    fn the_first_one_has_its_place_among_others() {
        let all = [(1, true, 8), (2, false, 9), (3, true, 8), (4, false, 7)];
        for n in 0..=all.len() {
            for m in 0..=n {
                let (mut a, mut b) = (list(&all[..m]), list(&all[m..n]));
                a.append(&mut b);
                assert_eq!((a.len, b.len, ids(b)), (n, 0, Vec::new()));
                let mut wanted = all[..n].to_vec();
                wanted.sort_by_key(|x| (x.1, x.2));
                let wanted: Vec<u32> = wanted.iter().map(|x| x.0).collect();
                assert_eq!(ids(a), wanted, "{m} and {n}");
            }
        }
    }

    /// What is queued already stays before what comes, whichever of the two is longer.
    #[test]
    fn who_is_queued_already_stays_before() {
        for before in 0..6 {
            let queued = (100..100 + before).map(|id| Ref::new(Cls::Route4, id));
            let mut queue: VecDeque<Ref> = queued.collect();
            list(&[(1, true, 8), (2, true, 8), (3, true, 8), (4, true, 9)]).queued_in(&mut queue);
            let wanted: Vec<u32> = (100..100 + before).chain(1..=4).collect();
            assert_eq!(queue.iter().map(|r| r.id).collect::<Vec<u32>>(), wanted);
        }
    }
}

//! Prefixes that are to be made and are not there yet, and what came after them.
//!
//! ```text
//!   the kernel         10.1.0.0/16 via A      then  10.0.0.0/8 via B
//!                             │ A's next hop is on its way       │ B's is there
//!                             ▼                                  ▼
//!   the chip           undecided: nothing yet        the cover: a trap, until the /16 is decided
//! ```
//!
//! Written as it is, the cover would answer for the /16 by B, which the kernel never did. What is there already and stays as it
//! is may go on answering: the kernel did so before. What goes traps until then, or the next one above it would answer.
//!
//! A prefix that comes back while its DELETE is on its way is undecided as well: that command is not called back.
//!
//! The other way round: a prefix goes while the one above it, made or changed before, waits. It traps until that one is decided.
//!
//! Where a command got no answer nobody knows whether the prefix is there: it is undecided until that is written once more.
//!
//! Of two that go together the wider one goes first, in whatever order they were queued.
//!
//! A chip may fail any command. So what covers a prefix whose CREATE is on its way, and is to change, waits for that answer; and so
//! does what goes for the answer of the one above it. Where others have come meanwhile that are on their way it traps: they may come
//! without end.
//!
//! A prefix that changes while it is queued keeps its place, and may so pass what has come between: it traps then, and is
//! queued once more.

use crate::Store;
use crate::fib::{
    Content, Entry, F_DEFERRED, F_DELETE, F_FLIGHT, F_HELD, F_MOVED, F_QUEUED, F_REPEAT,
    F_UNDECIDED, Fam,
};
use crate::hw::{DepState, Flight, Ref};

/// An entry with content that is not known: it was there before, or whether it was made is not known. An UPDATE or SET_TRAP
/// finds out, and leaves it in its place.
pub(crate) const UNKNOWN: Content = Content {
    action: 0xfe,
    reason: 0,
    kind: 0,
    target: 0,
};

/// So many prefixes below one that may pass them are looked at, and if there are more so many that are queued; if there are
/// more of these as well, it is taken for granted.
const LOOK: usize = 4096;

/// The chip may not have it: it never did, or a command about it got no answer.
pub(crate) fn perhaps_absent(x: &Entry) -> bool {
    !x.have.present() || x.have == UNKNOWN || x.is(F_REPEAT)
}

impl Store {
    /// This prefix waits for what it leads to, or is to be tried again: what comes after it may overtake it.
    pub(crate) fn undecided<F: Fam>(&mut self, e: u32) {
        let fib = F::fib_mut(&mut self.fibs);
        let x = &mut fib.entries[e];
        x.flags |= F_UNDECIDED;
        if perhaps_absent(x) || x.is(F_DELETE) {
            let at = fib.cover.prefix(fib.entries[e].node);
            fib.undecided.entry(at).or_default();
        }
    }

    /// A write failed, and another one follows ahead of what is queued.
    pub(crate) fn tried_again<F: Fam>(&mut self, f: &Flight) {
        let x = &mut F::fib_mut(&mut self.fibs).entries[f.what.id];
        if !f.aggregate {
            x.flags |= F_MOVED;
            self.undecided::<F>(f.what.id);
        }
    }

    /// A prefix that is not on the chip is the kernel's no more. If who takes its place is not there either, what is above that
    /// one never answered for it; nor did that one for what is below and has come since. Of those between the two, which go as
    /// well, the first answers for it meanwhile; the others never did.
    pub(crate) fn heir_undecided<F: Fam>(&mut self, e: u32) {
        let fib = F::fib_mut(&mut self.fibs);
        let (mut at, mut first) = (fib.entries[e].node, true);
        let heir = loop {
            let above = fib.cover.ancestor_value(at, |v| {
                let x = &fib.entries[v];
                x.want.present() || x.have.present()
            });
            let Some(v) = above.and_then(|n| fib.at_node(n)) else {
                return;
            };
            let x = &mut fib.entries[v];
            if x.want.present() {
                break v;
            }
            if !first && x.is(F_QUEUED | F_HELD) && !x.is(F_FLIGHT) {
                x.flags |= F_MOVED;
            }
            (at, first) = (x.node, false);
        };
        let x = &mut fib.entries[heir];
        if x.is(F_FLIGHT) || !x.is(F_QUEUED) {
            return;
        }
        x.flags |= F_MOVED;
        if !x.have.present() {
            self.undecided::<F>(heir);
        }
    }

    /// It is looked at again: so are those that trap for it, behind it.
    pub(crate) fn decided<F: Fam>(&mut self, e: u32) {
        let fib = F::fib_mut(&mut self.fibs);
        let mut waiting = Vec::new();
        waiting.extend(fib.held.remove(&e).into_iter().flatten());
        if fib.entries[e].is(F_UNDECIDED) {
            fib.entries[e].set(F_UNDECIDED, false);
            let at = fib.cover.prefix(fib.entries[e].node);
            waiting.extend(fib.undecided.remove(&at).unwrap_or_default());
        }
        for other in waiting {
            self.queue_route::<F>(other);
        }
    }

    /// It is looked at again when something has been answered.
    pub(crate) fn defer<F: Fam>(&mut self, e: u32) {
        let x = &mut F::fib_mut(&mut self.fibs).entries[e];
        if !x.is(F_DEFERRED) {
            x.flags |= F_DEFERRED;
            self.deferred.push(Ref::new(F::CLS, e));
        }
    }

    pub(crate) fn requeue_deferred(&mut self) {
        for r in std::mem::take(&mut self.deferred) {
            self.queue_ref(r);
        }
    }

    /// Would this entry answer for a more specific one that is undecided? It is looked at again when that one is decided.
    pub(crate) fn overtakes<F: Fam>(&mut self, e: u32) -> bool {
        let fib = F::fib_mut(&mut self.fibs);
        if fib.undecided.is_empty() {
            return false;
        }
        let (bits, len) = fib.cover.prefix(fib.entries[e].node);
        if len >= F::WIDTH {
            return false;
        }
        let last = F::new(bits.slot(), bits.last(len));
        let mut below = fib.undecided.range_mut((bits, len + 1)..=(last, F::WIDTH));
        let Some((_, above)) = below.next() else {
            return false;
        };
        if !above.contains(&e) {
            above.push(e);
        }
        true
    }

    /// Would this entry answer for a more specific one whose CREATE is on its way, if the chip did not make that? It is looked at
    /// again when that is answered. `Some(true)`: that one has come since the entry began to wait, as one may again and again.
    pub(crate) fn waits_for_made<F: Fam>(&mut self, e: u32) -> Option<bool> {
        let fib = F::fib_mut(&mut self.fibs);
        if fib.making.is_empty() {
            fib.waits_since.clear();
            return None;
        }
        let (bits, len) = fib.cover.prefix(fib.entries[e].node);
        if len >= F::WIDTH {
            return None;
        }
        let last = F::new(bits.slot(), bits.last(len));
        let mut below = fib.making.range_mut((bits, len + 1)..=(last, F::WIDTH));
        let Some((_, (number, above))) = below.next() else {
            fib.waits_since.remove(&e);
            return None;
        };
        if !above.contains(&e) {
            above.push(e);
        }
        Some(*number > *fib.waits_since.entry(e).or_insert(fib.made))
    }

    /// A command for this entry was answered, or will not be: those that wait for that are looked at ahead of what is queued.
    pub(crate) fn answered<F: Fam>(&mut self, e: u32) {
        let fib = F::fib_mut(&mut self.fibs);
        let at = fib.cover.prefix(fib.entries[e].node);
        let (_, mut waiting) = fib.making.remove(&at).unwrap_or_default();
        waiting.extend(fib.held.remove(&e).into_iter().flatten());
        self.urgent
            .extend(waiting.into_iter().map(|w| Ref::new(F::CLS, w)));
    }

    /// The end of this entry would let one answer that goes as well and is queued behind it, or of which the chip may not do what is on
    /// its way: it is looked at again behind that one. `early`: it is looked at ahead of its place in the queue.
    pub(crate) fn goes_after<F: Fam>(&mut self, e: u32, early: bool) -> bool {
        let fib = F::fib_mut(&mut self.fibs);
        let node = fib.entries[e].node;
        let above = (fib.cover).ancestor_value(node, |v| {
            let x = &fib.entries[v];
            x.have.present() || x.is(F_FLIGHT)
        });
        let above = above.and_then(|n| fib.at_node(n)).filter(|v| {
            let x = &fib.entries[*v];
            // one that traps may answer
            let traps = x.have.is_trap() && !x.is(F_REPEAT);
            let waits = x.is(F_QUEUED | F_HELD) && !x.is(F_DEFERRED);
            let goes = !x.want.present() && waits && !traps;
            (goes && !early) || x.is(F_FLIGHT)
        });
        let Some(v) = above else {
            return false;
        };
        fib.held.entry(v).or_default().insert(e);
        fib.entries[e].set(F_HELD, true);
        true
    }

    /// Would the end of this entry let one above it answer that is not as it should be yet? It is looked at again when that one is.
    /// `early`: it is looked at ahead of its place in the queue.
    pub(crate) fn uncovers<F: Fam>(&mut self, e: u32, early: bool) -> bool {
        let fib = F::fib_mut(&mut self.fibs);
        let waits = |v: u32| {
            let x = &fib.entries[v];
            let late = x.is(F_UNDECIDED | F_DEFERRED | F_MOVED)
                || (early && x.is(F_QUEUED | F_HELD) && x.have != x.want.on_chip());
            late && (x.is(F_FLIGHT) || !x.have.is_trap())
        };
        let stands = |v: u32| fib.entries[v].have.present() && fib.entries[v].want.present();
        let node = (fib.cover).ancestor_value(fib.entries[e].node, |v| waits(v) || stands(v));
        let Some(above) = node.and_then(|n| fib.at_node(n)).filter(|v| waits(*v)) else {
            return false;
        };
        fib.held.entry(above).or_default().insert(e);
        true
    }

    /// The end of this entry would let one answer that stands as it shall, by a target that is being changed: what answers until then is
    /// neither before nor after. It is looked at again when the target is answered.
    pub(crate) fn uncovers_changing<F: Fam>(&mut self, e: u32) -> bool {
        let fib = F::fib(&self.fibs);
        let node = fib.entries[e].node;
        let answers = |v: u32| fib.entries[v].have.present() && !fib.entries[v].is(F_DELETE);
        let above = (fib.cover).ancestor_value(node, answers);
        let above = above.and_then(|n| fib.at_node(n));
        let Some(target) = above.and_then(|v| fib.entries[v].have.dep()) else {
            return false;
        };
        // one that fails makes its routes trap, which are waited for themselves
        if self.hw.dep_state(target) != DepState::Ready || !self.hw.is_changing(target) {
            return false;
        }
        let waiting = self.hw.awaited.entry(target).or_default();
        waiting.insert(Ref::new(F::CLS, e));
        // what is below it and goes as well waits for it
        F::fib_mut(&mut self.fibs).entries[e].set(F_HELD, true);
        true
    }

    /// Is anything below this entry queued that is not on the chip yet? Where the entry `ends`, or that goes, too?
    pub(crate) fn passes<F: Fam>(&mut self, e: u32, ends: bool) -> bool {
        if self.route_queue.is_empty() && self.together.is_empty() && !self.replay.holds() {
            return false;
        }
        let fib = F::fib(&self.fibs);
        let (bits, len) = fib.cover.prefix(fib.entries[e].node);
        let differs = |v: u32| {
            let x = &fib.entries[v];
            let (have, want) = (x.have.present(), x.want.present());
            v != e && x.is(F_QUEUED) && if ends { have != want } else { !have && want }
        };
        let (mut seen, mut found) = (0, false);
        fib.cover.each_below(bits, len, |_, v| {
            seen += 1;
            found = differs(v);
            !found && seen <= LOOK
        });
        if !found && seen > LOOK {
            // there are too many: the queue may be shorter
            let below = |v: u32| {
                let (b, l) = fib.cover.prefix(fib.entries[v].node);
                l > len && b.mask(len) == bits
            };
            let queue = self.route_queue.len() + self.together.len();
            let mut queued = self.route_queue.iter().chain(self.together.iter());
            found = self.replay.holds()
                || queue > LOOK
                || queued.any(|r| r.cls == F::CLS && differs(r.id) && below(r.id));
            seen += queue.min(LOOK);
        }
        self.slices.searched += seen;
        found
    }
}

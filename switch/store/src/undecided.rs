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

use crate::Store;
use crate::fib::{F_UNDECIDED, Fam};

impl Store {
    /// This prefix waits for what it leads to, or is to be tried again: what comes after it may overtake it.
    pub(crate) fn undecided<F: Fam>(&mut self, e: u32) {
        let fib = F::fib_mut(&mut self.fibs);
        fib.entries[e].flags |= F_UNDECIDED;
        let at = fib.cover.prefix(fib.entries[e].node);
        fib.undecided.entry(at).or_default();
    }

    /// It is looked at again: so are those above it that trap for it, behind it.
    pub(crate) fn decided<F: Fam>(&mut self, e: u32) {
        let fib = F::fib_mut(&mut self.fibs);
        if !fib.entries[e].is(F_UNDECIDED) {
            return;
        }
        fib.entries[e].set(F_UNDECIDED, false);
        let at = fib.cover.prefix(fib.entries[e].node);
        for above in fib.undecided.remove(&at).unwrap_or_default() {
            self.queue_route::<F>(above);
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
}

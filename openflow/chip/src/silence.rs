// SPDX-License-Identifier: Apache-2.0
//! A chip that answers nothing: what is under way waits, and what was read last is not what it has counted.
//!
//! ```text
//!   posted ─► no answer, seen for 3 s ─► silent: no number is known ─► an answer ─► a read, and they are again
//! ```
//!
//! Who has nothing to say posts a sign each second, so nobody has to ask for anything else. The time is that in which somebody
//! looked: whoever was stopped himself finds answers, or begins to wait.

/// No answer for so long is silence.
const SILENT: u64 = 3_000_000_000;
/// From one look to the next so much counts at most.
const LOOK: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Something is under way, and nothing was answered since: when that was looked at last, and how long it was so.
    waits: Option<(u64, u64)>,
    silent: bool,
}

impl Silence {
    /// Something is under way.
    pub fn posted(&mut self, now_ns: u64) {
        self.waits.get_or_insert((now_ns, 0));
    }

    /// Something was answered; is anything else under way? True: it was silent.
    pub fn heard(&mut self, more: bool, now_ns: u64) -> bool {
        self.waits = more.then_some((now_ns, 0));
        std::mem::take(&mut self.silent)
    }

    /// Nothing is under way any more, and nothing was heard of the chip: nothing is waited for. Who was silent still is.
    pub fn rests(&mut self) {
        self.waits = None;
    }

    /// Nothing was answered. True: it is silent from here on.
    pub fn look(&mut self, now_ns: u64) -> bool {
        let Some((at, waited)) = &mut self.waits else {
            return false;
        };
        *waited += now_ns.saturating_sub(*at).min(LOOK);
        *at = now_ns;
        let begins = *waited >= SILENT && !self.silent;
        self.silent |= begins;
        begins
    }

    /// When it is to be looked at again, while it is not known to be silent.
    pub fn next_ns(&self) -> Option<u64> {
        let waits = self.waits.filter(|_| !self.silent);
        waits.map(|(at, _)| at.saturating_add(LOOK))
    }

    pub fn is(&self) -> bool {
        self.silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn silence_is_what_was_looked_at_for_three_seconds() {
        let mut s = Silence::default();
        assert!(!s.look(9 * S) && s.next_ns().is_none());
        s.posted(10 * S);
        s.posted(11 * S);
        assert_eq!(s.next_ns(), Some(11 * S));
        assert!(!s.look(11 * S) && !s.look(12 * S) && !s.look(13 * S - 1));
        // one answer of several, and again nothing
        assert!(!s.heard(true, 13 * S - 1));
        assert!(!s.look(14 * S));
        // who was stopped meanwhile saw nothing of it
        assert!(!s.look(40 * S) && !s.is());
        assert!(s.look(41 * S) && s.is());
        assert!(!s.look(42 * S) && s.is() && s.next_ns().is_none());
        assert!(s.heard(false, 43 * S) && !s.is());
        assert!(!s.look(50 * S) && s.next_ns().is_none());
        // what is under way no more is not waited for
        s.posted(60 * S);
        s.rests();
        assert!(!s.look(70 * S) && s.next_ns().is_none());
    }
}

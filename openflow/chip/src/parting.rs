// SPDX-License-Identifier: Apache-2.0
//! Counters whose rows go, or count elsewhere, by a write that is not confirmed: what such a counter says is its last word only
//! once that very write has done what it should. An earlier write to the same row says nothing of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::want::Target;
use crate::{Flight, What};

#[derive(Clone, Copy, Debug)]
struct Write {
    /// The write is this one, or the first to the row behind it.
    token: u64,
    /// The last question was answered, and the write was not yet.
    told: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Parting {
    /// By the counter and its row: of one that moves there are two for a while.
    writes: BTreeMap<(u32, u32), Write>,
    /// Rows and their counters.
    rows: BTreeSet<(u32, u32)>,
}

impl Parting {
    /// A row counts there no more with the next write to it, which has this token at least.
    pub fn begin(&mut self, at: u32, counter: u32, token: u64) {
        let told = false;
        self.writes.insert((counter, at), Write { token, told });
        self.rows.insert((at, counter));
    }

    /// A write to a row was answered, or is given up: the counters that it was about, and whether their last question was
    /// answered before.
    pub fn answered(&mut self, at: u32, token: u64) -> Vec<(u32, bool)> {
        let own = self.rows.range((at, 0)..=(at, u32::MAX));
        let own = own.filter_map(|(_, id)| Some((*id, *self.writes.get(&(*id, at))?)));
        let own = own.filter(|(_, w)| w.token <= token);
        let all: Vec<(u32, bool)> = own.map(|(id, w)| (id, w.told)).collect();
        for (id, _) in &all {
            self.end(*id, at);
        }
        all
    }

    /// A counter's last question was answered. Is that not its last word?
    pub fn tell(&mut self, id: u32) -> bool {
        let mut early = false;
        for (_, w) in self.writes.range_mut((id, 0)..=(id, u32::MAX)) {
            w.told = true;
            early = true;
        }
        early
    }

    /// The chip has a counter no more, so that its row had ended before. Had its last question been answered too early?
    pub fn gone(&mut self, id: u32) -> bool {
        let own = self.writes.range((id, 0)..=(id, u32::MAX));
        let own: Vec<(u32, bool)> = own.map(|((_, at), w)| (*at, w.told)).collect();
        let told = own.iter().any(|(_, told)| *told);
        for (at, _) in own.iter().filter(|_| told) {
            self.end(id, *at);
        }
        told
    }

    /// Only of writes that are under way something is heard. Those whose last question was answered and of which nothing will be
    /// heard: they are to be asked again.
    pub fn void(&mut self, flights: &[Flight]) -> Vec<u32> {
        let rows = flights.iter().filter_map(|f| match f.what {
            What::Write(Target::Row(at)) => Some((at, f.token)),
            _ => None,
        });
        let rows: BTreeSet<(u32, u64)> = rows.collect();
        let flies =
            |at: u32, w: &Write| rows.range((at, w.token)..=(at, u64::MAX)).next().is_some();
        let waits = self.writes.iter().filter(|((_, at), w)| !flies(*at, w));
        let waits: Vec<((u32, u32), bool)> = waits.map(|(of, w)| (*of, w.told)).collect();
        for ((id, at), _) in &waits {
            self.end(*id, *at);
        }
        let told = waits.iter().filter(|(_, told)| *told);
        told.map(|((id, _), _)| *id).collect()
    }

    pub fn clear(&mut self) {
        *self = Parting::default();
    }

    fn end(&mut self, id: u32, at: u32) {
        self.writes.remove(&(id, at));
        self.rows.remove(&(at, id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a row that moves the counter parts from where it was, and from where it is: neither alone makes a last word.
    #[test]
    fn a_counter_parts_from_both_rows() {
        for first in [5, 9] {
            let mut p = Parting::default();
            p.begin(5, 1, 20);
            p.begin(9, 1, 22);
            // the row's creation there
            assert_eq!(p.answered(9, 21), []);
            assert!(p.tell(1));
            assert_eq!(p.answered(first, 24), [(1, true)]);
            assert!(p.tell(1));
            assert_eq!(p.answered(14 - first, 24), [(1, true)]);
            assert!(!p.tell(1) && !p.gone(1));
        }
        let mut p = Parting::default();
        p.begin(5, 1, 20);
        p.begin(9, 1, 22);
        assert!(!p.gone(1) && p.tell(1) && p.gone(1));
        assert!(p.rows.is_empty() && p.void(&[]).is_empty());
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Numbers of the ACL's rows, in the order of the rules and with gaps, so that a new row moves no other; where a gap
//! is used up, its neighbours are spread.
use crate::order::Full;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Numbers below are the caller's, for rows in front of all.
pub const FIRST_ROW: u32 = 16;
/// Of a new row at either end.
const GAP: u32 = 1 << 16;
/// What spreading leaves between two rows at least, if it can.
const SPREAD: u32 = 1 << 8;

pub(crate) type Row = (Full, u8);

#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    rows: BTreeMap<Row, u32>,
}

impl Labels {
    pub fn of(&self, place: &Full, row: u8) -> Option<u32> {
        self.rows.get(&(place.clone(), row)).copied()
    }

    /// Rows get other numbers, in the same order.
    pub fn renumber(&mut self, moves: &BTreeMap<u32, u32>) {
        for n in self.rows.values_mut() {
            *n = moves.get(n).copied().unwrap_or(*n);
        }
    }

    pub fn remove(&mut self, place: &Full, row: u8) -> Option<u32> {
        self.rows.remove(&(place.clone(), row))
    }

    /// A number for a new row, after these moves of others, in their order.
    pub fn insert(&mut self, place: Full, row: u8) -> (u32, Vec<(u32, u32)>) {
        let key = (place, row);
        let front = (Unbounded, Excluded(&key));
        let before = self.rows.range(front).next_back().map(|(_, n)| *n);
        let behind = self
            .rows
            .range((Excluded(&key), Unbounded))
            .next()
            .map(|(_, n)| *n);
        let (lo, hi) = (before.unwrap_or(FIRST_ROW - 1), behind.unwrap_or(u32::MAX));
        if hi - lo >= 2 {
            let mid = lo + (hi - lo) / 2;
            let at = match (before, behind) {
                (None, Some(_)) => mid.max(hi.saturating_sub(GAP)),
                (Some(_), None) => mid.min(lo.saturating_add(GAP)),
                _ => mid,
            };
            self.rows.insert(key, at);
            return (at, Vec::new());
        }
        let mut reach = 8;
        loop {
            let mut window: Vec<(Row, Option<u32>)> = Vec::new();
            let front = self.rows.range((Unbounded, Excluded(&key))).rev();
            window.extend(front.take(reach).map(|(r, n)| (r.clone(), Some(*n))));
            window.reverse();
            window.push((key.clone(), None));
            let back = self.rows.range((Excluded(&key), Unbounded));
            window.extend(back.take(reach).map(|(r, n)| (r.clone(), Some(*n))));
            let edge = |r: Option<&(Row, Option<u32>)>, front: bool| {
                r.and_then(|(r, _)| {
                    if front {
                        let front = (Unbounded, Excluded(r));
                        self.rows.range(front).next_back().map(|(_, n)| *n)
                    } else {
                        self.rows
                            .range((Excluded(r), Unbounded))
                            .next()
                            .map(|(_, n)| *n)
                    }
                })
            };
            let lo = edge(window.first(), true).unwrap_or(FIRST_ROW - 1);
            let hi = edge(window.last(), false).unwrap_or(u32::MAX);
            let step = (hi - lo) / (window.len() as u32 + 1);
            let whole = window.len() > self.rows.len();
            if step < SPREAD && !(whole && step > 0) {
                reach *= 2;
                continue;
            }
            let (mut up, mut down, mut at) = (Vec::new(), Vec::new(), lo);
            let mut own = lo;
            for (r, old) in window {
                at += step;
                self.rows.insert(r, at);
                match old {
                    None => own = at,
                    Some(old) if old < at => up.push((old, at)),
                    Some(old) if old > at => down.push((old, at)),
                    Some(_) => {}
                }
            }
            up.reverse();
            up.extend(down);
            return (own, up);
        }
    }
}

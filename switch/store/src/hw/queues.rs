//! Whose turn it is.

use super::{CLASSES, Cls, Hw, Ref};
use std::collections::VecDeque;

impl Hw {
    /// The next object to look at, dependencies first.
    /// `neighbours`: theirs is the turn, too. `stations`: so many had their turn ever.
    pub fn pop(&mut self, neighbours: bool, stations: u64) -> Option<Ref> {
        let ports = &self.ports;
        let queued = |id: &u32| ports.get(*id).is_some_and(|o| o.queued);
        let behind = &mut self.behind;
        behind.retain(|id, after| *after > stations || queued(id));
        for (cls, queue) in CLASSES.into_iter().zip(&mut self.queues) {
            let next = match cls {
                Cls::Neigh if !neighbours => None,
                Cls::Port if !behind.is_empty() => {
                    let due = |id: &u32| behind.get(id).is_none_or(|after| *after <= stations);
                    let next = queue.iter().position(due).and_then(|n| queue.remove(n));
                    next.inspect(|id| _ = behind.remove(id))
                }
                _ => queue.pop_front(),
            };
            if let Some(id) = next {
                return Some(Ref::new(cls, id));
            }
        }
        None
    }

    /// A port is another one behind the stations whose turn is to come: the kernel has changed those before. `stations`: so
    /// many had their turn ever. One that changes once more before its turn has the place of its first change: it would never
    /// be written else, as long as it changes and stations come.
    pub fn goes_behind(&mut self, port: u32, stations: u64) {
        let waiting = self.queues.get(Cls::Fdb as usize).map_or(0, VecDeque::len);
        if waiting > 0 {
            let after = stations + waiting as u64;
            self.behind.entry(port).or_insert(after);
        }
    }

    /// None of this class is queued.
    pub fn is_queue_empty(&self, cls: Cls) -> bool {
        self.queues.get(cls as usize).is_none_or(VecDeque::is_empty)
    }

    /// Nothing is queued; `neighbours`: none of these, either.
    pub fn queues_empty(&self, neighbours: bool) -> bool {
        let empty = |(n, q): (usize, &VecDeque<u32>)| {
            q.is_empty() || !neighbours && n == Cls::Neigh as usize
        };
        self.queues.iter().enumerate().all(empty)
    }
}

//! Whose turn it is.

use super::{CLASSES, Cls, Hw, Ref};
use std::collections::VecDeque;

impl Hw {
    /// The next object to look at, dependencies first.
    /// `neighbours`: theirs is the turn, too. `stations`: so many had their turn ever.
    pub fn pop(&mut self, neighbours: bool, stations: u64) -> Option<Ref> {
        let stations = match self.is_queue_empty(Cls::Fdb) {
            true => u64::MAX,
            false => stations,
        };
        self.behind.retain(|_, after| *after > stations);
        let behind = &self.behind;
        for (cls, queue) in CLASSES.into_iter().zip(&mut self.queues) {
            let next = match cls {
                Cls::Neigh if !neighbours => None,
                Cls::Port if !behind.is_empty() => {
                    let place = queue.iter().position(|id| !behind.contains_key(id));
                    place.and_then(|n| queue.remove(n))
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
    /// many had their turn ever.
    pub fn goes_behind(&mut self, port: u32, stations: u64) {
        let waiting = self.queues.get(Cls::Fdb as usize).map_or(0, VecDeque::len);
        if waiting > 0 {
            self.behind.insert(port, stations + waiting as u64);
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

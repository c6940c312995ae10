//! Whose turn it is.

use super::{CLASSES, Cls, Hw, Ref};
use std::collections::VecDeque;

impl Hw {
    /// The next object to look at, dependencies first.
    /// `neighbours`: theirs is the turn, too.
    pub fn pop(&mut self, neighbours: bool) -> Option<Ref> {
        for (cls, queue) in CLASSES.into_iter().zip(&mut self.queues) {
            if cls == Cls::Neigh && !neighbours {
                continue;
            }
            if let Some(id) = queue.pop_front() {
                return Some(Ref::new(cls, id));
            }
        }
        None
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

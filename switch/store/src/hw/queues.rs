//! Whose turn it is.

use super::{CLASSES, Cls, Hw, Ref};
use std::collections::VecDeque;

impl Hw {
    /// The next object to look at, dependencies first.
    /// `neighbours`: theirs is the turn, too.
    pub fn pop(&mut self, neighbours: bool) -> Option<Ref> {
        const ORDER: [Cls; CLASSES] = [
            Cls::Lag,
            Cls::Port,
            Cls::Vlan,
            Cls::Member,
            Cls::Vrf,
            Cls::Rif,
            Cls::Nexthop,
            Cls::Nhg,
            Cls::Neigh,
            Cls::Fdb,
            Cls::Mdb,
            Cls::AclTable,
            Cls::AclCounter,
            Cls::Policer,
            Cls::Mirror,
            Cls::AclEntry,
            Cls::AclBind,
        ];
        for c in ORDER {
            if c == Cls::Neigh && !neighbours {
                continue;
            }
            if let Some(id) = self.queues[c as usize].pop_front() {
                return Some(Ref::new(c, id));
            }
        }
        None
    }

    /// Nothing is queued; `neighbours`: none of these, either.
    pub fn queues_empty(&self, neighbours: bool) -> bool {
        let empty = |(n, q): (usize, &VecDeque<u32>)| {
            q.is_empty() || !neighbours && n == Cls::Neigh as usize
        };
        self.queues.iter().enumerate().all(empty)
    }
}

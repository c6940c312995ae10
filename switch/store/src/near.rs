//! Routes that are looked at next are read together.
//!
//! ```text
//!   one by one      alias ─miss─ entry ─miss─ node ─miss─ above ─miss─ …   alias ─miss─ entry ─miss─ …
//!   16 together     alias ─miss─ alias ─miss─ …   entry, entry, …   node, node, …   above, …
//! ```
//!
//! A million routes are in no cache, and those of one port lie far apart. Of the last three each wait is for all 16. This is about time alone: what is done, and in which
//! order, does not depend on it.

use crate::Store;
use crate::fib::{Fam, V4, V6};
use crate::hw::{Cls, Ref};
use tandem_cover::NONE;

/// Routes that are brought near together.
pub(crate) const TOGETHER: usize = 16;

impl Store {
    /// This route of a path and those behind it are looked at next.
    pub(crate) fn near_users(&self, mut at: u32) {
        let next = std::iter::from_fn(|| {
            let a = self.aliases.get(at).filter(|_| at != NONE)?;
            at = a.user_next;
            Some((a.v6, a.entry))
        });
        self.near(next);
    }

    /// The next route of the queue.
    pub(crate) fn next_queued(&mut self) -> Option<Ref> {
        if self.slices.near_queued == 0 {
            let queue = self.route_queue.iter();
            self.near(queue.map(|r| (r.cls == Cls::Route6, r.id)));
            self.slices.near_queued = TOGETHER;
        }
        let next = self.route_queue.pop_front();
        match next {
            Some(_) => self.slices.near_queued -= 1,
            None => self.slices.near_queued = 0,
        }
        next
    }

    /// Entries, whether of IPv6, and what is above them.
    fn near(&self, some: impl Iterator<Item = (bool, u32)>) {
        let mut entries = [(false, NONE); TOGETHER];
        for (place, x) in entries.iter_mut().zip(some) {
            *place = x;
        }
        self.near_of::<V4>(&entries, false);
        self.near_of::<V6>(&entries, true);
    }

    fn near_of<F: Fam>(&self, entries: &[(bool, u32); TOGETHER], v6: bool) {
        let fib = F::fib(&self.fibs);
        let mut nodes = [NONE; TOGETHER];
        let mut n = 0;
        let of_family = entries.iter().filter(|x| x.0 == v6 && x.1 != NONE);
        for (place, (_, e)) in nodes.iter_mut().zip(of_family) {
            *place = fib.entries.get(*e).map_or(NONE, |x| x.node);
            n += 1;
        }
        let nodes = &mut nodes[..n];
        if n > 0 {
            fib.cover.climb(nodes);
            std::hint::black_box(nodes);
        }
    }
}

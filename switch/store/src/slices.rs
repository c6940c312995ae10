//! What one event changes for many routes, in slices: routes that the kernel removed in silence, and those of a path that
//! leads elsewhere now.
//!
//! ```text
//!   apply, complete, plan ─► routes of a path ─► at once, up to SLICE of them ─► the rest: later
//!                                                                                  │
//!              nothing is planned, no event is taken, until nothing is left ◄── catch_up, SLICE at a time
//! ```
//!
//! As no event comes between, all that comes later finds the routes as if they had gone at once; as nothing is planned
//! meanwhile, the chip is never told of some without the others.

use crate::Store;
use crate::fib::{Alias, F_DEPEND, Fam, V4, V6};
use std::collections::VecDeque;
use tandem_cover::NONE;

/// Routes looked at between two calls of [`Store::catch_up`] or [`Store::plan`].
pub const SLICE: usize = 4096;

/// RT_SCOPE_HOST: a route to an own address survives its link going down.
const SCOPE_HOST: u8 = 254;

/// Routes of a path that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Going {
    /// All.
    All,
    /// Those of IPv4.
    V4,
    /// Those of IPv4 and of one source; but those to own addresses, unless these go as well.
    Of { source: u8, own: bool },
}

impl Going {
    fn takes(self, a: &Alias) -> bool {
        match self {
            Going::All => true,
            Going::V4 => !a.v6,
            Going::Of { source, own } => {
                !a.v6 && a.source == source && (own || a.scope != SCOPE_HOST)
            }
        }
    }
}

/// What is done with the routes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// They go.
    Remove(Going),
    /// What their prefixes should be is computed again.
    Reeval,
    /// Their prefixes are queued: what they lead to may be there now.
    Queue,
}

/// What is left to do.
#[derive(Debug)]
pub(crate) struct Slices {
    later: VecDeque<(u32, Work)>,
    /// The next route of the first of them, once it has begun.
    at: Option<u32>,
    /// How many routes may still be looked at before the next call.
    left: usize,
    /// And how many between two.
    pub size: usize,
    /// The last plan left routes in their queue that it could have looked at, or some that are to be queued.
    pub cut: bool,
}

impl Default for Slices {
    fn default() -> Self {
        Slices {
            later: VecDeque::new(),
            at: None,
            left: SLICE,
            size: SLICE,
            cut: false,
        }
    }
}

impl Slices {
    /// Something is left.
    pub fn any(&self) -> bool {
        !self.later.is_empty()
    }

    /// A call begins.
    pub fn begin(&mut self) {
        self.left = self.size;
    }

    /// Work beside the routes themselves, in their number.
    pub fn spend(&mut self, n: usize) {
        self.left = self.left.saturating_sub(n);
    }

    /// A route leaves its path, of which `next` is the next one.
    pub fn unlinked(&mut self, alias: u32, next: u32) {
        if self.at == Some(alias) {
            self.at = Some(next);
        }
    }
}

impl Store {
    /// Some of what earlier calls have left over: [`Store::catch_up`] goes on with it. No event should come before it is
    /// done: [`Store::apply`] does all of it first, at once.
    pub fn behind(&self) -> bool {
        self.slices.any()
    }

    /// More is to do for [`Store::plan_some`], though it handed out nothing.
    pub fn unfinished(&self) -> bool {
        self.behind() || self.slices.cut
    }

    /// Goes on with what is left over, for at most [`SLICE`] routes. True: there is more.
    pub fn catch_up(&mut self, now_ns: u64) -> bool {
        self.slices.begin();
        self.work_off(now_ns);
        let more = self.behind();
        if !more {
            self.together_ends(now_ns);
        }
        more
    }

    /// How many routes may be looked at between two calls, instead of [`SLICE`]; at least one.
    #[cfg(feature = "oracle")]
    pub fn set_slice(&mut self, routes: usize) {
        self.slices.size = routes.max(1);
        self.slices.begin();
    }

    /// All that is left over.
    pub(crate) fn catch_up_all(&mut self, now: u64) {
        while self.behind() && self.catch_up(now) {}
    }

    /// Does something with all routes of a path, behind what is left over.
    pub(crate) fn for_users(&mut self, path: u32, work: Work, now: u64) {
        let s = &self.slices;
        // that it has begun is not enough: what was looked at already may be something else by now
        let begun = s.later.len() == 1 && s.at.is_some();
        let last = s.later.back() == Some(&(path, work)) && !begun;
        if self.paths.sets[path].users == NONE || last {
            return;
        }
        self.slices.later.push_back((path, work));
        self.work_off(now);
    }

    fn work_off(&mut self, now: u64) {
        while let Some(&(path, work)) = self.slices.later.front() {
            let first = || self.paths.sets.get(path).map_or(NONE, |p| p.users);
            let at = self.slices.at.unwrap_or_else(first);
            if at == NONE {
                self.slices.at = None;
                self.slices.later.pop_front();
                continue;
            }
            if self.slices.left == 0 {
                return;
            }
            self.slices.spend(1);
            let a = self.aliases[at];
            self.slices.at = Some(a.user_next);
            match (work, a.v6) {
                (Work::Remove(going), _) if going.takes(&a) => self.remove_alias(at, now),
                (Work::Remove(_), _) => {}
                (Work::Reeval, false) => self.reeval::<V4>(a.entry, now),
                (Work::Reeval, true) => self.reeval::<V6>(a.entry, now),
                (Work::Queue, false) => self.queue_again::<V4>(a.entry),
                (Work::Queue, true) => self.queue_again::<V6>(a.entry),
            }
        }
    }

    fn queue_again<F: Fam>(&mut self, e: u32) {
        F::fib_mut(&mut self.fibs).entries[e].set(F_DEPEND, false);
        self.queue_route::<F>(e);
    }
}

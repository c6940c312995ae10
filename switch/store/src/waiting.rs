//! Whether all that was to do at one moment is done, though more has come since.
//!
//! ```text
//!   queue   ░░░░░░████████│▒▒▒▒▒▒▒▒▒▒▒▒     taken + waiting, when it began: the place that "taken" must reach
//!   flights ░░░░░░░░██████│▒▒▒▒▒            the same with answers
//! ```
//!
//! What is done may put its dependents into a queue (a domain, its router interface, that one's next hops, groups, routes,
//! covers), behind what came meanwhile: so all this is waited for as often as that chain is long.

use crate::Store;
use crate::hw::CLASSES;
use crate::sync::Phase;

/// From a LAG to the cover of a route, and one more.
const LINKS: u8 = 9;

/// How much was ever taken from each queue, and answered on each ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Of each class, then of urgent routes and of others.
    pub taken: [u64; CLASSES.len() + 2],
    pub answered: [u64; 2],
    /// Derived state was brought up to date so often.
    pub looks: u64,
    /// The queues and all that was on its way were dropped so often.
    pub epoch: u64,
}

/// What was to do at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Settling {
    aim: Progress,
    links: u8,
    /// Events taken before.
    events: u64,
    /// So many waits of interfaces are to be over (`doors.rs`); none: it is one of these waits.
    doors: Option<u64>,
}

impl Store {
    /// Everything that is to do now: ask [`Store::has_settled`] about it.
    pub fn settling(&self) -> Settling {
        Settling {
            doors: Some(self.doors.over_then()),
            ..self.settling_before()
        }
    }

    /// The same, but for interfaces that wait for that.
    pub(crate) fn settling_before(&self) -> Settling {
        Settling {
            aim: self.aim(),
            links: 0,
            events: self.counters.events,
            doors: None,
        }
    }

    /// It is done, or has its reason why it is not.
    pub fn has_settled(&self, s: &mut Settling) -> bool {
        if self.phase != Phase::Normal {
            // what an earlier core has left there may be swept still
            s.aim.epoch = u64::MAX;
        }
        self.is_past(s, self.idle())
    }

    /// The same, where nothing else is to do if it `rests`.
    pub(crate) fn is_past(&self, s: &mut Settling, rests: bool) -> bool {
        if rests {
            return true;
        }
        if self.behind() || !self.hw.woken.is_empty() {
            // what is left over is in no queue yet, which is all that an aim counts
            return false;
        }
        if s.aim.epoch != self.progress.epoch || self.replay.holds() || !self.synced {
            *s = Settling {
                events: s.events,
                doors: s.doors.map(|_| self.doors.over_then()),
                ..self.settling_before()
            };
            return false;
        }
        let done = |now: &[u64], aim: &[u64]| now.iter().zip(aim).all(|(now, aim)| now >= aim);
        let now = &self.progress;
        if done(&now.taken, &s.aim.taken)
            && done(&now.answered, &s.aim.answered)
            && now.looks >= s.aim.looks
            && (self.doors.none_waits() || s.doors.is_none_or(|n| self.doors.over >= n))
        {
            s.links = s.links.saturating_add(1);
            s.aim = self.aim();
            s.doors = s.doors.map(|_| self.doors.over_then());
        }
        // where nothing has come since, nothing but that is to do
        s.links >= LINKS && self.counters.events != s.events
    }

    fn aim(&self) -> Progress {
        let mut aim = self.progress;
        let queues = self.hw.queues.iter().map(|q| q.len());
        // what a dump holds is not said before its end, and nobody is told of it before
        let routes = [self.urgent.len(), self.route_queue.len()];
        for (aim, len) in aim.taken.iter_mut().zip(queues.chain(routes)) {
            *aim += len as u64;
        }
        for (aim, n) in (aim.answered.iter_mut()).zip(self.hw.flights.outstanding) {
            *aim += n as u64;
        }
        // one that has begun may have looked at something already
        aim.looks += 1;
        aim
    }
}

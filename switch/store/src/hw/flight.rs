//! Commands on their way to the chip: tokens that are void once a command has ended.

use super::{CLASSES, Cls, Ref};
use crate::api::{Body, Planned, Ring};
use crate::fib::Content;
use std::collections::BTreeSet;
use tandem_abi::raw::TND_CLS_NONE;

/// A command on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub what: Ref,
    pub op: u16,
    pub ring: Ring,
    /// Routes: the content sent.
    pub content: Content,
    /// Routes: this entry is an aggregate trap, not a kernel prefix.
    pub aggregate: bool,
    /// Lease slot that the command draws on, plus one; 0 = none.
    pub lease: u32,
}

impl Flight {
    /// On the synchronous ring, of anything but a route.
    pub fn sync(what: Ref, op: u16) -> Flight {
        Flight {
            what,
            op,
            ring: Ring::Sync,
            content: Content::ABSENT,
            aggregate: false,
            lease: 0,
        }
    }
}

/// Commands on their way, by token.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// On the synchronous and on the bulk ring.
    pub outstanding: [usize; 2],
    /// By class, but for routes.
    of: [usize; CLASSES.len()],
    /// Those of them that began before this moment.
    before: [usize; CLASSES.len()],
    moment: u64,
    /// So many commands about a bridge's ports, memberships and stations have begun.
    bridged: u64,
    /// Routes wait for those that began before this one, and so many of them are on their way.
    mark: u64,
    awaited: usize,
    /// They do.
    waits: bool,
    /// For the one that ended last they did.
    ended_awaited: bool,
    /// Those of `awaited` that have ended and are to be tried again.
    owed: BTreeSet<Ref>,
}

/// Of one command at a time.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    /// In which it began.
    moment: u64,
    /// Which one it was of those about a bridge's ports, memberships and stations.
    nth: u64,
    flight: Option<Flight>,
}

/// It decides where a bridge's frames go.
fn is_bridged(cls: Cls) -> bool {
    matches!(cls, Cls::Port | Cls::Member | Cls::Fdb)
}

pub(crate) fn ring_no(r: Ring) -> usize {
    match r {
        Ring::Sync => 0,
        Ring::Bulk => 1,
    }
}

impl Flights {
    pub fn start(&mut self, f: Flight) -> u64 {
        let i = match self.free.pop() {
            Some(i) => i,
            None => {
                self.slots.push(Slot::default());
                self.slots.len() as u32 - 1
            }
        };
        self.outstanding[ring_no(f.ring)] += 1;
        if let Some(n) = self.of.get_mut(f.what.cls as usize) {
            *n += 1;
        }
        self.bridged += u64::from(is_bridged(f.what.cls));
        let s = &mut self.slots[i as usize];
        (s.moment, s.nth, s.flight) = (self.moment, self.bridged, Some(f));
        u64::from(s.generation) << 32 | u64::from(i)
    }

    /// Starts one that is of no object's class.
    pub fn ask(&mut self, id: u32, op: u16, body: Body) -> Planned {
        let token = self.start(Flight::sync(Ref::new(Cls::Lease, id), op));
        Planned {
            token,
            ring: Ring::Sync,
            op,
            cls: TND_CLS_NONE,
            flags: 0,
            lease: 0,
            body,
        }
    }

    pub fn end(&mut self, token: u64) -> Option<Flight> {
        let s = self.slots.get_mut(token as u32 as usize)?;
        if u64::from(s.generation) != token >> 32 {
            return None;
        }
        let f = s.flight.take()?;
        let old = s.moment != self.moment;
        self.ended_awaited = is_bridged(f.what.cls) && s.nth <= self.mark;
        if self.ended_awaited {
            self.awaited -= 1;
        }
        s.generation = s.generation.wrapping_add(1);
        self.free.push(token as u32);
        self.outstanding[ring_no(f.ring)] -= 1;
        if let Some(n) = self.of.get_mut(f.what.cls as usize) {
            *n -= 1;
        }
        if let Some(n) = self.before.get_mut(f.what.cls as usize).filter(|_| old) {
            *n -= 1;
        }
        Some(f)
    }

    /// The one that ended last is tried again: routes that waited for it do until that has an answer.
    pub fn goes_again(&mut self, what: Ref) {
        if std::mem::take(&mut self.ended_awaited) && self.owed.insert(what) {
            self.awaited += 1;
        }
    }

    /// Nothing was to be tried again of this one.
    pub fn is_settled(&mut self, what: Ref) {
        if self.owed.remove(&what) {
            self.awaited -= 1;
        }
    }

    /// This one was tried before, and counts as begun then.
    pub fn began_before(&mut self, token: u64) {
        let Some(s) = self.slots.get_mut(token as u32 as usize) else {
            return;
        };
        let Some(what) = s.flight.as_ref().map(|f| f.what) else {
            return;
        };
        if let Some(n) = self.before.get_mut(what.cls as usize)
            && s.moment == self.moment
        {
            *n += 1;
            s.moment = u64::MAX;
        }
        // one that began behind what routes wait for is none of it now, either
        if self.owed.remove(&what) {
            s.nth = 0;
        }
    }

    /// Routes are to be written: whether they wait, as commands about bridges' ports, memberships and stations are not answered that had
    /// begun when this was asked first. For those that have begun since they wait the next time: there may be ever new ones.
    pub fn holds_routes(&mut self) -> bool {
        if self.awaited == 0 && !std::mem::take(&mut self.waits) {
            self.mark = self.bridged;
            let of = |cls: Cls| self.of.get(cls as usize).copied().unwrap_or_default();
            self.awaited = of(Cls::Port) + of(Cls::Member) + of(Cls::Fdb);
            self.waits = self.awaited > 0;
        }
        self.awaited > 0
    }

    /// Something has happened, unless it is the same moment still.
    pub fn begin(&mut self, moment: u64) {
        if self.moment != moment {
            (self.moment, self.before) = (moment, self.of);
        }
    }

    /// One of this class is on its way, which has a table, and began before this moment.
    pub fn any_before(&self, cls: Cls) -> bool {
        self.before.get(cls as usize).is_some_and(|n| *n > 0)
    }

    /// One of this class is on its way, which has a table.
    pub fn any_of(&self, cls: Cls) -> bool {
        self.of.get(cls as usize).is_some_and(|n| *n > 0)
    }

    /// Is one such command on its way?
    pub fn any(&self, which: impl Fn(&Flight) -> bool) -> bool {
        self.slots
            .iter()
            .filter_map(|s| s.flight.as_ref())
            .any(which)
    }

    /// All tokens become void.
    pub fn clear(&mut self) {
        self.free.clear();
        for (i, s) in self.slots.iter_mut().enumerate() {
            s.generation = s.generation.wrapping_add(1);
            s.flight = None;
            self.free.push(i as u32);
        }
        self.outstanding = [0, 0];
        self.of = [0; CLASSES.len()];
        self.before = self.of;
        (self.awaited, self.waits, self.mark) = (0, false, self.bridged);
        self.ended_awaited = false;
        self.owed.clear();
    }
}

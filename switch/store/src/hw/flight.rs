//! Commands on their way to the chip: tokens that are void once a command has ended.

use super::{CLASSES, Cls, Ref};
use crate::api::{Body, Planned, Ring};
use crate::fib::Content;
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
    /// With each the moment in which it began.
    slots: Vec<(u32, u64, Option<Flight>)>,
    free: Vec<u32>,
    /// On the synchronous and on the bulk ring.
    pub outstanding: [usize; 2],
    /// By class, but for routes.
    of: [usize; CLASSES.len()],
    /// Those of them that began before this moment.
    before: [usize; CLASSES.len()],
    moment: u64,
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
                self.slots.push((0, 0, None));
                self.slots.len() as u32 - 1
            }
        };
        self.outstanding[ring_no(f.ring)] += 1;
        if let Some(n) = self.of.get_mut(f.what.cls as usize) {
            *n += 1;
        }
        let s = &mut self.slots[i as usize];
        (s.1, s.2) = (self.moment, Some(f));
        u64::from(s.0) << 32 | u64::from(i)
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
        if u64::from(s.0) != token >> 32 {
            return None;
        }
        let f = s.2.take()?;
        let old = s.1 != self.moment;
        s.0 = s.0.wrapping_add(1);
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
        self.slots.iter().filter_map(|s| s.2.as_ref()).any(which)
    }

    /// All tokens become void.
    pub fn clear(&mut self) {
        self.free.clear();
        for (i, s) in self.slots.iter_mut().enumerate() {
            s.0 = s.0.wrapping_add(1);
            s.2 = None;
            self.free.push(i as u32);
        }
        self.outstanding = [0, 0];
        self.of = [0; CLASSES.len()];
        self.before = self.of;
    }
}

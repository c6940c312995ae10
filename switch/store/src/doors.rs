//! Router interfaces that take more or less than they did, beside routes.
//!
//! ```text
//!   the kernel     a policy rule comes        then 10.0.0.0/8 via A
//!   the chip       the /8 is written first: who comes in there goes by it, which the kernel never did
//! ```
//!
//! Interfaces and routes are written on two rings. So no route is written while an interface is to take less, and one takes more only
//! when the routes that came before are answered: who is given to the CPU meanwhile is always right. What an earlier core has left shut
//! opens when all routes stand: it may have been for an own prefix without room, or for a rule that has gone since.

use crate::Store;
use crate::hw::bodies::Rif;
use crate::hw::table::Sent;
use crate::hw::{Cls, Ref};
use crate::sync::Phase;
use crate::waiting::Settling;
use std::collections::{BTreeMap, HashSet};
use tandem_abi::raw::*;

/// Router interfaces on their way.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    /// Those that are to take more, and what was to do before; none: that is done.
    opening: BTreeMap<u32, Option<Settling>>,
    /// Those about which a command may be on its way.
    written: HashSet<u32>,
}

impl Doors {
    pub fn none_waits(&self) -> bool {
        self.opening.is_empty()
    }
}

/// What an interface with these flags lets through to the routes.
pub(crate) const fn lets(flags: u32) -> u32 {
    match flags & TND_RIF_TRAP_ALL {
        0 => flags & (TND_RIF_V4 | TND_RIF_V6),
        _ => 0,
    }
}

impl Store {
    /// This interface is to take more, and routes that came before are not written yet: it is looked at again when they are.
    pub(crate) fn opens_early(&mut self, r: Ref) -> bool {
        if r.cls != Cls::Rif {
            return false;
        }
        let opens = self.hw.rifs.get(r.id).is_some_and(|o| {
            let idle = matches!(o.sent, Sent::Nothing);
            let both = o.have.as_ref().zip(o.want.as_ref());
            // one that takes less of the other family as well may not wait
            idle && both.is_some_and(|(have, want)| {
                let (have, want) = (lets(have.flags), lets(want.flags));
                want & !have != 0 && have & !want == 0
            })
        });
        if !opens || self.phase != Phase::Normal {
            self.doors.opening.remove(&r.id);
            return false;
        }
        match self.doors.opening.get(&r.id) {
            // its wait is over
            Some(None) => {
                self.doors.opening.remove(&r.id);
                return false;
            }
            Some(Some(_)) => {}
            None => {
                let routes = !self.urgent.is_empty() || !self.route_queue.is_empty();
                if !routes && self.hw.flights.outstanding[1] == 0 {
                    return false;
                }
                let before = self.settling();
                self.doors.opening.insert(r.id, Some(before));
            }
        }
        self.hw.unqueue(r);
        true
    }

    /// Those whose wait is over are queued. Whether there are some.
    pub(crate) fn open_doors(&mut self) -> bool {
        let mut opening = std::mem::take(&mut self.doors.opening);
        let rests = self.rests();
        let mut open = false;
        for (id, wait) in &mut opening {
            if let Some(before) = wait
                && self.is_past(before, rests)
            {
                (*wait, open) = (None, true);
                self.hw.queue(Ref::new(Cls::Rif, *id));
            }
        }
        self.doors.opening = opening;
        open
    }

    /// All is programmed anew, and the routes stand: what that means for interfaces which an earlier core has left shut is looked at
    /// before [`Store::unshut`].
    pub(crate) fn look_at_shut(&mut self) {
        if !self.replay.holds() && self.hw.ids.any_shut() {
            let all = self.topo.rif_of.keys();
            self.topo.dirty.rifs.extend(all);
        }
    }

    /// They are what they are to be.
    pub(crate) fn unshut(&mut self) {
        if !self.replay.holds() && self.hw.ids.any_shut() {
            self.hw.ids.forget_shut();
            for id in self.hw.rifs.ids() {
                self.hw.queue(Ref::new(Cls::Rif, id));
            }
        }
    }

    /// A command about this one was posted.
    pub(crate) fn note_door(&mut self, r: Ref) {
        if r.cls == Cls::Rif {
            self.doors.written.insert(r.id);
        }
    }

    /// An interface may take more than it is to, until a command is answered that is on its way or about to be: no route is written.
    pub(crate) fn doors_close(&mut self) -> bool {
        if self.phase != Phase::Normal {
            return false;
        }
        let rifs = &self.hw.rifs;
        let flags = |body: Option<&Rif>| body.map_or(0, |b| lets(b.flags));
        let mut closes = false;
        self.doors.written.retain(|&id| match rifs.get(id) {
            Some(o) => match &o.sent {
                Sent::Put(put) => {
                    let may = lets(put.flags) | flags(o.have.as_ref());
                    closes |= o.want.is_some() && may & !flags(o.want.as_ref()) != 0;
                    // one that closes has been told so, and is open until it answers
                    closes |= flags(o.have.as_ref()) & !lets(put.flags) != 0;
                    true
                }
                _ => false,
            },
            None => false,
        });
        closes || !self.hw.is_queue_empty(Cls::Rif)
    }
}

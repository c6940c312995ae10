//! Router interfaces that take more or less than they did, and ports that take less, beside routes.
//!
//! ```text
//!   the kernel     a policy rule comes        then 10.0.0.0/8 via A
//!   the chip       the /8 is written first: who comes in there goes by it, which the kernel never did
//! ```
//!
//! Interfaces and routes are written on two rings. So no route is written while an interface or a port is to take less, and one takes more only
//! when the routes that came before are answered: who is given to the CPU meanwhile is always right. One that is to take less waits for
//! nothing: what it stands on is there as long as it refers to that, and in another VRF it is another interface. What an earlier core
//! has left shut opens when all routes stand: it may have been for an own prefix without room, or for a rule that has gone since.

use crate::Store;
use crate::api::Planned;
use crate::hw::bodies::{Port, Rif};
use crate::hw::table::{Obj, Sent};
use crate::hw::{Cls, Ref};
use crate::model::BR_STATE_FORWARDING;
use crate::waiting::Settling;
use std::collections::{BTreeSet, HashSet};
use tandem_abi::raw::*;

/// Router interfaces on their way.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    /// Those that are to take more, when what was to do `before` is done.
    opening: BTreeSet<u32>,
    before: Option<Settling>,
    /// Those that came since: their wait begins when that one is over.
    later: BTreeSet<u32>,
    /// Their wait is over, their turn is to come.
    free: HashSet<u32>,
    /// So many waits are over.
    pub over: u64,
    /// Those about which a command may be on its way.
    written: HashSet<u32>,
    /// Ports that may not be what they are to be, by table id.
    ports: BTreeSet<u32>,
    /// So many of them shut as soon as there is room for their commands.
    pub shut_next: usize,
}

impl Doors {
    pub fn none_waits(&self) -> bool {
        self.opening.is_empty() && self.later.is_empty()
    }

    /// Ports that may not be what they are to be, by table id.
    pub fn ports(&self) -> impl Iterator<Item = &u32> {
        self.ports.iter()
    }

    /// So many waits were over if all who wait had opened.
    pub fn over_then(&self) -> u64 {
        let begun = u64::from(self.before.is_some());
        self.over + begun + u64::from(!self.later.is_empty())
    }

    /// It is not to open, or need not wait.
    fn leaves(&mut self, id: u32) {
        self.opening.remove(&id);
        self.later.remove(&id);
        self.free.remove(&id);
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
    /// This interface is to take more, and routes that came before are not written yet: it is looked at again when they are. What else
    /// changes of it is written.
    pub(crate) fn opens_early(&mut self, r: Ref) -> bool {
        if r.cls != Cls::Rif {
            return false;
        }
        let o = self.hw.rifs.get(r.id);
        if o.is_some_and(|o| !matches!(o.sent, Sent::Nothing)) {
            // its answer brings it here again
            return false;
        }
        let both = o.and_then(|o| o.have.as_ref().zip(o.want.as_ref()));
        let opens = both.is_some_and(|(have, want)| lets(want.flags) & !lets(have.flags) != 0);
        if !opens || self.replay.holds() {
            self.doors.leaves(r.id);
            return false;
        }
        if self.doors.free.remove(&r.id) {
            return false;
        }
        let d = &self.doors;
        if !d.opening.contains(&r.id) && !d.later.contains(&r.id) {
            let routes = !self.urgent.is_empty() || !self.route_queue.is_empty();
            // what routes lead to decides as well, and a host entry before them
            let leads = [Cls::Nexthop, Cls::Nhg, Cls::Neigh];
            let on_way = leads.iter().any(|cls| self.hw.flights.any_of(*cls));
            if !routes && !on_way && self.hw.flights.outstanding[1] == 0 {
                return false;
            }
            self.doors.later.insert(r.id);
        }
        true
    }

    /// Those whose wait is over are queued. Whether there are some.
    pub(crate) fn open_doors(&mut self) -> bool {
        if self.doors.none_waits() && self.doors.before.is_none() {
            return false;
        }
        let rests = self.rests();
        let mut open = BTreeSet::new();
        if let Some(mut before) = self.doors.before.take() {
            match self.is_past(&mut before, rests) {
                true => {
                    open = std::mem::take(&mut self.doors.opening);
                    self.doors.over += 1;
                }
                false => self.doors.before = Some(before),
            }
        }
        if rests {
            self.doors.over += u64::from(!self.doors.later.is_empty());
            open.append(&mut self.doors.later);
        } else if self.doors.before.is_none() && !self.doors.later.is_empty() {
            self.doors.opening = std::mem::take(&mut self.doors.later);
            self.doors.before = Some(self.settling_before());
        }
        for id in &open {
            self.hw.queue(Ref::new(Cls::Rif, *id));
        }
        let any = !open.is_empty();
        self.doors.free.extend(open);
        any
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
        match r.cls {
            Cls::Rif => _ = self.doors.written.insert(r.id),
            Cls::Port => self.note_port(r.id),
            _ => {}
        }
    }

    /// A port is to be another one, or is written.
    pub(crate) fn note_port(&mut self, id: u32) {
        self.doors.ports.insert(id);
    }

    /// An interface may take more than it is to, until a command is answered that is on its way or about to be: no route is written.
    pub(crate) fn doors_close(&mut self) -> bool {
        if self.replay.holds() {
            return false;
        }
        if self.ports_close() {
            return true;
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
                // it is open until it has gone
                Sent::Delete => {
                    closes |= flags(o.have.as_ref()) != 0;
                    true
                }
                Sent::Nothing => false,
            },
            None => false,
        });
        closes || !self.hw.is_queue_empty(Cls::Rif)
    }

    /// A port takes frames by itself, or may do so, and is to take none: it is down, or spanning tree keeps it out, or they are the
    /// kernel's.
    fn ports_close(&mut self) -> bool {
        let ports = &self.hw.ports;
        let mut closes = false;
        self.doors.ports.retain(|&id| {
            let Some(o) = ports.get(id).filter(|o| !o.is_settled(o.want.as_ref())) else {
                return false;
            };
            let opens = matches!(&o.sent, Sent::Put(put) if takes(put));
            closes |= o.fail.is_none() && is_to_close(o, opens);
            true
        });
        closes
    }

    /// Ports that close when stations have had their turn, or others are answered, give all to the CPU meanwhile: routes wait for no more
    /// than that.
    pub(crate) fn shut_early(&mut self, out: &mut Vec<Planned>, most: usize, now: u64) {
        if self.replay.holds() {
            return;
        }
        let ports = &self.hw.ports;
        let waits = |id: &u32| {
            ports.get(*id).is_some_and(|o| {
                let idle = o.queued && matches!(o.sent, Sent::Nothing) && o.fail.is_none();
                // what it is must be known, as it stays so
                idle && !o.have.as_ref().is_some_and(Port::is_spoilt) && is_to_close(o, false)
            })
        };
        let waiting: Vec<u32> = self.doors.ports.iter().copied().filter(waits).collect();
        for id in waiting {
            match self.hw.flights.outstanding[0] < most {
                true => out.extend(self.hw.shut(id, now)),
                false => self.doors.shut_next += 1,
            }
        }
    }
}

/// It takes frames by itself.
fn takes(p: &Port) -> bool {
    let flags = p.flags & (TND_PORT_UP | TND_PORT_TRAP_ALL);
    flags == TND_PORT_UP && p.stp == BR_STATE_FORWARDING
}

/// A port takes frames, or is about to (`opens`), and is to take none.
fn is_to_close(o: &Obj<Port>, opens: bool) -> bool {
    let open = opens || o.have.as_ref().is_some_and(takes);
    open && o.want.as_ref().is_some_and(|w| !takes(w))
}

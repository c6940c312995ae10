//! Routes that are to leave a next hop or group which is to be another one.
//!
//! ```text
//!   the kernel     10.0.0.0/8 via A      via B        then A has another station
//!   the chip       10.0.0.0/8 via A      A is written first: the /8 goes to that station, which the kernel never did
//! ```
//!
//! So a target that stands is not written anew before the routes that leave it have gone. Those wait for nobody meanwhile: one that
//! can't go yet traps in its place, which the chip does at any time.

use crate::Store;
use crate::api::Planned;
use crate::fib::{Content, F_FLIGHT, F_GIVEN_UP, F_QUEUED, Fam, V4, V6};
use crate::hw::table::Sent;
use crate::hw::{Cls, Flight, Hw, HwClass, Ref, with_class};
use std::collections::BTreeSet;
use tandem_abi::raw::{TND_OP_DELETE, TND_OP_SET_TRAP, TND_TRAP_ROUTE};

impl Store {
    /// What the chip has of this entry, `had` before, or what it should have changed: whether it leaves the target that it goes by.
    pub(crate) fn look_leaving<F: Fam>(&mut self, e: u32, had: Content) {
        let x = &F::fib(&self.fibs).entries[e];
        let (have, want) = (x.have.dep(), x.want.dep());
        let r = Ref::new(F::CLS, e);
        if let Some(t) = had.dep().filter(|t| Some(*t) != have) {
            self.hw.left(t, r);
        }
        let Some(t) = have else {
            return;
        };
        // one that can't be deleted is not waited for
        match have == want || x.is(F_GIVEN_UP) {
            true => self.hw.left(t, r),
            false => _ = self.hw.leaving.entry(t).or_default().insert(r),
        }
    }

    /// Whether this object is not to be written yet: routes are to leave it first, or it is a group that takes in a next hop which waits
    /// for such routes, and would go by what that was.
    pub(crate) fn waits_for_leaving(&mut self, t: Ref) -> bool {
        if t.cls == Cls::Nhg
            && let Some(member) = self.hw.joins_parting(t.id)
        {
            self.hw.unqueue(t);
            self.hw.parting.entry(member).or_default().insert(t);
            return true;
        }
        let waits = self.hw.is_rewritten(t) && {
            let goes_elsewhere = |f: &Flight| {
                let want = match f.what.cls {
                    Cls::Route4 => V4::fib(&self.fibs).entries[f.what.id].want,
                    Cls::Route6 => V6::fib(&self.fibs).entries[f.what.id].want,
                    _ => return false,
                };
                f.op != TND_OP_DELETE && f.content.dep() == Some(t) && want.dep() != Some(t)
            };
            self.hw.leaving.contains_key(&t) || self.hw.flights.any(goes_elsewhere)
        };
        if !waits {
            self.hw.all_left(t);
            return false;
        }
        self.hw.unqueue(t);
        if self.hw.parting.contains_key(&t) {
            return true;
        }
        self.hw.parting.insert(t, BTreeSet::new());
        // those that are in no queue wait for something themselves, and the turn of one that is may be far
        let far =
            !self.together.is_empty() || self.route_queue.len() > self.config.max_outstanding[1];
        let all = self.hw.leaving.get(&t).into_iter().flatten();
        let idle = all.filter(|r| {
            let x = match r.cls {
                Cls::Route4 => V4::fib(&self.fibs).entries[r.id],
                _ => V6::fib(&self.fibs).entries[r.id],
            };
            !x.is(F_FLIGHT) && (far || !x.is(F_QUEUED))
        });
        self.urgent.extend(idle);
        true
    }

    /// Looks at one route; one that its target waits for does not wait itself.
    pub(crate) fn step_route<F: Fam>(&mut self, e: u32, urgent: bool, now: u64) -> Option<Planned> {
        let posted = self.step_to_wanted::<F>(e, urgent, now);
        if posted.is_some() || !self.is_waited_for::<F>(e) {
            return posted;
        }
        let trap = Content::trap(TND_TRAP_ROUTE);
        Some(self.post_route::<F>(e, TND_OP_SET_TRAP, trap, false, None))
    }

    /// Does the target that this entry leaves wait for that?
    fn is_waited_for<F: Fam>(&self, e: u32) -> bool {
        if self.hw.parting.is_empty() {
            return false;
        }
        let Some(x) = F::fib(&self.fibs).entries.get(e) else {
            return false;
        };
        let leaves = |t: &Ref| x.want.dep() != Some(*t) && self.hw.parting.contains_key(t);
        !x.is(F_FLIGHT) && x.have.dep().as_ref().is_some_and(leaves)
    }
}

impl Hw {
    /// This route does not leave the target any more.
    fn left(&mut self, t: Ref, r: Ref) {
        if let Some(all) = self.leaving.get_mut(&t) {
            all.remove(&r);
            if all.is_empty() {
                self.leaving.remove(&t);
                self.look_again(t);
            }
        }
    }

    /// A command that may have led to this target was answered.
    pub fn landed(&mut self, t: Ref) {
        if !self.parting.is_empty() && !self.leaving.contains_key(&t) {
            self.look_again(t);
        }
    }

    fn look_again(&mut self, t: Ref) {
        if self.parting.contains_key(&t) {
            self.queue(t);
        }
    }

    /// It is written now: groups that take it in may be as well.
    fn all_left(&mut self, t: Ref) {
        for group in self.parting.remove(&t).into_iter().flatten() {
            self.queue(group);
        }
    }

    pub(crate) fn unqueue(&mut self, r: Ref) {
        with_class!(r.cls, T => T::table(self).at(r.id).queued = false);
    }

    /// A target that stands, and is to be another one: no command about it is on its way. (One that is not known any more traps,
    /// whoever still goes by it.)
    fn is_rewritten(&mut self, t: Ref) -> bool {
        if !matches!(t.cls, Cls::Nexthop | Cls::Nhg) {
            return false;
        }
        if t.cls == Cls::Nexthop
            && (self.nexthops.get(t.id))
                .is_some_and(|o| o.want.as_ref().is_some_and(|w| w.mac.is_none()))
        {
            return false;
        }
        with_class!(t.cls, T => {
            let o = T::table(self).at(t.id);
            let idle = matches!(o.sent, Sent::Nothing);
            idle && o.have.is_some() && o.want.is_some() && o.have != o.want
        })
    }

    /// A next hop that this group is to have, has not yet, and that waits.
    fn joins_parting(&mut self, group: u32) -> Option<Ref> {
        if self.parting.is_empty() {
            return None;
        }
        let o = self.nhgs.get(group)?;
        let has = |id: u32| {
            let members = o.have.iter().flat_map(|h| &h.members);
            members.into_iter().any(|m| m.0 == id)
        };
        let all = o.want.iter().flat_map(|w| &w.members);
        let mut parting = all.map(|m| Ref::new(Cls::Nexthop, m.0));
        parting.find(|m| self.parting.contains_key(m) && !has(m.id))
    }
}

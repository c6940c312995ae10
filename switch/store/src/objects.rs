//! The turns of everything but routes, and what follows from their answers.

use crate::Store;
use crate::api::Planned;
use crate::hw::{Cls, HwClass, Ref, each_class, with_class};
use crate::sync::Phase;

impl Store {
    /// Everything but routes, as many as may be outstanding.
    pub(crate) fn step_objects(&mut self, out: &mut Vec<Planned>, most: usize, now_ns: u64) {
        // what is said anew is in no order
        let ordered = self.phase == Phase::Normal;
        self.hw.flights.begin(self.counters.events);
        self.look_whose_turn();
        while self.hw.flights.outstanding[0] < most {
            if let Some(p) = self.step_reserve() {
                out.push(p);
                continue;
            }
            let Some(r) = self.hw.pop(self.replay.own_stand(), ordered) else {
                // the one that others wait for had nothing to write, perhaps
                if self.look_whose_turn() {
                    continue;
                }
                break;
            };
            self.progress.taken[r.cls as usize] += 1;
            let again = self.hw.was_before(r);
            if self.waits_for_leaving(r) || self.goes_with_its_port(r) {
                self.hw.flights.is_settled(r);
                continue;
            }
            let waits = self.opens_early(r) || self.floods_early(r);
            if let Some(p) = self.hw.step(r, waits, now_ns) {
                self.note_door(r);
                if r.cls == Cls::Port {
                    self.hw.behind.turns.begins(r.id);
                }
                if again {
                    self.hw.flights.began_before(p.token);
                }
                out.push(p);
            } else {
                self.hw.flights.is_settled(r);
                if r.cls == Cls::Port {
                    self.flood_again();
                }
            }
            self.drop_released();
            self.drain_changed(now_ns);
        }
    }

    /// The chip has all that decides where frames go. Whether that is new.
    pub(crate) fn is_filled(&mut self) -> bool {
        let left = std::mem::take(&mut self.hw.trapping);
        let bare = std::mem::take(&mut self.hw.bare) || !left.is_empty();
        if bare {
            for id in self.hw.ports.ids() {
                self.hw.retry_dependent(Ref::new(Cls::Port, id));
            }
        }
        bare
    }

    /// Those whose wait is over are queued, as many as may be looked at in one call.
    pub(crate) fn wake(&mut self) {
        let n = self.hw.woken.len().min(self.slices.size);
        for r in self.hw.woken.split_off(self.hw.woken.len() - n) {
            self.queue_ref(r);
        }
    }

    pub(crate) fn drain_changed(&mut self, now: u64) {
        while let Some(r) = self.hw.changed.pop() {
            self.hw.look_who_waits(r);
            with_class!(r.cls, T => T::CHANGED(self, r, now));
        }
    }

    /// Forgets the keys whose ids were given back. Must run before anything takes or wants an id again.
    pub(crate) fn drop_released(&mut self) {
        // after each step, mostly for nothing
        each_class!(T => if !T::all(&self.hw).released.is_empty() {
            for id in std::mem::take(&mut T::table(&mut self.hw).released) {
                T::RELEASED(self, id);
            }
        });
    }
}

//! The turns of everything but routes, and what follows from their answers.

use crate::Store;
use crate::api::Planned;
use crate::hw::{Cls, Ref};

impl Store {
    /// Everything but routes, as many as may be outstanding.
    pub(crate) fn step_objects(&mut self, out: &mut Vec<Planned>, most: usize, now_ns: u64) {
        while self.hw.flights.outstanding[0] < most {
            if let Some(p) = self.step_reserve() {
                out.push(p);
                continue;
            }
            let Some(r) = self.hw.pop(self.replay.own_stand()) else {
                break;
            };
            self.progress.taken[r.cls as usize] += 1;
            if let Some(p) = self.hw.step(r, now_ns) {
                out.push(p);
            }
            self.drop_released();
            self.drain_changed(now_ns);
        }
    }

    /// The chip has all that decides where frames go. Whether that is new.
    pub(crate) fn is_filled(&mut self) -> bool {
        let bare = std::mem::take(&mut self.hw.bare);
        if bare {
            for id in self.hw.ports.ids() {
                self.hw.queue(Ref::new(Cls::Port, id));
            }
        }
        bare
    }

    pub(crate) fn drain_changed(&mut self, now: u64) {
        while let Some(r) = self.hw.changed.pop() {
            match r.cls {
                Cls::Vlan => {
                    self.vlan_changed(r.id);
                    self.base_changed(r);
                }
                Cls::Rif => self.base_changed(r),
                Cls::Vrf => self.vrf_changed(r.id, now),
                Cls::Nexthop | Cls::Nhg => self.target_changed(r),
                Cls::Fdb => self.fdb_state_changed(r.id, now),
                Cls::Mdb => self.group_changed(r.id, now),
                Cls::Member => self.member_changed(r.id),
                Cls::Lag => self.lag_answered(r),
                Cls::AclEntry => self.list_answered(r, now),
                Cls::AclBind => {
                    self.bind_changed(r.id);
                    self.list_answered(r, now);
                }
                Cls::AclTable | Cls::AclCounter | Cls::Policer | Cls::Mirror => {
                    self.rule_part_changed(r);
                }
                _ => {}
            }
        }
    }
}

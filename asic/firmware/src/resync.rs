//! Warm attach: BEGIN_RESYNC makes every object "not confirmed", commands that name it confirm it, END_RESYNC sweeps
//! the rest, dependents first.

use crate::Firmware;
use crate::object::{Failure, INVALID, Object};
use crate::objects::{fdb::Fdb, member::Member, neigh::Neigh, nexthop::NextHop, nhg::Nhg};
use crate::objects::{rif::Rif, route::Route, vlan::Vlan, vrf::Vrf};
use std::collections::HashSet;

/// A set of small numbers.
#[derive(Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn set(&mut self, i: u32, on: bool) {
        let word = i as usize / 64;
        if word >= self.0.len() {
            if !on {
                return;
            }
            self.0.resize(word + 1, 0);
        }
        if let Some(w) = self.0.get_mut(word) {
            if on {
                *w |= 1 << (i % 64);
            } else {
                *w &= !(1 << (i % 64));
            }
        }
    }
    pub(crate) fn has(&self, i: u32) -> bool {
        self.0
            .get(i as usize / 64)
            .is_some_and(|w| w >> (i % 64) & 1 != 0)
    }
}

/// What has been confirmed, by the tables' own ids.
#[derive(Debug, Default)]
pub(crate) struct Confirmed {
    pub(crate) exact: Bits,
    pub(crate) lpm4: Bits,
    pub(crate) lpm6: Bits,
    pub(crate) nexthop: Bits,
    pub(crate) nhg: Bits,
    pub(crate) rif: Bits,
    pub(crate) vlan: Bits,
    pub(crate) vrf: Bits,
    pub(crate) member: HashSet<(u16, u16)>,
}

impl Firmware {
    /// Sweeps; gives how many objects went. Learned FDB entries stay: the chip learned them, it ages them.
    pub(crate) fn end_resync(&mut self) -> Result<u64, Failure> {
        let c = self.resync.take().ok_or(INVALID)?;
        let mut swept = 0;
        let mut cursor = 0;
        while let Some((next, route)) = Route::next4(self, cursor) {
            cursor = next;
            swept += self.sweep(&route, c.lpm4.has(next - 1));
        }
        cursor = 0;
        while let Some((next, route)) = Route::next6(self, cursor) {
            cursor = next;
            swept += self.sweep(&route, c.lpm6.has(next - 1));
        }
        cursor = 0;
        while let Some((next, entry)) = self.state.exact.next(cursor) {
            cursor = next;
            let confirmed = c.exact.has(next - 1);
            if let Some(n) = Neigh::from_entry(self, &entry) {
                swept += self.sweep(&n, confirmed);
            } else if let Some(f) = Fdb::from_entry(&entry) {
                swept += self.sweep(&f, confirmed || f.learned());
            }
        }
        let all: Vec<(u32, Nhg)> = self
            .state
            .nhgs()
            .map(|(slot, g)| (slot, Nhg::from_group(g)))
            .collect();
        for (slot, g) in all {
            swept += self.sweep(&g, c.nhg.has(slot));
        }
        let all: Vec<(u32, NextHop)> = self
            .state
            .nexthops()
            .map(|(slot, n)| (slot, NextHop::from_state(n)))
            .collect();
        for (slot, n) in all {
            swept += self.sweep(&n, c.nexthop.has(slot));
        }
        let all: Vec<Rif> = self
            .state
            .rifs()
            .map(|(id, r)| Rif::from_state(id, r))
            .collect();
        for r in all {
            swept += self.sweep(&r, c.rif.has(u32::from(r.id())));
        }
        let all: Vec<(u16, u16, Member)> = self
            .state
            .members()
            .map(|(port, vid, m)| (port, vid, Member::from_state(port, vid, m)))
            .collect();
        for (port, vid, m) in all {
            swept += self.sweep(&m, c.member.contains(&(port, vid)));
        }
        let all: Vec<(u16, Vlan)> = self
            .state
            .vlans()
            .map(|(fid, v)| (fid, Vlan::from_state(fid, v.config)))
            .collect();
        for (fid, v) in all {
            swept += self.sweep(&v, c.vlan.has(u32::from(fid)));
        }
        let all: Vec<Vrf> = self
            .state
            .vrfs()
            .iter()
            .filter(|v| **v != 0)
            .map(|v| Vrf::from_state(*v))
            .collect();
        for v in all {
            swept += self.sweep(&v, c.vrf.has(u32::from(v.id())));
        }
        Ok(swept)
    }

    /// An object that a confirmed one still refers to stays.
    fn sweep<O: Object>(&mut self, object: &O, confirmed: bool) -> u64 {
        if confirmed || object.in_use(self) {
            return 0;
        }
        object.unflip(self);
        object.remove(self);
        1
    }
}

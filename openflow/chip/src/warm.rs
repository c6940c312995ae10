// SPDX-License-Identifier: Apache-2.0
//! A chip that still holds what an earlier process wrote: what of it is as it should be stays, and nothing is written
//! that stands already.
//!
//! ```text
//!   flows ─► what is wanted, as of an empty chip      what the chip holds ◄─ DUMP
//!                  └── rows of one content, in one order: they take the chip's numbers, counters, port sets ──┘
//!                  └── what differs: to be mended while every frame goes to the CPU; nothing: it is open at once
//! ```
//!
//! Of several switches on a chip each looks at what is its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use tandem_abi::object::fixed;
use tandem_abi::raw;
use tandem_ofoffload::{FIRST_ROW, FORM_VIDS, MASK_VIDS, MacKey, Vlan};
use tandem_sal::{Device, Request};
use zerocopy::IntoBytes;

use crate::part::{Slice, form_port, form_table};
use crate::want::{Scope, Target, class_at, class_of};
use crate::{AttachError, Chip, Lookup, Trust, profile, row, want};

/// Between rows that the chip does not have yet, behind the last one.
const GAP: u32 = 1 << 16;

/// What a chip holds of a switch.
#[derive(Debug, Default)]
struct Holds {
    lists: BTreeSet<u32>,
    /// Stages and ports where one of its lists looks.
    bound: BTreeSet<(u16, u16)>,
    rows: BTreeMap<u32, raw::tnd_acl_entry>,
    classes: BTreeMap<u32, raw::tnd_acl_entry>,
    /// By port and group, of its ports.
    forms: BTreeMap<(u8, u8), raw::tnd_acl_entry>,
    counters: BTreeMap<u32, raw::tnd_acl_counter>,
    sets: BTreeMap<u16, [u8; raw::TND_PORT_SET_BYTES]>,
    vlans: BTreeSet<u16>,
    members: BTreeMap<(u16, u16), raw::tnd_vlan_member>,
    macs: BTreeMap<(u16, [u8; 6]), raw::tnd_fdb>,
    ports: BTreeMap<u16, raw::tnd_port>,
}

impl Holds {
    fn read(
        device: &mut dyn Device,
        slice: Slice,
        own: &BTreeSet<u8>,
    ) -> Result<Holds, AttachError> {
        let mut h = Holds::default();
        let (table, class) = (slice.table(), slice.class_table());
        let mut foreign = None;
        device.dump(|t: raw::tnd_acl_table, _| {
            let ours = match t.stage {
                raw::TND_ACL_FLOW => slice.has_list(t.table),
                raw::TND_ACL_FLOW_CLASS => slice.has_class(t.table),
                raw::TND_ACL_FLOW_EGRESS => form_port(t.table).is_some(),
                _ => false,
            };
            if !ours {
                foreign = Some("a list of another use");
            }
            h.lists.insert(t.table);
        })?;
        device.dump(|b: raw::tnd_acl_bind, _| {
            let form = form_port(b.table).is_some_and(|p| own.contains(&p));
            if form || [table, class].contains(&b.table) {
                h.bound.insert((b.stage, b.port));
            }
        })?;
        device.dump(|e: raw::tnd_acl_entry, _| {
            if e.table == table {
                h.rows.insert(e.priority, e);
            } else if e.table == class {
                h.classes.insert(e.priority, e);
            } else if let Some(p) = form_port(e.table).filter(|p| own.contains(p)) {
                h.forms.insert((p, e.priority as u8), e);
            }
        })?;
        device.dump(|c: raw::tnd_acl_counter, _| {
            if slice.has_counter(c.counter) {
                h.counters.insert(c.counter, c);
            }
        })?;
        device.dump(|v: raw::tnd_vlan, _| {
            if v.flags & raw::TND_VLAN_FLOWS != 0 {
                h.vlans.insert(v.fid);
            }
        })?;
        device.dump(|p: raw::tnd_port, _| {
            h.ports.insert(p.port, p);
        })?;
        if slice.has_mac() {
            device.dump(|s: raw::tnd_port_set, _| {
                if slice.has_set(s.set) {
                    h.sets.insert(s.set, s.ports);
                }
            })?;
            device.dump(|m: raw::tnd_vlan_member, _| {
                let own = match m.vid == raw::TND_VID_ANY && slice.has_domain(m.fid) {
                    true => m.fid == slice.fid(),
                    false => {
                        if m.fid != m.vid {
                            foreign = Some("a member that is no flow port's");
                        }
                        true
                    }
                };
                if own {
                    h.members.insert((m.port, m.vid), m);
                }
            })?;
            device.dump(|f: raw::tnd_fdb, _| {
                if f.flags & raw::TND_FDB_STATIC == 0 {
                    foreign = Some("a station that it has learned");
                }
                if f.fid == slice.fid() || !slice.has_domain(f.fid) {
                    h.macs.insert((f.fid, f.mac), f);
                }
            })?;
        }
        match foreign {
            Some(what) => Err(AttachError::Foreign(what)),
            None => Ok(h),
        }
    }

    /// Without the guard.
    fn own_classes(&self) -> impl Iterator<Item = (u32, &raw::tnd_acl_entry)> {
        let rows = self.classes.range(class_at(1, 0)..);
        rows.map(|(n, e)| (*n, e))
    }

    /// Without the guards and what the list ends with.
    fn own_rows(&self) -> impl Iterator<Item = (u32, &raw::tnd_acl_entry)> {
        let rows = self.rows.range(FIRST_ROW..row::LAST_ROW);
        rows.map(|(n, e)| (*n, e))
    }
}

/// A row without its number and its counter.
fn content(e: &raw::tnd_acl_entry) -> Vec<u8> {
    let mut plain = *e;
    (plain.priority, plain.counter, plain.struct_size) = (0, 0, 0);
    plain.as_bytes().to_vec()
}

fn same_row(a: &raw::tnd_acl_entry, b: &raw::tnd_acl_entry) -> bool {
    a.counter == b.counter && content(a) == content(b)
}

/// The longest selection of numbers that grow: which of `all` are in it.
fn growing(all: &[Option<usize>]) -> Vec<bool> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; all.len()];
    for (i, n) in all.iter().enumerate().filter(|(_, n)| n.is_some()) {
        let at = ends.partition_point(|e| all[*e] < *n);
        before[i] = at.checked_sub(1).map(|b| ends[b]);
        match ends.get_mut(at) {
            Some(e) => *e = i,
            None => ends.push(i),
        }
    }
    let mut taken = vec![false; all.len()];
    let mut at = ends.last().copied();
    while let Some(i) = at {
        taken[i] = true;
        at = before[i];
    }
    taken
}

/// Numbers for rows in their order: those that the chip has keep the chip's, others stand between. `None`: there is no
/// room between.
fn numbers(has: &[Option<u32>]) -> Option<Vec<u32>> {
    let mut all = Vec::with_capacity(has.len());
    let (mut lo, mut rest) = (FIRST_ROW - 1, has);
    while !rest.is_empty() {
        let new = rest.iter().take_while(|n| n.is_none()).count();
        let hi = rest.get(new).copied().flatten();
        let room = hi.unwrap_or(row::LAST_ROW) - lo;
        let step = (room / (new as u32 + 1)).min(GAP);
        if new > 0 && step == 0 {
            return None;
        }
        all.extend((1..=new as u32).map(|n| lo + n * step));
        all.extend(hi);
        lo = hi.or(all.last().copied())?;
        rest = rest.get(new + usize::from(hi.is_some())..)?;
    }
    Some(all)
}

impl Chip {
    /// A warm attach was made to a chip that an earlier process wrote: what differs is written, and nothing else. True:
    /// it answers on as it stands.
    ///
    /// # Errors
    /// As [`Chip::attach`]; or it was not written by such a process, and is to be attached cold.
    pub fn adopt(&mut self, mut device: Box<dyn Device>, now_ns: u64) -> Result<bool, AttachError> {
        let snapshot = Request {
            op: raw::TND_OP_SNAPSHOT,
            output: true,
            ..Default::default()
        };
        let (_, out) = device.call("snapshot", &snapshot)?;
        // what stands there is this use's
        let all = fixed::<raw::tnd_pool>(&out).map(|mut p: raw::tnd_pool| {
            (p.used, p.in_flight, p.committed) = (0, 0, 0);
            p
        });
        let sizes = self.known.sizes(all)?;
        profile::check(self.setup.lookup, &self.setup.profile, &sizes)?;
        let own = self.ports.list.iter().map(|(p, _)| p.port).collect();
        let held = Holds::read(&mut *device, self.setup.slice, &own)?;
        self.know_list(&held)?;
        self.begins(&mut *device, &sizes, now_ns)?;
        // Nothing is written yet: these are wishes. There was room ahead, and who is let in depends on that
        let mac = self.room.at_rest(held.macs.len() as u32);
        let writes = self.offload.resize_class(self.class_lines);
        self.apply(writes);
        let writes = self.offload.resize_forms(self.form_groups);
        self.apply(writes);
        for _ in 0..8 {
            let writes = self.offload.resize(self.lines, mac);
            if writes.is_empty() {
                break;
            }
            self.apply(writes);
        }
        self.need_vlans();
        self.want.vlans.extend(&held.vlans);
        self.take_groups(&held);
        self.take_numbers(&held);
        let known = self.take_counters(&held, now_ns);
        self.want.take_sets(&held.sets);
        if !known || self.has_uncounted(&held) {
            self.counts.lose_all(now_ns);
        }
        let (differs, traps, over) = self.differs(&held);
        self.device = Some(device);
        if differs.is_empty() && self.has_ports(&held) {
            self.dirty.clear();
            self.trust = Trust::Whole;
            self.lookups.goes_on();
            // nobody's answer depends on these
            for t in over {
                self.drop_object(t, Scope::Nothing, false);
            }
            for key in traps {
                let scope = self.scope_of(&key);
                self.push(raw::TND_OP_UPDATE, Target::Mac(key), scope, true);
            }
        } else {
            self.dirty = differs;
            self.dirty.extend(traps.into_iter().map(Target::Mac));
            self.dirty.extend(over);
            self.trust = Trust::Trapping;
            self.write_ports(true);
        }
        self.resize();
        Ok(self.trust == Trust::Whole)
    }

    /// The list, its guards and its bindings are as this use has them.
    fn know_list(&self, held: &Holds) -> Result<(), AttachError> {
        let guards = self.guards();
        let guarded = |g: &raw::tnd_acl_entry| {
            let there = held.rows.get(&g.priority);
            there.is_some_and(|e| same_row(e, g))
        };
        let slice = self.setup.slice;
        let ports = || self.ports.list.iter().map(|(p, _)| u16::from(p.port));
        let stages = self.known.stages();
        let own = stages.flat_map(|stage| ports().map(move |p| (stage, p)));
        let classes = self.known.chip.class.is_some();
        let forms = self.known.has_forms();
        let mut own_forms = self.ports.list.iter().map(|(p, _)| form_table(p.port));
        let what = if !held.lists.contains(&slice.table()) {
            "no list of flows"
        } else if held.lists.contains(&slice.class_table()) != classes
            || own_forms.any(|t| held.lists.contains(&t) != forms)
        {
            "other lists than this use has"
        } else if held.rows.range(..FIRST_ROW).count() != guards.len()
            || !guards.iter().all(guarded)
        {
            "other rows in front of its list"
        } else if held.bound != own.collect() {
            "a list of other ports"
        } else if !held.vlans.contains(&slice.fid()) {
            "no domain of flows"
        } else {
            return Ok(());
        };
        Err(AttachError::Foreign(what))
    }

    fn has_ports(&self, held: &Holds) -> bool {
        let is = self.ports_are(false);
        self.ports.list.iter().all(|p| {
            let want = self.ports.body(p, is);
            let there = held.ports.get(&want.port);
            there.is_some_and(|h| {
                (h.flags, h.mtu, h.stp_state, h.mac)
                    == (want.flags, want.mtu, want.stp_state, want.mac)
            })
        })
    }

    /// Groups whose rows classify as they do here are known by the chip's numbers, others by such as no one of these has.
    fn take_groups(&mut self, held: &Holds) {
        let of_forms = |e: &raw::tnd_acl_entry| {
            e.flags & raw::TND_ACL_SET_VID != 0
                && e.vid & MASK_VIDS == FORM_VIDS
                && e.vid != raw::TND_ACL_VID_NONE
        };
        let plain = |e: &raw::tnd_acl_entry| {
            let mut e = *e;
            (e.priority, e.group, e.struct_size) = (0, 0, 0);
            if of_forms(&e) {
                e.vid = FORM_VIDS;
            }
            e.as_bytes().to_vec()
        };
        let mut theirs: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
        for (at, e) in held.own_classes() {
            theirs.entry(class_of(at).0).or_default().push(plain(e));
        }
        let mut ours: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
        for ((group, _), c) in self.want.classes.range((1, 0)..) {
            ours.entry(*group).or_default().push(plain(&c.entry));
        }
        let by: HashMap<_, u8> = theirs.into_iter().map(|(n, rows)| (rows, n)).collect();
        let same = ours.iter().map(|(n, rows)| (*n, by.get(rows).copied()));
        let same: Vec<(u8, Option<u8>)> = same.collect();
        let taken: BTreeSet<u8> = same.iter().filter_map(|(_, to)| *to).collect();
        let (first, all) = self
            .known
            .chip
            .class
            .as_ref()
            .map_or((0, 0), |c| (c.first, c.groups));
        let in_forms = |n: u8| self.offload.form_vid(n).is_some();
        let free = (0..all).map(|n| first + n).filter(|n| !taken.contains(n));
        let (forms, others): (Vec<u8>, Vec<u8>) = free.partition(|n| in_forms(*n));
        let (mut forms, mut others) = (forms.into_iter(), others.into_iter());
        let to: BTreeMap<u8, u8> = same
            .into_iter()
            .filter_map(|(n, to)| {
                let free = if in_forms(n) { &mut forms } else { &mut others };
                Some((n, to.or_else(|| free.next())?))
            })
            .collect();
        let number = |n: u8| to.get(&n).copied().unwrap_or(n);
        self.offload.regroup(number);
        let classes = std::mem::take(&mut self.want.classes);
        for ((group, row), mut c) in classes {
            let group = number(group);
            (c.entry.group, c.entry.priority) = (group, class_at(group, row));
            if let Some(vid) = self.offload.form_vid(group) {
                c.entry.vid = vid;
            }
            self.want.classes.insert((group, row), c);
        }
        for ((port, group), mut f) in std::mem::take(&mut self.want.forms) {
            let group = number(group);
            f.entry.priority = u32::from(group);
            f.entry.key.tci = self.offload.form_vid(group).unwrap_or_default();
            self.want.forms.insert((port, group), f);
        }
        let rows = self.want.rows.values_mut();
        for row in rows.filter(|r| r.entry.key.group != 0) {
            row.entry.key.group = number(row.entry.key.group);
        }
    }

    /// Rows that the chip has, in the order that they have here, are known by its numbers.
    fn take_numbers(&mut self, held: &Holds) {
        let mut places: HashMap<Vec<u8>, VecDeque<usize>> = HashMap::new();
        let chip: Vec<(u32, &raw::tnd_acl_entry)> = held.own_rows().collect();
        for (n, (_, e)) in chip.iter().enumerate() {
            places.entry(content(e)).or_default().push_back(n);
        }
        let own = || self.want.rows.range(FIRST_ROW..row::LAST_ROW);
        let found = own().map(|(_, r)| {
            let places = places.get_mut(&content(&r.entry))?;
            places.pop_front()
        });
        let found: Vec<Option<usize>> = found.collect();
        let stays = growing(&found);
        let has = found.iter().zip(stays).map(|(n, stays)| {
            let n = (*n).filter(|_| stays)?;
            chip.get(n).map(|(number, _)| *number)
        });
        let Some(new) = numbers(&has.collect::<Vec<_>>()) else {
            return;
        };
        let moves: BTreeMap<u32, u32> = own().map(|(at, _)| *at).zip(new).collect();
        self.offload.renumber(&moves);
        let rows = std::mem::take(&mut self.want.rows);
        for (at, mut row) in rows {
            let at = moves.get(&at).copied().unwrap_or(at);
            row.entry.priority = at;
            self.want.rows.insert(at, row);
        }
    }

    /// Rows that stand there go on with their counters. False: it was changed when nobody wrote that down any more.
    fn take_counters(&mut self, held: &Holds, now_ns: u64) -> bool {
        // One that no row names and that has counted nothing has nothing that anybody lacks
        let named: BTreeSet<u32> = held.rows.values().map(|e| e.counter).collect();
        let tells = |id: &u32, c: &raw::tnd_acl_counter| {
            c.packets > 0 || named.contains(id) || self.counts.is_known(*id)
        };
        let own = held.counters.iter().filter(|(id, c)| tells(id, c));
        let own = own.map(|(id, c)| (*id, *c)).collect();
        let known = self.counts.settle_past(&own, now_ns);
        let rows = self.want.rows.iter().map(|(at, row)| {
            let there = held.rows.get(at);
            let there = there.filter(|e| content(e) == content(&row.entry));
            (row.counter, there.map(|e| e.counter))
        });
        let rows: Vec<_> = rows.collect();
        let new = self.counts.hand_over(&rows, &held.counters, now_ns);
        for (row, id) in self.want.rows.values_mut().zip(new) {
            row.counter = id;
            if row.entry.counter != 0 {
                row.entry.counter = id;
            }
        }
        known
    }

    /// Is something answered there otherwise than it should, and not counted?
    fn has_uncounted(&self, held: &Holds) -> bool {
        let rows = held.rows.range(FIRST_ROW..);
        let answers = |e: &raw::tnd_acl_entry| e.action != raw::TND_ACL_TRAP && e.counter == 0;
        let mut rows = rows.filter(|(_, e)| answers(e));
        let wanted = |at: &u32, e: &raw::tnd_acl_entry| {
            let row = self.want.rows.get(at);
            row.is_some_and(|r| same_row(e, &r.entry))
        };
        let mut macs = held.macs.values().filter(|h| h.action != raw::TND_ACT_TRAP);
        let keys = self.want.macs.iter().map(|(key, act)| {
            let f = self.want.fdb(key, *act);
            ((f.fid, f.mac), (f.action, f.port, f.set))
        });
        let keys: HashMap<_, _> = keys.collect();
        let drops = |p: &raw::tnd_port| p.flags & raw::TND_PORT_FLOWS_DROP != 0;
        let own = self.ports.list.iter().map(|(p, _)| u16::from(p.port));
        let mut own = own.filter_map(|p| held.ports.get(&p));
        rows.any(|(at, e)| !wanted(at, e))
            || macs.any(|h| keys.get(&(h.fid, h.mac)) != Some(&(h.action, h.port, h.set)))
            || !self.miss.real() && own.any(drops)
    }

    /// What packets may meet otherwise than they should; entries that trap, for a while, as those that were asked for use;
    /// and what nothing names any more.
    fn differs(&self, held: &Holds) -> (BTreeSet<Target>, Vec<MacKey>, Vec<Target>) {
        let mut dirty = BTreeSet::new();
        let mut traps = Vec::new();
        for (at, row) in &self.want.rows {
            if !held.rows.get(at).is_some_and(|e| same_row(e, &row.entry)) {
                dirty.insert(Target::Row(*at));
            }
        }
        for at in held.rows.range(FIRST_ROW..).map(|(at, _)| *at) {
            if !self.want.rows.contains_key(&at) {
                dirty.insert(Target::Row(at));
            }
        }
        for ((group, row), c) in &self.want.classes {
            let there = held.classes.get(&class_at(*group, *row));
            if !there.is_some_and(|e| same_row(e, &c.entry) && e.group == c.entry.group) {
                dirty.insert(Target::Class(*group, *row));
            }
        }
        for (group, row) in held.classes.keys().map(|at| class_of(*at)) {
            if !self.want.classes.contains_key(&(group, row)) {
                dirty.insert(Target::Class(group, row));
            }
        }
        for ((port, group), f) in &self.want.forms {
            let there = held.forms.get(&(*port, *group));
            if !there.is_some_and(|e| same_row(e, &f.entry)) {
                dirty.insert(Target::Form(*port, *group));
            }
        }
        for (port, group) in held.forms.keys() {
            if !self.want.forms.contains_key(&(*port, *group)) {
                dirty.insert(Target::Form(*port, *group));
            }
        }
        let missing = |fid: &&u16| !held.vlans.contains(*fid);
        let vlans = self.want.vlans.iter().filter(missing);
        dirty.extend(vlans.map(|fid| Target::Vlan(*fid)));
        for ((port, vid), untagged) in &self.want.members {
            let fid = self.want.fid_of(*vid);
            let want = want::member(fid, *port, *vid, *untagged);
            let there = held.members.get(&(*port, *vid));
            if there.is_none_or(|m| (m.fid, m.flags) != (want.fid, want.flags)) {
                dirty.insert(Target::Member(*port, *vid));
            }
        }
        for (port, vid) in held.members.keys() {
            if !self.want.members.contains_key(&(*port, *vid)) {
                dirty.insert(Target::Member(*port, *vid));
            }
        }
        let mut known = BTreeSet::new();
        for (key, act) in &self.want.macs {
            let want = self.want.fdb(key, *act);
            known.insert((want.fid, want.mac));
            let there = held.macs.get(&(want.fid, want.mac));
            let same =
                |h: &raw::tnd_fdb| (h.action, h.port, h.set) == (want.action, want.port, want.set);
            match there {
                Some(h) if same(h) => {}
                // what it is to send to is there; where that lacks, something else differs
                Some(h) if h.action == raw::TND_ACT_TRAP => traps.push(*key),
                _ => _ = dirty.insert(Target::Mac(*key)),
            }
        }
        for (fid, mac) in held.macs.keys().filter(|k| !known.contains(k)) {
            let [a, b, c, d, e, f] = *mac;
            let address = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
            let vlan = match (*fid == self.setup.slice.fid(), self.setup.lookup) {
                (true, Lookup::Address) => Vlan::Any,
                (true, Lookup::Vlan) => Vlan::Untagged,
                (false, _) => Vlan::Tag(*fid),
            };
            dirty.insert(Target::Mac(MacKey { vlan, address }));
        }
        let (over, lack): (Vec<Target>, Vec<Target>) = self
            .want
            .sets_unlike(&held.sets)
            .map(Target::Set)
            .partition(|t| self.want.write(raw::TND_OP_CREATE, *t).is_none());
        dirty.extend(lack);
        let unused = held.counters.keys().filter(|id| !self.counts.has(**id));
        let unused = unused.map(|id| Target::Counter(*id));
        (dirty, traps, over.into_iter().chain(unused).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_the_numbers_of_the_longest_order() {
        let all = [Some(3), Some(0), None, Some(1), Some(4), Some(2)];
        assert_eq!(growing(&all), [false, true, false, true, false, true]);
        assert_eq!(growing(&[None, None]), [false, false]);
        let between = numbers(&[None, Some(1100), None, None, Some(1103), None]).unwrap();
        assert_eq!(between.get(1..5), Some(&[1100, 1101, 1102, 1103][..]));
        assert!(between.is_sorted());
        assert_eq!(numbers(&[Some(1100), None, Some(1101)]), None);
        assert_eq!(numbers(&[]), Some(Vec::new()));
    }
}

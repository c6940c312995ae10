// SPDX-License-Identifier: Apache-2.0
//! Flows that write a VLAN id, a priority, a DSCP, or whether there is a tag: classification does that, and names a group that a
//! row of the ACL asks for.
//!
//! ```text
//!   classification                                ACL
//!   match of the flow ─► VLAN 20, group 7    ──►  group 7 ─► ports      in front of all other rows
//! ```
//!
//! Such a *pair* answers all packets of its flow before any other row or entry sees them. So it is only for a flow that no
//! flow in front meets: then the packets are its own, and no other pair has any of them. What is behind it never sees them.
//!
//! Its rows come and go in an order that keeps the packets: the row of the group, which traps; those that classify; then the
//! group's row answers. And the other way round.
use crate::expand;
use crate::index::Side;
use crate::order::Place;
use crate::plan::Job;
use crate::tables::{self, Classify};
use crate::{Act, Entry, Id, NotPair, Offload, Only, Rewrite, Stand, Tagging, Write};
use std::cmp::Reverse;
use std::ops::ControlFlow;
use tandem_ofpipeline::key::Key;
use tandem_openflow::{Field, Oxm, oxm};

/// Number of the ACL's row of a group: this and the group. Numbers below are the caller's, for rows in front of all.
pub const FIRST_GROUP: u32 = 16;

/// What a pair does: its row in the ACL, and what those that classify write.
pub(crate) type Pair = (Act, Rewrite);

/// Did packets of this match come with a tag? `None`: some, perhaps.
fn tagged(fields: &[Oxm]) -> Option<bool> {
    let present = u128::from(oxm::VID_PRESENT);
    let vid = fields.iter().find(|o| o.field == Field::VlanVid)?;
    (vid.mask & present != 0).then_some(vid.value & present != 0)
}

/// Is it known of these packets that this can be written into them, as it is meant? If not: why.
pub(crate) fn unfit(fields: &[Oxm], rewrite: Rewrite) -> Option<NotPair> {
    let ip = |o: &Oxm| o.field == Field::EthType && matches!(o.value, 0x0800 | 0x86dd);
    let written = (rewrite.vid, rewrite.pcp) != (None, None);
    // With a tag, without one, or whatever
    let wanted = match rewrite.tag {
        Tagging::Stays => written.then_some(true),
        Tagging::Comes => Some(false),
        Tagging::Goes => Some(true),
    };
    let both = match rewrite.tag {
        Tagging::Stays => false,
        Tagging::Comes => rewrite.vid.is_none(),
        Tagging::Goes => written,
    };
    match (wanted, tagged(fields)) {
        (Some(_), None) => return Some(NotPair::Tag),
        (Some(false), Some(true)) => return Some(NotPair::HasTag),
        (Some(true), Some(false)) => return Some(NotPair::NoTag),
        _ => {}
    }
    let vid = rewrite.vid.is_none_or(|v| (1..=4094).contains(&v));
    if both || !vid {
        return Some(NotPair::Written);
    }
    (rewrite.dscp.is_some() && !fields.iter().any(ip)).then_some(NotPair::NotIp)
}

impl Offload {
    fn classify(&self) -> Option<&Classify> {
        self.chip.class.as_ref()
    }

    /// Lines of classification that there are.
    pub(crate) fn class_size(&self) -> u32 {
        self.classify().map_or(0, |c| c.rows.size)
    }

    /// Groups that there are.
    pub(crate) fn groups_size(&self) -> u32 {
        self.classify().map_or(0, |c| u32::from(c.groups))
    }

    /// Does the answer need classification, and could that do it?
    fn could_write(&self, fields: &[Oxm], act: Act, only: Option<Only>) -> bool {
        let (Some(c), Act::Out { ports, rewrite }) = (self.classify(), act) else {
            return false;
        };
        let acl = &self.chip.acl;
        !tables::writes(acl.rewrites, rewrite)
            && only != Some(Only::Mac)
            && tables::redirects(acl, ports)
            && tables::writes(c.rows.rewrites, rewrite)
            && unfit(fields, rewrite).is_none()
    }

    /// The rows that classify all packets of a flow, and no others. Of one that does not write the list is empty; rows that
    /// stand stay in it until they are gone.
    pub(crate) fn learn_writes(&self, e: &mut Entry) {
        e.writes = self.could_write(&e.flow.fields, e.act, e.only);
        if let Some(c) = self.classify().filter(|_| e.writes && e.class.is_empty()) {
            let rows = expand::expand(&c.rows, &e.flow.fields);
            if rows.iter().all(|r| r.exact) {
                e.class = rows;
            }
        }
        e.writes &= !e.class.is_empty();
    }

    /// A flow in front that meets it: its packets would be classified as well.
    pub(crate) fn meets_in_front(&self, e: &Entry) -> Option<Id> {
        let mut found = None;
        let _ = self
            .all
            .meets(&self.order, &e.value, &e.mask, e.place, Side::Front, |g| {
                found = Some(g);
                ControlFlow::Break(())
            });
        found
    }

    /// May it stand as a pair?
    pub(crate) fn pairs(&self, e: &Entry) -> bool {
        e.writes && !e.acl_denied && !e.class_denied && e.kept_out.is_none()
    }

    /// Is there room for one more pair?
    pub(crate) fn pair_fits(&self, e: &Entry) -> bool {
        self.acl_used < self.chip.acl.size
            && self.class_used + e.class_lines() <= self.class_size()
            && (self.in_class.len() as u32) < self.groups_size()
    }

    pub(crate) fn class_over(&self) -> bool {
        self.class_used > self.class_size() || self.in_class.len() as u32 > self.groups_size()
    }

    /// Is there no room for any pair?
    pub(crate) fn class_full(&self) -> bool {
        self.class_used >= self.class_size() || self.in_class.len() as u32 >= self.groups_size()
    }

    /// Before it is decided: who keeps it from being a pair?
    pub(crate) fn look_in_front(&mut self, id: Id) {
        let e = self.flows.get(&id);
        let could = e.filter(|e| e.writes && !e.acl_denied && !e.class_denied);
        let by = could.and_then(|e| self.meets_in_front(e));
        if let Some(e) = self.flows.get_mut(&id) {
            e.kept_out = by;
        }
    }

    /// A flow has come: pairs behind it that it meets are decided. Of others that write nothing changes, and pairs are few.
    pub(crate) fn wake_pairs(&mut self, value: &Key, mask: &Key, place: Place) {
        let met = |e: &Entry| {
            let both = mask.and(&e.mask);
            value.and(&both) == e.value.and(&both) && self.order.cmp(e.place, place).is_gt()
        };
        let pairs = self.in_class.iter().map(|(_, _, id)| *id);
        let met = pairs.filter(|id| self.flows.get(id).is_some_and(|e| met(e)));
        for g in met.collect::<Vec<_>>() {
            self.wake(g);
        }
    }

    /// A flow is gone: of those that it kept from being a pair as many are decided as there are groups free. The others
    /// wait for one.
    pub(crate) fn wake_kept_out(&mut self, gone: &Entry) {
        let mut behind = Vec::new();
        let (value, mask) = (&gone.value, &gone.mask);
        let _ = self
            .writers
            .meets(&self.order, value, mask, gone.place, Side::Behind, |g| {
                if let Some(e) = self.flows.get(&g)
                    && e.kept_out == Some(gone.place.id)
                    && !matches!(e.state.stand, Stand::Dead(_))
                {
                    behind.push((Reverse(e.flow.traffic), e.since, g));
                }
                ControlFlow::Continue(())
            });
        let free = (self.groups_size() as usize).saturating_sub(self.in_class.len());
        if behind.len() > free {
            behind.sort_unstable();
        }
        for (n, (_, _, id)) in behind.into_iter().enumerate() {
            if n < free {
                self.wake(id);
            } else if let Some(e) = self.flows.get_mut(&id) {
                e.kept_out = None;
                e.class_denied = true;
                self.note(id);
            }
        }
    }

    /// What a flow that stands as a pair is to have.
    pub(crate) fn pair_of(e: &Entry) -> Option<Pair> {
        match e.act {
            Act::Out { ports, rewrite } => {
                let plain = Rewrite::default();
                let act = Act::Out {
                    ports,
                    rewrite: plain,
                };
                Some((act, rewrite))
            }
            _ => None,
        }
    }

    /// Groups are other numbers: those that a chip has that was written before.
    pub fn regroup(&mut self, to: impl Fn(u8) -> u8) {
        let used = std::mem::take(&mut self.device.groups);
        self.device.groups = used.into_iter().map(|(n, id)| (to(n), id)).collect();
        for e in self.flows.values_mut().filter(|e| e.group != 0) {
            e.group = to(e.group);
        }
    }

    /// The group of a flow that stands as a pair.
    pub fn group(&self, id: Id) -> Option<u8> {
        self.flows.get(&id).map(|e| e.group).filter(|g| *g != 0)
    }

    // -- writes

    /// Lines and groups that new pairs take.
    pub(crate) fn new_pairs(&self, jobs: &[Job]) -> (u32, u32) {
        let (mut lines, mut groups) = (0, 0);
        for j in jobs {
            if let (Some(_), Some(e)) = (j.want.pair, self.entry(j))
                && e.standing.pair.is_none()
            {
                lines += e.class_lines();
                groups += 1;
            }
        }
        (lines, groups)
    }

    /// Would the new ones not fit beside those that there are?
    pub(crate) fn pairs_tight(&self, (lines, groups): (u32, u32)) -> bool {
        groups > 0
            && (self.device.class_used + lines > self.class_size()
                || self.device.groups.len() as u32 + groups > self.groups_size())
    }

    fn group_row(&mut self, j: &Job, act: Act, out: &mut Vec<Write>) {
        let Some(group) = self.entry(j).map(|e| e.group) else {
            return;
        };
        if let Some(s) = self.standing(j)
            && let Some(p) = &mut s.pair
        {
            p.0 = act;
            let at = FIRST_GROUP + u32::from(group);
            out.push(Write::RowAct { at, act });
        }
    }

    /// It must not answer any longer, or not while something else is written.
    pub(crate) fn turn_pair(&mut self, j: &Job, tight: bool, mixed: bool, out: &mut Vec<Write>) {
        let Some((act, writes)) = self.entry(j).and_then(|e| e.standing.pair) else {
            return;
        };
        let other = match j.want.pair {
            // What is written and where it goes to can't become something else in one write
            Some((to, new)) => {
                to == Act::Cpu
                    || (to, new) != (act, writes) && (mixed || to != act && new != writes)
            }
            None => false,
        };
        if act.real() && (tight || other) {
            self.group_row(j, Act::Cpu, out);
        }
    }

    /// A new pair, which traps.
    pub(crate) fn add_pair(&mut self, j: &Job, out: &mut Vec<Write>) {
        let Some((_, writes)) = j.want.pair else {
            return;
        };
        let (first, groups) = self.classify().map_or((0, 0), |c| (c.first, c.groups));
        let Some(e) = self.entry(j).filter(|e| e.standing.pair.is_none()) else {
            return;
        };
        let (fields, class, lines) = (e.flow.fields.clone(), e.class.clone(), e.class_lines());
        let mut all = (0..groups).map(|n| first + n);
        let Some(group) = all.find(|n| !self.device.groups.contains_key(n)) else {
            return;
        };
        self.device.groups.insert(group, j.id);
        self.device.class_used += lines;
        self.device.acl_used += 1;
        if let Some(e) = self.flows.get_mut(&j.id) {
            e.group = group;
            e.standing.pair = Some((Act::Cpu, writes));
        }
        out.push(Write::GroupAdd {
            at: FIRST_GROUP + u32::from(group),
            group,
            flow: j.id,
            fields,
        });
        for (row, r) in (0u8..).zip(class) {
            out.push(Write::ClassAdd {
                group,
                row,
                kind: r.kind,
                fields: r.fields,
                writes,
            });
        }
    }

    pub(crate) fn delete_pair(&mut self, j: &Job, out: &mut Vec<Write>) {
        let Some(e) = self.entry(j) else { return };
        if e.standing.pair.is_none() || j.want.pair.is_some() {
            return;
        }
        let (group, rows, lines) = (e.group, e.class.len() as u8, e.class_lines());
        for row in 0..rows {
            out.push(Write::ClassDel { group, row });
        }
        out.push(Write::RowDel { at: e.group_row() });
        self.device.groups.remove(&group);
        self.device.class_used -= lines;
        self.device.acl_used -= 1;
        if let Some(s) = self.standing(j) {
            s.pair = None;
        }
        if j.gone.is_none()
            && let Some(e) = self.flows.get_mut(&j.id)
        {
            e.group = 0;
        }
    }

    /// What it may do.
    pub(crate) fn answer_pair(&mut self, j: &Job, out: &mut Vec<Write>) {
        let Some((to, new)) = j.want.pair else { return };
        let Some(e) = self.entry(j) else { return };
        let Some((act, writes)) = e.standing.pair else {
            return;
        };
        let (group, rows) = (e.group, e.class.len() as u8);
        if new != writes {
            for row in 0..rows {
                out.push(Write::ClassAct {
                    group,
                    row,
                    writes: new,
                });
            }
            if let Some(s) = self.standing(j)
                && let Some(p) = &mut s.pair
            {
                p.1 = new;
            }
        }
        if to != act {
            self.group_row(j, to, out);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Flows that write a VLAN id, a priority, a DSCP, or whether there is a tag: classification does that, and names a group that a
//! row of the ACL asks for.
//!
//! ```text
//!   classification                                ACL
//!   match of the flow ─► VLAN 20, group 7    ──►  rows of flows in front that drop or trap
//!                                                 group 7 ─► ports      at the flow's place
//! ```
//!
//! Packets of such a *pair* are classified whatever is in front of it. So of flows in front that meet it none may send
//! anything: it would leave with what is written. What they drop does not leave, and the CPU gets a packet as it came. Their
//! rows see what a packet is classified with, so they may not ask for the tag; rows that do are for packets of no group.
//! And no two pairs have a packet in common. What is behind it never sees its packets.
//!
//! Its rows come and go in an order that keeps the packets: the row of the group, which traps; those that classify; then the
//! group's row answers. And the other way round. Meanwhile no row answers that is not there before and after it.
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

/// The ACL's row of a flow's group among its rows: the last one, behind those that trap while it is no pair.
pub(crate) const ROW: u8 = u8::MAX;

/// What new pairs take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewPairs {
    lines: u32,
    pub groups: u32,
    /// Of these those with two forms.
    forms: u32,
}

/// What a pair does: its row in the ACL, and what those that classify write.
pub(crate) type Pair = (Act, Rewrite);

/// Does it ask for what a packet's class may have otherwise?
pub(crate) fn asks_tag(fields: &[Oxm]) -> bool {
    let tag = |o: &Oxm| matches!(o.field, Field::VlanVid | Field::VlanPcp);
    fields.iter().any(tag)
}

/// Did packets of this match come with a tag? `None`: some, perhaps.
pub(crate) fn tagged(fields: &[Oxm]) -> Option<bool> {
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
    pub(crate) fn classify(&self) -> Option<&Classify> {
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
    fn could_write(&self, e: &Entry) -> bool {
        let (Some(c), Act::Out { ports, rewrite }) = (self.classify(), e.act) else {
            return false;
        };
        let acl = &self.chip.acl;
        if e.only == Some(Only::Mac) || !tables::writes(c.rows.rewrites, rewrite) {
            return false;
        }
        match &e.second {
            Some(second) => {
                c.forms > 0
                    && tables::redirects(acl, second.all())
                    && tables::writes(c.rows.rewrites, second.second.rewrite)
                    && second.unfit(&e.flow.fields).is_none()
            }
            None => {
                !tables::writes(acl.rewrites, rewrite)
                    && tables::redirects(acl, ports)
                    && unfit(&e.flow.fields, rewrite).is_none()
            }
        }
    }

    /// The rows that classify all packets of a flow, and no others. Of one that does not write the list is empty; rows that
    /// stand stay in it until they are gone.
    pub(crate) fn learn_writes(&self, e: &mut Entry) {
        e.writes = self.could_write(e);
        if let Some(c) = self.classify().filter(|_| e.writes && e.class.is_empty()) {
            let rows = expand::expand(&c.rows, &e.flow.fields);
            if rows.iter().all(|r| r.exact) {
                e.class = rows;
            }
        }
        e.writes &= !e.class.is_empty();
    }

    /// A flow in front that meets it and may not be there: what it sends would be written to as well.
    pub(crate) fn meets_in_front(&self, e: &Entry) -> Option<Id> {
        let mut found = None;
        let _ = self
            .all
            .meets(&self.order, &e.value, &e.mask, e.place, Side::Front, |g| {
                if !self.flows.get(&g).is_some_and(|g| g.bars()) {
                    return ControlFlow::Continue(());
                }
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
            && self.groups_left(e.second.is_some()) > 0
    }

    pub(crate) fn class_over(&self) -> bool {
        self.class_used > self.class_size()
            || [true, false].iter().any(|f| self.groups_left(*f) < 0)
    }

    /// Is there no room for any pair?
    pub(crate) fn class_full(&self) -> bool {
        self.class_used >= self.class_size()
            || [true, false].iter().all(|f| self.groups_left(*f) <= 0)
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

    /// A flow that bars has come: pairs behind it that it meets are decided. Of others that write nothing changes, and pairs are few.
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

    /// A flow is gone, or bars no longer: of those that it kept from being a pair as many are decided as there are groups
    /// free. The others wait for one.
    pub(crate) fn wake_kept_out(&mut self, value: &Key, mask: &Key, place: Place) {
        let mut behind = Vec::new();
        let _ = self
            .writers
            .meets(&self.order, value, mask, place, Side::Behind, |g| {
                if let Some(e) = self.flows.get(&g)
                    && e.kept_out == Some(place.id)
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
                let ports = e.second.as_ref().map_or(ports, |s| s.all());
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

    /// Does a pair come or go? Meanwhile packets are classified that were not, or will not be.
    pub(crate) fn pairs_move(&self, jobs: &[Job]) -> bool {
        let moves = |j: &Job, e: &Entry| e.standing.pair.is_some() != j.want.pair.is_some();
        jobs.iter()
            .any(|j| self.entry(j).is_some_and(|e| moves(j, e)))
    }

    pub(crate) fn new_pairs(&self, jobs: &[Job]) -> NewPairs {
        let mut new = NewPairs::default();
        for j in jobs {
            if let (Some(_), Some(e)) = (j.want.pair, self.entry(j))
                && e.standing.pair.is_none()
            {
                new.lines += e.class_lines();
                new.groups += 1;
                new.forms += u32::from(e.second.is_some());
            }
        }
        new
    }

    /// Would the new ones not fit beside those that there are?
    pub(crate) fn pairs_tight(&self, new: &NewPairs) -> bool {
        let numbers = |forms: bool| {
            let all = self.numbers(forms);
            let used = self.device.groups.keys().filter(|n| all.contains(n));
            (used.count() as u32, all.len() as u32)
        };
        let (forms, plain) = (numbers(true), numbers(false));
        let most = forms.1.min(self.forms_size);
        new.groups > 0
            && (self.device.class_used + new.lines > self.class_size()
                || forms.0 + new.forms > most
                || plain.0 + (new.groups - new.forms) > plain.1)
    }

    fn group_row(&mut self, j: &Job, act: Act, out: &mut Vec<Write>) {
        let Some(at) = self.labels.of(j.place(), ROW) else {
            return;
        };
        if let Some(s) = self.standing(j)
            && let Some(p) = &mut s.pair
        {
            p.0 = act;
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
        let Some(e) = self.entry(j).filter(|e| e.standing.pair.is_none()) else {
            return;
        };
        let (fields, class, lines) = (e.flow.fields.clone(), e.class.clone(), e.class_lines());
        let mut all = self.numbers(e.second.is_some());
        let Some(group) = all.find(|n| !self.device.groups.contains_key(n)) else {
            return;
        };
        self.add_forms(j, group, out);
        let classed = self.classed(j, group, writes);
        self.device.groups.insert(group, j.id);
        self.device.class_used += lines;
        self.device.acl_used += 1;
        if let Some(e) = self.flows.get_mut(&j.id) {
            e.group = group;
            e.standing.pair = Some((Act::Cpu, writes));
        }
        let (at, moves) = self.labels.insert(j.place().clone(), ROW);
        let moves = moves.into_iter();
        out.extend(moves.map(|(from, to)| Write::RowMove { from, to }));
        out.push(Write::GroupAdd {
            at,
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
                writes: classed,
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
        let ports = self.form_ports(e);
        if let Some(at) = self.labels.remove(j.place(), ROW) {
            out.push(Write::RowDel { at });
        }
        let form = |port| Write::FormDel { group, port };
        out.extend(ports.into_iter().map(form));
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
            let classed = self.classed(j, group, new);
            for row in 0..rows {
                out.push(Write::ClassAct {
                    group,
                    row,
                    writes: classed,
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

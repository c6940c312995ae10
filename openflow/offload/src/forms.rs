// SPDX-License-Identifier: Apache-2.0
//! Flows whose packets leave in two forms: some ports get the tag that they came with, another or none than the others.
//!
//! ```text
//!   classification                           ACL                        behind it, for each port
//!   match of the flow ─► VLAN 4064, group 1 ──► group 1 ─► ports 2, 3 ──┬► port 2, VLAN 4064 ─► no tag
//!                                                                       └► port 3, VLAN 4064 ─► VLAN 100
//! ```
//!
//! Such a flow is a [pair](crate::pairs), and more: what it is classified with is no VLAN id that it is to have, but one that no
//! other packet has on its way, by which the tables of the ports know it. These are not asked for a group. So they are the
//! caller's to keep apart: what comes in with one of these VLAN ids is not to get there, and no other flow is to write it.
//!
//! The forms stand before the group's row and those that classify, and go after them.
use crate::answer::{Leaves, Second};
use crate::pairs::{tagged, unfit};
use crate::plan::Job;
use crate::{Act, Entry, Id, NotPair, Offload, PortMask, Rewrite, Tagging, Wanted, Write};
use std::ops::RangeInclusive;
use tandem_openflow::{Field, Oxm};

/// The first VLAN id of packets that leave in two forms.
pub const FORM_VIDS: u16 = 4064;
/// So many of them: all but the last one, which no tag can have.
pub const FORMS: u8 = 31;
/// The bits that they, and the one behind them, have in common.
pub const MASK_VIDS: u16 = 0xfe0;

/// Both forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forms {
    ports: PortMask,
    rewrite: Rewrite,
    pub second: Second,
}

/// What packets of this match leave with. `None`: it is not known, or no tag can be so.
fn leaves(fields: &[Oxm], rewrite: Rewrite) -> Option<Leaves> {
    let own = || {
        let vid = fields.iter().find(|o| o.field == Field::VlanVid)?;
        let vid = (vid.mask == Field::VlanVid.all_ones()).then_some(vid.value as u16 & 0xfff)?;
        (1..=4094).contains(&vid).then_some(vid)
    };
    let vid = match (rewrite.tag, rewrite.vid) {
        (Tagging::Goes, _) => None,
        (_, Some(vid)) => Some(vid),
        (_, None) if tagged(fields) == Some(false) => None,
        (_, None) => Some(own()?),
    };
    Some(Leaves {
        vid,
        pcp: rewrite.pcp.filter(|_| vid.is_some()),
    })
}

impl Forms {
    /// Of what a flow wants, and the ports that get another form.
    pub(crate) fn of(wanted: Wanted, second: Option<Second>) -> Option<Box<Forms>> {
        let (Wanted::Act(Act::Out { ports, rewrite }), Some(second)) = (wanted, second) else {
            return None;
        };
        Some(Box::new(Forms {
            ports,
            rewrite,
            second,
        }))
    }

    /// Does a flow that wants this want these?
    pub(crate) fn is_of(&self, wanted: Wanted) -> bool {
        let (ports, rewrite) = (self.ports, self.rewrite);
        wanted == Wanted::Act(Act::Out { ports, rewrite })
    }

    /// All ports.
    pub(crate) fn all(&self) -> PortMask {
        let mut all = self.ports;
        all.join(self.second.ports);
        all
    }

    /// Is it known of these packets what each port gets? If not: why.
    pub(crate) fn unfit(&self, fields: &[Oxm]) -> Option<NotPair> {
        let both = [self.rewrite, self.second.rewrite];
        if let Some(not) = both.iter().find_map(|r| unfit(fields, *r)) {
            return Some(not);
        }
        if tagged(fields).is_none() {
            return Some(NotPair::Tag);
        }
        if self.rewrite.dscp != self.second.rewrite.dscp {
            return Some(NotPair::Forms);
        }
        let known = |r: &Rewrite| leaves(fields, *r).is_some();
        (!both.iter().all(known)).then_some(NotPair::OwnTag)
    }

    /// What each port gets.
    fn each(&self, fields: &[Oxm]) -> Vec<(u8, Leaves)> {
        let of = |ports: PortMask, rewrite| {
            let leaves = leaves(fields, rewrite);
            ports.ports().filter_map(move |p| Some((p, leaves?)))
        };
        let first = of(self.ports, self.rewrite);
        let second = of(self.second.ports, self.second.rewrite);
        first.chain(second).collect()
    }
}

impl Offload {
    /// Numbers of groups for flows of two forms, or for others.
    pub(crate) fn numbers(&self, forms: bool) -> RangeInclusive<u8> {
        let (first, groups, own) = self
            .classify()
            .map_or((1, 0, 0), |c| (c.first, c.groups, c.forms.min(c.groups)));
        let (from, n) = match forms {
            true => (first, own),
            false => (first.saturating_add(own), groups - own),
        };
        match n {
            0 => RangeInclusive::new(1, 0),
            n => from..=from.saturating_add(n - 1),
        }
    }

    /// Groups that are left of those for flows of two forms, or of the others; less than none, where there are too many.
    pub(crate) fn groups_left(&self, forms: bool) -> i64 {
        let all = self.numbers(forms).len() as i64;
        let (own, pairs) = (i64::from(self.in_forms), self.in_class.len() as i64);
        match forms {
            true => all.min(i64::from(self.forms_size)) - own,
            false => all - (pairs - own),
        }
    }

    /// Of those pairs that are too many the one with the least traffic.
    pub(crate) fn least_pair(&self) -> Option<Id> {
        let over = [true, false].into_iter().find(|f| self.groups_left(*f) < 0);
        let is = |id: &Id| {
            let e = self.flows.get(id);
            over.is_none_or(|forms| e.is_some_and(|e| e.second.is_some() == forms))
        };
        self.in_class.iter().map(|(_, _, id)| *id).find(is)
    }

    /// The VLAN id of a group's packets, if it is one of two forms.
    pub fn form_vid(&self, group: u8) -> Option<u16> {
        let own = self.numbers(true);
        let n = own.contains(&group).then(|| group - own.start())?;
        Some(FORM_VIDS + u16::from(n))
    }

    /// What rows that classify write.
    pub(crate) fn classed(&self, j: &Job, group: u8, writes: Rewrite) -> Rewrite {
        let e = self.entry(j).filter(|e| e.second.is_some());
        let (Some(e), Some(vid)) = (e, self.form_vid(group)) else {
            return writes;
        };
        Rewrite {
            tag: match tagged(&e.flow.fields) {
                Some(false) => Tagging::Comes,
                _ => Tagging::Stays,
            },
            vid: Some(vid),
            pcp: None,
            dscp: writes.dscp,
        }
    }

    pub(crate) fn add_forms(&self, j: &Job, group: u8, out: &mut Vec<Write>) {
        let (Some(e), Some(vid)) = (self.entry(j), self.form_vid(group)) else {
            return;
        };
        let Some(forms) = &e.second else { return };
        let fields = &e.flow.fields;
        let all = forms.each(fields).into_iter();
        out.extend(all.map(|(port, leaves)| Write::FormAdd {
            group,
            vid,
            port,
            leaves,
            fields: fields.clone(),
        }));
    }

    /// Ports that have a row for its packets, while it is a pair.
    pub(crate) fn form_ports(&self, e: &Entry) -> Vec<u8> {
        let forms = e.second.as_ref();
        forms.map_or(Vec::new(), |f| f.all().ports().collect())
    }
}

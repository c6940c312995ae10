// SPDX-License-Identifier: Apache-2.0
//! Access ports: a port's frames without a tag in a VLAN's domain.
//!
//! ```text
//!   in_port=1, untagged  ► push_vlan 100, goto 1     port 1: PVID 100, out without a tag
//!   in_port=4, vlan 100  ► goto 1                    port 4: VLAN 100, out with its tag
//!   table 1: sources     ► goto 2
//!   table 2: vlan 100, eth_dst=N ► pop_vlan, output 1     one entry (100, N) ► port 1, for frames of both
//! ```
//!
//! Where a table of sources is one question, what goes on to it from a port in a form has, behind the flows in front, one
//! VLAN: this is its *class*. Frames of the ports that have the class of a VLAN are one domain of the chip, whatever tag they
//! came with; and the form in which a port's frames are the domain's is the form in which the domain's leave by it. So a
//! port sends one VLAN without a tag, as the hardware does. An answer that wants another form is the CPU's.
use crate::Compose;
use crate::form::{Effect, Ports, TPID, Tag};
use crate::source::{Sends, exact, vlan};
use std::collections::{BTreeMap, BTreeSet};
use tandem_ofoffload::{FORM_VIDS, MASK_VIDS, PortMask, Rewrite, Vlan};
use tandem_openflow::{Field, Oxm};

/// Of a port and the tag that frames come with, the VLAN that they are in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes {
    of: BTreeMap<(u32, Vlan), u16>,
    vlans: BTreeSet<u16>,
}

impl Classes {
    /// Of what is known of each; a VLAN that no port has without a tag needs none.
    fn new(mut all: BTreeMap<(u32, Vlan), u16>) -> Classes {
        // A port sends a VLAN in one form
        let twice = |(p, v): &(u32, Vlan), to: u16, all: &BTreeMap<(u32, Vlan), u16>| {
            *v == Vlan::Untagged && all.contains_key(&(*p, Vlan::Tag(to)))
        };
        let both: Vec<(u32, Vlan)> = all
            .iter()
            .filter(|(k, to)| twice(k, **to, &all))
            .map(|(k, _)| *k)
            .collect();
        for k in both {
            all.remove(&k);
        }
        let bare = all.iter().filter(|((_, v), _)| *v == Vlan::Untagged);
        let vlans: BTreeSet<u16> = bare.map(|(_, to)| *to).collect();
        all.retain(|_, to| vlans.contains(to));
        Classes { of: all, vlans }
    }

    /// The VLAN that such frames are in.
    pub fn of(&self, port: u32, came: Vlan) -> Option<u16> {
        self.of.get(&(port, came)).copied()
    }

    /// The same, or as they come.
    pub fn vlan(&self, port: u32, came: Vlan) -> Vlan {
        self.of(port, came).map_or(came, Vlan::Tag)
    }

    /// Has this domain members?
    pub fn has(&self, v: Vlan) -> bool {
        matches!(v, Vlan::Tag(v) if self.vlans.contains(&v))
    }

    /// The domains that have.
    pub fn vlans(&self) -> impl Iterator<Item = Vlan> + '_ {
        self.vlans.iter().map(|v| Vlan::Tag(*v))
    }

    /// With which tag frames of a domain come in by a port.
    pub fn came(&self, port: u32, v: Vlan) -> Option<Vlan> {
        if !self.has(v) {
            return Some(v).filter(|v| self.of(port, *v).is_none());
        }
        let forms = [Vlan::Untagged, v].into_iter();
        forms
            .into_iter()
            .find(|f| Some(self.vlan(port, *f)) == Some(v) && self.of(port, *f).is_some())
    }
}

/// OpenFlow's number of a port of the chip.
fn number(ports: &Ports, port: u8) -> Option<u32> {
    let one = PortMask::one(port);
    ports.iter().find(|(_, m)| **m == one).map(|(n, _)| *n)
}

impl Compose {
    /// Ports that are members of VLANs in the chip: whether without a tag.
    pub fn members(&self) -> BTreeMap<(u32, u16), bool> {
        let all = self.sources.classes.of.iter();
        all.map(|((p, came), v)| ((*p, *v), *came == Vlan::Untagged))
            .collect()
    }

    /// Beginnings came or went: are classes others?
    pub(crate) fn reclass(&mut self) {
        let new = Classes::new(self.classes());
        if new == self.sources.classes {
            return;
        }
        self.sources.classes = new;
        self.sources.reclassed = true;
        self.rejoin();
    }

    pub(crate) fn take_reclassed(&mut self) -> bool {
        std::mem::take(&mut self.sources.reclassed)
    }

    fn classes(&self) -> BTreeMap<(u32, Vlan), u16> {
        let mut all: BTreeMap<(u32, Vlan), Option<u16>> = BTreeMap::new();
        for n in self.sourced_nodes().filter(|_| self.limits.members) {
            let Some(x) = self.node(n) else { continue };
            let (Some(port), Some(came)) = (exact(&x.fields, Field::InPort), vlan(&x.fields))
            else {
                // Frames of more than one form go on together
                return BTreeMap::new();
            };
            let port = port as u32;
            let here = self.ports.get(&port).is_some_and(|m| m.count() == 1);
            // By some the chip knows packets that leave in two forms
            let kept = |v: u16| self.limits.forms && v & MASK_VIDS == FORM_VIDS;
            let to = x.form.vlan(came).filter(|v| here && !kept(*v));
            let known = all.entry((port, came)).or_insert(to);
            if *known != to {
                *known = None;
            }
        }
        all.into_iter()
            .filter_map(|(k, to)| Some((k, to?)))
            .collect()
    }

    /// The domain of all packets of a match, 0 for none that has members; `None`: not known, or nobody asks.
    pub(crate) fn domain(&self, fields: &[Oxm]) -> Option<u16> {
        let classes = &self.sources.classes;
        if classes.vlans.is_empty() {
            return None;
        }
        let port = exact(fields, Field::InPort)? as u32;
        Some(classes.of(port, vlan(fields)?).unwrap_or(0))
    }

    /// Ports that packets which came so leave by in the form of a domain.
    pub(crate) fn leaves(&self, v: u16, came: Vlan, sends: &Sends) -> Option<PortMask> {
        let mut all = PortMask::default();
        for (ports, effect) in sends {
            let form = form(v, came, *effect)?;
            for p in ports.ports() {
                let of = self.sources.classes.of(number(&self.ports, p)?, form);
                of.filter(|of| *of == v)?;
            }
            all.join(*ports);
        }
        Some(all)
    }
}

/// With which tag a packet leaves, if it is one of the two forms of a VLAN.
fn form(v: u16, came: Vlan, effect: Effect) -> Option<Vlan> {
    if effect.rewrite != Rewrite::default() {
        return None;
    }
    match (came, effect.tag) {
        (Vlan::Untagged, Tag::Keep) | (Vlan::Tag(_), Tag::Pop) => Some(Vlan::Untagged),
        (Vlan::Tag(_), Tag::Keep) => Some(Vlan::Tag(v)),
        (
            Vlan::Untagged,
            Tag::Push {
                tpid: TPID,
                vid: Some(to),
                pcp: None | Some(0),
            },
        ) if to == v => Some(Vlan::Tag(v)),
        _ => None,
    }
}

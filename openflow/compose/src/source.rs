// SPDX-License-Identifier: Apache-2.0
//! A table of sources as one question to the chip.
//!
//! ```text
//!   table 1: …                                 ► …                 looked at first, chains as others
//!            eth_src=M, in_port=P, vlan=V      ► goto 2            a flow for each station that was learned
//!            (vlan=V)                          ► controller, …     all else
//! ```
//!
//! As chains that is sources × destinations. The chip asks it itself where no row of the ACL matched: a frame whose
//! source the MAC table does not have at its port goes to the CPU. So behind such a table there is one beginning of
//! chains, *checked*, as if the table were not there, and its rules may answer in the MAC table alone.
//!
//! An entry of the MAC table is for all ports. Rules that differ in their port alone are one, and it answers if all
//! ports agree that have sources in its VLAN. And an entry says both, where its station is and where frames to it go:
//! one that sends a station's frames to where no flow has it as a source does not answer.
use crate::form::{Answer, Effect, Looks, Seen, both, of};
use crate::members::Classes;
use crate::rules::Owner;
use crate::tree::NodeId;
use crate::{Compose, FlowId, Rule, Through, Via, form};
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use tandem_ofoffload::{Beyond, Only, PortMask, Step, Vlan};
use tandem_openflow::{Field, Oxm, oxm};

/// A flow that asks for a source and goes on: where, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sort {
    to: u8,
    step: Step,
}

/// The same of a beginning whose table is one question.
pub(crate) type Sourced = Checked;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub to: u8,
    pub step: Step,
}

/// A station that a table of sources has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// Of the frame as it comes in.
    pub vlan: Vlan,
    /// Its address.
    pub address: u64,
    /// OpenFlow's number of its port.
    pub port: u32,
}

/// Where packets go, in which forms.
pub(crate) type Sends = Vec<(PortMask, Effect)>;

#[derive(Clone, Debug)]
struct Member {
    port: Option<u32>,
    vlan: Option<Vlan>,
    answer: Answer,
    sends: Option<Sends>,
    via: Via,
    idle: bool,
    counted: bool,
}

/// Checked rules that differ in their port alone.
#[derive(Clone, Debug)]
struct Group {
    place: Vec<Step>,
    fields: Vec<Oxm>,
    /// The VLAN that all of it is in, whatever tag.
    domain: Option<u16>,
    members: BTreeMap<NodeId, Member>,
}

impl Group {
    fn entry(&self) -> Option<(Vlan, u64)> {
        let Some(v) = self.domain else {
            return entry(&self.fields);
        };
        let address = exact(&self.fields, Field::EthDst)? as u64;
        (self.fields.len() == 1).then_some((Vlan::Tag(v), address))
    }
}

/// What the rules of a group have in common: place, match and domain.
type GroupKey = (Vec<Step>, Vec<Oxm>, Option<u16>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// Beginnings whose table is one question, and the sources that it has for them.
    of: BTreeMap<NodeId, HashMap<FlowId, Source>>,
    count: HashMap<Source, u32>,
    /// Of each address so many, and addresses that came or went.
    addresses: HashMap<u64, u32>,
    moved: BTreeSet<u64>,
    ports: BTreeMap<Vlan, BTreeMap<u32, u32>>,
    /// Ports of a VLAN whose sources the chip may know.
    known: BTreeMap<Vlan, BTreeSet<u32>>,
    groups: HashMap<u32, Group>,
    ids: HashMap<GroupKey, u32>,
    member_of: HashMap<NodeId, u32>,
    by_vlan: BTreeMap<Vlan, BTreeSet<u32>>,
    by_mac: HashMap<(Vlan, u64), BTreeSet<u32>>,
    next: u32,
    dirty: BTreeSet<u32>,
    stale: BTreeSet<Vlan>,
    /// Other beginnings: nothing is known.
    anew: bool,
    /// Which VLANs ports' frames are in.
    pub classes: Classes,
    /// They are others than before.
    pub reclassed: bool,
    /// Flows whose stations became sources.
    asked: BTreeSet<FlowId>,
}

impl Sources {
    pub fn is_on(&self) -> bool {
        !self.of.is_empty()
    }
}

pub(crate) fn exact(fields: &[Oxm], f: Field) -> Option<u128> {
    of(fields, f)
        .filter(|o| o.mask == f.all_ones())
        .map(|o| o.value)
}

pub(crate) fn vlan(fields: &[Oxm]) -> Option<Vlan> {
    let v = exact(fields, Field::VlanVid)?;
    match v & u128::from(oxm::VID_PRESENT) {
        0 => (v == 0).then_some(Vlan::Untagged),
        _ => Some(Vlan::Tag(v as u16 & 0xfff)),
    }
}

fn tag(v: Vlan) -> Vec<Oxm> {
    match v {
        Vlan::Any => Vec::new(),
        Vlan::Untagged => vec![Oxm::exact(Field::VlanVid, 0)],
        Vlan::Tag(v) => {
            let v = u128::from(v | oxm::VID_PRESENT);
            vec![Oxm::exact(Field::VlanVid, v)]
        }
    }
}

/// A match that is an entry of the MAC table: its VLAN and address.
fn entry(fields: &[Oxm]) -> Option<(Vlan, u64)> {
    let address = exact(fields, Field::EthDst)? as u64;
    let only = fields
        .iter()
        .all(|o| matches!(o.field, Field::EthDst | Field::VlanVid));
    only.then_some((vlan(fields)?, address))
}

/// The source that a match asks for.
pub(crate) fn address(fields: &[Oxm]) -> Option<u64> {
    exact(fields, Field::EthSrc).map(|a| a as u64)
}

/// Puts one to those of a key, or takes it from them.
pub(crate) fn put<K: Copy + Eq + Hash, T: Ord>(
    all: &mut HashMap<K, BTreeSet<T>>,
    key: K,
    one: T,
    to: bool,
) {
    let list = all.entry(key).or_default();
    if to {
        list.insert(one);
    } else {
        list.remove(&one);
    }
    if list.is_empty() {
        all.remove(&key);
    }
}

/// The ports of an answer that an entry of the MAC table can give, none for a drop.
fn unchanged(a: &Answer) -> Option<PortMask> {
    match a {
        Answer::Out { ports, effect } => (*effect == Effect::default()).then_some(*ports),
        Answer::Drop => Some(PortMask::default()),
        Answer::Forms(_) | Answer::Cpu(_) => None,
    }
}

fn without(ports: PortMask, less: PortMask) -> PortMask {
    let mut left = PortMask::default();
    for p in ports.ports().filter(|p| !less.has(*p)) {
        left.insert(p);
    }
    left
}

fn is_group(address: u64) -> bool {
    address >> 40 & 1 == 1
}

fn sort_of(k: &crate::Known) -> Option<Sort> {
    let i = &k.flow.instructions;
    let none = |l: &Option<Vec<_>>| l.as_ref().is_none_or(Vec::is_empty);
    let goes_on = none(&i.apply) && none(&i.write);
    let nothing = i.meter.is_none() && i.metadata.is_none() && !i.clear;
    let fields: Vec<&Oxm> = k.flow.fields.iter().filter(|o| o.mask != 0).collect();
    let asks = fields.iter().all(|o| {
        matches!(o.field, Field::InPort | Field::EthSrc | Field::VlanVid)
            && o.mask == o.field.all_ones()
    });
    let has = |f| fields.iter().any(|o| o.field == f);
    // Nobody counts who passes the question
    let unseen = !k.flow.idle && !k.flow.counted;
    let shape = goes_on && nothing && asks && has(Field::InPort) && has(Field::EthSrc) && unseen;
    shape.then_some(Sort {
        to: i.goto?,
        step: k.step.clone(),
    })
}

impl Compose {
    /// Does a chip have to ask for the source of a frame that no row matched? It begins before, and ends after, the
    /// writes of the changes that came with another answer than before.
    pub fn asks_sources(&self) -> bool {
        self.sources.is_on()
    }

    /// Stations that a frame may come from to be answered in the MAC table.
    pub fn sources(&self) -> BTreeSet<Source> {
        let all = self.sources.count.keys().copied();
        let there = |s: &Source| {
            self.is_source(Source {
                vlan: self.sources.classes.vlan(s.port, s.vlan),
                ..*s
            })
        };
        all.filter(there).collect()
    }

    /// Does the chip, which counts nothing there, ask for the source of a flow?
    pub fn is_question(&self, id: FlowId) -> bool {
        self.sources.of.values().any(|of| of.contains_key(&id))
    }

    /// Flows for which it began to do so since this was asked last.
    pub fn take_questions(&mut self) -> BTreeSet<FlowId> {
        std::mem::take(&mut self.sources.asked)
    }

    /// What there is of a flow among those of its table.
    pub(crate) fn sort(&mut self, id: FlowId, to: bool) {
        let Some(k) = self.flows.get(&id) else { return };
        let (sort, priority) = (sort_of(k), k.flow.priority);
        let address = address(&k.flow.fields);
        let Some(t) = self.tables.get_mut(&k.flow.table) else {
            return;
        };
        let sorts = t.sorts.entry(priority).or_default();
        match sorts.iter_mut().find(|(s, _)| *s == sort) {
            Some((_, n)) => *n = if to { *n + 1 } else { n.saturating_sub(1) },
            // Mostly there is one
            None if to => {
                sorts.reserve_exact(1);
                sorts.push((sort.clone(), 1));
            }
            None => {}
        }
        sorts.retain(|(_, n)| *n > 0);
        let whole = match &sorts[..] {
            [(s, _)] => s.clone(),
            _ => None,
        };
        match whole {
            Some(s) => drop(t.sourced.insert(priority, s)),
            None => drop(t.sourced.remove(&priority)),
        }
        if sorts.is_empty() {
            t.sorts.remove(&priority);
        }
        if let (Some(_), Some(a)) = (sort, address) {
            put(&mut t.sources, a, id, to);
        }
    }

    /// The sources of a table: all flows of one priority.
    pub(crate) fn source_of(&self, table: u8) -> Option<(u16, Sort)> {
        let first = self.tables.get(&table)?.sourced.last_key_value();
        first.map(|(p, s)| (*p, s.clone()))
    }

    /// A flow came, changed or is about to go: is the table other than before for those that go on to it?
    pub(crate) fn resorted(
        &mut self,
        id: FlowId,
        table: u8,
        priority: u16,
        before: Option<(u16, Sort)>,
        here: bool,
    ) -> bool {
        let now = self.source_of(table);
        let first = now.as_ref().map(|(p, _)| *p);
        if now != before || first.is_some_and(|p| priority < p) {
            self.regrow(table);
            return true;
        }
        if first == Some(priority) {
            let at = |n: &&NodeId| self.node(**n).is_some_and(|x| x.to == Some(table));
            let nodes: Vec<NodeId> = self.sources.of.keys().filter(at).copied().collect();
            for n in nodes {
                let new = self.source_at(n, id).filter(|_| here);
                self.note(n, id, new);
            }
        }
        false
    }

    /// Is the table that a beginning goes on to one of sources, for it?
    pub(crate) fn sourced(&self, n: NodeId) -> Option<Sourced> {
        let x = self.node(n)?;
        let to = x.to?;
        let (_, sort) = self.source_of(to)?;
        let own = Oxm::exact(Field::EthSrc, 0);
        let seen = x.form.back(&x.fields, &[own]);
        if !self.limits.sources || x.form.checked || seen != Seen::If(vec![own]) {
            return None;
        }
        // What has no source there: all of it is the CPU's
        let behind = (Excluded((sort.step.clone(), FlowId::MAX)), Unbounded);
        let flows = self.tables.get(&to)?.flows.range(behind);
        let rest = flows.filter_map(|(_, id)| self.child(n, *id)).next()?;
        let all = rest.fields == x.fields && rest.form.cpu.is_some();
        all.then_some(Checked {
            to: sort.to,
            step: sort.step,
        })
    }

    /// What of a source's flow is asked of a frame that comes in.
    fn source_at(&self, n: NodeId, id: FlowId) -> Option<Source> {
        let (x, k) = (self.node(n)?, self.flows.get(&id)?);
        let Seen::If(more) = x.form.back(&x.fields, &k.flow.fields) else {
            return None;
        };
        let all = both(&x.fields, &more)?;
        Some(Source {
            vlan: vlan(&all)?,
            address: exact(&all, Field::EthSrc)? as u64,
            port: exact(&all, Field::InPort)? as u32,
        })
    }

    pub(crate) fn enter_sourced(&mut self, n: NodeId) {
        let Some((p, to)) = self.node(n).and_then(|x| {
            let to = x.to?;
            Some((self.source_of(to)?.1.step, to))
        }) else {
            return;
        };
        let Some(t) = self.tables.get(&to) else {
            return;
        };
        let flows = t.flows.range((p.clone(), 0)..=(p, FlowId::MAX));
        let flows: Vec<FlowId> = flows.map(|(_, id)| *id).collect();
        self.sources.of.insert(n, HashMap::default());
        self.sources.anew = true;
        for id in flows {
            let new = self.source_at(n, id);
            self.note(n, id, new);
        }
    }

    pub(crate) fn leave_sourced(&mut self, n: NodeId) {
        let ids: Vec<FlowId> = match self.sources.of.get(&n) {
            Some(of) => of.keys().copied().collect(),
            None => return,
        };
        for id in ids {
            self.note(n, id, None);
        }
        self.sources.of.remove(&n);
        self.sources.anew = true;
    }

    fn note(&mut self, n: NodeId, id: FlowId, new: Option<Source>) {
        let s = &mut self.sources;
        let Some(of) = s.of.get_mut(&n) else { return };
        let old = match new {
            Some(new) => of.insert(id, new),
            None => of.remove(&id),
        };
        if old == new {
            return;
        }
        if new.is_some() {
            s.asked.insert(id);
        }
        for (one, to) in [(old, false), (new, true)] {
            let Some(one) = one else { continue };
            let ports = s.ports.entry(one.vlan).or_default();
            for c in [
                s.count.entry(one).or_default(),
                ports.entry(one.port).or_default(),
            ] {
                *c = if to { *c + 1 } else { c.saturating_sub(1) };
            }
            let within = s.classes.vlan(one.port, one.vlan);
            if ports.get(&one.port).is_some_and(|c| *c <= 1) {
                s.stale.insert(within);
            }
            ports.retain(|_, c| *c > 0);
            if s.count.get(&one) == Some(&0) {
                s.count.remove(&one);
            }
            let there = s.addresses.entry(one.address).or_default();
            *there = if to {
                *there + 1
            } else {
                there.saturating_sub(1)
            };
            if *there <= 1 {
                s.moved.insert(one.address);
            }
            if *there == 0 {
                s.addresses.remove(&one.address);
            }
            let of = s.by_mac.get(&(within, one.address));
            s.dirty.extend(of.into_iter().flatten());
        }
    }

    /// Does every flow that such a frame meets let it pass? The VLAN is that of the domain.
    fn is_source(&self, s: Source) -> bool {
        let known = self.sources.known.get(&s.vlan);
        let Some(came) = self.sources.classes.came(s.port, s.vlan) else {
            return false;
        };
        let s = Source { vlan: came, ..s };
        if !self.sources.count.contains_key(&s) || !known.is_some_and(|k| k.contains(&s.port)) {
            return false;
        }
        let mut frame = tag(s.vlan);
        frame.push(Oxm::exact(Field::InPort, u128::from(s.port)));
        frame.push(Oxm::exact(Field::EthSrc, u128::from(s.address)));
        self.sources.of.keys().all(|n| {
            let Some(x) = self.node(*n) else { return true };
            let Some(met) = both(&x.fields, &frame) else {
                return true;
            };
            let flows =
                x.to.and_then(|t| self.tables.get(&t)?.sources.get(&s.address));
            flows.into_iter().flatten().any(|id| {
                let Some(k) = self.flows.get(id) else {
                    return false;
                };
                x.sourced.as_ref().is_some_and(|c| c.step == k.step)
                    && match x.form.back(&met, &k.flow.fields) {
                        Seen::If(more) => both(&met, &more).is_some_and(|m| m == met),
                        _ => false,
                    }
            })
        })
    }

    /// The ports of a VLAN whose chains stand in one place and whose frames look the same there, the most of them: an
    /// entry is one for all. The sources of the others are the CPU's.
    fn ports_known(&self, v: Vlan) -> BTreeSet<u32> {
        let mut classes: BTreeMap<(Vec<Step>, Looks), BTreeSet<u32>> = BTreeMap::new();
        let s = &self.sources;
        let within = s.classes.has(v);
        let ports = |came: Vlan| s.ports.get(&came).into_iter().flat_map(|p| p.keys());
        let both = [v, Vlan::Untagged]
            .into_iter()
            .take(1 + usize::from(within));
        let all = both.flat_map(|came| ports(came).map(move |p| (came, p)));
        for (came, p) in all.filter(|(came, p)| s.classes.came(**p, v) == Some(*came)) {
            let mut frame = tag(came);
            frame.push(Oxm::exact(Field::InPort, u128::from(*p)));
            let met = |n: &&NodeId| {
                let x = self.node(**n);
                x.is_some_and(|x| form::both(&x.fields, &frame).is_some())
            };
            let nodes = self.sources.of.keys().filter(met);
            let looks = |n| {
                let x = self.node(n)?;
                let looks = match within {
                    true => x.form.looks_within(),
                    false => x.form.looks(),
                };
                Some((self.place(n), looks))
            };
            let mut places: BTreeSet<_> = nodes.filter_map(|n| looks(*n)).collect();
            if places.len() == 1
                && let Some(one) = places.pop_first()
            {
                classes.entry(one).or_default().insert(*p);
            }
        }
        let most = classes.into_values().rev().max_by_key(BTreeSet::len);
        most.unwrap_or_default()
    }

    pub(crate) fn join(&mut self, n: NodeId, rule: Rule) {
        let port = of(&rule.fields, Field::InPort).map(|o| o.value as u32);
        let came = vlan(&rule.fields);
        let sends = self.node(n).and_then(|x| self.sends(x));
        let s = &mut self.sources;
        let domain = port.zip(came).and_then(|(p, v)| s.classes.of(p, v));
        let mut fields = rule.fields;
        fields.retain(|o| match o.field {
            Field::InPort => false,
            Field::VlanVid => domain.is_none(),
            _ => true,
        });
        let key = (rule.place, fields, domain);
        let g = *s.ids.entry(key.clone()).or_insert_with(|| {
            s.next += 1;
            let group = Group {
                place: key.0,
                fields: key.1,
                domain: key.2,
                members: BTreeMap::new(),
            };
            if let Some((v, a)) = group.entry() {
                s.by_vlan.entry(v).or_default().insert(s.next);
                put(&mut s.by_mac, (v, a), s.next, true);
            }
            s.groups.insert(s.next, group);
            s.next
        });
        let member = Member {
            port,
            vlan: came,
            answer: rule.answer,
            sends,
            via: rule.via,
            idle: rule.idle,
            counted: rule.counted,
        };
        if let Some(group) = s.groups.get_mut(&g) {
            group.members.insert(n, member);
        }
        s.member_of.insert(n, g);
        s.dirty.insert(g);
    }

    pub(crate) fn part(&mut self, n: NodeId) {
        let s = &mut self.sources;
        if let Some(g) = s.member_of.remove(&n) {
            if let Some(group) = s.groups.get_mut(&g) {
                group.members.remove(&n);
            }
            s.dirty.insert(g);
        }
    }

    pub(crate) fn group_of(&self, n: NodeId) -> Option<u32> {
        self.sources.member_of.get(&n).copied()
    }

    /// What the rules of a group are as one.
    fn merged(&self, g: &Group) -> Option<Rule> {
        let known = |v: &Vlan| self.sources.known.get(v).cloned().unwrap_or_default();
        let first = g.members.values().next()?;
        let can = || -> Option<Answer> {
            let (v, address) = g.entry()?;
            if g.domain.is_none() && self.sources.classes.has(v) {
                // Frames of no member
                return None;
            }
            let ports = known(&v);
            let heard = |m: &&Member| m.port.is_none_or(|p| ports.contains(&p));
            let those: Vec<&Member> = g.members.values().filter(heard).collect();
            let covers = |p: &u32| those.iter().any(|m| m.port.is_none_or(|q| q == *p));
            if !ports.iter().all(covers) {
                return None;
            }
            // What is two forms of a packet for a row may be one entry of a domain
            let own = |m: &&Member| self.passes(g.domain, m).is_none();
            if let Some(&Answer::Cpu(b)) = those.first().map(|m| &m.answer)
                && those.iter().all(|m| m.answer == Answer::Cpu(b))
                && those.iter().any(own)
            {
                return Some(Answer::Cpu(b));
            }
            // Out of the same ports, but for the one that it came in by
            let mut to = PortMask::default();
            for m in &those {
                to.join(self.passes(g.domain, m)?);
            }
            let same = |m: &&Member| {
                let own = m.port.and_then(|p| self.ports.get(&p).copied());
                let own = own.unwrap_or_default();
                let out = self.passes(g.domain, m);
                out.is_some_and(|o| without(o, own) == without(to, own))
            };
            let at = |port: u32| Source {
                vlan: v,
                address,
                port,
            };
            let mut there = self.ports.iter().filter(|(_, m)| **m == to);
            let station =
                to.count() > 1 || is_group(address) || there.any(|(p, _)| self.is_source(at(*p)));
            let can = to.count() > 0 && station && those.iter().all(same);
            can.then_some(Answer::Out {
                ports: to,
                effect: Effect::default(),
            })
        };
        let mut flows: Vec<FlowId> = g.members.keys().flat_map(|n| self.way(*n)).collect();
        flows.sort_unstable();
        flows.dedup();
        let via = g.members.values().flat_map(|m| m.via.iter().copied());
        let via: BTreeSet<Through> = via.collect();
        Some(Rule {
            place: g.place.clone(),
            fields: g.fields.clone(),
            answer: can().unwrap_or(match first.answer {
                // What it is for without the question as well
                Answer::Cpu(Some(b)) if g.members.values().all(|m| m.answer == first.answer) => {
                    Answer::Cpu(Some(b))
                }
                _ => Answer::Cpu(Some(Beyond::Source)),
            }),
            idle: g.members.values().any(|m| m.idle),
            counted: g.members.values().any(|m| m.counted),
            checked: true,
            // Of a domain there is one entry for each address
            only: Some(match g.entry() {
                Some((v, _)) if g.domain.is_none() && self.sources.classes.has(v) => Only::Acl,
                _ => Only::Mac,
            }),
            unknown: false,
            domain: g.domain,
            flows,
            // Entries count nothing
            resized: Vec::new(),
            via: Arc::new(via.into_iter().collect()),
            ends: None,
        })
    }

    /// Ports that an entry sends a member's packets to as they leave the domain; none for a drop.
    fn passes(&self, domain: Option<u16>, m: &Member) -> Option<PortMask> {
        match domain {
            None => unchanged(&m.answer),
            Some(v) => self.leaves(v, m.vlan?, m.sends.as_ref()?),
        }
    }

    /// All that were told of are told anew, as their groups are others.
    pub(crate) fn rejoin(&mut self) {
        let nodes: Vec<NodeId> = self.sources.member_of.keys().copied().collect();
        for n in nodes {
            self.part(n);
            self.emit(n);
        }
    }

    /// Beginnings whose table is one question.
    pub(crate) fn sourced_nodes(&self) -> impl Iterator<Item = NodeId> {
        self.sources.of.keys().copied()
    }

    /// Addresses that became sources, or are none any more, since it was asked.
    pub(crate) fn changed_sources(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.sources.moved)
    }

    /// Can no frame of it have a source that the chip knows?
    pub(crate) fn unknown(&self, rule: &Rule) -> bool {
        let known = |a| self.sources.addresses.contains_key(&a);
        self.sources.is_on() && address(&rule.fields).is_some_and(|a| !known(a))
    }

    /// The rule that a chain of no table of sources may be.
    pub(crate) fn only(&self, rule: &Rule) -> Option<Only> {
        if !self.sources.is_on() {
            return None;
        }
        if rule.fields.is_empty() && rule.answer == Answer::Drop {
            // What is flooded in a VLAN gets there by the miss: that must not drop
            return Some(Only::Mac);
        }
        let to_one = matches!(rule.answer, Answer::Out { ports, .. } if ports.count() == 1);
        let station = entry(&rule.fields).is_some_and(|(_, a)| !is_group(a));
        let within = vlan(&rule.fields).is_some_and(|v| self.sources.classes.has(v));
        (to_one && station || within).then_some(Only::Acl)
    }

    /// Groups that are other than they were told.
    pub(crate) fn regroup(&mut self) {
        if std::mem::take(&mut self.sources.anew) {
            self.reclass();
            let s = &mut self.sources;
            s.stale.extend(s.ports.keys().chain(s.known.keys()));
            s.stale.extend(s.classes.vlans());
            s.dirty.extend(s.groups.keys());
        }
        for v in std::mem::take(&mut self.sources.stale) {
            let new = self.ports_known(v);
            let s = &mut self.sources;
            if s.known.get(&v) != Some(&new) {
                s.dirty.extend(s.by_vlan.get(&v).into_iter().flatten());
                s.known.insert(v, new);
            }
        }
        for g in std::mem::take(&mut self.sources.dirty) {
            let Some(group) = self.sources.groups.get(&g) else {
                continue;
            };
            let rule = self.merged(group);
            if rule.is_none()
                && let Some(gone) = self.sources.groups.remove(&g)
            {
                let s = &mut self.sources;
                if let Some((v, a)) = gone.entry() {
                    if let Some(l) = s.by_vlan.get_mut(&v) {
                        l.remove(&g);
                    }
                    put(&mut s.by_mac, (v, a), g, false);
                }
                s.ids.remove(&(gone.place, gone.fields, gone.domain));
            }
            self.rules.put(Owner::Group(g), rule);
        }
    }
}

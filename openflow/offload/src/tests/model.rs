// SPDX-License-Identifier: Apache-2.0
//! A chip that does what it is told and refuses what it can't, and a software switch that looks at every flow.
use crate::Write;
use crate::tables::{Chip, MacTable};
use crate::{
    Act, Change, Flow, Id, MacKey, Offload, Only, PortMask, Rewrite, Share, Tagging, Vlan, Wanted,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tandem_ofpipeline::key::{Key, L4, NET, THERE};
use tandem_openflow::{Field, Oxm};

/// A packet: what can be matched of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub key: Key,
}

pub const PRESENT: u128 = 0x1000;

impl Packet {
    pub fn new(fields: &[(Field, u128)]) -> Packet {
        let mut key = Key::default();
        for (f, v) in fields {
            key.set(*f, *v);
        }
        let ether = key.get(Field::EthType);
        if matches!(ether, 0x800 | 0x806 | 0x86dd) {
            key.0[THERE] |= NET;
        }
        if matches!(ether, 0x800 | 0x86dd) && matches!(key.get(Field::IpProto), 6 | 17) {
            key.0[THERE] |= L4;
        }
        Packet { key }
    }

    pub fn of(&self, f: Field) -> u128 {
        self.key.get(f)
    }

    pub fn matches(&self, fields: &[Oxm]) -> bool {
        fields.iter().all(|o| {
            self.key
                .field(o.field)
                .is_some_and(|v| v & o.mask == o.value)
        })
    }

    /// As rows of the ACL see it behind classification: another VLAN id and priority, the tag as it came.
    fn classified(&self, writes: Rewrite) -> Packet {
        let mut p = *self;
        let came = self.of(Field::VlanVid) & PRESENT;
        let vid = match writes.tag {
            Tagging::Goes => Some(0xfff),
            _ => writes.vid.map(u128::from),
        };
        if let Some(vid) = vid {
            p.key.set(Field::VlanVid, came | vid);
        }
        if let Some(pcp) = writes.pcp {
            p.key.set(Field::VlanPcp, pcp.into());
        }
        p
    }

    fn proto(&self) -> Option<u8> {
        self.key.field(Field::IpProto).map(|p| p as u8)
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Cpu,
    /// By the software alone, in a way that no chip has.
    Software,
    Drop,
    Out(PortMask, Rewrite),
}

pub fn answer(act: Act, packet: &Packet) -> Answer {
    match act {
        Act::Cpu => Answer::Cpu,
        Act::Drop => Answer::Drop,
        Act::Out { ports, rewrite } => {
            let mut left = PortMask::default();
            for p in ports.ports() {
                if u128::from(p) != packet.of(Field::InPort) {
                    left.insert(p);
                }
            }
            if left.count() == 0 {
                Answer::Drop
            } else {
                Answer::Out(left, rewrite)
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Row {
    kind: usize,
    fields: Vec<Oxm>,
    act: Act,
    /// The group that it is for, and that alone.
    group: Option<u8>,
    /// Not for packets of any.
    ungrouped: bool,
}

/// A row that classifies.
#[derive(Clone, Debug)]
struct Class {
    kind: usize,
    fields: Vec<Oxm>,
    writes: Rewrite,
}

#[derive(Clone, Debug)]
pub struct Device {
    chip: Chip,
    rows: BTreeMap<u32, Row>,
    /// By group.
    class: BTreeMap<(u8, u8), Class>,
    macs: BTreeMap<MacKey, Act>,
    sets: BTreeSet<PortMask>,
    miss: Act,
    /// Has a frame that no row matched to come from a source that the MAC table has at its port?
    asks: bool,
}

/// The source that it has.
pub const KNOWN: u128 = 0x0200_0000_0001;

impl Device {
    pub fn new(chip: &Chip) -> Device {
        Device {
            chip: chip.clone(),
            rows: BTreeMap::new(),
            class: BTreeMap::new(),
            macs: BTreeMap::new(),
            sets: BTreeSet::new(),
            miss: Act::Cpu,
            asks: false,
        }
    }

    pub fn write(&mut self, w: &Write) {
        match w {
            Write::RowAdd {
                at,
                kind,
                fields,
                ungrouped,
                act,
                ..
            } => {
                let row = Row {
                    kind: *kind,
                    fields: fields.clone(),
                    act: *act,
                    group: None,
                    ungrouped: *ungrouped,
                };
                assert!(self.rows.insert(*at, row).is_none(), "row {at} is taken");
                assert!(self.lines() <= self.chip.acl.size, "the ACL is full");
            }
            Write::RowAct { at, act } => self.rows.get_mut(at).unwrap().act = *act,
            Write::RowMove { from, to } => {
                let row = self.rows.remove(from).unwrap();
                // Nothing stands between the two
                let (lo, hi) = (from.min(to), from.max(to));
                assert!(self.rows.range(lo..=hi).next().is_none());
                self.rows.insert(*to, row);
            }
            Write::RowDel { at } => {
                self.rows.remove(at).unwrap();
            }
            Write::GroupAdd { at, group, .. } => {
                let row = Row {
                    kind: 0,
                    fields: Vec::new(),
                    act: Act::Cpu,
                    group: Some(*group),
                    ungrouped: false,
                };
                assert!(self.rows.insert(*at, row).is_none(), "row {at} is taken");
                assert!(self.lines() <= self.chip.acl.size, "the ACL is full");
                let own = self.chip.class.as_ref().unwrap();
                assert!(self.groups() <= usize::from(own.groups), "no group is free");
                assert!((own.first..=u8::MAX).contains(group));
            }
            Write::ClassAdd {
                group,
                row,
                kind,
                fields,
                writes,
            } => {
                let new = Class {
                    kind: *kind,
                    fields: fields.clone(),
                    writes: *writes,
                };
                assert!(self.class.insert((*group, *row), new).is_none());
                let size = self.chip.class.as_ref().unwrap().rows.size;
                assert!(self.class_lines() <= size, "classification is full");
            }
            Write::ClassAct { group, row, writes } => {
                self.class.get_mut(&(*group, *row)).unwrap().writes = *writes;
            }
            Write::ClassDel { group, row } => {
                self.class.remove(&(*group, *row)).unwrap();
            }
            Write::FormAdd { .. } | Write::FormDel { .. } => {}
            Write::SetAdd(s) => {
                assert!(self.sets.insert(*s), "the set is there");
                let size = self.chip.mac.unwrap().port_sets as usize;
                assert!(self.sets.len() <= size, "no mask is free");
            }
            Write::SetDel(s) => {
                assert!(self.sets.remove(s), "no such set");
                let used = self.macs.values().any(|a| a.ports() == Some(*s));
                assert!(!used, "the set is in use");
            }
            Write::MacPut { key, act, .. } => {
                if let Some(s) = act.ports().filter(|s| s.count() > 1) {
                    assert!(self.sets.contains(&s), "no such set");
                }
                self.macs.insert(*key, *act);
                let table = self.chip.mac.unwrap();
                assert!(
                    self.macs.len() <= table.size as usize,
                    "the MAC table is full"
                );
                let both = MacKey {
                    vlan: Vlan::Any,
                    ..*key
                };
                let same = self.macs.keys().filter(|k| k.address == key.address);
                assert!(
                    !self.macs.contains_key(&both) || same.count() == 1,
                    "entries of both sorts"
                );
            }
            Write::MacDel(key) => {
                self.macs.remove(key).unwrap();
            }
            Write::Miss(act) => self.miss = *act,
        }
    }

    pub fn lines(&self) -> u32 {
        let kinds = &self.chip.acl.kinds;
        self.rows.values().map(|r| kinds[r.kind].lines).sum()
    }

    pub fn class_lines(&self) -> u32 {
        let lines = |c: &Class| self.chip.class.as_ref().unwrap().rows.kinds[c.kind].lines;
        self.class.values().map(lines).sum()
    }

    fn groups(&self) -> usize {
        self.rows.values().filter(|r| r.group.is_some()).count()
    }

    /// The group that a packet is put into, and what is written.
    fn classified(&self, p: &Packet, ether: Option<u16>) -> Option<(u8, Rewrite)> {
        let all = self.chip.class.as_ref()?;
        let meets = |c: &Class| {
            let frames = all.rows.kinds[c.kind].frames;
            frames.covers(ether, p.proto()) && p.matches(&c.fields)
        };
        let first = self.class.iter().find(|(_, c)| meets(c));
        first.map(|((group, _), c)| (*group, c.writes))
    }

    pub fn answer(&self, p: &Packet) -> Answer {
        let ether = Some(p.of(Field::EthType) as u16);
        let class = self.classified(p, ether);
        let group = class.map(|(group, _)| group);
        let seen = class.map_or(*p, |(_, writes)| p.classified(writes));
        for row in self.rows.values() {
            let frames = self.chip.acl.kinds[row.kind].frames;
            let own = match row.group {
                Some(_) => row.group == group,
                None => !row.ungrouped || group.is_none(),
            };
            if own && frames.covers(ether, p.proto()) && seen.matches(&row.fields) {
                // Whoever sends it, it leaves as it is classified
                let act = match (row.act, class) {
                    (Act::Out { ports, .. }, Some((_, rewrite))) => Act::Out { ports, rewrite },
                    (act, _) => act,
                };
                return answer(act, p);
            }
        }
        assert_eq!(class, None, "{p:?} meets no row of its group");
        if self.asks && p.of(Field::EthSrc) != KNOWN {
            return Answer::Cpu;
        }
        let address = p.of(Field::EthDst) as u64;
        let vlan = match p.of(Field::VlanVid) {
            0 => Vlan::Untagged,
            v => Vlan::Tag(v as u16 & 0xfff),
        };
        for vlan in [vlan, Vlan::Any] {
            if let Some(act) = self.macs.get(&MacKey { vlan, address }) {
                return answer(*act, p);
            }
        }
        answer(self.miss, p)
    }

    /// Rows, entries, and their answers; of rows only their order, of groups no number.
    pub fn picture(&self) -> String {
        let rows = self.rows.values().map(|r| (r.kind, &r.fields, r.act));
        let rows: Vec<_> = rows
            .zip(self.rows.values().map(|r| r.group.is_some()))
            .collect();
        let pair = |((group, _), c): (&(u8, u8), &Class)| {
            let own = self.rows.values().find(|r| r.group == Some(*group));
            format!("{c:?} {:?}", own.map(|r| r.act))
        };
        let mut pairs: Vec<String> = self.class.iter().map(pair).collect();
        pairs.sort_unstable();
        format!(
            "{pairs:?} {rows:?} {:?} {:?} {:?}",
            self.macs, self.sets, self.miss
        )
    }
}

impl Act {
    fn ports(self) -> Option<PortMask> {
        match self {
            Act::Out { ports, .. } => Some(ports),
            _ => None,
        }
    }
}

/// Every flow, looked at one after the other.
#[derive(Clone, Debug, Default)]
pub struct Software {
    pub flows: HashMap<Id, Flow>,
    /// Those for known sources; what else would be theirs is the software's.
    pub checked: BTreeSet<Id>,
}

impl Software {
    pub fn first(&self, p: &Packet) -> Option<Id> {
        let hits = self.flows.iter().filter(|(_, f)| p.matches(&f.fields));
        hits.max_by_key(|(_, f)| (f.priority, Key::of_match(&f.fields).1.rank()))
            .map(|(id, _)| *id)
    }

    pub fn answer(&self, p: &Packet) -> Answer {
        let first = self.first(p);
        if first.is_some_and(|id| self.checked.contains(&id)) && p.of(Field::EthSrc) != KNOWN {
            return Answer::Software;
        }
        match first.map(|id| self.flows[&id].wanted) {
            None | Some(Wanted::Beyond(_)) => Answer::Software,
            Some(Wanted::Act(act)) => answer(act, p),
        }
    }
}

/// The three together; each change is judged write by write.
#[derive(Clone, Debug)]
pub struct World {
    pub offload: Offload,
    pub device: Device,
    pub software: Software,
    pub packets: Vec<Packet>,
}

impl World {
    /// With a chip that asks for sources.
    pub fn asking(chip: Chip, packets: Vec<Packet>) -> World {
        let mut w = World::new(chip, packets);
        w.device.asks = true;
        w
    }

    pub fn new(chip: Chip, packets: Vec<Packet>) -> World {
        World {
            device: Device::new(&chip),
            offload: Offload::new(chip),
            software: Software::default(),
            packets,
        }
    }

    fn change(&mut self, software: Software, writes: Vec<Write>) {
        let old: Vec<Answer> = self.answers();
        self.software = software;
        let new: Vec<Answer> = self.answers();
        let mut done = Vec::new();
        for w in &writes {
            self.device.write(w);
            done.push(w);
            for (p, (old, new)) in self.packets.iter().zip(old.iter().zip(&new)) {
                let is = self.device.answer(p);
                assert!(
                    is == Answer::Cpu || is == *old || is == *new,
                    "{p:?}: {is:?}, neither {old:?} nor {new:?}, after {done:#?} of {writes:#?}"
                );
            }
        }
        for (p, new) in self.packets.iter().zip(&new) {
            let is = self.device.answer(p);
            assert!(
                is == Answer::Cpu || is == *new,
                "{p:?}: {is:?} at the end, not {new:?}, after {writes:#?}\n{}",
                self.device.picture()
            );
        }
        assert_eq!(self.device.lines(), self.offload.usage().acl_used);
        assert_eq!(self.device.class_lines(), self.offload.usage().class_used);
        assert_eq!(
            self.device.groups() as u32,
            self.offload.usage().groups_used
        );
        assert_eq!(self.device.macs.len() as u32, self.offload.usage().mac_used);
        // An entry that traps meanwhile needs no mask
        assert!(self.device.sets.len() as u32 <= self.offload.usage().sets_used);
        self.explained();
    }

    /// What is told of one flow agrees with what is told of the others, and with who answers.
    fn explained(&self) {
        let o = &self.offload;
        let (mut lines, mut macs) = (0, 0);
        for id in o.flows.keys() {
            let (by, n) = o.turned_by(*id, usize::MAX);
            assert_eq!(by.len(), n as usize, "flow {id}: {:?}", o.why(*id));
            for h in by {
                let (behind, n) = o.turns(h, usize::MAX);
                assert!(behind.contains(id), "flow {h} turns {id}, not {behind:?}");
                assert_eq!(behind.len(), n as usize);
            }
            for g in o.turns(*id, usize::MAX).0 {
                let by = o.turned_by(g, usize::MAX).0;
                assert!(by.contains(id), "flow {g} is turned by {id}, not {by:?}");
            }
            let whole = o.share(*id) == Some(Share::Whole);
            let why = o.why(*id).unwrap();
            assert_eq!(why.needs().is_none(), whole, "flow {id}: {why}");
            let cost = o.cost(*id);
            (lines, macs) = (lines + cost.0, macs + cost.1);
        }
        assert_eq!((lines, macs), (o.usage().acl_used, o.usage().mac_used));
    }

    fn answers(&self) -> Vec<Answer> {
        self.packets
            .iter()
            .map(|p| self.software.answer(p))
            .collect()
    }

    pub fn add(&mut self, id: Id, flow: Flow) {
        let mut software = self.software.clone();
        software.flows.insert(id, flow.clone());
        let writes = self.offload.add(id, flow);
        self.change(software, writes);
    }

    pub fn remove(&mut self, id: Id) {
        let mut software = self.software.clone();
        software.flows.remove(&id);
        let writes = self.offload.remove(id);
        self.change(software, writes);
    }

    pub fn modify(&mut self, id: Id, wanted: Wanted, idle: bool, counted: bool) {
        let mut software = self.software.clone();
        if let Some(f) = software.flows.get_mut(&id) {
            f.wanted = wanted;
            f.idle = idle;
            f.counted = counted;
        }
        let writes = self.offload.modify(id, wanted, idle, counted);
        self.change(software, writes);
    }

    /// Several of them as one decision.
    pub fn batch(&mut self, changes: Vec<Change>) {
        let mut software = self.software.clone();
        for c in &changes {
            match c {
                Change::Add { id, flow, chain } => {
                    software.flows.insert(*id, flow.clone());
                    match chain.only {
                        Some(Only::Mac) => software.checked.insert(*id),
                        _ => software.checked.remove(id),
                    };
                }
                Change::Modify {
                    id,
                    wanted,
                    idle,
                    counted,
                } => {
                    if let Some(f) = software.flows.get_mut(id) {
                        (f.wanted, f.idle, f.counted) = (*wanted, *idle, *counted);
                    }
                }
                Change::Remove { id } => {
                    software.flows.remove(id);
                    software.checked.remove(id);
                }
            }
        }
        let writes = self.offload.batch(changes);
        self.change(software, writes);
    }

    pub fn resize(&mut self, acl: u32, mac: u32) {
        let writes = self.offload.resize(acl, mac);
        let table = &mut self.device.chip;
        // What is given up is free when all is done
        table.acl.size = table.acl.size.max(acl);
        table.mac = table.mac.map(|m| MacTable {
            size: m.size.max(mac),
            ..m
        });
        self.change(self.software.clone(), writes);
        let table = &mut self.device.chip;
        table.acl.size = acl;
        table.mac = table.mac.map(|m| MacTable { size: mac, ..m });
        assert!(self.device.lines() <= acl);
    }

    pub fn resize_class(&mut self, lines: u32) {
        let writes = self.offload.resize_class(lines);
        let size = |d: &mut Device, to: u32| {
            if let Some(c) = &mut d.chip.class {
                c.rows.size = to;
            }
        };
        size(&mut self.device, u32::MAX);
        self.change(self.software.clone(), writes);
        size(&mut self.device, lines);
        assert!(self.device.class_lines() <= lines || self.device.chip.class.is_none());
    }

    pub fn ask(&mut self, id: Id, to: bool) {
        let writes = self.offload.ask(&[(id, to)]);
        self.change(self.software.clone(), writes);
    }

    pub fn measured(&mut self, traffic: &[(Id, u64)]) {
        for (id, n) in traffic {
            if let Some(f) = self.software.flows.get_mut(id) {
                f.traffic = *n;
            }
        }
        let writes = self.offload.measured(traffic);
        self.change(self.software.clone(), writes);
    }
}

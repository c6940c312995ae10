// SPDX-License-Identifier: Apache-2.0
//! What is to stand in the chip, object by object, as the writes of the decision say; and the commands that write it.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use tandem_abi::object::Object;
use tandem_abi::raw;
use tandem_ofcompose::RuleId;
use tandem_ofoffload::{Act, MacKey, PortMask, Vlan};
use tandem_ofpipeline::key::Key;
use tandem_openflow::oxm::VID_PRESENT;
use tandem_openflow::{Field, Oxm};

use crate::part::{Slice, form_table};
use crate::row;

/// An object of the chip, by what it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Target {
    /// The list, its guards and its bindings.
    List,
    Vlan(u16),
    /// A port in a VLAN's domain.
    Member(u16, u16),
    /// A port set, by the chip's number.
    Set(u16),
    Counter(u32),
    /// A row, by its number.
    Row(u32),
    /// A row that classifies, by its group and which of it; of group 0 the guard of packets of two forms.
    Class(u8, u8),
    /// The form in which packets of a group leave a port.
    Form(u8, u8),
    Mac(MacKey),
}

/// Which packets a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are the large one")]
pub(crate) enum Scope {
    /// None: nobody's answer depends on it.
    Nothing,
    /// Those of a match: value and mask.
    Match(Key, Key),
    /// All.
    All,
}

impl Scope {
    pub fn of_row(fields: &[Oxm]) -> Scope {
        let (value, mask) = Key::of_match(fields);
        Scope::Match(value, mask)
    }

    pub fn of_mac(key: &MacKey) -> Scope {
        let mut fields = vec![Oxm::exact(Field::EthDst, u128::from(key.address))];
        match key.vlan {
            Vlan::Any => {}
            Vlan::Untagged => fields.push(Oxm::exact(Field::VlanVid, 0)),
            Vlan::Tag(v) => {
                fields.push(Oxm::exact(Field::VlanVid, u128::from(VID_PRESENT | v)));
            }
        }
        Scope::of_row(&fields)
    }

    /// Is there a packet that both are about?
    pub fn meets(&self, other: &Scope) -> bool {
        match (self, other) {
            (Scope::Nothing, _) | (_, Scope::Nothing) => false,
            (Scope::All, _) | (_, Scope::All) => true,
            (Scope::Match(v, m), Scope::Match(w, n)) => {
                let words = v.0.iter().zip(&m.0).zip(w.0.iter().zip(&n.0));
                words
                    .into_iter()
                    .all(|((v, m), (w, n))| (v ^ w) & m & n == 0)
            }
        }
    }
}

/// A command, as it is posted.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub op: u16,
    pub cls: u16,
    pub flags: u32,
    pub lease: u32,
    pub arg: u64,
    pub body: Vec<u8>,
    pub output: bool,
}

impl Command {
    pub fn of<T: Object>(op: u16, object: &T) -> Command {
        Command {
            op,
            cls: T::CLASS,
            flags: 0,
            lease: 0,
            arg: 0,
            body: object.as_bytes().to_vec(),
            output: false,
        }
    }

    /// One that asks for nothing.
    pub fn nothing() -> Command {
        Command {
            op: raw::TND_OP_NOP,
            cls: 0,
            flags: 0,
            lease: 0,
            arg: 0,
            body: Vec::new(),
            output: false,
        }
    }

    /// Absent or not: behind it the object is gone.
    pub fn delete<T: Object>(object: &T) -> Command {
        Command {
            flags: raw::TND_CMD_IDEMPOTENT,
            ..Command::of(raw::TND_OP_DELETE, object)
        }
    }
}

/// A row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub rule: RuleId,
    /// 0: none. While the row traps the entry does not name it: what traps is the software's to count.
    pub counter: u32,
    pub entry: raw::tnd_acl_entry,
    pub scope: Scope,
}

/// A row that classifies, or for a form.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub entry: raw::tnd_acl_entry,
    pub scope: Scope,
}

/// Rows of a group that classify, at most.
const CLASSES: u32 = 256;

/// The number of a row that classifies.
pub(crate) fn class_at(group: u8, row: u8) -> u32 {
    u32::from(group) * CLASSES + u32::from(row)
}

/// What a number of a row that classifies is of.
pub(crate) fn class_of(at: u32) -> (u8, u8) {
    ((at / CLASSES) as u8, (at % CLASSES) as u8)
}

/// What is to stand in the chip.
#[derive(Debug)]
pub(crate) struct Want {
    slice: Slice,
    pub rows: BTreeMap<u32, Row>,
    pub classes: BTreeMap<(u8, u8), Class>,
    /// By port and group.
    pub forms: BTreeMap<(u8, u8), Class>,
    pub macs: HashMap<MacKey, Act>,
    pub vlans: BTreeSet<u16>,
    /// Ports in domains of VLANs: whether without a tag; by `TND_VID_ANY` in that of their switch.
    pub members: BTreeMap<(u16, u16), bool>,
    sets: HashMap<PortMask, u16>,
    set_ids: BTreeMap<u16, PortMask>,
    last_set: u16,
}

pub(crate) fn vlan(fid: u16) -> raw::tnd_vlan {
    let mut v = raw::tnd_vlan {
        fid,
        flags: raw::TND_VLAN_FLOWS,
        ..Default::default()
    };
    v.set_struct_size();
    v
}

pub(crate) fn member(fid: u16, port: u16, vid: u16, untagged: bool) -> raw::tnd_vlan_member {
    let mut m = raw::tnd_vlan_member {
        fid,
        port,
        vid,
        // All frames of a port are those without a tag, too
        flags: match untagged || vid == raw::TND_VID_ANY {
            true => raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED,
            false => 0,
        },
        ..Default::default()
    };
    m.set_struct_size();
    m
}

pub(crate) fn counter(id: u32) -> raw::tnd_acl_counter {
    let mut c = raw::tnd_acl_counter {
        counter: id,
        ..Default::default()
    };
    c.set_struct_size();
    c
}

/// A row by its number alone.
pub(crate) fn row_key(table: u32, at: u32) -> raw::tnd_acl_entry {
    let mut e = raw::tnd_acl_entry {
        table,
        priority: at,
        ..Default::default()
    };
    e.set_struct_size();
    e
}

fn set(id: u16, ports: PortMask) -> raw::tnd_port_set {
    let mut s = raw::tnd_port_set {
        set: id,
        ports: row::bitmap(ports),
        ..Default::default()
    };
    s.set_struct_size();
    s
}

impl Row {
    pub fn set(&mut self, act: Act) {
        row::act(&mut self.entry, act);
        self.entry.counter = if act.real() { self.counter } else { 0 };
    }
}

impl Want {
    /// Nothing but what the list ends with.
    pub fn new(slice: Slice) -> Want {
        let mut want = Want {
            slice,
            rows: BTreeMap::new(),
            classes: BTreeMap::new(),
            forms: BTreeMap::new(),
            macs: HashMap::default(),
            vlans: BTreeSet::new(),
            members: BTreeMap::new(),
            sets: HashMap::default(),
            set_ids: BTreeMap::new(),
            last_set: 0,
        };
        if !slice.has_mac() {
            want.set_last(Act::Cpu);
        }
        want
    }

    /// Nothing but that again: what there was. Domains stay, and numbers of sets go on.
    pub fn begin(&mut self) -> Want {
        let mut new = Want::new(self.slice);
        new.last_set = self.last_set;
        new.vlans.clone_from(&self.vlans);
        std::mem::replace(self, new)
    }

    /// What becomes of what no other row answers, if that is the list's to say.
    pub fn set_last(&mut self, miss: Act) {
        let row = Row {
            rule: RuleId::MAX,
            counter: 0,
            entry: row::last(self.slice.table(), miss),
            scope: Scope::All,
        };
        self.rows.insert(row::LAST_ROW, row);
    }

    /// A number for a port set that is to be there; numbers come again late, so that no old one is in the way.
    pub fn add_set(&mut self, ports: PortMask) -> u16 {
        let id = loop {
            self.last_set = self.last_set.wrapping_add(1);
            let id = self.slice.set(self.last_set);
            if id != 0 && !self.set_ids.contains_key(&id) {
                break id;
            }
        };
        self.sets.insert(ports, id);
        self.set_ids.insert(id, ports);
        id
    }

    pub fn remove_set(&mut self, ports: PortMask) -> Option<u16> {
        let id = self.sets.remove(&ports)?;
        self.set_ids.remove(&id);
        Some(id)
    }

    /// Sets that the chip has are known by its numbers, the others by such as it does not have.
    pub fn take_sets(&mut self, held: &BTreeMap<u16, [u8; raw::TND_PORT_SET_BYTES]>) {
        let mut wanted: Vec<PortMask> = self.set_ids.values().copied().collect();
        self.sets.clear();
        self.set_ids.clear();
        for (id, ports) in held {
            self.last_set = self.last_set.max(*id & 0xfff);
            let at = wanted.iter().position(|w| row::bitmap(*w) == *ports);
            if let Some(at) = at {
                let ports = wanted.swap_remove(at);
                self.sets.insert(ports, *id);
                self.set_ids.insert(*id, ports);
            }
        }
        for ports in wanted {
            loop {
                let id = self.add_set(ports);
                if !held.contains_key(&id) {
                    break;
                }
                self.set_ids.remove(&id);
            }
        }
    }

    /// Sets that are to be there and are not, and the other way round.
    pub fn sets_unlike<'a>(
        &'a self,
        held: &'a BTreeMap<u16, [u8; raw::TND_PORT_SET_BYTES]>,
    ) -> impl Iterator<Item = u16> + 'a {
        let missing = self.set_ids.keys().filter(|id| !held.contains_key(id));
        let over = held.keys().filter(|id| !self.set_ids.contains_key(id));
        missing.chain(over).copied()
    }

    /// The domain of an entry.
    pub fn fid(&self, vlan: Vlan) -> u16 {
        match vlan {
            Vlan::Any | Vlan::Untagged => self.slice.fid(),
            Vlan::Tag(v) => v,
        }
    }

    /// The domain of a member.
    pub fn fid_of(&self, vid: u16) -> u16 {
        match vid {
            raw::TND_VID_ANY => self.slice.fid(),
            vid => vid,
        }
    }

    pub fn fdb(&self, key: &MacKey, act: Act) -> raw::tnd_fdb {
        let mut f = raw::tnd_fdb {
            fid: self.fid(key.vlan),
            mac: mac_of(key.address),
            flags: raw::TND_FDB_STATIC,
            action: raw::TND_ACT_TRAP,
            ..Default::default()
        };
        f.set_struct_size();
        match act {
            Act::Cpu => {}
            Act::Drop => f.action = raw::TND_ACT_DROP,
            Act::Out { ports, .. } => {
                f.action = raw::TND_ACT_FORWARD;
                let mut all = ports.ports();
                match (all.next(), all.next(), self.sets.get(&ports)) {
                    (Some(one), None, _) => f.port = u16::from(one),
                    (_, _, Some(id)) => f.set = *id,
                    _ => f.action = raw::TND_ACT_TRAP,
                }
            }
        }
        f
    }

    /// The command that makes an object, or gives it other contents. `None`: it is not to be there.
    pub fn write(&self, op: u16, target: Target) -> Option<Command> {
        Some(match target {
            Target::List => return None,
            Target::Vlan(fid) => self
                .vlans
                .contains(&fid)
                .then(|| Command::of(op, &vlan(fid)))?,
            Target::Member(port, vid) => {
                let untagged = *self.members.get(&(port, vid))?;
                Command::of(op, &member(self.fid_of(vid), port, vid, untagged))
            }
            Target::Set(id) => Command::of(op, &set(id, *self.set_ids.get(&id)?)),
            Target::Counter(id) => Command::of(op, &counter(id)),
            Target::Row(at) => Command::of(op, &self.rows.get(&at)?.entry),
            Target::Class(g, n) => Command::of(op, &self.classes.get(&(g, n))?.entry),
            Target::Form(p, g) => Command::of(op, &self.forms.get(&(p, g))?.entry),
            Target::Mac(key) => Command::of(op, &self.fdb(&key, *self.macs.get(&key)?)),
        })
    }

    /// The command behind which the object is gone.
    pub fn delete(&self, target: Target) -> Option<Command> {
        Some(match target {
            Target::List | Target::Vlan(_) => return None,
            Target::Member(port, vid) => {
                Command::delete(&member(self.fid_of(vid), port, vid, false))
            }
            Target::Set(id) => Command::delete(&set(id, PortMask::default())),
            Target::Counter(id) => Command::delete(&counter(id)),
            Target::Row(at) => Command::delete(&row_key(self.slice.table(), at)),
            Target::Class(g, n) => {
                Command::delete(&row_key(self.slice.class_table(), class_at(g, n)))
            }
            Target::Form(p, g) => Command::delete(&row_key(form_table(p), u32::from(g))),
            Target::Mac(key) => {
                let mut f = raw::tnd_fdb {
                    fid: self.fid(key.vlan),
                    mac: mac_of(key.address),
                    ..Default::default()
                };
                f.set_struct_size();
                Command::delete(&f)
            }
        })
    }

    /// All of it, to be written into an empty chip.
    pub fn all(&self) -> impl Iterator<Item = Target> + '_ {
        let list = [Target::List].into_iter();
        let vlans = self.vlans.iter().map(|v| Target::Vlan(*v));
        let sets = self.set_ids.keys().map(|s| Target::Set(*s));
        let rows = self.rows.keys().map(|r| Target::Row(*r));
        let classes = self.classes.keys().map(|(g, n)| Target::Class(*g, *n));
        let macs = self.macs.keys().map(|m| Target::Mac(*m));
        let forms = self.forms.keys().map(|(p, g)| Target::Form(*p, *g));
        let members = self.members.keys().map(|(p, v)| Target::Member(*p, *v));
        list.chain(vlans)
            .chain(members)
            .chain(sets)
            .chain(forms)
            .chain(rows)
            .chain(classes)
            .chain(macs)
    }
}

fn mac_of(address: u64) -> [u8; 6] {
    let [_, _, a, b, c, d, e, f] = address.to_be_bytes();
    [a, b, c, d, e, f]
}

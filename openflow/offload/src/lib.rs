// SPDX-License-Identifier: Apache-2.0
//! Which OpenFlow flows stand where in a switch chip that was not made for OpenFlow: a decision, and the writes that
//! follow from it. No sockets, clocks, threads or chip: flows in, writes out.
//!
//! ```text
//!   frame ─► ACL rows, in the order of the rules, first match ─► MAC table ─► miss
//!              │ answer, or CPU                                   │ answer      │ CPU (or drop)
//! ```
//!
//! One order of rules, the software pipeline's, holds everywhere ([`order`](self)): what answers a packet in the chip
//! is the first flow of that order that matches it, or the CPU. [`Offload::add`], [`Offload::modify`],
//! [`Offload::remove`] and [`Offload::measured`] return writes in an order such that after each of them every packet
//! has the answer from before the change, the one from after it, or the CPU's. `docs/openflow-offload.md` has the
//! rules and their reasons.
//!
//! Modules: [`tables`] (chips as data), [`answer`] (what a chip can be told to do), [`expand`] (a match as rows),
//! `decide` (where a flow stands), `pairs` (flows that write), `forms` (those that do so differently by port), `room` (who stands there when not all can), `plan` (in which order that is
//! written), [`why`] (in words), `index`, `order`, `labels`.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod answer;
mod decide;
mod entry;
pub mod expand;
mod forms;
mod index;
mod labels;
mod order;
mod pairs;
mod plan;
mod room;
pub mod tables;
pub mod why;

#[cfg(test)]
mod tests;

pub use answer::{Act, Beyond, Leaves, PortMask, Rewrite, Second, Tagging, Wanted};
pub use forms::{FORM_VIDS, FORMS, MASK_VIDS};
pub use labels::FIRST_ROW;
pub use why::{NotPair, Share, Why};

use expand::Row;
use foldhash::{HashMap, HashSet};
use forms::Forms;
use index::Index;
use labels::Labels;
use order::{Full, Order, Place};
pub use order::{Masks, Step};
use room::Waits;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use tables::Chip;
use tandem_ofpipeline::key::{Key, THERE};
use tandem_openflow::{Field, Oxm, oxm};

/// A flow, by the caller's number.
pub type Id = u32;

/// The only table that may answer a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Only {
    /// The ACL: as an entry of the MAC table it would say where its station is.
    Acl,
    /// The MAC table, behind a question for the source, which rows of the ACL come before: frames whose source it does
    /// not have at their port go to the CPU.
    Mac,
}

/// What else is known of a flow that is a chain of several tables' flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Where its flows stand in their tables, first one first; empty for a flow of one table.
    pub place: Vec<Step>,
    /// `None`: whatever table can.
    pub only: Option<Only>,
    /// No frame of it has a source that the MAC table has at its port: a flow of [`Only::Mac`] does not answer them.
    pub unknown: bool,
    /// The domain of the MAC table that all of its frames are looked up in, where that does not follow from their tag; 0:
    /// none of these. A flow of [`Only::Mac`] asks for it.
    pub domain: Option<u16>,
    /// Some of its ports, which its packets leave in another form. It stays, whatever else is modified.
    pub second: Option<Second>,
}

/// Beside what a packet has: its source is in the MAC table, at its port.
const KNOWN: u64 = 1 << 63;

/// And the domain that it is looked up in: where in the key, which has nothing there.
const DOMAIN: (usize, u32) = (13, 48);

/// A match of those in a domain.
fn within(value: &mut Key, mask: &mut Key, domain: u16) {
    let (word, shift) = DOMAIN;
    value.0[word] |= u64::from(domain) << shift;
    mask.0[word] |= u64::from(u16::MAX) << shift;
}

/// One of several changes that are one decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Change {
    Add {
        id: Id,
        flow: Flow,
        chain: Chain,
    },
    Modify {
        id: Id,
        wanted: Wanted,
        idle: bool,
        counted: bool,
    },
    Remove {
        id: Id,
    },
}

/// What is known of a flow when it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The higher first. 1.0's matches without wildcards have `u16::MAX`.
    pub priority: u16,
    /// Its match, fields in the order of the wire.
    pub fields: Vec<Oxm>,
    /// What it does.
    pub wanted: Wanted,
    /// Has it an idle timeout? Then it must be seen whether it is used: where it stands in the MAC table, which counts
    /// nothing, by [`Offload::ask`].
    pub idle: bool,
    /// Must its packets be counted? Then it does not stand where nothing counts.
    pub counted: bool,
    /// Packets per second, measured or estimated: what it costs to have it in software.
    pub traffic: u64,
}

/// Which VLAN an entry of the MAC table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vlan {
    /// All of them, and frames without a tag.
    Any,
    /// Frames without a tag: neither VLAN 0 nor the port's own.
    Untagged,
    /// Frames with a tag of this VLAN.
    Tag(u16),
}

/// What an entry of the MAC table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct MacKey {
    pub vlan: Vlan,
    pub address: u64,
}

/// An entry of the MAC table that may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwards {
    /// What it is for.
    pub key: MacKey,
    /// It does.
    pub now: bool,
    /// It is not to, so that it is seen whether packets come.
    pub asked: bool,
}

/// A write to the chip; each is done whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A new row of the ACL. `at` is its number: the lower goes first. `ungrouped`: it is not for packets of a group, whose
    /// tag it would see as what they are classified with.
    #[allow(missing_docs)]
    RowAdd {
        at: u32,
        flow: Id,
        kind: usize,
        fields: Vec<Oxm>,
        ungrouped: bool,
        act: Act,
    },
    /// What a row does, in place.
    #[allow(missing_docs)]
    RowAct { at: u32, act: Act },
    /// A row gets another number between the same neighbours: written there, then deleted here.
    #[allow(missing_docs)]
    RowMove { from: u32, to: u32 },
    /// The row goes.
    #[allow(missing_docs)]
    RowDel { at: u32 },
    /// A new row of the ACL for a group, which traps. `fields`: the match of the flow that it is of, whose packets these are.
    #[allow(missing_docs)]
    GroupAdd {
        at: u32,
        group: u8,
        flow: Id,
        fields: Vec<Oxm>,
    },
    /// A new row that classifies: the `row`th of a group.
    #[allow(missing_docs)]
    ClassAdd {
        group: u8,
        row: u8,
        kind: usize,
        fields: Vec<Oxm>,
        writes: Rewrite,
    },
    /// What it writes, in place.
    #[allow(missing_docs)]
    ClassAct { group: u8, row: u8, writes: Rewrite },
    /// It goes.
    #[allow(missing_docs)]
    ClassDel { group: u8, row: u8 },
    /// Before those of its group, what packets of a group with this VLAN id leave a port with. `fields`: as of the group.
    #[allow(missing_docs)]
    FormAdd {
        group: u8,
        vid: u16,
        port: u8,
        leaves: Leaves,
        fields: Vec<Oxm>,
    },
    /// It goes, after those.
    #[allow(missing_docs)]
    FormDel { group: u8, port: u8 },
    /// A mask of the pool for these ports, before the first entry that needs it.
    SetAdd(PortMask),
    /// The mask has no entry any more.
    SetDel(PortMask),
    /// An entry of the MAC table, new or in the place of the one that is there.
    #[allow(missing_docs)]
    MacPut { key: MacKey, flow: Id, act: Act },
    /// The entry goes.
    MacDel(MacKey),
    /// What is done with frames that neither table knows.
    Miss(Act),
}

/// What a flow's counters can be told to a controller from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The software's packets and those of these rows are all that there were. If not: all ones.
    pub packets: bool,
    /// The same for bytes.
    pub bytes: bool,
}

/// How full the chip is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Usage {
    pub acl_used: u32,
    pub acl_size: u32,
    pub mac_used: u32,
    pub mac_size: u32,
    pub sets_used: u32,
    pub sets_size: u32,
    /// Lines of what classifies, and groups.
    pub class_used: u32,
    pub class_size: u32,
    pub groups_used: u32,
    pub groups_size: u32,
    /// Of these, groups of flows with two forms.
    pub forms_used: u32,
    pub forms_size: u32,
    /// Flows whose entries trap though they could answer, because of a flow that has none.
    pub turned: u32,
    /// Flows that found no room.
    pub denied: u32,
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// One flow in front of it has all of its packets.
    Dead(Id),
    /// Nowhere, and needs nothing: the CPU gets its packets by the miss, or by rows that trap.
    Idle,
    Mac,
    /// Its exact rows, and those that only trap.
    Acl {
        wide: bool,
    },
    /// As a pair: its packets are classified, and a row of their group answers.
    Pair,
    /// As what is done with a miss.
    Miss,
    /// Nowhere, though it would need to stand somewhere.
    Full,
    /// Nowhere, because a widened row would trap more than the entries behind it that trap instead.
    Costly,
    /// Nowhere, because its rows would push flows out of the MAC table that the ACL does not do as well, and that
    /// have more traffic.
    Pushes,
    /// Nowhere: the ACL has no row for it.
    NoRow,
}

/// What others see of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub stand: Stand,
    /// Has it entries that answer by themselves, if they are not turned?
    pub real: bool,
    /// Are there packets of it that no entry keeps from those behind it?
    pub hole: bool,
}

impl Stand {
    /// Is it one of those between which prices decide?
    fn weighed(self) -> bool {
        matches!(self, Stand::Acl { .. } | Stand::Costly | Stand::Full)
    }
}

/// What a flow's rows would trap, and what would trap instead.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Price {
    pub widened: i128,
    pub turned: i128,
}

impl State {
    /// What of it counts for the places of those in front.
    fn seen(self) -> (Option<Stand>, bool) {
        let counts = matches!(self.stand, Stand::Acl { .. } | Stand::Mac | Stand::Pair);
        let stand = counts.then_some(self.stand);
        (stand, self.real)
    }
}

const ABSENT: State = State {
    stand: Stand::Idle,
    real: false,
    hole: false,
};

/// What stands in the chip of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub pair: Option<pairs::Pair>,
    pub rows: Vec<Option<Act>>,
    pub mac: Option<Act>,
    pub miss: Option<Act>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub flow: Flow,
    pub only: Option<Only>,
    pub act: Act,
    /// Boxed: hardly a flow has it.
    pub second: Option<Box<Forms>>,
    pub place: Place,
    pub value: Key,
    pub mask: Arc<Key>,
    pub mac: Option<MacKey>,
    pub rows: Vec<Arc<Row>>,
    /// Rows that classify its packets, if it writes.
    pub class: Vec<Row>,
    /// Does it need these, and would they do?
    pub writes: bool,
    /// Why it is no pair, where that is a flow in front that meets it and [bars](Entry::bars): one of these.
    pub kept_out: Option<Id>,
    /// Of its pair; 0: it has none.
    pub group: u8,
    pub state: State,
    /// No room in the ACL, in the MAC table, for a pair: tried again when there is some.
    pub acl_denied: bool,
    pub mac_denied: bool,
    pub class_denied: bool,
    /// Its entry of the MAC table traps, so that it is seen whether packets come.
    pub asked: bool,
    /// Flows in front that meet it and are holes.
    pub holes: u32,
    /// Flows in front that meet it and that only the MAC table does, and their traffic.
    pub pushed: (u32, i128),
    /// Once it has been weighed, while it is.
    pub price: Option<Price>,
    /// Since when it is here: of two that are worth the same the younger gives way.
    pub since: u64,
    pub queued: bool,
    pub standing: Standing,
    pub counts: Counts,
}

/// The decision for one chip.
#[derive(Clone, Debug)]
pub struct Offload {
    pub(crate) chip: Chip,
    pub(crate) order: Order,
    /// Boxed: a table that grows has room for twice as many.
    pub(crate) flows: HashMap<Id, Box<Entry>>,
    /// Wide rows that flows have.
    pub(crate) wide_rows: HashSet<Arc<Row>>,
    /// Masks of flows and of their rows.
    masks: Masks,
    /// All flows.
    pub(crate) all: Index,
    /// Flows whose place depends on what is behind them.
    pub(crate) sensitive: Index,
    /// Rows of the ACL.
    pub(crate) rows: Index,
    /// Wide rows of flows that have been weighed, whether they stand or not.
    pub(crate) wides: Index,
    /// Flows that could stand as a pair, wherever they do.
    pub(crate) writers: Index,
    /// Flows that only the MAC table can do, wherever they stand.
    pub(crate) lossy: Index,
    /// Flows that answer in the chip.
    pub(crate) real: Index,
    /// Flows that nothing keeps from those behind them.
    pub(crate) holes: Index,
    /// Flows in the MAC table, by address.
    pub(crate) macs: HashMap<u64, Vec<Id>>,
    pub(crate) queue: BinaryHeap<(Full, Id)>,
    pub(crate) touched: Vec<Id>,
    /// Removed, with what stands of them in the chip.
    pub(crate) gone: Vec<Entry>,
    pub(crate) clock: u64,
    pub(crate) acl_used: u32,
    pub(crate) mac_used: u32,
    pub(crate) class_used: u32,
    /// Of the pairs those with two forms, and how many there may be.
    pub(crate) in_forms: u32,
    pub(crate) forms_size: u32,
    /// Port sets that are wanted, and by how many.
    pub(crate) sets: HashMap<PortMask, u32>,
    /// Who is in which table, by traffic, the youngest of those with as much first.
    pub(crate) in_acl: BTreeSet<(u64, Reverse<u64>, Id)>,
    pub(crate) in_mac: BTreeSet<(u64, Reverse<u64>, Id)>,
    pub(crate) in_class: BTreeSet<(u64, Reverse<u64>, Id)>,
    /// Who found no room, most traffic first.
    pub(crate) denied: BTreeSet<Waits>,
    /// The same of those that wait for a pair alone.
    pub(crate) no_pair: BTreeSet<Waits>,
    /// Who of them is the next to be tried.
    pub(crate) resume: Option<Waits>,
    pub(crate) resume_pair: Option<Waits>,
    /// Who came in for nothing when it was tried last, and who comes back to where it was.
    pub(crate) missed: HashSet<Id>,
    /// Nobody is left behind these: the next time they have their turn.
    pub(crate) all_missed: bool,
    pub(crate) resume_swap: Option<Waits>,
    pub(crate) back: Vec<Id>,
    pub(crate) turned: u32,
    /// The traffic of all flows that the chip does not answer, or not alone.
    pub(crate) software: u128,
    pub(crate) labels: Labels,
    pub(crate) device: plan::Device,
    /// Are several changes planned at once?
    pub(crate) mixed: bool,
}

impl Offload {
    /// An empty chip: every frame goes to the CPU.
    pub fn new(chip: Chip) -> Offload {
        Offload {
            forms_size: chip.class.as_ref().map_or(0, |c| c.forms.into()),
            in_forms: 0,
            chip,
            order: Order::default(),
            flows: HashMap::default(),
            wide_rows: HashSet::default(),
            masks: Masks::default(),
            all: Index::default(),
            sensitive: Index::default(),
            rows: Index::default(),
            wides: Index::default(),
            writers: Index::default(),
            lossy: Index::default(),
            real: Index::default(),
            holes: Index::default(),
            macs: HashMap::default(),
            queue: BinaryHeap::new(),
            touched: Vec::new(),
            gone: Vec::new(),
            clock: 0,
            acl_used: 0,
            mac_used: 0,
            class_used: 0,
            sets: HashMap::default(),
            in_acl: BTreeSet::new(),
            in_mac: BTreeSet::new(),
            in_class: BTreeSet::new(),
            denied: BTreeSet::new(),
            no_pair: BTreeSet::new(),
            resume: None,
            resume_pair: None,
            missed: HashSet::default(),
            all_missed: false,
            resume_swap: None,
            back: Vec::new(),
            turned: 0,
            software: 0,
            labels: Labels::default(),
            device: plan::Device::default(),
            mixed: false,
        }
    }

    /// The chip that it decides for.
    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    /// A new flow. One of this number, priority and match is changed in place; another of this number goes first.
    pub fn add(&mut self, id: Id, flow: Flow) -> Vec<Write> {
        let (value, mask) = Key::of_match(&flow.fields);
        let known = self.flows.get(&id);
        let known = known.map(|e| (e.flow.priority, e.value, *e.mask));
        if known == Some((flow.priority, value, mask)) {
            self.weigh(id, flow.traffic);
            return self.modify(id, flow.wanted, flow.idle, flow.counted);
        }
        let mut writes = self.remove(id);
        self.come(id, flow, Chain::default());
        self.decide();
        writes.extend(self.plan());
        writes
    }

    /// Other instructions, timeouts or needs of a flow; priority and match stay.
    pub fn modify(&mut self, id: Id, wanted: Wanted, idle: bool, counted: bool) -> Vec<Write> {
        if !self.flows.contains_key(&id) {
            return Vec::new();
        }
        self.change(id, wanted, idle, counted);
        self.decide();
        self.plan()
    }

    /// The flow is gone.
    pub fn remove(&mut self, id: Id) -> Vec<Write> {
        if !self.flows.contains_key(&id) {
            return Vec::new();
        }
        self.leave(id);
        self.decide();
        self.plan()
    }

    /// Several changes at once, as one flow of a pipeline of several tables makes them: between the writes each packet
    /// has the answer of before all of them, of after all of them, or the CPU's. A number is added or modified once,
    /// and not the one of a flow that these changes remove.
    pub fn batch(&mut self, changes: Vec<Change>) -> Vec<Write> {
        let several = changes.len() > 1;
        let mut writes = Vec::new();
        for c in changes {
            match c {
                Change::Add { id, flow, chain } => {
                    writes.extend(self.remove(id));
                    self.come(id, flow, chain);
                }
                Change::Modify {
                    id,
                    wanted,
                    idle,
                    counted,
                } => self.change(id, wanted, idle, counted),
                Change::Remove { id } => {
                    if self.flows.contains_key(&id) {
                        self.leave(id);
                    }
                }
            }
        }
        self.decide();
        self.mixed = several;
        writes.extend(self.plan());
        writes
    }

    fn come(&mut self, id: Id, flow: Flow, chain: Chain) {
        let mut fields = flow.fields;
        fields.retain(|o| o.mask != 0);
        fields.shrink_to_fit();
        let (mut value, mut mask) = Key::of_match(&fields);
        let first = match chain.place.first() {
            Some(first) => first.clone(),
            None => Step::new(flow.priority, &mask),
        };
        // Its rows ask for no source: in them it stays away
        if chain.unknown {
            mask.0[THERE] |= KNOWN;
        }
        self.clock += 1;
        let mut all = expand::expand(&self.chip.acl, &fields);
        let entry = chain.only == Some(Only::Mac);
        if let Some(domain) = chain.domain {
            within(&mut value, &mut mask, domain);
            let has = |r: &Row, f: Field| r.fields.iter().any(|o| o.field == f);
            for r in &mut all {
                // No row asks for a domain; some ask for what has one
                r.exact &= !entry;
                if has(r, Field::InPort) && has(r, Field::VlanVid) {
                    within(&mut r.value, Arc::make_mut(&mut r.mask), domain);
                }
            }
        }
        let then = chain.place.get(1..).unwrap_or_default();
        let place = self.order.enter(first, then, &value, id);
        // Collected in place they would keep the room of what they were
        let mut rows = Vec::with_capacity(all.len());
        rows.extend(all.into_iter().map(|r| self.shared(r)));
        let mut entry = Entry {
            act: flow.wanted.act(),
            only: chain.only,
            second: Forms::of(flow.wanted, chain.second),
            mac: self.mac_key(&fields, chain.domain.filter(|_| entry)),
            standing: Standing {
                rows: vec![None; rows.len()],
                ..Standing::default()
            },
            flow: Flow { fields, ..flow },
            place,
            value,
            mask: self.masks.shared(mask),
            rows,
            class: Vec::new(),
            writes: false,
            kept_out: None,
            group: 0,
            state: ABSENT,
            acl_denied: false,
            mac_denied: false,
            class_denied: false,
            asked: false,
            holes: 0,
            pushed: (0, 0),
            price: None,
            since: self.clock,
            queued: false,
            counts: Counts {
                packets: true,
                bytes: true,
            },
        };
        self.learn_writes(&mut entry);
        self.enter(id, entry);
    }

    fn change(&mut self, id: Id, wanted: Wanted, idle: bool, counted: bool) {
        if !self.flows.contains_key(&id) {
            return;
        }
        self.settle(id, ABSENT);
        self.sense(id, false);
        let (mut before, mut after) = (None, None);
        if let Some(mut e) = self.flows.remove(&id) {
            let met = (e.value, *e.mask, e.place);
            before = e.bars().then_some(met);
            // Its forms are those of what it wanted first
            let others = e.second.as_ref().is_some_and(|s| !s.is_of(wanted));
            e.act = if others { Act::Cpu } else { wanted.act() };
            e.flow.wanted = wanted;
            e.flow.idle = idle;
            e.flow.counted = counted;
            after = e.bars().then_some(met);
            self.learn_writes(&mut e);
            self.flows.insert(id, e);
        }
        self.sense(id, true);
        self.wake(id);
        match (before, after) {
            (None, Some((value, mask, place))) => self.wake_pairs(&value, &mask, place),
            (Some((value, mask, place)), None) => self.wake_kept_out(&value, &mask, place),
            _ => {}
        }
    }

    /// Entries of the MAC table trap from here on, or no longer, so that it is seen whether their flows are used. Of those
    /// that don't stand there it is kept for when they do.
    pub fn ask(&mut self, flows: &[(Id, bool)]) -> Vec<Write> {
        for (id, to) in flows {
            if let Some(e) = self.flows.get_mut(id) {
                e.asked = *to;
                self.touched.push(*id);
            }
        }
        self.plan()
    }

    /// A flow's entry of the MAC table. `None`: it has none that could answer.
    pub fn forwards(&self, id: Id) -> Option<Forwards> {
        let e = self.flows.get(&id)?;
        let stands = e.state.stand == Stand::Mac && e.mac_act().real();
        e.mac.filter(|_| stands).map(|key| Forwards {
            key,
            now: e.standing.mac.is_some_and(Act::real),
            asked: e.asked,
        })
    }

    /// The flow that says what becomes of what no other one answers, if the chip does so.
    pub fn miss_of(&self) -> Option<Id> {
        self.device.miss_of
    }

    /// The rows have other numbers, in the same order: those that a chip has that was written before.
    pub fn renumber(&mut self, moves: &BTreeMap<u32, u32>) {
        self.labels.renumber(moves);
    }

    /// The controller's counters of the flow begin anew.
    pub fn reset_counts(&mut self, id: Id) {
        let chip = self.chip.acl.counted;
        if let Some(e) = self.flows.get_mut(&id) {
            let real = |a: &Option<Act>| a.is_some_and(Act::real);
            let unseen = real(&e.standing.mac) || real(&e.standing.miss);
            let pair = e.standing.pair.is_some_and(|(act, _)| act.real());
            let rows = pair || e.standing.rows.iter().any(real);
            e.counts = Counts {
                packets: !unseen && (!rows || chip.packets),
                bytes: !unseen && (!rows || chip.bytes),
            };
        }
    }

    /// What of its counters is known: false stays false until [`Offload::reset_counts`], as what was not counted is
    /// not made up for.
    pub fn counts(&self, id: Id) -> Option<Counts> {
        self.flows.get(&id).map(|e| e.counts)
    }

    /// How full the chip is.
    pub fn usage(&self) -> Usage {
        let mac = self.chip.mac;
        Usage {
            acl_used: self.acl_used,
            acl_size: self.chip.acl.size,
            mac_used: self.mac_used,
            mac_size: mac.map_or(0, |m| m.size),
            sets_used: self.sets.len() as u32,
            sets_size: mac.map_or(0, |m| m.port_sets),
            class_used: self.class_used,
            class_size: self.class_size(),
            groups_used: self.in_class.len() as u32,
            groups_size: self.groups_size(),
            forms_used: self.in_forms,
            forms_size: self.forms_size,
            turned: self.turned,
            denied: (self.denied.len() + self.no_pair.len()) as u32,
        }
    }

    /// Rows of a flow that stand in the ACL: their numbers, and what they do.
    pub fn rows(&self, id: Id) -> Vec<(u32, Act)> {
        let Some(e) = self.flows.get(&id) else {
            return Vec::new();
        };
        let of = |(n, act): (u8, &Option<Act>)| {
            Some((self.labels.of(&self.order.full(e.place), n)?, (*act)?))
        };
        let pair = e.standing.pair.map(|(act, _)| act);
        let rows = (0u8..).zip(&e.standing.rows).filter_map(of);
        of((pairs::ROW, &pair)).into_iter().chain(rows).collect()
    }

    fn mac_key(&self, fields: &[Oxm], domain: Option<u16>) -> Option<MacKey> {
        let table = self.chip.mac?;
        let mut key = None;
        let mut vlan = domain.map_or(Vlan::Any, Vlan::Tag);
        for o in fields {
            match o.field {
                Field::EthDst if o.mask == Field::EthDst.all_ones() => key = Some(o.value as u64),
                Field::VlanVid if o.mask == Field::VlanVid.all_ones() => {
                    let present = u128::from(oxm::VID_PRESENT);
                    vlan = match o.value {
                        0 => Vlan::Untagged,
                        // Priority tags and 4095 are no VLAN of a bridge's (802.1Q, 9.6)
                        v if v & present != 0 && !matches!(v & 0xfff, 0 | 0xfff) => {
                            Vlan::Tag(v as u16 & 0xfff)
                        }
                        _ => return None,
                    };
                }
                _ => return None,
            }
        }
        let can = if vlan == Vlan::Any {
            table.any_vlan
        } else {
            table.vlan
        };
        // 00:00:00:00:00:00 is nobody's
        key.filter(|a| can && *a != 0)
            .map(|address| MacKey { vlan, address })
    }
}

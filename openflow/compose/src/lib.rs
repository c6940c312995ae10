// SPDX-License-Identifier: Apache-2.0
//! Flows of several tables as rules of one table, for a chip that has but one: a rule is a chain of flows *f₀ goto f₁
//! goto f₂*. No sockets, clocks, threads or chip: flows in, changes of rules out, for [`Offload::batch`].
//!
//! ```text
//!   table 0: in_port=1, untagged   ► push_vlan 100, goto 1      composed:
//!            *                     ► drop                         in_port=1, untagged, eth_dst=N   ► port 2
//!   table 1: vlan 100, eth_dst=N   ► pop_vlan, output 2           in_port=1, untagged              ► drop
//!            *                     ► drop                         *                                ► drop
//! ```
//!
//! A rule's match is what all its flows ask for, seen back through what those in front of them write ([`form`](self));
//! its place is that of *f₀* in its table, then that of *f₁*, compared like words. Of two chains that meet one packet
//! the one that differs first, in front, is the packet's. `docs/openflow-offload.md` has the rules and their reasons.
//!
//! Modules: `form` (a packet on its way), `groups` (what it goes through), `tree` (chains, and what a flow changes of
//! them), `places` (where those of several ports are in one place), `source` (a table of sources as one question),
//! `members` (a port's frames without a tag in a VLAN), `rules` (what of it is told).
//!
//! [`Offload::batch`]: tandem_ofoffload::Offload::batch
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod form;
mod groups;
mod members;
mod places;
mod rules;
mod source;
mod tree;

#[cfg(test)]
mod tests;

pub use form::{Answer, Effect, Tag};
pub use groups::{Buckets, Through, Via};
pub use rules::Rule;
pub use source::Source;

use foldhash::HashMap;
use form::{Around, Ports};
use groups::Groups;
use places::Places;
use rules::Rules;
use source::Sources;
use std::collections::{BTreeMap, BTreeSet};
use tandem_ofoffload::{Change, Masks, PortMask, Step};
use tandem_openflow::{Instructions, Oxm};
use tree::{Node, NodeId};

/// A flow, by the caller's number.
pub type FlowId = u32;

/// A rule, by the number that it has here and in the chip's decision.
pub type RuleId = tandem_ofoffload::Id;

/// What is known of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its table.
    pub table: u8,
    /// The higher first.
    pub priority: u16,
    /// Its match.
    pub fields: Vec<Oxm>,
    /// What it does.
    pub instructions: Instructions,
    /// Has it an idle timeout?
    pub idle: bool,
    /// Must its packets be counted?
    pub counted: bool,
}

/// How many chains there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Through a flow, behind one beginning. With more, the beginning is one rule, and the CPU's.
    pub per_flow: u32,
    /// Beyond one for each flow of table 0.
    pub all: u32,
    /// Beginnings that were cut and are looked at again after a flow went or changed.
    pub retries: u32,
    /// May a table of sources be one question to the chip? Not where its MAC table is not looked up by VLAN.
    pub sources: bool,
    /// May a port's frames without a tag be in a VLAN's domain, and leave it with or without its tag?
    pub members: bool,
    /// May a packet leave some ports in another form than the others? Two forms at most.
    pub forms: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            per_flow: 8192,
            all: 65_536,
            retries: 1,
            sources: true,
            members: false,
            forms: false,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub flow: Flow,
    pub step: Step,
    /// Where its chains stand.
    pub place: Step,
    /// Where it stands in chains.
    pub nodes: BTreeSet<NodeId>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Its flows in their order.
    pub flows: BTreeSet<(Step, FlowId)>,
    /// Beginnings of chains that go on here.
    pub nodes: BTreeSet<NodeId>,
    /// Which sorts of flows each priority has.
    pub sorts: HashMap<u16, Vec<(Option<source::Sort>, u32)>>,
    /// Priorities whose flows are all sources, of one sort.
    pub sourced: BTreeMap<u16, source::Sort>,
    /// Of the sources, by address.
    pub sources: HashMap<u64, BTreeSet<FlowId>>,
}

/// All flows, and the rules they make.
#[derive(Clone, Debug)]
pub struct Compose {
    pub(crate) limits: Limits,
    pub(crate) ports: Ports,
    pub(crate) groups: Groups,
    /// Boxed: a table that grows has room for twice as many.
    pub(crate) flows: HashMap<FlowId, Box<Known>>,
    pub(crate) tables: BTreeMap<u8, Table>,
    pub(crate) masks: Masks,
    pub(crate) nodes: Vec<Option<Box<Node>>>,
    pub(crate) free: Vec<NodeId>,
    /// Beginnings that may have more chains than they may.
    pub(crate) over: BTreeSet<(std::cmp::Reverse<u16>, NodeId)>,
    /// Those that are cut; those of them that are to be looked at again; and those where that waits, as flows came,
    /// which seldom makes for fewer chains.
    pub(crate) cuts: BTreeSet<NodeId>,
    pub(crate) retry: BTreeSet<NodeId>,
    pub(crate) later: BTreeSet<NodeId>,
    /// Those that are cut because there are too many in all, with the chains that they had.
    pub(crate) starved: BTreeMap<NodeId, u32>,
    pub(crate) rules: Rules,
    pub(crate) sources: Sources,
    pub(crate) places: Places,
}

impl Compose {
    /// No flows: every packet is dropped. `ports` has the ports of OpenFlow's port numbers: one, or of `FLOOD` and
    /// `ALL` several.
    pub fn new(limits: Limits, ports: BTreeMap<u32, PortMask>) -> (Compose, Vec<Change>) {
        let mut c = Compose {
            limits,
            ports,
            groups: Groups::default(),
            flows: HashMap::default(),
            tables: BTreeMap::new(),
            masks: Masks::default(),
            nodes: Vec::new(),
            free: Vec::new(),
            over: BTreeSet::new(),
            cuts: BTreeSet::new(),
            retry: BTreeSet::new(),
            later: BTreeSet::new(),
            starved: BTreeMap::new(),
            rules: Rules::default(),
            sources: Sources::default(),
            places: Places::default(),
        };
        c.root();
        let changes = c.flush();
        (c, changes)
    }

    /// A new flow. One that is there under this number goes in the same change.
    pub fn add(&mut self, id: FlowId, flow: Flow) -> Vec<Change> {
        self.leave(id);
        self.enter(id, flow);
        self.told()
    }

    /// Other instructions, timeouts or needs of a flow; table, priority and match stay.
    pub fn modify(
        &mut self,
        id: FlowId,
        instructions: Instructions,
        idle: bool,
        counted: bool,
    ) -> Vec<Change> {
        let Some(k) = self.flows.get(&id) else {
            return Vec::new();
        };
        let new = Flow {
            instructions,
            idle,
            counted,
            ..k.flow.clone()
        };
        self.change(id, new);
        self.told()
    }

    /// Several flows at once: as they are from here on, or `None` for those that are gone.
    pub fn batch(&mut self, flows: Vec<(FlowId, Option<Flow>)>) -> Vec<Change> {
        for (id, flow) in flows {
            let known = self.flows.get(&id).map(|k| &k.flow);
            match (known, flow) {
                (Some(k), Some(f)) if *k == f => {}
                (Some(k), Some(f))
                    if (k.table, k.priority, &k.fields) == (f.table, f.priority, &f.fields) =>
                {
                    self.change(id, f);
                }
                (_, flow) => {
                    self.leave(id);
                    if let Some(f) = flow {
                        self.enter(id, f);
                    }
                }
            }
        }
        self.told()
    }

    /// The flow is gone.
    pub fn remove(&mut self, id: FlowId) -> Vec<Change> {
        self.leave(id);
        self.told()
    }

    /// Other ports: what is flooded to, and which there are.
    pub fn set_ports(&mut self, ports: BTreeMap<u32, PortMask>) -> Vec<Change> {
        self.put_ports(ports);
        self.told()
    }

    /// The same; what follows of it is told with the next change, as one.
    pub fn put_ports(&mut self, ports: BTreeMap<u32, PortMask>) {
        self.ports = ports;
        self.regrow(0);
    }

    /// What a packet's way depends on beside flows.
    pub(crate) fn around(&self) -> Around<'_> {
        Around {
            ports: &self.ports,
            groups: &self.groups,
            forms: self.limits.forms,
        }
    }

    /// Looks again at all that was cut and may not need to be any more: for when there is time.
    pub fn settle(&mut self) -> Vec<Change> {
        self.retry.append(&mut self.later);
        loop {
            self.balance();
            if self.retry.is_empty() {
                break;
            }
            self.again(u32::MAX);
        }
        self.flush()
    }

    /// Rules, by number.
    pub fn rules(&self) -> impl Iterator<Item = (RuleId, &Rule)> {
        self.rules.iter()
    }

    /// One of them.
    pub fn rule(&self, id: RuleId) -> Option<&Rule> {
        self.rules.get(id)
    }

    /// Is there such a flow?
    pub fn has(&self, id: FlowId) -> bool {
        self.flows.contains_key(&id)
    }

    /// The rules that a flow is in: its counters are their sum, and the software's.
    pub fn rules_of(&self, id: FlowId) -> BTreeSet<RuleId> {
        let mut all = BTreeSet::new();
        let mut todo: Vec<NodeId> = Vec::new();
        if let Some(k) = self.flows.get(&id) {
            todo.extend(&k.nodes);
        }
        while let Some(n) = todo.pop() {
            if let Some(node) = self.node(n) {
                todo.extend(&node.below);
                all.extend(self.rule_at(n));
            }
        }
        all
    }

    /// The table of a flow.
    pub fn table_of(&self, id: FlowId) -> Option<u8> {
        self.flows.get(&id).map(|k| k.flow.table)
    }

    /// Rules whose flows are others since this was asked last, though they have their numbers still.
    pub fn take_moved(&mut self) -> BTreeSet<RuleId> {
        std::mem::take(&mut self.rules.moved)
    }

    /// Has something been cut that was not looked at again since flows came?
    pub fn is_late(&self) -> bool {
        !self.later.is_empty() || !self.retry.is_empty()
    }

    /// Beginnings of chains that are one rule, as they would be too many.
    pub fn cuts(&self) -> usize {
        self.cuts.len()
    }

    fn told(&mut self) -> Vec<Change> {
        self.again(self.limits.retries);
        self.balance();
        self.flush()
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Chains as a tree: a node is the beginning of chains, its children are the flows of the table it goes on to.
//!
//! ```text
//!   (table 0) ─┬─ f₀ (goto 1) ─┬─ f₁ (goto 2) ─┬─ f₂            a leaf is a rule: match and place of its way
//!              │               │               └─ f₂'
//!              │               └─ nothing        what no flow of the table matches
//!              └─ f₀' (too many below) ✂         one rule, and the CPU's
//! ```
//!
//! Behind a child that has all of its node's packets there is none: nothing gets there.
use crate::form::{Answer, Effect, Form, Seen, both};
use crate::source::Sourced;
use crate::{Compose, Flow, FlowId, Known, Via};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tandem_ofoffload::{Beyond, PortMask, Step};
use tandem_ofpipeline::key::Key;
use tandem_openflow::Oxm;

pub(crate) type NodeId = u32;
const ROOT: NodeId = 0;

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Root,
    Flow(FlowId),
    /// What no flow of the table matches.
    Nothing,
    /// What has its source in the table.
    Checked,
}

impl By {
    fn flow(self) -> Option<FlowId> {
        match self {
            By::Flow(id) => Some(id),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub up: NodeId,
    pub depth: u16,
    pub by: By,
    pub step: Step,
    /// What is asked of the packet that comes in.
    pub fields: Vec<Oxm>,
    pub form: Form,
    /// The table that it goes on to.
    pub to: Option<u8>,
    pub below: BTreeSet<NodeId>,
    /// The child that has all of its packets.
    pub covered: Option<Box<(Step, FlowId)>>,
    /// Its table's sources are one question.
    pub sourced: Option<Sourced>,
    /// Rules below.
    pub leaves: u32,
    pub cut: bool,
}

impl Compose {
    pub(crate) fn node(&self, n: NodeId) -> Option<&Node> {
        self.nodes.get(n as usize)?.as_deref()
    }

    fn node_mut(&mut self, n: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(n as usize)?.as_deref_mut()
    }

    pub(crate) fn root(&mut self) {
        self.nodes.push(Some(Box::new(Node {
            up: ROOT,
            depth: 0,
            by: By::Root,
            step: Step::new(0, &Key::default()),
            fields: Vec::new(),
            form: Form::default(),
            to: Some(0),
            below: BTreeSet::new(),
            covered: None,
            sourced: None,
            leaves: 0,
            cut: false,
        })));
        self.grow(ROOT);
    }

    /// The nodes of a node's way, it first; not the root.
    fn upwards(&self, mut n: NodeId) -> impl Iterator<Item = &Node> {
        std::iter::from_fn(move || {
            let node = self.node(n).filter(|_| n != ROOT)?;
            n = node.up;
            Some(node)
        })
    }

    /// The steps of a node's way.
    pub(crate) fn place(&self, n: NodeId) -> Vec<Step> {
        let mut steps: Vec<Step> = self.upwards(n).map(|x| x.step.clone()).collect();
        steps.shrink_to_fit();
        steps.reverse();
        steps
    }

    /// The flows of a node's way.
    pub(crate) fn way(&self, n: NodeId) -> Vec<FlowId> {
        let mut flows: Vec<FlowId> = self.upwards(n).filter_map(|x| x.by.flow()).collect();
        flows.reverse();
        flows
    }

    /// Those of them that met a packet in perhaps another length than it came in with.
    pub(crate) fn resized(&self, n: NodeId) -> Vec<FlowId> {
        let met = |x: &&Node| self.node(x.up).is_some_and(|up| up.form.resized);
        let way = self.upwards(n).filter(met);
        way.filter_map(|x| x.by.flow()).collect()
    }

    /// The table that has no flow for a leaf's packets.
    pub(crate) fn ends(&self, leaf: &Node) -> Option<u8> {
        match leaf.by {
            By::Nothing => self.node(leaf.up).and_then(|up| up.to),
            _ => None,
        }
    }

    /// What becomes of a leaf's packets, and the groups that they go through.
    pub(crate) fn answer(&self, node: &Node) -> (Answer, Via) {
        if node.cut {
            return (Answer::Cpu(Some(Beyond::Chains)), Via::default());
        }
        match node.by {
            By::Nothing => (
                node.form.clone().miss(self.limits.forms),
                node.form.via.clone(),
            ),
            _ => node.form.clone().end(&node.fields, self.around()),
        }
    }

    /// Where a leaf's packets are sent, in which forms; `None`: not by a chip.
    pub(crate) fn sends(&self, node: &Node) -> Option<Vec<(PortMask, Effect)>> {
        let mut form = node.form.clone();
        if node.by != By::Nothing {
            form.carry_out(&node.fields, self.around());
        }
        form.sends().filter(|_| !node.cut)
    }

    /// A flow behind a node; `None`: no packet gets there.
    pub(crate) fn child(&self, up: NodeId, id: FlowId) -> Option<Node> {
        let (node, known) = (self.node(up)?, self.flows.get(&id)?);
        let mut form = node.form.clone();
        let fields = match form.back(&node.fields, &known.flow.fields) {
            Seen::Never => return None,
            Seen::If(more) => both(&node.fields, &more)?,
            Seen::Dark => {
                form.cpu = Some(Some(Beyond::Written));
                node.fields.clone()
            }
        };
        if form.cpu.is_none() {
            form.through(&fields, &known.flow.instructions, self.around());
        }
        Some(Node {
            up,
            depth: node.depth + 1,
            by: By::Flow(id),
            step: known.place.clone(),
            fields,
            to: match form.cpu {
                None => known.flow.instructions.goto,
                Some(_) => None,
            },
            form,
            below: BTreeSet::new(),
            covered: None,
            sourced: None,
            leaves: 0,
            cut: false,
        })
    }

    fn link(&mut self, mut node: Node) -> NodeId {
        self.rules.vias.share(&mut node.form.via);
        let (up, by) = (node.up, node.by);
        let n = match self.free.pop() {
            Some(n) => {
                self.nodes[n as usize] = Some(Box::new(node));
                n
            }
            None => {
                self.nodes.push(Some(Box::new(node)));
                self.nodes.len() as NodeId - 1
            }
        };
        if let Some(p) = self.node_mut(up) {
            p.below.insert(n);
        }
        if let By::Flow(id) = by
            && let Some(k) = self.flows.get_mut(&id)
        {
            k.nodes.insert(n);
        }
        n
    }

    /// All that is behind a node that has nothing below, and its rules. Returns how many.
    fn grow(&mut self, n: NodeId) -> u32 {
        let Some(to) = self.node(n).and_then(|x| x.to) else {
            return self.leaf(n);
        };
        let sourced = self.sourced(n);
        self.tables.entry(to).or_default().nodes.insert(n);
        let flows: Vec<(Step, FlowId)> = match self.tables.get(&to) {
            Some(t) => t.flows.iter().cloned().collect(),
            None => Vec::new(),
        };
        if let Some(x) = self.node_mut(n) {
            x.sourced.clone_from(&sourced);
        }
        let (mut leaves, mut covered) = (0, None);
        for (step, id) in flows {
            if sourced.as_ref().is_some_and(|s| step >= s.step) {
                break;
            }
            let Some(child) = self.child(n, id) else {
                continue;
            };
            let whole = self.node(n).is_some_and(|x| x.fields == child.fields);
            let c = self.link(child);
            leaves += self.grow(c);
            if n != ROOT && leaves > self.limits.per_flow {
                return self.cut(n);
            }
            if whole {
                covered = Some((step, id));
                break;
            }
        }
        let nothing = covered
            .is_none()
            .then(|| self.masks.step(0, &Key::default()));
        if let Some(step) = nothing
            && let Some(x) = self.node(n)
        {
            let mut rest = Node {
                up: n,
                depth: x.depth + 1,
                by: By::Nothing,
                step,
                to: None,
                below: BTreeSet::new(),
                covered: None,
                sourced: None,
                leaves: 0,
                cut: false,
                ..x.clone()
            };
            if let Some(s) = sourced {
                (rest.by, rest.step, rest.to) = (By::Checked, s.step, Some(s.to));
                rest.form.checked = true;
                self.enter_sourced(n);
            }
            let c = self.link(rest);
            leaves += self.grow(c);
            if n != ROOT && leaves > self.limits.per_flow {
                return self.cut(n);
            }
        }
        if let Some(x) = self.node_mut(n) {
            (x.leaves, x.covered) = (leaves, covered.map(Box::new));
        }
        leaves
    }

    fn leaf(&mut self, n: NodeId) -> u32 {
        if let Some(x) = self.node_mut(n) {
            x.leaves = 1;
        }
        self.emit(n);
        1
    }

    /// A beginning with too many chains is one rule.
    fn cut(&mut self, n: NodeId) -> u32 {
        self.bare(n);
        if let Some(x) = self.node_mut(n) {
            x.cut = true;
        }
        self.cuts.insert(n);
        self.leaf(n)
    }

    /// Takes away all that is below a node, and its rule.
    fn bare(&mut self, n: NodeId) {
        let Some(x) = self.node_mut(n) else { return };
        let (to, below) = (x.to, std::mem::take(&mut x.below));
        let was_cut = std::mem::take(&mut x.cut);
        x.covered = None;
        if self.node(n).is_some_and(|x| x.sourced.is_some()) {
            self.leave_sourced(n);
            if let Some(x) = self.node_mut(n) {
                x.sourced = None;
            }
        }
        if was_cut {
            self.cuts.remove(&n);
            self.retry.remove(&n);
            self.later.remove(&n);
            self.starved.remove(&n);
        }
        if let Some(t) = to.and_then(|t| self.tables.get_mut(&t)) {
            t.nodes.remove(&n);
        }
        for c in below {
            self.fell(c);
        }
        self.unemit(n);
    }

    /// A node goes, with all that is below.
    fn fell(&mut self, n: NodeId) {
        self.bare(n);
        let Some(x) = self.nodes.get_mut(n as usize).and_then(Option::take) else {
            return;
        };
        if let Some(p) = self.node_mut(x.up) {
            p.below.remove(&n);
        }
        if let By::Flow(id) = x.by
            && let Some(k) = self.flows.get_mut(&id)
        {
            k.nodes.remove(&n);
        }
        self.over.remove(&(Reverse(x.depth), n));
        self.free.push(n);
    }

    /// There are so many more, or fewer, rules below a node.
    fn weigh(&mut self, mut n: NodeId, more: i64) {
        loop {
            let limit = i64::from(self.limits.per_flow);
            let Some(x) = self.node_mut(n) else { return };
            let leaves = i64::from(x.leaves) + more;
            x.leaves = leaves as u32;
            let (up, depth) = (x.up, x.depth);
            if n == ROOT {
                return;
            }
            if leaves > limit {
                self.over.insert((Reverse(depth), n));
            }
            n = up;
        }
    }

    /// What is behind a node, anew.
    fn again_at(&mut self, n: NodeId) {
        let Some(x) = self.node(n) else { return };
        let (before, up) = (x.leaves, x.up);
        self.bare(n);
        let now = self.grow(n);
        if n != ROOT {
            self.weigh(up, i64::from(now) - i64::from(before));
        }
    }

    /// The same of one that stands elsewhere.
    pub(crate) fn replace(&mut self, n: NodeId, step: Step) {
        if let Some(x) = self.node_mut(n) {
            x.step = step;
            self.again_at(n);
        }
    }

    /// The same of all that go on to a table.
    pub(crate) fn regrow(&mut self, table: u8) {
        let nodes = self.tables.get(&table).map(|t| t.nodes.clone());
        for n in nodes.into_iter().flatten() {
            // One of them may have been below another
            let here = |x: &Node| x.to == Some(table) && !x.cut && x.leaves > 0;
            if self.node(n).is_some_and(here) {
                self.again_at(n);
            }
        }
    }

    pub(crate) fn enter(&mut self, id: FlowId, flow: Flow) {
        let (table, priority) = (flow.table, flow.priority);
        let step = self.masks.step(priority, &Key::of_match(&flow.fields).1);
        let before = self.source_of(table);
        self.groups.flow(id, &flow.instructions, true);
        self.tables
            .entry(table)
            .or_default()
            .flows
            .insert((step.clone(), id));
        self.flows.insert(
            id,
            Box::new(Known {
                flow,
                step: step.clone(),
                place: step.clone(),
                nodes: BTreeSet::new(),
            }),
        );
        self.sort(id, true);
        self.line_up(id, true);
        self.place_anew(id);
        self.touched(table, true);
        if self.resorted(id, table, priority, before, true) {
            return;
        }
        let at = (step, id);
        let nodes = self.tables.get(&table).map(|t| t.nodes.clone());
        for n in nodes.into_iter().flatten() {
            let Some(x) = self.node(n) else { continue };
            let behind = x.covered.as_deref().is_some_and(|c| *c < at)
                || x.sourced.as_ref().is_some_and(|s| s.step <= at.0);
            if x.to != Some(table) || behind {
                continue;
            }
            let Some(child) = self.child(n, id) else {
                continue;
            };
            if self.node(n).is_some_and(|x| x.fields == child.fields) {
                self.again_at(n);
                continue;
            }
            let c = self.link(child);
            let leaves = self.grow(c);
            self.weigh(n, i64::from(leaves));
        }
    }

    pub(crate) fn leave(&mut self, id: FlowId) {
        let Some(k) = self.flows.get(&id) else { return };
        let (table, priority) = (k.flow.table, k.flow.priority);
        let at = (k.step.clone(), id);
        let before = self.source_of(table);
        let nodes = k.nodes.clone();
        if let Some(t) = self.tables.get_mut(&table) {
            t.flows.remove(&at);
        }
        self.line_up(id, false);
        self.place_anew(id);
        self.sort(id, false);
        self.touched(table, false);
        if !self.resorted(id, table, priority, before, false) {
            for n in nodes {
                let Some(x) = self.node(n) else { continue };
                let (up, leaves) = (x.up, x.leaves);
                let covered = self.node(up).and_then(|x| x.covered.as_deref());
                if covered == Some(&at) {
                    self.again_at(up);
                } else {
                    self.fell(n);
                    self.weigh(up, -i64::from(leaves));
                }
            }
        }
        if let Some(k) = self.flows.remove(&id) {
            self.groups.flow(id, &k.flow.instructions, false);
        }
    }

    pub(crate) fn change(&mut self, id: FlowId, new: Flow) {
        let Some(k) = self.flows.get(&id) else { return };
        let (table, priority, nodes) = (k.flow.table, k.flow.priority, k.nodes.clone());
        let before = self.source_of(table);
        self.sort(id, false);
        self.line_up(id, false);
        if let Some(k) = self.flows.get_mut(&id) {
            self.groups.flow(id, &k.flow.instructions, false);
            self.groups.flow(id, &new.instructions, true);
            k.flow = new;
        }
        self.sort(id, true);
        self.line_up(id, true);
        self.place_anew(id);
        self.touched(table, false);
        if self.resorted(id, table, priority, before, true) {
            return;
        }
        for n in nodes {
            let Some(x) = self.node(n) else { continue };
            let (up, leaves) = (x.up, x.leaves);
            let Some(new) = self.child(up, id) else {
                continue;
            };
            self.bare(n);
            if let Some(x) = self.node_mut(n) {
                (x.form, x.to) = (new.form, new.to);
            }
            let now = self.grow(n);
            self.weigh(up, i64::from(now) - i64::from(leaves));
        }
    }

    /// What was cut and goes through this table may not need to be any more.
    fn touched(&mut self, table: u8, came: bool) {
        let through = |n: &&NodeId| {
            let to = self.node(**n).and_then(|x| x.to);
            to.is_some_and(|to| to <= table)
        };
        let nodes: Vec<NodeId> = self.cuts.iter().filter(through).copied().collect();
        let list = if came {
            &mut self.later
        } else {
            &mut self.retry
        };
        list.extend(nodes);
    }

    /// Looks again at so many that were cut.
    pub(crate) fn again(&mut self, most: u32) {
        for _ in 0..most {
            self.trim();
            let Some(n) = self.retry.pop_first() else {
                return;
            };
            self.again_at(n);
        }
    }

    /// No beginning has more chains than it may, the deepest cut first.
    fn trim(&mut self) {
        while let Some((_, n)) = self.over.pop_first() {
            let Some(x) = self.node(n) else { continue };
            let (leaves, up) = (x.leaves, x.up);
            if leaves > self.limits.per_flow {
                let now = self.cut(n);
                self.weigh(up, i64::from(now) - i64::from(leaves));
            }
        }
    }

    fn spare(&self) -> i64 {
        let root = self.node(ROOT);
        let more = root.map_or(0, |r| i64::from(r.leaves) - r.below.len() as i64);
        i64::from(self.limits.all) - more
    }

    /// Nor are there too many in all: those with the most are cut first. Who was cut for that and fits comes back.
    pub(crate) fn balance(&mut self) {
        loop {
            self.trim();
            while self.spare() < 0 {
                let first = self.node(ROOT).map(|r| r.below.iter());
                let size = |n: &&NodeId| self.node(**n).map_or(0, |x| x.leaves);
                let Some(n) = first.into_iter().flatten().max_by_key(size).copied() else {
                    return;
                };
                let before = self.node(n).map_or(0, |x| x.leaves);
                self.cut(n);
                self.starved.insert(n, before);
                self.weigh(ROOT, 1 - i64::from(before));
            }
            let spare = self.spare();
            let fits = |want: u32| i64::from(want) - 1 <= spare;
            let waiting = self.starved.iter().filter(|(_, want)| fits(**want));
            let Some((n, _)) = waiting.min_by_key(|(n, want)| (**want, **n)) else {
                return;
            };
            self.again_at(*n);
        }
    }
}

#[cfg(test)]
impl Compose {
    /// Chains that begin with each flow of table 0, and how many there would be if there were room.
    pub fn first(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        let below = self.node(ROOT).map(|r| r.below.iter());
        below.into_iter().flatten().map(|n| {
            let leaves = self.node(*n).map_or(0, |x| x.leaves);
            (leaves, self.starved.get(n).copied())
        })
    }
}

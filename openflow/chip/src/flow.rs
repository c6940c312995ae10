// SPDX-License-Identifier: Apache-2.0
//! Flows as the software pipeline has them, for the composition; its rules, for the decision.
//!
//! ```text
//!   changes of one message ─► Compose: rules that come, change, go ─► Offload ─► writes, as one decision
//!                                                                         counts of rules ─► of the flows in them
//! ```

use std::collections::{BTreeMap, BTreeSet};

use tandem_abi::raw;
use tandem_ofcompose::{Compose, Flow, FlowId, RuleId};
use tandem_ofoffload::{Act, Beyond, Change, FORM_VIDS, MASK_VIDS, Second, Share, Wanted};
use tandem_ofpipeline::flows::{self, blank};
use tandem_ofpipeline::{Change as Changed, ChangeKind, Switch};
use tandem_openflow::oxm::VID_PRESENT;
use tandem_openflow::{Action, Field, Instructions, Oxm, Version, port};

use crate::counts::{Counted, Past, Tally, Unwritten};
use crate::lookups;
use crate::ports::{May, PortOf, Ports};
use crate::want::{Command, Row, Scope, Target};
use crate::{Chip, Setup, Step, Trust, What};

/// The number of 1.0's answer to what no flow matches, said as a flow.
pub(crate) const MISS: FlowId = FlowId::MAX - 1;

/// Reasons that are told of a flow's rules.
const REASONS: usize = 3;

/// The composition of no flows, and its decisions.
pub(crate) fn compose(setup: &Setup, ports: &Ports) -> (Compose, Vec<Vec<Change>>) {
    let (mut c, changes) = Compose::new(setup.limits(), ports.masks());
    if setup.version != Version::V10 {
        return (c, vec![changes]);
    }
    let miss = Flow {
        table: 0,
        priority: 0,
        fields: Vec::new(),
        instructions: Instructions {
            apply: Some(vec![Action::Output {
                port: port::CONTROLLER,
                max_len: 0,
            }]),
            ..blank().instructions
        },
        idle: false,
        counted: false,
    };
    let mut all = vec![changes];
    all.push(c.batch(vec![(MISS, Some(miss))]));
    (c, all)
}

fn gone(c: &Changed) -> bool {
    matches!(c.kind, ChangeKind::Gone { .. })
}

impl Chip {
    /// What one message changed of the flows, at once. Of each flow that went, in order: what its rows have counted, or
    /// what names that until it is known.
    pub fn follow(
        &mut self,
        switch: &Switch,
        mut changes: &[Changed],
    ) -> Vec<Result<Tally, Counted>> {
        let mut left = Vec::new();
        while !changes.is_empty() {
            // Behind one that went its number is another flow's
            let mut went = BTreeSet::new();
            let again = changes.iter().position(|c| {
                if gone(c) {
                    went.insert(c.flow);
                }
                !gone(c) && went.contains(&c.flow)
            });
            let (now, then) = changes.split_at(again.unwrap_or(changes.len()));
            self.follow_some(switch, now, &mut left);
            changes = then;
        }
        if self.groups.waits() {
            let rules = self.compose.batch(Vec::new());
            self.decide(rules);
        }
        left
    }

    fn follow_some(
        &mut self,
        switch: &Switch,
        changes: &[Changed],
        left: &mut Vec<Result<Tally, Counted>>,
    ) {
        let mut flows = BTreeMap::new();
        for c in changes {
            let flow = switch.flow(c.flow).filter(|f| !gone(c) && self.meets(f));
            self.uses.set_timeout(c.flow, flow.map_or(0, |f| f.idle));
            flows.insert(c.flow, flow.map(of_pipeline));
        }
        let rules = self.compose.batch(flows.into_iter().collect());
        self.decide(rules);
        for c in changes {
            match c.kind {
                ChangeKind::Gone { .. } => left.push(self.counts.leave(c.flow)),
                ChangeKind::Reset if switch.flow(c.flow).is_some() => self.reset(c.flow),
                ChangeKind::Reset | ChangeKind::Put => {}
            }
        }
    }

    /// All flows that there are, to a chip that knows none of them.
    pub fn follow_all(&mut self, switch: &Switch, now_ns: u64) {
        self.now_ns = now_ns;
        self.regroup_all(switch);
        let put = |flow| Changed {
            flow,
            kind: ChangeKind::Put,
        };
        let all = switch.flows_of(tandem_openflow::model::TABLE_ALL);
        let all: Vec<Changed> = all.into_iter().map(put).collect();
        self.follow(switch, &all);
    }

    /// What the chip answered of these flows for an earlier process: as that has written down, else it is not known. What
    /// it looked up in the first table is not.
    pub fn restore_counts(&mut self, past: Option<&Past>, switch: &Switch, now_ns: u64) {
        self.lookups.others();
        let tables = (1..=u8::MAX).flat_map(|t| [lookups::matched(t), lookups::missed(t)]);
        let flows = switch.flows_of(tandem_openflow::model::TABLE_ALL);
        let (own, others): (Vec<FlowId>, _) = flows.into_iter().partition(|f| self.compose.has(*f));
        // They ask for a port that was the chip's, perhaps
        for f in others {
            if switch.flow(f).is_some_and(|f| f.idle != 0) {
                self.counts.meet_past(f, now_ns);
            }
        }
        let all = own.into_iter().chain(tables);
        match past {
            Some(past) => {
                let bytes = self.known.chip.acl.counted.bytes;
                self.counts.restore(past, self.setup.slice, bytes);
                all.for_each(|f| self.counts.know(f, now_ns));
            }
            None => all.for_each(|f| self.counts.lose_past(f, now_ns)),
        }
        self.lose_groups(switch);
    }

    /// What is to be written down for [`Chip::restore_counts`], since this was asked last.
    pub fn take_unwritten(&mut self) -> Unwritten {
        self.counts.take_unwritten()
    }

    /// All of that.
    pub fn past(&self) -> Past {
        self.counts.past()
    }

    /// Can frames of the chip meet it?
    fn meets(&self, flow: &flows::Flow) -> bool {
        let of = |o: &Oxm| {
            o.field != tandem_openflow::Field::InPort
                || u32::try_from(o.value).is_ok_and(|n| self.ports.chip(n).is_some())
        };
        flow.matching.fields.iter().all(of)
    }

    /// Rules that come, change, go: one decision. The question for sources is asked before and for as long as there are
    /// rules that rely on it.
    pub(crate) fn decide(&mut self, rules: Vec<Change>) {
        let members = self.members();
        self.shut = members != self.want.members;
        if self.shut {
            self.write_ports(false);
            self.set_members(members);
        }
        let asks = self.compose.asks_sources();
        if asks && !self.asks {
            self.asks = true;
            self.write_ports(false);
        }
        let mut moved = self.compose.take_moved();
        let there = |r: &RuleId| self.compose.rule(*r).is_some() && self.flows_of.contains_key(r);
        moved.extend(self.groups.take_anew().into_iter().filter(there));
        for c in &rules {
            match c {
                Change::Add { id, .. } => self.joins(*id),
                Change::Remove { id } => self.parts(*id),
                Change::Modify { id, .. } => self.lose_resized(*id),
            }
        }
        for id in &moved {
            self.parts(*id);
            self.joins(*id);
            self.uncount(*id);
        }
        for id in self.groups.take_old() {
            if let Ok(tally) = self.counts.leave(id) {
                self.counts.forget(tally);
            }
        }
        let changed = rules.iter().map(|c| match c {
            Change::Add { id, .. } | Change::Modify { id, .. } | Change::Remove { id } => id,
        });
        self.uses.touched.extend(changed.chain(&moved));
        let timed = |c: &Change| match c {
            Change::Modify { id, idle: true, .. } => Some(*id),
            _ => None,
        };
        let timed: Vec<RuleId> = rules.iter().filter_map(timed).collect();
        self.note_forms(&rules);
        let mut all = Vec::new();
        if !self.formed.is_empty() && !self.is_guarded() {
            self.guard_forms();
            all = self.kept_rules();
        }
        all.extend(rules);
        self.decide_some(all);
        if self.formed.is_empty() && self.is_guarded() {
            self.unguard_forms();
            let kept = self.kept_rules();
            self.decide_some(kept);
        }
        for id in timed {
            self.count(id);
        }
        for id in moved {
            // What was not counted before is lost for those that it was to count for then, and for no others
            self.offload.reset_counts(id);
            self.recount(id);
        }
        for flow in self.compose.take_questions() {
            self.counts.lose_flow(flow, true, true);
            if let Some(t) = self.compose.table_of(flow).filter(|t| *t != 0) {
                self.counts.lose_flow(lookups::matched(t), true, true);
            }
        }
        if self.asks && !asks {
            self.asks = false;
            self.write_ports(true);
        }
        if std::mem::take(&mut self.shut) {
            self.write_ports(true);
        }
        self.resize();
    }

    /// What of it the chip may do, and that.
    fn decide_some(&mut self, rules: Vec<Change>) {
        let (forms, guarded) = (self.known.has_forms(), self.is_guarded());
        let possible = |mut c: Change| {
            let (id, of) = match &mut c {
                Change::Add { id, flow, .. } => (*id, &mut flow.wanted),
                Change::Modify { id, wanted, .. } => (*id, wanted),
                Change::Remove { .. } => return c,
            };
            if let Some(r) = self.compose.rule(id) {
                let kept = guarded && is_kept(&r.fields);
                can(of, r.second(), forms, kept);
            }
            c
        };
        let rules: Vec<Change> = rules.into_iter().map(possible).collect();
        for c in &rules {
            let (Change::Add { id, .. } | Change::Modify { id, .. } | Change::Remove { id }) = c;
            self.uses.touched.insert(*id);
        }
        let writes = self.offload.batch(rules);
        self.apply(writes);
    }

    /// Ports that are in domains: of VLANs, or all in the switch's own.
    fn members(&self) -> BTreeMap<(u16, u16), bool> {
        if self.setup.slice.joins() {
            let ports = self.ports.list.iter();
            return ports
                .map(|(p, _)| ((u16::from(p.port), raw::TND_VID_ANY), false))
                .collect();
        }
        let of = |((n, vid), untagged)| Some(((self.ports.chip(n)?, vid), untagged));
        self.compose.members().into_iter().filter_map(of).collect()
    }

    /// Ports become members of domains, or leave them, while all frames go to the CPU.
    pub(crate) fn set_members(&mut self, new: BTreeMap<(u16, u16), bool>) {
        let old = std::mem::replace(&mut self.want.members, new);
        for ((port, vid), untagged) in &old {
            if self.want.members.get(&(*port, *vid)) != Some(untagged) {
                self.drop_object(Target::Member(*port, *vid), Scope::All, false);
            }
        }
        for ((port, vid), untagged) in self.want.members.clone() {
            let fid = self.want.fid_of(vid);
            if self.want.vlans.insert(fid) {
                self.push(raw::TND_OP_CREATE, Target::Vlan(fid), Scope::All, false);
            }
            if old.get(&(port, vid)) != Some(&untagged) {
                let target = Target::Member(port, vid);
                self.push(raw::TND_OP_CREATE, target, Scope::All, false);
            }
        }
    }

    /// What a rule's rows count is these flows', and the tables' behind the first.
    fn joins(&mut self, rule: RuleId) {
        let mut all = Vec::new();
        if let Some(r) = self.compose.rule(rule) {
            let tables = r.flows.iter().filter_map(|f| self.compose.table_of(*f));
            all.extend(tables.filter(|t| *t != 0).map(lookups::matched));
            match r.ends {
                Some(0) if r.wanted().act().real() => self.lookups.miss(),
                Some(0) | None => {}
                Some(t) => all.push(lookups::missed(t)),
            }
            all.extend(self.groups.joins(rule, &r.via));
            all.extend(&r.flows);
        }
        self.flows_of.insert(rule, all);
        self.lose_resized(rule);
    }

    /// A row counts the bytes that come in.
    fn lose_resized(&mut self, rule: RuleId) {
        let Some(r) = self.compose.rule(rule) else {
            return;
        };
        if r.wanted().act().real() {
            for f in &r.resized {
                self.counts.lose_flow(*f, false, true);
            }
            for t in r.via.iter().filter(|t| t.resized) {
                if let Some(id) = self.groups.id(t.group, t.bucket) {
                    self.counts.lose_flow(id, false, true);
                }
            }
        }
    }

    /// It is not theirs any more, and what was not counted stays unknown.
    fn parts(&mut self, rule: RuleId) {
        self.measure.forget(rule);
        let flows = self.flows_of.remove(&rule).unwrap_or_default();
        self.groups.parts(rule, &flows);
        self.lose_uncounted(rule, &flows);
    }

    fn lose_uncounted(&mut self, rule: RuleId, flows: &[FlowId]) {
        if let Some(k) = self.offload.counts(rule)
            && !(k.packets && k.bytes)
        {
            for f in flows {
                self.counts.lose_flow(*f, !k.packets, !k.bytes);
            }
        }
    }

    /// A flow's counters begin anew.
    fn reset(&mut self, id: FlowId) {
        let rules = self.compose.rules_of(id);
        for r in &rules {
            let mut others = self.flows_of.get(r).cloned().unwrap_or_default();
            others.retain(|f| *f != id);
            self.lose_uncounted(*r, &others);
            self.offload.reset_counts(*r);
        }
        self.counts.reset(id);
        if rules
            .iter()
            .filter_map(|r| self.offload.counts(*r))
            .any(|k| !k.packets)
        {
            self.counts.uncounted(&[id]);
        }
        for r in rules {
            self.lose_resized(r);
            self.uncount(r);
            self.recount(r);
        }
        if self.compose.is_question(id) {
            self.counts.lose_flow(id, true, true);
        }
    }

    /// What a rule's rows have counted is not those' that they count for from here on: each gets another counter with the
    /// next write, so that none counts for the one what it answered for the other.
    fn uncount(&mut self, rule: RuleId) {
        for (at, _) in self.offload.rows(rule) {
            let row = self.want.rows.get_mut(&at);
            if let Some(counter) = row.map(|r| std::mem::take(&mut r.counter)) {
                self.retire(at, counter);
            }
        }
    }

    /// Rows that have answered in the same way before and after get theirs.
    fn recount(&mut self, rule: RuleId) {
        for (at, act) in self.offload.rows(rule) {
            let Some(mut row) = self.want.rows.remove(&at) else {
                continue;
            };
            let counted = row.entry.counter != 0;
            let uncounted = row.counter == 0;
            if uncounted {
                self.set_row(&mut row, act);
            }
            let rewritten = uncounted && (counted || row.entry.counter != 0);
            let scope = row.scope;
            self.want.rows.insert(at, row);
            if rewritten {
                self.update_row(at, scope);
            }
        }
    }

    fn new_counter(&mut self, id: u32) {
        if self.writes_now() {
            self.counts.make(id);
        }
        self.push(
            raw::TND_OP_CREATE,
            Target::Counter(id),
            Scope::Nothing,
            false,
        );
    }

    /// A row that answers as before, with another counter.
    fn update_row(&mut self, at: u32, scope: Scope) {
        self.push(raw::TND_OP_UPDATE, Target::Row(at), scope, true);
    }

    /// Whether a rule is used is asked from here on: its rows that answer uncounted get a counter, or trap.
    fn count(&mut self, rule: RuleId) {
        for (at, act) in self.offload.rows(rule) {
            let uncounted = |r: &&Row| act.real() && r.counter == 0;
            let Some(row) = self.want.rows.get(&at).filter(uncounted) else {
                continue;
            };
            let mut row = row.clone();
            self.set_row(&mut row, act);
            let (scope, answers) = (row.scope, row.counter != 0);
            self.want.rows.insert(at, row);
            self.push(raw::TND_OP_UPDATE, Target::Row(at), scope, answers);
        }
    }

    /// A row that answers has a counter. If there is none left it answers uncounted, or traps if a timeout asks whether it is
    /// used.
    pub(crate) fn set_row(&mut self, row: &mut Row, act: Act) {
        row.set(act);
        if act.real() && row.counter == 0 {
            let idle = self.compose.rule(row.rule).is_some_and(|r| r.idle);
            if idle && self.counts.is_full() {
                row.set(Act::Cpu);
                return;
            }
            let flows = self.flows_of.get(&row.rule);
            let flows = flows.map_or(&[][..], Vec::as_slice);
            row.counter = self.counts.take(flows).unwrap_or(0);
            if row.counter != 0 {
                self.new_counter(row.counter);
            }
            row.set(act);
        }
    }

    /// One port more, which is nobody's: nothing comes in or leaves there before [`Chip::set_ports`] says what it may. Of
    /// its flows the chip is told.
    pub fn add_port(&mut self, of: PortOf, switch: &Switch) {
        let nothing = May {
            receive: false,
            send: false,
            flood: false,
        };
        self.ports.list.push((of, nothing));
        self.leaving.remove(&of.port);
        self.totals.begin(u16::from(of.port));
        self.measure.begin();
        self.read();
        self.lookups.others();
        if self.writes_now() {
            // The port opens behind it: without a list its frames would meet the MAC table, which may be another's
            for command in self.lists_of(of.port) {
                self.queue.push_back(Step {
                    what: What::Write(Target::List),
                    scope: Scope::All,
                    opens: false,
                    command,
                });
            }
        } else {
            self.soil(Target::List);
        }
        self.others(of.number, switch);
        self.write_ports(true);
    }

    /// One less: from here on nothing comes in there, and when it is settled, nothing of this switch is sent there.
    /// The chip's number of it.
    pub fn remove_port(&mut self, number: u32, switch: &Switch) -> Option<u8> {
        let at = self
            .ports
            .list
            .iter()
            .position(|(p, _)| p.number == number)?;
        let (of, may) = self.ports.list.remove(at);
        self.measure.begin();
        self.lookups.others();
        if self.writes_now() {
            // What comes in meets no rule that others have left, and what is sent there is until they send elsewhere
            let body = self.ports.body(&(of, may), self.ports_are(true));
            self.queue.push_back(Step {
                what: What::Port,
                scope: Scope::All,
                opens: false,
                command: Command::of(raw::TND_OP_UPDATE, &body),
            });
        }
        self.others(number, switch);
        match self.trust {
            Trust::Lost { gone: true, .. } => {}
            // It may send there until a cold attach
            Trust::Lost { .. } => _ = self.leaving.insert(of.port),
            _ => {
                self.leaving.insert(of.port);
                self.write_nobodys(of.port);
            }
        }
        Some(of.port)
    }

    /// Was it this switch's, and does the chip perhaps not know yet that it is not?
    pub fn is_leaving(&self, port: u8) -> bool {
        self.leaving.contains(&port)
    }

    /// The ports are others: flows that ask for this number come or go, and who sends there has another answer.
    fn others(&mut self, number: u32, switch: &Switch) {
        let at =
            |o: &Oxm| o.field == tandem_openflow::Field::InPort && o.value == u128::from(number);
        let mut flows = BTreeMap::new();
        for id in switch.flows_of(tandem_openflow::model::TABLE_ALL) {
            if let Some(f) = switch.flow(id)
                && f.matching.fields.iter().any(at)
            {
                let meets = self.meets(f);
                self.uses.set_timeout(id, if meets { f.idle } else { 0 });
                flows.insert(id, meets.then(|| of_pipeline(f)));
            }
        }
        // Both are one change, and so are groups that watch the port
        self.compose.put_ports(self.ports.masks());
        let rules = self.compose.batch(flows.into_iter().collect());
        self.decide(rules);
    }

    /// What the ports may do; `none`: all frames are the CPU's.
    pub fn set_ports(&mut self, may: impl Fn(u32) -> May, none: bool) {
        let old = self.ports.clone();
        for (p, m) in &mut self.ports.list {
            *m = may(p.number);
        }
        self.ports.none = none;
        let takes = |p: &Ports, m: &May| m.receive && !p.none;
        let (mut closes, mut opens, mut others) = (false, false, false);
        for ((_, a), (_, b)) in old.list.iter().zip(&self.ports.list) {
            closes |= takes(&old, a) && !takes(&self.ports, b);
            opens |= !takes(&old, a) && takes(&self.ports, b);
            others |= (a.send, a.flood) != (b.send, b.flood);
        }
        if closes || opens {
            self.write_ports(opens);
        }
        if others || self.groups.waits() {
            let rules = self.compose.set_ports(self.ports.masks());
            self.decide(rules);
        }
    }

    // -- what is told of them

    /// Does the chip answer anything?
    pub(crate) fn answers(&self) -> bool {
        self.is_open() && !self.ports.none
    }

    /// How many of a flow's packets are answered in the chip, as far as the chip's rows for it say.
    pub fn share(&self, id: FlowId) -> Share {
        if !self.answers() {
            return Share::Nothing;
        }
        let rules = self.compose.rules_of(id);
        Share::of(rules.iter().filter_map(|r| self.offload.share(*r)))
    }

    /// Why a flow is where it is. `None`: no frame of the chip's ports can meet it.
    pub fn why(&self, id: FlowId) -> Option<String> {
        if self.compose.is_question(id) {
            return Some("the chip asks whether it has a frame's source in the MAC table".into());
        }
        if !self.compose.has(id) {
            return None;
        }
        let mut all: BTreeMap<String, u32> = BTreeMap::new();
        for r in self.compose.rules_of(id) {
            if let Some(why) = self.offload.why(r) {
                *all.entry(why.named(|r| self.name(r)).to_string())
                    .or_default() += 1;
            }
        }
        Some(reasons(all))
    }

    /// How many rules a flow is in.
    pub fn rules(&self, id: FlowId) -> usize {
        self.compose.rules_of(id).len()
    }

    /// How often the chip has looked something up in each table's place, and found a flow, as of the last read; `None`: all
    /// ones.
    pub fn looked_up(&self) -> Vec<(Option<u64>, Option<u64>)> {
        let mut unknown: BTreeSet<FlowId> = BTreeSet::new();
        for (rule, all) in &self.flows_of {
            if all.first().is_some_and(|f| lookups::is_table(*f))
                && self.offload.counts(*rule).is_some_and(|k| !k.packets)
            {
                unknown.extend(all.iter().copied().filter(|f| lookups::is_table(*f)));
            }
        }
        let of = |id: FlowId| {
            let c = self.counts.of(id);
            (!c.lost && !unknown.contains(&id)).then_some(c.packets)
        };
        let behind = (1..=u8::MAX).map(|t| {
            let (matched, missed) = (of(lookups::matched(t)), of(lookups::missed(t)));
            (matched.zip(missed).map(|(a, b)| a + b), matched)
        });
        let first = match self.counts.is_stale() {
            true => (None, None),
            false => self.lookups.first(),
        };
        std::iter::once(first).chain(behind).collect()
    }

    /// What is known of a flow's packets in the chip; `None`: all ones. Of the last read.
    pub fn counted(&self, id: FlowId) -> (Option<u64>, Option<u64>) {
        self.counted_by(id, self.compose.rules_of(id).into_iter())
    }

    /// What these rules count by a number.
    pub(crate) fn counted_by(
        &self,
        id: FlowId,
        rules: impl Iterator<Item = RuleId>,
    ) -> (Option<u64>, Option<u64>) {
        let c = self.counts.of(id);
        let (mut packets, mut bytes) = (!c.lost, !c.lost && !c.lost_bytes);
        for r in rules {
            if let Some(k) = self.offload.counts(r) {
                packets &= k.packets;
                bytes &= k.packets && k.bytes;
            }
        }
        (packets.then_some(c.packets), bytes.then_some(c.bytes))
    }
}

fn of_pipeline(flow: &flows::Flow) -> Flow {
    let own = |o: &Oxm| Oxm {
        value: o.value & o.mask,
        ..*o
    };
    let asked = flow.matching.fields.iter().filter(|o| o.mask != 0);
    let mut fields = Vec::with_capacity(flow.matching.fields.len());
    fields.extend(asked.map(own));
    fields.sort_by_key(|o| o.field);
    Flow {
        table: flow.table,
        priority: flow.priority,
        fields,
        instructions: flow.instructions.clone(),
        idle: flow.idle > 0,
        counted: false,
    }
}

fn may_write(vid: u16, forms: bool) -> bool {
    let kept = forms && vid & MASK_VIDS == FORM_VIDS;
    !kept && !matches!(vid, 0 | 4095)
}

/// While there are flows of two forms, frames with a VLAN id by which their packets are known go to the CPU, whoever they would
/// meet.
pub(crate) fn is_kept(fields: &[Oxm]) -> bool {
    let vid = fields.iter().find(|o| o.field == Field::VlanVid);
    let bits = u128::from(MASK_VIDS | VID_PRESENT);
    vid.is_some_and(|o| {
        o.mask & bits == bits && o.value & bits == u128::from(FORM_VIDS | VID_PRESENT)
    })
}

/// No rule of the chip writes these VLANs into a tag, by whichever of its ports.
fn can(wanted: &mut Wanted, second: Option<Second>, forms: bool, kept: bool) {
    if kept && wanted.act() != Act::Cpu {
        *wanted = Wanted::Beyond(Beyond::Kept);
    }
    if let Wanted::Act(Act::Out { rewrite, .. }) = wanted {
        let mut written = [rewrite.vid, second.and_then(|s| s.rewrite.vid)]
            .into_iter()
            .flatten();
        if written.any(|vid| !may_write(vid, forms)) {
            *wanted = Wanted::Beyond(Beyond::Rewrite);
        }
    }
}

/// Reasons of several rules in words, with how many have each; those of most first.
pub(crate) fn reasons(all: BTreeMap<String, u32>) -> String {
    let rules: u32 = all.values().sum();
    let mut all: Vec<(String, u32)> = all.into_iter().collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let others: u32 = all.iter().skip(REASONS).map(|(_, n)| n).sum();
    let mut said = match all.as_slice() {
        [] => "nowhere: no packet gets there, or what gets there is the CPU's".to_owned(),
        [(why, 1)] => why.clone(),
        [(why, n), ..] => format!("{n} of {rules} rules: {why}"),
    };
    for (why, n) in all.iter().take(REASONS).skip(1) {
        said += &format!("; {n}: {why}");
    }
    if others > 0 {
        said += &format!("; {others}: for other reasons");
    }
    said
}

// SPDX-License-Identifier: Apache-2.0
//! Of one flow, all: each rule that it is in, where that stands, what turns it, what it turns, what it takes.
//!
//! A rule is named by its last flow, as in [`Chip::why`].

use tandem_ofcompose::{FlowId, RuleId};
use tandem_ofoffload::{Second, Share, Wanted};
use tandem_openflow::Oxm;

use crate::Chip;
use crate::flow::MISS;

/// Flows that are told by name, of those that turn a rule or are turned by it.
const NAMED: usize = 8;

/// Other flows that have to do with a rule: some by name, and how many rules there are in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Their numbers.
    pub flows: Vec<FlowId>,
    /// Rules in all.
    pub rules: u32,
}

/// A rule that a flow is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruled {
    /// The chain, first one first.
    pub flows: Vec<FlowId>,
    /// What it asks of a frame as it comes in.
    pub fields: Vec<Oxm>,
    /// What becomes of the frame, in the words of a chip.
    pub answer: Wanted,
    /// And by which ports it leaves in another form.
    pub second: Option<Second>,
    /// How much of it the chip answers; `None`: nothing is left to answer, one in front has all of its packets.
    pub share: Option<Share>,
    /// Where it stands, and why.
    pub why: String,
    /// What would have to be otherwise for the chip to answer.
    pub needs: Option<String>,
    /// Lines of the list, entries of the MAC table.
    pub cost: (u32, u32),
    /// Flows in front because of which it traps.
    pub turned_by: Others,
    /// Flows behind that trap because of it.
    pub turns: Others,
}

/// A flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// Its rules, those first that the chip does not answer whole; not more than were asked for.
    pub rules: Vec<Ruled>,
    /// Rules in all.
    pub all: usize,
    /// What all of them take: lines, entries.
    pub cost: (u32, u32),
    /// Lines of the list that classifies.
    pub class: u32,
}

impl Chip {
    /// What its list is called that classifies frames before that, if it has one.
    pub fn class_name(&self) -> Option<&'static str> {
        self.known.chip.class.as_ref().map(|c| c.rows.name)
    }

    /// Everything of one flow, with so many of its rules.
    pub fn explain(&self, id: FlowId, most: usize) -> Explained {
        let (mut cost, mut class) = ((0, 0), 0);
        let mut sorted: Vec<(bool, RuleId)> = Vec::new();
        for r in self.compose.rules_of(id) {
            let (lines, entries) = self.offload.cost(r);
            cost = (cost.0 + lines, cost.1 + entries);
            class += self.offload.class_cost(r);
            sorted.push((self.offload.share(r) == Some(Share::Whole), r));
        }
        sorted.sort_unstable();
        let some = sorted.iter().take(most);
        Explained {
            rules: some.filter_map(|(_, r)| self.ruled(*r)).collect(),
            all: sorted.len(),
            cost,
            class,
        }
    }

    /// The rule of a packet that met these flows: of a beginning that is the CPU's whatever follows no more is composed.
    pub fn rule_of(&self, met: &[FlowId]) -> Option<Ruled> {
        let flows = |r: &RuleId| Some(&self.compose.rule(*r)?.flows);
        let begins = |r: &RuleId| flows(r).is_some_and(|f| !f.is_empty() && met.starts_with(f));
        let rules = self.compose.rules_of(*met.first()?).into_iter();
        let longest = rules.filter(begins).max_by_key(|r| flows(r).map(Vec::len));
        self.ruled(longest?)
    }

    fn ruled(&self, r: RuleId) -> Option<Ruled> {
        let rule = self.compose.rule(r)?;
        let why = self.offload.why(r)?.named(|r| self.name(r));
        let others = |(rules, all): (Vec<RuleId>, u32)| {
            let mut flows: Vec<FlowId> = rules.iter().map(|r| self.name(*r)).collect();
            flows.sort_unstable();
            flows.dedup();
            flows.retain(|f| *f != MISS);
            Others { flows, rules: all }
        };
        let own = |f: &FlowId| *f != MISS;
        Some(Ruled {
            flows: rule.flows.iter().copied().filter(own).collect(),
            fields: rule.fields.clone(),
            answer: rule.wanted(),
            second: rule.second(),
            share: self.offload.share(r),
            needs: why.needs(),
            why: why.to_string(),
            cost: self.offload.cost(r),
            turned_by: others(self.offload.turned_by(r, NAMED)),
            turns: others(self.offload.turns(r, NAMED)),
        })
    }

    /// A rule's name.
    pub(crate) fn name(&self, r: RuleId) -> FlowId {
        let flows = self.flows_of.get(&r);
        flows.and_then(|f| f.last().copied()).unwrap_or(r)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Groups: which buckets all of a group's packets take, and what rows count of groups and buckets, as they do of flows.
//!
//! ```text
//!   group_mod, a port that goes down ─► Switch: buckets that are taken ─► Compose ─► rules, with the flows' changes
//!                                       came anew? ─► other numbers to count with
//! ```

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use tandem_ofcompose::{Buckets, FlowId, RuleId, Through};
use tandem_ofoffload::Share;
use tandem_ofpipeline::Switch;
use tandem_ofpipeline::groups::{Group, Regrouped};

use crate::{Chip, lookups};

/// Numbers behind this no flow has, nor a table.
const FIRST: FlowId = 0x8000_0000;

/// Is it a number of a group or a bucket?
pub(crate) fn is_group(id: FlowId) -> bool {
    (FIRST..lookups::FIRST).contains(&id)
}

/// What counts for groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// A group's number among those of flows, and a bucket's.
    ids: BTreeMap<(u32, Option<u32>), FlowId>,
    free: Vec<FlowId>,
    last: FlowId,
    /// The rules of each.
    rules: HashMap<FlowId, BTreeSet<RuleId>>,
    /// Numbers that go with the next decision, and rules that count with others from there on.
    old: Vec<FlowId>,
    anew: BTreeSet<RuleId>,
    /// The next decision is not made yet.
    waits: bool,
    /// What the chip had counted of them for an earlier process is not known.
    lost: BTreeSet<u32>,
}

fn buckets(group: &Group) -> Option<Buckets> {
    let taken = group.taken()?;
    let (from, many) = (taken.start, taken.len());
    let numbered = (0..).zip(&group.buckets).skip(from).take(many);
    Some(numbered.map(|(n, b)| (n, b.actions.clone())).collect())
}

impl Groups {
    /// A rule's packets count for these: their numbers.
    pub fn joins(&mut self, rule: RuleId, via: &[Through]) -> Vec<FlowId> {
        let mut all = Vec::with_capacity(via.len());
        for t in via {
            let id = *self.ids.entry((t.group, t.bucket)).or_insert_with(|| {
                self.free.pop().unwrap_or_else(|| {
                    self.last += 1;
                    FIRST + self.last
                })
            });
            self.rules.entry(id).or_default().insert(rule);
            all.push(id);
        }
        all
    }

    /// Of a list that [`Groups::joins`] gave those that are of groups do not count the rule's packets any more.
    pub fn parts(&mut self, rule: RuleId, flows: &[FlowId]) {
        for id in flows.iter().filter(|id| is_group(**id)) {
            if let Some(of) = self.rules.get_mut(id) {
                of.remove(&rule);
                if of.is_empty() {
                    self.rules.remove(id);
                }
            }
        }
    }

    /// The number of a group or a bucket that rules count for.
    pub fn id(&self, group: u32, bucket: Option<u32>) -> Option<FlowId> {
        self.ids.get(&(group, bucket)).copied()
    }

    /// A group and its buckets count anew.
    fn begin(&mut self, group: u32) {
        self.lost.remove(&group);
        let own = self.ids.range((group, None)..=(group, Some(u32::MAX)));
        let own: Vec<_> = own.map(|(k, id)| (*k, *id)).collect();
        for (key, id) in own {
            self.ids.remove(&key);
            self.old.push(id);
            self.anew.extend(self.rules.get(&id).into_iter().flatten());
        }
    }

    /// Is there something that no decision was made about?
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// A decision is made: rules that count with other numbers from here on.
    pub fn take_anew(&mut self) -> BTreeSet<RuleId> {
        self.waits = false;
        std::mem::take(&mut self.anew)
    }

    /// Numbers that no rule has any more.
    pub fn take_old(&mut self) -> Vec<FlowId> {
        let old = std::mem::take(&mut self.old);
        self.free.extend(&old);
        old
    }
}

impl Chip {
    /// Groups that changed. What follows of it is one decision with the next of [`Chip::follow`], [`Chip::set_ports`] or
    /// [`Chip::remove_port`].
    pub fn regroup(&mut self, switch: &Switch, changed: &BTreeMap<u32, Regrouped>) {
        let mut all = Vec::with_capacity(changed.len());
        for (n, what) in changed {
            if *what == Regrouped::Put {
                self.groups.begin(*n);
            }
            all.push((*n, switch.group(*n).and_then(|(g, _)| buckets(g))));
        }
        self.groups.waits |= !all.is_empty();
        self.compose.put_groups(all);
    }

    /// All groups that there are, to a chip that knows none of them.
    pub(crate) fn regroup_all(&mut self, switch: &Switch) {
        let all = switch.groups().map(|n| (n, Regrouped::Put));
        self.regroup(switch, &all.collect());
    }

    /// What the chip answered of groups for an earlier process is not known.
    pub(crate) fn lose_groups(&mut self, switch: &Switch) {
        self.groups.lost = switch.groups().collect();
    }

    /// What is known of the packets in the chip of a group, or of one of its buckets; `None`: all ones. Of the last read.
    pub fn group_counted(&self, group: u32, bucket: Option<u32>) -> (Option<u64>, Option<u64>) {
        if self.groups.lost.contains(&group) {
            return (None, None);
        }
        let Some(id) = self.groups.id(group, bucket) else {
            return (Some(0), Some(0));
        };
        let rules = self.groups.rules.get(&id);
        self.counted_by(id, rules.into_iter().flatten().copied())
    }

    /// How much of the packets of flows that go through a group is answered in the chip; `None`: no flow does.
    pub fn group_share(&self, group: u32) -> Option<Share> {
        let flows = self.compose.flows_through(group);
        let mut rules = flows.iter().flat_map(|f| self.compose.rules_of(*f));
        let first = rules.next()?;
        if !self.answers() {
            return Some(Share::Nothing);
        }
        let rules = rules.chain([first]);
        Some(Share::of(rules.filter_map(|r| self.offload.share(r))))
    }
}

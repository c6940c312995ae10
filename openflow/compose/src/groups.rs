// SPDX-License-Identifier: Apache-2.0
//! Groups, as far as all packets that come to one go the same way: a copy through each of some buckets. Which those are
//! the caller says, who knows what is alive.
use crate::{Compose, FlowId};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_ofpipeline::groups::groups_of;
use tandem_openflow::{Action, Instructions};

/// Buckets of all groups that one packet may take here; one that takes more is the CPU's.
pub(crate) const BUCKETS: usize = 256;

/// The buckets that a packet takes, each with its place in the group, and its actions, which are a set (§5.10).
pub type Buckets = Vec<(u32, Vec<Action>)>;

/// A group or a bucket of it that a rule's packets go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Through {
    /// The group.
    pub group: u32,
    /// One of its buckets; `None`: the group itself.
    pub bucket: Option<u32>,
    /// Do packets come to it in perhaps another length than they came in with?
    pub resized: bool,
}

/// The groups and buckets that packets go through, each as often as they do. Chains have it in common: a group of 256
/// buckets may stand in front of 65,536 of them.
pub type Via = Arc<Vec<Through>>;

/// Such lists of before they are forgotten are looked for, at least.
const LISTS: usize = 64;

/// Each list once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vias {
    none: Via,
    all: HashSet<Via>,
    /// With more than so many, those that nobody has any more are forgotten.
    most: usize,
}

impl Vias {
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The same list, as others have it.
    pub fn share(&mut self, via: &mut Via) {
        if via.is_empty() {
            via.clone_from(&self.none);
            return;
        }
        if let Some(known) = self.all.get(&**via) {
            via.clone_from(known);
            return;
        }
        if self.all.len() >= self.most.max(LISTS) {
            self.all.retain(|v| Arc::strong_count(v) > 1);
            self.most = 2 * self.all.len();
        }
        if let Some(list) = Arc::get_mut(via) {
            list.shrink_to_fit();
        }
        self.all.insert(Arc::clone(via));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum User {
    Flow(FlowId),
    Group(u32),
}

/// All of them, and who names them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    buckets: HashMap<u32, Buckets>,
    users: HashMap<u32, BTreeSet<User>>,
}

impl Groups {
    /// The buckets that all packets of a group take; `None`: not all take the same ones.
    pub fn buckets(&self, group: u32) -> Option<&Buckets> {
        self.buckets.get(&group)
    }

    fn named(&mut self, group: u32, by: User, to: bool) {
        let users = self.users.entry(group).or_default();
        if to {
            users.insert(by);
        } else {
            users.remove(&by);
        }
        if users.is_empty() {
            self.users.remove(&group);
        }
    }

    /// A flow has these instructions, or no longer.
    pub fn flow(&mut self, id: FlowId, i: &Instructions, to: bool) {
        for list in [&i.apply, &i.write].into_iter().flatten() {
            for g in groups_of(list) {
                self.named(g, User::Flow(id), to);
            }
        }
    }

    fn put(&mut self, group: u32, buckets: Option<Buckets>) {
        self.refer(group, false);
        match buckets {
            Some(new) => drop(self.buckets.insert(group, new)),
            None => drop(self.buckets.remove(&group)),
        }
        self.refer(group, true);
    }

    fn refer(&mut self, group: u32, to: bool) {
        let buckets = self.buckets.get(&group).into_iter().flatten();
        let behind: Vec<u32> = buckets.flat_map(|(_, a)| groups_of(a)).collect();
        for g in behind {
            self.named(g, User::Group(group), to);
        }
    }

    /// Flows that go through a group, by others as well.
    fn flows(&self, group: u32) -> BTreeSet<FlowId> {
        let (mut seen, mut flows) = (BTreeSet::from([group]), BTreeSet::new());
        let mut todo = vec![group];
        while let Some(g) = todo.pop() {
            for user in self.users.get(&g).into_iter().flatten() {
                match *user {
                    User::Flow(id) => drop(flows.insert(id)),
                    User::Group(g) if seen.insert(g) => todo.push(g),
                    User::Group(_) => {}
                }
            }
        }
        flows
    }
}

impl Compose {
    /// Groups that are others from here on, each with the buckets that all of its packets take; `None`: it is gone, or not
    /// all take the same ones. What follows of it is told with the next change of flows or ports, as one.
    pub fn put_groups(&mut self, groups: Vec<(u32, Option<Buckets>)>) {
        let mut flows = BTreeSet::new();
        for (n, buckets) in groups {
            if self.groups.buckets(n) != buckets.as_ref() {
                self.groups.put(n, buckets);
                flows.extend(self.groups.flows(n));
            }
        }
        for id in flows {
            if let Some(flow) = self.flows.get(&id).map(|k| k.flow.clone()) {
                self.change(id, flow);
            }
        }
    }

    /// Flows that go through a group.
    pub fn flows_through(&self, group: u32) -> BTreeSet<FlowId> {
        self.groups.flows(group)
    }
}

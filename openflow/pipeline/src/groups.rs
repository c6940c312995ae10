// SPDX-License-Identifier: Apache-2.0
//! Groups (§5.6, §7.3.4.2).
use crate::key::Key;
use crate::ports::{Count, Ports};
use std::collections::BTreeMap;
use tandem_openflow::model::{Bucket, GROUP_ANY, GROUP_MAX, GroupCommand, GroupMod, GroupType};
use tandem_openflow::{Action, Error, port};

/// Groups that may stand behind each other.
pub const DEPTH: usize = 16;

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its kind.
    pub kind: GroupType,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

/// What changes of a group while packets pass.
#[derive(Clone, Debug, Default)]
pub struct GroupCount {
    /// Packets that came to it.
    pub count: Count,
    /// Packets that took a bucket.
    pub buckets: Vec<Count>,
    /// When it was made.
    pub since_ns: u64,
    /// Flows and groups that forward to it.
    pub refs: u32,
}

/// Groups that a list of actions forwards to, as often as it does.
pub fn groups_of(actions: &[Action]) -> impl Iterator<Item = u32> + '_ {
    actions.iter().filter_map(|a| match a {
        Action::Group(g) => Some(*g),
        _ => None,
    })
}

impl Group {
    /// The groups that its buckets forward to.
    pub fn behind(&self) -> impl Iterator<Item = u32> + '_ {
        self.buckets.iter().flat_map(|b| groups_of(&b.actions))
    }
}

impl Group {
    /// The groups that it cannot do without: those, and those whose liveness its buckets watch.
    fn asks(&self) -> impl Iterator<Item = u32> + '_ {
        let watched = self.buckets.iter().map(|b| b.watch_group);
        self.behind().chain(watched.filter(|g| *g != GROUP_ANY))
    }
}

/// All groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// By number.
    pub map: BTreeMap<u32, Group>,
}

impl Groups {
    /// Is a bucket live (§5.6.1, §6.5)? One that watches nothing is.
    pub fn bucket_live(&self, ports: &Ports, b: &Bucket) -> bool {
        self.bucket_live_at(ports, b, 0)
    }

    fn bucket_live_at(&self, ports: &Ports, b: &Bucket, depth: usize) -> bool {
        let port = b.watch_port == port::ANY || ports.is_live(b.watch_port);
        let group = b.watch_group == GROUP_ANY
            || depth < DEPTH && self.live_at(ports, b.watch_group, depth + 1);
        match (b.watch_port, b.watch_group) {
            // Of two that are watched one is enough
            (p, g) if p != port::ANY && g != GROUP_ANY => port || group,
            _ => port && group,
        }
    }

    fn live_at(&self, ports: &Ports, group: u32, depth: usize) -> bool {
        self.map.get(&group).is_some_and(|g| {
            g.buckets
                .iter()
                .any(|b| self.bucket_live_at(ports, b, depth))
        })
    }

    /// The bucket of a select group for a packet: the buckets that are live share the hash of the packet by their weights;
    /// equally, when all weights are zero.
    pub fn select(&self, ports: &Ports, group: &Group, key: &Key) -> Option<usize> {
        let equal = group.buckets.iter().all(|b| b.weight == 0);
        let weight = |b: &Bucket| {
            if !self.bucket_live(ports, b) {
                0
            } else if equal {
                1
            } else {
                u64::from(b.weight)
            }
        };
        let total: u64 = group.buckets.iter().map(weight).sum();
        let mut left = flow_hash(key).checked_rem(total)?;
        group.buckets.iter().position(|b| {
            let w = weight(b);
            let here = left < w;
            left = left.wrapping_sub(w);
            here
        })
    }

    /// How many groups stand behind each other from `of` on, with `new` in the place of `changed`. No group leads to itself.
    fn height(
        &self,
        of: u32,
        changed: u32,
        new: &Group,
        known: &mut BTreeMap<u32, usize>,
    ) -> usize {
        if let Some(h) = known.get(&of) {
            return *h;
        }
        let group = if of == changed {
            Some(new)
        } else {
            self.map.get(&of)
        };
        let mut most = 0;
        for next in group.into_iter().flat_map(Group::asks) {
            most = most.max(self.height(next, changed, new, known));
        }
        known.insert(of, most + 1);
        most + 1
    }

    /// Does `from` lead to `to`?
    fn leads(&self, from: u32, to: u32, seen: &mut Vec<u32>) -> bool {
        if from == to {
            return true;
        }
        if seen.contains(&from) {
            return false;
        }
        seen.push(from);
        let next: Vec<u32> = match self.map.get(&from) {
            Some(g) => g.asks().collect(),
            None => Vec::new(),
        };
        next.into_iter().any(|n| self.leads(n, to, seen))
    }

    /// May `m`, an addition or a modification, be carried out? Its actions are looked at elsewhere.
    pub fn check(
        &self,
        m: &GroupMod,
        ports: &Ports,
        most: u32,
        most_buckets: u32,
    ) -> Result<(), Error> {
        if m.group > GROUP_MAX {
            return Err(Error::GROUP_MOD_FAILED_INVALID_GROUP);
        }
        let there = self.map.contains_key(&m.group);
        match m.command {
            GroupCommand::Add if there => return Err(Error::GROUP_MOD_FAILED_GROUP_EXISTS),
            GroupCommand::Add if self.map.len() >= most as usize => {
                return Err(Error::GROUP_MOD_FAILED_OUT_OF_GROUPS);
            }
            GroupCommand::Modify if !there => return Err(Error::GROUP_MOD_FAILED_UNKNOWN_GROUP),
            _ => {}
        }
        if m.buckets.len() > most_buckets as usize {
            return Err(Error::GROUP_MOD_FAILED_OUT_OF_BUCKETS);
        }
        if m.kind == GroupType::Indirect && m.buckets.len() != 1 {
            return Err(Error::GROUP_MOD_FAILED_INVALID_GROUP);
        }
        if m.kind != GroupType::Select && m.buckets.iter().any(|b| b.weight > 0) {
            return Err(Error::GROUP_MOD_FAILED_INVALID_GROUP);
        }
        for b in &m.buckets {
            let port = b.watch_port == port::ANY || ports.get(b.watch_port).is_some();
            let group = b.watch_group == GROUP_ANY
                || self.map.contains_key(&b.watch_group) && b.watch_group != m.group;
            let none = b.watch_port == port::ANY && b.watch_group == GROUP_ANY;
            if !port || !group || none && m.kind == GroupType::FastFailover {
                return Err(Error::GROUP_MOD_FAILED_BAD_WATCH);
            }
        }
        let new = Group {
            kind: m.kind,
            buckets: m.buckets.clone(),
        };
        if new.asks().any(|g| self.leads(g, m.group, &mut Vec::new())) {
            return Err(Error::GROUP_MOD_FAILED_LOOP);
        }
        if new.asks().next().is_some() {
            let mut known = BTreeMap::new();
            let all = self.map.keys().copied().chain([m.group]);
            let mut heights = all.map(|g| self.height(g, m.group, &new, &mut known));
            if heights.any(|h| h > DEPTH) {
                return Err(Error::GROUP_MOD_FAILED_CHAINING_UNSUPPORTED);
            }
        }
        Ok(())
    }
}

/// What a select group chooses by (§5.6.1 leaves it to the switch): words 3 to 9 of the key, one after the other, that is
/// addresses, VLAN, EtherType, protocol and ports. Not DSCP and ECN, which change within a connection.
pub fn flow_hash(key: &Key) -> u64 {
    let mut h = 0u64;
    for (n, w) in (3..).zip(&key.0[3..10]) {
        let w = if n == 5 { w & 0xff00_ffff_ffff } else { *w };
        h = (h ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^= h >> 32;
    }
    h
}

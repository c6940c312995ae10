// SPDX-License-Identifier: Apache-2.0
//! Groups (§5.6, §7.3.4.2).
use crate::key::Key;
use crate::ports::{Count, Ports};
use std::collections::{BTreeMap, BTreeSet};
use tandem_openflow::model::{
    Asks, Bucket, GROUP_ANY, GROUP_MAX, GroupCommand, GroupDesc, GroupMod, GroupType, Part,
};
use tandem_openflow::{Action, Error, Multiparts, Version, port};

/// Groups that may stand behind each other.
pub const DEPTH: usize = 16;

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its kind.
    pub kind: GroupType,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    state: State,
}

/// What follows of a group from its buckets, the ports and the groups that it asks. Packets look at it; it is found anew
/// when one of these changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// How many groups stand behind each other from this one on.
    height: usize,
    /// The first bucket that is live; a group without one is not live.
    first: Option<usize>,
    /// Of a select group: the shares of the live buckets up to each, that one included.
    shares: Vec<u64>,
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

/// What a list of actions takes of the memory of all lists ([`crate::Config::bytes`]).
pub(crate) fn bytes_of(actions: &[Action]) -> u64 {
    size_of_val(actions) as u64
}

impl Group {
    /// The same of its buckets, their actions and counters.
    pub(crate) fn bytes(&self) -> u64 {
        let each = (size_of::<Bucket>() + size_of::<Count>()) as u64;
        self.buckets
            .iter()
            .map(|b| each + bytes_of(&b.actions))
            .sum()
    }

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

    /// The first bucket that is live (§5.6.1), fast failover's.
    pub fn first_live(&self) -> Option<usize> {
        self.state.first
    }

    /// The buckets that take all of its packets, if the same ones take each: a select group of several live buckets has
    /// another for each packet.
    pub fn taken(&self) -> Option<std::ops::Range<usize>> {
        match self.kind {
            GroupType::All => Some(0..self.buckets.len()),
            GroupType::Indirect => Some(0..1),
            GroupType::FastFailover => Some(self.first_live().map_or(0..0, |n| n..n + 1)),
            GroupType::Select => {
                let before = [0].iter().chain(&self.state.shares);
                let shares = before.zip(&self.state.shares).zip(0..);
                let mut chosen = shares.filter(|((b, s), _)| s > b).map(|(_, n)| n);
                match (chosen.next(), chosen.next()) {
                    (Some(n), None) => Some(n..n + 1),
                    (None, _) => Some(0..0),
                    _ => None,
                }
            }
        }
    }

    /// The bucket of a select group for a packet: the buckets that are live share the hash of the packet by their weights;
    /// equally, when all weights are zero.
    pub fn select(&self, key: &Key) -> Option<usize> {
        let shares = &self.state.shares;
        let at = flow_hash(key).checked_rem(*shares.last()?)?;
        Some(shares.partition_point(|upto| *upto <= at))
    }
}

/// All groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// By number.
    pub map: BTreeMap<u32, Group>,
    /// How often each number is asked by groups; one that is only watched may have no group.
    asked: BTreeMap<u32, u32>,
    /// Groups that changed, if somebody asks.
    noted: Option<BTreeMap<u32, Regrouped>>,
}

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regrouped {
    /// Other buckets of it are live.
    Alive,
    /// It came, is another, or went: its counters are others.
    Put,
}

impl Groups {
    /// Is a bucket live (§5.6.1, §6.5)? One that watches nothing is.
    fn bucket_live(&self, ports: &Ports, b: &Bucket) -> bool {
        let port = || ports.is_live(b.watch_port);
        let group = || {
            let watched = self.map.get(&b.watch_group);
            watched.is_some_and(|g| g.state.first.is_some())
        };
        match (b.watch_port, b.watch_group) {
            (port::ANY, GROUP_ANY) => true,
            (port::ANY, _) => group(),
            (_, GROUP_ANY) => port(),
            // Of two that are watched one is enough
            _ => port() || group(),
        }
    }

    /// A group's state, from those of the groups that it asks.
    fn state(&self, ports: &Ports, group: &Group) -> State {
        let height_of = |g| self.map.get(&g).map_or(1, |g| g.state.height);
        let mut state = State {
            height: 1 + group.asks().map(height_of).max().unwrap_or(0),
            ..State::default()
        };
        let select = group.kind == GroupType::Select;
        let equal = group.buckets.iter().all(|b| b.weight == 0);
        let mut sum = 0;
        for (n, b) in group.buckets.iter().enumerate() {
            let live = self.bucket_live(ports, b);
            if live {
                state.first = state.first.or(Some(n));
                sum += if equal { 1 } else { u64::from(b.weight) };
            }
            if select {
                state.shares.push(sum);
            } else if live {
                break;
            }
        }
        state
    }

    /// Finds the states of all groups anew: those that are asked before those that ask.
    pub fn settle(&mut self, ports: &Ports) {
        let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
        for n in self.map.keys() {
            self.asked_first(*n, &mut seen, &mut order);
        }
        for n in order {
            if let Some(state) = self.map.get(&n).map(|g| self.state(ports, g))
                && let Some(g) = self.map.get_mut(&n)
                && g.state != state
            {
                g.state = state;
                self.note(n, Regrouped::Alive);
            }
        }
    }

    /// From here on it is noted which groups change.
    pub(crate) fn watch(&mut self) {
        self.noted = Some(BTreeMap::new());
    }

    fn note(&mut self, n: u32, what: Regrouped) {
        if let Some(noted) = &mut self.noted {
            let of = noted.entry(n).or_insert(what);
            if what == Regrouped::Put {
                *of = what;
            }
        }
    }

    /// Groups that changed since this was asked last.
    pub(crate) fn take_noted(&mut self) -> BTreeMap<u32, Regrouped> {
        let noted = self.noted.as_mut();
        noted.map(std::mem::take).unwrap_or_default()
    }

    /// All of them go.
    pub(crate) fn clear(&mut self) {
        let numbers: Vec<u32> = std::mem::take(&mut self.map).into_keys().collect();
        self.asked.clear();
        for n in numbers {
            self.note(n, Regrouped::Put);
        }
    }

    fn asked_first(&self, n: u32, seen: &mut BTreeSet<u32>, order: &mut Vec<u32>) {
        if let Some(g) = self.map.get(&n)
            && seen.insert(n)
        {
            for next in g.asks() {
                self.asked_first(next, seen, order);
            }
            order.push(n);
        }
    }

    fn ask(&mut self, group: &Group, more: bool) {
        for n in group.asks() {
            let count = self.asked.entry(n).or_default();
            *count = if more {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
            if *count == 0 {
                self.asked.remove(&n);
            }
        }
    }

    /// Puts a group that [`Groups::check`] let pass in the place of the one of its number, which it gives back.
    pub fn put(&mut self, number: u32, mut group: Group, ports: &Ports) -> Option<Group> {
        group.state = self.state(ports, &group);
        self.ask(&group, true);
        let shown = |g: &Group| (g.state.height, g.state.first.is_some());
        let new = shown(&group);
        let old = self.map.insert(number, group);
        self.note(number, Regrouped::Put);
        if let Some(old) = &old {
            self.ask(old, false);
        }
        if self.asked.contains_key(&number) && old.as_ref().map(shown) != Some(new) {
            self.settle(ports);
        }
        old
    }

    /// Takes a group out.
    pub fn take(&mut self, number: u32, ports: &Ports) -> Option<Group> {
        let old = self.map.remove(&number)?;
        self.note(number, Regrouped::Put);
        self.ask(&old, false);
        if self.asked.contains_key(&number) {
            self.settle(ports);
        }
        Some(old)
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

    /// Does `from` lead to `to`, by groups that are not among those `seen`?
    fn leads(&self, from: u32, to: u32, seen: &mut BTreeSet<u32>) -> bool {
        from == to
            || seen.insert(from)
                && self
                    .map
                    .get(&from)
                    .is_some_and(|g| g.asks().any(|n| self.leads(n, to, seen)))
    }

    /// The group that `m`, an addition or a modification, asks for, if it may be. Its actions are looked at elsewhere.
    /// What it watches has to be there when a controller asks for it (`watched`), and may go later.
    pub fn check(
        &self,
        m: &GroupMod,
        ports: &Ports,
        (most, most_buckets): (u32, u32),
        watched: bool,
    ) -> Result<Group, Error> {
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
            if watched && !(port && group) || none && m.kind == GroupType::FastFailover {
                return Err(Error::GROUP_MOD_FAILED_BAD_WATCH);
            }
        }
        let desc = GroupDesc {
            group: m.group,
            kind: m.kind,
            buckets: m.buckets.clone(),
        };
        if !fits(&desc) {
            return Err(Error::GROUP_MOD_FAILED_OUT_OF_BUCKETS);
        }
        let new = Group {
            kind: desc.kind,
            buckets: desc.buckets,
            state: State::default(),
        };
        // What no group asks is on no way of others: neither a loop nor greater heights of theirs can come of it
        let asked = self.asked.contains_key(&m.group);
        let mut seen = BTreeSet::new();
        if new
            .asks()
            .any(|g| g == m.group || asked && self.leads(g, m.group, &mut seen))
        {
            return Err(Error::GROUP_MOD_FAILED_LOOP);
        }
        let too_high = if asked {
            let mut known = BTreeMap::new();
            let mut all = self.map.keys().chain([&m.group]);
            all.any(|g| self.height(*g, m.group, &new, &mut known) > DEPTH)
        } else {
            self.state(ports, &new).height > DEPTH
        };
        if too_high {
            return Err(Error::GROUP_MOD_FAILED_CHAINING_UNSUPPORTED);
        }
        Ok(new)
    }
}

/// Has one message room for the description of a group? It cannot be told in parts.
fn fits(desc: &GroupDesc) -> bool {
    let mut out = Vec::new();
    let mut parts = Multiparts::new(Version::V13, 0, &Asks::GroupDesc, &mut out);
    parts.add(&Part::GroupDesc(desc)).is_ok()
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

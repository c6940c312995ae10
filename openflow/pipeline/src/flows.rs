// SPDX-License-Identifier: Apache-2.0
//! Flows and what changes them (§6.4; 1.0, section 4.6), their timeouts (§6.5).
//!
//! Flows of one match and different priorities are a chain, highest priority first, whose first flow the table knows.
use crate::check;
use crate::groups::{bytes_of, groups_of};
use crate::key::Key;
use crate::switch::{Change, ChangeKind, Hot, Rules, Switch};
use crate::table::{NONE, Table};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tandem_openflow::model::{
    FlowCommand, FlowFilter, FlowMod, FlowRemoved, GROUP_ANY, Lifetime, RemovedReason, TABLE_ALL,
    flow_flags,
};
use tandem_openflow::{Action, Error, Instructions, Match, Version, port};

/// 1.0's match without a wildcard is above every other (1.0, section 3.4), of the highest priority as well: it has more
/// bits.
pub(crate) fn priority_of(m: &FlowMod) -> u16 {
    if m.matching.exact {
        u16::MAX
    } else {
        m.priority
    }
}

/// The port of instructions that are one output to a real port, at once; 0 for others.
fn only_port(i: &Instructions) -> u32 {
    let nothing_else = i.meter.is_none()
        && i.write.as_ref().is_none_or(Vec::is_empty)
        && !i.clear
        && i.metadata.is_none()
        && i.goto.is_none();
    match i.apply.as_deref() {
        Some([Action::Output { port, .. }]) if nothing_else && *port <= port::MAX => *port,
        _ => 0,
    }
}

fn put(reset: bool) -> ChangeKind {
    if reset {
        ChangeKind::Reset
    } else {
        ChangeKind::Put
    }
}

/// What instructions take of the memory of all lists of actions.
fn bytes(i: &Instructions) -> u64 {
    let lists = [&i.apply, &i.write];
    lists.into_iter().flatten().map(|l| bytes_of(l)).sum()
}

/// Nanoseconds as messages have them.
pub fn lifetime(ns: u64) -> Lifetime {
    Lifetime {
        sec: u32::try_from(ns / SECOND).unwrap_or(u32::MAX),
        nsec: (ns % SECOND) as u32,
    }
}

/// A flow_mod that adds to table 0 what matches everything and does nothing: to be changed.
pub fn blank() -> FlowMod {
    FlowMod {
        cookie: 0,
        cookie_mask: 0,
        table: 0,
        command: FlowCommand::Add,
        idle_timeout: 0,
        hard_timeout: 0,
        priority: 0,
        buffer: None,
        out_port: port::ANY,
        out_group: GROUP_ANY,
        flags: 0,
        matching: Match::default(),
        instructions: Instructions::default(),
    }
}

/// The filter that all flows of all tables meet.
pub fn all_flows() -> FlowFilter {
    FlowFilter {
        table: TABLE_ALL,
        out_port: port::ANY,
        out_group: GROUP_ANY,
        cookie: 0,
        cookie_mask: 0,
        matching: Match::default(),
    }
}

/// A flow: all but its counters.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Flow {
    pub table: u8,
    pub priority: u16,
    pub cookie: u64,
    pub idle: u16,
    pub hard: u16,
    pub flags: u16,
    pub matching: Match,
    pub instructions: Instructions,
    pub since_ns: u64,
    pub(crate) value: Key,
    pub(crate) mask: Key,
    pub(crate) next: u32,
}

impl Flow {
    /// The flow that meets what no other does (§5.4).
    pub fn is_miss(&self) -> bool {
        self.priority == 0 && self.mask == Key::default()
    }

    fn actions(&self) -> impl Iterator<Item = &Action> {
        let lists = [&self.instructions.apply, &self.instructions.write];
        lists.into_iter().flatten().flatten()
    }

    /// The groups that it forwards to.
    pub(crate) fn groups(&self) -> impl Iterator<Item = u32> + '_ {
        let lists = [&self.instructions.apply, &self.instructions.write];
        lists.into_iter().flatten().flat_map(|l| groups_of(l))
    }

    /// Is it one of a filter's, whose match has this key?
    pub(crate) fn is_of(&self, filter: &FlowFilter, value: &Key, mask: &Key) -> bool {
        (filter.table == TABLE_ALL || filter.table == self.table)
            && (self.cookie ^ filter.cookie) & filter.cookie_mask == 0
            && self.mask.covers(mask)
            && self.value.and(mask) == *value
            && self.sends_to(filter.out_port, filter.out_group)
    }

    fn sends_to(&self, out_port: u32, out_group: u32) -> bool {
        let port = out_port == port::ANY
            || self.actions().any(|a| match a {
                Action::Output { port, .. } | Action::Enqueue10 { port, .. } => *port == out_port,
                _ => false,
            });
        let group = out_group == GROUP_ANY || self.groups().any(|g| g == out_group);
        port && group
    }
}

/// All flows of all tables, by number; numbers are used again.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    list: Vec<Option<Box<Flow>>>,
    free: Vec<u32>,
}

impl Flows {
    /// How many there are.
    fn len(&self) -> usize {
        self.list.len() - self.free.len()
    }

    /// The number behind the last one.
    pub(crate) fn end(&self) -> u32 {
        self.list.len() as u32
    }

    /// The flow of this number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Flow> {
        self.list.get(number as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Flow> {
        self.list.get_mut(number as usize)?.as_deref_mut()
    }

    fn insert(&mut self, flow: Flow) -> u32 {
        let flow = Some(Box::new(flow));
        match self.free.pop() {
            Some(n) => {
                self.list[n as usize] = flow;
                n
            }
            None => {
                self.list.push(flow);
                (self.list.len() - 1) as u32
            }
        }
    }

    fn take(&mut self, number: u32) -> Option<Flow> {
        let flow = self.list.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(*flow)
    }
}

impl Rules {
    /// The chain of a match, from its first flow on.
    fn chain(&self, first: u32) -> impl Iterator<Item = (u32, &Flow)> {
        let mut at = first;
        std::iter::from_fn(move || {
            let number = at;
            let flow = self.flows.get(number)?;
            at = flow.next;
            Some((number, flow))
        })
    }

    pub(crate) fn exactly(&self, table: u8, value: &Key, mask: &Key, priority: u16) -> Option<u32> {
        let sub = self.tables.get(usize::from(table))?.subtable(mask)?;
        let (_, first) = sub.first(self.secret, value)?;
        self.chain(first)
            .find(|(_, f)| f.priority == priority)
            .map(|(n, _)| n)
    }

    fn link(&mut self, flow: Flow) -> u32 {
        let Flow {
            table,
            priority,
            value,
            mask,
            ..
        } = flow;
        let first = self
            .tables
            .get(usize::from(table))
            .and_then(|t| t.subtable(&mask))
            .and_then(|s| s.first(self.secret, &value));
        let number = self.flows.insert(flow);
        let before = first.and_then(|(_, first)| {
            self.chain(first)
                .take_while(|(_, f)| f.priority > priority)
                .last()
                .map(|(n, _)| n)
        });
        let first = match before {
            Some(b) => {
                let next = self.flows.get(b).map_or(NONE, |f| f.next);
                if let Some(f) = self.flows.get_mut(number) {
                    f.next = next;
                }
                if let Some(f) = self.flows.get_mut(b) {
                    f.next = number;
                }
                first.unwrap_or((priority, number))
            }
            None => {
                if let Some(f) = self.flows.get_mut(number) {
                    f.next = first.map_or(NONE, |(_, n)| n);
                }
                (priority, number)
            }
        };
        let secret = self.secret;
        if let Some(t) = self.tables.get_mut(usize::from(table)) {
            t.added(secret, &value, &mask, priority, first);
        }
        number
    }

    fn unlink(&mut self, number: u32) -> Option<Flow> {
        let flow = self.flows.take(number)?;
        let secret = self.secret;
        let at = usize::from(flow.table);
        let (_, first) = self
            .tables
            .get(at)?
            .subtable(&flow.mask)?
            .first(secret, &flow.value)?;
        let first = if first == number {
            self.flows.get(flow.next).map(|f| (f.priority, flow.next))
        } else {
            let before = self
                .chain(first)
                .find(|(_, f)| f.next == number)
                .map(|(n, _)| n);
            if let Some(f) = before.and_then(|b| self.flows.get_mut(b)) {
                f.next = flow.next;
            }
            self.flows.get(first).map(|f| (f.priority, first))
        };
        self.tables
            .get_mut(at)?
            .removed(secret, &flow.value, &flow.mask, flow.priority, first);
        Some(flow)
    }

    /// Flows of a filter, in no order, if no more than `most` are to be looked at for them.
    pub(crate) fn find_few(&self, filter: &FlowFilter, most: usize) -> Option<Vec<u32>> {
        let (value, mask) = Key::of_match(&filter.matching.fields);
        let tables = (0..=u8::MAX).zip(&self.tables);
        let asked = tables.filter(|(n, _)| filter.table == TABLE_ALL || filter.table == *n);
        let mut left = most;
        for s in asked.flat_map(|(_, t)| t.all()) {
            let looks = match s.mask() {
                // One key, whose flows may have all priorities
                m if *m == mask => {
                    let first = s.first(self.secret, &value);
                    first.map_or(0, |(_, f)| self.chain(f).take(left + 1).count())
                }
                m if m.covers(&mask) => s.looks(),
                _ => 0,
            };
            left = left.checked_sub(looks)?;
        }
        Some(self.find(filter))
    }

    /// Flows of a filter, in no order. A table whose masks all look at other bits is not looked through.
    pub(crate) fn find(&self, filter: &FlowFilter) -> Vec<u32> {
        let (value, mask) = Key::of_match(&filter.matching.fields);
        let mut found = Vec::new();
        for (n, table) in (0..=u8::MAX).zip(&self.tables) {
            if filter.table != TABLE_ALL && filter.table != n {
                continue;
            }
            for sub in table.all() {
                let mut take = |first: u32| {
                    for (n, f) in self.chain(first) {
                        if (f.cookie ^ filter.cookie) & filter.cookie_mask == 0
                            && f.sends_to(filter.out_port, filter.out_group)
                        {
                            found.push(n);
                        }
                    }
                };
                if *sub.mask() == mask {
                    if let Some((_, first)) = sub.first(self.secret, &value) {
                        take(first);
                    }
                } else if sub.mask().covers(&mask) {
                    sub.firsts(&mask, &value).for_each(take);
                }
            }
        }
        found
    }

    /// Is there a flow of this priority in the table that some packet could meet as well?
    fn overlaps(&self, table: u8, value: &Key, mask: &Key, priority: u16) -> bool {
        let Some(table) = self.tables.get(usize::from(table)) else {
            return false;
        };
        table.all().filter(|s| s.has_priority(priority)).any(|s| {
            let both = s.mask().and(mask);
            let hit = |first: u32| {
                self.chain(first)
                    .any(|(_, f)| f.priority == priority && f.value.and(&both) == value.and(&both))
            };
            if both == *s.mask() {
                s.first(self.secret, value).is_some_and(|(_, f)| hit(f))
            } else {
                s.firsts(&both, &value.and(&both)).any(hit)
            }
        })
    }
}

/// Deadlines of flows, earliest first: a number with its generation, put in once and looked at when its time is up.
#[derive(Clone, Debug, Default)]
pub struct Deadlines {
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Of those in the heap, so many belong to flows that are gone.
    stale: usize,
}

const SECOND: u64 = 1_000_000_000;

fn deadline(f: &Flow, hot: &Hot) -> Option<(u64, RemovedReason)> {
    let hard = (f.hard > 0).then(|| {
        (
            f.since_ns + u64::from(f.hard) * SECOND,
            RemovedReason::HardTimeout,
        )
    });
    let idle = (f.idle > 0).then(|| {
        (
            hot.last_ns + u64::from(f.idle) * SECOND,
            RemovedReason::IdleTimeout,
        )
    });
    match (hard, idle) {
        (Some(h), Some(i)) => Some(if h.0 <= i.0 { h } else { i }),
        (h, i) => h.or(i),
    }
}

impl Switch {
    /// Adds, modifies or deletes flows. An error changed nothing; `removed` gets what went and asked for a message.
    pub fn flow_mod(
        &mut self,
        m: &FlowMod,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) -> Result<(), Error> {
        let deletes = m.command.deletes();
        if m.table >= self.config().tables && !(deletes && m.table == TABLE_ALL) {
            return Err(Error::FLOW_MOD_FAILED_BAD_TABLE_ID);
        }
        check::matches(&m.matching.fields)?;
        let v10 = self.config().version == Version::V10;
        if m.flags & !flow_flags::ALL != 0 {
            return Err(Error::FLOW_MOD_FAILED_BAD_FLAGS);
        }
        if !deletes {
            self.check_flow(m)?;
        }
        let (value, mask) = Key::of_match(&m.matching.fields);
        match m.command {
            FlowCommand::Add => self.add(m, value, mask, now_ns),
            FlowCommand::Modify | FlowCommand::ModifyStrict => {
                let found = self.meant(m, &value, &mask);
                if found.is_empty() && v10 {
                    return self.add(m, value, mask, now_ns);
                }
                let flows = found.iter().filter_map(|n| self.rules.flows.get(*n));
                let less = flows.map(|f| bytes(&f.instructions)).sum();
                if !self.has_room(less, found.len() as u64 * bytes(&m.instructions)) {
                    return Err(Error::FLOW_MOD_FAILED_TABLE_FULL);
                }
                for n in found {
                    self.modify(n, m);
                }
                Ok(())
            }
            FlowCommand::Delete | FlowCommand::DeleteStrict => {
                for n in self.meant(m, &value, &mask) {
                    self.remove(n, RemovedReason::Delete, now_ns, removed);
                }
                Ok(())
            }
        }
    }

    /// The flows that a modification or deletion is about.
    fn meant(&self, m: &FlowMod, value: &Key, mask: &Key) -> Vec<u32> {
        let deletes = m.command.deletes();
        let (out_port, out_group) = if deletes {
            (m.out_port, m.out_group)
        } else {
            (port::ANY, GROUP_ANY)
        };
        // 1.0 has no mask: its messages mean all cookies
        let cookie_mask = if self.config().version == Version::V10 {
            0
        } else {
            m.cookie_mask
        };
        if matches!(m.command, FlowCommand::Modify | FlowCommand::Delete) {
            return self.rules.find(&FlowFilter {
                table: m.table,
                out_port,
                out_group,
                cookie: m.cookie,
                cookie_mask,
                matching: m.matching.clone(),
            });
        }
        let tables = if m.table == TABLE_ALL {
            0..self.config().tables
        } else {
            m.table..m.table + 1
        };
        tables
            .filter_map(|t| self.rules.exactly(t, value, mask, priority_of(m)))
            .filter(|n| {
                self.rules.flows.get(*n).is_some_and(|f| {
                    (f.cookie ^ m.cookie) & cookie_mask == 0 && f.sends_to(out_port, out_group)
                })
            })
            .collect()
    }

    /// What a flow keeps of its message's flags. That counts begin anew is of 1.0's command to add, which has no such flag: a
    /// flow that a modification added would be another one once it is restored.
    pub(crate) fn flags_of(&self, m: &FlowMod) -> u16 {
        match self.config().version {
            Version::V10 => m.flags & !flow_flags::RESET_COUNTS,
            Version::V13 => m.flags,
        }
    }

    fn add(&mut self, m: &FlowMod, value: Key, mask: Key, now_ns: u64) -> Result<(), Error> {
        let old = self.rules.exactly(m.table, &value, &mask, priority_of(m));
        if m.flags & flow_flags::CHECK_OVERLAP != 0
            && self.rules.overlaps(m.table, &value, &mask, priority_of(m))
        {
            return Err(Error::FLOW_MOD_FAILED_OVERLAP);
        }
        if old.is_none() {
            let table = self.rules.tables.get(usize::from(m.table));
            let config = self.config();
            let full = |t: &Table| {
                t.len >= config.table_entries
                    || t.masks() >= config.masks as usize && t.subtable(&mask).is_none()
            };
            if table.is_some_and(full) || self.rules.flows.len() >= config.flows as usize {
                return Err(Error::FLOW_MOD_FAILED_TABLE_FULL);
            }
        }
        let less = old.and_then(|n| self.rules.flows.get(n));
        let less = less.map_or(0, |f| bytes(&f.instructions));
        if !self.has_room(less, bytes(&m.instructions)) {
            return Err(Error::FLOW_MOD_FAILED_TABLE_FULL);
        }
        let kept = match old.and_then(|n| self.live.hot.get(n as usize)) {
            Some(hot) if m.flags & flow_flags::RESET_COUNTS == 0 => (hot.packets, hot.bytes),
            _ => (0, 0),
        };
        let flow = Flow {
            table: m.table,
            priority: priority_of(m),
            cookie: m.cookie,
            idle: m.idle_timeout,
            hard: m.hard_timeout,
            flags: self.flags_of(m),
            matching: m.matching.clone(),
            instructions: m.instructions.clone(),
            since_ns: now_ns,
            value,
            mask,
            next: NONE,
        };
        self.refer(&flow, true);
        let number = match old {
            Some(n) => {
                // In the place of the old one: no packet meets another flow than before
                if let Some(f) = self.rules.flows.get(n).cloned() {
                    self.refer(&f, false);
                    if f.idle > 0 || f.hard > 0 {
                        self.deadlines.stale += 1;
                    }
                }
                if let Some(f) = self.rules.flows.get_mut(n) {
                    *f = Flow {
                        next: f.next,
                        ..flow
                    };
                }
                n
            }
            None => {
                self.cache.flow_added(m.table, &value, &mask);
                self.rules.link(flow)
            }
        };
        let at = number as usize;
        if self.live.hot.len() <= at {
            self.live.hot.resize(at + 1, Hot::default());
        }
        if let Some(hot) = self.live.hot.get_mut(at) {
            *hot = Hot {
                packets: kept.0,
                bytes: kept.1,
                last_ns: now_ns,
                generation: hot.generation.wrapping_add(1),
                flags: m.flags,
                only: only_port(&m.instructions),
                asked: hot.asked && old.is_some(),
            };
        }
        self.set_deadline(number);
        let reset = m.flags & flow_flags::RESET_COUNTS != 0;
        self.note(number, put(reset && old.is_some()));
        Ok(())
    }

    fn set_deadline(&mut self, number: u32) {
        if let (Some(f), Some(hot)) = (
            self.rules.flows.get(number),
            self.live.hot.get(number as usize),
        ) && let Some((at, _)) = deadline(f, hot)
        {
            let entry = Reverse((at, number, hot.generation));
            self.deadlines.heap.push(entry);
        }
        // What is gone is looked at when its time is up, or when it is the greater part
        if self.deadlines.stale > 64 && self.deadlines.stale * 2 > self.deadlines.heap.len() {
            let hot = &self.live.hot;
            self.deadlines.heap.retain(|Reverse((_, n, generation))| {
                hot.get(*n as usize)
                    .is_some_and(|h| h.generation == *generation)
            });
            self.deadlines.stale = 0;
        }
    }

    fn modify(&mut self, number: u32, m: &FlowMod) {
        let Some(old) = self.rules.flows.get(number).cloned() else {
            return;
        };
        let v10 = self.config().version == Version::V10;
        self.refer(&old, false);
        let mut new = old;
        new.instructions = m.instructions.clone();
        if v10 {
            // Open vSwitch's reading of 1.0: the cookie is that of the last message
            new.cookie = m.cookie;
        }
        self.refer(&new, true);
        let timed = new.idle > 0 || new.hard > 0;
        if let Some(f) = self.rules.flows.get_mut(number) {
            *f = new;
        }
        if let Some(hot) = self.live.hot.get_mut(number as usize) {
            hot.generation = hot.generation.wrapping_add(1);
            hot.only = only_port(&m.instructions);
            if m.flags & flow_flags::RESET_COUNTS != 0 {
                (hot.packets, hot.bytes) = (0, 0);
            }
        }
        if timed {
            self.deadlines.stale += 1;
            self.set_deadline(number);
        }
        self.note(number, put(m.flags & flow_flags::RESET_COUNTS != 0));
    }

    pub(crate) fn remove(
        &mut self,
        number: u32,
        reason: RemovedReason,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) {
        let Some(f) = self.rules.unlink(number) else {
            return;
        };
        self.refer(&f, false);
        let Some(hot) = self.live.hot.get_mut(number as usize) else {
            return;
        };
        hot.generation = hot.generation.wrapping_add(1);
        if (f.idle > 0 || f.hard > 0)
            && !matches!(
                reason,
                RemovedReason::IdleTimeout | RemovedReason::HardTimeout
            )
        {
            self.deadlines.stale += 1;
        }
        let told = f.flags & flow_flags::SEND_FLOW_REM != 0;
        if let Some(changes) = &mut self.changes {
            changes.push(Change {
                flow: number,
                kind: ChangeKind::Gone { told },
            });
        }
        if told {
            let age = now_ns.saturating_sub(f.since_ns);
            removed.push(FlowRemoved {
                cookie: f.cookie,
                priority: f.priority,
                reason,
                table: f.table,
                lifetime: lifetime(age),
                idle_timeout: f.idle,
                hard_timeout: f.hard,
                packets: if f.flags & flow_flags::NO_PKT_COUNTS == 0 {
                    hot.packets
                } else {
                    u64::MAX
                },
                bytes: if f.flags & flow_flags::NO_BYT_COUNTS == 0 {
                    hot.bytes
                } else {
                    u64::MAX
                },
                matching: f.matching,
            });
        }
    }

    /// Counts, in groups and meters, that a flow refers to them, or no longer; and its actions.
    fn refer(&mut self, f: &Flow, to: bool) {
        self.hold(bytes(&f.instructions), to);
        let change = |n: &mut u32| *n = if to { *n + 1 } else { n.saturating_sub(1) };
        if let Some(m) = f.instructions.meter
            && let Some(meter) = self.live.meters.map.get_mut(&m)
        {
            change(&mut meter.flows);
        }
        let mut named: Vec<u32> = f.groups().collect();
        named.sort_unstable();
        named.dedup();
        for g in named {
            if let Some(c) = self.live.groups.get_mut(&g) {
                change(&mut c.refs);
            }
        }
    }

    /// Removes flows whose time is up, after `budget` deadlines at most, and says when the next one is. Packets may meet
    /// those that are `busy` without coming here: these are not idle.
    pub fn expire(
        &mut self,
        now_ns: u64,
        budget: usize,
        busy: impl Fn(u32) -> bool,
        removed: &mut Vec<FlowRemoved>,
    ) -> Option<u64> {
        for _ in 0..budget {
            let Some(Reverse((at, number, generation))) = self.deadlines.heap.peek().copied()
            else {
                break;
            };
            if at > now_ns {
                break;
            }
            self.deadlines.heap.pop();
            let state = match (
                self.rules.flows.get(number),
                self.live.hot.get_mut(number as usize),
            ) {
                (Some(f), Some(hot)) if hot.generation == generation => {
                    if f.idle > 0 && busy(number) {
                        hot.last_ns = hot.last_ns.max(now_ns);
                    }
                    deadline(f, hot)
                }
                _ => {
                    self.deadlines.stale = self.deadlines.stale.saturating_sub(1);
                    None
                }
            };
            match state {
                Some((due, reason)) if due <= now_ns => {
                    self.remove(number, reason, now_ns, removed);
                }
                Some((due, _)) => self.deadlines.heap.push(Reverse((due, number, generation))),
                None => {}
            }
        }
        self.deadlines.heap.peek().map(|Reverse((at, ..))| *at)
    }
}

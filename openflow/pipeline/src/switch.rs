// SPDX-License-Identifier: Apache-2.0
//! The switch: its parts, and changes of all but flows.
use crate::cache::Cache;
use crate::flows::{Deadlines, Flow, Flows, all_flows};
use crate::groups::{Group, GroupCount, Groups, Regrouped};
use crate::key::Key;
use crate::meters::{Meter, Meters};
use crate::ports::{Count, Entry, Port, Ports, QueueCount};
use crate::stats;
use crate::table::Table;
use std::collections::BTreeMap;
use tandem_openflow::model::{
    FlowRemoved, GROUP_ALL, GROUP_MAX, GroupCommand, GroupMod, METER_ALL, MeterCommand, MeterMod,
    RemovedReason,
};
use tandem_openflow::{Error, Version, port};

/// What becomes of IP fragments (`ofp_config_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragments {
    /// They go through the tables; fields that they do not have match nothing (1.0: are zero).
    #[default]
    Normal,
    /// They are dropped.
    Drop,
}

/// Sizes and choices. Those that a controller may change: [`Switch::set_config`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which OpenFlow.
    pub version: Version,
    /// Tables: 1 to 255.
    pub tables: u8,
    /// Flows of one table.
    pub table_entries: u32,
    /// Different masks of one table: a packet that the cache does not know may cost a lookup for each.
    pub masks: u32,
    /// Flows of all tables.
    pub flows: u32,
    /// Groups.
    pub groups: u32,
    /// Buckets of one group.
    pub buckets: u32,
    /// Meters.
    pub meters: u32,
    /// Bands of one meter.
    pub bands: u32,
    /// Actions of one list.
    pub actions: u32,
    /// Bytes of all actions of flows and groups, and of buckets.
    pub bytes: u64,
    /// The highest number that a port may have; an output to a higher one is refused, to one that is not there it is
    /// accepted, and drops until the port comes.
    pub max_port: u32,
    /// Is there `NORMAL`?
    pub normal: bool,
    /// Is there `FLOOD`?
    pub flood: bool,
    /// Is there `LOCAL`?
    pub local: bool,
    /// Ways that the flow cache holds; 0 for none.
    pub cache: u32,
    /// Seed of the hashes, best a random one: keys that collide cannot be guessed then.
    pub secret: u64,
    /// What becomes of fragments.
    pub fragments: Fragments,
    /// Bytes of packet-ins that no action asked for.
    pub miss_send_len: u16,
    /// Packets whose TTL is used up go to the controller, not only away.
    pub invalid_ttl: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            version: Version::V13,
            tables: 255,
            table_entries: 1_000_000,
            masks: 4_096,
            flows: 4_000_000,
            groups: 65_536,
            buckets: 1_024,
            meters: 65_536,
            bands: 16,
            actions: 1_024,
            bytes: 256 << 20,
            max_port: port::MAX,
            normal: true,
            flood: true,
            local: true,
            cache: 1 << 17,
            secret: 0x243f_6a88_85a3_08d3,
            fragments: Fragments::Normal,
            miss_send_len: 128,
            invalid_ttl: false,
        }
    }
}

/// What packets meet and only messages change.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) tables: Vec<Table>,
    pub(crate) flows: Flows,
    pub(crate) groups: Groups,
    pub(crate) secret: u64,
}

/// What of a flow every packet changes and needs, in one line of a processor's cache: counters, the generation (another
/// for every flow of its number and every list of instructions), and what it does if that is one output and no more.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Hot {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) last_ns: u64,
    pub(crate) generation: u32,
    pub(crate) flags: u16,
    /// The port that it sends to, of those that are one port; 0 for all other instructions.
    pub(crate) only: u32,
    /// Somebody asks for the next packet that meets it.
    pub(crate) asked: bool,
}

/// Packets looked up in a table and packets that met a flow there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TableCount {
    pub lookups: u64,
    pub matched: u64,
}

/// What packets change.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) hot: Vec<Hot>,
    pub(crate) tables: Vec<TableCount>,
    pub(crate) groups: BTreeMap<u32, GroupCount>,
    pub(crate) meters: Meters,
    pub(crate) ports: Ports,
    /// Memory for copies of packets, by how deep in groups they are made.
    pub(crate) copies: Vec<Vec<u8>>,
    /// Flows that were asked about, and that a packet has met since.
    pub(crate) met: Vec<u32>,
    /// Buckets that the packet at hand may still take.
    pub(crate) buckets_left: u32,
}

/// A switch.
#[derive(Clone, Debug)]
pub struct Switch {
    pub(crate) config: Config,
    pub(crate) rules: Rules,
    pub(crate) live: Live,
    pub(crate) cache: Cache,
    pub(crate) deadlines: Deadlines,
    /// Flows that came, changed or went, if somebody asks.
    pub(crate) changes: Option<Vec<Change>>,
    /// Bytes of actions and buckets.
    held: u64,
}

/// A flow that came, changed or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number; a flow that comes may have that of one that went.
    pub flow: u32,
    /// What became of it.
    pub kind: ChangeKind,
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new, or is another than before; its counters go on.
    Put,
    /// The same, and its counters began anew.
    Reset,
    /// It went. It is the next of the `removed` that were told, if it wished to be told of.
    Gone {
        /// Does it?
        told: bool,
    },
}

impl Switch {
    /// A switch without ports, flows, groups and meters.
    pub fn new(mut config: Config) -> Switch {
        config.tables = config.tables.max(1);
        let tables = usize::from(config.tables);
        Switch {
            rules: Rules {
                tables: vec![Table::default(); tables],
                flows: Flows::default(),
                groups: Groups::default(),
                secret: config.secret,
            },
            live: Live {
                hot: Vec::new(),
                met: Vec::new(),
                tables: vec![TableCount::default(); tables],
                groups: BTreeMap::new(),
                meters: Meters::default(),
                ports: Ports::default(),
                copies: Vec::new(),
                buckets_left: 0,
            },
            cache: Cache::new(config.cache as usize, config.secret),
            deadlines: Deadlines::default(),
            changes: None,
            held: 0,
            config,
        }
    }

    /// As it was made, and as a controller has set it.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// From here on it is noted which flows and groups change.
    pub fn watch(&mut self) {
        self.changes = Some(Vec::new());
        self.rules.groups.watch();
    }

    /// Groups that came, changed or went since this was asked last, or of which other buckets are live.
    pub fn take_regrouped(&mut self) -> BTreeMap<u32, Regrouped> {
        self.rules.groups.take_noted()
    }

    /// Flows that changed since this was asked last, in order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changes
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    pub(crate) fn note(&mut self, flow: u32, kind: ChangeKind) {
        if let Some(changes) = &mut self.changes {
            changes.push(Change { flow, kind });
        }
    }

    /// A flow by its number.
    pub fn flow(&self, number: u32) -> Option<&Flow> {
        self.rules.flows.get(number)
    }

    /// Numbers of all flows of a table.
    pub fn flows_of(&self, table: u8) -> Vec<u32> {
        self.rules.find(&tandem_openflow::model::FlowFilter {
            table,
            ..all_flows()
        })
    }

    /// Packets met a flow beside those that came here, the last one then.
    pub fn used(&mut self, number: u32, at_ns: u64) {
        if self.rules.flows.get(number).is_some()
            && let Some(hot) = self.live.hot.get_mut(number as usize)
        {
            hot.last_ns = hot.last_ns.max(at_ns);
        }
    }

    /// The next packet that meets a flow is to be told ([`Switch::take_met`]).
    pub fn ask(&mut self, number: u32) {
        if let Some(hot) = self.live.hot.get_mut(number as usize) {
            hot.asked = true;
        }
    }

    /// Flows that were asked about, and that packets have met since; each is told once.
    pub fn take_met(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.live.met)
    }

    /// What `OFPT_SET_CONFIG` sets.
    pub fn set_config(&mut self, fragments: Fragments, miss_send_len: u16, invalid_ttl: bool) {
        self.config.fragments = fragments;
        self.config.miss_send_len = miss_send_len;
        self.config.invalid_ttl = invalid_ttl;
    }

    /// Adds a port, or changes its state, configuration or queues.
    pub fn set_port(&mut self, port: Port, now_ns: u64) {
        let number = port.number;
        let before = self.live.ports.is_live(number);
        self.live.ports.set(port, now_ns);
        self.liveness(number, before);
    }

    /// Takes a port out. Flows that send there stay, and drop.
    pub fn remove_port(&mut self, number: u32) -> bool {
        let before = self.live.ports.is_live(number);
        let removed = self.live.ports.remove(number);
        self.liveness(number, before);
        removed
    }

    /// Groups follow the liveness of ports.
    fn liveness(&mut self, port: u32, before: bool) {
        if self.live.ports.is_live(port) != before {
            self.rules.groups.settle(&self.live.ports);
        }
    }

    /// A port with its counters.
    pub fn port(&self, number: u32) -> Option<&Entry> {
        self.live.ports.get(number)
    }

    /// All ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = &Entry> {
        self.live.ports.list.iter()
    }

    /// Counters of a queue.
    pub fn queue(&self, port: u32, queue: u32) -> Option<&QueueCount> {
        let e = self.port(port)?;
        let at = e.port.queues.iter().position(|q| *q == queue)?;
        e.queues.get(at)
    }

    /// A group with its counters.
    pub fn group(&self, number: u32) -> Option<(&Group, &GroupCount)> {
        Some((
            self.rules.groups.map.get(&number)?,
            self.live.groups.get(&number)?,
        ))
    }

    /// Numbers of all groups.
    pub fn groups(&self) -> impl Iterator<Item = u32> + '_ {
        self.rules.groups.map.keys().copied()
    }

    /// A meter with its counters.
    pub fn meter(&self, number: u32) -> Option<&Meter> {
        self.live.meters.map.get(&number)
    }

    /// Numbers of all meters.
    pub fn meters(&self) -> impl Iterator<Item = u32> + '_ {
        self.live.meters.map.keys().copied()
    }

    /// Bytes of all actions of flows and groups, and of buckets: [`Config::bytes`] at most.
    pub fn action_bytes(&self) -> u64 {
        self.held
    }

    /// May lists that take `less` bytes be replaced by such as take `more`?
    pub(crate) fn has_room(&self, less: u64, more: u64) -> bool {
        more <= less || self.held.saturating_sub(less) + more <= self.config.bytes
    }

    /// So many bytes are there, or no longer.
    pub(crate) fn hold(&mut self, bytes: u64, to: bool) {
        self.held = match to {
            true => self.held + bytes,
            false => self.held.saturating_sub(bytes),
        };
    }

    /// Ways that the cache had, and had not, since the start.
    pub fn cache_counts(&self) -> (u64, u64) {
        (self.cache.hits, self.cache.misses)
    }

    /// Adds, modifies or deletes a group, or all. Flows that forward to a deleted group go with it (§6.5).
    pub fn group_mod(
        &mut self,
        m: &GroupMod,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) -> Result<(), Error> {
        if m.command == GroupCommand::Delete {
            return self.delete_groups(m.group, now_ns, removed);
        }
        self.put_group(m, now_ns, true)
    }

    /// Adds or modifies a group, as [`Groups::check`] lets it pass.
    pub(crate) fn put_group(
        &mut self,
        m: &GroupMod,
        now_ns: u64,
        watched: bool,
    ) -> Result<(), Error> {
        let ports = &self.live.ports;
        let most = (self.config.groups, self.config.buckets);
        let new = self.rules.groups.check(m, ports, most, watched)?;
        for b in &m.buckets {
            self.check_bucket(&b.actions)?;
        }
        let less = self.rules.groups.map.get(&m.group).map_or(0, Group::bytes);
        if !self.has_room(less, new.bytes()) {
            return Err(Error::GROUP_MOD_FAILED_OUT_OF_BUCKETS);
        }
        self.refer_groups(&new, true);
        let buckets = vec![Count::default(); new.buckets.len()];
        if let Some(old) = self.rules.groups.put(m.group, new, &self.live.ports) {
            self.refer_groups(&old, false);
        }
        let count = self
            .live
            .groups
            .entry(m.group)
            .or_insert_with(|| GroupCount {
                since_ns: now_ns,
                ..GroupCount::default()
            });
        // A modified group begins to count anew (§6.5: its statistics are cleared)
        count.count = Count::default();
        count.buckets = buckets;
        Ok(())
    }

    fn refer_groups(&mut self, g: &Group, to: bool) {
        self.hold(g.bytes(), to);
        let mut behind: Vec<u32> = g.behind().collect();
        behind.sort_unstable();
        behind.dedup();
        for n in behind {
            if let Some(c) = self.live.groups.get_mut(&n) {
                c.refs = if to {
                    c.refs + 1
                } else {
                    c.refs.saturating_sub(1)
                };
            }
        }
    }

    fn delete_groups(
        &mut self,
        which: u32,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) -> Result<(), Error> {
        if which > GROUP_MAX && which != GROUP_ALL {
            return Err(Error::GROUP_MOD_FAILED_INVALID_GROUP);
        }
        let all = which == GROUP_ALL;
        // Most groups have few flows, many have none: those are not looked for, nor is a group that forwards there
        let refs = match self.live.groups.get(&which) {
            None if !all => return Ok(()),
            one => one.map_or(u32::MAX, |c| c.refs),
        };
        if refs > 0 {
            let mut groups = self.rules.groups.map.values();
            if groups.any(|g| g.behind().any(|b| b == which)) {
                return Err(Error::GROUP_MOD_FAILED_CHAINED_GROUP);
            }
            let named = |f: &Flow| f.groups().any(|g| all || g == which);
            self.remove_where(named, RemovedReason::GroupDelete, now_ns, removed);
        }
        if all {
            let bytes = self.rules.groups.map.values().map(Group::bytes).sum();
            self.rules.groups.clear();
            self.hold(bytes, false);
            self.live.groups.clear();
            return Ok(());
        }
        if let Some(old) = self.rules.groups.take(which, &self.live.ports) {
            self.refer_groups(&old, false);
        }
        self.live.groups.remove(&which);
        Ok(())
    }

    /// Removes the flows that meet a condition, in one pass over all.
    fn remove_where(
        &mut self,
        meant: impl Fn(&Flow) -> bool,
        reason: RemovedReason,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) {
        for flow in self.rules.find(&all_flows()) {
            if self.rules.flows.get(flow).is_some_and(&meant) {
                self.remove(flow, reason, now_ns, removed);
            }
        }
    }

    /// Adds, modifies or deletes a meter, or all. Flows that name a deleted meter go with it (§6.5).
    pub fn meter_mod(
        &mut self,
        m: &MeterMod,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) -> Result<(), Error> {
        let (meters, bands) = (self.config.meters, self.config.bands);
        if m.command != MeterCommand::Delete {
            return self.live.meters.change(m, meters, bands, now_ns);
        }
        if m.meter == 0 {
            return Err(Error::METER_MOD_FAILED_INVALID_METER);
        }
        let all = m.meter == METER_ALL;
        let flows = match self.meter(m.meter) {
            None if !all => return Ok(()),
            one => one.map_or(u32::MAX, |m| m.flows),
        };
        if flows > 0 {
            let names = |f: &Flow| f.instructions.meter.is_some_and(|n| all || n == m.meter);
            self.remove_where(names, RemovedReason::Delete, now_ns, removed);
        }
        if all {
            self.live.meters.map.clear();
        } else {
            self.live.meters.map.remove(&m.meter);
        }
        Ok(())
    }

    /// The flow that a packet with this key meets in a table.
    pub fn lookup(&self, table: u8, key: &Key) -> Option<stats::FlowStats<'_>> {
        let t = self.rules.tables.get(usize::from(table))?;
        self.flow_count(t.lookup(self.rules.secret, key)?)
    }
}

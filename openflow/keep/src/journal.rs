// SPDX-License-Identifier: Apache-2.0
//! What a turn has changed, as records; and all that there is, slice by slice.

use std::collections::BTreeMap;

use tandem_ofpipeline::flows::{Flow, blank};
use tandem_ofpipeline::past::Past;
use tandem_ofpipeline::ports::Count;
use tandem_ofpipeline::stats::FlowStats;
use tandem_ofpipeline::{Change, ChangeKind, Fragments, Switch, TableCount};
use tandem_openflow::model::{
    FlowCommand, FlowMod, GroupCommand, GroupMod, MeterCommand, MeterMod, Request,
};
use tandem_openflow::{Version, encode_flow_mod, encode_request};

use crate::record::{ChipFlow, PortPast, Record, begin_flow, end_flow};
use crate::state::ChipPast;

/// Where a writing of all goes on.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    #[default]
    Head,
    Group(u32),
    Meter(u32),
    Flow(u32),
    End,
}

/// Records of so many bytes leave their room to the next ones.
const ROOM: usize = 1 << 18;

/// Writes records.
#[derive(Debug)]
pub struct Journal {
    version: Version,
    out: Vec<u8>,
    /// Counters of flows that were met before are written.
    saved_ns: u64,
    saved_tables: Vec<TableCount>,
    saved_groups: BTreeMap<u32, Count>,
    saved_meters: BTreeMap<u32, Count>,
    saved_ports: BTreeMap<u32, PortPast>,
    next: Next,
    /// Where a writing of counters goes on, and when it began.
    counting: Next,
    counting_ns: u64,
    /// What a writing of all begins with.
    head: Vec<u8>,
}

/// Is a counter another than what is written of it? It is written now.
fn is_new(saved: &mut BTreeMap<u32, Count>, number: u32, count: Count) -> bool {
    let before = match count == Count::default() {
        true => saved.remove(&number),
        false => saved.insert(number, count),
    };
    before.unwrap_or_default() != count
}

/// What came in one message has room in one.
fn message(version: Version, m: &Request<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let _ = encode_request(version, 0, m, &mut out);
    out
}

/// The longest flow, of two lists of 1,024 actions of 24 bytes, has room in a message.
fn put_flow(version: Version, m: &FlowMod, out: &mut Vec<u8>) {
    let _ = encode_flow_mod(version, m, out);
}

fn message_of(f: &Flow) -> FlowMod {
    FlowMod {
        cookie: f.cookie,
        table: f.table,
        idle_timeout: f.idle,
        hard_timeout: f.hard,
        priority: f.priority,
        flags: f.flags,
        matching: f.matching.clone(),
        instructions: f.instructions.clone(),
        ..blank()
    }
}

fn past_of(f: &FlowStats<'_>) -> Past {
    Past {
        since_ns: f.flow.since_ns,
        last_ns: f.last_ns,
        packets: f.packets,
        bytes: f.bytes,
    }
}

impl Journal {
    /// Of tables of this version; nothing is written.
    pub fn new(version: Version) -> Journal {
        Journal {
            version,
            out: Vec::new(),
            saved_ns: 0,
            saved_tables: Vec::new(),
            saved_groups: BTreeMap::new(),
            saved_meters: BTreeMap::new(),
            saved_ports: BTreeMap::new(),
            next: Next::End,
            counting: Next::End,
            counting_ns: 0,
            head: Vec::new(),
        }
    }

    /// The records since this was asked last.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Room for the next records: those that were taken are written.
    pub fn give_back(&mut self, mut records: Vec<u8>) {
        if self.out.is_empty() && records.capacity() <= ROOM {
            records.clear();
            self.out = records;
        }
    }

    fn put(&mut self, r: &Record<'_>) {
        r.put(&mut self.out);
    }

    /// The tables began anew, empty.
    pub fn begin(&mut self, version: Version) {
        self.version = version;
        self.saved_tables.clear();
        self.saved_groups.clear();
        self.saved_meters.clear();
        self.put(&Record::Begin(version));
    }

    /// Flows that changed; by the message, if they are what it says.
    pub fn changes(&mut self, switch: &Switch, changes: &[Change], by: Option<&FlowMod>) {
        for c in changes {
            match (c.kind, switch.flow_count(c.flow)) {
                // What it had become is told by a later change
                (ChangeKind::Gone { .. }, _) | (_, None) => self.put(&Record::FlowGone(c.flow)),
                (_, Some(f)) => self.flow(&f, by),
            }
        }
    }

    fn flow(&mut self, f: &FlowStats<'_>, by: Option<&FlowMod>) {
        let start = begin_flow(f.number, &past_of(f), &mut self.out);
        match by.filter(|m| m.command == FlowCommand::Add) {
            Some(m) => put_flow(self.version, m, &mut self.out),
            None => put_flow(self.version, &message_of(f.flow), &mut self.out),
        }
        end_flow(start, &mut self.out);
    }

    /// What met a flow, which may have been before counters were written last.
    pub fn flow_met(&mut self, f: &FlowStats<'_>) {
        self.put(&Record::FlowCount(f.number, past_of(f)));
    }

    /// What is told of a flow, if it may be more than what is written.
    pub fn flow_told(&mut self, f: &FlowStats<'_>) {
        if f.last_ns >= self.saved_ns {
            self.flow_met(f);
        }
    }

    /// A group as it is, or that it is gone.
    pub fn group(&mut self, switch: &Switch, number: u32) {
        let Some((g, c)) = switch.group(number) else {
            self.put(&Record::GroupGone(number));
            return;
        };
        let m = Request::GroupMod(GroupMod {
            command: GroupCommand::Add,
            kind: g.kind,
            group: number,
            buckets: g.buckets.clone(),
        });
        let message = message(self.version, &m);
        self.put(&Record::Group(number, c.since_ns, &message));
        self.saved_groups.remove(&number);
        self.group_count(switch, number);
    }

    /// What came to a group, if it is more than what is written.
    pub fn group_count(&mut self, switch: &Switch, number: u32) {
        if let Some((_, c)) = switch.group(number)
            && is_new(&mut self.saved_groups, number, c.count)
        {
            let counts = [c.count].into_iter().chain(c.buckets.iter().copied());
            self.put(&Record::GroupCount(number, counts.collect()));
        }
    }

    /// A meter as it is, or that it is gone.
    pub fn meter(&mut self, switch: &Switch, number: u32) {
        let Some(m) = switch.meter(number) else {
            self.put(&Record::MeterGone(number));
            return;
        };
        let request = Request::MeterMod(MeterMod {
            command: MeterCommand::Add,
            flags: m.flags,
            meter: number,
            bands: m.bands.clone(),
        });
        let message = message(self.version, &request);
        self.put(&Record::Meter(number, m.since_ns, &message));
        self.saved_meters.remove(&number);
        self.meter_count(switch, number);
    }

    /// What came to a meter, if it is more than what is written.
    pub fn meter_count(&mut self, switch: &Switch, number: u32) {
        if let Some(m) = switch.meter(number)
            && is_new(&mut self.saved_meters, number, m.count)
        {
            let counts = [m.count].into_iter().chain(m.band_counts.iter().copied());
            self.put(&Record::MeterCount(number, counts.collect()));
        }
    }

    /// A port.
    pub fn port(&mut self, number: u32, port: PortPast) {
        if self.saved_ports.get(&number) != Some(&port) {
            self.saved_ports.insert(number, port.clone());
            self.put(&Record::Port(number, port));
        }
    }

    /// It is gone.
    pub fn port_gone(&mut self, number: u32) {
        self.saved_ports.remove(&number);
        self.put(&Record::PortGone(number));
    }

    /// What a controller has set of the switch.
    pub fn config(&mut self, switch: &Switch) {
        let c = switch.config();
        let drop = c.fragments == Fragments::Drop;
        self.put(&Record::Config(drop, c.miss_send_len));
    }

    /// The newest generation of masters.
    pub fn generation(&mut self, generation: u64) {
        self.put(&Record::Generation(generation));
    }

    /// There is a chip below, which has answered nothing of what is said behind this; the counter that it took last.
    pub fn chip(&mut self, last: u32) {
        self.put(&Record::Chip(last));
    }

    /// What it answered of a flow, but for what its counters say.
    pub fn chip_flow(&mut self, number: u32, f: ChipFlow) {
        self.put(&Record::ChipFlow(number, f));
    }

    /// Whose a counter of it is; `None`: it is gone.
    pub fn chip_counter(&mut self, id: u32, flows: Option<Vec<u32>>) {
        self.put(&match flows {
            Some(flows) => Record::ChipCounter(id, flows),
            None => Record::ChipCounterGone(id),
        });
    }

    /// All counters of the tables that may be others than those that are written are to be, by [`Journal::counts`]; nothing
    /// new while they still are.
    pub fn begin_counts(&mut self, now_ns: u64) {
        if let Next::End = self.counting {
            (self.counting, self.counting_ns) = (Next::Head, now_ns);
        }
    }

    /// Looks at about so many things; false: those were all. What meets a flow that was looked at already is of the next
    /// time.
    pub fn counts(&mut self, switch: &Switch, budget: usize) -> bool {
        for _ in 0..budget {
            self.counting = match self.counting {
                Next::Head => {
                    self.table_counts(switch);
                    Next::Group(0)
                }
                Next::Group(from) => match switch.groups_from(from).next() {
                    Some(n) => {
                        self.group_count(switch, n);
                        Next::Group(n + 1)
                    }
                    None => Next::Meter(0),
                },
                Next::Meter(from) => match switch.meters_from(from).next() {
                    Some(n) => {
                        self.meter_count(switch, n);
                        n.checked_add(1).map_or(Next::Flow(0), Next::Meter)
                    }
                    None => Next::Flow(0),
                },
                Next::Flow(n) if n >= switch.flow_numbers() => {
                    self.saved_ns = self.counting_ns;
                    Next::End
                }
                Next::Flow(n) => {
                    if let Some(f) = switch.used_since(n, self.saved_ns) {
                        self.flow_met(&f);
                    }
                    Next::Flow(n + 1)
                }
                Next::End => return false,
            };
        }
        !matches!(self.counting, Next::End)
    }

    /// What the tables looked up.
    pub fn table_counts(&mut self, switch: &Switch) {
        self.saved_tables.resize(256, TableCount::default());
        for t in switch.table_stats() {
            let saved = self.saved_tables.get_mut(usize::from(t.table));
            if let Some(saved) = saved.filter(|s| **s != t.count) {
                *saved = t.count;
                Record::Table(t.table, t.count).put(&mut self.out);
            }
        }
    }

    /// All is to be written: ports and what the switch is, as they are now, then the tables, by [`Journal::slice`].
    pub fn begin_all(
        &mut self,
        switch: &Switch,
        ports: Vec<(u32, PortPast)>,
        newest: Option<u64>,
        chip: Option<ChipPast>,
    ) {
        let changes = self.take();
        self.put(&Record::Begin(self.version));
        self.config(switch);
        self.saved_ports.clear();
        for (number, port) in ports {
            self.port(number, port);
        }
        if let Some(generation) = newest {
            self.generation(generation);
        }
        for t in switch
            .table_stats()
            .filter(|t| t.count != TableCount::default())
        {
            self.put(&Record::Table(t.table, t.count));
        }
        if let Some(chip) = chip {
            self.chip(chip.last);
            for (n, f) in chip.flows {
                self.chip_flow(n, f);
            }
            for (id, flows) in chip.counters {
                self.chip_counter(id, Some(flows));
            }
        }
        self.saved_groups.clear();
        self.saved_meters.clear();
        self.head = std::mem::replace(&mut self.out, changes);
        self.next = Next::Head;
    }

    /// The next slice of all that there is, of about so many things; `None`: that was all.
    pub fn slice(&mut self, switch: &Switch, budget: usize) -> Option<Vec<u8>> {
        let changes = self.take();
        let mut left = budget;
        while left > 0 || self.out.is_empty() {
            left = left.saturating_sub(1);
            self.next = match self.next {
                Next::Head => {
                    self.out.append(&mut self.head);
                    Next::Group(0)
                }
                Next::Group(from) => match switch.groups_from(from).next() {
                    Some(n) => {
                        self.group(switch, n);
                        Next::Group(n + 1)
                    }
                    None => Next::Meter(0),
                },
                Next::Meter(from) => match switch.meters_from(from).next() {
                    Some(n) => {
                        self.meter(switch, n);
                        n.checked_add(1).map_or(Next::Flow(0), Next::Meter)
                    }
                    None => Next::Flow(0),
                },
                Next::Flow(n) if n >= switch.flow_numbers() => Next::End,
                Next::Flow(n) => {
                    if let Some(f) = switch.flow_count(n) {
                        self.flow(&f, None);
                    }
                    Next::Flow(n + 1)
                }
                Next::End => break,
            };
        }
        let slice = std::mem::replace(&mut self.out, changes);
        (!slice.is_empty()).then_some(slice)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What a file says: of each thing the last record; and tables made of it.

use std::collections::BTreeMap;

use tandem_ofpipeline::past::Past;
use tandem_ofpipeline::ports::Count;
use tandem_ofpipeline::{Fragments, Switch, TableCount};
use tandem_openflow::model::{GROUP_ALL, GroupMod, METER_ALL, Request};
use tandem_openflow::{Version, decode};

use crate::Unfit;
use crate::batch::{self, Boot};
use crate::record::{ChipFlow, PortPast, Record};

/// A group or a meter: since when, its message, what it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counted<'a> {
    since_ns: u64,
    message: &'a [u8],
    counts: Vec<Count>,
}

/// What a chip answered, by the numbers of flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChipPast {
    /// The counter that was taken last.
    pub last: u32,
    /// Of each flow what no counter says, if that is something.
    pub flows: BTreeMap<u32, ChipFlow>,
    /// Whose a counter is.
    pub counters: BTreeMap<u32, Vec<u32>>,
}

/// Numbers from here on are no flow's, but a table's.
pub(crate) const TABLES: u32 = 0xffff_0000;

/// Tables, as they were when the last whole batch was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State<'a> {
    version: Option<Version>,
    flows: BTreeMap<u32, (Past, &'a [u8])>,
    groups: BTreeMap<u32, Counted<'a>>,
    meters: BTreeMap<u32, Counted<'a>>,
    tables: BTreeMap<u8, TableCount>,
    ports: BTreeMap<u32, PortPast>,
    config: Option<(bool, u16)>,
    generation: Option<u64>,
    chip: Option<ChipPast>,
    /// Flows that are gone, and counters that were told, in the order of these.
    gone: BTreeMap<u32, u64>,
    counted: BTreeMap<u32, u64>,
    turn: u64,
    /// Bytes behind the last whole batch: of one that a process was killed over.
    pub torn: usize,
}

/// What a switch would not take of it: it has fewer tables, or smaller ones, than the one that wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Left {
    pub flows: usize,
    pub groups: usize,
    pub meters: usize,
}

impl Left {
    /// Something.
    pub fn any(&self) -> bool {
        *self != Left::default()
    }
}

impl<'a> State<'a> {
    /// What a file says.
    ///
    /// # Errors
    /// It holds nothing for a switch of this machine since its start.
    pub fn read(file: &'a [u8], boot: &Boot) -> Result<State<'a>, Unfit> {
        let (batches, torn) = batch::open(file, boot)?;
        let mut state = State {
            torn,
            ..State::default()
        };
        for (at, records) in batches {
            let records = Record::all(records).ok_or(Unfit::Garbled(at))?;
            records.into_iter().for_each(|r| state.take(r));
        }
        Ok(state)
    }

    fn take(&mut self, r: Record<'a>) {
        match r {
            Record::Begin(version) => {
                self.version = Some(version);
                self.flows.clear();
                self.groups.clear();
                self.meters.clear();
                self.tables.clear();
                self.config = None;
                self.chip = None;
            }
            Record::Flow(n, past, message) => {
                self.flows.insert(n, (past, message));
            }
            Record::FlowCount(n, past) => {
                if let Some((p, _)) = self.flows.get_mut(&n) {
                    *p = past;
                }
            }
            Record::FlowGone(n) => {
                self.flows.remove(&n);
                if let Some(chip) = &mut self.chip {
                    chip.flows.remove(&n);
                    self.turn += 1;
                    self.gone.insert(n, self.turn);
                }
            }
            Record::Group(n, since_ns, message) => {
                self.groups.insert(n, Counted::new(since_ns, message));
            }
            Record::Meter(n, since_ns, message) => {
                self.meters.insert(n, Counted::new(since_ns, message));
            }
            Record::GroupCount(n, counts) => {
                if let Some(g) = self.groups.get_mut(&n) {
                    g.counts = counts;
                }
            }
            Record::MeterCount(n, counts) => {
                if let Some(m) = self.meters.get_mut(&n) {
                    m.counts = counts;
                }
            }
            Record::GroupGone(GROUP_ALL) => self.groups.clear(),
            Record::GroupGone(n) => {
                self.groups.remove(&n);
            }
            Record::MeterGone(METER_ALL) => self.meters.clear(),
            Record::MeterGone(n) => {
                self.meters.remove(&n);
            }
            Record::Table(n, count) => {
                self.tables.insert(n, count);
            }
            Record::Port(n, port) => {
                self.ports.insert(n, port);
            }
            Record::PortGone(n) => {
                self.ports.remove(&n);
            }
            Record::Config(drop, len) => self.config = Some((drop, len)),
            Record::Generation(n) => self.generation = Some(n),
            Record::Chip(last) => {
                self.chip = Some(ChipPast {
                    last,
                    ..ChipPast::default()
                });
            }
            Record::ChipFlow(n, f) => {
                if let Some(chip) = &mut self.chip {
                    chip.flows.insert(n, f);
                }
            }
            Record::ChipCounter(id, flows) => {
                if let Some(chip) = &mut self.chip {
                    // Those that wrap begin anew
                    let newer = id.wrapping_sub(chip.last) & 0xff_ffff < 0x80_0000;
                    chip.last = if newer { id } else { chip.last };
                    chip.counters.insert(id, flows);
                    self.turn += 1;
                    self.counted.insert(id, self.turn);
                }
            }
            Record::ChipCounterGone(id) => {
                if let Some(chip) = &mut self.chip {
                    chip.counters.remove(&id);
                }
            }
        }
    }

    /// What the tables speak; `None`: it says nothing of tables.
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// The newest generation of masters.
    pub fn generation(&self) -> Option<u64> {
        self.generation
    }

    /// Ports, by their numbers.
    pub fn ports(&self) -> &BTreeMap<u32, PortPast> {
        &self.ports
    }

    /// Flows, groups and meters.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.flows.len(), self.groups.len(), self.meters.len())
    }

    /// What a chip below answered, if there was one, by the numbers that its flows have now.
    fn chip(&self, numbers: &BTreeMap<u32, u32>) -> Option<ChipPast> {
        let chip = self.chip.as_ref()?;
        let now = |n: &u32| match *n {
            n if n >= TABLES => Some(n),
            n => numbers.get(&n).copied(),
        };
        let counters = chip.counters.iter().map(|(id, flows)| {
            // A flow that came later under that number is another
            let told = self.counted.get(id).copied().unwrap_or(0);
            let own = |n: &&u32| self.gone.get(*n).is_none_or(|gone| *gone < told);
            (*id, flows.iter().filter(own).filter_map(now).collect())
        });
        let flows = chip.flows.iter().filter_map(|(n, f)| Some((now(n)?, *f)));
        Some(ChipPast {
            last: chip.last,
            flows: flows.collect(),
            counters: counters.collect(),
        })
    }

    /// Puts all of it into empty tables of its version: meters, groups, flows, those of smaller numbers first. What came
    /// later than now came now.
    pub fn restore(&self, switch: &mut Switch, now_ns: u64) -> Left {
        self.restore_all(switch, now_ns).0
    }

    /// The same, and what a chip below answered, by the numbers that flows have then.
    pub fn restore_all(&self, switch: &mut Switch, now_ns: u64) -> (Left, Option<ChipPast>) {
        let mut left = Left::default();
        let mut numbers = BTreeMap::new();
        let Some(version) = self.version.filter(|v| *v == switch.config().version) else {
            return (left, None);
        };
        if let Some((drop, len)) = self.config {
            let fragments = match drop {
                true => Fragments::Drop,
                false => Fragments::Normal,
            };
            let ttl = switch.config().invalid_ttl;
            switch.set_config(fragments, len, ttl);
        }
        for m in self.meters.values() {
            let done = match decode(version, m.message) {
                Ok((_, Request::MeterMod(mm))) => switch
                    .restore_meter(&mm, m.since_ns.min(now_ns), &m.counts)
                    .is_ok(),
                _ => false,
            };
            left.meters += usize::from(!done);
        }
        left.groups = self.restore_groups(version, switch, now_ns);
        for (number, (past, message)) in &self.flows {
            let past = Past {
                since_ns: past.since_ns.min(now_ns),
                last_ns: past.last_ns.min(now_ns),
                ..*past
            };
            let done = match decode(version, message) {
                Ok((_, Request::FlowMod(m))) => switch.restore_flow(&m, &past).ok(),
                _ => None,
            };
            if let Some(now) = done {
                numbers.insert(*number, now);
            }
            left.flows += usize::from(done.is_none());
        }
        for (n, count) in &self.tables {
            switch.restore_table(*n, *count);
        }
        (left, self.chip(&numbers))
    }

    /// Those that others forward to come before them.
    fn restore_groups(&self, version: Version, switch: &mut Switch, now_ns: u64) -> usize {
        let read = |g: &Counted<'_>| match decode(version, g.message) {
            Ok((_, Request::GroupMod(m))) => Some(m),
            _ => None,
        };
        let all = self.groups.values();
        let read: Vec<(Option<GroupMod>, &Counted<'_>)> = all.map(|g| (read(g), g)).collect();
        let mut wait: Vec<(&GroupMod, &Counted<'_>)> = read
            .iter()
            .filter_map(|(m, g)| Some((m.as_ref()?, *g)))
            .collect();
        let garbled = read.len() - wait.len();
        loop {
            let before = wait.len();
            wait.retain(|(m, g)| {
                switch
                    .restore_group(m, g.since_ns.min(now_ns), &g.counts)
                    .is_err()
            });
            if wait.is_empty() || wait.len() == before {
                return garbled + wait.len();
            }
        }
    }
}

impl<'a> Counted<'a> {
    fn new(since_ns: u64, message: &'a [u8]) -> Counted<'a> {
        Counted {
            since_ns,
            message,
            counts: Vec::new(),
        }
    }
}

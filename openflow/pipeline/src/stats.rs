// SPDX-License-Identifier: Apache-2.0
//! What is told of flows and tables (§7.3.5). Groups, meters, ports and queues: [`Switch::group`], [`Switch::meter`],
//! [`Switch::port`], [`Switch::queue`].
use crate::flows::Flow;
use crate::key::Key;
use crate::process::rank;
use crate::switch::{Switch, TableCount};
use std::ops::ControlFlow;
use tandem_openflow::model::{FlowFilter, flow_flags};
use tandem_openflow::{Action, Field, Version};

/// A flow with its counters.
#[derive(Clone, Copy, Debug)]
pub struct FlowStats<'a> {
    /// Its number.
    pub number: u32,
    /// The flow.
    pub flow: &'a Flow,
    /// Packets that met it; all ones when the flow does not count them.
    pub packets: u64,
    /// Their bytes; all ones when the flow does not count them.
    pub bytes: u64,
    /// When the last one came, or the flow.
    pub last_ns: u64,
}

/// `ofp_aggregate_stats_reply`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Aggregate {
    pub packets: u64,
    pub bytes: u64,
    pub flows: u32,
}

/// `ofp_table_stats` and what table features say of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TableStats {
    pub table: u8,
    pub active: u32,
    pub max_entries: u32,
    pub count: TableCount,
    /// Different masks in use.
    pub masks: usize,
}

/// What a table can do (§7.3.5.5); all tables can do the same, but the last has nowhere to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// The table.
    pub table: u8,
    /// Flows it holds.
    pub max_entries: u32,
    /// Bits of metadata that can be matched.
    pub metadata_match: u64,
    /// Bits of metadata that can be written.
    pub metadata_write: u64,
    /// Tables that a goto may name.
    pub next: std::ops::Range<u16>,
    /// Fields that can be matched.
    pub matched: Vec<Field>,
    /// Of those, the ones that may have a mask.
    pub masked: Vec<Field>,
    /// Fields that may be left out: all.
    pub wildcards: Vec<Field>,
    /// Fields that set-field may name.
    pub set: Vec<Field>,
}

impl Switch {
    /// A flow with its counters, by its number.
    pub fn flow_count(&self, number: u32) -> Option<FlowStats<'_>> {
        let hot = self.live.hot.get(number as usize)?;
        let flow = self.rules.flows.get(number)?;
        let counts = |flag| flow.flags & flag == 0;
        Some(FlowStats {
            number,
            flow,
            packets: if counts(flow_flags::NO_PKT_COUNTS) {
                hot.packets
            } else {
                u64::MAX
            },
            bytes: if counts(flow_flags::NO_BYT_COUNTS) {
                hot.bytes
            } else {
                u64::MAX
            },
            last_ns: hot.last_ns,
        })
    }

    /// Gives `take` flows of a filter, from the number `from` on, until it breaks off or about `looks` have been looked
    /// at; says with which number to go on, if there may be more. They come in the order of their numbers, which a
    /// flow keeps: one that is there from the first call to the last is given once.
    pub fn flow_page<'s>(
        &'s self,
        filter: &FlowFilter,
        from: u32,
        looks: u32,
        mut take: impl FnMut(FlowStats<'s>) -> ControlFlow<()>,
    ) -> Option<u32> {
        let end = self.rules.flows.end();
        if let Some(mut found) = self.rules.find_few(filter, looks as usize) {
            found.sort_unstable();
            let mut rest = found.into_iter().filter(|n| *n >= from);
            let broken = rest.find(|n| {
                let flow = self.flow_count(*n);
                flow.is_some_and(|f| take(f).is_break())
            });
            return broken.map(|n| n + 1).filter(|n| *n < end);
        }
        let (value, mask) = Key::of_match(&filter.matching.fields);
        let upto = end.min(from.saturating_add(looks.max(1)));
        let broken = (from..upto).find(|n| {
            let flow = self.rules.flows.get(*n);
            let meant = flow.filter(|f| f.is_of(filter, &value, &mask));
            let flow = meant.and_then(|_| self.flow_count(*n));
            flow.is_some_and(|f| take(f).is_break())
        });
        Some(broken.map_or(upto, |n| n + 1)).filter(|n| *n < end)
    }

    /// Their sums.
    pub fn aggregate(&self, filter: &FlowFilter) -> Aggregate {
        let mut sum = Aggregate::default();
        for f in self
            .rules
            .find(filter)
            .into_iter()
            .filter_map(|n| self.flow_count(n))
        {
            // What is not kept is all ones, and so is a sum of it
            sum.packets = sum.packets.saturating_add(f.packets);
            sum.bytes = sum.bytes.saturating_add(f.bytes);
            sum.flows += 1;
        }
        sum
    }

    /// One for each table.
    pub fn table_stats(&self) -> impl Iterator<Item = TableStats> + '_ {
        let each = self.rules.tables.iter().zip(&self.live.tables);
        (0..=u8::MAX)
            .zip(each)
            .map(|(n, (table, count))| TableStats {
                table: n,
                active: table.len,
                max_entries: self.config().table_entries,
                count: *count,
                masks: table.masks(),
            })
    }

    /// What a table can do.
    pub fn features(&self, table: u8) -> Option<Features> {
        let tables = self.config().tables;
        if table >= tables {
            return None;
        }
        let fields = |f: fn(Field) -> bool| Field::ALL.into_iter().filter(|x| f(*x)).collect();
        Some(Features {
            table,
            max_entries: self.config().table_entries,
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            next: u16::from(table) + 1..u16::from(tables),
            matched: fields(|_| true),
            masked: fields(Field::maskable),
            wildcards: fields(|_| true),
            set: fields(Field::settable),
        })
    }

    /// Can an action be in an action set: has it a place in the order of §5.10?
    pub fn may_be_written(&self, a: &Action) -> bool {
        self.config().version == Version::V13 && rank(a).is_some()
    }
}

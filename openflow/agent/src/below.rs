// SPDX-License-Identifier: Apache-2.0
//! A chip below the tables: told of each change that they took, asked what it counted, waited for where an answer says
//! that something is done or how much there was.
//!
//! | a message | waits until |
//! |---|---|
//! | barrier | every answer of the chip is that of the tables as they were when it came or are since, or the CPU's |
//! | counters of flows, tables, ports or groups | the chip's were read since it came, or it does not answer |
//! | any | not more than a few thousand writes wait |
//! | flow-removed | the last counts of its rows are there |
//!
//! A connection whose message waits is looked at no further, but for echo requests that are next; others are not kept from
//! theirs.

use tandem_ofchip::{Chip, May, PortOf, Tally};
use tandem_ofpipeline::ports::Count;
use tandem_ofpipeline::stats::{FlowStats, TableStats};
use tandem_ofpipeline::{Change, ChangeKind, Fragments};
use tandem_openflow::model::{FlowMod, FlowRemoved, port_config};
use tandem_openflow::{Header, Version};

use crate::datapath::Datapath;

/// What a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// What was written when it came, by the chip's mark: others may go on writing.
    Settled(u64),
    /// A read of counters, by its number.
    Read(u64),
    /// Fewer writes that wait.
    Room,
}

/// The chip, and what waits for it.
#[derive(Debug)]
pub(crate) struct Below {
    pub chip: Chip,
    /// Flows that went, whose rows' last counts are on their way.
    pub late: Vec<(Tally, FlowRemoved)>,
    /// A read because a flow may be idle: its number, and when it was asked for.
    asked: Option<(u64, u64)>,
    /// What is known of the use of flows is as of then.
    fresh_ns: u64,
}

impl Below {
    pub fn new(chip: Chip) -> Below {
        Below {
            chip,
            late: Vec::new(),
            asked: None,
            fresh_ns: 0,
        }
    }
}

/// Messages whose answers wait for the chip.
fn asks(version: Version, message: &[u8]) -> (bool, bool) {
    let kind = Header::of(message).map_or(0, |h| h.kind);
    let part = match message.get(8..10) {
        Some(&[a, b]) => u16::from_be_bytes([a, b]),
        _ => u16::MAX,
    };
    let (barrier, multipart) = match version {
        Version::V10 => (18, 16),
        Version::V13 => (20, 18),
    };
    let counts = match version {
        // flows, their sum, tables, ports: the same numbers in both
        Version::V10 => matches!(part, 1..=4),
        // and groups
        Version::V13 => matches!(part, 1..=4 | 6),
    };
    (kind == barrier, kind == multipart && counts)
}

impl Datapath {
    /// A chip below the tables, which is told of all that is there. It is the tables' from here on.
    pub(crate) fn set_chip(&mut self, chip: Chip, now_ns: u64) {
        self.switch.watch();
        let mut chip = chip;
        if chip.version() != self.version() {
            chip.begin(self.version());
        }
        self.below = Some(Below::new(chip));
        self.ports_changed();
        if let Some(below) = &mut self.below {
            below.chip.follow_all(&self.switch, now_ns);
            if self.restored {
                let past = self.past_chip.take();
                below
                    .chip
                    .restore_counts(past.as_ref(), &self.switch, now_ns);
            }
        }
    }

    /// Another port of the chip.
    pub(crate) fn add_chip_port(&mut self, of: PortOf) {
        if let Some(below) = &mut self.below {
            below.chip.add_port(of, &self.switch);
        }
        self.ports_changed();
    }

    /// Has a message to wait before it is looked at?
    pub(crate) fn wait(&mut self, version: Version, message: &[u8]) -> Option<Wait> {
        let below = self.below.as_mut()?;
        let (barrier, counters) = asks(version, message);
        if barrier && !below.chip.is_settled() {
            return Some(Wait::Settled(below.chip.mark()));
        }
        // nobody can be asked, or answers: what is known is told
        if counters && below.chip.lost().is_none() {
            return (!below.chip.is_silent()).then(|| Wait::Read(below.chip.read()));
        }
        below.chip.is_busy().then_some(Wait::Room)
    }

    /// Is what a message waits for there?
    pub(crate) fn is_over(&self, wait: Wait) -> bool {
        let Some(below) = &self.below else {
            return true;
        };
        match wait {
            Wait::Settled(mark) => below.chip.is_settled_to(mark),
            // without a chip that answers, what is known is told
            Wait::Read(n) => {
                let chip = &below.chip;
                chip.read_done() >= n || chip.lost().is_some() || chip.is_silent()
            }
            Wait::Room => !below.chip.is_busy(),
        }
    }

    /// The journal is told of the flows that changed, by a message or by themselves, and the chip. Of those that went and
    /// are to be told of, which are the last of `removed`, those stay there whose counts are known.
    pub(crate) fn changed(&mut self, by: Option<&FlowMod>, removed: &mut Vec<FlowRemoved>) {
        self.regroup();
        let changes = self.switch.take_changes();
        if let Some(journal) = &mut self.journal {
            journal.changes(&self.switch, &changes, by);
        }
        let Some(below) = &mut self.below else {
            return;
        };
        let went = |c: &Change| match c.kind {
            ChangeKind::Gone { told } => Some(told),
            _ => None,
        };
        let count = changes.iter().filter(|c| went(c) == Some(true)).count();
        let mut gone = removed
            .split_off(removed.len().saturating_sub(count))
            .into_iter();
        let left = below.chip.follow(&self.switch, &changes);
        for (told, left) in changes.iter().filter_map(went).zip(left) {
            let message = match told {
                true => gone.next(),
                false => None,
            };
            match (left, message) {
                (Ok(tally), Some(m)) => below.late.push((tally, m)),
                (Ok(tally), None) => below.chip.forget(tally),
                (Err(counted), Some(mut m)) => {
                    add(&mut m, &counted);
                    removed.push(m);
                }
                (Err(_), None) => {}
            }
        }
    }

    /// The chip is told of groups that changed, as one with what it is told next.
    pub(crate) fn regroup(&mut self) {
        let groups = self.switch.take_regrouped();
        if let Some(below) = &mut self.below {
            below.chip.regroup(&self.switch, &groups);
        }
    }

    /// The chip is told what its ports may do, and which groups follow that.
    pub(crate) fn ports_changed(&mut self) {
        self.regroup();
        let Some(below) = &mut self.below else {
            return;
        };
        let ports = &self.ports;
        let may = |n: u32| {
            let config = ports
                .get(&n)
                .map_or(port_config::PORT_DOWN, |e| e.port.config);
            let has = |bits: u32| config & bits != 0;
            May {
                receive: !has(port_config::NO_RECV | port_config::PORT_DOWN),
                send: !has(port_config::NO_FWD | port_config::PORT_DOWN),
                flood: !has(port_config::NO_FLOOD10),
            }
        };
        // without its tables nobody's answer is the chip's
        let all = self.switch.config().fragments == Fragments::Drop || self.alone;
        below.chip.set_ports(may, all);
    }

    /// The tables are not asked, as no controller is there, or they are again.
    pub(crate) fn stand_alone(&mut self, alone: bool) {
        self.alone = alone;
        self.ports_changed();
    }

    /// Packets and bytes of a flow, in software and in the chip; all ones for what is not known.
    pub fn counted(&self, f: &FlowStats<'_>) -> (u64, u64) {
        let Some(below) = &self.below else {
            return (f.packets, f.bytes);
        };
        let (packets, bytes) = below.chip.counted(f.number);
        (sum(f.packets, packets), sum(f.bytes, bytes))
    }

    /// The same of a group, or of one of its buckets.
    pub fn group_counted(&self, group: u32, bucket: Option<u32>, soft: &Count) -> (u64, u64) {
        let Some(below) = &self.below else {
            return (soft.packets, soft.bytes);
        };
        let (packets, bytes) = below.chip.group_counted(group, bucket);
        (sum(soft.packets, packets), sum(soft.bytes, bytes))
    }

    /// Which flows packets have met here is told to the chip where it asks, and what it knows of their use is taken.
    pub(crate) fn met(&mut self) {
        let Some(below) = &mut self.below else {
            return;
        };
        let met = self.switch.take_met();
        if !met.is_empty() {
            below.chip.met(&met);
        }
        for (n, used) in below.chip.take_ended() {
            self.switch.used(n, used);
        }
        for n in below.chip.take_asks() {
            self.switch.ask(n);
        }
    }

    /// When flows were used, as far as the chip has told.
    pub(crate) fn take_used(&mut self) {
        if let Some(below) = &mut self.below {
            for (n, used) in below.chip.take_used() {
                self.switch.used(n, used);
                if let (Some(journal), Some(f)) = (&mut self.journal, self.switch.flow_count(n)) {
                    journal.flow_met(&f);
                }
            }
        }
    }

    /// The tables' counters, in software and in the chip; all ones for what is not known.
    pub fn table_stats(&self) -> impl Iterator<Item = TableStats> {
        let chip = self.below.as_ref().map(|b| b.chip.looked_up());
        self.switch.table_stats().map(move |mut t| {
            if let Some(of) = &chip {
                let (lookups, matched) = of.get(usize::from(t.table)).copied().unwrap_or_default();
                t.count.lookups = sum(t.count.lookups, lookups);
                t.count.matched = sum(t.count.matched, matched);
            }
            t
        })
    }

    /// Time up to which it is known which flows were used, so that none ends that was.
    pub(crate) fn known_ns(&mut self, now_ns: u64, due: bool) -> u64 {
        let Some(below) = &mut self.below else {
            return now_ns;
        };
        if below.chip.lost().is_some() {
            // Nothing can be asked: what the chip forwards from then on keeps no flow alive
            below.asked = None;
            self.take_used();
            return now_ns;
        }
        if let Some((read, at)) = below.asked
            && below.chip.read_done() >= read
        {
            below.asked = None;
            below.fresh_ns = at;
            self.take_used();
        }
        let Some(below) = &mut self.below else {
            return now_ns;
        };
        if due && below.asked.is_none() && below.fresh_ns < now_ns {
            below.asked = Some((below.chip.read(), now_ns));
        }
        below.fresh_ns
    }

    /// Are there flows that went, whose last counts are on their way?
    pub(crate) fn has_late(&self) -> bool {
        self.below.as_ref().is_some_and(|b| !b.late.is_empty())
    }

    /// Flows that went, whose last counts have come.
    pub(crate) fn late(&mut self, removed: &mut Vec<FlowRemoved>) {
        let Some(below) = &mut self.below else {
            return;
        };
        let chip = &mut below.chip;
        below
            .late
            .retain_mut(|(tally, m)| match chip.whole(*tally) {
                Some(counted) => {
                    add(m, &counted);
                    removed.push(m.clone());
                    false
                }
                None => true,
            });
    }
}

/// What the software and the chip have counted together; all ones if that is not known.
fn sum(soft: u64, chip: Option<u64>) -> u64 {
    chip.map_or(u64::MAX, |n| soft.saturating_add(n))
}

/// What the chip counted goes into a message.
fn add(m: &mut FlowRemoved, counted: &tandem_ofchip::Counted) {
    let sum = |soft: u64, chip: u64, lost: bool| {
        if lost {
            u64::MAX
        } else {
            soft.saturating_add(chip)
        }
    };
    m.packets = sum(m.packets, counted.packets, counted.lost);
    m.bytes = sum(m.bytes, counted.bytes, counted.lost || counted.lost_bytes);
}

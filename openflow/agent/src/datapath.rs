// SPDX-License-Identifier: Apache-2.0
//! The switch below the protocol: tables, ports, and what an ordinary switch would know.
//!
//! All that changes the tables goes through [`Datapath::flow_mod`], [`Datapath::group_mod`], [`Datapath::meter_mod`],
//! [`Datapath::set_port`] and [`Datapath::expire`]. Where the software pipeline is all there is, they are done when they
//! have returned. A chip stands below the same calls (`below`): it is told of each change that was taken, and a frame that
//! it has forwarded does not come here.

use std::collections::BTreeMap;

use tandem_ofpipeline::ports::{Count, PortCount};
use tandem_ofpipeline::{Config, Fragments, Switch};
use tandem_openflow::model::Fragments as Wanted;
use tandem_openflow::{Error, Version};

use tandem_ofchip::{Chip, Past};
use tandem_ofkeep::{Journal, PortPast};
use tandem_openflow::model::{FlowMod, FlowRemoved, GroupMod, MeterMod};

use crate::Settings;
use crate::below::Below;
use crate::learning::Learning;
use crate::ports::PortEntry;

/// An answer of the chip is looked for at least so often.
const READ_NS: u64 = 1_000_000_000;

/// Tables, ports, learned addresses.
#[derive(Debug)]
pub struct Datapath {
    pub(crate) switch: Switch,
    pub(crate) ports: BTreeMap<u32, PortEntry>,
    pub(crate) learning: Learning,
    queues: u32,
    pub(crate) below: Option<Below>,
    /// Without a controller, an ordinary switch: the tables are not asked.
    pub(crate) alone: bool,
    /// Writes down what is to outlive the process.
    pub(crate) journal: Option<Journal>,
    /// Ports that an earlier process had, until they come.
    pub(crate) past_ports: BTreeMap<u32, PortPast>,
    /// The tables are an earlier process's.
    pub(crate) restored: bool,
    /// What that one's chip had answered, if it has written that down.
    pub(crate) past_chip: Option<Past>,
    /// Empty tables of the other version with these ports, while a controller of that one asks: 255 tables are not made for
    /// each of its messages.
    pub(crate) empty: Option<Switch>,
    /// How often such were made.
    #[cfg(test)]
    pub(crate) made: u32,
}

/// How many there are of a version.
pub(crate) fn tables(settings: &Settings, version: Version) -> u8 {
    match version {
        Version::V10 => 1,
        Version::V13 => settings.tables,
    }
}

fn config(settings: &Settings, version: Version) -> Config {
    Config {
        version,
        tables: tables(settings, version),
        table_entries: settings.max_flows,
        flows: settings.max_flows,
        local: settings.local,
        secret: settings.secret,
        ..Config::default()
    }
}

/// # Errors
/// They are not put together.
pub(crate) fn fragments(wanted: Wanted) -> Result<Fragments, Error> {
    match wanted {
        Wanted::Normal => Ok(Fragments::Normal),
        Wanted::Drop => Ok(Fragments::Drop),
        Wanted::Reassemble => Err(Error::SWITCH_CONFIG_FAILED_BAD_FLAGS),
    }
}

impl Datapath {
    pub(crate) fn new(settings: &Settings) -> Datapath {
        let version = settings.versions.iter().max().copied();
        Datapath {
            switch: Switch::new(config(settings, version.unwrap_or(Version::V13))),
            ports: BTreeMap::new(),
            learning: Learning::default(),
            queues: settings.queues,
            below: None,
            alone: false,
            journal: None,
            past_ports: BTreeMap::new(),
            restored: false,
            past_chip: None,
            empty: None,
            #[cfg(test)]
            made: 0,
        }
    }

    /// The chip below the tables.
    pub fn chip(&self) -> Option<&Chip> {
        self.below.as_ref().map(|b| &b.chip)
    }

    /// Are the tables those of an earlier process?
    pub fn is_restored(&self) -> bool {
        self.restored
    }

    /// A controller's change of flows.
    ///
    /// # Errors
    /// It is refused, and nothing is changed.
    pub(crate) fn flow_mod(
        &mut self,
        m: &FlowMod,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) -> Result<(), Error> {
        let done = self.switch.flow_mod(m, now_ns, removed);
        self.changed(Some(m), removed);
        done
    }

    /// Of groups, with the flows that go with them.
    ///
    /// # Errors
    /// As [`Datapath::flow_mod`].
    pub(crate) fn group_mod(
        &mut self,
        m: &GroupMod,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) -> Result<(), Error> {
        let done = self.switch.group_mod(m, now_ns, removed);
        self.changed(None, removed);
        if let (Ok(()), Some(journal)) = (done, &mut self.journal) {
            journal.group(&self.switch, m.group);
        }
        done
    }

    /// Of meters, with the flows that go with them.
    ///
    /// # Errors
    /// As [`Datapath::flow_mod`].
    pub(crate) fn meter_mod(
        &mut self,
        m: &MeterMod,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) -> Result<(), Error> {
        let done = self.switch.meter_mod(m, now_ns, removed);
        self.changed(None, removed);
        if let (Ok(()), Some(journal)) = (done, &mut self.journal) {
            journal.meter(&self.switch, m.meter);
        }
        done
    }

    /// Flows whose time is up go; when the next one's is. One that the chip may have used is asked for first.
    pub(crate) fn expire(
        &mut self,
        now_ns: u64,
        budget: usize,
        removed: &mut Vec<FlowRemoved>,
    ) -> Option<u64> {
        self.met();
        let known = self.known_ns(now_ns, false);
        let chip = self.below.as_ref().map(|b| &b.chip);
        let busy = |n: u32| chip.is_some_and(|c| c.is_busy_with(n));
        let next = self.switch.expire(known, budget, busy, removed);
        self.changed(None, removed);
        self.late(removed);
        let below = self.below.as_mut();
        let measures = below.and_then(|b| b.chip.measure(&self.switch, now_ns));
        if next.is_some_and(|at| at <= now_ns) && known < now_ns {
            self.known_ns(now_ns, true);
            // the chip's answer comes before
            return Some(now_ns + READ_NS);
        }
        next.into_iter().chain(measures).min()
    }

    /// The tables.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// Ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = &PortEntry> {
        self.ports.values()
    }

    /// Is there nothing in them?
    pub(crate) fn is_empty(&self) -> bool {
        let flows: u32 = self.switch.table_stats().map(|t| t.active).sum();
        flows == 0 && self.switch.groups().next().is_none() && self.switch.meters().next().is_none()
    }

    /// The version that the tables speak.
    pub fn version(&self) -> Version {
        self.switch.config().version
    }

    /// All that a port counted, beside what its cable lost; all ones for what is not known.
    pub fn port_count(&self, number: u32) -> Option<PortCount> {
        let entry = self.switch.port(number)?;
        let own = self.ports.get(&number)?.count(entry);
        let Some(chip) = self.chip().filter(|c| c.port(number).is_some()) else {
            return Some(own);
        };
        // All frames are the chip's, those that go to the CPU and come from there as well
        let unknown = Count {
            packets: u64::MAX,
            bytes: u64::MAX,
        };
        let Some(c) = chip.port_stats(number) else {
            return Some(PortCount {
                rx: unknown,
                tx: unknown,
                tx_dropped: u64::MAX,
                ..own
            });
        };
        let count = |packets, bytes| Count { packets, bytes };
        Some(PortCount {
            rx: count(c.rx_packets, c.rx_bytes),
            tx: count(c.tx_packets, c.tx_bytes),
            tx_dropped: own.tx_dropped.saturating_add(c.tx_dropped),
            ..own
        })
    }

    /// Empty tables of a version with these ports, beside those that are there: for what is asked of them, no packets. Whoever
    /// leaves them empty puts them back.
    pub(crate) fn take_empty(
        &mut self,
        settings: &Settings,
        version: Version,
        now_ns: u64,
    ) -> Switch {
        let there = self.empty.take();
        if let Some(there) = there.filter(|t| t.config().version == version) {
            return there;
        }
        #[cfg(test)]
        {
            self.made += 1;
        }
        let mut tables = Switch::new(Config {
            cache: 0,
            ..config(settings, version)
        });
        for e in self.ports.values() {
            tables.set_port(e.for_tables(self.queues), now_ns);
        }
        tables
    }

    /// Begins anew with empty tables of another version; ports count on. Flows that went whose last counts were on their
    /// way are told of without.
    pub(crate) fn begin(
        &mut self,
        settings: &Settings,
        version: Version,
        now_ns: u64,
        removed: &mut Vec<FlowRemoved>,
    ) {
        self.empty = None;
        for (number, e) in &mut self.ports {
            e.begin(self.switch.port(*number), version);
        }
        self.switch = Switch::new(config(settings, version));
        if let Some(journal) = &mut self.journal {
            journal.begin(version);
            self.switch.watch();
        }
        if let Some(below) = self.below.take() {
            let mut chip = below.chip;
            removed.extend(below.late.into_iter().map(|(_, m)| FlowRemoved {
                packets: u64::MAX,
                bytes: u64::MAX,
                ..m
            }));
            chip.begin(version);
            self.switch.watch();
            self.below = Some(Below::new(chip));
        }
        let numbers: Vec<u32> = self.ports.keys().copied().collect();
        for n in numbers {
            self.set_port(n, now_ns);
        }
    }

    /// The tables learn what a port's entry says.
    pub(crate) fn set_port(&mut self, number: u32, now_ns: u64) {
        self.empty = None;
        if let Some(e) = self.ports.get(&number) {
            self.switch.set_port(e.for_tables(self.queues), now_ns);
            if !e.is_live() {
                self.learning.forget_port(number);
            }
        }
        self.ports_changed();
    }

    pub(crate) fn remove_port(&mut self, number: u32) -> Option<PortEntry> {
        self.empty = None;
        self.switch.remove_port(number);
        self.learning.forget_port(number);
        self.regroup();
        let below = self.below.as_mut();
        let of_chip = below.and_then(|b| b.chip.remove_port(number, &self.switch));
        if let Some(journal) = &mut self.journal {
            journal.port_gone(number);
        }
        let gone = self.ports.remove(&number);
        if of_chip.is_none() {
            // A group in the chip may have watched it
            self.ports_changed();
        }
        gone
    }

    /// `OFPT_SET_CONFIG`.
    ///
    /// # Errors
    /// Fragments are not put together.
    pub(crate) fn set_config(
        &mut self,
        fragments: Wanted,
        miss_send_len: u16,
    ) -> Result<(), Error> {
        let fragments = self::fragments(fragments)?;
        let ttl = self.switch.config().invalid_ttl;
        self.switch.set_config(fragments, miss_send_len, ttl);
        if let Some(journal) = &mut self.journal {
            journal.config(&self.switch);
        }
        self.ports_changed();
        Ok(())
    }

    /// Somebody wishes to hear of packets whose TTL is used up.
    pub(crate) fn set_invalid_ttl(&mut self, wanted: bool) {
        let c = self.switch.config();
        let (fragments, miss_send_len) = (c.fragments, c.miss_send_len);
        self.switch.set_config(fragments, miss_send_len, wanted);
    }
}

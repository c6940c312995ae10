// SPDX-License-Identifier: Apache-2.0
//! What outlives the process: the tables of an earlier one come back, and what changes is written down for the next.

use std::io;

use tandem_ofchip::{Counted, Past};
use tandem_ofkeep::{ChipFlow, ChipPast, Journal, Left, PortPast, State, Store};
use tandem_openflow::model::{Asks, GROUP_ALL, METER_ALL};
use tandem_openflow::port;

use crate::agent::Agent;
use crate::datapath::Datapath;

impl Agent {
    /// Takes over what an earlier process left: tables, of a version that is offered, the generation of masters, and
    /// ports, when they come. Before there are ports, a chip and controllers.
    pub fn restore(&mut self, state: &State<'_>, now_ns: u64) -> Left {
        let offered = &self.settings.versions;
        let Some(version) = state.version().filter(|v| offered.contains(v)) else {
            return Left::default();
        };
        if version != self.dp.version() {
            self.begin_tables(version, now_ns);
        }
        self.generation = state.generation();
        self.dp.past_ports = state.ports().clone();
        self.dp.restored = true;
        let (left, chip) = state.restore_all(&mut self.dp.switch, now_ns);
        self.dp.past_chip = chip.map(past_of);
        left
    }

    /// A port's link as an earlier process was told last, which is what a chip that goes on was written for: groups follow
    /// links, and a chip tells of them when it has been taken over. Until [`Agent::add_port`]; down, if nothing is known.
    pub fn past_link(&self, number: u32, name: &str) -> (bool, u32) {
        let past = self.dp.past_ports.get(&number);
        past.filter(|p| p.name == name)
            .map_or((false, 0), |p| p.link)
    }

    /// From here on what changes is written down, for [`Agent::take_kept`].
    pub fn keep(&mut self) {
        self.dp.switch.watch();
        self.dp.journal = Some(Journal::new(self.dp.version()));
    }

    /// What has changed since this was asked last. Before an answer leaves that says so it has to be where the process
    /// can't take it along.
    pub fn take_kept(&mut self) -> Vec<u8> {
        self.dp.keep_chip();
        self.dp
            .journal
            .as_mut()
            .map(Journal::take)
            .unwrap_or_default()
    }

    /// Those are written: their room is for what changes next.
    pub fn give_kept_back(&mut self, records: Vec<u8>) {
        if let Some(journal) = &mut self.dp.journal {
            journal.give_back(records);
        }
    }

    /// Counters that may be others than those that were written down are to be, by [`Agent::keep_some_counts`].
    pub fn keep_counts(&mut self, now_ns: u64) {
        self.dp.keep_counts(now_ns);
    }

    /// About so many flows, groups and meters are looked at for it; false: those were all.
    pub fn keep_some_counts(&mut self, budget: usize) -> bool {
        let switch = &self.dp.switch;
        let journal = self.dp.journal.as_mut();
        journal.is_some_and(|j| j.counts(switch, budget))
    }

    /// All that there is is to be written, by [`Agent::keep_slice`].
    pub fn keep_all(&mut self) {
        let ports = self.dp.ports.keys();
        let ports = ports.filter_map(|n| Some((*n, self.dp.port_past(*n)?)));
        let ports = ports.collect();
        let chip = self.dp.chip().map(|c| {
            let past = c.past();
            let flows = past.flows.into_iter();
            ChipPast {
                last: past.last,
                flows: flows.map(|(n, c)| (n, chip_flow(c))).collect(),
                counters: past.counters,
            }
        });
        if let Some(journal) = &mut self.dp.journal {
            journal.begin_all(&self.dp.switch, ports, self.generation, chip);
        }
    }

    /// About so many things of it go to the file, which takes the other's place when that was all.
    ///
    /// # Errors
    /// Those of [`Store::slice`]; nothing is written down: no file is whole then.
    pub fn keep_slice(&mut self, budget: usize, store: &mut Store) -> io::Result<()> {
        let Some(journal) = &mut self.dp.journal else {
            return store.give_up("nothing is written down");
        };
        let slice = journal.slice(&self.dp.switch, budget);
        store.slice(slice.as_deref())
    }
}

fn chip_flow(c: Counted) -> ChipFlow {
    let Counted {
        packets,
        bytes,
        lost,
        lost_bytes,
    } = c;
    ChipFlow {
        packets,
        bytes,
        lost,
        lost_bytes,
    }
}

fn past_of(chip: ChipPast) -> Past {
    let of = |f: ChipFlow| Counted {
        packets: f.packets,
        bytes: f.bytes,
        lost: f.lost,
        lost_bytes: f.lost_bytes,
    };
    let flows = chip.flows.into_iter();
    Past {
        last: chip.last,
        flows: flows.map(|(n, f)| (n, of(f))).collect(),
        counters: chip.counters,
    }
}

impl Datapath {
    /// What the chip has to say for the next process, since this was called last.
    fn keep_chip(&mut self) {
        let Some(below) = &mut self.below else {
            return;
        };
        let unwritten = below.chip.take_unwritten();
        let Some(journal) = &mut self.journal else {
            return;
        };
        if unwritten.anew {
            journal.chip(unwritten.last);
        }
        for (n, c) in unwritten.flows {
            journal.chip_flow(n, chip_flow(c));
        }
        for (id, flows) in unwritten.counters {
            journal.chip_counter(id, flows);
        }
    }

    /// What the next process is to know of a port.
    fn port_past(&self, number: u32) -> Option<PortPast> {
        let (e, entry) = (self.ports.get(&number)?, self.switch.port(number)?);
        Some(PortPast {
            name: e.port.name.clone(),
            config: e.port.config,
            link: e.link(),
            count: e.count(entry),
            lost: [e.lost.rx_dropped, e.lost.rx_errors, e.lost.tx_dropped],
            queues: e.queue_counts(entry).collect(),
        })
    }

    /// A port's configuration, link or counters are written down, if they are new.
    pub(crate) fn keep_port(&mut self, number: u32) {
        if let Some(past) = self.port_past(number)
            && let Some(journal) = &mut self.journal
        {
            journal.port(number, past);
        }
    }

    /// Counters that are told now: a number that was told is not a smaller one in the next process. Of flows,
    /// [`Agent::list`] writes each.
    pub(crate) fn keep_told(&mut self, asks: &Asks<'_>) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        let switch = &self.switch;
        match *asks {
            Asks::Table => journal.table_counts(switch),
            Asks::Group { group: GROUP_ALL } => {
                switch.groups().for_each(|n| journal.group_count(switch, n));
            }
            Asks::Group { group } => journal.group_count(switch, group),
            Asks::Meter { meter: METER_ALL } => {
                switch.meters().for_each(|n| journal.meter_count(switch, n));
            }
            Asks::Meter { meter } => journal.meter_count(switch, meter),
            Asks::Port { port: port::ANY }
            | Asks::Queue {
                port: port::ANY, ..
            } => self.keep_ports(),
            Asks::Port { port } | Asks::Queue { port, .. } => self.keep_port(port),
            _ => {}
        }
    }

    fn keep_ports(&mut self) {
        let numbers: Vec<u32> = self.ports.keys().copied().collect();
        for n in numbers {
            self.keep_port(n);
        }
    }

    /// All counters of tables and ports.
    pub(crate) fn keep_counts(&mut self, now_ns: u64) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        journal.begin_counts(now_ns);
        self.keep_ports();
    }
}

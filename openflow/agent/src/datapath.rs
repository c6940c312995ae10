// SPDX-License-Identifier: Apache-2.0
//! The switch below the protocol: tables, ports, and what an ordinary switch would know.
//!
//! All that changes the tables goes through [`Datapath::flow_mod`], [`Datapath::group_mod`], [`Datapath::meter_mod`],
//! [`Datapath::set_port`] and [`Datapath::expire`], and a barrier is answered when they have returned. Here the software
//! pipeline is all there is. A chip stands below the same calls: it is told of each change that was taken, and a frame
//! that it has forwarded does not come here.

use std::collections::BTreeMap;

use tandem_ofpipeline::ports::PortCount;
use tandem_ofpipeline::{Config, Fragments, Switch};
use tandem_openflow::model::Fragments as Wanted;
use tandem_openflow::{Error, Version};

use crate::Settings;
use crate::learning::Learning;
use crate::ports::PortEntry;

/// Tables, ports, learned addresses.
#[derive(Debug)]
pub struct Datapath {
    pub(crate) switch: Switch,
    pub(crate) ports: BTreeMap<u32, PortEntry>,
    pub(crate) learning: Learning,
    queues: u32,
}

fn config(settings: &Settings, version: Version) -> Config {
    Config {
        version,
        tables: match version {
            Version::V10 => 1,
            Version::V13 => settings.tables,
        },
        table_entries: settings.max_flows,
        flows: settings.max_flows,
        local: settings.local,
        secret: settings.secret,
        ..Config::default()
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
        }
    }

    /// The tables.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// Ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = &PortEntry> {
        self.ports.values()
    }

    /// The version that the tables speak.
    pub fn version(&self) -> Version {
        self.switch.config().version
    }

    /// All that a port counted, beside what its cable lost.
    pub fn port_count(&self, number: u32) -> Option<PortCount> {
        let entry = self.switch.port(number)?;
        Some(self.ports.get(&number)?.count(entry))
    }

    /// Begins anew with empty tables of another version; ports count on.
    pub(crate) fn begin(&mut self, settings: &Settings, version: Version, now_ns: u64) {
        for (number, e) in &mut self.ports {
            e.begin(self.switch.port(*number), version);
        }
        self.switch = Switch::new(config(settings, version));
        let numbers: Vec<u32> = self.ports.keys().copied().collect();
        for n in numbers {
            self.set_port(n, now_ns);
        }
    }

    /// The tables learn what a port's entry says.
    pub(crate) fn set_port(&mut self, number: u32, now_ns: u64) {
        if let Some(e) = self.ports.get(&number) {
            self.switch.set_port(e.for_tables(self.queues), now_ns);
            if !e.is_live() {
                self.learning.forget_port(number);
            }
        }
    }

    pub(crate) fn remove_port(&mut self, number: u32) -> Option<PortEntry> {
        self.switch.remove_port(number);
        self.learning.forget_port(number);
        self.ports.remove(&number)
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
        let fragments = match fragments {
            Wanted::Normal => Fragments::Normal,
            Wanted::Drop => Fragments::Drop,
            Wanted::Reassemble => return Err(Error::SWITCH_CONFIG_FAILED_BAD_FLAGS),
        };
        let ttl = self.switch.config().invalid_ttl;
        self.switch.set_config(fragments, miss_send_len, ttl);
        Ok(())
    }

    /// Somebody wishes to hear of packets whose TTL is used up.
    pub(crate) fn set_invalid_ttl(&mut self, wanted: bool) {
        let c = self.switch.config();
        let (fragments, miss_send_len) = (c.fragments, c.miss_send_len);
        self.switch.set_config(fragments, miss_send_len, wanted);
    }
}

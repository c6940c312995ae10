// SPDX-License-Identifier: Apache-2.0
//! Ports as controllers see them (§7.2.1), and `OFPT_PORT_MOD` (§7.3.4.3).

use tandem_ofkeep::PortPast;
use tandem_ofpipeline as pipeline;
use tandem_ofpipeline::ports::{Count, Entry, PortCount};
use tandem_openflow::model::{Port, PortMod, port_config, port_features, port_state};
use tandem_openflow::{Error, Version};

/// What a cable lost, beside what the tables count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Lost {
    pub rx_dropped: u64,
    pub rx_errors: u64,
    pub tx_dropped: u64,
}

impl Lost {
    pub(crate) fn and(self, more: Lost) -> Lost {
        Lost {
            rx_dropped: self.rx_dropped + more.rx_dropped,
            rx_errors: self.rx_errors + more.rx_errors,
            tx_dropped: self.tx_dropped + more.tx_dropped,
        }
    }
}

/// A port.
#[derive(Clone, Debug)]
pub struct PortEntry {
    /// As controllers see it.
    pub port: Port,
    /// What its cable lost.
    pub lost: Lost,
    /// Of that, what it lost of an earlier process.
    pub(crate) past_lost: Lost,
    /// What the tables that are there do not count: frames of a switch without a controller, and what earlier tables
    /// counted. Since when the port is there.
    pub(crate) past: PortCount,
    /// Of its queues, by earlier tables.
    pub(crate) past_queues: Vec<Count>,
}

/// Of speeds that have a bit, the bit.
fn speed_bit(mbps: u32) -> u32 {
    match mbps {
        0 => 0,
        10 => port_features::FD_10MB,
        100 => port_features::FD_100MB,
        1_000 => port_features::FD_1GB,
        10_000 => port_features::FD_10GB,
        40_000 => port_features::FD_40GB,
        100_000 => port_features::FD_100GB,
        _ => port_features::OTHER,
    }
}

/// Bits of a port's configuration.
fn known(version: Version) -> u32 {
    match version {
        Version::V10 => port_config::ALL10,
        Version::V13 => port_config::ALL,
    }
}

fn sum(a: Count, b: Count) -> Count {
    Count {
        packets: a.packets + b.packets,
        bytes: a.bytes + b.bytes,
    }
}

impl PortEntry {
    pub(crate) fn new(number: u32, name: &str, hw_addr: [u8; 6], now_ns: u64) -> PortEntry {
        PortEntry {
            port: Port {
                number,
                name: name.into(),
                hw_addr,
                ..Port::default()
            },
            lost: Lost::default(),
            past_lost: Lost::default(),
            past: PortCount {
                since_ns: now_ns,
                ..PortCount::default()
            },
            past_queues: Vec::new(),
        }
    }

    /// It is the port that an earlier process had.
    pub(crate) fn restore(&mut self, past: PortPast, version: Version) {
        let [rx_dropped, rx_errors, tx_dropped] = past.lost;
        self.past_lost = Lost {
            rx_dropped,
            rx_errors,
            tx_dropped,
        };
        self.lost = self.past_lost;
        self.past = past.count;
        self.past_queues = past.queues;
        self.port.config = past.config & known(version);
    }

    /// Link and speed; whether anything is new.
    pub(crate) fn set_link(&mut self, up: bool, mbps: u32) -> bool {
        let before = self.port.clone();
        let bit = speed_bit(mbps);
        let p = &mut self.port;
        (p.current, p.advertised, p.supported) = (bit, bit, bit);
        p.current_speed = mbps.saturating_mul(1_000);
        p.max_speed = p.current_speed;
        p.state &= !port_state::LINK_DOWN;
        if !up {
            p.state |= port_state::LINK_DOWN;
        }
        self.set_live();
        before != self.port
    }

    /// As [`PortEntry::set_link`] was told it.
    pub(crate) fn link(&self) -> (bool, u32) {
        let up = self.port.state & port_state::LINK_DOWN == 0;
        (up, self.port.current_speed / 1_000)
    }

    fn set_live(&mut self) {
        self.port.state &= !port_state::LIVE;
        if self.is_live() {
            self.port.state |= port_state::LIVE;
        }
    }

    /// All that was counted, beside what cables lost; `entry` is the port in the tables.
    pub(crate) fn count(&self, entry: &Entry) -> PortCount {
        let c = &entry.count;
        PortCount {
            rx: sum(self.past.rx, c.rx),
            tx: sum(self.past.tx, c.tx),
            rx_dropped: self.past.rx_dropped + c.rx_dropped,
            tx_dropped: self.past.tx_dropped + c.tx_dropped,
            since_ns: self.past.since_ns,
        }
    }

    /// The same of its queues.
    pub(crate) fn queue_counts<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = Count> + 'a {
        let past = self.past_queues.iter().copied();
        let past = past.chain(std::iter::repeat(Count::default()));
        entry.queues.iter().zip(past).map(|(q, p)| sum(q.tx, p))
    }

    /// The tables go; others, of another version, come.
    pub(crate) fn begin(&mut self, entry: Option<&Entry>, version: Version) {
        if let Some(entry) = entry {
            self.past_queues = self.queue_counts(entry).collect();
            self.past = self.count(entry);
        }
        // what the version has not nobody could see, or take back
        self.port.config &= known(version);
    }

    /// Can frames leave?
    pub fn is_live(&self) -> bool {
        self.port.state & port_state::LINK_DOWN == 0 && !self.has(port_config::PORT_DOWN)
    }

    fn has(&self, bit: u32) -> bool {
        self.port.config & bit != 0
    }

    /// Are frames that come in taken?
    pub(crate) fn receives(&self) -> bool {
        !self.has(port_config::NO_RECV) && !self.has(port_config::PORT_DOWN)
    }

    /// Carries out a port_mod; whether anything is new.
    ///
    /// # Errors
    /// `BAD_HW_ADDR`, `BAD_CONFIG`, `BAD_ADVERTISE`; nothing is changed.
    pub(crate) fn modify(&mut self, m: &PortMod, version: Version) -> Result<bool, Error> {
        if m.hw_addr != self.port.hw_addr {
            return Err(Error::PORT_MOD_FAILED_BAD_HW_ADDR);
        }
        if m.mask & !known(version) != 0 {
            return Err(Error::PORT_MOD_FAILED_BAD_CONFIG);
        }
        // a cable has one speed
        if m.advertise != 0 && m.advertise != self.port.advertised {
            return Err(Error::PORT_MOD_FAILED_BAD_ADVERTISE);
        }
        let before = self.port.config;
        self.port.config = before & !m.mask | m.config & m.mask;
        self.set_live();
        Ok(before != self.port.config)
    }

    /// As the tables have to know it.
    pub(crate) fn for_tables(&self, queues: u32) -> pipeline::Port {
        pipeline::Port {
            number: self.port.number,
            live: self.is_live(),
            no_recv: !self.receives(),
            no_fwd: self.has(port_config::NO_FWD),
            no_packet_in: self.has(port_config::NO_PACKET_IN),
            no_flood: self.has(port_config::NO_FLOOD10),
            queues: (0..queues).collect(),
        }
    }
}

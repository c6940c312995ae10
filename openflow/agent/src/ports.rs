// SPDX-License-Identifier: Apache-2.0
//! Ports as controllers see them (§7.2.1), and `OFPT_PORT_MOD` (§7.3.4.3).

use tandem_ofpipeline as pipeline;
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

/// A port.
#[derive(Clone, Debug)]
pub struct PortEntry {
    /// As controllers see it.
    pub port: Port,
    /// What its cable lost.
    pub lost: Lost,
    /// Frames and bytes that came in while there was no controller, past the tables.
    pub alone: pipeline::ports::Count,
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

impl PortEntry {
    pub(crate) fn new(number: u32, name: &str, hw_addr: [u8; 6]) -> PortEntry {
        PortEntry {
            port: Port {
                number,
                name: name.into(),
                hw_addr,
                ..Port::default()
            },
            lost: Lost::default(),
            alone: pipeline::ports::Count::default(),
        }
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

    fn set_live(&mut self) {
        self.port.state &= !port_state::LIVE;
        if self.is_live() {
            self.port.state |= port_state::LIVE;
        }
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
        let known = match version {
            Version::V10 => port_config::ALL10,
            Version::V13 => port_config::ALL,
        };
        if m.mask & !known != 0 {
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

// SPDX-License-Identifier: Apache-2.0
//! The chip's ports: OpenFlow's numbers and its own.

use std::collections::BTreeMap;
use tandem_abi::object::Object;
use tandem_abi::raw;

use tandem_ofoffload::PortMask;
use tandem_openflow::port;

use crate::want::Command;

/// The largest MTU that a port may have: how long a frame is, is not asked.
const MTU: u32 = 65_535;

/// A port of the chip that is the switch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortOf {
    /// OpenFlow's number.
    pub number: u32,
    /// The chip's, 1 to 255.
    pub port: u8,
    /// Its address.
    pub mac: [u8; 6],
}

/// What its configuration lets it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct May {
    /// Are frames that come in looked at?
    pub receive: bool,
    /// Is anything sent there?
    pub send: bool,
    /// Does `FLOOD` go there?
    pub flood: bool,
}

impl Default for May {
    fn default() -> May {
        May {
            receive: true,
            send: true,
            flood: true,
        }
    }
}

/// What all ports are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortIs {
    /// They look at no VLAN.
    pub unaware: bool,
    /// What no table knows is dropped.
    pub drop: bool,
    /// A frame that no row matched is asked for its source.
    pub source: bool,
    /// All goes to the CPU.
    pub trap: bool,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports {
    pub list: Vec<(PortOf, May)>,
    /// There is `LOCAL`, of which the chip knows nothing.
    pub local: bool,
    /// Nothing is answered in the chip: fragments are dropped, for which not every chip has rows, or the tables are not asked.
    pub none: bool,
}

impl Ports {
    /// The chip's number of an OpenFlow port.
    pub fn chip(&self, number: u32) -> Option<u16> {
        let p = self.list.iter().find(|(p, _)| p.number == number)?;
        Some(u16::from(p.0.port))
    }

    /// OpenFlow's number of a port of the chip.
    pub fn number(&self, port: u16) -> Option<u32> {
        let p = self.list.iter().find(|(p, _)| u16::from(p.port) == port)?;
        Some(p.0.number)
    }

    fn mask(&self, number: u32) -> Option<PortMask> {
        let several = matches!(number, port::ALL | port::FLOOD);
        if several && self.local {
            return None;
        }
        let mut all = PortMask::default();
        if several {
            for (p, may) in &self.list {
                if may.send && (may.flood || number == port::ALL) {
                    all.insert(p.port);
                }
            }
            return Some(all);
        }
        let (p, may) = self.list.iter().find(|(p, _)| p.number == number)?;
        may.send.then(|| PortMask::one(p.port))
    }

    /// The ports of OpenFlow's numbers, for those that send.
    pub fn masks(&self) -> BTreeMap<u32, PortMask> {
        let own = self.list.iter().map(|(p, _)| p.number);
        let all = own.chain([port::ALL, port::FLOOD]);
        all.filter_map(|n| Some((n, self.mask(n)?))).collect()
    }

    /// A port as the chip is to have it.
    pub fn body(&self, of: &(PortOf, May), is: PortIs) -> raw::tnd_port {
        let mut flags = raw::TND_PORT_UP | raw::TND_PORT_FLOWS;
        let bits = [
            (is.unaware, raw::TND_PORT_FLOWS_UNAWARE),
            (is.drop, raw::TND_PORT_FLOWS_DROP),
            (is.source, raw::TND_PORT_FLOWS_SOURCE),
            (
                is.trap || !of.1.receive || self.none,
                raw::TND_PORT_TRAP_ALL,
            ),
        ];
        for (_, bit) in bits.iter().filter(|(set, _)| *set) {
            flags |= bit;
        }
        let mut p = raw::tnd_port {
            port: u16::from(of.0.port),
            flags,
            mtu: MTU,
            stp_state: raw::TND_STP_FORWARDING,
            mac: of.0.mac,
            ..Default::default()
        };
        p.set_struct_size();
        p
    }
}

/// A list for a stage.
pub(crate) fn list(stage: u16, table: u32) -> Command {
    let mut list = raw::tnd_acl_table {
        stage,
        table,
        ..Default::default()
    };
    list.set_struct_size();
    Command::of(raw::TND_OP_CREATE, &list)
}

/// The list that looks at what comes in there, at a stage; 0: none.
pub(crate) fn bind(port: u8, stage: u16, table: u32) -> Command {
    let mut bind = raw::tnd_acl_bind {
        port: u16::from(port),
        stage,
        table,
        ..Default::default()
    };
    bind.set_struct_size();
    Command::of(raw::TND_OP_UPDATE, &bind)
}

/// A port as nobody has it: down, without a list at these stages.
pub(crate) fn nobodys(port: u8, stages: impl Iterator<Item = u16>) -> Vec<Command> {
    let mut down = raw::tnd_port {
        port: u16::from(port),
        mtu: MTU,
        stp_state: raw::TND_STP_FORWARDING,
        ..Default::default()
    };
    down.set_struct_size();
    let down = Command::of(raw::TND_OP_UPDATE, &down);
    let unbound = stages.map(|stage| bind(port, stage, 0));
    std::iter::once(down).chain(unbound).collect()
}

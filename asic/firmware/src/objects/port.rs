//! TND_CLS_PORT: a front-panel port. There from the start, UPDATE only.

use super::unicast;
use crate::Firmware;
use crate::dump::slots;
use crate::object::{Failure, INVALID, Object, UNSUPPORTED, body};
use tandem_abi::raw;
use tandem_pipeline::state::PortConfig;
use zerocopy::IntoBytes;

/// Smallest and largest MTU: the IPv4 minimum (RFC 791) and what fits a jumbo frame's length field.
const MTU: std::ops::RangeInclusive<u32> = 68..=65535;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Port(raw::tnd_port);

impl Port {
    pub(crate) fn from_state(port: u16, c: &PortConfig) -> Self {
        Self(raw::tnd_port {
            struct_size: size_of::<raw::tnd_port>() as u16,
            port,
            flags: c.flags,
            mtu: c.mtu,
            stp_state: c.stp_state,
            reserved0: 0,
            mac: c.mac,
        })
    }
}

impl Object for Port {
    const CLASS: u16 = raw::TND_CLS_PORT;
    const NAME: &'static str = "port";
    const FIXED: bool = true;

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 4).map(Self)
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        let p = self.0;
        let flows = fw.profile().features() & raw::TND_FEAT_FLOWS != 0;
        if p.flags & raw::TND_PORT_FLOWS != 0 && !flows {
            return Err(UNSUPPORTED);
        }
        if p.stp_state > raw::TND_STP_BLOCKING || !MTU.contains(&p.mtu) || !unicast(p.mac) {
            return Err(INVALID);
        }
        let c = PortConfig {
            flags: p.flags,
            mtu: p.mtu,
            stp_state: p.stp_state,
            mac: p.mac,
        };
        Ok(Self::from_state(p.port, &c))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state
            .port(self.0.port)
            .filter(|_| fw.state.has_port(self.0.port))
            .map(|p| Self::from_state(self.0.port, &p.config))
    }
    fn write(&self, fw: &mut Firmware, _: Option<&Self>) -> Result<(), Failure> {
        let p = self.0;
        let c = PortConfig {
            flags: p.flags,
            mtu: p.mtu,
            stp_state: p.stp_state,
            mac: p.mac,
        };
        fw.state.set_port(p.port, c).map_err(|_| INVALID)
    }
    fn remove(&self, _: &mut Firmware) {}
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        slots(fw, from, u32::from(fw.state.last_port()) + 1, |at| {
            let n = at as u16;
            let port = fw.state.port(n).filter(|_| fw.state.has_port(n))?;
            Some(Self::from_state(n, &port.config))
        })
    }
}

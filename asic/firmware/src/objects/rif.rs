//! TND_CLS_RIF: a router interface on a port, a VLAN of a port, or a forwarding domain.

use super::unicast;
use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{DEPEND, EXISTS, Failure, IN_USE, INVALID, Object, body};
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::entry::MAX_RIF;
use tandem_pipeline::state::{MAX_VID, RifConfig, RifPlace};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rif(raw::tnd_rif);

impl Rif {
    pub(crate) fn from_state(rif: u16, c: &RifConfig) -> Self {
        let (kind, port, fid, vid) = match c.place {
            RifPlace::Port(p) => (raw::TND_RIF_PORT, p, 0, 0),
            RifPlace::Fid(f) => (raw::TND_RIF_FID, 0, f, 0),
            RifPlace::PortVlan(p, v) => (raw::TND_RIF_PORT_VLAN, p, 0, v),
        };
        Self(raw::tnd_rif {
            struct_size: size_of::<raw::tnd_rif>() as u16,
            rif,
            vrf: c.vrf,
            kind,
            port,
            fid,
            vid,
            mac: c.mac,
            flags: c.flags,
            mtu: c.mtu,
            ..Default::default()
        })
    }
    fn place(&self) -> RifPlace {
        match self.0.kind {
            raw::TND_RIF_PORT => RifPlace::Port(self.0.port),
            raw::TND_RIF_PORT_VLAN => RifPlace::PortVlan(self.0.port, self.0.vid),
            _ => RifPlace::Fid(self.0.fid),
        }
    }
    fn config(&self) -> RifConfig {
        let r = self.0;
        RifConfig {
            vrf: r.vrf,
            place: self.place(),
            mac: r.mac,
            flags: r.flags,
            mtu: r.mtu,
        }
    }
    fn references(&self, fw: &Firmware) -> bool {
        fw.refs.contains_key(&(Self::CLASS, self.0.rif.into()))
    }
}

impl Object for Rif {
    const CLASS: u16 = raw::TND_CLS_RIF;
    const NAME: &'static str = "rif";
    const COSTS: &'static [CostRow] = &[CostRow::only("rif", |_| vec![Cost::of(PoolId::Rif, 1)])];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 4).map(Self)
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        let r = self.0;
        match r.kind {
            raw::TND_RIF_PORT | raw::TND_RIF_PORT_VLAN if !fw.state.has_port(r.port) => {
                return Err(INVALID);
            }
            raw::TND_RIF_PORT_VLAN if !(1..=MAX_VID).contains(&r.vid) => return Err(INVALID),
            raw::TND_RIF_PORT | raw::TND_RIF_FID | raw::TND_RIF_PORT_VLAN => {}
            _ => return Err(INVALID),
        }
        if r.rif > MAX_RIF || !unicast(r.mac) || !(68..=65535).contains(&r.mtu) {
            return Err(INVALID);
        }
        Ok(Self::from_state(r.rif, &self.config()))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state
            .rif(self.0.rif)
            .map(|c| Self::from_state(self.0.rif, c))
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        let absent_fid = matches!(self.place(), RifPlace::Fid(f) if fw.state.vlan(f).is_none());
        if absent_fid || !fw.state.has_vrf(self.0.vrf) {
            return Err(DEPEND);
        }
        match fw.state.rif_at(self.place()) {
            Some(other) if other != self.0.rif => Err(EXISTS),
            _ => Ok(()),
        }
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        match old {
            // hosts are keyed by VRF: a RIF that has some can't change it under them
            Some(o) if o.0.vrf != self.0.vrf && self.references(fw) => return Err(IN_USE),
            Some(_) => {}
            None => fw.take(PoolId::Rif, 1)?,
        }
        fw.state
            .set_rif(self.0.rif, self.config())
            .map_err(|_| INVALID)
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        self.references(fw)
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.remove_rif(self.0.rif) {
            fw.give(PoolId::Rif, 1);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, _: &Firmware) -> Option<u64> {
        Some(self.0.rif.into())
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        slots(fw, from, fw.state.rif_slots(), |at| {
            let rif = at as u16;
            fw.state.rif(rif).map(|c| Self::from_state(rif, c))
        })
    }
}

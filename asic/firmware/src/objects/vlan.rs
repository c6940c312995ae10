//! TND_CLS_VLAN: a forwarding domain. Members, a RIF and FDB entries of the driver keep it; learned ones go with it.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{Failure, INVALID, Object, body};
use crate::pools::PoolId;
use crate::turn::Entries;
use tandem_abi::raw;
use tandem_pipeline::state::{MAX_FID, RifPlace, VlanConfig};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vlan(raw::tnd_vlan);

impl Vlan {
    pub(crate) fn from_state(fid: u16, c: VlanConfig) -> Self {
        Self(raw::tnd_vlan {
            struct_size: size_of::<raw::tnd_vlan>() as u16,
            fid,
            flags: c.flags,
            ageing_s: c.ageing_s,
            reserved0: 0,
        })
    }
}

impl Object for Vlan {
    const CLASS: u16 = raw::TND_CLS_VLAN;
    const NAME: &'static str = "vlan";
    const COSTS: &'static [CostRow] = &[CostRow::only("vlan", |_| vec![Cost::of(PoolId::Vlan, 1)])];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 4).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        if self.0.fid == 0 || self.0.fid > MAX_FID {
            return Err(INVALID);
        }
        Ok(Self::from_state(
            self.0.fid,
            VlanConfig {
                flags: self.0.flags,
                ageing_s: self.0.ageing_s,
            },
        ))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state
            .vlan(self.0.fid)
            .map(|v| Self::from_state(self.0.fid, v.config))
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        if old.is_none() {
            fw.take(PoolId::Vlan, 1)?;
        }
        let c = VlanConfig {
            flags: self.0.flags,
            ageing_s: self.0.ageing_s,
        };
        fw.state.set_vlan(self.0.fid, c).map_err(|_| INVALID)
    }
    fn entries(&self, _: &Firmware) -> Option<Entries> {
        Some(Entries::OfFid(self.0.fid))
    }
    fn held(&self, fw: &Firmware) -> bool {
        let members = fw
            .state
            .vlan(self.0.fid)
            .is_some_and(|v| v.ports().next().is_some());
        members
            || fw.state.rif_at(RifPlace::Fid(self.0.fid)).is_some()
            || fw.state.mdb.in_domain(self.0.fid)
    }
    fn remove(&self, fw: &mut Firmware) {
        fw.drop_entries(self);
        if fw.state.remove_vlan(self.0.fid) {
            fw.give(PoolId::Vlan, 1);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, _: &Firmware) -> Option<u64> {
        Some(self.0.fid.into())
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        slots(fw, from, u32::from(MAX_FID) + 1, |at| {
            let fid = at as u16;
            let vlan = fw.state.vlan(fid)?;
            Some(Self::from_state(fid, vlan.config))
        })
    }
}

//! TND_CLS_VLAN: a forwarding domain. Members, a RIF and FDB entries of the driver keep it; learned ones go with it.

use super::fdb::Fdb;
use crate::Firmware;
use crate::costs::{Cost, CostRow};
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

    /// Its addresses.
    pub(crate) fn entries(&self) -> Entries {
        Entries::OfFid(self.0.fid)
    }

    /// Something else than an address keeps it.
    pub(crate) fn held(&self, fw: &Firmware) -> bool {
        let members = fw
            .state
            .vlan(self.0.fid)
            .is_some_and(|v| v.ports().next().is_some());
        members
            || fw.state.rif_at(RifPlace::Fid(self.0.fid)).is_some()
            || fw.state.mdb.in_domain(self.0.fid)
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
    fn depends(&self, _: &Firmware) -> Result<(), Failure> {
        Ok(())
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
    fn in_use(&self, fw: &Firmware) -> bool {
        self.held(fw) || fw.keeps(self.entries())
    }
    fn remove(&self, fw: &mut Firmware) {
        let learned: Vec<Fdb> = fw.entries_of(self.entries()).collect();
        for f in learned {
            fw.discard(&f);
        }
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
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Self)> {
        let all = fw.state.vlans();
        let all = all.map(|(fid, v)| (u64::from(fid), Self::from_state(fid, v.config)));
        all.skip_while(move |(at, _)| *at < from)
    }
}

//! TND_CLS_VRF: a virtual router. VRF 0 is there from the start and costs nothing.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::object::{Failure, INVALID, Object, body};
use crate::pools::PoolId;
use tandem_abi::raw;
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vrf(raw::tnd_vrf);

impl Vrf {
    pub(crate) fn from_state(vrf: u16) -> Self {
        Self(raw::tnd_vrf {
            struct_size: size_of::<raw::tnd_vrf>() as u16,
            vrf,
            flags: 0,
        })
    }
}

impl Object for Vrf {
    const CLASS: u16 = raw::TND_CLS_VRF;
    const NAME: &'static str = "vrf";
    const COSTS: &'static [CostRow] = &[CostRow::only("vrf", |_| vec![Cost::of(PoolId::Vrf, 1)])];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 4).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        // no flag is defined yet: one that a driver sets would be lost in silence
        if self.0.flags != 0 {
            return Err(INVALID);
        }
        Ok(Self::from_state(self.0.vrf))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state
            .has_vrf(self.0.vrf)
            .then(|| Self::from_state(self.0.vrf))
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        if old.is_none() {
            fw.take(PoolId::Vrf, 1)?;
            fw.state.add_vrf(self.0.vrf);
        }
        Ok(())
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        let vrf = self.0.vrf;
        vrf == 0
            || fw.state.lpm4.len_of(vrf) > 0
            || fw.state.lpm6.len_of(vrf) > 0
            || fw.state.rifs().any(|(_, r)| r.vrf == vrf)
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.remove_vrf(self.0.vrf) {
            fw.give(PoolId::Vrf, 1);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, _: &Firmware) -> Option<u64> {
        Some(self.0.vrf.into())
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let all = fw.state.vrfs();
        let first = all.partition_point(|vrf| u64::from(*vrf) < from);
        let rest = all.iter().skip(first);
        let rest = rest.inspect(|_| fw.state.work.add(1));
        rest.map(|vrf| (u64::from(*vrf), Some(Self::from_state(*vrf))))
    }
}

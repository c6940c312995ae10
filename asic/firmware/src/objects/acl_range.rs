//! TND_CLS_ACL_RANGE: a comparator of ports that rules name. Rules keep it.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{EXISTS, Failure, INVALID, Object, body};
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::state::AclRange as State;
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AclRange(raw::tnd_acl_range);

impl AclRange {
    pub(crate) fn from_state(r: &State) -> Self {
        Self(raw::tnd_acl_range {
            struct_size: size_of::<raw::tnd_acl_range>() as u16,
            field: r.field,
            range: r.id,
            min: r.ports.0,
            max: r.ports.1,
            reserved0: 0,
        })
    }
}

impl Object for AclRange {
    const CLASS: u16 = raw::TND_CLS_ACL_RANGE;
    const NAME: &'static str = "acl-range";
    const COSTS: &'static [CostRow] = &[CostRow::only("acl-range", |_| {
        vec![Cost::of(PoolId::AclRange, 1)]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 8).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        let r = self.0;
        let known = matches!(r.field, raw::TND_ACL_RANGE_SRC | raw::TND_ACL_RANGE_DST);
        if r.range == 0 || !known || r.min >= r.max {
            return Err(INVALID);
        }
        Ok(Self(raw::tnd_acl_range {
            struct_size: size_of::<raw::tnd_acl_range>() as u16,
            reserved0: 0,
            ..r
        }))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state.acl.range(self.0.range).map(Self::from_state)
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        // rules were written with it
        if old.is_some() {
            return Err(EXISTS);
        }
        fw.take(PoolId::AclRange, 1)?;
        let r = self.0;
        fw.state.acl.add_range(State {
            id: r.range,
            field: r.field,
            ports: (r.min, r.max),
        });
        Ok(())
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        fw.refs.contains_key(&(Self::CLASS, self.0.range))
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.acl.remove_range(self.0.range) {
            fw.give(PoolId::AclRange, 1);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state.acl.ranges().slot(self.0.range).map(u64::from)
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let all = fw.state.acl.ranges();
        slots(fw, from, all.slots(), |at| all.at(at).map(Self::from_state))
    }
}

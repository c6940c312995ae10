//! TND_CLS_ACL_COUNTER: hits of the rules that name it. Rules keep it.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{Failure, INVALID, Object, body};
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::state::AclCounter as State;
use zerocopy::IntoBytes;

/// Two counters are equal if their keys are: what they have counted is not the driver's.
#[derive(Debug, Clone)]
pub(crate) struct AclCounter(raw::tnd_acl_counter);

impl PartialEq for AclCounter {
    fn eq(&self, other: &Self) -> bool {
        self.0.counter == other.0.counter
    }
}

impl AclCounter {
    pub(crate) fn from_state(c: &State) -> Self {
        Self(raw::tnd_acl_counter {
            struct_size: size_of::<raw::tnd_acl_counter>() as u16,
            reserved0: 0,
            counter: c.id,
            packets: c.packets,
            bytes: c.bytes,
            used_ns: c.used_ns,
        })
    }
}

impl Object for AclCounter {
    const CLASS: u16 = raw::TND_CLS_ACL_COUNTER;
    const NAME: &'static str = "acl-counter";
    const COSTS: &'static [CostRow] = &[CostRow::only("acl-counter", |_| {
        vec![Cost::of(PoolId::AclCounter, 1)]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 8).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        if self.0.counter == 0 {
            return Err(INVALID);
        }
        Ok(self)
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state.acl.counter(self.0.counter).map(Self::from_state)
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        if old.is_none() {
            fw.take(PoolId::AclCounter, 1)?;
            fw.state.acl.add_counter(self.0.counter);
        }
        Ok(())
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        fw.refs.contains_key(&(Self::CLASS, self.0.counter))
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.acl.remove_counter(self.0.counter) {
            fw.give(PoolId::AclCounter, 1);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state.acl.counters().slot(self.0.counter).map(u64::from)
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let all = fw.state.acl.counters();
        slots(fw, from, all.slots(), |at| all.at(at).map(Self::from_state))
    }
}

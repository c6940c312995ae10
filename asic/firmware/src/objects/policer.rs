//! TND_CLS_POLICER: a token bucket that rules name. Rules keep it.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{Failure, INVALID, Object, body};
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::state::Policer as State;
use tandem_tables::bucket::MAX;
use zerocopy::IntoBytes;

/// Equal without what it has counted.
#[derive(Debug, Clone)]
pub(crate) struct Policer(raw::tnd_policer);

impl PartialEq for Policer {
    fn eq(&self, other: &Self) -> bool {
        let settings = |p: &raw::tnd_policer| (p.policer, p.flags, p.rate, p.burst);
        settings(&self.0) == settings(&other.0)
    }
}

impl Policer {
    pub(crate) fn from_state(p: &State) -> Self {
        Self(raw::tnd_policer {
            struct_size: size_of::<raw::tnd_policer>() as u16,
            flags: p.flags,
            policer: p.id,
            rate: p.meter.bucket.rate(),
            burst: p.meter.bucket.burst(),
            passed: p.meter.passed,
            dropped: p.meter.dropped,
        })
    }
}

impl Object for Policer {
    const CLASS: u16 = raw::TND_CLS_POLICER;
    const NAME: &'static str = "policer";
    const COSTS: &'static [CostRow] = &[CostRow::only("policer", |_| {
        vec![Cost::of(PoolId::Policer, 1)]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 8).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        let p = self.0;
        let fits = |v| (1..=MAX).contains(&v);
        if p.policer == 0 || !fits(p.rate) || !fits(p.burst) {
            return Err(INVALID);
        }
        Ok(Self(raw::tnd_policer {
            flags: p.flags & raw::TND_POLICER_PACKETS,
            ..p
        }))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state.acl.policer(self.0.policer).map(Self::from_state)
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        if old.is_none() {
            fw.take(PoolId::Policer, 1)?;
        }
        let p = self.0;
        fw.state
            .acl
            .set_policer(p.policer, p.flags, p.rate, p.burst);
        Ok(())
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        fw.refs.contains_key(&(Self::CLASS, self.0.policer))
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.acl.remove_policer(self.0.policer) {
            fw.give(PoolId::Policer, 1);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state.acl.policers().slot(self.0.policer).map(u64::from)
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let all = fw.state.acl.policers();
        slots(fw, from, all.slots(), |at| all.at(at).map(Self::from_state))
    }
}

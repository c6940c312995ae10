//! TND_CLS_MIRROR: where copies go, and how many of them. Rules keep it.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{Failure, INVALID, Object, body};
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::state::Mirror as State;
use zerocopy::IntoBytes;

/// Equal without what it has counted.
#[derive(Debug, Clone)]
pub(crate) struct Mirror(raw::tnd_mirror);

impl PartialEq for Mirror {
    fn eq(&self, other: &Self) -> bool {
        let settings = |m: &raw::tnd_mirror| (m.mirror, m.port, m.truncate, m.rate.max(1));
        settings(&self.0) == settings(&other.0)
    }
}

impl Mirror {
    pub(crate) fn from_state(m: &State) -> Self {
        Self(raw::tnd_mirror {
            struct_size: size_of::<raw::tnd_mirror>() as u16,
            mirror: m.id,
            port: m.port,
            reserved0: 0,
            truncate: m.truncate,
            rate: m.rate,
            packets: m.packets,
        })
    }
}

impl Object for Mirror {
    const CLASS: u16 = raw::TND_CLS_MIRROR;
    const NAME: &'static str = "mirror";
    const COSTS: &'static [CostRow] = &[CostRow::only("mirror", |_| {
        vec![Cost::of(PoolId::Mirror, 1)]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 4).map(Self)
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        let m = self.0;
        let short = m.truncate != 0 && m.truncate < 14;
        if m.mirror == 0 || short || m.port > fw.state.port_count() {
            return Err(INVALID);
        }
        Ok(self)
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state.acl.mirror(self.0.mirror).map(Self::from_state)
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        if old.is_none() {
            fw.take(PoolId::Mirror, 1)?;
        }
        let m = self.0;
        fw.state.acl.set_mirror(State {
            id: m.mirror,
            port: m.port,
            truncate: m.truncate,
            rate: m.rate.max(1),
            ..State::default()
        });
        Ok(())
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        fw.refs.contains_key(&(Self::CLASS, self.0.mirror.into()))
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.acl.remove_mirror(self.0.mirror) {
            fw.give(PoolId::Mirror, 1);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state
            .acl
            .mirrors()
            .slot(self.0.mirror.into())
            .map(u64::from)
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let all = fw.state.acl.mirrors();
        slots(fw, from, all.slots(), |at| all.at(at).map(Self::from_state))
    }
}

//! TND_CLS_PORT_SET: ports that FDB entries of flow ports send to, swapped by one command. Entries keep it, it keeps the groups of links
//! that it has. It takes a mask of ports, as a multicast group does.

use super::lag;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{Failure, INVALID, Object, body, count_down, count_up};
use crate::pools::PoolId;
use crate::{Firmware, References};
use tandem_abi::raw;
use tandem_pipeline::state::{PortMask, PortSet as State, ports_of};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PortSet(raw::tnd_port_set);

impl PortSet {
    fn from_state(s: &State) -> Self {
        Self(raw::tnd_port_set {
            struct_size: size_of::<raw::tnd_port_set>() as u16,
            set: s.id,
            reserved0: 0,
            ports: s.ports,
        })
    }
    /// Counts the groups of links that it has.
    fn refers(&self, fw: &mut Firmware, count: impl Fn(&mut References, (u16, u32))) {
        for group in lag::groups(fw, ports_of(&self.0.ports)) {
            count(&mut fw.refs, group);
        }
    }
}

/// Are all of them there?
pub(crate) fn known(fw: &Firmware, mask: &PortMask) -> bool {
    let [low, ..] = mask;
    low & 1 == 0 && ports_of(mask).all(|port| fw.state.has_port(port))
}

impl Object for PortSet {
    const CLASS: u16 = raw::TND_CLS_PORT_SET;
    const NAME: &'static str = "port-set";
    const COSTS: &'static [CostRow] = &[CostRow::only("port-set", |_| {
        vec![Cost::of(PoolId::Mdb, 1)]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 4).map(Self)
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        if self.0.set == 0 || !known(fw, &self.0.ports) {
            return Err(INVALID);
        }
        Ok(Self(raw::tnd_port_set {
            struct_size: size_of::<raw::tnd_port_set>() as u16,
            reserved0: 0,
            ..self.0
        }))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state.port_sets.get(self.0.set).map(Self::from_state)
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        if old.is_none() {
            fw.take(PoolId::Mdb, 1)?;
        }
        let (id, ports) = (self.0.set, self.0.ports);
        fw.state.port_sets.put(id, State { id, ports });
        self.refers(fw, count_up);
        if let Some(o) = old {
            o.refers(fw, count_down);
        }
        Ok(())
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        fw.refs.contains_key(&(Self::CLASS, self.0.set.into()))
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.port_sets.remove(self.0.set).is_some() {
            fw.give(PoolId::Mdb, 1);
            self.refers(fw, count_down);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state.port_sets.slot(self.0.set).map(u64::from)
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let all = &fw.state.port_sets;
        slots(fw, from, all.slots(), |at| all.at(at).map(Self::from_state))
    }
}

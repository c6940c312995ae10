//! TND_CLS_NEXTHOP: a router interface and the neighbour's MAC behind it.

use super::unicast;
use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{DEPEND, Failure, INVALID, Object, body, count_down, count_up};
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::entry::{Action, MAX_RIF};
use tandem_pipeline::state::{Nexthop, NexthopConfig};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NextHop(raw::tnd_nexthop);

impl NextHop {
    pub(crate) fn from_state(n: &Nexthop) -> Self {
        Self::new(n.id, &n.config)
    }
    fn new(id: u32, c: &NexthopConfig) -> Self {
        Self(raw::tnd_nexthop {
            struct_size: size_of::<raw::tnd_nexthop>() as u16,
            rif: c.rif,
            nexthop: id,
            action: c.action.to_abi(),
            reason: c.reason,
            mac: c.mac,
        })
    }
    /// Only one that forwards needs its RIF; a trap may stand for a way out that the chip has not.
    fn refers(&self) -> Option<u16> {
        (self.0.action == raw::TND_ACT_FORWARD).then_some(self.0.rif)
    }
}

impl Object for NextHop {
    const CLASS: u16 = raw::TND_CLS_NEXTHOP;
    const NAME: &'static str = "nexthop";
    const COSTS: &'static [CostRow] = &[CostRow::only("nexthop", |_| {
        vec![Cost::of(PoolId::Nexthop, 1)]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 8).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        let n = self.0;
        let action = Action::from_abi(n.action).ok_or(INVALID)?;
        let reason = match (action, n.reason) {
            (Action::Trap, 0) => raw::TND_TRAP_UNRESOLVED as u8,
            (Action::Trap, r) if u16::from(r) < raw::TND_TRAP_REASON_COUNT => r,
            (Action::Trap, _) => return Err(INVALID),
            _ => 0,
        };
        if n.rif > MAX_RIF || !unicast(n.mac) {
            return Err(INVALID);
        }
        Ok(Self::new(
            n.nexthop,
            &NexthopConfig {
                rif: n.rif,
                action,
                reason,
                mac: n.mac,
            },
        ))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state
            .nexthop(self.0.nexthop)
            .map(|c| Self::new(self.0.nexthop, c))
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        match self.refers() {
            Some(rif) if fw.state.rif(rif).is_none() => Err(DEPEND),
            _ => Ok(()),
        }
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        let n = self.0;
        let action = Action::from_abi(n.action).ok_or(INVALID)?;
        if old.is_none() {
            fw.take(PoolId::Nexthop, 1)?;
        }
        let c = NexthopConfig {
            rif: n.rif,
            action,
            reason: n.reason,
            mac: n.mac,
        };
        fw.state.set_nexthop(n.nexthop, c).map_err(|_| INVALID)?;
        if let Some(rif) = self.refers() {
            count_up(&mut fw.refs, (raw::TND_CLS_RIF, rif.into()));
        }
        if let Some(rif) = old.and_then(Self::refers) {
            count_down(&mut fw.refs, (raw::TND_CLS_RIF, rif.into()));
        }
        Ok(())
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        fw.refs.contains_key(&(Self::CLASS, self.0.nexthop))
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.remove_nexthop(self.0.nexthop) {
            fw.give(PoolId::Nexthop, 1);
            if let Some(rif) = self.refers() {
                count_down(&mut fw.refs, (raw::TND_CLS_RIF, rif.into()));
            }
        }
    }
    fn trapped(&self, asked: &Self) -> Option<Self> {
        let reason = match asked.0.reason {
            r if r != 0 && u16::from(r) < raw::TND_TRAP_REASON_COUNT => r,
            _ => raw::TND_TRAP_UNRESOLVED as u8,
        };
        Some(Self(raw::tnd_nexthop {
            action: raw::TND_ACT_TRAP,
            reason,
            ..self.0
        }))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn unflip(&self, fw: &mut Firmware) {
        fw.unflip_nexthop(self.0.nexthop);
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state.nexthop_slot(self.0.nexthop).map(u64::from)
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        slots(fw, from, fw.state.nexthop_slots(), |at| {
            fw.state.nexthop_at(at).map(Self::from_state)
        })
    }
}

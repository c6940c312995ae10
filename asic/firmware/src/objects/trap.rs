//! TND_CLS_TRAP: class and policer of a trap reason. There from the start, UPDATE only.

use crate::Firmware;
use crate::dump::slots;
use crate::object::{Failure, INVALID, Object, body};
use tandem_abi::raw;
use tandem_pipeline::trap::{REASONS, TrapConfig};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trap(raw::tnd_trap);

impl Trap {
    pub(crate) fn from_state(reason: u16, c: TrapConfig) -> Self {
        Self(raw::tnd_trap {
            struct_size: size_of::<raw::tnd_trap>() as u16,
            reason,
            trap_class: c.class,
            reserved0: 0,
            rate_pps: c.rate_pps,
            burst: c.burst,
        })
    }
    fn config(&self) -> TrapConfig {
        TrapConfig {
            class: self.0.trap_class,
            rate_pps: self.0.rate_pps,
            burst: self.0.burst,
        }
    }
}

impl Object for Trap {
    const CLASS: u16 = raw::TND_CLS_TRAP;
    const NAME: &'static str = "trap";
    const FIXED: bool = true;

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 4).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        if self.0.trap_class >= raw::TND_TC_COUNT {
            return Err(INVALID);
        }
        Ok(Self::from_state(self.0.reason, self.config()))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state
            .trap(self.0.reason)
            .map(|c| Self::from_state(self.0.reason, c))
    }
    fn write(&self, fw: &mut Firmware, _: Option<&Self>) -> Result<(), Failure> {
        fw.state
            .set_trap(self.0.reason, self.config())
            .map_err(|_| INVALID)
    }
    fn remove(&self, _: &mut Firmware) {}
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        slots(fw, from, REASONS as u32, |at| {
            let reason = at as u16;
            fw.state.trap(reason).map(|c| Self::from_state(reason, c))
        })
    }
}

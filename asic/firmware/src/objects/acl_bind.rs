//! TND_CLS_ACL_BIND: which list a port has at a stage. All are there from the start, empty; DELETE makes one empty again.
//! Nothing of this takes slots, so turning a port's list into *everything to the CPU* can't fail.

use crate::Firmware;
use crate::dump::slots;
use crate::object::{DEPEND, Failure, INVALID, Object, body};
use tandem_abi::raw;
use tandem_pipeline::state::{AclBind as Config, AclStage};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AclBind(raw::tnd_acl_bind);

impl AclBind {
    pub(crate) fn from_state(port: u16, stage: AclStage, c: Config) -> Self {
        Self(raw::tnd_acl_bind {
            struct_size: size_of::<raw::tnd_acl_bind>() as u16,
            port,
            stage: stage.to_abi(),
            flags: c.flags,
            table: c.table,
            reserved0: 0,
        })
    }
    fn stage(&self) -> Option<AclStage> {
        AclStage::from_abi(self.0.stage)
    }
    fn set(&self, fw: &mut Firmware, c: Config) -> Result<(), Failure> {
        let stage = self.stage().ok_or(INVALID)?;
        fw.state
            .set_acl_bind(self.0.port, stage, c)
            .map_err(|_| INVALID)
    }
}

impl Object for AclBind {
    const CLASS: u16 = raw::TND_CLS_ACL_BIND;
    const NAME: &'static str = "acl-bind";

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 6).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        let stage = self.stage().ok_or(INVALID)?;
        let c = Config {
            table: self.0.table,
            flags: self.0.flags & raw::TND_ACL_BIND_TRAP_ALL,
        };
        Ok(Self::from_state(self.0.port, stage, c))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let stage = self.stage()?;
        let port = Some(self.0.port).filter(|p| fw.state.has_port(*p))?;
        let c = fw.state.acl.bind(port, stage)?;
        Some(Self::from_state(self.0.port, stage, c))
    }
    fn gives_way(_: &Self) -> bool {
        true
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        match fw.state.acl.table(self.0.table) {
            None if self.0.table != 0 => Err(DEPEND),
            Some(t) if Some(t.stage) != self.stage() => Err(INVALID),
            _ => Ok(()),
        }
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        if old.is_none() {
            // no such port
            return Err(INVALID);
        }
        let c = Config {
            table: self.0.table,
            flags: self.0.flags,
        };
        self.set(fw, c)
    }
    fn in_use(&self, _: &Firmware) -> bool {
        false
    }
    fn remove(&self, fw: &mut Firmware) {
        // its port is there, or it would not have been found
        let _ = self.set(fw, Config::default());
    }
    fn trapped(&self, _: &Self) -> Option<Self> {
        Some(Self(raw::tnd_acl_bind {
            flags: self.0.flags | raw::TND_ACL_BIND_TRAP_ALL,
            ..self.0
        }))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, _: &Firmware) -> Option<u64> {
        Some(u64::from(self.0.port) << 3 | u64::from(self.0.stage & 7))
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let last = u32::from(fw.state.last_port()) + 1;
        slots(fw, from, last << 3, |at| {
            let (port, stage) = ((at >> 3) as u16, AclStage::from_abi(at as u16 & 7)?);
            let bind = fw.state.acl.bind(port, stage)?;
            (bind != Config::default()).then(|| Self::from_state(port, stage, bind))
        })
    }
}

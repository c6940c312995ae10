//! TND_CLS_VLAN: a forwarding domain. Members, a RIF and FDB entries of the driver keep it; learned ones go with it.

use crate::Firmware;
use crate::object::{Failure, INVALID, Object, body};
use crate::objects::fdb::Fdb;
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::state::{MAX_FID, RifPlace, VlanConfig};
use tandem_tables::exact::Key;
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

    /// FDB entries of the domain. Goes through the table until it has them all: deleting a domain that still has
    /// addresses is rare, a list per domain would cost every learned address.
    fn fdb<'a>(&self, fw: &'a Firmware) -> impl Iterator<Item = (Key, Fdb)> + 'a {
        let fid = self.0.fid;
        let mut left = fw.state.exact.count_fid(fid);
        let mut cursor = 0;
        std::iter::from_fn(move || {
            while left > 0 {
                let (next, e) = fw.state.exact.next(cursor)?;
                cursor = next;
                if matches!(e.key, Key::Mac { fid: f, .. } if f == fid) {
                    left -= 1;
                    return Fdb::from_entry(&e).map(|f| (e.key, f));
                }
            }
            None
        })
    }
}

impl Object for Vlan {
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
        let members = fw
            .state
            .vlan(self.0.fid)
            .is_some_and(|v| v.ports().next().is_some());
        members
            || fw.state.rif_at(RifPlace::Fid(self.0.fid)).is_some()
            || fw.state.mdb.in_domain(self.0.fid)
            || self.fdb(fw).any(|(_, f)| !f.learned())
    }
    fn remove(&self, fw: &mut Firmware) {
        let learned: Vec<Key> = self.fdb(fw).map(|(k, _)| k).collect();
        for key in learned {
            fw.remove_exact(&key);
        }
        if fw.state.remove_vlan(self.0.fid) {
            fw.give(PoolId::Vlan, 1);
        }
        if let Some(c) = &mut fw.resync {
            c.vlan.set(u32::from(self.0.fid), false);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn confirm(&self, fw: &mut Firmware) {
        if let Some(c) = &mut fw.resync {
            c.vlan.set(u32::from(self.0.fid), true);
        }
    }
}

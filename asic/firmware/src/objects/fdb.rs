//! TND_CLS_FDB: a MAC address in a forwarding domain. The pipeline learns into the same table and the same pool.

use super::{unicast, vlan::Vlan};
use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::object::{DEPEND, Failure, INVALID, Object, body};
use crate::pools::{Need, PoolId};
use crate::resync::Confirmed;
use tandem_abi::raw;
use tandem_pipeline::entry::{Action, FdbValue};
use tandem_tables::exact::{Entry, InsertError, Key, Kind};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fdb(raw::tnd_fdb);

impl Fdb {
    fn new(fid: u16, mac: [u8; 6], v: FdbValue) -> Self {
        Self(raw::tnd_fdb {
            struct_size: size_of::<raw::tnd_fdb>() as u16,
            fid,
            mac,
            port: if v.action == Action::Forward {
                v.port
            } else {
                0
            },
            flags: v.flags,
            action: v.action.to_abi(),
            reserved0: [0; 5],
        })
    }
    pub(crate) fn from_entry(e: &Entry) -> Option<Self> {
        match e.key {
            Key::Mac { fid, mac } => Some(Self::new(fid, mac, FdbValue::unpack(e.value))),
            _ => None,
        }
    }
    pub(crate) fn learned(&self) -> bool {
        self.0.flags & raw::TND_FDB_LEARNED != 0
    }
    pub(crate) fn key(&self) -> Key {
        Key::Mac {
            fid: self.0.fid,
            mac: self.0.mac,
        }
    }
}

impl Object for Fdb {
    const CLASS: u16 = raw::TND_CLS_FDB;
    const NAME: &'static str = "fdb";
    const COSTS: &'static [CostRow] =
        &[CostRow::only("mac", |fw| vec![Cost::hashed(fw, Kind::Mac)])];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 10).map(Self)
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        let f = self.0;
        let action = Action::from_abi(f.action).ok_or(INVALID)?;
        let port_ok = action != Action::Forward || fw.state.has_port(f.port);
        if !port_ok || !unicast(f.mac) || f.mac == [0; 6] {
            return Err(INVALID);
        }
        let known =
            raw::TND_FDB_STATIC | raw::TND_FDB_LEARNED | raw::TND_FDB_STICKY | raw::TND_FDB_NO_AGE;
        Ok(Self::new(
            f.fid,
            f.mac,
            FdbValue {
                port: f.port,
                flags: f.flags & known,
                action,
            },
        ))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let hit = fw.state.exact.get(&self.key())?;
        Some(Self::new(
            self.0.fid,
            self.0.mac,
            FdbValue::unpack(hit.value),
        ))
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        if fw.state.vlan(self.0.fid).is_none() {
            Err(DEPEND)
        } else {
            Ok(())
        }
    }
    /// What the chip learned gives way to what the driver says.
    fn gives_way(old: &Self) -> bool {
        old.learned()
    }
    /// The station may have moved, or spoken, while no driver was there to see it.
    fn stale(&self, old: &Self) -> bool {
        let somebodys = raw::TND_FDB_STATIC | raw::TND_FDB_NO_AGE;
        old.learned() && self.0.flags & somebodys == 0 && self.0.action == old.0.action
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        let f = self.0;
        let action = Action::from_abi(f.action).ok_or(INVALID)?;
        let value = FdbValue {
            port: f.port,
            flags: f.flags,
            action,
        }
        .pack();
        fw.write_exact(self.key(), value, old.is_some())
    }
    fn in_use(&self, _: &Firmware) -> bool {
        false
    }
    fn remove(&self, fw: &mut Firmware) {
        fw.remove_exact(&self.key());
    }
    fn trapped(&self, _: &Self) -> Option<Self> {
        let v = FdbValue {
            port: 0,
            flags: self.0.flags,
            action: Action::Trap,
        };
        Some(Self::new(self.0.fid, self.0.mac, v))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn unflip(&self, fw: &mut Firmware) {
        fw.unflip_exact(&self.key());
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state.exact.get(&self.key()).map(|hit| hit.id.0.into())
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        fw.walk_exact(from, true, Self::from_entry)
    }
    fn confirmed(&self, c: &Confirmed, at: u64) -> bool {
        // what was learned goes with its domain
        c.has::<Self>(at) || self.learned() && c.has::<Vlan>(self.0.fid.into())
    }
}

impl Firmware {
    /// Writes an entry of the exact-match table: in place if it is there, else from the lease or from free slots.
    pub(crate) fn write_exact(&mut self, key: Key, value: u64, there: bool) -> Result<(), Failure> {
        let now_ns = self.cx.now_ns;
        self.name(&key, value);
        if there {
            self.state.exact.update(&key, value);
            if key.kind() == Kind::Mac
                && let Some(hit) = self.state.exact.get(&key)
            {
                // One that the driver changes is young again. An equal write never comes here, and is no sign of life: as in
                // the kernel (net/bridge/br_fdb.c `fdb_add_entry`).
                self.state.exact.touch(hit.id, now_ns);
            }
            return Ok(());
        }
        let need = Need {
            pool: PoolId::ExactMatch,
            slots: self.state.exact.widths().of(key.kind()),
        };
        let placed = if self.check_lease(need)? {
            self.state.exact.insert_committed(key, value, now_ns)
        } else {
            self.state.exact.insert(key, value, now_ns)
        };
        match placed {
            Ok(_) => {
                self.took(need);
                Ok(())
            }
            Err(InsertError::Full(f)) => Err(Failure::Full(PoolId::ExactMatch, f)),
            Err(InsertError::BadFid(_)) => Err(INVALID),
        }
    }

    pub(crate) fn remove_exact(&mut self, key: &Key) {
        if let Some((_, slots)) = self.state.exact.remove(key) {
            self.delta(PoolId::ExactMatch, -i64::from(slots));
        }
    }
}

//! TND_CLS_FDB: a MAC address in a forwarding domain. The pipeline learns into the same table and the same pool. In a domain of flow
//! ports it may be any address, and a set of ports stands in place of a port; such an entry is static, so that the pipeline leaves it
//! alone and its reference with it.

use super::{port_set::PortSet, unicast, vlan::Vlan};
use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::object::{DEPEND, Failure, INVALID, Object, body, count_down, count_up};
use crate::pools::{Need, PoolId};
use crate::resync::Confirmed;
use tandem_abi::raw;
use tandem_pipeline::State;
use tandem_pipeline::entry::{Action, FdbValue};
use tandem_tables::exact::{Entry, InsertError, Key, Kind};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fdb(raw::tnd_fdb);

impl Fdb {
    /// In normal form: flags that are known, a port or a set only if it forwards.
    fn new(f: raw::tnd_fdb) -> Self {
        let forwards = f.action == raw::TND_ACT_FORWARD;
        let (port, set) = if forwards { (f.port, f.set) } else { (0, 0) };
        let fixed = if set == 0 { 0 } else { raw::TND_FDB_STATIC };
        let known =
            raw::TND_FDB_STATIC | raw::TND_FDB_LEARNED | raw::TND_FDB_STICKY | raw::TND_FDB_NO_AGE;
        Self(raw::tnd_fdb {
            struct_size: size_of::<raw::tnd_fdb>() as u16,
            port,
            set,
            flags: f.flags & known | fixed,
            reserved0: 0,
            reserved1: [0; 2],
            ..f
        })
    }
    fn of_value(state: &State, fid: u16, mac: [u8; 6], value: u64) -> Self {
        let v = FdbValue::unpack(value);
        let set = v.set_slot().and_then(|slot| state.port_sets.at(slot));
        Self::new(raw::tnd_fdb {
            fid,
            mac,
            port: v.port,
            flags: v.flags,
            action: v.action.to_abi(),
            set: set.map_or(0, |s| s.id),
            ..Default::default()
        })
    }
    pub(crate) fn from_entry(state: &State, e: &Entry) -> Option<Self> {
        match e.key {
            Key::Mac { fid, mac } => Some(Self::of_value(state, fid, mac, e.value)),
            _ => None,
        }
    }
    fn refers(&self) -> Option<(u16, u32)> {
        (self.0.set != 0).then_some((PortSet::CLASS, self.0.set.into()))
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
        let to_port = f.set == 0 && fw.state.has_port(f.port);
        let to_set = f.set != 0 && f.port == 0;
        if action == Action::Forward && !to_port && !to_set {
            return Err(INVALID);
        }
        Ok(Self::new(f))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let hit = fw.state.exact.get(&self.key())?;
        let (fid, mac) = (self.0.fid, self.0.mac);
        Some(Self::of_value(&fw.state, fid, mac, hit.value))
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        let f = self.0;
        let vlan = fw.state.vlan(f.fid).ok_or(DEPEND)?;
        let station = unicast(f.mac) && f.mac != [0; 6] && f.set == 0;
        if !station && vlan.config.flags & raw::TND_VLAN_FLOWS == 0 {
            return Err(INVALID);
        }
        if f.set != 0 && fw.state.port_sets.get(f.set).is_none() {
            return Err(DEPEND);
        }
        Ok(())
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
        let slot = fw.state.port_sets.slot(f.set);
        let value = FdbValue {
            port: f.port,
            flags: f.flags,
            action,
            set: slot.and_then(FdbValue::of_slot),
        }
        .pack();
        fw.write_exact(self.key(), value, old.is_some())?;
        if let Some(set) = self.refers() {
            count_up(&mut fw.refs, set);
        }
        if let Some(set) = old.and_then(Self::refers) {
            count_down(&mut fw.refs, set);
        }
        Ok(())
    }
    fn in_use(&self, _: &Firmware) -> bool {
        false
    }
    fn remove(&self, fw: &mut Firmware) {
        fw.remove_exact(&self.key());
        if let Some(set) = self.refers() {
            count_down(&mut fw.refs, set);
        }
    }
    fn trapped(&self, _: &Self) -> Option<Self> {
        Some(Self::new(raw::tnd_fdb {
            action: raw::TND_ACT_TRAP,
            ..self.0
        }))
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
        fw.walk_exact(from, true, |e| Self::from_entry(&fw.state, e))
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

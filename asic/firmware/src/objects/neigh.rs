//! TND_CLS_NEIGH: a host entry. The table's key is (VRF, address), the RIF is part of the value.

use super::unicast;
use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::object::{DEPEND, EXISTS, Failure, INVALID, Object, body, count_down, count_up};
use tandem_abi::raw;
use tandem_pipeline::entry::{Action, HostValue};
use tandem_tables::exact::{Entry, Key, Kind};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Neigh(raw::tnd_neigh);

impl Neigh {
    fn new(family: u8, addr: [u8; 16], v: HostValue) -> Self {
        Self(raw::tnd_neigh {
            struct_size: size_of::<raw::tnd_neigh>() as u16,
            rif: v.rif,
            family,
            action: v.action.to_abi(),
            mac: v.mac,
            addr,
            reserved0: 0,
        })
    }
    pub(crate) fn from_entry(e: &Entry) -> Option<Self> {
        let v = HostValue::unpack(e.value);
        match e.key {
            Key::Host4 {
                addr: [a, b, c, d], ..
            } => {
                let mut addr = [0; 16];
                addr[..4].copy_from_slice(&[a, b, c, d]);
                Some(Self::new(raw::TND_AF_INET, addr, v))
            }
            Key::Host6 { addr, .. } => Some(Self::new(raw::TND_AF_INET6, addr, v)),
            Key::Mac { .. } => None,
        }
    }
    /// Needs the RIF, for its VRF.
    fn key(&self, fw: &Firmware) -> Option<Key> {
        let vrf = fw.state.rif(self.0.rif)?.vrf;
        let [a, b, c, d, ..] = self.0.addr;
        match self.0.family {
            raw::TND_AF_INET => Some(Key::Host4 {
                vrf,
                addr: [a, b, c, d],
            }),
            raw::TND_AF_INET6 => Some(Key::Host6 {
                vrf,
                addr: self.0.addr,
            }),
            _ => None,
        }
    }
}

impl Object for Neigh {
    const CLASS: u16 = raw::TND_CLS_NEIGH;
    const NAME: &'static str = "neigh";
    const COSTS: &'static [CostRow] = &[
        CostRow {
            family: raw::TND_AF_INET,
            name: "ipv4-host",
            slots: |fw| vec![Cost::hashed(fw, Kind::Host4)],
        },
        CostRow {
            family: raw::TND_AF_INET6,
            name: "ipv6-host",
            slots: |fw| vec![Cost::hashed(fw, Kind::Host6)],
        },
    ];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 28).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        let mut n = self.0;
        let action = Action::from_abi(n.action).ok_or(INVALID)?;
        match n.family {
            raw::TND_AF_INET => n.addr[4..].fill(0),
            raw::TND_AF_INET6 => {}
            _ => return Err(INVALID),
        }
        if !unicast(n.mac) {
            return Err(INVALID);
        }
        Ok(Self::new(
            n.family,
            n.addr,
            HostValue {
                rif: n.rif,
                action,
                mac: n.mac,
            },
        ))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let hit = fw.state.exact.get(&self.key(fw)?)?;
        let v = HostValue::unpack(hit.value);
        let mut addr = self.0.addr;
        if self.0.family == raw::TND_AF_INET {
            addr[4..].fill(0);
        }
        // the same address on another RIF is another object
        (v.rif == self.0.rif).then(|| Self::new(self.0.family, addr, v))
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        if fw.state.rif(self.0.rif).is_none() {
            Err(DEPEND)
        } else {
            Ok(())
        }
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        let n = self.0;
        let key = self.key(fw).ok_or(DEPEND)?;
        let action = Action::from_abi(n.action).ok_or(INVALID)?;
        if old.is_none() && fw.state.exact.get(&key).is_some() {
            return Err(EXISTS);
        }
        fw.write_exact(
            key,
            HostValue {
                rif: n.rif,
                action,
                mac: n.mac,
            }
            .pack(),
            old.is_some(),
        )?;
        if old.is_none() {
            count_up(&mut fw.refs, (raw::TND_CLS_RIF, n.rif.into()));
        }
        Ok(())
    }
    fn in_use(&self, _: &Firmware) -> bool {
        false
    }
    fn remove(&self, fw: &mut Firmware) {
        if let Some(key) = self.key(fw) {
            fw.remove_exact(&key);
            count_down(&mut fw.refs, (raw::TND_CLS_RIF, self.0.rif.into()));
        }
    }
    fn trapped(&self, _: &Self) -> Option<Self> {
        Some(Self(raw::tnd_neigh {
            action: raw::TND_ACT_TRAP,
            ..self.0
        }))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn unflip(&self, fw: &mut Firmware) {
        if let Some(key) = self.key(fw) {
            fw.unflip_exact(&key);
        }
    }
    fn family(&self) -> u8 {
        self.0.family
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state
            .exact
            .get(&self.key(fw)?)
            .map(|hit| hit.id.0.into())
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        fw.walk_exact(from, false, Self::from_entry)
    }
}

//! TND_CLS_MDB: who gets the frames of a multicast group; the ports are swapped by one command. It refers to its domain
//! alone: a port that is not in it (any more) gets nothing.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{DEPEND, Failure, INVALID, Object, body};
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::entry::Action;
use tandem_pipeline::state::{MAX_LAG, MdbConfig, MdbEntry, MdbKey};
use zerocopy::{FromBytes, IntoBytes};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mdb {
    key: MdbKey,
    action: u8,
    flags: u16,
    /// `None` if the body was too short for them: good for a key only.
    ports: Option<Vec<u16>>,
}

impl Mdb {
    pub(crate) fn from_state(e: &MdbEntry) -> Self {
        Self {
            key: e.key,
            action: e.config.action.to_abi(),
            flags: if e.config.cpu {
                raw::TND_MDB_CPU_COPY
            } else {
                0
            },
            ports: Some(e.config.ports.clone()),
        }
    }

    fn ports(&self) -> &[u16] {
        self.ports.as_deref().unwrap_or_default()
    }
}

/// Bytes of an address that count: IPv4, IPv6, MAC.
fn width(family: u8) -> Option<usize> {
    match family {
        raw::TND_AF_INET => Some(4),
        raw::TND_AF_INET6 => Some(16),
        0 => Some(6),
        _ => None,
    }
}

impl Object for Mdb {
    const CLASS: u16 = raw::TND_CLS_MDB;
    const NAME: &'static str = "mdb";
    const COSTS: &'static [CostRow] = &[CostRow::only("multicast-group", |_| {
        vec![Cost::of(PoolId::Mdb, 1)]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        let head: raw::tnd_mdb = body(bytes, size_of::<raw::tnd_mdb>())?;
        let size = size_of::<raw::tnd_mdb_port>();
        let port = |i: usize| {
            let at = usize::from(head.struct_size) + i * size;
            let p = raw::tnd_mdb_port::read_from_bytes(bytes.get(at..at + size)?).ok()?;
            Some(p.port)
        };
        let count = usize::from(head.count).min(raw::TND_MDB_MAX_PORTS + 1);
        Some(Self {
            key: MdbKey {
                fid: head.fid,
                family: head.family,
                addr: head.addr,
                source: head.source,
            },
            action: head.action,
            flags: head.flags,
            ports: (0..count).map(port).collect(),
        })
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        let mut ports = self.ports.ok_or(INVALID)?;
        ports.sort_unstable();
        let k = &self.key;
        let width = width(k.family).ok_or(INVALID)?;
        let beyond = |a: &[u8; 16]| a.iter().skip(width).any(|b| *b != 0);
        // by MAC address there is no source, and broadcast is no group
        let mac_ok = k.family != 0
            || k.source == [0; 16] && k.addr[0] & 1 == 1 && k.addr.get(..6) != Some(&[0xff; 6]);
        let last = fw.state.lag_port(MAX_LAG);
        let action = Action::from_abi(self.action).ok_or(INVALID)?;
        if beyond(&k.addr)
            || beyond(&k.source)
            || k.addr == [0; 16]
            || !mac_ok
            || action == Action::Drop
            || ports.len() > raw::TND_MDB_MAX_PORTS
            || ports.windows(2).any(|w| w[0] == w[1])
            || !ports.iter().all(|p| (1..=last).contains(p))
        {
            return Err(INVALID);
        }
        let forwards = action == Action::Forward;
        Ok(Self {
            key: self.key,
            action: self.action,
            flags: if forwards {
                self.flags & raw::TND_MDB_CPU_COPY
            } else {
                0
            },
            ports: Some(if forwards { ports } else { Vec::new() }),
        })
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let slot = fw.state.mdb.slot(&self.key)?;
        fw.state.mdb.at(slot).map(Self::from_state)
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        fw.state.vlan(self.key.fid).map(|_| ()).ok_or(DEPEND)
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        let action = Action::from_abi(self.action).ok_or(INVALID)?;
        if old.is_none() {
            fw.take(PoolId::Mdb, 1)?;
        }
        let config = MdbConfig {
            action,
            cpu: self.flags & raw::TND_MDB_CPU_COPY != 0,
            ports: self.ports().to_vec(),
        };
        fw.state.mdb.set(self.key, config);
        Ok(())
    }
    fn in_use(&self, _: &Firmware) -> bool {
        false
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.mdb.remove(&self.key).is_some() {
            fw.give(PoolId::Mdb, 1);
        }
    }
    fn trapped(&self, _: &Self) -> Option<Self> {
        Some(Self {
            key: self.key,
            action: raw::TND_ACT_TRAP,
            flags: 0,
            ports: Some(Vec::new()),
        })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        let head = raw::tnd_mdb {
            struct_size: size_of::<raw::tnd_mdb>() as u16,
            fid: self.key.fid,
            family: self.key.family,
            action: self.action,
            flags: self.flags,
            count: self.ports().len() as u16,
            reserved0: [0; 6],
            addr: self.key.addr,
            source: self.key.source,
        };
        out.extend(head.as_bytes());
        for port in self.ports() {
            let p = raw::tnd_mdb_port {
                port: *port,
                reserved0: 0,
            };
            out.extend(p.as_bytes());
        }
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state.mdb.slot(&self.key).map(u64::from)
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let all = &fw.state.mdb;
        slots(fw, from, all.slots(), |at| all.at(at).map(Self::from_state))
    }
}

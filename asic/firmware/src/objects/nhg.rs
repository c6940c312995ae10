//! TND_CLS_NHG: a next-hop group; its members are swapped by one command.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{DEPEND, Failure, INVALID, Object, body, count_down, count_up};
use crate::pools::{Need, PoolId};
use tandem_abi::raw;
use tandem_pipeline::group::Group;
use tandem_pipeline::state::{GroupConfig, HashPolicy};
use tandem_tables::pool::{Full, FullKind};
use zerocopy::{FromBytes, IntoBytes};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Nhg {
    id: u32,
    hash: u32,
    /// Next hop and weight. `None` if the body was too short for them: good for a key only.
    members: Option<Vec<(u32, u32)>>,
}

impl Nhg {
    pub(crate) fn from_group(g: &Group) -> Self {
        Self {
            id: g.id(),
            hash: g.hash().to_abi(),
            members: Some(g.members().to_vec()),
        }
    }
    /// Its counters: `struct tnd_nhg_stats` and what follows.
    pub(crate) fn stats(g: &Group, out: &mut Vec<u8>) {
        let head = raw::tnd_nhg_stats {
            struct_size: size_of::<raw::tnd_nhg_stats>() as u16,
            count: g.members().len() as u16,
            nhg: g.id(),
        };
        out.extend(head.as_bytes());
        for ((nexthop, _), packets) in g.members().iter().zip(g.packets()) {
            out.extend(
                raw::tnd_nhg_member_stats {
                    nexthop: *nexthop,
                    reserved0: 0,
                    packets: *packets,
                }
                .as_bytes(),
            );
        }
    }
    fn members(&self) -> &[(u32, u32)] {
        self.members.as_deref().unwrap_or_default()
    }
}

impl Object for Nhg {
    const CLASS: u16 = raw::TND_CLS_NHG;
    const NAME: &'static str = "nhg";
    const COSTS: &'static [CostRow] = &[CostRow::only("nexthop-group", |fw| {
        let members = fw.pools.nhg_max_members();
        // a usual group has two, not the most that a group may have
        vec![
            Cost::of(PoolId::Nhg, 1),
            Cost::up_to(PoolId::NhgMember, members, 2),
        ]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        let head: raw::tnd_nhg = body(bytes, 8)?;
        let size = size_of::<raw::tnd_nhg_member>();
        let member = |i: usize| {
            let at = usize::from(head.struct_size) + i * size;
            let m = raw::tnd_nhg_member::read_from_bytes(bytes.get(at..at + size)?).ok()?;
            Some((m.nexthop, m.weight))
        };
        let members = (0..usize::from(head.count).min(raw::TND_NHG_MAX_MEMBERS + 1))
            .map(member)
            .collect();
        Some(Self {
            id: head.nhg,
            hash: head.hash,
            members,
        })
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        let members = self.members.as_ref().ok_or(INVALID)?;
        let weights_ok = members.iter().all(|(_, w)| (1..=256).contains(w));
        if members.is_empty() || !weights_ok || HashPolicy::from_abi(self.hash).is_none() {
            return Err(INVALID);
        }
        let max = fw.pools.nhg_max_members();
        if members.len() > max as usize {
            let needed = members.len() as u32;
            let full = Full {
                kind: FullKind::Table,
                needed,
                free: max,
                size: max,
            };
            return Err(Failure::Full(PoolId::NhgMember, full));
        }
        Ok(self)
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state.nhg(self.id).map(Self::from_group)
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        let there = self
            .members()
            .iter()
            .all(|(id, _)| fw.state.nexthop_slot(*id).is_some());
        if there { Ok(()) } else { Err(DEPEND) }
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        let hash = HashPolicy::from_abi(self.hash).ok_or(INVALID)?;
        let (new_n, old_n) = (
            self.members().len() as u32,
            old.map_or(0, |o| o.members().len() as u32),
        );
        if old.is_none() {
            fw.take(PoolId::Nhg, 1)?;
        }
        if let Err(f) = fw.take(PoolId::NhgMember, new_n.saturating_sub(old_n)) {
            if old.is_none() {
                fw.untake(PoolId::Nhg, 1);
            }
            return Err(f);
        }
        let config = GroupConfig {
            hash,
            members: self.members().to_vec(),
        };
        fw.state.set_nhg(self.id, &config).map_err(|_| INVALID)?;
        fw.give(PoolId::NhgMember, old_n.saturating_sub(new_n));
        for (id, _) in self.members() {
            count_up(&mut fw.refs, (raw::TND_CLS_NEXTHOP, *id));
        }
        for (id, _) in old.map_or(&[][..], Self::members) {
            count_down(&mut fw.refs, (raw::TND_CLS_NEXTHOP, *id));
        }
        Ok(())
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        fw.refs.contains_key(&(Self::CLASS, self.id))
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.remove_nhg(self.id) {
            fw.give(PoolId::Nhg, 1);
            fw.give(PoolId::NhgMember, self.members().len() as u32);
            for (id, _) in self.members() {
                count_down(&mut fw.refs, (raw::TND_CLS_NEXTHOP, *id));
            }
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        let head = raw::tnd_nhg {
            struct_size: size_of::<raw::tnd_nhg>() as u16,
            count: self.members().len() as u16,
            nhg: self.id,
            hash: self.hash,
            reserved0: 0,
        };
        out.extend(head.as_bytes());
        for (nexthop, weight) in self.members() {
            out.extend(
                raw::tnd_nhg_member {
                    nexthop: *nexthop,
                    weight: *weight,
                }
                .as_bytes(),
            );
        }
    }
    fn needs(&self, fw: &Firmware) -> Vec<Need> {
        let members = (self.members().len() as u32).min(fw.pools.nhg_max_members());
        Need::group(PoolId::Nhg, PoolId::NhgMember, members)
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state.nhg_slot(self.id).map(u64::from)
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        slots(fw, from, fw.state.nhg_slots(), |at| {
            fw.state.nhg_at(at).map(Self::from_group)
        })
    }
}

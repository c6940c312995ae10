//! TND_CLS_LAG: a link aggregation group; its members are swapped by one command. Domains, router interfaces, lists and the
//! driver's FDB entries on its port keep it, and so do sets of ports and rules that send there.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{Failure, IN_USE, INVALID, Object, body};
use crate::pools::{Need, PoolId};
use crate::turn::Entries;
use tandem_abi::raw;
use tandem_pipeline::state::{LagConfig, MAX_LAG, RifPlace};
use zerocopy::{FromBytes, IntoBytes};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lag {
    lag: u16,
    hash: u16,
    /// Ports and whether they take part. `None` if the body was too short for them: good for a key only.
    members: Option<Vec<(u16, bool)>>,
}

impl Lag {
    pub(crate) fn from_state(lag: u16, c: &LagConfig) -> Self {
        Self {
            lag,
            hash: c.hash,
            members: Some(c.members.clone()),
        }
    }

    fn members(&self) -> &[(u16, bool)] {
        self.members.as_deref().unwrap_or_default()
    }
}

/// The groups among these ports: what sends there refers to them.
pub(crate) fn groups(fw: &Firmware, ports: impl Iterator<Item = u16>) -> Vec<(u16, u32)> {
    let group = |port| fw.state.lag_at(port).map(|lag| (Lag::CLASS, lag.into()));
    ports.filter_map(group).collect()
}

impl Object for Lag {
    const CLASS: u16 = raw::TND_CLS_LAG;
    const NAME: &'static str = "lag";
    const COSTS: &'static [CostRow] = &[CostRow::only("lag", |_| {
        vec![
            Cost::of(PoolId::Lag, 1),
            Cost::up_to(PoolId::LagMember, raw::TND_LAG_MAX_MEMBERS as u32, 2),
        ]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        let head: raw::tnd_lag = body(bytes, 4)?;
        let size = size_of::<raw::tnd_lag_member>();
        let member = |i: usize| {
            let at = usize::from(head.struct_size) + i * size;
            let m = raw::tnd_lag_member::read_from_bytes(bytes.get(at..at + size)?).ok()?;
            Some((m.port, m.flags & raw::TND_LAG_ACTIVE != 0))
        };
        let count = usize::from(head.count).min(raw::TND_LAG_MAX_MEMBERS + 1);
        Some(Self {
            lag: head.lag,
            hash: head.hash,
            members: (0..count).map(member).collect(),
        })
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        let mut members = self.members.ok_or(INVALID)?;
        members.sort_unstable();
        let twice = members.windows(2).any(|w| w[0].0 == w[1].0);
        let known = |p: &(u16, bool)| (1..=fw.state.port_count()).contains(&p.0);
        if !(1..=MAX_LAG).contains(&self.lag)
            || self.hash > raw::TND_LAG_HASH_L4
            || members.len() > raw::TND_LAG_MAX_MEMBERS
            || twice
            || !members.iter().all(known)
        {
            return Err(INVALID);
        }
        Ok(Self {
            members: Some(members),
            ..self
        })
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state
            .lag(self.lag)
            .map(|l| Self::from_state(self.lag, &l.config))
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        let other = |port: u16| {
            let mut all = fw.state.lags().filter(|(lag, _)| *lag != self.lag);
            all.any(|(_, l)| l.config.members.iter().any(|m| m.0 == port))
        };
        if self.members().iter().any(|m| other(m.0)) {
            return Err(IN_USE);
        }
        Ok(())
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        let had = old.map_or(0, |o| o.members().len() as u32);
        let has = self.members().len() as u32;
        if old.is_none() {
            fw.take(PoolId::Lag, 1)?;
        }
        if let Err(f) = fw.take(PoolId::LagMember, has.saturating_sub(had)) {
            if old.is_none() {
                fw.untake(PoolId::Lag, 1);
            }
            return Err(f);
        }
        let config = LagConfig {
            hash: self.hash,
            members: self.members().to_vec(),
        };
        fw.state.set_lag(self.lag, config).map_err(|_| INVALID)?;
        fw.give(PoolId::LagMember, had.saturating_sub(has));
        Ok(())
    }
    fn entries(&self, fw: &Firmware) -> Option<Entries> {
        Some(Entries::OfPort(fw.state.lag_port(self.lag)))
    }
    fn held(&self, fw: &Firmware) -> bool {
        let port = fw.state.lag_port(self.lag);
        let on_vlan = |p: RifPlace| matches!(p, RifPlace::PortVlan(at, _) if at == port);
        fw.state.members_of(port, 0).next().is_some()
            || fw.state.rif_at(RifPlace::Port(port)).is_some()
            || fw.state.rifs().any(|(_, r)| on_vlan(r.place))
            || fw.state.acl.binds().any(|(p, _, _)| p == port)
            || fw.refs.contains_key(&(Self::CLASS, self.lag.into()))
    }
    fn remove(&self, fw: &mut Firmware) {
        fw.drop_entries(self);
        if fw.state.remove_lag(self.lag) {
            fw.give(PoolId::Lag, 1);
            fw.give(PoolId::LagMember, self.members().len() as u32);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        let head = raw::tnd_lag {
            struct_size: size_of::<raw::tnd_lag>() as u16,
            lag: self.lag,
            count: self.members().len() as u16,
            hash: self.hash,
        };
        out.extend(head.as_bytes());
        for (port, active) in self.members() {
            let flags = if *active { raw::TND_LAG_ACTIVE } else { 0 };
            let m = raw::tnd_lag_member { port: *port, flags };
            out.extend(m.as_bytes());
        }
    }
    fn needs(&self, _: &Firmware) -> Vec<Need> {
        Need::group(PoolId::Lag, PoolId::LagMember, self.members().len() as u32)
    }
    fn position(&self, _: &Firmware) -> Option<u64> {
        Some(self.lag.into())
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        slots(fw, from, u32::from(MAX_LAG) + 1, |at| {
            let lag = fw.state.lag(at as u16)?;
            Some(Self::from_state(at as u16, &lag.config))
        })
    }
}

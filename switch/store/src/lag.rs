//! Bonds of front-panel ports: link aggregation groups of the chip.
//!
//! ```text
//!   swp3 ─┐ master                LAG(n, hash, members, who is active)
//!   swp4 ─┴─ bond0 ── bridge, addresses, VLAN interfaces ──► as of any port: PORT, VLAN_MEMBER, FDB, RIF of port ports + n
//! ```
//!
//! Who is active is the kernel's word: the active one of active-backup, those with a link of balance-xor, those of the
//! active aggregator of 802.3ad. LACP itself goes to the CPU.

use crate::Store;
use crate::hw::bodies::Lag;
use crate::hw::{Cls, Ref};
use crate::model::{Link, LinkKind};
use crate::reason::Reason;
use crate::slices::Walk;
use std::collections::BTreeMap;

/// Bonds that are groups of the chip, or would be.
#[derive(Debug, Default)]
pub(crate) struct Lags {
    /// Table ids by the group's number.
    ids: BTreeMap<u16, u32>,
    /// Numbers of those whose port is in use: the bond's ifindex.
    pub on: BTreeMap<u16, u32>,
    /// Why a bond is none, by ifindex.
    pub reasons: BTreeMap<u32, Reason>,
    /// Some group failed.
    pub failed: bool,
}

impl Store {
    /// The port number of a group.
    pub(crate) fn lag_port(&self, lag: u16) -> u16 {
        self.config.ports + lag
    }

    /// The table id of the group whose port this is.
    pub(crate) fn lag_of_port(&self, port: u16) -> Option<u32> {
        let lag = port.checked_sub(self.config.ports)?;
        self.lags.ids.get(&lag).copied()
    }

    /// Groups as the kernel has them, and the ports that stand for them.
    pub(crate) fn refresh_lags(&mut self, now: u64) {
        let mut wanted: BTreeMap<u16, (u32, Lag)> = BTreeMap::new();
        let reasons = std::mem::take(&mut self.lags.reasons);
        let on = std::mem::take(&mut self.lags.on);
        for i in self.topo.bonds.clone() {
            let Some(Link {
                kind: LinkKind::Bond(info),
                ..
            }) = self.links.get(&i).map(|r| &r.link)
            else {
                continue;
            };
            let info = *info;
            let mut members: Vec<(u16, bool)> = self
                .devices_in(i)
                .filter_map(|l| match l.kind {
                    LinkKind::Swp { port } => Some((port, l.bond_active)),
                    _ => None,
                })
                .collect();
            members.sort_unstable();
            if members.is_empty() {
                continue;
            }
            if wanted.contains_key(&info.lag) {
                self.lags.reasons.insert(i, Reason::NumberTaken);
                continue;
            }
            if let Some(why) = self.bond_reason(i, info.unsupported) {
                self.lags.reasons.insert(i, why);
                continue;
            }
            let lag = Lag {
                lag: info.lag,
                hash: info.hash,
                members,
            };
            wanted.insert(info.lag, (i, lag));
        }
        let gone: Vec<u32> = self
            .lags
            .ids
            .iter()
            .filter(|(n, _)| !wanted.contains_key(n))
            .map(|(_, id)| *id)
            .collect();
        for id in gone {
            self.hw.want::<Lag>(id, None, now);
        }
        for (n, (ifindex, body)) in wanted {
            let id = match self.lags.ids.get(&n) {
                Some(id) => *id,
                None => {
                    let id = self.hw.lags.take();
                    self.lags.ids.insert(n, id);
                    id
                }
            };
            self.hw.want(id, Some(body), now);
            let o = self.hw.lags.get(id);
            // one that has no group yet; one whose members could not be swapped has them as they were: not as the kernel
            if let Some(f) = o.and_then(|o| o.fail.as_ref()) {
                let why = self.fail_reason(f);
                self.lags.reasons.insert(ifindex, why);
                continue;
            }
            self.lags.on.insert(n, ifindex);
            let port = self.lag_port(n);
            self.topo.port_of.insert(ifindex, port);
            self.topo.if_of_port.insert(port, ifindex);
        }
        // ports came or went
        self.topo.dirty.all |= on != self.lags.on;
        let others = reasons
            .iter()
            .filter(|(i, why)| self.lags.reasons.get(i) != Some(why));
        let new = self
            .lags
            .reasons
            .keys()
            .filter(|i| !reasons.contains_key(i));
        for bond in others.map(|x| *x.0).chain(new.copied()).collect::<Vec<_>>() {
            self.mark_device(bond);
            let members: Vec<u32> = self.devices_in(bond).map(|l| l.ifindex).collect();
            for i in members {
                self.mark_device(i);
            }
        }
    }

    /// What of a bond the chip can't do.
    fn bond_reason(&self, bond: u32, unsupported: Option<&'static str>) -> Option<Reason> {
        if let Some(u) = unsupported {
            return Some(Reason::Setting(u));
        }
        for m in self.devices_in(bond) {
            if !matches!(m.kind, LinkKind::Swp { .. }) {
                return Some(Reason::Alien(m.name.clone()));
            }
            if let Some(h) = self.hooked(m) {
                return Some(Reason::HookedMember(h, m.name.clone()));
            }
            if let Some(u) = self.devices_on(m.ifindex).next() {
                return Some(Reason::OnTopOfMember(u.name.clone(), m.name.clone()));
            }
        }
        let link = &self.links.get(&bond)?.link;
        // In a bridge its port is disabled then; else the kernel's IP hears what its members hear, up or down
        // (drivers/net/bonding/bond_main.c `bond_handle_frame`).
        if !link.admin_up && link.bridge_port.is_none() {
            return Some(Reason::BondDown);
        }
        self.hooked(link).map(Reason::Hooked)
    }

    /// For a device in a bond: None if that is no bond; else why its frames are the kernel's, if they are not the group's.
    pub(crate) fn bond_of(&self, l: &Link) -> Option<Option<Reason>> {
        let bond = self.links.get(&l.master).map(|r| &r.link)?;
        if !matches!(bond.kind, LinkKind::Bond(_)) {
            return None;
        }
        let why = self.lags.reasons.get(&bond.ifindex);
        Some(why.map(|w| Reason::Of(bond.name.clone(), w.clone().into())))
    }

    /// A group came to stand or failed, or its members were swapped: a port that was in one may go into another.
    pub(crate) fn lag_answered(&mut self, r: Ref, now: u64) {
        let failed = self.hw.lags.failed() > 0;
        if failed || self.lags.failed {
            self.topo.dirty.lags = true;
        }
        self.lags.failed = failed;
        let answered_well = self.hw.lags.get(r.id).is_some_and(|o| o.fail.is_none());
        if answered_well {
            self.on_lag_again(r.id, now);
        }
        if answered_well && failed {
            for id in self.hw.lags.ids() {
                if id != r.id {
                    self.hw.retry_dependent(Ref::new(Cls::Lag, id));
                }
            }
        }
    }

    /// What is on the port of a group looks again.
    fn on_lag_again(&mut self, lag: u32, now: u64) {
        let Some(number) = self.lags.ids.iter().find(|x| *x.1 == lag).map(|x| *x.0) else {
            return;
        };
        let port = self.lag_port(number);
        let members = self.member_ids.range((port, 0)..=(port, u16::MAX));
        let bond = self.topo.if_of_port.get(&port).copied();
        let above = bond.map(|i| self.devices_on(i).map(|l| l.ifindex));
        let interfaces = bond.into_iter().chain(above.into_iter().flatten());
        let rifs = interfaces.filter_map(|i| self.topo.rif_of.get(&i).copied());
        let all: [(Cls, Vec<u32>); 3] = [
            (Cls::Port, vec![u32::from(port) - 1]),
            (Cls::Member, members.map(|x| *x.1).collect()),
            (Cls::Rif, rifs.collect()),
        ];
        for (cls, ids) in all {
            for id in ids {
                self.hw.retry_dependent(Ref::new(cls, id));
            }
        }
        self.walk(Walk::OnLag(0, lag), now);
    }

    pub(crate) fn lag_released(&mut self, id: u32) {
        self.lags.ids.retain(|_, x| *x != id);
    }
}

//! Why an object is, or is not, in hardware: for people and for `audit`.

mod ingress;
mod route;

use crate::api::{Action, Domain, Explanation, FdbRow, NeighRow, State};
use crate::fib::{Fam, V4, V6};
use crate::hw::bodies::{Fdb, Neigh, abi_addr};
use crate::hw::table::{HwBody, Obj};
use crate::hw::{Cls, Fail, HwClass, each_class};
use crate::model::{FdbKind, LinkKind};
use crate::paths::Why;
use crate::reason::Reason;
use crate::{Family, FdbKey, Store};
pub(crate) use ingress::Unreached;
use ipnet::IpNet;
use std::collections::HashSet;
use std::net::IpAddr;
use tandem_abi::raw::*;

pub(crate) fn mac_text(m: [u8; 6]) -> String {
    m.iter()
        .map(|b| format!("{b:02x}"))
        .collect::<Vec<_>>()
        .join(":")
}

impl Store {
    /// A pool's name as people write it: `ipv4-lpm` is the IPv4 LPM.
    pub(crate) fn pool_name(&self, id: u16) -> String {
        match self.config.pools.iter().find(|p| p.id == id) {
            Some(p) => match p.name.as_str() {
                "ipv4-lpm" => "IPv4 LPM".into(),
                "ipv6-lpm" => "IPv6 LPM".into(),
                "acl-range" => "ACL ranges".into(),
                n => n.into(),
            },
            None => format!("table {id}"),
        }
    }

    /// A failure.
    pub(crate) fn fail_reason(&self, f: &Fail) -> Reason {
        let table = || self.pool_name(f.table);
        let (needed, free, size) = (f.needed, f.free, f.size);
        match f.status {
            TND_ST_TABLE_FULL => Reason::Full {
                table: table(),
                needed,
                free,
                size,
            },
            TND_ST_BUCKET_FULL => Reason::NoSlot {
                table: table(),
                needed,
                free,
                size,
            },
            TND_ST_DEPEND => Reason::Depends,
            TND_ST_FAULT => Reason::Fault,
            TND_ST_UNSUPPORTED => Reason::NoSuchClass,
            TND_ST_IN_USE => Reason::InUse,
            s => Reason::Status(s),
        }
    }

    /// Why is this MAC in hardware, or not? One answer per bridge that knows it.
    pub fn explain_mac(&self, mac: [u8; 6]) -> Vec<Explanation> {
        let mut keys: Vec<FdbKey> = self.fdb.keys().filter(|k| k.mac == mac).copied().collect();
        keys.sort_unstable();
        keys.into_iter()
            .map(|k| {
                let row = self.fdb_row(k);
                let o = self.fdb_ids.get(&k).and_then(|&id| self.hw.fdb.get(id));
                let fail = o.and_then(|o| o.fail.as_ref());
                Explanation {
                    key: match row.vlan {
                        0 => format!("{} dev {} master {}", row.mac, row.dev, row.bridge),
                        v => format!("{} dev {} vlan {v} master {}", row.mac, row.dev, row.bridge),
                    },
                    known: true,
                    in_hardware: o.is_some_and(|o| o.have.is_some()),
                    state: row.state,
                    action: row.action,
                    cost: self.cost_of(None, o),
                    table: self.pool_of::<Fdb>(None, fail),
                    reason: row.reason,
                    since_ns: o.map_or(0, |o| o.since),
                    cover: if fail.is_some() {
                        format!("unknown unicast of {}", row.bridge)
                    } else {
                        String::new()
                    },
                    waiting_for: self.waits_for(fail),
                    source: self.fdb.get(&k).map_or(0, |r| r.source),
                    devices: vec![row.dev, row.bridge],
                    ..Explanation::default()
                }
            })
            .collect()
    }

    /// Why is this neighbour in hardware, or not? One answer per interface that knows it.
    pub fn explain_neighbour(&self, addr: IpAddr) -> Vec<Explanation> {
        let mut unreached = Unreached::default();
        self.neighs
            .range((addr, 0)..=(addr, u32::MAX))
            .map(|(&(addr, ifindex), n)| {
                let row = self.neigh_row(addr, ifindex, &mut unreached);
                let o = self
                    .neigh_ids
                    .get(&(addr, ifindex))
                    .and_then(|&id| self.hw.neighs.get(id));
                let fail = o.and_then(|o| o.fail.as_ref());
                let there = o.is_some_and(|o| o.have.is_some());
                Explanation {
                    key: format!("{addr} dev {}", row.dev),
                    known: true,
                    in_hardware: there,
                    state: row.state,
                    action: match there {
                        true => Action::Forward,
                        false => Action::None,
                    },
                    target: format!("lladdr {}", row.mac),
                    cost: self.cost_of(Some(abi_addr(addr).0), o),
                    table: self.pool_of::<Neigh>(Some(abi_addr(addr).0), fail),
                    reason: row.reason,
                    since_ns: o.map_or(0, |o| o.since),
                    cover: if there {
                        String::new()
                    } else {
                        self.connected_text(addr, ifindex)
                    },
                    waiting_for: self.waits_for(fail),
                    unreached: row.unreached,
                    source: n.source,
                    slot: self.slot_of(ifindex),
                    devices: vec![row.dev],
                    ..Explanation::default()
                }
            })
            .collect()
    }

    /// What an object takes: by the chip's answers, or what one of its class costs if it did not say. The chip has learned
    /// it by itself, or has kept it over an attach.
    pub(crate) fn cost_of<B: HwClass>(&self, family: Option<u8>, o: Option<&Obj<B>>) -> u32 {
        match o {
            Some(o) if o.have.is_some() && o.cost == 0 => {
                self.config.cost(B::ABI, family).map_or(1, |c| c.1)
            }
            o => o.map_or(0, |o| o.cost),
        }
    }

    /// Where an object is, or did not fit.
    pub(crate) fn pool_of<B: HwClass>(&self, family: Option<u8>, fail: Option<&Fail>) -> String {
        let pool = self.config.cost(B::ABI, family).map(|c| c.0);
        let pool = fail.map(|f| f.table).or(pool);
        pool.map_or_else(String::new, |p| self.pool_name(p))
    }

    /// Room, if that was what it lacked.
    pub(crate) fn waits_for(&self, fail: Option<&Fail>) -> String {
        let full = fail.filter(|f| f.full());
        full.map_or_else(String::new, |f| {
            format!("a free slot in {}", self.pool_name(f.table))
        })
    }

    fn connected_text(&self, addr: IpAddr, ifindex: u32) -> String {
        let slot = self.slot_of(ifindex);
        let net = self.route_of(slot, addr);
        net.map_or_else(String::new, |net| self.in_vrf(net.to_string(), slot))
    }

    /// The kernel's prefix that answers for an address.
    pub fn route_of(&self, slot: u8, addr: IpAddr) -> Option<IpNet> {
        fn of<F: Fam>(s: &Store, slot: u8, addr: IpAddr) -> Option<IpNet> {
            let cover = &F::fib(&s.fibs).cover;
            s.net::<F>(cover.kernel_match(F::new(slot, addr))?)
        }
        match Family::of(&addr) {
            Family::V4 => of::<V4>(self, slot, addr),
            Family::V6 => of::<V6>(self, slot, addr),
        }
    }

    // -- lists ----------------------------------------------------------------------------------------------------

    pub(crate) fn neigh_row(
        &self,
        addr: IpAddr,
        ifindex: u32,
        unreached: &mut Unreached,
    ) -> NeighRow {
        let n = self.neighs.get(&(addr, ifindex));
        let o = self
            .neigh_ids
            .get(&(addr, ifindex))
            .and_then(|&id| self.hw.neighs.get(id));
        let (state, reason) = object_state(self, o);
        let usable = n.is_some_and(|n| n.usable());
        let reason = if reason.is_some() || state != State::Omitted {
            reason
        } else if !usable {
            Some(Reason::NotResolved)
        } else if !self.topo.rif_of.contains_key(&ifindex) {
            let why = self.topo.reasons.get(&ifindex).cloned();
            let dev = self.dev(ifindex);
            Some(Reason::NoRouterInterface(dev, why.map(Box::new)))
        } else if !self.on_connected(addr, ifindex) {
            Some(Reason::NotConnected)
        } else {
            None
        };
        NeighRow {
            addr,
            nud: n.map_or(0, |n| n.state),
            dev: self.dev(ifindex),
            mac: n
                .filter(|n| n.mac != [0; 6])
                .map(|n| mac_text(n.mac))
                .unwrap_or_default(),
            state,
            reason,
            unreached: unreached.of(self, self.slot_of(ifindex), Family::of(&addr)),
        }
    }

    /// Those of a VRF's device lead nowhere: the kernel makes them for its own packets there, without a word.
    pub(crate) fn is_vrf(&self, ifindex: u32) -> bool {
        let link = self.links.get(&ifindex);
        link.is_some_and(|l| matches!(l.link.kind, LinkKind::Vrf { .. }))
    }

    /// All of [`neighbour_page`](Self::neighbour_page).
    pub fn neighbours(&self) -> Vec<NeighRow> {
        self.neighbour_page("", usize::MAX)
            .map_or_else(Vec::new, |p| p.rows)
    }

    pub(crate) fn fdb_row(&self, k: FdbKey) -> FdbRow {
        let r = self.fdb.get(&k).copied().unwrap_or_default();
        let o = self.fdb_ids.get(&k).and_then(|&id| self.hw.fdb.get(id));
        let (state, mut reason) = object_state(self, o);
        let domain = self.topo.fid_of.get(&Domain::of(&k));
        if reason.is_none() && state == State::Omitted {
            let of_bridge = self.topo.reasons.get(&k.bridge).cloned();
            let locked = || r.kernel.is_some_and(|e| e.kind == FdbKind::Locked);
            reason = match of_bridge {
                Some(r) => Some(Reason::Of(self.dev(k.bridge), r.into())),
                None if domain.is_none() => Some(self.no_domain(k.bridge, k.vlan)),
                None => locked().then_some(Reason::Locked),
            };
        }
        let have = o.and_then(|o| o.have.as_ref());
        let action = have.map_or(Action::None, |h| Action::of(h.action));
        if reason.is_none() && action == Action::Trap {
            reason = Some(match r.kernel {
                Some(e) if e.kind != FdbKind::Local => {
                    self.path_reason(Why::NotOffloaded(e.ifindex))
                }
                _ => Reason::Own,
            });
        }
        FdbRow {
            bridge: self.dev(k.bridge),
            fid: domain.map_or(0, |id| self.hw.ids.fid(*id)),
            vlan: k.vlan,
            mac: mac_text(k.mac),
            dev: match (
                r.kernel,
                r.device.and_then(|p| self.topo.if_of_port.get(&p)),
            ) {
                (Some(e), _) => self.dev(e.ifindex),
                (None, Some(&i)) => self.dev(i),
                (None, None) => String::new(),
            },
            kind: r.kernel.map(|e| e.kind),
            state,
            action,
            reason,
        }
    }

    /// All of [`fdb_page`](Self::fdb_page).
    pub fn fdb(&self) -> Vec<FdbRow> {
        self.fdb_page("", usize::MAX)
            .map_or_else(Vec::new, |p| p.rows)
    }

    /// Up to `limit` objects that failed and wait, each with its reason.
    pub fn failures(&self, limit: usize) -> Vec<(String, Reason)> {
        let mut out = Vec::new();
        for (r, f) in self.fails.iter().take(limit) {
            let node = match r.cls {
                Cls::Route6 => self.prefix_text::<V6>(self.fibs.v6.entries[r.id].node),
                _ => self.prefix_text::<V4>(self.fibs.v4.entries[r.id].node),
            };
            out.push((format!("route {node}"), self.fail_reason(f)));
        }
        out.extend(self.failures_of_objects());
        out.truncate(limit);
        out
    }

    /// All of those that are no route.
    pub fn failures_of_objects(&self) -> Vec<(String, Reason)> {
        let mut out = Vec::new();
        each_class!(T => {
            let all = T::all(&self.hw);
            for o in all.ids().into_iter().filter_map(|id| all.get(id)) {
                match (&o.fail, &o.want, &o.have) {
                    (Some(f), Some(w), _) => out.push((format!("{w:?}"), self.fail_reason(f))),
                    (Some(f), None, Some(h)) => {
                        out.push((format!("{h:?}, still there"), self.fail_reason(f)));
                    }
                    _ => {}
                }
            }
        });
        out
    }

    /// Interfaces whose router interfaces are not in hardware, each for a reason: what needs them traps.
    pub fn rifs_failed(&self) -> HashSet<u32> {
        let failed = |id: &u32| self.hw.rifs.get(*id).is_some_and(|o| o.failed().is_some());
        let all = self.topo.rif_of.iter().filter(|(_, id)| failed(id));
        all.map(|(i, _)| *i).collect()
    }

    /// The interface that a router interface of the chip is of.
    pub fn device_of_rif(&self, rif: u16) -> Option<u32> {
        let id = self.hw.ids.rifs.table(u32::from(rif))?;
        self.topo.if_of_rif.get(&id).copied()
    }

    /// Why what comes in on this device is not forwarded by the chip, if it is not.
    pub fn port_reason(&self, ifindex: u32) -> Option<Reason> {
        self.topo
            .reasons
            .get(&ifindex)
            .or_else(|| self.ingress_reasons.get(&ifindex))
            .cloned()
            .or_else(|| self.filters_reason(ifindex))
    }
}

pub(crate) fn object_state<B: HwBody>(s: &Store, o: Option<&Obj<B>>) -> (State, Option<Reason>) {
    match o {
        None => (State::Omitted, None),
        Some(o) => match (&o.want, &o.have, &o.fail) {
            (_, _, Some(f)) => (State::Failed, Some(s.fail_reason(f))),
            (None, None, None) => (State::Omitted, None),
            (Some(w), Some(h), None) if w == h => (State::Installed, None),
            _ => (State::Pending, None),
        },
    }
}

//! Why an object is, or is not, in hardware: for people and for `audit`.

mod ingress;
mod route;

use crate::api::{Domain, Explanation, FdbRow, NeighRow};
use crate::fib::{Fam, V4, V6};
use crate::hw::table::{HwBody, Obj};
use crate::hw::{Cls, Fail};
use crate::model::{FdbKind, LinkKind};
use crate::paths::Why;
use crate::{Family, FdbKey, Store};
use std::net::IpAddr;
use tandem_abi::raw::*;

pub(crate) fn mac_text(m: [u8; 6]) -> String {
    m.iter()
        .map(|b| format!("{b:02x}"))
        .collect::<Vec<_>>()
        .join(":")
}

fn fdb_kind_text(k: FdbKind) -> &'static str {
    match k {
        FdbKind::Local => "local",
        FdbKind::Static => "static",
        FdbKind::ExternLearn => "extern_learn",
        FdbKind::Dynamic => "dynamic",
        FdbKind::Locked => "locked",
        FdbKind::Blackhole => "blackhole",
    }
}

impl Store {
    /// A pool's name as people write it: `ipv4-lpm` is the IPv4 LPM.
    pub(crate) fn pool_name(&self, id: u16) -> String {
        match self.config.pools.iter().find(|p| p.id == id) {
            Some(p) => match p.name.as_str() {
                "ipv4-lpm" => "IPv4 LPM".into(),
                "ipv6-lpm" => "IPv6 LPM".into(),
                n => n.into(),
            },
            None => format!("table {id}"),
        }
    }

    /// A failure in one line.
    pub(crate) fn fail_text(&self, f: &Fail) -> String {
        match f.status {
            TND_ST_TABLE_FULL => {
                format!(
                    "{} full (needs {}, free {} of {})",
                    self.pool_name(f.table),
                    f.needed,
                    f.free,
                    f.size
                )
            }
            TND_ST_BUCKET_FULL => format!(
                "{} has no slot for this key (needs {}, free {} of {})",
                self.pool_name(f.table),
                f.needed,
                f.free,
                f.size
            ),
            TND_ST_DEPEND => "what it refers to is not in hardware".into(),
            TND_ST_FAULT => "the hardware failed the write".into(),
            TND_ST_UNSUPPORTED => "the chip does not know such objects".into(),
            TND_ST_IN_USE => "something in hardware still refers to it".into(),
            s => format!("the chip answered with status {s}"),
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
                    target: String::new(),
                    cost: self.host_cost(2, o),
                    table: self.host_table(2, fail),
                    reason: row.reason,
                    since_ns: o.map_or(0, |o| o.since),
                    cover: if fail.is_some() {
                        format!("unknown unicast of {}", row.bridge)
                    } else {
                        String::new()
                    },
                    waiting_for: fail
                        .filter(|f| f.full())
                        .map(|f| format!("a free slot in {}", self.pool_name(f.table)))
                        .unwrap_or_default(),
                    unreached: String::new(),
                    innocent: Vec::new(),
                    details: Vec::new(),
                    source: self.fdb.get(&k).map_or(0, |r| r.source),
                }
            })
            .collect()
    }

    /// Why is this neighbour in hardware, or not? One answer per interface that knows it.
    pub fn explain_neighbour(&self, addr: IpAddr) -> Vec<Explanation> {
        self.neighs
            .range((addr, 0)..=(addr, u32::MAX))
            .map(|(&(addr, ifindex), n)| {
                let row = self.neigh_row(addr, ifindex);
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
                    action: if there { "forward" } else { "none" },
                    target: format!("lladdr {}", row.mac),
                    cost: self.host_cost(usize::from(addr.is_ipv6()), o),
                    table: self.host_table(usize::from(addr.is_ipv6()), fail),
                    reason: row.reason,
                    since_ns: o.map_or(0, |o| o.since),
                    cover: if there {
                        String::new()
                    } else {
                        self.connected_text(addr, ifindex)
                    },
                    waiting_for: fail
                        .filter(|f| f.full())
                        .map(|f| format!("a free slot in {}", self.pool_name(f.table)))
                        .unwrap_or_default(),
                    unreached: row.unreached,
                    innocent: Vec::new(),
                    details: Vec::new(),
                    source: n.source,
                }
            })
            .collect()
    }

    /// What a host's entry takes: by the chip's answers, or what one of its class costs if it did not say. The chip has
    /// learned it by itself, or has kept it over an attach.
    pub(crate) fn host_cost<B: HwBody>(&self, class: usize, o: Option<&Obj<B>>) -> u32 {
        match o {
            Some(o) if o.have.is_some() && o.cost == 0 => {
                self.config.host_cost.get(class).copied().unwrap_or(0)
            }
            o => o.map_or(0, |o| o.cost),
        }
    }

    /// Where a host's entry (`Config::host_pools`) is, or did not fit.
    pub(crate) fn host_table(&self, class: usize, fail: Option<&Fail>) -> String {
        let pool = self.config.host_pools.get(class).copied().flatten();
        fail.map(|f| f.table)
            .or(pool)
            .map(|p| self.pool_name(p))
            .unwrap_or_default()
    }

    fn connected_text(&self, addr: IpAddr, ifindex: u32) -> String {
        self.route_of(self.slot_of(ifindex), addr)
    }

    /// The kernel's prefix that answers for an address, as [`Explanation::key`] has it; empty if there is none.
    pub fn route_of(&self, slot: u8, addr: IpAddr) -> String {
        match Family::of(&addr) {
            Family::V4 => self
                .fibs
                .v4
                .cover
                .kernel_match(V4::new(slot, addr))
                .map(|n| self.prefix_text::<V4>(n)),
            Family::V6 => self
                .fibs
                .v6
                .cover
                .kernel_match(V6::new(slot, addr))
                .map(|n| self.prefix_text::<V6>(n)),
        }
        .unwrap_or_default()
    }

    // -- lists ----------------------------------------------------------------------------------------------------

    pub(crate) fn neigh_row(&self, addr: IpAddr, ifindex: u32) -> NeighRow {
        let n = self.neighs.get(&(addr, ifindex));
        let o = self
            .neigh_ids
            .get(&(addr, ifindex))
            .and_then(|&id| self.hw.neighs.get(id));
        let (state, reason) = object_state(self, o);
        let usable = n.is_some_and(|n| n.usable());
        let reason = if !reason.is_empty() || state != "omitted" {
            reason
        } else if !usable {
            "not resolved".into()
        } else if !self.topo.rif_of.contains_key(&ifindex) {
            match self.topo.reasons.get(&ifindex) {
                Some(r) => format!("{} has no router interface: {r}", self.dev(ifindex)),
                None => format!("{} has no router interface", self.dev(ifindex)),
            }
        } else if !self.on_connected(addr, ifindex) {
            "the longest match of its address is not the connected route of its interface".into()
        } else {
            String::new()
        };
        NeighRow {
            addr: addr.to_string(),
            nud: n.map_or(0, |n| n.state),
            dev: self.dev(ifindex),
            mac: n
                .filter(|n| n.mac != [0; 6])
                .map(|n| mac_text(n.mac))
                .unwrap_or_default(),
            state,
            reason,
            unreached: self.unreached(self.slot_of(ifindex), Family::of(&addr)),
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
        if reason.is_empty() && state == "omitted" {
            reason = match self.topo.reasons.get(&k.bridge) {
                Some(r) => format!("{}: {r}", self.dev(k.bridge)),
                None if domain.is_none() => self.no_domain_text(&k),
                None if r.kernel.is_some_and(|e| e.kind == FdbKind::Locked) => {
                    "locked: nobody has let this station in".into()
                }
                None => String::new(),
            };
        }
        let action = match o.and_then(|o| o.have.as_ref()).map(|h| h.action) {
            Some(TND_ACT_FORWARD) => "forward",
            Some(TND_ACT_DROP) => "drop",
            Some(_) => "trap",
            None => "none",
        };
        if reason.is_empty() && action == "trap" {
            reason = match r.kernel {
                Some(e) if e.kind != FdbKind::Local => self.why_text(Why::NotOffloaded(e.ifindex)),
                _ => "an own address".into(),
            };
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
            kind: r.kernel.map_or("learned", |e| fdb_kind_text(e.kind)),
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
    pub fn failures(&self, limit: usize) -> Vec<(String, String)> {
        let mut out = Vec::new();
        for (r, f) in self.fails.iter().take(limit) {
            let node = match r.cls {
                Cls::Route6 => self.prefix_text::<V6>(self.fibs.v6.entries[r.id].node),
                _ => self.prefix_text::<V4>(self.fibs.v4.entries[r.id].node),
            };
            out.push((format!("route {node}"), self.fail_text(f)));
        }
        fn of<B: HwBody>(
            s: &Store,
            t: &crate::hw::table::Table<B>,
            out: &mut Vec<(String, String)>,
        ) {
            for id in t.ids() {
                let Some((o, f)) = t.get(id).and_then(|o| Some((o, o.fail.as_ref()?))) else {
                    continue;
                };
                match (&o.want, &o.have) {
                    (Some(w), _) => out.push((format!("{w:?}"), s.fail_text(f))),
                    (None, Some(h)) => {
                        out.push((format!("{h:?}, still there"), s.fail_text(f)));
                    }
                    (None, None) => {}
                }
            }
        }
        of(self, &self.hw.lags, &mut out);
        of(self, &self.hw.ports, &mut out);
        of(self, &self.hw.vlans, &mut out);
        of(self, &self.hw.members, &mut out);
        of(self, &self.hw.vrfs, &mut out);
        of(self, &self.hw.rifs, &mut out);
        of(self, &self.hw.nexthops, &mut out);
        of(self, &self.hw.nhgs, &mut out);
        of(self, &self.hw.neighs, &mut out);
        of(self, &self.hw.fdb, &mut out);
        of(self, &self.hw.mdb, &mut out);
        of(self, &self.hw.acl_tables, &mut out);
        of(self, &self.hw.acl_counters, &mut out);
        of(self, &self.hw.policers, &mut out);
        of(self, &self.hw.mirrors, &mut out);
        of(self, &self.hw.acl_entries, &mut out);
        of(self, &self.hw.acl_binds, &mut out);
        out.truncate(limit);
        out
    }

    /// Router interfaces that are not in hardware, each for a reason: what needs them traps.
    pub fn rifs_failed(&self) -> usize {
        self.hw.rifs.failed()
    }

    /// Why what comes in on this device is not forwarded by the chip; empty if it is.
    pub fn port_reason(&self, ifindex: u32) -> String {
        self.topo
            .reasons
            .get(&ifindex)
            .or_else(|| self.ingress_reasons.get(&ifindex))
            .cloned()
            .or_else(|| self.filters_reason(ifindex))
            .unwrap_or_default()
    }
}

pub(crate) fn object_state<B: HwBody>(s: &Store, o: Option<&Obj<B>>) -> (&'static str, String) {
    match o {
        None => ("omitted", String::new()),
        Some(o) => match (&o.want, &o.have, &o.fail) {
            (_, _, Some(f)) => ("failed", s.fail_text(f)),
            (None, None, None) => ("omitted", String::new()),
            (Some(w), Some(h), None) if w == h => ("installed", String::new()),
            _ => ("pending", String::new()),
        },
    }
}

//! Why an object is, or is not, in hardware: for people and for `audit`.

use crate::Store;
use crate::api::{Domain, Explanation, FdbRow, NeighRow, RouteRow};
use crate::fib::{Content, F_DEPEND, F_FAILED, F_OMIT, F_PARSER, Fam, SLOT_BITS, V4, V6, kind_of};
use crate::hw::table::{HwBody, Obj};
use crate::hw::{Cls, DepState, Fail, Ref};
use crate::model::{FdbKind, LinkKind, RouteType};
use crate::paths::Target;
use crate::{Family, FdbKey};
use ipnet::IpNet;
use std::net::IpAddr;
use tandem_abi::raw::*;
use tandem_cover::NONE;

pub(crate) fn mac_text(m: [u8; 6]) -> String {
    m.iter()
        .map(|b| format!("{b:02x}"))
        .collect::<Vec<_>>()
        .join(":")
}

fn kind_text(k: RouteType) -> &'static str {
    match k {
        RouteType::Unicast => "unicast",
        RouteType::Local => "local",
        RouteType::Broadcast => "broadcast",
        RouteType::Anycast => "anycast",
        RouteType::Multicast => "multicast",
        RouteType::Blackhole => "blackhole",
        RouteType::Unreachable => "unreachable",
        RouteType::Prohibit => "prohibit",
        RouteType::Throw => "throw",
    }
}

fn fdb_kind_text(k: FdbKind) -> &'static str {
    match k {
        FdbKind::Local => "local",
        FdbKind::Static => "static",
        FdbKind::ExternLearn => "extern_learn",
        FdbKind::Dynamic => "dynamic",
        FdbKind::Blackhole => "blackhole",
    }
}

/// An entry that is nobody's route.
const AGGREGATE: &str = "an aggregate trap of the reserve: prefixes below it do not fit";

fn action_text(c: Content) -> &'static str {
    match c.action {
        TND_ACT_FORWARD => "forward",
        TND_ACT_TRAP => "trap",
        TND_ACT_DROP => "drop",
        _ => "none",
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

    fn target_fail(&self, c: Content) -> Option<&Fail> {
        match c.dep()? {
            Ref {
                cls: Cls::Nexthop,
                id,
            } => self.hw.nexthops.get(id)?.fail.as_ref(),
            Ref { id, .. } => self.hw.nhgs.get(id)?.fail.as_ref(),
        }
    }

    fn entry_reason<F: Fam>(&self, e: u32) -> String {
        let fib = F::fib(&self.fibs);
        let x = &fib.entries[e];
        if self.is_aggregate::<F>(e) {
            return AGGREGATE.into();
        }
        if x.head == NONE {
            return "the kernel has it no more: it is on its way out".into();
        }
        if let Some(f) = self.fails.get(&Ref::new(F::CLS, e)) {
            return self.fail_text(f);
        }
        if x.is(F_PARSER) {
            return "the parser sends such packets to the CPU before any lookup".into();
        }
        if x.is(F_OMIT) {
            return "the prefix above it goes to the CPU as well: no entry is needed".into();
        }
        if !self.slot_stands(self.entry_slot::<F>(e)) {
            let id = u32::from(self.entry_slot::<F>(e)) - 1;
            return match self.hw.vrfs.get(id).and_then(|o| o.fail.as_ref()) {
                Some(f) => format!("its VRF: {}", self.fail_text(f)),
                None => "its VRF is not in hardware yet".into(),
            };
        }
        if self.has_tos::<F>(e) {
            return "a route of this prefix has a TOS".into();
        }
        if let Some((a, c)) = self.best_alias::<F>(e) {
            let alias = &self.aliases[a];
            if alias.table != 0 && self.shadowed::<F>(e) {
                return "a wider route of the local table answers first".into();
            }
            if alias.unsupported != 0 {
                return unsupported_text(alias.unsupported).into();
            }
            let path = &self.paths.sets[alias.path];
            match kind_of(alias.kind) {
                RouteType::Unicast => match path.target {
                    Target::Trap(w) => return self.why_text(w),
                    Target::Connected(_) => {
                        return "a connected route: hosts have entries of their own".into();
                    }
                    _ => {}
                },
                // it needs no next hop, whatever the kernel names: none, or lo (IPv6)
                RouteType::Blackhole => {}
                RouteType::Local | RouteType::Broadcast | RouteType::Anycast => {
                    return "an own address".into();
                }
                RouteType::Unreachable | RouteType::Prohibit => {
                    return "the kernel owes an ICMP error".into();
                }
                _ => return "this route type is not offloaded".into(),
            }
            let n = fib.cover.forced(x.node);
            if n > 0 {
                return format!("it would answer for {n} more specific prefixes that do not fit");
            }
            if let Some(f) = self.target_fail(c) {
                return format!("next hop: {}", self.fail_text(f));
            }
            if x.is(F_DEPEND) {
                return "what it refers to is not in hardware".into();
            }
            if c.kind == TND_RT_NEXTHOP
                && self
                    .hw
                    .nexthops
                    .get(c.target)
                    .is_some_and(|o| o.have.as_ref().is_some_and(|h| h.mac.is_none()))
            {
                return "its next hop is not resolved".into();
            }
            return String::new();
        }
        "every next hop is dead".into()
    }

    fn entry_state<F: Fam>(&self, e: u32) -> &'static str {
        let fib = F::fib(&self.fibs);
        let x = &fib.entries[e];
        if self.is_aggregate::<F>(e) {
            "installed"
        } else if x.is(F_FAILED) {
            "failed"
        } else if x.is(F_PARSER | F_OMIT) {
            "omitted"
        } else if x.have.present() && x.have == x.want.on_chip() {
            "installed"
        } else if x.have.is_trap() && x.want.present() {
            // In hardware, as a trap: forced, or its target does not fit.
            "installed"
        } else {
            "pending"
        }
    }

    fn entry_target<F: Fam>(&self, e: u32) -> String {
        match self.best_alias::<F>(e) {
            Some((a, _)) => self.path_text(&self.paths.sets[self.aliases[a].path]),
            None => String::new(),
        }
    }

    fn prefix_text<F: Fam>(&self, node: u32) -> String {
        let text = self.bare_prefix::<F>(node);
        match F::fib(&self.fibs).cover.prefix(node).0.slot() {
            0 => text,
            slot => format!("{text} vrf {}", self.vrf_name(slot)),
        }
    }

    /// The prefix without its VRF.
    fn bare_prefix<F: Fam>(&self, node: u32) -> String {
        let (bits, len) = F::fib(&self.fibs).cover.prefix(node);
        format!("{}/{}", bits.to_ip(), len.saturating_sub(SLOT_BITS))
    }

    /// The slot of an entry.
    fn entry_slot<F: Fam>(&self, e: u32) -> u8 {
        let fib = F::fib(&self.fibs);
        fib.cover.prefix(fib.entries[e].node).0.slot()
    }

    fn explain_route_of<F: Fam>(&self, slot: u8, net: IpNet) -> Explanation {
        let fib = F::fib(&self.fibs);
        let bits = F::new(slot, net.addr());
        let len = net.prefix_len() + SLOT_BITS;
        let exact = fib
            .cover
            .find(bits, len)
            .filter(|&n| fib.cover.in_kernel(n));
        // A host address that is no prefix of its own: the route that answers for it.
        let node = match exact {
            Some(n) => Some(n),
            None if len == F::WIDTH => fib.cover.kernel_match(bits),
            None => fib
                .cover
                .find(bits, len)
                .filter(|&n| fib.at_node(n).is_some()),
        };
        let Some((node, e)) = node.and_then(|n| Some((n, fib.at_node(n)?))) else {
            return Explanation::unknown(net.to_string());
        };
        let x = &fib.entries[e];
        let fail = self.fails.get(&Ref::new(F::CLS, e));
        // An aggregate trap stands for others: none of the kernel's prefixes is installed by it.
        let aggregate = self.is_aggregate::<F>(e);
        let stands = aggregate || x.have.present() && fib.cover.is_installed(node);
        let mut reason = self.entry_reason::<F>(e);
        let mut action = action_text(x.have);
        let below = if stands && reason.is_empty() {
            self.aggregates_below::<F>(node)
        } else {
            Vec::new()
        };
        // The chip takes the longest match, also where the kernel has no such prefix.
        let first = (stands && reason.is_empty() && exact.is_none() && len == F::WIDTH)
            .then(|| fib.cover.hardware_match(bits))
            .flatten()
            .filter(|&n| fib.at_node(n).is_some_and(|e| self.is_aggregate::<F>(e)));
        let cover = if first.is_some() {
            reason = format!("{AGGREGATE}, and it answers first");
            action = "trap";
            first
        } else if stands || x.is(F_PARSER) {
            None
        } else {
            fib.cover.cover_of(node)
        };
        let mut innocent = Vec::new();
        if let Some(c) = cover.or(aggregate.then_some(node)) {
            let (b, l) = fib.cover.prefix(c);
            let mut budget = 4096;
            fib.cover.each_below(b, l, |n, v| {
                budget -= 1;
                let y = &fib.entries[v];
                if n != node && y.is(F_FAILED) && fib.cover.cover_of(n) == Some(c) {
                    innocent.push(self.prefix_text::<F>(n));
                }
                innocent.len() < 8 && budget > 0
            });
            if fib
                .at_node(c)
                .is_some_and(|v| fib.entries[v].want.present() && !fib.entries[v].want.is_trap())
                && c != node
            {
                innocent.insert(0, self.prefix_text::<F>(c));
            }
        }
        let details = below
            .iter()
            .filter(|_| first.is_none())
            .map(|&n| {
                let what = self.prefix_text::<F>(n);
                format!("{what} of it goes to the CPU: {AGGREGATE}")
            })
            .collect();
        let table = match self.config.route_pools[Self::family_index::<F>()] {
            Some(p) => self.pool_name(p),
            None => String::new(),
        };
        Explanation {
            key: self.prefix_text::<F>(node),
            known: true,
            in_hardware: stands,
            action,
            target: self.entry_target::<F>(e),
            cost: u32::from(stands) * self.config.route_cost[Self::family_index::<F>()].max(1),
            table: fail.map_or(table, |f| self.pool_name(f.table)),
            reason,
            since_ns: fail.map_or(u64::from(x.since) << 27, |f| f.since),
            cover: match cover {
                Some(c) if c == node => format!("{} as a trap", self.prefix_text::<F>(c)),
                Some(c) => self.prefix_text::<F>(c),
                None => String::new(),
            },
            waiting_for: match fail {
                Some(f) if f.full() => format!("a free slot in {}", self.pool_name(f.table)),
                Some(_) => "the hardware".into(),
                None if x
                    .want
                    .dep()
                    .is_some_and(|d| self.peek(d) == DepState::Pending) =>
                {
                    "its next hop".into()
                }
                None => String::new(),
            },
            innocent,
            details,
            source: if x.head == NONE {
                0
            } else {
                self.aliases[x.head].source
            },
        }
    }

    /// The chip's entry is nobody's route: a trap that stands for prefixes below it.
    fn is_aggregate<F: Fam>(&self, e: u32) -> bool {
        let fib = F::fib(&self.fibs);
        let x = &fib.entries[e];
        !x.want.present() && x.have.present() && fib.cover.aggregate(x.node)
    }

    /// Aggregate traps that answer for a part of this prefix: few, each on a slot of the reserve.
    fn aggregates_below<F: Fam>(&self, node: u32) -> Vec<u32> {
        let fib = F::fib(&self.fibs);
        let mut out: Vec<u32> = self
            .reserve
            .users(F::CLS)
            .filter(|&e| self.is_aggregate::<F>(e))
            .map(|e| fib.entries[e].node)
            .filter(|&n| fib.cover.kernel_parent(n) == Some(node))
            .collect();
        out.sort_unstable();
        out
    }

    fn peek(&self, r: Ref) -> DepState {
        fn look<B: HwBody>(o: Option<&Obj<B>>) -> DepState {
            match o {
                Some(o) if o.have.is_some() => DepState::Ready,
                Some(o) if o.fail.is_some() => DepState::Failed,
                _ => DepState::Pending,
            }
        }
        match r.cls {
            Cls::Nexthop => look(self.hw.nexthops.get(r.id)),
            _ => look(self.hw.nhgs.get(r.id)),
        }
    }

    /// Why is this prefix in hardware, or not? A host address stands for the route that answers for it.
    pub fn explain_route(&self, prefix: IpNet) -> Explanation {
        self.explain_route_in(0, prefix)
    }

    /// The same of a VRF's table; `slot` is that of [`Store::vrf_slot`], 0 the default one's.
    pub fn explain_route_in(&self, slot: u8, prefix: IpNet) -> Explanation {
        match prefix {
            IpNet::V4(_) => self.explain_route_of::<V4>(slot, prefix.trunc()),
            IpNet::V6(_) => self.explain_route_of::<V6>(slot, prefix.trunc()),
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
                    action: o
                        .and_then(|o| o.have.as_ref())
                        .map_or("none", |h| match h.action {
                            TND_ACT_FORWARD => "forward",
                            TND_ACT_DROP => "drop",
                            _ => "trap",
                        }),
                    target: String::new(),
                    cost: o.map_or(0, |o| o.cost),
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
                    action: if there { "forward" } else { "none" },
                    target: format!("lladdr {}", row.mac),
                    cost: o.map_or(0, |o| o.cost),
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
                    innocent: Vec::new(),
                    details: Vec::new(),
                    source: n.source,
                }
            })
            .collect()
    }

    /// Where a host's entry (`Config::host_pools`) is, or did not fit.
    fn host_table(&self, class: usize, fail: Option<&Fail>) -> String {
        let pool = self.config.host_pools.get(class).copied().flatten();
        fail.map(|f| f.table)
            .or(pool)
            .map(|p| self.pool_name(p))
            .unwrap_or_default()
    }

    fn connected_text(&self, addr: IpAddr, ifindex: u32) -> String {
        let slot = self.slot_of(ifindex);
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

    /// Up to `limit` routes of a family after `cursor` (0 = from the start); returns the next cursor, 0 = end. Order is
    /// that of the store, not of the prefixes.
    pub fn routes(
        &self,
        family: Family,
        cursor: u64,
        limit: usize,
        out: &mut Vec<RouteRow>,
    ) -> u64 {
        match family {
            Family::V4 => self.routes_of::<V4>(cursor, limit, out),
            Family::V6 => self.routes_of::<V6>(cursor, limit, out),
        }
    }

    fn routes_of<F: Fam>(&self, cursor: u64, limit: usize, out: &mut Vec<RouteRow>) -> u64 {
        let fib = F::fib(&self.fibs);
        let mut at = cursor;
        let mut left = limit;
        while at < u64::from(fib.entries.bound()) {
            if left == 0 {
                return at;
            }
            let e = at as u32;
            at += 1;
            let x = &fib.entries[e];
            if x.node == NONE || (x.head == NONE && !x.have.present()) {
                continue;
            }
            left -= 1;
            let best = self
                .best_alias::<F>(e)
                .map(|b| b.0)
                .or((x.head != NONE).then_some(x.head));
            let alias = best.map(|a| &self.aliases[a]);
            out.push(RouteRow {
                prefix: self.bare_prefix::<F>(x.node),
                vrf_name: self.vrf_name(self.entry_slot::<F>(e)),
                vrf: u16::from(self.entry_slot::<F>(e)),
                kind: alias.map_or("aggregate", |a| kind_text(kind_of(a.kind))),
                target: self.entry_target::<F>(e),
                table: alias.map_or(0, |a| self.table_of(self.entry_slot::<F>(e), a.table)),
                metric: alias.map_or(0, |a| a.metric),
                state: self.entry_state::<F>(e),
                action: action_text(x.have),
                reason: self.entry_reason::<F>(e),
            });
        }
        0
    }

    fn neigh_row(&self, addr: IpAddr, ifindex: u32) -> NeighRow {
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
            dev: self.dev(ifindex),
            mac: n
                .filter(|n| n.mac != [0; 6])
                .map(|n| mac_text(n.mac))
                .unwrap_or_default(),
            state,
            reason,
        }
    }

    /// All neighbours of links that packets are forwarded by.
    pub fn neighbours(&self) -> Vec<NeighRow> {
        // Those of a VRF's device lead nowhere: the kernel makes them for its own packets there, without a word.
        let vrf = |ifindex| {
            let link = self.links.get(&ifindex);
            link.is_some_and(|l| matches!(l.link.kind, LinkKind::Vrf { .. }))
        };
        self.neighs
            .keys()
            .filter(|(_, ifindex)| !vrf(*ifindex))
            .map(|&(addr, ifindex)| self.neigh_row(addr, ifindex))
            .collect()
    }

    fn fdb_row(&self, k: FdbKey) -> FdbRow {
        let r = self.fdb.get(&k).copied().unwrap_or_default();
        let o = self.fdb_ids.get(&k).and_then(|&id| self.hw.fdb.get(id));
        let (state, mut reason) = object_state(self, o);
        let fid = self
            .topo
            .fid_of
            .get(&Domain::of(&k))
            .map_or(0, |f| *f as u16 + 1);
        if reason.is_empty() && state == "omitted" {
            reason = match self.topo.reasons.get(&k.bridge) {
                Some(r) => format!("{}: {r}", self.dev(k.bridge)),
                None if fid == 0 => self.no_domain_text(&k),
                None => String::new(),
            };
        }
        FdbRow {
            bridge: self.dev(k.bridge),
            fid,
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
            reason,
        }
    }

    /// All FDB entries.
    pub fn fdb(&self) -> Vec<FdbRow> {
        let mut keys: Vec<FdbKey> = self.fdb.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().map(|k| self.fdb_row(k)).collect()
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
                if let Some((f, w)) = t
                    .get(id)
                    .and_then(|o| Some((o.fail.as_ref()?, o.want.as_ref()?)))
                {
                    out.push((format!("{w:?}"), s.fail_text(f)));
                }
            }
        }
        of(self, &self.hw.vlans, &mut out);
        of(self, &self.hw.members, &mut out);
        of(self, &self.hw.vrfs, &mut out);
        of(self, &self.hw.rifs, &mut out);
        of(self, &self.hw.nexthops, &mut out);
        of(self, &self.hw.nhgs, &mut out);
        of(self, &self.hw.neighs, &mut out);
        of(self, &self.hw.fdb, &mut out);
        of(self, &self.hw.mdb, &mut out);
        out.truncate(limit);
        out
    }

    /// Router interfaces that are not in hardware, each for a reason: what needs them traps.
    pub fn rifs_failed(&self) -> usize {
        self.hw.rifs.failed()
    }

    /// The chip hands frames of this front-panel port to the CPU before it has looked at their addresses, all or those that
    /// a filter names: the kernel's bridge forwards, and learns.
    pub fn traps_all(&self, ifindex: u32) -> bool {
        // a bond that is no group of the chip is the kernel's as well
        !self.topo.port_of.contains_key(&ifindex)
            || self.topo.reasons.contains_key(&ifindex)
            || self.filters_trap(ifindex)
    }

    /// What follows from the events so far has been worked out.
    pub fn derived(&self) -> bool {
        !self.topo.dirty
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

fn unsupported_text(n: u8) -> &'static str {
    use crate::model::Unsupported::*;
    [
        Encap,
        SourcePrefix,
        Attribute,
        ResilientGroup,
        FdbNexthop,
        Metrics,
        Type,
    ]
    .into_iter()
    .find(|u| *u as u8 == n)
    .map_or("", |u| u.text())
}

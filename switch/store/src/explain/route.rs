//! Why a prefix is, or is not, in hardware, and the rows of `show routes`.

use super::Unreached;
use crate::api::{Action, Explanation, RouteRow, State};
use crate::fib::{
    Alias, Content, F_DEPEND, F_FAILED, F_OMIT, F_PARSER, Fam, SLOT_BITS, V4, V6, kind_of,
};
use crate::hw::table::{HwBody, Obj};
use crate::hw::{Cls, DepState, Fail, Ref};
use crate::model::{Route, RouteKey, RouteNextHops, RouteType, Unsupported};
use crate::paths::Target;
use crate::reason::Reason;
use crate::{Family, Store};
use ipnet::IpNet;
use tandem_abi::raw::*;
use tandem_cover::NONE;

impl Store {
    fn target_fail(&self, c: Content) -> Option<&Fail> {
        match c.dep()? {
            Ref {
                cls: Cls::Nexthop,
                id,
            } => self.hw.nexthops.get(id)?.fail.as_ref(),
            Ref { id, .. } => self.hw.nhgs.get(id)?.fail.as_ref(),
        }
    }

    fn entry_reason<F: Fam>(&self, e: u32) -> Option<Reason> {
        let fib = F::fib(&self.fibs);
        let x = &fib.entries[e];
        if self.is_aggregate::<F>(e) {
            return Some(Reason::Aggregate);
        }
        if x.head == NONE {
            return Some(Reason::Leaving);
        }
        if let Some(f) = self.fails.get(&Ref::new(F::CLS, e)) {
            return Some(self.fail_reason(f));
        }
        if x.is(F_PARSER) {
            return Some(Reason::Parser);
        }
        if x.is(F_OMIT) {
            return Some(Reason::LeftOut);
        }
        if !self.slot_stands(self.entry_slot::<F>(e)) {
            let id = u32::from(self.entry_slot::<F>(e)) - 1;
            let fail = self.hw.vrfs.get(id).and_then(|o| o.fail.as_ref());
            let vrf = fail.map(|f| Reason::Vrf(self.fail_reason(f).into()));
            return vrf.or(Some(Reason::VrfPending));
        }
        if self.has_tos::<F>(e) {
            return Some(Reason::Tos);
        }
        let Some((a, c)) = self.best_alias::<F>(e) else {
            return Some(Reason::Dead);
        };
        let alias = &self.aliases[a];
        if alias.table != 0 && self.shadowed::<F>(e) {
            return Some(Reason::Shadowed);
        }
        if let Some(u) = unsupported_of(alias.unsupported) {
            return Some(Reason::Unsupported(u));
        }
        let differs = self.depends_on_ingress::<F>(e);
        if differs && self.hides::<F>(e) {
            return Some(Reason::Unsupported(Unsupported::Hidden));
        }
        if differs {
            return Some(Reason::ByIngress);
        }
        let path = &self.paths.sets[alias.path];
        match kind_of(alias.kind) {
            RouteType::Unicast => match path.target {
                Target::Trap(w) => return Some(self.path_reason(w)),
                Target::Connected(_) => return Some(Reason::Connected),
                _ => {}
            },
            // it needs no next hop, whatever the kernel names: none, or lo (IPv6)
            RouteType::Blackhole => {}
            RouteType::Local | RouteType::Broadcast | RouteType::Anycast => {
                return Some(Reason::Own);
            }
            RouteType::Unreachable | RouteType::Prohibit => return Some(Reason::IcmpError),
            _ => return Some(Reason::RouteType),
        }
        let n = fib.cover.forced(x.node);
        if n > 0 {
            return Some(Reason::Cover(n));
        }
        if let Some(f) = self.target_fail(c) {
            return Some(Reason::NextHop(self.fail_reason(f).into()));
        }
        if x.is(F_DEPEND) {
            return Some(Reason::Depends);
        }
        let (unresolved, all) = self.unresolved(c);
        all.then_some(match c.kind {
            TND_RT_NEXTHOP => Reason::NextHopUnresolved,
            _ => Reason::NextHopsUnresolved(unresolved.len()),
        })
    }

    /// Next hops of a route's content that stand in the chip without a neighbour's address, and whether these are all
    /// that it has: each sends the flows that it gets to the CPU.
    fn unresolved(&self, c: Content) -> (Vec<u32>, bool) {
        let members: Vec<u32> = match c.kind {
            TND_RT_NEXTHOP => vec![c.target],
            TND_RT_NHG => match self.hw.nhgs.get(c.target).and_then(|g| g.have.as_ref()) {
                Some(g) => g.members.iter().map(|m| m.0).collect(),
                None => Vec::new(),
            },
            _ => Vec::new(),
        };
        let count = members.len();
        let open = |id: &u32| {
            let o = self.hw.nexthops.get(*id).and_then(|o| o.have.as_ref());
            o.is_some_and(|n| n.mac.is_none())
        };
        let out: Vec<u32> = members.into_iter().filter(open).collect();
        let all = count > 0 && out.len() == count;
        (out, all)
    }

    /// Which of its next hops trap, where others forward.
    fn member_details<F: Fam>(&self, e: u32) -> Vec<String> {
        let Some((_, c)) = self.best_alias::<F>(e) else {
            return Vec::new();
        };
        let (unresolved, all) = self.unresolved(c);
        let named = unresolved.into_iter().filter(|_| !all);
        named
            .filter_map(|id| self.paths.gateway_info.get(id as usize)?.as_ref())
            .map(|g| {
                let dev = self.dev(g.ifindex);
                format!(
                    "flows via {} dev {dev} go to the CPU: this next hop is not resolved",
                    g.addr
                )
            })
            .collect()
    }

    fn entry_state<F: Fam>(&self, e: u32) -> State {
        let fib = F::fib(&self.fibs);
        let x = &fib.entries[e];
        if self.is_aggregate::<F>(e) {
            State::Installed
        } else if x.is(F_FAILED) {
            State::Failed
        } else if x.is(F_PARSER | F_OMIT) {
            State::Omitted
        } else if !self.slot_stands(self.entry_slot::<F>(e)) {
            let vrf = self.hw.vrfs.get(u32::from(self.entry_slot::<F>(e)) - 1);
            match vrf.and_then(|o| o.fail.as_ref()) {
                Some(_) => State::Failed,
                None => State::Pending,
            }
        } else if x.have.present() && x.have == x.want.on_chip() {
            State::Installed
        } else if x.have.is_trap() && x.want.present() {
            // In hardware, as a trap: forced, or its target does not fit.
            State::Installed
        } else {
            State::Pending
        }
    }

    fn entry_target<F: Fam>(&self, e: u32) -> String {
        match self.best_alias::<F>(e) {
            Some((a, _)) => self.path_text(&self.paths.sets[self.aliases[a].path]),
            None => String::new(),
        }
    }

    pub(super) fn prefix_text<F: Fam>(&self, node: u32) -> String {
        let slot = F::fib(&self.fibs).cover.prefix(node).0.slot();
        self.in_vrf(self.bare_prefix::<F>(node), slot)
    }

    /// With the VRF's name, but of the default one.
    pub(super) fn in_vrf(&self, prefix: String, slot: u8) -> String {
        match slot {
            0 => prefix,
            slot => format!("{prefix} vrf {}", self.vrf_name(slot)),
        }
    }

    /// The prefix without its VRF.
    fn bare_prefix<F: Fam>(&self, node: u32) -> String {
        let net = self.net::<F>(node);
        net.map_or_else(String::new, |net| net.to_string())
    }

    /// A node's prefix.
    pub(super) fn net<F: Fam>(&self, node: u32) -> Option<IpNet> {
        let (bits, len) = F::fib(&self.fibs).cover.prefix(node);
        IpNet::new(bits.to_ip(), len.saturating_sub(SLOT_BITS)).ok()
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
        let mut action = Action::of(x.have.action);
        let below = if stands && reason.is_none() {
            self.aggregates_below::<F>(node)
        } else {
            Vec::new()
        };
        // The chip takes the longest match, also where the kernel has no such prefix.
        let first = (stands && reason.is_none() && exact.is_none() && len == F::WIDTH)
            .then(|| fib.cover.hardware_match(bits))
            .flatten()
            .filter(|&n| fib.at_node(n).is_some_and(|e| self.is_aggregate::<F>(e)));
        let cover = if first.is_some() {
            reason = Some(Reason::AggregateFirst);
            action = Action::Trap;
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
        let mut details = Vec::new();
        let family = Self::family_of::<F>();
        if first.is_none() && stands && reason.is_none() {
            details = self.ingress_details(slot, family);
            details.extend(self.member_details::<F>(e));
            details.extend(below.iter().map(|&n| {
                let what = self.prefix_text::<F>(n);
                format!("{what} of it goes to the CPU: {}", Reason::Aggregate)
            }));
        }
        let cost = self.config.cost(TND_CLS_ROUTE, Some(F::AF));
        Explanation {
            key: self.prefix_text::<F>(node),
            net: self.net::<F>(node),
            slot,
            devices: Vec::new(),
            known: true,
            in_hardware: stands,
            state: self.entry_state::<F>(e),
            action,
            target: self.entry_target::<F>(e),
            cost: u32::from(stands) * cost.map_or(1, |c| c.1),
            table: fail
                .map(|f| f.table)
                .or(cost.map(|c| c.0))
                .map_or_else(String::new, |p| self.pool_name(p)),
            unreached: self.unreached(slot, family),
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

    fn family_of<F: Fam>() -> Family {
        match F::CLS {
            Cls::Route6 => Family::V6,
            _ => Family::V4,
        }
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

    /// The routes of each IPv6 key that has several of which one has several ways, in the kernel's order.
    pub fn several6(&self) -> Vec<Vec<Route>> {
        let fib = &self.fibs.v6;
        let mut all = Vec::new();
        for e in 0..fib.entries.bound() {
            let x = &fib.entries[e];
            if x.node == NONE || x.head == NONE || self.aliases[x.head].next == NONE {
                continue;
            }
            let mut routes: Vec<Route> = Vec::new();
            let mut at = x.head;
            while let Some(a) = self.aliases.get(at).filter(|_| at != NONE) {
                routes.extend(self.route_of_alias(a));
                at = a.next;
            }
            let one_key =
                |a: &Route, b: &Route| (a.key.table, a.key.metric) == (b.key.table, b.key.metric);
            let lists = routes.chunk_by(one_key).filter(|list| {
                let many = |r: &Route| matches!(r.nexthops, RouteNextHops::Many(_));
                list.len() > 1 && list.iter().any(many)
            });
            all.extend(lists.map(<[Route]>::to_vec));
        }
        all
    }

    /// A route as its source said it, without its preferred source.
    fn route_of_alias(&self, a: &Alias) -> Option<Route> {
        let fib = &self.fibs.v6;
        let (bits, len) = fib.cover.prefix(fib.entries[a.entry].node);
        let key = self.paths.sets[a.path].key.as_ref()?;
        Some(Route {
            key: RouteKey {
                table: self.table_of(bits.slot(), a.table),
                prefix: IpNet::new(bits.to_ip(), len.saturating_sub(SLOT_BITS)).ok()?,
                tos: a.tos,
                metric: a.metric,
                position: a.position,
            },
            kind: kind_of(a.kind),
            scope: a.scope,
            protocol: a.protocol,
            prefsrc: None,
            nexthops: key.nexthops.clone(),
            unsupported: unsupported_of(a.unsupported),
        })
    }

    fn routes_of<F: Fam>(&self, cursor: u64, limit: usize, out: &mut Vec<RouteRow>) -> u64 {
        let fib = F::fib(&self.fibs);
        let mut at = cursor;
        let mut left = limit;
        let mut unreached = Unreached::default();
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
                kind: alias.map(|a| kind_of(a.kind)),
                target: self.entry_target::<F>(e),
                table: alias.map_or(0, |a| self.table_of(self.entry_slot::<F>(e), a.table)),
                metric: alias.map_or(0, |a| a.metric),
                source: alias.map_or(0, |a| a.source),
                state: self.entry_state::<F>(e),
                action: Action::of(x.have.action),
                reason: self.entry_reason::<F>(e),
                unreached: unreached.of(self, self.entry_slot::<F>(e), Self::family_of::<F>()),
            });
        }
        0
    }
}

fn unsupported_of(n: u8) -> Option<Unsupported> {
    use crate::model::Unsupported::*;
    [
        Encap,
        SourcePrefix,
        Attribute,
        BucketsUnread,
        FdbNexthop,
        Metrics,
        Type,
        Hidden,
    ]
    .into_iter()
    .find(|u| *u as u8 == n)
}

//! From a set of next hops to next-hop and group objects of the chip.

use crate::Store;
use crate::fib::Content;
use crate::hw::bodies::{Nexthop, Nhg};
use crate::hw::{Cls, Ref, gateway_hash};
use crate::model::{ConfScope, Family, NextHop, NexthopObject, SourceId, hand_on, nud};
use crate::paths::{Gateway, PathSet, Select, Target, Why};
use crate::reason::Reason;
use crate::slices::{Going, Work};
use crate::sync::Phase;
use std::net::IpAddr;
use tandem_abi::raw::*;
use tandem_cover::NONE;

/// Largest weight of a member (`struct tnd_nhg_member`).
const MAX_WEIGHT: u32 = 256;

/// What a list of next hops is.
struct Resolved {
    target: Target,
    /// Interfaces and gateways, in order.
    next_hops: Vec<(u32, IpAddr)>,
    /// As many, if it is a group.
    weights: Option<Vec<u32>>,
    /// Gateways that the kernel doesn't use now, and will again: they are to be watched.
    aside: Vec<(u32, IpAddr)>,
}

impl From<Target> for Resolved {
    fn from(target: Target) -> Self {
        Resolved {
            target,
            next_hops: Vec::new(),
            weights: None,
            aside: Vec::new(),
        }
    }
}

/// A share goes to another next hop.
fn give(n: &mut NextHop, to: NextHop) {
    *n = NextHop {
        weight: n.weight,
        ..to
    };
}

impl Store {
    /// Looks at a path that something changed for.
    pub(crate) fn look_at_path(&mut self, id: u32, now: u64) {
        let p = &mut self.paths.sets[id];
        p.dirty = false;
        match (&p.key, p.count) {
            (None, _) => {}
            (_, 0) => self.free_path(id, now),
            _ => self.refresh_path(id, now),
        }
    }

    fn free_path(&mut self, id: u32, now: u64) {
        let p = std::mem::take(&mut self.paths.sets[id]);
        if let Target::Connected(i) = p.target {
            self.needs_interface_no_more(i);
        }
        for next_hop in p.next_hops {
            self.release_gateway(next_hop, id, now);
        }
        if p.group != NONE {
            self.hw.want::<Nhg>(p.group, None, now);
        }
        if let Some(key) = p.key {
            if let crate::model::RouteNextHops::Object(o) = key.nexthops
                && let Some(l) = self.paths.object_paths.get_mut(&o)
            {
                l.retain(|&x| x != id);
                if l.is_empty() {
                    self.paths.object_paths.remove(&o);
                }
            }
            self.paths.index_path(id, &key, false);
            self.paths.by_key.remove(&key);
        }
        self.paths.sets.remove(id);
    }

    /// The kernel would not use this next hop of a route of this family now.
    fn next_hop_dead(&self, n: &NextHop, family: Family) -> bool {
        if n.ifindex == 0 {
            return n.dead;
        }
        let Some(l) = self.links.get(&n.ifindex) else {
            return true;
        };
        // also where the last address of this family has gone (net/ipv4/fib_frontend.c `fib_disable_ip`)
        if !l.link.admin_up || n.dead {
            return true;
        }
        if l.link.carrier {
            return false;
        }
        // that of all or the device's own: net/ipv4/devinet.c `IN_DEV_ORCONF`, IPv6 alike
        [ConfScope::All, ConfScope::Interface(n.ifindex)]
            .into_iter()
            .any(|scope| self.conf(family, scope).ignore_linkdown == Some(true))
    }

    /// Computes what a path means; its routes follow if that changed.
    pub(crate) fn refresh_path(&mut self, id: u32, now: u64) {
        let Some(key) = self.paths.sets[id].key.clone() else {
            return;
        };
        let Resolved {
            target,
            next_hops,
            weights,
            aside,
        } = match self.paths.next_hops(&key) {
            Err(t) => t.into(),
            Ok((next_hops, select)) => self.resolve(next_hops, select, key.family),
        };
        // Take the new next hops before the old ones are given back.
        let mut new_next_hops: Vec<u32> = Vec::with_capacity(next_hops.len());
        for (ifindex, addr) in &next_hops {
            let g = self.hold_gateway(*ifindex, *addr, id, now);
            new_next_hops.push(g);
        }
        let target = match (target, weights) {
            (Target::Forward(_), Some(weights)) => {
                let hash = self.hash_of(key.family);
                let members = new_next_hops.iter().copied().zip(weights).collect();
                let mut g = self.paths.sets[id].group;
                if g == NONE {
                    g = self.hw.nhgs.take();
                    self.paths.sets[id].group = g;
                    if self.paths.group_owner.len() <= g as usize {
                        self.paths.group_owner.resize(g as usize + 1, NONE);
                    }
                    self.paths.group_owner[g as usize] = id;
                }
                self.hw.want(g, Some(Nhg { hash, members }), now);
                Target::Forward(Content::group(g))
            }
            (Target::Forward(_), None) => match new_next_hops.first() {
                Some(&n) => Target::Forward(Content::nexthop(n)),
                None => Target::Trap(Why::Nowhere),
            },
            (t, _) => t,
        };
        if !matches!(
            target,
            Target::Forward(Content {
                kind: TND_RT_NHG,
                ..
            })
        ) {
            let g = std::mem::replace(&mut self.paths.sets[id].group, NONE);
            if g != NONE {
                self.hw.want::<Nhg>(g, None, now);
            }
        }
        for (ifindex, addr) in aside {
            new_next_hops.push(self.hold_gateway(ifindex, addr, id, now));
        }
        new_next_hops.sort_unstable();
        new_next_hops.dedup();
        let old_next_hops = std::mem::replace(&mut self.paths.sets[id].next_hops, new_next_hops);
        for next_hop in old_next_hops {
            if !self.paths.sets[id].next_hops.contains(&next_hop) {
                self.release_gateway(next_hop, id, now);
            }
        }
        let old = std::mem::replace(&mut self.paths.sets[id].target, target);
        if old != target {
            if let Target::Connected(i) = target {
                self.needs_interface(i);
            }
            if let Target::Connected(i) = old {
                self.needs_interface_no_more(i);
            }
            self.for_users(id, Work::Reeval, now);
        }
    }

    /// Decides what a list of next hops is.
    fn resolve(&self, mut next_hops: Vec<NextHop>, select: Select, family: Family) -> Resolved {
        let total = next_hops.len();
        if select == Select::Buckets {
            // The kernel takes a dead one out of the group in a moment. Nobody else's flows move meanwhile.
            hand_on(&mut next_hops, |n| self.next_hop_dead(n, family), give);
        }
        let mut alive: Vec<NextHop> = next_hops
            .into_iter()
            .filter(|n| !self.next_hop_dead(n, family))
            .collect();
        let Some(&first) = alive.first() else {
            return match total {
                0 => Target::Trap(Why::Nowhere).into(),
                _ => Target::Dead.into(),
            };
        };
        if select == Select::Single {
            if !self.topo.may_have_rif(first.ifindex) {
                return Target::Trap(Why::NotOffloaded(first.ifindex)).into();
            }
            return match first.gateway {
                None => Target::Connected(first.ifindex).into(),
                Some(g) => Resolved {
                    next_hops: vec![(first.ifindex, g)],
                    ..Target::Forward(Content::ABSENT).into()
                },
            };
        }
        // IPv6 has no such sysctl; groups of objects need none; buckets don't ask (`nexthop_select_path_res`).
        let asks = match select {
            Select::Multipath => self.settings.multipath_use_neigh && family == Family::V4,
            Select::Group => true,
            Select::Single | Select::Buckets => false,
        };
        let mut aside = Vec::new();
        if asks {
            let failed = |n: &NextHop| {
                let neigh = n.gateway.and_then(|g| self.neighs.get(&(g, n.ifindex)));
                neigh.is_some_and(|r| r.state & nud::FAILED != 0)
            };
            let skipped = alive.iter().filter(|n| failed(n));
            aside = skipped
                .filter_map(|n| Some((n.ifindex, n.gateway?)))
                .collect();
            hand_on(&mut alive, failed, give);
        }
        // all that is left is one way that leads to the hosts themselves
        if let ([only], []) = (alive.as_slice(), aside.as_slice())
            && only.gateway.is_none()
            && self.topo.may_have_rif(only.ifindex)
        {
            return Target::Connected(only.ifindex).into();
        }
        let mut out: Vec<(u32, IpAddr)> = Vec::with_capacity(alive.len());
        let mut weights: Vec<u32> = Vec::with_capacity(alive.len());
        for n in &alive {
            let Some(g) = n.gateway else {
                return Target::Trap(Why::ConnectedMember).into();
            };
            if !self.topo.may_have_rif(n.ifindex) {
                return Target::Trap(Why::NotOffloaded(n.ifindex)).into();
            }
            let mut weight = n.weight;
            if select == Select::Buckets {
                // Runs of one way next to each other are one, and a long one is several members.
                if let Some(last) = weights.last_mut()
                    && out.last() == Some(&(n.ifindex, g))
                {
                    let more = weight.min(MAX_WEIGHT - *last);
                    (*last, weight) = (*last + more, weight - more);
                }
                while weight > MAX_WEIGHT {
                    out.push((n.ifindex, g));
                    weights.push(MAX_WEIGHT);
                    weight -= MAX_WEIGHT;
                }
                if weight == 0 {
                    continue;
                }
            } else if weight == 0 || weight > MAX_WEIGHT {
                return Target::Trap(Why::TooLarge).into();
            }
            out.push((n.ifindex, g));
            weights.push(weight);
        }
        if out.len() > TND_NHG_MAX_MEMBERS {
            return match select {
                Select::Buckets => Target::Trap(Why::Pieces(out.len() as u32)).into(),
                _ => Target::Trap(Why::TooLarge).into(),
            };
        }
        let policy = self.hash_policy(family);
        if policy > 1 {
            return Target::Trap(Why::HashPolicy(policy)).into();
        }
        Resolved {
            target: Target::Forward(Content::ABSENT),
            next_hops: out,
            weights: Some(weights),
            aside,
        }
    }

    fn hash_policy(&self, family: Family) -> u8 {
        match family {
            Family::V4 => self.settings.hash_policy_v4,
            Family::V6 => self.settings.hash_policy_v6,
        }
    }

    fn hash_of(&self, family: Family) -> u32 {
        if self.hash_policy(family) == 1 {
            TND_HASH_L4
        } else {
            TND_HASH_L3
        }
    }

    // -- gateways ---------------------------------------------------------------------------------------------------

    fn hold_gateway(&mut self, ifindex: u32, addr: IpAddr, path: u32, now: u64) -> u32 {
        let id = match self.paths.gateways.get(&(ifindex, addr)) {
            Some(&id) => id,
            None => {
                let id = self.hw.nexthops.take();
                self.paths.gateways.insert((ifindex, addr), id);
                if self.paths.gateway_info.len() <= id as usize {
                    self.paths.gateway_info.resize(id as usize + 1, None);
                }
                self.paths.gateway_info[id as usize] = Some(Gateway {
                    ifindex,
                    addr,
                    paths: Vec::new(),
                });
                id
            }
        };
        let Some(info) = self.paths.gateway_info[id as usize].as_mut() else {
            return id;
        };
        if info.paths.contains(&path) {
            return id;
        }
        info.paths.push(path);
        if info.paths.len() == 1 {
            // First user: the interface needs a RIF, the kernel shall resolve.
            self.wanted.insert((ifindex, addr));
            self.needs_interface(ifindex);
            self.update_gateway(id, now);
        }
        id
    }

    fn release_gateway(&mut self, id: u32, path: u32, now: u64) {
        let Some(info) = self
            .paths
            .gateway_info
            .get_mut(id as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        info.paths.retain(|&p| p != path);
        if info.paths.is_empty() {
            let (ifindex, addr) = (info.ifindex, info.addr);
            self.wanted.insert((ifindex, addr));
            self.needs_interface_no_more(ifindex);
            self.hw.want::<Nexthop>(id, None, now);
        }
    }

    /// One gateway more, or one path without a gateway, leads over an interface, which so needs a router interface.
    fn needs_interface(&mut self, ifindex: u32) {
        if !self.topo.rif_of.contains_key(&ifindex) {
            self.topo.dirty.rifs.insert(ifindex);
        }
        *self.paths.on_interface.entry(ifindex).or_insert(0) += 1;
    }

    /// One less.
    fn needs_interface_no_more(&mut self, ifindex: u32) {
        if let Some(n) = self.paths.on_interface.get_mut(&ifindex) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.paths.on_interface.remove(&ifindex);
                self.topo.dirty.rifs.insert(ifindex);
            }
        }
    }

    /// The next hop of a gateway follows its neighbour and its RIF.
    pub(crate) fn update_gateway(&mut self, id: u32, now: u64) {
        self.slices.look();
        let Some(Some(info)) = self.paths.gateway_info.get(id as usize) else {
            return;
        };
        if info.paths.is_empty() {
            return;
        }
        let mac = self
            .neighs
            .get(&(info.addr, info.ifindex))
            .filter(|n| n.usable() && !self.hw.found_otherwise.contains(&id))
            .map(|n| n.mac);
        // Without a RIF yet: the next look at the topology makes one and comes back.
        let Some(&rif) = self.topo.rif_of.get(&info.ifindex) else {
            return;
        };
        let hash = gateway_hash(info.ifindex, info.addr);
        let want = self.hw.nexthops.get(id).and_then(|o| o.want.as_ref());
        let was = want.and_then(|w| w.mac);
        // the kernel may have no route by it any more, which the dump's end says: to this station it never sent
        let moves = was.zip(mac).is_some_and(|(was, mac)| was != mac);
        let mac = mac.filter(|_| !(moves && self.dump_runs()));
        if moves && mac.is_none() {
            self.hw.found_otherwise.insert(id);
        }
        self.hw.want(id, Some(Nexthop { hash, rif, mac }), now);
    }

    /// What a dump did not confirm, and what a chip was attached to with, is gone: gateways that have moved meanwhile go by their
    /// stations.
    pub(crate) fn swept_away(&mut self, now: u64) {
        if self.phase == Phase::Normal && !self.dump_runs() {
            // a plan that ends with it goes on
            self.slices.cut |= !self.hw.found_otherwise.is_empty();
            for id in std::mem::take(&mut self.hw.found_otherwise) {
                self.update_gateway(id, now);
            }
        }
    }

    /// The chip has this next hop, and it is another one than it is to be.
    pub(crate) fn found_otherwise(&mut self, id: u32, now: u64) {
        if self.warm && self.phase != Phase::Normal {
            self.hw.found_otherwise.insert(id);
            self.update_gateway(id, now);
        }
    }

    pub(crate) fn nexthop_released(&mut self, id: u32) {
        let info = self.paths.gateway_info.get_mut(id as usize);
        if let Some(g) = info.and_then(Option::take) {
            self.paths.gateways.remove(&(g.ifindex, g.addr));
        }
    }

    pub(crate) fn neigh_released(&mut self, id: u32) {
        if let Some(k) = self.neigh_keys.remove(&id) {
            self.neigh_ids.remove(&k);
        }
    }

    pub(crate) fn fdb_released(&mut self, id: u32) {
        self.topo.last_behind.remove(&id);
        if let Some(k) = self.fdb_keys.remove(&id) {
            self.fdb_ids.remove(&k);
        }
    }

    pub(crate) fn nhg_released(&mut self, id: u32) {
        if let Some(o) = self.paths.group_owner.get_mut(id as usize) {
            *o = NONE;
        }
    }

    pub(crate) fn member_released(&mut self, id: u32) {
        if let Some(k) = self.member_keys.remove(&id) {
            self.member_ids.remove(&k);
            // its id may be another port's next
            self.topo.moving.remove(&(k.0, id));
            // what waited for it on this port may go on
            self.look_whether_switched(k.0);
        }
    }

    /// A next hop or group came to stand, or failed: its dependents look again.
    pub(crate) fn target_changed(&mut self, r: Ref, now: u64) {
        match r.cls {
            Cls::Nexthop => {
                let paths = match self.paths.gateway_info.get(r.id as usize) {
                    Some(Some(g)) => g.paths.clone(),
                    _ => return,
                };
                for p in paths {
                    match self.paths.sets[p].group {
                        NONE => self.for_users(p, Work::Queue, now),
                        g => self.hw.retry_dependent(Ref::new(Cls::Nhg, g)),
                    }
                }
            }
            Cls::Nhg => {
                if let Some(&p) = self.paths.group_owner.get(r.id as usize)
                    && p != NONE
                {
                    self.for_users(p, Work::Queue, now);
                }
            }
            _ => {}
        }
    }

    // -- next-hop objects -------------------------------------------------------------------------------------------

    pub(crate) fn upsert_nexthop(
        &mut self,
        source: SourceId,
        o: NexthopObject,
        generation: u16,
        now: u64,
    ) {
        let id = o.id;
        if let Some((old, src, g)) = self.paths.objects.get_mut(&id)
            && *old == o
        {
            (*src, *g) = (source.0, generation);
            self.counters.unchanged += 1;
            return;
        }
        let new = o.kind.clone();
        let old = self.paths.objects.insert(id, (o, source.0, generation));
        self.paths
            .index_object(id, old.as_ref().map(|x| &x.0.kind), Some(&new));
        for p in self.paths.using_object(id) {
            self.paths.touch(p);
        }
        self.refresh_paths(now);
    }

    /// The kernel removes the object's routes with it, and it from its groups; groups left empty go as well. No message
    /// says so.
    pub(crate) fn remove_nexthop(&mut self, id: u32, now: u64) {
        let Some((old, ..)) = self.paths.objects.remove(&id) else {
            return;
        };
        let groups = self
            .paths
            .object_groups
            .get(&id)
            .cloned()
            .unwrap_or_default();
        self.paths.index_object(id, Some(&old.kind), None);
        for p in self
            .paths
            .object_paths
            .get(&id)
            .cloned()
            .unwrap_or_default()
        {
            self.for_users(p, Work::Remove(Going::All), now);
        }
        for g in groups {
            let Some((o, ..)) = self.paths.objects.get_mut(&g) else {
                continue;
            };
            let Some(left) = o.kind.without(|m| m == id) else {
                self.remove_nexthop(g, now);
                continue;
            };
            let before = std::mem::replace(&mut o.kind, left.clone());
            self.paths.index_object(g, Some(&before), Some(&left));
            for p in self.paths.object_paths.get(&g).cloned().unwrap_or_default() {
                self.paths.touch(p);
            }
        }
        self.refresh_paths(now);
    }

    /// For explain: the path of a route in words.
    pub(crate) fn path_text(&self, p: &PathSet) -> String {
        let Some(key) = &p.key else {
            return String::new();
        };
        match self.paths.next_hops(key) {
            Ok((next_hops, Select::Buckets)) => {
                let all: u32 = next_hops.iter().map(|n| n.weight).sum();
                let mut ways: Vec<(String, u32)> = Vec::new();
                for n in &next_hops {
                    let way = self.way_text(n);
                    match ways.iter_mut().find(|w| w.0 == way) {
                        Some(w) => w.1 += n.weight,
                        None => ways.push((way, n.weight)),
                    }
                }
                let ways = ways
                    .iter()
                    .map(|(way, n)| format!("{way} {n} of {all} buckets"));
                ways.collect::<Vec<_>>().join(", ")
            }
            Ok((next_hops, select)) => next_hops
                .iter()
                .map(|n| match select {
                    Select::Single => self.way_text(n),
                    _ => format!("{} weight {}", self.way_text(n), n.weight),
                })
                .collect::<Vec<_>>()
                .join(", "),
            Err(_) => String::new(),
        }
    }

    fn way_text(&self, n: &NextHop) -> String {
        let dev = self.dev(n.ifindex);
        match n.gateway {
            Some(g) => format!("via {g} dev {dev}"),
            None => format!("dev {dev}"),
        }
    }

    /// Why a path isn't forwarded.
    pub(crate) fn path_reason(&self, w: Why) -> Reason {
        match w {
            Why::NotOffloaded(i) => {
                let why = self.topo.reasons.get(&i).cloned();
                Reason::NotOffloaded(self.dev(i), why.map(Box::new))
            }
            Why::Nowhere => Reason::Nowhere,
            Why::NoObject(id) => Reason::NoObject(id),
            Why::ConnectedMember => Reason::ConnectedMember,
            Why::TooLarge => Reason::TooLarge,
            Why::Pieces(n) => Reason::Pieces(n),
            Why::HashPolicy(p) => Reason::HashPolicy(p),
            Why::Unsupported(u) => Reason::Unsupported(u),
        }
    }

    /// Name of an interface.
    pub(crate) fn dev(&self, ifindex: u32) -> String {
        self.links
            .get(&ifindex)
            .map_or_else(|| format!("if{ifindex}"), |l| l.link.name.clone())
    }
}

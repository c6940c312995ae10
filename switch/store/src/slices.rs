//! What one event changes for many entries, in slices: routes that the kernel removed in silence, those of a path that
//! leads elsewhere now, all below a prefix or in a VRF, neighbours in a prefix or on an interface, gateways, paths, bridges,
//! domains, memberships, interfaces, stations, groups, rules of lists, and what a dump did not confirm.
//!
//! ```text
//!   apply, complete, plan ─► a walk ─► at once, up to SLICE steps ─► the rest: later
//!                                                                      │
//!              nothing is planned, no event is taken, until nothing is left ◄── catch_up, SLICE steps at a time
//! ```
//!
//! As no event comes between, all that comes later finds the entries as if all had been done at once; as nothing is
//! planned meanwhile, the chip is never told of some without the others. A walk keeps its place by key, or by what
//! moves with the routes of its path: answers of the chip that come between may take entries away.

use crate::Store;
use crate::api::Domain;
use crate::fib::{Alias, Content, F_DEPEND, F_OMIT, Fam, V4, V6};
use crate::hw::{Cls, HwClass, Ref, with_class};
use crate::mdb::GroupKey;
use crate::model::{FdbKey, Key, KindSet, SourceId};
use crate::near::TOGETHER;
use crate::sync::Phase;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Bound;
use tandem_abi::raw::TND_TRAP_LOCAL;
use tandem_cover::NONE;

/// Entries looked at between two calls of [`Store::catch_up`] or [`Store::plan`].
pub const SLICE: usize = 4096;

/// Before and behind all others.
pub(crate) const FIRST_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
pub(crate) const LAST_ADDRESS: IpAddr = IpAddr::V6(Ipv6Addr::from_bits(u128::MAX));

/// RT_SCOPE_HOST: a route to an own address survives its link going down.
const SCOPE_HOST: u8 = 254;

/// Routes of a path that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Going {
    /// All.
    All,
    /// Those of IPv4.
    V4,
    /// Those of IPv4 and of one source; but those to own addresses, unless these go as well.
    Of { source: u8, own: bool },
}

impl Going {
    fn takes(self, a: &Alias) -> bool {
        match self {
            Going::All => true,
            Going::V4 => !a.v6,
            Going::Of { source, own } => {
                !a.v6 && a.source == source && (own || a.scope != SCOPE_HOST)
            }
        }
    }
}

/// What is done with the routes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// They go.
    Remove(Going),
    /// What their prefixes should be is computed again.
    Reeval,
    /// Their prefixes are queued: what they lead to may be there now.
    Queue,
}

/// What is done with all prefixes below one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Each {
    /// Their routes go, its own as well.
    Remove,
    /// What they and it should be is computed again.
    Reeval,
    /// Those that it may answer for look again.
    Own,
    /// Of them those that it does not answer for.
    Waiting,
}

/// All prefixes below one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Below<F> {
    top: (F, u8),
    each: Each,
    /// The last one that was done.
    after: Option<(F, u8)>,
}

/// What is done with neighbours, gateways, stations and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// They look again.
    Reeval,
    /// What they refer to came to stand or failed.
    Retry,
    /// They go.
    Remove,
}

/// A part of an index: from here on, up to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span<K> {
    from: Bound<K>,
    to: K,
}

impl<K: Copy> Span<K> {
    pub const fn new(from: K, to: K) -> Span<K> {
        let from = Bound::Included(from);
        Span { from, to }
    }

    pub fn left(self) -> (Bound<K>, Bound<K>) {
        (self.from, Bound::Included(self.to))
    }

    pub fn behind(self, k: K) -> Span<K> {
        let from = Bound::Excluded(k);
        Span { from, ..self }
    }
}

/// What is left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// The routes of a path.
    Path(u32, Work),
    Below4(Below<V4>),
    Below6(Below<V6>),
    /// Neighbours by address.
    Neighbours(Span<(IpAddr, u32)>),
    /// Those on an interface.
    On(Span<(u32, IpAddr)>, Then),
    /// Gateways by interface.
    Gateways(Span<(u32, IpAddr)>, Then),
    /// Paths that something changed for.
    Paths,
    /// Routes of paths, from this one on, that lead to an interface.
    Leading(u32, u32, Going),
    /// Next-hop objects of a source, by interface.
    Objects(Span<(u32, u32)>, u8),
    /// Bridges that are to be looked at, and their domains: those of which VLANs may be others, by the ports in them; which go,
    /// and which come; the bridges' reasons.
    Bridges(Span<u32>),
    VlanSets,
    VlansIn(Span<(u32, u32)>),
    Gone(Span<Domain>),
    Come,
    BridgeReasons,
    /// Where the chip has seen stations is forgotten.
    Forget(Span<FdbKey>),
    /// VLANs and filters of a device that has gone.
    VlansOf(u32),
    FiltersOf(u32),
    /// Filters whose rules are made anew; lists of such; rules of one of which that is not wanted yet.
    Rules,
    Lists,
    Due((u16, u16)),
    /// Memberships that are to be looked at.
    Members,
    /// VLAN interfaces that are.
    VlanDevices,
    /// Router interfaces.
    Rifs,
    /// Stations of a bridge or a domain.
    Stations(Span<FdbKey>, Then),
    /// Those that lead to a device.
    Behind(Span<(u32, FdbKey)>, Then),
    /// Those whose entries have table ids from this one on: they try again where they refer to this group of ports.
    OnLag(u32, u32),
    /// Multicast groups of a bridge or a domain.
    Groups(Span<GroupKey>, Then),
    /// A device goes from the groups that it is a member of.
    Member(Span<(u32, GroupKey)>),
    /// All of a class, from this table id on, try again.
    Retry(Cls, u32),
    Sweep(Sweep),
}

/// What a dump has not confirmed goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sweep {
    pub source: SourceId,
    /// What was dumped.
    pub kinds: KindSet,
    /// What of it is not swept yet.
    pub left: KindSet,
    /// The next route.
    pub route: u32,
}

/// What is left to do, and how much of it may be done.
#[derive(Debug)]
pub(crate) struct Slices {
    later: VecDeque<Walk>,
    /// What steps of the first of them have asked for; the last one is done first.
    within: Vec<Walk>,
    /// A step is being done: what it asks for has its place here, before what it has asked for already.
    working: Option<usize>,
    /// The next route of the path that has begun; there is one at a time.
    at: Option<u32>,
    /// So many of its next routes have been read, and of those that are queued.
    near: usize,
    pub near_queued: usize,
    /// What is to be swept of one kind, last first; one sweep has begun at a time.
    pub stale: Vec<Key>,
    /// How far the search for it has come, where it is not through.
    swept: Option<Key>,
    /// How many steps may still be done before the next call.
    left: usize,
    /// And how many between two.
    pub size: usize,
    /// The last plan left routes in their queue that it could have looked at, or some that are to be queued.
    pub cut: bool,
    /// How many entries this plan has looked through besides those whose turn it was.
    pub searched: usize,
    /// How many prefixes, routes, paths, gateways, neighbours, stations, groups, memberships, interfaces and rules were
    /// looked at, whatever for.
    #[cfg(feature = "oracle")]
    pub looks: usize,
}

impl Default for Slices {
    fn default() -> Self {
        Slices {
            later: VecDeque::new(),
            within: Vec::new(),
            working: None,
            at: None,
            near: 0,
            near_queued: 0,
            stale: Vec::new(),
            swept: None,
            left: SLICE,
            size: SLICE,
            cut: false,
            searched: 0,
            #[cfg(feature = "oracle")]
            looks: 0,
        }
    }
}

impl Slices {
    /// Something is left.
    pub fn any(&self) -> bool {
        !self.later.is_empty()
    }

    /// A call begins.
    pub fn begin(&mut self) {
        self.left = self.size;
    }

    /// A route leaves its path, of which `next` is the next one.
    pub fn unlinked(&mut self, alias: u32, next: u32) {
        if self.at == Some(alias) {
            self.at = Some(next);
        }
    }

    /// Something is looked at.
    pub fn look(&mut self) {
        #[cfg(feature = "oracle")]
        {
            self.looks += 1;
        }
    }

    /// A step is as much as so many.
    pub fn costs(&mut self, n: usize) {
        for _ in 0..n {
            self.look();
        }
        self.left_over(n.saturating_sub(1));
    }

    /// A step that takes as long as so many, of which fewer are left: it is the first one of the next call.
    pub fn begins_next(&mut self, n: usize) -> bool {
        let late = n > self.left && self.left < self.size;
        if late {
            self.left = 0;
        }
        late
    }

    /// So many steps less may be done before the next call.
    pub fn left_over(&mut self, n: usize) {
        self.left = self.left.saturating_sub(n);
    }

    /// The walk that goes on.
    fn current(&mut self) -> Option<&mut Walk> {
        self.within.last_mut().or(self.later.front_mut())
    }

    /// It is there by now.
    pub fn is_at(&mut self, walk: Walk) {
        if let Some(current) = self.current() {
            *current = walk;
        }
    }
}

impl Store {
    /// Some of what earlier calls have left over: [`Store::catch_up`] goes on with it. No event should come before it is
    /// done: [`Store::apply`] does all of it first, at once.
    pub fn behind(&self) -> bool {
        self.slices.any() || self.topo.stage.is_some()
    }

    /// More is to do for [`Store::plan_some`], though it handed out nothing.
    pub fn unfinished(&self) -> bool {
        self.behind() || self.slices.cut
    }

    /// Goes on with what is left over, for at most [`SLICE`] steps. True: there is more.
    pub fn catch_up(&mut self, now_ns: u64) -> bool {
        self.slices.begin();
        self.work_off(now_ns);
        self.next_stages(now_ns);
        let more = self.behind();
        if !more && !self.together.goes_on {
            self.together_ends(now_ns);
        }
        more
    }

    /// How many steps may be done between two calls, instead of [`SLICE`]; at least one.
    #[cfg(feature = "oracle")]
    pub fn set_slice(&mut self, steps: usize) {
        self.slices.size = steps.max(1);
        self.slices.begin();
    }

    /// How many entries the last plan has looked through besides those whose turn it was.
    #[cfg(feature = "oracle")]
    pub fn searched(&self) -> usize {
        self.slices.searched
    }

    /// How many entries were ever looked at, of whichever kind.
    #[cfg(feature = "oracle")]
    pub fn looks(&self) -> usize {
        self.slices.looks
    }

    /// Derived state is up to date, and programming may go on.
    pub(crate) fn settled(&mut self, now: u64) -> bool {
        if self.phase == Phase::Detached || !self.synced {
            return false;
        }
        if self.catch_up(now) {
            return false;
        }
        if !self.topo.guards.is_empty() {
            // what a port is to be may be found there without a write that would be answered
            self.step_guards();
        }
        self.together.begin(None);
        let mut rounds = 0;
        let open = |s: &Store| s.topo.dirty.any() || !s.paths.dirty.is_empty();
        while open(self) && rounds < 8 && !self.behind() {
            if self.topo.dirty.any() {
                self.refresh_topology(now);
            }
            self.refresh_paths(now);
            rounds += 1;
        }
        self.together.goes_on = self.behind() && open(self);
        if self.vrfs_dying() {
            self.refresh_vrfs(now);
        }
        self.drain_changed(now);
        self.wake();
        if self.behind() {
            return false;
        }
        self.together_ends(now);
        self.progress.looks += 1;
        true
    }

    /// All that is left over.
    pub(crate) fn catch_up_all(&mut self, now: u64) {
        while self.behind() && self.catch_up(now) {}
    }

    /// Does something with all routes of a path, behind what is left over.
    pub(crate) fn for_users(&mut self, path: u32, work: Work, now: u64) {
        let s = &self.slices;
        // that it has begun is not enough: what was looked at already may be something else by now
        let begun = s.later.len() == 1 && s.at.is_some();
        let last = s.later.back() == Some(&Walk::Path(path, work)) && !begun;
        if self.paths.sets[path].users == NONE || last {
            return;
        }
        self.walk(Walk::Path(path, work), now);
    }

    /// Does something with all prefixes below one.
    pub(crate) fn for_below<F: Fam>(&mut self, bits: F, len: u8, each: Each, now: u64) {
        let below = Below {
            top: (bits, len),
            each,
            after: matches!(each, Each::Own | Each::Waiting).then_some((bits, len)),
        };
        self.walk(F::walk(below), now);
    }

    /// Neighbours from one to another look again.
    pub(crate) fn for_neighbours(&mut self, from: (IpAddr, u32), to: (IpAddr, u32), now: u64) {
        if self.neighs.range(from..=to).next().is_some() {
            self.walk(Walk::Neighbours(Span::new(from, to)), now);
        }
    }

    /// Does something with the neighbours on an interface.
    pub(crate) fn for_neighbours_on(&mut self, ifindex: u32, then: Then, now: u64) {
        let all = Span::new((ifindex, FIRST_ADDRESS), (ifindex, LAST_ADDRESS));
        self.walk(Walk::On(all, then), now);
    }

    /// Does something with the gateways on an interface.
    pub(crate) fn for_gateways_on(&mut self, ifindex: u32, then: Then, now: u64) {
        let all = Span::new((ifindex, FIRST_ADDRESS), (ifindex, LAST_ADDRESS));
        self.walk(Walk::Gateways(all, then), now);
    }

    /// Looks at all paths that something changed for.
    pub(crate) fn refresh_paths(&mut self, now: u64) {
        if !self.paths.dirty.is_empty() {
            self.walk(Walk::Paths, now);
        }
    }

    /// Does something with the stations that lead to a device.
    pub(crate) fn for_stations_behind(&mut self, ifindex: u32, then: Then, now: u64) {
        let all = Span::new((ifindex, FdbKey::FIRST), (ifindex, FdbKey::LAST));
        self.walk(Walk::Behind(all, then), now);
    }

    /// A device goes from the groups that it is a member of.
    pub(crate) fn for_groups_of_member(&mut self, ifindex: u32, now: u64) {
        let all = Span::new((ifindex, GroupKey::FIRST), (ifindex, GroupKey::LAST));
        self.walk(Walk::Member(all), now);
    }

    /// Begins a walk. What a step of one asks for is done before its next step, in the order in which it asks, so that
    /// little is ever left.
    pub(crate) fn walk(&mut self, walk: Walk, now: u64) {
        if let Some(place) = self.slices.working {
            self.slices.within.insert(place, walk);
        } else {
            self.slices.later.push_back(walk);
            self.work_off(now);
        }
    }

    fn work_off(&mut self, now: u64) {
        while self.slices.left > 0
            && let Some(&mut walk) = self.slices.current()
        {
            self.slices.working = Some(self.slices.within.len());
            let went = match walk {
                Walk::Path(path, work) => self.step_path(path, work, now),
                Walk::Below4(b) => self.step_below(b, now),
                Walk::Below6(b) => self.step_below(b, now),
                Walk::Neighbours(s) => self.step_neighbours(s, now),
                Walk::On(s, then) => self.step_on(s, then, now),
                Walk::Gateways(s, then) => self.step_gateways(s, then, now),
                Walk::Paths => self.step_paths(now),
                Walk::Leading(i, path, going) => self.step_leading(i, path, going, now),
                Walk::Objects(s, source) => self.step_next_hops(s, source, now),
                Walk::Bridges(s) => self.step_bridge(s),
                Walk::VlanSets => self.step_vlan_set(now),
                Walk::VlansIn(s) => self.step_vlans_in(s),
                Walk::Gone(s) => self.step_gone(s, now),
                Walk::Come => self.step_come(now),
                Walk::BridgeReasons => self.step_bridge_reason(),
                Walk::Forget(s) => self.step_forget(s),
                Walk::VlansOf(i) => self.step_vlans_of(i),
                Walk::FiltersOf(i) => self.step_filters_of(i),
                Walk::Rules => self.step_rules(now),
                Walk::Lists => self.step_lists(now),
                Walk::Due(at) => self.step_due(at, now),
                Walk::Members => self.step_members(now),
                Walk::VlanDevices => self.step_vlan_devices(),
                Walk::Rifs => self.step_rifs(now),
                Walk::Stations(s, then) => self.step_stations(s, then, now),
                Walk::Behind(s, then) => self.step_behind(s, then, now),
                Walk::OnLag(id, lag) => self.step_on_lag(id, lag),
                Walk::Groups(s, then) => self.step_groups(s, then, now),
                Walk::Member(s) => self.step_member(s, now),
                Walk::Retry(cls, id) => self.step_retry(cls, id),
                Walk::Sweep(s) => self.step_sweep(s, now),
            };
            if went {
                self.slices.left = self.slices.left.saturating_sub(1);
            } else if self.slices.within.pop().is_none() {
                self.slices.later.pop_front();
            }
            self.slices.working = None;
        }
    }

    /// One route of a path. False: there is none left.
    fn step_path(&mut self, path: u32, work: Work, now: u64) -> bool {
        let first = || self.paths.sets.get(path).map_or(NONE, |p| p.users);
        let at = self.slices.at.unwrap_or_else(first);
        if at == NONE {
            (self.slices.at, self.slices.near) = (None, 0);
            return false;
        }
        if self.slices.near == 0 {
            self.near_users(at);
            self.slices.near = TOGETHER;
        }
        self.slices.near -= 1;
        let a = self.aliases[at];
        self.slices.at = Some(a.user_next);
        match (work, a.v6) {
            (Work::Remove(going), _) if going.takes(&a) => self.remove_alias(at, now),
            (Work::Remove(_), _) => {}
            (Work::Reeval, false) => self.reeval::<V4>(a.entry, now),
            (Work::Reeval, true) => self.reeval::<V6>(a.entry, now),
            (Work::Queue, false) => self.queue_again::<V4>(a.entry),
            (Work::Queue, true) => self.queue_again::<V6>(a.entry),
        }
        true
    }

    /// One prefix below another, or a route of it.
    fn step_below<F: Fam>(&mut self, b: Below<F>, now: u64) -> bool {
        let cover = &F::fib(&self.fibs).cover;
        let Some((node, e)) = cover.next_below(b.top.0, b.top.1, b.after) else {
            return false;
        };
        let after = Some(cover.prefix(node));
        let x = F::fib(&self.fibs).entries[e];
        if b.each == Each::Remove && x.head != NONE {
            self.remove_alias(x.head, now);
            return true;
        }
        self.slices.is_at(F::walk(Below { after, ..b }));
        match b.each {
            Each::Remove => {}
            Each::Reeval => self.reeval::<F>(e, now),
            Each::Own | Each::Waiting => {
                self.slices.look();
                let own = x.want == Content::trap(TND_TRAP_LOCAL);
                let looks = match b.each {
                    Each::Own => own || x.is(F_OMIT),
                    _ => own && !x.is(F_OMIT),
                };
                if looks {
                    self.queue_route::<F>(e);
                }
            }
        }
        true
    }

    fn step_neighbours(&mut self, s: Span<(IpAddr, u32)>, now: u64) -> bool {
        let Some((&at, _)) = self.neighs.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::Neighbours(s.behind(at)));
        self.reeval_neighbour(at.0, at.1, now);
        true
    }

    fn step_on(&mut self, s: Span<(u32, IpAddr)>, then: Then, now: u64) -> bool {
        let Some(&at) = self.neighs_on.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::On(s.behind(at), then));
        let (i, addr) = at;
        match then {
            Then::Reeval => self.reeval_neighbour(addr, i, now),
            Then::Retry => self.retry_entry(Cls::Neigh, self.neigh_ids.get(&(addr, i)).copied()),
            Then::Remove => self.remove_neigh(i, addr, now),
        }
        true
    }

    fn step_gateways(&mut self, s: Span<(u32, IpAddr)>, then: Then, now: u64) -> bool {
        let Some((&at, &id)) = self.paths.gateways.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::Gateways(s.behind(at), then));
        match then {
            Then::Retry => self.retry_entry(Cls::Nexthop, Some(id)),
            // they go with their paths
            Then::Reeval | Then::Remove => self.update_gateway(id, now),
        }
        true
    }

    fn step_paths(&mut self, now: u64) -> bool {
        let Some(path) = self.paths.dirty.pop() else {
            return false;
        };
        self.slices.look();
        self.look_at_path(path, now);
        true
    }

    fn step_leading(&mut self, ifindex: u32, path: u32, going: Going, now: u64) -> bool {
        let all = self.paths.leading.get(&ifindex);
        let Some(&path) = all.and_then(|l| l.range(path..).next()) else {
            return false;
        };
        self.slices.is_at(Walk::Leading(ifindex, path + 1, going));
        self.slices.look();
        if self.goes_with(path, ifindex) {
            self.for_users(path, Work::Remove(going), now);
        }
        true
    }

    fn step_next_hops(&mut self, s: Span<(u32, u32)>, source: u8, now: u64) -> bool {
        let Some(&at) = self.paths.objects_on.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::Objects(s.behind(at), source));
        self.slices.look();
        if self.paths.objects.get(&at.1).is_some_and(|o| o.1 == source) {
            self.remove_nexthop(at.1, now);
        }
        true
    }

    fn step_stations(&mut self, s: Span<FdbKey>, then: Then, now: u64) -> bool {
        let Some((&key, _)) = self.fdb.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::Stations(s.behind(key), then));
        self.step_station(key, then, now);
        true
    }

    fn step_forget(&mut self, s: Span<FdbKey>) -> bool {
        let Some((&key, rec)) = self.fdb.range_mut(s.left()).next() else {
            return false;
        };
        rec.device = None;
        self.slices.look();
        self.slices.is_at(Walk::Forget(s.behind(key)));
        true
    }

    fn step_vlans_of(&mut self, ifindex: u32) -> bool {
        let Some(vid) = self.vlans_of(ifindex).next().map(|v| v.vid) else {
            return false;
        };
        self.slices.look();
        self.remove_bridge_vlan(ifindex, vid);
        true
    }

    fn step_behind(&mut self, s: Span<(u32, FdbKey)>, then: Then, now: u64) -> bool {
        let Some(&at) = self.fdb_behind.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::Behind(s.behind(at), then));
        self.step_station(at.1, then, now);
        true
    }

    fn step_station(&mut self, key: FdbKey, then: Then, now: u64) {
        match then {
            Then::Reeval => self.reeval_fdb(key, now),
            Then::Retry => self.retry_entry(Cls::Fdb, self.fdb_ids.get(&key).copied()),
            Then::Remove => self.remove_fdb(key, now),
        }
    }

    /// By what is wanted: one that the chip has seen there may be somewhere else by what the kernel says.
    fn step_on_lag(&mut self, id: u32, lag: u32) -> bool {
        let Some(o) = self.hw.fdb.get(id) else {
            return false;
        };
        let there = o.want.as_ref().is_some_and(|f| f.lag == Some(lag));
        self.slices.is_at(Walk::OnLag(id + 1, lag));
        self.retry_entry(Cls::Fdb, there.then_some(id));
        true
    }

    fn step_groups(&mut self, s: Span<GroupKey>, then: Then, now: u64) -> bool {
        let Some((&key, _)) = self.groups.members.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::Groups(s.behind(key), then));
        match then {
            Then::Reeval => self.reeval_group(key, now),
            Then::Retry => self.retry_entry(Cls::Mdb, self.groups.ids.get(&key).copied()),
            Then::Remove => self.remove_group(key, now),
        }
        true
    }

    fn step_member(&mut self, s: Span<(u32, GroupKey)>, now: u64) -> bool {
        let Some(&at) = self.groups.of_member.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::Member(s.behind(at)));
        self.remove_member(at.0, at.1, now);
        true
    }

    fn step_retry(&mut self, cls: Cls, id: u32) -> bool {
        let Some(taken) = with_class!(cls, T => T::all(&self.hw).get(id).map(|o| o.taken)) else {
            return false;
        };
        self.slices.is_at(Walk::Retry(cls, id + 1));
        self.retry_entry(cls, taken.then_some(id));
        true
    }

    /// What an entry refers to came to stand, if it has an entry.
    fn retry_entry(&mut self, cls: Cls, id: Option<u32>) {
        self.slices.look();
        if let Some(id) = id {
            self.hw.retry_dependent(Ref::new(cls, id));
            if cls == Cls::Fdb {
                self.note_station(id);
            }
        }
    }

    /// One of what is not confirmed, or a look at a route that may be one of that.
    fn step_sweep(&mut self, mut s: Sweep, now: u64) -> bool {
        if let Some(key) = self.slices.stale.pop() {
            self.sweep_away(&s, &key, now);
            return true;
        }
        let Some(kind) = s.next() else {
            self.swept_away(now);
            return false;
        };
        let route = s.route;
        if kind == KindSet::ROUTE && route < self.aliases.bound() {
            s.route += 1;
            self.slices.is_at(Walk::Sweep(s));
            self.sweep_route(s.source, route, now);
            return true;
        }
        if kind != KindSet::ROUTE {
            let (after, most) = (self.slices.swept.take(), self.slices.left);
            let found = self.unconfirmed(s.source, kind, after, most);
            self.slices.costs(found.looked);
            self.slices.stale = found.keys;
            self.slices.stale.reverse();
            self.counters.swept += self.slices.stale.len() as u64;
            self.slices.swept = found.last;
        }
        if self.slices.swept.is_none() {
            s.left = s.left.without(kind);
            self.slices.is_at(Walk::Sweep(s));
        }
        true
    }

    fn queue_again<F: Fam>(&mut self, e: u32) {
        self.slices.look();
        F::fib_mut(&mut self.fibs).entries[e].set(F_DEPEND, false);
        self.queue_route::<F>(e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_takes_more_than_is_left_begins_the_next_call() {
        let mut s = Slices::default();
        assert!(!s.begins_next(2 * SLICE), "it would never have its turn");
        s.left_over(SLICE - 10);
        assert!(!s.begins_next(10));
        assert!(s.begins_next(11));
        assert_eq!(s.left, 0, "nothing comes between");
    }
}

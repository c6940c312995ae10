//! Keeping up with sources and with the chip: mark and sweep by generation, and programming anew after an attach.

use crate::Store;
use crate::api::{Attach, Body, Completion, Planned};
use crate::doors::Doors;
use crate::fib::{Content, Entry, F_PARSER, Fam, MAX_LEN, V4, V6};
use crate::hw::{Cls, MAX_ATTEMPTS, Ref};
use crate::model::{BaseChain, FdbKey, Key, KindSet, SourceId};
use crate::reserve::Reserve;
use crate::slices::{Sweep, Walk};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound;
use tandem_abi::raw::*;
use tandem_cover::NONE;

/// Where programming is after an attach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No chip.
    #[default]
    Detached,
    /// BEGIN_RESYNC is to be posted.
    BeginDue,
    /// It is on its way.
    Begin,
    /// Every desired object is created again.
    Replay,
    /// END_RESYNC is on its way.
    End,
    /// Changes are programmed as they come.
    Normal,
}

/// The turn of own addresses: before every length.
const OWN: usize = MAX_LEN + 1;

/// Routes by prefix length while everything is programmed anew: longest first, and the next length only when all of
/// the last are answered. So an entry never answers for a more specific one that is still to come, and an entry that
/// must trap because something below it doesn't fit starts as trap.
///
/// Before all of them, and before neighbours, come own addresses: nobody may send from these (net/ipv4/fib_frontend.c
/// `__fib_validate_source`), and the chip knows it by their entries alone. They trap, so they answer for nothing.
#[derive(Debug)]
pub(crate) struct Replay {
    active: bool,
    /// What routes refer to is settled.
    pub open: bool,
    /// Lengths above are done; this one is being programmed.
    level: i16,
    buckets: Vec<Vec<Ref>>,
}

impl Default for Replay {
    fn default() -> Self {
        Replay {
            active: true,
            open: false,
            level: OWN as i16 + 1,
            buckets: vec![Vec::new(); OWN + 1],
        }
    }
}

impl Replay {
    pub fn holds(&self) -> bool {
        self.active
    }

    /// Own addresses are on the chip.
    pub fn own_stand(&self) -> bool {
        !self.active || self.level < OWN as i16
    }

    /// Keeps an entry for its turn; false: its turn has come. `own`: it is one of own addresses.
    pub fn keep(&mut self, r: Ref, len: u8, own: bool) -> bool {
        let turn = if own { OWN } else { usize::from(len) };
        if turn as i16 >= self.level {
            return false;
        }
        match self.buckets.get_mut(turn) {
            Some(b) => {
                b.push(r);
                true
            }
            None => false,
        }
    }

    /// The next length that has entries. False: all done, or not open.
    pub fn next(&mut self) -> bool {
        if !self.active || !self.open {
            return false;
        }
        while self.level > 0 {
            self.level -= 1;
            if self
                .buckets
                .get(self.level as usize)
                .is_some_and(|b| !b.is_empty())
            {
                return true;
            }
        }
        self.active = false;
        self.buckets.clear();
        false
    }

    /// The entries of the present length.
    pub fn take(&mut self) -> Vec<Ref> {
        self.buckets
            .get_mut(self.level as usize)
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

/// The order in which kinds are swept: dependents first.
const SWEPT: [KindSet; KindSet::COUNT] = [
    KindSet::ROUTE,
    KindSet::NEIGH,
    KindSet::FDB,
    KindSet::BRIDGE_VLAN,
    KindSet::MDB,
    KindSet::FILTER,
    KindSet::NEXTHOP,
    KindSet::ADDR,
    KindSet::LINK,
    KindSet::RULE,
    KindSet::BASE_CHAIN,
    KindSet::NETCONF,
];

/// Some of a kind that was not confirmed.
pub(crate) struct Unconfirmed {
    pub keys: Vec<Key>,
    /// How many were looked at.
    pub looked: usize,
    /// The last of those, where there may be more.
    pub last: Option<Key>,
}

impl Unconfirmed {
    fn of<K: Ord + Copy, V>(
        all: &BTreeMap<K, V>,
        (after, most): (Option<K>, usize),
        stale: impl Fn(&V) -> bool,
        key: impl Fn(K) -> Key,
    ) -> Unconfirmed {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut keys, mut looked, mut last) = (Vec::new(), 0, None);
        for (k, v) in all.range((from, Bound::Unbounded)).take(most) {
            looked += 1;
            last = Some(*k);
            if stale(v) {
                keys.push(key(*k));
            }
        }
        let last = last.filter(|_| looked == most).map(key);
        Unconfirmed { keys, looked, last }
    }
}

impl Sweep {
    /// The kind whose turn it is.
    pub fn next(&self) -> Option<KindSet> {
        SWEPT.into_iter().find(|k| self.left.contains(*k))
    }
}

impl Store {
    pub(crate) fn begin_sync(&mut self, source: SourceId, kinds: KindSet) {
        // Counts of one kind only move when that kind is synced, so what was swept last carries the present number.
        let s = self.syncs.entry(source).or_default();
        s.running = Some(s.running.map_or(kinds, |k| k.union(kinds)));
        for (i, g) in s.generations.iter_mut().enumerate() {
            if kinds.0 & (1 << i) != 0 {
                *g = g.wrapping_add(1);
            }
        }
    }

    pub(crate) fn generation(&self, source: SourceId, kind: KindSet) -> u16 {
        let i = kind.0.trailing_zeros() as usize;
        self.syncs
            .get(&source)
            .and_then(|s| s.generations.get(i))
            .copied()
            .unwrap_or(0)
    }

    /// What the dump did not confirm goes.
    pub(crate) fn end_sync(&mut self, source: SourceId, now: u64) {
        let Some(kinds) = self.syncs.get_mut(&source).and_then(|s| s.running.take()) else {
            return;
        };
        self.counters.syncs += 1;
        if kinds.contains(KindSet::LINK.union(KindSet::ROUTE)) {
            if let Some(s) = self.syncs.get_mut(&source) {
                s.reached = true;
            }
            self.look_who_reached();
        }
        let sweep = Sweep {
            source,
            kinds,
            left: kinds,
            route: 0,
        };
        self.walk(Walk::Sweep(sweep), now);
    }

    /// Looks whether a route was confirmed.
    pub(crate) fn sweep_route(&mut self, source: SourceId, id: u32, now: u64) {
        let a = &self.aliases[id];
        let g = self.generation(source, KindSet::ROUTE);
        if a.entry != NONE && a.source == source.0 && a.generation != g {
            self.counters.swept += 1;
            self.remove_alias(id, now);
        } else {
            self.slices.look();
        }
    }

    /// What of a kind, which is not routes, was not confirmed. Of kinds of which there may be many `most` are looked at, behind
    /// `after`.
    pub(crate) fn unconfirmed(
        &self,
        source: SourceId,
        kind: KindSet,
        after: Option<Key>,
        most: usize,
    ) -> Unconfirmed {
        let g = self.generation(source, kind);
        let stale = |s: u8, generation: u16| s == source.0 && generation != g;
        let keys = match kind {
            KindSet::NEIGH => {
                let after = match after {
                    Some(Key::Neigh(i, a)) => Some((a, i)),
                    _ => None,
                };
                return Unconfirmed::of(
                    &self.neighs,
                    (after, most),
                    |n| stale(n.source, n.generation),
                    |(a, i)| Key::Neigh(i, a),
                );
            }
            KindSet::FDB => {
                let after = match after {
                    Some(Key::Fdb(k)) => Some(k),
                    _ => None,
                };
                return Unconfirmed::of(
                    &self.fdb,
                    (after, most),
                    |r| r.kernel.is_some() && stale(r.source, r.generation),
                    Key::Fdb,
                );
            }
            KindSet::BRIDGE_VLAN => {
                let after = match after {
                    Some(Key::BridgeVlan(i, vid)) => Some((i, vid)),
                    _ => None,
                };
                return Unconfirmed::of(
                    &self.vlans,
                    (after, most),
                    |v| stale(v.1, v.2),
                    |(i, vid)| Key::BridgeVlan(i, vid),
                );
            }
            KindSet::MDB => self.groups_unconfirmed(stale),
            KindSet::FILTER => {
                let all = self.filters.all().iter().filter(|(_, f)| stale(f.1, f.2));
                all.map(|(k, _)| Key::Filter(*k)).collect()
            }
            KindSet::NEXTHOP => {
                let all = self.paths.objects.iter();
                let all = all.filter(|(_, o)| stale(o.1, o.2)).map(|(id, _)| *id);
                let all: BTreeSet<u32> = all.collect();
                all.into_iter().map(Key::Nexthop).collect()
            }
            KindSet::ADDR => {
                let all = self.addrs.iter().filter(|(_, v)| stale(v.0, v.1));
                all.map(|(a, _)| Key::Addr(*a)).collect()
            }
            KindSet::LINK => {
                let all = self.links.iter();
                let all = all.filter(|(_, l)| stale(l.source, l.generation));
                all.map(|(i, _)| Key::Link(*i)).collect()
            }
            KindSet::RULE => {
                let all = self.rules.iter().filter(|r| stale(r.1, r.2));
                all.map(|r| Key::Rule(r.0.clone())).collect()
            }
            KindSet::BASE_CHAIN => {
                let all = self.chains.iter().filter(|c| stale(c.1, c.2));
                let key = |c: &BaseChain| Key::BaseChain(c.family, c.table.clone(), c.name.clone());
                all.map(|c| key(&c.0)).collect()
            }
            KindSet::NETCONF => {
                let all = self.netconf.iter();
                let all = all.filter(|(_, c)| stale(c.source, c.generation));
                all.map(|(k, _)| Key::Netconf(k.0, k.1)).collect()
            }
            _ => Vec::new(),
        };
        Unconfirmed {
            keys,
            looked: 0,
            last: None,
        }
    }

    /// Something that was not confirmed goes.
    pub(crate) fn sweep_away(&mut self, s: &Sweep, key: &Key, now: u64) {
        match key {
            // with the routes it was said which are there
            Key::Addr(a) => self.remove_addr(*a, !s.kinds.contains(KindSet::ROUTE), now),
            _ => self.remove(s.source, key, now),
        }
    }

    // -- attach -------------------------------------------------------------------------------------------------------

    /// The driver attached: everything outstanding is void; every desired object is created again. Warm: between
    /// BEGIN_RESYNC and END_RESYNC, so that the chip sweeps what the kernel no longer has.
    pub fn attach(&mut self, how: Attach, now_ns: u64) {
        self.forget_hardware();
        self.warm = how == Attach::Warm;
        self.hw.bare = !self.warm || self.hw.ids.left_bare();
        self.hw.trapping = match self.warm {
            true => self.hw.ids.left_trapping(),
            false => HashSet::new(),
        };
        self.phase = if self.warm {
            Phase::BeginDue
        } else {
            Phase::Replay
        };
        self.topo.dirty.all = true;
        let _ = now_ns;
    }

    /// Nothing is known of the chip any more.
    pub(crate) fn forget_hardware(&mut self) {
        self.hw.forget();
        self.progress.epoch += 1;
        (self.resync_tries, self.resync_failed) = (0, false);
        self.fails.clear();
        self.filters.parts_failed.clear();
        self.forget_lacking();
        self.doors = Doors::default();
        self.attempts.clear();
        self.deferred.clear();
        self.urgent.clear();
        self.route_queue.clear();
        self.together.clear();
        self.fdb_failed.clear();
        // what had no room was forgotten with the rest: all is looked at anew
        self.topo.incomplete.clear();
        self.topo.lacks.clear();
        self.forget_groups();
        self.pending_aggregates = 0;
        for r in self.fdb.values_mut() {
            r.device = None;
        }
        let chip_only: Vec<FdbKey> = self
            .fdb
            .iter()
            .filter(|(_, r)| r.kernel.is_none())
            .map(|(k, _)| *k)
            .collect();
        for k in chip_only {
            self.fdb.remove(&k);
            if let Some(&id) = self.fdb_ids.get(&k) {
                self.hw.want::<crate::hw::bodies::Fdb>(id, None, 0);
            }
        }
        self.replay = Replay::default();
        self.reserve = Reserve::new(
            self.config.aggregate_units,
            self.config.local_units,
            self.config.route_slots,
        );
        self.forget_routes::<V4>();
        self.forget_routes::<V6>();
    }

    fn forget_routes<F: Fam>(&mut self) {
        let fib = F::fib_mut(&mut self.fibs);
        fib.cover.forget_hardware();
        fib.cover.set_units(0);
        fib.undecided.clear();
        fib.making.clear();
        fib.waits_since.clear();
        fib.held.clear();
        let mut all = Vec::new();
        for e in 0..fib.entries.bound() {
            let x = &mut fib.entries[e];
            if x.node == NONE {
                continue;
            }
            x.have = Content::ABSENT;
            x.flags &= F_PARSER;
            let Entry { node, head, .. } = *x;
            if head == NONE {
                fib.cover.set_value(node, NONE);
                fib.entries.remove(e);
            } else {
                all.push(e);
            }
        }
        for e in all {
            self.queue_route::<F>(e);
        }
    }

    /// Posts the command that the phase asks for.
    pub(crate) fn step_phase(&mut self, now: u64) -> Option<Planned> {
        let op = match self.phase {
            Phase::BeginDue => {
                self.phase = Phase::Begin;
                TND_OP_BEGIN_RESYNC
            }
            Phase::Replay if self.replay_done() => {
                if !self.warm {
                    self.phase = Phase::Normal;
                    self.groups_filled();
                    self.swept_away(now);
                    return None;
                }
                self.phase = Phase::End;
                TND_OP_END_RESYNC
            }
            _ => return None,
        };
        let body = Body::Inline {
            len: 0,
            data: [0; 64],
        };
        Some(self.hw.flights.ask(u32::MAX, op, body))
    }

    fn replay_done(&self) -> bool {
        !self.replay.holds() && !self.behind() && self.queues_idle()
    }

    /// Nothing queued and nothing on its way.
    pub(crate) fn queues_idle(&self) -> bool {
        self.hw.flights.outstanding == [0, 0]
            && self.hw.queues_empty(true)
            && self.urgent.is_empty()
            && self.route_queue.is_empty()
            && self.together.is_empty()
            && self.reserve.queue.is_empty()
            && !self.fibs.v4.cover.has_touched()
            && !self.fibs.v6.cover.has_touched()
            && self.hw.waiting.values().all(|w| w.credits == 0)
    }

    /// The chip did not begin or end the replay: the command is posted again, and after a few times the attach is given
    /// up.
    fn resync_again(&mut self, from: Phase) {
        self.resync_tries += 1;
        if self.resync_tries < MAX_ATTEMPTS {
            self.phase = from;
        } else {
            self.phase = Phase::Detached;
            self.resync_failed = true;
        }
    }

    /// The chip can't be brought up to date by a warm attach: the driver shall attach again. Said once.
    pub fn take_resync_failed(&mut self) -> bool {
        std::mem::take(&mut self.resync_failed)
    }

    pub(crate) fn phase_done(&mut self, op: u16, c: &Completion, now: u64) {
        let ok = c.status == TND_ST_OK;
        if !ok {
            self.counters.failed += 1;
        }
        // An END that the chip carried out and whose answer got lost finds none to end.
        let ended = ok || c.status == TND_ST_INVALID && self.resync_tries > 0;
        match (self.phase, op) {
            (Phase::Begin, TND_OP_BEGIN_RESYNC) if ok => {
                self.phase = Phase::Replay;
                self.resync_tries = 0;
            }
            // Without its beginning the chip would sweep nothing, or what is confirmed.
            (Phase::Begin, TND_OP_BEGIN_RESYNC) => self.resync_again(Phase::BeginDue),
            (Phase::End, TND_OP_END_RESYNC) if !ended => {
                if c.status == TND_ST_INVALID {
                    // none was begun, so nothing is swept
                    self.resync_tries = MAX_ATTEMPTS - 1;
                }
                self.resync_again(Phase::Replay);
            }
            (Phase::End, TND_OP_END_RESYNC) => {
                self.phase = Phase::Normal;
                self.resync_tries = 0;
                // What referred to it may be swept.
                self.hw.released = true;
                // A membership that another kind of it kept out.
                self.walk(Walk::Retry(Cls::Member, 0), now);
                // ... and those of ports that have left their bridge.
                self.topo.dirty.ports.extend(&self.topo.leaving);
                self.swept();
                self.swept_away(now);
                // What the sweep freed may let in what waits; its deltas may be cut short.
                self.credit_all(c.result);
            }
            _ => {}
        }
    }
}

//! Routes: from kernel routes to what each prefix should be on the chip.

use crate::Store;
use crate::fib::{
    Alias, Content, Entry, F_DELETE, F_DEPEND, F_FAILED, F_FLIGHT, F_GIVEN_UP, F_MOVED, F_OMIT,
    F_PARSER, F_QUEUED, F_RETRY, Fam, SLOT_BITS, V4, V6, coarse, kind_of,
};
use crate::hw::Ref;
use crate::model::{
    Event, Family, Key, Object, Route, RouteKey, RouteNextHops, RouteType, SourceId, Unsupported,
};
use crate::near::TOGETHER;
use crate::paths::{PathKey, PathSet, Target};
use crate::slices::Each;
use ipnet::IpNet;
use std::net::IpAddr;
use tandem_abi::raw::*;
use tandem_cover::NONE;

/// Is the redundant entry left out?
pub(crate) enum Redundant {
    No,
    /// Not known before the parent is installed; looked at again then.
    Wait,
    Yes,
}

/// What an IPv6 prefix's other routes mean for its first one.
enum Rivals {
    /// Nothing.
    None,
    /// This one, whose next-hop object is a blackhole, takes all packets.
    Blackhole(u32),
    /// Some packets go by others.
    Differ,
}

impl Store {
    /// These events come next: what is known of their routes is read now, all of it together, so that memory is waited for
    /// once and not route by route. Changes nothing.
    pub fn approach(&self, events: &[Event]) {
        for some in events.chunks(TOGETHER) {
            let prefixes = || {
                let keys = some.iter().filter_map(|e| match e {
                    Event::Upsert(_, Object::Route(r)) => Some(&r.key),
                    Event::Remove(_, Key::Route(k)) => Some(k),
                    _ => None,
                });
                keys.filter_map(|k| Some((self.table_place(k.table)?.0, k.prefix)))
            };
            self.approach_of::<V4>(prefixes().filter(|(_, p)| p.addr().is_ipv4()));
            self.approach_of::<V6>(prefixes().filter(|(_, p)| p.addr().is_ipv6()));
        }
    }

    fn approach_of<F: Fam>(&self, prefixes: impl Iterator<Item = (u8, IpNet)>) {
        let mut wanted = [(F::default(), 0); TOGETHER];
        let mut at = [NONE; TOGETHER];
        let mut n = 0;
        for (place, (slot, p)) in wanted.iter_mut().zip(prefixes) {
            *place = (F::new(slot, p.addr()), p.prefix_len() + SLOT_BITS);
            n += 1;
        }
        let (wanted, at) = (&wanted[..n], &mut at[..n]);
        if n == 0 {
            return;
        }
        let fib = F::fib(&self.fibs);
        fib.cover.approach(wanted, at);
        for at in &mut *at {
            *at = fib.cover.value(*at);
        }
        for at in &mut *at {
            *at = fib.entries.get(*at).map_or(NONE, |e| e.head);
        }
        for at in at {
            std::hint::black_box(self.aliases.get(*at).map(|a| a.next));
        }
    }

    pub(crate) fn upsert_route(&mut self, source: SourceId, r: Route, generation: u16, now: u64) {
        let Some((slot, _)) = self.table_place(r.key.table) else {
            self.counters.other_tables += 1;
            return;
        };
        match r.key.prefix {
            IpNet::V4(p) => self.upsert_route_of::<V4>(
                source,
                r,
                V4::new(slot, p.addr().into()),
                p.prefix_len() + SLOT_BITS,
                generation,
                now,
            ),
            IpNet::V6(p) => self.upsert_route_of::<V6>(
                source,
                r,
                V6::new(slot, p.addr().into()),
                p.prefix_len() + SLOT_BITS,
                generation,
                now,
            ),
        }
    }

    fn upsert_route_of<F: Fam>(
        &mut self,
        source: SourceId,
        r: Route,
        bits: F,
        len: u8,
        generation: u16,
        now: u64,
    ) {
        let Some((_, table)) = self.table_place(r.key.table) else {
            return;
        };
        let fib = F::fib_mut(&mut self.fibs);
        let node = fib.cover.node(bits, len);
        let e = match fib.at_node(node) {
            Some(e) => e,
            None => {
                let flags = if bits.parser_traps(len) { F_PARSER } else { 0 };
                let e = fib.entries.insert(Entry {
                    node,
                    flags,
                    since: coarse(now),
                    ..Entry::default()
                });
                fib.cover.set_value(node, e);
                e
            }
        };
        let mut alias = Alias {
            entry: e,
            metric: r.key.metric,
            position: r.key.position,
            generation,
            table,
            tos: r.key.tos,
            kind: r.kind as u8,
            scope: r.scope,
            unsupported: r.unsupported.map_or(0, |u| u as u8),
            source: source.0,
            protocol: r.protocol,
            v6: F::CLS == V6::CLS,
            ..Alias::default()
        };
        // Where it belongs in the list, and whether it is there.
        let (mut prev, mut at) = (NONE, fib.entries[e].head);
        while at != NONE && self.aliases[at].order() < alias.order() {
            prev = at;
            at = self.aliases[at].next;
        }
        let key = PathKey {
            nexthops: r.nexthops,
            family: if alias.v6 { Family::V6 } else { Family::V4 },
            prefsrc: match r.prefsrc {
                Some(IpAddr::V4(a)) => Some(a),
                _ => None,
            },
        };
        if at != NONE && self.aliases[at].order() == alias.order() {
            let old = self.aliases[at];
            self.aliases[at].generation = generation;
            let same_path = self.paths.sets[old.path].key.as_ref() == Some(&key);
            if same_path
                && (old.kind, old.scope, old.unsupported)
                    == (alias.kind, alias.scope, alias.unsupported)
            {
                self.counters.unchanged += 1;
                return;
            }
            let path = if same_path {
                old.path
            } else {
                self.intern(key, now)
            };
            if !same_path {
                self.unlink_user(at);
            }
            let a = &mut self.aliases[at];
            (a.kind, a.scope, a.unsupported, a.protocol) =
                (alias.kind, alias.scope, alias.unsupported, alias.protocol);
            if !same_path {
                self.link_user(at, path);
            }
            self.count_wide_local::<F>(table, len, 0, bits, now);
        } else {
            let path = self.intern(key, now);
            alias.next = at;
            let id = self.aliases.insert(alias);
            if prev == NONE {
                F::fib_mut(&mut self.fibs).entries[e].head = id;
            } else {
                self.aliases[prev].next = id;
            }
            self.link_user(id, path);
            self.count_wide_local::<F>(table, len, 1, bits, now);
        }
        self.reeval::<F>(e, now);
    }

    /// A route of the local table that is wider than a host shadows what main has below it: counts it in, out (`by`) or
    /// tells that it changed (0).
    fn count_wide_local<F: Fam>(&mut self, table: u8, len: u8, by: i32, bits: F, now: u64) {
        if table != 0 || len == F::WIDTH || bits.parser_traps(len) {
            return;
        }
        let fib = F::fib_mut(&mut self.fibs);
        fib.wide_local = fib.wide_local.saturating_add_signed(by);
        self.for_below(bits, len, Each::Reeval, now);
    }

    pub(crate) fn remove_route(&mut self, source: SourceId, key: &RouteKey, now: u64) {
        let Some((slot, _)) = self.table_place(key.table) else {
            return;
        };
        match key.prefix {
            IpNet::V4(p) => self.remove_route_of::<V4>(
                source,
                key,
                V4::new(slot, p.addr().into()),
                p.prefix_len() + SLOT_BITS,
                now,
            ),
            IpNet::V6(p) => self.remove_route_of::<V6>(
                source,
                key,
                V6::new(slot, p.addr().into()),
                p.prefix_len() + SLOT_BITS,
                now,
            ),
        }
    }

    fn remove_route_of<F: Fam>(
        &mut self,
        source: SourceId,
        key: &RouteKey,
        bits: F,
        len: u8,
        now: u64,
    ) {
        let Some((_, table)) = self.table_place(key.table) else {
            return;
        };
        let fib = F::fib(&self.fibs);
        let Some(e) = fib.cover.find(bits, len).and_then(|n| fib.at_node(n)) else {
            return;
        };
        let probe = Alias {
            metric: key.metric,
            position: key.position,
            table,
            tos: key.tos,
            source: source.0,
            ..Alias::default()
        };
        let mut at = fib.entries[e].head;
        while at != NONE && self.aliases[at].order() < probe.order() {
            at = self.aliases[at].next;
        }
        if at != NONE && self.aliases[at].order() == probe.order() {
            self.remove_alias(at, now);
        }
    }

    /// Takes one route out.
    pub(crate) fn remove_alias(&mut self, id: u32, now: u64) {
        if self.aliases[id].v6 {
            self.remove_alias_of::<V6>(id, now);
        } else {
            self.remove_alias_of::<V4>(id, now);
        }
    }

    fn remove_alias_of<F: Fam>(&mut self, id: u32, now: u64) {
        let a = self.aliases[id];
        if a.entry == NONE {
            return;
        }
        self.unlink_user(id);
        let fib = F::fib_mut(&mut self.fibs);
        let (mut prev, mut at) = (NONE, fib.entries[a.entry].head);
        while at != NONE && at != id {
            prev = at;
            at = self.aliases[at].next;
        }
        if prev == NONE {
            fib.entries[a.entry].head = a.next;
        } else {
            self.aliases[prev].next = a.next;
        }
        let (bits, len) = fib.cover.prefix(fib.entries[a.entry].node);
        self.aliases.remove(id);
        self.count_wide_local::<F>(a.table, len, -1, bits, now);
        self.reeval::<F>(a.entry, now);
    }

    // -- what a prefix should be --------------------------------------------------------------------------------------

    /// What one route asks for; None: the kernel passes it over.
    fn alias_content(&self, a: &Alias) -> Option<Content> {
        // an own address is one whatever else the route asks for: nobody sends from there
        if a.unsupported != 0 && !is_own(kind_of(a.kind)) {
            return Some(Content::trap(TND_TRAP_ROUTE));
        }
        Some(match kind_of(a.kind) {
            RouteType::Local | RouteType::Broadcast | RouteType::Anycast => {
                Content::trap(TND_TRAP_LOCAL)
            }
            RouteType::Blackhole => Content::DROP,
            RouteType::Unicast => match self.paths.sets[a.path].target {
                // the kernel passes over what leads nowhere; who knows only another's interface does not
                Target::Dead if self.leads_abroad(a) => Content::trap(TND_TRAP_ROUTE),
                Target::Dead => return None,
                Target::Trap(_) => Content::trap(TND_TRAP_ROUTE),
                Target::Drop => Content::DROP,
                Target::Connected(ifindex) => Content::connected(ifindex),
                Target::Forward(c) => c,
            },
            RouteType::Unreachable
            | RouteType::Prohibit
            | RouteType::Throw
            | RouteType::Multicast => Content::trap(TND_TRAP_ROUTE),
        })
    }

    /// Some way of it leads over an interface that is not, or not any more, of its own source.
    fn leads_abroad(&self, a: &Alias) -> bool {
        self.several_sources()
            && match self.paths.sets[a.path].key.as_ref().map(|k| &k.nexthops) {
                Some(RouteNextHops::One(n)) => self.is_abroad(n.ifindex, a.source),
                Some(RouteNextHops::Many(l)) => {
                    l.iter().any(|n| self.is_abroad(n.ifindex, a.source))
                }
                _ => false,
            }
    }

    fn is_abroad(&self, ifindex: u32, source: u8) -> bool {
        ifindex != 0 && self.links.get(&ifindex).is_none_or(|l| l.source != source)
    }

    /// The alias that counts for a prefix, and what it asks for.
    pub(crate) fn best_alias<F: Fam>(&self, e: u32) -> Option<(u32, Content)> {
        let fib = F::fib(&self.fibs);
        let first = fib.entries[e].head;
        let (alias, content) = self.first_alive(first)?;
        if F::CLS == V4::CLS || self.aliases[first].next == NONE {
            return Some((alias, content));
        }
        match self.rivals(first, alias, content) {
            Rivals::None => Some((alias, content)),
            Rivals::Blackhole(b) => Some((b, Content::DROP)),
            Rivals::Differ => Some((alias, Content::trap(TND_TRAP_ROUTE))),
        }
    }

    /// The first alias of a list, from this one on, that the kernel doesn't pass over.
    fn first_alive(&self, mut at: u32) -> Option<(u32, Content)> {
        while at != NONE {
            let a = &self.aliases[at];
            if let Some(c) = self.alias_content(a) {
                return Some((at, c));
            }
            at = a.next;
        }
        None
    }

    /// Which of an IPv6 prefix's routes the kernel takes depends on where the packet came in.
    pub(crate) fn depends_on_ingress<F: Fam>(&self, e: u32) -> bool {
        let first = F::fib(&self.fibs).entries[e].head;
        F::CLS == V6::CLS
            && self.first_alive(first).is_some_and(|(alias, content)| {
                matches!(self.rivals(first, alias, content), Rivals::Differ)
            })
    }

    /// What the other routes of an IPv6 prefix mean for the first one that is alive (net/ipv6/route.c `__find_rr_leaf`,
    /// `rt6_score_route`). Of those with the best metric, or of all others where none of these is alive, the kernel takes
    /// the first whose device is the one that the packet came in by, else the first; but a next-hop object that is a
    /// blackhole, wherever it stands. `first`: of the prefix's list; `alias`: the first one alive.
    fn rivals(&self, first: u32, alias: u32, content: Content) -> Rivals {
        let best = self.aliases[alias];
        let mut at = first;
        while at != NONE && self.aliases[at].table != best.table {
            at = self.aliases[at].next;
        }
        let top = self.aliases.get(at).map_or(best.metric, |a| a.metric);
        // The next hops of a multipath route stand by themselves, and the first may be dead.
        let next_hops = |a: &Alias| self.paths.sets[a.path].key.as_ref().map(|k| &k.nexthops);
        let many = matches!(next_hops(&best), Some(RouteNextHops::Many(_)));
        let mut differ = false;
        while let Some(a) = self.aliases.get(at).filter(|_| at != NONE) {
            if a.table != best.table {
                break;
            }
            // It answers for sources of its own before all others do, whatever its metric.
            differ |= a.unsupported == Unsupported::SourcePrefix as u8;
            let considered = best.metric != top || a.metric == top;
            if let Some(c) = self.alias_content(a).filter(|_| considered) {
                let kind = kind_of(a.kind);
                let object = matches!(next_hops(a), Some(RouteNextHops::Object(_)));
                if c == Content::DROP && object && kind == RouteType::Unicast {
                    return Rivals::Blackhole(at);
                }
                // these name lo, by which no packet comes in
                let nowhere = matches!(
                    kind,
                    RouteType::Blackhole
                        | RouteType::Unreachable
                        | RouteType::Prohibit
                        | RouteType::Throw
                );
                differ |= at != alias && c != content && (many || !nowhere);
            }
            at = a.next;
        }
        match differ {
            true => Rivals::Differ,
            false => Rivals::None,
        }
    }

    /// A route of this prefix is there that nobody knows.
    pub(crate) fn hides<F: Fam>(&self, e: u32) -> bool {
        let mut at = F::fib(&self.fibs).entries[e].head;
        while let Some(a) = self.aliases.get(at).filter(|_| at != NONE) {
            if a.unsupported == Unsupported::Hidden as u8 {
                return true;
            }
            at = a.next;
        }
        false
    }

    /// Some route of this prefix has a TOS: the chip can't tell those packets apart.
    pub(crate) fn has_tos<F: Fam>(&self, e: u32) -> bool {
        let mut at = F::fib(&self.fibs).entries[e].head;
        while at != NONE {
            let a = &self.aliases[at];
            if a.tos != 0 {
                return true;
            }
            at = a.next;
        }
        false
    }

    /// A wider route of the local table answers first, whatever its type; only `throw` sends the kernel on to main.
    /// (IPv4 keeps both tables in one trie until the first policy rule; a trap is right either way.)
    pub(crate) fn shadowed<F: Fam>(&self, e: u32) -> bool {
        let fib = F::fib(&self.fibs);
        fib.wide_local > 0
            && fib
                .cover
                .ancestor_value(fib.entries[e].node, |v| {
                    // The local table's aliases come first.
                    let mut at = fib.entries[v].head;
                    while at != NONE && self.aliases[at].table == 0 {
                        if kind_of(self.aliases[at].kind) != RouteType::Throw {
                            return true;
                        }
                        at = self.aliases[at].next;
                    }
                    false
                })
                .is_some()
    }

    pub(crate) fn effective<F: Fam>(&self, e: u32) -> Content {
        let Some((a, c)) = self.best_alias::<F>(e) else {
            return Content::ABSENT;
        };
        let fib = F::fib(&self.fibs);
        if !self.slot_stands(fib.cover.prefix(fib.entries[e].node).0.slot()) {
            return Content::ABSENT;
        }
        if self.aliases[a].table != 0 && self.shadowed::<F>(e) {
            return Content::trap(TND_TRAP_LOCAL);
        }
        if self.has_tos::<F>(e) {
            // who sends from there is refused as well, if it is an own address for other packets
            return match self.any_own::<F>(e) {
                true => Content::trap(TND_TRAP_LOCAL),
                false => Content::trap(TND_TRAP_ROUTE),
            };
        }
        c
    }

    /// Whether packets of some type of service come to an own route of this prefix: one that no other of its table stands before,
    /// for these or for all.
    fn any_own<F: Fam>(&self, e: u32) -> bool {
        let mut before: Vec<(u8, u8)> = Vec::new();
        let mut at = F::fib(&self.fibs).entries[e].head;
        while at != NONE {
            let a = &self.aliases[at];
            let hidden = |(table, tos): &(u8, u8)| *table == a.table && [0, a.tos].contains(tos);
            if self.alias_content(a).is_some() && !before.iter().any(hidden) {
                if is_own(kind_of(a.kind)) {
                    return true;
                }
                before.push((a.table, a.tos));
            }
            at = a.next;
        }
        false
    }

    /// Computes again what a prefix should be, and queues it if that changed.
    pub(crate) fn reeval<F: Fam>(&mut self, e: u32, now: u64) {
        self.slices.look();
        let new = self.effective::<F>(e);
        let fib = F::fib_mut(&mut self.fibs);
        let entry = fib.entries[e];
        let old = entry.want;
        if entry.node == NONE {
            return;
        }
        if new == old {
            if entry.head == NONE && !new.present() {
                self.queue_route::<F>(e);
            }
            return;
        }
        let (bits, len) = fib.cover.prefix(entry.node);
        fib.entries[e].want = new;
        fib.entries[e].since = coarse(now);
        fib.entries[e].set(F_DEPEND | F_GIVEN_UP, false);
        fib.waits_since.remove(&e);
        if entry.is(F_QUEUED | F_FLIGHT) {
            fib.entries[e].flags |= F_MOVED;
        }
        if old.is_connected() {
            fib.connected[usize::from(len)] = fib.connected[usize::from(len)].saturating_sub(1);
        }
        if new.is_connected() {
            fib.connected[usize::from(len)] += 1;
        }
        if entry.is(F_GIVEN_UP) || (!new.present() && entry.is(F_FAILED | F_OMIT)) {
            fib.entries[e].set(F_FAILED | F_OMIT | F_RETRY, false);
            self.fails.remove(&Ref::new(F::CLS, e));
        }
        self.look_lacking::<F>(e);
        self.look_leaving::<F>(e, entry.have);
        let fib = F::fib_mut(&mut self.fibs);
        if new.present() != old.present() {
            fib.cover.set_kernel(entry.node, new.present());
        }
        fib.cover.set_traps(entry.node, new.is_trap());
        if !new.present() && !entry.have.present() {
            self.heir_undecided::<F>(e);
        }
        if new.present() && entry.is(F_DELETE) {
            self.undecided::<F>(e);
        }
        self.queue_route::<F>(e);
        // Entries below that were left out because this one (or its parent) trapped likewise.
        let soft =
            |c: Content| c.is_trap() && (c.is_connected() || u16::from(c.reason) == TND_TRAP_LOCAL);
        if soft(old) || soft(new) || (new.present() != old.present() && self.parent_is_soft::<F>(e))
        {
            self.for_below(bits, len, Each::Own, now);
        }
        if new.present() != old.present() || old.is_connected() || new.is_connected() {
            self.neighbours_in(bits, len, old.is_connected() || new.is_connected(), now);
        }
    }

    fn parent_is_soft<F: Fam>(&self, e: u32) -> bool {
        let fib = F::fib(&self.fibs);
        fib.cover
            .kernel_parent(fib.entries[e].node)
            .and_then(|n| fib.at_node(n))
            .is_some_and(|p| {
                let c = fib.entries[p].want;
                c.is_trap() && (c.is_connected() || u16::from(c.reason) == TND_TRAP_LOCAL)
            })
    }

    /// What becomes of this entry is known: if it is own or connected, own ones below it that wait for that are queued.
    pub(crate) fn requeue_own_below<F: Fam>(&mut self, e: u32, now: u64) {
        let fib = F::fib(&self.fibs);
        let Entry { node, want, .. } = fib.entries[e];
        if want.is_trap() && (want.is_connected() || u16::from(want.reason) == TND_TRAP_LOCAL) {
            let (bits, len) = fib.cover.prefix(node);
            self.for_below(bits, len, Each::Waiting, now);
        }
    }

    /// A broadcast or anycast address, which its connected prefix may answer for. Reverse-path filtering looks sources up: the
    /// connected prefix proves one, a broadcast address does not.
    pub(crate) fn is_soft(&self, entry: &Entry) -> bool {
        let head = self.aliases.get(entry.head).filter(|_| entry.head != NONE);
        let soft = |a: &Alias| matches!(kind_of(a.kind), RouteType::Broadcast | RouteType::Anycast);
        head.is_some_and(soft) && self.topo.loose.is_empty()
    }

    /// Does this entry say the same as the one above it? A local prefix below a local one, a broadcast or anycast
    /// address below its connected prefix: the packet goes to the CPU anyway, and the slot is saved.
    pub(crate) fn redundant<F: Fam>(&self, e: u32) -> Redundant {
        let fib = F::fib(&self.fibs);
        let entry = &fib.entries[e];
        if entry.want != Content::trap(TND_TRAP_LOCAL) {
            return Redundant::No;
        }
        let Some(p) = fib
            .cover
            .kernel_parent(entry.node)
            .and_then(|n| fib.at_node(n))
        else {
            return Redundant::No;
        };
        let parent = &fib.entries[p];
        let soft = self.is_soft(entry);
        if !(parent.want == Content::trap(TND_TRAP_LOCAL) || (soft && parent.want.is_connected())) {
            return Redundant::No;
        }
        if parent.is(F_OMIT) || fib.cover.is_installed(parent.node) {
            Redundant::Yes
        } else if parent.is(F_FAILED | F_PARSER) {
            Redundant::No
        } else {
            Redundant::Wait
        }
    }

    // -- the queue ----------------------------------------------------------------------------------------------------

    pub(crate) fn queue_route<F: Fam>(&mut self, e: u32) {
        let fib = F::fib_mut(&mut self.fibs);
        let x = &mut fib.entries[e];
        if x.is(F_QUEUED | F_FLIGHT) || x.node == NONE {
            return;
        }
        x.flags |= F_QUEUED;
        let x = *x;
        let r = Ref::new(F::CLS, e);
        let len = fib.cover.prefix(x.node).1;
        // While everything is programmed anew, the longest prefixes go first: an entry stands only when all more
        // specific ones are decided, so that it never answers for them.
        if self.replay.holds() {
            let own = x.want == Content::trap(TND_TRAP_LOCAL);
            if x.have.present() || !self.replay.keep(r, len, own) {
                self.route_queue.push_back(r);
            }
        } else if !self.together.take(r, len, x.have.present()) {
            self.route_queue.push_back(r);
        }
    }

    // -- path sets ----------------------------------------------------------------------------------------------------

    fn intern(&mut self, key: PathKey, now: u64) -> u32 {
        if let Some(&id) = self.paths.by_key.get(&key) {
            return id;
        }
        let id = self.paths.sets.insert(PathSet {
            key: Some(key.clone()),
            ..PathSet::default()
        });
        if let crate::model::RouteNextHops::Object(o) = key.nexthops {
            self.paths.object_paths.entry(o).or_default().push(id);
        }
        self.paths.index_path(id, &key, true);
        self.paths.by_key.insert(key, id);
        self.refresh_path(id, now);
        id
    }

    fn link_user(&mut self, alias: u32, path: u32) {
        let p = &mut self.paths.sets[path];
        let first = p.users;
        p.users = alias;
        p.count += 1;
        let a = &mut self.aliases[alias];
        (a.path, a.user_prev, a.user_next) = (path, NONE, first);
        if first != NONE {
            self.aliases[first].user_prev = alias;
        }
    }

    fn unlink_user(&mut self, alias: u32) {
        let a = self.aliases[alias];
        self.slices.unlinked(alias, a.user_next);
        if a.user_prev == NONE {
            self.paths.sets[a.path].users = a.user_next;
        } else {
            self.aliases[a.user_prev].user_next = a.user_next;
        }
        if a.user_next != NONE {
            self.aliases[a.user_next].user_prev = a.user_prev;
        }
        let p = &mut self.paths.sets[a.path];
        p.count -= 1;
        if p.count == 0 {
            // A route that is replaced often comes back with the same next hops: freed in the next plan.
            self.paths.touch(a.path);
        }
    }
}

/// A route to the switch itself, alone or among others.
fn is_own(kind: RouteType) -> bool {
    matches!(
        kind,
        RouteType::Local | RouteType::Broadcast | RouteType::Anycast
    )
}

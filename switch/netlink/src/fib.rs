//! Which routes the kernel has: what a deletion means, which alias it hits, what goes with a device.
//!
//! ```text
//!  (table, prefix, tos, metric) ──► one alias │ several (aliases.rs)    alias = content, position, state
//!                                        └──────────┴─► contents: next hops, type, scope … interned
//! ```
//!
//! Routes of equal key are *aliases*. IPv4 keeps them in an order that `append`, `prepend` and `replace` act on; IPv6
//! joins next hops with a gateway into one multipath route, others stand beside it (`fib6_add_rt2node`).

mod early;
mod gone;
mod hidden;
mod missing;
mod source;

use gone::drop_from;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tandem_linux::netlink::consts::{RT_SCOPE_HOST, RTN_BLACKHOLE, RTN_UNICAST, RTNH_F_ONLINK};
use tandem_linux::netlink::{NewMode, Nexthops, Route, RouteNexthop};

use super::aliases::{Alias, Aliases, Key, Key4, Key6, MARK, Shown, key4, key6};
use super::dead::{digest, rebuild};
use super::lists::{self, At};
pub use hidden::FILE;
pub(super) use hidden::{Hiding, Lines};
pub(super) use missing::Missing;

/// `RTPROT_RA`: learned from router advertisements, never merged into multipath routes.
const RTPROT_RA: u8 = 9;

/// Everything of a route but its key and its passing state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Content {
    pub(super) kind: u8,
    pub(super) scope: u8,
    pub(super) protocol: u8,
    pub(super) nh_id: u32,
    pub(super) nexthops: Nexthops,
    pub(super) src: Option<IpNet>,
    pub(super) prefsrc: Option<IpAddr>,
    pub(super) mtu: u32,
    pub(super) other: u32,
}

impl Content {
    fn of(r: &Route) -> Self {
        let stable = |h: &RouteNexthop| RouteNexthop {
            flags: h.flags & RTNH_F_ONLINK,
            ..*h
        };
        Self {
            kind: match r.kind {
                // the object's, and it may change by itself
                RTN_BLACKHOLE if r.nh_id != 0 => RTN_UNICAST,
                kind => kind,
            },
            scope: r.scope,
            protocol: r.protocol,
            nh_id: r.nh_id,
            nexthops: match &r.nexthops {
                _ if r.nh_id != 0 => Nexthops::None, // the object's, and it may change by itself
                Nexthops::None => Nexthops::None,
                Nexthops::One(h) => Nexthops::One(stable(h)),
                Nexthops::Many(hops) => {
                    let mut hops: Vec<_> = hops.iter().map(stable).collect();
                    // IPv6 tells the next hops of one route in changing order; to IPv4 another order is another route
                    if matches!(r.dst, IpNet::V6(_)) {
                        hops.sort_unstable_by_key(|h| (h.ifindex, h.gateway, h.weight));
                    }
                    Nexthops::Many(hops.into())
                }
            },
            src: r.src,
            prefsrc: r.prefsrc,
            mtu: r.mtu,
            other: r.other,
        }
    }

    pub(super) fn uses(&self, ifindex: u32) -> bool {
        self.hops().iter().any(|h| h.ifindex == ifindex)
    }

    pub(super) fn hops(&self) -> &[RouteNexthop] {
        self.nexthops.as_slice()
    }

    pub(super) const fn nh_id(&self) -> u32 {
        self.nh_id
    }

    /// Goes when its devices do; an own address (scope host) stays until the address goes.
    pub(super) const fn dies_with_device(&self) -> bool {
        self.scope != RT_SCOPE_HOST
    }

    /// Joins into an IPv6 multipath route (`rt6_qualify_for_ecmp`). Of a route with `proto ra` no message says whether the
    /// kernel learned it, which never joins, or somebody else did, until it has joined.
    pub(super) fn joins(&self) -> bool {
        let ra = self.protocol == RTPROT_RA && matches!(self.nexthops, Nexthops::One(_));
        self.may_join() && !ra
    }

    pub(super) fn may_join(&self) -> bool {
        self.nh_id == 0
            && self.kind == RTN_UNICAST
            && !self.hops().is_empty()
            && self.hops().iter().all(|h| h.gateway.is_some())
    }

    /// The same route by the object that it goes by: of what type it is, the kernel does not say while the object is a
    /// blackhole (net/ipv4/fib_semantics.c `fib_dump_info`).
    pub(super) fn same_but_kind(&self, other: &Content) -> bool {
        let kind = other.kind;
        self.nh_id != 0
            && *self
                == Content {
                    kind: self.kind,
                    ..other.clone()
                }
            && (kind == RTN_UNICAST || self.kind == RTN_UNICAST)
    }
}

/// Interned contents.
#[derive(Debug, Default)]
pub(super) struct Contents {
    ids: HashMap<Arc<Content>, u32>,
    slots: Vec<Option<(Arc<Content>, u32)>>,
    free: Vec<u32>,
    /// The one that was asked for last: routes that follow each other mostly share it, and comparing costs less than a hash.
    last: u32,
}

impl Contents {
    pub(super) fn get(&self, id: u32) -> Option<&Content> {
        self.slots
            .get(id as usize)?
            .as_ref()
            .map(|(content, _)| &**content)
    }

    fn find(&self, content: &Content) -> Option<u32> {
        self.ids.get(content).copied()
    }

    /// The content's id, without a reference of its own yet.
    pub(super) fn intern(&mut self, content: Content) -> u32 {
        if self.get(self.last) == Some(&content) {
            return self.last;
        }
        if let Some(id) = self.find(&content) {
            self.last = id;
            return id;
        }
        let content = Arc::new(content);
        let id = self.free.pop().unwrap_or(self.slots.len() as u32);
        let slot = Some((Arc::clone(&content), 0));
        match self.slots.get_mut(id as usize) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        self.ids.insert(content, id);
        self.last = id;
        id
    }

    fn keep(&mut self, id: u32) {
        if let Some(Some((_, refs))) = self.slots.get_mut(id as usize) {
            *refs += 1;
        }
    }

    fn release(&mut self, id: u32) {
        let Some(place) = self.slots.get_mut(id as usize) else {
            return;
        };
        if let Some((content, refs)) = place {
            *refs = refs.saturating_sub(1);
            if *refs == 0 {
                self.ids.remove(&**content);
                *place = None;
                self.free.push(id);
            }
        }
    }

    /// Drops what was interned and has found no place.
    fn forget(&mut self, id: u32) {
        self.keep(id);
        self.release(id);
    }

    /// Which ids satisfy `f`; empty when none does, so that no route need be looked at.
    pub(super) fn which(&self, f: impl Fn(&Content) -> bool) -> Vec<bool> {
        let mut any = false;
        let hits: Vec<bool> = self
            .slots
            .iter()
            .map(|s| {
                let hit = s.as_ref().is_some_and(|(content, _)| f(content));
                any |= hit;
                hit
            })
            .collect();
        if any { hits } else { Vec::new() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Content> {
        self.slots.iter().flatten().map(|(content, _)| &**content)
    }
}

/// What came of it: one alias is there now, or gone. The route is complete in an upsert; in a
/// removal only its key counts.
#[derive(Debug)]
pub(super) enum Change<'a> {
    Upsert(&'a Route, u16),
    Remove(&'a Route, u16),
}

/// Where changes go.
pub(super) type Emit<'a> = dyn FnMut(Change<'_>) + 'a;

/// Which flags the next hops on a device have now (dead, linkdown).
pub(super) type HopFlags<'a> = dyn Fn(u32) -> u8 + 'a;

/// What a message does to the aliases of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// A notification: the route is there.
    New(NewMode),
    /// A dump holds it. `again`: say so even if nothing changed, unless this dump did already.
    Dumped { again: bool },
    /// A notification: the route is gone.
    Del,
}

/// The routes of a family.
pub(super) struct Family<K: Key> {
    pub(super) aliases: Aliases<K>,
    /// The last dumped key and its position: aliases come in the kernel's order.
    last: Option<(K, u16)>,
    /// Contents that the running dump has held of `last`'s key.
    run: Vec<u32>,
    /// Keys with two routes that nothing tells apart. Only a dump knows which of them a message took. With each the sources of
    /// those that another stands for here.
    twins: HashMap<K, Vec<Option<IpNet>>>,
    /// Keys of which a dump had lost a route beside others, before the messages of what took its place were applied.
    torn: HashSet<K>,
    /// Everything was dumped, and messages of before are still to be applied.
    dumped: bool,
    /// Keys where such a message put its route in another's place. The one that it meant may have gone before the dump, unknown; then
    /// that other one is still there when the message's own route has gone.
    displaced: HashSet<K>,
}

impl<K: Key> std::fmt::Debug for Family<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} routes", self.aliases.len())
    }
}

impl<K: Key> Default for Family<K> {
    fn default() -> Self {
        Family {
            aliases: Aliases::default(),
            last: None,
            run: Vec::new(),
            twins: HashMap::new(),
            torn: HashSet::new(),
            dumped: false,
            displaced: HashSet::new(),
        }
    }
}

impl<K: Key> Family<K> {
    /// Takes one message; `ordered`: of a dump that says in which order the routes of a key stand. `false`: it does not name
    /// what is there.
    #[allow(clippy::too_many_arguments)] // one call site for each family
    fn take(
        &mut self,
        contents: &mut Contents,
        key: K,
        r: &Route,
        op: Op,
        late: bool,
        ordered: bool,
        next_hops: &HopFlags<'_>,
        emit: &mut Emit<'_>,
    ) -> bool {
        let after = match &self.last {
            Some((k, position)) if ordered && *k == key => Some(*position),
            _ => None,
        };
        let v6 = matches!(r.dst, IpNet::V6(_));
        let at = At { v6, late, after };
        let before = self.may_displace(&key, op);
        let (map, run) = (&mut self.aliases, &self.run);
        let done = apply(map, contents, key, r, op, at, run, next_hops, emit);
        self.note_displaced(key, &before);
        if done.twin {
            self.twins.entry(key).or_default().push(r.src);
        }
        if ordered {
            remember(&mut self.run, after, &done);
            self.last = done.place.map(|(position, _)| (key, position));
        }
        done.fits
    }

    fn begin_dump(&mut self) {
        self.last = None;
        self.run.clear();
    }
}

/// All routes.
#[derive(Debug, Default)]
pub(super) struct FibCopy {
    pub(super) v4: Family<Key4>,
    v6: Family<Key6>,
    pub(super) contents: Contents,
    /// IPv6 routes that a dump has found beside others of their key before their own message was applied. Which of them
    /// came first the messages tell: such a route goes to the end when its message comes. True: the dump was one of
    /// everything, so what stands beside such a route is not what it has replaced.
    early: HashMap<(Key6, Content), bool>,
    /// The device whose IPv4 routes are looked at, and whether it has one whose place only a look at all says.
    looked_at: Option<(u32, bool)>,
    /// A message spoke of the first route of a key, which a dump may have overtaken: only a dump of all routes says which one that was.
    unsure: bool,
    /// IPv6 keys with a route that no dump shows and no message told of.
    hidden: HashSet<Key6>,
    /// Keys of routes that a look spared, as they may be hidden.
    spared: Vec<Key6>,
    /// What became of IPv6 routes that nothing tells apart, or of hidden ones, only a dump of everything says.
    lost: bool,
}

impl FibCopy {
    /// Routes held, both families.
    pub(super) fn len(&self) -> usize {
        self.v4.aliases.len() + self.v6.aliases.len()
    }

    /// Takes one message. `false`: it names a route that is not there, or one of two that nothing tells apart, which
    /// means that the view is or may be wrong.
    pub(super) fn apply(
        &mut self,
        r: &Route,
        op: Op,
        next_hops: &HopFlags<'_>,
        emit: &mut Emit<'_>,
    ) -> bool {
        match &r.dst {
            IpNet::V4(net) => {
                let key = key4(r, net);
                if op == Op::Del && self.v4.twins.contains_key(&key) {
                    return false;
                }
                if op == Op::Del && self.v4.displaced.contains(&key) {
                    self.unsure = true;
                    return true;
                }
                let torn =
                    matches!(op, Op::New(NewMode::Replace(_))) && self.v4.torn.contains(&key);
                self.unsure |= torn;
                let ordered = matches!(op, Op::Dumped { .. });
                if ordered && self.is_out_of_order(&key, r) {
                    return true;
                }
                let (family, contents) = (&mut self.v4, &mut self.contents);
                family.take(contents, key, r, op, torn, ordered, next_hops, emit)
            }
            IpNet::V6(net) => {
                let key = key6(r, net);
                if matches!(op, Op::Del | Op::New(NewMode::Replace(_)))
                    && self.v6.twins.contains_key(&key)
                {
                    self.lost = true;
                    if op == Op::Del {
                        return true;
                    }
                }
                if op == Op::Del && self.v6.displaced.contains(&key) {
                    // where there is one alone, any look finds it; of several it does not say how they stand
                    match self.v6.aliases.list(&key).len() {
                        0 | 1 => self.unsure = true,
                        _ => self.lost = true,
                    }
                    return true;
                }
                if !matches!(op, Op::Dumped { .. }) {
                    self.doubt_hidden(&key);
                }
                // one device's routes say nothing about where others of their key stand
                let ordered = op == Op::Dumped { again: true };
                let (op, late) = self.overtaken6(&key, r, op);
                let (family, contents) = (&mut self.v6, &mut self.contents);
                family.take(contents, key, r, op, late, ordered, next_hops, emit)
            }
        }
    }

    /// A dump begins, perhaps once more.
    pub(super) fn begin_dump(&mut self) {
        self.v4.begin_dump();
        self.v6.begin_dump();
    }

    /// A dump of everything begins: it settles what was uncertain, and finds anew routes that nothing tells apart, and hidden ones.
    pub(super) fn begin_full(&mut self) {
        self.v4.begin_full();
        self.v6.begin_full();
        self.hidden.clear();
        self.spared.clear();
        self.looked_at = None;
        self.unsure = false;
        self.lost = false;
    }

    /// A look at a device's routes begins, or at all of a family: that finds what messages have displaced.
    pub(super) fn begin_look(&mut self, ifindex: Option<u32>, v6: bool) {
        match (ifindex, v6) {
            (None, true) => self.v6.displaced.clear(),
            (None, false) => self.v4.displaced.clear(),
            (Some(_), _) => {}
        }
        self.looked_at = ifindex.filter(|_| !v6).map(|i| (i, false));
    }

    /// What a look at one device's IPv4 routes has found does not say where it stands: all are to be looked at.
    pub(super) fn take_disorder(&mut self) -> bool {
        self.looked_at.take().is_some_and(|(_, disorder)| disorder)
    }

    /// A dump begins of the IPv4 routes whose content satisfies `f`: it finds those among them that nothing tells apart anew.
    pub(super) fn forget_twins4(&mut self, f: impl Fn(&Content) -> bool) {
        let (v4, contents) = (&mut self.v4, &self.contents);
        let dumped = |a: &Alias| contents.get(a.content).is_none_or(&f);
        let routes = &v4.aliases;
        v4.twins
            .retain(|key, _| !routes.list(key).iter().all(dumped));
    }

    /// Only a dump of everything can say what is there.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// All routes are to be dumped.
    pub(super) fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// See [`FibCopy::is_unsure`]; since the last time.
    pub(super) fn take_unsure(&mut self) -> bool {
        std::mem::take(&mut self.unsure)
    }

    /// Brings near what [`FibCopy::apply`] will look at. Lookups of several routes one after the other wait for memory
    /// together; each by itself, between other work, waits alone.
    pub(super) fn touch(&self, r: &Route) -> bool {
        match &r.dst {
            IpNet::V4(net) => self.v4.aliases.holds(&key4(r, net)),
            IpNet::V6(net) => self.v6.aliases.holds(&key6(r, net)),
        }
    }

    /// All messages of before are applied: what came early has none, or had it.
    pub(super) fn caught_up(&mut self) {
        self.early.clear();
        self.v4.caught_up();
        self.v6.caught_up();
    }

    /// A dump begins: forgets who was seen among the routes whose content satisfies `f`.
    pub(super) fn unmark(&mut self, f: impl Fn(&Content) -> bool) {
        (self.v4.last, self.v6.last) = (None, None);
        let hits = self.contents.which(f);
        if hits.is_empty() {
            return;
        }
        let unmark = |a: &mut Alias| {
            if hits.get(a.content as usize) == Some(&true) {
                a.state &= !MARK;
            }
        };
        self.v4.aliases.each(unmark);
        self.v6.aliases.each(unmark);
    }

    /// A dump of one family (both: `None`) ended: removes what it did not hold among the routes
    /// whose content satisfies `f`; how many.
    pub(super) fn sweep(
        &mut self,
        v6: Option<bool>,
        f: impl Fn(&Content) -> bool,
        emit: &mut Emit<'_>,
    ) -> usize {
        let (mut gone4, mut gone6) = (Vec::new(), Vec::new());
        let n = self.drop_aliases(v6, f, |_, a, _| a.state & MARK == 0, &mut |c| {
            if let Change::Remove(r, _) = &c {
                match &r.dst {
                    IpNet::V4(net) => gone4.push(key4(r, net)),
                    IpNet::V6(net) => gone6.push(key6(r, net)),
                }
            }
            emit(c);
        });
        self.v4.tear(gone4);
        self.v6.tear(gone6);
        n
    }

    /// Removes those among the routes whose content satisfies `f` that are `which`; how many.
    pub(super) fn drop_aliases(
        &mut self,
        v6: Option<bool>,
        f: impl Fn(&Content) -> bool,
        which: impl Fn(bool, &Alias, &Content) -> bool,
        emit: &mut Emit<'_>,
    ) -> usize {
        let hits = self.contents.which(f);
        if hits.is_empty() {
            return 0;
        }
        let contents = &self.contents;
        let of = |v6: bool| {
            let which = &which;
            move |a: &Alias| contents.get(a.content).is_some_and(|c| which(v6, a, c))
        };
        let mut gone = Vec::new();
        let mut n = 0;
        let (mut alone, mut several) = (false, false);
        if v6 != Some(true) {
            let doubt = |_: usize| alone = true;
            n += drop_from(&mut self.v4, &hits, &of(false), &mut gone, doubt, emit);
        }
        if v6 != Some(false) {
            let doubt = |left: usize| match left {
                0 => alone = true,
                _ => several = true,
            };
            n += drop_from(&mut self.v6, &hits, &of(true), &mut gone, doubt, emit);
        }
        self.unsure |= alone;
        self.lost |= several;
        for (id, count) in gone.iter().enumerate() {
            for _ in 0..*count {
                self.contents.release(id as u32);
            }
        }
        n
    }
}

/// What a message came to.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    /// It named what is there.
    fits: bool,
    /// There are two routes of its key that nothing tells apart.
    twin: bool,
    /// Position and content of its alias.
    place: Option<(u16, u32)>,
}

impl Done {
    fn fits(place: Option<(u16, u32)>) -> Self {
        Done {
            fits: true,
            twin: false,
            place,
        }
    }
}

/// Notes what a dump has held of a key.
fn remember(run: &mut Vec<u32>, after: Option<u16>, done: &Done) {
    if after.is_none() {
        run.clear();
    }
    run.extend(done.place.map(|(_, content)| content));
}

/// Takes one message.
#[allow(clippy::too_many_arguments)] // one call site for each family
fn apply<K: Key>(
    map: &mut Aliases<K>,
    contents: &mut Contents,
    key: K,
    r: &Route,
    op: Op,
    at: At,
    run: &[u32],
    next_hops: &HopFlags<'_>,
    emit: &mut Emit<'_>,
) -> Done {
    let content = Content::of(r);
    let state = digest(r) | MARK;
    let again = op == Op::Dumped { again: true };
    let told = op == Op::New(NewMode::Told);
    // the usual cases first: one route to a key
    match map.shown(&key) {
        Shown::None => {
            if op == Op::Del {
                return Done::fits(None);
            }
            let id = contents.intern(content);
            contents.keep(id);
            let alias = Alias {
                content: id,
                position: 0,
                state,
            };
            map.set(key, &[alias]);
            emit(Change::Upsert(r, 0));
            return Done {
                fits: !told,
                ..Done::fits(Some((0, id)))
            };
        }
        Shown::One(a) if at.after.is_none() => {
            let same = contents.get(a.content) == Some(&content);
            match op {
                Op::Del if same => {
                    let gone = *a;
                    map.set(key, &[]);
                    contents.release(gone.content);
                    emit(Change::Remove(r, gone.position));
                    return Done::fits(None);
                }
                Op::New(_) | Op::Dumped { .. } if same => {
                    if again && a.state & MARK == 0 || a.state | MARK != state {
                        emit(Change::Upsert(r, a.position));
                    }
                    a.state = state;
                    return Done::fits(Some((a.position, a.content)));
                }
                Op::New(NewMode::Replace(_) | NewMode::Plain) if !at.v6 && !at.late => {
                    let (old, id) = (a.content, contents.intern(content));
                    contents.keep(id);
                    contents.release(old);
                    (a.content, a.state) = (id, state);
                    emit(Change::Upsert(r, a.position));
                    return Done::fits(Some((a.position, id)));
                }
                _ => {}
            }
        }
        Shown::One(_) | Shown::Several => {}
    }
    let old: Vec<Alias> = map.list(&key);
    let mut list = old.clone();
    let mut own = None;
    let mut twin = false;
    if op == Op::Del {
        if !lists::delete(&mut list, contents, &content, at.v6) {
            return Done::default();
        }
    } else {
        let id = contents.intern(content);
        if at.after.is_some() && run.contains(&id) {
            let place = old.iter().find(|a| a.content == id).map(|a| a.position);
            let last = at.after.or(place);
            return Done {
                twin: true,
                ..Done::fits(last.map(|p| (p, id)))
            };
        }
        own = Some(id);
        let alias = Alias {
            content: id,
            position: 0,
            state,
        };
        if told {
            if !lists::told(&mut list, contents, alias) {
                contents.forget(id);
                return Done::default();
            }
        } else if at.v6 {
            twin = lists::insert6(&mut list, contents, alias, op, at);
        } else {
            lists::insert4(&mut list, alias, op, at);
        }
    }
    let position = settle(
        map, contents, key, r, &old, list, own, again, next_hops, emit,
    );
    Done {
        twin,
        ..Done::fits(position.zip(own))
    }
}

/// The new list of a key's aliases takes effect: positions, references, changes. The position of
/// the alias that the message was about.
#[allow(clippy::too_many_arguments)] // continues `apply`
fn settle<K: Key>(
    map: &mut Aliases<K>,
    contents: &mut Contents,
    key: K,
    r: &Route,
    old: &[Alias],
    mut list: Vec<Alias>,
    own: Option<u32>,
    again: bool,
    next_hops: &HopFlags<'_>,
    emit: &mut Emit<'_>,
) -> Option<u16> {
    lists::number(&mut list);
    for a in &list {
        contents.keep(a.content);
    }
    for a in &list {
        let before = old.iter().find(|o| o.position == a.position);
        let same =
            before.is_some_and(|o| o.content == a.content && o.state | MARK == a.state | MARK);
        if own == Some(a.content) {
            if again && before.is_none_or(|o| o.state & MARK == 0) || !same {
                emit(Change::Upsert(r, a.position));
            }
        } else if !same && let (Some(bare), Some(c)) = (key.route(), contents.get(a.content)) {
            emit(Change::Upsert(
                &rebuild(bare, c, a.state, next_hops),
                a.position,
            ));
        }
    }
    for o in old {
        if !list.iter().any(|a| a.position == o.position) {
            emit(Change::Remove(r, o.position));
        }
    }
    let position = own.and_then(|id| list.iter().find(|a| a.content == id).map(|a| a.position));
    map.set(key, &list);
    for o in old {
        contents.release(o.content);
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many routes there have been, what is remembered is what there is.
    #[test]
    fn contents_go_with_their_last_route() {
        let route = |dst: &str, mtu| Route {
            table: 254,
            dst: dst.parse().unwrap(),
            tos: 0,
            metric: 0,
            kind: RTN_UNICAST,
            scope: 0,
            protocol: 4,
            flags: 0,
            nh_id: 0,
            nexthops: Nexthops::None,
            src: None,
            prefsrc: None,
            mtu,
            other: 0,
        };
        let mut s = FibCopy::default();
        let told = |s: &mut FibCopy, r: &Route, op| s.apply(r, op, &|_| 0, &mut |_| {});
        let new = Op::New(NewMode::Plain);
        for mtu in 1..100 {
            for dst in ["10.0.0.0/8", "2001:db8::/32"] {
                assert!(told(&mut s, &route(dst, mtu), new));
                assert!(told(&mut s, &route(dst, mtu), Op::Del));
            }
            // and one that each takes from the one before
            assert!(told(&mut s, &route("11.0.0.0/8", mtu), new));
        }
        assert_eq!((s.len(), s.contents.iter().count()), (1, 1));
    }
}

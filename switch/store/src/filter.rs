//! Filters of traffic control at front-panel ports: the chip's lists of rules.
//!
//! ```text
//!   filters of a port's hook, in the kernel's order ──► rules by priority ──► ACL_ENTRY ─┐
//!     preference 10, handle 1                             10 << 16 | 0 << 2 | 2           ├─ all stand: ACL_BIND
//!     preference 10, handle 2                             10 << 16 | 1 << 2 | 2           ┘  else: ACL_BIND, TRAP_ALL
//! ```
//!
//! What only the kernel can tell is a rule that traps. A list changes rule by rule in hardware, and at once in the kernel:
//! when more than one rule changes, everything traps first, until all stand. So does a list that does not fit.

mod list;

use crate::Store;
use crate::hw::acl::{AclCounter, AclEntry, AclRange, Mirror, Policer, Rule, list_id};
use crate::hw::table::{HwBody, Obj};
use crate::hw::{Cls, HwClass, Ref, with_class};
use crate::model::{Filter, FilterKey, FilterVerdict, Link, LinkKind, SourceId};
use crate::reason::{Hook, Reason};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;
use tandem_abi::raw::*;

/// Port and stage of a list.
type At = (u16, u16);

/// Filters of one preference at most: their places are numbered.
const PLACES: u16 = 1 << 14;
/// Filters of one preference with different masks that are compared with each other at most.
const COMPARED: usize = 256;
/// So many comparisons take as long as a step, and a filter's rules as long as so many.
const PAIRS: usize = 16;
const RULES: usize = 8;
/// Header and two tags: what a frame is longer than its MTU.
const OVERHEAD: u32 = 22;
/// Within a filter's place: traps for what the kernel looks through and the chip doesn't, then the rule itself.
const RULE: u32 = 2;

/// The rules of one port at one stage.
#[derive(Debug)]
struct List {
    /// Table ids.
    table: u32,
    bind: u32,
    /// Table ids of rules by priority; of those that go as well, until they are gone.
    entries: BTreeMap<u32, u32>,
    /// As they should be.
    target: BTreeMap<u32, AclEntry>,
    /// Priorities of rules that are not in hardware as they should be; of those that failed; of those of whom that is still to
    /// be wanted, and of those that are still to go.
    open: BTreeSet<u32>,
    failed: BTreeSet<u32>,
    due: BTreeSet<u32>,
    going: BTreeSet<u32>,
    /// By preference.
    groups: BTreeMap<u16, Group>,
}

/// The filters of a list that have the same preference.
#[derive(Debug, Default)]
struct Group {
    made: BTreeMap<FilterKey, Made>,
    /// The first place that none has had, and those before it that are free again.
    next: u16,
    free: BTreeSet<u16>,
    /// All have this mask and no ranges of ports: no filter's rules depend on another one.
    mask: Option<tnd_acl_key>,
}

/// The rules of one filter.
#[derive(Debug)]
struct Made {
    /// Within its preference, if there was one left.
    place: Option<u16>,
    /// What they use besides.
    used: Used,
}

impl Group {
    /// A place that no filter has.
    fn take_place(&mut self) -> Option<u16> {
        let free = self.free.pop_first();
        let place = free.or(Some(self.next).filter(|p| *p < PLACES));
        self.next += u16::from(free.is_none() && place.is_some());
        place
    }
}

/// Priorities of the rules that a filter at this place may have.
fn rules_at(preference: u16, place: Option<u16>) -> RangeInclusive<u32> {
    let first = u32::from(preference) << 16 | u32::from(place.unwrap_or(0)) << 2;
    first..=first | 3
}

/// A filter as it is offloaded.
#[derive(Debug)]
struct Shown {
    at: At,
    priority: u32,
    /// Id of its counter on the chip, 0: none.
    counter: u32,
    /// Why its packets are the kernel's, if they are.
    reason: Option<Reason>,
}

/// All filters, and the lists that they make.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// With source and generation.
    all: BTreeMap<FilterKey, Said>,
    /// Filters by the device that they send to.
    pub sending: BTreeSet<(u32, FilterKey)>,
    lists: BTreeMap<At, List>,
    shown: BTreeMap<FilterKey, Shown>,
    /// Filters whose rules are to be made anew, by preference; what those have used that are; lists with such.
    looked: BTreeSet<(At, u16, FilterKey)>,
    before: Used,
    touched: BTreeSet<At>,
    /// Which filters use a counter, range, policer or session.
    pub users: BTreeSet<((Cls, u32), FilterKey)>,
    /// Table ids of counters, ranges, policers and sessions by the chip's.
    parts: BTreeMap<(Cls, u32), u32>,
    /// And back, for what is released.
    by_table: HashMap<(Cls, u32), u32>,
    /// Lists of rules and bindings by table id, with the rule's priority.
    list_of: HashMap<(Cls, u32), (At, u32)>,
    /// Counters, ranges, policers and sessions that did not fit.
    pub parts_failed: BTreeSet<Ref>,
    /// A binding has failed once: the chip has no lists.
    pub binds_failed: bool,
}

/// Before all filters of a device.
fn first_filter(ifindex: u32) -> FilterKey {
    FilterKey {
        ifindex,
        egress: false,
        chain: 0,
        priority: 0,
        handle: 0,
    }
}

impl Filters {
    /// With source and generation.
    pub fn all(&self) -> &BTreeMap<FilterKey, Said> {
        &self.all
    }

    fn insert(&mut self, said: Said) {
        self.remove(&said.0.key);
        let to = sends_to(&said.0).map(|i| (i, said.0.key));
        self.sending.extend(to);
        self.all.insert(said.0.key, said);
    }

    pub fn remove(&mut self, key: &FilterKey) {
        if let Some((f, ..)) = self.all.remove(key) {
            for i in sends_to(&f) {
                self.sending.remove(&(i, *key));
            }
        }
    }

    /// All of a list are looked at.
    fn look_at(&mut self, at: At) {
        let Some(l) = self.lists.get(&at) else {
            return;
        };
        self.touched.insert(at);
        let made = |(p, g): (&u16, &Group)| g.made.keys().map(|k| (at, *p, *k)).collect::<Vec<_>>();
        self.looked.extend(l.groups.iter().flat_map(made));
    }

    /// Filters whose rules use one of these.
    fn users(&self, part: (Cls, u32)) -> impl Iterator<Item = FilterKey> {
        let from = (part, first_filter(0))..;
        let of_it = self.users.range(from).take_while(move |x| x.0 == part);
        of_it.map(|x| x.1)
    }

    /// The index of what they use, from what it is of.
    #[cfg(feature = "oracle")]
    pub fn users_anew(&self) -> BTreeSet<((Cls, u32), FilterKey)> {
        let groups = self.lists.values().flat_map(|l| l.groups.values());
        let made = groups.flat_map(|g| &g.made);
        made.flat_map(|(k, m)| m.used.iter().map(|part| (*part, *k)))
            .collect()
    }

    /// The index of where they send, from what it is of.
    #[cfg(feature = "oracle")]
    pub fn sending_anew(&self) -> BTreeSet<(u32, FilterKey)> {
        let all = self.all.iter();
        all.flat_map(|(k, f)| sends_to(&f.0).map(|i| (i, *k)))
            .collect()
    }

    /// Devices with filters that depend on this one: its own, and what sends there.
    pub fn that_ask(&self, ifindex: u32) -> Vec<u32> {
        let own = self.all.range(first_filter(ifindex)..).next();
        let own = own.map(|(k, _)| k.ifindex).filter(|i| *i == ifindex);
        let from = (ifindex, first_filter(0))..;
        let there = self.sending.range(from).take_while(|x| x.0 == ifindex);
        own.into_iter().chain(there.map(|x| x.1.ifindex)).collect()
    }
}

/// Devices that a filter sends packets or copies to.
fn sends_to(f: &Filter) -> impl Iterator<Item = u32> + use<> {
    let to = match f.verdict {
        FilterVerdict::Redirect(i) => Some(i),
        _ => None,
    };
    to.into_iter().chain(f.mirror)
}

/// Stage of a hook.
fn stage(egress: bool) -> u16 {
    if egress { TND_ACL_EGRESS } else { TND_ACL_PORT }
}

/// FNV-1a of two words, never 0.
fn hash(a: u32, b: u32) -> u32 {
    let bytes = a.to_le_bytes().into_iter().chain(b.to_le_bytes());
    bytes
        .fold(0x811c_9dc5_u32, |h, b| {
            (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
        })
        .max(1)
}

/// No packet matches both.
fn disjoint(a: &Filter, b: &Filter) -> bool {
    use zerocopy::IntoBytes;
    let (ka, ma) = (a.fields.as_bytes(), a.mask.as_bytes());
    let (kb, mb) = (b.fields.as_bytes(), b.mask.as_bytes());
    let bits = ka.iter().zip(ma).zip(kb.iter().zip(mb));
    let apart = |x: Option<(u16, u16)>, y: Option<(u16, u16)>| matches!((x, y), (Some(x), Some(y)) if x.1 < y.0 || y.1 < x.0);
    bits.into_iter()
        .any(|((ka, ma), (kb, mb))| (ka ^ kb) & ma & mb != 0)
        || apart(a.src_ports, b.src_ports)
        || apart(a.dst_ports, b.dst_ports)
}

fn same_effect(a: &Filter, b: &Filter) -> bool {
    let effect = |f: &Filter| (f.verdict, f.mirror, f.police, f.kernel.is_some());
    effect(a) == effect(b)
}

/// It has no ranges of ports.
fn plain(f: &Filter) -> bool {
    f.src_ports.is_none() && f.dst_ports.is_none()
}

/// Filters of one preference whose order is the kernel's alone: it tries masks in the order in which they came. And how many
/// pairs were compared for that.
fn unordered(group: &[Arc<Filter>]) -> (BTreeSet<FilterKey>, usize) {
    let mut out = BTreeSet::new();
    let alike = |f: &Filter| group.first().is_some_and(|g| g.mask == f.mask);
    if group.len() < 2 || group.iter().all(|f| plain(f) && alike(f)) {
        return (out, 0);
    }
    if group.len() > COMPARED {
        return (group.iter().map(|f| f.key).collect(), 0);
    }
    for (i, a) in group.iter().enumerate() {
        for b in group.iter().skip(i + 1) {
            if !disjoint(a, b) && !same_effect(a, b) {
                out.extend([a.key, b.key]);
            }
        }
    }
    (out, group.len() * group.len() / 2)
}

impl Store {
    pub(crate) fn upsert_filter(&mut self, source: SourceId, f: Filter, generation: u16) {
        match self.filters.all.get_mut(&f.key) {
            Some(known) if *known.0 == f => {
                known.2 = generation;
                self.counters.unchanged += 1;
            }
            _ => {
                let key = f.key;
                self.filters.insert((Arc::new(f), source.0, generation));
                self.filter_changed(&key);
            }
        }
    }

    /// With a device go its filters, one after the other.
    pub(crate) fn step_filters_of(&mut self, ifindex: u32) -> bool {
        let first = self.filters.all.range(first_filter(ifindex)..).next();
        let Some(key) = first.map(|(k, _)| *k).filter(|k| k.ifindex == ifindex) else {
            return false;
        };
        self.slices.look();
        self.filters.remove(&key);
        true
    }

    /// A filter at a device that is no front-panel port.
    fn device_filter(&self, ifindex: u32) -> Option<Hook> {
        let (k, (f, ..)) = self.filters.all.range(first_filter(ifindex)..).next()?;
        (k.ifindex == ifindex).then(|| Hook::Filter(f.text.clone()))
    }

    /// Why packets of a device that is no front-panel port pass hooks of their own: chains or filters at it.
    pub(crate) fn hooked(&self, l: &Link) -> Option<Hook> {
        self.chained(&l.name)
            .or_else(|| self.device_filter(l.ifindex))
    }

    /// Which filters are to be looked at, of all lists or of some.
    pub(crate) fn name_rules(&mut self) {
        let mut devices = std::mem::take(&mut self.topo.dirty.lists);
        let keys = std::mem::take(&mut self.topo.dirty.rules);
        let mut keys: Vec<FilterKey> = keys.into_iter().collect();
        let of = &mut self.filters;
        if std::mem::take(&mut self.topo.dirty.filters) {
            devices.extend(of.all.keys().map(|k| k.ifindex));
            let lists: Vec<At> = of.lists.keys().copied().collect();
            lists.into_iter().for_each(|at| of.look_at(at));
        }
        for ifindex in devices {
            if let Some(port) = self.topo.port_of.get(&ifindex) {
                of.look_at((*port, stage(false)));
                of.look_at((*port, stage(true)));
            }
            let of_it = of.all.range(first_filter(ifindex)..).map(|x| *x.0);
            keys.extend(of_it.take_while(|k| k.ifindex == ifindex));
        }
        // others are reached by `goto chain` only, and that is the kernel's
        for k in keys.into_iter().filter(|k| k.chain == 0) {
            if let Some(port) = self.topo.port_of.get(&k.ifindex) {
                let at = (*port, stage(k.egress));
                of.looked.insert((at, k.priority, k));
            }
        }
    }

    /// Rules of the next filter, as they should be: with those of all of its preference, where they may depend on it.
    pub(crate) fn step_rules(&mut self, now: u64) -> bool {
        let Some((at, preference, key)) = self.filters.looked.pop_first() else {
            return false;
        };
        self.filters.touched.insert(at);
        self.slices.left_over(RULES);
        let filter = self.filter_at(at, &key);
        if self.depends_on_none(at, preference, filter) {
            let filters: Vec<Arc<Filter>> = filter.cloned().into_iter().collect();
            self.build_rules(at, preference, Some(key), filters, now);
            return true;
        }
        let looked = &mut self.filters.looked;
        while looked
            .first()
            .is_some_and(|x| (x.0, x.1) == (at, preference))
        {
            looked.pop_first();
        }
        let ifindex = self.topo.if_of_port.get(&at.0).copied().unwrap_or(0);
        let of_group = |handle| FilterKey {
            egress: at.1 == stage(true),
            priority: preference,
            handle,
            ..first_filter(ifindex)
        };
        let keys = self.filters.all.range(of_group(0)..=of_group(u32::MAX));
        let filters = keys.filter_map(|(k, _)| self.filter_at(at, k).cloned());
        let filters: Vec<Arc<Filter>> = filters.collect();
        self.slices.left_over(RULES * filters.len());
        self.build_rules(at, preference, None, filters, now);
        true
    }

    /// A filter that is to be in this list. At a bond, and at a member of one, filters are the kernel's.
    fn filter_at(&self, at: At, key: &FilterKey) -> Option<&Arc<Filter>> {
        let port = self.topo.port_of.get(&key.ifindex);
        let here = port == Some(&at.0) && self.alone(key.ifindex);
        self.filters.all.get(key).filter(|_| here).map(|f| &f.0)
    }

    /// No other filter of its preference depends on this one, or on that it has gone, nor the other way around.
    fn depends_on_none(&self, at: At, preference: u16, filter: Option<&Arc<Filter>>) -> bool {
        let list = self.filters.lists.get(&at);
        match list.and_then(|l| l.groups.get(&preference)) {
            Some(g) => {
                let alike = |m| filter.is_none_or(|f| plain(f) && f.mask == m);
                g.made.len() < usize::from(PLACES) && g.mask.is_some_and(alike)
            }
            None => filter.is_none_or(|f| plain(f)),
        }
    }

    /// Of what filters used before, what none uses any more goes.
    pub(crate) fn end_unused(&mut self, now: u64) {
        for part in std::mem::take(&mut self.filters.before) {
            if self.filters.users(part).next().is_some() {
                continue;
            }
            if let Some(id) = self.filters.parts.get(&part) {
                self.hw.unwant(Ref::new(part.0, *id), now);
            }
        }
    }

    /// The next list goes as far as the chip has come.
    pub(crate) fn step_lists(&mut self, now: u64) -> bool {
        let Some(at) = self.filters.touched.pop_first() else {
            return false;
        };
        self.step_list(at, now);
        true
    }

    /// Rules of one filter, or of all of a preference, are made anew.
    fn build_rules(
        &mut self,
        at: At,
        preference: u16,
        only: Option<FilterKey>,
        filters: Vec<Arc<Filter>>,
        now: u64,
    ) {
        if !self.filters.lists.contains_key(&at) {
            if filters.is_empty() {
                return;
            }
            let list = List {
                table: self.hw.acl_tables.take(),
                bind: self.hw.acl_binds.take(),
                entries: BTreeMap::new(),
                target: BTreeMap::new(),
                open: BTreeSet::new(),
                failed: BTreeSet::new(),
                due: BTreeSet::new(),
                going: BTreeSet::new(),
                groups: BTreeMap::new(),
            };
            let bind = (Cls::AclBind, list.bind);
            self.filters.list_of.insert(bind, (at, 0));
            self.filters.lists.insert(at, list);
        }
        let of = &mut self.filters;
        let Some(l) = of.lists.get_mut(&at) else {
            return;
        };
        let table = l.table;
        let mut group = l.groups.remove(&preference).unwrap_or_default();
        let mut old: BTreeMap<FilterKey, Made> = match only {
            Some(key) => group.made.remove_entry(&key).into_iter().collect(),
            None => std::mem::take(&mut group.made),
        };
        let mut changed = Vec::new();
        for (key, made) in &old {
            let rules = l.target.range(rules_at(preference, made.place));
            changed.extend(rules.map(|x| *x.0));
            // they are in the order of their keys
            if filters.binary_search_by_key(key, |f| f.key).is_err() {
                of.shown.remove(key);
                group.free.extend(made.place);
                for part in &made.used {
                    of.users.remove(&(*part, *key));
                    of.before.insert(*part);
                }
            }
        }
        changed.iter().for_each(|p| _ = l.target.remove(p));
        let (vague, compared) = match only {
            Some(_) => (BTreeSet::new(), 0),
            None => unordered(&filters),
        };
        self.slices.left_over(compared / PAIRS);
        let first = filters.first().map(|f| f.mask);
        let alike = |f: &Arc<Filter>| plain(f) && Some(f.mask) == first;
        group.mask = match only {
            Some(_) => group.mask.or(first),
            None => first.filter(|_| filters.iter().all(alike)),
        };
        let mut target = Vec::new();
        for mut f in filters {
            let was = old.remove(&f.key);
            // a filter keeps its place
            let place = was.as_ref().and_then(|m| m.place);
            let place = place.or_else(|| group.take_place());
            if place.is_none() {
                let f = Arc::make_mut(&mut f);
                f.fields = tnd_acl_key::default();
                f.mask = tnd_acl_key::default();
                (f.src_ports, f.dst_ports) = (None, None);
                f.kernel = Some("its preference has too many filters".into());
            }
            if vague.contains(&f.key) && f.kernel.is_none() {
                Arc::make_mut(&mut f).kernel = Some(
                    "its preference has filters with other masks that match the same: their order is the kernel's"
                        .into(),
                );
            }
            let priority = *rules_at(preference, place).start();
            let mut used = Used::new();
            self.rules_of(at, table, &f, priority, &mut used, &mut target, now);
            let was = was.map(|m| m.used).unwrap_or_default();
            for part in was.difference(&used) {
                self.filters.users.remove(&(*part, f.key));
                self.filters.before.insert(*part);
            }
            let users = used.difference(&was).map(|part| (*part, f.key));
            self.filters.users.extend(users);
            group.made.insert(f.key, Made { place, used });
        }
        if let Some(l) = self.filters.lists.get_mut(&at) {
            changed.extend(target.iter().map(|x| x.0));
            l.target.extend(target);
            if !group.made.is_empty() {
                l.groups.insert(preference, group);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        for priority in changed {
            self.note_rule(at, priority);
        }
    }

    /// What a filter asks of other objects, and why the chip can't do it.
    fn resolve_filter(
        &mut self,
        at: At,
        f: &Filter,
        used: &mut Used,
        now: u64,
    ) -> Result<Parts, Reason> {
        if let Some(why) = &f.kernel {
            return Err(Reason::Filter(why.clone()));
        }
        let mut parts = Parts::default();
        match f.verdict {
            FilterVerdict::Permit => parts.action = TND_ACL_PERMIT,
            FilterVerdict::Drop => parts.action = TND_ACL_DROP,
            FilterVerdict::Redirect(i) => {
                if f.key.egress {
                    return Err(Reason::RedirectOut);
                }
                parts.action = TND_ACL_REDIRECT_PORT;
                parts.target = u32::from(self.way_out(at, i)?);
            }
            FilterVerdict::Next => return Err(Reason::DecidesNothing),
        }
        if let Some(i) = f.mirror {
            let port = self.way_out(at, i)?;
            used.insert((Cls::Mirror, u32::from(port)));
            let id = self.own(Cls::Mirror, u32::from(port));
            self.hw.want(id, Some(Mirror { port }), now);
            self.stands_or::<Mirror>(self.hw.mirrors.get(id))?;
            parts.mirror = port;
            parts.refs.push(Ref::new(Cls::Mirror, id));
        }
        if let Some(p) = f.police {
            let mtu = self.links.get(&f.key.ifindex).map_or(0, |l| l.link.mtu);
            if mtu.saturating_add(OVERHEAD) > p.longest {
                let longest = p.longest;
                return Err(Reason::PolicerLongest { longest, mtu });
            }
            let frame = u64::from(mtu.saturating_add(OVERHEAD));
            if !p.packets && p.burst < frame {
                // the chip lets it pass with a full bucket, the kernel never does
                let burst = p.burst;
                return Err(Reason::PolicerBurst { burst, frame });
            }
            used.insert((Cls::Policer, p.index));
            let id = self.own(Cls::Policer, p.index);
            let body = Policer {
                policer: p.index,
                flags: if p.packets { TND_POLICER_PACKETS } else { 0 },
                rate: p.rate,
                burst: p.burst,
            };
            self.hw.want(id, Some(body), now);
            self.stands_or::<Policer>(self.hw.policers.get(id))?;
            parts.policer = p.index;
            parts.refs.push(Ref::new(Cls::Policer, id));
        }
        Ok(parts)
    }

    /// The ranges of ports that a filter looks at, as a rule has them: one port is a key, all are nothing, others are objects
    /// that rules share. Why there is none; the rule then looks at fewer fields.
    fn name_ranges(
        &mut self,
        f: &Filter,
        body: &mut tnd_acl_entry,
        refs: &mut Vec<Ref>,
        used: &mut Used,
        now: u64,
    ) -> Result<(), Reason> {
        let mut lack = Ok(());
        for (source, ports) in [(true, f.src_ports), (false, f.dst_ports)] {
            let (key, mask, named) = if source {
                (
                    &mut body.key.src_port,
                    &mut body.mask.src_port,
                    &mut body.src_range,
                )
            } else {
                (
                    &mut body.key.dst_port,
                    &mut body.mask.dst_port,
                    &mut body.dst_range,
                )
            };
            match ports {
                None | Some((0, u16::MAX)) => {}
                Some((from, to)) if from == to => (*key, *mask) = (from, u16::MAX),
                Some(ports) => {
                    let range = AclRange { source, ports };
                    used.insert((Cls::AclRange, range.id()));
                    let id = self.own(Cls::AclRange, range.id());
                    self.hw.want(id, Some(range), now);
                    match self.stands_or::<AclRange>(self.hw.acl_ranges.get(id)) {
                        Ok(()) => {
                            *named = range.id();
                            refs.push(Ref::new(Cls::AclRange, id));
                        }
                        Err(why) => lack = Err(why),
                    }
                }
            }
        }
        lack
    }

    fn stands_or<B: HwBody>(&self, o: Option<&Obj<B>>) -> Result<(), Reason> {
        match o.and_then(|o| o.fail.as_ref()) {
            Some(f) => Err(self.fail_reason(f)),
            None => Ok(()),
        }
    }

    /// The port that a copy or a redirected packet leaves by, if nobody but the chip has a say in it there.
    fn way_out(&self, at: At, ifindex: u32) -> Result<u16, Reason> {
        let name = || self.dev(ifindex);
        match self.topo.port_of.get(&ifindex) {
            None => Err(Reason::NoFrontPanelPort(name())),
            Some(p) if *p == at.0 => Err(Reason::PortItself(name())),
            Some(_) if self.topo.reasons.contains_key(&ifindex) || !self.alone(ifindex) => {
                Err(Reason::WayOutKernels(name()))
            }
            Some(p) => Ok(*p),
        }
    }

    /// A front-panel port in no bond.
    pub(crate) fn alone(&self, ifindex: u32) -> bool {
        let link = self.links.get(&ifindex).map(|r| &r.link);
        link.is_some_and(|l| matches!(l.kind, LinkKind::Swp { .. }) && self.bond_of(l).is_none())
    }

    /// The table id of an object with an id of its own on the chip.
    fn own(&mut self, cls: Cls, chip: u32) -> u32 {
        if let Some(id) = self.filters.parts.get(&(cls, chip)) {
            return *id;
        }
        let id = with_class!(cls, T => T::table(&mut self.hw).take());
        self.filters.parts.insert((cls, chip), id);
        self.filters.by_table.insert((cls, id), chip);
        id
    }

    /// The rules that a filter becomes.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller; a struct of them would be built for it alone"
    )]
    fn rules_of(
        &mut self,
        at: At,
        list: u32,
        f: &Filter,
        priority: u32,
        used: &mut Used,
        target: &mut Vec<(u32, AclEntry)>,
        now: u64,
    ) {
        self.slices.look();
        let mut resolved = self.resolve_filter(at, f, used, now);
        if f.kernel.is_none() && f.verdict == FilterVerdict::Next {
            self.show(f.key, at, priority, 0, None);
            return;
        }
        let (table, rule) = (list_id(at.0, at.1), priority | RULE);
        let mut body = tnd_acl_entry {
            struct_size: size_of::<tnd_acl_entry>() as u16,
            table,
            priority: rule,
            key: f.fields,
            mask: f.mask,
            ..Default::default()
        };
        let mut refs = Vec::new();
        if let Err(why) = self.name_ranges(f, &mut body, &mut refs, used, now) {
            resolved = resolved.and(Err(why));
        }
        let (parts, reason) = match resolved {
            Ok(p) => (p, None),
            Err(why) => {
                let trap = Parts {
                    action: TND_ACL_TRAP,
                    ..Parts::default()
                };
                (trap, Some(why))
            }
        };
        // two rules whose ids are equal share a counter: rare, and no answer hangs on it
        let chip = hash(table, rule);
        used.insert((Cls::AclCounter, chip));
        let counter = self.own(Cls::AclCounter, chip);
        self.hw
            .want(counter, Some(AclCounter { counter: chip }), now);
        let counter = self
            .hw
            .acl_counters
            .get(counter)
            .is_some_and(|o| o.fail.is_none())
            .then_some(counter);
        refs.extend(parts.refs);
        refs.extend(counter.map(|id| Ref::new(Cls::AclCounter, id)));
        body = tnd_acl_entry {
            action: parts.action,
            counter: counter.map_or(0, |_| chip),
            policer: parts.policer,
            target: parts.target,
            mirror: parts.mirror,
            ..body
        };
        // Behind a second tag the kernel looks at the packet, the chip doesn't.
        if f.mask.tag != 0 && f.fields.tag != TND_ACL_UNTAGGED && f.mask.ethertype != 0 {
            for (i, tag) in [(0, 0x8100), (1, 0x88a8)] {
                let mut two = tnd_acl_entry {
                    struct_size: body.struct_size,
                    action: TND_ACL_TRAP,
                    table,
                    priority: priority | i,
                    ..Default::default()
                };
                for (to, from) in [(&mut two.key, &f.fields), (&mut two.mask, &f.mask)] {
                    (to.dst_mac, to.src_mac) = (from.dst_mac, from.src_mac);
                    (to.tag, to.tci) = (from.tag, from.tci);
                }
                (two.key.ethertype, two.mask.ethertype) = (tag, u16::MAX);
                let two = Rule {
                    body: two,
                    list,
                    parts: Vec::new(),
                };
                target.push((priority | i, two.into()));
            }
        }
        let parts = refs;
        target.push((rule, Rule { body, list, parts }.into()));
        self.show(f.key, at, rule, body.counter, reason);
    }

    fn show(
        &mut self,
        key: FilterKey,
        at: At,
        priority: u32,
        counter: u32,
        reason: Option<Reason>,
    ) {
        let shown = Shown {
            at,
            priority,
            counter,
            reason,
        };
        self.filters.shown.insert(key, shown);
    }
}

/// A filter with source and generation.
type Said = (Arc<Filter>, u8, u16);

/// What rules use besides their list, by class and the chip's id.
type Used = BTreeSet<(Cls, u32)>;

/// A rule's parts beyond its fields: the chip's ids, 0: none, and what they are of.
#[derive(Clone, Debug, Default)]
struct Parts {
    action: u16,
    target: u32,
    policer: u32,
    mirror: u16,
    refs: Vec<Ref>,
}

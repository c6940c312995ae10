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
use crate::hw::acl::{AclCounter, AclEntry, AclRange, Mirror, Policer, list_id};
use crate::hw::table::{HwBody, Obj};
use crate::hw::{Cls, HwClass, Ref, with_class};
use crate::model::{Filter, FilterKey, FilterVerdict, Link, LinkKind, SourceId};
use crate::reason::{Hook, Reason};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tandem_abi::raw::*;

/// Port and stage of a list.
type At = (u16, u16);

/// Filters of one preference at most: their places are numbered.
const PLACES: u16 = 1 << 14;
/// Filters of one preference with different masks that are compared with each other at most.
const COMPARED: usize = 256;
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
    /// be wanted.
    open: BTreeSet<u32>,
    failed: BTreeSet<u32>,
    due: BTreeSet<u32>,
    /// Places of the filters within their preference.
    places: HashMap<FilterKey, u16>,
    /// What its rules use besides.
    used: Used,
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
    all: BTreeMap<FilterKey, (Filter, u8, u16)>,
    /// Filters by the device that they send to.
    pub sending: BTreeSet<(u32, FilterKey)>,
    lists: BTreeMap<At, List>,
    shown: BTreeMap<FilterKey, Shown>,
    /// Table ids of counters, ranges, policers and sessions by the chip's.
    parts: BTreeMap<(Cls, u32), u32>,
    /// And back, for what is released.
    by_table: HashMap<(Cls, u32), u32>,
    list_of: HashMap<(Cls, u32), At>,
    /// Rules by the table id of their counter.
    counted: HashMap<u32, (At, u32)>,
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
    pub fn all(&self) -> &BTreeMap<FilterKey, (Filter, u8, u16)> {
        &self.all
    }

    fn insert(&mut self, said: (Filter, u8, u16)) {
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

/// Filters of one preference whose order is the kernel's alone: it tries masks in the order in which they came.
fn unordered(group: &[&Filter]) -> BTreeSet<FilterKey> {
    let mut out = BTreeSet::new();
    let plain = |f: &&Filter| f.src_ports.is_none() && f.dst_ports.is_none();
    let alike = |f: &&Filter| group.first().is_some_and(|g| g.mask == f.mask);
    if group.len() < 2 || (group.iter().all(plain) && group.iter().all(alike)) {
        return out;
    }
    if group.len() > COMPARED {
        return group.iter().map(|f| f.key).collect();
    }
    for (i, a) in group.iter().enumerate() {
        for b in group.iter().skip(i + 1) {
            if !disjoint(a, b) && !same_effect(a, b) {
                out.extend([a.key, b.key]);
            }
        }
    }
    out
}

impl Store {
    pub(crate) fn upsert_filter(&mut self, source: SourceId, f: Filter, generation: u16) {
        match self.filters.all.get_mut(&f.key) {
            Some(known) if known.0 == f => {
                known.2 = generation;
                self.counters.unchanged += 1;
            }
            _ => {
                let ifindex = f.key.ifindex;
                self.filters.insert((f, source.0, generation));
                self.filter_changed(ifindex);
            }
        }
    }

    /// With a device go its filters.
    pub(crate) fn filters_gone(&mut self, ifindex: u32) {
        let of_it = self.filters.all.range(first_filter(ifindex)..);
        let of_it = of_it.take_while(|(k, _)| k.ifindex == ifindex);
        for key in of_it.map(|(k, _)| *k).collect::<Vec<_>>() {
            self.filters.remove(&key);
            self.topo.dirty.lists.insert(ifindex);
        }
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

    /// Rules of the ports that are to be looked at, as they should be.
    pub(crate) fn refresh_filters(&mut self, now: u64) {
        let mut looked = std::mem::take(&mut self.topo.dirty.lists);
        let mut by_list: BTreeMap<At, Vec<Filter>> = BTreeMap::new();
        if std::mem::take(&mut self.topo.dirty.filters) {
            looked.extend(self.filters.all.keys().map(|k| k.ifindex));
            self.filters.shown.clear();
            for at in self.filters.lists.keys() {
                by_list.entry(*at).or_default();
            }
        }
        for ifindex in looked {
            let from = first_filter(ifindex)..;
            let shown = self.filters.shown.range(from.clone()).map(|x| *x.0);
            let shown = shown.take_while(|k| k.ifindex == ifindex);
            for key in shown.collect::<Vec<_>>() {
                self.filters.shown.remove(&key);
            }
            let Some(&port) = self.topo.port_of.get(&ifindex) else {
                continue;
            };
            for at in [false, true].map(|egress| (port, stage(egress))) {
                if self.filters.lists.contains_key(&at) {
                    by_list.entry(at).or_default();
                }
            }
            // at a bond, and at a member of one, filters are the kernel's
            if !self.alone(ifindex) {
                continue;
            }
            let of_it = self.filters.all.range(from).map(|(_, f)| &f.0);
            for f in of_it.take_while(|f| f.key.ifindex == ifindex) {
                // others are reached by `goto chain` only, and that is the kernel's
                if f.key.chain == 0 {
                    let at = (port, stage(f.key.egress));
                    by_list.entry(at).or_default().push(f.clone());
                }
            }
        }
        let lists: Vec<At> = by_list.keys().copied().collect();
        let mut before = Used::new();
        for (at, filters) in by_list {
            if let Some(l) = self.filters.lists.get_mut(&at) {
                before.append(&mut l.used);
            }
            self.build_list(at, &filters, now);
        }
        self.end_unused(&before, now);
        for at in lists {
            self.step_list(at, now);
        }
    }

    fn build_list(&mut self, at: At, filters: &[Filter], now: u64) {
        let mut used = Used::new();
        let mut target = BTreeMap::new();
        let table = match self.filters.lists.get(&at) {
            Some(l) => l.table,
            None if filters.is_empty() => return,
            None => {
                let list = List {
                    table: self.hw.acl_tables.take(),
                    bind: self.hw.acl_binds.take(),
                    entries: BTreeMap::new(),
                    target: BTreeMap::new(),
                    open: BTreeSet::new(),
                    failed: BTreeSet::new(),
                    due: BTreeSet::new(),
                    places: HashMap::new(),
                    used: Used::new(),
                };
                let (table, bind) = (list.table, list.bind);
                self.filters.list_of.insert((Cls::AclBind, bind), at);
                self.filters.lists.insert(at, list);
                table
            }
        };
        let mut at_place = HashMap::new();
        for group in filters.chunk_by(|a, b| a.key.priority == b.key.priority) {
            let group: Vec<&Filter> = group.iter().collect();
            let vague = unordered(&group);
            let places = self.places(at, &group);
            for f in group {
                let place = places.get(&f.key).copied();
                let mut f = f.clone();
                let number = match place {
                    Some(p) => {
                        at_place.insert(f.key, p);
                        p
                    }
                    None => {
                        f.fields = tnd_acl_key::default();
                        f.mask = tnd_acl_key::default();
                        (f.src_ports, f.dst_ports) = (None, None);
                        f.kernel = Some("its preference has too many filters".into());
                        0
                    }
                };
                if vague.contains(&f.key) && f.kernel.is_none() {
                    f.kernel = Some(
                        "its preference has filters with other masks that match the same: their order is the kernel's"
                            .into(),
                    );
                }
                let priority = u32::from(f.key.priority) << 16 | u32::from(number) << 2;
                self.rules_of(at, table, &f, priority, &mut used, &mut target, now);
            }
        }
        if let Some(l) = self.filters.lists.get_mut(&at) {
            l.target = target;
            l.places = at_place;
            l.used = used;
            for s in [&mut l.open, &mut l.failed, &mut l.due] {
                s.clear();
            }
            let all: BTreeSet<u32> = l.entries.keys().chain(l.target.keys()).copied().collect();
            for priority in all {
                self.note_rule(at, priority);
            }
        }
    }

    /// Places within a preference: a filter keeps its own.
    fn places(&self, at: At, group: &[&Filter]) -> HashMap<FilterKey, u16> {
        let old = self.filters.lists.get(&at).map(|l| &l.places);
        let mut out: HashMap<FilterKey, u16> = HashMap::new();
        for f in group {
            if let Some(p) = old.and_then(|o| o.get(&f.key)) {
                out.insert(f.key, *p);
            }
        }
        let mut taken: BTreeSet<u16> = out.values().copied().collect();
        let mut next = 0;
        for f in group {
            if out.contains_key(&f.key) {
                continue;
            }
            while taken.contains(&next) {
                next += 1;
            }
            if next >= PLACES {
                break;
            }
            taken.insert(next);
            out.insert(f.key, next);
        }
        out
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
        let name = self.dev(ifindex);
        match self.topo.port_of.get(&ifindex) {
            None => Err(Reason::NoFrontPanelPort(name)),
            Some(p) if *p == at.0 => Err(Reason::PortItself(name)),
            Some(_) if self.topo.reasons.contains_key(&ifindex) || !self.alone(ifindex) => {
                Err(Reason::WayOutKernels(name))
            }
            Some(p) => Ok(*p),
        }
    }

    /// A front-panel port in no bond.
    fn alone(&self, ifindex: u32) -> bool {
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
        target: &mut BTreeMap<u32, AclEntry>,
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
        self.filters.counted.insert(counter, (at, rule));
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
                target.insert(
                    priority | i,
                    AclEntry {
                        body: two,
                        list,
                        parts: Vec::new(),
                    },
                );
            }
        }
        target.insert(
            rule,
            AclEntry {
                body,
                list,
                parts: refs,
            },
        );
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

    /// Of what lists used before, what none uses any more goes.
    fn end_unused(&mut self, before: &Used, now: u64) {
        for part in before {
            if self.filters.lists.values().any(|l| l.used.contains(part)) {
                continue;
            }
            if let Some(id) = self.filters.parts.get(part) {
                self.hw.unwant(Ref::new(part.0, *id), now);
            }
        }
    }
}

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

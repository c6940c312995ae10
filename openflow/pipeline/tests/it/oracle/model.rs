// SPDX-License-Identifier: Apache-2.0
//! A switch by the letter of the standard: flows in a list, looked at one after the other.

use super::layout::{choice, order};
use super::meter::{Meter, SECOND};
use super::packet::{Body, Ether, Undefined};
use crate::common::{Got, Seen};
use std::collections::BTreeMap;
use tandem_ofpipeline::Why;
use tandem_openflow::model::{
    Bucket, FlowCommand, FlowFilter, FlowMod, GroupCommand, GroupMod, GroupType, MeterCommand,
    MeterMod,
};
use tandem_openflow::{Action, Error, Field, Oxm, port};

const ANY: u32 = 0xffff_ffff;

#[derive(Clone, Debug)]
pub struct Flow {
    pub asked: FlowMod,
    pub packets: u64,
    pub bytes: u64,
    pub since: u64,
    pub last: u64,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub kind: GroupType,
    pub buckets: Vec<Bucket>,
    pub packets: u64,
    pub bytes: u64,
    pub taken: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Port {
    pub live: bool,
    pub no_flood: bool,
    pub no_recv: bool,
    pub no_fwd: bool,
    pub no_packet_in: bool,
    pub tx: u64,
    pub rx: u64,
}

pub struct Model {
    pub v10: bool,
    pub flows: Vec<Flow>,
    pub groups: BTreeMap<u32, Group>,
    pub meters: BTreeMap<u32, Meter>,
    pub ports: BTreeMap<u32, Port>,
    pub lookups: BTreeMap<u8, (u64, u64)>,
    pub table_entries: usize,
    pub invalid_ttl: bool,
}

/// A packet on its way.
#[derive(Clone)]
struct Way {
    packet: Ether,
    in_port: u32,
    metadata: u64,
    tunnel: u64,
    table: u8,
    cookie: u64,
    why: Why,
}

/// The packet goes no further.
pub enum Stop {
    Dropped,
    Undefined,
}

impl From<Undefined> for Stop {
    fn from(_: Undefined) -> Stop {
        Stop::Undefined
    }
}

impl Flow {
    fn matches(&self, fields: &BTreeMap<Field, u128>) -> bool {
        self.asked.matching.fields.iter().all(|o| {
            let Some(v) = fields.get(&o.field) else {
                return false;
            };
            (0..o.field.bits()).all(|b| o.mask >> b & 1 == 0 || v >> b & 1 == o.value >> b & 1)
        })
    }

    fn same(&self, table: u8, priority: u32, m: &[Oxm]) -> bool {
        let sorted = |m: &[Oxm]| {
            let mut m = m.to_vec();
            m.sort();
            m
        };
        self.asked.table == table
            && priority_of(&self.asked) == priority
            && sorted(&self.asked.matching.fields) == sorted(m)
    }

    /// Is it one of those that a match without strictness means?
    fn within(&self, m: &[Oxm]) -> bool {
        m.iter().all(|o| {
            let mine = self
                .asked
                .matching
                .fields
                .iter()
                .find(|x| x.field == o.field);
            mine.is_some_and(|x| x.mask & o.mask == o.mask && x.value & o.mask == o.value)
        })
    }

    fn actions(&self) -> Vec<Action> {
        let i = &self.asked.instructions;
        [&i.apply, &i.write]
            .into_iter()
            .flatten()
            .flatten()
            .copied()
            .collect()
    }

    pub fn groups(&self) -> Vec<u32> {
        groups_of(&self.actions())
    }

    fn sends(&self, out_port: u32, out_group: u32) -> bool {
        let all = self.actions();
        let port = out_port == ANY
            || all
                .iter()
                .any(|a| matches!(a, Action::Output { port, .. } | Action::Enqueue10 { port, .. } if *port == out_port));
        let group = out_group == ANY || all.contains(&Action::Group(out_group));
        port && group
    }

    fn overlaps(&self, m: &[Oxm]) -> bool {
        m.iter().all(|o| {
            let mine = self
                .asked
                .matching
                .fields
                .iter()
                .find(|x| x.field == o.field);
            mine.is_none_or(|x| (x.value ^ o.value) & x.mask & o.mask == 0)
        })
    }

    fn due(&self) -> Option<u64> {
        let m = &self.asked;
        let hard = (m.hard_timeout > 0).then(|| self.since + u64::from(m.hard_timeout) * SECOND);
        let idle = (m.idle_timeout > 0).then(|| self.last + u64::from(m.idle_timeout) * SECOND);
        hard.into_iter().chain(idle).min()
    }
}

/// 1.0 §3.4: a match without wildcards is above all others, whatever its priority.
fn priority_of(m: &FlowMod) -> u32 {
    match m.matching.exact {
        true => u32::MAX,
        false => m.priority.into(),
    }
}

fn groups_of(actions: &[Action]) -> Vec<u32> {
    let group = |a: &Action| match a {
        Action::Group(g) => Some(*g),
        _ => None,
    };
    actions.iter().filter_map(group).collect()
}

impl Group {
    pub fn behind(&self) -> Vec<u32> {
        self.buckets
            .iter()
            .flat_map(|b| groups_of(&b.actions))
            .collect()
    }
}

impl Model {
    pub fn flow_mod(&mut self, m: &FlowMod, now: u64) -> Result<(), Error> {
        let (fields, priority) = (&m.matching.fields, priority_of(m));
        let strict = matches!(
            m.command,
            FlowCommand::ModifyStrict | FlowCommand::DeleteStrict
        );
        let meant = |f: &Flow| {
            let table = m.table == 255 || f.asked.table == m.table;
            let cookie = self.v10 || (f.asked.cookie ^ m.cookie) & m.cookie_mask == 0;
            let which = if strict {
                f.same(f.asked.table, priority, fields)
            } else {
                f.within(fields)
            };
            table && cookie && which
        };
        match m.command {
            // 1.0 §4.6: what changes no flow adds one
            FlowCommand::Modify | FlowCommand::ModifyStrict
                if self.v10 && !self.flows.iter().any(meant) =>
            {
                let command = FlowCommand::Add;
                return self.flow_mod(
                    &FlowMod {
                        command,
                        ..m.clone()
                    },
                    now,
                );
            }
            FlowCommand::Add => {
                let mut in_table = self.flows.iter().filter(|f| f.asked.table == m.table);
                if m.flags & 2 != 0
                    && in_table
                        .clone()
                        .any(|f| priority_of(&f.asked) == priority && f.overlaps(fields))
                {
                    return Err(Error::FLOW_MOD_FAILED_OVERLAP);
                }
                let count = in_table.clone().count();
                let old = in_table.find(|f| f.same(m.table, priority, fields));
                if old.is_none() && count >= self.table_entries {
                    return Err(Error::FLOW_MOD_FAILED_TABLE_FULL);
                }
                let (packets, bytes) = match old {
                    Some(f) if m.flags & 4 == 0 => (f.packets, f.bytes),
                    _ => (0, 0),
                };
                self.flows.retain(|f| !f.same(m.table, priority, fields));
                self.flows.push(Flow {
                    asked: m.clone(),
                    packets,
                    bytes,
                    since: now,
                    last: now,
                });
            }
            FlowCommand::Modify | FlowCommand::ModifyStrict => {
                let v10 = self.v10;
                for f in self.flows.iter_mut().filter(|f| meant(f)) {
                    f.asked.instructions = m.instructions.clone();
                    if v10 {
                        f.asked.cookie = m.cookie;
                    }
                    if m.flags & 4 != 0 {
                        (f.packets, f.bytes) = (0, 0);
                    }
                }
            }
            FlowCommand::Delete | FlowCommand::DeleteStrict => {
                self.flows
                    .retain(|f| !(meant(f) && f.sends(m.out_port, m.out_group)));
            }
        }
        Ok(())
    }

    /// Does a flow name a meter, and a group, that is not there?
    pub fn lacks(&self, m: &FlowMod) -> (bool, bool) {
        let i = &m.instructions;
        let lists = [&i.apply, &i.write].into_iter().flatten();
        (
            i.meter.is_some_and(|n| !self.meters.contains_key(&n)),
            lists
                .flat_map(|l| groups_of(l))
                .any(|g| !self.groups.contains_key(&g)),
        )
    }

    /// The answer to a message about a group; `None` if that depends on the groups that it names.
    pub fn judge_group(&self, m: &GroupMod) -> Option<Result<(), Error>> {
        let there = self.groups.contains_key(&m.group);
        let mut others = self.groups.iter().filter(|(n, _)| **n != m.group);
        let named = |b: &Bucket| b.watch_group != ANY || !groups_of(&b.actions).is_empty();
        match m.command {
            GroupCommand::Add if there => Some(Err(Error::GROUP_MOD_FAILED_GROUP_EXISTS)),
            GroupCommand::Modify if !there => Some(Err(Error::GROUP_MOD_FAILED_UNKNOWN_GROUP)),
            GroupCommand::Delete if others.any(|(_, g)| g.behind().contains(&m.group)) => {
                Some(Err(Error::GROUP_MOD_FAILED_CHAINED_GROUP))
            }
            GroupCommand::Delete => Some(Ok(())),
            _ if m.buckets.iter().any(named) => None,
            _ => Some(Ok(())),
        }
    }

    pub fn group_mod(&mut self, m: &GroupMod) {
        match m.command {
            GroupCommand::Delete => {
                let gone: Vec<u32> = self
                    .groups
                    .keys()
                    .copied()
                    .filter(|g| m.group == 0xffff_fffc || *g == m.group)
                    .collect();
                for g in gone {
                    self.flows
                        .retain(|f| !f.actions().contains(&Action::Group(g)));
                    self.groups.remove(&g);
                }
            }
            _ => {
                let group = Group {
                    kind: m.kind,
                    buckets: m.buckets.clone(),
                    packets: 0,
                    bytes: 0,
                    taken: vec![0; m.buckets.len()],
                };
                self.groups.insert(m.group, group);
            }
        }
    }

    pub fn meter_mod(&mut self, m: &MeterMod, now: u64) {
        if m.command == MeterCommand::Delete {
            self.meters.remove(&m.meter);
            self.flows
                .retain(|f| f.asked.instructions.meter != Some(m.meter));
            return;
        }
        let packets = self.meters.get(&m.meter).map_or(0, |old| old.packets);
        self.meters.insert(m.meter, Meter::new(m, now, packets));
    }

    /// Flows whose time is up: how many went and would have been told.
    pub fn expire(&mut self, now: u64) -> usize {
        let before = self.flows.iter().filter(|f| f.asked.flags & 1 != 0).count();
        self.flows.retain(|f| f.due().is_none_or(|d| d > now));
        before - self.flows.iter().filter(|f| f.asked.flags & 1 != 0).count()
    }

    pub fn count(&self, filter: &FlowFilter) -> (u64, u64, u32) {
        let all = self.flows.iter().filter(|f| {
            (filter.table == 255 || filter.table == f.asked.table)
                && (f.asked.cookie ^ filter.cookie) & filter.cookie_mask == 0
                && f.within(&filter.matching.fields)
                && f.sends(filter.out_port, filter.out_group)
        });
        all.fold((0, 0, 0), |(p, b, n), f| {
            (p + f.packets, b + f.bytes, n + 1)
        })
    }

    /// What comes of a packet; `None` where the standard leaves it open.
    pub fn process(&mut self, frame: &[u8], in_port: u32, now: u64) -> Option<Vec<Got>> {
        let mut out = Vec::new();
        let p = self.ports.get_mut(&in_port)?;
        if p.no_recv || frame.len() < 14 {
            return Some(out);
        }
        p.rx += 1;
        let mut way = Way {
            packet: match self.v10 {
                true => Ether::parse10(frame),
                false => Ether::parse(frame),
            },
            in_port,
            metadata: 0,
            tunnel: 0,
            table: 0,
            cookie: u64::MAX,
            why: Why::Action,
        };
        match self.tables(&mut way, now, &mut out) {
            Err(Stop::Undefined) => None,
            Ok(()) | Err(Stop::Dropped) => Some(out),
        }
    }

    fn tables(&mut self, way: &mut Way, now: u64, out: &mut Vec<Got>) -> Result<(), Stop> {
        let mut set: Vec<Action> = Vec::new();
        loop {
            let mut fields = match self.v10 {
                true => way.packet.fields10(),
                false => way.packet.fields(),
            };
            fields.insert(Field::InPort, u128::from(way.in_port));
            fields.insert(Field::InPhyPort, u128::from(way.in_port));
            fields.insert(Field::Metadata, u128::from(way.metadata));
            fields.insert(Field::TunnelId, u128::from(way.tunnel));
            let size = way.packet.build().len() as u64;
            let best = self
                .flows
                .iter()
                .enumerate()
                .filter(|(_, f)| f.asked.table == way.table && f.matches(&fields))
                .max_by_key(|(_, f)| (priority_of(&f.asked), order(&f.asked.matching.fields)))
                .map(|(n, _)| n);
            let counters = self.lookups.entry(way.table).or_default();
            counters.0 += 1;
            let Some(best) = best else {
                // 1.3 drops (§5.4), 1.0 asks the controller (1.0 §3.4)
                if self.v10 && !self.ports[&way.in_port].no_packet_in {
                    way.why = Why::NoMatch;
                    self.output(way, port::CONTROLLER, 128, out);
                }
                return Err(Stop::Dropped);
            };
            counters.1 += 1;
            let f = &mut self.flows[best];
            f.packets += u64::from(f.asked.flags & 8 == 0);
            f.bytes += if f.asked.flags & 16 == 0 { size } else { 0 };
            f.last = now;
            let miss = !self.v10 && f.asked.priority == 0 && f.asked.matching.fields.is_empty();
            way.cookie = f.asked.cookie;
            way.why = if miss { Why::NoMatch } else { Why::Action };
            let i = f.asked.instructions.clone();
            let quiet = miss && self.ports[&way.in_port].no_packet_in;
            let silent = |a: &Action| {
                quiet
                    && matches!(
                        a,
                        Action::Output {
                            port: port::CONTROLLER,
                            ..
                        }
                    )
            };
            if let Some(m) = i.meter {
                let levels = self.meters.get_mut(&m).unwrap().measure(size, now)?;
                let dscp = fields.get(&Field::IpDscp).copied().unwrap_or_default();
                // AF11 to AF43: 10, 12, 14, 18, 20, 22, 26, 28, 30, 34, 36, 38
                for class in [8, 16, 24, 32] {
                    if levels > 0 && [2, 4, 6].contains(&dscp.wrapping_sub(class)) {
                        let new = (dscp - class + 2 * u128::from(levels)).min(6) + class;
                        if new != dscp {
                            way.packet.set(Field::IpDscp, new)?;
                        }
                    }
                }
            }
            for a in i.apply.unwrap_or_default() {
                if !silent(&a) {
                    self.action(way, &a, out)?;
                }
            }
            if i.clear {
                set.clear();
            }
            for a in i.write.unwrap_or_default() {
                if !silent(&a) {
                    set.retain(|have| kind(have) != kind(&a));
                    set.push(a);
                }
            }
            if let Some((v, m)) = i.metadata {
                way.metadata = way.metadata & !m | v & m;
            }
            match i.goto {
                Some(t) => way.table = t,
                None => break,
            }
        }
        self.set(way, &set, out)
    }

    fn set(&mut self, way: &mut Way, set: &[Action], out: &mut Vec<Got>) -> Result<(), Stop> {
        let mut set = set.to_vec();
        set.sort_by_key(kind);
        let group = set.iter().any(|a| matches!(a, Action::Group(_)));
        let output = set.iter().any(|a| matches!(a, Action::Output { .. }));
        if !group && !output {
            // Dropped, but a TTL that is used up is told of all the same only if something would have been sent
            return Ok(());
        }
        for a in set {
            if !(group && matches!(a, Action::Output { .. })) {
                self.action(way, &a, out)?;
            }
        }
        Ok(())
    }

    fn action(&mut self, way: &mut Way, a: &Action, out: &mut Vec<Got>) -> Result<(), Stop> {
        let e = &mut way.packet;
        match *a {
            Action::Output { port, max_len } => self.output(way, port, max_len, out),
            Action::Group(g) => return self.group(way, g, out),
            Action::SetQueue(_) => {}
            Action::Enqueue10 { port, .. } => self.output(way, port, 0, out),
            Action::SetVlanVid10(_) | Action::SetVlanPcp10(_) => {
                if e.tags.is_empty() {
                    e.tags.push((0x8100, 0));
                }
                match *a {
                    Action::SetVlanVid10(v) => e.set(Field::VlanVid, u128::from(v))?,
                    Action::SetVlanPcp10(v) => e.set(Field::VlanPcp, u128::from(v))?,
                    _ => {}
                }
            }
            Action::StripVlan10 if !e.tags.is_empty() => drop(e.tags.remove(0)),
            Action::SetNw10 { dst, addr } => {
                let field = [Field::Ipv4Src, Field::Ipv4Dst][usize::from(dst)];
                e.set(field, u128::from(addr))?;
            }
            Action::SetNwTos10(tos) => e.set(Field::IpDscp, u128::from(tos >> 2))?,
            Action::SetTp10 { dst, port } => {
                for pair in [
                    [Field::TcpSrc, Field::TcpDst],
                    [Field::UdpSrc, Field::UdpDst],
                ] {
                    e.set(pair[usize::from(dst)], u128::from(port))?;
                }
            }
            Action::SetField {
                field: Field::TunnelId,
                value,
            } => way.tunnel = value as u64,
            Action::SetField { field, value } => e.set(field, value)?,
            Action::PushVlan(t) => {
                let tci = e.tags.first().map_or(0, |(_, tci)| tci & 0xefff);
                e.tags.insert(0, (t, tci));
            }
            Action::PopVlan if !e.tags.is_empty() => drop(e.tags.remove(0)),
            Action::PushMpls(t) => {
                let shim = match &e.body {
                    Body::Mpls(s, _) => s & !0x100,
                    b => u32::from(b.ttl().unwrap_or(0)) | 0x100,
                };
                e.body = Body::Mpls(shim, e.body.bytes());
                e.kind = t;
            }
            Action::PopMpls(t) => {
                if let Body::Mpls(_, inner) = &e.body {
                    if e.protocol_set {
                        return Err(Stop::Undefined);
                    }
                    let inner = inner.clone();
                    e.uncover(t, &inner);
                }
            }
            Action::PushPbb(t) => {
                let pcp = e.tags.first().map_or(0, |(_, tci)| u32::from(tci >> 13));
                let isid = match &e.body {
                    Body::Pbb(tci, _) => tci & 0xff_ffff,
                    _ => 0,
                };
                let outer = Ether {
                    tags: Vec::new(),
                    kind: t,
                    body: Body::Pbb(pcp << 29 | isid, Box::new(e.clone())),
                    length: None,
                    ..*e
                };
                *e = outer;
            }
            Action::PopPbb => {
                if let Body::Pbb(_, inner) = &e.body {
                    let set = e.protocol_set;
                    *e = (**inner).clone();
                    e.protocol_set |= set;
                }
            }
            Action::CopyTtlOut => {
                if let Some(ttl) = e.body.inner().and_then(|b| b.ttl())
                    && e.body.ttl().is_some()
                {
                    e.body.set_ttl(ttl)?;
                }
            }
            Action::CopyTtlIn => {
                if let (Some(ttl), Some(mut inner)) = (e.body.ttl(), e.body.inner()) {
                    inner.set_ttl(ttl)?;
                    e.body.set_inner(&inner);
                }
            }
            Action::SetMplsTtl(ttl) if matches!(e.body, Body::Mpls(..)) => e.body.set_ttl(ttl)?,
            Action::SetNwTtl(ttl) if matches!(e.body, Body::Ip4(_) | Body::Ip6(_)) => {
                e.body.set_ttl(ttl)?
            }
            Action::DecMplsTtl if matches!(e.body, Body::Mpls(..)) => return self.less(way, out),
            Action::DecNwTtl if matches!(e.body, Body::Ip4(_) | Body::Ip6(_)) => {
                return self.less(way, out);
            }
            _ => {}
        }
        Ok(())
    }

    fn less(&mut self, way: &mut Way, out: &mut Vec<Got>) -> Result<(), Stop> {
        match way.packet.body.ttl() {
            Some(0 | 1) => {
                if self.invalid_ttl {
                    way.why = Why::InvalidTtl;
                    self.output(way, port::CONTROLLER, 128, out);
                }
                Err(Stop::Dropped)
            }
            Some(ttl) => Ok(way.packet.body.set_ttl(ttl - 1)?),
            None => Ok(()),
        }
    }

    fn output(&mut self, way: &Way, to: u32, max_len: u16, out: &mut Vec<Got>) {
        let bytes = way.packet.build();
        let ports = match to {
            port::CONTROLLER => {
                let seen = Seen {
                    why: way.why,
                    table: way.table,
                    cookie: way.cookie,
                    max_len,
                    port: way.in_port,
                };
                out.push(Got::In(seen, bytes));
                return;
            }
            port::NORMAL => {
                out.push(Got::Normal(way.in_port, bytes));
                return;
            }
            port::IN_PORT => vec![way.in_port],
            port::ALL | port::FLOOD => self
                .ports
                .keys()
                .copied()
                .filter(|p| *p != way.in_port && (to == port::ALL || !self.ports[p].no_flood))
                .collect(),
            p if p == way.in_port => vec![],
            p => vec![p],
        };
        for p in ports {
            if let Some(port) = self.ports.get_mut(&p)
                && port.live
                && !port.no_fwd
            {
                port.tx += 1;
                out.push(Got::Out(p, bytes.clone()));
            }
        }
    }

    fn bucket_live(&self, b: &Bucket) -> bool {
        let port = self.ports.get(&b.watch_port).is_some_and(|p| p.live);
        let group = self
            .groups
            .get(&b.watch_group)
            .is_some_and(|g| g.buckets.iter().any(|b| self.bucket_live(b)));
        match (b.watch_port == ANY, b.watch_group == ANY) {
            (true, true) => true,
            _ => port || group,
        }
    }

    fn group(&mut self, way: &Way, number: u32, out: &mut Vec<Got>) -> Result<(), Stop> {
        let size = way.packet.build().len() as u64;
        let Some(g) = self.groups.get_mut(&number) else {
            return Ok(());
        };
        g.packets += 1;
        g.bytes += size;
        let g = g.clone();
        let live: Vec<usize> = (0..g.buckets.len())
            .filter(|n| self.bucket_live(&g.buckets[*n]))
            .collect();
        let chosen: Vec<usize> = match g.kind {
            GroupType::All => (0..g.buckets.len()).collect(),
            GroupType::Indirect => vec![0],
            GroupType::FastFailover => live.into_iter().take(1).collect(),
            GroupType::Select => {
                let equal = g.buckets.iter().all(|b| b.weight == 0);
                let shares: Vec<usize> = live
                    .into_iter()
                    .flat_map(|n| {
                        vec![
                            n;
                            if equal {
                                1
                            } else {
                                usize::from(g.buckets[n].weight)
                            }
                        ]
                    })
                    .collect();
                match shares.len() {
                    0 => vec![],
                    n => vec![shares[(choice(&way.packet) % n as u64) as usize]],
                }
            }
        };
        for n in chosen {
            if let Some(g) = self.groups.get_mut(&number) {
                g.taken[n] += 1;
            }
            let mut set: Vec<Action> = Vec::new();
            for a in &g.buckets[n].actions {
                set.retain(|have| kind(have) != kind(a));
                set.push(*a);
            }
            match self.set(&mut way.clone(), &set, out) {
                Err(Stop::Undefined) => return Err(Stop::Undefined),
                Ok(()) | Err(Stop::Dropped) => {}
            }
        }
        Ok(())
    }
}

/// §5.10: the place in the set; two of one place replace each other.
fn kind(a: &Action) -> (u8, u8) {
    match a {
        Action::CopyTtlIn => (1, 0),
        Action::PopVlan => (2, 0),
        Action::PopPbb => (2, 1),
        Action::PopMpls(_) => (2, 2),
        Action::PushMpls(_) => (3, 0),
        Action::PushPbb(_) => (4, 0),
        Action::PushVlan(_) => (5, 0),
        Action::CopyTtlOut => (6, 0),
        Action::DecMplsTtl => (7, 0),
        Action::DecNwTtl => (7, 1),
        Action::SetMplsTtl(_) => (8, 0),
        Action::SetNwTtl(_) => (8, 1),
        Action::SetField { field, .. } => (9, *field as u8),
        Action::SetQueue(_) => (10, 0),
        Action::Group(_) => (11, 0),
        _ => (12, 0),
    }
}

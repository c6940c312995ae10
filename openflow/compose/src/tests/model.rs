// SPDX-License-Identifier: Apache-2.0
//! The software pipeline beside the composition: both get the same flows, and frames that they are asked about.
use crate::{Answer, Buckets, Compose, Flow, FlowId, Limits, Rule, RuleId, Tag, Through};
use std::collections::BTreeMap;
use tandem_ofoffload::{Change, PortMask, Vlan};
use tandem_ofpipeline::flows::blank;
use tandem_ofpipeline::key::Key;
use tandem_ofpipeline::parse::parse;
use tandem_ofpipeline::{Config, PacketIn, Port, Sink, Switch};
use tandem_openflow::model::{FlowCommand, FlowMod, GroupCommand, GroupMod};
use tandem_openflow::{Action, Field, Match, Oxm, Version, oxm, port};
use tandem_packet::{Frame, Offload};

pub fn ports(number: u32) -> BTreeMap<u32, PortMask> {
    let mut all = PortMask::default();
    let mut list = BTreeMap::new();
    for p in 1..=number {
        all.insert(p as u8);
        list.insert(p, PortMask::one(p as u8));
    }
    list.insert(port::FLOOD, all);
    list.insert(port::ALL, all);
    list
}

/// What became of a packet.
#[derive(Clone, Debug, Default)]
pub struct Out {
    pub sent: Vec<(u32, Vec<u8>)>,
    /// How often the controller was told.
    pub told: usize,
}

impl Sink for Out {
    fn output(&mut self, port: u32, _: Option<u32>, frame: &Frame<'_>) {
        self.sent.push((port, frame.bytes().to_vec()));
    }
    fn packet_in(&mut self, _: &PacketIn<'_>, _: &Frame<'_>) {
        self.told += 1;
    }
    fn normal(&mut self, _: u32, _: &Frame<'_>) {
        self.told += 1;
    }
}

#[derive(Clone, Debug)]
pub struct Packet {
    pub port: u32,
    pub bytes: Vec<u8>,
    pub key: Key,
}

pub fn packet(port: u32, bytes: Vec<u8>) -> Packet {
    let mut key = Key::default();
    key.0[0] = u64::from(port) << 32 | u64::from(port);
    parse(&bytes, Version::V13, &mut key).unwrap();
    Packet { port, bytes, key }
}

fn framed<T>(bytes: &[u8], f: impl FnOnce(&mut Frame<'_>) -> T) -> T {
    let mut mem = vec![0; 64];
    mem.extend_from_slice(bytes);
    let end = mem.len();
    f(&mut Frame::new(&mut mem, 64, end, Offload::default()))
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    pub sent: usize,
    pub dropped: usize,
    /// Of those sent: by a rule for known sources.
    pub checked: usize,
    /// The CPU's for another reason than the controller.
    pub beyond: usize,
    /// For their source.
    pub unknown: usize,
    /// Sent or dropped behind a group.
    pub grouped: usize,
}

/// What a rule is, whatever its number.
pub type Told = (String, String, String, bool, bool);

pub struct World {
    pub switch: Switch,
    pub compose: Compose,
    pub flows: BTreeMap<FlowId, Flow>,
    /// The groups, as they were asked for.
    pub groups: BTreeMap<u32, GroupMod>,
    /// The rules as they were told, change by change.
    pub told: BTreeMap<RuleId, Told>,
    /// The changes since they were taken.
    pub changes: Vec<Vec<Change>>,
}

fn of_rule(r: &Rule) -> Told {
    (
        format!("{:?}", r.place),
        format!("{:?} {:?} {}", r.fields, r.only, r.unknown),
        format!("{:?}", r.wanted()),
        r.idle,
        r.counted,
    )
}

impl World {
    pub fn new(limits: Limits) -> World {
        World::of(limits, 4, 4)
    }

    pub fn of(limits: Limits, tables: u8, number: u32) -> World {
        let config = Config {
            tables,
            cache: 0,
            ..Config::default()
        };
        let mut switch = Switch::new(config);
        let list = ports(number);
        for number in 1..=number {
            let port = Port {
                number,
                live: true,
                ..Port::default()
            };
            switch.set_port(port, 0);
        }
        let (compose, changes) = Compose::new(limits, list);
        let mut w = World {
            switch,
            compose,
            flows: BTreeMap::new(),
            groups: BTreeMap::new(),
            told: BTreeMap::new(),
            changes: Vec::new(),
        };
        w.tell(changes);
        w
    }

    /// Each number is told once, one that is new is new, one that goes or changes was there.
    pub fn tell(&mut self, changes: Vec<Change>) {
        self.changes.push(changes.clone());
        let mut used = Vec::new();
        for c in changes {
            let id = match &c {
                Change::Add { id, flow, chain } => {
                    let new = (
                        format!("{:?}", chain.place),
                        format!("{:?} {:?} {}", flow.fields, chain.only, chain.unknown),
                        format!("{:?}", flow.wanted),
                        flow.idle,
                        flow.counted,
                    );
                    assert!(self.told.insert(*id, new).is_none());
                    *id
                }
                Change::Modify {
                    id,
                    wanted,
                    idle,
                    counted,
                } => {
                    let t = self.told.get_mut(id).unwrap();
                    (t.2, t.3, t.4) = (format!("{wanted:?}"), *idle, *counted);
                    *id
                }
                Change::Remove { id } => {
                    self.told.remove(id).unwrap();
                    *id
                }
            };
            assert!(!used.contains(&id));
            used.push(id);
        }
        let rules: BTreeMap<RuleId, Told> =
            self.compose.rules().map(|(n, r)| (n, of_rule(r))).collect();
        assert_eq!(self.told, rules);
    }

    /// A group comes or changes. False: the pipeline refuses it.
    pub fn group(&mut self, m: &GroupMod) -> bool {
        self.switch.watch();
        let mut m = m.clone();
        if m.command != GroupCommand::Delete {
            m.command = match self.groups.contains_key(&m.group) {
                true => GroupCommand::Modify,
                false => GroupCommand::Add,
            };
        }
        if self.switch.group_mod(&m, 0, &mut Vec::new()).is_err() {
            return false;
        }
        self.groups.insert(m.group, m);
        self.regroup();
        true
    }

    /// A port comes to be live, or is no longer.
    pub fn link(&mut self, number: u32, live: bool) {
        self.switch.watch();
        let port = Port {
            number,
            live,
            ..Port::default()
        };
        self.switch.set_port(port, 0);
        self.regroup();
    }

    fn regroup(&mut self) {
        let changed = self.switch.take_regrouped().into_keys();
        let all = changed.map(|n| {
            let taken = self.switch.group(n).and_then(|(g, _)| {
                let taken = g.taken()?;
                let each = taken.map(|b| (b as u32, g.buckets[b].actions.clone()));
                Some(each.collect::<Buckets>())
            });
            (n, taken)
        });
        self.compose.put_groups(all.collect());
        let changes = self.compose.batch(Vec::new());
        self.tell(changes);
    }

    /// Packets and bytes of groups and buckets.
    fn group_counts(&self) -> BTreeMap<(u32, Option<u32>), (u64, u64)> {
        let mut all = BTreeMap::new();
        for n in self.groups.keys() {
            let (_, c) = self.switch.group(*n).unwrap();
            all.insert((*n, None), (c.count.packets, c.count.bytes));
            let buckets = (0..).zip(&c.buckets);
            all.extend(buckets.map(|(b, c)| ((*n, Some(b)), (c.packets, c.bytes))));
        }
        all
    }

    /// What a packet counted for groups, since they were as before, is what its rule says.
    fn counted(&self, before: &BTreeMap<(u32, Option<u32>), (u64, u64)>, p: &Packet, rule: &Rule) {
        let mut left = rule.via.to_vec();
        for (key, (packets, bytes)) in self.group_counts() {
            let old = before[&key];
            let own: Vec<Through> = left
                .extract_if(.., |t| (t.group, t.bucket) == key)
                .collect();
            assert_eq!(packets - old.0, own.len() as u64, "{key:?} {p:?} {rule:?}");
            if own.iter().all(|t| !t.resized) {
                let len = (p.bytes.len() * own.len()) as u64;
                assert_eq!(bytes - old.1, len, "{key:?} {p:?} {rule:?}");
            }
        }
        assert!(left.is_empty(), "{rule:?}");
    }

    fn send(&mut self, command: FlowCommand, flow: &Flow) -> bool {
        let m = FlowMod {
            command,
            table: flow.table,
            priority: flow.priority,
            matching: Match {
                fields: flow.fields.clone(),
                exact: false,
            },
            instructions: flow.instructions.clone(),
            ..blank()
        };
        self.switch.flow_mod(&m, 0, &mut Vec::new()).is_ok()
    }

    /// False: the pipeline refuses it.
    pub fn add(&mut self, id: FlowId, flow: Flow) -> bool {
        if !self.send(FlowCommand::Add, &flow) {
            return false;
        }
        self.flows.insert(id, flow.clone());
        let changes = self.compose.add(id, flow);
        self.tell(changes);
        true
    }

    pub fn modify(&mut self, id: FlowId, like: &Flow) -> bool {
        let mut flow = self.flows[&id].clone();
        flow.instructions = like.instructions.clone();
        (flow.idle, flow.counted) = (like.idle, like.counted);
        if !self.send(FlowCommand::ModifyStrict, &flow) {
            return false;
        }
        let changes = self
            .compose
            .modify(id, flow.instructions.clone(), flow.idle, flow.counted);
        self.flows.insert(id, flow);
        self.tell(changes);
        true
    }

    pub fn remove(&mut self, id: FlowId) {
        let flow = self.flows.remove(&id).unwrap();
        assert!(self.send(FlowCommand::DeleteStrict, &flow));
        let changes = self.compose.remove(id);
        self.tell(changes);
    }

    pub fn settle(&mut self) {
        let changes = self.compose.settle();
        self.tell(changes);
    }

    /// All rules, first one first, with the masks of what they ask.
    fn sorted(&self) -> Vec<(Key, Key, Rule)> {
        let mut rules: Vec<(RuleId, Rule)> =
            self.compose.rules().map(|(n, r)| (n, r.clone())).collect();
        rules.sort_by(|a, b| a.1.place.cmp(&b.1.place).then(a.0.cmp(&b.0)));
        let keyed = rules.into_iter().map(|(_, r)| {
            let (value, mask) = Key::of_match(&r.fields);
            (value, mask, r)
        });
        keyed.collect()
    }

    /// Each packet has the pipeline's answer, or goes to the CPU for a reason.
    pub fn judge(&mut self, packets: &[Packet]) -> Judged {
        let rules = self.sorted();
        let sources = self.compose.sources();
        let members = self.compose.members();
        let mut sum = Judged::default();
        for p in packets {
            let before = self.group_counts();
            let out = self.pipeline(p);
            let vlan = match p.key.get(Field::VlanVid) {
                0 => Vlan::Untagged,
                v => Vlan::Tag(v as u16 & 0xfff),
            };
            let own = match vlan {
                Vlan::Tag(v) => members.get(&(p.port, v)).filter(|bare| !**bare).map(|_| v),
                _ => {
                    let all = members.iter().filter(|(k, bare)| k.0 == p.port && **bare);
                    all.map(|(k, _)| k.1).next()
                }
            };
            // A checked rule of a domain does not say in its match which frames that has
            let met = |(v, m, r): &&(Key, Key, Rule)| {
                let there = r.domain.is_none_or(|d| d == own.unwrap_or(0));
                assert!(there || r.checked || p.key.and(m) != *v, "{p:?} {r:?}");
                p.key.and(m) == *v && there
            };
            let (_, _, rule) = rules.iter().find(met).expect("no rule");
            let from = crate::Source {
                vlan,
                address: p.key.get(Field::EthSrc) as u64,
                port: p.port,
            };
            assert!(!rule.unknown || !sources.contains(&from));
            if rule.checked && !sources.contains(&from) {
                sum.unknown += 1;
                continue;
            }
            match rule.answer.clone() {
                Answer::Cpu(None) => assert!(out.told > 0),
                Answer::Cpu(Some(_)) => sum.beyond += 1,
                answer => {
                    assert_eq!(out.told, 0, "{p:?} {rule:?}");
                    if !rule.checked {
                        // Entries count nothing
                        self.counted(&before, p, rule);
                        sum.grouped += usize::from(!rule.via.is_empty());
                    }
                    let mut is = match (rule.domain, answer.clone()) {
                        (Some(v), Answer::Out { ports, .. }) if rule.checked => {
                            self.in_forms(p, v, vlan, ports)
                        }
                        _ => self.carried_out(p, answer),
                    };
                    is.sort();
                    assert_eq!(is, out.sent, "{p:?} {rule:?}");
                    sum.sent += usize::from(!out.sent.is_empty());
                    sum.dropped += usize::from(out.sent.is_empty());
                    sum.checked += usize::from(rule.checked && !out.sent.is_empty());
                }
            }
        }
        sum
    }

    /// What the pipeline does with a packet.
    pub fn pipeline(&mut self, p: &Packet) -> Out {
        let mut out = Out::default();
        framed(&p.bytes, |f| self.switch.process(f, p.port, 0, &mut out));
        out.sent.sort();
        out
    }

    /// What leaves a domain, by each port in the form of its member.
    fn in_forms(&mut self, p: &Packet, v: u16, came: Vlan, to: PortMask) -> Vec<(u32, Vec<u8>)> {
        let members = self.compose.members();
        let mut all = Vec::new();
        for port in to.ports() {
            let bare = members[&(u32::from(port), v)];
            let tag = match (came, bare) {
                (Vlan::Untagged, true) | (Vlan::Tag(_), false) => Tag::Keep,
                (_, true) => Tag::Pop,
                (_, false) => Tag::Push {
                    tpid: 0x8100,
                    vid: Some(v),
                    pcp: None,
                },
            };
            let effect = crate::Effect {
                tag,
                ..crate::Effect::default()
            };
            let ports = PortMask::one(port);
            all.extend(self.carried_out(p, Answer::Out { ports, effect }));
        }
        all
    }

    pub fn carried_out(&mut self, p: &Packet, answer: Answer) -> Vec<(u32, Vec<u8>)> {
        let Answer::Out { ports, effect } = answer else {
            return Vec::new();
        };
        let set = |field, value: u128| Action::SetField { field, value };
        let vid = |v: u16| set(Field::VlanVid, u128::from(v | oxm::VID_PRESENT));
        let mut actions = Vec::new();
        actions.extend(effect.rewrite.vid.map(vid));
        actions.extend(
            effect
                .rewrite
                .pcp
                .map(|v| set(Field::VlanPcp, u128::from(v))),
        );
        // what a bucket writes is for packets that have such a header, and a packet-out may not ask it of others
        let is_ip = matches!(p.key.get(Field::EthType), 0x0800 | 0x86dd);
        let dscp = effect.rewrite.dscp.filter(|_| is_ip);
        actions.extend(dscp.map(|v| set(Field::IpDscp, u128::from(v))));
        match effect.tag {
            Tag::Keep => {}
            Tag::Pop => actions.push(Action::PopVlan),
            Tag::Push { tpid, vid: v, pcp } => {
                actions.push(Action::PushVlan(tpid));
                actions.extend(v.map(vid));
                actions.extend(pcp.map(|v| set(Field::VlanPcp, u128::from(v))));
            }
        }
        let to = ports.ports().map(|n| Action::Output {
            port: u32::from(n),
            max_len: 0,
        });
        actions.extend(to);
        let mut out = Out::default();
        framed(&p.bytes, |f| {
            self.switch.packet_out(f, p.port, &actions, 0, &mut out)
        })
        .unwrap();
        out.sent
    }

    /// What there is, whatever the way there was.
    pub fn picture(&self) -> Vec<Told> {
        let mut all: Vec<Told> = self.told.values().cloned().collect();
        all.sort();
        all
    }
}

pub fn exact(field: Field, value: u128) -> Oxm {
    Oxm::exact(field, value)
}

impl World {
    /// No flow of table 0 has more chains than it may, nor all of them; who is out would not fit.
    pub fn bounded(&self, limits: Limits) {
        let first: Vec<_> = self.compose.first().collect();
        let more: u32 = first.iter().map(|(leaves, _)| leaves - 1).sum();
        assert!(first.iter().all(|(leaves, _)| *leaves <= limits.per_flow));
        assert!(more <= limits.all);
        for (_, want) in &first {
            assert!(want.is_none_or(|w| more + w - 1 > limits.all));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Random pipelines of a universe so small that most flows overlap.
use super::model::{Judged, Packet, World, exact, packet};
use crate::{Flow, Limits};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tandem_openflow::model::{Bucket, GROUP_ANY, GroupCommand, GroupMod, GroupType};
use tandem_openflow::{Action, Field, Instructions, Oxm, oxm, port};

const A: u128 = 0x0200_0000_000a;
const B: u128 = 0x0200_0000_000b;
const PRESENT: u128 = oxm::VID_PRESENT as u128;

fn bytes(dst: u128, src: u128, tags: &[u16], ip: Option<u8>) -> Vec<u8> {
    let mut b = dst.to_be_bytes()[10..].to_vec();
    b.extend(&src.to_be_bytes()[10..]);
    for t in tags {
        b.extend([0x81, 0]);
        b.extend(t.to_be_bytes());
    }
    match ip {
        None => b.extend([0x12, 0x34]),
        Some(to) => {
            b.extend([8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 9, 17, 0, 0]);
            b.extend([10, 0, 0, 1, 10, 0, 0, to]);
        }
    }
    b.resize(b.len().max(60), 0);
    b
}

pub fn packets() -> Vec<Packet> {
    let mut list = Vec::new();
    for port in [1, 2] {
        for dst in [A, B] {
            for src in [A, B] {
                for tags in [&[][..], &[1], &[0x6002], &[1, 2]] {
                    for ip in [None, Some(1), Some(2)] {
                        list.push(packet(port, bytes(dst, src, tags, ip)));
                    }
                }
            }
        }
    }
    list
}

fn fields() -> impl Strategy<Value = Vec<Oxm>> {
    let some = |field, values: &'static [u128]| {
        prop_oneof![
            3 => Just(None),
            1 => proptest::sample::select(values).prop_map(move |v| Some(exact(field, v)))
        ]
    };
    let vlan = prop_oneof![
        4 => Just(vec![]),
        2 => Just(vec![exact(Field::VlanVid, 0)]),
        3 => (1..3u128).prop_map(|v| vec![exact(Field::VlanVid, PRESENT | v)]),
        2 => Just(vec![Oxm::masked(Field::VlanVid, PRESENT, PRESENT)]),
        1 => (0..4u128).prop_map(|p| {
            vec![Oxm::masked(Field::VlanVid, PRESENT, PRESENT), exact(Field::VlanPcp, p)]
        }),
        1 => Just(vec![Oxm::masked(Field::VlanVid, 1, 1)]),
    ];
    let ip = prop_oneof![
        5 => Just(vec![]),
        1 => Just(vec![exact(Field::EthType, 0x1234)]),
        2 => Just(vec![exact(Field::EthType, 0x800)]),
        1 => (1..3u128).prop_map(|n| vec![
            exact(Field::EthType, 0x800),
            exact(Field::Ipv4Dst, 0x0a00_0000 | n)
        ]),
        1 => (0..2u128).prop_map(|n| vec![exact(Field::EthType, 0x800), exact(Field::IpDscp, n)]),
    ];
    let all = (
        some(Field::InPort, &[1, 2]),
        some(Field::EthDst, &[A, B]),
        some(Field::EthSrc, &[A, B]),
        some(Field::Metadata, &[0, 1]),
        vlan,
        ip,
    );
    all.prop_map(|(port, dst, src, meta, vlan, ip)| {
        let mut l: Vec<Oxm> = [port, dst, src, meta].into_iter().flatten().collect();
        l.extend(vlan);
        l.extend(ip);
        l.sort_by_key(|o| o.field);
        l
    })
}

fn action() -> impl Strategy<Value = Action> {
    let out = |port| Action::Output { port, max_len: 64 };
    let set = |field, value| Action::SetField { field, value };
    prop_oneof![
        6 => (1..5u32).prop_map(out),
        1 => Just(out(port::FLOOD)),
        1 => Just(out(port::IN_PORT)),
        1 => Just(out(port::CONTROLLER)),
        3 => (1..3u128).prop_map(move |v| set(Field::VlanVid, PRESENT | v)),
        1 => (0..4u128).prop_map(move |v| set(Field::VlanPcp, v)),
        3 => Just(Action::PushVlan(0x8100)),
        3 => Just(Action::PopVlan),
        1 => Just(set(Field::EthDst, A)),
        1 => Just(set(Field::EthSrc, B)),
        1 => Just(set(Field::IpDscp, 1)),
        1 => Just(set(Field::Ipv4Dst, 0x0a00_0001)),
        1 => Just(Action::DecNwTtl),
        1 => Just(Action::PushMpls(0x8847)),
        5 => (1..=GROUPS).prop_map(Action::Group),
    ]
}

const GROUPS: u32 = 3;

fn bucket(actions: Vec<Action>, watch_port: u32, watch_group: u32) -> Bucket {
    Bucket {
        weight: 0,
        watch_port,
        watch_group,
        actions,
    }
}

/// Groups that are there from the beginning, so that flows may name them.
pub fn begin(limits: Limits) -> World {
    let mut w = World::new(limits);
    for group in 1..=GROUPS {
        let out = Action::Output {
            port: group,
            max_len: 0,
        };
        assert!(w.group(&GroupMod {
            command: GroupCommand::Add,
            kind: GroupType::All,
            group,
            buckets: vec![bucket(vec![out], port::ANY, GROUP_ANY)],
        }));
    }
    w
}

/// A group of whichever type, whose buckets watch ports and other groups, and send to them.
fn group() -> impl Strategy<Value = GroupMod> {
    let list = prop_oneof![
        3 => (1..5u32).prop_map(|port| vec![Action::Output { port, max_len: 0 }]),
        1 => proptest::collection::vec(action(), 0..3),
    ];
    let watch = prop_oneof![1 => Just(port::ANY), 2 => 1..5u32];
    let watched = prop_oneof![4 => Just(GROUP_ANY), 1 => 1..=GROUPS];
    let buckets = proptest::collection::vec((list, watch, watched, 0..3u16), 0..4);
    let kind = prop_oneof![
        Just(GroupType::All),
        Just(GroupType::Indirect),
        Just(GroupType::FastFailover),
        Just(GroupType::Select),
    ];
    (1..=GROUPS, kind, buckets).prop_map(|(group, kind, buckets)| {
        let all = buckets
            .into_iter()
            .map(|(actions, port, group, weight)| Bucket {
                weight: if kind == GroupType::Select { weight } else { 0 },
                ..bucket(actions, port, group)
            });
        let most = if kind == GroupType::Indirect { 1 } else { 9 };
        GroupMod {
            command: GroupCommand::Modify,
            kind,
            group,
            buckets: all.take(most).collect(),
        }
    })
}

fn instructions(table: u8) -> impl Strategy<Value = Instructions> {
    let list = || {
        prop_oneof![
            2 => Just(None),
            2 => proptest::collection::vec(action(), 0..4).prop_map(Some),
        ]
    };
    let goto = if table < 3 {
        prop_oneof![1 => Just(None), 3 => (table + 1..4).prop_map(Some)].boxed()
    } else {
        Just(None).boxed()
    };
    let meta = prop_oneof![4 => Just(None), 1 => Just(Some((1, 1))), 1 => Just(Some((0, 3)))];
    (list(), list(), proptest::bool::weighted(0.1), meta, goto).prop_map(
        |(apply, write, clear, metadata, goto)| Instructions {
            meter: None,
            apply,
            clear,
            write,
            metadata,
            goto,
        },
    )
}

fn none(table: u8, priority: u16, fields: Vec<Oxm>, instructions: Instructions) -> Flow {
    Flow {
        table,
        priority,
        fields,
        instructions,
        idle: false,
        counted: false,
    }
}

fn goto(to: u8) -> Instructions {
    Instructions {
        goto: Some(to),
        ..Instructions::default()
    }
}

fn out(port: u32) -> Instructions {
    Instructions {
        apply: Some(vec![Action::Output { port, max_len: 64 }]),
        ..Instructions::default()
    }
}

/// A station that was learned, with what goes before.
fn learned(m: u128, p: u32, v: u128) -> [Flow; 4] {
    let vid = exact(Field::VlanVid, if v == 0 { 0 } else { PRESENT | v });
    let port = exact(Field::InPort, u128::from(p));
    let ask = Instructions {
        goto: Some(2),
        ..out(port::CONTROLLER)
    };
    [
        none(0, 2, vec![port, vid], goto(1)),
        none(1, 2, vec![port, exact(Field::EthSrc, m), vid], goto(2)),
        none(1, 1, vec![], ask),
        none(2, 3, vec![exact(Field::EthDst, m), vid], out(p)),
    ]
}

/// What most flows of a history are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Any,
    /// Those of a pipeline that learns stations.
    Learning,
    /// Such as write to what they send, and what a controller has in front of them.
    Writing,
}

/// A flow that writes, with a match that says what there is to be written to; some leave what is sent to the next table.
fn writer() -> impl Strategy<Value = Flow> {
    let set = |field, value| Action::SetField { field, value };
    let vid = move |v: u128| set(Field::VlanVid, PRESENT | v);
    let tag = |v: u128| vec![exact(Field::VlanVid, PRESENT | v)];
    let bare = || vec![exact(Field::VlanVid, 0)];
    let ip = exact(Field::EthType, 0x800);
    let what = prop_oneof![
        Just((bare(), vec![Action::PushVlan(0x8100), vid(2)])),
        Just((
            bare(),
            vec![Action::PushVlan(0x8100), vid(1), set(Field::VlanPcp, 3)]
        )),
        Just((tag(1), vec![vid(2)])),
        Just((tag(2), vec![set(Field::VlanPcp, 1), vid(1)])),
        Just((tag(2), vec![set(Field::VlanPcp, 2)])),
        Just((tag(2), vec![Action::PopVlan])),
        Just((
            vec![Oxm::masked(Field::VlanVid, PRESENT, PRESENT)],
            vec![Action::PopVlan]
        )),
        Just((vec![ip], vec![set(Field::IpDscp, 1)])),
        Just((
            vec![ip, exact(Field::VlanVid, PRESENT | 2)],
            vec![vid(1), set(Field::IpDscp, 2)]
        )),
    ];
    let some = |field, values: &'static [u128]| {
        prop_oneof![
            1 => Just(None),
            1 => proptest::sample::select(values).prop_map(move |v| Some(exact(field, v)))
        ]
    };
    let (port, dst) = (some(Field::InPort, &[1, 2]), some(Field::EthDst, &[A, B]));
    let ends = prop_oneof![
        3 => (1..5u32).prop_map(|p| (vec![p], None)),
        1 => (1..3u32).prop_map(|p| (vec![p, p + 2], None)),
        1 => (1..3u8).prop_map(|t| (vec![], Some(t))),
    ];
    (what, port, dst, ends, 3..7u16).prop_map(
        |((mut fields, mut apply), port, dst, ends, priority)| {
            fields.extend(port.into_iter().chain(dst));
            fields.sort_by_key(|o| o.field);
            let (ports, goto) = ends;
            apply.extend(
                ports
                    .into_iter()
                    .map(|port| Action::Output { port, max_len: 64 }),
            );
            let instructions = Instructions {
                apply: Some(apply),
                goto,
                ..Instructions::default()
            };
            none(0, priority, fields, instructions)
        },
    )
}

/// In front of all: what the controller wants to see, and what is dropped. Few ask for the tag.
fn front() -> impl Strategy<Value = Flow> {
    let kind = prop_oneof![
        3 => Just(vec![exact(Field::EthType, 0x1234)]),
        3 => (1..3u128).prop_map(|n| vec![
            exact(Field::EthType, 0x800),
            exact(Field::Ipv4Dst, 0x0a00_0000 | n)
        ]),
        2 => Just(vec![exact(Field::EthSrc, A)]),
        1 => Just(vec![exact(Field::InPort, 2), exact(Field::EthType, 0x800)]),
        1 => Just(vec![exact(Field::VlanVid, PRESENT | 2), exact(Field::EthDst, A)]),
    ];
    let answer = prop_oneof![
        3 => Just(out(port::CONTROLLER)),
        1 => Just(Instructions::default()),
    ];
    (kind, answer, 6..9u16).prop_map(|(mut fields, answer, priority)| {
        fields.sort_by_key(|o| o.field);
        none(0, priority, fields, answer)
    })
}

/// One flow.
fn flow(style: Style) -> impl Strategy<Value = Flow> {
    let rare = || proptest::bool::weighted(0.1);
    let any = (0..4u8).prop_flat_map(move |t| {
        let of = (Just(t), 0..4u16, fields(), instructions(t), rare(), rare());
        of.prop_map(
            |(table, priority, fields, instructions, idle, counted)| Flow {
                table,
                priority,
                fields,
                instructions,
                idle,
                counted,
            },
        )
    });
    // Tables of sources, of stations, of ports
    let source = (0..2usize, 1..3u128, 0..2u128).prop_map(move |(m, p, v)| {
        let mut l = vec![exact(Field::InPort, p), exact(Field::EthSrc, [A, B][m])];
        if v > 0 {
            l.push(exact(Field::VlanVid, PRESENT | v));
        }
        none(1, 2, l, goto(2))
    });
    let ask = (0..2u128).prop_map(move |v| {
        let l = match v {
            0 => vec![],
            v => vec![exact(Field::VlanVid, PRESENT | v)],
        };
        let i = Instructions {
            goto: Some(2),
            ..out(port::CONTROLLER)
        };
        none(1, 1, l, i)
    });
    let station = (0..2usize, 1..3u32, 0..2u128).prop_map(move |(m, p, v)| {
        let mut l = vec![exact(Field::EthDst, [A, B][m])];
        if v > 0 {
            l.push(exact(Field::VlanVid, PRESENT | v));
        }
        none(2, 3, l, out(p))
    });
    let more = proptest::bool::weighted(0.1).prop_map(u16::from);
    let member = (1..3u128, 0..2u128, more).prop_map(move |(p, v, more)| {
        let l = match v {
            0 => vec![exact(Field::InPort, p), exact(Field::VlanVid, 0)],
            v => vec![exact(Field::InPort, p), exact(Field::VlanVid, PRESENT | v)],
        };
        none(0, 2 + more, l, goto(1))
    });
    let drop = Just(none(0, 0, vec![], Instructions::default()));
    match style {
        Style::Any => {
            prop_oneof![8 => any, 1 => source, 1 => ask, 1 => station, 1 => member].boxed()
        }
        Style::Learning => {
            prop_oneof![1 => any, 5 => source, 2 => ask, 5 => station, 4 => member, 1 => drop]
                .boxed()
        }
        Style::Writing => {
            prop_oneof![2 => any, 8 => writer(), 3 => front(), 1 => station, 1 => drop].boxed()
        }
    }
}

#[derive(Clone, Debug)]
pub enum Op {
    Add(Flow),
    Learn(u128, u32, u128),
    Remove(usize),
    Modify(usize, Flow),
    Group(GroupMod),
    Link(u32, bool),
}

impl Op {
    /// A change of one flow each.
    pub fn steps(&self) -> Vec<Op> {
        match self {
            Op::Learn(m, p, v) => learned(*m, *p, *v).map(Op::Add).into(),
            op => vec![op.clone()],
        }
    }
}

pub fn ops(n: usize) -> impl Strategy<Value = Vec<Op>> {
    let learn = (0..2usize, 1..3u32, 0..2u128).prop_map(|(m, p, v)| Op::Learn([A, B][m], p, v));
    let list = move |style| {
        let op = prop_oneof![
            8 => flow(style).prop_map(Op::Add),
            2 => any::<usize>().prop_map(Op::Remove),
            1 => (any::<usize>(), flow(style)).prop_map(|(n, f)| Op::Modify(n, f)),
            2 => group().prop_map(Op::Group),
            1 => (1..5u32, any::<bool>()).prop_map(|(p, live)| Op::Link(p, live)),
            u32::from(style == Style::Learning) * 8 => learn.clone(),
        ];
        proptest::collection::vec(op, 1..n)
    };
    prop_oneof![
        list(Style::Any),
        list(Style::Learning),
        list(Style::Writing)
    ]
}

pub fn play(w: &mut World, op: &Op, next: &mut u32) {
    let ids: Vec<u32> = w.flows.keys().copied().collect();
    let nth = |n: usize| ids.get(n.checked_rem(ids.len())?).copied();
    match op {
        Op::Add(f) => {
            let same = w.flows.iter().find(|(_, g)| {
                (g.table, g.priority, &g.fields) == (f.table, f.priority, &f.fields)
            });
            match same.map(|(id, _)| *id) {
                Some(id) => w.modify(id, f),
                None => {
                    *next += 1;
                    w.add(*next, f.clone())
                }
            };
        }
        Op::Learn(m, p, v) => {
            for f in learned(*m, *p, *v) {
                play(w, &Op::Add(f), next);
            }
        }
        Op::Remove(n) => {
            if let Some(id) = nth(*n) {
                w.remove(id);
            }
        }
        Op::Modify(n, f) => {
            if let Some(id) = nth(*n) {
                w.modify(id, f);
            }
        }
        Op::Group(m) => drop(w.group(m)),
        Op::Link(port, live) => w.link(*port, *live),
    }
}

/// The same flows, the other way round.
fn anew(w: &World, limits: Limits) -> World {
    let mut other = begin(limits);
    for port in w.switch.ports() {
        other.link(port.port.number, port.port.live);
    }
    for m in w.groups.values() {
        assert!(other.group(m));
    }
    for (id, f) in w.flows.iter().rev() {
        assert!(other.add(*id, f.clone()));
    }
    other.settle();
    other
}

proptest! {
    /// After each change each packet has the pipeline's answer, or the CPU's for a reason; and the rules are those of a
    /// fresh start.
    #[test]
    fn as_the_pipeline(ops in ops(30)) {
        let limits = Limits::default();
        let mut w = begin(limits);
        let packets = packets();
        let mut next = 0;
        for op in &ops {
            play(&mut w, op, &mut next);
            w.judge(&packets);
        }
        prop_assert_eq!(w.compose.cuts(), 0);
        prop_assert_eq!(w.picture(), anew(&w, limits).picture());
    }

    /// With little room: no more chains than there may be, the answers as right, and when all was looked at again, the
    /// rules of a fresh start.
    #[test]
    fn within_limits(ops in ops(40), per_flow in 1..5u32, all in 0..8u32) {
        for (limits, same) in [
            (Limits { per_flow, all: 1000, retries: 1, sources: true, members: false, forms: false }, true),
            (Limits { per_flow: per_flow * 2, all, retries: 1, sources: true, members: false, forms: false }, false),
        ] {
            let mut w = begin(limits);
            let packets = packets();
            let mut next = 0;
            for op in &ops {
                play(&mut w, op, &mut next);
                w.judge(&packets);
                w.bounded(limits);
            }
            w.settle();
            w.judge(&packets);
            w.bounded(limits);
            if same {
                prop_assert_eq!(w.picture(), anew(&w, limits).picture());
            }
        }
    }
}

/// Of a few hundred random pipelines enough is answered, by rules of all kinds, for the judge to have something to say.
#[test]
fn the_universe_is_met() {
    let mut runner = TestRunner::deterministic();
    let mut sum = Judged::default();
    let packets = packets();
    for _ in 0..300 {
        let list = ops(40).new_tree(&mut runner).unwrap().current();
        let mut w = begin(Limits::default());
        let mut next = 0;
        for op in &list {
            play(&mut w, op, &mut next);
        }
        let j = w.judge(&packets);
        sum.sent += j.sent;
        sum.dropped += j.dropped;
        sum.checked += j.checked;
        sum.beyond += j.beyond;
        sum.unknown += j.unknown;
        sum.grouped += j.grouped;
    }
    println!("{sum:?}");
    assert!(
        sum.sent > 1000 && sum.dropped > 1000 && sum.beyond > 1000,
        "{sum:?}"
    );
    assert!(sum.checked > 100 && sum.unknown > 100, "{sum:?}");
    assert!(sum.grouped > 100, "{sum:?}");
}

// SPDX-License-Identifier: Apache-2.0
//! Flows of three tables that go on to each other, write metadata, push and pop tags, and some that learn stations.

use super::frames::MACS;
use super::universe::{FIRST, grouped};
use proptest::prelude::*;
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{FlowCommand, FlowMod, flow_flags};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, oxm, port};

const PRESENT: u128 = oxm::VID_PRESENT as u128;
pub const TABLES: u8 = 3;

/// What flows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Mostly of the first table.
    One,
    /// Any.
    Any,
    /// Mostly those of a switch that learns.
    Learning,
    /// The same with ports whose frames without a tag are in a VLAN.
    Access,
    /// Mostly such as write to what they send, and what a controller has in front of them.
    Writing,
}

fn mac(n: usize) -> u128 {
    MACS[n].iter().fold(0, |v, b| v << 8 | u128::from(*b))
}

fn vid(v: u128) -> Oxm {
    Oxm::exact(Field::VlanVid, if v == 0 { 0 } else { PRESENT | v })
}

fn fields() -> impl Strategy<Value = Vec<Oxm>> {
    let x = Oxm::exact;
    let some = |field, values: Vec<u128>| {
        prop_oneof![
            3 => Just(None),
            1 => proptest::sample::select(values).prop_map(move |v| Some(Oxm::exact(field, v)))
        ]
    };
    let tagged = Oxm::masked(Field::VlanVid, PRESENT, PRESENT);
    let vlan = prop_oneof![
        4 => Just(vec![]),
        2 => Just(vec![vid(0)]),
        3 => (1..3u128).prop_map(|v| vec![vid(v)]),
        2 => Just(vec![tagged]),
        1 => Just(vec![tagged, x(Field::VlanPcp, 5)]),
        1 => Just(vec![Oxm::masked(Field::VlanVid, 1, 1)]),
    ];
    let ip = prop_oneof![
        6 => Just(vec![]),
        1 => Just(vec![x(Field::EthType, 0x1234)]),
        1 => Just(vec![x(Field::EthType, 0x0800)]),
        1 => Just(vec![x(Field::EthType, 0x0800), x(Field::Ipv4Dst, 1)]),
        1 => Just(vec![x(Field::EthType, 0x86dd)]),
        1 => Just(vec![x(Field::EthType, 0x0800), x(Field::IpProto, 6), x(Field::TcpDst, 80)]),
    ];
    let first = u128::from(FIRST);
    let all = (
        some(Field::InPort, vec![first, first + 1, 999]),
        some(Field::EthDst, vec![mac(0), mac(1), mac(2)]),
        some(Field::EthSrc, vec![mac(0), mac(1)]),
        some(Field::Metadata, vec![0, 1]),
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

fn out(port: u32) -> Action {
    Action::Output { port, max_len: 64 }
}

fn action() -> impl Strategy<Value = Action> {
    let set = |field, value| Action::SetField { field, value };
    prop_oneof![
        8 => (FIRST..FIRST + 4).prop_map(out),
        1 => Just(out(port::FLOOD)),
        1 => Just(out(port::IN_PORT)),
        1 => Just(out(port::CONTROLLER)),
        3 => (1..3u128).prop_map(move |v| set(Field::VlanVid, PRESENT | v)),
        1 => Just(set(Field::VlanPcp, 5)),
        3 => Just(Action::PushVlan(0x8100)),
        3 => Just(Action::PopVlan),
        1 => Just(set(Field::EthDst, mac(0))),
        1 => Just(set(Field::EthSrc, mac(1))),
        2 => (1..4u32).prop_map(Action::Group),
    ]
}

fn instructions(table: u8) -> impl Strategy<Value = Instructions> {
    let list = || {
        prop_oneof![
            2 => Just(None),
            2 => proptest::collection::vec(action(), 0..3).prop_map(Some),
        ]
    };
    let last = TABLES - 1;
    let goto = if table < last {
        prop_oneof![1 => Just(None), 3 => (table + 1..=last).prop_map(Some)].boxed()
    } else {
        Just(None).boxed()
    };
    let meta = prop_oneof![4 => Just(None), 1 => Just(Some((1, 1))), 1 => Just(Some((0, 3)))];
    let meter = prop_oneof![20 => Just(None), 1 => Just(Some(1))];
    let clear = proptest::bool::weighted(0.1);
    (meter, list(), list(), clear, meta, goto).prop_map(
        |(meter, apply, write, clear, metadata, goto)| Instructions {
            meter,
            apply,
            clear,
            write,
            metadata,
            goto,
        },
    )
}

/// What a chip can do, if the flows around it let it.
fn plain() -> impl Strategy<Value = FlowMod> {
    let set = |field, value| Action::SetField { field, value };
    let write = set(Field::VlanVid, PRESENT | 2);
    let apply = |l: Vec<Action>| Instructions {
        apply: Some(l),
        ..Instructions::default()
    };
    let on = |i: Instructions, t: u8| Instructions {
        goto: (t + 1 < TABLES).then_some(t + 1),
        ..i
    };
    let port = || FIRST..FIRST + 4;
    let ways = move |t: u8| {
        let written = |l: Vec<Action>| Instructions {
            write: Some(l),
            ..Instructions::default()
        };
        let meta = |v| Instructions {
            metadata: Some((v, 1)),
            ..Instructions::default()
        };
        prop_oneof![
            4 => Just(on(Instructions::default(), t)),
            1 => (0..2u64).prop_map(move |v| on(meta(v), t)),
            1 => Just(on(apply(vec![Action::PushVlan(0x8100), write]), t)),
            1 => Just(on(apply(vec![write]), t)),
            1 => port().prop_map(move |p| on(written(vec![out(p)]), t)),
            1 => port().prop_map(move |p| on(apply(vec![out(p)]), t)),
            3 => port().prop_map(to),
            1 => port().prop_map(move |p| apply(vec![Action::PopVlan, out(p)])),
            1 => (port(), port()).prop_map(move |(p, q)| apply(vec![out(p), out(q)])),
            2 => grouped().prop_map(move |l| on(apply(l), t)),
            1 => grouped().prop_map(apply),
            1 => (1..4u32).prop_map(move |g| on(written(vec![Action::Group(g)]), t)),
            1 => Just(Instructions::default()),
        ]
    };
    let x = Oxm::exact;
    let ask = prop_oneof![
        3 => (FIRST..FIRST + 3).prop_map(|p| vec![in_port(p)]),
        2 => (0..3u128).prop_map(|v| vec![vid(v)]),
        2 => (FIRST..FIRST + 3, 0..3u128).prop_map(|(p, v)| vec![in_port(p), vid(v)]),
        3 => (0..3usize).prop_map(move |m| vec![x(Field::EthDst, mac(m))]),
        3 => (0..3usize, 0..3u128).prop_map(move |(m, v)| vec![x(Field::EthDst, mac(m)), vid(v)]),
        1 => (0..2usize).prop_map(move |m| vec![x(Field::EthSrc, mac(m))]),
        1 => (0..2u128).prop_map(move |v| vec![x(Field::Metadata, v)]),
        1 => Just(vec![]),
    ];
    (0..TABLES, ask, 1..3u16)
        .prop_flat_map(move |(t, f, p)| (Just(t), Just(p), Just(f), ways(t)))
        .prop_map(|(t, p, mut f, i)| {
            f.sort_by_key(|o| o.field);
            of(t, p, f, i)
        })
}

/// A flow that writes, with a match that says what there is to be written to; some leave what is sent to the next table.
fn writer() -> impl Strategy<Value = FlowMod> {
    let set = |field, value| Action::SetField { field, value };
    let to_vid = move |v: u128| set(Field::VlanVid, PRESENT | v);
    let tagged = Oxm::masked(Field::VlanVid, PRESENT, PRESENT);
    let push = Action::PushVlan(0x8100);
    let what = vec![
        (vid(0), vec![push, to_vid(2)]),
        (vid(0), vec![push, to_vid(1), set(Field::VlanPcp, 3)]),
        (vid(1), vec![to_vid(2)]),
        (vid(1), vec![to_vid(7), set(Field::VlanPcp, 1)]),
        (vid(2), vec![set(Field::VlanPcp, 1)]),
        (vid(2), vec![Action::PopVlan]),
        (tagged, vec![Action::PopVlan]),
    ];
    let some = |field, values: Vec<u128>| {
        prop_oneof![
            1 => Just(None),
            1 => proptest::sample::select(values).prop_map(move |v| Some(Oxm::exact(field, v)))
        ]
    };
    let first = u128::from(FIRST);
    let port = some(Field::InPort, vec![first, first + 1]);
    let dst = some(Field::EthDst, vec![mac(0), mac(1), mac(2)]);
    let all = || FIRST..FIRST + 4;
    let ends = prop_oneof![
        4 => all().prop_map(|p| (vec![out(p)], None)),
        1 => (FIRST..FIRST + 2).prop_map(|p| (vec![out(p), out(p + 2)], None)),
        1 => (1..4u32).prop_map(|g| (vec![Action::Group(g)], None)),
        1 => (1..TABLES).prop_map(|t| (vec![], Some(t))),
    ];
    let what = proptest::sample::select(what);
    (what, port, dst, ends, 3..7u16, idle()).prop_map(
        |((tag, mut apply), port, dst, (ends, goto), priority, idle_timeout)| {
            let mut fields: Vec<Oxm> = port.into_iter().chain(dst).chain([tag]).collect();
            fields.sort_by_key(|o| o.field);
            apply.extend(ends);
            let instructions = Instructions {
                apply: Some(apply),
                goto,
                ..Instructions::default()
            };
            FlowMod {
                idle_timeout,
                ..of(0, priority, fields, instructions)
            }
        },
    )
}

/// In front of all: what the controller wants to see, and what is dropped. Few ask for the tag.
fn front() -> impl Strategy<Value = FlowMod> {
    let x = Oxm::exact;
    let kind = prop_oneof![
        2 => Just(vec![x(Field::EthType, 0x1234), x(Field::EthDst, mac(0))]),
        2 => Just(vec![x(Field::EthType, 0x0806)]),
        2 => Just(vec![x(Field::EthSrc, mac(0))]),
        1 => Just(vec![in_port(FIRST + 1), x(Field::EthDst, mac(1))]),
        1 => Just(vec![vid(2), x(Field::EthDst, mac(0))]),
    ];
    let answer = prop_oneof![
        3 => Just(to(port::CONTROLLER)),
        1 => Just(Instructions::default()),
        1 => Just(to(FIRST + 3)),
    ];
    (kind, answer, 6..9u16).prop_map(|(mut fields, answer, priority)| {
        fields.sort_by_key(|o| o.field);
        of(0, priority, fields, answer)
    })
}

fn of(table: u8, priority: u16, fields: Vec<Oxm>, instructions: Instructions) -> FlowMod {
    FlowMod {
        command: FlowCommand::Add,
        table,
        priority,
        matching: Match {
            fields,
            exact: false,
        },
        instructions,
        ..blank()
    }
}

fn goto(to: u8) -> Instructions {
    Instructions {
        goto: Some(to),
        ..Instructions::default()
    }
}

fn to(port: u32) -> Instructions {
    Instructions {
        apply: Some(vec![out(port)]),
        ..Instructions::default()
    }
}

fn asks() -> Instructions {
    Instructions {
        goto: Some(2),
        ..to(port::CONTROLLER)
    }
}

fn in_port(p: u32) -> Oxm {
    Oxm::exact(Field::InPort, u128::from(p))
}

/// One of them mostly.
fn vlans() -> impl Strategy<Value = u128> {
    prop_oneof![4 => Just(1u128), 1 => Just(0), 1 => Just(2)]
}

/// A station that was learned at a port, with what goes before.
fn station(m: usize, p: u32, v: u128) -> Vec<FlowMod> {
    let (src, dst) = (
        Oxm::exact(Field::EthSrc, mac(m)),
        Oxm::exact(Field::EthDst, mac(m)),
    );
    vec![
        of(0, 2, vec![in_port(p), vid(v)], goto(1)),
        of(1, 2, vec![in_port(p), src, vid(v)], goto(2)),
        of(1, 1, vec![], asks()),
        of(2, 3, vec![dst, vid(v)], to(p)),
    ]
}

fn idle() -> impl Strategy<Value = u16> {
    prop_oneof![4 => Just(0u16), 1 => Just(3u16), 1 => Just(10u16)]
}

/// Any that is learned.
pub fn learned() -> impl Strategy<Value = Vec<FlowMod>> {
    (0..2usize, FIRST..FIRST + 2, vlans(), idle()).prop_map(|(m, p, v, idle)| {
        let mut all = station(m, p, v);
        all[3].idle_timeout = idle;
        all
    })
}

/// A port's place in a VLAN: of two ports without its tag.
fn role(p: u32, v: u128) -> bool {
    (p - FIRST, v) != (2, 1) && p - FIRST != 3
}

pub fn enters(p: u32, v: u128, bare: bool) -> FlowMod {
    let set = Action::SetField {
        field: Field::VlanVid,
        value: PRESENT | v,
    };
    let i = Instructions {
        apply: bare.then(|| vec![Action::PushVlan(0x8100), set]),
        ..goto(1)
    };
    of(0, 2, vec![in_port(p), vid(if bare { 0 } else { v })], i)
}

fn leaves(m: usize, v: u128, ports: &[(u32, bool)]) -> FlowMod {
    let mut list: Vec<Action> = Vec::new();
    for bare in [false, true] {
        let those: Vec<u32> = ports.iter().filter(|p| p.1 == bare).map(|p| p.0).collect();
        if bare && !those.is_empty() {
            list.push(Action::PopVlan);
        }
        list.extend(those.into_iter().map(out));
    }
    let i = Instructions {
        apply: Some(list),
        ..Instructions::default()
    };
    of(2, 3, vec![Oxm::exact(Field::EthDst, mac(m)), vid(v)], i)
}

/// A station that was learned, with or without a tag.
pub fn lives(m: usize, p: u32, v: u128, bare: bool) -> Vec<FlowMod> {
    let src = Oxm::exact(Field::EthSrc, mac(m));
    vec![
        enters(p, v, bare),
        of(1, 2, vec![in_port(p), src, vid(v)], goto(2)),
        of(1, 1, vec![], asks()),
        leaves(m, v, &[(p, bare)]),
    ]
}

fn flooded(v: u128) -> FlowMod {
    let ports: Vec<(u32, bool)> = (FIRST..FIRST + 4).map(|p| (p, role(p, v))).collect();
    leaves(2, v, &ports)
}

/// Any that is learned; mostly where it should be.
pub fn access() -> impl Strategy<Value = Vec<FlowMod>> {
    let odd = proptest::bool::weighted(0.1);
    (0..2usize, FIRST..FIRST + 4, 1..3u128, odd, idle()).prop_map(|(m, p, v, odd, idle)| {
        let mut all = lives(m, p, v, role(p, v) != odd);
        all[3].idle_timeout = idle;
        all
    })
}

/// What a history begins with, so that packets get far: a way through all tables, or stations.
pub fn base(style: Style) -> impl Strategy<Value = Vec<FlowMod>> {
    let on = (FIRST..FIRST + 4).prop_map(|p| {
        vec![
            of(0, 0, vec![], goto(1)),
            of(1, 0, vec![], goto(2)),
            of(2, 0, vec![], to(p)),
        ]
    });
    let flood = of(
        2,
        3,
        vec![Oxm::exact(Field::EthDst, mac(2)), vid(1)],
        to(port::FLOOD),
    );
    let two = [station(0, FIRST, 1), station(1, FIRST + 1, 1), vec![flood]].concat();
    let stations = prop_oneof![
        3 => Just(two),
        1 => proptest::collection::vec(learned(), 2..5).prop_map(|l| l.concat()),
    ];
    match style {
        Style::Learning => stations.boxed(),
        Style::Access => {
            let all = [
                lives(0, FIRST, 1, true),
                lives(1, FIRST + 3, 1, false),
                vec![enters(FIRST + 1, 1, true), enters(FIRST + 2, 1, false)],
                vec![flooded(1)],
            ];
            prop_oneof![3 => Just(all.concat()), 1 => access()].boxed()
        }
        _ => prop_oneof![3 => on, 1 => Just(vec![])].boxed(),
    }
}

/// One flow.
pub fn flow_mod(style: Style) -> impl Strategy<Value = FlowMod> {
    let any = (0..TABLES).prop_flat_map(|t| {
        (Just(t), 0..4u16, fields(), instructions(t), idle()).prop_map(
            |(table, priority, fields, instructions, idle_timeout)| FlowMod {
                idle_timeout,
                ..of(table, priority, fields, instructions)
            },
        )
    });
    let port = || FIRST..FIRST + 3;
    let source = (0..2usize, port(), vlans()).prop_map(|(m, p, v)| {
        let src = Oxm::exact(Field::EthSrc, mac(m));
        of(1, 2, vec![in_port(p), src, vid(v)], goto(2))
    });
    let ask = (0..3u128).prop_map(|v| {
        let l = if v == 0 { vec![] } else { vec![vid(v)] };
        of(1, 1, l, asks())
    });
    let station = (0..3usize, port(), vlans(), idle()).prop_map(|(m, p, v, idle_timeout)| {
        let p = if m == 2 { port::FLOOD } else { p };
        let fields = vec![Oxm::exact(Field::EthDst, mac(m)), vid(v)];
        FlowMod {
            idle_timeout,
            ..of(2, 3, fields, to(p))
        }
    });
    let more = proptest::bool::weighted(0.1).prop_map(u16::from);
    let member = (port(), 0..3u128, more)
        .prop_map(|(p, v, more)| of(0, 2 + more, vec![in_port(p), vid(v)], goto(1)));
    let odd = || proptest::bool::weighted(0.1);
    let enter =
        (FIRST..FIRST + 4, 1..3u128, odd()).prop_map(|(p, v, odd)| enters(p, v, role(p, v) != odd));
    let leave = (0..2usize, FIRST..FIRST + 4, 1..3u128, odd())
        .prop_map(|(m, p, v, odd)| leaves(m, v, &[(p, role(p, v) != odd)]));
    let flood = (1..3u128).prop_map(flooded);
    let flow = match style {
        Style::Access => {
            prop_oneof![1 => any, 1 => plain(), 8 => source, 2 => ask, 20 => enter, 20 => leave, 4 => flood]
                .boxed()
        }
        Style::Learning => {
            prop_oneof![1 => any, 1 => plain(), 20 => source, 4 => ask, 20 => station, 20 => member]
                .boxed()
        }
        Style::Writing => {
            prop_oneof![1 => any, 4 => plain(), 16 => writer(), 4 => front()].boxed()
        }
        _ => prop_oneof![4 => any, 16 => plain(), 1 => source, 1 => ask, 1 => station, 1 => member]
            .boxed(),
    };
    let command = prop_oneof![
        20 => Just(FlowCommand::Add),
        1 => Just(FlowCommand::Modify),
        1 => Just(FlowCommand::ModifyStrict),
        1 => Just(FlowCommand::Delete),
        2 => Just(FlowCommand::DeleteStrict),
    ];
    (command, flow, proptest::bool::weighted(0.1)).prop_map(|(command, flow, reset)| FlowMod {
        command,
        flags: if reset { flow_flags::RESET_COUNTS } else { 0 },
        ..flow
    })
}

/// Frames that most of these flows meet.
pub fn frames() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for dst in MACS {
        for src in MACS.into_iter().take(2).filter(|s| *s != dst) {
            for tag in [&[][..], &[0x81, 0, 0, 1], &[0x81, 0, 0xa0, 2]] {
                let mut f = [&dst[..], &src, tag, &[0x12, 0x34]].concat();
                f.resize(f.len() + 46, 0);
                all.push(f);
            }
        }
    }
    all
}

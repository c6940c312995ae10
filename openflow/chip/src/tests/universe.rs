// SPDX-License-Identifier: Apache-2.0
//! Random flows, groups and meters of a universe so small that most of them overlap, and that all frames of `frames` are of.

use super::frames::MACS;
use proptest::prelude::*;
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{
    Bucket, FlowCommand, FlowMod, GroupCommand, GroupMod, GroupType, flow_flags,
};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, Version, oxm, port};

/// OpenFlow's number of the chip's first port.
pub const FIRST: u32 = 101;

const PRESENT: u128 = oxm::VID_PRESENT as u128;

fn mac(n: usize) -> u128 {
    MACS[n].iter().fold(0, |v, b| v << 8 | u128::from(*b))
}

fn vlan() -> impl Strategy<Value = Vec<Oxm>> {
    let vid = |v: u128| Oxm::exact(Field::VlanVid, v);
    prop_oneof![
        6 => Just(vec![]),
        2 => Just(vec![vid(0)]),
        2 => Just(vec![vid(PRESENT | 1)]),
        2 => Just(vec![vid(PRESENT | 2)]),
        1 => Just(vec![vid(PRESENT)]),
        1 => Just(vec![vid(PRESENT | 0xfff)]),
        1 => Just(vec![Oxm::masked(Field::VlanVid, PRESENT, PRESENT)]),
        1 => Just(vec![vid(PRESENT | 2), Oxm::exact(Field::VlanPcp, 5)]),
        1 => Just(vec![vid(PRESENT), Oxm::exact(Field::VlanPcp, 3)]),
        1 => Just(vec![Oxm::masked(Field::VlanVid, PRESENT | 2, PRESENT | 2)]),
    ]
}

fn net(version: Version) -> impl Strategy<Value = Vec<Oxm>> {
    let x = Oxm::exact;
    let e = move |t: u128| x(Field::EthType, t);
    let p = move |p: u128| x(Field::IpProto, p);
    let both = vec![
        vec![],
        vec![],
        vec![],
        vec![e(0x1234)],
        vec![e(0x0806)],
        vec![e(0x0806), x(Field::ArpOp, 1)],
        vec![e(0x0806), x(Field::ArpSpa, 1)],
        vec![e(0x86dd)],
        vec![e(0x05ff)],
        vec![e(0x8902)],
        vec![e(0x8035)],
        vec![e(0x8100)],
        vec![e(0x0800)],
        vec![e(0x0800), x(Field::Ipv4Dst, 1)],
        vec![e(0x0800), Oxm::masked(Field::Ipv4Dst, 2, 0xff00_0002)],
        vec![e(0x0800), x(Field::IpDscp, 11)],
        vec![e(0x0800), p(1)],
        vec![e(0x0800), p(6)],
        vec![e(0x0800), p(51)],
        vec![e(0x0800), p(6), x(Field::TcpDst, 80)],
        vec![e(0x0800), p(6), x(Field::TcpSrc, 0x1234)],
        vec![e(0x0800), p(17), x(Field::UdpSrc, 0x1234)],
        vec![e(0x0800), p(6), x(Field::TcpDst, 0)],
        vec![e(0x0800), p(17), x(Field::UdpDst, 53)],
        vec![e(0x0800), p(17), x(Field::UdpSrc, 0)],
        vec![e(0x0800), p(1), x(Field::Icmpv4Type, 8)],
        vec![
            e(0x0800),
            p(1),
            x(Field::Icmpv4Type, 0),
            x(Field::Icmpv4Code, 0),
        ],
        vec![
            e(0x0800),
            p(6),
            x(Field::Ipv4Src, 1),
            x(Field::Ipv4Dst, 2),
            x(Field::TcpDst, 80),
        ],
    ];
    let six = vec![
        vec![e(0x86dd), p(0)],
        vec![e(0x86dd), p(6)],
        vec![e(0x86dd), p(44)],
        vec![e(0x86dd), p(51)],
        vec![e(0x86dd), p(58)],
        vec![e(0x86dd), p(59)],
        vec![
            e(0x86dd),
            x(Field::Ipv6Src, 0xfdfd_fdfd_fdfd_fdfd_fdfd_fdfd_fdfd_fd01),
        ],
        vec![
            e(0x86dd),
            p(17),
            x(Field::Ipv6Src, 0xfdfd_fdfd_fdfd_fdfd_fdfd_fdfd_fdfd_fd02),
        ],
        vec![
            e(0x86dd),
            x(Field::Ipv6Dst, 0xfdfd_fdfd_fdfd_fdfd_fdfd_fdfd_fdfd_fd01),
        ],
        vec![e(0x86dd), p(6), x(Field::TcpDst, 80)],
        vec![e(0x86dd), p(17), x(Field::UdpDst, 0)],
        vec![e(0x86dd), p(58), x(Field::Icmpv6Type, 128)],
        vec![e(0x86dd), p(58), x(Field::Icmpv6Type, 0)],
        vec![e(0x86dd), x(Field::Ipv6Flabel, 1)],
        vec![e(0x86dd), x(Field::IpEcn, 0)],
        vec![e(0x0800), p(132), x(Field::SctpDst, 53)],
        vec![e(0x8847), x(Field::MplsLabel, 16)],
    ];
    let all = match version {
        Version::V10 => both,
        Version::V13 => [both, six].concat(),
    };
    proptest::sample::select(all)
}

fn matching(version: Version) -> impl Strategy<Value = Match> {
    let some = |field, values: Vec<u128>| {
        prop_oneof![
            3 => Just(None),
            1 => proptest::sample::select(values).prop_map(move |v| Some(Oxm::exact(field, v)))
        ]
    };
    let dst = match version {
        Version::V10 => some(Field::EthDst, vec![mac(0), mac(1), mac(2)]).boxed(),
        Version::V13 => prop_oneof![
            8 => some(Field::EthDst, vec![mac(0), mac(1), mac(2)]),
            1 => Just(Some(Oxm::masked(Field::EthDst, 1 << 40, 1 << 40))),
            1 => Just(Some(Oxm::masked(Field::EthDst, 0, 1 << 40))),
        ]
        .boxed(),
    };
    let full = (
        some(
            Field::InPort,
            vec![u128::from(FIRST), u128::from(FIRST + 1), 999],
        ),
        dst,
        some(Field::EthSrc, vec![mac(0), mac(1)]),
        vlan(),
        net(version),
    )
        .prop_map(|(port, dst, src, vlan, net)| {
            [
                port.into_iter().collect(),
                dst.into_iter().collect(),
                src.into_iter().collect(),
                vlan,
                net,
            ]
            .concat()
        });
    let station = (0..3usize, vlan()).prop_map(|(n, vlan)| {
        let mut l = vec![Oxm::exact(Field::EthDst, mac(n))];
        l.extend(vlan);
        l
    });
    prop_oneof![4 => full, 3 => station, 1 => Just(vec![])].prop_map(move |mut fields: Vec<Oxm>| {
        fields.sort_by_key(|o| o.field);
        if version == Version::V10 {
            // 1.0 has no bits of a VLAN
            fields.retain(|o| o.field != Field::VlanVid || o.mask == Field::VlanVid.all_ones());
        }
        Match {
            fields,
            exact: false,
        }
    })
}

fn out(port: u32) -> Action {
    Action::Output { port, max_len: 64 }
}

fn actions(version: Version) -> impl Strategy<Value = Instructions> {
    let apply = |l: Vec<Action>| Instructions {
        apply: Some(l),
        ..Instructions::default()
    };
    let set = |field, value| Action::SetField { field, value };
    let both = vec![
        apply(vec![out(FIRST)]),
        apply(vec![out(FIRST + 1)]),
        apply(vec![out(FIRST + 2)]),
        apply(vec![out(FIRST + 3)]),
        apply(vec![out(FIRST + 2)]),
        apply(vec![]),
        Instructions::default(),
        apply(vec![out(FIRST + 1), out(FIRST + 2)]),
        apply(vec![out(FIRST), out(FIRST + 3)]),
        apply(vec![out(port::FLOOD)]),
        apply(vec![out(port::ALL)]),
        apply(vec![out(port::CONTROLLER)]),
        apply(vec![out(FIRST + 2), out(port::CONTROLLER)]),
        apply(vec![out(port::IN_PORT)]),
        apply(vec![out(999)]),
    ];
    let ten = vec![
        apply(vec![Action::SetVlanVid10(7), out(FIRST + 2)]),
        apply(vec![Action::StripVlan10, out(FIRST + 2)]),
    ];
    let thirteen = vec![
        apply(vec![set(Field::VlanVid, PRESENT | 7), out(FIRST + 2)]),
        apply(vec![set(Field::VlanVid, PRESENT), out(FIRST + 2)]),
        apply(vec![set(Field::VlanPcp, 3), out(FIRST + 1)]),
        apply(vec![Action::PopVlan, out(FIRST + 2)]),
        apply(vec![set(Field::EthDst, 5), out(FIRST + 2)]),
        Instructions {
            write: Some(vec![
                out(FIRST + 1),
                Action::SetField {
                    field: Field::EthSrc,
                    value: 9,
                },
            ]),
            ..Instructions::default()
        },
        Instructions {
            write: Some(vec![out(FIRST + 1)]),
            ..Instructions::default()
        },
        Instructions {
            goto: Some(1),
            ..Instructions::default()
        },
        apply(vec![Action::Group(1)]),
        apply(vec![Action::Group(2)]),
        apply(vec![Action::Group(3)]),
        apply(vec![Action::Group(3), out(FIRST)]),
        apply(vec![set(Field::VlanVid, PRESENT | 7), Action::Group(3)]),
        Instructions {
            write: Some(vec![Action::Group(2), out(FIRST)]),
            ..Instructions::default()
        },
        Instructions {
            meter: Some(1),
            ..apply(vec![out(FIRST + 2)])
        },
    ];
    let all = match version {
        Version::V10 => [both, ten].concat(),
        Version::V13 => [both, thirteen].concat(),
    };
    proptest::sample::select(all)
}

/// Flows that write, mostly in front, with matches that say what there is to be written to.
fn writer(version: Version) -> impl Strategy<Value = FlowMod> {
    let set = |field, value| Action::SetField { field, value };
    let vid = move |v: u128| set(Field::VlanVid, PRESENT | v);
    let exact = |v| Oxm::exact(Field::VlanVid, v);
    let ten = vec![
        (exact(0), vec![Action::SetVlanVid10(7)]),
        (
            exact(0),
            vec![Action::SetVlanPcp10(1), Action::SetVlanVid10(7)],
        ),
        (exact(PRESENT | 1), vec![Action::SetVlanVid10(7)]),
        (exact(PRESENT | 2), vec![Action::SetVlanPcp10(1)]),
        (exact(PRESENT | 2), vec![Action::StripVlan10]),
    ];
    let thirteen = vec![
        (exact(0), vec![Action::PushVlan(0x8100), vid(7)]),
        (
            exact(0),
            vec![Action::PushVlan(0x8100), vid(7), set(Field::VlanPcp, 5)],
        ),
        (exact(PRESENT | 1), vec![vid(7)]),
        (exact(PRESENT), vec![vid(7)]),
        (exact(PRESENT | 2), vec![set(Field::VlanPcp, 1), vid(8)]),
        (exact(PRESENT | 2), vec![Action::PopVlan]),
        (
            Oxm::masked(Field::VlanVid, PRESENT, PRESENT),
            vec![Action::PopVlan],
        ),
        (exact(PRESENT | 1), vec![set(Field::IpDscp, 46), vid(9)]),
        (exact(0), vec![set(Field::IpDscp, 9)]),
    ];
    let all = match version {
        Version::V10 => ten,
        Version::V13 => thirteen,
    };
    let port = prop_oneof![Just(None), (0..2u32).prop_map(Some)];
    let command = prop_oneof![
        6 => Just(FlowCommand::Add),
        1 => Just(FlowCommand::DeleteStrict),
    ];
    let what = (
        proptest::sample::select(all),
        port,
        0..4usize,
        0..3u32,
        any::<bool>(),
    );
    (what, 2..7u16, command).prop_map(|((what, port, end, to, both), priority, command)| {
        let ((vlan, mut apply), mut fields) = (what, Vec::new());
        let ip = apply.iter().any(|a| {
            matches!(
                a,
                Action::SetField {
                    field: Field::IpDscp,
                    ..
                }
            )
        });
        fields.extend(port.map(|p| Oxm::exact(Field::InPort, u128::from(FIRST + p))));
        fields.extend((end < 2 && !ip).then(|| Oxm::exact(Field::EthDst, mac(end))));
        let ether = if end & 1 == 0 { 0x0800 } else { 0x86dd };
        fields.extend((ip || end == 2).then(|| Oxm::exact(Field::EthType, ether)));
        fields.push(vlan);
        fields.sort_by_key(|o| o.field);
        apply.push(out(FIRST + 1 + to));
        apply.extend(both.then(|| out(FIRST)));
        FlowMod {
            command,
            priority,
            matching: Match {
                fields,
                exact: false,
            },
            instructions: Instructions {
                apply: Some(apply),
                ..Instructions::default()
            },
            ..blank()
        }
    })
}

/// A flow_mod.
pub fn flow_mod(version: Version) -> impl Strategy<Value = FlowMod> {
    prop_oneof![4 => any_flow_mod(version), 1 => writer(version)]
}

fn any_flow_mod(version: Version) -> impl Strategy<Value = FlowMod> {
    let command = prop_oneof![
        8 => Just(FlowCommand::Add),
        1 => Just(FlowCommand::Modify),
        1 => Just(FlowCommand::ModifyStrict),
        2 => Just(FlowCommand::Delete),
        3 => Just(FlowCommand::DeleteStrict),
    ];
    let idle = prop_oneof![4 => Just(0u16), 1 => Just(3u16), 1 => Just(10u16)];
    let table = prop_oneof![9 => Just(0u8), 1 => Just(1u8)];
    (
        command,
        0..4u16,
        matching(version),
        actions(version),
        idle,
        table,
        proptest::bool::weighted(0.1),
    )
        .prop_map(
            move |(command, priority, matching, instructions, idle, table, reset)| FlowMod {
                command,
                priority,
                matching,
                instructions,
                idle_timeout: idle,
                table: if version == Version::V10 { 0 } else { table },
                flags: if reset { flow_flags::RESET_COUNTS } else { 0 },
                ..blank()
            },
        )
}

const GROUPS: u32 = 3;

fn group(command: GroupCommand, group: u32, kind: GroupType, buckets: Vec<Bucket>) -> GroupMod {
    GroupMod {
        command,
        kind,
        group,
        buckets,
    }
}

/// A bucket that watches nothing.
pub fn bucket(actions: Vec<Action>) -> Bucket {
    Bucket {
        weight: 0,
        watch_port: port::ANY,
        watch_group: tandem_openflow::model::GROUP_ANY,
        actions,
    }
}

/// The groups that flows name, as they are at the beginning.
pub fn groups() -> Vec<GroupMod> {
    let to = |p: u32| bucket(vec![out(FIRST + p)]);
    let watched = |p: u32| Bucket {
        watch_port: FIRST + p,
        ..to(p)
    };
    let add = GroupCommand::Add;
    vec![
        group(add, 1, GroupType::Indirect, vec![to(2)]),
        group(add, 2, GroupType::All, vec![to(1), to(3)]),
        group(
            add,
            3,
            GroupType::FastFailover,
            vec![watched(1), watched(2)],
        ),
    ]
}

/// Actions that go through groups.
pub fn grouped() -> impl Strategy<Value = Vec<Action>> {
    let some = (1..=GROUPS).prop_map(Action::Group);
    let set = Action::SetField {
        field: Field::VlanVid,
        value: PRESENT | 2,
    };
    (some, FIRST..FIRST + 4, 0..8u8).prop_map(move |(g, p, what)| match what {
        0 => vec![set, g],
        1 => vec![g, out(p)],
        2 => vec![out(p), g],
        3 => vec![Action::PopVlan, g],
        4 => vec![g, set, out(p)],
        _ => vec![g],
    })
}

/// A group that flows name: there, changed, or gone.
pub fn group_mod() -> impl Strategy<Value = GroupMod> {
    let set = |field, value| Action::SetField { field, value };
    let actions = prop_oneof![
        12 => (FIRST..FIRST + 4).prop_map(|p| vec![out(p)]),
        1 => Just(vec![]),
        1 => Just(vec![out(port::CONTROLLER)]),
        1 => Just(vec![out(port::IN_PORT)]),
        1 => (FIRST..FIRST + 4).prop_map(move |p| vec![out(p), set(Field::VlanVid, PRESENT | 7)]),
        1 => (FIRST..FIRST + 4).prop_map(move |p| vec![set(Field::EthDst, 5), out(p)]),
        1 => (FIRST..FIRST + 4).prop_map(|p| vec![Action::PopVlan, out(p)]),
        2 => (1..=GROUPS).prop_map(|g| vec![Action::Group(g)]),
    ];
    let watch = prop_oneof![1 => Just(port::ANY), 2 => FIRST..FIRST + 4];
    let watched = prop_oneof![
        5 => Just(tandem_openflow::model::GROUP_ANY),
        1 => 1..=GROUPS
    ];
    let buckets = proptest::collection::vec((actions, watch, watched, 0..2u16), 0..4);
    let kind = prop_oneof![
        Just(GroupType::Indirect),
        Just(GroupType::All),
        Just(GroupType::FastFailover),
        Just(GroupType::Select),
    ];
    (0..8u8, 1..=GROUPS, kind, buckets).prop_map(|(command, n, kind, buckets)| {
        let command = match command {
            0..=2 => GroupCommand::Add,
            3..=6 => GroupCommand::Modify,
            _ => GroupCommand::Delete,
        };
        let mut all: Vec<Bucket> = Vec::new();
        for (actions, watch_port, watch_group, weight) in buckets {
            all.push(Bucket {
                weight: if kind == GroupType::Select { weight } else { 0 },
                watch_port,
                watch_group,
                actions,
            });
        }
        if kind == GroupType::Indirect {
            all.truncate(1);
        }
        if command == GroupCommand::Delete {
            all.clear();
        }
        group(command, n, kind, all)
    })
}

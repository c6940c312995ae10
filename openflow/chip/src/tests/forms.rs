// SPDX-License-Identifier: Apache-2.0
//! Flows whose packets leave in two forms: each port has its own, byte by byte as the software's, whatever fails, for the next
//! process as well; and frames that come in with a VLAN id of theirs are nobody else's.

use super::device::{Fate, Shared};
use super::frames;
use super::property::{Op, play, silent};
use super::seen::Seen;
use super::universe::{self, FIRST, bucket};
use super::world::{self, World, killed};
use super::writing::{PRESENT, PUSH, flow, frame, out, set, vid};
use crate::{Limits, Lookup, Share, Slice};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tandem_openflow::model::{FlowCommand, FlowMod, GroupCommand, GroupMod, GroupType};
use tandem_openflow::{Action, Field, Oxm, Version};

fn two() -> Limits {
    Limits {
        forms: true,
        ..Limits::default()
    }
}

fn pcp(value: u128) -> Action {
    set(Field::VlanPcp, value)
}

fn dscp(value: u128) -> Action {
    set(Field::IpDscp, value)
}

fn port(n: u128) -> Oxm {
    Oxm::exact(Field::InPort, u128::from(FIRST) + n - 1)
}

fn vlan(v: u128) -> Oxm {
    Oxm::exact(Field::VlanVid, PRESENT | v)
}

fn untagged() -> Oxm {
    Oxm::exact(Field::VlanVid, 0)
}

fn tagged() -> Oxm {
    Oxm::masked(Field::VlanVid, PRESENT, PRESENT)
}

fn ip4() -> Oxm {
    Oxm::exact(Field::EthType, 0x0800)
}

/// Each in two forms, and what is behind them.
fn flows() -> Vec<FlowMod> {
    vec![
        flow(5, &[port(1), untagged()], &[out(2), PUSH, vid(100), out(3)]),
        flow(5, &[port(1), vlan(1)], &[out(2), Action::PopVlan, out(3)]),
        flow(
            5,
            &[port(1), vlan(2)],
            &[vid(7), out(2), vid(9), pcp(5), out(3)],
        ),
        flow(
            5,
            &[port(2), vlan(3)],
            &[pcp(1), out(3), Action::PopVlan, out(1), out(4)],
        ),
        flow(5, &[port(4), tagged()], &[vid(7), out(2), vid(8), out(3)]),
        flow(
            5,
            &[port(3), vlan(4), ip4()],
            &[dscp(46), out(1), vid(9), out(2)],
        ),
        flow(1, &[ip4()], &[out(4)]),
        flow(1, &[Oxm::exact(Field::EthDst, 0x0200_0000_0001)], &[out(4)]),
    ]
}

const SENT: [(u16, Option<u16>); 6] = [
    (1, None),
    (1, Some(0xb001)),
    (1, Some(0x6002)),
    (2, Some(0xe003)),
    (4, Some(0x3123)),
    (3, Some(0x0004)),
];

fn world() -> World {
    let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, two());
    w.rest();
    for f in flows() {
        w.flow_mod(&f);
    }
    w.rest();
    w
}

#[test]
fn each_port_has_its_form() {
    let mut w = world();
    for id in 0..6 {
        let why = w.chip.why(id).unwrap();
        assert_eq!(w.chip.share(id), Share::Whole, "{why}");
        assert!(why.starts_with("in IS1, 2 lines, which writes"), "{why}");
    }
    let u = w.chip.usage();
    assert_eq!((u.groups_used, u.forms_used, u.forms_size), (6, 6, 31));
    for (n, (port, tci)) in SENT.iter().enumerate() {
        w.send(*port, &frame(*tci));
        let n = n as u64 + 1;
        assert_eq!((w.seen.sent, w.seen.trapped), (n, 0), "{tci:?}");
    }
    w.check_counts();
    for id in 0..6 {
        assert_eq!(w.chip.counted(id).0, Some(1), "{id}");
    }
    // One that sends in one form has a number behind theirs
    w.flow_mod(&flow(5, &[port(2), vlan(9)], &[vid(10), out(1)]));
    w.rest();
    w.send(2, &frame(Some(9)));
    let u = w.chip.usage();
    assert_eq!((u.groups_used, u.forms_used, w.seen.trapped), (7, 6, 0));
}

/// The buckets of a group, each with its own.
#[test]
fn a_group_in_two_forms() {
    let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, two());
    w.rest();
    let buckets = [
        bucket(vec![out(2)]),
        bucket(vec![PUSH, vid(100), out(3)]),
        bucket(vec![PUSH, vid(100), out(4)]),
    ];
    let mut all = GroupMod {
        command: GroupCommand::Add,
        kind: GroupType::All,
        group: 9,
        buckets: buckets.to_vec(),
    };
    w.group_mod(&all);
    w.flow_mod(&flow(5, &[port(1), untagged()], &[Action::Group(9)]));
    w.rest();
    w.send(1, &frame(None));
    assert_eq!((w.seen.sent, w.seen.trapped), (1, 0));
    // Others, and one form alone
    all.command = GroupCommand::Modify;
    for buckets in [&buckets[1..], &buckets[..2], &buckets[..1]] {
        all.buckets = buckets.to_vec();
        w.group_mod(&all);
        w.rest();
        w.send(1, &frame(None));
    }
    assert_eq!((w.seen.sent, w.seen.trapped), (4, 0));
    assert_eq!(w.chip.usage().forms_used, 0);
}

/// What no port could be told from the class, and what says so.
#[test]
fn what_is_the_cpus() {
    let cases: [(&[Oxm], &[Action], &str); 4] = [
        (
            &[port(1)],
            &[out(2), Action::PopVlan, out(3)],
            "it pushes or pops a tag",
        ),
        (
            &[port(1), tagged()],
            &[out(2), Action::PopVlan, out(3)],
            "some ports get the tag that packets came with",
        ),
        (
            &[port(1), vlan(1), ip4()],
            &[out(2), dscp(9), vid(3), out(3)],
            "ports get other DSCPs",
        ),
        (
            &[port(1), vlan(1)],
            &[out(2), vid(3), out(3), vid(4), out(4)],
            "it sends several forms",
        ),
    ];
    for (fields, actions, said) in cases {
        let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, two());
        w.rest();
        w.flow_mod(&flow(5, fields, actions));
        w.rest();
        let why = w.chip.why(0).unwrap();
        assert!(why.contains(said), "{why}");
        assert_eq!(w.chip.share(0), Share::Nothing, "{why}");
        w.send(1, &frame(Some(1)));
    }
    // A device without these lists
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
    w.rest();
    w.flow_mod(&flows()[0]);
    w.rest();
    let why = w.chip.why(0).unwrap();
    assert!(why.contains("it sends several forms"), "{why}");
    assert_eq!(w.chip.usage().forms_size, 0);
}

/// A tag that some port can't have stays the CPU's when it is only asked whether the flow is used.
#[test]
fn a_timeout_does_not_make_it_one_form() {
    for v in [0, 4064, 4095] {
        let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, two());
        w.rest();
        let mut m = flow(5, &[port(1), vlan(1)], &[vid(7), out(2), vid(v), out(3)]);
        for idle_timeout in [0, 30, 0] {
            m.idle_timeout = idle_timeout;
            w.flow_mod(&m);
            w.rest();
            assert_eq!(w.chip.share(0), Share::Nothing, "{v} {idle_timeout}");
            w.send(1, &frame(Some(1)));
        }
        assert_eq!((w.seen.sent, w.seen.trapped), (0, 3), "{v}");
    }
}

/// Two switches on a chip have the same VLAN ids, each at its own ports.
#[test]
fn two_switches_in_two_forms() {
    let device = Shared::new("nxp-t1040");
    let on = |index| {
        let slice = Slice {
            index,
            of: 2,
            domains: true,
        };
        World::on(
            &device,
            slice,
            "nxp-t1040",
            Lookup::Vlan,
            Version::V13,
            two(),
        )
    };
    let (mut red, mut blue) = (on(0), on(1));
    world::attach(&mut [&mut red, &mut blue]);
    world::rest(&mut [&mut red, &mut blue]);
    for f in flows() {
        red.flow_mod(&f);
    }
    // The first number of each is another flow's
    for f in flows().into_iter().rev() {
        blue.flow_mod(&f);
    }
    world::rest(&mut [&mut red, &mut blue]);
    for _ in 0..2 {
        for (w, size) in [(&mut red, 16), (&mut blue, 15)] {
            let u = w.chip.usage();
            assert_eq!((u.forms_used, u.forms_size), (6, size));
            let before = (w.seen.sent, w.seen.trapped);
            for (port, tci) in SENT {
                w.send(port, &frame(tci));
            }
            let after = (w.seen.sent, w.seen.trapped);
            assert_eq!(after, (before.0 + 6, before.1));
            w.send(1, &frame(Some(4064)));
            w.send(1, &frame(Some(4090)));
            assert_eq!(w.seen.trapped, before.1 + 2);
        }
        assert_eq!(killed(&mut [&mut red, &mut blue]), Ok(true));
        world::rest(&mut [&mut red, &mut blue]);
    }
}

/// Frames that come in with a VLAN id of theirs would leave as theirs do: they are the software's.
#[test]
fn nobody_else_has_their_vlan_ids() {
    let mut w = world();
    w.flow_mod(&flow(4, &[port(1)], &[out(3)]));
    w.flow_mod(&flow(5, &[port(2), vlan(5)], &[vid(4064), out(3)]));
    w.rest();
    for v in [4063, 4064, 4070, 4094, 4095] {
        let trapped = w.seen.trapped;
        w.send(1, &frame(Some(v)));
        assert_eq!(w.seen.trapped - trapped, u64::from(v > 4063), "{v}");
    }
    w.send(2, &frame(Some(5)));
}

/// The guard is refused, or gets no answer: no port has a form for its VLAN ids, by which another flow's packets would leave.
#[test]
fn forms_wait_for_their_guard() {
    for fate in [Fate::Refused, Fate::Lost, Fate::Ignored] {
        let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, two());
        w.rest();
        w.flow_mod(&flow(1, &[port(2)], &[out(3)]));
        w.rest();
        w.next = fate;
        w.flow_mod(&flow(
            5,
            &[port(1), untagged()],
            &[out(2), PUSH, vid(100), out(3)],
        ));
        for _ in 0..20 {
            w.step();
            w.probe(2, &frame(Some(4064)));
        }
        w.wait();
        w.rest();
        assert_eq!(w.chip.share(1), Share::Whole, "{fate:?}");
    }
}

/// While no flow has two forms these VLAN ids are as any other; whose they are changes before the first one comes and behind the
/// last one.
#[test]
fn their_vlan_ids_are_as_others_while_there_are_none() {
    let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, two());
    w.rest();
    let to = Oxm::exact(Field::EthDst, 0x0200_0000_0001);
    w.flow_mod(&flow(5, &[port(1), vlan(4070)], &[vid(9), out(3)]));
    w.flow_mod(&flow(4, &[port(2), vlan(4070)], &[out(3)]));
    w.flow_mod(&flow(3, &[to, vlan(4070)], &[out(4)]));
    w.rest();
    let two_forms = flow(5, &[port(1), untagged()], &[out(2), PUSH, vid(100), out(3)]);
    let gone = FlowMod {
        command: FlowCommand::DeleteStrict,
        ..two_forms.clone()
    };
    for (n, change) in [None, Some(&two_forms), Some(&gone), Some(&two_forms)]
        .into_iter()
        .enumerate()
    {
        if let Some(m) = change {
            w.flow_mod(m);
        }
        for _ in 0..100 {
            w.step();
            for p in 1..5 {
                w.probe(p, &frame(Some(4070)));
            }
            w.probe(1, &frame(None));
        }
        w.rest();
        let guarded = n % 2 == 1;
        assert_eq!(killed(&mut [&mut w]), Ok(true));
        w.rest();
        let share = if guarded {
            Share::Nothing
        } else {
            Share::Whole
        };
        for id in 0..3 {
            let why = w.chip.why(id).unwrap();
            assert_eq!(w.chip.share(id), share, "{n} {why}");
            let said = why.contains("leave in two forms by this VLAN id");
            assert_eq!(said, guarded, "{why}");
        }
        let trapped = w.seen.trapped;
        for p in 1..5 {
            w.send(p, &frame(Some(4070)));
        }
        let more = w.seen.trapped - trapped;
        assert_eq!(more, if guarded { 4 } else { 0 }, "{n}");
    }
}

/// There are so many of them; who has the least waits.
#[test]
fn more_than_there_are() {
    let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, two());
    w.rest();
    let nth = |n: u128| {
        let apply = [out(2), Action::PopVlan, out(3)];
        flow(5, &[port(1), vlan(n + 1)], &apply)
    };
    for n in 0..33 {
        w.flow_mod(&nth(n));
    }
    w.rest();
    let u = w.chip.usage();
    assert_eq!((u.forms_used, u.forms_size), (31, 31));
    let waits: Vec<u32> = (0..33)
        .filter(|id| w.chip.share(*id) == Share::Nothing)
        .collect();
    assert_eq!(waits.len(), 2);
    let why = w.chip.why(waits[0]).unwrap();
    assert!(why.contains("all 31 groups have a flow"), "{why}");
    // One that writes in one form needs none of theirs
    w.flow_mod(&flow(5, &[port(2), vlan(1)], &[vid(7), out(3)]));
    w.rest();
    assert_eq!(w.chip.share(33), Share::Whole);
    let stays = (0..33u128).find(|n| !waits.contains(&(*n as u32))).unwrap();
    let gone = FlowMod {
        command: FlowCommand::DeleteStrict,
        ..nth(stays)
    };
    w.flow_mod(&gone);
    w.rest();
    assert_eq!(w.chip.usage().forms_used, 31);
    for n in 0..33 {
        w.send(1, &frame(Some(n + 1)));
    }
}

/// Whatever write of such a flow fails, or of one that takes its place, no frame has a third answer, and it is mended.
#[test]
fn writes_that_fail() {
    let other = |n: usize| match n {
        0 => flow(
            5,
            &[port(1), vlan(1)],
            &[vid(8), out(4), Action::PopVlan, out(2)],
        ),
        1 => flow(5, &[port(1), vlan(1)], &[vid(8), out(4)]),
        _ => flow(5, &[port(1), vlan(1)], &[out(3)]),
    };
    for then in 0..3 {
        for at in 0..24 {
            for fate in [Fate::Refused, Fate::Lost, Fate::Ignored] {
                let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, two());
                w.rest();
                w.flow_mod(&flows()[6]);
                // by a port that has a form for their VLAN id
                w.flow_mod(&flow(2, &[port(2)], &[out(3)]));
                w.rest();
                w.flow_mod(&flows()[1]);
                for n in 0..60 {
                    if n == at {
                        w.next = fate;
                    }
                    if n == 7 {
                        w.flow_mod(&other(then));
                    }
                    if !w.step() && n > 7 {
                        break;
                    }
                    w.probe(1, &frame(Some(1)));
                    w.probe(2, &frame(Some(1)));
                    w.probe(2, &frame(Some(4064)));
                }
                w.wait();
                w.rest();
                let before = w.seen.sent;
                w.send(1, &frame(Some(1)));
                assert_eq!(w.seen.sent, before + 1, "{then} {at} {fate:?}");
            }
        }
    }
}

/// The next process goes on with them as they stand, whatever number their groups have there.
#[test]
fn the_next_process_has_them() {
    let mut w = world();
    let gone = FlowMod {
        command: FlowCommand::DeleteStrict,
        ..flows().swap_remove(0)
    };
    w.flow_mod(&gone);
    w.flow_mod(&flow(
        5,
        &[port(4), untagged()],
        &[out(1), PUSH, vid(8), out(2)],
    ));
    w.rest();
    w.send(3, &frame(Some(4)));
    let before = w.writes();
    for _ in 0..2 {
        assert_eq!(killed(&mut [&mut w]), Ok(true));
        w.rest();
    }
    assert_eq!(w.writes(), before);
    for (port, tci) in SENT.iter().skip(1) {
        w.send(*port, &frame(*tci));
    }
    w.send(4, &frame(None));
    assert_eq!(w.seen.trapped, 0);
    w.check_counts();
}

fn matches() -> impl Strategy<Value = Vec<Oxm>> {
    let tags = vec![
        vec![untagged()],
        vec![vlan(1)],
        vec![vlan(2)],
        vec![vlan(4066)],
        vec![tagged()],
        vec![],
    ];
    let ports = vec![vec![], vec![port(1)], vec![port(2)]];
    let more = vec![
        vec![],
        vec![],
        vec![ip4()],
        vec![Oxm::exact(Field::EthDst, 0x0200_0000_0001)],
    ];
    let pick = proptest::sample::select::<Vec<Oxm>>;
    (pick(tags), pick(ports), pick(more)).prop_map(|(t, p, m)| [t, p, m].concat())
}

fn applied() -> impl Strategy<Value = Vec<Action>> {
    let pop = Action::PopVlan;
    proptest::sample::select(vec![
        vec![out(2), PUSH, vid(100), out(3)],
        vec![PUSH, vid(100), out(3), out(4), pop, out(2)],
        vec![PUSH, vid(1), out(1), vid(2), pcp(3), out(2)],
        vec![out(3), pop, out(4)],
        vec![vid(7), out(3), pop, out(4), out(1)],
        vec![vid(7), out(1), out(2), vid(8), out(3)],
        vec![pcp(6), out(4), pop, out(3)],
        vec![out(2), vid(2), out(4)],
        vec![vid(4064), out(3), pop, out(4)],
        vec![vid(7), out(3), vid(4064), out(4)],
        vec![vid(7), out(3)],
        vec![pop, out(3)],
        vec![PUSH, vid(9), out(2)],
        vec![out(4)],
        vec![],
    ])
}

fn flow_mod() -> impl Strategy<Value = FlowMod> {
    use FlowCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
    let command = prop_oneof![
        8 => Just(Add),
        2 => Just(ModifyStrict),
        1 => Just(Modify),
        3 => Just(DeleteStrict),
        1 => Just(Delete),
    ];
    let idle = prop_oneof![4 => Just(0), 1 => Just(30u16)];
    (command, 1..4u16, matches(), applied(), idle).prop_map(
        |(command, priority, m, a, idle_timeout)| FlowMod {
            command,
            idle_timeout,
            ..flow(priority, &m, &a)
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let fate = prop_oneof![Just(Fate::Refused), Just(Fate::Lost), Just(Fate::Ignored)];
    let link = (1..5u16, any::<bool>());
    let flow = flow_mod().prop_map(Op::Flow).boxed();
    let silent = silent(flow.clone(), flow);
    prop_oneof![
        1 => silent,
        20 => flow_mod().prop_map(Op::Flow),
        3 => universe::flow_mod(Version::V13).prop_map(Op::Flow),
        8 => (1..6u8).prop_map(Op::Steps),
        6 => Just(Op::Rest),
        2 => link.prop_map(|(p, up)| Op::Link(p, up)),
        2 => fate.prop_map(Op::Fail),
        1 => Just(Op::Wait),
        1 => Just(Op::Die),
        1 => Just(Op::Killed),
        1 => (1..5u16).prop_map(Op::Toggle),
        10 => (1..5u16, any::<usize>()).prop_map(|(p, n)| Op::Send(p, n)),
        2 => Just(Op::Counts),
        1 => (1..15u64).prop_map(Op::Pass),
    ]
}

/// Those that they ask for, and some that they do not.
fn eyes() -> Vec<Vec<u8>> {
    let tags = [
        None,
        Some(0xb001),
        Some(0x0001),
        Some(0x6002),
        Some(0x2007),
        Some(4064),
        Some(4066),
        Some(0),
    ];
    let mut all: Vec<_> = tags.into_iter().map(frame).collect();
    let mut other = frame(Some(1));
    other[5] = 9;
    all.push(other);
    all
}

/// In random histories there is something to judge.
#[test]
fn chips_send_in_two_forms() {
    let mut runner = TestRunner::deterministic();
    let mut seen = Seen::default();
    let mut most = 0;
    for _ in 0..24 {
        let ops = proptest::collection::vec(op(), 1..40);
        let ops = ops.new_tree(&mut runner).unwrap().current();
        let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, two());
        play(&mut w, ops, eyes());
        most = most.max(w.chip.usage().forms_used);
        seen.add(&w.seen);
    }
    println!("{seen:?}, {most}");
    assert!(seen.written > 50 && most > 0 && seen.silent > 0, "{seen:?}");
}

proptest! {
    /// After each command each frame has the answer of before, of after, or the software's.
    #[test]
    fn one_switch_in_two_forms(
        ops in proptest::collection::vec(op(), 1..60),
        more in proptest::collection::vec(frames::frame(), 6),
        lookup in prop_oneof![3 => Just(Lookup::Vlan), 1 => Just(Lookup::Address)],
        members in any::<bool>(),
    ) {
        let limits = Limits { members, ..two() };
        let mut w = World::within("nxp-t1040", lookup, Version::V13, limits);
        play(&mut w, ops, [eyes(), more].concat());
    }
}

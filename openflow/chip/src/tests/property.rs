// SPDX-License-Identifier: Apache-2.0
//! Chip and software behind it are one switch: the software's alone.

use super::cases::{self, STATION, add};
use super::device::Fate;
use super::frames::frame;
use super::pipelines::{self, Style};
use super::universe::{FIRST, flow_mod, group_mod};
use super::world::{PORTS, Seen, World, heard, hush, killed, tick};
use crate::{Limits, Lookup};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tandem_openflow::model::{FlowMod, GroupMod};
use tandem_openflow::{Field, Version};

#[derive(Clone, Debug)]
pub enum Op {
    Flow(FlowMod),
    Learn(Vec<FlowMod>),
    Group(GroupMod),
    Configure(u16, bool, bool),
    Fragments(bool),
    Link(u16, bool),
    Steps(u8),
    Rest,
    Fail(Fate),
    Wait,
    Die,
    /// It is lost while these come; has it ended?
    Outage(Vec<FlowMod>, bool),
    Killed,
    Send(u16, usize),
    /// Many of one kind, while it is measured.
    Burst(u16, usize),
    /// So many lines, until it is attached anew.
    Room(u32),
    Counts,
    Pass(u64),
    Begin(Version),
    /// A port goes, or comes back.
    Toggle(u16),
    /// Counters are to be read.
    Read,
    /// It answers nothing while these come, half a second after each.
    Silent(Vec<Op>),
}

impl Op {
    /// What is done to one switch alone.
    pub fn of_one(self, w: &mut World) {
        match self {
            Op::Flow(m) => w.flow_mod(&m),
            Op::Learn(all) => all.iter().for_each(|m| w.flow_mod(m)),
            Op::Group(m) => w.group_mod(&m),
            Op::Configure(p, receive, send) => w.configure(p, receive, send),
            Op::Fragments(drop) => w.fragments(drop),
            Op::Link(p, up) => w.link(p, up),
            Op::Begin(version) => w.begin(version),
            Op::Read => _ = w.chip.read(),
            Op::Room(lines) => w.room(lines),
            _ => {}
        }
    }
}

/// A device that is silent for longer than goes unnoticed, and at times for so long that writes are given up.
pub fn silent(flow: BoxedStrategy<Op>, rare: BoxedStrategy<Op>) -> impl Strategy<Value = Op> {
    let port = 1..=PORTS as u16;
    let one = prop_oneof![
        8 => flow,
        3 => rare,
        6 => (1..6u8).prop_map(Op::Steps),
        8 => (port, any::<usize>()).prop_map(|(p, n)| Op::Send(p, n)),
        3 => Just(Op::Read),
    ];
    proptest::collection::vec(one, 8..14).prop_map(Op::Silent)
}

pub fn op(version: Version, style: Style) -> impl Strategy<Value = Op> {
    let port = || 1..=PORTS as u16;
    let fate = proptest::sample::select(vec![Fate::Refused, Fate::Lost, Fate::Ignored]);
    let group = match version {
        Version::V10 => Just(Op::Rest).boxed(),
        Version::V13 => group_mod().prop_map(Op::Group).boxed(),
    };
    let mods = match style {
        Style::One => flow_mod(version).boxed(),
        _ => pipelines::flow_mod(style).boxed(),
    };
    let flow = match style {
        Style::One => flow_mod(version).prop_map(Op::Flow).boxed(),
        Style::Any | Style::Writing => pipelines::flow_mod(style).prop_map(Op::Flow).boxed(),
        Style::Learning => prop_oneof![
            2 => pipelines::flow_mod(style).prop_map(Op::Flow),
            1 => pipelines::learned().prop_map(Op::Learn),
        ]
        .boxed(),
        Style::Access => prop_oneof![
            4 => pipelines::flow_mod(style).prop_map(Op::Flow),
            1 => pipelines::access().prop_map(Op::Learn),
        ]
        .boxed(),
    };
    let rare = prop_oneof![
        2 => group.clone(),
        1 => (port(), any::<bool>()).prop_map(|(p, r)| Op::Configure(p, r, true)),
        1 => (port(), any::<bool>()).prop_map(|(p, up)| Op::Link(p, up)),
        1 => fate.clone().prop_map(Op::Fail),
        1 => Just(Op::Begin(version)),
    ];
    let silent = silent(flow.clone(), rare.boxed());
    prop_oneof![
        24 => flow,
        1 => silent,
        4 => group,
        2 => (port(), any::<bool>(), any::<bool>()).prop_map(|(p, r, s)| Op::Configure(p, r || s, s)),
        1 => proptest::bool::weighted(0.3).prop_map(Op::Fragments),
        3 => (port(), any::<bool>()).prop_map(|(p, up)| Op::Link(p, up)),
        8 => (1..6u8).prop_map(Op::Steps),
        8 => Just(Op::Rest),
        2 => fate.prop_map(Op::Fail),
        1 => Just(Op::Wait),
        1 => Just(Op::Die),
        1 => (proptest::collection::vec(mods, 0..3), any::<bool>()).prop_map(|(f, e)| Op::Outage(f, e)),
        1 => Just(Op::Killed),
        1 => port().prop_map(Op::Toggle),
        20 => (port(), any::<usize>()).prop_map(|(p, n)| Op::Send(p, n)),
        1 => (port(), any::<usize>()).prop_map(|(p, n)| Op::Burst(p, n)),
        1 => (2..9u32).prop_map(Op::Room),
        2 => Just(Op::Counts),
        3 => (1..15u64).prop_map(Op::Pass),
    ]
}

/// Frames of a burst: so many packets a second, over the time between two measurements, that its flows have more to do than
/// those that were never measured.
pub const BURST: usize = 20;

/// Frames are looked at in turns, some after each command.
pub struct Eyes {
    frames: Vec<Vec<u8>>,
    at: usize,
}

impl Eyes {
    pub fn new(frames: Vec<Vec<u8>>) -> Eyes {
        Eyes { frames, at: 0 }
    }

    /// As many looks as show each frame at two ports.
    pub fn all(&self) -> usize {
        self.frames.len() * 2
    }

    pub fn frame(&self, n: usize) -> Vec<u8> {
        self.frames[n % self.frames.len()].clone()
    }

    /// The next one comes in.
    fn count(&mut self, w: &mut World) {
        self.at += 1;
        let frame = self.frame(self.at);
        w.send((self.at % PORTS as usize) as u16 + 1, &frame);
    }

    pub fn look(&mut self, w: &mut World, n: usize) {
        for _ in 0..n {
            self.at += 1;
            let frame = &self.frames[self.at % self.frames.len()];
            let port = (self.at / self.frames.len()) % PORTS as usize;
            w.probe(port as u16 + 1, frame);
        }
    }
}

fn does(w: &mut World, eyes: &mut Eyes, op: Op) {
    match op {
        Op::Steps(n) => {
            for _ in 0..n {
                if !w.step() {
                    break;
                }
                eyes.look(w, 6);
                eyes.count(w);
            }
        }
        Op::Rest => {
            while w.step() {
                eyes.look(w, 6);
                eyes.count(w);
            }
            eyes.look(w, eyes.all());
        }
        Op::Fail(fate) => w.next = fate,
        Op::Wait => w.wait(),
        Op::Die => w.die(),
        Op::Outage(flows, ended) => w.outage(&flows, ended),
        Op::Killed => {
            let _ = killed(&mut [w]);
        }
        Op::Send(p, n) => {
            let frame = eyes.frame(n);
            w.send(p, &frame);
        }
        Op::Burst(p, n) => {
            w.pass(3);
            (0..BURST).for_each(|_| w.send(p, &eyes.frame(n)));
            w.pass(3);
        }
        Op::Counts => w.check_counts(),
        Op::Pass(seconds) => w.pass(seconds),
        Op::Toggle(p) => {
            w.rest();
            w.toggle(p);
        }
        Op::Silent(ops) => {
            hush(&mut [w], true);
            for op in ops {
                does(w, eyes, op);
                tick(&mut [w]);
            }
            hush(&mut [w], false);
            heard(&mut [w]);
        }
        other => other.of_one(w),
    }
    eyes.look(w, 6);
}

pub fn play(w: &mut World, ops: Vec<Op>, frames: Vec<Vec<u8>>) {
    let mut eyes = Eyes::new(frames);
    let all = eyes.all();
    w.rest();
    for op in ops {
        does(w, &mut eyes, op);
    }
    w.next = Fate::Done;
    w.rest();
    for n in 0..24 {
        w.send(n % PORTS as u16 + 1, &eyes.frame(usize::from(n)));
    }
    w.check_counts();
    eyes.look(w, all * 2);
}

const CHIPS: [(&str, Lookup, Version); 7] = [
    ("nxp-t1040", Lookup::Vlan, Version::V13),
    ("nxp-t1040", Lookup::Address, Version::V13),
    ("nxp-t1040", Lookup::Vlan, Version::V10),
    ("arista-7500e", Lookup::Address, Version::V13),
    ("arista-7500e", Lookup::Vlan, Version::V10),
    ("tiny", Lookup::Address, Version::V13),
    ("tiny", Lookup::Address, Version::V10),
];

pub const SEVERAL: [(&str, Lookup); 4] = [
    ("nxp-t1040", Lookup::Vlan),
    ("tiny", Lookup::Address),
    ("arista-7500e", Lookup::Vlan),
    ("nxp-t1040", Lookup::Address),
];

pub const STYLES: [Style; 4] = [Style::Any, Style::Learning, Style::Access, Style::Writing];

/// So few chains that some are cut.
const FEW: Limits = Limits {
    per_flow: 3,
    all: 10,
    retries: 1,
    sources: true,
    members: true,
    forms: true,
};

/// Untagged frames may be in VLANs' domains.
pub fn members() -> Limits {
    Limits {
        members: true,
        ..Limits::default()
    }
}

pub fn history(style: Style) -> impl Strategy<Value = Vec<Op>> {
    let ops = proptest::collection::vec(op(Version::V13, style), 1..60);
    (pipelines::base(style), ops).prop_map(|(base, ops)| [vec![Op::Learn(base)], ops].concat())
}

/// Ethernet types of which nothing else is.
const TYPE: u16 = 0x2000;
const KINDS: u16 = 8;

/// A chip that has not room for all, and flows that are busy in turns.
fn busy() -> impl Strategy<Value = Vec<Op>> {
    let port = || 1..=PORTS as u16;
    let fate = proptest::sample::select(vec![Fate::Refused, Fate::Lost]);
    let kinds = (0..KINDS).map(|n| {
        let fields = [(Field::EthType, u128::from(TYPE + n))];
        add(2, &fields, 2 + u32::from(n % 3))
    });
    let kinds: Vec<FlowMod> = kinds.collect();
    let one = (1..4u16, 0..KINDS, port(), 0..3u8).prop_map(|(priority, n, to, by)| {
        let kind = (Field::EthType, u128::from(TYPE + n));
        let fields = match by {
            0 => vec![kind],
            1 => vec![(Field::InPort, u128::from(FIRST)), kind],
            _ => vec![(Field::EthDst, STATION + u128::from(n))],
        };
        Op::Flow(add(priority, &fields, to.into()))
    });
    let op = prop_oneof![
        4 => one,
        1 => flow_mod(Version::V13).prop_map(Op::Flow),
        8 => (port(), any::<usize>()).prop_map(|(p, n)| Op::Burst(p, n)),
        2 => (port(), any::<usize>()).prop_map(|(p, n)| Op::Send(p, n)),
        2 => (1..6u8).prop_map(Op::Steps),
        3 => (2..8u32).prop_map(Op::Room),
        1 => fate.prop_map(Op::Fail),
        1 => Just(Op::Killed),
        1 => Just(Op::Counts),
    ];
    (2..10u32, proptest::collection::vec(op, 10..40)).prop_map(move |(lines, ops)| {
        let full = vec![Op::Room(lines), Op::Learn(kinds.clone())];
        [full, ops].concat()
    })
}

/// Frames of these kinds, to as many stations, and any others.
fn busy_frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let of = |n: u16| {
        let mut frame = cases::frame(TYPE + n);
        frame[5] += (n / 2) as u8;
        frame
    };
    let known: Vec<Vec<u8>> = (0..KINDS).map(of).collect();
    proptest::collection::vec(frame(), 4).prop_map(move |more| [known.clone(), more].concat())
}

/// Who stands in a chip that is full follows what is measured, often enough that there is something to judge.
#[test]
fn full_chips_follow_traffic() {
    let mut runner = TestRunner::deterministic();
    let mut seen = Seen::default();
    for n in 0..40 {
        let (ops, frames) = (busy(), busy_frames())
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let (profile, lookup) = SEVERAL[n % SEVERAL.len()];
        let mut w = World::new(profile, lookup, Version::V13);
        play(&mut w, ops, frames);
        seen.add(&w.seen);
    }
    println!("{seen:?}");
    assert!(seen.traded > 20, "{seen:?}");
}

/// What is answered in the chip of some histories, so that there is something to judge.
#[test]
fn chips_answer_for_several_tables() {
    let mut runner = TestRunner::deterministic();
    let mut seen = Seen::default();
    for n in 0..180 {
        let style = [Style::Any, Style::Learning, Style::Access][n % 3];
        let ops = history(style).new_tree(&mut runner).unwrap().current();
        let (profile, lookup) = SEVERAL[n / 3 % SEVERAL.len()];
        let mut w = World::within(profile, lookup, Version::V13, members());
        play(&mut w, ops, pipelines::frames());
        seen.add(&w.seen);
    }
    println!("{seen:?}");
    assert!(seen.sent > 4000 && seen.dropped > 5000, "{seen:?}");
    assert!(seen.asked > 200 && seen.chained > 4000, "{seen:?}");
    assert!(seen.ended > 20 && seen.forms > 80, "{seen:?}");
    assert!(seen.grouped > 800 && seen.counted > 2, "{seen:?}");
    assert!(seen.between > 100 && seen.silent > 100, "{seen:?}");
    assert!(seen.told > 50 && seen.heard > 5, "{seen:?}");
}

/// The same of flows that write.
#[test]
fn chips_write() {
    let mut runner = TestRunner::deterministic();
    let mut seen = Seen::default();
    for version in [Version::V10, Version::V13] {
        for _ in 0..20 {
            let ops = proptest::collection::vec(op(version, Style::One), 1..40);
            let frames = proptest::collection::vec(frame(), 24);
            let (ops, frames) = (ops, frames).new_tree(&mut runner).unwrap().current();
            let mut w = World::new("nxp-t1040", Lookup::Vlan, version);
            play(&mut w, ops, frames);
            seen.add(&w.seen);
        }
    }
    println!("{seen:?}");
    assert!(seen.written > 30, "{seen:?}");
}

/// And of several tables, some of which write and others send.
#[test]
fn chips_write_for_several_tables() {
    let mut runner = TestRunner::deterministic();
    let mut seen = Seen::default();
    for n in 0..40 {
        let ops = history(Style::Writing)
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let lookup = [Lookup::Vlan, Lookup::Address][n % 2];
        let mut w = World::within("nxp-t1040", lookup, Version::V13, members());
        play(&mut w, ops, pipelines::frames());
        seen.add(&w.seen);
    }
    println!("{seen:?}");
    assert!(seen.written > 300, "{seen:?}");
}

proptest! {
    /// Pipelines of several tables.
    #[test]
    fn one_switch_of_several_tables(
        chip in 0..SEVERAL.len(),
        ops in proptest::sample::select(STYLES.to_vec()).prop_flat_map(|style| {
            history(style)
        }),
        more in proptest::collection::vec(frame(), 8),
        room in prop_oneof![1 => Just(Limits::default()), 4 => Just(members()), 1 => Just(FEW)],
    ) {
        let (profile, lookup) = SEVERAL[chip];
        let mut w = World::within(profile, lookup, Version::V13, room);
        play(&mut w, ops, [pipelines::frames(), more].concat());
    }

    /// A full chip, by which traffic decides.
    #[test]
    fn one_busy_switch(
        chip in 0..SEVERAL.len(),
        ops in busy(),
        frames in busy_frames(),
    ) {
        let (profile, lookup) = SEVERAL[chip];
        let mut w = World::new(profile, lookup, Version::V13);
        play(&mut w, ops, frames);
    }

    #[test]
    fn one_switch(
        (chip, ops) in (0..CHIPS.len()).prop_flat_map(|c| {
            (Just(c), proptest::collection::vec(op(CHIPS[c].2, Style::One), 1..60))
        }),
        frames in proptest::collection::vec(frame(), 24),
    ) {
        let (profile, lookup, version) = CHIPS[chip];
        let mut w = World::new(profile, lookup, version);
        play(&mut w, ops, frames);
    }
}

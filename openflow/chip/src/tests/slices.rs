// SPDX-License-Identifier: Apache-2.0
//! Two switches on one chip: each is the software's alone of its own tables, whatever the other does.

use super::device::{Fate, Shared};
use super::frames::{MACS, frame};
use super::pipelines::{self, Style};
use super::property::{BURST, Eyes, Op, op};
use super::universe::FIRST;
use super::world::{self, World};
use crate::{Limits, Lookup, Slice};
use proptest::prelude::*;
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::FlowMod;
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, Version, port};

pub struct Pair {
    pub red: World,
    pub blue: World,
    eyes: [Eyes; 2],
}

impl Pair {
    pub fn new(
        profile: &str,
        lookup: Lookup,
        versions: [Version; 2],
        frames: [Vec<Vec<u8>>; 2],
    ) -> Pair {
        let device = Shared::new(profile);
        let on = |index: u8| {
            let slice = Slice {
                index,
                of: 2,
                domains: true,
            };
            let version = versions[usize::from(index)];
            World::on(&device, slice, profile, lookup, version, Limits::default())
        };
        let mut p = Pair {
            red: on(0),
            blue: on(1),
            eyes: frames.map(Eyes::new),
        };
        world::attach(&mut [&mut p.red, &mut p.blue]);
        p.rest();
        p
    }

    fn step(&mut self) -> bool {
        world::step(&mut [&mut self.red, &mut self.blue])
    }

    pub fn rest(&mut self) {
        world::rest(&mut [&mut self.red, &mut self.blue]);
    }

    pub fn look(&mut self, n: usize) {
        let [red, blue] = &mut self.eyes;
        red.look(&mut self.red, n);
        blue.look(&mut self.blue, n);
    }

    fn all(&self) -> usize {
        self.eyes.iter().map(Eyes::all).max().unwrap()
    }

    fn check_counts(&mut self) {
        self.rest();
        self.red.next = Fate::Done;
        self.red.check_counts();
        self.blue.now = self.red.now;
        self.blue.check_counts();
        self.red.now = self.blue.now;
    }

    fn play(&mut self, which: bool, op: Op) {
        let w = if which { &mut self.blue } else { &mut self.red };
        match op {
            Op::Steps(n) => {
                for _ in 0..n {
                    if !self.step() {
                        break;
                    }
                    self.look(4);
                }
            }
            Op::Rest => {
                while self.step() {
                    self.look(4);
                }
                self.look(self.all());
            }
            Op::Fail(fate) => self.red.next = fate,
            Op::Wait => {
                self.red.wait();
                self.blue.wait();
            }
            Op::Die | Op::Outage(..) => w.die(),
            Op::Killed => {
                let _ = world::killed(&mut [&mut self.red, &mut self.blue]);
            }
            Op::Pass(seconds) => {
                self.rest();
                self.red.next = Fate::Done;
                world::pass(&mut [&mut self.red, &mut self.blue], seconds);
            }
            Op::Counts => self.check_counts(),
            Op::Toggle(port) => {
                self.rest();
                let w = if which { &mut self.blue } else { &mut self.red };
                w.toggle(port);
            }
            Op::Send(p, n) => {
                let frame = self.eyes[usize::from(which)].frame(n);
                w.send(p, &frame);
            }
            Op::Burst(p, n) => {
                self.rest();
                self.red.next = Fate::Done;
                world::pass(&mut [&mut self.red, &mut self.blue], 3);
                let frame = self.eyes[usize::from(which)].frame(n);
                let w = if which { &mut self.blue } else { &mut self.red };
                (0..BURST).for_each(|_| w.send(p, &frame));
                world::pass(&mut [&mut self.red, &mut self.blue], 3);
            }
            Op::Silent(ops) => {
                world::hush(&mut [&mut self.red, &mut self.blue], true);
                for op in ops {
                    self.play(which, op);
                    world::tick(&mut [&mut self.red, &mut self.blue]);
                }
                world::hush(&mut [&mut self.red, &mut self.blue], false);
                world::heard(&mut [&mut self.red, &mut self.blue]);
            }
            other => other.of_one(w),
        }
        self.look(4);
    }
}

const CHIPS: [(&str, Lookup); 4] = [
    ("nxp-t1040", Lookup::Vlan),
    ("nxp-t1040", Lookup::Address),
    ("arista-7500e", Lookup::Address),
    ("tiny", Lookup::Address),
];

fn version() -> impl Strategy<Value = (Version, Style)> {
    prop_oneof![
        Just((Version::V10, Style::One)),
        Just((Version::V13, Style::One)),
        Just((Version::V13, Style::Any)),
        Just((Version::V13, Style::Learning)),
        Just((Version::V13, Style::Writing)),
    ]
}

type History = Vec<(bool, Op)>;

/// Of two switches, each with its version: what is done to which, and what begins anew at times.
fn history() -> impl Strategy<Value = ([(Version, Style); 2], History)> {
    (version(), version()).prop_flat_map(|(red, blue)| {
        let begin = |v: Version| Just(Op::Begin(v));
        let of_red = prop_oneof![40 => op(red.0, red.1), 1 => begin(red.0)];
        let of_blue = prop_oneof![40 => op(blue.0, blue.1), 1 => begin(blue.0)];
        let one = prop_oneof![
            of_red.prop_map(|o| (false, o)),
            of_blue.prop_map(|o| (true, o)),
        ];
        let first = |(_, style): (Version, Style)| match style {
            Style::One => Just(Vec::new()).boxed(),
            _ => pipelines::base(style).boxed(),
        };
        let first = (first(red), first(blue));
        let first = first.prop_map(|(r, b)| vec![(false, Op::Learn(r)), (true, Op::Learn(b))]);
        let ops = (first, proptest::collection::vec(one, 1..80)).prop_map(|(a, b)| [a, b].concat());
        (Just([red, blue]), ops)
    })
}

fn frames_of(style: Style, more: &[Vec<u8>]) -> Vec<Vec<u8>> {
    match style {
        Style::One => more.to_vec(),
        _ => [pipelines::frames(), more.to_vec()].concat(),
    }
}

proptest! {
    #[test]
    fn two_switches(
        chip in 0..CHIPS.len(),
        (of, ops) in history(),
        more in proptest::collection::vec(frame(), 16),
    ) {
        let (profile, lookup) = CHIPS[chip];
        let frames = of.map(|(_, style)| frames_of(style, &more));
        let mut p = Pair::new(profile, lookup, of.map(|(v, _)| v), frames);
        for (which, op) in ops {
            p.play(which, op);
        }
        p.red.next = Fate::Done;
        p.check_counts();
        let all = p.all() * 2;
        p.look(all);
    }
}

pub fn to(fields: &[(Field, u128)], port: u32) -> FlowMod {
    FlowMod {
        priority: 5,
        matching: Match {
            fields: fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect(),
            exact: false,
        },
        instructions: Instructions {
            apply: Some(vec![Action::Output { port, max_len: 0 }]),
            ..Instructions::default()
        },
        ..blank()
    }
}

pub fn station(n: usize) -> u128 {
    MACS[n].iter().fold(0, |v, b| v << 8 | u128::from(*b))
}

pub fn plain(dst: usize) -> Vec<u8> {
    let mut f = MACS[dst].to_vec();
    f.extend([2, 0, 0, 0, 0, 0x77, 0x12, 0x34]);
    f.extend([0; 46]);
    f
}

/// One station in the MAC table of red's is nobody in blue; what blue drops, red's miss sends to the CPU.
#[test]
fn a_station_of_one_is_nobody_in_the_other() {
    for (profile, lookup) in CHIPS {
        let mut p = Pair::new(
            profile,
            lookup,
            [Version::V13; 2],
            [vec![plain(0)], vec![plain(0)]],
        );
        p.red
            .flow_mod(&to(&[(Field::EthDst, station(0))], FIRST + 1));
        p.rest();
        let own = u32::from(lookup == Lookup::Address);
        assert_eq!(p.red.chip.usage().mac_used, own, "{profile}");
        p.look(4);
        assert_eq!(
            (p.red.seen.sent, p.blue.seen.sent),
            (3, 0),
            "{profile}: its own port not"
        );
        // in blue the same station is elsewhere: in a domain of its own, or, by VLAN, in the rows
        p.blue
            .flow_mod(&to(&[(Field::EthDst, station(0))], FIRST + 3));
        p.rest();
        let blue = p.blue.chip.usage();
        assert_eq!(
            (blue.mac_used, blue.acl_used > 0),
            (own, own == 0),
            "{profile}"
        );
        p.look(4);
        assert_eq!((p.red.seen.sent, p.blue.seen.sent), (6, 3), "{profile}");
    }
}

/// What the list of the second ends with is its miss: dropped in the chip, where a flow says so.
#[test]
fn the_miss_of_each_is_its_own() {
    let mut p = Pair::new(
        "nxp-t1040",
        Lookup::Address,
        [Version::V13; 2],
        [vec![plain(0)], vec![plain(0)]],
    );
    let mut drop = to(&[], port::CONTROLLER);
    (drop.priority, drop.instructions.apply) = (0, None);
    p.blue.flow_mod(&drop);
    let mut tell = to(&[], port::CONTROLLER);
    tell.priority = 0;
    p.red.flow_mod(&tell);
    p.rest();
    p.look(4);
    assert_eq!((p.red.seen.trapped, p.blue.seen.trapped), (4, 0));
    assert_eq!((p.red.seen.dropped, p.blue.seen.dropped), (0, 4));
}

/// Tables that begin anew, of another version too, are their own switch's alone.
#[test]
fn one_begins_anew_and_the_other_answers_on() {
    let mut p = Pair::new(
        "nxp-t1040",
        Lookup::Vlan,
        [Version::V13; 2],
        [vec![plain(0)], vec![plain(0)]],
    );
    for w in [&mut p.red, &mut p.blue] {
        w.flow_mod(&to(&[(Field::InPort, u128::from(FIRST))], FIRST + 1));
        w.flow_mod(&to(
            &[(Field::EthDst, station(0)), (Field::VlanVid, 0)],
            FIRST + 2,
        ));
    }
    p.rest();
    p.look(4);
    for version in [Version::V10, Version::V13] {
        let before = p.blue.seen.sent;
        p.red.begin(version);
        let mut steps = 0;
        while p.step() {
            steps += 1;
            p.look(4);
        }
        assert!(steps > 4, "{steps}");
        assert_eq!(p.blue.seen.sent - before, 3 * steps, "it has not trapped");
        assert_eq!(p.red.chip.usage().acl_used, 0);
        let t = [p.red.chip.troubles(), p.blue.chip.troubles()];
        assert_eq!(t.map(|t| (t.attaches, t.refused)), [(1, 0); 2]);
    }
    p.rest();
    p.red
        .flow_mod(&to(&[(Field::InPort, u128::from(FIRST))], FIRST + 3));
    p.check_counts();
    p.look(8);
}

/// A port that goes takes the flows that ask for it along, and no frame is sent there; when it comes back, they answer.
#[test]
fn a_port_goes_and_comes_back() {
    let mut p = Pair::new(
        "nxp-t1040",
        Lookup::Address,
        [Version::V13; 2],
        [vec![plain(0)], vec![plain(1)]],
    );
    for w in [&mut p.red, &mut p.blue] {
        w.flow_mod(&to(&[(Field::InPort, u128::from(FIRST + 1))], FIRST + 2));
        w.flow_mod(&to(&[(Field::InPort, u128::from(FIRST + 2))], port::FLOOD));
        // what nothing else has is seen
        let mut tell = to(&[], port::CONTROLLER);
        tell.priority = 0;
        w.flow_mod(&tell);
    }
    p.rest();
    assert_eq!([&p.red, &p.blue].map(|w| w.chip.usage().acl_used), [2, 2]);
    p.blue.toggle(2);
    let port = u16::from(p.blue.chip.ports.list[0].0.port) + 1;
    assert!(p.blue.chip.is_leaving(port as u8));
    while p.step() {
        p.look(8);
    }
    assert!(!p.blue.chip.is_leaving(port as u8));
    assert_eq!([&p.red, &p.blue].map(|w| w.chip.usage().acl_used), [2, 1]);
    // nobody's: nothing comes in there, for anybody
    let passed = p.blue.device.lock().look(port, &plain(1), p.blue.now);
    assert!(passed.out.is_empty() && passed.cpu.is_empty(), "{passed:?}");
    p.blue.toggle(2);
    while p.step() {
        p.look(8);
    }
    assert_eq!([&p.red, &p.blue].map(|w| w.chip.usage().acl_used), [2, 2]);
    let t = [p.red.chip.troubles(), p.blue.chip.troubles()];
    assert_eq!(t.map(|t| (t.attaches, t.refused)), [(1, 0); 2]);
}

/// A port that comes opens when the chip has its list, whatever becomes of that write: until then another one's station would
/// answer.
#[test]
fn a_port_opens_behind_its_list() {
    for fate in [Fate::Done, Fate::Refused, Fate::Ignored, Fate::Lost] {
        let frames = [vec![plain(0)], vec![plain(0)]];
        let mut p = Pair::new("nxp-t1040", Lookup::Address, [Version::V13; 2], frames);
        p.red
            .flow_mod(&to(&[(Field::EthDst, station(0))], FIRST + 1));
        p.blue.toggle(4);
        p.rest();
        p.blue.toggle(4);
        p.red.next = fate;
        while p.step() {
            p.look(4);
        }
        p.rest();
        p.look(4);
        assert_eq!(p.blue.seen.sent, 0, "{fate:?}");
        assert_eq!(p.blue.chip.troubles().attaches, 1, "{fate:?}");
    }
}

/// One has half of the MAC table, and of the port sets, however many the other wants.
#[test]
fn nobody_takes_the_others_stations() {
    for (profile, entries, sets) in [("tiny", 16, 0), ("nxp-t1040", 20, 2)] {
        let none = || vec![plain(0)];
        let mut p = Pair::new(
            profile,
            Lookup::Address,
            [Version::V13; 2],
            [none(), none()],
        );
        for n in 0..40u128 {
            p.red
                .flow_mod(&to(&[(Field::EthDst, 0x0200_0100_0000 | n)], FIRST + 1));
            p.rest();
        }
        let of = |w: &World| w.chip.usage();
        assert_eq!(
            of(&p.red).mac_used,
            entries.max(of(&p.red).mac_size.min(40)),
            "{profile}"
        );
        for n in 0..entries {
            let fields = [(Field::EthDst, 0x0200_0200_0000 | u128::from(n))];
            p.blue.flow_mod(&to(&fields, FIRST + 2));
        }
        p.rest();
        assert_eq!(of(&p.blue).mac_used, entries, "{profile}");
        // The same numbers of sets in both would be the other's ports
        for w in [&mut p.red, &mut p.blue] {
            let mut flood = to(&[(Field::EthDst, station(0))], port::FLOOD);
            flood.priority = 4;
            w.flow_mod(&flood);
        }
        p.rest();
        p.look(4);
        let told = [&p.red, &p.blue].map(|w| of(w).sets_used);
        assert_eq!(told.iter().sum::<u32>(), sets, "{profile}");
        let t = [p.red.chip.troubles(), p.blue.chip.troubles()];
        assert_eq!(t.map(|t| t.refused), [0; 2], "full is no refused write");
    }
}

/// One has half of the rows, however many the other wants.
#[test]
fn nobody_takes_the_others_room() {
    let mut p = Pair::new(
        "tiny",
        Lookup::Address,
        [Version::V13; 2],
        [vec![plain(0)], vec![plain(0)]],
    );
    let size = p.blue.chip.usage().acl_size;
    assert!(
        size > 0 && p.red.chip.usage().acl_size.abs_diff(size) <= 1,
        "{size}"
    );
    for n in 0..200u128 {
        p.red
            .flow_mod(&to(&[(Field::EthType, 0x2000 + n)], FIRST + 1));
        p.rest();
    }
    p.blue.flow_mod(&to(&[(Field::EthType, 0x1234)], FIRST + 1));
    p.rest();
    p.look(4);
    assert_eq!(p.blue.seen.sent, 3);
    let t = [p.red.chip.troubles(), p.blue.chip.troubles()];
    assert_eq!(t.map(|t| t.refused), [0; 2], "full is no refused write");
}

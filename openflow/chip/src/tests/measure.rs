// SPDX-License-Identifier: Apache-2.0
//! Who stands in a chip that has not room for all follows what is measured.
//!
//! ```text
//!   ports ─► frames of Ethernet types 0x2000 …, a rule each ─► room for some of the rules ─► the others' frames: software
//! ```

use super::cases::{STATION, add, frame};
use super::universe::FIRST;
use super::world::World;
use crate::{Lookup, Share};
use tandem_abi::raw;
use tandem_openflow::{Field, Version};

/// The first rule's type.
const TYPE: u16 = 0x2000;

/// Rules of a kind, and room for so many lines.
fn full(rules: u16, lines: u32) -> World {
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
    w.rest();
    w.room(lines);
    for n in 0..rules {
        let fields = [
            (Field::InPort, u128::from(FIRST)),
            (Field::EthType, u128::from(TYPE + n)),
        ];
        w.flow_mod(&add(10, &fields, 2 + u32::from(n % 3)));
    }
    w.rest();
    w
}

/// Which of the flows are in the chip.
fn inside(w: &World) -> Vec<u32> {
    let all = 0..w.flows().len() as u32;
    all.filter(|n| w.chip.share(*n) == Share::Whole).collect()
}

/// So many seconds, in each of which each of these comes so often; each time it is looked at and counted.
fn frames(w: &mut World, seconds: u32, of: &[(u16, Vec<u8>, u32)]) {
    for _ in 0..seconds {
        for (port, frame, times) in of {
            (0..*times).for_each(|_| w.send(*port, frame));
        }
        w.pass(1);
    }
}

/// The same of frames for rules, by number.
fn traffic(w: &mut World, seconds: u32, of: &[(u16, u32)]) {
    let of = of.iter().map(|(n, t)| (1, frame(TYPE + n), *t));
    frames(w, seconds, &of.collect::<Vec<_>>());
}

#[test]
fn a_busy_flow_comes_in_for_an_idle_one() {
    let mut w = full(4, 3);
    assert_eq!(inside(&w), [0, 1, 2], "the youngest waits");
    // idle: nothing is worth a write
    let before = w.writes();
    traffic(&mut w, 10, &[]);
    assert_eq!((inside(&w), w.writes()), (vec![0, 1, 2], before));
    // it is the only one that is used, then two of the others are
    traffic(&mut w, 10, &[(3, 10)]);
    let now = inside(&w);
    assert!(now.contains(&3) && now.len() == 3, "{now:?}");
    traffic(&mut w, 12, &[(0, 40), (1, 40), (2, 40)]);
    assert_eq!(inside(&w), [0, 1, 2], "{:#?}", w.flows());
    w.check_counts();
}

/// Nor for one that has nearly as much: the writes would be worth nothing, and again and again.
#[test]
fn only_for_less_than_half() {
    let mut w = full(4, 3);
    traffic(&mut w, 10, &[(0, 20), (1, 20), (2, 20), (3, 30)]);
    let before = w.writes();
    traffic(&mut w, 30, &[(0, 20), (1, 20), (2, 20), (3, 30)]);
    assert_eq!((inside(&w), w.writes()), (vec![0, 1, 2], before));
    traffic(&mut w, 10, &[(0, 20), (1, 9), (2, 20), (3, 30)]);
    assert_eq!(inside(&w), [0, 2, 3], "{:#?}", w.flows());
    let before = w.writes();
    traffic(&mut w, 30, &[(0, 20), (1, 9), (2, 20), (3, 30)]);
    assert_eq!((inside(&w), w.writes()), (vec![0, 2, 3], before));
}

/// The lines that it needs are several flows', which have more to do together.
#[test]
fn what_would_leave_is_summed_up() {
    let mut w = full(7, 7);
    let fields = [
        (Field::InPort, u128::from(FIRST) + 1),
        (Field::EthSrc, STATION + 1),
    ];
    w.flow_mod(&add(1, &fields, 4));
    w.rest();
    let why = w.chip.why(7).unwrap();
    assert!(why.contains("needs 7 lines, free 0 of 7"), "{why}");
    let mut of: Vec<(u16, Vec<u8>, u32)> = (0..7).map(|n| (1, frame(TYPE + n), 5)).collect();
    // more than twice what each has, and less than twice of all
    of.push((2, frame(0x3000), 50));
    frames(&mut w, 10, &of);
    assert_eq!(inside(&w), [0, 1, 2, 3, 4, 5, 6], "{:#?}", w.flows());
    of.pop();
    of.push((2, frame(0x3000), 120));
    frames(&mut w, 10, &of);
    assert_eq!(w.chip.share(7), Share::Part, "{:#?}", w.flows());
    assert_eq!(inside(&w), []);
}

/// Nor does it come in where the others, once they are out, would make it trap: it would answer nothing.
#[test]
fn who_would_answer_nothing_stays_out() {
    let mut w = full(7, 7);
    w.flow_mod(&add(1, &[(Field::EthSrc, STATION + 1)], 4));
    w.rest();
    let before = w.writes();
    frames(&mut w, 10, &[(1, frame(0x3000), 200)]);
    let all = vec![0, 1, 2, 3, 4, 5, 6];
    assert_eq!((inside(&w), w.writes()), (all, before), "{:#?}", w.flows());
}

/// Rows whose counters the chip does not tell are not taken for idle ones.
#[test]
fn who_can_not_be_read_is_not_idle() {
    let mut w = full(4, 3);
    // all four are used; those of the ports are read
    let all = [(0, 40), (1, 40), (2, 40), (3, 30)];
    traffic(&mut w, 6, &all);
    assert_eq!(inside(&w), [0, 1, 2]);
    let before = w.writes();
    for _ in 0..12 {
        for (n, frames) in all {
            (0..frames).for_each(|_| w.send(1, &frame(TYPE + n)));
        }
        w.refuses = (raw::TND_OP_DUMP, u32::MAX);
        w.now += 500_000_000;
        w.rest();
    }
    assert_eq!((inside(&w), w.writes()), (vec![0, 1, 2], before));
    // and it is said again
    w.refuses.1 = 0;
    traffic(&mut w, 8, &[(3, 30)]);
    assert!(inside(&w).contains(&3));
}

/// While there is room for all nobody asks what they have to do.
#[test]
fn with_room_nothing_is_measured() {
    let mut w = full(4, 4);
    assert_eq!(inside(&w), [0, 1, 2, 3]);
    let reads = w.chip.counts.wanted;
    for _ in 0..20 {
        w.now += 1_000_000_000;
        w.rest();
    }
    assert_eq!(w.chip.counts.wanted, reads);
}

/// An entry of the MAC table counts nothing: what it has to do is known from the ports, once it was known at all. A row that
/// would push it out stays in software while that is more than the row's.
#[test]
fn the_mac_table_has_what_nobody_counts() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    w.flow_mod(&add(100, &[(Field::EthDst, STATION)], 2));
    w.flow_mod(&add(10, &[(Field::EthType, 0x0806)], 3));
    w.rest();
    let stand = |w: &World| [w.chip.share(0), w.chip.share(1)];
    let (station, row) = ([Share::Whole, Share::Nothing], [Share::Part, Share::Whole]);
    assert_eq!(stand(&w), station, "{:#?}", w.flows());
    let to_station = frame(0x0806);
    let mut other = to_station.clone();
    other[5] = 9;
    frames(&mut w, 8, &[(1, other.clone(), 30)]);
    assert_eq!(stand(&w), row, "{:#?}", w.flows());
    let both = [(1, other.clone(), 30), (1, to_station, 100)];
    frames(&mut w, 8, &both);
    assert_eq!(stand(&w), station, "{:#?}", w.flows());
    let before = w.writes();
    frames(&mut w, 20, &both);
    assert_eq!((stand(&w), w.writes()), (station, before));
    frames(&mut w, 8, &[(1, other, 30)]);
    assert_eq!(stand(&w), row, "{:#?}", w.flows());
    w.check_counts();
}

/// What nobody counts is parted among all that answer so: a row that is busier than all of ten stations together comes in for
/// them.
#[test]
fn each_station_has_its_part() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let to = |n: u16| {
        let mut f = frame(0x0806);
        f[4] = n as u8;
        f
    };
    for n in 1..=10u16 {
        let mac = STATION | u128::from(n) << 8;
        w.flow_mod(&add(100, &[(Field::EthDst, mac)], 2));
    }
    let fields = [(Field::InPort, u128::from(FIRST)), (Field::EthType, 0x0806)];
    w.flow_mod(&add(10, &fields, 3));
    w.rest();
    assert_eq!(w.chip.share(10), Share::Nothing, "{:#?}", w.flows());
    // measured, and not busier: 80 packets/s beside 100
    let mut of: Vec<(u16, Vec<u8>, u32)> = (1..=10).map(|n| (2, to(n), 10)).collect();
    of.push((1, to(0x40), 80));
    frames(&mut w, 10, &of);
    assert_eq!(w.chip.share(10), Share::Nothing, "{:#?}", w.flows());
    of.pop();
    of.push((1, to(0x40), 400));
    frames(&mut w, 6, &of);
    assert_eq!(w.chip.share(10), Share::Whole, "{:#?}", w.flows());
}

/// One station of ten has been measured, as a row pushed it out, and is a little slower since: the row stays out, though an
/// equal part of what all stations answer is less than the row has.
#[test]
fn a_station_stays_measured() {
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
    w.rest();
    let tagged = |vid: u8, n: u8| {
        let mut f = frame(0x0806);
        f[4] = n;
        f.splice(12..12, [0x81, 0, 0, vid]);
        f
    };
    let vlan = |vid: u8| (Field::VlanVid, 0x1000 | u128::from(vid));
    for n in 1..=10u8 {
        let mac = STATION | u128::from(n) << 8;
        let vid = if n == 1 { 20 } else { 10 };
        w.flow_mod(&add(100, &[(Field::EthDst, mac), vlan(vid)], 2));
    }
    w.flow_mod(&add(10, &[vlan(20), (Field::EthType, 0x0806)], 3));
    w.rest();
    let of = |station: u32| [(2, tagged(20, 1), station), (1, tagged(20, 0x40), 20)];
    frames(&mut w, 16, &of(100));
    let stand = |w: &World| [w.chip.share(0), w.chip.share(10)];
    let out = [Share::Whole, Share::Nothing];
    assert_eq!(stand(&w), out, "{:#?}", w.flows());
    let before = w.writes();
    frames(&mut w, 24, &of(60));
    assert_eq!((stand(&w), w.writes()), (out, before), "{:#?}", w.flows());
}

/// Flows that could only come in to trap, or for those that would make them trap, are not tried again and again while others
/// wait behind them.
#[test]
fn who_comes_in_for_nothing_keeps_nobody_out() {
    let mut w = full(7, 7);
    let source = |n: u8| {
        let mut f = frame(0x3000);
        f[10] = n;
        f
    };
    for n in 1..=9u8 {
        let from = STATION + 1 + (u128::from(n) << 8);
        let fields = [(Field::InPort, u128::from(FIRST)), (Field::EthSrc, from)];
        w.flow_mod(&add(1, &fields, 4));
    }
    let fields = [
        (Field::InPort, u128::from(FIRST) + 1),
        (Field::EthType, u128::from(TYPE)),
    ];
    w.flow_mod(&add(10, &fields, 4));
    w.rest();
    let mut of: Vec<(u16, Vec<u8>, u32)> = (1..=9).map(|n| (1, source(n), 60)).collect();
    of.push((2, frame(TYPE), 20));
    frames(&mut w, 16, &of);
    assert_eq!(w.chip.share(16), Share::Whole, "{:#?}", w.flows());
}

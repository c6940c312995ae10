// SPDX-License-Identifier: Apache-2.0
//! A process is killed, and the next one goes on with the chip as it is.

use super::cases::{STATION, add, frame, to};
use super::pipelines;
use super::property::{Eyes, SEVERAL, STYLES, history, members, play};
use super::slices::{self, Pair};
use super::universe::FIRST;
use super::world::{self, PORTS, World, killed};
use crate::Lookup;
use proptest::prelude::*;
use tandem_abi::raw;
use tandem_openflow::model::{FlowCommand, FlowMod};
use tandem_openflow::{Action, Field, Version};

const CHIPS: [(&str, Lookup); 2] = [
    ("nxp-t1040", Lookup::Vlan),
    ("arista-7500e", Lookup::Address),
];

fn filled(profile: &str, lookup: Lookup) -> World {
    let mut w = World::new(profile, lookup, Version::V13);
    w.rest();
    for n in 0..4 {
        w.flow_mod(&add(1, &[(Field::EthDst, STATION + n)], 1 + n as u32));
        w.flow_mod(&add(5, &[(Field::EthType, 0x2000 + n)], 2));
    }
    let output = |port| Action::Output {
        port: FIRST + port,
        max_len: 0,
    };
    let mut many = add(7, &[(Field::EthType, 0x3000)], 1);
    many.instructions.apply = Some(vec![output(1), output(2)]);
    w.flow_mod(&many);
    let mut many = add(1, &[(Field::EthDst, 0xffff_ffff_ffff)], 1);
    many.instructions.apply = Some(vec![output(1), output(2)]);
    w.flow_mod(&many);
    w.flow_mod(&to(
        FlowCommand::DeleteStrict,
        5,
        &[(Field::EthType, 0x2001)],
        2,
    ));
    w.rest();
    w
}

/// Rows, entries, a set of ports: all of it is known again, with the chip's numbers, and goes on from there.
#[test]
fn what_the_chip_holds_is_the_next_processes() {
    for (profile, lookup) in CHIPS {
        let mut w = filled(profile, lookup);
        let before = w.writes();
        for _ in 0..2 {
            assert_eq!(killed(&mut [&mut w]), Ok(true), "{profile}");
            w.rest();
        }
        assert_eq!(w.writes(), before, "{profile}");
        for ether in [0x2000, 0x2001, 0x3000, 0x4000] {
            w.probe(3, &frame(ether));
            w.send(3, &frame(ether));
        }
        assert!(w.seen.answered() >= 6, "{profile} {:?}", w.seen);
        // in front, behind and between what stood
        for n in 0..4 {
            w.flow_mod(&add(3 + n, &[(Field::EthType, 0x2100)], 1 + u32::from(n)));
            w.flow_mod(&add(1, &[(Field::EthDst, STATION + 9 + u128::from(n))], 2));
        }
        w.check_counts();
        w.probe(3, &frame(0x2100));
        assert!(
            w.chip.is_open() && w.chip.troubles().refused == 0,
            "{profile}"
        );
    }
}

/// An entry that was being asked for use forwards again, and no other frame has to wait for that.
#[test]
fn an_entry_that_was_asked_for_use_is_opened() {
    let mut w = filled("nxp-t1040", Lookup::Address);
    w.flow_mod(&FlowMod {
        idle_timeout: 10,
        ..add(1, &[(Field::EthDst, STATION + 7)], 3)
    });
    w.rest();
    w.pass(6);
    let before = w.writes();
    // the second time nothing of it is left to write
    for _ in 0..2 {
        assert_eq!(killed(&mut [&mut w]), Ok(true));
        w.rest();
        assert_eq!(w.writes(), before + 1);
    }
}

/// What rows have counted, those that are gone too, and what was looked up behind the first table, is the same flows' in the
/// next process, however often there is another; what the MAC table answered stays unknown.
#[test]
fn counts_go_on() {
    let ether = |n: u128| [(Field::EthType, 0x2000 + n)];
    let mut w = World::new("arista-7500e", Lookup::Address, Version::V13);
    w.rest();
    for n in 0..4 {
        w.flow_mod(&add(5, &ether(n), 2));
    }
    let mut goes = add(9, &ether(9), 2);
    (goes.instructions.apply, goes.instructions.goto) = (None, Some(1));
    w.flow_mod(&goes);
    let mut there = add(1, &[], 3);
    there.table = 1;
    w.flow_mod(&there);
    w.flow_mod(&add(1, &[(Field::EthDst, STATION)], 2));
    w.rest();
    let (mut sent, mut anew) = (0, 0);
    for round in 0..4 {
        for n in [0, 0, 1, 2, 9, 0x100] {
            w.send(3, &frame(0x2000 + n));
        }
        sent += 1;
        if round == 1 {
            // a row goes, and comes back with another counter
            let mut out = goes.clone();
            out.command = FlowCommand::DeleteStrict;
            w.flow_mod(&out);
            w.rest();
            w.flow_mod(&goes);
            w.rest();
            anew = sent;
        }
        w.check_counts();
        assert_eq!(killed(&mut [&mut w]), Ok(true));
        w.rest();
        w.check_counts();
        let known = |n: u32| w.chip.counted(n).0;
        assert_eq!([known(0), known(1)], [Some(2 * sent), Some(sent)]);
        assert_eq!([known(4), known(5)], [Some(sent - anew), Some(sent)]);
        assert_eq!([known(3), known(6)], [Some(0), None]);
        assert_eq!(w.chip.looked_up()[1], (Some(sent), Some(sent)));
    }
    // with the chip go its counters
    w.device.lock().firmware.cold_reset();
    assert!(killed(&mut [&mut w]).is_err());
    w.check_counts();
    assert!((0..7).all(|n| w.chip.counted(n).0.is_none()));
}

/// Ports that trap, as a chip's do that nobody came back to for long: they are opened, nothing else is written, and what
/// rows have counted goes on.
#[test]
fn ports_that_trap_are_opened() {
    for (profile, lookup) in CHIPS {
        let mut w = filled(profile, lookup);
        let all = [0x2000, 0x2002, 0x3000];
        let none = w.seen.answered();
        all.iter().for_each(|e| w.send(3, &frame(*e)));
        w.inner(|i| {
            for port in 1..=PORTS as u16 {
                let mut config = i.firmware.state.port(port).unwrap().config;
                config.flags |= raw::TND_PORT_TRAP_ALL;
                i.firmware.state.set_port(port, config).unwrap();
            }
        });
        let (before, answered) = (w.writes(), w.seen.answered());
        assert_eq!(killed(&mut [&mut w]), Ok(false), "{profile}");
        all.iter().for_each(|e| w.probe(3, &frame(*e)));
        assert_eq!(w.seen.answered(), answered, "{profile}: all go to the CPU");
        w.rest();
        assert_eq!(w.writes() - before, 2 * u64::from(PORTS), "{profile}");
        all.iter().for_each(|e| w.send(3, &frame(*e)));
        assert!(answered > none, "{profile}");
        assert_eq!(w.seen.answered() - answered, answered - none, "{profile}");
        w.check_counts();
        assert!(w.chip.is_open() && w.chip.troubles().refused == 0);
    }
}

/// Killed behind each command of a change: what lacks is written, what is over goes, and no frame has a third answer.
#[test]
fn a_change_that_was_under_way_is_brought_to_its_end() {
    let (mut kept, mut mended) = (0, 0);
    for steps in 0..12 {
        let mut w = filled("nxp-t1040", Lookup::Vlan);
        w.flow_mod(&to(
            FlowCommand::DeleteStrict,
            5,
            &[(Field::EthType, 0x2000)],
            2,
        ));
        w.flow_mod(&add(9, &[(Field::EthType, 0x2002)], 3));
        w.flow_mod(&add(1, &[(Field::EthDst, STATION + 7)], 3));
        for _ in 0..steps {
            w.step();
        }
        let before = w.writes();
        match killed(&mut [&mut w]) {
            Ok(true) => kept += 1,
            Ok(false) => mended += 1,
            Err(e) => panic!("{e}"),
        }
        loop {
            for ether in [0x2000, 0x2001, 0x2002, 0x2003, 0x3000, 0x4000] {
                w.probe(3, &frame(ether));
            }
            if !w.step() {
                break;
            }
        }
        w.check_counts();
        let wrote = w.writes() - before;
        assert!(wrote < 24, "the others stand: {wrote}");
    }
    assert!(kept > 1 && mended > 1, "{kept} {mended}");
}

/// A chip of another use, or one that was only half written, is no earlier process's.
#[test]
fn a_chip_that_is_not_understood_is_attached_cold() {
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
    let why = |w: &mut World| killed(&mut [w]).unwrap_err();
    let said = why(&mut w);
    assert!(said.starts_with("it holds no list of flows"), "{said}");
    // the list without all of its guards
    while w.inner(|i| i.firmware.state.acl.table(1).is_none()) {
        w.step();
    }
    let said = why(&mut w);
    assert!(said.contains("other rows in front"), "{said}");
    w.rest();
    assert!(w.chip.is_open());
    // a port that is not this process's any more
    w.toggle(4);
    let said = killed(&mut [&mut w]);
    assert!(said.is_err(), "its list looks at the port still: {said:?}");
    w.rest();
    assert_eq!(killed(&mut [&mut w]), Ok(true));
}

/// Each of two switches knows its own, and what the other has is not in its way.
#[test]
fn both_switches_go_on() {
    for (profile, lookup) in CHIPS {
        let frames = || vec![slices::plain(0)];
        let mut p = Pair::new(profile, lookup, [Version::V13; 2], [frames(), frames()]);
        for (w, port) in [(&mut p.red, FIRST + 1), (&mut p.blue, FIRST + 3)] {
            w.flow_mod(&slices::to(&[(Field::EthDst, slices::station(0))], port));
            w.flow_mod(&slices::to(&[(Field::EthType, 0x2222)], port));
        }
        p.rest();
        let before = p.red.writes();
        let open = world::killed(&mut [&mut p.red, &mut p.blue]);
        assert_eq!(open, Ok(true), "{profile}");
        p.rest();
        p.look(8);
        assert_eq!(p.red.writes(), before, "{profile}");
        // one of them changes, and is killed with it
        p.blue
            .flow_mod(&slices::to(&[(Field::EthType, 0x3333)], FIRST + 1));
        assert_eq!(
            world::killed(&mut [&mut p.red, &mut p.blue]),
            Ok(false),
            "{profile}"
        );
        assert!(p.red.chip.is_open() && !p.blue.chip.is_open(), "{profile}");
        p.rest();
        p.look(8);
    }
}

proptest! {
    /// Killed when all is done, and started again: nothing is written, and no frame goes to the CPU for it.
    #[test]
    fn a_chip_that_is_as_it_should_be_is_not_written(
        chip in 0..SEVERAL.len(),
        ops in proptest::sample::select(STYLES.to_vec()).prop_flat_map(history),
    ) {
        let (profile, lookup) = SEVERAL[chip];
        let mut w = World::within(profile, lookup, Version::V13, members());
        play(&mut w, ops, pipelines::frames());
        w.rest();
        // Who was let into a full chip may be another one in the next process, once
        prop_assert!(killed(&mut [&mut w]).is_ok());
        w.rest();
        let before = w.writes();
        prop_assert_eq!(killed(&mut [&mut w]), Ok(true));
        w.rest();
        prop_assert_eq!(w.writes(), before);
        let mut eyes = Eyes::new(pipelines::frames());
        eyes.look(&mut w, 200);
        w.check_counts();
    }
}

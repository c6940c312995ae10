// SPDX-License-Identifier: Apache-2.0
//! What a chip below has answered.

use super::*;
use crate::state::TABLES;
use crate::{ChipFlow, ChipPast};

/// Numbers of flows are others in the next process, and are used again in this one.
#[test]
fn what_a_chip_answered_is_the_same_flows() {
    let add = |dst: u128| FlowMod {
        matching: Match {
            fields: vec![Oxm::exact(Field::EthDst, dst)],
            exact: false,
        },
        ..blank()
    };
    let delete = |dst: u128| FlowMod {
        command: FlowCommand::DeleteStrict,
        ..add(dst)
    };
    let mut w = World::new(Version::V13, 1);
    let chip = ChipPast {
        last: 1,
        ..ChipPast::default()
    };
    w.journal.begin_all(&w.switch, Vec::new(), None, Some(chip));
    while let Some(slice) = w.journal.slice(&w.switch, 100) {
        w.append(&slice);
    }
    let change = |w: &mut World, m: FlowMod| {
        w.switch.flow_mod(&m, SECOND, &mut Vec::new()).unwrap();
        w.tell(Some(&m));
        let n = |dst: u128| {
            let all = w.switch.flows_of(0);
            let of = |n: &u32| w.switch.flow(*n).unwrap().matching.fields[0].value == dst;
            all.into_iter().find(of)
        };
        n(m.matching.fields[0].value)
    };
    let counted = |packets| ChipFlow {
        packets,
        bytes: 60 * packets,
        ..ChipFlow::default()
    };
    let first = change(&mut w, add(1)).unwrap();
    let second = change(&mut w, add(2)).unwrap();
    let lost = ChipFlow {
        lost: true,
        ..counted(5)
    };
    w.journal.chip_flow(first, lost);
    w.journal.chip_flow(second, counted(7));
    w.journal.chip_counter(8, Some(vec![first, second]));
    w.journal.chip_counter(9, Some(vec![second, TABLES + 2]));
    // its number goes to another one, which the counter says nothing of
    change(&mut w, delete(1));
    let third = change(&mut w, add(3)).unwrap();
    assert_eq!(third, first);
    w.journal.chip_counter(10, Some(vec![third]));
    w.settle();
    let state = State::read(&w.log, &BOOT).unwrap();
    let mut next = tables(Version::V13);
    let (_, chip) = state.restore_all(&mut next, SECOND);
    let counters = chip.unwrap().counters;
    let to = |n: u32| {
        let of = |f: &u32| next.flow(*f).unwrap().matching.fields[0].value;
        counters[&n].iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!((to(8), to(10)), (vec![2], vec![3]));
    w.journal.chip_counter(11, Some(vec![third]));
    w.journal.chip_counter(11, None);
    change(&mut w, delete(3));
    w.settle();
    let state = State::read(&w.log, &BOOT).unwrap();
    let mut next = tables(Version::V13);
    let (left, chip) = state.restore_all(&mut next, SECOND);
    assert!(!left.any());
    let [now] = next.flows_of(0)[..] else {
        panic!("one is left")
    };
    assert_ne!(now, second);
    let counters = [(8, vec![now]), (9, vec![now, TABLES + 2]), (10, vec![])];
    let wanted = ChipPast {
        last: 11,
        flows: [(now, counted(7))].into(),
        counters: counters.into(),
    };
    assert_eq!(chip, Some(wanted.clone()));
    // the tables that begin anew have no chip that has answered anything
    w.journal.begin(Version::V13);
    w.settle();
    let state = State::read(&w.log, &BOOT).unwrap();
    let (_, chip) = state.restore_all(&mut tables(Version::V13), SECOND);
    assert_eq!(chip, None);
    // and all at once is the same
    let past = |n: u32| ChipPast {
        last: 11,
        flows: [(n, counted(7))].into(),
        counters: [(8, vec![n]), (9, vec![n, TABLES + 2])].into(),
    };
    w.journal
        .begin_all(&w.switch, Vec::new(), None, Some(past(second)));
    let mut log = head(&BOOT);
    while let Some(slice) = w.journal.slice(&w.switch, 100) {
        log.extend_from_slice(&seal(&slice).unwrap());
        log.extend_from_slice(&slice);
    }
    let state = State::read(&log, &BOOT).unwrap();
    let mut next = tables(Version::V13);
    let (_, chip) = state.restore_all(&mut next, SECOND);
    assert_eq!(chip, Some(past(next.flows_of(0)[0])));
}

// SPDX-License-Identifier: Apache-2.0
//! What random histories seldom come to.

use super::device::Fate;
use super::frames::MACS;
use super::pipelines::{enters, lives};
use super::universe::FIRST;
use super::world::World;
use crate::{Limits, Lookup};
use tandem_abi::raw;
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{FlowCommand, FlowMod};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, Version};

pub const STATION: u128 = 0x0200_0000_0001;

pub fn to(command: FlowCommand, priority: u16, fields: &[(Field, u128)], port: u32) -> FlowMod {
    let output = Action::Output {
        port: FIRST + port - 1,
        max_len: 0,
    };
    FlowMod {
        command,
        priority,
        matching: Match {
            fields: fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect(),
            exact: false,
        },
        instructions: Instructions {
            apply: Some(vec![output]),
            ..Instructions::default()
        },
        ..blank()
    }
}

pub fn add(priority: u16, fields: &[(Field, u128)], port: u32) -> FlowMod {
    to(FlowCommand::Add, priority, fields, port)
}

pub fn frame(ether: u16) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    f.extend(ether.to_be_bytes());
    f.extend([0; 46]);
    f
}

/// Who has nothing to do says each second that it is there, so that a chip does not take it for one that is gone.
#[test]
fn a_sign_each_second() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let mut signs = Vec::new();
    for _ in 0..8 {
        let before = w.inner(|i| (i.executed, i.writes));
        w.now += 500_000_000;
        w.rest();
        let after = w.inner(|i| (i.executed, i.writes));
        signs.push(after.0 - before.0);
        assert_eq!(after.1, before.1);
    }
    assert_eq!(signs, [0, 1, 0, 1, 0, 1, 0, 1]);
}

/// A command that is not answered yet is no reason to be silent; a sign that is not is one.
#[test]
fn a_sign_behind_what_is_not_answered() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let asked = |w: &World| w.inner(|i| i.executed - i.writes);
    let before = asked(&w);
    w.flow_mod(&add(1, &[(Field::EthType, 0x2000)], 2));
    for _ in 0..3 {
        w.chip.turn(w.now);
        w.now += 1_000_000_000;
    }
    w.now -= 1_000_000_000;
    // one after a second, the next as soon as that is answered
    w.rest();
    assert_eq!(asked(&w), before + 2);
}

/// Rows between the same two until there is no number left: neighbours move, and whichever of these writes is refused,
/// no frame meets a row behind.
#[test]
fn rows_that_move_are_never_away() {
    for refused in 0..90 {
        let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
        w.rest();
        w.flow_mod(&add(1, &[], 4));
        w.flow_mod(&add(1000, &[(Field::InPort, u128::from(FIRST))], 3));
        w.rest();
        let mut n = 0;
        for p in 0..20u16 {
            let fields = [(Field::EthType, 0x2000 + u128::from(p))];
            w.flow_mod(&add(100 + p, &fields, 2 + u32::from(p % 2)));
            loop {
                n += 1;
                w.next = if n == refused {
                    Fate::Refused
                } else {
                    Fate::Done
                };
                let went = w.step();
                for q in 0..=p {
                    w.probe(2, &frame(0x2000 + q));
                }
                w.probe(1, &frame(0x2000));
                if !went {
                    break;
                }
            }
        }
        w.next = Fate::Done;
        w.rest();
        w.probe(2, &frame(0x2000));
        assert!(w.chip.is_open());
    }
}

#[test]
fn rows_without_a_counter_are_not_told_of() {
    let mut w = World::new("tiny", Lookup::Address, Version::V13);
    w.rest();
    let ether = |n: u16| 0x2000 + n;
    for n in 0..12u16 {
        w.flow_mod(&add(1, &[(Field::EthType, u128::from(ether(n)))], 2));
    }
    w.rest();
    for n in 0..12 {
        w.send(1, &frame(ether(n)));
    }
    w.check_counts();
    let known = (0..12).filter(|n| w.chip.counted(*n).0.is_some()).count();
    assert_eq!(known, 8, "of tiny's counters each has a row");
}

/// A row that answers uncounted, as no counter is left, traps once its flow has a timeout by use; with one it would end while it
/// is used.
#[test]
fn who_is_asked_for_use_is_counted_or_traps() {
    let mut w = World::new("tiny", Lookup::Address, Version::V13);
    w.rest();
    let flow = |n: u16| add(1, &[(Field::EthType, u128::from(0x2000 + n))], 2);
    for n in 0..9 {
        w.flow_mod(&flow(n));
    }
    w.rest();
    w.send(1, &frame(0x2008));
    assert_eq!((w.seen.sent, w.seen.trapped), (1, 0));
    let timed = |n| FlowMod {
        idle_timeout: 3,
        ..flow(n)
    };
    w.flow_mod(&timed(8));
    w.rest();
    w.send(1, &frame(0x2008));
    assert_eq!((w.seen.sent, w.seen.trapped), (1, 1));
    // and one that has a counter answers on
    w.flow_mod(&timed(0));
    w.rest();
    w.send(1, &frame(0x2000));
    assert_eq!((w.seen.sent, w.seen.trapped), (2, 1));
    w.check_counts();
}

/// What the chip answered was a lookup of table 0, and met a flow where all misses are the CPU's.
#[test]
fn what_the_chip_answered_was_looked_up_in_the_first_table() {
    for version in [Version::V10, Version::V13] {
        let mut w = World::new("nxp-t1040", Lookup::Address, version);
        w.rest();
        let known = |w: &World, table| w.chip.looked_up()[table];
        w.flow_mod(&add(1, &[(Field::EthDst, STATION)], 2));
        w.flow_mod(&add(2, &[(Field::EthType, 0x2001)], 3));
        w.rest();
        for ether in [0x2000, 0x2001] {
            w.send(1, &frame(ether));
        }
        w.check_counts();
        let drops = version == Version::V13;
        assert_eq!(known(&w, 0), (Some(2), (!drops).then_some(2)));
        // to nobody that is known: 1.0 asks the controller, 1.3 drops
        let mut other = frame(0x2000);
        other[5] = 9;
        w.send(1, &other);
        w.check_counts();
        assert_eq!(known(&w, 0).0, Some(if drops { 3 } else { 2 }));
        // what was not read any more nobody knows
        w.die();
        w.rest();
        w.check_counts();
        assert_eq!(known(&w, 0), (None, None));
    }
}

/// Rows count for the tables that their chains come through, and for the one where they end; an entry of the MAC table
/// counts for none.
#[test]
fn lookups_behind_the_first_table_are_those_of_the_rows() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let goto = |fields: &[(Field, u128)], to: u8| FlowMod {
        instructions: Instructions {
            goto: Some(to),
            ..Instructions::default()
        },
        ..add(3, fields, 2)
    };
    let of = |w: &World| w.chip.looked_up()[1..3].to_vec();
    let typed = [(Field::EthType, 0x2002)];
    w.flow_mod(&goto(&typed, 1));
    w.rest();
    // dropped by the chip, as table 1 has no flow for it
    w.send(1, &frame(0x2002));
    w.check_counts();
    assert_eq!(of(&w), [(Some(1), Some(0)), (Some(0), Some(0))]);
    // the same rule, which ends in another table
    w.flow_mod(&goto(&typed, 2));
    w.rest();
    w.send(1, &frame(0x2002));
    w.check_counts();
    assert_eq!(of(&w), [(Some(1), Some(0)), (Some(1), Some(0))]);
    w.flow_mod(&FlowMod {
        table: 2,
        ..add(1, &[(Field::InPort, u128::from(FIRST))], 2)
    });
    w.rest();
    w.send(1, &frame(0x2002));
    w.check_counts();
    assert_eq!(of(&w), [(Some(1), Some(0)), (Some(2), Some(1))]);
    // a station
    w.flow_mod(&FlowMod {
        table: 1,
        ..add(1, &[], 2)
    });
    w.flow_mod(&goto(&[(Field::EthDst, STATION)], 1));
    w.rest();
    w.send(2, &frame(0x2000));
    w.check_counts();
    assert_eq!(of(&w), [(None, None), (Some(2), Some(1))]);
}

/// From a row to the MAC table, and gone before the row's counter was read for the last time.
#[test]
fn what_the_mac_table_answered_is_not_known_when_the_flow_goes() {
    let mut w = World::new("arista-7500e", Lookup::Address, Version::V13);
    w.rest();
    let behind = [(Field::InPort, u128::from(FIRST))];
    w.flow_mod(&add(1, &behind, 3));
    w.flow_mod(&add(2, &[(Field::EthDst, STATION)], 2));
    w.rest();
    w.send(1, &frame(0x2000));
    w.flow_mod(&to(FlowCommand::DeleteStrict, 1, &behind, 3));
    w.settle();
    w.send(1, &frame(0x2000));
    w.flow_mod(&to(
        FlowCommand::DeleteStrict,
        2,
        &[(Field::EthDst, STATION)],
        2,
    ));
    w.check_counts();
}

/// A station's answer is never one of a flow that the same message took away.
#[test]
fn flows_that_go_together_answer_for_none_of_them() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    w.flow_mod(&add(1, &[(Field::EthDst, STATION)], 2));
    w.flow_mod(&add(2, &[], 3));
    w.rest();
    w.probe(1, &frame(0x2000));
    w.flow_mod(&to(FlowCommand::Delete, 0, &[], 1));
    while w.step() {
        w.probe(1, &frame(0x2000));
    }
}

/// UDP to this port, in a piece of a packet.
fn piece(to: u8, offset: u8) -> Vec<u8> {
    let mut f = frame(0x0800);
    f.truncate(14);
    f.extend([0x45, 0, 0, 36, 0, 1, offset & 0xe0, offset & 0x1f]);
    f.extend([64, 17, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    let sum = f[14..]
        .chunks(2)
        .fold(0u32, |s, c| s + u32::from(c[0]) * 256 + u32::from(c[1]));
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    f.extend([0x12, 0x34, 0, to, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    f
}

/// What the two parsers read differently, against rows that would see it otherwise: a flow in front, and all the rest.
#[test]
fn frames_that_are_read_differently_are_the_softwares() {
    let udp = [(Field::EthType, 0x0800), (Field::IpProto, 17)];
    let mut snap = frame(0);
    snap.truncate(14);
    snap.extend([0xaa, 0xaa, 3, 0, 0, 0]);
    snap.extend(&piece(53, 0)[12..]);
    let length = (snap.len() - 14) as u16;
    snap[12..14].copy_from_slice(&length.to_be_bytes());
    // first and later pieces, a whole packet, SNAP
    let frames = [
        piece(53, 0x20),
        piece(0, 0x20),
        piece(0, 1),
        piece(53, 0x21),
        piece(53, 0),
        snap,
    ];
    for version in [Version::V10, Version::V13] {
        for port in [53, 0] {
            let mut w = World::new("nxp-t1040", Lookup::Address, version);
            w.rest();
            w.flow_mod(&add(1, &[(Field::InPort, u128::from(FIRST))], 3));
            w.flow_mod(&add(2, &[&udp[..], &[(Field::UdpDst, port)]].concat(), 2));
            w.flow_mod(&add(2, &[(Field::EthType, 0x86dd)], 4));
            w.rest();
            for f in &frames {
                w.probe(1, f);
            }
            assert!(w.seen.answered() > 0, "the whole packet at least");
        }
    }
}

fn station(n: u128) -> Vec<(Field, u128)> {
    vec![(Field::EthDst, STATION + n)]
}

/// Leases are numbered, and a device has so many at a time: each is given back when it is used up.
#[test]
fn stations_that_come_and_go_use_no_leases_up() {
    let mut w = World::new("tiny", Lookup::Address, Version::V13);
    w.rest();
    for n in 0..1_200 {
        w.flow_mod(&add(1, &station(n), 2));
        w.rest();
        assert_eq!(w.chip.want.macs.len(), 1, "station {n}");
        w.flow_mod(&to(FlowCommand::DeleteStrict, 1, &station(n), 2));
        w.rest();
    }
}

/// What was promised to entries whose first CREATE was thrown away is promised no longer.
#[test]
fn slots_of_what_was_thrown_away_are_given_back() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let promised = w.chip.room.left();
    for n in 0..promised {
        w.flow_mod(&add(1, &station(n.into()), 2));
    }
    assert_eq!(w.chip.room.left(), 0);
    w.next = Fate::Refused;
    w.rest();
    assert!(w.chip.is_open());
    assert_eq!(w.chip.want.macs.len() as u32, promised);
    assert_eq!(w.promised(), w.chip.room.left());
}

/// All of tiny's counters are taken, and one that is to go is still there when all is written anew.
#[test]
fn what_is_dead_goes_before_what_is_new_comes() {
    for refused in 0..16 {
        let ether = |n: u16| [(Field::EthType, 0x2000 + u128::from(n))];
        let mut w = World::new("tiny", Lookup::Address, Version::V13);
        w.rest();
        for n in 0..8 {
            w.flow_mod(&add(1, &ether(n), 2));
        }
        w.rest();
        w.flow_mod(&to(FlowCommand::DeleteStrict, 1, &ether(0), 2));
        for _ in 0..refused {
            w.step();
        }
        w.next = Fate::Refused;
        w.flow_mod(&add(1, &ether(8), 2));
        w.rest();
        assert!(w.chip.is_open());
        let t = w.chip.troubles();
        assert!(t.refused <= 1, "command {refused}, and then {t:?}");
        w.check_counts();
    }
}

/// What was written before a time is there some commands later, however steadily more is written.
#[test]
fn who_writes_steadily_keeps_nobody_waiting() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    w.flow_mod(&add(1, &station(0), 2));
    let mark = w.chip.mark();
    let mut over = None;
    for n in 1..200 {
        w.flow_mod(&add(1, &station(n), 2));
        assert!(!w.chip.is_settled());
        w.step();
        if w.chip.is_settled_to(mark) {
            over.get_or_insert(n);
        }
    }
    assert!(over.is_some_and(|n| n < 10), "{over:?}");
}

/// Seconds of a history with an idle flow in the MAC table: when it trapped, when it was gone.
fn idle(sends: &[u64], seconds: u64) -> (Vec<u64>, Option<u64>) {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let flow = add(1, &[(Field::EthDst, STATION)], 3);
    w.flow_mod(&FlowMod {
        idle_timeout: 10,
        ..flow
    });
    w.rest();
    let (mut traps, mut gone) = (Vec::new(), None);
    for s in 0..seconds {
        w.pass(1);
        let before = w.seen.trapped;
        w.probe(1, &frame(0x88b5));
        if w.seen.trapped > before {
            traps.push(s + 1);
        }
        if gone.is_none() && w.flows().is_empty() {
            gone = Some(s + 1);
        }
        if sends.contains(&(s + 1)) {
            w.send(1, &frame(0x88b5));
            w.rest();
        }
    }
    (traps, gone)
}

/// It forwards for half of its timeout, then traps until a packet comes; without one it ends a whole timeout later.
#[test]
fn whether_an_entry_is_used_is_seen_by_trapping() {
    let (traps, gone) = idle(&[], 20);
    assert_eq!((traps, gone), ((5..=14).collect(), Some(15)));
    // The frame that came while it forwarded is not known of: it was perhaps the last one
    let (traps, gone) = idle(&[4], 20);
    assert_eq!((traps, gone), ((5..=14).collect(), Some(15)));
    // One that is used every few seconds does not end, and hardly ever traps
    let all: Vec<u64> = (1..60).map(|n| n * 3).collect();
    let (traps, gone) = idle(&all, 150);
    assert!(gone.is_none() && traps.len() <= 50, "{traps:?} {gone:?}");
    // The last one at 9
    let (traps, gone) = idle(&[9], 40);
    assert_eq!(
        traps,
        [5, 6, 7, 8, 9]
            .into_iter()
            .chain(14..=23)
            .collect::<Vec<_>>()
    );
    assert_eq!(gone, Some(24));
}

/// A flow that nobody uses ends, however often its entry is written meanwhile.
#[test]
fn an_entry_that_is_written_again_is_not_used() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let flow = add(1, &[(Field::EthDst, STATION)], 3);
    w.flow_mod(&FlowMod {
        idle_timeout: 10,
        ..flow
    });
    w.rest();
    let above = [(Field::EthDst, STATION), (Field::EthSrc, 7)];
    for s in 0..30 {
        let command = [FlowCommand::Add, FlowCommand::DeleteStrict][s % 2];
        w.flow_mod(&to(command, 2, &above, 2));
        w.pass(1);
    }
    w.flow_mod(&to(FlowCommand::DeleteStrict, 2, &above, 2));
    w.rest();
    assert!(w.flows().is_empty(), "{:?}", w.flows());
}

/// A flow that goes leaves its number to another one, whose entry begins as any: by forwarding.
#[test]
fn who_gets_the_number_of_an_idle_flow_is_not_asked() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let timed = |fields: &[(Field, u128)]| FlowMod {
        idle_timeout: 10,
        ..add(1, fields, 3)
    };
    w.flow_mod(&timed(&station(1)));
    w.rest();
    w.flow_mod(&to(FlowCommand::DeleteStrict, 1, &station(1), 3));
    w.rest();
    w.pass(1);
    w.flow_mod(&timed(&[(Field::EthDst, STATION)]));
    w.rest();
    w.send(1, &frame(0x88b5));
    assert_eq!((w.seen.sent, w.seen.trapped), (1, 0));
}

/// With two timeouts in one chain, each is its own: a packet of one alone keeps the other from nothing.
#[test]
fn an_entry_of_two_idle_flows_waits_for_both() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let goto = |m: FlowMod| FlowMod {
        instructions: Instructions {
            goto: Some(1),
            ..Instructions::default()
        },
        idle_timeout: 10,
        ..m
    };
    let second = |m: FlowMod| FlowMod {
        table: 1,
        idle_timeout: 20,
        ..m
    };
    w.flow_mod(&goto(add(1, &[(Field::EthDst, STATION)], 3)));
    w.flow_mod(&goto(add(1, &[(Field::EthDst, STATION + 1)], 3)));
    w.flow_mod(&second(add(1, &[], 3)));
    w.rest();
    // The one that is used keeps the second table's alive, and nothing else
    let mut gone = None;
    for s in 0..40 {
        w.pass(1);
        w.send(1, &frame(0x88b5));
        w.rest();
        if gone.is_none() && w.flows().len() < 3 {
            gone = Some(s + 1);
        }
    }
    assert_eq!((gone, w.flows().len()), (Some(15), 2));
}

/// Flows that went while nobody can be asked are told of, with numbers that are not known.
#[test]
fn what_goes_while_the_chip_is_lost_does_not_wait_for_it() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let fields = |n: u32| [(Field::EthType, 0x2000 + u128::from(n))];
    for n in 0..3 {
        w.flow_mod(&add(1, &fields(n), 2));
    }
    w.rest();
    w.send(1, &frame(0x2000));
    // the last count of this one is on its way when the device dies, the next goes while it is dead
    w.flow_mod(&to(FlowCommand::DeleteStrict, 1, &fields(0), 2));
    w.die();
    w.now += 1_000_000;
    w.chip.turn(w.now);
    assert!(w.chip.lost().is_some());
    assert_eq!(w.last_counts(), 0);
    w.flow_mod(&to(FlowCommand::DeleteStrict, 1, &fields(1), 2));
    w.chip.turn(w.now);
    assert_eq!(w.last_counts(), 0);
    // and the one that is there was perhaps used until then
    let used = w.chip.take_used();
    let last = used.iter().find(|(flow, _)| *flow == 2);
    assert_eq!(last.map(|(_, at)| *at), Some(w.now), "{used:?}");
    w.check_counts();
}

/// The ports trap, so what the rows have counted stays: the last count does not wait until they can be deleted.
#[test]
fn what_goes_while_the_chip_is_trapped_is_told_with_its_numbers() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    let fields = [(Field::EthType, 0x2000)];
    w.flow_mod(&add(1, &fields, 2));
    w.rest();
    w.send(1, &frame(0x2000));
    w.refuses = (raw::TND_OP_CREATE, u32::MAX);
    w.flow_mod(&add(1, &[(Field::EthType, 0x2001)], 2));
    while w.step() {}
    assert!(!w.chip.is_open() && w.chip.lost().is_none());
    w.flow_mod(&to(FlowCommand::DeleteStrict, 1, &fields, 2));
    while w.step() {}
    assert_eq!(w.last_counts(), 0);
    w.refuses.1 = 0;
    w.check_counts();
    assert!(w.chip.is_open());
}

/// A page of counters that is refused is asked for again.
#[test]
fn one_read_that_is_refused_loses_no_number() {
    for refused in [1, 2, 3] {
        let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
        w.rest();
        w.flow_mod(&add(1, &[(Field::EthType, 0x2000)], 2));
        w.rest();
        w.send(1, &frame(0x2000));
        // each time the ports are read first, and go without
        w.refuses = (raw::TND_OP_DUMP, 2 * refused);
        w.read();
        let known = w.chip.counted(0).0;
        assert_eq!(known, (refused < 3).then_some(1), "{refused}");
    }
}

/// Four domains are no domain for each VLAN, whatever is attached to.
#[test]
fn tiny_is_not_looked_up_by_vlan() {
    let ports = Vec::new();
    let setup = crate::Setup {
        classes: true,
        slice: crate::Slice::default(),
        profile: "tiny".into(),
        lookup: Lookup::Vlan,
        version: Version::V13,
        ports,
        local: false,
        chains: Limits::default(),
    };
    let why = crate::Chip::new(setup).err().map(|e| e.to_string());
    assert!(why.is_some_and(|w| w.contains("4 forwarding domains")));
}

/// `tiny` has 32 lines. A part that its guards alone don't fit into would be refused by the chip, again and again; one that
/// they fill has no flow.
#[test]
fn a_part_that_has_no_room_for_its_guards_is_refused() {
    let fits = |profile: &str, (index, of): (u8, u8), domains, version| {
        let setup = crate::Setup {
            slice: crate::Slice { index, of, domains },
            profile: profile.into(),
            lookup: Lookup::Address,
            version: Version::V13,
            ports: Vec::new(),
            local: false,
            classes: true,
            chains: Limits::default(),
        };
        let chip = crate::Chip::new(setup).unwrap();
        chip.has_room_for(version).map_err(|e| e.to_string())
    };
    let mut full = false;
    let all = [Version::V10, Version::V13].map(|v| [(v, true), (v, false)]);
    for (version, domains) in all.concat() {
        for (profile, index) in [("nxp-t1040", 0), ("nxp-t1040", 15), ("arista-7500e", 15)] {
            assert_eq!(fits(profile, (index, 16), domains, version), Ok(()));
        }
        // what each that does not fit says is what fits, for all of them
        let fit = |of| (0..of).all(|i| fits("tiny", (i, of), domains, version).is_ok());
        let most = (1..=16).take_while(|of| fit(*of)).count() as u8;
        assert!((2..16).contains(&most));
        for (index, of) in (most + 1..=16).flat_map(|of| (0..of).map(move |i| (i, of))) {
            let Err(said) = fits("tiny", (index, of), domains, version) else {
                // the first has more, and no last row: the others say it
                assert!(of == most + 1 && index < of - 1, "{index} of {of}");
                continue;
            };
            let wanted = format!(
                "tiny has 32 lines for rows, a part of it for each of {of} logical switches"
            );
            assert!(said.starts_with(&wanted), "{said}");
            let end = format!(
                "OpenFlow {}: {most} logical switches at most",
                version.name()
            );
            assert!(said.ends_with(&end), "{index} of {of}: {said}");
            let part = 32 / u32::from(of) + u32::from(u32::from(index) < 32 % u32::from(of));
            full |= said.contains(&format!("there take {part} in"));
        }
    }
    assert!(full, "a part that these rows fill has no line for flows");
}

/// While a chip is lost that may forward on, a port that goes is not another's: frames are sent there until it was attached
/// to anew. One that has ended sends nowhere.
#[test]
fn a_port_is_free_when_nobody_sends_there() {
    for gone in [false, true] {
        let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
        w.flow_mod(&add(5, &[(Field::EthType, 0x2000)], 4));
        w.rest();
        w.die();
        w.now += 1_000_000;
        w.chip.turn(w.now);
        assert!(w.chip.lost().is_some());
        if gone {
            w.chip.gone();
        }
        w.toggle(4);
        assert_eq!(w.chip.is_leaving(4), !gone);
        w.chip.lose("and again");
        assert_eq!(w.chip.is_leaving(4), !gone);
        // a cold attach empties the chip: nothing is sent there from then on
        w.step();
        assert!(w.chip.lost().is_none() && !w.chip.is_leaving(4));
        w.rest();
        w.probe(1, &frame(0x2000));
    }
    // one that went before the chip was lost, too
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    w.toggle(4);
    w.die();
    w.now += 1_000_000;
    w.chip.turn(w.now);
    assert!(w.chip.lost().is_some() && w.chip.is_leaving(4));
    w.chip.gone();
    assert!(!w.chip.is_leaving(4));
}

/// A port has a VLAN with a tag, then without one: meanwhile the chip neither drops what goes there nor sends it in another
/// form than flows ask for.
/// Rows that ask for a port that goes are gone before it is: what comes in there meets none behind them.
#[test]
fn a_port_that_goes_meets_no_others_rows() {
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
    let at = u128::from(FIRST) + 3;
    w.flow_mod(&add(5, &[(Field::InPort, at)], 2));
    w.flow_mod(&add(1, &[(Field::EthType, 0x2000)], 3));
    w.rest();
    w.toggle(4);
    loop {
        let now = w.now;
        let passed = w.device.lock().look(4, &frame(0x2000), now);
        let to = passed.out.first().map(|(p, _)| *p);
        assert!(matches!(to, None | Some(2)), "{to:?}");
        if !w.step() {
            assert_eq!((to, passed.cpu.len()), (None, 0));
            break;
        }
    }
}

fn membered() -> (World, FlowMod, Vec<u8>) {
    let limits = Limits {
        members: true,
        ..Limits::default()
    };
    let mut w = World::within("nxp-t1040", Lookup::Vlan, Version::V13, limits);
    let tagged = enters(FIRST + 1, 1, false);
    let flows = [
        lives(0, FIRST, 1, true),
        lives(1, FIRST + 1, 1, false),
        vec![enters(FIRST + 1, 1, true)],
    ];
    for m in flows.iter().flatten() {
        w.flow_mod(m);
    }
    w.rest();
    let there = [&MACS[1][..], &MACS[0], &[0x12, 0x34], &[0; 46]].concat();
    let gone = FlowMod {
        command: FlowCommand::DeleteStrict,
        ..tagged
    };
    (w, gone, there)
}

#[test]
fn a_member_gets_another_form_while_nobody_meets_it() {
    let (mut w, gone, there) = membered();
    w.probe(1, &there);
    assert_eq!(w.seen.sent, 1, "by the chip");
    w.flow_mod(&gone);
    while w.step() {
        w.probe(1, &there);
    }
    w.rest();
    w.probe(1, &there);
}

/// Whichever of the writes the chip does not carry out, no frame meets members that are half there.
#[test]
fn members_change_behind_ports_that_trap() {
    for ignored in 0..20 {
        let (mut w, gone, there) = membered();
        w.flow_mod(&gone);
        for n in 0.. {
            if n == ignored {
                w.next = Fate::Ignored;
            }
            if !w.step() {
                break;
            }
            for port in 1..=4 {
                w.probe(port, &there);
            }
        }
        w.rest();
        w.probe(1, &there);
    }
}

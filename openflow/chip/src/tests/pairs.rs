// SPDX-License-Identifier: Apache-2.0
//! Flows that write: each write is the chip's, byte by byte as the software's, and the next process's.

use super::device::Fate;
use super::universe::FIRST;
use super::world::{World, killed};
use super::writing::{self, PRESENT, PUSH, frame, out, set, vid};
use crate::{Lookup, Share, Slice};
use std::collections::BTreeSet;
use tandem_ofoffload::tables::Frames;
use tandem_openflow::model::{FlowCommand, FlowMod};
use tandem_openflow::{Action, Field, Instructions, Oxm, Version};

fn flow(priority: u16, fields: &[(Field, u128)], actions: &[Action], to: u32) -> FlowMod {
    let fields: Vec<Oxm> = fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect();
    writing::flow(priority, &fields, &[actions, &[out(to)]].concat())
}

fn port(n: u128) -> (Field, u128) {
    (Field::InPort, u128::from(FIRST) + n - 1)
}

fn vlan(v: u128) -> (Field, u128) {
    (Field::VlanVid, PRESENT | v)
}

const IP4: (Field, u128) = (Field::EthType, 0x0800);

fn writers() -> Vec<FlowMod> {
    let push = [PUSH, vid(7)];
    let dscp = set(Field::IpDscp, 46);
    vec![
        flow(5, &[port(1), vlan(1)], &[vid(7)], 2),
        flow(5, &[port(1), vlan(2)], &[set(Field::VlanPcp, 3)], 2),
        flow(5, &[port(1), vlan(3)], &[Action::PopVlan], 2),
        flow(5, &[port(1), (Field::VlanVid, 0)], &push, 2),
        flow(5, &[port(2), IP4], &[dscp], 3),
        flow(
            5,
            &[port(3), vlan(4), IP4],
            &[vid(9), set(Field::VlanPcp, 1), dscp],
            1,
        ),
        // What is behind them: another answer for the same packets
        flow(1, &[IP4], &[], 4),
        flow(1, &[(Field::EthDst, 0x0200_0000_0001)], &[], 4),
    ]
}

const SENT: [(u16, Option<u16>); 6] = [
    (1, Some(0x1001)),
    (1, Some(0xa002)),
    (1, Some(0x0003)),
    (1, None),
    (2, None),
    (3, Some(0x7004)),
];

fn world() -> World {
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
    w.rest();
    for f in writers() {
        w.flow_mod(&f);
    }
    w.rest();
    w
}

#[test]
fn each_write_is_the_chips() {
    let mut w = world();
    for id in 0..6 {
        let why = w.chip.why(id).unwrap();
        assert_eq!(w.chip.share(id), Share::Whole, "{why}");
        assert!(why.starts_with("in IS1, 2 lines, which writes"), "{why}");
    }
    let u = w.chip.usage();
    assert_eq!((u.groups_used, u.class_used), (6, 12));
    for (n, (port, tci)) in SENT.iter().enumerate() {
        w.send(*port, &frame(*tci));
        let n = n as u64 + 1;
        assert_eq!(
            (w.seen.sent, w.seen.trapped, w.seen.written),
            (n, 0, n),
            "{tci:?}"
        );
    }
    // Each is counted, by the row of its group
    w.check_counts();
    for id in 0..6 {
        assert_eq!(w.chip.counted(id).0, Some(1), "{id}");
    }
    // By ports as well, in another key of IS1
    let udp = [port(4), IP4, (Field::IpProto, 17), (Field::UdpDst, 9)];
    w.flow_mod(&flow(5, &udp, &[set(Field::IpDscp, 1)], 1));
    w.rest();
    w.send(4, &frame(None));
    assert_eq!((w.seen.trapped, w.seen.written), (0, 7));
    // Frames that rules can't tell are the software's, as ever
    let mut twice = frame(Some(1));
    twice.splice(16..16, [0x81, 0, 0, 5]);
    w.send(1, &twice);
    assert_eq!(w.seen.trapped, 1);
}

/// A flow in front makes it the CPU's, until it goes.
#[test]
fn who_comes_in_front_and_goes() {
    let mut w = world();
    let front = flow(9, &[IP4, (Field::IpProto, 17)], &[], 3);
    w.flow_mod(&front);
    w.rest();
    w.send(1, &frame(Some(1)));
    assert_eq!((w.seen.sent, w.seen.trapped, w.seen.written), (1, 0, 0));
    assert_eq!(w.chip.usage().groups_used, 0);
    let why = w.chip.why(0).unwrap();
    assert!(
        why.ends_with("flow 8 in front meets it, and sends or asks for the tag"),
        "{why}"
    );
    w.flow_mod(&FlowMod {
        command: FlowCommand::DeleteStrict,
        ..front
    });
    w.rest();
    w.send(1, &frame(Some(1)));
    assert_eq!((w.seen.written, w.chip.usage().groups_used), (1, 6));
}

/// What a controller has in front of all else takes none of it away, and is answered as it is there.
#[test]
fn who_sends_nothing_is_in_front_of_it() {
    let mut w = world();
    let udp = [IP4, (Field::IpProto, 17)];
    let mut front = flow(9, &udp, &[], 3);
    front.instructions.apply = Some(vec![Action::Output {
        port: tandem_openflow::port::CONTROLLER,
        max_len: 64,
    }]);
    let arp = FlowMod {
        matching: flow(9, &[(Field::EthType, 0x0806)], &[], 3).matching,
        ..front.clone()
    };
    let mut other = frame(Some(1));
    // A protocol without ports, and the sum for it
    (other[27], other[29]) = (2, other[29] + 15);
    w.flow_mod(&arp);
    w.rest();
    for (n, (port, tci)) in (1..).zip(SENT) {
        w.send(port, &frame(tci));
        assert_eq!((w.seen.trapped, w.seen.written), (0, n), "{tci:?}");
    }
    // Now some of theirs are the controller's, as they came; the others are written to
    w.flow_mod(&front);
    w.rest();
    assert_eq!(w.chip.usage().groups_used, 6);
    for (n, (port, tci)) in (1..).zip(SENT) {
        w.send(port, &frame(tci));
        assert_eq!((w.seen.trapped, w.seen.written), (n, 6), "{tci:?}");
    }
    w.send(1, &other);
    assert_eq!((w.seen.trapped, w.seen.written), (6, 7));
    // And some are dropped, in the chip
    let drop = FlowMod {
        priority: 10,
        instructions: Instructions::default(),
        ..front.clone()
    };
    w.flow_mod(&drop);
    w.rest();
    let dropped = w.seen.dropped;
    for (port, tci) in SENT {
        w.send(port, &frame(tci));
    }
    assert_eq!((w.seen.trapped, w.seen.written), (6, 7));
    assert_eq!(w.seen.dropped, dropped + 6);
    w.check_counts();
    assert_eq!(w.chip.counted(10).0, Some(6), "{:#?}", w.flows());
    // The next process knows all of it
    let before = w.writes();
    assert_eq!(killed(&mut [&mut w]), Ok(true));
    w.rest();
    assert_eq!(w.writes(), before);
}

/// What is classified into a VLAN is not what came with its tag: rows for that, of a flow in front, are not for it.
#[test]
fn a_row_for_a_tag_is_for_those_who_came_with_it() {
    let mut w = plain();
    w.flow_mod(&flow(3, &[port(1), vlan(1)], &[vid(2)], 2));
    w.flow_mod(&flow(9, &[vlan(2), IP4], &[], 4));
    w.rest();
    assert_eq!(w.chip.usage().groups_used, 1);
    w.send(1, &frame(Some(1)));
    assert_eq!((w.seen.sent, w.seen.written), (1, 1));
    w.send(1, &frame(Some(2)));
    assert_eq!((w.seen.sent, w.seen.written, w.seen.trapped), (2, 1, 0));
}

/// Steps to the end, of which this one fails; true: there were so many.
fn fails(w: &mut World, at: u32, fate: Fate) -> bool {
    let mut n = 0;
    loop {
        if n == at {
            w.next = fate;
        }
        if !w.step() {
            break;
        }
        for (port, tci) in SENT {
            w.probe(port, &frame(tci));
        }
        n += 1;
    }
    let there = w.next == Fate::Done && n > at;
    w.next = Fate::Done;
    w.wait();
    w.rest();
    there
}

/// Whatever write of a pair fails as it comes, changes or goes, no frame has a third answer, and it is mended.
fn whatever_fails(world: impl Fn() -> World) -> [u32; 4] {
    let other = FlowMod {
        instructions: flow(5, &[], &[vid(8)], 3).instructions,
        ..writers().swap_remove(0)
    };
    let gone = FlowMod {
        command: FlowCommand::DeleteStrict,
        ..writers().swap_remove(0)
    };
    // In front of it comes who sends
    let front = flow(9, &[IP4, (Field::IpProto, 17)], &[], 4);
    let changes = [writers().swap_remove(0), other, front, gone];
    let mut all = [0; 4];
    for (which, last) in changes.iter().enumerate() {
        for fate in [Fate::Refused, Fate::Lost, Fate::Ignored] {
            let mut at = 0;
            loop {
                let mut w = world();
                w.flow_mod(&writers()[6]);
                w.rest();
                for before in changes[..which]
                    .iter()
                    .filter(|c| which != 3 || c.priority == 5)
                {
                    w.flow_mod(before);
                    w.rest();
                }
                w.flow_mod(last);
                if !fails(&mut w, at, fate) {
                    break;
                }
                let (written, pairs) = [(1, 1), (1, 1), (0, 0), (0, 0)][which];
                let before = w.seen.written;
                w.send(1, &frame(Some(1)));
                assert_eq!(w.seen.written, before + written, "{which} {at} {fate:?}");
                assert_eq!(w.chip.usage().groups_used, pairs, "{which} {at} {fate:?}");
                at += 1;
            }
            all[which] = at;
        }
    }
    all
}

fn plain() -> World {
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
    w.rest();
    w
}

/// With two kinds of rows of IS1 for what one has: each pair whose match says nothing of IP has two rows.
fn split() -> World {
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
    let class = w.chip.known.chip.class.as_mut().unwrap();
    for kind in &mut class.rows.kinds {
        if kind.frames == Frames::Any {
            kind.frames = Frames::Others(&[0x0800]);
        }
    }
    class.rows.split = vec![0, 2];
    w.begin(Version::V13);
    w.rest();
    w
}

#[test]
fn writes_that_fail() {
    let all = whatever_fails(plain);
    // Row, class, answer; a trap, the class, the answer; a row that traps, two that go, and that answers; two that go
    assert!(
        all.iter().zip([3, 3, 4, 2]).all(|(n, least)| *n >= least),
        "{all:?}"
    );
}

#[test]
fn several_rows_that_classify() {
    let mut w = split();
    for f in writers() {
        w.flow_mod(&f);
    }
    w.rest();
    let u = w.chip.usage();
    // Those that ask for IPv4 have one
    assert_eq!((u.groups_used, u.class_used), (6, 2 * 2 * 4 + 2 * 2));
    for (n, (port, tci)) in (1..).zip(SENT) {
        w.send(port, &frame(tci));
        let mut other = frame(tci);
        let at = if tci.is_some() { 16 } else { 12 };
        other[at..at + 2].copy_from_slice(&[0x12, 0x34]);
        w.send(port, &other);
        assert!(w.seen.written >= n, "{tci:?}");
    }
    // The two of IPv4 alone are behind no other frames
    assert_eq!((w.seen.written, w.seen.trapped), (10, 0), "{:?}", w.seen);
    w.check_counts();
    let all = whatever_fails(split);
    assert!(
        all.iter().zip([4, 4, 5, 3]).all(|(n, least)| *n >= least),
        "{all:?}"
    );
}

/// Each of several switches has groups of its own, and none of another's.
#[test]
fn groups_in_parts() {
    for of in 1..=7 {
        let mut all = BTreeSet::new();
        for index in 0..of {
            let slice = Slice {
                index,
                of,
                domains: false,
            };
            let (first, groups) = slice.groups(1, 255);
            assert!(groups >= 255 / of);
            for n in 0..groups {
                assert!(
                    all.insert(first + n),
                    "group {} of {index}/{of} twice",
                    first + n
                );
            }
        }
        assert_eq!(
            (all.len(), all.first(), all.last()),
            (255, Some(&1), Some(&255))
        );
    }
}

/// A list that classifies, of a process that had one, is another use's for one that has none.
#[test]
fn other_lists_than_the_next_process_has() {
    let mut w = world();
    w.chip.setup.classes = false;
    let said = killed(&mut [&mut w]).unwrap_err();
    assert!(said.contains("other lists than this use has"), "{said}");
    w.rest();
    w.send(1, &frame(Some(1)));
    assert_eq!((w.seen.written, w.chip.usage().groups_used), (0, 0));
    w.chip.setup.classes = true;
    let said = killed(&mut [&mut w]).unwrap_err();
    assert!(said.contains("other lists than this use has"), "{said}");
    w.rest();
    w.send(1, &frame(Some(1)));
    assert_eq!(w.seen.written, 1);
}

/// The next process goes on with them as they stand, whatever number their groups have there.
#[test]
fn the_next_process_has_them() {
    let mut w = world();
    // The numbers are not those of a fresh start
    let gone = FlowMod {
        command: FlowCommand::DeleteStrict,
        ..writers().swap_remove(0)
    };
    w.flow_mod(&gone);
    w.flow_mod(&flow(5, &[port(4), vlan(1)], &[vid(8)], 2));
    w.rest();
    w.send(3, &frame(Some(0x7004)));
    let before = w.writes();
    for _ in 0..2 {
        assert_eq!(killed(&mut [&mut w]), Ok(true));
        w.rest();
    }
    assert_eq!(w.writes(), before);
    w.send(3, &frame(Some(0x7004)));
    w.send(4, &frame(Some(1)));
    assert_eq!((w.seen.written, w.seen.trapped), (3, 0));
    w.check_counts();
    assert_eq!(w.chip.counted(5).0, Some(2));
}

/// In 1.0 a VLAN id is written with its tag where there is none.
#[test]
fn version_1_0() {
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V10);
    w.rest();
    let untagged = (Field::VlanVid, 0);
    let exact = |fields: &[(Field, u128)], a| flow(5, fields, &[a], 2);
    w.flow_mod(&exact(&[port(1), untagged], Action::SetVlanVid10(7)));
    w.flow_mod(&exact(&[port(1), vlan(1)], Action::SetVlanVid10(8)));
    w.flow_mod(&exact(&[port(1), vlan(2)], Action::SetVlanPcp10(5)));
    w.flow_mod(&exact(&[port(1), vlan(3)], Action::StripVlan10));
    w.rest();
    for tci in [None, Some(0x6001), Some(2), Some(0xe003)] {
        w.send(1, &frame(tci));
    }
    assert_eq!((w.seen.written, w.seen.trapped), (4, 0));
}

// SPDX-License-Identifier: Apache-2.0
//! Flows that write: each write is the chip's, byte by byte as the software's, and the next process's.

use super::device::Fate;
use super::universe::FIRST;
use super::world::{World, killed};
use crate::{Lookup, Share};
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{FlowCommand, FlowMod};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, Version};

const PRESENT: u128 = 0x1000;

fn flow(priority: u16, fields: &[(Field, u128)], actions: &[Action], to: u32) -> FlowMod {
    let mut apply = actions.to_vec();
    apply.push(Action::Output {
        port: FIRST + to - 1,
        max_len: 0,
    });
    let mut fields: Vec<Oxm> = fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect();
    fields.sort_by_key(|o| o.field);
    FlowMod {
        command: FlowCommand::Add,
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
}

fn set(field: Field, value: u128) -> Action {
    Action::SetField { field, value }
}

fn vid(v: u128) -> Action {
    set(Field::VlanVid, PRESENT | v)
}

/// An IPv4 packet over Ethernet, with a tag if there is one.
fn frame(tci: Option<u16>) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if let Some(tci) = tci {
        f.extend([0x81, 0]);
        f.extend(tci.to_be_bytes());
    }
    f.extend([8, 0]);
    let ip = [
        0x45, 0x03, 0, 28, 0, 0, 0, 0, 64, 17, 0x66, 0xcc, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9, 0,
        8, 0, 0,
    ];
    f.extend(ip);
    f.resize(64, 0);
    f
}

fn port(n: u128) -> (Field, u128) {
    (Field::InPort, u128::from(FIRST) + n - 1)
}

fn vlan(v: u128) -> (Field, u128) {
    (Field::VlanVid, PRESENT | v)
}

const IP4: (Field, u128) = (Field::EthType, 0x0800);

fn writers() -> Vec<FlowMod> {
    let push = [Action::PushVlan(0x8100), vid(7)];
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
        why.ends_with("IS1 would write it, but flow 8 in front meets it"),
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

/// Whatever write of a pair fails, no frame has a third answer, and it is mended.
#[test]
fn writes_that_fail() {
    for at in 0..6 {
        for fate in [Fate::Refused, Fate::Lost, Fate::Ignored] {
            let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
            w.rest();
            w.flow_mod(&writers()[6]);
            w.rest();
            w.flow_mod(&writers()[0]);
            for n in 0..40 {
                if n == at {
                    w.next = fate;
                }
                if !w.step() {
                    break;
                }
                w.probe(1, &frame(Some(1)));
                w.probe(2, &frame(Some(1)));
            }
            w.wait();
            w.rest();
            let before = w.seen.written;
            w.send(1, &frame(Some(1)));
            assert_eq!(w.seen.written, before + 1, "{at} {fate:?}");
        }
    }
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

// SPDX-License-Identifier: Apache-2.0
//! Groups: what they count, and that a bucket's packets are counted for that bucket.

use super::device::Fate;
use super::universe::{FIRST, bucket};
use super::world::{World, killed};
use crate::{Lookup, Share};
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{FlowCommand, FlowMod, GroupCommand, GroupMod, GroupType};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, Version};

/// Fast failover, first to the second port, then to the third.
const FAILOVER: u32 = 3;

fn through(group: u32, fields: &[(Field, u128)]) -> FlowMod {
    FlowMod {
        command: FlowCommand::Add,
        priority: 1,
        matching: Match {
            fields: fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect(),
            exact: false,
        },
        instructions: Instructions {
            apply: Some(vec![Action::Group(group)]),
            ..Instructions::default()
        },
        ..blank()
    }
}

fn frame(ether: u16) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    f.extend(ether.to_be_bytes());
    f.extend([0; 46]);
    f
}

fn world(group: u32) -> World {
    let mut w = World::new("nxp-t1040", Lookup::Vlan, Version::V13);
    w.rest();
    for ether in [0x2000, 0x2001] {
        w.flow_mod(&through(group, &[(Field::EthType, ether)]));
    }
    w.rest();
    w
}

/// Packets of the group and its first two buckets that the chip has answered.
fn counted(w: &mut World, group: u32) -> [Option<u64>; 3] {
    w.check_counts();
    [None, Some(0), Some(1)].map(|b| w.chip.group_counted(group, b).0)
}

#[test]
fn flows_of_a_group_are_one_sum_and_each_bucket_its_own() {
    let mut w = world(FAILOVER);
    assert_eq!(w.chip.group_share(FAILOVER), Some(Share::Whole));
    assert_eq!(w.chip.group_share(1), None);
    for ether in [0x2000, 0x2001, 0x2001] {
        w.send(1, &frame(ether));
    }
    assert_eq!(w.seen.trapped, 0);
    assert_eq!(counted(&mut w, FAILOVER), [Some(3), Some(3), Some(0)]);
    w.link(2, false);
    w.rest();
    w.send(1, &frame(0x2000));
    assert_eq!(w.seen.trapped, 0);
    assert_eq!(counted(&mut w, FAILOVER), [Some(4), Some(3), Some(1)]);
    // A flow that goes takes nothing along
    let gone = FlowMod {
        command: FlowCommand::DeleteStrict,
        ..through(FAILOVER, &[(Field::EthType, 0x2001)])
    };
    w.flow_mod(&gone);
    assert_eq!(counted(&mut w, FAILOVER), [Some(4), Some(3), Some(1)]);
}

/// Whatever of a row was written when a packet came: it is counted for the bucket that it took.
#[test]
fn a_packet_counts_for_the_bucket_that_it_took() {
    let mut w = world(FAILOVER);
    w.link(2, false);
    w.rest();
    w.link(2, true);
    let mut took = [0; 2];
    loop {
        let now = w.now;
        let passed = w.device.lock().send(1, &frame(0x2000), now);
        match passed.out.first() {
            Some((2, _)) => took[0] += 1,
            Some((3, _)) => took[1] += 1,
            _ => {}
        }
        if !w.step() {
            break;
        }
    }
    assert!(took[0] > 0 && took[1] > 0, "{took:?}");
    w.read();
    let is = [0, 1].map(|b| w.chip.group_counted(FAILOVER, Some(b)).0);
    assert_eq!(is, took.map(Some));
}

fn modify(port: u32) -> GroupMod {
    GroupMod {
        command: GroupCommand::Modify,
        kind: GroupType::All,
        group: 1,
        buckets: vec![bucket(vec![Action::Output {
            port: FIRST + port,
            max_len: 0,
        }])],
    }
}

#[test]
fn a_group_that_is_modified_counts_anew() {
    let mut w = world(1);
    w.send(1, &frame(0x2000));
    assert_eq!(counted(&mut w, 1), [Some(1), Some(1), Some(0)]);
    // To where it went before
    for port in [2, 2, 3] {
        w.group_mod(&modify(port));
        w.rest();
        w.send(1, &frame(0x2000));
        w.send(1, &frame(0x2001));
        assert_eq!(counted(&mut w, 1), [Some(2), Some(2), Some(0)]);
    }
    assert_eq!(w.seen.trapped, 0);
}

/// A bucket whose port goes is taken until the next one is.
#[test]
fn a_port_that_goes_goes_behind_the_groups_that_follow() {
    let mut w = world(FAILOVER);
    w.toggle(2);
    let mut out = 0;
    loop {
        w.probe(1, &frame(0x2000));
        out += 1;
        if !w.step() {
            break;
        }
    }
    assert_eq!((w.seen.sent + w.seen.trapped, w.seen.dropped), (out, 0));
}

#[test]
fn what_the_mac_table_answers_no_group_counts() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    w.flow_mod(&through(1, &[(Field::EthDst, 0x0200_0000_0001)]));
    w.rest();
    w.send(1, &frame(0x2000));
    assert_eq!(w.seen.sent, 1);
    assert_eq!(counted(&mut w, 1), [None, None, Some(0)]);
    let modify = GroupMod {
        command: GroupCommand::Modify,
        kind: GroupType::Indirect,
        group: 1,
        buckets: vec![bucket(vec![])],
    };
    w.group_mod(&modify);
    w.rest();
    w.send(1, &frame(0x2000));
    // A drop is no entry's here: a row's, which counts
    assert_eq!(w.seen.dropped, 1);
    assert_eq!(counted(&mut w, 1), [Some(1), Some(1), Some(0)]);
}

#[test]
fn what_was_counted_for_an_earlier_process_is_unknown() {
    let mut w = world(1);
    w.lose_counts();
    w.send(1, &frame(0x2000));
    assert_eq!(counted(&mut w, 1), [None; 3]);
}

/// The next process finds the rows as they should be: what it does not know of groups is no reason to write them.
#[test]
fn rows_of_groups_are_the_next_processes() {
    for group in [1, FAILOVER] {
        let mut w = world(group);
        w.send(1, &frame(0x2000));
        let before = w.writes();
        for _ in 0..2 {
            assert_eq!(killed(&mut [&mut w]), Ok(true), "{group}");
            w.rest();
        }
        assert_eq!(w.writes(), before, "{group}");
        w.send(1, &frame(0x2000));
        assert_eq!(counted(&mut w, group), [None; 3]);
        assert_eq!((w.chip.counted(0).0, w.seen.trapped), (Some(2), 0));
    }
}

/// Thrown away while it waited, or wished for when there was no chip: nobody's packets are unknown for it.
#[test]
fn a_counter_that_was_never_written_says_nothing() {
    let mut w = world(1);
    w.next = Fate::Refused;
    // each waits for the one before
    for priority in [2, 3, 4] {
        w.flow_mod(&FlowMod {
            priority,
            ..through(1, &[])
        });
    }
    w.step();
    w.group_mod(&modify(2));
    w.rest();
    w.check_counts();
    assert_eq!(
        w.chip.counted(4).0,
        Some(0),
        "behind a write that was refused"
    );
    w.chip.lose("as a test asks");
    w.flow_mod(&through(1, &[(Field::EthType, 0x2005)]));
    w.group_mod(&modify(3));
    w.rest();
    w.check_counts();
    assert_eq!(w.chip.counted(5).0, Some(0), "before an attach");
}

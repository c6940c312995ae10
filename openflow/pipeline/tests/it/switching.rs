// SPDX-License-Identifier: Apache-2.0
//! What a switch does with packets, message by message.

use crate::common;
use crate::common::{Got, Seen, add, eth, goto, output, send, switch, udp};
use tandem_ofpipeline::Why;
use tandem_ofpipeline::flows::{all_flows, blank};
use tandem_ofpipeline::ports::Count;
use tandem_ofpipeline::{Config, Switch};
use tandem_openflow::model::{
    Band, BandType, Bucket, FlowCommand, FlowMod, GROUP_ALL, GROUP_ANY, GroupCommand, GroupMod,
    GroupType, Lifetime, MeterCommand, MeterMod, RemovedReason, meter_flags,
};
use tandem_openflow::{Action, Error, Field, Instructions, Oxm, Version, port};

#[test]
fn the_highest_priority_wins_and_ties_have_an_order() {
    let mut s = switch(Version::V13);
    add(&mut s, 10, &[Oxm::exact(Field::InPort, 1)], output(2));
    add(&mut s, 20, &[Oxm::exact(Field::EthType, 0x0800)], output(3));
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(3, udp())]);
    add(&mut s, 20, &[Oxm::exact(Field::InPort, 1)], output(4));
    // 32 bits matched before 16
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(4, udp())]);
    assert_eq!(send(&mut s, 2, &udp()), [Got::Out(3, udp())]);
}

#[test]
fn a_cached_way_follows_every_change() {
    let mut s = switch(Version::V13);
    add(&mut s, 1, &[Oxm::exact(Field::EthType, 0x0800)], output(2));
    for _ in 0..3 {
        assert_eq!(send(&mut s, 1, &udp()), [Got::Out(2, udp())]);
    }
    assert!(s.cache_counts().0 >= 2);
    // A better one with known bits, another with new bits, then away with them
    add(&mut s, 2, &[Oxm::exact(Field::EthType, 0x0800)], output(3));
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(3, udp())]);
    let port = [Oxm::exact(Field::InPort, 1)];
    add(&mut s, 3, &port, output(4));
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(4, udp())]);
    let gone = FlowMod {
        command: FlowCommand::DeleteStrict,
        priority: 3,
        matching: common::matching(&port),
        ..blank()
    };
    s.flow_mod(&gone, 0, &mut Vec::new()).unwrap();
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(3, udp())]);
    let other = FlowMod {
        command: FlowCommand::Modify,
        instructions: output(4),
        ..blank()
    };
    s.flow_mod(&other, 0, &mut Vec::new()).unwrap();
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(4, udp())]);
}

/// An added flow of a later table is for the packet as it is there, not as it came.
#[test]
fn a_cached_way_follows_what_is_added_behind_a_rewriting() {
    let mut s = switch(Version::V13);
    let dst = |value| Action::SetField {
        field: Field::EthDst,
        value,
    };
    let rewrite = Instructions {
        apply: Some(vec![dst(9)]),
        goto: Some(1),
        ..Instructions::default()
    };
    add(&mut s, 1, &[], rewrite);
    let behind = |s: &mut tandem_ofpipeline::Switch, priority, port| {
        let m = FlowMod {
            table: 1,
            priority,
            matching: common::matching(&[Oxm::exact(Field::EthDst, 9)]),
            instructions: output(port),
            ..blank()
        };
        s.flow_mod(&m, 0, &mut Vec::new()).unwrap();
    };
    let mut want = udp();
    want[..6].copy_from_slice(&[0, 0, 0, 0, 0, 9]);
    for (priority, port) in [(1, 2), (2, 3), (3, 4)] {
        behind(&mut s, priority, port);
        for _ in 0..2 {
            assert_eq!(send(&mut s, 1, &udp()), [Got::Out(port, want.clone())]);
        }
    }
}

/// However many were added since a way was found, one that matches is met.
#[test]
fn a_cached_way_follows_however_many_are_added() {
    for others in 25..45 {
        let mut s = switch(Version::V13);
        let to = |dst: u128| [Oxm::exact(Field::EthDst, dst)];
        add(&mut s, 1, &to(0x0200_0000_0002), output(2));
        for _ in 0..2 {
            assert_eq!(send(&mut s, 1, &udp()), [Got::Out(2, udp())]);
        }
        add(&mut s, 2, &to(0x0200_0000_0002), output(3));
        for other in 0..others {
            add(&mut s, 2, &to(other), output(4));
        }
        assert_eq!(send(&mut s, 1, &udp()), [Got::Out(3, udp())], "{others}");
    }
}

/// What is behind a tag that is taken away is not in the key that the packet came with.
#[test]
fn a_cached_way_ends_where_headers_are_uncovered() {
    let mut s = switch(Version::V13);
    let pop = Instructions {
        apply: Some(vec![Action::PopVlan]),
        goto: Some(1),
        ..Instructions::default()
    };
    add(&mut s, 1, &[Oxm::exact(Field::VlanVid, 0x1007)], pop);
    for (inner, port) in [(1u8, 2), (2, 3), (1, 2), (2, 3)] {
        let vid = Oxm::exact(Field::VlanVid, 0x1000 | u128::from(inner));
        let m = FlowMod {
            table: 1,
            matching: common::matching(&[vid]),
            instructions: output(port),
            ..blank()
        };
        s.flow_mod(&m, 0, &mut Vec::new()).unwrap();
        let mut want = udp();
        want.splice(12..12, [0x81, 0, 0, inner]);
        let mut frame = want.clone();
        frame.splice(12..12, [0x88, 0xa8, 0, 7]);
        assert_eq!(send(&mut s, 1, &frame), [Got::Out(port, want)]);
    }
}

#[test]
fn tables_metadata_and_the_action_set() {
    let mut s = switch(Version::V13);
    let first = Instructions {
        write: Some(vec![
            Action::Output {
                port: 2,
                max_len: 0,
            },
            Action::PushVlan(0x8100),
        ]),
        metadata: Some((0x50, 0xf0)),
        goto: Some(7),
        ..Instructions::default()
    };
    add(&mut s, 1, &[], first);
    let second = FlowMod {
        table: 7,
        matching: common::matching(&[Oxm::masked(Field::Metadata, 0x50, 0xff)]),
        instructions: Instructions {
            write: Some(vec![Action::SetField {
                field: Field::EthDst,
                value: 9,
            }]),
            ..Instructions::default()
        },
        ..blank()
    };
    s.flow_mod(&second, 0, &mut Vec::new()).unwrap();
    let mut want = udp();
    want[..6].copy_from_slice(&[0, 0, 0, 0, 0, 9]);
    want.splice(12..12, [0x81, 0, 0, 0]);
    for _ in 0..2 {
        assert_eq!(send(&mut s, 1, &udp()), [Got::Out(2, want.clone())]);
    }
}

#[test]
fn misses() {
    let mut s = switch(Version::V13);
    assert_eq!(send(&mut s, 1, &udp()), []);
    add(&mut s, 0, &[], output(port::CONTROLLER));
    let to = |why, cookie| {
        Got::In(
            Seen {
                why,
                table: 0,
                cookie,
                max_len: 0xffff,
                port: 1,
            },
            udp(),
        )
    };
    assert_eq!(send(&mut s, 1, &udp()), [to(Why::NoMatch, 7)]);
    add(&mut s, 1, &[], output(port::CONTROLLER));
    assert_eq!(send(&mut s, 1, &udp()), [to(Why::Action, 7)]);
    let mut s = switch(Version::V10);
    let Got::In(seen, _) = &send(&mut s, 1, &udp())[0] else {
        panic!()
    };
    assert_eq!((seen.why, seen.max_len), (Why::NoMatch, 128));
}

#[test]
fn ports_that_are_many() {
    let mut s = switch(Version::V13);
    add(
        &mut s,
        1,
        &[Oxm::exact(Field::InPort, 2)],
        output(port::ALL),
    );
    assert_eq!(
        send(&mut s, 2, &udp()),
        [Got::Out(1, udp()), Got::Out(3, udp()), Got::Out(4, udp())]
    );
    add(&mut s, 2, &[], output(port::IN_PORT));
    assert_eq!(send(&mut s, 2, &udp()), [Got::Out(2, udp())]);
    add(&mut s, 3, &[], output(2));
    assert_eq!(send(&mut s, 2, &udp()), []);
    add(&mut s, 4, &[], output(port::NORMAL));
    assert_eq!(send(&mut s, 2, &udp()), [Got::Normal(2, udp())]);
}

#[test]
fn timeouts() {
    const S: u64 = 1_000_000_000;
    let mut s = switch(Version::V13);
    let m = FlowMod {
        idle_timeout: 2,
        hard_timeout: 5,
        flags: 1,
        cookie: 3,
        instructions: output(2),
        ..blank()
    };
    s.flow_mod(&m, S, &mut Vec::new()).unwrap();
    let mut gone = Vec::new();
    assert_eq!(s.expire(2 * S, 10, |_| false, &mut gone), Some(3 * S));
    for at in [2, 4, 5] {
        common::send_at(&mut s, 1, &udp(), at * S);
        s.expire((at + 1) * S, 10, |_| false, &mut gone);
    }
    let [r] = &gone[..] else { panic!("{gone:?}") };
    assert_eq!(r.reason, RemovedReason::HardTimeout);
    assert_eq!(
        (r.lifetime, r.packets, r.cookie),
        (Lifetime { sec: 5, nsec: 0 }, 3, 3)
    );
    assert!(common::flow_stats(&s, &all_flows()).is_empty());
    s.flow_mod(&m, 10 * S, &mut gone).unwrap();
    assert_eq!(s.expire(12 * S, 10, |_| false, &mut gone), None);
    assert_eq!(gone[1].reason, RemovedReason::IdleTimeout);
    // Packets may meet it elsewhere
    s.flow_mod(
        &FlowMod {
            hard_timeout: 0,
            ..m.clone()
        },
        20 * S,
        &mut gone,
    )
    .unwrap();
    assert_eq!(s.expire(23 * S, 10, |_| true, &mut gone), Some(25 * S));
    assert_eq!(s.expire(24 * S, 10, |_| false, &mut gone), Some(25 * S));
    // The next packet is told, once
    let number = s.flows_of(0)[0];
    common::send_at(&mut s, 1, &udp(), 24 * S);
    assert!(s.take_met().is_empty());
    s.ask(number);
    for _ in 0..2 {
        common::send_at(&mut s, 1, &udp(), 24 * S);
    }
    assert_eq!(s.take_met(), [number]);
    assert_eq!(s.expire(26 * S, 10, |_| false, &mut gone), None);
    assert_eq!(gone[2].reason, RemovedReason::IdleTimeout);
    // A hard timeout asks nobody
    s.flow_mod(&m, 30 * S, &mut gone).unwrap();
    assert_eq!(s.expire(34 * S, 10, |_| true, &mut gone), Some(35 * S));
    assert_eq!(s.expire(35 * S, 10, |_| true, &mut gone), None);
    assert_eq!(gone[3].reason, RemovedReason::HardTimeout);
}

#[test]
fn what_is_refused() {
    let mut s = switch(Version::V13);
    let mut try_flow = |matches: &[Oxm], instructions| {
        let m = FlowMod {
            matching: common::matching(matches),
            instructions,
            ..blank()
        };
        s.flow_mod(&m, 0, &mut Vec::new()).err()
    };
    let tcp = Oxm::exact(Field::TcpDst, 80);
    let ip = Oxm::exact(Field::EthType, 0x0800);
    let proto = Oxm::exact(Field::IpProto, 6);
    let set = |field, value| Instructions {
        apply: Some(vec![Action::SetField { field, value }]),
        ..Instructions::default()
    };
    assert_eq!(
        try_flow(&[tcp], output(1)),
        Some(Error::BAD_MATCH_BAD_PREREQ)
    );
    assert_eq!(
        try_flow(&[ip, tcp, proto], output(1)),
        Some(Error::BAD_MATCH_BAD_PREREQ)
    );
    assert_eq!(try_flow(&[ip, proto, tcp], output(1)), None);
    assert_eq!(
        try_flow(&[ip, ip], output(1)),
        Some(Error::BAD_MATCH_DUP_FIELD)
    );
    assert_eq!(
        try_flow(&[ip], set(Field::TcpDst, 1)),
        Some(Error::BAD_ACTION_MATCH_INCONSISTENT)
    );
    assert_eq!(try_flow(&[ip, proto], set(Field::TcpDst, 1)), None);
    assert_eq!(
        try_flow(&[ip], set(Field::Metadata, 1)),
        Some(Error::BAD_ACTION_BAD_SET_TYPE)
    );
    assert_eq!(
        try_flow(&[], set(Field::VlanVid, 0x1001)),
        Some(Error::BAD_ACTION_MATCH_INCONSISTENT)
    );
    assert_eq!(
        try_flow(&[], output(0)),
        Some(Error::BAD_ACTION_BAD_OUT_PORT)
    );
    assert_eq!(
        try_flow(&[], output(port::TABLE)),
        Some(Error::BAD_ACTION_BAD_OUT_PORT)
    );
    assert_eq!(
        try_flow(&[], goto(0)),
        Some(Error::BAD_INSTRUCTION_BAD_TABLE_ID)
    );
    let pushed = Instructions {
        apply: Some(vec![
            Action::PushVlan(0x8100),
            Action::SetField {
                field: Field::VlanVid,
                value: 0x1001,
            },
        ]),
        ..Instructions::default()
    };
    assert_eq!(try_flow(&[], pushed), None);
    let pop = Instructions {
        apply: Some(vec![Action::PopVlan]),
        ..Instructions::default()
    };
    let untagged = Oxm::exact(Field::VlanVid, 0);
    assert_eq!(
        try_flow(&[untagged], pop),
        Some(Error::BAD_ACTION_MATCH_INCONSISTENT)
    );
}

#[test]
fn short_frames_are_no_packets() {
    let mut s = switch(Version::V13);
    add(&mut s, 1, &[], output(2));
    assert_eq!(send(&mut s, 1, &eth(0)[..13]), []);
    assert_eq!(s.port(1).unwrap().count.rx_dropped, 1);
}

/// Flows and groups share the bytes of actions: what does not fit is refused whole, and what goes gives its bytes back.
#[test]
fn bytes_of_actions_have_a_bound() {
    let action = size_of::<Action>() as u64;
    assert_eq!(action, 32, "docs/openflow.md says so");
    let mut s = Switch::new(Config {
        bytes: 100 * action,
        ..Config::default()
    });
    let flow = |priority, actions| FlowMod {
        priority,
        instructions: common::apply(&vec![Action::DecNwTtl; actions]),
        matching: common::matching(&[Oxm::exact(Field::EthType, 0x0800)]),
        ..blank()
    };
    let mut gone = Vec::new();
    for priority in 1..=3 {
        s.flow_mod(&flow(priority, 30), 0, &mut gone).unwrap();
    }
    let full = Err(Error::FLOW_MOD_FAILED_TABLE_FULL);
    assert_eq!(s.flow_mod(&flow(4, 11), 0, &mut gone), full);
    assert_eq!(s.flow_mod(&flow(3, 41), 0, &mut gone), full);
    s.flow_mod(&flow(3, 40), 0, &mut gone).unwrap();
    assert_eq!(s.action_bytes(), 100 * action);
    // All flows of a modification, or none
    let all = |actions| FlowMod {
        command: FlowCommand::Modify,
        ..flow(0, actions)
    };
    assert_eq!(s.flow_mod(&all(34), 0, &mut gone), full);
    assert_eq!(s.action_bytes(), 100 * action);
    s.flow_mod(&all(1), 0, &mut gone).unwrap();
    assert_eq!(s.action_bytes(), 3 * action);
    // Written ones as well
    let mut written = flow(4, 0);
    written.instructions.write = Some(vec![Action::DecNwTtl]);
    s.flow_mod(&written, 0, &mut gone).unwrap();
    assert_eq!(s.action_bytes(), 4 * action);
    let bucket = (size_of::<Bucket>() + size_of::<Count>()) as u64 + action;
    let group = |command, group, buckets| GroupMod {
        command,
        kind: GroupType::All,
        group,
        buckets: vec![
            Bucket {
                weight: 0,
                watch_port: port::ANY,
                watch_group: GROUP_ANY,
                actions: vec![Action::DecNwTtl],
            };
            buckets
        ],
    };
    let most = (96 * action / bucket) as usize;
    let mut change = |s: &mut Switch, command, number, buckets| {
        s.group_mod(&group(command, number, buckets), 0, &mut gone)
    };
    let out = Err(Error::GROUP_MOD_FAILED_OUT_OF_BUCKETS);
    assert_eq!(change(&mut s, GroupCommand::Add, 1, most + 1), out);
    change(&mut s, GroupCommand::Add, 1, most - 1).unwrap();
    assert_eq!(change(&mut s, GroupCommand::Add, 2, 2), out);
    assert_eq!(change(&mut s, GroupCommand::Modify, 1, most + 1), out);
    change(&mut s, GroupCommand::Modify, 1, 1).unwrap();
    change(&mut s, GroupCommand::Add, 2, 1).unwrap();
    assert_eq!(s.action_bytes(), 4 * action + 2 * bucket);
    change(&mut s, GroupCommand::Delete, 2, 0).unwrap();
    assert_eq!(s.action_bytes(), 4 * action + bucket);
    change(&mut s, GroupCommand::Delete, GROUP_ALL, 0).unwrap();
    assert_eq!(s.action_bytes(), 4 * action);
    let delete = FlowMod {
        command: FlowCommand::Delete,
        ..blank()
    };
    s.flow_mod(&delete, 0, &mut Vec::new()).unwrap();
    assert_eq!(s.action_bytes(), 0);
}

/// What is at its limit can be changed, and one more is refused by the standard's error.
#[test]
fn each_limit_has_its_error() {
    let mut s = Switch::new(Config {
        groups: 2,
        buckets: 3,
        meters: 2,
        bands: 2,
        actions: 4,
        ..Config::default()
    });
    let list = |actions| vec![Action::DecNwTtl; actions];
    let flow = |actions| FlowMod {
        matching: common::matching(&[Oxm::exact(Field::EthType, 0x0800)]),
        instructions: common::apply(&list(actions)),
        ..blank()
    };
    let flow_mod = |s: &mut Switch, m| s.flow_mod(&m, 0, &mut Vec::new());
    assert_eq!(flow_mod(&mut s, flow(4)), Ok(()));
    let long = Err(Error::BAD_ACTION_TOO_MANY);
    assert_eq!(flow_mod(&mut s, flow(5)), long);
    let group = |command, group, buckets, actions| GroupMod {
        command,
        kind: GroupType::All,
        group,
        buckets: vec![
            Bucket {
                weight: 0,
                watch_port: port::ANY,
                watch_group: GROUP_ANY,
                actions: list(actions),
            };
            buckets
        ],
    };
    let (add, modify) = (GroupCommand::Add, GroupCommand::Modify);
    for (m, want) in [
        (group(add, 1, 3, 4), Ok(())),
        (
            group(add, 2, 4, 1),
            Err(Error::GROUP_MOD_FAILED_OUT_OF_BUCKETS),
        ),
        (group(add, 2, 3, 5), long),
        (group(add, 2, 1, 1), Ok(())),
        (
            group(add, 3, 1, 1),
            Err(Error::GROUP_MOD_FAILED_OUT_OF_GROUPS),
        ),
        (group(modify, 2, 3, 4), Ok(())),
        (
            group(modify, 2, 4, 1),
            Err(Error::GROUP_MOD_FAILED_OUT_OF_BUCKETS),
        ),
    ] {
        let got = s.group_mod(&m, 0, &mut Vec::new());
        assert_eq!(got, want, "{m:?}");
    }
    let meter = |command, meter, bands| MeterMod {
        command,
        flags: meter_flags::KBPS,
        meter,
        bands: vec![
            Band {
                rate: 1,
                burst: 1,
                kind: BandType::Drop,
            };
            bands
        ],
    };
    let (add, modify) = (MeterCommand::Add, MeterCommand::Modify);
    for (m, want) in [
        (meter(add, 1, 3), Err(Error::METER_MOD_FAILED_OUT_OF_BANDS)),
        (meter(add, 1, 2), Ok(())),
        (meter(add, 2, 1), Ok(())),
        (meter(add, 3, 1), Err(Error::METER_MOD_FAILED_OUT_OF_METERS)),
        (meter(modify, 2, 2), Ok(())),
        (
            meter(modify, 2, 3),
            Err(Error::METER_MOD_FAILED_OUT_OF_BANDS),
        ),
    ] {
        let got = s.meter_mod(&m, 0, &mut Vec::new());
        assert_eq!(got, want, "{m:?}");
    }
}

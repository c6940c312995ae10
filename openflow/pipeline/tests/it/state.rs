// SPDX-License-Identifier: Apache-2.0
//! Groups, meters, ports, packet-outs, and what 1.0 has otherwise.

use crate::common;
use crate::common::{Got, Net, add, apply, matching, output, send, switch, udp};
use std::collections::BTreeMap;
use std::time::Duration;
use tandem_ofpipeline::flows::{all_flows, blank};
use tandem_ofpipeline::{Config, Fragments, Port, Switch};
use tandem_openflow::model::{
    Band, BandType, Bucket, FlowCommand, FlowMod, GROUP_ALL, GROUP_ANY, GroupCommand, GroupMod,
    GroupType, METER_ALL, MeterCommand, MeterMod, RemovedReason, flow_flags,
};
use tandem_openflow::{Action, Error, Field, Instructions, Match, Oxm, Version, port};
use tandem_packet::{Buffer, Offload};

fn out(port: u32) -> Action {
    Action::Output { port, max_len: 0 }
}

fn bucket(actions: &[Action]) -> Bucket {
    Bucket {
        weight: 0,
        watch_port: port::ANY,
        watch_group: GROUP_ANY,
        actions: actions.to_vec(),
    }
}

fn group(group: u32, kind: GroupType, buckets: Vec<Bucket>) -> GroupMod {
    GroupMod {
        command: GroupCommand::Add,
        kind,
        group,
        buckets,
    }
}

fn make(s: &mut Switch, m: &GroupMod) {
    s.group_mod(m, 0, &mut Vec::new()).unwrap();
}

#[test]
fn a_group_of_all_sends_a_copy_by_each_bucket() {
    let mut s = switch(Version::V13);
    let push = [Action::PushVlan(0x8100), out(3)];
    let buckets = vec![bucket(&push), bucket(&[out(2)]), bucket(&[])];
    make(&mut s, &group(1, GroupType::All, buckets));
    add(&mut s, 1, &[], apply(&[Action::Group(1), out(4)]));
    let mut tagged = udp();
    tagged.splice(12..12, [0x81, 0, 0, 0]);
    let want = [Got::Out(3, tagged), Got::Out(2, udp()), Got::Out(4, udp())];
    assert_eq!(send(&mut s, 1, &udp()), want);
    let (_, count) = s.group(1).unwrap();
    assert_eq!((count.count.packets, count.refs), (1, 1));
    assert_eq!(
        count.buckets.iter().map(|b| b.packets).collect::<Vec<_>>(),
        [1, 1, 1]
    );
}

#[test]
fn a_select_group_shares_flows_by_weight() {
    let mut s = switch(Version::V13);
    let weighted = |weight, port| Bucket {
        weight,
        ..bucket(&[out(port)])
    };
    let buckets = vec![weighted(1, 2), weighted(2, 3), weighted(0, 4)];
    make(&mut s, &group(1, GroupType::Select, buckets));
    add(&mut s, 1, &[], apply(&[Action::Group(1)]));
    let mut sent: BTreeMap<u32, u32> = BTreeMap::new();
    for n in 0..3000u16 {
        let mut f = udp();
        f[34..36].copy_from_slice(&n.to_be_bytes());
        let [Got::Out(port, _)] = &send(&mut s, 1, &f)[..] else {
            panic!()
        };
        // A connection stays where it is
        assert_eq!(send(&mut s, 1, &f), [Got::Out(*port, f)]);
        *sent.entry(*port).or_default() += 1;
    }
    assert_eq!(sent.keys().copied().collect::<Vec<_>>(), [2, 3]);
    assert!((900..1100).contains(&sent[&2]), "{sent:?}");
}

#[test]
fn fast_failover_takes_the_first_that_is_live() {
    let mut s = switch(Version::V13);
    let watch = |watch_port, to| Bucket {
        watch_port,
        ..bucket(&[out(to)])
    };
    make(
        &mut s,
        &group(1, GroupType::FastFailover, vec![watch(2, 2), watch(3, 3)]),
    );
    add(&mut s, 1, &[], apply(&[Action::Group(1)]));
    let port = |number, live| Port {
        number,
        live,
        ..Port::default()
    };
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(2, udp())]);
    s.set_port(port(2, false), 0);
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(3, udp())]);
    s.set_port(port(3, false), 0);
    assert_eq!(send(&mut s, 1, &udp()), []);
    s.set_port(port(2, true), 0);
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(2, udp())]);
    s.remove_port(2);
    s.set_port(port(3, true), 0);
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(3, udp())]);
    s.remove_port(3);
    s.set_port(port(2, true), 0);
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(2, udp())]);
    s.remove_port(2);
    let (_, before) = s.group(1).unwrap();
    let before = before.buckets.clone();
    assert_eq!(send(&mut s, 1, &udp()), []);
    assert_eq!(s.group(1).unwrap().1.buckets, before);
    let unwatched = group(2, GroupType::FastFailover, vec![bucket(&[out(2)])]);
    assert_eq!(
        s.group_mod(&unwatched, 0, &mut Vec::new()),
        Err(Error::GROUP_MOD_FAILED_BAD_WATCH)
    );
}

#[test]
fn groups_behind_groups() {
    let mut s = switch(Version::V13);
    let to = |n, next| group(n, GroupType::Indirect, vec![bucket(&[Action::Group(next)])]);
    let missing = s.group_mod(&to(2, 1), 0, &mut Vec::new());
    assert_eq!(missing, Err(Error::BAD_ACTION_BAD_OUT_GROUP));
    make(
        &mut s,
        &group(1, GroupType::Indirect, vec![bucket(&[out(3)])]),
    );
    for n in 2..=16 {
        make(&mut s, &to(n, n - 1));
    }
    let deep = s.group_mod(&to(17, 16), 0, &mut Vec::new());
    assert_eq!(deep, Err(Error::GROUP_MOD_FAILED_CHAINING_UNSUPPORTED));
    let back = GroupMod {
        command: GroupCommand::Modify,
        ..to(1, 16)
    };
    assert_eq!(
        s.group_mod(&back, 0, &mut Vec::new()),
        Err(Error::GROUP_MOD_FAILED_LOOP)
    );
    // Watching is asking as well
    let watching = |n, group| GroupMod {
        buckets: vec![Bucket {
            watch_group: group,
            ..bucket(&[out(2)])
        }],
        ..self::group(n, GroupType::FastFailover, vec![])
    };
    make(&mut s, &watching(30, 1));
    make(&mut s, &watching(31, 30));
    let round = GroupMod {
        command: GroupCommand::Modify,
        ..watching(30, 31)
    };
    assert_eq!(
        s.group_mod(&round, 0, &mut Vec::new()),
        Err(Error::GROUP_MOD_FAILED_LOOP)
    );
    add(&mut s, 1, &[], apply(&[Action::Group(16)]));
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(3, udp())]);
    let delete = |n| GroupMod {
        command: GroupCommand::Delete,
        ..group(n, GroupType::All, vec![])
    };
    let chained = s.group_mod(&delete(3), 0, &mut Vec::new());
    assert_eq!(chained, Err(Error::GROUP_MOD_FAILED_CHAINED_GROUP));
    // Its flows go with it, and say so if they were asked to
    let told = FlowMod {
        table: 1,
        flags: flow_flags::SEND_FLOW_REM,
        instructions: apply(&[Action::Group(16)]),
        ..blank()
    };
    s.flow_mod(&told, 0, &mut Vec::new()).unwrap();
    let mut removed = Vec::new();
    s.group_mod(&delete(16), 5, &mut removed).unwrap();
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0].reason, RemovedReason::GroupDelete);
    assert!(common::flow_stats(&s, &all_flows()).is_empty());
    make(&mut s, &delete(GROUP_ALL));
    assert_eq!(s.groups().count(), 0);
}

#[test]
fn meters_drop_and_remark_and_take_their_flows_with_them() {
    let mut s = switch(Version::V13);
    let m = |command, meter, bands| MeterMod {
        command,
        flags: 2 | 4,
        meter,
        bands,
    };
    let band = |rate, burst, kind| Band { rate, burst, kind };
    let bands = vec![
        band(1, 1, BandType::DscpRemark(1)),
        band(10, 3, BandType::Drop),
    ];
    s.meter_mod(&m(MeterCommand::Add, 1, bands), 0, &mut Vec::new())
        .unwrap();
    let again = s.meter_mod(&m(MeterCommand::Add, 1, vec![]), 0, &mut Vec::new());
    assert_eq!(again, Err(Error::METER_MOD_FAILED_METER_EXISTS));
    let metered = Instructions {
        meter: Some(1),
        ..output(2)
    };
    add(&mut s, 1, &[], metered.clone());
    let unknown = FlowMod {
        instructions: Instructions {
            meter: Some(2),
            ..Instructions::default()
        },
        ..blank()
    };
    assert_eq!(
        s.flow_mod(&unknown, 0, &mut Vec::new()),
        Err(Error::METER_MOD_FAILED_UNKNOWN_METER)
    );
    let mut af11 = udp();
    af11[15] = 10 << 2;
    let tos: Vec<Option<u8>> = (0..5)
        .map(|_| match &send(&mut s, 1, &af11)[..] {
            [Got::Out(2, f)] => Some(f[15] >> 2),
            _ => None,
        })
        .collect();
    assert_eq!(tos, [Some(10), Some(12), Some(12), None, None]);
    assert_eq!(s.meter(1).unwrap().flows, 1);
    s.meter_mod(
        &m(MeterCommand::Delete, METER_ALL, vec![]),
        0,
        &mut Vec::new(),
    )
    .unwrap();
    assert!(common::flow_stats(&s, &all_flows()).is_empty() && s.meter(1).is_none());
}

#[test]
fn queues() {
    let mut s = switch(Version::V13);
    add(&mut s, 1, &[], apply(&[Action::SetQueue(5), out(2)]));
    let unknown = FlowMod {
        instructions: apply(&[Action::SetQueue(6)]),
        ..blank()
    };
    assert_eq!(
        s.flow_mod(&unknown, 0, &mut Vec::new()),
        Err(Error::BAD_ACTION_BAD_QUEUE)
    );
    send(&mut s, 1, &udp());
    assert_eq!(s.queue(2, 5).unwrap().tx.packets, 1);
    assert!(s.queue(2, 6).is_none());
}

#[test]
fn packet_out() {
    let mut s = switch(Version::V13);
    add(&mut s, 1, &[Oxm::exact(Field::InPort, 3)], output(2));
    let mut go = |in_port, actions: &[Action]| {
        let mut buffer = Buffer::with_capacity(200);
        assert!(buffer.set(&udp()));
        let mut net = Net::default();
        s.packet_out(
            &mut buffer.frame(Offload::NONE),
            in_port,
            actions,
            0,
            &mut net,
        )
        .map(|()| net.0)
    };
    assert_eq!(
        go(port::CONTROLLER, &[out(1)]),
        Ok(vec![Got::Out(1, udp())])
    );
    let mut tagged = udp();
    tagged.splice(12..12, [0x81, 0, 0, 0]);
    let list = [
        Action::PushVlan(0x8100),
        out(port::TABLE),
        Action::PopVlan,
        out(4),
    ];
    let want = vec![Got::Out(2, tagged), Got::Out(4, udp())];
    assert_eq!(go(3, &list), Ok(want));
    assert_eq!(go(1, &[out(0)]), Err(Error::BAD_ACTION_BAD_OUT_PORT));
    let tcp = Action::SetField {
        field: Field::TcpDst,
        value: 1,
    };
    assert_eq!(go(1, &[tcp]), Err(Error::BAD_ACTION_MATCH_INCONSISTENT));
    let udp_port = Action::SetField {
        field: Field::UdpDst,
        value: 1,
    };
    assert_eq!(go(1, &[udp_port]), Ok(vec![]));
}

#[test]
fn tables_fill_and_flows_overlap() {
    let mut s = Switch::new(Config {
        table_entries: 2,
        ..Config::default()
    });
    let flow = |port: u128, flags| FlowMod {
        flags,
        matching: matching(&[Oxm::exact(Field::InPort, port)]),
        ..blank()
    };
    s.flow_mod(&flow(1, 0), 0, &mut Vec::new()).unwrap();
    s.flow_mod(&flow(2, 0), 0, &mut Vec::new()).unwrap();
    assert_eq!(
        s.flow_mod(&flow(3, 0), 0, &mut Vec::new()),
        Err(Error::FLOW_MOD_FAILED_TABLE_FULL)
    );
    s.flow_mod(&flow(2, 0), 0, &mut Vec::new()).unwrap();
    let overlap = FlowMod {
        flags: flow_flags::CHECK_OVERLAP,
        matching: matching(&[Oxm::exact(Field::EthType, 0x0800)]),
        ..blank()
    };
    assert_eq!(
        s.flow_mod(&overlap, 0, &mut Vec::new()),
        Err(Error::FLOW_MOD_FAILED_OVERLAP)
    );
    let all = |table, command| FlowMod {
        table,
        command,
        ..blank()
    };
    let add_to_all = s.flow_mod(&all(255, FlowCommand::Add), 0, &mut Vec::new());
    assert_eq!(add_to_all, Err(Error::FLOW_MOD_FAILED_BAD_TABLE_ID));
    s.flow_mod(&all(255, FlowCommand::Delete), 0, &mut Vec::new())
        .unwrap();
    assert_eq!(s.aggregate(&all_flows()).flows, 0);
}

/// Overlapping is of one priority: neither a flow of the same mask that does not meet, nor one that does, of another.
#[test]
fn flows_of_other_priorities_do_not_overlap() {
    let mut s = switch(Version::V13);
    add(&mut s, 5, &[Oxm::exact(Field::InPort, 1)], output(2));
    add(&mut s, 3, &[Oxm::exact(Field::InPort, 2)], output(2));
    let mut beside = |priority| {
        let m = FlowMod {
            priority,
            flags: flow_flags::CHECK_OVERLAP,
            matching: matching(&[
                Oxm::exact(Field::InPort, 1),
                Oxm::exact(Field::EthType, 0x0800),
            ]),
            ..blank()
        };
        s.flow_mod(&m, 0, &mut Vec::new())
    };
    assert_eq!(beside(3), Ok(()));
    assert_eq!(beside(5), Err(Error::FLOW_MOD_FAILED_OVERLAP));
}

#[test]
fn fragments() {
    let mut later = udp();
    later[20..22].copy_from_slice(&[0x20, 3]);
    let fields = |port| {
        [
            Oxm::exact(Field::EthType, 0x0800),
            Oxm::exact(Field::IpProto, 17),
            Oxm::exact(Field::UdpDst, port),
        ]
    };
    for (version, port, want) in [
        (Version::V13, 0, 0),
        (Version::V10, 0, 1),
        (Version::V10, 2000, 0),
    ] {
        let mut s = switch(version);
        add(&mut s, 1, &fields(port), output(2));
        let got = send(&mut s, 1, &later);
        assert_eq!(
            got.iter().filter(|g| matches!(g, Got::Out(..))).count(),
            want
        );
        assert_eq!(
            send(&mut s, 1, &udp())
                .iter()
                .filter(|g| matches!(g, Got::Out(..)))
                .count(),
            usize::from(port == 2000)
        );
        s.set_config(Fragments::Drop, 0, false);
        assert_eq!(send(&mut s, 1, &later), []);
    }
}

#[test]
fn version_1_0() {
    let mut s = switch(Version::V10);
    let modify = FlowMod {
        command: FlowCommand::Modify,
        priority: 9,
        instructions: output(2),
        ..blank()
    };
    s.flow_mod(&modify, 0, &mut Vec::new()).unwrap();
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(2, udp())]);
    // Without any wildcard it is above the highest priority
    let all = [
        Oxm::exact(Field::InPort, 1),
        Oxm::exact(Field::EthDst, 0x0200_0000_0002),
        Oxm::exact(Field::EthSrc, 0x0200_0000_0001),
        Oxm::exact(Field::EthType, 0x0800),
        Oxm::exact(Field::VlanVid, 0),
        Oxm::exact(Field::IpDscp, 0),
        Oxm::exact(Field::IpProto, 17),
        Oxm::exact(Field::Ipv4Src, 0x0a00_0001),
        Oxm::exact(Field::Ipv4Dst, 0x0a00_0002),
        Oxm::exact(Field::UdpSrc, 1000),
        Oxm::exact(Field::UdpDst, 2000),
    ];
    let exact = FlowMod {
        matching: Match {
            fields: all.to_vec(),
            exact: true,
        },
        instructions: output(3),
        ..blank()
    };
    s.flow_mod(&exact, 0, &mut Vec::new()).unwrap();
    add(&mut s, u16::MAX, &[], output(4));
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(3, udp())]);
    // Its actions, on a packet that has the header and on one that has not
    let list = [
        Action::SetVlanPcp10(3),
        Action::SetVlanVid10(9),
        Action::SetNw10 {
            dst: true,
            addr: 0x0a00_0003,
        },
        Action::SetNwTos10(0x28),
        Action::SetTp10 {
            dst: true,
            port: 2001,
        },
        Action::Enqueue10 { port: 2, queue: 5 },
        Action::StripVlan10,
        Action::StripVlan10,
        out(3),
    ];
    let mut s = switch(Version::V10);
    add(&mut s, 1, &[], apply(&list));
    let mut want = Vec::new();
    let mut ip = etherparse::Ipv4Header::new(
        0,
        64,
        etherparse::IpNumber::UDP,
        [10, 0, 0, 1],
        [10, 0, 0, 3],
    )
    .unwrap();
    ip.dscp = etherparse::IpDscp::try_new(10).unwrap();
    etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ip(etherparse::IpHeaders::Ipv4(ip, Default::default()))
        .udp(1000, 2001)
        .write(&mut want, b"some payload")
        .unwrap();
    let mut tagged = want.clone();
    tagged.splice(12..12, [0x81, 0, 0x60, 9]);
    assert_eq!(
        send(&mut s, 1, &udp()),
        [Got::Out(2, tagged), Got::Out(3, want)]
    );
    let other = common::eth(0x88cc);
    let mut tagged = other.clone();
    tagged.splice(12..12, [0x81, 0, 0x60, 9]);
    assert_eq!(
        send(&mut s, 1, &other),
        [Got::Out(2, tagged), Got::Out(3, other)]
    );
    // 802.3 with SNAP has its type, without it has 0x05ff
    let mut s = switch(Version::V10);
    add(&mut s, 1, &[Oxm::exact(Field::EthType, 0x0800)], output(2));
    add(&mut s, 1, &[Oxm::exact(Field::EthType, 0x05ff)], output(3));
    let mut snap = udp();
    let len = (snap.len() - 14 + 8) as u16;
    snap.splice(
        12..14,
        [
            len.to_be_bytes().as_slice(),
            &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
        ]
        .concat(),
    );
    assert_eq!(send(&mut s, 1, &snap), [Got::Out(2, snap.clone())]);
    snap[17] = 1;
    assert_eq!(send(&mut s, 1, &snap), [Got::Out(3, snap.clone())]);
}

#[test]
fn counters_that_are_not_kept_and_those_that_are_reset() {
    let mut s = switch(Version::V13);
    let m = FlowMod {
        flags: flow_flags::NO_PKT_COUNTS,
        instructions: output(2),
        ..blank()
    };
    s.flow_mod(&m, 0, &mut Vec::new()).unwrap();
    send(&mut s, 1, &udp());
    let len = udp().len() as u64;
    let counts = |s: &Switch| {
        let all = common::flow_stats(s, &all_flows());
        (all[0].packets, all[0].bytes)
    };
    assert_eq!(counts(&s), (u64::MAX, len));
    // Added again it keeps them, unless it is told otherwise
    let kept = FlowMod {
        flags: 0,
        ..m.clone()
    };
    s.flow_mod(&kept, 0, &mut Vec::new()).unwrap();
    assert_eq!(counts(&s), (0, len));
    let reset = FlowMod {
        flags: flow_flags::RESET_COUNTS,
        ..m
    };
    s.flow_mod(&reset, 0, &mut Vec::new()).unwrap();
    assert_eq!(counts(&s), (0, 0));
}

/// 1.0 does not speak of IPv6; what its matches mean of it, its actions set.
#[test]
fn actions_of_one_0_on_ipv6() {
    let frame = |class: u8, dst: u16| {
        let ip = etherparse::Ipv6Header {
            traffic_class: class,
            next_header: etherparse::IpNumber::UDP,
            hop_limit: 64,
            source: [1; 16],
            destination: [2; 16],
            ..Default::default()
        };
        let mut out = Vec::new();
        etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ip(etherparse::IpHeaders::Ipv6(ip, Default::default()))
            .udp(1000, dst)
            .write(&mut out, b"some payload")
            .unwrap();
        out
    };
    let list = [
        Action::SetNwTos10(0x40),
        Action::SetTp10 {
            dst: true,
            port: 2001,
        },
        out(3),
    ];
    let mut s = switch(Version::V10);
    add(&mut s, 1, &[], apply(&list));
    // the two bits of ECN are not the action's
    assert_eq!(
        send(&mut s, 1, &frame(0x21, 2000)),
        [Got::Out(3, frame(0x41, 2001))]
    );
}

/// Groups whose every bucket asks all groups one level below: what a packet or a message costs does not multiply from level
/// to level.
#[test]
fn liveness_does_not_multiply_from_level_to_level() {
    let mut s = switch(Version::V13);
    make(&mut s, &group(1, GroupType::All, vec![]));
    let watching = |n| Bucket {
        watch_group: n,
        ..bucket(&[out(2)])
    };
    for n in 2..=8 {
        make(
            &mut s,
            &group(n, GroupType::All, vec![watching(n - 1); 1024]),
        );
    }
    make(
        &mut s,
        &group(9, GroupType::FastFailover, vec![watching(8)]),
    );
    add(&mut s, 1, &[], apply(&[Action::Group(9)]));
    assert_eq!(send(&mut s, 1, &udp()), []);
    // Every level follows the lowest
    let change = |command, buckets| GroupMod {
        command,
        ..group(1, GroupType::All, buckets)
    };
    let live = change(GroupCommand::Modify, vec![bucket(&[])]);
    make(&mut s, &live);
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(2, udp())]);
    make(&mut s, &change(GroupCommand::Delete, vec![]));
    assert_eq!(send(&mut s, 1, &udp()), []);
    make(&mut s, &change(GroupCommand::Add, vec![bucket(&[])]));
    assert_eq!(send(&mut s, 1, &udp()), [Got::Out(2, udp())]);
}

#[test]
fn groups_are_checked_once_however_many_ways_lead_to_them() {
    let mut s = switch(Version::V13);
    let (levels, wide) = (15, 64);
    let mut below = vec![bucket(&[])];
    for level in 0..levels {
        for n in 0..wide {
            let number = level * wide + n;
            make(&mut s, &group(number, GroupType::All, below.clone()));
        }
        let to = |n| bucket(&[Action::Group(level * wide + n)]);
        below = (0..wide).map(to).collect();
    }
    let many: Vec<Bucket> = below.iter().cycle().take(1024).cloned().collect();
    make(&mut s, &group(5000, GroupType::All, many));
    let top = Action::Group(5000);
    let lowest = |actions: &[Action]| GroupMod {
        command: GroupCommand::Modify,
        ..group(0, GroupType::All, vec![bucket(actions)])
    };
    let round = s.group_mod(&lowest(&[top]), 0, &mut Vec::new());
    assert_eq!(round, Err(Error::GROUP_MOD_FAILED_LOOP));
    make(&mut s, &group(5001, GroupType::All, vec![]));
    let deep = s.group_mod(&lowest(&[Action::Group(5001)]), 0, &mut Vec::new());
    assert_eq!(deep, Err(Error::GROUP_MOD_FAILED_CHAINING_UNSUPPORTED));
}

/// Processor time of this thread, where the kernel tells: other tests run beside it.
fn worked() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(told.split(' ').next()?.parse().ok()?))
}

/// All groups, or all meters, go in one pass over the flows.
#[test]
fn deleting_all_passes_over_the_flows_once() {
    let mut s = switch(Version::V13);
    let many = 20_000;
    let meter = |command, meter| MeterMod {
        command,
        flags: 1,
        meter,
        bands: vec![],
    };
    for n in 1..=many {
        make(&mut s, &group(n, GroupType::All, vec![]));
        s.meter_mod(&meter(MeterCommand::Add, n), 0, &mut Vec::new())
            .unwrap();
    }
    for n in 1..=many {
        let to_group = FlowMod {
            flags: flow_flags::SEND_FLOW_REM,
            matching: matching(&[Oxm::exact(Field::Metadata, n.into())]),
            instructions: apply(&[Action::Group(n), Action::Group(many - n + 1)]),
            ..blank()
        };
        let to_meter = FlowMod {
            table: 1,
            instructions: Instructions {
                meter: Some(n),
                ..Instructions::default()
            },
            ..to_group.clone()
        };
        for m in [to_group, to_meter] {
            s.flow_mod(&m, 0, &mut Vec::new()).unwrap();
        }
    }
    add(&mut s, 1, &[], output(2));
    let start = worked();
    let mut removed = Vec::new();
    let one = GroupMod {
        command: GroupCommand::Delete,
        ..group(7, GroupType::All, vec![])
    };
    s.group_mod(&one, 0, &mut removed).unwrap();
    assert_eq!(removed.len(), 2);
    s.meter_mod(&meter(MeterCommand::Delete, 7), 0, &mut removed)
        .unwrap();
    assert_eq!(removed.len(), 3);
    let all = GroupMod {
        group: GROUP_ALL,
        ..one
    };
    s.group_mod(&all, 0, &mut removed).unwrap();
    assert_eq!((s.groups().count(), s.group(1).is_none()), (0, true));
    let groups = removed.drain(..);
    assert_eq!(
        groups
            .filter(|r| r.reason == RemovedReason::GroupDelete)
            .count() as u32,
        many
    );
    s.meter_mod(&meter(MeterCommand::Delete, METER_ALL), 0, &mut removed)
        .unwrap();
    assert_eq!((s.meters().count(), removed.len() as u32), (0, many - 1));
    assert_eq!(s.aggregate(&all_flows()).flows, 1);
    let took = worked().zip(start).map(|(now, then)| now - then);
    assert!(took.is_none_or(|t| t < Duration::from_secs(3)), "{took:?}");
}

/// What one packet-out may cause is that of one packet, however often its list names the tables.
#[test]
fn a_packet_out_takes_so_many_buckets_and_no_more() {
    let mut s = switch(Version::V13);
    make(
        &mut s,
        &group(1, GroupType::All, vec![bucket(&[out(2)]); 1000]),
    );
    add(&mut s, 1, &[], apply(&[Action::Group(1), Action::Group(1)]));
    let mut go = |actions: &[Action]| {
        let mut buffer = Buffer::with_capacity(200);
        assert!(buffer.set(&udp()));
        let mut net = Net::default();
        s.packet_out(
            &mut buffer.frame(Offload::NONE),
            port::CONTROLLER,
            actions,
            0,
            &mut net,
        )
        .unwrap();
        net.0.len()
    };
    let table = out(port::TABLE);
    assert_eq!(go(&[table, out(3)]), 2001);
    let list = [Action::Group(1), table, table, table];
    assert_eq!(go(&list), 4096);
    assert_eq!(go(&list), 4096);
}

/// A packet that the cache does not know asks once for each mask: a table has so many and no more.
#[test]
fn masks_of_a_table_are_bounded() {
    assert_eq!(Config::default().masks, 4096);
    let mut s = Switch::new(Config {
        masks: 64,
        ..Config::default()
    });
    let flow = |table, mask| FlowMod {
        table,
        matching: matching(&[Oxm::masked(Field::Metadata, 0, mask)]),
        ..blank()
    };
    let mut go = |m: &FlowMod| s.flow_mod(m, 0, &mut Vec::new());
    for mask in 1..=64 {
        go(&flow(0, mask)).unwrap();
    }
    let full = Err(Error::FLOW_MOD_FAILED_TABLE_FULL);
    assert_eq!(go(&flow(0, 65)), full);
    assert_eq!(go(&flow(1, 65)), Ok(()));
    let known = FlowMod {
        priority: 5,
        ..flow(0, 64)
    };
    assert_eq!(go(&known), Ok(()));
    let gone = FlowMod {
        command: FlowCommand::DeleteStrict,
        ..flow(0, 7)
    };
    assert_eq!(go(&gone), Ok(()));
    assert_eq!(go(&flow(0, 65)), Ok(()));
}

/// A group is described in one message, whose head is eight bytes longer than that of the message that made it.
#[test]
fn a_group_has_to_fit_its_description() {
    let mut s = switch(Version::V13);
    let wide = bucket(&[out(2), out(3), out(4)]);
    let mut buckets = vec![wide; 1023];
    // 1,023 buckets of 64 bytes and one of 40 or 32: 65,536 or 65,528 bytes of description with its heads
    buckets.push(bucket(&[out(2), Action::PopVlan]));
    let long = s.group_mod(
        &group(1, GroupType::All, buckets.clone()),
        0,
        &mut Vec::new(),
    );
    assert_eq!(long, Err(Error::GROUP_MOD_FAILED_OUT_OF_BUCKETS));
    buckets.pop();
    buckets.push(bucket(&[out(2)]));
    make(&mut s, &group(1, GroupType::All, buckets));
}

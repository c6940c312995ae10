// SPDX-License-Identifier: Apache-2.0
//! Every multipart reply: its type, and what stands in it.

use super::*;
use tandem_ofpipeline::flows::{all_flows, blank};
use tandem_openflow::model::*;
use tandem_openflow::{Action, Field, Match, Oxm, port};

/// A switch with a flow that all packets meet, a group, a meter, and a packet that went from port 1 to port 2.
fn busy(version: Version) -> (Bench, ConnId) {
    let mut b = Bench::new(Settings {
        tables: 3,
        ..Settings::default()
    });
    let id = b.connect(version);
    let to_2 = Action::Output {
        port: 2,
        max_len: 0,
    };
    let mut flow = applying(vec![to_2]);
    if version == Version::V13 {
        b.fine(
            id,
            &Request::MeterMod(MeterMod {
                command: MeterCommand::Add,
                flags: meter_flags::KBPS,
                meter: 7,
                bands: vec![Band {
                    rate: 1_000,
                    burst: 0,
                    kind: BandType::Drop,
                }],
            }),
        );
        b.fine(
            id,
            &Request::GroupMod(GroupMod {
                command: GroupCommand::Add,
                kind: GroupType::All,
                group: 8,
                buckets: vec![Bucket {
                    weight: 0,
                    watch_port: port::ANY,
                    watch_group: GROUP_ANY,
                    actions: vec![to_2],
                }],
            }),
        );
        flow.instructions.apply = Some(vec![Action::Group(8)]);
        flow.instructions.meter = Some(7);
    }
    b.fine(id, &Request::FlowMod(flow));
    assert_eq!(b.frame(1, &ether(1, 2)).len(), 1);
    (b, id)
}

fn be(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |all, b| all << 8 | u64::from(*b))
}

#[test]
fn each_kind_of_1_3_is_answered_by_its_number() {
    let (mut b, id) = busy(Version::V13);
    let all = [
        (Asks::Desc, 0, 1056),
        (Asks::Flow(all_flows()), 1, 48 + 8 + 8 + 16),
        (Asks::Aggregate(all_flows()), 2, 24),
        (Asks::Table, 3, 3 * 24),
        (Asks::Port { port: port::ANY }, 4, 4 * 112),
        (Asks::Port { port: 1 }, 4, 112),
        (
            Asks::Queue {
                port: port::ANY,
                queue: QUEUE_ALL,
            },
            5,
            4 * 8 * 40,
        ),
        (Asks::Queue { port: 1, queue: 2 }, 5, 40),
        (Asks::Group { group: GROUP_ALL }, 6, 40 + 16),
        (Asks::Group { group: 99 }, 6, 0),
        (Asks::GroupDesc, 7, 8 + 16 + 16),
        (Asks::GroupFeatures, 8, 40),
        (Asks::Meter { meter: METER_ALL }, 9, 40 + 16),
        (Asks::MeterConfig { meter: 7 }, 10, 8 + 16),
        (Asks::MeterFeatures, 11, 16),
        (Asks::PortDesc, 13, 4 * 64),
    ];
    for (what, kind, length) in all {
        let said = b.ask(id, &asks(what.clone()));
        assert_eq!(said.len(), 1, "{what:?}");
        assert_eq!((said[0].kind, said[0].xid), (MULTIPART_REPLY, 77));
        assert_eq!(be(&said[0].body[..2]), kind);
        assert_eq!(said[0].body.len() - 8, length, "{what:?}");
    }
    let body = |b: &mut Bench, what| b.ask(id, &asks(what))[0].body[8..].to_vec();
    let sum = body(&mut b, Asks::Aggregate(all_flows()));
    assert_eq!(
        [be(&sum[..8]), be(&sum[8..16]), be(&sum[16..20])],
        [1, 64, 1]
    );
    let port1 = body(&mut b, Asks::Port { port: 1 });
    assert_eq!([be(&port1[8..16]), be(&port1[16..24])], [1, 0]);
    let port2 = body(&mut b, Asks::Port { port: 2 });
    assert_eq!([be(&port2[8..16]), be(&port2[16..24])], [0, 1]);
    let group = body(&mut b, Asks::Group { group: 8 });
    assert_eq!(
        [be(&group[4..8]), be(&group[8..12]), be(&group[16..24])],
        [8, 1, 1]
    );
    let meter = body(&mut b, Asks::Meter { meter: 7 });
    assert_eq!(
        [be(&meter[..4]), be(&meter[12..16]), be(&meter[16..24])],
        [7, 1, 1]
    );
}

#[test]
fn each_kind_of_1_0_is_answered_by_its_number() {
    let (mut b, id) = busy(Version::V10);
    for (what, kind, length) in [
        (Asks::Desc, 0, 1056),
        (Asks::Flow(all_flows()), 1, 88 + 8),
        (Asks::Aggregate(all_flows()), 2, 24),
        (Asks::Table, 3, 64),
        (Asks::Port { port: port::ANY }, 4, 4 * 104),
        (
            Asks::Queue {
                port: port::ANY,
                queue: QUEUE_ALL,
            },
            5,
            4 * 8 * 32,
        ),
    ] {
        let said = b.ask(id, &asks(what.clone()));
        assert_eq!((said.len(), said[0].kind), (1, 17), "{what:?}");
        assert_eq!(be(&said[0].body[..2]), kind);
        assert_eq!(said[0].body.len() - 4, length, "{what:?}");
    }
    // all ports are told of with the features
    let said = b.ask(id, &Request::Features);
    assert_eq!(said[0].body.len(), 24 + 4 * 48);
    assert_eq!(said[0].body[12], 1, "one table");
}

#[test]
fn long_answers_are_several_messages() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    for n in 0..2_000u128 {
        let mut m = blank();
        m.matching.fields = vec![tandem_openflow::Oxm::exact(
            tandem_openflow::Field::EthDst,
            n,
        )];
        b.fine(id, &Request::FlowMod(m));
    }
    let said = b.ask(id, &asks(Asks::Flow(all_flows())));
    assert!(said.len() > 1);
    let more: Vec<u64> = said.iter().map(|s| be(&s.body[2..4])).collect();
    assert_eq!(more.iter().sum::<u64>() as usize, said.len() - 1);
    assert_eq!(more.last(), Some(&0));
}

#[test]
fn the_features_say_what_there_is() {
    let settings = Settings {
        datapath: 0xabc,
        ..Settings::default()
    };
    let mut b = Bench::new(settings);
    let id = b.connect(Version::V13);
    let said = b.ask(id, &Request::Features);
    let body = &said[0].body;
    assert_eq!(be(&body[..8]), 0xabc);
    assert_eq!(be(&body[8..12]), 256, "buffers");
    assert_eq!(body[12..14], [255, 0], "tables, auxiliary");
    assert_eq!(be(&body[16..20]), 0b100_1111);
    let queues = b.ask(id, &Request::QueueConfig { port: port::ANY });
    assert_eq!(be(&queues[0].body[..4]), u64::from(port::ANY));
    assert!(queues[0].body.len() > 4 * 8 * 16);
}

#[test]
fn counters_of_a_switch_that_stood_alone_are_the_ports_too() {
    let mut b = Bench::new(Settings {
        fail: crate::Fail::Standalone,
        ..Settings::default()
    });
    b.frame(1, &ether(1, 2));
    let lost = crate::Lost {
        rx_dropped: 5,
        rx_errors: 6,
        tx_dropped: 7,
    };
    b.agent.set_lost(1, lost);
    let id = b.connect(Version::V13);
    let said = b.ask(id, &asks(Asks::Port { port: 1 }));
    let body = &said[0].body[8..];
    let n = |at: usize| be(&body[at..at + 8]);
    assert_eq!([n(8), n(24), n(40), n(48), n(56)], [1, 64, 5, 7, 6]);
}

#[test]
fn ports_count_on_and_lose_what_the_other_version_has_not() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V10);
    let flow = applying(vec![Action::Enqueue10 { port: 2, queue: 1 }]);
    b.fine(id, &Request::FlowMod(flow));
    assert_eq!(b.frame(1, &ether(1, 2)).len(), 1);
    let quiet = PortMod {
        port: 3,
        hw_addr: mac(3),
        config: port_config::NO_FLOOD10 | port_config::NO_FWD,
        mask: port_config::NO_FLOOD10 | port_config::NO_FWD,
        advertise: 0,
    };
    b.ask(id, &Request::PortMod(quiet));
    b.agent.disconnected(id, b.now);
    b.seconds(7);
    let id = b.connect(Version::V13);
    let nothing = FlowCommand::DeleteStrict;
    b.fine(
        id,
        &Request::FlowMod(FlowMod {
            command: nothing,
            ..blank()
        }),
    );
    let body = |b: &mut Bench, what| b.ask(id, &asks(what))[0].body[8..].to_vec();
    let port1 = body(&mut b, Asks::Port { port: 1 });
    assert_eq!([be(&port1[8..16]), be(&port1[24..32])], [1, 64]);
    assert_eq!(be(&port1[104..108]), 7, "seconds");
    let port2 = body(&mut b, Asks::Port { port: 2 });
    assert_eq!([be(&port2[16..24]), be(&port2[32..40])], [1, 64]);
    let queue = body(&mut b, Asks::Queue { port: 2, queue: 1 });
    assert_eq!([be(&queue[8..16]), be(&queue[16..24])], [64, 1]);
    assert_eq!(be(&queue[32..36]), 7, "seconds");
    let config = |b: &Bench| b.agent.datapath().ports().nth(2).unwrap().port.config;
    assert_eq!(config(&b), port_config::NO_FWD);
    assert!(!b.agent.datapath().switch().port(3).unwrap().port.no_flood);
    assert!(b.agent.datapath().switch().port(3).unwrap().port.no_fwd);
}

#[test]
fn what_is_too_long_for_a_message_is_refused() {
    let mut b = Bench::new(Settings {
        queues: 64,
        ..Settings::default()
    });
    for n in 5..=2_000 {
        b.agent.add_port(n, "more", mac(1), (true, 1_000), 1);
    }
    let id = b.connect(Version::V13);
    let all = Request::QueueConfig { port: port::ANY };
    assert_eq!(
        b.refused(id, &all),
        code(tandem_openflow::Error::QUEUE_OP_FAILED_EPERM)
    );
    let one = b.ask(id, &Request::QueueConfig { port: 7 });
    assert_eq!(one[0].body.len(), 8 + 64 * 16);
    b.agent.disconnected(id, b.now);
    // 1.0 tells of ports with the features alone
    let id = b.connect(Version::V10);
    assert_eq!(
        b.refused(id, &Request::Features),
        code(tandem_openflow::Error::BAD_REQUEST_EPERM)
    );
}

/// Bytes after the first turn, how many turns an answer to flow_stats needs, and the answer.
fn listed(b: &mut Bench, id: ConnId, requests: &[u8]) -> (usize, usize, Vec<Said>) {
    let room = b.agent.room(id);
    room[..requests.len()].copy_from_slice(requests);
    b.agent.filled(id, requests.len(), b.now);
    let more = b.agent.work(id, 100, b.now, &mut b.out);
    let first = b.agent.output(id).len();
    assert!(more, "{first} bytes in one turn");
    let mut said = b.said(id);
    let mut turns = 1;
    while b.agent.work(id, 100, b.now, &mut b.out) {
        turns += 1;
        // another controller's flow comes and goes: what is there all the while is told once
        let other = b.connect(b.agent.conn(id).unwrap().version().unwrap());
        for command in [FlowCommand::Add, FlowCommand::DeleteStrict] {
            let mut m = blank();
            (m.command, m.priority) = (command, 99);
            b.fine(other, &Request::FlowMod(m));
        }
        b.agent.disconnected(other, b.now);
        said.extend(b.said(id));
    }
    said.extend(b.said(id));
    (first, turns, said)
}

/// A million flows are not told in one turn: a page, what else there is to do, the next page. Nothing that was asked
/// behind it is answered before.
#[test]
fn many_flows_are_told_in_many_turns() {
    use tandem_openflow::{Field, Oxm, encode_request};
    for version in [Version::V13, Version::V10] {
        let mut b = Bench::new(Settings::default());
        let id = b.connect(version);
        let mut bytes = Vec::new();
        for n in 0..30_000u32 {
            let mut m = blank();
            m.cookie = u64::from(n);
            m.matching.fields = vec![Oxm::exact(Field::EthDst, u128::from(n))];
            encode_request(version, n, &Request::FlowMod(m), &mut bytes).unwrap();
        }
        assert_eq!(b.raw(id, &bytes), []);
        let mut both = Vec::new();
        let all = asks(Asks::Flow(all_flows()));
        encode_request(version, 5, &all, &mut both).unwrap();
        encode_request(version, 6, &Request::Barrier, &mut both).unwrap();
        let (first, _, said) = listed(&mut b, id, &both);
        assert!(first < 512 << 10, "{first}");
        let (barrier, parts) = said.split_last().unwrap();
        assert_eq!(barrier.xid, 6);
        let (last, others) = parts.split_last().unwrap();
        let (head, cookie) = match version {
            Version::V13 => (8, 24),
            Version::V10 => (4, 64),
        };
        assert_eq!(last.body[..4], [0, 1, 0, 0]);
        let mut seen = std::collections::BTreeSet::new();
        for m in parts {
            assert_eq!(m.xid, 5);
            let mut rest = &m.body[head..];
            while !rest.is_empty() {
                assert!(seen.insert(be(&rest[cookie..cookie + 8])));
                rest = &rest[be(&rest[..2]) as usize..];
            }
        }
        assert!(others.iter().all(|m| m.body[..4] == [0, 1, 0, 1]));
        assert_eq!(seen.len(), 30_000);
        // Nor are those looked at in one turn that are not meant
        let mut one = Vec::new();
        let by_cookie = FlowFilter {
            cookie: 20_000,
            cookie_mask: u64::MAX,
            ..all_flows()
        };
        encode_request(version, 7, &asks(Asks::Flow(by_cookie)), &mut one).unwrap();
        let (_, turns, said) = listed(&mut b, id, &one);
        assert!(turns > 7, "{turns}");
        assert!(version == Version::V10 || said.len() == 2);
        // Few of many are found in that turn
        let mut few = all_flows();
        few.matching.fields = vec![Oxm::exact(Field::EthDst, 20_000)];
        assert_eq!(b.ask(id, &asks(Asks::Flow(few))).len(), 1);
    }
}

/// A sum of many flows is not made in one turn: packets would wait.
#[test]
fn a_sum_of_many_flows_takes_several_turns() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    for n in 0..10_000u32 {
        let flow = FlowMod {
            matching: Match {
                fields: vec![Oxm::exact(Field::EthDst, u128::from(n))],
                exact: false,
            },
            ..blank()
        };
        b.fine(id, &Request::FlowMod(flow));
    }
    let mut message = Vec::new();
    encode_request(
        Version::V13,
        77,
        &asks(Asks::Aggregate(all_flows())),
        &mut message,
    )
    .unwrap();
    let room = b.agent.room(id);
    room[..message.len()].copy_from_slice(&message);
    b.agent.filled(id, message.len(), b.now);
    let mut turns = 0;
    while b.agent.work(id, 100, b.now, &mut b.out) {
        turns += 1;
    }
    assert!(turns >= 3, "{turns}");
    let said = b.said(id);
    assert_eq!(said.len(), 1);
    assert_eq!(be(&said[0].body[8 + 16..8 + 20]), 10_000);
}

// SPDX-License-Identifier: Apache-2.0
//! What is where: messages written down as the standard's structures have them, a width and a value for each member.

use crate::model::*;
use crate::{
    decode, encode, port, Action, Error, Field, Instructions, Match, Multiparts, Oxm, Version,
};

const V10: Version = Version::V10;
const V13: Version = Version::V13;

/// Members of so many bytes.
fn members(list: &[(usize, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for &(width, value) in list {
        let bytes = value.to_be_bytes();
        let used = width.min(8);
        out.resize(out.len() + width - used, 0);
        out.extend_from_slice(&bytes[8 - used..]);
    }
    out
}

/// A message with its header.
fn message(version: Version, kind: u8, body: &[Vec<u8>]) -> Vec<u8> {
    let body = body.concat();
    let length = 8 + body.len() as u64;
    let head = [(1, version as u64), (1, kind.into()), (2, length), (4, 9)];
    [members(&head), body].concat()
}

fn sent(version: Version, reply: &Reply<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(version, 9, reply, &mut out).unwrap();
    out
}

/// A reply's part without what is before it.
fn part(version: Version, asks: &Asks<'_>, part: &Part<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Multiparts::new(version, 9, asks, &mut out).add(part).unwrap();
    let head = if version == V10 { 12 } else { 16 };
    out.split_off(head)
}

fn got(version: Version, bytes: &[u8]) -> Request<'_> {
    decode(version, bytes).unwrap().1
}

fn lifetime() -> Lifetime {
    Lifetime { sec: 71, nsec: 72 }
}

fn text(text: &str, n: usize) -> Vec<u8> {
    let mut out = text.as_bytes().to_vec();
    out.resize(n, 0);
    out
}

/// A match on a port and an EtherType, in either version.
fn matching() -> Match {
    Match {
        fields: vec![
            Oxm::exact(Field::InPort, 3),
            Oxm::exact(Field::EthType, 0x88cc),
        ],
        exact: false,
    }
}

fn matching13() -> Vec<u8> {
    let tlvs = [(2, 0x8000), (1, 0), (1, 4), (4, 3), (2, 0x8000), (1, 5 << 1), (1, 2), (2, 0x88cc)];
    [members(&[(2, 1), (2, 18)]), members(&tlvs), vec![0; 6]].concat()
}

fn matching10() -> Vec<u8> {
    let wildcards = 0x3f_ffff & !1 & !(1 << 4);
    members(&[(4, wildcards), (2, 3), (6, 0), (6, 0), (2, 0), (1, 0), (1, 0), (2, 0x88cc), (16, 0)])
}

fn instructions() -> Instructions {
    Instructions {
        meter: Some(81),
        apply: Some(vec![Action::Output { port: 4, max_len: 5 }]),
        clear: true,
        write: Some(vec![Action::Group(6)]),
        metadata: Some((82, 83)),
        goto: Some(84),
    }
}

fn instructions13() -> Vec<u8> {
    members(&[
        (2, 6), (2, 8), (4, 81),
        (2, 4), (2, 24), (4, 0), (2, 0), (2, 16), (4, 4), (2, 5), (6, 0),
        (2, 5), (2, 8), (4, 0),
        (2, 3), (2, 16), (4, 0), (2, 22), (2, 8), (4, 6),
        (2, 2), (2, 24), (4, 0), (8, 82), (8, 83),
        (2, 1), (2, 8), (1, 84), (3, 0),
    ])
}

fn a_port() -> Port {
    Port {
        number: 11,
        hw_addr: [2, 0, 0, 0, 0, 12],
        name: "swp1".into(),
        config: port_config::NO_FWD,
        state: port_state::LINK_DOWN | port_state::BLOCKED,
        current: port_features::FD_1GB | port_features::COPPER,
        advertised: port_features::FD_10GB | port_features::FIBER,
        supported: port_features::FD_100MB | port_features::AUTONEG,
        peer: port_features::FD_10MB | port_features::PAUSE_ASYM,
        current_speed: 13,
        max_speed: 14,
    }
}

fn port13() -> Vec<u8> {
    [
        members(&[(4, 11), (4, 0), (6, 0x0200_0000_000c), (2, 0)]),
        text("swp1", 16),
        members(&[(4, 0x20), (4, 3), (4, 0x820), (4, 0x1040), (4, 0x2008), (4, 0x8002), (4, 13), (4, 14)]),
    ]
    .concat()
}

fn port10() -> Vec<u8> {
    [
        members(&[(2, 11), (6, 0x0200_0000_000c)]),
        text("swp1", 16),
        members(&[(4, 0x20), (4, 0x301), (4, 0xa0), (4, 0x140), (4, 0x208), (4, 0x802)]),
    ]
    .concat()
}

#[test]
fn features_config_roles_and_filters() {
    let features = Features {
        datapath: 1,
        buffers: 2,
        tables: 3,
        auxiliary: 4,
        capabilities: capabilities::FLOW_STATS | capabilities::GROUP_STATS,
        ports: vec![a_port()],
    };
    let wanted = [(8, 1), (4, 2), (1, 3), (1, 4), (2, 0), (4, 9), (4, 0)];
    assert_eq!(
        sent(V13, &Reply::Features(&features)),
        message(V13, 6, &[members(&wanted)])
    );
    let wanted = [(8, 1), (4, 2), (1, 3), (3, 0), (4, 0x81), (4, 0xfff)];
    assert_eq!(
        sent(V10, &Reply::Features(&features)),
        message(V10, 6, &[members(&wanted), port10()])
    );
    let config = Config {
        fragments: Fragments::Drop,
        miss_send_len: 128,
    };
    for version in [V10, V13] {
        let wanted = message(version, 8, &[members(&[(2, 1), (2, 128)])]);
        assert_eq!(sent(version, &Reply::Config(config)), wanted);
        let request = message(version, 9, &[members(&[(2, 1), (2, 128)])]);
        assert_eq!(got(version, &request), Request::SetConfig(config));
    }
    let role = RoleRequest {
        role: Role::Master,
        generation: 5,
    };
    let body = || vec![members(&[(4, 2), (4, 0), (8, 5)])];
    assert_eq!(sent(V13, &Reply::Role(role)), message(V13, 25, &body()));
    assert_eq!(got(V13, &message(V13, 24, &body())), Request::Role(role));
    let filters = Async {
        packet_in: [1, 2],
        port_status: [3, 4],
        flow_removed: [5, 6],
    };
    let body = || vec![members(&[(4, 1), (4, 2), (4, 3), (4, 4), (4, 5), (4, 6)])];
    assert_eq!(sent(V13, &Reply::Async(filters)), message(V13, 27, &body()));
    assert_eq!(got(V13, &message(V13, 28, &body())), Request::SetAsync(filters));
    assert_eq!(sent(V13, &Reply::Barrier), message(V13, 21, &[]));
    assert_eq!(sent(V10, &Reply::Barrier), message(V10, 19, &[]));
    assert!(sent(V10, &Reply::Role(role)).is_empty());
    let error = Reply::Error {
        error: Error::BAD_MATCH_BAD_PREREQ,
        data: &[7, 8],
    };
    assert_eq!(sent(V13, &error), message(V13, 1, &[members(&[(2, 4), (2, 9), (1, 7), (1, 8)])]));
}

#[test]
fn packets() {
    let fields = [Oxm::exact(Field::InPort, 3), Oxm::exact(Field::EthType, 0x88cc)];
    let packet = Reply::PacketIn(PacketIn {
        buffer: None,
        total_len: 1,
        reason: PacketReason::InvalidTtl,
        table: 2,
        cookie: 3,
        fields: &fields,
        data: &[4, 5],
    });
    let head = [(4, 0xffff_ffff), (2, 1), (1, 2), (1, 2), (8, 3)];
    assert_eq!(
        sent(V13, &packet),
        message(V13, 10, &[members(&head), matching13(), vec![0, 0, 4, 5]])
    );
    let head = [(4, 0xffff_ffff), (2, 1), (2, 3), (1, 1), (1, 0)];
    assert_eq!(sent(V10, &packet), message(V10, 10, &[members(&head), vec![4, 5]]));
    let out = |in_port| {
        Request::PacketOut(PacketOut {
            buffer: Some(1),
            in_port,
            actions: vec![Action::Output { port: 4, max_len: 5 }],
            data: &[7],
        })
    };
    let body = [(4, 1), (4, 3), (2, 16), (6, 0), (2, 0), (2, 16), (4, 4), (2, 5), (6, 0), (1, 7)];
    assert_eq!(got(V13, &message(V13, 13, &[members(&body)])), out(3));
    let body = [(4, 1), (2, 0xffff), (2, 8), (2, 0), (2, 8), (2, 4), (2, 5), (1, 7)];
    assert_eq!(got(V10, &message(V10, 13, &[members(&body)])), out(port::ANY));
}

#[test]
fn flows() {
    let mut flow = FlowMod {
        cookie: 21,
        cookie_mask: 22,
        table: 23,
        command: FlowCommand::ModifyStrict,
        idle_timeout: 24,
        hard_timeout: 25,
        priority: 26,
        buffer: Some(27),
        out_port: 28,
        out_group: 29,
        flags: flow_flags::NO_PKT_COUNTS,
        matching: matching(),
        instructions: instructions(),
    };
    let head = [
        (8, 21), (8, 22), (1, 23), (1, 2), (2, 24), (2, 25), (2, 26), (4, 27), (4, 28), (4, 29), (2, 8), (2, 0),
    ];
    let bytes = message(V13, 14, &[members(&head), matching13(), instructions13()]);
    assert_eq!(got(V13, &bytes), Request::FlowMod(flow.clone()));
    flow.cookie_mask = 0;
    flow.table = 0;
    flow.out_group = GROUP_ANY;
    flow.flags = flow_flags::CHECK_OVERLAP;
    flow.instructions = Instructions {
        apply: flow.instructions.apply.take(),
        ..Instructions::default()
    };
    let rest = [
        (8, 21), (2, 2), (2, 24), (2, 25), (2, 26), (4, 27), (2, 28), (2, 2), (2, 0), (2, 8), (2, 4), (2, 5),
    ];
    let bytes = message(V10, 14, &[matching10(), members(&rest)]);
    assert_eq!(got(V10, &bytes), Request::FlowMod(flow.clone()));
    // what is added takes the place and the counters of what was there (1.0 §4.6)
    let mut add = bytes;
    add[57] = 0;
    let Request::FlowMod(add) = got(V10, &add) else {
        panic!("no flow");
    };
    assert_eq!(add.flags, flow_flags::CHECK_OVERLAP | flow_flags::RESET_COUNTS);
}

#[test]
fn removed_flows_and_their_statistics() {
    let removed = FlowRemoved {
        cookie: 21,
        priority: 22,
        reason: RemovedReason::GroupDelete,
        table: 23,
        lifetime: lifetime(),
        idle_timeout: 24,
        hard_timeout: 25,
        packets: 26,
        bytes: 27,
        matching: matching(),
    };
    let head = [(8, 21), (2, 22), (1, 3), (1, 23), (4, 71), (4, 72), (2, 24), (2, 25), (8, 26), (8, 27)];
    assert_eq!(
        sent(V13, &Reply::FlowRemoved(&removed)),
        message(V13, 11, &[members(&head), matching13()])
    );
    let rest = [(8, 21), (2, 22), (1, 2), (1, 0), (4, 71), (4, 72), (2, 24), (2, 0), (8, 26), (8, 27)];
    assert_eq!(
        sent(V10, &Reply::FlowRemoved(&removed)),
        message(V10, 11, &[matching10(), members(&rest)])
    );
    let stats = FlowStats {
        table: 31,
        lifetime: lifetime(),
        priority: 32,
        idle_timeout: 33,
        hard_timeout: 34,
        flags: flow_flags::SEND_FLOW_REM,
        cookie: 35,
        packets: 36,
        bytes: 37,
        matching: matching(),
        instructions: instructions(),
    };
    let filter = FlowFilter {
        table: 41,
        out_port: 42,
        out_group: 43,
        cookie: 44,
        cookie_mask: 45,
        matching: matching(),
    };
    let asks = Asks::Flow(filter.clone());
    let length = 48 + 24 + instructions13().len() as u64;
    let head = [
        (2, length), (1, 31), (1, 0), (4, 71), (4, 72), (2, 32), (2, 33), (2, 34), (2, 1), (4, 0), (8, 35), (8, 36),
        (8, 37),
    ];
    assert_eq!(
        part(V13, &asks, &Part::Flow(&stats)),
        [members(&head), matching13(), instructions13()].concat()
    );
    let (head, rest) = (
        [(2, 96), (1, 31), (1, 0)],
        [
            (4, 71), (4, 72), (2, 32), (2, 33), (2, 34), (6, 0), (8, 35), (8, 36), (8, 37), (2, 0), (2, 8), (2, 4),
            (2, 5),
        ],
    );
    assert_eq!(
        part(V10, &asks, &Part::Flow(&stats)),
        [members(&head), matching10(), members(&rest)].concat()
    );
    let body = [(2, 1), (2, 1), (4, 0), (1, 41), (3, 0), (4, 42), (4, 43), (4, 0), (8, 44), (8, 45)];
    let request = message(V13, 18, &[members(&body), matching13()]);
    let wanted = Multipart { more: true, asks };
    assert_eq!(got(V13, &request), Request::Multipart(wanted));
    let aggregate = Aggregate {
        packets: 1,
        bytes: 2,
        flows: 3,
    };
    for version in [V10, V13] {
        let wanted = members(&[(8, 1), (8, 2), (4, 3), (4, 0)]);
        let asks = Asks::Aggregate(filter.clone());
        assert_eq!(part(version, &asks, &Part::Aggregate(&aggregate)), wanted);
    }
}

#[test]
fn ports_and_queues() {
    let reason = PortReason::Modify;
    let port = &a_port();
    let status = Reply::PortStatus { reason, port };
    let head = || members(&[(1, 2), (7, 0)]);
    assert_eq!(sent(V13, &status), message(V13, 12, &[head(), port13()]));
    assert_eq!(sent(V10, &status), message(V10, 12, &[head(), port10()]));
    assert_eq!(part(V13, &Asks::PortDesc, &Part::PortDesc(&a_port())), port13());
    let change = PortMod {
        port: 1,
        hw_addr: [2, 0, 0, 0, 0, 3],
        config: 4,
        mask: 0x20,
        advertise: port_features::PAUSE,
    };
    let body = [(4, 1), (4, 0), (6, 0x0200_0000_0003), (2, 0), (4, 4), (4, 0x20), (4, 0x4000), (4, 0)];
    assert_eq!(got(V13, &message(V13, 16, &[members(&body)])), Request::PortMod(change));
    let body = [(2, 1), (6, 0x0200_0000_0003), (4, 4), (4, 0x20), (4, 0x400), (4, 0)];
    assert_eq!(got(V10, &message(V10, 15, &[members(&body)])), Request::PortMod(change));
    let counters = PortStats {
        port: 1,
        rx_packets: 2,
        tx_packets: 3,
        rx_bytes: 4,
        tx_bytes: 5,
        rx_dropped: 6,
        tx_dropped: 7,
        rx_errors: 8,
        tx_errors: 9,
        rx_frame_err: 10,
        rx_over_err: 11,
        rx_crc_err: 12,
        collisions: 13,
        lifetime: lifetime(),
    };
    let numbers: Vec<(usize, u64)> = (2..14).map(|n| (8, n)).collect();
    let asks = Asks::Port { port: port::ANY };
    let wanted = [members(&[(4, 1), (4, 0)]), members(&numbers), members(&[(4, 71), (4, 72)])];
    assert_eq!(part(V13, &asks, &Part::Port(&counters)), wanted.concat());
    let wanted = [members(&[(2, 1), (6, 0)]), members(&numbers)];
    assert_eq!(part(V10, &asks, &Part::Port(&counters)), wanted.concat());
    let queue = QueueStats {
        port: 1,
        queue: 2,
        tx_bytes: 3,
        tx_packets: 4,
        tx_errors: 5,
        lifetime: lifetime(),
    };
    let asks = Asks::Queue {
        port: port::ANY,
        queue: QUEUE_ALL,
    };
    let wanted = members(&[(4, 1), (4, 2), (8, 3), (8, 4), (8, 5), (4, 71), (4, 72)]);
    assert_eq!(part(V13, &asks, &Part::Queue(&queue)), wanted);
    let wanted = members(&[(2, 1), (2, 0), (4, 2), (8, 3), (8, 4), (8, 5)]);
    assert_eq!(part(V10, &asks, &Part::Queue(&queue)), wanted);
    let queues = [Queue {
        queue: 1,
        port: 2,
        min_rate: Some(3),
        max_rate: Some(4),
    }];
    let config = Reply::QueueConfig {
        port: 5,
        queues: &queues,
    };
    let body = [
        (4, 5), (4, 0), (4, 1), (4, 2), (2, 48), (6, 0), (2, 1), (2, 16), (4, 0), (2, 3), (6, 0), (2, 2), (2, 16),
        (4, 0), (2, 4), (6, 0),
    ];
    assert_eq!(sent(V13, &config), message(V13, 23, &[members(&body)]));
    let body = [(2, 5), (6, 0), (4, 1), (2, 24), (2, 0), (2, 1), (2, 16), (4, 0), (2, 3), (6, 0)];
    assert_eq!(sent(V10, &config), message(V10, 21, &[members(&body)]));
}

#[test]
fn groups_and_meters() {
    let bucket = Bucket {
        weight: 1,
        watch_port: 2,
        watch_group: 3,
        actions: vec![Action::SetQueue(4)],
    };
    let bytes = || members(&[(2, 24), (2, 1), (4, 2), (4, 3), (4, 0), (2, 21), (2, 8), (4, 4)]);
    let group = GroupMod {
        command: GroupCommand::Modify,
        kind: GroupType::FastFailover,
        group: 5,
        buckets: vec![bucket.clone()],
    };
    let request = message(V13, 15, &[members(&[(2, 1), (1, 3), (1, 0), (4, 5)]), bytes()]);
    assert_eq!(got(V13, &request), Request::GroupMod(group));
    let desc = GroupDesc {
        group: 5,
        kind: GroupType::Select,
        buckets: vec![bucket],
    };
    let wanted = [members(&[(2, 32), (1, 1), (1, 0), (4, 5)]), bytes()].concat();
    assert_eq!(part(V13, &Asks::GroupDesc, &Part::GroupDesc(&desc)), wanted);
    let stats = GroupStats {
        group: 1,
        references: 2,
        packets: 3,
        bytes: 4,
        lifetime: lifetime(),
        buckets: vec![(5, 6), (7, 8)],
    };
    let wanted = [
        (2, 72), (2, 0), (4, 1), (4, 2), (4, 0), (8, 3), (8, 4), (4, 71), (4, 72), (8, 5), (8, 6), (8, 7), (8, 8),
    ];
    assert_eq!(part(V13, &Asks::Group { group: 1 }, &Part::Group(&stats)), members(&wanted));
    let features = GroupFeatures {
        types: 1,
        capabilities: 2,
        max_groups: [3, 4, 5, 6],
        actions: [7, 8, 9, 10],
    };
    let wanted: Vec<(usize, u64)> = (1..11).map(|n| (4, n)).collect();
    let got_part = part(V13, &Asks::GroupFeatures, &Part::GroupFeatures(&features));
    assert_eq!(got_part, members(&wanted));

    let bands = || {
        let of = |rate, burst, kind| Band { rate, burst, kind };
        vec![of(1, 2, BandType::Drop), of(3, 4, BandType::DscpRemark(5))]
    };
    let bytes = || {
        members(&[
            (2, 1), (2, 16), (4, 1), (4, 2), (4, 0), (2, 2), (2, 16), (4, 3), (4, 4), (1, 5), (3, 0),
        ])
    };
    let meter = MeterMod {
        command: MeterCommand::Add,
        flags: meter_flags::PKTPS,
        meter: 6,
        bands: bands(),
    };
    let request = message(V13, 29, &[members(&[(2, 0), (2, 2), (4, 6)]), bytes()]);
    assert_eq!(got(V13, &request), Request::MeterMod(meter));
    let config = MeterConfig {
        meter: 6,
        flags: meter_flags::KBPS,
        bands: bands(),
    };
    let wanted = [members(&[(2, 40), (2, 1), (4, 6)]), bytes()].concat();
    let asks = Asks::MeterConfig { meter: 6 };
    assert_eq!(part(V13, &asks, &Part::MeterConfig(&config)), wanted);
    let stats = MeterStats {
        meter: 1,
        flows: 2,
        packets: 3,
        bytes: 4,
        lifetime: lifetime(),
        bands: vec![(5, 6)],
    };
    let wanted = [
        (4, 1), (2, 56), (6, 0), (4, 2), (8, 3), (8, 4), (4, 71), (4, 72), (8, 5), (8, 6),
    ];
    assert_eq!(part(V13, &Asks::Meter { meter: 1 }, &Part::Meter(&stats)), members(&wanted));
    let features = MeterFeatures {
        max_meters: 1,
        band_types: 2,
        capabilities: 3,
        max_bands: 4,
        max_color: 5,
    };
    let got_part = part(V13, &Asks::MeterFeatures, &Part::MeterFeatures(&features));
    assert_eq!(got_part, members(&[(4, 1), (4, 2), (4, 3), (1, 4), (1, 5), (2, 0)]));
}

#[test]
fn tables() {
    let stats = TableStats {
        table: 1,
        name: "acl".into(),
        max_entries: 2,
        active: 3,
        lookups: 4,
        matched: 5,
    };
    let got_part = part(V13, &Asks::Table, &Part::Table(&stats));
    assert_eq!(got_part, members(&[(1, 1), (3, 0), (4, 3), (8, 4), (8, 5)]));
    let wanted = [
        members(&[(1, 1), (3, 0)]),
        text("acl", 32),
        members(&[(4, 0x3f_ffff), (4, 2), (4, 3), (8, 4), (8, 5)]),
    ];
    assert_eq!(part(V10, &Asks::Table, &Part::Table(&stats)), wanted.concat());
    let id = |field, masked| FieldId { field, masked };
    let features = TableFeatures {
        table: 1,
        name: "acl".into(),
        metadata_match: 2,
        metadata_write: 3,
        config: 4,
        max_entries: 5,
        properties: vec![
            Property::Instructions {
                miss: true,
                kinds: vec![1, 4],
            },
            Property::NextTables {
                miss: false,
                tables: vec![7, 8, 9],
            },
            Property::Actions {
                miss: false,
                write: true,
                kinds: vec![22],
            },
            Property::Match(vec![id(Field::EthDst, true)]),
            Property::Wildcards(vec![id(Field::InPort, false)]),
            Property::SetField {
                miss: true,
                write: false,
                fields: vec![id(Field::MplsLabel, false)],
            },
        ],
    };
    let wanted = [
        members(&[(2, 136), (1, 1), (5, 0)]),
        text("acl", 32),
        members(&[
            (8, 2), (8, 3), (4, 4), (4, 5),
            (2, 1), (2, 12), (2, 1), (2, 4), (2, 4), (2, 4), (4, 0),
            (2, 2), (2, 7), (1, 7), (1, 8), (1, 9), (1, 0),
            (2, 4), (2, 8), (2, 22), (2, 4),
            (2, 8), (2, 8), (2, 0x8000), (1, 7), (1, 12),
            (2, 10), (2, 8), (2, 0x8000), (1, 0), (1, 4),
            (2, 15), (2, 8), (2, 0x8000), (1, 68), (1, 4),
        ]),
    ]
    .concat();
    let asks = Asks::TableFeatures(Vec::new());
    let mut wanted = wanted;
    let length = wanted.len() as u16;
    wanted[..2].copy_from_slice(&length.to_be_bytes());
    assert_eq!(part(V13, &asks, &Part::TableFeatures(&features)), wanted);
    let request = message(V13, 18, &[members(&[(2, 12), (2, 0), (4, 0)]), wanted]);
    let asked = Multipart {
        more: false,
        asks: Asks::TableFeatures(vec![features]),
    };
    assert_eq!(got(V13, &request), Request::Multipart(asked));
}

#[test]
fn descriptions() {
    let desc = Desc {
        manufacturer: "m".into(),
        hardware: "h".into(),
        software: "s".into(),
        serial: "12345678901234567890123456789012345".into(),
        datapath: "d".into(),
    };
    let serial = text("1234567890123456789012345678901", 32);
    let wanted = [text("m", 256), text("h", 256), text("s", 256), serial, text("d", 256)].concat();
    for version in [V10, V13] {
        assert_eq!(part(version, &Asks::Desc, &Part::Desc(&desc)), wanted);
    }
    // a character is not cut in the middle
    let mut port = a_port();
    port.name = "ääääääää".into();
    let bytes = part(V13, &Asks::PortDesc, &Part::PortDesc(&port));
    assert_eq!(bytes[16..32], text("äääääää", 16));
}

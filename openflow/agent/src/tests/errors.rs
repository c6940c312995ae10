// SPDX-License-Identifier: Apache-2.0
//! The type and code of each refusal, and that nothing of what was refused is done.

use super::*;
use tandem_openflow::model::*;
use tandem_openflow::{Action, Field, Oxm, port};

fn to(port: u32) -> Action {
    Action::Output { port, max_len: 128 }
}

fn flows(b: &Bench) -> u32 {
    b.agent
        .datapath()
        .switch()
        .table_stats()
        .map(|t| t.active)
        .sum()
}

#[test]
fn messages_as_such() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let raw = |b: &mut Bench, m: &[u8]| {
        let said = b.raw(id, m);
        let (kind, code, data) = said[0].error();
        assert_eq!(data, m);
        (kind, code)
    };
    // another version, an unknown type, a short one, a longer one than there is of its kind
    assert_eq!(
        raw(&mut b, &[1, 5, 0, 8, 0, 0, 0, 9]),
        code(Error::BAD_REQUEST_BAD_VERSION)
    );
    assert_eq!(
        raw(&mut b, &[4, 99, 0, 8, 0, 0, 0, 9]),
        code(Error::BAD_REQUEST_BAD_TYPE)
    );
    assert_eq!(
        raw(&mut b, &[4, 14, 0, 12, 0, 0, 0, 9, 1, 1, 1, 1]),
        code(Error::BAD_REQUEST_BAD_LEN)
    );
    assert_eq!(
        raw(&mut b, &[4, 5, 0, 10, 0, 0, 0, 9, 1, 1]),
        code(Error::BAD_REQUEST_BAD_LEN)
    );
    assert!(b.agent.conn(id).unwrap().end().is_none());
    // a length below that of a header: nobody knows where the next message begins
    let said = b.raw(id, &[4, 5, 0, 7, 0, 0, 0, 9]);
    assert_eq!(
        (said[0].error().0, said[0].error().1),
        code(Error::BAD_REQUEST_BAD_LEN)
    );
    assert!(
        b.agent
            .conn(id)
            .unwrap()
            .end()
            .unwrap()
            .contains("length of a message")
    );
    assert_eq!(b.raw(id, &[4, 5, 0, 8, 0, 0, 0, 9]), []);
}

#[test]
fn half_a_message_waits_for_the_other_half() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let whole = [4, 5, 0, 8, 0, 0, 0, 9];
    for cut in 1..8 {
        assert_eq!(b.raw(id, &whole[..cut]), []);
        assert_eq!(b.raw(id, &whole[cut..])[0].kind, FEATURES_REPLY);
    }
}

#[test]
fn any_bytes_end_in_errors_or_in_the_end_of_the_connection() {
    let mut seed = 0x1234_5678_9abc_def1u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for version in [Version::V10, Version::V13] {
        let mut b = Bench::new(Settings::default());
        for _ in 0..300 {
            let id = b.connect(version);
            let mut bytes = Vec::new();
            for _ in 0..20 {
                let length = 8 + (next() % 200) as u16;
                bytes.extend([version as u8, (next() % 32) as u8]);
                bytes.extend(length.to_be_bytes());
                bytes.extend((4..length).map(|_| (next() >> 24) as u8 & (next() as u8)));
            }
            b.raw(id, &bytes);
            b.agent.disconnected(id, b.now);
        }
    }
}

/// Messages that a controller might send, of every kind and with any content: some are done and some refused, each once,
/// and those that are answered by what is there have an answer.
#[test]
fn every_message_is_done_answered_or_refused_once() {
    use tandem_openflow::random::{Source, stretch};
    for version in [Version::V10, Version::V13] {
        let mut b = Bench::new(Settings {
            tables: 4,
            ..Settings::default()
        });
        let (id, other) = (b.connect(version), b.connect(version));
        let mut refusals = 0;
        for seed in 0..4_000 {
            let bytes = stretch(seed, 3_000);
            let request = Source::new(&bytes).request(version);
            let said = b.ask(id, &request);
            assert_eq!(b.agent.conn(id).unwrap().end(), None, "{request:?}");
            let errors = said.iter().filter(|s| s.kind == 1).count();
            let barrier = b.ask(id, &Request::Barrier);
            assert_eq!(barrier.last().unwrap().xid, 77, "{request:?}");
            assert!(errors <= 1, "{request:?}: {said:?}");
            refusals += errors;
            let answered = matches!(
                request,
                Request::Echo(_) | Request::Features | Request::GetConfig | Request::GetAsync
            );
            assert!(!answered || said.len() == 1, "{request:?}");
            // frames of any kind meet whatever stands in the tables
            for port in 1..=4 {
                b.frame(
                    port,
                    &bytes[port as usize * 100..][..14 + seed as usize % 200],
                );
            }
            b.seconds(u64::from(seed % 50 == 0));
            for id in [id, other] {
                b.said(id);
                b.raw(id, &[version as u8, 3, 0, 8, 0, 0, 0, 0]);
            }
        }
        assert!(refusals > 100, "{refusals}");
    }
}

#[test]
fn unknown_experimenters_queues_ports_tables_meters() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let experimenter = Experimenter {
        experimenter: 7,
        kind: 1,
        data: &[],
    };
    for (request, error) in [
        (
            Request::Experimenter(experimenter),
            Error::BAD_REQUEST_BAD_EXPERIMENTER,
        ),
        (
            asks(Asks::Experimenter(experimenter)),
            Error::BAD_REQUEST_BAD_EXPERIMENTER,
        ),
        (
            Request::QueueConfig { port: 9 },
            Error::QUEUE_OP_FAILED_BAD_PORT,
        ),
        (asks(Asks::Port { port: 9 }), Error::BAD_REQUEST_BAD_PORT),
        (
            asks(Asks::Queue { port: 9, queue: 0 }),
            Error::QUEUE_OP_FAILED_BAD_PORT,
        ),
        (
            asks(Asks::Queue { port: 1, queue: 99 }),
            Error::QUEUE_OP_FAILED_BAD_QUEUE,
        ),
        (
            asks(Asks::Meter { meter: 4 }),
            Error::METER_MOD_FAILED_UNKNOWN_METER,
        ),
        (
            asks(Asks::Meter {
                meter: METER_CONTROLLER,
            }),
            Error::METER_MOD_FAILED_UNKNOWN_METER,
        ),
        (
            asks(Asks::MeterConfig { meter: 0 }),
            Error::METER_MOD_FAILED_INVALID_METER,
        ),
        (
            asks(Asks::Meter {
                meter: METER_MAX + 1,
            }),
            Error::METER_MOD_FAILED_INVALID_METER,
        ),
        (
            Request::TableMod(TableMod {
                table: 255,
                config: 0,
            }),
            Error::BAD_REQUEST_BAD_TYPE,
        ),
    ] {
        if let Request::TableMod(_) = request {
            // all tables: that is fine
            b.fine(id, &request);
            continue;
        }
        assert_eq!(b.refused(id, &request), code(error), "{request:?}");
    }
    let mut few = Bench::new(Settings {
        tables: 3,
        ..Settings::default()
    });
    let id = few.connect(Version::V13);
    let table = Request::TableMod(TableMod {
        table: 3,
        config: 0,
    });
    assert_eq!(
        few.refused(id, &table),
        code(Error::TABLE_MOD_FAILED_BAD_TABLE)
    );
    let filter = FlowFilter {
        table: 3,
        ..tandem_ofpipeline::flows::all_flows()
    };
    for wish in [Asks::Flow(filter.clone()), Asks::Aggregate(filter)] {
        assert_eq!(
            few.refused(id, &asks(wish)),
            code(Error::BAD_REQUEST_BAD_TABLE_ID)
        );
    }
    let more = Request::Multipart(Multipart {
        more: true,
        asks: Asks::Desc,
    });
    assert_eq!(
        few.refused(id, &more),
        code(Error::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW)
    );
    let mut config = Config {
        fragments: Fragments::Reassemble,
        miss_send_len: 9,
    };
    assert_eq!(
        few.refused(id, &Request::SetConfig(config)),
        code(Error::SWITCH_CONFIG_FAILED_BAD_FLAGS)
    );
    config.fragments = Fragments::Drop;
    few.fine(id, &Request::SetConfig(config));
    assert_eq!(few.ask(id, &Request::GetConfig)[0].body, [0, 1, 0, 9]);
}

#[test]
fn flows_that_can_not_be() {
    let mut b = Bench::new(Settings {
        tables: 3,
        max_flows: 2,
        ..Settings::default()
    });
    let id = b.connect(Version::V13);
    let field = |field, value| vec![Oxm::exact(field, value)];
    let set = |field, value| Action::SetField { field, value };
    let with = |f: &dyn Fn(&mut FlowMod)| {
        let mut m = applying(vec![to(2)]);
        f(&mut m);
        m
    };
    for (m, error) in [
        (with(&|m| m.table = 3), Error::FLOW_MOD_FAILED_BAD_TABLE_ID),
        (
            with(&|m| m.instructions.goto = Some(0)),
            Error::BAD_INSTRUCTION_BAD_TABLE_ID,
        ),
        (
            with(&|m| m.instructions.goto = Some(3)),
            Error::BAD_INSTRUCTION_BAD_TABLE_ID,
        ),
        (
            with(&|m| m.instructions.meter = Some(5)),
            Error::METER_MOD_FAILED_UNKNOWN_METER,
        ),
        (
            with(&|m| m.instructions.meter = Some(0)),
            Error::METER_MOD_FAILED_INVALID_METER,
        ),
        (
            with(&|m| m.instructions.meter = Some(METER_CONTROLLER)),
            Error::METER_MOD_FAILED_INVALID_METER,
        ),
        (
            with(&|m| m.matching.fields = field(Field::Ipv4Src, 1)),
            Error::BAD_MATCH_BAD_PREREQ,
        ),
        (
            applying(vec![Action::Group(7)]),
            Error::BAD_ACTION_BAD_OUT_GROUP,
        ),
        (
            applying(vec![to(port::TABLE)]),
            Error::BAD_ACTION_BAD_OUT_PORT,
        ),
        (
            applying(vec![to(port::LOCAL)]),
            Error::BAD_ACTION_BAD_OUT_PORT,
        ),
        (
            applying(vec![to(port::ANY)]),
            Error::BAD_ACTION_BAD_OUT_PORT,
        ),
        (
            applying(vec![Action::SetQueue(99)]),
            Error::BAD_ACTION_BAD_QUEUE,
        ),
        (
            applying(vec![set(Field::Ipv4Src, 1)]),
            Error::BAD_ACTION_MATCH_INCONSISTENT,
        ),
        (
            applying(vec![Action::PushVlan(0x0800)]),
            Error::BAD_ACTION_BAD_ARGUMENT,
        ),
    ] {
        assert_eq!(
            b.refused(id, &Request::FlowMod(m.clone())),
            code(error),
            "{m:?}"
        );
        assert_eq!(flows(&b), 0);
    }
    for n in 1..=2 {
        let m = with(&|m| m.matching.fields = field(Field::InPort, n));
        b.fine(id, &Request::FlowMod(m));
    }
    let third = with(&|m| m.matching.fields = field(Field::InPort, 3));
    for table in [0, 1] {
        let mut third = third.clone();
        third.table = table;
        assert_eq!(
            b.refused(id, &Request::FlowMod(third)),
            code(Error::FLOW_MOD_FAILED_TABLE_FULL)
        );
    }
    let overlap = with(&|m| m.flags = flow_flags::CHECK_OVERLAP);
    assert_eq!(
        b.refused(id, &Request::FlowMod(overlap)),
        code(Error::FLOW_MOD_FAILED_OVERLAP)
    );
    assert_eq!(flows(&b), 2);
    // one that replaces another has room
    b.fine(
        id,
        &Request::FlowMod(with(&|m| m.matching.fields = field(Field::InPort, 1))),
    );
}

#[test]
fn a_buffer_is_there_before_a_flow_is_taken() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let mut m = applying(vec![to(2)]);
    m.buffer = Some(12_345);
    assert_eq!(
        b.refused(id, &Request::FlowMod(m.clone())),
        code(Error::BAD_REQUEST_BUFFER_UNKNOWN)
    );
    assert_eq!(flows(&b), 0);
    m.buffer = None;
    m.instructions.apply = Some(vec![to(port::CONTROLLER)]);
    b.fine(id, &Request::FlowMod(m.clone()));
    b.frame(1, &ether(1, 2));
    let said = b.said(id);
    let buffer = u32::from_be_bytes(said[0].body[..4].try_into().unwrap());
    let out = |buffer, actions| {
        Request::PacketOut(PacketOut {
            buffer: Some(buffer),
            in_port: port::CONTROLLER,
            actions,
            data: &[],
        })
    };
    // an action that is refused leaves the packet where it is
    let bad = out(buffer, vec![Action::Group(1)]);
    assert_eq!(b.refused(id, &bad), code(Error::BAD_ACTION_BAD_OUT_GROUP));
    b.fine(id, &out(buffer, vec![to(3)]));
    assert_eq!(b.out.0, [(3, ether(1, 2))]);
    assert_eq!(
        b.refused(id, &out(buffer, vec![to(3)])),
        code(Error::BAD_REQUEST_BUFFER_EMPTY)
    );
    m.buffer = Some(buffer);
    assert_eq!(
        b.refused(id, &Request::FlowMod(m)),
        code(Error::BAD_REQUEST_BUFFER_EMPTY)
    );
}

#[test]
fn packet_outs_and_ports_that_are_not() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let frame = ether(1, 2);
    let out = |in_port, data| {
        Request::PacketOut(PacketOut {
            buffer: None,
            in_port,
            actions: vec![to(2)],
            data,
        })
    };
    assert_eq!(
        b.refused(id, &out(9, &frame)),
        code(Error::BAD_REQUEST_BAD_PORT)
    );
    assert_eq!(
        b.refused(id, &out(port::CONTROLLER, &[1, 2])),
        code(Error::BAD_REQUEST_BAD_PACKET)
    );
    assert_eq!(b.out.0, []);
    let change = |port, hw: u8, mask, advertise| {
        Request::PortMod(PortMod {
            port,
            hw_addr: mac(hw),
            config: mask,
            mask,
            advertise,
        })
    };
    assert_eq!(
        b.refused(id, &change(9, 9, 0, 0)),
        code(Error::PORT_MOD_FAILED_BAD_PORT)
    );
    assert_eq!(
        b.refused(id, &change(1, 2, 0, 0)),
        code(Error::PORT_MOD_FAILED_BAD_HW_ADDR)
    );
    let other = port_features::FD_10MB;
    assert_eq!(
        b.refused(id, &change(1, 1, 0, other)),
        code(Error::PORT_MOD_FAILED_BAD_ADVERTISE)
    );
    let said = b.ask(id, &change(1, 1, port_config::NO_FWD, 0));
    assert_eq!((said[0].kind, said[0].body[0]), (PORT_STATUS, 2));
    // as it is already: nothing to tell
    b.fine(id, &change(1, 1, port_config::NO_FWD, 0));
}

#[test]
fn groups_and_meters() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let bucket = |actions| Bucket {
        weight: 0,
        watch_port: port::ANY,
        watch_group: GROUP_ANY,
        actions,
    };
    let group = |command, group, kind, buckets| {
        Request::GroupMod(GroupMod {
            command,
            kind,
            group,
            buckets,
        })
    };
    let (add, modify) = (GroupCommand::Add, GroupCommand::Modify);
    let one = || vec![bucket(vec![to(1)])];
    b.fine(id, &group(add, 1, GroupType::All, one()));
    for (m, error) in [
        (
            group(add, 1, GroupType::All, one()),
            Error::GROUP_MOD_FAILED_GROUP_EXISTS,
        ),
        (
            group(modify, 2, GroupType::All, one()),
            Error::GROUP_MOD_FAILED_UNKNOWN_GROUP,
        ),
        (
            group(add, 2, GroupType::Indirect, Vec::new()),
            Error::GROUP_MOD_FAILED_INVALID_GROUP,
        ),
        (
            group(add, 2, GroupType::FastFailover, one()),
            Error::GROUP_MOD_FAILED_BAD_WATCH,
        ),
        (
            group(
                modify,
                1,
                GroupType::All,
                vec![bucket(vec![Action::Group(1)])],
            ),
            Error::GROUP_MOD_FAILED_LOOP,
        ),
    ] {
        assert_eq!(b.refused(id, &m), code(error), "{m:?}");
    }
    b.fine(
        id,
        &group(add, 2, GroupType::All, vec![bucket(vec![Action::Group(1)])]),
    );
    let gone = group(GroupCommand::Delete, 1, GroupType::All, Vec::new());
    assert_eq!(
        b.refused(id, &gone),
        code(Error::GROUP_MOD_FAILED_CHAINED_GROUP)
    );
    let band = |rate| {
        vec![Band {
            rate,
            burst: 0,
            kind: BandType::Drop,
        }]
    };
    let meter = |command, meter, rate| {
        let flags = meter_flags::PKTPS;
        Request::MeterMod(MeterMod {
            command,
            flags,
            meter,
            bands: band(rate),
        })
    };
    b.fine(id, &meter(MeterCommand::Add, 1, 5));
    assert_eq!(
        b.refused(id, &meter(MeterCommand::Add, 1, 5)),
        code(Error::METER_MOD_FAILED_METER_EXISTS)
    );
    assert_eq!(
        b.refused(id, &meter(MeterCommand::Modify, 2, 5)),
        code(Error::METER_MOD_FAILED_UNKNOWN_METER)
    );
    assert_eq!(
        b.refused(id, &meter(MeterCommand::Add, 2, 0)),
        code(Error::METER_MOD_FAILED_BAD_RATE)
    );
    // its flows go with it, and who wished to know is told
    let mut m = applying(vec![to(2)]);
    m.instructions.meter = Some(1);
    m.flags = flow_flags::SEND_FLOW_REM;
    b.fine(id, &Request::FlowMod(m));
    let said = b.ask(id, &meter(MeterCommand::Delete, 1, 1));
    assert_eq!(said[0].kind, FLOW_REMOVED);
    assert_eq!(flows(&b), 0);
}

#[test]
fn wishes_for_tables() {
    let mut b = Bench::new(Settings {
        tables: 3,
        ..Settings::default()
    });
    let id = b.connect(Version::V13);
    let have = crate::tables::features(b.agent.datapath().switch());
    let wish = |tables: Vec<TableFeatures>| asks(Asks::TableFeatures(tables));
    // what is there already is granted, by the same answer as to the question
    let asked = b.ask(id, &wish(Vec::new()));
    assert_eq!(b.ask(id, &wish(have.clone())), asked);
    let mut less = have[1].clone();
    less.max_entries = 5;
    less.properties.truncate(1);
    assert_eq!(b.ask(id, &wish(vec![less])), asked);
    // Faucet names the fields that may be left out with the masks that they may have otherwise
    let mut left_out = have[1].clone();
    for p in &mut left_out.properties {
        if let Property::Wildcards(fields) = p {
            for f in fields.iter_mut().filter(|f| f.field == Field::EthDst) {
                f.masked = true;
            }
        }
    }
    assert_ne!(left_out, have[1]);
    assert_eq!(b.ask(id, &wish(vec![left_out])), asked);
    let changed = |f: &dyn Fn(&mut TableFeatures)| {
        let mut t = have[1].clone();
        f(&mut t);
        wish(vec![t])
    };
    let next = |t: &mut TableFeatures| {
        t.properties = vec![Property::NextTables {
            miss: false,
            tables: vec![0],
        }];
    };
    for (m, error) in [
        (
            changed(&|t| t.table = 3),
            Error::TABLE_FEATURES_FAILED_BAD_TABLE,
        ),
        (
            wish(vec![have[0].clone(), have[0].clone()]),
            Error::TABLE_FEATURES_FAILED_BAD_TABLE,
        ),
        (
            changed(&|t| t.max_entries = u32::MAX),
            Error::TABLE_FEATURES_FAILED_BAD_ARGUMENT,
        ),
        (changed(&next), Error::TABLE_FEATURES_FAILED_BAD_ARGUMENT),
    ] {
        assert_eq!(b.refused(id, &m), code(error));
    }
    // in several messages, up to a limit
    let part = |more, n: usize| {
        let asks = Asks::TableFeatures(vec![have[n].clone()]);
        Request::Multipart(Multipart { more, asks })
    };
    b.fine(id, &part(true, 0));
    assert_eq!(b.ask(id, &part(false, 1)), asked);
    for _ in 0..64 {
        b.fine(id, &part(true, 0));
    }
    assert_eq!(
        b.refused(id, &part(true, 0)),
        code(Error::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW)
    );
}

#[test]
fn errors_of_one_0_have_its_numbers() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V10);
    let m = applying(vec![to(2)]);
    let mut overlap = m.clone();
    overlap.flags = flow_flags::CHECK_OVERLAP;
    overlap.matching.fields = vec![Oxm::exact(Field::InPort, 1)];
    b.fine(id, &Request::FlowMod(m));
    assert_eq!(b.refused(id, &Request::FlowMod(overlap)), (3, 1));
    let buffer = Request::PacketOut(PacketOut {
        buffer: Some(9),
        in_port: port::ANY,
        actions: vec![to(1)],
        data: &[],
    });
    assert_eq!(b.refused(id, &buffer), (1, 8));
    assert_eq!(b.raw(id, &[1, 99, 0, 8, 0, 0, 0, 9])[0].error().1, 1);
    assert_eq!(b.raw(id, &[4, 5, 0, 8, 0, 0, 0, 9])[0].error().1, 0);
}

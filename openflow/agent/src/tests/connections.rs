// SPDX-License-Identifier: Apache-2.0
//! Hello, echo, roles, filters, and controllers that do not read.

use super::*;
use crate::Fail;
use tandem_ofpipeline::flows::{all_flows, blank};
use tandem_openflow::model::{
    Async, FlowCommand, FlowRemoved, Lifetime, PacketOut, PortMod, RemovedReason, Role,
    RoleRequest, TABLE_ALL, TableFeatures, TableMod, port_config,
};
use tandem_openflow::{Action, port};

fn hello(version: u8, bitmap: Option<u32>) -> Vec<u8> {
    let mut m = vec![version, 0, 0, 8, 0, 0, 0, 5];
    if let Some(b) = bitmap {
        m[3] = 16;
        m.extend([0, 1, 0, 8]);
        m.extend(b.to_be_bytes());
    }
    m
}

#[test]
fn our_hello_is_sent_first_and_the_version_is_the_highest_of_both() {
    for (peer, agreed) in [
        (hello(1, None), Some(Version::V10)),
        (hello(4, None), Some(Version::V13)),
        (hello(6, None), Some(Version::V13)),
        (hello(6, Some(1 << 6 | 1 << 1)), Some(Version::V10)),
        (hello(6, Some(1 << 6 | 1 << 4 | 1 << 1)), Some(Version::V13)),
        (hello(2, None), None),
        (hello(6, Some(1 << 6)), None),
        // no hello at all
        (vec![4, 5, 0, 8, 0, 0, 0, 5], None),
    ] {
        let mut b = Bench::new(Settings::default());
        let id = b.agent.connected("x".into(), 1).unwrap();
        let first = b.said(id);
        assert_eq!(first.len(), 1);
        assert_eq!((first[0].version, first[0].kind), (4, 0));
        assert_eq!(first[0].body, [0, 1, 0, 8, 0, 0, 0, 0x12]);
        b.bytes(id, &peer);
        let conn = b.agent.conn(id).unwrap();
        assert_eq!(conn.version(), agreed, "{peer:?}");
        assert_eq!(conn.end().is_some(), agreed.is_none());
        let said = b.said(id);
        if agreed.is_none() {
            let (kind, code, text) = said[0].error();
            assert_eq!((kind, code, said[0].xid), (0, 0, 5));
            assert!(
                String::from_utf8_lossy(text).contains(" "),
                "a text: {text:?}"
            );
        } else {
            assert_eq!(said, []);
        }
    }
}

#[test]
fn one_switch_speaks_one_version_at_a_time() {
    let mut b = Bench::new(Settings::default());
    let a = b.connect(Version::V13);
    b.fine(a, &Request::FlowMod(blank()));
    // the hello says so already
    let c = b.agent.connected("x".into(), 1).unwrap();
    assert_eq!(b.said(c)[0].body, [0, 1, 0, 8, 0, 0, 0, 0x10]);
    b.bytes(c, &hello(1, None));
    let (kind, code, text) = (0, 0, "speaks OpenFlow 1.3");
    let said = b.said(c);
    let got = said[0].error();
    assert_eq!((got.0, got.1), (kind, code));
    assert!(String::from_utf8_lossy(got.2).contains(text));
    b.agent.disconnected(c, b.now);
    // both hellos were on their way at once
    let both = Bench::new(Settings::default());
    let mut b2 = both;
    let x = b2.agent.connected("x".into(), 1).unwrap();
    let y = b2.agent.connected("y".into(), 1).unwrap();
    b2.bytes(x, &hello(4, None));
    b2.bytes(y, &hello(1, None));
    assert!(
        b2.agent
            .conn(y)
            .unwrap()
            .end()
            .unwrap()
            .contains("with another controller")
    );
    // one that comes back finds its flows
    b.agent.disconnected(a, b.now);
    let flows = |b: &Bench| {
        b.agent
            .datapath()
            .switch()
            .table_stats()
            .map(|t| t.active)
            .sum::<u32>()
    };
    b.connect(Version::V13);
    assert_eq!(flows(&b), 1);
    let ids: Vec<ConnId> = b.agent.conns().map(|(id, _)| id).collect();
    ids.into_iter()
        .for_each(|id| b.agent.disconnected(id, b.now));
    b.connect(Version::V10);
    assert_eq!(flows(&b), 1);
}

/// A port scan, `ovs-ofctl show`, `dump-flows`: who asks takes nothing away, whatever it speaks. Who changes something has
/// tables of its version.
#[test]
fn who_asks_in_the_other_version_takes_no_flow_away() {
    let mut b = Bench::new(Settings::default());
    let a = b.connect(Version::V13);
    let mut flow = applying(vec![Action::Output {
        port: 2,
        max_len: 0,
    }]);
    flow.table = 0;
    b.fine(a, &Request::FlowMod(flow));
    b.agent.disconnected(a, b.now);
    let forwards = |b: &mut Bench| b.frame(1, &ether(9, 1)).len();
    assert_eq!(forwards(&mut b), 1);
    let c = b.connect(Version::V10);
    // 1.0 has one table, whatever there is
    let said = b.ask(c, &Request::Features);
    assert_eq!((said[0].kind, said[0].body[12]), (FEATURES_REPLY, 1));
    let all = asks(Asks::Flow(all_flows()));
    let said = b.ask(c, &all);
    assert_eq!((said.len(), said[0].kind), (1, STATS_REPLY10));
    // type and flags, one flow of 88 bytes and its output of 8
    assert_eq!(said[0].body.len(), 4 + 88 + 8);
    assert_eq!(b.ask(c, &Request::Barrier).len(), 1);
    assert_eq!(forwards(&mut b), 1);
    // the flow's own controller is let in beside it, and has the tables again
    let a = b.connect(Version::V13);
    let eperm = code(Error::BAD_REQUEST_EPERM);
    let mut out = Vec::new();
    let blank10 = Request::FlowMod(blank());
    encode_request(Version::V10, 77, &blank10, &mut out).unwrap();
    let (kind, why, _) = b.raw(c, &out)[0].error();
    assert_eq!((kind, why), eperm);
    assert_eq!(forwards(&mut b), 1);
    let said = b.ask(a, &asks(Asks::Flow(all_flows())));
    assert!(said[0].body.len() > 8 + 56, "{said:?}");
    // and when that has gone, the other one's change begins them anew
    b.agent.disconnected(a, b.now);
    b.fine(c, &blank10);
    assert_eq!(forwards(&mut b), 0);
    assert_eq!(b.agent.datapath().version(), Version::V10);
    let said = b.ask(c, &all);
    assert_eq!(said[0].body.len(), 4 + 88);
}

/// Nothing goes with a change that is refused, or that is none.
#[test]
fn a_refusal_in_the_other_version_takes_no_flow_away() {
    let mut b = Bench::new(Settings::default());
    let output = |port| Action::Output { port, max_len: 0 };
    let a = b.connect(Version::V13);
    b.fine(a, &Request::FlowMod(applying(vec![output(2)])));
    b.agent.disconnected(a, b.now);
    let c = b.connect(Version::V10);
    let packet = |in_port, port, buffer| {
        Request::PacketOut(PacketOut {
            buffer,
            in_port,
            actions: vec![output(port)],
            data: &[7; 60],
        })
    };
    let flow = |m: FlowMod| Request::FlowMod(m);
    let no_buffer = flow(FlowMod {
        buffer: Some(77),
        ..blank()
    });
    let bad_queue = flow(applying(vec![Action::Enqueue10 { port: 2, queue: 99 }]));
    let port_mod = |number, hw_addr| {
        Request::PortMod(PortMod {
            port: number,
            hw_addr,
            config: 0,
            mask: 0,
            advertise: 0,
        })
    };
    for (refused, why) in [
        (no_buffer, Error::BAD_REQUEST_BUFFER_UNKNOWN),
        (bad_queue, Error::BAD_ACTION_BAD_QUEUE),
        (packet(9, 2, None), Error::BAD_REQUEST_BAD_PORT),
        (packet(1, 2, Some(77)), Error::BAD_REQUEST_BUFFER_UNKNOWN),
        (port_mod(9, mac(9)), Error::PORT_MOD_FAILED_BAD_PORT),
        (port_mod(1, mac(9)), Error::PORT_MOD_FAILED_BAD_HW_ADDR),
    ] {
        let said = b.ask(c, &refused);
        assert_eq!(said.len(), 1, "{refused:?}: {said:?}");
        assert_eq!(said[0].kind, 1, "{refused:?}: {why}");
        assert_eq!(b.agent.datapath().version(), Version::V13, "{refused:?}");
        assert_eq!(b.frame(1, &ether(9, 1)).len(), 1, "{refused:?}");
    }
    b.fine(c, &packet(1, 3, None));
    assert_eq!(b.out.0.len(), 1);
    b.out.0.clear();
    assert_eq!(b.agent.datapath().version(), Version::V10);
    assert_eq!(b.frame(1, &ether(9, 1)), []);
    assert_eq!(b.said(c)[0].kind, PACKET_IN);
    // a TABLE_MOD and a wish for tables are about those of 1.3, and change nothing
    b.fine(c, &Request::FlowMod(applying(vec![output(2)])));
    b.agent.disconnected(c, b.now);
    let a = b.connect(Version::V13);
    let table_mod = |table| Request::TableMod(TableMod { table, config: 0 });
    b.fine(a, &table_mod(7));
    let bad = code(Error::TABLE_MOD_FAILED_BAD_TABLE);
    let mut few = Bench::new(Settings {
        tables: 4,
        ..Settings::default()
    });
    let one = few.connect(Version::V13);
    assert_eq!(few.refused(one, &table_mod(7)), bad);
    let wish = TableFeatures {
        table: 7,
        name: String::new(),
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        max_entries: 1,
        properties: Vec::new(),
    };
    let said = b.ask(a, &asks(Asks::TableFeatures(vec![wish])));
    assert!(said.len() > 1 && said.iter().all(|s| s.kind == MULTIPART_REPLY));
    assert_eq!(b.agent.datapath().version(), Version::V10);
    assert_eq!(b.frame(1, &ether(9, 1)).len(), 1);
}

/// Who waits for packet-ins to do anything gets them as soon as nothing is left of the other version's flows.
#[test]
fn empty_tables_are_of_the_version_of_who_is_there() {
    let leave = |b: &mut Bench, hard_timeout: u16| {
        let a = b.connect(Version::V13);
        let flow = FlowMod {
            hard_timeout,
            ..applying(Vec::new())
        };
        b.fine(a, &Request::FlowMod(flow));
        a
    };
    // the last one's time is up
    let mut b = Bench::new(Settings::default());
    let a = leave(&mut b, 2);
    b.agent.disconnected(a, b.now);
    let c = b.connect(Version::V10);
    b.seconds(1);
    b.frame(1, &ether(9, 1));
    assert_eq!(b.said(c), []);
    b.seconds(2);
    assert_eq!(b.agent.datapath().version(), Version::V10);
    b.frame(1, &ether(9, 1));
    assert_eq!(b.said(c)[0].kind, PACKET_IN);
    // its controller has deleted it, and goes
    let mut b = Bench::new(Settings::default());
    let a = leave(&mut b, 0);
    b.agent.disconnected(a, b.now);
    let c = b.connect(Version::V10);
    let a = b.connect(Version::V13);
    let delete = FlowMod {
        command: FlowCommand::Delete,
        table: TABLE_ALL,
        ..blank()
    };
    b.fine(a, &Request::FlowMod(delete));
    assert_eq!(b.agent.datapath().version(), Version::V13);
    b.agent.disconnected(a, b.now);
    b.frame(1, &ether(9, 1));
    assert_eq!(b.said(c)[0].kind, PACKET_IN);
}

/// An answer in pages has flows of one version alone, and ends.
#[test]
fn an_answer_in_pages_ends_with_its_tables() {
    let mut b = Bench::new(Settings::default());
    let a = b.connect(Version::V13);
    for n in 0..5_000 {
        b.fine(
            a,
            &Request::FlowMod(FlowMod {
                priority: n,
                ..blank()
            }),
        );
    }
    b.agent.disconnected(a, b.now);
    let (c, d) = (b.connect(Version::V10), b.connect(Version::V10));
    let mut ask = Vec::new();
    let all = asks(Asks::Flow(all_flows()));
    encode_request(Version::V10, 77, &all, &mut ask).unwrap();
    let room = b.agent.room(c);
    room[..ask.len()].copy_from_slice(&ask);
    b.agent.filled(c, ask.len(), b.now);
    // the question, and the first page
    for _ in 0..2 {
        b.agent.work(c, 1, b.now, &mut b.out);
    }
    let first = b.said(c);
    assert!(first.iter().all(|s| s.body[3] == 1), "there is more");
    for n in 0..5_000 {
        b.fine(
            d,
            &Request::FlowMod(FlowMod {
                priority: n,
                ..blank()
            }),
        );
    }
    while b.agent.work(c, 1, b.now, &mut b.out) {}
    let rest = b.said(c);
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].body, [0, 1, 0, 0]);
}

/// A packet that waits for a controller's word does not go with the tables.
#[test]
fn a_buffer_outlives_the_tables_of_the_other_version() {
    let mut b = Bench::new(Settings::default());
    let a = b.connect(Version::V13);
    b.fine(
        a,
        &Request::FlowMod(applying(vec![Action::Output {
            port: port::CONTROLLER,
            max_len: 64,
        }])),
    );
    b.agent.disconnected(a, b.now);
    let c = b.connect(Version::V10);
    assert_eq!(b.frame(1, &ether(9, 1)), []);
    let said = b.said(c);
    assert_eq!((said.len(), said[0].kind), (1, PACKET_IN));
    let buffer = u32::from_be_bytes(said[0].body[..4].try_into().unwrap());
    let out = Request::PacketOut(PacketOut {
        buffer: Some(buffer),
        in_port: 1,
        actions: vec![Action::Output {
            port: 3,
            max_len: 0,
        }],
        data: &[],
    });
    b.fine(c, &out);
    assert_eq!(b.out.0.len(), 1);
}

#[test]
fn echoes_are_answered_and_silence_is_asked_about() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let said = b.ask(id, &Request::Echo(b"abc"));
    assert_eq!(
        (said[0].kind, said[0].body.as_slice()),
        (ECHO_REPLY, b"abc".as_slice())
    );
    b.seconds(6);
    let said = b.said(id);
    assert_eq!((said.len(), said[0].kind), (1, ECHO));
    b.fine(id, &Request::EchoReply(&[]));
    b.seconds(4);
    assert_eq!(b.said(id), []);
    b.seconds(3);
    assert_eq!(b.said(id).len(), 1);
    b.seconds(6);
    let why = b.agent.conn(id).unwrap().end().unwrap().to_owned();
    assert!(why.contains("no answer to an echo request"), "{why}");
    // a peer that never says hello
    let mute = b.agent.connected("mute".into(), b.now).unwrap();
    b.said(mute);
    b.seconds(11);
    assert!(
        b.agent
            .conn(mute)
            .unwrap()
            .end()
            .unwrap()
            .contains("no hello")
    );
}

#[test]
fn a_controller_that_does_not_read_is_disconnected() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let mut asked = Vec::new();
    // 255 tables are told of each time
    let mut m = Vec::new();
    let request = asks(Asks::TableFeatures(Vec::new()));
    encode_request(Version::V13, 1, &request, &mut m).unwrap();
    for _ in 0..1000 {
        asked.extend_from_slice(&m);
    }
    b.bytes(id, &asked);
    // no more is done for it than it reads
    let waiting = b.agent.conn(id).unwrap().waiting();
    assert!(waiting < crate::conn::ENOUGH * 2, "{waiting}");
    assert!(!b.agent.conn(id).unwrap().takes());
    for _ in 0..200_000 {
        b.agent.set_link(1, false, 0, b.now);
        b.agent.set_link(1, true, 1_000, b.now);
    }
    let conn = b.agent.conn(id).unwrap();
    assert!(
        conn.end().unwrap().contains("does not read"),
        "{:?}",
        conn.end()
    );
    assert!(conn.waiting() < crate::conn::MOST + 4096);
    // another one gets nothing, and sends nothing
    let stuck = b.connect(Version::V13);
    b.raw(stuck, &[]);
    b.bytes(stuck, &m);
    for _ in 0..31 {
        b.seconds(1);
        b.bytes(stuck, &[4, 2, 0, 8, 0, 0, 0, 1]);
    }
    let why = b.agent.conn(stuck).unwrap().end().unwrap().to_owned();
    assert!(why.contains("has not read for 30 s"), "{why}");
}

fn removed(cookie: u64) -> FlowRemoved {
    FlowRemoved {
        table: 0,
        cookie,
        priority: 1,
        reason: RemovedReason::Delete,
        lifetime: Lifetime::default(),
        idle_timeout: 0,
        hard_timeout: 0,
        packets: 0,
        bytes: 0,
        matching: blank().matching,
    }
}

#[test]
fn a_controller_that_reads_hears_of_every_flow_that_went() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let all = 400_000; // of 64 bytes: more than the 16 MiB that wait at most
    b.agent.removed.extend((0..all).map(removed));
    b.agent.tell_removed();
    // an answer comes after what had happened before
    b.bytes(id, &[4, 20, 0, 8, 0, 0, 0, 9]);
    let mut next = 0;
    loop {
        let conn = b.agent.conn(id).unwrap();
        assert_eq!(conn.end(), None);
        assert!(conn.waiting() < crate::conn::ENOUGH);
        while b.agent.work(id, 100, b.now, &mut b.out) {}
        let said = b.said(id);
        if said.is_empty() {
            break;
        }
        for s in said {
            if next == all {
                assert_eq!(s.kind, BARRIER_REPLY);
            } else {
                assert_eq!(s.kind, FLOW_REMOVED);
                assert_eq!(s.body[..8], next.to_be_bytes());
            }
            next += 1;
        }
    }
    assert_eq!(next, all + 1);
}

#[test]
fn of_flows_that_went_so_many_wait_as_the_tables_have_room_for_twice() {
    let mut b = Bench::new(Settings {
        max_flows: 1_000,
        ..Settings::default()
    });
    let id = b.connect(Version::V13);
    let why = |b: &Bench| b.agent.conn(id).unwrap().end().map(str::to_owned);
    for n in 0..6 {
        assert_eq!(why(&b), None, "{n}");
        b.agent.removed.extend((0..1_000).map(removed));
        b.agent.tell_removed();
    }
    b.agent.removed.extend((0..2_000).map(removed));
    b.agent.tell_removed();
    assert!(why(&b).unwrap().contains("does not read"));
}

fn role(role: Role, generation: u64) -> Request<'static> {
    Request::Role(RoleRequest { role, generation })
}

#[test]
fn there_is_one_master_and_generations_go_forward() {
    let mut b = Bench::new(Settings::default());
    let (x, y) = (b.connect(Version::V13), b.connect(Version::V13));
    let said = b.ask(x, &role(Role::NoChange, 0));
    assert_eq!(said[0].kind, ROLE_REPLY);
    assert_eq!(said[0].body[..4], [0, 0, 0, 1]);
    assert_eq!(said[0].body[8..], [0xff; 8]);
    b.ask(x, &role(Role::Master, 5));
    b.ask(y, &role(Role::Master, 6));
    assert_eq!(b.agent.conn(x).unwrap().role(), Role::Slave);
    assert_eq!(b.agent.conn(y).unwrap().role(), Role::Master);
    assert_eq!(b.refused(x, &role(Role::Master, 5)), (11, 0), "STALE");
    assert_eq!(b.refused(x, &role(Role::Slave, 4)), (11, 0));
    assert_eq!(b.agent.conn(x).unwrap().role(), Role::Slave);
    // generations go round
    for next in [6 + (1 << 62), 6 + (1 << 63), 5 + (1 << 62) + (1 << 63), 3] {
        assert_eq!(
            b.ask(x, &role(Role::Slave, next))[0].kind,
            ROLE_REPLY,
            "{next}"
        );
    }
    assert_eq!(b.refused(y, &role(Role::Master, 2)), (11, 0));
    assert_eq!(b.refused(y, &role(Role::Slave, 2)), (11, 0));
    b.ask(x, &role(Role::Equal, 0));
    assert_eq!(b.agent.conn(x).unwrap().role(), Role::Equal);
}

#[test]
fn a_slave_changes_nothing_and_hears_of_ports_alone() {
    let mut b = Bench::new(Settings::default());
    let (x, y) = (b.connect(Version::V13), b.connect(Version::V13));
    b.ask(x, &role(Role::Slave, 1));
    let is_slave = (1, 10);
    assert_eq!(b.refused(x, &Request::FlowMod(blank())), is_slave);
    let down = PortMod {
        port: 2,
        hw_addr: mac(2),
        config: port_config::PORT_DOWN,
        mask: port_config::PORT_DOWN,
        advertise: 0,
    };
    assert_eq!(b.refused(x, &Request::PortMod(down)), is_slave);
    let table = TableMod {
        table: 0,
        config: 0,
    };
    assert_eq!(b.refused(x, &Request::TableMod(table)), is_slave);
    let out = tandem_openflow::model::PacketOut {
        buffer: None,
        in_port: tandem_openflow::port::CONTROLLER,
        actions: Vec::new(),
        data: &ether(1, 2),
    };
    assert_eq!(b.refused(x, &Request::PacketOut(out)), is_slave);
    // but it may ask for everything
    assert_eq!(b.ask(x, &Request::Features).len(), 1);
    let question = asks(Asks::TableFeatures(Vec::new()));
    assert_eq!(b.ask(x, &question)[0].kind, MULTIPART_REPLY);
    let mut miss = applying(vec![Action::Output {
        port: tandem_openflow::port::CONTROLLER,
        max_len: 0xffff,
    }]);
    miss.flags = 1;
    b.fine(y, &Request::FlowMod(miss.clone()));
    b.frame(1, &ether(1, 2));
    assert_eq!(b.said(y)[0].kind, PACKET_IN);
    assert_eq!(b.ask(y, &Request::PortMod(down))[0].kind, PORT_STATUS);
    miss.command = FlowCommand::Delete;
    let y_said = b.ask(y, &Request::FlowMod(miss));
    let kinds = |said: Vec<Said>| said.iter().map(|s| s.kind).collect::<Vec<u8>>();
    assert_eq!(kinds(y_said), [FLOW_REMOVED]);
    assert_eq!(kinds(b.said(x)), [PORT_STATUS]);
}

#[test]
fn filters_are_each_controllers_own() {
    let mut b = Bench::new(Settings::default());
    let (x, y) = (b.connect(Version::V13), b.connect(Version::V13));
    let mut wants = Async::default();
    wants.port_status[0] = 0b011;
    b.fine(x, &Request::SetAsync(wants));
    let said = b.ask(x, &Request::GetAsync);
    assert_eq!(said[0].kind, 27);
    assert_eq!(said[0].body[8..12], [0, 0, 0, 3]);
    b.agent.set_link(3, false, 0, 2);
    assert_eq!(b.said(x), []);
    assert_eq!(b.said(y).len(), 1);
    b.agent.remove_port(3);
    let gone = b.said(x);
    assert_eq!((gone[0].kind, gone[0].body[0]), (PORT_STATUS, 1));
    assert!(!b.agent.remove_port(3));
    assert!(b.agent.add_port(3, "swp3", mac(3), (true, 0), 2));
    assert_eq!(b.said(x)[0].body[0], 0);
    // somebody wishes to hear of TTLs: the tables send them
    assert!(!b.agent.datapath().switch().config().invalid_ttl);
    wants.packet_in[0] |= 0b100;
    let mut bytes = Vec::new();
    encode_request(Version::V13, 1, &Request::SetAsync(wants), &mut bytes).unwrap();
    // and those of its very next message
    let mut data = ether(2, 1);
    data[12..14].copy_from_slice(&[8, 0]);
    data.splice(
        14..,
        [
            0x45, 0, 0, 20, 0, 0, 0, 0, 1, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ],
    );
    let out = Request::PacketOut(PacketOut {
        buffer: None,
        in_port: 1,
        actions: vec![
            Action::DecNwTtl,
            Action::Output {
                port: 2,
                max_len: 0,
            },
        ],
        data: &data,
    });
    encode_request(Version::V13, 2, &out, &mut bytes).unwrap();
    let told = b.raw(x, &bytes);
    assert_eq!((told[0].kind, told[0].body[6]), (PACKET_IN, 2));
    assert!(b.agent.datapath().switch().config().invalid_ttl);
    b.agent.disconnected(x, b.now);
    assert!(!b.agent.datapath().switch().config().invalid_ttl);
}

#[test]
fn there_are_sixty_four_connections_at_most() {
    let mut b = Bench::new(Settings::default());
    for _ in 0..64 {
        assert!(b.agent.connected("x".into(), 1).is_some());
    }
    assert!(b.agent.connected("x".into(), 1).is_none());
}

#[test]
fn without_a_controller_flows_stay_or_it_is_an_ordinary_switch() {
    for fail in [Fail::Secure, Fail::Standalone] {
        let mut b = Bench::new(Settings {
            fail,
            ..Settings::default()
        });
        let alone = fail == Fail::Standalone;
        assert_eq!(b.agent.stands_alone(), alone);
        let flooded = b.frame(1, &ether(9, 1)).len();
        assert_eq!(flooded, if alone { 3 } else { 0 });
        // a peer that has not said hello is no controller
        let mute = b.agent.connected("mute".into(), 1).unwrap();
        b.bytes(mute, &[4, 0]);
        assert_eq!(b.agent.stands_alone(), alone);
        b.agent.disconnected(mute, b.now);
        let id = b.connect(Version::V13);
        assert!(!b.agent.stands_alone());
        assert_eq!(b.frame(1, &ether(9, 1)), [], "empty tables drop");
        let flow = applying(vec![Action::Output {
            port: 4,
            max_len: 0,
        }]);
        b.fine(id, &Request::FlowMod(flow));
        b.agent.disconnected(id, b.now);
        let ports = |sent: Vec<(u32, Vec<u8>)>| sent.iter().map(|s| s.0).collect::<Vec<u32>>();
        if alone {
            // what it learned while it was alone is known yet
            assert_eq!(ports(b.frame(2, &ether(1, 2))), [1]);
            assert_eq!(ports(b.frame(1, &ether(2, 1))), [2]);
        } else {
            assert_eq!(ports(b.frame(2, &ether(1, 2))), [4]);
        }
        let again = b.connect(Version::V13);
        assert_eq!(ports(b.frame(2, &ether(1, 2))), [4], "its flows are there");
        b.agent.disconnected(again, b.now);
    }
}

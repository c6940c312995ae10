// SPDX-License-Identifier: Apache-2.0
//! Packet-ins, buffers, packet-outs, NORMAL, timeouts.

use super::*;
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::*;
use tandem_openflow::{Action, Field, Oxm, port};

fn to(port: u32, max_len: u16) -> Action {
    Action::Output { port, max_len }
}

fn buffer(said: &Said) -> u32 {
    u32::from_be_bytes(said.body[..4].try_into().unwrap())
}

#[test]
fn a_packet_in_says_why_and_whence_and_has_as_much_as_was_wished() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let frame = ether(1, 2);
    let mut miss = applying(vec![to(port::CONTROLLER, 20)]);
    miss.cookie = 0xc0;
    b.fine(id, &Request::FlowMod(miss));
    b.frame(3, &frame);
    let said = b.said(id);
    assert_eq!(said[0].kind, PACKET_IN);
    let body = &said[0].body;
    assert_ne!(buffer(&said[0]), NO_BUFFER);
    assert_eq!(body[4..6], [0, 64], "total_len");
    assert_eq!(body[6..8], [0, 0], "NO_MATCH, table 0");
    assert_eq!(body[8..16], [0, 0, 0, 0, 0, 0, 0, 0xc0]);
    // in_port = 3
    assert_eq!(body[16..28], [0, 1, 0, 12, 0x80, 0, 0, 4, 0, 0, 0, 3]);
    assert_eq!(body[34..], frame[..20]);
    // the whole packet, and none kept
    let mut whole = applying(vec![to(port::CONTROLLER, port::NO_BUFFER_LEN)]);
    whole.priority = 1;
    b.fine(id, &Request::FlowMod(whole));
    b.frame(3, &frame);
    let said = b.said(id);
    assert_eq!(buffer(&said[0]), NO_BUFFER);
    assert_eq!(said[0].body[6], 1, "ACTION");
    assert_eq!(said[0].body[34..], frame);
}

#[test]
fn each_controller_gets_it_and_the_first_that_asks_has_the_buffer() {
    let mut b = Bench::new(Settings::default());
    let (x, y) = (b.connect(Version::V13), b.connect(Version::V13));
    b.fine(
        x,
        &Request::FlowMod(applying(vec![to(port::CONTROLLER, 0)])),
    );
    b.frame(1, &ether(1, 2));
    let (sx, sy) = (b.said(x), b.said(y));
    assert_eq!(buffer(&sx[0]), buffer(&sy[0]));
    let mut learned = applying(vec![to(2, 0)]);
    learned.priority = 9;
    learned.buffer = Some(buffer(&sx[0]));
    // the flow is for the packet that waits, too
    b.fine(y, &Request::FlowMod(learned));
    assert_eq!(std::mem::take(&mut b.out.0), [(2, ether(1, 2))]);
    let switch = b.agent.datapath().switch();
    let mut packets = Vec::new();
    switch.flow_page(&tandem_ofpipeline::flows::all_flows(), 0, 10, |f| {
        packets.push(f.packets);
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(packets, [1, 1]);
}

#[test]
fn one_0_asks_about_what_no_flow_matches() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V10);
    b.frame(2, &ether(1, 2));
    let said = b.said(id);
    assert_eq!((said[0].version, said[0].kind), (1, PACKET_IN));
    let body = &said[0].body;
    // total length, port, reason NO_MATCH
    assert_eq!(body[4..9], [0, 64, 0, 2, 0]);
    let mut learned = applying(vec![to(3, 0)]);
    learned.buffer = Some(buffer(&said[0]));
    b.fine(id, &Request::FlowMod(learned));
    assert_eq!(std::mem::take(&mut b.out.0), [(3, ether(1, 2))]);
    assert_eq!(b.frame(2, &ether(1, 2)), [(3, ether(1, 2))]);
    assert_eq!(b.said(id), []);
}

#[test]
fn packet_ins_have_a_rate() {
    let mut b = Bench::new(Settings {
        packet_ins: 100,
        ..Settings::default()
    });
    let id = b.connect(Version::V13);
    b.fine(
        id,
        &Request::FlowMod(applying(vec![to(port::CONTROLLER, 0xffff)])),
    );
    for _ in 0..1000 {
        b.frame(1, &ether(1, 2));
    }
    let burst = b.said(id).len();
    assert_eq!(burst, 64);
    let counts = b.agent.conn(id).unwrap().counts();
    assert_eq!((counts.packet_ins, counts.packet_ins_dropped), (64, 936));
    b.now += 500_000_000;
    for _ in 0..1000 {
        b.frame(1, &ether(1, 2));
    }
    assert!((45..=55).contains(&b.said(id).len()));
}

#[test]
fn packet_outs_go_to_ports_through_tables_and_normally() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let frame = ether(1, 2);
    let mut m = applying(vec![to(4, 0)]);
    m.matching.fields = vec![Oxm::exact(Field::InPort, 2)];
    b.fine(id, &Request::FlowMod(m));
    let mut out = |in_port, port| {
        b.fine(
            id,
            &Request::PacketOut(PacketOut {
                buffer: None,
                in_port,
                actions: vec![to(port, 0)],
                data: &frame,
            }),
        );
        std::mem::take(&mut b.out.0)
            .iter()
            .map(|s| s.0)
            .collect::<Vec<u32>>()
    };
    assert_eq!(out(port::CONTROLLER, 3), [3]);
    assert_eq!(out(2, port::TABLE), [4]);
    assert_eq!(out(1, port::TABLE), [] as [u32; 0]);
    assert_eq!(out(2, port::FLOOD), [1, 3, 4]);
    assert_eq!(out(port::CONTROLLER, port::ALL), [1, 2, 3, 4]);
    assert_eq!(out(2, port::IN_PORT), [2]);
    assert_eq!(out(2, port::NORMAL), [1, 3, 4]);
    let back = PacketOut {
        buffer: None,
        in_port: port::CONTROLLER,
        actions: vec![to(port::CONTROLLER, 0xffff)],
        data: &frame,
    };
    let said = b.ask(id, &Request::PacketOut(back));
    assert_eq!((said[0].kind, said[0].body[6]), (PACKET_IN, 1));
}

#[test]
fn normal_learns() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    b.fine(id, &Request::FlowMod(applying(vec![to(port::NORMAL, 0)])));
    let ports = |sent: Vec<(u32, Vec<u8>)>| sent.iter().map(|s| s.0).collect::<Vec<u32>>();
    assert_eq!(ports(b.frame(1, &ether(2, 1))), [2, 3, 4]);
    assert_eq!(ports(b.frame(3, &ether(1, 2))), [1]);
    assert_eq!(ports(b.frame(1, &ether(2, 1))), [3]);
    // a port without link has nobody behind it
    b.agent.set_link(3, false, 0, b.now);
    assert_eq!(ports(b.frame(1, &ether(2, 1))), [2, 4]);
}

#[test]
fn ports_that_are_down_take_and_give_nothing() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    b.fine(id, &Request::FlowMod(applying(vec![to(port::ALL, 0)])));
    let change = |bit| {
        Request::PortMod(PortMod {
            port: 2,
            hw_addr: mac(2),
            config: bit,
            mask: port_config::ALL,
            advertise: 0,
        })
    };
    for (bit, out, into) in [
        (0, 3, 3),
        (port_config::PORT_DOWN, 2, 0),
        (port_config::NO_RECV, 3, 0),
        (port_config::NO_FWD, 2, 3),
    ] {
        b.ask(id, &change(bit));
        assert_eq!(b.frame(1, &ether(1, 2)).len(), out, "{bit}");
        assert_eq!(b.frame(2, &ether(1, 2)).len(), into, "{bit}");
    }
}

#[test]
fn timeouts_end_flows_and_are_told() {
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    for (n, idle, hard) in [(1u128, 2, 0), (2, 0, 4), (3, 0, 0)] {
        let mut m = applying(vec![to(4, 0)]);
        m.matching.fields = vec![Oxm::exact(Field::InPort, n)];
        (m.idle_timeout, m.hard_timeout) = (idle, hard);
        m.flags = flow_flags::SEND_FLOW_REM;
        m.cookie = n as u64;
        b.fine(id, &Request::FlowMod(m));
    }
    b.frame(1, &ether(1, 2));
    b.seconds(1);
    b.frame(1, &ether(1, 2));
    b.seconds(4);
    let removed: Vec<(u8, u8, u64)> = b
        .said(id)
        .iter()
        .filter(|s| s.kind == FLOW_REMOVED)
        .map(|s| {
            let packets = u64::from_be_bytes(s.body[24..32].try_into().unwrap());
            (s.body[7], s.body[10], packets)
        })
        .collect();
    // cookie, reason, packets
    assert_eq!(removed, [(1, 0, 2), (2, 1, 0)]);
    let next = b.agent.tick(b.now);
    assert!(next > b.now && next <= b.now + 5_000_000_000);
}

#[test]
fn a_million_flows_in_all_tables_and_not_one_more() {
    let most = 20_000;
    let mut b = Bench::new(Settings {
        max_flows: most,
        ..Settings::default()
    });
    let id = b.connect(Version::V13);
    let mut bytes = Vec::new();
    for n in 0..u64::from(most) + 1 {
        let mut m = applying(vec![to(4, 0)]);
        m.table = (n % 2) as u8;
        m.matching.fields = vec![Oxm::exact(Field::EthDst, u128::from(n))];
        encode_request(Version::V13, n as u32, &Request::FlowMod(m), &mut bytes).unwrap();
    }
    encode_request(Version::V13, 5, &Request::Barrier, &mut bytes).unwrap();
    let said = b.raw(id, &bytes);
    assert_eq!(said.len(), 2);
    assert_eq!(
        (said[0].error().0, said[0].error().1),
        code(Error::FLOW_MOD_FAILED_TABLE_FULL)
    );
    assert_eq!(said[1].kind, BARRIER_REPLY);
}

#[test]
fn a_frame_on_paper_changes_nothing() {
    use crate::Step;
    let mut b = Bench::new(Settings::default());
    let id = b.connect(Version::V13);
    let mut m = blank();
    m.instructions.goto = Some(3);
    b.fine(id, &Request::FlowMod(m));
    let mut m = applying(vec![to(2, 0), to(port::CONTROLLER, 9)]);
    m.table = 3;
    b.fine(id, &Request::FlowMod(m));
    let steps = b.agent.on_paper(1, &ether(1, 2), b.now);
    let said: Vec<String> = steps
        .iter()
        .map(|s| match s {
            Step::Met { table, flow } => format!("table {table} {}", flow.is_some()),
            Step::Output { port, .. } => format!("output {port}"),
            Step::Controller { table, .. } => format!("controller {table}"),
            Step::Normal { .. } => "normal".into(),
            Step::Alone { to } => format!("alone {to:?}"),
        })
        .collect();
    assert_eq!(
        said,
        ["table 0 true", "table 3 true", "output 2", "controller 3"]
    );
    assert_eq!(b.out.0, []);
    assert_eq!(b.said(id), []);
    let t = b.agent.datapath().switch().table_stats().next().unwrap();
    assert_eq!(t.count.lookups, 0);
}

#[test]
fn on_paper_an_ordinary_switch_is_one_too() {
    use crate::{Fail, Step};
    let mut b = Bench::new(Settings {
        fail: Fail::Standalone,
        ..Settings::default()
    });
    b.frame(2, &ether(9, 2));
    let said = |b: &Bench, dst: u8, port: u32| -> (Vec<Option<u32>>, Vec<u32>) {
        let (mut alone, mut out) = (Vec::new(), Vec::new());
        for s in b.agent.on_paper(port, &ether(dst, 1), b.now) {
            match s {
                Step::Alone { to } => alone.push(to),
                Step::Output { port, .. } => out.push(port),
                other => panic!("{other:?}"),
            }
        }
        (alone, out)
    };
    assert_eq!(said(&b, 2, 1), (vec![Some(2)], vec![2]));
    assert_eq!(said(&b, 7, 1), (vec![Some(port::FLOOD)], vec![2, 3, 4]));
    // where it came from it does not go back to
    assert_eq!(said(&b, 2, 2), (vec![Some(2)], vec![]));
    let mut neighbour = ether(1, 1);
    neighbour[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0]);
    let steps = b.agent.on_paper(1, &neighbour, b.now);
    assert!(matches!(steps.as_slice(), [Step::Alone { to: None }]));
    // nothing was learned
    assert_eq!(b.frame(3, &ether(1, 3)).len(), 3);
    assert_eq!(
        b.agent
            .datapath()
            .switch()
            .port(2)
            .unwrap()
            .count
            .tx
            .packets,
        1
    );
}

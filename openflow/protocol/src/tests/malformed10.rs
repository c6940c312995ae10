// SPDX-License-Identifier: Apache-2.0
//! The error of each malformed message of 1.0, what becomes of its match, and what its peers are told.

use super::message;
use crate::model::{Multipart, Reply, Request};
use crate::oxm::VID_PRESENT;
use crate::{Error, Field, Match, Oxm, Version, decode, encode};

fn error(kind: u8, body: &[u8]) -> Error {
    decode(Version::V10, &message(Version::V10, kind, body))
        .expect_err("taken")
        .error
}

fn taken(kind: u8, body: &[u8]) {
    decode(Version::V10, &message(Version::V10, kind, body)).unwrap();
}

/// An `ofp_match` of nothing but wildcards, changed at some places.
fn ten(wildcards: u32, changes: &[(usize, u16)]) -> Vec<u8> {
    let mut out = vec![0; 40];
    out[..4].copy_from_slice(&wildcards.to_be_bytes());
    for &(at, value) in changes {
        out[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
    out
}

const IN_PORT: usize = 4;
const DL_VLAN: usize = 18;
const DL_VLAN_PCP: usize = 20;
const DL_TYPE: usize = 22;
/// The protocol is the lower byte.
const NW_TOS_PROTO: usize = 24;
const NW_SRC: usize = 28;
const TP_SRC: usize = 36;
const ALL: u32 = (1 << 22) - 1;

fn flow(matching: &[u8], command: u16, timeout: u16, flags: u16, actions: &[u8]) -> Vec<u8> {
    let mut rest = vec![0; 24];
    rest[8..10].copy_from_slice(&command.to_be_bytes());
    rest[10..12].copy_from_slice(&timeout.to_be_bytes());
    rest[22..24].copy_from_slice(&flags.to_be_bytes());
    [matching, &rest, actions].concat()
}

fn understood(wildcards: u32, changes: &[(usize, u16)]) -> Match {
    let bytes = message(
        Version::V10,
        14,
        &flow(&ten(wildcards, changes), 0, 0, 0, &[]),
    );
    match decode(Version::V10, &bytes).unwrap().1 {
        Request::FlowMod(m) => m.matching,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_of_unknown_types_and_wrong_lengths() {
    // 1.3's groups, roles, meters are none of 1.0's
    for kind in [22, 24, 29, 255] {
        assert_eq!(error(kind, &[0; 16]), Error::BAD_REQUEST_BAD_TYPE);
    }
    for kind in [6, 8, 10, 11, 12, 17, 19, 21] {
        assert_eq!(error(kind, &[0; 40]), Error::BAD_REQUEST_BAD_TYPE);
    }
    for (kind, length) in [(5, 0), (7, 0), (9, 4), (15, 24), (18, 0), (20, 4)] {
        taken(kind, &vec![0; length]);
        assert_eq!(
            error(kind, &vec![0; length + 1]),
            Error::BAD_REQUEST_BAD_LEN,
            "{kind}"
        );
        if length > 0 {
            let e = error(kind, &vec![0; length - 1]);
            assert_eq!(e, Error::BAD_REQUEST_BAD_LEN, "{kind}");
        }
    }
    for (kind, least) in [(1, 4), (4, 4), (13, 8), (14, 64), (16, 4)] {
        let e = error(kind, &vec![0; least - 1]);
        assert_eq!(e, Error::BAD_REQUEST_BAD_LEN, "{kind}");
    }
    for (kind, length) in [(0, 0), (1, 44), (2, 44), (3, 0), (4, 8), (5, 8)] {
        let ask = |n: usize| [&[0, kind, 0, 0][..], &vec![0; n]].concat();
        taken(16, &ask(length));
        assert_eq!(error(16, &ask(length + 1)), Error::BAD_REQUEST_BAD_LEN);
    }
    assert_eq!(error(16, &[0, 6, 0, 0]), Error::BAD_REQUEST_BAD_MULTIPART);
}

#[test]
fn flow_mods() {
    let all = ten(ALL, &[]);
    taken(14, &flow(&all, 0, 0, 3, &[]));
    assert_eq!(
        error(14, &flow(&all, 5, 0, 0, &[])),
        Error::FLOW_MOD_FAILED_BAD_COMMAND
    );
    // 1.0 §5.3.3: emergency flows
    assert_eq!(
        error(14, &flow(&all, 0, 0, 4, &[])),
        Error::FLOW_MOD_FAILED_TABLE_FULL
    );
    assert_eq!(
        error(14, &flow(&all, 0, 1, 4, &[])),
        Error::FLOW_MOD_FAILED_BAD_TIMEOUT
    );
}

#[test]
fn actions() {
    let of = |action: &[u8]| error(14, &flow(&ten(ALL, &[]), 0, 0, 0, action));
    for length in [0, 4, 12, 16] {
        assert_eq!(
            of(&[0, 3, 0, length, 0, 0, 0, 0]),
            Error::BAD_ACTION_BAD_LEN
        );
    }
    assert_eq!(of(&[0, 4, 0, 8, 0, 0, 0, 0]), Error::BAD_ACTION_BAD_LEN);
    // one cut short
    for n in 1..8 {
        assert_eq!(
            of(&[0, 3, 0, 8, 0, 0, 0, 0][..n]),
            Error::BAD_ACTION_BAD_LEN
        );
    }
    assert_eq!(of(&[0, 12, 0, 8, 0, 0, 0, 0]), Error::BAD_ACTION_BAD_TYPE);
    let vendor = [0xff, 0xff, 0, 8, 0, 0, 0x23, 0x20];
    assert_eq!(of(&vendor), Error::BAD_ACTION_BAD_EXPERIMENTER);
    for (kind, a, b) in [(1, 0x10, 0), (2, 8, 0), (8, 1, 0)] {
        assert_eq!(
            of(&[0, kind, 0, 8, a, b, 0, 0]),
            Error::BAD_ACTION_BAD_ARGUMENT
        );
    }
    for port in [0, 0xff01, 0xfff7, 0xfff9, 0xffff_u16] {
        let [a, b] = port.to_be_bytes();
        assert_eq!(
            of(&[0, 0, 0, 8, a, b, 0, 0]),
            Error::BAD_ACTION_BAD_OUT_PORT
        );
    }
    // 1.0 §5.2.4: a queue is of a real port, or of the one that the packet came from
    let enqueue = |a, b| [0, 11, 0, 16, a, b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    for port in [
        0, 0xff01, 0xfff9, 0xfffa, 0xfffb, 0xfffd, 0xfffe, 0xffff_u16,
    ] {
        let [a, b] = port.to_be_bytes();
        assert_eq!(of(&enqueue(a, b)), Error::BAD_ACTION_BAD_OUT_PORT);
    }
    for [a, b] in [[0, 1], [0xff, 0], [0xff, 0xf8]] {
        taken(14, &flow(&ten(ALL, &[]), 0, 0, 0, &enqueue(a, b)));
    }
    let packet_out = |port: u16, length: u16, out: u16| {
        let words = [port, length, 0, 8, out, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
        [&[0xff; 4][..], &bytes].concat()
    };
    taken(13, &packet_out(0xffff, 8, 0xfff9));
    assert_eq!(error(13, &packet_out(0, 8, 1)), Error::BAD_REQUEST_BAD_PORT);
    assert_eq!(error(13, &packet_out(1, 9, 1)), Error::BAD_REQUEST_BAD_LEN);
}

#[test]
fn wildcards_become_fields() {
    let exact = |field, value| Oxm::exact(field, value);
    assert_eq!(understood(ALL, &[(IN_PORT, 7)]).fields, []);
    // bits that 1.0 does not have don't count
    assert_eq!(understood(u32::MAX, &[]).fields, []);
    let port = understood(ALL & !1, &[(IN_PORT, 0xfffe)]);
    assert_eq!(port.fields, [exact(Field::InPort, 0xffff_fffe)]);
    // no tag; a tag; the priority of any tag; the priority of no tag, which does not count
    let (vid, pcp) = (1 << 1, 1 << 20);
    let present = u128::from(VID_PRESENT);
    let none = understood(ALL & !vid, &[(DL_VLAN, 0xffff)]);
    assert_eq!(none.fields, [exact(Field::VlanVid, 0)]);
    let tag = understood(ALL & !vid, &[(DL_VLAN, 5)]);
    assert_eq!(tag.fields, [exact(Field::VlanVid, present | 5)]);
    let any = understood(ALL & !pcp, &[(DL_VLAN_PCP, 0x300)]);
    let tagged = Oxm::masked(Field::VlanVid, present, present);
    assert_eq!(any.fields, [tagged, exact(Field::VlanPcp, 3)]);
    let odd = understood(
        ALL & !vid & !pcp,
        &[(DL_VLAN, 0xffff), (DL_VLAN_PCP, 0x300)],
    );
    assert_eq!(odd.fields, [exact(Field::VlanVid, 0)]);
    let bad = ten(ALL & !vid, &[(DL_VLAN, 0x1000)]);
    assert_eq!(
        error(14, &flow(&bad, 0, 0, 0, &[])),
        Error::BAD_MATCH_BAD_VALUE
    );
}

#[test]
fn fields_that_a_packet_does_not_have_are_wildcards() {
    let exact = |field, value| Oxm::exact(field, value);
    let nw = |bits: u32| ALL & !(0x3f << 8) & !(1 << 4) | bits << 8;
    let changes = [(DL_TYPE, 0x800), (NW_SRC, 0x0a00), (NW_SRC + 2, 0x0001)];
    let ip = exact(Field::EthType, 0x800);
    // 1.0 §5.2.3: so many of the lowest bits are wildcards
    for (bits, mask) in [(0, u32::MAX), (8, 0xffff_ff00), (31, 0x8000_0000)] {
        let src = Oxm::masked(Field::Ipv4Src, 0x0a00_0001, u128::from(mask));
        assert_eq!(understood(nw(bits), &changes).fields, [ip, src]);
    }
    for bits in [32, 33, 63] {
        assert_eq!(understood(nw(bits), &changes).fields, [ip]);
    }
    let arp = [(DL_TYPE, 0x806), (NW_SRC, 0x0a00), (NW_TOS_PROTO, 2)];
    let asked = nw(0) & !(1 << 5) & !(1 << 21);
    assert_eq!(
        understood(asked, &arp).fields,
        [
            exact(Field::EthType, 0x806),
            exact(Field::ArpOp, 2),
            exact(Field::ArpSpa, 0x0a00_0000),
        ]
    );
    let other = [
        (DL_TYPE, 0x88cc),
        (NW_SRC, 1),
        (NW_TOS_PROTO, 6),
        (TP_SRC, 80),
    ];
    assert_eq!(understood(0, &other).get(Field::IpProto), None);
    assert!(understood(0, &other).exact);
    // ports hang on the protocol
    let tp = ALL & !(1 << 4) & !(1 << 5) & !(1 << 6);
    let l4 = |proto| [(DL_TYPE, 0x800), (NW_TOS_PROTO, proto), (TP_SRC, 80)];
    for (proto, field) in [
        (6, Some(Field::TcpSrc)),
        (17, Some(Field::UdpSrc)),
        (1, Some(Field::Icmpv4Type)),
        (132, None),
    ] {
        let fields = understood(tp, &l4(proto)).fields;
        assert_eq!(
            fields.get(2).map(|o| (o.field, o.value)),
            field.map(|f| (f, 80))
        );
    }
    let icmp = ten(tp, &[(DL_TYPE, 0x800), (NW_TOS_PROTO, 1), (TP_SRC, 256)]);
    assert_eq!(
        error(14, &flow(&icmp, 0, 0, 0, &[])),
        Error::BAD_MATCH_BAD_VALUE
    );
    assert!(!understood(1, &l4(6)).exact);
    assert!(understood(0, &l4(6)).exact);
}

#[test]
fn a_statistics_request_is_not_about_exact_flows_alone() {
    let mut body = vec![0, 1, 0, 0];
    body.extend_from_slice(&ten(0, &[]));
    body.extend_from_slice(&[0xff, 0, 0xff, 0xff]);
    let bytes = message(Version::V10, 16, &body);
    let Request::Multipart(Multipart { asks, .. }) = decode(Version::V10, &bytes).unwrap().1 else {
        panic!("not a multipart request");
    };
    let crate::model::Asks::Flow(filter) = asks else {
        panic!("{asks:?}");
    };
    assert!(!filter.matching.exact);
    assert_eq!(filter.out_port, crate::port::ANY);
}

#[test]
fn errors_are_told_as_1_0_has_them() {
    // 1.0 §5.4.4
    for (error, kind, code) in [
        (Error::HELLO_FAILED_EPERM, 0, 1),
        (Error::BAD_REQUEST_BUFFER_UNKNOWN, 1, 8),
        (Error::BAD_REQUEST_BAD_PORT, 2, 4),
        (Error::BAD_REQUEST_IS_SLAVE, 1, 5),
        (Error::BAD_ACTION_BAD_QUEUE, 2, 8),
        (Error::BAD_ACTION_BAD_SET_LEN, 2, 1),
        (Error::BAD_ACTION_MATCH_INCONSISTENT, 3, 5),
        (Error::BAD_MATCH_BAD_VALUE, 3, 5),
        (Error::BAD_MATCH_BAD_LEN, 1, 6),
        (Error::FLOW_MOD_FAILED_TABLE_FULL, 3, 0),
        (Error::FLOW_MOD_FAILED_OVERLAP, 3, 1),
        (Error::FLOW_MOD_FAILED_EPERM, 3, 2),
        (Error::FLOW_MOD_FAILED_BAD_TIMEOUT, 3, 3),
        (Error::FLOW_MOD_FAILED_BAD_COMMAND, 3, 4),
        (Error::PORT_MOD_FAILED_BAD_HW_ADDR, 4, 1),
        (Error::QUEUE_OP_FAILED_BAD_QUEUE, 5, 1),
        (Error::GROUP_MOD_FAILED_LOOP, 1, 1),
    ] {
        let mut out = Vec::new();
        let reply = Reply::Error { error, data: &[] };
        encode(Version::V10, 1, &reply, &mut out).unwrap();
        assert_eq!(out[8..12], [0, kind, 0, code], "{error}");
        out.clear();
        encode(Version::V13, 1, &reply, &mut out).unwrap();
        assert_eq!(
            out[8..12],
            [0, error.kind as u8, 0, error.code as u8],
            "{error}"
        );
    }
}

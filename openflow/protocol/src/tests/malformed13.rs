// SPDX-License-Identifier: Apache-2.0
//! The error of each malformed message of 1.3.

use super::message;
use crate::{Error, Malformed, Version, decode};

fn refused(kind: u8, body: &[u8]) -> Malformed {
    decode(Version::V13, &message(Version::V13, kind, body)).expect_err("taken")
}

fn error(kind: u8, body: &[u8]) -> Error {
    refused(kind, body).error
}

fn taken(kind: u8, body: &[u8]) {
    decode(Version::V13, &message(Version::V13, kind, body)).unwrap();
}

/// TLVs as a match, with its padding.
fn matching(tlvs: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 1, 0, 4 + tlvs.len() as u8];
    out.extend_from_slice(tlvs);
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

/// The first 40 bytes of an `ofp_flow_mod` after the header.
fn head(table: u8, command: u8, flags: u16) -> Vec<u8> {
    let mut out = vec![0; 40];
    out[16] = table;
    out[17] = command;
    out[36..38].copy_from_slice(&flags.to_be_bytes());
    out
}

fn flow(tlvs: &[u8], instructions: &[u8]) -> Vec<u8> {
    [&head(0, 0, 0)[..], &matching(tlvs), instructions].concat()
}

fn of_match(tlvs: &[u8]) -> Error {
    error(14, &flow(tlvs, &[]))
}

/// Actions that are applied.
fn apply(actions: &[u8]) -> Vec<u8> {
    let head = [0, 4, 0, 8 + actions.len() as u8, 0, 0, 0, 0];
    [&head[..], actions].concat()
}

fn of_action(action: &[u8]) -> Error {
    error(14, &flow(&[], &apply(action)))
}

const IPV4: [u8; 6] = [0x80, 0, 10, 2, 8, 0];
const IPV6: [u8; 6] = [0x80, 0, 10, 2, 0x86, 0xdd];
const TCP: [u8; 5] = [0x80, 0, 20, 1, 6];

#[test]
fn messages_of_unknown_types_and_wrong_lengths() {
    for kind in [30, 31, 99, 255] {
        assert_eq!(error(kind, &[]), Error::BAD_REQUEST_BAD_TYPE);
    }
    // what a switch alone sends
    for kind in [6, 8, 10, 11, 12, 19, 21, 23, 25, 27] {
        assert_eq!(error(kind, &[0; 40]), Error::BAD_REQUEST_BAD_TYPE);
    }
    // shorter and longer than their type allows
    let lengths = [
        (5, 0),
        (7, 0),
        (9, 4),
        (16, 32),
        (17, 8),
        (20, 0),
        (22, 8),
        (24, 16),
        (26, 0),
        (28, 24),
    ];
    for (kind, length) in lengths {
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
    for (kind, least) in [
        (1, 4),
        (4, 8),
        (13, 16),
        (14, 40),
        (15, 8),
        (18, 8),
        (29, 8),
    ] {
        let e = error(kind, &vec![0; least - 1]);
        assert_eq!(e, Error::BAD_REQUEST_BAD_LEN, "{kind}");
    }
    // a length that is not that of the message
    let e = decode(Version::V13, &[4, 2, 0, 9, 0, 0, 0, 0]).unwrap_err();
    assert_eq!(e.error, Error::BAD_REQUEST_BAD_LEN);
    let e = decode(Version::V13, &[4, 2, 0]).unwrap_err();
    assert_eq!(e.error, Error::BAD_REQUEST_BAD_LEN);
}

#[test]
fn flow_mods() {
    let body = |head: Vec<u8>| [head, matching(&[])].concat();
    assert_eq!(
        error(14, &body(head(0, 5, 0))),
        Error::FLOW_MOD_FAILED_BAD_COMMAND
    );
    assert_eq!(
        error(14, &body(head(0, 0, 0x20))),
        Error::FLOW_MOD_FAILED_BAD_FLAGS
    );
    for command in 0..3 {
        let e = error(14, &body(head(0xff, command, 0)));
        assert_eq!(e, Error::FLOW_MOD_FAILED_BAD_TABLE_ID);
    }
    for command in 3..5 {
        taken(14, &body(head(0xff, command, 0x1f)));
    }
}

#[test]
fn matches() {
    let with = |bytes: &[u8]| error(14, &[&head(0, 0, 0)[..], bytes].concat());
    // §7.2.3.1: OFPMT_STANDARD, and types that are none
    assert_eq!(with(&[0, 0, 0, 4, 0, 0, 0, 0]), Error::BAD_MATCH_BAD_TYPE);
    assert_eq!(with(&[0, 2, 0, 4, 0, 0, 0, 0]), Error::BAD_MATCH_BAD_TYPE);
    // its length: below its header, beyond the message, a TLV cut in the middle
    assert_eq!(with(&[0, 1, 0, 3, 0, 0, 0, 0]), Error::BAD_MATCH_BAD_LEN);
    assert_eq!(with(&[0, 1, 0, 9, 0, 0, 0, 0]), Error::BAD_MATCH_BAD_LEN);
    assert_eq!(
        with(&[0, 1, 0, 7, 0x80, 0, 10, 2]),
        Error::BAD_MATCH_BAD_LEN
    );
    assert_eq!(with(&[0, 1]), Error::BAD_REQUEST_BAD_LEN);
    // §7.2.3.3: a class and a field that are not known, an experimenter's
    assert_eq!(
        of_match(&[0, 1, 0, 4, 0, 0, 0, 0]),
        Error::BAD_MATCH_BAD_FIELD
    );
    assert_eq!(
        of_match(&[0x80, 0, 80, 4, 0, 0, 0, 0]),
        Error::BAD_MATCH_BAD_FIELD
    );
    let experimenter = [0xff, 0xff, 0, 8, 0, 0, 0x23, 0x20, 0, 0, 0, 0];
    assert_eq!(of_match(&experimenter), Error::BAD_MATCH_BAD_FIELD);
    // a length that is not the field's
    assert_eq!(of_match(&[0x80, 0, 10, 1, 8]), Error::BAD_MATCH_BAD_LEN);
    assert_eq!(
        of_match(&[0x80, 0, 7, 6, 1, 2, 3, 4, 5, 6]),
        Error::BAD_MATCH_BAD_LEN
    );
    // values and masks of more bits than the field has
    let vlan = [0x80, 0, 12, 2, 0x10, 5];
    let pcp = |v: u8| [&vlan[..], &[0x80, 0, 14, 1, v]].concat();
    taken(14, &flow(&pcp(7), &[]));
    assert_eq!(of_match(&pcp(8)), Error::BAD_MATCH_BAD_VALUE);
    assert_eq!(
        of_match(&[0x80, 0, 12, 2, 0x20, 5]),
        Error::BAD_MATCH_BAD_VALUE
    );
    let wide = [0x80, 0, 13, 4, 0x10, 5, 0x30, 0xff];
    assert_eq!(of_match(&wide), Error::BAD_MATCH_BAD_MASK);
    // §7.2.3.7, table 13: a VLAN without OFPVID_PRESENT
    assert_eq!(
        of_match(&[0x80, 0, 12, 2, 0, 5]),
        Error::BAD_MATCH_BAD_VALUE
    );
    taken(14, &flow(&[0x80, 0, 12, 2, 0, 0], &[]));
    // table 12: a mask where none may be
    assert_eq!(
        of_match(&[0x80, 0, 1, 8, 0, 0, 0, 1, 0, 0, 0, 1]),
        Error::BAD_MATCH_BAD_MASK
    );
    // §7.2.3.5: bits of the value outside of the mask
    let outside = [0x80, 0, 13, 4, 0x10, 5, 0x10, 0];
    assert_eq!(of_match(&outside), Error::BAD_MATCH_BAD_WILDCARDS);
    // §7.2.3.4: a field twice, also if the first one was as good as not there
    assert_eq!(of_match(&[IPV4, IPV4].concat()), Error::BAD_MATCH_DUP_FIELD);
    let nothing = [0x80, 0, 13, 4, 0, 0, 0, 0];
    let twice = [&nothing[..], &vlan].concat();
    assert_eq!(of_match(&twice), Error::BAD_MATCH_DUP_FIELD);
}

#[test]
fn prerequisites() {
    // table 12; §7.2.3.6
    let nw = [0x80, 0, 22, 4, 10, 0, 0, 1];
    let port = [0x80, 0, 26, 2, 0, 80];
    for bad in [
        &nw[..],
        &[&IPV6[..], &nw].concat(),
        // after what hangs on it
        &[&nw[..], &IPV4].concat(),
        &[&IPV4[..], &port].concat(),
        &[&IPV4[..], &[0x80, 0, 20, 1, 17], &port].concat(),
        &[&TCP[..]].concat(),
        // the priority of a packet without a tag, and of any packet
        &[0x80, 0, 12, 2, 0, 0, 0x80, 0, 14, 1, 1],
        &[0x80, 0, 14, 1, 1],
        &[0x80, 0, 2, 4, 0, 0, 0, 1],
    ] {
        assert_eq!(of_match(bad), Error::BAD_MATCH_BAD_PREREQ, "{bad:?}");
    }
    for good in [
        &[&IPV4[..], &nw].concat(),
        &[&IPV4[..], &TCP, &port].concat(),
        &[&IPV6[..], &TCP, &port].concat(),
        // the priority of a tag of any VLAN
        &[0x80, 0, 13, 4, 0x10, 0, 0x10, 0, 0x80, 0, 14, 1, 1][..],
        &[0x80, 0, 0, 4, 0, 0, 0, 1, 0x80, 0, 2, 4, 0, 0, 0, 1],
    ] {
        taken(14, &flow(good, &[]));
    }
}

#[test]
fn actions() {
    // §7.2.5: lengths
    for length in [0, 4, 7, 12, 24] {
        let e = of_action(&[0, 11, 0, length, 0, 0, 0, 0]);
        assert_eq!(e, Error::BAD_ACTION_BAD_LEN, "{length}");
    }
    assert_eq!(
        of_action(&[0, 0, 0, 8, 0, 0, 0, 1]),
        Error::BAD_ACTION_BAD_LEN
    );
    let long = [0, 11, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(of_action(&long), Error::BAD_ACTION_BAD_LEN);
    for kind in [1, 10, 13, 14, 28] {
        let e = of_action(&[0, kind, 0, 8, 0, 0, 0, 0]);
        assert_eq!(e, Error::BAD_ACTION_BAD_TYPE, "{kind}");
    }
    let experimenter = [0xff, 0xff, 0, 8, 0, 0, 0x23, 0x20];
    assert_eq!(of_action(&experimenter), Error::BAD_ACTION_BAD_EXPERIMENTER);
    // EtherTypes of pushes (§7.2.5.6)
    for kind in [17, 19, 26] {
        let e = of_action(&[0, kind, 0, 8, 8, 0, 0, 0]);
        assert_eq!(e, Error::BAD_ACTION_BAD_ARGUMENT, "{kind}");
    }
    // groups above OFPG_MAX
    let group = [0, 22, 0, 8, 0xff, 0xff, 0xff, 1];
    assert_eq!(of_action(&group), Error::BAD_ACTION_BAD_OUT_GROUP);
}

#[test]
fn outputs() {
    let output = |port: u32| {
        let [a, b, c, d] = port.to_be_bytes();
        [0, 0, 0, 16, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0]
    };
    for port in [0, 0xffff_ff01, 0xffff_fff7, 0xffff_fff9, 0xffff_ffff] {
        assert_eq!(
            of_action(&output(port)),
            Error::BAD_ACTION_BAD_OUT_PORT,
            "{port:x}"
        );
    }
    for port in [1, 0xffff_ff00, 0xffff_fff8, 0xffff_fffa, 0xffff_fffe] {
        taken(14, &flow(&[], &apply(&output(port))));
    }
    // §7.2.5.1: to the tables from a packet-out alone
    let packet_out = |in_port: u32, length: u16, port: u32| {
        let mut out = vec![0xff; 4];
        out.extend_from_slice(&in_port.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&output(port));
        out
    };
    taken(13, &packet_out(0xffff_fffd, 16, 0xffff_fff9));
    taken(13, &packet_out(0xffff_ffff, 0, 0));
    // §7.3.7: where it can't have come from
    for port in [0, 0xffff_ff01, 0xffff_fff8, 0xffff_fffb] {
        let e = error(13, &packet_out(port, 16, 1));
        assert_eq!(e, Error::BAD_REQUEST_BAD_PORT, "{port:x}");
    }
    let e = error(13, &packet_out(1, 17, 1));
    assert_eq!(e, Error::BAD_REQUEST_BAD_LEN);
    assert_eq!(error(13, &packet_out(1, 12, 1)), Error::BAD_ACTION_BAD_LEN);
}

#[test]
fn fields_to_set() {
    // §7.2.5.10
    let set = |tlv: &[u8]| {
        let length = (4 + tlv.len()).next_multiple_of(8);
        let mut out = vec![0, 25, 0, length as u8];
        out.extend_from_slice(tlv);
        out.resize(length, 0);
        out
    };
    // ports, metadata, what only exists to be matched, fields and classes that are not known, with a mask
    for tlv in [
        &[0x80, 0, 0, 4, 0, 0, 0, 1][..],
        &[0x80, 0, 2, 4, 0, 0, 0, 1],
        &[0x80, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x80, 0, 78, 2, 0, 1],
        &[0x80, 0, 80, 2, 0, 1],
        &[0, 1, 12, 4, 0, 0, 0, 1],
        &[0x80, 0, 13, 4, 0x10, 1, 0x1f, 0xff],
    ] {
        assert_eq!(
            of_action(&set(tlv)),
            Error::BAD_ACTION_BAD_SET_TYPE,
            "{tlv:?}"
        );
    }
    let short = [0x80, 0, 10, 1, 8];
    assert_eq!(of_action(&set(&short)), Error::BAD_ACTION_BAD_SET_LEN);
    for tlv in [
        &[0x80, 0, 14, 1, 8][..],
        &[0x80, 0, 12, 2, 0x20, 1],
        // a tag without OFPVID_PRESENT can't be written
        &[0x80, 0, 12, 2, 0, 1],
        &[0x80, 0, 16, 1, 64],
    ] {
        assert_eq!(
            of_action(&set(tlv)),
            Error::BAD_ACTION_BAD_SET_ARGUMENT,
            "{tlv:?}"
        );
    }
    let good = set(&[0x80, 0, 12, 2, 0x10, 1]);
    taken(14, &flow(&[], &apply(&good)));
    // eight bytes more than the field needs
    let mut long = good;
    long.extend_from_slice(&[0; 8]);
    long[3] += 8;
    assert_eq!(of_action(&long), Error::BAD_ACTION_BAD_SET_LEN);
    // cut within its TLV
    assert_eq!(
        of_action(&[0, 25, 0, 8, 0x80, 0, 6, 6]),
        Error::BAD_ACTION_BAD_SET_LEN
    );
}

#[test]
fn instructions() {
    let with = |bytes: &[u8]| error(14, &flow(&[], bytes));
    for kind in [0, 7, 0x77] {
        let e = with(&[0, kind, 0, 8, 0, 0, 0, 0]);
        assert_eq!(e, Error::BAD_INSTRUCTION_UNKNOWN_INST, "{kind}");
    }
    let experimenter = [0xff, 0xff, 0, 8, 0, 0, 0x23, 0x20];
    assert_eq!(with(&experimenter), Error::BAD_INSTRUCTION_BAD_EXPERIMENTER);
    for length in [0, 4, 9, 16] {
        let e = with(&[0, 1, 0, length, 1, 0, 0, 0]);
        assert_eq!(e, Error::BAD_INSTRUCTION_BAD_LEN, "{length}");
    }
    let long = [0, 1, 0, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(with(&long), Error::BAD_INSTRUCTION_BAD_LEN);
    // §5.9: each at most once
    let goto = [0, 1, 0, 8, 1, 0, 0, 0];
    for one in [
        &goto[..],
        &[0, 5, 0, 8, 0, 0, 0, 0],
        &[0, 6, 0, 8, 0, 0, 0, 1],
        &apply(&[]),
        &[0, 3, 0, 8, 0, 0, 0, 0],
        &[[0, 2, 0, 24].as_slice(), &[0; 20]].concat(),
    ] {
        taken(14, &flow(&[], one));
        let twice = [one, one].concat();
        assert_eq!(with(&twice), Error::BAD_INSTRUCTION_UNSUP_INST, "{one:?}");
    }
    // one cut short
    for n in 1..8 {
        assert_eq!(with(&goto[..n]), Error::BAD_INSTRUCTION_BAD_LEN);
        assert_eq!(
            error(14, &flow(&[], &apply(&[0; 7][..n]))),
            Error::BAD_INSTRUCTION_BAD_LEN
        );
    }
}

#[test]
fn groups() {
    let group = |command: u16, kind: u8, number: u32, buckets: &[u8]| {
        let mut out = command.to_be_bytes().to_vec();
        out.extend_from_slice(&[kind, 0]);
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(buckets);
        out
    };
    assert_eq!(
        error(15, &group(3, 0, 1, &[])),
        Error::GROUP_MOD_FAILED_BAD_COMMAND
    );
    assert_eq!(
        error(15, &group(256, 0, 1, &[])),
        Error::GROUP_MOD_FAILED_BAD_COMMAND
    );
    assert_eq!(
        error(15, &group(0, 4, 1, &[])),
        Error::GROUP_MOD_FAILED_BAD_TYPE
    );
    for (command, number) in [
        (0, 0xffff_ff01),
        (0, 0xffff_fffc),
        (1, 0xffff_fffc),
        (2, 0xffff_ffff),
    ] {
        let e = error(15, &group(command, 0, number, &[]));
        assert_eq!(e, Error::GROUP_MOD_FAILED_INVALID_GROUP);
    }
    taken(15, &group(2, 0, 0xffff_fffc, &[]));
    let bucket = |length: u8| [&[0, length][..], &[0; 14]].concat();
    taken(15, &group(0, 0, 1, &bucket(16)));
    for length in [0, 8, 15, 17, 24] {
        let e = error(15, &group(0, 0, 1, &bucket(length)));
        assert_eq!(e, Error::GROUP_MOD_FAILED_BAD_BUCKET, "{length}");
    }
    let e = error(15, &group(0, 0, 1, &bucket(16)[..10]));
    assert_eq!(e, Error::GROUP_MOD_FAILED_BAD_BUCKET);
    let action = [&bucket(24)[..], &[0, 1, 0, 8, 0, 0, 0, 0]].concat();
    assert_eq!(
        error(15, &group(0, 0, 1, &action)),
        Error::BAD_ACTION_BAD_TYPE
    );
}

#[test]
fn meters() {
    let meter = |command: u16, flags: u16, number: u32, bands: &[u8]| {
        let mut out = command.to_be_bytes().to_vec();
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(bands);
        out
    };
    assert_eq!(
        error(29, &meter(3, 1, 1, &[])),
        Error::METER_MOD_FAILED_BAD_COMMAND
    );
    // kb/s and packets/s at once, and a flag that is not known
    for flags in [3, 0x10] {
        assert_eq!(
            error(29, &meter(0, flags, 1, &[])),
            Error::METER_MOD_FAILED_BAD_FLAGS
        );
    }
    for (command, number) in [(0, 0), (0, 0xffff_0001), (0, 0xffff_ffff), (2, 0xffff_0001)] {
        let e = error(29, &meter(command, 1, number, &[]));
        assert_eq!(e, Error::METER_MOD_FAILED_INVALID_METER);
    }
    for (command, number) in [(0, 0xffff_0000), (0, 0xffff_fffe), (2, 0xffff_ffff)] {
        taken(29, &meter(command, 1, number, &[]));
    }
    let band = |kind: u8, length: u8| [&[0, kind, 0, length][..], &[0; 12]].concat();
    taken(29, &meter(0, 1, 1, &band(2, 16)));
    assert_eq!(
        error(29, &meter(0, 1, 1, &band(3, 16))),
        Error::METER_MOD_FAILED_BAD_BAND
    );
    for length in [0, 12, 24] {
        let e = error(29, &meter(0, 1, 1, &band(1, length)));
        assert_eq!(e, Error::BAD_REQUEST_BAD_LEN);
    }
    assert_eq!(
        error(29, &meter(0, 1, 1, &band(1, 16)[..9])),
        Error::BAD_REQUEST_BAD_LEN
    );
}

#[test]
fn ports_tables_config_and_roles() {
    let port = |mask: u32, advertise: u32| {
        let mut out = vec![0; 32];
        out[20..24].copy_from_slice(&mask.to_be_bytes());
        out[24..28].copy_from_slice(&advertise.to_be_bytes());
        out
    };
    taken(16, &port(0x65, 0xffff));
    assert_eq!(error(16, &port(2, 0)), Error::PORT_MOD_FAILED_BAD_CONFIG);
    assert_eq!(
        error(16, &port(0, 0x1_0000)),
        Error::PORT_MOD_FAILED_BAD_ADVERTISE
    );
    taken(17, &[0, 0, 0, 0, 0, 0, 0, 3]);
    assert_eq!(
        error(17, &[0, 0, 0, 0, 0, 0, 0, 4]),
        Error::TABLE_MOD_FAILED_BAD_CONFIG
    );
    taken(9, &[0, 2, 0, 128]);
    for flags in [3, 4] {
        assert_eq!(
            error(9, &[0, flags, 0, 128]),
            Error::SWITCH_CONFIG_FAILED_BAD_FLAGS
        );
    }
    let role = |role: u8| [&[0, 0, 0, role][..], &[0; 12]].concat();
    taken(24, &role(3));
    assert_eq!(error(24, &role(4)), Error::ROLE_REQUEST_FAILED_BAD_ROLE);
}

#[test]
fn multipart_requests() {
    let ask = |kind: u16, body: &[u8]| {
        let mut out = kind.to_be_bytes().to_vec();
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(body);
        out
    };
    for kind in [14, 15, 0xfffe] {
        assert_eq!(error(18, &ask(kind, &[])), Error::BAD_REQUEST_BAD_MULTIPART);
    }
    for (kind, length) in [
        (0, 0),
        (3, 0),
        (4, 8),
        (5, 8),
        (6, 8),
        (7, 0),
        (8, 0),
        (9, 8),
        (10, 8),
        (11, 0),
        (13, 0),
    ] {
        taken(18, &ask(kind, &vec![0; length]));
        assert_eq!(
            error(18, &ask(kind, &vec![0; length + 1])),
            Error::BAD_REQUEST_BAD_LEN
        );
        if length > 0 {
            assert_eq!(
                error(18, &ask(kind, &vec![0; length - 1])),
                Error::BAD_REQUEST_BAD_LEN
            );
        }
    }
    for kind in [1, 2] {
        assert_eq!(error(18, &ask(kind, &[0; 32])), Error::BAD_REQUEST_BAD_LEN);
        assert_eq!(error(18, &ask(kind, &[0; 40])), Error::BAD_MATCH_BAD_TYPE);
        taken(18, &ask(kind, &[&[0; 32][..], &matching(&IPV4)].concat()));
    }
    assert_eq!(error(18, &ask(0xffff, &[0; 7])), Error::BAD_REQUEST_BAD_LEN);
    taken(18, &ask(0xffff, &[0; 8]));
}

#[test]
fn table_features() {
    let ask = |body: &[u8]| [&[0, 12, 0, 0, 0, 0, 0, 0][..], body].concat();
    let table = |properties: &[u8]| {
        let mut out = vec![0; 64];
        out[1] = 64 + properties.len() as u8;
        out.extend_from_slice(properties);
        ask(&out)
    };
    taken(18, &ask(&[]));
    taken(18, &table(&[]));
    for length in [0, 63, 65, 72] {
        let mut body = vec![0; 64];
        body[1] = length;
        assert_eq!(
            error(18, &ask(&body)),
            Error::TABLE_FEATURES_FAILED_BAD_LEN,
            "{length}"
        );
    }
    assert_eq!(
        error(18, &ask(&[0; 63])),
        Error::TABLE_FEATURES_FAILED_BAD_LEN
    );
    for kind in [9, 11, 16, 0xfe] {
        let e = error(18, &table(&[0, kind, 0, 4, 0, 0, 0, 0]));
        assert_eq!(e, Error::TABLE_FEATURES_FAILED_BAD_TYPE, "{kind}");
    }
    assert_eq!(
        error(18, &table(&[0xff, 0xfe, 0, 4, 0, 0, 0, 0])),
        Error::TABLE_FEATURES_FAILED_BAD_TYPE
    );
    for length in [3, 9] {
        let e = error(18, &table(&[0, 2, 0, length, 0, 0, 0, 0]));
        assert_eq!(e, Error::TABLE_FEATURES_FAILED_BAD_LEN, "{length}");
    }
    // an instruction's header cut, of length 0, beyond the property
    for ids in [
        [0, 0, 0, 6, 0, 1, 0, 0],
        [0, 0, 0, 8, 0, 1, 0, 0],
        [0, 0, 0, 8, 0, 1, 0, 8],
    ] {
        assert_eq!(
            error(18, &table(&ids)),
            Error::TABLE_FEATURES_FAILED_BAD_LEN,
            "{ids:?}"
        );
    }
    // a property twice, and fields that are not known
    let next = [0, 2, 0, 5, 1, 0, 0, 0];
    let twice = [next, next].concat();
    assert_eq!(
        error(18, &table(&twice)),
        Error::TABLE_FEATURES_FAILED_BAD_TYPE
    );
    for ids in [[0, 8, 0, 8, 0x80, 0, 80, 0], [0, 8, 0, 8, 0, 1, 0, 0]] {
        assert_eq!(
            error(18, &table(&ids)),
            Error::TABLE_FEATURES_FAILED_BAD_ARGUMENT
        );
    }
}

#[test]
fn words_say_where_and_what() {
    let e = refused(14, &flow(&[0x80, 0, 10, 1, 8], &[]));
    assert_eq!(
        e.to_string(),
        "BAD_MATCH BAD_LEN: at byte 52, eth_type: wanted 0x2, got 0x1"
    );
    let e = refused(14, &flow(&[], &apply(&[0, 17, 0, 8, 8, 0, 0, 0])));
    assert_eq!(
        e.to_string(),
        "BAD_ACTION BAD_ARGUMENT: at byte 64, EtherType of a VLAN to push: wanted 0x8100, got 0x800"
    );
}

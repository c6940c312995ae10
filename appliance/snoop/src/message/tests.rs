use super::*;
use crate::query::{Query, query};
use proptest::prelude::*;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// An IGMP message in a frame, its checksums right.
pub(crate) fn igmp_frame(to: [u8; 4], from: [u8; 4], mut body: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&[&body]).to_be_bytes();
    body[2..4].copy_from_slice(&sum);
    let total = 24 + body.len() as u16;
    let mut head = vec![0x46, 0xc0];
    head.extend(total.to_be_bytes());
    head.extend([0, 0, 0x40, 0, 1, IGMP, 0, 0]);
    head.extend(from);
    head.extend(to);
    head.extend([0x94, 4, 0, 0]);
    let sum = checksum(&[&head]).to_be_bytes();
    head[10..12].copy_from_slice(&sum);
    let mut frame = vec![1, 0, 0x5e, to[1] & 0x7f, to[2], to[3]];
    frame.extend(MAC);
    frame.extend([8, 0]);
    frame.extend(head);
    frame.extend(body);
    // what a short frame is filled with is none of it
    frame.extend([0xee; 9]);
    frame
}

/// An MLD message in a frame.
pub(crate) fn mld_frame(to: Ipv6Addr, from: Ipv6Addr, mut body: Vec<u8>) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    let pseudo = [&from.octets()[..], &to.octets(), &length, &[0, 0, 0, 58]].concat();
    let sum = checksum(&[&pseudo, &body]).to_be_bytes();
    body[2..4].copy_from_slice(&sum);
    let mut frame = vec![0x33, 0x33];
    frame.extend(&to.octets()[12..]);
    frame.extend(MAC);
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend((8 + body.len() as u16).to_be_bytes());
    frame.extend([0, 1]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    frame.extend([58, 0, 5, 2, 0, 0, 1, 0]);
    frame.extend(body);
    frame
}

fn v4(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn link() -> Ipv6Addr {
    "fe80::1".parse().unwrap()
}

#[test]
fn versions_one_and_two_of_igmp() {
    let group = [225, 1, 2, 3];
    let of = |kind, code, to, g: [u8; 4]| {
        let body = [&[kind, code, 0, 0][..], &g].concat();
        parse(&igmp_frame(to, [10, 0, 0, 1], body))
    };
    let join = Message::Report(Family::V4, vec![Record::Join(v4("225.1.2.3"))]);
    assert_eq!(of(0x12, 0, group, group), Ok(Some(join.clone())));
    assert_eq!(of(0x16, 0, group, group), Ok(Some(join)));
    let leave = Message::Report(Family::V4, vec![Record::Leave(v4("225.1.2.3"))]);
    assert_eq!(of(0x17, 0, [224, 0, 0, 2], group), Ok(Some(leave)));
    let query = |of, delay| {
        Ok(Some(Message::Query {
            family: Family::V4,
            of: Some(of),
            delay,
            from: v4("10.0.0.1"),
        }))
    };
    let all = [224, 0, 0, 1];
    assert_eq!(of(0x11, 0, all, [0; 4]), query(Asked::All, 10_000));
    assert_eq!(of(0x11, 25, all, [0; 4]), query(Asked::All, 2_500));
    // version 1 asks for all, whatever stands there
    assert_eq!(of(0x11, 0, all, group), query(Asked::All, 10_000));
    let one = Asked::Group(v4("225.1.2.3"));
    assert_eq!(of(0x11, 10, group, group), query(one, 1_000));
    assert!(of(0x11, 10, group, [0; 4]).is_err());
    let router = Ok(Some(Message::Router(Family::V4)));
    assert_eq!(of(0x30, 0, [224, 0, 0, 106], [0; 4]), router);
    // RFC 4541 2.1.1: what is not known is not looked at
    assert_eq!(of(0x99, 0, all, group), Ok(None));
}

#[test]
fn version_three_of_igmp() {
    let record = |kind: u8, sources: u8| {
        let mut r = vec![kind, 0, 0, sources, 225, 0, 0, kind];
        r.extend(vec![9; usize::from(sources) * 4]);
        r
    };
    let body = |all: &[Vec<u8>]| {
        let mut b = vec![0x22, 0, 0, 0, 0, 0, 0, all.len() as u8];
        b.extend(all.concat());
        b
    };
    let all: Vec<_> = (1..=7).flat_map(|k| [record(k, 0), record(k, 2)]).collect();
    let frame = igmp_frame([224, 0, 0, 22], [10, 0, 0, 1], body(&all));
    let Ok(Some(Message::Report(Family::V4, records))) = parse(&frame) else {
        panic!("no report");
    };
    use Record::{Join, Leave};
    let group = |n: u8| IpAddr::V4(Ipv4Addr::new(225, 0, 0, n));
    // of nobody: out of it; whoever names sources wants the group
    let wanted: Vec<Record> = (1..=6)
        .flat_map(|k| match k {
            1 | 3 => [Leave(group(k)), Join(group(k))],
            _ => [Join(group(k)), Join(group(k))],
        })
        .collect();
    assert_eq!(records, wanted);
    // one record more than there are
    let mut cut = body(&[record(2, 0)]);
    cut[7] = 2;
    assert!(parse(&igmp_frame([224, 0, 0, 22], [10, 0, 0, 1], cut)).is_err());
    let query = |code: u8, sources: u8, group: [u8; 4]| {
        let mut b = [&[0x11, code, 0, 0][..], &group, &[0, 0, 0, sources]].concat();
        b.extend(vec![9; usize::from(sources) * 4]);
        let to = if group == [0; 4] {
            [224, 0, 0, 1]
        } else {
            group
        };
        match parse(&igmp_frame(to, [10, 0, 0, 1], b)) {
            Ok(Some(Message::Query { of, delay, .. })) => (of, delay),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(query(100, 0, [0; 4]), (Some(Asked::All), 10_000));
    assert_eq!(query(0xff, 0, [0; 4]), (Some(Asked::All), 31 * 1024 * 100));
    assert_eq!(query(0x80, 0, [0; 4]), (Some(Asked::All), 12_800));
    let one = Some(Asked::Group(v4("225.1.1.1")));
    assert_eq!(query(10, 0, [225, 1, 1, 1]), (one, 1_000));
    assert_eq!(query(10, 1, [225, 1, 1, 1]), (None, 0));
}

#[test]
fn both_versions_of_mld() {
    let group: Ipv6Addr = "ff05::9".parse().unwrap();
    let body = |kind: u8, code: u16, g: Ipv6Addr| {
        let mut b = vec![kind, 0, 0, 0];
        b.extend(code.to_be_bytes());
        b.extend([0, 0]);
        b.extend(g.octets());
        b
    };
    let of = |kind, code, to, g| parse(&mld_frame(to, link(), body(kind, code, g)));
    let join = Message::Report(Family::V6, vec![Record::Join(IpAddr::V6(group))]);
    assert_eq!(of(131, 0, group, group), Ok(Some(join)));
    let leave = Message::Report(Family::V6, vec![Record::Leave(IpAddr::V6(group))]);
    assert_eq!(
        of(132, 0, "ff02::2".parse().unwrap(), group),
        Ok(Some(leave))
    );
    let query = |of, delay| {
        Ok(Some(Message::Query {
            family: Family::V6,
            of,
            delay,
            from: IpAddr::V6(link()),
        }))
    };
    let any = Ipv6Addr::UNSPECIFIED;
    assert_eq!(of(130, 400, ALL_NODES, any), query(Some(Asked::All), 400));
    let one = Asked::Group(IpAddr::V6(group));
    assert_eq!(of(130, 400, group, group), query(Some(one), 400));
    assert_eq!(of(130, 0, ALL_NODES, any), query(None, 0));
    assert!(of(130, 400, group, any).is_err());
    let elsewhere = "2001:db8::1".parse().unwrap();
    assert!(parse(&mld_frame(ALL_NODES, elsewhere, body(130, 400, any))).is_err());
    // version 2
    let two = |code| [body(130, code, any), vec![2, 125, 0, 0]].concat();
    let of2 = |code| parse(&mld_frame(ALL_NODES, link(), two(code)));
    assert_eq!(of2(10_000), query(Some(Asked::All), 10_000));
    assert_eq!(of2(0xffff), query(Some(Asked::All), 0x1fff << 10));
    let mut report = vec![143, 0, 0, 0, 0, 0, 0, 2];
    for kind in [4, 3] {
        report.extend([kind, 0, 0, 0]);
        report.extend(group.octets());
    }
    let said = parse(&mld_frame("ff02::16".parse().unwrap(), link(), report));
    let records = vec![
        Record::Join(IpAddr::V6(group)),
        Record::Leave(IpAddr::V6(group)),
    ];
    assert_eq!(said, Ok(Some(Message::Report(Family::V6, records))));
    let router = Ok(Some(Message::Router(Family::V6)));
    assert_eq!(
        parse(&mld_frame(
            SNOOPERS6,
            link(),
            vec![151, 0, 0, 0, 0, 0, 0, 0]
        )),
        router
    );
    // neighbour discovery is none of it
    assert_eq!(of(135, 0, ALL_NODES, any), Ok(None));
}

#[test]
fn what_we_ask_is_a_question() {
    for (from, group, to) in [
        ("0.0.0.0", None, [1, 0, 0x5e, 0, 0, 1]),
        ("10.0.0.1", Some("239.129.3.4"), [1, 0, 0x5e, 1, 3, 4]),
        ("fe80::1", None, [0x33, 0x33, 0, 0, 0, 1]),
        ("fe80::1", Some("ff05::1:2"), [0x33, 0x33, 0, 1, 0, 2]),
    ] {
        let group = group.map(v4);
        let q = Query {
            mac: MAC,
            from: v4(from),
            group,
            delay: 2_000,
        };
        let frame = query(&q).unwrap();
        assert!(frame.len() >= 60 && frame.starts_with(&to));
        let wanted = Message::Query {
            family: Family::of(v4(from)),
            of: Some(group.map_or(Asked::All, Asked::Group)),
            delay: 2_000,
            from: v4(from),
        };
        assert_eq!(parse(&frame), Ok(Some(wanted)));
    }
    let other = Query {
        mac: MAC,
        from: v4("10.0.0.1"),
        group: Some(v4("ff05::1")),
        delay: 1,
    };
    assert_eq!(query(&other), None);
}

#[test]
fn a_piece_of_a_packet_says_nothing_and_a_wrong_sum_is_broken() {
    let body = vec![0x16, 0, 0, 0, 225, 1, 2, 3];
    let good = igmp_frame([225, 1, 2, 3], [10, 0, 0, 1], body);
    for at in 14..14 + 24 + 8 {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_ne!(parse(&bad), parse(&good), "{at}");
    }
    for n in 0..good.len() - 9 {
        assert_ne!(parse(&good[..n]), parse(&good), "{n}");
    }
}

proptest! {
    /// Whatever comes, it is taken or left.
    #[test]
    fn no_frame_is_too_odd(
        mut frame in proptest::collection::vec(any::<u8>(), 0..200),
        six in any::<bool>(),
        kind in prop_oneof![Just(0x11u8), Just(0x22), Just(130), Just(143)],
    ) {
        if frame.len() > 80 {
            frame[12..14].copy_from_slice(if six { &[0x86, 0xdd] } else { &[8, 0] });
            if six {
                frame[20] = 0;
                frame[54] = 58;
                frame[55] = 0;
                frame[62] = kind;
            } else {
                frame[14] = 0x45;
                frame[23] = IGMP;
                frame[34] = kind;
            }
        }
        let _ = parse(&frame);
        let _ = mld(&frame, link(), ALL_NODES);
        let _ = igmp(&frame, Ipv4Addr::UNSPECIFIED, ALL_HOSTS);
        let _ = records(&frame, 16, |at| sixteen(&frame, at).map(IpAddr::V6));
    }
}

#[test]
fn a_query_from_nobody_is_the_same_query() {
    let of = |from: IpAddr| Query {
        mac: MAC,
        from,
        group: None,
        delay: 10_000,
    };
    let nobody = query(&of(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
    let some = query(&of(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)))).unwrap();
    assert_eq!(crate::query::from_nobody(&some), nobody);
    let six = query(&of("fe80::1".parse().unwrap())).unwrap();
    assert_eq!(crate::query::from_nobody(&six), None);
    for n in 0..38 {
        assert_eq!(crate::query::from_nobody(&some[..n]), None);
    }
}

// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::{Mode, Port};
use tandem_store::model::Object;

const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn rule(verdict: FilterVerdict, set: impl FnOnce(&mut Filter)) -> Filter {
    let mut f = Filter {
        key: key(0, false, 0),
        text: String::new(),
        fields: tnd_acl_key::default(),
        mask: tnd_acl_key::default(),
        src_ports: None,
        dst_ports: None,
        verdict,
        mirror: None,
        police: None,
        kernel: None,
    };
    (f.fields.ethertype, f.mask.ethertype) = (IPV4, u16::MAX);
    set(&mut f);
    f
}

fn drop(set: impl FnOnce(&mut Filter)) -> Filter {
    rule(FilterVerdict::Drop, set)
}

/// TCP to this port.
fn tcp_to(port: u16) -> impl FnOnce(&mut Filter) {
    move |f| {
        (f.fields.protocol, f.mask.protocol) = (TCP, u8::MAX);
        f.mask.fragment = 1;
        f.dst_ports = Some((port, port));
    }
}

fn ether(tag: Option<u16>, ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = [ROUTER, [2, 0, 0, 0, 0, 1]].concat();
    if let Some(tci) = tag {
        frame.extend([0x81, 0]);
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(packet);
    frame
}

fn packet4(piece: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut head = vec![0x45, 0xb8, 0, 20 + payload.len() as u8, 0, 1];
    head.extend(piece.to_be_bytes());
    head.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    [head, payload.to_vec()].concat()
}

fn tcp(port: u8, flags: u8) -> Vec<u8> {
    let mut head = vec![0; 20];
    (head[1], head[3], head[13]) = (7, port, flags);
    head
}

fn judged(rules: &[Filter], frame: &[u8]) -> bool {
    Judged::of(rules, frame) == Judged::Pass
}

#[test]
fn the_first_rule_that_meets_decides() {
    let web = |flags| ether(None, IPV4, &packet4(0x4000, TCP, &tcp(80, flags)));
    assert!(judged(&[], &web(0)));
    assert!(judged(&[drop(tcp_to(81))], &web(0)));
    assert!(!judged(&[drop(tcp_to(80))], &web(0)));
    let permit = rule(FilterVerdict::Permit, |f| {
        (f.fields.tcp_flags, f.mask.tcp_flags) = (0x10, 0x10);
    });
    let both = [permit.clone(), drop(tcp_to(80))];
    assert!(judged(&both, &web(0x12)) && !judged(&both, &web(2)));
    let from = drop(|f| {
        (f.fields.src_ip[3], f.mask.src_ip) =
            (1, [0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        (f.fields.tos, f.mask.tos) = (0xb8, 0xfc);
        f.src_ports = Some((5, 9));
    });
    assert!(!judged(&[from], &web(0)));
    // another EtherType, another MAC
    assert!(judged(&[drop(|_| {})], &ether(None, 0x0806, &[0; 28])));
    let mac = |mac: [u8; 6]| drop(move |f| (f.fields.dst_mac, f.mask.dst_mac) = (mac, [255; 6]));
    assert!(!judged(&[mac(ROUTER)], &web(0)) && judged(&[mac([2; 6])], &web(0)));
    // what goes to the CPU for an answer has none there
    let ask = drop(|f| f.kernel = Some("the CPU's".into()));
    assert!(judged(&[ask], &web(0)));
}

#[test]
fn a_tag_says_which_vlan() {
    let of = |vid: u16| drop(move |f| (f.fields.tci, f.mask.tci) = (vid, 0xfff));
    let frame = |tag| ether(tag, IPV4, &packet4(0, UDP, &[0; 8]));
    assert!(!judged(&[of(7)], &frame(Some(0x6007))));
    assert!(judged(&[of(7)], &frame(Some(8))) && judged(&[of(7)], &frame(None)));
    assert!(!judged(&[of(0)], &frame(None)) && !judged(&[of(0)], &frame(Some(0xe000))));
}

#[test]
fn pieces_and_what_is_broken() {
    let deny_web = [drop(tcp_to(80))];
    let frame = |piece, payload: &[u8]| ether(None, IPV4, &packet4(piece, TCP, payload));
    // the first piece has its ports here, the others none
    assert!(!judged(&deny_web, &frame(0x2000, &tcp(80, 0))));
    assert!(judged(&deny_web, &frame(0x2000, &tcp(81, 0))));
    assert!(judged(&deny_web, &frame(0x2003, &tcp(80, 0))));
    let pieces = drop(|f| (f.fields.fragment, f.mask.fragment) = (1, first_piece()));
    assert!(!judged(std::slice::from_ref(&pieces), &frame(3, &[0; 8])));
    assert!(judged(&[pieces], &frame(0x2000, &tcp(80, 0))));
    // a header that ends early may be that of what is denied
    assert!(!judged(&deny_web, &frame(0x2000, &[0, 7, 0, 81])));
    let udp = [drop(|f| (f.fields.protocol, f.mask.protocol) = (UDP, 255))];
    assert!(judged(&udp, &frame(0x2000, &[0, 7])));
    let whole = frame(0, &tcp(81, 0));
    for cut in 14..whole.len() {
        assert!(!judged(&deny_web, &whole[..cut]), "{cut}");
    }
    assert!(judged(&deny_web, &whole) && judged(&deny_web, &whole[..10]));
}

#[test]
fn headers_of_ipv6_are_followed() {
    let deny = [drop(|f| {
        f.fields.ethertype = IPV6;
        tcp_to(80)(f);
        (f.fields.dst_ip, f.mask.dst_ip) = ([0x20; 16], [255; 16]);
    })];
    let packet = |next: u8, extra: &[u8], payload: &[u8]| {
        let length = (extra.len() + payload.len()) as u8;
        let head = [
            vec![0x6b, 0x80, 0, 0, 0, length, next, 64],
            vec![0x30; 16],
            vec![0x20; 16],
        ];
        ether(None, IPV6, &[&head.concat(), extra, payload].concat())
    };
    let web = tcp(80, 0);
    assert!(!judged(&deny, &packet(TCP, &[], &web)));
    assert!(judged(&deny, &packet(UDP, &[], &web)));
    assert!(!judged(
        &deny,
        &packet(0, &[TCP, 0, 1, 4, 0, 0, 0, 0], &web)
    ));
    // a piece: the first one, and another
    assert!(!judged(
        &deny,
        &packet(44, &[TCP, 0, 0, 1, 0, 0, 0, 0], &web)
    ));
    assert!(judged(
        &deny,
        &packet(44, &[TCP, 0, 0, 9, 0, 0, 0, 0], &web)
    ));
    // more headers than it has octets
    assert!(!judged(
        &deny,
        &packet(0, &[TCP, 9, 1, 4, 0, 0, 0, 0], &web)
    ));
    let all: Vec<u8> = packet(TCP, &[], &web);
    for cut in 14..all.len() {
        assert!(!judged(&deny, &all[..cut]), "{cut}");
    }
}

fn database() -> Database {
    let mut d = Database::new(ROUTER);
    let port = Port {
        name: "swp1".into(),
        mac: [2, 0, 0, 0, 1, 1],
        mtu: 1500,
        up: true,
        mode: Mode::Access(1),
    };
    d.set_port(1, port).unwrap();
    d.untouch();
    d
}

#[test]
fn rules_are_said_the_last_one_first() {
    let mut d = database();
    let rules = |n: u16| (0..n).map(|p| drop(tcp_to(p))).collect::<Vec<_>>();
    d.set_rules(1, false, rules(3));
    let mut said = Vec::new();
    while let Some(what) = d.take() {
        match d.object(what) {
            Some(Object::Filter(f)) => said.push((f.key.priority, f.dst_ports)),
            None => said.push((0, None)),
            other => panic!("{other:?}"),
        }
    }
    let port = |p| Some((p, p));
    assert_eq!(said, [(3, port(2)), (2, port(1)), (1, port(0))]);
    // what stays is not said again, what has gone is
    d.set_rules(1, false, rules(2));
    assert_eq!(
        (d.take(), d.take()),
        (Some(What::Rule(1, false, Reverse(3))), None)
    );
    assert_eq!(d.object(What::Rule(1, false, Reverse(3))), None);
    d.set_rules(1, true, rules(1));
    assert_eq!(d.every_rule().count(), 3);
    let all = d.every();
    assert!(d.every_rule().all(|what| all.contains(&what)));
    assert!(matches!(Database::key(What::Rule(1, true, Reverse(1))),
        tandem_store::model::Key::Filter(k) if k.egress && k.ifindex == Database::device(1)));
    // of a port that is not there none is said
    d.remove_port(1).unwrap();
    assert_eq!(d.object(What::Rule(1, false, Reverse(1))), None);
}

#[test]
fn a_vlans_rules_are_asked_of_what_is_not_the_switchs_own() {
    let mut d = database();
    let frame = ether(None, IPV4, &packet4(0, TCP, &tcp(80, 0)));
    let arp = ether(None, 0x0806, &[0; 28]);
    assert!(d.goes_up(1, 1, &frame) && d.comes_down(1, &frame));
    d.set_vlan_rules(1, false, vec![drop(|_| {})]);
    d.set_vlan_rules(1, true, vec![drop(|_| {})]);
    assert!(!d.goes_up(1, 1, &frame) && !d.comes_down(1, &frame));
    assert!(d.goes_up(1, 1, &arp) && d.comes_down(1, &arp) && d.goes_up(2, 1, &frame));
    d.set_own([IpAddr::from([10, 0, 0, 1])].into());
    assert!(d.comes_down(1, &frame) && !d.goes_up(1, 1, &frame));
    // a port with a list of its own has been asked already
    d.set_listed([(1, false)].into());
    assert!(d.goes_up(1, 1, &frame) && !d.goes_up(1, 2, &frame));
    d.set_listed([(1, true)].into());
    assert!(!d.goes_up(1, 1, &frame));
    d.set_rules(1, false, vec![drop(tcp_to(80))]);
    assert!(!d.admits(1, &frame) && d.admits(2, &frame));
}

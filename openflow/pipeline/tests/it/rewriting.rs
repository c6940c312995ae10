// SPDX-License-Identifier: Apache-2.0
//! What each action makes of a packet: both packets built, with all their checksums, by etherparse.

use crate::common::{Got, add, apply, matching, send, switch};
use etherparse::{IcmpEchoHeader, Icmpv4Type, Icmpv6Type, PacketBuilder, VlanId};
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::FlowMod;
use tandem_openflow::{Action, Field, Instructions, Oxm, Version};

const SRC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const DST: [u8; 6] = [2, 0, 0, 0, 0, 2];
const A4: [u8; 4] = [10, 0, 0, 1];
const B4: [u8; 4] = [10, 0, 0, 2];
const A6: [u8; 16] = [0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const B6: [u8; 16] = [0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// A packet, given by its variable parts.
#[derive(Clone, Copy)]
struct P {
    eth: ([u8; 6], [u8; 6]),
    vlan: Option<(u16, u8)>,
    v6: bool,
    v4: ([u8; 4], [u8; 4]),
    a6: ([u8; 16], [u8; 16]),
    ttl: u8,
    dscp: u8,
    ecn: u8,
    label: u32,
    l4: Kind,
    ports: (u16, u16),
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Tcp,
    Udp,
    Icmp,
}

const BASE: P = P {
    eth: (SRC, DST),
    vlan: None,
    v6: false,
    v4: (A4, B4),
    a6: (A6, B6),
    ttl: 64,
    dscp: 10,
    ecn: 1,
    label: 5,
    l4: Kind::Tcp,
    ports: (1000, 2000),
};

impl P {
    fn build(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let b = PacketBuilder::ethernet2(self.eth.0, self.eth.1);
        let tos = self.dscp << 2 | self.ecn;
        let ip: etherparse::IpHeaders = if self.v6 {
            let h = etherparse::Ipv6Header {
                traffic_class: tos,
                flow_label: etherparse::Ipv6FlowLabel::try_new(self.label).unwrap(),
                hop_limit: self.ttl,
                source: self.a6.0,
                destination: self.a6.1,
                ..Default::default()
            };
            etherparse::IpHeaders::Ipv6(h, Default::default())
        } else {
            let mut h = etherparse::Ipv4Header::new(
                0,
                self.ttl,
                etherparse::IpNumber::TCP,
                self.v4.0,
                self.v4.1,
            )
            .unwrap();
            h.dscp = etherparse::IpDscp::try_new(self.dscp).unwrap();
            h.ecn = etherparse::IpEcn::try_new(self.ecn).unwrap();
            etherparse::IpHeaders::Ipv4(h, Default::default())
        };
        let b = match self.vlan {
            Some((vid, pcp)) => {
                let mut tag = etherparse::SingleVlanHeader {
                    vlan_id: VlanId::try_new(vid).unwrap(),
                    ..Default::default()
                };
                tag.pcp = etherparse::VlanPcp::try_new(pcp).unwrap();
                b.vlan(etherparse::VlanHeader::Single(tag)).ip(ip)
            }
            None => b.ip(ip),
        };
        let payload = b"payload of odd length";
        let echo = IcmpEchoHeader {
            id: self.ports.0,
            seq: self.ports.1,
        };
        match (self.l4, self.v6) {
            (Kind::Tcp, _) => b
                .tcp(self.ports.0, self.ports.1, 7, 8)
                .write(&mut out, payload),
            (Kind::Udp, _) => b.udp(self.ports.0, self.ports.1).write(&mut out, payload),
            (Kind::Icmp, false) => b
                .icmpv4(Icmpv4Type::EchoRequest(echo))
                .write(&mut out, payload),
            (Kind::Icmp, true) => b
                .icmpv6(Icmpv6Type::EchoRequest(echo))
                .write(&mut out, payload),
        }
        .unwrap();
        out
    }

    /// What matches it, enough for any field to be set.
    fn fields(&self) -> Vec<Oxm> {
        let proto = match (self.l4, self.v6) {
            (Kind::Tcp, _) => 6,
            (Kind::Udp, _) => 17,
            (Kind::Icmp, false) => 1,
            (Kind::Icmp, true) => 58,
        };
        let mut m = vec![Oxm::exact(
            Field::EthType,
            if self.v6 { 0x86dd } else { 0x0800 },
        )];
        if self.vlan.is_some() {
            m.push(Oxm::masked(Field::VlanVid, 0x1000, 0x1000));
        }
        m.push(Oxm::exact(Field::IpProto, proto));
        m
    }
}

fn through(frame: &[u8], fields: &[Oxm], actions: &[Action]) -> Vec<Got> {
    let mut s = switch(Version::V13);
    let mut list = actions.to_vec();
    list.push(Action::Output {
        port: 2,
        max_len: 0,
    });
    add(&mut s, 1, fields, apply(&list));
    let first = send(&mut s, 1, frame);
    // From the cache it is the same
    assert_eq!(send(&mut s, 1, frame), first);
    // As a set it is the same, if all are there once
    let mut s = switch(Version::V13);
    let write = Instructions {
        write: Some(list),
        ..Instructions::default()
    };
    let m = FlowMod {
        matching: matching(fields),
        instructions: write,
        ..blank()
    };
    s.flow_mod(&m, 0, &mut Vec::new()).unwrap();
    assert_eq!(send(&mut s, 1, frame), first);
    first
}

fn becomes(before: &P, actions: &[Action], after: &P) {
    let got = through(&before.build(), &before.fields(), actions);
    assert_eq!(got, [Got::Out(2, after.build())], "{actions:?}");
}

fn set(field: Field, value: u128) -> Action {
    Action::SetField { field, value }
}

fn num(b: &[u8]) -> u128 {
    b.iter().fold(0, |n, x| n << 8 | u128::from(*x))
}

/// All kinds of packets.
fn kinds() -> Vec<P> {
    let mut all = Vec::new();
    for v6 in [false, true] {
        for l4 in [Kind::Tcp, Kind::Udp, Kind::Icmp] {
            for vlan in [None, Some((100, 3))] {
                all.push(P {
                    v6,
                    l4,
                    vlan,
                    ..BASE
                });
            }
        }
    }
    all
}

#[test]
fn set_field_of_every_layer() {
    for p in kinds() {
        becomes(
            &p,
            &[set(Field::EthSrc, num(&DST))],
            &P {
                eth: (DST, DST),
                ..p
            },
        );
        becomes(
            &p,
            &[set(Field::EthDst, num(&SRC))],
            &P {
                eth: (SRC, SRC),
                ..p
            },
        );
        becomes(&p, &[set(Field::IpDscp, 46)], &P { dscp: 46, ..p });
        becomes(&p, &[set(Field::IpEcn, 3)], &P { ecn: 3, ..p });
        becomes(&p, &[Action::SetNwTtl(9)], &P { ttl: 9, ..p });
        becomes(&p, &[Action::DecNwTtl], &P { ttl: 63, ..p });
        if let Some((vid, pcp)) = p.vlan {
            becomes(
                &p,
                &[set(Field::VlanVid, 0x1007)],
                &P {
                    vlan: Some((7, pcp)),
                    ..p
                },
            );
            becomes(
                &p,
                &[set(Field::VlanPcp, 6)],
                &P {
                    vlan: Some((vid, 6)),
                    ..p
                },
            );
            becomes(&p, &[Action::PopVlan], &P { vlan: None, ..p });
        } else {
            becomes(
                &p,
                &[Action::PushVlan(0x8100)],
                &P {
                    vlan: Some((0, 0)),
                    ..p
                },
            );
            let tag = [
                Action::PushVlan(0x8100),
                set(Field::VlanVid, 0x1009),
                set(Field::VlanPcp, 2),
            ];
            becomes(
                &p,
                &tag,
                &P {
                    vlan: Some((9, 2)),
                    ..p
                },
            );
        }
        if p.v6 {
            becomes(
                &p,
                &[set(Field::Ipv6Src, num(&B6))],
                &P { a6: (B6, B6), ..p },
            );
            becomes(
                &p,
                &[set(Field::Ipv6Dst, num(&A6))],
                &P { a6: (A6, A6), ..p },
            );
            becomes(
                &p,
                &[set(Field::Ipv6Flabel, 0xabcde)],
                &P {
                    label: 0xabcde,
                    ..p
                },
            );
        } else {
            becomes(
                &p,
                &[set(Field::Ipv4Src, num(&B4))],
                &P { v4: (B4, B4), ..p },
            );
            becomes(
                &p,
                &[set(Field::Ipv4Dst, num(&A4))],
                &P { v4: (A4, A4), ..p },
            );
        }
        let ports = match p.l4 {
            Kind::Tcp => [Field::TcpSrc, Field::TcpDst],
            Kind::Udp => [Field::UdpSrc, Field::UdpDst],
            Kind::Icmp => continue,
        };
        becomes(
            &p,
            &[set(ports[0], 1)],
            &P {
                ports: (1, 2000),
                ..p
            },
        );
        becomes(
            &p,
            &[set(ports[1], 65_535)],
            &P {
                ports: (1000, 65_535),
                ..p
            },
        );
        becomes(
            &p,
            &[set(ports[0], 0), set(ports[1], 0)],
            &P { ports: (0, 0), ..p },
        );
    }
}

/// Every value of a word under the UDP checksum: a sum of zero is written as all ones, and none stays none.
#[test]
fn udp_sums_of_zero() {
    for v6 in [false, true] {
        let p = P {
            l4: Kind::Udp,
            v6,
            ..BASE
        };
        let at = if v6 { 60 } else { 40 };
        // The port that makes the sum zero: etherparse wrote ones for it
        let zero = (0..=u16::MAX).find(|port| {
            let b = P {
                ports: (1000, *port),
                ..p
            }
            .build();
            b[at..at + 2] == [0xff, 0xff]
        });
        becomes(
            &p,
            &[set(Field::UdpDst, u128::from(zero.unwrap()))],
            &P {
                ports: (1000, zero.unwrap()),
                ..p
            },
        );
    }
    let p = P {
        l4: Kind::Udp,
        ..BASE
    };
    let (mut none, mut want) = (
        p.build(),
        P {
            ports: (1, 2000),
            v4: (B4, B4),
            ..p
        }
        .build(),
    );
    none[40..42].fill(0);
    want[40..42].fill(0);
    let actions = [set(Field::UdpSrc, 1), set(Field::Ipv4Src, num(&B4))];
    assert_eq!(through(&none, &p.fields(), &actions), [Got::Out(2, want)]);
}

/// A wrong checksum stays wrong by as much: the switch doesn't make a broken packet look whole.
#[test]
fn wrong_sums_stay_wrong() {
    let mut broken = BASE.build();
    broken[60] ^= 1;
    let Got::Out(2, got) = &through(&broken, &BASE.fields(), &[set(Field::TcpDst, 1)])[0] else {
        panic!()
    };
    let mut want = P {
        ports: (1000, 1),
        ..BASE
    }
    .build();
    want[60] ^= 1;
    assert_eq!(*got, want);
}

/// The transport header that came keeps its place and its checksum, whatever the protocol is called.
#[test]
fn set_field_of_the_protocol() {
    for v6 in [false, true] {
        for l4 in [Kind::Tcp, Kind::Udp] {
            let p = P { v6, l4, ..BASE };
            let (header, at, sum) = match (v6, l4) {
                (false, Kind::Tcp) => (23, 34, 16),
                (false, _) => (23, 34, 6),
                (true, Kind::Tcp) => (20, 54, 16),
                (true, _) => (20, 54, 6),
            };
            let before = p.build();
            let mut want = before.clone();
            want[header] = 99;
            if !v6 {
                want[24..26].fill(0);
                let c = !words(&want[14..34], 0);
                want[24..26].copy_from_slice(&c.to_be_bytes());
            }
            want[at + sum..at + sum + 2].fill(0);
            let addresses = if v6 { &want[22..54] } else { &want[26..34] };
            let pseudo = u32::from(words(addresses, 0)) + 99 + (want.len() - at) as u32;
            let c = !words(&want[at..], pseudo);
            want[at + sum..at + sum + 2].copy_from_slice(&c.to_be_bytes());
            assert_eq!(
                through(&before, &p.fields(), &[set(Field::IpProto, 99)]),
                [Got::Out(2, want)]
            );
            // And back it is what it was
            let to_and_fro = [
                set(Field::IpProto, 99),
                set(Field::IpProto, if l4 == Kind::Tcp { 6 } else { 17 }),
            ];
            let mut s = switch(Version::V13);
            let mut list = to_and_fro.to_vec();
            list.push(Action::Output {
                port: 2,
                max_len: 0,
            });
            add(&mut s, 1, &p.fields(), apply(&list));
            assert_eq!(send(&mut s, 1, &before), [Got::Out(2, before.clone())]);
        }
    }
}

fn words(b: &[u8], start: u32) -> u16 {
    let mut s = start;
    for w in b.chunks(2) {
        s += u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0));
    }
    while s > 0xffff {
        s = (s >> 16) + (s & 0xffff);
    }
    s as u16
}

#[test]
fn icmp_types_and_codes() {
    for v6 in [false, true] {
        let p = P {
            v6,
            l4: Kind::Icmp,
            ..BASE
        };
        let (kind, code, at) = if v6 {
            (Field::Icmpv6Type, Field::Icmpv6Code, 54)
        } else {
            (Field::Icmpv4Type, Field::Icmpv4Code, 34)
        };
        let mut want = p.build();
        want[at] = 3;
        want[at + 1] = 4;
        want[at + 2..at + 4].fill(0);
        let pseudo = if v6 {
            u32::from(words(&want[22..54], 0)) + 58 + (want.len() - at) as u32
        } else {
            0
        };
        let c = !words(&want[at..], pseudo);
        want[at + 2..at + 4].copy_from_slice(&c.to_be_bytes());
        assert_eq!(
            through(&p.build(), &p.fields(), &[set(kind, 3), set(code, 4)]),
            [Got::Out(2, want)]
        );
    }
}

#[test]
fn arp() {
    let mut f = [
        &DST[..],
        &SRC,
        &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
        &SRC,
        &A4,
        &[0; 6],
        &B4,
    ]
    .concat();
    f.extend([0; 18]);
    let arp = [Oxm::exact(Field::EthType, 0x0806)];
    for (field, value, at, len) in [
        (Field::ArpOp, 2, 20, 2),
        (Field::ArpSha, num(&DST), 22, 6),
        (Field::ArpSpa, num(&B4), 28, 4),
        (Field::ArpTha, num(&DST), 32, 6),
        (Field::ArpTpa, num(&A4), 38, 4),
    ] {
        let mut want = f.clone();
        want[at..at + len].copy_from_slice(&value.to_be_bytes()[16 - len..]);
        assert_eq!(through(&f, &arp, &[set(field, value)]), [Got::Out(2, want)]);
    }
}

/// §5.12.1, table 8: what of a new header comes from those that are there.
#[test]
fn pushed_headers_take_from_those_that_are_there() {
    let ip = BASE.build();
    let ip4 = [Oxm::exact(Field::EthType, 0x0800)];
    let mpls = [Oxm::exact(Field::EthType, 0x8847)];
    let mut once = ip.clone();
    once.splice(12..14, [0x88, 0x47, 0, 0, 1, 64]);
    assert_eq!(
        through(&ip, &ip4, &[Action::PushMpls(0x8847)]),
        [Got::Out(2, once.clone())]
    );
    // Label and traffic class and TTL from the outer one, which is no more the outermost
    once[14..18].copy_from_slice(&[0x12, 0x34, 0x57, 9]);
    let mut twice = once.clone();
    twice.splice(14..14, [0x12, 0x34, 0x56, 9]);
    assert_eq!(
        through(&once, &mpls, &[Action::PushMpls(0x8847)]),
        [Got::Out(2, twice.clone())]
    );
    assert_eq!(
        through(&twice, &mpls, &[Action::PopMpls(0x8847)]),
        [Got::Out(2, once.clone())]
    );
    assert_eq!(
        through(&once, &mpls, &[Action::PopMpls(0x0800)]),
        [Got::Out(2, ip.clone())]
    );
    let sets = [
        set(Field::MplsLabel, 0xfffff),
        set(Field::MplsTc, 0),
        set(Field::MplsBos, 0),
    ];
    let mut want = once.clone();
    want[14..18].copy_from_slice(&[0xff, 0xff, 0xf0, 9]);
    assert_eq!(through(&once, &mpls, &sets), [Got::Out(2, want)]);
    // VLAN and priority, the tag's drop bit not; behind the tags, MPLS
    let tagged = P {
        vlan: Some((100, 3)),
        ..BASE
    }
    .build();
    let mut want = tagged.clone();
    want.splice(12..12, [0x88, 0xa8, 0x60, 100]);
    assert_eq!(
        through(&tagged, &ip4, &[Action::PushVlan(0x88a8)]),
        [Got::Out(2, want)]
    );
    let mut want = tagged.clone();
    want.splice(16..18, [0x88, 0x47, 0, 0, 1, 64]);
    assert_eq!(
        through(&tagged, &ip4, &[Action::PushMpls(0x8847)]),
        [Got::Out(2, want)]
    );
    // A service tag has the addresses, the priority of the tag, the I-SID of the outer service tag
    let mut pbb = [&DST[..], &SRC, &[0x88, 0xe7, 0x60, 0, 0, 0]].concat();
    pbb.extend(&tagged);
    assert_eq!(
        through(&tagged, &ip4, &[Action::PushPbb(0x88e7)]),
        [Got::Out(2, pbb.clone())]
    );
    let service = [Oxm::exact(Field::EthType, 0x88e7)];
    let mut want = pbb.clone();
    want[15..18].copy_from_slice(&[1, 2, 3]);
    assert_eq!(
        through(&pbb, &service, &[set(Field::PbbIsid, 0x010203)]),
        [Got::Out(2, want.clone())]
    );
    let mut twice = [&DST[..], &SRC, &[0x88, 0xe7, 0, 1, 2, 3]].concat();
    twice.extend(&want);
    assert_eq!(
        through(&want, &service, &[Action::PushPbb(0x88e7)]),
        [Got::Out(2, twice)]
    );
    assert_eq!(
        through(&pbb, &service, &[Action::PopPbb]),
        [Got::Out(2, tagged)]
    );
}

#[test]
fn ttls_are_copied_and_used_up() {
    let mpls = [Oxm::exact(Field::EthType, 0x8847)];
    let labelled = |ip: &P, ttl: u8| {
        let mut f = ip.build();
        f.splice(12..14, [0x88, 0x47, 0, 0, 0x11, ttl]);
        f
    };
    for v6 in [false, true] {
        let p = P { v6, ..BASE };
        let f = labelled(&p, 9);
        let out = |f| [Got::Out(2, f)];
        assert_eq!(
            through(&f, &mpls, &[Action::CopyTtlIn]),
            out(labelled(&P { ttl: 9, ..p }, 9))
        );
        assert_eq!(
            through(&f, &mpls, &[Action::CopyTtlOut]),
            out(labelled(&p, 64))
        );
        assert_eq!(
            through(&f, &mpls, &[Action::SetMplsTtl(3)]),
            out(labelled(&p, 3))
        );
        assert_eq!(
            through(&f, &mpls, &[Action::DecMplsTtl]),
            out(labelled(&p, 8))
        );
        for ttl in [0, 1] {
            assert_eq!(
                through(&labelled(&p, ttl), &mpls, &[Action::DecMplsTtl]),
                []
            );
            let p = P { ttl, ..p };
            assert_eq!(through(&p.build(), &p.fields(), &[Action::DecNwTtl]), []);
        }
    }
}

/// A frame that fills its buffer still gets the room for as many headers as fit behind it.
#[test]
fn many_headers() {
    let ip4 = [Oxm::exact(Field::EthType, 0x0800)];
    let f = BASE.build();
    let pushes = [Action::PushPbb(0x88e7); 20];
    let mut s = switch(Version::V13);
    let mut list = pushes.to_vec();
    list.push(Action::Output {
        port: 2,
        max_len: 0,
    });
    add(&mut s, 1, &ip4, apply(&list));
    let Got::Out(2, got) = &send(&mut s, 1, &f)[0] else {
        panic!()
    };
    assert_eq!(got.len(), f.len() + 20 * 18);
    assert_eq!(got[20 * 18..], f);
}

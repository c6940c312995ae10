// SPDX-License-Identifier: Apache-2.0
//! What the chips' rows can ask for.
use crate::expand::expand;
use crate::tables::{self, Chip, MacLookup};
use tandem_openflow::{Field, Oxm};

fn rows(chip: &Chip, fields: &[(Field, u128)]) -> Vec<(&'static str, bool, u32)> {
    let fields: Vec<Oxm> = fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect();
    expand(&chip.acl, &fields)
        .iter()
        .map(|r| (chip.acl.kinds[r.kind].name, r.exact, r.lines))
        .collect()
}

const IP4: (Field, u128) = (Field::EthType, 0x0800);
const IP6: (Field, u128) = (Field::EthType, 0x86dd);
const SRC: (Field, u128) = (Field::EthSrc, 0x0200_0000_0001);
const BROADCAST: (Field, u128) = (Field::EthDst, 0xffff_ffff_ffff);

#[test]
fn keys_of_is2() {
    let c = tables::vsc9953(MacLookup::Vlan);
    assert_eq!(rows(&c, &[]), [("ANY", true, 1)]);
    assert_eq!(rows(&c, &[(Field::InPort, 1)]), [("ANY", true, 1)]);
    assert_eq!(rows(&c, &[BROADCAST]), [("ANY", true, 1)]);
    assert_eq!(rows(&c, &[IP4, BROADCAST]), [("IP4", true, 1)]);
    assert_eq!(
        rows(&c, &[(Field::EthType, 0x88cc), SRC]),
        [("MAC_ETYPE", true, 1)]
    );
    // IPv4's keys have no MAC addresses
    assert_eq!(rows(&c, &[IP4, SRC]), [("IP4", false, 1)]);
    assert_eq!(
        rows(&c, &[SRC]),
        [
            ("MAC_ETYPE", true, 1),
            ("MAC_LLC, MAC_SNAP", true, 2),
            ("ARP", true, 1),
            ("IP4", false, 1),
            ("IP6_STD", false, 1),
            ("ARP, of RARP", true, 1),
        ]
    );
    let tcp = (Field::IpProto, 6);
    assert_eq!(rows(&c, &[IP4, tcp]), [("IP4_TCP_UDP", true, 1)]);
    assert_eq!(
        rows(&c, &[IP4, tcp, (Field::TcpDst, 80)]),
        [("IP4_TCP_UDP", true, 1)]
    );
    let icmp = (Field::IpProto, 1);
    assert_eq!(rows(&c, &[IP4, icmp]), [("IP4_OTHER", true, 1)]);
    assert_eq!(
        rows(&c, &[IP4, icmp, (Field::Icmpv4Type, 8)]),
        [("IP4_OTHER", false, 1)]
    );
    // IPv6's has the source and the protocol
    assert_eq!(
        rows(&c, &[IP6, tcp, (Field::Ipv6Src, 1)]),
        [("IP6_STD", true, 1)]
    );
    assert_eq!(
        rows(&c, &[IP6, (Field::Ipv6Dst, 1)]),
        [("IP6_STD", false, 1)]
    );
    assert_eq!(
        rows(&c, &[IP6, tcp, (Field::TcpDst, 80)]),
        [("IP6_STD", false, 1)]
    );
    // RARP has ARP's key, and that has no destination; OAM is an EtherType as others
    let rarp = (Field::EthType, 0x8035);
    assert_eq!(rows(&c, &[rarp]), [("ARP, of RARP", true, 1)]);
    assert_eq!(rows(&c, &[rarp, SRC]), [("ARP, of RARP", true, 1)]);
    let to = (Field::EthDst, 0x0200_0000_0001);
    assert_eq!(rows(&c, &[rarp, to]), [("ARP, of RARP", false, 1)]);
    for oam in [0x8809, 0x88ee, 0x8902] {
        let oam = (Field::EthType, oam);
        assert_eq!(rows(&c, &[oam, SRC, to]), [("MAC_ETYPE", true, 1)]);
    }
    let arp = (Field::EthType, 0x0806);
    assert_eq!(
        rows(&c, &[arp, (Field::ArpOp, 1), (Field::ArpTpa, 7)]),
        [("ARP", true, 1)]
    );
    assert_eq!(rows(&c, &[arp, (Field::ArpOp, 3)]), [("ARP", false, 1)]);
    assert_eq!(rows(&c, &[(Field::Metadata, 1)]), [("ANY", false, 1)]);
}

#[test]
fn keys_of_is1() {
    let is1 = tables::vsc9953(MacLookup::Vlan).class.unwrap().rows;
    let of = |fields: &[(Field, u128)]| {
        let fields: Vec<Oxm> = fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect();
        let rows = expand(&is1, &fields);
        let all: Vec<_> = rows
            .iter()
            .map(|r| (is1.kinds[r.kind].name, r.exact, r.lines))
            .collect();
        all
    };
    let (port, vlan) = ((Field::InPort, 1), (Field::VlanVid, 0x100a));
    assert_eq!(of(&[port, vlan]), [("S1_NORMAL", true, 2)]);
    assert_eq!(of(&[port, vlan, IP4, SRC]), [("S1_NORMAL", true, 2)]);
    let to = (Field::EthDst, 0x0200_0000_0001);
    assert_eq!(of(&[vlan, to]), [("S1_NORMAL, of destinations", true, 2)]);
    // A lookup has the addresses of one end
    assert!(!of(&[vlan, to, SRC])[0].1);
    let tcp = [
        IP4,
        (Field::IpProto, 6),
        (Field::Ipv4Src, 1),
        (Field::Ipv4Dst, 2),
    ];
    assert_eq!(of(&tcp), [("S1_5TUPLE_IP4", true, 2)]);
    let port80 = [tcp.as_slice(), &[(Field::TcpDst, 80)]].concat();
    assert_eq!(of(&port80), [("S1_5TUPLE_IP4, with ports", true, 2)]);
    assert_eq!(of(&[IP6, (Field::IpDscp, 10)]), [("S1_NORMAL", true, 2)]);
    for more in [(Field::Ipv6Src, 1), (Field::IpProto, 6), (Field::IpEcn, 1)] {
        assert!(!of(&[IP6, more])[0].1, "{more:?}");
    }
}

#[test]
fn a_widened_row_keeps_prerequisites() {
    let c = tables::vsc9953(MacLookup::Vlan);
    let fields = [
        IP6,
        (Field::IpProto, 58),
        (Field::Icmpv6Type, 135),
        (Field::Ipv6NdTarget, 1),
    ];
    let fields: Vec<Oxm> = fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect();
    let rows = expand(&c.acl, &fields);
    assert_eq!(rows.len(), 1);
    let asked: Vec<Field> = rows[0].fields.iter().map(|o| o.field).collect();
    assert_eq!(asked, [Field::EthType, Field::IpProto]);
    // IS1 has the source port in a key that has no protocol: without it, it would be another protocol's as well
    let fields = [
        IP4,
        (Field::IpProto, 6),
        (Field::Ipv4Src, 9),
        (Field::TcpSrc, 80),
    ];
    let fields: Vec<Oxm> = fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect();
    let is1 = c.class.unwrap().rows;
    let rows = expand(&is1, &fields[..2]);
    assert!(rows.iter().any(|r| r.exact));
    let mut normal = is1.clone();
    normal.kinds.truncate(1);
    let rows = expand(&normal, &fields);
    let asked: Vec<Field> = rows[0].fields.iter().map(|o| o.field).collect();
    assert_eq!(asked, [Field::EthType, Field::Ipv4Src]);
}

#[test]
fn vlan_bits_without_the_tags_bit_are_not_asked_for() {
    let c = tables::vsc9953(MacLookup::Vlan);
    let some = expand(&c.acl, &[Oxm::masked(Field::VlanVid, 0, 0xfff)]);
    assert!(!some[0].exact);
    let tagged = expand(&c.acl, &[Oxm::masked(Field::VlanVid, 0x1000, 0x1000)]);
    assert!(tagged[0].exact);
}

#[test]
fn widths_of_the_profiles() {
    let c = tables::tiny(MacLookup::Vlan);
    assert_eq!(rows(&c, &[SRC]), [("l2", true, 1)]);
    assert_eq!(rows(&c, &[IP4, (Field::Ipv4Dst, 1)]), [("ipv4", true, 1)]);
    assert_eq!(
        rows(&c, &[IP4, SRC, (Field::Ipv4Dst, 1)]),
        [("full", true, 4)]
    );
    assert_eq!(rows(&c, &[IP6, (Field::Ipv6Dst, 1)]), [("ipv6", true, 2)]);
    let c = tables::arista_7500e(1000, MacLookup::Vlan);
    assert_eq!(
        rows(&c, &[IP6, SRC, (Field::Ipv6Dst, 1)]),
        [("full", true, 8)]
    );
}

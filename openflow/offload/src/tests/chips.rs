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
    let rows = expand(&c.around[0], &fields[..2]);
    assert!(rows.iter().any(|r| r.exact));
    let mut normal = c.around[0].clone();
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

// SPDX-License-Identifier: Apache-2.0
//! The tables of a chip, as data: what their rows can match, what they can do, how much there is of them.
//!
//! Sources of [`vsc9953`]: Linux, `drivers/net/dsa/ocelot/seville_vsc9953.c` (fields of IS1, IS2 and ES0 with their
//! widths), `include/soc/mscc/ocelot_vcap.h` (types of keys, their sizes), `drivers/net/ethernet/mscc/ocelot_vcap.c`
//! (which frames are looked up with which key); sizes as in `profiles/nxp-t1040.toml`.
use crate::PortMask;
use tandem_openflow::Field;

/// Which values of a field a row can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masks {
    /// All of it or none.
    Exact,
    /// Any bits of it.
    Any,
    /// All of it, and one of these.
    Values(&'static [u128]),
    /// Only these: value and mask.
    Bits(&'static [(u128, u128)]),
}

/// A field that a row can look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Which.
    pub field: Field,
    /// How.
    pub masks: Masks,
}

/// Frames that a row of some kind can meet at all. The chip looks up a frame with the key of its type alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// All.
    Any,
    /// Of one of these EtherTypes.
    Ether(&'static [u16]),
    /// Of the EtherType, with one of these protocols.
    Proto(u16, &'static [u8]),
    /// Of the EtherType, with any protocol but these.
    NotProto(u16, &'static [u8]),
    /// Of any EtherType but these.
    Others(&'static [u16]),
}

impl Frames {
    /// Does it have every frame of this EtherType and protocol (`None`: of any)?
    pub fn covers(self, ether: Option<u16>, proto: Option<u8>) -> bool {
        match self {
            Frames::Any => true,
            Frames::Ether(list) => ether.is_some_and(|e| list.contains(&e)),
            Frames::Proto(e, list) => ether == Some(e) && proto.is_some_and(|p| list.contains(&p)),
            Frames::NotProto(e, list) => {
                ether == Some(e) && proto.is_some_and(|p| !list.contains(&p))
            }
            Frames::Others(list) => ether.is_some_and(|e| !list.contains(&e)),
        }
    }

    /// The EtherType that all of them have.
    pub fn one(self) -> Option<u16> {
        match self {
            Frames::Ether([one]) => Some(*one),
            Frames::Proto(one, _) | Frames::NotProto(one, _) => Some(one),
            _ => None,
        }
    }

    /// Does it have any of them?
    pub fn meets(self, ether: Option<u16>, proto: Option<u8>) -> bool {
        let is = |e: u16| ether.is_none_or(|x| x == e);
        match self {
            Frames::Any => true,
            Frames::Ether(list) => ether.is_none_or(|e| list.contains(&e)),
            Frames::Proto(e, list) => is(e) && proto.is_none_or(|p| list.contains(&p)),
            Frames::NotProto(e, list) => is(e) && proto.is_none_or(|p| !list.contains(&p)),
            Frames::Others(list) => ether.is_none_or(|e| !list.contains(&e)),
        }
    }
}

/// A kind of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowKind {
    /// The data sheet's name.
    pub name: &'static str,
    /// Frames that it meets.
    pub frames: Frames,
    /// Fields that it can look at.
    pub columns: Vec<Column>,
    /// Lines of the memory that it takes.
    pub lines: u32,
}

/// Which fields an action can write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rewrites {
    /// Can a tag come, or go?
    pub tags: bool,
    pub vid: bool,
    pub pcp: bool,
    pub dscp: bool,
}

/// What of a hit is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counted {
    pub packets: bool,
    pub bytes: bool,
}

/// A TCAM: its rows have an order, the first that matches decides. Kinds of rows share its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcam {
    /// As `show` prints it.
    pub name: &'static str,
    /// Lines.
    pub size: u32,
    /// Kinds of rows.
    pub kinds: Vec<RowKind>,
    /// Kinds (by index) that between them meet every frame once: into these a match is cut that no kind can do alone.
    pub split: Vec<usize>,
    /// Can a row redirect to several ports? The mask stands in the row then.
    pub port_sets: bool,
    /// What a row can write.
    pub rewrites: Rewrites,
    /// What it counts.
    pub counted: Counted,
}

/// A MAC table: exact, without priorities, without counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacTable {
    /// Entries.
    pub size: u32,
    /// Can an entry be for one VLAN?
    pub vlan: bool,
    /// Can an entry be for all VLANs? Of one address there are never entries of both sorts in the table.
    pub any_vlan: bool,
    /// Masks for entries that go to several ports; entries of the same ports share one.
    pub port_sets: u32,
}

/// Classification in front of the ACL: the first row that matches says what is written into a packet, and puts it into a group
/// that rows of the ACL can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classify {
    /// Its rows.
    pub rows: Tcam,
    /// The first number of a group that is to be used, not 0: that is of packets that no row matches.
    pub first: u8,
    /// How many.
    pub groups: u8,
    /// So many of them, the first, are for flows whose packets leave in two forms, and have a VLAN id each that the tables behind
    /// the ACL know their packets by ([`crate::FORM_VIDS`]); 0: there are no such flows.
    pub forms: u8,
}

/// A chip. A frame meets the ACL first, then the MAC table, then what is done with a miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// The profile's.
    pub name: &'static str,
    /// The table that decides first.
    pub acl: Tcam,
    /// What decides where no row does.
    pub mac: Option<MacTable>,
    /// Can it drop what neither knows? It can always send it to the CPU.
    pub miss_drop: bool,
    /// What goes before it, if there is something.
    pub class: Option<Classify>,
    /// Tags behind them, where one form for all ports, which follows from the class, is not enough.
    pub egress: Option<Tcam>,
}

/// How the ports of the OpenFlow domain classify frames, and so what keys the MAC table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacLookup {
    /// By VLAN and address (VLAN-aware ports).
    Vlan,
    /// By address alone (VLAN-unaware ports: all frames are in one domain).
    Address,
    /// By either: a chip with two lookups.
    Both,
}

impl MacLookup {
    fn table(self, size: u32, port_sets: u32) -> Option<MacTable> {
        Some(MacTable {
            size,
            vlan: self != MacLookup::Address,
            any_vlan: self != MacLookup::Vlan,
            port_sets,
        })
    }
}

const ARP: u16 = 0x0806;
/// Looked up with the key of ARP, which has a bit to tell the two apart.
const RARP: u16 = 0x8035;
const IP4: u16 = 0x0800;
const IP6: u16 = 0x86dd;
/// What OpenFlow has for frames of 802.2 without SNAP.
const LLC: u16 = 0x05ff;

fn columns(fields: &[Field], masks: Masks) -> Vec<Column> {
    fields
        .iter()
        .map(|f| Column {
            field: *f,
            masks: if f.maskable() || *f == Field::InPort {
                masks
            } else {
                Masks::Exact
            },
        })
        .collect()
}

fn kind(name: &'static str, frames: Frames, lines: u32, parts: &[&[Column]]) -> RowKind {
    RowKind {
        name,
        frames,
        columns: parts.concat(),
        lines,
    }
}

/// `L2_MC` and `L2_BC`: all that keys without addresses know of a destination.
const GROUP_BITS: Masks = Masks::Bits(&[
    ((1 << 48) - 1, (1 << 48) - 1),
    (1 << 40, 1 << 40),
    (0, 1 << 40),
]);

/// VSC9953, the switch in the T1040: rows of IS2 are half keys. The keys of IPv4 have no MAC addresses, the key of
/// IPv6 has the source and the protocol only, ARP's has no destination address; what other keys know of it are the
/// two bits *group* and *broadcast*. Frames of OAM are looked up as all other EtherTypes (`S2_OAM_DIS` of every port):
/// their key meets several EtherTypes and can ask for one of them.
///
/// IS1 classifies in front of it: VLAN id, PCP, DSCP, and a policy association group, eight bits that all keys of IS2 have. Ports
/// whose own VLAN is one that no tag carries, and whose frames leave with a tag of all VLANs but that (`REW_TAG_CFG`), give a frame
/// a tag, another one, or none by its class alone.
pub fn vsc9953(lookup: MacLookup) -> Chip {
    let port_vlan = columns(&[Field::InPort, Field::VlanVid, Field::VlanPcp], Masks::Any);
    let group = [Column {
        field: Field::EthDst,
        masks: GROUP_BITS,
    }];
    let macs = columns(&[Field::EthDst, Field::EthSrc], Masks::Any);
    let ether = columns(&[Field::EthType], Masks::Exact);
    let ip4 = columns(
        &[Field::IpDscp, Field::IpEcn, Field::Ipv4Src, Field::Ipv4Dst],
        Masks::Any,
    );
    let proto = columns(&[Field::IpProto], Masks::Exact);
    let ports = columns(
        &[Field::TcpSrc, Field::TcpDst, Field::UdpSrc, Field::UdpDst],
        Masks::Any,
    );
    let mut arp = columns(&[Field::EthSrc, Field::ArpSpa, Field::ArpTpa], Masks::Any);
    arp.push(Column {
        field: Field::ArpOp,
        masks: Masks::Values(&[1, 2]),
    });
    let rarp = columns(&[Field::EthSrc], Masks::Any);
    let ip6 = columns(&[Field::Ipv6Src], Masks::Any);
    let is2 = Tcam {
        name: "IS2",
        size: 2048,
        kinds: vec![
            kind("ANY", Frames::Any, 1, &[&port_vlan, &group]),
            kind(
                "MAC_ETYPE",
                Frames::Others(&[ARP, RARP, IP4, IP6, LLC]),
                1,
                &[&port_vlan, &macs, &ether],
            ),
            // Two types of keys, LLC and SNAP, and a half row of each
            kind(
                "MAC_LLC, MAC_SNAP",
                Frames::Ether(&[LLC]),
                2,
                &[&port_vlan, &macs, &ether],
            ),
            kind(
                "ARP",
                Frames::Ether(&[ARP]),
                1,
                &[&port_vlan, &group, &arp, &ether],
            ),
            kind(
                "IP4",
                Frames::Ether(&[IP4]),
                1,
                &[&port_vlan, &group, &ip4, &ether],
            ),
            kind(
                "IP4_TCP_UDP",
                Frames::Proto(IP4, &[6, 17]),
                1,
                &[&port_vlan, &group, &ip4, &ether, &proto, &ports],
            ),
            kind(
                "IP4_OTHER",
                Frames::NotProto(IP4, &[6, 17]),
                1,
                &[&port_vlan, &group, &ip4, &ether, &proto],
            ),
            kind(
                "IP6_STD",
                Frames::Ether(&[IP6]),
                1,
                &[&port_vlan, &group, &ip6, &ether, &proto],
            ),
            kind(
                "ARP, of RARP",
                Frames::Ether(&[RARP]),
                1,
                &[&port_vlan, &group, &rarp, &ether],
            ),
        ],
        split: vec![1, 2, 3, 4, 7, 8],
        port_sets: true,
        rewrites: Rewrites::default(),
        counted: Counted {
            packets: true,
            bytes: false,
        },
    };
    let is1_l4 = columns(&[Field::TcpSrc, Field::UdpSrc], Masks::Exact);
    let is1_ip4 = columns(&[Field::IpDscp, Field::Ipv4Src, Field::Ipv4Dst], Masks::Any);
    let is1 = Tcam {
        name: "IS1",
        size: 1024,
        kinds: vec![
            kind(
                "S1_NORMAL",
                Frames::Any,
                2,
                &[
                    &port_vlan,
                    &group,
                    &columns(
                        &[Field::EthSrc, Field::EthType, Field::IpDscp, Field::Ipv4Src],
                        Masks::Any,
                    ),
                    &is1_l4,
                ],
            ),
            // In one of the lookups it has the destination's addresses (S1_DMAC_DIP_ENA)
            kind(
                "S1_NORMAL, of destinations",
                Frames::Any,
                2,
                &[
                    &port_vlan,
                    &columns(
                        &[Field::EthDst, Field::EthType, Field::IpDscp, Field::Ipv4Dst],
                        Masks::Any,
                    ),
                ],
            ),
            kind(
                "S1_5TUPLE_IP4",
                Frames::Ether(&[IP4]),
                2,
                &[&port_vlan, &group, &is1_ip4, &ether, &proto],
            ),
            // The first 32 bits of what IP carries
            kind(
                "S1_5TUPLE_IP4, with ports",
                Frames::Proto(IP4, &[6, 17]),
                2,
                &[&port_vlan, &group, &is1_ip4, &ether, &proto, &ports],
            ),
        ],
        split: vec![0],
        port_sets: false,
        rewrites: Rewrites {
            tags: true,
            vid: true,
            pcp: true,
            dscp: true,
        },
        counted: Counted::default(),
    };
    let es0 = Tcam {
        name: "ES0",
        size: 1024,
        kinds: vec![kind("ES0", Frames::Any, 1, &[&port_vlan, &group])],
        split: vec![0],
        port_sets: false,
        rewrites: Rewrites {
            tags: true,
            vid: true,
            pcp: true,
            dscp: false,
        },
        counted: Counted::default(),
    };
    Chip {
        name: "nxp-t1040",
        acl: is2,
        // 64 destination masks: eleven of single ports and the CPU, five of flooding
        mac: lookup.table(8192, 48),
        miss_drop: true,
        class: Some(Classify {
            rows: is1,
            first: 1,
            groups: 255,
            forms: 0,
        }),
        egress: Some(es0),
    }
}

/// Lines of a row by what it looks at, as the profiles have them (`[acl]`, `widths`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Widths {
    pub l2: u32,
    pub ipv4: u32,
    pub ipv6: u32,
    pub full: u32,
}

/// A chip that is known by its widths alone: the keys of docs/acl.md, one port for a redirect.
pub fn by_widths(
    name: &'static str,
    memory: &'static str,
    size: u32,
    widths: Widths,
    mac: Option<MacTable>,
) -> Chip {
    let port_vlan = columns(
        &[
            Field::InPort,
            Field::VlanVid,
            Field::VlanPcp,
            Field::EthType,
        ],
        Masks::Any,
    );
    let macs = columns(&[Field::EthDst, Field::EthSrc], Masks::Any);
    let ip = columns(
        &[
            Field::IpDscp,
            Field::IpEcn,
            Field::IpProto,
            Field::TcpSrc,
            Field::TcpDst,
            Field::UdpSrc,
            Field::UdpDst,
            Field::SctpSrc,
            Field::SctpDst,
        ],
        Masks::Any,
    );
    let ip4 = columns(
        &[
            Field::Ipv4Src,
            Field::Ipv4Dst,
            Field::Icmpv4Type,
            Field::Icmpv4Code,
        ],
        Masks::Any,
    );
    let ip6 = columns(
        &[
            Field::Ipv6Src,
            Field::Ipv6Dst,
            Field::Icmpv6Type,
            Field::Icmpv6Code,
        ],
        Masks::Any,
    );
    let (f4, f6) = (Frames::Ether(&[IP4]), Frames::Ether(&[IP6]));
    let Widths {
        l2,
        ipv4,
        ipv6,
        full,
    } = widths;
    Chip {
        name,
        acl: Tcam {
            name: memory,
            size,
            kinds: vec![
                kind("l2", Frames::Any, l2, &[&port_vlan, &macs]),
                kind("ipv4", f4, ipv4, &[&port_vlan, &ip, &ip4]),
                kind("ipv6", f6, ipv6, &[&port_vlan, &ip, &ip6]),
                kind("full", f4, full, &[&port_vlan, &macs, &ip, &ip4]),
                kind("full", f6, full, &[&port_vlan, &macs, &ip, &ip6]),
            ],
            split: vec![0],
            port_sets: false,
            rewrites: Rewrites {
                tags: false,
                vid: true,
                pcp: true,
                dscp: false,
            },
            counted: Counted {
                packets: true,
                bytes: true,
            },
        },
        mac,
        miss_drop: false,
        class: None,
        egress: None,
    }
}

/// `profiles/arista-7500e.toml`: rules are in the memory of IPv6 prefixes; `size` is what of it is for them.
pub fn arista_7500e(size: u32, lookup: MacLookup) -> Chip {
    let widths = Widths {
        l2: 2,
        ipv4: 2,
        ipv6: 5,
        full: 8,
    };
    by_widths(
        "arista-7500e",
        "ipv6-lpm",
        size,
        widths,
        lookup.table(262_144, 0),
    )
}

/// `profiles/tiny.toml`
pub fn tiny(lookup: MacLookup) -> Chip {
    let widths = Widths {
        l2: 1,
        ipv4: 1,
        ipv6: 2,
        full: 4,
    };
    by_widths("tiny", "acl-tcam", 32, widths, lookup.table(32, 0))
}

/// Does a table without a rewrite of its own do this one? Ports beside it are the caller's question.
pub(crate) fn writes(table: Rewrites, wanted: crate::Rewrite) -> bool {
    (table.tags || wanted.tag == crate::Tagging::Stays)
        && (table.vid || wanted.vid.is_none())
        && (table.pcp || wanted.pcp.is_none())
        && (table.dscp || wanted.dscp.is_none())
}

/// May a row of the ACL have these ports?
pub(crate) fn redirects(table: &Tcam, ports: PortMask) -> bool {
    table.port_sets || ports.count() <= 1
}

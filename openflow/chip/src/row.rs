// SPDX-License-Identifier: Apache-2.0
//! A row of the list: what OpenFlow asks of a packet, said in the fields of the chip's parser.
//!
//! Where the two parsers read a frame differently, a guard in front of all rows sends it to the CPU ([`guards`]); what
//! has headers that end too early the chip sends there itself, whatever the list says.
//!
//! | frame | OpenFlow | the chip | so |
//! |---|---|---|---|
//! | two tags | EtherType behind the last | behind the first, which is a tag's | guard |
//! | an 802.1ad tag outside | a tag like any | another kind of tag; *tagged* is one bit of two | guard |
//! | first fragment | has ports | has none | guard |
//! | later fragment | has none (1.0: zeros) | zeros | rows on ports ask for none of either; 1.0: guard |
//! | 802.3 | length (1.0: SNAP's type, or 0x05ff) | length | 1.0: guard |
//! | VLAN 0 | a tag | a tag, but no domain of the MAC table | rows; no entry |

use tandem_abi::object::Object;
use tandem_abi::raw;
use tandem_ofoffload::{Act, FORM_VIDS, Leaves, MASK_VIDS, Rewrite, Tagging};
use tandem_openflow::oxm::VID_PRESENT;
use tandem_openflow::{Field, Oxm, Version};

/// Number of the row behind all others, where the list is all that looks at a frame.
pub(crate) const LAST_ROW: u32 = u32::MAX;

const TPID_C: u16 = 0x8100;
const TPID_S: u16 = 0x88a8;
const IP4: u16 = 0x0800;
const IP6: u16 = 0x86dd;

/// A field that a rule of the ABI has a place for.
pub(crate) fn has_place(field: Field) -> bool {
    matches!(
        field,
        Field::InPort
            | Field::EthDst
            | Field::EthSrc
            | Field::EthType
            | Field::VlanVid
            | Field::VlanPcp
            | Field::IpDscp
            | Field::IpEcn
            | Field::IpProto
            | Field::Ipv4Src
            | Field::Ipv4Dst
            | Field::Ipv6Src
            | Field::Ipv6Dst
            | Field::TcpSrc
            | Field::TcpDst
            | Field::UdpSrc
            | Field::UdpDst
            | Field::SctpSrc
            | Field::SctpDst
            | Field::Icmpv4Type
            | Field::Icmpv4Code
            | Field::Icmpv6Type
            | Field::Icmpv6Code
    )
}

fn mac(v: u128) -> [u8; 6] {
    let [_, _, _, _, _, _, _, _, _, _, a, b, c, d, e, f] = v.to_be_bytes();
    [a, b, c, d, e, f]
}

fn put4(to: &mut [u8; 16], v: u128) {
    for (t, f) in to.iter_mut().zip((v as u32).to_be_bytes()) {
        *t = f;
    }
}

fn blank(table: u32, at: u32) -> raw::tnd_acl_entry {
    let mut e = raw::tnd_acl_entry {
        table,
        priority: at,
        action: raw::TND_ACL_TRAP,
        ..Default::default()
    };
    e.set_struct_size();
    e
}

/// The row's match, without what it does. `None`: a field that no rule has a place for. `port` has the chip's number of
/// an OpenFlow port.
pub(crate) fn of(
    table: u32,
    at: u32,
    fields: &[Oxm],
    port: impl Fn(u32) -> Option<u16>,
) -> Option<raw::tnd_acl_entry> {
    let mut e = blank(table, at);
    let (k, m) = (&mut e.key, &mut e.mask);
    for o in fields {
        let (v, mask) = (o.value, o.mask);
        match o.field {
            Field::InPort => {
                // Of a port that the chip does not have no frame comes
                k.port = u32::try_from(v).ok().and_then(&port).unwrap_or(u16::MAX);
                m.port = u16::MAX;
            }
            Field::EthDst => (k.dst_mac, m.dst_mac) = (mac(v), mac(mask)),
            Field::EthSrc => (k.src_mac, m.src_mac) = (mac(v), mac(mask)),
            Field::EthType => (k.ethertype, m.ethertype) = (v as u16, mask as u16),
            Field::VlanVid => {
                if mask as u16 & VID_PRESENT != 0 {
                    // Of tags 802.1Q's alone come here: the guards have the others
                    (k.tag, m.tag) = match v as u16 & VID_PRESENT {
                        0 => (raw::TND_ACL_UNTAGGED, u8::MAX),
                        _ => (raw::TND_ACL_TAG_8021Q, raw::TND_ACL_TAG_8021Q),
                    };
                }
                k.tci |= v as u16 & 0xfff;
                m.tci |= mask as u16 & 0xfff;
            }
            Field::VlanPcp => {
                k.tci |= (v as u16 & 7) << 13;
                m.tci |= (mask as u16 & 7) << 13;
            }
            Field::IpDscp => {
                k.tos |= (v as u8) << 2;
                m.tos |= (mask as u8) << 2;
            }
            Field::IpEcn => {
                k.tos |= v as u8 & 3;
                m.tos |= mask as u8 & 3;
            }
            Field::IpProto => (k.protocol, m.protocol) = (v as u8, mask as u8),
            Field::Ipv4Src => {
                put4(&mut k.src_ip, v);
                put4(&mut m.src_ip, mask);
            }
            Field::Ipv4Dst => {
                put4(&mut k.dst_ip, v);
                put4(&mut m.dst_ip, mask);
            }
            Field::Ipv6Src => (k.src_ip, m.src_ip) = (v.to_be_bytes(), mask.to_be_bytes()),
            Field::Ipv6Dst => (k.dst_ip, m.dst_ip) = (v.to_be_bytes(), mask.to_be_bytes()),
            Field::TcpSrc
            | Field::UdpSrc
            | Field::SctpSrc
            | Field::Icmpv4Type
            | Field::Icmpv6Type => {
                (k.src_port, m.src_port) = (v as u16, wide(o));
                m.fragment = raw::TND_ACL_FRAGMENT;
            }
            Field::TcpDst
            | Field::UdpDst
            | Field::SctpDst
            | Field::Icmpv4Code
            | Field::Icmpv6Code => {
                (k.dst_port, m.dst_port) = (v as u16, wide(o));
                m.fragment = raw::TND_ACL_FRAGMENT;
            }
            _ => return None,
        }
    }
    Some(e)
}

/// The mask of a field of 16 bits in the key; ICMP's have eight, and zeros above them.
fn wide(o: &Oxm) -> u16 {
    if o.mask == o.field.all_ones() {
        u16::MAX
    } else {
        o.mask as u16
    }
}

/// What a row does.
pub(crate) fn act(e: &mut raw::tnd_acl_entry, act: Act) {
    e.action = raw::TND_ACL_TRAP;
    (e.flags, e.target, e.vid, e.pcp) = (0, 0, 0, 0);
    e.ports = [0; raw::TND_PORT_SET_BYTES];
    match act {
        Act::Cpu => {}
        Act::Drop => e.action = raw::TND_ACL_DROP,
        Act::Out { ports, rewrite } => {
            let mut all = ports.ports();
            match (all.next(), all.next()) {
                (None, _) => e.action = raw::TND_ACL_DROP,
                (Some(one), None) => {
                    e.action = raw::TND_ACL_REDIRECT_PORT;
                    e.target = u32::from(one);
                }
                _ => {
                    e.action = raw::TND_ACL_REDIRECT_PORTS;
                    e.ports = bitmap(ports);
                }
            }
            if let Some(vid) = rewrite.vid {
                e.flags |= raw::TND_ACL_SET_VID;
                e.vid = vid;
            }
            if let Some(pcp) = rewrite.pcp {
                e.flags |= raw::TND_ACL_SET_PCP;
                e.pcp = pcp;
            }
        }
    }
}

/// The row of a group of packets, which traps.
pub(crate) fn of_group(table: u32, at: u32, group: u8) -> raw::tnd_acl_entry {
    let mut e = blank(table, at);
    (e.key.group, e.mask.group) = (group, u8::MAX);
    e
}

/// What a row that classifies does: its packets are of a group, and this is written.
pub(crate) fn classify(e: &mut raw::tnd_acl_entry, group: u8, writes: Rewrite) {
    (e.action, e.group) = (raw::TND_ACL_PERMIT, group);
    (e.flags, e.vid, e.pcp, e.dscp) = (0, 0, 0, 0);
    let vid = match writes.tag {
        Tagging::Goes => Some(raw::TND_ACL_VID_NONE),
        Tagging::Comes | Tagging::Stays => writes.vid,
    };
    if let Some(vid) = vid {
        e.flags |= raw::TND_ACL_SET_VID;
        e.vid = vid;
    }
    if let Some(pcp) = writes.pcp {
        e.flags |= raw::TND_ACL_SET_PCP;
        e.pcp = pcp;
    }
    if let Some(dscp) = writes.dscp {
        e.flags |= raw::TND_ACL_SET_DSCP;
        e.dscp = dscp;
    }
}

/// What packets with this VLAN id leave a port with.
pub(crate) fn form(table: u32, group: u8, vid: u16, leaves: Leaves) -> raw::tnd_acl_entry {
    let mut e = blank(table, u32::from(group));
    (e.key.tci, e.mask.tci) = (vid, 0xfff);
    e.action = raw::TND_ACL_PERMIT;
    e.flags = raw::TND_ACL_SET_VID;
    e.vid = leaves.vid.unwrap_or(raw::TND_ACL_VID_NONE);
    if let Some(pcp) = leaves.pcp {
        e.flags |= raw::TND_ACL_SET_PCP;
        e.pcp = pcp;
    }
    e
}

/// What the list that classifies begins with, where packets leave in two forms: what comes in with a VLAN id by which such
/// packets are known would leave as they do.
pub(crate) fn class_guard(table: u32) -> raw::tnd_acl_entry {
    let mut e = blank(table, 0);
    (e.key.tci, e.mask.tci) = (FORM_VIDS, MASK_VIDS);
    e
}

/// Ports as a port set has them.
pub(crate) fn bitmap(ports: tandem_ofoffload::PortMask) -> [u8; raw::TND_PORT_SET_BYTES] {
    let mut bits = [0; raw::TND_PORT_SET_BYTES];
    for p in ports.ports() {
        if let Some(b) = bits.get_mut(usize::from(p / 8)) {
            *b |= 1 << (p % 8);
        }
    }
    bits
}

/// What the list ends with: all that no other row of it answers.
pub(crate) fn last(table: u32, miss: Act) -> raw::tnd_acl_entry {
    let mut e = blank(table, LAST_ROW);
    act(&mut e, miss);
    e
}

/// What the list begins with: frames that the two parsers read differently, to the CPU. Numbers from 0 on.
pub(crate) fn guards(table: u32, version: Version, ports6: bool) -> Vec<raw::tnd_acl_entry> {
    let mut all = Vec::new();
    let mut guard = |set: &dyn Fn(&mut raw::tnd_acl_key, &mut raw::tnd_acl_key)| {
        let mut e = blank(table, all.len() as u32);
        set(&mut e.key, &mut e.mask);
        all.push(e);
    };
    guard(&|k, m| (k.tag, m.tag) = (raw::TND_ACL_TAG_8021AD, raw::TND_ACL_TAG_8021AD));
    for tpid in [TPID_C, TPID_S] {
        guard(&|k, m| (k.ethertype, m.ethertype) = (tpid, u16::MAX));
    }
    let piece = |of: u16, which: u8| {
        move |k: &mut raw::tnd_acl_key, m: &mut raw::tnd_acl_key| {
            (k.ethertype, m.ethertype) = (of, u16::MAX);
            (k.fragment, m.fragment) = (which, which);
        }
    };
    match version {
        Version::V10 => {
            guard(&piece(IP4, raw::TND_ACL_FRAGMENT));
            // A length, 0 to 0x5ff
            guard(&|k, m| (k.ethertype, m.ethertype) = (0, 0xfc00));
            guard(&|k, m| (k.ethertype, m.ethertype) = (0x0400, 0xfe00));
        }
        Version::V13 => {
            guard(&piece(IP4, raw::TND_ACL_FRAGMENT_FIRST));
            if ports6 {
                guard(&piece(IP6, raw::TND_ACL_FRAGMENT_FIRST));
            }
        }
    }
    all
}

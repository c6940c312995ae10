// SPDX-License-Identifier: Apache-2.0
//! From a frame to its [`Key`], and where in the frame the headers are.
//!
//! Any bytes are a frame: a header that is cut short, or says what cannot be, is not there, and neither is anything
//! behind it. VLAN tags are passed through to the EtherType behind the last; of MPLS and PBB the outermost header alone is
//! looked at, as the standard has it (§7.2.3.7).
use crate::key::{self, Key};
use tandem_openflow::oxm::VID_PRESENT;
use tandem_openflow::{Field, Version};

/// IPv6's extension headers as bits (§7.2.3.8).
pub mod exthdr {
    #![allow(missing_docs)]
    pub const NO_NEXT: u16 = 1 << 0;
    pub const ESP: u16 = 1 << 1;
    pub const AUTH: u16 = 1 << 2;
    pub const DEST: u16 = 1 << 3;
    pub const FRAG: u16 = 1 << 4;
    pub const ROUTER: u16 = 1 << 5;
    pub const HOP: u16 = 1 << 6;
    /// One is there more often than it may be.
    pub const UNREP: u16 = 1 << 7;
    /// They are not in the order of RFC 8200, section 4.1.
    pub const UNSEQ: u16 = 1 << 8;
}

/// The network header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Net {
    /// None that is known, or not whole.
    #[default]
    None,
    /// IPv4
    Ip4,
    /// IPv6
    Ip6,
    /// ARP, of Ethernet and IPv4
    Arp,
    /// MPLS
    Mpls,
    /// PBB's I-TAG and the customer's addresses and EtherType behind it
    Pbb,
}

/// Where the headers are: offsets from the first byte of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Which header is at [`Layout::net_at`].
    pub net: Net,
    /// A VLAN tag at offset 12?
    pub tagged: bool,
    /// Is it a fragment, the first or a later one?
    pub fragment: bool,
    /// Of the EtherType behind the tags.
    pub type_at: u32,
    /// Of the network header.
    pub net_at: u32,
    /// Of the byte that says what protocol follows (IPv4, IPv6 with the last extension header).
    pub proto_at: u32,
    /// Of the transport header; 0 when there is none.
    pub l4_at: u32,
    /// Where the packet ends by its own length, or the frame, when that is sooner. Behind may be padding.
    pub end: u32,
    /// Of ND's option with a source link-layer address: of the address.
    pub sll_at: u32,
    /// The same of a target link-layer address.
    pub tll_at: u32,
    /// Of what the IP header carries, whatever it is; 0 when that is part of something that began in another packet.
    pub body_at: u32,
    /// Of the transport header whose checksum is kept: as it was when this IP header was first seen, whatever the header
    /// is made to say after. 0: there is none.
    pub sum_at: u32,
    /// The protocol of that header.
    pub sum_proto: u8,
    /// An IPv6 routing header with segments left: the checksum is over its last address, not the header's destination.
    pub routed: bool,
}

#[inline]
fn be16(b: &[u8], at: usize) -> Option<u16> {
    match b.get(at..at + 2) {
        Some(&[x, y]) => Some(u16::from_be_bytes([x, y])),
        _ => None,
    }
}

#[inline]
fn mac(b: &[u8]) -> u64 {
    let mut v = [0; 8];
    if let Some(six) = b.first_chunk::<6>() {
        v[2..].copy_from_slice(six);
    }
    u64::from_be_bytes(v)
}

#[inline]
fn word(b: &[u8], at: usize) -> u64 {
    match b.get(at..).and_then(|b| b.first_chunk::<8>()) {
        Some(w) => u64::from_be_bytes(*w),
        None => 0,
    }
}

/// Fills all of `key` but the ports, the metadata and the tunnel, which are left as they are. `None`: less than an
/// Ethernet header.
#[inline]
pub fn parse(b: &[u8], version: Version, key: &mut Key) -> Option<Layout> {
    let head = b.first_chunk::<14>()?;
    let dst = mac(&head[..]);
    let src = mac(&head[6..]);
    let mut at = 12;
    let mut ether = u16::from_be_bytes([head[12], head[13]]);
    let mut lay = Layout::default();
    let mut vlan = 0;
    key.0[5..].fill(0);
    while matches!(ether, 0x8100 | 0x88a8) {
        let (Some(tci), Some(next)) = (be16(b, at + 2), be16(b, at + 4)) else {
            break;
        };
        if !lay.tagged {
            vlan = (VID_PRESENT | tci & 0xfff) << 3 | tci >> 13;
            lay.tagged = true;
        }
        ether = next;
        at += 4;
    }
    lay.type_at = at as u32;
    let mut net_at = at + 2;
    if version == Version::V10 && ether < 0x600 {
        // 1.0, section 3.4: the type is that of SNAP, if its organisation is 0, else 0x05ff
        ether = match b.get(net_at..net_at + 8) {
            Some(&[0xaa, 0xaa, 3, 0, 0, 0, x, y]) => {
                net_at += 8;
                u16::from_be_bytes([x, y])
            }
            _ => 0x05ff,
        };
    }
    lay.net_at = net_at as u32;
    lay.end = b.len() as u32;
    key.0[3] = dst << 16 | u64::from(ether);
    key.0[4] = src << 16 | u64::from(vlan);
    let body = b.get(net_at..).unwrap_or_default();
    match ether {
        0x0800 => ip4(body, version, key, &mut lay),
        0x86dd => ip6(body, key, &mut lay),
        0x0806 => arp(body, key, &mut lay),
        0x8847 | 0x8848 => {
            if let Some(shim) = body.first_chunk::<4>() {
                lay.net = Net::Mpls;
                key.0[key::THERE] |= key::NET;
                key.0[10] |= u64::from(u32::from_be_bytes(*shim)) & 0xffff_ff00;
            }
        }
        0x88e7 if body.len() >= 18 => {
            lay.net = Net::Pbb;
            key.0[key::THERE] |= key::NET;
            if let Some(isid) = be24(body) {
                key.set(Field::PbbIsid, u128::from(isid));
            }
        }
        _ => {}
    }
    Some(lay)
}

fn be24(tci: &[u8]) -> Option<u32> {
    tci.first_chunk::<4>()
        .map(|t| u32::from_be_bytes(*t) & 0x00ff_ffff)
}

#[inline]
fn ip4(b: &[u8], version: Version, key: &mut Key, lay: &mut Layout) {
    let Some(h) = b.first_chunk::<20>() else {
        return;
    };
    let len = usize::from(h[0] & 0xf) * 4;
    if h[0] >> 4 != 4 || len < 20 || b.len() < len {
        return;
    }
    lay.net = Net::Ip4;
    let total = usize::from(u16::from_be_bytes([h[2], h[3]]));
    lay.proto_at = lay.net_at + 9;
    let proto = h[9];
    // DSCP and ECN stand in the key as in the header
    key.0[5] = key::NET | u64::from(proto) << 40 | u64::from(h[1]) << 32;
    key.0[6] = word(h, 12);
    let frag = u16::from_be_bytes([h[6], h[7]]);
    lay.fragment = frag & 0x3fff != 0;
    if total < len {
        return;
    }
    lay.end = lay.end.min(lay.net_at + total as u32);
    if frag & 0x1fff != 0 {
        // 1.0, section 3.4: zero for all fragments but the first. 1.3 has no such fields then (section 7.3.2)
        if version == Version::V10 && matches!(proto, 1 | 6 | 17) {
            key.0[5] |= key::L4;
        }
        return;
    }
    lay.body_at = lay.net_at + len as u32;
    l4(b, len, proto, false, key, lay);
}

fn ip6(b: &[u8], key: &mut Key, lay: &mut Layout) {
    let Some(h) = b.first_chunk::<40>() else {
        return;
    };
    if h[0] >> 4 != 6 {
        return;
    }
    lay.net = Net::Ip6;
    let tclass = u64::from(h[0] << 4 | h[1] >> 4);
    key.0[6] = word(h, 8);
    key.0[7] = word(h, 16);
    key.0[8] = word(h, 24);
    key.0[9] = word(h, 32);
    let label = u32::from_be_bytes([0, h[1] & 0xf, h[2], h[3]]);
    lay.end = lay
        .end
        .min(lay.net_at + 40 + u32::from(u16::from_be_bytes([h[4], h[5]])));
    let mut next = h[6];
    lay.proto_at = lay.net_at + 6;
    let mut at = 40;
    let mut bits = 0;
    let mut furthest = 0;
    let mut later = false;
    let body = b.get(..(lay.end - lay.net_at) as usize).unwrap_or_default();
    // Each round goes on by eight bytes at least
    let whole = loop {
        let (bit, rank) = match next {
            0 => (exthdr::HOP, 1),
            60 => (exthdr::DEST, if furthest <= 2 { 2 } else { 7 }),
            43 => (exthdr::ROUTER, 3),
            44 => (exthdr::FRAG, 4),
            51 => (exthdr::AUTH, 5),
            50 => (exthdr::ESP, 6),
            59 => (exthdr::NO_NEXT, 8),
            _ => break true,
        };
        // Destination options may be there twice: before the routing header, and last
        if bits & bit != 0 && !(bit == exthdr::DEST && rank == 7 && furthest < 7) {
            bits |= exthdr::UNREP;
        }
        if rank < furthest {
            bits |= exthdr::UNSEQ;
        }
        bits |= bit;
        furthest = furthest.max(rank);
        if matches!(next, 50 | 59) {
            break true;
        }
        let Some(&[following, len]) = body.get(at..at + 2) else {
            break false;
        };
        let size = match next {
            44 => 8,
            51 => (usize::from(len) + 2) * 4,
            _ => (usize::from(len) + 1) * 8,
        };
        if body.len() < at + size {
            break false;
        }
        if next == 44 {
            let frag = be16(body, at + 2).unwrap_or_default();
            lay.fragment = true;
            later = frag & 0xfff8 != 0;
        }
        if next == 43 {
            lay.routed |= body.get(at + 3).is_some_and(|left| *left > 0);
        }
        lay.proto_at = lay.net_at + at as u32;
        next = following;
        at += size;
        if later {
            break true;
        }
    };
    key.0[5] = key::NET | u64::from(next) << 40 | tclass << 32;
    key.0[10] = u64::from(label) << 44 | u64::from(bits) << 32;
    if whole && !later {
        lay.body_at = lay.net_at + at as u32;
        l4(b, at, next, true, key, lay);
    }
}

/// The transport header at `at` of the network header's bytes.
#[inline]
fn l4(b: &[u8], at: usize, proto: u8, v6: bool, key: &mut Key, lay: &mut Layout) {
    let end = ((lay.end - lay.net_at) as usize).min(b.len());
    let Some(h) = b.get(at..end) else {
        return;
    };
    let least = match (proto, v6) {
        (6, _) => 20,
        (17, _) => 8,
        (132, _) => 12,
        (1, false) | (58, true) => 4,
        _ => return,
    };
    if h.len() < least {
        return;
    }
    lay.l4_at = lay.net_at + at as u32;
    lay.sum_at = lay.l4_at;
    lay.sum_proto = proto;
    let Some(four) = h.first_chunk::<4>() else {
        return;
    };
    let ports = if matches!(proto, 1 | 58) {
        u64::from(four[0]) << 16 | u64::from(four[1])
    } else {
        u64::from(u32::from_be_bytes(*four))
    };
    key.0[5] |= key::L4 | ports;
    if proto == 58 && matches!(four[0], 135 | 136) {
        nd(h, four[0], key, lay);
    }
}

/// Neighbour discovery (RFC 4861, sections 4.3, 4.4): the target, and the option that goes with the message.
fn nd(h: &[u8], kind: u8, key: &mut Key, lay: &mut Layout) {
    if h.len() < 24 {
        return;
    }
    key.0[11] = word(h, 8);
    key.0[12] = word(h, 16);
    key.0[5] |= key::ND_TARGET;
    let mut at = 24;
    while let Some(&[option, eights]) = h.get(at..at + 2) {
        let size = usize::from(eights) * 8;
        if size == 0 || h.len() < at + size {
            return;
        }
        // Source link-layer address 1 of a solicitation, target link-layer address 2 of an advertisement; the first counts
        let wanted = if kind == 135 { 1 } else { 2 };
        if option == wanted {
            let address = h.get(at + 2..).unwrap_or_default();
            key.0[13] = mac(address);
            let place = lay.l4_at + at as u32 + 2;
            if kind == 135 {
                key.0[5] |= key::ND_SLL;
                lay.sll_at = place;
            } else {
                key.0[5] |= key::ND_TLL;
                lay.tll_at = place;
            }
            return;
        }
        at += size;
    }
}

fn arp(b: &[u8], key: &mut Key, lay: &mut Layout) {
    let Some(a) = b.first_chunk::<28>() else {
        return;
    };
    if a[..6] != [0, 1, 8, 0, 6, 4] {
        return;
    }
    lay.net = Net::Arp;
    key.0[5] |= key::NET;
    key.0[7] = mac(&a[8..]) << 16 | u64::from(u16::from_be_bytes([a[6], a[7]]));
    key.0[8] = mac(&a[18..]) << 16;
    let spa = word(a, 14) >> 32;
    let tpa = u64::from(u32::from_be_bytes([a[24], a[25], a[26], a[27]]));
    key.0[6] = spa << 32 | tpa;
}

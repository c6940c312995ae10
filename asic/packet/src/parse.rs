//! Header views: every field is read once, with its bounds checked, into plain values.
//!
//! Parsing is in two steps, because most bridged frames need only the first: [`parse`] reads Ethernet and the outer tag,
//! [`Parsed::l3`] reads IP when somebody asks. Like the kernel's receive path, only one tag is looked through: behind a
//! second one everything is payload.

use crate::checksum;
use crate::ether::{self, EtherType, Mac, Tag};

/// The Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed {
    /// Destination address.
    pub dst: Mac,
    /// Source address.
    pub src: Mac,
    /// Outer tag.
    pub tag: Option<Tag>,
    /// Type behind the outer tag; below 0x600 it is an 802.3 length.
    pub ethertype: EtherType,
    /// Where the payload starts, bytes from the start of the frame: 14 or 18.
    pub l3_offset: usize,
}

/// Why a header that claims to be IP is none (RFC 1812 5.2.2, RFC 8200 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadHeader {
    /// The frame ends inside the header.
    Truncated,
    /// Version field and EtherType disagree.
    Version,
    /// IPv4 header length below 20 bytes or beyond the packet.
    HeaderLength,
    /// The packet claims to be longer than the frame, or shorter than its header.
    TotalLength,
    /// IPv4 header checksum.
    Checksum,
}

impl std::fmt::Display for BadHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            BadHeader::Truncated => "truncated",
            BadHeader::Version => "wrong version",
            BadHeader::HeaderLength => "bad header length",
            BadHeader::TotalLength => "bad total length",
            BadHeader::Checksum => "bad header checksum",
        })
    }
}

/// What follows the Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum L3 {
    /// Neither IP nor ARP.
    Other,
    /// ARP (not looked into: the CPU answers it).
    Arp,
    /// IPv4 with a sound header.
    Ip4(Ip4),
    /// IPv6 with a sound header.
    Ip6(Ip6),
    /// EtherType says IP, the header does not.
    Bad(BadHeader),
}

/// IPv4 header (RFC 791).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip4 {
    /// Source.
    pub src: [u8; 4],
    /// Destination.
    pub dst: [u8; 4],
    /// Time to live.
    pub ttl: u8,
    /// Header bytes, 20..=60.
    pub header_len: u8,
    /// Header and payload in bytes.
    pub total_len: u16,
    /// A fragment, first ones too: ports are not used for hashing then.
    pub fragment: bool,
    /// Transport.
    pub l4: L4,
}

/// IPv6 header (RFC 8200).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip6 {
    /// Source.
    pub src: [u8; 16],
    /// Destination.
    pub dst: [u8; 16],
    /// Hop limit.
    pub hop_limit: u8,
    /// Bytes behind the fixed header.
    pub payload_len: u16,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// What the fixed header says comes next. All fragments of a packet agree on it, whatever lies behind the fragment header.
    pub next_header: u8,
    /// A hop-by-hop header follows: every router must look.
    pub hop_by_hop: bool,
    /// A fragment header was met.
    pub fragment: bool,
    /// Transport.
    pub l4: L4,
}

/// Transport header, as far as it matters. Zero where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct L4 {
    /// IP protocol number, behind extension headers.
    pub protocol: u8,
    /// Source port of TCP, UDP, SCTP, DCCP, UDP-Lite.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// ICMP or ICMPv6 type.
    pub icmp_type: u8,
}

/// IP protocol numbers (IANA) that are looked at.
pub mod protocol {
    #![allow(missing_docs)]
    pub const ICMP: u8 = 1;
    pub const IGMP: u8 = 2;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const DCCP: u8 = 33;
    pub const AH: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const EIGRP: u8 = 88;
    pub const OSPF: u8 = 89;
    pub const PIM: u8 = 103;
    pub const VRRP: u8 = 112;
    pub const SCTP: u8 = 132;
    pub const UDPLITE: u8 = 136;
}

impl L4 {
    /// ICMPv6 133..=137: router and neighbour discovery, redirect (RFC 4861).
    pub fn is_nd(&self) -> bool {
        self.protocol == protocol::ICMPV6 && matches!(self.icmp_type, 133..=137)
    }

    /// ICMPv6 130..=132 and 143: multicast listeners (RFC 2710, RFC 3810).
    pub fn is_mld(&self) -> bool {
        self.protocol == protocol::ICMPV6 && matches!(self.icmp_type, 130..=132 | 143)
    }
}

#[inline]
fn array<const N: usize>(b: &[u8], at: usize) -> Option<[u8; N]> {
    b.get(at..)?.first_chunk::<N>().copied()
}

#[inline]
fn be16(b: &[u8], at: usize) -> Option<u16> {
    array::<2>(b, at).map(u16::from_be_bytes)
}

/// Reads the Ethernet header and the outer tag. None: shorter than a header. A tag that the frame cuts off counts as
/// payload with the tag's own EtherType.
#[inline]
pub fn parse(b: &[u8]) -> Option<Parsed> {
    let head = b.first_chunk::<{ ether::HEADER }>()?;
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *head;
    let mut p = Parsed {
        dst: [d0, d1, d2, d3, d4, d5],
        src: [s0, s1, s2, s3, s4, s5],
        tag: None,
        ethertype: EtherType(u16::from_be_bytes([t0, t1])),
        l3_offset: ether::HEADER,
    };
    if p.ethertype.is_tag()
        && let Some([c0, c1, i0, i1]) = array::<4>(b, ether::HEADER)
    {
        p.tag = Some(Tag {
            tpid: p.ethertype.0,
            tci: u16::from_be_bytes([c0, c1]),
        });
        p.ethertype = EtherType(u16::from_be_bytes([i0, i1]));
        p.l3_offset = ether::HEADER + ether::TAG;
    }
    Some(p)
}

impl Parsed {
    /// Reads what follows, with `b` the frame that was parsed.
    #[inline]
    pub fn l3(&self, b: &[u8]) -> L3 {
        let payload = b.get(self.l3_offset..).unwrap_or_default();
        match self.ethertype {
            EtherType::IPV4 => ip4(payload).map_or_else(L3::Bad, L3::Ip4),
            EtherType::IPV6 => ip6(payload).map_or_else(L3::Bad, L3::Ip6),
            EtherType::ARP => L3::Arp,
            _ => L3::Other,
        }
    }

    /// The transport header behind an authentication header (RFC 4302), if there is one: whose packet it is can be read there.
    /// [`Parsed::l3`] stops before it, as the kernel's flow dissector does, so rules and hashes see protocol 51.
    pub fn behind_ah(&self, b: &[u8]) -> Option<L4> {
        let ip = b.get(self.l3_offset..)?;
        match self.l3(b) {
            L3::Ip4(h) if h.l4.protocol == protocol::AH && be16(ip, 6)? & 0x1fff == 0 => {
                let rest = ip.get(usize::from(h.header_len)..usize::from(h.total_len))?;
                Some(l4(*rest.first()?, rest.get(ah_len(rest)?..)?))
            }
            L3::Ip6(h) if h.l4.protocol == protocol::AH => {
                let payload = ip.get(40..40 + usize::from(h.payload_len))?;
                Some(extensions(h.next_header, payload, true).1)
            }
            _ => None,
        }
    }
}

/// Bytes of an authentication header: in units of four, less two (RFC 4302 2.2).
fn ah_len(header: &[u8]) -> Option<usize> {
    header.get(1).map(|units| (usize::from(*units) + 2) * 4)
}

/// Reads an IPv4 header and checks it as a router must (RFC 1812 5.2.2). `b` starts at the header and may have padding
/// behind the packet.
#[inline]
pub fn ip4(b: &[u8]) -> Result<Ip4, BadHeader> {
    let h = b.first_chunk::<20>().ok_or(BadHeader::Truncated)?;
    if h[0] >> 4 != 4 {
        return Err(BadHeader::Version);
    }
    let header_len = (h[0] & 0x0f) * 4;
    if header_len < 20 {
        return Err(BadHeader::HeaderLength);
    }
    let header = b
        .get(..usize::from(header_len))
        .ok_or(BadHeader::Truncated)?;
    let sound = if header_len == 20 {
        checksum::ip4_header_ok(h)
    } else {
        checksum::sum(header) == 0xffff
    };
    if !sound {
        return Err(BadHeader::Checksum);
    }
    let total_len = u16::from_be_bytes([h[2], h[3]]);
    if usize::from(total_len) > b.len() || total_len < u16::from(header_len) {
        return Err(BadHeader::TotalLength);
    }
    let frag = u16::from_be_bytes([h[6], h[7]]);
    let fragment = frag & 0x3fff != 0;
    let payload = b
        .get(usize::from(header_len)..usize::from(total_len))
        .unwrap_or_default();
    Ok(Ip4 {
        src: [h[12], h[13], h[14], h[15]],
        dst: [h[16], h[17], h[18], h[19]],
        ttl: h[8],
        header_len,
        total_len,
        fragment,
        l4: if frag & 0x1fff != 0 {
            L4 {
                protocol: h[9],
                ..L4::default()
            }
        } else {
            l4(h[9], payload)
        },
    })
}

/// Reads an IPv6 header; extension headers are walked as far as needed to find the transport (at most eight).
#[inline]
pub fn ip6(b: &[u8]) -> Result<Ip6, BadHeader> {
    let h = b.first_chunk::<40>().ok_or(BadHeader::Truncated)?;
    if h[0] >> 4 != 6 {
        return Err(BadHeader::Version);
    }
    let payload_len = u16::from_be_bytes([h[4], h[5]]);
    let payload = b
        .get(40..40 + usize::from(payload_len))
        .ok_or(BadHeader::TotalLength)?;
    let (fragment, l4) = match h[6] {
        0 | 43 | 44 | 60 => extensions(h[6], payload, false),
        next => (false, l4(next, payload)),
    };
    Ok(Ip6 {
        src: array(h, 8).unwrap_or_default(),
        dst: array(h, 24).unwrap_or_default(),
        hop_limit: h[7],
        payload_len,
        flow_label: u32::from_be_bytes([0, h[1] & 0x0f, h[2], h[3]]),
        next_header: h[6],
        hop_by_hop: h[6] == 0,
        fragment,
        l4,
    })
}

/// Walks hop-by-hop, routing, fragment and destination headers, and authentication headers if `through_ah`.
fn extensions(first: u8, payload: &[u8], through_ah: bool) -> (bool, L4) {
    let mut next = first;
    let mut rest = payload;
    let mut fragment = false;
    for _ in 0..8 {
        let len = match next {
            0 | 43 | 60 => match rest.get(1) {
                Some(units) => (usize::from(*units) + 1) * 8,
                None => return (fragment, L4::default()),
            },
            protocol::AH if through_ah => match ah_len(rest) {
                Some(len) => len,
                None => return (fragment, L4::default()),
            },
            44 => {
                fragment = true;
                let offset = be16(rest, 2).unwrap_or(0) & 0xfff8;
                if offset != 0 {
                    return (
                        true,
                        L4 {
                            protocol: rest.first().copied().unwrap_or(0),
                            ..L4::default()
                        },
                    );
                }
                8
            }
            _ => return (fragment, l4(next, rest)),
        };
        let Some(after) = rest.get(len..) else {
            return (fragment, L4::default());
        };
        next = rest.first().copied().unwrap_or(59);
        rest = after;
    }
    (
        fragment,
        L4 {
            protocol: next,
            ..L4::default()
        },
    )
}

#[inline]
fn l4(proto: u8, b: &[u8]) -> L4 {
    let mut l4 = L4 {
        protocol: proto,
        ..L4::default()
    };
    match proto {
        protocol::TCP | protocol::UDP | protocol::SCTP | protocol::DCCP | protocol::UDPLITE => {
            if let Some([s0, s1, d0, d1]) = array::<4>(b, 0) {
                l4.src_port = u16::from_be_bytes([s0, s1]);
                l4.dst_port = u16::from_be_bytes([d0, d1]);
            }
        }
        protocol::ICMP | protocol::ICMPV6 => l4.icmp_type = b.first().copied().unwrap_or(0),
        _ => {}
    }
    l4
}

/// Martian IPv4 source (RFC 1812 5.3.7 as the kernel applies it): 0/8, 127/8, multicast, limited broadcast.
#[inline]
pub fn is_martian_source4(a: &[u8; 4]) -> bool {
    a[0] == 0 || a[0] == 127 || a[0] & 0xf0 == 0xe0 || *a == [255; 4]
}

/// IPv4 destination that is never forwarded: 0/8, 127/8, multicast, limited broadcast.
#[inline]
pub fn is_unroutable_dst4(a: &[u8; 4]) -> bool {
    is_martian_source4(a)
}

/// Martian IPv6 source whatever happens next: multicast, loopback, IPv4-mapped.
#[inline]
pub fn is_martian_source6(a: &[u8; 16]) -> bool {
    a[0] == 0xff || is_loopback6(a) || is_v4_mapped(a)
}

/// IPv6 source that may talk to us, not through us: link-local, unspecified.
#[inline]
pub fn is_unforwardable_source6(a: &[u8; 16]) -> bool {
    is_link_local6(a) || *a == [0; 16]
}

/// fe80::/10
#[inline]
pub fn is_link_local6(a: &[u8; 16]) -> bool {
    a[0] == 0xfe && a[1] & 0xc0 == 0x80
}

/// ::1
#[inline]
pub fn is_loopback6(a: &[u8; 16]) -> bool {
    u128::from_be_bytes(*a) == 1
}

/// ::ffff:0:0/96
#[inline]
pub fn is_v4_mapped(a: &[u8; 16]) -> bool {
    u128::from_be_bytes(*a) >> 32 == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn v4(payload: &[u8]) -> Vec<u8> {
        let b = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([10, 0, 0, 1], [10, 0, 1, 9], 64)
            .udp(1000, 2000);
        let mut v = Vec::new();
        b.write(&mut v, payload).unwrap();
        v
    }

    #[test]
    fn reads_udp_over_ip4() {
        let f = v4(b"hello");
        let p = parse(&f).unwrap();
        assert_eq!(p.src, [2, 0, 0, 0, 0, 1]);
        assert_eq!(p.dst, [2, 0, 0, 0, 0, 2]);
        assert!(p.tag.is_none());
        let L3::Ip4(ip) = p.l3(&f) else {
            panic!("{:?}", p.l3(&f))
        };
        assert_eq!(ip.dst, [10, 0, 1, 9]);
        assert_eq!((ip.ttl, ip.header_len, ip.total_len), (64, 20, 33));
        assert_eq!((ip.l4.src_port, ip.l4.dst_port), (1000, 2000));
        assert!(!ip.fragment);
    }

    #[test]
    fn looks_through_one_tag_only() {
        let mut f = v4(b"x");
        f.splice(12..12, [0x81, 0, 0x60, 0x0a]);
        let p = parse(&f).unwrap();
        assert_eq!(p.tag.unwrap().vid(), 10);
        assert!(matches!(p.l3(&f), L3::Ip4(_)));
        f.splice(12..12, [0x88, 0xa8, 0, 5]);
        let p = parse(&f).unwrap();
        assert_eq!(p.tag.unwrap().tpid, 0x88a8);
        assert_eq!(p.ethertype, EtherType::VLAN);
        assert_eq!(p.l3(&f), L3::Other);
        // a tag cut off by the end of the frame
        let p = parse(&f[..16]).unwrap();
        assert!(p.tag.is_none());
        assert!(parse(&f[..13]).is_none());
    }

    #[test]
    fn names_what_is_wrong_with_ip4() {
        let good = v4(b"payload");
        let p = parse(&good).unwrap();
        let bad = |at: usize, v: u8| {
            let mut f = good.clone();
            f[14 + at] = v;
            match p.l3(&f) {
                L3::Bad(why) => why,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(bad(0, 0x65), BadHeader::Version);
        assert_eq!(bad(0, 0x44), BadHeader::HeaderLength);
        assert_eq!(bad(8, 1), BadHeader::Checksum);
        let mut f = good.clone();
        f.truncate(40);
        assert_eq!(p.l3(&f), L3::Bad(BadHeader::TotalLength));
        f.truncate(30);
        assert_eq!(p.l3(&f), L3::Bad(BadHeader::Truncated));
    }

    #[test]
    fn walks_ip6_extension_headers() {
        let mut ip = vec![0x60, 0x01, 0x23, 0x45, 0, 0, 0, 64];
        ip.extend([0x20; 16]);
        ip.extend([0x30; 16]);
        // hop-by-hop (8 bytes) -> destination options (16 bytes) -> MLDv2 report
        ip.extend([60, 0, 5, 2, 0, 0, 1, 0]);
        ip.extend([58, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        ip.extend([143, 0, 0, 0]);
        let len = (ip.len() - 40) as u16;
        ip[4..6].copy_from_slice(&len.to_be_bytes());
        let h = ip6(&ip).unwrap();
        assert!(h.hop_by_hop && h.l4.is_mld() && !h.l4.is_nd());
        assert_eq!(h.flow_label, 0x12345);
        // not the first fragment: no transport header
        let mut ip2 = ip[..40].to_vec();
        ip2[6] = 44;
        ip2[5] = 12;
        ip2.extend([17, 0, 0, 9, 0, 0, 0, 1, 0, 1, 0, 2]);
        let h = ip6(&ip2).unwrap();
        assert!(h.fragment);
        assert_eq!((h.l4.protocol, h.l4.src_port), (17, 0));
        ip2[4] = 1;
        assert_eq!(ip6(&ip2), Err(BadHeader::TotalLength));
    }

    /// IPv6 from 20:… to 30:…, `next` and what follows the fixed header.
    fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut f = vec![0; 12];
        f.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, payload.len() as u8, next, 64]);
        f.extend([0x20; 16]);
        f.extend([0x30; 16]);
        f.extend(payload);
        f
    }

    /// An authentication header with a checksum of 12 bytes (RFC 2403), and what follows.
    fn ah(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut h = vec![0; 24];
        (h[0], h[1]) = (next, 4);
        h.extend(rest);
        h
    }

    #[test]
    fn looks_behind_authentication_headers_when_asked() {
        let behind = |f: &[u8]| parse(f).unwrap().behind_ah(f).map(|l4| l4.protocol);
        let ospf = ah(protocol::OSPF, &[3, 1, 0, 16]);
        let mut options = vec![protocol::AH, 0, 1, 4, 0, 0, 0, 0];
        options.extend(&ospf);
        let mut fragment = vec![protocol::AH, 0, 0, 1, 0, 0, 0, 9];
        fragment.extend(&ospf);
        let mut later = fragment.clone();
        later[3] = 9;
        for (next, payload, wanted) in [
            (protocol::AH, &ospf, Some(protocol::OSPF)),
            (60, &options, Some(protocol::OSPF)),
            (protocol::AH, &ah(protocol::AH, &ospf), Some(protocol::OSPF)),
            (44, &fragment, Some(protocol::OSPF)),
            // nobody knows what is in there
            (44, &later, Some(protocol::AH)),
            (protocol::AH, &ospf[..20].to_vec(), Some(0)),
            (protocol::AH, &vec![89], Some(0)),
            (protocol::OSPF, &ospf, None),
        ] {
            let f = v6(next, payload);
            assert_eq!(behind(&f), wanted, "{next} {payload:?}");
            let L3::Ip6(ip) = parse(&f).unwrap().l3(&f) else {
                panic!()
            };
            if wanted.is_some() {
                assert_eq!(ip.l4.protocol, protocol::AH);
            }
        }
        let v4 = |frag: u8, payload: &[u8]| {
            let mut f = v4(&[]);
            f.truncate(34);
            f.extend(payload);
            f[17] = 20 + payload.len() as u8;
            (f[20], f[21], f[23]) = (0, frag, protocol::AH);
            checksum::ip4_set(&mut f[14..34]);
            f
        };
        assert_eq!(behind(&v4(0, &ospf)), Some(protocol::OSPF));
        assert_eq!(behind(&v4(1, &ospf)), None);
        assert_eq!(behind(&v4(0, &ospf[..20])), None);
        assert_eq!(behind(&v4(0, &[])), None);
    }

    #[test]
    fn fragments_have_no_ports_behind_the_first() {
        let mut f = v4(b"abcdefgh");
        f[14 + 6] = 0;
        f[14 + 7] = 1;
        checksum::ip4_set(&mut f[14..34]);
        let L3::Ip4(ip) = parse(&f).unwrap().l3(&f) else {
            panic!()
        };
        assert!(ip.fragment);
        assert_eq!(ip.l4.src_port, 0);
        assert_eq!(ip.l4.protocol, 17);
    }

    #[test]
    fn address_kinds() {
        assert!(is_martian_source4(&[127, 1, 1, 1]) && is_martian_source4(&[0, 1, 1, 1]));
        assert!(is_martian_source4(&[224, 0, 0, 1]) && is_martian_source4(&[255; 4]));
        assert!(!is_martian_source4(&[240, 0, 0, 1]) && !is_martian_source4(&[169, 254, 0, 1]));
        let mut a = [0; 16];
        assert!(is_unforwardable_source6(&a) && !is_martian_source6(&a));
        a[15] = 1;
        assert!(is_martian_source6(&a));
        a[10] = 0xff;
        a[11] = 0xff;
        assert!(is_v4_mapped(&a));
        assert!(is_link_local6(&[
            0xfe, 0xbf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
        ]));
    }

    /// Arbitrary bytes are read without a panic.
    #[test]
    fn fuzz() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for round in 0..50_000u32 {
            let len = (next() % 120) as usize;
            let mut f: Vec<u8> = (0..len).map(|_| next() as u8).collect();
            if len > 20 {
                f[12..14].copy_from_slice(match round % 3 {
                    0 => &[8, 0],
                    1 => &[0x86, 0xdd],
                    _ => &[0x81, 0],
                });
                f[14] = if round % 3 == 0 { 0x45 } else { 0x60 };
            }
            if let Some(p) = parse(&f) {
                let _ = p.l3(&f);
                let _ = p.behind_ah(&f);
                let _ = ip4(&f);
                let _ = ip6(&f);
            }
        }
    }
}

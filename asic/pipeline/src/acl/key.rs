//! The fields that rules match: the same words from a frame and from a rule's body.

use tandem_abi::raw;
use tandem_packet::parse::{Parsed, protocol};
use tandem_packet::{EtherType, L3, L4, Mac, Tag};
use tandem_tables::tcam::{Match, Ranges, WORDS, Words, word};

/// The match of a rule in normal form.
pub fn rule(e: &raw::tnd_acl_entry) -> Match {
    let v6 = e.mask.ethertype == u16::MAX && e.key.ethertype == EtherType::IPV6.0;
    let range = |min: u16, max: u16| (min != 0 || max != 0).then_some((min, max));
    Match {
        value: words(&e.key, v6),
        mask: words(&e.mask, v6),
        ranges: Ranges {
            src: range(e.src_port_min, e.src_port_max),
            dst: range(e.dst_port_min, e.dst_port_max),
        },
    }
}

fn words(k: &raw::tnd_acl_key, v6: bool) -> Words {
    let mut w = [0; WORDS];
    w[word::DST_MAC] = mac(&k.dst_mac);
    w[word::SRC_MAC] = mac(&k.src_mac) | u64::from(k.group) << word::GROUP_SHIFT;
    w[word::META] = u64::from(k.ethertype) << word::ETHERTYPE_SHIFT
        | u64::from(k.tci) << 32
        | u64::from(k.port) << 16
        | u64::from(k.tag) << 8
        | u64::from(k.fragment);
    w[word::L4] = u64::from(k.src_port) << 48
        | u64::from(k.dst_port) << 32
        | u64::from(k.protocol) << 24
        | u64::from(k.tos) << 16
        | u64::from(k.ttl) << 8
        | u64::from(k.tcp_flags);
    if v6 {
        [w[word::SRC_IP6], w[word::SRC_IP6 + 1]] = halves(&k.src_ip);
        [w[word::DST_IP6], w[word::DST_IP6 + 1]] = halves(&k.dst_ip);
    } else {
        let v4 = |a: &[u8; 16]| u64::from(u32::from_be_bytes([a[0], a[1], a[2], a[3]]));
        w[word::IP4] = v4(&k.src_ip) << 32 | v4(&k.dst_ip);
    }
    w
}

fn halves(b: &[u8; 16]) -> [u64; 2] {
    let a = u128::from_be_bytes(*b);
    [(a >> 64) as u64, a as u64]
}

pub(super) fn mac(m: &Mac) -> u64 {
    let [a, b, c, d, e, f] = *m;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// What a frame was classified as: VLAN id and priority, not the kind of tag; and the group.
pub(super) fn set_class(key: &mut Words, tci: u16, group: u8) {
    key[word::META] = key[word::META] & !0x0000_ffff_0000_0000 | u64::from(tci) << 32;
    key[word::SRC_MAC] |= u64::from(group) << word::GROUP_SHIFT;
}

pub(super) fn set_tag(key: &mut Words, tag: Option<Tag>) {
    key[word::META] = key[word::META] & !0x0000_ffff_0000_ff00 | tag_bits(tag);
}

/// The fields of a frame that leaves a port: where it came in, its destination, and the tag that it has on its way.
pub(super) fn on_its_way(ingress: u16, dst: &Mac, tag: Option<Tag>) -> Words {
    let mut w = [0; WORDS];
    w[word::DST_MAC] = mac(dst);
    w[word::META] = u64::from(ingress) << 16 | tag_bits(tag);
    w
}

/// Tag control and kind of tag, in place.
fn tag_bits(tag: Option<Tag>) -> u64 {
    match tag {
        None => u64::from(raw::TND_ACL_UNTAGGED) << 8,
        Some(t) => {
            let kind = if t.tpid == EtherType::VLAN.0 {
                raw::TND_ACL_TAG_8021Q
            } else {
                raw::TND_ACL_TAG_8021AD
            };
            u64::from(t.tci) << 32 | u64::from(kind) << 8
        }
    }
}

/// Writes the fields that rules match, from a frame, into `w`, which is zero; the layout is [`word`]'s. [`L3::Bad`]: it claims to be
/// IP and is not. In place, as a copy of words that were written one by one has to wait until all of them are; and within those
/// who ask, of whom one looks at what is returned.
#[inline(always)]
pub(super) fn fields(eth: &Parsed, frame: &[u8], ingress: u16, w: &mut Words) -> L3 {
    w[word::DST_MAC] = mac(&eth.dst);
    w[word::SRC_MAC] = mac(&eth.src);
    w[word::META] = u64::from(eth.ethertype.0) << word::ETHERTYPE_SHIFT
        | u64::from(ingress) << 16
        | tag_bits(eth.tag);
    let l3 = frame.get(eth.l3_offset..).unwrap_or_default();
    let read = eth.l3(frame);
    match &read {
        L3::Ip4(ip) => {
            w[word::IP4] =
                u64::from(u32::from_be_bytes(ip.src)) << 32 | u64::from(u32::from_be_bytes(ip.dst));
            let offset = l3.get(6..8).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
            let tos = l3.get(1).copied().unwrap_or(0);
            let payload = l3.get(usize::from(ip.header_len)..).unwrap_or_default();
            w[word::L4] = transport(&ip.l4, payload, ip.fragment, tos, ip.ttl);
            w[word::META] |= fragment(ip.fragment, offset & 0x1fff == 0);
        }
        L3::Ip6(ip) => {
            [w[word::SRC_IP6], w[word::SRC_IP6 + 1]] = halves(&ip.src);
            [w[word::DST_IP6], w[word::DST_IP6 + 1]] = halves(&ip.dst);
            let tos = l3.get(..2).map_or(0, |b| b[0] << 4 | b[1] >> 4);
            let at = transport_offset6(l3);
            let payload = l3.get(at.0..).unwrap_or_default();
            w[word::L4] = transport(&ip.l4, payload, ip.fragment, tos, ip.hop_limit);
            w[word::META] |= fragment(ip.fragment, at.1);
        }
        L3::Bad(_) | L3::Arp | L3::Other => {}
    }
    read
}

/// Bytes of a transport header that rules' fields come from, or that others read before they believe its ports.
const fn header(protocol: u8) -> usize {
    match protocol {
        protocol::TCP => 20,
        protocol::UDP => 8,
        protocol::SCTP => 12,
        protocol::ICMP | protocol::ICMPV6 => 4,
        _ => 0,
    }
}

/// Has the packet all of the headers that rules can ask for, and were they read to their end? Then a flow table in software reads
/// the same. Not with an authentication header: that one reads on behind it.
pub(super) fn is_whole(l3: &L3, eth: &Parsed, frame: &[u8]) -> bool {
    let packet = frame.get(eth.l3_offset..).unwrap_or_default();
    match l3 {
        L3::Ip4(ip) => {
            let later = packet.get(6..8).is_some_and(|b| b[0] & 0x1f | b[1] != 0);
            let (from, to) = (usize::from(ip.header_len), usize::from(ip.total_len));
            later
                || packet
                    .get(from..to)
                    .is_some_and(|b| b.len() >= header(ip.l4.protocol))
        }
        L3::Ip6(ip) => {
            let payload = packet.get(40..40 + usize::from(ip.payload_len));
            payload.is_some_and(|b| is_whole6(ip.next_header, b))
        }
        L3::Bad(_) => false,
        L3::Arp | L3::Other => true,
    }
}

fn is_whole6(mut next: u8, mut rest: &[u8]) -> bool {
    // as many as the parser follows
    for _ in 0..8 {
        let len = match (next, rest) {
            (0 | 43 | 60, [_, units, ..]) => (usize::from(*units) + 1) * 8,
            (44, [_, _, hi, lo, ..]) => {
                if u16::from_be_bytes([*hi, *lo]) & 0xfff8 != 0 {
                    return rest.len() >= 8;
                }
                8
            }
            (0 | 43 | 60 | 44 | protocol::AH, _) => return false,
            _ => return rest.len() >= header(next),
        };
        let (Some(own), Some(after)) = (rest.first(), rest.get(len..)) else {
            return false;
        };
        (next, rest) = (*own, after);
    }
    false
}

fn fragment(is: bool, first: bool) -> u64 {
    match (is, first) {
        (false, _) => 0,
        (true, false) => u64::from(raw::TND_ACL_FRAGMENT),
        (true, true) => u64::from(raw::TND_ACL_FRAGMENT | raw::TND_ACL_FRAGMENT_FIRST),
    }
}

/// Where the transport header of an IPv6 packet is, and whether it is in the first piece.
fn transport_offset6(ip: &[u8]) -> (usize, bool) {
    let mut next = ip.get(6).copied().unwrap_or(59);
    let mut at = 40;
    let mut first = true;
    for _ in 0..8 {
        let Some(h) = ip.get(at..at + 8) else { break };
        let len = match next {
            0 | 43 | 60 => (usize::from(h[1]) + 1) * 8,
            44 => {
                first = u16::from_be_bytes([h[2], h[3]]) & 0xfff8 == 0;
                8
            }
            _ => break,
        };
        next = h[0];
        at += len;
    }
    (at, first)
}

/// The word of the transport. A piece of a fragmented packet has a protocol and no more, as in the kernel's dissector.
fn transport(l4: &L4, header: &[u8], fragment: bool, tos: u8, ttl: u8) -> u64 {
    let mut w = u64::from(l4.protocol) << 24 | u64::from(tos) << 16 | u64::from(ttl) << 8;
    if fragment {
        return w;
    }
    w |= match l4.protocol {
        protocol::ICMP | protocol::ICMPV6 => {
            let code = header.get(1).copied().unwrap_or(0);
            u64::from(l4.icmp_type) << 48 | u64::from(code) << 32
        }
        _ => u64::from(l4.src_port) << 48 | u64::from(l4.dst_port) << 32,
    };
    if l4.protocol == protocol::TCP {
        w |= u64::from(header.get(13).copied().unwrap_or(0));
    }
    w
}

// SPDX-License-Identifier: Apache-2.0
//! What the pipeline documents where the standard leaves it open: the order of flows of one priority, and what a select
//! group chooses by.

use super::packet::Ether;
use tandem_openflow::{Field, Oxm};

/// Which of two matches comes first when priorities are the same: the more bits, then the greater mask, fields laid out
/// in this order. Fields of one line share their place.
const LAYOUT: [(&[Field], u32); 26] = [
    (&[Field::InPort], 32),
    (&[Field::InPhyPort], 32),
    (&[Field::Metadata], 64),
    (&[Field::TunnelId], 64),
    (&[Field::EthDst], 48),
    (&[Field::EthType], 16),
    (&[Field::EthSrc], 48),
    (&[Field::VlanVid], 13),
    (&[Field::VlanPcp], 3),
    (&[Field::IpProto], 8),
    (&[Field::IpDscp], 6),
    (&[Field::IpEcn], 2),
    (
        &[
            Field::TcpSrc,
            Field::UdpSrc,
            Field::SctpSrc,
            Field::Icmpv4Type,
            Field::Icmpv6Type,
        ],
        16,
    ),
    (
        &[
            Field::TcpDst,
            Field::UdpDst,
            Field::SctpDst,
            Field::Icmpv4Code,
            Field::Icmpv6Code,
        ],
        16,
    ),
    // Other addresses lie on these, see below
    (&[Field::Ipv6Src], 128),
    (&[Field::Ipv6Dst], 128),
    (&[Field::Ipv6Flabel], 20),
    (&[], 3),
    (&[Field::Ipv6Exthdr], 9),
    (&[Field::MplsLabel], 20),
    (&[Field::MplsTc], 3),
    (&[Field::MplsBos], 1),
    (&[], 8),
    (&[Field::Ipv6NdTarget], 128),
    (&[], 16),
    (&[Field::Ipv6NdSll, Field::Ipv6NdTll], 48),
];

/// 64-bit words of a mask, in the order above.
fn words(oxms: &[Oxm]) -> Vec<u64> {
    let mut bits = vec![0u8; 14 * 64];
    let mut put = |at: usize, width: usize, v: u128| {
        for b in 0..width {
            bits[at + b] |= (v >> (width - 1 - b) & 1) as u8;
        }
    };
    let start = |field: Field| -> usize {
        let mut at = 0;
        for (fields, width) in LAYOUT {
            if fields.contains(&field) {
                return at;
            }
            at += width as usize;
            // The first sixteen bits of the word with the protocol are free
            if fields == [Field::VlanPcp] {
                at += 16;
            }
        }
        at
    };
    let addresses = start(Field::Ipv6Src);
    for o in oxms {
        let at = match o.field {
            Field::Ipv4Src | Field::ArpSpa => addresses,
            Field::Ipv4Dst | Field::ArpTpa => addresses + 32,
            Field::ArpSha => addresses + 64,
            Field::ArpOp => addresses + 64 + 48,
            Field::ArpTha => addresses + 128,
            Field::PbbIsid => start(Field::MplsLabel),
            // Eight bits in a place of sixteen
            Field::Icmpv4Type | Field::Icmpv6Type | Field::Icmpv4Code | Field::Icmpv6Code => {
                start(o.field) + 8
            }
            f => start(f),
        };
        put(at, usize::from(o.field.bits()), o.mask);
    }
    bits.chunks(64)
        .map(|w| w.iter().fold(0, |n, b| n << 1 | u64::from(*b)))
        .collect()
}

pub fn order(m: &[Oxm]) -> (u32, Vec<u64>) {
    (m.iter().map(|o| o.mask.count_ones()).sum(), words(m))
}

/// The documented hash of select groups: seven words.
pub fn choice(e: &Ether) -> u64 {
    let f = e.fields();
    let get = |field: Field| f.get(&field).copied().unwrap_or_default();
    let any = |fields: &[Field]| fields.iter().map(|f| get(*f)).fold(0, |a, b| a | b);
    let ports = any(&[
        Field::TcpSrc,
        Field::UdpSrc,
        Field::SctpSrc,
        Field::Icmpv4Type,
        Field::Icmpv6Type,
    ]) << 16
        | any(&[
            Field::TcpDst,
            Field::UdpDst,
            Field::SctpDst,
            Field::Icmpv4Code,
            Field::Icmpv6Code,
        ]);
    let high = |v: u128| (v >> 64) as u64;
    let pair = any(&[Field::Ipv4Src, Field::ArpSpa]) << 32 | any(&[Field::Ipv4Dst, Field::ArpTpa]);
    let words = [
        (get(Field::EthDst) << 16 | get(Field::EthType)) as u64,
        (get(Field::EthSrc) << 16 | get(Field::VlanVid) << 3 | get(Field::VlanPcp)) as u64,
        (get(Field::IpProto) << 40 | ports) as u64,
        high(get(Field::Ipv6Src)) | pair as u64,
        get(Field::Ipv6Src) as u64 | (get(Field::ArpSha) << 16 | get(Field::ArpOp)) as u64,
        high(get(Field::Ipv6Dst)) | (get(Field::ArpTha) << 16) as u64,
        get(Field::Ipv6Dst) as u64,
    ];
    words.into_iter().fold(0u64, |h, w| {
        let h = (h ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^ h >> 32
    })
}

// SPDX-License-Identifier: Apache-2.0
//! Frames of a small universe, sound ones and every kind of broken one.

use proptest::prelude::*;

pub const MACS: [[u8; 6]; 3] = [
    [2, 0, 0, 0, 0, 1],
    [2, 0, 0, 0, 0, 2],
    [0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
];

fn tag(tpid: u16, tci: u16) -> Vec<u8> {
    [tpid.to_be_bytes(), tci.to_be_bytes()].concat()
}

fn tags() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => Just(vec![]),
        2 => Just(tag(0x8100, 1)),
        2 => Just(tag(0x8100, 0xa002)),
        1 => Just(tag(0x8100, 0)),
        1 => Just(tag(0x8100, 0x6000)),
        1 => Just(tag(0x8100, 0xfff)),
        1 => Just(tag(0x88a8, 1)),
        1 => Just(tag(0x88a8, 0)),
        1 => Just([tag(0x8100, 1), tag(0x8100, 2)].concat()),
        1 => Just([tag(0x88a8, 1), tag(0x8100, 2)].concat()),
        1 => Just([tag(0x8100, 2), tag(0x88a8, 1)].concat()),
    ]
}

fn transport() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let ports = |port: u16| [&[0x12, 0x34][..], &port.to_be_bytes()[..]].concat();
    let tcp = move |port: u16| {
        let mut h = ports(port);
        h.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        h
    };
    let udp = move |port: u16| {
        let mut h = ports(port);
        h.extend([0, 12, 0, 0, 1, 2, 3, 4]);
        h
    };
    prop_oneof![
        4 => prop_oneof![Just(80u16), Just(0), Just(81)].prop_map(move |p| (6, tcp(p))),
        4 => prop_oneof![Just(53u16), Just(0)].prop_map(move |p| (17, udp(p))),
        1 => Just((132, [ports(53), vec![0; 12]].concat())),
        2 => (0..2u8, 0..2u8).prop_map(|(t, c)| (1, vec![t * 8, c, 0, 0, 1, 2])),
        2 => (0..2u8).prop_map(|t| (58, vec![128 + t, 0, 0, 0, 1, 2])),
        1 => Just((58, [vec![135, 0, 0, 0, 0, 0, 0, 0], vec![9; 16]].concat())),
        1 => Just((2, vec![0x11, 0, 0, 0])),
        1 => Just((51, [vec![6, 4, 0, 0], vec![0; 20], tcp(80)].concat())),
        1 => Just((50, vec![0; 20])),
    ]
}

/// How a packet is broken, or not.
fn cut() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![5 => Just(None), 1 => (0..24usize).prop_map(Some)]
}

fn sum(h: &[u8]) -> u16 {
    let mut s: u32 = h
        .chunks(2)
        .map(|c| u32::from(c[0]) << 8 | u32::from(c[1]))
        .sum();
    while s >> 16 != 0 {
        s = (s & 0xffff) + (s >> 16);
    }
    !(s as u16)
}

fn ip4() -> impl Strategy<Value = Vec<u8>> {
    let frag = prop_oneof![4 => Just(0u16), 2 => Just(0x2000), 1 => Just(0x2001), 1 => Just(1), 1 => Just(0x4000)];
    let bad = prop_oneof![8 => Just(0u8), 1 => 1..6u8];
    (
        transport(),
        cut(),
        frag,
        bad,
        1..3u8,
        any::<bool>(),
        0..3u8,
        0..4usize,
    )
        .prop_map(
            |((proto, mut l4), cut, frag, bad, dst, options, tos, pad)| {
                if let Some(n) = cut {
                    l4.truncate(n);
                }
                let mut h = vec![
                    0x45,
                    tos * 0x2c,
                    0,
                    0,
                    0,
                    1,
                    0,
                    0,
                    64,
                    proto,
                    0,
                    0,
                    0,
                    0,
                    0,
                    1,
                    0,
                    0,
                    0,
                    dst,
                ];
                if options {
                    h[0] = 0x46;
                    h.extend([1, 1, 1, 0]);
                }
                let len = (h.len() + l4.len()) as u16;
                let len = match bad {
                    1 => len + 3,
                    2 => 19,
                    3 => len.saturating_sub(2).max(20),
                    _ => len,
                };
                h[2..4].copy_from_slice(&len.to_be_bytes());
                h[6..8].copy_from_slice(&frag.to_be_bytes());
                if bad == 4 {
                    h[0] = 0x55;
                }
                let s = sum(&h);
                h[10..12].copy_from_slice(&s.to_be_bytes());
                if bad == 5 {
                    h[10] ^= 1;
                }
                h.extend(l4);
                h.extend(vec![0; pad * 4]);
                h
            },
        )
}

fn ip6() -> impl Strategy<Value = Vec<u8>> {
    let ext = prop_oneof![
        Just(0u8),
        Just(60),
        Just(43),
        Just(44),
        Just(51),
        Just(59),
        Just(50)
    ];
    let chain = prop_oneof![
        6 => Just(vec![]),
        3 => proptest::collection::vec(ext, 1..3),
        1 => Just(vec![60; 8]),
        1 => Just(vec![60; 9]),
    ];
    let bad = prop_oneof![8 => Just(0u8), 1 => 1..4u8];
    let offset = prop_oneof![Just(0u16), Just(1), Just(8), Just(9)];
    (transport(), cut(), chain, offset, bad, 1..3u8, 0..3u8).prop_map(
        |((proto, l4), cut, chain, offset, bad, src, tos)| {
            let mut body = Vec::new();
            for (n, kind) in chain.iter().enumerate() {
                let next = chain.get(n + 1).copied().unwrap_or(proto);
                match kind {
                    44 => {
                        body.extend([next, 0]);
                        body.extend(offset.to_be_bytes());
                        body.extend([0, 0, 0, 1]);
                    }
                    51 => body.extend([[next, 4, 0, 0].as_slice(), &[0; 20]].concat()),
                    43 => body.extend([next, 0, 0, 0, 0, 0, 0, 0]),
                    _ => body.extend([next, 0, 1, 4, 0, 0, 0, 0]),
                }
            }
            body.extend(l4);
            if let Some(n) = cut {
                body.truncate(n);
            }
            let first = chain.first().copied().unwrap_or(proto);
            let mut h = vec![0x60 | tos, tos << 4, 0, tos & 1, 0, 0, first, 64];
            h.extend([vec![0xfd; 15], vec![src]].concat());
            h.extend([vec![0xfd; 15], vec![3 - src]].concat());
            let len = body.len() as u16;
            let len = match bad {
                1 => len + 3,
                2 => len.saturating_sub(3),
                3 => 0,
                _ => len,
            };
            h[4..6].copy_from_slice(&len.to_be_bytes());
            h.extend(body);
            h
        },
    )
}

fn arp() -> impl Strategy<Value = Vec<u8>> {
    (1..4u8, 1..3u8, any::<bool>()).prop_map(|(op, spa, short)| {
        let mut a = vec![0, 1, 8, 0, 6, 4, 0, op, 2, 0, 0, 0, 0, 1, 0, 0, 0, spa];
        a.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        if short {
            a.truncate(20);
        }
        a
    })
}

/// EtherType and what is behind it.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let typed = |t: u16, v: Vec<u8>| [t.to_be_bytes().to_vec(), v].concat();
    let snap = |oui: u8, t: u16, v: Vec<u8>| {
        let body = [vec![0xaa, 0xaa, 3, 0, 0, oui], t.to_be_bytes().to_vec(), v].concat();
        [(body.len() as u16).to_be_bytes().to_vec(), body].concat()
    };
    prop_oneof![
        8 => ip4().prop_map(move |v| typed(0x0800, v)),
        5 => ip6().prop_map(move |v| typed(0x86dd, v)),
        2 => arp().prop_map(move |v| typed(0x0806, v)),
        2 => Just(typed(0x1234, vec![0; 46])),
        1 => Just(typed(0x8902, vec![0; 46])),
        1 => Just(typed(0x8035, vec![0; 46])),
        1 => ip4().prop_map(move |v| snap(0, 0x0800, v)),
        1 => ip4().prop_map(move |v| snap(1, 0x0800, v)),
        1 => Just(typed(38, vec![0x42; 38])),
        1 => Just(typed(0x05ff, vec![0x42; 100])),
        1 => Just(typed(0x0600, vec![0x42; 46])),
        1 => Just(typed(0x8847, vec![0, 1, 0x11, 64, 0x45, 0, 0, 0])),
        1 => Just(typed(0x8100, vec![0])),
        1 => ip4().prop_map(move |v| typed(0x86dd, v)),
        1 => ip6().prop_map(move |v| typed(0x0800, v)),
    ]
}

/// Any of them.
pub fn frame() -> impl Strategy<Value = Vec<u8>> {
    let runt = prop_oneof![12 => Just(None), 1 => (0..60usize).prop_map(Some)];
    (0..3usize, 0..2usize, tags(), payload(), runt).prop_map(|(dst, src, tags, payload, runt)| {
        let mut f = [&MACS[dst][..], &MACS[src][..], &tags, &payload].concat();
        if let Some(n) = runt {
            f.truncate(n);
        }
        f
    })
}

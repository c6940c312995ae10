//! Messages in frames, as hosts and routers send them.
#![allow(dead_code)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// RFC 1071, once more.
fn sum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes
        .chunks(2)
        .map(|c| u32::from(c[0]) << 8 | c.get(1).map_or(0, |b| u32::from(*b)));
    let mut all: u32 = words.sum();
    while all > 0xffff {
        all = (all & 0xffff) + (all >> 16);
    }
    (!(all as u16)).to_be_bytes()
}

/// The MAC of the host behind a port.
pub fn mac(port: u16) -> [u8; 6] {
    [2, 0, 0, 0, 1, port as u8]
}

pub fn frame(port: u16, from: IpAddr, to: IpAddr, mut body: Vec<u8>) -> Vec<u8> {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let s = sum(&body);
            body[2..4].copy_from_slice(&s);
            let mut head = vec![0x46, 0xc0, 0, 24 + body.len() as u8, 0, 0, 0, 0, 1, 2, 0, 0];
            head.extend(from.octets());
            head.extend(to.octets());
            head.extend([0x94, 4, 0, 0]);
            let s = sum(&head);
            head[10..12].copy_from_slice(&s);
            let [_, b, c, d] = to.octets();
            let mut f = vec![1, 0, 0x5e, b & 0x7f, c, d];
            f.extend(mac(port));
            f.extend([8, 0]);
            f.extend(head);
            f.extend(body);
            f.resize(f.len().max(60), 0);
            f
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut pseudo = [from.octets(), to.octets()].concat();
            pseudo.extend((body.len() as u32).to_be_bytes());
            pseudo.extend([0, 0, 0, 58]);
            pseudo.extend(&body);
            let s = sum(&pseudo);
            body[2..4].copy_from_slice(&s);
            let mut f = vec![0x33, 0x33];
            f.extend(&to.octets()[12..]);
            f.extend(mac(port));
            f.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8 + body.len() as u8, 0, 1]);
            f.extend(from.octets());
            f.extend(to.octets());
            f.extend([58, 0, 5, 2, 0, 0, 1, 0]);
            f.extend(body);
            f
        }
        _ => panic!("two families"),
    }
}

fn octets(a: IpAddr) -> Vec<u8> {
    match a {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

pub fn group(six: bool, n: u8) -> IpAddr {
    match six {
        false => IpAddr::V4(Ipv4Addr::new(225, 0, 0, n)),
        true => IpAddr::V6(Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, n.into())),
    }
}

/// An address of the link.
pub fn host(six: bool, n: u8) -> IpAddr {
    match six {
        false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)),
        true => IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n.into())),
    }
}

/// A message of versions 2 and 1.
fn short(kind4: u8, kind6: u8, ms: u64, g: IpAddr) -> Vec<u8> {
    match g {
        IpAddr::V4(a) => {
            let mut body = vec![kind4, (ms / 100) as u8, 0, 0];
            body.extend(a.octets());
            body
        }
        IpAddr::V6(a) => {
            let mut body = vec![kind6, 0, 0, 0];
            body.extend((ms as u16).to_be_bytes());
            body.extend([0, 0]);
            body.extend(a.octets());
            body
        }
    }
}

pub fn join(port: u16, g: IpAddr) -> Vec<u8> {
    frame(
        port,
        host(g.is_ipv6(), port as u8),
        g,
        short(0x16, 131, 0, g),
    )
}

pub fn leave(port: u16, g: IpAddr) -> Vec<u8> {
    let routers = match g {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 2)),
        IpAddr::V6(_) => "ff02::2".parse().unwrap(),
    };
    frame(
        port,
        host(g.is_ipv6(), port as u8),
        routers,
        short(0x17, 132, 0, g),
    )
}

/// Of all groups, or of one.
pub fn query(port: u16, from: IpAddr, g: Option<IpAddr>, ms: u64) -> Vec<u8> {
    let (any, all): (IpAddr, IpAddr) = match from {
        IpAddr::V4(_) => (
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(224, 0, 0, 1).into(),
        ),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), "ff02::1".parse().unwrap()),
    };
    frame(
        port,
        from,
        g.unwrap_or(all),
        short(0x11, 130, ms, g.unwrap_or(any)),
    )
}

/// A report of version 3 or 2: one record of a group, with so many sources.
pub fn report(port: u16, kind: u8, g: IpAddr, sources: u8) -> Vec<u8> {
    let (first, to): (u8, IpAddr) = match g {
        IpAddr::V4(_) => (0x22, Ipv4Addr::new(224, 0, 0, 22).into()),
        IpAddr::V6(_) => (143, "ff02::16".parse().unwrap()),
    };
    let mut body = vec![first, 0, 0, 0, 0, 0, 0, 1, kind, 0, 0, sources];
    body.extend(octets(g));
    for n in 0..sources {
        body.extend(octets(host(g.is_ipv6(), 100 + n)));
    }
    frame(port, host(g.is_ipv6(), port as u8), to, body)
}

/// A hello of PIM.
pub fn hello(port: u16) -> Vec<u8> {
    let to = IpAddr::V4(Ipv4Addr::new(224, 0, 0, 13));
    let mut f = frame(
        port,
        host(false, port as u8),
        to,
        vec![0x20, 0, 0, 0, 0, 1, 0, 2, 0, 105, 0, 0],
    );
    // the protocol, and the header's checksum with it
    f[23] = 103;
    f[24..26].copy_from_slice(&[0, 0]);
    let s = sum(&f[14..38]);
    f[24..26].copy_from_slice(&s);
    f
}

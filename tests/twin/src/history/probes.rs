//! Frames that hosts send. Each says in its payload which one it is, so that what comes of it can be told, even when an
//! ICMP error quotes it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::draw::Draw;
use super::op::{BRIDGE_INDEX, PORT_INDEX};
use super::{PORTS, bridge_mac, host_mac, port_mac, stacked, v4, v6};
use crate::recording::{Bytes, Probe};

/// Before the number, in the payload.
pub const MAGIC: &[u8; 6] = b"\xd7wInPr";

/// Groups that ports of bridges with snooping may have, and to which frames are sent.
pub(super) const GROUPS: [[u8; 4]; 3] = [[239, 1, 2, 3], [239, 1, 2, 4], [239, 9, 9, 9]];

const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// Which probe a frame comes of.
#[must_use]
pub fn probe_of(frame: &[u8]) -> Option<usize> {
    let at = frame.windows(MAGIC.len()).position(|w| w == MAGIC)? + MAGIC.len();
    let number = frame.get(at..at + 2)?.first_chunk()?;
    Some(usize::from(u16::from_be_bytes(*number)))
}

/// The networks behind the first station of an interface, where frames come from that are forwarded.
pub(super) const fn behind4(dev: u32) -> IpNet {
    let a = Ipv4Addr::new(40 + (dev - PORT_INDEX) as u8, 0, 0, 0);
    IpNet::V4(ipnet::Ipv4Net::new_assert(a, 8))
}

pub(super) const fn behind6(dev: u32) -> IpNet {
    let a = Ipv6Addr::new(0xfd40 + (dev - PORT_INDEX) as u16, 0, 0, 0, 0, 0, 0, 0);
    IpNet::V6(ipnet::Ipv6Net::new_assert(a, 16))
}

/// A frame; `n`: which one.
pub(super) fn draw(d: &mut Draw, n: usize) -> Probe {
    let bridged = !d.bridged.is_empty();
    if d.routed.is_empty() || bridged && d.rng.percent(35) {
        return bridged_probe(d, n);
    }
    let dev = d.rng.of(&d.routed);
    let stations = d.stations(dev);
    let (station, mac) = d.rng.of(&stations);
    let port = d.port_of(dev, station);
    let on = stacked::lower(dev).map_or(dev, |(on, _)| on);
    let router = if on > BRIDGE_INDEX {
        bridge_mac((on - BRIDGE_INDEX) as u8)
    } else {
        port_mac(port)
    };
    let six = d.six && d.rng.percent(45);
    // one source for each: the kernel counts errors by it (net/ipv4/route.c `ip_error`)
    let number = d.rng.next();
    let src = match (six, d.rng.percent(85)) {
        (false, true) => {
            let [a, b, c, ..] = number.to_be_bytes();
            IpAddr::V4(Ipv4Addr::new(40 + (dev - PORT_INDEX) as u8, a, b, c))
        }
        (true, true) => {
            let [a, b] = [number as u16, (number >> 16) as u16];
            let net = 0xfd40 + (dev - PORT_INDEX) as u16;
            IpAddr::V6(Ipv6Addr::new(net, 0, 0, 0, 0, 0, a, b))
        }
        (false, false) => v4(dev, station),
        (true, false) => v6(dev, station),
    };
    let dst = destination(d, dev, six);
    let ttl = match d.rng.below(16) {
        0 => 1,
        1 => 2,
        _ => 64,
    };
    let own = dst == v4(dev, 1) || dst == v6(dev, 1);
    let proto = match (own || d.rng.percent(6), six) {
        (false, _) => UDP,
        (true, false) => ICMP,
        (true, true) => ICMP6,
    };
    let (sport, dport) = (1024 + (number >> 32 & 0xfff) as u16, 5000 + (n % 7) as u16);
    let tos = if d.rng.percent(8) { 0x10 } else { 0 };
    let body = payload(n);
    let inner = match proto {
        UDP => udp(src, dst, sport, dport, &body),
        ICMP => echo(8, None, &body),
        _ => echo(128, Some((src, dst)), &body),
    };
    let frame = ethernet(router, mac, src, dst, Ip { proto, ttl, tos }, &inner);
    let frame = tag(frame, d.tag(dev, port));
    Probe {
        port,
        frame: Bytes(frame),
    }
}

/// With a VLAN tag behind the addresses.
fn tag(mut frame: Vec<u8>, vid: Option<u16>) -> Vec<u8> {
    if let Some(vid) = vid {
        let [high, low] = vid.to_be_bytes();
        frame.splice(12..12, [0x81, 0, high, low]);
    }
    frame
}

fn destination(d: &mut Draw, dev: u32, six: bool) -> IpAddr {
    match d.rng.below(20) {
        // a station of any interface
        0..=3 => {
            let to = d.rng.of(&d.routed);
            let last = d.rng.of(&[2, 2, 3, 3, 77]);
            if six { v6(to, last) } else { v4(to, last) }
        }
        4 => {
            if six {
                v6(dev, 1)
            } else {
                v4(dev, 1)
            }
        }
        5 => {
            if six {
                IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))
            } else {
                IpAddr::V4(Ipv4Addr::new(99, 0, 0, 1))
            }
        }
        // in the prefixes of the history
        _ => {
            let net = d.rng.of(&d.prefixes[usize::from(six)]);
            inside(net, d.rng.below(250) as u8)
        }
    }
}

fn inside(net: IpNet, n: u8) -> IpAddr {
    match net {
        IpNet::V4(net) if net.prefix_len() == 0 => IpAddr::V4(Ipv4Addr::new(77, 0, 0, n)),
        IpNet::V6(net) if net.prefix_len() == 0 => {
            IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(n)))
        }
        IpNet::V4(net) => {
            let free = !u32::from(net.netmask());
            IpAddr::V4(Ipv4Addr::from(
                u32::from(net.network()) | (u32::from(n) & free),
            ))
        }
        IpNet::V6(net) => {
            let free = !u128::from(net.netmask());
            IpAddr::V6(Ipv6Addr::from(
                u128::from(net.network()) | (u128::from(n) & free),
            ))
        }
    }
}

/// Between stations, or to nobody, or to all.
fn bridged_probe(d: &mut Draw, n: usize) -> Probe {
    let (dev, _) = d.rng.of(&d.bridged);
    let port = (dev - PORT_INDEX) as u16;
    let other = 1 + d.rng.below(usize::from(PORTS)) as u16;
    let group = d.rng.of(&GROUPS);
    let grouped = d.snoops() && d.rng.percent(35);
    let dst = match d.rng.below(10) {
        _ if grouped => [1, 0, 0x5e, group[1] & 0x7f, group[2], group[3]],
        0 => [0xff; 6],
        1 => [2, 0, 0, 0, 0, 0x77],
        2 => [1, 0, 0x5e, 1, 2, 3],
        3 => host_mac(other, 3),
        _ => host_mac(other, 2),
    };
    let src = if d.rng.percent(85) {
        host_mac(port, 2)
    } else {
        host_mac(other, 3)
    };
    let (from, to) = (
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        match grouped {
            true => IpAddr::V4(Ipv4Addr::from(group)),
            false => IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
        },
    );
    let tagged: Vec<u16> = d
        .tagged
        .iter()
        .filter(|(p, _)| *p == port)
        .map(|(_, v)| *v)
        .collect();
    let vid = (!tagged.is_empty() && d.rng.percent(45)).then(|| d.rng.of(&tagged));
    let inner = udp(from, to, 1000, 2000, &payload(n));
    let ip = Ip {
        proto: UDP,
        ttl: 64,
        tos: 0,
    };
    Probe {
        port,
        frame: Bytes(tag(ethernet(dst, src, from, to, ip, &inner), vid)),
    }
}

fn payload(n: usize) -> Vec<u8> {
    let mut b = MAGIC.to_vec();
    b.extend_from_slice(&(n as u16).to_be_bytes());
    b.resize(26, b'.');
    b
}

struct Ip {
    proto: u8,
    ttl: u8,
    tos: u8,
}

/// RFC 1071.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for pair in part.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u32::from(pair.first().copied().unwrap_or(0)) << 8 | u32::from(low);
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn octets(a: IpAddr) -> Vec<u8> {
    match a {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

fn pseudo(src: IpAddr, dst: IpAddr, proto: u8, len: usize) -> Vec<u8> {
    let mut b = [octets(src), octets(dst)].concat();
    b.extend_from_slice(&[0, proto]);
    b.extend_from_slice(&(len as u16).to_be_bytes());
    b
}

fn patch(b: &mut [u8], at: usize, value: u16) {
    if let Some(slot) = b.get_mut(at..at + 2) {
        slot.copy_from_slice(&value.to_be_bytes());
    }
}

fn udp(src: IpAddr, dst: IpAddr, sport: u16, dport: u16, body: &[u8]) -> Vec<u8> {
    let len = 8 + body.len();
    let mut b = Vec::with_capacity(len);
    for field in [sport, dport, len as u16, 0] {
        b.extend_from_slice(&field.to_be_bytes());
    }
    b.extend_from_slice(body);
    let check = match sum(&[&pseudo(src, dst, UDP, len), &b]) {
        0 => 0xffff,
        c => c,
    };
    patch(&mut b, 6, check);
    b
}

fn echo(kind: u8, v6: Option<(IpAddr, IpAddr)>, body: &[u8]) -> Vec<u8> {
    let mut b = vec![kind, 0, 0, 0, 0, 7, 0, 1];
    b.extend_from_slice(body);
    let above = v6.map(|(src, dst)| pseudo(src, dst, ICMP6, b.len()));
    let check = sum(&[above.as_deref().unwrap_or(&[]), &b]);
    patch(&mut b, 2, check);
    b
}

fn ethernet(
    dmac: [u8; 6],
    smac: [u8; 6],
    src: IpAddr,
    dst: IpAddr,
    ip: Ip,
    inner: &[u8],
) -> Vec<u8> {
    let mut b = [dmac, smac].concat();
    if src.is_ipv4() {
        b.extend_from_slice(&[8, 0]);
        let len = (20 + inner.len()) as u16;
        let mut h = vec![0x45, ip.tos];
        h.extend_from_slice(&len.to_be_bytes());
        h.extend_from_slice(&[0, 7, 0, 0, ip.ttl, ip.proto, 0, 0]);
        h.extend_from_slice(&octets(src));
        h.extend_from_slice(&octets(dst));
        let check = sum(&[&h]);
        patch(&mut h, 10, check);
        b.extend_from_slice(&h);
    } else {
        b.extend_from_slice(&[0x86, 0xdd, 0x60 | ip.tos >> 4, ip.tos << 4, 0, 0]);
        b.extend_from_slice(&(inner.len() as u16).to_be_bytes());
        b.extend_from_slice(&[ip.proto, ip.ttl]);
        b.extend_from_slice(&octets(src));
        b.extend_from_slice(&octets(dst));
    }
    b.extend_from_slice(inner);
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_add_up_and_a_probe_knows_its_number() {
        let (src, dst) = ("10.1.0.2".parse().unwrap(), "20.1.1.1".parse().unwrap());
        let ip = Ip {
            proto: UDP,
            ttl: 64,
            tos: 0,
        };
        let inner = udp(src, dst, 1, 2, &payload(513));
        assert_eq!(sum(&[&pseudo(src, dst, UDP, inner.len()), &inner]), 0);
        let frame = ethernet([1; 6], [2; 6], src, dst, ip, &inner);
        assert_eq!(sum(&[&frame[14..34]]), 0);
        assert_eq!(probe_of(&frame), Some(513));
        assert_eq!(probe_of(&frame[..40]), None);
        let (src, dst) = ("fd01::2".parse().unwrap(), "fd02::2".parse().unwrap());
        let inner = echo(128, Some((src, dst)), &payload(1));
        assert_eq!(sum(&[&pseudo(src, dst, ICMP6, inner.len()), &inner]), 0);
    }

    #[test]
    fn an_address_inside_of_a_prefix() {
        for (net, want) in [
            ("22.0.0.64/26", "22.0.0.121"),
            ("0.0.0.0/0", "77.0.0.249"),
            ("23.0.0.0/31", "23.0.0.1"),
        ] {
            assert_eq!(
                inside(net.parse().unwrap(), 249),
                want.parse::<IpAddr>().unwrap()
            );
        }
        let a = inside("fd20:1:1:1::9/128".parse().unwrap(), 200);
        assert_eq!(a, "fd20:1:1:1::9".parse::<IpAddr>().unwrap());
    }
}

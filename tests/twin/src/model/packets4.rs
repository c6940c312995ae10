//! What becomes of an IPv4 packet: net/ipv4/route.c, ip_forward.c, ip_output.c, icmp.c.

use std::net::IpAddr;

use super::addresses::RT_LOCAL;
use super::links::Dev;
use super::lookup4::{Flow, Found};
use super::routes4::UNICAST;
use super::{EACCES, EHOSTUNREACH, ENETUNREACH, Net};
use crate::recording::{Bytes, Out};

const ETHER: usize = 14;
const ICMP: u8 = 1;
const UDP: u8 = 17;

/// The parts of a packet that the kernel looks at.
#[derive(Debug, Clone, Copy)]
struct Packet<'a> {
    /// From the IP header on.
    bytes: &'a [u8],
    tos: u8,
    ttl: u8,
    proto: u8,
    source: u32,
    destination: u32,
}

fn long(b: &[u8], at: usize) -> u32 {
    b.get(at..)
        .and_then(|s| s.first_chunk())
        .map_or(0, |c| u32::from_be_bytes(*c))
}

/// RFC 1071
pub fn checksum(parts: &[&[u8]]) -> u16 {
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

fn put(b: &mut [u8], at: usize, value: &[u8]) {
    if let Some(slot) = b.get_mut(at..at + value.len()) {
        slot.copy_from_slice(value);
    }
}

/// An Ethernet header before a packet.
pub fn ethernet(to: [u8; 6], from: [u8; 6], kind: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend_from_slice(&kind.to_be_bytes());
    frame.extend_from_slice(packet);
    frame
}

impl Net {
    /// `ip_rcv` … : frames that come out.
    pub fn receive4(&mut self, port: &Dev, frame: &[u8]) -> Vec<Out> {
        let bytes = frame.get(ETHER..).unwrap_or(&[]);
        let at = |n: usize| bytes.get(n).copied().unwrap_or(0);
        let p = Packet {
            bytes,
            tos: at(1),
            ttl: at(8),
            proto: at(9),
            source: long(bytes, 12),
            destination: long(bytes, 16),
        };
        let flow = Flow {
            daddr: p.destination,
            saddr: p.source,
            iif: port.index,
            tos: p.tos & 0xfc,
            ..Flow::default()
        };
        // `ip_route_input_slow`
        let error = match self.fib_lookup(&flow, 0) {
            Ok(found) if found.kind == RT_LOCAL => {
                if self.is_martian(p.source, p.destination, flow.tos, 0) {
                    return Vec::new();
                }
                return self.deliver4(port, &p);
            }
            Ok(_) if !port.forwarding => EHOSTUNREACH,
            Ok(found) if found.kind == UNICAST => return self.forward4(port, &p, &flow, found),
            Ok(_) => return Vec::new(),
            Err(_) if !port.forwarding => EHOSTUNREACH,
            Err(error) => error,
        };
        // `ip_error`
        if !port.forwarding {
            return Vec::new();
        }
        match error {
            EHOSTUNREACH => self.icmp4(&p, 3, 1, false),
            ENETUNREACH => self.icmp4(&p, 3, 0, false),
            EACCES => self.icmp4(&p, 3, 13, false),
            _ => Vec::new(),
        }
    }

    /// `ip_mkroute_input`, `ip_forward`
    fn forward4(&mut self, _port: &Dev, p: &Packet<'_>, flow: &Flow, mut found: Found) -> Vec<Out> {
        let fi = self.info(found.info);
        let (nh, ways) = (fi.nh, self.ways_of(fi));
        if ways.len() > 1 {
            let hash = super::hash::flow4(p.source, p.destination);
            let way = if nh != 0 {
                self.nexthop_select_path(nh, hash)
            } else {
                Self::fib_select_multipath(&ways, hash, 0)
            };
            found.way = way.unwrap_or(found.way);
        }
        if self.is_martian(p.source, p.destination, flow.tos, found.way.oif) {
            return Vec::new();
        }
        if p.ttl <= 1 {
            return self.icmp4(p, 11, 0, false);
        }
        let mut packet = p.bytes.to_vec();
        put(&mut packet, 8, &[p.ttl - 1, p.proto, 0, 0]);
        let sum = checksum(&[packet.get(..20).unwrap_or(&[])]);
        put(&mut packet, 10, &sum.to_be_bytes());
        self.output4(&found, p.destination, &packet, false)
    }

    /// `ip_finish_output2`
    fn output4(&mut self, found: &Found, destination: u32, packet: &[u8], made: bool) -> Vec<Out> {
        let next = Self::next_address(&found.way, destination);
        self.send4(found.way.dev, next, packet, made)
    }

    fn send4(&mut self, dev: u32, next: u32, packet: &[u8], made: bool) -> Vec<Out> {
        let mac = self.neigh_output(dev, IpAddr::from(next.to_be_bytes()));
        self.transmit(dev, mac, 0x800, packet, made)
    }

    /// A frame leaves, when its neighbour is known and the port has carrier.
    pub fn transmit(
        &self,
        dev: u32,
        mac: Option<[u8; 6]>,
        kind: u16,
        packet: &[u8],
        made: bool,
    ) -> Vec<Out> {
        let (Some(mac), Some(d)) = (mac, self.dev(dev)) else {
            return Vec::new();
        };
        if d.is_lo() || !d.up || !d.carrier {
            return Vec::new();
        }
        vec![Out {
            port: (dev - crate::history::op::PORT_INDEX) as u16,
            frame: Bytes(ethernet(mac, d.mac, kind, packet)),
            made,
        }]
    }

    /// `ip_local_deliver`: `icmp_echo`, or nobody listens (`__udp4_lib_rcv`).
    fn deliver4(&mut self, _port: &Dev, p: &Packet<'_>) -> Vec<Out> {
        match p.proto {
            ICMP if p.bytes.get(20) == Some(&8) => self.echo4(p),
            UDP => self.icmp4(p, 3, 3, true),
            _ => Vec::new(),
        }
    }

    /// `ip_route_output_key_hash_rcu`, `__mkroute_output`: the way, and the source where there was none.
    fn route_output4(&mut self, flow: &mut Flow, hash: i64) -> Option<(u32, u32)> {
        if flow.saddr != 0 && !self.is_local_source(flow.saddr) {
            return None;
        }
        let mut found = self.fib_lookup(flow, 0).ok()?;
        if found.kind == RT_LOCAL {
            if flow.saddr == 0 {
                let source = self.info(found.info).prefsrc;
                flow.saddr = if source == 0 { flow.daddr } else { source };
            }
            return Some((1, flow.daddr));
        }
        self.fib_select_path(&mut found, flow, hash);
        if flow.saddr == 0 {
            flow.saddr = self.prefsrc(&found);
        }
        if flow.saddr >> 24 == 127 && found.way.dev != 1 {
            return None;
        }
        let next = Self::next_address(&found.way, flow.daddr);
        Some((found.way.dev, next))
    }

    /// `icmp_send`; `local`: the packet was for the switch.
    fn icmp4(&mut self, p: &Packet<'_>, kind: u8, code: u8, local: bool) -> Vec<Out> {
        let tos = p.tos & 0x1e | 0xc0;
        let mut flow = Flow {
            daddr: p.source,
            saddr: if local { p.destination } else { 0 },
            iif: 1,
            tos: tos & 0xfc,
            ..Flow::default()
        };
        // the hash is that of the packet itself
        let hash = super::hash::flow4(p.source, p.destination);
        let Some((dev, next)) = self.route_output4(&mut flow, hash) else {
            return Vec::new();
        };
        if dev == 1 && !local && kind == 3 {
            self.refused =
                Some("an error of a route that goes to the switch itself, and may be limited");
        }
        // `INADDR_DUMMY`
        let source = if flow.saddr == 0 {
            0xc000_0008
        } else {
            flow.saddr
        };
        let room = p.bytes.len().min(576 - 28);
        let mut body = vec![kind, code, 0, 0, 0, 0, 0, 0];
        body.extend_from_slice(p.bytes.get(..room).unwrap_or(p.bytes));
        let sum = checksum(&[&body]);
        put(&mut body, 2, &sum.to_be_bytes());
        let packet = ipv4(source, p.source, tos, &body);
        self.send4(dev, next, &packet, true)
    }

    /// `icmp_reply`
    fn echo4(&mut self, p: &Packet<'_>) -> Vec<Out> {
        let mut flow = Flow {
            daddr: p.source,
            saddr: p.destination,
            iif: 1,
            tos: p.tos & 0xfc,
            ..Flow::default()
        };
        let hash = super::hash::flow4(p.destination, p.source);
        let Some((dev, next)) = self.route_output4(&mut flow, hash) else {
            return Vec::new();
        };
        let mut body = p.bytes.get(20..).unwrap_or(&[]).to_vec();
        put(&mut body, 0, &[0, 0, 0, 0]);
        let sum = checksum(&[&body]);
        put(&mut body, 2, &sum.to_be_bytes());
        let packet = ipv4(p.destination, p.source, p.tos, &body);
        self.send4(dev, next, &packet, true)
    }
}

/// An ICMP packet of the switch.
fn ipv4(source: u32, destination: u32, tos: u8, body: &[u8]) -> Vec<u8> {
    let mut h = vec![0x45, tos];
    h.extend_from_slice(&(20 + body.len() as u16).to_be_bytes());
    h.extend_from_slice(&[0, 0, 0, 0, 64, ICMP, 0, 0]);
    h.extend_from_slice(&source.to_be_bytes());
    h.extend_from_slice(&destination.to_be_bytes());
    let sum = checksum(&[&h]);
    put(&mut h, 10, &sum.to_be_bytes());
    h.extend_from_slice(body);
    h
}

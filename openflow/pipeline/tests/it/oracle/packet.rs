// SPDX-License-Identifier: Apache-2.0
//! A packet as a tree of headers: taken apart, changed, and put together anew with its checksums computed from nothing.

use std::collections::BTreeMap;
use tandem_openflow::Field;

/// The standard does not say what becomes of this packet (a broken checksum that an action touches).
#[derive(Debug)]
pub struct Undefined;

#[derive(Clone, Debug)]
pub struct Ether {
    pub dst: u64,
    pub src: u64,
    pub tags: Vec<(u16, u16)>,
    pub kind: u16,
    /// Of 802.3, by 1.0's reading, what stands there instead of the type.
    pub length: Option<Vec<u8>>,
    pub body: Body,
    /// Was the protocol of an IP header set?
    pub protocol_set: bool,
}

#[derive(Clone, Debug)]
pub enum Body {
    Raw(Vec<u8>),
    Mpls(u32, Vec<u8>),
    Pbb(u32, Box<Ether>),
    Arp(Vec<u8>),
    Ip4(Ip4),
    Ip6(Ip6),
}

#[derive(Clone, Debug)]
pub struct Ip4 {
    head: Vec<u8>,
    pub l4: L4,
    tail: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Ip6 {
    head: Vec<u8>,
    /// Number and bytes of each extension header.
    exts: Vec<(u8, Vec<u8>)>,
    proto: u8,
    pub l4: L4,
    tail: Vec<u8>,
}

/// What an IP header carries.
#[derive(Clone, Debug)]
pub struct L4 {
    bytes: Vec<u8>,
    /// The protocol whose checksum is in it: that of the packet as it came.
    sum: u8,
    fragment: bool,
    /// Are there transport fields at all?
    there: bool,
}

fn num(b: &[u8]) -> u128 {
    b.iter().fold(0, |n, x| n << 8 | u128::from(*x))
}

fn put(b: &mut [u8], at: usize, len: usize, v: u128) {
    b[at..at + len].copy_from_slice(&v.to_be_bytes()[16 - len..]);
}

/// Ones' complement sum of 16-bit words, the textbook's way.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut s = 0u32;
    for (n, x) in parts.concat().iter().enumerate() {
        s += if n % 2 == 0 {
            u32::from(*x) << 8
        } else {
            u32::from(*x)
        };
    }
    while s > 0xffff {
        s = (s & 0xffff) + (s >> 16);
    }
    !(s as u16)
}

/// CRC32c, bit by bit.
fn crc32c(b: &[u8]) -> u32 {
    let mut c = u32::MAX;
    for x in b {
        c ^= u32::from(*x);
        for _ in 0..8 {
            c = if c & 1 == 1 {
                0x82f6_3b78 ^ (c >> 1)
            } else {
                c >> 1
            };
        }
    }
    !c
}

const LEAST: [(u8, usize); 5] = [(6, 20), (17, 8), (132, 12), (1, 4), (58, 4)];

impl L4 {
    fn new(bytes: Vec<u8>, proto: u8, v6: bool, fragment: bool, later: bool) -> L4 {
        let other = if v6 { 1 } else { 58 };
        let there = !later && proto != other;
        let mut l4 = L4 {
            bytes,
            sum: 0,
            fragment,
            there,
        };
        if l4.whole(proto) {
            l4.sum = proto;
        }
        l4
    }

    fn whole(&self, proto: u8) -> bool {
        let least = LEAST.iter().find(|(p, _)| *p == proto);
        self.there && least.is_some_and(|(_, n)| self.bytes.len() >= *n)
    }

    fn sum_at(&self) -> Option<usize> {
        match self.sum {
            6 => Some(16),
            17 => Some(6),
            1 | 58 => Some(2),
            132 => Some(8),
            _ => None,
        }
    }

    /// With the checksum as it has to be.
    fn summed(&self, pseudo: &[u8], proto: u8) -> Vec<u8> {
        let Some(at) = self.sum_at() else {
            return self.bytes.clone();
        };
        let mut b = self.bytes.clone();
        if self.sum == 132 {
            b[8..12].fill(0);
            let c = crc32c(&b);
            b[8..12].copy_from_slice(&c.to_le_bytes());
            return b;
        }
        if self.sum == 17 && b[6..8] == [0, 0] {
            return b;
        }
        b[at..at + 2].fill(0);
        let len = (b.len() as u32).to_be_bytes();
        let mut c = if self.sum == 1 {
            sum(&[&b])
        } else {
            sum(&[pseudo, &len, &[0, 0, 0, proto], &b])
        };
        if self.sum == 17 && c == 0 {
            c = 0xffff;
        }
        b[at..at + 2].copy_from_slice(&c.to_be_bytes());
        b
    }
}

impl Ether {
    pub fn parse(b: &[u8]) -> Ether {
        let mut e = Ether {
            dst: num(&b[..6]) as u64,
            src: num(&b[6..12]) as u64,
            tags: Vec::new(),
            kind: num(&b[12..14]) as u16,
            length: None,
            body: Body::Raw(Vec::new()),
            protocol_set: false,
        };
        let mut rest = &b[14..];
        while (e.kind == 0x8100 || e.kind == 0x88a8) && rest.len() >= 4 {
            e.tags.push((e.kind, num(&rest[..2]) as u16));
            e.kind = num(&rest[2..4]) as u16;
            rest = &rest[4..];
        }
        e.body = Body::parse(e.kind, rest);
        e
    }

    /// 1.0 §3.4: the type of 802.3 is that of SNAP, if its organisation is 0, else 0x05ff.
    pub fn parse10(b: &[u8]) -> Ether {
        let mut e = Ether::parse(b);
        if e.kind < 0x600 {
            let mut length = e.kind.to_be_bytes().to_vec();
            let rest = e.body.build();
            e.kind = 0x05ff;
            if rest.len() >= 8 && rest[..6] == [0xaa, 0xaa, 3, 0, 0, 0] {
                length.extend(&rest[..8]);
                e.kind = num(&rest[6..8]) as u16;
                e.body = Body::parse(e.kind, &rest[8..]);
            }
            e.length = Some(length);
        }
        e
    }

    pub fn build(&self) -> Vec<u8> {
        let mut b = Vec::new();
        b.extend(&self.dst.to_be_bytes()[2..]);
        b.extend(&self.src.to_be_bytes()[2..]);
        for (tpid, tci) in &self.tags {
            b.extend(tpid.to_be_bytes());
            b.extend(tci.to_be_bytes());
        }
        match &self.length {
            Some(length) => b.extend(length),
            None => b.extend(self.kind.to_be_bytes()),
        }
        b.extend(self.body.build());
        b
    }

    /// The EtherType and what is behind it become these; tags that appear are tags of the frame.
    pub fn uncover(&mut self, kind: u16, bytes: &[u8]) {
        let b = [&[0; 12][..], &kind.to_be_bytes(), bytes].concat();
        let fresh = Ether::parse(&b);
        self.tags.extend(fresh.tags);
        (self.kind, self.body) = (fresh.kind, fresh.body);
    }

    /// With all checksums as they have to be.
    pub fn repaired(mut self) -> Ether {
        match &mut self.body {
            Body::Ip4(ip) => {
                ip.head[10..12].fill(0);
                let c = sum(&[&ip.head]);
                ip.head[10..12].copy_from_slice(&c.to_be_bytes());
                ip.l4.bytes = ip.l4.summed(&ip.pseudo(), ip.head[9]);
            }
            Body::Ip6(ip) => ip.l4.bytes = ip.l4.summed(&ip.pseudo(), ip.proto),
            _ => {}
        }
        self
    }

    /// All fields that the packet has.
    pub fn fields(&self) -> BTreeMap<Field, u128> {
        let mut f = BTreeMap::new();
        f.insert(Field::EthDst, u128::from(self.dst));
        f.insert(Field::EthSrc, u128::from(self.src));
        f.insert(Field::EthType, u128::from(self.kind));
        f.insert(Field::VlanVid, 0);
        if let Some((_, tci)) = self.tags.first() {
            f.insert(Field::VlanVid, u128::from(0x1000 | tci & 0xfff));
            f.insert(Field::VlanPcp, u128::from(tci >> 13));
        }
        match &self.body {
            Body::Raw(_) => {}
            Body::Mpls(shim, _) => {
                f.insert(Field::MplsLabel, u128::from(shim >> 12));
                f.insert(Field::MplsTc, u128::from(shim >> 9 & 7));
                f.insert(Field::MplsBos, u128::from(shim >> 8 & 1));
            }
            Body::Pbb(tci, _) => {
                f.insert(Field::PbbIsid, u128::from(tci & 0xff_ffff));
            }
            Body::Arp(a) => {
                f.insert(Field::ArpOp, num(&a[6..8]));
                f.insert(Field::ArpSha, num(&a[8..14]));
                f.insert(Field::ArpSpa, num(&a[14..18]));
                f.insert(Field::ArpTha, num(&a[18..24]));
                f.insert(Field::ArpTpa, num(&a[24..28]));
            }
            Body::Ip4(ip) => {
                let h = &ip.head;
                f.insert(Field::IpDscp, u128::from(h[1] >> 2));
                f.insert(Field::IpEcn, u128::from(h[1] & 3));
                f.insert(Field::IpProto, u128::from(h[9]));
                f.insert(Field::Ipv4Src, num(&h[12..16]));
                f.insert(Field::Ipv4Dst, num(&h[16..20]));
                transport(&mut f, &ip.l4, h[9], false);
            }
            Body::Ip6(ip) => {
                let first = num(&ip.head[..4]);
                f.insert(Field::IpDscp, first >> 22 & 0x3f);
                f.insert(Field::IpEcn, first >> 20 & 3);
                f.insert(Field::IpProto, u128::from(ip.proto));
                f.insert(Field::Ipv6Flabel, first & 0xf_ffff);
                f.insert(Field::Ipv6Src, num(&ip.head[8..24]));
                f.insert(Field::Ipv6Dst, num(&ip.head[24..40]));
                f.insert(Field::Ipv6Exthdr, ip.exthdr());
                transport(&mut f, &ip.l4, ip.proto, true);
            }
        }
        f
    }

    /// Of later fragments, in 1.0, ports and ICMP's type and code are zero (1.0 §3.4).
    pub fn fields10(&self) -> BTreeMap<Field, u128> {
        let mut f = self.fields();
        if let Body::Ip4(ip) = &self.body
            && num(&ip.head[6..8]) & 0x1fff != 0
            && num(&ip.head[2..4]) as usize >= ip.head.len()
        {
            match ip.head[9] {
                1 => f.extend([(Field::Icmpv4Type, 0), (Field::Icmpv4Code, 0)]),
                6 => f.extend([(Field::TcpSrc, 0), (Field::TcpDst, 0)]),
                17 => f.extend([(Field::UdpSrc, 0), (Field::UdpDst, 0)]),
                _ => {}
            }
        }
        f
    }

    /// Sets a field, if the packet has it.
    pub fn set(&mut self, field: Field, v: u128) -> Result<(), Undefined> {
        if field == Field::EthType {
            if self.protocol_set {
                return Err(Undefined);
            }
            let bytes = self.body.build();
            self.uncover(v as u16, &bytes);
            return Ok(());
        }
        if !self.fields().contains_key(&field) || field == Field::VlanVid && self.tags.is_empty() {
            return Ok(());
        }
        self.protocol_set |= field == Field::IpProto;
        match (field, &mut self.body) {
            (Field::EthDst, _) => self.dst = v as u64,
            (Field::EthSrc, _) => self.src = v as u64,
            (Field::VlanVid, _) => self.tags[0].1 = self.tags[0].1 & 0xf000 | v as u16 & 0xfff,
            (Field::VlanPcp, _) => self.tags[0].1 = self.tags[0].1 & 0x1fff | (v as u16) << 13,
            (Field::MplsLabel, Body::Mpls(s, _)) => *s = *s & 0xfff | (v as u32) << 12,
            (Field::MplsTc, Body::Mpls(s, _)) => *s = *s & !0xe00 | (v as u32) << 9,
            (Field::MplsBos, Body::Mpls(s, _)) => *s = *s & !0x100 | (v as u32) << 8,
            (Field::PbbIsid, Body::Pbb(t, _)) => *t = *t & 0xff00_0000 | v as u32,
            (Field::ArpOp, Body::Arp(a)) => put(a, 6, 2, v),
            (Field::ArpSha, Body::Arp(a)) => put(a, 8, 6, v),
            (Field::ArpSpa, Body::Arp(a)) => put(a, 14, 4, v),
            (Field::ArpTha, Body::Arp(a)) => put(a, 18, 6, v),
            (Field::ArpTpa, Body::Arp(a)) => put(a, 24, 4, v),
            (_, Body::Ip4(ip)) => ip.set(field, v)?,
            (_, Body::Ip6(ip)) => ip.set(field, v)?,
            _ => {}
        }
        Ok(())
    }
}

fn transport(f: &mut BTreeMap<Field, u128>, l4: &L4, proto: u8, v6: bool) {
    if !l4.whole(proto) {
        return;
    }
    let b = &l4.bytes;
    let (first, second) = (num(&b[..2]), num(&b[2..4]));
    match proto {
        6 => f.extend([(Field::TcpSrc, first), (Field::TcpDst, second)]),
        17 => f.extend([(Field::UdpSrc, first), (Field::UdpDst, second)]),
        132 => f.extend([(Field::SctpSrc, first), (Field::SctpDst, second)]),
        1 if !v6 => f.extend([
            (Field::Icmpv4Type, first >> 8),
            (Field::Icmpv4Code, first & 255),
        ]),
        58 if v6 => {
            f.extend([
                (Field::Icmpv6Type, first >> 8),
                (Field::Icmpv6Code, first & 255),
            ]);
            if matches!(b[0], 135 | 136) && b.len() >= 24 {
                f.insert(Field::Ipv6NdTarget, num(&b[8..24]));
                if let Some(at) = option(b) {
                    let field = if b[0] == 135 {
                        Field::Ipv6NdSll
                    } else {
                        Field::Ipv6NdTll
                    };
                    f.insert(field, num(&b[at..at + 6]));
                }
            }
        }
        _ => {}
    }
}

/// Where the link-layer address of a solicitation (1) or an advertisement (2) is.
fn option(b: &[u8]) -> Option<usize> {
    let want = b[0] - 134;
    let mut at = 24;
    while at + 2 <= b.len() {
        let len = usize::from(b[at + 1]) * 8;
        if len == 0 || at + len > b.len() {
            return None;
        }
        if b[at] == want {
            return Some(at + 2);
        }
        at += len;
    }
    None
}

/// Sets a transport field that is there.
fn set_transport(l4: &mut L4, proto: u8, field: Field, v: u128) -> Result<(), Undefined> {
    let (at, len) = match field {
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => (0, 2),
        Field::TcpDst | Field::UdpDst | Field::SctpDst => (2, 2),
        Field::Icmpv4Type | Field::Icmpv6Type => (0, 1),
        Field::Icmpv4Code | Field::Icmpv6Code => (1, 1),
        Field::Ipv6NdTarget => (8, 16),
        _ => (option(&l4.bytes).unwrap(), 6),
    };
    // Under another protocol than it came with a field may lie on the checksum
    if l4.sum != proto && l4.sum_at().is_some_and(|s| s < at + len && at < s + 4) {
        return Err(Undefined);
    }
    if l4.sum == 132 && l4.fragment {
        return Err(Undefined);
    }
    put(&mut l4.bytes, at, len, v);
    Ok(())
}

impl Ip4 {
    fn parse(b: &[u8]) -> Option<Ip4> {
        let len = usize::from(b.first()? & 15) * 4;
        if b[0] >> 4 != 4 || len < 20 || b.len() < len {
            return None;
        }
        let total = num(&b[2..4]) as usize;
        let end = if total < len { len } else { total.min(b.len()) };
        let frag = num(&b[6..8]);
        let later = frag & 0x1fff != 0 || total < len;
        Some(Ip4 {
            head: b[..len].to_vec(),
            l4: L4::new(b[len..end].to_vec(), b[9], false, frag & 0x3fff != 0, later),
            tail: b[end..].to_vec(),
        })
    }

    fn pseudo(&self) -> Vec<u8> {
        self.head[12..20].to_vec()
    }

    fn sound(&self) -> bool {
        sum(&[&self.head]) == 0
    }

    fn change(&mut self, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), Undefined> {
        if !self.sound() {
            return Err(Undefined);
        }
        let l4_sound = self.l4.summed(&self.pseudo(), self.head[9]) == self.l4.bytes;
        let before = (self.pseudo(), self.head[9]);
        change(&mut self.head);
        self.head[10..12].fill(0);
        let c = sum(&[&self.head]);
        self.head[10..12].copy_from_slice(&c.to_be_bytes());
        let after = (self.pseudo(), self.head[9]);
        if before != after && self.l4.sum_at().is_some() && !matches!(self.l4.sum, 1 | 132) {
            if !l4_sound {
                return Err(Undefined);
            }
            self.l4.bytes = self.l4.summed(&after.0, after.1);
        }
        Ok(())
    }

    fn set(&mut self, field: Field, v: u128) -> Result<(), Undefined> {
        match field {
            Field::IpDscp => self.change(|h| h[1] = h[1] & 3 | (v as u8) << 2),
            Field::IpEcn => self.change(|h| h[1] = h[1] & 0xfc | v as u8),
            Field::IpProto => self.change(|h| h[9] = v as u8),
            Field::Ipv4Src => self.change(|h| put(h, 12, 4, v)),
            Field::Ipv4Dst => self.change(|h| put(h, 16, 4, v)),
            _ => {
                let (pseudo, proto) = (self.pseudo(), self.head[9]);
                settle(&mut self.l4, &pseudo, proto, field, v)
            }
        }
    }

    pub fn set_ttl(&mut self, ttl: u8) -> Result<(), Undefined> {
        self.change(|h| h[8] = ttl)
    }

    fn build(&self) -> Vec<u8> {
        [&self.head[..], &self.l4.bytes, &self.tail].concat()
    }
}

/// Sets a transport field and the checksum.
fn settle(l4: &mut L4, pseudo: &[u8], proto: u8, field: Field, v: u128) -> Result<(), Undefined> {
    if l4.summed(pseudo, proto) != l4.bytes {
        return Err(Undefined);
    }
    set_transport(l4, proto, field, v)?;
    l4.bytes = l4.summed(pseudo, proto);
    Ok(())
}

impl Ip6 {
    fn parse(b: &[u8]) -> Option<Ip6> {
        if b.len() < 40 || b[0] >> 4 != 6 {
            return None;
        }
        let end = (40 + num(&b[4..6]) as usize).min(b.len());
        let mut rest = &b[40..end];
        let mut exts = Vec::new();
        let mut proto = b[6];
        let (mut later, mut fragment) = (false, false);
        while matches!(proto, 0 | 43 | 44 | 51 | 60) && !later {
            if rest.len() < 2 {
                later = true;
                break;
            }
            let n = usize::from(rest[1]);
            let len = match proto {
                44 => 8,
                51 => (n + 2) * 4,
                _ => (n + 1) * 8,
            };
            if rest.len() < len {
                later = true;
                break;
            }
            if proto == 44 {
                fragment = true;
                later = num(&rest[2..4]) & 0xfff8 != 0;
            }
            exts.push((proto, rest[..len].to_vec()));
            proto = rest[0];
            rest = &rest[len..];
        }
        Some(Ip6 {
            head: b[..40].to_vec(),
            exts,
            proto,
            l4: L4::new(rest.to_vec(), proto, true, fragment, later),
            tail: b[end..].to_vec(),
        })
    }

    /// §7.2.3.8, from the list of headers and what is behind.
    fn exthdr(&self) -> u128 {
        let later = self
            .exts
            .last()
            .is_some_and(|(n, b)| *n == 44 && num(&b[2..4]) & 0xfff8 != 0);
        let mut all: Vec<u8> = self.exts.iter().map(|(n, _)| *n).collect();
        // What is cut short is there all the same; what a later fragment begins with is not
        if !later && matches!(self.proto, 0 | 43 | 44 | 50 | 51 | 59 | 60) {
            all.push(self.proto);
        }
        let bit = |n: u8| match n {
            59 => 0,
            50 => 1,
            51 => 2,
            60 => 3,
            44 => 4,
            43 => 5,
            _ => 6,
        };
        let mut bits = 0;
        let mut ranks = Vec::new();
        for (i, n) in all.iter().enumerate() {
            bits |= 1 << bit(*n);
            let first = all[..i].iter().all(|b| matches!(b, 0 | 60));
            ranks.push(match n {
                0 => 1,
                60 if first => 2,
                43 => 3,
                44 => 4,
                51 => 5,
                50 => 6,
                60 => 7,
                _ => 8,
            });
        }
        // Once each; destination options once at either place
        let twice =
            (0..all.len()).any(|i| (0..i).any(|j| all[i] == all[j] && ranks[i] == ranks[j]));
        let disordered = (0..all.len()).any(|i| (0..i).any(|j| ranks[j] > ranks[i]));
        bits | u128::from(twice) << 7 | u128::from(disordered) << 8
    }

    fn pseudo(&self) -> Vec<u8> {
        let mut p = self.head[8..40].to_vec();
        if let Some((_, r)) = self.exts.iter().rev().find(|(n, b)| *n == 43 && b[3] > 0) {
            // The last address of the routing header
            let at = r.len() - 16;
            p[16..].copy_from_slice(&r[at..]);
        }
        p
    }

    fn set(&mut self, field: Field, v: u128) -> Result<(), Undefined> {
        let (pseudo, proto) = (self.pseudo(), self.proto);
        let sound = self.l4.summed(&pseudo, proto) == self.l4.bytes;
        let h = &mut self.head;
        let first = num(&h[..4]);
        match field {
            Field::IpDscp => put(h, 0, 4, first & !(0x3f << 22) | v << 22),
            Field::IpEcn => put(h, 0, 4, first & !(3 << 20) | v << 20),
            Field::Ipv6Flabel => put(h, 0, 4, first & !0xf_ffff | v),
            Field::Ipv6Src => put(h, 8, 16, v),
            Field::Ipv6Dst => put(h, 24, 16, v),
            Field::IpProto => {
                self.proto = v as u8;
                match self.exts.last_mut() {
                    Some((_, e)) => e[0] = v as u8,
                    None => h[6] = v as u8,
                }
            }
            _ => return settle(&mut self.l4, &pseudo, proto, field, v),
        }
        let after = (self.pseudo(), self.proto);
        if after != (pseudo, proto) && self.l4.sum_at().is_some() && !matches!(self.l4.sum, 1 | 132)
        {
            if !sound {
                return Err(Undefined);
            }
            self.l4.bytes = self.l4.summed(&after.0, after.1);
        }
        Ok(())
    }

    fn build(&self) -> Vec<u8> {
        let exts: Vec<u8> = self.exts.iter().flat_map(|(_, e)| e.clone()).collect();
        [&self.head[..], &exts, &self.l4.bytes, &self.tail].concat()
    }
}

impl Body {
    fn parse(kind: u16, b: &[u8]) -> Body {
        let known = match kind {
            0x0800 => Ip4::parse(b).map(Body::Ip4),
            0x86dd => Ip6::parse(b).map(Body::Ip6),
            0x0806 if b.len() >= 28 && b[..6] == [0, 1, 8, 0, 6, 4] => Some(Body::Arp(b.to_vec())),
            0x8847 | 0x8848 if b.len() >= 4 => {
                Some(Body::Mpls(num(&b[..4]) as u32, b[4..].to_vec()))
            }
            0x88e7 if b.len() >= 18 => Some(Body::Pbb(
                num(&b[..4]) as u32,
                Box::new(Ether::parse(&b[4..])),
            )),
            _ => None,
        };
        known.unwrap_or_else(|| Body::Raw(b.to_vec()))
    }

    fn build(&self) -> Vec<u8> {
        match self {
            Body::Raw(b) | Body::Arp(b) => b.clone(),
            Body::Mpls(shim, b) => [&shim.to_be_bytes()[..], b].concat(),
            Body::Pbb(tci, e) => [&tci.to_be_bytes()[..], &e.build()].concat(),
            Body::Ip4(ip) => ip.build(),
            Body::Ip6(ip) => ip.build(),
        }
    }

    /// The TTL of the outermost header that has one.
    pub fn ttl(&self) -> Option<u8> {
        match self {
            Body::Mpls(shim, _) => Some(*shim as u8),
            Body::Ip4(ip) => Some(ip.head[8]),
            Body::Ip6(ip) => Some(ip.head[7]),
            _ => None,
        }
    }

    pub fn set_ttl(&mut self, ttl: u8) -> Result<(), Undefined> {
        match self {
            Body::Mpls(shim, _) => *shim = *shim & 0xffff_ff00 | u32::from(ttl),
            Body::Ip4(ip) => ip.set_ttl(ttl)?,
            Body::Ip6(ip) => ip.head[7] = ttl,
            _ => {}
        }
        Ok(())
    }

    /// What is behind a header with a TTL, if that has one as well.
    pub fn inner(&self) -> Option<Body> {
        match self {
            Body::Mpls(shim, b) if shim >> 8 & 1 == 0 => Some(Body::parse(0x8847, b)),
            Body::Mpls(_, b) => Some(Body::parse(
                if b.first()? >> 4 == 4 { 0x0800 } else { 0x86dd },
                b,
            )),
            Body::Ip4(ip) if matches!(ip.head[9], 4 | 41) && ip.l4.there => {
                Some(inner_ip(&ip.l4.bytes))
            }
            Body::Ip6(ip) if matches!(ip.proto, 4 | 41) && ip.l4.there => {
                Some(inner_ip(&ip.l4.bytes))
            }
            _ => None,
        }
        .filter(|b| b.ttl().is_some())
    }

    pub fn set_inner(&mut self, inner: &Body) {
        let bytes = inner.build();
        match self {
            Body::Mpls(_, b) => *b = bytes,
            Body::Ip4(ip) => ip.l4.bytes = bytes,
            Body::Ip6(ip) => ip.l4.bytes = bytes,
            _ => {}
        }
    }

    /// What stands behind the EtherType, as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.build()
    }
}

fn inner_ip(b: &[u8]) -> Body {
    let kind = match b.first().map(|v| v >> 4) {
        Some(4) => 0x0800,
        Some(6) => 0x86dd,
        _ => 0,
    };
    Body::parse(kind, b)
}

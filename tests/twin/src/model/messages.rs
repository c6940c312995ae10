//! Netlink's bytes, read and written without the production code: a request's header and attributes, a message's.

use std::net::IpAddr;

pub const NEWLINK: u16 = 16;
pub const NEWADDR: u16 = 20;
pub const DELADDR: u16 = 21;
pub const NEWROUTE: u16 = 24;
pub const DELROUTE: u16 = 25;
pub const NEWNEIGH: u16 = 28;
pub const DELNEIGH: u16 = 29;
pub const NEWRULE: u16 = 32;
pub const DELRULE: u16 = 33;
pub const NEWNETCONF: u16 = 80;
pub const NEWNEXTHOP: u16 = 104;
pub const DELNEXTHOP: u16 = 105;
pub const DONE: u16 = 3;

pub const REPLACE: u16 = 0x100;
pub const EXCL: u16 = 0x200;
pub const CREATE: u16 = 0x400;
pub const APPEND: u16 = 0x800;
pub const MULTI: u16 = 2;

pub const INET: u8 = 2;
pub const INET6: u8 = 10;

/// Who asked: the player's socket has some number, this one is the model's.
pub const PORT: u32 = 4711;

/// What a request says.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub kind: u16,
    pub flags: u16,
    pub seq: u32,
    body: &'a [u8],
    fixed: usize,
}

/// The messages of a datagram.
pub fn split(mut b: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some(one) = b.get(..word(b, 0) as usize).filter(|one| one.len() >= 16) {
        all.push(one);
        b = b.get((one.len() + 3) & !3..).unwrap_or(&[]);
    }
    all
}

fn word(b: &[u8], at: usize) -> u32 {
    b.get(at..)
        .and_then(|s| s.first_chunk())
        .map_or(0, |c| u32::from_ne_bytes(*c))
}

fn half(b: &[u8], at: usize) -> u16 {
    b.get(at..)
        .and_then(|s| s.first_chunk())
        .map_or(0, |c| u16::from_ne_bytes(*c))
}

/// An address of either family, as its octets say.
pub fn address(v: &[u8]) -> Option<IpAddr> {
    match v.len() {
        4 => v.first_chunk::<4>().map(|a| IpAddr::from(*a)),
        16 => v.first_chunk::<16>().map(|a| IpAddr::from(*a)),
        _ => None,
    }
}

pub fn v4(v: &[u8]) -> u32 {
    v.first_chunk().map_or(0, |a| u32::from_be_bytes(*a))
}

impl<'a> Request<'a> {
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let kind = half(bytes, 4);
        let fixed = match kind {
            16..=19 => 16,
            20..=22 | 104..=106 => 8,
            24..=26 | 28..=30 | 32..=34 => 12,
            _ => return None,
        };
        Some(Self {
            kind,
            flags: half(bytes, 6),
            seq: word(bytes, 8),
            body: bytes.get(16..word(bytes, 0) as usize)?,
            fixed,
        })
    }

    /// The same request with other flags.
    pub fn with_flags(self, flags: u16) -> Self {
        Self { flags, ..self }
    }

    /// A byte of the fixed part.
    pub fn byte(&self, at: usize) -> u8 {
        self.body.get(at).copied().unwrap_or(0)
    }

    /// Four bytes of it.
    pub fn long(&self, at: usize) -> u32 {
        word(self.body, at)
    }

    pub fn short(&self, at: usize) -> u16 {
        half(self.body, at)
    }

    /// The whole fixed part.
    pub fn fixed(&self) -> &'a [u8] {
        self.body.get(..self.fixed).unwrap_or(&[])
    }

    pub fn attrs(&self) -> Attrs<'a> {
        Attrs(self.body.get(self.fixed..).unwrap_or(&[]))
    }

    pub fn attr(&self, kind: u16) -> Option<&'a [u8]> {
        self.attrs().find(|(k, _)| *k == kind).map(|(_, v)| v)
    }

    pub fn number(&self, kind: u16) -> u32 {
        self.attr(kind).map_or(0, |v| word(v, 0))
    }
}

/// Attributes, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Attrs<'a>(pub &'a [u8]);

impl<'a> Iterator for Attrs<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let len = usize::from(half(self.0, 0));
        let value = self.0.get(4..len)?;
        let kind = half(self.0, 2) & 0x3fff;
        self.0 = self.0.get((len + 3) & !3..).unwrap_or(&[]);
        Some((kind, value))
    }
}

/// One way of RTA_MULTIPATH.
#[derive(Debug, Clone, Copy)]
pub struct Hop<'a> {
    pub flags: u8,
    pub hops: u8,
    pub dev: u32,
    pub gateway: Option<&'a [u8]>,
}

/// The ways of RTA_MULTIPATH.
pub fn hops(mut b: &[u8]) -> Vec<Hop<'_>> {
    let mut all = Vec::new();
    while b.len() >= 8 {
        let len = usize::from(half(b, 0));
        let Some(attrs) = b.get(8..len) else { break };
        all.push(Hop {
            flags: b.get(2).copied().unwrap_or(0),
            hops: b.get(3).copied().unwrap_or(0),
            dev: word(b, 4),
            gateway: Attrs(attrs).find(|(k, _)| *k == 5).map(|(_, v)| v),
        });
        b = b.get((len + 3) & !3..).unwrap_or(&[]);
    }
    all
}

/// The members of NHA_GROUP: id and weight.
pub fn members(b: &[u8]) -> Vec<(u32, u32)> {
    b.chunks_exact(8)
        .map(|m| {
            let low = m.get(4).copied().unwrap_or(0);
            (word(m, 0), u32::from(low) + 1)
        })
        .collect()
}

/// A message being written.
#[derive(Debug, Clone)]
pub struct Message(Vec<u8>);

impl Message {
    pub fn new(kind: u16, flags: u16, seq: u32, port: u32, fixed: &[u8]) -> Self {
        let mut b = vec![0; 4];
        b.extend_from_slice(&kind.to_ne_bytes());
        b.extend_from_slice(&flags.to_ne_bytes());
        b.extend_from_slice(&seq.to_ne_bytes());
        b.extend_from_slice(&port.to_ne_bytes());
        b.extend_from_slice(fixed);
        Self(b)
    }

    fn pad(&mut self) {
        self.0.resize((self.0.len() + 3) & !3, 0);
    }

    pub fn bytes(&mut self, kind: u16, value: &[u8]) {
        self.pad();
        self.0
            .extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
    }

    pub fn number(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_ne_bytes());
    }

    pub fn v4(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_be_bytes());
    }

    pub fn v6(&mut self, kind: u16, value: u128) {
        self.bytes(kind, &value.to_be_bytes());
    }

    pub fn text(&mut self, kind: u16, value: &str) {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat());
    }

    /// The whole message, its length put in.
    pub fn done(mut self) -> Vec<u8> {
        self.pad();
        let len = self.0.len() as u32;
        if let Some(slot) = self.0.first_chunk_mut() {
            *slot = len.to_ne_bytes();
        }
        self.0
    }
}

/// An attribute alone, for those that stand in others.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut b = (value.len() as u16 + 4).to_ne_bytes().to_vec();
    b.extend_from_slice(&kind.to_ne_bytes());
    b.extend_from_slice(value);
    b.resize((b.len() + 3) & !3, 0);
    b
}

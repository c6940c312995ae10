//! The frame of every netlink message: headers, attributes, alignment (`linux/netlink.h`).
//!
//! Reading borrows from the receive buffer and never allocates; a length that does not add up ends
//! the walk (the kernel is trusted to be right, not to be intact). Writing appends to one buffer
//! that may hold many messages, as one `send` can carry them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::consts::NLM_F_REQUEST;

/// Bytes of `struct nlmsghdr`.
pub const HEADER_LEN: usize = 16;

const fn align4(n: usize) -> usize {
    (n + 3) & !3
}

/// Reads a native-endian u16 at `off`; 0 beyond the end.
#[must_use]
pub fn u16_at(b: &[u8], off: usize) -> u16 {
    b.get(off..)
        .and_then(|s| s.first_chunk())
        .map_or(0, |c| u16::from_ne_bytes(*c))
}

/// Reads a native-endian u32 at `off`; 0 beyond the end.
#[must_use]
pub fn u32_at(b: &[u8], off: usize) -> u32 {
    b.get(off..)
        .and_then(|s| s.first_chunk())
        .map_or(0, |c| u32::from_ne_bytes(*c))
}

/// Reads a native-endian u64 at `off`; 0 beyond the end.
#[must_use]
pub fn u64_at(b: &[u8], off: usize) -> u64 {
    b.get(off..)
        .and_then(|s| s.first_chunk())
        .map_or(0, |c| u64::from_ne_bytes(*c))
}

/// Reads a byte at `off`; 0 beyond the end.
#[must_use]
pub fn u8_at(b: &[u8], off: usize) -> u8 {
    b.get(off).copied().unwrap_or(0)
}

/// One message in a datagram.
#[derive(Debug, Clone, Copy)]
pub struct Msg<'a> {
    /// `nlmsg_type`.
    pub kind: u16,
    /// `nlmsg_flags`.
    pub flags: u16,
    /// `nlmsg_seq`.
    pub seq: u32,
    /// `nlmsg_pid`.
    pub port: u32,
    /// What follows the header.
    pub payload: &'a [u8],
}

/// Walks the messages of a datagram.
#[derive(Debug, Clone)]
pub struct Msgs<'a>(&'a [u8]);

impl<'a> Msgs<'a> {
    /// Over `datagram`, as received.
    #[must_use]
    pub const fn new(datagram: &'a [u8]) -> Self {
        Self(datagram)
    }
}

impl<'a> Iterator for Msgs<'a> {
    type Item = Msg<'a>;

    fn next(&mut self) -> Option<Msg<'a>> {
        let b = self.0;
        if b.len() < HEADER_LEN {
            return None;
        }
        let len = u32_at(b, 0) as usize;
        let payload = b.get(HEADER_LEN..len)?;
        let msg = Msg {
            kind: u16_at(b, 4),
            flags: u16_at(b, 6),
            seq: u32_at(b, 8),
            port: u32_at(b, 12),
            payload,
        };
        self.0 = b.get(align4(len)..).unwrap_or(&[]);
        Some(msg)
    }
}

/// Walks attributes: `(type, payload)`, the nested and byte-order bits taken off the type.
#[derive(Debug, Clone)]
pub struct Attrs<'a>(&'a [u8]);

impl<'a> Attrs<'a> {
    /// Over a run of attributes.
    #[must_use]
    pub const fn new(b: &'a [u8]) -> Self {
        Self(b)
    }

    /// Over the attributes after a message's fixed part of `fixed` bytes.
    #[must_use]
    pub fn after(payload: &'a [u8], fixed: usize) -> Self {
        Self(payload.get(align4(fixed)..).unwrap_or(&[]))
    }

    /// The payload of the first attribute of this type.
    #[must_use]
    pub fn get(&self, kind: u16) -> Option<&'a [u8]> {
        self.clone().find(|(k, _)| *k == kind).map(|(_, v)| v)
    }
}

impl<'a> Iterator for Attrs<'a> {
    type Item = (u16, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let b = self.0;
        if b.len() < 4 {
            return None;
        }
        let len = usize::from(u16_at(b, 0));
        let payload = b.get(4..len)?;
        let kind = u16_at(b, 2) & 0x3fff;
        self.0 = b.get(align4(len)..).unwrap_or(&[]);
        Some((kind, payload))
    }
}

/// An IP address of 4 or 16 bytes.
#[must_use]
pub fn ip(b: &[u8]) -> Option<IpAddr> {
    match b.len() {
        4 => b.first_chunk::<4>().map(|a| IpAddr::V4(Ipv4Addr::from(*a))),
        16 => b
            .first_chunk::<16>()
            .map(|a| IpAddr::V6(Ipv6Addr::from(*a))),
        _ => None,
    }
}

/// A MAC address of exactly 6 bytes.
#[must_use]
pub fn mac(b: &[u8]) -> Option<[u8; 6]> {
    b.try_into().ok()
}

/// A string, up to its terminating zero.
#[must_use]
pub fn text(b: &[u8]) -> String {
    let end = b.iter().position(|c| *c == 0).unwrap_or(b.len());
    String::from_utf8_lossy(b.get(..end).unwrap_or(&[])).into_owned()
}

/// Messages being written, one after the other.
#[derive(Debug, Default, Clone)]
pub struct Writer {
    buf: Vec<u8>,
    start: usize,
    count: u32,
}

/// Where a nested attribute began; give it back to [`Writer::end_nest`].
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Nest(usize);

impl Writer {
    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            buf: Vec::new(),
            start: 0,
            count: 0,
        }
    }

    /// Forgets the messages, keeps the memory.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.start = 0;
        self.count = 0;
    }

    /// The bytes, ready to be sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buf
    }

    /// How many messages it holds.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Begins a message: `flags` besides `NLM_F_REQUEST`, and the fixed part after the header.
    pub fn begin(&mut self, kind: u16, flags: u16, seq: u32, fixed: &[u8]) {
        self.start = self.buf.len();
        self.count += 1;
        self.buf.extend_from_slice(&[0; 4]);
        self.buf.extend_from_slice(&kind.to_ne_bytes());
        self.buf
            .extend_from_slice(&(flags | NLM_F_REQUEST).to_ne_bytes());
        self.buf.extend_from_slice(&seq.to_ne_bytes());
        self.buf.extend_from_slice(&[0; 4]);
        self.buf.extend_from_slice(fixed);
        self.pad();
        self.close();
    }

    fn pad(&mut self) {
        let n = align4(self.buf.len());
        self.buf.resize(n, 0);
    }

    /// Keeps the message's length true after every append, so a message needs no closing call.
    fn close(&mut self) {
        let len = (self.buf.len() - self.start) as u32;
        if let Some(slot) = self.buf.get_mut(self.start..self.start + 4) {
            slot.copy_from_slice(&len.to_ne_bytes());
        }
    }

    /// Appends an attribute.
    pub fn attr(&mut self, kind: u16, value: &[u8]) {
        let len = 4 + value.len() as u16;
        self.buf.extend_from_slice(&len.to_ne_bytes());
        self.buf.extend_from_slice(&kind.to_ne_bytes());
        self.buf.extend_from_slice(value);
        self.pad();
        self.close();
    }

    /// Appends a native-endian u32.
    pub fn attr_u32(&mut self, kind: u16, value: u32) {
        self.attr(kind, &value.to_ne_bytes());
    }

    /// Appends an address.
    pub fn attr_ip(&mut self, kind: u16, addr: &IpAddr) {
        match addr {
            IpAddr::V4(a) => self.attr(kind, &a.octets()),
            IpAddr::V6(a) => self.attr(kind, &a.octets()),
        }
    }

    /// Begins a nested attribute.
    pub fn nest(&mut self, kind: u16) -> Nest {
        let at = self.buf.len();
        self.attr(kind | 0x8000, &[]);
        Nest(at)
    }

    /// Appends raw bytes (a `struct rtnexthop` …), padded.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
        self.pad();
        self.close();
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buf.len()
    }

    /// Nothing written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// Writes a native-endian u16 over what is at `at` (a length known only later).
    pub fn patch_u16(&mut self, at: usize, value: u16) {
        if let Some(slot) = self.buf.get_mut(at..at + 2) {
            slot.copy_from_slice(&value.to_ne_bytes());
        }
    }

    /// Ends a nested attribute.
    pub fn end_nest(&mut self, nest: Nest) {
        let len = (self.buf.len() - nest.0) as u16;
        self.patch_u16(nest.0, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut w = Writer::new();
        w.begin(24, 0x400, 7, &[1, 2, 3]);
        w.attr_u32(4, 9);
        let n = w.nest(9);
        w.attr(1, b"abc");
        w.end_nest(n);
        w.begin(25, 0, 8, &[]);
        let msgs: Vec<_> = Msgs::new(w.bytes()).collect();
        assert_eq!(msgs.len(), 2);
        assert_eq!((msgs[0].kind, msgs[0].flags, msgs[0].seq), (24, 0x401, 7));
        let attrs: Vec<_> = Attrs::after(msgs[0].payload, 3).collect();
        assert_eq!(attrs[0], (4, &9u32.to_ne_bytes()[..]));
        assert_eq!(attrs[1].0, 9);
        assert_eq!(Attrs::new(attrs[1].1).get(1), Some(&b"abc"[..]));
        assert_eq!(msgs[1].kind, 25);
    }

    #[test]
    fn broken_lengths_end_the_walk() {
        for len in 0..4u16 {
            let mut b = vec![0u8; 8];
            b[..2].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(Attrs::new(&b).count(), 0, "length {len}");
        }
        let mut b = vec![0u8; 16];
        b[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(Msgs::new(&b).count(), 0);
        b[..4].copy_from_slice(&15u32.to_ne_bytes());
        assert_eq!(Msgs::new(&b).count(), 0);
    }
}

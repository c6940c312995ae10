// SPDX-License-Identifier: Apache-2.0
//! Messages in a stream of bytes: the header (§7.1), and where one message ends and the next begins.

use crate::Error;
use crate::wire::{Malformed, Put, Result};

/// Bytes of `ofp_header`.
pub const HEADER: usize = 8;
/// The longest message: its length has 16 bits.
pub const LONGEST: usize = u16::MAX as usize;

/// Versions that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Version {
    /// 1.0.
    V10 = 1,
    /// 1.3.
    V13 = 4,
}

impl Version {
    /// Of the wire's number.
    pub const fn of(number: u8) -> Option<Version> {
        match number {
            1 => Some(Version::V10),
            4 => Some(Version::V13),
            _ => None,
        }
    }

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V10 => "1.0",
            Version::V13 => "1.3",
        }
    }
}

/// `ofp_header` (§7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Not necessarily one that is spoken.
    pub version: u8,
    /// `ofp_type`, whose numbers differ between versions.
    pub kind: u8,
    /// Of the whole message.
    pub length: u16,
    /// For the answer.
    pub xid: u32,
}

impl Header {
    /// Of the first bytes of a message; `None` if there are fewer than eight.
    pub fn of(bytes: &[u8]) -> Option<Header> {
        let &[version, kind, l0, l1, a, b, c, d] = bytes.first_chunk::<HEADER>()?;
        Some(Header {
            version,
            kind,
            length: u16::from_be_bytes([l0, l1]),
            xid: u32::from_be_bytes([a, b, c, d]),
        })
    }
}

/// Begins a message; [`finish`] ends it.
pub(crate) fn begin(version: Version, kind: u8, xid: u32, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.put8(version as u8);
    out.put8(kind);
    out.put16(0);
    out.put32(xid);
    start
}

/// What was to be written is longer than a message may be; nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "longer than a message's {LONGEST} bytes")
    }
}

impl std::error::Error for TooLong {}

/// Ends the message that began at `start`, or takes it away.
pub(crate) fn finish(start: usize, out: &mut Vec<u8>) -> std::result::Result<(), TooLong> {
    if out.len() - start > LONGEST {
        out.truncate(start);
        return Err(TooLong);
    }
    out.put_len(start + 2, start);
    Ok(())
}

/// Twice the longest message: a message that lies at the end is moved to the front, and then never again.
const ROOM: usize = 2 * (LONGEST + 1);

/// Cuts a stream into messages. It holds at most 128 KiB: whoever does not take what is in it finds no more room.
///
/// ```text
///   read(socket, framer.room()) ──► framer.filled(n) ──► framer.next() ──► a message, in place
/// ```
#[derive(Debug)]
pub struct Framer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Default for Framer {
    fn default() -> Self {
        Framer {
            bytes: vec![0; ROOM].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }
}

impl Framer {
    /// Where the next bytes go; empty only while whole messages are waiting to be taken.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start >= ROOM / 2 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// The first `n` bytes of [`Framer::room`] are there.
    pub fn filled(&mut self, n: usize) {
        self.end = (self.end + n).min(ROOM);
    }

    /// Copies into the room what fits, and says how much that was.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        let room = self.room();
        let n = room.len().min(bytes.len());
        if let (Some(to), Some(from)) = (room.get_mut(..n), bytes.get(..n)) {
            to.copy_from_slice(from);
        }
        self.filled(n);
        n
    }

    /// The next whole message. A length below that of the header is an error each time: nobody knows where the next
    /// message begins, so the connection has to end.
    ///
    /// # Errors
    /// `BAD_REQUEST BAD_LEN` (§7.1: the length covers the header).
    #[allow(clippy::should_implement_trait)] // an iterator could not lend the message
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        let waiting = self.bytes.get(self.start..self.end).unwrap_or_default();
        let Some(header) = Header::of(waiting) else {
            return Ok(None);
        };
        let length = usize::from(header.length);
        if length < HEADER {
            return Err(Malformed {
                error: Error::BAD_REQUEST_BAD_LEN,
                at: 2,
                what: "length of a message",
                wanted: Some(HEADER as u64),
                got: length as u64,
            });
        }
        let Some(message) = waiting.get(..length) else {
            return Ok(None);
        };
        self.start += length;
        Ok(Some(message))
    }

    /// Is the next message a whole one of this kind?
    pub fn has(&self, kind: u8) -> bool {
        let waiting = self.bytes.get(self.start..self.end).unwrap_or_default();
        let header = Header::of(waiting).filter(|h| h.kind == kind);
        header.is_some_and(|h| (HEADER..=waiting.len()).contains(&usize::from(h.length)))
    }

    /// Bytes that wait, of whole messages and of a part of one.
    pub fn waiting(&self) -> usize {
        self.end - self.start
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Messages to values and back, whichever version was agreed on.

use crate::frame::{HEADER, Header, LONGEST, TooLong, Version, begin, finish};
use crate::model::{Asks, FlowMod, Part, Reply, Request};
use crate::wire::{Malformed, Reader, Result};
use crate::{Error, Hello, v10, v13};

/// Of a request that an error is about, so many bytes go back: the least that §7.4.4 and 1.0 §5.4.4 ask for.
pub const ERROR_DATA: usize = 64;

/// A message of a controller, and its transaction.
///
/// # Errors
/// The standard's error for what is malformed, unknown or of another version. A hello may have any version.
pub fn decode(version: Version, message: &[u8]) -> Result<(u32, Request<'_>)> {
    let short = |what: &'static str, wanted: usize, got: usize| Malformed {
        error: Error::BAD_REQUEST_BAD_LEN,
        at: 2,
        what,
        wanted: Some(wanted as u64),
        got: got as u64,
    };
    let (Some(header), Some(body)) = (Header::of(message), message.get(HEADER..)) else {
        return Err(short("bytes of a message", HEADER, message.len()));
    };
    if usize::from(header.length) != message.len() {
        return Err(short(
            "length of a message",
            message.len(),
            usize::from(header.length),
        ));
    }
    if header.version != version as u8 && header.kind != 0 {
        // §7.4.4.2
        return Err(Malformed {
            error: Error::BAD_REQUEST_BAD_VERSION,
            at: 0,
            what: "version of a message",
            wanted: Some(version as u64),
            got: u64::from(header.version),
        });
    }
    let mut r = Reader::new(body, HEADER, Error::BAD_REQUEST_BAD_LEN);
    // of the same number and form in both
    let request = match header.kind {
        0 => Request::Hello(Hello::decode(header.version, r)),
        1 => Request::Error {
            kind: r.u16()?,
            code: r.u16()?,
            data: r.rest(),
        },
        2 => Request::Echo(body),
        3 => Request::EchoReply(body),
        _ => match version {
            Version::V10 => v10::decode(header, r)?,
            Version::V13 => v13::decode(header, r)?,
        },
    };
    Ok((header.xid, request))
}

/// Appends a controller's message, for tests and tools. What the version lacks is nothing at all.
///
/// # Errors
/// A message that would be too long.
pub fn encode_request(
    version: Version,
    xid: u32,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> std::result::Result<(), TooLong> {
    if let Request::Hello(hello) = request {
        hello.encode(xid, out);
        return Ok(());
    }
    let kind = match version {
        Version::V10 => v10::kind(request),
        Version::V13 => Some(v13::kind(request)),
    };
    let Some(kind) = kind else {
        return Ok(());
    };
    let start = begin(version, kind, xid, out);
    match version {
        Version::V10 => v10::encode(request, out),
        Version::V13 => v13::encode(request, out),
    }
    finish(start, out)
}

/// The same of a flow_mod that is somebody else's.
///
/// # Errors
/// As [`encode_request`].
pub fn encode_flow_mod(
    version: Version,
    m: &FlowMod,
    out: &mut Vec<u8>,
) -> std::result::Result<(), TooLong> {
    let start = begin(version, v13::FLOW_MOD, 0, out);
    match version {
        Version::V10 => v10::encode_flow_mod(m, out),
        Version::V13 => v13::encode_flow_mod(m, out),
    }
    finish(start, out)
}

/// Appends a switch's message. What the version lacks is nothing at all: roles and async filters of 1.0, which can't
/// have been asked for.
///
/// # Errors
/// A message that would be too long; nothing is appended.
pub fn encode(
    version: Version,
    xid: u32,
    reply: &Reply<'_>,
    out: &mut Vec<u8>,
) -> std::result::Result<(), TooLong> {
    let mut reply = *reply;
    match &mut reply {
        Reply::Hello(hello) => {
            hello.encode(xid, out);
            return Ok(());
        }
        Reply::Error { error, data } => {
            // a failed hello's is text, whole
            let most = if error.kind == 0 { LONGEST } else { ERROR_DATA };
            *data = data.get(..most).unwrap_or(data);
        }
        _ => {}
    }
    let kind = match version {
        Version::V10 => v10::reply_kind(&reply),
        Version::V13 => Some(v13::reply_kind(&reply)),
    };
    let Some(kind) = kind else {
        return Ok(());
    };
    let start = begin(version, kind, xid, out);
    match version {
        Version::V10 => v10::encode_reply(&reply, out),
        Version::V13 => v13::encode_reply(&reply, out),
    }
    finish(start, out)
}

/// Writes a multipart reply (§7.3.5; 1.0 §5.3.5), as many messages as it takes: all but the last say that more
/// follow, and no part is in two. At each time what is there is whole; without a part it is an empty reply.
///
/// ```text
///   Multiparts::new(…, &asks, out) ──► add(part) ──► add(part) ──► … ──► out
/// ```
#[derive(Debug)]
pub struct Multiparts<'o> {
    version: Version,
    xid: u32,
    kind: u16,
    out: &'o mut Vec<u8>,
    /// Of the first message, of this one.
    first: usize,
    start: usize,
}

impl<'o> Multiparts<'o> {
    /// The answer to `asks`.
    pub fn new(version: Version, xid: u32, asks: &Asks<'_>, out: &'o mut Vec<u8>) -> Self {
        let mut all = Multiparts {
            version,
            xid,
            kind: v13::asks_kind(asks),
            first: out.len(),
            start: out.len(),
            out,
        };
        all.begin();
        all
    }

    fn begin(&mut self) {
        let kind = match self.version {
            Version::V10 => v10::STATS_REPLY,
            Version::V13 => v13::MULTIPART_REPLY,
        };
        self.start = begin(self.version, kind, self.xid, self.out);
        match self.version {
            Version::V10 => v10::begin_parts(self.kind, self.out),
            Version::V13 => v13::begin_parts(self.kind, self.out),
        }
        // a header and 8 bytes
        let _ = finish(self.start, self.out);
    }

    /// Bytes of a message before its first part.
    fn head(&self) -> usize {
        match self.version {
            Version::V10 => HEADER + 4,
            Version::V13 => HEADER + 8,
        }
    }

    /// One more part.
    ///
    /// # Errors
    /// A part that no message has room for; it is left out.
    pub fn add(&mut self, part: &Part<'_>) -> std::result::Result<(), TooLong> {
        let at = self.out.len();
        match self.version {
            Version::V10 => v10::encode_part(part, self.out),
            Version::V13 => v13::encode_part(part, self.out),
        }
        let long = self.out.len() - at;
        if self.head() + long > LONGEST {
            self.out.truncate(at);
            return Err(TooLong);
        }
        if self.out.len() - self.start > LONGEST {
            // it begins the next message
            self.set_more();
            let tail = self.out.split_off(at);
            self.begin();
            self.out.extend_from_slice(&tail);
        }
        finish(self.start, self.out)
    }

    /// Bytes since [`Multiparts::new`].
    pub fn written(&self) -> usize {
        self.out.len() - self.first
    }

    /// Says that more messages of this answer follow: another call of [`Multiparts::new`] begins them. What has no part
    /// yet is taken back.
    pub fn go_on(mut self) {
        if self.out.len() == self.start + self.head() {
            self.out.truncate(self.start);
        } else {
            self.set_more();
        }
    }

    /// MORE is the lowest bit of flags, which follow the type.
    fn set_more(&mut self) {
        if let Some(flags) = self.out.get_mut(self.start + HEADER + 3) {
            *flags |= 1;
        }
    }
}

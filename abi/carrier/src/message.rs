//! Messages on the carrier's socket: 256 bytes each, little endian, descriptors beside them.
//!
//! ```text
//!  0  magic "TNDC"             8  reserved      24  reserved
//!  4  kind (16 bits)          16  a             32  name[64], NUL padded
//!  6  version (16 bits)       20  b             96  text[160], NUL padded, UTF-8
//! ```
//!
//! The driver asks, the device answers; `b` of a question comes back in its answer (WELCOME apart).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tandem_linux::fdpass::{self, Received};

/// Bytes of every message.
const SIZE: usize = 256;
const MAGIC: &[u8; 4] = b"TNDC";
const VERSION: u16 = 1;
const NAME_AT: usize = 32;
const TEXT_AT: usize = 96;

/// Bytes of a name (of a driver, of a kept descriptor) at most.
pub const NAME_MAX: usize = 63;
/// Descriptors that a device keeps at most.
pub const KEPT_MAX: usize = 264;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Driver: wants the chip; `name` = its own, `a` = `abi_major`.
    Hello = 1,
    /// Device: with memfd, then `a` doorbells to the device, then `b` to the driver.
    Welcome = 2,
    /// Device: `text` says why; it closes.
    Refused = 3,
    /// Driver: keep this descriptor under `name`.
    Keep = 4,
    /// Driver: a duplicate of what is kept under `name`.
    Get = 5,
    /// Driver: forget `name`.
    Forget = 6,
    /// Driver: the `a`-th kept name, in order.
    List = 7,
    /// Device: done; to `Get` with the descriptor, to `List` with `name`.
    Ok = 8,
    /// Device: not done; `text` says why; `a` = 1: there is no such name.
    Error = 9,
}

impl Kind {
    fn from_raw(n: u16) -> Option<Self> {
        Some(match n {
            1 => Kind::Hello,
            2 => Kind::Welcome,
            3 => Kind::Refused,
            4 => Kind::Keep,
            5 => Kind::Get,
            6 => Kind::Forget,
            7 => Kind::List,
            8 => Kind::Ok,
            9 => Kind::Error,
            _ => return None,
        })
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub kind: Kind,
    pub a: u32,
    pub b: u32,
    pub name: String,
    pub text: String,
}

impl Message {
    pub(crate) fn new(kind: Kind) -> Self {
        Message {
            kind,
            a: 0,
            b: 0,
            name: String::new(),
            text: String::new(),
        }
    }

    pub(crate) fn named(kind: Kind, name: &str) -> Self {
        Message {
            name: name.into(),
            ..Message::new(kind)
        }
    }

    pub(crate) fn with_text(kind: Kind, text: impl Into<String>) -> Self {
        Message {
            text: text.into(),
            ..Message::new(kind)
        }
    }

    pub(crate) fn encode(&self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        let mut put = |at: usize, bytes: &[u8], room: usize| {
            for (to, from) in out.iter_mut().skip(at).zip(bytes.iter().take(room)) {
                *to = *from;
            }
        };
        put(0, MAGIC, 4);
        put(4, &(self.kind as u16).to_le_bytes(), 2);
        put(6, &VERSION.to_le_bytes(), 2);
        put(16, &self.a.to_le_bytes(), 4);
        put(20, &self.b.to_le_bytes(), 4);
        put(NAME_AT, self.name.as_bytes(), NAME_MAX);
        put(TEXT_AT, self.text.as_bytes(), SIZE - TEXT_AT - 1);
        out
    }

    pub(crate) fn decode(data: &[u8]) -> Result<Self, String> {
        let data: &[u8; SIZE] = data
            .try_into()
            .map_err(|_| format!("message of {} bytes, want {SIZE}", data.len()))?;
        let u16_at = |at: usize| {
            let mut b = [0; 2];
            b.copy_from_slice(data.get(at..at + 2).unwrap_or(&[0; 2]));
            u16::from_le_bytes(b)
        };
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let text = |at: usize, room: usize| -> String {
            let bytes: Vec<u8> = data
                .iter()
                .skip(at)
                .take(room)
                .copied()
                .take_while(|&b| b != 0)
                .collect();
            // what is not printable never reaches a log or a terminal
            String::from_utf8_lossy(&bytes)
                .chars()
                .map(|c| if c.is_control() { '?' } else { c })
                .collect()
        };
        if !data.starts_with(MAGIC) || u16_at(6) != VERSION {
            return Err(format!(
                "not a message of version {VERSION} (version {})",
                u16_at(6)
            ));
        }
        Ok(Message {
            kind: Kind::from_raw(u16_at(4)).ok_or_else(|| format!("unknown kind {}", u16_at(4)))?,
            a: u32_at(16),
            b: u32_at(20),
            name: text(NAME_AT, NAME_MAX),
            text: text(TEXT_AT, SIZE - TEXT_AT - 1),
        })
    }

    pub(crate) fn send(&self, fd: impl AsFd, fds: &[BorrowedFd<'_>]) -> std::io::Result<()> {
        fdpass::send(fd, &self.encode(), fds)
    }
}

/// What came in on a socket.
#[derive(Debug)]
pub(crate) enum Incoming {
    Nothing,
    Closed,
    Message(Message, Vec<OwnedFd>),
    /// Unreadable: the session is over.
    Bad(String),
}

pub(crate) fn receive(fd: impl AsFd) -> Incoming {
    // one byte more, so that a longer message is told from one that fits
    let mut buf = [0; SIZE + 1];
    match fdpass::recv(fd, &mut buf) {
        Ok(Received::Nothing) => Incoming::Nothing,
        Ok(Received::Closed) => Incoming::Closed,
        Ok(Received::Truncated) => Incoming::Bad("message or its descriptors cut off".into()),
        Ok(Received::Message(n, fds)) => match Message::decode(buf.get(..n).unwrap_or(&[])) {
            Ok(m) => Incoming::Message(m, fds),
            Err(e) => Incoming::Bad(e),
        },
        Err(e) => Incoming::Bad(format!("receive: {e}")),
    }
}

/// Fuzz entry: any bytes are decoded or refused; what is decoded survives a round trip.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz_message(data: &[u8]) {
    if let Ok(m) = Message::decode(data) {
        let again = Message::decode(&m.encode());
        // lossy text may grow when it is made printable, then it is cut; the rest is exact
        assert!(again.is_ok_and(|n| (n.kind, n.a, n.b) == (m.kind, m.a, m.b)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_decoded_or_refused(
            mut data in prop::collection::vec(any::<u8>(), SIZE), head in any::<bool>(), kind in 0u16..12,
        ) {
            if head {
                data[..4].copy_from_slice(MAGIC);
                data[4..6].copy_from_slice(&kind.to_le_bytes());
                data[6..8].copy_from_slice(&VERSION.to_le_bytes());
            }
            fuzz_message(&data);
            fuzz_message(&data[..kind as usize]);
        }

        #[test]
        fn what_is_sent_arrives(a: u32, b: u32, name in "[a-z0-9/.-]{0,63}", text in "[ -~]{0,159}") {
            let m = Message { kind: Kind::Refused, a, b, name, text };
            prop_assert_eq!(Message::decode(&m.encode()), Ok(m));
        }
    }
}

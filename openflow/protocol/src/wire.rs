// SPDX-License-Identifier: Apache-2.0
//! Bytes: a bounds-checked cursor for what comes, appending for what goes, and what is said of what is malformed.

use crate::Error;

/// A message that can't be taken: the standard's error for the peer, and words for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// For the peer.
    pub error: Error,
    /// Offset in the message.
    pub at: usize,
    /// Of what.
    pub what: &'static str,
    /// What would have been right, of a range its end; `None` where that can't be said in a number.
    pub wanted: Option<u64>,
    /// What stood there.
    pub got: u64,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: at byte {}, {}: ", self.error, self.at, self.what)?;
        if let Some(wanted) = self.wanted {
            write!(f, "wanted {wanted:#x}, ")?;
        }
        write!(f, "got {:#x}", self.got)
    }
}

impl std::error::Error for Malformed {}

/// What decoding answers.
pub type Result<T> = std::result::Result<T, Malformed>;

/// A cursor over some of a message's bytes. It never reads past them: `short` is the error if it would have to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    short: Error,
}

impl<'a> Reader<'a> {
    /// `bytes` begin at offset `at` of the message.
    pub(crate) fn new(bytes: &'a [u8], at: usize, short: Error) -> Self {
        Reader { bytes, at, short }
    }

    /// Offset in the message.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What is malformed here, at the cursor.
    pub(crate) fn bad(
        &self,
        error: Error,
        what: &'static str,
        wanted: impl Into<Option<u64>>,
        got: u64,
    ) -> Malformed {
        Malformed {
            error,
            at: self.at,
            what,
            wanted: wanted.into(),
            got,
        }
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let Some((head, tail)) = self.bytes.split_at_checked(n) else {
            let left = self.left();
            return Err(self.bad(self.short, "bytes that are left", n as u64, left as u64));
        };
        self.bytes = tail;
        self.at += n;
        Ok(head)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let all = self.bytes;
        self.at += all.len();
        self.bytes = &[];
        all
    }

    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(|_| ())
    }

    /// Padding up to the next multiple of 8 of what began at `start`; the last of a message may lack it.
    pub(crate) fn pad(&mut self, start: usize) {
        let n = (start.wrapping_sub(self.at) % 8).min(self.left());
        self.at += n;
        self.bytes = self.bytes.get(n..).unwrap_or_default();
    }

    /// The next `n` bytes by themselves.
    pub(crate) fn part(&mut self, n: usize, short: Error) -> Result<Reader<'a>> {
        let at = self.at;
        Ok(Reader::new(self.take(n)?, at, short))
    }

    /// All that is left, one after the other.
    pub(crate) fn all<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while !self.is_empty() {
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[b]| b)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn mac(&mut self) -> Result<[u8; 6]> {
        self.array()
    }

    /// A number of up to 16 bytes.
    pub(crate) fn number(&mut self, n: usize) -> Result<u128> {
        Ok(self
            .take(n)?
            .iter()
            .fold(0, |sum, &b| sum << 8 | u128::from(b)))
    }

    /// Nothing may follow.
    pub(crate) fn end(&self, what: &'static str) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.bad(self.short, what, 0, self.left() as u64))
    }
}

/// How an action or an instruction begins: with its type and its length, which is a multiple of 8.
pub(crate) struct Head<'a> {
    here: Reader<'a>,
    what: &'static str,
    length: usize,
    pub(crate) kind: u16,
    /// What follows; it ends with the error that a wrong length has.
    pub(crate) body: Reader<'a>,
}

impl<'a> Head<'a> {
    /// Takes the whole of it; `what` is its length in words.
    pub(crate) fn take(r: &mut Reader<'a>, wrong: Error, what: &'static str) -> Result<Self> {
        let here = *r;
        if r.left() < 8 {
            return Err(here.bad(wrong, what, 8, r.left() as u64));
        }
        let (kind, length) = (r.u16()?, usize::from(r.u16()?));
        let aligned = length.next_multiple_of(8).max(8);
        let wanted = if length == aligned {
            length.min(r.left() + 4)
        } else {
            aligned
        };
        if length != wanted {
            return Err(here.bad(wrong, what, wanted as u64, length as u64));
        }
        Ok(Head {
            here,
            what,
            length,
            kind,
            body: r.part(length - 4, wrong)?,
        })
    }

    /// Is it of this length in all?
    pub(crate) fn exactly(&self, wanted: usize) -> Result<()> {
        if self.length == wanted {
            return Ok(());
        }
        let error = self.body.short;
        Err(self
            .here
            .bad(error, self.what, wanted as u64, self.length as u64))
    }
}

/// Appending to a buffer, big endian.
pub(crate) trait Put {
    fn put8(&mut self, v: u8);
    fn put16(&mut self, v: u16);
    fn put32(&mut self, v: u32);
    fn put64(&mut self, v: u64);
    fn put(&mut self, v: &[u8]);
    /// The lowest `bytes` of a number.
    fn put_number(&mut self, v: u128, bytes: usize);
    fn zeros(&mut self, n: usize);
    /// Text in a field of `n` bytes, cut so that a zero ends it.
    fn text(&mut self, v: &str, n: usize);
    /// Zeros until what began at `start` is a multiple of 8 long.
    fn pad8(&mut self, start: usize);
    /// Writes at `at` how long it has become since `start`; longer than can be said is cut short by the caller.
    fn put_len(&mut self, at: usize, start: usize);
}

impl Put for Vec<u8> {
    fn put8(&mut self, v: u8) {
        self.push(v);
    }

    fn put16(&mut self, v: u16) {
        self.extend_from_slice(&v.to_be_bytes());
    }

    fn put32(&mut self, v: u32) {
        self.extend_from_slice(&v.to_be_bytes());
    }

    fn put64(&mut self, v: u64) {
        self.extend_from_slice(&v.to_be_bytes());
    }

    fn put(&mut self, v: &[u8]) {
        self.extend_from_slice(v);
    }

    fn put_number(&mut self, v: u128, bytes: usize) {
        let all = v.to_be_bytes();
        self.extend_from_slice(all.get(16 - bytes.min(16)..).unwrap_or_default());
    }

    fn zeros(&mut self, n: usize) {
        self.resize(self.len() + n, 0);
    }

    fn text(&mut self, v: &str, n: usize) {
        let mut cut = v.len().min(n.saturating_sub(1));
        while !v.is_char_boundary(cut) {
            cut -= 1;
        }
        self.extend_from_slice(v.get(..cut).unwrap_or_default().as_bytes());
        self.zeros(n - cut);
    }

    fn pad8(&mut self, start: usize) {
        self.zeros(start.wrapping_sub(self.len()) % 8);
    }

    fn put_len(&mut self, at: usize, start: usize) {
        let len = u16::try_from(self.len() - start).unwrap_or(u16::MAX);
        if let Some(field) = self.get_mut(at..at + 2) {
            field.copy_from_slice(&len.to_be_bytes());
        }
    }
}

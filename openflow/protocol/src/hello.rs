// SPDX-License-Identifier: Apache-2.0
//! `OFPT_HELLO` (§7.5.1) and which version comes of it (§6.3.1).

use crate::Error;
use crate::frame::{Version, begin, finish};
use crate::wire::{Put, Reader, Result};

/// `OFPHET_VERSIONBITMAP`.
const VERSION_BITMAP: u16 = 1;

/// A peer's hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Of its header: the highest it speaks.
    pub version: u8,
    /// Bit n: it speaks the version of number n; of the bitmap's first word, further ones would be versions above 31.
    pub bitmap: Option<u32>,
}

impl Hello {
    /// Elements that are unknown are skipped, and what is no element ends the list: a hello's body is never an error
    /// (§7.5.1; 1.0 §5.5.1: "prepared to receive a hello message that includes a body, ignoring its contents").
    pub(crate) fn decode(version: u8, mut body: Reader<'_>) -> Hello {
        let mut bitmap = None;
        while let Ok(Some((kind, mut element))) = next_element(&mut body) {
            if kind == VERSION_BITMAP && bitmap.is_none() {
                bitmap = element.u32().ok();
            }
        }
        Hello { version, bitmap }
    }

    /// That we speak `versions`.
    pub fn of(versions: &[Version]) -> Hello {
        Hello {
            version: versions.iter().max().map_or(0, |&v| v as u8),
            bitmap: Some(bits(versions)),
        }
    }

    pub(crate) fn encode(self, xid: u32, out: &mut Vec<u8>) {
        let start = begin(Version::V13, 0, xid, out);
        if let Some(first) = out.get_mut(start) {
            *first = self.version;
        }
        if let Some(bitmap) = self.bitmap {
            out.put16(VERSION_BITMAP);
            out.put16(8);
            out.put32(bitmap);
        }
        // 16 bytes at most
        let _ = finish(start, out);
    }
}

fn next_element<'a>(body: &mut Reader<'a>) -> Result<Option<(u16, Reader<'a>)>> {
    if body.is_empty() {
        return Ok(None);
    }
    let start = body.at();
    let (kind, length) = (body.u16()?, body.u16()?);
    let short = Error::BAD_REQUEST_BAD_LEN;
    let wrong = body.bad(short, "length of a hello element", 4, u64::from(length));
    let inner = usize::from(length).checked_sub(4).ok_or(wrong)?;
    let element = body.part(inner, short)?;
    body.pad(start);
    Ok(Some((kind, element)))
}

const fn bit(version: Version) -> u32 {
    1 << version as u8
}

fn bits(versions: &[Version]) -> u32 {
    versions.iter().fold(0, |all, &v| all | bit(v))
}

/// Which version is spoken when we said `Hello::of(ours)` and the peer `theirs` (§6.3.1): the highest of both bitmaps;
/// without the peer's, the lower of the two headers' versions.
///
/// # Errors
/// The text for `HELLO_FAILED INCOMPATIBLE`, if that is none that we speak.
pub fn negotiate(ours: &[Version], theirs: Hello) -> std::result::Result<Version, String> {
    let chosen = match theirs.bitmap {
        Some(bitmap) => ours.iter().copied().filter(|&v| bit(v) & bitmap != 0).max(),
        None => ours
            .iter()
            .max()
            .and_then(|&highest| Version::of(theirs.version.min(highest as u8)))
            .filter(|v| ours.contains(v)),
    };
    chosen.ok_or_else(|| {
        let names: Vec<String> = ours
            .iter()
            .map(|&v| format!("{} (0x{:02x})", v.name(), v as u8))
            .collect();
        let offer = match theirs.bitmap {
            Some(bitmap) => format!("the bitmap 0x{bitmap:x}"),
            None => format!("0x{:02x}", theirs.version),
        };
        format!(
            "this switch speaks OpenFlow {}, not {offer}",
            names.join(" and ")
        )
    })
}

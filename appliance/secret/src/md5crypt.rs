// SPDX-License-Identifier: Apache-2.0
//! md5-crypt, IOS's type 5: to verify what other switches have kept. None is made here.

use md5::{Digest as _, Md5};
use subtle::ConstantTimeEq as _;

use super::ALPHABET;

/// Salt and hash of `$1$SALT$HASH`.
pub fn parts(text: &str) -> Option<(&str, &str)> {
    let (salt, hash) = text.strip_prefix("$1$")?.split_once('$')?;
    let right = (1..=8).contains(&salt.len())
        && salt.bytes().all(|b| b.is_ascii_graphic())
        && hash.len() == 22
        && hash.bytes().all(|b| ALPHABET.contains(&b));
    right.then_some((salt, hash))
}

/// Is it this one's?
pub fn is(text: &str, typed: &[u8]) -> bool {
    parts(text).is_some_and(|(salt, hash)| {
        bool::from(
            made(typed, salt.as_bytes())
                .as_bytes()
                .ct_eq(hash.as_bytes()),
        )
    })
}

/// MD5 of these one after the other.
pub fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut md5 = Md5::new();
    parts.iter().for_each(|p| md5.update(p));
    md5.finalize().into()
}

fn made(word: &[u8], salt: &[u8]) -> String {
    let inner = digest(&[word, salt, word]);
    let mut first = Md5::new();
    for part in [word, b"$1$", salt] {
        first.update(part);
    }
    // as many octets of the inner digest as the word has
    inner
        .iter()
        .cycle()
        .take(word.len())
        .for_each(|b| first.update([*b]));
    // for each bit of the word's length, from the lowest up to the highest one that is set
    let mut bits = word.len();
    while bits > 0 {
        match bits & 1 {
            1 => first.update([0]),
            _ => first.update(word.get(..1).unwrap_or_default()),
        }
        bits >>= 1;
    }
    let mut sum: [u8; 16] = first.finalize().into();
    for round in 0..1000 {
        let (odd, old) = (round % 2 == 1, sum);
        let or_not = |is: bool, part| if is { part } else { &[] as &[u8] };
        let last: &[u8] = if odd { &old } else { word };
        sum = digest(&[
            if odd { word } else { &old },
            or_not(round % 3 != 0, salt),
            or_not(round % 7 != 0, word),
            last,
        ]);
    }
    shown(&sum)
}

/// Its own order of octets, and the lowest six bits first.
fn shown(sum: &[u8; 16]) -> String {
    let at = |i: usize| sum.get(i).copied().map_or(0, u32::from);
    let mut groups: Vec<(u32, usize)> =
        [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)]
            .into_iter()
            .map(|(a, b, c)| (at(a) << 16 | at(b) << 8 | at(c), 4))
            .collect();
    groups.push((at(11), 2));
    let mut out = String::new();
    for (mut bits, digits) in groups {
        for _ in 0..digits {
            out.extend(ALPHABET.get((bits & 63) as usize).map(|b| char::from(*b)));
            bits >>= 6;
        }
    }
    out
}

// SPDX-License-Identifier: Apache-2.0
//! The file: a head, then batches, each with its length and a sum of its bytes.

use crate::Unfit;

/// `/proc/sys/kernel/random/boot_id`: times are of a clock that begins with the machine.
pub type Boot = [u8; 36];

/// Another number with each change of what records are.
const MAGIC: [u8; 8] = *b"TNDMOFT3";
const HEAD: usize = MAGIC.len() + size_of::<Boot>();
/// Length and sum.
const FRAME: usize = 4 + 8;

/// What a file begins with.
pub(crate) fn head(boot: &Boot) -> Vec<u8> {
    [&MAGIC[..], &boot[..]].concat()
}

/// Each step is one to one: two batches of one length that differ in one word have different sums.
fn sum(bytes: &[u8]) -> u64 {
    let mut sum = 0x9e37_79b9_7f4a_7c15 ^ bytes.len() as u64;
    let mut add = |word: u64| {
        sum = (sum ^ word)
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
            .rotate_left(29);
    };
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|w| add(u64::from_le_bytes(*w)));
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    add(u64::from_le_bytes(last));
    sum
}

/// Puts the length and sum of records in front of them. Nothing is no batch. `None`: more than a batch can have.
pub(crate) fn seal(records: &[u8]) -> Option<[u8; FRAME]> {
    let len = u32::try_from(records.len()).ok()?;
    let mut frame = [0; FRAME];
    let (a, b) = frame.split_at_mut(4);
    a.copy_from_slice(&len.to_le_bytes());
    b.copy_from_slice(&sum(records).to_le_bytes());
    Some(frame)
}

/// Batches, with where each begins; and how many bytes are behind them.
pub(crate) type Batches<'a> = (Vec<(usize, &'a [u8])>, usize);

/// The batches of a file, up to the first that is not whole.
///
/// # Errors
/// It is not one of this machine's since its start.
pub(crate) fn open<'a>(file: &'a [u8], boot: &Boot) -> Result<Batches<'a>, Unfit> {
    let (head, mut rest) = file.split_at_checked(HEAD).ok_or(Unfit::Foreign)?;
    match head.split_at_checked(MAGIC.len()) {
        Some((magic, _)) if *magic != MAGIC => return Err(Unfit::Foreign),
        Some((_, of)) if of != boot => return Err(Unfit::OtherBoot),
        _ => {}
    }
    let mut batches = Vec::new();
    while let Some((frame, behind)) = rest.split_first_chunk::<FRAME>() {
        let [a, b, c, d, wanted @ ..] = *frame;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        let Some((records, behind)) = behind.split_at_checked(len) else {
            break;
        };
        if sum(records) != u64::from_le_bytes(wanted) {
            break;
        }
        batches.push((file.len() - rest.len(), records));
        rest = behind;
    }
    Ok((batches, rest.len()))
}

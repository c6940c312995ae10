// SPDX-License-Identifier: Apache-2.0
//! What is encoded is decoded as it was, and no bytes are too much for a decoder.

use crate::model::{Asks, Part, QueueStats};
use crate::random::{Source, stretch};
use crate::{Framer, Header, LONGEST, Multiparts, Version, decode, encode, encode_request};
use proptest::prelude::*;

const VERSIONS: [Version; 2] = [Version::V10, Version::V13];

/// Messages one after the other, cut by a framer.
fn cut(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut framer = Framer::default();
    let mut messages = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let n = framer.feed(rest);
        rest = &rest[n..];
        while let Some(message) = framer.next().unwrap() {
            messages.push(message.to_vec());
        }
    }
    assert_eq!(framer.waiting(), 0);
    messages
}

proptest! {
    #[test]
    fn requests_come_back(seed in any::<u64>(), xid in any::<u32>()) {
        let bytes = stretch(seed, 4000);
        for version in VERSIONS {
            let mut source = Source::new(&bytes);
            for _ in 0..8 {
                let request = source.request(version);
                let mut out = Vec::new();
                encode_request(version, xid, &request, &mut out).unwrap();
                let got = decode(version, &out);
                prop_assert_eq!(got.as_ref().map(|(x, r)| (*x, r)), Ok((xid, &request)));
            }
        }
    }

    #[test]
    fn a_framer_finds_every_message(seed in any::<u64>(), step in 1usize..3000) {
        let bytes = stretch(seed, 4000);
        let mut source = Source::new(&bytes);
        let (mut stream, mut wanted) = (Vec::new(), Vec::new());
        for _ in 0..12 {
            let at = stream.len();
            encode_request(Version::V13, 1, &source.request(Version::V13), &mut stream).unwrap();
            wanted.push(stream[at..].to_vec());
        }
        let mut framer = Framer::default();
        let mut got = Vec::new();
        for chunk in stream.chunks(step) {
            prop_assert_eq!(framer.feed(chunk), chunk.len());
            while let Some(message) = framer.next().unwrap() {
                got.push(message.to_vec());
            }
        }
        prop_assert_eq!(got, wanted);
    }

    #[test]
    fn changed_requests_are_taken_or_refused(
        seed in any::<u64>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = stretch(seed, 1500);
        for version in VERSIONS {
            let request = Source::new(&bytes).request(version);
            let mut out = Vec::new();
            encode_request(version, 7, &request, &mut out).unwrap();
            for (at, value) in &changes {
                let at = at.index(out.len());
                out[at] = *value;
            }
            let _ = taken(version, &out);
            let length = 8 + cut.index(out.len() - 7).min(out.len() - 8);
            out.truncate(length);
            out[0] = version as u8;
            out[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            let _ = taken(version, &out);
        }
    }

    #[test]
    fn any_bytes_are_taken_or_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        kind in 0u8..32,
    ) {
        for version in VERSIONS {
            let _ = taken(version, &bytes);
            if bytes.len() >= 8 {
                let length = bytes.len() as u16;
                bytes[0] = version as u8;
                bytes[1] = kind;
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
                let _ = taken(version, &bytes);
            }
        }
    }

    #[test]
    fn replies_are_whole_messages(seed in any::<u64>(), xid in any::<u32>()) {
        let bytes = stretch(seed, 6000);
        for version in VERSIONS {
            let mut source = Source::new(&bytes);
            let (mut out, mut kinds) = (Vec::new(), 0);
            for _ in 0..8 {
                let reply = source.reply(version);
                encode(version, xid, &reply.borrow(), &mut out).unwrap();
                kinds += 1;
            }
            let messages = cut(&out);
            prop_assert_eq!(messages.len(), kinds);
            for message in messages {
                prop_assert_eq!(Header::of(&message).map(|h| h.xid), Some(xid));
            }
        }
    }

    #[test]
    fn parts_fill_messages_and_are_in_one_each(seed in any::<u64>(), many in 0usize..400) {
        let bytes = stretch(seed, 60_000);
        for version in VERSIONS {
            let mut source = Source::new(&bytes);
            let asks = source.asks(version);
            let (mut out, mut alone) = (vec![1, 2, 3], 0);
            let mut all = Multiparts::new(version, 5, &asks, &mut out);
            for _ in 0..many {
                let Some(part) = source.part(version, &asks) else { break };
                let mut one = Vec::new();
                Multiparts::new(version, 5, &asks, &mut one).add(&part.borrow()).unwrap();
                alone += one.len() - head(version);
                all.add(&part.borrow()).unwrap();
            }
            let messages = cut(&out[3..]);
            let sum: usize = messages.iter().map(|m| m.len() - head(version)).sum();
            prop_assert_eq!(sum, alone);
            for (i, message) in messages.iter().enumerate() {
                let more = message[11] & 1 != 0;
                prop_assert_eq!(more, i + 1 < messages.len());
                prop_assert!(!more || message.len() > LONGEST / 2);
            }
        }
    }
}

/// Parts of 40 bytes, so that one more than fits makes a byte too many.
#[test]
fn a_reply_is_not_a_byte_longer_than_its_length_can_say() {
    let asks = Asks::Queue {
        port: crate::port::ANY,
        queue: crate::model::QUEUE_ALL,
    };
    let part = QueueStats::default();
    let mut out = Vec::new();
    let mut all = Multiparts::new(Version::V13, 5, &asks, &mut out);
    for _ in 0..(LONGEST + 1 - 16) / 40 {
        all.add(&Part::Queue(&part)).unwrap();
    }
    let lengths: Vec<usize> = cut(&out).iter().map(Vec::len).collect();
    assert_eq!(lengths, [LONGEST + 1 - 40, 16 + 40]);
}

fn head(version: Version) -> usize {
    match version {
        Version::V10 => 12,
        Version::V13 => 16,
    }
}

/// What was taken is encoded again, and then it comes back; an error is about a byte of the message.
pub(super) fn taken(version: Version, bytes: &[u8]) -> bool {
    match decode(version, bytes) {
        Ok((xid, request)) => {
            let mut out = Vec::new();
            encode_request(version, xid, &request, &mut out).unwrap();
            let again = decode(version, &out).map(|(_, r)| r);
            assert_eq!(again.as_ref(), Ok(&request), "{bytes:02x?}");
            true
        }
        Err(e) => {
            assert!(e.at <= bytes.len().max(2), "{e}");
            assert!(
                !e.error.to_string().contains("UNKNOWN") || e.error.code == 0,
                "{e}"
            );
            false
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The framer, hellos, and the version that comes of them.

use crate::model::{Reply, Request};
use crate::{Error, Framer, Hello, LONGEST, Version, decode, encode, negotiate};

const BOTH: [Version; 2] = [Version::V10, Version::V13];

#[test]
fn a_length_below_the_headers_is_an_error_each_time() {
    for length in 0..8u8 {
        let mut framer = Framer::default();
        framer.feed(&[4, 2, 0, length, 0, 0, 0, 0, 4, 2, 0, 8, 0, 0, 0, 0]);
        for _ in 0..2 {
            let e = framer.next().unwrap_err();
            assert_eq!(
                (e.error, e.got),
                (Error::BAD_REQUEST_BAD_LEN, u64::from(length))
            );
        }
    }
}

#[test]
fn the_longest_messages_pass_however_they_lie() {
    let mut framer = Framer::default();
    let mut message = vec![0x55; LONGEST];
    message[..8].copy_from_slice(&[4, 2, 0xff, 0xff, 0, 0, 0, 9]);
    let stream: Vec<u8> = message.iter().copied().cycle().take(5 * LONGEST).collect();
    let (mut rest, mut seen) = (&stream[..], 0);
    while !rest.is_empty() {
        let n = framer.feed(&rest[..rest.len().min(40_000)]);
        rest = &rest[n..];
        while let Some(got) = framer.next().unwrap() {
            assert_eq!(got, &message[..]);
            seen += 1;
        }
    }
    assert_eq!(seen, 5);
}

/// The room behind is enough for a whole message, or what waits goes to the front.
#[test]
fn a_longest_message_fits_wherever_it_begins() {
    let message = |length: usize| {
        let mut out = vec![0x55; length];
        let [a, b] = (length as u16).to_be_bytes();
        out[..8].copy_from_slice(&[4, 2, a, b, 0, 0, 0, 9]);
        out
    };
    let longest = message(LONGEST);
    let (first, rest) = longest.split_at(100);
    for before in LONGEST - 9..LONGEST + 20 {
        let mut framer = Framer::default();
        let lengths = [40_000, before - 40_000];
        framer.feed(&[&message(lengths[0]), &message(lengths[1]), first].concat());
        for length in lengths {
            assert_eq!(framer.next().unwrap().map(<[u8]>::len), Some(length));
        }
        assert_eq!(framer.feed(rest), rest.len(), "after {before} bytes");
        assert_eq!(framer.next().unwrap(), Some(&longest[..]));
    }
}

#[test]
fn messages_that_nobody_takes_leave_no_room() {
    let mut framer = Framer::default();
    let mut fed = 0;
    loop {
        let n = framer.feed(&[4, 2, 0, 8, 0, 0, 0, 1]);
        if n == 0 {
            break;
        }
        fed += n;
    }
    assert_eq!(fed, 2 * (LONGEST + 1));
    assert!(framer.next().unwrap().is_some());
    while framer.next().unwrap().is_some() {}
    assert_eq!(framer.room().len(), 2 * (LONGEST + 1));
}

#[test]
fn versions_are_agreed_on_by_the_book() {
    let hello = |version, bitmap| Hello { version, bitmap };
    let cases = [
        // §6.3.1: with two bitmaps the highest of both, whatever the header says
        (hello(4, Some(0x12)), Ok(Version::V13)),
        (hello(6, Some(0x72)), Ok(Version::V13)),
        (hello(6, Some(0x62)), Ok(Version::V10)),
        (hello(5, Some(0x02)), Ok(Version::V10)),
        (hello(4, Some(0)), Err(())),
        (hello(3, Some(0x0c)), Err(())),
        // without: the lower of the two headers'
        (hello(1, None), Ok(Version::V10)),
        (hello(4, None), Ok(Version::V13)),
        (hello(6, None), Ok(Version::V13)),
        (hello(2, None), Err(())),
        (hello(3, None), Err(())),
        (hello(0, None), Err(())),
    ];
    for (theirs, wanted) in cases {
        let got = negotiate(&BOTH, theirs);
        assert_eq!(
            got.map_err(|text| assert!(text.contains("1.3"))),
            wanted,
            "{theirs:?}"
        );
    }
    assert_eq!(negotiate(&[Version::V10], hello(4, None)), Ok(Version::V10));
    assert!(negotiate(&[Version::V13], hello(1, None)).is_err());
    let text = negotiate(&BOTH, hello(3, Some(0x0c))).unwrap_err();
    assert_eq!(
        text,
        "this switch speaks OpenFlow 1.0 (0x01) and 1.3 (0x04), not the bitmap 0xc"
    );
}

#[test]
fn our_hello_has_the_bitmap() {
    let mut out = Vec::new();
    encode(Version::V13, 3, &Reply::Hello(Hello::of(&BOTH)), &mut out).unwrap();
    assert_eq!(out, [4, 0, 0, 16, 0, 0, 0, 3, 0, 1, 0, 8, 0, 0, 0, 0x12]);
}

#[test]
fn a_hellos_body_is_never_an_error() {
    let cases: [(&[u8], Option<u32>); 7] = [
        (&[], None),
        (&[1], None),
        (&[0, 1, 0, 8, 0, 0, 0, 0x10], Some(0x10)),
        // an element that is unknown, of 5 bytes and 3 of padding, before it
        (
            &[0, 9, 0, 5, 7, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0x02],
            Some(2),
        ),
        // one whose length is below its header's
        (&[0, 9, 0, 3, 0, 1, 0, 8, 0, 0, 0, 2], None),
        // a bitmap without words, and one with two
        (&[0, 1, 0, 4], None),
        (&[0, 1, 0, 12, 0, 0, 0, 0x10, 0, 0, 0, 1], Some(0x10)),
    ];
    for (body, bitmap) in cases {
        for version in [1, 4, 5, 0x99] {
            let mut message = vec![version, 0, 0, 8 + body.len() as u8, 0, 0, 0, 0];
            message.extend_from_slice(body);
            let wanted = Request::Hello(Hello { version, bitmap });
            assert_eq!(decode(Version::V13, &message).unwrap().1, wanted);
        }
    }
}

#[test]
fn other_versions_than_the_agreed_one_are_refused() {
    for (ours, theirs) in [(Version::V13, 1), (Version::V10, 4), (Version::V13, 5)] {
        let e = decode(ours, &[theirs, 2, 0, 8, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(e.error, Error::BAD_REQUEST_BAD_VERSION);
    }
    assert_eq!(
        decode(Version::V13, &[5, 2, 0, 8, 0, 0, 0, 0])
            .unwrap_err()
            .to_string(),
        "BAD_REQUEST BAD_VERSION: at byte 0, version of a message: wanted 0x4, got 0x5"
    );
}

#[test]
fn errors_carry_64_bytes_and_a_failed_hello_all_of_its_text() {
    let request = [7; 200];
    for (error, length) in [
        (Error::BAD_REQUEST_BAD_TYPE, 64),
        (Error::HELLO_FAILED_INCOMPATIBLE, 200),
    ] {
        for version in BOTH {
            let mut out = Vec::new();
            let data = &request[..];
            encode(version, 1, &Reply::Error { error, data }, &mut out).unwrap();
            assert_eq!(out.len(), 12 + length);
        }
    }
}

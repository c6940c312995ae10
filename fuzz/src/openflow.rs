//! OpenFlow: what a controller sends is taken or refused, what the switch sends are whole messages.

use tandem_openflow::model::Reply;
use tandem_openflow::random::Source;
use tandem_openflow::{Framer, Header, Multiparts, Version, decode, encode, encode_request};

/// The first byte says the version and how much comes at a time, the rest is the stream.
pub(crate) fn controller(data: &[u8]) {
    let Some((&how, stream)) = data.split_first() else {
        return;
    };
    let version = version(how);
    let mut framer = Framer::default();
    for chunk in stream.chunks(1 + usize::from(how >> 1)) {
        assert_eq!(framer.feed(chunk), chunk.len(), "no room");
        loop {
            match framer.next() {
                Ok(Some(message)) => one(version, message),
                Ok(None) => break,
                Err(e) => {
                    assert!(e.got < 8, "{e}");
                    return;
                }
            }
        }
    }
}

fn version(byte: u8) -> Version {
    if byte & 1 == 0 {
        Version::V13
    } else {
        Version::V10
    }
}

/// What is understood says the same once it was encoded again; what is not has an error that can be sent, and a line.
fn one(version: Version, message: &[u8]) {
    let mut out = Vec::new();
    match decode(version, message) {
        Ok((xid, request)) => {
            encode_request(version, xid, &request, &mut out).expect("as long as it was");
            let again = decode(version, &out).map(|(_, request)| request);
            assert_eq!(again, Ok(request));
        }
        Err(e) => {
            assert!(e.at <= message.len(), "{e}");
            assert!(!e.to_string().contains('\n'));
            let data = message;
            let reply = Reply::Error {
                error: e.error,
                data,
            };
            encode(version, 1, &reply, &mut out).expect("64 bytes at most");
        }
    }
}

/// Messages that the bytes choose: each is whole, of its version, and the parts of a reply come in as many as it takes.
pub(crate) fn switch(data: &[u8]) {
    let Some((&how, choices)) = data.split_first() else {
        return;
    };
    let version = version(how);
    let mut source = Source::new(choices);
    while !source.is_empty() {
        let mut out = Vec::new();
        let reply = source.reply(version);
        encode(version, 1, &reply.borrow(), &mut out).expect("short enough");
        assert_eq!(messages(version, &out), [false]);

        out.clear();
        let asks = source.asks(version);
        let mut all = Multiparts::new(version, 1, &asks, &mut out);
        // one part as often as it fills more than one message, then others
        let mut part = source.part(version, &asks);
        for n in 0..how {
            let Some(p) = &part else { break };
            all.add(&p.borrow()).expect("short enough");
            if n > 200 {
                part = source.part(version, &asks);
            }
        }
        let more = messages(version, &out);
        let (last, others) = more.split_last().expect("one at least");
        assert!(!last && others.iter().all(|&m| m), "{more:?}");
    }
}

/// Cuts `bytes` into messages; of each the lowest bit of its twelfth byte, where multipart replies say that more follow.
fn messages(version: Version, bytes: &[u8]) -> Vec<bool> {
    let (mut rest, mut more) = (bytes, Vec::new());
    while let Some(header) = Header::of(rest) {
        let (message, tail) = rest.split_at(usize::from(header.length));
        assert!(header.kind == 0 || header.version == version as u8);
        let multipart = matches!(
            (version, header.kind),
            (Version::V10, 17) | (Version::V13, 19)
        );
        more.push(multipart && message[11] & 1 != 0);
        rest = tail;
    }
    assert!(
        rest.is_empty(),
        "{} bytes after the last message",
        rest.len()
    );
    more
}

//! OpenFlow: what a controller sends is taken or refused, what the switch sends are whole messages.

use tandem_ofpipeline::flows::all_flows;
use tandem_ofpipeline::{Config, PacketIn, Port, Sink, Switch};
use tandem_openflow::model::{Reply, Request};
use tandem_openflow::random::Source;
use tandem_openflow::{Framer, Header, Multiparts, Version, decode, encode, encode_request};
use tandem_packet::{Buffer, Frame, Offload};

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

/// What leaves a switch: whole frames, by ports that are there and up, and not by the one that came in, unless it was meant.
struct Out;

impl Sink for Out {
    fn output(&mut self, port: u32, _: Option<u32>, frame: &Frame<'_>) {
        assert!((1..=3).contains(&port), "port {port}");
        assert!(frame.len() >= 14);
    }

    fn packet_in(&mut self, about: &PacketIn<'_>, frame: &Frame<'_>) {
        assert!(about.table < 8);
        assert!(frame.len() >= 14);
    }

    fn normal(&mut self, _: u32, frame: &Frame<'_>) {
        assert!(frame.len() >= 14);
    }
}

/// Steps of a kind and a length: frames, and messages that the bytes choose, on a switch of three ports and one that is down.
/// With a cache and without one the same packets leave.
pub(crate) fn pipeline(data: &[u8]) {
    let Some((&how, mut rest)) = data.split_first() else {
        return;
    };
    let version = version(how);
    let mut switches = [0, 8].map(|cache| {
        let mut s = Switch::new(Config {
            version,
            tables: 8,
            cache,
            ..Config::default()
        });
        for number in 1..=4 {
            let live = number < 4;
            let port = Port {
                number,
                live,
                queues: vec![1],
                ..Port::default()
            };
            s.set_port(port, 0);
        }
        s
    });
    let mut now = 0;
    while let Some((&[kind, len], tail)) = rest.split_first_chunk() {
        let (step, tail) = tail.split_at(usize::from(len).min(tail.len()));
        rest = tail;
        now += u64::from(kind >> 4) << 26;
        let sent = switches.each_mut().map(|s| {
            one_step(s, version, kind, step, now);
            s.ports().map(|p| p.count.tx).collect::<Vec<_>>()
        });
        assert_eq!(sent[0], sent[1]);
    }
    let flows = switches.each_ref().map(|s| s.aggregate(&all_flows()));
    assert_eq!(flows[0], flows[1]);
}

fn one_step(s: &mut Switch, version: Version, kind: u8, step: &[u8], now: u64) {
    let mut gone = Vec::new();
    let mut buffer = Buffer::with_capacity(1024);
    if kind & 1 == 0 {
        if buffer.set(step) {
            let port = 1 + u32::from(kind >> 1 & 3);
            s.process(&mut buffer.frame(Offload::NONE), port, now, &mut Out);
        }
        s.expire(now, 4, |_| false, &mut gone);
        return;
    }
    match Source::new(step).request(version) {
        Request::FlowMod(m) => {
            let _ = s.flow_mod(&m, now, &mut gone);
        }
        Request::GroupMod(m) => {
            let _ = s.group_mod(&m, now, &mut gone);
        }
        Request::MeterMod(m) => {
            let _ = s.meter_mod(&m, now, &mut gone);
        }
        Request::PacketOut(m) if buffer.set(m.data) => {
            let mut frame = buffer.frame(Offload::NONE);
            let _ = s.packet_out(&mut frame, m.in_port, &m.actions, now, &mut Out);
        }
        _ => {}
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

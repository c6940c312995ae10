// SPDX-License-Identifier: Apache-2.0
//! The codec, for a comparison with another one: `tests/test_openflow_codec.py`.
//!
//! `openflow-echo requests`: messages of a controller on standard input, and for each a line of JSON with what was understood,
//! by the names of os-ken's parser, and the same message encoded again; or the error.
//! `openflow-echo replies SEED COUNT`: COUNT random messages of a switch of each version, each a line with its bytes and with
//! what is in it.
#![allow(missing_docs)]

mod json;
mod names;

use serde_json::{Value, json};
use std::io::{BufWriter, Read, Write};
use tandem_openflow::random::{Source, stretch};
use tandem_openflow::{Framer, Header, Multiparts, Version, decode, encode, encode_request};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A line for a message of a controller.
fn understood(message: &[u8]) -> Value {
    let version = Header::of(message).and_then(|h| Version::of(h.version));
    let version = version.unwrap_or(Version::V13);
    match decode(version, message) {
        Ok((xid, request)) => {
            let mut again = Vec::new();
            if let Err(e) = encode_request(version, xid, &request, &mut again) {
                return json!({"error": e.to_string()});
            }
            json!({"xid": xid, "again": hex(&again), "message": json::request(version, &request)})
        }
        Err(e) => json!({"error": [e.error.kind, e.error.code], "words": e.to_string()}),
    }
}

fn requests(out: &mut impl Write) -> std::io::Result<()> {
    let mut framer = Framer::default();
    loop {
        let n = std::io::stdin().read(framer.room())?;
        framer.filled(n);
        while let Some(message) = framer.next().map_err(std::io::Error::other)? {
            writeln!(out, "{}", understood(message))?;
        }
        if n == 0 {
            return Ok(());
        }
    }
}

fn replies(seed: u64, count: u64, out: &mut impl Write) -> std::io::Result<()> {
    for n in 0..count {
        for version in [Version::V10, Version::V13] {
            let bytes = stretch(seed.wrapping_mul(0x1_0000_0001).wrapping_add(n), 8000);
            let mut source = Source::new(&bytes);
            let reply = source.reply(version);
            let mut message = Vec::new();
            let wrote = encode(version, n as u32, &reply.borrow(), &mut message);
            wrote.map_err(std::io::Error::other)?;
            line(version, &message, json::reply(version, &reply), out)?;
            let asks = source.asks(version);
            let (mut message, mut parts) = (Vec::new(), Vec::new());
            let mut all = Multiparts::new(version, n as u32, &asks, &mut message);
            for _ in 0..n % 4 {
                let Some(part) = source.part(version, &asks) else {
                    break;
                };
                parts.push(json::part(version, &part));
                all.add(&part.borrow()).map_err(std::io::Error::other)?;
                if json::alone(&part) {
                    break;
                }
            }
            if !parts.is_empty() {
                line(version, &message, json!({"body": parts}), out)?;
            }
        }
    }
    Ok(())
}

fn line(version: Version, bytes: &[u8], what: Value, out: &mut impl Write) -> std::io::Result<()> {
    let text = json!({"version": version as u8, "bytes": hex(bytes), "message": what});
    writeln!(out, "{text}")
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let number = |text: &str| text.parse().map_err(std::io::Error::other);
    match words[..] {
        ["requests"] => requests(&mut out)?,
        ["replies", seed, count] => replies(number(seed)?, number(count)?, &mut out)?,
        _ => {
            return Err(std::io::Error::other(
                "echo requests | echo replies SEED COUNT",
            ));
        }
    }
    out.flush()
}

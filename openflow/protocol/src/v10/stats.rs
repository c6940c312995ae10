// SPDX-License-Identifier: Apache-2.0
//! `ofp_stats_request` and one part of a reply (1.0 §5.3.5).

use super::{flow, matching, port};
use crate::model::{Asks, Experimenter, Multipart, Part, TableStats};
use crate::v13::encode_desc;
use crate::wire::{Put, Reader, Result};
use crate::{Error, port as ports};

const DESC: u16 = 0;
const FLOW: u16 = 1;
const AGGREGATE: u16 = 2;
const TABLE: u16 = 3;
const PORT: u16 = 4;
const QUEUE: u16 = 5;
const VENDOR: u16 = 0xffff;

pub(super) fn decode<'a>(mut r: Reader<'a>) -> Result<Multipart<'a>> {
    let here = r;
    let kind = r.u16()?;
    r.skip(2)?;
    let asks = match kind {
        DESC => Asks::Desc,
        FLOW => Asks::Flow(flow::decode_filter(&mut r)?),
        AGGREGATE => Asks::Aggregate(flow::decode_filter(&mut r)?),
        TABLE => Asks::Table,
        PORT => {
            let port = ports::from10(r.u16()?);
            r.skip(6)?;
            Asks::Port { port }
        }
        QUEUE => {
            let port = r.u16()?;
            r.skip(2)?;
            // of all ports: OFPP_ALL (1.0 §5.3.5)
            let port = match ports::from10(port) {
                ports::ALL => ports::ANY,
                port => port,
            };
            let queue = r.u32()?;
            Asks::Queue { port, queue }
        }
        VENDOR => Asks::Experimenter(Experimenter {
            experimenter: r.u32()?,
            kind: 0,
            data: r.rest(),
        }),
        _ => {
            // OFPBRC_BAD_STAT
            let error = Error::BAD_REQUEST_BAD_MULTIPART;
            return Err(here.bad(error, "type of a statistics request", None, u64::from(kind)));
        }
    };
    r.end("bytes after a statistics request")?;
    Ok(Multipart { more: false, asks })
}

/// A request of a type that 1.0 lacks has no body.
pub(super) fn encode(m: &Multipart<'_>, out: &mut Vec<u8>) {
    out.put16(crate::v13::asks_kind(&m.asks));
    out.put16(0);
    match &m.asks {
        Asks::Flow(filter) | Asks::Aggregate(filter) => flow::encode_filter(filter, out),
        Asks::Port { port } => {
            out.put16(ports::to10(*port).unwrap_or(0xffff));
            out.zeros(6);
        }
        Asks::Queue { port, queue } => {
            let all = *port == ports::ANY;
            let port = if all { ports::ALL } else { *port };
            out.put16(ports::to10(port).unwrap_or(0xffff));
            out.zeros(2);
            out.put32(*queue);
        }
        Asks::Experimenter(e) => {
            out.put32(e.experimenter);
            out.put(e.data);
        }
        _ => {}
    }
}

/// Nothing for a part that 1.0 lacks.
pub(super) fn encode_part(part: &Part<'_>, out: &mut Vec<u8>) {
    match part {
        Part::Desc(d) => encode_desc(d, out),
        Part::Flow(s) => flow::encode_stats(s, out),
        Part::Aggregate(a) => {
            out.put64(a.packets);
            out.put64(a.bytes);
            out.put32(a.flows);
            out.zeros(4);
        }
        Part::Table(s) => encode_table_stats(s, out),
        Part::Port(s) => port::encode_stats(s, out),
        Part::Queue(s) => port::encode_queue_stats(s, out),
        Part::Experimenter(e) => {
            out.put32(e.experimenter);
            out.put(e.data);
        }
        Part::Group(_)
        | Part::GroupDesc(_)
        | Part::GroupFeatures(_)
        | Part::Meter(_)
        | Part::MeterConfig(_)
        | Part::MeterFeatures(_)
        | Part::TableFeatures(_)
        | Part::PortDesc(_) => {}
    }
}

fn encode_table_stats(s: &TableStats, out: &mut Vec<u8>) {
    out.put8(s.table);
    out.zeros(3);
    out.text(&s.name, 32);
    // what can be a wildcard
    out.put32(matching::ALL);
    out.put32(s.max_entries);
    out.put32(s.active);
    out.put64(s.lookups);
    out.put64(s.matched);
}

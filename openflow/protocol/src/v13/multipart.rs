// SPDX-License-Identifier: Apache-2.0
//! Multipart requests, and one part of a reply (§7.3.5).

use super::{features, flow, group, meter, port};
use crate::Error;
use crate::model::{Asks, Desc, Experimenter, Multipart, Part, TableStats};
use crate::wire::{Put, Reader, Result};

const DESC: u16 = 0;
const FLOW: u16 = 1;
const AGGREGATE: u16 = 2;
const TABLE: u16 = 3;
const PORT_STATS: u16 = 4;
const QUEUE: u16 = 5;
const GROUP: u16 = 6;
const GROUP_DESC: u16 = 7;
const GROUP_FEATURES: u16 = 8;
const METER: u16 = 9;
const METER_CONFIG: u16 = 10;
const METER_FEATURES: u16 = 11;
const TABLE_FEATURES: u16 = 12;
const PORT_DESC: u16 = 13;
const EXPERIMENTER: u16 = 0xffff;

pub(super) fn decode<'a>(mut r: Reader<'a>) -> Result<Multipart<'a>> {
    let here = r;
    let (kind, flags) = (r.u16()?, r.u16()?);
    r.skip(4)?;
    let number = |r: &mut Reader<'_>| -> Result<u32> {
        let n = r.u32()?;
        r.skip(4)?;
        Ok(n)
    };
    let asks = match kind {
        DESC => Asks::Desc,
        FLOW => Asks::Flow(flow::decode_filter(&mut r)?),
        AGGREGATE => Asks::Aggregate(flow::decode_filter(&mut r)?),
        TABLE => Asks::Table,
        PORT_STATS => Asks::Port {
            port: number(&mut r)?,
        },
        QUEUE => Asks::Queue {
            port: r.u32()?,
            queue: r.u32()?,
        },
        GROUP => Asks::Group {
            group: number(&mut r)?,
        },
        GROUP_DESC => Asks::GroupDesc,
        GROUP_FEATURES => Asks::GroupFeatures,
        METER => Asks::Meter {
            meter: number(&mut r)?,
        },
        METER_CONFIG => Asks::MeterConfig {
            meter: number(&mut r)?,
        },
        METER_FEATURES => Asks::MeterFeatures,
        TABLE_FEATURES => Asks::TableFeatures(features::decode_tables(&mut r)?),
        PORT_DESC => Asks::PortDesc,
        EXPERIMENTER => Asks::Experimenter(Experimenter {
            experimenter: r.u32()?,
            kind: r.u32()?,
            data: r.rest(),
        }),
        _ => {
            // §7.3.5: a type that is not known
            let error = Error::BAD_REQUEST_BAD_MULTIPART;
            return Err(here.bad(error, "type of a multipart request", None, u64::from(kind)));
        }
    };
    r.end("bytes after a multipart request")?;
    Ok(Multipart {
        more: flags & 1 != 0,
        asks,
    })
}

/// The number of its type.
pub(super) const fn asks_kind(asks: &Asks<'_>) -> u16 {
    match asks {
        Asks::Desc => DESC,
        Asks::Flow(_) => FLOW,
        Asks::Aggregate(_) => AGGREGATE,
        Asks::Table => TABLE,
        Asks::Port { .. } => PORT_STATS,
        Asks::Queue { .. } => QUEUE,
        Asks::Group { .. } => GROUP,
        Asks::GroupDesc => GROUP_DESC,
        Asks::GroupFeatures => GROUP_FEATURES,
        Asks::Meter { .. } => METER,
        Asks::MeterConfig { .. } => METER_CONFIG,
        Asks::MeterFeatures => METER_FEATURES,
        Asks::TableFeatures(_) => TABLE_FEATURES,
        Asks::PortDesc => PORT_DESC,
        Asks::Experimenter(_) => EXPERIMENTER,
    }
}

pub(super) fn encode(m: &Multipart<'_>, out: &mut Vec<u8>) {
    out.put16(asks_kind(&m.asks));
    out.put16(u16::from(m.more));
    out.zeros(4);
    match &m.asks {
        Asks::Flow(filter) | Asks::Aggregate(filter) => flow::encode_filter(filter, out),
        Asks::Port { port: number }
        | Asks::Group { group: number }
        | Asks::Meter { meter: number }
        | Asks::MeterConfig { meter: number } => {
            out.put32(*number);
            out.zeros(4);
        }
        Asks::Queue { port, queue } => {
            out.put32(*port);
            out.put32(*queue);
        }
        Asks::TableFeatures(tables) => {
            for table in tables {
                features::encode(table, out);
            }
        }
        Asks::Experimenter(e) => encode_experimenter(e, out),
        _ => {}
    }
}

fn encode_experimenter(e: &Experimenter<'_>, out: &mut Vec<u8>) {
    out.put32(e.experimenter);
    out.put32(e.kind);
    out.put(e.data);
}

/// Begins the body of a reply to what `asks`, whose number this is.
pub(super) fn begin_reply(kind: u16, out: &mut Vec<u8>) {
    out.put16(kind);
    out.put16(0);
    out.zeros(4);
}

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
        Part::Group(s) => group::encode_stats(s, out),
        Part::GroupDesc(d) => group::encode_desc(d, out),
        Part::GroupFeatures(f) => group::encode_features(f, out),
        Part::Meter(s) => meter::encode_stats(s, out),
        Part::MeterConfig(m) => meter::encode_config(m, out),
        Part::MeterFeatures(f) => meter::encode_features(f, out),
        Part::TableFeatures(f) => features::encode(f, out),
        Part::PortDesc(p) => port::encode_port(p, out),
        Part::Experimenter(e) => encode_experimenter(e, out),
    }
}

/// `ofp_desc` (§7.3.5.1), which is 1.0's too.
pub(crate) fn encode_desc(d: &Desc, out: &mut Vec<u8>) {
    out.text(&d.manufacturer, 256);
    out.text(&d.hardware, 256);
    out.text(&d.software, 256);
    out.text(&d.serial, 32);
    out.text(&d.datapath, 256);
}

fn encode_table_stats(s: &TableStats, out: &mut Vec<u8>) {
    out.put8(s.table);
    out.zeros(3);
    out.put32(s.active);
    out.put64(s.lookups);
    out.put64(s.matched);
}

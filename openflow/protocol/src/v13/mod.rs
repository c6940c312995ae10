// SPDX-License-Identifier: Apache-2.0
//! 1.3 on the wire (version 0x04).

mod action;
mod features;
mod flow;
mod group;
mod instruction;
mod meter;
mod multipart;
mod oxm;
mod packet;
mod port;
mod switch;

pub(crate) use flow::encode as encode_flow_mod;
pub(crate) use multipart::encode_desc;
pub(crate) use packet::could_be_from;
pub(crate) use port::{encode_counters, encode_rate};
pub(crate) use switch::{decode_config, encode_config};

use crate::Error;
use crate::frame::Header;
use crate::model::{Experimenter, NO_BUFFER, Part, Reply, Request};
use crate::wire::{Put, Reader, Result};

// ofp_type (§7.1)
const EXPERIMENTER: u8 = 4;
const FEATURES_REQUEST: u8 = 5;
const FEATURES_REPLY: u8 = 6;
const GET_CONFIG_REQUEST: u8 = 7;
const GET_CONFIG_REPLY: u8 = 8;
const SET_CONFIG: u8 = 9;
const PACKET_IN: u8 = 10;
const FLOW_REMOVED: u8 = 11;
const PORT_STATUS: u8 = 12;
const PACKET_OUT: u8 = 13;
/// Of 1.0 as well.
pub(crate) const FLOW_MOD: u8 = 14;
const GROUP_MOD: u8 = 15;
const PORT_MOD: u8 = 16;
const TABLE_MOD: u8 = 17;
const MULTIPART_REQUEST: u8 = 18;
pub(crate) const MULTIPART_REPLY: u8 = 19;
const BARRIER_REQUEST: u8 = 20;
const BARRIER_REPLY: u8 = 21;
const QUEUE_GET_CONFIG_REQUEST: u8 = 22;
const QUEUE_GET_CONFIG_REPLY: u8 = 23;
const ROLE_REQUEST: u8 = 24;
const ROLE_REPLY: u8 = 25;
const GET_ASYNC_REQUEST: u8 = 26;
const GET_ASYNC_REPLY: u8 = 27;
const SET_ASYNC: u8 = 28;
const METER_MOD: u8 = 29;

fn buffer(id: u32) -> Option<u32> {
    (id != NO_BUFFER).then_some(id)
}

fn buffer_id(buffer: Option<u32>) -> u32 {
    buffer.unwrap_or(NO_BUFFER)
}

/// What follows the header, of types that 1.0 does not have with the same number and form.
pub(crate) fn decode<'a>(header: Header, mut r: Reader<'a>) -> Result<Request<'a>> {
    Ok(match header.kind {
        EXPERIMENTER => Request::Experimenter(Experimenter {
            experimenter: r.u32()?,
            kind: r.u32()?,
            data: r.rest(),
        }),
        FEATURES_REQUEST => empty(r, Request::Features)?,
        GET_CONFIG_REQUEST => empty(r, Request::GetConfig)?,
        SET_CONFIG => Request::SetConfig(switch::decode_config(r)?),
        PACKET_OUT => Request::PacketOut(packet::decode(r)?),
        FLOW_MOD => Request::FlowMod(flow::decode(r)?),
        GROUP_MOD => Request::GroupMod(group::decode(r)?),
        PORT_MOD => Request::PortMod(port::decode(r)?),
        TABLE_MOD => Request::TableMod(switch::decode_table_mod(r)?),
        MULTIPART_REQUEST => Request::Multipart(multipart::decode(r)?),
        BARRIER_REQUEST => empty(r, Request::Barrier)?,
        QUEUE_GET_CONFIG_REQUEST => {
            let port = r.u32()?;
            r.skip(4)?;
            empty(r, Request::QueueConfig { port })?
        }
        ROLE_REQUEST => Request::Role(switch::decode_role(r)?),
        GET_ASYNC_REQUEST => empty(r, Request::GetAsync)?,
        SET_ASYNC => Request::SetAsync(switch::decode_async(r)?),
        METER_MOD => Request::MeterMod(meter::decode(r)?),
        kind => return Err(unknown(kind)),
    })
}

/// A type that is not known, or that a switch alone sends (§7.4.4.2).
pub(crate) fn unknown(kind: u8) -> crate::Malformed {
    crate::Malformed {
        error: Error::BAD_REQUEST_BAD_TYPE,
        at: 1,
        what: "type of a message",
        wanted: None,
        got: u64::from(kind),
    }
}

pub(crate) fn empty<'a>(r: Reader<'_>, request: Request<'a>) -> Result<Request<'a>> {
    r.end("bytes after a message")?;
    Ok(request)
}

pub(crate) const fn kind(request: &Request<'_>) -> u8 {
    match request {
        Request::Hello(_) => 0,
        Request::Error { .. } => 1,
        Request::Echo(_) => 2,
        Request::EchoReply(_) => 3,
        Request::Experimenter(_) => EXPERIMENTER,
        Request::Features => FEATURES_REQUEST,
        Request::GetConfig => GET_CONFIG_REQUEST,
        Request::SetConfig(_) => SET_CONFIG,
        Request::PacketOut(_) => PACKET_OUT,
        Request::FlowMod(_) => FLOW_MOD,
        Request::GroupMod(_) => GROUP_MOD,
        Request::PortMod(_) => PORT_MOD,
        Request::TableMod(_) => TABLE_MOD,
        Request::Multipart(_) => MULTIPART_REQUEST,
        Request::Barrier => BARRIER_REQUEST,
        Request::QueueConfig { .. } => QUEUE_GET_CONFIG_REQUEST,
        Request::Role(_) => ROLE_REQUEST,
        Request::GetAsync => GET_ASYNC_REQUEST,
        Request::SetAsync(_) => SET_ASYNC,
        Request::MeterMod(_) => METER_MOD,
    }
}

/// What follows the header.
pub(crate) fn encode(request: &Request<'_>, out: &mut Vec<u8>) {
    match request {
        Request::Error { kind, code, data } => {
            out.put16(*kind);
            out.put16(*code);
            out.put(data);
        }
        Request::Echo(data) | Request::EchoReply(data) => out.put(data),
        Request::Experimenter(e) => put_experimenter(e, out),
        Request::SetConfig(c) => switch::encode_config(*c, out),
        Request::PacketOut(m) => packet::encode(m, out),
        Request::FlowMod(m) => flow::encode(m, out),
        Request::GroupMod(m) => group::encode(m, out),
        Request::PortMod(m) => port::encode(m, out),
        Request::TableMod(m) => switch::encode_table_mod(*m, out),
        Request::Multipart(m) => multipart::encode(m, out),
        Request::QueueConfig { port } => {
            out.put32(*port);
            out.zeros(4);
        }
        Request::Role(m) => switch::encode_role(*m, out),
        Request::SetAsync(m) => switch::encode_async(*m, out),
        Request::MeterMod(m) => meter::encode(m, out),
        Request::Hello(_)
        | Request::Features
        | Request::GetConfig
        | Request::Barrier
        | Request::GetAsync => {}
    }
}

fn put_experimenter(e: &Experimenter<'_>, out: &mut Vec<u8>) {
    out.put32(e.experimenter);
    out.put32(e.kind);
    out.put(e.data);
}

pub(crate) const fn reply_kind(reply: &Reply<'_>) -> u8 {
    match reply {
        Reply::Hello(_) => 0,
        Reply::Error { .. } => 1,
        Reply::Echo(_) => 2,
        Reply::EchoReply(_) => 3,
        Reply::Experimenter(_) => EXPERIMENTER,
        Reply::Features(_) => FEATURES_REPLY,
        Reply::Config(_) => GET_CONFIG_REPLY,
        Reply::PacketIn(_) => PACKET_IN,
        Reply::FlowRemoved(_) => FLOW_REMOVED,
        Reply::PortStatus { .. } => PORT_STATUS,
        Reply::Barrier => BARRIER_REPLY,
        Reply::QueueConfig { .. } => QUEUE_GET_CONFIG_REPLY,
        Reply::Role(_) => ROLE_REPLY,
        Reply::Async(_) => GET_ASYNC_REPLY,
    }
}

/// What follows the header.
pub(crate) fn encode_reply(reply: &Reply<'_>, out: &mut Vec<u8>) {
    match reply {
        Reply::Error { error, data } => {
            out.put16(error.kind);
            out.put16(error.code);
            out.put(data);
        }
        Reply::Echo(data) | Reply::EchoReply(data) => out.put(data),
        Reply::Experimenter(e) => put_experimenter(e, out),
        Reply::Features(f) => switch::encode_features(f, out),
        Reply::Config(c) => switch::encode_config(*c, out),
        Reply::PacketIn(m) => packet::encode_in(m, out),
        Reply::FlowRemoved(m) => flow::encode_removed(m, out),
        Reply::PortStatus { reason, port } => {
            out.put8(*reason as u8);
            out.zeros(7);
            port::encode_port(port, out);
        }
        Reply::QueueConfig { port, queues } => {
            out.put32(*port);
            out.zeros(4);
            for queue in *queues {
                port::encode_queue(queue, out);
            }
        }
        Reply::Role(m) => switch::encode_role(*m, out),
        Reply::Async(a) => switch::encode_async(*a, out),
        Reply::Hello(_) | Reply::Barrier => {}
    }
}

/// Begins the body of a multipart reply.
pub(crate) fn begin_parts(kind: u16, out: &mut Vec<u8>) {
    multipart::begin_reply(kind, out);
}

pub(crate) fn encode_part(part: &Part<'_>, out: &mut Vec<u8>) {
    multipart::encode_part(part, out);
}

/// The number of a multipart's type, for a reply without a part.
pub(crate) const fn asks_kind(asks: &crate::model::Asks<'_>) -> u16 {
    multipart::asks_kind(asks)
}

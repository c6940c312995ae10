// SPDX-License-Identifier: Apache-2.0
//! 1.0 on the wire (version 0x01).

mod action;
mod error;
mod flow;
mod matching;
mod port;
mod stats;

pub(crate) use flow::encode as encode_flow_mod;

use crate::frame::Header;
use crate::model::{
    Experimenter, Features, NO_BUFFER, PacketIn, PacketOut, PacketReason, Part, Reply, Request,
    capabilities,
};
use crate::v13::{could_be_from, decode_config, empty, encode_config, unknown};
use crate::wire::{Put, Reader, Result};
use crate::{Error, Field, port as ports};

// ofp_type (1.0 §5.1)
const VENDOR: u8 = 4;
const FEATURES_REQUEST: u8 = 5;
const FEATURES_REPLY: u8 = 6;
const GET_CONFIG_REQUEST: u8 = 7;
const GET_CONFIG_REPLY: u8 = 8;
const SET_CONFIG: u8 = 9;
const PACKET_IN: u8 = 10;
const FLOW_REMOVED: u8 = 11;
const PORT_STATUS: u8 = 12;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;
const PORT_MOD: u8 = 15;
const STATS_REQUEST: u8 = 16;
pub(crate) const STATS_REPLY: u8 = 17;
const BARRIER_REQUEST: u8 = 18;
const BARRIER_REPLY: u8 = 19;
const QUEUE_GET_CONFIG_REQUEST: u8 = 20;
const QUEUE_GET_CONFIG_REPLY: u8 = 21;
/// `OFPC_ARP_MATCH_IP`.
const ARP_MATCH_IP: u32 = 1 << 7;

/// What follows the header, of types that both versions don't have with the same number and form.
pub(crate) fn decode<'a>(header: Header, mut r: Reader<'a>) -> Result<Request<'a>> {
    Ok(match header.kind {
        VENDOR => Request::Experimenter(Experimenter {
            experimenter: r.u32()?,
            kind: 0,
            data: r.rest(),
        }),
        FEATURES_REQUEST => empty(r, Request::Features)?,
        GET_CONFIG_REQUEST => empty(r, Request::GetConfig)?,
        SET_CONFIG => Request::SetConfig(decode_config(r)?),
        PACKET_OUT => Request::PacketOut(decode_packet_out(r)?),
        FLOW_MOD => Request::FlowMod(flow::decode(r)?),
        PORT_MOD => Request::PortMod(port::decode(r)?),
        STATS_REQUEST => Request::Multipart(stats::decode(r)?),
        BARRIER_REQUEST => empty(r, Request::Barrier)?,
        QUEUE_GET_CONFIG_REQUEST => {
            let port = ports::from10(r.u16()?);
            r.skip(2)?;
            empty(r, Request::QueueConfig { port })?
        }
        kind => return Err(unknown(kind)),
    })
}

/// 1.0 §5.3.6.
fn decode_packet_out<'a>(mut r: Reader<'a>) -> Result<PacketOut<'a>> {
    let buffer = r.u32()?;
    let at_port = r;
    let in_port = r.u16()?;
    let at_length = r;
    let length = usize::from(r.u16()?);
    if !could_be_from(ports::from10(in_port)) {
        let error = Error::BAD_REQUEST_BAD_PORT;
        return Err(at_port.bad(
            error,
            "port that a packet came from",
            0xff00,
            u64::from(in_port),
        ));
    }
    if length > r.left() {
        let (most, got) = (r.left() as u64, length as u64);
        return Err(at_length.bad(Error::BAD_REQUEST_BAD_LEN, "length of actions", most, got));
    }
    let mut actions = r.part(length, Error::BAD_ACTION_BAD_LEN)?;
    Ok(PacketOut {
        buffer: (buffer != NO_BUFFER).then_some(buffer),
        in_port: ports::from10(in_port),
        actions: action::decode_actions(&mut actions, true)?,
        data: r.rest(),
    })
}

/// The number of its type; `None` for what 1.0 lacks.
pub(crate) const fn kind(request: &Request<'_>) -> Option<u8> {
    Some(match request {
        Request::Hello(_) => 0,
        Request::Error { .. } => 1,
        Request::Echo(_) => 2,
        Request::EchoReply(_) => 3,
        Request::Experimenter(_) => VENDOR,
        Request::Features => FEATURES_REQUEST,
        Request::GetConfig => GET_CONFIG_REQUEST,
        Request::SetConfig(_) => SET_CONFIG,
        Request::PacketOut(_) => PACKET_OUT,
        Request::FlowMod(_) => FLOW_MOD,
        Request::PortMod(_) => PORT_MOD,
        Request::Multipart(_) => STATS_REQUEST,
        Request::Barrier => BARRIER_REQUEST,
        Request::QueueConfig { .. } => QUEUE_GET_CONFIG_REQUEST,
        Request::GroupMod(_)
        | Request::TableMod(_)
        | Request::Role(_)
        | Request::GetAsync
        | Request::SetAsync(_)
        | Request::MeterMod(_) => return None,
    })
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
        Request::Experimenter(e) => put_vendor(e, out),
        Request::SetConfig(c) => encode_config(*c, out),
        Request::PacketOut(m) => {
            out.put32(m.buffer.unwrap_or(NO_BUFFER));
            out.put16(ports::to10(m.in_port).unwrap_or(0xffff));
            let length = out.len();
            out.zeros(2);
            let start = out.len();
            action::encode_actions(&m.actions, out);
            out.put_len(length, start);
            out.put(m.data);
        }
        Request::FlowMod(m) => flow::encode(m, out),
        Request::PortMod(m) => port::encode(m, out),
        Request::Multipart(m) => stats::encode(m, out),
        Request::QueueConfig { port } => {
            out.put16(ports::to10(*port).unwrap_or(0xffff));
            out.zeros(2);
        }
        _ => {}
    }
}

fn put_vendor(e: &Experimenter<'_>, out: &mut Vec<u8>) {
    out.put32(e.experimenter);
    out.put(e.data);
}

/// The number of its type; `None` for what 1.0 lacks.
pub(crate) const fn reply_kind(reply: &Reply<'_>) -> Option<u8> {
    Some(match reply {
        Reply::Hello(_) => 0,
        Reply::Error { .. } => 1,
        Reply::Echo(_) => 2,
        Reply::EchoReply(_) => 3,
        Reply::Experimenter(_) => VENDOR,
        Reply::Features(_) => FEATURES_REPLY,
        Reply::Config(_) => GET_CONFIG_REPLY,
        Reply::PacketIn(_) => PACKET_IN,
        Reply::FlowRemoved(_) => FLOW_REMOVED,
        Reply::PortStatus { .. } => PORT_STATUS,
        Reply::Barrier => BARRIER_REPLY,
        Reply::QueueConfig { .. } => QUEUE_GET_CONFIG_REPLY,
        Reply::Role(_) | Reply::Async(_) => return None,
    })
}

/// What follows the header.
pub(crate) fn encode_reply(reply: &Reply<'_>, out: &mut Vec<u8>) {
    match reply {
        Reply::Error { error, data } => {
            let (kind, code) = error::translate(*error);
            out.put16(kind);
            out.put16(code);
            out.put(data);
        }
        Reply::Echo(data) | Reply::EchoReply(data) => out.put(data),
        Reply::Experimenter(e) => put_vendor(e, out),
        Reply::Features(f) => encode_features(f, out),
        Reply::Config(c) => encode_config(*c, out),
        Reply::PacketIn(m) => encode_packet_in(m, out),
        Reply::FlowRemoved(m) => flow::encode_removed(m, out),
        Reply::PortStatus { reason, port } => {
            out.put8(*reason as u8);
            out.zeros(7);
            port::encode_port(port, out);
        }
        Reply::QueueConfig { port, queues } => {
            out.put16(ports::to10(*port).unwrap_or(0xffff));
            out.zeros(6);
            for queue in *queues {
                port::encode_queue(queue, out);
            }
        }
        Reply::Hello(_) | Reply::Barrier | Reply::Role(_) | Reply::Async(_) => {}
    }
}

/// 1.0 §5.3.1.
fn encode_features(f: &Features, out: &mut Vec<u8>) {
    out.put64(f.datapath);
    out.put32(f.buffers);
    out.put8(f.tables);
    out.zeros(3);
    let both = capabilities::FLOW_STATS
        | capabilities::TABLE_STATS
        | capabilities::PORT_STATS
        | capabilities::IP_REASM
        | capabilities::QUEUE_STATS;
    out.put32(f.capabilities & both | ARP_MATCH_IP);
    out.put32(action::ALL);
    for p in &f.ports {
        port::encode_port(p, out);
    }
}

/// 1.0 §5.4.1.
fn encode_packet_in(m: &PacketIn<'_>, out: &mut Vec<u8>) {
    let in_port = crate::matching::get(m.fields, Field::InPort);
    let in_port = in_port.and_then(|oxm| ports::to10(oxm.value as u32));
    out.put32(m.buffer.unwrap_or(NO_BUFFER));
    out.put16(m.total_len);
    out.put16(in_port.unwrap_or(0xffff));
    let reason = match m.reason {
        PacketReason::InvalidTtl => PacketReason::Action,
        reason => reason,
    };
    out.put8(reason as u8);
    out.zeros(1);
    out.put(m.data);
}

/// Begins the body of a statistics reply.
pub(crate) fn begin_parts(kind: u16, out: &mut Vec<u8>) {
    out.put16(kind);
    out.put16(0);
}

pub(crate) fn encode_part(part: &Part<'_>, out: &mut Vec<u8>) {
    stats::encode_part(part, out);
}

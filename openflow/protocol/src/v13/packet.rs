// SPDX-License-Identifier: Apache-2.0
//! `ofp_packet_out` (§7.3.7) and `ofp_packet_in` (§7.4.1).

use super::action::{decode_actions, encode_actions};
use super::oxm::encode_match;
use crate::model::{PacketIn, PacketOut};
use crate::wire::{Put, Reader, Result};
use crate::{Error, port};

pub(super) fn decode<'a>(mut r: Reader<'a>) -> Result<PacketOut<'a>> {
    let buffer = r.u32()?;
    let at_port = r;
    let in_port = r.u32()?;
    let at_length = r;
    let length = usize::from(r.u16()?);
    r.skip(6)?;
    if !could_be_from(in_port) {
        let (most, got) = (u64::from(port::MAX), u64::from(in_port));
        return Err(at_port.bad(
            Error::BAD_REQUEST_BAD_PORT,
            "port that a packet came from",
            most,
            got,
        ));
    }
    if length > r.left() {
        let (most, got) = (r.left() as u64, length as u64);
        return Err(at_length.bad(Error::BAD_REQUEST_BAD_LEN, "length of actions", most, got));
    }
    let mut actions = r.part(length, Error::BAD_ACTION_BAD_LEN)?;
    Ok(PacketOut {
        buffer: super::buffer(buffer),
        in_port,
        actions: decode_actions(&mut actions, true)?,
        data: r.rest(),
    })
}

/// §7.3.7: a port or the controller; also the switch itself and nowhere, which controllers give.
pub(crate) fn could_be_from(p: u32) -> bool {
    (1..=port::MAX).contains(&p) || matches!(p, port::CONTROLLER | port::LOCAL | port::ANY)
}

pub(super) fn encode(m: &PacketOut<'_>, out: &mut Vec<u8>) {
    out.put32(super::buffer_id(m.buffer));
    out.put32(m.in_port);
    let length = out.len();
    out.zeros(8);
    let start = out.len();
    encode_actions(&m.actions, out);
    out.put_len(length, start);
    out.put(m.data);
}

pub(super) fn encode_in(m: &PacketIn<'_>, out: &mut Vec<u8>) {
    out.put32(super::buffer_id(m.buffer));
    out.put16(m.total_len);
    out.put8(m.reason as u8);
    out.put8(m.table);
    out.put64(m.cookie);
    encode_match(m.fields, out);
    // so that the packet's IP header is aligned (§7.4.1)
    out.zeros(2);
    out.put(m.data);
}

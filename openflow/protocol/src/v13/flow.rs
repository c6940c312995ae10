// SPDX-License-Identifier: Apache-2.0
//! `ofp_flow_mod` (§7.3.4.1), `ofp_flow_removed` (§7.4.2), `ofp_flow_stats` (§7.3.5.2).

use super::instruction::{decode_instructions, encode_instructions};
use super::oxm::{decode_match, encode_match};
use crate::Error;
use crate::model::{
    FlowCommand, FlowFilter, FlowMod, FlowRemoved, FlowStats, TABLE_ALL, flow_flags,
};
use crate::wire::{Put, Reader, Result};

pub(super) fn decode(mut r: Reader<'_>) -> Result<FlowMod> {
    let (cookie, cookie_mask) = (r.u64()?, r.u64()?);
    let at_table = r;
    let table = r.u8()?;
    let at_command = r;
    let command = r.u8()?;
    let (idle_timeout, hard_timeout, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let (buffer, out_port, out_group) = (r.u32()?, r.u32()?, r.u32()?);
    let at_flags = r;
    let flags = r.u16()?;
    r.skip(2)?;
    let Some(command) = FlowCommand::of(command) else {
        let error = Error::FLOW_MOD_FAILED_BAD_COMMAND;
        return Err(at_command.bad(error, "command of a flow", 4, u64::from(command)));
    };
    if flags & !flow_flags::ALL != 0 {
        let (most, got) = (u64::from(flow_flags::ALL), u64::from(flags));
        return Err(at_flags.bad(
            Error::FLOW_MOD_FAILED_BAD_FLAGS,
            "flags of a flow",
            most,
            got,
        ));
    }
    // §7.3.4.1: all tables are named by deletes alone
    if table == TABLE_ALL && !command.deletes() {
        let error = Error::FLOW_MOD_FAILED_BAD_TABLE_ID;
        return Err(at_table.bad(error, "table of a flow", 0xfe, u64::from(table)));
    }
    let matching = decode_match(&mut r)?;
    let instructions = decode_instructions(&mut r)?;
    Ok(FlowMod {
        cookie,
        cookie_mask,
        table,
        command,
        idle_timeout,
        hard_timeout,
        priority,
        buffer: super::buffer(buffer),
        out_port,
        out_group,
        flags,
        matching,
        instructions,
    })
}

pub(crate) fn encode(m: &FlowMod, out: &mut Vec<u8>) {
    out.put64(m.cookie);
    out.put64(m.cookie_mask);
    out.put8(m.table);
    out.put8(m.command as u8);
    out.put16(m.idle_timeout);
    out.put16(m.hard_timeout);
    out.put16(m.priority);
    out.put32(super::buffer_id(m.buffer));
    out.put32(m.out_port);
    out.put32(m.out_group);
    out.put16(m.flags);
    out.zeros(2);
    encode_match(&m.matching.fields, out);
    encode_instructions(&m.instructions, out);
}

pub(super) fn encode_removed(m: &FlowRemoved, out: &mut Vec<u8>) {
    out.put64(m.cookie);
    out.put16(m.priority);
    out.put8(m.reason as u8);
    out.put8(m.table);
    out.put32(m.lifetime.sec);
    out.put32(m.lifetime.nsec);
    out.put16(m.idle_timeout);
    out.put16(m.hard_timeout);
    out.put64(m.packets);
    out.put64(m.bytes);
    encode_match(&m.matching.fields, out);
}

pub(super) fn encode_stats(s: &FlowStats, out: &mut Vec<u8>) {
    let start = out.len();
    out.put16(0);
    out.put8(s.table);
    out.zeros(1);
    out.put32(s.lifetime.sec);
    out.put32(s.lifetime.nsec);
    out.put16(s.priority);
    out.put16(s.idle_timeout);
    out.put16(s.hard_timeout);
    out.put16(s.flags);
    out.zeros(4);
    out.put64(s.cookie);
    out.put64(s.packets);
    out.put64(s.bytes);
    encode_match(&s.matching.fields, out);
    encode_instructions(&s.instructions, out);
    out.put_len(start, start);
}

/// `ofp_flow_stats_request`, `ofp_aggregate_stats_request`.
pub(super) fn decode_filter(r: &mut Reader<'_>) -> Result<FlowFilter> {
    let table = r.u8()?;
    r.skip(3)?;
    let (out_port, out_group) = (r.u32()?, r.u32()?);
    r.skip(4)?;
    let (cookie, cookie_mask) = (r.u64()?, r.u64()?);
    let matching = decode_match(r)?;
    Ok(FlowFilter {
        table,
        out_port,
        out_group,
        cookie,
        cookie_mask,
        matching,
    })
}

pub(super) fn encode_filter(f: &FlowFilter, out: &mut Vec<u8>) {
    out.put8(f.table);
    out.zeros(3);
    out.put32(f.out_port);
    out.put32(f.out_group);
    out.zeros(4);
    out.put64(f.cookie);
    out.put64(f.cookie_mask);
    encode_match(&f.matching.fields, out);
}

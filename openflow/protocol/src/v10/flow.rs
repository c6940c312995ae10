// SPDX-License-Identifier: Apache-2.0
//! `ofp_flow_mod` (1.0 §5.3.3), `ofp_flow_removed` (1.0 §5.4.2), `ofp_flow_stats` (1.0 §5.3.5).

use super::action::{decode_actions, encode_actions};
use super::matching;
use crate::model::{
    FlowCommand, FlowFilter, FlowMod, FlowRemoved, FlowStats, GROUP_ANY, NO_BUFFER, RemovedReason,
    TABLE_ALL, flow_flags,
};
use crate::wire::{Put, Reader, Result};
use crate::{Error, Instructions, Match, port};

/// `OFPFF_EMERG`.
const EMERG: u16 = 1 << 2;
/// What 1.0 has of [`flow_flags`].
const FLAGS: u16 = flow_flags::SEND_FLOW_REM | flow_flags::CHECK_OVERLAP;

pub(super) fn decode(mut r: Reader<'_>) -> Result<FlowMod> {
    let matching = matching::decode(&mut r)?;
    let cookie = r.u64()?;
    let at_command = r;
    let command = r.u16()?;
    let (idle_timeout, hard_timeout, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let (buffer, out_port) = (r.u32()?, r.u16()?);
    let at_flags = r;
    let flags = r.u16()?;
    let Some(command) = u8::try_from(command).ok().and_then(FlowCommand::of) else {
        let error = Error::FLOW_MOD_FAILED_BAD_COMMAND;
        return Err(at_command.bad(error, "command of a flow", 4, u64::from(command)));
    };
    if flags & EMERG != 0 {
        // 1.0 §5.3.3: an emergency flow has no timeouts. There is no table for them: it is full from the beginning
        let error = if idle_timeout != 0 || hard_timeout != 0 {
            Error::FLOW_MOD_FAILED_BAD_TIMEOUT
        } else {
            Error::FLOW_MOD_FAILED_TABLE_FULL
        };
        return Err(at_flags.bad(error, "flags of a flow", u64::from(FLAGS), u64::from(flags)));
    }
    // 1.0 §4.6: what is replaced goes with its counters
    let reset = if command == FlowCommand::Add {
        flow_flags::RESET_COUNTS
    } else {
        0
    };
    let actions = decode_actions(&mut r, false)?;
    Ok(FlowMod {
        cookie,
        cookie_mask: 0,
        table: if command.deletes() { TABLE_ALL } else { 0 },
        command,
        idle_timeout,
        hard_timeout,
        priority,
        buffer: (buffer != NO_BUFFER).then_some(buffer),
        out_port: port::from10(out_port),
        out_group: GROUP_ANY,
        flags: flags & FLAGS | reset,
        matching,
        instructions: Instructions {
            apply: (!actions.is_empty()).then_some(actions),
            ..Instructions::default()
        },
    })
}

pub(crate) fn encode(m: &FlowMod, out: &mut Vec<u8>) {
    matching::encode(&m.matching, out);
    out.put64(m.cookie);
    out.put16(m.command as u16);
    out.put16(m.idle_timeout);
    out.put16(m.hard_timeout);
    out.put16(m.priority);
    out.put32(m.buffer.unwrap_or(NO_BUFFER));
    out.put16(port::to10(m.out_port).unwrap_or(0xffff));
    out.put16(m.flags & FLAGS);
    encode_applied(&m.instructions, out);
}

fn encode_applied(all: &Instructions, out: &mut Vec<u8>) {
    encode_actions(all.apply.as_deref().unwrap_or_default(), out);
}

pub(super) fn encode_removed(m: &FlowRemoved, out: &mut Vec<u8>) {
    matching::encode(&m.matching, out);
    out.put64(m.cookie);
    out.put16(m.priority);
    let reason = match m.reason {
        RemovedReason::GroupDelete => RemovedReason::Delete,
        reason => reason,
    };
    out.put8(reason as u8);
    out.zeros(1);
    out.put32(m.lifetime.sec);
    out.put32(m.lifetime.nsec);
    out.put16(m.idle_timeout);
    out.zeros(2);
    out.put64(m.packets);
    out.put64(m.bytes);
}

pub(super) fn encode_stats(s: &FlowStats, out: &mut Vec<u8>) {
    let start = out.len();
    out.put16(0);
    out.put8(s.table);
    out.zeros(1);
    matching::encode(&s.matching, out);
    out.put32(s.lifetime.sec);
    out.put32(s.lifetime.nsec);
    out.put16(s.priority);
    out.put16(s.idle_timeout);
    out.put16(s.hard_timeout);
    out.zeros(6);
    out.put64(s.cookie);
    out.put64(s.packets);
    out.put64(s.bytes);
    encode_applied(&s.instructions, out);
    out.put_len(start, start);
}

/// `ofp_flow_stats_request`, `ofp_aggregate_stats_request`.
pub(super) fn decode_filter(r: &mut Reader<'_>) -> Result<FlowFilter> {
    let matching = Match {
        exact: false,
        ..matching::decode(r)?
    };
    let table = r.u8()?;
    r.skip(1)?;
    Ok(FlowFilter {
        table,
        out_port: port::from10(r.u16()?),
        out_group: GROUP_ANY,
        cookie: 0,
        cookie_mask: 0,
        matching,
    })
}

pub(super) fn encode_filter(f: &FlowFilter, out: &mut Vec<u8>) {
    matching::encode(&f.matching, out);
    out.put8(f.table);
    out.zeros(1);
    out.put16(port::to10(f.out_port).unwrap_or(0xffff));
}

// SPDX-License-Identifier: Apache-2.0
//! Instructions (§7.2.4).

use super::action::{decode_actions, encode_actions};
use crate::wire::{Put, Reader, Result};
use crate::{Error, Instructions};

const GOTO_TABLE: u16 = 1;
const WRITE_METADATA: u16 = 2;
const WRITE_ACTIONS: u16 = 3;
const APPLY_ACTIONS: u16 = 4;
const CLEAR_ACTIONS: u16 = 5;
const METER: u16 = 6;
const EXPERIMENTER: u16 = 0xffff;

/// All of `r`.
pub(super) fn decode_instructions(r: &mut Reader<'_>) -> Result<Instructions> {
    let mut all = Instructions::default();
    while !r.is_empty() {
        decode_instruction(r, &mut all)?;
    }
    Ok(all)
}

fn decode_instruction(r: &mut Reader<'_>, all: &mut Instructions) -> Result<()> {
    let here = *r;
    let (kind, length) = (r.u16()?, usize::from(r.u16()?));
    let long = |wanted: usize| {
        let error = Error::BAD_INSTRUCTION_BAD_LEN;
        here.bad(
            error,
            "length of an instruction",
            wanted as u64,
            length as u64,
        )
    };
    if length < 8 || !length.is_multiple_of(8) {
        return Err(long(length.next_multiple_of(8).max(8)));
    }
    if length - 4 > r.left() {
        return Err(long(r.left() + 4));
    }
    let mut body = r.part(length - 4, Error::BAD_INSTRUCTION_BAD_LEN)?;
    let exactly = |wanted: usize| {
        if length == wanted {
            Ok(())
        } else {
            Err(long(wanted))
        }
    };
    // §5.9: at most one of each type. 1.3 has no code for it (1.4: DUP_INST): it is not a list that can be carried out
    let once = |there: bool| {
        if there {
            Err(here.bad(
                Error::BAD_INSTRUCTION_UNSUP_INST,
                "instructions of a type",
                1,
                2,
            ))
        } else {
            Ok(())
        }
    };
    match kind {
        GOTO_TABLE => {
            exactly(8)?;
            once(all.goto.is_some())?;
            all.goto = Some(body.u8()?);
        }
        WRITE_METADATA => {
            exactly(24)?;
            once(all.metadata.is_some())?;
            body.skip(4)?;
            all.metadata = Some((body.u64()?, body.u64()?));
        }
        WRITE_ACTIONS | APPLY_ACTIONS => {
            let list = if kind == WRITE_ACTIONS {
                &mut all.write
            } else {
                &mut all.apply
            };
            once(list.is_some())?;
            body.skip(4)?;
            let mut actions = body.part(length - 8, Error::BAD_ACTION_BAD_LEN)?;
            *list = Some(decode_actions(&mut actions, false)?);
        }
        CLEAR_ACTIONS => {
            exactly(8)?;
            once(all.clear)?;
            all.clear = true;
        }
        METER => {
            exactly(8)?;
            once(all.meter.is_some())?;
            all.meter = Some(body.u32()?);
        }
        EXPERIMENTER => {
            let whose = u64::from(body.u32()?);
            let error = Error::BAD_INSTRUCTION_BAD_EXPERIMENTER;
            return Err(here.bad(error, "experimenter of an instruction", None, whose));
        }
        _ => {
            let error = Error::BAD_INSTRUCTION_UNKNOWN_INST;
            return Err(here.bad(error, "type of an instruction", None, u64::from(kind)));
        }
    }
    Ok(())
}

/// All, in the order in which they are carried out (§5.9).
pub(super) fn encode_instructions(all: &Instructions, out: &mut Vec<u8>) {
    if let Some(meter) = all.meter {
        out.put16(METER);
        out.put16(8);
        out.put32(meter);
    }
    if let Some(actions) = &all.apply {
        list(APPLY_ACTIONS, actions, out);
    }
    if all.clear {
        list(CLEAR_ACTIONS, &[], out);
    }
    if let Some(actions) = &all.write {
        list(WRITE_ACTIONS, actions, out);
    }
    if let Some((value, mask)) = all.metadata {
        out.put16(WRITE_METADATA);
        out.put16(24);
        out.zeros(4);
        out.put64(value);
        out.put64(mask);
    }
    if let Some(table) = all.goto {
        out.put16(GOTO_TABLE);
        out.put16(8);
        out.put8(table);
        out.zeros(3);
    }
}

fn list(kind: u16, actions: &[crate::Action], out: &mut Vec<u8>) {
    let start = out.len();
    out.put16(kind);
    out.put16(0);
    out.zeros(4);
    encode_actions(actions, out);
    out.put_len(start + 2, start);
}

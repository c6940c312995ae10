// SPDX-License-Identifier: Apache-2.0
//! `ofp_table_features` (§7.3.5.5).

use super::oxm::{decode_ids, encode_ids};
use crate::Error;
use crate::model::{Property, TableFeatures};
use crate::wire::{Put, Reader, Result};

const INSTRUCTIONS: u16 = 0;
const NEXT_TABLES: u16 = 2;
const WRITE_ACTIONS: u16 = 4;
const APPLY_ACTIONS: u16 = 6;
const MATCH: u16 = 8;
const WILDCARDS: u16 = 10;
const WRITE_SET_FIELD: u16 = 12;
const APPLY_SET_FIELD: u16 = 14;
/// An odd number is that of the table-miss flow alone.
const MISS: u16 = 1;
/// Bytes of `ofp_table_features` before its properties.
const FIXED: usize = 64;
const BAD_LEN: Error = Error::TABLE_FEATURES_FAILED_BAD_LEN;

/// All tables of a request.
pub(super) fn decode_tables(r: &mut Reader<'_>) -> Result<Vec<TableFeatures>> {
    r.all(decode_table)
}

fn decode_table(r: &mut Reader<'_>) -> Result<TableFeatures> {
    let here = *r;
    let wrong = |wanted: usize, got: usize| {
        here.bad(
            BAD_LEN,
            "length of a table's features",
            wanted as u64,
            got as u64,
        )
    };
    if r.left() < FIXED {
        return Err(wrong(FIXED, r.left()));
    }
    let length = usize::from(r.u16()?);
    if length < FIXED || !length.is_multiple_of(8) {
        return Err(wrong(length.next_multiple_of(8).max(FIXED), length));
    }
    if length - 2 > r.left() {
        return Err(wrong(r.left() + 2, length));
    }
    let mut body = r.part(length - 2, BAD_LEN)?;
    let table = body.u8()?;
    body.skip(5)?;
    let name = text(body.take(32)?);
    let mut seen = 0u32;
    Ok(TableFeatures {
        table,
        name,
        metadata_match: body.u64()?,
        metadata_write: body.u64()?,
        config: body.u32()?,
        max_entries: body.u32()?,
        properties: body.all(|r| decode_property(r, &mut seen))?,
    })
}

/// What ends with a zero, the last byte at the latest; bytes that are no text are question marks, one each.
fn text(field: &[u8]) -> String {
    let field = field.split_last().map_or(field, |(_, head)| head);
    let field = field.split(|&b| b == 0).next().unwrap_or_default();
    match std::str::from_utf8(field) {
        Ok(text) => text.to_owned(),
        Err(_) => field
            .iter()
            .map(|&b| if b.is_ascii() { char::from(b) } else { '?' })
            .collect(),
    }
}

fn decode_property(r: &mut Reader<'_>, seen: &mut u32) -> Result<Property> {
    let here = *r;
    let start = r.at();
    let (kind, length) = (r.u16()?, usize::from(r.u16()?));
    // §7.3.5.5.2: without the padding that follows
    if length < 4 || length - 4 > r.left() {
        let error = BAD_LEN;
        let most = (r.left() + 4) as u64;
        return Err(here.bad(error, "length of a table's property", most, length as u64));
    }
    let mut body = r.part(length - 4, BAD_LEN)?;
    r.pad(start);
    let miss = kind & MISS != 0;
    let write = matches!(kind & !MISS, WRITE_ACTIONS | WRITE_SET_FIELD);
    let property = match kind {
        MATCH => Property::Match(decode_ids(&mut body)?),
        WILDCARDS => Property::Wildcards(decode_ids(&mut body)?),
        _ => match kind & !MISS {
            INSTRUCTIONS => Property::Instructions {
                miss,
                kinds: decode_kinds(&mut body)?,
            },
            NEXT_TABLES => Property::NextTables {
                miss,
                tables: body.rest().to_vec(),
            },
            WRITE_ACTIONS | APPLY_ACTIONS => Property::Actions {
                miss,
                write,
                kinds: decode_kinds(&mut body)?,
            },
            WRITE_SET_FIELD | APPLY_SET_FIELD => Property::SetField {
                miss,
                write,
                fields: decode_ids(&mut body)?,
            },
            _ => {
                let error = Error::TABLE_FEATURES_FAILED_BAD_TYPE;
                return Err(here.bad(error, "type of a table's property", None, u64::from(kind)));
            }
        },
    };
    // §7.3.5.5.2: each at most once; 1.3 has no code for two
    let bit = 1u32 << kind;
    if *seen & bit != 0 {
        let error = Error::TABLE_FEATURES_FAILED_BAD_TYPE;
        return Err(here.bad(error, "properties of a type", 1, 2));
    }
    *seen |= bit;
    Ok(property)
}

/// Headers of actions or instructions without their bodies; an experimenter's has 4 bytes more.
fn decode_kinds(r: &mut Reader<'_>) -> Result<Vec<u16>> {
    let mut kinds = Vec::new();
    while !r.is_empty() {
        let here = *r;
        let (kind, length) = (r.u16()?, usize::from(r.u16()?));
        if length < 4 || length - 4 > r.left() {
            let most = (r.left() + 4) as u64;
            return Err(here.bad(BAD_LEN, "length in a table's property", most, length as u64));
        }
        r.skip(length - 4)?;
        kinds.push(kind);
    }
    Ok(kinds)
}

pub(super) fn encode(f: &TableFeatures, out: &mut Vec<u8>) {
    let start = out.len();
    out.put16(0);
    out.put8(f.table);
    out.zeros(5);
    out.text(&f.name, 32);
    out.put64(f.metadata_match);
    out.put64(f.metadata_write);
    out.put32(f.config);
    out.put32(f.max_entries);
    for property in &f.properties {
        encode_property(property, out);
    }
    out.put_len(start, start);
}

fn encode_property(property: &Property, out: &mut Vec<u8>) {
    let which = |miss: bool, kind: u16| kind | if miss { MISS } else { 0 };
    let start = out.len();
    let kind = match property {
        Property::Instructions { miss, .. } => which(*miss, INSTRUCTIONS),
        Property::NextTables { miss, .. } => which(*miss, NEXT_TABLES),
        Property::Actions { miss, write, .. } => {
            which(*miss, if *write { WRITE_ACTIONS } else { APPLY_ACTIONS })
        }
        Property::Match(_) => MATCH,
        Property::Wildcards(_) => WILDCARDS,
        Property::SetField { miss, write, .. } => which(
            *miss,
            if *write {
                WRITE_SET_FIELD
            } else {
                APPLY_SET_FIELD
            },
        ),
    };
    out.put16(kind);
    out.put16(0);
    match property {
        Property::Instructions { kinds, .. } | Property::Actions { kinds, .. } => {
            for &kind in kinds {
                out.put16(kind);
                out.put16(4);
            }
        }
        Property::NextTables { tables, .. } => out.put(tables),
        Property::Match(fields)
        | Property::Wildcards(fields)
        | Property::SetField { fields, .. } => encode_ids(fields, out),
    }
    out.put_len(start + 2, start);
    out.pad8(start);
}

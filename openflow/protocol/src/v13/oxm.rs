// SPDX-License-Identifier: Apache-2.0
//! `ofp_match` and the TLVs in it (§7.2.3).

use crate::matching::asked;
use crate::model::FieldId;
use crate::oxm::{CLASS_BASIC, CLASS_EXPERIMENTER, VID_PRESENT, prerequisites_met};
use crate::wire::{Put, Reader, Result};
use crate::{Error, Field, Match, Oxm};

/// `OFPMT_OXM`.
const OXM: u16 = 1;

/// A TLV's header (§7.2.3.2): class, field, whether a mask follows, bytes that follow.
pub(super) struct Tlv {
    pub class: u16,
    pub number: u8,
    pub masked: bool,
    pub length: u8,
}

pub(super) fn header(r: &mut Reader<'_>) -> Result<Tlv> {
    let (class, field, length) = (r.u16()?, r.u8()?, r.u8()?);
    Ok(Tlv {
        class,
        number: field >> 1,
        masked: field & 1 != 0,
        length,
    })
}

/// `ofp_match` with its padding.
pub(super) fn decode_match(r: &mut Reader<'_>) -> Result<Match> {
    let start = r.at();
    let here = *r;
    let (kind, length) = (r.u16()?, r.u16()?);
    if kind != OXM {
        // §7.2.3.1: the standard match is deprecated
        return Err(here.bad(
            Error::BAD_MATCH_BAD_TYPE,
            "type of a match",
            1,
            u64::from(kind),
        ));
    }
    let short = here.bad(
        Error::BAD_MATCH_BAD_LEN,
        "length of a match",
        4,
        u64::from(length),
    );
    let inner = usize::from(length).checked_sub(4).ok_or(short)?;
    if inner > r.left() {
        let most = (r.left() + 4) as u64;
        return Err(here.bad(
            Error::BAD_MATCH_BAD_LEN,
            "length of a match",
            most,
            u64::from(length),
        ));
    }
    let mut tlvs = r.part(inner, Error::BAD_MATCH_BAD_LEN)?;
    r.pad(start);
    let mut fields = Vec::new();
    let mut seen = 0u64;
    while !tlvs.is_empty() {
        if let Some(oxm) = decode_field(&mut tlvs, &mut seen, &fields)? {
            fields.push(oxm);
        }
    }
    Ok(Match {
        fields,
        exact: false,
    })
}

/// One field; `None` if its mask has no bit, which is as if it were not there (§7.2.3.5).
fn decode_field(r: &mut Reader<'_>, seen: &mut u64, before: &[Oxm]) -> Result<Option<Oxm>> {
    let here = *r;
    let tlv = header(r)?;
    let field = Field::of(tlv.number).filter(|_| tlv.class == CLASS_BASIC);
    let Some(field) = field else {
        // §7.2.3.3, §7.2.3.6: a field that is not known, of whatever class
        let got = u64::from(tlv.class) << 16 | u64::from(tlv.number);
        return Err(here.bad(Error::BAD_MATCH_BAD_FIELD, "field of a match", None, got));
    };
    if tlv.masked && !field.maskable() {
        let (wanted, length) = (field.bytes() as u64, u64::from(tlv.length));
        return Err(here.bad(Error::BAD_MATCH_BAD_MASK, field.name(), wanted, length));
    }
    let bytes = field.bytes();
    let wanted = if tlv.masked { 2 * bytes } else { bytes };
    if usize::from(tlv.length) != wanted {
        let got = u64::from(tlv.length);
        return Err(here.bad(Error::BAD_MATCH_BAD_LEN, field.name(), wanted as u64, got));
    }
    let value = r.number(bytes)?;
    let mask = if tlv.masked {
        r.number(bytes)?
    } else {
        field.all_ones()
    };
    let low = |v: u128| v as u64;
    if mask & !field.all_ones() != 0 {
        let most = low(field.all_ones());
        return Err(here.bad(Error::BAD_MATCH_BAD_MASK, field.name(), most, low(mask)));
    }
    if value & !field.all_ones() != 0 {
        let most = low(field.all_ones());
        return Err(here.bad(Error::BAD_MATCH_BAD_VALUE, field.name(), most, low(value)));
    }
    if value & !mask != 0 {
        // §7.2.3.5: a bit of the value that the mask does not cover
        return Err(here.bad(
            Error::BAD_MATCH_BAD_WILDCARDS,
            field.name(),
            low(value & mask),
            low(value),
        ));
    }
    let present = u128::from(VID_PRESENT);
    if field == Field::VlanVid && mask == field.all_ones() && value & present == 0 && value != 0 {
        // §7.2.3.7, table 13: a VLAN without the bit that says that there is one
        return Err(here.bad(
            Error::BAD_MATCH_BAD_VALUE,
            field.name(),
            low(value | present),
            low(value),
        ));
    }
    let bit = 1u64 << field as u8;
    if *seen & bit != 0 {
        // §7.2.3.4: "a given field may appear at most once"
        return Err(here.bad(Error::BAD_MATCH_DUP_FIELD, field.name(), None, low(value)));
    }
    *seen |= bit;
    if mask == 0 {
        return Ok(None);
    }
    if !prerequisites_met(field, |f| asked(before, f)) {
        // §7.2.3.6: what it hangs on has to come before it
        return Err(here.bad(Error::BAD_MATCH_BAD_PREREQ, field.name(), None, low(value)));
    }
    Ok(Some(Oxm { field, value, mask }))
}

pub(super) fn put_header(field: Field, masked: bool, out: &mut Vec<u8>) {
    let bytes = field.bytes() as u8;
    out.put16(CLASS_BASIC);
    out.put8((field as u8) << 1 | u8::from(masked));
    out.put8(if masked { 2 * bytes } else { bytes });
}

/// Fields as `ofp_match`, with its padding.
pub(super) fn encode_match(fields: &[Oxm], out: &mut Vec<u8>) {
    let start = out.len();
    out.put16(OXM);
    out.put16(0);
    for oxm in fields {
        let masked = oxm.mask != oxm.field.all_ones();
        put_header(oxm.field, masked, out);
        out.put_number(oxm.value, oxm.field.bytes());
        if masked {
            out.put_number(oxm.mask, oxm.field.bytes());
        }
    }
    out.put_len(start + 2, start);
    out.pad8(start);
}

/// The field of a set-field action and its value (§7.2.5.10 has the errors).
pub(super) fn decode_set(r: &mut Reader<'_>) -> Result<(Field, u128)> {
    let here = *r;
    let tlv = header(r)?;
    let field = Field::of(tlv.number).filter(|f| tlv.class == CLASS_BASIC && f.settable());
    let Some(field) = field.filter(|_| !tlv.masked) else {
        let got = u64::from(tlv.class) << 16 | u64::from(tlv.number) << 1 | u64::from(tlv.masked);
        return Err(here.bad(Error::BAD_ACTION_BAD_SET_TYPE, "field to set", None, got));
    };
    let bytes = field.bytes();
    if usize::from(tlv.length) != bytes {
        let got = u64::from(tlv.length);
        return Err(here.bad(
            Error::BAD_ACTION_BAD_SET_LEN,
            field.name(),
            bytes as u64,
            got,
        ));
    }
    let value = r.number(bytes)?;
    let present = u128::from(VID_PRESENT);
    let tagless = field == Field::VlanVid && value & present == 0;
    if value & !field.all_ones() != 0 || tagless {
        let most = field.all_ones() as u64;
        return Err(here.bad(
            Error::BAD_ACTION_BAD_SET_ARGUMENT,
            field.name(),
            most,
            value as u64,
        ));
    }
    Ok((field, value))
}

/// Fields of a table's features: headers without values (§7.3.5.5.2). An experimenter's is followed by its number.
pub(super) fn decode_ids(r: &mut Reader<'_>) -> Result<Vec<FieldId>> {
    let mut fields = Vec::new();
    while !r.is_empty() {
        let here = *r;
        let tlv = header(r)?;
        let field = Field::of(tlv.number).filter(|_| tlv.class == CLASS_BASIC);
        let Some(field) = field else {
            if tlv.class == CLASS_EXPERIMENTER {
                r.skip(4)?;
            }
            let got = u64::from(tlv.class) << 16 | u64::from(tlv.number);
            let error = Error::TABLE_FEATURES_FAILED_BAD_ARGUMENT;
            return Err(here.bad(error, "field of a table", None, got));
        };
        fields.push(FieldId {
            field,
            masked: tlv.masked,
        });
    }
    Ok(fields)
}

pub(super) fn encode_ids(fields: &[FieldId], out: &mut Vec<u8>) {
    for id in fields {
        put_header(id.field, id.masked, out);
    }
}

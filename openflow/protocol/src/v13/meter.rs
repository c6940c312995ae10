// SPDX-License-Identifier: Apache-2.0
//! `ofp_meter_mod` (§7.3.4.4) and the meters' statistics (§7.3.5.12 to §7.3.5.14).

use crate::Error;
use crate::model::{
    Band, BandType, METER_ALL, METER_CONTROLLER, METER_MAX, METER_SLOWPATH, MeterCommand,
    MeterConfig, MeterFeatures, MeterMod, MeterStats, meter_flags,
};
use crate::wire::{Put, Reader, Result};

const DROP: u16 = 1;
const DSCP_REMARK: u16 = 2;
/// Bytes of a band of either type.
const BAND: u16 = 16;

pub(super) fn decode(mut r: Reader<'_>) -> Result<MeterMod> {
    let here = r;
    let (command, flags, meter) = (r.u16()?, r.u16()?, r.u32()?);
    let Some(command) = u8::try_from(command).ok().and_then(MeterCommand::of) else {
        let error = Error::METER_MOD_FAILED_BAD_COMMAND;
        return Err(here.bad(error, "command of a meter", 2, u64::from(command)));
    };
    // §7.3.4.4: numbers begin with 1 and end with OFPM_MAX; two have a meaning, and all are named by a delete alone
    let known = (1..=METER_MAX).contains(&meter)
        || matches!(meter, METER_SLOWPATH | METER_CONTROLLER)
        || (meter == METER_ALL && command == MeterCommand::Delete);
    if !known {
        let error = Error::METER_MOD_FAILED_INVALID_METER;
        return Err(here.bad(
            error,
            "number of a meter",
            u64::from(METER_MAX),
            u64::from(meter),
        ));
    }
    let deletes = command == MeterCommand::Delete;
    let both = meter_flags::KBPS | meter_flags::PKTPS;
    if !deletes && (flags & !meter_flags::ALL != 0 || flags & both == both) {
        let (most, got) = (
            u64::from(meter_flags::ALL & !meter_flags::PKTPS),
            u64::from(flags),
        );
        return Err(here.bad(
            Error::METER_MOD_FAILED_BAD_FLAGS,
            "flags of a meter",
            most,
            got,
        ));
    }
    let mut bands = Vec::new();
    while !r.is_empty() && !deletes {
        bands.push(decode_band(&mut r)?);
    }
    Ok(MeterMod {
        command,
        flags,
        meter,
        bands,
    })
}

fn decode_band(r: &mut Reader<'_>) -> Result<Band> {
    let here = *r;
    let (kind, length) = (r.u16()?, r.u16()?);
    let known = matches!(kind, DROP | DSCP_REMARK);
    if !known {
        // an experimenter's as well: there is none that is known
        let error = Error::METER_MOD_FAILED_BAD_BAND;
        return Err(here.bad(error, "type of a band", None, u64::from(kind)));
    }
    if length != BAND {
        let error = Error::BAD_REQUEST_BAD_LEN;
        return Err(here.bad(
            error,
            "length of a band",
            u64::from(BAND),
            u64::from(length),
        ));
    }
    let (rate, burst) = (r.u32()?, r.u32()?);
    let level = r.u8()?;
    r.skip(3)?;
    let kind = if kind == DROP {
        BandType::Drop
    } else {
        BandType::DscpRemark(level)
    };
    Ok(Band { rate, burst, kind })
}

fn encode_bands(bands: &[Band], out: &mut Vec<u8>) {
    for band in bands {
        let (kind, level) = match band.kind {
            BandType::Drop => (DROP, 0),
            BandType::DscpRemark(level) => (DSCP_REMARK, level),
        };
        out.put16(kind);
        out.put16(BAND);
        out.put32(band.rate);
        out.put32(band.burst);
        out.put8(level);
        out.zeros(3);
    }
}

pub(super) fn encode(m: &MeterMod, out: &mut Vec<u8>) {
    out.put16(m.command as u16);
    out.put16(m.flags);
    out.put32(m.meter);
    encode_bands(&m.bands, out);
}

pub(super) fn encode_config(m: &MeterConfig, out: &mut Vec<u8>) {
    let start = out.len();
    out.put16(0);
    out.put16(m.flags);
    out.put32(m.meter);
    encode_bands(&m.bands, out);
    out.put_len(start, start);
}

pub(super) fn encode_stats(s: &MeterStats, out: &mut Vec<u8>) {
    let start = out.len();
    out.put32(s.meter);
    out.put16(0);
    out.zeros(6);
    out.put32(s.flows);
    out.put64(s.packets);
    out.put64(s.bytes);
    out.put32(s.lifetime.sec);
    out.put32(s.lifetime.nsec);
    for &(packets, bytes) in &s.bands {
        out.put64(packets);
        out.put64(bytes);
    }
    out.put_len(start + 4, start);
}

pub(super) fn encode_features(f: &MeterFeatures, out: &mut Vec<u8>) {
    out.put32(f.max_meters);
    out.put32(f.band_types);
    out.put32(f.capabilities);
    out.put8(f.max_bands);
    out.put8(f.max_color);
    out.zeros(2);
}

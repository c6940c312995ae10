// SPDX-License-Identifier: Apache-2.0
//! `ofp_group_mod` (§7.3.4.2) and the groups' statistics (§7.3.5.9 to §7.3.5.11).

use super::action::{decode_actions, encode_actions};
use crate::Error;
use crate::model::{
    Bucket, GROUP_ALL, GROUP_MAX, GroupCommand, GroupDesc, GroupFeatures, GroupMod, GroupStats,
    GroupType,
};
use crate::wire::{Put, Reader, Result};

pub(super) fn decode(mut r: Reader<'_>) -> Result<GroupMod> {
    let here = r;
    let (command, kind) = (r.u16()?, r.u8()?);
    r.skip(1)?;
    let group = r.u32()?;
    let Some(command) = u8::try_from(command).ok().and_then(GroupCommand::of) else {
        let error = Error::GROUP_MOD_FAILED_BAD_COMMAND;
        return Err(here.bad(error, "command of a group", 2, u64::from(command)));
    };
    let Some(kind) = GroupType::of(kind) else {
        let error = Error::GROUP_MOD_FAILED_BAD_TYPE;
        return Err(here.bad(error, "type of a group", 3, u64::from(kind)));
    };
    // §7.3.4.2: numbers above are reserved; all groups are named by a delete alone
    if group > GROUP_MAX && !(group == GROUP_ALL && command == GroupCommand::Delete) {
        let error = Error::GROUP_MOD_FAILED_INVALID_GROUP;
        return Err(here.bad(
            error,
            "number of a group",
            u64::from(GROUP_MAX),
            u64::from(group),
        ));
    }
    let buckets = r.all(decode_bucket)?;
    Ok(GroupMod {
        command,
        kind,
        group,
        buckets,
    })
}

fn decode_bucket(r: &mut Reader<'_>) -> Result<Bucket> {
    let here = *r;
    let wrong = |wanted: usize, got: usize| {
        let error = Error::GROUP_MOD_FAILED_BAD_BUCKET;
        here.bad(error, "length of a bucket", wanted as u64, got as u64)
    };
    if r.left() < 16 {
        return Err(wrong(16, r.left()));
    }
    let length = usize::from(r.u16()?);
    if length < 16 || !length.is_multiple_of(8) {
        return Err(wrong(length.next_multiple_of(8).max(16), length));
    }
    if length - 2 > r.left() {
        return Err(wrong(r.left() + 2, length));
    }
    let (weight, watch_port, watch_group) = (r.u16()?, r.u32()?, r.u32()?);
    r.skip(4)?;
    let mut actions = r.part(length - 16, Error::BAD_ACTION_BAD_LEN)?;
    Ok(Bucket {
        weight,
        watch_port,
        watch_group,
        actions: decode_actions(&mut actions, false)?,
    })
}

fn encode_buckets(buckets: &[Bucket], out: &mut Vec<u8>) {
    for b in buckets {
        let start = out.len();
        out.put16(0);
        out.put16(b.weight);
        out.put32(b.watch_port);
        out.put32(b.watch_group);
        out.zeros(4);
        encode_actions(&b.actions, out);
        out.put_len(start, start);
    }
}

pub(super) fn encode(m: &GroupMod, out: &mut Vec<u8>) {
    out.put16(m.command as u16);
    out.put8(m.kind as u8);
    out.zeros(1);
    out.put32(m.group);
    encode_buckets(&m.buckets, out);
}

pub(super) fn encode_desc(d: &GroupDesc, out: &mut Vec<u8>) {
    let start = out.len();
    out.put16(0);
    out.put8(d.kind as u8);
    out.zeros(1);
    out.put32(d.group);
    encode_buckets(&d.buckets, out);
    out.put_len(start, start);
}

pub(super) fn encode_stats(s: &GroupStats, out: &mut Vec<u8>) {
    let start = out.len();
    out.put16(0);
    out.zeros(2);
    out.put32(s.group);
    out.put32(s.references);
    out.zeros(4);
    out.put64(s.packets);
    out.put64(s.bytes);
    out.put32(s.lifetime.sec);
    out.put32(s.lifetime.nsec);
    for &(packets, bytes) in &s.buckets {
        out.put64(packets);
        out.put64(bytes);
    }
    out.put_len(start, start);
}

pub(super) fn encode_features(f: &GroupFeatures, out: &mut Vec<u8>) {
    out.put32(f.types);
    out.put32(f.capabilities);
    for n in f.max_groups.iter().chain(&f.actions) {
        out.put32(*n);
    }
}

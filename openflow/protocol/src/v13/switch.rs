// SPDX-License-Identifier: Apache-2.0
//! Features (§7.3.1), config (§7.3.2), `ofp_table_mod` (§7.3.3), roles (§7.3.9), async filters (§7.3.10).

use crate::Error;
use crate::model::{Async, Config, Features, Fragments, Role, RoleRequest, TableMod};
use crate::wire::{Put, Reader, Result};

pub(super) fn encode_features(f: &Features, out: &mut Vec<u8>) {
    out.put64(f.datapath);
    out.put32(f.buffers);
    out.put8(f.tables);
    out.put8(f.auxiliary);
    out.zeros(2);
    out.put32(f.capabilities);
    out.zeros(4);
}

/// 1.0's is the same.
pub(crate) fn decode_config(mut r: Reader<'_>) -> Result<Config> {
    let here = r;
    let (flags, miss_send_len) = (r.u16()?, r.u16()?);
    r.end("bytes after a config")?;
    let Some(fragments) = Fragments::of(flags) else {
        let error = Error::SWITCH_CONFIG_FAILED_BAD_FLAGS;
        return Err(here.bad(error, "flags of a config", 2, u64::from(flags)));
    };
    Ok(Config {
        fragments,
        miss_send_len,
    })
}

pub(crate) fn encode_config(c: Config, out: &mut Vec<u8>) {
    out.put16(c.fragments as u16);
    out.put16(c.miss_send_len);
}

pub(super) fn decode_table_mod(mut r: Reader<'_>) -> Result<TableMod> {
    let table = r.u8()?;
    r.skip(3)?;
    let here = r;
    let config = r.u32()?;
    r.end("bytes after a table's config")?;
    // §7.3.3: OFPTC_DEPRECATED_MASK is all there is
    if config > 3 {
        let error = Error::TABLE_MOD_FAILED_BAD_CONFIG;
        return Err(here.bad(error, "config of a table", 3, u64::from(config)));
    }
    Ok(TableMod { table, config })
}

pub(super) fn encode_table_mod(m: TableMod, out: &mut Vec<u8>) {
    out.put8(m.table);
    out.zeros(3);
    out.put32(m.config);
}

pub(super) fn decode_role(mut r: Reader<'_>) -> Result<RoleRequest> {
    let here = r;
    let role = r.u32()?;
    r.skip(4)?;
    let generation = r.u64()?;
    r.end("bytes after a role")?;
    let Some(role) = Role::of(role) else {
        let error = Error::ROLE_REQUEST_FAILED_BAD_ROLE;
        return Err(here.bad(error, "role", 3, u64::from(role)));
    };
    Ok(RoleRequest { role, generation })
}

pub(super) fn encode_role(m: RoleRequest, out: &mut Vec<u8>) {
    out.put32(m.role as u32);
    out.zeros(4);
    out.put64(m.generation);
}

pub(super) fn decode_async(mut r: Reader<'_>) -> Result<Async> {
    let mut pair = || Ok([r.u32()?, r.u32()?]);
    let all = Async {
        packet_in: pair()?,
        port_status: pair()?,
        flow_removed: pair()?,
    };
    r.end("bytes after an async filter")?;
    Ok(all)
}

pub(super) fn encode_async(a: Async, out: &mut Vec<u8>) {
    for pair in [a.packet_in, a.port_status, a.flow_removed] {
        out.put32(pair[0]);
        out.put32(pair[1]);
    }
}

//! Tests of the firmware as a driver sees it: descriptors in, completions out.

mod acl;
mod defaults;
mod faulty;
mod fill;
mod fixed;
mod flow_class;
mod flow_egress;
mod flows;
mod full;
mod lag;
mod lease;
mod mdb;
mod membership;
mod model;
mod processor;
mod scenarios;
mod turns;
mod warm;

use crate::*;
use zerocopy::{FromBytes, IntoBytes};

pub(super) fn chip(profile: &str) -> Firmware {
    Firmware::new(Profile::builtin(profile).unwrap()).unwrap()
}

pub(super) fn cmd(op: u16, cls: u16) -> raw::tnd_cmd {
    raw::tnd_cmd {
        op,
        cls,
        out_size: 1 << 20,
        ..Default::default()
    }
}

/// One command; the accounting must hold after it.
pub(super) fn run(fw: &mut Firmware, c: &raw::tnd_cmd, body: &[u8]) -> (raw::tnd_cpl, Vec<u8>) {
    let mut out = Vec::new();
    let cpl = fw.execute(c, body, &mut out, 1);
    assert_eq!(cpl.out_len as usize, out.len());
    (cpl, out)
}

pub(super) fn op<T: IntoBytes + zerocopy::Immutable>(
    fw: &mut Firmware,
    op: u16,
    cls: u16,
    body: &T,
) -> raw::tnd_cpl {
    run(fw, &cmd(op, cls), body.as_bytes()).0
}

pub(super) fn create<T: IntoBytes + zerocopy::Immutable>(
    fw: &mut Firmware,
    cls: u16,
    body: &T,
) -> u16 {
    op(fw, raw::TND_OP_CREATE, cls, body).status
}

pub(super) fn deltas(cpl: &raw::tnd_cpl) -> Vec<(u16, i32)> {
    cpl.delta
        .iter()
        .take(cpl.delta_count.into())
        .map(|d| (d.pool, d.slots as i32))
        .collect()
}

/// All records of a dump, over as many calls as it takes with `out_size` bytes each.
pub(super) fn dump<T: FromBytes>(
    fw: &mut Firmware,
    dump_op: u16,
    cls: u16,
    out_size: u32,
) -> Vec<T> {
    let mut c = raw::tnd_cmd {
        out_size,
        ..cmd(dump_op, cls)
    };
    let mut all = Vec::new();
    loop {
        let (cpl, out) = run(fw, &c, &[]);
        assert_eq!(cpl.status, raw::TND_ST_OK);
        let size = size_of::<T>();
        assert_eq!(out.len(), size * cpl.out_count as usize);
        all.extend(out.chunks(size).map(|b| T::read_from_bytes(b).unwrap()));
        if cpl.result == 0 {
            return all;
        }
        c.arg = cpl.result;
    }
}

pub(super) fn pool(fw: &Firmware, id: PoolId) -> raw::tnd_pool {
    fw.pool_row(id)
}

/// What the chip says of a kind of objects.
pub(super) fn cost(rows: &[raw::tnd_class_cost], name: &str) -> raw::tnd_class_cost {
    let named = |r: &&raw::tnd_class_cost| tandem_abi::get_name(&r.name) == name;
    *rows.iter().find(named).unwrap()
}

fn size<T>() -> u16 {
    size_of::<T>() as u16
}

pub(super) fn vlan(fid: u16) -> raw::tnd_vlan {
    raw::tnd_vlan {
        struct_size: size::<raw::tnd_vlan>(),
        fid,
        ..Default::default()
    }
}
pub(super) fn member(fid: u16, port: u16, vid: u16) -> raw::tnd_vlan_member {
    raw::tnd_vlan_member {
        struct_size: size::<raw::tnd_vlan_member>(),
        fid,
        port,
        vid,
        ..Default::default()
    }
}
pub(super) fn fdb(fid: u16, mac: u32, port: u16) -> raw::tnd_fdb {
    let [a, b, c, d] = mac.to_be_bytes();
    raw::tnd_fdb {
        struct_size: size::<raw::tnd_fdb>(),
        fid,
        mac: [2, 0, a, b, c, d],
        port,
        ..Default::default()
    }
}
pub(super) fn vrf(vrf: u16) -> raw::tnd_vrf {
    raw::tnd_vrf {
        struct_size: size::<raw::tnd_vrf>(),
        vrf,
        flags: 0,
    }
}
pub(super) fn rif(rif: u16, vrf: u16, port: u16) -> raw::tnd_rif {
    raw::tnd_rif {
        struct_size: size::<raw::tnd_rif>(),
        rif,
        vrf,
        kind: raw::TND_RIF_PORT,
        port,
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        ..Default::default()
    }
}
pub(super) fn rif_fid(id: u16, fid: u16) -> raw::tnd_rif {
    raw::tnd_rif {
        kind: raw::TND_RIF_FID,
        fid,
        port: 0,
        ..rif(id, 0, 0)
    }
}
pub(super) fn neigh4(rif: u16, addr: u32) -> raw::tnd_neigh {
    let mut a = [0; 16];
    a[..4].copy_from_slice(&addr.to_be_bytes());
    raw::tnd_neigh {
        struct_size: size::<raw::tnd_neigh>(),
        rif,
        family: raw::TND_AF_INET,
        mac: [2, 0, 0, 0, 0, 9],
        addr: a,
        ..Default::default()
    }
}
pub(super) fn neigh6(rif: u16, addr: u128) -> raw::tnd_neigh {
    raw::tnd_neigh {
        family: raw::TND_AF_INET6,
        addr: addr.to_be_bytes(),
        ..neigh4(rif, 0)
    }
}
pub(super) fn nexthop(id: u32, rif: u16) -> raw::tnd_nexthop {
    raw::tnd_nexthop {
        struct_size: size::<raw::tnd_nexthop>(),
        rif,
        nexthop: id,
        mac: [2, 0, 0, 0, 0, 7],
        ..Default::default()
    }
}
pub(super) fn nhg(id: u32, members: &[(u32, u32)]) -> Vec<u8> {
    let head = raw::tnd_nhg {
        struct_size: size::<raw::tnd_nhg>(),
        count: members.len() as u16,
        nhg: id,
        ..Default::default()
    };
    let mut b = head.as_bytes().to_vec();
    for (nexthop, weight) in members {
        b.extend(
            raw::tnd_nhg_member {
                nexthop: *nexthop,
                weight: *weight,
            }
            .as_bytes(),
        );
    }
    b
}
pub(super) fn route4(vrf: u16, addr: u32, plen: u8, target: Option<(u8, u32)>) -> raw::tnd_route {
    let mut a = [0; 16];
    a[..4].copy_from_slice(&addr.to_be_bytes());
    raw::tnd_route {
        struct_size: size::<raw::tnd_route>(),
        vrf,
        family: raw::TND_AF_INET,
        prefix_len: plen,
        action: if target.is_some() {
            raw::TND_ACT_FORWARD
        } else {
            raw::TND_ACT_TRAP
        },
        target_kind: target.map_or(raw::TND_RT_NONE, |t| t.0),
        target: target.map_or(0, |t| t.1),
        addr: a,
        ..Default::default()
    }
}
pub(super) fn route6(vrf: u16, addr: u128, plen: u8, target: Option<(u8, u32)>) -> raw::tnd_route {
    raw::tnd_route {
        family: raw::TND_AF_INET6,
        addr: addr.to_be_bytes(),
        ..route4(vrf, 0, plen, target)
    }
}

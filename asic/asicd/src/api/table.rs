//! The table memory, object by object: what the firmware's own DUMP gives, as JSON.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};
use tandem_abi::object::{Object, fixed, records};
use tandem_abi::{Status, raw};
use tandem_mgmt::types::Items;
use tandem_pipeline::state::{PortMask, ports_of};
use tandem_pipeline::trap::reason_name;

use super::acl;
use crate::asic::Asic;

/// Rows of one page at most.
const LIMIT: u32 = 500;
/// A table that can be read: objects of one class.
pub struct Table {
    /// In the path.
    pub name: &'static str,
    /// `TND_CLS_*`.
    cls: u16,
    /// Bytes of so many records at most.
    room: fn(usize) -> usize,
    /// The records of a DUMP.
    rows: fn(&[u8]) -> Vec<Value>,
}

macro_rules! tables {
    ($($name:literal: $record:ident $(with $most:expr)?, $row:expr;)*) => {
        /// All tables.
        pub static TABLES: &[Table] = &[$(Table {
            name: $name,
            cls: <raw::$record as Object>::CLASS,
            room: |rows| {
                // what follows a record: few have the most that there can be, but one must fit
                let (record, most) = (size_of::<raw::$record>(), 0 $(+ $most)?);
                (rows * (record + most.min(48))).max(record + most)
            },
            rows: |out| records::<raw::$record>(out).map(|(o, tail)| $row(&o, tail)).collect(),
        }),*];
    };
}

tables! {
    "fdb": tnd_fdb, fdb;
    "routes": tnd_route, route;
    "neighbours": tnd_neigh, neigh;
    "nexthops": tnd_nexthop, nexthop;
    "nhgs": tnd_nhg with 8 * raw::TND_NHG_MAX_MEMBERS, nhg;
    "rifs": tnd_rif, rif;
    "vlans": tnd_vlan, vlan;
    "members": tnd_vlan_member, member;
    "ports": tnd_port, port;
    "acls": tnd_acl_table, acl::table;
    "acl-rules": tnd_acl_entry, acl::rule;
    "acl-binds": tnd_acl_bind, acl::bind;
    "acl-counters": tnd_acl_counter, acl::counter;
    "acl-ranges": tnd_acl_range, acl::range;
    "policers": tnd_policer, acl::policer;
    "mirrors": tnd_mirror, acl::mirror;
    "lags": tnd_lag with 4 * raw::TND_LAG_MAX_MEMBERS, lag;
    "storms": tnd_storm, storm;
    "mdb": tnd_mdb with 4 * raw::TND_MDB_MAX_PORTS, mdb;
    "port-sets": tnd_port_set, port_set;
}

impl Table {
    /// By its name in the path.
    pub fn by_name(name: &str) -> Option<&'static Table> {
        TABLES.iter().find(|t| t.name == name)
    }
}

/// Runs one command of the firmware that only reads, as a driver would; its output and completion.
pub fn read(
    asic: &mut Asic,
    op: u16,
    cls: u16,
    cursor: u64,
    out_size: usize,
) -> Result<(raw::tnd_cpl, Vec<u8>), String> {
    let cmd = raw::tnd_cmd {
        op,
        cls,
        arg: cursor,
        out_size: u32::try_from(out_size).unwrap_or(u32::MAX),
        ..Default::default()
    };
    let mut out = Vec::new();
    let cpl = asic
        .fw
        .execute(&cmd, &[], &mut out, tandem_linux::clock::now_ns());
    let status = Status::from_raw(cpl.status);
    if status.is_ok() {
        Ok((cpl, out))
    } else {
        Err(format!("the firmware refused to dump: {status}"))
    }
}

/// One page of a table, `limit` rows at most (0: the most there can be).
pub fn page(
    asic: &mut Asic,
    table: &Table,
    cursor: u64,
    limit: u32,
) -> Result<Items<Value>, String> {
    let rows = if limit == 0 { LIMIT } else { limit.min(LIMIT) } as usize;
    let room = (table.room)(rows);
    let (cpl, out) = read(asic, raw::TND_OP_DUMP, table.cls, cursor, room)?;
    let ports = asic.fw.state.port_count();
    let mut items = (table.rows)(&out);
    for row in &mut items {
        name_lag(row, ports);
        if table.cls == raw::TND_CLS_NHG {
            count_members(row, asic);
        }
    }
    Ok(Items {
        items,
        next: (cpl.result != 0).then_some(cpl.result),
    })
}

fn mdb(o: &raw::tnd_mdb, tail: &[u8]) -> Value {
    let addr = |a: &[u8; 16]| match (o.family, a) {
        (raw::TND_AF_INET, [a, b, c, d, ..]) => Ipv4Addr::new(*a, *b, *c, *d).to_string(),
        (raw::TND_AF_INET6, a) => Ipv6Addr::from(*a).to_string(),
        (_, [a, b, c, d, e, f, ..]) => mac(&[*a, *b, *c, *d, *e, *f]),
    };
    let ports = fixed::<raw::tnd_mdb_port>(tail).map(|p| p.port);
    json!({
        "fid": o.fid,
        "group": addr(&o.addr),
        "source": if o.source == [0; 16] { Value::Null } else { json!(addr(&o.source)) },
        "action": action(o.action),
        "ports": ports.map(|p| json!({"port": p, "dev": swp(p)})).collect::<Vec<_>>(),
        "cpu": o.flags & raw::TND_MDB_CPU_COPY != 0,
    })
}

fn port_set(o: &raw::tnd_port_set, _: &[u8]) -> Value {
    json!({ "set": o.set, "ports": masked(&o.ports) })
}

/// The ports of a mask, with their names.
pub fn masked(mask: &PortMask) -> Vec<Value> {
    let ports = ports_of(mask);
    ports.map(|p| json!({"port": p, "dev": swp(p)})).collect()
}

fn storm(o: &raw::tnd_storm, _: &[u8]) -> Value {
    let kind = match o.kind {
        raw::TND_STORM_BROADCAST => "broadcast",
        raw::TND_STORM_MULTICAST => "multicast",
        raw::TND_STORM_UNKNOWN_UC => "unknown_unicast",
        _ => "unknown",
    };
    json!({
        "port": o.port,
        "dev": format!("swp{}", o.port),
        "kind": kind,
        "rate_packets": o.rate_packets,
        "burst_packets": o.burst_packets,
        "rate_bytes": o.rate_bytes,
        "burst_bytes": o.burst_bytes,
        "dropped": o.dropped,
    })
}

/// The port of a link aggregation group has the group's name, also where a row lists ports or sends to them.
fn name_lag(row: &mut Value, ports: u16) {
    let lag_of = |port: u64| port.checked_sub(ports.into()).filter(|lag| *lag > 0);
    let port = row.get("port").and_then(Value::as_u64).unwrap_or(0);
    if let Some(lag) = lag_of(port)
        && let Some(dev) = row.get_mut("dev").filter(|d| d.is_string())
    {
        *dev = json!(format!("lag{lag}"));
    }
    for key in ["ports", "target"] {
        match row.get_mut(key) {
            Some(Value::Array(all)) => all.iter_mut().for_each(|p| name_lag(p, ports)),
            Some(Value::String(dev)) => {
                let port = dev.strip_prefix("swp").and_then(|n| n.parse().ok());
                if let Some(lag) = port.and_then(lag_of) {
                    *dev = format!("lag{lag}");
                }
            }
            _ => {}
        }
    }
}

/// Packets that went to each member of a group.
fn count_members(row: &mut Value, asic: &Asic) {
    let id = row.get("nhg").and_then(Value::as_u64);
    let group = id.and_then(|id| asic.fw.state.nhg(u32::try_from(id).ok()?));
    let members = row.get_mut("members").and_then(Value::as_array_mut);
    if let (Some(group), Some(members)) = (group, members) {
        for (member, packets) in members.iter_mut().zip(group.packets()) {
            member["packets"] = json!(packets);
        }
    }
}

fn action(a: u8) -> &'static str {
    match a {
        raw::TND_ACT_FORWARD => "forward",
        raw::TND_ACT_TRAP => "trap",
        raw::TND_ACT_DROP => "drop",
        _ => "unknown",
    }
}

/// A trap's reason, if there is one.
fn reason(a: u8, reason: u8) -> Value {
    if a == raw::TND_ACT_TRAP && reason != 0 {
        json!(reason_name(u16::from(reason)))
    } else {
        Value::Null
    }
}

/// Address as the kernel writes it.
pub fn address(family: u8, addr: &[u8; 16]) -> String {
    if family == raw::TND_AF_INET {
        let [a, b, c, d, ..] = *addr;
        Ipv4Addr::new(a, b, c, d).to_string()
    } else {
        Ipv6Addr::from(*addr).to_string()
    }
}

fn family(f: u8) -> &'static str {
    if f == raw::TND_AF_INET {
        "ipv4"
    } else {
        "ipv6"
    }
}

/// MAC address as the kernel writes it.
pub fn mac(m: &[u8; 6]) -> String {
    tandem_packet::ether::show(m).to_string()
}

pub fn flags(value: u32, names: &[(u32, &'static str)]) -> Vec<&'static str> {
    names
        .iter()
        .filter(|(bit, _)| value & bit != 0)
        .map(|(_, name)| *name)
        .collect()
}

pub fn swp(port: u16) -> Value {
    if port == 0 {
        Value::Null
    } else {
        json!(format!("swp{port}"))
    }
}

fn fdb(o: &raw::tnd_fdb, _: &[u8]) -> Value {
    let f = u32::from(o.flags);
    let kind = if f & u32::from(raw::TND_FDB_LEARNED) != 0 {
        "learned"
    } else if f & u32::from(raw::TND_FDB_STATIC | raw::TND_FDB_NO_AGE) != 0 {
        "static"
    } else {
        // the driver wrote it, and it ages
        "dynamic"
    };
    json!({
        "fid": o.fid,
        "mac": mac(&o.mac),
        "port": o.port,
        "dev": swp(o.port),
        "set": (o.set != 0).then_some(o.set),
        "kind": kind,
        "action": action(o.action),
        "flags": flags(f, &[
            (raw::TND_FDB_STATIC as u32, "static"),
            (raw::TND_FDB_LEARNED as u32, "learned"),
            (raw::TND_FDB_STICKY as u32, "sticky"),
            (raw::TND_FDB_NO_AGE as u32, "no_age"),
        ]),
    })
}

fn route(o: &raw::tnd_route, _: &[u8]) -> Value {
    let target = match o.target_kind {
        raw::TND_RT_NEXTHOP => "nexthop",
        raw::TND_RT_NHG => "nhg",
        _ => "none",
    };
    json!({
        "vrf": o.vrf,
        "family": family(o.family),
        "prefix": format!("{}/{}", address(o.family, &o.addr), o.prefix_len),
        "action": action(o.action),
        "reason": reason(o.action, o.reason),
        "target_kind": target,
        "target": o.target,
    })
}

fn neigh(o: &raw::tnd_neigh, _: &[u8]) -> Value {
    json!({
        "rif": o.rif,
        "family": family(o.family),
        "address": address(o.family, &o.addr),
        "mac": mac(&o.mac),
        "action": action(o.action),
    })
}

fn nexthop(o: &raw::tnd_nexthop, _: &[u8]) -> Value {
    json!({
        "nexthop": o.nexthop,
        "rif": o.rif,
        "mac": mac(&o.mac),
        "action": action(o.action),
        "reason": reason(o.action, o.reason),
    })
}

fn nhg(o: &raw::tnd_nhg, tail: &[u8]) -> Value {
    let members: Vec<Value> = fixed::<raw::tnd_nhg_member>(tail)
        .map(|m| json!({ "nexthop": m.nexthop, "weight": m.weight }))
        .collect();
    json!({
        "nhg": o.nhg,
        "hash": if o.hash == raw::TND_HASH_L4 { "l4" } else { "l3" },
        "members": members,
    })
}

fn lag(o: &raw::tnd_lag, tail: &[u8]) -> Value {
    let members: Vec<Value> = fixed::<raw::tnd_lag_member>(tail)
        .map(|m| json!({ "port": m.port, "dev": swp(m.port), "active": m.flags & raw::TND_LAG_ACTIVE != 0 }))
        .collect();
    json!({
        "lag": o.lag,
        "hash": match o.hash {
            raw::TND_LAG_HASH_L2 => "l2",
            raw::TND_LAG_HASH_L3 => "l3",
            _ => "l4",
        },
        "members": members,
    })
}

fn rif(o: &raw::tnd_rif, _: &[u8]) -> Value {
    let (kind, port) = match o.kind {
        raw::TND_RIF_PORT => ("port", swp(o.port)),
        raw::TND_RIF_FID => ("fid", Value::Null),
        _ => ("port_vlan", swp(o.port)),
    };
    json!({
        "rif": o.rif,
        "vrf": o.vrf,
        "kind": kind,
        "dev": port,
        "port": o.port,
        "fid": o.fid,
        "vid": o.vid,
        "mac": mac(&o.mac),
        "mtu": o.mtu,
        "flags": flags(o.flags, &[
            (raw::TND_RIF_V4, "v4"),
            (raw::TND_RIF_V6, "v6"),
            (raw::TND_RIF_TRAP_ALL, "trap_all"),
            (raw::TND_RIF_NO_REDIRECT, "no_redirect"),
            (raw::TND_RIF_RPF_LOOSE, "rpf_loose"),
        ]),
    })
}

fn vlan(o: &raw::tnd_vlan, _: &[u8]) -> Value {
    json!({
        "fid": o.fid,
        "ageing_s": o.ageing_s,
        "flags": flags(o.flags, &[
            (raw::TND_VLAN_UC_TRAP, "uc_trap"),
            (raw::TND_VLAN_MC_TRAP, "mc_trap"),
            (raw::TND_VLAN_LEARNING, "learning"),
            (raw::TND_VLAN_CPU_COPY, "cpu_copy"),
            (raw::TND_VLAN_SNOOP, "snoop"),
            (raw::TND_VLAN_MC4_MEMBERS, "mc4_members"),
            (raw::TND_VLAN_MC4_TRAP, "mc4_trap"),
            (raw::TND_VLAN_MC6_MEMBERS, "mc6_members"),
            (raw::TND_VLAN_MC6_TRAP, "mc6_trap"),
            (raw::TND_VLAN_MAC_TRAP, "mac_trap"),
            (raw::TND_VLAN_MC4_CPU, "mc4_cpu"),
            (raw::TND_VLAN_MC6_CPU, "mc6_cpu"),
            (raw::TND_VLAN_NO_LL_LEARN, "no_ll_learn"),
            (raw::TND_VLAN_CPU_LEARN, "cpu_learn"),
            (raw::TND_VLAN_FLOWS, "flows"),
        ]),
    })
}

fn member(o: &raw::tnd_vlan_member, _: &[u8]) -> Value {
    let vid = if u32::from(o.vid) == raw::TND_VID_ANY as u32 {
        Value::Null
    } else {
        json!(o.vid)
    };
    json!({
        "port": o.port,
        "dev": swp(o.port),
        "vid": vid,
        "fid": o.fid,
        "flags": flags(o.flags, &[
            (raw::TND_MEMBER_UNTAGGED, "untagged"),
            (raw::TND_MEMBER_PVID, "pvid"),
        ]),
    })
}

fn port(o: &raw::tnd_port, _: &[u8]) -> Value {
    let stp = match o.stp_state {
        raw::TND_STP_LISTENING => "listening",
        raw::TND_STP_LEARNING => "learning",
        raw::TND_STP_FORWARDING => "forwarding",
        raw::TND_STP_BLOCKING => "blocking",
        _ => "disabled",
    };
    json!({
        "port": o.port,
        "dev": swp(o.port),
        "mtu": o.mtu,
        "mac": mac(&o.mac),
        "stp_state": stp,
        "flags": flags(o.flags, &[
            (raw::TND_PORT_UP, "up"),
            (raw::TND_PORT_LEARNING, "learning"),
            (raw::TND_PORT_TRAP_ALL, "trap_all"),
            (raw::TND_PORT_FLOOD_UC, "flood_uc"),
            (raw::TND_PORT_FLOOD_MC, "flood_mc"),
            (raw::TND_PORT_FLOOD_BC, "flood_bc"),
            (raw::TND_PORT_ISOLATED, "isolated"),
            (raw::TND_PORT_HAIRPIN, "hairpin"),
            (raw::TND_PORT_LOCKED, "locked"),
            (raw::TND_PORT_ROUTER4, "router4"),
            (raw::TND_PORT_ROUTER6, "router6"),
            (raw::TND_PORT_FLOWS, "flows"),
            (raw::TND_PORT_FLOWS_UNAWARE, "flows_unaware"),
            (raw::TND_PORT_FLOWS_DROP, "flows_drop"),
            (raw::TND_PORT_FLOWS_SOURCE, "flows_source"),
        ]),
    })
}

//! What stands in the chip's tables, by key.

use std::collections::HashMap;

use tandem_abi::object::{Object, ObjectKey, records};
use tandem_abi::raw;
use tandem_mgmt::server::ApiError;
use tandem_sal::Request;
use zerocopy::IntoBytes;

use super::Asks;
use crate::Core;

/// Steps of one dump at most.
const STEPS_MAX: usize = 1 << 16;

/// The tables' contents. Bodies are compared as values: `struct_size` is set to ours.
#[derive(Debug, Default, Clone)]
pub(super) struct Chip {
    pub ports: HashMap<u16, raw::tnd_port>,
    pub vlans: HashMap<u16, raw::tnd_vlan>,
    pub members: HashMap<(u16, u16), raw::tnd_vlan_member>,
    pub fdb: HashMap<(u16, [u8; 6]), raw::tnd_fdb>,
    pub vrfs: HashMap<u16, raw::tnd_vrf>,
    pub rifs: HashMap<u16, raw::tnd_rif>,
    pub neighbours: HashMap<ObjectKey, raw::tnd_neigh>,
    pub nexthops: HashMap<u32, raw::tnd_nexthop>,
    pub groups: HashMap<u32, (u32, Vec<(u32, u32)>)>,
    pub routes: HashMap<ObjectKey, raw::tnd_route>,
    /// Lists of rules: by list; by port and stage; by list and priority.
    pub acl_tables: HashMap<u32, raw::tnd_acl_table>,
    pub acl_binds: HashMap<(u16, u16), raw::tnd_acl_bind>,
    pub acl_rules: HashMap<(u32, u32), raw::tnd_acl_entry>,
    /// Rate and burst by policer, port by session.
    pub policers: HashMap<u32, (u16, u64, u64)>,
    pub mirrors: HashMap<u16, u16>,
    /// Hash and members of link aggregation groups: port, and whether it takes part.
    pub lags: HashMap<u16, (u16, Vec<(u16, bool)>)>,
    /// Multicast groups.
    pub mdb: HashMap<GroupName, Group>,
}

/// Domain, family, group, source.
pub(super) type GroupName = (u16, u8, [u8; 16], [u8; 16]);

/// What a multicast group's entry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub action: u8,
    pub cpu: bool,
    pub ports: Vec<u16>,
}

fn group_name(o: &raw::tnd_mdb) -> GroupName {
    (o.fid, o.family, o.addr, o.source)
}

/// Multicast groups, link aggregation, and lists of rules. Counters are compared by nobody: they are where their rules are.
const LATER: [u16; 7] = [
    raw::TND_CLS_MDB,
    raw::TND_CLS_LAG,
    raw::TND_CLS_ACL_TABLE,
    raw::TND_CLS_ACL_BIND,
    raw::TND_CLS_ACL_ENTRY,
    raw::TND_CLS_POLICER,
    raw::TND_CLS_MIRROR,
];

impl Chip {
    /// One record of a class with what follows it.
    pub(super) fn put(&mut self, cls: u16, bytes: &[u8]) {
        match cls {
            raw::TND_CLS_PORT => each::<raw::tnd_port>(bytes, |o, _| {
                self.ports.insert(o.port, o);
            }),
            raw::TND_CLS_VLAN => each::<raw::tnd_vlan>(bytes, |o, _| {
                self.vlans.insert(o.fid, o);
            }),
            raw::TND_CLS_VLAN_MEMBER => each::<raw::tnd_vlan_member>(bytes, |o, _| {
                self.members.insert((o.port, o.vid), o);
            }),
            raw::TND_CLS_FDB => each::<raw::tnd_fdb>(bytes, |o, _| {
                self.fdb.insert((o.fid, o.mac), o);
            }),
            // the default one is there always
            raw::TND_CLS_VRF => each::<raw::tnd_vrf>(bytes, |o, _| {
                if o.vrf != 0 {
                    self.vrfs.insert(o.vrf, o);
                }
            }),
            raw::TND_CLS_RIF => each::<raw::tnd_rif>(bytes, |o, _| {
                self.rifs.insert(o.rif, o);
            }),
            raw::TND_CLS_NEIGH => each::<raw::tnd_neigh>(bytes, |o, _| {
                self.neighbours.insert(o.key(), o);
            }),
            raw::TND_CLS_NEXTHOP => each::<raw::tnd_nexthop>(bytes, |o, _| {
                self.nexthops.insert(o.nexthop, o);
            }),
            raw::TND_CLS_NHG => each::<raw::tnd_nhg>(bytes, |o, tail| {
                // in their order: it decides which flows are whose
                let m = tandem_abi::object::fixed::<raw::tnd_nhg_member>(tail)
                    .map(|m| (m.nexthop, m.weight))
                    .collect();
                self.groups.insert(o.nhg, (o.hash, m));
            }),
            raw::TND_CLS_ROUTE => each::<raw::tnd_route>(bytes, |o, _| {
                self.routes.insert(o.key(), o);
            }),
            raw::TND_CLS_ACL_TABLE => each::<raw::tnd_acl_table>(bytes, |o, _| {
                self.acl_tables.insert(o.table, o);
            }),
            // all are there always: an empty one is none
            raw::TND_CLS_ACL_BIND => each::<raw::tnd_acl_bind>(bytes, |o, _| {
                if o.table != 0 || o.flags != 0 {
                    self.acl_binds.insert((o.port, o.stage), o);
                }
            }),
            raw::TND_CLS_ACL_ENTRY => each::<raw::tnd_acl_entry>(bytes, |o, _| {
                self.acl_rules.insert((o.table, o.priority), normal(o));
            }),
            raw::TND_CLS_POLICER => each::<raw::tnd_policer>(bytes, |o, _| {
                self.policers.insert(o.policer, (o.flags, o.rate, o.burst));
            }),
            raw::TND_CLS_LAG => each::<raw::tnd_lag>(bytes, |o, tail| {
                let members = tandem_abi::object::fixed::<raw::tnd_lag_member>(tail);
                let mut members: Vec<(u16, bool)> = members
                    .take(usize::from(o.count))
                    .map(|m| (m.port, m.flags & raw::TND_LAG_ACTIVE != 0))
                    .collect();
                members.sort_unstable();
                self.lags.insert(o.lag, (o.hash, members));
            }),
            raw::TND_CLS_MDB => each::<raw::tnd_mdb>(bytes, |o, tail| {
                let ports = tandem_abi::object::fixed::<raw::tnd_mdb_port>(tail);
                let group = Group {
                    action: o.action,
                    cpu: o.flags & raw::TND_MDB_CPU_COPY != 0,
                    ports: ports.take(usize::from(o.count)).map(|p| p.port).collect(),
                };
                self.mdb.insert(group_name(&o), group);
            }),
            raw::TND_CLS_MIRROR => each::<raw::tnd_mirror>(bytes, |o, _| {
                self.mirrors.insert(o.mirror, o.port);
            }),
            _ => {}
        }
    }

    /// Removes the object that a body's key names.
    pub(super) fn remove(&mut self, cls: u16, bytes: &[u8]) {
        match cls {
            raw::TND_CLS_VLAN => each::<raw::tnd_vlan>(bytes, |o, _| {
                self.vlans.remove(&o.fid);
            }),
            raw::TND_CLS_VLAN_MEMBER => each::<raw::tnd_vlan_member>(bytes, |o, _| {
                self.members.remove(&(o.port, o.vid));
            }),
            raw::TND_CLS_FDB => each::<raw::tnd_fdb>(bytes, |o, _| {
                self.fdb.remove(&(o.fid, o.mac));
            }),
            raw::TND_CLS_VRF => each::<raw::tnd_vrf>(bytes, |o, _| {
                self.vrfs.remove(&o.vrf);
            }),
            raw::TND_CLS_RIF => each::<raw::tnd_rif>(bytes, |o, _| {
                self.rifs.remove(&o.rif);
            }),
            raw::TND_CLS_NEIGH => each::<raw::tnd_neigh>(bytes, |o, _| {
                self.neighbours.remove(&o.key());
            }),
            raw::TND_CLS_NEXTHOP => each::<raw::tnd_nexthop>(bytes, |o, _| {
                self.nexthops.remove(&o.nexthop);
            }),
            raw::TND_CLS_NHG => {
                if let Ok((o, _)) = tandem_abi::object::read_object::<raw::tnd_nhg>(bytes) {
                    self.groups.remove(&o.nhg);
                }
            }
            raw::TND_CLS_ROUTE => each::<raw::tnd_route>(bytes, |o, _| {
                self.routes.remove(&o.key());
            }),
            raw::TND_CLS_ACL_TABLE => each::<raw::tnd_acl_table>(bytes, |o, _| {
                self.acl_tables.remove(&o.table);
            }),
            raw::TND_CLS_ACL_BIND => each::<raw::tnd_acl_bind>(bytes, |o, _| {
                self.acl_binds.remove(&(o.port, o.stage));
            }),
            raw::TND_CLS_ACL_ENTRY => each::<raw::tnd_acl_entry>(bytes, |o, _| {
                self.acl_rules.remove(&(o.table, o.priority));
            }),
            raw::TND_CLS_POLICER => each::<raw::tnd_policer>(bytes, |o, _| {
                self.policers.remove(&o.policer);
            }),
            raw::TND_CLS_LAG => {
                if let Ok((o, _)) = tandem_abi::object::read_object::<raw::tnd_lag>(bytes) {
                    self.lags.remove(&o.lag);
                }
            }
            raw::TND_CLS_MDB => {
                if let Ok((o, _)) = tandem_abi::object::read_object::<raw::tnd_mdb>(bytes) {
                    self.mdb.remove(&group_name(&o));
                }
            }
            raw::TND_CLS_MIRROR => each::<raw::tnd_mirror>(bytes, |o, _| {
                self.mirrors.remove(&o.mirror);
            }),
            _ => {}
        }
    }

    /// Reads all classes of the chip, a step at a time between the core's turns.
    pub(super) async fn read(api: &impl Asks) -> Result<Chip, ApiError> {
        let mut chip = Chip::default();
        for cls in (raw::TND_CLS_PORT..=raw::TND_CLS_ROUTE).chain(LATER) {
            dump(api, cls, |bytes| chip.put(cls, bytes)).await?;
        }
        Ok(chip)
    }
}

/// One class of the chip, a step at a time.
async fn dump(api: &impl Asks, cls: u16, mut put: impl FnMut(&[u8])) -> Result<(), ApiError> {
    let mut cursor = 0;
    for _ in 0..STEPS_MAX {
        let (bytes, next) = api.dump(cls, cursor).await?;
        put(&bytes);
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    Ok(())
}

/// Packets by counter of rules.
pub(super) async fn counters(api: &impl Asks) -> Result<HashMap<u32, u64>, ApiError> {
    let mut all = HashMap::new();
    dump(api, raw::TND_CLS_ACL_COUNTER, |bytes| {
        each::<raw::tnd_acl_counter>(bytes, |o, _| {
            all.insert(o.counter, o.packets);
        });
    })
    .await?;
    Ok(all)
}

/// A rule as the chip keeps it: a range of one port is a key, of all none. Counters are left out.
fn normal(mut e: raw::tnd_acl_entry) -> raw::tnd_acl_entry {
    let ranges = [
        (
            &mut e.src_port_min,
            &mut e.src_port_max,
            &mut e.key.src_port,
            &mut e.mask.src_port,
        ),
        (
            &mut e.dst_port_min,
            &mut e.dst_port_max,
            &mut e.key.dst_port,
            &mut e.mask.dst_port,
        ),
    ];
    for (min, max, key, mask) in ranges {
        if min == max && *min != 0 {
            (*key, *mask) = (*min, u16::MAX);
        }
        if min == max || (*min, *max) == (0, u16::MAX) {
            (*min, *max) = (0, 0);
        }
    }
    e.counter = 0;
    e
}

fn each<T: Object>(bytes: &[u8], mut f: impl FnMut(T, &[u8])) {
    for (mut o, tail) in records::<T>(bytes) {
        o.set_struct_size();
        f(o, tail);
    }
}

/// Some records of a core that is one's own: it waits for them.
pub(super) fn step(core: &mut Core, cls: u16, cursor: u64) -> Result<(Vec<u8>, u64), String> {
    let none = core.no_asic();
    let control = core.control().ok_or(none)?;
    let (cpl, out) = control
        .call(
            "dump",
            &Request {
                op: raw::TND_OP_DUMP,
                cls,
                arg: cursor,
                output: true,
                ..Default::default()
            },
        )
        .map_err(|e| e.to_string())?;
    Ok((out, cpl.result))
}

/// Whether two bodies say the same.
pub(super) fn same<T: IntoBytes + zerocopy::Immutable>(a: &T, b: &T) -> bool {
    a.as_bytes() == b.as_bytes()
}

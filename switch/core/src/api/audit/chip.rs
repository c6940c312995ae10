//! What stands in the chip's tables, by key.

use std::collections::HashMap;

use tandem_abi::object::{Object, ObjectKey, fixed, read_object, records};
use tandem_abi::raw;
use tandem_mgmt::server::ApiError;
use tandem_sal::{Pages, Request};
use zerocopy::IntoBytes;

use super::Asks;
use super::compare::{Gather, plain};
use crate::Core;

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

// One line for each class: its map with key and value, its record, and both of an object and what follows it; `plain`: the
// kind of a difference, and key and value in words, where nothing excuses one; `part`: both in words, of what only rules name.
macro_rules! audited {
    ($($(#[$doc:meta])* $map:ident: $key:ty => $value:ty =
        $record:ident |$o:ident, $tail:ident| $k:expr => $v:expr
        $(, plain $kind:literal $key_text:expr, $text:expr)? $(, part $part:expr)?;)*) => {
        /// The tables' contents. Bodies are compared as values: `struct_size` is set to ours.
        #[derive(Debug, Default, Clone)]
        pub(super) struct Chip {
            $($(#[$doc])* pub $map: HashMap<$key, $value>,)*
        }

        /// All that is compared. Counters are not: they are where their rules are.
        const AUDITED: &[u16] = &[$(<raw::$record as Object>::CLASS),*];

        impl Chip {
            /// Records of a class, each with what follows it.
            pub(super) fn put(&mut self, cls: u16, bytes: &[u8]) {
                match cls {
                    $(<raw::$record as Object>::CLASS => each::<raw::$record>(bytes, |$o, $tail| {
                        let value: Option<$value> = $v;
                        if let Some(value) = value {
                            self.$map.insert($k, value);
                        }
                    }),)*
                    _ => {}
                }
            }

            /// Compares what may not differ, whatever the reason.
            pub(super) fn plain(want: &Chip, found: &Chip, g: &mut Gather) {
                $($(plain(g, $kind, &want.$map, &found.$map, $key_text, $text);)?)*
            }

            /// What rules name, in words.
            pub(super) fn parts(&self) -> HashMap<String, String> {
                let mut all = HashMap::new();
                $($(all.extend(self.$map.iter().map($part));)?)*
                all
            }

            /// Removes the object that a body's key names.
            pub(super) fn remove(&mut self, cls: u16, bytes: &[u8]) {
                match cls {
                    $(<raw::$record as Object>::CLASS => {
                        if let Ok(($o, _)) = read_object::<raw::$record>(bytes) {
                            self.$map.remove(&$k);
                        }
                    })*
                    _ => {}
                }
            }
        }
    };
}

audited! {
    ports: u16 => raw::tnd_port = tnd_port |o, _tail| o.port => Some(o);
    vlans: u16 => raw::tnd_vlan = tnd_vlan |o, _tail| o.fid => Some(o);
    members: (u16, u16) => raw::tnd_vlan_member = tnd_vlan_member |o, _tail| (o.port, o.vid) => Some(o),
        plain "member" member_place, |m| format!("fid {} flags {:#x}", m.fid, m.flags);
    fdb: (u16, [u8; 6]) => raw::tnd_fdb = tnd_fdb |o, _tail| (o.fid, o.mac) => Some(o);
    /// Without the default one, which is there always.
    vrfs: u16 => raw::tnd_vrf = tnd_vrf |o, _tail| o.vrf => Some(o).filter(|o| o.vrf != 0),
        plain "vrf" |k| format!("vrf {k}"), |_| "there".into();
    rifs: u16 => raw::tnd_rif = tnd_rif |o, _tail| o.rif => Some(o);
    neighbours: ObjectKey => raw::tnd_neigh = tnd_neigh |o, _tail| o.key() => Some(o);
    nexthops: u32 => raw::tnd_nexthop = tnd_nexthop |o, _tail| o.nexthop => Some(o);
    /// Hash and members in their order: it decides which flows are whose.
    groups: u32 => (u32, Vec<(u32, u32)>) = tnd_nhg |o, tail| o.nhg =>
        Some((o.hash, fixed::<raw::tnd_nhg_member>(tail).map(|m| (m.nexthop, m.weight)).collect()));
    routes: ObjectKey => raw::tnd_route = tnd_route |o, _tail| o.key() => Some(o);
    mdb: GroupName => Group = tnd_mdb |o, tail| group_name(&o) => Some(group(&o, tail));
    /// Hash and members of link aggregation groups: port, and whether it takes part.
    lags: u16 => (u16, Vec<(u16, bool)>) = tnd_lag |o, tail| o.lag => Some((o.hash, lag_members(&o, tail)));
    acl_tables: u32 => raw::tnd_acl_table = tnd_acl_table |o, _tail| o.table => Some(o);
    /// By port and stage. All are there always: an empty one is none.
    acl_binds: (u16, u16) => raw::tnd_acl_bind = tnd_acl_bind |o, _tail| (o.port, o.stage) =>
        Some(o).filter(|o| o.table != 0 || o.flags != 0);
    /// By list and priority.
    acl_rules: (u32, u32) => raw::tnd_acl_entry = tnd_acl_entry |o, _tail| (o.table, o.priority) => Some(normal(o));
    /// Which port it is of, from and to.
    acl_ranges: u32 => (u16, u16, u16) = tnd_acl_range |o, _tail| o.range => Some((o.field, o.min, o.max)),
        part |(k, v)| (format!("range {k:#x}"), format!("{v:?}"));
    /// Flags, rate and burst.
    policers: u32 => (u16, u64, u64) = tnd_policer |o, _tail| o.policer => Some((o.flags, o.rate, o.burst)),
        part |(k, v)| (format!("policer {k}"), format!("{v:?}"));
    /// Port by session.
    mirrors: u16 => u16 = tnd_mirror |o, _tail| o.mirror => Some(o.port),
        part |(k, v)| (format!("mirror {k}"), format!("swp{v}"));
}

fn member_place((port, vid): &(u16, u16)) -> String {
    match *vid {
        raw::TND_VID_ANY => format!("swp{port}"),
        vid => format!("swp{port} vlan {vid}"),
    }
}

fn lag_members(o: &raw::tnd_lag, tail: &[u8]) -> Vec<(u16, bool)> {
    let members = fixed::<raw::tnd_lag_member>(tail).take(usize::from(o.count));
    let mut members: Vec<(u16, bool)> = members
        .map(|m| (m.port, m.flags & raw::TND_LAG_ACTIVE != 0))
        .collect();
    members.sort_unstable();
    members
}

fn group(o: &raw::tnd_mdb, tail: &[u8]) -> Group {
    let ports = fixed::<raw::tnd_mdb_port>(tail).take(usize::from(o.count));
    Group {
        action: o.action,
        cpu: o.flags & raw::TND_MDB_CPU_COPY != 0,
        ports: ports.map(|p| p.port).collect(),
    }
}

impl Chip {
    /// Reads all classes of the chip, a step at a time between the core's turns.
    pub(super) async fn read(api: &impl Asks) -> Result<Chip, ApiError> {
        let mut chip = Chip::default();
        for cls in AUDITED {
            dump(api, *cls, |bytes| chip.put(*cls, bytes)).await?;
        }
        Ok(chip)
    }
}

/// One class of the chip, a step at a time.
async fn dump(api: &impl Asks, cls: u16, mut put: impl FnMut(&[u8])) -> Result<(), ApiError> {
    let mut pages = Pages::default();
    loop {
        let (bytes, next) = api.dump(cls, pages.cursor()).await?;
        put(&bytes);
        let more = pages.goes_on(next);
        let more = more.map_err(|why| format!("the chip's list of class {cls}: {why}"));
        if !more.map_err(ApiError::unavailable)? {
            return Ok(());
        }
    }
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

//! Multicast: what may differ from what the kernel's tables ask for, because it goes to the CPU.

use std::collections::{HashMap, HashSet};

use tandem_abi::raw;
use tandem_store::model::GroupAddr;

use super::chip::{Chip, GroupName};

/// Flags of a domain by family: members alone, trap.
const MODES: [(u8, u32, u32); 2] = [
    (
        raw::TND_AF_INET,
        raw::TND_VLAN_MC4_MEMBERS,
        raw::TND_VLAN_MC4_TRAP,
    ),
    (
        raw::TND_AF_INET6,
        raw::TND_VLAN_MC6_MEMBERS,
        raw::TND_VLAN_MC6_TRAP,
    ),
];

/// Entries that should be there and are not: there is no room for them.
fn missing<'a>(want: &'a Chip, found: &'a Chip) -> impl Iterator<Item = &'a GroupName> {
    want.mdb.keys().filter(|k| !found.mdb.contains_key(*k))
}

/// Domains and families of such.
pub(super) fn lacks(want: &Chip, found: &Chip) -> HashSet<(u16, u8)> {
    missing(want, found).map(|k| (k.0, k.1)).collect()
}

/// A domain's flags without the traps that have a cause: an entry that is not there, a querier that is not sure yet.
pub(super) fn as_wanted(fid: u16, has: u32, wanted: u32, missing: &HashSet<(u16, u8)>) -> u32 {
    let mut flags = has;
    for (family, members, trap) in MODES {
        let lacks = missing.contains(&(fid, family));
        let differs = (has ^ wanted) & (members | trap) != 0;
        let all_of_it = has & (members | trap) == trap;
        if differs && has & trap != 0 && (lacks || all_of_it) {
            flags = flags & !(members | trap) | wanted & (members | trap);
            // the copies of a router belong to its members
            let cpu = match family {
                raw::TND_AF_INET => raw::TND_VLAN_MC4_CPU,
                _ => raw::TND_VLAN_MC6_CPU,
            };
            flags = flags & !cpu | wanted & cpu;
        }
    }
    if missing.contains(&(fid, 0)) {
        flags = flags & !raw::TND_VLAN_MAC_TRAP | wanted & raw::TND_VLAN_MAC_TRAP;
    }
    flags
}

/// A chip's entries as texts, without those that may be missing: the domain traps what has none, or the group of all
/// sources traps; or the domain floods, and there is `no_room` for the group, by its name.
pub(super) fn texts(
    of: &Chip,
    want: &Chip,
    found: &Chip,
    no_room: &HashSet<GroupAddr>,
) -> HashMap<String, String> {
    let floods = |k: &GroupName| {
        let flags = found.vlans.get(&k.0).map_or(0, |v| v.flags);
        let bit = MODES.iter().find(|m| m.0 == k.1);
        bit.is_some_and(|m| flags & (m.1 | m.2) == 0)
    };
    let traps = |k: &GroupName| {
        let flags = found.vlans.get(&k.0).map_or(0, |v| v.flags);
        let bit = MODES.iter().find(|m| m.0 == k.1);
        flags & bit.map_or(raw::TND_VLAN_MAC_TRAP, |m| m.2) != 0
    };
    let trapped = |k: &GroupName| {
        let e = found.mdb.get(k);
        e.is_some_and(|e| e.action == raw::TND_ACT_TRAP)
    };
    let any = |k: &GroupName| (k.0, k.1, k.2, [0; 16]);
    // groups of all sources that stand in for one that has none
    let sources = missing(want, found).filter(|o| o.3 != [0; 16]);
    let stand_in: HashSet<GroupName> = sources.map(any).collect();
    let excused = |k: &GroupName| {
        if !found.mdb.contains_key(k) {
            if floods(k) && no_room.contains(&group(k)) {
                return true;
            }
            let covered = !want.mdb.contains_key(&any(k)) || trapped(&any(k));
            return traps(k) && (k.3 == [0; 16] || covered);
        }
        trapped(k) && stand_in.contains(k)
    };
    let all = of.mdb.iter().filter(|(k, _)| !excused(k));
    all.map(|(k, e)| (name(k), format!("{e:?}"))).collect()
}

fn address(family: u8, a: &[u8; 16]) -> GroupAddr {
    match (family, a) {
        (raw::TND_AF_INET, [a, b, c, d, ..]) => GroupAddr::Ip([*a, *b, *c, *d].into()),
        (raw::TND_AF_INET6, a) => GroupAddr::Ip((*a).into()),
        (_, [a, b, c, d, e, f, ..]) => GroupAddr::Mac([*a, *b, *c, *d, *e, *f]),
    }
}

/// The group's address alone.
fn group(k: &GroupName) -> GroupAddr {
    address(k.1, &k.2)
}

fn name((fid, family, addr, source): &GroupName) -> String {
    let text = |a| address(*family, a);
    match source {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] => format!("{} fid {fid}", text(addr)),
        s => format!("{} source {} fid {fid}", text(addr), text(s)),
    }
}

//! The chip's numbers of domains, VRFs, router interfaces, next hops and groups: they survive a restart.
//!
//! ```text
//!   table id (dense, in the order in which things came)       chip (the same number for the same thing, always)
//!     vlan 0  ── bridge, ifindex 12 ────────────────────────►  fid 12; its VLAN 20: fid 20
//!     vrf 0  ─── table 10 ──────────────────────────────────►  vrf 10
//!     rif 1  ─── on that bridge ────────────────────────────►  rif 1024 + 12;  on port 3: rif 3
//!     rif 2  ─── on VLAN 10 of port 3 ──────────────────────►  the chip's there, else a hash, from 5120
//!     nh  6  ─── 10.0.0.2 on ifindex 9 ─────────────────────►  hash of both
//!     nhg 0  ─── members ───────────────────────────────────►  the chip's group with these members, else a hash
//! ```
//!
//! A new switchd reads the kernel's tables in another order than they grew in. If its numbers differed from those in the
//! chip, every route would have to be written again. So a number follows from what the thing *is*; two things that want the
//! same one are told apart by counting on (then a restart may swap them, which costs writes and nothing else).
//!
//! An object gets its number with its first CREATE, and keeps it until its table id is given back: after the answer to its
//! DELETE. What refers to it is only written while it stands, so every body is laid out once, with the chip's numbers.

use super::bodies::{Nhg, RifPlace};
use super::table::HwBody;
use super::{Cls, HwClass};
use crate::api::{Domain, Left};
use crate::domains::{FIDS, preferred_fid};
use crate::doors::lets;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use tandem_abi::raw::*;
use zerocopy::IntoBytes;

/// Numbers of VRFs: 1..=4094.
const VRFS: u32 = 4094;
/// Router interfaces of domains begin here; below are those of ports.
const FID_RIFS: u32 = 1024;
/// And those of ports' VLANs here.
const VLAN_RIFS: u32 = 5120;
/// The largest that the ABI's devices take.
const MAX_RIF: u32 = 16383;

/// One class's numbers: by table id, and back.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// 0: none yet.
    chip: Vec<u32>,
    tables: HashMap<u32, u32>,
}

impl Numbers {
    /// The chip's number; 0: none.
    pub fn of(&self, id: u32) -> u32 {
        self.chip.get(id as usize).copied().unwrap_or(0)
    }

    /// Whose number this is, as a table id.
    pub fn table(&self, chip: u32) -> Option<u32> {
        self.tables.get(&chip).copied()
    }

    /// The first of `candidates` that is free, unless it has a number.
    fn give(&mut self, id: u32, mut candidates: impl Iterator<Item = u32>) {
        if self.of(id) == 0
            && let Some(chip) = candidates.find(|c| !self.tables.contains_key(c))
        {
            self.take_over(id, chip);
        }
    }

    /// Gives it this very number, whoever had it: that one keeps pointing there.
    fn take_over(&mut self, id: u32, chip: u32) {
        self.free(id);
        let i = id as usize;
        if self.chip.len() <= i {
            self.chip.resize(i + 1, 0);
        }
        self.chip[i] = chip;
        self.tables.insert(chip, id);
    }

    /// Somebody else has taken its number over.
    fn taken_over(&self, id: u32) -> bool {
        let owner = self.tables.get(&self.of(id));
        owner.is_some_and(|owner| *owner != id)
    }

    fn free(&mut self, id: u32) {
        let Some(chip) = self.chip.get_mut(id as usize).map(std::mem::take) else {
            return;
        };
        if self.tables.get(&chip) == Some(&id) {
            self.tables.remove(&chip);
        }
    }
}

/// Members by number and weight, sorted, and the hash.
type GroupKey = (Vec<(u32, u32)>, u32);

/// A group's number, and its members in the chip's order.
type LeftGroup = (u32, Vec<(u32, u32)>);

/// All numbers, and those that an earlier switchd has left.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    pub fids: Numbers,
    pub vrfs: Numbers,
    pub rifs: Numbers,
    pub nexthops: Numbers,
    pub nhgs: Numbers,
    /// Groups of before that nobody has claimed; several may be equal.
    groups: HashMap<GroupKey, Vec<LeftGroup>>,
    /// Their numbers: not for others.
    left_groups: HashSet<u32>,
    /// Ports as they stand: an equal one is not written again.
    ports: HashMap<u16, tnd_port>,
    /// Ports that were a bridge's, with their flags and spanning tree's state.
    bridged: HashMap<u16, (u32, u8)>,
    /// Router interfaces by port and VID, those of before too: a place keeps its number.
    vlan_rifs: HashMap<(u16, u16), u32>,
    vlan_rifs_taken: HashSet<u32>,
    /// Router interfaces of before that leave IPv4 or IPv6 to the kernel: which.
    shut_rifs: HashMap<u32, u32>,
    /// Domains of before by member.
    members: HashMap<(u16, u16), u16>,
    /// Whose they are has been looked at for the last time.
    domains_known: bool,
    /// Their numbers: not for others.
    left_fids: HashSet<u16>,
    domains: HashMap<Domain, u16>,
    tables: HashMap<u32, u16>,
}

/// FNV-1a, 32 bits, never 0: the same in every build and on every machine.
fn hash(parts: &[&[u8]]) -> u32 {
    let h = parts
        .iter()
        .copied()
        .flatten()
        .fold(0x811c_9dc5_u32, |h, b| {
            (h ^ u32::from(*b)).wrapping_mul(0x0100_0193)
        });
    h.max(1)
}

/// The number of a gateway's next hop, if that is free.
pub(crate) fn gateway_hash(ifindex: u32, addr: IpAddr) -> u32 {
    let addr = match addr {
        IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
        IpAddr::V6(a) => a.octets(),
    };
    hash(&[&ifindex.to_le_bytes(), &addr])
}

/// From `first` on, without 0.
fn from(first: u32) -> impl Iterator<Item = u32> {
    (0..u32::MAX).map(move |n| first.wrapping_add(n).max(1))
}

/// 1..=`count` from `first` on, in a circle; what is behind is none, and the chip says so.
fn circle(first: u32, count: u32) -> impl Iterator<Item = u32> {
    let first = first.wrapping_sub(1);
    (0..count)
        .map(move |n| first.wrapping_add(n) % count + 1)
        .chain(count + 1..)
}

fn group_key(members: &[(u32, u32)], hash: u32) -> GroupKey {
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    (sorted, hash)
}

impl Ids {
    /// For a chip with this in it.
    pub fn new(left: Left) -> Ids {
        let on_vlan = left.rifs.iter().filter(|r| r.kind == TND_RIF_PORT_VLAN);
        let vlan_rifs: HashMap<(u16, u16), u32> = on_vlan
            .map(|r| ((r.port, r.vid), u32::from(r.rif)))
            .collect();
        let shut = |r: &tnd_rif| (TND_RIF_V4 | TND_RIF_V6) & !lets(r.flags);
        let shut_rifs = left.rifs.iter().map(|r| (u32::from(r.rif), shut(r)));
        let shut_rifs = shut_rifs.filter(|r| r.1 != 0).collect();
        let in_bridge: HashSet<u16> = left.members.keys().map(|(port, _)| *port).collect();
        let bridged = left.ports.iter().filter(|p| in_bridge.contains(&p.port));
        let mut ids = Ids {
            bridged: bridged.map(|p| (p.port, (p.flags, p.stp_state))).collect(),
            ports: left.ports.into_iter().map(|p| (p.port, p)).collect(),
            vlan_rifs_taken: vlan_rifs.values().copied().collect(),
            vlan_rifs,
            shut_rifs,
            left_fids: left.members.values().copied().collect(),
            members: left.members,
            domains: left.domains,
            tables: left.vrfs,
            ..Ids::default()
        };
        for (g, list) in left.groups {
            ids.left_groups.insert(g.nhg);
            let list: Vec<(u32, u32)> = list.iter().map(|m| (m.nexthop, m.weight)).collect();
            let equal = ids.groups.entry(group_key(&list, g.hash)).or_default();
            equal.push((g.nhg, list));
        }
        ids
    }

    /// Domains of before by member.
    pub fn members(&self) -> &HashMap<(u16, u16), u16> {
        &self.members
    }

    /// There are some of which nobody has asked yet whose they are. From now on they count as asked.
    pub fn ask_domains(&mut self) -> bool {
        !std::mem::replace(&mut self.domains_known, true) && !self.members.is_empty()
    }

    /// A domain of before is this one's, unless it has one.
    pub fn left_domain(&mut self, domain: Domain, fid: u16) {
        self.domains.entry(domain).or_insert(fid);
    }

    /// The chip's number of a domain, router interface or VRF, where the ABI has 16 bits; 0: none, which the chip refuses.
    pub fn fid(&self, id: u32) -> u16 {
        u16::try_from(self.fids.of(id)).unwrap_or(0)
    }

    pub fn rif(&self, id: u32) -> u16 {
        u16::try_from(self.rifs.of(id)).unwrap_or(0)
    }

    /// Of the VRF of this slot; 0: the default one.
    pub fn vrf(&self, slot: u8) -> u16 {
        let id = slot.checked_sub(1).map(u32::from);
        id.and_then(|id| u16::try_from(self.vrfs.of(id)).ok())
            .unwrap_or(0)
    }

    /// The slot of a VRF of the chip.
    pub fn slot(&self, vrf: u16) -> Option<u8> {
        match vrf {
            0 => Some(0),
            vrf => u8::try_from(self.vrfs.table(u32::from(vrf))? + 1).ok(),
        }
    }

    /// A domain is about to be created.
    pub fn name_domain(&mut self, id: u32, domain: Domain) {
        let own = self.domains.get(&domain).map(|f| u32::from(*f));
        let taken = &self.left_fids;
        let preferred = || circle(u32::from(preferred_fid(domain)), FIDS);
        let untaken = |f: &u32| u16::try_from(*f).is_ok_and(|f| !taken.contains(&f));
        let free = preferred().take(FIDS as usize).filter(untaken);
        self.fids
            .give(id, own.into_iter().chain(free).chain(preferred()));
    }

    pub fn name_vrf(&mut self, id: u32, table: u32) {
        let own = self.tables.get(&table).map(|v| u32::from(*v));
        self.vrfs
            .give(id, own.into_iter().chain(circle(table, VRFS)));
    }

    /// One interface on a place at a time: a new one takes the number over, also while the old one is still to be deleted.
    pub fn name_rif(&mut self, id: u32, place: RifPlace) {
        let chip = match place {
            RifPlace::Port(port) => u32::from(port),
            RifPlace::PortVlan(port, vid) => self.vlan_rif(port, vid, id),
            RifPlace::Vlan(vlan) => self.fids.of(vlan) + FID_RIFS,
        };
        self.rifs.take_over(id, chip);
    }

    /// The number of a place on a port's VLAN, given when it is first used. Numbers of places without an interface are
    /// free again only when there is no other.
    fn vlan_rif(&mut self, port: u16, vid: u16, fallback: u32) -> u32 {
        if let Some(chip) = self.vlan_rifs.get(&(port, vid)) {
            return *chip;
        }
        let count = MAX_RIF + 1 - VLAN_RIFS;
        if self.vlan_rifs.len() >= count as usize {
            let used = &self.rifs.tables;
            self.vlan_rifs.retain(|_, chip| used.contains_key(chip));
            self.vlan_rifs_taken = self.vlan_rifs.values().copied().collect();
        }
        let first = hash(&[&port.to_le_bytes(), &vid.to_le_bytes()]) % count;
        let chip = (0..count)
            .map(|n| VLAN_RIFS + (first + n) % count)
            .find(|c| !self.vlan_rifs_taken.contains(c))
            .unwrap_or(MAX_RIF + 1 + fallback);
        self.vlan_rifs.insert((port, vid), chip);
        self.vlan_rifs_taken.insert(chip);
        chip
    }

    /// `preferred`: [`gateway_hash`].
    pub fn name_nexthop(&mut self, id: u32, preferred: u32) {
        self.nexthops.give(id, from(preferred));
    }

    /// A group that stands in the chip is taken over with its members in the chip's order.
    pub fn name_group(&mut self, id: u32, group: &mut Nhg) {
        if self.nhgs.of(id) != 0 {
            return;
        }
        let members: Vec<(u32, u32)> = group
            .members
            .iter()
            .map(|(nexthop, weight)| (self.nexthops.of(*nexthop), *weight))
            .collect();
        let taken = &self.nhgs.tables;
        let equal = self.groups.get_mut(&group_key(&members, group.hash));
        let found = equal.and_then(|list| {
            let free = list.iter().position(|(g, _)| !taken.contains_key(g))?;
            Some(list.remove(free))
        });
        match found {
            Some((chip, order)) => {
                self.nhgs.give(id, std::iter::once(chip));
                let back = |(n, weight): (u32, u32)| Some((self.nexthops.table(n)?, weight));
                if let Some(order) = order.into_iter().map(back).collect() {
                    group.members = order;
                }
            }
            None => {
                let list: Vec<tnd_nhg_member> = members
                    .into_iter()
                    .map(|(nexthop, weight)| tnd_nhg_member { nexthop, weight })
                    .collect();
                let first = hash(&[list.as_bytes(), &group.hash.to_le_bytes()]);
                let left = &self.left_groups;
                self.nhgs
                    .give(id, from(first).filter(|c| !left.contains(c)));
            }
        }
    }

    /// A command about an object whose number belongs to another one by now: what it asks for has happened.
    pub fn overtaken<B: HwBody>(&mut self, id: u32) -> bool {
        B::numbers(self).is_some_and(|n| n.taken_over(id))
    }

    /// A port that has all this already. Asked once: what is written later the store knows.
    pub fn port_stands<B: HwClass>(&mut self, id: u32, body: &B) -> bool {
        if B::CLS != Cls::Port || self.ports.is_empty() {
            return false;
        }
        let there = u16::try_from(id + 1).ok();
        let there = there.and_then(|port| self.ports.remove(&port));
        there.is_some_and(|there| there.as_bytes() == body.encode(id, self).bytes())
    }

    /// An earlier core has not come to the end of filling the chip: all its ports that are up trap.
    pub fn left_bare(&self) -> bool {
        let mut up = self.ports.values().filter(|p| p.flags & TND_PORT_UP != 0);
        let traps = |p: &tnd_port| p.flags & TND_PORT_TRAP_ALL != 0;
        up.clone().next().is_some() && up.all(traps)
    }

    /// Ports that an earlier core has left trapping, for a reason that this one may not know yet: table ids.
    pub fn left_trapping(&self) -> HashSet<u32> {
        const TRAPS: u32 = TND_PORT_UP | TND_PORT_TRAP_ALL;
        let traps = self.ports.values().filter(|p| p.flags & TRAPS == TRAPS);
        let ids = traps.filter_map(|p| u32::from(p.port).checked_sub(1));
        ids.collect()
    }

    /// What the router interface that an earlier core has left at this place did not let through to the routes: flags.
    pub fn left_shut(&self, place: RifPlace) -> u32 {
        let rif = match place {
            RifPlace::Port(port) => Some(u32::from(port)),
            RifPlace::PortVlan(port, vid) => self.vlan_rifs.get(&(port, vid)).copied(),
            RifPlace::Vlan(vlan) => Some(self.fids.of(vlan) + FID_RIFS),
        };
        let shut = rif.and_then(|rif| self.shut_rifs.get(&rif));
        shut.copied().unwrap_or(0)
    }

    pub fn any_shut(&self) -> bool {
        !self.shut_rifs.is_empty()
    }

    /// What they are to be is known now.
    pub fn forget_shut(&mut self) {
        self.shut_rifs.clear();
    }

    /// What a port was to the bridge in which an earlier core has left it: flags, and spanning tree's state.
    pub fn left_bridged(&self, port: u16) -> Option<(u32, u8)> {
        self.bridged.get(&port).copied()
    }

    /// Ports that it has left in a bridge.
    pub fn all_left_bridged(&self) -> impl Iterator<Item = u16> {
        self.bridged.keys().copied()
    }

    /// The table id was given back: the number is free for something else.
    pub fn free<B: HwBody>(&mut self, id: u32) {
        if let Some(numbers) = B::numbers(self) {
            numbers.free(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bodies::{Nexthop, Rif};
    use super::*;

    fn rif(rif: u16, port: u16, vid: u16) -> tnd_rif {
        tnd_rif {
            rif,
            port,
            vid,
            kind: TND_RIF_PORT_VLAN,
            ..Default::default()
        }
    }

    fn left_group(nhg: u32, nexthops: &[u32]) -> (tnd_nhg, Vec<tnd_nhg_member>) {
        let head = tnd_nhg {
            nhg,
            ..Default::default()
        };
        let member = |n: &u32| tnd_nhg_member {
            nexthop: *n,
            weight: 1,
        };
        (head, nexthops.iter().map(member).collect())
    }

    /// Of next hops with these table ids.
    fn group(nexthops: &[u32]) -> Nhg {
        Nhg {
            hash: 0,
            members: nexthops.iter().map(|n| (*n, 1)).collect(),
        }
    }

    #[test]
    fn a_router_interface_is_named_by_its_place() {
        let mut ids = Ids::default();
        ids.name_rif(0, RifPlace::Port(7));
        assert_eq!(ids.rif(0), 7);
        // another order, the same numbers
        let mut again = Ids::default();
        again.name_rif(0, RifPlace::Port(3));
        again.name_rif(1, RifPlace::Port(7));
        assert_eq!((again.rif(0), again.rif(1)), (3, 7));
        assert_eq!(
            (again.rifs.table(7), again.rifs.table(3)),
            (Some(1), Some(0))
        );
        let domain = Domain { dev: 12, vlan: 0 };
        again.name_domain(5, domain);
        again.name_rif(2, RifPlace::Vlan(5));
        assert_eq!((again.fid(5), again.rif(2)), (12, 1036));
    }

    #[test]
    fn a_new_interface_on_the_place_of_an_old_one_is_not_deleted_with_it() {
        let mut ids = Ids::default();
        ids.name_rif(0, RifPlace::Port(3));
        ids.name_rif(1, RifPlace::Port(3));
        assert!(ids.overtaken::<Rif>(0));
        assert!(!ids.overtaken::<Rif>(1));
        assert!(!ids.overtaken::<Nexthop>(0));
        // what still refers to the old one means the same place
        assert_eq!((ids.rif(0), ids.rif(1)), (3, 3));
        ids.free::<Rif>(0);
        assert_eq!(ids.rifs.table(3), Some(1));
        ids.free::<Rif>(1);
        assert_eq!(ids.rifs.table(3), None);
    }

    #[test]
    fn a_vlan_of_a_port_keeps_its_number() {
        let mut ids = Ids::default();
        // every place its own number, between 5120 and the largest
        let places = (1..=32).flat_map(|port| (1..=300).map(move |vid| (port, vid)));
        let all: HashSet<u16> = (0..)
            .zip(places)
            .map(|(id, (port, vid))| {
                ids.name_rif(id, RifPlace::PortVlan(port, vid));
                ids.rif(id)
            })
            .collect();
        assert_eq!(all.len(), 32 * 300);
        assert!(all.iter().all(|id| (5120..=16383).contains(id)));
        // as the chip has it, whatever the order, and nobody else gets it
        let mut again = Ids::new(Left {
            rifs: vec![rif(9000, 3, 10), rif(8000, 3, 11)],
            ..Left::default()
        });
        again.name_rif(0, RifPlace::PortVlan(3, 11));
        again.name_rif(1, RifPlace::PortVlan(3, 10));
        assert_eq!((again.rif(0), again.rif(1)), (8000, 9000));
        assert_eq!(again.rifs.table(9000), Some(1));
        // a new interface there takes the place over
        again.name_rif(7, RifPlace::PortVlan(3, 10));
        assert_eq!(again.rifs.table(9000), Some(7));
    }

    /// Next hops by table id 0, 1, 2, with the numbers 4, 9, 8.
    fn with_hops(left: Left) -> Ids {
        let mut ids = Ids::new(left);
        for (id, chip) in [(0, 4), (1, 9), (2, 8)] {
            ids.name_nexthop(id, chip);
        }
        ids
    }

    #[test]
    fn groups_of_before_are_found_by_their_members() {
        let mut ids = with_hops(Left {
            groups: vec![left_group(77, &[9, 4])],
            ..Left::default()
        });
        let mut g = group(&[0, 1]);
        ids.name_group(0, &mut g);
        assert_eq!(ids.nhgs.of(0), 77);
        assert_eq!(g, group(&[1, 0]), "in the chip's order");
        // it keeps that when its members change in place
        ids.name_group(0, &mut group(&[2]));
        assert_eq!(ids.nhgs.of(0), 77);
        // another one never gets that number
        ids.name_group(1, &mut group(&[0, 2]));
        assert!(!matches!(ids.nhgs.of(1), 0 | 77));
        // freed, then used for something else
        ids.free::<Nhg>(0);
        ids.name_group(0, &mut group(&[1]));
        assert!(!matches!(ids.nhgs.of(0), 0 | 77));
    }

    #[test]
    fn equal_groups_keep_a_number_each() {
        let mut ids = with_hops(Left {
            groups: vec![left_group(77, &[4]), left_group(78, &[4])],
            ..Left::default()
        });
        for id in 0..3 {
            ids.name_group(id, &mut group(&[0]));
        }
        let mut named = [ids.nhgs.of(0), ids.nhgs.of(1)];
        named.sort_unstable();
        assert_eq!(named, [77, 78]);
        assert!(!matches!(ids.nhgs.of(2), 0 | 77 | 78));
    }

    #[test]
    fn collisions_count_on() {
        let mut ids = Ids::default();
        ids.name_nexthop(1, u32::MAX);
        ids.name_nexthop(2, u32::MAX);
        // it has one
        ids.name_nexthop(1, 5);
        assert_eq!((ids.nexthops.of(1), ids.nexthops.of(2)), (u32::MAX, 1));
        ids.free::<Nexthop>(1);
        assert_eq!(ids.nexthops.table(u32::MAX), None);
        ids.name_nexthop(3, u32::MAX);
        assert_eq!(ids.nexthops.of(3), u32::MAX);
    }

    #[test]
    fn a_domain_has_its_number_of_before() {
        let (a, b) = (Domain { dev: 50, vlan: 1 }, Domain { dev: 60, vlan: 1 });
        let left = Left {
            members: [((1, 1), 1), ((3, 1), 2), ((4, 7), 7)].into(),
            domains: [(b, 2)].into(),
            ..Left::default()
        };
        let mut ids = Ids::new(left);
        ids.name_domain(0, b);
        // 1 and 7 are somebody's of before
        ids.name_domain(1, a);
        ids.name_domain(2, Domain { dev: 50, vlan: 7 });
        assert_eq!([0, 1, 2].map(|id| ids.fid(id)), [2, 3, 8]);
        // when all others are taken one of those is given
        for id in 3..4094 {
            let dev = id;
            ids.name_domain(id, Domain { dev, vlan: 0 });
        }
        let all: HashSet<u16> = (0..4094).map(|id| ids.fid(id)).collect();
        assert_eq!(all, (1..=4094).collect());
        // one more is none that the chip has
        ids.name_domain(4094, Domain { dev: 9, vlan: 0 });
        assert_eq!(ids.fid(4094), 4095);
    }

    #[test]
    fn a_vrf_goes_by_its_table() {
        let mut ids = Ids::new(Left {
            vrfs: [(4104, 11)].into(),
            ..Left::default()
        });
        for (id, table) in [(0, 10), (1, 4104), (2, 4104)] {
            ids.name_vrf(id, table);
        }
        assert_eq!([0, 1, 2, 3].map(|slot| ids.vrf(slot)), [0, 10, 11, 12]);
        assert_eq!(
            [0, 11, 13].map(|vrf| ids.slot(vrf)),
            [Some(0), Some(2), None]
        );
    }
}

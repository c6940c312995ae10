//! Names that survive a restart: the chip's ids of domains, router interfaces, next hops, groups.
//!
//! ```text
//!   store (dense ids, in the order in which things came)      chip (the same id for the same thing, always)
//!     fid 1  ── bridge, ifindex 12 ─────────────────────────►  fid 12; its VLAN 20: fid 20
//!     vrf 1  ── table 10 ───────────────────────────────────►  vrf 10
//!     rif 2  ── on that bridge ─────────────────────────────►  rif 1024 + 12;  on port 3: rif 3
//!     rif 3  ── on VLAN 10 of port 3 ───────────────────────►  the chip's there, else a hash, from 5120
//!     nh  7  ── 10.0.0.2 on ifindex 9 ──────────────────────►  hash of both
//!     nhg 1  ── members ────────────────────────────────────►  the chip's group with these members, else a hash
//! ```
//!
//! A new switchd reads the kernel's tables in another order than they grew in. If its ids differed
//! from those in the chip, every route would have to be written again. So ids on the wire follow from
//! what the thing *is*; two things that want the same id are told apart by counting on (then a
//! restart may swap them, which costs writes and nothing else).

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;

use tandem_abi::object::{Object, fixed, read_nhg, read_object};
use tandem_abi::raw;
use tandem_store::{Domain, Planned, Store};
use zerocopy::IntoBytes;

/// Ids of domains: 1..=4094.
const FIDS: u32 = 4094;
/// Numbers of VRFs: 1..=4094.
const VRFS: u32 = 4094;
/// Router interfaces of domains begin here; below are those of ports.
const FID_RIFS: u16 = 1024;
/// And those of ports' VLANs here.
const VLAN_RIFS: u32 = 5120;
/// The largest that the ABI's devices take.
const MAX_RIF: u32 = 16383;

/// What a thing is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    /// A bridge, or a VLAN of one.
    Domain(Domain),
    /// A VRF by its table.
    Vrf(u32),
    /// On a port.
    PortRif(u16),
    /// On a VLAN of a port.
    VlanRif(u16, u16),
    /// On a domain of the chip.
    FidRif(u16),
    /// A gateway.
    Nexthop(u32, IpAddr),
    /// A next hop without a neighbour in the store: its number there.
    Unnamed(u32),
    /// Members as the chip knows them, sorted.
    Group(Vec<(u32, u32)>, u32),
}

/// One class's numbers, both ways.
#[derive(Debug, Default)]
struct Names {
    to_chip: HashMap<u32, (Identity, u32)>,
    to_store: HashMap<u32, u32>,
}

impl Names {
    fn chip(&self, store: u32) -> Option<u32> {
        self.to_chip.get(&store).map(|(_, c)| *c)
    }

    fn forget(&mut self, store: u32) {
        if let Some((_, chip)) = self.to_chip.remove(&store)
            && self.to_store.get(&chip) == Some(&store)
        {
            self.to_store.remove(&chip);
        }
    }

    /// Gives `store` this very number, whoever had it: that one keeps pointing there.
    fn take_over(&mut self, store: u32, identity: Identity, chip: u32) {
        self.forget(store);
        self.to_chip.insert(store, (identity, chip));
        self.to_store.insert(chip, store);
    }

    /// Somebody else has taken the number over.
    fn taken_over(&self, store: u32) -> bool {
        self.chip(store)
            .and_then(|c| self.to_store.get(&c))
            .is_some_and(|owner| *owner != store)
    }

    /// The chip's id: what it was, or the first free one of `candidates`.
    fn assign(
        &mut self,
        store: u32,
        identity: Identity,
        mut candidates: impl Iterator<Item = u32>,
    ) -> u32 {
        match self.to_chip.get(&store) {
            Some((i, chip)) if *i == identity => return *chip,
            _ => self.forget(store),
        }
        let chip = candidates
            .find(|c| !self.to_store.contains_key(c))
            .unwrap_or(store);
        self.to_chip.insert(store, (identity, chip));
        self.to_store.insert(chip, store);
        chip
    }
}

/// A group found in the chip at a warm attach: its id and its members in the chip's order.
type Found = (u32, Vec<raw::tnd_nhg_member>);

/// Members, sorted, and the hash.
type GroupKey = (Vec<(u32, u32)>, u32);

/// What an earlier switchd left in the chip that the next one must know.
#[derive(Debug, Default)]
pub struct Left {
    /// Groups with their members.
    pub groups: Vec<(raw::tnd_nhg, Vec<raw::tnd_nhg_member>)>,
    /// Router interfaces: those of ports' VLANs have no number of their own, and a place has one.
    pub rifs: Vec<raw::tnd_rif>,
    /// Ports: they are there always, so an equal one is not written again.
    pub ports: Vec<raw::tnd_port>,
    /// Domains by their members: port and VID.
    pub members: HashMap<(u16, u16), u16>,
    /// Domains by what they stand for, where that is known.
    pub domains: HashMap<Domain, u16>,
}

/// All translations of one attach.
#[derive(Debug, Default)]
pub struct Ids {
    fids: Names,
    vrfs: Names,
    rifs: Names,
    nexthops: Names,
    nhgs: Names,
    /// Groups of an earlier switchd that nobody has claimed, by members and hash; several may be
    /// equal.
    groups: HashMap<GroupKey, Vec<Found>>,
    /// Their ids: not for others.
    group_ids: HashMap<u32, ()>,
    ports: HashMap<u16, raw::tnd_port>,
    /// Router interfaces by port and VID, those of an earlier switchd too: a place keeps its number.
    vlan_rifs: HashMap<(u16, u16), u32>,
    /// Domains of an earlier switchd, by member and by what they stand for.
    members: HashMap<(u16, u16), u16>,
    member_fids: HashSet<u16>,
    domains: HashMap<Domain, u16>,
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

/// From `first` on, without 0.
fn from(first: u32) -> impl Iterator<Item = u32> {
    (0..u32::MAX).map(move |n| first.wrapping_add(n).max(1))
}

fn members(list: &[raw::tnd_nhg_member]) -> Vec<(u32, u32)> {
    let mut m: Vec<_> = list.iter().map(|m| (m.nexthop, m.weight)).collect();
    m.sort_unstable();
    m
}

impl Ids {
    /// For a chip with this in it (nothing after a cold attach).
    pub fn new(left: Left) -> Ids {
        let mut ids = Ids {
            ports: left.ports.into_iter().map(|p| (p.port, p)).collect(),
            vlan_rifs: left
                .rifs
                .into_iter()
                .filter(|r| r.kind == raw::TND_RIF_PORT_VLAN)
                .map(|r| ((r.port, r.vid), u32::from(r.rif)))
                .collect(),
            member_fids: left.members.values().copied().collect(),
            members: left.members,
            domains: left.domains,
            ..Ids::default()
        };
        for (g, list) in left.groups {
            ids.group_ids.insert(g.nhg, ());
            let equal = ids.groups.entry((members(&list), g.hash)).or_default();
            equal.push((g.nhg, list));
        }
        ids
    }

    /// Learns what the domains stand for that an earlier switchd has left; and says it.
    pub fn name_domains(&mut self, bridge_of: impl Fn(u16) -> u32) -> HashMap<u16, Domain> {
        let members = self.members.iter().map(|(k, fid)| (*k, *fid));
        let owners = super::domains::owners(members, bridge_of);
        for (fid, domain) in &owners {
            self.domains.entry(*domain).or_insert(*fid);
        }
        owners
    }

    /// The store's number of a domain of the chip.
    pub fn store_fid(&self, chip: u16) -> Option<u16> {
        let s = self.fids.to_store.get(&u32::from(chip))?;
        u16::try_from(*s).ok()
    }

    /// The chip's number of a domain of the store; 0 = none.
    pub fn chip_fid(&self, store: u16) -> u16 {
        self.fids
            .chip(u32::from(store))
            .and_then(|c| u16::try_from(c).ok())
            .unwrap_or(0)
    }

    /// The store's number of a router interface of the chip.
    pub fn store_rif(&self, chip: u16) -> Option<u16> {
        let s = self.rifs.to_store.get(&u32::from(chip))?;
        u16::try_from(*s).ok()
    }

    /// The store's number of a next hop of the chip.
    pub fn store_nexthop(&self, chip: u32) -> Option<u32> {
        self.nexthops.to_store.get(&chip).copied()
    }

    /// A command about an object whose number belongs to another one by now: what it asks for has
    /// happened.
    pub fn overtaken(&self, p: &Planned) -> bool {
        p.cls == raw::TND_CLS_RIF
            && p.op != raw::TND_OP_CREATE
            && id_of(p).is_some_and(|id| self.rifs.taken_over(id))
    }

    /// The body as the chip shall see it. `None`: not an object with ids, or not readable; post it
    /// as it is.
    pub fn translate(&mut self, p: &Planned, store: &Store) -> Option<Vec<u8>> {
        let body = p.body.bytes();
        let fresh = p.op == raw::TND_OP_CREATE;
        match p.cls {
            raw::TND_CLS_VLAN => edit::<raw::tnd_vlan>(body, |v| {
                v.fid = self.fid(v.fid, fresh, store);
            }),
            raw::TND_CLS_VLAN_MEMBER => edit::<raw::tnd_vlan_member>(body, |m| {
                m.fid = self.fid(m.fid, false, store);
            }),
            raw::TND_CLS_FDB => edit::<raw::tnd_fdb>(body, |f| {
                f.fid = self.fid(f.fid, false, store);
            }),
            raw::TND_CLS_MDB => edit_group(body, |m| {
                m.fid = self.fid(m.fid, false, store);
            }),
            raw::TND_CLS_RIF => edit::<raw::tnd_rif>(body, |r| {
                if r.kind == raw::TND_RIF_FID {
                    r.fid = self.fid(r.fid, false, store);
                }
                r.vrf = self.vrf(r.vrf, store);
                r.rif = self.rif(r, fresh);
            }),
            raw::TND_CLS_NEIGH => edit::<raw::tnd_neigh>(body, |n| n.rif = self.rif_of(n.rif)),
            raw::TND_CLS_NEXTHOP => edit::<raw::tnd_nexthop>(body, |n| {
                n.rif = self.rif_of(n.rif);
                n.nexthop = self.nexthop(n.nexthop, fresh, store);
            }),
            raw::TND_CLS_NHG => self.group(body, p.op),
            raw::TND_CLS_VRF => edit::<raw::tnd_vrf>(body, |v| v.vrf = self.vrf(v.vrf, store)),
            raw::TND_CLS_ROUTE => edit::<raw::tnd_route>(body, |r| {
                r.vrf = self.vrf(r.vrf, store);
                match r.target_kind {
                    raw::TND_RT_NEXTHOP => {
                        r.target = self.nexthops.chip(r.target).unwrap_or(r.target);
                    }
                    raw::TND_RT_NHG => r.target = self.nhgs.chip(r.target).unwrap_or(r.target),
                    _ => {}
                }
            }),
            _ => None,
        }
    }

    /// A port that has all this already. Asked once: what is written later is the store's to know.
    pub fn port_stands(&mut self, p: &Planned) -> bool {
        if p.cls != raw::TND_CLS_PORT {
            return false;
        }
        let Ok((wanted, _)) = read_object::<raw::tnd_port>(p.body.bytes()) else {
            return false;
        };
        self.ports.remove(&wanted.port).is_some_and(|there| {
            p.op == raw::TND_OP_UPDATE && there.as_bytes() == wanted.as_bytes()
        })
    }

    /// A DELETE was answered: the number is free for something else.
    pub fn deleted(&mut self, cls: u16, id: u32) {
        match cls {
            raw::TND_CLS_VLAN => self.fids.forget(id),
            raw::TND_CLS_VRF => self.vrfs.forget(id),
            raw::TND_CLS_RIF => self.rifs.forget(id),
            raw::TND_CLS_NEXTHOP => self.nexthops.forget(id),
            raw::TND_CLS_NHG => self.nhgs.forget(id),
            _ => {}
        }
    }

    fn fid(&mut self, id: u16, fresh: bool, store: &Store) -> u16 {
        let known = self.fids.chip(u32::from(id)).filter(|_| !fresh);
        let chip = known.unwrap_or_else(|| {
            let domain = store.domain(id).unwrap_or(Domain {
                dev: u32::from(id),
                vlan: 0,
            });
            // the number that it has on the chip, if it is there
            let members = match self.members.is_empty() {
                true => Vec::new(),
                false => store.domain_members(id),
            };
            let mut of_members = members.iter().filter_map(|m| self.members.get(m));
            let own = self.domains.get(&domain).or_else(|| of_members.next());
            let taken = &self.member_fids;
            let first = u32::from(preferred_fid(domain)) - 1;
            let count = move || (0..FIDS).map(move |n| (first + n) % FIDS + 1);
            let candidates = own
                .map(|f| u32::from(*f))
                .into_iter()
                .chain(count().filter(|f| u16::try_from(*f).is_ok_and(|f| !taken.contains(&f))))
                .chain(count());
            self.fids
                .assign(u32::from(id), Identity::Domain(domain), candidates)
        });
        u16::try_from(chip).unwrap_or(id)
    }

    /// A VRF by its table; 0 is the default one.
    fn vrf(&mut self, id: u16, store: &Store) -> u16 {
        if id == 0 {
            return 0;
        }
        let known = self.vrfs.chip(u32::from(id));
        let chip = known.unwrap_or_else(|| {
            let table = store.vrf_table(id).unwrap_or(u32::from(id));
            let first = table.wrapping_sub(1);
            let candidates = (0..VRFS).map(move |n| first.wrapping_add(n) % VRFS + 1);
            self.vrfs
                .assign(u32::from(id), Identity::Vrf(table), candidates)
        });
        u16::try_from(chip).unwrap_or(id)
    }

    /// The store's number of a VRF of the chip.
    pub fn store_vrf(&self, chip: u16) -> Option<u16> {
        if chip == 0 {
            return Some(0);
        }
        let s = self.vrfs.to_store.get(&u32::from(chip))?;
        u16::try_from(*s).ok()
    }

    /// The chip's domains by what they stand for.
    pub fn named_domains(&self) -> HashMap<Domain, u16> {
        let named = self.fids.to_chip.values();
        named
            .filter_map(|(identity, chip)| match identity {
                Identity::Domain(d) => Some((*d, u16::try_from(*chip).ok()?)),
                _ => None,
            })
            .collect()
    }

    /// One interface on a place at a time: a new one takes the number over, also while the store
    /// still has the old one to delete.
    fn rif(&mut self, r: &raw::tnd_rif, fresh: bool) -> u16 {
        let id = u32::from(r.rif);
        if fresh || self.rifs.chip(id).is_none() {
            let (identity, chip) = match r.kind {
                raw::TND_RIF_FID => (
                    Identity::FidRif(r.fid),
                    u32::from(r.fid) + u32::from(FID_RIFS),
                ),
                raw::TND_RIF_PORT_VLAN => (
                    Identity::VlanRif(r.port, r.vid),
                    self.vlan_rif(r.port, r.vid, id),
                ),
                _ => (Identity::PortRif(r.port), u32::from(r.port)),
            };
            self.rifs.take_over(id, identity, chip);
        }
        self.rif_of(r.rif)
    }

    /// The number of a place on a port's VLAN, given when it is first used. Numbers of places without an interface are
    /// free again only when there is no other.
    fn vlan_rif(&mut self, port: u16, vid: u16, fallback: u32) -> u32 {
        if let Some(chip) = self.vlan_rifs.get(&(port, vid)) {
            return *chip;
        }
        let count = MAX_RIF + 1 - VLAN_RIFS;
        if self.vlan_rifs.len() >= count as usize {
            let used = &self.rifs.to_store;
            self.vlan_rifs.retain(|_, chip| used.contains_key(chip));
        }
        let first = hash(&[&port.to_le_bytes(), &vid.to_le_bytes()]) % count;
        let taken: HashSet<u32> = self.vlan_rifs.values().copied().collect();
        let chip = (0..count)
            .map(|n| VLAN_RIFS + (first + n) % count)
            .find(|c| !taken.contains(c))
            .unwrap_or(fallback);
        self.vlan_rifs.insert((port, vid), chip);
        chip
    }

    fn rif_of(&self, id: u16) -> u16 {
        self.rifs
            .chip(u32::from(id))
            .and_then(|c| u16::try_from(c).ok())
            .unwrap_or(id)
    }

    fn nexthop(&mut self, id: u32, fresh: bool, store: &Store) -> u32 {
        if let Some(chip) = self.nexthops.chip(id).filter(|_| !fresh) {
            return chip;
        }
        let (identity, first) = match store.nexthop_neighbour(id) {
            Some(w) => {
                let address = match w.addr {
                    IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
                    IpAddr::V6(a) => a.octets(),
                };
                (
                    Identity::Nexthop(w.ifindex, w.addr),
                    hash(&[&w.ifindex.to_le_bytes(), &address]),
                )
            }
            None => (Identity::Unnamed(id), id),
        };
        self.nexthops.assign(id, identity, from(first))
    }

    /// A group keeps its id when its members change in place.
    fn group(&mut self, body: &[u8], op: u16) -> Option<Vec<u8>> {
        let (mut head, mut list) = match op {
            // keys have no members
            raw::TND_OP_DELETE => (read_object::<raw::tnd_nhg>(body).ok()?.0, Vec::new()),
            _ => read_nhg(body).ok()?,
        };
        let id = head.nhg;
        for m in &mut list {
            m.nexthop = self.nexthops.chip(m.nexthop).unwrap_or(m.nexthop);
        }
        if op == raw::TND_OP_CREATE {
            let key = (members(&list), head.hash);
            let identity = Identity::Group(key.0.clone(), head.hash);
            let taken = &self.nhgs.to_store;
            let equal = self.groups.get_mut(&key);
            let found = equal.and_then(|list| {
                let free = list.iter().position(|(g, _)| !taken.contains_key(g))?;
                Some(list.remove(free))
            });
            let chip = match found {
                Some((found, order)) => {
                    list = order;
                    self.nhgs.assign(id, identity, std::iter::once(found))
                }
                _ => {
                    let first = hash(&[list.as_bytes(), &head.hash.to_le_bytes()]);
                    let taken = &self.group_ids;
                    self.nhgs
                        .assign(id, identity, from(first).filter(|c| !taken.contains_key(c)))
                }
            };
            head.nhg = chip;
        } else {
            head.nhg = self.nhgs.chip(id).unwrap_or(id);
        }
        let mut out = head.as_bytes().to_vec();
        out.extend_from_slice(list.as_bytes());
        Some(out)
    }
}

/// The chip's number of a domain, if nobody else took it first.
pub fn preferred_fid(domain: Domain) -> u16 {
    let n = match domain.vlan {
        0 => domain.dev,
        vid => u32::from(vid),
    };
    (n.wrapping_sub(1) % FIDS) as u16 + 1
}

/// Reads, changes, writes one object.
fn edit<T: Object>(body: &[u8], change: impl FnOnce(&mut T)) -> Option<Vec<u8>> {
    let (mut object, _) = read_object::<T>(body).ok()?;
    change(&mut object);
    Some(object.as_bytes().to_vec())
}

/// The same of a body with a tail, which stays.
fn edit_group(body: &[u8], change: impl FnOnce(&mut raw::tnd_mdb)) -> Option<Vec<u8>> {
    let (mut object, _) = read_object::<raw::tnd_mdb>(body).ok()?;
    change(&mut object);
    let tail = body.get(size_of::<raw::tnd_mdb>()..)?;
    Some([object.as_bytes(), tail].concat())
}

/// The id that a command's body names, for classes whose ids are translated.
pub fn id_of(p: &Planned) -> Option<u32> {
    let body = p.body.bytes();
    Some(match p.cls {
        raw::TND_CLS_VLAN => u32::from(read_object::<raw::tnd_vlan>(body).ok()?.0.fid),
        raw::TND_CLS_VRF => u32::from(read_object::<raw::tnd_vrf>(body).ok()?.0.vrf),
        raw::TND_CLS_RIF => u32::from(read_object::<raw::tnd_rif>(body).ok()?.0.rif),
        raw::TND_CLS_NEXTHOP => read_object::<raw::tnd_nexthop>(body).ok()?.0.nexthop,
        raw::TND_CLS_NHG => read_object::<raw::tnd_nhg>(body).ok()?.0.nhg,
        _ => return None,
    })
}

/// Members of a dumped group.
pub fn dumped_members(tail: &[u8]) -> Vec<raw::tnd_nhg_member> {
    fixed(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_store::{Body, Ring};

    fn planned<T: Object>(op: u16, object: &T) -> Planned {
        let mut object = *object;
        object.set_struct_size();
        Planned {
            token: 0,
            ring: Ring::Sync,
            op,
            cls: T::CLASS,
            flags: 0,
            lease: 0,
            body: Body::Arena(object.as_bytes().into()),
        }
    }

    fn group(nhg: u32, nexthops: &[u32]) -> Planned {
        let list: Vec<raw::tnd_nhg_member> = nexthops
            .iter()
            .map(|&nexthop| raw::tnd_nhg_member { nexthop, weight: 1 })
            .collect();
        let head = raw::tnd_nhg {
            struct_size: 16,
            count: list.len() as u16,
            nhg,
            ..Default::default()
        };
        let mut body = head.as_bytes().to_vec();
        body.extend_from_slice(list.as_bytes());
        Planned {
            token: 0,
            ring: Ring::Sync,
            op: raw::TND_OP_CREATE,
            cls: raw::TND_CLS_NHG,
            flags: 0,
            lease: 0,
            body: Body::Arena(body.into()),
        }
    }

    #[test]
    fn a_router_interface_is_named_by_its_place() {
        let store = Store::default();
        let mut ids = Ids::default();
        let rif = |rif, port| raw::tnd_rif {
            rif,
            port,
            kind: raw::TND_RIF_PORT,
            ..Default::default()
        };
        let read = |b: Vec<u8>| read_object::<raw::tnd_rif>(&b).unwrap().0.rif;
        let p = planned(raw::TND_OP_CREATE, &rif(1, 7));
        assert_eq!(read(ids.translate(&p, &store).unwrap()), 7);
        // another order, the same names
        let mut again = Ids::default();
        let p = planned(raw::TND_OP_CREATE, &rif(1, 3));
        assert_eq!(read(again.translate(&p, &store).unwrap()), 3);
        let p = planned(raw::TND_OP_CREATE, &rif(2, 7));
        assert_eq!(read(again.translate(&p, &store).unwrap()), 7);
        assert_eq!((again.store_rif(7), again.store_rif(3)), (Some(2), Some(1)));
    }

    #[test]
    fn a_new_interface_on_the_place_of_an_old_one_is_not_deleted_with_it() {
        let store = Store::default();
        let mut ids = Ids::default();
        let rif = |rif| raw::tnd_rif {
            rif,
            port: 3,
            kind: raw::TND_RIF_PORT,
            ..Default::default()
        };
        ids.translate(&planned(raw::TND_OP_CREATE, &rif(1)), &store);
        ids.translate(&planned(raw::TND_OP_CREATE, &rif(2)), &store);
        assert!(ids.overtaken(&planned(raw::TND_OP_DELETE, &rif(1))));
        assert!(!ids.overtaken(&planned(raw::TND_OP_DELETE, &rif(2))));
        // what still refers to the old one means the same place
        assert_eq!((ids.rif_of(1), ids.rif_of(2)), (3, 3));
        ids.deleted(raw::TND_CLS_RIF, 1);
        assert_eq!(ids.store_rif(3), Some(2));
    }

    #[test]
    fn a_vlan_of_a_port_keeps_its_number() {
        let store = Store::default();
        let rif = |rif, port, vid| raw::tnd_rif {
            rif,
            port,
            vid,
            kind: raw::TND_RIF_PORT_VLAN,
            ..Default::default()
        };
        let read = |b: Vec<u8>| read_object::<raw::tnd_rif>(&b).unwrap().0.rif;
        let named = |ids: &mut Ids, r: raw::tnd_rif| {
            let body = ids.translate(&planned(raw::TND_OP_CREATE, &r), &store);
            read(body.unwrap())
        };
        let mut ids = Ids::default();
        // every place its own number, between 5120 and the largest
        let all: HashSet<u16> = (1..=32)
            .flat_map(|port| (1..=300).map(move |vid| (port, vid)))
            .enumerate()
            .map(|(n, (port, vid))| named(&mut ids, rif(n as u16, port, vid)))
            .collect();
        assert_eq!(all.len(), 32 * 300);
        assert!(all.iter().all(|id| (5120..=16383).contains(id)));
        // as the chip has it, whatever the order, and nobody else gets it
        let mut again = Ids::new(Left {
            rifs: vec![rif(9000, 3, 10), rif(8000, 3, 11)],
            ..Left::default()
        });
        assert_eq!(named(&mut again, rif(1, 3, 11)), 8000);
        assert_eq!(named(&mut again, rif(2, 3, 10)), 9000);
        assert_eq!(again.store_rif(9000), Some(2));
        // a new interface there takes the place over
        assert_eq!(named(&mut again, rif(7, 3, 10)), 9000);
        assert_eq!(again.store_rif(9000), Some(7));
    }

    #[test]
    fn groups_of_before_are_found_by_their_members() {
        let store = Store::default();
        let found = (
            raw::tnd_nhg {
                nhg: 77,
                count: 2,
                ..Default::default()
            },
            vec![
                raw::tnd_nhg_member {
                    nexthop: 9,
                    weight: 1,
                },
                raw::tnd_nhg_member {
                    nexthop: 4,
                    weight: 1,
                },
            ],
        );
        let mut ids = Ids::new(Left {
            groups: vec![found],
            ..Left::default()
        });
        let body = ids.translate(&group(1, &[4, 9]), &store).unwrap();
        let (head, list) = read_nhg(&body).unwrap();
        assert_eq!(head.nhg, 77);
        assert_eq!(list[0].nexthop, 9, "in the chip's order");
        // another one never gets that id
        let body = ids.translate(&group(2, &[4, 8]), &store).unwrap();
        assert_ne!(read_nhg(&body).unwrap().0.nhg, 77);
        // freed, then used for something else
        ids.deleted(raw::TND_CLS_NHG, 1);
        let body = ids.translate(&group(1, &[5]), &store).unwrap();
        assert_ne!(read_nhg(&body).unwrap().0.nhg, 77);
    }

    #[test]
    fn equal_groups_keep_an_id_each() {
        let store = Store::default();
        let found = |nhg| {
            let head = raw::tnd_nhg {
                nhg,
                count: 1,
                ..Default::default()
            };
            let member = raw::tnd_nhg_member {
                nexthop: 4,
                weight: 1,
            };
            (head, vec![member])
        };
        let mut ids = Ids::new(Left {
            groups: vec![found(77), found(78)],
            ..Left::default()
        });
        let mut named: Vec<u32> = (1..=2)
            .map(|n| {
                let body = ids.translate(&group(n, &[4]), &store).unwrap();
                read_nhg(&body).unwrap().0.nhg
            })
            .collect();
        named.sort_unstable();
        assert_eq!(named, [77, 78]);
    }

    #[test]
    fn collisions_count_on() {
        let mut n = Names::default();
        let a = n.assign(1, Identity::Unnamed(1), from(u32::MAX));
        let b = n.assign(2, Identity::Unnamed(2), from(u32::MAX));
        let again = n.assign(1, Identity::Unnamed(1), from(5));
        assert_eq!((a, b, again), (u32::MAX, 1, u32::MAX));
        n.forget(1);
        assert_eq!(n.assign(3, Identity::Unnamed(3), from(u32::MAX)), u32::MAX);
    }
}

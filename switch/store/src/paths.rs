//! Next hops of routes, interned, and what they become on the chip.
//!
//! A [`PathSet`] is what the kernel calls a fib_info: one list of next hops (or a next-hop object's id) with its
//! preferred source, shared by every route that has the same. It owns at most one next-hop group on the chip, and that
//! group stays when members come and go: a swap of its members is one UPDATE, whatever the number of routes.

use crate::fib::Content;
use crate::model::{Family, NextHop, NexthopKind, NexthopObject, RouteNextHops};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use tandem_cover::NONE;
use tandem_cover::slab::Slab;

/// What identifies a set of next hops.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathKey {
    pub nexthops: RouteNextHops,
    /// Family of the routes: its sysctls decide, also for gateways of the other family.
    pub family: Family,
    /// Removing this address removes the IPv4 routes that prefer it.
    pub prefsrc: Option<Ipv4Addr>,
}

/// Why a path is not forwarded by the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The device is not a front-panel port or a bridge of such.
    NotOffloaded(u32),
    /// No next hop at all.
    Nowhere,
    /// The next-hop object is not known (yet).
    NoObject(u32),
    /// A group with members that have no gateway.
    ConnectedMember,
    /// More members or a larger weight than the ABI carries.
    TooLarge,
    /// A resilient group's buckets are so mixed that they are more pieces than the ABI carries members.
    Pieces(u32),
    /// fib_multipath_hash_policy is neither 0 nor 1.
    HashPolicy(u8),
    /// The next-hop object says so.
    Unsupported(crate::model::Unsupported),
}

/// How a flow finds its next hop among those of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Select {
    /// There is one.
    Single,
    /// By weight, of a route's own next hops.
    Multipath,
    /// By weight, of a group of next-hop objects.
    Group,
    /// By the kernel's buckets: each next hop is a run of them.
    Buckets,
}

/// What a path means for its routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Every next hop is dead: the kernel looks further.
    Dead,
    /// To the CPU.
    Trap(Why),
    /// Dropped in silence.
    Drop,
    /// On the link itself.
    Connected(u32),
    /// Content for the chip.
    Forward(Content),
}

/// A set of next hops in use.
#[derive(Clone, Debug)]
pub(crate) struct PathSet {
    /// None: the slot is free.
    pub key: Option<PathKey>,
    /// First alias of the list of users.
    pub users: u32,
    pub count: u32,
    pub target: Target,
    /// Table ids of the next hops that it holds on the chip.
    pub next_hops: Vec<u32>,
    /// Table id of its group, [`NONE`] = none.
    pub group: u32,
    pub dirty: bool,
}

impl Default for PathSet {
    fn default() -> Self {
        PathSet {
            key: None,
            users: NONE,
            count: 0,
            target: Target::Trap(Why::Nowhere),
            next_hops: Vec::new(),
            group: NONE,
            dirty: false,
        }
    }
}

/// A gateway on the chip.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    pub ifindex: u32,
    pub addr: IpAddr,
    /// Paths that use it.
    pub paths: Vec<u32>,
}

/// All paths and next-hop objects.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub sets: Slab<PathSet>,
    pub by_key: HashMap<PathKey, u32>,
    /// Next-hop objects with source and generation.
    pub objects: HashMap<u32, (NexthopObject, u8, u16)>,
    /// Objects that are one next hop, by its interface.
    pub objects_on: BTreeSet<(u32, u32)>,
    /// Groups by member object.
    pub object_groups: HashMap<u32, Vec<u32>>,
    /// Paths by the object that they name.
    pub object_paths: HashMap<u32, Vec<u32>>,
    /// Table id of the next hop on the chip.
    pub gateways: BTreeMap<(u32, IpAddr), u32>,
    /// By table id.
    pub gateway_info: Vec<Option<Gateway>>,
    /// Path that owns a group, by table id.
    pub group_owner: Vec<u32>,
    /// Paths to look at again.
    pub dirty: Vec<u32>,
    /// Paths by the interfaces of their own next hops.
    pub leading: HashMap<u32, BTreeSet<u32>>,
    /// Paths by the address that IPv4 routes prefer.
    pub preferring: HashMap<Ipv4Addr, BTreeSet<u32>>,
    /// How many gateways are on an interface, and paths lead there without one: it needs a RIF.
    pub on_interface: HashMap<u32, u32>,
}

impl Paths {
    /// The list of next hops that a key means now. `Err`: why there is none.
    pub fn next_hops(&self, key: &PathKey) -> Result<(Vec<NextHop>, Select), Target> {
        match &key.nexthops {
            RouteNextHops::None => Err(Target::Trap(Why::Nowhere)),
            RouteNextHops::One(n) => Ok((vec![*n], Select::Single)),
            RouteNextHops::Many(l) => Ok((l.to_vec(), Select::Multipath)),
            RouteNextHops::Object(id) => {
                let Some((o, ..)) = self.objects.get(id) else {
                    return Err(Target::Trap(Why::NoObject(*id)));
                };
                if let Some(u) = o.unsupported {
                    return Err(Target::Trap(Why::Unsupported(u)));
                }
                match &o.kind {
                    NexthopKind::Single(n) => Ok((vec![*n], Select::Single)),
                    NexthopKind::Blackhole => Err(Target::Drop),
                    NexthopKind::Group(members) | NexthopKind::Buckets(members) => {
                        let mut out = Vec::with_capacity(members.len());
                        for &(m, weight) in members {
                            match self.objects.get(&m) {
                                Some((o, ..)) if o.unsupported.is_none() => match &o.kind {
                                    NexthopKind::Single(n) => out.push(NextHop { weight, ..*n }),
                                    NexthopKind::Blackhole => return Err(Target::Drop),
                                    NexthopKind::Group(_) | NexthopKind::Buckets(_) => {
                                        return Err(Target::Trap(Why::TooLarge));
                                    }
                                },
                                Some((o, ..)) => {
                                    return Err(Target::Trap(
                                        o.unsupported.map_or(Why::Nowhere, Why::Unsupported),
                                    ));
                                }
                                None => return Err(Target::Trap(Why::NoObject(m))),
                            }
                        }
                        if out.is_empty() {
                            Err(Target::Trap(Why::Nowhere))
                        } else {
                            let select = match &o.kind {
                                NexthopKind::Buckets(_) => Select::Buckets,
                                _ => Select::Group,
                            };
                            Ok((out, select))
                        }
                    }
                }
            }
        }
    }

    /// Marks a path for another look.
    pub fn touch(&mut self, id: u32) {
        if let Some(p) = self.sets.get(id)
            && p.key.is_some()
            && !p.dirty
        {
            self.sets[id].dirty = true;
            self.dirty.push(id);
        }
    }

    /// All paths in use.
    pub fn ids(&self) -> Vec<u32> {
        (0..self.sets.bound())
            .filter(|&i| self.sets[i].key.is_some())
            .collect()
    }

    /// A path came (`there`) or goes: keeps the indexes by what its key names.
    pub fn index_path(&mut self, id: u32, key: &PathKey, there: bool) {
        fn note<K: std::hash::Hash + Eq>(
            index: &mut HashMap<K, BTreeSet<u32>>,
            key: K,
            id: u32,
            there: bool,
        ) {
            let of_key = index.entry(key).or_default();
            match there {
                true => of_key.insert(id),
                false => of_key.remove(&id),
            };
        }
        let hops = match &key.nexthops {
            RouteNextHops::One(n) => std::slice::from_ref(n),
            RouteNextHops::Many(l) => l,
            RouteNextHops::None | RouteNextHops::Object(_) => &[],
        };
        for n in hops {
            note(&mut self.leading, n.ifindex, id, there);
            if self.leading.get(&n.ifindex).is_some_and(BTreeSet::is_empty) {
                self.leading.remove(&n.ifindex);
            }
        }
        if let Some(a) = key.prefsrc {
            note(&mut self.preferring, a, id, there);
            if self.preferring.get(&a).is_some_and(BTreeSet::is_empty) {
                self.preferring.remove(&a);
            }
        }
    }

    /// Paths with a next hop of their own on an interface.
    pub fn leading_to(&self, ifindex: u32) -> Vec<u32> {
        let of_it = self.leading.get(&ifindex).into_iter().flatten();
        of_it.copied().collect()
    }

    /// Paths that may lead over an interface: those with a next hop there, and those by next-hop objects that have one.
    pub fn over(&self, ifindex: u32) -> Vec<u32> {
        let mut out = self.leading_to(ifindex);
        for id in self.objects_over(ifindex) {
            out.extend(self.using_object(id));
        }
        out
    }

    /// Next-hop objects that are one next hop on an interface, in order.
    pub fn objects_over(&self, ifindex: u32) -> Vec<u32> {
        let on = self.objects_on.range((ifindex, 0)..=(ifindex, u32::MAX));
        on.map(|x| x.1).collect()
    }

    /// Paths that depend on a next-hop object, by themselves or through a group.
    pub fn using_object(&self, id: u32) -> Vec<u32> {
        let direct = self.object_paths.get(&id).into_iter().flatten();
        let groups = self.object_groups.get(&id).into_iter().flatten();
        let indirect = groups.filter_map(|g| self.object_paths.get(g)).flatten();
        direct.chain(indirect).copied().collect()
    }

    /// A next-hop object came, changed or went: keeps the indexes of groups by member, and of single ones by interface.
    pub fn index_object(&mut self, id: u32, old: Option<&NexthopKind>, new: Option<&NexthopKind>) {
        if let Some(NexthopKind::Single(n)) = old {
            self.objects_on.remove(&(n.ifindex, id));
        }
        if let Some(NexthopKind::Single(n)) = new {
            self.objects_on.insert((n.ifindex, id));
        }
        for m in old.into_iter().flat_map(NexthopKind::members) {
            if let Some(l) = self.object_groups.get_mut(&m) {
                l.retain(|&g| g != id);
                if l.is_empty() {
                    self.object_groups.remove(&m);
                }
            }
        }
        for m in new.into_iter().flat_map(NexthopKind::members) {
            let l = self.object_groups.entry(m).or_default();
            if !l.contains(&id) {
                l.push(id);
            }
        }
    }
}

//! Next-hop objects and groups of them (net/ipv4/nexthop.c).

use std::net::IpAddr;

use super::infos::{Hop, Way};
use super::messages::{CREATE, DELNEXTHOP, INET, MULTI, Message, NEWNEXTHOP, REPLACE, Request};
use super::{Cause, DEAD, EEXIST, EINVAL, ENETDOWN, ENOENT, HOST, LINK, Net, ONLINK};

/// `struct nh_info`
#[derive(Debug, Clone, Copy)]
pub struct Single {
    pub reject: bool,
    pub way: Way,
    /// When it was put among those of its device.
    stamp: u64,
}

/// `struct nh_grp_entry`
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub id: u32,
    pub weight: u32,
    pub upper: i64,
    /// When it was put among the memberships of its object: these are walked from the newest.
    stamp: u64,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Single(Single),
    Group(Vec<Member>),
}

/// `struct nexthop`
#[derive(Debug, Clone)]
pub struct Nexthop {
    pub id: u32,
    protocol: u8,
    flags: u32,
    pub kind: Kind,
}

fn rebalance(members: &mut [Member]) {
    super::hash::bounds(members.iter_mut().map(|m| (&mut m.upper, m.weight)));
}

impl Net {
    /// `nexthop_find_by_id`
    pub fn nexthop(&self, id: u32) -> Option<&Nexthop> {
        self.nexthops.iter().find(|n| n.id == id)
    }

    fn single(&self, id: u32) -> Option<&Single> {
        match &self.nexthop(id)?.kind {
            Kind::Single(s) => Some(s),
            Kind::Group(_) => None,
        }
    }

    /// An object's members, or itself.
    pub fn singles(&self, id: u32) -> Vec<(Single, u32, i64)> {
        match self.nexthop(id).map(|n| &n.kind) {
            Some(Kind::Single(s)) => vec![(*s, 1, i64::MAX)],
            Some(Kind::Group(members)) => (members.iter())
                .filter_map(|m| Some((*self.single(m.id)?, m.weight, m.upper)))
                .collect(),
            None => Vec::new(),
        }
    }

    /// As ways of an IPv4 route.
    pub fn nexthop_ways(&self, id: u32) -> Vec<Way> {
        (self.singles(id).into_iter())
            .map(|(s, weight, upper)| Way {
                weight,
                upper,
                ..s.way
            })
            .collect()
    }

    /// `nexthop_is_blackhole`
    pub fn nexthop_is_blackhole(&self, id: u32) -> bool {
        matches!(self.singles(id).as_slice(), [(s, ..)] if s.reject)
    }

    /// `nexthop_select_path`: a member whose neighbour has not failed, by hash; the first good one; the first.
    pub fn nexthop_select(&self, id: u32, hash: i64) -> Option<Single> {
        let singles = self.singles(id);
        let good = |s: &Single| match s.way.gateway {
            Some(g) => self.neigh_is_good(s.way.dev, IpAddr::from(g.to_be_bytes())),
            None => true,
        };
        if singles.len() < 2 {
            return singles.first().map(|(s, ..)| *s);
        }
        let alive = || singles.iter().filter(|(s, ..)| good(s));
        let fit = alive().find(|(_, _, upper)| hash <= *upper);
        fit.or_else(|| alive().next())
            .or(singles.first())
            .map(|(s, ..)| *s)
    }

    pub fn nexthop_select_path(&self, id: u32, hash: i64) -> Option<Way> {
        self.nexthop_select(id, hash).map(|s| s.way)
    }

    /// `nexthop_check_scope` of the first member, and what a route to this machine may not have.
    pub fn fib_check_nexthop(&self, id: u32, scope: u8) -> Result<(), i32> {
        match self.nexthop(id) {
            Some(n) => self.check_nexthop4(&n.kind, scope),
            None => Err(EINVAL),
        }
    }

    fn check_nexthop4(&self, kind: &Kind, scope: u8) -> Result<(), i32> {
        let first = match kind {
            Kind::Single(s) => Some(s),
            Kind::Group(_) if scope == HOST => return Err(EINVAL),
            Kind::Group(members) => members.first().and_then(|m| self.single(m.id)),
        };
        let Some(s) = first else { return Err(EINVAL) };
        let gateway = s.way.gateway.is_some();
        if scope == HOST && gateway || s.way.flags & ONLINK != 0 && scope >= LINK {
            return Err(EINVAL);
        }
        Ok(())
    }

    /// `fib_check_nh_list`, `fib6_check_nh_list`: do the routes of the old one take the new one?
    fn check_routes(&self, old: u32, new: &Kind) -> Result<(), i32> {
        if let Some(fi) = self.infos.iter().rev().find(|fi| fi.nh == old) {
            self.check_nexthop4(new, fi.scope)?;
        }
        Ok(())
    }

    /// Groups that an object is in, in the order of its list: the newest first.
    fn groups_of(&self, id: u32) -> Vec<u32> {
        let mut all: Vec<(u64, u32)> = Vec::new();
        for n in &self.nexthops {
            if let Kind::Group(members) = &n.kind {
                all.extend(
                    members
                        .iter()
                        .filter(|m| m.id == id)
                        .map(|m| (m.stamp, n.id)),
                );
            }
        }
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.into_iter().map(|(_, id)| id).collect()
    }

    /// `rtm_new_nexthop`
    pub fn nexthop_new(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let kind = self.nexthop_config(r)?;
        let id = r.number(1);
        let flags = match &kind {
            // `nh_create_ipv4`, `nh_create_ipv6`
            Kind::Single(s) => s.way.flags,
            Kind::Group(_) => 0,
        };
        let new = Nexthop {
            id,
            protocol: r.byte(2),
            flags,
            kind,
        };
        let there = self.nexthops.iter().position(|n| n.id == id);
        match there {
            Some(at) if r.flags & REPLACE != 0 => {
                self.replace_nexthop(id, &new.kind)?;
                if let Some(slot) = self.nexthops.get_mut(at) {
                    *slot = new;
                }
            }
            Some(_) => return Err(EEXIST),
            None if r.flags & (REPLACE | CREATE) == REPLACE => return Err(ENOENT),
            None => {
                let at = self.nexthops.partition_point(|n| n.id < id);
                self.nexthops.insert(at, new);
            }
        }
        self.tell_nexthop(NEWNEXTHOP, id, r.flags);
        if there.is_some() {
            // `nexthop_replace_notify`
            let groups = self.groups_of(id);
            for one in [id].into_iter().chain(groups) {
                let infos: Vec<u64> = (self.infos.iter().filter(|fi| fi.nh == one))
                    .map(|fi| fi.id)
                    .collect();
                if !infos.is_empty() {
                    self.fib_notify_update(&infos);
                }
            }
        }
        Ok(())
    }

    /// `rtm_to_nh_config`, `nexthop_create`, `nexthop_create_group`
    fn nexthop_config(&mut self, r: &Request<'_>) -> Result<Kind, i32> {
        let (family, nh_flags) = (r.byte(0), r.long(4));
        if let Some(group) = r.attr(2) {
            if family != 0 {
                return Err(EINVAL);
            }
            return self.nexthop_group(&super::messages::members(group));
        }
        if family != INET {
            return Err(EINVAL);
        }
        let stamp = self.stamp();
        if r.attr(4).is_some() {
            // on lo: `fib_check_nh_nongw`
            let way = Way {
                dev: 1,
                oif: 1,
                scope: HOST,
                weight: 1,
                ..Way::default()
            };
            return Ok(Kind::Single(Single {
                reject: true,
                way,
                stamp,
            }));
        }
        let oif = r.number(5);
        let Some(dev) = self.dev(oif) else {
            return Err(EINVAL);
        };
        if !dev.up || !dev.carrier {
            return Err(ENETDOWN);
        }
        let gateway = r.attr(6);
        if gateway.is_none() && nh_flags & ONLINK != 0 {
            return Err(EINVAL);
        }
        let mut way = Self::fib_nh_init(&Hop {
            dev: oif,
            gateway: gateway.map(super::messages::v4).filter(|g| *g != 0),
            flags: nh_flags,
            weight: 1,
        });
        // `l3mdev_fib_table` of a device without a VRF is no table
        self.fib_check_nh(&mut way, 0, 0)?;
        Ok(Kind::Single(Single {
            reject: false,
            way,
            stamp,
        }))
    }

    /// `nh_check_attr_group`
    fn nexthop_group(&mut self, list: &[(u32, u32)]) -> Result<Kind, i32> {
        if list.is_empty() {
            return Err(EINVAL);
        }
        for (n, (id, _)) in list.iter().enumerate() {
            if list.iter().skip(n + 1).any(|(other, _)| other == id) {
                return Err(EINVAL);
            }
        }
        let mut members = Vec::new();
        for (id, weight) in list {
            match self.nexthop(*id).map(|n| &n.kind) {
                Some(Kind::Single(s)) if !s.reject || list.len() == 1 => {}
                _ => return Err(EINVAL),
            }
            members.push(Member {
                id: *id,
                weight: *weight,
                upper: 0,
                stamp: self.stamp(),
            });
        }
        rebalance(&mut members);
        Ok(Kind::Group(members))
    }

    /// `replace_nexthop`: may it be?
    fn replace_nexthop(&self, old: u32, new: &Kind) -> Result<(), i32> {
        self.check_routes(old, new)?;
        let rejects = matches!(new, Kind::Single(s) if s.reject);
        for group in self.groups_of(old) {
            if rejects && self.singles(group).len() > 1 {
                return Err(EINVAL);
            }
            self.check_routes(group, new)?;
        }
        let was = self.nexthop(old).map(|n| &n.kind);
        match (was, new) {
            (Some(Kind::Group(_)), Kind::Group(_)) | (Some(Kind::Single(_)), Kind::Single(_)) => {
                Ok(())
            }
            _ => Err(EINVAL),
        }
    }

    /// `rtm_del_nexthop`
    pub fn nexthop_del(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let id = r.number(1);
        if id == 0 {
            return Err(EINVAL);
        }
        if self.nexthop(id).is_none() {
            return Err(ENOENT);
        }
        self.remove_nexthop(id, Some(r.flags));
        Ok(())
    }

    /// `remove_nexthop`; told only when somebody asked for it.
    fn remove_nexthop(&mut self, id: u32, told: Option<u16>) {
        let groups = self.groups_of(id);
        if let Some(flags) = told {
            self.tell_nexthop(DELNEXTHOP, id, flags);
        }
        // routes see the object until they are gone (`__remove_nexthop_fib`)
        let mut flush = false;
        for fi in self.infos.iter_mut().filter(|fi| fi.nh == id) {
            fi.flags |= DEAD;
            flush = true;
        }
        if flush {
            self.fib_flush();
        }
        // `remove_nexthop_from_groups`
        for group in groups {
            let left = match self.nexthop(group).map(|n| &n.kind) {
                Some(Kind::Group(members)) => members.len() - 1,
                _ => continue,
            };
            if left == 0 {
                self.remove_nexthop(group, told);
                continue;
            }
            // `remove_nh_grp_entry`: the others are put into their objects' lists again
            let stamps: Vec<u64> = (0..left).map(|_| self.stamp()).collect();
            let group_at = self.nexthops.iter_mut().find(|n| n.id == group);
            if let Some(Kind::Group(members)) = group_at.map(|n| &mut n.kind) {
                members.retain(|m| m.id != id);
                for (m, stamp) in members.iter_mut().zip(stamps) {
                    m.stamp = stamp;
                }
                rebalance(members);
            }
            if let Some(flags) = told {
                self.tell_nexthop(NEWNEXTHOP, group, flags);
            }
        }
        self.nexthops.retain(|n| n.id != id);
    }

    /// `nexthop_flush_dev`: those of a device that went, the newest first; nobody is told.
    pub fn nexthop_flush_dev(&mut self, dev: u32) {
        let mut gone: Vec<(u64, u32)> = (self.nexthops.iter())
            .filter_map(|n| match &n.kind {
                Kind::Single(s) if s.way.dev == dev && !s.reject => Some((s.stamp, n.id)),
                _ => None,
            })
            .collect();
        gone.sort_unstable_by(|a, b| b.cmp(a));
        for (_, id) in gone {
            self.remove_nexthop(id, None);
        }
    }

    fn tell_nexthop(&mut self, kind: u16, id: u32, flags: u16) {
        let from = self.cause(Cause::Asked);
        if let Some(n) = self.nexthop(id) {
            let bytes = n.message(kind, flags, from);
            self.tell(bytes);
        }
    }

    /// `rtm_dump_nexthop`
    pub fn dump_nexthops(&self) -> Vec<Vec<u8>> {
        (self.nexthops.iter())
            .map(|n| n.message(NEWNEXTHOP, MULTI, (0, 0)))
            .collect()
    }
}

impl Nexthop {
    /// `nh_fill_node`
    fn message(&self, kind: u16, flags: u16, from: (u32, u32)) -> Vec<u8> {
        let mut fixed = [0, 0, self.protocol, 0, 0, 0, 0, 0];
        fixed[4..].copy_from_slice(&self.flags.to_ne_bytes());
        if let Kind::Single(s) = &self.kind {
            fixed[0] = INET;
            if !s.reject {
                fixed[1] = s.way.scope;
            }
        }
        let mut m = Message::new(kind, flags, from.0, from.1, &fixed);
        m.number(1, self.id);
        match &self.kind {
            Kind::Group(members) => {
                let mut body = Vec::new();
                for one in members {
                    body.extend_from_slice(&one.id.to_ne_bytes());
                    body.extend_from_slice(&[(one.weight - 1) as u8, 0, 0, 0]);
                }
                m.bytes(2, &body);
                m.bytes(3, &[0, 0]);
            }
            Kind::Single(s) if s.reject => m.bytes(4, &[]),
            Kind::Single(s) => {
                m.number(5, s.way.dev);
                if let Some(g) = s.way.gateway {
                    m.v4(6, g);
                }
            }
        }
        m.done()
    }
}

// SPDX-License-Identifier: Apache-2.0
//! One VLAN, one family: its groups, its routers, its querier.
//!
//! ```text
//!   join ──► member until `membership` is over          query ──► a router is behind its port, a querier is there
//!   leave ─► it has until the last members' time        no query for long ──► the querier, and the router, are gone
//!                                                       no querier ──► all is flooded
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::Times;
use crate::message::{Asked, Family, Record};
use crate::query::{Query, query};

/// The port that the switch itself is.
pub const HOST: u16 = 0;

/// A millisecond.
const MS: u64 = 1_000_000;

/// What is set of a VLAN, for one family. Without it nobody snoops there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Who leaves is gone at once: one host is behind each port.
    pub immediate: bool,
    /// We ask who wants what, from this address, where nobody else does.
    pub querier: Option<IpAddr>,
    /// A router is behind these ports.
    pub routers: BTreeSet<u16>,
    /// Members that stay.
    pub members: BTreeMap<IpAddr, BTreeSet<u16>>,
}

/// Where a message goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// To all ports of its VLAN.
    All,
    /// To those of routers: other members are not to hear of it, for they would say nothing then.
    Routers,
    /// Nowhere: it is broken.
    Nowhere,
}

/// To whom a query is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// All ports of the VLAN, and the switch itself.
    All,
    /// One port.
    Port(u16),
}

/// What has changed, or is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A member came, or went.
    Member {
        /// Where.
        vlan: u16,
        /// Which group.
        group: IpAddr,
        /// Behind which port.
        port: u16,
        /// It came.
        there: bool,
    },
    /// A port of routers came, or went.
    Router {
        /// Where.
        vlan: u16,
        /// Of which protocol.
        family: Family,
        /// Which port.
        port: u16,
        /// It came.
        there: bool,
    },
    /// Groups go to their members, or are flooded.
    Querier {
        /// Where.
        vlan: u16,
        /// Of which protocol.
        family: Family,
        /// To their members.
        there: bool,
    },
    /// A query is to be sent, without a tag.
    Send {
        /// Where.
        vlan: u16,
        /// To whom.
        to: To,
        /// As it is.
        frame: Vec<u8>,
    },
}

/// Room for members that there is still, of the whole switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    pub groups: usize,
    pub members: usize,
}

impl Room {
    /// Of it, what is left when so much was in use and so much is now.
    pub fn changed(self, was: Room, now: Room) -> Room {
        let left = |room: usize, was: usize, now| (room + was).saturating_sub(now);
        Room {
            groups: left(self.groups, was.groups, now.groups),
            members: left(self.members, was.members, now.members),
        }
    }
}

/// What all segments have in common for a while.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// ns.
    pub ns: u64,
    /// What is waited for.
    pub times: Times,
    /// Of this switch.
    pub mac: [u8; 6],
}

/// A query of one group that is to be sent again.
#[derive(Clone, Copy, Debug)]
struct Again {
    group: IpAddr,
    port: u16,
    at: u64,
    left: u32,
}

#[derive(Debug)]
pub(crate) struct Segment {
    vlan: u16,
    family: Family,
    set: Set,
    /// By group and port: until when.
    groups: BTreeMap<IpAddr, BTreeMap<u16, u64>>,
    /// Ports of routers that were heard: until when.
    routers: BTreeMap<u16, u64>,
    /// Whose queries count: an address, ours perhaps.
    elected: Option<IpAddr>,
    /// Another one than we: until when.
    other: Option<u64>,
    /// The first answers are awaited until then: who is a member is not known before.
    silent: u64,
    /// A join found no room: until those who said it have said it again.
    overflow: u64,
    /// When we ask next.
    ask: u64,
    /// So many of our first queries were sent.
    asked: u32,
    again: Vec<Again>,
    /// As it was said.
    there: bool,
    /// Members that were learned.
    size: usize,
    /// Nothing is due before.
    soon: u64,
}

/// Queries of one group that wait to be sent again, of a segment. More are not repeated.
const AGAIN: usize = 64;

impl Segment {
    pub fn new(vlan: u16, family: Family) -> Segment {
        Segment {
            vlan,
            family,
            set: Set::default(),
            groups: BTreeMap::new(),
            routers: BTreeMap::new(),
            elected: None,
            other: None,
            silent: 0,
            overflow: 0,
            ask: u64::MAX,
            asked: 0,
            again: Vec::new(),
            there: false,
            size: 0,
            soon: u64::MAX,
        }
    }

    fn member(&self, group: IpAddr, port: u16, there: bool) -> Change {
        Change::Member {
            vlan: self.vlan,
            group,
            port,
            there,
        }
    }

    fn router(&self, port: u16, there: bool) -> Change {
        Change::Router {
            vlan: self.vlan,
            family: self.family,
            port,
            there,
        }
    }

    /// All members: group, port, and until when; `None`: those that stay.
    pub fn members(&self) -> impl Iterator<Item = (IpAddr, u16, Option<u64>)> {
        let fixed = self.set.members.iter();
        let fixed = fixed.flat_map(|(g, all)| all.iter().map(|p| (*g, *p, None)));
        let learned = self.groups.iter();
        let learned = learned.flat_map(|(g, all)| all.iter().map(|(p, u)| (*g, *p, Some(*u))));
        let stays = |g: &IpAddr, p: &u16| self.set.members.get(g).is_some_and(|m| m.contains(p));
        fixed.chain(learned.filter(move |(g, p, _)| !stays(g, p)))
    }

    /// Ports of routers, and whether they were set.
    pub fn routers(&self) -> BTreeMap<u16, bool> {
        let heard = self.routers.keys().map(|p| (*p, false));
        heard
            .chain(self.set.routers.iter().map(|p| (*p, true)))
            .collect()
    }

    /// Who asks, if anybody does.
    pub fn querier(&self) -> Option<IpAddr> {
        self.elected
            .filter(|_| self.other.is_some() || self.set.querier.is_some())
    }

    /// Groups go to their members.
    pub fn is_there(&self) -> bool {
        self.there
    }

    pub fn used(&self) -> Room {
        Room {
            groups: self.groups.len(),
            members: self.size,
        }
    }

    fn stays(&self, group: &IpAddr, port: u16) -> bool {
        let all = self.set.members.get(group);
        all.is_some_and(|all| all.contains(&port))
    }

    // -- what is set --------------------------------------------------------------------------------------------------

    pub fn configure(&mut self, set: Set, now: &Now, out: &mut Vec<Change>) {
        let was = std::mem::replace(&mut self.set, set);
        for (group, ports) in &was.members {
            for port in ports {
                let heard = self.groups.get(group).is_some_and(|g| g.contains_key(port));
                if !self.stays(group, *port) && !heard {
                    out.push(self.member(*group, *port, false));
                }
            }
        }
        for (group, ports) in &self.set.members {
            for port in ports {
                let said = was.members.get(group).is_some_and(|all| all.contains(port));
                let heard = self.groups.get(group).is_some_and(|g| g.contains_key(port));
                if !said && !heard {
                    out.push(self.member(*group, *port, true));
                }
            }
        }
        let heard = |port: &u16| self.routers.contains_key(port);
        let gone = was.routers.difference(&self.set.routers);
        let new = self.set.routers.difference(&was.routers);
        let all = gone.map(|p| (p, false)).chain(new.map(|p| (p, true)));
        out.extend(
            all.filter(|(p, _)| !heard(p))
                .map(|(p, there)| self.router(*p, there)),
        );
        match (was.querier, self.set.querier) {
            (None, Some(_)) => {
                if self.other.is_none() {
                    self.silent = self.silent.max(now.ns.saturating_add(now.times.response));
                }
                self.begin(now);
            }
            (Some(_), None) => (self.ask, self.again) = (u64::MAX, Vec::new()),
            _ => {}
        }
        self.tick(now, out);
    }

    /// Nobody snoops here any more.
    pub fn end(&mut self, out: &mut Vec<Change>) {
        let members: Vec<_> = self.members().map(|(g, p, _)| (g, p)).collect();
        out.extend(members.iter().map(|(g, p)| self.member(*g, *p, false)));
        out.extend(self.routers().keys().map(|p| self.router(*p, false)));
        self.groups.clear();
        self.routers.clear();
        self.set = Set::default();
        self.other = None;
        self.size = 0;
        self.say(0, out);
    }

    // -- what is heard ------------------------------------------------------------------------------------------------

    /// A port is down: whoever was behind it is not there.
    pub fn port_down(&mut self, port: u16, out: &mut Vec<Change>) {
        let groups: Vec<IpAddr> = self.groups.keys().copied().collect();
        for group in groups {
            self.remove(group, port, out);
        }
        if self.routers.remove(&port).is_some() && !self.set.routers.contains(&port) {
            out.push(self.router(port, false));
        }
    }

    /// Who is where may be otherwise from now on: all is flooded until the next query, and its answers.
    pub fn restart(&mut self, now: &Now, out: &mut Vec<Change>) {
        self.other = None;
        if self.set.querier.is_some() {
            self.silent = now.ns.saturating_add(now.times.response);
            self.begin(now);
        }
        self.tick(now, out);
    }

    /// True: there was no room.
    pub fn report(
        &mut self,
        port: u16,
        records: &[Record],
        now: &Now,
        room: &mut Room,
        out: &mut Vec<Change>,
    ) -> bool {
        let mut full = false;
        for record in records {
            match *record {
                Record::Join(group) if counts(group) => {
                    if !self.join(group, port, now, room, out) {
                        self.overflow = now.ns.saturating_add(now.times.membership);
                        self.soon = self.soon.min(self.overflow);
                        full = true;
                    }
                }
                Record::Leave(group) if counts(group) => self.leave(group, port, now, out),
                Record::Join(_) | Record::Leave(_) => {}
            }
        }
        self.say(now.ns, out);
        full
    }

    fn join(
        &mut self,
        group: IpAddr,
        port: u16,
        now: &Now,
        room: &mut Room,
        out: &mut Vec<Change>,
    ) -> bool {
        let until = now.ns.saturating_add(now.times.membership);
        let new = !self.groups.contains_key(&group);
        let there = self
            .groups
            .get(&group)
            .is_some_and(|g| g.contains_key(&port));
        if !there {
            if room.members == 0 || new && room.groups == 0 {
                return false;
            }
            room.members -= 1;
            room.groups -= usize::from(new);
            self.size += 1;
        }
        self.soon = self.soon.min(until);
        self.groups.entry(group).or_default().insert(port, until);
        if !there && !self.stays(&group, port) {
            out.push(self.member(group, port, true));
        }
        true
    }

    fn leave(&mut self, group: IpAddr, port: u16, now: &Now, out: &mut Vec<Change>) {
        if !self.groups.contains_key(&group) {
            return;
        }
        if self.set.immediate {
            return self.remove(group, port, out);
        }
        // it asks itself whether others are there, and its query shortens their time
        if self.other.is_some() {
            return;
        }
        let times = now.times;
        let last = times
            .last_member
            .saturating_mul(u64::from(times.last_members));
        if let Some(from) = self.set.querier
            && port != HOST
        {
            self.ask_for(group, port, from, now, out);
            let next = Again {
                group,
                port,
                at: now.ns.saturating_add(times.last_member),
                left: times.last_members.saturating_sub(1),
            };
            self.again.retain(|a| (a.group, a.port) != (group, port));
            self.soon = self.soon.min(next.at);
            if next.left > 0 && self.again.len() < AGAIN {
                self.again.push(next);
            }
        }
        let until = now.ns.saturating_add(last);
        self.soon = self.soon.min(until);
        if let Some(there) = self.groups.get_mut(&group).and_then(|g| g.get_mut(&port)) {
            *there = until.min(*there);
        }
    }

    /// A query came by a port.
    pub fn query(
        &mut self,
        port: u16,
        (of, delay, from): (Option<Asked>, u64, IpAddr),
        now: &Now,
        out: &mut Vec<Change>,
    ) {
        let delay = delay.saturating_mul(MS);
        match of {
            Some(Asked::All) => self.heard(port, delay, from, now, out),
            Some(Asked::Group(group)) => {
                let last = delay.saturating_mul(u64::from(now.times.last_members));
                let until = now.ns.saturating_add(last);
                for there in self.groups.get_mut(&group).into_iter().flatten() {
                    *there.1 = until.min(*there.1);
                }
            }
            None => {}
        }
        self.tick(now, out);
    }

    /// A querier, if it is the elected one: that with the lowest address.
    fn heard(&mut self, port: u16, delay: u64, from: IpAddr, now: &Now, out: &mut Vec<Change>) {
        let somebody = self.other.is_some() || self.asked > 0;
        let lowest = match self.elected {
            Some(elected) if somebody && !(elected.is_unspecified() && elected.is_ipv4()) => {
                from <= elected
            }
            _ => true,
        };
        if !lowest {
            return;
        }
        self.elected = Some(from);
        if self.other.is_none() {
            self.silent = now.ns.saturating_add(delay);
        }
        self.other = Some(now.ns.saturating_add(now.times.querier));
        // who asks in its stead does it again when this one is gone
        (self.ask, self.asked) = (u64::MAX, 0);
        self.again.clear();
        self.heard_router(port, now, out);
    }

    /// A router is behind a port.
    pub fn heard_router(&mut self, port: u16, now: &Now, out: &mut Vec<Change>) {
        if port == HOST {
            return;
        }
        let until = now.ns.saturating_add(now.times.querier);
        let new = self.routers.insert(port, until).is_none();
        self.soon = self.soon.min(until);
        if new && !self.set.routers.contains(&port) {
            out.push(self.router(port, true));
        }
    }

    // -- time ---------------------------------------------------------------------------------------------------------

    /// What is due.
    pub fn tick(&mut self, now: &Now, out: &mut Vec<Change>) {
        self.ended(now, out);
        self.asks(now, out);
        self.say(now.ns, out);
        self.soon = self.next().unwrap_or(u64::MAX);
    }

    fn ended(&mut self, now: &Now, out: &mut Vec<Change>) {
        let due = |until: &u64| *until <= now.ns;
        let gone = self.groups.iter();
        let gone = gone.flat_map(|(g, all)| all.iter().map(|(p, u)| (*g, *p, u)));
        let gone: Vec<_> = gone.filter(|x| due(x.2)).map(|x| (x.0, x.1)).collect();
        for (group, port) in gone {
            self.remove(group, port, out);
        }
        let gone: Vec<u16> = self
            .routers
            .iter()
            .filter(|r| due(r.1))
            .map(|r| *r.0)
            .collect();
        for port in gone {
            self.routers.remove(&port);
            if !self.set.routers.contains(&port) {
                out.push(self.router(port, false));
            }
        }
        if self.other.as_ref().is_some_and(due) {
            self.other = None;
            self.begin(now);
        }
    }

    fn asks(&mut self, now: &Now, out: &mut Vec<Change>) {
        let due = |until: &u64| *until <= now.ns;
        let Some(from) = self.set.querier else {
            return;
        };
        for mut again in std::mem::take(&mut self.again) {
            if due(&again.at) {
                self.ask_for(again.group, again.port, from, now, out);
                again.left -= 1;
                again.at = now.ns.saturating_add(now.times.last_member);
            }
            if again.left > 0 {
                self.again.push(again);
            }
        }
        if due(&self.ask) {
            self.ask_all(from, now, out);
        }
    }

    /// Nothing is due before, ns.
    pub fn soon(&self) -> u64 {
        self.soon
    }

    /// When there is something to do without a message.
    fn next(&self) -> Option<u64> {
        let members = self.groups.values().flat_map(BTreeMap::values);
        let all = members.chain(self.routers.values()).chain(&self.other);
        let all = all
            .chain([&self.ask])
            .chain(self.again.iter().map(|a| &a.at));
        // when all is flooded no longer
        let quiet = match self.other.is_some() || self.set.querier.is_some() {
            true => self.silent.max(self.overflow),
            false => u64::MAX,
        };
        let quiet = Some(quiet).filter(|_| !self.there);
        all.copied().chain(quiet).filter(|at| *at < u64::MAX).min()
    }

    /// We ask from now on.
    fn begin(&mut self, now: &Now) {
        if self.set.querier.is_some() && self.other.is_none() {
            (self.ask, self.asked) = (now.ns, 0);
        }
    }

    fn ask_all(&mut self, from: IpAddr, now: &Now, out: &mut Vec<Change>) {
        let q = Query {
            mac: now.mac,
            from,
            group: None,
            delay: now.times.response / MS,
        };
        self.elected = Some(from);
        self.send(&q, To::All, out);
        let first = self.asked < now.times.last_members;
        self.asked = self.asked.saturating_add(1);
        let after = if first {
            now.times.startup
        } else {
            now.times.query
        };
        self.ask = now.ns.saturating_add(after.max(MS));
    }

    fn ask_for(&self, group: IpAddr, port: u16, from: IpAddr, now: &Now, out: &mut Vec<Change>) {
        let q = Query {
            mac: now.mac,
            from,
            group: Some(group),
            delay: now.times.last_member / MS,
        };
        self.send(&q, To::Port(port), out);
    }

    fn send(&self, q: &Query, to: To, out: &mut Vec<Change>) {
        out.extend(query(q).map(|frame| Change::Send {
            vlan: self.vlan,
            to,
            frame,
        }));
    }

    // -- inside -------------------------------------------------------------------------------------------------------

    fn remove(&mut self, group: IpAddr, port: u16, out: &mut Vec<Change>) {
        let Some(all) = self.groups.get_mut(&group) else {
            return;
        };
        let was = all.remove(&port).is_some();
        self.size -= usize::from(was);
        if all.is_empty() {
            self.groups.remove(&group);
        }
        self.again.retain(|a| (a.group, a.port) != (group, port));
        if was && !self.stays(&group, port) {
            out.push(self.member(group, port, false));
        }
    }

    /// Says whether groups go to their members, if that is otherwise now.
    fn say(&mut self, now: u64, out: &mut Vec<Change>) {
        let somebody = self.other.is_some() || self.set.querier.is_some();
        let there = somebody && now >= self.silent && now >= self.overflow;
        if std::mem::replace(&mut self.there, there) != there {
            out.push(Change::Querier {
                vlan: self.vlan,
                family: self.family,
                there,
            });
        }
    }
}

/// Whether a bridge keeps members of this group: not of those of the link alone, which are flooded (RFC 4541 2.1.2, 3).
pub(crate) fn counts(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(a) => a.is_multicast() && !matches!(a.octets(), [224, 0, 0, _]),
        IpAddr::V6(a) => a.is_multicast() && a.segments() != [0xff02, 0, 0, 0, 0, 0, 0, 1],
    }
}

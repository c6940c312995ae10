// SPDX-License-Identifier: Apache-2.0
//! All VLANs of a switch.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::Times;
use crate::message::{Family, Message, parse};
use crate::segment::{Change, Forward, Now, Room, Segment, Set};

/// Groups that are kept at most, of all VLANs. A VLAN that finds no room floods, until who has joined has said so again.
pub const GROUPS: usize = 4096;
/// Members of them at most.
pub const MEMBERS: usize = 32_768;

/// Snooping of one switch.
#[derive(Debug)]
pub struct Snooping {
    mac: [u8; 6],
    times: Times,
    segments: BTreeMap<(u16, Family), Segment>,
    room: Room,
    refused: u64,
    /// Nothing is due before.
    soon: u64,
}

impl Snooping {
    /// Of no VLAN yet. `mac` is the switch's: our queries come from there.
    #[must_use]
    pub fn new(mac: [u8; 6], times: Times) -> Snooping {
        Snooping {
            mac,
            times,
            segments: BTreeMap::new(),
            room: Room {
                groups: GROUPS,
                members: MEMBERS,
            },
            refused: 0,
            soon: u64::MAX,
        }
    }

    fn now(&self, ns: u64) -> Now {
        Now {
            ns,
            times: self.times,
            mac: self.mac,
        }
    }

    /// Snoops in these VLANs, so, and in no others.
    #[must_use]
    pub fn configure(&mut self, all: &BTreeMap<(u16, Family), Set>, now: u64) -> Vec<Change> {
        let (now, mut out) = (self.now(now), Vec::new());
        self.segments.retain(|key, segment| {
            let stays = all.contains_key(key);
            if !stays {
                segment.end(&mut out);
            }
            stays
        });
        for (key, set) in all {
            let segment = self.segments.entry(*key);
            let segment = segment.or_insert_with(|| Segment::new(key.0, key.1));
            segment.configure(set.clone(), &now, &mut out);
        }
        self.look();
        out
    }

    /// A frame without a tag came by a port ([`HOST`](crate::HOST): from the switch itself): where it goes on, if it is a
    /// message of groups that is snooped here.
    pub fn receive(
        &mut self,
        vlan: u16,
        port: u16,
        frame: &[u8],
        now: u64,
    ) -> (Option<Forward>, Vec<Change>) {
        let (now, mut out) = (self.now(now), Vec::new());
        let message = match parse(frame) {
            Ok(Some(message)) => message,
            Ok(None) => return (None, out),
            Err(_) => {
                let family = match frame.get(12..14) {
                    Some([8, 0]) => Family::V4,
                    _ => Family::V6,
                };
                let snooped = self.segments.contains_key(&(vlan, family));
                return (snooped.then_some(Forward::Nowhere), out);
            }
        };
        let family = match &message {
            Message::Report(family, _)
            | Message::Router(family)
            | Message::Query { family, .. } => *family,
        };
        let Some(segment) = self.segments.get_mut(&(vlan, family)) else {
            return (None, out);
        };
        let before = segment.used();
        let forward = match message {
            Message::Report(_, records) => {
                // what ended meanwhile makes room first
                if segment.soon() <= now.ns {
                    segment.tick(&now, &mut out);
                }
                let mut room = self.room.changed(before, segment.used());
                if segment.report(port, &records, &now, &mut room, &mut out) {
                    self.refused += 1;
                }
                Forward::Routers
            }
            Message::Router(_) => {
                segment.heard_router(port, &now, &mut out);
                Forward::All
            }
            Message::Query {
                of, delay, from, ..
            } => {
                segment.query(port, (of, delay, from), &now, &mut out);
                Forward::All
            }
        };
        self.room = self.room.changed(before, segment.used());
        self.soon = self.soon.min(segment.soon());
        (Some(forward), out)
    }

    /// Nobody is behind a port.
    #[must_use]
    pub fn port_down(&mut self, port: u16) -> Vec<Change> {
        let mut out = Vec::new();
        for segment in self.segments.values_mut() {
            segment.port_down(port, &mut out);
        }
        self.look();
        out
    }

    /// Hosts and routers may be behind other ports from now on (a spanning tree has changed): all is flooded until they
    /// were asked.
    #[must_use]
    pub fn restart(&mut self, now: u64) -> Vec<Change> {
        let (now, mut out) = (self.now(now), Vec::new());
        for segment in self.segments.values_mut() {
            segment.restart(&now, &mut out);
        }
        self.look();
        out
    }

    /// What is due.
    #[must_use]
    pub fn tick(&mut self, now: u64) -> Vec<Change> {
        let (now, mut out) = (self.now(now), Vec::new());
        if now.ns < self.soon {
            return out;
        }
        for segment in self.segments.values_mut() {
            if segment.soon() <= now.ns {
                segment.tick(&now, &mut out);
            }
        }
        self.look();
        out
    }

    /// When [`Snooping::tick`] has something to do, ns.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        Some(self.soon).filter(|at| *at < u64::MAX)
    }

    /// How much room there is, and when something is due.
    fn look(&mut self) {
        let mut room = Room {
            groups: GROUPS,
            members: MEMBERS,
        };
        for used in self.segments.values().map(Segment::used) {
            room = room.changed(Room::default(), used);
        }
        self.room = room;
        let all = self.segments.values().map(Segment::soon);
        self.soon = all.min().unwrap_or(u64::MAX);
    }

    // -- how it is ----------------------------------------------------------------------------------------------------

    /// Where is snooped.
    pub fn snooped(&self) -> impl Iterator<Item = (u16, Family)> {
        self.segments.keys().copied()
    }

    /// Members: VLAN, group, port, and until when; `None`: it stays.
    pub fn members(&self) -> impl Iterator<Item = (u16, IpAddr, u16, Option<u64>)> {
        let all = self.segments.iter();
        all.flat_map(|((vlan, _), s)| s.members().map(|(g, p, until)| (*vlan, g, p, until)))
    }

    /// Ports of routers, and whether they were set: by VLAN and family.
    #[must_use]
    pub fn routers(&self, vlan: u16, family: Family) -> BTreeMap<u16, bool> {
        let segment = self.segments.get(&(vlan, family));
        segment.map(Segment::routers).unwrap_or_default()
    }

    /// Who asks, and whether groups go to their members by now.
    #[must_use]
    pub fn querier(&self, vlan: u16, family: Family) -> (Option<IpAddr>, bool) {
        let segment = self.segments.get(&(vlan, family));
        segment.map_or((None, false), |s| (s.querier(), s.is_there()))
    }

    /// Reports that found no room.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

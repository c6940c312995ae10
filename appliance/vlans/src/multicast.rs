// SPDX-License-Identifier: Apache-2.0
//! Groups of VLANs that snoop: members, ports of routers, and whether there is a querier, as who snoops has found out.
//!
//! ```text
//!   members of a group in a VLAN ──► Mdb           a router behind a port, in any VLAN ──► RouterPort
//!   a VLAN snoops, has a querier ──► VlanSnooping        what the CPU floods itself ──► `to_members`
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tandem_store::model::{GroupAddr, Key, MdbEntry, Object, Querier, RouterPort, VlanSnooping};

use crate::database::{BRIDGE, Database, What, device};

/// The port that the switch itself is: its devices are members of groups as well.
const HOST: u16 = 0;

/// What can change of groups, in the order in which it is said: a VLAN that floods now does so before its groups go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Multicast {
    /// A VLAN snoops.
    Snooping(u16),
    /// Routers are behind a port.
    Router(u16),
    /// VLAN, group and port.
    Group(u16, IpAddr, u16),
}

impl Multicast {
    /// What it is called, there or not.
    pub fn key(self) -> Key {
        match self {
            Multicast::Snooping(vid) => Key::VlanSnooping(BRIDGE, vid),
            Multicast::Router(port) => Key::RouterPort(BRIDGE, device(port)),
            Multicast::Group(vid, group, port) => Key::Mdb(member(vid, group, port).key()),
        }
    }
}

fn member(vlan: u16, group: IpAddr, port: u16) -> MdbEntry {
    MdbEntry {
        bridge: BRIDGE,
        vlan,
        group: GroupAddr::Ip(group),
        source: None,
        ifindex: device(port),
        include: false,
        blocked: false,
    }
}

/// All that a database has of them.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// By VLAN and group.
    members: BTreeMap<(u16, IpAddr), BTreeSet<u16>>,
    /// Port, of IPv6 or not, VLAN.
    routers: BTreeSet<(u16, bool, u16)>,
    /// By VLAN: whether groups of IPv4, and of IPv6, go to their members.
    snooping: BTreeMap<u16, [bool; 2]>,
}

/// Before and behind all groups of a VLAN.
fn of_vlan(vid: u16) -> std::ops::RangeInclusive<(u16, IpAddr)> {
    const FIRST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
    const LAST: IpAddr = IpAddr::V6(std::net::Ipv6Addr::from_bits(u128::MAX));
    (vid, FIRST)..=(vid, LAST)
}

impl Database {
    /// A VLAN snoops: whether groups of IPv4, and of IPv6, go to their members. `None`: it does not.
    pub fn set_snooping(&mut self, vid: u16, there: Option<[bool; 2]>) {
        let old = match there {
            Some(there) => self.multicast.snooping.insert(vid, there),
            None => self.multicast.snooping.remove(&vid),
        };
        if old != there {
            self.touch(What::Multicast(Multicast::Snooping(vid)));
        }
    }

    /// A member of a group in a VLAN, behind a port (0: the switch itself), came or went.
    pub fn set_member(&mut self, vid: u16, group: IpAddr, port: u16, there: bool) {
        let key = (vid, group);
        let changed = match there {
            true => self.multicast.members.entry(key).or_default().insert(port),
            false => {
                let all = self.multicast.members.get_mut(&key);
                let was = all.is_some_and(|all| all.remove(&port));
                if self
                    .multicast
                    .members
                    .get(&key)
                    .is_some_and(BTreeSet::is_empty)
                {
                    self.multicast.members.remove(&key);
                }
                was
            }
        };
        if changed {
            self.touch(What::Multicast(Multicast::Group(vid, group, port)));
        }
    }

    /// Routers are behind a port, in a VLAN, or are not any more. The chip sends all groups of the port's VLANs there.
    pub fn set_router(&mut self, vid: u16, v6: bool, port: u16, there: bool) {
        let key = (port, v6, vid);
        let changed = match there {
            true => self.multicast.routers.insert(key),
            false => self.multicast.routers.remove(&key),
        };
        if changed {
            self.touch(What::Multicast(Multicast::Router(port)));
        }
    }

    /// Of the ways of a frame without a tag, those that lead to members of its group, or to routers; all of them, if it is to
    /// no group, to one of the link alone, or the VLAN floods. As the chip does, to which the same is said.
    pub fn to_members(&self, vid: u16, bare: &[u8], ways: &mut Vec<(u16, bool)>) {
        let Some(group) = group(bare) else { return };
        let there = self.multicast.snooping.get(&vid);
        if there.is_none_or(|[v4, v6]| !(if group.is_ipv6() { *v6 } else { *v4 })) {
            return;
        }
        let members = self.multicast.members.get(&(vid, group));
        ways.retain(|(port, _)| {
            members.is_some_and(|all| all.contains(port)) || self.has_router(*port, group.is_ipv6())
        });
    }

    fn has_router(&self, port: u16, v6: bool) -> bool {
        let all = (port, v6, 0)..=(port, v6, u16::MAX);
        self.multicast.routers.range(all).next().is_some()
    }

    /// As it is now; none: it is not there.
    pub(crate) fn multicast(&self, what: Multicast) -> Option<Object> {
        match what {
            Multicast::Snooping(vid) => self.snooping_said(vid),
            Multicast::Router(port) => self.router_said(port),
            Multicast::Group(vid, group, port) => self.group_said(vid, group, port),
        }
    }

    fn group_said(&self, vid: u16, group: IpAddr, port: u16) -> Option<Object> {
        let all = self.multicast.members.get(&(vid, group))?;
        let here = match port {
            HOST => self.tap(vid).is_some() && self.is_active(vid),
            _ => self.is_in(port, vid),
        };
        (here && all.contains(&port)).then_some(())?;
        Some(Object::Mdb(member(vid, group, port)))
    }

    fn router_said(&self, port: u16) -> Option<Object> {
        self.ports.get(&port).filter(|_| self.is_bridged(port))?;
        let [v4, v6] = [false, true].map(|v6| self.has_router(port, v6));
        (v4 || v6).then_some(Object::RouterPort(RouterPort {
            bridge: BRIDGE,
            ifindex: device(port),
            v4,
            v6,
        }))
    }

    fn snooping_said(&self, vid: u16) -> Option<Object> {
        let there = self.multicast.snooping.get(&vid)?;
        let [querier4, querier6] = there.map(|there| match there {
            true => Querier::There,
            false => Querier::None,
        });
        self.is_active(vid)
            .then_some(Object::VlanSnooping(VlanSnooping {
                bridge: BRIDGE,
                vlan: vid,
                querier4,
                querier6,
            }))
    }

    /// All that may be said of groups.
    pub(crate) fn every_group(&self) -> impl Iterator<Item = What> {
        let g = &self.multicast;
        let vlans = g.snooping.keys().map(|vid| Multicast::Snooping(*vid));
        let routers = g.routers.iter().map(|(port, ..)| Multicast::Router(*port));
        let members = g.members.iter();
        let members = members.flat_map(|((vid, group), all)| {
            all.iter().map(|port| Multicast::Group(*vid, *group, *port))
        });
        vlans.chain(routers).chain(members).map(What::Multicast)
    }

    /// A port may be in the bridge that was not, or no more: the store forgets with a device that routers are behind it.
    pub(crate) fn touch_router(&mut self, port: u16) {
        if self.has_router(port, false) || self.has_router(port, true) {
            self.touch(What::Multicast(Multicast::Router(port)));
        }
    }

    /// A VLAN, or what of it goes up, or whether a port is in it, is otherwise now.
    pub(crate) fn touch_groups(&mut self, vid: u16, port: Option<u16>) {
        let all = self.multicast.members.range(of_vlan(vid));
        let all = all.flat_map(|((_, group), ports)| ports.iter().map(|p| (*group, *p)));
        let some = all.filter(|(_, p)| port.is_none_or(|port| port == *p));
        for (group, p) in some.collect::<Vec<_>>() {
            self.touch(What::Multicast(Multicast::Group(vid, group, p)));
        }
        if port.is_none() {
            self.touch(What::Multicast(Multicast::Snooping(vid)));
        }
    }
}

/// The group of a frame without a tag, if a bridge that snoops looks for one: not of the link alone.
fn group(bare: &[u8]) -> Option<IpAddr> {
    let to = bare.first_chunk::<6>()?;
    if to[0] & 1 == 0 || *to == [0xff; 6] {
        return None;
    }
    match bare.get(12..14)? {
        [8, 0] => {
            let a = *bare.get(30..)?.first_chunk::<4>()?;
            (!matches!(a, [224, 0, 0, _])).then_some(IpAddr::from(a))
        }
        [0x86, 0xdd] => {
            let a = IpAddr::from(*bare.get(38..)?.first_chunk::<16>()?);
            (a != IpAddr::V6(std::net::Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1))).then_some(a)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Port, TapOf, Vlan};

    fn database() -> Database {
        let mut d = Database::new([2, 0, 0, 0, 0, 9]);
        let name = "VLAN0010".into();
        d.set_vlan(10, Vlan { name, active: true }).unwrap();
        for n in 1..=4 {
            let port = Port {
                name: format!("swp{n}"),
                mac: [2, 0, 0, 0, 1, n as u8],
                mtu: 1500,
                up: true,
                mode: Mode::Access(if n < 4 { 10 } else { 1 }),
            };
            d.set_port(n, port).unwrap();
        }
        d.untouch();
        d
    }

    /// What is said, as words.
    fn said(d: &mut Database) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(what) = d.take() {
            if !matches!(what, What::Multicast(_)) {
                continue;
            }
            let sign = if d.object(what).is_some() { '+' } else { '-' };
            let of = |i: u32| i - BRIDGE;
            all.push(match (Database::key(what), d.object(what)) {
                (Key::VlanSnooping(_, vid), Some(Object::VlanSnooping(v))) => {
                    format!("{sign}vlan {vid} {:?} {:?}", v.querier4, v.querier6)
                }
                (Key::RouterPort(_, i), Some(Object::RouterPort(r))) => {
                    format!("{sign}router {} {} {}", of(i), r.v4, r.v6)
                }
                (Key::VlanSnooping(_, vid), _) => format!("{sign}vlan {vid}"),
                (Key::RouterPort(_, i), _) => format!("{sign}router {}", of(i)),
                (Key::Mdb(k), _) => format!("{sign}{} {} {}", k.vlan, k.group, of(k.ifindex)),
                other => panic!("{other:?}"),
            });
        }
        all
    }

    fn is_group(what: &What) -> bool {
        matches!(
            what,
            What::Multicast(Multicast::Snooping(_) | Multicast::Group(..))
        )
    }

    #[test]
    fn what_is_said_of_groups() {
        let mut d = database();
        let g: IpAddr = "225.1.2.3".parse().unwrap();
        d.set_snooping(10, Some([true, false]));
        d.set_member(10, g, 1, true);
        d.set_member(10, g, 4, true);
        d.set_member(10, g, HOST, true);
        d.set_router(10, false, 3, true);
        d.set_router(1, false, 3, true);
        // a port that is not in the VLAN, and the switch where it has no device, are none
        let first = [
            "+vlan 10 There None",
            "+router 3 true false",
            "-10 225.1.2.3 0",
            "+10 225.1.2.3 1",
            "-10 225.1.2.3 4",
        ];
        assert_eq!(said(&mut d), first);
        let (device, mac) = (57, [2, 0, 0, 0, 0, 9]);
        d.set_tap(10, Some(TapOf { device, mac })).unwrap();
        assert_eq!(said(&mut d), ["+10 225.1.2.3 0"]);
        d.set_router(10, false, 3, false);
        assert_eq!(said(&mut d), ["+router 3 true false"]);
        d.set_router(1, false, 3, false);
        d.set_router(1, true, 3, true);
        assert_eq!(said(&mut d), ["+router 3 false true"]);
        let port = Port {
            mode: Mode::Access(1),
            ..d.ports()[&1].clone()
        };
        d.set_port(1, port).unwrap();
        assert_eq!(said(&mut d), ["-10 225.1.2.3 1"]);
        let (name, active) = ("a".into(), false);
        d.set_vlan(10, Vlan { name, active }).unwrap();
        let gone = [
            "-vlan 10",
            "-10 225.1.2.3 0",
            "-10 225.1.2.3 1",
            "-10 225.1.2.3 4",
        ];
        assert_eq!(said(&mut d), gone);
        // the same from the beginning
        let all = d.every();
        let dump = all.iter().filter(|w| d.object(**w).is_some());
        assert!(!dump.clone().any(is_group));
        assert!(
            dump.clone()
                .any(|w| *w == What::Multicast(Multicast::Router(3)))
        );
        let (name, active) = ("a".into(), true);
        d.set_vlan(10, Vlan { name, active }).unwrap();
        let all = d.every();
        let here = |w: &&What| d.object(**w).is_some();
        let groups = all.iter().filter(here).filter(|w| is_group(w));
        assert_eq!(groups.count(), 2);
        d.untouch();
        d.set_member(10, g, 1, false);
        d.set_member(10, g, 1, false);
        assert_eq!(said(&mut d), ["-10 225.1.2.3 1"]);
        d.set_snooping(10, None);
        assert_eq!(said(&mut d), ["-vlan 10"]);
    }

    /// A frame to a group, and by which ports it leaves.
    fn ways(d: &Database, to: &str) -> Vec<u16> {
        let to: IpAddr = to.parse().unwrap();
        let mut f = vec![1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 2, 1];
        match to {
            IpAddr::V4(a) => {
                f.extend([8, 0]);
                f.resize(30, 0);
                f.extend(a.octets());
            }
            IpAddr::V6(a) => {
                f.extend([0x86, 0xdd]);
                f.resize(38, 0);
                f.extend(a.octets());
            }
        }
        for n in 0..f.len() {
            let mut all = vec![(1, false)];
            d.to_members(10, &f[..n], &mut all);
            assert_eq!(all.len(), 1, "what is cut off is flooded");
        }
        let mut all = d.ways(10, [1, 0, 0x5e, 0, 0, 1]);
        d.to_members(10, &f, &mut all);
        all.into_iter().map(|w| w.0).collect()
    }

    #[test]
    fn what_the_cpu_sends_goes_to_members_too() {
        let mut d = database();
        let g: IpAddr = "225.1.2.3".parse().unwrap();
        d.set_member(10, g, 1, true);
        d.set_router(10, false, 3, true);
        assert_eq!(ways(&d, "225.1.2.3"), [1, 2, 3], "it does not snoop");
        d.set_snooping(10, Some([false, true]));
        assert_eq!(ways(&d, "225.1.2.3"), [1, 2, 3], "without a querier");
        d.set_snooping(10, Some([true, false]));
        assert_eq!(ways(&d, "225.1.2.3"), [1, 3]);
        assert_eq!(ways(&d, "225.9.9.9"), [3]);
        assert_eq!(ways(&d, "224.0.0.5"), [1, 2, 3]);
        assert_eq!(ways(&d, "ff05::1"), [1, 2, 3]);
        d.set_snooping(10, Some([true, true]));
        assert!(ways(&d, "ff05::1").is_empty());
        assert_eq!(ways(&d, "ff02::1"), [1, 2, 3]);
        let mut all = vec![(1, false), (2, false)];
        d.to_members(10, &[[0xff; 6], [2; 6]].concat(), &mut all);
        assert_eq!(all.len(), 2);
    }
}

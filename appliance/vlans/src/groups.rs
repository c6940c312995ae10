// SPDX-License-Identifier: Apache-2.0
//! Groups of ports that are one link: link aggregation by the configuration alone, without LACP.
//!
//! ```text
//!   port 3 ─┐ master                       VLANs, stations, state, rules of what floods
//!   port 4 ─┴─ group 1 (port FIRST + 1) ── of the bridge, as of any port ─► store: a bond ─► a group of the chip
//! ```
//!
//! A group is a port of the database with a number of its own, behind those of any front panel. The ports in it are none of
//! the bridge's. A group without ports is said to nobody: the store would take it for a port that only the CPU can reach.

use tandem_abi::raw::TND_LAG_HASH_L4;
use tandem_store::model::{BONDS, BondInfo, Link, LinkKind};

use crate::database::{Database, Port, Refusal, What, device, port_link};
use crate::states::State;

/// Numbers of ports above this one are groups': more than a front panel has.
const FIRST: u16 = 2048;

/// The port that a group is.
#[must_use]
pub fn port_of_group(group: u16) -> u16 {
    FIRST.saturating_add(group)
}

/// The group that a port is, if it is one.
#[must_use]
pub fn group_of_port(port: u16) -> Option<u16> {
    port.checked_sub(FIRST).filter(|group| *group > 0)
}

/// What a port is to the store.
pub(crate) fn kind(port: u16) -> LinkKind {
    match group_of_port(port) {
        None => LinkKind::Swp { port },
        Some(lag) => LinkKind::Bond(BondInfo {
            lag,
            hash: TND_LAG_HASH_L4,
            unsupported: None,
        }),
    }
}

/// A number that a port may have, or a group.
pub(crate) fn checked(port: u16) -> Result<(), Refusal> {
    match group_of_port(port) {
        _ if port == 0 => Err(Refusal::NoPortNumber),
        Some(group) if group > BONDS => Err(Refusal::NoGroup(group)),
        _ => Ok(()),
    }
}

impl Database {
    /// The switch's own address.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// A port is in a group, or is one by itself. The group is a port of the database already.
    ///
    /// # Errors
    /// There is no such port, or no such group; or it is a group itself.
    pub fn join(&mut self, port: u16, group: Option<u16>) -> Result<(), Refusal> {
        let single = group_of_port(port).is_none() && self.ports.contains_key(&port);
        if !single {
            return Err(Refusal::NoSuchPort(port));
        }
        if let Some(group) = group.filter(|g| !self.ports.contains_key(&port_of_group(*g))) {
            return Err(Refusal::NoGroup(group));
        }
        if self.groups.get(&port).copied() == group {
            return Ok(());
        }
        let of = [self.groups.get(&port).copied(), group];
        let looked = of.into_iter().flatten().map(port_of_group);
        let looked: Vec<u16> = looked.chain([port]).collect();
        let before: Vec<_> = looked.iter().map(|p| self.members_of(*p)).collect();
        match group {
            Some(group) => self.groups.insert(port, group),
            None => self.groups.remove(&port),
        };
        for (port, before) in looked.into_iter().zip(before) {
            self.touch(What::Port(port));
            self.members_changed(port, &before);
        }
        Ok(())
    }

    /// The ports of a group.
    pub fn group(&self, group: u16) -> impl Iterator<Item = u16> {
        let of = self.groups.iter().filter(move |(_, g)| **g == group);
        of.map(|(port, _)| *port)
    }

    /// The bridge's port that a port of the front panel is: itself, or its group.
    #[must_use]
    pub fn bridged(&self, port: u16) -> u16 {
        self.groups.get(&port).map_or(port, |g| port_of_group(*g))
    }

    /// Is it in the bridge: no port of a group, no group without ports?
    pub(crate) fn is_bridged(&self, port: u16) -> bool {
        match group_of_port(port) {
            Some(group) => self.group(group).next().is_some(),
            None => !self.groups.contains_key(&port),
        }
    }

    /// A port's carrier, as far as the chip has said; a group has it where a port of it has that is not shut down.
    #[must_use]
    pub fn carrier(&self, port: u16) -> Option<bool> {
        let Some(group) = group_of_port(port) else {
            return self.carriers.get(&port).copied();
        };
        let mut carrier = Some(false);
        for port in self.group(group) {
            let up = self.ports.get(&port).is_some_and(|p| p.up);
            match self.carriers.get(&port).filter(|_| up) {
                Some(true) => return Some(true),
                Some(false) => {}
                None if up => carrier = None,
                None => {}
            }
        }
        carrier
    }

    /// A port has carrier, or has it no longer: what was behind it is not there then, nor what was behind its group, if that has
    /// none left.
    pub fn set_carrier(&mut self, port: u16, up: bool) {
        self.carriers.insert(port, up);
        let bridged = self.bridged(port);
        if self.carrier(bridged) == Some(false) {
            self.forget_stations(None, Some(bridged));
        }
    }

    /// A group's ports hang on it: they are said anew when it comes or goes.
    pub(crate) fn touch_group(&mut self, port: u16) {
        let Some(group) = group_of_port(port) else {
            return;
        };
        for port in self.group(group).collect::<Vec<_>>() {
            self.touch(What::Port(port));
        }
    }

    /// The group that a port is in, if that is there.
    pub(crate) fn master(&self, port: u16) -> Option<u16> {
        let group = port_of_group(*self.groups.get(&port)?);
        self.ports.contains_key(&group).then_some(group)
    }
}

/// A port that is in a group.
pub(crate) fn of_group(number: u16, port: &Port, group: Option<u16>) -> Link {
    Link {
        master: group.map_or(0, device),
        bridge_port: None,
        bond_active: is_active(port),
        ..port_link(number, port, State::Forwarding)
    }
}

/// Whether a port of a group takes part: the chip itself leaves out those without carrier.
pub(crate) fn is_active(port: &Port) -> bool {
    port.up
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multicast::Multicast;
    use crate::{Mode, Vlan, VlanSet};
    use tandem_store::model::{Link, Object};

    const STATION: [u8; 6] = [2, 0, 0, 0, 2, 1];
    const ALL: [u8; 6] = [0xff; 6];

    fn port(n: u16, mode: Mode) -> Port {
        Port {
            name: format!("swp{n}"),
            mac: [2, 0, 0, 0, 1, n as u8],
            mtu: 1500,
            up: true,
            mode,
        }
    }

    fn trunk() -> Mode {
        Mode::Trunk {
            native: 1,
            allowed: VlanSet::all(),
        }
    }

    /// Ports 1 to 4 in VLAN 1, and group 7, a trunk, of 3 and 4.
    fn database() -> Database {
        let mut d = Database::new([2, 0, 0, 0, 0, 9]);
        for n in 1..=4 {
            d.set_port(n, port(n, Mode::Access(1))).unwrap();
        }
        let (name, active) = ("a".into(), true);
        d.set_vlan(2, Vlan { name, active }).unwrap();
        let group = port_of_group(7);
        d.set_port(group, port(group, trunk())).unwrap();
        d.join(3, Some(7)).unwrap();
        d.join(4, Some(7)).unwrap();
        d
    }

    fn link(d: &Database, port: u16) -> Option<Link> {
        match d.object(What::Port(port)) {
            Some(Object::Link(l)) => Some(l),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    fn said(d: &Database, port: u16, vid: u16) -> bool {
        d.object(What::Member(port, vid)).is_some()
    }

    #[test]
    fn a_group_is_a_port_and_its_ports_are_none() {
        let mut d = database();
        let group = port_of_group(7);
        let of = link(&d, group).unwrap();
        let kind = LinkKind::Bond(BondInfo {
            lag: 7,
            hash: TND_LAG_HASH_L4,
            unsupported: None,
        });
        assert_eq!((of.kind, of.bridge_port.is_some()), (kind, true));
        let member = link(&d, 3).unwrap();
        assert_eq!(
            (member.master, member.bridge_port, member.bond_active),
            (of.ifindex, None, true)
        );
        assert!(said(&d, group, 1) && said(&d, group, 2));
        assert!(!said(&d, 3, 1) && said(&d, 1, 1));
        assert_eq!((d.bridged(3), d.bridged(1)), (group, 1));
        // what floods leaves by it once
        assert_eq!(d.ways(1, ALL), [(1, false), (2, false), (group, false)]);
        assert_eq!(d.vlan_at(d.bridged(4), 2), Some(2));
        // one that is shut down takes no part
        let shut = Port {
            up: false,
            ..port(3, Mode::Access(1))
        };
        d.set_port(3, shut).unwrap();
        assert!(!link(&d, 3).unwrap().bond_active && link(&d, 4).unwrap().bond_active);
        // without ports it is said to nobody, and they are what they were
        d.join(3, None).unwrap();
        d.join(4, None).unwrap();
        assert_eq!((link(&d, group), said(&d, group, 1)), (None, false));
        assert!(said(&d, 3, 1) && link(&d, 4).unwrap().bridge_port.is_some());
        assert_eq!(d.ways(2, ALL), []);
    }

    #[test]
    fn what_changes_is_said() {
        let mut d = database();
        let group = port_of_group(7);
        let taken = |d: &mut Database| std::iter::from_fn(|| d.take()).collect::<Vec<_>>();
        taken(&mut d);
        d.join(3, None).unwrap();
        assert_eq!(
            taken(&mut d),
            [
                What::Port(3),
                What::Port(group),
                What::Member(3, 1),
                What::Member(group, 1),
                What::Member(group, 2)
            ]
        );
        d.join(4, None).unwrap();
        let all = taken(&mut d);
        for what in [
            What::Port(4),
            What::Member(4, 1),
            What::Port(group),
            What::Member(group, 2),
        ] {
            assert!(all.contains(&what), "{what:?}");
        }
        d.join(4, Some(7)).unwrap();
        taken(&mut d);
        d.join(4, Some(7)).unwrap();
        assert_eq!(taken(&mut d), [], "it is there already");
        // its ports hang on it
        d.remove_port(group).unwrap();
        assert!(taken(&mut d).contains(&What::Port(4)));
        assert_eq!(link(&d, 4).unwrap().master, 0);
        d.set_port(group, port(group, trunk())).unwrap();
        assert!(taken(&mut d).contains(&What::Port(4)));
        assert_eq!(
            link(&d, 4).unwrap().master,
            link(&d, group).unwrap().ifindex
        );
    }

    #[test]
    fn it_has_carrier_while_a_port_of_it_has() {
        let mut d = database();
        let group = port_of_group(7);
        let known = |d: &Database| d.stations().count();
        let learn = |d: &mut Database| {
            d.learned(Database::device(group), 1, STATION).unwrap();
        };
        learn(&mut d);
        assert_eq!((d.carrier(group), known(&d)), (None, 1));
        d.set_carrier(3, true);
        assert_eq!(d.carrier(group), Some(true));
        d.set_carrier(4, true);
        d.set_carrier(3, false);
        assert_eq!(
            (d.carrier(group), known(&d)),
            (Some(true), 1),
            "one is left"
        );
        assert_eq!(d.ways(1, STATION), [(group, false)]);
        d.set_carrier(4, false);
        assert_eq!((d.carrier(group), known(&d)), (Some(false), 0));
        assert!(!d.ways(1, ALL).contains(&(group, false)));
        assert_eq!(d.is_alive(2), Some(false));
        d.set_carrier(4, true);
        assert_eq!(d.is_alive(2), Some(true));
        // one that is shut down is not asked
        let shut = Port {
            up: false,
            ..port(4, Mode::Access(1))
        };
        d.set_port(4, shut).unwrap();
        assert_eq!(d.carrier(group), Some(false));
    }

    #[test]
    fn a_state_is_the_groups() {
        let mut d = database();
        let group = port_of_group(7);
        d.set_state(group, State::Blocking);
        assert_eq!(link(&d, group).unwrap().bridge_port.unwrap().state, 4);
        assert!(!d.ways(1, ALL).contains(&(group, false)));
        d.open_all();
        assert_eq!(d.state(group), State::Forwarding);
        assert!(d.is_touched());
    }

    #[test]
    fn routers_behind_it_are_said_again_when_it_has_ports_again() {
        let mut d = database();
        let group = port_of_group(7);
        let router = What::Multicast(Multicast::Router(group));
        d.set_router(1, false, group, true);
        assert!(d.object(router).is_some());
        for n in [3, 4] {
            d.join(n, None).unwrap();
        }
        assert!(d.object(router).is_none(), "the store has no such device");
        d.untouch();
        d.join(3, Some(7)).unwrap();
        let taken: Vec<What> = std::iter::from_fn(|| d.take()).collect();
        assert!(taken.contains(&router) && d.object(router).is_some());
    }

    #[test]
    fn what_can_not_be() {
        let mut d = database();
        let group = port_of_group(7);
        assert_eq!(d.join(9, Some(7)), Err(Refusal::NoSuchPort(9)));
        assert_eq!(d.join(group, Some(7)), Err(Refusal::NoSuchPort(group)));
        assert_eq!(d.join(1, Some(8)), Err(Refusal::NoGroup(8)));
        let far = port_of_group(BONDS + 1);
        let why = d.set_port(far, port(far, trunk()));
        assert_eq!(why, Err(Refusal::NoGroup(BONDS + 1)));
        assert_eq!((group_of_port(2048), group_of_port(2049)), (None, Some(1)));
    }
}

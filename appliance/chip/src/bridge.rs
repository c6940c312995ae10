// SPDX-License-Identifier: Apache-2.0
//! What becomes of a frame that the CPU has got: the bridge of those that the chip did not forward.
//!
//! ```text
//!                      to the router's MAC    to a group                    to another station
//!   trapped            TAP                    TAP, and the VLAN's ports     the station's port, or all
//!   a bridged copy     TAP                    TAP                           nothing: the chip has done it
//!   a routed copy      nothing
//! ```
//!
//! A copy is of a frame that the chip has bridged or flooded itself, so no port sees it twice; what it trapped no port has
//! seen. Never by the port by which it came, nor by another one of its group, which is one port here. What the chip has routed the kernel would route once more: it does not get it,
//! and so sends no ICMP redirects for it.

use tandem_vlans::Database;

/// What the chip has done with a frame itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing: it trapped.
    Nothing,
    /// It has bridged or flooded it.
    Bridged,
    /// It has routed it.
    Routed,
}

/// Whom a frame is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// The VLAN's TAP, if it has one.
    pub up: bool,
    /// Ports by which it leaves, groups among them, and whether with the VLAN's tag.
    pub ports: Vec<(u16, bool)>,
}

/// `01:80:c2:00:00:0X`: what no bridge forwards, but the first, which bridges without spanning tree do.
const LINK_LOCAL: [u8; 5] = [0x01, 0x80, 0xc2, 0, 0];

/// Of a frame to `to` in a VLAN, in by a port. `router`: the MAC of the VLAN's TAP.
#[must_use]
pub fn copies(
    database: &Database,
    vid: u16,
    port: u16,
    to: [u8; 6],
    done: Done,
    router: Option<[u8; 6]>,
) -> Copies {
    let link_local = to.starts_with(&LINK_LOCAL) && to[5] < 16;
    if link_local && to[5] != 0 || done == Done::Routed {
        return Copies::default();
    }
    let port = database.bridged(port);
    let group = to[0] & 1 != 0;
    let own = router == Some(to);
    let mut ports = match done == Done::Bridged || own {
        true => Vec::new(),
        false => database.ways(vid, to),
    };
    ports.retain(|(p, _)| *p != port);
    Copies {
        up: router.is_some() && (own || group && !link_local),
        ports,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_vlans::{Mode, Port, Vlan, port_of_group};

    const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 0x99];
    const ALL: [u8; 6] = [0xff; 6];

    fn database() -> Database {
        let mut d = Database::new(ROUTER);
        let trunk = Mode::Trunk {
            native: 1,
            allowed: [1, 2].into_iter().collect(),
        };
        let other = Mode::Access(3);
        for (n, mode) in [
            (1, trunk.clone()),
            (2, trunk),
            (3, Mode::Access(2)),
            (4, other),
        ] {
            let port = Port {
                name: format!("swp{n}"),
                mac: [2, 0, 0, 0, 1, n as u8],
                mtu: 1500,
                up: true,
                mode,
            };
            d.set_port(n, port).unwrap();
        }
        for vid in [2, 3] {
            let (name, active) = (format!("VLAN{vid:04}"), true);
            d.set_vlan(vid, Vlan { name, active }).unwrap();
        }
        d
    }

    fn at(to: [u8; 6], done: Done, router: Option<[u8; 6]>) -> (bool, Vec<(u16, bool)>) {
        let c = copies(&database(), 2, 1, to, done, router);
        (c.up, c.ports)
    }

    #[test]
    fn what_the_chip_has_flooded_is_not_flooded_again() {
        assert_eq!(at(ALL, Done::Bridged, Some(ROUTER)), (true, vec![]));
        assert_eq!(
            at(ALL, Done::Nothing, Some(ROUTER)),
            (true, vec![(2, true), (3, false)])
        );
        assert_eq!(
            at(ALL, Done::Nothing, None),
            (false, vec![(2, true), (3, false)])
        );
        assert_eq!(at(ROUTER, Done::Routed, Some(ROUTER)), (false, vec![]));
        let other = [2, 0, 0, 0, 0, 7];
        assert_eq!(at(other, Done::Bridged, Some(ROUTER)), (false, vec![]));
        assert_eq!(
            at(other, Done::Nothing, Some(ROUTER)),
            (false, vec![(2, true), (3, false)])
        );
    }

    #[test]
    fn what_is_the_routers_leaves_by_no_port() {
        assert_eq!(at(ROUTER, Done::Nothing, Some(ROUTER)), (true, vec![]));
        // without a TAP it is a station like others
        assert_eq!(at(ROUTER, Done::Nothing, None).1.len(), 2);
    }

    #[test]
    fn what_is_a_links_stays_there() {
        for last in 1..16 {
            let to = [1, 0x80, 0xc2, 0, 0, last];
            assert_eq!(
                at(to, Done::Nothing, Some(ROUTER)),
                (false, vec![]),
                "{last}"
            );
        }
        let stp = [1, 0x80, 0xc2, 0, 0, 0];
        assert_eq!(
            at(stp, Done::Nothing, Some(ROUTER)),
            (false, vec![(2, true), (3, false)])
        );
        let next = [1, 0x80, 0xc2, 0, 0, 16];
        assert!(at(next, Done::Nothing, Some(ROUTER)).0);
    }

    #[test]
    fn a_group_is_one_port() {
        let mut d = database();
        let group = port_of_group(1);
        let of = d.ports()[&1].clone();
        d.set_port(group, of).unwrap();
        d.join(1, Some(1)).unwrap();
        d.join(2, Some(1)).unwrap();
        let ports = |port| copies(&d, 2, port, ALL, Done::Nothing, None).ports;
        // not back by the other one, and once from elsewhere
        assert_eq!((ports(1), ports(2)), (vec![(3, false)], vec![(3, false)]));
        assert_eq!(ports(3), [(group, true)]);
    }
}

//! The chip's numbers: a store that hears everything in another order finds what another one has left there.

use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

fn bridge(ifindex: u32) -> Object {
    Object::Link(Link {
        ifindex,
        name: format!("br{ifindex}"),
        kind: LinkKind::Bridge(BridgeInfo {
            vlan_filtering: true,
            ageing_s: 300,
            ..BridgeInfo::default()
        }),
        mac: mac(200),
        ..swp(1)
    })
}

fn port(n: u16, master: u32) -> Object {
    Object::Link(Link {
        master,
        bridge_port: Some(BridgePort::default()),
        ..swp(n)
    })
}

fn vlan(ifindex: u32, vid: u16) -> Object {
    Object::BridgeVlan(BridgeVlan {
        ifindex,
        vid,
        pvid: vid == 1,
        untagged: vid == 1,
        state: BR_STATE_FORWARDING,
        unsupported: None,
        tap: 0,
    })
}

/// ```text
///   swp1, swp2 ── br50 VLANs 1, 60 ┐ the same VLAN      swp5 10.5.0.1, swp6 10.6.0.1: routes and groups by both
///   swp3, swp4 ── br60 VLAN 1 ─────┘                    swp8.10, swp8.20: 10.8.0.1, 10.9.0.1
/// ```
fn dump(back: bool) -> Vec<Object> {
    let on_vlan = |ifindex, vid| {
        Object::Link(Link {
            ifindex,
            name: format!("swp8.{vid}"),
            kind: LinkKind::Vlan { vid },
            lower: 18,
            ..swp(8)
        })
    };
    let hops = || -> Box<[NextHop]> { [hop(15, "10.5.0.2"), hop(16, "10.6.0.2")].into() };
    let mut kinds = vec![
        vec![bridge(50), bridge(60)],
        vec![port(1, 50), port(2, 50), port(3, 60), port(4, 60)],
        [5, 6, 8].map(|n| Object::Link(swp(n))).into(),
        vec![on_vlan(80, 10), on_vlan(90, 20)],
        vec![
            vlan(11, 1),
            vlan(12, 1),
            vlan(13, 1),
            vlan(14, 1),
            vlan(11, 60),
        ],
        [15, 16, 80, 90]
            .map(|i| forwarding(Family::V4, ConfScope::Interface(i)))
            .into(),
        vec![
            addr(15, "10.5.0.1/24"),
            addr(16, "10.6.0.1/24"),
            addr(80, "10.8.0.1/24"),
            addr(90, "10.9.0.1/24"),
        ],
        vec![
            neigh(15, "10.5.0.2", 105),
            neigh(16, "10.6.0.2", 106),
            neigh(80, "10.8.0.2", 107),
        ],
        vec![single(1, 15, "10.5.0.2"), single(2, 16, "10.6.0.2")],
        // (of groups with equal members a restart may swap the numbers)
        vec![
            object(3, NexthopKind::Group([(2, 1), (1, 2)].into())),
            object(4, NexthopKind::Group([(1, 1), (2, 2)].into())),
        ],
        vec![
            via("10.5.0.0/24", 15, ""),
            via("10.6.0.0/24", 16, ""),
            via("10.8.0.0/24", 80, ""),
            via("20.0.0.0/8", 15, "10.5.0.2"),
            via("21.0.0.0/8", 16, "10.6.0.2"),
            via("22.0.0.0/8", 80, "10.8.0.2"),
            Object::Route(route("23.0.0.0/8", RouteNextHops::Many(hops()))),
            Object::Route(route("24.0.0.0/8", RouteNextHops::Object(3))),
            Object::Route(route("25.0.0.0/8", RouteNextHops::Object(4))),
        ],
    ];
    if back {
        kinds.iter_mut().for_each(|k| k.reverse());
    }
    kinds.concat()
}

/// A route that comes last.
fn last() -> Object {
    via("26.0.0.0/8", 16, "10.6.0.9")
}

fn say(r: &mut Rig, back: bool, with: Option<Object>) {
    r.begin();
    for o in dump(back).into_iter().chain(with) {
        r.up(o);
    }
    r.end();
}

/// What a core reads of a chip that another one has filled.
fn left(chip: &Chip) -> Left {
    let group = |(&nhg, members): (&u32, &Vec<(u32, u32)>)| {
        let head = tnd_nhg {
            nhg,
            hash: TND_HASH_L3,
            ..Default::default()
        };
        let member = |m: &(u32, u32)| tnd_nhg_member {
            nexthop: m.0,
            weight: m.1,
        };
        (head, members.iter().map(member).collect())
    };
    Left {
        groups: chip.groups.iter().map(group).collect(),
        rifs: chip.rifs.values().copied().collect(),
        ports: chip.ports.values().copied().collect(),
        members: chip.members.iter().map(|(k, m)| (*k, m.fid)).collect(),
        ..Left::default()
    }
}

#[test]
fn another_order_writes_nothing() {
    for back in [false, true] {
        for named in [false, true] {
            let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
            say(&mut r, back, None);
            r.store.attach(Attach::Cold, 0);
            r.settle();
            // a gateway goes, and the next one has its own number
            r.up(via("27.0.0.0/8", 15, "10.5.0.9"));
            r.settle();
            r.del(Key::Route(key("27.0.0.0/8")));
            r.settle();
            r.up(last());
            r.settle();
            assert_eq!((r.chip.vlans.len(), r.chip.groups.len()), (3, 3));
            assert_eq!((r.chip.rifs.len(), r.chip.nexthops.len()), (4, 4));
            let log = r.chip.changed.len();
            let swept = r.chip.routes.clone();
            // the next one
            r.store = Store::new(r.chip.config(Policy::Trap));
            r.store.adopt(left(&r.chip));
            r.chip.fw.attach(true);
            say(&mut r, !back, Some(last()));
            if named {
                let bridge_of = |port| match port {
                    1 | 2 => 50,
                    3 | 4 => 60,
                    _ => 0,
                };
                let owners = r.store.name_left(bridge_of);
                assert_eq!(owners.len(), 3);
            }
            r.store.attach(Attach::Warm, 0);
            r.settle();
            assert_eq!(r.chip.changed[log..], [] as [String; 0], "{back} {named}");
            let done = r.store.counters();
            assert_eq!((done.writes, done.failed), (0, 0), "{back} {named}");
            assert_eq!(r.chip.routes, swept);
            r.chip.accounting();
        }
    }
}

/// The number of a place is its next interface's while the old one is still to be deleted.
#[test]
fn a_place_has_one_number() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    let there = |r: &Rig| -> Vec<u16> { r.chip.rifs.keys().copied().collect() };
    assert_eq!(there(&r), [1, 2]);
    // the same port as another device, before anything of the old one is gone
    r.del(Key::Link(11));
    let port = Link {
        ifindex: 31,
        ..swp(1)
    };
    r.up(Object::Link(port));
    r.up(forwarding(Family::V4, ConfScope::Interface(31)));
    r.up(addr(31, "10.1.0.1/24"));
    r.up(via("10.1.0.0/24", 31, ""));
    r.up(neigh(31, "10.1.0.2", 101));
    r.up(via("20.0.0.0/8", 31, "10.1.0.2"));
    r.settle();
    assert_eq!(there(&r), [1, 2]);
    assert_eq!(
        r.chip.lookup("20.0.0.1".parse().unwrap()),
        Answer::Ways(vec![(1, mac(101))])
    );
    assert_eq!(r.chip.dump::<tnd_rif>(TND_CLS_RIF).len(), 2);
    assert!(r.store.rifs_failed().is_empty());
    r.chip.accounting();
}

/// A chip with room for one.
#[test]
fn a_router_interface_without_room_is_named() {
    let mut p = profile("spectrum-sn2700");
    p.pools.rif = 1;
    let mut r = Rig::of(p, Policy::Trap);
    r.begin();
    interface(&mut r, 1);
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    let [there] = r.chip.rifs.keys().copied().collect::<Vec<_>>()[..] else {
        panic!("{:?}", r.chip.rifs)
    };
    assert_eq!(r.store.device_of_rif(there), Some(11));
    assert!(r.store.rifs_failed().is_empty());
    interface(&mut r, 2);
    r.settle();
    assert_eq!(r.store.rifs_failed(), [12].into());
    assert_eq!(r.store.device_of_rif(there), Some(11));
}

/// What the chip says is told of what its numbers stand for.
#[test]
fn numbers_of_the_chip_are_understood() {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    say(&mut r, false, None);
    r.store.attach(Attach::Cold, 0);
    r.settle();
    let domains: Vec<_> = r.chip.vlans.keys().map(|f| r.store.domain(*f)).collect();
    let of = |dev, vlan| Some(Domain { dev, vlan });
    assert_eq!(domains, [of(50, 1), of(60, 1), of(50, 60)]);
    let place = r.store.fdb_place(60, 1);
    assert_eq!(place.map(|(_, dev)| dev), Some(11));
    let mut hops: Vec<_> = r.chip.nexthops.keys().collect();
    let mut named: Vec<String> = hops
        .drain(..)
        .filter_map(|n| Some(r.store.nexthop_neighbour(*n)?.addr.to_string()))
        .collect();
    named.sort();
    assert_eq!(named, ["10.5.0.2", "10.6.0.2", "10.8.0.2"]);
    let rif = |vid| r.chip.rifs.values().find(|r| r.vid == vid).unwrap().rif;
    let host = r.store.host_neighbour(rif(10), "10.8.0.2".parse().unwrap());
    assert_eq!(host.map(|w| w.ifindex), Some(80));
    assert!(rif(20) >= 5120 && rif(10) >= 5120);
    assert_eq!(
        (r.store.domain(7), r.store.nexthop_neighbour(1)),
        (None, None)
    );
    assert_eq!(
        (r.store.slot_of_vrf(0), r.store.slot_of_vrf(7)),
        (Some(0), None)
    );
}

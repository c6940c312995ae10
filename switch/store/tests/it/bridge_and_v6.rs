//! Bridging: the forwarding database, its echo, and what a full table means for unknown unicast. IPv6 routes. Hardware
//! that fails writes.

use crate::common::bridged::*;
use crate::common::*;
use tandem_abi::raw::*;
use tandem_firmware::{Fault, FaultAction};
use tandem_store::model::*;
use tandem_store::*;

#[test]
fn kernel_entries_become_chip_entries() {
    let mut r = bridged("spectrum-sn2700");
    let s = fdb(1, 11, FdbKind::Static);
    let l = fdb(2, BRIDGE, FdbKind::Local);
    r.up(Object::Fdb(s));
    r.up(Object::Fdb(l));
    r.settle();
    let e = r.chip.fdb[&(FID, s.mac)];
    assert_eq!(
        (e.action, e.port, e.flags),
        (TND_ACT_FORWARD, 1, TND_FDB_NO_AGE)
    );
    assert_eq!(r.chip.fdb[&(FID, l.mac)].action, TND_ACT_TRAP);
    r.up(Object::Fdb(FdbEntry { ifindex: 12, ..s }));
    r.settle();
    assert_eq!(r.chip.fdb[&(FID, s.mac)].port, 2);
    // it follows its station, and the kernel is told; what the kernel says next counts
    let moved = DeviceEvent::Move {
        fid: FID,
        mac: s.mac,
        port: 1,
    };
    let back = r.store.device_event(moved, 5).map(|b| (b.add, b.ifindex));
    assert_eq!(back, Some((true, 11)));
    r.up(Object::Fdb(s));
    r.up(Object::Fdb(FdbEntry { ifindex: 12, ..s }));
    r.settle();
    assert_eq!(r.chip.fdb[&(FID, s.mac)].port, 2);
    let sticky = FdbEntry { sticky: true, ..s };
    r.up(Object::Fdb(sticky));
    r.settle();
    assert_eq!(r.chip.fdb[&(FID, s.mac)].flags, TND_FDB_STATIC);
    r.del(key_of(&s));
    r.del(key_of(&l));
    r.settle();
    assert!(r.chip.fdb.is_empty());
}

/// What `show` lists and what `explain` says are the same words; who traps has a reason, who is there costs something.
#[test]
fn rows_and_explanations_agree() {
    let mut r = bridged("spectrum-sn2700");
    interface(&mut r, 3);
    r.up(Object::Link(Link {
        ifindex: 60,
        name: "veth0".into(),
        kind: LinkKind::Other("veth".into()),
        master: BRIDGE,
        ..swp(1)
    }));
    r.up(Object::Fdb(fdb(1, 11, FdbKind::Static)));
    r.up(Object::Fdb(fdb(2, BRIDGE, FdbKind::Local)));
    r.up(Object::Fdb(fdb(3, 60, FdbKind::Static)));
    r.up(via("fe80::/64", 13, ""));
    r.up(local("ff00::/8", 13, RouteType::Multicast));
    r.settle();
    let learned = DeviceEvent::Learn {
        fid: FID,
        mac: fdb(4, 0, FdbKind::Dynamic).mac,
        port: 2,
    };
    r.store.device_event(learned, 5);
    r.settle();
    let mut said = Vec::new();
    for (n, row) in (1..).zip(r.store.fdb()) {
        let e = &r.store.explain_mac(fdb(n, 0, FdbKind::Local).mac)[0];
        assert_eq!((row.state, row.action), (e.state, e.action), "{e:?}");
        assert_eq!(row.reason, e.reason);
        assert_eq!((e.cost, e.table.as_str()), (1, "exact-match"), "{e:?}");
        said.push((row.state, row.action, words(&row.reason)));
    }
    assert_eq!(
        said,
        [
            (State::Installed, Action::Forward, String::new()),
            (State::Installed, Action::Trap, "an own address".into()),
            (
                State::Installed,
                Action::Trap,
                "veth0 is not offloaded".into()
            ),
            (State::Installed, Action::Forward, String::new()),
        ]
    );
    for family in [Family::V4, Family::V6] {
        let mut rows = Vec::new();
        r.store.routes(family, 0, 100, &mut rows);
        assert!(rows.len() >= 2, "{rows:?}");
        for row in rows {
            let e = r.store.explain_route(row.prefix.parse().unwrap());
            assert_eq!((row.state, row.action), (e.state, e.action), "{e:?}");
            assert!(family == Family::V4 || e.state == State::Omitted, "{e:?}");
        }
    }
    // no neighbour of anybody
    let lo = Link {
        ifindex: 1,
        name: "lo".into(),
        kind: LinkKind::Other("".into()),
        ..swp(1)
    };
    r.up(Object::Link(lo));
    r.up(neigh(1, "0.0.0.0", 0));
    r.settle();
    for row in r.store.neighbours() {
        let e = &r.store.explain_neighbour(row.addr)[0];
        assert_eq!((row.state, &row.reason), (e.state, &e.reason), "{e:?}");
    }
}

/// A static entry that had no room: where its station is learned once there is some, the kernel is told, as it moves
/// such an entry itself. What was learned before the entry came moves nothing.
#[test]
fn a_static_entry_without_room_follows_what_is_learned_later() {
    let mut r = bridged("tiny");
    let n = overfill(&mut r, FdbKind::Static);
    let last = fdb(n - 1, 11, FdbKind::Static);
    let learned = |mac| DeviceEvent::Learn {
        fid: FID,
        mac,
        port: 2,
    };
    assert!(!r.chip.fdb.contains_key(&(FID, last.mac)));
    let back = r.store.device_event(learned(last.mac), 5);
    assert_eq!(back.map(|b| (b.add, b.ifindex)), Some((true, 12)));
    let there = fdb(0, 11, FdbKind::Static);
    assert_eq!(r.chip.fdb[&(FID, there.mac)].port, 1);
    assert_eq!(r.store.device_event(learned(there.mac), 6), None);
    r.settle();
    assert_eq!(r.chip.fdb[&(FID, there.mac)].port, 1);
}

#[test]
fn what_the_chip_learned_goes_to_the_kernel_and_its_echo_costs_nothing() {
    let mut r = bridged("spectrum-sn2700");
    let e = fdb(3, 12, FdbKind::ExternLearn);
    let back = r.store.device_event(
        DeviceEvent::Learn {
            fid: FID,
            mac: e.mac,
            port: 2,
        },
        5,
    );
    let want = FdbWriteBack {
        add: true,
        bridge: BRIDGE,
        vlan: 0,
        ifindex: 12,
        mac: e.mac,
    };
    assert_eq!(back, Some(want));
    let commands = r.store.counters().commands;
    r.up(Object::Fdb(e));
    r.settle();
    assert_eq!(
        r.store.counters().commands,
        commands,
        "the chip has it already"
    );
    let moved = r.store.device_event(
        DeviceEvent::Move {
            fid: FID,
            mac: e.mac,
            port: 1,
        },
        6,
    );
    assert_eq!(
        moved,
        Some(FdbWriteBack {
            ifindex: 11,
            ..want
        })
    );
    r.up(Object::Fdb(FdbEntry { ifindex: 11, ..e }));
    r.settle();
    assert_eq!(r.store.counters().commands, commands);
    let aged = r.store.device_event(
        DeviceEvent::Age {
            fid: FID,
            mac: e.mac,
            port: 1,
        },
        7,
    );
    assert_eq!(
        aged,
        Some(FdbWriteBack {
            add: false,
            ifindex: 11,
            ..want
        })
    );
    r.settle();
    r.del(key_of(&e));
    r.settle();
    assert_eq!(
        r.store.counters().commands,
        commands,
        "the chip removed it by itself"
    );
    assert!(r.store.fdb().is_empty());
}

fn trapping(r: &Rig) -> bool {
    let traps = |v: &tnd_vlan| v.flags & TND_VLAN_UC_TRAP != 0;
    r.chip.vlans.values().any(traps)
}

/// Stations behind swp1 until one has no room, which makes its domain trap: how many.
fn overfill(r: &mut Rig, kind: FdbKind) -> u16 {
    let mut n = 0;
    while r.store.counters().waiting == 0 {
        assert!(!trapping(r));
        r.up(Object::Fdb(fdb(n, 11, kind)));
        r.settle();
        n += 1;
        assert!(n < 100, "tiny never fills");
    }
    assert!(trapping(r));
    n
}

#[test]
fn while_an_entry_is_missing_unknown_unicast_goes_to_the_cpu() {
    let mut r = bridged("tiny");
    let n = overfill(&mut r, FdbKind::Static);
    let last = fdb(n - 1, 11, FdbKind::Static);
    let e = &r.store.explain_mac(last.mac)[0];
    assert!(
        !e.in_hardware && e.reason.is_some() && e.cover.contains("br0"),
        "{e:?}"
    );
    // Its bucket may be full even if others are freed: make room in all of them.
    for i in 0..n - 1 {
        r.del(key_of(&fdb(i, 11, FdbKind::Static)));
    }
    r.settle();
    assert_eq!(r.store.counters().waiting, 0);
    assert!(!trapping(&r));
    assert!(r.chip.fdb.contains_key(&(FID, last.mac)));
    // One that is removed while it waits gives the flooding back as well.
    for i in 0..n {
        r.up(Object::Fdb(fdb(i, 11, FdbKind::Static)));
    }
    r.settle();
    assert!(trapping(&r));
    for i in 0..n {
        r.del(key_of(&fdb(i, 11, FdbKind::Static)));
    }
    r.settle();
    assert!(!trapping(&r) && r.chip.fdb.is_empty());
    r.chip.accounting();
}

/// A bridge that goes while one of its entries has no room leaves nothing to the next one with its number; in whatever
/// order the kernel tells it.
#[test]
fn a_bridge_that_goes_while_an_entry_is_missing() {
    for entries_first in [true, false] {
        let mut r = bridged("tiny");
        let n = overfill(&mut r, FdbKind::Static);
        if entries_first {
            for i in 0..n {
                r.del(key_of(&fdb(i, 11, FdbKind::Static)));
            }
        }
        for i in [1, 2] {
            r.up(Object::Link(swp(i)));
        }
        r.del(Key::Link(BRIDGE));
        if !entries_first {
            r.settle();
            for i in 0..n {
                r.del(key_of(&fdb(i, 11, FdbKind::Static)));
            }
        }
        r.settle();
        assert!(r.chip.vlans.is_empty() && r.chip.fdb.is_empty());
        r.up(bridge(300));
        for i in [1, 2] {
            r.up(joined(i));
        }
        r.settle();
        assert!(!trapping(&r), "entries first: {entries_first}");
    }
}

/// As much for one that is being written at last, or stands, when its bridge goes.
#[test]
fn a_bridge_that_goes_while_a_missing_entry_is_written() {
    let mut r = bridged("tiny");
    let n = overfill(&mut r, FdbKind::Static);
    for i in 0..n - 1 {
        r.del(key_of(&fdb(i, 11, FdbKind::Static)));
    }
    let created = |r: &Rig| {
        let next = r.chip.rings[0].front();
        next.is_some_and(|p| p.op == TND_OP_CREATE && p.cls == TND_CLS_FDB)
    };
    for _ in 0..1000 {
        r.plan();
        if created(&r) {
            break;
        }
        r.run(0);
    }
    assert!(created(&r), "there is room for it now");
    for i in [1, 2] {
        r.up(Object::Link(swp(i)));
    }
    r.del(Key::Link(BRIDGE));
    r.settle();
    r.del(key_of(&fdb(n - 1, 11, FdbKind::Static)));
    r.settle();
    assert!(r.chip.vlans.is_empty() && r.chip.fdb.is_empty());
    r.up(bridge(300));
    for i in [1, 2] {
        r.up(joined(i));
    }
    r.settle();
    assert!(!trapping(&r));
}

/// An entry that the hardware failed to write makes its domain trap until it stands or goes, and no longer.
#[test]
fn an_entry_that_the_hardware_failed_and_that_goes() {
    for again in [false, true] {
        let mut r = bridged("tiny");
        let failing = Fault {
            action: FaultAction::Fail,
            op: Some(TND_OP_CREATE),
            cls: Some(TND_CLS_FDB),
            pool: None,
            after: 1,
            count: 0,
        };
        r.chip.fw.faults.add(failing).unwrap();
        r.up(Object::Fdb(fdb(1, 11, FdbKind::Static)));
        r.settle();
        assert!(trapping(&r));
        r.chip.fw.faults.clear();
        if again {
            r.up(Object::Fdb(fdb(1, 12, FdbKind::Static)));
        } else {
            r.del(key_of(&fdb(1, 11, FdbKind::Static)));
        }
        r.settle();
        assert_eq!(r.chip.fdb.len(), usize::from(again));
        assert!(!trapping(&r), "written again: {again}");
    }
}

/// An entry that has no room, and went before the answer came, is as missing as at first when it comes back.
#[test]
fn an_entry_without_room_that_goes_before_its_answer() {
    let mut r = bridged("tiny");
    let n = overfill(&mut r, FdbKind::Static);
    let last = fdb(n - 1, 11, FdbKind::Static);
    r.del(key_of(&last));
    r.settle();
    assert!(!trapping(&r));
    r.up(Object::Fdb(last));
    r.plan();
    r.del(key_of(&last));
    r.settle();
    assert!(!trapping(&r));
    r.up(Object::Fdb(last));
    r.settle();
    assert!(trapping(&r));
}

/// A station that the kernel knows and the chip has no room for is flooded to, as one that no switch knows; once it speaks,
/// the chip has learned it, and nothing waits.
#[test]
fn a_dynamic_entry_without_room_floods() {
    let mut r = bridged("tiny");
    let mut n = 0;
    while r.store.counters().waiting == 0 {
        r.up(Object::Fdb(fdb(n, 11, FdbKind::Dynamic)));
        r.settle();
        assert!(!trapping(&r), "{n}");
        n += 1;
        assert!(n < 100, "tiny never fills");
    }
    r.store.device_event(
        DeviceEvent::Learn {
            fid: FID,
            mac: fdb(n - 1, 11, FdbKind::Dynamic).mac,
            port: 1,
        },
        r.now,
    );
    r.settle();
    assert_eq!(r.store.counters().waiting, 0);
    // what somebody has set by hand is another matter
    for i in n..100 {
        r.up(Object::Fdb(fdb(i, 11, FdbKind::Static)));
        r.settle();
    }
    assert!(trapping(&r));
}

/// The flag of a port is the user's: the chip learns there, or not.
#[test]
fn the_chip_learns_where_the_flag_allows() {
    let mut r = bridged("spectrum-sn2700");
    let learns = |r: &Rig, n: u16| r.chip.ports[&n].flags & TND_PORT_LEARNING != 0;
    assert!(learns(&r, 1) && learns(&r, 2));
    let set = |n: u16, learning, locked| {
        let Object::Link(l) = joined(n) else {
            unreachable!()
        };
        let settings = BridgePort {
            learning,
            locked,
            ..Default::default()
        };
        Object::Link(Link {
            bridge_port: Some(settings),
            ..l
        })
    };
    r.up(set(1, false, true));
    r.settle();
    assert!(!learns(&r, 1) && learns(&r, 2));
    let flags = r.chip.ports[&1].flags;
    assert_eq!(
        flags & (TND_PORT_LOCKED | TND_PORT_TRAP_ALL),
        TND_PORT_LOCKED
    );
    r.up(set(1, true, true));
    r.settle();
    assert!(learns(&r, 1));
    // what the bridge does not learn from, the chip would: the requests to be let in
    let Object::Link(b) = bridge(300) else {
        unreachable!()
    };
    r.up(Object::Link(Link {
        kind: LinkKind::Bridge(BridgeInfo {
            ageing_s: 300,
            no_link_local_learning: true,
            ..Default::default()
        }),
        ..b
    }));
    r.settle();
    assert_ne!(r.chip.ports[&1].flags & TND_PORT_TRAP_ALL, 0);
    assert_eq!(r.chip.ports[&2].flags & TND_PORT_TRAP_ALL, 0);
}

/// `extern_learn` of another program does not age, and is the chip's once its station has moved, as in the kernel.
#[test]
fn another_programs_entry_moves_with_its_station_and_ages_then() {
    let mut r = bridged("spectrum-sn2700");
    let e = fdb(3, 11, FdbKind::ExternLearn);
    r.up(Object::Fdb(e));
    r.settle();
    let there = |r: &Rig| {
        let f = r.chip.fdb[&(FID, e.mac)];
        (f.port, f.flags & !TND_FDB_LEARNED)
    };
    assert_eq!(there(&r), (1, TND_FDB_NO_AGE));
    // by itself the chip moves it as it is
    r.chip.fdb.get_mut(&(FID, e.mac)).unwrap().port = 2;
    let moved = DeviceEvent::Move {
        fid: FID,
        mac: e.mac,
        port: 2,
    };
    let back = r.store.device_event(moved, 5);
    assert_eq!(back.map(|b| (b.add, b.ifindex)), Some((true, 12)));
    r.settle();
    assert_eq!(there(&r), (2, 0));
    // an event of before the entry was there says nothing about it
    let other = fdb(4, 11, FdbKind::ExternLearn);
    r.up(Object::Fdb(other));
    r.settle();
    let before = DeviceEvent::Learn {
        fid: FID,
        mac: other.mac,
        port: 2,
    };
    assert_eq!(r.store.device_event(before, 6), None);
    r.settle();
    assert_eq!(r.chip.fdb[&(FID, other.mac)].port, 1);
}

/// Who knocks at a locked port is known to the kernel and not let in: the chip must not know it there.
#[test]
fn a_station_that_nobody_let_in_is_not_in_the_chip() {
    let mut r = bridged("spectrum-sn2700");
    let e = fdb(3, 11, FdbKind::Locked);
    r.up(Object::Fdb(e));
    r.settle();
    assert!(r.chip.fdb.is_empty());
    let row = &r.store.explain_mac(e.mac)[0];
    assert!(words(&row.reason).contains("nobody has let"), "{row:?}");
    let in_now = fdb(3, 11, FdbKind::Static);
    r.up(Object::Fdb(in_now));
    r.settle();
    assert_eq!(r.chip.fdb[&(FID, e.mac)].port, 1);
}

/// A domain that comes back under another number, while the chip still has the old one, takes with it what had no room.
#[test]
fn a_domain_that_comes_back_while_an_entry_is_missing() {
    let mut r = bridged("tiny");
    let mut n = 0;
    while r.store.counters().waiting == 0 {
        r.up(Object::Fdb(fdb(n, 11, FdbKind::Static)));
        r.settle();
        n += 1;
        assert!(n < 100, "tiny never fills");
    }
    for i in [1, 2] {
        r.up(Object::Link(swp(i)));
    }
    r.plan();
    for i in [1, 2] {
        r.up(joined(i));
    }
    r.settle();
    assert!(trapping(&r));
    for i in 0..n {
        r.del(key_of(&fdb(i, 11, FdbKind::Static)));
    }
    r.settle();
    assert!(!trapping(&r), "the same domain, another number");
    let Object::Link(other) = bridge(300) else {
        unreachable!()
    };
    r.up(Object::Link(Link {
        ifindex: BRIDGE + 1,
        name: "br1".into(),
        ..other
    }));
    r.up(Object::Link(Link {
        master: BRIDGE + 1,
        bridge_port: Some(BridgePort::default()),
        ..swp(3)
    }));
    r.settle();
    assert_eq!(r.chip.vlans.len(), 2);
    assert!(!trapping(&r), "another domain, the old number");
}

/// What the chip has otherwise than the kernel at a warm attach is updated; what refers to it is neither swept nor lost.
#[test]
fn members_outlive_a_warm_attach_to_a_domain_that_differs() {
    let mut r = bridged("tiny");
    r.up(Object::Fdb(fdb(1, 11, FdbKind::Static)));
    r.settle();
    let (members, stations) = (r.chip.members.clone(), r.chip.fdb.clone());
    assert_eq!((members.len(), stations.len()), (2, 1));
    // changed while nobody listened
    r.up(bridge(100));
    r.chip.fw.attach(true);
    r.store.attach(Attach::Warm, 0);
    r.settle();
    assert_eq!(r.chip.vlans[&FID].ageing_s, 100);
    assert_eq!(r.chip.members, members);
    assert_eq!(r.chip.fdb, stations);
    r.chip.accounting();
}

#[test]
fn ipv6_routes_groups_and_hosts() {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.begin();
    r.up(forwarding(Family::V6, ConfScope::All));
    for n in 1..=2u16 {
        let i = 10 + u32::from(n);
        r.up(Object::Link(swp(n)));
        r.up(addr(i, &format!("2001:db8:{n}::1/64")));
        r.up(local(&format!("2001:db8:{n}::1/128"), i, RouteType::Local));
        r.up(local(&format!("2001:db8:{n}::/128"), i, RouteType::Anycast));
        r.up(via(&format!("2001:db8:{n}::/64"), i, ""));
        r.up(via("fe80::/64", i, ""));
        r.up(local("ff00::/8", i, RouteType::Multicast));
        r.up(neigh(i, &format!("2001:db8:{n}::2"), 100 + n as u8));
        r.up(neigh(i, &format!("fe80::{n}"), 110 + n as u8));
    }
    let many = RouteNextHops::Many(vec![hop(11, "fe80::1"), hop(12, "fe80::2")].into());
    r.up(Object::Route(route("2001:db8:100::/40", many)));
    r.up(via("::/0", 11, "2001:db8:1::2"));
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    let at = |r: &Rig, a: &str| r.chip.lookup(a.parse().unwrap());
    let one = |rif, m| Answer::Ways(vec![(rif, mac(m))]);
    assert_eq!(at(&r, "2001:db8:1::2"), one(1, 101));
    assert_eq!(at(&r, "2001:db8:1::3"), Answer::Trap);
    assert_eq!(at(&r, "2001:db8:1::1"), Answer::Trap);
    assert_eq!(at(&r, "2001:4860::1"), one(1, 101));
    assert_eq!(
        at(&r, "2001:db8:100::9"),
        Answer::Ways(vec![(1, mac(111)), (2, mac(112))])
    );
    // A link-local gateway needs a next hop and no host entry; multicast and link-local prefixes need no route.
    assert!(r.chip.hosts.keys().all(|k| k.1[0] != 0xfe));
    assert!(r.chip.routes.keys().all(|k| k.1[0] == 0x20 || k.2 == 0));
    assert!(
        !r.store
            .explain_route("2001:db8:1::/128".parse().unwrap())
            .in_hardware
    );
    r.chip.accounting();
}

/// The kernel tells of IPv6 routes that go with a link. After a dump a link's older message may come: what the dump brought
/// is not told again, so it must not go in silence.
#[test]
fn an_ipv6_route_goes_with_its_own_message_and_not_with_its_links() {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.begin();
    for family in [Family::V4, Family::V6] {
        r.up(forwarding(family, ConfScope::All));
    }
    r.up(Object::Link(swp(1)));
    r.up(addr(11, "2001:db8:1::1/64"));
    r.up(local("fe80::1/128", 11, RouteType::Local));
    r.up(via("2001:db8:1::/64", 11, ""));
    r.up(neigh(11, "2001:db8:1::2", 101));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    let known = |r: &Rig, p: &str| r.store.explain_route(p.parse().unwrap()).known;
    for admin_up in [false, true] {
        r.up(Object::Link(Link { admin_up, ..swp(1) }));
        r.settle();
        assert!(known(&r, "fe80::1/128") && known(&r, "2001:db8:1::/64"));
        assert!(!known(&r, "20.0.0.0/8"), "of this one nobody tells");
        let way = match admin_up {
            true => Answer::Ways(vec![(1, mac(101))]),
            false => Answer::Trap,
        };
        let at = "2001:db8:1::2".parse().unwrap();
        assert_eq!(r.chip.lookup(at), way);
    }
    r.chip.accounting();
}

/// A full chip, then a route that does not fit, while one kind of write fails: once, or for good.
#[test]
fn a_write_that_the_hardware_fails_leaves_no_wrong_answer() {
    for op in [TND_OP_CREATE, TND_OP_UPDATE, TND_OP_SET_TRAP] {
        for cls in [TND_CLS_ROUTE, TND_CLS_NEXTHOP] {
            for count in [1, 0] {
                let mut r = Rig::new("tiny", Policy::Trap);
                r.begin();
                interface(&mut r, 1);
                interface(&mut r, 2);
                r.up(via("0.0.0.0/0", 11, "10.1.0.2"));
                r.end();
                r.store.attach(Attach::Cold, 0);
                r.settle();
                r.chip
                    .fw
                    .faults
                    .add(Fault {
                        action: FaultAction::Fail,
                        op: Some(op),
                        cls: Some(cls),
                        pool: None,
                        after: 1,
                        count,
                    })
                    .unwrap();
                let right = Answer::Ways(vec![(2, mac(102))]);
                for n in 0..40 {
                    r.up(via(&format!("13.{n}.0.0/16"), 12, "10.2.0.2"));
                    r.settle();
                    for m in 0..=n {
                        let a = r.chip.lookup(format!("13.{m}.0.1").parse().unwrap());
                        assert!(
                            a == Answer::Trap || a == right,
                            "op {op} cls {cls} count {count}: {a:?}"
                        );
                    }
                }
                // The chip is repaired, and attached anew: everything that fits is there again.
                r.chip.fw.faults.clear();
                for n in 8..40 {
                    r.del(Key::Route(key(&format!("13.{n}.0.0/16"))));
                }
                r.chip.cold();
                r.store.attach(Attach::Cold, r.now);
                r.settle();
                assert_eq!(r.store.counters().waiting, 0, "{:?}", r.store.failures(3));
                assert_eq!(r.chip.lookup("13.7.0.1".parse().unwrap()), right);
                r.chip.accounting();
            }
        }
    }
}

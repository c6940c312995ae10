//! Bridges that filter by VLAN, and VLAN interfaces: what becomes a domain, a membership, a router interface.

use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

const BR: u32 = 50;

fn bridge(filtering: bool) -> Object {
    Object::Link(Link {
        ifindex: BR,
        name: "br0".into(),
        kind: LinkKind::Bridge(BridgeInfo {
            vlan_filtering: filtering,
            ageing_s: 300,
            ..BridgeInfo::default()
        }),
        mac: mac(200),
        ..swp(1)
    })
}

fn port(n: u16) -> Object {
    Object::Link(Link {
        master: BR,
        bridge_port: Some(BridgePort::default()),
        ..swp(n)
    })
}

/// `bridge vlan add`: `p` PVID, `u` untagged.
fn vlan(ifindex: u32, vid: u16, flags: &str) -> Object {
    Object::BridgeVlan(BridgeVlan {
        ifindex,
        vid,
        pvid: flags.contains('p'),
        untagged: flags.contains('u'),
        state: BR_STATE_FORWARDING,
        unsupported: None,
        tap: 0,
    })
}

fn vlan_device(ifindex: u32, lower: u32, vid: u16, m: [u8; 6]) -> Link {
    Link {
        ifindex,
        name: format!("if{lower}.{vid}"),
        kind: LinkKind::Vlan { vid },
        lower,
        mac: m,
        ..swp(1)
    }
}

/// br0 over swp1 (1 pvid untagged, 10), swp2 (10 pvid untagged), swp3 (1 pvid untagged, 10).
fn bridged(filtering: bool) -> Rig {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.begin();
    r.up(bridge(filtering));
    for n in 1..=3 {
        r.up(port(n));
    }
    for (i, vid, flags) in [
        (11, 1, "pu"),
        (11, 10, ""),
        (12, 10, "pu"),
        (13, 1, "pu"),
        (13, 10, ""),
        (BR, 1, "pu"),
    ] {
        r.up(vlan(i, vid, flags));
    }
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

/// (port, VID) -> (VLAN that its domain stands for, flags)
fn members(r: &Rig) -> Vec<(u16, u16, u16, u32)> {
    r.chip
        .members
        .values()
        .map(|m| (m.port, m.vid, r.store.domain(m.fid).unwrap().vlan, m.flags))
        .collect()
}

const PU: u32 = TND_MEMBER_PVID | TND_MEMBER_UNTAGGED;

fn traps(r: &Rig, port: u16) -> bool {
    r.chip.ports[&port].flags & TND_PORT_TRAP_ALL != 0
}

fn fid(r: &Rig, dev: u32, vlan: u16) -> u16 {
    let all = r.chip.vlans.keys().copied();
    let mut of = all.filter(|f| r.store.domain(*f) == Some(Domain { dev, vlan }));
    of.next().expect("a domain")
}

#[test]
fn a_domain_per_vlan_and_a_membership_per_port_and_vid() {
    let mut r = bridged(true);
    assert_eq!(
        members(&r),
        [
            (1, 1, 1, PU),
            (1, 10, 10, 0),
            (2, 10, 10, PU),
            (3, 1, 1, PU),
            (3, 10, 10, 0)
        ]
    );
    assert!((1..=3).all(|p| !traps(&r, p)));
    // the bridge's own device is in VLAN 1 alone
    let copies = |r: &Rig, v| r.chip.vlans[&fid(r, BR, v)].flags & TND_VLAN_CPU_COPY != 0;
    assert!(copies(&r, 1) && !copies(&r, 10));
    r.up(vlan(BR, 10, ""));
    r.settle();
    assert!(copies(&r, 10));
    // PVID moves: the source says both
    r.up(vlan(11, 1, "u"));
    r.up(vlan(11, 10, "p"));
    r.settle();
    assert_eq!(
        members(&r)[..2],
        [(1, 1, 1, TND_MEMBER_UNTAGGED), (1, 10, 10, TND_MEMBER_PVID)]
    );
    // the last port leaves a VLAN: its domain goes
    for i in [11, 12, 13] {
        r.del(Key::BridgeVlan(i, 10));
    }
    r.settle();
    assert_eq!(r.chip.vlans.len(), 1);
    assert_eq!(members(&r).len(), 2);
}

/// A source may say of each VLAN whether it snoops, and whether it has a querier: the bridge as a whole does neither.
#[test]
fn a_vlan_snoops_by_itself() {
    let mut r = bridged(true);
    let snoop = |vlan, querier4, querier6| {
        Object::VlanSnooping(VlanSnooping {
            bridge: BR,
            vlan,
            querier4,
            querier6,
        })
    };
    let group = GroupAddr::Ip("225.1.1.1".parse().unwrap());
    for vlan in [1, 10] {
        r.up(Object::Mdb(MdbEntry {
            bridge: BR,
            vlan,
            group,
            source: None,
            ifindex: 13,
            include: false,
            blocked: false,
        }));
    }
    let of = |r: &Rig, v| {
        let mask = TND_VLAN_SNOOP | TND_VLAN_MC4_MEMBERS | TND_VLAN_MC6_MEMBERS | TND_VLAN_MC_TRAP;
        r.chip.vlans[&fid(r, BR, v)].flags & mask
    };
    // domain and ports
    let entries = |r: &Rig| -> Vec<(u16, Vec<u16>)> {
        let all = r.chip.fw.state.mdb.iter();
        all.map(|(_, e)| (e.key.fid, e.config.ports.clone()))
            .collect()
    };
    r.settle();
    assert_eq!((of(&r, 1), of(&r, 10), entries(&r).len()), (0, 0, 0));
    r.up(snoop(10, Querier::There, Querier::None));
    r.settle();
    let members = TND_VLAN_SNOOP | TND_VLAN_MC4_MEMBERS;
    assert_eq!((of(&r, 1), of(&r, 10)), (0, members));
    assert_eq!(entries(&r), [(fid(&r, BR, 10), vec![3])]);
    r.up(snoop(10, Querier::None, Querier::There));
    r.settle();
    assert_eq!(of(&r, 10), TND_VLAN_SNOOP | TND_VLAN_MC6_MEMBERS);
    // another source has no say in it
    let other = Event::Remove(SourceId(9), Key::VlanSnooping(BR, 10));
    r.store.apply(other, r.now);
    r.settle();
    assert_eq!(of(&r, 10), TND_VLAN_SNOOP | TND_VLAN_MC6_MEMBERS);
    r.del(Key::VlanSnooping(BR, 10));
    r.settle();
    assert_eq!((of(&r, 10), entries(&r).len()), (0, 0));
    // and a dump without it
    r.up(snoop(1, Querier::There, Querier::There));
    r.settle();
    assert_eq!(
        (of(&r, 1), entries(&r).len()),
        (members | TND_VLAN_MC6_MEMBERS, 1)
    );
    r.store.apply(Event::BeginSync(SRC, KindSet::MDB), r.now);
    r.end();
    r.settle();
    assert_eq!((of(&r, 1), entries(&r).len()), (0, 0));
}

#[test]
fn switching_the_filter_on_and_off_traps_meanwhile() {
    let mut r = bridged(false);
    assert_eq!(members(&r).len(), 3);
    assert!(r.chip.members.keys().all(|k| k.1 == TND_VID_ANY));
    for (on, n) in [(true, 5), (false, 3), (true, 5)] {
        r.chip.changed.clear();
        r.up(bridge(on));
        // a port is never without membership and not trapping at the same time
        for _ in 0..10_000 {
            let idle = r.plan() == 0 && !r.run(0) && !r.run(1);
            for p in 1..=3 {
                let member = r.chip.members.keys().any(|k| k.0 == p);
                assert!(
                    member || traps(&r, p),
                    "swp{p} drops what the kernel forwards"
                );
            }
            if idle {
                break;
            }
        }
        assert!(r.store.idle());
        assert_eq!(members(&r).len(), n);
        assert!(
            (1..=3).all(|p| !traps(&r, p)),
            "{:?}",
            words(&r.store.port_reason(11))
        );
        assert!(r.store.port_reason(11).is_none());
    }
}

#[test]
fn a_warm_attach_writes_nothing_again_and_survives_a_filter_that_was_switched_meanwhile() {
    let mut r = bridged(true);
    r.chip.fw.attach(true);
    r.chip.changed.clear();
    r.store.attach(Attach::Warm, 0);
    r.settle();
    assert_eq!(r.chip.changed, Vec::<String>::new());
    // off while nobody looked
    let mut n = bridged(false);
    std::mem::swap(&mut n.chip, &mut r.chip);
    n.chip.fw.attach(true);
    n.store.attach(Attach::Warm, 0);
    n.settle();
    let there = n.chip.dump::<tnd_vlan_member>(TND_CLS_VLAN_MEMBER);
    assert_eq!(there.len(), 3);
    assert!(there.iter().all(|m| m.vid == TND_VID_ANY));
    n.settle();
    let ports = n.chip.dump::<tnd_port>(TND_CLS_PORT);
    assert!(
        ports.iter().all(|p| p.flags & TND_PORT_TRAP_ALL == 0),
        "{}",
        words(&n.store.port_reason(11))
    );
}

#[test]
fn addresses_are_the_vlans_own() {
    let mut r = bridged(true);
    let entry = |vlan, ifindex, kind| {
        Object::Fdb(FdbEntry {
            bridge: BR,
            vlan,
            mac: mac(77),
            ifindex,
            kind,
            sticky: false,
        })
    };
    r.up(entry(0, 11, FdbKind::Local));
    r.settle();
    assert!(r.chip.fdb.is_empty(), "nothing is looked up without a VLAN");
    r.up(entry(1, 11, FdbKind::Static));
    r.up(entry(10, 12, FdbKind::Static));
    r.settle();
    let port = |r: &Rig, v| r.chip.fdb[&(fid(r, BR, v), mac(77))].port;
    assert_eq!((port(&r, 1), port(&r, 10)), (1, 2));
    let f = fid(&r, BR, 10);
    let back = r.store.device_event(
        DeviceEvent::Learn {
            fid: f,
            mac: mac(78),
            port: 3,
        },
        5,
    );
    let want = FdbWriteBack {
        add: true,
        bridge: BR,
        vlan: 10,
        ifindex: 13,
        mac: mac(78),
    };
    assert_eq!(back, Some(want));
    let said = r.store.explain_mac(mac(77));
    assert_eq!(said.len(), 3);
    assert!(said.iter().any(|e| e.key.contains("vlan 10")));
    assert!(
        said.iter()
            .any(|e| words(&e.reason).contains("filters by VLAN: an entry without one"))
    );
}

#[test]
fn what_the_chip_can_not_do_traps_with_a_reason() {
    let mut r = bridged(true);
    let mut check = |o: Object, back: Object, what: &str| {
        r.up(o);
        r.settle();
        assert!(
            traps(&r, 1) && traps(&r, 2),
            "{what}: no port may send there"
        );
        assert!(
            words(&r.store.port_reason(11)).contains(what),
            "{}",
            words(&r.store.port_reason(11))
        );
        r.up(back);
        r.settle();
        assert!(!traps(&r, 1), "{}", words(&r.store.port_reason(11)));
    };
    let with = |unsupported| {
        let Object::Link(l) = bridge(true) else {
            panic!()
        };
        let LinkKind::Bridge(i) = l.kind else {
            panic!()
        };
        Object::Link(Link {
            kind: LinkKind::Bridge(BridgeInfo { unsupported, ..i }),
            ..l
        })
    };
    check(with(Some("VLAN protocol 802.1ad")), with(None), "802.1ad");
    let Object::BridgeVlan(v) = vlan(11, 10, "") else {
        panic!()
    };
    check(
        Object::BridgeVlan(BridgeVlan { state: 4, ..v }),
        Object::BridgeVlan(v),
        "VLAN 10 has a state of its own",
    );
    let tunnel = BridgeVlan {
        unsupported: Some("tunnel_info"),
        ..v
    };
    check(
        Object::BridgeVlan(tunnel),
        Object::BridgeVlan(v),
        "tunnel_info of VLAN 10",
    );
    // a macvlan on a VLAN interface wants other frames of it
    let mut upper = vlan_device(60, BR, 10, mac(200));
    r.up(Object::Link(upper.clone()));
    r.settle();
    assert!(!traps(&r, 1));
    upper.mac = mac(201);
    r.up(Object::Link(upper));
    r.settle();
    assert!(traps(&r, 1));
}

#[test]
fn a_table_without_room_for_a_vlan_makes_the_bridge_trap() {
    let mut r = Rig::new("tiny", Policy::Trap);
    let room = r
        .chip
        .pools()
        .iter()
        .find(|p| p.name.starts_with(b"vlan\0"))
        .map(|p| p.size as u16)
        .expect("a pool of domains");
    r.begin();
    r.up(bridge(true));
    r.up(port(1));
    r.up(port(2));
    for vid in 1..=room {
        r.up(vlan(11, vid, ""));
        r.up(vlan(12, vid, ""));
    }
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    assert!(!traps(&r, 1), "{}", words(&r.store.port_reason(11)));
    r.up(vlan(11, 4000, ""));
    r.up(vlan(12, 4000, ""));
    r.settle();
    assert!(traps(&r, 1) && traps(&r, 2));
    let said = words(&r.store.port_reason(11));
    assert!(said.contains("full (needs"), "{said}");
    r.del(Key::BridgeVlan(11, 1));
    r.del(Key::BridgeVlan(12, 1));
    // room comes: until the memberships that waited for it are there the ports trap
    let mut all = Vec::new();
    let note = |p: &Planned| {
        all.push(match p.cls {
            TND_CLS_VLAN => "domain",
            TND_CLS_VLAN_MEMBER => "member",
            TND_CLS_PORT => "port",
            _ => "",
        });
        Fate::Done
    };
    r.play(0, note, |_| {});
    let at = |what| all.iter().position(|x| *x == what).unwrap();
    let last = all.iter().rposition(|x| *x == "member").unwrap();
    assert!(last < at("port"), "{all:?}");
    assert!(!traps(&r, 1), "{}", words(&r.store.port_reason(11)));
    r.chip.accounting();
}

/// Domains that the chip has room for.
fn room(r: &mut Rig) -> u16 {
    let pools = r.chip.pools();
    let pool = pools.iter().find(|p| p.name.starts_with(b"vlan\0"));
    pool.map(|p| p.size as u16).expect("a pool of domains")
}

/// Until the chip comes back, what had no room is unconfigured: the bridge does not trap for it ever after.
#[test]
fn what_had_no_room_before_a_reset_and_is_gone_is_not_waited_for() {
    let mut r = Rig::new("tiny", Policy::Trap);
    let room = room(&mut r);
    r.begin();
    r.up(bridge(true));
    r.up(port(1));
    r.up(port(2));
    for vid in 1..=room {
        r.up(vlan(11, vid, ""));
    }
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r.up(vlan(11, 4000, ""));
    r.settle();
    assert!(traps(&r, 1));
    r.chip.cold();
    r.store.detach();
    r.del(Key::BridgeVlan(11, 4000));
    r.store.attach(Attach::Cold, 0);
    r.settle();
    assert!(!traps(&r, 1), "{}", words(&r.store.port_reason(11)));
}

/// A port in a bridge without a filter.
fn in_bridge(ifindex: u32, n: u16) -> [Object; 2] {
    let bridge = Link {
        ifindex,
        name: format!("br{ifindex}"),
        kind: LinkKind::Bridge(BridgeInfo {
            ageing_s: 300,
            ..BridgeInfo::default()
        }),
        ..swp(1)
    };
    let port = Link {
        master: ifindex,
        bridge_port: Some(BridgePort::default()),
        ..swp(n)
    };
    [Object::Link(bridge), Object::Link(port)]
}

/// A port moves to a bridge for which there is no room: it leaves the old one all the same, and if it was the last one there, that
/// is the room.
#[test]
fn a_port_leaves_its_bridge_though_the_next_one_has_no_room() {
    for alone in [true, false] {
        let mut r = Rig::new("tiny", Policy::Trap);
        let room = room(&mut r);
        r.begin();
        r.up(bridge(true));
        r.up(port(1));
        for vid in 1..room {
            r.up(vlan(11, vid, ""));
        }
        for n in [2, 3].into_iter().take(2 - usize::from(alone)) {
            in_bridge(60, n).into_iter().for_each(|o| r.up(o));
        }
        r.end();
        r.store.attach(Attach::Cold, 0);
        r.settle();
        let of = |r: &Rig| {
            let all = members(r);
            let mut of = all.into_iter().filter(|m| m.0 == 2).map(|m| m.1);
            (of.next(), traps(r, 2))
        };
        assert!(of(&r).0.is_some() && !of(&r).1);
        in_bridge(61, 2).into_iter().for_each(|o| r.up(o));
        r.settle();
        let is_in = |r: &Rig, dev| {
            let domain = |m: &tnd_vlan_member| r.store.domain(m.fid).unwrap().dev;
            r.chip
                .members
                .values()
                .any(|m| m.port == 2 && domain(m) == dev)
        };
        let now = (is_in(&r, 60), is_in(&r, 61), traps(&r, 2));
        assert_eq!(
            now,
            (false, alone, !alone),
            "{}",
            words(&r.store.port_reason(12))
        );
        r.chip.accounting();
    }
}

#[test]
fn vlan_interfaces_are_router_interfaces() {
    let mut r = bridged(true);
    r.up(vlan(BR, 10, ""));
    let rif = |r: &Rig, m| r.chip.rifs.values().find(|x| x.mac == m).copied();
    // on the bridge
    r.up(Object::Link(Link {
        mac: mac(200),
        ..vlan_device(60, BR, 10, mac(200))
    }));
    r.up(forwarding(Family::V4, ConfScope::Interface(60)));
    r.up(addr(60, "10.10.0.1/24"));
    r.settle();
    let x = rif(&r, mac(200)).expect("br0.10 has a router interface");
    assert_eq!((x.kind, x.fid), (TND_RIF_FID, fid(&r, BR, 10)));
    // the bridge itself: where its untagged frames belong
    r.up(addr(BR, "10.1.0.1/24"));
    r.settle();
    let fids: Vec<u16> = r.chip.rifs.values().map(|x| x.fid).collect();
    assert!(fids.contains(&fid(&r, BR, 1)) && fids.len() == 2);
    // the bridge leaves the VLAN: nothing of it comes up any more
    r.del(Key::BridgeVlan(BR, 10));
    r.settle();
    assert_eq!(r.chip.rifs.len(), 1);
    assert!(words(&r.store.port_reason(60)).contains("br0 itself is not in VLAN 10"));

    // on a port that is in no bridge: untagged and tagged are two interfaces
    r.up(Object::Link(swp(4)));
    r.up(addr(14, "10.4.0.1/24"));
    r.up(Object::Link(vlan_device(61, 14, 20, mac(4))));
    r.up(forwarding(Family::V4, ConfScope::Interface(61)));
    r.settle();
    assert!(!traps(&r, 4), "{}", words(&r.store.port_reason(14)));
    r.up(addr(61, "10.20.0.1/24"));
    r.settle();
    let kinds: Vec<(u16, u16, u16)> = r
        .chip
        .rifs
        .values()
        .filter(|x| x.mac == mac(4))
        .map(|x| (x.kind, x.port, x.vid))
        .collect();
    assert_eq!(kinds.len(), 2);
    assert!(kinds.contains(&(TND_RIF_PORT, 4, 0)) && kinds.contains(&(TND_RIF_PORT_VLAN, 4, 20)));
}

/// A bridge says that another device takes what goes up in a VLAN: the router interface is that device's, wherever it
/// comes from, and goes with what it needs.
#[test]
fn a_tap_takes_what_goes_up_in_a_vlan() {
    let mut r = bridged(true);
    let taken = |vid, tap| match vlan(BR, vid, "") {
        Object::BridgeVlan(v) => Object::BridgeVlan(BridgeVlan { tap, ..v }),
        other => other,
    };
    let tap = Link {
        ifindex: 70,
        name: "vlan10".into(),
        kind: LinkKind::Other("tun".into()),
        mac: mac(70),
        ..swp(1)
    };
    let rif = |r: &Rig| {
        let mut of = r.chip.rifs.values().filter(|x| x.mac == mac(70));
        of.next().map(|x| x.fid)
    };
    let why = |r: &Rig, i| words(&r.store.port_reason(i));
    // said before there is such a device
    r.up(taken(10, 70));
    r.settle();
    r.up(Object::Link(tap.clone()));
    r.up(forwarding(Family::V4, ConfScope::Interface(70)));
    r.up(addr(70, "10.10.0.1/24"));
    r.settle();
    assert_eq!(rif(&r), Some(fid(&r, BR, 10)));
    assert!((1..=3).all(|p| !traps(&r, p)));
    // a VLAN interface there has nothing
    r.up(Object::Link(vlan_device(60, BR, 10, mac(200))));
    r.up(addr(60, "10.11.0.1/24"));
    r.settle();
    assert!(why(&r, 60).contains("vlan10 takes what goes up in VLAN 10"));
    assert_eq!(r.chip.rifs.len(), 1);
    // by whatever name
    r.up(Object::Link(Link {
        name: "tap10".into(),
        ..tap.clone()
    }));
    r.settle();
    assert!(why(&r, 60).contains("tap10 takes what goes up in VLAN 10"));
    r.del(Key::Link(60));
    // what is no TAP takes nothing, whoever names it
    r.up(Object::Link(Link {
        kind: LinkKind::Other("dummy".into()),
        ..tap.clone()
    }));
    r.settle();
    assert_eq!((rif(&r), r.chip.rifs.len()), (None, 0));
    r.up(Object::Link(tap.clone()));
    r.settle();
    assert_eq!(rif(&r), Some(fid(&r, BR, 10)));
    // two VLANs have it: which one a packet is for, nobody knows
    r.up(taken(1, 70));
    r.settle();
    assert_eq!(rif(&r), None);
    assert!(why(&r, 70).contains("it is the TAP of several VLANs"));
    r.del(Key::BridgeVlan(BR, 10));
    r.settle();
    assert_eq!(
        (rif(&r), why(&r, 70)),
        (Some(fid(&r, BR, 1)), String::new())
    );
    // down, it takes nothing; in a bridge it is not the router's
    r.up(Object::Link(Link {
        admin_up: false,
        ..tap.clone()
    }));
    r.settle();
    let traps = |x: &tnd_rif| x.flags & TND_RIF_TRAP_ALL != 0;
    assert!(r.chip.rifs.values().all(traps));
    r.up(Object::Link(Link {
        master: 99,
        bridge_port: Some(BridgePort::default()),
        ..tap.clone()
    }));
    r.settle();
    assert_eq!(rif(&r), None);
    r.up(Object::Link(tap));
    r.settle();
    assert_eq!(rif(&r), Some(fid(&r, BR, 1)));
    // nothing names it any more
    r.up(vlan(BR, 1, ""));
    r.settle();
    assert_eq!((rif(&r), why(&r, 70)), (None, String::new()));
    assert_eq!(r.store.undeletable(), 0);
}

/// The bridge's own untagged frames move to another VLAN: its router interface is another one, and the neighbours' entries
/// go with the one of before.
#[test]
fn neighbours_follow_the_bridge_into_another_vlan() {
    let mut r = bridged(true);
    r.up(forwarding(Family::V4, ConfScope::Interface(BR)));
    r.up(addr(BR, "10.30.0.1/24"));
    r.up(via("10.30.0.0/24", BR, ""));
    r.up(neigh(BR, "10.30.0.2", 130));
    r.up(via("20.0.0.0/8", BR, "10.30.0.2"));
    let mut there = |vid: u16| {
        r.up(vlan(BR, 11 - vid, ""));
        r.up(vlan(BR, vid, "pu"));
        r.settle();
        let hosts = r.chip.dump::<tnd_neigh>(TND_CLS_NEIGH);
        let rifs = r.chip.dump::<tnd_rif>(TND_CLS_RIF);
        assert_eq!((hosts.len(), rifs.len()), (1, 1), "{hosts:?}");
        assert_eq!(rifs[0].fid, fid(&r, BR, vid));
        assert_eq!((hosts[0].rif, hosts[0].mac), (rifs[0].rif, mac(130)));
        let to = "20.0.0.1".parse().unwrap();
        assert_eq!(
            r.chip.lookup(to),
            Answer::Ways([(rifs[0].rif, mac(130))].into())
        );
        assert_eq!(r.store.undeletable(), 0);
    };
    for vid in [1, 10, 1] {
        there(vid);
    }
}

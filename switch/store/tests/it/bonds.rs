//! Bonds of front-panel ports: groups of the chip, used like ports.

use crate::common::*;
use std::collections::BTreeMap;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

const BR: u32 = 50;
const BOND: u32 = 60;

fn bond(master: u32, unsupported: Option<&'static str>) -> Object {
    Object::Link(Link {
        kind: LinkKind::Bond(BondInfo {
            lag: 3,
            hash: TND_LAG_HASH_L4,
            unsupported,
        }),
        master,
        bridge_port: (master == BR).then(BridgePort::default),
        ..numbered(3)
    })
}

/// A bond that is the chip's group of this number; the third is [`BOND`].
fn numbered(lag: u16) -> Link {
    Link {
        ifindex: BOND - 3 + u32::from(lag),
        name: format!("bond{lag}"),
        kind: LinkKind::Bond(BondInfo {
            lag,
            hash: TND_LAG_HASH_L2,
            unsupported: None,
        }),
        mac: mac(77),
        ..swp(1)
    }
}

fn member(n: u16, active: bool) -> Object {
    Object::Link(Link {
        master: BOND,
        bond_active: active,
        ..swp(n)
    })
}

fn bridge() -> Object {
    Object::Link(Link {
        ifindex: BR,
        name: "br0".into(),
        kind: LinkKind::Bridge(BridgeInfo {
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

fn rig() -> Rig {
    rig_of("spectrum-sn2700")
}

fn rig_of(chip: &str) -> Rig {
    // groups come behind all ports of the chip
    let mut chip = Chip::new(profile(chip));
    let ports = chip.dump::<tnd_port>(TND_CLS_PORT).len() as u16;
    let config = Config {
        ports,
        ..chip.config(Policy::Trap)
    };
    let mut r = Rig {
        store: Store::new(config),
        chip,
        now: 0,
        judged: false,
    };
    r.begin();
    for n in 1..=4 {
        r.up(Object::Link(swp(n)));
    }
    r.up(bridge());
    r.up(port(1));
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

fn front(_: &mut Rig) -> u16 {
    32
}

fn ports(r: &mut Rig) -> BTreeMap<u16, tnd_port> {
    let all = r.chip.dump::<tnd_port>(TND_CLS_PORT);
    all.into_iter().map(|p| (p.port, p)).collect()
}

fn traps(r: &mut Rig, port: u16) -> bool {
    ports(r)[&port].flags & TND_PORT_TRAP_ALL != 0
}

fn members(r: &mut Rig) -> Vec<(u16, u16)> {
    let mut all: Vec<(u16, u16)> = r
        .chip
        .dump::<tnd_vlan_member>(TND_CLS_VLAN_MEMBER)
        .iter()
        .map(|m| (m.port, m.vid))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn a_bond_is_a_port_of_a_bridge() {
    let mut r = rig();
    let lag = front(&mut r) + 3;
    r.up(bond(0, None));
    r.up(member(3, true));
    r.up(member(4, false));
    r.up(bond(BR, None));
    r.settle();
    assert_eq!(members(&mut r), [(1, TND_VID_ANY), (lag, TND_VID_ANY)]);
    assert!(!traps(&mut r, lag) && !traps(&mut r, 1));
    assert_eq!(words(&r.store.port_reason(BOND)), "");
    // what is static behind it, and what the chip learned there
    r.up(Object::Fdb(FdbEntry {
        bridge: BR,
        vlan: 0,
        mac: mac(9),
        ifindex: BOND,
        kind: FdbKind::Static,
        sticky: false,
    }));
    r.settle();
    let fdb = r.chip.dump::<tnd_fdb>(TND_CLS_FDB);
    assert!(fdb.iter().any(|f| f.mac == mac(9) && f.port == lag));
    let fid = fdb[0].fid;
    let back = r.store.device_event(
        DeviceEvent::Learn {
            fid,
            mac: mac(10),
            port: lag,
        },
        r.now,
    );
    assert_eq!(back.map(|b| b.ifindex), Some(BOND));
    // it leaves the bridge, and its members leave it
    r.up(bond(0, None));
    r.settle();
    assert_eq!(members(&mut r), [(1, TND_VID_ANY)]);
    r.up(port(3));
    r.up(Object::Link(swp(4)));
    r.settle();
    assert_eq!(members(&mut r), [(1, TND_VID_ANY), (3, TND_VID_ANY)]);
    assert!(!ports(&mut r).contains_key(&lag));
}

/// The kernel's IP hears what comes in by the members of a bond that is down; a bridge does not, as its port is disabled.
#[test]
fn a_bond_that_is_down_is_the_kernels_but_not_in_a_bridge() {
    let mut r = rig();
    let lag = front(&mut r) + 3;
    r.up(member(3, true));
    r.up(addr(BOND, "10.0.0.1/24"));
    r.up(forwarding(Family::V4, ConfScope::Interface(BOND)));
    for (master, admin_up, kernels) in [
        (0, true, false),
        (0, false, true),
        (0, true, false),
        (BR, false, false),
    ] {
        let Object::Link(link) = bond(master, None) else {
            panic!("a bond is a link")
        };
        r.up(Object::Link(Link { admin_up, ..link }));
        r.settle();
        let bridged = members(&mut r).contains(&(lag, TND_VID_ANY));
        assert_eq!(bridged, master == BR);
        let why = words(&r.store.port_reason(3 + 10));
        assert_eq!(why.contains("bond3: down"), kernels, "{why}");
        assert!(!kernels || traps(&mut r, 3));
        assert!(!traps(&mut r, 1));
    }
}

#[test]
fn a_bond_is_a_router_port() {
    let mut r = rig();
    let lag = front(&mut r) + 3;
    r.up(bond(0, None));
    r.up(member(3, true));
    r.up(addr(BOND, "10.0.0.1/24"));
    r.up(forwarding(Family::V4, ConfScope::Interface(BOND)));
    r.settle();
    let rifs = r.chip.dump::<tnd_rif>(TND_CLS_RIF);
    assert_eq!(rifs.len(), 1);
    assert_eq!(
        (rifs[0].kind, rifs[0].port, rifs[0].mac),
        (TND_RIF_PORT, lag, mac(77))
    );
    r.del(Key::Link(BOND));
    r.up(Object::Link(swp(3)));
    r.settle();
    assert!(r.chip.dump::<tnd_rif>(TND_CLS_RIF).is_empty());
    assert!(!ports(&mut r).contains_key(&lag));
}

#[test]
fn what_the_chip_can_t_is_the_kernels() {
    let mut r = rig();
    let lag = front(&mut r) + 3;
    r.up(bond(BR, Some("mode balance-rr")));
    r.up(member(3, true));
    r.settle();
    assert!(!ports(&mut r).contains_key(&lag));
    assert!(traps(&mut r, 3) && traps(&mut r, 1));
    assert_eq!(
        words(&r.store.port_reason(13)),
        "bond3: mode balance-rr is not offloaded"
    );
    assert!(
        words(&r.store.port_reason(11)).contains("bond3 is a member and not a front-panel port")
    );
    // another mode: the chip's
    r.up(bond(BR, None));
    r.settle();
    assert!(!traps(&mut r, lag) && !traps(&mut r, 1));
    // with a veth in it it is the kernel's again
    r.up(Object::Link(Link {
        ifindex: 70,
        name: "veth0".into(),
        kind: LinkKind::Other("veth".into()),
        master: BOND,
        ..swp(1)
    }));
    r.settle();
    assert!(
        words(&r.store.port_reason(13)).contains("veth0 is a member and not a front-panel port")
    );
    assert!(traps(&mut r, 3));
}

#[test]
fn a_port_moves_from_bond_to_bond() {
    let mut r = rig();
    let first = front(&mut r) + 3;
    r.up(bond(0, None));
    r.up(member(3, true));
    r.up(member(4, true));
    let second = |n: u16| {
        Object::Link(Link {
            master: BOND - 2,
            bond_active: true,
            ..swp(n)
        })
    };
    r.up(Object::Link(numbered(1)));
    r.settle();
    r.up(second(4));
    r.settle();
    let p = ports(&mut r);
    assert!(p.contains_key(&first) && p.contains_key(&(front(&mut r) + 1)));
    assert_eq!(words(&r.store.port_reason(14)), "");
    assert_eq!(words(&r.store.port_reason(BOND - 2)), "");
    // a warm attach finds all of it
    r.chip.fw.attach(true);
    r.chip.changed.clear();
    r.store.attach(Attach::Warm, r.now);
    r.settle();
    assert_eq!(r.chip.changed, Vec::<String>::new());
}

/// A bond has no room in the chip, and is the kernel's. Another one gives up a member: the first is the chip's then.
#[test]
fn a_bond_that_fits_at_last_is_the_chips() {
    let mut r = rig_of("tiny");
    let of = |bond: Link, n: u16| {
        Object::Link(Link {
            master: bond.ifindex,
            bond_active: true,
            ..swp(n)
        })
    };
    r.up(Object::Link(numbered(1)));
    for n in [2, 3, 4] {
        r.up(of(numbered(1), n));
    }
    r.settle();
    r.up(Object::Link(numbered(2)));
    for n in [5, 6] {
        r.up(of(numbered(2), n));
    }
    r.settle();
    let (second, lag) = (numbered(2).ifindex, 8 + 2);
    assert!(words(&r.store.port_reason(15)).contains("full"));
    assert!(traps(&mut r, 5) && !ports(&mut r).contains_key(&lag));
    r.up(Object::Link(swp(4)));
    r.settle();
    assert_eq!(words(&r.store.port_reason(second)), "");
    assert_eq!(words(&r.store.port_reason(15)), "");
    assert!(!traps(&mut r, lag));
}

/// A station was seen behind a bond, and before the kernel knows that, the bond is the kernel's for a while. What is said of
/// the station meanwhile is in the chip as soon as the bond is.
#[test]
fn what_waits_for_a_bond_that_comes_back() {
    let mut r = rig();
    let lag = front(&mut r) + 3;
    r.up(bond(BR, None));
    r.up(member(3, true));
    let station = FdbEntry {
        bridge: BR,
        vlan: 0,
        mac: mac(9),
        ifindex: 11,
        kind: FdbKind::Dynamic,
        sticky: false,
    };
    r.up(Object::Fdb(station));
    r.settle();
    let there = |r: &mut Rig| {
        let all = r.chip.dump::<tnd_fdb>(TND_CLS_FDB);
        let it = all.into_iter().find(|f| f.mac == mac(9)).unwrap();
        (it.port, it.flags & TND_FDB_STICKY != 0)
    };
    assert_eq!(there(&mut r), (1, false));
    let moved = DeviceEvent::Move {
        fid: BR as u16,
        mac: mac(9),
        port: lag,
    };
    assert!(r.store.device_event(moved, r.now).is_some());
    r.up(bond(BR, Some("mode balance-rr")));
    r.settle();
    r.up(Object::Fdb(FdbEntry {
        sticky: true,
        ..station
    }));
    r.settle();
    r.up(bond(BR, None));
    r.settle();
    assert_eq!(there(&mut r), (lag, true));
}

/// The first write to a group's port got no answer: it may be open, and no route is written beside it.
#[test]
fn a_groups_port_may_be_open_though_nobody_said_so() {
    let mut r = rig();
    interface(&mut r, 4);
    r.settle();
    for n in [2, 3] {
        r.up(member(n, true));
    }
    r.up(bond(BR, None));
    let is_its_port = |p: &Planned| {
        p.cls == TND_CLS_PORT && u16::from_le_bytes([p.body.bytes()[2], p.body.bytes()[3]]) == 35
    };
    loop {
        r.plan();
        if r.chip.rings[0].front().is_some_and(is_its_port) {
            break;
        }
        assert!(r.run(0));
    }
    let (token, _) = r.chip.run(0).unwrap();
    let state = |r: &Rig| r.chip.ports[&35].stp_state;
    assert_eq!(state(&r), BR_STATE_FORWARDING);
    let Object::Link(l) = bond(BR, None) else {
        panic!("no link");
    };
    let bridge_port = Some(BridgePort {
        state: 4,
        ..BridgePort::default()
    });
    r.store.timed_out(token, r.now);
    r.up(Object::Link(Link { bridge_port, ..l }));
    r.up(via("20.0.0.0/8", 14, "10.4.0.2"));
    let to = "20.0.0.1".parse().unwrap();
    while !by(104, &r.chip.lookup(to)) {
        r.plan();
        assert!(r.chip.rings[1].is_empty() || state(&r) == 4);
        assert!(r.run(1) || r.run(0));
    }
    r.settle();
}

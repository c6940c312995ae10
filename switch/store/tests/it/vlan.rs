//! VLAN devices on ports: which of them get a router interface, and which make their port trap.

use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

const VLAN: u32 = 60;

/// swp1.10, on port 1.
fn vlan() -> Link {
    Link {
        ifindex: VLAN,
        name: "swp1.10".into(),
        kind: LinkKind::Vlan { vid: 10 },
        lower: 11,
        ..swp(1)
    }
}

/// Ports 1 and 2 with addresses, and on port 1 the VLAN device with 10.10.0.1/24 and a gateway 10.10.0.2.
fn rig(link: Link) -> Rig {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.begin();
    interface(&mut r, 1);
    interface(&mut r, 2);
    r.up(Object::Link(link));
    r.up(forwarding(Family::V4, ConfScope::Interface(VLAN)));
    r.up(addr(VLAN, "10.10.0.1/24"));
    r.up(local("10.10.0.1/32", VLAN, RouteType::Local));
    r.up(via("10.10.0.0/24", VLAN, ""));
    r.up(neigh(VLAN, "10.10.0.2", 110));
    r.up(via("20.0.0.0/8", VLAN, "10.10.0.2"));
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

fn on_vlan(r: &mut Rig) -> Option<tnd_rif> {
    let all: Vec<tnd_rif> = r.chip.dump(TND_CLS_RIF);
    all.into_iter().find(|x| x.kind == TND_RIF_PORT_VLAN)
}

fn port_traps(r: &mut Rig) -> bool {
    let all: Vec<tnd_port> = r.chip.dump(TND_CLS_PORT);
    all.iter()
        .any(|p| p.port == 1 && p.flags & TND_PORT_TRAP_ALL != 0)
}

fn answer(r: &Rig) -> Answer {
    r.chip.lookup("20.1.2.3".parse().unwrap())
}

#[test]
fn a_plain_vlan_device_routes_in_hardware() {
    let mut r = rig(vlan());
    let rif = on_vlan(&mut r).unwrap();
    assert_eq!((rif.port, rif.vid, rif.fid), (1, 10, 0));
    assert_eq!(rif.mac, mac(1));
    assert_eq!(rif.flags & TND_RIF_TRAP_ALL, 0);
    assert!(!port_traps(&mut r));
    assert_eq!(answer(&r), Answer::Ways(vec![(rif.rif, mac(110))]));
    // down: what comes in goes to the CPU, where nobody takes it
    r.up(Object::Link(Link {
        admin_up: false,
        ..vlan()
    }));
    r.settle();
    assert_ne!(on_vlan(&mut r).unwrap().flags & TND_RIF_TRAP_ALL, 0);
    // another VLAN is another object
    r.up(Object::Link(Link {
        kind: LinkKind::Vlan { vid: 11 },
        ..vlan()
    }));
    r.settle();
    assert_eq!(on_vlan(&mut r).unwrap().vid, 11);
    r.del(Key::Link(VLAN));
    r.settle();
    assert_eq!(on_vlan(&mut r), None);
    assert_eq!(answer(&r), Answer::Trap);
}

#[test]
fn what_a_chip_cannot_do_makes_the_port_trap() {
    let odd = [
        Link {
            kind: LinkKind::Other("vlan".into()),
            ..vlan()
        },
        Link {
            mac: mac(77),
            ..vlan()
        },
        Link {
            master: 50,
            ..vlan()
        },
    ];
    for link in odd {
        let mut r = rig(link.clone());
        assert!(port_traps(&mut r), "{link:?}");
        assert_eq!(on_vlan(&mut r), None, "{link:?}");
        assert_eq!(answer(&r), Answer::Trap, "{link:?}");
        r.up(Object::Link(vlan()));
        r.settle();
        assert!(!port_traps(&mut r) && on_vlan(&mut r).is_some(), "{link:?}");
    }
    // something on top of the VLAN device
    let mut r = rig(vlan());
    r.up(Object::Link(Link {
        ifindex: 61,
        name: "macvlan0".into(),
        kind: LinkKind::Other("macvlan".into()),
        lower: VLAN,
        ..swp(1)
    }));
    r.settle();
    assert!(port_traps(&mut r) && on_vlan(&mut r).is_none());
    assert_eq!(answer(&r), Answer::Trap);
}

//! A chip that has nothing, as after a power failure: until what decides where frames go stands, they are the CPU's.
//!
//! ```text
//!   ports (trap all) ─► domains, members, RIFs, FDB, groups, filters ─► ports as wanted ─► routes
//! ```

use crate::common::bridged::*;
use crate::common::*;
use tandem_abi::object::read_object;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

/// What is posted until nothing is to do: ports that trap, ports that don't, and other classes.
fn posted(r: &mut Rig) -> Vec<&'static str> {
    let mut all = Vec::new();
    let note = |p: &Planned| {
        all.push(match p.cls {
            TND_CLS_PORT => {
                let (body, _) = read_object::<tnd_port>(p.body.bytes()).unwrap();
                match (body.flags & TND_PORT_UP, body.flags & TND_PORT_TRAP_ALL) {
                    (0, _) => "no port",
                    (_, 0) => "port",
                    _ => "port that traps",
                }
            }
            TND_CLS_FDB | TND_CLS_MDB | TND_CLS_VLAN_MEMBER | TND_CLS_RIF | TND_CLS_ACL_ENTRY
            | TND_CLS_ACL_BIND => "decides",
            TND_CLS_ROUTE => "route",
            _ => "other",
        });
        Fate::Done
    };
    r.play(0, note, |_| {});
    all
}

#[test]
fn ports_trap_until_the_stations_and_filters_stand() {
    let mut r = bridged("spectrum-sn2700");
    for last in 1..=20 {
        r.up(Object::Fdb(fdb(last, 11, FdbKind::Static)));
    }
    r.up(drops_all(11, 1));
    r.up(group());
    interface(&mut r, 3);
    r.settle();
    r.chip.cold();
    r.store.attach(Attach::Cold, r.now);
    let all = posted(&mut r);
    let last = |what| all.iter().rposition(|x| *x == what).unwrap();
    let first = |what| all.iter().position(|x| *x == what).unwrap();
    let count = |what| all.iter().filter(|x| **x == what).count();
    assert_eq!((count("port that traps"), count("port")), (3, 3), "{all:?}");
    assert!(last("port that traps") < first("decides"), "{all:?}");
    assert!(last("decides") < first("port"), "{all:?}");
    // stations, a group, two memberships, an interface, a rule and its binding at the least
    assert!(count("decides") >= 26, "{all:?}");
    assert!(first("port") < last("route"), "{all:?}");
}

/// A group of the bridge, behind its first port.
fn group() -> Object {
    Object::Mdb(MdbEntry {
        bridge: BRIDGE,
        vlan: 0,
        group: GroupAddr::Mac([0x01, 0, 0x5e, 1, 2, 3]),
        source: None,
        ifindex: 11,
        include: false,
        blocked: false,
    })
}

/// What of the chip's ports is up: none of it traps, or all.
fn trapping(r: &mut Rig) -> Vec<bool> {
    let all = r.chip.dump::<tnd_port>(TND_CLS_PORT).into_iter();
    let up = all.filter(|p| p.flags & TND_PORT_UP != 0);
    up.map(|p| p.flags & TND_PORT_TRAP_ALL != 0).collect()
}

/// A new core finds a chip that the one before has not come to the end with: its ports go on trapping until it is full.
#[test]
fn a_chip_that_was_left_bare_is_filled_first() {
    let mut r = bridged("spectrum-sn2700");
    for last in 1..=20 {
        r.up(Object::Fdb(fdb(last, 11, FdbKind::Static)));
    }
    r.settle();
    r.chip.cold();
    r.store.attach(Attach::Cold, r.now);
    r.plan();
    while trapping(&mut r).len() < 2 {
        assert!(r.run(0), "nothing is left to do");
    }
    assert_eq!(trapping(&mut r), [true, true]);
    r.chip.reload();
    let ports = r.chip.dump::<tnd_port>(TND_CLS_PORT);
    r.store.adopt(Left {
        ports,
        ..Left::default()
    });
    r.store.attach(Attach::Warm, r.now);
    let all = posted(&mut r);
    let last = all.iter().rposition(|x| *x == "decides").unwrap();
    let first = all.iter().position(|x| *x == "port").unwrap();
    assert!(last < first, "{all:?}");
    assert_eq!(trapping(&mut r), [false, false]);
}

#[test]
fn what_the_chip_has_kept_goes_on_forwarding() {
    let mut r = bridged("spectrum-sn2700");
    r.up(Object::Fdb(fdb(1, 11, FdbKind::Static)));
    r.settle();
    // a new driver, the chip has all of it
    r.chip.reload();
    assert_eq!(trapping(&mut r), [false, false]);
    let ports = r.chip.dump::<tnd_port>(TND_CLS_PORT);
    r.store.adopt(Left {
        ports,
        ..Left::default()
    });
    r.store.attach(Attach::Warm, r.now);
    let all = posted(&mut r);
    // an equal one is not written at all
    assert!(!all.iter().any(|x| x.contains("traps")), "{all:?}");
    assert_eq!(trapping(&mut r), [false, false]);
}

/// A bridge that was not whole when its switchd was killed traps. The next one does not know why, until it has tried as well.
#[test]
fn what_was_left_trapping_traps_until_the_chip_is_full() {
    let mut r = bridged("spectrum-sn2700");
    let mut refused = 0;
    let fate = |p: &Planned| match (p.cls, p.op) {
        (TND_CLS_VLAN_MEMBER, TND_OP_CREATE) => {
            refused += 1;
            Fate::Refused(TND_ST_TABLE_FULL)
        }
        _ => Fate::Done,
    };
    interface(&mut r, 4);
    r.up(joined(3));
    r.play(0, fate, |_| {});
    let all = vec![true, true, true, false];
    assert_eq!((refused, trapping(&mut r)), (1, all));
    r.chip.reload();
    let ports = r.chip.dump::<tnd_port>(TND_CLS_PORT);
    r.store.adopt(Left {
        ports,
        ..Left::default()
    });
    r.store.attach(Attach::Warm, r.now);
    let all = posted(&mut r);
    let last = all.iter().rposition(|x| *x == "decides").unwrap();
    let ports = all[last..].iter().filter(|x| **x == "port").count();
    assert!(ports == 3, "{all:?}");
    assert_eq!(trapping(&mut r), [false; 4]);
}

//! A chip that has nothing, as after a power failure: until what decides where frames go stands, they are the CPU's.
//!
//! ```text
//!   ports (trap all) ─► domains, members, RIFs, FDB, groups, filters ─► ports as wanted ─► routes
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;
use common::bridged::*;
use common::*;
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
            TND_CLS_FDB | TND_CLS_VLAN_MEMBER | TND_CLS_ACL_BIND => "decides",
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
    assert!(count("decides") >= 23, "{all:?}");
    assert!(first("port") < last("route"), "{all:?}");
}

#[test]
fn what_the_chip_has_kept_goes_on_forwarding() {
    let mut r = bridged("spectrum-sn2700");
    r.up(Object::Fdb(fdb(1, 11, FdbKind::Static)));
    r.settle();
    // a new driver, the chip has all of it
    r.chip.reload();
    r.store.attach(Attach::Warm, r.now);
    let all = posted(&mut r);
    assert!(!all.contains(&"port that traps"), "{all:?}");
}

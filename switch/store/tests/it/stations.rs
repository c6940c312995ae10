//! Stations of a bridge: what the kernel says of them, and what the chip ages and moves by itself.

use crate::common::bridged::*;
use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

fn learned(e: &FdbEntry, port: u16) -> DeviceEvent {
    DeviceEvent::Learn {
        fid: FID,
        mac: e.mac,
        port,
    }
}

fn aged(e: &FdbEntry, port: u16) -> DeviceEvent {
    DeviceEvent::Age {
        fid: FID,
        mac: e.mac,
        port,
    }
}

/// The chip aged a station, and before the kernel has forgotten it, somebody says it again: it is in the chip again.
#[test]
fn a_station_that_is_told_again_is_written_again() {
    let mut r = bridged("spectrum-sn2700");
    let e = fdb(3, 12, FdbKind::ExternLearn);
    assert!(r.store.device_event(learned(&e, 2), r.now).is_some());
    r.up(Object::Fdb(e));
    r.settle();
    assert!(r.store.device_event(aged(&e, 2), r.now).is_some());
    r.settle();
    assert!(!r.chip.fdb.contains_key(&(FID, e.mac)));
    r.up(Object::Fdb(e));
    r.settle();
    assert_eq!(r.chip.fdb[&(FID, e.mac)].port, 2);
}

/// The chip moved a static entry with its station; the user's next word counts more.
#[test]
fn a_static_entry_is_where_it_was_said_last() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    let e = fdb(3, 11, FdbKind::Static);
    r.up(Object::Fdb(e));
    r.settle();
    let moved = DeviceEvent::Move {
        fid: FID,
        mac: e.mac,
        port: 2,
    };
    assert!(r.store.device_event(moved, r.now).is_some());
    r.up(Object::Fdb(FdbEntry { ifindex: 13, ..e }));
    r.settle();
    assert_eq!(r.chip.fdb[&(FID, e.mac)].port, 3);
}

/// Stations age in a full chip: what has no room is tried where they were.
#[test]
fn what_ages_makes_room() {
    let mut r = bridged("tiny");
    let mut n = 0;
    while r.store.counters().waiting == 0 {
        r.up(Object::Fdb(fdb(n, 11, FdbKind::Dynamic)));
        r.settle();
        n += 1;
        assert!(n < 100, "tiny never fills");
    }
    let last = fdb(n - 1, 11, FdbKind::Static);
    r.up(Object::Fdb(last));
    r.settle();
    let traps = |r: &Rig| r.chip.vlans[&FID].flags & TND_VLAN_UC_TRAP != 0;
    assert!(traps(&r) && !r.chip.fdb.contains_key(&(FID, last.mac)));
    for i in 0..n - 1 {
        let e = fdb(i, 11, FdbKind::Dynamic);
        r.chip.age(FID, e.mac);
        assert!(r.store.device_event(aged(&e, 1), r.now).is_some());
        r.settle();
    }
    assert!(!traps(&r) && r.chip.fdb.contains_key(&(FID, last.mac)));
}

/// The chip learned a station that the kernel did not take, and aged it. Another program's entry for it is that program's
/// then, which nobody ages.
#[test]
fn a_station_that_aged_is_forgotten() {
    let mut r = bridged("spectrum-sn2700");
    let e = fdb(3, 12, FdbKind::ExternLearn);
    assert!(r.store.device_event(learned(&e, 2), r.now).is_some());
    assert_eq!(r.store.device_event(aged(&e, 2), r.now), None);
    r.settle();
    assert!(r.store.fdb().is_empty());
    r.up(Object::Fdb(e));
    r.settle();
    assert_eq!(r.chip.fdb[&(FID, e.mac)].flags, TND_FDB_NO_AGE);
}

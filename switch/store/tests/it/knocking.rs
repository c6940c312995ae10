//! Who learns which stations: `locked` and MAC authentication, limits, other programs' entries.

use crate::common::bridged::*;
use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

/// A station at port 1.
fn knocks(n: u8) -> FdbEntry {
    FdbEntry {
        bridge: BRIDGE,
        vlan: 0,
        mac: mac(n),
        ifindex: 11,
        kind: FdbKind::Locked,
        sticky: false,
    }
}

/// `no_linklocal_learn`: what a station says to the bridge itself does not teach where it is.
#[test]
fn the_chip_learns_from_link_local_frames_as_the_bridge_does() {
    let mut r = bridged("spectrum-sn2700");
    for no_link_local_learning in [true, false] {
        r.up(Object::Link(Link {
            ifindex: BRIDGE,
            name: "br0".into(),
            kind: LinkKind::Bridge(BridgeInfo {
                ageing_s: 300,
                no_link_local_learning,
                ..BridgeInfo::default()
            }),
            mac: mac(200),
            ..swp(1)
        }));
        r.settle();
        let flags = r.chip.vlans[&FID].flags;
        assert_eq!(flags & TND_VLAN_NO_LL_LEARN != 0, no_link_local_learning);
        assert_ne!(flags & TND_VLAN_LEARNING, 0);
    }
}

/// Who only knocked (`mab`) has no entry that would let it in. What is sent to it is the kernel's to give to that port alone,
/// until somebody lets it in, it is forgotten, or the chip has learned it elsewhere.
#[test]
fn what_is_sent_to_a_station_that_only_knocked_is_the_kernels() {
    let mut r = bridged("spectrum-sn2700");
    let unknown = |r: &mut Rig| {
        r.settle();
        r.chip.vlans[&FID].flags & TND_VLAN_UC_TRAP != 0
    };
    let (one, two) = (knocks(1), knocks(2));
    assert!(!unknown(&mut r));
    r.up(Object::Fdb(one));
    r.up(Object::Fdb(two));
    assert!(unknown(&mut r) && r.chip.fdb.is_empty());
    // also after another attach
    r.store.attach(Attach::Cold, 0);
    r.chip.cold();
    assert!(unknown(&mut r));
    let known = FdbEntry {
        kind: FdbKind::Static,
        ..one
    };
    r.up(Object::Fdb(known));
    assert!(unknown(&mut r) && r.chip.fdb.len() == 1);
    r.del(key_of(&two));
    assert!(!unknown(&mut r));
    // it turns up at a port that lets everybody in: the chip has learned it there, and the kernel is told
    r.up(Object::Fdb(two));
    assert!(unknown(&mut r));
    let learned = |port| DeviceEvent::Learn {
        fid: FID,
        mac: two.mac,
        port,
    };
    let back = r.store.device_event(learned(2), 5);
    assert_eq!(back.map(|b| (b.add, b.ifindex)), Some((true, 12)));
    r.up(Object::Fdb(FdbEntry {
        ifindex: 12,
        kind: FdbKind::ExternLearn,
        ..two
    }));
    assert!(!unknown(&mut r));
    assert!(r.store.failures(10).is_empty());
}

/// Another program's entry moves with its station, as it was, and ages from then on: whether the chip's word or the kernel's
/// comes first, and also where both come at once.
#[test]
fn an_entry_that_has_moved_ages_whoever_is_heard_first() {
    for kernel_first in [false, true] {
        for at_once in [false, true] {
            let mut r = bridged("spectrum-sn2700");
            let theirs = FdbEntry {
                kind: FdbKind::ExternLearn,
                ..knocks(5)
            };
            r.up(Object::Fdb(theirs));
            r.settle();
            assert_eq!(r.chip.fdb[&(FID, theirs.mac)].flags, TND_FDB_NO_AGE);
            let Key::Fdb(key) = key_of(&theirs) else {
                unreachable!()
            };
            for kernel in [kernel_first, !kernel_first] {
                if kernel {
                    r.store.fdb_own(key);
                    r.up(Object::Fdb(FdbEntry {
                        ifindex: 12,
                        ..theirs
                    }));
                } else {
                    let event = DeviceEvent::Move {
                        fid: FID,
                        mac: theirs.mac,
                        port: 2,
                    };
                    r.store.device_event(event, r.now);
                }
                if !at_once {
                    r.settle();
                }
            }
            r.settle();
            let e = r.chip.fdb[&(FID, theirs.mac)];
            assert_eq!((e.port, e.flags), (2, 0), "{kernel_first} {at_once}");
        }
    }
}

/// `fdb_max_learned` counts what the kernel has learned itself: so that it is the one who learns.
#[test]
fn where_a_bridges_learning_is_limited_the_cpu_learns() {
    let mut r = bridged("spectrum-sn2700");
    for (learning_limited, ageing_s, learns) in [
        (true, 300, TND_VLAN_CPU_LEARN),
        (false, 300, TND_VLAN_LEARNING),
        (true, 0, 0),
    ] {
        r.up(Object::Link(Link {
            ifindex: BRIDGE,
            name: "br0".into(),
            kind: LinkKind::Bridge(BridgeInfo {
                ageing_s,
                learning_limited,
                ..BridgeInfo::default()
            }),
            mac: mac(200),
            ..swp(1)
        }));
        r.settle();
        let who = TND_VLAN_CPU_LEARN | TND_VLAN_LEARNING;
        assert_eq!(r.chip.vlans[&FID].flags & who, learns);
    }
    // and the chip has what it learned
    let known = FdbEntry {
        kind: FdbKind::Dynamic,
        ..knocks(1)
    };
    r.up(Object::Fdb(known));
    r.settle();
    let e = r.chip.fdb[&(FID, known.mac)];
    assert_eq!((e.port, e.flags, e.action), (1, 0, TND_ACT_FORWARD));
}

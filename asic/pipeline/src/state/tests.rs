//! Setters keep the indexes right.

use tandem_abi::raw;

use crate::entry::{Action, RouteTarget};

use super::*;
use crate::testkit::state;
use crate::trap::TrapConfig;

#[test]
fn members_are_indexed_both_ways() {
    let mut s = state(4);
    s.set_vlan(10, VlanConfig::default()).unwrap();
    s.set_vlan(20, VlanConfig::default()).unwrap();
    let m = |fid, flags| MemberConfig { fid, flags };
    assert_eq!(s.set_member(9, 1, m(10, 0)), Err(SetError::NoPort(9)));
    assert_eq!(s.set_member(1, 1, m(11, 0)), Err(SetError::NoVlan(11)));
    assert_eq!(s.set_member(1, 0, m(10, 0)), Err(SetError::BadVid(0)));
    let access = raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED;
    s.set_member(1, 100, m(10, access)).unwrap();
    s.set_member(1, 200, m(20, 0)).unwrap();
    s.set_member(2, raw::TND_VID_ANY, m(10, 0)).unwrap();
    assert_eq!(s.member(1, 100), Some(m(10, access)));
    assert_eq!(s.member(1, 200), Some(m(20, 0)));
    assert_eq!(s.member_count(), 3);
    assert_eq!(s.vlan(10).unwrap().ports().collect::<Vec<_>>(), [2, 1]);
    // the same again changes nothing
    s.set_member(1, 200, m(20, 0)).unwrap();
    assert_eq!(s.member_count(), 3);
    assert_eq!(s.members().count(), 3);
    // VLAN-unaware replaces the VLANs
    s.set_member(1, raw::TND_VID_ANY, m(20, 0)).unwrap();
    assert_eq!(s.member(1, 100), None);
    assert_eq!(s.vlan(10).unwrap().ports().collect::<Vec<_>>(), [2]);
    assert!(s.remove_vlan(20));
    assert_eq!(s.member(1, raw::TND_VID_ANY), None);
    assert!(!s.remove_vlan(20));
    assert_eq!(s.member_count(), 1);
}

#[test]
fn rifs_know_their_place() {
    let mut s = state(2);
    s.set_vlan(1, VlanConfig::default()).unwrap();
    let c = RifConfig {
        vrf: 0,
        place: RifPlace::Port(1),
        mac: [2; 6],
        flags: 0,
        mtu: 1500,
    };
    s.set_rif(5, c).unwrap();
    assert_eq!(s.rif_at(RifPlace::Port(1)), Some(5));
    assert_eq!(s.set_rif(6, c), Err(SetError::RifTaken(5)));
    assert_eq!(
        s.set_rif(6, RifConfig { vrf: 3, ..c }),
        Err(SetError::NoVrf(3))
    );
    let moved = RifConfig {
        place: RifPlace::Fid(1),
        ..c
    };
    s.set_rif(5, moved).unwrap();
    assert_eq!(s.rif_at(RifPlace::Port(1)), None);
    assert_eq!(s.rif_at(RifPlace::Fid(1)), Some(5));
    assert!(s.remove_rif(5) && !s.remove_rif(5));
    assert_eq!(s.rif_at(RifPlace::Fid(1)), None);
    assert_eq!(
        s.set_rif(MAX_RIF + 1, c),
        Err(SetError::BadRif(MAX_RIF + 1))
    );
}

fn nh(rif: u16) -> NexthopConfig {
    NexthopConfig {
        rif,
        action: Action::Forward,
        reason: 0,
        mac: [2; 6],
    }
}

#[test]
fn slots_stay_while_objects_change() {
    let mut s = state(1);
    let a = s.set_nexthop(4_000_000_000, nh(1)).unwrap();
    let b = s.set_nexthop(7, nh(2)).unwrap();
    assert_ne!(a, b);
    assert_eq!(s.set_nexthop(4_000_000_000, nh(3)).unwrap(), a);
    assert_eq!(s.nexthop(4_000_000_000).unwrap().rif, 3);
    let g = GroupConfig {
        hash: HashPolicy::L3,
        members: vec![(7, 1), (4_000_000_000, 3)],
    };
    let slot = s.set_nhg(1, &g).unwrap();
    assert_eq!(s.nhg(1).unwrap().config(), g);
    assert_eq!(
        s.route_target(raw::TND_RT_NHG, 1),
        Some(RouteTarget::Group(slot))
    );
    assert_eq!(s.target_id(RouteTarget::Nexthop(a)), (1, 4_000_000_000));
    assert_eq!(
        s.set_nhg(
            2,
            &GroupConfig {
                members: vec![(9, 1)],
                ..g.clone()
            }
        ),
        Err(SetError::NoNexthop(9))
    );
    assert_eq!(
        s.set_nhg(
            2,
            &GroupConfig {
                members: vec![],
                ..g
            }
        ),
        Err(SetError::BadGroup)
    );
    assert!(s.remove_nexthop(7));
    assert_eq!(s.set_nexthop(8, nh(1)).unwrap(), b);
    s.clear();
    assert_eq!(s.nexthop_count() + s.nhg_count(), 0);
}

/// What is written anew is the same object: it was used, and its members have sent what they have sent.
#[test]
fn an_update_forgets_no_use() {
    let mut s = state(1);
    let slot = s.set_nexthop(7, nh(1)).unwrap();
    s.nexthop_at_mut(slot).unwrap().active = true;
    s.set_nexthop(7, nh(2)).unwrap();
    assert!(s.take_nexthop_active(7) && !s.take_nexthop_active(7));
    s.set_nexthop(8, nh(1)).unwrap();
    assert!(!s.take_nexthop_active(8));

    let mut g = GroupConfig {
        hash: HashPolicy::L4,
        members: vec![(7, 1), (8, 1)],
    };
    let slot = s.set_nhg(1, &g).unwrap();
    s.nhg_at_mut(slot).unwrap().count(1, 5);
    g.members = vec![(8, 2), (7, 1)];
    s.set_nhg(1, &g).unwrap();
    assert_eq!(s.nhg(1).unwrap().packets(), [5, 0]);
}

#[test]
fn traps_have_classes() {
    let mut s = state(1);
    assert_eq!(
        s.trap(raw::TND_TRAP_ARP).unwrap().class,
        raw::TND_TC_DISCOVERY
    );
    assert_eq!(s.trap(0), None);
    let c = TrapConfig {
        class: 1,
        rate_pps: 5,
        burst: 5,
    };
    s.set_trap(2, c).unwrap();
    assert_eq!(s.trap(2), Some(c));
    assert_eq!(s.set_trap(0, c), Err(SetError::NoReason(0)));
    assert_eq!(
        s.set_trap(2, TrapConfig { class: 9, ..c }),
        Err(SetError::NoClass(9))
    );
}

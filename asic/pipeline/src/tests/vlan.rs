//! VLAN-aware ports: access, trunk, priority tags, replication with mixed tagging.

use tandem_abi::raw;

use crate::entry::Action;
use crate::state::{MemberConfig, VlanConfig};
use crate::testkit::Answer::{Cpu, Drop, Tx};
use crate::testkit::*;
use crate::{DropReason, Offload, State};

const ACCESS: u32 = raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED;

/// FID 10 is VLAN 100: ports 1 and 2 access, 3 and 4 trunk; 5 translates it to VLAN 300. FID 20 is VLAN 200: 3 and 4
/// trunk.
fn chip() -> State {
    let mut s = state(5);
    ports_up(&mut s);
    for fid in [10, 20] {
        s.set_vlan(
            fid,
            VlanConfig {
                flags: raw::TND_VLAN_LEARNING,
                ageing_s: 300,
            },
        )
        .unwrap();
    }
    let mut member = |port, vid, fid, flags| {
        s.set_member(port, vid, MemberConfig { fid, flags })
            .unwrap();
    };
    member(1, 100, 10, ACCESS);
    member(2, 100, 10, ACCESS);
    member(3, 100, 10, 0);
    member(4, 100, 10, 0);
    member(5, 300, 10, 0);
    member(3, 200, 20, 0);
    member(4, 200, 20, 0);
    s
}

fn plain() -> Vec<u8> {
    ether(mac(9), mac(1), 0x88b5, &[7; 46])
}

fn bpdu() -> Vec<u8> {
    ether([0x01, 0x80, 0xc2, 0, 0, 0], mac(1), 38, &[0x42; 46])
}

#[test]
fn classification() {
    for (name, port, frame, want) in [
        ("access, untagged", 1, plain(), Tx(vec![2, 3, 4, 5])),
        (
            "access, priority tag",
            1,
            tagged(plain(), 0x8100, 0xe000),
            Tx(vec![3, 4, 5, 2]),
        ),
        (
            "access, own tag",
            1,
            tagged(plain(), 0x8100, 100),
            Tx(vec![3, 4, 5, 2]),
        ),
        (
            "access, foreign tag",
            1,
            tagged(plain(), 0x8100, 200),
            Drop(DropReason::NotMember),
        ),
        (
            "access, service tag is payload",
            1,
            tagged(plain(), 0x88a8, 200),
            Tx(vec![2, 3, 4, 5]),
        ),
        (
            "trunk, VLAN 100",
            3,
            tagged(plain(), 0x8100, 100),
            Tx(vec![4, 5, 1, 2]),
        ),
        (
            "trunk, VLAN 200",
            3,
            tagged(plain(), 0x8100, 200),
            Tx(vec![4]),
        ),
        ("trunk, untagged", 3, plain(), Drop(DropReason::NoPvid)),
        (
            "trunk, VLAN 4095",
            3,
            tagged(plain(), 0x8100, 4095),
            Drop(DropReason::NotMember),
        ),
        (
            "trunk, untagged BPDU",
            3,
            bpdu(),
            Cpu(raw::TND_TRAP_LINK_PROTO),
        ),
        (
            "trunk, BPDU of a VLAN that it has not",
            3,
            tagged(bpdu(), 0x8100, 4095),
            Cpu(raw::TND_TRAP_LINK_PROTO),
        ),
    ] {
        let mut s = chip();
        assert_eq!(run(&mut s, port, &frame), want, "{name}");
    }
}

/// N ports of mixed tagging: one change of the tag for each form beyond the first, no copy of the payload, and every
/// port gets exactly the form it wants.
#[test]
fn flooding_changes_the_tag_as_seldom_as_possible() {
    for (ingress, frame, pcp, changes) in [
        (1, plain(), 0u16, 2),
        (1, tagged(plain(), 0x8100, 0xb000), 0xb000, 3),
        (3, tagged(plain(), 0x8100, 0x6064), 0x6000, 2),
    ] {
        let mut s = chip();
        let (out, _) = run_with(&mut s, ingress, &frame, Offload::NONE, 0);
        assert_eq!(out.tx.len(), 4);
        for (port, bytes, _) in &out.tx {
            let want = match port {
                1 | 2 => plain(),
                5 => tagged(plain(), 0x8100, pcp | 300),
                _ => tagged(plain(), 0x8100, pcp | 100),
            };
            assert_eq!(*bytes, want, "port {port}");
        }
        assert_eq!(s.counters.flood.tag_changes, changes);
        assert_eq!(s.counters.flood.sent, 4);
    }
}

#[test]
fn one_form_needs_no_change() {
    let mut s = chip();
    s.remove_member(5, 300);
    s.remove_member(1, 100);
    s.remove_member(2, 100);
    let f = tagged(plain(), 0x8100, 0x2064);
    let (out, answer) = run_with(&mut s, 3, &f, Offload::NONE, 0);
    assert_eq!(answer, Tx(vec![4]));
    assert_eq!(out.tx[0].1, f);
    assert_eq!(s.counters.flood.tag_changes, 0);
}

/// Ports that want the VLAN id it came with are served before those that want another.
#[test]
fn own_id_first() {
    let mut s = chip();
    s.remove_member(2, 100);
    s.remove_member(1, 100);
    let translated = MemberConfig { fid: 10, flags: 0 };
    s.set_member(1, 400, translated).unwrap();
    s.remove_member(5, 300);
    let f = tagged(plain(), 0x8100, 100);
    assert_eq!(run(&mut s, 3, &f), Tx(vec![4, 1]));
    assert_eq!(s.counters.flood.tag_changes, 1);
}

#[test]
fn unicast_gets_the_egress_form_and_domains_are_apart() {
    let mut s = chip();
    fdb(&mut s, 10, mac(9), 4, Action::Forward, raw::TND_FDB_STATIC);
    fdb(&mut s, 20, mac(9), 3, Action::Forward, raw::TND_FDB_STATIC);
    assert_eq!(
        run_out(&mut s, 1, &plain()),
        (4, tagged(plain(), 0x8100, 100))
    );
    assert_eq!(
        run(&mut s, 3, &tagged(plain(), 0x8100, 200)),
        Drop(DropReason::SamePort)
    );
    fdb(&mut s, 10, mac(8), 2, Action::Forward, raw::TND_FDB_STATIC);
    let to8 = ether(mac(8), mac(1), 0x88b5, &[7; 46]);
    assert_eq!(
        run_out(&mut s, 4, &tagged(to8.clone(), 0x8100, 100)),
        (2, to8)
    );
    // the same address is learned once in each domain
    run(&mut s, 4, &tagged(plain(), 0x8100, 200));
    assert!(s.exact.get_mac(20, mac(1)).is_some());
    assert!(s.exact.get_mac(10, mac(1)).is_some());
}

/// Tag push and removal keep a partial checksum in place.
#[test]
fn offload_follows_the_tag() {
    let mut s = chip();
    let off = Offload {
        csum: Some(tandem_packet::PartialChecksum {
            start: 34,
            offset: 6,
        }),
        ..Offload::NONE
    };
    let f = udp4(mac(9), mac(1), [1; 4], [2; 4], 9, 100);
    let (out, _) = run_with(&mut s, 1, &f, off, 0);
    for (port, _, o) in &out.tx {
        assert_eq!(o.csum.unwrap().start, if *port == 2 { 34 } else { 38 });
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Minimum-copy replication: a frame for N ports of mixed tagging is lent N times (N - 1 references beside the one that
    /// came), none of its bytes copied, and its tag changes at most once, whichever direction.
    #[test]
    fn replication_changes_a_tag_at_most_once(
        forms in proptest::collection::vec(proptest::prelude::any::<bool>(), 2..12),
        came_tagged: bool,
    ) {
        let ports = forms.len() as u16 + 1;
        let mut s = state(ports);
        ports_up(&mut s);
        s.set_vlan(1, VlanConfig::default()).unwrap();
        for (port, untagged) in (1..).zip(std::iter::once(&!came_tagged).chain(&forms)) {
            let mut flags = if *untagged { raw::TND_MEMBER_UNTAGGED } else { 0 };
            if port == 1 && !came_tagged {
                flags |= raw::TND_MEMBER_PVID;
            }
            s.set_member(port, 10, MemberConfig { fid: 1, flags }).unwrap();
        }
        let plain = ether([0xff; 6], mac(1), 0x88b5, &[7; 46]);
        let with_tag = tagged(plain.clone(), 0x8100, 10);
        let f = if came_tagged { &with_tag } else { &plain };
        let (out, _) = run_with(&mut s, 1, f, Offload::NONE, 1);
        proptest::prop_assert_eq!(out.tx.len(), forms.len());
        for (port, bytes, _) in &out.tx {
            let want = if forms[usize::from(*port) - 2] { &plain } else { &with_tag };
            proptest::prop_assert_eq!(bytes, want);
        }
        let flood = s.counters.flood;
        let mixed = forms.contains(&came_tagged);
        proptest::prop_assert_eq!(flood.sent - flood.frames, forms.len() as u64 - 1);
        proptest::prop_assert_eq!((flood.tag_changes, flood.most_tag_changes), (u64::from(mixed), u64::from(mixed)));
    }
}

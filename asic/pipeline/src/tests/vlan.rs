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

    /// Minimum data copy (seed 004), whatever VLAN ids the ports have: a frame for N ports is lent N times (N - 1 references
    /// beside the one that came), none of its bytes copied, and its tag changes once for each form that is wanted and that the frame
    /// does not have already. No order of sending needs fewer: what leaves in another form than the frame had has been written
    /// at least once, and two forms not by the same writing.
    #[test]
    fn replication_changes_a_tag_once_for_each_form(
        ports in proptest::collection::vec((0_u16..5, proptest::prelude::any::<u16>()), 2..24),
        came in 0_u16..5,
    ) {
        // 0: without a tag; else by VLAN id 9 + it, in an order of its own
        let vid = |form: u16| 9 + form;
        let mut s = state(ports.len() as u16 + 1);
        ports_up(&mut s);
        s.set_vlan(1, VlanConfig::default()).unwrap();
        let mut forms = vec![(1, came, 0)];
        forms.extend((2..).zip(&ports).map(|(port, (form, at))| (port, *form, *at)));
        forms.sort_by_key(|(_, _, at)| *at);
        for (port, form, _) in &forms {
            let untagged = raw::TND_MEMBER_UNTAGGED | raw::TND_MEMBER_PVID;
            let (vid, flags) = if *form == 0 { (9, untagged) } else { (vid(*form), 0) };
            s.set_member(*port, vid, MemberConfig { fid: 1, flags }).unwrap();
        }
        let plain = ether([0xff; 6], mac(1), 0x88b5, &[7; 46]);
        let as_form = |form: u16| if form == 0 { plain.clone() } else { tagged(plain.clone(), 0x8100, vid(form)) };
        let (out, _) = run_with(&mut s, 1, &as_form(came), Offload::NONE, 1);
        proptest::prop_assert_eq!(out.tx.len(), ports.len());
        for (port, bytes, _) in &out.tx {
            proptest::prop_assert_eq!(bytes, &as_form(ports[usize::from(*port) - 2].0), "port {}", port);
        }
        let wanted: std::collections::BTreeSet<u16> = ports.iter().map(|p| p.0).filter(|form| *form != came).collect();
        let least = wanted.len() as u64;
        let flood = s.counters.flood;
        proptest::prop_assert_eq!(flood.sent - flood.frames, ports.len() as u64 - 1);
        proptest::prop_assert_eq!((flood.tag_changes, flood.most_tag_changes), (least, least));
        // A bridge over VLAN interfaces takes the tag off as the frame comes in and puts one on for each port that wants one.
        let stacked = u64::from(came != 0) + ports.iter().filter(|p| p.0 != 0).count() as u64;
        proptest::prop_assert_eq!(flood.stacked_tag_changes, stacked);
        proptest::prop_assert!(least <= stacked);
    }
}

//! What lists at stage FLOW_CLASS make of a frame; each sentence of the ABI about them.

use tandem_abi::raw;

use super::flows::*;
use crate::entry::Action;
use crate::state::{AclBind, AclStage, MemberConfig, State};
use crate::testkit::Answer::{Cpu, Tx};
use crate::testkit::*;

const CLASS: u32 = 9;

/// Flow ports with both lists at port 1, and a rule of the other one for group 5, to port 2.
fn classes() -> State {
    let mut s = flows(4, 0);
    s.acl.add_table(CLASS, AclStage::FlowClass);
    let bind = AclBind {
        table: CLASS,
        flags: 0,
    };
    s.set_acl_bind(1, AclStage::FlowClass, bind).unwrap();
    list(&mut s);
    let mut own = raw::tnd_acl_entry {
        target: 2,
        ..rule(7, raw::TND_ACL_REDIRECT_PORT)
    };
    (own.key.group, own.mask.group) = (5, u8::MAX);
    put(&mut s, own);
    s
}

fn class(flags: u32) -> raw::tnd_acl_entry {
    raw::tnd_acl_entry {
        table: CLASS,
        flags,
        vid: 20,
        pcp: 3,
        dscp: 46,
        group: 5,
        ..rule(1, raw::TND_ACL_PERMIT)
    }
}

const VID: u32 = raw::TND_ACL_SET_VID;
const PCP: u32 = raw::TND_ACL_SET_PCP;
const DSCP: u32 = raw::TND_ACL_SET_DSCP;

/// Without a tag that comes with the bytes of one.
fn none() -> raw::tnd_acl_entry {
    raw::tnd_acl_entry {
        vid: raw::TND_ACL_VID_NONE,
        ..class(VID)
    }
}

#[test]
fn what_it_leaves_with() {
    let plain = talk();
    let with = |tci| tagged(talk(), VLAN, tci);
    for (e, came, leaves) in [
        (class(0), plain.clone(), plain.clone()),
        (class(VID), plain.clone(), with(20)),
        (class(VID | PCP), plain.clone(), with(0x6014)),
        // there is no tag for a priority
        (class(PCP), plain.clone(), plain.clone()),
        (none(), plain.clone(), plain.clone()),
        // the others' bits stay
        (class(VID), with(0xb00a), with(0xb014)),
        (class(PCP), with(0xb00a), with(0x700a)),
        (class(VID | PCP), with(0xb00a), with(0x7014)),
        (none(), with(0xb00a), plain.clone()),
        (
            class(VID),
            tagged(talk(), 0x88a8, 10),
            tagged(talk(), 0x88a8, 20),
        ),
    ] {
        let mut s = classes();
        put(&mut s, e);
        assert_eq!(
            run_out(&mut s, 1, &came),
            (2, leaves.clone()),
            "{:#x} {}",
            e.flags,
            e.vid
        );
        // and by several ports, once
        let mut all = raw::tnd_acl_entry {
            priority: 6,
            ..to_ports(&[2, 3])
        };
        (all.key.group, all.mask.group) = (5, u8::MAX);
        put(&mut s, all);
        let (out, _) = run_with(&mut s, 1, &came, crate::Offload::NONE, 1);
        let got: Vec<_> = out.tx.iter().map(|(p, b, _)| (*p, b.clone())).collect();
        assert_eq!(got, [(2, leaves.clone()), (3, leaves)]);
    }
}

#[test]
fn a_dscp_is_that_of_ip() {
    let mut s = classes();
    put(&mut s, class(DSCP));
    let four = talk();
    let (_, got) = run_out(&mut s, 1, &four);
    assert_eq!(got[15], 46 << 2);
    assert!(tandem_packet::checksum::ip4_header_ok(
        got[14..].first_chunk().unwrap()
    ));
    assert_eq!((&got[..15], &got[34..]), (&four[..15], &four[34..]));
    let six = udp6(mac(2), mac(1), ip6(1, 1), ip6(1, 2), 9, 20);
    let (_, got) = run_out(&mut s, 1, &six);
    assert_eq!((got[14], got[15]), (0x6b, 0x80));
    let other = ether(mac(2), mac(1), 0x88b5, &[7; 46]);
    assert_eq!(run_out(&mut s, 1, &other), (2, other));
}

/// Rules see the class, the kind of the tag as it came; and a group that no rule is for is like none.
#[test]
fn what_rules_see() {
    let mut s = classes();
    put(&mut s, class(VID | PCP));
    type Ask = fn(&mut raw::tnd_acl_entry);
    let came = tagged(talk(), VLAN, 0x200a);
    let asks: [(Ask, bool); 6] = [
        (|e| (e.key.tci, e.mask.tci) = (0x6014, u16::MAX), true),
        (|e| (e.key.tci, e.mask.tci) = (0x200a, u16::MAX), false),
        (
            |e| (e.key.tag, e.mask.tag) = (raw::TND_ACL_TAG_8021Q, u8::MAX),
            true,
        ),
        (|e| (e.key.group, e.mask.group) = (5, u8::MAX), true),
        (|e| (e.key.group, e.mask.group) = (0, u8::MAX), false),
        (|e| (e.key.group, e.mask.group) = (4, 4), true),
    ];
    for (n, (ask, hit)) in asks.into_iter().enumerate() {
        let mut e = raw::tnd_acl_entry {
            target: 3,
            ..rule(1, raw::TND_ACL_REDIRECT_PORT)
        };
        ask(&mut e);
        put(&mut s, e);
        let to = if hit { 3 } else { 2 };
        assert_eq!(run(&mut s, 1, &came), Tx(vec![to]), "{n}");
    }
    // An untagged one that gets a tag has none as it came
    let mut e = rule(1, raw::TND_ACL_TRAP);
    (e.key.tag, e.mask.tag) = (raw::TND_ACL_UNTAGGED, u8::MAX);
    put(&mut s, e);
    assert_eq!(run(&mut s, 1, &talk()), Cpu(FLOW));
    // Who is in no group
    let mut of_none = rule(1, raw::TND_ACL_TRAP);
    of_none.mask.group = u8::MAX;
    put(&mut s, of_none);
    assert_eq!(run(&mut s, 1, &came), Tx(vec![2]));
    s.acl.remove_rule(CLASS, 1);
    assert_eq!(run(&mut s, 1, &came), Cpu(FLOW));
}

/// The FDB is looked up in the class's domain, and what it forwards has the class's form, or the member's.
#[test]
fn stations_of_the_class() {
    let mut s = classes();
    s.acl.remove_rule(1, 7);
    domain(&mut s, 20, raw::TND_VLAN_FLOWS);
    station(&mut s, UNTAGGED, mac(2), 3);
    station(&mut s, 10, mac(2), 4);
    station(&mut s, 20, mac(2), 2);
    let with = |tci| tagged(talk(), VLAN, tci);
    assert_eq!(run_out(&mut s, 1, &with(10)), (4, with(10)));
    put(&mut s, class(VID));
    assert_eq!(run_out(&mut s, 1, &with(10)), (2, with(20)));
    assert_eq!(run_out(&mut s, 1, &talk()), (2, with(20)));
    put(&mut s, none());
    assert_eq!(run_out(&mut s, 1, &with(10)), (3, talk()));
    // A group, a priority, a DSCP are no domain
    put(&mut s, class(PCP));
    assert_eq!(run_out(&mut s, 1, &with(10)), (4, with(0x600a)));
    // The form of a member goes before
    put(&mut s, class(VID));
    let member = |port, flags| (port, MemberConfig { fid: 20, flags });
    for (port, config) in [
        member(1, 0),
        member(2, raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED),
    ] {
        s.set_member(port, 20, config).unwrap();
    }
    assert_eq!(run_out(&mut s, 1, &talk()), (2, talk()));
    assert_eq!(run_out(&mut s, 1, &with(10)), (2, talk()));
}

/// The CPU gets a frame as it came, whoever sends it there.
#[test]
fn the_cpu_gets_it_as_it_came() {
    let came = tagged(talk(), VLAN, 10);
    let cpu = |s: &mut State, frame: &[u8]| {
        let (out, _) = run_with(s, 1, frame, crate::Offload::NONE, 1);
        assert!(out.tx.is_empty());
        out.cpu[0].1.clone()
    };
    let mut s = classes();
    s.acl.remove_rule(1, 7);
    put(&mut s, class(VID | DSCP));
    assert_eq!(cpu(&mut s, &came), came, "the miss");
    put(&mut s, rule(1, raw::TND_ACL_TRAP));
    assert_eq!(cpu(&mut s, &came), came, "a rule");
    s.acl.remove_rule(1, 1);
    fdb(&mut s, 20, mac(2), 0, Action::Trap, 0);
    assert_eq!(cpu(&mut s, &came), came, "an entry");
    put(
        &mut s,
        raw::tnd_acl_entry {
            action: raw::TND_ACL_TRAP,
            ..class(0)
        },
    );
    assert_eq!(cpu(&mut s, &came), came, "the class");
    // Headers that rules can't tell, though the other list is not bound
    s.acl.remove_rule(CLASS, 1);
    put(&mut s, class(VID));
    s.set_acl_bind(1, AclStage::Flow, AclBind { table: 0, flags: 0 })
        .unwrap();
    let mut short = talk();
    short[16..18].copy_from_slice(&24u16.to_be_bytes());
    assert_eq!(run(&mut s, 1, &short), Cpu(FLOW));
    let flags = raw::TND_ACL_BIND_TRAP_ALL;
    s.set_acl_bind(1, AclStage::FlowClass, AclBind { table: 0, flags })
        .unwrap();
    assert_eq!(run(&mut s, 1, &came), Cpu(FLOW));
}

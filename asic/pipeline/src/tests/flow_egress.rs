//! In which form frames of flow ports leave each port; each sentence of the ABI about lists at stage FLOW_EGRESS.

use tandem_abi::raw;

use super::flows::*;
use crate::entry::Action;
use crate::state::{AclBind, AclStage, MemberConfig, State};
use crate::testkit::Answer::{Cpu, Drop, Tx};
use crate::testkit::*;
use crate::{DropReason, Offload};

const VID: u32 = raw::TND_ACL_SET_VID;
const PCP: u32 = raw::TND_ACL_SET_PCP;
const NONE: u16 = raw::TND_ACL_VID_NONE;

/// The list of what leaves a port.
fn of_port(port: u16) -> u32 {
    100 + u32::from(port)
}

fn bound(s: &mut State, port: u16, flags: u16) {
    let bind = AclBind {
        table: of_port(port),
        flags,
    };
    s.set_acl_bind(port, AclStage::FlowEgress, bind).unwrap();
}

/// Flow ports, a rule at port 1 that sends to these ports, and a list for what leaves each of them.
fn forms(ports: &[u16]) -> State {
    let mut s = flows(6, 0);
    list(&mut s);
    put(&mut s, to_ports(ports));
    for port in ports {
        s.acl.add_table(of_port(*port), AclStage::FlowEgress);
        bound(&mut s, *port, 0);
    }
    s
}

/// What leaves a port: with this VLAN id and this priority.
fn form(port: u16, flags: u32, vid: u16, pcp: u8) -> raw::tnd_acl_entry {
    raw::tnd_acl_entry {
        table: of_port(port),
        flags,
        vid,
        pcp,
        ..rule(9, raw::TND_ACL_PERMIT)
    }
}

/// The same of what has this VLAN id on its way.
fn of_vid(vid: u16, e: raw::tnd_acl_entry) -> raw::tnd_acl_entry {
    let mut e = e;
    (e.key.tci, e.mask.tci) = (vid, 0xfff);
    e
}

fn sent(s: &mut State, from: u16, frame: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let (out, answer) = run_with(s, from, frame, Offload::NONE, 1);
    assert!(out.cpu.is_empty(), "{answer:?}");
    let mut all: Vec<_> = out.tx.into_iter().map(|(p, b, _)| (p, b)).collect();
    all.sort();
    all
}

fn with(tci: u16) -> Vec<u8> {
    tagged(talk(), VLAN, tci)
}

#[test]
fn each_port_has_its_own() {
    let mut s = forms(&[2, 3, 4, 5]);
    put(&mut s, form(2, VID, NONE, 0));
    put(&mut s, form(3, VID, 20, 0));
    put(&mut s, form(4, VID | PCP, 30, 6));
    let plain = talk();
    // As it came where no rule is; priority and drop eligibility are those that it has
    for (came, leaves) in [
        (
            with(0xb00a),
            [plain.clone(), with(0xb014), with(0xd01e), with(0xb00a)],
        ),
        (
            plain.clone(),
            [plain.clone(), with(20), with(0xc01e), plain.clone()],
        ),
    ] {
        let want: Vec<_> = (2..).zip(leaves).collect();
        assert_eq!(sent(&mut s, 1, &came), want);
    }
    // A priority alone goes into a tag, and there may be none; a rule that writes nothing
    put(&mut s, form(2, PCP, 0, 5));
    put(&mut s, form(3, 0, 0, 0));
    put(&mut s, form(4, VID, 4094, 0));
    for (came, leaves) in [
        (
            with(0xb00a),
            [with(0xb00a), with(0xb00a), with(0xbffe), with(0xb00a)],
        ),
        (
            plain.clone(),
            [plain.clone(), plain.clone(), with(4094), plain.clone()],
        ),
    ] {
        let want: Vec<_> = (2..).zip(leaves).collect();
        assert_eq!(sent(&mut s, 1, &came), want);
    }
    // One whose tag is a service provider's keeps its kind
    let service = |tci| tagged(talk(), 0x88a8, tci);
    put(&mut s, to_ports(&[2, 4]));
    assert_eq!(
        sent(&mut s, 1, &service(10)),
        [(2, service(0xa00a)), (4, service(4094))]
    );
    // And by one port alone
    for (port, leaves) in [(2, with(0xb00a)), (4, with(0x1ffe))] {
        put(
            &mut s,
            raw::tnd_acl_entry {
                target: port.into(),
                ..rule(1, raw::TND_ACL_REDIRECT_PORT)
            },
        );
        assert_eq!(run_out(&mut s, 1, &with(0x100a)), (port, leaves));
    }
}

/// What a rule can ask for: where it came in, the VLAN id and priority on its way, none of these, whom it is to.
#[test]
fn what_rules_ask_for() {
    let mut s = forms(&[2]);
    type Ask = fn(&mut raw::tnd_acl_entry);
    let asks: [(Ask, bool); 8] = [
        (|e| (e.key.port, e.mask.port) = (1, u16::MAX), true),
        (|e| (e.key.port, e.mask.port) = (2, u16::MAX), false),
        (|e| (e.key.tci, e.mask.tci) = (10, 0xfff), true),
        (|e| (e.key.tci, e.mask.tci) = (11, 0xfff), false),
        (|e| (e.key.tci, e.mask.tci) = (0x6000, 0xe000), true),
        (|e| (e.key.tci, e.mask.tci) = (0x4000, 0xe000), false),
        (|e| e.mask.tag = u8::MAX, false),
        (
            |e| (e.key.dst_mac, e.mask.dst_mac) = ([1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]),
            false,
        ),
    ];
    for (n, (ask, hit)) in asks.into_iter().enumerate() {
        let mut e = form(2, VID, 20, 0);
        ask(&mut e);
        put(&mut s, e);
        let leaves = if hit { with(0x6014) } else { with(0x600a) };
        assert_eq!(run_out(&mut s, 1, &with(0x600a)), (2, leaves), "{n}");
    }
    // Without a tag is none of them, VLAN 0 is no less one than others
    let mut e = form(2, VID, 20, 0);
    e.mask.tag = u8::MAX;
    put(&mut s, e);
    assert_eq!(run_out(&mut s, 1, &talk()), (2, with(20)));
    assert_eq!(run_out(&mut s, 1, &with(0)), (2, with(0)));
    // The group bit; the first rule decides
    let mut group = form(2, VID, 30, 0);
    (group.key.dst_mac, group.mask.dst_mac) = ([1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]);
    group.priority = 1;
    put(&mut s, group);
    let mut to_all = talk();
    to_all[..6].fill(0xff);
    let tag = |f: &[u8], tci| tagged(f.to_vec(), VLAN, tci);
    assert_eq!(run_out(&mut s, 1, &to_all), (2, tag(&to_all, 30)));
    // Other lists, and what did not come in at a flow port
    let mut s = forms(&[2]);
    put(&mut s, form(2, VID, 20, 0));
    s.set_acl_bind(2, AclStage::FlowEgress, AclBind { table: 0, flags: 0 })
        .unwrap();
    assert_eq!(run_out(&mut s, 1, &talk()), (2, talk()));
    let mut s = bridge(3);
    s.acl.add_table(of_port(2), AclStage::FlowEgress);
    bound(&mut s, 2, raw::TND_ACL_BIND_TRAP_ALL);
    put(&mut s, form(2, VID, 20, 0));
    fdb(&mut s, 1, mac(2), 2, Action::Forward, 0);
    assert_eq!(run_out(&mut s, 1, &talk()), (2, talk()));
}

/// The class: the VLAN id that ties what is classified to the forms in which it leaves.
#[test]
fn the_class_is_what_rules_see() {
    let mut s = forms(&[2, 3, 4]);
    s.acl.add_table(9, AclStage::FlowClass);
    let bind = AclBind { table: 9, flags: 0 };
    s.set_acl_bind(1, AclStage::FlowClass, bind).unwrap();
    put(
        &mut s,
        raw::tnd_acl_entry {
            table: 9,
            flags: VID,
            vid: 4070,
            ..rule(1, raw::TND_ACL_PERMIT)
        },
    );
    put(&mut s, of_vid(4070, form(2, VID, NONE, 0)));
    put(&mut s, of_vid(4070, form(3, VID, 20, 0)));
    put(&mut s, of_vid(10, form(4, VID, 30, 0)));
    let want = |tci: u16| vec![(2, talk()), (3, with(tci | 20)), (4, with(tci | 4070))];
    assert_eq!(sent(&mut s, 1, &with(0x700a)), want(0x7000));
    assert_eq!(sent(&mut s, 1, &talk()), want(0));
    // And what a rule writes on its way
    s.acl.remove_rule(9, 1);
    put(
        &mut s,
        raw::tnd_acl_entry {
            flags: VID | PCP,
            vid: 4070,
            pcp: 1,
            ..to_ports(&[2, 3, 4])
        },
    );
    assert_eq!(sent(&mut s, 1, &with(0x700a)), want(0x3000));
    // Back to what it came with
    put(&mut s, of_vid(4070, form(3, VID | PCP, 10, 3)));
    assert_eq!(sent(&mut s, 1, &with(0x700a))[1], (3, with(0x700a)));
}

/// Stations have forms as well, and before those of a domain's members.
#[test]
fn what_the_fdb_forwards() {
    let mut s = forms(&[2, 3]);
    s.acl.remove_rule(1, 1);
    station(&mut s, 10, mac(2), 2);
    put(&mut s, form(2, VID, 20, 0));
    assert_eq!(run_out(&mut s, 1, &with(10)), (2, with(20)));
    domain(&mut s, 20, raw::TND_VLAN_FLOWS);
    let member = |s: &mut State, port, flags| {
        let config = MemberConfig { fid: 20, flags };
        s.set_member(port, 20, config).unwrap();
    };
    for port in [1, 3, 4] {
        member(&mut s, port, 0);
    }
    member(&mut s, 2, raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED);
    to_set(&mut s, 20, mac(2), 1, &[2, 3, 4]);
    put(&mut s, form(2, VID, 30, 0));
    put(&mut s, form(3, VID, NONE, 0));
    assert_eq!(
        sent(&mut s, 1, &with(0x6014)),
        [(2, with(0x601e)), (3, talk()), (4, with(0x6014))]
    );
    // None for it: the member's
    put(&mut s, of_vid(11, form(2, VID, 30, 0)));
    assert_eq!(
        sent(&mut s, 1, &with(0x6014)),
        [(2, talk()), (3, talk()), (4, with(0x6014))]
    );
}

/// What a port gets is what it would get alone: forms of rules and of members do not see each other.
#[test]
fn a_copy_is_as_if_it_were_the_only_one() {
    let mut s = forms(&[2, 3, 4, 5]);
    domain(&mut s, 20, raw::TND_VLAN_FLOWS);
    let without = raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED;
    for (port, vid, flags) in [
        (1, 20, 0),
        (2, 20, 0),
        (3, 33, 0),
        (4, 20, 0),
        (5, 20, without),
        (6, 20, without),
    ] {
        let config = MemberConfig { fid: 20, flags };
        s.set_member(port, vid, config).unwrap();
    }
    put(&mut s, form(2, VID | PCP, 30, 6));
    for (flags, from, came, leaves) in [
        (
            0,
            1,
            with(0x7014),
            [with(0xd01e), with(0x7021), with(0x7014), talk()],
        ),
        (
            PCP,
            1,
            with(0x7014),
            [with(0xd01e), with(0x3021), with(0x3014), talk()],
        ),
        (0, 6, talk(), [with(0xc01e), with(33), with(20), talk()]),
    ] {
        put(
            &mut s,
            raw::tnd_acl_entry {
                flags,
                pcp: 1,
                ..rule(1, raw::TND_ACL_PERMIT)
            },
        );
        let want: Vec<_> = (2..).zip(leaves).collect();
        to_set(&mut s, 20, mac(2), 1, &[2, 3, 4, 5]);
        assert_eq!(sent(&mut s, from, &came), want);
        for one in want {
            to_set(&mut s, 20, mac(2), 2, &[one.0]);
            assert_eq!(sent(&mut s, from, &came), std::slice::from_ref(&one));
            station(&mut s, 20, mac(2), one.0);
            assert_eq!(sent(&mut s, from, &came), [one]);
        }
    }
}

/// One port whose list traps, and nobody has it but the CPU, as it came.
#[test]
fn who_traps() {
    let trap = |port| raw::tnd_acl_entry {
        action: raw::TND_ACL_TRAP,
        ..form(port, 0, 0, 0)
    };
    let came = with(10);
    let mut s = forms(&[2, 3, 4]);
    put(&mut s, form(2, VID, NONE, 0));
    put(&mut s, of_vid(10, trap(3)));
    assert_eq!(run(&mut s, 1, &came), Cpu(FLOW));
    assert_eq!(run(&mut s, 1, &with(11)), Tx(vec![3, 4, 2]));
    put(&mut s, form(3, VID, 20, 0));
    assert_eq!(run(&mut s, 1, &came), Tx(vec![4, 3, 2]));
    bound(&mut s, 4, raw::TND_ACL_BIND_TRAP_ALL);
    assert_eq!(run(&mut s, 1, &came), Cpu(FLOW));
    // A port that it does not leave by is not asked
    s.set_link(4, false).unwrap();
    assert_eq!(run(&mut s, 1, &came), Tx(vec![3, 2]));
    // Nothing is counted, as the kernel counts it
    s.set_link(4, true).unwrap();
    s.acl.add_counter(7);
    put(
        &mut s,
        raw::tnd_acl_entry {
            counter: 7,
            ..to_ports(&[2, 3, 4])
        },
    );
    assert_eq!(run(&mut s, 1, &came), Cpu(FLOW));
    assert_eq!(s.acl.counter(7).unwrap().packets, 0);
    // To one port, and by the FDB
    put(
        &mut s,
        raw::tnd_acl_entry {
            target: 4,
            ..rule(1, raw::TND_ACL_REDIRECT_PORT)
        },
    );
    assert_eq!(run(&mut s, 1, &came), Cpu(FLOW));
    s.acl.remove_rule(1, 1);
    station(&mut s, 10, mac(2), 4);
    assert_eq!(run(&mut s, 1, &came), Cpu(FLOW));
    // What is dropped is not trapped
    let to_itself = raw::tnd_acl_entry {
        target: 1,
        ..rule(1, raw::TND_ACL_REDIRECT_PORT)
    };
    put(&mut s, to_itself);
    assert_eq!(run(&mut s, 1, &came), Drop(DropReason::SamePort));
}

/// A question tells list and rule, and changes nothing.
#[test]
fn what_a_trace_says() {
    let mut s = forms(&[2, 3]);
    put(&mut s, form(2, VID, NONE, 0));
    put(&mut s, form(3, VID | PCP, 20, 3));
    let traced = crate::trace::trace(&mut s, &with(10), 1, 1);
    let said: Vec<_> = traced
        .lines
        .iter()
        .filter(|l| l.stage == "flow_egress")
        .map(|l| l.text.as_str())
        .collect();
    assert_eq!(
        said,
        [
            "list 103, rule 9: VLAN 20, priority 3",
            "list 102, rule 9: no tag"
        ]
    );
    assert_eq!(traced.tx, [(3, with(0x6014)), (2, talk())]);
    assert_eq!(s.counters.tag_changes, 0);
    bound(&mut s, 3, raw::TND_ACL_BIND_TRAP_ALL);
    let traced = crate::trace::trace(&mut s, &with(10), 1, 1);
    let last = traced.lines.iter().rfind(|l| l.stage == "flow_egress");
    assert_eq!(last.unwrap().text, "the list of port 3 traps");
}

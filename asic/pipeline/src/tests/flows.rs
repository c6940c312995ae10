//! Flow ports: a list, stations, the miss, and nothing else; each sentence of `TND_PORT_FLOWS` in the ABI, and of its list.

use tandem_abi::raw;
use tandem_tables::exact::Key;

use crate::entry::{Action, FdbValue};
use crate::state::{
    AclBind, AclStage, LagConfig, MemberConfig, PortMask, PortSet, VlanConfig, mask_of, ports_of,
};
use crate::testkit::Answer::{Cpu, Drop, Tx};
use crate::testkit::*;
use crate::{DropReason, Mac, Offload, State};

pub(super) const FLOW: u16 = raw::TND_TRAP_FLOW;
pub(super) const MISS: u16 = raw::TND_TRAP_FLOW_MISS;
pub(super) const UNTAGGED: u16 = raw::TND_FLOWS_FID;
pub(super) const VLAN: u16 = 0x8100;
const SERVICE: u16 = 0x88a8;

/// Flow ports, and two domains: of untagged frames, and of VLAN 10.
pub(super) fn flows(ports: u16, flags: u32) -> State {
    let mut s = state(ports);
    ports_up(&mut s);
    for port in 1..=ports {
        port_flags(&mut s, port, raw::TND_PORT_FLOWS | flags, 0);
    }
    for fid in [UNTAGGED, 10] {
        domain(&mut s, fid, raw::TND_VLAN_FLOWS);
    }
    s
}

pub(super) fn domain(s: &mut State, fid: u16, flags: u32) {
    let config = VlanConfig { flags, ageing_s: 0 };
    s.set_vlan(fid, config).unwrap();
}

pub(super) fn station(s: &mut State, fid: u16, addr: Mac, port: u16) {
    fdb(s, fid, addr, port, Action::Forward, raw::TND_FDB_STATIC);
}

/// An entry that goes to these ports.
pub(super) fn to_set(s: &mut State, fid: u16, addr: Mac, id: u16, ports: &[u16]) {
    let ports = mask_of(ports.iter().copied());
    let slot = s.port_sets.put(id, PortSet { id, ports });
    let value = FdbValue {
        port: 0,
        flags: raw::TND_FDB_STATIC,
        action: Action::Forward,
        set: FdbValue::of_slot(slot),
    };
    let key = Key::Mac { fid, mac: addr };
    s.exact.insert(key, value.pack(), 0).unwrap();
}

/// The list of port 1.
pub(super) fn list(s: &mut State) -> u32 {
    s.acl.add_table(1, AclStage::Flow);
    bound(s, 1, 0);
    1
}

fn bound(s: &mut State, table: u32, flags: u16) {
    s.set_acl_bind(1, AclStage::Flow, AclBind { table, flags })
        .unwrap();
}

pub(super) fn rule(priority: u32, action: u16) -> raw::tnd_acl_entry {
    raw::tnd_acl_entry {
        table: 1,
        priority,
        action,
        ..Default::default()
    }
}

pub(super) fn put(s: &mut State, e: raw::tnd_acl_entry) {
    assert!(s.acl.put_rule(e, e.target));
}

pub(super) fn to_ports(ports: &[u16]) -> raw::tnd_acl_entry {
    raw::tnd_acl_entry {
        ports: mask_of(ports.iter().copied()),
        ..rule(1, raw::TND_ACL_REDIRECT_PORTS)
    }
}

fn plain(dst: Mac, src: Mac) -> Vec<u8> {
    ether(dst, src, 0x88b5, &[7; 46])
}

/// From station 1 to station 2.
pub(super) fn talk() -> Vec<u8> {
    udp4(mac(2), mac(1), [10, 0, 0, 1], [10, 0, 0, 2], 64, 30)
}

#[test]
fn masks_of_ports() {
    let all: Vec<u16> = (1..256).collect();
    assert!(ports_of(&mask_of(all.clone())).eq(all));
    let some: PortMask = mask_of([0, 1, 8, 255, 256, 999]);
    assert_eq!((some[0], some[1], some[31]), (3, 1, 0x80));
    assert!(ports_of(&some).eq([1, 8, 255]));
}

/// List, then FDB, then the miss.
#[test]
fn a_list_then_stations_then_the_miss() {
    let mut s = flows(4, 0);
    assert_eq!(run(&mut s, 1, &talk()), Cpu(MISS));
    station(&mut s, UNTAGGED, mac(2), 2);
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![2]));
    list(&mut s);
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![2]), "an empty list");
    let to = |target| raw::tnd_acl_entry {
        target,
        ..rule(5, raw::TND_ACL_REDIRECT_PORT)
    };
    put(&mut s, to(3));
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![3]));
    put(&mut s, rule(4, raw::TND_ACL_PERMIT));
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![2]), "on to the FDB");
    put(&mut s, rule(3, raw::TND_ACL_DROP));
    assert_eq!(run(&mut s, 1, &talk()), Drop(DropReason::AclFlow));
    put(&mut s, rule(2, raw::TND_ACL_TRAP));
    assert_eq!(run(&mut s, 1, &talk()), Cpu(FLOW));
    // the list is port 1's
    assert_eq!(run(&mut s, 3, &talk()), Tx(vec![2]));
    // as long as it is incomplete nothing is asked
    bound(&mut s, 0, raw::TND_ACL_BIND_TRAP_ALL);
    assert_eq!(run(&mut s, 1, &talk()), Cpu(FLOW));
}

/// The other lists are those of bridges and routers; they cost a flow port nothing either.
#[test]
fn other_stages_have_no_say() {
    let mut s = flows(3, 0);
    station(&mut s, UNTAGGED, mac(2), 2);
    let all = [AclStage::Port, AclStage::Ingress, AclStage::Egress];
    for (id, stage) in (2..).zip(all) {
        s.acl.add_table(id, stage);
        let e = raw::tnd_acl_entry {
            table: id,
            ..rule(1, raw::TND_ACL_DROP)
        };
        put(&mut s, e);
        for port in [1, 2] {
            let bind = AclBind {
                table: id,
                flags: 0,
            };
            s.set_acl_bind(port, stage, bind).unwrap();
        }
    }
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![2]));
    // nor has a flow port's list where there are no flows, and the way out stays short
    let mut s = bridge(3);
    list(&mut s);
    put(&mut s, rule(1, raw::TND_ACL_DROP));
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![2, 3]));
    assert_eq!(s.acl.out_bound, 0);
}

#[test]
fn a_miss_is_the_cpus_or_dropped() {
    let mut s = flows(2, 0);
    assert_eq!(run(&mut s, 1, &talk()), Cpu(MISS));
    port_flags(&mut s, 1, raw::TND_PORT_FLOWS_DROP, 0);
    assert_eq!(run(&mut s, 1, &talk()), Drop(DropReason::FlowMiss));
    assert_eq!(run(&mut s, 2, &talk()), Cpu(MISS), "each port for itself");
}

/// UP and TRAP_ALL keep their meaning, and so does what a port can receive.
#[test]
fn what_every_port_does() {
    let mut s = flows(2, raw::TND_PORT_FLOWS_DROP);
    station(&mut s, UNTAGGED, mac(2), 2);
    port_flags(&mut s, 1, raw::TND_PORT_TRAP_ALL, 0);
    assert_eq!(run(&mut s, 1, &talk()), Cpu(FLOW));
    port_flags(&mut s, 1, 0, raw::TND_PORT_TRAP_ALL | raw::TND_PORT_UP);
    assert_eq!(run(&mut s, 1, &talk()), Drop(DropReason::PortDown));
    port_flags(&mut s, 1, raw::TND_PORT_UP, 0);
    let long = ether(mac(2), mac(1), 0x88b5, &[0; 1505]);
    assert_eq!(run(&mut s, 1, &long), Drop(DropReason::Oversize));
    let fits = ether(mac(2), mac(1), 0x88b5, &[0; 1504]);
    assert_eq!(run(&mut s, 1, &fits), Tx(vec![2]));
}

/// No learning, spanning tree, VLAN filter, isolation, storm limits, routing, traps or drops of its own.
#[test]
fn every_address_is_only_an_address() {
    let mut s = flows(
        3,
        raw::TND_PORT_LEARNING | raw::TND_PORT_ISOLATED | raw::TND_PORT_LOCKED,
    );
    let mut c = s.port(1).unwrap().config;
    c.stp_state = raw::TND_STP_DISABLED;
    s.set_port(1, c).unwrap();
    s.set_port(2, raw_mac(c, 2)).unwrap();
    domain(&mut s, 1, raw::TND_VLAN_LEARNING);
    let member = MemberConfig { fid: 1, flags: 0 };
    s.set_member(1, 7, member).unwrap();
    add_rif(&mut s, 1, crate::state::RifPlace::Port(1));
    let limit = crate::state::StormConfig {
        rate_packets: 1,
        burst_packets: 1,
        ..Default::default()
    };
    for kind in 1..=3 {
        s.set_storm(1, kind, limit).unwrap();
    }
    let addresses: [Mac; 7] = [
        [1, 0x80, 0xc2, 0, 0, 0],
        [1, 0x80, 0xc2, 0, 0, 0x0e],
        [0xff; 6],
        [1, 0, 0x5e, 0, 0, 5],
        [0x33, 0x33, 0, 0, 0, 1],
        [0; 6],
        router_mac(1),
    ];
    let arp = |dst| ether(dst, [0; 6], 0x0806, &[0; 46]);
    for dst in addresses {
        assert_eq!(run(&mut s, 1, &arp(dst)), Cpu(MISS), "{dst:x?}");
        station(&mut s, UNTAGGED, dst, 2);
        // from a group, too
        for frame in [arp(dst), plain(dst, [0xff; 6])] {
            let (out, answer) = run_with(&mut s, 1, &frame, Offload::NONE, 1);
            assert_eq!(answer, Tx(vec![2]), "{dst:x?}");
            assert!(out.events.is_empty(), "nothing is learned");
        }
    }
    // nor do floods by a set, or by a rule, have a limit
    to_set(&mut s, UNTAGGED, [0xff; 6], 7, &[2, 3]);
    for _ in 0..4 {
        assert_eq!(run(&mut s, 1, &arp([0xff; 6])), Tx(vec![2, 3]));
    }
    // a packet that the router would have
    let routed = udp4(router_mac(1), mac(1), [10, 0, 1, 9], [10, 0, 2, 9], 1, 30);
    assert_eq!(run_out(&mut s, 1, &routed), (2, routed));
}

fn raw_mac(c: crate::state::PortConfig, n: u16) -> crate::state::PortConfig {
    crate::state::PortConfig {
        mac: router_mac(n),
        ..c
    }
}

/// No tag: FID 4095. A tag of either kind: its VID. VID 0 or 4095: a miss.
#[test]
fn which_domain_is_looked_up() {
    let mut s = flows(6, 0);
    station(&mut s, UNTAGGED, mac(2), 2);
    station(&mut s, 10, mac(2), 3);
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![2]));
    for tpid in [VLAN, SERVICE] {
        let of = |tci| tagged(talk(), tpid, tci);
        // it leaves as it came
        assert_eq!(run_out(&mut s, 1, &of(0xe00a)), (3, of(0xe00a)));
        for tci in [0, 0xe000, 4095, 11] {
            assert_eq!(run(&mut s, 1, &of(tci)), Cpu(MISS), "{tci:#x}");
        }
        // the outer one of two
        assert_eq!(run(&mut s, 1, &tagged(of(0), tpid, 10)), Tx(vec![3]));
        port_flags(&mut s, 1, raw::TND_PORT_FLOWS_UNAWARE, 0);
        for tci in [0, 10, 11, 4095] {
            assert_eq!(run(&mut s, 1, &of(tci)), Tx(vec![2]), "unaware, {tci:#x}");
        }
        port_flags(&mut s, 1, 0, raw::TND_PORT_FLOWS_UNAWARE);
    }
    // stations of a bridge are its own, whatever its number
    domain(&mut s, 11, raw::TND_VLAN_LEARNING);
    station(&mut s, 11, mac(2), 4);
    assert_eq!(run(&mut s, 1, &tagged(talk(), VLAN, 11)), Cpu(MISS));
    domain(&mut s, 11, raw::TND_VLAN_FLOWS);
    assert_eq!(run(&mut s, 1, &tagged(talk(), VLAN, 11)), Tx(vec![4]));
}

/// Entries do what they say, with a port, with a set, and as trap or drop.
#[test]
fn what_entries_do() {
    let mut s = flows(5, 0);
    fdb(&mut s, UNTAGGED, mac(3), 0, Action::Trap, 0);
    fdb(&mut s, UNTAGGED, mac(4), 0, Action::Drop, 0);
    let group = [1, 0, 0x5e, 1, 2, 3];
    to_set(&mut s, UNTAGGED, group, 7, &[1, 2, 4]);
    station(&mut s, UNTAGGED, mac(1), 1);
    let mut of = |dst| run(&mut s, 1, &plain(dst, mac(1)));
    assert_eq!(of(mac(3)), Cpu(FLOW));
    assert_eq!(of(mac(4)), Drop(DropReason::FdbDrop));
    assert_eq!(of(group), Tx(vec![2, 4]), "not back");
    assert_eq!(of(mac(1)), Drop(DropReason::SamePort));
    assert_eq!(run(&mut s, 5, &plain(group, mac(9))), Tx(vec![1, 2, 4]));
    // all that it has, or nobody
    let set = |s: &mut State, ports: &[u16]| {
        let ports = mask_of(ports.iter().copied());
        s.port_sets.put(7, PortSet { id: 7, ports });
        run(s, 1, &plain(group, mac(1)))
    };
    assert_eq!(set(&mut s, &[5]), Tx(vec![5]), "swapped at once");
    assert_eq!(set(&mut s, &[1]), Drop(DropReason::NoFloodPort));
    assert_eq!(set(&mut s, &[]), Drop(DropReason::NoFloodPort));
}

/// What leaves meets the port's state and its MTU, no membership, no spanning tree.
#[test]
fn the_way_out() {
    let mut s = flows(4, 0);
    to_set(&mut s, UNTAGGED, mac(9), 1, &[2, 3, 4]);
    station(&mut s, UNTAGGED, mac(2), 2);
    let small = crate::state::PortConfig {
        mtu: 100,
        stp_state: raw::TND_STP_BLOCKING,
        ..s.port(2).unwrap().config
    };
    s.set_port(2, small).unwrap();
    let of = |dst, len| ether(dst, mac(1), 0x88b5, &vec![0; len]);
    assert_eq!(run(&mut s, 1, &of(mac(2), 104)), Tx(vec![2]));
    assert_eq!(
        run(&mut s, 1, &of(mac(2), 105)),
        Drop(DropReason::EgressOversize)
    );
    assert_eq!(run(&mut s, 1, &of(mac(9), 105)), Tx(vec![3, 4]));
    s.set_link(2, false).unwrap();
    assert_eq!(
        run(&mut s, 1, &of(mac(2), 46)),
        Drop(DropReason::EgressDown)
    );
    assert_eq!(run(&mut s, 1, &of(mac(9), 46)), Tx(vec![3, 4]));
    // out of a port that is none of flows, as well
    port_flags(&mut s, 3, 0, raw::TND_PORT_FLOWS | raw::TND_PORT_UP);
    assert_eq!(run(&mut s, 1, &of(mac(9), 46)), Tx(vec![4]));
    port_flags(&mut s, 3, raw::TND_PORT_UP, 0);
    assert_eq!(run(&mut s, 1, &of(mac(9), 46)), Tx(vec![3, 4]));
}

/// What comes in by a bridge's port meets the bridge, whatever flow ports are set.
#[test]
fn a_bridge_beside_flow_ports() {
    let mut s = bridge(4);
    port_flags(&mut s, 4, raw::TND_PORT_FLOWS, 0);
    domain(&mut s, UNTAGGED, raw::TND_VLAN_FLOWS);
    station(&mut s, UNTAGGED, mac(2), 3);
    assert_eq!(run(&mut s, 4, &talk()), Tx(vec![3]));
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![2, 3, 4]));
    // an entry with a set is of no use to a bridge
    to_set(&mut s, 1, mac(9), 1, &[2, 3]);
    let f = plain(mac(9), mac(1));
    assert_eq!(run(&mut s, 1, &f), Cpu(raw::TND_TRAP_FDB_INCOMPLETE));
}

/// With SOURCE: no rule has matched, and the FDB does not have the source here.
#[test]
fn where_a_source_is() {
    let source = raw::TND_PORT_FLOWS_SOURCE;
    let mut s = flows(4, source | raw::TND_PORT_FLOWS_DROP);
    station(&mut s, UNTAGGED, mac(2), 2);
    assert_eq!(run(&mut s, 1, &talk()), Cpu(MISS), "not known, DROP or not");
    station(&mut s, UNTAGGED, mac(1), 3);
    assert_eq!(run(&mut s, 1, &talk()), Cpu(MISS), "at another port");
    assert_eq!(run(&mut s, 3, &talk()), Tx(vec![2]));
    // in its own domain
    assert_eq!(run(&mut s, 3, &tagged(talk(), VLAN, 10)), Cpu(MISS));
    assert_eq!(run(&mut s, 3, &tagged(talk(), VLAN, 0)), Cpu(MISS));
    // somewhere, or as a group's, is not here
    for (n, action) in [(5, Action::Trap), (6, Action::Drop)] {
        fdb(&mut s, UNTAGGED, mac(n), 1, action, 0);
        assert_eq!(run(&mut s, 1, &plain(mac(2), mac(n))), Cpu(MISS));
    }
    to_set(&mut s, UNTAGGED, mac(7), 1, &[1]);
    assert_eq!(run(&mut s, 1, &plain(mac(2), mac(7))), Cpu(MISS));
    // known, and nobody there
    assert_eq!(
        run(&mut s, 3, &plain(mac(8), mac(1))),
        Drop(DropReason::FlowMiss)
    );
    // a rule decides
    list(&mut s);
    put(&mut s, rule(1, raw::TND_ACL_PERMIT));
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![2]));
    s.acl.remove_rule(1, 1);
    assert_eq!(run(&mut s, 1, &talk()), Cpu(MISS));
}

/// Out of all ports of the bitmap but the one it came in by; one port not back either.
#[test]
fn rules_that_send() {
    let mut s = flows(4, 0);
    list(&mut s);
    put(&mut s, to_ports(&[1, 2, 4]));
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![2, 4]));
    put(&mut s, to_ports(&[1]));
    assert_eq!(run(&mut s, 1, &talk()), Drop(DropReason::NoFloodPort));
    for (port, answer) in [
        (1, Drop(DropReason::SamePort)),
        (3, Tx(vec![3])),
        (9, Drop(DropReason::EgressDown)),
    ] {
        let e = raw::tnd_acl_entry {
            target: port,
            ..rule(1, raw::TND_ACL_REDIRECT_PORT)
        };
        put(&mut s, e);
        assert_eq!(run(&mut s, 1, &talk()), answer);
    }
}

/// VID and priority go into the outer tag on the way out, of whichever kind; the FDB is asked with the one it came with.
#[test]
fn rules_that_write() {
    let mut s = flows(4, 0);
    station(&mut s, 10, mac(2), 2);
    list(&mut s);
    let sets = |e: raw::tnd_acl_entry, flags| raw::tnd_acl_entry {
        flags,
        vid: 99,
        pcp: 5,
        ..e
    };
    let (vid, pcp) = (raw::TND_ACL_SET_VID, raw::TND_ACL_SET_PCP);
    for tpid in [VLAN, SERVICE] {
        let of = |tci| tagged(talk(), tpid, tci);
        for (flags, tci) in [(vid, 0x7063), (pcp, 0xb00a), (vid | pcp, 0xb063)] {
            put(&mut s, sets(rule(1, raw::TND_ACL_PERMIT), flags));
            assert_eq!(run_out(&mut s, 1, &of(0x700a)), (2, of(tci)));
            put(&mut s, sets(to_ports(&[2, 3]), flags));
            let (out, _) = run_with(&mut s, 1, &of(0x700a), Offload::NONE, 1);
            let got: Vec<_> = out
                .tx
                .iter()
                .map(|(port, b, _)| (*port, b.clone()))
                .collect();
            assert_eq!(got, [(2, of(tci)), (3, of(tci))]);
        }
        // a flood that a rule writes into has one change for all of its ports
        let flood = &s.counters.flood;
        assert_eq!(flood.most_tag_changes, 1);
        assert_eq!(flood.tag_changes * 2, flood.sent);
        // to the CPU as it came in, which the test kit looks at
        put(&mut s, sets(rule(1, raw::TND_ACL_PERMIT), vid));
        assert_eq!(run(&mut s, 1, &of(11)), Cpu(MISS));
    }
    for e in [rule(1, raw::TND_ACL_PERMIT), to_ports(&[2])] {
        put(&mut s, sets(e, vid));
        assert_eq!(run(&mut s, 1, &talk()), Cpu(FLOW), "there is no tag");
    }
}

/// The class is that of flows, or the rule's; the domain and the port are told.
#[test]
fn how_it_comes_to_the_cpu() {
    let mut s = flows(2, 0);
    let meta = |s: &mut State, frame: &[u8]| {
        let (mut out, _) = run_with(s, 1, frame, Offload::NONE, 1);
        out.cpu.remove(0).0
    };
    let m = meta(&mut s, &tagged(talk(), VLAN, 10));
    assert_eq!(
        (m.class, m.fid, m.flags),
        (raw::TND_TC_FLOW, 10, raw::TND_RX_TAGGED)
    );
    list(&mut s);
    put(&mut s, rule(1, raw::TND_ACL_TRAP));
    let m = meta(&mut s, &talk());
    assert_eq!((m.class, m.fid, m.flags), (raw::TND_TC_FLOW, UNTAGGED, 0));
    let e = raw::tnd_acl_entry {
        flags: raw::TND_ACL_TRAP_CLASS,
        trap_class: raw::TND_TC_CONTROL,
        ..rule(1, raw::TND_ACL_TRAP)
    };
    put(&mut s, e);
    assert_eq!(meta(&mut s, &talk()).class, raw::TND_TC_CONTROL);
}

/// Headers that rules can't tell: the CPU's wherever there is a list, else only an address counts.
#[test]
fn what_rules_can_not_tell() {
    let bad = |f: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = talk();
        f(&mut frame);
        frame
    };
    let ip4 = |protocol: u8, offset: u16, body: usize| {
        bad(&|v| {
            v.truncate(34 + body);
            v[16..18].copy_from_slice(&(20 + body as u16).to_be_bytes());
            v[20..22].copy_from_slice(&offset.to_be_bytes());
            v[23] = protocol;
            v.resize(60, 0);
            tandem_packet::checksum::ip4_set(&mut v[14..34]);
        })
    };
    let ip6 = |next: u8, body: &[u8]| {
        let mut p = vec![0x60, 0, 0, 0];
        p.extend((body.len() as u16).to_be_bytes());
        p.extend([next, 64]);
        p.extend(ip6(1, 1));
        p.extend(ip6(1, 2));
        p.extend(body);
        p.resize(p.len().max(46), 0);
        ether(mac(2), mac(1), 0x86dd, &p)
    };
    let chain = |n: usize| {
        let mut b = Vec::new();
        for left in (0..n).rev() {
            b.extend([if left == 0 { 17 } else { 60 }, 0, 0, 0, 0, 0, 0, 0]);
        }
        b.extend([0; 8]);
        b
    };
    let cases = [
        ("version", bad(&|v| v[14] = 0x55), true),
        ("checksum", bad(&|v| v[24] ^= 1), true),
        ("UDP", ip4(17, 0, 8), false),
        ("short UDP", ip4(17, 0, 7), true),
        ("TCP", ip4(6, 0, 20), false),
        ("short TCP", ip4(6, 0, 19), true),
        ("short SCTP", ip4(132, 0, 11), true),
        ("SCTP", ip4(132, 0, 12), false),
        ("short ICMP", ip4(1, 0, 3), true),
        ("ICMP", ip4(1, 0, 4), false),
        ("short first piece", ip4(6, 0x2000, 8), true),
        ("later piece", ip4(6, 0x2001, 8), false),
        ("another protocol", ip4(89, 0, 0), false),
        ("v6 UDP", ip6(17, &[0; 8]), false),
        ("v6 short UDP", ip6(17, &[0; 7]), true),
        ("v6 short ICMP", ip6(58, &[0; 3]), true),
        ("no next header", ip6(59, &[]), false),
        ("one extension", ip6(60, &chain(1)), false),
        ("seven", ip6(60, &chain(7)), false),
        ("eight", ip6(60, &chain(8)), true),
        ("cut short", ip6(60, &[17, 1, 0, 0, 0, 0, 0, 0]), true),
        ("nothing of it", ip6(0, &[]), true),
        ("half a fragment header", ip6(44, &[17, 0, 0, 8]), true),
        ("later v6 piece", ip6(44, &[6, 0, 0, 8, 0, 0, 0, 0]), false),
        ("first v6 piece", ip6(44, &[17, 0, 0, 1, 0, 0, 0, 0]), true),
        ("authentication", ip6(51, &[17, 4, 0, 0, 0, 0, 0, 0]), true),
        ("ARP", ether(mac(2), mac(1), 0x0806, &[0; 3]), false),
    ];
    let mut s = flows(2, 0);
    station(&mut s, UNTAGGED, mac(2), 2);
    for (what, frame, _) in &cases {
        assert_eq!(run(&mut s, 1, frame), Tx(vec![2]), "{what}");
    }
    list(&mut s);
    for (what, frame, cpu) in &cases {
        let want = if *cpu { Cpu(FLOW) } else { Tx(vec![2]) };
        assert_eq!(run(&mut s, 1, frame), want, "{what}");
    }
}

/// A group of links is a flow port like any other: to its members nothing goes back.
#[test]
fn a_group_of_links() {
    let mut s = flows(4, 0);
    let members = vec![(1, true), (2, true)];
    s.set_lag(1, LagConfig { hash: 0, members }).unwrap();
    let lag = s.lag_port(1);
    port_flags(&mut s, lag, raw::TND_PORT_FLOWS | raw::TND_PORT_UP, 0);
    to_set(&mut s, UNTAGGED, mac(2), 1, &[1, 3, lag]);
    assert_eq!(run(&mut s, 1, &talk()), Tx(vec![3]));
    assert!(matches!(run(&mut s, 4, &talk()), Tx(ports) if ports.len() == 2 && ports[0] == 3));
    // LACP is the link's own, and by a member that takes no part every link-local address; nothing else comes in there
    let link = raw::TND_TRAP_LINK_PROTO;
    let [lacp, lldp] = [2, 0x0e].map(|n| plain([1, 0x80, 0xc2, 0, 0, n], mac(1)));
    assert_eq!(run(&mut s, 1, &lacp), Cpu(link));
    assert_eq!(run(&mut s, 1, &lldp), Cpu(MISS));
    let members = vec![(1, false), (2, true)];
    s.set_lag(1, LagConfig { hash: 0, members }).unwrap();
    for frame in [&lacp, &lldp] {
        assert_eq!(run(&mut s, 1, frame), Cpu(link));
    }
    assert_eq!(run(&mut s, 1, &talk()), Drop(DropReason::LagInactive));
}

/// Nothing ages but what its entry says: to be forwarded to keeps no station young, to send neither.
#[test]
fn stations_age() {
    let mut s = flows(3, raw::TND_PORT_FLOWS_SOURCE);
    let config = VlanConfig {
        flags: raw::TND_VLAN_FLOWS,
        ageing_s: 10,
    };
    s.set_vlan(UNTAGGED, config).unwrap();
    for n in [1, 2] {
        fdb(&mut s, UNTAGGED, mac(n), n, Action::Forward, 0);
    }
    station(&mut s, UNTAGGED, mac(3), 3);
    let second = 1_000_000_000;
    for n in 1..9 {
        let (_, answer) = run_with(&mut s, 1, &talk(), Offload::NONE, n * second);
        assert_eq!(answer, Tx(vec![2]));
    }
    let mut out = Out::default();
    crate::age(&mut s, 11 * second, 65_536, &mut out);
    for (n, stays) in [(1, false), (2, false), (3, true)] {
        let key = Key::Mac {
            fid: UNTAGGED,
            mac: mac(n),
        };
        assert_eq!(s.exact.get(&key).is_some(), stays, "{n}");
    }
}

/// A question changes nothing.
#[test]
fn traces() {
    let mut s = flows(3, raw::TND_PORT_FLOWS_SOURCE);
    station(&mut s, UNTAGGED, mac(1), 1);
    to_set(&mut s, UNTAGGED, mac(2), 7, &[2, 3]);
    list(&mut s);
    put(
        &mut s,
        raw::tnd_acl_entry {
            priority: 9,
            ..to_ports(&[3])
        },
    );
    let mut all = |port, frame: &[u8]| {
        let before = s.counters.clone();
        let lines = crate::trace::trace(&mut s, frame, port, 1).lines;
        assert_eq!(s.counters, before);
        let text = lines.iter().map(|l| format!("{l:?}"));
        text.collect::<Vec<_>>().join("\n")
    };
    assert!(all(1, &talk()).contains("list 1, rule 9: redirect_ports"));
    assert!(all(2, &talk()).contains("source is not known here"));
    bound(&mut s, 0, 0);
    let mut all = |port, frame: &[u8]| {
        let lines = crate::trace::trace(&mut s, frame, port, 1).lines;
        let text = lines.iter().map(|l| format!("{l:?}"));
        text.collect::<Vec<_>>().join("\n")
    };
    assert!(all(1, &talk()).contains("FDB hit: forward, port set 7"));
    assert!(all(1, &plain(mac(9), mac(1))).contains("FDB miss"));
}

/// Ports 1 and 2 belong to VLAN 10 without a tag, 3 and 4 with one.
fn members() -> State {
    let mut s = flows(5, 0);
    for port in 1..=4 {
        let flags = match port {
            1 | 2 => raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED,
            _ => 0,
        };
        s.set_member(port, 10, MemberConfig { fid: 10, flags })
            .unwrap();
    }
    s
}

#[test]
fn what_members_send_and_get() {
    let mut s = members();
    for (port, n) in [(1, 1), (2, 2), (3, 3), (5, 5)] {
        station(&mut s, 10, mac(n), port);
    }
    station(&mut s, UNTAGGED, mac(1), 4);
    let bare = |to| plain(mac(to), mac(9));
    let of = |to, tci| tagged(bare(to), VLAN, tci);
    // Without a tag, out without one, and with one
    assert_eq!(run_out(&mut s, 2, &bare(1)), (1, bare(1)));
    assert_eq!(run_out(&mut s, 1, &bare(3)), (3, of(3, 10)));
    // With its tag and priority, out without it, and with it
    assert_eq!(run_out(&mut s, 3, &of(1, 10)), (1, bare(1)));
    assert_eq!(run_out(&mut s, 4, &of(3, 0xa00a)), (3, of(3, 0xa00a)));
    // Not in the form that the member has, nor by a port that is none
    assert_eq!(run(&mut s, 1, &of(2, 10)), Cpu(MISS));
    assert_eq!(run(&mut s, 5, &of(2, 10)), Cpu(MISS));
    assert_eq!(
        run(&mut s, 3, &of(5, 10)),
        Drop(DropReason::NotEgressMember)
    );
    // Untagged frames of a port that is a member with the tag alone are those of all ports
    assert_eq!(run_out(&mut s, 3, &bare(1)), (4, bare(1)));
    assert_eq!(run_out(&mut s, 5, &bare(1)), (4, bare(1)));
    // Rules send as before
    list(&mut s);
    put(&mut s, to_ports(&[3]));
    assert_eq!(run_out(&mut s, 1, &bare(1)), (3, bare(1)));
}

#[test]
fn what_is_sent_to_members_leaves_in_two_forms() {
    let mut s = members();
    to_set(&mut s, 10, [0xff; 6], 1, &[1, 2, 3, 4, 5]);
    let bare = plain([0xff; 6], mac(9));
    let with = tagged(bare.clone(), VLAN, 10);
    let out = |s: &mut State, port, frame: &[u8]| {
        let (out, _) = run_with(s, port, frame, Offload::NONE, 0);
        let all = out.tx.into_iter().map(|(port, bytes, _)| (port, bytes));
        all.collect::<Vec<_>>()
    };
    let (a, b) = (|p| (p, bare.clone()), |p| (p, with.clone()));
    assert_eq!(out(&mut s, 1, &bare), [b(3), b(4), a(2)]);
    assert_eq!(out(&mut s, 4, &with), [b(3), a(1), a(2)]);
}

/// Members of a domain with another number than their VLAN, and of one that has all frames of a port.
#[test]
fn domains_with_numbers_of_their_own() {
    let mut s = flows(6, raw::TND_PORT_FLOWS_UNAWARE);
    for (fid, flags) in [
        (300, raw::TND_VLAN_FLOWS),
        (11, raw::TND_VLAN_FLOWS),
        (12, 0),
    ] {
        domain(&mut s, fid, flags);
    }
    let member = |s: &mut State, port, vid, fid| {
        let m = MemberConfig { fid, flags: 0 };
        s.set_member(port, vid, m).unwrap();
    };
    let bare = |to| plain(mac(to), mac(9));
    let of = |to, tci| tagged(bare(to), VLAN, tci);
    // All of ports 1 and 2, as it came; other ports look up another domain, and their stations are others
    for port in [1, 2] {
        member(&mut s, port, raw::TND_VID_ANY, 300);
    }
    station(&mut s, 300, mac(1), 2);
    station(&mut s, UNTAGGED, mac(1), 4);
    station(&mut s, UNTAGGED, mac(2), 1);
    station(&mut s, 300, mac(3), 3);
    for frame in [
        bare(1),
        of(1, 0),
        of(1, 0xa00a),
        of(1, 4095),
        tagged(of(1, 10), SERVICE, 7),
    ] {
        assert_eq!(run_out(&mut s, 1, &frame), (2, frame.clone()));
        assert_eq!(run_out(&mut s, 3, &frame), (4, frame.clone()));
    }
    assert_eq!(run(&mut s, 1, &bare(2)), Cpu(MISS));
    assert_eq!(run(&mut s, 1, &bare(3)), Drop(DropReason::NotEgressMember));
    // Aware or not
    port_flags(&mut s, 1, 0, raw::TND_PORT_FLOWS_UNAWARE);
    assert_eq!(run_out(&mut s, 1, &of(1, 10)), (2, of(1, 10)));
    // That of all other frames has members: who is none has no domain
    member(&mut s, 4, raw::TND_VID_ANY, UNTAGGED);
    assert_eq!(run(&mut s, 3, &bare(1)), Cpu(MISS));
    assert_eq!(run(&mut s, 5, &bare(2)), Cpu(MISS));
    // With a tag, in another's number, out with that of each member
    for port in [5, 6] {
        port_flags(&mut s, port, 0, raw::TND_PORT_FLOWS_UNAWARE);
    }
    member(&mut s, 5, 10, 11);
    member(&mut s, 6, 20, 11);
    station(&mut s, 11, mac(6), 6);
    station(&mut s, 10, mac(6), 4);
    assert_eq!(run_out(&mut s, 5, &of(6, 0xa00a)), (6, of(6, 0xa014)));
    // The VLAN of the domain's number is nobody's while it has members; a bridge's members are nobody here
    assert_eq!(run(&mut s, 5, &of(6, 11)), Cpu(MISS));
    member(&mut s, 5, 10, 12);
    assert_eq!(run_out(&mut s, 5, &of(6, 10)), (4, of(6, 10)));
    // In all forms at once
    member(&mut s, 5, 10, 11);
    member(&mut s, 3, raw::TND_VID_ANY, 11);
    s.set_member(
        2,
        7,
        MemberConfig {
            fid: 11,
            flags: raw::TND_MEMBER_UNTAGGED,
        },
    )
    .unwrap();
    to_set(&mut s, 11, [0xff; 6], 1, &[2, 3, 5, 6]);
    let all = plain([0xff; 6], mac(9));
    let with = |vid| tagged(all.clone(), VLAN, vid);
    let (out, _) = run_with(&mut s, 5, &with(10), Offload::NONE, 0);
    let sent: Vec<_> = out
        .tx
        .into_iter()
        .map(|(port, bytes, _)| (port, bytes))
        .collect();
    assert_eq!(sent, [(3, with(10)), (6, with(20)), (2, all.clone())]);
}

//! Bridging without VLANs.

use tandem_abi::raw;

use crate::entry::{Action, FdbValue};
use crate::state::{PortConfig, RifPlace, VlanConfig};
use crate::testkit::Answer::{Both, Cpu, Drop, Tx};
use crate::testkit::*;
use crate::{DropReason, Event, Offload, State, age};

const BC: [u8; 6] = [0xff; 6];
const MC4: [u8; 6] = [1, 0, 0x5e, 1, 1, 1];

fn frame(dst: [u8; 6], src: [u8; 6]) -> Vec<u8> {
    ether(dst, src, 0x88b5, &[0; 46])
}

pub(super) fn vlan_flags(s: &mut State, on: u32, off: u32) {
    let c = s.vlan(1).unwrap().config;
    s.set_vlan(
        1,
        VlanConfig {
            flags: c.flags & !off | on,
            ..c
        },
    )
    .unwrap();
}

fn stp(s: &mut State, port: u16, stp_state: u8) {
    let c = s.port(port).unwrap().config;
    s.set_port(port, PortConfig { stp_state, ..c }).unwrap();
}

/// One case: what is changed on a bridge of four ports where station 2 is known on port 2, the ingress port, the frame,
/// the answer.
type Case = (
    &'static str,
    fn(&mut State),
    u16,
    Vec<u8>,
    crate::testkit::Answer,
);

#[test]
fn answers() {
    let arp = ether(BC, mac(1), 0x0806, &[0; 46]);
    let igmp = {
        let mut v = udp4(MC4, mac(1), [10, 0, 0, 1], [224, 1, 1, 1], 1, 8);
        v[23] = 2;
        tandem_packet::checksum::ip4_set(&mut v[14..34]);
        v
    };
    let data4 = udp4(MC4, mac(1), [10, 0, 0, 1], [224, 1, 1, 1], 1, 8);
    let link4 = udp4(
        [1, 0, 0x5e, 0, 0, 5],
        mac(1),
        [10, 0, 0, 1],
        [224, 0, 0, 5],
        1,
        8,
    );
    let mut g6 = [0; 16];
    g6[0] = 0xff;
    g6[1] = 0x05;
    g6[15] = 9;
    let data6 = udp6([0x33, 0x33, 0, 0, 0, 9], mac(1), ip6(1, 1), g6, 1, 8);
    g6[1] = 0x02;
    let link6 = udp6([0x33, 0x33, 0, 0, 0, 9], mac(1), ip6(1, 1), g6, 1, 8);
    let mut all_nodes = [0u8; 16];
    (all_nodes[0], all_nodes[1], all_nodes[15]) = (0xff, 2, 1);
    let all6 = udp6([0x33, 0x33, 0, 0, 0, 1], mac(1), ip6(1, 1), all_nodes, 1, 8);
    let data4b = udp4(MC4, mac(1), [10, 0, 0, 1], [224, 0, 1, 1], 1, 8);
    let bad4 = ether(MC4, mac(1), 0x0800, &[0x45; 46]);
    let lldp = frame([1, 0x80, 0xc2, 0, 0, 0x0e], mac(1));
    let cases: Vec<Case> = vec![
        (
            "known unicast",
            |_| (),
            1,
            frame(mac(2), mac(1)),
            Tx(vec![2]),
        ),
        (
            "unknown unicast",
            |_| (),
            1,
            frame(mac(9), mac(1)),
            Tx(vec![2, 3, 4]),
        ),
        (
            "unknown unicast while incomplete",
            |s| vlan_flags(s, raw::TND_VLAN_UC_TRAP, 0),
            1,
            frame(mac(9), mac(1)),
            Cpu(raw::TND_TRAP_FDB_INCOMPLETE),
        ),
        (
            "ARP to unknown unicast while incomplete",
            |s| vlan_flags(s, raw::TND_VLAN_UC_TRAP, 0),
            1,
            ether(mac(9), mac(1), 0x0806, &[0; 46]),
            Cpu(raw::TND_TRAP_ARP),
        ),
        (
            "known unicast while incomplete",
            |s| vlan_flags(s, raw::TND_VLAN_UC_TRAP, 0),
            1,
            frame(mac(2), mac(1)),
            Tx(vec![2]),
        ),
        (
            "broadcast",
            |_| (),
            1,
            frame(BC, mac(1)),
            Both(vec![2, 3, 4], raw::TND_TRAP_BROADCAST),
        ),
        (
            "broadcast, bridge device down",
            |s| vlan_flags(s, 0, raw::TND_VLAN_CPU_COPY),
            1,
            frame(BC, mac(1)),
            Tx(vec![2, 3, 4]),
        ),
        (
            "ARP request",
            |_| (),
            1,
            arp,
            Both(vec![2, 3, 4], raw::TND_TRAP_ARP),
        ),
        (
            "same port",
            |_| (),
            2,
            frame(mac(2), mac(1)),
            Drop(DropReason::SamePort),
        ),
        (
            "hairpin",
            |s| port_flags(s, 2, raw::TND_PORT_HAIRPIN, 0),
            2,
            frame(mac(2), mac(1)),
            Tx(vec![2]),
        ),
        (
            "hairpin flood",
            |s| port_flags(s, 1, raw::TND_PORT_HAIRPIN, 0),
            1,
            frame(mac(9), mac(1)),
            Tx(vec![1, 2, 3, 4]),
        ),
        (
            "both isolated",
            |s| {
                port_flags(s, 1, raw::TND_PORT_ISOLATED, 0);
                port_flags(s, 2, raw::TND_PORT_ISOLATED, 0);
            },
            1,
            frame(mac(2), mac(1)),
            Drop(DropReason::Isolated),
        ),
        (
            "flood past isolated",
            |s| {
                port_flags(s, 1, raw::TND_PORT_ISOLATED, 0);
                port_flags(s, 2, raw::TND_PORT_ISOLATED, 0);
            },
            1,
            frame(mac(9), mac(1)),
            Tx(vec![3, 4]),
        ),
        (
            "no flooding of unknown unicast",
            |s| port_flags(s, 3, 0, raw::TND_PORT_FLOOD_UC),
            1,
            frame(mac(9), mac(1)),
            Tx(vec![2, 4]),
        ),
        (
            "no flooding of multicast",
            |s| port_flags(s, 3, 0, raw::TND_PORT_FLOOD_MC),
            1,
            frame(MC4, mac(1)),
            Both(vec![2, 4], raw::TND_TRAP_BROADCAST),
        ),
        (
            "no flooding of broadcast",
            |s| port_flags(s, 3, 0, raw::TND_PORT_FLOOD_BC),
            1,
            frame(BC, mac(1)),
            Both(vec![2, 4], raw::TND_TRAP_BROADCAST),
        ),
        (
            "nobody to flood to",
            |s| {
                for p in 2..=4 {
                    s.set_link(p, false).unwrap();
                }
            },
            1,
            frame(mac(9), mac(1)),
            Drop(DropReason::NoFloodPort),
        ),
        (
            "broadcast reaches the CPU alone",
            |s| {
                for p in 2..=4 {
                    s.set_link(p, false).unwrap();
                }
            },
            1,
            frame(BC, mac(1)),
            Both(vec![], raw::TND_TRAP_BROADCAST),
        ),
        (
            "LLDP",
            |_| (),
            1,
            lldp.clone(),
            Cpu(raw::TND_TRAP_LINK_PROTO),
        ),
        (
            "LLDP on a blocked port",
            |s| stp(s, 1, raw::TND_STP_BLOCKING),
            1,
            lldp,
            Cpu(raw::TND_TRAP_LINK_PROTO),
        ),
        (
            "blocked",
            |s| stp(s, 1, raw::TND_STP_BLOCKING),
            1,
            frame(mac(2), mac(1)),
            Drop(DropReason::StpIngress),
        ),
        (
            "learning",
            |s| stp(s, 1, raw::TND_STP_LEARNING),
            1,
            frame(mac(2), mac(1)),
            Drop(DropReason::StpLearning),
        ),
        (
            "egress blocked",
            |s| stp(s, 2, raw::TND_STP_LISTENING),
            1,
            frame(mac(2), mac(1)),
            Drop(DropReason::StpEgress),
        ),
        (
            "egress down",
            |s| s.set_link(2, false).unwrap(),
            1,
            frame(mac(2), mac(1)),
            Drop(DropReason::EgressDown),
        ),
        (
            "ingress down",
            |s| port_flags(s, 1, 0, raw::TND_PORT_UP),
            1,
            frame(mac(2), mac(1)),
            Drop(DropReason::PortDown),
        ),
        (
            "no such port",
            |_| (),
            99,
            frame(mac(2), mac(1)),
            Drop(DropReason::NoSuchPort),
        ),
        (
            "group address as source",
            |_| (),
            1,
            frame(mac(2), MC4),
            Drop(DropReason::BadSource),
        ),
        (
            "zero as source",
            |_| (),
            1,
            frame(mac(2), [0; 6]),
            Drop(DropReason::BadSource),
        ),
        (
            "entry says trap",
            |s| fdb(s, 1, mac(7), 0, Action::Trap, raw::TND_FDB_STATIC),
            1,
            frame(mac(7), mac(1)),
            Cpu(raw::TND_TRAP_L2_LOCAL),
        ),
        (
            "entry says trap, ARP reply",
            |s| fdb(s, 1, mac(7), 0, Action::Trap, raw::TND_FDB_STATIC),
            1,
            ether(mac(7), mac(1), 0x0806, &[0; 46]),
            Cpu(raw::TND_TRAP_ARP),
        ),
        (
            "entry says drop",
            |s| fdb(s, 1, mac(7), 0, Action::Drop, raw::TND_FDB_STATIC),
            1,
            frame(mac(7), mac(1)),
            Drop(DropReason::FdbDrop),
        ),
        (
            "entry on a port outside",
            |s| {
                s.remove_member(2, raw::TND_VID_ANY);
            },
            1,
            frame(mac(2), mac(1)),
            Cpu(raw::TND_TRAP_FDB_INCOMPLETE),
        ),
        (
            "entry on a port that goes out of service",
            |s| {
                stp(s, 2, raw::TND_STP_DISABLED);
                port_flags(s, 2, raw::TND_PORT_TRAP_ALL, 0);
            },
            1,
            frame(mac(2), mac(1)),
            Cpu(raw::TND_TRAP_FDB_INCOMPLETE),
        ),
        (
            "entry on a port out of service",
            |s| stp(s, 2, raw::TND_STP_DISABLED),
            1,
            frame(mac(2), mac(1)),
            Drop(DropReason::StpEgress),
        ),
        (
            "locked, unknown",
            |s| port_flags(s, 1, raw::TND_PORT_LOCKED, 0),
            1,
            frame(mac(2), mac(1)),
            Drop(DropReason::Locked),
        ),
        (
            "locked, known",
            |s| {
                port_flags(s, 1, raw::TND_PORT_LOCKED, 0);
                fdb(s, 1, mac(1), 1, Action::Forward, raw::TND_FDB_STATIC);
            },
            1,
            frame(mac(2), mac(1)),
            Tx(vec![2]),
        ),
        (
            "port traps all",
            |s| port_flags(s, 1, raw::TND_PORT_TRAP_ALL, 0),
            1,
            frame(mac(2), mac(1)),
            Cpu(raw::TND_TRAP_UNSUPPORTED),
        ),
        (
            "port traps all, BGP keeps its class",
            |s| port_flags(s, 1, raw::TND_PORT_TRAP_ALL, 0),
            1,
            tcp4(mac(2), mac(1), [1; 4], [2; 4], (30000, 179)),
            Cpu(raw::TND_TRAP_ROUTING),
        ),
        (
            "multicast, no snooping",
            |_| (),
            1,
            data4.clone(),
            Both(vec![2, 3, 4], raw::TND_TRAP_BROADCAST),
        ),
        (
            "IGMP, no snooping",
            |_| (),
            1,
            igmp.clone(),
            Both(vec![2, 3, 4], raw::TND_TRAP_IGMP_MLD),
        ),
        (
            "IGMP, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            igmp,
            Cpu(raw::TND_TRAP_IGMP_MLD),
        ),
        (
            "IPv4 group, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            data4.clone(),
            Cpu(raw::TND_TRAP_L2_MULTICAST),
        ),
        (
            "224.0.1.1, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            data4b,
            Cpu(raw::TND_TRAP_L2_MULTICAST),
        ),
        (
            "tagged IPv4 group, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            tagged(data4, 0x8100, 5),
            Cpu(raw::TND_TRAP_L2_MULTICAST),
        ),
        (
            "224.0.0.5, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            link4,
            Both(vec![2, 3, 4], raw::TND_TRAP_BROADCAST),
        ),
        (
            "IPv6 group, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            data6,
            Cpu(raw::TND_TRAP_L2_MULTICAST),
        ),
        (
            "ff02::9, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            link6,
            Cpu(raw::TND_TRAP_L2_MULTICAST),
        ),
        (
            "ff02::1, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            all6,
            Both(vec![2, 3, 4], raw::TND_TRAP_BROADCAST),
        ),
        (
            "nonsense in a group, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            bad4,
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "group that is not IP, snooping",
            |s| vlan_flags(s, raw::TND_VLAN_MC_TRAP, 0),
            1,
            frame([1, 0x80, 0xc2, 0, 0, 0x20], mac(1)),
            Both(vec![2, 3, 4], raw::TND_TRAP_BROADCAST),
        ),
        (
            "double-tagged",
            |_| (),
            1,
            tagged(tagged(frame(mac(2), mac(1)), 0x8100, 7), 0x88a8, 8),
            Tx(vec![2]),
        ),
        (
            "802.3 length",
            |_| (),
            1,
            ether(mac(2), mac(1), 46, &[0x42; 46]),
            Tx(vec![2]),
        ),
        (
            "shortest",
            |_| (),
            1,
            frame(mac(2), mac(1))[..14].to_vec(),
            Tx(vec![2]),
        ),
        (
            "runt",
            |_| (),
            1,
            frame(mac(2), mac(1))[..13].to_vec(),
            Drop(DropReason::Runt),
        ),
        ("empty", |_| (), 1, vec![], Drop(DropReason::Runt)),
        (
            "longest",
            |_| (),
            1,
            ether(mac(2), mac(1), 0x88b5, &[0; 1504]),
            Tx(vec![2]),
        ),
        (
            "too long",
            |_| (),
            1,
            ether(mac(2), mac(1), 0x88b5, &[0; 1505]),
            Drop(DropReason::Oversize),
        ),
        (
            "longest, tag beside it",
            |_| (),
            1,
            tagged(ether(mac(2), mac(1), 0x88b5, &[0; 1504]), 0x8100, 5),
            Tx(vec![2]),
        ),
        (
            "too long for the egress port",
            |s| {
                let c = s.port(2).unwrap().config;
                s.set_port(2, PortConfig { mtu: 576, ..c }).unwrap();
            },
            1,
            ether(mac(2), mac(1), 0x88b5, &[0; 600]),
            Drop(DropReason::EgressOversize),
        ),
        (
            "router MAC, tagged",
            |s| add_rif(s, 200, RifPlace::Fid(1)),
            1,
            tagged(
                udp4(router_mac(200), mac(1), [9; 4], [8; 4], 9, 9),
                0x8100,
                5,
            ),
            Cpu(raw::TND_TRAP_UNSUPPORTED),
        ),
        (
            "router MAC wins over the FDB",
            |s| {
                add_rif(s, 200, RifPlace::Fid(1));
                fdb(s, 1, router_mac(200), 0, Action::Trap, raw::TND_FDB_STATIC);
            },
            1,
            udp4(router_mac(200), mac(1), [9; 4], [8; 4], 9, 9),
            Cpu(raw::TND_TRAP_LPM_MISS),
        ),
    ];
    for (name, change, ingress, bytes, want) in cases {
        let mut s = bridge(4);
        fdb(&mut s, 1, mac(2), 2, Action::Forward, raw::TND_FDB_STATIC);
        change(&mut s);
        let got = run(&mut s, ingress, &bytes);
        assert_eq!(got, want, "{name}");
    }
}

/// Bridged frames leave byte for byte as they came.
#[test]
fn frames_leave_untouched() {
    let mut s = bridge(3);
    for f in [
        frame(mac(2), mac(1)),
        tagged(frame(mac(2), mac(1)), 0x8100, 0xe005),
        tagged(tagged(frame(BC, mac(1)), 0x8100, 7), 0x88a8, 8),
        ether(BC, mac(1), 0x0800, &[0x45]),
    ] {
        let (out, _) = run_with(&mut s, 1, &f, Offload::NONE, 0);
        assert_eq!(out.tx.len(), 2);
        assert!(out.tx.iter().all(|t| t.1 == f));
    }
    assert_eq!(s.counters.flood.tag_changes, 0);
}

#[test]
fn learns_moves_and_keeps_static() {
    let mut s = bridge(3);
    let (out, _) = run_with(&mut s, 1, &frame(mac(9), mac(1)), Offload::NONE, 0);
    let learned = Event::Learn {
        fid: 1,
        mac: mac(1),
        port: 1,
    };
    assert_eq!(out.events, [learned]);
    assert_eq!(run(&mut s, 2, &frame(mac(1), mac(2))), Tx(vec![1]));
    // seen again: no event
    let (out, _) = run_with(&mut s, 1, &frame(mac(9), mac(1)), Offload::NONE, 0);
    assert_eq!(out.events, []);
    let (out, _) = run_with(&mut s, 3, &frame(mac(9), mac(1)), Offload::NONE, 0);
    let moved = Event::Move {
        fid: 1,
        mac: mac(1),
        port: 3,
        old_port: 1,
    };
    assert_eq!(out.events, [moved]);
    assert_eq!(run(&mut s, 2, &frame(mac(1), mac(2))), Tx(vec![3]));
    for (n, flags, action) in [
        (5, raw::TND_FDB_STATIC, Action::Forward),
        (6, raw::TND_FDB_STICKY, Action::Forward),
        (7, raw::TND_FDB_STATIC, Action::Trap),
    ] {
        fdb(&mut s, 1, mac(n), 1, action, flags);
        let before = s.exact.get_mac(1, mac(n)).unwrap().value;
        let (out, _) = run_with(&mut s, 2, &frame(mac(1), mac(n)), Offload::NONE, 0);
        assert_eq!(out.events, []);
        assert_eq!(s.exact.get_mac(1, mac(n)).unwrap().value, before);
    }
    // somebody's that may move: it is still theirs then
    fdb(&mut s, 1, mac(8), 1, Action::Forward, raw::TND_FDB_NO_AGE);
    let (out, _) = run_with(&mut s, 2, &frame(mac(1), mac(8)), Offload::NONE, 0);
    assert!(matches!(out.events[..], [Event::Move { port: 2, .. }]));
    let there = FdbValue::unpack(s.exact.get_mac(1, mac(8)).unwrap().value);
    assert_eq!((there.port, there.flags), (2, raw::TND_FDB_NO_AGE));
    assert_eq!(s.counters.learn.learned, 2);
    assert_eq!(s.counters.learn.moved, 2);
}

#[test]
fn learning_can_be_off_and_full() {
    let mut s = bridge(2);
    port_flags(&mut s, 1, 0, raw::TND_PORT_LEARNING);
    run(&mut s, 1, &frame(mac(9), mac(1)));
    vlan_flags(&mut s, 0, raw::TND_VLAN_LEARNING);
    run(&mut s, 2, &frame(mac(9), mac(2)));
    assert_eq!(s.exact.len(), 0);
    // or only by frames to the bridge itself, of which no port needs to know who sent them
    vlan_flags(&mut s, raw::TND_VLAN_LEARNING, 0);
    let link_local = [0x01, 0x80, 0xc2, 0, 0, 3];
    for (on, learned) in [(raw::TND_VLAN_NO_LL_LEARN, 0), (0, 1)] {
        vlan_flags(&mut s, on, raw::TND_VLAN_NO_LL_LEARN);
        let answer = run(&mut s, 2, &frame(link_local, mac(2)));
        assert_eq!(answer, Cpu(raw::TND_TRAP_LINK_PROTO));
        assert_eq!(s.exact.len(), learned);
    }

    let mut s = bridge(2);
    let mut small = state_sized(2, 2);
    std::mem::swap(&mut s.exact, &mut small.exact);
    for n in 1..200 {
        // still forwarded, table full or not
        assert_eq!(run(&mut s, 1, &frame(mac(0x7777), mac(n))), Tx(vec![2]));
    }
    let c = s.counters.learn;
    assert!(c.full > 100 && c.learned > 20);
    assert_eq!(c.learned + c.full, 199);
    assert_eq!(u64::from(s.exact.len()), c.learned);
}

#[test]
fn ages_what_is_not_seen() {
    const S: u64 = 1_000_000_000;
    let mut s = bridge(2);
    fdb(&mut s, 1, mac(100), 1, Action::Forward, raw::TND_FDB_STATIC);
    fdb(&mut s, 1, mac(101), 0, Action::Trap, 0);
    for n in 0..300 {
        run_with(&mut s, 1, &frame(mac(100), mac(1000 + n)), Offload::NONE, S);
    }
    // half of them speak again
    for n in 0..150 {
        let f = frame(mac(100), mac(1000 + n));
        run_with(&mut s, 1, &f, Offload::NONE, 200 * S);
    }
    let mut out = Out::default();
    age(&mut s, 300 * S, 10_000, &mut out);
    assert_eq!(out.events, []);
    // small steps find them all, whatever the budget
    for _ in 0..100 {
        age(&mut s, 302 * S, 37, &mut out);
    }
    assert_eq!(out.events.len(), 150);
    let quiet: Vec<_> = (150..300).map(|n| mac(1000 + n)).collect();
    assert!(
        out.events
            .iter()
            .all(|e| matches!(e, Event::Age { fid: 1, port: 1, mac } if quiet.contains(mac)))
    );
    // a call goes on where the last one stopped, and ends at the table's end
    for _ in 0..2 {
        age(&mut s, 600 * S, 10_000, &mut out);
    }
    assert_eq!(out.events.len(), 300);
    assert_eq!(s.exact.len(), 2);
    assert_eq!(s.counters.learn.aged, 300);
    // more than one call removes: the next goes on exactly there
    for n in 0..600 {
        run_with(&mut s, 1, &frame(mac(100), mac(1000 + n)), Offload::NONE, 0);
    }
    while s.age_cursor != 0 {
        age(&mut s, 1, 10_000, &mut out);
    }
    for _ in 0..3 {
        age(&mut s, 400 * S, 300, &mut out);
    }
    assert_eq!(s.exact.len(), 2);
    // ageing time 0: never
    s.set_vlan(
        1,
        VlanConfig {
            ageing_s: 0,
            ..s.vlan(1).unwrap().config
        },
    )
    .unwrap();
    run_with(&mut s, 1, &frame(mac(100), mac(1)), Offload::NONE, 0);
    age(&mut s, u64::MAX / 2, 10_000, &mut out);
    assert_eq!(s.exact.len(), 3);
}

#[test]
fn counts_by_port_kind_and_stage() {
    let mut s = bridge(3);
    run(&mut s, 1, &frame(BC, mac(1)));
    run(&mut s, 1, &frame(MC4, mac(1)));
    run(&mut s, 2, &frame(mac(1), mac(2)));
    run(&mut s, 2, &[0; 5]);
    let p1 = s.counters.port(1).unwrap();
    assert_eq!((p1.rx.packets, p1.rx.bytes), (2, 120));
    assert_eq!((p1.rx.broadcast, p1.rx.multicast), (1, 1));
    assert_eq!((p1.tx.packets, p1.tx.unicast), (1, 1));
    assert_eq!((p1.l2_forwarded, p1.copied), (2, 2));
    let p2 = s.counters.port(2).unwrap();
    assert_eq!(p2.drops[DropReason::Runt as usize], 1);
    assert_eq!(p2.rx.packets, 2);
    assert_eq!(s.counters.stages[crate::Stage::IngressMac as usize], 4);
    assert_eq!(s.counters.stages[crate::Stage::Parser as usize], 3);
    assert_eq!(s.counters.stages[crate::Stage::Flood as usize], 2);
    assert_eq!(s.counters.flood.sent, 4);
    let t = s.counters.traps[usize::from(raw::TND_TRAP_BROADCAST)];
    assert_eq!((t.packets, t.bytes, t.policed), (2, 120, 0));
}

#[test]
fn policer_limits_each_reason_alone() {
    let mut s = bridge(2);
    let slow = crate::trap::TrapConfig {
        class: raw::TND_TC_DATA,
        rate_pps: 10,
        burst: 5,
    };
    s.set_trap(raw::TND_TRAP_BROADCAST, slow).unwrap();
    s.set_trap(raw::TND_TRAP_LINK_PROTO, slow).unwrap();
    let copies = (0..50)
        .filter(|_| matches!(run(&mut s, 1, &frame(BC, mac(1))), Both(..)))
        .count();
    assert_eq!(copies, 5);
    // the flood went on without copies
    assert_eq!(s.counters.port(2).unwrap().tx.packets, 50);
    let lldp = frame([1, 0x80, 0xc2, 0, 0, 0x0e], mac(1));
    for n in 0..7 {
        let want = if n < 5 {
            Cpu(raw::TND_TRAP_LINK_PROTO)
        } else {
            Drop(DropReason::TrapPolicer)
        };
        assert_eq!(run(&mut s, 1, &lldp), want);
    }
    let t = s.counters.traps[usize::from(raw::TND_TRAP_BROADCAST)];
    assert_eq!((t.packets, t.policed), (5, 45));
}

#[test]
fn trace_tells_and_leaves_no_mark() {
    let mut s = bridge(3);
    fdb(&mut s, 1, mac(2), 2, Action::Forward, raw::TND_FDB_STATIC);
    let counters = s.counters.clone();
    let t = crate::trace::trace(&mut s, &frame(mac(2), mac(1)), 1, 0);
    assert_eq!(t.tx, [(2, frame(mac(2), mac(1)))]);
    let text: Vec<String> = t
        .lines
        .iter()
        .map(|l| format!("{}: {}", l.stage, l.text))
        .collect();
    assert!(
        text.contains(&"l2_lookup: FDB hit: forward, port 2".to_string()),
        "{text:#?}"
    );
    assert!(text.contains(&"learning: source is new: learned".to_string()));
    let t = crate::trace::trace(&mut s, &frame(BC, mac(1)), 1, 0);
    assert_eq!((t.tx.len(), t.cpu.len()), (2, 1));
    let t = crate::trace::trace(&mut s, &[1, 2], 1, 0);
    assert_eq!(t.lines.last().unwrap().text, "drop: runt");
    assert_eq!(s.counters, counters);
    assert_eq!(s.exact.len(), 1);
}

#[test]
fn cpu_frames_are_counted_and_refused_on_a_dead_port() {
    let mut s = bridge(2);
    let mut b = crate::Buffer::new();
    assert!(b.set(&frame(BC, mac(1))));
    let mut out = Out::default();
    assert!(crate::transmit(
        &mut s,
        &b.frame(Offload::NONE),
        2,
        &mut out
    ));
    s.set_link(2, false).unwrap();
    assert!(!crate::transmit(
        &mut s,
        &b.frame(Offload::NONE),
        2,
        &mut out
    ));
    assert!(!crate::transmit(
        &mut s,
        &b.frame(Offload::NONE),
        3,
        &mut out
    ));
    assert_eq!(out.tx.len(), 1);
    assert_eq!(s.counters.port(2).unwrap().tx.broadcast, 1);
}

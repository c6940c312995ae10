//! Lists of rules: tables of frame and answer, and random rules against a reader of frames of its own.

use proptest::prelude::*;
use tandem_abi::raw;
use zerocopy::IntoBytes;

use crate::entry::RouteTarget;
use crate::state::{AclBind, AclRange, AclStage, GroupConfig, HashPolicy, Mirror};
use crate::testkit::Answer::{Cpu, Drop, Tx};
use crate::testkit::*;
use crate::trap::TrapConfig;
use crate::{Buffer, DropReason, Offload, State};
use tandem_packet::Gso;

const PORT: AclStage = AclStage::Port;

/// A list of a stage, bound to a port.
fn bind(s: &mut State, port: u16, stage: AclStage) -> u32 {
    let table = u32::from(port) * 10 + stage as u32;
    s.acl.add_table(table, stage);
    s.set_acl_bind(port, stage, AclBind { table, flags: 0 })
        .unwrap();
    table
}

fn rule(priority: u32, action: u16) -> raw::tnd_acl_entry {
    raw::tnd_acl_entry {
        priority,
        action,
        ..Default::default()
    }
}

/// Writes a rule that is in normal form.
fn put(s: &mut State, table: u32, rule: raw::tnd_acl_entry) {
    let e = raw::tnd_acl_entry { table, ..rule };
    let target = match e.action {
        raw::TND_ACL_REDIRECT_NEXTHOP => s.nexthop_slot(e.target).unwrap(),
        _ => e.target,
    };
    assert!(s.acl.put_rule(e, target));
}

fn udp_to(e: &mut raw::tnd_acl_entry, port: u16) {
    ip4(e);
    (e.key.protocol, e.mask.protocol) = (17, 0xff);
    (e.key.dst_port, e.mask.dst_port) = (port, 0xffff);
}

fn ip4(e: &mut raw::tnd_acl_entry) {
    (e.key.ethertype, e.mask.ethertype) = (0x0800, 0xffff);
}

/// A frame from station 1 on port 1 to station 2 on port 2, both known.
fn talk(s: &mut State) -> Vec<u8> {
    let f = udp4(mac(2), mac(1), [10, 0, 0, 1], [10, 0, 0, 2], 64, 30);
    let back = udp4(mac(1), mac(2), [10, 0, 0, 2], [10, 0, 0, 1], 64, 30);
    run(s, 2, &back);
    run(s, 1, &f);
    assert_eq!(run(s, 1, &f), Tx(vec![2]));
    f
}

#[test]
fn first_rule_that_matches_decides() {
    let mut s = bridge(4);
    let f = talk(&mut s);
    let t = bind(&mut s, 1, PORT);
    assert_eq!(run(&mut s, 1, &f), Tx(vec![2]), "an empty list permits");
    put(&mut s, t, rule(20, raw::TND_ACL_DROP));
    assert_eq!(run(&mut s, 1, &f), Drop(DropReason::AclPort));
    let mut e = rule(10, raw::TND_ACL_PERMIT);
    udp_to(&mut e, 2000);
    put(&mut s, t, e);
    assert_eq!(run(&mut s, 1, &f), Tx(vec![2]));
    udp_to(&mut e, 2001);
    put(&mut s, t, e);
    assert_eq!(run(&mut s, 1, &f), Drop(DropReason::AclPort), "replaced");
    // of another port
    assert_eq!(run(&mut s, 3, &f), Tx(vec![2]));
    s.acl.remove_rule(t, 20);
    assert_eq!(run(&mut s, 1, &f), Tx(vec![2]));
}

#[test]
fn what_is_dropped_by_the_port_is_not_learned() {
    let mut s = bridge(4);
    let t = bind(&mut s, 1, PORT);
    put(&mut s, t, rule(1, raw::TND_ACL_DROP));
    let f = udp4(mac(2), mac(1), [1; 4], [2; 4], 64, 30);
    let (out, answer) = run_with(&mut s, 1, &f, Offload::NONE, 1);
    assert_eq!(answer, Drop(DropReason::AclPort));
    assert!(out.events.is_empty());
    // but by the ingress list it is
    let mut s = bridge(4);
    let t = bind(&mut s, 1, AclStage::Ingress);
    put(&mut s, t, rule(1, raw::TND_ACL_DROP));
    let (out, answer) = run_with(&mut s, 1, &f, Offload::NONE, 1);
    assert_eq!(answer, Drop(DropReason::AclIngress));
    assert_eq!(out.events.len(), 1);
}

#[test]
fn an_incomplete_list_sends_everything_to_the_cpu() {
    for stage in [AclStage::Port, AclStage::Ingress, AclStage::Egress] {
        let mut s = bridge(4);
        let f = talk(&mut s);
        let port = if stage == AclStage::Egress { 2 } else { 1 };
        let trap_all = AclBind {
            table: 0,
            flags: raw::TND_ACL_BIND_TRAP_ALL,
        };
        s.set_acl_bind(port, stage, trap_all).unwrap();
        assert_eq!(
            run(&mut s, 1, &f),
            Cpu(raw::TND_TRAP_ACL_INCOMPLETE),
            "{stage:?}"
        );
        // a flood that would touch the port goes there whole, and nowhere else
        let arp = ether([0xff; 6], mac(1), 0x0806, &[0; 46]);
        assert_eq!(run(&mut s, 1, &arp), Cpu(raw::TND_TRAP_ARP), "{stage:?}");
        s.set_acl_bind(port, stage, AclBind::default()).unwrap();
        assert_eq!(run(&mut s, 1, &f), Tx(vec![2]), "{stage:?}");
    }
}

#[test]
fn egress_lists_see_the_frame_as_it_leaves() {
    let mut s = router(3);
    let f = udp4(router_mac(1), mac(1), [10, 0, 1, 9], [10, 0, 2, 9], 64, 30);
    assert_eq!(run(&mut s, 1, &f), Tx(vec![2]));
    let t = bind(&mut s, 2, AclStage::Egress);
    let mut e = rule(1, raw::TND_ACL_DROP);
    (e.key.dst_mac, e.mask.dst_mac) = (mac(2), [0xff; 6]);
    (e.key.src_mac, e.mask.src_mac) = (router_mac(2), [0xff; 6]);
    put(&mut s, t, e);
    assert_eq!(run(&mut s, 1, &f), Drop(DropReason::AclEgress));
    ip4(&mut e);
    (e.key.ttl, e.mask.ttl) = (63, 0xff);
    put(&mut s, t, e);
    assert_eq!(run(&mut s, 1, &f), Drop(DropReason::AclEgress));
    e.key.ttl = 64;
    put(&mut s, t, e);
    assert_eq!(run(&mut s, 1, &f), Tx(vec![2]));
    // a trap gets the frame as it came in: the test kit looks at the bytes
    put(&mut s, t, rule(0, raw::TND_ACL_TRAP));
    assert_eq!(run(&mut s, 1, &f), Cpu(raw::TND_TRAP_ACL));
}

#[test]
fn a_list_at_one_of_many_egress_ports() {
    let mut s = bridge(4);
    let f = udp4(mac(9), mac(1), [1; 4], [2; 4], 64, 30);
    let t = bind(&mut s, 3, AclStage::Egress);
    put(&mut s, t, rule(1, raw::TND_ACL_DROP));
    assert_eq!(run(&mut s, 1, &f), Tx(vec![2, 4]));
    put(&mut s, t, rule(1, raw::TND_ACL_TRAP));
    assert_eq!(run(&mut s, 1, &f), Cpu(raw::TND_TRAP_ACL));
    // the same for a broadcast, of which the CPU has no copy then
    let b = ether([0xff; 6], mac(1), 0x88b5, &[0; 46]);
    assert_eq!(run(&mut s, 1, &b), Cpu(raw::TND_TRAP_ACL));
    // the ingress port's own egress list has no say
    assert_eq!(run(&mut s, 3, &f), Tx(vec![1, 2, 4]));
}

#[test]
fn redirects() {
    let mut s = bridge(4);
    let f = talk(&mut s);
    let t = bind(&mut s, 1, PORT);
    let to = |target| raw::tnd_acl_entry {
        target,
        ..rule(1, raw::TND_ACL_REDIRECT_PORT)
    };
    put(&mut s, t, to(4));
    let (port, bytes) = run_out(&mut s, 1, &f);
    assert_eq!((port, bytes), (4, f.clone()));
    s.set_link(4, false).unwrap();
    assert_eq!(run(&mut s, 1, &f), Drop(DropReason::EgressDown));
    s.set_link(4, true).unwrap();
    let e = bind(&mut s, 4, AclStage::Egress);
    put(&mut s, e, rule(1, raw::TND_ACL_DROP));
    assert_eq!(run(&mut s, 1, &f), Drop(DropReason::AclEgress));

    let mut s = router(3);
    let f = udp4(router_mac(1), mac(1), [10, 0, 1, 9], [10, 0, 2, 9], 64, 30);
    let t = bind(&mut s, 1, PORT);
    let over = raw::tnd_acl_entry {
        target: 3,
        ..rule(1, raw::TND_ACL_REDIRECT_NEXTHOP)
    };
    put(&mut s, t, over);
    let (port, bytes) = run_out(&mut s, 1, &f);
    assert_eq!((port, &bytes[..6], bytes[22]), (3, &mac(3)[..], 63));
    // to an own address it stays the CPU's
    let own = udp4(router_mac(1), mac(1), [10, 0, 1, 9], [10, 0, 2, 1], 64, 30);
    assert_eq!(run(&mut s, 1, &own), Cpu(raw::TND_TRAP_LOCAL));
}

/// A packet that a rule sends elsewhere went by none of the members that its route would have taken.
#[test]
fn a_redirected_packet_is_not_counted_at_a_group() {
    let mut s = router(3);
    let config = GroupConfig {
        hash: HashPolicy::L4,
        members: vec![(2, 1)],
    };
    let slot = s.set_nhg(5, &config).unwrap();
    route4(&mut s, [99, 0, 0, 0], 8, RouteTarget::Group(slot));
    let f = udp4(router_mac(1), mac(1), [10, 0, 1, 9], [99, 0, 0, 1], 64, 30);
    assert_eq!(run(&mut s, 1, &f), Tx(vec![2]));
    assert_eq!(s.nhg(5).unwrap().packets(), [1]);
    let t = bind(&mut s, 1, PORT);
    let over = raw::tnd_acl_entry {
        target: 3,
        ..rule(1, raw::TND_ACL_REDIRECT_NEXTHOP)
    };
    put(&mut s, t, over);
    assert_eq!(run(&mut s, 1, &f), Tx(vec![3]));
    assert_eq!(s.nhg(5).unwrap().packets(), [1]);
}

#[test]
fn trap_rules_name_a_class_and_protocols_keep_theirs() {
    let mut s = bridge(4);
    let t = bind(&mut s, 1, PORT);
    let e = raw::tnd_acl_entry {
        flags: raw::TND_ACL_TRAP_CLASS,
        trap_class: raw::TND_TC_CONTROL,
        ..rule(1, raw::TND_ACL_TRAP)
    };
    put(&mut s, t, e);
    let f = udp4(mac(2), mac(1), [1; 4], [2; 4], 64, 30);
    let (out, _) = run_with(&mut s, 1, &f, Offload::NONE, 1);
    let m = out.cpu[0].0;
    assert_eq!(
        (m.reason, m.class, m.flags),
        (raw::TND_TRAP_ACL, raw::TND_TC_CONTROL, 0)
    );
    let arp = ether([0xff; 6], mac(1), 0x0806, &[0; 46]);
    let (out, _) = run_with(&mut s, 1, &arp, Offload::NONE, 1);
    let m = out.cpu[0].0;
    assert_eq!(
        (m.reason, m.class),
        (raw::TND_TRAP_ARP, raw::TND_TC_DISCOVERY)
    );
}

#[test]
fn counts_only_what_the_chip_dealt_with_itself() {
    let mut s = router(2);
    s.acl.add_counter(7);
    let t = bind(&mut s, 1, PORT);
    let counted = |action| raw::tnd_acl_entry {
        counter: 7,
        ..rule(1, action)
    };
    put(&mut s, t, counted(raw::TND_ACL_PERMIT));
    let hits = |s: &State| s.acl.counter(7).unwrap().packets;
    let f = |to, ttl| udp4(router_mac(1), mac(1), [10, 0, 1, 9], to, ttl, 30);
    assert_eq!(run(&mut s, 1, &f([10, 0, 2, 9], 64)), Tx(vec![2]));
    assert_eq!(hits(&s), 1);
    // the kernel routes these, and its own rule counts them
    assert_eq!(run(&mut s, 1, &f([10, 0, 2, 9], 1)), Cpu(raw::TND_TRAP_TTL));
    assert_eq!(run(&mut s, 1, &f([99; 4], 64)), Cpu(raw::TND_TRAP_LPM_MISS));
    assert_eq!(hits(&s), 1);
    // dropped later is dealt with
    s.set_link(2, false).unwrap();
    assert_eq!(
        run(&mut s, 1, &f([10, 0, 2, 9], 64)),
        Drop(DropReason::EgressDown)
    );
    assert_eq!(hits(&s), 2);
    put(&mut s, t, counted(raw::TND_ACL_DROP));
    run(&mut s, 1, &f([10, 0, 2, 9], 64));
    put(&mut s, t, counted(raw::TND_ACL_TRAP));
    run(&mut s, 1, &f([10, 0, 2, 9], 64));
    let c = *s.acl.counter(7).unwrap();
    assert_eq!((c.packets, c.bytes, c.used_ns), (4, 4 * 72, 1_000_000_000));
}

/// What was on its way to the CPU and found no room there was not dealt with by the chip: no rule counts it.
#[test]
fn what_a_trap_polices_is_not_counted_at_a_rule() {
    let mut s = router(2);
    s.acl.add_counter(7);
    s.acl.set_policer(3, raw::TND_POLICER_PACKETS, 10, 2);
    let t = bind(&mut s, 1, PORT);
    let e = raw::tnd_acl_entry {
        counter: 7,
        policer: 3,
        ..rule(1, raw::TND_ACL_PERMIT)
    };
    put(&mut s, t, e);
    let one = TrapConfig {
        class: raw::TND_TC_DATA,
        rate_pps: 1,
        burst: 1,
    };
    s.set_trap(raw::TND_TRAP_TTL, one).unwrap();
    let f = udp4(router_mac(1), mac(1), [10, 0, 1, 9], [10, 0, 2, 9], 1, 30);
    assert_eq!(run(&mut s, 1, &f), Cpu(raw::TND_TRAP_TTL));
    assert_eq!(run(&mut s, 1, &f), Drop(DropReason::TrapPolicer));
    assert_eq!(s.acl.counter(7).unwrap().packets, 0);
    let p = s.acl.policer(3).unwrap();
    assert_eq!((p.meter.passed, p.meter.dropped), (0, 0));
}

/// A frame that the ingress list drops has passed the port's list: both rules have hit it.
#[test]
fn what_the_ingress_list_drops_is_counted_at_both() {
    let mut s = bridge(2);
    let f = talk(&mut s);
    for (counter, stage, action) in [
        (7, PORT, raw::TND_ACL_PERMIT),
        (8, AclStage::Ingress, raw::TND_ACL_DROP),
    ] {
        s.acl.add_counter(counter);
        let t = bind(&mut s, 1, stage);
        let e = raw::tnd_acl_entry {
            counter,
            ..rule(1, action)
        };
        put(&mut s, t, e);
    }
    assert_eq!(run(&mut s, 1, &f), Drop(DropReason::AclIngress));
    for counter in [7, 8] {
        assert_eq!(s.acl.counter(counter).unwrap().packets, 1, "{counter}");
    }
}

#[test]
fn policers_drop_what_exceeds() {
    let mut s = bridge(2);
    let f = talk(&mut s);
    s.acl.set_policer(3, raw::TND_POLICER_PACKETS, 10, 2);
    let t = bind(&mut s, 1, PORT);
    put(
        &mut s,
        t,
        raw::tnd_acl_entry {
            policer: 3,
            ..rule(1, raw::TND_ACL_PERMIT)
        },
    );
    let mut at = |ms: u64| run_with(&mut s, 1, &f, Offload::NONE, 5_000_000_000 + ms * 1_000_000).1;
    assert_eq!(at(0), Tx(vec![2]));
    assert_eq!(at(0), Tx(vec![2]));
    assert_eq!(at(0), Drop(DropReason::AclPoliced));
    assert_eq!(at(99), Drop(DropReason::AclPoliced));
    assert_eq!(at(100), Tx(vec![2]));
    let p = s.acl.policer(3).unwrap();
    assert_eq!((p.meter.passed, p.meter.dropped), (3, 2));
}

#[test]
fn mirrors_and_samples() {
    let mut s = bridge(4);
    let f = talk(&mut s);
    let session = |port, truncate, rate| Mirror {
        id: 1,
        port,
        truncate,
        rate,
        ..Mirror::default()
    };
    s.acl.set_mirror(session(4, 0, 1));
    let t = bind(&mut s, 1, PORT);
    let e = raw::tnd_acl_entry {
        mirror: 1,
        ..rule(1, raw::TND_ACL_PERMIT)
    };
    put(&mut s, t, e);
    let (out, _) = run_with(&mut s, 1, &f, Offload::NONE, 1);
    let sent: Vec<(u16, usize)> = out.tx.iter().map(|(p, b, _)| (*p, b.len())).collect();
    assert_eq!(sent, [(4, 72), (2, 72)]);
    s.acl.set_mirror(session(4, 20, 3));
    let lengths: Vec<usize> = (0..6)
        .flat_map(|_| run_with(&mut s, 1, &f, Offload::NONE, 1).0.tx)
        .filter(|(p, _, _)| *p == 4)
        .map(|(_, b, _)| b.len())
        .collect();
    assert_eq!(lengths, [20, 20], "one of three, 20 bytes of it");
    assert_eq!(s.acl.mirror(1).unwrap().packets, 3);
    // nobody is behind a port that is down
    s.acl.set_mirror(session(4, 0, 1));
    s.set_link(4, false).unwrap();
    let sent = |s: &State| {
        let copies = s.acl.mirror(1).unwrap().packets;
        (copies, s.counters.port(4).unwrap().tx.packets)
    };
    let before = sent(&s);
    assert_eq!(run(&mut s, 1, &f), Tx(vec![2]));
    assert_eq!(sent(&s), before);
    s.set_link(4, true).unwrap();
    // an analyser port with a list of its own is the kernel's to serve
    bind(&mut s, 4, AclStage::Egress);
    assert_eq!(run(&mut s, 1, &f), Cpu(raw::TND_TRAP_ACL));
    // to the CPU: a copy that nobody forwards again
    let mut s = bridge(2);
    let f = talk(&mut s);
    s.acl.set_mirror(session(0, 0, 1));
    let t = bind(&mut s, 2, AclStage::Egress);
    put(&mut s, t, e);
    let (out, answer) = run_with(&mut s, 1, &f, Offload::NONE, 1);
    assert_eq!(answer, Answer::Both(vec![2], raw::TND_TRAP_SAMPLE));
    let both = raw::TND_RX_L2_FORWARDED | raw::TND_RX_L3_FORWARDED;
    assert_eq!(out.cpu[0].0.flags, both);
    // what goes to the CPU anyway is not mirrored: the kernel does that
    let mut s = router(2);
    s.acl.set_mirror(session(2, 0, 1));
    let t = bind(&mut s, 1, PORT);
    put(&mut s, t, e);
    let local = udp4(router_mac(1), mac(1), [10, 0, 1, 9], [10, 0, 1, 1], 64, 30);
    assert_eq!(run(&mut s, 1, &local), Cpu(raw::TND_TRAP_LOCAL));
}

/// What is cut off is no packet for the CPU: a truncated sample of a super-frame is one.
#[test]
fn a_truncated_sample_is_one_packet() {
    let mut f = Vec::new();
    etherparse::PacketBuilder::ethernet2(mac(1), mac(2))
        .ipv4([10, 0, 1, 9], [10, 0, 2, 9], 64)
        .tcp(1, 2, 3, 4)
        .write(&mut f, &vec![1; 40_000])
        .unwrap();
    let off = Offload {
        gso: Some(Gso::Tcp4),
        gso_size: 1460,
        hdr_len: 54,
        ..Offload::NONE
    };
    for (truncate, least, most) in [(128, 1000, 1000), (0, 30, 50)] {
        let mut s = bridge(2);
        s.police.set_class(raw::TND_TC_DATA, 1000, 100);
        s.acl.set_mirror(Mirror {
            id: 1,
            truncate,
            rate: 1,
            ..Mirror::default()
        });
        let t = bind(&mut s, 2, AclStage::Egress);
        let e = raw::tnd_acl_entry {
            mirror: 1,
            ..rule(1, raw::TND_ACL_PERMIT)
        };
        put(&mut s, t, e);
        // as many super-frames a second as the class lets packets pass
        let samples = (0..1000).filter(|ms| {
            let mut b = Buffer::new();
            assert!(b.set(&f));
            let mut out = Out::default();
            crate::process(&mut s, &mut b.frame(off), 1, ms * 1_000_000, &mut out);
            !out.cpu.is_empty()
        });
        let samples = samples.count();
        assert!(
            (least..=most).contains(&samples),
            "{samples} of {truncate} bytes"
        );
        let packets = if truncate > 0 { 1 } else { 28 };
        let lost = (1000 - samples as u64) * packets;
        assert_eq!(s.police.lost(raw::TND_TRAP_SAMPLE), lost);
        let told = s.counters.traps[usize::from(raw::TND_TRAP_SAMPLE)].packets;
        assert_eq!(told, 1000 * packets);
        assert_eq!(s.counters.port(1).unwrap().copied, told);
    }
}

#[test]
fn a_rule_sets_vlan_and_priority() {
    use crate::state::{MemberConfig, VlanConfig};
    let mut s = state(3);
    ports_up(&mut s);
    for fid in [1, 2] {
        s.set_vlan(fid, VlanConfig::default()).unwrap();
        for port in 1..=3 {
            let flags = if fid == 1 { raw::TND_MEMBER_PVID } else { 0 };
            s.set_member(port, fid * 10, MemberConfig { fid, flags })
                .unwrap();
        }
    }
    let f = ether(mac(2), mac(1), 0x88b5, &[0; 46]);
    let t = bind(&mut s, 1, PORT);
    let tci = |s: &mut State, f: &[u8]| {
        let (out, answer) = run_with(s, 1, f, Offload::NONE, 1);
        assert_eq!(answer, Tx(vec![2, 3]));
        let all: Vec<u16> = out
            .tx
            .iter()
            .map(|(_, b, _)| u16::from_be_bytes([b[14], b[15]]))
            .collect();
        assert_eq!(all[0], all[1]);
        all[0]
    };
    assert_eq!(tci(&mut s, &f), 10);
    let set = |flags| raw::tnd_acl_entry {
        flags,
        vid: 20,
        pcp: 5,
        ..rule(1, raw::TND_ACL_PERMIT)
    };
    put(&mut s, t, set(raw::TND_ACL_SET_PCP));
    assert_eq!(tci(&mut s, &f), 5 << 13 | 10);
    assert_eq!(tci(&mut s, &tagged(f.clone(), 0x8100, 20)), 5 << 13 | 20);
    let other = tagged(f.clone(), 0x8100, 3 << 13 | 20);
    assert_eq!(tci(&mut s, &other), 5 << 13 | 20);
    put(&mut s, t, set(raw::TND_ACL_SET_VID));
    assert_eq!(tci(&mut s, &f), 20);
    assert_eq!(
        tci(&mut s, &tagged(f.clone(), 0x8100, 3 << 13 | 10)),
        3 << 13 | 20
    );
    // where tags are payload, the chip can't
    assert_eq!(
        run(&mut s, 1, &tagged(f, 0x88a8, 10)),
        Cpu(raw::TND_TRAP_ACL)
    );
}

#[test]
fn broken_headers_are_the_kernels() {
    let mut s = bridge(2);
    let mut f = talk(&mut s);
    bind(&mut s, 1, PORT);
    f[24] ^= 1;
    assert_eq!(run(&mut s, 1, &f), Cpu(raw::TND_TRAP_ERROR));
}

/// What a rule compares, read from a frame in the most direct way; an IPv6 packet has no extension headers here.
fn naive(frame: &[u8], port: u16) -> raw::tnd_acl_key {
    let be = |b: &[u8]| u16::from_be_bytes([b[0], b[1]]);
    let mut k = raw::tnd_acl_key {
        port,
        ..Default::default()
    };
    k.dst_mac.copy_from_slice(&frame[..6]);
    k.src_mac.copy_from_slice(&frame[6..12]);
    let mut rest = &frame[12..];
    if matches!(be(rest), 0x8100 | 0x88a8) {
        k.tag = if be(rest) == 0x8100 { 1 } else { 2 };
        k.tci = be(&rest[2..]);
        rest = &rest[4..];
    }
    k.ethertype = be(rest);
    let ip = &rest[2..];
    let l4 = match k.ethertype {
        0x0800 => {
            k.src_ip[..4].copy_from_slice(&ip[12..16]);
            k.dst_ip[..4].copy_from_slice(&ip[16..20]);
            (k.tos, k.ttl, k.protocol) = (ip[1], ip[8], ip[9]);
            let frag = be(&ip[6..]) & 0x3fff;
            if frag != 0 {
                k.fragment = if frag & 0x1fff == 0 { 3 } else { 1 };
                return k;
            }
            &ip[20..]
        }
        0x86dd => {
            k.src_ip.copy_from_slice(&ip[8..24]);
            k.dst_ip.copy_from_slice(&ip[24..40]);
            k.tos = (be(ip) >> 4) as u8;
            (k.ttl, k.protocol) = (ip[7], ip[6]);
            &ip[40..]
        }
        _ => return k,
    };
    if k.protocol == 6 || k.protocol == 17 {
        (k.src_port, k.dst_port) = (be(l4), be(&l4[2..]));
    }
    if k.protocol == 6 {
        k.tcp_flags = l4[13];
    }
    k
}

fn hits(e: &raw::tnd_acl_entry, k: &raw::tnd_acl_key) -> bool {
    let bytes = e.key.as_bytes().iter().zip(e.mask.as_bytes());
    let fields = bytes.zip(k.as_bytes()).all(|((v, m), k)| k & m == *v);
    let range = |low, high, port| (low, high) == (0, 0) || (low..=high).contains(&port);
    let named = |id: u32, port| {
        let (low, high) = NAMED[id.saturating_sub(1) as usize];
        id == 0 || (low..=high).contains(&port)
    };
    fields
        && range(e.src_port_min, e.src_port_max, k.src_port)
        && range(e.dst_port_min, e.dst_port_max, k.dst_port)
        && named(e.src_range, k.src_port)
        && named(e.dst_range, k.dst_port)
}

/// Ranges of the random rules by id, from 1; the ports of their frames are at the ends, inside and outside of them.
const NAMED: [(u16, u16); 4] = [(0, 1), (1, 2), (80, u16::MAX), (2, 4)];

/// A frame from a few numbers, so that rules made of other frames hit it.
fn frame(n: u32) -> Vec<u8> {
    let small = |shift: u32, of: u32| (n >> shift) % of;
    let (dst, src) = (mac(2), mac(1 + 2 * small(0, 2) as u16));
    let mut f = match small(1, 5) {
        0 => ether(dst, src, 0x88b5, &[0; 46]),
        1 => udp6(dst, src, ip6(1, small(4, 3) as u16), ip6(2, 1), 64, 4),
        2 => tcp4(
            dst,
            src,
            [10, 0, 0, small(4, 3) as u8],
            [10, 1, 0, 1],
            (small(6, 4) as u16, 80),
        ),
        3 => udp4(
            dst,
            src,
            [10, 0, 0, small(4, 3) as u8],
            [10, 1, 0, 1],
            64,
            4,
        ),
        _ => {
            let mut f = udp4(dst, src, [10, 0, 0, 1], [10, 1, 0, 1], 64, 4);
            let offset = small(4, 2) as u16 | 0x2000;
            f[20..22].copy_from_slice(&offset.to_be_bytes());
            f[24..26].fill(0);
            let sum = f[14..34]
                .chunks(2)
                .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
            let sum: u32 = sum.sum();
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            f[24..26].copy_from_slice(&sum.to_be_bytes());
            f
        }
    };
    if small(9, 3) == 0 {
        f = tagged(
            f,
            [0x8100, 0x88a8][small(11, 2) as usize],
            small(12, 3) as u16 + 1,
        );
    }
    f
}

/// A rule that looks at some fields of a frame.
fn like(k: &raw::tnd_acl_key, fields: u32, range: u16) -> raw::tnd_acl_entry {
    let mut e = raw::tnd_acl_entry::default();
    let m = &mut e.mask;
    let on = |bit: u32| fields >> bit & 1 != 0;
    if on(0) {
        m.dst_mac = [0xff; 6];
    }
    if on(1) {
        m.src_mac = [0, 0, 0, 0, 0, 0xff];
    }
    if on(2) {
        m.tci = 0x0fff;
    }
    if on(3) {
        m.tag = 0xff;
    }
    if on(4) {
        m.port = 0xffff;
    }
    let ip = matches!(k.ethertype, 0x0800 | 0x86dd);
    if on(5) || ip {
        m.ethertype = 0xffff;
    }
    if ip {
        let n = if k.ethertype == 0x0800 { 4 } else { 16 };
        if on(6) {
            m.src_ip[..n].fill(0xff);
        }
        if on(7) {
            m.dst_ip[..n - 1].fill(0xff);
        }
        if on(8) {
            m.protocol = 0xff;
        }
        if on(9) {
            m.src_port = 0xffff;
        }
        if on(10) {
            m.tcp_flags = 0x02;
        }
        if on(11) {
            m.fragment = 0xff;
        }
        if on(12) {
            m.ttl = 0xff;
        }
        if on(14) && !on(9) {
            e.src_range = 1 + (fields >> 16 & 3);
        }
        if on(15) && !on(13) {
            e.dst_range = 1 + (fields >> 18 & 3);
        }
        if on(13) {
            (e.dst_port_min, e.dst_port_max) =
                (range.min(k.dst_port), range.max(k.dst_port).max(1));
        }
    }
    e.key = *k;
    for (k, m) in e.key.as_mut_bytes().iter_mut().zip(e.mask.as_bytes()) {
        *k &= m;
    }
    e
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Random rules, random frames: every answer is that of the first rule from the top that matches what the naive
    /// reader sees.
    #[test]
    fn as_the_first_of_all_rules(
        rules in prop::collection::vec((0u32..40, any::<u32>(), any::<u32>(), any::<u16>(), 0u16..3), 0..40),
        frames in prop::collection::vec(any::<u32>(), 1..40),
    ) {
        let mut s = bridge(3);
        for n in [1, 2] {
            run(&mut s, n, &ether(mac(99), mac(n), 0x88b5, &[0; 46]));
        }
        run(&mut s, 2, &ether(mac(99), mac(2), 0x88b5, &[0; 46]));
        let t = bind(&mut s, 1, PORT);
        for (id, ports) in (1..).zip(NAMED) {
            // which port it is of the firmware looks at
            s.acl.add_range(AclRange { id, field: raw::TND_ACL_RANGE_DST, ports });
        }
        let mut model: std::collections::BTreeMap<u32, raw::tnd_acl_entry> = Default::default();
        for (priority, of, fields, range, action) in rules {
            let e = raw::tnd_acl_entry { priority, action, ..like(&naive(&frame(of), 1), fields, range) };
            put(&mut s, t, e);
            model.insert(priority, e);
        }
        for n in frames {
            let f = frame(n);
            let k = naive(&f, 1);
            let want = match model.values().find(|e| hits(e, &k)).map(|e| e.action) {
                Some(raw::TND_ACL_DROP) => Drop(DropReason::AclPort),
                Some(raw::TND_ACL_TRAP) => Cpu(raw::TND_TRAP_ACL),
                _ => Tx(vec![2]),
            };
            prop_assert_eq!(run(&mut s, 1, &f), want, "{:?}", k);
        }
    }
}

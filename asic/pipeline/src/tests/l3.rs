//! Routing.

use etherparse::{Ipv4Header, SlicedPacket};
use tandem_abi::raw;
use tandem_packet::{Gso, PartialChecksum, checksum};
use tandem_tables::exact::Key;

use crate::entry::{Action, HostValue, RouteTarget};
use crate::state::{GroupConfig, HashPolicy, NexthopConfig, RifPlace, VlanConfig};
use crate::testkit::Answer::{Both, Cpu, Drop, Tx};
use crate::testkit::*;
use crate::{DropReason, Offload, State};

const HOST1: [u8; 4] = [10, 0, 1, 9];

pub fn to(dst: [u8; 4]) -> Vec<u8> {
    udp4(router_mac(1), mac(1), HOST1, dst, 64, 40)
}

fn from(src: [u8; 4]) -> Vec<u8> {
    udp4(router_mac(1), mac(1), src, [10, 0, 2, 9], 64, 40)
}

pub fn to6(dst: [u8; 16]) -> Vec<u8> {
    udp6(router_mac(1), mac(1), ip6(1, 9), dst, 64, 40)
}

pub fn rif_flags(s: &mut State, rif: u16, on: u32, off: u32) {
    let mut c = *s.rif(rif).unwrap();
    c.flags = c.flags & !off | on;
    s.set_rif(rif, c).unwrap();
}

fn patched(mut f: Vec<u8>, at: usize, v: u8, fix: bool) -> Vec<u8> {
    f[14 + at] = v;
    if fix {
        checksum::ip4_set(&mut f[14..34]);
    }
    f
}

fn nexthop(s: &mut State, id: u32, rif: u16, action: Action, reason: u16) {
    let c = NexthopConfig {
        rif,
        action,
        reason: reason as u8,
        mac: mac(rif),
    };
    s.set_nexthop(id, c).unwrap();
}

/// 20.0.0.0/8 over next hop 2, 20.1.0.0/16 trap, 20.2.0.0/16 blackhole, 20.3.0.0/16 over the unresolved next hop 33,
/// 20.4.0.0/16 over next hop 1 (back where it came from).
fn routes(s: &mut State) {
    nexthop(s, 33, 3, Action::Trap, raw::TND_TRAP_UNRESOLVED);
    nexthop(s, 34, 3, Action::Drop, 0);
    let nh = |s: &State, id| RouteTarget::Nexthop(s.nexthop_slot(id).unwrap());
    let (n1, n2, n33, n34) = (nh(s, 1), nh(s, 2), nh(s, 33), nh(s, 34));
    route4(s, [20, 0, 0, 0], 8, n2);
    let trap = RouteTarget::Trap(raw::TND_TRAP_ROUTE as u8);
    route4(s, [20, 1, 0, 0], 16, trap);
    route4(s, [20, 2, 0, 0], 16, RouteTarget::Drop);
    route4(s, [20, 3, 0, 0], 16, n33);
    route4(s, [20, 4, 0, 0], 16, n1);
    route4(s, [20, 5, 0, 0], 16, n34);
    let host = HostValue {
        rif: 2,
        action: Action::Trap,
        mac: mac(2),
    };
    let key = |last| Key::Host4 {
        vrf: 0,
        addr: [10, 0, 2, last],
    };
    s.exact.insert(key(77), host.pack(), 0).unwrap();
    let drop = HostValue {
        action: Action::Drop,
        ..host
    };
    s.exact.insert(key(78), drop.pack(), 0).unwrap();
}

pub type Case = (
    &'static str,
    fn(&mut State),
    Vec<u8>,
    crate::testkit::Answer,
);

#[test]
fn answers_ip4() {
    let arp = ether(router_mac(1), mac(1), 0x0806, &[0; 46]);
    let arp_request = ether([0xff; 6], mac(1), 0x0806, &[0; 46]);
    let mut options = to([10, 0, 2, 9]);
    options[14] = 0x46;
    options.splice(34..34, [1, 1, 1, 0]);
    let len = (options.len() - 14) as u16;
    options[16..18].copy_from_slice(&len.to_be_bytes());
    checksum::ip4_set(&mut options[14..38]);
    let ospf = patched(
        udp4([1, 0, 0x5e, 0, 0, 5], mac(1), HOST1, [224, 0, 0, 5], 1, 40),
        9,
        89,
        true,
    );
    let cases: Vec<Case> = vec![
        ("host entry", |_| (), to([10, 0, 2, 9]), Tx(vec![2])),
        ("route", |_| (), to([20, 9, 9, 9]), Tx(vec![2])),
        (
            "trap route",
            |_| (),
            to([20, 1, 9, 9]),
            Cpu(raw::TND_TRAP_ROUTE),
        ),
        (
            "blackhole",
            |_| (),
            to([20, 2, 9, 9]),
            Drop(DropReason::Blackhole),
        ),
        (
            "unresolved",
            |_| (),
            to([20, 3, 9, 9]),
            Cpu(raw::TND_TRAP_UNRESOLVED),
        ),
        (
            "next hop drops",
            |_| (),
            to([20, 5, 9, 9]),
            Drop(DropReason::NexthopDrop),
        ),
        (
            "back by the same RIF",
            |_| (),
            to([20, 4, 9, 9]),
            Both(vec![1], raw::TND_TRAP_REDIRECT),
        ),
        (
            "back by the same RIF, no redirects",
            |s| rif_flags(s, 1, raw::TND_RIF_NO_REDIRECT, 0),
            to([20, 4, 9, 9]),
            Tx(vec![1]),
        ),
        (
            "connected, unknown host",
            |_| (),
            to([10, 0, 2, 50]),
            Cpu(raw::TND_TRAP_CONNECTED),
        ),
        (
            "host traps",
            |_| (),
            to([10, 0, 2, 77]),
            Cpu(raw::TND_TRAP_UNRESOLVED),
        ),
        (
            "host drops",
            |_| (),
            to([10, 0, 2, 78]),
            Drop(DropReason::HostDrop),
        ),
        (
            "no route",
            |_| (),
            to([99, 0, 0, 1]),
            Cpu(raw::TND_TRAP_LPM_MISS),
        ),
        (
            "own address",
            |_| (),
            to([10, 0, 2, 1]),
            Cpu(raw::TND_TRAP_LOCAL),
        ),
        (
            "BGP to an own address",
            |_| (),
            tcp4(router_mac(1), mac(1), HOST1, [10, 0, 1, 1], (179, 40000)),
            Cpu(raw::TND_TRAP_ROUTING),
        ),
        (
            "BGP through us is data",
            |_| (),
            tcp4(router_mac(1), mac(1), HOST1, [20, 0, 0, 1], (179, 40000)),
            Tx(vec![2]),
        ),
        (
            "own address, RIF traps all",
            |s| rif_flags(s, 1, raw::TND_RIF_TRAP_ALL, 0),
            to([10, 0, 2, 1]),
            Cpu(raw::TND_TRAP_LOCAL),
        ),
        (
            "RIF traps all",
            |s| rif_flags(s, 1, raw::TND_RIF_TRAP_ALL, 0),
            to([10, 0, 2, 9]),
            Cpu(raw::TND_TRAP_UNSUPPORTED),
        ),
        (
            "forwarding off",
            |s| rif_flags(s, 1, 0, raw::TND_RIF_V4),
            to([10, 0, 2, 9]),
            Cpu(raw::TND_TRAP_UNSUPPORTED),
        ),
        (
            "egress RIF's flags do not matter",
            |s| rif_flags(s, 2, raw::TND_RIF_TRAP_ALL, raw::TND_RIF_V4),
            to([10, 0, 2, 9]),
            Tx(vec![2]),
        ),
        (
            "TTL 1",
            |_| (),
            patched(to([10, 0, 2, 9]), 8, 1, true),
            Cpu(raw::TND_TRAP_TTL),
        ),
        (
            "TTL 0",
            |_| (),
            patched(to([10, 0, 2, 9]), 8, 0, true),
            Cpu(raw::TND_TRAP_TTL),
        ),
        (
            "TTL 2",
            |_| (),
            patched(to([10, 0, 2, 9]), 8, 2, true),
            Tx(vec![2]),
        ),
        (
            "blackhole before TTL",
            |_| (),
            patched(to([20, 2, 9, 9]), 8, 1, true),
            Drop(DropReason::Blackhole),
        ),
        (
            "MTU",
            |s| {
                let c = *s.rif(2).unwrap();
                s.set_rif(2, crate::state::RifConfig { mtu: 67, ..c })
                    .unwrap();
            },
            to([10, 0, 2, 9]),
            Cpu(raw::TND_TRAP_MTU),
        ),
        (
            "MTU just fits",
            |s| {
                let c = *s.rif(2).unwrap();
                s.set_rif(2, crate::state::RifConfig { mtu: 68, ..c })
                    .unwrap();
            },
            to([10, 0, 2, 9]),
            Tx(vec![2]),
        ),
        (
            "egress down",
            |s| s.set_link(2, false).unwrap(),
            to([10, 0, 2, 9]),
            Drop(DropReason::EgressDown),
        ),
        (
            "bad checksum",
            |_| (),
            patched(to([10, 0, 2, 9]), 10, 0, false),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "bad version",
            |_| (),
            patched(to([10, 0, 2, 9]), 0, 0x65, true),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "bad header length",
            |_| (),
            patched(to([10, 0, 2, 9]), 0, 0x44, true),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "total length beyond the frame",
            |_| (),
            patched(to([10, 0, 2, 9]), 3, 0xff, true),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "total length one beyond the frame",
            |_| (),
            patched(to([10, 0, 2, 9]), 3, 69, true),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "truncated",
            |_| (),
            to([10, 0, 2, 9])[..30].to_vec(),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "header only of Ethernet",
            |_| (),
            to([10, 0, 2, 9])[..14].to_vec(),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        ("options", |_| (), options, Cpu(raw::TND_TRAP_OPTIONS)),
        (
            "first fragment",
            |_| (),
            patched(to([10, 0, 2, 9]), 6, 0x20, true),
            Tx(vec![2]),
        ),
        (
            "later fragment",
            |_| (),
            patched(to([10, 0, 2, 9]), 7, 3, true),
            Tx(vec![2]),
        ),
        (
            "source 0/8",
            |_| (),
            from([0, 1, 2, 3]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source loopback",
            |_| (),
            from([127, 0, 0, 1]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source multicast",
            |_| (),
            from([224, 0, 0, 1]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source broadcast",
            |_| (),
            from([255; 4]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source is ours",
            |_| (),
            from([10, 0, 2, 1]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source of class E",
            |_| (),
            from([240, 0, 0, 1]),
            Tx(vec![2]),
        ),
        (
            "source link-local",
            |_| (),
            from([169, 254, 0, 1]),
            Tx(vec![2]),
        ),
        (
            "destination multicast",
            |_| (),
            to([239, 1, 1, 1]),
            Cpu(raw::TND_TRAP_L2_MULTICAST),
        ),
        (
            "destination broadcast",
            |_| (),
            to([255; 4]),
            Cpu(raw::TND_TRAP_BROADCAST),
        ),
        (
            "destination loopback",
            |_| (),
            to([127, 0, 0, 1]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        ("ARP reply", |_| (), arp, Cpu(raw::TND_TRAP_ARP)),
        ("ARP request", |_| (), arp_request, Cpu(raw::TND_TRAP_ARP)),
        ("OSPF hello", |_| (), ospf, Cpu(raw::TND_TRAP_ROUTING)),
        (
            "LLDP",
            |_| (),
            ether([1, 0x80, 0xc2, 0, 0, 0x0e], mac(1), 0x88cc, &[0; 46]),
            Cpu(raw::TND_TRAP_LINK_PROTO),
        ),
        (
            "not IP",
            |_| (),
            ether(router_mac(1), mac(1), 0x88b5, &[0; 46]),
            Cpu(raw::TND_TRAP_L2_LOCAL),
        ),
        (
            "foreign address",
            |_| (),
            udp4(mac(5), mac(1), HOST1, [10, 0, 2, 9], 9, 9),
            Drop(DropReason::OtherHost),
        ),
        (
            "tagged",
            |_| (),
            tagged(to([10, 0, 2, 9]), 0x8100, 5),
            Cpu(raw::TND_TRAP_UNSUPPORTED),
        ),
        (
            "tagged, foreign",
            |_| (),
            tagged(ether(mac(5), mac(1), 0x800, &[0; 46]), 0x8100, 5),
            Drop(DropReason::OtherHost),
        ),
        (
            "priority-tagged",
            |_| (),
            tagged(to([10, 0, 2, 9]), 0x8100, 0xe000),
            Tx(vec![2]),
        ),
        (
            "no RIF on the port",
            |s| {
                s.remove_rif(1);
            },
            to([10, 0, 2, 9]),
            Cpu(raw::TND_TRAP_L2_LOCAL),
        ),
        (
            "egress RIF gone",
            |s| {
                s.remove_rif(2);
            },
            to([10, 0, 2, 9]),
            Cpu(raw::TND_TRAP_ROUTE),
        ),
        // loose reverse path filter
        (
            "loose, connected source",
            |s| rif_flags(s, 1, raw::TND_RIF_RPF_LOOSE, 0),
            from([10, 0, 3, 200]),
            Tx(vec![2]),
        ),
        (
            "loose, routed source",
            |s| rif_flags(s, 1, raw::TND_RIF_RPF_LOOSE, 0),
            from([20, 9, 9, 9]),
            Tx(vec![2]),
        ),
        (
            "loose, no route",
            |s| rif_flags(s, 1, raw::TND_RIF_RPF_LOOSE, 0),
            from([99, 1, 1, 1]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "loose, blackholed source",
            |s| rif_flags(s, 1, raw::TND_RIF_RPF_LOOSE, 0),
            from([20, 2, 1, 1]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "loose, source's route traps",
            |s| rif_flags(s, 1, raw::TND_RIF_RPF_LOOSE, 0),
            from([20, 1, 1, 1]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "no filter, no route",
            |_| (),
            from([99, 1, 1, 1]),
            Tx(vec![2]),
        ),
    ];
    for (name, change, frame, want) in cases {
        let mut s = router(3);
        routes(&mut s);
        change(&mut s);
        let got = run(&mut s, 1, &frame);
        assert_eq!(got, want, "{name}");
        // the trace says the same
        let mut s = router(3);
        routes(&mut s);
        change(&mut s);
        let t = crate::trace::trace(&mut s, &frame, 1, 0);
        match want {
            Tx(ports) => assert_eq!(t.tx.iter().map(|t| t.0).collect::<Vec<_>>(), ports),
            Cpu(reason) => assert_eq!(t.cpu[0].reason, reason, "{name}"),
            Drop(reason) => {
                assert_eq!(t.lines.last().unwrap().text, format!("drop: {reason}"));
            }
            Both(ports, reason) => {
                assert_eq!(t.tx.iter().map(|t| t.0).collect::<Vec<_>>(), ports);
                assert_eq!(t.cpu[0].reason, reason, "{name}");
            }
        }
    }
}

/// What leaves has new addresses, one hop less, a right checksum, no padding, and the payload as it was.
#[test]
fn rewrite() {
    let mut s = router(3);
    let f = to([10, 0, 2, 9]);
    let mut padded = f.clone();
    padded.extend([0xee; 7]);
    for (name, input) in [
        ("plain", f.clone()),
        ("padded", padded),
        ("priority tag", tagged(f.clone(), 0x8100, 0xa000)),
    ] {
        let (port, out) = run_out(&mut s, 1, &input);
        assert_eq!(port, 2, "{name}");
        assert_eq!(out.len(), f.len(), "{name}");
        assert_eq!(out[..6], mac(2));
        assert_eq!(out[6..12], router_mac(2));
        let (h, payload) = Ipv4Header::from_slice(&out[14..]).unwrap();
        assert_eq!(h.time_to_live, 63);
        assert_eq!(h.header_checksum, h.calc_header_checksum());
        assert_eq!(payload, &f[34..]);
    }
    let f = to6(ip6(2, 9));
    let mut padded = f.clone();
    padded.extend([0xee; 7]);
    let (_, out) = run_out(&mut s, 1, &padded);
    assert_eq!(out.len(), f.len());
    assert_eq!(out[21], 63);
    assert_eq!(out[22..], f[22..]);
    assert!(SlicedPacket::from_ethernet(&out).is_ok());
    let c = s.counters.port(1).unwrap();
    assert_eq!((c.l3_forwarded, c.l2_forwarded, c.trapped), (4, 0, 0));
}

/// Every flow keeps its path; shares follow the weights; flows of an unresolved member go to the CPU, the others do not.
#[test]
fn multipath() {
    let mut s = router(4);
    nexthop(&mut s, 44, 4, Action::Trap, raw::TND_TRAP_UNRESOLVED);
    let config = GroupConfig {
        hash: HashPolicy::L4,
        members: vec![(2, 1), (3, 2), (44, 1)],
    };
    let slot = s.set_nhg(9, &config).unwrap();
    route4(&mut s, [30, 0, 0, 0], 8, RouteTarget::Group(slot));
    let flow = |n: u32| {
        let [a, b, c, d] = (0x1e00_0000 + n).to_be_bytes();
        to([a, b, c, d])
    };
    let mut hits = [0u32; 5];
    for n in 0..10_000 {
        let first = run(&mut s, 1, &flow(n));
        match &first {
            Tx(ports) => hits[usize::from(ports[0])] += 1,
            Cpu(raw::TND_TRAP_UNRESOLVED) => hits[4] += 1,
            other => panic!("{other:?}"),
        }
        if n % 10 == 0 {
            assert_eq!(run(&mut s, 1, &flow(n)), first);
        }
    }
    for (port, want) in [(2, 2500), (3, 5000), (4, 2500)] {
        let off = (f64::from(hits[port]) - f64::from(want)).abs() / f64::from(want);
        assert!(off < 0.05, "{hits:?}");
    }
    // what left is counted by member; what went to the CPU is the kernel's to count
    let leaves = (0..100).find(|n| matches!(run(&mut s, 1, &flow(*n)), Tx(_)));
    let leaves = leaves.unwrap();
    let counted = s.nhg(9).unwrap().packets().to_vec();
    assert_eq!(
        counted.iter().sum::<u64>(),
        s.counters.port(1).unwrap().l3_forwarded
    );
    assert!(
        counted[0] >= hits[2].into() && counted[1] >= hits[3].into() && counted[2] == 0,
        "{counted:?}"
    );
    // TTL 1: to the CPU after the choice
    assert_eq!(
        run(&mut s, 1, &patched(flow(leaves), 8, 1, true)),
        Cpu(raw::TND_TRAP_TTL)
    );
    assert_eq!(s.nhg(9).unwrap().packets(), counted);
    // resolved: one update of the next hop, and the same flows leave
    nexthop(&mut s, 44, 4, Action::Forward, 0);
    let mut left = 0;
    for n in 0..10_000 {
        left += u32::from(run(&mut s, 1, &flow(n)) == Tx(vec![4]));
    }
    assert_eq!(left, hits[4]);
    assert!(s.take_nexthop_active(44) && !s.take_nexthop_active(44));
}

/// A router interface on a bridge: into it by the router MAC, out of it by FDB, by flooding, or to the CPU.
#[test]
fn bridge_interface() {
    let mut s = bridge(4);
    s.remove_member(4, raw::TND_VID_ANY);
    add_rif(&mut s, 1, RifPlace::Fid(1));
    add_rif(&mut s, 4, RifPlace::Port(4));
    // from the bridge to the routed port
    let f = udp4(router_mac(1), mac(77), HOST1, [10, 0, 4, 9], 9, 9);
    assert_eq!(run(&mut s, 2, &f), Tx(vec![4]));
    assert!(s.exact.get_mac(1, mac(77)).is_some(), "source learned");
    // from the routed port into the bridge: unknown, flooded to all members
    let f = udp4(router_mac(4), mac(4), [10, 0, 4, 9], HOST1, 9, 9);
    assert_eq!(run(&mut s, 4, &f), Tx(vec![1, 2, 3]));
    fdb(&mut s, 1, mac(1), 3, Action::Forward, 0);
    assert_eq!(run(&mut s, 4, &f), Tx(vec![3]));
    // isolation and split horizon are for bridged frames
    port_flags(&mut s, 3, raw::TND_PORT_ISOLATED, 0);
    port_flags(&mut s, 4, raw::TND_PORT_ISOLATED, 0);
    assert_eq!(run(&mut s, 4, &f), Tx(vec![3]));
    // its port was taken out of service, or has left: the CPU gets it as it came
    let c = s.port(3).unwrap().config;
    let stp_state = raw::TND_STP_DISABLED;
    let shut = crate::state::PortConfig { stp_state, ..c };
    s.set_port(3, shut).unwrap();
    // and stays so
    assert_eq!(run(&mut s, 4, &f), Drop(DropReason::StpEgress));
    port_flags(&mut s, 3, raw::TND_PORT_TRAP_ALL, 0);
    assert_eq!(run(&mut s, 4, &f), Cpu(raw::TND_TRAP_FDB_INCOMPLETE));
    s.set_port(3, c).unwrap();
    fdb(&mut s, 1, mac(1), 4, Action::Forward, 0);
    assert_eq!(run(&mut s, 4, &f), Cpu(raw::TND_TRAP_FDB_INCOMPLETE));
    fdb(&mut s, 1, mac(1), 0, Action::Trap, 0);
    assert_eq!(run(&mut s, 4, &f), Cpu(raw::TND_TRAP_L2_LOCAL));
    fdb(&mut s, 1, mac(1), 0, Action::Drop, 0);
    assert_eq!(run(&mut s, 4, &f), Drop(DropReason::FdbDrop));
    s.exact.remove(&Key::Mac {
        fid: 1,
        mac: mac(1),
    });
    let flags = raw::TND_VLAN_UC_TRAP;
    s.set_vlan(1, VlanConfig { flags, ageing_s: 0 }).unwrap();
    assert_eq!(run(&mut s, 4, &f), Cpu(raw::TND_TRAP_FDB_INCOMPLETE));
}

/// A super-frame passes whole; its MTU is that of its segments.
#[test]
fn super_frames_pass_whole() {
    let mut s = router(3);
    let mut f = Vec::new();
    etherparse::PacketBuilder::ethernet2(mac(1), router_mac(1))
        .ipv4(HOST1, [10, 0, 2, 9], 64)
        .tcp(1, 2, 3, 4)
        .write(&mut f, &vec![1; 40_000])
        .unwrap();
    let off = Offload {
        csum: Some(PartialChecksum {
            start: 34,
            offset: 16,
        }),
        gso: Some(Gso::Tcp4),
        gso_size: 1460,
        hdr_len: 54,
        ecn: false,
        data_valid: false,
    };
    let (out, answer) = run_with(&mut s, 1, &f, off, 0);
    assert_eq!(answer, Tx(vec![2]));
    assert_eq!(out.tx[0].2, off);
    assert_eq!(out.tx[0].1.len(), f.len());
    let (h, _) = Ipv4Header::from_slice(&out.tx[0].1[14..]).unwrap();
    assert_eq!(h.header_checksum, h.calc_header_checksum());
    let c = s.counters.port(2).unwrap().tx;
    assert_eq!(c.packets, 28);
    assert_eq!(c.bytes, 40_000 + 28 * 54);
    // one byte more per segment does not fit
    let off = Offload {
        gso_size: 1461,
        ..off
    };
    assert_eq!(run_with(&mut s, 1, &f, off, 0).1, Cpu(raw::TND_TRAP_MTU));
}

#[test]
fn activity_is_seen_once() {
    let mut s = router(2);
    routes_active(&mut s);
}

fn routes_active(s: &mut State) {
    let slot = s.nexthop_slot(2).unwrap();
    route4(s, [20, 0, 0, 0], 8, RouteTarget::Nexthop(slot));
    run(s, 1, &to([20, 0, 0, 1]));
    run(s, 1, &to([10, 0, 2, 9]));
    let route = s.lpm4.get(0, 0x1400_0000, 8).unwrap().id;
    assert!(s.lpm4.take_active(route) && !s.lpm4.take_active(route));
    let host = Key::Host4 {
        vrf: 0,
        addr: [10, 0, 2, 9],
    };
    let host = s.exact.get(&host).unwrap().id;
    assert!(s.exact.take_active(host) && !s.exact.take_active(host));
    assert!(s.take_nexthop_active(2) && !s.take_nexthop_active(1));
}

/// VLAN interfaces on ports: in by the tag's VID, out with the tag of theirs; everything else of that port is as before.
#[test]
fn vlan_interfaces_on_ports() {
    let mut s = router(3);
    // RIF 4 is VLAN 10 of port 1, RIF 5 VLAN 20 of it
    add_rif(&mut s, 4, RifPlace::PortVlan(1, 10));
    add_rif(&mut s, 5, RifPlace::PortVlan(1, 20));
    let packet = |rif, to| udp4(router_mac(rif), mac(rif), [10, 0, rif as u8, 9], to, 64, 40);
    let tag = |f: &[u8]| (f[12] == 0x81).then(|| u16::from_be_bytes([f[14], f[15]]));
    // untagged to tagged: priority 0, as a VLAN interface sends
    let (port, out) = run_out(&mut s, 2, &packet(2, [10, 0, 4, 9]));
    assert_eq!((port, tag(&out)), (1, Some(10)));
    assert_eq!(out[..6], mac(4));
    assert_eq!(out[6..12], router_mac(4));
    assert_eq!(out[16..18], [8, 0]);
    let (h, _) = Ipv4Header::from_slice(&out[18..]).unwrap();
    assert_eq!(h.time_to_live, 63);
    assert_eq!(h.header_checksum, h.calc_header_checksum());
    // tagged to untagged: the tag ends here
    let f = tagged(packet(4, [10, 0, 2, 9]), 0x8100, 0xe00a);
    let (port, out) = run_out(&mut s, 1, &f);
    assert_eq!((port, tag(&out)), (2, None));
    assert_eq!(out.len(), f.len() - 4);
    // between VLANs of one port: no redirect, the priority of the old tag is not kept
    let f = tagged(packet(4, [10, 0, 5, 9]), 0x8100, 0xe00a);
    let (port, out) = run_out(&mut s, 1, &f);
    assert_eq!((port, tag(&out)), (1, Some(20)));
    // counted with the tag, as bytes of the wire are
    let before = s.counters.port(1).unwrap().tx.bytes;
    run(&mut s, 2, &packet(2, [10, 0, 4, 9]));
    let bytes = s.counters.port(1).unwrap().tx.bytes - before;
    assert_eq!(bytes as usize, packet(2, [10, 0, 4, 9]).len() + 4);
    assert_eq!(s.counters.port(2).unwrap().l3_forwarded, 2);

    let plain = || packet(4, [10, 0, 2, 9]);
    for (name, frame, want) in [
        (
            "no interface",
            tagged(plain(), 0x8100, 30),
            Drop(DropReason::OtherHost),
        ),
        (
            "other TPID",
            tagged(plain(), 0x88a8, 10),
            Drop(DropReason::OtherHost),
        ),
        (
            "not to it",
            tagged(packet(5, [10, 0, 2, 9]), 0x8100, 10),
            Drop(DropReason::OtherHost),
        ),
        ("untagged", plain(), Drop(DropReason::OtherHost)),
        (
            "back",
            tagged(packet(4, [10, 0, 4, 9]), 0x8100, 10),
            Both(vec![1], raw::TND_TRAP_REDIRECT),
        ),
        (
            "own address",
            tagged(packet(4, [10, 0, 4, 1]), 0x8100, 10),
            Cpu(raw::TND_TRAP_LOCAL),
        ),
        (
            "two tags",
            tagged(tagged(plain(), 0x8100, 7), 0x8100, 10),
            Cpu(raw::TND_TRAP_L2_LOCAL),
        ),
        (
            "broadcast",
            tagged(
                udp4([0xff; 6], mac(4), [10, 0, 4, 9], [255; 4], 64, 9),
                0x8100,
                10,
            ),
            Cpu(raw::TND_TRAP_BROADCAST),
        ),
    ] {
        assert_eq!(run(&mut s, 1, &frame), want, "{name}");
    }
    // too large for the VLAN interface, not for its port
    let mut c = *s.rif(4).unwrap();
    c.mtu = 1000;
    s.set_rif(4, c).unwrap();
    let f = udp4(
        router_mac(2),
        mac(2),
        [10, 0, 2, 9],
        [10, 0, 4, 9],
        64,
        1000,
    );
    assert_eq!(run(&mut s, 2, &f), Cpu(raw::TND_TRAP_MTU));
    // gone: what comes for it goes to the CPU if the port has its address, and nothing leaves by it
    assert!(s.remove_rif(4));
    assert_eq!(
        run(&mut s, 2, &packet(2, [10, 0, 4, 9])),
        Cpu(raw::TND_TRAP_ROUTE)
    );
    let f = tagged(packet(1, [10, 0, 2, 9]), 0x8100, 10);
    s.set_port(
        1,
        crate::state::PortConfig {
            mac: router_mac(1),
            ..s.port(1).unwrap().config
        },
    )
    .unwrap();
    assert_eq!(run(&mut s, 1, &f), Cpu(raw::TND_TRAP_UNSUPPORTED));
}

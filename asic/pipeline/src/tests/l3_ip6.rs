//! Routing of IPv6.

use tandem_abi::raw;

use super::l3::{Case, rif_flags, to6};
use crate::Mac;
use crate::entry::RouteTarget;
use crate::testkit::Answer::{Both, Cpu, Tx};
use crate::testkit::*;

fn from6(src: [u8; 16]) -> Vec<u8> {
    udp6(router_mac(1), mac(1), src, ip6(2, 9), 64, 40)
}

#[test]
fn answers() {
    let ns = |dst: [u8; 16], dst_mac: Mac| {
        let mut v = udp6(dst_mac, mac(1), ip6(1, 9), dst, 255, 24);
        v[14 + 6] = 58;
        v[54] = 135;
        v
    };
    let mut ll = [0; 16];
    ll[0] = 0xfe;
    ll[1] = 0x80;
    ll[15] = 9;
    let mut hbh = to6(ip6(2, 9));
    hbh[14 + 6] = 0;
    hbh[54..62].copy_from_slice(&[17, 0, 5, 2, 0, 0, 1, 0]);
    let mut mapped = [0; 16];
    mapped[10] = 0xff;
    mapped[11] = 0xff;
    mapped[15] = 1;
    let mut loopback = [0; 16];
    loopback[15] = 1;
    let mut group = [0; 16];
    group[0] = 0xff;
    group[1] = 5;
    let mut short = to6(ip6(2, 9));
    short[14 + 4] = 9;
    let mut longer = to6(ip6(2, 9));
    longer[14 + 5] += 1;
    // OSPFv3 behind an authentication header: to all its routers, and to one of them
    let mut all_routers = [0; 16];
    (all_routers[0], all_routers[1], all_routers[15]) = (0xff, 2, 5);
    let ospf = |dst: [u8; 16], dst_mac: Mac, protocol: u8| {
        let mut v = udp6(dst_mac, mac(1), ll, dst, 1, 40);
        v[14 + 6] = 51;
        (v[54], v[55]) = (protocol, 4);
        v
    };
    let cases: Vec<Case> = vec![
        (
            "OSPFv3 with AH",
            |_| (),
            ospf(all_routers, [0x33, 0x33, 0, 0, 0, 5], 89),
            Cpu(raw::TND_TRAP_ROUTING),
        ),
        (
            "OSPFv3 with AH to its router MAC",
            |_| (),
            ospf(all_routers, router_mac(1), 89),
            Cpu(raw::TND_TRAP_ROUTING),
        ),
        (
            "OSPFv3 with AH to an own address",
            |_| (),
            ospf(ip6(1, 1), router_mac(1), 89),
            Cpu(raw::TND_TRAP_ROUTING),
        ),
        (
            "anything else with AH",
            |_| (),
            ospf(ip6(1, 1), router_mac(1), 50),
            Cpu(raw::TND_TRAP_LOCAL),
        ),
        ("host entry", |_| (), to6(ip6(2, 9)), Tx(vec![2])),
        ("route", |_| (), to6(ip6(0x50, 1)), Tx(vec![2])),
        (
            "no route",
            |_| (),
            to6([0x30; 16]),
            Cpu(raw::TND_TRAP_LPM_MISS),
        ),
        (
            "connected",
            |_| (),
            to6(ip6(2, 50)),
            Cpu(raw::TND_TRAP_CONNECTED),
        ),
        (
            "own address",
            |_| (),
            to6(ip6(2, 1)),
            Cpu(raw::TND_TRAP_LOCAL),
        ),
        (
            "ND to an own address",
            |_| (),
            ns(ip6(1, 1), router_mac(1)),
            Cpu(raw::TND_TRAP_ND),
        ),
        (
            "ND to link-local",
            |_| (),
            ns(ll, router_mac(1)),
            Cpu(raw::TND_TRAP_ND),
        ),
        (
            "ND to a group",
            |_| (),
            ns(group, [0x33, 0x33, 0, 0, 0, 1]),
            Cpu(raw::TND_TRAP_ND),
        ),
        (
            "link-local destination",
            |_| (),
            to6(ll),
            Cpu(raw::TND_TRAP_LOCAL),
        ),
        (
            "hop limit 1",
            |_| (),
            udp6(router_mac(1), mac(1), ip6(1, 9), ip6(2, 9), 1, 9),
            Cpu(raw::TND_TRAP_TTL),
        ),
        ("hop-by-hop", |_| (), hbh, Cpu(raw::TND_TRAP_OPTIONS)),
        (
            "source loopback",
            |_| (),
            from6(loopback),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source v4-mapped",
            |_| (),
            from6(mapped),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source multicast",
            |_| (),
            from6(group),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source link-local, through us",
            |_| (),
            from6(ll),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source unspecified, through us",
            |_| (),
            from6([0; 16]),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "source link-local, to us",
            |_| (),
            udp6(router_mac(1), mac(1), ll, ip6(1, 1), 64, 9),
            Cpu(raw::TND_TRAP_LOCAL),
        ),
        (
            "destination loopback",
            |_| (),
            to6(loopback),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "destination v4-mapped",
            |_| (),
            to6(mapped),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "destination multicast",
            |_| (),
            to6(group),
            Cpu(raw::TND_TRAP_L2_MULTICAST),
        ),
        (
            "forwarding off",
            |s| rif_flags(s, 1, 0, raw::TND_RIF_V6),
            to6(ip6(2, 9)),
            Cpu(raw::TND_TRAP_UNSUPPORTED),
        ),
        (
            "traps all",
            |s| rif_flags(s, 1, raw::TND_RIF_TRAP_ALL, 0),
            to6(ip6(2, 9)),
            Cpu(raw::TND_TRAP_UNSUPPORTED),
        ),
        (
            "back by the same RIF is owed a redirect",
            |s| rif_flags(s, 1, raw::TND_RIF_NO_REDIRECT, 0),
            to6(ip6(1, 9)),
            Both(vec![1], raw::TND_TRAP_REDIRECT),
        ),
        (
            "payload length beyond the frame",
            |_| (),
            short,
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "payload length one beyond the frame",
            |_| (),
            longer,
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "truncated",
            |_| (),
            to6(ip6(2, 9))[..40].to_vec(),
            Cpu(raw::TND_TRAP_ERROR),
        ),
        (
            "MTU",
            |s| {
                let c = *s.rif(2).unwrap();
                s.set_rif(2, crate::state::RifConfig { mtu: 87, ..c })
                    .unwrap();
            },
            to6(ip6(2, 9)),
            Cpu(raw::TND_TRAP_MTU),
        ),
    ];
    for (name, change, frame, want) in cases {
        let mut s = router(3);
        let slot = s.nexthop_slot(2).unwrap();
        let net = u128::from_be_bytes(ip6(0x50, 0));
        s.lpm6
            .insert(0, net, 48, RouteTarget::Nexthop(slot).pack())
            .unwrap();
        change(&mut s);
        assert_eq!(run(&mut s, 1, &frame), want, "{name}");
    }
}

//! Settings that change the kernel's answer without being routes: each makes the chip say the same, or nothing.

use crate::common::*;
use std::collections::BTreeSet;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

const BR: u32 = 30;

fn bridge() -> Link {
    Link {
        ifindex: BR,
        name: "br0".into(),
        kind: LinkKind::Bridge(BridgeInfo {
            vlan_filtering: false,
            mcast_snooping: true,
            ageing_s: 300,
            ..BridgeInfo::default()
        }),
        mac: mac(200),
        ..swp(1)
    }
}

fn with_info(f: impl Fn(&mut BridgeInfo)) -> Object {
    let mut l = bridge();
    if let LinkKind::Bridge(i) = &mut l.kind {
        f(i);
    }
    Object::Link(l)
}

fn upper(kind: &str, m: [u8; 6]) -> Link {
    Link {
        ifindex: 40,
        name: "up0".into(),
        kind: LinkKind::Other(kind.into()),
        lower: BR,
        mac: m,
        ..swp(1)
    }
}

/// br0 (10.30.0.1/24) over swp1 and swp2; swp3 routed.
fn bridged() -> Rig {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.begin();
    r.up(Object::Link(bridge()));
    for n in 1..=2 {
        r.up(Object::Link(Link {
            master: BR,
            bridge_port: Some(BridgePort::default()),
            ..swp(n)
        }));
    }
    r.up(forwarding(Family::V4, ConfScope::Interface(BR)));
    r.up(addr(BR, "10.30.0.1/24"));
    r.up(via("10.30.0.0/24", BR, ""));
    interface(&mut r, 3);
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

/// What comes in on swp1 is the CPU's.
fn port_traps(r: &mut Rig) -> bool {
    r.settle();
    r.chip.ports[&1].flags & TND_PORT_TRAP_ALL != 0
}

/// Flags of the router interface with this MAC.
fn rif(r: &mut Rig, m: [u8; 6]) -> Option<u32> {
    r.settle();
    r.chip.rifs.values().find(|x| x.mac == m).map(|x| x.flags)
}

fn chain(family: u8, hook: u32, devices: &[&str]) -> Object {
    Object::BaseChain(BaseChain {
        family,
        table: "t".into(),
        name: "c".into(),
        hook,
        devices: devices.iter().map(ToString::to_string).collect(),
    })
}

fn no_chain(family: u8) -> Key {
    Key::BaseChain(family, "t".into(), "c".into())
}

fn settings() -> Settings {
    Settings {
        hash_policy_v4: 0,
        hash_policy_v6: 0,
        multipath_use_neigh: false,
        nf_call: NfCall::default(),
        arptables: false,
        iptables: false,
        unsupported: None,
    }
}

#[test]
fn ingress_chains_of_both_families_trap_their_ports() {
    let mut r = bridged();
    assert!(!port_traps(&mut r));
    for (family, hook, device) in [
        (5, 0, "swp1"),
        (1, 5, "swp1"),
        (5, 1, "swp1"),
        (1, 5, "sw*"),
    ] {
        r.up(chain(family, hook, &[device]));
        assert!(port_traps(&mut r), "{family} {hook} {device}");
        r.del(no_chain(family));
        assert!(!port_traps(&mut r));
    }
    r.up(chain(1, 5, &["eth7"]));
    assert!(!port_traps(&mut r));
    r.del(no_chain(1));
    // What leaves by swp2 comes in elsewhere.
    r.up(chain(5, 1, &["swp2"]));
    assert!(port_traps(&mut r));
}

#[test]
fn a_chain_on_the_bridge_device_takes_its_router_interface() {
    let mut r = bridged();
    assert!(rif(&mut r, mac(200)).is_some());
    for (family, hook) in [(5, 0), (1, 5), (5, 1)] {
        r.up(chain(family, hook, &["br0"]));
        assert_eq!(rif(&mut r, mac(200)), None, "{family} {hook}");
        assert!(!port_traps(&mut r), "what is bridged passes it by");
        let e = r.store.explain_route("10.30.0.0/24".parse().unwrap());
        assert!(words(&e.reason).contains("t/c"), "{e:?}");
        r.del(no_chain(family));
        assert!(rif(&mut r, mac(200)).is_some());
    }
}

/// What sees forwarded packets: chains at prerouting, forward and postrouting, of both IP families and of inet.
#[test]
fn chains_that_see_forwarded_packets_make_the_router_trap() {
    let mut r = bridged();
    let trapped = |r: &mut Rig| rif(r, mac(3)).unwrap() & TND_RIF_TRAP_ALL != 0;
    for family in [1, 2, 10] {
        for hook in 0..5 {
            r.up(chain(family, hook, &[]));
            assert_eq!(trapped(&mut r), hook % 2 == 0, "{family} {hook}");
            r.del(no_chain(family));
            assert!(!trapped(&mut r));
        }
    }
    // a dump that has it keeps it, one that has not takes it away
    r.up(chain(2, 2, &[]));
    for there in [true, false] {
        let chains = Event::BeginSync(SRC, KindSet::BASE_CHAIN);
        r.store.apply(chains, r.now);
        if there {
            r.up(chain(2, 2, &[]));
        }
        r.end();
        assert_eq!(trapped(&mut r), there);
    }
}

#[test]
fn bridged_frames_that_pass_ip_chains_trap() {
    let mut r = bridged();
    let ip = NfCall {
        ip: true,
        ..NfCall::default()
    };
    r.up(chain(2, 2, &[]));
    assert!(!port_traps(&mut r), "the switch is off");
    let global = |nf_call| {
        Object::Settings(Settings {
            nf_call,
            ..settings()
        })
    };
    r.up(global(ip));
    assert!(port_traps(&mut r));
    r.up(global(NfCall::default()));
    assert!(!port_traps(&mut r));
    r.up(with_info(|i| i.nf_call = ip));
    assert!(port_traps(&mut r), "the bridge's own switch");
    r.del(no_chain(2));
    assert!(!port_traps(&mut r), "no chain");
    r.up(chain(10, 2, &[]));
    assert!(!port_traps(&mut r), "IPv6 has a switch of its own");
    r.del(no_chain(10));
    r.up(chain(1, 1, &[]));
    assert!(!port_traps(&mut r), "input sees nothing that is bridged");
    r.del(no_chain(1));
    r.up(chain(1, 0, &[]));
    assert!(port_traps(&mut r));
    r.del(no_chain(1));
    r.up(Object::Settings(Settings {
        iptables: true,
        ..settings()
    }));
    assert!(port_traps(&mut r), "legacy iptables");
    r.up(Object::Settings(Settings {
        arptables: true,
        ..settings()
    }));
    assert!(!port_traps(&mut r));
    r.up(with_info(|i| i.nf_call.arp = true));
    assert!(port_traps(&mut r), "legacy arptables");
}

#[test]
fn who_wants_other_frames_of_a_bridge_gets_them() {
    let mut r = bridged();
    for kind in ["macvlan", "ipvlan"] {
        r.up(Object::Link(upper(kind, mac(201))));
        assert!(port_traps(&mut r), "{kind}");
        r.del(Key::Link(40));
        assert!(!port_traps(&mut r));
    }
    r.up(Object::Link(upper("ipvlan", mac(200))));
    assert!(
        port_traps(&mut r),
        "ipvlan takes frames for the bridge's MAC"
    );
    let vlan = LinkKind::Vlan { vid: 20 };
    r.up(Object::Link(Link {
        kind: vlan,
        ..upper("vlan", mac(200))
    }));
    assert!(!port_traps(&mut r), "tagged frames go to the CPU anyway");
    r.up(Object::Link(Link {
        promiscuous: true,
        ..bridge()
    }));
    assert!(port_traps(&mut r));
}

#[test]
fn ageing_time_zero_learns_nothing_and_keeps_nothing() {
    let mut r = bridged();
    let vlan = |r: &mut Rig| {
        r.settle();
        let v = r.chip.vlans.values().next().unwrap();
        (v.flags & TND_VLAN_LEARNING != 0, v.ageing_s)
    };
    assert_eq!(vlan(&mut r), (true, 300));
    r.up(with_info(|i| i.ageing_s = 0));
    let (learns, ageing) = vlan(&mut r);
    assert!(!learns);
    assert_eq!(ageing, 1, "0 would be never");
}

#[test]
fn no_ipv6_without_settings_for_it() {
    let mut r = bridged();
    let v6 = |r: &mut Rig| rif(r, mac(3)).unwrap() & TND_RIF_V6 != 0;
    r.up(forwarding(Family::V6, ConfScope::All));
    assert!(!v6(&mut r), "swp3 has no IPv6 (its MTU, say, is 1000)");
    r.up(forwarding(Family::V6, ConfScope::Interface(13)));
    assert!(v6(&mut r));
    let conf = |forwarding, disabled| {
        Object::Netconf(Netconf {
            family: Family::V6,
            scope: ConfScope::Interface(13),
            forwarding,
            rp_filter: None,
            ignore_linkdown: None,
            send_redirects: None,
            disabled,
        })
    };
    r.up(conf(None, Some(true)));
    assert!(!v6(&mut r));
    r.up(conf(None, Some(false)));
    assert!(v6(&mut r));
    r.up(conf(Some(false), None));
    assert!(v6(&mut r), "conf/all alone decides who forwards");
    r.del(Key::Netconf(Family::V6, ConfScope::Interface(13)));
    assert!(!v6(&mut r));
}

fn in_local(prefix: &str, kind: RouteType) -> Object {
    let mut route = route(prefix, RouteNextHops::None);
    route.key.table = TABLE_LOCAL;
    route.kind = kind;
    Object::Route(route)
}

#[test]
fn any_route_of_the_local_table_answers_before_main() {
    let mut r = bridged();
    for (wide, narrow, gw, host) in [
        (
            "2001:db8::/32",
            "2001:db8:1::/48",
            "fe80::2",
            "2001:db8:1::7",
        ),
        ("40.0.0.0/8", "40.1.0.0/16", "10.3.0.2", "40.1.0.7"),
    ] {
        r.up(neigh(13, gw, 103));
        r.up(via(narrow, 13, gw));
        r.settle();
        let host = host.parse().unwrap();
        assert!(matches!(r.chip.lookup(host), Answer::Ways(_)));
        for kind in [
            RouteType::Blackhole,
            RouteType::Unreachable,
            RouteType::Local,
        ] {
            r.up(in_local(wide, kind));
            r.settle();
            assert_eq!(r.chip.lookup(host), Answer::Trap, "{wide} {kind:?}");
        }
        r.up(in_local(wide, RouteType::Throw));
        r.settle();
        assert!(
            matches!(r.chip.lookup(host), Answer::Ways(_)),
            "throw sends on to main"
        );
        r.up(in_local(wide, RouteType::Blackhole));
        r.settle();
        assert_eq!(r.chip.lookup(host), Answer::Trap);
        let mut k = key(wide);
        k.table = TABLE_LOCAL;
        r.del(Key::Route(k));
        r.settle();
        assert!(matches!(r.chip.lookup(host), Answer::Ways(_)));
    }
}

fn rp_filter(ifindex: u32, value: u8) -> Object {
    rp_filter_at(ConfScope::Interface(ifindex), value)
}

fn rp_filter_at(scope: ConfScope, value: u8) -> Object {
    Object::Netconf(Netconf {
        family: Family::V4,
        scope,
        forwarding: None,
        rp_filter: Some(value),
        ignore_linkdown: None,
        send_redirects: None,
        disabled: None,
    })
}

#[test]
fn loose_reverse_path_filtering_needs_broadcast_addresses() {
    let mut r = bridged();
    let bytes = |s: &str| {
        let mut b = [0; 16];
        let ip: std::net::Ipv4Addr = s.parse().unwrap();
        b[..4].copy_from_slice(&ip.octets());
        b
    };
    let there = |r: &mut Rig| {
        r.settle();
        let k = (TND_AF_INET, bytes("10.3.0.255"), 32);
        r.chip.routes.contains_key(&k)
    };
    assert!(!there(&mut r), "redundant below its connected prefix");
    // Another interface filters: its sources may be there.
    r.up(rp_filter(BR, 2));
    assert!(there(&mut r));
    r.up(rp_filter(BR, 0));
    assert!(!there(&mut r));
    // Without an IPv4 address nothing but the way back counts.
    r.up(rp_filter(BR, 2));
    let flags = rif(&mut r, mac(200)).unwrap();
    assert_eq!(
        flags & (TND_RIF_V4 | TND_RIF_RPF_LOOSE),
        TND_RIF_V4 | TND_RIF_RPF_LOOSE
    );
    r.up(via("50.0.0.0/8", BR, "10.30.0.2"));
    r.del(Key::Addr(Addr {
        ifindex: BR,
        addr: "10.30.0.1".parse().unwrap(),
        prefix_len: 24,
    }));
    assert_eq!(rif(&mut r, mac(200)).unwrap() & TND_RIF_V4, 0);
}

/// Of `rp_filter` the larger one of the interface's and of `all` counts, redirects are off where both say so, and `forwarding`
/// is the interface's own (linux/inetdevice.h `IN_DEV_RPFILTER`, `IN_DEV_TX_REDIRECTS`, `IN_DEV_FORWARD`).
#[test]
fn settings_of_an_interface_and_of_all() {
    let mut r = bridged();
    let none = |scope| Netconf {
        family: Family::V4,
        scope,
        forwarding: None,
        rp_filter: None,
        ignore_linkdown: None,
        send_redirects: None,
        disabled: None,
    };
    let own = ConfScope::Interface(13);
    let flag = |r: &mut Rig, f: u32| rif(r, mac(3)).unwrap() & f != 0;
    for scope in [own, ConfScope::All] {
        assert!(!flag(&mut r, TND_RIF_TRAP_ALL));
        r.up(rp_filter_at(scope, 1));
        assert!(flag(&mut r, TND_RIF_TRAP_ALL), "{scope:?}");
        assert!(words(&r.store.port_reason(13)).contains("strict"));
        r.up(rp_filter_at(scope, 0));
    }
    for (ours, all) in [(2, 1), (1, 2)] {
        r.up(rp_filter_at(own, ours));
        r.up(rp_filter_at(ConfScope::All, all));
        assert!(flag(&mut r, TND_RIF_RPF_LOOSE) && !flag(&mut r, TND_RIF_TRAP_ALL));
    }
    r.up(rp_filter_at(own, 0));
    r.up(rp_filter_at(ConfScope::All, 0));
    assert!(!flag(&mut r, TND_RIF_RPF_LOOSE));
    for (ours, all, off) in [
        (false, true, false),
        (false, false, true),
        (true, false, false),
    ] {
        for (scope, on) in [(own, ours), (ConfScope::All, all)] {
            r.up(Object::Netconf(Netconf {
                send_redirects: Some(on),
                ..none(scope)
            }));
        }
        assert_eq!(flag(&mut r, TND_RIF_NO_REDIRECT), off, "{ours} {all}");
    }
    for (scope, on, want) in [
        (ConfScope::All, false, true),
        (own, false, false),
        (ConfScope::All, true, false),
        (own, true, true),
    ] {
        r.up(Object::Netconf(Netconf {
            forwarding: Some(on),
            ..none(scope)
        }));
        assert_eq!(flag(&mut r, TND_RIF_V4), want, "{scope:?} {on}");
    }
}

#[test]
fn a_routes_own_family_decides_for_gateways_of_the_other() {
    let mut r = bridged();
    interface(&mut r, 4);
    let many = |prefix: &str| {
        let hops = vec![hop(13, "fe80::2"), hop(14, "fe80::2")];
        Object::Route(route(prefix, RouteNextHops::Many(hops.into())))
    };
    for i in [13, 14] {
        r.up(neigh(i, "fe80::2", 90 + i as u8));
        r.up(forwarding(Family::V6, ConfScope::Interface(i)));
    }
    r.up(many("60.0.0.0/8"));
    r.up(many("2001:db8::/32"));
    let ways = |r: &mut Rig| {
        r.settle();
        let n = |a: &str| match r.chip.lookup(a.parse().unwrap()) {
            Answer::Ways(w) => w.len(),
            _ => 0,
        };
        (n("60.0.0.1"), n("2001:db8::1"))
    };
    assert_eq!(ways(&mut r), (2, 2));
    // fib_multipath_hash_policy
    r.up(Object::Settings(Settings {
        hash_policy_v6: 3,
        ..settings()
    }));
    assert_eq!(ways(&mut r), (2, 0));
    r.up(Object::Settings(Settings {
        hash_policy_v4: 3,
        ..settings()
    }));
    assert_eq!(ways(&mut r), (0, 2));
    // fib_multipath_use_neigh is IPv4's
    r.up(Object::Settings(Settings {
        multipath_use_neigh: true,
        ..settings()
    }));
    let members = |r: &mut Rig| {
        r.settle();
        // next hops: who gets another's share is a member twice
        let next_hops = |m: &Vec<(u32, u32)>| m.iter().map(|x| x.0).collect::<BTreeSet<_>>().len();
        let mut m: Vec<usize> = r.chip.groups.values().map(next_hops).collect();
        m.sort_unstable();
        m
    };
    assert_eq!(members(&mut r), [2, 2]);
    r.up(Object::Neigh(Neigh {
        ifindex: 14,
        addr: "fe80::2".parse().unwrap(),
        mac: [0; 6],
        state: nud::FAILED,
    }));
    assert_eq!(members(&mut r), [1, 2]);
    r.up(neigh(14, "fe80::2", 104));
    // ignore_routes_with_linkdown
    for (family, want) in [(Family::V4, (1, 2)), (Family::V6, (1, 1))] {
        r.up(Object::Netconf(Netconf {
            family,
            scope: ConfScope::Interface(14),
            forwarding: None,
            rp_filter: None,
            ignore_linkdown: Some(true),
            send_redirects: None,
            disabled: None,
        }));
        r.up(Object::Link(Link {
            carrier: false,
            ..swp(4)
        }));
        assert_eq!(ways(&mut r), want, "{family:?}");
    }
}

//! Messages one by one: what the view doubts, forgets and says again, without a kernel.

use std::collections::BTreeSet;
use std::net::IpAddr;

use tandem_linux::netlink as nl;
use tandem_store::model::{
    self, Event, FdbKind, KindSet, LinkKind, NexthopKind, Object, RouteNextHops,
};

use super::super::convert;
use super::super::view::KernelView;
use super::told::{self, group, link, new, next_hop, of, route, said, single};

/// Kinds that are to be read after a message.
fn doubted(view: &mut KernelView, event: nl::Event) -> u16 {
    view.take_doubts();
    said(view, event);
    view.take_doubts().kinds
}

fn port(index: u32, master: u32) -> nl::Link {
    link(index, master, nl::LinkKind::Tun)
}

fn bridge(index: u32, info: nl::BridgeInfo) -> nl::Event {
    new(nl::Object::Link(link(index, 0, nl::LinkKind::Bridge(info))))
}

#[test]
fn a_message_without_settings_leaves_a_port_its_own() {
    let mut v = KernelView::default();
    let locked = nl::BridgePort {
        locked: true,
        ..nl::BridgePort::default()
    };
    let full = nl::Link {
        brport: Some(locked),
        ..port(7, 50)
    };
    said(&mut v, new(nl::Object::Link(full)));
    let shorter = nl::Link {
        mtu: 1400,
        ..port(7, 50)
    };
    let events = said(&mut v, new(nl::Object::Link(shorter)));
    let [Event::Upsert(_, Object::Link(l))] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert!(l.bridge_port.is_some_and(|p| p.locked));
    // another bridge's port begins anew
    let events = said(&mut v, new(nl::Object::Link(port(7, 51))));
    let is = |e: &Event| matches!(e, Event::Upsert(_, Object::Link(l)) if l.bridge_port.is_none());
    assert!(events.iter().any(is), "{events:?}");
}

#[test]
fn a_port_that_moves_takes_its_groups_along() {
    let mut v = KernelView::default();
    said(&mut v, new(nl::Object::Link(port(7, 50))));
    let both = KindSet::MDB.0 | KindSet::BRIDGE_VLAN.0;
    let moved = doubted(&mut v, new(nl::Object::Link(port(7, 51))));
    assert_eq!(moved & both, both);
    let same = doubted(&mut v, new(nl::Object::Link(port(7, 51))));
    assert_eq!(same & both, 0);
}

/// A device that is down keeps its addresses when a VRF takes it, or lets it go, and the kernel takes their routes away in silence.
#[test]
fn a_device_that_changes_its_vrf_loses_its_ipv4_routes() {
    use tandem_linux::netlink::Nexthops;
    let by = |dst: &str, table, kind, ifindex| {
        let hop = nl::RouteNexthop {
            gateway: None,
            ..told::next_hop(ifindex, "")
        };
        nl::Route {
            table,
            kind,
            scope: 254,
            ..told::route(dst, Nexthops::One(hop))
        }
    };
    let down = |master| nl::Link {
        flags: 0x1000,
        ..port(7, master)
    };
    let vrf = |index| link(index, 0, nl::LinkKind::Vrf(100));
    for (from, to, goes) in [(0, 60, true), (60, 0, true), (60, 61, true), (0, 50, false)] {
        let mut v = KernelView::default();
        let info = nl::BridgeInfo::default();
        said(&mut v, bridge(50, info));
        for link in [vrf(60), vrf(61), port(8, 0), down(from)] {
            said(&mut v, new(nl::Object::Link(link)));
        }
        let local = by("10.7.0.1/32", 255, nl::consts::RTN_LOCAL, 7);
        let others = by("10.8.0.1/32", 255, nl::consts::RTN_LOCAL, 8);
        for route in [local, others] {
            said(&mut v, new(nl::Object::Route(route)));
        }
        let events = said(&mut v, new(nl::Object::Link(down(to))));
        let gone: Vec<String> = (events.iter())
            .filter_map(|e| match e {
                Event::Remove(_, model::Key::Route(k)) => Some(k.prefix.to_string()),
                _ => None,
            })
            .collect();
        let want: &[&str] = if goes { &["10.7.0.1/32"] } else { &[] };
        assert_eq!(gone, want, "from {from} to {to}");
    }
}

#[test]
fn a_filter_that_is_switched_on_has_vlans_to_read() {
    let mut v = KernelView::default();
    let info = |vlan_filtering, mcast_snooping| nl::BridgeInfo {
        vlan_filtering,
        mcast_snooping,
        ..nl::BridgeInfo::default()
    };
    said(&mut v, bridge(50, info(false, false)));
    let both = KindSet::MDB.0 | KindSet::BRIDGE_VLAN.0;
    let kinds = doubted(&mut v, bridge(50, info(true, false)));
    assert_eq!(kinds & both, KindSet::BRIDGE_VLAN.0);
    let kinds = doubted(&mut v, bridge(50, info(true, true)));
    assert_eq!(kinds & both, KindSet::MDB.0);
}

#[test]
fn what_goes_with_a_device_or_a_qdisc_is_asked_for() {
    let chain = |family| {
        new(nl::Object::BaseChain(nl::BaseChain {
            family,
            table: "t".into(),
            name: "c".into(),
            hook: Some(0),
            devices: vec!["if7".into()],
        }))
    };
    // NFPROTO_INET, NFPROTO_NETDEV; NFPROTO_IPV4 has no chains at devices
    for (family, want) in [(1, true), (5, true), (2, false)] {
        let mut v = KernelView::default();
        said(&mut v, new(nl::Object::Link(port(7, 0))));
        said(&mut v, chain(family));
        let kinds = doubted(&mut v, nl::Event::Del(nl::Object::Link(port(7, 0))));
        assert_eq!(kinds & KindSet::BASE_CHAIN.0 != 0, want, "{family}");
    }
    let mut v = KernelView::default();
    let qdisc = nl::Qdisc {
        ifindex: 7,
        shared: false,
    };
    let kinds = doubted(&mut v, nl::Event::Del(nl::Object::Qdisc(qdisc)));
    assert_ne!(kinds & KindSet::FILTER.0, 0);
    let rule = nl::Rule {
        family: nl::Family::V4,
        priority: 10,
        table: 99,
        action: 1,
        matches_all: true,
        l3mdev: false,
        iif: String::new(),
        text: String::new(),
    };
    let kinds = doubted(&mut v, nl::Event::Del(nl::Object::Rule(rule)));
    assert_ne!(kinds & KindSet::RULE.0, 0, "an equal one may be left");
}

#[test]
fn groups_are_read_where_a_message_does_not_say_all() {
    let mut v = KernelView::default();
    said(&mut v, new(nl::Object::Link(port(7, 50))));
    let set = |v: &mut KernelView, mcast_router| {
        let brport = nl::BridgePort {
            mcast_router,
            ..nl::BridgePort::default()
        };
        let object = nl::Object::BridgePort {
            ifindex: 7,
            master: 50,
            brport: Some(brport),
        };
        doubted(v, new(object)) & KindSet::MDB.0 != 0
    };
    let said: Vec<bool> = [1, 2, 2, 0, 1, 1].map(|n| set(&mut v, n)).to_vec();
    assert_eq!(said, [false, true, false, true, true, false]);

    let entry = nl::MdbEntry {
        ifindex: 7,
        vlan: 0,
        group: nl::MdbGroup::Ip("239.1.1.1".parse::<IpAddr>().unwrap()),
        source: None,
        mode: None,
        blocked: false,
    };
    let by_mode = nl::MdbEntry {
        mode: Some(false),
        ..entry
    };
    let by_source = nl::MdbEntry {
        source: Some("10.0.0.1".parse().unwrap()),
        ..entry
    };
    for (entry, want) in [(entry, false), (by_mode, true), (by_source, true)] {
        let mdb = nl::Mdb {
            bridge: 50,
            entries: vec![entry],
            routers: Vec::new(),
        };
        let kinds = doubted(&mut v, new(nl::Object::Mdb(mdb)));
        assert_eq!(kinds & KindSet::MDB.0 != 0, want, "{entry:?}");
    }
}

/// A dump calls a next hop dead that has no carrier, where such ones are left out. No message tells when they no longer are: the device is
/// looked at.
#[test]
fn who_is_no_longer_left_out_is_asked_for() {
    let mut v = KernelView::default();
    let mut conf = |family, target, ignore_linkdown| {
        let message = nl::Object::Netconf(nl::Netconf {
            family,
            target,
            forwarding: Some(true),
            rp_filter: None,
            ignore_linkdown,
            mc_forwarding: None,
            proxy_neigh: None,
            bc_forwarding: None,
        });
        said(&mut v, new(message));
        let doubts = v.take_doubts();
        (doubts.links, doubts.links6, doubts.routes)
    };
    let nobody = || (BTreeSet::new(), BTreeSet::new(), false);
    let seven = || BTreeSet::from([7]);
    let link = nl::NetconfTarget::Link(7);
    for (family, target, asked) in [
        (nl::Family::V4, link, (seven(), BTreeSet::new(), false)),
        (nl::Family::V6, link, (BTreeSet::new(), seven(), false)),
        (
            nl::Family::V4,
            nl::NetconfTarget::All,
            (BTreeSet::new(), BTreeSet::new(), true),
        ),
        (nl::Family::V4, nl::NetconfTarget::Default, nobody()),
    ] {
        // the first word of an interface is no change
        for first in [Some(false), None, Some(true), None] {
            assert_eq!(conf(family, target, first), nobody());
        }
        assert_eq!(conf(family, target, Some(false)), asked);
        assert_eq!(conf(family, target, Some(false)), nobody());
    }
}

#[test]
fn an_interface_without_ipv6_stays_one() {
    let mut v = KernelView::default();
    let conf = || {
        new(nl::Object::Netconf(nl::Netconf {
            family: nl::Family::V6,
            target: nl::NetconfTarget::Link(7),
            forwarding: Some(true),
            rp_filter: None,
            ignore_linkdown: None,
            mc_forwarding: None,
            proxy_neigh: None,
            bc_forwarding: None,
        }))
    };
    let disabled = |events: &[Event]| -> Vec<Option<bool>> {
        let of = |e: &Event| match e {
            Event::Upsert(_, Object::Netconf(c)) => Some(c.disabled),
            _ => None,
        };
        events.iter().filter_map(of).collect()
    };
    assert_eq!(disabled(&said(&mut v, conf())), [Some(false)]);
    v.take_doubts();
    let mut out = Vec::new();
    v.without_ipv6(BTreeSet::from([7]), &mut |e| out.push(e));
    assert_eq!(disabled(&out), [Some(true)]);
    // its next hops die without a message
    assert_eq!(v.take_doubts().links6, BTreeSet::from([7]));
    assert_eq!(disabled(&said(&mut v, conf())), [Some(true)]);
}

/// An IPv6 route has a next hop on a device without IPv6; another one of its goes, of which alone a message tells: what is left is told
/// anew, the dead one as dead.
#[test]
fn a_next_hop_without_ipv6_stays_dead_when_another_one_goes() {
    let mut v = KernelView::default();
    for index in [7, 8, 9] {
        said(&mut v, new(nl::Object::Link(port(index, 0))));
    }
    let way = |index: u32, flags| nl::RouteNexthop {
        flags,
        ..next_hop(index, &format!("fe80::{index}"))
    };
    let many = |all: &[u32], dead: u8| {
        let of = |i: &u32| way(*i, if *i == 7 { dead } else { 0 });
        route(
            "2001:db8::/32",
            nl::Nexthops::Many(all.iter().map(of).collect()),
        )
    };
    said(&mut v, new(of(&many(&[7, 8], 0))));
    v.without_ipv6(BTreeSet::from([7]), &mut |_| {});
    let both = nl::consts::RTNH_F_DEAD | nl::consts::RTNH_F_LINKDOWN;
    let told = nl::Event::New(of(&many(&[7, 8, 9], both)), nl::NewMode::Append);
    said(&mut v, told);
    let gone = route("2001:db8::/32", nl::Nexthops::One(way(9, 0)));
    let events = said(&mut v, nl::Event::Del(of(&gone)));
    let mut dead: Vec<(u32, bool)> = Vec::new();
    for e in &events {
        if let Event::Upsert(_, Object::Route(r)) = e
            && let RouteNextHops::Many(all) = &r.nexthops
        {
            dead.extend(all.iter().map(|n| (n.ifindex, n.dead)));
        }
    }
    assert_eq!(dead, [(7, true), (8, false)]);
}

#[test]
fn a_vlan_that_went_unheard_is_said_when_it_is_back() {
    let vlan = || {
        nl::Object::BridgeVlans(nl::BridgeVlans {
            ifindex: 7,
            vlans: vec![nl::BridgeVlan {
                first: 5,
                last: 5,
                pvid: false,
                untagged: false,
                state: 3,
                other: None,
            }],
        })
    };
    let mut v = KernelView::default();
    assert_eq!(said(&mut v, new(vlan())).len(), 1);
    assert_eq!(said(&mut v, new(vlan())).len(), 0);
    let mut events = Vec::new();
    v.begin_full(&mut |e| events.push(e));
    v.end_full(None, &mut |e| events.push(e));
    assert_eq!(said(&mut v, new(vlan())).len(), 1);
}

#[test]
fn buckets_of_a_dump_that_begins_anew_are_its_own() {
    let mut v = KernelView::default();
    for n in [single(1, 7), single(2, 8), group(10, &[1, 2], true)] {
        said(&mut v, new(n));
    }
    let mut events = Vec::new();
    v.begin_buckets(10);
    let dump = |v: &mut KernelView, members: &[u32]| {
        for (index, nexthop) in members.iter().enumerate() {
            let bucket = nl::NexthopBucket {
                group: 10,
                index: index as u16,
                nexthop: *nexthop,
            };
            v.dumped(nl::Object::NexthopBucket(bucket), &mut |_| {});
        }
    };
    dump(&mut v, &[1, 1, 2]);
    dump(&mut v, &[2, 2, 1, 1]);
    v.end_buckets(10, &mut |e| events.push(e));
    let [Event::Upsert(_, Object::Nexthop(o))] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(o.kind, NexthopKind::Buckets(vec![(2, 2), (1, 2)]));
}

#[test]
fn words_that_decide_what_the_chip_does() {
    let entry = nl::FdbEntry {
        ifindex: 7,
        master: 50,
        mac: [2, 0, 0, 0, 0, 9],
        vlan: 0,
        state: nl::consts::NUD_NOARP,
        flags: nl::consts::NTF_STICKY,
        ext_flags: 0,
    };
    let f = convert::fdb(&entry).unwrap();
    assert_eq!((f.kind, f.sticky), (FdbKind::Static, true));
    let plain = nl::FdbEntry { flags: 0, ..entry };
    assert!(!convert::fdb(&plain).unwrap().sticky);

    let neigh = |addr: &str| nl::Neigh {
        ifindex: 7,
        addr: addr.parse().unwrap(),
        mac: Some([2; 6]),
        state: nl::consts::NUD_NOARP,
        flags: 0,
        ext_flags: 0,
    };
    for (addr, there) in [("224.0.0.5", false), ("ff02::1", false), ("10.0.0.1", true)] {
        assert_eq!(convert::neigh(&neigh(addr)).is_some(), there, "{addr}");
    }

    // an ageing time below a second is not none
    for (hundredths, seconds) in [(0, 0), (1, 1), (99, 1), (100, 1), (101, 2), (30_000, 300)] {
        let info = nl::BridgeInfo {
            ageing_time: hundredths,
            ..nl::BridgeInfo::default()
        };
        let l = link(50, 0, nl::LinkKind::Bridge(info));
        let LinkKind::Bridge(b) = convert::link(&l, &convert::Ports::new()).kind else {
            panic!("a bridge");
        };
        assert_eq!(b.ageing_s, seconds, "{hundredths}");
    }

    let route = nl::Route {
        mtu: 1400,
        ..told::route("172.16.0.0/16", nl::Nexthops::None)
    };
    let said = convert::route(&route, 0).unsupported;
    assert_eq!(said, Some(model::Unsupported::Metrics));
    let plain = nl::Route { mtu: 0, ..route };
    assert_eq!(convert::route(&plain, 0).unsupported, None);
}

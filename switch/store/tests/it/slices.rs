//! What one event means for many routes goes in slices, and nothing is planned between them.

use crate::common::*;
use tandem_store::model::*;
use tandem_store::*;

const ROUTES: usize = 95;
const SLICE: usize = 10;
const PORT_VLANS: usize = 5;

/// Two ports, and many routes by one way of the first.
fn many(to: RouteNextHops) -> Rig {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(neigh(11, "10.1.0.2", 2));
    r.up(neigh(12, "10.2.0.2", 3));
    r.up(single(1, 11, "10.1.0.2"));
    for n in 0..ROUTES {
        r.up(Object::Route(route(&format!("40.0.{n}.0/24"), to.clone())));
    }
    r.settle();
    assert_eq!(forwarded(&r), ROUTES);
    r.store.set_slice(SLICE);
    r
}

fn fill(r: &mut Rig, to: &RouteNextHops) {
    r.up(neigh(11, "10.1.0.2", 2));
    r.up(neigh(12, "10.2.0.2", 3));
    r.up(single(1, 11, "10.1.0.2"));
    for n in 0..ROUTES {
        let route = route(&format!("40.0.{n}.0/24"), to.clone());
        r.up(Object::Route(route));
    }
}

/// Routes to `40.0.0.0/16` that are desired.
fn there(r: &Rig) -> usize {
    let mut rows = Vec::new();
    let mut cursor = 0;
    loop {
        cursor = r.store.routes(Family::V4, cursor, 1000, &mut rows);
        if cursor == 0 {
            break;
        }
    }
    // one of nobody is still on the chip alone
    let said = rows.iter().filter(|r| r.source != 0);
    said.filter(|r| r.prefix.starts_with("40.0.")).count()
}

/// As many of these as the chip forwards.
fn forwarded(r: &Rig) -> usize {
    let all = r.chip.routes.values().filter(|x| x.addr[0] == 40);
    all.filter(|x| x.action == tandem_abi::raw::TND_ACT_FORWARD)
        .count()
}

/// As many slices as that takes, none of them larger; nothing is handed out before the last.
fn in_slices(r: &mut Rig) {
    let commands = r.store.counters().commands;
    let mut slices = 1;
    while r.store.behind() {
        assert!(!r.store.idle());
        r.now += 1000;
        let before = there(r);
        slices += 1;
        if slices == 3 {
            assert_eq!(r.store.plan_some(&mut Vec::new(), r.now), 0);
        } else {
            r.store.catch_up(r.now);
        }
        assert!(before - there(r) <= SLICE);
    }
    // what is in the port's own prefix takes some of it
    let least = ROUTES.div_ceil(SLICE);
    assert!((least..=least + 1).contains(&slices), "{slices}");
    assert_eq!(r.store.counters().commands, commands);
}

fn down() -> Object {
    let mut l = swp(1);
    (l.admin_up, l.carrier) = (false, false);
    Object::Link(l)
}

#[test]
fn routes_over_a_port_that_goes_down_go_in_slices() {
    let mut r = many(RouteNextHops::One(hop(11, "10.1.0.2")));
    r.up(down());
    assert!(there(&r) >= ROUTES - SLICE);
    in_slices(&mut r);
    assert_eq!(there(&r), 0);
    r.settle();
    assert_eq!(forwarded(&r), 0);
}

#[test]
fn what_comes_meanwhile_finds_them_gone() {
    let mut r = many(RouteNextHops::One(hop(11, "10.1.0.2")));
    r.up(down());
    assert!(r.store.behind());
    // the same one, said after its port went down: it leads nowhere, and is there
    let same = RouteNextHops::One(NextHop {
        dead: true,
        ..hop(11, "10.1.0.2")
    });
    r.up(Object::Route(route("40.0.94.0/24", same)));
    r.up(via("40.0.93.0/24", 12, "10.2.0.2"));
    assert_eq!(there(&r), 2);
    r.settle();
    assert_eq!(forwarded(&r), 1);
}

#[test]
fn routes_of_an_object_that_changes_go_in_slices() {
    let mut r = many(RouteNextHops::Object(1));
    r.up(single(1, 12, "10.2.0.2"));
    in_slices(&mut r);
    r.settle();
    assert_eq!(forwarded(&r), ROUTES);
    // and those of one that goes
    r.del(Key::Nexthop(1));
    in_slices(&mut r);
    r.settle();
    assert_eq!(there(&r), 0);
    assert_eq!(forwarded(&r), 0);
}

#[test]
fn routes_that_wait_for_their_next_hop_are_queued_in_slices() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    fill(&mut r, &RouteNextHops::One(hop(11, "10.1.0.2")));
    let mut turns = 0;
    loop {
        let mut out = Vec::new();
        r.now += 1000;
        r.store.plan_some(&mut out, r.now);
        for p in out {
            r.chip.post(p);
        }
        if !r.store.unfinished() {
            break;
        }
        turns += 1;
    }
    // each looks at so many that find it missing, at the most
    assert!((ROUTES / SLICE..ROUTES).contains(&turns), "{turns}");
    // its answer wakes them
    let mut was_behind = false;
    while forwarded(&r) < ROUTES {
        let mut out = Vec::new();
        r.now += 1000;
        r.store.plan_some(&mut out, r.now);
        was_behind |= r.store.behind();
        for p in out {
            r.chip.post(p);
        }
        let ran = [r.run(0), r.run(1)];
        assert!(r.store.behind() || ran.contains(&true));
        was_behind |= r.store.behind();
    }
    assert!(was_behind);
    r.settle();
}

/// A target that changes while the routes of the change before are being looked at: those looked at already are looked at again.
#[test]
fn a_target_that_changes_again_meanwhile() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(neigh(11, "10.1.0.2", 2));
    r.up(neigh(12, "10.2.0.2", 3));
    r.up(single(1, 11, "10.1.0.2"));
    r.up(single(3, 12, "10.2.0.2"));
    r.up(object(5, NexthopKind::Group(vec![(1, 1)])));
    r.up(object(6, NexthopKind::Group(vec![(1, 1), (3, 1)])));
    for n in 0..ROUTES {
        let prefix = format!("40.0.{n}.0/24");
        r.up(Object::Route(route(&prefix, RouteNextHops::Object(6))));
    }
    r.settle();
    assert_eq!(forwarded(&r), ROUTES);
    r.store.set_slice(SLICE);
    // the paths of what leads over the second port are to be looked at, and the first one goes down meanwhile
    let mut l = swp(2);
    l.mtu = 1400;
    r.up(Object::Link(l));
    r.up(down());
    r.settle();
    assert_eq!(forwarded(&r), ROUTES);
}

/// Until nothing is left over: in many calls, none of which looks at more than a slice of entries.
fn bounded(r: &mut Rig, event: Event) {
    // a port's memberships, there and wanted, are one step
    bounded_by(r, event, 2 * PORT_VLANS);
}

/// As [`bounded`]; so many looks at most are one step.
fn bounded_by(r: &mut Rig, event: Event, step: usize) {
    let mut looks = r.store.looks();
    let mut most = |r: &Rig, what: &str| {
        let n = r.store.looks() - looks;
        looks = r.store.looks();
        // the one that is told of is looked at besides
        assert!(n <= SLICE + step, "{what} looks at {n}");
    };
    r.now += 1000;
    r.store.apply(event, r.now);
    most(r, "apply");
    let mut calls = 1;
    let mut out = Vec::new();
    loop {
        r.now += 1000;
        let behind = r.store.behind();
        let planned = r.store.plan_some(&mut out, r.now);
        most(r, "plan");
        for p in out.drain(..) {
            r.chip.post(p);
        }
        let mut ran = false;
        for ring in 0..2 {
            ran |= r.run(ring);
            most(r, "complete");
        }
        calls += usize::from(behind);
        if planned == 0 && !ran && !r.store.unfinished() {
            break;
        }
    }
    assert!(calls >= ROUTES / SLICE, "{calls}");
    // a VRF goes with the plan after that of its last route
    r.settle();
    assert!(r.judge());
}

const RED: u32 = 60;

fn red() -> Object {
    Object::Link(Link {
        ifindex: RED,
        name: "red".into(),
        kind: LinkKind::Vrf { table: 100 },
        mac: mac(60),
        ..swp(1)
    })
}

fn up(o: Object) -> Event {
    Event::Upsert(SRC, o)
}

fn in_red(n: usize) -> Object {
    let mut r = route(
        &format!("40.0.{n}.0/24"),
        RouteNextHops::One(hop(12, "10.2.0.2")),
    );
    r.key.table = 100;
    Object::Route(r)
}

/// Routes of a VRF: all of them lead nowhere until the chip has it, and go with it.
#[test]
fn routes_of_a_vrf_come_to_stand_and_go_in_slices() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(neigh(12, "10.2.0.2", 3));
    r.store.set_slice(SLICE);
    r.up(red());
    for n in 0..ROUTES {
        r.up(in_red(n));
    }
    bounded(&mut r, up(via("50.0.0.0/24", 12, "10.2.0.2")));
    assert_eq!(forwarded(&r), ROUTES);
    bounded(&mut r, Event::Remove(SRC, Key::Link(RED)));
    assert_eq!(forwarded(&r), 0);
}

/// A wide route of the local table answers for all that main has below it.
#[test]
fn a_wide_local_route_is_looked_at_in_slices() {
    let mut r = many(RouteNextHops::One(hop(11, "10.1.0.2")));
    bounded(&mut r, up(local("40.0.0.0/8", 11, RouteType::Local)));
    assert_eq!(forwarded(&r), 0);
    let Object::Route(wide) = local("40.0.0.0/8", 11, RouteType::Local) else {
        return;
    };
    bounded(&mut r, Event::Remove(SRC, Key::Route(wide.key)));
    assert_eq!(forwarded(&r), ROUTES);
}

/// Neighbours in a connected prefix, and own addresses in it that it answers for.
#[test]
fn what_a_connected_prefix_means_for_what_is_in_it_goes_in_slices() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    for n in 1..=ROUTES {
        r.up(neigh(11, &format!("40.0.0.{n}"), n as u8));
        r.up(local(&format!("40.0.1.{n}/32"), 11, RouteType::Broadcast));
    }
    r.settle();
    bounded(&mut r, up(via("40.0.0.0/16", 11, "")));
    let neighbours = |r: &mut Rig| {
        let all = r
            .chip
            .dump::<tandem_abi::raw::tnd_neigh>(tandem_abi::raw::TND_CLS_NEIGH);
        all.iter().filter(|n| n.addr[0] == 40).count()
    };
    assert_eq!(neighbours(&mut r), ROUTES);
    let Object::Route(connected) = via("40.0.0.0/16", 11, "") else {
        return;
    };
    bounded(&mut r, Event::Remove(SRC, Key::Route(connected.key)));
    assert_eq!(neighbours(&mut r), 0);
}

/// What a dump does not confirm: of each kind.
#[test]
fn a_sweep_goes_in_slices() {
    let mut r = many(RouteNextHops::One(hop(11, "10.1.0.2")));
    for n in 0..ROUTES {
        r.up(neigh(12, &format!("10.2.0.{}", 3 + n), n as u8));
        r.up(object(100 + n as u32, NexthopKind::Blackhole));
    }
    r.settle();
    for kinds in [KindSet::ROUTE, KindSet::NEIGH, KindSet::NEXTHOP] {
        r.store.apply(Event::BeginSync(SRC, kinds), r.now);
        let swept = r.store.counters().swept;
        bounded(&mut r, Event::EndSync(SRC));
        assert!(r.store.counters().swept >= swept + ROUTES as u64);
    }
    assert_eq!(there(&r), 0);
}

/// Neighbours on an interface that goes into a VRF, and with its port.
#[test]
fn neighbours_on_an_interface_look_again_and_go_in_slices() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    for n in 0..ROUTES {
        r.up(neigh(11, &format!("10.1.0.{}", 100 + n), n as u8));
    }
    r.up(red());
    r.settle();
    let moved = Link {
        master: RED,
        ..swp(1)
    };
    bounded(&mut r, up(Object::Link(moved)));
    bounded(&mut r, Event::Remove(SRC, Key::Link(11)));
    let left = r.store.neighbours();
    let left: Vec<String> = left.iter().map(|n| n.addr.to_string()).collect();
    assert!(left.iter().all(|a| !a.starts_with("10.1.0.")), "{left:?}");
}

const BRIDGE: u32 = 50;

fn member(n: u16) -> Link {
    Link {
        master: BRIDGE,
        bridge_port: Some(BridgePort::default()),
        ..swp(n)
    }
}

/// swp3 and swp4 in a bridge that snoops.
fn with_bridge() -> Rig {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    let info = BridgeInfo {
        ageing_s: 300,
        mcast_snooping: true,
        ..BridgeInfo::default()
    };
    r.up(Object::Link(Link {
        ifindex: BRIDGE,
        name: "br0".into(),
        kind: LinkKind::Bridge(info),
        mac: mac(50),
        ..swp(1)
    }));
    r.up(Object::Link(member(3)));
    r.up(Object::Link(member(4)));
    r
}

/// Stations behind a port that leaves its bridge, and those of a bridge that goes.
#[test]
fn stations_look_again_and_go_in_slices() {
    let mut r = with_bridge();
    for n in 0..ROUTES {
        r.up(Object::Fdb(FdbEntry {
            bridge: BRIDGE,
            vlan: 0,
            mac: [2, 1, 1, 1, 0, n as u8],
            ifindex: 13,
            kind: FdbKind::Static,
            sticky: false,
        }));
    }
    r.settle();
    let installed = |r: &Rig| {
        let rows = r.store.fdb();
        rows.iter().filter(|f| f.state == State::Installed).count()
    };
    assert_eq!(installed(&r), ROUTES);
    bounded(&mut r, up(Object::Link(swp(3))));
    assert_eq!(installed(&r), 0);
    bounded(&mut r, up(Object::Link(member(3))));
    assert_eq!(installed(&r), ROUTES);
    bounded(&mut r, Event::Remove(SRC, Key::Link(BRIDGE)));
    assert_eq!(r.store.fdb().len(), 0);
}

/// Groups of a bridge without a querier: they look again when a member is another one, and go with that and with the bridge.
#[test]
fn groups_look_again_and_go_in_slices() {
    let mut r = with_bridge();
    for n in 0..ROUTES {
        for port in [13, 14] {
            r.up(Object::Mdb(MdbEntry {
                bridge: BRIDGE,
                vlan: 0,
                group: GroupAddr::Ip(format!("239.1.1.{n}").parse().unwrap()),
                source: None,
                ifindex: port,
                include: false,
                blocked: false,
            }));
        }
    }
    r.settle();
    // of groups that the chip serves
    let members = |r: &Rig| -> usize {
        let rows = r.store.mdb();
        let served = rows
            .iter()
            .filter(|m| m.state == State::Installed && m.group.is_some());
        let named = served.flat_map(|m| &m.members);
        named.filter(|m| m.starts_with("swp")).count()
    };
    assert_eq!(members(&r), 2 * ROUTES);
    let mut odd = member(3);
    odd.bridge_port = Some(BridgePort {
        unsupported: Some("odd"),
        ..BridgePort::default()
    });
    bounded(&mut r, up(Object::Link(odd)));
    assert_eq!(members(&r), 0);
    bounded(&mut r, up(Object::Link(member(3))));
    assert_eq!(members(&r), 2 * ROUTES);
    bounded(&mut r, Event::Remove(SRC, Key::Link(13)));
    assert_eq!(members(&r), ROUTES);
    bounded(&mut r, Event::Remove(SRC, Key::Link(BRIDGE)));
    assert_eq!(r.store.mdb().len(), 0);
}

/// Each with a gateway of its own on swp1, by next-hop objects the second half.
fn many_gateways() -> Rig {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    r.up(red());
    for n in 0..2 * ROUTES {
        let (prefix, gateway) = (format!("40.0.{n}.0/24"), format!("10.1.0.{}", 3 + n));
        if n < ROUTES {
            r.up(via(&prefix, 11, &gateway));
        } else {
            r.up(single(n as u32, 11, &gateway));
            r.up(Object::Route(route(
                &prefix,
                RouteNextHops::Object(n as u32),
            )));
        }
    }
    r.settle();
    r
}

/// Paths over an interface, and gateways on it, when it goes into a VRF; when it goes, its next-hop objects as well.
#[test]
fn paths_gateways_and_objects_of_an_interface_go_in_slices() {
    let mut r = many_gateways();
    let gateways = |r: &mut Rig| {
        let all = r
            .chip
            .dump::<tandem_abi::raw::tnd_nexthop>(tandem_abi::raw::TND_CLS_NEXTHOP);
        all.len()
    };
    assert_eq!(gateways(&mut r), 2 * ROUTES);
    let moved = Link {
        master: RED,
        ..swp(1)
    };
    bounded(&mut r, up(Object::Link(moved)));
    bounded(&mut r, Event::Remove(SRC, Key::Link(11)));
    assert_eq!((gateways(&mut r), there(&r)), (0, 0));
}

/// VLAN interfaces, their router interfaces and what is known of them, when they can't be told from their port's any more.
#[test]
fn vlan_interfaces_look_again_in_slices() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    let device = |n: u32| 1000 + n;
    for n in 1..=ROUTES as u32 {
        r.up(Object::Link(Link {
            ifindex: device(n),
            name: format!("swp1.{n}"),
            kind: LinkKind::Vlan { vid: n as u16 },
            lower: 11,
            ..swp(1)
        }));
        let i = ConfScope::Interface(device(n));
        r.up(forwarding(Family::V4, i));
        r.up(addr(device(n), &format!("10.9.{n}.1/24")));
    }
    r.settle();
    let rifs = |r: &mut Rig| {
        let all = r
            .chip
            .dump::<tandem_abi::raw::tnd_rif>(tandem_abi::raw::TND_CLS_RIF);
        all.iter().filter(|x| x.vid != 0).count()
    };
    assert_eq!(rifs(&mut r), ROUTES);
    let other = Link {
        mac: mac(77),
        ..swp(1)
    };
    bounded(&mut r, up(Object::Link(other)));
    // all that comes in by the port is the kernel's now
    assert_eq!(rifs(&mut r), 0);
    bounded(&mut r, up(Object::Link(swp(1))));
    assert_eq!(rifs(&mut r), ROUTES);
}

/// A bridge with ports of a few VLANs each: all have the same, or each its own.
fn with_vlans(own: bool) -> Rig {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    r.up(filtering());
    for n in VLAN_PORTS {
        r.up(Object::Link(member(n)));
        for v in port_vlans(n, own) {
            r.up(v);
        }
    }
    r.settle();
    r
}

const VLAN_PORTS: std::ops::RangeInclusive<u16> = 3..=3 + (ROUTES / PORT_VLANS) as u16;

fn filtering() -> Object {
    let info = BridgeInfo {
        vlan_filtering: true,
        ageing_s: 300,
        ..BridgeInfo::default()
    };
    Object::Link(Link {
        ifindex: BRIDGE,
        name: "br0".into(),
        kind: LinkKind::Bridge(info),
        mac: mac(50),
        ..swp(1)
    })
}

fn in_vlan(ifindex: u32, vid: u16, pvid: bool) -> Object {
    Object::BridgeVlan(BridgeVlan {
        ifindex,
        vid,
        pvid,
        untagged: pvid,
        state: BR_STATE_FORWARDING,
        unsupported: None,
        tap: 0,
    })
}

fn port_vlans(n: u16, own: bool) -> impl Iterator<Item = Object> {
    let first = if own { n * PORT_VLANS as u16 } else { 1 };
    let all = first..first + PORT_VLANS as u16;
    all.map(move |vid| in_vlan(10 + u32::from(n), vid, vid == first))
}

/// All is computed anew when a port's netdev goes: memberships port by port.
#[test]
fn memberships_are_computed_anew_in_slices() {
    let mut r = with_vlans(false);
    let members = r.chip.members.len();
    assert!(members >= ROUTES);
    let wholes = r.store.wholes();
    bounded(&mut r, Event::Remove(SRC, Key::Link(12)));
    assert!(r.store.wholes() > wholes);
    assert_eq!(r.chip.members.len(), members);
    // and where all of them go: of each domain all ports are looked at
    bounded_by(
        &mut r,
        Event::Remove(SRC, Key::Link(BRIDGE)),
        1 + VLAN_PORTS.len(),
    );
    assert_eq!(r.chip.members.len(), 0);
}

/// Of a domain that comes or goes all ports of its bridge are looked at, which is one step.
#[test]
fn domains_come_and_go_in_slices() {
    let mut r = with_vlans(true);
    let domains = r.chip.vlans.len();
    assert!(domains >= ROUTES);
    // the ports are one step as well, in the call of the last one's memberships
    let step = 1 + VLAN_PORTS.len() + PORT_VLANS;
    bounded_by(&mut r, Event::Remove(SRC, Key::Link(BRIDGE)), step);
    assert_eq!(r.chip.vlans.len(), 0);
    bounded_by(&mut r, up(filtering()), step);
    assert_eq!(r.chip.vlans.len(), domains);
}

#[test]
fn vlans_and_filters_of_a_device_go_in_slices() {
    const DUMMY: u32 = 70;
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    let dummy = Link {
        ifindex: DUMMY,
        name: "dummy0".into(),
        kind: LinkKind::Other("dummy".into()),
        ..swp(1)
    };
    for filters in [false, true] {
        r.up(Object::Link(dummy.clone()));
        for n in 0..ROUTES as u16 {
            r.up(match filters {
                true => Object::Filter(Box::new(to_port_two(DUMMY, n))),
                false => in_vlan(DUMMY, n + 1, false),
            });
        }
        r.settle();
        bounded(&mut r, Event::Remove(SRC, Key::Link(DUMMY)));
    }
}

/// It sends packets to a UDP port there.
fn to_port_two(ifindex: u32, n: u16) -> Filter {
    use tandem_abi::raw::tnd_acl_key;
    Filter {
        key: FilterKey {
            ifindex,
            egress: false,
            chain: 0,
            priority: 10,
            handle: 1 + u32::from(n),
        },
        text: format!("udp {n} to swp2"),
        fields: tnd_acl_key {
            ethertype: 0x0800,
            protocol: 17,
            dst_port: n,
            ..tnd_acl_key::default()
        },
        mask: tnd_acl_key {
            ethertype: u16::MAX,
            protocol: u8::MAX,
            dst_port: u16::MAX,
            ..tnd_acl_key::default()
        },
        src_ports: None,
        dst_ports: None,
        verdict: FilterVerdict::Redirect(12),
        mirror: None,
        police: None,
        kernel: None,
    }
}

/// All rules of a list are others when the port that they send to is the kernel's; one of them is alone when its filter goes.
#[test]
fn rules_are_made_in_slices_and_alone() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.store.set_slice(SLICE);
    for n in 0..ROUTES as u16 {
        r.up(Object::Filter(Box::new(to_port_two(11, n))));
    }
    r.settle();
    let traps = |r: &mut Rig| {
        let cls = tandem_abi::raw::TND_CLS_ACL_ENTRY;
        let all = r.chip.dump::<tandem_abi::raw::tnd_acl_entry>(cls);
        let traps = |e: &&tandem_abi::raw::tnd_acl_entry| e.action == tandem_abi::raw::TND_ACL_TRAP;
        (all.iter().filter(traps).count(), all.len())
    };
    assert_eq!(traps(&mut r), (0, ROUTES));
    let looks = r.store.looks();
    r.del(Key::Filter(to_port_two(11, 7).key));
    r.settle();
    let n = r.store.looks() - looks;
    assert!(n < SLICE, "{n} rules looked at");
    r.up(Object::Filter(Box::new(to_port_two(11, 7))));
    r.settle();
    assert!(r.judge());
    let above = Link {
        ifindex: 71,
        name: "macvlan0".into(),
        kind: LinkKind::Other("macvlan".into()),
        lower: 12,
        ..swp(1)
    };
    bounded(&mut r, up(Object::Link(above)));
    assert_eq!(traps(&mut r), (ROUTES, ROUTES));
    bounded(&mut r, Event::Remove(SRC, Key::Link(71)));
    assert_eq!(traps(&mut r), (0, ROUTES));
}

/// What a dump has confirmed is looked at as well, a slice at a time.
#[test]
fn what_a_dump_did_not_confirm_is_searched_in_slices() {
    let mut r = with_vlans(false);
    r.store
        .apply(Event::BeginSync(SRC, KindSet::BRIDGE_VLAN), r.now);
    let gone = *VLAN_PORTS.end();
    for v in VLAN_PORTS
        .filter(|n| *n != gone)
        .flat_map(|n| port_vlans(n, false))
    {
        r.up(v);
    }
    let members = r.chip.members.len();
    bounded(&mut r, Event::EndSync(SRC));
    assert_eq!(r.chip.members.len(), members - PORT_VLANS);
}

/// Wide routes that change once more while they are queued: each looks whether it passes one below it, and a call at no more of
/// these than one of them may look at.
#[test]
fn what_routes_pass_is_searched_in_slices() {
    let mut r = many(RouteNextHops::One(hop(11, "10.1.0.2")));
    let wide: Vec<String> = (8..16).map(|len| format!("40.0.0.0/{len}")).collect();
    for prefix in &wide {
        r.up(via(prefix, 11, "10.1.0.2"));
    }
    r.up(via("50.0.0.0/24", 12, "10.2.0.2"));
    r.settle();
    let elsewhere = RouteNextHops::Object(1);
    for (ifindex, gateway) in [(12, "10.2.0.2"), (11, "10.1.0.2")] {
        for prefix in &wide {
            r.up(Object::Route(route(prefix, elsewhere.clone())));
            r.up(via(prefix, ifindex, gateway));
        }
    }
    for prefix in &wide {
        r.up(via(prefix, 12, "10.2.0.2"));
    }
    let (mut out, mut most) = (Vec::new(), 0);
    loop {
        let planned = r.store.plan_some(&mut out, r.now);
        most = most.max(r.store.searched());
        if planned == 0 && !r.store.unfinished() {
            break;
        }
    }
    assert!((ROUTES..2 * ROUTES).contains(&most), "{most}");
    for p in out {
        r.chip.post(p);
    }
    r.settle();
    assert_eq!(forwarded(&r), ROUTES + wide.len());
}

/// An answer comes between two slices of an event, while another source's dump runs: what the event changes does not wait for that.
#[test]
fn an_answer_between_slices_leaves_an_event_its_source() {
    let mut r = many(RouteNextHops::Object(1));
    r.up(via("51.0.0.0/8", 12, "10.2.0.2"));
    let other = SourceId(9);
    let dump = |r: &mut Rig, e| r.store.apply(e, r.now);
    dump(&mut r, Event::BeginSync(other, KindSet::ALL));
    dump(&mut r, Event::EndSync(other));
    r.settle();
    dump(&mut r, Event::BeginSync(other, KindSet::ALL));
    r.up(neigh(11, "10.1.0.3", 3));
    r.up(via("50.0.0.0/8", 11, "10.1.0.3"));
    r.plan();
    r.up(single(1, 12, "10.2.0.2"));
    assert!(r.store.behind());
    assert!(r.run(0));
    r.settle_unsynced();
    let second = r.chip.rifs.values().find(|x| x.port == 2).unwrap().rif;
    let by_it = |n: usize| {
        let answer = r.chip.lookup(format!("40.0.{n}.1").parse().unwrap());
        matches!(answer, Answer::Ways(w) if w.iter().all(|w| w.0 == second))
    };
    assert_eq!((0..ROUTES).filter(|n| by_it(*n)).count(), ROUTES);
}

//! What excuses an answer, and what is near to that and excuses none.

use super::*;

/// A bridge, 10, and its ports: which netdevs, in which STP state, flooded or not.
fn bridge(info: nl::BridgeInfo, members: &[(u32, u8, bool)]) -> Vec<nl::Object> {
    let device = |index, port| match link(index, port, true) {
        nl::Object::Link(l) => l,
        _ => unreachable!(),
    };
    let own = nl::Link {
        kind: nl::LinkKind::Bridge(info),
        ..device(10, 10)
    };
    let port = |(index, state, flooded): &(u32, u8, bool)| nl::Link {
        master: 10,
        brport: Some(nl::BridgePort {
            state: *state,
            unicast_flood: *flooded,
            ..nl::BridgePort::default()
        }),
        ..device(*index, *index as u8)
    };
    let all = std::iter::once(own).chain(members.iter().map(port));
    all.map(nl::Object::Link).collect()
}

/// The bridge knows the station of its neighbour by this port.
fn station(ifindex: u32) -> nl::Object {
    nl::Object::Fdb(nl::FdbEntry {
        ifindex,
        master: 10,
        mac: [2, 0, 0, 0, 9, 10],
        vlan: 0,
        state: 0x40,
        flags: 0,
        ext_flags: 0,
    })
}

const FORWARDING: u8 = 3;
const BLOCKING: u8 = 4;

#[test]
fn the_chip_is_silent_where_a_bridge_lets_nothing_out() {
    let silent = |passed: &Passed, known: bool, members: &[(u32, u8, bool)], fdb: Option<u32>| {
        let mut objects = bridge(nl::BridgeInfo::default(), members);
        objects.extend(known.then(|| neighbour(10)));
        objects.extend(fdb.map(station));
        objects.push(route("10.0.0.0/8", &[2, 10]));
        routed(passed, &[out(2)], &objects)
    };
    let (nothing, copy) = (passed(&[], &[]), passed(&[], &[COPY]));
    let shut = Verdict::OtherNextHop(Leniency::PortShut);
    // its station is behind a port that does not forward, or nobody knows where and none takes the flood
    assert_eq!(
        silent(&nothing, true, &[(3, BLOCKING, true)], Some(3)),
        shut
    );
    assert_eq!(silent(&nothing, true, &[(3, BLOCKING, true)], None), shut);
    assert_eq!(
        silent(&nothing, true, &[(3, FORWARDING, false)], None),
        shut
    );
    let two = [(3, BLOCKING, true), (5, FORWARDING, true)];
    assert_eq!(silent(&nothing, true, &two, Some(3)), shut);
    // the flood leaves by one, or there is no port at all
    assert_eq!(silent(&nothing, true, &two, None), WRONG);
    assert_eq!(silent(&nothing, true, &[], None), WRONG);
    // the port forwards
    assert_eq!(silent(&nothing, true, &two, Some(5)), WRONG);
    // the neighbour is unknown: that is the CPU's
    assert_eq!(silent(&nothing, false, &[(3, BLOCKING, true)], None), WRONG);
    // a copy, and nothing to be a copy of
    assert_eq!(silent(&copy, true, &[(3, BLOCKING, true)], Some(3)), WRONG);
}

#[test]
fn what_is_routed_into_a_bridge_that_goes_down_is_lost() {
    let objects = || {
        let mut all = bridge(nl::BridgeInfo::default(), &[(3, FORWARDING, true)]);
        all.extend([neighbour(10), neighbour(2), station(3)]);
        all
    };
    let mut sent = out(3);
    sent.frame.0[5] = 10;
    sent.frame.0[11] = 10;
    let shut = |passed: &Passed, kernel: &[Out], ways: &[u8], newest: &Rest| {
        let mut all = objects();
        all.push(route("10.0.0.0/8", ways));
        within(USUAL, kernel, &all, |case| judge_shut(passed, newest, case))
    };
    let nothing = passed(&[], &[]);
    let sent = [sent];
    let (gone, up) = (
        Rest::default(),
        Rest::new(objects(), Default::default(), &[]),
    );
    assert_eq!(shut(&nothing, &sent, &[10], &gone), Some(Verdict::Lost));
    // it is up, the route leads elsewhere, or the kernel sent it elsewhere
    assert_eq!(shut(&nothing, &sent, &[10], &up), None);
    assert_eq!(shut(&nothing, &sent, &[2], &gone), None);
    assert_eq!(shut(&nothing, &[out(2)], &[10], &gone), None);
    assert_eq!(shut(&nothing, &[out(2)], &[2], &gone), None);
    // it is up, and its port does not forward; the kernel went there, or by another next hop of that route, or of none that leads there
    let blocked = bridge(nl::BridgeInfo::default(), &[(3, BLOCKING, true)]);
    let blocked = Rest::new(blocked, Default::default(), &[]);
    let lost = Some(Verdict::Lost);
    assert_eq!(shut(&nothing, &sent, &[10], &blocked), lost);
    assert_eq!(shut(&nothing, &[out(2)], &[2, 10], &blocked), lost);
    assert_eq!(shut(&nothing, &[out(2)], &[2, 10], &up), None);
    assert_eq!(shut(&nothing, &[out(2)], &[2], &blocked), None);
    assert_eq!(shut(&nothing, &[out(5)], &[2, 10], &blocked), None);
    // another frame left, or the CPU has a copy
    assert_eq!(shut(&passed(&[3], &[]), &sent, &[10], &gone), None);
    assert_eq!(shut(&passed(&[], &[COPY]), &sent, &[10], &gone), None);
}

/// The last port that had a carrier leaves the bridge, and takes its stations along: the bridge's carrier, and all that goes with that, goes
/// later.
#[test]
fn what_is_routed_into_a_bridge_whose_last_port_has_left_is_lost() {
    let before = || {
        let mut all = bridge(nl::BridgeInfo::default(), &[(3, FORWARDING, true)]);
        all.extend([neighbour(10), neighbour(2), station(3)]);
        all
    };
    let mut sent = out(3);
    (sent.frame.0[5], sent.frame.0[11]) = (10, 10);
    let sent = [sent];
    let dark = |o: nl::Object| match o {
        nl::Object::Link(l) if l.index == 10 => nl::Object::Link(nl::Link {
            flags: l.flags & !(1 << 16),
            ..l
        }),
        o => o,
    };
    let with = |ports: &[(u32, u8, bool)], carrier: bool| -> Vec<nl::Object> {
        let all = bridge(nl::BridgeInfo::default(), ports).into_iter();
        all.map(|o| if carrier { o } else { dark(o) }).collect()
    };
    let left = |passed: &Passed, carrier: bool, kernel: &[Out], ways: &[u8]| {
        let mut after = with(&[], carrier);
        after.push(link(3, 3, true));
        let later = Rest::new(after, Default::default(), &[]);
        let mut all = before();
        all.push(route("10.0.0.0/8", ways));
        within(USUAL, kernel, &all, |case| judge_shut(passed, &later, case))
    };
    let nothing = passed(&[], &[]);
    let lost = Some(Verdict::Lost);
    assert_eq!(left(&nothing, false, &sent, &[10]), lost);
    assert_eq!(left(&nothing, false, &[out(2)], &[2, 10]), lost);
    // another port is left, the kernel sent it elsewhere, or a frame left, or the CPU has a copy
    assert_eq!(left(&nothing, true, &sent, &[10]), None);
    assert_eq!(left(&nothing, false, &[out(2)], &[10]), None);
    assert_eq!(left(&nothing, false, &[out(2)], &[2]), None);
    assert_eq!(left(&passed(&[3], &[]), false, &sent, &[10]), None);
    assert_eq!(left(&passed(&[], &[COPY]), false, &sent, &[10]), None);
    // it is still in the bridge; or the bridge had no carrier before
    let still = Rest::new(
        with(&[(3, FORWARDING, true)], false),
        Default::default(),
        &[],
    );
    let mut all = before();
    all.push(route("10.0.0.0/8", &[10]));
    let judged = within(USUAL, &sent, &all, |case| {
        judge_shut(&nothing, &still, case)
    });
    assert_eq!(judged, None);
    let mut after = with(&[], false);
    after.push(link(3, 3, true));
    let later = Rest::new(after, Default::default(), &[]);
    let all: Vec<_> = all.into_iter().map(dark).collect();
    let judged = within(USUAL, &sent, &all, |case| {
        judge_shut(&nothing, &later, case)
    });
    assert_eq!(judged, None);
    // by a route of the port's own, which the bridge has no part in
    let mut all = before();
    all.extend([neighbour(3), route("10.0.0.0/8", &[3])]);
    let judged = within(USUAL, &[out(3)], &all, |case| {
        judge_shut(&nothing, &later, case)
    });
    assert_eq!(judged, None);
}

/// What a bridge's address was sent to, by these ports.
fn flooded(ports: &[u8]) -> Passed {
    let one = |p: &u8| (u16::from(*p), frame(10, true));
    Passed {
        out: ports.iter().map(one).collect(),
        cpu: Vec::new(),
    }
}

#[test]
fn a_flood_into_a_bridge_that_goes_down_may_be_a_part() {
    let two = [(3, FORWARDING, true), (4, FORWARDING, true)];
    let objects = || {
        let mut all = bridge(nl::BridgeInfo::default(), &two);
        all.extend([neighbour(10), route("10.0.0.0/8", &[10])]);
        all
    };
    let kernel = [3, 4].map(|port| Out {
        port,
        frame: Bytes(frame(10, true)),
        made: false,
    });
    let up = Rest::new(objects(), Default::default(), &[]);
    let blocked = [(3, FORWARDING, true), (4, BLOCKING, true)];
    let blocked = bridge(nl::BridgeInfo::default(), &blocked);
    let blocked = Rest::new(blocked, Default::default(), &[]);
    let gone = Rest::default();
    for (ports, newest, lost) in [
        (&[3][..], &gone, true),
        (&[4], &gone, true),
        (&[], &gone, true),
        // more than the kernel sent, or the bridge stays up
        (&[3, 5], &gone, false),
        (&[3], &up, false),
        (&[3], &blocked, false),
    ] {
        let judge = |case: &Case<'_>| judge_shut(&flooded(ports), newest, case);
        let verdict = within(USUAL, &kernel, &objects(), judge);
        assert_eq!(verdict, lost.then_some(Verdict::Lost), "{ports:?}");
    }
}

#[test]
fn a_next_hop_by_a_bridge_that_does_not_know_the_station_is_a_flood() {
    let by = flooded;
    let judged = |chip: &[u8], kernel: &[Out], fdb: Option<u32>, members: &[(u32, u8, bool)]| {
        let mut objects = bridge(nl::BridgeInfo::default(), members);
        objects.push(neighbour(10));
        objects.extend(fdb.map(station));
        objects.push(route("10.0.0.0/8", &[2, 10]));
        routed(&by(chip), kernel, &objects)
    };
    let two = [(3, FORWARDING, true), (4, FORWARDING, true)];
    let other = Verdict::OtherNextHop(Leniency::Hash);
    assert_eq!(judged(&[3, 4], &[out(2)], None, &two), other);
    // one too few, one too many, one that does not forward, one that takes no flood
    assert_eq!(judged(&[3], &[out(2)], None, &two), WRONG);
    assert_eq!(judged(&[3, 4, 5], &[out(2)], None, &two), WRONG);
    let shut = [(3, FORWARDING, true), (4, BLOCKING, true)];
    assert_eq!(judged(&[3, 4], &[out(2)], None, &shut), WRONG);
    assert_eq!(judged(&[3], &[out(2)], None, &shut), other);
    let quiet = [(3, FORWARDING, true), (4, FORWARDING, false)];
    assert_eq!(judged(&[3, 4], &[out(2)], None, &quiet), WRONG);
    assert_eq!(judged(&[3], &[out(2)], None, &quiet), other);
    // the station is known: it goes there and nowhere else
    assert_eq!(judged(&[3, 4], &[out(2)], Some(3), &two), WRONG);
    assert_eq!(judged(&[3], &[out(2)], Some(3), &two), other);
    assert_eq!(judged(&[4], &[out(2)], Some(3), &two), WRONG);
    // the kernel's flood, the chip's other next hop
    let flooded = [3, 4].map(|port| Out {
        port,
        frame: Bytes(frame(10, true)),
        made: false,
    });
    let objects = |two: &[(u32, u8, bool)]| {
        let mut all = bridge(nl::BridgeInfo::default(), two);
        all.extend([neighbour(10), neighbour(2), route("10.0.0.0/8", &[2, 10])]);
        all
    };
    assert_eq!(routed(&passed(&[2], &[]), &flooded, &objects(&two)), other);
    assert_eq!(routed(&passed(&[3], &[]), &flooded, &objects(&two)), WRONG);
    // the kernel chose the bridge, and its station's port does not forward
    let silent = |members: &[(u32, u8, bool)]| {
        let mut all = objects(members);
        all.push(station(3));
        routed(&passed(&[2], &[]), &[], &all)
    };
    let shut = Verdict::OtherNextHop(Leniency::PortShutOfKernel);
    assert_eq!(silent(&[(3, BLOCKING, true)]), shut);
    assert_eq!(silent(&[(3, FORWARDING, true)]), WRONG);
}

#[test]
fn what_goes_where_the_kernel_is_silent_has_lost_a_hop() {
    let routes = [route("10.0.0.0/8", &[2, 5])];
    let silent = |frames: &[(u16, Vec<u8>)]| {
        let (out, cpu) = (frames.to_vec(), Vec::new());
        routed(&Passed { out, cpu }, &[], &routes)
    };
    let right = frame(2, true);
    let other = Verdict::OtherNextHop(Leniency::NoStation);
    assert_eq!(silent(&[(2, right.clone())]), other);
    // with as many hops as it came with; with one less, and the checksum of before
    let mut kept = right.clone();
    kept[22..26].copy_from_slice(&frame(2, false)[22..26]);
    assert_eq!(silent(&[(2, kept.clone())]), WRONG);
    let mut spoilt = right;
    spoilt[24..26].copy_from_slice(&kept[24..26]);
    assert_eq!(silent(&[(2, spoilt)]), WRONG);
}

#[test]
fn a_way_without_carrier_and_neighbour_is_the_cpus() {
    // 10 is no device here: neither a neighbour nor a carrier
    let routes = [route("10.0.0.0/8", &[2, 10])];
    assert_eq!(routed(&passed(&[], &[]), &[out(2)], &routes), WRONG);
}

fn vlans(ifindex: u32, vlans: &[(u16, bool)]) -> nl::Object {
    let vlan = |(id, untagged): &(u16, bool)| nl::BridgeVlan {
        first: *id,
        last: *id,
        pvid: *untagged,
        untagged: *untagged,
        state: FORWARDING,
        other: None,
    };
    nl::Object::BridgeVlans(nl::BridgeVlans {
        ifindex,
        vlans: vlans.iter().map(vlan).collect(),
    })
}

#[test]
fn a_next_hop_by_a_bridge_has_the_tag_of_its_vlan() {
    // VLAN 10 is the bridge's own; port 3 has it with a tag
    let info = nl::BridgeInfo {
        vlan_filtering: true,
        ..nl::BridgeInfo::default()
    };
    let plain = || (3, frame(10, true));
    let tagged = |vid: u8| {
        let mut f = frame(10, true);
        f.splice(12..12, [0x81, 0, 0, vid]);
        (3, f)
    };
    let sent =
        |info: &nl::BridgeInfo, kernel: (u8, Vec<u8>), chip: (u8, Vec<u8>), untagged: bool| {
            let mut objects = bridge(*info, &[(3, FORWARDING, true)]);
            objects.extend([neighbour(10), station(3), route("10.0.0.0/8", &[2, 10])]);
            objects.extend([
                vlans(10, &[(10, true)]),
                vlans(3, &[(10, untagged), (20, false)]),
            ]);
            let kernel = Out {
                port: u16::from(kernel.0),
                frame: Bytes(kernel.1),
                made: false,
            };
            let chip = Passed {
                out: vec![(u16::from(chip.0), chip.1)],
                cpu: Vec::new(),
            };
            routed(&chip, &[kernel], &objects)
        };
    let by_2 = || (2, frame(2, true));
    let other = Verdict::OtherNextHop(Leniency::Hash);
    let right = || tagged(10);
    assert_eq!(sent(&info, by_2(), right(), false), other);
    assert_eq!(sent(&info, right(), by_2(), false), other);
    // another VLAN's tag, or none
    assert_eq!(sent(&info, by_2(), tagged(20), false), WRONG);
    assert_eq!(sent(&info, by_2(), plain(), false), WRONG);
    // where the port has the VLAN without a tag
    assert_eq!(sent(&info, by_2(), plain(), true), other);
    assert_eq!(sent(&info, by_2(), right(), true), WRONG);
    // a bridge that tells none apart
    let simple = nl::BridgeInfo::default();
    assert_eq!(sent(&simple, by_2(), plain(), false), other);
    assert_eq!(sent(&simple, by_2(), right(), false), WRONG);
    // by the same next hop they are the same frame
    assert_eq!(sent(&info, right(), tagged(20), false), WRONG);
    assert_eq!(sent(&info, right(), plain(), false), WRONG);
}

#[test]
fn what_no_port_lets_in_was_not_late() {
    let world = World { port: 4, ..USUAL };
    let routes = [route("10.0.0.0/8", &[2])];
    let late = |objects: &[nl::Object], change: &dyn Fn(&mut Vec<u8>, &mut Vec<u8>)| {
        within(world, &[], objects, |case| {
            let mut probe = case.probe.clone();
            let mut passed = passed(&[2], &[]);
            change(&mut probe.frame.0, &mut passed.out[0].1);
            judge_late(
                &passed,
                &Case {
                    probe: &probe,
                    ..*case
                },
            )
        })
    };
    assert!(late(&routes, &|_, _| {}).is_some());
    // to another station, the last hop, no hop less, a wrong checksum
    assert_eq!(late(&routes, &|probe, _| probe[5] ^= 8), None);
    assert_eq!(late(&routes, &|probe, _| probe[22] = 1), None);
    let last = |probe: &mut Vec<u8>, out: &mut Vec<u8>| {
        (probe[22], out[22]) = (1, 0);
        out[24..26].copy_from_slice(&0xa6c5u16.to_be_bytes());
    };
    assert_eq!(late(&routes, &last), None);
    assert_eq!(
        late(&routes, &|probe, out| out[22..26]
            .copy_from_slice(&probe[22..26])),
        None
    );
    assert_eq!(late(&routes, &|_, out| out[25] ^= 1), None);
    // from an address of the switch
    let own = nl::Object::Addr(nl::Addr {
        ifindex: 2,
        local: [10, 1, 0, 2].into(),
        prefix_len: 24,
        peer: None,
        flags: 0,
        scope: 0,
    });
    assert_eq!(late(&[routes[0].clone(), own], &|_, _| {}), None);
    // by the table of a VRF that the port is not in
    let mut other = routes[0].clone();
    if let nl::Object::Route(r) = &mut other {
        r.table = 100;
    }
    let vrf = |master: u32| {
        let nl::Object::Link(device) = link(41, 41, true) else {
            unreachable!()
        };
        let kind = nl::LinkKind::Vrf(100);
        let nl::Object::Link(port) = link(33, 33, true) else {
            unreachable!()
        };
        [
            nl::Object::Link(nl::Link { kind, ..device }),
            // a VLAN interface on the port
            nl::Object::Link(nl::Link {
                lower: 4,
                master,
                ..port
            }),
        ]
    };
    let [device, beside] = vrf(0);
    assert_eq!(late(&[other.clone(), device, beside], &|_, _| {}), None);
    let [device, within] = vrf(41);
    assert!(late(&[other, device, within], &|_, _| {}).is_some());
}

/// Whether the chip may give the CPU, for this reason, what came in by port 1, to go by port 2.
fn given(reason: u16, change: impl FnOnce(&mut Probe), objects: &[nl::Object]) -> Surplus {
    within(USUAL, &[out(2)], objects, |case| {
        let mut probe = case.probe.clone();
        change(&mut probe);
        surplus(
            reason,
            &Case {
                probe: &probe,
                ..*case
            },
        )
    })
}

#[test]
fn an_own_prefix_by_type_of_service_is_the_longest_one() {
    let of = |dst: &str, kind: u8, tos: u8, table: u32| match route(dst, &[2]) {
        nl::Object::Route(r) => nl::Object::Route(nl::Route {
            kind,
            tos,
            table,
            ..r
        }),
        _ => unreachable!(),
    };
    // local, blackhole; the packet goes from 10.1.0.2 to 10.9.0.1
    let own = |dst| of(dst, 2, 0, 254);
    let other = |dst| of(dst, 6, 16, 254);
    for (reason, dst, longer) in [
        (raw::TND_TRAP_LOCAL, "10.9.0.0/25", "10.9.0.1/32"),
        (raw::TND_TRAP_ERROR, "10.1.0.0/25", "10.1.0.2/32"),
    ] {
        let given = |objects: &[nl::Object]| given(reason, |_| {}, objects);
        assert_eq!(given(&[own(dst), other(dst)]), Surplus::Allowed);
        // one of the two alone, and both where a longer prefix decides
        assert_eq!(given(&[own(dst)]), Surplus::Wrong);
        assert_eq!(given(&[other(dst)]), Surplus::Wrong);
        let plain = route(longer, &[2]);
        assert_eq!(given(&[own(dst), other(dst), plain]), Surplus::Wrong);
        assert_eq!(given(&[own("10.0.0.0/8"), other(dst)]), Surplus::Wrong);
    }
    // the reason for where it goes is none for where it comes from
    let there = [own("10.9.0.0/25"), other("10.9.0.0/25")];
    assert_eq!(given(raw::TND_TRAP_ERROR, |_| {}, &there), Surplus::Wrong);
    let here = [own("10.1.0.0/25"), other("10.1.0.0/25")];
    assert_eq!(given(raw::TND_TRAP_LOCAL, |_| {}, &here), Surplus::Wrong);
}

#[test]
fn a_setting_that_the_chip_does_not_know_is_one_of_that_port() {
    let with = |settings: nl::BridgePort, index: u32| {
        let mut all = bridge(
            nl::BridgeInfo::default(),
            &[(1, FORWARDING, true), (3, FORWARDING, true)],
        );
        for object in &mut all {
            if let nl::Object::Link(l) = object
                && l.index == index
            {
                l.brport = Some(settings);
            }
        }
        all
    };
    let settings = |neigh_suppress| nl::BridgePort {
        state: FORWARDING,
        neigh_suppress,
        ..nl::BridgePort::default()
    };
    let unsupported = |n, on| given(raw::TND_TRAP_UNSUPPORTED, |_| {}, &with(settings(on), n));
    assert_eq!(unsupported(1, true), Surplus::Allowed);
    assert_eq!(unsupported(1, false), Surplus::Wrong);
    assert_eq!(unsupported(3, true), Surplus::Wrong);
    // of any of its ports: the bridge is the kernel's
    let routed_there = |n, on| {
        let mut all = with(settings(on), n);
        all.push(route("10.0.0.0/8", &[10]));
        given(raw::TND_TRAP_ROUTE, |p| p.port = 2, &all)
    };
    assert_eq!(routed_there(3, true), Surplus::Allowed);
    assert_eq!(routed_there(3, false), Surplus::Wrong);
    // one without ports is the kernel's, too
    let mut empty = bridge(nl::BridgeInfo::default(), &[]);
    empty.push(route("10.0.0.0/8", &[10]));
    assert_eq!(
        given(raw::TND_TRAP_ROUTE, |p| p.port = 2, &empty),
        Surplus::Allowed
    );
}

/// A member of the packet's group has a setting that the chip does not know, and gets no packet itself: the group is the kernel's.
#[test]
fn a_group_with_such_a_member_is_the_kernels() {
    let group = |neigh_suppress, member: u32, group: [u8; 4], of: u32| {
        let mut all = bridge(nl::BridgeInfo::default(), &[(1, FORWARDING, true)]);
        let nl::Object::Link(mut l) = link(3, 3, true) else {
            unreachable!()
        };
        l.brport = Some(nl::BridgePort {
            neigh_suppress,
            ..nl::BridgePort::default()
        });
        all.push(nl::Object::Link(l));
        all.push(nl::Object::Mdb(nl::Mdb {
            bridge: of,
            entries: vec![nl::MdbEntry {
                ifindex: member,
                vlan: 0,
                group: nl::MdbGroup::Ip(group.into()),
                source: None,
                mode: None,
                blocked: false,
            }],
            routers: Vec::new(),
        }));
        given(raw::TND_TRAP_L2_MULTICAST, |_| {}, &all)
    };
    let to = [10, 9, 0, 1];
    assert_eq!(group(true, 3, to, 10), Surplus::Allowed);
    assert_eq!(group(false, 3, to, 10), Surplus::Wrong);
    assert_eq!(group(true, 1, to, 10), Surplus::Wrong);
    assert_eq!(group(true, 3, [10, 9, 0, 2], 10), Surplus::Wrong);
    assert_eq!(group(true, 3, to, 11), Surplus::Wrong);
}

/// The kernel asks policy rules where a packet claims to come from, as if it had come in where it leaves.
#[test]
fn policy_rules_may_let_a_packet_from_an_own_address_pass() {
    let rule = |matches_all| {
        nl::Object::Rule(nl::Rule {
            family: nl::Family::V4,
            priority: 100,
            table: 254,
            action: nl::consts::FR_ACT_TO_TBL,
            matches_all,
            l3mdev: false,
            iif: "swp2".into(),
            text: String::new(),
        })
    };
    // the packet comes from 10.1.0.2
    let own = |dst: &str| match route(dst, &[2]) {
        nl::Object::Route(r) => nl::Object::Route(nl::Route {
            kind: nl::consts::RTN_LOCAL,
            ..r
        }),
        _ => unreachable!(),
    };
    let given = |all, dst| given(raw::TND_TRAP_ERROR, |_| {}, &[rule(all), own(dst)]);
    assert_eq!(given(false, "10.1.0.2/32"), Surplus::Allowed);
    assert_eq!(given(true, "10.1.0.2/32"), Surplus::Wrong);
    assert_eq!(given(false, "10.1.0.3/32"), Surplus::Wrong);
}

#[test]
fn a_querier_is_doubtful_until_it_has_asked() {
    let family = |six: bool, change: &dyn Fn(&mut nl::BridgeInfo)| {
        let mut info = nl::BridgeInfo {
            mcast_snooping: true,
            ..nl::BridgeInfo::default()
        };
        info.mcast.querier = true;
        change(&mut info);
        let to6 = |probe: &mut Probe| {
            if six {
                let mut f = vec![0x33, 0x33, 0, 0, 0, 9, 2, 0, 0, 0, 2, 1, 0x86, 0xdd];
                f.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
                f.extend([0x20; 16]);
                f.extend([0xff; 16]);
                f.extend([0; 8]);
                probe.frame = Bytes(f);
            }
        };
        let objects = bridge(info, &[(1, FORWARDING, true), (3, FORWARDING, true)]);
        given(raw::TND_TRAP_L2_MULTICAST, to6, &objects)
    };
    // its own, by which the kernel goes at once, or after the time that members have
    assert_eq!(family(false, &|_| {}), Surplus::Wrong);
    assert_eq!(
        family(false, &|i| i.mcast.response_interval = 100),
        Surplus::Allowed
    );
    // in IPv6 only with an address to ask from
    assert_eq!(family(true, &|_| {}), Surplus::Allowed);
    assert_eq!(
        family(true, &|i| i.mcast.address6 = [1; 16]),
        Surplus::Wrong
    );
    // another one, of this family
    let other =
        |i: &mut nl::BridgeInfo| (i.mcast.querier, i.mcast.other) = (false, [Some(9), None]);
    assert_eq!(family(false, &other), Surplus::Allowed);
    assert_eq!(family(true, &other), Surplus::Wrong);
    // none, or no snooping
    assert_eq!(family(false, &|i| i.mcast.querier = false), Surplus::Wrong);
    let flooding =
        |i: &mut nl::BridgeInfo| (i.mcast_snooping, i.mcast.response_interval) = (false, 100);
    assert_eq!(family(false, &flooding), Surplus::Wrong);
}

//! Answers and what is thought of them.

use super::*;
use crate::recording::Bytes;

mod excuses;

/// To 10.9.0.1, as a host sends it, or as a router does: to the second address of a port.
fn frame(port: u8, routed: bool) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 9, port, 2, 0, 0, 0, 2, port, 8, 0];
    let (ttl, sum): (u8, u16) = if routed { (63, 0x67c5) } else { (64, 0x66c5) };
    f.extend([0x45, 0, 0, 28, 0, 0, 0, 0, ttl, 17]);
    f.extend(sum.to_be_bytes());
    f.extend([10, 1, 0, 2, 10, 9, 0, 1]);
    f.extend([0, 9, 0, 9, 0, 8, 0, 0]);
    f
}

fn out(port: u8) -> Out {
    Out {
        port: u16::from(port),
        frame: Bytes(frame(port, true)),
        made: false,
    }
}

fn passed(ports: &[u8], cpu: &[(u16, bool)]) -> Passed {
    Passed {
        out: ports
            .iter()
            .map(|p| (u16::from(*p), frame(*p, true)))
            .collect(),
        cpu: cpu.to_vec(),
    }
}

fn judged(passed: &Passed, kernel: &[Out], dark: bool) -> Verdict {
    let probe = Probe {
        port: 1,
        frame: Bytes(frame(1, false)),
    };
    let answer = Answer {
        out: kernel.to_vec(),
        limited: false,
    };
    let case = Case {
        probe: &probe,
        answer: &answer,
        rest: &Rest::default(),
        ports: &[],
        owes: &OnceLock::new(),
    };
    judge(passed, &case, dark)
}

const IT: (u16, bool) = (raw::TND_TRAP_ROUTE, false);
const COPY: (u16, bool) = (raw::TND_TRAP_REDIRECT, true);

#[test]
fn the_same_frames_are_exact() {
    assert_eq!(judged(&passed(&[2], &[]), &[out(2)], false), Verdict::Exact);
    assert_eq!(
        judged(&passed(&[2], &[COPY]), &[out(2)], false),
        Verdict::Exact
    );
    assert_eq!(judged(&passed(&[], &[]), &[], false), Verdict::Exact);
    for (chip, kernel) in [(vec![3], vec![2]), (vec![], vec![2]), (vec![2, 3], vec![2])] {
        let kernel: Vec<Out> = kernel.into_iter().map(out).collect();
        let verdict = judged(&passed(&chip, &[]), &kernel, false);
        assert_eq!(verdict, Verdict::Wrong(Why::Frames), "{chip:?}");
    }
    // the kernel is silent: so must the chip be
    assert_eq!(
        judged(&passed(&[2], &[]), &[], false),
        Verdict::Wrong(Why::Frames)
    );
}

#[test]
fn the_cpu_has_it_once_and_alone() {
    assert_eq!(
        judged(&passed(&[], &[IT]), &[out(2)], false),
        Verdict::Trapped(IT.0)
    );
    let twice = Verdict::Wrong(Why::TwiceToCpu);
    assert_eq!(judged(&passed(&[], &[IT, IT]), &[out(2)], false), twice);
    assert_eq!(
        judged(&passed(&[2], &[COPY, COPY]), &[out(2)], false),
        twice
    );
    let both = Verdict::Wrong(Why::ForwardedAndTrapped);
    assert_eq!(judged(&passed(&[2], &[IT]), &[out(2)], false), both);
    // wherever among the CPU's it stands
    assert_eq!(judged(&passed(&[2], &[IT, COPY]), &[out(2)], false), both);
    assert_eq!(judged(&passed(&[2], &[COPY, IT]), &[out(2)], false), both);
    // a copy of what has not been forwarded is none
    let lost = judged(&passed(&[], &[COPY]), &[out(2)], false);
    assert_eq!(lost, Verdict::Wrong(Why::Frames));
}

#[test]
fn what_the_kernel_answers_itself_wants_a_copy() {
    let made = Out {
        made: true,
        ..out(1)
    };
    let kernel = [made, out(2)];
    let verdict = judged(&passed(&[2], &[]), &kernel, false);
    assert_eq!(verdict, Verdict::Wrong(Why::NoCopy));
    assert_eq!(
        judged(&passed(&[2], &[COPY]), &kernel, false),
        Verdict::Exact
    );
}

#[test]
fn after_a_power_failure_less_will_do_and_nothing_else() {
    let kernel = [out(2), out(3)];
    assert_eq!(judged(&passed(&[], &[]), &kernel, true), Verdict::Dark);
    assert_eq!(judged(&passed(&[3], &[]), &kernel, true), Verdict::Dark);
    assert_eq!(judged(&passed(&[2, 3], &[]), &kernel, true), Verdict::Exact);
    let wrong = Verdict::Wrong(Why::Frames);
    assert_eq!(judged(&passed(&[4], &[]), &kernel, true), wrong);
    assert_eq!(judged(&passed(&[2, 4], &[]), &kernel, true), wrong);
    assert_eq!(judged(&passed(&[2], &[]), &[], true), wrong);
    // twice what the kernel sent once
    assert_eq!(judged(&passed(&[2, 2], &[]), &kernel, true), wrong);
}

#[test]
fn a_surplus_wants_a_reason() {
    let probe = Probe {
        port: 1,
        frame: Bytes(frame(1, false)),
    };
    let of = |out: Vec<Out>| {
        let answer = Answer {
            out,
            limited: false,
        };
        let case = Case {
            probe: &probe,
            answer: &answer,
            rest: &Rest::default(),
            ports: &[],
            owes: &OnceLock::new(),
        };
        surplus(raw::TND_TRAP_ROUTE, &case)
    };
    assert_eq!(of(vec![out(2)]), Surplus::Wrong);
    assert_eq!(of(vec![]), Surplus::None);
    assert_eq!(
        of(vec![
            out(2),
            Out {
                made: true,
                ..out(1)
            }
        ]),
        Surplus::None
    );
}

fn link(index: u32, port: u8, carrier: bool) -> nl::Object {
    // IFF_UP, IFF_LOWER_UP
    let flags = 1 | u32::from(carrier) << 16;
    nl::Object::Link(nl::Link {
        index,
        name: format!("swp{port}"),
        kind: nl::LinkKind::Other(String::new()),
        flags,
        mtu: 1500,
        mac: Some([2, 0, 0, 0, 2, port]),
        master: 0,
        slave_kind: String::new(),
        lower: 0,
        lower_elsewhere: false,
        operstate: 6,
        promiscuity: 0,
        brport: None,
        bond: None,
    })
}

fn neighbour(port: u8) -> nl::Object {
    nl::Object::Neigh(nl::Neigh {
        ifindex: u32::from(port),
        addr: [10, port, 0, 2].into(),
        mac: Some([2, 0, 0, 0, 9, port]),
        state: 0x80,
        flags: 0,
        ext_flags: 0,
    })
}

fn route(dst: &str, ways: &[u8]) -> nl::Object {
    let way = |port: &u8| nl::RouteNexthop {
        ifindex: u32::from(*port),
        gateway: Some([10, *port, 0, 2].into()),
        weight: 1,
        flags: 0,
        encap: false,
    };
    nl::Object::Route(nl::Route {
        table: 254,
        dst: dst.parse().unwrap(),
        tos: 0,
        metric: 0,
        kind: 1,
        scope: 0,
        protocol: 3,
        flags: 0,
        nh_id: 0,
        nexthops: nl::Nexthops::Many(ways.iter().map(way).collect()),
        src: None,
        prefsrc: None,
        mtu: 0,
        other: 0,
    })
}

/// The same route where ways without a carrier are left out.
fn without_dark(mut route: nl::Object) -> nl::Object {
    if let nl::Object::Route(nl::Route {
        nexthops: nl::Nexthops::Many(ways),
        ..
    }) = &mut route
    {
        for way in ways.iter_mut().filter(|w| w.ifindex == 4) {
            way.flags = nl::consts::RTNH_F_DEAD | nl::consts::RTNH_F_LINKDOWN;
        }
    }
    route
}

/// How a probe is sent, and what the kernel was told.
#[derive(Clone, Copy)]
struct World {
    port: u8,
    /// The kernel's answer may be limited.
    limited: bool,
}

const USUAL: World = World {
    port: 1,
    limited: false,
};

/// The ports' netdevs have their numbers as ifindex; 4 has no carrier, and nobody answers at 5.
fn within<T>(
    world: World,
    kernel: &[Out],
    routes: &[nl::Object],
    f: impl FnOnce(&Case<'_>) -> T,
) -> T {
    let ports: Vec<Port> = (1..=5)
        .map(|n| Port {
            ifindex: n,
            ..Port::default()
        })
        .collect();
    let replaced = |index: u32| {
        let is = |o: &nl::Object| matches!(o, nl::Object::Link(l) if l.index == index);
        routes.iter().any(is)
    };
    let links = (1..=5).filter(|n| !replaced(u32::from(*n)));
    let links = links.map(|n| link(u32::from(n), n, n != 4));
    let neighbours = (1..=4).map(neighbour);
    let objects = links.chain(neighbours).chain(routes.iter().cloned());
    let confs = (1..=5).map(|n| {
        nl::Object::Netconf(nl::Netconf {
            family: nl::Family::V4,
            target: nl::NetconfTarget::Link(n),
            forwarding: Some(true),
            rp_filter: None,
            ignore_linkdown: None,
            mc_forwarding: None,
            proxy_neigh: None,
            bc_forwarding: None,
        })
    });
    let objects = objects.chain(confs);
    let rest = Rest::new(objects, Default::default(), &ports);
    let mut sent = frame(world.port, false);
    // to the port's own address
    sent[4] = 2;
    let probe = Probe {
        port: u16::from(world.port),
        frame: Bytes(sent),
    };
    let answer = Answer {
        out: kernel.to_vec(),
        limited: world.limited,
    };
    f(&Case {
        probe: &probe,
        answer: &answer,
        rest: &rest,
        ports: &ports,
        owes: &OnceLock::new(),
    })
}

fn by(world: World, passed: &Passed, kernel: &[Out], routes: &[nl::Object]) -> Verdict {
    within(world, kernel, routes, |case| judge(passed, case, false))
}

fn routed(passed: &Passed, kernel: &[Out], routes: &[nl::Object]) -> Verdict {
    by(USUAL, passed, kernel, routes)
}

const WRONG: Verdict = Verdict::Wrong(Why::Frames);

#[test]
fn another_next_hop_is_one_of_the_longest_prefix() {
    let wide = route("10.0.0.0/8", &[2, 3]);
    let narrow = route("10.9.0.0/24", &[3, 1]);
    let at_3 = passed(&[3], &[]);
    assert_eq!(
        routed(&at_3, &[out(2)], std::slice::from_ref(&wide)),
        Verdict::OtherNextHop(Leniency::Hash)
    );
    assert_eq!(
        routed(&passed(&[1], &[]), &[out(2)], std::slice::from_ref(&wide)),
        WRONG
    );
    // the wider route is not asked
    assert_eq!(routed(&at_3, &[out(2)], &[wide.clone(), narrow]), WRONG);
    // one way has no other
    assert_eq!(
        routed(&at_3, &[out(2)], &[route("10.0.0.0/8", &[2])]),
        WRONG
    );
    // another packet is none of its next hops
    let mut changed = at_3;
    changed.out[0].1[30] ^= 1;
    assert_eq!(routed(&changed, &[out(2)], &[wide]), WRONG);
}

#[test]
fn a_next_hop_of_the_kernels_that_leads_nowhere_is_silent() {
    let unknown = [route("10.0.0.0/8", &[2, 5])];
    let dark = [route("10.0.0.0/8", &[2, 4])];
    let known = [route("10.0.0.0/8", &[2, 3])];
    let ignored = [without_dark(dark[0].clone())];
    let mut told = out(1);
    told.made = true;
    // ICMP, another type
    told.frame.0[23] = 1;
    let error = told.clone();
    told.frame.0[34] = 5;
    let at_2 = passed(&[2], &[]);
    let other = |why| Verdict::OtherNextHop(why);
    assert_eq!(routed(&at_2, &[], &unknown), other(Leniency::NoStation));
    assert_eq!(routed(&at_2, &[], &dark), other(Leniency::NoCarrier));
    assert_eq!(routed(&at_2, &[], &ignored), other(Leniency::NotWeighed));
    // what goes back by the same way is told of first; an error is none of these ways
    assert_eq!(routed(&at_2, &[told], &dark), other(Leniency::NoCarrier));
    assert_eq!(routed(&at_2, &[error], &dark), Verdict::Wrong(Why::NoCopy));
    // what the chip must leave out
    assert_eq!(routed(&passed(&[4], &[]), &[], &ignored), WRONG);
    assert_eq!(routed(&at_2, &[], &known), WRONG);
    // the chip's: what is not resolved goes to the CPU, what has no carrier is looked at closer
    let nothing = passed(&[], &[]);
    assert_eq!(routed(&nothing, &[out(2)], &dark), WRONG);
    assert_eq!(routed(&nothing, &[out(2)], &unknown), WRONG);
}

#[test]
fn a_next_hop_of_the_chips_without_a_carrier_is_one_that_the_kernel_has() {
    let lost = |would: &[u8], kernel: &[Out], ways: &[u8]| {
        let routes = [route("10.0.0.0/8", ways)];
        within(USUAL, kernel, &routes, |case| {
            judge_lost(&passed(&[], &[]), &passed(would, &[]), &[4], case)
        })
    };
    assert_eq!(
        lost(&[4], &[out(2)], &[2, 4]),
        Verdict::OtherNextHop(Leniency::NoCarrierOfChip)
    );
    // it is none of the route's
    assert_eq!(lost(&[4], &[out(2)], &[2, 3]), WRONG);
    // the kernel does not go by that route
    assert_eq!(lost(&[4], &[out(1)], &[2, 4]), WRONG);
    // told to leave it out, the chip must
    let ignored = [without_dark(route("10.0.0.0/8", &[2, 4]))];
    let sent = within(USUAL, &[out(2)], &ignored, |case| {
        judge_lost(&passed(&[], &[]), &passed(&[4], &[]), &[4], case)
    });
    assert_eq!(sent, WRONG);
    // that port is up
    assert_eq!(lost(&[3], &[out(2)], &[2, 3]), WRONG);
    // it went nowhere at all
    assert_eq!(lost(&[], &[out(2)], &[2, 4]), WRONG);
}

#[test]
fn what_went_into_a_port_that_went_down_is_lost() {
    let lost = |out: &[u8], would: &[u8], kernel: &[Out]| {
        within(USUAL, kernel, &[], |case| {
            judge_lost(&passed(out, &[]), &passed(would, &[]), &[2, 4], case)
        })
    };
    assert_eq!(lost(&[], &[2], &[out(2)]), Verdict::Lost);
    assert_eq!(lost(&[3], &[2, 3], &[out(2), out(3)]), Verdict::Lost);
    // the kernel sent it elsewhere
    assert_eq!(lost(&[], &[2], &[out(3)]), WRONG);
    // one that is up has lost nothing
    assert_eq!(lost(&[], &[3], &[out(3)]), WRONG);
    assert_eq!(lost(&[], &[2, 3], &[out(2), out(3)]), WRONG);
    // that one is not among what would have left
    assert_eq!(lost(&[1], &[2, 3], &[out(2), out(3)]), WRONG);
    // were they up the CPU would have it
    let trapped = within(USUAL, &[out(2)], &[], |case| {
        judge_lost(&passed(&[], &[]), &passed(&[2], &[COPY]), &[2], case)
    });
    assert_eq!(trapped, WRONG);
}

#[test]
fn what_a_route_behind_the_surest_still_gives_a_port_that_went_down_is_lost() {
    let lost = |would: &[u8], routes: &[nl::Object]| {
        within(USUAL, &[out(2)], routes, |case| {
            judge_lost(&passed(&[], &[]), &passed(would, &[]), &[3], case)
        })
    };
    let surest = route("10.9.0.0/16", &[2]);
    let behind = [route("10.0.0.0/8", &[3]), surest.clone()];
    assert_eq!(lost(&[3], &behind), Verdict::Lost);
    // by no next hop of that one, or by a port that is up
    assert_eq!(lost(&[1], &behind), WRONG);
    assert_eq!(lost(&[3], &[route("10.0.0.0/8", &[1]), surest]), WRONG);
    // it is the surest
    assert_eq!(lost(&[3], &behind[..1]), WRONG);
    // some of it left
    let part = within(USUAL, &[out(2)], &behind, |case| {
        judge_lost(&passed(&[2], &[]), &passed(&[2, 3], &[]), &[3], case)
    });
    assert_eq!(part, WRONG);
}

#[test]
fn a_limit_excuses_the_kernel_alone() {
    let limited = World {
        limited: true,
        ..USUAL
    };
    let nothing = passed(&[], &[]);
    let none = Verdict::Wrong(Why::NoError);
    assert_eq!(by(limited, &nothing, &[], &[]), none);
    assert_eq!(by(USUAL, &nothing, &[], &[]), Verdict::Exact);
    // where the CPU has it nothing is missing
    let trapped = passed(&[], &[IT]);
    assert_eq!(by(limited, &trapped, &[], &[]), Verdict::Trapped(IT.0));
    // no wire that it could have come by, a next hop where it is lost
    let at_4 = World { port: 4, ..limited };
    assert_eq!(by(at_4, &nothing, &[], &[]), Verdict::Exact);
    let dark = [route("10.0.0.0/8", &[2, 4])];
    assert_eq!(by(limited, &nothing, &[], &dark), Verdict::Exact);
}

#[test]
fn what_came_in_by_a_port_that_is_down_goes_by_the_routes_of_then() {
    let routes = [route("10.0.0.0/8", &[2])];
    let late = |port: u8, out: &[u8], routes: &[nl::Object]| {
        let world = World { port, ..USUAL };
        within(world, &[], routes, |case| {
            judge_late(&passed(out, &[]), case)
        })
    };
    let other = Some(Verdict::OtherNextHop(Leniency::CameByDown));
    assert_eq!(late(4, &[2], &routes), other);
    // by a port that is up, elsewhere, or twice
    assert_eq!(late(1, &[2], &routes), None);
    assert_eq!(late(4, &[3], &routes), None);
    assert_eq!(late(4, &[2, 3], &routes), None);
    assert_eq!(late(4, &[2], &[]), None);
    // into a next hop without a carrier
    assert_eq!(late(4, &[4], &[route("10.0.0.0/8", &[4])]), None);
}

#[test]
fn what_left_by_a_port_that_came_up_goes_by_the_routes_of_before() {
    let newest = Rest::default();
    let early = |out: &[u8], cpu: &[(u16, bool)], kernel: &[Out], routes: &[nl::Object]| {
        within(USUAL, kernel, routes, |case| {
            judge_early(&passed(out, cpu), &newest, case)
        })
    };
    // 4 has no carrier
    let routes = [route("10.0.0.0/8", &[4])];
    let came_up = Some(Verdict::OtherNextHop(Leniency::CameUp));
    assert_eq!(early(&[4], &[], &[], &routes), came_up);
    assert_eq!(early(&[4], &[COPY], &[], &routes), came_up);
    // the CPU has it as well, the kernel sent it elsewhere, or no route leads there
    assert_eq!(early(&[4], &[IT], &[], &routes), None);
    assert_eq!(early(&[4], &[], &[out(2)], &routes), None);
    assert_eq!(early(&[4], &[], &[], &[route("10.0.0.0/8", &[3])]), None);
    // that one had a carrier
    assert_eq!(early(&[2], &[], &[], &[route("10.0.0.0/8", &[2])]), None);
    // it has none yet
    let still = within(USUAL, &[], &routes, |case| {
        judge_early(&passed(&[4], &[]), case.rest, case)
    });
    assert_eq!(still, None);
}

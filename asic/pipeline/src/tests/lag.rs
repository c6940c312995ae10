//! Link aggregation: what comes in by a member is the group's, what goes to the group leaves by one member per flow.

use proptest::prelude::*;
use tandem_abi::raw;

use crate::entry::{Action, RouteTarget};
use crate::io::Event;
use crate::state::{LagConfig, MemberConfig, PortConfig, RifPlace};
use crate::testkit::Answer::{Cpu, Drop, Tx};
use crate::testkit::*;
use crate::{DropReason, Offload, State};

/// Sets group 1 and its port up.
fn lag(s: &mut State, hash: u16, members: &[(u16, bool)]) -> u16 {
    let config = LagConfig {
        hash,
        members: members.to_vec(),
    };
    s.set_lag(1, config).unwrap();
    let port = s.lag_port(1);
    let flags = PortConfig::default().flags | raw::TND_PORT_UP;
    let config = PortConfig {
        flags,
        mac: router_mac(port),
        ..PortConfig::default()
    };
    s.set_port(port, config).unwrap();
    port
}

/// A bridge over ports 1 and 2 and a group of 3, 4 and 5.
fn bridged() -> (State, u16) {
    let mut s = bridge(5);
    for port in 3..=5 {
        s.remove_member(port, raw::TND_VID_ANY);
    }
    let port = lag(
        &mut s,
        raw::TND_LAG_HASH_L4,
        &[(3, true), (4, true), (5, true)],
    );
    s.set_member(port, raw::TND_VID_ANY, MemberConfig { fid: 1, flags: 3 })
        .unwrap();
    (s, port)
}

fn flow(n: u16) -> Vec<u8> {
    tcp4(mac(9), mac(1), [10, 0, 0, 1], [10, 0, 0, 2], (n, 80))
}

#[test]
fn members_are_one_port_of_the_bridge() {
    let (mut s, port) = bridged();
    let f = udp4(mac(1), mac(9), [1; 4], [2; 4], 64, 30);
    let (out, answer) = run_with(&mut s, 4, &f, Offload::NONE, 1);
    assert_eq!(answer, Tx(vec![1, 2]), "not back by another member");
    assert_eq!(
        out.events,
        [Event::Learn {
            fid: 1,
            mac: mac(9),
            port
        }]
    );
    // known behind the group, seen by another member: no move
    let (out, _) = run_with(&mut s, 3, &f, Offload::NONE, 1);
    assert!(out.events.is_empty());
    // to the group: exactly one member; a flood too
    run(&mut s, 1, &udp4(mac(7), mac(1), [1; 4], [2; 4], 64, 30));
    let Tx(ports) = run(&mut s, 1, &flow(1)) else {
        panic!()
    };
    assert!(ports.len() == 1 && (3..=5).contains(&ports[0]));
    let Tx(ports) = run(&mut s, 1, &udp4(mac(77), mac(1), [1; 4], [2; 4], 64, 30)) else {
        panic!()
    };
    assert_eq!((ports.len(), ports[0]), (2, 2));
    // counted where it really left
    assert!(s.counters.port(ports[1]).unwrap().tx.packets > 0);
}

#[test]
fn flows_spread_and_stay() {
    let (mut s, port) = bridged();
    fdb(&mut s, 1, mac(9), port, Action::Forward, 0);
    let by = |s: &mut State, n| run_out(s, 1, &flow(n)).0;
    let mut hits = [0u32; 6];
    for n in 1000..4000 {
        let member = by(&mut s, n);
        hits[usize::from(member)] += 1;
        assert_eq!(by(&mut s, n), member, "the same flow");
    }
    assert!(
        hits[3..].iter().all(|h| (900..1100).contains(h)),
        "{hits:?}"
    );
    // a member that goes down: its flows are the others'
    s.set_link(4, false).unwrap();
    assert!((1000..2000).all(|n| by(&mut s, n) != 4));
    // one that takes no part: neither way
    lag(
        &mut s,
        raw::TND_LAG_HASH_L4,
        &[(3, true), (4, true), (5, false)],
    );
    assert!((1000..2000).all(|n| by(&mut s, n) == 3));
    assert_eq!(run(&mut s, 5, &flow(1)), Drop(DropReason::LagInactive));
    // but its own protocol is the CPU's
    let lacp = ether([1, 0x80, 0xc2, 0, 0, 2], mac(5), 0x8809, &[1; 50]);
    assert_eq!(run(&mut s, 5, &lacp), Cpu(raw::TND_TRAP_LINK_PROTO));
    // and so is what else is for its link alone, LLDP for one: on a group that is down as well
    let local = |last| ether([1, 0x80, 0xc2, 0, 0, last], mac(5), 0x88cc, &[1; 50]);
    let flags = s.port(port).unwrap().config.flags;
    for up in [flags, flags & !raw::TND_PORT_UP] {
        port_flags(&mut s, port, up & raw::TND_PORT_UP, !up & raw::TND_PORT_UP);
        for last in 0..=15 {
            let want = Cpu(raw::TND_TRAP_LINK_PROTO);
            assert_eq!(run(&mut s, 5, &local(last)), want, "{last}");
            assert_eq!(run(&mut s, 3, &local(last)), want, "{last}");
        }
        assert_eq!(run(&mut s, 5, &local(16)), Drop(DropReason::LagInactive));
    }
    port_flags(&mut s, port, raw::TND_PORT_UP, 0);
    // none left
    s.set_link(3, false).unwrap();
    assert_eq!(run(&mut s, 1, &flow(1)), Drop(DropReason::EgressDown));
    s.set_link(4, true).unwrap();
    assert_eq!(run_out(&mut s, 1, &flow(1)).0, 4);
}

#[test]
fn hash_policies_look_at_what_they_say() {
    let by = |policy, vary: &dyn Fn(u16) -> Vec<u8>| {
        let (mut s, port) = bridged();
        lag(&mut s, policy, &[(3, true), (4, true), (5, true)]);
        for n in 0..64 {
            fdb(&mut s, 1, mac(100 + n), port, Action::Forward, 0);
        }
        fdb(&mut s, 1, mac(9), port, Action::Forward, 0);
        let mut seen: Vec<u16> = (0..64).map(|n| run_out(&mut s, 1, &vary(n)).0).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len()
    };
    let stations = |n| tcp4(mac(100 + n), mac(1), [10, 0, 0, 1], [10, 0, 0, 2], (1, 2));
    let hosts = |n: u16| tcp4(mac(9), mac(1), [10, 0, 0, 1], [10, 0, 1, n as u8], (1, 2));
    let (l2, l3, l4) = (
        raw::TND_LAG_HASH_L2,
        raw::TND_LAG_HASH_L3,
        raw::TND_LAG_HASH_L4,
    );
    assert_eq!(
        (by(l2, &stations), by(l2, &hosts), by(l2, &flow)),
        (3, 1, 1)
    );
    assert_eq!(
        (by(l3, &stations), by(l3, &hosts), by(l3, &flow)),
        (3, 3, 1)
    );
    assert_eq!(
        (by(l4, &stations), by(l4, &hosts), by(l4, &flow)),
        (1, 3, 3)
    );
}

#[test]
fn routes_over_a_group() {
    let mut s = router(2);
    let mut all = state(5);
    std::mem::swap(&mut s, &mut all);
    ports_up(&mut s);
    add_rif(&mut s, 1, RifPlace::Port(1));
    let port = lag(&mut s, raw::TND_LAG_HASH_L4, &[(4, true), (5, true)]);
    add_rif(&mut s, 2, RifPlace::Port(port));
    let target = RouteTarget::Nexthop(s.nexthop_slot(2).unwrap());
    route4(&mut s, [99, 0, 0, 0], 8, target);
    let f = udp4(router_mac(1), mac(1), [10, 0, 1, 9], [99, 0, 0, 1], 64, 30);
    let (by, bytes) = run_out(&mut s, 1, &f);
    assert!((4..=5).contains(&by));
    assert_eq!(bytes[..6], mac(2));
    // and in by either member
    let back = udp4(router_mac(2), mac(2), [10, 0, 2, 9], [10, 0, 1, 9], 64, 30);
    for member in [4, 5] {
        assert_eq!(run(&mut s, member, &back), Tx(vec![1]));
    }
    s.remove_rif(2);
    assert!(s.remove_lag(1));
    assert_eq!(run(&mut s, 4, &back), Drop(DropReason::OtherHost));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever members do, each frame leaves by exactly one that is up and takes part, and only if there is one.
    #[test]
    fn exactly_one_active_member(
        steps in prop::collection::vec((0u8..3, 3u16..=5, any::<bool>(), any::<u16>()), 1..60),
    ) {
        let (mut s, port) = bridged();
        fdb(&mut s, 1, mac(9), port, Action::Forward, 0);
        let mut up = [true; 6];
        let mut part = [true; 6];
        for (what, member, on, n) in steps {
            let m = usize::from(member);
            match what {
                0 => { up[m] = on; s.set_link(member, on).unwrap(); }
                1 => {
                    part[m] = on;
                    let all: Vec<(u16, bool)> = (3..=5).map(|p| (p, part[usize::from(p)])).collect();
                    let config = LagConfig { hash: raw::TND_LAG_HASH_L4, members: all };
                    s.set_lag(1, config).unwrap();
                }
                _ => port_flags(&mut s, member, if on { raw::TND_PORT_UP } else { 0 }, if on { 0 } else { raw::TND_PORT_UP }),
            }
            let admin = |p: u16| s.port(p).unwrap().config.flags & raw::TND_PORT_UP != 0;
            let active: Vec<u16> = (3..=5).filter(|p| up[usize::from(*p)] && part[usize::from(*p)] && admin(*p)).collect();
            match run(&mut s, 1, &flow(n)) {
                Tx(ports) => prop_assert!(ports.len() == 1 && active.contains(&ports[0])),
                Drop(DropReason::EgressDown) => prop_assert!(active.is_empty()),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}

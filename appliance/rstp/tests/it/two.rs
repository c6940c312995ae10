// SPDX-License-Identifier: Apache-2.0
//! Two bridges, one or two links: each of the standard's fast ways, and what guards them.

use tandem_rstp::{Config, PointToPoint, PortState, Role, Version};

use crate::expected;
use crate::net::{MS, Net, SECOND};

fn pair() -> (Net, usize, usize) {
    let mut net = Net::new(1);
    let (a, b) = (net.plain(4096), net.plain(8192));
    (net, a, b)
}

#[test]
fn a_link_forwards_as_soon_as_both_have_spoken() {
    let (mut net, a, b) = pair();
    net.link(a, b);
    net.run(MS);
    assert!(net.forwards((a, 1)) && net.forwards((b, 1)), "no timer");
    assert_eq!(
        (net.role((a, 1)), net.role((b, 1))),
        (Role::Designated, Role::Root)
    );
    let view = net.nodes[b].bridge.as_ref().unwrap().show();
    assert_eq!(
        (view.root.priority(), view.cost, view.root_port),
        (4096, 20_000, Some(1))
    );
    expected::check(&net).unwrap();
}

#[test]
fn of_two_links_one_waits_and_takes_over_at_once() {
    let (mut net, a, b) = pair();
    let first = net.link(a, b);
    net.link(a, b);
    net.run(SECOND);
    assert_eq!(
        (net.role((b, 1)), net.role((b, 2))),
        (Role::Root, Role::Alternate)
    );
    assert!(!net.forwards((b, 2)));
    net.down(first);
    assert!(
        net.forwards((b, 2)),
        "the alternate port forwards before anybody has said anything"
    );
    net.run(5 * SECOND);
    expected::check(&net).unwrap();
    net.flushes.clear();
    net.up(first);
    net.run(MS);
    expected::check(&net).unwrap();
    assert!(
        net.flushes.iter().any(|(_, at)| *at == (b, 2)),
        "stations have moved"
    );
    assert_eq!(net.loops, []);
}

/// Nobody agrees over a LAN that may have more bridges: 2 × forward delay.
#[test]
fn a_shared_lan_waits_for_the_timers() {
    let (mut net, a, b) = pair();
    let ends = [
        net.port(a, |p| p.point_to_point = PointToPoint::No),
        net.port(b, |p| p.point_to_point = PointToPoint::No),
    ];
    let lan = net.lan(&ends, 1000, 1000);
    net.up(lan);
    net.run(3 * SECOND);
    assert!(!net.forwards((a, 1)));
    net.run(32 * SECOND);
    expected::check(&net).unwrap();
}

/// A bridge of version 0 is heard, and answered in its own words; the wait is 2 × forward delay.
#[test]
fn an_stp_neighbour_is_spoken_to_in_its_words() {
    let mut net = Net::new(1);
    let old = Config {
        version: Version::Stp,
        priority: 4096,
        ..Config::new([2, 0, 0, 0, 0, 0])
    };
    let (a, b) = (net.bridge(old), net.plain(8192));
    net.link(a, b);
    net.run(20 * SECOND);
    assert!(!net.forwards((a, 1)));
    net.run(15 * SECOND);
    expected::check(&net).unwrap();
    let view = net.nodes[b].bridge.as_ref().unwrap().show();
    assert!(view.ports[0].stp_neighbour);
    // and when the neighbour has learned more since, `mcheck` finds that out
    let new = Config {
        version: Version::Rstp,
        ..net.nodes[a].config.clone()
    };
    let now = net.now;
    net.tell(a, |x| x.configure(new, now).unwrap());
    net.tell(b, |x| x.migration_check(1, now).unwrap());
    net.run(5 * SECOND);
    let view = net.nodes[b].bridge.as_ref().unwrap().show();
    assert!(!view.ports[0].stp_neighbour);
    expected::check(&net).unwrap();
}

#[test]
fn a_port_without_a_bridge_becomes_an_edge_port() {
    let mut net = Net::new(1);
    let a = net.plain(0);
    let fast = net.port(a, |p| p.admin_edge = true);
    let auto = net.port(a, |_| {});
    let never = net.port(a, |p| p.auto_edge = false);
    for at in [fast, auto, never] {
        let lan = net.lan(&[at], 1000, 1000);
        net.up(lan);
    }
    assert!(net.forwards(fast), "portfast");
    assert!(!net.forwards(auto));
    net.run(4 * SECOND);
    assert!(net.forwards(auto) && !net.forwards(never));
    net.run(15 * SECOND);
    assert_eq!(
        net.nodes[a].states[&never.1],
        PortState::Discarding,
        "max age first"
    );
    net.run(2 * SECOND);
    assert_eq!(
        net.nodes[a].states[&never.1],
        PortState::Learning,
        "then a hello time"
    );
    net.run(2 * SECOND);
    assert!(net.forwards(never));
    let view = net.nodes[a].bridge.as_ref().unwrap().show();
    assert_eq!(
        view.ports.iter().map(|p| p.edge).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(
        view.changes, 1,
        "an edge port's link is no change of the topology"
    );
}

/// A cable between two edge ports: the first BPDU ends it.
#[test]
fn an_edge_port_that_hears_a_bridge_is_none() {
    let (mut net, a, b) = pair();
    net.link(a, b);
    net.run(SECOND);
    let ends = [
        net.port(a, |p| p.admin_edge = true),
        net.port(b, |p| p.admin_edge = true),
    ];
    let lan = net.lan(&ends, 1000, 1000);
    net.up(lan);
    net.run(MS);
    expected::check(&net).unwrap();
    assert_eq!(net.role((b, 2)), Role::Alternate);
}

#[test]
fn bpdu_guard_takes_a_port_out_of_service() {
    let (mut net, a, b) = pair();
    let ends = [
        net.port(a, |p| {
            p.admin_edge = true;
            p.bpdu_guard = true;
        }),
        net.port(b, |_| {}),
    ];
    let lan = net.lan(&ends, 1000, 1000);
    net.up(lan);
    net.run(SECOND);
    assert_eq!(net.err_disabled, [(a, 1)]);
    assert!(!net.forwards((a, 1)));
    let view = net.nodes[a].bridge.as_ref().unwrap().show();
    assert!(view.ports[0].err_disabled && view.ports[0].role == Role::Disabled);
    // the neighbour is silenced, and the port comes back
    net.lans[lan].ends.truncate(1);
    let now = net.now;
    net.tell(a, |x| x.recover(1, now).unwrap());
    assert!(net.forwards((a, 1)), "still portfast");
    // and what is wrong still is found again
    net.lans[lan].ends.push((b, 1));
    net.run(5 * SECOND);
    assert_eq!(net.err_disabled, [(a, 1), (a, 1)]);
}

/// Who claims to be a better root behind a guarded port is cut off, for as long as it says so.
#[test]
fn root_guard_holds_a_better_root_back() {
    let (mut net, a, b) = pair();
    let ends = [net.port(a, |_| {}), net.port(b, |p| p.root_guard = true)];
    let lan = net.lan(&ends, 1000, 1000);
    net.up(lan);
    net.run(3 * SECOND);
    let view = net.nodes[b].bridge.as_ref().unwrap().show();
    assert_eq!((view.root, view.root_port), (view.id, None));
    assert!(view.ports[0].root_inconsistent && !net.forwards((b, 1)));
    let now = net.now;
    let less = Config {
        priority: 61_440,
        ..net.nodes[a].config.clone()
    };
    net.tell(a, |x| x.configure(less, now).unwrap());
    net.run(10 * SECOND);
    assert!(net.forwards((b, 1)), "it is no root any more");
    assert_eq!(net.role((a, 1)), Role::Root);
}

/// A cable from a port to another of the same bridge.
#[test]
fn a_loop_of_one_bridge_has_a_backup_port() {
    let mut net = Net::new(1);
    let a = net.plain(0);
    let ends = [net.port(a, |_| {}), net.port(a, |_| {})];
    let lan = net.lan(&ends, 1000, 1000);
    net.up(lan);
    net.run(40 * SECOND);
    expected::check(&net).unwrap();
    assert_eq!(
        (net.role((a, 1)), net.role((a, 2))),
        (Role::Designated, Role::Backup)
    );
    assert_eq!(net.loops, []);
}

/// The link carries frames one way only, from the root: the port that hears nothing of its neighbour's answers, and
/// would forward after its timers, hears that the neighbour takes itself for designated.
#[test]
fn a_root_that_is_not_heard_is_disputed() {
    let (mut net, a, b) = pair();
    net.link(a, b);
    net.run(SECOND);
    net.deaf.push((b, 1));
    net.run(12 * SECOND);
    assert_eq!(
        net.role((b, 1)),
        Role::Designated,
        "what a has said is too old"
    );
    assert!(net.forwards((b, 1)));
    for _ in 0..400 {
        net.run(100 * MS);
        assert!(!net.forwards((a, 1)));
    }
    net.deaf.clear();
    net.run(5 * SECOND);
    expected::check(&net).unwrap();
}

#[test]
fn a_silent_root_is_forgotten_after_three_hellos() {
    let (mut net, a, b) = pair();
    net.link(a, b);
    net.run(SECOND);
    net.loss = 1; // all
    net.run(4 * SECOND);
    assert_eq!(net.role((b, 1)), Role::Root);
    net.run(3 * SECOND);
    assert_eq!(net.role((b, 1)), Role::Designated);
}

#[test]
fn no_more_than_the_hold_count_at_once() {
    let (mut net, a, b) = pair();
    net.link(a, b);
    net.run(SECOND);
    let before = net.nodes[a].bridge.as_ref().unwrap().show().ports[0]
        .counters
        .sent;
    for n in 0..40u16 {
        let config = Config {
            priority: 4096 * (n % 2),
            ..net.nodes[a].config.clone()
        };
        let now = net.now;
        net.tell(a, |x| x.configure(config, now).unwrap());
    }
    let sent = net.nodes[a].bridge.as_ref().unwrap().show().ports[0]
        .counters
        .sent
        - before;
    assert!((1..=6).contains(&sent), "{sent}");
    net.run(5 * SECOND);
    expected::check(&net).unwrap();
}

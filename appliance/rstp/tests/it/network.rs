// SPDX-License-Identifier: Apache-2.0
//! Networks as they are drawn: after the standard's time the tree is the one that the network has, whatever happened
//! before; and whether what forwarded meanwhile had a loop.

use proptest::prelude::*;
use tandem_rstp::{Config, PointToPoint, Version};

use crate::expected;
use crate::net::{MS, Net, Random, SECOND};

/// What kind of network.
#[derive(Clone, Copy, Debug)]
struct Kind {
    bridges: u64,
    /// Links beyond those that join all bridges.
    more: u64,
    /// LANs of three and more ports, or of two of one bridge.
    hubs: u64,
    /// One bridge in so many speaks STP only; 0: none.
    old: u64,
}

/// A network of bridges with links up, at time 0 or soon after.
fn draw(kind: Kind, seed: u64) -> (Net, Random) {
    let mut r = Random::new(seed);
    let mut net = Net::new(seed ^ 0xabc);
    for n in 0..kind.bridges {
        let mut config = Config::new([2, 0, 0, r.below(4) as u8, n as u8, 0]);
        config.priority = 4096 * r.of(&[0, 1, 8, 8, 8, 15]);
        if kind.old > 0 && r.below(kind.old) == 0 {
            config.version = Version::Stp;
        }
        net.bridge(config);
    }
    let mut pairs: Vec<(usize, usize)> = (1..kind.bridges)
        .map(|n| (n as usize, r.below(n) as usize))
        .collect();
    for _ in 0..kind.more {
        let a = r.below(kind.bridges) as usize;
        let b = r.below(kind.bridges) as usize;
        if a != b {
            pairs.push((a, b));
        }
    }
    for (a, b) in pairs {
        let ends = [port(&mut net, &mut r, a), port(&mut net, &mut r, b)];
        let (delay, mbps) = (1000 + r.below(2 * MS), r.of(&[100, 1000, 1000, 10_000]));
        net.lan(&ends, delay, mbps);
    }
    for _ in 0..kind.hubs {
        let ends: Vec<_> = (0..2 + r.below(3))
            .map(|_| {
                let node = r.below(kind.bridges) as usize;
                let at = port(&mut net, &mut r, node);
                shared(&mut net, at);
                at
            })
            .collect();
        net.lan(&ends, 1000 + r.below(2 * MS), 100);
    }
    for lan in 0..net.lans.len() {
        if r.below(2) == 0 {
            let some = r.below(600 * MS);
            net.run(some);
        }
        net.up(lan);
    }
    (net, r)
}

fn port(net: &mut Net, r: &mut Random, node: usize) -> crate::net::At {
    let cost = r.of(&[
        None,
        None,
        Some(1),
        Some(500),
        Some(20_000),
        Some(200_000_000),
    ]);
    let priority = r.of(&[128, 128, 0, 240]);
    net.port(node, |p| {
        p.cost = cost;
        p.priority = priority;
    })
}

fn shared(net: &mut Net, at: crate::net::At) {
    let mut config = net.nodes[at.0].ports[&at.1].clone();
    config.point_to_point = PointToPoint::No;
    net.nodes[at.0].ports.insert(at.1, config.clone());
    let now = net.now;
    net.tell(at.0, |b| b.set_port(at.1, config, now).unwrap());
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A link or a bridge is there again, or another priority changes no root.
    Good,
    /// There is a better root.
    Root,
    /// Something is gone, or the root is worse than it was.
    Bad,
}

/// A link fails or comes back, a bridge loses its power or gets it back, or another priority.
fn disturb(net: &mut Net, r: &mut Random) -> Event {
    match r.below(4) {
        0 | 1 => {
            let lan = r.below(net.lans.len() as u64) as usize;
            let powered = |e: &crate::net::At| net.nodes[e.0].bridge.is_some();
            match net.lans[lan].up {
                true => {
                    net.down(lan);
                    return Event::Bad;
                }
                false if net.lans[lan].ends.iter().all(powered) => net.up(lan),
                false => {}
            }
            Event::Good
        }
        2 => {
            let node = r.below(net.nodes.len() as u64) as usize;
            match net.nodes[node].bridge.is_some() {
                true => {
                    net.power_off(node);
                    Event::Bad
                }
                false => {
                    net.power_on(node);
                    Event::Good
                }
            }
        }
        _ => {
            let node = r.below(net.nodes.len() as u64) as usize;
            let now = net.now;
            let before = expected::roots(net);
            let mut config = net.nodes[node].config.clone();
            config.priority = 4096 * r.below(16) as u16;
            net.nodes[node].config = config.clone();
            net.tell(node, |b| b.configure(config, now).unwrap());
            let after = expected::roots(net);
            match before.iter().zip(&after).any(|(b, a)| b < a) {
                true => Event::Bad,
                false if before == after => Event::Good,
                false => Event::Root,
            }
        }
    }
}

/// Information is gone after max age, and nobody waits in between longer than a few hello times. A port forwards after twice
/// forward delay, or three times: a dispute (17.21.10) is remembered while it discards, and ends its first learning.
const BOUND: u64 = (20 + 3 * 15 + 20) * SECOND;

/// One that needs the third forward delay: 70.3 s after the root was made worse, all ports forward.
#[test]
fn a_dispute_of_before_costs_a_forward_delay() {
    let kind = Kind {
        bridges: 5,
        more: 1,
        hubs: 1,
        old: 3,
    };
    let (mut net, mut r) = draw(kind, 3_578_878_940_971_286_396);
    net.run(BOUND);
    assert_eq!(expected::check(&net), Ok(()));
    assert_eq!(disturb(&mut net, &mut r), Event::Bad);
    net.run(BOUND);
    assert_eq!(expected::check(&net), Ok(()));
}

fn kind(old: bool, hubs: bool) -> impl Strategy<Value = Kind> {
    (2u64..9, 0u64..9, 0u64..3, 2u64..5).prop_map(move |(bridges, more, h, o)| Kind {
        bridges,
        more,
        hubs: if hubs { h } else { 0 },
        old: if old { o } else { 0 },
    })
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Links between two bridges only, no frame lost: there is a tree within three hello times, and no timer has made it.
    #[test]
    fn a_network_of_links_comes_up_at_once(kind in kind(false, false), seed in any::<u64>()) {
        let (mut net, _) = draw(kind, seed);
        net.run(6 * SECOND);
        prop_assert_eq!(expected::check(&net), Ok(()));
        prop_assert!(net.loops.is_empty(), "{:?}", net.loops);
    }

    /// One after the other, each settled: what comes makes no loop and takes no timer; a new root one that lasts no longer
    /// than a BPDU on its way; what goes may leave words about it that go round until they are too old, and a loop
    /// meanwhile.
    #[test]
    fn one_thing_after_the_other(kind in kind(false, false), seed in any::<u64>(), times in 1u64..6) {
        let (mut net, mut r) = draw(kind, seed);
        net.run(6 * SECOND);
        for _ in 0..times {
            net.loops.clear();
            let begin = net.now;
            let event = disturb(&mut net, &mut r);
            net.run(BOUND);
            prop_assert_eq!(expected::check(&net), Ok(()));
            let took = net.changed.saturating_sub(begin);
            let longest = net.loops.iter().map(|(from, to, _)| to - from).max().unwrap_or(0);
            let (loop_most, took_most) = match event {
                Event::Good => (0, 2 * SECOND),
                Event::Root => (2 * MS, 2 * SECOND),
                Event::Bad => (20 * SECOND, 50 * SECOND),
            };
            prop_assert!(longest <= loop_most, "{:?}: a loop of {} us", event, longest / 1000);
            prop_assert!(took <= took_most, "{:?}: {} ms", event, took / MS);
        }
    }

    /// Whatever fails and comes back, at once or before the last is settled.
    #[test]
    fn links_fail_and_come_back(kind in kind(false, false), seed in any::<u64>(), times in 1u64..8) {
        let (mut net, mut r) = draw(kind, seed);
        net.run(6 * SECOND);
        for _ in 0..times {
            disturb(&mut net, &mut r);
            let some = r.of(&[0, MS, 700 * MS, 9 * SECOND]);
            net.run(some);
        }
        net.run(BOUND);
        prop_assert_eq!(expected::check(&net), Ok(()));
    }

    /// With hubs, and bridges that speak the protocol of 1998.
    #[test]
    fn old_bridges_and_hubs_have_a_tree_too(kind in kind(true, true), seed in any::<u64>(), times in 0u64..6) {
        let (mut net, mut r) = draw(kind, seed);
        net.run(BOUND);
        prop_assert_eq!(expected::check(&net), Ok(()));
        for _ in 0..times {
            disturb(&mut net, &mut r);
            let some = r.of(&[0, MS, 700 * MS, 9 * SECOND]);
            net.run(some);
        }
        net.run(BOUND);
        prop_assert_eq!(expected::check(&net), Ok(()));
    }

    /// Frames get lost, up to every second one; when they do no more, there is the tree.
    #[test]
    fn lost_frames_delay_it(kind in kind(true, true), seed in any::<u64>(), loss in 2u64..20) {
        let (mut net, mut r) = draw(kind, seed);
        net.loss = loss;
        for _ in 0..4 {
            disturb(&mut net, &mut r);
            net.run(5 * SECOND);
        }
        net.loss = 0;
        net.run(BOUND);
        prop_assert_eq!(expected::check(&net), Ok(()));
    }
}

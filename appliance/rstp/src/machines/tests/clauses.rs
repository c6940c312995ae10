// SPDX-License-Identifier: Apache-2.0
//! What clauses say in passing: conditions and assignments that a tree comes out right without.

use super::*;
use crate::bpdu::Malformed;
use crate::bridge::Ignored;
use crate::config::{MOST_COST, Refusal};
use crate::times::seconds;

const SECOND_NS: u64 = 1_000_000_000;

/// A bridge of version 0 with one port, which has a link.
fn old_bridge() -> Bridge {
    let mut b = Bridge::new(Config {
        version: Version::Stp,
        ..Config::new(MAC)
    })
    .unwrap();
    b.set_port(1, PortConfig::new(MAC), 0).unwrap();
    b.port_up(1, LINK, 0).unwrap();
    b
}

/// What a port has sent in these seconds.
fn tick(b: &mut Bridge, by: u16, seconds: std::ops::RangeInclusive<u64>) -> Vec<Bpdu> {
    seconds
        .flat_map(|s| sent(&b.tick(s * SECOND_NS), by))
        .collect()
}

/// Table 17-1, 17.14, table 17-3: each bound from both sides.
#[test]
fn what_the_standard_does_not_permit_is_refused() {
    let wide = Config {
        max_age: 40,
        forward_delay: 30,
        ..Config::new(MAC)
    };
    let with = |change: &dyn Fn(&mut Config)| {
        let mut c = wide.clone();
        change(&mut c);
        c.check()
    };
    for (hello, ok) in [(0, false), (1, true), (10, true), (11, false)] {
        assert_eq!(with(&|c| c.hello = hello).is_ok(), ok, "hello {hello}");
    }
    for (age, ok) in [(5, false), (6, true), (40, true), (41, false)] {
        assert_eq!(with(&|c| c.max_age = age).is_ok(), ok, "max age {age}");
    }
    for (delay, ok) in [(3, false), (4, true), (30, true), (31, false)] {
        let said = with(&|c| (c.forward_delay, c.max_age) = (delay, 6));
        assert_eq!(said.is_ok(), ok, "forward delay {delay}");
    }
    for (hold, ok) in [(0, false), (1, true), (10, true), (11, false)] {
        assert_eq!(with(&|c| c.tx_hold_count = hold).is_ok(), ok, "{hold}");
    }
    let odd = with(&|c| c.priority = 4097);
    assert_eq!(odd, Err(Refusal::BridgePriority(4097)));
    assert_eq!(with(&|c| c.priority = 61_440), Ok(()));
    let short = with(&|c| (c.forward_delay, c.max_age) = (10, 20));
    assert_eq!(short, Err(Refusal::ForwardDelayTooShort));
    assert_eq!(with(&|c| (c.forward_delay, c.max_age) = (11, 20)), Ok(()));
    let short = with(&|c| (c.hello, c.max_age) = (4, 9));
    assert_eq!(short, Err(Refusal::MaxAgeTooShort));
    assert_eq!(with(&|c| (c.hello, c.max_age) = (4, 10)), Ok(()));

    let port = |priority, cost| {
        let config = PortConfig {
            priority,
            cost,
            ..PortConfig::new(MAC)
        };
        config.check()
    };
    assert_eq!(port(17, None), Err(Refusal::PortPriority(17)));
    assert_eq!(port(240, Some(1)), Ok(()));
    assert_eq!(port(0, Some(MOST_COST)), Ok(()));
    for cost in [0, MOST_COST + 1] {
        assert_eq!(port(0, Some(cost)), Err(Refusal::Cost(cost)));
    }
    let cost = |mbps| Link { mbps, ..LINK }.cost();
    let costs = [0, 10, 100, 1000, 10_000, 100_000, u32::MAX].map(cost);
    assert_eq!(costs, [MOST_COST, 2_000_000, 200_000, 20_000, 2000, 200, 1]);
}

/// 17.20, 6.4.3: what is computed of a port.
#[test]
fn times_and_links_of_a_port() {
    assert_eq!([0, 1, 256, 257].map(seconds), [0, 1, 1, 2]);
    let aged = |message_age| {
        let times = Times {
            message_age,
            ..Times::of_root(20, 2, 15)
        };
        times.aged().message_age
    };
    assert_eq!(
        [0, 127, 128, 256].map(aged),
        [256, 256, 512, 512],
        "to the nearest second"
    );
    let mut p = port();
    p.designated_times.hello = 0;
    assert_eq!(hello_time(&p), 1);
    assert_eq!((edge_delay(&p), p.point_to_point()), (MIGRATE_TIME, true));
    p.link = Some(Link {
        full_duplex: false,
        ..LINK
    });
    assert_eq!((edge_delay(&p), p.point_to_point()), (20, false));
    p.config.point_to_point = PointToPoint::Yes;
    assert!(p.point_to_point());
    // 17.29: a proposal on a LAN that may have more bridges waits as long for somebody who answers
    let mut b = bridge(1);
    let shared = PortConfig {
        point_to_point: PointToPoint::No,
        ..PortConfig::new(MAC)
    };
    b.set_port(1, shared, 0).unwrap();
    b.port_down(1, 0).unwrap();
    b.port_up(1, LINK, 0).unwrap();
    assert!(b.ports[0].proposing && b.ports[0].timers.edge_delay_while == 20);
}

/// 17.24: without a link, and when somebody asks, it is looked anew who is there.
#[test]
fn protocol_migration_begins_anew() {
    let mut p = port();
    p.states.ppm = migration::State::SelectingStp;
    p.timers.mdelay_while = 2;
    p.mcheck = true;
    assert!(migration::step(&mut p, Version::Rstp) && migration::step(&mut p, Version::Rstp));
    assert!(p.send_rstp && !p.mcheck);
    p.states.ppm = migration::State::Sensing;
    p.send_rstp = false;
    p.link = None;
    assert!(migration::step(&mut p, Version::Rstp) && p.send_rstp);
}

/// 17.25: what is set of an edge port holds from the next link on.
#[test]
fn bridge_detection_without_a_link() {
    let mut p = port();
    edge::begin(&mut p);
    p.config.admin_edge = true;
    assert!(!edge::step(&mut p));
    p.link = None;
    assert!(edge::step(&mut p) && p.oper_edge);
    p.config.admin_edge = false;
    assert!(edge::step(&mut p) && !p.oper_edge);
}

/// 17.21.8, 17.27.
#[test]
fn port_information_in_passing() {
    let mut b = bridge(2);
    // a role that nobody sends is a designated port's
    let unknown = Rapid {
        role: SentRole::Unknown,
        ..RAPID
    };
    hear(&mut b, 1, Bpdu::Rst(said(8192, 10), unknown));
    assert_eq!(b.show().root_port, Some(1));
    // a proposal that is said again is answered again: the first answer may be lost
    let again = hear(&mut b, 1, Bpdu::Rst(said(8192, 10), RAPID));
    let agrees = |f: &Bpdu| matches!(f, Bpdu::Rst(_, r) if r.agreement);
    assert!(sent(&again, 1).iter().any(agrees), "{again:?}");
    // the same port with another priority
    let mut info = said(8192, 10);
    info.vector.port = PortId::new(240, 7);
    hear(&mut b, 1, Bpdu::Rst(info, RAPID));
    assert_eq!(b.ports[0].port_priority.port.priority(), 240);
    // a change of the topology that comes with better words
    b.ports[0].timers.tc_while = 0;
    let before = b.changes;
    let mut better = said(4096, 10);
    better.topology_change = true;
    hear(&mut b, 1, Bpdu::Rst(better, RAPID));
    assert_eq!(b.changes, before + 1);
    b.port_down(1, 0).unwrap();
    assert!(!b.ports[0].agree && !b.ports[0].agreed);

    let mut p = port();
    p.states.pim = information::State::Current;
    p.info_is = InfoIs::Mine;
    p.port_priority = said(8192, 0).vector;
    p.synced = true;
    p.rcvd_msg = true;
    p.bpdu = Some(Bpdu::Rst(said(0, 0), RAPID));
    assert!(information::step(&mut p, Version::Rstp));
    assert!(!p.synced && p.proposed, "nobody behind it has agreed");
    p.selected = true;
    p.updt_info = true;
    assert!(information::step(&mut p, Version::Rstp) && !p.proposed);
}

/// 17.21.25: what the root says of time is passed on, but for the bridge's own hello time, and changes come through.
#[test]
fn role_selection_passes_times_on() {
    let mut b = bridge(2);
    let mut info = said(0, u32::MAX);
    info.times.hello = 256;
    info.times.max_age = 30 * 256;
    hear(&mut b, 1, Bpdu::Rst(info, RAPID));
    assert_eq!(b.root_priority.cost, u32::MAX);
    let times = b.ports[1].designated_times;
    assert_eq!((times.hello, times.max_age), (512, 30 * 256));
    let mut b = bridge(1);
    let longer = Config {
        forward_delay: 20,
        ..Config::new(MAC)
    };
    b.configure(longer, 0).unwrap();
    assert_eq!(b.ports[0].port_times.forward_delay, 20 * 256);
}

/// What came back by a loop is no way to the root, also when the real one is gone.
#[test]
fn role_selection_does_not_follow_its_own_words() {
    let mut b = bridge(3);
    hear(&mut b, 1, Bpdu::Rst(said(0, 0), RAPID));
    let own = Info {
        vector: b.ports[1].designated_priority,
        ..said(0, 0)
    };
    hear(&mut b, 3, Bpdu::Rst(own, RAPID));
    assert_eq!(b.ports[2].role, Role::Backup);
    b.port_down(1, 0).unwrap();
    assert_eq!((b.root_port, b.root_priority.root), (None, b.id()));
}

/// 9.2.9, 9.3.3: role and state as neighbours read them.
#[test]
fn port_transmit_says_role_and_state() {
    let mut b = bridge(2);
    hear(&mut b, 1, Bpdu::Rst(said(0, 0), RAPID));
    let mut other = said(0, 0);
    other.vector.port = PortId::new(128, 8);
    let told = sent(&hear(&mut b, 2, Bpdu::Rst(other, RAPID)), 2);
    let of = |f: &Bpdu| match f {
        Bpdu::Rst(_, r) => (r.role, r.learning, r.forwarding),
        _ => panic!("{f:?}"),
    };
    let alternate = (SentRole::AlternateBackup, false, false);
    assert_eq!(told.last().map(of), Some(alternate));
    let mut b = bridge(1);
    let told = tick(&mut b, 1, 1..=8);
    assert!(b.ports[0].forwarding);
    let designated = (SentRole::Designated, true, true);
    assert_eq!(told.last().map(of), Some(designated));
}

/// A bridge of version 0 asks nobody: a link's port waits for max age, as it was disabled, and then for forward delay.
#[test]
fn version_0_waits_for_its_timers() {
    let mut b = old_bridge();
    for s in 0..35 {
        hear(&mut b, 1, Bpdu::Config(said(0, 0)));
        assert!(!b.ports[0].forwarding, "{s} s");
        assert_eq!(b.ports[0].learning, s >= 20, "{s} s");
        b.tick((s + 1) * SECOND_NS);
    }
    assert!(b.ports[0].forwarding);
}

/// 17.31, 17.26: a TCN BPDU is acknowledged, once, and told for max age and forward delay of the root.
#[test]
fn a_tcn_bpdu_is_acknowledged_once() {
    let mut b = old_bridge();
    tick(&mut b, 1, 1..=70);
    let p = &b.ports[0];
    assert!(p.forwarding && !p.agreed && p.timers.tc_while == 0);
    hear(&mut b, 1, Bpdu::Tcn);
    assert_eq!(b.ports[0].timers.tc_while, 20 + 15);
    let changes = b.changes;
    hear(&mut b, 1, Bpdu::Tcn);
    assert_eq!(b.changes, changes, "one that is being told is no other");
    let told = tick(&mut b, 1, 71..=120);
    let flags = |f: &Bpdu| f.info().map(|i| (i.topology_change_ack, i.topology_change));
    let all: Vec<_> = told.iter().filter_map(flags).collect();
    assert_eq!(all.first(), Some(&(true, true)));
    assert!(all.iter().skip(1).all(|f| !f.0), "{all:?}");
    assert_eq!(all.last(), Some(&(false, false)));
    // an edge port has no topology to change
    b.ports[0].oper_edge = true;
    assert!(topology::step(&mut b, 0));
    assert_eq!(b.ports[0].states.tcm, topology::State::Learning);
}

/// 9.3.4: what the port itself has sent is refused, and counted with what is no BPDU.
#[test]
fn what_a_port_has_sent_itself_is_refused() {
    let mut b = bridge(1);
    let own = |port| Info {
        vector: Vector {
            port,
            ..b.ports[0].designated_priority
        },
        ..said(0, 0)
    };
    let (same, other) = (own(b.ports[0].id()), own(PortId::new(128, 2)));
    let frame = |info| Bpdu::Config(info).to_frame([2; 6]);
    assert_eq!(b.receive(1, &frame(same), 0), Err(Ignored::Own));
    let none = b.receive(1, &[0; 60], 0);
    assert_eq!(none, Err(Ignored::Malformed(Malformed::NotForBridges)));
    assert!(b.receive(1, &frame(other), 0).is_ok());
    let counters = b.show().ports[0].counters;
    assert_eq!((counters.refused, counters.received), (2, 1));
}

/// What is set or plugged in anew is looked at at once.
#[test]
fn a_link_or_a_cost_chooses_the_root_port_anew() {
    let begun = || {
        let mut b = bridge(2);
        for n in 1..=2 {
            let mut info = said(0, 0);
            info.vector.port = PortId::new(128, n);
            hear(&mut b, n, Bpdu::Rst(info, RAPID));
        }
        assert_eq!(b.show().root_port, Some(1));
        b
    };
    let mut b = begun();
    let cheap = PortConfig {
        cost: Some(1),
        ..PortConfig::new(MAC)
    };
    b.set_port(2, cheap, 0).unwrap();
    assert_eq!(b.show().root_port, Some(2));
    let mut b = begun();
    let fast = Link {
        mbps: 100_000,
        ..LINK
    };
    b.port_up(2, fast, 0).unwrap();
    assert_eq!(b.show().root_port, Some(2));
    // another address is another bridge, which has heard nothing yet
    let mut b = begun();
    let other = Config::new([2, 0, 0, 0, 9, 1]);
    let actions = b.configure(other, 0).unwrap();
    let stops = Action::State {
        port: 1,
        state: PortState::Discarding,
    };
    assert!(actions.contains(&stops), "{actions:?}");
    assert_eq!(b.root_priority.root, b.id());
}

/// A new link ends what BPDU guard has done; without any link there is nothing to count down.
#[test]
fn links_that_go_and_come() {
    let mut b = bridge(1);
    let guarded = PortConfig {
        bpdu_guard: true,
        ..PortConfig::new(MAC)
    };
    b.set_port(1, guarded, 0).unwrap();
    hear(&mut b, 1, Bpdu::Tcn);
    b.port_down(1, 0).unwrap();
    assert!(b.show().ports[0].err_disabled);
    b.tick(SECOND_NS);
    assert_eq!(b.next_deadline(), None);
    b.port_up(1, LINK, 0).unwrap();
    assert!(!b.show().ports[0].err_disabled);
}

/// 17.29: a dispute that is heard while the port discards is remembered, and ends its first learning, not its second.
#[test]
fn a_dispute_is_remembered_and_counts_once() {
    let mut b = bridge(1);
    let config = PortConfig {
        auto_edge: false,
        ..PortConfig::new(MAC)
    };
    b.set_port(1, config, 0).unwrap();
    let mut worse = said(61_440, 0);
    worse.vector.bridge = BridgeId::new(61_440, [2, 0, 0, 0, 3, 0]);
    let learns = Rapid {
        proposal: false,
        learning: true,
        ..RAPID
    };
    assert!(!b.ports[0].learning);
    hear(&mut b, 1, Bpdu::Rst(worse, learns));
    assert!(b.ports[0].disputed);
    // hello time is how long a port that speaks RSTP waits (17.20.5)
    let mut learned = 0;
    for s in 1..=60 {
        let actions = b.tick(s * SECOND_NS);
        let learning =
            |a: &&Action| matches!(a, Action::State { state, .. } if *state == PortState::Learning);
        learned += actions.iter().filter(learning).count();
    }
    assert!(b.ports[0].forwarding && !b.ports[0].disputed);
    assert_eq!(learned, 2);
}

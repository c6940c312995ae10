// SPDX-License-Identifier: Apache-2.0
//! Each machine by itself: from a state, by a condition, to what its clause says.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use super::*;
use crate::bpdu::{Bpdu, Info, Rapid, SentRole};
use crate::bridge::{Action, Bridge};
use crate::config::{Config, Link, PointToPoint, PortConfig};
use crate::port::{InfoIs, PortState, Role};
use crate::priority::{BridgeId, PortId, Vector};
use crate::times::Times;

mod clauses;

const MAC: [u8; 6] = [2, 0, 0, 0, 9, 0];
const LINK: Link = Link {
    mbps: 1000,
    full_duplex: true,
};

/// A bridge with ports 1 to `ports`, all with a link.
fn bridge(ports: u16) -> Bridge {
    let mut b = Bridge::new(Config::new(MAC)).unwrap();
    for n in 1..=ports {
        b.set_port(n, PortConfig::new(MAC), 0).unwrap();
        b.port_up(n, LINK, 0).unwrap();
    }
    b
}

/// A port with a link before its first turn.
fn port() -> Port {
    let mut p = Port::new(1, PortConfig::new(MAC));
    p.link = Some(LINK);
    p.designated_times = Times::of_root(20, 2, 15);
    p
}

fn said(priority: u16, cost: u32) -> Info {
    Info {
        vector: Vector {
            root: BridgeId::new(priority, [2, 0, 0, 0, 1, 0]),
            cost,
            bridge: BridgeId::new(priority, [2, 0, 0, 0, 1, 0]),
            port: PortId::new(128, 7),
        },
        times: Times::of_root(20, 2, 15),
        topology_change: false,
        topology_change_ack: false,
    }
}

const RAPID: Rapid = Rapid {
    role: SentRole::Designated,
    proposal: true,
    agreement: false,
    learning: false,
    forwarding: false,
};

fn hear(b: &mut Bridge, port: u16, bpdu: Bpdu) -> Vec<Action> {
    b.receive(port, &bpdu.to_frame([2; 6]), 0).unwrap()
}

/// The BPDUs among what is to be done by a port.
fn sent(actions: &[Action], by: u16) -> Vec<Bpdu> {
    let of = |a: &Action| match a {
        Action::Send { port, frame } if *port == by => Some(Bpdu::from_frame(frame).unwrap()),
        _ => None,
    };
    actions.iter().filter_map(of).collect()
}

#[test]
fn port_timers_count_down_to_nothing() {
    let mut p = port();
    p.timers.fd_while = 2;
    p.tx_count = 1;
    timers::tick(&mut p);
    assert_eq!(
        (p.timers.fd_while, p.timers.hello_when, p.tx_count),
        (1, 0, 0)
    );
    timers::tick(&mut p);
    timers::tick(&mut p);
    assert_eq!((p.timers.fd_while, p.tx_count), (0, 0));
}

#[test]
fn port_receive_takes_one_at_a_time() {
    let mut p = port();
    receive::begin(&mut p);
    p.oper_edge = true;
    p.rcvd_bpdu = true;
    p.bpdu = Some(Bpdu::Tcn);
    p.timers.edge_delay_while = 1;
    assert!(receive::step(&mut p));
    assert!(p.rcvd_msg && p.rcvd_stp && !p.rcvd_rstp && !p.oper_edge && !p.rcvd_bpdu);
    assert_eq!(p.timers.edge_delay_while, MIGRATE_TIME);
    p.rcvd_bpdu = true;
    assert!(
        !receive::step(&mut p),
        "the one before has not been looked at"
    );
    p.link = None;
    assert!(receive::step(&mut p));
    assert!(!p.rcvd_msg && !p.rcvd_bpdu && !p.rcvd_stp);
    assert!(!receive::step(&mut p), "and that once");
}

#[test]
fn protocol_migration_waits_for_three_seconds() {
    let mut p = port();
    migration::begin(&mut p, Version::Rstp);
    p.rcvd_stp = true;
    assert!(
        !migration::step(&mut p, Version::Rstp),
        "a BPDU that was on its way"
    );
    p.timers.mdelay_while = 0;
    assert!(migration::step(&mut p, Version::Rstp));
    assert!(!p.rcvd_stp && p.send_rstp);
    p.rcvd_stp = true;
    assert!(migration::step(&mut p, Version::Rstp));
    assert!(!p.send_rstp);
    assert!(!migration::step(&mut p, Version::Rstp));
    p.timers.mdelay_while = 0;
    assert!(migration::step(&mut p, Version::Rstp));
    p.rcvd_rstp = true;
    assert!(migration::step(&mut p, Version::Rstp));
    assert!(p.send_rstp, "the neighbour has learned it");
}

#[test]
fn a_bridge_of_version_0_never_sends_rst() {
    let mut p = port();
    migration::begin(&mut p, Version::Stp);
    p.timers.mdelay_while = 0;
    assert!(migration::step(&mut p, Version::Stp));
    p.rcvd_rstp = true;
    assert!(!migration::step(&mut p, Version::Stp) && !p.send_rstp);
}

#[test]
fn bridge_detection_asks_for_a_proposal_without_answer() {
    let mut p = port();
    edge::begin(&mut p);
    p.proposing = true;
    p.timers.edge_delay_while = 1;
    assert!(!edge::step(&mut p) && !p.oper_edge);
    p.timers.edge_delay_while = 0;
    p.config.auto_edge = false;
    assert!(!edge::step(&mut p));
    p.config.auto_edge = true;
    assert!(edge::step(&mut p) && p.oper_edge);
    p.oper_edge = false;
    assert!(edge::step(&mut p), "a BPDU has come");
    assert_eq!(p.states.bdm, edge::State::NotEdge);
}

#[test]
fn port_transmit_says_what_the_role_has_to_say() {
    let mut b = bridge(1);
    let actions = hear(&mut b, 1, Bpdu::Rst(said(0, 0), RAPID));
    let agreed = sent(&actions, 1);
    let [Bpdu::Rst(info, rapid)] = agreed[..] else {
        panic!("{agreed:?}")
    };
    assert_eq!(
        (rapid.role, rapid.agreement, rapid.proposal),
        (SentRole::Root, true, false)
    );
    assert_eq!((info.vector.cost, info.vector.bridge), (20_000, b.id()));
    assert_eq!(
        info.times.message_age, 256,
        "a second older than the root's"
    );
}

#[test]
fn a_root_port_says_nothing_by_itself() {
    let mut b = bridge(1);
    hear(&mut b, 1, Bpdu::Rst(said(0, 0), RAPID));
    // the change of the topology that its forwarding was is told for hello time + 1
    let mut count = 0;
    for second in 1..5 {
        count += sent(&b.tick(second * 1_000_000_000), 1).len();
    }
    assert_eq!(count, 1);
}

/// A bridge of version 0 says a change of the topology to its root by TCN BPDUs until one is acknowledged.
#[test]
fn a_topology_change_is_said_until_it_is_acknowledged() {
    let mut b = Bridge::new(Config {
        version: Version::Stp,
        ..Config::new(MAC)
    })
    .unwrap();
    b.set_port(1, PortConfig::new(MAC), 0).unwrap();
    b.port_up(1, LINK, 0).unwrap();
    hear(&mut b, 1, Bpdu::Config(said(0, 0)));
    let mut now = 0;
    let mut tcns = |b: &mut Bridge, seconds: u64| {
        let mut count = 0;
        for _ in 0..seconds {
            now += 1_000_000_000;
            let all = sent(&b.tick(now), 1);
            count += all.iter().filter(|f| **f == Bpdu::Tcn).count();
            hear(b, 1, Bpdu::Config(said(0, 0)));
        }
        count
    };
    // 15 s, 15 s, and then every hello time
    let count = tcns(&mut b, 44);
    assert!(count >= 3, "{count}");
    hear(
        &mut b,
        1,
        Bpdu::Config(Info {
            topology_change_ack: true,
            ..said(0, 0)
        }),
    );
    assert_eq!(tcns(&mut b, 10), 0);
}

#[test]
fn port_information_keeps_the_better() {
    let mut b = bridge(1);
    let rst = |p, c| Bpdu::Rst(said(p, c), RAPID);
    hear(&mut b, 1, rst(8192, 10));
    assert_eq!(b.ports[0].port_priority, said(8192, 10).vector);
    assert_eq!(b.ports[0].timers.rcvd_info_while, 6);
    // another bridge's, which is worse
    let mut worse = said(8192, 20);
    worse.vector.bridge = BridgeId::new(0, [2, 0, 0, 0, 2, 0]);
    hear(&mut b, 1, Bpdu::Rst(worse, RAPID));
    assert_eq!(b.ports[0].port_priority.cost, 10);
    assert!(!b.ports[0].disputed);
    hear(
        &mut b,
        1,
        Bpdu::Rst(
            worse,
            Rapid {
                learning: true,
                ..RAPID
            },
        ),
    );
    assert!(b.ports[0].disputed, "which learns nevertheless");
    // the same port's is believed, though it is worse
    hear(&mut b, 1, rst(8192, 30));
    assert_eq!(b.ports[0].port_priority.cost, 30);
}

#[test]
fn an_agreement_counts_between_two_bridges_only() {
    for (p2p, agreed) in [(PointToPoint::Auto, true), (PointToPoint::No, false)] {
        let mut b = bridge(1);
        let config = PortConfig {
            point_to_point: p2p,
            ..PortConfig::new(MAC)
        };
        b.set_port(1, config, 0).unwrap();
        let yes = Rapid {
            role: SentRole::Root,
            proposal: false,
            agreement: true,
            ..RAPID
        };
        let mut info = said(61_440, 0);
        info.vector.root = b.id();
        info.vector.cost = 5;
        hear(&mut b, 1, Bpdu::Rst(info, yes));
        assert_eq!(b.ports[0].agreed, agreed);
        assert_eq!(b.ports[0].forwarding, agreed);
    }
}

/// `agreed` outlives what the port says only if what it says now is no worse.
#[test]
fn an_agreement_to_better_words_is_none() {
    for (now, kept) in [(10, true), (20, true), (30, false)] {
        let mut p = port();
        let vector = |cost| Vector {
            cost,
            ..said(0, 0).vector
        };
        p.states.pim = information::State::Current;
        p.info_is = InfoIs::Mine;
        p.port_priority = vector(20);
        p.designated_priority = vector(now);
        p.agreed = true;
        p.synced = true;
        p.selected = true;
        p.updt_info = true;
        assert!(information::step(&mut p, Version::Rstp));
        assert_eq!((p.agreed, p.synced), (kept, kept), "cost {now}");
    }
}

#[test]
fn words_that_are_too_old_are_gone_at_once() {
    let mut b = bridge(1);
    let mut info = said(0, 0);
    info.times.message_age = 19 * 256;
    hear(&mut b, 1, Bpdu::Rst(info, RAPID));
    assert_eq!(b.ports[0].role, Role::Root, "19 and one are 20");
    info.times.message_age = 20 * 256;
    hear(&mut b, 1, Bpdu::Rst(info, RAPID));
    assert_eq!(
        (b.ports[0].role, b.ports[0].info_is),
        (Role::Designated, InfoIs::Mine)
    );
}

/// Root cost, then the designated bridge, then its port, then the port's own identifier.
#[test]
fn role_selection_breaks_ties_in_order() {
    let mut b = bridge(4);
    let rst = |info: Info| Bpdu::Rst(info, RAPID);
    let mut info = said(0, 100);
    hear(&mut b, 4, rst(info));
    assert_eq!(b.root_port.map(PortId::number), Some(4));
    hear(&mut b, 3, rst(info));
    assert_eq!(b.root_port.map(PortId::number), Some(3), "the port's own");
    info.vector.port = PortId::new(128, 6);
    hear(&mut b, 4, rst(info));
    assert_eq!(
        b.root_port.map(PortId::number),
        Some(4),
        "the designated port"
    );
    let mut other = info;
    other.vector.bridge = BridgeId::new(0, [2, 0, 0, 0, 0, 1]);
    other.vector.port = PortId::new(240, 9);
    hear(&mut b, 2, rst(other));
    assert_eq!(
        b.root_port.map(PortId::number),
        Some(2),
        "the designated bridge"
    );
    info.vector.cost = 99;
    hear(&mut b, 1, rst(info));
    assert_eq!(b.root_port.map(PortId::number), Some(1), "the cost");
    let roles: Vec<Role> = b.ports.iter().map(|p| p.role).collect();
    assert_eq!(
        roles,
        [
            Role::Root,
            Role::Alternate,
            Role::Alternate,
            Role::Alternate
        ]
    );
}

/// Words about this bridge as it was, that have gone round: not believed.
#[test]
fn what_names_this_bridge_as_it_was_is_not_believed() {
    let mut b = bridge(1);
    let mut info = said(4096, 40_000);
    info.vector.root = BridgeId::new(4096, MAC);
    hear(&mut b, 1, Bpdu::Rst(info, RAPID));
    assert_eq!((b.root_priority.root, b.root_port), (b.id(), None));
    assert!(!b.ports[0].forwarding);
}

/// Worse words with a proposal: a port behind which a bridge has agreed to better ones discards, and that is said before
/// the agreement.
#[test]
fn role_transition_blocks_before_it_agrees() {
    let mut b = bridge(3);
    hear(&mut b, 1, Bpdu::Rst(said(0, 0), RAPID));
    let mut info = said(0, 90_000);
    info.vector.bridge = BridgeId::new(61_440, [2, 0, 0, 0, 3, 0]);
    let agrees = Rapid {
        role: SentRole::Root,
        proposal: false,
        agreement: true,
        ..RAPID
    };
    hear(&mut b, 2, Bpdu::Rst(info, agrees));
    for second in 1..5 {
        b.tick(second * 1_000_000_000); // port 3 becomes an edge port
    }
    assert!(b.ports.iter().all(|p| p.forwarding) && b.ports[2].oper_edge && !b.ports[1].oper_edge);
    let actions = hear(&mut b, 1, Bpdu::Rst(said(0, 500), RAPID));
    let blocks = Action::State {
        port: 2,
        state: PortState::Discarding,
    };
    let blocked = actions.iter().position(|a| *a == blocks);
    let agreed = actions
        .iter()
        .position(|a| matches!(a, Action::Send { port: 1, .. }));
    assert!(blocked.is_some() && blocked < agreed, "{actions:?}");
    assert!(b.ports[0].agree && b.ports[0].forwarding);
    assert!(b.ports[2].forwarding, "an edge port has no part in it");
}

/// A new root port forwards only when the one before has stopped, whichever of the two has its turn first.
#[test]
fn a_new_root_port_waits_for_the_old_one() {
    for (was, is, proposal) in [(1, 2, true), (2, 1, true), (1, 2, false), (2, 1, false)] {
        let mut b = bridge(2);
        hear(&mut b, was, Bpdu::Rst(said(4096, 0), RAPID));
        assert_eq!(b.show().root_port, Some(was));
        let actions = hear(
            &mut b,
            is,
            Bpdu::Rst(said(0, 0), Rapid { proposal, ..RAPID }),
        );
        let at = |port, state| {
            actions
                .iter()
                .position(|a| *a == Action::State { port, state })
        };
        let (old, new) = (
            at(was, PortState::Discarding),
            at(is, PortState::Forwarding),
        );
        assert!(old.is_some() && old < new, "{actions:?}");
    }
}

/// Learning comes before forwarding, and stations are forgotten where the topology has changed.
#[test]
fn state_transition_and_topology_change() {
    let mut b = bridge(2);
    b.receive(1, &Bpdu::Rst(said(0, 0), RAPID).to_frame([2; 6]), 7)
        .unwrap();
    let agreed = Rapid {
        role: SentRole::Root,
        proposal: false,
        agreement: true,
        ..RAPID
    };
    let mut info = said(0, 90_000);
    info.vector.bridge = BridgeId::new(61_440, [2, 0, 0, 0, 3, 0]);
    b.ports[0].timers.tc_while = 0; // its own change has been told
    let actions = hear(&mut b, 2, Bpdu::Rst(info, agreed));
    let states: Vec<_> = actions
        .iter()
        .filter_map(|a| match a {
            Action::State { port: 2, state } => Some(*state),
            _ => None,
        })
        .collect();
    assert_eq!(states, [PortState::Learning, PortState::Forwarding]);
    assert!(
        actions.contains(&Action::Flush { port: 1 })
            && !actions.contains(&Action::Flush { port: 2 })
    );
    assert_eq!((b.changes, b.changed.map(|c| c.1)), (2, Some(2)));
    let told = sent(&actions, 1);
    assert!(
        told.iter().any(|f| f.info().unwrap().topology_change),
        "to the root"
    );
    // and what others tell is passed on, but not back
    let told = Bpdu::Rst(
        Info {
            topology_change: true,
            ..info
        },
        agreed,
    );
    b.ports[0].timers.tc_while = 0;
    let actions = hear(&mut b, 2, told);
    assert!(
        actions.contains(&Action::Flush { port: 1 })
            && !actions.contains(&Action::Flush { port: 2 })
    );
    assert_eq!(b.ports[0].timers.tc_while, 3);
}

/// All 256 ports at once come to rest within a turn.
#[test]
fn a_bridge_of_256_ports_comes_to_rest() {
    let mut b = bridge(256);
    assert!(b.set_port(257, PortConfig::new(MAC), 0).is_err());
    for n in 1..=256u16 {
        let mut info = said(0, 1000 - u32::from(n));
        info.vector.port = PortId::new(128, n);
        hear(&mut b, n, Bpdu::Rst(info, RAPID));
    }
    b.tick(1_000_000_000);
    assert_eq!(b.root_port.map(PortId::number), Some(256));
    b.port_down(256, 0).unwrap();
    assert!(b.ports[254].forwarding);
    assert_eq!(b.cut_short, 0);
}

/// A process that was held up has lost its time: it takes nobody for gone whose words wait.
#[test]
fn a_late_tick_is_one_second() {
    let mut b = bridge(1);
    hear(&mut b, 1, Bpdu::Rst(said(0, 0), RAPID));
    assert_eq!(b.next_deadline(), Some(1_000_000_000));
    b.tick(999_999_999);
    assert_eq!(b.ports[0].timers.rcvd_info_while, 6);
    b.tick(60_000_000_000);
    b.tick(60_000_000_001);
    assert_eq!(b.ports[0].timers.rcvd_info_while, 5);
    assert_eq!(b.next_deadline(), Some(61_000_000_000));
    b.tick(61_300_000_000);
    assert_eq!(
        b.next_deadline(),
        Some(62_000_000_000),
        "a little late is made up"
    );
}

/// What is set holds at once: of a bridge that has no port to select a role for, and of a guard on a port in service.
#[test]
fn what_is_set_holds_at_once() {
    let mut b = Bridge::new(Config::new(MAC)).unwrap();
    b.configure(
        Config {
            priority: 4096,
            ..Config::new(MAC)
        },
        0,
    )
    .unwrap();
    assert_eq!(b.show().root, b.id());

    let mut b = bridge(1);
    hear(&mut b, 1, Bpdu::Rst(said(0, 0), RAPID));
    let guarded = PortConfig {
        root_guard: true,
        ..PortConfig::new(MAC)
    };
    b.set_port(1, guarded, 0).unwrap();
    assert_eq!(b.show().ports[0].role, Role::Alternate);
    assert!(b.show().ports[0].root_inconsistent);
    b.set_port(1, PortConfig::new(MAC), 0).unwrap();
    assert_eq!(b.show().root_port, Some(1));
}

// SPDX-License-Identifier: Apache-2.0
//! Messages that wait for a chip, which answers what it is told one command at a time.

use super::*;
use tandem_ofchip::{Chip, Limits, Lookup, PortOf, Setup};
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{FlowCommand, FlowMod};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm};
use tandem_sal::told::Told;

/// Pools of `tiny`, and every command is done.
fn slow() -> Box<Told> {
    let pools = [("acl-tcam", 32), ("acl-counter", 8), ("vlan", 4)];
    Box::new(Told::new(&pools, []))
}

fn with_chip() -> Bench {
    let mut b = Bench::new(Settings::default());
    let ports = (1..=4u8).map(|n| PortOf {
        number: n.into(),
        port: n,
        mac: mac(n),
    });
    let chip = Chip::new(Setup {
        profile: "tiny".into(),
        lookup: Lookup::Address,
        version: Version::V13,
        ports: ports.collect(),
        local: false,
        chains: Limits::default(),
        slice: tandem_ofchip::Slice::default(),
    });
    b.agent.set_chip(chip.unwrap(), 0);
    b
}

fn to(command: FlowCommand, port: u32) -> FlowMod {
    FlowMod {
        command,
        matching: Match {
            fields: vec![Oxm::exact(Field::EthType, 0x88b5)],
            exact: false,
        },
        instructions: Instructions {
            apply: Some(vec![Action::Output { port, max_len: 0 }]),
            ..Instructions::default()
        },
        ..blank()
    }
}

#[test]
fn a_barrier_waits_for_nobody_who_writes_behind_it() {
    let mut b = with_chip();
    let (one, other) = (b.connect(Version::V13), b.connect(Version::V13));
    let now = b.now;
    let chip = b.agent.chip_mut().unwrap();
    chip.attach(slow(), now).unwrap();
    while chip.turn(now) {}
    assert!(chip.is_open());
    b.fine(one, &Request::FlowMod(to(FlowCommand::Add, 2)));
    assert_eq!(b.ask(other, &Request::Barrier), []);
    let mut said = Vec::new();
    for _ in 0..50 {
        for port in [3, 2, 3, 2, 3, 2] {
            b.fine(one, &Request::FlowMod(to(FlowCommand::Modify, port)));
        }
        let chip = b.agent.chip_mut().unwrap();
        chip.turn(now);
        assert!(!chip.is_settled());
        b.agent.work(other, 100, now, &mut b.out);
        said.extend(b.said(other));
    }
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].kind, BARRIER_REPLY);
}

/// While the chip is lost nobody can say that its answers are right: a barrier waits, and with it all that came behind it.
/// Whether the switch lives can be said.
#[test]
fn an_echo_behind_a_barrier_that_waits_is_answered() {
    let mut b = with_chip();
    let id = b.connect(Version::V13);
    assert!(b.agent.chip_mut().unwrap().lost().is_some());
    assert_eq!(b.ask(id, &Request::Barrier), []);
    for _ in 0..300 {
        let said = b.ask(id, &Request::Echo(&[1, 2]));
        assert_eq!(said.len(), 1);
        assert_eq!((said[0].kind, &said[0].body[..]), (ECHO_REPLY, &[1, 2][..]));
    }
    // what is behind another message is behind that
    b.fine(id, &Request::FlowMod(to(FlowCommand::Add, 2)));
    assert_eq!(b.ask(id, &Request::Echo(&[3])), []);
    let flows: u32 = b
        .agent
        .datapath()
        .switch()
        .table_stats()
        .map(|t| t.active)
        .sum();
    assert_eq!(flows, 0);
    let now = b.now;
    let chip = b.agent.chip_mut().unwrap();
    chip.attach(slow(), now).unwrap();
    while chip.turn(now) {}
    while b.agent.work(id, 100, now, &mut b.out) {}
    let said: Vec<u8> = b.said(id).iter().map(|s| s.kind).collect();
    assert_eq!(said, [BARRIER_REPLY, ECHO_REPLY]);
}

// SPDX-License-Identifier: Apache-2.0
//! Messages that wait for a chip, which answers what it is told one command at a time.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use super::*;
use tandem_abi::raw;
use tandem_ofchip::{Chip, Limits, Lookup, PortOf, Setup};
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{FlowCommand, FlowMod};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm};
use tandem_sal::control::ControlCounters;
use tandem_sal::{Device, Outcome, PostError, Request as Command, SalError};
use zerocopy::IntoBytes;

/// Does nothing, and says that it is done.
#[derive(Default)]
struct Slow {
    posted: VecDeque<(u64, raw::tnd_cpl)>,
}

impl Device for Slow {
    fn epoch(&self) -> u32 {
        1
    }
    fn counters(&self) -> ControlCounters {
        ControlCounters::default()
    }
    fn limit(&self, _pair: usize) -> usize {
        64
    }
    fn outstanding(&self) -> usize {
        self.posted.len()
    }
    fn post(
        &mut self,
        _pair: usize,
        token: u64,
        request: &Command<'_>,
        _now_ns: u64,
    ) -> Result<(), PostError> {
        let cpl = raw::tnd_cpl {
            op: request.op,
            cls: request.cls,
            ..raw::tnd_cpl::default()
        };
        self.posted.push_back((token, cpl));
        Ok(())
    }
    fn flush(&mut self) {}
    fn reap(
        &mut self,
        _now_ns: u64,
        _budget: usize,
        sink: &mut dyn FnMut(Outcome),
    ) -> Result<usize, SalError> {
        let Some((token, cpl)) = self.posted.pop_front() else {
            return Ok(0);
        };
        let output = Vec::new();
        sink(Outcome::Done { token, cpl, output });
        Ok(1)
    }
    fn arm(&mut self) -> Result<bool, SalError> {
        Ok(true)
    }
    fn disarm(&mut self) {}
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }
    fn call(
        &mut self,
        _what: &'static str,
        _request: &Command<'_>,
    ) -> Result<(raw::tnd_cpl, Vec<u8>), SalError> {
        let pools = [("acl-tcam", 32), ("acl-counter", 8), ("vlan", 4)].map(|(name, size)| {
            let mut pool = raw::tnd_pool {
                size,
                free: size,
                ..raw::tnd_pool::default()
            };
            tandem_abi::set_name(&mut pool.name, name);
            pool
        });
        Ok((raw::tnd_cpl::default(), pools.as_bytes().to_vec()))
    }
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
    chip.attach(Box::new(Slow::default()), now).unwrap();
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
    chip.attach(Box::new(Slow::default()), now).unwrap();
    while chip.turn(now) {}
    while b.agent.work(id, 100, now, &mut b.out) {}
    let said: Vec<u8> = b.said(id).iter().map(|s| s.kind).collect();
    assert_eq!(said, [BARRIER_REPLY, ECHO_REPLY]);
}

// SPDX-License-Identifier: Apache-2.0
//! A switch with four ports, and what it does, as values.

use std::ops::ControlFlow;
use tandem_ofpipeline::flows::blank;
use tandem_ofpipeline::stats::FlowStats;
use tandem_ofpipeline::{Config, PacketIn, Port, Sink, Switch, Why};
use tandem_openflow::model::{FlowFilter, FlowMod};
use tandem_openflow::{Action, Instructions, Match, Oxm, Version};
use tandem_packet::{Buffer, Frame, Offload};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub why: Why,
    pub table: u8,
    pub cookie: u64,
    pub max_len: u16,
    pub port: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Got {
    Out(u32, Vec<u8>),
    In(Seen, Vec<u8>),
    Normal(u32, Vec<u8>),
}

#[derive(Default)]
pub struct Net(pub Vec<Got>);

impl Sink for Net {
    fn output(&mut self, port: u32, _: Option<u32>, frame: &Frame<'_>) {
        self.0.push(Got::Out(port, frame.bytes().to_vec()));
    }

    fn packet_in(&mut self, about: &PacketIn<'_>, frame: &Frame<'_>) {
        let seen = Seen {
            why: about.why,
            table: about.table,
            cookie: about.cookie,
            max_len: about.max_len,
            port: about.in_port,
        };
        self.0.push(Got::In(seen, frame.bytes().to_vec()));
    }

    fn normal(&mut self, in_port: u32, frame: &Frame<'_>) {
        self.0.push(Got::Normal(in_port, frame.bytes().to_vec()));
    }
}

pub fn switch(version: Version) -> Switch {
    let mut s = Switch::new(Config {
        version,
        cache: 64,
        ..Config::default()
    });
    for number in 1..=4 {
        let port = Port {
            number,
            live: true,
            queues: vec![5],
            ..Port::default()
        };
        s.set_port(port, 0);
    }
    s
}

pub fn output(port: u32) -> Instructions {
    let max_len = 0xffff;
    Instructions {
        apply: Some(vec![Action::Output { port, max_len }]),
        ..Instructions::default()
    }
}

pub fn apply(actions: &[Action]) -> Instructions {
    Instructions {
        apply: Some(actions.to_vec()),
        ..Instructions::default()
    }
}

pub fn goto(table: u8) -> Instructions {
    Instructions {
        goto: Some(table),
        ..Instructions::default()
    }
}

pub fn matching(fields: &[Oxm]) -> Match {
    Match {
        fields: fields.to_vec(),
        exact: false,
    }
}

pub fn add(s: &mut Switch, priority: u16, matches: &[Oxm], instructions: Instructions) {
    let m = FlowMod {
        priority,
        cookie: 7,
        matching: matching(matches),
        instructions,
        ..blank()
    };
    s.flow_mod(&m, 0, &mut Vec::new()).unwrap();
}

/// Flows of a filter, page by page.
pub fn flow_stats<'s>(s: &'s Switch, filter: &FlowFilter) -> Vec<FlowStats<'s>> {
    let (mut all, mut from) = (Vec::new(), Some(0));
    while let Some(at) = from {
        from = s.flow_page(filter, at, 2, |f| {
            all.push(f);
            ControlFlow::Continue(())
        });
    }
    all
}

pub fn send_at(s: &mut Switch, port: u32, frame: &[u8], now_ns: u64) -> Vec<Got> {
    let mut buffer = Buffer::with_capacity(2048);
    assert!(buffer.set(frame));
    let mut net = Net::default();
    s.process(&mut buffer.frame(Offload::NONE), port, now_ns, &mut net);
    net.0
}

pub fn send(s: &mut Switch, port: u32, frame: &[u8]) -> Vec<Got> {
    send_at(s, port, frame, 0)
}

pub fn eth(ethertype: u16) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    f.extend(ethertype.to_be_bytes());
    f.extend(0..46);
    f
}

pub fn udp() -> Vec<u8> {
    let mut f = Vec::new();
    etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1000, 2000)
        .write(&mut f, b"some payload")
        .unwrap();
    f
}

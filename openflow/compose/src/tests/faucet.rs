// SPDX-License-Identifier: Apache-2.0
//! What Faucet installs, as rules, and what of them a chip takes.
use super::model::{Packet, World, packet};
use crate::{Answer, Flow, FlowId, Limits, Rule};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tandem_ofoffload::tables::{self, MacLookup};
use tandem_ofoffload::{Change, Offload, Why};
use tandem_ofpipeline::flows::all_flows;
use tandem_ofpipeline::stats::FlowStats;

use std::time::{Duration, Instant};
use tandem_openflow::model::{FlowMod, Request};
use tandem_openflow::{Field, Oxm, Version, decode};

const ACCESS: &str = include_str!("faucet-access.hex");
const TRUNKS: &str = include_str!("faucet-trunks.hex");

fn messages(text: &str) -> Vec<FlowMod> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    let of = |l: &str| {
        let hex = |n: usize| u8::from_str_radix(&l[n..n + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..l.len()).step_by(2).map(hex).collect();
        let Ok((_, Request::FlowMod(m))) = decode(Version::V13, &bytes) else {
            panic!("{l}");
        };
        m
    };
    lines.map(of).collect()
}

/// Where a flow stands in the pipeline.
type At = (u8, u16, Vec<Oxm>);

struct Net {
    world: World,
    offload: Offload,
    ids: BTreeMap<At, FlowId>,
    writes: usize,
    /// Of one message, at most.
    most: usize,
}

impl Net {
    fn new(ports: u32) -> Net {
        let mut offload = Offload::new(tables::vsc9953(MacLookup::Vlan));
        let limits = Limits {
            members: true,
            ..Limits::default()
        };
        let world = World::of(limits, 255, ports);
        for (id, rule) in world.compose.rules() {
            offload.batch(vec![added(id, rule)]);
        }
        Net {
            world,
            offload,
            ids: BTreeMap::new(),
            writes: 0,
            most: 0,
        }
    }

    fn tell(&mut self, changes: Vec<Change>) {
        let writes = self.offload.batch(changes.clone()).len();
        self.writes += writes;
        self.most = self.most.max(writes);
        self.world.tell(changes);
    }

    /// One message; what it has changed in the pipeline is told.
    fn play(&mut self, m: &FlowMod) {
        self.world.switch.flow_mod(m, 0, &mut Vec::new()).unwrap();
        let mut now: BTreeMap<At, Flow> = BTreeMap::new();
        let mut take = |s: FlowStats<'_>| {
            let f = s.flow;
            let flow = Flow {
                table: f.table,
                priority: f.priority,
                fields: f.matching.fields.clone(),
                instructions: f.instructions.clone(),
                idle: f.idle > 0,
                counted: false,
            };
            now.insert((f.table, f.priority, f.matching.fields.clone()), flow);
            ControlFlow::Continue(())
        };
        let rest = self
            .world
            .switch
            .flow_page(&all_flows(), 0, u32::MAX, &mut take);
        assert!(rest.is_none());
        let gone: Vec<At> = self
            .ids
            .keys()
            .filter(|k| !now.contains_key(*k))
            .cloned()
            .collect();
        for at in gone {
            let id = self.ids.remove(&at).unwrap();
            self.world.flows.remove(&id);
            let changes = self.world.compose.remove(id);
            self.tell(changes);
        }
        for (at, f) in now {
            let next = self.ids.len() as FlowId + self.world.flows.keys().last().unwrap_or(&0) + 1;
            let id = *self.ids.entry(at).or_insert(next);
            let changes = match self.world.flows.get(&id) {
                Some(old) if *old == f => continue,
                Some(_) => {
                    let i = f.instructions.clone();
                    self.world.compose.modify(id, i, f.idle, f.counted)
                }
                None => self.world.compose.add(id, f.clone()),
            };
            self.world.flows.insert(id, f);
            self.tell(changes);
        }
    }

    /// How many rules of each kind, and where they stand.
    fn kinds(&self) -> BTreeMap<String, usize> {
        let mut kinds = BTreeMap::new();
        for (id, r) in self.world.compose.rules() {
            let what = match r.answer {
                Answer::Drop => "drop".to_string(),
                Answer::Out { effect, .. } => format!("out {:?}", effect.tag)
                    .split_whitespace()
                    .take(2)
                    .collect::<Vec<_>>()
                    .join(" "),
                Answer::Forms(_) => "out in two forms".to_string(),
                Answer::Cpu(None) => "controller".to_string(),
                Answer::Cpu(Some(b)) => format!("cpu {b:?}"),
            };
            let why = match self.offload.why(id).unwrap() {
                Why::NoPair { why, .. } => *why,
                why => why,
            };
            let at = match why {
                Why::Mac { turned: 0, .. } => "MAC table",
                Why::Acl { turned: 0, .. } => "ACL",
                Why::Miss { .. } => "miss",
                Why::Trap { .. } | Why::Widened { .. } => "ACL, traps",
                Why::Mac { .. } | Why::Acl { .. } => "turned",
                Why::Shadowed(_) => "hidden",
                Why::Software { .. } => "CPU",
                _ => "CPU, a hole",
            };
            let checked = if r.checked { "checked " } else { "" };
            *kinds.entry(format!("{checked}{what}: {at}")).or_default() += 1;
        }
        kinds
    }
}

fn added(id: crate::RuleId, r: &Rule) -> Change {
    Change::Add {
        id,
        flow: tandem_ofoffload::Flow {
            priority: 0,
            fields: r.fields.clone(),
            wanted: r.wanted(),
            idle: r.idle,
            counted: r.counted,
            traffic: u64::from(r.answer != Answer::Drop),
        },
        chain: tandem_ofoffload::Chain {
            place: r.place.clone(),
            only: r.only,
            unknown: r.unknown,
            domain: r.domain,
            second: r.second(),
        },
    }
}

fn frame(dst: u64, src: u64, vid: Option<u16>, ether: u16) -> Vec<u8> {
    let mut b = dst.to_be_bytes()[2..].to_vec();
    b.extend(&src.to_be_bytes()[2..]);
    if let Some(v) = vid {
        b.extend([0x81, 0]);
        b.extend(v.to_be_bytes());
    }
    b.extend(ether.to_be_bytes());
    if ether == 0x800 {
        b.extend([
            0x45, 0, 0, 20, 0, 0, 0, 0, 9, 1, 0, 0, 10, 0, 2, 4, 10, 0, 1, 1,
        ]);
    }
    b.resize(64, 0);
    b
}

fn packets(ports: u32, stations: &[u64]) -> Vec<Packet> {
    let mut list = Vec::new();
    for port in 1..=ports {
        for src in stations {
            for dst in stations.iter().chain(&[(1 << 48) - 1, 0x0e00_0000_0064]) {
                for vid in [None, Some(100), Some(200), Some(300)] {
                    for ether in [0x800, 0x806, 0x1234] {
                        list.push(packet(port, frame(*dst, *src, vid, ether)));
                    }
                }
            }
        }
    }
    list
}

fn all(text: &str, ports: u32) -> Net {
    let mut net = Net::new(ports);
    for m in messages(text) {
        net.play(&m);
    }
    net
}

/// Of both: what there is when all was said, and the answers.
fn judged(text: &str, ports: u32, stations: &[u64], kinds: &[(&str, usize)]) -> Net {
    let mut net = all(text, ports);
    let is = net.kinds();
    let want = kinds.iter().map(|(k, n)| ((*k).to_string(), *n)).collect();
    assert_eq!(is, want);
    let j = net.world.judge(&packets(ports, stations));
    assert!(j.dropped > 1000 && j.sent > 30 && j.unknown > 800, "{j:?}");
    println!("{} writes, {} at most for one flow", net.writes, net.most);
    net
}

/// Two VLANs on eight trunks, forty stations: as rules of one table 105, of which the MAC table has the stations' and
/// the broadcasts'.
#[test]
fn trunks() {
    let stations = [0, 1, 8, 20, 39].map(|n| 0x0200_0000_0200 | n);
    let kinds = [
        ("checked cpu Source: CPU", 14),
        ("checked out Keep: MAC table", 42),
        ("drop: ACL", 16),
        ("drop: ACL, traps", 32),
        ("drop: CPU", 1),
    ];
    let net = judged(TRUNKS, 8, &stations, &kinds);
    assert_eq!(
        (net.ids.len(), net.world.compose.sources().len()),
        (118, 40)
    );
    let u = net.offload.usage();
    assert_eq!((u.acl_used, u.mac_used, u.sets_used), (176, 42, 1));
}

/// Two VLANs with access ports and one trunk, an ACL, a route: 311 rules. Stations of both VLANs and their broadcasts are
/// entries, the port's that has an ACL too; ARP to each is a chain of its own, whose rows trap all ARP of the port.
#[test]
fn access_ports() {
    let stations: Vec<u64> = (1..8).map(|n| 0x0200_0000_0100 | n).collect();
    let kinds = [
        ("checked cpu Source: CPU", 14),
        ("checked out Keep: MAC table", 8),
        ("controller: ACL, traps", 16),
        ("controller: CPU", 64),
        ("controller: hidden", 24),
        ("cpu Copies: ACL, traps", 12),
        ("cpu Copies: CPU", 18),
        ("cpu Rewrite: CPU", 48),
        ("drop: ACL", 9),
        ("drop: ACL, traps", 30),
        ("drop: CPU", 33),
        ("drop: CPU, a hole", 7),
        ("out Keep: ACL, traps", 12),
        ("out Pop: ACL, traps", 10),
        ("out Pop: CPU", 6),
    ];
    let net = judged(ACCESS, 7, &stations, &kinds);
    assert_eq!(net.ids.len(), 87);
    let u = net.offload.usage();
    assert_eq!((u.acl_used, u.mac_used, u.turned), (185, 8, 0));
}

/// `cargo test --release -p tandem-ofcompose -- --ignored --nocapture stations`
#[test]
#[ignore = "a measurement; wants an optimised build"]
fn stations() {
    let mut net = all(TRUNKS, 8);
    let like = |net: &Net, table: u8, priority: u16| {
        let mut all = net.world.flows.values();
        all.find(|f| (f.table, f.priority) == (table, priority))
            .unwrap()
            .clone()
    };
    let (source, station) = (like(&net, 1, 8191), like(&net, 2, 8192));
    let flows = |n: u32| {
        let (mut s, mut d) = (source.clone(), station.clone());
        let address = 0x0200_0100_0000 | u128::from(n);
        for o in s.fields.iter_mut().chain(&mut d.fields) {
            if matches!(o.field, Field::EthSrc | Field::EthDst) {
                o.value = address;
            }
        }
        [s, d]
    };
    for to in [1000, 4000] {
        let mut times: Vec<Duration> = Vec::new();
        for n in to - 1000..to {
            for (k, f) in (0u32..).zip(flows(n)) {
                let at = Instant::now();
                let changes = net.world.compose.add(10_000 + n * 2 + k, f);
                let composed = at.elapsed();
                net.offload.batch(changes);
                times.push(composed);
            }
        }
        times.sort_unstable();
        let (mid, late) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!(
            "to {to} stations: {mid:?} median, {late:?} of 99 %; {:?}",
            net.offload.usage()
        );
        if to == 1000 {
            for n in 1000..3000 {
                for (k, f) in (0u32..).zip(flows(n)) {
                    let changes = net.world.compose.add(10_000 + n * 2 + k, f);
                    net.offload.batch(changes);
                }
            }
        }
    }
}

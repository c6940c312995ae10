//! Flows from a controller until a barrier is answered, beside Open vSwitch's userspace switch, by the same client.
//!
//! ```text
//!  client ── flow_mod × N, barrier ──► ofagentd        ours: N over the time until the barrier's answer
//!        └── flow_mod × N, barrier ──► ovs-vswitchd    peer
//! ```
//! Once more with a chip below ours, filled as far as it goes, where a new flow takes an old one's place.
//!
//! Afterwards the switch is asked how many flows it has, and an error on the way ends the benchmark: only flows that stand count.

use crate::Options;
use crate::forward::Part;
use crate::ofclient::{Client, PRIORITY, barrier, field, flow, no_flow, put};
use crate::ofswitch::{self, Calls, PEER, Who};
use crate::ovs::{self, Ovs};
use crate::report::{Row, Target};
use crate::rig::Rig;
use anyhow::{Result, ensure};
use std::ops::Range;
use std::time::Instant;

/// Flows of one run, and flows that are confirmed one by one.
const FLOWS: u32 = 50_000;
const CONFIRMED: u32 = 5_000;

/// Flows that a chip is filled with: of its 8,192 stations, and of its 2,048 lines.
const CHIP: [(Kind, &str, u32); 2] = [
    (Kind::Mac, "MAC", 7_000),
    (Kind::FiveTuple, "5-tuple", 1_500),
];

/// What a flow matches.
#[derive(Clone, Copy)]
enum Kind {
    Mac,
    Ip,
    FiveTuple,
}

impl Kind {
    const ALL: [(Kind, &'static str); 3] = [
        (Kind::Mac, "MAC"),
        (Kind::Ip, "IP"),
        (Kind::FiveTuple, "5-tuple"),
    ];

    /// The `n`th match: its fields (7.2.3.7), each with its header.
    fn fields(self, n: u32) -> Vec<u8> {
        let mut out = Vec::new();
        // neighbours in number are none in value
        let n = n.wrapping_mul(0x9e37_79b1);
        match self {
            Kind::Mac => put(
                &mut out,
                field::ETH_DST,
                &[&[2, 0][..], &n.to_be_bytes()].concat(),
            ),
            Kind::Ip => {
                put(&mut out, field::ETH_TYPE, &[8, 0]);
                put(&mut out, field::IPV4_DST, &n.to_be_bytes());
            }
            Kind::FiveTuple => {
                put(&mut out, field::ETH_TYPE, &[8, 0]);
                put(&mut out, field::IP_PROTO, &[6]);
                put(&mut out, field::IPV4_SRC, &n.to_be_bytes());
                put(&mut out, field::IPV4_DST, &(!n).to_be_bytes());
                put(&mut out, field::TCP_SRC, &(n as u16).to_be_bytes());
                put(&mut out, field::TCP_DST, &((n >> 16) as u16).to_be_bytes());
            }
        }
        out
    }
}

/// Flows a second, one barrier behind them all.
fn together(client: &mut Client, kind: Kind) -> Result<f64> {
    client.clear()?;
    let mut bytes = Vec::new();
    for n in 0..FLOWS {
        bytes.extend_from_slice(&flow(PRIORITY, &kind.fields(n), 1));
    }
    bytes.extend_from_slice(&barrier(4));
    let begin = Instant::now();
    client.send(&bytes)?;
    client.answer(4)?;
    let took = begin.elapsed().as_secs_f64();
    let there = client.count()?;
    ensure!(there == FLOWS, "{there} of {FLOWS} flows stand");
    Ok(f64::from(FLOWS) / took)
}

/// Flows a second, a barrier behind the messages of each; and half of the answers took so many microseconds.
fn one_by_one(
    client: &mut Client,
    numbers: Range<u32>,
    messages: impl Fn(u32) -> Vec<u8>,
) -> Result<(f64, f64)> {
    let mut took = Vec::new();
    let begin = Instant::now();
    for n in numbers {
        let mut bytes = messages(n);
        bytes.extend_from_slice(&barrier(n));
        let sent = Instant::now();
        client.send(&bytes)?;
        client.answer(n)?;
        took.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    let rate = took.len() as f64 / begin.elapsed().as_secs_f64();
    took.sort_by(f64::total_cmp);
    Ok((rate, took.get(took.len() / 2).copied().unwrap_or(f64::NAN)))
}

/// Figures of one kind of flow: all at once, one by one, half of the barriers.
type Figures = (f64, f64, f64);

fn measure(ns: &str, kind: Kind) -> Result<Figures> {
    let mut client = Client::new(ns)?;
    let rate = together(&mut client, kind)?;
    let (confirmed, barrier) = one_by_one(&mut client, FLOWS..FLOWS + CONFIRMED, |n| {
        flow(PRIORITY, &kind.fields(n), 1)
    })?;
    client.clear()?;
    Ok((rate, confirmed, barrier))
}

/// A priority for each flow, which says nothing of when it comes. 5-tuples, which ask for no station, go before stations: a
/// chip looks at its rows first.
fn drawn(kind: Kind, n: u32) -> u16 {
    let front = match kind {
        Kind::Mac => 1,
        Kind::Ip | Kind::FiveTuple => 0x4001,
    };
    front + (n.wrapping_mul(0x85eb_ca6b) >> 18) as u16
}

/// So many flows of a kind.
fn standing_of(kind: Kind, standing: u32) -> Vec<u8> {
    (0..standing)
        .flat_map(|n| flow(drawn(kind, n), &kind.fields(n), 1))
        .collect()
}

/// All flows that a chip is filled with.
pub fn fill() -> Vec<u8> {
    CHIP.iter()
        .flat_map(|(kind, _, standing)| standing_of(*kind, *standing))
        .collect()
}

/// With so many flows standing, each by a barrier: one more, for which the oldest goes.
fn cycled(ns: &str, kind: Kind, standing: u32) -> Result<(f64, f64)> {
    let mut client = Client::new(ns)?;
    client.clear()?;
    client.done(&standing_of(kind, standing))?;
    let figures = one_by_one(&mut client, standing..standing + CONFIRMED, |n| {
        let old = n - standing;
        let gone = no_flow(drawn(kind, old), &kind.fields(old));
        [gone, flow(drawn(kind, n), &kind.fields(n), 1)].concat()
    })?;
    let there = client.count()?;
    ensure!(there == standing, "{there} of {standing} flows stand");
    client.clear()?;
    Ok(figures)
}

/// All of it with a chip below.
fn on_chip(rig: &Rig, o: &Options, latency: bool) -> Result<Vec<Row>> {
    let chip = ofswitch::on_chip(rig, "chip", 1, latency)?;
    let (own, theirs) = (rig.ns("chip"), rig.ns("sw"));
    let mut rows = Vec::new();
    for (kind, word, standing) in CHIP {
        let pairs = ofswitch::pairs(o.pairs, |who| match who {
            Who::Ours => cycled(&own, kind, standing),
            Who::Theirs => cycled(&theirs, kind, standing),
        })?;
        let slow = if latency { ", its latency" } else { "" };
        // What the profile's writes take is not ours
        let target = |t| if latency { Target::None } else { t };
        let mut row = |what: &str, unit, pick: fn(&(f64, f64)) -> f64, target| {
            let of: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (pick(a), pick(b))).collect();
            let claim = format!("flow_mod {word}, chip below{slow}: {what}, {standing} standing");
            rows.push(Row::paired(&claim, unit, PEER, &of, target));
        };
        let each = target(Target::RatioAtLeast(1.0));
        row("a barrier behind each", "flows/s", |f| f.0, each);
        let half = target(Target::RatioAtMost(1.0));
        row("barrier p50", "us", |f| f.1, half);
    }
    drop(chip);
    Ok(rows)
}

/// Runs it.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    ovs::required()?;
    let rig = Rig::new(&["sw", "own", "chip"])?;
    for ns in ["sw", "own", "chip"] {
        rig.veth((ns, "p1"), (ns, "q1"))?;
    }
    let peer = Ovs::new(&rig, &[("p1", &[])])?;
    peer.controllers(Calls::Nobody)?;
    let _agent = ofswitch::agent(&rig, "own", &["--port", "swp1=p1"], Calls::Nobody)?;
    let (own, theirs) = (rig.ns("own"), rig.ns("sw"));
    let mut rows = Vec::new();
    if o.only.is_none_or(|only| only == Part::Chip) {
        for latency in [false, true] {
            rows.extend(on_chip(&rig, o, latency)?);
        }
    }
    if o.only == Some(Part::Chip) {
        return Ok(rows);
    }
    for (kind, word) in Kind::ALL {
        let pairs = ofswitch::pairs(o.pairs, |who| match who {
            Who::Ours => measure(&own, kind),
            Who::Theirs => measure(&theirs, kind),
        })?;
        let mut row = |what: &str, unit, pick: fn(&Figures) -> f64, target| {
            let of: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (pick(a), pick(b))).collect();
            let claim = format!("flow_mod {word}: {what}");
            rows.push(Row::paired(&claim, unit, PEER, &of, target));
        };
        let all = format!("{FLOWS} and a barrier");
        row(&all, "flows/s", |f| f.0, Target::RatioAtLeast(3.0));
        let each = format!("a barrier behind each, {FLOWS} standing");
        row(&each, "flows/s", |f| f.1, Target::RatioAtLeast(1.0));
        let half = format!("barrier p50, {FLOWS} standing");
        row(&half, "us", |f| f.2, Target::RatioAtMost(1.0));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_differ() {
        let all: std::collections::HashSet<_> =
            (0..1000).map(|n| Kind::FiveTuple.fields(n)).collect();
        assert_eq!(all.len(), 1000);
    }
}

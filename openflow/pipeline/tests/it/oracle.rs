// SPDX-License-Identifier: Apache-2.0
//! The pipeline against an oracle that was written from the standard's text and shares nothing with it but the types of
//! messages: a list of flows, fields compared bit by bit, packets taken apart and put together anew.
//!
//! Random tables, groups, meters, ports and frames; packets between changes. Every packet must leave by the same ports in
//! the same order, byte for byte, and every counter must be the same.

mod layout;
mod meter;
mod model;
mod packet;
mod random;

use crate::common;
use model::Model;
use proptest::prelude::*;
use random::Rng;
use std::collections::BTreeMap;
use tandem_ofpipeline::flows::all_flows;
use tandem_ofpipeline::{Config, Fragments, Port, Switch};
use tandem_openflow::model::{FlowFilter, GroupCommand, MeterCommand};
use tandem_openflow::{Error, Match, Oxm, Version};

struct Pair {
    switch: Switch,
    model: Model,
    now: u64,
    taken: Taken,
}

/// Additions and modifications that the switch carried out, and those asked for.
#[derive(Default)]
struct Taken {
    flows: (usize, usize),
    groups: (usize, usize),
    meters: (usize, usize),
}

fn tell(of: &mut (usize, usize), taken: bool) {
    *of = (of.0 + usize::from(taken), of.1 + 1);
}

fn sorted(m: &[Oxm]) -> Vec<Oxm> {
    let mut m = m.to_vec();
    m.sort();
    m
}

impl Pair {
    fn new(r: &mut Rng, version: Version) -> Pair {
        let v10 = version == Version::V10;
        let table_entries = if v10 { 16 } else { 8 };
        let mut switch = Switch::new(Config {
            version,
            tables: if v10 { 1 } else { 4 },
            table_entries,
            cache: r.of(&[0, 4, 1024]),
            secret: r.bits(),
            ..Config::default()
        });
        let invalid_ttl = r.one_in(2);
        switch.set_config(Fragments::Normal, 128, invalid_ttl);
        let mut model = Model {
            v10,
            flows: Vec::new(),
            groups: BTreeMap::new(),
            meters: BTreeMap::new(),
            ports: BTreeMap::new(),
            lookups: BTreeMap::new(),
            table_entries: table_entries as usize,
            invalid_ttl,
        };
        for number in 1..=4 {
            let port = model::Port {
                live: true,
                ..Default::default()
            };
            model.ports.insert(number, port);
            switch.set_port(
                Port {
                    number,
                    live: true,
                    queues: vec![5, 6],
                    ..Port::default()
                },
                0,
            );
        }
        Pair {
            switch,
            model,
            now: 1_000_000_000,
            taken: Taken::default(),
        }
    }

    fn message(&mut self, r: &mut Rng, pool: &[Vec<u8>]) -> Result<(), TestCaseError> {
        let now = self.now;
        let mut gone = Vec::new();
        let v10 = self.model.v10;
        match r.below(12) {
            0 if !v10 => {
                let m = random::group_mod(r, pool);
                let want = self.model.judge_group(&m);
                let got = self.switch.group_mod(&m, now, &mut gone);
                match want {
                    Some(want) => prop_assert_eq!(got, want, "{:?}", m),
                    None => prop_assert!(
                        matches!(
                            got,
                            Ok(())
                                | Err(Error::BAD_ACTION_BAD_OUT_GROUP
                                    | Error::GROUP_MOD_FAILED_BAD_WATCH
                                    | Error::GROUP_MOD_FAILED_LOOP)
                        ),
                        "{:?} {:?}",
                        got,
                        m
                    ),
                }
                if m.command != GroupCommand::Delete {
                    tell(&mut self.taken.groups, got.is_ok());
                }
                if got.is_ok() {
                    self.model.group_mod(&m);
                }
            }
            1 if !v10 => {
                let m = random::meter_mod(r);
                let there = self.model.meters.contains_key(&m.meter);
                let want = match m.command {
                    MeterCommand::Add if there => Err(Error::METER_MOD_FAILED_METER_EXISTS),
                    MeterCommand::Modify if !there => Err(Error::METER_MOD_FAILED_UNKNOWN_METER),
                    _ => Ok(()),
                };
                let got = self.switch.meter_mod(&m, now, &mut gone);
                prop_assert_eq!(got, want, "{:?}", m);
                if m.command != MeterCommand::Delete {
                    tell(&mut self.taken.meters, got.is_ok());
                }
                if got.is_ok() {
                    self.model.meter_mod(&m, now);
                }
            }
            _ => {
                let m = match v10 {
                    true => random::flow_mod10(r, pool),
                    false => random::flow_mod(r, pool),
                };
                let got = self.switch.flow_mod(&m, now, &mut gone);
                if !m.command.deletes() {
                    tell(&mut self.taken.flows, got.is_ok());
                }
                let judged = matches!(
                    got,
                    Ok(())
                        | Err(Error::FLOW_MOD_FAILED_TABLE_FULL | Error::FLOW_MOD_FAILED_OVERLAP)
                );
                let (meter, group) = self.model.lacks(&m);
                match got {
                    Err(Error::METER_MOD_FAILED_UNKNOWN_METER) => prop_assert!(meter, "{:?}", m),
                    Err(Error::BAD_ACTION_BAD_OUT_GROUP) => prop_assert!(group, "{:?}", m),
                    // What an action needs of the match is not judged, but counted
                    Err(Error::BAD_ACTION_MATCH_INCONSISTENT) if !v10 => {}
                    _ => {
                        prop_assert!(judged, "{:?} {:?}", got, m);
                        prop_assert!(m.command.deletes() || !(meter || group), "{:?}", m);
                    }
                }
                if judged {
                    let before = self
                        .model
                        .flows
                        .iter()
                        .filter(|f| f.asked.flags & 1 != 0)
                        .count();
                    prop_assert_eq!(got, self.model.flow_mod(&m, now), "{:?}", m);
                    if !m.command.deletes() {
                        prop_assert!(gone.is_empty());
                    } else {
                        let after = self
                            .model
                            .flows
                            .iter()
                            .filter(|f| f.asked.flags & 1 != 0)
                            .count();
                        prop_assert_eq!(gone.len(), before - after);
                    }
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, r: &mut Rng, pool: &[Vec<u8>]) -> Result<bool, TestCaseError> {
        self.now += r.of(&[0, 1_000, 100_000_000, 700_000_000]);
        let now = self.now;
        let mut gone = Vec::new();
        match r.below(24) {
            0..4 => self.message(r, pool)?,
            6 => {
                let number = r.of(&[1, 2, 3, 4]);
                let odd = |r: &mut Rng| r.one_in(6);
                let port = Port {
                    number,
                    live: !r.one_in(3),
                    no_recv: odd(r),
                    no_fwd: odd(r),
                    no_packet_in: odd(r),
                    no_flood: odd(r),
                    queues: vec![5, 6],
                };
                let mine = self.model.ports.get_mut(&number).unwrap();
                (mine.live, mine.no_recv) = (port.live, port.no_recv);
                mine.no_flood = port.no_flood;
                (mine.no_fwd, mine.no_packet_in) = (port.no_fwd, port.no_packet_in);
                self.switch.set_port(port, now);
            }
            7 => {
                let next = self.switch.expire(now, 1000, |_| false, &mut gone);
                prop_assert!(next.is_none_or(|at| at > now));
                prop_assert_eq!(gone.len(), self.model.expire(now));
                self.counters(r, pool)?;
            }
            _ => {
                let frame = &pool[r.below(pool.len() as u64) as usize];
                let port = r.of(&[1, 1, 2]);
                let got = common::send_at(&mut self.switch, port, frame, now);
                let Some(want) = self.model.process(frame, port, now) else {
                    return Ok(false);
                };
                prop_assert_eq!(got, want, "{:02x?} from {}", frame, port);
            }
        }
        Ok(true)
    }

    fn counters(&mut self, r: &mut Rng, pool: &[Vec<u8>]) -> Result<(), TestCaseError> {
        let mut got: Vec<_> = common::flow_stats(&self.switch, &all_flows())
            .into_iter()
            .map(|s| {
                (
                    s.flow.table,
                    s.flow.priority,
                    sorted(&s.flow.matching.fields),
                    s.packets,
                    s.bytes,
                )
            })
            .collect();
        let kept = |counts: bool, n| if counts { n } else { u64::MAX };
        let mut want: Vec<_> = self
            .model
            .flows
            .iter()
            .map(|f| {
                let m = &f.asked;
                (
                    m.table,
                    // Of 1.0's without wildcards it means nothing (1.0 §5.3.5)
                    if m.matching.exact {
                        u16::MAX
                    } else {
                        m.priority
                    },
                    sorted(&m.matching.fields),
                    kept(m.flags & 8 == 0, f.packets),
                    kept(m.flags & 16 == 0, f.bytes),
                )
            })
            .collect();
        got.sort();
        want.sort();
        prop_assert_eq!(got, want);
        let filter = FlowFilter {
            table: r.of(&[255, 0, 1]),
            out_port: r.of(&[0xffff_ffff, 2]),
            cookie: 1,
            cookie_mask: r.of(&[0, 1]),
            matching: Match {
                fields: random::matching(r, pool),
                exact: false,
            },
            ..all_flows()
        };
        let sum = self.switch.aggregate(&filter);
        let (_, _, flows) = self.model.count(&filter);
        prop_assert_eq!(sum.flows, flows);
        let mut bytes = 0;
        for f in common::flow_stats(&self.switch, &all_flows()) {
            let i = &f.flow.instructions;
            bytes += [&i.apply, &i.write]
                .into_iter()
                .flatten()
                .map(|l| size_of_val(&l[..]))
                .sum::<usize>();
        }
        for n in self.switch.groups() {
            for b in &self.switch.group(n).unwrap().0.buckets {
                bytes += size_of_val(b)
                    + size_of::<tandem_ofpipeline::ports::Count>()
                    + size_of_val(&b.actions[..]);
            }
        }
        prop_assert_eq!(self.switch.action_bytes(), bytes as u64);
        let listed = common::flow_stats(&self.switch, &filter);
        prop_assert_eq!(listed.len(), flows as usize);
        for (n, g) in &self.model.groups {
            let (_, c) = self.switch.group(*n).unwrap();
            prop_assert_eq!((c.count.packets, c.count.bytes), (g.packets, g.bytes));
            let taken: Vec<u64> = c.buckets.iter().map(|b| b.packets).collect();
            prop_assert_eq!(&taken, &g.taken);
            let by_flows = self
                .model
                .flows
                .iter()
                .filter(|f| f.groups().contains(n))
                .count();
            let by_groups = self
                .model
                .groups
                .values()
                .filter(|g| g.behind().contains(n))
                .count();
            prop_assert_eq!(c.refs as usize, by_flows + by_groups);
        }
        prop_assert_eq!(self.switch.groups().count(), self.model.groups.len());
        for (n, m) in &self.model.meters {
            let got = self.switch.meter(*n).unwrap();
            prop_assert_eq!(got.count.packets, m.packets);
            let named = self
                .model
                .flows
                .iter()
                .filter(|f| f.asked.instructions.meter == Some(*n));
            prop_assert_eq!(got.flows as usize, named.count());
        }
        for (n, p) in &self.model.ports {
            let got = self.switch.port(*n).unwrap();
            prop_assert_eq!((got.count.rx.packets, got.count.tx.packets), (p.rx, p.tx));
        }
        for t in self.switch.table_stats() {
            let want = self
                .model
                .lookups
                .get(&t.table)
                .copied()
                .unwrap_or_default();
            prop_assert_eq!((t.count.lookups, t.count.matched), want);
        }
        Ok(())
    }
}

/// How many steps of a history could be judged, and what the switch took of its messages.
fn history(seed: u64, steps: usize, version: Version) -> Result<(usize, Taken), TestCaseError> {
    let mut r = Rng(seed);
    let pool: Vec<Vec<u8>> = (0..12).map(|_| random::frame(&mut r)).collect();
    let mut pair = Pair::new(&mut r, version);
    for _ in 0..24 {
        pair.message(&mut r, &pool)?;
    }
    for n in 0..steps {
        if !pair.step(&mut r, &pool)? {
            return Ok((n, pair.taken));
        }
    }
    pair.counters(&mut r, &pool)?;
    Ok((steps, pair.taken))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn never_another_answer(seed: u64, steps in 1usize..150) {
        history(seed, steps, Version::V13)?;
    }

    #[test]
    fn never_another_answer_of_one_0(seed: u64, steps in 1usize..150) {
        history(seed, steps, Version::V10)?;
    }
}

/// Most histories go to their end: what the standard leaves open is rare enough. A switch that refuses what it should take
/// would be right in all it does, so what it takes is counted.
#[test]
fn histories_are_long_and_messages_are_taken() {
    let (flows, groups, meters) = taken_of(Version::V13);
    for (what, (taken, asked), percent) in [
        ("flows", flows, 55),
        ("groups", groups, 45),
        ("meters", meters, 50),
        ("flows of 1.0", taken_of(Version::V10).0, 55),
    ] {
        assert!(taken * 100 > asked * percent, "{what}: {taken} of {asked}");
    }
}

type Share = (usize, usize);

fn taken_of(version: Version) -> (Share, Share, Share) {
    let mut steps = 0;
    let mut all = Taken::default();
    for seed in 0..200 {
        let (n, taken) = history(seed, 100, version).unwrap();
        steps += n;
        for (sum, more) in [
            (&mut all.flows, taken.flows),
            (&mut all.groups, taken.groups),
            (&mut all.meters, taken.meters),
        ] {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }
    assert!(steps > 200 * 50, "{version:?}: {steps}");
    (all.flows, all.groups, all.meters)
}

// SPDX-License-Identifier: Apache-2.0
//! The OpenFlow software pipeline alone, one core, in memory, 60-byte TCP frames, counters on. Time is the thread's own.
//!
//! Flows of 32 masks (source and destination prefixes, with and without a port) and random priorities, the worst case
//! for a search by priority: nearly every mask's table may hold the best flow. Each packet is copied from its template
//! first, and what leaves is read.

use crate::Options;
use crate::prefixes::Rng;
use crate::report::{Row, Target};
use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tandem_ofpipeline::flows::blank;
use tandem_ofpipeline::{Config, PacketIn, Port, Sink, Switch};
use tandem_openflow::model::{FlowCommand, FlowMod};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm};
use tandem_packet::{Frame, Offload, checksum};

const LEN: usize = 60;
const ROOM: usize = 64;
/// Microflows of Zipf traffic.
const MICROFLOWS: usize = 100_000;
/// Packets of one round.
const ROUND: usize = 1 << 20;

type Template = [u8; LEN];

/// Lengths of the prefixes that flows match: of the source (0: not at all) and the destination.
const SRC: [u32; 4] = [0, 16, 24, 32];
const DST: [u32; 4] = [20, 24, 28, 32];

#[derive(Default)]
struct Count {
    sent: u64,
    digest: u64,
}

impl Sink for Count {
    #[inline]
    fn output(&mut self, port: u32, _: Option<u32>, frame: &Frame<'_>) {
        self.sent += 1;
        let last = frame.bytes().get(11).copied().unwrap_or_default();
        self.digest = self
            .digest
            .wrapping_add(u64::from(port) << 8 | u64::from(last));
    }
    fn packet_in(&mut self, _: &PacketIn<'_>, _: &Frame<'_>) {}
    fn normal(&mut self, _: u32, _: &Frame<'_>) {}
}

/// What this thread has had of a core: others may be at work on the same.
fn cpu() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// What a flow matches of a packet.
#[derive(Clone, Copy)]
struct Tuple {
    src: u32,
    dst: u32,
    sport: u16,
    dport: u16,
}

impl Tuple {
    fn random(rng: &mut Rng) -> Tuple {
        let bits = rng.bits();
        Tuple {
            src: 0x0a00_0000 | rng.bits() as u32 & 0x00ff_ffff,
            dst: 0xac10_0000 | rng.bits() as u32 & 0x000f_ffff,
            sport: bits as u16 | 1024,
            dport: (bits >> 16) as u16 & 0x3ff,
        }
    }

    fn frame(&self) -> Template {
        let mut f = [0u8; LEN];
        f[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        f[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6]);
        f[26..30].copy_from_slice(&self.src.to_be_bytes());
        f[30..34].copy_from_slice(&self.dst.to_be_bytes());
        f[34..36].copy_from_slice(&self.sport.to_be_bytes());
        f[36..38].copy_from_slice(&self.dport.to_be_bytes());
        f[46] = 0x50;
        checksum::ip4_set(&mut f[14..34]);
        f
    }

    /// Another packet of the flow that this one has with such a mask.
    fn within(&self, mask: usize, rng: &mut Rng) -> Tuple {
        let other = Tuple::random(rng);
        let mix = |mine: u32, other: u32, len: u32| {
            let kept = (u64::from(u32::MAX) << (32 - len)) as u32;
            mine & kept | other & !kept
        };
        Tuple {
            src: mix(self.src, other.src, SRC[mask % 4].max(8)),
            dst: mix(self.dst, other.dst, DST[mask / 4 % 4]),
            sport: other.sport,
            dport: if !(mask / 16).is_multiple_of(2) {
                self.dport
            } else {
                other.dport
            },
        }
    }

    /// The flow for it, with one of the 32 masks.
    fn flow(&self, mask: usize, priority: u16) -> FlowMod {
        let prefix = |field, v: u32, len: u32| {
            let mask = (u64::from(u32::MAX) << (32 - len)) as u32;
            Oxm::masked(field, u128::from(v), u128::from(mask))
        };
        let mut fields = vec![
            Oxm::exact(Field::EthType, 0x0800),
            Oxm::exact(Field::IpProto, 6),
        ];
        let src = SRC[mask % 4];
        if src > 0 {
            fields.push(prefix(Field::Ipv4Src, self.src, src));
        }
        fields.push(prefix(Field::Ipv4Dst, self.dst, DST[mask / 4 % 4]));
        if !(mask / 16).is_multiple_of(2) {
            fields.push(Oxm::exact(Field::TcpDst, u128::from(self.dport)));
        }
        FlowMod {
            priority,
            matching: Match {
                fields,
                exact: false,
            },
            instructions: Instructions {
                apply: Some(vec![Action::Output {
                    port: 2 + u32::from(priority % 3),
                    max_len: 0,
                }]),
                ..Instructions::default()
            },
            ..blank()
        }
    }
}

/// A switch with so many flows, and the packets that they are for.
struct Rig {
    switch: Switch,
    flows: Vec<FlowMod>,
    tuples: Vec<Tuple>,
    packets: Vec<Template>,
    order: Vec<u32>,
}

fn switch(cache: u32) -> Switch {
    let mut s = Switch::new(Config {
        cache,
        ..Config::default()
    });
    for number in 1..=4 {
        let port = Port {
            number,
            live: true,
            ..Port::default()
        };
        s.set_port(port, 0);
    }
    s
}

impl Rig {
    fn new(flows: usize, cache: u32) -> Result<Rig> {
        let mut rng = Rng::new(7);
        let mut rig = Rig {
            switch: switch(cache),
            flows: Vec::new(),
            tuples: Vec::new(),
            packets: Vec::new(),
            order: Vec::new(),
        };
        for n in 0..flows {
            let tuple = Tuple::random(&mut rng);
            let m = tuple.flow(n, rng.bits() as u16);
            rig.switch.flow_mod(&m, 0, &mut Vec::new())?;
            rig.flows.push(m);
            rig.tuples.push(tuple);
            rig.packets.push(tuple.frame());
        }
        rig.order = (0..ROUND).map(|_| rng.below(flows as u64) as u32).collect();
        Ok(rig)
    }

    /// The same flows, and Zipf traffic (exponent 1) over microflows: each within one of the flows, and random where that
    /// does not look, so that nearly all of them differ in bits that some flow looks at.
    fn zipf(flows: usize, cache: u32) -> Result<Rig> {
        let mut rig = Rig::new(flows, cache)?;
        let mut rng = Rng::new(8);
        rig.packets = (0..MICROFLOWS)
            .map(|n| rig.tuples[n % flows].within(n % flows, &mut rng).frame())
            .collect();
        let mut sum = 0.0;
        let steps: Vec<f64> = (1..=MICROFLOWS)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        let mut which: Vec<u32> = (0..MICROFLOWS as u32).collect();
        for n in (1..which.len()).rev() {
            which.swap(n, rng.below(n as u64 + 1) as usize);
        }
        rig.order = (0..ROUND)
            .map(|_| {
                let at = rng.bits() as f64 / u64::MAX as f64 * sum;
                let rank = steps.partition_point(|s| *s < at).min(MICROFLOWS - 1);
                which[rank]
            })
            .collect();
        Ok(rig)
    }

    /// Million packets a second, while so many flow_mods are made a second: a flow comes and goes, with masks that are there.
    fn drive(&mut self, seconds: f64, mods: u64) -> Result<f64> {
        let mut slots = vec![[0u8; 128]; 32];
        let mut count = Count::default();
        let (mut made, mut packets) = (0u64, 0u64);
        let mut rng = Rng::new(99);
        let mut there: Option<FlowMod> = None;
        let start = cpu();
        let limit = Duration::from_secs_f64(seconds);
        'time: loop {
            for burst in self.order.chunks(32) {
                for (slot, which) in slots.iter_mut().zip(burst) {
                    slot[ROOM..ROOM + LEN].copy_from_slice(&self.packets[*which as usize]);
                }
                let now = packets;
                for slot in slots.iter_mut().take(burst.len()) {
                    let mut frame = Frame::new(slot, ROOM, ROOM + LEN, Offload::NONE);
                    self.switch.process(&mut frame, 1, now, &mut count);
                }
                packets += burst.len() as u64;
                if packets.is_multiple_of(512) {
                    let passed = cpu() - start;
                    while made * 1_000_000 < mods * passed.as_micros() as u64 {
                        let m = match there.take() {
                            Some(old) => FlowMod {
                                command: FlowCommand::DeleteStrict,
                                ..old
                            },
                            None => {
                                let t = Tuple::random(&mut rng);
                                let m = t.flow(rng.below(32) as usize, rng.bits() as u16);
                                there = Some(m.clone());
                                m
                            }
                        };
                        self.switch.flow_mod(&m, now, &mut Vec::new())?;
                        made += 1;
                    }
                    if passed >= limit {
                        break 'time;
                    }
                }
            }
        }
        ensure!(count.sent == packets, "{} of {packets} sent", count.sent);
        std::hint::black_box(count.digest);
        Ok(packets as f64 / (cpu() - start).as_secs_f64() / 1e6)
    }

    /// Microseconds of one flow_mod of each kind, with the flows that are there.
    fn change(&mut self, kind: FlowCommand) -> Result<f64> {
        let n = self.flows.len();
        let mut rng = Rng::new(5);
        let some: Vec<FlowMod> = (0..1000)
            .map(|_| {
                let old = self.flows[rng.below(n as u64) as usize].clone();
                let fresh = Tuple::random(&mut rng).flow(rng.below(32) as usize, rng.bits() as u16);
                let m = if kind == FlowCommand::Add { fresh } else { old };
                FlowMod { command: kind, ..m }
            })
            .collect();
        let start = cpu();
        for m in &some {
            self.switch.flow_mod(m, 1, &mut Vec::new())?;
        }
        Ok((cpu() - start).as_secs_f64() * 1e3)
    }
}

fn packets(claim: &str, target: f64, mut rig: Rig, o: &Options) -> Result<Vec<Row>> {
    let mut quiet = Vec::new();
    let mut pairs = Vec::new();
    for _ in 0..o.pairs {
        let alone = rig.drive(o.seconds, 0)?;
        let changed = rig.drive(o.seconds, 1000)?;
        quiet.push(alone);
        pairs.push((changed, alone));
    }
    Ok(vec![
        Row::alone(claim, "Mpps", &quiet, Target::ValueAtLeast(target)),
        Row::paired(
            &format!("{claim}, 1,000 flow_mods/s"),
            "Mpps",
            "no flow_mods",
            &pairs,
            Target::RatioAtLeast(0.7),
        ),
    ])
}

/// The benchmark.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (claim, target, rig) in [
        (
            "Zipf over 100,000 microflows, 1,000 flows",
            6.0,
            Rig::zipf(1_000, 1 << 17)?,
        ),
        (
            "Zipf over 100,000 microflows, 10,000 flows",
            6.0,
            Rig::zipf(10_000, 1 << 17)?,
        ),
        (
            "uniform over 1,000 flows of 32 masks, no cache",
            1.5,
            Rig::new(1_000, 0)?,
        ),
        (
            "uniform over 10,000 flows of 32 masks, no cache",
            1.0,
            Rig::new(10_000, 0)?,
        ),
    ] {
        rows.extend(packets(claim, target, rig, o)?);
    }
    for (kind, name, target) in [
        (FlowCommand::Add, "add", Target::ValueAtMost(10.0)),
        (
            FlowCommand::ModifyStrict,
            "modify strict",
            Target::ValueAtMost(10.0),
        ),
        (
            FlowCommand::DeleteStrict,
            "delete strict",
            Target::ValueAtMost(10.0),
        ),
        // Looks through all flows whose masks have the bits of its own
        (FlowCommand::Modify, "modify", Target::None),
    ] {
        let mut values = Vec::new();
        for _ in 0..o.pairs {
            values.push(Rig::new(100_000, 1 << 17)?.change(kind)?);
        }
        let claim = format!("flow_mod {name}, 100,000 flows");
        rows.push(Row::alone(&claim, "us", &values, target));
    }
    Ok(rows)
}

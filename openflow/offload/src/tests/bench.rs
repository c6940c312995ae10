// SPDX-License-Identifier: Apache-2.0
//! What a change costs at the chip's fill: `cargo test --release -p tandem-ofoffload -- --ignored --nocapture fill`.
use crate::tables::{self, MacLookup};
use crate::{Act, Flow, Offload, Wanted};
use std::time::{Duration, Instant};
use tandem_openflow::{Field, Oxm};

fn mac(n: u32, priority: u16) -> Flow {
    Flow {
        priority,
        fields: vec![
            Oxm::exact(Field::EthDst, 0x0200_0000_0000 | u128::from(n)),
            Oxm::exact(Field::VlanVid, 0x1000 | u128::from(1 + n % 16)),
        ],
        wanted: Wanted::Act(Act::port((n % 8) as u8)),
        idle: false,
        counted: false,
        traffic: u64::from(n % 97),
    }
}

fn tuple(n: u32, priority: u16) -> Flow {
    Flow {
        priority,
        fields: vec![
            Oxm::exact(Field::EthType, 0x0800),
            Oxm::exact(Field::IpProto, 6),
            Oxm::exact(Field::Ipv4Src, 0x0a00_0000 | u128::from(n)),
            Oxm::exact(Field::Ipv4Dst, 0x0b00_0000 | u128::from(n * 7)),
            Oxm::exact(Field::TcpSrc, u128::from(n & 0xffff)),
            Oxm::exact(Field::TcpDst, 80),
        ],
        wanted: Wanted::Act(Act::port((n % 8) as u8)),
        idle: false,
        counted: false,
        traffic: u64::from(n % 89),
    }
}

/// A few masks: subnets, ports, sources.
fn mixed(n: u32, priority: u16) -> Flow {
    let mut f = tuple(n, priority);
    let net = |field, bits: u32| {
        let mask = u128::from(u32::MAX << (32 - bits));
        Oxm::masked(field, 0x0a00_0000 | u128::from(n << 8), mask)
    };
    match n % 4 {
        0 => {}
        1 => f.fields = vec![f.fields[0], net(Field::Ipv4Dst, 24)],
        2 => {
            f.fields = vec![
                f.fields[0],
                net(Field::Ipv4Src, 24),
                net(Field::Ipv4Dst, 28),
            ]
        }
        _ => {
            f.fields = vec![
                Oxm::exact(Field::InPort, u128::from(n % 8)),
                f.fields[0],
                f.fields[3],
            ]
        }
    }
    f
}

struct Times(Vec<Duration>, usize);

fn timed(times: &mut Times, f: impl FnOnce() -> usize) {
    let at = Instant::now();
    let writes = f();
    times.0.push(at.elapsed());
    times.1 += writes;
}

fn print(what: &str, times: &mut Times) {
    times.0.sort_unstable();
    let us = |n: usize| times.0[n.min(times.0.len() - 1)].as_nanos() as f64 / 1000.0;
    let len = times.0.len();
    let sum: Duration = times.0.iter().sum();
    println!(
        "{what:58} {:8.2} us mean {:8.2} p50 {:8.2} p99 {:9.2} max, {:.1} writes",
        sum.as_nanos() as f64 / 1000.0 / len as f64,
        us(len / 2),
        us(len * 99 / 100),
        us(len - 1),
        times.1 as f64 / len as f64,
    );
}

fn cycle(o: &mut Offload, what: &str, ids: std::ops::Range<u32>, flow: impl Fn(u32) -> Flow) {
    let (mut adds, mut removes) = (Times(vec![], 0), Times(vec![], 0));
    for id in ids {
        let f = flow(id);
        let stands = o.counts(id).is_some();
        if stands {
            timed(&mut removes, || o.remove(id).len());
        }
        timed(&mut adds, || o.add(id, f).len());
        if !stands {
            timed(&mut removes, || o.remove(id).len());
        }
    }
    print(&format!("add: {what}"), &mut adds);
    print(&format!("remove: {what}"), &mut removes);
}

#[test]
#[ignore = "a measurement; wants an optimised build"]
fn fill() {
    let random = |n: u32| (n.wrapping_mul(2_654_435_761) >> 18) as u16;
    for (what, acl) in [
        ("5-tuple flows of one priority", 0),
        ("5-tuple flows of random priorities", 1),
        ("four masks, random priorities", 2),
    ] {
        let front = |n: u32| match acl {
            0 => tuple(n, 40_000),
            1 => tuple(n, 40_000 + random(n)),
            _ => mixed(n, 40_000 + random(n)),
        };
        let mut o = Offload::new(tables::vsc9953(MacLookup::Vlan));
        let mut times = Times(vec![], 0);
        for n in 10_000..17_000 {
            let f = mac(n, 100 + random(n) % 1000);
            timed(&mut times, || o.add(n, f).len());
        }
        print("fill: 7,000 MAC flows, random priorities", &mut times);
        let mut times = Times(vec![], 0);
        for n in 0..2000 {
            let f = front(n);
            timed(&mut times, || o.add(n, f).len());
        }
        print(&format!("fill: 2,000 {what}"), &mut times);
        println!("{:?}", o.usage());
        cycle(&mut o, "a MAC flow", 10_000..12_000, |n| {
            mac(n, 100 + random(n) % 1000)
        });
        cycle(&mut o, "an ACL flow", 0..2000, front);
        cycle(
            &mut o,
            "a source's flow to the controller in front",
            90_000..90_200,
            |n| Flow {
                priority: 60_000,
                fields: vec![
                    Oxm::exact(Field::InPort, u128::from(n % 8)),
                    Oxm::exact(Field::Ipv6Flabel, u128::from(n)),
                ],
                wanted: Wanted::Act(Act::Cpu),
                ..mac(n, 0)
            },
        );
        cycle(&mut o, "an ACL flow behind all", 95_000..95_100, |n| {
            tuple(n, 1)
        });
        for n in 0..10 {
            let mut f = tuple(n, 60_000);
            f.fields = vec![
                Oxm::exact(Field::InPort, u128::from(n % 8)),
                Oxm::exact(Field::EthSrc, u128::from(n)),
                Oxm::exact(Field::EthType, 0x86dd),
            ];
            f.wanted = Wanted::Act(Act::Cpu);
            o.add(97_000 + n, f);
        }
        cycle(
            &mut o,
            "a MAC flow, behind ten widened ones",
            10_000..12_000,
            |n| mac(n, 100 + random(n) % 1000),
        );
        for n in 2000..2038 {
            o.add(n, front(n));
        }
        cycle(&mut o, "an ACL flow too many", 96_000..96_100, |n| Flow {
            traffic: 0,
            ..front(n)
        });
        println!();
    }
}

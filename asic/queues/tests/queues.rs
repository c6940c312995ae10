//! Queues, scheduler, replication, tail drop.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Bed, Rng};
use proptest::prelude::*;
use tandem_queues::{CLASSES, Config, Ingress};

const MS: u64 = 1_000_000;
const T0: u64 = 1_000 * MS;

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[18..22].try_into().unwrap())
}

fn class(bytes: &[u8]) -> usize {
    usize::from(tandem_queues::class_of_priority(bytes[14] >> 5))
}

/// Strict classes first, the others by weight; a class that is alone gets everything.
#[test]
fn the_scheduler_keeps_order_and_shares() {
    let mut bed = Bed::new(Config {
        weights: [1, 2, 2, 4, 4, 8, 0, 0],
        buffer_bytes: 1 << 30,
        ingress_bytes: 1 << 24,
        egress_bytes: 1 << 20,
        ..Config::new(4)
    });
    bed.fabric.set_rate(2, 100);
    for i in 0..2000 {
        for priority in 0..8 {
            // long and short frames: shares are of bytes
            bed.send(
                1,
                &[2],
                priority,
                i,
                if priority == 5 { 300 } else { 1200 },
                T0,
            );
        }
    }
    bed.log.sent.clear();
    let mut now = T0;
    let mut bytes = [0usize; CLASSES];
    while bed.log.sent.len() < 6000 {
        now += MS / 10;
        bed.run(now);
    }
    let first: Vec<usize> = bed.log.sent[..1900].iter().map(|(_, b)| class(b)).collect();
    assert!(first.iter().all(|c| *c == 7), "class 7 goes first");
    for (_, b) in &bed.log.sent[4000..6000] {
        bytes[class(b)] += b.len();
    }
    assert_eq!((bytes[6], bytes[7]), (0, 0));
    let one = bytes[0] as f64;
    for (c, weight) in [(1, 2.0), (2, 2.0), (3, 4.0), (4, 4.0), (5, 8.0)] {
        let share = bytes[c] as f64 / one;
        assert!(
            (share - weight).abs() < 0.15 * weight,
            "class {c}: {share} for {weight}, {bytes:?}"
        );
    }
}

/// A frame for many ports crosses once per egress slice; only the full queue loses its replica.
#[test]
fn replication_is_behind_the_crossbar() {
    let mut bed = Bed::new(Config {
        ports_per_slice: 4,
        egress_bytes: 2000,
        ..Config::new(12)
    });
    let all: Vec<u16> = (2..=12).collect();
    for port in 1..=12 {
        bed.fabric.set_rate(port, 10);
    }
    // 1,226 bytes and overhead: a millisecond
    bed.send(1, &all, 0, 0, 1226, T0);
    assert_eq!(bed.log.sent.len(), 11, "the wires were free");
    bed.log.sent.clear();
    bed.send(1, &all, 0, 1, 1226, T0);
    assert_eq!(
        bed.fabric.totals().buffered,
        1226,
        "one copy for eleven ports"
    );
    bed.run(T0);
    let t = bed.fabric.totals();
    assert_eq!((t.multicast, t.replicas, t.unicast), (3, 11, 0));
    // ports 2..=12 have one frame; a second doesn't fit behind the crossbar, and a replica doesn't wait before it
    bed.send(1, &[2, 3], 0, 2, 1226, T0);
    bed.run(T0);
    assert_eq!(bed.fabric.tail_drops(2) + bed.fabric.tail_drops(3), 2);
    // a unicast frame waits in its virtual output queue instead
    bed.send(1, &[4], 0, 3, 1226, T0);
    bed.run(T0);
    assert_eq!(bed.fabric.tail_drops(4), 0);
    for ms in 1..=4 {
        bed.run(T0 + ms * MS);
    }
    assert_eq!(bed.log.sent.len(), 12);
    assert_eq!(bed.fabric.totals().buffered, 0);
    assert_eq!(bed.fabric.due(T0 + 5 * MS), None);
}

/// A cable that takes nothing is asked again, and nothing is lost or reordered meanwhile.
#[test]
fn a_blocked_cable_is_asked_again() {
    let mut bed = Bed::new(Config::new(4));
    bed.fabric.block(2, T0);
    bed.log.blocked.push(2);
    for i in 0..50 {
        bed.send(1, &[2], 0, i, 100, T0);
    }
    bed.run(T0);
    assert!(bed.log.sent.is_empty());
    let due = bed.fabric.due(T0).unwrap();
    assert!(due > T0 && due <= T0 + MS, "{due}");
    bed.run(due);
    assert!(bed.log.sent.is_empty());
    bed.log.blocked.clear();
    let due = bed.fabric.due(due).unwrap();
    bed.run(due);
    let numbers: Vec<u32> = bed.log.sent.iter().map(|(_, b)| number(b)).collect();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    bed.send(1, &[2], 0, 50, 100, due);
    assert_eq!(bed.log.sent.len(), 51, "free again");
    let q = bed.fabric.stats(2).unwrap()[1];
    assert_eq!(
        (q.packets, q.queued, q.depth, q.watermark),
        (51, 50, 0, 5000)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever comes: every frame leaves once per port or is counted as lost; the buffer stays within bounds and is empty
    /// at the end.
    #[test]
    fn nothing_is_lost_uncounted(
        seed in any::<u64>(),
        fifo in any::<bool>(),
        per_slice in 1u16..6,
        rates in proptest::collection::vec(prop_oneof![Just(0u32), 1u32..50], 8),
    ) {
        let mut bed = Bed::new(Config {
            ports_per_slice: per_slice,
            ingress: if fifo { Ingress::Fifo } else { Ingress::Voq },
            buffer_bytes: 60_000,
            ingress_bytes: 10_000,
            egress_bytes: 4_000,
            ..Config::new(8)
        });
        for (port, rate) in (1..).zip(&rates) {
            bed.fabric.set_rate(port, *rate);
        }
        let mut rng = Rng(seed);
        let mut asked = [0u64; 9];
        let mut now = T0;
        for i in 0..600u32 {
            let from = 1 + rng.next(8) as u16;
            let many = rng.next(3) == 0;
            let to: Vec<u16> = (1..=8).filter(|p| *p != from && rng.next(if many { 2 } else { 8 }) == 0).collect();
            let kind = if to.len() > 1 { 1 << 31 } else { 0 };
            for p in &to {
                asked[usize::from(*p)] += 1;
            }
            bed.send(from, &to, rng.next(8) as u8, kind | i, 60 + rng.next(1440), now);
            now += rng.next(100_000) as u64;
            if rng.next(3) == 0 {
                bed.run(now);
            }
            let t = bed.fabric.totals();
            prop_assert!(t.buffered <= 60_000, "{t:?}");
        }
        while let Some(due) = bed.fabric.due(now) {
            prop_assert!(due >= now);
            now = due;
            bed.run(now);
        }
        for port in 1..=8u16 {
            let lost = bed.fabric.tail_drops(port);
            prop_assert_eq!(bed.log.count(port) as u64 + lost, asked[usize::from(port)], "port {}", port);
            let s = bed.fabric.stats(port).unwrap();
            prop_assert_eq!(s.iter().map(|q| q.packets).sum::<u64>(), bed.log.count(port) as u64);
            prop_assert!(s.iter().all(|q| q.depth == 0));
        }
        prop_assert_eq!(bed.fabric.totals().buffered, 0);
    }

    /// One source: order is kept per port, class and kind (to one port, or to several).
    #[test]
    fn order_is_kept(seed in any::<u64>(), rate in 1u32..100) {
        let mut bed = Bed::new(Config { egress_bytes: 4_000, ..Config::new(4) });
        bed.fabric.set_rate(2, rate);
        bed.fabric.set_rate(3, rate);
        let mut rng = Rng(seed);
        let mut now = T0;
        for i in 0..400u32 {
            let to: &[u16] = if rng.next(2) == 0 { &[2] } else { &[2, 3] };
            let kind = if to.len() > 1 { 1 << 31 } else { 0 };
            bed.send(1, to, rng.next(8) as u8, kind | i, 60 + rng.next(1000), now);
            now += rng.next(300_000) as u64;
            if rng.next(2) == 0 {
                bed.run(now);
            }
        }
        while let Some(due) = bed.fabric.due(now) {
            now = due;
            bed.run(now);
        }
        for port in [2, 3] {
            for c in 0..CLASSES {
                for kind in [0, 1 << 31] {
                    let seen: Vec<u32> = bed.log.sent.iter()
                        .filter(|(p, b)| *p == port && class(b) == c && number(b) & (1 << 31) == kind)
                        .map(|(_, b)| number(b))
                        .collect();
                    prop_assert!(seen.is_sorted(), "port {port} class {c}: {seen:?}");
                }
            }
        }
    }
}

//! Head-of-line blocking: the same traffic through one queue per input and through virtual output queues.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Bed, Rng};
use tandem_queues::{Config, Fabric, Ingress, Wire};

/// One port per slice; every frame goes through queue and crossbar, one per slice and slot.
fn square(ports: u16, ingress: Ingress) -> Config {
    Config {
        ports_per_slice: 1,
        ingress,
        bypass: false,
        // a queue that is never empty is all that saturation needs
        ingress_bytes: 64 * 2048,
        // one frame: the crossbar is no faster than the ports
        egress_bytes: 1,
        ..Config::new(ports)
    }
}

/// Saturated inputs, destinations uniform and independent: the share of slots in which an output sends.
fn throughput(ports: u16, ingress: Ingress) -> f64 {
    let mut bed = Bed::new(square(ports, ingress));
    let mut rng = Rng(7);
    let (warm, slots) = (4000u64, 12_000u64);
    let mut sent = 0;
    for slot in 0..slots {
        for input in 1..=ports {
            let to = 1 + rng.next(usize::from(ports)) as u16;
            bed.send(input, &[to], 0, slot as u32, 64, slot);
        }
        let n = bed.fabric.step(slot, &mut bed.log);
        bed.log.sent.clear();
        if slot >= warm {
            sent += n;
        }
    }
    sent as f64 / ((slots - warm) as f64 * f64::from(ports))
}

/// M. Karol, M. Hluchyj, S. Morgan, "Input versus output queueing on a space-division packet switch", 1987, table I:
/// 0.7500 for 2 ports, 0.6553 for 4, 0.6184 for 8, 2 - √2 = 0.5858 in the limit.
#[test]
fn one_queue_per_input_reaches_what_theory_says_and_voqs_everything() {
    for (ports, theory) in [(2, 0.7500), (4, 0.6553), (8, 0.6184), (32, 0.5930)] {
        let fifo = throughput(ports, Ingress::Fifo);
        let voq = throughput(ports, Ingress::Voq);
        println!(
            "{ports} ports: one queue {fifo:.4} (theory {theory:.4}), virtual output queues {voq:.4}"
        );
        assert!(
            (fifo - theory).abs() < 0.01,
            "{ports} ports: {fifo} for {theory}"
        );
        // at full load an output idles now and then because nobody has a frame for it
        assert!(voq > 0.97, "{ports} ports: {voq}");
    }
}

/// A slow port and a fast one, fed alternately by one input: the fast one's frames wait behind the slow one's only with
/// one queue.
#[test]
fn a_slow_port_holds_up_only_its_own_frames() {
    let run = |ingress| {
        let mut bed = Bed::new(Config {
            ports_per_slice: 2,
            ingress,
            ..Config::new(6)
        });
        assert!(bed.fabric.set_rate(3, 10));
        let mut lost_for_5 = 0;
        for i in 0..20_000u32 {
            let now = 1_000_000_000 + u64::from(i) * 10_000;
            bed.send(1, &[3], 0, i, 1000, now);
            bed.send(1, &[5], 0, i, 1000, now);
            bed.run(now);
            lost_for_5 = bed.fabric.tail_drops(5);
        }
        (bed.log.count(3), bed.log.count(5), lost_for_5)
    };
    let (slow, fast, lost) = run(Ingress::Voq);
    assert_eq!((fast, lost), (20_000, 0));
    // 200 ms of 10 Mbit/s in frames of 1,024 on the wire
    assert!((240..=260).contains(&slow), "{slow}");
    let (slow, fast, lost) = run(Ingress::Fifo);
    assert!((240..=260).contains(&slow), "{slow}");
    assert!(
        fast < 1000 && lost > 18_000,
        "{fast} got through, {lost} lost"
    );
}

/// A port that is not congested sends at once, whatever waits for others: no copy is made for it.
#[test]
fn idle_ports_go_around() {
    let mut bed = Bed::new(Config::new(16));
    bed.fabric.set_rate(2, 1);
    for i in 0..100 {
        bed.send(1, &[2, 9], 0, i, 500, 1_000_000_000);
    }
    assert_eq!(bed.log.count(9), 100);
    assert!(bed.log.count(2) < 3);
    let one = common::frame(0, 0, 500).len() as u64;
    let waiting = 100 - bed.log.count(2) as u64;
    assert_eq!(
        bed.fabric.totals().buffered,
        waiting * one,
        "one copy of each, for the port that waits"
    );
    struct Nobody;
    impl Wire for Nobody {
        fn ready(&mut self, port: u16) -> bool {
            panic!("port {port} has nothing to send")
        }
        fn send(&mut self, _: u16, _: &tandem_queues::Packet) {}
    }
    let mut idle = Fabric::new(Config::new(4)).unwrap();
    assert_eq!(idle.run(1, 1, &mut Nobody), 0);
    assert_eq!(idle.due(1), None);
}

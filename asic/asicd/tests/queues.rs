//! A slow port beside a fast one: queues fill for the slow one only, and urgent frames overtake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::{Bench, root};
use serde_json::{Value, json};
use tandem_linux::netns;

const PAYLOAD: usize = 1182; // 1,228 bytes without FCS: 100 of them take about 100 ms of 10 Mbit/s
const COUNT: u32 = 1000;

fn socket(bench: &Bench, n: u8, port: u16) -> UdpSocket {
    let s = netns::run_in_named(Some(&bench.host(n)), || {
        UdpSocket::bind(format!("10.7.0.{n}:{port}"))
    })
    .unwrap();
    // All of it: a receiver that gets no processor for a while loses nothing
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&s, 8 << 20).unwrap();
    s.set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    s
}

fn receive(s: UdpSocket) -> std::thread::JoinHandle<(u32, Instant)> {
    std::thread::spawn(move || {
        let (mut n, mut last) = (0, Instant::now());
        while s.recv(&mut [0; 2000]).is_ok() {
            n += 1;
            last = Instant::now();
        }
        (n, last)
    })
}

#[test]
fn a_slow_port_holds_up_nobody_else() {
    if !root() {
        return;
    }
    let bench = Bench::new(3, &[]);
    let mut driver = bench.driver(true);
    bench.bridge(&mut driver);
    assert!(bench.ping(1, 2, "-c 1") && bench.ping(1, 3, "-c 1"));
    let set = |mbps: u32| {
        let body = json!({"port": "swp2", "limit_mbps": mbps});
        let v: Value = bench.api().post("/v1/queues", &body).unwrap();
        v["applied"].as_str().unwrap().to_owned()
    };
    assert_eq!(set(10), "swp2 carries 10 Mbit/s");
    let from = socket(&bench, 1, 7001);
    let urgent = socket(&bench, 1, 7002);
    // EF: class 5. The others are best effort.
    rustix::net::sockopt::set_ip_tos(urgent.as_fd(), 46 << 2).unwrap();
    let (slow, fast, quick) = (
        receive(socket(&bench, 2, 7001)),
        receive(socket(&bench, 3, 7001)),
        receive(socket(&bench, 2, 7002)),
    );
    let begin = Instant::now();
    for i in 0..COUNT {
        from.send_to(&[0; PAYLOAD], "10.7.0.2:7001").unwrap();
        from.send_to(&[0; PAYLOAD], "10.7.0.3:7001").unwrap();
        if i % 100 == 50 {
            urgent.send_to(&[0; PAYLOAD], "10.7.0.2:7002").unwrap();
        }
        if i % 50 == 49 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let (slow, last) = slow.join().unwrap();
    let took = last.duration_since(begin).as_secs_f64();
    let (fast, _) = fast.join().unwrap();
    let (quick, _) = quick.join().unwrap();
    assert_eq!(fast, COUNT, "the fast port loses nothing");
    assert_eq!(quick, 10, "the urgent class loses nothing");
    // everything that got through went at the wire's speed: 1,252 bytes on the wire take 1.0016 ms
    let rate = f64::from(slow + quick) * 1252.0 * 8.0 / took / 1e6;
    assert!(
        (5.0..10.5).contains(&rate),
        "{rate} Mbit/s, {slow} frames in {took} s"
    );
    let v: Value = bench.api().get("/v1/queues").unwrap();
    let row = |port: &str, class: u64| {
        v["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["port"] == port && r["class"] == class)
            .cloned()
            .unwrap()
    };
    let best_effort = row("swp2", 1);
    let lost = best_effort["tail_drops"].as_u64().unwrap();
    assert_eq!(u64::from(slow) + lost, u64::from(COUNT), "{best_effort}");
    assert!(lost > 0 && best_effort["high_watermark"].as_u64().unwrap() > 100_000);
    assert_eq!(row("swp2", 5)["packets"], 10);
    assert_eq!(row("swp3", 1)["tail_drops"], 0);
    assert_eq!(v["crossbar"]["buffered"], 0);
    let ports: Value = bench.api().get("/v1/ports").unwrap();
    assert_eq!(ports["items"][1]["counters"]["detail"]["tail_drops"], lost);
    assert_eq!(set(0), "swp2 has no limit");
    assert!(bench.ping(1, 2, "-c 2 -i 0.1"));
}

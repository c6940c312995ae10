//! A slow port beside a fast one: queues fill for the slow one only, and urgent frames overtake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{Bench, PATIENCE, eventually, must, root};
use serde_json::{Value, json};
use tandem_linux::netns;

const PAYLOAD: usize = 1182; // 1,228 bytes without FCS: 100 of them take about 100 ms of 10 Mbit/s
const COUNT: u32 = 1000;
/// Of 10, what leaves of a queue that is never empty, in the best of all times that are so long.
const LEAST_MBPS: f64 = 3.0;
const WINDOW: Duration = Duration::from_millis(200);

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

/// What a socket has got so far, and when the last of it came; `over`: nothing more is on its way.
fn receive(s: UdpSocket, over: &Arc<AtomicBool>) -> (Arc<AtomicU32>, JoinHandle<Instant>) {
    let (count, over) = (Arc::new(AtomicU32::new(0)), over.clone());
    let counted = count.clone();
    let thread = std::thread::spawn(move || {
        let mut last = Instant::now();
        loop {
            let ends = over.load(SeqCst);
            match s.recv(&mut [0; 2000]) {
                Ok(_) => {
                    counted.fetch_add(1, SeqCst);
                    last = Instant::now();
                }
                Err(_) if ends => return last,
                Err(_) => {}
            }
        }
    });
    (count, thread)
}

#[test]
fn a_slow_port_holds_up_nobody_else() {
    if !root() {
        return;
    }
    let bench = Bench::new(3, &[]);
    let mut driver = bench.driver(true);
    bench.bridge(&mut driver);
    assert!(bench.reaches(1, 2, "-c 1") && bench.reaches(1, 3, "-c 1"));
    let set = |mbps: u32| {
        let body = json!({"port": "swp2", "limit_mbps": mbps});
        let v: Value = bench.api().post("/v1/queues", &body).unwrap();
        v["applied"].as_str().unwrap().to_owned()
    };
    assert_eq!(set(10), "swp2 carries 10 Mbit/s");
    // nobody asks again who is known: such a frame, lost, would count as one of those below
    let known = "net.ipv4.neigh.h1.base_reachable_time_ms=3600000";
    must(&format!(
        "ip netns exec {} sysctl -qw {known}",
        bench.host(1)
    ));
    let from = socket(&bench, 1, 7001);
    let urgent = socket(&bench, 1, 7002);
    // EF: class 5. The others are best effort.
    rustix::net::sockopt::set_ip_tos(urgent.as_fd(), 46 << 2).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let (slow, slow_end) = receive(socket(&bench, 2, 7001), &over);
    let (fast, fast_end) = receive(socket(&bench, 3, 7001), &over);
    let (quick, quick_end) = receive(socket(&bench, 2, 7002), &over);
    let queues = || -> Value { bench.api().get("/v1/queues").unwrap() };
    let row = |v: &Value, port: &str, class: u64| {
        v["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["port"] == port && r["class"] == class)
            .cloned()
            .unwrap()
    };
    let begin = Instant::now();
    let (mut sent, mut hurried) = (0, 0);
    let left = |v: &Value| -> u64 {
        let packets = |class| row(v, "swp2", class)["packets"].as_u64().unwrap();
        packets(1) + packets(5)
    };
    let (mut best, mut look): (f64, Option<(Instant, u64)>) = (0.0, None);
    // a thousand each, and on until the slow port's queue has been full, and it has said that it sends about as fast as it should:
    // who sends, or asicd, may get no processor for a while, so less than half is enough. How exact it is, its own test says
    loop {
        if sent >= COUNT {
            let asked = Instant::now();
            let v = queues();
            let took = |(since, _)| asked.duration_since(since);
            if look.is_none_or(|l| took(l) >= WINDOW) {
                if let Some((since, before)) = look {
                    let bits = (left(&v) - before) as f64 * 1252.0 * 8.0;
                    best = best.max(bits / since.elapsed().as_secs_f64() / 1e6);
                }
                look = Some((asked, left(&v)));
            }
            if best >= LEAST_MBPS && row(&v, "swp2", 1)["tail_drops"] != 0 {
                break;
            }
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "no queue is full, or at most {best} Mbit/s"
        );
        for i in 0..COUNT {
            from.send_to(&[0; PAYLOAD], "10.7.0.2:7001").unwrap();
            from.send_to(&[0; PAYLOAD], "10.7.0.3:7001").unwrap();
            sent += 1;
            if i % 100 == 50 {
                urgent.send_to(&[0; PAYLOAD], "10.7.0.2:7002").unwrap();
                hurried += 1;
            }
            if i % 50 == 49 {
                std::thread::sleep(Duration::from_millis(1));
                // no more than the ring of a switch holds that gets no processor
                eventually("the fast port loses nothing", || {
                    sent - fast.load(SeqCst) < 400
                });
            }
        }
    }
    // the last of all is for the fast port: when it is there, and nothing waits, the others have gone or are lost
    eventually("the fast port loses nothing", || fast.load(SeqCst) == sent);
    eventually("the queues are empty", || {
        queues()["crossbar"]["buffered"] == 0
    });
    over.store(true, SeqCst);
    let took = slow_end.join().unwrap().duration_since(begin).as_secs_f64();
    fast_end.join().unwrap();
    quick_end.join().unwrap();
    let [slow, fast, quick] = [slow, fast, quick].map(|n| n.load(SeqCst));
    assert_eq!(fast, sent, "the fast port loses nothing");
    assert_eq!(quick, hurried, "the urgent class loses nothing");
    // nothing went faster than the wire: 1,252 bytes on it take 1.0016 ms
    let rate = f64::from(slow + quick) * 1252.0 * 8.0 / took / 1e6;
    assert!(rate < 10.5, "{rate} Mbit/s, {slow} frames in {took} s");
    let v = queues();
    let best_effort = row(&v, "swp2", 1);
    let lost = best_effort["tail_drops"].as_u64().unwrap();
    assert_eq!(u64::from(slow) + lost, u64::from(sent), "{best_effort}");
    assert!(lost > 0 && best_effort["high_watermark"].as_u64().unwrap() > 100_000);
    assert_eq!(row(&v, "swp2", 5)["packets"], hurried);
    assert_eq!(row(&v, "swp3", 1)["tail_drops"], 0);
    assert_eq!(v["crossbar"]["buffered"], 0);
    let ports: Value = bench.api().get("/v1/ports").unwrap();
    assert_eq!(ports["items"][1]["counters"]["detail"]["tail_drops"], lost);
    assert_eq!(set(0), "swp2 has no limit");
    assert!(bench.reaches(1, 2, "-c 2 -i 0.1"));
}

//! The management API of a running asicd.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::Read;
use std::time::{Duration, Instant};

use common::{Bench, Driver, PATIENCE, eventually, must, root, sh};
use serde_json::{Value, json};
use tandem_abi::{Command, Status, raw};

fn route(prefix: [u8; 4], len: u8, action: u8, target: u32) -> raw::tnd_route {
    let mut addr = [0; 16];
    addr[..4].copy_from_slice(&prefix);
    raw::tnd_route {
        family: raw::TND_AF_INET,
        prefix_len: len,
        action,
        reason: if action == raw::TND_ACT_TRAP {
            raw::TND_TRAP_ROUTE as u8
        } else {
            0
        },
        target_kind: if action == raw::TND_ACT_FORWARD {
            raw::TND_RT_NEXTHOP
        } else {
            raw::TND_RT_NONE
        },
        target,
        addr,
        ..Default::default()
    }
}

fn rif(rif: u16, port: u16) -> raw::tnd_rif {
    raw::tnd_rif {
        rif,
        kind: raw::TND_RIF_PORT,
        port,
        mac: [2, 0, 0, 0, 0, port as u8],
        flags: raw::TND_RIF_V4 | raw::TND_RIF_V6,
        mtu: 1500,
        ..Default::default()
    }
}

fn nexthop(id: u32, rif: u16) -> raw::tnd_nexthop {
    raw::tnd_nexthop {
        rif,
        nexthop: id,
        action: raw::TND_ACT_FORWARD,
        mac: [2, 0, 0, 0, 1, id as u8],
        ..Default::default()
    }
}

/// swp1 and swp2 are routed; 10.8.0.0/16 leaves by swp2.
fn router(driver: &mut Driver) {
    for port in [1, 2] {
        driver.port_up(port, 0);
        driver.ok(&Command::create(&rif(port, port)));
    }
    driver.ok(&Command::create(&nexthop(7, 2)));
    driver.ok(&Command::create(&route(
        [10, 8, 0, 0],
        16,
        raw::TND_ACT_FORWARD,
        7,
    )));
}

/// UDP to `dst` for the router, as hexadecimal text.
fn udp_hex(dst: [u8; 4]) -> String {
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 9, 9, 8, 0];
    f.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 7, 0, 1]);
    f.extend(dst);
    f.extend([0, 5, 0, 6, 0, 8, 0, 0]);
    tandem_packet::checksum::ip4_set(&mut f[14..34]);
    f.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn tables_resources_traces_and_faults() {
    if !root() {
        return;
    }
    let bench = Bench::new(2, &[]);
    let mut driver = bench.driver(true);
    router(&mut driver);
    let api = bench.api();
    let get = |path: &str| -> Value { api.get(path).unwrap() };

    let routes = get("/v1/table/routes");
    let row = &routes["items"][0];
    assert_eq!(row["prefix"], "10.8.0.0/16", "{routes}");
    assert_eq!(
        (&row["action"], &row["target_kind"], &row["target"]),
        (&json!("forward"), &json!("nexthop"), &json!(7))
    );
    assert_eq!(get("/v1/table/rifs")["items"].as_array().unwrap().len(), 2);
    assert_eq!(
        get("/v1/table/nexthops")["items"][0]["mac"],
        "02:00:00:00:01:07"
    );
    for name in ["fdb", "neighbours", "nhgs", "vlans", "members", "ports"] {
        assert!(get(&format!("/v1/table/{name}"))["items"].is_array());
    }
    let e = api.get::<Value>("/v1/table/nothing").unwrap_err();
    assert_eq!(e.status(), Some(404));

    // Pools add up
    let resources = get("/v1/resources");
    let pools = resources["items"].as_array().unwrap();
    assert!(!pools.is_empty());
    for p in pools {
        let n = |k: &str| p[k].as_u64().unwrap();
        assert_eq!(
            n("used") + n("in_flight") + n("committed") + n("free"),
            n("size"),
            "{p}"
        );
    }
    let classes = resources["classes"].as_array().unwrap();
    assert!(
        classes
            .iter()
            .any(|c| c["cls"] == "ipv4-route" && c["cost"].as_u64() > Some(0))
    );

    // A trace is the pipeline's own answer, and changes nothing
    let before = get("/v1/ports");
    let trace: Value = api
        .post(
            "/v1/trace",
            &json!({"port": "swp1", "frame": udp_hex([10, 8, 1, 1])}),
        )
        .unwrap();
    assert_eq!(trace["egress"], json!(["swp2"]), "{trace}");
    assert!(trace["items"].as_array().unwrap().len() > 3, "{trace}");
    let trace: Value = api
        .post(
            "/v1/trace",
            &json!({"port": "swp1", "frame": udp_hex([11, 8, 1, 1])}),
        )
        .unwrap();
    assert!(
        trace["verdict"].as_str().unwrap().contains("lpm_miss"),
        "{trace}"
    );
    let counters = |v: &Value| -> Vec<Value> {
        v["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["counters"]["rx_cpu_packets"].clone())
            .collect()
    };
    assert_eq!(counters(&before), counters(&get("/v1/ports")));
    let e = api
        .post::<Value>("/v1/trace", &json!({"port": "swp1", "frame": "0g"}))
        .unwrap_err();
    assert_eq!(e.status(), Some(400));
    let e = api
        .post::<Value>("/v1/trace", &json!({"port": "swp77", "frame": "00"}))
        .unwrap_err();
    assert_eq!(e.status(), Some(400));

    // Faults: a pool that takes nothing, the nth write, a flipped entry, a reset
    let fault = |body: Value| api.post::<Value>("/v1/fault", &body).unwrap();
    fault(json!({"kind": "table", "table": "ipv4-lpm"}));
    let cpl = driver.run(&Command::create(&route(
        [10, 9, 0, 0],
        16,
        raw::TND_ACT_TRAP,
        0,
    )));
    assert_eq!(
        Status::from_raw(cpl.status),
        Status::from_raw(raw::TND_ST_TABLE_FULL)
    );
    fault(json!({"kind": "clear"}));
    fault(json!({"kind": "fail", "nth": 2, "cls": "route"}));
    driver.ok(&Command::create(&route(
        [10, 9, 0, 0],
        16,
        raw::TND_ACT_TRAP,
        0,
    )));
    let cpl = driver.run(&Command::create(&route(
        [10, 10, 0, 0],
        16,
        raw::TND_ACT_TRAP,
        0,
    )));
    assert_eq!(cpl.status, raw::TND_ST_FAULT);
    driver.ok(&Command::create(&route(
        [10, 10, 0, 0],
        16,
        raw::TND_ACT_TRAP,
        0,
    )));
    fault(json!({"kind": "flip", "table": "routes", "key": "10.8.0.0/16"}));
    let rows = get("/v1/table/routes");
    let flipped = rows["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["prefix"] == "10.8.0.0/16")
        .unwrap();
    assert_ne!(flipped["action"], "forward", "{rows}");
    let e = api
        .post::<Value>(
            "/v1/fault",
            &json!({"kind": "flip", "table": "routes", "key": "1.0.0.0/8"}),
        )
        .unwrap_err();
    assert!(e.to_string().contains("1.0.0.0/8"), "{e}");
    fault(json!({"kind": "reset"}));
    eventually("the driver is detached", || driver.side.check().is_err());
    assert_eq!(get("/v1/table/routes")["items"], json!([]));
    assert_eq!(get("/v1/status")["device"], "failed");
}

#[test]
fn captures_stream_both_directions() {
    if !root() {
        return;
    }
    let bench = Bench::new(2, &[]);
    let mut driver = bench.driver(true);
    bench.bridge(&mut driver);
    assert!(bench.reaches(1, 2, "-c 1"));
    let mut stream = bench
        .api()
        .stream("/v1/capture?port=swp1&filter=icmp&count=4")
        .unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    // one after the other: each has its answer before the next is sent
    for _ in 0..3 {
        assert!(bench.reaches(1, 2, "-c 1"));
    }
    let all = reader.join().unwrap();
    let mut pcap = tandem_ports::pcap::Reader::new(&all[..]).unwrap();
    let mut buf = vec![0; 2000];
    let mut kinds = Vec::new();
    let wall = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64;
    while let Some((time, len)) = pcap.next(&mut buf).unwrap() {
        assert!(wall - time < 600_000_000_000, "time stamps are real");
        assert_eq!(len, 98);
        kinds.push(buf[34]);
    }
    assert_eq!(kinds, [8, 0, 8, 0], "request and reply");
    let e = bench
        .api()
        .get::<Value>("/v1/capture?port=swp1&filter=nonsense")
        .unwrap_err();
    assert_eq!(e.status(), Some(400));
    let e = bench
        .api()
        .get::<Value>("/v1/capture?port=eth0")
        .unwrap_err();
    assert_eq!(e.status(), Some(404));
}

/// Writes without end and forwarding share one thread: all echoes are answered while writes are always on their way.
#[test]
fn writes_and_forwarding_share_the_thread() {
    if !root() {
        return;
    }
    let bench = Bench::new(2, &["--profile", "spectrum-sn2700"]);
    let mut driver = bench.driver(true);
    bench.bridge(&mut driver);
    assert!(bench.reaches(1, 2, "-c 1"));
    let mut ping = std::process::Command::new("sh")
        .args(["-c", &bench.echoes(1, 40, "0.02", "10.7.0.2")])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let (mut posted, mut done, mut failed) = (0u32, 0u32, 0u32);
    let mut answered = false;
    while !answered || posted < 60_000 {
        let mut worked = false;
        if posted - done < 4000 {
            // Adds and deletes over a window that the table holds
            let n = (posted / 2) % 20_000;
            let r = route([10, (n >> 8) as u8, n as u8, 0], 24, raw::TND_ACT_TRAP, 0);
            let command = if posted % 2 == 0 {
                Command::create(&r)
            } else {
                Command::delete(&r)
            };
            if driver.post(1, &command) {
                posted += 1;
                worked = true;
            }
        }
        while let Some(cpl) = driver.reap(1) {
            done += 1;
            failed += u32::from(cpl.status != raw::TND_ST_OK);
            worked = true;
        }
        if !worked {
            std::thread::sleep(Duration::from_micros(50));
        }
        if posted.is_multiple_of(1000) {
            answered = answered || ping.try_wait().unwrap().is_some();
        }
        let late = start.elapsed() > 2 * PATIENCE;
        assert!(!late, "{done} of {posted} writes, echoes: {answered}");
    }
    let rate = f64::from(done) / start.elapsed().as_secs_f64();
    let out = ping.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let took = text.lines().filter_map(|l| l.split_once("time="));
    let took: Vec<&str> = took.map(|(_, t)| t.trim_end_matches(" ms")).collect();
    eprintln!("{rate:.0} writes/s beside forwarding; round trips in ms {took:?}");
    assert_eq!(failed, 0);
    assert_eq!(took.len(), 40, "{text}");
}

/// A flood onto a trapped route costs ARP nothing, and what is dropped is told.
#[test]
fn a_flood_to_the_cpu_leaves_higher_classes_alone() {
    if !root() {
        return;
    }
    let bench = Bench::new(2, &[]);
    let mut driver = bench.driver(true);
    router(&mut driver);
    must(&format!(
        "ip -n {0} route add 99.0.0.0/8 via 10.7.0.254 && ip -n {0} neigh add 10.7.0.254 lladdr 02:00:00:00:00:01 dev h1",
        bench.host(1)
    ));
    let sender = tandem_linux::netns::run_in_named(Some(&bench.host(1)), || {
        std::net::UdpSocket::bind("10.7.0.1:9")
    })
    .unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let flood = std::thread::spawn(move || {
        let mut n = 0u64;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            for _ in 0..32 {
                let _ = sender.send_to(&[0; 64], "99.1.1.1:9");
                n += 1;
            }
        }
        n
    });
    let (mut arps, mut data, mut told) = (0, 0, 0);
    // two seconds, and until there was some of each: who floods and who polices have the processor by turns
    let begin = Instant::now();
    let mut asked = Instant::now();
    let mut questions = 0;
    while begin.elapsed() < Duration::from_secs(2) || arps == 0 || data == 0 || told == 0 {
        let what = (arps, data, told);
        assert!(begin.elapsed() < PATIENCE, "not all seen: {what:?}");
        if asked.elapsed() > Duration::from_millis(100) {
            asked = Instant::now();
            questions += 1;
            sh(&format!(
                "ip -n {0} neigh flush to 10.7.0.77 2>/dev/null; ip netns exec {0} ping -c 1 -W 0.01 10.7.0.77 >/dev/null 2>&1 &",
                bench.host(1)
            ));
        }
        while let Some((head, _)) = driver.packet() {
            if head.reason == raw::TND_TRAP_ARP {
                arps += 1;
            } else if head.trap_class == raw::TND_TC_DATA {
                data += 1;
            }
        }
        while let Some(e) = driver.event() {
            if e.kind == raw::TND_EV_TRAP_DROP {
                assert_eq!(e.trap_class, u32::from(raw::TND_TC_DATA));
                told += e.count;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let sent = flood.join().unwrap();
    let traps: Value = bench.api().get("/v1/traps").unwrap();
    let class = |name: &str| {
        let rows = traps["classes"].as_array().unwrap();
        rows.iter().find(|c| c["class"] == name).unwrap()
    };
    eprintln!(
        "flood {sent} packets: {data} to the CPU, {told} policed and told; {arps} ARP for {questions} questions"
    );
    assert_eq!(class("discovery")["policer_dropped"], 0);
    assert_eq!(class("discovery")["queue_dropped"], 0);
}

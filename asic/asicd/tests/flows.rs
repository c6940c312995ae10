//! Flow ports of a running asicd: hosts that reach each other by entries, a rule in front, and what the API tells of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::{Duration, Instant};

use common::{Bench, Driver, must, root};
use serde_json::{Value, json};
use tandem_abi::{Command, raw};

const FID: u16 = raw::TND_FLOWS_FID;

fn ports(list: &[u16]) -> [u8; raw::TND_PORT_SET_BYTES] {
    tandem_pipeline::state::mask_of(list.iter().copied())
}

/// The address of a host's interface.
fn mac(bench: &Bench, n: u8) -> [u8; 6] {
    let text = must(&format!(
        "ip netns exec {} cat /sys/class/net/h{n}/address",
        bench.host(n)
    ));
    tandem_firmware::platform::parse_mac(text.trim()).unwrap()
}

fn entry(mac: [u8; 6], port: u16, set: u16) -> raw::tnd_fdb {
    raw::tnd_fdb {
        fid: FID,
        mac,
        port,
        set,
        flags: raw::TND_FDB_STATIC,
        ..Default::default()
    }
}

/// Three flow ports without learning or flooding; a set and an entry for broadcast, an entry for each host.
fn flows(bench: &Bench, driver: &mut Driver) {
    for n in 1..=3 {
        driver.port_up(n, raw::TND_PORT_FLOWS | raw::TND_PORT_FLOWS_DROP);
    }
    driver.ok(&Command::create(&raw::tnd_vlan {
        fid: FID,
        flags: raw::TND_VLAN_FLOWS,
        ..Default::default()
    }));
    driver.ok(&Command::create(&raw::tnd_port_set {
        set: 5,
        ports: ports(&[1, 2, 3]),
        ..Default::default()
    }));
    driver.ok(&Command::create(&entry([0xff; 6], 0, 5)));
    for n in 1..=3 {
        driver.ok(&Command::create(&entry(mac(bench, n), n.into(), 0)));
    }
}

#[test]
fn hosts_talk_by_flows() {
    if !root() {
        return;
    }
    let bench = Bench::new(3, &["--profile", "nxp-t1040"]);
    let mut driver = bench.driver(true);
    flows(&bench, &mut driver);
    assert!(bench.ping(1, 2, "-c 2"));
    assert!(bench.ping(3, 1, "-c 1"));
    while let Some(event) = driver.event() {
        assert_eq!(event.kind, raw::TND_EV_LINK, "nothing is learned");
    }
    let api = bench.api();
    let get = |path: &str| -> Value { api.get(path).unwrap() };
    let of = |n: u8, m: u8| {
        let (to, from) = (mac(&bench, m), mac(&bench, n));
        let bytes = [&to[..], &from[..], &[8, 6], &[0; 46]].concat();
        let frame: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let body = json!({"port": format!("swp{n}"), "frame": frame});
        api.post::<Value>("/v1/trace", &body).unwrap()
    };
    assert_eq!(of(1, 2)["egress"], json!(["swp2"]));

    // a rule in front: what goes to host 2 goes to hosts 2 and 3
    driver.ok(&Command::create(&raw::tnd_acl_table {
        stage: raw::TND_ACL_FLOW,
        table: 1,
        ..Default::default()
    }));
    let mut rule = raw::tnd_acl_entry {
        table: 1,
        priority: 9,
        action: raw::TND_ACL_REDIRECT_PORTS,
        ports: ports(&[1, 2, 3]),
        ..Default::default()
    };
    (rule.key.ethertype, rule.mask.ethertype) = (0x0806, u16::MAX);
    driver.ok(&Command::create(&rule));
    driver.ok(&Command::update(&raw::tnd_acl_bind {
        port: 1,
        stage: raw::TND_ACL_FLOW,
        table: 1,
        ..Default::default()
    }));
    let traced = of(1, 2);
    assert_eq!(traced["egress"], json!(["swp2", "swp3"]));
    let stages = traced["items"].as_array().unwrap();
    assert!(stages.iter().any(|s| s["stage"] == "flow_acl"), "{traced}");
    assert_eq!(of(3, 2)["egress"], json!(["swp2"]), "a list of port 1");

    // and how it reads
    let three = json!([1, 2, 3].map(|n| json!({"port": n, "dev": format!("swp{n}")})));
    let sets = get("/v1/table/port-sets");
    assert_eq!(sets["items"], json!([{"set": 5, "ports": three}]));
    let rules = get("/v1/table/acl-rules");
    assert_eq!(rules["items"][0]["target"], three);
    assert_eq!(rules["items"][0]["action"], "redirect_ports");
    assert_eq!(get("/v1/table/acls")["items"][0]["stage"], "flow");
    let all = get("/v1/table/fdb");
    let broadcast = |r: &&Value| r["mac"] == "ff:ff:ff:ff:ff:ff";
    let row = all["items"].as_array().unwrap().iter().find(broadcast);
    let row = row.unwrap();
    assert_eq!((&row["set"], &row["dev"]), (&json!(5), &Value::Null));
    let port = &get("/v1/table/ports")["items"][0]["flags"];
    for flag in ["flows", "flows_drop"] {
        assert!(port.as_array().unwrap().contains(&json!(flag)), "{port}");
    }
}

/// A driver that knows flow ports accepts them of a chip that has them, and is offered none by another.
#[test]
fn who_has_flow_ports_offers_them() {
    if !root() {
        return;
    }
    for (profile, has) in [("nxp-t1040", true), ("spectrum-sn2700", false)] {
        let bench = Bench::new(1, &["--profile", profile]);
        let driver = bench.driver(true);
        let (offered, accepted) = tandem_abi::handshake::features(driver.side.region());
        for features in [offered, accepted] {
            for bit in [raw::TND_FEAT_FLOWS, raw::TND_FEAT_FLOW_MEMBERS] {
                assert_eq!(features & bit != 0, has, "{profile}");
            }
        }
    }
}

/// The port of a group of links bears the group's name, in a set, in a rule and as its one target.
#[test]
fn groups_by_name() {
    if !root() {
        return;
    }
    let bench = Bench::new(1, &["--profile", "nxp-t1040"]);
    let mut driver = bench.driver(true);
    driver.ok(&Command::create(&raw::tnd_lag {
        lag: 1,
        ..Default::default()
    }));
    driver.ok(&Command::create(&raw::tnd_port_set {
        set: 5,
        ports: ports(&[8, 9]),
        ..Default::default()
    }));
    driver.ok(&Command::create(&raw::tnd_acl_table {
        stage: raw::TND_ACL_FLOW,
        table: 1,
        ..Default::default()
    }));
    for (priority, action) in [
        (1, raw::TND_ACL_REDIRECT_PORTS),
        (2, raw::TND_ACL_REDIRECT_PORT),
    ] {
        driver.ok(&Command::create(&raw::tnd_acl_entry {
            table: 1,
            priority,
            action,
            target: 9,
            ports: ports(&[8, 9]),
            ..Default::default()
        }));
    }
    let both = json!([{"port": 8, "dev": "swp8"}, {"port": 9, "dev": "lag1"}]);
    let get = |path: &str| -> Value { bench.api().get(path).unwrap() };
    assert_eq!(get("/v1/table/port-sets")["items"][0]["ports"], both);
    let rules = get("/v1/table/acl-rules");
    assert_eq!(rules["items"][0]["target"], both);
    assert_eq!(rules["items"][1]["target"], "lag1");
}

/// What nothing knows comes to the CPU as it came in, at the rate of flows and not at that of a bridge's exceptions.
#[test]
fn a_miss_comes_to_the_cpu() {
    if !root() {
        return;
    }
    let bench = Bench::new(3, &["--profile", "nxp-t1040"]);
    let mut driver = bench.driver(true);
    flows(&bench, &mut driver);
    driver.port_up(1, raw::TND_PORT_FLOWS);
    let gone = entry(mac(&bench, 2), 0, 0);
    driver.ok(&Command::delete(&gone));
    assert!(!bench.ping(1, 2, "-c 1"));
    let mut got = None;
    common::eventually("a packet", || {
        got = driver.packet().or(got.take());
        got.is_some()
    });
    let (head, frame) = got.unwrap();
    assert_eq!(
        (head.reason, head.trap_class, head.port, head.fid),
        (raw::TND_TRAP_FLOW_MISS, raw::TND_TC_FLOW, 1, FID)
    );
    assert_eq!(frame.get(..6), Some(&mac(&bench, 2)[..]));
    let traps: Value = bench.api().get("/v1/traps").unwrap();
    let class = |c: &&Value| c["class"] == "flow";
    let all = traps["classes"].as_array().unwrap();
    let rate = all.iter().find(class).unwrap()["rate_pps"].as_u64();
    assert_eq!(rate, Some(7_440_476));
}

/// A driver that is stopped says nothing, one whose process is gone neither: hosts talk by their flows until the deadline, and
/// then no more; whom it was stopped for a while finds the ports as it left them, the next one finds that they trap.
#[test]
fn flows_that_nobody_looks_after_have_an_end() {
    if !root() {
        return;
    }
    let bench = Bench::new(3, &["--profile", "nxp-t1040", "--flow-deadline", "6"]);
    let mut driver = bench.driver(true);
    flows(&bench, &mut driver);
    let port = |n: u16| -> bool {
        let all: Value = bench.api().get("/v1/table/ports").unwrap();
        let rows = all["items"].as_array().unwrap();
        let row = rows.iter().find(|r| r["port"] == n).unwrap();
        row["flags"].to_string().contains("trap_all")
    };
    let deadline = || -> Value {
        let status: Value = bench.api().get("/v1/status").unwrap();
        status["deadline"].clone()
    };
    let traps = || {
        let end = Instant::now() + Duration::from_secs(30);
        while !port(1) {
            assert!(Instant::now() < end, "they never trap");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    assert!(bench.ping(1, 2, "-c 1") && !port(1));
    assert!(deadline()["traps_in_s"].as_f64().unwrap() <= 6.0);
    traps();
    assert!(!bench.ping(1, 2, "-c 1"), "by flows of nobody");
    assert!(deadline()["trapping_s"].as_f64().is_some());
    // heard again
    driver.ok(&Command::update(&raw::tnd_vlan {
        fid: FID,
        flags: raw::TND_VLAN_FLOWS,
        ..Default::default()
    }));
    assert!(!port(1) && bench.ping(1, 2, "-c 1"));
    drop(driver);
    assert!(bench.ping(1, 2, "-c 1"), "without a driver");
    traps();
    assert!(!bench.ping(1, 2, "-c 1"));
    let told = deadline();
    assert!(
        told["driver"]
            .as_str()
            .unwrap()
            .starts_with("test-driver (pid "),
        "{told}"
    );
    let mut next = bench.driver(false);
    next.ok(&Command::update(&raw::tnd_vlan {
        fid: FID,
        flags: raw::TND_VLAN_FLOWS,
        ..Default::default()
    }));
    assert!(
        port(1) && !bench.ping(1, 2, "-c 1"),
        "it is for the next one to open"
    );
    for n in 1..=3 {
        next.port_up(n, raw::TND_PORT_FLOWS | raw::TND_PORT_FLOWS_DROP);
    }
    assert!(bench.ping(1, 2, "-c 1"));
    let log = bench.log();
    assert!(
        log.contains("flow ports give every frame to the CPU"),
        "{log}"
    );
}

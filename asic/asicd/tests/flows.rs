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
    assert!(bench.reaches(1, 2, "-c 2"));
    assert!(bench.reaches(3, 1, "-c 1"));
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

/// A running asicd with flow ports whose driver says that it is there, and what asicd tells of its deadline.
struct Alone {
    bench: Bench,
    driver: Option<Driver>,
}

/// Seconds: longer than a machine that is busy keeps what is to be seen before the end.
const LIMIT: f64 = 12.0;

impl Alone {
    fn new() -> Alone {
        let limit = LIMIT.to_string();
        let bench = Bench::new(3, &["--profile", "nxp-t1040", "--flow-deadline", &limit]);
        let mut driver = bench.driver(true);
        flows(&bench, &mut driver);
        driver.ok(&Command::nop());
        let driver = Some(driver);
        Alone { bench, driver }
    }

    fn traps(&self) -> bool {
        let all: Value = self.bench.api().get("/v1/table/ports").unwrap();
        let rows = all["items"].as_array().unwrap();
        let row = rows.iter().find(|r| r["port"] == 1).unwrap();
        row["flags"].to_string().contains("trap_all")
    }

    fn told(&self) -> Value {
        let status: Value = self.bench.api().get("/v1/status").unwrap();
        status["deadline"].clone()
    }

    fn talk(&self) -> bool {
        self.bench.ping(1, 2, "-c 1")
    }

    /// Where they are to, until a deadline: in less time than that, or what never comes would be late for every verdict.
    fn talks(&self) -> bool {
        self.bench.reaches(1, 2, "-c 1 -W 4")
    }

    /// Until the end hosts talk and the ports are open; behind it they trap, and nobody talks. Judged by asicd's own time,
    /// whatever the test's is.
    fn ends(&self) {
        let end = Instant::now() + 3 * common::PATIENCE;
        loop {
            let (traps, first) = (self.traps(), self.told());
            let (talk, told) = (self.talks(), self.told());
            let silent = |told: &Value| told["silent_s"].as_f64().unwrap();
            // what was seen was so before it told this
            if silent(&first) < LIMIT {
                assert!(!traps && first["trapping_s"].is_null(), "{first}");
            }
            let silent = silent(&told);
            if silent < LIMIT {
                assert!(talk && told["trapping_s"].is_null(), "{told}");
                let left = told["traps_in_s"].as_f64().unwrap();
                assert!((silent + left - LIMIT).abs() < 0.01, "{told}");
            } else if told["trapping_s"].is_number() {
                break;
            }
            assert!(Instant::now() < end, "they never trap: {told}");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(self.traps() && !self.talk(), "by flows of nobody");
        assert_eq!(self.told()["traps_in_s"], Value::Null);
    }
}

/// A driver that is stopped says nothing, one whose process is gone neither: hosts talk by their flows until the deadline, and
/// then no more; whom it was stopped for a while finds the ports as it left them, the next one finds that they trap.
#[test]
fn flows_that_nobody_looks_after_have_an_end() {
    if !root() {
        return;
    }
    let mut a = Alone::new();
    a.ends();
    // heard again
    a.driver.as_mut().unwrap().ok(&Command::nop());
    let (traps, talk, told) = (a.traps(), a.talks(), a.told());
    if told["silent_s"].as_f64().unwrap() < LIMIT {
        assert!(!traps && talk, "{told}");
    }
    a.driver = None;
    a.ends();
    let who = a.told()["driver"].to_string();
    assert!(who.contains("test-driver (pid "), "{who}");
    let mut next = a.bench.driver(false);
    next.ok(&Command::update(&raw::tnd_vlan {
        fid: FID,
        flags: raw::TND_VLAN_FLOWS,
        ..Default::default()
    }));
    assert!(a.traps() && !a.talk(), "it is for the next one to open");
    let told = a.told();
    assert!(told["trapping_s"].is_number(), "{told}");
    for n in 1..=3 {
        next.port_up(n, raw::TND_PORT_FLOWS | raw::TND_PORT_FLOWS_DROP);
    }
    // this one never said that it says when it has nothing to do
    assert!(a.bench.reaches(1, 2, "-c 1"));
    common::eventually("its end", || a.told()["trapping_s"].is_null());
    assert_eq!(a.told()["traps_in_s"], Value::Null);
    let log = a.bench.log();
    assert!(
        log.contains("flow ports give every frame to the CPU"),
        "{log}"
    );
}

/// A driver that was silent, and puts packets into the pipeline before it says anything else: they meet its ports as it left
/// them.
#[test]
fn packets_of_one_that_was_silent_meet_its_flows() {
    if !root() {
        return;
    }
    const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
    const PACKETS: u64 = 20;
    let mut a = Alone::new();
    a.ends();
    let mut driver = a.driver.take().unwrap();
    while driver.packet().is_some() {}
    let sent = || {
        let all: Value = a.bench.api().get("/v1/ports").unwrap();
        all["items"][1]["counters"]["tx_packets"].as_u64().unwrap()
    };
    let before = sent();
    let (to, from) = (mac(&a.bench, 2), mac(&a.bench, 1));
    let frame = [&to[..], &from[..], &ETHERTYPE, &[0; 46]].concat();
    for _ in 0..PACKETS {
        driver.send(1, raw::TND_TX_PIPELINE, &frame);
    }
    let mut trapped = 0;
    common::eventually("all packets", || {
        while let Some((_, frame)) = driver.packet() {
            trapped += u64::from(frame.get(12..14) == Some(&ETHERTYPE));
        }
        trapped + sent().saturating_sub(before) >= PACKETS
    });
    assert_eq!(trapped, 0);
}

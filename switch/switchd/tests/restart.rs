//! Ports outlive switchd, and a killed switchd changes nothing that the kernel or the chip sees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Daemon, Kept, Ns, PATIENCE, all_up, asicd, get, switchd, sync, wait_for};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use tandem_linux::netlink::tc::Tc;
use tandem_sal::PlatformPort;
use tandem_switchd::forward_mark::{ForwardMark, Hook};
use tandem_switchd::ports::Port;

/// These devices have their IPv6 addresses, which are own ones, and written, when nobody else has turned out to have them.
fn all_have_ipv6(ns: &Ns, devices: &[&str]) {
    let has = |device: &&str| {
        let shown = ns.run(&format!("ip -6 -o addr show dev {device} scope link"));
        shown.contains("fe80:") && !shown.contains("tentative")
    };
    assert!(
        wait_for(PATIENCE, || devices.iter().all(has)),
        "{}",
        ns.run("ip -6 -o addr")
    );
}

/// `ip monitor link` in a namespace: what it tells between its start and its end, which devices of that name mark.
struct LinkMonitor<'a> {
    ns: &'a Ns,
    child: Child,
    lines: mpsc::Receiver<String>,
}

const MARK: &str = "mark0";

impl<'a> LinkMonitor<'a> {
    fn start(ns: &'a Ns) -> Self {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &ns.0, "ip", "-o", "monitor", "link"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let told = BufReader::new(child.stdout.take().unwrap());
        let (to, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in told.lines() {
                let _ = to.send(line.unwrap());
            }
        });
        let monitor = LinkMonitor { ns, child, lines };
        // it listens when it tells of one
        assert!(wait_for(PATIENCE, || {
            monitor.mark();
            let wait = Duration::from_millis(200);
            std::iter::from_fn(|| monitor.lines.recv_timeout(wait).ok()).any(|l| l.contains(MARK))
        }));
        monitor
    }

    fn mark(&self) {
        let peer = format!("ip link add {MARK} type veth peer name {MARK}p");
        self.ns.run(&peer);
        self.ns.run(&format!("ip link del {MARK}"));
    }

    /// All but the marks.
    fn stop(mut self) -> String {
        self.ns.run("ip link add end0 type veth peer name end1");
        let mut told = String::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            if line.contains("end0") {
                break;
            }
            if !line.contains(MARK) && !line.contains("end1") {
                told += &(line + "\n");
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.ns.run("ip link del end0");
        told
    }
}

#[test]
fn a_kept_port_keeps_carrier_fdb_and_filters() {
    let Some(ns) = Ns::new("kept") else { return };
    let map = PlatformPort {
        port: 1,
        front_panel: 1,
        name: "swp1".into(),
        mac: Some([2, 0x54, 0, 0, 0, 1]),
        breakout_modes: 0,
        max_speed_mbps: 0,
    };
    let mut kept = Kept::default();
    let first = ns.enter(|| Port::open(&map, &mut kept).unwrap());
    assert!(!first.taken_over);
    let (mark, mut tc) = ns.enter(|| {
        (
            ForwardMark::load(Hook::best()).unwrap(),
            Tc::open().unwrap(),
        )
    });
    first.attach_mark(&mark, &mut tc).unwrap();
    first.set_carrier(true).unwrap();
    assert!(ns.run("ip link show swp1").contains("02:54:00:00:00:01"));
    ns.run("ip link add br0 type bridge mcast_snooping 0 forward_delay 0");
    ns.run("ip link set swp1 master br0 up");
    ns.run("ip link set br0 up");
    assert!(wait_for(PATIENCE, || {
        ns.run("bridge link show").contains("state forwarding")
    }));
    ns.run("bridge fdb add 02:aa:00:00:00:01 dev swp1 master extern_learn");
    all_up(&ns, &["swp1", "br0"]);
    let fdb = ns.run("bridge fdb show");
    let monitor = LinkMonitor::start(&ns);
    let ifindex = first.ifindex;
    drop(first);
    std::thread::sleep(Duration::from_millis(200));
    let second = ns.enter(|| Port::open(&map, &mut kept).unwrap());
    assert!(second.taken_over);
    assert_eq!(second.ifindex, ifindex);
    second.attach_mark(&mark, &mut tc).unwrap();
    second.set_carrier(true).unwrap();
    assert_eq!(monitor.stop(), "", "link messages");
    assert_eq!(ns.run("bridge fdb show"), fdb);
    // somebody else's device of that name is not touched
    let mut nobody = Kept::default();
    let e = ns.enter(|| Port::open(&map, &mut nobody).unwrap_err());
    assert!(e.to_string().contains("swp1 is there already"), "{e}");
    // the last descriptor takes the netdev with it
    drop(second);
    kept.0.clear();
    assert!(wait_for(PATIENCE, || {
        !ns.run("ip -br link").contains("swp1")
    }));
}

fn chip_fdb(run: &Path, mac: &str) -> Option<Value> {
    let rows: Value = tandem_mgmt::Client::new(run.join("t/asicd.sock"))
        .get("/v1/table/fdb")
        .unwrap();
    let rows = rows["items"].as_array().unwrap();
    rows.iter().find(|r| r["mac"] == mac).cloned()
}

/// The kernel's port of an address in br0.
fn kernel_fdb(ns: &Ns, mac: &str) -> Option<String> {
    let all = ns.run("bridge fdb show br br0");
    let line = all
        .lines()
        .find(|l| l.starts_with(mac) && l.contains("master br0"))?;
    line.split_whitespace().nth(2).map(ToOwned::to_owned)
}

/// ```text
///   h1 ── fp1 ═ swp1 ┐
///   h2 ── fp2 ═ swp2 ┴ br0 10.1.0.254     fp3 ═ swp3 10.3.0.254, routes behind it
/// ```
#[test]
fn kill_9_is_not_seen_and_writes_nothing_again() {
    let Some(asicd) = asicd() else { return };
    let switchd = switchd();
    let Some(ns) = Ns::new("kill") else { return };
    let hosts: Vec<Ns> = (1..=3).map(|_| Ns::new("host").unwrap()).collect();
    let run = std::env::temp_dir().join(format!("swd-kill-{}", std::process::id()));
    for (i, h) in hosts.iter().enumerate() {
        let n = i + 1;
        ns.run(&format!(
            "ip link add fp{n} type veth peer name eth0 netns {}",
            h.0
        ));
        ns.run(&format!("ip link set fp{n} up"));
        h.run("ip link set eth0 up");
    }
    hosts[0].run("ip addr add 10.1.0.1/24 dev eth0");
    hosts[1].run("ip addr add 10.1.0.2/24 dev eth0");
    hosts[2].run("ip addr add 10.3.0.2/24 dev eth0");
    let _asicd = Daemon::start(
        &asicd,
        &ns,
        &run,
        &[
            "--profile",
            "tiny",
            "--port",
            "swp1=fp1",
            "--port",
            "swp2=fp2",
            "--port",
            "swp3=fp3",
        ],
    );
    let first = Daemon::start(&switchd, &ns, &run, &[]);
    sync(&run);
    ns.run("sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0");
    // in another order than a fresh dump would tell
    ns.run("ip link set swp3 up");
    ns.run("ip addr add 10.3.0.254/24 dev swp3");
    ns.run("ip neigh replace 10.3.0.2 lladdr 02:aa:00:00:00:03 dev swp3 nud permanent");
    ns.run("ip neigh replace 10.3.0.3 lladdr 02:aa:00:00:00:04 dev swp3 nud permanent");
    ns.run("ip route add 30.9.0.0/16 via 10.3.0.3");
    ns.run("ip route add 30.1.0.0/16 via 10.3.0.2");
    ns.run("ip route add 30.2.0.0/16 nexthop via 10.3.0.3 nexthop via 10.3.0.2 weight 2");
    ns.run("ip link add br0 type bridge mcast_snooping 0 forward_delay 0");
    for n in [2, 1] {
        ns.run(&format!("ip link set swp{n} master br0 up"));
    }
    ns.run("ip link set br0 up");
    ns.run("ip addr add 10.1.0.254/24 dev br0");
    assert!(wait_for(PATIENCE, || {
        hosts[0].try_run("ping -q -c 1 -W 1 10.1.0.2").0
    }));
    all_have_ipv6(&ns, &["swp3", "br0"]);
    sync(&run);
    let learned = |ns: &Ns| -> Vec<String> {
        let mut l: Vec<String> = ns
            .run("bridge fdb show br br0")
            .lines()
            .filter(|l| l.contains("extern_learn"))
            .map(ToOwned::to_owned)
            .collect();
        l.sort();
        l
    };
    let fdb = learned(&ns);
    assert!(fdb.len() >= 2, "{fdb:?}");
    let before = get(&run, "/v1/status").unwrap();
    assert!(before["writes"].as_u64().unwrap() > 10);
    all_up(&ns, &["swp1", "swp2", "swp3", "br0", "fp1", "fp2", "fp3"]);
    let monitor = LinkMonitor::start(&ns);
    let mut daemon = first;
    for round in 0..3 {
        daemon.kill();
        // the chip goes on without it
        assert!(hosts[0].try_run("ping -q -c 2 -i 0.2 -W 60 10.1.0.2").0);
        daemon = Daemon::start(&switchd, &ns, &run, &[]);
        sync(&run);
        let status = get(&run, "/v1/status").unwrap();
        assert_eq!(status["writes"], 0, "round {round}: {status}");
        assert_eq!(status["store"]["failed"], 0, "round {round}: {status}");
        assert!(status["store"]["replayed"].as_u64().unwrap() > 10);
        assert_eq!(learned(&ns), fdb, "round {round}");
    }
    assert_eq!(monitor.stop(), "", "link messages");
    let audit: Value = tandem_mgmt::Client::new(run.join("t/switchd.sock"))
        .post("/v1/audit", &serde_json::json!({"wait_s": 60}))
        .unwrap();
    assert_eq!(audit["items"], serde_json::json!([]), "{audit}");
    drop(daemon);
    let _ = std::fs::remove_dir_all(run);
}

/// ```text
///   h1 ── fp1 ═ swp1 ┐
///   h2 ── fp2 ═ swp2 ┼ br0
///   h3 ── fp3 ═ swp3 ┘
/// ```
#[test]
fn stations_stand_where_they_were_seen_last() {
    let Some(asicd) = asicd() else { return };
    let switchd = switchd();
    let Some(ns) = Ns::new("move") else { return };
    let hosts: Vec<Ns> = (1..=3).map(|_| Ns::new("host").unwrap()).collect();
    let run = std::env::temp_dir().join(format!("swd-move-{}", std::process::id()));
    for (i, h) in hosts.iter().enumerate() {
        let n = i + 1;
        ns.run(&format!(
            "ip link add fp{n} type veth peer name eth0 netns {}",
            h.0
        ));
        ns.run(&format!("ip link set fp{n} up"));
        // silent unless told to speak
        h.run("sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1");
        h.run(&format!("ip link set eth0 address 02:aa:00:00:00:0{n} up"));
        h.run(&format!("ip addr add 10.1.0.{n}/24 dev eth0"));
    }
    let ports = [
        "--port", "swp1=fp1", "--port", "swp2=fp2", "--port", "swp3=fp3",
    ];
    let args: Vec<&str> = ["--profile", "tiny"].into_iter().chain(ports).collect();
    let _asicd = Daemon::start(&asicd, &ns, &run, &args);
    let mut daemon = Daemon::start(&switchd, &ns, &run, &[]);
    sync(&run);
    ns.run("ip link add br0 type bridge mcast_snooping 0 forward_delay 0");
    for n in 1..=3 {
        ns.run(&format!("ip link set swp{n} master br0 up"));
    }
    ns.run("ip link set br0 up");
    // until the chip has the ports in a domain, the kernel learns by itself: an entry of its own
    sync(&run);
    assert!(wait_for(PATIENCE, || {
        hosts[0].try_run("ping -q -c 1 -W 1 10.1.0.2").0
    }));
    all_have_ipv6(&ns, &["br0"]);
    sync(&run);
    let (m1, m2) = ("02:aa:00:00:00:01", "02:aa:00:00:00:02");
    assert_eq!(kernel_fdb(&ns, m1).as_deref(), Some("swp1"));
    // somebody else's entry: the kernel never ages it, nor does the chip
    let other = "02:ee:00:00:00:01";
    ns.run(&format!(
        "bridge fdb add {other} dev swp2 master extern_learn"
    ));
    sync(&run);
    assert_eq!(chip_fdb(&run, other).unwrap()["kind"], "static");

    // whose it is now: the chip's, or the kernel's if its message came before the chip's own was known
    let m2_kind = chip_fdb(&run, m2).unwrap()["kind"].clone();

    // switchd dies; h1's address turns up behind swp3
    daemon.kill();
    hosts[2].run(&format!("ip link set eth0 address {m1}"));
    assert!(wait_for(PATIENCE, || {
        hosts[2].try_run("ping -q -c 1 -W 1 10.1.0.2").0
    }));
    assert_eq!(chip_fdb(&run, m1).unwrap()["port"], 3);
    assert_eq!(
        kernel_fdb(&ns, m1).as_deref(),
        Some("swp1"),
        "nobody wrote it"
    );
    daemon = Daemon::start(&switchd, &ns, &run, &[]);
    sync(&run);
    let status = get(&run, "/v1/status").unwrap();
    assert_eq!(status["writes"], 0, "{status}");
    assert_eq!(kernel_fdb(&ns, m1).as_deref(), Some("swp3"));
    for (mac, port, kind) in [(m1, 3, "learned".into()), (m2, 2, m2_kind)] {
        let row = chip_fdb(&run, mac).unwrap();
        // not written again: it is still as the chip had it
        assert_eq!((&row["port"], &row["kind"]), (&port.into(), &kind), "{row}");
    }
    assert_eq!(chip_fdb(&run, other).unwrap()["kind"], "static");

    // programs that go are put back
    let clsact = || {
        let shown = ns.try_run("tc filter show dev swp1 egress").1;
        shown.contains("tandem_once")
    };
    if Hook::best() == Hook::Tcx {
        assert!(!clsact(), "clsact is the user's");
        daemon.kill();
        daemon = Daemon::start(&switchd, &ns, &run, &["--forward-mark", "clsact"]);
        sync(&run);
    }
    assert!(clsact());
    ns.run("tc qdisc del dev swp1 clsact");
    assert!(wait_for(PATIENCE, clsact));
    if Hook::best() == Hook::Tcx {
        daemon.kill();
        daemon = Daemon::start(&switchd, &ns, &run, &[]);
        sync(&run);
        ns.run("tc qdisc add dev swp1 clsact");
    }

    // a port without link keeps no station, an administratively down one neither
    assert_eq!(kernel_fdb(&ns, m2).as_deref(), Some("swp2"));
    hosts[1].run("ip link set eth0 down");
    assert!(wait_for(PATIENCE, || {
        kernel_fdb(&ns, m2).is_none() && chip_fdb(&run, m2).is_none()
    }));
    assert_eq!(
        kernel_fdb(&ns, other).as_deref(),
        Some("swp2"),
        "the kernel keeps it"
    );
    ns.run("ip link set swp3 down");
    assert!(wait_for(PATIENCE, || {
        kernel_fdb(&ns, m1).is_none() && chip_fdb(&run, m1).is_none()
    }));
    drop(daemon);
    let _ = std::fs::remove_dir_all(run);
}

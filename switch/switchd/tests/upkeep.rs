//! Neighbours: those that the chip uses stay confirmed, others go stale; gateways are resolved
//! before a packet asks.
//!
//! ```text
//!   h1 10.1.0.2 ── fp1 ═ swp1 10.1.0.1 ┐ switch
//!   h2 10.2.0.2 ── fp2 ═ swp2 10.2.0.1 ┘
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Daemon, Ns, PATIENCE, asicd, get, switchd, sync, wait_for};
use std::time::{Duration, Instant};

#[test]
fn a_neighbour_that_the_chip_uses_is_kept_confirmed() {
    let Some(asicd) = asicd() else { return };
    let Some(ns) = Ns::new("upkeep") else { return };
    let hosts: Vec<Ns> = (1..=2).map(|_| Ns::new("uh").unwrap()).collect();
    let run = std::env::temp_dir().join(format!("swd-upkeep-{}", std::process::id()));
    for (i, h) in hosts.iter().enumerate() {
        let n = i + 1;
        ns.run(&format!(
            "ip link add fp{n} type veth peer name eth0 netns {}",
            h.0
        ));
        ns.run(&format!("ip link set fp{n} up"));
        h.run("ip link set eth0 up");
        h.run(&format!("ip addr add 10.{n}.0.2/24 dev eth0"));
        h.run(&format!("ip route add default via 10.{n}.0.1"));
    }
    let ports = [
        "--profile",
        "tiny",
        "--port",
        "swp1=fp1",
        "--port",
        "swp2=fp2",
    ];
    let _asicd = Daemon::start(&asicd, &ns, &run, &ports);
    let _switchd = Daemon::start(&switchd(), &ns, &run, &[]);
    sync(&run);
    ns.run("sysctl -qw net.ipv4.ip_forward=1");
    for n in 1..=2 {
        ns.run(&format!("ip link set swp{n} up"));
        ns.run(&format!("ip addr add 10.{n}.0.1/24 dev swp{n}"));
        let neigh = format!("net.ipv4.neigh.swp{n}");
        // reachable for 1.5 to 4.5 s: always longer than the delay, else a confirmed entry counts as
        // just used and the kernel probes it for ever
        ns.run(&format!(
            "sysctl -qw {neigh}.base_reachable_time_ms=3000 {neigh}.delay_first_probe_time=1"
        ));
    }
    // a gateway of a route is resolved without any packet to it
    ns.run("ip route add 20.0.0.0/8 via 10.2.0.2");
    let state = |addr: &str| ns.run(&format!("ip neigh show {addr}"));
    assert!(
        wait_for(PATIENCE, || state("10.2.0.2").contains("lladdr")),
        "{}",
        state("10.2.0.2")
    );
    assert!(wait_for(PATIENCE, || {
        hosts[0].try_run("ping -q -c 1 -W 1 10.2.0.2").0
    }));
    // while the chip forwards to it, it is confirmed again and again
    let sent = Instant::now();
    let (mut confirmed, mut was) = (0, true);
    while sent.elapsed() < 2 * PATIENCE && confirmed < 2 {
        hosts[0].run("ping -q -c 4 -i 0.1 10.2.0.2");
        let now = state("10.2.0.2").contains("REACHABLE");
        confirmed += u32::from(now && !was);
        was = now;
    }
    assert_eq!(confirmed, 2, "not confirmed again and again in use");
    let uses = |run: &std::path::Path| {
        get(run, "/v1/status").unwrap()["upkeep"]["neighbours_used"]
            .as_u64()
            .unwrap()
    };
    assert!(uses(&run) >= 1, "confirmed, but not by the hit bits");
    // without traffic nobody is asked any more: stale, and it stays so over two readings of hit bits
    let stale = || state("10.2.0.2").contains("STALE");
    assert!(wait_for(PATIENCE, stale), "{}", state("10.2.0.2"));
    // hit bits of the last packets may be read behind that: a look during which somebody was asked for is taken again, once
    let quiet = || {
        let before = uses(&run);
        std::thread::sleep(Duration::from_secs(5));
        uses(&run) == before && stale()
    };
    assert!(
        quiet() || quiet(),
        "an unused neighbour is asked for: {} {}",
        uses(&run),
        state("10.2.0.2")
    );
    let _ = std::fs::remove_dir_all(run);
}

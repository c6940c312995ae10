//! The forward mark on real TAPs and a real bridge.
//!
//! ```text
//!   test ── q0, q1 ── swp1 ┐
//!   test ── q0, q1 ── swp2 ┼─ br0 10.0.0.1/24        swp4 10.4.0.1/24 ── q0, q1 ── test
//!   test ── q0, q1 ── swp3 ┤
//!   test ─────────── vm0 ┘ (a TAP of somebody else, no front-panel port)
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Kept, Ns, arp_request, frame, udp};
use std::time::{Duration, Instant};
use tandem_linux::netlink::tc::Tc;
use tandem_linux::tap::{Tap, TapOptions};
use tandem_sal::PlatformPort;
use tandem_switchd::forward_mark::{ForwardMark, QUEUE_COPY, QUEUE_TRAPPED};
use tandem_switchd::ports::Port;

const HOST: [u8; 6] = [2, 0xaa, 0, 0, 0, 1];
/// An EtherType that nobody in the kernel speaks (IEEE 802 local experimental).
const PROBE: u16 = 0x88b5;

fn map(n: u16) -> PlatformPort {
    PlatformPort {
        port: n,
        front_panel: n,
        name: format!("swp{n}"),
        mac: Some([2, 0x54, 0, 0, 0, n as u8]),
        breakout_modes: 0,
        max_speed_mbps: 0,
    }
}

/// Frames of `ethertype` that come out of a port within a moment.
fn out(port: &Port, ethertype: u16) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    let end = Instant::now() + Duration::from_millis(60);
    while Instant::now() < end {
        for q in &port.queues {
            got.extend(read_all(q, ethertype));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    got
}

fn drain(ports: &[Port]) {
    for p in ports {
        out(p, 0);
    }
}

fn read_all(tap: &Tap, ethertype: u16) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    let mut buf = [0; 2048];
    while let Ok(n) = tap.read(&mut buf) {
        if buf[12..14] == ethertype.to_be_bytes() {
            got.push(buf[..n].to_vec());
        }
    }
    got
}

#[test]
fn frames_leave_once() {
    let Some(ns) = Ns::new("mark") else { return };
    let mut kept = Kept::default();
    let ports: Vec<Port> = ns.enter(|| {
        (1..=4)
            .map(|n| Port::open(&map(n), &mut kept).unwrap())
            .collect()
    });
    let (mark, mut tc) = ns.enter(|| (ForwardMark::load().unwrap(), Tc::open().unwrap()));
    for p in &ports {
        p.attach_mark(&mark, &mut tc).unwrap();
        p.set_carrier(true).unwrap();
    }
    ns.run("ip link add br0 type bridge mcast_snooping 0 forward_delay 0");
    for n in 1..=3 {
        ns.run(&format!("ip link set swp{n} master br0 up"));
    }
    let vm = ns.enter(|| Tap::open("vm0", TapOptions::default()).unwrap());
    ns.run("ip link set vm0 master br0 up");
    ns.run("ip link set br0 up");
    ns.run("ip link set swp4 up");
    ns.run("ip addr add 10.0.0.1/24 dev br0");
    ns.run("ip addr add 10.4.0.1/24 dev swp4");
    ns.run("ip neigh add 10.4.0.2 lladdr 02:bb:00:00:00:04 dev swp4");
    ns.run("sysctl -qw net.ipv4.ip_forward=1");
    ns.run("sysctl -qw net.ipv4.conf.all.rp_filter=0");
    drain(&ports);
    let bridge_mac: [u8; 6] = {
        let text = ns.run("cat /sys/class/net/br0/address");
        let b: Vec<u8> = text
            .trim()
            .split(':')
            .map(|x| u8::from_str_radix(x, 16).unwrap())
            .collect();
        b.try_into().unwrap()
    };
    // twice: attaching again changes nothing
    for round in 0..2 {
        let broadcast = frame([0xff; 6], HOST, PROBE, b"broadcast");
        // the chip has flooded it: the kernel must not send it again ...
        ports[0].queues[QUEUE_COPY].write(&broadcast).unwrap();
        assert!(
            out(&ports[1], PROBE).is_empty(),
            "copy left again, round {round}"
        );
        assert!(
            out(&ports[2], PROBE).is_empty(),
            "copy left again, round {round}"
        );
        // ... but the kernel's own side of the bridge gets it
        assert_eq!(read_all(&vm, PROBE), vec![broadcast.clone()]);
        // trapped: the kernel floods it, once to each
        ports[0].queues[QUEUE_TRAPPED].write(&broadcast).unwrap();
        assert_eq!(out(&ports[1], PROBE), vec![broadcast.clone()]);
        assert_eq!(out(&ports[2], PROBE), vec![broadcast.clone()]);
        assert!(out(&ports[0], PROBE).is_empty());
        assert_eq!(read_all(&vm, PROBE), vec![broadcast.clone()]);
        // a copy is consumed: ARP for the bridge's address is answered, once, where it came from
        let arp = arp_request(HOST, [10, 0, 0, 9], [10, 0, 0, 1]);
        ports[0].queues[QUEUE_COPY].write(&arp).unwrap();
        assert_eq!(out(&ports[0], 0x0806).len(), 1, "ARP answer");
        assert!(out(&ports[1], 0x0806).is_empty(), "ARP request left again");
        // routing: trapped goes on, a copy does not
        let packet = udp(bridge_mac, HOST, [10, 0, 0, 9], [10, 4, 0, 2]);
        ports[0].queues[QUEUE_TRAPPED].write(&packet).unwrap();
        assert_eq!(out(&ports[3], 0x0800).len(), 1, "trapped packet is routed");
        ports[0].queues[QUEUE_COPY].write(&packet).unwrap();
        assert!(out(&ports[3], 0x0800).is_empty(), "routed copy left again");
        // users' marks stay theirs
        for p in &ports {
            p.attach_mark(&mark, &mut tc).unwrap();
        }
        let filters = ns.run("tc filter show dev swp1 egress");
        assert_eq!(filters.matches("direct-action").count(), 1, "{filters}");
    }
}

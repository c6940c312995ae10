//! See the tests of each kind; here: what needs a kernel, and all kinds at once.

use std::process::Command;
use std::time::Instant;

use netlink_packet_core::{NetlinkBuffer, NetlinkMessage, Parseable, ParseableParametrized};
use netlink_packet_route::RouteNetlinkMessage;
use proptest::prelude::*;

use super::wire::{Msgs, Writer};
use super::*;

/// A network namespace that goes with its guard.
struct Ns(String);

impl Ns {
    fn new(what: &str) -> Option<Self> {
        let ns = Self(format!("nl-{what}-{}", std::process::id()));
        if !ip(&["netns", "add", &ns.0]) {
            eprintln!("skipped: no right to make network namespaces");
            return None;
        }
        assert!(ns.ip("link set lo up"));
        Some(ns)
    }

    fn ip(&self, args: &str) -> bool {
        let mut all = vec!["-n", &self.0];
        all.extend(args.split(' '));
        ip(&all)
    }

    fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        use std::os::fd::AsFd;
        let ns = crate::netns::open(&self.0).unwrap();
        crate::netns::run_in(ns.as_fd(), || Ok(f())).unwrap()
    }
}

impl Drop for Ns {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).status().unwrap().success()
}

fn some_route(i: u32) -> Route {
    let a = i.to_be_bytes();
    Route {
        table: 254,
        dst: ipnet::IpNet::V4(ipnet::Ipv4Net::new([20 + a[1], a[2], a[3], 0].into(), 24).unwrap()),
        tos: 0,
        metric: 20,
        kind: RTN_UNICAST,
        scope: 0,
        protocol: 186,
        flags: 0,
        nh_id: 0,
        nexthops: Nexthops::One(RouteNexthop {
            ifindex: 2,
            gateway: Some([10, 0, 0, 2].into()),
            weight: 1,
            flags: 0,
            encap: false,
        }),
        src: None,
        prefsrc: None,
        mtu: 0,
    }
}

/// Why routes have a decoder of their own: prints ns per message of both. Measured on 2 × 2.x GHz
/// virtual cores, release build; see the assertion for what must hold in any build.
#[test]
fn bench_decode() {
    let mut w = Writer::new();
    for i in 0..256 {
        route::add(&mut w, 0, i, &some_route(i));
    }
    let bytes = w.bytes().to_vec();
    let rounds = if cfg!(debug_assertions) { 20 } else { 400 };
    let t = Instant::now();
    let mut ours = 0u64;
    for _ in 0..rounds {
        decode(Protocol::Route, &bytes, |e| {
            ours += u64::from(matches!(e, Event::New(Object::Route(_), _)))
        });
    }
    let ours_ns = t.elapsed().as_nanos() as f64 / ours as f64;
    let t = Instant::now();
    let mut typed = 0u64;
    for _ in 0..rounds {
        for m in Msgs::new(&bytes) {
            let header = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&frame(&m)).unwrap();
            typed += u64::from(!matches!(
                header.payload,
                netlink_packet_core::NetlinkPayload::Noop
            ));
        }
    }
    let typed_ns = t.elapsed().as_nanos() as f64 / typed as f64;
    eprintln!("route message: ours {ours_ns:.0} ns, typed library {typed_ns:.0} ns");
    assert!(
        ours_ns < 3_333.0,
        "{ours_ns} ns: less than 300,000 messages a second"
    );
}

fn frame(m: &wire::Msg<'_>) -> Vec<u8> {
    let mut b = ((m.payload.len() + 16) as u32).to_ne_bytes().to_vec();
    b.extend_from_slice(&m.kind.to_ne_bytes());
    b.extend_from_slice(&m.flags.to_ne_bytes());
    b.extend_from_slice(&m.seq.to_ne_bytes());
    b.extend_from_slice(&[0; 4]);
    b.extend_from_slice(m.payload);
    b
}

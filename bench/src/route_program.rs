//! IPv4 routes from a real netlink socket until all are confirmed in hardware and read back.
//!
//! ```text
//!  sender (256 messages per buffer) ─► kernel ─► switchd ─► asicd      ours: until sync, then the chip's count is read
//!                                        └─────► listener that counts  peer: until the last notification
//! ```

use crate::Options;
use crate::prefixes;
use crate::report::{Row, Target};
use crate::rig::Rig;
use anyhow::{Context, Result, ensure};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};
use tandem_linux::netlink::{
    Event, Monitor, Nexthops, Object, Requests, Route, RouteNexthop, blast, decode,
};
use tandem_linux::netns;
use tandem_mgmt::{Client, Daemon, Instance, types};

const PROFILE: &str = "jericho2-large";
// linux/rtnetlink.h
const TABLE_MAIN: u32 = 254;
const RTN_UNICAST: u8 = 1;
const RTPROT_BGP: u8 = 186;

const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

fn routes(count: usize, ifindex: u32) -> Result<Vec<Route>> {
    prefixes::table(count, 42)
        .iter()
        .map(|p| {
            let dst = ipnet::Ipv4Net::new(Ipv4Addr::from(p.addr), p.len).context("prefix")?;
            let nexthop = RouteNexthop {
                ifindex,
                gateway: Some(IpAddr::V4(GATEWAY)),
                weight: 1,
                flags: 0,
                encap: false,
            };
            Ok(Route {
                table: TABLE_MAIN,
                dst: dst.into(),
                tos: 0,
                metric: 0,
                kind: RTN_UNICAST,
                scope: 0,
                protocol: RTPROT_BGP,
                flags: 0,
                nh_id: 0,
                nexthops: Nexthops::One(nexthop),
                src: None,
                prefsrc: None,
                mtu: 0,
            })
        })
        .collect()
}

fn ifindex(ns: &str, dev: &str) -> Result<u32> {
    let json = crate::rig::sh(&["ip", "-n", ns, "-j", "link", "show", dev])?;
    let v: serde_json::Value = serde_json::from_str(&json)?;
    v[0]["ifindex"]
        .as_u64()
        .and_then(|n| u32::try_from(n).ok())
        .context("no ifindex")
}

/// Adds all and waits for `done`; the seconds it took. Then deletes all, unmeasured.
fn timed(ns: &str, list: &[Route], done: &mut (dyn FnMut() -> Result<()> + Send)) -> Result<f64> {
    netns::run_in_named(Some(ns), || {
        let mut body = || -> Result<f64> {
            let mut socket = Requests::open()?;
            let begin = Instant::now();
            let outcome = blast::add_routes(&mut socket, list, 0)?;
            ensure!(
                outcome.refused == 0,
                "{} routes refused: {:?}",
                outcome.refused,
                outcome.first_error
            );
            done()?;
            let t = begin.elapsed().as_secs_f64();
            blast::del_routes(&mut socket, list)?;
            Ok(t)
        };
        body().map_err(std::io::Error::other)
    })
    .map_err(Into::into)
}

fn with_listener(ns: &str, list: &[Route]) -> Result<f64> {
    let want = list.len();
    let mut monitor = netns::run_in_named(Some(ns), || {
        Monitor::open(512 << 20).map_err(std::io::Error::other)
    })?;
    let (tx, rx) = std::sync::mpsc::channel();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        let mut seen = 0usize;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            let got = monitor.recv(|protocol, datagram| {
                decode(protocol, datagram, |e| {
                    seen += usize::from(matches!(e, Event::New(Object::Route(_), _)))
                });
            });
            match got {
                Ok((0, _)) => std::thread::sleep(Duration::from_micros(50)),
                Ok(_) => {}
                Err(_) => return,
            }
            if seen >= want && tx.send(()).is_err() {
                return;
            }
        }
    });
    let t = timed(ns, list, &mut move || {
        rx.recv_timeout(Duration::from_secs(60))
            .context("the listener missed notifications")
    });
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let _ = thread.join();
    t
}

fn sync(client: &Client) -> Result<()> {
    let _: serde_json::Value =
        client.post("/v1/sync", &serde_json::json!({"timeout_ms": 60_000}))?;
    Ok(())
}

fn in_hardware(asicd: &Client) -> Result<u64> {
    let r: types::Resources = asicd.get("/v1/resources")?;
    let pool = r
        .items
        .iter()
        .find(|p| p.name == "ipv4-lpm")
        .context("no pool named ipv4-lpm")?;
    Ok(pool.used.into())
}

/// The rows of this benchmark.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in [50_000usize, 500_000] {
        let mut rig = Rig::new(&["sw", "host", "bare", "barehost"])?;
        rig.veth(("sw", "fp1"), ("host", "eth0"))?;
        // The peer: the same interface and address, but no switch listens
        rig.veth(("bare", "swp1"), ("barehost", "eth0"))?;
        rig.ip("bare", &["addr", "add", "192.0.2.1/24", "dev", "swp1"])?;
        rig.up(PROFILE, &["swp1=fp1"])?;
        rig.ip("host", &["addr", "add", "192.0.2.2/24", "dev", "eth0"])?;
        rig.ip("sw", &["addr", "add", "192.0.2.1/24", "dev", "swp1"])?;
        rig.sysctl("sw", "net/ipv4/ip_forward", "1")?;
        rig.ip("sw", &["link", "set", "swp1", "up"])?;
        // The gateway is resolved before anything is timed
        crate::rig::sh(&[
            "ip",
            "netns",
            "exec",
            &rig.ns("sw"),
            "ping",
            "-c",
            "3",
            "-i",
            "0.2",
            "192.0.2.2",
        ])?;
        let ns = rig.ns("sw");
        let list = routes(count, ifindex(&ns, "swp1")?)?;
        let instance = Instance::resolve(Some(rig.instance()))?;
        let switchd = Client::to(&instance, Daemon::Switchd).with_timeout(Duration::from_secs(90));
        let asicd = Client::to(&instance, Daemon::Asicd);
        sync(&switchd)?;
        let base = in_hardware(&asicd)?;
        let bare = rig.ns("bare");
        let bare_list = routes(count, ifindex(&bare, "swp1")?)?;
        let mut pairs = Vec::new();
        for run in 0..o.pairs {
            eprint!("\r  {count} routes: pair {} of {}  ", run + 1, o.pairs);
            let ours = timed(&ns, &list, &mut || {
                sync(&switchd)?;
                let have = in_hardware(&asicd)?;
                ensure!(
                    have == base + count as u64,
                    "{have} prefixes in hardware, {} wanted",
                    base + count as u64
                );
                Ok(())
            })?;
            sync(&switchd)?;
            ensure!(
                in_hardware(&asicd)? == base,
                "deleted routes are still in hardware"
            );
            let peer = with_listener(&bare, &bare_list)?;
            pairs.push((ours, peer));
        }
        eprintln!();
        let name = format!("route-program {}k", count / 1000);
        rows.push(Row::paired(
            &format!("{name}: time until in hardware"),
            "s",
            "listener only",
            &pairs,
            Target::RatioAtMost(1.25),
        ));
        let rates: Vec<f64> = pairs.iter().map(|p| count as f64 / p.0).collect();
        rows.push(Row::alone(
            &format!("{name}: rate"),
            "routes/s",
            &rates,
            Target::ValueAtLeast(100_000.0),
        ));
        rig.down()?;
    }
    Ok(rows)
}

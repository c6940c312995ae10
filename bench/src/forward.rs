//! Frames per second from one veth to another, known unicast, one flow: asicd, DPDK's testpmd, the Linux bridge.
//!
//! ```text
//!  XDP redirect (core 1) ─► g0 ═ p1 ─► device under test (core 0) ─► p2 ═ s0 ─► XDP_DROP, counted by the interface
//! ```
//!
//! A blast: the sender offers more than anybody takes, so the figure is what arrives. Every device under test is
//! pinned to core 0 (the bridge has no thread: it runs where its interrupts do).

use crate::Options;
use crate::ovs::{self, Ovs};
use crate::report::{Row, Target};
use crate::rig::{Rig, sh};
use anyhow::{Context, Result, ensure};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tandem_linux::{netns, xdp};

const GEN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x11];
const SINK_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x22];

fn frame(len: usize) -> Vec<u8> {
    let mut f = vec![0u8; len];
    f[0..6].copy_from_slice(&SINK_MAC);
    f[6..12].copy_from_slice(&GEN_MAC);
    // Local experimental EtherType 1 (IEEE 802): nobody answers it
    f[12..14].copy_from_slice(&[0x88, 0xb5]);
    f
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

fn topology() -> Result<Rig> {
    let rig = Rig::new(&["sw", "gen", "sink"])?;
    rig.veth(("gen", "g0"), ("sw", "p1"))?;
    rig.veth(("sink", "s0"), ("sw", "p2"))?;
    for dev in ["p1", "p2"] {
        // GRO gives the veth a NAPI ring, which XDP redirects into
        sh(&[
            "ip",
            "netns",
            "exec",
            &rig.ns("sw"),
            "ethtool",
            "-K",
            dev,
            "gro",
            "on",
        ])?;
    }
    Ok(rig)
}

fn received(rig: &Rig) -> Result<u64> {
    let ns = rig.ns("sink");
    let json = sh(&["ip", "-n", &ns, "-j", "-s", "link", "show", "s0"])?;
    let v: serde_json::Value = serde_json::from_str(&json)?;
    v[0]["stats64"]["rx"]["packets"]
        .as_u64()
        .context("no counter of s0")
}

/// What came of a blast.
#[derive(Clone, Copy)]
struct Blast {
    /// Million frames per second that arrived at the sink.
    mpps: f64,
    /// Microseconds of processor time that the device under test took for each of them; 0 without a process.
    cpu_us: f64,
}

/// Seconds of processor time that a process has used so far, in user space and in the kernel on its behalf.
fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // the name, in parentheses, may have blanks; utime and stime are the 14th and 15th field, in hundredths
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|t| t.parse::<u64>().ok())
        .sum();
    Ok(ticks as f64 / 100.0)
}

/// Offers frames for `seconds` and tells what arrives at the sink; `pid`: the device under test.
fn blast(rig: &Rig, frame: &[u8], seconds: f64, pid: Option<u32>) -> Result<Blast> {
    let sink = netns::run_in_named(Some(&rig.ns("sink")), || {
        let ifindex = netns_ifindex("s0")?;
        let drop = xdp::load_drop()?;
        xdp::attach(drop.as_fd(), ifindex)
    })?;
    let stop = AtomicBool::new(false);
    let rate = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            netns::run_in_named(Some(&rig.ns("gen")), || {
                pin(1)?;
                let prog = xdp::load_redirect(netns_ifindex("g0")?)?;
                while !stop.load(Ordering::Relaxed) {
                    xdp::blast(prog.as_fd(), frame, 100_000)?;
                }
                Ok(())
            })
        });
        std::thread::sleep(Duration::from_millis(500));
        let used = || pid.map_or(Ok(0.0), cpu_seconds);
        let measure = || -> Result<Blast> {
            let (begin, first, cpu) = (Instant::now(), received(rig)?, used()?);
            std::thread::sleep(Duration::from_secs_f64(seconds));
            let (cpu, frames) = (used()? - cpu, (received(rig)? - first) as f64);
            Ok(Blast {
                mpps: frames / begin.elapsed().as_secs_f64() / 1e6,
                cpu_us: cpu * 1e6 / frames.max(1.0),
            })
        };
        let rate = measure();
        stop.store(true, Ordering::Relaxed);
        let sent = sender
            .join()
            .map_err(|_| anyhow::anyhow!("the sender died"))?;
        sent.context("XDP sender")?;
        rate
    })?;
    drop(sink);
    Ok(rate)
}

/// Index of an interface in the calling thread's namespace.
fn netns_ifindex(dev: &str) -> std::io::Result<u32> {
    Ok(tandem_linux::ifreq::ControlSocket::open()?
        .link(dev)?
        .ifindex)
}

fn pin(core: usize) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}

fn pin_process(pid: u32, core: usize) -> Result<()> {
    sh(&[
        "taskset",
        "-a",
        "-p",
        "-c",
        &core.to_string(),
        &pid.to_string(),
    ])
    .map(|_| ())
}

/// One bridge over two interfaces; the sender is behind the first, the sink behind the second.
fn bridge(rig: &Rig, devs: [&str; 2]) -> Result<()> {
    let snooping_off = [
        "link",
        "add",
        "br0",
        "type",
        "bridge",
        "mcast_snooping",
        "0",
    ];
    rig.ip("sw", &snooping_off)?;
    for dev in devs {
        rig.ip("sw", &["link", "set", dev, "master", "br0", "up"])?;
    }
    rig.ip("sw", &["link", "set", "br0", "up"])?;
    for (mac, dev) in [GEN_MAC, SINK_MAC].into_iter().zip(devs) {
        let (ns, mac) = (rig.ns("sw"), mac_text(mac));
        sh(&[
            "bridge", "-n", &ns, "fdb", "add", &mac, "dev", dev, "master", "static",
        ])?;
    }
    Ok(())
}

fn with_asicd(frame: &[u8], seconds: f64) -> Result<Blast> {
    let mut rig = topology()?;
    rig.up("spectrum-sn2700", &["swp1=p1", "swp2=p2"])?;
    bridge(&rig, ["swp1", "swp2"])?;
    rig.tandem(&["sync"])?;
    let status = rig.tandem(&["-j", "status"])?;
    let v: serde_json::Value = serde_json::from_str(&status)?;
    let pid = find_pid(&v, "asicd").context("no pid of asicd in `tandem -j status`")?;
    pin_process(pid, 0)?;
    blast(&rig, frame, seconds, Some(pid))
}

fn find_pid(v: &serde_json::Value, daemon: &str) -> Option<u32> {
    match v {
        serde_json::Value::Object(m) => {
            if m.get("daemon").and_then(|d| d.as_str()) == Some(daemon) {
                return m
                    .get("pid")
                    .and_then(|p| p.as_u64())
                    .and_then(|p| u32::try_from(p).ok());
            }
            m.values().find_map(|x| find_pid(x, daemon))
        }
        serde_json::Value::Array(a) => a.iter().find_map(|x| find_pid(x, daemon)),
        _ => None,
    }
}

fn with_bridge(frame: &[u8], seconds: f64) -> Result<Blast> {
    let rig = topology()?;
    bridge(&rig, ["p1", "p2"])?;
    blast(&rig, frame, seconds, None)
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn with_testpmd(frame: &[u8], seconds: f64) -> Result<Blast> {
    let rig = topology()?;
    let mut cmd = Command::new("ip");
    cmd.args(["netns", "exec", &rig.ns("sw"), "dpdk-testpmd"]);
    cmd.args([
        "--no-pci",
        "--no-huge",
        "-m",
        "256",
        "--lcores",
        "(0,1)@0",
        "--no-telemetry",
    ]);
    cmd.arg(format!("--file-prefix=tandem-bench-{}", std::process::id()));
    for (i, dev) in ["p1", "p2"].iter().enumerate() {
        cmd.arg(format!("--vdev=net_af_packet{i},iface={dev},qdisc_bypass=1,blocksz=65536,framesz=2048,framecnt=512"));
    }
    cmd.args([
        "--",
        "--forward-mode=io",
        "--auto-start",
        "--total-num-mbufs=8192",
        "--stats-period=60",
    ]);
    let child = cmd
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = Killed(child.context("cannot start dpdk-testpmd (package dpdk-dev)")?);
    std::thread::sleep(Duration::from_secs(2));
    ensure!(child.0.try_wait()?.is_none(), "testpmd stopped by itself");
    // `ip netns exec` becomes the program
    blast(&rig, frame, seconds, Some(child.0.id()))
}

fn with_ovs(frame: &[u8], seconds: f64) -> Result<Blast> {
    let rig = topology()?;
    let ovs = Ovs::new(&rig, &[("p1", &[]), ("p2", &[])])?;
    for (mac, port) in [(GEN_MAC, "p1"), (SINK_MAC, "p2")] {
        ovs.learn(port, 0, &mac_text(mac))?;
    }
    let pid = ovs.pid().context("no process of OVS")?;
    pin_process(pid, 0)?;
    blast(&rig, frame, seconds, Some(pid))
}

/// The rows of this benchmark.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for len in [60usize, 1514] {
        let frame = frame(len);
        let (mut pmd, mut bridge, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
        let mut ovs = Vec::new();
        for run in 0..o.pairs {
            eprint!(
                "\r  forward {} B: pair {} of {}  ",
                len + 4,
                run + 1,
                o.pairs
            );
            let ours = with_asicd(&frame, o.seconds)?;
            let theirs = with_testpmd(&frame, o.seconds)?;
            pmd.push((ours.mpps, theirs.mpps));
            cpu.push((ours.cpu_us, theirs.cpu_us));
            if ovs::is_there() {
                ovs.push((ours.mpps, with_ovs(&frame, o.seconds)?.mpps));
            }
            bridge.push((ours.mpps, with_bridge(&frame, o.seconds)?.mpps));
        }
        eprintln!();
        if !ovs::is_there() {
            eprintln!("OVS is not installed (openvswitch-switch): its rows are left out");
        }
        let name = format!(
            "forward {} B, known unicast, blast",
            if len == 60 { 64 } else { 1500 }
        );
        rows.push(Row::paired(
            &name,
            "Mpps",
            "DPDK testpmd io, AF_PACKET",
            &pmd,
            Target::RatioAtLeast(1.0),
        ));
        rows.push(Row::paired(
            &format!("{name}: processor time per packet"),
            "us",
            "DPDK testpmd io, AF_PACKET",
            &cpu,
            Target::None,
        ));
        if !ovs.is_empty() {
            rows.push(Row::paired(
                &name,
                "Mpps",
                "OVS, userspace datapath, system ports",
                &ovs,
                Target::RatioAtLeast(1.3),
            ));
        }
        rows.push(Row::paired(
            &name,
            "Mpps",
            "Linux bridge (in the kernel)",
            &bridge,
            Target::None,
        ));
    }
    Ok(rows)
}

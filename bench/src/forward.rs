//! Frames per second from one veth to another, known unicast, one flow: asicd, DPDK's testpmd, OVS, the Linux bridge.

use crate::Options;
use crate::blast::{self, Blast, GEN_MAC, Keep, SINK_MAC, Under, mac_text, pin_process};
use crate::flood;
use crate::lossless::{self, Found};
use crate::ovs::{self, Ovs};
use crate::report::{Row, Target};
use crate::rig::{Rig, sh};
use anyhow::{Context, Result, ensure};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn topology() -> Result<Rig> {
    blast::topology(1)
}

/// A device under test with one sink; `keep` ends with it.
fn under(rig: Rig, pid: Option<u32>, keep: Option<Keep>) -> Under {
    Under {
        _keep: keep,
        rig,
        sinks: 1,
        pid,
    }
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

/// A part of this benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Short frames, one to one
    Short,
    /// Long frames, one to one
    Long,
    /// One to four
    Flood,
    /// With a chip below
    Chip,
}

/// How a switch in user space gets at its netdevs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Packet,
    Xdp,
}

impl By {
    pub const BOTH: [By; 2] = [By::Packet, By::Xdp];

    /// Behind a row's name.
    pub fn suffix(self) -> &'static str {
        match self {
            By::Packet => "",
            By::Xdp => ", AF_XDP ports",
        }
    }

    /// Port `n` of ours, as asicd's `--port` has it.
    pub fn port(self, n: usize) -> String {
        match self {
            By::Packet => format!("swp{n}=p{n}"),
            By::Xdp => format!("swp{n}=af_xdp:p{n}"),
        }
    }

    /// All `count` ports are by it, and not by a way that a netdev had to fall back to.
    pub fn ensure(self, rig: &Rig, count: usize) -> Result<()> {
        if self == By::Packet {
            return Ok(());
        }
        let ports = rig.tandem(&["-j", "show", "ports"])?;
        ensure!(
            ports.matches("\"af_xdp:p").count() == count,
            "the ports are not by AF_XDP here: {}",
            rig.tandem(&["status"])?
        );
        Ok(())
    }

    fn testpmd(self) -> &'static str {
        match self {
            By::Packet => "DPDK testpmd io, AF_PACKET",
            By::Xdp => "DPDK testpmd io, AF_XDP",
        }
    }
}

fn with_asicd(by: By) -> Result<Under> {
    let mut rig = topology()?;
    rig.up("spectrum-sn2700", &[&by.port(1), &by.port(2)])?;
    by.ensure(&rig, 2)?;
    bridge(&rig, ["swp1", "swp2"])?;
    rig.tandem(&["sync"])?;
    let status = rig.tandem(&["-j", "status"])?;
    let v: serde_json::Value = serde_json::from_str(&status)?;
    let pid = find_pid(&v, "asicd").context("no pid of asicd in `tandem -j status`")?;
    pin_process(pid, 0)?;
    Ok(under(rig, Some(pid), None))
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

fn with_bridge() -> Result<Under> {
    let rig = topology()?;
    bridge(&rig, ["p1", "p2"])?;
    Ok(under(rig, None, None))
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn with_testpmd(by: By) -> Result<Under> {
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
        cmd.arg(match by {
            By::Packet => format!(
                "--vdev=net_af_packet{i},iface={dev},qdisc_bypass=1,blocksz=65536,framesz=2048,framecnt=512"
            ),
            By::Xdp => format!("--vdev=net_af_xdp{i},iface={dev}"),
        });
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
    let pid = child.0.id();
    Ok(under(rig, Some(pid), Some(Box::new(child))))
}

/// How OVS's userspace datapath gets at its netdevs: by packet sockets, or by AF_XDP as Debian's package can.
fn ovs_ports(by: By) -> (&'static str, [Vec<&'static str>; 2]) {
    match by {
        By::Packet => ("OVS, userspace datapath, system ports", [vec![], vec![]]),
        By::Xdp => {
            let port = |p| vec!["--", "set", "interface", p, "type=afxdp"];
            (
                "OVS, userspace datapath, AF_XDP ports",
                [port("p1"), port("p2")],
            )
        }
    }
}

fn with_ovs(by: By) -> Result<Under> {
    let rig = topology()?;
    let (_, [p1, p2]) = ovs_ports(by);
    let ovs = Ovs::new(&rig, &[("p1", &p1), ("p2", &p2)])?;
    for (mac, port) in [(GEN_MAC, "p1"), (SINK_MAC, "p2")] {
        ovs.learn(port, 0, &mac_text(mac))?;
    }
    let pid = ovs.pid().context("no process of OVS")?;
    pin_process(pid, 0)?;
    Ok(under(rig, Some(pid), Some(Box::new(ovs))))
}

/// What one device under test did, run by run.
#[derive(Default)]
struct Runs {
    blasts: Vec<Blast>,
    lossless: Vec<Found>,
}

impl Runs {
    fn add(&mut self, under: &Under, frame: &[u8], o: &Options, lossless: bool) -> Result<()> {
        let b = under.blast(frame, o.seconds)?;
        // What has no process forwards on the sender's core: the sender would only find its own limit
        if lossless && under.pid.is_some() {
            self.lossless.push(lossless::find(under, frame, b.mpps)?);
        }
        self.blasts.push(b);
        Ok(())
    }

    /// In most of its runs the sender was the limit, and not this.
    fn sender_was_the_limit(&self) -> bool {
        let limited = self.lossless.iter().filter(|f| f.sender).count();
        2 * limited > self.lossless.len()
    }

    /// Rates without loss, ours beside theirs.
    fn lossless_beside(&self, theirs: &Runs) -> Vec<(f64, f64)> {
        let pairs = self.lossless.iter().zip(&theirs.lossless);
        pairs.map(|(a, b)| (a.mpps, b.mpps)).collect()
    }

    /// Ours beside theirs.
    fn beside(&self, theirs: &Runs, what: impl Fn(&Blast) -> f64) -> Vec<(f64, f64)> {
        let pairs = self.blasts.iter().zip(&theirs.blasts);
        pairs.map(|(a, b)| (what(a), what(b))).collect()
    }
}

/// Where the sender didn't keep the rate that was asked for, that is said, and nothing is judged.
fn lossless_row(name: &str, ours: &Runs, peer: &str, theirs: &Runs, target: Target) -> Row {
    let limits = [(ours, "ours"), (theirs, "theirs")];
    let limited = limits.iter().filter(|(r, _)| r.sender_was_the_limit());
    let limited: Vec<&str> = limited.map(|(_, who)| *who).collect();
    let most = lossless::TOLERANCE * 100.0;
    let mut claim = format!("{name}, highest rate that loses at most {most} %");
    let rates = ours.lossless_beside(theirs);
    if limited.is_empty() {
        return Row::paired(&claim, "Mpps", peer, &rates, target);
    }
    claim += &format!(
        " (the sender kept no higher one: {})",
        limited.join(" and ")
    );
    Row::paired(&claim, "Mpps", peer, &rates, Target::None)
}

/// One of ours against one of theirs. Each has a run of ours of its own: a run that served several would carry its luck
/// into all of them.
struct Duel {
    by: By,
    peer: &'static str,
    start: fn(By) -> Result<Under>,
    target: Target,
    /// Are rates without loss compared?
    lossless: bool,
    ours: Runs,
    theirs: Runs,
}

impl Duel {
    fn new(by: By, peer: &'static str, start: fn(By) -> Result<Under>, target: Target) -> Duel {
        Duel {
            by,
            peer,
            start,
            target,
            lossless: true,
            ours: Runs::default(),
            theirs: Runs::default(),
        }
    }

    /// One run of each; who goes first changes from pair to pair, as a machine warms up or is shared.
    fn pair(&mut self, number: u32, frame: &[u8], o: &Options) -> Result<()> {
        let lossless = o.lossless && self.lossless;
        for turn in 0..2 {
            if (turn + number).is_multiple_of(2) {
                self.ours.add(&with_asicd(self.by)?, frame, o, lossless)?;
            } else {
                self.theirs
                    .add(&(self.start)(self.by)?, frame, o, lossless)?;
            }
        }
        Ok(())
    }

    fn rows(&self, bytes: u32) -> Vec<Row> {
        let (ours, theirs, peer) = (&self.ours, &self.theirs, self.peer);
        let name = format!("forward {bytes} B, known unicast{}", self.by.suffix());
        let mpps = ours.beside(theirs, |b| b.mpps);
        let blast = format!("{name}, blast");
        let mut rows = vec![Row::paired(&blast, "Mpps", peer, &mpps, self.target)];
        if !theirs.lossless.is_empty() {
            rows.push(lossless_row(&name, ours, peer, theirs, self.target));
        }
        if theirs.blasts.iter().all(|b| b.cpu_us > 0.0) {
            let cpu = ours.beside(theirs, |b| b.cpu_us);
            let claim = format!("{name}, blast: processor time per packet");
            rows.push(Row::paired(&claim, "us", peer, &cpu, Target::None));
        }
        rows
    }
}

/// Who is met in this benchmark.
fn duels() -> Vec<Duel> {
    let mut duels: Vec<Duel> = By::BOTH
        .into_iter()
        .map(|by| Duel::new(by, by.testpmd(), with_testpmd, Target::RatioAtLeast(1.0)))
        .collect();
    if ovs::is_there() {
        // not every package of OVS has AF_XDP, nor every kernel what it asks for
        let by_xdp =
            with_ovs(By::Xdp).inspect_err(|e| eprintln!("OVS has no AF_XDP ports here: {e}"));
        let by_xdp = by_xdp.is_ok();
        for (ours, theirs, target) in [
            (By::Packet, By::Packet, Target::RatioAtLeast(1.3)),
            (By::Xdp, By::Packet, Target::None),
            (By::Xdp, By::Xdp, Target::None),
        ] {
            if theirs == By::Xdp && !by_xdp {
                continue;
            }
            let with: fn(By) -> Result<Under> = match theirs {
                By::Packet => |_| with_ovs(By::Packet),
                By::Xdp => |_| with_ovs(By::Xdp),
            };
            let mut duel = Duel::new(ours, ovs_ports(theirs).0, with, target);
            // On system ports it loses some at any rate: what it forwards in a blast is the figure that says something
            duel.lossless = theirs == By::Xdp;
            duels.push(duel);
        }
    } else {
        eprintln!("OVS is not installed (openvswitch-switch): its rows are left out");
    }
    let bridge = "Linux bridge (in the kernel)";
    duels.push(Duel::new(
        By::Packet,
        bridge,
        |_| with_bridge(),
        Target::None,
    ));
    duels
}

/// The rows of this benchmark.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let wanted = |part| o.only.is_none_or(|only| only == part);
    let parts = [(Part::Short, 60usize, 64), (Part::Long, 1514, 1500)];
    for (_, len, bytes) in parts.into_iter().filter(|(part, ..)| wanted(*part)) {
        let frame = blast::frame(len);
        let mut duels = duels();
        for run in 0..o.pairs {
            eprint!("\r  forward {bytes} B: pair {} of {}  ", run + 1, o.pairs);
            for duel in &mut duels {
                duel.pair(run as u32, &frame, o)?;
            }
        }
        eprintln!();
        rows.extend(duels.iter().flat_map(|d| d.rows(bytes)));
    }
    if wanted(Part::Flood) {
        rows.extend(flood::rows(o)?);
    }
    Ok(rows)
}

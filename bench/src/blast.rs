//! Frames from an XDP sender through a device under test into sinks that drop and count them.
//!
//! ```text
//!  XDP redirect (core 1) ─► g0 ═ p1 ─► device under test (core 0) ─► p2 … ═ s0 … ─► XDP_DROP, counted by the interface
//! ```
//!
//! A blast offers more than anybody takes, so the figure is what arrives. A trial offers so many frames at a steady rate, in
//! bursts of 32, and tells how many arrived ([`crate::lossless`] searches with it). Every device under test is pinned to core 0 (a
//! bridge has no thread: it runs where its interrupts do).

use crate::rig::{Rig, sh};
use anyhow::{Context, Result};
use std::any::Any;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tandem_linux::xdp_pace::Pacer;
use tandem_linux::{netns, xdp, xdp_flood};

/// The station that sends.
pub const GEN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x11];
/// The station that receives.
pub const SINK_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x22];
/// A frame of so many bytes, without checksum, that nobody answers.
pub fn frame(len: usize) -> Vec<u8> {
    let mut f = vec![0u8; len];
    f[0..6].copy_from_slice(&SINK_MAC);
    f[6..12].copy_from_slice(&GEN_MAC);
    // Local experimental EtherType 1 (IEEE 802): nobody answers it
    f[12..14].copy_from_slice(&[0x88, 0xb5]);
    f
}

/// A MAC address as commands have it.
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

/// Namespaces with a sender `g0` at `p1`, and sinks `s0`, `s1` … at `p2`, `p3` …
pub fn topology(sinks: usize) -> Result<Rig> {
    let rig = Rig::new(&["sw", "gen", "sink"])?;
    rig.veth(("gen", "g0"), ("sw", "p1"))?;
    for n in 0..sinks {
        rig.veth(("sink", &format!("s{n}")), ("sw", &format!("p{}", n + 2)))?;
    }
    let ns = rig.ns("sw");
    for n in 0..=sinks {
        // GRO gives the veth a NAPI ring, which XDP redirects into
        let dev = format!("p{}", n + 1);
        sh(&[
            "ip", "netns", "exec", &ns, "ethtool", "-K", &dev, "gro", "on",
        ])?;
    }
    Ok(rig)
}

/// What came of a blast.
#[derive(Clone)]
pub struct Blast {
    /// Million frames per second that arrived at the sinks, all together.
    pub mpps: f64,
    /// Microseconds of processor time that the device under test took for each of them; 0 without a process.
    pub cpu_us: f64,
    /// Frames and bytes that each sink got meanwhile.
    pub sinks: Vec<(u64, u64)>,
}

/// Frames of one call of a blast's sender. Between two calls it waits for some 20 ms, which must be little beside the call.
const CALL: u32 = 2_000_000;

/// What came of frames that were offered at a steady rate.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Million frames per second that were sent, from the first to the last.
    pub mpps: f64,
    /// Of all frames, the part that didn't arrive.
    pub lost: f64,
}

/// What ends when it is dropped.
pub type Keep = Box<dyn Any + Send + Sync>;

/// A device under test between sender and sinks.
pub struct Under {
    /// What ends it; gone before the namespaces are.
    pub _keep: Option<Keep>,
    /// Where it is.
    pub rig: Rig,
    /// Number of sinks.
    pub sinks: usize,
    /// Its process, if it is one.
    pub pid: Option<u32>,
}

impl Under {
    /// Frames and bytes that each sink has received since it was made.
    pub fn counted(&self) -> Result<Vec<(u64, u64)>> {
        let json = sh(&["ip", "-n", &self.rig.ns("sink"), "-j", "-s", "link", "show"])?;
        let links: serde_json::Value = serde_json::from_str(&json)?;
        let links = links.as_array().context("no interfaces at the sink")?;
        let count = |name: String| {
            let link = links.iter().find(|l| l["ifname"] == name.as_str())?;
            let rx = &link["stats64"]["rx"];
            Some((rx["packets"].as_u64()?, rx["bytes"].as_u64()?))
        };
        (0..self.sinks)
            .map(|n| count(format!("s{n}")).with_context(|| format!("no counter of s{n}")))
            .collect()
    }

    /// The sinks drop what comes, as long as these are open.
    fn open_sinks(&self) -> Result<Vec<OwnedFd>> {
        let links = netns::run_in_named(Some(&self.rig.ns("sink")), || {
            (0..self.sinks)
                .map(|n| {
                    xdp::attach(
                        xdp_flood::load_drop()?.as_fd(),
                        netns_ifindex(&format!("s{n}"))?,
                    )
                })
                .collect::<std::io::Result<Vec<OwnedFd>>>()
        })?;
        Ok(links)
    }

    /// Offers as many frames as can be sent for `seconds` and tells what arrives.
    pub fn blast(&self, frame: &[u8], seconds: f64) -> Result<Blast> {
        self.blast_from(1, frame, Duration::from_millis(500), seconds)
    }

    /// As [`Under::blast`], measured after `warm`, with so many stations that send: which one does is random.
    pub fn blast_from(
        &self,
        stations: u32,
        frame: &[u8],
        warm: Duration,
        seconds: f64,
    ) -> Result<Blast> {
        let _sinks = self.open_sinks()?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                self.send(stations, |prog| {
                    while !stop.load(Ordering::Relaxed) {
                        xdp_flood::blast(prog.as_fd(), frame, CALL)?;
                    }
                    Ok(())
                })
            });
            std::thread::sleep(warm);
            let used = || self.pid.map_or(Ok(0.0), cpu_seconds);
            let measure = || -> Result<Blast> {
                let (begin, first, cpu) = (Instant::now(), self.counted()?, used()?);
                std::thread::sleep(Duration::from_secs_f64(seconds));
                let (cpu, last, took) = (used()? - cpu, self.counted()?, begin.elapsed());
                let sinks: Vec<(u64, u64)> = (first.iter().zip(last))
                    .map(|(a, b)| (b.0 - a.0, b.1 - a.1))
                    .collect();
                let frames = sinks.iter().map(|s| s.0).sum::<u64>() as f64;
                Ok(Blast {
                    mpps: frames / took.as_secs_f64() / 1e6,
                    cpu_us: cpu * 1e6 / frames.max(1.0),
                    sinks,
                })
            };
            let rate = measure();
            stop.store(true, Ordering::Relaxed);
            let sent = sender
                .join()
                .map_err(|_| anyhow::anyhow!("the sender died"))?;
            sent.context("XDP sender")?;
            rate
        })
    }

    /// Trials with frames of one kind, as many as `f` wants: it gets what makes one of them, at so many million frames a
    /// second for so many seconds.
    pub fn trials<T>(
        &self,
        frame: &[u8],
        f: impl FnOnce(&dyn Fn(f64, f64) -> Result<Trial>) -> Result<T>,
    ) -> Result<T> {
        let _sinks = self.open_sinks()?;
        f(&|mpps, seconds| {
            let arrived = || -> Result<u64> { Ok(self.counted()?.iter().map(|s| s.0).sum()) };
            let before = arrived()?;
            let count = (mpps * 1e6 * seconds) as u32;
            let interval_ns = (1e3 / mpps) as u64;
            let rate = netns::run_in_named(Some(&self.rig.ns("gen")), || {
                pin(1)?;
                Pacer::new(netns_ifindex("g0")?, interval_ns)?.send(frame, count)
            })
            .context("paced sender")?;
            // What is under way
            std::thread::sleep(Duration::from_millis(50));
            let arrived = arrived()? - before;
            let lost = u64::from(count).saturating_sub(arrived);
            Ok(Trial {
                mpps: rate / 1e6,
                lost: lost as f64 / f64::from(count.max(1)),
            })
        })
    }

    /// Runs `f` where the sender is, with the program that sends for so many stations.
    fn send<T>(
        &self,
        stations: u32,
        f: impl FnOnce(OwnedFd) -> std::io::Result<T> + Send,
    ) -> std::io::Result<T>
    where
        T: Send,
    {
        let ns = self.rig.ns("gen");
        netns::run_in_named(Some(&ns), || {
            pin(1)?;
            let ifindex = netns_ifindex("g0")?;
            f(if stations == 1 {
                xdp_flood::load_redirect(ifindex)?
            } else {
                xdp_flood::load_redirect_from(ifindex, stations)?
            })
        })
    }
}

/// Seconds of processor time that a process has used so far, in user space and in the kernel on its behalf.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let mut ns = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // a thread that has just ended has no file any more
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        let first = text.split_whitespace().next();
        ns += first.and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(ns as f64 / 1e9)
}

/// Index of an interface in the calling thread's namespace.
pub fn netns_ifindex(dev: &str) -> std::io::Result<u32> {
    Ok(tandem_linux::ifreq::ControlSocket::open()?
        .link(dev)?
        .ifindex)
}

/// The calling thread onto one core.
pub fn pin(core: usize) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}

/// All threads of a process onto one core.
pub fn pin_process(pid: u32, core: usize) -> Result<()> {
    let (core, pid) = (core.to_string(), pid.to_string());
    sh(&["taskset", "-a", "-p", "-c", &core, &pid]).map(|_| ())
}

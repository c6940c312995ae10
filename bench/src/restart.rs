//! Both daemons, killed and started again with 100,000 routes in the chip, while a stream is routed through it.
//!
//! ```text
//!  host ── 2,000 datagrams/s, numbered ──► swp1 ── chip ── swp2 ──► far: counted
//! ```

use crate::Options;
use crate::report::{Row, Target};
use crate::rig::sibling;
use crate::routed::{FAR, PROFILE, Routed};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tandem_linux::netns;
use tandem_mgmt::Client;

const ROUTES: usize = 100_000;
const PAUSE: Duration = Duration::from_micros(500);
/// No start takes longer; an error if one does.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends while `work` runs; what it says, and how many datagrams were lost.
fn under_traffic<T>(bed: &Routed, work: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    let socket = |word: &str| {
        netns::run_in_named(Some(&bed.rig.ns(word)), || UdpSocket::bind("0.0.0.0:9000"))
    };
    let (from, to) = (socket("host")?, socket("far")?);
    to.set_read_timeout(Some(Duration::from_millis(100)))?;
    let (stop, quiet) = (AtomicBool::new(false), AtomicBool::new(false));
    let arrived = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut buf = [0u8; 64];
            while !quiet.load(Ordering::Relaxed) {
                if to.recv(&mut buf).is_ok() {
                    arrived.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let sender = scope.spawn(|| -> Result<u64> {
            let mut sent = 0u64;
            while !stop.load(Ordering::Relaxed) {
                from.send_to(&sent.to_be_bytes(), (FAR, 9000))?;
                sent += 1;
                std::thread::sleep(PAUSE);
            }
            Ok(sent)
        });
        std::thread::sleep(Duration::from_millis(300));
        let answer = work();
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        let sent = sender.join();
        std::thread::sleep(Duration::from_millis(300));
        quiet.store(true, Ordering::Relaxed);
        let _ = receiver.join();
        let sent = sent.map_err(|_| anyhow::anyhow!("the sender died"))??;
        let got = arrived.load(Ordering::Relaxed);
        ensure!(got > 0, "nothing of the stream arrived");
        Ok((answer?, sent.saturating_sub(got)))
    })
}

fn pid_of(daemon: &Client) -> Result<Pid> {
    let status: serde_json::Value = daemon.get("/v1/status")?;
    let pid = status["pid"].as_i64().context("no pid")?;
    Pid::from_raw(i32::try_from(pid)?).context("no pid")
}

fn spawn(bed: &Routed, daemon: &str, args: &[&str]) -> Result<Child> {
    Command::new("ip")
        .args(["netns", "exec", &bed.rig.ns("sw")])
        .arg(sibling(daemon)?)
        .args(["--name", bed.rig.instance(), "--log", "error"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {daemon}"))
}

/// A killed process holds its lock until its last thread is gone; its first one may be a zombie long before.
fn alive(pid: Pid) -> bool {
    let proc = format!("/proc/{}", pid.as_raw_nonzero());
    let threads = std::fs::read_dir(format!("{proc}/task")).map_or(0, Iterator::count);
    let zombie = std::fs::read_to_string(format!("{proc}/stat")).is_ok_and(|s| s.contains(") Z"));
    threads > 1 || (threads == 1 && !zombie)
}

/// Kills `pid`, starts what `start` starts, waits until `ready`: seconds from the start.
fn again(
    pid: Pid,
    start: impl FnOnce() -> Result<Child>,
    ready: impl Fn() -> bool,
) -> Result<(f64, Child)> {
    kill_process(pid, Signal::KILL)?;
    let gone = Instant::now();
    while alive(pid) {
        ensure!(gone.elapsed() < PATIENCE, "a killed daemon does not go");
        std::thread::sleep(Duration::from_millis(1));
    }
    let begin = Instant::now();
    let child = start()?;
    while !ready() {
        ensure!(
            begin.elapsed() < PATIENCE,
            "not ready after {} s",
            PATIENCE.as_secs()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok((begin.elapsed().as_secs_f64(), child))
}

/// The rows of this benchmark.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut bed = Routed::new(&[])?;
    let list = bed.routes("sw", "swp1", ROUTES)?;
    bed.add(&list)?;
    bed.confirm(ROUTES)?;
    let mut children = Vec::new();
    let (mut warm, mut lost, mut cold, mut whole) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for run in 0..o.pairs {
        eprint!("\r  restart: {} of {}  ", run + 1, o.pairs);
        let pid = pid_of(&bed.switchd)?;
        let ((seconds, child), missing) = under_traffic(&bed, || {
            again(pid, || spawn(&bed, "switchd", &[]), || bed.sync().is_ok())
        })?;
        children.push(child);
        warm.push(seconds);
        lost.push(missing as f64);
        bed.confirm(ROUTES)?;
        let status = bed.status()?;
        let writes = status["writes"].as_u64().context("no writes")?;
        ensure!(
            writes == 0,
            "a warm start wrote {writes} entries that were right"
        );
    }
    for run in 0..o.pairs {
        eprint!("\r  restart of asicd: {} of {}  ", run + 1, o.pairs);
        let pid = pid_of(&bed.asicd)?;
        let begin = Instant::now();
        let args = [
            "--profile",
            PROFILE,
            "--port",
            "swp1=fp1",
            "--port",
            "swp2=fp2",
        ];
        let (seconds, child) = again(
            pid,
            || spawn(&bed, "asicd", &args),
            || pid_of(&bed.asicd).is_ok_and(|p| p != pid),
        )?;
        children.push(child);
        cold.push(seconds);
        while bed.confirm(ROUTES).is_err() {
            ensure!(begin.elapsed() < PATIENCE, "100k routes don't come back");
            std::thread::sleep(Duration::from_millis(10));
        }
        whole.push(begin.elapsed().as_secs_f64());
    }
    eprintln!();
    bed.rig.down()?;
    for mut child in children {
        child.wait()?;
    }
    Ok(vec![
        Row::alone(
            "restart, switchd killed, 100k routes: start to barrier",
            "s",
            &warm,
            Target::ValueAtMost(2.0),
        ),
        Row::alone(
            "restart, switchd killed: datagrams lost of a stream of 2,000/s",
            "datagrams",
            &lost,
            Target::ValueAtMost(0.0),
        ),
        Row::alone(
            "restart, asicd killed: start to first answer",
            "s",
            &cold,
            Target::ValueAtMost(1.0),
        ),
        Row::alone(
            "restart, asicd killed: kill to 100k routes in hardware again",
            "s",
            &whole,
            Target::None,
        ),
    ])
}

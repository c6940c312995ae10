//! Flows that a controller sets up when it is asked: a learning switch written for os-ken, and one within the benchmark.
//!
//! ```text
//!   64 frames are under way, each from a station of its own: ─► packet-in ─► flow_mod, packet-out ─► it arrives, the next is sent
//! ```
//! Afterwards the switch is asked how many flows it has, and the last frames are sent once more, which no controller sees.

use crate::Options;
use crate::blast::{SINK_MAC, cpu_seconds, pin};
use crate::ofclient::{Answering, CONTROLLER, field, flow, packet_out, put};
use crate::ofswitch::{CONTROLLER_PORT, Calls, PEER, Who, pairs};
use crate::ofwires::{Bed, number, quantile_us};
use crate::report::{Row, Target};
use anyhow::{Context, Result, ensure};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Frames that are under way.
const WINDOW: usize = 64;
/// Nanoseconds after which a frame is lost.
const LOST: u64 = 1_000_000_000;
/// It looks whether something is lost at least so often.
const PAUSE: u64 = 10_000_000;
/// Frames that are sent once more, after this time: until Open vSwitch has looked through what it keeps of its tables, what it
/// asked of a station's first frame it asks again.
const AGAIN: u32 = 100;
const LOOKED_THROUGH: Duration = Duration::from_secs(1);

/// Who is asked.
#[derive(Clone, Copy, PartialEq)]
enum Brain {
    OsKen,
    Own,
}

/// What came of one run.
struct Figures {
    /// Flows set up in a second.
    rate: f64,
    /// Microseconds for one of them: half, 99 of a hundred.
    took: [f64; 2],
    /// Microseconds of processor time that the switch took for one.
    cpu_us: f64,
}

/// os-ken with its learning switch.
struct OsKen(Child);

impl Drop for OsKen {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl OsKen {
    fn new(ns: &str) -> Result<OsKen> {
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
        let app =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/openflow/apps/learning13.py");
        let child = Command::new("ip")
            .args(["netns", "exec", ns, &python, "-m", "os_ken.cmd.manager"])
            .args(["--ofp-listen-host", "127.0.0.1"])
            .args(["--ofp-tcp-listen-port", &CONTROLLER_PORT.to_string()])
            .arg(app)
            .env("OSKEN_HUB_TYPE", "eventlet")
            .env("LEARNING_IDLE", "3600")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start os-ken")?;
        Ok(OsKen(child))
    }

    /// It has told the switch what to ask.
    fn wait(&mut self, bed: &Bed) -> Result<()> {
        let begin = Instant::now();
        while bed.client()?.count()? == 0 {
            ensure!(
                self.0.try_wait()?.is_none(),
                "os-ken ended by itself: is it installed for $PYTHON (./run sees to that)?"
            );
            ensure!(
                begin.elapsed() < Duration::from_secs(30),
                "os-ken has said nothing in 30 s"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

/// What is under way.
#[derive(Default)]
struct Window {
    waiting: VecDeque<(u32, u64)>,
    took: Vec<u64>,
    lost: u32,
}

impl Window {
    fn arrived(&mut self, n: u32, now: u64) {
        if let Some(at) = self.waiting.iter().position(|w| w.0 == n)
            && let Some((_, sent)) = self.waiting.remove(at)
        {
            self.took.push(now - sent);
        }
    }

    fn forget(&mut self, now: u64) {
        while self.waiting.front().is_some_and(|w| w.1 + LOST < now) {
            self.waiting.pop_front();
            self.lost += 1;
        }
    }
}

/// What the benchmark's own controller says to a frame.
fn answer(frame: &[u8], out: &mut Vec<u8>) {
    let mut fields = Vec::new();
    put(&mut fields, field::IN_PORT, &1_u32.to_be_bytes());
    put(&mut fields, field::ETH_DST, &SINK_MAC);
    put(
        &mut fields,
        field::ETH_SRC,
        frame.get(6..12).unwrap_or_default(),
    );
    out.extend_from_slice(&flow(1, &fields, 2));
    out.extend_from_slice(&packet_out(2, frame));
}

/// One turn: answers, arrivals.
fn turn(bed: &mut Bed, own: &mut Option<Answering>, asked: &mut u32) -> Result<Vec<u32>> {
    let limit = bed.now() + PAUSE;
    bed.wait(own.as_ref().map(|c| c.as_fd()), limit)?;
    if let Some(conn) = own {
        conn.turn(|frame, out| {
            if number(frame).is_some() {
                *asked += 1;
                answer(frame, out);
            }
        })?;
    }
    let mut there = Vec::new();
    bed.arrived(|n| there.push(n))?;
    Ok(there)
}

fn measure(who: Who, brain: Brain, seconds: f64) -> Result<Figures> {
    let (mut bed, mut osken) = match brain {
        Brain::Own => (Bed::new(who, Calls::Nobody)?, None),
        Brain::OsKen => {
            let bed = Bed::new(who, Calls::Controller)?;
            let mut osken = OsKen::new(&bed.namespace())?;
            osken.wait(&bed)?;
            (bed, Some(osken))
        }
    };
    let mut own = None;
    if brain == Brain::Own {
        let mut client = bed.client()?;
        client.done(&flow(0, &[], CONTROLLER))?;
        own = Some(Answering::new(client)?);
    }
    bed.introduce()?;
    std::thread::sleep(Duration::from_millis(300));
    let (mut window, mut next, mut asked) = (Window::default(), 0, 0);
    let begin = bed.now();
    let end = begin + (seconds * 1e9) as u64;
    let cpu = cpu_seconds(bed.switch.pid)?;
    while bed.now() < end {
        while window.waiting.len() < WINDOW {
            window.waiting.push_back((next, bed.now()));
            bed.send(next)?;
            next += 1;
        }
        let there = turn(&mut bed, &mut own, &mut asked)?;
        let now = bed.now();
        for n in there {
            window.arrived(n, now);
        }
        window.forget(now);
    }
    let took = (bed.now() - begin) as f64 / 1e9;
    let cpu = cpu_seconds(bed.switch.pid)? - cpu;
    let set_up = window.took.len() as u32;
    // what is still under way comes, or does not
    let rest = bed.now() + LOST;
    while !window.waiting.is_empty() && bed.now() < rest {
        for n in turn(&mut bed, &mut own, &mut asked)? {
            window.arrived(n, rest);
        }
    }
    ensure!(
        window.lost == 0 && window.waiting.is_empty(),
        "{} of {next} frames were lost",
        window.lost as usize + window.waiting.len()
    );
    let stand = bed.client()?.count()?;
    ensure!(
        stand == next + 1,
        "{stand} flows stand, {} were set up",
        next + 1
    );
    std::thread::sleep(LOOKED_THROUGH);
    let before = asked;
    again(&mut bed, &mut own, next, &mut asked)?;
    ensure!(asked == before, "what has a flow came to the controller");
    drop(osken.take());
    let took_ns = window.took.get_mut(..set_up as usize).unwrap_or_default();
    Ok(Figures {
        rate: f64::from(set_up) / took,
        took: [0.5, 0.99].map(|part| quantile_us(took_ns, part)),
        cpu_us: cpu * 1e6 / f64::from(set_up),
    })
}

/// The last frames once more, which flows are for now.
fn again(bed: &mut Bed, own: &mut Option<Answering>, next: u32, asked: &mut u32) -> Result<()> {
    let mut missing: Vec<u32> = (next.saturating_sub(AGAIN)..next).collect();
    for n in missing.clone() {
        bed.send(n)?;
    }
    let limit = bed.now() + LOST;
    while !missing.is_empty() && bed.now() < limit {
        let there = turn(bed, own, asked)?;
        missing.retain(|n| !there.contains(n));
    }
    ensure!(
        missing.is_empty(),
        "{} flows forward nothing",
        missing.len()
    );
    Ok(())
}

/// Runs it.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    pin(1)?;
    let mut rows = Vec::new();
    for (brain, name) in [
        (Brain::OsKen, "os-ken's learning switch"),
        (Brain::Own, "the benchmark's controller"),
    ] {
        let pairs = pairs(o.pairs, |who| measure(who, brain, o.seconds))?;
        let mut row = |what: &str, unit, pick: fn(&Figures) -> f64| {
            let of: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (pick(a), pick(b))).collect();
            let claim = format!("reactive, {name}: {what}");
            rows.push(Row::paired(&claim, unit, PEER, &of, Target::None));
        };
        row("flows set up", "flows/s", |f| f.rate);
        row("one of 64 under way, p50", "us", |f| f.took[0]);
        row("one of 64 under way, p99", "us", |f| f.took[1]);
        row("the switch's processor time a flow", "us", |f| f.cpu_us);
    }
    Ok(rows)
}

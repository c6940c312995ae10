//! From the kernel's acknowledgement of a route until the chip counts it.
//!
//! ```text
//!  route ─► kernel ─► ack: the clock starts        asicd's own count of prefixes, asked over one kept connection,
//!             └─► switchd ─► asicd                 has grown: the clock stops
//! ```
//!
//! Each such figure is an upper bound: the answer that shows the route was asked for before, and its way back is counted.
//! What a question alone takes is a row of its own. On the idle switch, where that is most of it, switchd's own stamp of the
//! moment at which it took the chip's answer is read afterwards, and nobody asks meanwhile.

use crate::Options;
use crate::report::{Row, Target};
use crate::routed::{self, Routed};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tandem_linux::clock;
use tandem_linux::netlink::blast;
use tandem_mgmt::{Daemon, Instance, types};

const RATE: u32 = 10_000;
const BUSY: Duration = Duration::from_secs(5);
/// Between two looks while routes come: no more than a core's worth of questions.
const LOOK: Duration = Duration::from_micros(300);
const IDLE_RUNS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to asicd that is kept: a new one takes longer than what is measured.
struct Counter(BufReader<UnixStream>);

impl Counter {
    fn new(bed: &Routed) -> Result<Counter> {
        let path = Instance::resolve(Some(bed.rig.instance()))?.socket(Daemon::Asicd);
        let stream = UnixStream::connect(&path).with_context(|| path.display().to_string())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Counter(BufReader::new(stream)))
    }

    /// Prefixes in the chip now.
    fn look(&mut self) -> Result<u64> {
        self.0
            .get_mut()
            .write_all(b"GET /v1/resources HTTP/1.1\r\nHost: asicd\r\n\r\n")?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            ensure!(self.0.read_line(&mut line)? > 0, "asicd hung up");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(n) = line.strip_prefix("content-length:") {
                length = n.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        let r: types::Resources = serde_json::from_slice(&body)?;
        routed::prefixes_of(&r)
    }
}

fn percentile(values: &[f64], p: f64) -> Result<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = ((p * sorted.len() as f64) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().context("nothing was measured")
}

/// Milliseconds of each route while routes come at [`RATE`].
fn busy(bed: &Routed) -> Result<Vec<f64>> {
    let count = RATE as usize * BUSY.as_secs() as usize;
    let list = bed.routes("sw", "swp1", count)?;
    let done = AtomicBool::new(false);
    let mut counter = Counter::new(bed)?;
    let (acked, seen) = std::thread::scope(|scope| {
        let looker = scope.spawn(|| -> Result<Vec<(u64, Instant)>> {
            let mut seen = Vec::new();
            let mut last = 0;
            let mut late = None;
            while last < bed.base + count as u64 {
                last = counter.look()?;
                seen.push((last, Instant::now()));
                if done.load(Ordering::Relaxed) {
                    let since = *late.get_or_insert_with(Instant::now);
                    ensure!(since.elapsed() < PATIENCE, "only {last} prefixes came");
                }
                std::thread::sleep(LOOK);
            }
            Ok(seen)
        });
        let acked = bed.netlink("sw", |socket| {
            let begin = Instant::now();
            let mut acked = Vec::with_capacity(count);
            for (i, route) in (1u32..).zip(&list) {
                routed::add(socket, std::slice::from_ref(route))?;
                acked.push(Instant::now());
                let due = begin + Duration::from_secs(1) * i / RATE;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            let rate = count as f64 / begin.elapsed().as_secs_f64();
            ensure!(
                rate > 0.95 * f64::from(RATE),
                "only {rate:.0} routes/s were sent"
            );
            Ok(acked)
        });
        done.store(true, Ordering::Relaxed);
        let seen = looker
            .join()
            .map_err(|_| anyhow::anyhow!("the looker died"))?;
        Ok::<_, anyhow::Error>((acked?, seen?))
    })?;
    bed.confirm(count)?;
    // switchd writes them in the order in which they came: when n are there, the first n are
    let mut shown = seen.iter();
    let mut now = shown.next();
    acked
        .iter()
        .zip(bed.base + 1..)
        .map(|(acked, n)| {
            while now.is_some_and(|(have, _)| *have < n) {
                now = shown.next();
            }
            let (_, at) = now.context("a route was never seen")?;
            Ok(at.saturating_duration_since(*acked).as_secs_f64() * 1e3)
        })
        .collect()
}

/// When switchd took the chip's last answer to a write.
fn confirmed_ns(bed: &Routed) -> Result<u64> {
    let status = bed.status()?;
    let at = status["control"]["confirmed_ns"].as_u64();
    at.context("switchd tells no time of its last answer")
}

/// Microseconds of one route while nothing else happens, until the chip's answer was taken.
fn confirmed(bed: &Routed) -> Result<Vec<f64>> {
    let list = bed.routes("sw", "swp1", IDLE_RUNS)?;
    let took = bed.netlink("sw", |socket| {
        let mut took = Vec::new();
        for route in &list {
            std::thread::sleep(Duration::from_millis(100));
            let before = confirmed_ns(bed)?;
            std::thread::sleep(Duration::from_millis(100));
            routed::add(socket, std::slice::from_ref(route))?;
            let acked = clock::now_ns();
            std::thread::sleep(Duration::from_millis(100));
            let at = confirmed_ns(bed)?;
            ensure!(at != before, "no answer of the chip in 100 ms");
            took.push(at.saturating_sub(acked) as f64 / 1e3);
        }
        blast::del_routes(socket, &list)?;
        Ok(took)
    })?;
    bed.confirm(0)?;
    Ok(took)
}

/// Microseconds of one route while nothing else happens until a question shows it, and of a question.
fn idle(bed: &Routed) -> Result<(Vec<f64>, Vec<f64>)> {
    let list = bed.routes("sw", "swp1", IDLE_RUNS)?;
    let mut counter = Counter::new(bed)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    bed.netlink("sw", |socket| {
        for (route, want) in list.iter().zip(bed.base + 1..) {
            std::thread::sleep(Duration::from_millis(100));
            let begin = Instant::now();
            counter.look()?;
            without.push(begin.elapsed().as_secs_f64() * 1e6);
            std::thread::sleep(Duration::from_millis(100));
            routed::add(socket, std::slice::from_ref(route))?;
            let acked = Instant::now();
            while counter.look()? < want {
                ensure!(acked.elapsed() < PATIENCE, "the route does not come");
            }
            with.push(acked.elapsed().as_secs_f64() * 1e6);
        }
        blast::del_routes(socket, &list)?;
        Ok(())
    })?;
    bed.confirm(0)?;
    Ok((with, without))
}

/// The rows of this benchmark.
pub fn run(_: &Options) -> Result<Vec<Row>> {
    let mut bed = Routed::new(&[])?;
    let answered = confirmed(&bed)?;
    let (with, without) = idle(&bed)?;
    let loaded = busy(&bed)?;
    bed.rig.down()?;
    Ok(vec![
        Row::alone(
            "latency, first route of an idle switch: until its answer is taken",
            "us",
            &answered,
            Target::ValueAtMost(300.0),
        ),
        Row::alone(
            "latency, first route of an idle switch: p99",
            "us",
            &[percentile(&answered, 0.99)?],
            Target::None,
        ),
        Row::alone(
            "latency, first route of an idle switch: until a question shows it",
            "us",
            &with,
            Target::None,
        ),
        Row::alone("latency: the question alone", "us", &without, Target::None),
        Row::alone(
            "latency at 10k routes/s: median",
            "ms",
            &loaded,
            Target::None,
        ),
        Row::alone(
            "latency at 10k routes/s: p99",
            "ms",
            &[percentile(&loaded, 0.99)?],
            Target::ValueAtMost(10.0),
        ),
    ])
}

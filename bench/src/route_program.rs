//! IPv4 routes from a real netlink socket until all are confirmed in hardware and read back.
//!
//! ```text
//!  sender (256 messages per buffer) ─► kernel ─► switchd ─► asicd      ours: until sync, then the chip's count is read
//!                                        └─────► listener that counts  peer: until the last notification
//! ```

use crate::Options;
use crate::report::{Row, Target};
use crate::routed::{self, Routed};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};
use tandem_linux::netlink::{
    Dump, Event, Family, Monitor, Object, Route, RouteFilter, blast, decode,
};
use tandem_linux::netns;

/// Routes that are there before an overrun is forced, and routes that come while nobody listens.
const STANDING: usize = 400_000;
const UNHEARD: usize = 200_000;

/// Adds all and waits for `done`; the seconds it took. Then deletes all, unmeasured.
fn timed(
    bed: &Routed,
    word: &str,
    list: &[Route],
    done: &mut (dyn FnMut() -> Result<()> + Send),
) -> Result<f64> {
    bed.netlink(word, |socket| {
        let begin = Instant::now();
        routed::add(socket, list)?;
        done()?;
        let t = begin.elapsed().as_secs_f64();
        blast::del_routes(socket, list)?;
        Ok(t)
    })
}

fn with_listener(bed: &Routed, list: &[Route]) -> Result<f64> {
    let want = list.len();
    let mut monitor = netns::run_in_named(Some(&bed.rig.ns("bare")), || {
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
    let t = timed(bed, "bare", list, &mut move || {
        rx.recv_timeout(Duration::from_secs(60))
            .context("the listener missed notifications")
    });
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let _ = thread.join();
    t
}

fn counter(status: &serde_json::Value, path: &str) -> Result<u64> {
    status
        .pointer(path)
        .and_then(serde_json::Value::as_u64)
        .with_context(|| format!("switchd's status has no {path}"))
}

/// switchd sleeps while more routes come than its socket holds; how long until chip and kernel are equal again, beside
/// how long it takes to dump the kernel's routes and do nothing with them.
fn overrun(bed: &Routed, pairs: usize) -> Result<Vec<Row>> {
    let all = bed.routes("sw", "swp1", STANDING + UNHEARD)?;
    let (standing, unheard) = all.split_at(STANDING);
    bed.add(standing)?;
    bed.confirm(STANDING)?;
    let (mut times, mut written) = (Vec::new(), Vec::new());
    for run in 0..pairs {
        eprint!("\r  overrun: pair {} of {pairs}  ", run + 1);
        let before = bed.status()?;
        let pid = counter(&before, "/pid")?;
        let pid = Pid::from_raw(i32::try_from(pid)?).context("switchd's pid")?;
        kill_process(pid, Signal::STOP)?;
        let added = bed.add(unheard);
        let begin = Instant::now();
        kill_process(pid, Signal::CONT)?;
        added?;
        bed.confirm(all.len())?;
        let ours = begin.elapsed().as_secs_f64();
        let after = bed.status()?;
        let overruns = counter(&after, "/source/overruns")? - counter(&before, "/source/overruns")?;
        ensure!(overruns > 0, "the socket held everything: nothing was lost");
        written.push((counter(&after, "/writes")? - counter(&before, "/writes")?) as f64);
        let peer = bed.netlink("sw", |socket| {
            let (begin, mut seen) = (Instant::now(), 0usize);
            let filter = RouteFilter::default();
            socket.dump(Dump::Routes(Family::V4, filter), |_| seen += 1)?;
            ensure!(seen >= all.len(), "the dump has {seen} routes");
            Ok(begin.elapsed().as_secs_f64())
        })?;
        times.push((ours, peer));
        bed.netlink("sw", |socket| Ok(blast::del_routes(socket, unheard)?))?;
        bed.confirm(STANDING)?;
    }
    eprintln!();
    let name = format!(
        "route-program after an overrun ({}k stand, {}k new)",
        STANDING / 1000,
        UNHEARD / 1000
    );
    Ok(vec![
        Row::paired(
            &format!("{name}: until equal"),
            "s",
            "a dump, read and dropped",
            &times,
            Target::RatioAtMost(2.0),
        ),
        Row::alone(
            &format!("{name}: entries written"),
            "entries",
            &written,
            Target::ValueAtMost(UNHEARD as f64),
        ),
    ])
}

/// The rows of this benchmark.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in [50_000usize, 500_000] {
        let mut bed = Routed::new(&["bare", "barehost"])?;
        // The peer: the same interface and address, but no switch listens
        bed.rig.veth(("bare", "swp1"), ("barehost", "eth0"))?;
        bed.rig
            .ip("bare", &["addr", "add", "192.0.2.1/24", "dev", "swp1"])?;
        let list = bed.routes("sw", "swp1", count)?;
        let bare_list = bed.routes("bare", "swp1", count)?;
        let mut pairs = Vec::new();
        for run in 0..o.pairs {
            eprint!("\r  {count} routes: pair {} of {}  ", run + 1, o.pairs);
            let ours = timed(&bed, "sw", &list, &mut || bed.confirm(count))?;
            bed.confirm(0)
                .context("deleted routes are still in hardware")?;
            let peer = with_listener(&bed, &bare_list)?;
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
        if count == 500_000 {
            rows.extend(overrun(&bed, o.pairs)?);
        }
        bed.rig.down()?;
    }
    Ok(rows)
}

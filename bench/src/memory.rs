//! One million IPv4 routes: what both daemons take together, at their peak.
//!
//! ```text
//!  routes ─► kernel ─► switchd ─► asicd        every 20 ms: /proc/PID/smaps_rollup of both, Pss added up
//! ```

use crate::Options;
use crate::report::{Row, Target};
use crate::routed::Routed;
use anyhow::{Context, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROUTES: usize = 1_000_000;

/// The daemons' proportional set sizes, bytes: shared memory is counted once.
fn pss(pids: &[u64]) -> Result<u64> {
    pids.iter()
        .map(|pid| {
            let path = format!("/proc/{pid}/smaps_rollup");
            let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
            text.lines()
                .find_map(|l| l.strip_prefix("Pss:")?.trim().strip_suffix(" kB"))
                .and_then(|kb| kb.parse::<u64>().ok())
                .map(|kb| kb << 10)
                .with_context(|| format!("{path} has no Pss"))
        })
        .sum()
}

/// The rows of this benchmark.
pub fn run(_: &Options) -> Result<Vec<Row>> {
    let mut bed = Routed::new(&[])?;
    let pids = [&bed.switchd, &bed.asicd]
        .map(|daemon| -> Result<u64> {
            let status: serde_json::Value = daemon.get("/v1/status")?;
            status["pid"].as_u64().context("no pid")
        })
        .into_iter()
        .collect::<Result<Vec<u64>>>()?;
    let list = bed.routes("sw", "swp1", ROUTES)?;
    let idle = pss(&pids)?;
    let done = AtomicBool::new(false);
    let (peak, full, one) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| -> Result<u64> {
            let mut peak = 0;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(pss(&pids)?);
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(peak)
        });
        let filled = bed.add(&list).and_then(|()| bed.confirm(ROUTES));
        let full = pss(&pids);
        let one = pss(&pids[..1]);
        done.store(true, Ordering::Relaxed);
        let peak = watcher
            .join()
            .map_err(|_| anyhow::anyhow!("the watcher died"))??;
        filled?;
        let full = full?;
        Ok::<_, anyhow::Error>((peak.max(full), full, one?))
    })?;
    bed.rig.down()?;
    let mb = |bytes: u64| bytes as f64 / 1e6;
    Ok(vec![
        Row::alone(
            "memory, no routes: both daemons' PSS",
            "MB",
            &[mb(idle)],
            Target::None,
        ),
        Row::alone(
            "memory, 1,000k routes in hardware: both daemons' PSS",
            "MB",
            &[mb(full)],
            Target::None,
        ),
        Row::alone(
            "memory, 1,000k routes in hardware: of that, switchd's",
            "MB",
            &[mb(one)],
            Target::None,
        ),
        Row::alone(
            "memory, 1,000k routes: peak of both daemons' PSS",
            "MB",
            &[mb(peak)],
            Target::ValueAtMost(300.0),
        ),
    ])
}

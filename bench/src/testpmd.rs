//! DPDK's testpmd as a peer: runs it for a while and reads its forward statistics.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs testpmd with two virtual devices; returns packets forwarded per second.
///
/// `vdevs` are DPDK device strings, `mode` is a forward mode (`io`, `macswap`).
pub fn run(vdevs: &[String], mode: &str, seconds: f64) -> Result<f64> {
    let mut cmd = Command::new("dpdk-testpmd");
    cmd.args([
        "--no-pci",
        "--no-huge",
        "-m",
        "256",
        "-l",
        "0,1",
        "--no-telemetry",
    ]);
    cmd.arg(format!("--file-prefix=tandem-bench-{}", std::process::id()));
    for v in vdevs {
        cmd.arg(format!("--vdev={v}"));
    }
    cmd.args([
        "--",
        "-i",
        "--total-num-mbufs=8192",
        &format!("--forward-mode={mode}"),
    ]);
    let mut child = cmd
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start dpdk-testpmd (package dpdk-dev)")?;
    let mut stdin = child
        .stdin
        .take()
        .context("testpmd has no standard input")?;
    // testpmd needs a moment to map its memory; forwarding time is measured between start and stop
    std::thread::sleep(Duration::from_millis(1500));
    let begin = Instant::now();
    stdin.write_all(b"start\n")?;
    stdin.flush()?;
    std::thread::sleep(Duration::from_secs_f64(seconds));
    stdin.write_all(b"stop\n")?;
    let elapsed = begin.elapsed().as_secs_f64();
    stdin.write_all(b"quit\n")?;
    drop(stdin);
    let out = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    let all = text
        .rsplit("Accumulated forward statistics")
        .next()
        .unwrap_or_default();
    for line in all.lines() {
        if let Some(rest) = line.trim().strip_prefix("TX-packets:") {
            let n: f64 = rest
                .split_whitespace()
                .next()
                .unwrap_or("0")
                .parse()
                .context("testpmd's counter")?;
            if n > 0.0 {
                return Ok(n / elapsed);
            }
        }
    }
    bail!(
        "testpmd forwarded nothing: {}",
        text.lines().rev().take(5).collect::<Vec<_>>().join(" | ")
    )
}

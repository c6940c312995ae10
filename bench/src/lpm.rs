//! IPv4 LPM lookups on one core: ours, the `poptrie` crate, DPDK's rte_fib; same prefixes, same addresses.

use crate::Options;
use crate::prefixes::{self, Prefix};
use crate::report::{Row, Target};
use anyhow::{Context, Result, bail, ensure};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tandem_tables::lpm::{Answer, Lpm4};

const ADDRESSES: usize = 1 << 20;
const BULK: usize = 64;

/// The same for lookups in bulks, as the pipeline does them for a burst.
fn measure_bulk(
    addrs: &[u32],
    seconds: f64,
    mut lookup: impl FnMut(&[u32], &mut [Answer]),
) -> (f64, u64) {
    let mut answers = [Answer::default(); BULK];
    let mut digest = 0u64;
    for _ in 0..2 {
        digest = 0;
        for a in addrs.chunks_exact(BULK) {
            lookup(a, &mut answers);
            digest += answers.iter().map(|x| u64::from(x.value)).sum::<u64>();
        }
    }
    let (begin, mut done) = (Instant::now(), 0usize);
    loop {
        for a in addrs.chunks_exact(BULK) {
            lookup(a, &mut answers);
            std::hint::black_box(&answers);
        }
        done += addrs.len();
        let t = begin.elapsed().as_secs_f64();
        if t >= seconds {
            return (done as f64 / t / 1e6, digest);
        }
    }
}

/// Million lookups per second of `lookup` over `addrs`, and the sum of the answers (the digest).
fn measure(addrs: &[u32], seconds: f64, mut lookup: impl FnMut(u32) -> u32) -> (f64, u64) {
    let mut digest = 0u64;
    for _ in 0..2 {
        digest = addrs.iter().map(|a| u64::from(lookup(*a))).sum();
    }
    let begin = Instant::now();
    let mut done = 0usize;
    let mut sum = 0u64;
    loop {
        for a in addrs {
            sum = sum.wrapping_add(u64::from(lookup(*a)));
        }
        done += addrs.len();
        let t = begin.elapsed().as_secs_f64();
        if t >= seconds {
            std::hint::black_box(sum);
            return (done as f64 / t / 1e6, digest);
        }
    }
}

/// Compiles the DPDK peer.
fn build_rte_fib(dir: &Path) -> Result<PathBuf> {
    let exe = dir.join("rte_fib");
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "libdpdk"])
        .output()
        .context("cannot run pkg-config (packages pkg-config, libdpdk-dev)")?;
    ensure!(
        flags.status.success(),
        "pkg-config does not know libdpdk (package libdpdk-dev)"
    );
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/rte_fib.c");
    let status = Command::new("cc")
        .args(["-O3", "-march=native", "-o"])
        .arg(&exe)
        .arg(source)
        .args(String::from_utf8_lossy(&flags.stdout).split_whitespace())
        .status()
        .context("cannot run cc")?;
    ensure!(status.success(), "cc failed on {source}");
    Ok(exe)
}

/// Has the system memory in large pages for DPDK (1.6 GB; `sysctl vm.nr_hugepages=800`)?
fn huge_pages() -> bool {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("HugePages_Free:"));
    free.and_then(|n| n.trim().parse::<u32>().ok())
        .is_some_and(|n| n >= 800)
}

fn run_rte_fib(exe: &Path, data: &Path, seconds: f64, huge: bool) -> Result<(f64, u64)> {
    let out = Command::new(exe)
        .arg(data)
        .arg(seconds.to_string())
        .args(huge.then_some("huge"))
        .output()?;
    if !out.status.success() {
        bail!(
            "rte_fib: {}",
            String::from_utf8_lossy(&out.stderr)
                .lines()
                .last()
                .unwrap_or_default()
        );
    }
    let text = String::from_utf8_lossy(&out.stdout);
    let mut words = text.split_whitespace();
    let mlps = words.next().context("rte_fib printed nothing")?.parse()?;
    let sum = words.next().context("rte_fib printed no digest")?.parse()?;
    Ok((mlps, sum))
}

fn write_data(path: &Path, table: &[Prefix], addrs: &[u32]) -> Result<()> {
    let mut f = std::io::BufWriter::new(std::fs::File::create(path)?);
    f.write_all(&(table.len() as u32).to_ne_bytes())?;
    f.write_all(&(addrs.len() as u32).to_ne_bytes())?;
    for p in table {
        for w in [p.addr, u32::from(p.len), p.nexthop] {
            f.write_all(&w.to_ne_bytes())?;
        }
    }
    for a in addrs {
        f.write_all(&a.to_ne_bytes())?;
    }
    f.flush()?;
    Ok(())
}

/// The rows of this benchmark.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let dir = std::env::temp_dir().join(format!("tandem-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let exe = build_rte_fib(&dir)?;
    let huge = huge_pages();
    let mut rows = Vec::new();
    for count in [100_000usize, 900_000] {
        let table = prefixes::table(count, 42);
        let mut ours = Lpm4::new(count as u32 + 1, 1);
        let begin = Instant::now();
        for p in &table {
            ours.insert(0, p.addr, p.len, p.nexthop)
                .context("our LPM refused a prefix")?;
        }
        let inserts = count as f64 / begin.elapsed().as_secs_f64() / 1e3;
        eprintln!(
            "{count} prefixes: {inserts:.0} thousand inserts/s, {} MB",
            ours.memory() >> 20
        );
        let pop: poptrie::Poptrie<(u32, u8), u32> =
            table.iter().map(|p| ((p.addr, p.len), p.nexthop)).collect();
        for (kind, addrs) in [
            ("uniform", prefixes::uniform(ADDRESSES, 7)),
            ("in-prefix", prefixes::inside(&table, ADDRESSES, 7)),
        ] {
            let data = dir.join("lookups.bin");
            write_data(&data, &table, &addrs)?;
            let mut vs_pop = Vec::new();
            let mut vs_fib = Vec::new();
            for run in 0..o.pairs {
                eprint!(
                    "\r  {count} prefixes, {kind}: pair {} of {}  ",
                    run + 1,
                    o.pairs
                );
                let (a, da) = measure(&addrs, o.seconds, |x| {
                    ours.lookup(0, x).map_or(0, |h| h.value)
                });
                let (bulk, dbulk) = measure_bulk(&addrs, o.seconds, |a, answers| {
                    ours.lookup_bulk(0, a, answers);
                });
                let (b, db) = measure(&addrs, o.seconds, |x| pop.lookup(x).copied().unwrap_or(0));
                let (c, dc) = run_rte_fib(&exe, &data, o.seconds, huge)?;
                ensure!(
                    [db, dc, dbulk] == [da; 3],
                    "the tables disagree: {da}, in bulk {dbulk}, {db} {dc}"
                );
                vs_pop.push((a, b));
                vs_fib.push((bulk, c));
            }
            eprintln!();
            let name = format!("lpm {}k {kind}", count / 1000);
            rows.push(Row::paired(
                &name,
                "Mlookup/s",
                "poptrie 0.2",
                &vs_pop,
                Target::RatioAtLeast(1.0),
            ));
            let pages = if huge { ", huge pages" } else { "" };
            let fib = format!("DPDK rte_fib bulk {BULK}{pages}");
            let name = format!("{name}, bulk {BULK}");
            rows.push(Row::paired(
                &name,
                "Mlookup/s",
                &fib,
                &vs_fib,
                Target::RatioAtLeast(1.0),
            ));
        }
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(rows)
}

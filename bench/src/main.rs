//! Benchmarks by claim: `tandem-bench NAME` measures us and a peer interleaved and writes `out/bench/NAME.json`.

mod lpm;
mod prefixes;
mod report;
mod testpmd;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// IPv4 LPM lookups beside poptrie and DPDK's rte_fib
    Lpm,
}

/// Measures one claim beside its peer.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// What to measure
    name: Name,
    /// Pairs of runs
    #[arg(long, default_value_t = 7)]
    pairs: usize,
    /// Seconds of one run
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Where the result goes
    #[arg(long, default_value = "out/bench")]
    out: PathBuf,
}

fn main() -> Result<()> {
    let o = Options::parse();
    let (name, rows) = match o.name {
        Name::Lpm => ("lpm", lpm::run(&o)?),
    };
    report::publish(name, &o.out, &rows)
}

//! Benchmarks by claim: `tandem-bench NAME` measures us and a peer interleaved and writes `out/bench/NAME.json`.

mod blast;
mod chip;
mod flood;
mod forward;
mod latency;
mod lossless;
mod lpm;
mod memory;
mod ofclient;
mod ofswitch;
mod ofwires;
mod openflow;
mod openflow_figures;
mod openflow_flowmod;
mod openflow_forward;
mod openflow_packetin;
mod openflow_reactive;
mod ovs;
mod pipeline;
mod prefixes;
mod report;
mod restart;
mod rig;
mod route_program;
mod routed;
mod scale;
mod svg;
mod testpmd;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// IPv4 LPM lookups beside poptrie and DPDK's rte_fib
    Lpm,
    /// Frames from veth to veth beside testpmd and the Linux bridge
    Forward,
    /// The pipeline in memory beside testpmd macswap
    Pipeline,
    /// A million routes: what both daemons take at their peak
    Memory,
    /// From the kernel's acknowledgement until in hardware
    Latency,
    /// Both daemons killed and started again under traffic
    Restart,
    /// Routes from netlink into hardware beside a listener that only receives
    RouteProgram,
    /// OpenFlow flows from a controller until the barrier, beside Open vSwitch
    OpenflowFlowmod,
    /// A chip's flows beside software alone: rates, processors, memory over the frame's size
    OpenflowFigures,
    /// Frames forwarded by flows, beside Open vSwitch
    OpenflowForward,
    /// A frame to the controller and back, beside Open vSwitch
    OpenflowPacketin,
    /// Flows set up by a controller that is asked, beside Open vSwitch
    OpenflowReactive,
    /// What one change costs the core's thread when much is configured
    Scale,
    /// The OpenFlow software pipeline in memory
    OpenflowPipeline,
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
    /// Forward: also search for the highest rate without loss, ten seconds and more for each device; says something only
    /// where nothing else runs
    #[arg(long)]
    lossless: bool,
    /// Forward, openflow-forward, openflow-flowmod: only one part of it
    #[arg(long)]
    only: Option<forward::Part>,
    /// Scale: routes at full size
    #[arg(long, default_value_t = 1_000_000)]
    routes: usize,
    /// Scale: only shapes whose names have this in them
    #[arg(long)]
    shape: Option<String>,
    /// Scale: only events whose names have this in them
    #[arg(long)]
    event: Option<String>,
    /// Print JSON, as it is written, in place of the table
    #[arg(short = 'j', long)]
    json: bool,
    /// Where the result goes
    #[arg(long, default_value = "out/bench")]
    out: PathBuf,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tandem-bench: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(o: &Options) -> Result<()> {
    let (name, rows) = match o.name {
        Name::Forward => ("forward", forward::run(o)?),
        Name::Lpm => ("lpm", lpm::run(o)?),
        Name::Latency => ("latency", latency::run(o)?),
        Name::Memory => ("memory", memory::run(o)?),
        Name::Restart => ("restart", restart::run(o)?),
        Name::OpenflowFlowmod => ("openflow-flowmod", openflow_flowmod::run(o)?),
        Name::OpenflowFigures => ("openflow-figures", openflow_figures::run(o)?),
        Name::OpenflowForward => ("openflow-forward", openflow_forward::run(o)?),
        Name::OpenflowPacketin => ("openflow-packetin", openflow_packetin::run(o)?),
        Name::OpenflowReactive => ("openflow-reactive", openflow_reactive::run(o)?),
        Name::Pipeline => ("pipeline", pipeline::run(o)?),
        Name::Scale => ("scale", scale::run(o)?),
        Name::OpenflowPipeline => ("openflow-pipeline", openflow::run(o)?),
        Name::RouteProgram => ("route-program", route_program::run(o)?),
    };
    report::publish(name, &o.out, &rows, o.json)
}

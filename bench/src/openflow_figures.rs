//! Seed 003's figures 7 and 8 and table I: an nxp-t1040's flows beside the same flows in software alone, over the frame's
//! size, with two ports and with eight, each sending to its neighbour and getting from it.
//!
//! ```text
//!   senders, core 1           asicd, the chip, core 0             ofagentd, core 0
//!   g1 ─► p1 ┐  ┌─────────────────────────────────┐  all frames  ┌──────────┐
//!   g2 ─► p2 ┤  │ offload: MAC table ─► p2, p1 …  │ ◄══════════► │ software │
//!    …       ┘  └─────────────────────────────────┘  (software)  └──────────┘
//!   g1, g2 …: XDP_DROP, counted
//! ```
//! In software alone means what the paper's port-based VLANs do: the chip hands each frame to its processor. Here a switch
//! that drops fragments does so (`OFPC_FRAG_DROP`), of which there are none.
//!
//! What is offered is more than anybody takes on two processors, and less than a chip's line. asicd's processor is the
//! chip's silicon: it is told apart from the agent's.

use crate::Options;
use crate::blast::{cpu_seconds, netns_ifindex, pin, pin_process};
use crate::ofclient::{Client, field, flow, put};
use crate::ofswitch::{self, OnChip};
use crate::openflow_flowmod::fill;
use crate::report::{Row, Target};
use crate::rig::{Rig, sh};
use crate::svg::{Curve, Panel, draw};
use anyhow::{Context, Result, ensure};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tandem_linux::{netns, xdp, xdp_flood};

/// The paper's, with their FCS.
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1500];
const PORTS: [usize; 2] = [2, 8];
/// Frames of one call of each port's sender, all ports together: they take turns.
const CALL: usize = 240_000;
/// Preamble and gap of a frame on a wire.
const ON_WIRE: u32 = 20;
const LINE_BPS: f64 = 1e9;
/// The ports between switch and processor (§VI.B).
const CPU_BPS: f64 = 5e9;
/// Wanted of the agent with the chip filled: processors, megabytes.
const CORES: f64 = 0.01;
const MEGABYTES: f64 = 60.0;
const FILLED_SECONDS: f64 = 10.0;

/// Who forwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Chip,
    Software,
}

/// What came of one run.
#[derive(Clone, Copy, Default)]
struct Figures {
    /// Million frames a second that came in at all ports, and that left by them.
    offered: f64,
    forwarded: f64,
    /// Processors that the agent and the chip took.
    agent: f64,
    asicd: f64,
    /// Megabytes of the agent.
    pss: f64,
    rss: f64,
}

/// The chip with its neighbours.
struct Bed {
    chip: OnChip,
    client: Client,
    count: usize,
    rig: Rig,
}

fn station(port: usize) -> [u8; 6] {
    [2, 0, 0, 1, 0, port as u8]
}

/// The port that a port sends to.
fn neighbour(port: usize) -> usize {
    ((port - 1) ^ 1) + 1
}

/// A frame of so many bytes with its FCS, from a port's station to its neighbour's.
fn frame(port: usize, size: u32) -> Vec<u8> {
    let mut f = vec![0; size as usize - 4];
    f[..6].copy_from_slice(&station(neighbour(port)));
    f[6..12].copy_from_slice(&station(port));
    // Local experimental EtherType 1 (IEEE 802): nobody answers it
    f[12..14].copy_from_slice(&[0x88, 0xb5]);
    f
}

/// Sum of one number of all interfaces of a namespace whose names begin with a letter.
fn received(ns: &str, letter: char) -> Result<u64> {
    let json = sh(&["ip", "-n", ns, "-j", "-s", "link", "show"])?;
    let links: serde_json::Value = serde_json::from_str(&json)?;
    let links = links.as_array().context("no interfaces")?;
    let ours = links.iter().filter(|l| {
        let name = l["ifname"].as_str().unwrap_or_default();
        name.starts_with(letter)
    });
    let counted = ours.map(|l| l["stats64"]["rx"]["packets"].as_u64());
    counted.sum::<Option<u64>>().context("no counters")
}

/// Megabytes of a process: its share of what it has, and all of it.
fn memory(pid: u32) -> Result<(f64, f64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let of = |what: &str| -> Option<f64> {
        let line = text.lines().find_map(|l| l.strip_prefix(what))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let both = of("Pss:").zip(of("Rss:"));
    let (pss, rss) = both.context("no memory of the process")?;
    Ok((pss * 1024.0 / 1e6, rss * 1024.0 / 1e6))
}

impl Bed {
    fn new(count: usize) -> Result<Bed> {
        let rig = Rig::new(&["sw", "gen"])?;
        for n in 1..=count {
            let (g, p) = (format!("g{n}"), format!("p{n}"));
            rig.veth(("gen", &g), ("sw", &p))?;
            for (word, dev) in [("gen", &g), ("sw", &p)] {
                // GRO gives the veth a NAPI ring, which XDP redirects into
                let ns = rig.ns(word);
                sh(&[
                    "ip", "netns", "exec", &ns, "ethtool", "-K", dev, "gro", "on",
                ])?;
            }
        }
        let chip = ofswitch::on_chip(&rig, "sw", count, false)?;
        let mut client = Client::new(&rig.ns("sw"))?;
        for pid in [chip.asicd, chip.agent] {
            pin_process(pid, 0)?;
        }
        let mut bytes = Vec::new();
        for port in 1..=count {
            let mut fields = Vec::new();
            put(&mut fields, field::ETH_DST, &station(port));
            bytes.extend(flow(1, &fields, port as u32));
        }
        client.done(&bytes)?;
        Ok(Bed {
            chip,
            client,
            count,
            rig,
        })
    }

    /// As many frames of a size as can be sent, at all ports.
    fn measure(&mut self, by: By, size: u32, seconds: f64) -> Result<Figures> {
        self.client.fragments(by == By::Software)?;
        let (gens, sw) = (self.rig.ns("gen"), self.rig.ns("sw"));
        let _sinks: Vec<OwnedFd> = netns::run_in_named(Some(&gens), || {
            let sink = |n| {
                xdp::attach(
                    xdp_flood::load_drop()?.as_fd(),
                    netns_ifindex(&format!("g{n}"))?,
                )
            };
            (1..=self.count).map(sink).collect()
        })?;
        let stop = AtomicBool::new(false);
        let send = |port: usize| {
            netns::run_in_named(Some(&gens), || {
                pin(1)?;
                let to = xdp_flood::load_redirect(netns_ifindex(&format!("g{port}"))?)?;
                while !stop.load(Ordering::Relaxed) {
                    xdp_flood::blast(to.as_fd(), &frame(port, size), (CALL / self.count) as u32)?;
                }
                Ok(())
            })
        };
        let read = || -> Result<[f64; 4]> {
            let (came, left) = (received(&sw, 'p')?, received(&gens, 'g')?);
            let (agent, asicd) = (cpu_seconds(self.chip.agent)?, cpu_seconds(self.chip.asicd)?);
            Ok([came as f64, left as f64, agent, asicd])
        };
        std::thread::scope(|scope| {
            let senders: Vec<_> = (1..=self.count)
                .map(|p| scope.spawn(move || send(p)))
                .collect();
            let measured = || -> Result<Figures> {
                std::thread::sleep(Duration::from_millis(500));
                let (begin, first) = (Instant::now(), read()?);
                std::thread::sleep(Duration::from_secs_f64(seconds));
                let (last, took) = (read()?, begin.elapsed().as_secs_f64());
                let (pss, rss) = memory(self.chip.agent)?;
                let [offered, forwarded, agent, asicd] =
                    [0, 1, 2, 3].map(|n| (last[n] - first[n]) / took);
                Ok(Figures {
                    offered: offered / 1e6,
                    forwarded: forwarded / 1e6,
                    agent,
                    asicd,
                    pss,
                    rss,
                })
            };
            let figures = measured();
            stop.store(true, Ordering::Relaxed);
            for s in senders {
                let sent: std::io::Result<()> =
                    s.join().map_err(|_| anyhow::anyhow!("a sender died"))?;
                sent.context("XDP sender")?;
            }
            let figures = figures?;
            ensure!(figures.forwarded > 0.0, "nothing was forwarded");
            Ok(figures)
        })
    }
}

/// Million frames a second that so many bits are.
fn mpps(bps: f64, size: u32) -> f64 {
    bps / f64::from(8 * (size + ON_WIRE)) / 1e6
}

/// All sizes of so many ports: the chip's figures and the software's, pair by pair.
fn sizes(o: &Options, count: usize) -> Result<Vec<Vec<(Figures, Figures)>>> {
    let mut bed = Bed::new(count)?;
    let mut of = vec![Vec::new(); SIZES.len()];
    for pair in 0..o.pairs {
        for (size, of) in SIZES.iter().zip(&mut of) {
            eprint!(
                "\r  {count} ports, {size} B: pair {} of {}  ",
                pair + 1,
                o.pairs
            );
            let mut run = |by| bed.measure(by, *size, o.seconds);
            of.push(match pair % 2 {
                0 => (run(By::Chip)?, run(By::Software)?),
                _ => {
                    let software = run(By::Software)?;
                    (run(By::Chip)?, software)
                }
            });
        }
    }
    eprintln!();
    Ok(of)
}

/// The chip filled with stations and 5-tuples, under traffic that it forwards.
fn filled() -> Result<Figures> {
    let mut bed = Bed::new(2)?;
    bed.client.done(&fill())?;
    bed.measure(By::Chip, 64, FILLED_SECONDS)
}

const PEER: &str = "software alone";

/// A number of a run.
type Pick = fn(&Figures) -> f64;

fn rows_of(count: usize, of: &[Vec<(Figures, Figures)>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (size, pairs) in SIZES.iter().zip(of) {
        let mut row = |what: &str, unit, pick: Pick| {
            let both: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (pick(a), pick(b))).collect();
            let claim = format!("{count} ports, {size} B: {what}");
            rows.push(Row::paired(&claim, unit, PEER, &both, Target::None));
        };
        row("offered", "Mpps", |f| f.offered);
        row("forwarded", "Mpps", |f| f.forwarded);
        row("the agent's processors", "cores", |f| f.agent);
        row("the agent's memory (PSS)", "MB", |f| f.pss);
        row("the chip's processors (asicd)", "cores", |f| f.asicd);
    }
    rows
}

/// The figures: what was measured, and the lines that a wire and the processor's ports draw.
fn panels(rows: &[Row]) -> Vec<Panel> {
    let mut panels = Vec::new();
    let of = |count: usize, what: &str, theirs: bool| -> Vec<f64> {
        let claim = |size: &u32| format!("{count} ports, {size} B: {what}");
        let all = SIZES.iter().map(|s| {
            let row = rows.iter().find(|r| r.claim == claim(s));
            row.and_then(|r| if theirs { r.peer_value } else { Some(r.value) })
        });
        all.map(|v| v.unwrap_or(f64::NAN)).collect()
    };
    let curve = |name: &str, values, dashed| Curve {
        name: name.into(),
        values,
        dashed,
    };
    let wire = |bps: f64| SIZES.iter().map(|s| mpps(bps, *s)).collect();
    for count in PORTS {
        panels.push(Panel {
            title: format!("{count} ports: frames a second over the frame's size in bytes"),
            unit: "Mpps",
            from: 0.01,
            to: 100.0,
            curves: vec![
                curve("the chip's flows", of(count, "forwarded", false), false),
                curve("software alone", of(count, "forwarded", true), false),
                curve("offered to the chip", of(count, "offered", false), false),
                curve("lines of 1 Gb/s", wire(count as f64 * LINE_BPS), true),
                curve("the processor's ports, 5 Gb/s", wire(CPU_BPS), true),
            ],
        });
    }
    for count in PORTS {
        let what = "the agent's processors";
        panels.push(Panel {
            title: format!("{count} ports: processors that the agent takes"),
            unit: "",
            from: 0.0001,
            to: 1.0,
            curves: vec![
                curve("the chip's flows", of(count, what, false), false),
                curve("software alone", of(count, what, true), false),
            ],
        });
    }
    panels
}

/// Runs it, and draws `openflow-figures.svg`.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in PORTS {
        rows.extend(rows_of(count, &sizes(o, count)?));
    }
    let title = "Flows in the chip beside software alone (seed 003, figures 7 and 8, table I)";
    let picture = draw(title, &SIZES, &panels(&rows))?;
    std::fs::create_dir_all(&o.out)?;
    std::fs::write(o.out.join("openflow-figures.svg"), picture)?;
    let runs: Vec<Figures> = (0..o.pairs).map(|_| filled()).collect::<Result<_>>()?;
    let mut row = |what: &str, unit, pick: Pick, target| {
        let values: Vec<f64> = runs.iter().map(pick).collect();
        let claim = format!("the chip filled, 2 ports, 64 B, {FILLED_SECONDS} s: {what}");
        rows.push(Row::alone(&claim, unit, &values, target));
    };
    row("forwarded", "Mpps", |f| f.forwarded, Target::None);
    let cores = Target::ValueAtMost(CORES);
    row("the agent's processors", "cores", |f| f.agent, cores);
    let megabytes = Target::ValueAtMost(MEGABYTES);
    row("the agent's memory (PSS)", "MB", |f| f.pss, megabytes);
    row("the agent's memory (RSS)", "MB", |f| f.rss, Target::None);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_send_to_each_other() {
        assert_eq!([1, 2, 7, 8].map(neighbour), [2, 1, 8, 7]);
        let f = frame(3, 64);
        assert_eq!(f.len(), 60);
        assert_eq!((&f[..6], &f[6..12]), (&station(4)[..], &station(3)[..]));
    }

    #[test]
    fn a_line_carries_a_million_and_a_half_short_frames() {
        assert!((mpps(LINE_BPS, 64) - 1.488).abs() < 0.001);
    }
}

//! A frame that no flow is for, to the controller and out of another port, at a steady rate.
//!
//! The sender keeps its times whatever the switch does; a frame's time begins when it is sent. After it was held up it sends
//! what is due at once.

use crate::Options;
use crate::blast::{cpu_seconds, pin};
use crate::ofclient::{Answering, CONTROLLER, flow, packet_out};
use crate::ofswitch::{Calls, PEER, Who, pairs};
use crate::ofwires::{Bed, number, quantile_us};
use crate::report::{Row, Target};
use anyhow::{Context, Result};
use std::os::fd::AsFd;

const RATES: [u32; 2] = [1_000, 10_000];
/// Nanoseconds that the last frame is waited for.
const LAST: u64 = 500_000_000;

/// What came of one run.
struct Figures {
    /// Until the controller has it: half of all, 99 of a hundred.
    asked: [f64; 2],
    /// Until it comes out of the other port.
    through: [f64; 2],
    /// Parts in a million that did not.
    lost: f64,
    /// Microseconds of processor time that the switch took for a frame.
    cpu_us: f64,
}

/// When a frame was where, in nanoseconds; 0: it was not.
#[derive(Clone, Copy, Default)]
struct Way {
    sent: u64,
    asked: u64,
    arrived: u64,
}

fn measure(bed: &mut Bed, conn: &mut Answering, rate: u32, seconds: f64) -> Result<Figures> {
    let count = (f64::from(rate) * seconds) as u32;
    // what is not measured: a switch's first frames
    let warm = rate / 5;
    let all = count + warm;
    let mut ways = vec![Way::default(); all as usize];
    let interval = 1_000_000_000 / u64::from(rate);
    let (mut next, mut due, mut back, mut last) = (0, bed.now(), 0, 0);
    let mut cpu = 0.0;
    while back < all && (next < all || bed.now() < last + LAST) {
        let now = bed.now();
        if next < all && now >= due {
            if next == warm {
                cpu = cpu_seconds(bed.switch.pid)?;
            }
            last = bed.now();
            if let Some(way) = ways.get_mut(next as usize) {
                way.sent = last;
            }
            bed.send(next)?;
            next += 1;
            due += interval;
        }
        let limit = if next < all { due } else { last + LAST };
        bed.wait(Some(conn.as_fd()), limit)?;
        let now = bed.now();
        conn.turn(|frame, out| {
            if let Some(way) = number(frame).and_then(|n| ways.get_mut(n as usize)) {
                way.asked = now;
                out.extend_from_slice(&packet_out(2, frame));
            }
        })?;
        let now = bed.now();
        bed.arrived(|n| {
            if let Some(way) = ways.get_mut(n as usize) {
                way.arrived = now;
                back += 1;
            }
        })?;
    }
    let cpu = cpu_seconds(bed.switch.pid)? - cpu;
    let whole: Vec<&Way> = (ways.iter().skip(warm as usize))
        .filter(|w| w.arrived > 0)
        .collect();
    let of = |to: fn(&Way) -> u64| {
        let mut ns: Vec<u64> = whole.iter().map(|w| to(w) - w.sent).collect();
        [0.5, 0.99].map(|part| quantile_us(&mut ns, part))
    };
    Ok(Figures {
        asked: of(|w| w.asked),
        through: of(|w| w.arrived),
        lost: (1.0 - whole.len() as f64 / f64::from(count)) * 1e6,
        cpu_us: cpu * 1e6 / f64::from(count),
    })
}

fn both_rates(who: Who, seconds: f64) -> Result<Vec<Figures>> {
    let mut bed = Bed::new(who, Calls::Nobody)?;
    let mut client = bed.client()?;
    client.done(&flow(0, &[], CONTROLLER))?;
    let mut conn = Answering::new(client)?;
    RATES
        .iter()
        .map(|rate| measure(&mut bed, &mut conn, *rate, seconds))
        .collect()
}

/// Runs it.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    pin(1)?;
    let pairs = pairs(o.pairs, |who| both_rates(who, o.seconds))?;
    let mut rows = Vec::new();
    for (n, rate) in RATES.iter().enumerate() {
        let of = |pick: &dyn Fn(&Figures) -> f64| -> Result<Vec<(f64, f64)>> {
            let one = |f: &[Figures]| f.get(n).map(pick).context("no such rate");
            pairs.iter().map(|(a, b)| Ok((one(a)?, one(b)?))).collect()
        };
        let at_most = Target::RatioAtMost(1.0);
        let mut row = |what: &str, unit, pick: &dyn Fn(&Figures) -> f64, target| {
            let claim = format!("packet-in at {rate}/s: {what}");
            rows.push(Row::paired(&claim, unit, PEER, &of(pick)?, target));
            anyhow::Ok(())
        };
        row("frame to packet-in, p50", "us", &|f| f.asked[0], at_most)?;
        row("frame to packet-in, p99", "us", &|f| f.asked[1], at_most)?;
        row("frame to frame, p50", "us", &|f| f.through[0], at_most)?;
        row("frame to frame, p99", "us", &|f| f.through[1], at_most)?;
        row("processor time a frame", "us", &|f| f.cpu_us, Target::None)?;
        let lost: Vec<(f64, f64)> = of(&|f| f.lost)?;
        for (who, lost) in [
            ("ofagentd", lost.iter().map(|p| p.0).collect::<Vec<f64>>()),
            (PEER, lost.iter().map(|p| p.1).collect()),
        ] {
            let claim = format!("packet-in at {rate}/s: lost of a million, {who}");
            rows.push(Row::alone(&claim, "frames", &lost, Target::None));
        }
    }
    Ok(rows)
}

//! Frames per second forwarded by flows, from one netdev to another: ofagentd and Open vSwitch's userspace switch, one core each.
//!
//! The sender is that of [`crate::forward`], on the other core. Frames are of one station, or each is of a random one: with
//! 1,000 stations there is a flow for each, with 100,000 every other goes by a flow that matches all.

use crate::Options;
use crate::blast::{self, Blast, Under, frame};
use crate::forward::{By, Part};
use crate::ofclient::{Client, field, flow, put};
use crate::ofswitch::{self, Calls, Who, pairs};
use crate::report::{Row, Target};
use anyhow::{Result, ensure};
use std::time::Duration;

/// Flows that match a station.
const FLOWS: u32 = 1_000;

/// What there is to forward.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    stations: u32,
    /// Until every station has sent often enough for the caches.
    warm: Duration,
}

const CASES: [Case; 3] = [
    Case {
        name: "1 flow",
        stations: 1,
        warm: Duration::from_millis(500),
    },
    Case {
        name: "1,000 flows",
        stations: FLOWS,
        warm: Duration::from_secs(1),
    },
    Case {
        name: "1,000 flows, 100,000 microflows",
        stations: 100_000,
        warm: Duration::from_secs(8),
    },
];

fn program(client: &mut Client, case: Case) -> Result<u32> {
    let mut bytes = Vec::new();
    let mut flows = 0;
    if case.stations != FLOWS {
        let mut fields = Vec::new();
        put(&mut fields, field::IN_PORT, &1_u32.to_be_bytes());
        bytes.extend_from_slice(&flow(1, &fields, 2));
        flows += 1;
    }
    if case.stations > 1 {
        for n in 0..FLOWS {
            let mut fields = Vec::new();
            // as the sender writes it (`xdp_flood::load_redirect_from`)
            let station = [&[2, 0][..], &n.to_ne_bytes()].concat();
            put(&mut fields, field::ETH_SRC, &station);
            bytes.extend_from_slice(&flow(2, &fields, 2));
            flows += 1;
        }
    }
    client.done(&bytes)?;
    Ok(flows)
}

fn measure(who: Who, peers: By, ours: By, case: Case, len: usize, seconds: f64) -> Result<Blast> {
    let rig = blast::topology(1)?;
    let by = if who == Who::Ours { ours } else { peers };
    let running = ofswitch::start(&rig, who, by, Calls::Nobody)?;
    let mut client = Client::new(&rig.ns("sw"))?;
    let flows = program(&mut client, case)?;
    let stand = client.count()?;
    ensure!(stand == flows, "{stand} of {flows} flows stand");
    drop(client);
    let under = Under {
        _keep: Some(running.keep),
        rig,
        sinks: 1,
        pid: Some(running.pid),
    };
    under.blast_from(case.stations, &frame(len), case.warm, seconds)
}

/// Runs it.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let wanted = |part| o.only.is_none_or(|only| only == part);
    let parts = [(Part::Short, 60, 64), (Part::Long, 1514, 1500)];
    for (_, len, bytes) in parts.into_iter().filter(|(part, ..)| wanted(*part)) {
        for ours in By::BOTH {
            let mut peers = ours;
            if ours == By::Xdp
                && let Err(e) = measure(Who::Theirs, By::Xdp, By::Xdp, CASES[0], len, 0.1)
            {
                eprintln!("Open vSwitch has no AF_XDP ports here: {e:#}");
                peers = By::Packet;
            }
            let (peer, target) = match (ours, peers) {
                (By::Packet, _) => ("Open vSwitch, AF_PACKET", Target::RatioAtLeast(2.0)),
                (By::Xdp, By::Packet) => ("Open vSwitch, AF_PACKET", Target::None),
                (By::Xdp, By::Xdp) => ("Open vSwitch, AF_XDP", Target::RatioAtLeast(2.0)),
            };
            for case in CASES {
                let name = format!("{bytes} B, {}{}", case.name, ours.suffix());
                eprintln!("{name}");
                let of = pairs(o.pairs, |who| {
                    measure(who, peers, ours, case, len, o.seconds)
                })?;
                let both = |pick: fn(&Blast) -> f64| -> Vec<(f64, f64)> {
                    of.iter().map(|(a, b)| (pick(a), pick(b))).collect()
                };
                let rate = both(|b| b.mpps);
                rows.push(Row::paired(&name, "Mpps", peer, &rate, target));
                let claim = format!("{name}: a second of its processor time");
                let cpu = both(|b| 1.0 / b.cpu_us);
                rows.push(Row::paired(&claim, "Mframes", peer, &cpu, Target::None));
            }
        }
    }
    Ok(rows)
}

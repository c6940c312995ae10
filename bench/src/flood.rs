//! One frame in, four out, two of them with a tag: asicd beside OVS.
//!
//! ```text
//!                                    ┌─► p2 ═ s0   untagged
//!   g0 ═ p1, untagged, VLAN 10 ──►  ─┼─► p3 ═ s1   untagged
//!        nobody has this address     ├─► p4 ═ s2   802.1Q, VLAN 10
//!                                    └─► p5 ═ s3   802.1Q, VLAN 10
//! ```
//!
//! The chip is programmed by its ABI: not every kernel that measures has bridges that filter VLANs. OVS learns nothing
//! about the destination either.

use crate::Options;
use crate::blast::{self, Blast, Under, pin_process};
use crate::chip::Chip;
use crate::forward::By;
use crate::ovs::{self, Ovs};
use crate::pipeline::bridge_port;
use crate::report::{Row, Target};
use crate::rig::Rig;
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use tandem_abi::{Command, raw};
use tandem_sal::{Attach, Sal, control::Request};

const VLAN: u16 = 10;
const SINKS: usize = 4;
/// Sinks from this one on get a tag.
const TAGGED: usize = 2;
const LEN: usize = 60;

/// A chip that goes on forwarding with what its driver, this program, has put into its tables.
fn start(rig: &Rig, by: By) -> Result<Chip> {
    let cables: Vec<String> = (1..=SINKS + 1).map(|n| by.port(n)).collect();
    let mut words = vec!["--profile", "spectrum-sn2700"];
    for cable in &cables {
        words.extend(["--port", cable]);
    }
    let chip = Chip::start(rig, "sw", rig.instance(), &words)?;
    let mut sal = Sal::connect(
        &chip.driver_socket(),
        "tandem-bench",
        &Default::default(),
        Duration::from_secs(10),
    )?;
    program(&mut sal)?;
    Ok(chip)
}

fn program(sal: &mut Sal) -> Result<()> {
    let (mut control, _io) = sal.attach(Attach::Cold)?;
    let mut run = |what, command: Command| {
        let request = Request {
            op: command.op(),
            cls: command.cls(),
            body: command.body(),
            ..Default::default()
        };
        control.call(what, &request).map(|_| ())
    };
    let vlan = raw::tnd_vlan {
        fid: VLAN,
        flags: raw::TND_VLAN_LEARNING,
        ageing_s: 300,
        ..Default::default()
    };
    run("VLAN", Command::create(&vlan))?;
    for n in 0..=SINKS {
        let port = n as u16 + 1;
        run("port", Command::update(&bridge_port(port)))?;
        let untagged = raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED;
        let member = raw::tnd_vlan_member {
            fid: VLAN,
            port,
            vid: VLAN,
            flags: if n > TAGGED { 0 } else { untagged },
            ..Default::default()
        };
        run("VLAN member", Command::create(&member))?;
    }
    Ok(())
}

fn with_asicd(by: By) -> Result<Under> {
    let rig = blast::topology(SINKS)?;
    let chip = start(&rig, by)?;
    by.ensure(&rig, SINKS + 1)?;
    let pid = chip.pid();
    pin_process(pid, 0)?;
    Ok(Under {
        _keep: Some(Box::new(chip)),
        rig,
        sinks: SINKS,
        pid: Some(pid),
    })
}

fn with_ovs() -> Result<Under> {
    let rig = blast::topology(SINKS)?;
    let (access, trunk) = (format!("tag={VLAN}"), format!("trunks={VLAN}"));
    let (access, trunk) = ([access.as_str()], [trunk.as_str()]);
    let ports: [(&str, &[&str]); SINKS + 1] = [
        ("p1", &access),
        ("p2", &access),
        ("p3", &access),
        ("p4", &trunk),
        ("p5", &trunk),
    ];
    let ovs = Ovs::new(&rig, &ports)?;
    let pid = ovs.pid().context("no process of OVS")?;
    pin_process(pid, 0)?;
    Ok(Under {
        _keep: Some(Box::new(ovs)),
        rig,
        sinks: SINKS,
        pid: Some(pid),
    })
}

/// Copies that arrive; every sink must have got its own kind.
fn copies(under: &Under, seconds: f64) -> Result<Blast> {
    let blast = under.blast(&blast::frame(LEN), seconds)?;
    for (n, (packets, bytes)) in blast.sinks.iter().enumerate() {
        // a veth counts what a program drops without the Ethernet header
        let len = if n < TAGGED { LEN } else { LEN + 4 } - 14;
        ensure!(
            *packets > 0 && *bytes == packets * len as u64,
            "s{n}: {packets} frames of {bytes} bytes without their headers, not of {len} each"
        );
    }
    Ok(blast)
}

/// The rows of this benchmark.
pub fn rows(o: &Options) -> Result<Vec<Row>> {
    let mut ours: [Vec<Blast>; 2] = Default::default();
    let mut theirs: Vec<Blast> = Vec::new();
    for run in 0..o.pairs {
        eprint!("\r  flood 64 B: pair {} of {}  ", run + 1, o.pairs);
        for (by, ours) in By::BOTH.into_iter().zip(&mut ours) {
            ours.push(copies(&with_asicd(by)?, o.seconds)?);
        }
        if ovs::is_there() {
            theirs.push(copies(&with_ovs()?, o.seconds)?);
        }
    }
    eprintln!();
    let mut rows = Vec::new();
    for (by, ours) in By::BOTH.into_iter().zip(&ours) {
        let name = format!("flood 64 B, one to four, two tagged{}", by.suffix());
        let (rate, time) = (
            format!("{name}: copies"),
            format!("{name}: processor time per copy"),
        );
        if theirs.is_empty() {
            let mpps: Vec<f64> = ours.iter().map(|b| b.mpps).collect();
            rows.push(Row::alone(&rate, "Mpps", &mpps, Target::None));
            continue;
        }
        let peer = "OVS, userspace datapath, system ports";
        let beside = |what: fn(&Blast) -> f64| -> Vec<(f64, f64)> {
            let pairs = ours.iter().zip(&theirs);
            pairs.map(|(a, b)| (what(a), what(b))).collect()
        };
        let mpps = beside(|b| b.mpps);
        rows.push(Row::paired(
            &rate,
            "Mpps",
            peer,
            &mpps,
            Target::RatioAtLeast(1.5),
        ));
        let cpu = beside(|b| b.cpu_us);
        rows.push(Row::paired(&time, "us", peer, &cpu, Target::None));
    }
    Ok(rows)
}

//! ofagentd and Open vSwitch's userspace switch, each on one core with the same two ports.
//!
//! ```text
//!   p1 (port 1) ─► switch (core 0) ─► p2 (port 2)      127.0.0.1:6654  it waits for controllers
//!                                                      127.0.0.1:6653  a controller that it calls, if there is one
//! ```

use crate::blast::{Keep, pin_process};
use crate::chip::Chip;
use crate::forward::By;
use crate::ofclient::{Client, PORT};
use crate::ovs::{self, Ovs};
use crate::rig::{Rig, sh, sibling};
use anyhow::{Context, Result, ensure};
use std::process::{Child, Command, Stdio};

/// Where a controller waits for the switches.
pub const CONTROLLER_PORT: u16 = 6653;
/// The name of the peer.
pub const PEER: &str = "Open vSwitch";

/// Where a switch and a controller meet.
pub enum Target {
    /// The switch waits at this port.
    Waits(u16),
    /// It calls this port.
    Calls(u16),
}

/// Whom a switch calls; it always waits for controllers, too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    Nobody,
    Controller,
}

impl Calls {
    pub fn targets(self) -> Vec<Target> {
        match self {
            Calls::Nobody => vec![Target::Waits(PORT)],
            Calls::Controller => vec![Target::Calls(CONTROLLER_PORT), Target::Waits(PORT)],
        }
    }
}

/// Whose switch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Ours,
    Theirs,
}

impl Who {
    /// Both; who goes first changes from pair to pair, as a machine warms up or is shared.
    pub fn turns(pair: usize) -> [Who; 2] {
        if pair.is_multiple_of(2) {
            [Who::Ours, Who::Theirs]
        } else {
            [Who::Theirs, Who::Ours]
        }
    }
}

/// Pairs of figures of both, measured in turns.
pub fn pairs<T>(count: usize, mut measure: impl FnMut(Who) -> Result<T>) -> Result<Vec<(T, T)>> {
    ovs::required()?;
    let mut pairs = Vec::new();
    for pair in 0..count {
        eprint!("\r  pair {} of {count}  ", pair + 1);
        let turns = Who::turns(pair);
        let [first, second] = [measure(turns[0])?, measure(turns[1])?];
        pairs.push(match turns[0] {
            Who::Ours => (first, second),
            Who::Theirs => (second, first),
        });
    }
    eprintln!();
    Ok(pairs)
}

struct Agent {
    process: Child,
    /// Its tables, which outlive it: the next one would begin with them.
    tables: String,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // what it took of a netdev it gives back
        let _ = sh(&["kill", &self.process.id().to_string()]);
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.tables);
    }
}

/// ofagentd in a namespace of the rig, with what it forwards by: `--port` and a cable each, or `--asic`; gone when dropped.
pub fn agent(rig: &Rig, word: &str, by: &[&str], calls: Calls) -> Result<(u32, Keep)> {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", &rig.ns(word)])
        .arg(sibling("ofagentd")?);
    command.args(["--name", &rig.ns(word), "--datapath-id", "1"]);
    // Open vSwitch has no limit unless it is given one
    command.args(["--packet-in-rate", "10000000", "--log", "error"]);
    command.args(by);
    for target in calls.targets() {
        command.arg("--controller").arg(match target {
            Target::Waits(port) => format!("ptcp:127.0.0.1:{port}"),
            Target::Calls(port) => format!("tcp:127.0.0.1:{port}"),
        });
    }
    let process = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start ofagentd")?;
    let tables = format!("/run/tandem/{}/ofagentd.tables", rig.ns(word));
    // `ip netns exec` becomes the program
    Ok((process.id(), Box::new(Agent { process, tables })))
}

/// An agent with a chip below.
pub struct OnChip {
    /// Its process.
    pub agent: u32,
    /// asicd's.
    pub asicd: u32,
    _agent: Keep,
    _chip: Chip,
}

/// ofagentd on an nxp-t1040 with cables to `p1`, `p2` …; `latency`: writes take as long as the profile says.
pub fn on_chip(rig: &Rig, word: &str, ports: usize, latency: bool) -> Result<OnChip> {
    let cables: Vec<String> = (1..=ports).map(|n| By::Packet.port(n)).collect();
    let mut words = vec!["--profile", "nxp-t1040"];
    for cable in &cables {
        words.extend(["--port", cable]);
    }
    words.extend(latency.then_some("--latency"));
    let chip = Chip::start(rig, word, &rig.ns(word), &words)?;
    let (pid, keep) = agent(rig, word, &["--asic"], Calls::Nobody)?;
    Ok(OnChip {
        agent: pid,
        asicd: chip.pid(),
        _agent: keep,
        _chip: chip,
    })
}

/// A switch that runs.
pub struct Running {
    /// Its process.
    pub pid: u32,
    /// What ends it when it is dropped.
    pub keep: Keep,
}

fn ovs(rig: &Rig, by: By, calls: Calls) -> Result<(u32, Keep)> {
    let port = |name| {
        let number = if name == "p1" {
            "ofport_request=1"
        } else {
            "ofport_request=2"
        };
        let mut words = vec!["--", "set", "interface", name, number];
        if by == By::Xdp {
            words.push("type=afxdp");
        }
        words
    };
    let (p1, p2) = (port("p1"), port("p2"));
    let ovs = Ovs::new(rig, &[("p1", &p1), ("p2", &p2)])?;
    ovs.controllers(calls)?;
    let pid = ovs.pid().context("no process of OVS")?;
    Ok((pid, Box::new(ovs)))
}

/// Starts a switch over `p1` and `p2` of the rig's namespace `sw`.
pub fn start(rig: &Rig, who: Who, by: By, calls: Calls) -> Result<Running> {
    let (pid, keep) = match who {
        Who::Ours => {
            let (p1, p2) = (by.port(1), by.port(2));
            agent(rig, "sw", &["--port", &p1, "--port", &p2], calls)?
        }
        Who::Theirs => ovs(rig, by, calls)?,
    };
    // all of its threads are there when it answers
    Client::new(&rig.ns("sw"))?;
    pin_process(pid, 0)?;
    if by == By::Xdp {
        for dev in ["p1", "p2"] {
            let link = sh(&["ip", "-n", &rig.ns("sw"), "-j", "-d", "link", "show", dev])?;
            ensure!(link.contains("\"xdp\""), "{dev} is not by AF_XDP here");
        }
    }
    Ok(Running { pid, keep })
}

//! Flows from a controller until a barrier is answered, beside Open vSwitch's userspace switch, by the same client.
//!
//! ```text
//!  client ── flow_mod × N, barrier ──► ofagentd        ours: N over the time until the barrier's answer
//!        └── flow_mod × N, barrier ──► ovs-vswitchd    peer
//! ```
//! Afterwards the switch is asked how many flows it has, and an error on the way ends the benchmark: only flows that stand count.

use crate::Options;
use crate::ovs::{self, Ovs};
use crate::report::{Row, Target};
use crate::rig::{Rig, sibling};
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tandem_linux::netns;

const PORT: u16 = 6654;
/// Flows of one run, and flows that are confirmed one by one.
const FLOWS: u32 = 50_000;
const CONFIRMED: u32 = 5_000;

const VERSION: u8 = 4;
const HELLO: u8 = 0;
const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const FLOW_MOD: u8 = 14;
const MULTIPART_REQUEST: u8 = 18;
const BARRIER_REQUEST: u8 = 20;
const ANY: u32 = u32::MAX;
const ADD: u8 = 0;
const DELETE: u8 = 3;

/// What a flow matches.
#[derive(Clone, Copy)]
enum Kind {
    Mac,
    Ip,
    FiveTuple,
}

impl Kind {
    const ALL: [(Kind, &'static str); 3] = [
        (Kind::Mac, "MAC"),
        (Kind::Ip, "IP"),
        (Kind::FiveTuple, "5-tuple"),
    ];

    /// The `n`th match: its fields (7.2.3.7), each with its header.
    fn fields(self, n: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |field: u8, value: &[u8]| {
            out.extend_from_slice(&[0x80, 0, field << 1, value.len() as u8]);
            out.extend_from_slice(value);
        };
        // neighbours in number are none in value
        let n = n.wrapping_mul(0x9e37_79b1);
        match self {
            Kind::Mac => put(3, &[&[2, 0][..], &n.to_be_bytes()].concat()),
            Kind::Ip => {
                put(5, &[8, 0]);
                put(12, &n.to_be_bytes());
            }
            Kind::FiveTuple => {
                put(5, &[8, 0]);
                put(10, &[6]);
                put(11, &n.to_be_bytes());
                put(12, &(!n).to_be_bytes());
                put(13, &(n as u16).to_be_bytes());
                put(14, &((n >> 16) as u16).to_be_bytes());
            }
        }
        out
    }
}

fn message(kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![VERSION, kind];
    out.extend_from_slice(&(body.len() as u16 + 8).to_be_bytes());
    out.extend_from_slice(&xid.to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// A flow of table 0 that sends to port 1, or the end of all flows.
fn flow_mod(command: u8, fields: &[u8]) -> Vec<u8> {
    let mut body = vec![0; 16];
    body.extend_from_slice(&[if command == DELETE { 255 } else { 0 }, command, 0, 0, 0, 0]);
    body.extend_from_slice(&0x8000_u16.to_be_bytes());
    for any in [ANY; 3] {
        body.extend_from_slice(&any.to_be_bytes());
    }
    body.extend_from_slice(&[0; 4]);
    let length = 4 + fields.len();
    body.extend_from_slice(&[0, 1]);
    body.extend_from_slice(&(length as u16).to_be_bytes());
    body.extend_from_slice(fields);
    body.resize(body.len() + length.next_multiple_of(8) - length, 0);
    if command == ADD {
        // apply actions: output to port 1
        body.extend_from_slice(&[0, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1]);
        body.extend_from_slice(&[0; 8]);
    }
    message(FLOW_MOD, 1, &body)
}

struct Client(TcpStream);

impl Client {
    /// Connects within a namespace, and says hello.
    fn new(ns: &str) -> Result<Client> {
        let begin = Instant::now();
        let stream = loop {
            match netns::run_in_named(Some(ns), || TcpStream::connect(("127.0.0.1", PORT))) {
                Ok(s) => break s,
                Err(_) if begin.elapsed() < Duration::from_secs(10) => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(e) => return Err(e).context("the switch takes no controller"),
            }
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut client = Client(stream);
        client.0.write_all(&message(HELLO, 0, &[]))?;
        client.barrier(0)?;
        Ok(client)
    }

    /// Reads until a message of this transaction comes; its body.
    fn answer(&mut self, xid: u32) -> Result<Vec<u8>> {
        loop {
            let mut head = [0; 8];
            self.0.read_exact(&mut head)?;
            let [_, kind, l0, l1, x0, x1, x2, x3] = head;
            let mut body = vec![0; usize::from(u16::from_be_bytes([l0, l1])).saturating_sub(8)];
            self.0.read_exact(&mut body)?;
            match kind {
                ERROR => bail!("the switch answered an error: {:?}", body.get(..4)),
                ECHO_REQUEST => {
                    let theirs = u32::from_be_bytes([x0, x1, x2, x3]);
                    self.0.write_all(&message(ECHO_REPLY, theirs, &body))?;
                }
                HELLO => {}
                _ if u32::from_be_bytes([x0, x1, x2, x3]) == xid => return Ok(body),
                _ => {}
            }
        }
    }

    fn barrier(&mut self, xid: u32) -> Result<()> {
        self.0.write_all(&message(BARRIER_REQUEST, xid, &[]))?;
        self.answer(xid).map(|_| ())
    }

    fn clear(&mut self) -> Result<()> {
        self.0.write_all(&flow_mod(DELETE, &[]))?;
        self.barrier(2)
    }

    /// How many flows there are, by an aggregate.
    fn count(&mut self) -> Result<u32> {
        let mut body = vec![0, 2, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0];
        body.extend_from_slice(&[255; 8]);
        body.extend_from_slice(&[0; 20]);
        body.extend_from_slice(&[0, 1, 0, 4, 0, 0, 0, 0]);
        self.0.write_all(&message(MULTIPART_REQUEST, 3, &body))?;
        let got = self.answer(3)?;
        let at = got.get(24..28).context("no aggregate in the answer")?;
        Ok(u32::from_be_bytes(at.try_into()?))
    }

    /// Flows a second, one barrier behind them all.
    fn together(&mut self, kind: Kind) -> Result<f64> {
        self.clear()?;
        let mut bytes = Vec::new();
        for n in 0..FLOWS {
            bytes.extend_from_slice(&flow_mod(ADD, &kind.fields(n)));
        }
        bytes.extend_from_slice(&message(BARRIER_REQUEST, 4, &[]));
        let begin = Instant::now();
        self.0.write_all(&bytes)?;
        self.answer(4)?;
        let took = begin.elapsed().as_secs_f64();
        let there = self.count()?;
        ensure!(there == FLOWS, "{there} of {FLOWS} flows stand");
        Ok(f64::from(FLOWS) / took)
    }

    /// Flows a second, a barrier behind each, with those of `together` standing; and half of the answers took so many
    /// microseconds.
    fn one_by_one(&mut self, kind: Kind) -> Result<(f64, f64)> {
        let mut took = Vec::new();
        let begin = Instant::now();
        for n in FLOWS..FLOWS + CONFIRMED {
            let mut bytes = flow_mod(ADD, &kind.fields(n));
            bytes.extend_from_slice(&message(BARRIER_REQUEST, n, &[]));
            let sent = Instant::now();
            self.0.write_all(&bytes)?;
            self.answer(n)?;
            took.push(sent.elapsed().as_secs_f64() * 1e6);
        }
        let rate = f64::from(CONFIRMED) / begin.elapsed().as_secs_f64();
        took.sort_by(f64::total_cmp);
        Ok((rate, took.get(took.len() / 2).copied().unwrap_or(f64::NAN)))
    }
}

/// Figures of one kind of flow: all at once, one by one, half of the barriers.
type Figures = (f64, f64, f64);

fn measure(ns: &str, kind: Kind) -> Result<Figures> {
    let mut client = Client::new(ns)?;
    let rate = client.together(kind)?;
    let (confirmed, barrier) = client.one_by_one(kind)?;
    client.clear()?;
    Ok((rate, confirmed, barrier))
}

struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs it.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    ensure!(
        ovs::is_there(),
        "the peer is missing: apt-get install openvswitch-switch"
    );
    let rig = Rig::new(&["sw", "own"])?;
    for ns in ["sw", "own"] {
        rig.veth((ns, "p1"), (ns, "q1"))?;
    }
    let peer = Ovs::new(&rig, &[("p1", &[])])?;
    peer.listen(PORT)?;
    let agent = Command::new("ip")
        .args(["netns", "exec", &rig.ns("own")])
        .arg(sibling("ofagentd")?)
        .args([
            "--name",
            &rig.ns("own"),
            "--datapath-id",
            "1",
            "--port",
            "swp1=p1",
        ])
        .args([
            "--controller",
            &format!("ptcp:127.0.0.1:{PORT}"),
            "--log",
            "error",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start ofagentd")?;
    let _agent = Agent(agent);
    let (own, theirs) = (rig.ns("own"), rig.ns("sw"));
    let mut rows = Vec::new();
    for (kind, word) in Kind::ALL {
        let mut pairs: Vec<(Figures, Figures)> = Vec::new();
        for pair in 0..o.pairs {
            // who goes first changes from pair to pair
            pairs.push(if pair % 2 == 0 {
                let ours = measure(&own, kind)?;
                (ours, measure(&theirs, kind)?)
            } else {
                let peers = measure(&theirs, kind)?;
                (measure(&own, kind)?, peers)
            });
        }
        let peer = "Open vSwitch";
        let of = |pick: fn(&Figures) -> f64| -> Vec<(f64, f64)> {
            pairs.iter().map(|(a, b)| (pick(a), pick(b))).collect()
        };
        rows.push(Row::paired(
            &format!("flow_mod {word}: {FLOWS} and a barrier"),
            "flows/s",
            peer,
            &of(|f| f.0),
            Target::RatioAtLeast(3.0),
        ));
        rows.push(Row::paired(
            &format!("flow_mod {word}: a barrier behind each, {FLOWS} standing"),
            "flows/s",
            peer,
            &of(|f| f.1),
            Target::RatioAtLeast(1.0),
        ));
        rows.push(Row::paired(
            &format!("flow_mod {word}: barrier p50, {FLOWS} standing"),
            "us",
            peer,
            &of(|f| f.2),
            Target::RatioAtMost(1.0),
        ));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_mod_has_its_length_and_is_padded() {
        for (kind, length) in [(Kind::Mac, 88), (Kind::Ip, 96), (Kind::FiveTuple, 120)] {
            let m = flow_mod(ADD, &kind.fields(7));
            assert_eq!(m.len(), length);
            assert_eq!(m.get(2..4), Some(&(length as u16).to_be_bytes()[..]));
        }
    }

    #[test]
    fn fields_differ() {
        let all: std::collections::HashSet<_> =
            (0..1000).map(|n| Kind::FiveTuple.fields(n)).collect();
        assert_eq!(all.len(), 1000);
    }
}

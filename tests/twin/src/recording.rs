//! What one kernel did in one history: the contract between who records and who plays.
//!
//! ```text
//!   Recording
//!   ├─ ports      the netdevs that stand for front-panel ports: their far ends are the hosts' wires
//!   ├─ probes     frames, each sent again at every rest
//!   └─ steps      0: what was there at first, no command. Then, for each command:
//!        ├─ command  request, errno
//!        ├─ told     datagrams of the monitor, in their order, up to the rest
//!        ├─ dumps    everything, as the kernel shows it at that rest
//!        └─ answers  what became of each probe at that rest
//! ```
//!
//! At a rest nothing is under way in the kernel: each notification has been read, no neighbour is being asked for. The
//! probes change nothing any more: they have been sent before (what bridges learned of them has been told, and is in the
//! dumps), and the answers are those of the last sending, one probe at a time. In JSON bytes are lowercase hexadecimal digits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The number of this format.
pub const FORMAT: u32 = 1;

/// Bytes, written as hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(self.0.len() * 2);
        for byte in &self.0 {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        to.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        let digit = |c: &u8| char::from(*c).to_digit(16);
        let pairs = text.as_bytes().chunks(2);
        let byte = |pair: &[u8]| match pair {
            [a, b] => Some((digit(a)? << 4 | digit(b)?) as u8),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
        bytes.map(Bytes).ok_or_else(|| {
            serde::de::Error::custom("an even number of hexadecimal digits is wanted")
        })
    }
}

/// One history of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// [`FORMAT`].
    pub format: u32,
    /// What the history was drawn from.
    pub seed: u64,
    /// `uname -r` of the kernel.
    pub kernel: String,
    /// Constructs that it had, by the names of `tests/scenario/constructs.py`.
    pub have: Vec<String>,
    /// Front-panel ports, from number 1 on.
    pub ports: Vec<Port>,
    /// Frames that are sent at every rest; an answer names its probe by the place here.
    pub probes: Vec<Probe>,
    /// What happened, in order.
    pub steps: Vec<Step>,
}

/// A netdev that stands for a front-panel port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// `swpN`.
    pub name: String,
    /// Its interface index.
    pub ifindex: u32,
    /// Its address.
    pub mac: [u8; 6],
}

/// A frame that a host sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    /// The port at whose wire the host is, from 1 on.
    pub port: u16,
    /// The frame, from its destination address on, without its check sequence.
    pub frame: Bytes,
}

/// A command and all that followed from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What was asked of the kernel; none in the first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// The monitor's datagrams, as they were read.
    pub told: Vec<Told>,
    /// All tables at the rest after it.
    pub dumps: Vec<Dump>,
    /// Files below `/proc` that say what no message does, by path, as a process of that namespace reads them: sysctls
    /// (`switch/netlink/src/sysctl.rs` has the list), and of `net/ipv6_route` the lines of prefixes that have several. All in the
    /// first step, then those that changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// What became of the probes at that rest: one for each of [`Recording::probes`], in their order.
    pub answers: Vec<Answer>,
}

/// A request to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// In iproute2's words, for people: `ip route add …`.
    pub text: String,
    /// The message or messages that were sent to rtnetlink; empty for what is no netlink (a sysctl).
    pub request: Bytes,
    /// 0 or a positive errno.
    pub errno: i32,
}

/// Which of the monitor's sockets something came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Socket {
    /// NETLINK_ROUTE.
    Route,
    /// NETLINK_NETFILTER.
    Netfilter,
}

/// A datagram of notifications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// By which socket.
    pub socket: Socket,
    /// The datagram.
    pub data: Bytes,
}

/// The answer to a dump request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    /// By which socket.
    pub socket: Socket,
    /// The request, as the listener sends it, without a filter: sequence number 0.
    pub request: Bytes,
    /// The datagrams, the last with NLMSG_DONE.
    pub data: Vec<Bytes>,
}

/// What became of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Answer {
    /// Frames that came out because of it: port and frame, sorted. Those that the kernel itself made (ARP, ND, ICMP errors,
    /// echo replies) are among them and are marked.
    pub out: Vec<Out>,
    /// Nothing came out, and it may be that the kernel kept an ICMP error back: the address may have had as many "no route"
    /// as it gives at once (net/ipv4/route.c `ip_error`; that limit is the machine's, no namespace's).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
}

/// A frame that came out at a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Out {
    /// The port, from 1 on.
    pub port: u16,
    /// The frame.
    pub frame: Bytes,
    /// The kernel made it: it is no copy of the probe.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made: bool,
}

impl Recording {
    /// Reads one from JSON.
    ///
    /// # Errors
    /// One line: what is not as this format has it.
    pub fn parse(text: &str) -> Result<Recording, Malformed> {
        let recording: Recording =
            serde_json::from_str(text).map_err(|e| Malformed(e.to_string()))?;
        if recording.format != FORMAT {
            return Err(Malformed(format!(
                "format {} (this one reads {FORMAT})",
                recording.format
            )));
        }
        for (n, step) in recording.steps.iter().enumerate() {
            if step.answers.len() != recording.probes.len() {
                return Err(Malformed(format!(
                    "step {n} has {} answers to {} probes",
                    step.answers.len(),
                    recording.probes.len()
                )));
            }
        }
        Ok(recording)
    }
}

/// Is that (`uname -r`) a kernel older than this version? No number: it is none.
#[must_use]
pub fn is_older(kernel: &str, than: (u32, u32)) -> bool {
    let mut numbers = kernel.split(['.', '-']).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < than,
        _ => false,
    }
}

/// Not a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a recording: {0}")]
pub struct Malformed(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let recording = Recording {
            format: FORMAT,
            seed: 7,
            probes: vec![Probe {
                port: 1,
                frame: Bytes(vec![0, 0x7f, 0xff]),
            }],
            steps: vec![Step {
                answers: vec![Answer {
                    out: vec![Out {
                        port: 2,
                        frame: Bytes(vec![1]),
                        made: true,
                    }],
                    limited: true,
                }],
                ..Step::default()
            }],
            ..Recording::default()
        };
        let text = serde_json::to_string(&recording).unwrap();
        assert!(text.contains("\"007fff\""), "{text}");
        assert_eq!(Recording::parse(&text), Ok(recording.clone()));
        assert!(Recording::parse(&text.replace("\"format\":1", "\"format\":9")).is_err());
        assert!(Recording::parse(&text.replace("007fff", "007ff")).is_err());
        assert!(Recording::parse(&text.replace("007fff", "00é9")).is_err());
        let mut short = recording;
        short.steps[0].answers.clear();
        assert!(Recording::parse(&serde_json::to_string(&short).unwrap()).is_err());
    }
}

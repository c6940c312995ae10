// SPDX-License-Identifier: Apache-2.0
//! What `ping` and `traceroute` need of an engine: one question at a time, and what comes back.

use std::net::Ipv4Addr;
use std::time::Duration;

/// A question to a host: an ICMP echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// To whom.
    pub to: Ipv4Addr,
    /// Octets of the IPv4 datagram, 36 at least.
    pub size: u16,
    /// Over so many routers at most.
    pub ttl: u8,
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The host's answer.
    Answer(Ipv4Addr),
    /// A router's: it goes no further for its TTL.
    Expired(Ipv4Addr),
    /// Somebody's: that host, network or port is not reached.
    Unreachable(Ipv4Addr),
}

/// Who asks. Between its calls nothing is waited for.
pub trait Prober: Send {
    /// Asks; what was asked before is not waited for any more.
    ///
    /// # Errors
    /// It can't be sent, in one line.
    fn ask(&mut self, question: &Question) -> Result<(), String>;

    /// Waits no longer than this for what comes back to the last question.
    fn hear(&mut self, within: Duration) -> Option<Heard>;
}

// SPDX-License-Identifier: Apache-2.0
//! What is set of a bridge and its ports: 17.13, 17.14, tables 17-1 to 17-3.

use std::fmt;

/// Ports of one bridge.
pub const MOST_PORTS: usize = 256;
/// Table 17-3: the cost of a port, at most.
pub const MOST_COST: u32 = 200_000_000;

/// Which protocol the bridge speaks: Force Protocol Version (17.13.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// 0: as if it were a bridge of before 2004.
    Stp,
    /// 2.
    #[default]
    Rstp,
}

/// A bridge. The defaults are the standard's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its address, the lower part of its identifier.
    pub mac: [u8; 6],
    /// 0 to 61,440 in steps of 4096.
    pub priority: u16,
    /// Seconds, 1 to 10. The standard of 2004 has 2 and permits 1 and 2; that of 1998, and consoles since, permit more.
    pub hello: u8,
    /// Seconds, 6 to 40.
    pub max_age: u8,
    /// Seconds, 4 to 30.
    pub forward_delay: u8,
    /// BPDUs that a port may send at once, and each second one more; 1 to 10.
    pub tx_hold_count: u8,
    /// What it speaks.
    pub version: Version,
}

impl Config {
    /// A bridge as it is out of its box.
    pub fn new(mac: [u8; 6]) -> Config {
        Config {
            mac,
            priority: 32_768,
            hello: 2,
            max_age: 20,
            forward_delay: 15,
            tx_hold_count: 6,
            version: Version::Rstp,
        }
    }

    /// Is each value one of those that the standard permits, and together?
    pub fn check(&self) -> Result<(), Refusal> {
        if !self.priority.is_multiple_of(4096) {
            return Err(Refusal::BridgePriority(self.priority));
        }
        within("hello time", self.hello, 1, 10)?;
        within("max age", self.max_age, 6, 40)?;
        within("forward delay", self.forward_delay, 4, 30)?;
        within("transmit hold count", self.tx_hold_count, 1, 10)?;
        // 17.14
        if 2 * (self.forward_delay - 1) < self.max_age {
            return Err(Refusal::ForwardDelayTooShort);
        }
        if self.max_age < 2 * (self.hello + 1) {
            return Err(Refusal::MaxAgeTooShort);
        }
        Ok(())
    }
}

/// Is the link between two bridges alone? 6.4.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PointToPoint {
    /// One that is full duplex is.
    #[default]
    Auto,
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// The source of what it sends.
    pub mac: [u8; 6],
    /// 0 to 240 in steps of 16.
    pub priority: u8,
    /// 1 to 200,000,000; `None`: by the link's speed.
    pub cost: Option<u32>,
    /// 17.13.1: it is taken for an edge port (portfast) until a BPDU comes.
    pub admin_edge: bool,
    /// 17.13.3: it becomes one when for three seconds nobody answers its proposal.
    pub auto_edge: bool,
    /// Is its link between two bridges?
    pub point_to_point: PointToPoint,
    /// A BPDU takes it out of service.
    pub bpdu_guard: bool,
    /// It never becomes the Root Port (802.1Q's restrictedRole): who claims to be a better root behind it is cut off.
    pub root_guard: bool,
}

impl PortConfig {
    /// A port as it is out of its box.
    pub fn new(mac: [u8; 6]) -> PortConfig {
        PortConfig {
            mac,
            priority: 128,
            cost: None,
            admin_edge: false,
            auto_edge: true,
            point_to_point: PointToPoint::Auto,
            bpdu_guard: false,
            root_guard: false,
        }
    }

    /// Is each value one of those that the standard permits?
    pub fn check(&self) -> Result<(), Refusal> {
        if !self.priority.is_multiple_of(16) {
            return Err(Refusal::PortPriority(self.priority));
        }
        match self.cost {
            Some(cost) if !(1..=MOST_COST).contains(&cost) => Err(Refusal::Cost(cost)),
            _ => Ok(()),
        }
    }
}

/// A link that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Mbit/s; 0: nobody knows.
    pub mbps: u32,
    /// Both sides may send at once.
    pub full_duplex: bool,
}

impl Link {
    /// Table 17-3: 20 Tbit/s by the link's speed.
    pub fn cost(&self) -> u32 {
        match 20_000_000u32.checked_div(self.mbps) {
            Some(cost) => cost.max(1),
            None => MOST_COST,
        }
    }
}

/// Why something is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not a multiple of 4096.
    BridgePriority(u16),
    /// Not a multiple of 16.
    PortPriority(u8),
    /// Not within its range.
    Range {
        /// Of what.
        what: &'static str,
        /// What was given.
        given: u8,
        /// The least that is permitted.
        least: u8,
        /// The most.
        most: u8,
    },
    /// 2 × (forward delay − 1) ≥ max age does not hold.
    ForwardDelayTooShort,
    /// Max age ≥ 2 × (hello time + 1) does not hold.
    MaxAgeTooShort,
    /// Not a port's cost.
    Cost(u32),
    /// Not a port's number.
    PortNumber(u16),
    /// There are as many ports as there may be.
    TooManyPorts,
    /// There is no such port.
    NoPort(u16),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::BridgePriority(p) => {
                write!(f, "bridge priority {p} is not a multiple of 4096")
            }
            Refusal::PortPriority(p) => write!(f, "port priority {p} is not a multiple of 16"),
            Refusal::Range {
                what,
                given,
                least,
                most,
            } => {
                write!(f, "{what} {given} is not within {least} to {most}")
            }
            Refusal::ForwardDelayTooShort => {
                f.write_str("2 × (forward delay − 1) is less than max age")
            }
            Refusal::MaxAgeTooShort => f.write_str("max age is less than 2 × (hello time + 1)"),
            Refusal::Cost(c) => write!(f, "cost {c} is not within 1 to {MOST_COST}"),
            Refusal::PortNumber(n) => write!(f, "port number {n} is not within 1 to 4095"),
            Refusal::TooManyPorts => write!(f, "there are {MOST_PORTS} ports already"),
            Refusal::NoPort(n) => write!(f, "there is no port {n}"),
        }
    }
}

impl std::error::Error for Refusal {}

fn within(what: &'static str, given: u8, least: u8, most: u8) -> Result<(), Refusal> {
    match (least..=most).contains(&given) {
        true => Ok(()),
        false => Err(Refusal::Range {
            what,
            given,
            least,
            most,
        }),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Bridge Protocol Data Units: clause 9, and the frame around them (7.12.3).
//!
//! ```text
//!   Ethernet                    LLC        BPDU
//!   01:80:c2:00:00:00 │ source │ length │ 42 42 03 │ 0000 │ version │ type │ … 35 octets (Config), 36 (RST), 4 (TCN)
//! ```
//!
//! What comes behind the octets that a type has (padding, parameters of later versions) is not looked at.

use crate::priority::{BridgeId, PortId, Vector};
use crate::times::Times;

/// The group address that all bridges listen to (table 7-10); nothing forwards what is sent to it.
pub const GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];

const LLC: [u8; 3] = [0x42, 0x42, 0x03];
const HEADER: usize = 14;
/// The least that an Ethernet frame has, without its check sequence.
const LEAST_FRAME: usize = 60;

const CONFIG: u8 = 0x00;
const RST: u8 = 0x02;
const TCN: u8 = 0x80;

/// 9.3.3: bits of the octet of flags.
mod flag {
    pub const TOPOLOGY_CHANGE: u8 = 1;
    pub const PROPOSAL: u8 = 1 << 1;
    pub const ROLE_SHIFT: u8 = 2;
    pub const LEARNING: u8 = 1 << 4;
    pub const FORWARDING: u8 = 1 << 5;
    pub const AGREEMENT: u8 = 1 << 6;
    pub const TOPOLOGY_CHANGE_ACK: u8 = 1 << 7;
}

/// The role that an RST BPDU's sender has on its port (9.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentRole {
    /// 0, which nobody sends: taken as if a Config BPDU said it (9.3.3).
    Unknown,
    /// 1: Alternate or Backup Port.
    AlternateBackup,
    /// 2.
    Root,
    /// 3.
    Designated,
}

/// What only an RST BPDU says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rapid {
    /// The port's role.
    pub role: SentRole,
    /// May this port forward?
    pub proposal: bool,
    /// Yes, it may.
    pub agreement: bool,
    /// The port learns.
    pub learning: bool,
    /// The port forwards.
    pub forwarding: bool,
}

/// Parameters of Config and RST BPDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Root, cost, bridge and port as the sender has them.
    pub vector: Vector,
    /// Age and timers.
    pub times: Times,
    /// The topology changes.
    pub topology_change: bool,
    /// A TCN BPDU has been heard (Config BPDUs only; an RST BPDU's bit is 0).
    pub topology_change_ack: bool,
}

/// One BPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bpdu {
    /// 9.3.1.
    Config(Info),
    /// 9.3.2.
    Tcn,
    /// 9.3.3.
    Rst(Info, Rapid),
}

/// Why a frame is no BPDU that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not to the bridges' group address.
    NotForBridges,
    /// An Ethernet type where the length of an LLC frame is expected.
    NoLength,
    /// Not LLC 42 42 03.
    NoBridgeLlc,
    /// Fewer octets than it says, or than its type has.
    Short,
    /// The protocol identifier is not 0.
    Protocol(u16),
    /// A type that version 2 does not know, or RST BPDU of a version before 2.
    Type(u8),
    /// A Config BPDU that is as old as it may become (9.3.4).
    TooOld,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::NotForBridges => f.write_str("not for 01:80:c2:00:00:00"),
            Malformed::NoLength => f.write_str("an Ethernet type instead of a length"),
            Malformed::NoBridgeLlc => f.write_str("its LLC is not 42 42 03"),
            Malformed::Short => f.write_str("too short"),
            Malformed::Protocol(p) => write!(f, "protocol {p:#06x}, not 0"),
            Malformed::Type(t) => write!(f, "BPDU type {t:#04x} of its version is unknown"),
            Malformed::TooOld => f.write_str("its message age is not less than its max age"),
        }
    }
}

impl std::error::Error for Malformed {}

/// Octets that are read one after the other, and never beyond the end.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[b]| b)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_be_bytes)
    }
}

impl Bpdu {
    /// The BPDU of an Ethernet frame without tags and check sequence.
    pub fn from_frame(frame: &[u8]) -> Result<Bpdu, Malformed> {
        let mut r = Reader(frame);
        if r.take()? != GROUP {
            return Err(Malformed::NotForBridges);
        }
        let _source: [u8; 6] = r.take()?;
        let length = usize::from(r.u16()?);
        if length > 1500 {
            return Err(Malformed::NoLength);
        }
        let mut r = Reader(r.0.get(..length).ok_or(Malformed::Short)?);
        if r.take()? != LLC {
            return Err(Malformed::NoBridgeLlc);
        }
        Bpdu::from_octets(r.0)
    }

    /// The BPDU behind the LLC header: 9.3.4, without what only the port knows (its own identifiers).
    pub fn from_octets(octets: &[u8]) -> Result<Bpdu, Malformed> {
        let mut r = Reader(octets);
        match r.u16()? {
            0 => {}
            other => return Err(Malformed::Protocol(other)),
        }
        let version = r.u8()?;
        match r.u8()? {
            TCN => Ok(Bpdu::Tcn),
            CONFIG => {
                let (_, info) = info(&mut r)?;
                if info.times.message_age >= info.times.max_age {
                    return Err(Malformed::TooOld);
                }
                Ok(Bpdu::Config(info))
            }
            // later versions are read as version 2
            RST if version >= 2 => {
                let (flags, mut info) = info(&mut r)?;
                let _version_1_length = r.u8()?;
                info.topology_change_ack = false;
                Ok(Bpdu::Rst(info, rapid(flags)))
            }
            other => Err(Malformed::Type(other)),
        }
    }

    /// What it says of the sender's tree; a TCN BPDU says nothing.
    pub fn info(&self) -> Option<&Info> {
        match self {
            Bpdu::Config(info) | Bpdu::Rst(info, _) => Some(info),
            Bpdu::Tcn => None,
        }
    }

    /// The frame, padded to what Ethernet asks for at least.
    pub fn to_frame(&self, source: [u8; 6]) -> Vec<u8> {
        let mut body = Vec::with_capacity(40);
        body.extend(LLC);
        match self {
            Bpdu::Tcn => body.extend([0, 0, 0, TCN]),
            Bpdu::Config(info) => {
                body.extend([0, 0, 0, CONFIG]);
                let mut flags = change(info);
                if info.topology_change_ack {
                    flags |= flag::TOPOLOGY_CHANGE_ACK;
                }
                put(&mut body, flags, info);
            }
            Bpdu::Rst(info, rapid) => {
                body.extend([0, 0, 2, RST]);
                put(&mut body, change(info) | bits(rapid), info);
                body.push(0); // version 1 length: there is nothing of version 1
            }
        }
        let mut frame = Vec::with_capacity(LEAST_FRAME);
        frame.extend(GROUP);
        frame.extend(source);
        frame.extend((body.len() as u16).to_be_bytes());
        debug_assert_eq!(frame.len(), HEADER);
        frame.extend(body);
        frame.resize(frame.len().max(LEAST_FRAME), 0);
        frame
    }
}

fn info(r: &mut Reader<'_>) -> Result<(u8, Info), Malformed> {
    let flags = r.u8()?;
    let info = Info {
        vector: Vector {
            root: BridgeId(r.u64()?),
            cost: r.u32()?,
            bridge: BridgeId(r.u64()?),
            port: PortId(r.u16()?),
        },
        times: Times {
            message_age: r.u16()?,
            max_age: r.u16()?,
            hello: r.u16()?,
            forward_delay: r.u16()?,
        },
        topology_change: flags & flag::TOPOLOGY_CHANGE != 0,
        topology_change_ack: flags & flag::TOPOLOGY_CHANGE_ACK != 0,
    };
    Ok((flags, info))
}

fn put(out: &mut Vec<u8>, flags: u8, info: &Info) {
    out.push(flags);
    out.extend(info.vector.root.0.to_be_bytes());
    out.extend(info.vector.cost.to_be_bytes());
    out.extend(info.vector.bridge.0.to_be_bytes());
    out.extend(info.vector.port.0.to_be_bytes());
    let t = &info.times;
    for time in [t.message_age, t.max_age, t.hello, t.forward_delay] {
        out.extend(time.to_be_bytes());
    }
}

fn change(info: &Info) -> u8 {
    match info.topology_change {
        true => flag::TOPOLOGY_CHANGE,
        false => 0,
    }
}

fn rapid(flags: u8) -> Rapid {
    Rapid {
        role: match flags >> flag::ROLE_SHIFT & 3 {
            1 => SentRole::AlternateBackup,
            2 => SentRole::Root,
            3 => SentRole::Designated,
            _ => SentRole::Unknown,
        },
        proposal: flags & flag::PROPOSAL != 0,
        agreement: flags & flag::AGREEMENT != 0,
        learning: flags & flag::LEARNING != 0,
        forwarding: flags & flag::FORWARDING != 0,
    }
}

fn bits(rapid: &Rapid) -> u8 {
    let role = match rapid.role {
        SentRole::Unknown => 0,
        SentRole::AlternateBackup => 1,
        SentRole::Root => 2,
        SentRole::Designated => 3,
    };
    let set = |on, bit| if on { bit } else { 0 };
    role << flag::ROLE_SHIFT
        | set(rapid.proposal, flag::PROPOSAL)
        | set(rapid.agreement, flag::AGREEMENT)
        | set(rapid.learning, flag::LEARNING)
        | set(rapid.forwarding, flag::FORWARDING)
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: Apache-2.0
//! What a frame says of groups: IGMPv1 (RFC 1112), v2 (RFC 2236), v3 (RFC 3376), MLDv1 (RFC 2710), v2 (RFC 3810); PIM
//! hellos (RFC 7761) and router advertisements (RFC 4286), which tell where routers are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::checksum;

/// Which protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IGMP.
    V4,
    /// MLD.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// Of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Family {
        match address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }
}

/// What a report says of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// Somebody wants it.
    Join(IpAddr),
    /// Somebody wants it no more.
    Leave(IpAddr),
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// By a member, of groups.
    Report(Family, Vec<Record>),
    /// By a querier: who wants this group, or any. How long members may take, in ms, and who asks. One that asks for
    /// sources (IGMPv3, MLDv2) has no group here and is none of all groups either.
    Query {
        /// Which protocol.
        family: Family,
        /// Of all groups, of one; `None`: of sources of one.
        of: Option<Asked>,
        /// Members answer within, ms.
        delay: u64,
        /// Who asks.
        from: IpAddr,
    },
    /// By a router: there is one.
    Router(Family),
}

/// What a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Any group.
    All,
    /// One group.
    Group(IpAddr),
}

/// It looks like a message and is none: a bridge drops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

const IGMP: u8 = 2;
const PIM: u8 = 103;
const ICMPV6: u8 = 58;
const PIM_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 13);
const SNOOPERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 106);
const SNOOPERS6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x6a);
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Records of one report at most: as many as fit into a jumbo frame.
const RECORDS: usize = 1200;

/// What a frame without a tag says of groups; `None`: nothing.
///
/// # Errors
/// It is broken.
pub fn parse(frame: &[u8]) -> Result<Option<Message>, Broken> {
    match frame.get(12..14) {
        Some([8, 0]) => ip4(frame.get(14..).unwrap_or_default()),
        Some([0x86, 0xdd]) => ip6(frame.get(14..).unwrap_or_default()),
        _ => Ok(None),
    }
}

fn two(bytes: &[u8], at: usize) -> u16 {
    let both = bytes.get(at..).and_then(|b| b.first_chunk::<2>());
    both.map_or(0, |b| u16::from_be_bytes(*b))
}

fn four(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    let all = bytes.get(at..)?.first_chunk::<4>()?;
    Some(Ipv4Addr::from(*all))
}

fn sixteen(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    let all = bytes.get(at..)?.first_chunk::<16>()?;
    Some(Ipv6Addr::from(*all))
}

/// A number with a mantissa of so many bits and an exponent of three (RFC 3376 4.1.1, RFC 3810 5.1.3).
fn floating(code: u64, mantissa: u32) -> u64 {
    let top = 1 << (mantissa + 3);
    if code < top {
        return code;
    }
    let exponent = code >> mantissa & 7;
    let mant = code & ((1 << mantissa) - 1);
    (mant | 1 << mantissa) << (exponent + 3)
}

// -- IPv4 -------------------------------------------------------------------------------------------------------------

fn ip4(packet: &[u8]) -> Result<Option<Message>, Broken> {
    let (Some(first), Some(protocol)) = (packet.first(), packet.get(9)) else {
        return Ok(None);
    };
    if !matches!(*protocol, IGMP | PIM) {
        return Ok(None);
    }
    let header = usize::from(first & 15) * 4;
    let total = usize::from(two(packet, 2));
    let right = first >> 4 == 4 && header >= 20 && total >= header;
    let (Some(head), Some(body)) = (packet.get(..header), packet.get(header..total)) else {
        return Err(Broken("an IP header that is cut off"));
    };
    if !right || checksum(&[head]) != 0 {
        return Err(Broken("a broken IP header"));
    }
    let (Some(from), Some(to)) = (four(packet, 12), four(packet, 16)) else {
        return Ok(None);
    };
    // of a piece of a packet nobody knows what it says
    if two(packet, 6) & 0x3fff != 0 {
        return Ok(None);
    }
    match *protocol {
        PIM => {
            let hello = to == PIM_ROUTERS && body.first() == Some(&0x20);
            Ok(hello.then_some(Message::Router(Family::V4)))
        }
        _ => igmp(body, from, to),
    }
}

fn igmp(body: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Result<Option<Message>, Broken> {
    if body.len() < 8 {
        return Err(Broken("a short IGMP message"));
    }
    if checksum(&[body]) != 0 {
        return Err(Broken("a wrong checksum of IGMP"));
    }
    let group = IpAddr::V4(four(body, 4).unwrap_or(Ipv4Addr::UNSPECIFIED));
    let report = |records| Ok(Some(Message::Report(Family::V4, records)));
    match body.first() {
        Some(0x12 | 0x16) => report(vec![Record::Join(group)]),
        Some(0x17) => report(vec![Record::Leave(group)]),
        Some(0x22) => report(records(body, 4, |at| four(body, at).map(IpAddr::V4))?),
        Some(0x11) => igmp_query(body, group, from, to),
        Some(0x30) if to == SNOOPERS => Ok(Some(Message::Router(Family::V4))),
        // not known (RFC 4541 2.1.1: it is flooded)
        _ => Ok(None),
    }
}

fn igmp_query(
    body: &[u8],
    group: IpAddr,
    from: Ipv4Addr,
    to: Ipv4Addr,
) -> Result<Option<Message>, Broken> {
    let code = u64::from(body.get(1).copied().unwrap_or_default());
    let all = group.is_unspecified();
    if all && to != ALL_HOSTS {
        return Err(Broken("a query of all groups to one of them"));
    }
    let (delay, of) = match body.len() {
        // version 1 has no time, and asks for all
        8 if code == 0 => (10_000, Some(Asked::All)),
        8 => (code * 100, Some(asked(group))),
        9..12 => return Err(Broken("a query that is cut off")),
        _ if two(body, 10) > 0 => (0, None),
        // no time at all is a tick of a clock
        _ if code == 0 => (1, Some(asked(group))),
        _ => (floating(code, 4) * 100, Some(asked(group))),
    };
    Ok(Some(Message::Query {
        family: Family::V4,
        of,
        delay,
        from: IpAddr::V4(from),
    }))
}

fn asked(group: IpAddr) -> Asked {
    match group.is_unspecified() {
        true => Asked::All,
        false => Asked::Group(group),
    }
}

/// The records of an IGMPv3 or MLDv2 report: they are built alike, but for the length of addresses.
fn records(
    body: &[u8],
    octets: usize,
    address: impl Fn(usize) -> Option<IpAddr>,
) -> Result<Vec<Record>, Broken> {
    let cut = Broken("a report that is cut off");
    let mut all = Vec::new();
    let mut at = 8;
    for _ in 0..usize::from(two(body, 6)).min(RECORDS) {
        let Some([kind, more]) = body.get(at..).and_then(|b| b.first_chunk::<2>()) else {
            return Err(cut);
        };
        let sources = usize::from(two(body, at + 2));
        let Some(group) = address(at + 4) else {
            return Err(cut);
        };
        let next = at + 4 + octets + sources * octets + usize::from(*more) * 4;
        if next > body.len() {
            return Err(cut);
        }
        // modes 1 to 6; IS_IN and TO_IN without a source: of nobody
        match kind {
            1 | 3 if sources == 0 => all.push(Record::Leave(group)),
            1..=6 => all.push(Record::Join(group)),
            _ => {}
        }
        at = next;
    }
    Ok(all)
}

// -- IPv6 -------------------------------------------------------------------------------------------------------------

fn ip6(packet: &[u8]) -> Result<Option<Message>, Broken> {
    // MLD comes behind a hop-by-hop header, or it is none
    let (Some(0), Some(from), Some(to)) = (packet.get(6), sixteen(packet, 8), sixteen(packet, 24))
    else {
        return Ok(None);
    };
    let end = 40 + usize::from(two(packet, 4));
    let Some(packet) = packet.get(..end) else {
        return Err(Broken("an IPv6 packet that is cut off"));
    };
    let (Some(ICMPV6), Some(more)) = (packet.get(40).copied(), packet.get(41)) else {
        return Ok(None);
    };
    let Some(body) = packet.get(40 + (usize::from(*more) + 1) * 8..) else {
        return Err(Broken("an IPv6 header that is cut off"));
    };
    mld(body, from, to)
}

fn mld(body: &[u8], from: Ipv6Addr, to: Ipv6Addr) -> Result<Option<Message>, Broken> {
    let Some(kind) = body.first().copied() else {
        return Ok(None);
    };
    if !matches!(kind, 130..=132 | 143 | 151) {
        return Ok(None);
    }
    let length = u32::try_from(body.len()).unwrap_or(0).to_be_bytes();
    let pseudo = [
        &from.octets()[..],
        &to.octets(),
        &length,
        &[0, 0, 0, ICMPV6],
    ]
    .concat();
    if checksum(&[&pseudo, body]) != 0 {
        return Err(Broken("a wrong checksum of MLD"));
    }
    let report = |records| Ok(Some(Message::Report(Family::V6, records)));
    let group = sixteen(body, 8).map(IpAddr::V6);
    match (kind, group) {
        (131, Some(group)) => report(vec![Record::Join(group)]),
        (132, Some(group)) => report(vec![Record::Leave(group)]),
        (143, _) if body.len() >= 8 => {
            report(records(body, 16, |at| sixteen(body, at).map(IpAddr::V6))?)
        }
        (130, Some(group)) => mld_query(body, group, from, to),
        (151, _) => Ok((to == SNOOPERS6).then_some(Message::Router(Family::V6))),
        _ => Err(Broken("a short MLD message")),
    }
}

fn mld_query(
    body: &[u8],
    group: IpAddr,
    from: Ipv6Addr,
    to: Ipv6Addr,
) -> Result<Option<Message>, Broken> {
    if from.segments()[0] & 0xffc0 != 0xfe80 {
        return Err(Broken("a query that is from no address of the link"));
    }
    if group.is_unspecified() && to != ALL_NODES {
        return Err(Broken("a query of all groups to one of them"));
    }
    let code = u64::from(two(body, 4));
    let (delay, of) = match body.len() {
        // of no time at all nobody asks for anything
        24 if code == 0 => (0, None),
        24 => (code, Some(asked(group))),
        25..28 => return Err(Broken("a query that is cut off")),
        _ if two(body, 26) > 0 => (0, None),
        _ => (floating(code, 12).max(1), Some(asked(group))),
    };
    Ok(Some(Message::Query {
        family: Family::V6,
        of,
        delay,
        from: IpAddr::V6(from),
    }))
}

#[cfg(test)]
mod tests;

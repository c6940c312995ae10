// SPDX-License-Identifier: Apache-2.0
//! Queries that we send: IGMPv2 (RFC 2236) and MLDv1 (RFC 2710), which all versions of members answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::checksum;

/// What is asked, and as whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Our MAC.
    pub mac: [u8; 6],
    /// Our address, which says the family. MLD has to have one of the link.
    pub from: IpAddr,
    /// One group; `None`: all.
    pub group: Option<IpAddr>,
    /// Members answer within, ms.
    pub delay: u64,
}

/// The frame, without a tag. `None`: the group is of the other family.
#[must_use]
pub fn query(q: &Query) -> Option<Vec<u8>> {
    match (q.from, q.group) {
        (IpAddr::V4(from), None) => Some(igmp(q, from, None)),
        (IpAddr::V4(from), Some(IpAddr::V4(group))) => Some(igmp(q, from, Some(group))),
        (IpAddr::V6(from), None) => Some(mld(q, from, None)),
        (IpAddr::V6(from), Some(IpAddr::V6(group))) => Some(mld(q, from, Some(group))),
        _ => None,
    }
}

/// Puts a checksum into its place.
fn put(into: &mut [u8], at: usize, sum: u16) {
    if let Some(place) = into.get_mut(at..at + 2) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
}

fn igmp(q: &Query, from: Ipv4Addr, group: Option<Ipv4Addr>) -> Vec<u8> {
    let to = group.unwrap_or(Ipv4Addr::new(224, 0, 0, 1));
    let code = u8::try_from((q.delay / 100).max(1)).unwrap_or(u8::MAX);
    let mut body = vec![0x11, code, 0, 0];
    body.extend(group.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
    let sum = checksum(&[&body]);
    put(&mut body, 2, sum);
    // internetwork control, 32 octets, TTL 1, the router alert option
    let mut head = vec![0x46, 0xc0, 0, 32, 0, 0, 0x40, 0, 1, 2, 0, 0];
    head.extend(from.octets());
    head.extend(to.octets());
    head.extend([0x94, 4, 0, 0]);
    let sum = checksum(&[&head]);
    put(&mut head, 10, sum);
    let [_, b, c, d] = to.octets();
    let mut frame = vec![1, 0, 0x5e, b & 0x7f, c, d];
    frame.extend(q.mac);
    frame.extend([8, 0]);
    frame.extend(head);
    frame.extend(body);
    frame.resize(60, 0);
    frame
}

/// A query of IGMP as if from nobody (0.0.0.0), for who has the address that it is from: a kernel drops what comes from an
/// address of its own. `None`: it is no packet of IPv4.
#[must_use]
pub fn from_nobody(frame: &[u8]) -> Option<Vec<u8>> {
    let (ether, packet) = frame.split_at_checked(14)?;
    if !ether.ends_with(&[8, 0]) {
        return None;
    }
    let mut packet = packet.to_vec();
    let length = usize::from(packet.first()? & 15) * 4;
    let head = packet.get_mut(..length)?;
    head.get_mut(12..16)?.fill(0);
    put(head, 10, 0);
    let sum = checksum(&[&*head]);
    put(head, 10, sum);
    Some([ether, packet.as_slice()].concat())
}

fn mld(q: &Query, from: Ipv6Addr, group: Option<Ipv6Addr>) -> Vec<u8> {
    let to = group.unwrap_or(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));
    let delay = u16::try_from(q.delay.max(1)).unwrap_or(u16::MAX);
    let mut body = vec![130, 0, 0, 0];
    body.extend(delay.to_be_bytes());
    body.extend([0, 0]);
    body.extend(group.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
    let pseudo = [
        &from.octets()[..],
        &to.octets(),
        &[0, 0, 0, 24, 0, 0, 0, 58],
    ]
    .concat();
    let sum = checksum(&[&pseudo, &body]);
    put(&mut body, 2, sum);
    let [.., a, b, c, d] = to.octets();
    let mut frame = vec![0x33, 0x33, a, b, c, d];
    frame.extend(q.mac);
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 0, 1]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    // hop by hop: the router alert option, and two octets of padding
    frame.extend([58, 0, 5, 2, 0, 0, 1, 0]);
    frame.extend(body);
    frame
}

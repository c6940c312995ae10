// SPDX-License-Identifier: Apache-2.0
//! Rules of ports: what the chip does with them, and the CPU with what it gets all the same.
//!
//! ```text
//!   rules of a port, in order ──► Filter, preference 1, 2 … ──► the chip's list of the port
//!                             └─► `judge`: frames that trapped    (before the chip had all of it, or it can't tell)
//!   rules of a VLAN ────────────► `judge`: what goes up to its device, or comes from it
//! ```
//!
//! A rule with words in [`Filter::kernel`] sends to the CPU what the chip can't tell: there it decides nothing, and the rules
//! behind it are asked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tandem_abi::raw::{
    TND_ACL_FRAGMENT, TND_ACL_FRAGMENT_FIRST, TND_ACL_TAG_8021AD, TND_ACL_TAG_8021Q, tnd_acl_key,
};
use tandem_store::model::{Filter, FilterKey, FilterVerdict};
use zerocopy::IntoBytes;

use crate::database::{Database, What};

/// Rules of a port in one direction at most.
pub const RULES: usize = 16_000;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
/// Extension headers that are followed, as the chip does.
const HEADERS: usize = 8;

/// All that a database has of rules.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Of ports, of what leaves and of what comes in.
    ports: BTreeMap<(u16, bool), Vec<Filter>>,
    /// Of VLANs' devices: of what comes down, and of what goes up.
    vlans: BTreeMap<(u16, bool), Vec<Filter>>,
    /// Ports with a list of their own, of IPv6 or not.
    listed: BTreeSet<(u16, bool)>,
    /// Ports whose frames are copied, and where to.
    copies: BTreeMap<(u16, bool), u16>,
    /// Addresses of the switch.
    own: BTreeSet<IpAddr>,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It goes on its way.
    Pass,
    /// It ends here.
    Drop,
}

/// How far a frame was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Understood {
    /// To its end; what is no IP as well.
    Whole,
    /// The transport header is not all there: what asks for it has no answer.
    Short,
    /// It claims to be IP and is not.
    Broken,
}

/// What this and the chip look at.
fn fields(frame: &[u8]) -> Option<(tnd_acl_key, Understood)> {
    let mut key = tnd_acl_key {
        dst_mac: frame.get(..6)?.try_into().ok()?,
        src_mac: frame.get(6..12)?.try_into().ok()?,
        ..Default::default()
    };
    let two = |at: usize| {
        let bytes = frame.get(at..at + 2)?.try_into().ok()?;
        Some(u16::from_be_bytes(bytes))
    };
    let mut at = 12;
    let tag = match two(at)? {
        0x8100 => TND_ACL_TAG_8021Q,
        0x88a8 => TND_ACL_TAG_8021AD,
        _ => 0,
    };
    if tag != 0 {
        (key.tag, key.tci) = (tag, two(14)?);
        at = 16;
    }
    key.ethertype = two(at)?;
    let packet = frame.get(at + 2..)?;
    let understood = match key.ethertype {
        IPV4 => ipv4(packet, &mut key),
        IPV6 => ipv6(packet, &mut key),
        _ => Some(Understood::Whole),
    };
    Some((key, understood.unwrap_or(Understood::Broken)))
}

/// None: it is broken.
fn ipv4(packet: &[u8], key: &mut tnd_acl_key) -> Option<Understood> {
    let head: &[u8; 20] = packet.first_chunk()?;
    let length = usize::from(head[0] & 0xf) * 4;
    let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
    if head[0] >> 4 != 4 || length < 20 || total < length {
        return None;
    }
    (key.tos, key.ttl, key.protocol) = (head[1], head[8], head[9]);
    key.src_ip[..4].copy_from_slice(&head[12..16]);
    key.dst_ip[..4].copy_from_slice(&head[16..20]);
    let offset = u16::from_be_bytes([head[6], head[7]]) & 0x1fff;
    Some(transport(packet.get(length..total)?, offset == 0, key))
}

impl Judged {
    /// Of these rules, in order; what none of them meets passes. `frame` is as the port had it, with its tag.
    #[must_use]
    pub fn of(rules: &[Filter], frame: &[u8]) -> Judged {
        if rules.is_empty() {
            return Judged::Pass;
        }
        let Some((key, understood)) = fields(frame) else {
            return Judged::Pass;
        };
        for rule in rules.iter().filter(|r| r.kernel.is_none()) {
            let asks_ip = rule.mask.ethertype != 0 && rule.fields.ethertype == key.ethertype;
            let unknown = match understood {
                Understood::Whole => false,
                Understood::Broken => asks_ip,
                Understood::Short => asks_ip && is_deep(rule) && meets(rule, &key, false),
            };
            if unknown {
                return Judged::Drop;
            }
            if meets(rule, &key, true) {
                return match rule.verdict {
                    FilterVerdict::Drop => Judged::Drop,
                    _ => Judged::Pass,
                };
            }
        }
        Judged::Pass
    }
}

/// Does it ask for the transport header?
fn is_deep(rule: &Filter) -> bool {
    let m = &rule.mask;
    m.src_port != 0
        || m.dst_port != 0
        || m.tcp_flags != 0
        || rule.src_ports.is_some()
        || rule.dst_ports.is_some()
}

/// Does a rule meet these fields; those of the transport header among them?
fn meets(rule: &Filter, key: &tnd_acl_key, deep: bool) -> bool {
    let mut mask = rule.mask;
    if !deep {
        (mask.src_port, mask.dst_port, mask.tcp_flags) = (0, 0, 0);
    }
    let bytes = key.as_bytes().iter().zip(rule.fields.as_bytes());
    let same = bytes
        .zip(mask.as_bytes())
        .all(|((k, f), m)| (k ^ f) & m == 0);
    let within = |ports: Option<(u16, u16)>, port: u16| {
        ports.is_none_or(|(from, to)| !deep || (from..=to).contains(&port))
    };
    same && within(rule.src_ports, key.src_port) && within(rule.dst_ports, key.dst_port)
}

/// None: it is broken.
fn ipv6(packet: &[u8], key: &mut tnd_acl_key) -> Option<Understood> {
    let head: &[u8; 40] = packet.first_chunk()?;
    let total = 40 + usize::from(u16::from_be_bytes([head[4], head[5]]));
    if head[0] >> 4 != 6 {
        return None;
    }
    (key.tos, key.ttl) = (head[0] << 4 | head[1] >> 4, head[7]);
    key.src_ip.copy_from_slice(&head[8..24]);
    key.dst_ip.copy_from_slice(&head[24..40]);
    let mut rest = packet.get(40..total)?;
    let (mut next, mut first) = (head[6], true);
    for _ in 0..HEADERS {
        let length = match (next, rest) {
            (0 | 43 | 60, [_, units, ..]) => (usize::from(*units) + 1) * 8,
            (44, [_, _, hi, lo, ..]) => {
                let word = u16::from_be_bytes([*hi, *lo]);
                first = word & 0xfff8 == 0;
                8
            }
            (0 | 43 | 44 | 60, _) => return None,
            _ => break,
        };
        next = *rest.first()?;
        rest = rest.get(length..)?;
        if !first {
            break;
        }
    }
    key.protocol = next;
    Some(transport(rest, first, key))
}

/// The transport header, if it is that of the first piece of a packet, or of all of it. Of the first piece the chip reads no ports, and sends it here:
/// to the rules it is no piece, then.
fn transport(header: &[u8], first: bool, key: &mut tnd_acl_key) -> Understood {
    if !first {
        key.fragment = TND_ACL_FRAGMENT;
        return Understood::Whole;
    }
    let least = match key.protocol {
        TCP => 20,
        UDP => 8,
        SCTP => 12,
        ICMP | ICMPV6 => 4,
        _ => return Understood::Whole,
    };
    let [a, b, c, d, ..] = *header else {
        return Understood::Short;
    };
    if header.len() < least {
        return Understood::Short;
    }
    (key.src_port, key.dst_port) = match key.protocol {
        ICMP | ICMPV6 => (a.into(), b.into()),
        _ => (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])),
    };
    if key.protocol == TCP {
        key.tcp_flags = header.get(13).copied().unwrap_or(0);
    }
    Understood::Whole
}

/// The sender of an IP packet in a frame without a tag.
fn sender(bare: &[u8]) -> Option<IpAddr> {
    let (key, _) = fields(bare)?;
    let [a, b, c, d, ..] = key.src_ip;
    match key.ethertype {
        IPV4 => Some(IpAddr::from([a, b, c, d])),
        IPV6 => Some(IpAddr::from(key.src_ip)),
        _ => None,
    }
}

/// A field that says: the first piece of a packet of several.
#[must_use]
pub fn first_piece() -> u8 {
    TND_ACL_FRAGMENT | TND_ACL_FRAGMENT_FIRST
}

impl Database {
    /// The rules of a port, of what comes in by it or leaves: in this order, whatever their keys say.
    pub fn set_rules(&mut self, port: u16, egress: bool, mut rules: Vec<Filter>) {
        for (n, rule) in rules.iter_mut().enumerate() {
            rule.key = key(port, egress, number(n));
        }
        let old = match rules.is_empty() {
            true => self.rules.ports.remove(&(port, egress)),
            false => self.rules.ports.insert((port, egress), rules),
        };
        let old = old.unwrap_or_default();
        let new = self.rules(port, egress);
        let all = 0..old.len().max(new.len());
        let changed = all.filter(|n| old.get(*n) != new.get(*n));
        let changed: Vec<u16> = changed.map(number).collect();
        for n in changed {
            self.touch(What::Rule(port, egress, Reverse(n)));
        }
    }

    /// A port's rules.
    #[must_use]
    pub fn rules(&self, port: u16, egress: bool) -> &[Filter] {
        self.rules
            .ports
            .get(&(port, egress))
            .map_or(&[], Vec::as_slice)
    }

    /// The rules of a VLAN's device, of what goes up to it or comes down.
    pub fn set_vlan_rules(&mut self, vid: u16, down: bool, rules: Vec<Filter>) {
        match rules.is_empty() {
            true => self.rules.vlans.remove(&(vid, down)),
            false => self.rules.vlans.insert((vid, down), rules),
        };
    }

    /// The addresses of the switch: what it sends itself no VLAN's rules are asked of.
    pub fn set_own(&mut self, addresses: BTreeSet<IpAddr>) {
        self.rules.own = addresses;
    }

    /// Ports with a list of their own, of IPv6 or not: what comes in by them no VLAN's rules are asked of.
    pub fn set_listed(&mut self, ports: BTreeSet<(u16, bool)>) {
        self.rules.listed = ports;
    }

    /// Where copies go of what the CPU has of a port: of what came in, and of what it sends.
    pub fn set_copies(&mut self, copies: BTreeMap<(u16, bool), u16>) {
        self.rules.copies = copies;
    }

    /// Where a copy of a frame goes that came in by this port, or leaves. The chip has copied what it has forwarded itself.
    #[must_use]
    pub fn copy_to(&self, port: u16, egress: bool) -> Option<u16> {
        self.rules.copies.get(&(port, egress)).copied()
    }

    /// Whether what came in by a port, as it came, goes on.
    #[must_use]
    pub fn admits(&self, port: u16, frame: &[u8]) -> bool {
        Judged::of(self.rules(port, false), frame) == Judged::Pass
    }

    /// Whether a frame without a tag, which came in by a port, goes up to the device of a VLAN.
    #[must_use]
    pub fn goes_up(&self, vid: u16, port: u16, bare: &[u8]) -> bool {
        let Some(rules) = self.rules.vlans.get(&(vid, false)) else {
            return true;
        };
        let family = bare.get(12..14).map(|t| t == IPV6.to_be_bytes());
        let listed = family.is_some_and(|v6| self.rules.listed.contains(&(port, v6)));
        listed || Judged::of(rules, bare) == Judged::Pass
    }

    /// Whether what the device of a VLAN sends, without a tag, leaves.
    #[must_use]
    pub fn comes_down(&self, vid: u16, bare: &[u8]) -> bool {
        let Some(rules) = self.rules.vlans.get(&(vid, true)) else {
            return true;
        };
        let own = match sender(bare) {
            None => true,
            Some(IpAddr::V6(a)) if a.is_unspecified() || a.is_unicast_link_local() => true,
            Some(a) => a.is_unspecified() || self.rules.own.contains(&a),
        };
        own || Judged::of(rules, bare) == Judged::Pass
    }

    /// A rule as it is said.
    pub(crate) fn rule(&self, port: u16, egress: bool, n: u16) -> Option<&Filter> {
        let rules = self.ports.get(&port).map(|_| self.rules(port, egress))?;
        rules.get(usize::from(n.checked_sub(1)?))
    }

    /// All that may be there.
    pub(crate) fn every_rule(&self) -> impl Iterator<Item = What> {
        self.rules.ports.iter().flat_map(|((port, egress), rules)| {
            let all = 0..rules.len();
            all.map(|n| What::Rule(*port, *egress, Reverse(number(n))))
        })
    }
}

/// The preference of the rule at a place: two rules with one would be in nobody's order.
fn number(at: usize) -> u16 {
    u16::try_from(at + 1).unwrap_or(u16::MAX)
}

/// What a rule is called.
pub(crate) fn key(port: u16, egress: bool, n: u16) -> FilterKey {
    FilterKey {
        ifindex: Database::device(port),
        egress,
        chain: 0,
        priority: n,
        handle: 1,
    }
}

#[cfg(test)]
mod tests;

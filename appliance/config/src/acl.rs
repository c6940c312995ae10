// SPDX-License-Identifier: Apache-2.0
//! Access lists, and where they are asked.

use std::collections::BTreeMap;

pub mod words;

/// What a list looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListKind {
    /// IPv4 sources.
    Standard,
    /// IPv4 packets.
    Extended,
    /// IPv6 packets.
    Ipv6,
}

/// An address of which some bits count. IPv4 stands in the low 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Side {
    /// Zero where `care` is.
    pub address: u128,
    /// The bits that count; none: any address.
    pub care: u128,
}

/// Ports of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Ports {
    #[default]
    Any,
    Eq(u16),
    Neq(u16),
    Gt(u16),
    Lt(u16),
    Range(u16, u16),
}

impl Ports {
    /// As ranges, both ends included; of a word that no port fits: none.
    #[must_use]
    pub fn ranges(self) -> Vec<(u16, u16)> {
        let range = |from: Option<u16>, to: Option<u16>| from.zip(to);
        let all = match self {
            Ports::Any => vec![Some((0, u16::MAX))],
            Ports::Eq(p) => vec![Some((p, p))],
            Ports::Neq(p) => vec![
                range(Some(0), p.checked_sub(1)),
                range(p.checked_add(1), Some(u16::MAX)),
            ],
            Ports::Gt(p) => vec![range(p.checked_add(1), Some(u16::MAX))],
            Ports::Lt(p) => vec![range(Some(0), p.checked_sub(1))],
            Ports::Range(a, b) => vec![Some((a.min(b), a.max(b)))],
        };
        all.into_iter().flatten().collect()
    }
}

/// A rule of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// `permit`, else `deny`.
    pub permit: bool,
    /// The protocol; `None`: any. Always `None` in a standard list.
    pub protocol: Option<u8>,
    /// The source.
    pub from: Side,
    /// The destination.
    pub to: Side,
    /// Ports of TCP and UDP.
    pub from_ports: Ports,
    /// The same of the destination.
    pub to_ports: Ports,
    /// Type of ICMP or ICMPv6, and its code.
    pub icmp: Option<(u8, Option<u8>)>,
    /// TCP with ACK or RST.
    pub established: bool,
    /// Pieces of packets beyond the first.
    pub fragments: bool,
    /// The DSCP.
    pub dscp: Option<u8>,
    /// `log`: kept, and nothing is logged.
    pub log: bool,
}

impl Rule {
    /// Does it look at more than addresses and the protocol, where pieces of packets have nothing?
    #[must_use]
    pub fn is_deep(&self) -> bool {
        self.from_ports != Ports::Any
            || self.to_ports != Ports::Any
            || self.icmp.is_some()
            || self.established
    }
}

/// A line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// For people.
    Remark(String),
    /// A rule.
    Rule(Rule),
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// What it looks at.
    pub kind: ListKind,
    /// By sequence number.
    pub entries: BTreeMap<u32, Entry>,
}

impl List {
    /// Its rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = (u32, &Rule)> {
        self.entries.iter().filter_map(|(n, e)| match e {
            Entry::Rule(rule) => Some((*n, rule)),
            Entry::Remark(_) => None,
        })
    }
}

/// Lists of an interface, by name. One that is not there, or has no rule, lets everything pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// `ip access-group … in`.
    pub ipv4_in: Option<String>,
    /// `ip access-group … out`.
    pub ipv4_out: Option<String>,
    /// `ipv6 traffic-filter … in`.
    pub ipv6_in: Option<String>,
    /// `ipv6 traffic-filter … out`.
    pub ipv6_out: Option<String>,
}

impl Groups {
    /// Where a list is named.
    pub fn at(&mut self, ipv6: bool, out: bool) -> &mut Option<String> {
        match (ipv6, out) {
            (false, false) => &mut self.ipv4_in,
            (false, true) => &mut self.ipv4_out,
            (true, false) => &mut self.ipv6_in,
            (true, true) => &mut self.ipv6_out,
        }
    }

    /// All that are named: IPv6 or not, out or in, the name.
    pub fn all(&self) -> impl Iterator<Item = (bool, bool, &str)> {
        let all = [
            (false, false, &self.ipv4_in),
            (false, true, &self.ipv4_out),
            (true, false, &self.ipv6_in),
            (true, true, &self.ipv6_out),
        ];
        all.into_iter()
            .filter_map(|(ipv6, out, name)| name.as_deref().map(|n| (ipv6, out, n)))
    }
}

/// What a list of a number is: 1 to 99, 1300 to 1999; 100 to 199, 2000 to 2699.
#[must_use]
pub fn kind_of_number(number: u32) -> Option<ListKind> {
    match number {
        1..=99 | 1300..=1999 => Some(ListKind::Standard),
        100..=199 | 2000..=2699 => Some(ListKind::Extended),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Ports;

    #[test]
    fn ports_as_ranges() {
        assert_eq!(Ports::Any.ranges(), [(0, 65_535)]);
        assert_eq!(Ports::Eq(80).ranges(), [(80, 80)]);
        assert_eq!(Ports::Neq(80).ranges(), [(0, 79), (81, 65_535)]);
        assert_eq!(Ports::Neq(0).ranges(), [(1, 65_535)]);
        assert_eq!(Ports::Neq(65_535).ranges(), [(0, 65_534)]);
        assert_eq!(Ports::Gt(65_535).ranges(), []);
        assert_eq!(Ports::Lt(0).ranges(), []);
        assert_eq!(Ports::Lt(1).ranges(), [(0, 0)]);
        assert_eq!(Ports::Range(9, 3).ranges(), [(3, 9)]);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! A rule of an access list: what may be typed of it, word by word. Written out as paths of the table these would be
//! thousands.

use std::net::{Ipv4Addr, Ipv6Addr};

use tandem_swconfig::acl::words::{DSCP, ICMP, ICMP6, Icmp, PROTOCOLS, PROTOCOLS6, TCP, UDP};
use tandem_swconfig::acl::{Entry, ListKind, Ports, Rule, Side};

use crate::args::Word;
use crate::walk::Next;

const ICMP4: u8 = 1;
const TCP4: u8 = 6;
const UDP4: u8 = 17;
const ICMPV6: u8 = 58;

/// Why words are no rule.
enum Stop {
    /// Wrong from this character on.
    Wrong(usize),
    /// More has to come.
    More,
}

/// What words came to.
pub(crate) enum Read {
    /// A line of a list, and what may follow it.
    Whole(Entry, Vec<Next>),
    /// So far right: what may follow.
    Part(Vec<Next>),
    /// Wrong from this character on.
    Wrong(usize),
}

type Keys = &'static [(&'static str, &'static str)];

const ACTIONS: Keys = &[
    ("permit", "Specify packets to forward"),
    ("deny", "Specify packets to reject"),
    ("remark", "Access list entry comment"),
];
const PORTS: Keys = &[
    ("eq", "Match only packets on a given port number"),
    ("neq", "Match only packets not on a given port number"),
    ("gt", "Match only packets with a greater port number"),
    ("lt", "Match only packets with a lower port number"),
    ("range", "Match only packets in the range of port numbers"),
];
const ESTABLISHED: (&str, &str) = ("established", "Match established connections");
const DSCP_WORD: (&str, &str) = ("dscp", "Match packets with given dscp value");
const FRAGMENTS: (&str, &str) = ("fragments", "Check non-initial fragments");
const LOG: (&str, &str) = ("log", "Kept; nothing is logged");

struct Reader<'w> {
    words: &'w [Word<'w>],
    at: usize,
    /// What may stand behind the last word.
    offers: Vec<Next>,
}

impl<'w> Reader<'w> {
    fn offer(&mut self, word: &str, help: &str, literal: bool) {
        if self.at == self.words.len() {
            self.offers.push(Next {
                word: word.into(),
                help: help.into(),
                literal,
            });
        }
    }

    /// The keyword that the next word is, or begins: it is taken.
    fn key(&mut self, keys: &[(&'static str, &'static str)]) -> Option<&'static str> {
        for (word, help) in keys {
            self.offer(word, help, true);
        }
        let word = self.words.get(self.at)?;
        let same = keys.iter().find(|k| k.0.eq_ignore_ascii_case(word.text));
        let begins = |k: &&(&'static str, &'static str)| {
            let head = k.0.get(..word.text.len());
            head.is_some_and(|h| h.eq_ignore_ascii_case(word.text))
        };
        let mut begun = keys.iter().filter(begins);
        let found = match (same, begun.next(), begun.next()) {
            (Some(same), ..) => same.0,
            (None, Some(one), None) => one.0,
            _ => return None,
        };
        self.at += 1;
        Some(found)
    }

    /// The next word as something, if it is that: it is taken.
    fn one<T>(&mut self, shown: &str, help: &str, of: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.offer(shown, help, false);
        let found = of(self.words.get(self.at)?.text)?;
        self.at += 1;
        Some(found)
    }

    /// Nothing that may stand here does.
    fn stop(&self) -> Stop {
        match self.words.get(self.at) {
            Some(word) => Stop::Wrong(word.at),
            None => Stop::More,
        }
    }

    fn side4(&mut self, standard: bool) -> Result<Side, Stop> {
        const ANY: Keys = &[("any", "Any host"), ("host", "A single host")];
        match self.key(ANY) {
            Some("any") => return Ok(Side::default()),
            Some(_) => {
                let host = self.one("A.B.C.D", "Host address", address4);
                return Ok(masked(host.ok_or_else(|| self.stop())?, u32::MAX.into()));
            }
            None => {}
        }
        let address = self.one("A.B.C.D", "Address to match", address4);
        let address = address.ok_or_else(|| self.stop())?;
        match self.one("A.B.C.D", "Wildcard bits", address4) {
            Some(wildcard) => Ok(masked(address, u128::from(u32::MAX) & !wildcard)),
            None if standard => Ok(masked(address, u32::MAX.into())),
            None => Err(self.stop()),
        }
    }

    fn side6(&mut self) -> Result<Side, Stop> {
        const ANY: Keys = &[
            ("any", "Any source or destination"),
            ("host", "A single host"),
        ];
        match self.key(ANY) {
            Some("any") => return Ok(Side::default()),
            Some(_) => {
                let of = |t: &str| t.parse::<Ipv6Addr>().ok().map(u128::from);
                let host = self.one("X:X:X:X::X", "Host address", of);
                return Ok(masked(host.ok_or_else(|| self.stop())?, u128::MAX));
            }
            None => {}
        }
        let of = |t: &str| {
            let (address, length) = t.split_once('/')?;
            let length = crate::args::number(length, 0, 128)?;
            let care = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            Some(masked(address.parse::<Ipv6Addr>().ok()?.into(), care))
        };
        let prefix = self.one("X:X:X:X::X/<0-128>", "IPv6 prefix", of);
        prefix.ok_or_else(|| self.stop())
    }

    fn ports(&mut self, udp: bool) -> Result<Ports, Stop> {
        let Some(how) = self.key(PORTS) else {
            return Ok(Ports::Any);
        };
        let names = if udp { UDP } else { TCP };
        let of = |t: &str| {
            let named = names.iter().find(|(n, _)| n.eq_ignore_ascii_case(t));
            let number = || crate::args::number(t, 0, 65_535);
            named
                .map(|(_, n)| *n)
                .or_else(|| number().and_then(|n| u16::try_from(n).ok()))
        };
        let mut port = || {
            for (name, _) in names {
                self.offer(name, "", true);
            }
            let port = self.one("<0-65535>", "Port number", of);
            port.ok_or_else(|| self.stop())
        };
        let first = port()?;
        Ok(match how {
            "eq" => Ports::Eq(first),
            "neq" => Ports::Neq(first),
            "gt" => Ports::Gt(first),
            "lt" => Ports::Lt(first),
            _ => {
                let last = port()?;
                Ports::Range(first.min(last), first.max(last))
            }
        })
    }

    fn icmp(&mut self, names: &[Icmp]) -> Option<(u8, Option<u8>)> {
        for (name, ..) in names {
            self.offer(name, "", true);
        }
        let word = self.words.get(self.at).map(|w| w.text);
        let named = names
            .iter()
            .find(|n| word.is_some_and(|w| n.0.eq_ignore_ascii_case(w)));
        if let Some((_, kind, code)) = named {
            self.at += 1;
            return Some((*kind, *code));
        }
        let byte = |t: &str| crate::args::number(t, 0, 255).and_then(|n| u8::try_from(n).ok());
        let kind = self.one("<0-255>", "ICMP message type", byte)?;
        Some((kind, self.one("<0-255>", "ICMP message code", byte)))
    }

    fn protocol(&mut self, ipv6: bool) -> Result<Option<u8>, Stop> {
        let (any, names) = match ipv6 {
            true => ("ipv6", PROTOCOLS6),
            false => ("ip", PROTOCOLS),
        };
        let mut keys = vec![(any, "Any protocol")];
        keys.extend(names.iter().map(|(n, _)| (*n, "")));
        if let Some(key) = self.key(&keys) {
            return Ok(names.iter().find(|(n, _)| *n == key).map(|(_, p)| *p));
        }
        let byte = |t: &str| crate::args::number(t, 0, 255).and_then(|n| u8::try_from(n).ok());
        let number = self.one("<0-255>", "An IP protocol number", byte);
        number.map(Some).ok_or_else(|| self.stop())
    }

    fn entry(&mut self, kind: ListKind, line: &str) -> Result<Entry, Stop> {
        let action = self.key(ACTIONS).ok_or_else(|| self.stop())?;
        if action == "remark" {
            self.offer("LINE", "Comment up to 100 characters", false);
            let word = self.words.get(self.at).ok_or(Stop::More)?;
            let text: String = line.chars().skip(word.at).take(100).collect();
            self.at = self.words.len();
            return Ok(Entry::Remark(text.trim_end().into()));
        }
        let mut rule = Rule {
            permit: action == "permit",
            ..Rule::default()
        };
        if kind == ListKind::Standard {
            rule.from = self.side4(true)?;
            rule.log = self.key(&[LOG]).is_some();
            return Ok(Entry::Rule(rule));
        }
        let ipv6 = kind == ListKind::Ipv6;
        rule.protocol = self.protocol(ipv6)?;
        let with_ports = matches!(rule.protocol, Some(TCP4 | UDP4));
        let udp = rule.protocol == Some(UDP4);
        let mut side = |out: &mut Side, ports: &mut Ports| {
            *out = if ipv6 {
                self.side6()?
            } else {
                self.side4(false)?
            };
            if with_ports {
                *ports = self.ports(udp)?;
            }
            Ok(())
        };
        side(&mut rule.from, &mut rule.from_ports)?;
        side(&mut rule.to, &mut rule.to_ports)?;
        rule.icmp = match (ipv6, rule.protocol) {
            (false, Some(ICMP4)) => self.icmp(ICMP),
            (true, Some(ICMPV6)) => self.icmp(ICMP6),
            _ => None,
        };
        self.options(&mut rule)?;
        Ok(Entry::Rule(rule))
    }

    /// What may stand at the end, each once, in any order.
    fn options(&mut self, rule: &mut Rule) -> Result<(), Stop> {
        loop {
            let mut keys = Vec::new();
            let tcp = rule.protocol == Some(TCP4);
            let pieces = !rule.fragments && !rule.is_deep();
            keys.extend((tcp && !rule.established && !rule.fragments).then_some(ESTABLISHED));
            keys.extend(rule.dscp.is_none().then_some(DSCP_WORD));
            // a piece beyond the first has neither ports nor flags
            keys.extend(pieces.then_some(FRAGMENTS));
            keys.extend((!rule.log).then_some(LOG));
            match self.key(&keys) {
                Some("established") => rule.established = true,
                Some("dscp") => {
                    for (name, _) in DSCP {
                        self.offer(name, "", true);
                    }
                    let of = |t: &str| {
                        let named = DSCP.iter().find(|(n, _)| n.eq_ignore_ascii_case(t));
                        let number = || crate::args::number(t, 0, 63);
                        named
                            .map(|(_, n)| *n)
                            .or_else(|| number().and_then(|n| u8::try_from(n).ok()))
                    };
                    let value = self.one("<0-63>", "Differentiated services codepoint value", of);
                    rule.dscp = Some(value.ok_or_else(|| self.stop())?);
                }
                Some("fragments") => rule.fragments = true,
                Some(_) => rule.log = true,
                None => return Ok(()),
            }
        }
    }
}

fn address4(text: &str) -> Option<u128> {
    let address: Ipv4Addr = text.parse().ok()?;
    Some(u32::from(address).into())
}

fn masked(address: u128, care: u128) -> Side {
    Side {
        address: address & care,
        care,
    }
}

/// Reads all of these words as a line of a list.
pub(crate) fn read(kind: ListKind, words: &[Word<'_>], line: &str) -> Read {
    let mut reader = Reader {
        words,
        at: 0,
        offers: Vec::new(),
    };
    match reader.entry(kind, line) {
        Ok(entry) => match words.get(reader.at) {
            None => Read::Whole(entry, reader.offers),
            Some(word) => Read::Wrong(word.at),
        },
        Err(Stop::More) => Read::Part(reader.offers),
        Err(Stop::Wrong(at)) => Read::Wrong(at),
    }
}

/// What may be typed first.
pub(crate) fn first(kind: ListKind) -> Vec<Next> {
    match read(kind, &[], "") {
        Read::Part(next) => next,
        _ => Vec::new(),
    }
}

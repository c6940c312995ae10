// SPDX-License-Identifier: Apache-2.0
//! What may be typed where a command wants something of its user: numbers, VLANs, addresses, interfaces.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use tandem_swconfig::acl::{Entry, ListKind};
use tandem_swconfig::{Kind as What, Name, Net};

use crate::rule::{self, Read};
use crate::walk::Next;

/// The interfaces that there are: a port that there is not can't be typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// Each with what Linux calls it, which may be typed too; empty: nothing.
    pub ports: Vec<(Name, String)>,
}

impl Ports {
    fn has(&self, name: &Name) -> bool {
        self.ports.iter().any(|(n, _)| n == name)
    }

    fn linux(&self, word: &str) -> Option<Name> {
        let found = self.ports.iter().find(|(_, l)| !l.is_empty() && l == word);
        found.map(|(name, _)| *name)
    }

    /// The kinds of interface that may be typed in a place.
    #[must_use]
    pub fn kinds(&self, place: Kind) -> BTreeSet<What> {
        let mut kinds: BTreeSet<What> = self.ports.iter().map(|(n, _)| n.kind).collect();
        match place {
            Kind::Port => {}
            Kind::Switched => kinds.extend([What::PortChannel]),
            _ => kinds.extend([What::PortChannel, What::Vlan, What::Loopback]),
        }
        kinds
    }
}

/// What a place of a pattern takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 1 to 4094.
    Vlan,
    /// `1-5,7`.
    Vlans,
    /// `10.0.0.1`.
    Address,
    /// `255.255.255.0`.
    Mask,
    /// `0.0.0.255`, of one network: its bits are a mask's turned.
    Wildmask,
    /// `0`, `0.0.0.0`: an area of OSPF.
    Area,
    /// `2001:db8::1`.
    Address6,
    /// `2001:db8::1/64`.
    Prefix6,
    /// Any interface.
    Interface,
    /// A port.
    Port,
    /// A port, or a port-channel.
    Switched,
    /// `gi1/0/1 - 4 , gi1/0/7`, to the end of the line.
    Range,
    /// `0011.2233.4455`.
    Mac,
    /// One word.
    Word,
    /// A file that a configuration is kept in: `flash:NAME`.
    File,
    /// All to the end of the line.
    Line,
    /// A number.
    Number(u32, u32),
    /// A line of an access list, to the end.
    Rule(ListKind),
}

/// What was typed there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arg {
    Vlan(u16),
    Vlans(BTreeSet<u16>),
    Address(Ipv4Addr),
    /// The length.
    Mask(u8),
    Address6(Ipv6Addr),
    Prefix6(Net<Ipv6Addr>),
    Interface(Name),
    Interfaces(Vec<Name>),
    Mac([u8; 6]),
    Text(String),
    Number(u32),
    Rule(Box<Entry>),
}

/// A word of the line, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word.
    pub text: &'a str,
    /// The characters in front of it.
    pub at: usize,
}

/// What became of words that were held against a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// So many words are this.
    Is(usize, Arg),
    /// So many words are this, or more of it: that may follow.
    Open(usize, Arg, Vec<Next>),
    /// More has to come: the number after `GigabitEthernet`, in that kind of interface.
    More(What),
    /// More has to come: one of these.
    Part(Vec<Next>),
    /// They are not: wrong from this character on.
    No(usize),
}

/// The most interfaces of a range.
pub const RANGE_MOST: usize = 4096;

impl Kind {
    /// What help calls it.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Kind::Vlan => "<1-4094>".into(),
            Kind::Vlans | Kind::Word | Kind::Range => "WORD".into(),
            Kind::Address | Kind::Mask | Kind::Wildmask => "A.B.C.D".into(),
            Kind::Area => "<0-4294967295>".into(),
            Kind::Address6 => "X:X:X:X::X".into(),
            Kind::Prefix6 => "X:X:X:X::X/<0-128>".into(),
            Kind::Interface | Kind::Port | Kind::Switched => "INTERFACE".into(),
            Kind::Mac => "H.H.H".into(),
            Kind::File => "flash:".into(),
            Kind::Line => "LINE".into(),
            Kind::Number(low, high) => format!("<{low}-{high}>"),
            Kind::Rule(_) => "permit".into(),
        }
    }

    /// What help says of it.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Kind::Vlan => "VLAN ID of the VLAN",
            Kind::Vlans => "VLAN IDs, as 1-5,7",
            Kind::Address => "IP address",
            Kind::Mask => "IP subnet mask",
            Kind::Wildmask => "IP wild card bits",
            Kind::Area => "OSPF area, as a number or an address",
            Kind::Address6 => "IPv6 address",
            Kind::Prefix6 => "IPv6 prefix",
            Kind::Interface | Kind::Port | Kind::Switched => "Interface",
            Kind::Range => "Interfaces, as gi1/0/1 - 4 , gi1/0/7",
            Kind::Mac => "48 bit MAC address",
            Kind::Word => "A word",
            Kind::File => "A file",
            Kind::Line => "Up to the end of the line",
            Kind::Number(..) => "A number",
            Kind::Rule(_) => "A rule",
        }
    }

    /// Holds words, at least one, against it; `line` is all of the line.
    #[must_use]
    pub fn take(self, words: &[Word<'_>], line: &str, ports: &Ports) -> Take {
        let Some(word) = words.first() else {
            return Take::No(0);
        };
        let one = |arg: Option<Arg>| match arg {
            Some(arg) => Take::Is(1, arg),
            None => Take::No(word.at),
        };
        let text = word.text;
        match self {
            Kind::Vlan => one(vlan(text).map(Arg::Vlan)),
            Kind::Vlans => one(vlans(text).map(Arg::Vlans)),
            Kind::Address => one(text.parse().ok().map(Arg::Address)),
            Kind::Mask => one(mask(text).map(Arg::Mask)),
            Kind::Wildmask => one(wildmask(text).map(Arg::Mask)),
            Kind::Area => one(area(text).map(Arg::Number)),
            Kind::Address6 => one(text.parse().ok().map(Arg::Address6)),
            Kind::Prefix6 => one(prefix6(text).map(Arg::Prefix6)),
            Kind::Interface | Kind::Port | Kind::Switched => interface(words, ports, self),
            Kind::Range => match range(words, ports) {
                Ok(names) => Take::Is(words.len(), Arg::Interfaces(names)),
                Err(at) => Take::No(at),
            },
            Kind::Mac => one(mac(text).map(Arg::Mac)),
            Kind::Word => one(Some(Arg::Text(text.into()))),
            Kind::File => one(file(text).map(Arg::Text)),
            Kind::Line => {
                let rest: String = line.chars().skip(word.at).collect();
                Take::Is(words.len(), Arg::Text(rest.trim_end().into()))
            }
            Kind::Number(low, high) => one(number(text, low, high).map(Arg::Number)),
            Kind::Rule(list) => match rule::read(list, words, line) {
                Read::Whole(entry, next) => {
                    Take::Open(words.len(), Arg::Rule(Box::new(entry)), next)
                }
                Read::Part(next) => Take::Part(next),
                Read::Wrong(at) => Take::No(at),
            },
        }
    }
}

/// A number in its range: digits alone, no sign.
pub(crate) fn number(text: &str, low: u32, high: u32) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|n| (low..=high).contains(n))
}

fn vlan(text: &str) -> Option<u16> {
    number(text, 1, 4094).and_then(|n| u16::try_from(n).ok())
}

/// `1-5,7`
#[must_use]
pub fn vlans(text: &str) -> Option<BTreeSet<u16>> {
    let mut set = BTreeSet::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (vlan(low)?, vlan(high)?);
        if low > high {
            return None;
        }
        set.extend(low..=high);
    }
    Some(set)
}

/// `255.255.255.0` -> 24; a mask with holes is none.
fn mask(text: &str) -> Option<u8> {
    let bits = u32::from(text.parse::<Ipv4Addr>().ok()?);
    let length = bits.leading_ones();
    (bits.count_ones() == length).then_some(())?;
    u8::try_from(length).ok()
}

/// `0.0.0.255` -> 24.
fn wildmask(text: &str) -> Option<u8> {
    let bits = u32::from(text.parse::<Ipv4Addr>().ok()?);
    mask(&Ipv4Addr::from(!bits).to_string())
}

fn area(text: &str) -> Option<u32> {
    let dotted = || text.parse::<Ipv4Addr>().ok().map(u32::from);
    number(text, 0, u32::MAX).or_else(dotted)
}

fn prefix6(text: &str) -> Option<Net<Ipv6Addr>> {
    let (address, length) = text.split_once('/')?;
    Some(Net {
        address: address.parse().ok()?,
        prefix: number(length, 0, 128).and_then(|n| u8::try_from(n).ok())?,
    })
}

/// `0011.2233.4455`, and `00:11:22:33:44:55`.
fn mac(text: &str) -> Option<[u8; 6]> {
    let (parts, digits): (Vec<&str>, usize) = if text.contains(':') {
        (text.split(':').collect(), 2)
    } else {
        (text.split('.').collect(), 4)
    };
    let right = |p: &&str| p.len() == digits && p.bytes().all(|b| b.is_ascii_hexdigit());
    if parts.len() * digits != 12 || !parts.iter().all(right) {
        return None;
    }
    let bits = u64::from_str_radix(&parts.concat(), 16).ok()?;
    let [_, _, a, b, c, d, e, f] = bits.to_be_bytes();
    Some([a, b, c, d, e, f])
}

/// `flash:NAME` or a name: never a way to another folder.
fn file(text: &str) -> Option<String> {
    let name = text.strip_prefix("flash:").unwrap_or(text);
    let name = name.strip_prefix('/').unwrap_or(name);
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let right = !name.is_empty()
        && name.len() <= 64
        && !name.starts_with(['.', '-'])
        && name.chars().all(plain);
    right.then(|| name.into())
}

/// The kind that a word begins, if it is one: `gi`, `GigabitEthernet`, `vl`.
fn kind(letters: &str, kinds: &BTreeSet<What>) -> Option<What> {
    if letters.is_empty() {
        return None;
    }
    let begins = |word: &str| {
        word.get(..letters.len())
            .is_some_and(|w| w.eq_ignore_ascii_case(letters))
    };
    let same = |k: &&What| {
        k.word().eq_ignore_ascii_case(letters) || k.short().eq_ignore_ascii_case(letters)
    };
    if let Some(kind) = kinds.iter().find(same) {
        return Some(*kind);
    }
    let mut found = kinds.iter().filter(|k| begins(k.word()));
    match (found.next(), found.next()) {
        (Some(kind), None) => Some(*kind),
        _ => None,
    }
}

/// The numbers that an interface of a kind may have.
#[must_use]
pub fn numbers(kind: What) -> (u16, u16) {
    match kind {
        What::Vlan => (1, 4094),
        What::Loopback => (0, 1023),
        What::PortChannel => (1, 128),
        _ => (1, u16::MAX),
    }
}

/// A number, with `1/0/` in front of it where it is a port's.
fn unit(kind: What, text: &str) -> Option<u16> {
    let digits = if kind.is_port() {
        text.strip_prefix("1/0/")?
    } else {
        text
    };
    let (low, high) = numbers(kind);
    number(digits, low.into(), high.into()).and_then(|n| u16::try_from(n).ok())
}

/// `gi1/0/1`, `GigabitEthernet 1/0/1`, `swp1`
fn interface(words: &[Word<'_>], ports: &Ports, place: Kind) -> Take {
    let Some(word) = words.first() else {
        return Take::No(0);
    };
    if let Some(name) = ports.linux(word.text) {
        if !ports.kinds(place).contains(&name.kind) {
            return Take::No(word.at);
        }
        return Take::Is(1, Arg::Interface(name));
    }
    let split = word.text.find(|c: char| c.is_ascii_digit());
    let (letters, digits) = word.text.split_at(split.unwrap_or(word.text.len()));
    let Some(kind) = kind(letters, &ports.kinds(place)) else {
        return Take::No(word.at);
    };
    let (used, digits, at) = if digits.is_empty() {
        match words.get(1) {
            Some(next) => (2, next.text, next.at),
            None => return Take::More(kind),
        }
    } else {
        (1, digits, word.at + letters.chars().count())
    };
    let name = unit(kind, digits).map(|number| Name { kind, number });
    match name {
        Some(name) if !name.is_port() || ports.has(&name) => Take::Is(used, Arg::Interface(name)),
        _ => Take::No(at),
    }
}

/// `gi1/0/1 - 4 , gi1/0/7`: the interfaces, or from which character on it is wrong.
fn range(words: &[Word<'_>], ports: &Ports) -> Result<Vec<Name>, usize> {
    // signs apart, so that `1-4,gi1/0/7` and `1 - 4 , gi1/0/7` are the same; but `Port-channel` is one word
    let mut parts: Vec<Word<'_>> = Vec::new();
    for word in words {
        let mut from = 0;
        let mut before = None;
        for (i, c) in word.text.char_indices() {
            let sign =
                c == ',' || c == '-' && before.is_none_or(|b: char| !b.is_ascii_alphabetic());
            if sign {
                for (a, b) in [(from, i), (i, i + 1)] {
                    if let Some(text) = word.text.get(a..b).filter(|t| !t.is_empty()) {
                        parts.push(Word {
                            text,
                            at: word.at + a,
                        });
                    }
                }
                from = i + 1;
            }
            before = Some(c);
        }
        if let Some(text) = word.text.get(from..).filter(|t| !t.is_empty()) {
            parts.push(Word {
                text,
                at: word.at + from,
            });
        }
    }
    let end = parts.last().map_or(0, |w| w.at + w.text.chars().count());
    let mut names: Vec<Name> = Vec::new();
    let mut rest: &[Word<'_>] = &parts;
    loop {
        let at = rest.first().map_or(end, |w| w.at);
        let first = match interface(rest, ports, Kind::Interface) {
            Take::Is(used, Arg::Interface(name)) => {
                rest = rest.get(used..).unwrap_or_default();
                name
            }
            Take::No(at) if !rest.is_empty() => return Err(at),
            _ => return Err(at),
        };
        let mut last = first;
        if rest.first().is_some_and(|w| w.text == "-") {
            let (used, name) = match rest.get(1) {
                // the last one's number alone, its end (`1/0/1 - 4`), or all of its name
                Some(w) => match number(w.text, 0, u16::MAX.into()) {
                    Some(n) => (
                        2,
                        u16::try_from(n).ok().map(|number| Name { number, ..first }),
                    ),
                    None => {
                        match interface(rest.get(1..).unwrap_or_default(), ports, Kind::Interface) {
                            Take::Is(used, Arg::Interface(name)) => (1 + used, Some(name)),
                            _ => (
                                2,
                                unit(first.kind, w.text).map(|number| Name { number, ..first }),
                            ),
                        }
                    }
                },
                None => return Err(end),
            };
            let at = rest.get(1).map_or(end, |w| w.at);
            let right = |n: &Name| {
                n.kind == first.kind && n.number >= first.number && n.number <= numbers(n.kind).1
            };
            last = name.filter(right).ok_or(at)?;
            rest = rest.get(used..).unwrap_or_default();
        }
        for number in first.number..=last.number {
            let name = Name { number, ..first };
            if name.is_port() && !ports.has(&name) {
                return Err(at);
            }
            if !names.contains(&name) {
                names.push(name);
            }
            if names.len() > RANGE_MOST {
                return Err(at);
            }
        }
        match rest.first() {
            None => return Ok(names),
            Some(w) if w.text == "," => rest = rest.get(1..).unwrap_or_default(),
            Some(w) => return Err(w.at),
        }
    }
}

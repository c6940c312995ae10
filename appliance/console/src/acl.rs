// SPDX-License-Identifier: Apache-2.0
//! Access lists: what commands make of a configuration, and the lines that say it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use tandem_swconfig::acl::words::{DSCP, ICMP, ICMP6, Icmp, PROTOCOLS, PROTOCOLS6, TCP, UDP};
use tandem_swconfig::acl::{Entry, Groups, List, ListKind, Ports, Rule, Side, kind_of_number};
use tandem_swconfig::{Config, Kind, Name};
use tandem_swgrammar::{Form, Id, Parsed};

use crate::change::{Done, INTERNAL, Scope};
use crate::render::Block;

/// The longest name.
const NAME_MOST: usize = 64;
/// From one line to the next.
const STEP: u32 = 10;
/// The largest sequence number.
const LAST: u32 = 2_147_483_647;
/// Lines of a list at most.
const LINES: usize = 10_000;

fn lists(config: &mut Config, kind: ListKind) -> &mut BTreeMap<String, List> {
    match kind {
        ListKind::Ipv6 => &mut config.lists6,
        _ => &mut config.lists,
    }
}

fn checked(name: &str, kind: ListKind) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_graphic() && c != '?' && c != '"' && c != '|';
    let number = name.parse().ok().filter(|_| kind != ListKind::Ipv6);
    let right = match (number, kind) {
        (Some(n), _) => kind_of_number(n) == Some(kind),
        (None, _) => name.starts_with(|c: char| c.is_ascii_alphabetic()),
    };
    match right && name.len() <= NAME_MOST && name.chars().all(plain) {
        true => Ok(()),
        false => Err("% Invalid access list name.".into()),
    }
}

/// The list of a name, made if it is not there.
fn list<'c>(config: &'c mut Config, name: &str, kind: ListKind) -> Result<&'c mut List, String> {
    checked(name, kind)?;
    let list = lists(config, kind).entry(name.into()).or_insert(List {
        kind,
        entries: BTreeMap::new(),
    });
    match list.kind == kind {
        true => Ok(list),
        false => Err(format!(
            "% Access list {name} is there, and is {}",
            word(list.kind)
        )),
    }
}

fn word(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Standard => "standard",
        ListKind::Extended => "extended",
        ListKind::Ipv6 => "IPv6",
    }
}

/// Commands of configuration mode.
pub(crate) fn of_switch(config: &mut Config, parsed: &Parsed) -> Result<Done, String> {
    let plain = parsed.form == Form::Plain;
    let mut done = Done::default();
    match parsed.id {
        Id::IpList | Id::Ipv6List => {
            let name = parsed.text().ok_or(INTERNAL)?;
            let kind = match parsed.id {
                Id::Ipv6List => ListKind::Ipv6,
                _ if parsed.has("standard") => ListKind::Standard,
                _ => ListKind::Extended,
            };
            if plain {
                list(config, name, kind)?;
                done.scope = Some(Scope::List {
                    name: name.into(),
                    kind,
                });
                return Ok(done);
            }
            let lists = lists(config, kind);
            if lists.get(name).is_none_or(|l| l.kind != kind) {
                return Err(format!("% Access list {name} is not there"));
            }
            lists.remove(name);
        }
        Id::NumberedList => {
            let number = parsed.number().ok_or(INTERNAL)?;
            let kind = kind_of_number(number).ok_or(INTERNAL)?;
            let name = number.to_string();
            match (plain, parsed.rule()) {
                (true, entry) => add(list(config, &name, kind)?, None, entry.ok_or(INTERNAL)?)?,
                (false, entry) => {
                    let Some(list) = config.lists.get_mut(&name) else {
                        return Err(format!("% Access list {name} is not there"));
                    };
                    match entry {
                        Some(entry) => remove(list, None, Some(entry))?,
                        None => list.entries.clear(),
                    }
                    if list.entries.is_empty() {
                        config.lists.remove(&name);
                    }
                }
            }
        }
        Id::Resequence => {
            let name = parsed.text().ok_or(INTERNAL)?;
            let (first, step) = (number(parsed, 0)?, number(parsed, 1)?);
            let Some(list) = config.lists.get_mut(name) else {
                return Err(format!("% Access list {name} is not there"));
            };
            let mut next = Some(first);
            let mut entries = BTreeMap::new();
            for entry in list.entries.values() {
                let at = next.filter(|n| *n <= LAST).ok_or(TOO_FAR)?;
                entries.insert(at, entry.clone());
                next = at.checked_add(step);
            }
            list.entries = entries;
        }
        _ => return Err(INTERNAL.into()),
    }
    Ok(done)
}

const TOO_FAR: &str = "% Sequence numbers end at 2147483647";

fn number(parsed: &Parsed, at: usize) -> Result<u32, String> {
    let numbers = parsed.args.iter().filter_map(|a| match a {
        tandem_swgrammar::Arg::Number(n) => Some(*n),
        _ => None,
    });
    numbers.into_iter().nth(at).ok_or(INTERNAL.into())
}

fn add(list: &mut List, at: Option<u32>, entry: &Entry) -> Result<(), String> {
    let same = |e: &Entry| matches!(entry, Entry::Rule(_)) && e == entry;
    if at.is_none() && list.entries.values().any(same) {
        return Ok(());
    }
    let last = list.entries.keys().next_back().copied().unwrap_or(0);
    let at = at.unwrap_or(last.saturating_add(STEP));
    if at > LAST {
        return Err(TOO_FAR.into());
    }
    match list.entries.get(&at) {
        Some(there) if there == entry => return Ok(()),
        Some(_) => return Err("% Duplicate sequence number".into()),
        None => {}
    }
    if list.entries.len() >= LINES {
        return Err(format!("% A list has {LINES} lines at most"));
    }
    list.entries.insert(at, entry.clone());
    Ok(())
}

fn remove(list: &mut List, at: Option<u32>, entry: Option<&Entry>) -> Result<(), String> {
    let found = match (at, entry) {
        (Some(at), _) => Some(at).filter(|at| list.entries.contains_key(at)),
        (None, entry) => {
            let mut all = list.entries.iter();
            all.find(|(_, e)| Some(*e) == entry).map(|(at, _)| *at)
        }
    };
    match found {
        Some(at) => {
            list.entries.remove(&at);
            Ok(())
        }
        None => Err("% Specified access list entry is not there".into()),
    }
}

/// A line of a list's own mode.
pub(crate) fn of_list(
    config: &mut Config,
    name: &str,
    kind: ListKind,
    parsed: &Parsed,
) -> Result<(), String> {
    let list = lists(config, kind).get_mut(name);
    let list = list.filter(|l| l.kind == kind);
    let Some(list) = list else {
        return Err(format!("% Access list {name} is not there any more"));
    };
    match (parsed.form, parsed.rule()) {
        (Form::Plain, entry) => add(list, parsed.number(), entry.ok_or(INTERNAL)?),
        (_, entry) => remove(list, parsed.number(), entry),
    }
}

/// `ip access-group`, `ipv6 traffic-filter`.
pub(crate) fn of_interface(
    name: &Name,
    groups: &mut Groups,
    parsed: &Parsed,
) -> Result<(), String> {
    let (ipv6, out) = (parsed.id == Id::Ipv6Group, parsed.has("out"));
    if parsed.form != Form::Plain {
        *groups.at(ipv6, out) = None;
        return Ok(());
    }
    let list = parsed.text().ok_or(INTERNAL)?;
    if ipv6 {
        checked(list, ListKind::Ipv6)?;
    } else {
        checked(list, ListKind::Standard).or_else(|_| checked(list, ListKind::Extended))?;
    }
    match name.kind {
        Kind::Vlan => {}
        _ if name.is_port() && !out => {}
        _ if name.is_port() => {
            return Err(
                "% Command rejected: an access list of a port is one of what comes in".into(),
            );
        }
        _ => {
            return Err(format!(
                "% Command rejected: {name} has no access lists, ports and VLAN interfaces have"
            ));
        }
    }
    *groups.at(ipv6, out) = Some(list.into());
    Ok(())
}

/// The lines that name lists at an interface.
pub(crate) fn group_lines(id: Id, groups: &Groups) -> Vec<String> {
    let wanted = groups.all().filter(|g| g.0 == (id == Id::Ipv6Group));
    let line = |(ipv6, out, name): (bool, bool, &str)| {
        let word = if ipv6 {
            "ipv6 traffic-filter"
        } else {
            "ip access-group"
        };
        format!("{word} {name} {}", if out { "out" } else { "in" })
    };
    wanted.map(line).collect()
}

/// The blocks of lists.
pub(crate) fn blocks(id: Id, config: &Config) -> Vec<Block> {
    let all = match id {
        Id::IpList => &config.lists,
        _ => &config.lists6,
    };
    let block = |(name, list): (&String, &List)| {
        let word = match list.kind {
            ListKind::Ipv6 => "ipv6 access-list".to_owned(),
            kind => format!("ip access-list {}", word(kind)),
        };
        let line = |(at, entry): (&u32, &Entry)| {
            let sequence = if list.kind == ListKind::Ipv6 {
                "sequence "
            } else {
                ""
            };
            format!("{sequence}{at} {}", entry_text(list.kind, entry))
        };
        Block {
            head: format!("{word} {name}"),
            lines: list.entries.iter().map(line).collect(),
        }
    };
    all.iter().map(block).collect()
}

fn entry_text(kind: ListKind, entry: &Entry) -> String {
    match entry {
        Entry::Remark(text) => format!("remark {text}"),
        Entry::Rule(rule) => rule_text(kind, rule, false),
    }
}

/// The lowest number's word, or the number.
fn named<N: Copy + PartialEq + ToString>(names: &[(&str, N)], number: N) -> String {
    let found = names.iter().find(|(_, n)| *n == number);
    found.map_or_else(|| number.to_string(), |(w, _)| (*w).to_owned())
}

fn side_text(kind: ListKind, side: Side, shown: bool) -> String {
    if side.care == 0 {
        return "any".into();
    }
    if kind == ListKind::Ipv6 {
        let address = Ipv6Addr::from(side.address).to_string().to_uppercase();
        return match side.care.leading_ones() {
            128 => format!("host {address}"),
            n => format!("{address}/{n}"),
        };
    }
    let four = |bits: u128| Ipv4Addr::from(u32::try_from(bits).unwrap_or(0));
    let address = four(side.address);
    let wildcard = four(u128::from(u32::MAX) & !side.care);
    match (wildcard.is_unspecified(), kind) {
        (true, ListKind::Standard) if shown => address.to_string(),
        (true, _) => format!("host {address}"),
        (false, ListKind::Standard) if shown => format!("{address}, wildcard bits {wildcard}"),
        (false, _) => format!("{address} {wildcard}"),
    }
}

fn ports_text(rule: &Rule, ports: Ports) -> String {
    let names = if rule.protocol == Some(17) { UDP } else { TCP };
    match ports {
        Ports::Any => String::new(),
        Ports::Eq(p) => format!(" eq {}", named(names, p)),
        Ports::Neq(p) => format!(" neq {}", named(names, p)),
        Ports::Gt(p) => format!(" gt {}", named(names, p)),
        Ports::Lt(p) => format!(" lt {}", named(names, p)),
        Ports::Range(a, b) => format!(" range {} {}", named(names, a), named(names, b)),
    }
}

fn icmp_text(names: &[Icmp], (kind, code): (u8, Option<u8>)) -> String {
    if let Some((word, ..)) = names.iter().find(|n| (n.1, n.2) == (kind, code)) {
        return format!(" {word}");
    }
    code.map_or_else(|| format!(" {kind}"), |code| format!(" {kind} {code}"))
}

/// A rule as it is typed, or as `show` has it.
pub(crate) fn rule_text(kind: ListKind, rule: &Rule, shown: bool) -> String {
    let mut text = String::from(if rule.permit { "permit" } else { "deny" });
    let ipv6 = kind == ListKind::Ipv6;
    if kind == ListKind::Standard {
        // as IOS sets it, in a column
        let space = if shown && !rule.permit { "   " } else { " " };
        let _ = write!(text, "{space}{}", side_text(kind, rule.from, shown));
    } else {
        let protocol = match (rule.protocol, ipv6) {
            (None, true) => "ipv6".into(),
            (None, false) => "ip".into(),
            (Some(p), true) => named(PROTOCOLS6, p),
            (Some(p), false) => named(PROTOCOLS, p),
        };
        let _ = write!(
            text,
            " {protocol} {}{} {}{}",
            side_text(kind, rule.from, shown),
            ports_text(rule, rule.from_ports),
            side_text(kind, rule.to, shown),
            ports_text(rule, rule.to_ports)
        );
    }
    if let Some(icmp) = rule.icmp {
        text += &icmp_text(if ipv6 { ICMP6 } else { ICMP }, icmp);
    }
    if rule.established {
        text += " established";
    }
    if let Some(dscp) = rule.dscp {
        let _ = write!(text, " dscp {}", named(DSCP, dscp));
    }
    if rule.fragments {
        text += " fragments";
    }
    if rule.log {
        text += " log";
    }
    text
}

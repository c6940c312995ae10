// SPDX-License-Identifier: Apache-2.0
//! Access lists as rules of ports; with limits and copies: [`layers`].
//!
//! ```text
//!   ip access-group at a port, in ─────────► rules of what comes in by it
//!   ip access-group at a VLAN interface,
//!     in ──► of each port of the VLAN: what comes in by it, in this VLAN, to the router's MAC
//!            and what goes up to its device, whatever its MAC                     (by the CPU)
//!     out ─► of each port of the VLAN: what leaves by it, in this VLAN, from the router's MAC
//!            and what comes down from its device                                  (by the CPU)
//! ```
//!
//! A port that has a list of its own has none of its VLANs' interfaces for that family, as in IOS: its own goes first. What
//! is routed never asks the kernel: a filter at a VLAN's device would make the kernel route all of that VLAN.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tandem_abi::raw::{TND_ACL_FRAGMENT, tnd_acl_key};
use tandem_store::model::{Filter, FilterKey, FilterVerdict};
use tandem_swconfig::acl::{List, ListKind, Rule};
use tandem_swconfig::{Config, Interface, Kind, Mode, Name, Switchport, monitor};
use tandem_vlans::{Database, RULES, first_piece};

use crate::{layers, policy};
use tandem_swstack::addresses;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ICMPV6: u8 = 58;
const ACK: u8 = 0x10;
const RST: u8 = 0x04;
/// Neighbours are asked for and answer by these, whatever a list of IPv6 says, unless it says so itself.
const NEIGHBOURS: [u16; 2] = [136, 135];
/// Of a TCI: the VLAN.
const VID: u16 = 0x0fff;

/// Which line of which list: of IPv6 or not, its name, the sequence number.
pub(crate) type Line = (bool, String, u32);

/// A rule, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ruled {
    pub filter: Filter,
    pub of: Vec<Line>,
}

/// All rules that follow from a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Of ports, of what comes in and of what leaves.
    pub ports: BTreeMap<(u16, bool), Vec<Ruled>>,
    /// Of VLANs' devices, of what goes up and of what comes down.
    pub vlans: BTreeMap<(u16, bool), Vec<Filter>>,
    /// Ports with a list of their own, of IPv6 or not: their VLANs' are not asked.
    pub listed: BTreeSet<(u16, bool)>,
    /// Whose policers are: of a port, a class or a kind.
    pub limits: BTreeMap<u32, (u16, String)>,
    /// Where the CPU copies what it has of a port: what came in, what it sends.
    pub copies: BTreeMap<(u16, bool), u16>,
    /// Addresses of the switch, if a VLAN's device has rules.
    pub own: BTreeSet<IpAddr>,
}

/// A rule that meets nothing less than all of it says.
pub(crate) fn nothing_yet() -> Filter {
    Filter {
        key: FilterKey {
            ifindex: 0,
            egress: false,
            chain: 0,
            priority: 0,
            handle: 0,
        },
        text: String::new(),
        fields: tnd_acl_key::default(),
        mask: tnd_acl_key::default(),
        src_ports: None,
        dst_ports: None,
        verdict: FilterVerdict::Permit,
        mirror: None,
        police: None,
        kernel: None,
    }
}

/// All packets of a family.
pub(crate) fn all_of(v6: bool) -> Filter {
    Whose::default().base(if v6 { IPV6 } else { IPV4 })
}

/// Which frames a list is asked of.
#[derive(Clone, Copy, Debug, Default)]
struct Whose {
    /// To this MAC, or from it.
    to: Option<[u8; 6]>,
    from: Option<[u8; 6]>,
    /// In this VLAN by their tag; 0: without a tag, or with one of priority alone. None: all that there are at the port.
    tci: Option<u16>,
}

impl Whose {
    fn base(&self, ethertype: u16) -> Filter {
        let mut f = nothing_yet();
        (f.fields.ethertype, f.mask.ethertype) = (ethertype, u16::MAX);
        if let Some(mac) = self.to {
            (f.fields.dst_mac, f.mask.dst_mac) = (mac, [u8::MAX; 6]);
        }
        if let Some(mac) = self.from {
            (f.fields.src_mac, f.mask.src_mac) = (mac, [u8::MAX; 6]);
        }
        if let Some(vid) = self.tci {
            (f.fields.tci, f.mask.tci) = (vid, VID);
        }
        f
    }
}

fn bytes(v6: bool, bits: u128) -> [u8; 16] {
    match v6 {
        true => bits.to_be_bytes(),
        // in the first four
        false => (bits << 96).to_be_bytes(),
    }
}

/// A line of a list as rules of the chip.
pub(crate) fn of_rule(base: &Filter, v6: bool, rule: &Rule, out: &mut Vec<Filter>) {
    let mut f = base.clone();
    f.verdict = match rule.permit {
        true => FilterVerdict::Permit,
        false => FilterVerdict::Drop,
    };
    if let Some(p) = rule.protocol {
        (f.fields.protocol, f.mask.protocol) = (p, u8::MAX);
    }
    f.fields.src_ip = bytes(v6, rule.from.address);
    f.mask.src_ip = bytes(v6, rule.from.care);
    f.fields.dst_ip = bytes(v6, rule.to.address);
    f.mask.dst_ip = bytes(v6, rule.to.care);
    if let Some(dscp) = rule.dscp {
        (f.fields.tos, f.mask.tos) = (dscp << 2, 0xfc);
    }
    let pieces = {
        let mut f = f.clone();
        f.fields.fragment = TND_ACL_FRAGMENT;
        f.mask.fragment = first_piece();
        f
    };
    if rule.fragments {
        out.push(pieces);
        return;
    }
    if !rule.is_deep() {
        out.push(f);
        return;
    }
    // a piece has no ports, and would look as if they were 0
    f.mask.fragment = TND_ACL_FRAGMENT;
    let flags: &[u8] = match rule.established {
        true => &[ACK, RST],
        false => &[0],
    };
    if let Some((kind, code)) = rule.icmp {
        (f.fields.src_port, f.mask.src_port) = (kind.into(), u16::MAX);
        if let Some(code) = code {
            (f.fields.dst_port, f.mask.dst_port) = (code.into(), u16::MAX);
        }
    }
    let some = |(from, to): (u16, u16)| Some((from, to)).filter(|r| *r != (0, u16::MAX));
    for from in rule.from_ports.ranges() {
        for to in rule.to_ports.ranges() {
            for flag in flags {
                let mut f = f.clone();
                (f.fields.tcp_flags, f.mask.tcp_flags) = (*flag, *flag);
                (f.src_ports, f.dst_ports) = (some(from), some(to));
                out.push(f);
            }
        }
    }
    // who has the first piece may have the others; where it is denied, they are nothing without it
    if rule.permit {
        out.push(pieces);
    }
}

/// A list as rules of the chip, to its silent end.
fn of_list(base: &Filter, name: &str, list: &List) -> Vec<Ruled> {
    let v6 = list.kind == ListKind::Ipv6;
    let mut all = Vec::new();
    let mut add = |filters: Vec<Filter>, of: Option<u32>| {
        let line = |at| (v6, name.to_owned(), at);
        let of: Vec<Line> = of.map(line).into_iter().collect();
        let ruled = |mut filter: Filter| {
            filter.text = match of.first() {
                Some((_, _, at)) => format!("access list {name}, {at}"),
                None => format!("access list {name}"),
            };
            Ruled {
                filter,
                of: of.clone(),
            }
        };
        all.extend(filters.into_iter().map(ruled));
    };
    if list.rules().any(|(_, rule)| rule.is_deep()) {
        let mut f = base.clone();
        (f.fields.fragment, f.mask.fragment) = (first_piece(), first_piece());
        f.kernel = Some("the ports of a packet's first piece are the CPU's to read".into());
        add(vec![f], None);
    }
    for (at, rule) in list.rules() {
        let mut filters = Vec::new();
        of_rule(base, v6, rule, &mut filters);
        add(filters, Some(at));
    }
    if v6 {
        let neighbour = |kind: u16| {
            let mut f = base.clone();
            (f.fields.protocol, f.mask.protocol) = (ICMPV6, u8::MAX);
            (f.fields.src_port, f.mask.src_port) = (kind, u16::MAX);
            f.mask.fragment = TND_ACL_FRAGMENT;
            f
        };
        add(NEIGHBOURS.map(neighbour).into(), None);
    }
    let mut rest = base.clone();
    rest.verdict = FilterVerdict::Drop;
    add(vec![rest], None);
    all
}

/// A list that has something to say.
fn named<'c>(config: &'c Config, v6: bool, name: Option<&str>) -> Option<(String, &'c List)> {
    let name = name?;
    let lists = if v6 { &config.lists6 } else { &config.lists };
    let list = lists.get(name).filter(|l| l.rules().next().is_some())?;
    Some((name.to_owned(), list))
}

/// By which tags frames of a VLAN are known at a port: as they come in, or as they leave.
fn tags(config: &Config, port: &Switchport, vid: u16, out: bool) -> Vec<Option<u16>> {
    let has = |allowed: &Option<BTreeSet<u16>>| allowed.as_ref().is_none_or(|a| a.contains(&vid));
    match port.mode {
        Mode::Access if port.access == vid => vec![None],
        Mode::Access => Vec::new(),
        Mode::Trunk if !has(&port.allowed) => Vec::new(),
        Mode::Trunk if port.native != vid || config.tag_native => vec![Some(vid)],
        Mode::Trunk if out => vec![Some(0)],
        Mode::Trunk => vec![Some(0), Some(vid)],
    }
}

/// VLAN interfaces with a list of a family, in or out.
fn routed(config: &Config, v6: bool, out: bool) -> Vec<(u16, String, &List)> {
    let vlans = config
        .interfaces
        .iter()
        .filter(|(n, _)| n.kind == Kind::Vlan);
    let list = |(name, of): (&Name, &Interface)| {
        let group = of.groups.all().find(|g| (g.0, g.1) == (v6, out))?;
        let (list, rules) = named(config, v6, Some(group.2))?;
        Some((name.number, list, rules))
    };
    vlans.filter_map(list).collect()
}

/// Rules of VLANs' devices at most, all of them together.
const OF_VLANS: usize = 16 * RULES;

/// All rules of a configuration, at these ports, of so many Mb/s each. Where they are more than there may be, there are only
/// as many as show that: each list may be at each VLAN.
pub(crate) fn rules(config: &Config, ports: &[(Name, u32)], router: [u8; 6]) -> Rules {
    let mut all = Rules::default();
    let sets = |i: &Interface| {
        i.groups != Default::default() || i.storm != Default::default() || i.policy.is_some()
    };
    if config.sessions.is_empty() && !config.interfaces.values().any(sets) {
        return all;
    }
    lists(config, ports, router, &mut all);
    for (port, mbps) in ports {
        let of = config.interface(port);
        let storm = layers::storm(port.number, *mbps, &of.storm);
        for limits in [policy::rules(config, port.number, &of), storm] {
            for rule in &limits {
                let whose = (port.number, rule.filter.text.clone());
                let index = rule.filter.police.map(|p| p.index);
                all.limits.extend(index.map(|i| (i, whose)));
            }
            if !limits.is_empty() {
                let rules = all.ports.entry((port.number, false)).or_default();
                *rules = layers::product(limits, std::mem::take(rules));
            }
        }
        for out in [false, true] {
            if let Some(to) = layers::copied_to(config, port, out) {
                let at = (port.number, out);
                layers::copy(all.ports.entry(at).or_default(), to);
                all.copies.insert(at, to);
            }
        }
    }
    all
}

/// Those of access lists.
fn lists(config: &Config, ports: &[(Name, u32)], router: [u8; 6], all: &mut Rules) {
    let mut of_vlans = 0;
    for (v6, ethertype) in [(false, IPV4), (true, IPV6)] {
        let [ins, outs] = [false, true].map(|out| routed(config, v6, out));
        for (out, lists) in [(false, &ins), (true, &outs)] {
            for (vid, name, list) in lists {
                let base = Whose::default().base(ethertype);
                if of_vlans <= OF_VLANS {
                    let rules = of_list(&base, name, list).into_iter().map(|r| r.filter);
                    let there = all.vlans.entry((*vid, out)).or_default();
                    of_vlans += rules.len();
                    there.extend(rules);
                }
            }
        }
        for (port, _) in ports {
            let of = config.interface(port);
            let own = of.groups.all().find(|g| (g.0, g.1) == (v6, false));
            let own = named(config, v6, own.map(|g| g.2));
            if let Some((name, list)) = &own {
                let base = Whose::default().base(ethertype);
                let rules = all.ports.entry((port.number, false)).or_default();
                rules.extend(of_list(&base, name, list));
                all.listed.insert((port.number, v6));
            }
            let Some(set) = &of.switchport else { continue };
            for (out, lists) in [(false, &ins), (true, &outs)] {
                if !out && own.is_some() {
                    continue;
                }
                for (vid, name, list) in lists {
                    for tci in tags(config, set, *vid, out) {
                        let whose = Whose {
                            to: (!out).then_some(router),
                            from: out.then_some(router),
                            tci,
                        };
                        let rules = all.ports.entry((port.number, out)).or_default();
                        if rules.len() <= RULES {
                            rules.extend(of_list(&whose.base(ethertype), name, list));
                        }
                    }
                }
            }
        }
    }
    if !all.vlans.is_empty() {
        let every = config.interfaces.values().flat_map(addresses);
        all.own = every.map(|(a, _)| a).collect();
    }
}

/// A configuration with the destinations of copies in no VLAN.
pub(crate) fn without_monitors(config: &Config) -> Cow<'_, Config> {
    if config.sessions.is_empty() {
        return Cow::Borrowed(config);
    }
    let mut config = config.clone();
    let all = config.sessions.values().filter_map(|s| s.destination);
    for name in all.collect::<Vec<Name>>() {
        let of = config.interfaces.entry(name);
        let of = of.or_insert_with(|| Interface::new(&name));
        of.switchport = Some(Switchport {
            mode: Mode::Trunk,
            allowed: Some(BTreeSet::new()),
            ..Switchport::default()
        });
        of.groups = Default::default();
        of.storm = Default::default();
        of.policy = None;
    }
    Cow::Owned(config)
}

impl Rules {
    /// Makes the database's rules be these, where they were others.
    pub fn set(&self, was: &Rules, d: &mut Database) {
        let keys: BTreeSet<_> = was.ports.keys().chain(self.ports.keys()).collect();
        for key in keys {
            let (old, new) = (was.ports.get(key), self.ports.get(key));
            if old != new {
                let rules = new.into_iter().flatten().map(|r| r.filter.clone());
                d.set_rules(key.0, key.1, rules.collect());
            }
        }
        let keys: BTreeSet<_> = was.vlans.keys().chain(self.vlans.keys()).collect();
        for key in keys {
            let rules = self.vlans.get(key).cloned().unwrap_or_default();
            d.set_vlan_rules(key.0, key.1, rules);
        }
        d.set_listed(self.listed.clone());
        d.set_own(self.own.clone());
        d.set_copies(self.copies.clone());
    }
}

/// What can't be asked for.
///
/// # Errors
/// Why, in one line.
pub(crate) fn check(config: &Config, rules: &Rules) -> Result<(), String> {
    for (name, of) in &config.interfaces {
        let out = of.groups.all().any(|g| g.1);
        if of.groups != Default::default() && !name.is_port() && name.kind != Kind::Vlan {
            return Err(format!(
                "{name}: only ports and VLAN interfaces have access lists"
            ));
        }
        if out && name.is_port() {
            return Err(format!(
                "{name}: an access list of a port is one of what comes in"
            ));
        }
    }
    for (name, of) in &config.interfaces {
        let limits = [of.storm != Default::default(), of.policy.is_some()];
        if limits.contains(&true) && !name.is_port() {
            return Err(format!("{name}: only ports have limits of what comes in"));
        }
        if limits == [true; 2] {
            return Err(format!(
                "{name}: a frame has one limit in the chip: storm-control or a policy"
            ));
        }
    }
    monitors(config)?;
    channels(config)?;
    if let Some((port, _)) = rules.ports.iter().find(|(_, r)| r.len() > RULES) {
        return Err(format!(
            "port {}: the access lists come to more than {RULES} rules, which is the most",
            port.0
        ));
    }
    match rules.vlans.values().map(Vec::len).sum::<usize>() > OF_VLANS {
        true => Err(format!(
            "the access lists of VLAN interfaces come to more than {OF_VLANS} rules, which is the most"
        )),
        false => Ok(()),
    }
}

/// VLAN interfaces with lists are asked for at ports, and a group of the chip has no list of its own here.
fn channels(config: &Config) -> Result<(), String> {
    let pairs = [(false, false), (false, true), (true, false), (true, true)];
    for (v6, out) in pairs {
        for (vid, list, _) in routed(config, v6, out) {
            let is_in = |set: &Switchport| !tags(config, set, vid, out).is_empty();
            let mut all = crate::channels::with_ports(config);
            let found = all.find(|(_, of)| of.switchport.as_ref().is_some_and(is_in));
            if let Some((name, _)) = found {
                return Err(format!(
                    "Vlan{vid} has access list {list}, and {name} is in VLAN {vid}: an access list can't be asked at a port-channel"
                ));
            }
        }
    }
    Ok(())
}

/// Sessions that can't be.
fn monitors(config: &Config) -> Result<(), String> {
    for (n, session) in &config.sessions {
        let sources = session.sources.iter();
        let ways = sources.flat_map(|(name, w)| [(name, false, w.rx), (name, true, w.tx)]);
        for (name, out, _) in ways.filter(|w| w.2) {
            let other = |(m, s): &(&u8, &monitor::Session)| {
                let theirs = s.sources.get(name).copied().unwrap_or_default();
                *m < n && s.destination.is_some() && (if out { theirs.tx } else { theirs.rx })
            };
            let first = config.sessions.iter().find(other);
            if let Some((m, _)) = first.filter(|_| session.destination.is_some()) {
                return Err(format!(
                    "{name}: sessions {m} and {n} copy the same frames, and the chip copies each once"
                ));
            }
        }
        let Some(to) = &session.destination else {
            continue;
        };
        let mut others = config.sessions.iter();
        if !to.is_port() || others.any(|(_, s)| s.sources.contains_key(to)) {
            return Err(format!("{to}: copies can't be sent there"));
        }
        let twice = |(m, s): (&u8, &monitor::Session)| m != n && s.destination == Some(*to);
        if config.sessions.iter().any(twice) {
            return Err(format!("{to} is the destination of two sessions"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

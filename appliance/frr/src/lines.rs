// SPDX-License-Identifier: Apache-2.0
//! A configuration as the lines that FRR's daemons are told, and what they say of themselves as such lines.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use tandem_swconfig::routing::{Area, AtInterface, Origin, Peer, Router, Setting};
use tandem_swconfig::{Config, Kind, Name, Net};

/// One of FRR's daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Daemon {
    Ospf,
    Rip,
    Bgp,
}

impl Daemon {
    /// All of them.
    pub const ALL: [Daemon; 3] = [Daemon::Ospf, Daemon::Rip, Daemon::Bgp];

    /// What its program is called.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Daemon::Ospf => "ospfd",
            Daemon::Rip => "ripd",
            Daemon::Bgp => "bgpd",
        }
    }
}

/// A line of a daemon's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Whose.
    pub daemon: Daemon,
    /// What it stands below: `router bgp 65001`, `address-family ipv4 unicast`.
    pub below: Vec<String>,
    /// As it is said, and as the daemon writes it.
    pub text: String,
    /// How it is taken back.
    pub no: String,
    /// Of which thing it is: another line of the same takes its place.
    pub slot: String,
    /// Of a neighbour: which one, with whom it goes.
    pub peer: Option<Ipv4Addr>,
}

impl Line {
    fn new(daemon: Daemon, below: &[&str], text: impl Into<String>) -> Line {
        let text = text.into();
        Line {
            daemon,
            below: below.iter().map(|s| (*s).to_owned()).collect(),
            no: turned(&text),
            slot: text.clone(),
            text,
            peer: None,
        }
    }

    /// With another way back, whatever stands behind these words in it.
    fn of(mut self, slot: &str) -> Line {
        slot.clone_into(&mut self.slot);
        self.no = format!("no {slot}");
        self
    }

    /// Does it come and go with the other one?
    #[must_use]
    pub fn is_below(&self, other: &Line) -> bool {
        let inside = other.is_head() && self.below.first() == Some(&other.text);
        let peer = other.is_peer() && self != other && self.peer == other.peer;
        self.daemon == other.daemon && (inside || peer)
    }

    /// A line that others stand below.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.below.is_empty()
    }

    fn is_peer(&self) -> bool {
        self.peer.is_some() && self.text.contains(" remote-as ")
    }

    /// The same line, whoever has written it.
    #[must_use]
    pub fn is(&self, other: &Line) -> bool {
        self.daemon == other.daemon && self.below == other.below && self.text == other.text
    }

    /// Of the same thing, which has one value.
    #[must_use]
    pub fn replaces(&self, other: &Line) -> bool {
        self.daemon == other.daemon && self.below == other.below && self.slot == other.slot
    }
}

/// With `no` in front, or without it.
fn turned(text: &str) -> String {
    match text.strip_prefix("no ") {
        Some(rest) => rest.to_owned(),
        None => format!("no {text}"),
    }
}

/// What FRR calls an interface.
#[must_use]
pub fn device(name: &Name) -> String {
    match name.kind {
        Kind::Loopback => "lo".into(),
        Kind::Vlan => format!("vlan{}", name.number),
        _ => format!("swp{}", name.number),
    }
}

fn origin(from: Origin) -> &'static str {
    match from {
        Origin::Connected => "connected",
        // the engine's are the kernel's, as FRR sees it
        Origin::Static => "kernel",
        Origin::Rip => "rip",
        Origin::Ospf(_) => "ospf",
        Origin::Bgp(_) => "bgp",
    }
}

const OSPF: &str = "router ospf";
const RIP: &str = "router rip";
const FAMILY: &str = "address-family ipv4 unicast";

fn prefix(net: &Net<Ipv4Addr>) -> String {
    format!("{}/{}", net.address, net.prefix)
}

fn dotted(area: u32) -> String {
    Ipv4Addr::from(area).to_string()
}

/// All lines, in the order in which they are said.
#[must_use]
pub fn lines(config: &Config) -> Vec<Line> {
    let mut all = Vec::new();
    for (router, settings) in &config.routers {
        let (daemon, head) = match router {
            Router::Ospf(_) => (Daemon::Ospf, OSPF.to_owned()),
            Router::Rip => (Daemon::Rip, RIP.to_owned()),
            Router::Bgp(asn) => (Daemon::Bgp, format!("router bgp {asn}")),
        };
        all.push(Line::new(daemon, &[], head.as_str()));
        // what is not said otherwise is as in IOS, not as in FRR
        if daemon == Daemon::Ospf {
            // milliseconds. What this router has to say waits no 5 s; what others say is taken however soon it comes
            // after the last: a neighbour that has just come up says two things, and the second one again after 10 s
            for timer in ["timers throttle lsa all 200", "timers lsa min-arrival 0"] {
                all.push(Line::new(daemon, &[&head], timer));
            }
        }
        if daemon == Daemon::Bgp {
            all.push(Line::new(daemon, &[&head], "no bgp ebgp-requires-policy"));
            let usual = |s: &Setting| matches!(s, Setting::MaximumPaths(_));
            if !settings.iter().any(usual) {
                all.push(paths(&head, 1));
            }
        }
        for s in settings {
            all.extend(line(daemon, &head, s, config));
        }
        match daemon {
            Daemon::Ospf => all.extend(passive(settings, config)),
            Daemon::Bgp => all.extend(activities(&head, settings)),
            Daemon::Rip => {}
        }
    }
    for (name, of) in &config.interfaces {
        let below = format!("interface {}", device(name));
        all.extend(of.ospf.iter().map(|s| at_interface(&below, *s)));
        // as in IOS: to FRR the one says nothing of the other, and neighbours have to have the same
        let dead = of.ospf.iter().any(|s| matches!(s, AtInterface::Dead(_)));
        let four = of.ospf.iter().find_map(|s| match s {
            AtInterface::Hello(n) if !dead => Some(AtInterface::Dead(n.saturating_mul(4))),
            _ => None,
        });
        all.extend(four.map(|s| at_interface(&below, s)));
    }
    all
}

/// The interfaces that say nothing in OSPF, each by itself: to FRR an interface that is no exception from a default any more
/// is an exception of the other kind, for good.
fn passive(settings: &BTreeSet<Setting>, config: &Config) -> Vec<Line> {
    let usual = settings.contains(&Setting::PassiveDefault);
    let mut names: BTreeSet<Name> = BTreeSet::new();
    if usual {
        let all = config.interfaces.keys();
        names.extend(all.filter(|n| n.kind == Kind::Vlan));
    }
    for s in settings {
        match s {
            Setting::Passive(name, true) => drop(names.insert(*name)),
            Setting::Passive(name, false) => drop(names.remove(name)),
            _ => {}
        }
    }
    let line = |name: &Name| {
        let below = format!("interface {}", device(name));
        Line::new(Daemon::Ospf, &[&below], "ip ospf passive")
    };
    names.iter().map(line).collect()
}

/// Whether a neighbour is told IPv4 routes, in a line.
fn activity(head: &str, address: Ipv4Addr, on: bool) -> Line {
    let slot = format!("neighbor {address} activate");
    let no = if on { "" } else { "no " };
    let mut line = Line::new(Daemon::Bgp, &[head, FAMILY], format!("{no}{slot}"));
    (line.slot, line.peer) = (slot, Some(address));
    line
}

/// Of each neighbour a line says it: to FRR one that is there stays as it is when another default is set.
fn activities(head: &str, settings: &BTreeSet<Setting>) -> Vec<Line> {
    let usual = !settings.contains(&Setting::NoDefaultUnicast);
    let line = |s: &Setting| {
        let Setting::Neighbor(address, Peer::RemoteAs(_)) = s else {
            return None;
        };
        let other = Setting::Neighbor(*address, Peer::Activate(!usual));
        let on = if settings.contains(&other) {
            !usual
        } else {
            usual
        };
        Some(activity(head, *address, on))
    };
    settings.iter().filter_map(line).collect()
}

fn paths(head: &str, most: u8) -> Line {
    Line::new(
        Daemon::Bgp,
        &[head, FAMILY],
        format!("maximum-paths {most}"),
    )
    .of("maximum-paths")
}

fn line(daemon: Daemon, head: &str, setting: &Setting, config: &Config) -> Option<Line> {
    let here = [head];
    let inside = [head, FAMILY];
    // routes of a family stand below it
    let of_routes: &[&str] = if daemon == Daemon::Bgp {
        &inside
    } else {
        &here
    };
    let new = |text: String| Line::new(daemon, &here, text);
    let bgp = daemon == Daemon::Bgp;
    Some(match setting {
        Setting::RouterId(id) => {
            let slot = if bgp {
                "bgp router-id"
            } else {
                "ospf router-id"
            };
            new(format!("{slot} {id}")).of(slot)
        }
        Setting::LogChanges if bgp => new("bgp log-neighbor-changes".into()),
        Setting::LogChanges => new("log-adjacency-changes".into()),
        Setting::NoDefaultUnicast => new("no bgp default ipv4-unicast".into()),
        Setting::Version(n) => new(format!("version {n}")).of("version"),
        Setting::Area(area, kind) => {
            let (word, most) = match kind {
                Area::Stub(most) => ("stub", *most),
                Area::Nssa(most) => ("nssa", *most),
            };
            let tail = if most { " no-summary" } else { "" };
            let kind = format!("area {} {word}", dotted(*area));
            let mut line = new(format!("{kind}{tail}"));
            // of one kind, the other line takes its place only when it has gone: FRR keeps the tail of an NSSA
            line.no = format!("no {kind}");
            line
        }
        Setting::Redistribute(from, metric) => {
            let slot = format!("redistribute {}", origin(*from));
            let tail = metric.map_or_else(String::new, |m| format!(" metric {m}"));
            let mut line = Line::new(daemon, of_routes, format!("{slot}{tail}")).of(&slot);
            if bgp {
                // bgpd refuses it without a metric where it has it with one
                line.slot = line.text.clone();
            }
            line
        }
        // see `passive`
        Setting::PassiveDefault | Setting::Passive(..) if daemon == Daemon::Ospf => return None,
        Setting::PassiveDefault => new("passive-interface default".into()),
        Setting::Passive(name, on) => {
            let no = if *on { "" } else { "no " };
            new(format!("{no}passive-interface {}", device(name)))
        }
        Setting::Network(net, area) => {
            let slot = format!("network {}", prefix(net));
            match area {
                Some(area) => new(format!("{slot} area {}", dotted(*area))),
                None => Line::new(daemon, of_routes, slot),
            }
        }
        // see `activities`
        Setting::Neighbor(_, Peer::Activate(_)) => return None,
        Setting::Neighbor(address, peer) => self::peer(head, *address, peer, config),
        Setting::MaximumPaths(n) => paths(head, *n),
        Setting::DefaultInformation(always) => {
            let tail = if *always { " always" } else { "" };
            let slot = "default-information originate";
            new(format!("{slot}{tail}")).of(slot)
        }
    })
}

fn peer(head: &str, address: Ipv4Addr, peer: &Peer, config: &Config) -> Line {
    let here = [head];
    let inside = [head, FAMILY];
    let new = |below: &[&str], slot: &str, tail: String| {
        let slot = format!("neighbor {address} {slot}");
        let mut line = Line::new(Daemon::Bgp, below, format!("{slot}{tail}")).of(&slot);
        line.peer = Some(address);
        line
    };
    match peer {
        Peer::RemoteAs(asn) => {
            let mut line = new(&here, "remote-as", format!(" {asn}"));
            // in another AS it is another neighbour: FRR drops what it can't have there, and does not take it up again
            line.slot = line.text.clone();
            line.no = format!("no neighbor {address}");
            line
        }
        Peer::Description(text) => {
            // FRR has one space between words
            let words: Vec<&str> = text.split_whitespace().collect();
            new(&here, "description", format!(" {}", words.join(" ")))
        }
        Peer::Shutdown => new(&here, "shutdown", String::new()),
        Peer::Password(word) => new(&here, "password", format!(" {word}")),
        Peer::EbgpMultihop(hops) => new(&here, "ebgp-multihop", format!(" {hops}")),
        Peer::UpdateSource(name) => {
            // all loopbacks are on one device: it is the address that tells them apart
            let own = config.interfaces.get(name).and_then(|i| i.ipv4);
            let from = match own.filter(|_| name.kind == Kind::Loopback) {
                Some(net) => net.address.to_string(),
                None => device(name),
            };
            new(&here, "update-source", format!(" {from}"))
        }
        Peer::Timers(keep, hold) => new(&here, "timers", format!(" {keep} {hold}")),
        Peer::Activate(on) => activity(head, address, *on),
        Peer::NextHopSelf => new(&inside, "next-hop-self", String::new()),
        Peer::ReflectorClient => new(&inside, "route-reflector-client", String::new()),
    }
}

fn at_interface(below: &str, of: AtInterface) -> Line {
    let new = |slot: &str, value: String| {
        let slot = format!("ip ospf {slot}");
        Line::new(Daemon::Ospf, &[below], format!("{slot} {value}")).of(&slot)
    };
    match of {
        AtInterface::PointToPoint => new("network", "point-to-point".into()),
        AtInterface::Area(_, area) => new("area", dotted(area)),
        AtInterface::Cost(n) => new("cost", n.to_string()),
        AtInterface::Hello(n) => new("hello-interval", n.to_string()),
        AtInterface::Dead(n) => new("dead-interval", n.to_string()),
        AtInterface::Priority(n) => new("priority", n.to_string()),
    }
}

/// What a daemon's running configuration has of what is ours to say, from its text.
#[must_use]
pub fn read(daemon: Daemon, text: &str) -> Vec<Line> {
    let mut all = Vec::new();
    // what the next line may stand below, and how far in
    let mut stack: Vec<(usize, String)> = Vec::new();
    for raw in text.lines() {
        let line = raw.trim();
        let over = matches!(line, "" | "!" | "end" | "exit" | "exit-address-family");
        let inner = raw.len() - raw.trim_start().len();
        if over {
            continue;
        }
        while stack.last().is_some_and(|(depth, _)| *depth >= inner) {
            stack.pop();
        }
        let below: Vec<&str> = stack.iter().map(|(_, l)| l.as_str()).collect();
        let mut found = Line::new(daemon, &below, line);
        let mut words = line.split_whitespace().skip_while(|w| *w == "no");
        if words.next() == Some("neighbor") {
            found.peer = words.next().and_then(|a| a.parse().ok());
            if line.ends_with(" activate") {
                found.slot = line.trim_start_matches("no ").to_owned();
            }
            if found.is_peer() {
                found.no = format!("no neighbor {}", words_of(line, 1));
            }
        }
        if let Some(kind) = line.strip_suffix(" no-summary") {
            found.no = format!("no {kind}");
        }
        if is_ours(daemon, &below, line) {
            all.push(found);
        }
        stack.push((inner, line.to_owned()));
    }
    // FRR has an area of this kind twice, without and with its tail: it is one
    let tails: Vec<String> = all
        .iter()
        .filter_map(|l| l.text.strip_suffix(" no-summary").map(str::to_owned))
        .collect();
    all.retain(|l| !tails.contains(&l.text));
    all.extend(unsaid(&all));
    all
}

/// What FRR does not write of neighbours, for it is as usual there.
fn unsaid(all: &[Line]) -> Vec<Line> {
    let line = |l: &Line| {
        let (head, address) = (l.below.first()?, l.peer?);
        let of = |text: &str| all.iter().any(|o| o.below == l.below && o.text == text);
        let found = activity(head, address, !of("no bgp default ipv4-unicast"));
        let said = all.iter().any(|o| o.replaces(&found));
        (l.is_peer() && !said).then_some(found)
    };
    all.iter().filter_map(line).collect()
}

fn words_of(line: &str, at: usize) -> &str {
    line.split_whitespace().nth(at).unwrap_or_default()
}

/// Is a line one that is said from here? Log files and what the host is called are not.
fn is_ours(daemon: Daemon, below: &[&str], line: &str) -> bool {
    let head = match daemon {
        Daemon::Ospf => OSPF,
        Daemon::Rip => RIP,
        Daemon::Bgp => "router bgp ",
    };
    match below.first() {
        // a family is no line: it is there with what stands below it
        Some(first) if first.starts_with(head) => !line.starts_with("address-family"),
        Some(first) if first.starts_with("interface ") && daemon == Daemon::Ospf => {
            // what is not said: that it speaks
            line.starts_with("ip ospf ")
        }
        Some(_) => false,
        // of another VRF there are none here
        None => line.starts_with(head) && !line.contains(" vrf "),
    }
}

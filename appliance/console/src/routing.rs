// SPDX-License-Identifier: Apache-2.0
//! `router ospf|rip|bgp` and `ip ospf …`: what they make of a configuration, and the lines that say it.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use tandem_swconfig::routing::{self, Area, AtInterface, Origin, Peer, Router, Setting};
use tandem_swconfig::{Config, Interface, Kind, Name, Net};
use tandem_swgrammar::{Arg, Form, Id, Mode, Parsed};

use crate::change::{Done, INTERNAL, Scope, mask4, network4};

/// The mode in which a protocol is configured.
pub(crate) fn mode(router: &Router) -> Mode {
    match router {
        Router::Ospf(_) => Mode::Ospf,
        Router::Rip => Mode::Rip,
        Router::Bgp(_) => Mode::Bgp,
    }
}

/// The network of a class that an address is in.
pub(crate) fn class(address: Ipv4Addr) -> Net<Ipv4Addr> {
    let prefix = match address.octets()[0] {
        0..128 => 8,
        128..192 => 16,
        _ => 24,
    };
    Net {
        address: network4(Net { address, prefix }),
        prefix,
    }
}

/// `router ospf 1`, and `no` of it.
pub(crate) fn of_switch(config: &mut Config, parsed: &Parsed) -> Result<Done, String> {
    let number = parsed.number();
    let router = match parsed.id {
        Id::RouterOspf => Router::Ospf(small(number)?),
        Id::RouterRip => Router::Rip,
        _ => Router::Bgp(number.ok_or(INTERNAL)?),
    };
    let mut done = Done::default();
    if parsed.form != Form::Plain {
        if config.routers.remove(&router).is_none() {
            return Err(match router {
                Router::Ospf(n) => format!("% OSPF: No router process {n}"),
                Router::Rip => "% RIP is not running".into(),
                Router::Bgp(n) => format!("% BGP is not running in AS {n}"),
            });
        }
        if let Router::Ospf(_) = router {
            for of in config.interfaces.values_mut() {
                of.ospf.retain(|s| !matches!(s, AtInterface::Area(..)));
            }
        }
        return Ok(done);
    }
    make(config, router)?;
    done.scope = Some(Scope::Router(router));
    Ok(done)
}

/// A protocol runs once: FRR's daemon of it is one.
fn make(config: &mut Config, router: Router) -> Result<(), String> {
    for other in config.routers.keys().filter(|o| **o != router) {
        match (other, router) {
            (Router::Ospf(n), Router::Ospf(_)) => {
                return Err(format!(
                    "% OSPF process {n} is there already, and is the only one"
                ));
            }
            (Router::Bgp(n), Router::Bgp(_)) => {
                return Err(
                    format!("BGP is already running; AS is {n}").replacen("BGP", "% BGP", 1)
                );
            }
            _ => {}
        }
    }
    config.routers.entry(router).or_default();
    Ok(())
}

fn small<T: TryFrom<u32>>(number: Option<u32>) -> Result<T, String> {
    let number = number.and_then(|n| T::try_from(n).ok());
    number.ok_or_else(|| INTERNAL.into())
}

fn numbers(parsed: &Parsed) -> Vec<u32> {
    let of = |a: &Arg| match a {
        Arg::Number(n) => Some(*n),
        _ => None,
    };
    parsed.args.iter().filter_map(of).collect()
}

fn address(parsed: &Parsed) -> Result<Ipv4Addr, String> {
    let of = |a: &Arg| match a {
        Arg::Address(a) => Some(*a),
        _ => None,
    };
    let found = parsed.args.iter().find_map(of);
    found.ok_or_else(|| INTERNAL.into())
}

/// A line of `config-router`.
pub(crate) fn of_router(
    config: &mut Config,
    router: &Router,
    parsed: &Parsed,
) -> Result<(), String> {
    let Some(all) = config.routers.get_mut(router) else {
        return Err("% That routing process is not there any more".into());
    };
    let plain = parsed.form == Form::Plain;
    let one = match parsed.id {
        Id::AddressFamily => return Ok(()),
        Id::AutoSummary if plain => {
            return Err("% Networks are told as they are: no auto-summary is what there is".into());
        }
        Id::AutoSummary => return Ok(()),
        // said is what is not so out of the box
        Id::DefaultUnicast => {
            default_unicast(all, parsed.form != Form::No);
            return Ok(());
        }
        Id::RouterId => Setting::RouterId(match plain {
            true => address(parsed)?,
            false => Ipv4Addr::UNSPECIFIED,
        }),
        Id::LogChanges => Setting::LogChanges,
        Id::RipVersion => Setting::Version(small(parsed.number().or(Some(2)))?),
        Id::AreaKind => area(parsed)?,
        Id::Redistribute => redistribute(parsed)?,
        Id::PassiveInterface => {
            let Some(name) = parsed.interfaces().first().copied() else {
                return passive_default(all, plain);
            };
            return passive(all, name, plain);
        }
        Id::RouterNetwork => network(parsed)?,
        Id::MaximumPaths => Setting::MaximumPaths(small(parsed.number().or(Some(1)))?),
        Id::DefaultInformation => Setting::DefaultInformation(parsed.has("always")),
        _ => return neighbour(all, parsed),
    };
    match plain {
        true => {
            let usual = one == Setting::MaximumPaths(1);
            routing::set(all, one);
            if usual {
                all.remove(&Setting::MaximumPaths(1));
            }
        }
        false => {
            let before = all.len();
            all.retain(|s| !s.is_of(&one));
            if let (Setting::Network(..), true) = (&one, all.len() == before) {
                return Err("% There is no such network".into());
            }
        }
    }
    Ok(())
}

fn area(parsed: &Parsed) -> Result<Setting, String> {
    let number = parsed.number().ok_or(INTERNAL)?;
    if number == 0 {
        return Err("% OSPF: Backbone can not be configured as stub or NSSA area".into());
    }
    let most = parsed.has("no-summary");
    Ok(Setting::Area(
        number,
        match parsed.has("stub") {
            true => Area::Stub(most),
            false => Area::Nssa(most),
        },
    ))
}

fn redistribute(parsed: &Parsed) -> Result<Setting, String> {
    let mut numbers = numbers(parsed).into_iter();
    let from = if parsed.has("connected") {
        Origin::Connected
    } else if parsed.has("static") {
        Origin::Static
    } else if parsed.has("rip") {
        Origin::Rip
    } else if parsed.has("ospf") {
        Origin::Ospf(small(numbers.next())?)
    } else {
        Origin::Bgp(numbers.next().ok_or(INTERNAL)?)
    };
    Ok(Setting::Redistribute(from, numbers.next()))
}

fn network(parsed: &Parsed) -> Result<Setting, String> {
    let address = address(parsed)?;
    let prefix = parsed.args.iter().find_map(|a| match a {
        Arg::Mask(prefix) => Some(*prefix),
        _ => None,
    });
    let net = match prefix {
        Some(prefix) => Net {
            address: network4(Net { address, prefix }),
            prefix,
        },
        None => class(address),
    };
    Ok(Setting::Network(net, parsed.number()))
}

fn passive_default(all: &mut BTreeSet<Setting>, on: bool) -> Result<(), String> {
    // what was an exception is none of the other
    all.retain(|s| !matches!(s, Setting::PassiveDefault | Setting::Passive(..)));
    if on {
        all.insert(Setting::PassiveDefault);
    }
    Ok(())
}

fn passive(all: &mut BTreeSet<Setting>, name: Name, on: bool) -> Result<(), String> {
    if name.is_switched() {
        return Err(format!(
            "% {name} is a switched port: its VLAN's interface routes"
        ));
    }
    let usual = all.contains(&Setting::PassiveDefault);
    all.retain(|s| !s.is_of(&Setting::Passive(name, on)));
    if on != usual {
        all.insert(Setting::Passive(name, on));
    }
    Ok(())
}

/// Whether new neighbours are told IPv4 routes without a word; those that there are stay as they are.
fn default_unicast(all: &mut BTreeSet<Setting>, on: bool) {
    if on != all.contains(&Setting::NoDefaultUnicast) {
        return;
    }
    let before = std::mem::take(all);
    let said = |a: &Ipv4Addr| before.contains(&Setting::Neighbor(*a, Peer::Activate(on)));
    for s in &before {
        match s {
            Setting::NoDefaultUnicast | Setting::Neighbor(_, Peer::Activate(_)) => {}
            Setting::Neighbor(a, Peer::RemoteAs(_)) => {
                // what was so without a word has to be said from now on
                all.extend((!said(a)).then_some(Setting::Neighbor(*a, Peer::Activate(!on))));
                all.insert(s.clone());
            }
            other => drop(all.insert(other.clone())),
        }
    }
    if !on {
        all.insert(Setting::NoDefaultUnicast);
    }
}

fn neighbour(all: &mut BTreeSet<Setting>, parsed: &Parsed) -> Result<(), String> {
    let address = address(parsed)?;
    let plain = parsed.form == Form::Plain;
    let numbers = numbers(parsed);
    let text = || parsed.text().unwrap_or_default().to_owned();
    let first = numbers.first().copied();
    let peer = match parsed.id {
        Id::PeerRemoteAs if !plain => {
            let before = all.len();
            all.retain(|s| !matches!(s, Setting::Neighbor(a, _) if *a == address));
            return match all.len() == before {
                true => Err("% There is no such neighbor".into()),
                false => Ok(()),
            };
        }
        Id::PeerRemoteAs => Peer::RemoteAs(first.ok_or(INTERNAL)?),
        Id::PeerDescription => Peer::Description(
            text()
                .chars()
                .take(80)
                .collect::<String>()
                .trim_end()
                .into(),
        ),
        Id::PeerShutdown => Peer::Shutdown,
        Id::PeerPassword => Peer::Password(text()),
        Id::PeerMultihop => Peer::EbgpMultihop(small(first.or(Some(1)))?),
        Id::PeerSource => {
            let name = parsed.interfaces().first().copied();
            if name.is_some_and(|n| n.is_switched()) {
                return Err("% A switched port has no address: its VLAN's interface has".into());
            }
            Peer::UpdateSource(name.unwrap_or(Name {
                kind: Kind::Vlan,
                number: 1,
            }))
        }
        Id::PeerTimers => {
            let at = |i: usize| small(numbers.get(i).copied().or(Some(0)));
            let (keep, hold): (u16, u16) = (at(0)?, at(1)?);
            if plain && (1..3).contains(&hold) {
                return Err("% Hold time is 0, or 3 seconds or more".into());
            }
            Peer::Timers(keep, hold)
        }
        Id::PeerActivate => {
            let usual = !all.contains(&Setting::NoDefaultUnicast);
            match parsed.form {
                Form::Default => Peer::Activate(usual),
                form => Peer::Activate(form == Form::Plain),
            }
        }
        Id::PeerNextHopSelf => Peer::NextHopSelf,
        Id::PeerReflector => Peer::ReflectorClient,
        _ => return Err(INTERNAL.into()),
    };
    let is_there =
        |s: &Setting| matches!(s, Setting::Neighbor(a, Peer::RemoteAs(_)) if *a == address);
    if !matches!(peer, Peer::RemoteAs(_)) && !all.iter().any(is_there) {
        return Err("% Specify remote-as or peer-group commands first".into());
    }
    if let Peer::Activate(on) = peer {
        let usual = !all.contains(&Setting::NoDefaultUnicast);
        let one = Setting::Neighbor(address, peer);
        all.retain(|s| !s.is_of(&one));
        if on != usual {
            all.insert(one);
        }
        return Ok(());
    }
    let one = Setting::Neighbor(address, peer);
    match plain {
        true => routing::set(all, one),
        false => all.retain(|s| !s.is_of(&one)),
    }
    Ok(())
}

/// `ip ospf …` of an interface; what comes back is a process that has to be there for it.
pub(crate) fn of_interface(
    config: &mut Config,
    name: &Name,
    set: &mut Interface,
    parsed: &Parsed,
) -> Result<(), String> {
    if set.switchport.is_some() {
        return Err(format!(
            "% {name} is a switched port: its VLAN's interface routes"
        ));
    }
    let plain = parsed.form == Form::Plain;
    let numbers = numbers(parsed);
    let first = numbers.first().copied();
    let or_one = || first.or(Some(1));
    let one = match parsed.id {
        Id::OspfNetwork if plain && parsed.has("broadcast") => {
            set.ospf.remove(&AtInterface::PointToPoint);
            return Ok(());
        }
        Id::OspfNetwork => AtInterface::PointToPoint,
        Id::OspfArea => {
            let process = small(first)?;
            let area = numbers.get(1).copied();
            if plain {
                make(config, Router::Ospf(process))?;
            }
            AtInterface::Area(process, area.unwrap_or(0))
        }
        Id::OspfCost => AtInterface::Cost(small(or_one())?),
        Id::OspfHello => AtInterface::Hello(small(or_one())?),
        Id::OspfDead => AtInterface::Dead(small(or_one())?),
        Id::OspfPriority => AtInterface::Priority(small(or_one())?),
        _ => return Err(INTERNAL.into()),
    };
    match plain {
        true => routing::set_at(&mut set.ospf, one),
        false => {
            let other = |s: &AtInterface| std::mem::discriminant(s) != std::mem::discriminant(&one);
            set.ospf.retain(other);
        }
    }
    Ok(())
}

/// Is it a command of `ip ospf …`?
pub(crate) fn is_interfaces(id: Id) -> bool {
    use Id::{OspfArea, OspfCost, OspfDead, OspfHello, OspfNetwork, OspfPriority};
    matches!(
        id,
        OspfArea | OspfCost | OspfDead | OspfHello | OspfNetwork | OspfPriority
    )
}

/// The line that says what is set of an interface.
pub(crate) fn interface_line(id: Id, set: &BTreeSet<AtInterface>) -> Option<String> {
    set.iter().find_map(|s| match (id, s) {
        (Id::OspfNetwork, AtInterface::PointToPoint) => {
            Some("ip ospf network point-to-point".into())
        }
        (Id::OspfArea, AtInterface::Area(process, area)) => {
            Some(format!("ip ospf {process} area {area}"))
        }
        (Id::OspfCost, AtInterface::Cost(n)) => Some(format!("ip ospf cost {n}")),
        (Id::OspfHello, AtInterface::Hello(n)) => Some(format!("ip ospf hello-interval {n}")),
        (Id::OspfDead, AtInterface::Dead(n)) => Some(format!("ip ospf dead-interval {n}")),
        (Id::OspfPriority, AtInterface::Priority(n)) => Some(format!("ip ospf priority {n}")),
        _ => None,
    })
}

/// The protocols that a command of configuration mode begins: their first line, and what stands below it.
pub(crate) fn routers(id: Id, config: &Config) -> Vec<(String, Vec<String>)> {
    let of = |router: &Router| {
        matches!(
            (id, router),
            (Id::RouterOspf, Router::Ospf(_))
                | (Id::RouterRip, Router::Rip)
                | (Id::RouterBgp, Router::Bgp(_))
        )
    };
    let all = config.routers.iter().filter(|(r, _)| of(r));
    all.map(|(r, set)| (head(r), set.iter().map(|s| line(r, s)).collect()))
        .collect()
}

fn head(router: &Router) -> String {
    match router {
        Router::Ospf(n) => format!("router ospf {n}"),
        Router::Rip => "router rip".into(),
        Router::Bgp(n) => format!("router bgp {n}"),
    }
}

fn line(router: &Router, setting: &Setting) -> String {
    let bgp = matches!(router, Router::Bgp(_));
    match setting {
        Setting::RouterId(id) if bgp => format!("bgp router-id {id}"),
        Setting::RouterId(id) => format!("router-id {id}"),
        Setting::LogChanges if bgp => "bgp log-neighbor-changes".into(),
        Setting::LogChanges => "log-adjacency-changes".into(),
        Setting::NoDefaultUnicast => "no bgp default ipv4-unicast".into(),
        Setting::Version(n) => format!("version {n}"),
        Setting::Area(n, kind) => {
            let (word, most) = match kind {
                Area::Stub(most) => ("stub", most),
                Area::Nssa(most) => ("nssa", most),
            };
            format!("area {n} {word}{}", if *most { " no-summary" } else { "" })
        }
        Setting::Redistribute(from, metric) => {
            let from = match from {
                Origin::Connected => "connected".into(),
                Origin::Static => "static".into(),
                Origin::Rip => "rip".into(),
                Origin::Ospf(n) => format!("ospf {n}"),
                Origin::Bgp(n) => format!("bgp {n}"),
            };
            let metric = metric.map_or_else(String::new, |m| format!(" metric {m}"));
            format!("redistribute {from}{metric}")
        }
        Setting::PassiveDefault => "passive-interface default".into(),
        Setting::Passive(name, true) => format!("passive-interface {name}"),
        Setting::Passive(name, false) => format!("no passive-interface {name}"),
        Setting::Network(net, Some(area)) => {
            let turned = Ipv4Addr::from(!mask4(net.prefix));
            format!("network {} {turned} area {area}", net.address)
        }
        Setting::Network(net, None) if *net == class(net.address) => {
            format!("network {}", net.address)
        }
        Setting::Network(net, None) => {
            format!(
                "network {} mask {}",
                net.address,
                Ipv4Addr::from(mask4(net.prefix))
            )
        }
        Setting::Neighbor(address, Peer::Activate(false)) => {
            format!("no neighbor {address} activate")
        }
        Setting::Neighbor(address, peer) => format!("neighbor {address} {}", words(peer)),
        Setting::MaximumPaths(n) => format!("maximum-paths {n}"),
        Setting::DefaultInformation(always) => {
            let always = if *always { " always" } else { "" };
            format!("default-information originate{always}")
        }
    }
}

fn words(peer: &Peer) -> String {
    match peer {
        Peer::RemoteAs(n) => format!("remote-as {n}"),
        Peer::Description(text) => format!("description {text}"),
        Peer::Shutdown => "shutdown".into(),
        Peer::Password(word) => format!("password {word}"),
        Peer::EbgpMultihop(n) => format!("ebgp-multihop {n}"),
        Peer::UpdateSource(name) => format!("update-source {name}"),
        Peer::Timers(keep, hold) => format!("timers {keep} {hold}"),
        Peer::Activate(_) => "activate".into(),
        Peer::NextHopSelf => "next-hop-self".into(),
        Peer::ReflectorClient => "route-reflector-client".into(),
    }
}

/// `show ip protocols`; `away`: why a protocol's daemon does not answer.
pub(crate) fn protocols(config: &Config, away: impl Fn(&Router) -> Option<String>) -> String {
    let mut out = String::new();
    for (router, settings) in &config.routers {
        let name = head(router);
        out.push_str(&format!(
            "Routing Protocol is \"{}\"\n",
            name.trim_start_matches("router ")
        ));
        if let Some(why) = away(router) {
            out.push_str(&format!("  It is not carried out: {why}\n"));
        }
        let mut list = |title: &str, of: &dyn Fn(&Setting) -> Option<String>| {
            let lines: Vec<String> = settings.iter().filter_map(of).collect();
            if !lines.is_empty() {
                out.push_str(&format!("  {title}\n"));
                lines
                    .iter()
                    .for_each(|l| out.push_str(&format!("    {l}\n")));
            }
        };
        let text = |s: &Setting| line(router, s);
        let after = |s: &Setting, word: &str| text(s).trim_start_matches(word).trim().to_owned();
        list("Router ID:", &|s| {
            matches!(s, Setting::RouterId(_))
                .then(|| text(s).rsplit(' ').next().unwrap_or_default().to_owned())
        });
        list("Redistributing:", &|s| {
            matches!(s, Setting::Redistribute(..)).then(|| after(s, "redistribute"))
        });
        list("Routing for Networks:", &|s| {
            matches!(s, Setting::Network(..)).then(|| after(s, "network"))
        });
        list("Neighbor(s):", &|s| match s {
            Setting::Neighbor(a, Peer::RemoteAs(n)) => Some(format!("{a}, AS {n}")),
            _ => None,
        });
        list("Passive Interface(s):", &|s| {
            matches!(s, Setting::PassiveDefault | Setting::Passive(..))
                .then(|| after(s, "passive-interface"))
        });
        let distance = match router {
            Router::Ospf(_) => "(default is 110)",
            Router::Rip => "(default is 120)",
            Router::Bgp(_) => "external 20 internal 200 local 200",
        };
        out.push_str(&format!("  Distance: {distance}\n\n"));
    }
    out
}

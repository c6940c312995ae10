// SPDX-License-Identifier: Apache-2.0
//! The routes that follow from the configuration and the state of interfaces, connected and static ones, and beside them
//! those that protocols have put into the kernel; and what the protocols say.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};
use tandem_swconfig::routing::{Ask, Learned, Router};
use tandem_swconfig::{Kind, Name, Net, Route, Via};
use tandem_swgrammar::{Id, Parsed};

use super::{State, states};
use crate::Switch;
use crate::change::{mask4, network4, network6, shown6, within};
use crate::render::shown_mac;
use crate::routing::class;

/// A route that is used.
#[derive(Clone, Debug)]
enum Used {
    Connected(Name),
    Local(Name),
    Static(Vec<Via>, u8),
    Learned(Learned),
}

/// The networks of interfaces that are up.
fn connected(states: &[State], v4: bool) -> BTreeMap<Net<IpAddr>, Used> {
    let mut routes = BTreeMap::new();
    for state in states.iter().filter(|s| s.is_up()) {
        let v4s = state
            .set
            .ipv4
            .iter()
            .chain(&state.set.secondary)
            .filter(|_| v4);
        for net in v4s {
            let to = Net {
                address: IpAddr::V4(network4(*net)),
                prefix: net.prefix,
            };
            routes.insert(to, Used::Connected(state.name));
            if net.prefix < 32 {
                let own = Net {
                    address: IpAddr::V4(net.address),
                    prefix: 32,
                };
                routes.insert(own, Used::Local(state.name));
            }
        }
        for net in state.set.ipv6.iter().filter(|_| !v4) {
            let to = Net {
                address: IpAddr::V6(network6(*net)),
                prefix: net.prefix,
            };
            routes.insert(to, Used::Connected(state.name));
            if net.prefix < 128 {
                let own = Net {
                    address: IpAddr::V6(net.address),
                    prefix: 128,
                };
                routes.insert(own, Used::Local(state.name));
            }
        }
    }
    routes
}

/// How far a protocol's route is away: a static one is preferred where it is less.
fn distance_of(learned: &BTreeMap<Net<IpAddr>, Learned>, to: &Net<IpAddr>) -> u8 {
    learned.get(to).map_or(u8::MAX, |l| l.distance)
}

/// Connected and static routes, and those of protocols: of a network the ones of the least distance whose gateway is reached.
fn used(switch: &Switch, v4: bool) -> BTreeMap<Net<IpAddr>, Used> {
    let mut routes = connected(&states(switch), v4);
    let mut learned: BTreeMap<Net<IpAddr>, Learned> = BTreeMap::new();
    for route in switch.engine.learned() {
        if route.to.address.is_ipv4() == v4 && !routes.contains_key(&route.to) {
            learned.insert(route.to, route);
        }
    }
    let others = learned.clone();
    routes.extend(others.into_iter().map(|(to, l)| (to, Used::Learned(l))));
    // a gateway may be reached by another static route: again until nothing is added
    loop {
        let mut best: BTreeMap<Net<IpAddr>, (u8, Vec<Via>)> = BTreeMap::new();
        for Route { to, via, distance } in &switch.config.routes {
            let connected = matches!(routes.get(to), Some(Used::Connected(_) | Used::Local(_)));
            let reached = match via {
                Via::Null => true,
                // not by itself
                Via::Gateway(g) => routes.iter().any(|(net, _)| net != to && within(*net, *g)),
            };
            let worse = *distance > self::distance_of(&learned, to);
            if to.address.is_ipv4() != v4 || connected || worse || !reached {
                continue;
            }
            let (least, ways) = best.entry(*to).or_insert((*distance, Vec::new()));
            if distance < least {
                (*least, *ways) = (*distance, Vec::new());
            }
            if distance == least {
                ways.push(via.clone());
            }
        }
        let before = routes.len();
        routes.extend(
            best.into_iter()
                .map(|(to, (distance, ways))| (to, Used::Static(ways, distance))),
        );
        if routes.len() == before {
            return routes;
        }
    }
}

const CODES: &str = "Codes: L - local, C - connected, S - static, R - RIP, M - mobile, B - BGP\n       \
    D - EIGRP, EX - EIGRP external, O - OSPF, IA - OSPF inter area \n       \
    i - IS-IS, * - candidate default, + - replicated route\n";

/// `show ip route`
pub(super) fn routes4(switch: &Switch) -> String {
    if !switch.config.routing {
        return "Default gateway is not set\n\n\
                Host               Gateway           Last Use    Total Uses  Interface\n\
                ICMP redirect cache is empty\n"
            .into();
    }
    let routes = used(switch, true);
    let mut text = format!("{CODES}\nGateway of last resort is ");
    let default = Net {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        prefix: 0,
    };
    match routes.get(&default) {
        Some(used @ (Used::Static(..) | Used::Learned(_))) => {
            let gateway = match used {
                Used::Static(ways, _) => ways.first().and_then(|w| match w {
                    Via::Gateway(g) => Some(*g),
                    Via::Null => None,
                }),
                Used::Learned(l) => l.ways.iter().find_map(|w| w.0),
                _ => None,
            };
            let gateway = gateway.map_or_else(|| "0.0.0.0".into(), |g| g.to_string());
            let _ = writeln!(text, "{gateway} to network 0.0.0.0\n");
        }
        _ => text.push_str("not set\n\n"),
    }
    // by network of a class, as IOS has them
    let mut classes: BTreeMap<Net<Ipv4Addr>, Vec<(Net<Ipv4Addr>, &Used)>> = BTreeMap::new();
    for (to, used) in &routes {
        if let IpAddr::V4(address) = to.address {
            let net = Net {
                address,
                prefix: to.prefix,
            };
            let class = class(address);
            let of = if to.prefix <= class.prefix {
                net
            } else {
                class
            };
            classes.entry(of).or_default().push((net, used));
        }
    }
    for (of, members) in &classes {
        let inner: Vec<_> = members
            .iter()
            .filter(|(n, _)| n != of || n.prefix > class(n.address).prefix)
            .collect();
        let alone = inner.is_empty();
        if !alone {
            let masks: std::collections::BTreeSet<u8> =
                members.iter().map(|(n, _)| n.prefix).collect();
            let subnets = members.len();
            let s = if subnets == 1 { "" } else { "s" };
            let _ = match masks.len() {
                1 => writeln!(
                    text,
                    "      {}/{} is subnetted, {subnets} subnet{s}",
                    of.address,
                    masks.first().unwrap_or(&0)
                ),
                n => writeln!(
                    text,
                    "      {}/{} is variably subnetted, {subnets} subnet{s}, {n} masks",
                    of.address, of.prefix
                ),
            };
        }
        let one_mask = members
            .iter()
            .all(|(n, _)| Some(n.prefix) == members.first().map(|(n, _)| n.prefix));
        for (net, used) in members {
            route4(&mut text, *net, used, alone, !alone && one_mask);
        }
    }
    text
}

fn route4(text: &mut String, net: Net<Ipv4Addr>, used: &Used, alone: bool, no_mask: bool) {
    let wide = if alone { 4 } else { 7 };
    let to = if no_mask {
        net.address.to_string()
    } else {
        format!("{}/{}", net.address, net.prefix)
    };
    let flag = if mask4(net.prefix) == 0 { '*' } else { ' ' };
    let start = match used {
        Used::Connected(_) => format!("C {:wide$}", ""),
        Used::Local(_) => format!("L {:wide$}", ""),
        Used::Static(..) => format!("S{flag}{:wide$}", ""),
        // `O`, `O*`, `O IA`: the kind stands where others have blanks
        Used::Learned(l) => {
            let (code, kind) = l.code.split_once(' ').unwrap_or((l.code, ""));
            format!("{code}{flag}{kind:wide$}")
        }
    };
    let _ = match used {
        Used::Connected(name) | Used::Local(name) => {
            writeln!(text, "{start}{to} is directly connected, {name}")
        }
        Used::Static(ways, distance) => {
            for (i, via) in ways.iter().enumerate() {
                let head = if i == 0 {
                    format!("{start}{to}")
                } else {
                    " ".repeat(start.len() + to.len())
                };
                let _ = match via {
                    Via::Null => writeln!(text, "{start}{to} is directly connected, Null0"),
                    Via::Gateway(g) => writeln!(text, "{head} [{distance}/0] via {g}"),
                };
            }
            Ok(())
        }
        Used::Learned(l) => learned4(text, &format!("{start}{to}"), l),
    };
}

fn learned4(text: &mut String, start: &str, l: &Learned) -> std::fmt::Result {
    let age = match l.age.as_str() {
        "" => String::new(),
        age => format!(", {age}"),
    };
    for (i, (gateway, name)) in l.ways.iter().enumerate() {
        let head = match i {
            0 => start.to_owned(),
            _ => " ".repeat(start.len()),
        };
        let by = name.map_or_else(String::new, |n| format!(", {n}"));
        match (gateway, name) {
            (Some(g), _) => writeln!(
                text,
                "{head} [{}/{}] via {g}{age}{by}",
                l.distance, l.metric
            )?,
            (None, Some(n)) => writeln!(text, "{head} is directly connected{age}, {n}")?,
            (None, None) => writeln!(text, "{head} [{}/{}]{age}, Null0", l.distance, l.metric)?,
        }
    }
    Ok(())
}

/// The routes for programs.
pub(super) fn json(switch: &Switch, v4: bool) -> Value {
    let hop = |gateway: Option<IpAddr>, name: Option<Name>| {
        json!({
            "gateway": gateway.map(|g| g.to_string()),
            "interface": name.map_or_else(|| gateway.is_none().then(|| "Null0".into()), |n| Some(n.to_string())),
        })
    };
    let all: Vec<Value> = used(switch, v4)
        .iter()
        .map(|(to, used)| {
            let (code, distance, metric, hops) = match used {
                Used::Connected(name) => ("C", 0, 0, vec![hop(None, Some(*name))]),
                Used::Local(name) => ("L", 0, 0, vec![hop(None, Some(*name))]),
                Used::Static(ways, distance) => {
                    let way = |v: &Via| match v {
                        Via::Gateway(g) => hop(Some(*g), None),
                        Via::Null => hop(None, None),
                    };
                    ("S", *distance, 0, ways.iter().map(way).collect())
                }
                Used::Learned(l) => {
                    let ways = l.ways.iter().map(|(g, n)| hop(*g, *n));
                    (l.code, l.distance, l.metric, ways.collect())
                }
            };
            json!({
                "prefix": format!("{}/{}", to.address, to.prefix),
                "code": code,
                "distance": distance,
                "metric": metric,
                "next_hops": hops,
            })
        })
        .collect();
    json!({ "routes": all })
}

/// `show ip arp`: the kernel does not say how old an entry is.
pub(super) fn arp(switch: &Switch) -> String {
    let mut text =
        String::from("Protocol  Address          Age (min)  Hardware Addr   Type   Interface\n");
    let mut rows: Vec<(Ipv4Addr, bool, String, Name)> = Vec::new();
    let links = switch.engine.links();
    for (name, set) in &switch.config.interfaces {
        let mac = links.iter().find(|l| l.name == *name).map(|l| l.mac);
        let own = set.ipv4.iter().chain(&set.secondary);
        let own = own
            .filter(|_| name.kind == Kind::Vlan)
            .zip(mac.iter().cycle());
        rows.extend(own.map(|(net, mac)| (net.address, true, shown_mac(mac), *name)));
    }
    for (name, address, mac) in switch.engine.neighbours() {
        if let IpAddr::V4(address) = address {
            // set by hand: it has no age
            let fixed = switch.config.neighbours.contains_key(&address);
            let mac = mac.map_or_else(|| "Incomplete".into(), |m| shown_mac(&m));
            rows.push((address, fixed, mac, name));
        }
    }
    rows.sort();
    for (address, own, mac, name) in rows {
        let age = if own { "-" } else { "0" };
        let by = if mac == "Incomplete" {
            String::new()
        } else {
            name.to_string()
        };
        let _ = writeln!(
            text,
            "Internet  {address:<15} {age:>10}   {mac:<14}  ARPA   {by}"
        );
    }
    text
}

/// `show ip protocols`
pub(super) fn protocols(switch: &Switch) -> String {
    let away = |router: &Router| {
        let ask = match router {
            Router::Ospf(_) => Ask::Ospf,
            Router::Rip => Ask::Rip,
            Router::Bgp(_) => Ask::BgpSummary,
        };
        switch.engine.protocols(ask).err()
    };
    crate::routing::protocols(&switch.config, away)
}

fn asked(switch: &Switch, ask: Ask) -> String {
    match switch.engine.protocols(ask) {
        Ok(text) => text,
        Err(why) => format!("% {why}\n"),
    }
}

/// `show ip ospf …`; nothing without a process, as in IOS.
pub(super) fn ospf(switch: &Switch, parsed: &Parsed) -> String {
    let process = switch.config.routers.keys().find_map(|r| match r {
        Router::Ospf(n) => Some(*n),
        _ => None,
    });
    let Some(process) = process else {
        return String::new();
    };
    let ask = match parsed.id {
        Id::ShowOspfNeighbours => Ask::OspfNeighbours,
        Id::ShowOspfDatabase => Ask::OspfDatabase(process),
        Id::ShowOspfInterface if parsed.has("brief") => Ask::OspfInterfacesBrief(process),
        Id::ShowOspfInterface => Ask::OspfInterfaces,
        _ => Ask::Ospf,
    };
    asked(switch, ask)
}

/// `show ip bgp …` and `show ip rip …`
pub(super) fn others(switch: &Switch, parsed: &Parsed) -> String {
    let runs = |f: fn(&Router) -> bool| switch.config.routers.keys().any(f);
    let (ask, there) = match parsed.id {
        Id::ShowRip => (Ask::Rip, runs(|r| matches!(r, Router::Rip))),
        id => {
            let ask = match id {
                Id::ShowBgpSummary => Ask::BgpSummary,
                Id::ShowBgpNeighbours => Ask::BgpNeighbours,
                _ => Ask::Bgp,
            };
            (ask, runs(|r| matches!(r, Router::Bgp(_))))
        }
    };
    match (there, ask) {
        (true, _) => asked(switch, ask),
        (false, Ask::Rip) => "% RIP not active\n".into(),
        (false, _) => "% BGP not active\n".into(),
    }
}

/// `show ipv6 route`
pub(super) fn routes6(switch: &Switch) -> String {
    let mut routes = used(switch, false);
    // what is for this switch alone, whatever is set
    let multicast = Net {
        address: IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)),
        prefix: 8,
    };
    routes.insert(multicast, Used::Static(Vec::new(), 0));
    let mut text = format!(
        "IPv6 Routing Table - default - {} entries\n\
         Codes: C - Connected, L - Local, S - Static, U - Per-user Static route\n",
        routes.len()
    );
    for (to, used) in &routes {
        let IpAddr::V6(address) = to.address else {
            continue;
        };
        let net = shown6(Net {
            address,
            prefix: to.prefix,
        });
        let _ = match used {
            Used::Connected(name) => {
                writeln!(text, "C   {net} [0/0]\n     via {name}, directly connected")
            }
            Used::Local(name) => writeln!(text, "L   {net} [0/0]\n     via {name}, receive"),
            Used::Static(ways, _) if ways.is_empty() => {
                writeln!(text, "L   {net} [0/0]\n     via Null0, receive")
            }
            Used::Static(ways, distance) => {
                let _ = writeln!(text, "S   {net} [{distance}/0]");
                for via in ways {
                    let _ = match via {
                        Via::Null => writeln!(text, "     via Null0, directly connected"),
                        Via::Gateway(g) => {
                            writeln!(text, "     via {}", g.to_string().to_uppercase())
                        }
                    };
                }
                Ok(())
            }
            Used::Learned(l) => {
                let _ = writeln!(text, "{:<3} {net} [{}/{}]", l.code, l.distance, l.metric);
                for (gateway, name) in &l.ways {
                    let gateway = gateway.map(|g| g.to_string().to_uppercase());
                    let name = name.map(|n| n.to_string());
                    let by: Vec<String> = gateway.into_iter().chain(name).collect();
                    let _ = writeln!(text, "     via {}", by.join(", "));
                }
                Ok(())
            }
        };
    }
    text
}

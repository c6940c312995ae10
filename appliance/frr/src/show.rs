// SPDX-License-Identifier: Apache-2.0
//! What FRR says of its protocols, in the columns of IOS.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use tandem_swconfig::routing::Ask;

use crate::lines::Daemon;
use crate::talk::Frr;

/// What a route is beside its way: from zebra, and for OSPF from ospfd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Administrative distance.
    pub distance: u8,
    /// Metric.
    pub metric: u32,
    /// For how long.
    pub age: String,
    /// `O E2`, `O IA`; empty: of the protocol's usual kind.
    pub code: &'static str,
}

/// The text for a command.
///
/// # Errors
/// Who is asked is away.
pub fn show(frr: &Frr, what: Ask) -> Result<String, String> {
    let raw = |daemon: Daemon, command: &str| {
        let text = frr.ask(daemon.word(), command)?;
        Ok(named(&text))
    };
    let json = |daemon: Daemon, command: &str| {
        let text = frr.ask(daemon.word(), command)?;
        parsed(&text).ok_or_else(|| format!("{}: what it says is not understood", daemon.word()))
    };
    match what {
        Ask::Ospf => raw(Daemon::Ospf, "show ip ospf"),
        Ask::OspfInterfaces => raw(Daemon::Ospf, "show ip ospf interface"),
        Ask::OspfDatabase(pid) => {
            let text = raw(Daemon::Ospf, "show ip ospf database")?;
            Ok(database(&text, pid))
        }
        Ask::OspfNeighbours => {
            json(Daemon::Ospf, "show ip ospf neighbor json").map(|v| neighbours(&v))
        }
        Ask::OspfInterfacesBrief(pid) => {
            json(Daemon::Ospf, "show ip ospf interface json").map(|v| interfaces(&v, pid))
        }
        Ask::Bgp => json(Daemon::Bgp, "show ip bgp json").map(|v| table(&v)),
        Ask::BgpSummary => json(Daemon::Bgp, "show ip bgp summary json").map(|v| summary(&v)),
        Ask::BgpNeighbours => raw(Daemon::Bgp, "show ip bgp neighbors"),
        Ask::Rip => raw(Daemon::Rip, "show ip rip status"),
        Ask::BgpAnew(None) => raw(Daemon::Bgp, "clear ip bgp *"),
        Ask::BgpAnew(Some(address)) => raw(Daemon::Bgp, &format!("clear ip bgp {address}")),
        Ask::OspfAnew => raw(Daemon::Ospf, "clear ip ospf process"),
    }
}

/// The routes of zebra, by prefix.
#[must_use]
pub fn details(frr: &Frr) -> BTreeMap<String, Details> {
    let ask = |program: &str, command: &str| {
        let text = frr.ask(program, command).ok()?;
        parsed(&text)
    };
    let mut all = BTreeMap::new();
    let Some(Value::Object(routes)) = ask("zebra", "show ip route json") else {
        return all;
    };
    for (prefix, ways) in routes {
        let used = |w: &&Value| w["selected"].as_bool() == Some(true);
        let Some(way) = ways.as_array().into_iter().flatten().find(used) else {
            continue;
        };
        let of = Details {
            distance: number(&way["distance"]).try_into().unwrap_or(u8::MAX),
            metric: number(&way["metric"]).try_into().unwrap_or(u32::MAX),
            age: way["uptime"].as_str().unwrap_or_default().into(),
            code: "",
        };
        all.insert(prefix, of);
    }
    if let Some(Value::Object(routes)) = ask(Daemon::Ospf.word(), "show ip ospf route json") {
        for (prefix, of) in routes {
            let kind = of["routeType"].as_str().unwrap_or_default();
            let code = match kind.trim_start_matches("N ").trim() {
                "IA" => "O IA",
                "E1" => "O E1",
                "E2" => "O E2",
                _ => continue,
            };
            all.entry(prefix).and_modify(|d| d.code = code);
        }
    }
    all
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim()).ok()
}

fn number(v: &Value) -> u64 {
    v.as_u64().unwrap_or_default()
}

fn text<'v>(v: &'v Value, keys: &[&str]) -> &'v str {
    let found = keys.iter().find_map(|k| v[*k].as_str());
    found.unwrap_or_default()
}

fn object(v: &Value) -> impl Iterator<Item = (&String, &Value)> {
    v.as_object().into_iter().flat_map(Map::iter)
}

/// `vlan10` is `Vlan10`, wherever it stands as a word.
#[must_use]
pub fn named(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(at) = rest.find("vlan") {
        let (head, tail) = rest.split_at(at);
        out.push_str(head);
        before = head.chars().next_back().unwrap_or(before);
        let digit = tail.get(4..).and_then(|t| t.chars().next());
        let word = !before.is_alphanumeric() && digit.is_some_and(|c| c.is_ascii_digit());
        out.push_str(if word { "Vlan" } else { "vlan" });
        rest = tail.get(4..).unwrap_or_default();
        before = 'n';
    }
    out.push_str(rest);
    out
}

/// `vlan10` is `Vl10`.
fn short(device: &str) -> String {
    match device.strip_prefix("vlan") {
        Some(number) => format!("Vl{number}"),
        None => device.to_owned(),
    }
}

fn clock(millis: u64) -> String {
    let s = millis / 1000;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

pub(crate) fn neighbours(all: &Value) -> String {
    let mut out = String::from(
        "\nNeighbor ID     Pri   State           Dead Time   Address         Interface\n",
    );
    for (id, links) in object(&all["neighbors"]) {
        for n in links.as_array().into_iter().flatten() {
            // newer ones say it as nbrState, some with the role beside it
            let state = text(n, &["nbrState", "state"]).to_uppercase();
            let state = state.replace("2-WAY", "2WAY");
            let (state, role) = state.split_once('/').unwrap_or((&state, ""));
            let role = match (role, text(n, &["role"])) {
                ("" | "-", "") => "  -".to_owned(),
                ("", role) => role.to_uppercase(),
                ("-", _) => "  -".to_owned(),
                (role, _) => role.to_owned(),
            };
            let due = ["routerDeadIntervalTimerDueMsec", "deadTimeMsecs"];
            let due = due.iter().find_map(|k| n[*k].as_u64()).unwrap_or_default();
            let device = text(n, &["ifaceName"]);
            let device = device.split(':').next().unwrap_or_default();
            let _ = writeln!(
                out,
                "{id:<15} {:>3}   {:<15} {:<11} {:<15} {}",
                n["nbrPriority"]
                    .as_u64()
                    .unwrap_or_else(|| number(&n["priority"])),
                format!("{state}/{role}"),
                clock(due),
                text(n, &["ifaceAddress", "address"]),
                named(device),
            );
        }
    }
    out
}

pub(crate) fn interfaces(all: &Value, pid: u16) -> String {
    let mut out = String::from(
        "Interface    PID   Area            IP Address/Mask    Cost  State Nbrs F/C\n",
    );
    for (device, of) in object(&all["interfaces"]) {
        let area = text(of, &["area"]);
        let area = area.split_whitespace().next().unwrap_or_default();
        let area: std::net::Ipv4Addr = area.parse().unwrap_or(std::net::Ipv4Addr::UNSPECIFIED);
        let state = match text(of, &["state"]) {
            "Point-To-Point" => "P2P",
            "Loopback" => "LOOP",
            "Waiting" => "WAIT",
            "Backup" => "BDR",
            "DROther" => "DROTH",
            "Down" => "DOWN",
            other => other,
        };
        let address = format!(
            "{}/{}",
            text(of, &["ipAddress"]),
            number(&of["ipAddressPrefixlen"])
        );
        let neighbours = format!(
            "{}/{}",
            number(&of["nbrAdjacentCount"]),
            number(&of["nbrCount"])
        );
        let _ = writeln!(
            out,
            "{:<12} {pid:<5} {:<15} {address:<18} {:<5} {state:<5} {neighbours}",
            short(device),
            u32::from(area),
            number(&of["cost"]),
        );
    }
    out
}

/// The head with the process, which FRR does not have.
fn database(said: &str, pid: u16) -> String {
    let line = |l: &str| match l.trim().strip_prefix("OSPF Router with ID (") {
        Some(id) => {
            let id = id.trim_end_matches(')');
            format!("            OSPF Router with ID ({id}) (Process ID {pid})")
        }
        None => l.replace(
            "Link ID         ADV Router      Age  Seq#       CkSum",
            "Link ID         ADV Router      Age         Seq#       Checksum",
        ),
    };
    said.lines().map(|l| line(l) + "\n").collect()
}

pub(crate) fn summary(all: &Value) -> String {
    let of = &all["ipv4Unicast"];
    if of.is_null() {
        return String::new();
    }
    let version = number(&of["tableVersion"]);
    let mut out = format!(
        "BGP router identifier {}, local AS number {}\n\
         BGP table version is {version}, main routing table version {version}\n\n\
         Neighbor        V           AS MsgRcvd MsgSent   TblVer  InQ OutQ Up/Down  State/PfxRcd\n",
        text(of, &["routerId"]),
        number(&of["as"]),
    );
    for (address, peer) in object(&of["peers"]) {
        let state = match text(peer, &["state"]) {
            "Established" => number(&peer["pfxRcd"]).to_string(),
            other => other.to_owned(),
        };
        let _ = writeln!(
            out,
            "{address:<15} {} {:>12} {:>7} {:>7} {:>8} {:>4} {:>4} {:<8} {state:>8}",
            number(&peer["version"]),
            number(&peer["remoteAs"]),
            number(&peer["msgRcvd"]),
            number(&peer["msgSent"]),
            number(&peer["tableVersion"]),
            number(&peer["inq"]),
            number(&peer["outq"]),
            text(peer, &["peerUptime"]),
        );
    }
    out
}

pub(crate) fn table(all: &Value) -> String {
    let mut out = format!(
        "BGP table version is {}, local router ID is {}\n\
         Status codes: s suppressed, d damped, h history, * valid, > best, i - internal,\n\
         \x20             r RIB-failure, S Stale\n\
         Origin codes: i - IGP, e - EGP, ? - incomplete\n\n\
         \x20    Network          Next Hop            Metric LocPrf Weight Path\n",
        number(&all["tableVersion"]),
        text(all, &["routerId"]),
    );
    let mut routes: Vec<(&String, &Value)> = object(&all["routes"]).collect();
    let key = |p: &str| {
        let (a, l) = p.split_once('/').unwrap_or((p, ""));
        (a.parse::<std::net::Ipv4Addr>().ok(), l.parse::<u8>().ok())
    };
    routes.sort_by_key(|(prefix, _)| key(prefix));
    for (prefix, ways) in routes {
        for (n, way) in ways.as_array().into_iter().flatten().enumerate() {
            let flag = |key: &str, sign: char| match way[key].as_bool() {
                Some(true) => sign,
                _ => ' ',
            };
            let inner = if text(way, &["pathFrom"]) == "internal" {
                'i'
            } else {
                ' '
            };
            // one of our own has neither
            let valid = if way["valid"].as_bool() == Some(false) {
                ' '
            } else {
                '*'
            };
            let hop = way["nexthops"].get(0).map_or("", |h| text(h, &["ip"]));
            let some = |key: &str| {
                way[key]
                    .as_u64()
                    .map_or_else(String::new, |n| n.to_string())
            };
            let origin = match text(way, &["origin"]) {
                "IGP" => "i",
                "EGP" => "e",
                _ => "?",
            };
            let path = text(way, &["path"]);
            let path = if path.is_empty() {
                origin.into()
            } else {
                format!("{path} {origin}")
            };
            let shown = if n == 0 { prefix.as_str() } else { "" };
            let _ = write!(out, " {valid}{}{inner} ", flag("bestpath", '>'));
            // a long one has a line of its own
            match shown.len() {
                0..=16 => {
                    let _ = write!(out, "{shown:<16} ");
                }
                _ => {
                    let _ = write!(out, "{shown}\n{:21} ", "");
                }
            }
            let _ = writeln!(
                out,
                "{hop:<15} {:>10} {:>6} {:>6} {path}",
                some("metric"),
                some("locPrf"),
                some("weight"),
            );
        }
    }
    out
}

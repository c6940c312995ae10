//! `tandem batch FILE`: routes, all or nothing (seed 002, loop 1). For the kernel driver.
//!
//! ```text
//!  read the file ─► reserve for all ─► install by rtnetlink ─► give the rest back
//!   a bad line:      no room: nothing   a refusal: what this     it is in
//!   nothing          happens            run installed goes
//!   happens                             again
//! ```
//!
//! All or nothing is a promise about *capacity*. Between the first route and the last the kernel has a part
//! of them, as with any sequence of `ip route add`; and a route that can't be for another reason (no such
//! gateway, it is there already) is only found when its turn comes.

use crate::args::Batch;
use crate::out::Out;
use crate::{Answer, Usage};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Instant;
use tandem_linux::netlink::clsw::{Paths, Reservation};
use tandem_linux::netlink::consts::{
    RT_SCOPE_LINK, RT_SCOPE_UNIVERSE, RT_TABLE_LOCAL, RT_TABLE_MAIN, RTN_BLACKHOLE, RTN_PROHIBIT,
    RTN_UNICAST, RTN_UNREACHABLE, RTPROT_BOOT,
};
use tandem_linux::netlink::{Dump, Nexthops, Object, Requests, Route, RouteNexthop};

/// `NLM_F_EXCL`: a route that is there already is an error, as with `ip route add`.
const EXCL: u16 = 0x200;

type Links = HashMap<String, u32>;

struct Words<'a>(std::iter::Peekable<std::str::SplitWhitespace<'a>>);

impl<'a> Words<'a> {
    fn value(&mut self, of: &str) -> Result<&'a str> {
        self.0.next().ok_or_else(|| anyhow!("{of} wants a value"))
    }

    fn number(&mut self, of: &str, most: u32) -> Result<u32> {
        let word = self.value(of)?;
        match word.parse() {
            Ok(n) if n <= most => Ok(n),
            _ => bail!("{of} is \"{word}\", a number up to {most} is wanted"),
        }
    }
}

fn device(words: &mut Words<'_>, links: &Links) -> Result<u32> {
    let name = words.value("dev")?;
    links
        .get(name)
        .copied()
        .ok_or_else(|| anyhow!("there is no interface {name}"))
}

/// A gateway. As in iproute2, only one behind the word `inet6` may be of another family than the route; of a `default`
/// whose family is open it decides the family.
fn gateway(words: &mut Words<'_>, six: &mut Option<bool>) -> Result<IpAddr> {
    let mut word = words.value("via")?;
    let family = match word {
        "inet" => Some(false),
        "inet6" => Some(true),
        _ => None,
    };
    if family.is_some() {
        word = words.value("via")?;
    }
    let gateway: IpAddr = word
        .parse()
        .map_err(|_| anyhow!("via is \"{word}\", an address is wanted"))?;
    let name = |six: bool| if six { "IPv6" } else { "IPv4" };
    let route = *six.get_or_insert(family.unwrap_or(gateway.is_ipv6()));
    if gateway.is_ipv6() != family.unwrap_or(route) {
        bail!(
            "via is {word}, an {} address is wanted{}",
            name(family.unwrap_or(route)),
            if family.is_none() && !route {
                " (an IPv6 gateway of an IPv4 route: via inet6)"
            } else {
                ""
            }
        );
    }
    if route && !gateway.is_ipv6() {
        bail!("an IPv6 route can't go by way of {word}");
    }
    Ok(gateway)
}

/// A destination; none for `default`, which is of any family.
fn prefix(word: &str) -> Result<Option<ipnet::IpNet>> {
    let bad = || anyhow!("\"{word}\" is no prefix");
    let net = match word {
        "default" | "all" | "any" => return Ok(None),
        _ if word.contains('/') => {
            let net: ipnet::IpNet = word.parse().map_err(|_| bad())?;
            if net.trunc() != net {
                bail!(
                    "{word} has bits beyond its prefix: {} is meant?",
                    net.trunc()
                );
            }
            net
        }
        _ => word.parse::<IpAddr>().map_err(|_| bad())?.into(),
    };
    Ok(Some(net))
}

/// One line, as `ip -batch` has it: `route add [TYPE] PREFIX [via GW] [dev IF] …`.
fn route(line: &str, links: &Links) -> Result<Route> {
    let mut words = Words(line.split_whitespace().peekable());
    words.0.next_if_eq(&"ip");
    if words.0.next() != Some("route") || words.0.next() != Some("add") {
        bail!("only `route add …` can be done all or nothing");
    }
    let kind = match words.0.peek() {
        Some(&"blackhole") => RTN_BLACKHOLE,
        Some(&"unreachable") => RTN_UNREACHABLE,
        Some(&"prohibit") => RTN_PROHIBIT,
        _ => RTN_UNICAST,
    };
    if kind != RTN_UNICAST {
        words.0.next();
    }
    words.0.next_if_eq(&"unicast");
    let dst = prefix(words.value("route add")?)?;
    // what the words so far say of the family
    let mut six = dst.map(|net| net.addr().is_ipv6());
    let mut route = Route {
        table: RT_TABLE_MAIN,
        dst: dst.unwrap_or_default(),
        tos: 0,
        metric: 0,
        kind,
        scope: RT_SCOPE_UNIVERSE,
        protocol: RTPROT_BOOT,
        flags: 0,
        nh_id: 0,
        nexthops: Nexthops::None,
        src: None,
        prefsrc: None,
        mtu: 0,
        other: 0,
    };
    let mut paths: Vec<RouteNexthop> = Vec::new();
    let hop = RouteNexthop {
        ifindex: 0,
        gateway: None,
        weight: 1,
        flags: 0,
        encap: false,
    };
    // the words before the first `nexthop` speak of the route's only path
    let mut only = hop;
    while let Some(word) = words.0.next() {
        let path = paths.last_mut();
        match word {
            "nexthop" => paths.push(hop),
            "via" => path.unwrap_or(&mut only).gateway = Some(gateway(&mut words, &mut six)?),
            "dev" => path.unwrap_or(&mut only).ifindex = device(&mut words, links)?,
            "weight" => match path {
                Some(path) => {
                    path.weight = u16::try_from(words.number("weight", 256)?.max(1)).unwrap_or(1);
                }
                None => bail!("weight belongs to a nexthop"),
            },
            "metric" | "priority" => route.metric = words.number(word, u32::MAX)?,
            "nhid" => route.nh_id = words.number(word, u32::MAX)?,
            "table" => {
                route.table = match words.value("table")? {
                    "main" => RT_TABLE_MAIN,
                    "local" => RT_TABLE_LOCAL,
                    n => n
                        .parse()
                        .map_err(|_| anyhow!("table is \"{n}\", a number is wanted"))?,
                }
            }
            "proto" | "protocol" => {
                route.protocol = match words.value("proto")? {
                    "static" => 4,
                    "boot" => RTPROT_BOOT,
                    n => n
                        .parse()
                        .map_err(|_| anyhow!("proto is \"{n}\", a number is wanted"))?,
                }
            }
            other => bail!("\"{other}\" is not known here"),
        }
    }
    if dst.is_none() && six == Some(true) {
        route.dst = ipnet::Ipv6Net::default().into();
    }
    let alone = only.ifindex != 0 || only.gateway.is_some();
    if alone && !paths.is_empty() {
        bail!("via and dev before the first nexthop speak of another path");
    }
    if alone {
        paths.push(only);
    }
    if paths.iter().any(|p| p.ifindex == 0 && p.gateway.is_none()) {
        bail!("a nexthop wants via or dev");
    }
    let forwards = kind == RTN_UNICAST && route.nh_id == 0;
    if forwards == paths.is_empty() {
        bail!(
            "{}",
            if forwards {
                "via, dev, nexthop or nhid is wanted"
            } else {
                "it takes no via, dev or nexthop"
            }
        );
    }
    if forwards && paths.iter().all(|p| p.gateway.is_none()) && route.dst.addr().is_ipv4() {
        route.scope = RT_SCOPE_LINK;
    }
    route.nexthops = match paths.len() {
        0 => Nexthops::None,
        1 => Nexthops::One(paths.remove(0)),
        _ => Nexthops::Many(paths.into()),
    };
    Ok(route)
}

fn parse(name: &str, text: &str, links: &Links) -> Result<Vec<Route>> {
    let mut routes = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            let at = || Usage(format!("{name}:{}: nothing was done", i + 1));
            routes.push(route(line, links).map_err(|e| Usage(format!("{}: {e}", at().0)))?);
        }
    }
    Ok(routes)
}

/// The most next hops that these routes can need beside their prefixes.
fn paths(routes: &[Route]) -> Paths {
    let mut hops = HashSet::new();
    let mut groups = HashSet::new();
    for r in routes {
        let slice = r.nexthops.as_slice();
        hops.extend(slice.iter().map(|n| (n.ifindex, n.gateway)));
        if slice.len() > 1 {
            groups.insert(slice);
        }
    }
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Paths {
        nexthops: count(hops.len()),
        groups: count(groups.len()),
        members: count(groups.iter().map(|g| g.len()).sum()),
    }
}

fn links(requests: &mut Requests) -> Result<Links> {
    let objects = requests.objects(Dump::Links)?;
    Ok(objects
        .into_iter()
        .filter_map(|o| match o {
            Object::Link(l) => Some((l.name.clone(), l.index)),
            _ => None,
        })
        .collect())
}

/// `tandem batch FILE`
pub fn batch(args: &Batch, out: Out) -> Result<Answer> {
    let name = args.file.display().to_string();
    let text = if name == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(&args.file)
    }
    .map_err(|e| Usage(format!("{name}: {e}")))?;
    let mut requests = Requests::open()?;
    let routes = parse(&name, &text, &links(&mut requests)?)?;
    if routes.is_empty() {
        return Err(Usage(format!("{name}: no routes in it")).into());
    }
    let mut held = Reservation::open()?.ok_or_else(|| {
        anyhow!("this kernel has no clsw driver, and without it nobody can reserve: modprobe clsw_pci, or use ip -batch")
    })?;
    held.add(routes.iter().map(|r| (r.table, r.dst)))
        .context("nothing was done")?;
    if let Err(e) = held.commit(args.device.as_deref(), paths(&routes)) {
        let why = if e.extack.is_empty() {
            e.to_string()
        } else {
            e.extack.clone()
        };
        out.print(
            &json!({"installed": 0, "routes": routes.len(), "error": why}),
            || format!("nothing was done: {why}"),
        )?;
        return Ok(Answer::No);
    }
    let began = Instant::now();
    let mut refused: Vec<(usize, String)> = Vec::new();
    requests.routes(&routes, false, EXCL, |i, e| {
        refused.push((i, e.to_string()))
    })?;
    drop(held);
    let Some((first, why)) = refused.first().cloned() else {
        let seconds = began.elapsed().as_secs_f64();
        out.print(
            &json!({"installed": routes.len(), "routes": routes.len(), "seconds": seconds}),
            || {
                format!(
                    "{} routes installed in {seconds:.2} s, with room reserved for all of them",
                    routes.len()
                )
            },
        )?;
        return Ok(Answer::Yes);
    };
    // compensate: this run's own routes, the last first
    let failed: HashSet<usize> = refused.iter().map(|(i, _)| *i).collect();
    let mut own: Vec<Route> = routes
        .iter()
        .enumerate()
        .filter(|(i, _)| !failed.contains(i))
        .map(|(_, r)| r.clone())
        .collect();
    own.reverse();
    let mut stayed = 0;
    requests.routes(&own, true, 0, |_, _| stayed += 1)?;
    let dst = routes
        .get(first)
        .map_or_else(String::new, |r| r.dst.to_string());
    out.print(
        &json!({"installed": stayed, "routes": routes.len(), "refused": refused.len(), "error": why, "route": dst}),
        || {
            let left = if stayed == 0 { "all others were removed again".to_owned() } else { format!("{stayed} could not be removed again") };
            format!("{dst}: {why}; {left}")
        },
    )?;
    Ok(Answer::No)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_links() -> Links {
        HashMap::from([("swp1".to_owned(), 3), ("swp2".to_owned(), 4)])
    }

    #[test]
    fn lines_are_those_of_ip_batch() {
        let l = some_links();
        let r = route(
            "route add 10.0.0.0/8 via 10.1.0.2 dev swp1 metric 20 table 100",
            &l,
        )
        .unwrap();
        assert_eq!((r.table, r.metric, r.scope), (100, 20, RT_SCOPE_UNIVERSE));
        assert_eq!(r.nexthops.as_slice()[0].ifindex, 3);
        let r = route("ip route add 2001:db8::/32 nexthop via fe80::1 dev swp1 weight 2 nexthop via fe80::2 dev swp2", &l).unwrap();
        assert_eq!(
            r.nexthops
                .as_slice()
                .iter()
                .map(|n| n.weight)
                .collect::<Vec<_>>(),
            [2, 1]
        );
        assert_eq!(
            route("route add blackhole 10.9.0.0/16", &l).unwrap().kind,
            RTN_BLACKHOLE
        );
        assert_eq!(
            route("route add 10.1.0.0/24 dev swp1", &l).unwrap().scope,
            RT_SCOPE_LINK
        );
    }

    #[test]
    fn a_default_route_is_of_its_gateways_family() {
        let l = some_links();
        for (line, dst, gateway) in [
            ("default via 2001:db8::1", "::/0", Some("2001:db8::1")),
            (
                "default via inet6 fe80::1 dev swp1",
                "::/0",
                Some("fe80::1"),
            ),
            ("default via 10.0.0.1", "0.0.0.0/0", Some("10.0.0.1")),
            ("default dev swp1", "0.0.0.0/0", None),
            ("::/0 dev swp1", "::/0", None),
            (
                "default nexthop via fe80::1 dev swp1",
                "::/0",
                Some("fe80::1"),
            ),
            (
                "10.0.0.0/8 via inet6 fe80::1 dev swp1",
                "10.0.0.0/8",
                Some("fe80::1"),
            ),
            (
                "0.0.0.0/0 via inet6 fe80::1 dev swp1",
                "0.0.0.0/0",
                Some("fe80::1"),
            ),
        ] {
            let r = route(&format!("route add {line}"), &l).unwrap();
            assert_eq!(r.dst.to_string(), dst, "{line}");
            let given = r.nexthops.as_slice()[0].gateway;
            assert_eq!(given.map(|g| g.to_string()).as_deref(), gateway, "{line}");
        }
        for (line, says) in [
            ("10.0.0.0/8 via 2001:db8::1", "via inet6"),
            ("10.0.0.0/8 via inet6 10.0.0.1", "IPv6 address is wanted"),
            ("2001:db8::/32 via 10.0.0.1", "IPv6 address is wanted"),
            ("2001:db8::/32 via inet 10.0.0.1", "can't go by way of"),
            (
                "default nexthop via fe80::1 dev swp1 nexthop via 10.0.0.1",
                "IPv6 address",
            ),
        ] {
            let e = route(&format!("route add {line}"), &l)
                .unwrap_err()
                .to_string();
            assert!(e.contains(says), "{line}: {e}");
        }
    }

    #[test]
    fn nonsense_is_one_line_with_its_place() {
        let l = some_links();
        for (line, says) in [
            ("route del 10.0.0.0/8", "only `route add"),
            ("route add 10.0.0.1/8 via 10.1.0.2", "10.0.0.0/8 is meant"),
            ("route add 10.0.0.0/8", "is wanted"),
            ("route add 10.0.0.0/8 dev eth9", "no interface eth9"),
            ("route add blackhole 10.0.0.0/8 dev swp1", "takes no"),
            ("route add 10.0.0.0/8 via 10.1.0.2 colour red", "colour"),
            ("route add 10.0.0.0/8 via", "wants a value"),
        ] {
            let text = format!("# comment\n{line}\n");
            let e = parse("f", &text, &l).unwrap_err().to_string();
            assert!(
                e.starts_with("f:2: nothing was done: ") && e.contains(says),
                "{e}"
            );
            assert!(!e.contains('\n'));
        }
    }

    #[test]
    fn next_hops_are_counted_once() {
        let l = some_links();
        let text = "route add 10.0.0.0/8 via 10.1.0.2 dev swp1\nroute add 11.0.0.0/8 via 10.1.0.2 dev swp1\n\
            route add 12.0.0.0/8 nexthop via 10.1.0.2 dev swp1 nexthop via 10.2.0.2 dev swp2\n";
        let routes = parse("f", text, &l).unwrap();
        assert_eq!(
            paths(&routes),
            Paths {
                nexthops: 2,
                groups: 1,
                members: 2
            }
        );
    }
}

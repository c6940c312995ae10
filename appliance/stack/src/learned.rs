// SPDX-License-Identifier: Apache-2.0
//! The kernel's routes that routing protocols have put there, for `show ip route`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use tandem_linux::netlink::consts::{RT_TABLE_MAIN, RTN_BLACKHOLE};
use tandem_linux::netlink::{
    Dump, Family, NexthopKind, Nexthops, Object, Requests, Route, RouteFilter, RouteNexthop,
};
use tandem_swconfig::routing::Learned;
use tandem_swconfig::{Kind, Name, Net};
use tandem_swfrr::{Frr, show};

/// What they are marked with, and their usual distance, by `rtm_protocol`.
fn protocol(number: u8) -> Option<(&'static str, u8)> {
    Some(match number {
        186 => ("B", 20),
        188 => ("O", 110),
        189 => ("R", 120),
        _ => return None,
    })
}

fn name(device: &str) -> Option<Name> {
    let number = device.strip_prefix("vlan")?.parse().ok()?;
    Some(Name {
        kind: Kind::Vlan,
        number,
    })
}

/// VLAN interfaces by their numbers.
pub(crate) fn links(requests: &mut Requests) -> Result<BTreeMap<u32, Name>, String> {
    let links = requests.objects(Dump::Links).map_err(|e| e.to_string())?;
    let one = |o| match o {
        Object::Link(l) => Some((l.index, name(&l.name)?)),
        _ => None,
    };
    Ok(links.into_iter().filter_map(one).collect())
}

type Way = (Option<IpAddr>, Option<Name>);

/// The ways of the kernel's next-hop objects; none: packets are dropped.
fn objects(
    requests: &mut Requests,
    links: &BTreeMap<u32, Name>,
) -> Result<BTreeMap<u32, Vec<Way>>, String> {
    let all = requests.objects(Dump::Nexthops);
    let all = all.map_err(|e| e.to_string())?;
    let (mut one, mut groups) = (BTreeMap::new(), Vec::new());
    for object in all {
        let Object::Nexthop(nexthop) = object else {
            continue;
        };
        match nexthop.kind {
            NexthopKind::Single {
                ifindex, gateway, ..
            } => {
                one.insert(nexthop.id, vec![(gateway, links.get(&ifindex).copied())]);
            }
            NexthopKind::Blackhole => {
                one.insert(nexthop.id, vec![(None, None)]);
            }
            NexthopKind::Group { members, .. } => groups.push((nexthop.id, members)),
        }
    }
    for (id, members) in groups {
        let ways = members.iter().filter_map(|(m, _)| one.get(m)).flatten();
        let ways: Vec<Way> = ways.copied().collect();
        one.insert(id, ways);
    }
    Ok(one)
}

/// Those of the main table; what FRR knows beside their way is asked of it, and may be missing.
pub(crate) fn learned(frr: Option<&Frr>) -> Result<Vec<Learned>, String> {
    let mut requests = Requests::open().map_err(|e| e.to_string())?;
    let mut found: Vec<Route> = Vec::new();
    for family in [Family::V4, Family::V6] {
        let all = requests.objects(Dump::Routes(family, RouteFilter::default()));
        let all = all.map_err(|e| e.to_string())?.into_iter();
        found.extend(all.filter_map(|o| match o {
            Object::Route(r) if r.table == RT_TABLE_MAIN && protocol(r.protocol).is_some() => {
                Some(r)
            }
            _ => None,
        }));
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let links = links(&mut requests)?;
    // by objects of their own, where FRR has made those
    let objects = match found.iter().any(|r| r.nh_id != 0) {
        true => self::objects(&mut requests, &links)?,
        false => BTreeMap::new(),
    };
    let details = frr.map(show::details).unwrap_or_default();
    Ok(found
        .iter()
        .filter_map(|r| {
            let (code, distance) = protocol(r.protocol)?;
            let of = details.get(&r.dst.to_string());
            let way = |h: &RouteNexthop| (h.gateway, links.get(&h.ifindex).copied());
            let mut ways: Vec<Way> = match &r.nexthops {
                Nexthops::One(one) => vec![way(one)],
                Nexthops::Many(many) => many.iter().map(way).collect(),
                Nexthops::None => objects.get(&r.nh_id).cloned().unwrap_or_default(),
            };
            if r.kind == RTN_BLACKHOLE {
                ways = vec![(None, None)];
            }
            let kind = of.map_or("", |d| d.code);
            Some(Learned {
                to: Net {
                    address: r.dst.addr(),
                    prefix: r.dst.prefix_len(),
                },
                code: if kind.is_empty() { code } else { kind },
                distance: of.map_or(distance, |d| d.distance),
                metric: of.map_or(0, |d| d.metric),
                age: of.map(|d| d.age.clone()).unwrap_or_default(),
                ways,
            })
        })
        .collect())
}

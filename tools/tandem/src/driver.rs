//! `tandem show` and `tandem explain` where the kernel driver has the chip and no daemon runs: the same words, asked
//! of the driver by generic netlink.
//!
//! ```text
//!  show resources ──► RESOURCES ──► pools, classes
//!  show routes … ───► OBJECTS ────► body, state, reason ──► rows as switchd has them
//!  explain route K ─► the route that answers for K, and what it stands on: group, next hops, router interface
//! ```

use crate::args::{ExplainKind, Table};
use anyhow::{Result, anyhow};
use ipnet::IpNet;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use tandem_abi::object::{Object, fixed, read_nhg, read_object};
use tandem_abi::raw;
use tandem_linux::netlink::clsw::{Driver, DriverObject, ObjectState};
use tandem_mgmt::types::{Explain, State};
use zerocopy::FromBytes;

/// The driver of the only chip, if this kernel has one.
pub fn open() -> Option<Chip> {
    let driver = Driver::open().ok()??;
    Some(Chip { driver })
}

/// A chip behind the kernel driver.
pub struct Chip {
    driver: Driver,
}

/// An object with its body read.
struct Known<T> {
    body: T,
    state: ObjectState,
    reason: Option<String>,
}

impl<T> Known<T> {
    /// As switchd says it; `trap`: the body itself says so.
    fn state(&self, trap: bool) -> State {
        match self.state {
            ObjectState::Hardware if trap => State::Trap,
            ObjectState::Hardware => State::Offloaded,
            ObjectState::Trap => State::Trap,
            ObjectState::Failed => State::Failed,
            ObjectState::Pending | ObjectState::Updating => State::Pending,
            ObjectState::Leaving => State::Leaving,
            ObjectState::Unknown => State::Unknown,
        }
    }
}

/// What routes stand on.
struct Below {
    nexthops: HashMap<u32, Known<raw::tnd_nexthop>>,
    groups: HashMap<u32, Vec<(u32, u32)>>,
    rifs: HashMap<u16, raw::tnd_rif>,
}

fn text(name: &[u8]) -> String {
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(name.get(..end).unwrap_or_default()).into_owned()
}

fn mac(m: &[u8; 6]) -> String {
    m.map(|b| format!("{b:02x}")).join(":")
}

fn address(family: u8, addr: &[u8; 16]) -> IpAddr {
    let [a, b, c, d, ..] = *addr;
    if family == raw::TND_AF_INET {
        IpAddr::from([a, b, c, d])
    } else {
        IpAddr::from(Ipv6Addr::from(*addr))
    }
}

fn family(f: u8) -> &'static str {
    match f {
        raw::TND_AF_INET => "ipv4",
        raw::TND_AF_INET6 => "ipv6",
        _ => "any",
    }
}

fn prefix(r: &raw::tnd_route) -> Option<IpNet> {
    IpNet::new(address(r.family, &r.addr), r.prefix_len).ok()
}

fn place(r: &raw::tnd_rif) -> String {
    match r.kind {
        raw::TND_RIF_PORT => format!("port {}", r.port),
        raw::TND_RIF_PORT_VLAN => format!("port {} VLAN {}", r.port, r.vid),
        _ => format!("domain {}", r.fid),
    }
}

impl Below {
    fn rif(&self, rif: u16) -> String {
        let there = self.rifs.get(&rif);
        there.map_or_else(
            || format!("RIF {rif}"),
            |r| format!("RIF {rif} ({})", place(r)),
        )
    }

    fn nexthop(&self, id: u32) -> String {
        match self.nexthops.get(&id) {
            Some(n) if n.body.action == raw::TND_ACT_FORWARD => {
                format!("{} by {}", mac(&n.body.mac), self.rif(n.body.rif))
            }
            Some(n) => format!("unresolved by {}", self.rif(n.body.rif)),
            None => format!("next hop {id}, which is not there"),
        }
    }

    fn members(&self, nhg: u32) -> &[(u32, u32)] {
        self.groups.get(&nhg).map_or(&[], Vec::as_slice)
    }

    /// What a route's body says.
    fn target(&self, r: &raw::tnd_route) -> String {
        match (r.action, r.target_kind) {
            (raw::TND_ACT_TRAP, _) => "trap".into(),
            (raw::TND_ACT_DROP, _) => "drop".into(),
            (_, raw::TND_RT_NHG) => {
                let all: Vec<String> = self
                    .members(r.target)
                    .iter()
                    .map(|(id, weight)| format!("{} weight {weight}", self.nexthop(*id)))
                    .collect();
                format!("group {}: {}", r.target, all.join(", "))
            }
            _ => self.nexthop(r.target),
        }
    }

    /// Every way that the route has leads to the CPU.
    fn unresolved(&self, r: &raw::tnd_route) -> bool {
        let traps = |id: &u32| {
            let n = self.nexthops.get(id);
            n.is_none_or(|n| n.body.action != raw::TND_ACT_FORWARD)
        };
        match (r.action, r.target_kind) {
            (raw::TND_ACT_FORWARD, raw::TND_RT_NHG) => {
                self.members(r.target).iter().all(|(id, _)| traps(id))
            }
            (raw::TND_ACT_FORWARD, _) => traps(&r.target),
            _ => false,
        }
    }

    /// A route's state, and why it isn't offloaded.
    fn judge(&self, o: &Known<raw::tnd_route>) -> (State, Option<String>) {
        let unresolved = self.unresolved(&o.body);
        let none = || unresolved.then(|| "no next hop is resolved".to_string());
        let state = o.state(o.body.action == raw::TND_ACT_TRAP || unresolved);
        (state, o.reason.clone().or_else(none))
    }

    fn row(&self, o: &Known<raw::tnd_route>) -> Value {
        let r = &o.body;
        let (state, reason) = self.judge(o);
        let there = matches!(o.state, ObjectState::Hardware | ObjectState::Trap);
        json!({
            "family": family(r.family),
            "prefix": prefix(r).map_or_else(String::new, |p| p.to_string()),
            "vrf": r.vrf,
            "desired": self.target(r),
            "installed": match o.state {
                ObjectState::Trap => Some("trap".to_string()),
                _ if there => Some(self.target(r)),
                _ => None,
            },
            "state": state,
            "reason": reason,
            "source": "clsw",
        })
    }
}

impl Chip {
    fn raw(&mut self, class: u16) -> Result<Vec<DriverObject>> {
        self.driver.objects(None, class).map_err(|e| anyhow!("{e}"))
    }

    fn all<T: Object>(&mut self) -> Result<Vec<Known<T>>> {
        let read = |o: DriverObject| {
            let (body, _) = read_object::<T>(&o.body).ok()?;
            Some(Known {
                body,
                state: o.state,
                reason: o.reason,
            })
        };
        Ok(self.raw(T::CLASS)?.into_iter().filter_map(read).collect())
    }

    fn below(&mut self) -> Result<Below> {
        let nexthops = self.all::<raw::tnd_nexthop>()?;
        let groups = self.raw(raw::TND_CLS_NHG)?;
        let rifs = self.all::<raw::tnd_rif>()?;
        Ok(Below {
            nexthops: nexthops.into_iter().map(|n| (n.body.nexthop, n)).collect(),
            groups: groups
                .iter()
                .filter_map(|g| read_nhg(&g.body).ok())
                .map(|(g, m)| (g.nhg, m.iter().map(|m| (m.nexthop, m.weight)).collect()))
                .collect(),
            rifs: rifs.into_iter().map(|r| (r.body.rif, r.body)).collect(),
        })
    }

    /// `show resources`: as asicd answers `/v1/resources`.
    pub fn resources(&mut self) -> Result<Value> {
        let r = self.driver.resources(None).map_err(|e| anyhow!("{e}"))?;
        let pools: Vec<raw::tnd_pool> = r.pools.iter().filter_map(|b| first(b)).collect();
        let name = |id: u16| pools.iter().find(|p| p.pool == id).map(|p| text(&p.name));
        let classes: Vec<Value> = r
            .classes
            .iter()
            .filter_map(|b| first::<raw::tnd_class_cost>(b))
            .map(|c| {
                json!({
                    "cls": text(&c.name), "family": family(c.family), "pool": name(c.pool), "cost": c.cost,
                    "free_guaranteed": c.free_guaranteed, "free_expected": c.free_expected,
                })
            })
            .collect();
        let items: Vec<Value> = pools
            .iter()
            .map(|p| {
                json!({
                    "name": text(&p.name), "unit": text(&p.unit), "size": p.size, "used": p.used,
                    "in_flight": p.in_flight, "committed": p.committed, "free": p.free,
                    "high_watermark": p.high_watermark,
                })
            })
            .collect();
        Ok(json!({"items": items, "classes": classes}))
    }

    /// Rows of a table that the driver knows; `None`: it is the chip's own.
    pub fn rows(&mut self, table: Table) -> Result<Option<Vec<Value>>> {
        let mut rows = match table {
            Table::Routes => {
                let below = self.below()?;
                let mut all = self.all::<raw::tnd_route>()?;
                all.sort_by_key(|o| (o.body.vrf, o.body.family, o.body.addr, o.body.prefix_len));
                return Ok(Some(all.iter().map(|o| below.row(o)).collect()));
            }
            Table::Neighbours => {
                let below = self.below()?;
                let all = self.all::<raw::tnd_neigh>()?;
                all.iter().map(|o| neighbour_row(&below, o)).collect()
            }
            Table::Fdb => self.all::<raw::tnd_fdb>()?.iter().map(fdb_row).collect(),
            Table::Nexthops => {
                let below = self.below()?;
                let all = below.nexthops.values();
                all.map(|o| {
                    let n = &o.body;
                    json!({
                        "nexthop": n.nexthop, "rif": n.rif, "dev": below.rif(n.rif), "mac": mac(&n.mac),
                        "state": o.state(n.action != raw::TND_ACT_FORWARD), "reason": o.reason,
                    })
                })
                .collect()
            }
            Table::Nhgs => {
                let below = self.below()?;
                let all = below.groups.iter();
                all.map(|(id, members)| {
                    let members: Vec<Value> = members
                        .iter()
                        .map(|(nexthop, weight)| json!({"nexthop": nexthop, "weight": weight}))
                        .collect();
                    json!({"nhg": id, "members": members})
                })
                .collect()
            }
            Table::Rifs => {
                let all = self.all::<raw::tnd_rif>()?;
                all.iter()
                    .map(|o| {
                        let r = &o.body;
                        json!({
                            "rif": r.rif, "vrf": r.vrf, "place": place(r), "mac": mac(&r.mac), "mtu": r.mtu,
                            "state": o.state(r.flags & raw::TND_RIF_TRAP_ALL != 0), "reason": o.reason,
                        })
                    })
                    .collect::<Vec<_>>()
            }
            _ => return Ok(None),
        };
        rows.sort_by_key(ToString::to_string);
        Ok(Some(rows))
    }

    /// `explain`: as switchd answers.
    pub fn explain(&mut self, kind: ExplainKind, key: &str) -> Result<Value> {
        let found = match kind {
            ExplainKind::Route => self.explain_route(key)?,
            ExplainKind::Neighbour => {
                let addr: IpAddr = unqualified(key)?
                    .parse()
                    .map_err(|_| anyhow!("{key} is not an IP address"))?;
                let below = self.below()?;
                let all = self.all::<raw::tnd_neigh>()?;
                let mut found = all
                    .iter()
                    .filter(|o| address(o.body.family, &o.body.addr) == addr);
                found.next().map(|o| {
                    let object = format!(
                        "{addr} is {} by {}",
                        mac(&o.body.mac),
                        below.rif(o.body.rif)
                    );
                    let others: Vec<String> = found
                        .map(|o| format!("also by {}: {}", below.rif(o.body.rif), mac(&o.body.mac)))
                        .collect();
                    let state = o.state(o.body.action == raw::TND_ACT_TRAP);
                    answer(kind, key, object, (state, o.reason.clone()), others)
                })
            }
            // the driver has none: a bridge with groups by MAC address traps
            ExplainKind::Group => None,
            ExplainKind::Mac => {
                let wanted = unqualified(key)?.to_lowercase();
                let all = self.all::<raw::tnd_fdb>()?;
                let found = all.iter().find(|o| mac(&o.body.mac) == wanted);
                found.map(|o| {
                    let object =
                        format!("{wanted} in domain {} on port {}", o.body.fid, o.body.port);
                    let state = o.state(o.body.action == raw::TND_ACT_TRAP);
                    answer(kind, key, object, (state, o.reason.clone()), Vec::new())
                })
            }
        };
        let absent = || {
            let none = Some("the driver has no such object".to_string());
            answer(kind, key, String::new(), (State::Absent, none), Vec::new())
        };
        Ok(serde_json::to_value(found.unwrap_or_else(absent))?)
    }

    fn explain_route(&mut self, key: &str) -> Result<Option<Explain>> {
        let net: IpNet = match key.parse::<IpAddr>() {
            Ok(addr) => addr.into(),
            Err(_) => key
                .parse()
                .map_err(|_| anyhow!("{key} is neither a prefix nor an address"))?,
        };
        let below = self.below()?;
        let all = self.all::<raw::tnd_route>()?;
        let found = all
            .iter()
            .filter(|o| o.body.vrf == 0)
            .filter_map(|o| Some((prefix(&o.body)?, o)))
            .filter(|(p, _)| p.contains(&net.trunc()))
            .max_by_key(|(p, _)| p.prefix_len());
        let Some((p, o)) = found else {
            return Ok(None);
        };
        let mut details = Vec::new();
        if p != net.trunc() {
            details.push(format!("{p} answers for it: it has no entry of its own"));
        }
        let ways: Vec<u32> = match (o.body.action, o.body.target_kind) {
            (raw::TND_ACT_FORWARD, raw::TND_RT_NHG) => {
                below.members(o.body.target).iter().map(|m| m.0).collect()
            }
            (raw::TND_ACT_FORWARD, _) => vec![o.body.target],
            _ => Vec::new(),
        };
        for id in ways {
            let reason = below.nexthops.get(&id).and_then(|n| n.reason.clone());
            let reason = reason.map_or(String::new(), |r| format!(": {r}"));
            details.push(format!("next hop {id}: {}{reason}", below.nexthop(id)));
        }
        let object = format!("{p} {}", below.target(&o.body));
        let kind = ExplainKind::Route;
        Ok(Some(answer(kind, key, object, below.judge(o), details)))
    }
}

/// An address to be explained, without the device or bridge that only switchd knows.
fn unqualified(key: &str) -> Result<&str> {
    match key.split_once('@') {
        Some((addr, name)) => Err(anyhow!(
            "the driver knows RIFs and domains, no {name}: ask for {addr} alone"
        )),
        None => Ok(key),
    }
}

fn first<T: FromBytes>(bytes: &[u8]) -> Option<T> {
    fixed::<T>(bytes).next()
}

fn neighbour_row(below: &Below, o: &Known<raw::tnd_neigh>) -> Value {
    let n = &o.body;
    json!({
        "family": family(n.family), "address": address(n.family, &n.addr).to_string(), "dev": below.rif(n.rif),
        "mac": mac(&n.mac), "state": o.state(n.action == raw::TND_ACT_TRAP), "reason": o.reason,
    })
}

fn fdb_row(o: &Known<raw::tnd_fdb>) -> Value {
    let f = &o.body;
    let kind = match f.flags {
        x if x & raw::TND_FDB_LEARNED != 0 => "learned",
        x if x & raw::TND_FDB_STATIC != 0 => "static",
        _ => "dynamic",
    };
    json!({
        "mac": mac(&f.mac), "fid": f.fid, "dev": format!("port {}", f.port), "kind": kind,
        "state": o.state(f.action == raw::TND_ACT_TRAP), "reason": o.reason,
    })
}

fn answer(
    kind: ExplainKind,
    key: &str,
    object: String,
    (state, reason): (State, Option<String>),
    details: Vec<String>,
) -> Explain {
    Explain {
        kind: crate::args::name(&kind),
        key: key.into(),
        object,
        in_hardware: state == State::Offloaded,
        state,
        reason,
        details,
        ..Explain::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(action: u8, kind: u8, target: u32, state: ObjectState) -> Known<raw::tnd_route> {
        let mut addr = [0; 16];
        addr[..2].copy_from_slice(&[20, 1]);
        Known {
            body: raw::tnd_route {
                family: raw::TND_AF_INET,
                prefix_len: 16,
                action,
                target_kind: kind,
                target,
                addr,
                ..Default::default()
            },
            state,
            reason: None,
        }
    }

    fn below() -> Below {
        let nexthop = |id, action| {
            let body = raw::tnd_nexthop {
                nexthop: id,
                rif: 5121,
                action,
                mac: [2, 0, 0, 0, 0, 9],
                ..Default::default()
            };
            let known = Known {
                body,
                state: ObjectState::Hardware,
                reason: None,
            };
            (id, known)
        };
        let rif = raw::tnd_rif {
            rif: 5121,
            kind: raw::TND_RIF_PORT_VLAN,
            port: 1,
            vid: 10,
            ..Default::default()
        };
        Below {
            nexthops: [
                nexthop(1, raw::TND_ACT_FORWARD),
                nexthop(2, raw::TND_ACT_TRAP),
            ]
            .into(),
            groups: [(7, vec![(1, 1), (2, 3)]), (8, vec![(2, 1)])].into(),
            rifs: [(5121, rif)].into(),
        }
    }

    #[test]
    fn a_route_says_where_it_leads_and_whether_anybody_is_there() {
        let b = below();
        let (fwd, hw) = (raw::TND_ACT_FORWARD, ObjectState::Hardware);
        let row = b.row(&route(fwd, raw::TND_RT_NEXTHOP, 1, hw));
        assert_eq!(row["prefix"], "20.1.0.0/16");
        assert_eq!(row["state"], "offloaded");
        assert_eq!(
            row["installed"],
            "02:00:00:00:00:09 by RIF 5121 (port 1 VLAN 10)"
        );
        // one member of the group is enough
        assert_eq!(
            b.row(&route(fwd, raw::TND_RT_NHG, 7, hw))["state"],
            "offloaded"
        );
        let row = b.row(&route(fwd, raw::TND_RT_NHG, 8, hw));
        assert_eq!(
            (&row["state"], &row["reason"]),
            (&json!("trap"), &json!("no next hop is resolved"))
        );
        let row = b.row(&route(raw::TND_ACT_TRAP, 0, 0, hw));
        assert_eq!(row["state"], "trap");
        let row = b.row(&route(fwd, raw::TND_RT_NEXTHOP, 1, ObjectState::Failed));
        assert_eq!(
            (&row["state"], &row["installed"]),
            (&json!("failed"), &Value::Null)
        );
        let row = b.row(&route(fwd, raw::TND_RT_NEXTHOP, 1, ObjectState::Trap));
        assert_eq!(
            (&row["state"], &row["installed"]),
            (&json!("trap"), &json!("trap"))
        );
    }
}

//! The store's rows in the API's words.
//!
//! | store | API |
//! |---|---|
//! | installed, forwards or drops | `offloaded` |
//! | installed as a trap, or towards a next hop that is one; left out because something else catches it | `trap` |
//! | failed, pending | the same |
//! | whatever, without an ASIC | `pending` |

use std::net::IpAddr;

use ipnet::IpNet;
use tandem_mgmt::types::{self, AclRule, Cost, Explain, Fdb, Group, Items, Neighbour, Port, Route};
use tandem_store::model::{Family, FdbKind, GroupAddr, LinkKind, RouteType, SourceId, nud};
use tandem_store::{Action, Explanation, Page, Policy, Reason, RouteRow, State};

use crate::Core;
use crate::attach::Lack;

pub(super) fn policy(p: Policy) -> &'static str {
    match p {
        Policy::Trap => "trap",
        Policy::Fail => "fail",
    }
}

/// What the tables say of hardware is memory while there is none.
pub(super) fn no_asic(core: &Core) -> String {
    let device = core.plant().names().device;
    let why = match core.lack() {
        Lack::Attaching(at) => format!("{device} is being attached: {at}"),
        Lack::Refused(why) => why.to_owned(),
        Lack::Away => format!("is {device} running?"),
    };
    format!("no ASIC is attached: nothing is in hardware ({why})")
}

/// What is said of an object by `show` and by `explain`: its state, and why it isn't offloaded.
/// `store` and `action` are the store's words; what stands in the chip as it should answers for
/// nothing, if no packet gets to it (`unreached`).
fn judge(
    no_asic: Option<String>,
    store: State,
    action: Action,
    reason: Option<Reason>,
    unreached: Option<Reason>,
) -> (types::State, Option<String>) {
    if no_asic.is_some() {
        return (types::State::Pending, no_asic);
    }
    let unreached = unreached.filter(|_| store == State::Installed);
    let reason = reason.or(unreached);
    let state = match (store, action) {
        (State::Installed, Action::Trap) | (State::Omitted | State::Trap, _) => types::State::Trap,
        (State::Installed, _) if reason.is_none() => types::State::Offloaded,
        (State::Installed, _) => types::State::Trap,
        (State::Failed, _) => types::State::Failed,
        (State::Pending, _) => types::State::Pending,
    };
    (state, reason.map(|r| r.to_string()))
}

fn attached(core: &Core) -> bool {
    core.epoch() != 0
}

/// The line that says so, where there is no ASIC.
fn lacking(core: &Core) -> Option<String> {
    (!attached(core)).then(|| no_asic(core))
}

/// Of what no lookup comes before.
fn judged(
    core: &Core,
    store: State,
    action: Action,
    reason: Option<Reason>,
) -> (types::State, Option<String>) {
    judge(lacking(core), store, action, reason, None)
}

/// Routes of the default VRF that no packet gets to.
pub(super) fn unreached(core: &Core) -> impl Iterator<Item = String> {
    [(Family::V4, "IPv4"), (Family::V6, "IPv6")]
        .into_iter()
        .filter(|(f, _)| core.store.routes_forward(*f))
        .filter_map(|(f, name)| Some(format!("{name} routes: {}", core.store.unreached(0, f)?)))
}

fn mac(m: [u8; 6]) -> String {
    let [a, b, c, d, e, f] = m;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

fn source(core: &Core, id: u8) -> String {
    let name = core.sources.name(SourceId(id));
    name.unwrap_or(core.plant().names().daemon).into()
}

/// Front-panel ports, by number.
pub(super) fn ports(core: &Core) -> Vec<Port> {
    core.plant()
        .ports()
        .iter()
        .map(|p| {
            let link = core.store.link(p.ifindex);
            let (netdev, reason) = match link {
                Some(l) => (l.name.clone(), core.store.port_reason(p.ifindex)),
                None if core.store.is_away(p.port) => (String::new(), Some(Reason::NetdevAway)),
                None => (String::new(), Some(Reason::NetdevGone)),
            };
            let (state, reason) = judged(core, State::Installed, Action::None, reason);
            Port {
                name: p.name.clone(),
                port: p.port,
                netdev,
                ifindex: p.ifindex,
                mac: link.map_or_else(String::new, |l| mac(l.mac)),
                mtu: link.map_or(0, |l| l.mtu),
                admin_up: link.is_some_and(|l| l.admin_up),
                bridge: link
                    .and_then(|l| core.store.link(l.master))
                    .filter(|m| matches!(m.kind, LinkKind::Bridge(_)))
                    .map_or_else(String::new, |m| m.name.clone()),
                state,
                reason,
                ..Port::default()
            }
        })
        .collect()
}

fn family_text(family: Family) -> String {
    match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    }
    .into()
}

fn route(core: &Core, family: Family, r: RouteRow) -> Route {
    let prefix = r.key();
    let attached = attached(core);
    let kind = r.kind_text();
    let (state, reason) = judge(lacking(core), r.state, r.action, r.reason, r.unreached);
    let desired = match (r.kind, r.target.is_empty()) {
        (Some(RouteType::Unicast), false) => r.target,
        (_, true) => kind.into(),
        (_, false) => format!("{kind} {}", r.target),
    };
    Route {
        family: family_text(family),
        vrf: r.vrf,
        prefix,
        table: r.table,
        metric: r.metric,
        desired,
        installed: if attached { r.action } else { Action::None }.text().into(),
        state,
        reason,
        source: source(core, r.source),
    }
}

/// A page of routes. The cursor carries the family in its lowest bit.
pub(super) fn routes(core: &Core, families: &[Family], cursor: u64, limit: usize) -> Items<Route> {
    let mut items = Vec::new();
    let start = if cursor & 1 == 1 {
        Family::V6
    } else {
        families.first().copied().unwrap_or(Family::V4)
    };
    let mut at = cursor >> 1;
    for &family in families.iter().skip_while(|f| **f != start) {
        let mut rows = Vec::new();
        let bit = u64::from(family == Family::V6);
        if items.len() >= limit {
            return Items {
                items,
                next: Some(bit),
            };
        }
        let next = core
            .store
            .routes(family, at, limit - items.len(), &mut rows);
        items.extend(rows.into_iter().map(|r| route(core, family, r)));
        if next != 0 {
            return Items {
                items,
                next: Some(next << 1 | bit),
            };
        }
        at = 0;
    }
    Items { items, next: None }
}

fn nud_text(state: u16) -> &'static str {
    match state {
        s if s & nud::PERMANENT != 0 => "permanent",
        s if s & nud::NOARP != 0 => "noarp",
        s if s & nud::REACHABLE != 0 => "reachable",
        s if s & nud::STALE != 0 => "stale",
        s if s & nud::DELAY != 0 => "delay",
        s if s & nud::PROBE != 0 => "probe",
        s if s & nud::FAILED != 0 => "failed",
        s if s & nud::INCOMPLETE != 0 => "incomplete",
        _ => "none",
    }
}

/// A page of a list, in the API's words; `None`: its cursor is none.
fn page<R, T>(page: Option<Page<R>>, row: impl Fn(R) -> T) -> Option<Items<T, String>> {
    let Page { rows, next } = page?;
    let items = rows.into_iter().map(row).collect();
    Some(Items { items, next })
}

/// A page of neighbours.
pub(super) fn neighbours(
    core: &Core,
    cursor: &str,
    limit: usize,
) -> Option<Items<Neighbour, String>> {
    page(core.store.neighbour_page(cursor, limit), |n| {
        let (state, reason) = judge(
            lacking(core),
            n.state,
            Action::Forward,
            n.reason,
            n.unreached,
        );
        Neighbour {
            family: family_text(Family::of(&n.addr)),
            address: n.addr.to_string(),
            dev: n.dev,
            mac: n.mac,
            source_state: nud_text(n.nud).into(),
            kernel_state: nud_text(n.nud).into(),
            state,
            reason,
        }
    })
}

/// All filters at ports, with what the chip has counted.
pub(super) fn acl(core: &Core, packets: &std::collections::HashMap<u32, u64>) -> Vec<AclRule> {
    core.store
        .filters()
        .into_iter()
        .map(|f| {
            let (state, reason) = judged(core, f.state, Action::Forward, f.reason);
            AclRule {
                dev: f.dev,
                hook: if f.egress { "egress" } else { "ingress" }.into(),
                pref: f.priority,
                handle: f.handle,
                rule: f.text,
                packets: packets.get(&f.counter).copied(),
                state,
                reason,
            }
        })
        .collect()
}

/// A page of FDB entries.
pub(super) fn fdb(core: &Core, cursor: &str, limit: usize) -> Option<Items<Fdb, String>> {
    page(core.store.fdb_page(cursor, limit), |f| {
        let (state, reason) = judged(core, f.state, f.action, f.reason);
        Fdb {
            mac: f.mac,
            bridge: f.bridge,
            fid: f.fid,
            dev: f.dev,
            kind: match f.kind {
                None | Some(FdbKind::ExternLearn | FdbKind::Dynamic) => "learned",
                Some(kind) => kind.text(),
            }
            .into(),
            state,
            reason,
        }
    })
}

/// A page of multicast groups.
pub(super) fn mdb(core: &Core, cursor: &str, limit: usize) -> Option<Items<Group, String>> {
    page(core.store.mdb_page(cursor, limit), |g| {
        let (state, reason) = judged(core, g.state, Action::Forward, g.reason);
        Group {
            group: g.group.map_or_else(|| "routers".into(), |g| g.to_string()),
            source: g.source.map(|s| s.to_string()),
            bridge: g.bridge,
            vlan: g.vlan,
            members: g.members,
            state,
            reason,
        }
    })
}

/// What `explain` was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// A prefix, and the VRF's name; empty: the default one.
    Route(IpNet, String),
    Mac([u8; 6]),
    Neighbour(IpAddr),
    Group(GroupAddr),
}

impl Question {
    pub(super) fn parse(kind: &str, key: &str) -> Result<Question, String> {
        match kind {
            "route" => {
                let (key, vrf) = key.split_once(" vrf ").unwrap_or((key, ""));
                let net = match (key, key.parse::<IpNet>(), key.parse::<IpAddr>()) {
                    ("default", ..) => "0.0.0.0/0".parse().map_err(|_| String::new())?,
                    (_, Ok(net), _) => net,
                    (_, _, Ok(addr)) => IpNet::from(addr),
                    _ => return Err(format!("{key} is no prefix and no address")),
                };
                Ok(Question::Route(net.trunc(), vrf.into()))
            }
            "mac" => parse_mac(place(key).0)
                .map(Question::Mac)
                .ok_or_else(|| format!("{key} is no MAC address (aa:bb:cc:dd:ee:ff)")),
            "neighbour" => place(key)
                .0
                .parse()
                .map(Question::Neighbour)
                .map_err(|_| format!("{key} is no address")),
            "group" => match (key.parse(), parse_mac(key)) {
                (Ok(addr), _) => Ok(Question::Group(GroupAddr::Ip(addr))),
                (_, Some(mac)) => Ok(Question::Group(GroupAddr::Mac(mac))),
                _ => Err(format!("{key} is no IP address and no MAC address")),
            },
            other => Err(format!(
                "{other} can't be explained: route, mac, neighbour, group"
            )),
        }
    }
}

pub(crate) fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut out = [0; 6];
    let mut parts = text.split(':');
    for b in &mut out {
        *b = u8::from_str_radix(parts.next().filter(|p| p.len() == 2)?, 16).ok()?;
    }
    parts.next().is_none().then_some(out)
}

/// `ADDRESS@DEV`, `MAC@BRIDGE`: the thing, and where it is meant to be.
fn place(key: &str) -> (&str, Option<&str>) {
    match key.split_once('@') {
        Some((thing, at)) => (thing, Some(at)),
        None => (key, None),
    }
}

fn unknown(core: &Core) -> String {
    format!("{} does not have it", core.plant().names().origin)
}

/// The answer; with nothing known, `state` is `absent`.
pub(super) fn explain(core: &Core, what: &Question, key: &str) -> Explain {
    let (kind, mut all) = match what {
        Question::Route(net, vrf) => {
            let slot = match vrf.as_str() {
                "" => Some(0),
                name => core.store.vrf_slot(name),
            };
            let explain = |slot| core.store.explain_route_in(slot, *net);
            ("route", slot.map(explain).into_iter().collect())
        }
        Question::Mac(m) => ("mac", core.store.explain_mac(*m)),
        Question::Neighbour(a) => ("neighbour", core.store.explain_neighbour(*a)),
        Question::Group(g) => ("group", core.store.explain_group(*g)),
    };
    if let (Question::Mac(_) | Question::Neighbour(_), (_, Some(at))) = (what, place(key)) {
        all.retain(|e| e.devices.iter().any(|dev| dev == at));
    }
    let mut answer = Explain {
        kind: kind.into(),
        key: key.into(),
        state: types::State::Absent,
        ..Explain::default()
    };
    if all.is_empty() {
        answer.reason = Some(unknown(core));
        return answer;
    }
    let first = all.remove(0);
    answer.slow_path_packets = slow_path(core, what, &first);
    fill(core, &mut answer, first);
    // the same address elsewhere
    for other in all {
        let mut extra = Explain::default();
        fill(core, &mut extra, other);
        let reason = extra.reason.map_or(String::new(), |r| format!(": {r}"));
        answer
            .details
            .push(format!("also {}: {}{reason}", extra.object, extra.state));
    }
    answer
}

/// Packets that the CPU had to forward because of this object; for a route those that no more
/// specific one answers for.
fn slow_path(core: &Core, what: &Question, e: &Explanation) -> Option<u64> {
    if !e.known {
        return None;
    }
    let slow = &core.io_stats.slow;
    // few places, many destinations
    let mut slots = std::collections::HashMap::new();
    let mut slot = |place| *slots.entry(place).or_insert_with(|| core.slot_of(place));
    match what {
        Question::Route(net, _) => Some(slow.count(|place, a| {
            net.contains(&a) && slot(place) == e.slot && core.store.route_of(e.slot, a) == e.net
        })),
        Question::Neighbour(addr) => {
            Some(slow.count(|place, a| a == *addr && slot(place) == e.slot))
        }
        Question::Mac(_) | Question::Group(_) => None,
    }
}

fn fill(core: &Core, answer: &mut Explain, e: Explanation) {
    if !e.known {
        answer.state = types::State::Absent;
        answer.reason = Some(unknown(core));
        return;
    }
    let attached = attached(core);
    let (state, reason) = judge(lacking(core), e.state, e.action, e.reason, e.unreached);
    answer.object = if e.target.is_empty() {
        e.key
    } else {
        format!("{} {}", e.key, e.target)
    };
    answer.in_hardware = state == types::State::Offloaded;
    answer.state = state;
    answer.reason = reason;
    if !attached {
        return;
    }
    if e.since_ns != 0 {
        answer.since_s = Some(core.now.saturating_sub(e.since_ns) as f64 / 1e9);
    }
    if e.cost > 0 {
        answer.cost.push(Cost {
            pool: e.table.clone(),
            slots: e.cost,
        });
    }
    let fail = core.plant().policy() == Policy::Fail;
    if !e.cover.is_empty() {
        answer.details.push(if fail {
            format!(
                "{} answers for its packets, rightly or not: policy fail",
                e.cover
            )
        } else {
            format!("{} catches its packets meanwhile", e.cover)
        });
    }
    answer.details.extend(e.details);
    if !e.waiting_for.is_empty() {
        answer.details.push(format!("waits for {}", e.waiting_for));
    }
    if !e.innocent.is_empty() && !fail {
        answer.details.push(format!(
            "goes to the CPU because of the same entry: {}",
            e.innocent.join(", ")
        ));
    }
    answer
        .details
        .push(format!("from {}", source(core, e.source)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the judgements of all that is listed and explained.
    #[test]
    fn one_judgement_for_rows_and_explanations() {
        let said = |attached: bool, store, action, reason: &str, unreached: &str| {
            let none = (!attached).then(|| "no ASIC is attached".to_owned());
            let some = |why: &str| (!why.is_empty()).then(|| Reason::Filter(why.into()));
            let (state, why) = judge(none, store, action, some(reason), some(unreached));
            (state, why.unwrap_or_default())
        };
        for (store, action, reason, unreached, state, why) in [
            (
                State::Installed,
                Action::Forward,
                "",
                "",
                types::State::Offloaded,
                "",
            ),
            (
                State::Installed,
                Action::Drop,
                "",
                "",
                types::State::Offloaded,
                "",
            ),
            (
                State::Installed,
                Action::Forward,
                "",
                "no way in",
                types::State::Trap,
                "no way in",
            ),
            (
                State::Installed,
                Action::Trap,
                "own",
                "no way in",
                types::State::Trap,
                "own",
            ),
            (
                State::Omitted,
                Action::None,
                "parser",
                "",
                types::State::Trap,
                "parser",
            ),
            (
                State::Failed,
                Action::None,
                "full",
                "no way in",
                types::State::Failed,
                "full",
            ),
            (
                State::Pending,
                Action::None,
                "",
                "no way in",
                types::State::Pending,
                "",
            ),
        ] {
            assert_eq!(
                said(true, store, action, reason, unreached),
                (state, why.into())
            );
            // whatever the store remembers of it
            let (state, why) = said(false, store, action, reason, unreached);
            assert_eq!(state, types::State::Pending);
            assert!(why.contains("no ASIC is attached"), "{why}");
        }
    }

    #[test]
    fn questions_are_read_as_people_write_them() {
        assert_eq!(
            Question::parse("route", "10.0.0.1/8"),
            Ok(Question::Route(
                "10.0.0.0/8".parse().unwrap(),
                String::new()
            ))
        );
        assert_eq!(
            Question::parse("route", "2001:db8::1"),
            Ok(Question::Route(
                "2001:db8::1/128".parse().unwrap(),
                String::new()
            ))
        );
        assert_eq!(
            Question::parse("mac", "02:00:00:00:00:0a"),
            Ok(Question::Mac([2, 0, 0, 0, 0, 10]))
        );
        let addr = "10.0.0.1".parse().unwrap();
        for key in ["10.0.0.1", "10.0.0.1@br0"] {
            assert_eq!(
                Question::parse("neighbour", key),
                Ok(Question::Neighbour(addr))
            );
        }
        assert_eq!(
            Question::parse("mac", "02:00:00:00:00:0a@br0"),
            Ok(Question::Mac([2, 0, 0, 0, 0, 10]))
        );
        for (kind, key) in [
            ("route", "x"),
            ("mac", "02:00"),
            ("neighbour", "10.0.0.0/8"),
            ("port", "1"),
        ] {
            assert!(Question::parse(kind, key).is_err(), "{kind} {key}");
        }
    }
}

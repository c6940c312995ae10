// SPDX-License-Identifier: Apache-2.0
//! The management API on ofagentd.sock (keys: docs/api.md).
//!
//! Handlers run on the API's thread and have what they need read by the switch's thread between two turns: a small
//! closure through a bounded channel. Lists are read page by page; one of flows in the order of their numbers, as a page
//! of a million must not cost a look at all of them.

use std::ops::ControlFlow;

use axum::extract::{Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_linux::clock;
use tandem_mgmt::server::{ApiError, ApiResult, ask};
use tandem_mgmt::types::{Items, Page};
use tandem_ofagent::CONNECTIONS;
use tandem_ofchip::{Chip, Share};
use tandem_ofpipeline::flows::all_flows;
use tandem_ofpipeline::stats::FlowStats;
use tandem_openflow::model::{FlowFilter, GROUP_ANY, Role, TABLE_ALL, port_config, port_state};
use tandem_packet::ether;

use crate::args::PortArg;
use crate::explain;
use crate::keeper::{Order, Orders};
use crate::lsi::{front, number};
use crate::rows::{lsi_row, together};
use crate::switch::{Jobs, Lsi, Plant};
use crate::text;
use crate::trace;

/// A port is opened within this time, or the request fails.
const OPENED: std::time::Duration = std::time::Duration::from_secs(5);
/// A read of the chip's counters is waited for so often, so long: until it is known that the chip does not answer.
const READS: u32 = 900;
const READ: std::time::Duration = std::time::Duration::from_millis(5);
/// Buckets of a group that are said in one line; `buckets` has all.
const BUCKETS: usize = 4;
/// Rules whose reasons are put into words for one page: a flow may be in thousands.
const RULES: usize = 10_000;
/// Rows of one page.
const ROWS: u32 = 10_000;

#[derive(Clone)]
pub(crate) struct Api {
    jobs: Jobs,
    orders: Orders,
    instance: String,
    started: std::time::Instant,
}

impl Api {
    /// Has `f` run by the switches' thread, on one of them.
    pub(crate) async fn of<T: Send + 'static>(
        &self,
        lsi: Option<String>,
        f: impl FnOnce(&mut Lsi) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.ask(move |plant| Ok(f(named(plant, lsi.as_deref())?)))
            .await?
    }

    /// Has `f` run by the switches' thread.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Plant) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        ask("the switch's thread", |job| self.jobs.post(job), f).await
    }
}

/// The switch of this name; without a name the only one.
fn named<'a>(plant: &'a mut Plant, name: Option<&str>) -> Result<&'a mut Lsi, ApiError> {
    let at = number_of(plant, name)?;
    let found = plant.lsis.get_mut(usize::from(at));
    found.ok_or_else(ApiError::stopping)
}

/// Its number.
fn number_of(plant: &Plant, name: Option<&str>) -> Result<u16, ApiError> {
    let names = || {
        let all: Vec<&str> = plant.lsis.iter().map(|l| l.name.as_str()).collect();
        all.join(", ")
    };
    let alone = plant.lsis.iter().all(|l| l.name.is_empty());
    match name.filter(|n| !n.is_empty()) {
        None if plant.lsis.len() == 1 => Ok(0),
        None => Err(ApiError::bad_request(format!(
            "which logical switch, of {}? --lsi NAME",
            names()
        ))),
        Some(_) if alone => Err(ApiError::not_found("there are no logical switches")),
        Some(n) => {
            let mut all = (0..).zip(&plant.lsis);
            let found = all.find(|(_, l)| l.name == n);
            let none = || format!("there is no logical switch {n}, but {}", names());
            found
                .map(|(at, _)| at)
                .ok_or_else(|| ApiError::not_found(none()))
        }
    }
}

/// Query: of which switch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Whose {
    lsi: Option<String>,
}

/// The routes.
pub fn router(jobs: Jobs, orders: Orders, instance: String) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/lsis", get(lsis))
        .route("/v1/flows", get(flows))
        .route("/v1/groups", get(groups))
        .route("/v1/meters", get(meters))
        .route("/v1/tables", get(tables))
        .route("/v1/ports", get(ports).post(change_ports))
        .route("/v1/controllers", get(controllers))
        .route("/v1/sizes", get(sizes))
        .route("/v1/explain/flow", get(explain::flow))
        .route("/v1/trace", post(trace::trace))
        .with_state(Api {
            jobs,
            orders,
            instance,
            started: std::time::Instant::now(),
        })
}

pub(crate) fn seconds(since_ns: u64, now_ns: u64) -> f64 {
    (now_ns.saturating_sub(since_ns) / 1_000_000) as f64 / 1_000.0
}

async fn lsis(State(api): State<Api>) -> ApiResult<Items<Value>> {
    let rows: Vec<Value> = api
        .ask(|plant| plant.lsis.iter().map(lsi_row).collect())
        .await?;
    Ok(Json(rows.into()))
}

async fn status(State(api): State<Api>) -> ApiResult<Value> {
    let rows: Vec<Value> = api
        .ask(|plant| plant.lsis.iter().map(lsi_row).collect())
        .await?;
    let mut v = together(&rows);
    if let Value::Object(o) = &mut v {
        o.remove("lsi");
        o.remove("members");
        o.insert("lsis".into(), json!(rows.len()));
        o.insert("daemon".into(), json!("ofagentd"));
        o.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
        o.insert("instance".into(), json!(api.instance));
        o.insert("pid".into(), json!(std::process::id()));
        o.insert(
            "uptime_s".into(),
            json!(api.started.elapsed().as_secs_f64()),
        );
    }
    Ok(Json(v))
}

/// Query of flows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Which {
    lsi: Option<String>,
    table: Option<u8>,
    /// The number of the flow that the page begins with.
    cursor: u32,
    limit: u32,
}

/// Rows of a page, of which so many were asked for.
fn rows(limit: u32) -> u32 {
    match limit {
        0 => ROWS,
        n => n.min(ROWS),
    }
}

/// A page of rows that a function makes of some of `all`.
fn page<T>(all: Vec<T>, cursor: u64, limit: u32, row: impl Fn(T) -> Option<Value>) -> Items<Value> {
    let limit = rows(limit);
    let from = usize::try_from(cursor).unwrap_or(usize::MAX);
    let left = all.len().saturating_sub(from);
    let next = (left > limit as usize).then_some(cursor.saturating_add(u64::from(limit)));
    let rows = all.into_iter().skip(from).take(limit as usize);
    Items {
        items: rows.filter_map(row).collect(),
        next,
    }
}

/// What the chip has counted by now is read, if there is one that answers.
pub(crate) async fn read(api: &Api, lsi: &Option<String>) -> Result<(), ApiError> {
    let begin = |l: &mut Lsi| l.agent.chip_mut().map(|c| c.read());
    let Some(read) = api.of(lsi.clone(), begin).await? else {
        return Ok(());
    };
    for _ in 0..READS {
        let done = move |l: &mut Lsi| {
            let chip = l.agent.datapath().chip();
            chip.is_none_or(|c| c.read_done() >= read || c.lost().is_some() || c.is_silent())
        };
        if api.of(lsi.clone(), done).await? {
            api.of(lsi.clone(), |l| l.agent.refresh_use()).await?;
            break;
        }
        tokio::time::sleep(READ).await;
    }
    Ok(())
}

/// Who answers, in a word.
pub(crate) fn share(s: Share) -> &'static str {
    match s {
        Share::Whole => "hardware",
        Share::Part => "partly",
        Share::Nothing => "software",
    }
}

/// Where a flow's packets are answered, and why there.
pub(crate) fn place(chip: Option<&Chip>, flow: &FlowStats<'_>) -> (Value, Value) {
    let Some(chip) = chip else {
        return (Value::Null, Value::Null);
    };
    let place = share(chip.share(flow.number));
    let why = match (chip.why(flow.number), chip.lost()) {
        // one that has not ended may
        (_, Some(lost)) if !chip.is_settled() => {
            format!("software, or what the chip forwards on: it is not attached: {lost}")
        }
        (_, Some(lost)) => format!("software: the chip is not attached: {lost}"),
        (Some(_), None) if chip.is_none() => {
            "software: fragments are dropped, or no controller is there: all frames go to the CPU"
                .into()
        }
        (Some(why), None) if chip.is_silent() && chip.is_open() => {
            format!("{why} (as the chip was when it answered last: it does not now)")
        }
        (Some(_), None) if chip.is_silent() => {
            "software, or what the chip forwards on: it was being written, and does not answer now"
                .into()
        }
        (Some(why), None) if chip.is_open() => why,
        (Some(_), None) => "software: the chip is being written, all frames go to the CPU".into(),
        (None, None) => "software: no frame of the chip's ports meets it".into(),
    };
    (json!(place), json!(why))
}

/// What nobody counted is null.
fn known(n: u64) -> Option<u64> {
    (n != u64::MAX).then_some(n)
}

async fn flows(State(api): State<Api>, Query(which): Query<Which>) -> ApiResult<Items<Value>> {
    read(&api, &which.lsi).await?;
    let items = api
        .of(which.lsi.clone(), move |l| {
            let now = clock::now_ns();
            let dp = l.agent.datapath();
            let switch = dp.switch();
            let filter = FlowFilter {
                table: which.table.unwrap_or(TABLE_ALL),
                ..all_flows()
            };
            let most = rows(which.limit) as usize;
            let mut items = Vec::new();
            let mut rules = 0;
            let next = switch.flow_page(&filter, which.cursor, ROWS, |f| {
                let (packets, bytes) = dp.counted(&f);
                let (place, why) = place(dp.chip(), &f);
                items.push(json!({
                    "number": f.number,
                    "place": place,
                    "why": why,
                    "table": f.flow.table,
                    "priority": f.flow.priority,
                    "cookie": format!("{:#x}", f.flow.cookie),
                    "match": text::matching(&f.flow.matching),
                    "instructions": text::instructions(&f.flow.instructions),
                    "packets": known(packets),
                    "bytes": known(bytes),
                    "age_s": seconds(f.flow.since_ns, now),
                    "idle_s": seconds(f.last_ns, now),
                    "idle_timeout": f.flow.idle,
                    "hard_timeout": f.flow.hard,
                    "flags": f.flow.flags,
                }));
                rules += dp.chip().map_or(0, |c| c.rules(f.number));
                match items.len() < most && rules < RULES {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            Items {
                items,
                next: next.map(u64::from),
            }
        })
        .await?;
    Ok(Json(items))
}

async fn groups(
    State(api): State<Api>,
    Query(whose): Query<Whose>,
    Query(p): Query<Page>,
) -> ApiResult<Items<Value>> {
    read(&api, &whose.lsi).await?;
    let items = api
        .of(whose.lsi, move |l| {
            let now = clock::now_ns();
            let dp = l.agent.datapath();
            let switch = dp.switch();
            page(switch.groups().collect(), p.cursor, p.limit, |n| {
                let (g, c) = switch.group(n)?;
                let buckets: Vec<Value> = g
                    .buckets
                    .iter()
                    .zip(&c.buckets)
                    .zip(0..)
                    .map(|((b, count), at)| {
                        let (packets, bytes) = dp.group_counted(n, Some(at), count);
                        json!({
                            "weight": b.weight,
                            "watch_port": text::port_name(b.watch_port),
                            "watch_group": (b.watch_group != GROUP_ANY).then_some(b.watch_group),
                            "actions": text::actions(&b.actions),
                            "packets": known(packets),
                            "bytes": known(bytes),
                        })
                    })
                    .collect();
                let some = g.buckets.iter().take(BUCKETS);
                let mut said: Vec<String> = some.map(|b| text::actions(&b.actions)).collect();
                if let Some(more) = g.buckets.len().checked_sub(BUCKETS).filter(|n| *n > 0) {
                    said.push(format!("{more} more"));
                }
                let (packets, bytes) = dp.group_counted(n, None, &c.count);
                let place = dp.chip().and_then(|chip| chip.group_share(n));
                Some(json!({
                    "group": n,
                    "place": place.map(share),
                    "kind": format!("{:?}", g.kind).to_lowercase(),
                    "references": c.refs,
                    "packets": known(packets),
                    "bytes": known(bytes),
                    "age_s": seconds(c.since_ns, now),
                    "buckets": buckets,
                    "actions": said.join(" | "),
                }))
            })
        })
        .await?;
    Ok(Json(items))
}

async fn meters(
    State(api): State<Api>,
    Query(whose): Query<Whose>,
    Query(p): Query<Page>,
) -> ApiResult<Items<Value>> {
    let items = api
        .of(whose.lsi, move |l| {
            let now = clock::now_ns();
            let dp = l.agent.datapath();
            let switch = dp.switch();
            // The chip has none
            let place = dp.chip().map(|_| share(Share::Nothing));
            page(switch.meters().collect(), p.cursor, p.limit, |n| {
                let m = switch.meter(n)?;
                let bands: Vec<Value> = m
                    .bands
                    .iter()
                    .zip(&m.band_counts)
                    .map(|(b, count)| {
                        json!({
                            "band": text::band(b, m.flags),
                            "packets": count.packets,
                            "bytes": count.bytes,
                        })
                    })
                    .collect();
                let said: Vec<String> = m.bands.iter().map(|b| text::band(b, m.flags)).collect();
                Some(json!({
                    "meter": n,
                    "place": place.filter(|_| m.flows > 0),
                    "flows": m.flows,
                    "packets": m.count.packets,
                    "bytes": m.count.bytes,
                    "age_s": seconds(m.since_ns, now),
                    "bands": bands,
                    "does": said.join("; "),
                }))
            })
        })
        .await?;
    Ok(Json(items))
}

async fn tables(State(api): State<Api>, Query(whose): Query<Whose>) -> ApiResult<Items<Value>> {
    read(&api, &whose.lsi).await?;
    let rows: Vec<Value> = api
        .of(whose.lsi, |l| {
            let dp = l.agent.datapath();
            let row = |t: tandem_ofpipeline::stats::TableStats| {
                json!({
                    "table": t.table,
                    "flows": t.active,
                    "max_flows": t.max_entries,
                    "masks": t.masks,
                    "lookups": known(t.count.lookups),
                    "matched": known(t.count.matched),
                })
            };
            dp.table_stats().map(row).collect()
        })
        .await?;
    Ok(Json(rows.into()))
}

/// What there is of something: of which list, what it is, how much is taken, how much there is.
fn size(of: &str, what: &str, used: u64, size: u64) -> Value {
    let free = size.saturating_sub(used);
    json!({"of": of, "what": what, "used": used, "free": free, "size": size})
}

/// How full everything is that has an end: the software's tables, and the chip's.
async fn sizes(State(api): State<Api>, Query(whose): Query<Whose>) -> ApiResult<Items<Value>> {
    let rows = api
        .of(whose.lsi, |l| {
            let agent = &l.agent;
            let switch = agent.datapath().switch();
            let c = switch.config();
            let flows: u64 = switch.table_stats().map(|t| u64::from(t.active)).sum();
            let (groups, meters) = (switch.groups().count(), switch.meters().count());
            let connections = agent.conns().count() as u64;
            let bytes = switch.action_bytes();
            let mut rows = vec![
                size("tables", "flows of all tables", flows, c.flows.into()),
                size("tables", "bytes of actions", bytes, c.bytes),
                size("groups", "groups", groups as u64, c.groups.into()),
                size("groups", "bytes of actions", bytes, c.bytes),
                size("meters", "meters", meters as u64, c.meters.into()),
                size(
                    "controllers",
                    "connections",
                    connections,
                    CONNECTIONS as u64,
                ),
            ];
            if let Some(chip) = agent.datapath().chip() {
                let u = chip.usage();
                let mut add = |what: &str, used: u32, all: u32| {
                    rows.push(size("chip", what, used.into(), all.into()));
                };
                let lines = format!("{} lines", chip.list_name());
                add(&lines, u.acl_used, u.acl_size);
                add("MAC table entries", u.mac_used, chip.mac_size());
                add("port sets", u.sets_used, u.sets_size);
                if let Some(name) = chip.class_name() {
                    add(&format!("{name} lines"), u.class_used, u.class_size);
                    add("groups of frames", u.groups_used, u.groups_size);
                }
                let (used, all) = chip.counters();
                add("counters of rows", used, all);
            }
            rows
        })
        .await?;
    Ok(Json(rows.into()))
}

fn flags(bits: u32, names: &[(u32, &str)]) -> String {
    let set = names.iter().filter(|(bit, _)| bits & bit != 0);
    set.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
}

async fn ports(State(api): State<Api>, Query(whose): Query<Whose>) -> ApiResult<Items<Value>> {
    read(&api, &whose.lsi).await?;
    api.ask(Plant::count).await?;
    let rows: Vec<Value> = api
        .of(whose.lsi, |l| {
            let now = clock::now_ns();
            let dp = l.agent.datapath();
            dp.ports()
                .map(|e| {
                    let p = &e.port;
                    let cable = l
                        .ports
                        .get(&p.number)
                        .map(|c| c.arg.spec.kind.to_string())
                        .or_else(|| {
                            let port = dp.chip()?.port(p.number)?;
                            Some(format!("asicd, port {port}"))
                        });
                    let c = dp.port_count(p.number).unwrap_or_default();
                    json!({
                        "name": p.name,
                        "number": p.number,
                        "cable": cable,
                        "mac": ether::show(&p.hw_addr).to_string(),
                        "link": if p.state & port_state::LINK_DOWN == 0 { "up" } else { "down" },
                        "speed_mbps": p.current_speed / 1_000,
                        "config": flags(p.config, &[
                            (port_config::PORT_DOWN, "port_down"),
                            (port_config::NO_RECV, "no_recv"),
                            (port_config::NO_FWD, "no_fwd"),
                            (port_config::NO_PACKET_IN, "no_packet_in"),
                            (port_config::NO_FLOOD10, "no_flood"),
                        ]),
                        "rx_packets": known(c.rx.packets),
                        "rx_bytes": known(c.rx.bytes),
                        "tx_packets": known(c.tx.packets),
                        "tx_bytes": known(c.tx.bytes),
                        "rx_dropped": c.rx_dropped + e.lost.rx_dropped,
                        "tx_dropped": known(c.tx_dropped.saturating_add(e.lost.tx_dropped)),
                        "rx_errors": e.lost.rx_errors,
                        "age_s": seconds(c.since_ns, now),
                    })
                })
                .collect()
        })
        .await?;
    Ok(Json(rows.into()))
}

/// `{"add": "swp3=eth3:7"}`, on a chip `"swp3:7"`; or `{"remove": "swp3"}`.
#[derive(Debug, Deserialize)]
struct Change {
    add: Option<String>,
    remove: Option<String>,
    lsi: Option<String>,
}

async fn change_ports(State(api): State<Api>, Json(body): Json<Value>) -> ApiResult<Value> {
    let change: Change =
        serde_json::from_value(body).map_err(|e| ApiError::bad_request(format!("port: {e}")))?;
    if api.ask(|plant| plant.asic.is_some()).await? {
        return change_chip_ports(&api, change).await;
    }
    let (to, answer) = tokio::sync::oneshot::channel();
    let (order, said) = match (&change.add, &change.remove) {
        (Some(text), None) => {
            let arg: PortArg = text.parse().map_err(ApiError::bad_request)?;
            let whose = change.lsi.clone();
            let lsi = api
                .ask(move |plant| number_of(plant, whose.as_deref()))
                .await??;
            let said = format!("{}: {} is port {}", arg.name(), arg.spec.kind, arg.number);
            (Order::Add(lsi, arg, to), said)
        }
        (None, Some(name)) => (
            Order::Remove(front(name).map_err(ApiError::not_found)?, to),
            format!("{name} is no port any more"),
        ),
        _ => return Err(ApiError::bad_request("port: wanted add, or remove")),
    };
    if !api.orders.post(order) {
        return Err(ApiError::unavailable(
            "too many changes of ports wait: try again",
        ));
    }
    match tokio::time::timeout(OPENED, answer).await {
        Ok(Ok(Ok(()))) => {
            // the switch's thread has it, too, when this has been answered
            api.ask(|_| ()).await?;
            Ok(Json(json!({ "applied": said })))
        }
        Ok(Ok(Err(why))) => Err(ApiError::bad_request(why)),
        Ok(Err(_)) => Err(ApiError::stopping()),
        Err(_) => Err(ApiError::timeout("the port was not opened in 5 s")),
    }
}

/// `swp3`, `swp3:7`: a port that the chip has, cabled or not.
fn chip_port(text: &str) -> Result<(u16, Option<u32>), String> {
    if text.contains('=') {
        return Err(format!(
            "{text}: the ports and their cables are the chip's: swp3, or swp3:7 for number 7"
        ));
    }
    match text.split_once(':') {
        Some((name, n)) => Ok((front(name)?, Some(number(n)?))),
        None => Ok((front(text)?, None)),
    }
}

async fn change_chip_ports(api: &Api, change: Change) -> ApiResult<Value> {
    let now = clock::now_ns();
    let said = match (change.add, change.remove) {
        (Some(text), None) => {
            let (front, number) = chip_port(&text).map_err(ApiError::bad_request)?;
            api.ask(move |plant| {
                let lsi = number_of(plant, change.lsi.as_deref())?;
                let done = plant.add_chip_port(lsi, front, number, now);
                done.map_err(ApiError::bad_request)
            })
            .await??
        }
        (None, Some(name)) => {
            let front = front(&name).map_err(ApiError::not_found)?;
            let gone = api.ask(move |plant| plant.remove_chip_port(front)).await?;
            let (port, said) = gone.map_err(ApiError::bad_request)?;
            let end = std::time::Instant::now() + OPENED;
            while api.ask(move |plant| plant.is_leaving(port)).await? {
                if std::time::Instant::now() > end {
                    return Err(ApiError::timeout(
                        "it is no port any more, but the chip did not say so in 5 s",
                    ));
                }
                tokio::time::sleep(READ).await;
            }
            said
        }
        _ => return Err(ApiError::bad_request("port: wanted add, or remove")),
    };
    Ok(Json(json!({ "applied": said })))
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Master => "master",
        Role::Slave => "slave",
        Role::Equal | Role::NoChange => "equal",
    }
}

async fn controllers(
    State(api): State<Api>,
    Query(whose): Query<Whose>,
) -> ApiResult<Items<Value>> {
    let rows: Vec<Value> = api
        .of(whose.lsi, |l| {
            let now = clock::now_ns();
            let mut rows = Vec::new();
            for (place, conns) in l.links.places() {
                let row = json!({
                    "controller": place.target.to_string(),
                    "state": if place.target.is_active() { "calling" } else { "waiting for calls" },
                    "error": place.error,
                });
                let mut there = false;
                for conn in conns.into_iter().flatten() {
                    let Some(c) = l.agent.conn(conn) else {
                        continue;
                    };
                    there = true;
                    let n = c.counts();
                    rows.push(json!({
                        "controller": c.name(),
                        "state": if c.version().is_some() { "connected" } else { "saying hello" },
                        "version": c.version().map(|v| v.name()),
                        "role": role_name(c.role()),
                        "since_s": seconds(c.since_ns(), now),
                        "received": n.received,
                        "sent": n.sent,
                        "errors": n.errors,
                        "packet_ins": n.packet_ins,
                        "packet_ins_dropped": n.packet_ins_dropped,
                        "waiting_bytes": c.waiting(),
                    }));
                }
                if !there || !place.target.is_active() {
                    rows.push(row);
                }
            }
            rows
        })
        .await?;
    Ok(Json(rows.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_a_chip_have_no_cables_here() {
        assert_eq!(chip_port("swp3"), Ok((3, None)));
        assert_eq!(chip_port("swp3:7"), Ok((3, Some(7))));
        for (bad, why) in [
            ("swp3=eth3", "cables are the chip's"),
            ("swp3:0", "0 is no number"),
            ("eth3", "there is no port eth3"),
            ("swp0", "there is no port swp0"),
        ] {
            let said = chip_port(bad).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}

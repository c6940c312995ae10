//! The management API (keys: docs/api.md).
//!
//! Handlers run on the API's thread and have what they need read by the core between two turns: a
//! small closure through a bounded channel. Long lists are read page by page.

mod audit;
mod rows;

pub use audit::audit_own;

use axum::extract::{Path, Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tandem_mgmt::server::{ApiError, ApiResult, answered, ask};
use tandem_mgmt::types::{
    AclRule, Explain, Fdb, Group, Items, Neighbour, Port, Route, Status, SyncAnswer, SyncRequest,
    SyncStatus,
};
use tandem_store::Counters;
use tandem_store::model::Family;

use crate::Jobs;
use crate::source;
use crate::{Core, Phase};

/// Who answers.
const CORE: &str = "the core";
/// Rows of one page, when the request does not say.
const PAGE: usize = 1000;
/// Rows of one page at most.
const PAGE_MAX: usize = 10_000;
/// `sync` without a time limit of its own.
const SYNC_MS: u64 = 30_000;
/// Longest time limit.
const SYNC_MAX_MS: u64 = 600_000;

#[derive(Clone)]
pub(crate) struct Api {
    jobs: Jobs,
    instance: String,
    audits: std::sync::Arc<audit::Progress>,
}

impl Api {
    /// Has `f` run by the core.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        ask(CORE, |job| self.jobs.post(job), f).await
    }

    /// Waits until everything of before is in the chip; the time it took in ns.
    pub(crate) async fn settle(&self, limit: std::time::Duration) -> Result<u64, ApiError> {
        let (to, answer) = tokio::sync::oneshot::channel();
        let ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let posted = self.jobs.post(Box::new(move |core| {
            core.sync(
                ns,
                Box::new(move |result| {
                    let _ = to.send(result);
                }),
            );
        }));
        if !posted {
            return Err(ApiError::busy(CORE));
        }
        match answer.await {
            Ok(Ok(ns)) => Ok(ns),
            Ok(Err(why)) => Err(ApiError::timeout(format!(
                "not in sync within {} ms: {why}",
                limit.as_millis()
            ))),
            Err(_) => Err(ApiError::stopping()),
        }
    }
}

/// The routes.
pub fn router(jobs: Jobs, instance: String) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/ports", get(ports))
        .route("/v1/routes", get(routes))
        .route("/v1/neighbours", get(neighbours))
        .route("/v1/fdb", get(fdb))
        .route("/v1/mdb", get(mdb))
        .route("/v1/acl", get(acl))
        .route("/v1/explain/{kind}", get(explain))
        .route("/v1/storm", post(storm))
        .route("/v1/sync", post(sync))
        .route("/v1/audit", get(audit::progress).post(audit::audit))
        .with_state(Api {
            jobs,
            instance,
            audits: std::sync::Arc::default(),
        })
}

/// `GET /v1/status`: the common part, and the core's counters beside it.
#[derive(Debug, Serialize)]
struct SwitchStatus {
    #[serde(flatten)]
    common: Status,
    /// Commands that changed or made something in the chip, since start.
    writes: u64,
    store: Counters,
    source: source::Status,
    sources: Vec<crate::sources::SourceRow>,
    control: ControlRow,
    io: std::collections::BTreeMap<&'static str, u64>,
    upkeep: std::collections::BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize)]
struct ControlRow {
    posted: u64,
    completed: u64,
    doorbells: u64,
    timed_out: u64,
    stray: u64,
    outstanding_max: u64,
    /// CLOCK_MONOTONIC in ns when the last answer to a write was taken; 0: none yet.
    confirmed_ns: u64,
}

async fn status(State(api): State<Api>) -> ApiResult<SwitchStatus> {
    let instance = api.instance.clone();
    let answer = api
        .ask(move |core| {
            let source = core.sources.status();
            let store = core.store.counters();
            let phase = match core.phase {
                Phase::Starting => "starting",
                Phase::Steady if source.syncing => "resync",
                Phase::Steady => "steady",
            };
            let attached = core.epoch() != 0;
            let device = match (attached, core.is_attaching()) {
                (true, _) => "attached",
                (false, true) => "attaching",
                (false, false) => "failed",
            };
            let control = core.control_counters();
            SwitchStatus {
                common: Status {
                    daemon: core.plant().names().daemon.into(),
                    version: env!("CARGO_PKG_VERSION").into(),
                    instance,
                    pid: std::process::id(),
                    uptime_s: core.now.saturating_sub(core.since) as f64 / 1e9,
                    profile: core.plant().chip().to_owned(),
                    device: device.into(),
                    epoch: core.epoch(),
                    ports: core.plant().ports().len() as u32,
                    driver: None,
                    deadline: None,
                    sync: Some(SyncStatus {
                        policy: rows::policy(core.plant().policy()).into(),
                        phase: phase.into(),
                        in_flight: core.in_flight(),
                        pending: core.pending(),
                        failed: store.waiting,
                        resyncs: source.resyncs,
                    }),
                    warnings: core
                        .warnings
                        .iter()
                        .cloned()
                        .chain(core.alarms(core.now))
                        .chain(rows::unreached(core))
                        .chain((!attached).then(|| rows::no_asic(core)))
                        .collect(),
                },
                writes: store.writes,
                store,
                source,
                sources: core.sources.rows(),
                control: ControlRow {
                    posted: control.posted,
                    completed: control.completed,
                    doorbells: control.kicks,
                    timed_out: control.timed_out,
                    stray: control.stray,
                    outstanding_max: control.outstanding_max,
                    confirmed_ns: core.confirmed_ns,
                },
                io: core.io_stats.rows(),
                upkeep: core.upkeep_rows(),
            }
        })
        .await?;
    Ok(Json(answer))
}

async fn ports(State(api): State<Api>) -> ApiResult<Items<Port>> {
    let rows = api.ask(|core| rows::ports(core)).await?;
    Ok(Json(rows.into()))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RouteQuery {
    family: String,
    vrf: Option<u16>,
    cursor: u64,
    limit: usize,
}

async fn routes(State(api): State<Api>, Query(q): Query<RouteQuery>) -> ApiResult<Items<Route>> {
    let families = match q.family.as_str() {
        "" | "any" => vec![Family::V4, Family::V6],
        "4" | "ipv4" => vec![Family::V4],
        "6" | "ipv6" => vec![Family::V6],
        other => {
            return Err(ApiError::bad_request(format!(
                "family={other}: ipv4, ipv6, or nothing for both"
            )));
        }
    };
    let limit = page_rows(q.limit);
    let mut page = api
        .ask(move |core| rows::routes(core, &families, q.cursor, limit))
        .await?;
    if let Some(vrf) = q.vrf {
        page.items.retain(|r| r.vrf == vrf);
    }
    Ok(Json(page))
}

/// Query of a list in pages whose cursors are text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageQuery {
    cursor: String,
    limit: usize,
}

/// Rows of one page, of so many that were asked for; 0: as many as is usual.
fn page_rows(limit: usize) -> usize {
    match limit {
        0 => PAGE,
        n => n.min(PAGE_MAX),
    }
}

async fn page<T: Send + 'static>(
    api: &Api,
    q: PageQuery,
    list: fn(&Core, &str, usize) -> Option<Items<T, String>>,
) -> ApiResult<Items<T, String>> {
    let (cursor, limit) = (q.cursor.clone(), page_rows(q.limit));
    let page = api.ask(move |core| list(core, &cursor, limit)).await?;
    let none = || ApiError::bad_request(format!("cursor={}: no page ended there", q.cursor));
    page.map(Json).ok_or_else(none)
}

async fn neighbours(
    State(api): State<Api>,
    Query(q): Query<PageQuery>,
) -> ApiResult<Items<Neighbour, String>> {
    page(&api, q, rows::neighbours).await
}

async fn fdb(State(api): State<Api>, Query(q): Query<PageQuery>) -> ApiResult<Items<Fdb, String>> {
    page(&api, q, rows::fdb).await
}

async fn mdb(
    State(api): State<Api>,
    Query(q): Query<PageQuery>,
) -> ApiResult<Items<Group, String>> {
    page(&api, q, rows::mdb).await
}

async fn acl(State(api): State<Api>) -> ApiResult<Items<AclRule>> {
    // without an ASIC there is nothing counted, and the rules are pending
    let packets = audit::packets_of_rules(&api).await.unwrap_or_default();
    let rows = api.ask(move |core| rows::acl(core, &packets)).await?;
    Ok(Json(rows.into()))
}

#[derive(Debug, Deserialize)]
struct Key {
    key: String,
}

async fn explain(
    State(api): State<Api>,
    Path(kind): Path<String>,
    Query(q): Query<Key>,
) -> ApiResult<Explain> {
    let what = rows::Question::parse(&kind, &q.key).map_err(ApiError::bad_request)?;
    let answer = api
        .ask(move |core| rows::explain(core, &what, &q.key))
        .await?;
    Ok(Json(answer))
}

/// Body of `POST /v1/storm`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Storm {
    /// `swp1`
    port: String,
    /// `broadcast`, `multicast`, `unknown_unicast`.
    kind: String,
    /// Packets a second; 0: no limit.
    packets: u64,
}

async fn storm(State(api): State<Api>, Json(body): Json<Storm>) -> ApiResult<serde_json::Value> {
    let kind = crate::storm::kind_of(&body.kind).map_err(ApiError::bad_request)?;
    let (to, answer) = tokio::sync::oneshot::channel();
    api.ask(move |core| {
        let mut ports = core.plant().ports().iter();
        let done: Box<dyn FnOnce(_) + Send> = Box::new(|said| {
            let _ = to.send(said);
        });
        match ports.find(|p| p.name == body.port).map(|p| p.port) {
            Some(port) => core.set_storm(port, kind, body.packets, done),
            None => done(Err(format!("there is no port {:?}", body.port))),
        }
    })
    .await?;
    answered(CORE, answer)
        .await?
        .map(|text| Json(serde_json::json!({ "applied": text })))
        .map_err(ApiError::bad_request)
}

async fn sync(State(api): State<Api>, body: Option<Json<SyncRequest>>) -> ApiResult<SyncAnswer> {
    let ms = match body.map_or(0, |b| b.timeout_ms) {
        0 => SYNC_MS,
        n => n.min(SYNC_MAX_MS),
    };
    let ns = api.settle(std::time::Duration::from_millis(ms)).await?;
    Ok(Json(SyncAnswer {
        waited_ms: ns / 1_000_000,
    }))
}

//! The management API on asicd.sock (keys: docs/api.md).
//!
//! Handlers run on the API's thread and have what they need read by the packet thread between two
//! bursts: a small closure through a bounded channel. A table is read page by page, so that no
//! request holds the packet thread for long.

mod acl;
pub mod fault;
mod queues;
mod stats;
mod table;
mod trace;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::Value;
use tandem_mgmt::server::{ApiError, ApiResult, ask, stream_body};
use tandem_mgmt::types::{Items, Page, Resources, Status, TraceAnswer, TraceRequest, Traps};

use crate::asic::Asic;
use crate::capture::{CPU_PORT, Capture, DEPTH, Filter};
use crate::daemon::Jobs;

#[derive(Clone)]
struct Api {
    jobs: Jobs,
    instance: String,
    started: std::time::Instant,
}

impl Api {
    /// Has `f` run by the packet thread.
    async fn ask<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Asic) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        ask("the packet thread", |job| self.jobs.post(job), f).await
    }
}

/// The routes.
pub fn router(jobs: Jobs, instance: String) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/ports", get(ports))
        .route("/v1/resources", get(resources))
        .route("/v1/traps", get(traps))
        .route("/v1/drops", get(drops))
        .route("/v1/replication", get(replication))
        .route("/v1/learning", get(learning))
        .route("/v1/queues", get(queues).post(limit))
        .route("/v1/table/{name}", get(table_page))
        .route("/v1/trace", post(trace_frame))
        .route("/v1/capture", get(capture))
        .route("/v1/fault", get(faults).post(fault_plan))
        .with_state(Api {
            jobs,
            instance,
            started: std::time::Instant::now(),
        })
}

async fn status(State(api): State<Api>) -> ApiResult<Status> {
    let now = tandem_linux::clock::now_ns();
    let mut status = api.ask(move |asic| stats::status(asic, now)).await?;
    status.instance.clone_from(&api.instance);
    status.uptime_s = api.started.elapsed().as_secs_f64();
    Ok(Json(status))
}

async fn ports(State(api): State<Api>) -> ApiResult<Value> {
    let rows = api.ask(stats::ports).await?;
    Ok(Json(serde_json::json!({ "items": rows })))
}

async fn resources(State(api): State<Api>) -> ApiResult<Resources> {
    api.ask(stats::resources)
        .await?
        .map(Json)
        .map_err(ApiError::internal)
}

async fn traps(State(api): State<Api>) -> ApiResult<Traps> {
    Ok(Json(api.ask(|asic| stats::traps(asic)).await?))
}

async fn drops(State(api): State<Api>) -> ApiResult<Value> {
    let rows = api.ask(stats::drops).await?;
    Ok(Json(serde_json::json!({ "items": rows })))
}

async fn replication(State(api): State<Api>) -> ApiResult<Value> {
    let row = api.ask(|asic| stats::replication(asic)).await?;
    Ok(Json(serde_json::json!({ "items": [row] })))
}

async fn learning(State(api): State<Api>) -> ApiResult<Value> {
    let row = api.ask(|asic| stats::learning(asic)).await?;
    Ok(Json(serde_json::json!({ "items": [row] })))
}

async fn queues(State(api): State<Api>) -> ApiResult<Value> {
    Ok(Json(api.ask(|asic| queues::show(asic)).await?))
}

async fn limit(State(api): State<Api>, Json(body): Json<Value>) -> ApiResult<Value> {
    let limit: queues::Limit =
        serde_json::from_value(body).map_err(|e| ApiError::bad_request(format!("limit: {e}")))?;
    let port = port_number(&limit.port).ok_or_else(|| no_port(&limit.port))?;
    api.ask(move |asic| queues::limit(asic, port, limit.limit_mbps))
        .await?
        .map(|text| Json(serde_json::json!({ "applied": text })))
        .map_err(ApiError::not_found)
}

async fn table_page(
    State(api): State<Api>,
    Path(name): Path<String>,
    Query(page): Query<Page>,
) -> ApiResult<Items<Value>> {
    let Some(table) = table::Table::by_name(&name) else {
        let names: Vec<&str> = table::TABLES.iter().map(|t| t.name).collect();
        return Err(ApiError::not_found(format!(
            "no table {name}: there are {}",
            names.join(", ")
        )));
    };
    api.ask(move |asic| table::page(asic, table, page.cursor, page.limit))
        .await?
        .map(Json)
        .map_err(ApiError::internal)
}

async fn trace_frame(
    State(api): State<Api>,
    Json(request): Json<TraceRequest>,
) -> ApiResult<TraceAnswer> {
    let frame = tandem_mgmt::hex::decode(&request.frame)
        .map_err(|e| ApiError::bad_request(format!("frame: {e}")))?;
    let port = port_number(&request.port).ok_or_else(|| no_port(&request.port))?;
    let now = tandem_linux::clock::now_ns();
    api.ask(move |asic| trace::trace(asic, port, &frame, now))
        .await?
        .map(Json)
        .map_err(ApiError::bad_request)
}

/// Query of a capture.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CaptureQuery {
    port: String,
    filter: String,
    count: u64,
}

async fn capture(
    State(api): State<Api>,
    Query(query): Query<CaptureQuery>,
) -> Result<Response, ApiError> {
    let port = match query.port.as_str() {
        "cpu" => CPU_PORT,
        name => port_number(name).ok_or_else(|| no_port(name))?,
    };
    let filter: Filter = query.filter.parse().map_err(ApiError::bad_request)?;
    let (to, body): (_, Body) = stream_body(DEPTH);
    api.ask(move |asic| {
        if port != CPU_PORT && asic.port(port).is_none() {
            return Err(no_port(&format!("swp{port}")));
        }
        asic.out
            .captures
            .add(Capture::start(port, filter, query.count, to))
            .map_err(ApiError::unavailable)
    })
    .await??;
    Ok((
        [(header::CONTENT_TYPE, "application/vnd.tcpdump.pcap")],
        body,
    )
        .into_response())
}

async fn faults(State(api): State<Api>) -> ApiResult<Items<Value>> {
    Ok(Json(api.ask(|asic| fault::armed(asic)).await?.into()))
}

async fn fault_plan(State(api): State<Api>, Json(body): Json<Value>) -> ApiResult<Value> {
    let fault: fault::Request =
        serde_json::from_value(body).map_err(|e| ApiError::bad_request(format!("fault: {e}")))?;
    api.ask(move |asic| fault::apply(asic, fault))
        .await?
        .map(|text| Json(serde_json::json!({ "applied": text })))
        .map_err(ApiError::bad_request)
}

/// `swp7` or `7` is 7; `swp5s2`, a part of a port that the driver has split, has the number of the second neighbour: 7.
fn port_number(name: &str) -> Option<u16> {
    let name = name.strip_prefix("swp").unwrap_or(name);
    let (cage, part) = name.split_once('s').unwrap_or((name, "0"));
    let (cage, part): (u16, u16) = (cage.parse().ok()?, part.parse().ok()?);
    cage.checked_add(part).filter(|_| cage > 0)
}

fn no_port(name: &str) -> ApiError {
    ApiError::not_found(format!("no port '{name}': ports are swp1, swp2, …"))
}

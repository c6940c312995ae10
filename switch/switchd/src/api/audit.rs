//! The audit: a fresh dump of the kernel, the store, and the chip's table memory, side by side.
//!
//! ```text
//!   kernel ─ snapshot ─► a second, empty store ─ plan, everything fits ─► what the chip should hold ─┐
//!                                 └─ rows ─┐                                                         ├ equal?
//!   the running store ──────────── rows ───┴ equal?      chip ─ DUMP of every class ─────────────────┘
//! ```
//!
//! The second store knows nothing of what happened before: what it wants follows from the kernel's
//! tables alone. Where the chip differs, the running store must have a reason (it did not fit, it
//! waits), and the difference must be harmless: the packets go to the CPU. Differences that go away
//! while one waits were only under way.

mod chip;
mod compare;
mod groups;

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use tandem_mgmt::server::{ApiError, ApiResult};
use tandem_mgmt::types::{AuditAnswer, AuditRequest, Difference};

use super::Api;
use chip::Chip;

/// How long the audit waits for what is under way before it looks the first time.
const SETTLE: Duration = Duration::from_secs(10);
/// Longest wait for differences to go away.
const WAIT_MAX_S: f64 = 600.0;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// `POST /v1/audit`
pub(super) async fn audit(
    State(api): State<Api>,
    body: Option<Json<AuditRequest>>,
) -> ApiResult<AuditAnswer> {
    let wait = body.map_or(0.0, |b| b.wait_s);
    let wait = if wait.is_finite() {
        wait.clamp(0.0, WAIT_MAX_S)
    } else {
        0.0
    };
    let end = Instant::now() + Duration::from_secs_f64(wait);
    loop {
        // what can't settle is compared as it is
        let unsettled = api.settle(SETTLE).await.err();
        let mut answer = look(&api).await?;
        if let Some(why) = unsettled {
            answer.warnings.push(why.to_string());
        }
        if answer.items.is_empty() || Instant::now() >= end {
            return Ok(Json(answer));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What the chip has counted, by counter.
pub(super) async fn packets_of_rules(
    api: &Api,
) -> Result<std::collections::HashMap<u32, u64>, ApiError> {
    chip::counters(api).await
}

async fn look(api: &Api) -> Result<AuditAnswer, ApiError> {
    let (source, config, domains, living) = api
        .ask(|core| {
            let plant = core.plant();
            let living = plant.ports().iter().filter(|p| plant.lives(p.port));
            let living: Vec<_> = living.map(|p| (p.port, p.ifindex)).collect();
            (
                std::sync::Arc::clone(&core.source),
                core.store_config(),
                core.named_domains(),
                living,
            )
        })
        .await?;
    // the chip is read first: what the kernel changes afterwards shows in the next look
    let found = std::sync::Arc::new(Chip::read(api).await?);
    let seen = std::sync::Arc::clone(&found);
    let id = source.id();
    let policy = config.policy;
    let expected = tokio::task::spawn_blocking(move || {
        let objects = source.snapshot().map_err(|e| e.to_string())?;
        Ok::<_, String>(compare::Expected::of(
            id, objects, &living, config, domains, &seen,
        ))
    })
    .await
    .map_err(ApiError::internal)?
    .map_err(ApiError::unavailable)?;
    let mut answer = compare::rows(api, &expected).await?;
    let unmarked = api.ask(|core| core.unmarked()).await?;
    answer
        .items
        .extend(unmarked.into_iter().map(|(_, port)| Difference {
            kind: "forward_mark".into(),
            key: port,
            between: "kernel-store".into(),
            wanted: "tandem_mark and tandem_once in tcx or clsact".into(),
            found: "nothing".into(),
        }));
    compare::tables(api, &expected, &found, policy, answer).await
}

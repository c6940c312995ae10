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
mod unseen;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use tandem_abi::raw;
use tandem_mgmt::server::{ApiError, ApiResult};
use tandem_mgmt::types::{AuditAnswer, AuditProgress, AuditRequest, Difference};
use tandem_store::model::{Event, KindSet, SourceId};
use tandem_store::{Page, Store};

use super::Api;
use crate::Core;
use crate::questions::Question;
use chip::Chip;

/// How long the audit waits for what is under way before it looks the first time.
const SETTLE: Duration = Duration::from_secs(10);
/// Longest wait for differences to go away.
const WAIT_MAX_S: f64 = 600.0;
/// Rows of the running store that are read at once.
const PAGE: usize = 10_000;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// How far audits have come: who waits for one sees that it goes on.
#[derive(Debug, Default)]
pub(super) struct Progress {
    steps: AtomicU64,
    doing: Mutex<&'static str>,
}

impl Progress {
    fn begin(&self, doing: &'static str) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = doing;
        self.step();
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}

/// `GET /v1/audit`
pub(super) async fn progress(State(api): State<Api>) -> Json<AuditProgress> {
    let doing = *(api.audits.doing.lock()).unwrap_or_else(PoisonError::into_inner);
    Json(AuditProgress {
        steps: api.audits.steps.load(Ordering::Relaxed),
        doing: doing.into(),
    })
}

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
    let wait = Duration::from_secs_f64(wait);
    let mut over = pin!(tokio::time::sleep(wait));
    let mut last = wait.is_zero();
    loop {
        // what can't settle is compared as it is
        api.audits.begin("waits until the chip has everything");
        let unsettled = api.settle(SETTLE).await.err();
        let mut answer = look(&api).await?;
        if let Some(why) = unsettled {
            answer.warnings.push(why.to_string());
        }
        if answer.items.is_empty() || last {
            return Ok(Json(answer));
        }
        last = tokio::time::timeout(PAUSE, over.as_mut()).await.is_ok();
    }
}

/// What the chip has counted, by counter.
pub(super) async fn packets_of_rules(
    api: &Api,
) -> Result<std::collections::HashMap<u32, u64>, ApiError> {
    chip::counters(api).await
}

/// Whoever has the core read between its turns.
pub(super) trait Asks: Sync {
    /// Has `f` run by the core.
    fn ask<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, ApiError>> + Send;

    /// Some records of one of the chip's classes, and where it goes on; 0: that was all.
    fn dump(
        &self,
        cls: u16,
        cursor: u64,
    ) -> impl Future<Output = Result<(Vec<u8>, u64), ApiError>> + Send;
}

impl Asks for Api {
    fn ask<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, ApiError>> + Send {
        self.audits.step();
        Api::ask(self, f)
    }

    async fn dump(&self, cls: u16, cursor: u64) -> Result<(Vec<u8>, u64), ApiError> {
        let (to, answer) = tokio::sync::oneshot::channel();
        let question = Question {
            what: "dump",
            op: raw::TND_OP_DUMP,
            cls,
            arg: cursor,
            body: Vec::new(),
            output: true,
            answer: Box::new(|_, answer| {
                let _ = to.send(answer);
            }),
        };
        self.audits.step();
        self.ask(|core| core.ask_chip(question)).await?;
        let (cpl, records) = tandem_mgmt::server::answered(super::CORE, answer)
            .await?
            .map_err(ApiError::unavailable)?;
        Ok((records, cpl.result))
    }
}

/// A core that is one's own: it answers at once.
struct Own<'a>(Mutex<&'a mut Core>);

impl Asks for Own<'_> {
    fn ask<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, ApiError>> + Send {
        let mut core = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::future::ready(Ok(f(&mut core)))
    }

    fn dump(
        &self,
        cls: u16,
        cursor: u64,
    ) -> impl Future<Output = Result<(Vec<u8>, u64), ApiError>> + Send {
        let mut core = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let page = chip::step(&mut core, cls, cursor).map_err(ApiError::unavailable);
        std::future::ready(page)
    }
}

/// Audits a core that nobody else has, between two of its turns: differences and counts of what was compared.
///
/// # Errors
/// One line: the kernel or the chip can't be read.
pub fn audit_own(core: &mut Core) -> Result<AuditAnswer, String> {
    let own = Own(Mutex::new(core));
    let done = pin!(async {
        let base = base(&own).await?;
        let found = Chip::read(&own).await?;
        let expected = base.expected(&found, &Progress::default());
        let expected = expected.map_err(ApiError::unavailable)?;
        compared(&own, &expected, &found, base.policy).await
    })
    .poll(&mut Context::from_waker(Waker::noop()));
    match done {
        Poll::Ready(answer) => answer.map_err(|e| e.to_string()),
        Poll::Pending => Err("the core did not answer".into()),
    }
}

/// What is asked of the core before anything is compared.
struct Base {
    sources: Vec<std::sync::Arc<dyn crate::source::Source + Sync>>,
    /// Their numbers and ports.
    owners: Vec<(SourceId, Vec<u16>)>,
    /// One that can't be asked.
    lost: Option<String>,
    config: tandem_store::Config,
    /// Of domains and VRFs, as the chip has them.
    numbers: tandem_store::Left,
    /// Number and ifindex of the ports whose netdevs live.
    living: Vec<(u16, u32)>,
    policy: tandem_store::Policy,
    /// IPv6 routes of keys that have several.
    several: Vec<Vec<tandem_store::model::Route>>,
}

impl Base {
    /// Asks the kernel.
    fn expected(&self, found: &Chip, progress: &Progress) -> Result<compare::Expected, String> {
        if let Some(name) = &self.lost {
            return Err(format!(
                "{name} is not there: it can't be asked what it wants"
            ));
        }
        let (mut said, mut unseen) = (Vec::new(), 0);
        for (n, source) in self.sources.iter().enumerate() {
            progress.begin("asks a source for a dump");
            let mut objects = source.snapshot().map_err(|e| e.to_string())?;
            if n == 0 {
                unseen = unseen::add(&mut objects, &self.several);
            }
            let id = source.id();
            said.push(Event::BeginSync(id, KindSet::ALL));
            said.extend(objects.into_iter().map(|o| Event::Upsert(id, o)));
            said.push(Event::EndSync(id));
        }
        let (config, numbers) = (self.config.clone(), self.numbers.clone());
        let (owners, living) = (&self.owners, &self.living);
        progress.begin("computes what should be there");
        let mut expected =
            compare::Expected::of(owners, said, living, config, numbers, found, progress);
        expected.unseen = unseen;
        Ok(expected)
    }
}

/// A list of the running store, page after page.
async fn listed<R: Send + 'static>(
    api: &impl Asks,
    list: fn(&Store, &str, usize) -> Option<Page<R>>,
) -> Result<Vec<R>, ApiError> {
    let (mut rows, mut after) = (Vec::new(), String::new());
    loop {
        let page = api.ask(move |core| list(&core.store, &after, PAGE)).await?;
        let Some(page) = page else { return Ok(rows) };
        rows.extend(page.rows);
        match page.next {
            Some(next) => after = next,
            None => return Ok(rows),
        }
    }
}

/// What the core does with an event of one of several sources.
fn say(store: &mut tandem_store::Store, event: Event) {
    if store.admit(&event).is_ok() {
        for (refused, key) in store.said_too_early(&event) {
            store.apply(Event::Remove(refused.source, key), 1);
        }
        store.apply(event, 1);
    }
}

async fn base(api: &impl Asks) -> Result<Base, ApiError> {
    api.ask(|core| {
        let plant = core.plant();
        let lives = |port| plant.lives(port) && !core.sources.is_cut_off(port);
        let living = plant.ports().iter().filter(|p| lives(p.port));
        let living = living.map(|p| (p.port, p.ifindex)).collect();
        let config = core.store_config();
        Base {
            sources: core.sources.present().map(std::sync::Arc::clone).collect(),
            owners: core.sources.present_owners(),
            lost: core.sources.a_lost_one().map(Into::into),
            policy: config.policy,
            config,
            numbers: core.store.numbers(),
            living,
            several: core.store.several6(),
        }
    })
    .await
}

async fn look(api: &Api) -> Result<AuditAnswer, ApiError> {
    let base = base(api).await?;
    let policy = base.policy;
    api.audits.begin("reads the chip");
    // the chip is read first: what the kernel changes afterwards shows in the next look
    let found = std::sync::Arc::new(Chip::read(api).await?);
    let seen = std::sync::Arc::clone(&found);
    let audits = std::sync::Arc::clone(&api.audits);
    let expected = tokio::task::spawn_blocking(move || base.expected(&seen, &audits))
        .await
        .map_err(ApiError::internal)?
        .map_err(ApiError::unavailable)?;
    api.audits.begin("compares");
    compared(api, &expected, &found, policy).await
}

async fn compared(
    api: &impl Asks,
    expected: &compare::Expected,
    found: &Chip,
    policy: tandem_store::Policy,
) -> Result<AuditAnswer, ApiError> {
    let mut answer = compare::rows(api, expected).await?;
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
    compare::tables(api, expected, found, policy, answer).await
}

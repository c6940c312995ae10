//! The sources of one core: who is there, who is awaited, whose is what.
//!
//! ```text
//!   Awaited ── end of its dump ──► Here ── its channel closes ──► Awaited, for its hold time ── over ──► Away: swept
//!      ▲                                                               │                                  │
//!      └──────────────────────── Core::replace: a new one in its seat ─┴──────────────────────────────────┘
//! ```
//!
//! One that is slow, not gone, when its hold time is over is asked to say everything again, and is not heard before it begins to:
//! the rest of what it was saying, or changes to it, would be without what came before. It is here with the end of that dump.
//!
//! What a source has said stays in the chip while it is awaited: its entries are neither written nor swept. A new one in the
//! same seat says everything again, and what it does not confirm is swept.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::TryRecvError;
use tandem_store::model::{Event, KindSet, SourceId};

use crate::source::{Message, Source, SourceError, Write, WriteBack};
use crate::view::SharedView;

/// A source, and what is given to it from the start.
#[derive(Clone)]
pub struct Seat {
    /// Who sits there. Its name and its number are nobody else's.
    pub source: Arc<dyn Source + Sync>,
    /// Its front-panel ports.
    pub ports: Vec<u16>,
    /// How long it is waited for, ns: for its first dump, and after it was lost. `u64::MAX`: for ever.
    pub hold_ns: u64,
}

/// Whether a source is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has not told all that it has yet: at the start, or since it was lost. With the time (ns) since when; `None`: since
    /// the core's first turn.
    Awaited(Option<u64>),
    /// It has told all that it had, and tells changes.
    Here,
    /// It was waited for in vain: nothing of it is left.
    Away,
}

struct Taken {
    seat: Seat,
    standing: Standing,
    /// Its channel is closed: nothing comes before somebody else sits there.
    lost: bool,
    /// What it says is to what it said before, and that was swept: nothing counts before it says everything again.
    unheard: bool,
}

/// Sources by their number, for those who write back; they look when `version` has changed.
#[derive(Default)]
struct Roster {
    version: AtomicU64,
    sources: Mutex<Vec<Arc<dyn Source + Sync>>>,
}

impl Roster {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<dyn Source + Sync>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All sources of a core. The first one owns what has no place of its own: the default VRF, policy rules, settings.
pub struct Sources {
    all: Vec<Taken>,
    roster: Arc<Roster>,
}

impl Sources {
    /// These, in this order.
    ///
    /// # Errors
    /// One line: there is none, or two claim the same name, number or port.
    pub fn new(seats: Vec<Seat>) -> Result<Sources, SourceError> {
        if seats.is_empty() {
            return Err(SourceError("a core needs a source".into()));
        }
        for (i, a) in seats.iter().enumerate() {
            for b in seats.iter().skip(i + 1) {
                let (one, other) = (a.source.name(), b.source.name());
                if one == other || a.source.id() == b.source.id() {
                    return Err(SourceError(format!(
                        "{one} and {other} are the same source"
                    )));
                }
                if let Some(port) = a.ports.iter().find(|p| b.ports.contains(p)) {
                    return Err(SourceError(format!(
                        "port {port} is claimed by {one} and by {other}"
                    )));
                }
            }
        }
        let roster = Arc::new(Roster::default());
        *roster.lock() = seats.iter().map(|s| Arc::clone(&s.source)).collect();
        let taken = |seat| Taken {
            seat,
            standing: Standing::Awaited(None),
            lost: false,
            unheard: false,
        };
        Ok(Sources {
            all: seats.into_iter().map(taken).collect(),
            roster,
        })
    }

    /// A way to write back to whoever owns the device that a write names, for one thread. Who owns what is in `view`. A
    /// source that can't be reached is tried again when something is written to it.
    ///
    /// # Errors
    /// When no source can be reached.
    pub fn writer(&self, view: SharedView) -> Result<Box<dyn WriteBack>, SourceError> {
        let mut writers = Writers {
            roster: Arc::clone(&self.roster),
            view,
            version: self.roster.version.load(Ordering::Acquire),
            all: Vec::new(),
        };
        let no = writers.open().err();
        match no.filter(|_| writers.all.iter().all(|w| w.to.is_none())) {
            Some(error) => Err(error),
            None => Ok(Box::new(writers)),
        }
    }

    /// Numbers and ports, in order.
    pub(crate) fn owners(&self) -> Vec<(SourceId, Vec<u16>)> {
        let seats = self.all.iter().map(|t| &t.seat);
        seats.map(|s| (s.source.id(), s.ports.clone())).collect()
    }

    /// The same of those that are not away.
    pub(crate) fn present_owners(&self) -> Vec<(SourceId, Vec<u16>)> {
        let mut all = self.owners();
        all.retain(|o| self.present().any(|s| s.id() == o.0));
        all
    }

    /// Whether a port is a source's.
    pub(crate) fn has_port(&self, id: SourceId, port: u16) -> bool {
        let mut seats = self.all.iter().map(|t| &t.seat);
        seats.any(|s| s.source.id() == id && s.ports.contains(&port))
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Source + Sync>> {
        self.all.iter().map(|t| &t.seat.source)
    }

    /// Those that are not away.
    pub(crate) fn present(&self) -> impl Iterator<Item = &Arc<dyn Source + Sync>> {
        let there = self.all.iter().filter(|t| t.standing != Standing::Away);
        there.map(|t| &t.seat.source)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The next message of the source with this index: a closed channel is said once.
    pub(crate) fn receive(&mut self, index: usize) -> Option<Received> {
        let taken = self.all.get_mut(index).filter(|t| !t.lost)?;
        let from = taken.seat.source.id();
        match taken.seat.source.messages().try_recv() {
            Ok(message) => Some(Received::Message(from, message)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                taken.lost = true;
                Some(Received::Lost(from))
            }
        }
    }

    /// Nobody has anything to say.
    pub(crate) fn quiet(&self) -> bool {
        let mut speakers = self.all.iter().filter(|t| !t.lost);
        speakers.all(|t| t.seat.source.messages().is_empty())
    }

    fn get_mut(&mut self, id: SourceId) -> Option<&mut Taken> {
        self.all.iter_mut().find(|t| t.seat.source.id() == id)
    }

    /// It has told all that it has.
    pub(crate) fn reached(&mut self, id: SourceId) {
        if let Some(taken) = self.get_mut(id) {
            taken.standing = Standing::Here;
        }
    }

    /// It is gone, and awaited from now on. False: it was away already, and what it has said since goes with it.
    pub(crate) fn lost(&mut self, id: SourceId, now: u64) -> bool {
        let Some(taken) = self.get_mut(id) else {
            return true;
        };
        if taken.standing == Standing::Here {
            taken.standing = Standing::Awaited(Some(now));
        }
        taken.standing != Standing::Away
    }

    /// Whether an event of this source counts.
    pub(crate) fn hears(&mut self, event: &Event) -> bool {
        let Some(taken) = self.get_mut(event.source()).filter(|t| t.unheard) else {
            return true;
        };
        taken.unheard = !matches!(event, Event::BeginSync(_, k) if k.contains(KindSet::ALL));
        !taken.unheard
    }

    /// Another one sits down where one of its number sat. It is awaited as the one before was, or anew.
    ///
    /// # Errors
    /// One line: there is no such seat.
    pub(crate) fn replace(
        &mut self,
        source: Arc<dyn Source + Sync>,
        now: u64,
    ) -> Result<(), SourceError> {
        let name = source.name().to_owned();
        let Some(taken) = self.get_mut(source.id()) else {
            return Err(SourceError(format!("{name} is none of the sources")));
        };
        taken.lost = false;
        taken.unheard = false;
        if !matches!(taken.standing, Standing::Awaited(_)) {
            taken.standing = Standing::Awaited(Some(now));
        }
        taken.seat.source = source;
        *self.roster.lock() = self.iter().map(Arc::clone).collect();
        self.roster.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Those whose hold time is over at `now`; from now on they are away. Who still speaks is asked for everything.
    pub(crate) fn expire(&mut self, now: u64) -> Vec<(SourceId, String)> {
        let mut gone = Vec::new();
        for taken in &mut self.all {
            if let Standing::Awaited(since) = &mut taken.standing {
                let due = since.get_or_insert(now).saturating_add(taken.seat.hold_ns);
                if now >= due && taken.seat.hold_ns != u64::MAX {
                    taken.standing = Standing::Away;
                    taken.unheard = !taken.lost;
                    if taken.unheard {
                        taken.seat.source.resync();
                    }
                    gone.push((taken.seat.source.id(), taken.seat.source.name().into()));
                }
            }
        }
        gone
    }

    /// When the next hold time is over.
    pub(crate) fn next(&self) -> Option<u64> {
        let due = |t: &Taken| match t.standing {
            Standing::Awaited(Some(since)) => since.checked_add(t.seat.hold_ns),
            _ => None,
        };
        self.all.iter().filter_map(due).min()
    }

    /// Nobody is awaited for the first time any more, or again.
    pub(crate) fn ready(&self) -> bool {
        self.awaited().is_none()
    }

    /// The name of one that is awaited.
    pub(crate) fn awaited(&self) -> Option<&str> {
        let mut all = self.all.iter();
        let awaited = all.find(|t| matches!(t.standing, Standing::Awaited(_)));
        awaited.map(|t| t.seat.source.name())
    }

    /// The name of one that is gone and waited for.
    pub(crate) fn a_lost_one(&self) -> Option<&str> {
        let mut all = self.all.iter();
        let lost = all.find(|t| t.lost && t.standing != Standing::Away);
        lost.map(|t| t.seat.source.name())
    }

    /// Those that a barrier has to pass.
    pub(crate) fn expected(&self) -> Vec<SourceId> {
        let there = self.all.iter().filter(|t| t.standing != Standing::Away);
        there.map(|t| t.seat.source.id()).collect()
    }

    /// Asks for a barrier.
    pub(crate) fn barrier(&self, token: u64) {
        for taken in self.all.iter().filter(|t| !t.lost) {
            taken.seat.source.barrier(token);
        }
    }

    /// The name that goes with a number.
    pub(crate) fn name(&self, id: SourceId) -> Option<&str> {
        self.iter().find(|s| s.id() == id).map(|s| s.name())
    }

    /// A port whose source is away: nobody answers for it.
    pub(crate) fn is_cut_off(&self, port: u16) -> bool {
        let away = |t: &&Taken| t.standing == Standing::Away;
        let mut all = self.all.iter().filter(away);
        all.any(|t| t.seat.ports.contains(&port))
    }

    /// For `status`.
    pub(crate) fn rows(&self) -> Vec<SourceRow> {
        let row = |t: &Taken| SourceRow {
            name: t.seat.source.name().into(),
            state: match t.standing {
                Standing::Awaited(_) if t.lost => "lost",
                Standing::Awaited(_) => "starting",
                Standing::Here => "here",
                Standing::Away => "away",
            },
            ports: t.seat.ports.len(),
        };
        self.all.iter().map(row).collect()
    }

    /// What all of them count, together.
    pub(crate) fn status(&self) -> crate::source::Status {
        let mut sum = crate::source::Status::default();
        for s in self.iter().map(|s| s.status()) {
            sum.notifications += s.notifications;
            sum.events += s.events;
            sum.overruns += s.overruns;
            sum.resyncs += s.resyncs;
            sum.interrupted += s.interrupted;
            sum.verifications += s.verifications;
            sum.silent += s.silent;
            sum.syncing |= s.syncing;
            sum.backlog_bytes += s.backlog_bytes;
            sum.routes += s.routes;
        }
        sum
    }
}

/// A source in `status`.
#[derive(Debug, serde::Serialize)]
pub(crate) struct SourceRow {
    name: String,
    /// `starting` (its first dump is not complete), `here`, `lost` (waited for) or `away` (nothing of it is left).
    state: &'static str,
    /// How many ports are its own.
    ports: usize,
}

/// What came from a source.
pub(crate) enum Received {
    /// A message.
    Message(SourceId, Message),
    /// Its channel is closed.
    Lost(SourceId),
}

/// Writes to all sources: to each what is its own.
struct Writers {
    roster: Arc<Roster>,
    view: SharedView,
    version: u64,
    all: Vec<Writer>,
}

/// Writes to one source.
struct Writer {
    source: Arc<dyn Source + Sync>,
    /// None: it could not be reached.
    to: Option<Box<dyn WriteBack>>,
}

impl Writer {
    fn open(&mut self) -> Result<&mut dyn WriteBack, SourceError> {
        let to = match self.to.take() {
            Some(to) => to,
            None => self.source.writer()?,
        };
        Ok(&mut **self.to.insert(to))
    }
}

impl Writers {
    /// Whoever sits there now. The error is of the last one that can't be reached.
    fn open(&mut self) -> Result<(), SourceError> {
        let sources = self.roster.lock().clone();
        let closed = |source| Writer { source, to: None };
        self.all = sources.into_iter().map(closed).collect();
        let mut done = Ok(());
        for writer in &mut self.all {
            done = writer.open().map(|_| ()).and(done);
        }
        done
    }
}

fn device_of(write: &Write) -> u32 {
    match *write {
        Write::FdbLearned { ifindex, .. }
        | Write::FdbAged { ifindex, .. }
        | Write::FdbFlush { ifindex, .. }
        | Write::NeighUse { ifindex, .. }
        | Write::Learning { ifindex, .. } => ifindex,
    }
}

impl WriteBack for Writers {
    fn write(
        &mut self,
        writes: &[Write],
        failed: &mut dyn FnMut(usize, SourceError),
    ) -> Result<(), SourceError> {
        let version = self.roster.version.load(Ordering::Acquire);
        if version != self.version {
            self.version = version;
            if let Err(e) = self.open() {
                tracing::warn!("write-back: {e}");
            }
        }
        if let [only] = self.all.as_mut_slice() {
            return only.open()?.write(writes, failed);
        }
        // in order, each run of one owner at once
        let owners: Vec<Option<SourceId>> = {
            let view = self.view.lock();
            writes.iter().map(|w| view.owner(device_of(w))).collect()
        };
        let (mut from, mut done) = (0, Ok(()));
        for run in owners.chunk_by(|a, b| a == b) {
            let to = from + run.len();
            let writer = run.first().copied().flatten().and_then(|id| {
                let mut all = self.all.iter_mut();
                all.find(|w| w.source.id() == id)
            });
            // of a device that nobody has (any more) nobody wants to know
            if let (Some(writer), Some(writes)) = (writer, writes.get(from..to)) {
                match writer.open() {
                    Ok(writer) => {
                        done = writer
                            .write(writes, &mut |i, e| failed(from + i, e))
                            .and(done);
                    }
                    Err(e) => (from..to).for_each(|i| failed(i, e.clone())),
                }
            }
            from = to;
        }
        done
    }
}

//! The core thread: desired state in, commands out.
//!
//! ```text
//!   source messages ─► note (shadow, view) ─► store.apply ─┐
//!   events from io ──► store.device_event ─────────────────┼─► store.plan ─► post ─► SAL ─► ASIC
//!   jobs of the API, timers ───────────────────────────────┘        complete ◄─ reap ◄──────┘
//! ```
//!
//! Nothing here waits for anybody: commands are pipelined, the source is never asked in the loop, a
//! write to the kernel is one system call. Everything is level-triggered by one eventfd, the
//! completions' doorbells and the carrier's socket.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod api;
pub mod attach;
pub mod io;
pub mod membership;
pub mod places;
pub mod plant;
mod program;
mod questions;
pub mod shadow;
pub mod slow;
pub mod source;
mod sources;
pub mod storm;
mod upkeep;
pub mod view;

pub use plant::Plant;
pub use sources::{Seat, Sources};

use std::collections::{HashMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use rustix::event::Timespec;
use tandem_linux::eventfd::EventFd;
use tandem_sal::Device;
use tandem_store::model::{Event, FdbKey, FdbKind, Key, KindSet, Object, SourceId};
use tandem_store::{Left, Planned, Refused, Settling, Store};

use crate::io::{Command, IoEvent, IoStats, Signals};
use crate::source::{Message, Source, SourceError, Write, WriteBack};
use crate::sources::Received;
use crate::view::SharedView;
use shadow::Shadow;

/// Messages of a source in one turn (each up to 256 events).
const MESSAGES: usize = 16;
/// Events of the io thread in one turn.
const IO_EVENTS: usize = 1024;
/// Completions in one turn.
const COMPLETIONS: usize = 4096;
/// Jobs of the API in one turn.
const JOBS_PER_TURN: usize = 4;
/// Nanoseconds of a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// The core sleeps at most so long.
const SLEEP_NS: u64 = 200_000_000;
/// Who may wait for a barrier at once.
pub const WAITERS: usize = 64;
/// Warnings kept for `status`.
const WARNINGS: usize = 32;

/// Something that the API has done by the core between two turns.
pub type Job = tandem_mgmt::server::Job<Core>;
/// The way for other threads to have it done.
pub type Jobs = tandem_linux::jobs::Jobs<Job>;

/// Where the core stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not every source has told all that it has yet.
    Starting,
    /// Running.
    Steady,
}

/// Who waits for a barrier.
pub(crate) struct Waiter {
    token: u64,
    /// The io thread has handled what the chip had told before.
    io_passed: bool,
    /// Sources that have not sent everything yet that happened before.
    owed: Vec<SourceId>,
    /// All that came before is to be done; more may come meanwhile.
    settling: Option<Settling>,
    since_ns: u64,
    deadline_ns: u64,
    done: Box<dyn FnOnce(Result<u64, String>) + Send>,
}

fn away_text(name: &str) -> String {
    format!("{name} is not there: nothing is left of what it had said")
}

/// What a posted command means for the core besides the store.
#[derive(Clone, Copy, Debug)]
enum Note {
    Member {
        port: u16,
        vid: u16,
        fid: Option<u16>,
    },
    /// A router interface is named again in a replay; the chip may have it in another VRF.
    Rif,
}

/// What the core is made of.
pub struct Core {
    /// Ports, sockets: what an attach needs.
    plant: Box<dyn Plant>,
    control: Option<Box<dyn Device>>,
    /// The turn's time.
    pub(crate) now: u64,
    /// When the core was made.
    pub(crate) since: u64,
    config: tandem_store::Config,
    /// Desired and installed state.
    pub(crate) store: Store,
    pub(crate) sources: Sources,
    writer: Box<dyn WriteBack>,
    view: SharedView,
    /// Names and the like.
    pub(crate) shadow: Shadow,
    io: Sender<Command>,
    io_wake: Arc<EventFd>,
    pub(crate) io_stats: Arc<IoStats>,
    signals: Arc<Signals>,
    io_events: Receiver<IoEvent>,
    jobs: Receiver<Job>,
    wake: Arc<EventFd>,
    // programming
    planned: Vec<Planned>,
    unposted: VecDeque<Planned>,
    notes: HashMap<u64, Note>,
    /// The time of the turn that took the chip's last answer to a write; 0: none yet.
    pub(crate) confirmed_ns: u64,
    /// Between BEGIN_RESYNC and END_RESYNC: what the chip has was not written by us.
    replaying: bool,
    /// What the chip has can't be made right in place: the next attach is a cold one.
    cold_next: bool,
    /// Warm attaches in a row that the chip did not take.
    resyncs_failed: u8,
    /// What the chip had learned when it was attached warm, until the kernel's tables are known.
    found_fdb: Vec<attach::Found>,
    /// Limits of ports that the operator has set.
    storms: storm::Storms,
    writes: Vec<Write>,
    /// Events of the last message that wait until the store has done what came before them.
    rest: Vec<Event>,
    /// A dump has come to its end, and what it did not confirm is being swept; whose, if it said so itself.
    sweeps: bool,
    told: Option<SourceId>,
    // state
    pub(crate) phase: Phase,
    attach_due: Option<tandem_store::Attach>,
    pub(crate) warnings: VecDeque<String>,
    waiters: Vec<Waiter>,
    next_token: u64,
    upkeep: upkeep::Upkeep,
    questions: questions::Questions,
    link: attach::Link,
    /// An attach under way; `control` is none meanwhile.
    attaching: Option<attach::Attaching>,
    /// Number of the last attach ([`Signals::dead`]).
    attaches: u32,
}

/// What [`Core::new`] is given besides the plant.
pub struct Parts {
    /// The time (ns, monotonic): no turn's is less.
    pub now: u64,
    /// The attached device.
    pub control: Box<dyn Device>,
    /// What is in the chip already.
    pub left: Left,
    /// What the chip has learned already.
    pub found_fdb: Vec<attach::Found>,
    /// Limits of ports that it has already: packets a second by port and kind.
    pub storms: std::collections::BTreeMap<(u16, u8), u64>,
    /// How it was attached.
    pub attach: tandem_store::Attach,
    /// The chip's pools and the operator's wishes.
    pub config: tandem_store::Config,
    /// For `status`: what a person should know from the start.
    pub warnings: Vec<String>,
    /// The sources of everything.
    pub sources: Sources,
    /// Which domain is which bridge.
    pub view: SharedView,
    /// To the io thread.
    pub io: Sender<Command>,
    /// The io thread's bell.
    pub io_wake: Arc<EventFd>,
    /// The io thread's counters.
    pub io_stats: Arc<IoStats>,
    /// What the io thread says beside its channel.
    pub signals: Arc<Signals>,
    /// From the io thread.
    pub io_events: Receiver<IoEvent>,
    /// From the API.
    pub jobs: Receiver<Job>,
    /// Rung with anything of the above.
    pub wake: Arc<EventFd>,
    /// A switchd of before had turned `learning` off at the ports: it is to be turned on again.
    pub relearn: bool,
}

impl Core {
    /// A core that has not begun.
    pub fn new(plant: Box<dyn Plant>, parts: Parts) -> anyhow::Result<Core> {
        Ok(Core {
            plant,
            control: Some(parts.control),
            now: parts.now,
            since: parts.now,
            store: {
                let mut store = Store::new(parts.config.clone());
                store.set_sources(&parts.sources.owners());
                store.adopt(parts.left);
                store
            },
            config: parts.config,
            writer: parts
                .sources
                .writer(parts.view.clone())
                .map_err(|e| anyhow::anyhow!("write-back: {e}"))?,
            sources: parts.sources,
            view: parts.view,
            shadow: Shadow::new(parts.relearn),
            io: parts.io,
            io_wake: parts.io_wake,
            io_stats: parts.io_stats,
            signals: parts.signals,
            io_events: parts.io_events,
            jobs: parts.jobs,
            wake: parts.wake,
            planned: Vec::with_capacity(4096),
            unposted: VecDeque::new(),
            notes: HashMap::new(),
            confirmed_ns: 0,
            replaying: false,
            cold_next: false,
            resyncs_failed: 0,
            found_fdb: parts.found_fdb,
            storms: parts.storms,
            writes: Vec::new(),
            rest: Vec::new(),
            sweeps: false,
            told: None,
            phase: Phase::Starting,
            attach_due: Some(parts.attach),
            warnings: parts.warnings.into(),
            waiters: Vec::new(),
            next_token: 1,
            upkeep: upkeep::Upkeep::default(),
            questions: questions::Questions::default(),
            link: attach::Link::up(),
            attaching: None,
            attaches: io::FIRST_ATTACH,
        })
    }

    /// Detaches in good order, after the last turn: the tables stay.
    pub fn detach(&mut self) {
        match self.attaching.take() {
            // given up: nobody waits for its answers
            Some(_) => self.plant.give_up(),
            None => self.plant.detach(),
        }
    }

    /// One turn at `now` (ns, monotonic, never less than before): messages and events in, completions taken, planned, posted,
    /// written back. It waits for nobody. False: there was nothing to do.
    pub fn turn(&mut self, now: u64) -> bool {
        self.now = now;
        // what an event means for many routes goes in slices: the next one is taken when all of it is done
        let behind = self.store.behind() && self.store.catch_up(now);
        self.swept(now);
        let mut worked = behind || self.messages(now);
        self.hold_times(now);
        worked |= self.io_events(now);
        worked |= self.completions(now);
        self.begin_attach(now);
        worked |= self.post_questions(now);
        worked |= self.program(now);
        self.upkeep(now);
        self.waiters(now);
        let mut ran = 0;
        while ran < JOBS_PER_TURN {
            let Ok(job) = self.jobs.try_recv() else { break };
            job(self);
            ran += 1;
        }
        worked |= self.watch_device(now);
        worked |= self.give_answers();
        worked || ran > 0 || self.store.behind()
    }

    /// The desired state, to be looked at between turns.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What of the derived state is another one when all of it is computed anew ([`Store::topology_differs`]).
    #[cfg(feature = "oracle")]
    pub fn topology_differs(&mut self, now: u64) -> Option<Vec<String>> {
        self.store.topology_differs(now)
    }

    /// How many routes are looked at in one turn ([`Store::set_slice`]).
    #[cfg(feature = "oracle")]
    pub fn set_slice(&mut self, routes: usize) {
        self.store.set_slice(routes);
    }

    /// What a person should know, newest last.
    #[must_use]
    pub fn warnings(&self) -> &VecDeque<String> {
        &self.warnings
    }

    /// By which VRF's routes the kernel sends on what came in there.
    pub(crate) fn slot_of(&self, place: crate::slow::Place) -> u8 {
        self.store.slot_at(place.port, place.vid, place.fid)
    }

    /// Why a route of a VRF of the chip is there, or not.
    pub(crate) fn explain_route(&self, vrf: u16, net: ipnet::IpNet) -> tandem_store::Explanation {
        // of one that nobody knows, nobody knows a route
        let slot = self.store.slot_of_vrf(vrf).unwrap_or(u8::MAX);
        self.store.explain_route_in(slot, net)
    }

    /// A line for `status`; the newest are kept.
    pub(crate) fn warn(&mut self, text: String) {
        tracing::warn!("{text}");
        if self.warnings.contains(&text) {
            return;
        }
        if self.warnings.len() >= WARNINGS {
            self.warnings.pop_front();
        }
        self.warnings.push_back(text);
    }

    fn messages(&mut self, now: u64) -> bool {
        let rest = std::mem::take(&mut self.rest);
        let mut n = usize::from(!rest.is_empty());
        self.events(rest, now);
        for index in 0..self.sources.len() {
            for _ in 0..MESSAGES {
                if self.store.behind() {
                    break;
                }
                let Some(received) = self.sources.receive(index) else {
                    break;
                };
                n += 1;
                match received {
                    Received::Message(_, Message::Events(events)) => self.events(events, now),
                    Received::Message(from, Message::Barrier(token)) => {
                        self.store.told_all(from);
                        for w in self.waiters.iter_mut().filter(|w| w.token == token) {
                            w.owed.retain(|s| *s != from);
                        }
                    }
                    Received::Message(_, Message::Warning(text)) => self.warn(text),
                    Received::Lost(id) => {
                        let stays = self.sources.lost(id, now);
                        let name = self.sources.name(id).unwrap_or_default();
                        if stays {
                            tracing::warn!(
                                "{name} is gone: what it has said stays as it is for now"
                            );
                        } else {
                            tracing::warn!("{name} is gone");
                            self.sweep(id, now);
                        }
                    }
                }
            }
        }
        n > 0
    }

    fn events(&mut self, events: Vec<Event>, now: u64) {
        self.store.approach(&events);
        let mut events = events.into_iter();
        while !self.store.behind()
            && let Some(event) = events.next()
        {
            if !self.sources.hears(&event) {
                continue;
            }
            if let Err(refused) = self.store.admit(&event) {
                self.refused(&refused);
                continue;
            }
            self.claim(&event, now);
            if let Event::EndSync(source) = event {
                self.told = Some(source);
            }
            self.take(event, now);
            self.swept(now);
        }
        self.rest = events.collect();
        self.write_back();
        if self.store.take_resync() {
            for source in self.sources.iter() {
                source.resync();
            }
        }
    }

    /// A device comes: what others than its owner have said of it goes. What its owner has said before that may have been
    /// written over by them: it is asked once more.
    fn claim(&mut self, event: &Event, now: u64) {
        let early = self.store.said_too_early(event);
        let Some(owner) = early.first().map(|(refused, _)| refused.owner) else {
            return;
        };
        for (refused, key) in early {
            self.take(Event::Remove(refused.source, key), now);
            self.refused(&refused);
        }
        if let Some(source) = self.sources.iter().find(|s| s.id() == owner) {
            source.resync();
        }
    }

    fn take(&mut self, event: Event, now: u64) {
        self.port_gone(&event);
        self.shadow
            .note(&event, &self.store, &self.view, &mut self.writes);
        self.note_own(&event);
        self.sweeps |= matches!(event, Event::EndSync(_));
        self.store.apply(event, now);
    }

    /// A dump came to its end, and what it did not confirm is gone.
    fn swept(&mut self, now: u64) {
        if !self.sweeps || self.store.behind() {
            return;
        }
        self.sweeps = false;
        self.shadow.swept(&self.store, &self.view);
        if let Some(source) = self.told.take() {
            self.missing_ports(source);
            self.sources.reached(source);
            let away = away_text(self.sources.name(source).unwrap_or_default());
            self.warnings.retain(|w| *w != away);
        }
        self.all_told(now);
    }

    /// A source has told all that it has, or will not: if it was the last one, the rest can begin.
    fn all_told(&mut self, now: u64) {
        if !self.sources.ready() {
            return;
        }
        self.shadow.all_told();
        self.seed_fdb(now);
        if self.phase == Phase::Starting {
            self.phase = Phase::Steady;
            tracing::info!("all sources are read");
        }
    }

    /// A source spoke of what is another one's.
    fn refused(&mut self, refused: &Refused) {
        let name = |id| self.sources.name(id).unwrap_or("nobody");
        let text = format!(
            "{}: {} belongs to {}: what is said of it is refused",
            name(refused.source),
            refused.what,
            name(refused.owner)
        );
        // one line, however often it is said
        if !self.warnings.contains(&text) {
            self.warn(text);
        }
    }

    /// Sources that did not come (back) in time: what they had said goes.
    fn hold_times(&mut self, now: u64) {
        // one whose dump is being swept has told
        if self.store.behind() {
            return;
        }
        for (id, name) in self.sources.expire(now) {
            self.warn(away_text(&name));
            self.sweep(id, now);
            for w in &mut self.waiters {
                w.owed.retain(|s| *s != id);
            }
            self.swept(now);
        }
    }

    /// Nothing of what a source has said stays.
    fn sweep(&mut self, id: SourceId, now: u64) {
        self.take(Event::BeginSync(id, KindSet::ALL), now);
        self.take(Event::EndSync(id), now);
    }

    /// Puts another source in the place of the one of its number, which is gone: it tells everything from the start, and
    /// what it does not confirm of what that one had said is swept. Between two turns.
    ///
    /// # Errors
    /// One line: no source has this number.
    pub fn replace_source(&mut self, source: Arc<dyn Source + Sync>) -> Result<(), SourceError> {
        let id = source.id();
        for w in self
            .waiters
            .iter()
            .filter(|w| w.io_passed && w.owed.contains(&id))
        {
            source.barrier(w.token);
        }
        // what the one before had said, and was not looked at, is not the new one's
        self.rest.retain(|e| e.source() != id);
        self.sources.replace(source, self.now)
    }

    /// A port's netdev was deleted: nothing but a restart makes it again. Or it was moved to another namespace: the port's
    /// packets are that one's until whoever moved it brings it back.
    fn port_gone(&mut self, event: &Event) {
        let (i, gone) = match event {
            Event::Remove(_, Key::Link(i)) => (*i, true),
            Event::Upsert(_, Object::Link(link)) if !self.warnings.is_empty() => {
                (link.ifindex, false)
            }
            _ => return,
        };
        let port = self.plant.ports().iter().find(|p| p.ifindex == i);
        let Some((number, name)) = port.map(|p| (p.port, p.name.clone())) else {
            return;
        };
        let lives = self.plant.lives(number);
        self.store.port_away(number, gone && lives);
        let daemon = self.plant.names().daemon;
        let moved = format!(
            "{name}: its netdev is in another network namespace, and all its packets with it: bring it back, or restart {daemon} to make it again"
        );
        let deleted = format!("{name}: its netdev is gone: restart {daemon} to make it again");
        match (gone, lives) {
            (true, true) => self.warn(moved),
            (true, false) => self.warn(deleted),
            (false, _) => self.warnings.retain(|w| *w != moved && *w != deleted),
        }
    }

    /// A dump has ended. What happened to the netdev of a port of its source's that it does not know, no message has said.
    fn missing_ports(&mut self, source: SourceId) {
        let known = |name: &str| {
            let text = format!("{name}: its netdev is ");
            self.warnings.iter().any(|w| w.starts_with(&text))
        };
        let ports = self.plant.ports().iter();
        let missing: Vec<u32> = ports
            .filter(|p| self.sources.has_port(source, p.port))
            .filter(|p| self.store.link(p.ifindex).is_none() && !known(&p.name))
            .map(|p| p.ifindex)
            .collect();
        for ifindex in missing {
            self.port_gone(&Event::Remove(source, Key::Link(ifindex)));
        }
    }

    /// Tells the store which of the kernel's `extern_learn` entries are the chip's learning.
    fn note_own(&mut self, event: &Event) {
        let Event::Upsert(_, Object::Fdb(f)) = event else {
            return;
        };
        let key = FdbKey {
            bridge: f.bridge,
            vlan: f.vlan,
            mac: f.mac,
        };
        if f.kind == FdbKind::ExternLearn && self.view.lock().is_own(&key) {
            self.store.fdb_own(key);
        }
    }

    /// Writes to the kernel what has been gathered.
    fn write_back(&mut self) {
        let relearned = std::mem::take(&mut self.shadow.relearned);
        if self.writes.is_empty() && !relearned {
            return;
        }
        let done = self.writer.write(&self.writes, &mut |_, e| {
            tracing::debug!("write-back: {e}");
        });
        self.writes.clear();
        match done {
            Ok(_) if relearned => self.plant.relearned(),
            Ok(_) => {}
            Err(e) => self.warn(format!("write-back: {e}")),
        }
    }

    /// Sleeps until there may be something to do, after a [turn](Self::turn) at `now` that had nothing; not longer than a fifth
    /// of a second.
    pub fn sleep(&mut self, now: u64) {
        let mut until = now + SLEEP_NS;
        if let Some(at) = self.sources.next() {
            until = until.min(at.max(now + 1_000_000));
        }
        let chip = self.control.is_some() && self.phase == Phase::Steady;
        for at in [self.upkeep.next(now, chip), self.next_attempt()] {
            until = until.min(at.unwrap_or(until).max(now + 1_000_000));
        }
        let attaching = self.attaching.as_mut();
        let device = self.control.as_mut();
        let idle = match device.or_else(|| attaching.and_then(|a| a.device())) {
            None => true,
            Some(c) => {
                if let Some(at) = c.next_deadline_ns() {
                    until = until.min(at.max(now + 1_000_000));
                }
                c.arm().unwrap_or(true)
            }
        };
        if idle && self.sources.quiet() && self.io_events.is_empty() && self.jobs.is_empty() {
            let mut fds = vec![self.wake.as_fd()];
            fds.extend(self.control.iter().flat_map(|c| c.fds()));
            fds.extend(self.attaching.iter().flat_map(|a| a.fds()));
            let limit = Timespec {
                tv_sec: 0,
                tv_nsec: i64::try_from(until.saturating_sub(now)).unwrap_or(1_000_000),
            };
            self.plant.sleep(&fds, &limit);
        }
        self.wake.drain();
        let attaching = self.attaching.as_mut();
        let device = self.control.as_mut();
        if let Some(c) = device.or_else(|| attaching.and_then(|a| a.device())) {
            c.disarm();
        }
    }

    // -- barrier

    /// Calls `done` when everything that has happened up to now is in the chip (or has its reason),
    /// with the time that it took in ns, or with what is still missing at the deadline.
    pub fn sync(&mut self, timeout_ns: u64, done: Box<dyn FnOnce(Result<u64, String>) + Send>) {
        if self.waiters.len() >= WAITERS {
            done(Err("too many others wait already".into()));
            return;
        }
        let now = self.now;
        let token = self.next_token;
        self.next_token += 1;
        let io_passed = self.control.is_none();
        if !io_passed && self.io.try_send(Command::Barrier(token)).is_err() {
            done(Err("the packet thread is behind with its commands".into()));
            return;
        }
        self.io_wake.ring();
        self.waiters.push(Waiter {
            token,
            io_passed,
            owed: self.sources.expected(),
            settling: None,
            since_ns: now,
            deadline_ns: now.saturating_add(timeout_ns),
            done,
        });
        if io_passed {
            self.sources.barrier(token);
        }
    }

    /// The chip's events of before are with the kernel: now ask the kernel.
    fn io_barrier(&mut self, passed: u64) {
        for w in &mut self.waiters {
            if w.token <= passed && !w.io_passed {
                w.io_passed = true;
                self.sources.barrier(w.token);
            }
        }
    }

    /// Nothing under way, nothing to do.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.phase == Phase::Steady
            && self.attach_due.is_none()
            && self.control.as_ref().is_some_and(|c| c.outstanding() == 0)
            && self.unposted.is_empty()
            && self.rest.is_empty()
            && self.io_events.is_empty()
            && !self.upkeep.read_fdb
            && self.store.idle()
    }

    fn waiters(&mut self, now: u64) {
        if self.waiters.is_empty() {
            return;
        }
        let settled = self.settled();
        let able = self.phase == Phase::Steady
            && self.attach_due.is_none()
            && self.control.is_some()
            && !self.upkeep.read_fdb;
        let mut left = Vec::new();
        for mut w in std::mem::take(&mut self.waiters) {
            let store = &self.store;
            let passed = w.owed.is_empty();
            let done = passed && able && {
                let s = w.settling.get_or_insert_with(|| store.settling());
                !store.idle() && store.has_settled(s)
            };
            if done || passed && settled {
                (w.done)(Ok(now.saturating_sub(w.since_ns)));
            } else if now >= w.deadline_ns {
                let why = self.unsettled(&w);
                (w.done)(Err(why));
            } else {
                left.push(w);
            }
        }
        self.waiters = left;
    }

    fn unsettled(&self, w: &Waiter) -> String {
        if self.control.is_none() {
            return self.no_asic();
        }
        if let (Phase::Starting, Some(name)) = (self.phase, self.sources.awaited()) {
            return format!("{name} is still telling what it has");
        }
        if let Some(name) = w.owed.first().and_then(|id| self.sources.name(*id)) {
            return format!("{name} has more to tell");
        }
        format!(
            "{} commands under way, {} to post",
            self.control.as_ref().map_or(0, |c| c.outstanding()),
            self.unposted.len()
        )
    }

    /// Commands posted and not answered.
    pub(crate) fn in_flight(&self) -> u64 {
        self.control.as_ref().map_or(0, |c| c.outstanding() as u64)
    }

    /// What waits to be posted or answered.
    pub(crate) fn pending(&self) -> u64 {
        if self.store.idle() {
            0
        } else {
            (self.unposted.len() as u64 + self.in_flight()).max(1)
        }
    }

    /// Counters of the command pairs.
    pub(crate) fn control_counters(&self) -> tandem_sal::control::ControlCounters {
        self.control
            .as_ref()
            .map(|c| c.counters())
            .unwrap_or_default()
    }

    /// Counters of the upkeep.
    pub(crate) fn upkeep_rows(&self) -> std::collections::BTreeMap<&'static str, u64> {
        self.upkeep.rows()
    }

    /// Epoch of the attach; 0 = none.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.control.as_ref().map_or(0, |c| c.epoch())
    }

    /// What the store was told of the chip.
    pub(crate) fn store_config(&self) -> tandem_store::Config {
        self.config.clone()
    }

    /// What an attach needs, and what is known of the board.
    pub(crate) fn plant(&self) -> &dyn Plant {
        &*self.plant
    }

    /// The command pairs, while attached.
    pub(crate) fn control(&mut self) -> Option<&mut (dyn Device + 'static)> {
        self.control.as_deref_mut()
    }
}

//! The database as a source: what was touched goes to the core, in batches, and a dump whenever it asks.
//!
//! ```text
//!   Switch::change ─► touched ─► Teller::turn ─► channel (64 × 256 events at most) ─► core
//!                                    ▲ resync, barrier                                  │
//!   Database ◄──── learned, aged ────┴──────────────────────────────────────── WriteBack ┘
//! ```
//!
//! Nobody waits for the core to read but who runs the [`Teller`]: a change, or what the core writes back, is noted and
//! no more. All of them wait for one mutex, which is held for a walk through all of the database when a dump begins, and
//! while a [snapshot](Source::snapshot) is made.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, SendTimeoutError, Sender, TrySendError, bounded};
use tandem_core::source::{BATCH, Message, Source, SourceError, Status, Write, WriteBack};
use tandem_linux::eventfd::EventFd;
use tandem_store::model::{Event, KindSet, Object, SourceId};

use crate::database::{Database, Refusal, What};
use crate::taps::TapMaker;

/// Messages that wait for the core at most.
const CHANNEL: usize = 64;
/// Barriers that wait at most: who asked for the oldest has given up.
const BARRIERS: usize = 64;

struct State {
    database: Database,
    /// The core wants all of it.
    resync: bool,
    barriers: VecDeque<u64>,
    status: Status,
    /// Which [`Teller`] is the present one.
    teller: u64,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let done = f(&mut self.lock());
        self.changed.notify_all();
        done
    }
}

/// A switch's VLANs, for those who change them. They outlive a [`Teller`].
#[derive(Clone)]
pub struct Switch(Arc<Shared>);

impl Switch {
    /// Of this database.
    #[must_use]
    pub fn new(database: Database) -> Switch {
        Switch(Arc::new(Shared {
            state: Mutex::new(State {
                database,
                resync: false,
                barriers: VecDeque::new(),
                status: Status::default(),
                teller: 0,
            }),
            changed: Condvar::new(),
        }))
    }

    /// Changes something, or asks. Nothing is said before all that is changed here is; then it is said in messages of
    /// [`BATCH`] events at most, and the core may act upon one before it has the next.
    pub fn change<R>(&self, f: impl FnOnce(&mut Database) -> R) -> R {
        self.0.with(|s| f(&mut s.database))
    }

    /// Asks something: nobody is woken.
    pub fn ask<R>(&self, f: impl FnOnce(&Database) -> R) -> R {
        f(&self.0.lock().database)
    }

    /// `interface vlan N`: the VLAN is routed, by a device of its own. The VLAN may come later.
    ///
    /// # Errors
    /// One line: it is no VLAN id, there can be no device, or the one there is is another VLAN's.
    pub fn route(&self, vid: u16, maker: &mut dyn TapMaker) -> Result<u32, String> {
        let words = |e: Refusal| e.to_string();
        // whether it is a VLAN id is asked before there is a device that nobody wants
        let there = self.0.lock().database.tap(vid);
        self.change(|d| d.set_tap(vid, there)).map_err(words)?;
        let tap = maker.make(vid)?;
        if let Err(e) = self.change(|d| d.set_tap(vid, Some(tap))) {
            maker.remove(vid);
            return Err(words(e));
        }
        Ok(tap.device)
    }

    /// `no interface vlan N`. Whether the store hears first of this or of the device's end does not matter to it.
    ///
    /// # Errors
    /// It is no VLAN id.
    pub fn unroute(&self, vid: u16, maker: &mut dyn TapMaker) -> Result<(), Refusal> {
        self.change(|d| d.set_tap(vid, None))?;
        maker.remove(vid);
        Ok(())
    }

    /// A source for a core, and who speaks for it. The one before, if there was one, says nothing any more. `wake` is
    /// rung with each message.
    #[must_use]
    pub fn source(&self, id: SourceId, wake: Option<Arc<EventFd>>) -> (Vlans, Teller) {
        let (to, messages) = bounded(CHANNEL);
        let number = self.0.with(|s| {
            s.teller += 1;
            s.resync = true;
            s.barriers.clear();
            s.teller
        });
        let shared = Arc::clone(&self.0);
        let vlans = Vlans {
            id,
            shared: Arc::clone(&shared),
            messages,
        };
        let teller = Teller {
            id,
            number,
            shared,
            to,
            wake,
            held: None,
            dump: None,
        };
        (vlans, teller)
    }
}

/// The database, as the core knows it.
pub struct Vlans {
    id: SourceId,
    shared: Arc<Shared>,
    messages: Receiver<Message>,
}

impl Source for Vlans {
    fn id(&self) -> SourceId {
        self.id
    }

    fn name(&self) -> &str {
        "vlans"
    }

    fn messages(&self) -> &Receiver<Message> {
        &self.messages
    }

    fn resync(&self) {
        self.shared.with(|s| s.resync = true);
    }

    fn barrier(&self, token: u64) {
        self.shared.with(|s| {
            if s.barriers.len() == BARRIERS {
                s.barriers.pop_front();
            }
            s.barriers.push_back(token);
        });
    }

    fn snapshot(&self) -> Result<Vec<Object>, SourceError> {
        let state = self.shared.lock();
        let all = state.database.every().into_iter();
        Ok(all.filter_map(|w| state.database.object(w)).collect())
    }

    fn writer(&self) -> Result<Box<dyn WriteBack>, SourceError> {
        Ok(Box::new(Writer(Arc::clone(&self.shared))))
    }

    fn status(&self) -> Status {
        let state = self.shared.lock();
        Status {
            syncing: state.resync || state.status.syncing,
            ..state.status
        }
    }
}

struct Writer(Arc<Shared>);

impl WriteBack for Writer {
    fn write(
        &mut self,
        writes: &[Write],
        failed: &mut dyn FnMut(usize, SourceError),
    ) -> Result<(), SourceError> {
        self.0.with(|s| {
            let d = &mut s.database;
            for (n, write) in writes.iter().enumerate() {
                match *write {
                    Write::FdbLearned { ifindex, mac, vlan } => {
                        if let Err(e) = d.learned(ifindex, vlan, mac) {
                            failed(n, SourceError(e.to_string()));
                        }
                    }
                    Write::FdbAged { ifindex, mac, vlan } => d.aged(ifindex, vlan, mac),
                    Write::FdbFlush { ifindex, vlan } => d.flush(ifindex, vlan),
                    // nothing here has neighbours, or learns by itself
                    Write::NeighUse { .. } | Write::Learning { .. } => {}
                }
            }
        });
        Ok(())
    }
}

/// What a turn has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// All is said.
    Done,
    /// The core has not read what was said yet.
    Full,
    /// Another one speaks for the database, or the core is gone.
    Over,
}

/// Speaks for the database. With this value the source is gone for its core.
pub struct Teller {
    id: SourceId,
    number: u64,
    shared: Arc<Shared>,
    to: Sender<Message>,
    wake: Option<Arc<EventFd>>,
    /// What the channel did not take.
    held: Option<Message>,
    /// What is left of a dump.
    dump: Option<BTreeSet<What>>,
}

impl Teller {
    /// Says what there is to say, and waits for nobody.
    pub fn turn(&mut self) -> Turn {
        loop {
            let message = match self.held.take() {
                // whom nobody listens to any more may hold a message for ever
                Some(_) if self.is_replaced() => return Turn::Over,
                Some(message) => message,
                None => match self.next() {
                    Ok(Some(message)) => message,
                    Ok(None) => return Turn::Done,
                    Err(turn) => return turn,
                },
            };
            match self.to.try_send(message) {
                Ok(()) => self.ring(),
                Err(TrySendError::Full(message)) => {
                    self.held = Some(message);
                    return Turn::Full;
                }
                Err(TrySendError::Disconnected(_)) => return Turn::Over,
            }
        }
    }

    /// Speaks until `stop` says so, which is asked every tenth of a second; or until another one speaks.
    pub fn run(mut self, stop: impl Fn() -> bool) {
        const LOOK: Duration = Duration::from_millis(100);
        while !stop() {
            match self.turn() {
                Turn::Over => return,
                Turn::Full => {
                    if let Some(message) = self.held.take() {
                        match self.to.send_timeout(message, LOOK) {
                            Ok(()) => self.ring(),
                            Err(SendTimeoutError::Timeout(message)) => self.held = Some(message),
                            Err(SendTimeoutError::Disconnected(_)) => return,
                        }
                    }
                }
                Turn::Done => {
                    let state = self.shared.lock();
                    // what came since the turn is looked for in the next one
                    if !self.owes(&state) {
                        let waited = self.shared.changed.wait_timeout(state, LOOK);
                        drop(waited);
                    }
                }
            }
        }
    }

    fn ring(&self) {
        if let Some(wake) = &self.wake {
            wake.ring();
        }
    }

    fn is_replaced(&self) -> bool {
        self.shared.lock().teller != self.number
    }

    fn owes(&self, state: &State) -> bool {
        state.resync
            || !state.barriers.is_empty()
            || state.database.is_touched()
            || state.teller != self.number
    }

    /// The next message.
    fn next(&mut self) -> Result<Option<Message>, Turn> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let state = &mut *state;
        if state.teller != self.number {
            return Err(Turn::Over);
        }
        let mut events = Vec::new();
        if std::mem::take(&mut state.resync) || state.database.is_all_touched() {
            // a second beginning starts afresh
            state.database.untouch();
            state.status.syncing = true;
            self.dump = Some(state.database.every());
            events.push(Event::BeginSync(self.id, KindSet::ALL));
        }
        while events.len() < BATCH {
            if let Some(left) = &mut self.dump {
                match left.pop_first() {
                    Some(what) => {
                        let object = state.database.object(what);
                        events.extend(object.map(|o| Event::Upsert(self.id, o)));
                    }
                    None => {
                        self.dump = None;
                        state.status.syncing = false;
                        state.status.resyncs += 1;
                        events.push(Event::EndSync(self.id));
                    }
                }
                continue;
            }
            let Some(what) = state.database.take() else {
                break;
            };
            events.push(match state.database.object(what) {
                Some(object) => Event::Upsert(self.id, object),
                None => Event::Remove(self.id, Database::key(what)),
            });
        }
        if events.is_empty() {
            return Ok(state.barriers.pop_front().map(Message::Barrier));
        }
        state.status.events += events.len() as u64;
        Ok(Some(Message::Events(events)))
    }
}

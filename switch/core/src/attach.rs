//! Getting the device, losing it, getting it back.
//!
//! ```text
//!   connect ─► ports (kept TAPs or new ones) ─► attach warm | cold ─► read the chip ─► Steady
//!                                                                                        │ socket closed, ring dead,
//!      lost ◄────────────────────────────────────────────────────────────────────────────┘ device failed
//!        └─► every 250 ms:  begun ──────────────► reading ───────────► handing over ─► Steady
//!                           Plant: connect,       one page at a time   the packet thread
//!                           keep the TAPs, attach                      gets its rings
//! ```
//!
//! Attaching again waits for nobody: each turn looks whether the next answer is there. What fails in the midst, or is not
//! answered in five seconds, begins anew. Meanwhile there is no device for anybody: `control` is none. Why the last attempt
//! failed is a warning, unless nobody was there; `status` says so, and so is told who asks.
//!
//! Warm when the ports were taken over: the chip's tables are an earlier switchd's, and nothing in
//! them that is right is written again. Cold else: a new asicd has empty tables.

mod reading;

use std::os::fd::BorrowedFd;

use tandem_abi::Status;
use tandem_sal::{Attach, Device, Outcome, PostError};
use tandem_store::Domain;
use tandem_store::model::FdbKey;

pub use self::reading::{Read, Reading, read};
use super::plant::{Attached, NotYet, Progress, Waits};
use super::program::OWN;
use super::{Core, Phase};
use crate::SECOND_NS;
use crate::io::{Command, FIRST_ATTACH};
use crate::source::{Source, Write};

/// Between the beginnings of two attempts to reach a device that is gone.
const RETRY_NS: u64 = SECOND_NS / 4;
/// The ports keep their carrier for so long without a device: a restart of asicd shall not look
/// like a pulled cable, a dead switch shall.
const GRACE_NS: u64 = 10 * SECOND_NS;

/// Each answer of an attach has so long.
const STEP_NS: u64 = 5 * SECOND_NS;
/// With this begins the warning that says why there is no attach: there is one at most.
const WHY: &str = "no ASIC: ";
/// The only command under way while the chip is read.
const READ: u64 = OWN | 5;

/// An address that the chip had learned before a warm attach.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// VLAN, 0 without filtering.
    vlan: u16,
    mac: [u8; 6],
    port: u16,
    /// The chip's domain.
    fid: u16,
}

/// State of the connection.
#[derive(Clone, Debug)]
pub(super) struct Link {
    lost_ns: Option<u64>,
    retry_ns: u64,
    dark: bool,
    /// What the last attempt met with, if somebody was there.
    refusal: Option<String>,
    /// The packet thread is to be told that the device is gone.
    untold: bool,
}

impl Link {
    pub(super) fn up() -> Link {
        Link {
            lost_ns: None,
            retry_ns: 0,
            dark: false,
            refusal: None,
            untold: false,
        }
    }
}

/// An attach under way.
pub(super) struct Attaching {
    stage: Stage,
    waits: Waits,
    /// When the last answer came.
    since_ns: u64,
    /// One has come.
    answered: bool,
}

/// Why there is no device.
pub(crate) enum Lack<'a> {
    /// An attach is under way.
    Attaching(&'a Waits),
    /// The last attempt met with this; it is tried again.
    Refused(&'a str),
    /// Nobody is there.
    Away,
}

enum Stage {
    /// The plant has begun.
    Begun,
    /// Attached; its tables are read.
    Reading(Box<Reader>),
    /// The store knows what was read; the packet thread has not taken its rings.
    HandingOver(Attached),
}

/// Who reads the chip.
struct Reader {
    attached: Attached,
    reading: Reading,
    posted: bool,
    answers: u64,
}

/// What a step has brought.
enum Step {
    /// An answer has to come.
    Waits(Waits),
    /// This stage is done.
    Next(Stage),
    /// All of it.
    Done,
}

impl Attaching {
    fn begun(now: u64) -> Attaching {
        Attaching {
            stage: Stage::Begun,
            waits: Waits {
                what: "connecting to it".into(),
                ..Waits::default()
            },
            since_ns: now,
            answered: false,
        }
    }

    /// The device, as soon as there is one.
    pub(super) fn device(&mut self) -> Option<&mut Box<dyn Device>> {
        match &mut self.stage {
            Stage::Begun => None,
            Stage::Reading(reader) => Some(&mut reader.attached.control),
            Stage::HandingOver(attached) => Some(&mut attached.control),
        }
    }

    /// What is readable when the device has answered.
    pub(super) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match &self.stage {
            Stage::Reading(reader) => reader.attached.control.fds(),
            Stage::Begun | Stage::HandingOver(_) => Vec::new(),
        }
    }
}

impl Reader {
    fn new(attached: Attached) -> Reader {
        Reader {
            reading: Reading::new(attached.how),
            attached,
            posted: false,
            answers: 0,
        }
    }

    /// Takes the answer, if it is there, and asks for the next page. `None`: all is read.
    fn go_on(&mut self, now: u64) -> Result<Option<Waits>, NotYet> {
        let Waits { what, .. } = self.waits();
        let control = &mut self.attached.control;
        let (mut answer, mut late) = (None, false);
        control.reap(now, 1, &mut |outcome| match outcome {
            Outcome::Done { cpl, output, .. } => answer = Some((cpl, output)),
            Outcome::TimedOut { .. } => late = true,
        })?;
        if late {
            return Err(unanswered(&what));
        }
        if let Some((cpl, output)) = answer {
            let status = Status::from_raw(cpl.status);
            if !status.is_ok() {
                let text = format!("it refuses to be attached: {what}: {status}");
                return Err(NotYet::refused(text));
            }
            self.reading.take(&cpl, &output)?;
            self.posted = false;
            self.answers += 1;
        }
        let Some((_, request)) = self.reading.ask() else {
            return Ok(None);
        };
        if !self.posted {
            match control.post(0, READ, &request, now) {
                Ok(()) => {
                    control.flush();
                    self.posted = true;
                }
                Err(PostError::Full) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Some(self.waits()))
    }

    /// What is read.
    fn waits(&self) -> Waits {
        let what = self.reading.ask().map_or("", |(what, _)| what);
        Waits {
            what: format!("reading its {what}"),
            which: format!("page {}", self.reading.pages() + 1),
            answers: self.answers,
        }
    }
}

/// What was asked got no answer.
fn unanswered(what: &str) -> NotYet {
    NotYet::refused(format!("attaching it got no answer in 5 s: {what}"))
}

impl Core {
    /// Tells the store about an attach that has just been made.
    pub(super) fn begin_attach(&mut self, now: u64) {
        if let Some(how) = self.attach_due.take() {
            self.store.attach(how, now);
            self.upkeep.read_fdb = true;
            self.restore_storms();
            self.origins_limits();
            if self.phase == Phase::Steady {
                self.seed_fdb(now);
            }
        }
    }

    /// Sources whose own tables are smaller than the chip's would have it forget what it could hold.
    fn origins_limits(&mut self) {
        let hosts = [0, 1].map(|family| self.config.hosts(family));
        let limits = |s: &std::sync::Arc<dyn Source + Sync>| s.limits(hosts);
        let said: Vec<String> = self.sources.present().flat_map(limits).collect();
        for text in said {
            self.warn(text);
        }
    }

    /// What the chip had learned before a warm attach is newer than the kernel's entries: a station
    /// may have moved while nobody wrote its move to the kernel. The store learns it before it
    /// programs anything, and the kernel is told.
    pub(super) fn seed_fdb(&mut self, now: u64) {
        // while it is not attached nobody knows whether it will be, and it can't be told to forget
        if self.control.is_none() || self.attach_due.is_some() || self.found_fdb.is_empty() {
            return;
        }
        let view = &self.view;
        let owners = self.store.name_left(|port| view.lock().kernel_bridge(port));
        for e in std::mem::take(&mut self.found_fdb) {
            let (key, ifindex, pinned) = {
                let view = self.view.lock();
                let key = FdbKey {
                    bridge: view.kernel_bridge(e.port),
                    vlan: e.vlan,
                    mac: e.mac,
                };
                (key, view.ifindex_of(e.port), view.is_pinned(&key))
            };
            let domain = Domain {
                dev: key.bridge,
                vlan: key.vlan,
            };
            let Some(ifindex) = ifindex.filter(|_| owners.get(&e.fid) == Some(&domain)) else {
                // The port left that bridge while nobody listened. The sweep spares what the chip has learned.
                self.forget_station(e.fid, e.mac, now);
                continue;
            };
            if pinned {
                continue;
            }
            self.store.fdb_found(key, e.port, now);
            if self.shadow.place(&key, &self.store) != Some(ifindex) {
                self.writes.push(Write::FdbLearned {
                    ifindex,
                    mac: e.mac,
                    vlan: e.vlan,
                });
            }
        }
        self.write_back();
    }

    /// The device can't be used any more.
    pub(super) fn lose(&mut self, why: &str) {
        if self.control.is_none() {
            return;
        }
        tracing::warn!("the ASIC is lost: {why}");
        self.control = None;
        self.plant.give_up();
        self.unposted.clear();
        self.notes.clear();
        self.attach_due = None;
        self.found_fdb.clear();
        self.upkeep.device_lost();
        self.questions.lost(&format!("the ASIC is lost: {why}"));
        self.store.detach();
        let now = self.now;
        self.link.lost_ns = Some(now);
        self.link.retry_ns = now;
        // it takes commands at every turn, and finds a dead ring by itself
        self.link.untold = !self.send_io(Command::Detach);
    }

    /// False: there is no room for it now.
    fn send_io(&self, command: Command) -> bool {
        let sent = self.io.try_send(command).is_ok();
        self.io_wake.ring();
        sent
    }

    /// Looks after the connection. True: there was something to do.
    pub(super) fn watch_device(&mut self, now: u64) -> bool {
        if self.control.is_some() {
            if let Err(e) = self.plant.check() {
                self.lose(&e.text);
            }
            return false;
        }
        self.link.untold = self.link.untold && !self.send_io(Command::Detach);
        let under_way = self.attaching.take();
        // one that gets answers may use the time that it takes: not for each of several that fail
        if !under_way.as_ref().is_some_and(|a| a.answered) {
            self.darken(now);
        }
        let Some(attaching) = under_way.or_else(|| self.begin_again(now)) else {
            return false;
        };
        match self.attach_on(attaching, now) {
            Ok(worked) => worked,
            Err(e) => {
                self.no_attach(e);
                // after one that took its time there is no pause, and nobody reads that nothing is tried
                self.attaching = self.begin_again(now);
                true
            }
        }
    }

    /// The ports lose their carrier when there was no device for long.
    fn darken(&mut self, now: u64) {
        let late = |lost| now >= lost + GRACE_NS;
        if self.link.dark || !self.link.lost_ns.is_some_and(late) {
            return;
        }
        self.link.dark = true;
        self.warn("no ASIC for 10 s: the ports have no carrier".into());
        self.plant.set_carrier(false);
    }

    /// The next attempt, if it is time and somebody is there.
    fn begin_again(&mut self, now: u64) -> Option<Attaching> {
        if now < self.link.retry_ns {
            return None;
        }
        self.link.retry_ns = now + RETRY_NS;
        match self.plant.begin_attach(self.cold_next) {
            Ok(()) => Some(Attaching::begun(now)),
            Err(e) => {
                self.no_attach(e);
                None
            }
        }
    }

    /// When the next attempt begins.
    pub(super) fn next_attempt(&self) -> Option<u64> {
        let none = self.control.is_none() && self.attaching.is_none();
        none.then_some(self.link.retry_ns)
    }

    /// It is tried again.
    fn no_attach(&mut self, e: NotYet) {
        self.plant.give_up();
        self.found_fdb.clear();
        if !e.warn {
            tracing::debug!("attach again: {}", e.text);
            self.link.refusal = None;
            return;
        }
        let text = format!("{WHY}{}", e.text);
        // one line, however often it is tried, and of the newest reason
        if !self.warnings.contains(&text) {
            self.warnings.retain(|w| !w.starts_with(WHY));
            self.warn(text);
        }
        self.link.refusal = Some(e.text);
    }

    /// Why there is no device, while there is none.
    pub(crate) fn lack(&self) -> Lack<'_> {
        match (&self.attaching, &self.link.refusal) {
            (Some(attaching), _) => Lack::Attaching(&attaching.waits),
            (None, Some(why)) => Lack::Refused(why),
            (None, None) => Lack::Away,
        }
    }

    /// An attach is under way.
    pub(crate) fn is_attaching(&self) -> bool {
        self.attaching.is_some()
    }

    /// Nothing can be asked of the chip, or told.
    pub(crate) fn no_asic(&self) -> String {
        let device = self.plant.names().device;
        match self.lack() {
            Lack::Attaching(at) => format!("no ASIC attached: {device} is being attached ({at})"),
            Lack::Refused(why) => format!("no ASIC attached: {why}"),
            Lack::Away => format!("no ASIC attached: is {device} running?"),
        }
    }

    /// Goes on with an attach as far as it goes without waiting. True: it went on.
    fn attach_on(&mut self, mut attaching: Attaching, now: u64) -> Result<bool, NotYet> {
        let mut worked = false;
        loop {
            let waits = match self.attach_step(&mut attaching.stage, now)? {
                Step::Waits(waits) => waits,
                Step::Next(stage) => {
                    (attaching.stage, attaching.waits) = (stage, Waits::default());
                    (attaching.since_ns, attaching.answered) = (now, true);
                    worked = true;
                    continue;
                }
                Step::Done => return Ok(true),
            };
            if waits.answers != attaching.waits.answers {
                (attaching.since_ns, attaching.answered) = (now, true);
                worked = true;
            }
            attaching.waits = waits;
            if now >= attaching.since_ns + STEP_NS {
                return Err(unanswered(&attaching.waits.what));
            }
            self.attaching = Some(attaching);
            return Ok(worked);
        }
    }

    fn attach_step(&mut self, stage: &mut Stage, now: u64) -> Result<Step, NotYet> {
        if !matches!(stage, Stage::Begun) {
            self.plant.check()?;
        }
        match std::mem::replace(stage, Stage::Begun) {
            Stage::Begun => Ok(match self.plant.go_on()? {
                Progress::Waits(waits) => Step::Waits(waits),
                Progress::Done(attached) => {
                    Step::Next(Stage::Reading(Box::new(Reader::new(attached))))
                }
            }),
            Stage::Reading(mut reader) => match reader.go_on(now)? {
                Some(waits) => {
                    *stage = Stage::Reading(reader);
                    Ok(Step::Waits(waits))
                }
                None => {
                    let Reader {
                        attached, reading, ..
                    } = *reader;
                    self.adopt(reading, &*attached.control);
                    Ok(Step::Next(Stage::HandingOver(attached)))
                }
            },
            Stage::HandingOver(mut attached) => {
                // a chip without packet I/O is no switch: given back when nobody takes it, and tried again
                if let Some(io) = attached.io.take()
                    && let Err(e) = self.io.try_send(Command::Attach(io, self.next_number()))
                {
                    if let Command::Attach(io, _) = e.into_inner() {
                        attached.io = Some(io);
                    }
                    *stage = Stage::HandingOver(attached);
                    return Ok(Step::Waits(Waits {
                        what: "the packet thread takes no commands".into(),
                        ..Waits::default()
                    }));
                }
                self.io_wake.ring();
                self.attached(attached);
                Ok(Step::Done)
            }
        }
    }

    /// The store hears what was read.
    fn adopt(&mut self, reading: Reading, control: &dyn Device) {
        let limits = [control.limit(0), control.limit(1)];
        let ports = self.plant.ports().len();
        let config = reading.config(self.plant.policy(), ports, limits);
        self.store.set_config(config.clone());
        self.config = config;
        let (left, found_fdb) = reading.left(&self.view);
        self.store.adopt(left);
        self.found_fdb = found_fdb;
        self.view.lock().forget_members();
    }

    /// Number of the next attach.
    fn next_number(&self) -> u32 {
        self.attaches.wrapping_add(1).max(FIRST_ATTACH)
    }

    /// The device is there for everybody.
    fn attached(&mut self, attached: Attached) {
        (self.cold_next, self.replaying) = (false, false);
        self.attaches = self.next_number();
        self.control = Some(attached.control);
        self.attach_due = Some(match attached.how {
            Attach::Warm => tandem_store::Attach::Warm,
            Attach::Cold => tandem_store::Attach::Cold,
        });
        self.link = Link::up();
        self.warnings.retain(|w| !w.starts_with("no ASIC"));
        tracing::info!("attached again, epoch {}", self.epoch());
    }
}

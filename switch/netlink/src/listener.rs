//! The thread: reads notifications, applies them to the view, dumps when it must.

mod missing;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink as nl;
use tandem_linux::netlink::{Dump, Family, Protocol, RouteFilter, Step};
use tandem_store::model::{Event, KindSet};

use super::doubts::Doubts;
use super::fib::Lines;
use super::kernel::{Ears, Questions};
use super::pipe::{Counting, Pipe, datagrams};
use super::view::KernelView;
use super::{Config, sysctl};
use tandem_core::source::{Heard, Message, Status};

/// What the owner asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Resync,
    Barrier(u64),
}

/// All that the listener asks the kernel for, in the order of dependency.
pub const DUMPS: [Dump; 17] = [
    Dump::Links,
    Dump::BridgeVlans,
    Dump::Netconf(Family::V4),
    Dump::Netconf(Family::V6),
    Dump::Addrs,
    // before their groups, which are told of with them
    Dump::NexthopBuckets(None),
    Dump::Nexthops,
    Dump::Neighs(Family::V4),
    Dump::Neighs(Family::V6),
    Dump::Fdb,
    Dump::Mdb,
    Dump::Rules(Family::V4),
    Dump::Rules(Family::V6),
    Dump::BaseChains,
    Dump::Qdiscs,
    Dump::Routes(Family::V4, EVERY_ROUTE),
    Dump::Routes(Family::V6, EVERY_ROUTE),
];

const EVERY_ROUTE: RouteFilter = RouteFilter {
    table: None,
    oif: None,
    protocol: None,
};

/// Barriers that wait at once at most: as many as the core has people waiting.
const BARRIERS: usize = tandem_core::WAITERS;

/// Objects of a dump that are taken together: what is remembered of them is looked up together (`KernelView::touch`).
const SOME: usize = 16;

/// How often a dump is repeated at once when the tables don't stand still.
pub(super) const ATTEMPTS: u32 = 8;

/// How long sysctls are not read again after they were, whatever hints at a change.
const SYSCTL_REST: Duration = Duration::from_millis(100);

/// Full dumps because of equal routes that are further apart than this have nothing to do with each other.
const LOST_APART: Duration = Duration::from_secs(10);

/// A kernel without this feature answers so; it has no such objects then.
pub(super) fn is_absent(e: &nl::Error) -> bool {
    matches!(
        e.errno,
        libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::EINVAL
    )
}

/// Why a dump did not come to its end.
enum Stopped {
    /// Notifications were lost, or the thread shall end.
    Lost,
    /// The tables never stood still.
    Restless,
    /// The kernel refused.
    Refused(nl::Error),
}

/// When everything is dumped because of a key's equal routes: later and later where that goes on and on.
#[derive(Debug, Default)]
struct Lost {
    due: Option<Instant>,
    last: Option<Instant>,
    /// Dumps in a row, with little time between them.
    row: u32,
}

impl Lost {
    fn due(&mut self, now: Instant, first: Duration) -> Instant {
        if let Some(due) = self.due {
            return due;
        }
        let apart = self.last.is_none_or(|last| now > last + LOST_APART);
        self.row = if apart { 0 } else { (self.row + 1).min(7) };
        let due = now + first * (1 << self.row);
        (self.due, self.last) = (Some(due), Some(due));
        due
    }
}

/// The thread's state.
#[derive(Debug)]
pub(super) struct Listener {
    config: Config,
    requests: Box<dyn Questions>,
    view: KernelView,
    pipe: Pipe,
    commands: Receiver<Command>,
    shared: Arc<Mutex<Status>>,
    barriers: Vec<u64>,
    /// A full dump is due, not before the given time.
    resync: Option<Instant>,
    /// Full dumps that failed in a row.
    failures: u32,
    /// The full dump that says what became of routes that nothing tells apart.
    lost: Lost,
    /// The check for silent removals: when, and at the latest when.
    check: Option<(Instant, Instant)>,
    sysctl_due: Instant,
    sysctl_read: Instant,
    heard: Arc<Heard>,
    /// The view counts time from here.
    begin: Instant,
}

impl Listener {
    /// Listens to `ears`, and asks `requests`.
    pub fn new(
        config: Config,
        (ears, requests): (Box<dyn Ears>, Box<dyn Questions>),
        channel: Sender<Message>,
        commands: Receiver<Command>,
        wake: Arc<EventFd>,
        stop: Arc<AtomicBool>,
        shared: Arc<Mutex<Status>>,
    ) -> Self {
        let heard = Arc::clone(&config.heard);
        let _ = heard.wake.set(Arc::clone(&wake));
        let now = requests.now();
        Self {
            view: KernelView::new(config.ports.clone()),
            pipe: Pipe::new(
                ears,
                config.backlog,
                channel,
                config.bell.clone(),
                wake,
                stop,
            ),
            config,
            requests,
            commands,
            shared,
            barriers: Vec::new(),
            resync: Some(now),
            failures: 0,
            lost: Lost::default(),
            check: None,
            sysctl_due: now,
            sysctl_read: now,
            heard,
            begin: now,
        }
    }

    /// Runs until the owner drops the source or the channel.
    pub fn run(mut self) {
        while !self.pipe.finished() {
            if let Some(idle) = self.turn() {
                self.pipe.wait(idle);
            }
        }
    }

    /// One turn: read, apply, dump what is due, answer. Gives how long there is nothing to do unless something comes; none:
    /// there is more now.
    pub fn turn(&mut self) -> Option<Duration> {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Resync => self.resync = Some(self.now()),
                Command::Barrier(token) => {
                    // whoever asked the oldest has given up by now: no more than these may wait at once
                    if self.barriers.len() == BARRIERS {
                        self.barriers.remove(0);
                    }
                    self.barriers.push(token);
                }
            }
        }
        self.view.tick(self.millis());
        let heard = self.heard.take();
        if let Some(delays) = heard {
            self.view.heard(delays);
        }
        let asked = !self.barriers.is_empty();
        if asked {
            self.pipe.pump_all();
        } else {
            self.pipe.pump();
        }
        self.note_overrun();
        // a barrier does not hurry it: a dump that fails again and again is not asked for at full speed because somebody waits
        if self.resync.is_some_and(|due| due <= self.now()) {
            self.full_dump();
        }
        self.apply_backlog();
        if self.view.is_lost() && self.resync.is_none() {
            let now = self.now();
            let due = self.lost.due(now, self.config.verify_after);
            self.resync = Some(now).filter(|_| due <= now);
        } else {
            self.lost.due = None;
        }
        if !self.pipe.has_backlog() {
            self.view.caught_up();
        }
        let read = asked || self.sysctl_due <= self.now();
        let due = self.view.querier_due().is_some_and(|d| d <= self.millis());
        let look = read || due || heard.is_some();
        if look {
            self.view.begin_look();
        }
        self.doubt(asked);
        if !self.pipe.has_backlog() {
            self.read_buckets();
        }
        if self.view.take_reread() {
            // soon, but not for every message of a flood
            self.sysctl_due = self.sysctl_due.min(self.sysctl_read + SYSCTL_REST);
        }
        if read || self.sysctl_due <= self.now() {
            self.read_sysctls();
        }
        if look {
            self.look_at_links();
        }
        self.pipe.flush();
        self.note_overrun();
        let unknown = self.view.has_doubts() || self.view.is_mixed() || self.view.is_lost();
        if asked && self.resync.is_none() && !unknown {
            for token in std::mem::take(&mut self.barriers) {
                self.pipe.send(Message::Barrier(token));
            }
        }
        self.publish();
        let waits = self.resync.is_some() || self.lost.due.is_some();
        let idle = !self.pipe.has_backlog() && (self.barriers.is_empty() || waits);
        idle.then(|| self.idle_time())
    }

    /// A dump or a check is due, at once or later.
    pub fn owes(&self) -> bool {
        let due = self.resync.is_some() || self.check.is_some() || self.view.is_lost();
        due || self.pipe.has_backlog()
    }

    /// See [`KernelView::twins6`].
    pub fn twins6(&self) -> Vec<(u32, ipnet::IpNet, u32)> {
        self.view.twins6()
    }

    /// Barriers that wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.barriers.len()
    }

    fn now(&self) -> Instant {
        self.requests.now()
    }

    /// Time as the view has it.
    fn millis(&self) -> u64 {
        u64::try_from(self.now().duration_since(self.begin).as_millis()).unwrap_or(u64::MAX)
    }

    fn idle_time(&self) -> Duration {
        let mut next = self.sysctl_due;
        if let Some(due) = self.view.querier_due() {
            next = next.min(self.begin + Duration::from_millis(due));
        }
        for due in [self.resync, self.lost.due, self.check.map(|(due, _)| due)]
            .into_iter()
            .flatten()
        {
            next = next.min(due);
        }
        next.saturating_duration_since(self.now())
    }

    fn publish(&mut self) {
        self.pipe.status.syncing = self.resync.is_some();
        self.pipe.status.routes = self.view.routes() as u64;
        if let Ok(mut shared) = self.shared.lock() {
            *shared = self.pipe.status;
        }
    }

    /// Notifications were lost: everything must be dumped, a little later if that happens again
    /// and again.
    fn note_overrun(&mut self) {
        if !std::mem::take(&mut self.pipe.overrun) {
            return;
        }
        self.pipe.renew(self.config.receive_buffer);
        self.pipe.status.overruns += 1;
        let wait = Duration::from_millis(10 << self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        self.resync = Some(self.now() + wait);
    }

    /// Applies what was read. When the channel is full, the sink waits and reads on.
    fn apply_backlog(&mut self) {
        if self.resync.is_some() {
            // nothing here is worth more than the dump to come
            self.pipe.forget();
            return;
        }
        // bounded by what is there now, so that dumps and commands get their turn
        self.apply(64);
        if !self.barriers.is_empty() && self.pipe.has_backlog() && !self.pipe.overrun {
            // all of it, before the barrier
            self.apply_backlog();
        }
    }

    /// Applies all that was read.
    fn catch_up(&mut self) -> Result<(), Stopped> {
        self.apply(self.pipe.chunks());
        match self.pipe.overrun {
            true => Err(Stopped::Lost),
            false => Ok(()),
        }
    }

    /// Applies so much of what was read.
    fn apply(&mut self, chunks: usize) {
        for _ in 0..chunks {
            let Some(chunk) = self.pipe.pop() else { break };
            let (view, pipe) = (&mut self.view, &mut self.pipe);
            datagrams(&chunk, |protocol, datagram| {
                nl::decode(protocol, datagram, |event| match event {
                    // few objects come by that socket: they are read again, not all routes
                    nl::Event::Overrun if protocol == Protocol::Netfilter => {
                        view.doubt_base_chains();
                    }
                    nl::Event::Overrun => pipe.overrun = true,
                    event => view.event(event, &mut |e| pipe.push(e)),
                });
            });
            if self.pipe.done(chunk) {
                break;
            }
        }
    }

    // -- dumps -------------------------------------------------------------------------------

    /// One dump, step by step; notifications are read on. `Ok(false)`: the kernel has no such objects.
    fn dump(
        &mut self,
        what: Dump,
        mut each: impl FnMut(&mut KernelView, &mut Pipe, nl::Object),
    ) -> Result<bool, Stopped> {
        let ended = |e: nl::Error| match e.errno {
            libc::EINTR => Stopped::Restless,
            _ => Stopped::Refused(e),
        };
        self.requests.begin(what).map_err(ended)?;
        self.view.begin_dump();
        let mut some = Vec::with_capacity(SOME);
        loop {
            let (view, pipe) = (&mut self.view, &mut self.pipe);
            let mut take = |some: &mut Vec<nl::Object>| {
                view.touch(some);
                some.drain(..).for_each(|object| each(view, pipe, object));
            };
            let step = self.requests.step(&mut |object| {
                some.push(object);
                if some.len() == SOME {
                    take(&mut some);
                }
            });
            take(&mut some);
            self.pipe.pump();
            if self.pipe.overrun || self.pipe.finished() {
                return Err(Stopped::Lost);
            }
            match step {
                Ok(Step::More) => {}
                Ok(Step::Done { interrupted: false }) => return Ok(true),
                Ok(Step::Done { interrupted: true }) => {
                    self.pipe.status.interrupted += 1;
                    return Err(Stopped::Restless);
                }
                Err(e) if is_absent(&e) => return Ok(false),
                Err(e) => return Err(ended(e)),
            }
        }
    }

    /// The same, repeated while the tables don't stand still, `before` once: what any of the dumps
    /// holds was there, and if it is no longer, the backlog says so.
    ///
    /// A dump that finds its place again by counting ([`Counting`]) is only trusted alone when
    /// nothing of its kind changed in its time; otherwise all attempts count together, and lookups with them (`look_up_missing`).
    fn dump_steady(
        &mut self,
        what: Dump,
        before: impl Fn(&mut KernelView),
        each: impl Fn(&mut KernelView, &mut Pipe, nl::Object),
    ) -> Result<bool, Stopped> {
        let counting = match what {
            Dump::Routes(Family::V6, _) => Some(Counting::Routes6),
            Dump::Neighs(_) | Dump::Fdb => Some(Counting::Neighs),
            Dump::Mdb => Some(Counting::Groups),
            _ => None,
        };
        let mut whole = true;
        before(&mut self.view);
        for attempt in 0..ATTEMPTS {
            let changes = counting.map(|c| self.pipe.changes(c));
            match self.dump(what, &each) {
                Ok(there) => {
                    self.pipe.pump_all();
                    if !there || changes == counting.map(|c| self.pipe.changes(c)) {
                        return Ok(there);
                    }
                    self.pipe.status.interrupted += 1;
                }
                Err(Stopped::Restless) => whole = false,
                other => return other,
            }
            self.pipe.pause(Duration::from_millis(u64::from(attempt)));
        }
        if counting.is_none() || !whole {
            return Err(Stopped::Restless);
        }
        if let Dump::Routes(Family::V6, filter) = what {
            self.look_up_missing(filter.oif)?;
        }
        Ok(true)
    }

    fn full_dump(&mut self) {
        self.pipe.forget();
        self.pipe.pump_all();
        self.pipe.forget();
        self.pipe.overrun = false;
        self.settle();
        self.publish();
        let result = self.try_full_dump();
        self.check = None;
        match result {
            Ok(()) => {
                self.resync = None;
                self.failures = 0;
                self.pipe.status.resyncs += 1;
            }
            Err(Stopped::Lost) => {
                self.pipe.overrun = true; // counted and rescheduled by the caller
            }
            Err(stopped) => {
                let wait = Duration::from_millis(50 << self.failures.min(6));
                self.failures = self.failures.saturating_add(1);
                self.resync = Some(self.now() + wait);
                let why = match stopped {
                    Stopped::Refused(e) => e.to_string(),
                    _ => "the kernel's tables change faster than they can be read".to_owned(),
                };
                self.pipe.send(Message::Warning(format!(
                    "netlink: full dump failed, next attempt in {} ms: {why}",
                    wait.as_millis()
                )));
            }
        }
        self.note_overrun();
    }

    fn try_full_dump(&mut self) -> Result<(), Stopped> {
        let pipe = &mut self.pipe;
        self.view.begin_full(&mut |e| pipe.push(e));
        for what in DUMPS {
            self.dump_steady(
                what,
                |_| {},
                |view, pipe, object| view.dumped(object, &mut |e| pipe.push(e)),
            )?;
        }
        self.dump_filters()?;
        self.read_sysctls();
        let hidden = self.read_hidden();
        let pipe = &mut self.pipe;
        self.view.end_full(hidden.as_ref(), &mut |e| pipe.push(e));
        self.pipe.flush();
        Ok(())
    }

    /// What shows IPv6 routes that no dump does, where there may be such.
    fn read_hidden(&self) -> Option<Lines> {
        Lines::read(&|path| self.requests.file(path), &self.view.hiding()?)
    }

    /// The filters of all devices that have some.
    fn dump_filters(&mut self) -> Result<(), Stopped> {
        for what in self.view.filter_dumps() {
            self.dump_steady(
                what,
                |_| {},
                |view, pipe, object| view.dumped(object, &mut |e| pipe.push(e)),
            )?;
        }
        Ok(())
    }

    /// Runs the check for silent removals when it is due (`now`: at once).
    fn doubt(&mut self, now: bool) {
        if !self.view.has_doubts() || self.resync.is_some() {
            self.check = None;
            return;
        }
        let time = self.now();
        let (due, latest) = self.check.unwrap_or((
            time + self.config.verify_after,
            time + self.config.verify_after * 5,
        ));
        if !now && due > time {
            // a burst of causes: wait until it is over, but not for ever
            let due = if self.pipe.has_backlog() {
                latest.min(time + self.config.verify_after)
            } else {
                due
            };
            self.check = Some((due, latest));
            return;
        }
        self.check = None;
        let doubts = self.view.take_doubts();
        match self.verify(&doubts) {
            Ok(()) => {}
            Err(Stopped::Lost) => self.pipe.overrun = true,
            Err(_) => self.resync = Some(time), // can't be settled by a look at a part
        }
    }

    fn verify(&mut self, what: &Doubts) -> Result<(), Stopped> {
        self.pipe.status.verifications += 1;
        self.settle();
        if what.nexthops {
            self.verify_nexthops()?;
        }
        for family in [Family::V4, Family::V6] {
            for device in what.devices(family) {
                self.verify_routes(device, family)?;
            }
        }
        for kinds in [
            KindSet::RULE,
            KindSet::BASE_CHAIN,
            KindSet::BRIDGE_VLAN,
            KindSet::FILTER,
            KindSet::MDB,
        ] {
            if what.kinds & kinds.0 != 0 {
                self.verify_kind(kinds)?;
            }
        }
        Ok(())
    }

    /// What was told before now has happened in full when this returns.
    fn settle(&mut self) {
        if let Err(e) = self.requests.settle() {
            tracing::debug!("netlink source: {e}");
        }
    }

    fn verify_nexthops(&mut self) -> Result<(), Stopped> {
        let mut all = Vec::new();
        for _ in 0..ATTEMPTS {
            all.clear();
            match self.dump(Dump::Nexthops, |_, _, object| {
                if let nl::Object::Nexthop(n) = object {
                    all.push(n);
                }
            }) {
                Err(Stopped::Restless) => {}
                Err(other) => return Err(other),
                Ok(_) => {
                    // a route may have left what the dump no longer has
                    self.view.begin_nexthops();
                    self.pipe.pump_all();
                    self.catch_up()?;
                    let pipe = &mut self.pipe;
                    let gone = self.view.check_nexthops(all, &mut |e| pipe.push(e));
                    self.pipe.status.silent += gone as u64;
                    return Ok(());
                }
            }
        }
        Err(Stopped::Restless)
    }

    /// Buckets of resilient groups that may have moved: at once, a flow goes by them.
    fn read_buckets(&mut self) {
        if self.resync.is_some() {
            return; // which reads them all
        }
        for group in self.view.take_mixed() {
            match self.read_buckets_of(group) {
                Ok(()) => {}
                Err(Stopped::Lost) => self.pipe.overrun = true,
                // it is gone, and its message comes
                Err(Stopped::Refused(e)) if e.errno == libc::ENOENT => {
                    tracing::debug!("netlink source: {e}");
                }
                // a dump of everything is tried again until it succeeds
                Err(Stopped::Restless | Stopped::Refused(_)) => self.resync = Some(self.now()),
            }
        }
    }

    fn read_buckets_of(&mut self, group: u32) -> Result<(), Stopped> {
        for _ in 0..ATTEMPTS {
            self.view.begin_buckets(group);
            let what = Dump::NexthopBuckets(Some(group));
            match self.dump(what, |view, pipe, object| {
                view.dumped(object, &mut |e| pipe.push(e));
            }) {
                Err(Stopped::Restless) => {}
                Err(other) => return Err(other),
                Ok(_) => {
                    let pipe = &mut self.pipe;
                    self.view.end_buckets(group, &mut |e| pipe.push(e));
                    return Ok(());
                }
            }
        }
        Err(Stopped::Restless)
    }

    fn verify_routes(&mut self, device: Option<u32>, family: Family) -> Result<(), Stopped> {
        let v6 = family == Family::V6;
        let filter = RouteFilter {
            oif: device,
            ..EVERY_ROUTE
        };
        let done = self.dump_steady(
            Dump::Routes(family, filter),
            |view| view.begin_check(device, v6),
            |view, pipe, object| view.dumped(object, &mut |e| pipe.push(e)),
        );
        match done {
            Ok(_) => {}
            // the device is gone, and all its routes
            Err(Stopped::Refused(e)) if e.errno == libc::ENODEV => {
                self.view.begin_check(device, v6);
            }
            Err(other) => return Err(other),
        }
        if self.view.take_disorder() {
            return self.verify_routes(None, family);
        }
        // what the dump missed may have gone by a message that came meanwhile, and something else may be in its place
        self.catch_up()?;
        if v6 && self.view.spare_hidden() {
            let lines = self.read_hidden();
            self.view.check_spared(lines.as_ref());
        }
        let pipe = &mut self.pipe;
        let gone = self.view.end_check(device, v6, &mut |e| pipe.push(e));
        self.pipe.status.silent += gone as u64;
        Ok(())
    }

    /// Kinds of which there are few: dumped whole, swept by the store.
    fn verify_kind(&mut self, kinds: KindSet) -> Result<(), Stopped> {
        let dumps: &[Dump] = match kinds {
            KindSet::RULE => &[Dump::Rules(Family::V4), Dump::Rules(Family::V6)],
            KindSet::BRIDGE_VLAN => &[Dump::BridgeVlans],
            KindSet::FILTER => &[Dump::Qdiscs],
            KindSet::MDB => &[Dump::Mdb],
            _ => &[Dump::BaseChains],
        };
        let pipe = &mut self.pipe;
        self.view.begin_kinds(kinds, &mut |e| pipe.push(e));
        for what in dumps {
            self.dump_steady(
                *what,
                |_| {},
                |view, pipe, object| view.dumped(object, &mut |e| pipe.push(e)),
            )?;
        }
        if kinds == KindSet::FILTER {
            self.dump_filters()?;
        }
        let pipe = &mut self.pipe;
        self.view.end_kinds(&mut |e| pipe.push(e));
        Ok(())
    }

    /// A device on top of a bridge but in another namespace makes the bridge promiscuous, and no message says so.
    fn look_at_links(&mut self) {
        if self.resync.is_some() || !self.view.has_bridge() {
            return;
        }
        self.view.tick(self.millis());
        let done = self.dump(Dump::Links, |view, pipe, object| {
            view.dumped(object, &mut |e| pipe.push(e));
        });
        match done {
            Err(Stopped::Lost) => self.pipe.overrun = true,
            Err(Stopped::Refused(e)) => tracing::debug!("netlink source: {e}"),
            // interrupted: what it held is good, the rest comes next time
            Ok(_) | Err(Stopped::Restless) => {}
        }
    }

    fn read_sysctls(&mut self) {
        self.sysctl_read = self.now();
        self.sysctl_due = self.sysctl_read + self.config.sysctl_every;
        let pipe = &mut self.pipe;
        let mut sink = |e: Event| pipe.push(e);
        let ipsec = self.requests.ipsec_policies().unwrap_or_else(|e| {
            tracing::debug!("netlink source: {e}");
            false
        });
        let read = |path: &str| self.requests.file(path);
        self.view
            .settings(sysctl::settings(ipsec, &read), &mut sink);
        let redirects = sysctl::redirects(self.view.interfaces(), &read);
        self.view.redirects(redirects, &mut sink);
        let without6 = sysctl::without_ipv6(self.view.interfaces(), &read);
        self.view.without_ipv6(without6, &mut sink);
    }
}

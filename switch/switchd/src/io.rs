//! The io thread: packets between TAPs and rings, the chip's events.
//!
//! ```text
//!   event ring ─► FDB write-back (kernel), carrier of the TAP, then events for the core
//!   rx ring ────► [all events below event_seq handled] ─► TAP queue: trapped | copy
//!   TAP queues ─► tx ring
//! ```
//!
//! **Order.** A learn event reaches the kernel's FDB before the frame that caused it: a packet is
//! written to its TAP only after the events that its `event_seq` names.
//!
//! The kernel's bridge learns as well, from what it is given, and takes over what the chip learned only where the port is
//! another: a frame that was on its way here while its station moved. Of such a frame the chip's later word is written once
//! more behind it ([`tandem_core::places`]).
//!
//! **Bounds.** Nothing is queued here. The rx ring is bounded by the device (which keeps the trap
//! classes apart), a full TAP drops, a full tx ring leaves frames in the TAP's own queue (1000,
//! `ip link` shows its drops), events for the core that find their channel full become "read the
//! chip's FDB again". Every drop has a counter in [`IoStats`].

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, Release},
};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError};
use rustix::event::epoll;
use tandem_core::io::{Command, IoEvent, IoStats, Signals};
use tandem_core::membership;
use tandem_core::places::{self, Places};
use tandem_core::source::{Heard, Write, WriteBack};
use tandem_core::view::{Meaning, SharedView};
use tandem_linux::eventfd::EventFd;
use tandem_sal::{Event, RxMeta, SalError, SalIo};

use crate::forward_mark::{QUEUE_COPY, QUEUE_TRAPPED, QUEUES};
use crate::ports::Port;

/// Packets of one ring or queue before the others get their turn.
const BURST: usize = 32;
/// Events of one batch of write-backs.
const EVENTS: usize = 256;
/// A frame from a TAP at most: 64 KiB of L3 and headers.
const FRAME_MAX: usize = 65536 + 64;
/// Rounds of work before the thread looks at its commands.
const ROUNDS: usize = 64;
/// How long a full tx ring is left alone.
const TX_PAUSE: Duration = Duration::from_micros(200);

/// What the thread is given.
pub struct Parts {
    /// The ports' netdevs.
    pub ports: Arc<Vec<Port>>,
    /// Writes to the kernel's FDB.
    pub writer: Box<dyn WriteBack>,
    /// Which domain is which bridge.
    pub view: SharedView,
    /// From the core.
    pub commands: Receiver<Command>,
    /// Rung with a command or to stop.
    pub wake: Arc<EventFd>,
    /// To the core.
    pub events: Sender<IoEvent>,
    /// Rung with events.
    pub core_wake: Arc<EventFd>,
    /// Counters.
    pub stats: Arc<IoStats>,
    /// To the core, beside the channel.
    pub signals: Arc<Signals>,
    /// To the source: what its kernel hears and tells nobody.
    pub heard: Arc<Heard>,
    /// Ends the thread.
    pub stop: Arc<AtomicBool>,
}

/// Epoll tokens below are TAP queues: port index × `QUEUES` + queue.
const TOKEN_WAKE: u64 = u64::MAX;
const TOKEN_RING: u64 = u64::MAX - 1;

struct Io {
    p: Parts,
    sal: Option<SalIo>,
    /// The number that the core gave it.
    attach: u32,
    epoll: OwnedFd,
    /// Index into `ports` by port number.
    by_port: Vec<Option<usize>>,
    /// TAP queues that may have frames.
    ready: Vec<bool>,
    frame: Vec<u8>,
    buf: Vec<u8>,
    writes: Vec<Write>,
    /// Each with its number.
    events: Vec<(Event, u32)>,
    /// Where the chip saw stations last.
    places: Places,
    tx_blocked: bool,
    /// The TAP queue whose turn it is to send first.
    tx_next: usize,
    barriers: Vec<u64>,
}

/// The thread's state, without a device.
fn start(parts: Parts) -> anyhow::Result<Io> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let add = |fd: std::os::fd::BorrowedFd<'_>, token: u64| {
        epoll::add(
            &epoll,
            fd,
            epoll::EventData::new_u64(token),
            epoll::EventFlags::IN,
        )
    };
    add(parts.wake.as_fd(), TOKEN_WAKE)?;
    let mut by_port = Vec::new();
    for (i, port) in parts.ports.iter().enumerate() {
        let n = usize::from(port.port);
        if by_port.len() <= n {
            by_port.resize(n + 1, None);
        }
        if let Some(slot) = by_port.get_mut(n) {
            *slot = Some(i);
        }
        for (q, tap) in port.queues.iter().enumerate() {
            add(tap.as_fd(), (i * QUEUES + q) as u64)?;
        }
    }
    let ready = vec![false; parts.ports.len() * QUEUES];
    Ok(Io {
        p: parts,
        sal: None,
        attach: 0,
        epoll,
        by_port,
        ready,
        frame: Vec::with_capacity(FRAME_MAX),
        buf: vec![0; FRAME_MAX],
        writes: Vec::with_capacity(EVENTS),
        events: Vec::with_capacity(EVENTS),
        places: Places::default(),
        tx_blocked: false,
        tx_next: 0,
        barriers: Vec::new(),
    })
}

/// Runs until `stop`; an error is of the system (epoll) and ends the daemon.
pub fn run(parts: Parts) -> anyhow::Result<()> {
    let mut io = start(parts)?;
    while !io.p.stop.load(Relaxed) {
        io.commands();
        let worked = match io.work() {
            Ok(worked) => worked,
            Err(e) => {
                tracing::warn!("io: {e}");
                io.lose();
                true
            }
        };
        if worked {
            io.look()?;
            continue;
        }
        io.pass();
        if io.arm() {
            io.sleep()?;
        } else {
            io.disarm();
        }
    }
    Ok(())
}

impl Io {
    fn commands(&mut self) {
        while let Ok(command) = self.p.commands.try_recv() {
            match command {
                Command::Attach(sal, number) => {
                    self.drop_rings();
                    // the numbers begin anew
                    self.places = Places::default();
                    for fd in sal.fds() {
                        // a duplicate of the same eventfd is there after a quick reattach
                        let _ = epoll::add(
                            &self.epoll,
                            fd,
                            epoll::EventData::new_u64(TOKEN_RING),
                            epoll::EventFlags::IN,
                        );
                    }
                    self.sal = Some(*sal);
                    self.attach = number;
                }
                Command::Detach => self.drop_rings(),
                Command::Barrier(token) => self.barriers.push(token),
            }
        }
    }

    /// Answers barriers when nothing waits any more.
    fn pass(&mut self) {
        for token in std::mem::take(&mut self.barriers) {
            self.p.signals.passed.fetch_max(token, Release);
            self.p.core_wake.ring();
        }
    }

    fn drop_rings(&mut self) {
        // gathered when the ring died: the next attach has other numbers, and reads the FDB
        self.events.clear();
        if let Some(sal) = self.sal.take() {
            for fd in sal.fds() {
                let _ = epoll::delete(&self.epoll, fd);
            }
        }
    }

    /// A ring is dead: the core attaches again.
    fn lose(&mut self) {
        self.drop_rings();
        self.p.signals.dead.store(self.attach, Release);
        self.p.core_wake.ring();
    }

    fn tell(&mut self, event: IoEvent) {
        match self.p.events.try_send(event) {
            Ok(()) => {}
            // the core reads the table when it finds the channel was full: see Core::io_events
            Err(TrySendError::Full(_)) => {
                self.p.stats.events_lost.fetch_add(1, Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => self.p.stop.store(true, Relaxed),
        }
        self.p.core_wake.ring();
    }

    /// Work in turns. False: there was none.
    fn work(&mut self) -> Result<bool, SalError> {
        let mut any = false;
        for _ in 0..ROUNDS {
            let mut now = self.events()?;
            now |= self.receive()?;
            now |= self.transmit()?;
            if let Some(sal) = &mut self.sal {
                sal.flush();
            }
            any |= now;
            if !now {
                break;
            }
        }
        Ok(any)
    }

    /// The chip's events, a batch.
    fn events(&mut self) -> Result<bool, SalError> {
        let Some(sal) = &mut self.sal else {
            return Ok(false);
        };
        while self.events.len() < EVENTS {
            let Some(e) = sal.event()? else { break };
            self.events.push((e, sal.next_event().wrapping_sub(1)));
        }
        Ok(self.handle_events())
    }

    /// Writes to the kernel first, then tells the core.
    fn handle_events(&mut self) -> bool {
        if self.events.is_empty() {
            return false;
        }
        let events = std::mem::take(&mut self.events);
        let mut read_fdb = false;
        {
            let mut view = self.p.view.lock();
            for (e, seq) in &events {
                self.places.note(e, *seq);
                match view.meaning(e) {
                    Meaning::Write(w) => self.writes.push(w),
                    Meaning::Unknown => read_fdb = true,
                    Meaning::Nothing => {}
                }
            }
        }
        self.write_back();
        for (e, _) in &events {
            match *e {
                Event::Learn { .. } | Event::Move { .. } | Event::Age { .. } => {
                    self.tell(IoEvent::Fdb(*e));
                }
                Event::Lost { .. } => read_fdb = true,
                Event::Link { port, up, .. } => self.carrier(port, up),
                Event::TrapDrop { class, count } => {
                    if let Some(c) = self.p.stats.policed.get(class as usize) {
                        c.fetch_add(count, Relaxed);
                    }
                }
            }
        }
        if read_fdb {
            self.tell(IoEvent::ReadFdb);
        }
        self.events = events;
        self.events.clear();
        true
    }

    fn write_back(&mut self) {
        if self.writes.is_empty() {
            return;
        }
        let stats = &self.p.stats;
        let mut refused = 0u64;
        let done = self.p.writer.write(&self.writes, &mut |_, e| {
            refused += 1;
            tracing::debug!("FDB write-back: {e}");
        });
        if let Err(e) = done {
            refused = self.writes.len() as u64;
            tracing::warn!("FDB write-back: {e}");
        }
        let all = self.writes.len() as u64;
        stats.fdb_written.fetch_add(all - refused.min(all), Relaxed);
        stats.fdb_refused.fetch_add(refused, Relaxed);
        self.writes.clear();
    }

    fn carrier(&self, port: u16, up: bool) {
        let Some(p) = self.port(port) else { return };
        if let Err(e) = p.set_carrier(up) {
            tracing::warn!("{}: carrier: {e}", p.name);
        }
    }

    fn port(&self, port: u16) -> Option<&Port> {
        let i = (*self.by_port.get(usize::from(port))?)?;
        self.p.ports.get(i)
    }

    /// Gathers the events that a packet waits for, a batch. False: there are none (any more).
    fn events_before(&mut self, meta: &RxMeta) -> Result<bool, SalError> {
        let Some(sal) = &mut self.sal else {
            return Ok(false);
        };
        while self.events.len() < EVENTS {
            let Some(e) = sal.event_before(meta)? else {
                break;
            };
            self.events.push((e, sal.next_event().wrapping_sub(1)));
        }
        Ok(!self.events.is_empty())
    }

    /// Packets from the chip.
    fn receive(&mut self) -> Result<bool, SalError> {
        let mut n = 0;
        while n < BURST {
            let Some(sal) = &mut self.sal else { break };
            let Some(meta) = sal.receive(&mut self.frame)? else {
                break;
            };
            n += 1;
            while self.events_before(&meta)? {
                self.handle_events();
            }
            if !meta.forwarded() {
                let slow = &self.p.stats.slow;
                slow.note(meta.reason, meta.port, meta.fid, &self.frame);
            }
            self.to_tap(meta.port, meta.forwarded());
            self.late(&meta);
            membership::listen(meta.reason, &self.frame, &self.p.heard);
        }
        Ok(n > 0)
    }

    /// The kernel has just learned from a frame: where the chip knows better since, it is told again.
    fn late(&mut self, meta: &RxMeta) {
        let Some(mac) = places::source(&self.frame) else {
            return;
        };
        let Some((event, set)) = self.places.newer(meta, mac) else {
            return;
        };
        {
            let mut view = self.p.view.lock();
            if let Meaning::Write(w) = view.late(&event, set) {
                if let (Write::FdbLearned { ifindex, .. }, Event::Move { port, .. }) = (&w, event)
                    && let Some(there) = view.port_of(*ifindex).filter(|p| *p != port)
                {
                    self.places.set(meta.fid, mac, there);
                }
                self.writes.push(w);
                self.p.stats.fdb_late.fetch_add(1, Relaxed);
            }
        }
        self.write_back();
    }

    fn to_tap(&self, port: u16, forwarded: bool) {
        let stats = &self.p.stats;
        let queue = if forwarded { QUEUE_COPY } else { QUEUE_TRAPPED };
        let Some(tap) = self.port(port).and_then(|p| p.queues.get(queue)) else {
            stats.rx_no_port.fetch_add(1, Relaxed);
            return;
        };
        let counter = match tap.write(&self.frame) {
            Ok(_) if forwarded => &stats.rx_copies,
            Ok(_) => &stats.rx_trapped,
            // EIO: the netdev is down
            Err(e) if e.raw_os_error() == Some(libc::EIO) => &stats.rx_port_down,
            Err(_) => &stats.rx_refused,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Packets from the kernel. A full ring ends the round; the next one begins with the queue that
    /// had to wait, so that no port starves behind another.
    fn transmit(&mut self) -> Result<bool, SalError> {
        let mut any = false;
        self.tx_blocked = false;
        let queues = self.ready.len();
        let first = self.tx_next;
        for n in 0..queues {
            let token = (first + n) % queues;
            if !self.ready.get(token).copied().unwrap_or(false) {
                continue;
            }
            let Some(port) = self.p.ports.get(token / QUEUES) else {
                continue;
            };
            let Some(tap) = port.queues.get(token % QUEUES) else {
                continue;
            };
            let room = match &mut self.sal {
                Some(sal) => sal.tx_free()?.min(BURST),
                None => BURST,
            };
            if room == 0 {
                self.tx_blocked = true;
                self.tx_next = token;
                self.p.stats.tx_full.fetch_add(1, Relaxed);
                break;
            }
            for _ in 0..room {
                match tap.read(&mut self.buf) {
                    Ok(n) => {
                        any = true;
                        let frame = self.buf.get(..n).unwrap_or(&[]);
                        let counter = match &mut self.sal {
                            None => &self.p.stats.tx_detached,
                            Some(sal) => {
                                if sal.transmit(port.port, 0, frame)? {
                                    &self.p.stats.tx
                                } else {
                                    &self.p.stats.tx_refused
                                }
                            }
                        };
                        counter.fetch_add(1, Relaxed);
                    }
                    Err(e) => {
                        if let Some(r) = self.ready.get_mut(token) {
                            *r = false;
                        }
                        if e.kind() != std::io::ErrorKind::WouldBlock
                            && e.kind() != std::io::ErrorKind::Interrupted
                        {
                            // the netdev was deleted: its descriptor would be ready for ever
                            let _ = epoll::delete(&self.epoll, tap.as_fd());
                            tracing::error!(
                                "{}: {e}: the netdev is gone; restart switchd to make it again",
                                port.name
                            );
                        }
                        break;
                    }
                }
            }
        }
        Ok(any)
    }

    /// Asks for doorbells. True: the thread may sleep.
    fn arm(&mut self) -> bool {
        match &mut self.sal {
            None => true,
            Some(sal) => sal.arm().unwrap_or(false),
        }
    }

    fn sleep(&mut self) -> anyhow::Result<()> {
        if self.tx_blocked {
            // frames wait in the TAPs, which would end any sleep at once
            std::thread::sleep(TX_PAUSE);
            return self.look();
        }
        self.wait(None)?;
        self.disarm();
        Ok(())
    }

    fn disarm(&mut self) {
        if let Some(sal) = &mut self.sal {
            sal.disarm();
        }
    }

    /// Which TAPs have frames, without sleeping.
    fn look(&mut self) -> anyhow::Result<()> {
        self.wait(Some(Duration::ZERO))
    }

    fn wait(&mut self, limit: Option<Duration>) -> anyhow::Result<()> {
        let mut list: Vec<epoll::Event> = Vec::with_capacity(64);
        tandem_linux::epoll::wait(&self.epoll, limit, &mut list)?;
        for e in &list {
            match e.data.u64() {
                TOKEN_WAKE => {
                    self.p.wake.drain();
                }
                TOKEN_RING => {}
                token => {
                    if let Some(r) = usize::try_from(token)
                        .ok()
                        .and_then(|t| self.ready.get_mut(t))
                    {
                        *r = true;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_core::source::SourceError;

    struct Nobody;

    impl WriteBack for Nobody {
        fn write(
            &mut self,
            _: &[Write],
            _: &mut dyn FnMut(usize, SourceError),
        ) -> Result<(), SourceError> {
            Ok(())
        }
    }

    /// A domain's number may be another domain's after the next attach.
    #[test]
    fn events_of_a_dead_ring_are_not_the_next_ones() {
        let (_to, commands) = crossbeam_channel::bounded(1);
        let (events, told) = crossbeam_channel::bounded(8);
        let event = || Arc::new(EventFd::new().unwrap());
        let mut io = start(Parts {
            ports: Arc::default(),
            writer: Box::new(Nobody),
            view: SharedView::default(),
            commands,
            wake: event(),
            events,
            core_wake: event(),
            stats: Arc::default(),
            signals: Arc::default(),
            heard: Arc::default(),
            stop: Arc::default(),
        })
        .unwrap();
        let learned = Event::Learn {
            fid: 7,
            mac: [2, 0, 0, 0, 0, 1],
            port: 1,
        };
        io.events.push((learned, 0));
        io.attach = 7;
        io.lose();
        io.handle_events();
        assert_eq!(told.try_iter().count(), 0);
        assert_eq!(io.p.signals.dead.load(Relaxed), 7);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The packet thread: frames between the chip, the TAPs of its VLANs, and the ports; the chip's events.
//!
//! ```text
//!   event ring ─► database (stations, carriers), carriers of TAPs, then events for the core
//!   rx ring ────► [all events below event_seq handled] ─► TAP of the VLAN
//!                                                     └─► tx ring: what the chip has not forwarded itself
//!   TAPs ───────► tx ring, one frame for each port of the VLAN that is to have it
//! ```
//!
//! **Order.** A station is in the database before the frame by which it was learned is given on.
//!
//! **Bounds.** Nothing is queued here: a full TAP drops, a full tx ring leaves frames in the TAPs' own queues, and takes what
//! trapped frames would send. Every drop has a counter in [`IoStats`].

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, Release},
};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError};
use rustix::event::epoll;
use tandem_core::io::{Command, IoEvent, IoStats, Signals};
use tandem_core::places::{self, Places};
use tandem_core::source::{Write, WriteBack};
use tandem_core::view::{Meaning, SharedView};
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::ifreq::ControlSocket;
use tandem_linux::tap::Tap;
use tandem_sal::{Event, RxMeta, SalError, SalIo};
use tandem_swchip::{Copies, Devices, Done, Onward, Snoop, Taps, Tree, copies, is_lldp};
use tandem_vlans::{State, Switch, group_of_port, tagged, untagged};

mod devices;
mod snooping;

/// Frames of one ring or TAP before the others get their turn.
const BURST: usize = 32;
/// Events of one batch of write-backs.
const EVENTS: usize = 256;
/// A frame from a TAP at most: its MTU and headers.
const FRAME_MAX: usize = 65536 + 64;
/// Rounds of work before the thread looks at its commands.
const ROUNDS: usize = 64;
/// How long a full tx ring is left alone.
const TX_PAUSE: Duration = Duration::from_micros(200);
/// How often it is looked for stations that the CPU has not heard for long, while there are any.
const AGE: Duration = Duration::from_secs(1);
/// Room that a frame to a VLAN wants in the tx ring at most, of rings that have less than the front panel has ports.
const ROOM: usize = 64;

/// What the thread is given.
pub struct Parts {
    /// The database.
    pub switch: Switch,
    /// TAPs of VLANs.
    pub taps: Arc<Taps>,
    /// The spanning tree.
    pub tree: Arc<Tree>,
    /// The devices of ports.
    pub devices: Arc<Devices>,
    /// IGMP and MLD snooping.
    pub snoop: Arc<Snoop>,
    /// Ports of the front panel.
    pub ports: usize,
    /// Writes to the sources.
    pub writer: Box<dyn WriteBack>,
    /// Which domain is which bridge.
    pub view: SharedView,
    /// From the core.
    pub commands: Receiver<Command>,
    /// Rung with a command, with a change of the TAPs, or to stop.
    pub wake: Arc<EventFd>,
    /// To the core.
    pub events: Sender<IoEvent>,
    /// Rung with events.
    pub core_wake: Arc<EventFd>,
    /// Counters.
    pub stats: Arc<IoStats>,
    /// To the core, beside the channel.
    pub signals: Arc<Signals>,
    /// Ends the thread.
    pub stop: Arc<AtomicBool>,
}

/// The group address of bridges.
const BRIDGES: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];

/// Epoll tokens below are VLANs, and from here on ports.
const TOKEN_PORT: u64 = 1 << 32;
const TOKEN_WAKE: u64 = u64::MAX;
const TOKEN_RING: u64 = u64::MAX - 1;

/// A VLAN's TAP.
struct Line {
    vid: u16,
    tap: Arc<Tap>,
    /// Its MAC.
    mac: [u8; 6],
    /// It may have frames.
    ready: bool,
    /// The carrier that it was given.
    carrier: Option<bool>,
}

struct Io {
    p: Parts,
    sal: Option<SalIo>,
    /// The number that the core gave it.
    attach: u32,
    epoll: OwnedFd,
    /// Ports of the front panel: groups of the chip have the numbers behind them.
    front: u16,
    /// By VLAN.
    lines: Vec<Line>,
    /// Devices of ports: which port, and whether it may have frames.
    cables: Vec<(u16, Arc<Tap>, bool)>,
    /// Of them, as they are in `cables`.
    cabled: u64,
    /// Of the TAPs, as they are in `lines`.
    version: u64,
    frame: Vec<u8>,
    buf: Vec<u8>,
    writes: Vec<Write>,
    /// Each with its number.
    events: Vec<(Event, u32)>,
    /// Where the chip saw stations last.
    places: Places,
    /// Stations may have to be forgotten here.
    ages: bool,
    /// When it is looked for them next: a walk through all of them, and not one for each packet.
    age_at: u64,
    /// When the spanning tree or snooping has something to do, ns.
    tick: Option<u64>,
    tx_blocked: bool,
    /// The TAP whose turn it is to send first.
    tx_next: usize,
    barriers: Vec<u64>,
}

fn add(epoll: &OwnedFd, fd: BorrowedFd<'_>, token: u64) -> rustix::io::Result<()> {
    let data = epoll::EventData::new_u64(token);
    epoll::add(epoll, fd, data, epoll::EventFlags::IN)
}

/// Runs until `stop`; an error is of the system (epoll) and ends the daemon.
///
/// # Errors
/// One line.
pub fn run(parts: Parts) -> anyhow::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    add(&epoll, parts.wake.as_fd(), TOKEN_WAKE)?;
    let mut io = Io {
        front: u16::try_from(parts.ports).unwrap_or(u16::MAX),
        p: parts,
        sal: None,
        attach: 0,
        epoll,
        lines: Vec::new(),
        cables: Vec::new(),
        cabled: 0,
        version: 0,
        frame: Vec::with_capacity(FRAME_MAX),
        buf: vec![0; FRAME_MAX],
        writes: Vec::with_capacity(EVENTS),
        events: Vec::with_capacity(EVENTS),
        places: Places::default(),
        ages: false,
        age_at: 0,
        tick: None,
        tx_blocked: false,
        tx_next: 0,
        barriers: Vec::new(),
    };
    while !io.p.stop.load(Relaxed) {
        io.commands();
        io.refresh();
        let worked = match io.work() {
            Ok(worked) => worked,
            Err(e) => {
                tracing::warn!("packets: {e}");
                io.lose();
                true
            }
        };
        if worked {
            io.wait(Some(Duration::ZERO))?;
            continue;
        }
        io.pass();
        if io.arm() {
            io.sleep()?;
        }
        io.disarm();
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
                        let _ = add(&self.epoll, fd, TOKEN_RING);
                    }
                    self.sal = Some(*sal);
                    self.attach = number;
                }
                Command::Detach => self.drop_rings(),
                Command::Barrier(token) => self.barriers.push(token),
            }
        }
    }

    /// The TAPs as they are now, and their carriers.
    fn refresh(&mut self) {
        self.refresh_devices();
        let version = self.p.taps.version();
        if version == self.version {
            return;
        }
        self.version = version;
        // by VLAN, as the lines are: there may be thousands
        let now = self.p.taps.list();
        let same = |l: &Line| {
            let at = now.binary_search_by_key(&l.vid, |(vid, _)| *vid);
            let there = at.ok().and_then(|at| now.get(at));
            there.is_some_and(|(_, tap)| Arc::ptr_eq(tap, &l.tap))
        };
        for l in self.lines.iter().filter(|l| !same(l)) {
            let _ = epoll::delete(&self.epoll, l.tap.as_fd());
        }
        let old = std::mem::take(&mut self.lines);
        let old = old.into_iter().filter(same).map(|l| (l.vid, l));
        let mut old: BTreeMap<u16, Line> = old.collect();
        for (vid, tap) in &now {
            // its MAC may have been said anew
            let mac = self.p.switch.ask(|d| d.tap(*vid)).map_or([0; 6], |t| t.mac);
            let there = old.remove(vid).map(|l| (l.ready, l.carrier));
            let (ready, carrier) = there.unwrap_or_default();
            if there.is_none()
                && let Err(e) = add(&self.epoll, tap.as_fd(), u64::from(*vid))
            {
                tracing::error!("vlan{vid}: {e}: what the kernel sends there is not seen");
            }
            self.lines.push(Line {
                vid: *vid,
                tap: Arc::clone(tap),
                mac,
                ready,
                carrier,
            });
        }
        self.carriers(false);
    }

    /// A TAP has carrier where a port of its VLAN has. Of what is not known yet it stays as it is. `anew`: others may have
    /// changed it meanwhile.
    fn carriers(&mut self, anew: bool) {
        for l in &mut self.lines {
            let alive = self.p.switch.ask(|d| d.is_alive(l.vid));
            let Some(up) = alive.filter(|up| anew || l.carrier != Some(*up)) else {
                continue;
            };
            l.carrier = Some(up);
            // asking for the carrier makes the kernel notice it now, and not up to a second later
            let set = l.tap.set_carrier(up).and_then(|()| {
                let name = l.tap.current_name()?;
                ControlSocket::open()?.carrier(&name)
            });
            if let Err(e) = set {
                tracing::debug!("vlan{}: carrier: {e}", l.vid);
            }
        }
    }

    fn line(&self, vid: u16) -> Option<&Line> {
        let at = self.lines.binary_search_by_key(&vid, |l| l.vid).ok()?;
        self.lines.get(at)
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
            self.p.tree.detached(clock::now_ns());
        }
    }

    /// A ring is dead: the core attaches again.
    fn lose(&mut self) {
        self.drop_rings();
        self.p.signals.dead.store(self.attach, Release);
        self.p.core_wake.ring();
    }

    fn tell(&self, event: IoEvent) {
        match self.p.events.try_send(event) {
            Ok(()) => {}
            // the core reads the table when it finds the channel was full
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
            let mut now = self.take_events(None)?;
            now |= self.receive()?;
            now |= self.transmit()?;
            now |= self.bpdus()?;
            now |= self.say()?;
            now |= self.queries()?;
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

    /// A batch of the chip's events, or of those that a frame waits for.
    fn take_events(&mut self, before: Option<&RxMeta>) -> Result<bool, SalError> {
        let Some(sal) = &mut self.sal else {
            return Ok(false);
        };
        while self.events.len() < EVENTS {
            let event = match before {
                None => sal.event()?,
                Some(meta) => sal.event_before(meta)?,
            };
            let Some(event) = event else { break };
            let number = sal.next_event().wrapping_sub(1);
            self.events.push((event, number));
        }
        Ok(self.handle_events())
    }

    /// Writes to the database first, then tells the core.
    fn handle_events(&mut self) -> bool {
        if self.events.is_empty() {
            return false;
        }
        let events = std::mem::take(&mut self.events);
        let mut read_fdb = false;
        {
            let mut view = self.p.view.lock();
            for (e, number) in &events {
                self.places.note(e, *number);
                match view.meaning(e) {
                    Meaning::Write(w) => self.writes.push(w),
                    Meaning::Unknown => read_fdb = true,
                    Meaning::Nothing => {}
                }
            }
        }
        self.write_back();
        let mut links = false;
        for (e, _) in &events {
            match *e {
                Event::Learn { .. } | Event::Move { .. } | Event::Age { .. } => {
                    self.tell(IoEvent::Fdb(*e));
                }
                Event::Lost { .. } => read_fdb = true,
                Event::Link {
                    port,
                    up,
                    speed_mbps,
                } => {
                    self.p.switch.change(|d| d.set_carrier(port, up));
                    let now = clock::now_ns();
                    self.p.tree.link(port, up, speed_mbps, now);
                    if let Some((_, tap, _)) = self.cables.iter().find(|c| c.0 == port) {
                        let _ = tap.set_carrier(up);
                    }
                    let (bridged, up) = self.p.switch.ask(|d| {
                        let bridged = d.bridged(port);
                        (bridged, d.carrier(bridged) == Some(true))
                    });
                    self.p.snoop.link(bridged, up);
                    links = true;
                }
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
        if links {
            self.carriers(true);
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
            tracing::debug!("station: {e}");
        });
        if let Err(e) = done {
            refused = self.writes.len() as u64;
            tracing::warn!("stations: {e}");
        }
        let all = self.writes.len() as u64;
        stats.fdb_written.fetch_add(all - refused.min(all), Relaxed);
        stats.fdb_refused.fetch_add(refused, Relaxed);
        self.writes.clear();
    }

    /// Frames from the chip.
    fn receive(&mut self) -> Result<bool, SalError> {
        let mut n = 0;
        while n < BURST {
            let Some(sal) = &mut self.sal else { break };
            let Some(meta) = sal.receive(&mut self.frame)? else {
                break;
            };
            n += 1;
            while self.take_events(Some(&meta))? {}
            if !meta.forwarded() {
                let slow = &self.p.stats.slow;
                slow.note(meta.reason, meta.port, meta.fid, &self.frame);
            }
            self.received(&meta)?;
        }
        Ok(n > 0)
    }

    /// One of them.
    fn received(&mut self, meta: &RxMeta) -> Result<(), SalError> {
        let stats = Arc::clone(&self.p.stats);
        if !meta.forwarded()
            && let Some(to) = self.p.switch.ask(|d| d.copy_to(meta.port, false))
        {
            let frame = std::mem::take(&mut self.frame);
            let sent = self.send_out(to, &frame);
            self.frame = frame;
            sent?;
        }
        // what comes in by a port of a group is the group's
        let (port, state) = self.p.switch.ask(|d| {
            let port = d.bridged(meta.port);
            (port, d.state(port))
        });
        // first, for one of its groups is that of bridges
        let cable = self.cables.iter().find(|c| c.0 == meta.port);
        if let Some((_, tap, _)) = cable.filter(|_| is_lldp(&self.frame)) {
            // whatever state the port has; one that is full loses it, as a cable would
            let _ = tap.write(&self.frame);
            return Ok(());
        }
        let bpdu = self.frame.starts_with(&BRIDGES);
        if bpdu && self.p.tree.receive(port, &self.frame, clock::now_ns()) {
            return Ok(());
        }
        if state != State::Forwarding {
            // of what comes by such a port the chip traps what is for the link alone; or it had not heard of it yet
            return Ok(());
        }
        // the chip asks its list of a port first, but not while it has that in part, nor of what only the CPU can tell
        if !meta.forwarded() && !self.p.switch.ask(|d| d.admits(meta.port, &self.frame)) {
            stats.rx_denied.fetch_add(1, Relaxed);
            return Ok(());
        }
        let bare = untagged(&self.frame);
        let vid = bare
            .as_ref()
            .and_then(|(tag, _)| self.p.switch.ask(|d| d.vlan_at(port, *tag)));
        let (Some((_, bare)), Some(vid)) = (bare, vid) else {
            stats.rx_no_port.fetch_add(1, Relaxed);
            return Ok(());
        };
        let Some(to) = bare.first_chunk::<6>() else {
            return Ok(());
        };
        let line = self.line(vid);
        let mac = line.map(|l| l.mac);
        let switch = &self.p.switch;
        let done = match (meta.routed(), meta.forwarded()) {
            (true, _) => Done::Routed,
            (false, true) => Done::Bridged,
            (false, false) => Done::Nothing,
        };
        if done == Done::Nothing
            && let Some(from) = places::source(&bare)
            && self.places.newer(meta, from).is_none()
        {
            // the chip has no later word of it
            switch.change(|d| d.heard(port, vid, from, clock::now_ns()));
            self.ages = true;
        }
        let onward = match done {
            Done::Routed => None,
            _ => self.p.snoop.receive(vid, port, &bare, clock::now_ns()),
        };
        let line = self.line(vid);
        let switch = &self.p.switch;
        let whom = switch.ask(|d| {
            let mut whom = copies(d, vid, port, *to, done, mac);
            snooping::narrow(d, vid, &bare, onward.as_ref(), &mut whom.ports);
            // the switch is a member like others: by a report that it heard it would not say what it wants itself
            let reported = matches!(onward, Some(Onward::Ports(_)));
            Copies {
                up: whom.up && !reported && d.goes_up(vid, port, &bare),
                ..whom
            }
        });
        if let Some(l) = line.filter(|_| whom.up) {
            let counter = match l.tap.write(&bare) {
                Ok(_) if meta.forwarded() => &stats.rx_copies,
                Ok(_) => &stats.rx_trapped,
                // EIO: the device is down
                Err(e) if e.raw_os_error() == Some(libc::EIO) => &stats.rx_port_down,
                Err(_) => &stats.rx_refused,
            };
            counter.fetch_add(1, Relaxed);
        }
        self.send(vid, &bare, &whom.ports)
    }

    /// A frame without a tag leaves by ports.
    fn send(&mut self, vid: u16, bare: &[u8], ports: &[(u16, bool)]) -> Result<(), SalError> {
        let mut with = None;
        for (port, tag) in ports {
            let frame = match tag {
                false => bare,
                true => with
                    .get_or_insert_with(|| tagged(bare, vid).unwrap_or_default())
                    .as_slice(),
            };
            self.send_out(*port, frame)?;
            if let Some(to) = self.p.switch.ask(|d| d.copy_to(*port, true)) {
                self.send_out(to, frame)?;
            }
        }
        Ok(())
    }

    /// A frame leaves by a port, as it is.
    fn send_out(&mut self, port: u16, frame: &[u8]) -> Result<(), SalError> {
        let stats = &self.p.stats;
        let Some(sal) = &mut self.sal else {
            stats.tx_detached.fetch_add(1, Relaxed);
            return Ok(());
        };
        // of a group the chip chooses the port, as for what it forwards itself
        let port = match group_of_port(port) {
            None => port,
            Some(group) => self.front.saturating_add(group),
        };
        let counter = match sal.transmit(port, 0, frame)? {
            true => &stats.tx,
            false => &stats.tx_refused,
        };
        counter.fetch_add(1, Relaxed);
        Ok(())
    }

    /// What the spanning tree sends.
    fn bpdus(&mut self) -> Result<bool, SalError> {
        self.tick = self.p.tree.tick(clock::now_ns());
        let mut any = false;
        while let Some((port, frame)) = self.p.tree.next_out() {
            self.send(0, &frame, &[(port, false)])?;
            any = true;
        }
        Ok(any)
    }

    /// Frames from the kernel. A full ring ends the round; the next one begins with the TAP that had to wait, so that no VLAN
    /// starves behind another.
    fn transmit(&mut self) -> Result<bool, SalError> {
        let mut any = false;
        self.tx_blocked = false;
        let (lines, first) = (self.lines.len(), self.tx_next);
        let room = self.p.ports.min(ROOM);
        for n in 0..lines {
            let at = (first + n) % lines;
            let Some((vid, tap)) = self
                .lines
                .get(at)
                .filter(|l| l.ready)
                .map(|l| (l.vid, Arc::clone(&l.tap)))
            else {
                continue;
            };
            for _ in 0..BURST {
                if let Some(sal) = &mut self.sal
                    && sal.tx_free()? < room
                {
                    self.tx_blocked = true;
                    self.tx_next = at;
                    self.p.stats.tx_full.fetch_add(1, Relaxed);
                    return Ok(any);
                }
                match tap.read(&mut self.buf) {
                    Ok(n) => {
                        any = true;
                        let bare = self.buf.get(..n).unwrap_or(&[]).to_vec();
                        let Some(to) = bare.first_chunk::<6>() else {
                            continue;
                        };
                        let now = clock::now_ns();
                        let onward = self.p.snoop.receive(vid, 0, &bare, now);
                        let ways = self.p.switch.ask(|d| match d.comes_down(vid, &bare) {
                            true => {
                                let mut ways = d.ways(vid, *to);
                                snooping::narrow(d, vid, &bare, onward.as_ref(), &mut ways);
                                ways
                            }
                            false => Vec::new(),
                        });
                        self.send(vid, &bare, &ways)?;
                    }
                    Err(e) => {
                        if let Some(l) = self.lines.get_mut(at) {
                            l.ready = false;
                        }
                        use std::io::ErrorKind::{Interrupted, WouldBlock};
                        if !matches!(e.kind(), WouldBlock | Interrupted) {
                            // it was deleted: its descriptor would be ready for ever
                            let _ = epoll::delete(&self.epoll, tap.as_fd());
                            // not by us, who would have said so before
                            if self.p.taps.version() == self.version {
                                tracing::warn!("vlan{vid}: {e}: its interface is to be made anew");
                            }
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
            return self.wait(Some(Duration::ZERO));
        }
        let now = clock::now_ns();
        let tick = self
            .tick
            .map(|at| Duration::from_nanos(at.saturating_sub(now)));
        if !self.ages {
            return self.wait(tick);
        }
        let every = u64::try_from(AGE.as_nanos()).unwrap_or(u64::MAX);
        if now >= self.age_at {
            self.ages = self.p.switch.change(|d| d.age(now));
            self.age_at = now.saturating_add(every);
        }
        let age = Duration::from_nanos(self.age_at.saturating_sub(now));
        self.wait(Some(tick.map_or(age, |t| t.min(age))))
    }

    fn disarm(&mut self) {
        if let Some(sal) = &mut self.sal {
            sal.disarm();
        }
    }

    /// Which TAPs have frames.
    fn wait(&mut self, limit: Option<Duration>) -> anyhow::Result<()> {
        let mut list: Vec<epoll::Event> = Vec::with_capacity(64);
        tandem_linux::epoll::wait(&self.epoll, limit, &mut list)?;
        for e in &list {
            match e.data.u64() {
                TOKEN_WAKE => {
                    self.p.wake.drain();
                }
                TOKEN_RING => {}
                port if port & TOKEN_PORT != 0 => {
                    let cable =
                        |c: &&mut (u16, Arc<Tap>, bool)| port == TOKEN_PORT | u64::from(c.0);
                    if let Some(cable) = self.cables.iter_mut().find(cable) {
                        cable.2 = true;
                    }
                }
                vid => {
                    let by = |l: &Line| u64::from(l.vid);
                    if let Ok(at) = self.lines.binary_search_by_key(&vid, by)
                        && let Some(l) = self.lines.get_mut(at)
                    {
                        l.ready = true;
                    }
                }
            }
        }
        Ok(())
    }
}

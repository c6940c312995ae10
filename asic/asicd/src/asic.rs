//! The chip: firmware, pipeline, ports and the driver's rings, and one turn of work on them.

use tandem_abi::handshake::Request;
use tandem_abi::{Corrupt, DeviceRings, PushError, Status, raw};
use tandem_carrier::{DeviceEvent, DeviceSide, Region};
use tandem_firmware::{CplSink, Firmware, Processor, Profile, SubmitError, turn};
use tandem_packet::{Buffer, Offload};
use tandem_pipeline as pipeline;
use tandem_ports::{Change, Link, RxPort, SCRATCH};
use tandem_queues::Fabric;

use crate::capture::CPU_PORT;
use crate::cpu::Cpu;
use crate::deadline::Deadline;
use crate::flap::Flaps;
use crate::keeper::Update;
use crate::output::Output;
use crate::poller::Poller;
use crate::slot::PortSlot;

/// Frames taken from one port in one turn.
pub const PORT_BURST: usize = 128;
/// Commands taken from all rings in one turn; executed are as many as [`turn::TURN`] lets.
pub const COMMAND_BURST: usize = 128;
/// Packets of the driver taken in one turn.
pub const TX_BURST: usize = 64;
/// Entries that ageing looks at in one go, and the time between two goes.
const AGE_BUDGET: u32 = 2048;
const AGE_NS: u64 = 20_000_000;
/// The driver doesn't reap completions for so long: its session ends.
const CPL_STUCK_NS: u64 = 10_000_000_000;
/// The carrier is looked at so often even if nobody rings.
const CARRIER_NS: u64 = 100_000_000;
/// While frames come one after the other, descriptors are looked at so often.
const LOOK_NS: u64 = 20_000;
/// A body in the arena is at most this long.
const BODY_MAX: usize = 64 * 1024;

/// What the packet thread does when a turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Look who is ready, and go on. `busy`: frames come one after the other, and are seen in memory.
    Look {
        /// Who brings frames needn't tell.
        busy: bool,
    },
    /// Sleep until somebody is ready.
    Sleep {
        /// At most until then.
        until_ns: u64,
    },
}

/// A driver that is attached.
#[derive(Clone, Debug)]
pub struct Driver {
    /// What it calls itself.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Since when, on the daemon's clock.
    pub since_ns: u64,
}

/// What the chip did, beside the pipeline's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commands executed.
    pub commands: u64,
    /// Packets of the driver sent out of a port or put into the pipeline.
    pub tx_packets: u64,
    /// Packets of the driver dropped: of an earlier epoch, of no port, of a port that is down,
    /// too long.
    pub tx_dropped: u64,
    /// Attaches since the start.
    pub attaches: u64,
    /// Frames taken from ports.
    pub frames: u64,
    /// Turns of the packet thread.
    pub turns: u64,
    /// Times it slept.
    pub sleeps: u64,
}

/// All of it. One thread owns it.
pub struct Asic {
    /// Tables and their only writer.
    pub fw: Firmware,
    /// Order and latency of commands.
    pub processor: Processor,
    /// The carrier.
    pub side: DeviceSide,
    /// Ports 1..=n.
    pub ports: Vec<PortSlot>,
    /// Where answers go.
    pub out: Output,
    /// Who drives.
    pub driver: Option<Driver>,
    /// Why the last driver's session ended.
    pub fail_reason: Option<String>,
    /// How long flow ports forward without one.
    pub deadline: Deadline,
    /// Counters.
    pub stats: Stats,
    poller: Poller,
    /// Frames come one after the other: see [`Wait::Look`].
    busy: bool,
    /// A port's descriptor is not watched.
    unwatched: bool,
    /// A port is looked at only when its descriptor is ready.
    by_descriptor: bool,
    look_at: u64,
    scratch: Vec<u8>,
    ahead: pipeline::Ahead,
    /// Links that a fault lets go down and up.
    pub flaps: Flaps,
    tx_body: Vec<u8>,
    tx_buffer: Buffer,
    carrier_ready: bool,
    carrier_at: u64,
    age_at: u64,
    cpl_stuck_since: Option<u64>,
}

/// Completions into the rings.
struct Completions<'a> {
    rings: &'a mut DeviceRings<Region>,
    broken: Option<(u32, String)>,
    stuck: bool,
}

impl CplSink for Completions<'_> {
    fn room(&mut self, pair: usize, completions: u32) -> bool {
        if self.broken.is_some() {
            return false;
        }
        match self.rings.pairs.get_mut(pair).map(|p| p.cpl.free_slots()) {
            Some(Ok(free)) => {
                self.stuck |= free < completions;
                free >= completions
            }
            Some(Err(e)) => {
                self.broken = Some((raw::TND_FAIL_RING_INDEX, e.to_string()));
                false
            }
            None => false,
        }
    }

    fn complete(&mut self, pair: usize, cmd: &raw::tnd_cmd, cpl: &raw::tnd_cpl, out: &[u8]) {
        if !out.is_empty()
            && let Err(e) = self.rings.arena.write(cmd.out_offset, out)
        {
            self.broken = Some((raw::TND_FAIL_BOUNDS, e.to_string()));
            return;
        }
        let Some(p) = self.rings.pairs.get_mut(pair) else {
            return;
        };
        if let Err(e) = p.cpl.push(&[zerocopy::IntoBytes::as_bytes(cpl)]) {
            self.broken = Some((raw::TND_FAIL_RING_INDEX, e.to_string()));
        }
    }
}

impl Asic {
    /// A chip with nothing cabled and no driver.
    pub fn new(
        profile: Profile,
        latency: bool,
        side: DeviceSide,
        poller: Poller,
        epoch_ns: u64,
    ) -> Result<Self, String> {
        let count = profile.port_count();
        let cpu = Cpu::new(count);
        let mut fabric =
            Fabric::new(profile.queues.config(count)?).map_err(|e| format!("queues: {e}"))?;
        if profile.queues.shape {
            let speeds = profile
                .ports
                .iter()
                .flat_map(|run| (0..run.count).map(|_| run.speed_mbps));
            for (port, mbps) in (1..=count).zip(speeds) {
                fabric.set_rate(port, mbps);
            }
        }
        Ok(Asic {
            fw: Firmware::new(profile).map_err(|e| e.to_string())?,
            processor: Processor::new(latency),
            side,
            ports: (1..=count).map(PortSlot::new).collect(),
            out: Output::new(fabric, cpu, epoch_ns),
            driver: None,
            fail_reason: None,
            deadline: Deadline::default(),
            stats: Stats::default(),
            poller,
            busy: false,
            unwatched: false,
            by_descriptor: false,
            look_at: 0,
            scratch: vec![0; SCRATCH],
            ahead: pipeline::Ahead::default(),
            flaps: Flaps::default(),
            tx_body: Vec::new(),
            tx_buffer: Buffer::new(),
            carrier_ready: true,
            carrier_at: 0,
            age_at: 0,
            cpl_stuck_since: None,
        })
    }

    /// The slot of a port.
    pub fn port(&self, number: u16) -> Option<&PortSlot> {
        self.ports.get(usize::from(number).checked_sub(1)?)
    }

    /// Something happened to a port's cable.
    pub fn update(&mut self, update: Update) {
        let at = usize::from(update.port).wrapping_sub(1);
        let (Some(slot), Some(tx)) = (self.ports.get_mut(at), self.out.tx.get_mut(at)) else {
            return;
        };
        let link = match update.change {
            Change::Opened(opened) => {
                if let Some(old) = slot.rx.take().as_ref().and_then(RxPort::fd) {
                    self.poller.remove_port(old);
                }
                if let Some(fd) = opened.rx.fd()
                    && let Err(e) = self.poller.add_port(slot.number, fd)
                {
                    tracing::error!("swp{}: epoll: {e}", slot.number);
                }
                slot.watched = true;
                slot.rx = Some(opened.rx);
                slot.note = opened.note;
                slot.ready = true;
                *tx = Some(opened.tx);
                opened.link
            }
            Change::Gone => {
                if let Some(old) = slot.rx.take().as_ref().and_then(RxPort::fd) {
                    self.poller.remove_port(old);
                }
                *tx = None;
                Link::default()
            }
            Change::Link(link) => link,
        };
        let by_descriptor = |rx: &RxPort| matches!(rx, RxPort::Tap(_) | RxPort::Dgram(_));
        self.by_descriptor =
            (self.ports.iter()).any(|slot| slot.rx.as_ref().is_some_and(by_descriptor));
        self.set_link(update.port, link);
    }

    fn set_link(&mut self, port: u16, cable: Link) {
        let at = usize::from(port).wrapping_sub(1);
        if let Some(slot) = self.ports.get_mut(at) {
            slot.cable = cable;
        }
        self.tell_link(port);
    }

    /// The link is its cable's, unless a fault keeps it down.
    fn tell_link(&mut self, port: u16) {
        let at = usize::from(port).wrapping_sub(1);
        let Some(slot) = self.ports.get_mut(at) else {
            return;
        };
        slot.link = match self.flaps.is_down(port) {
            true => Link::default(),
            false => slot.cable,
        };
        let link = slot.link;
        if let Err(e) = self.fw.state.set_link(port, link.up) {
            tracing::error!("swp{port}: {e}");
        }
        self.out.events.link(port, link);
    }

    /// A fault: a port's link goes down now and up again after `half_ns`, so often.
    pub fn flap(&mut self, port: u16, count: u32, half_ns: u64, now_ns: u64) {
        self.flaps.add(port, count, half_ns, now_ns);
        self.tell_link(port);
    }

    /// No link is kept down any more.
    pub fn end_flaps(&mut self) {
        for port in self.flaps.clear() {
            self.tell_link(port);
        }
    }

    /// A fault: the driver finds an impossible index in its rings of this kind. False: there is no driver.
    pub fn scribble(&mut self, kind: u16) -> bool {
        self.side.scribble(kind)
    }

    /// One turn: looks who is ready, then a burst of everything. True if there was work.
    pub fn turn(&mut self, now_ns: u64) -> bool {
        self.stats.turns += 1;
        let mut worked = false;
        if self.carrier_ready || now_ns >= self.carrier_at {
            worked |= self.carrier(now_ns);
        }
        while let Some(port) = self.flaps.turn(now_ns) {
            self.tell_link(port);
        }
        worked |= self.commands(now_ns);
        worked |= self.receive(now_ns);
        worked |= self.transmit(now_ns);
        if now_ns >= self.age_at {
            self.age_at = now_ns + AGE_NS;
            let pending = self.processor.pending() > 0;
            self.deadline.turn(&mut self.fw.state, pending, now_ns);
            if !self.out.captures.is_empty() {
                self.out.captures.sweep();
            }
            let dropped = self.fw.tx_dropped.iter_mut().skip(1);
            for ((port, tx), dropped) in (1..).zip(&self.out.tx).zip(dropped) {
                let tails = self.out.fabric.tail_drops(port);
                *dropped = tx
                    .as_ref()
                    .map_or(*dropped, |tx| tx.stats().dropped + tails);
            }
            let mut sink = self.out.at(now_ns);
            pipeline::age(&mut self.fw.state, now_ns, AGE_BUDGET, &mut sink);
        }
        worked |= self.out.run_queues(now_ns);
        if self.busy {
            for (slot, _) in (self.ports.iter_mut().zip(self.out.dirty())).filter(|(_, d)| **d) {
                self.unwatched |= slot.unwatch(&self.poller);
            }
        }
        // The kernel takes its time to send; the next burst's headers come meanwhile
        for rx in self.ports.iter().filter_map(|slot| slot.rx.as_ref()) {
            rx.bring(PORT_BURST);
        }
        self.out.flush(now_ns);
        worked |= self.feed_driver(now_ns);
        worked
    }

    /// Looks who is ready, or sleeps until somebody is. `bell` is called when the bell was rung.
    pub fn wait(&mut self, now_ns: u64, wait: Wait, bell: &mut dyn FnMut()) {
        let mut timeout = 0;
        match wait {
            Wait::Look { busy } => {
                self.busy = busy;
                // All that matters now is seen in memory; the rest may wait a moment
                if busy && !self.by_descriptor && now_ns < self.look_at {
                    return;
                }
                self.look_at = now_ns + LOOK_NS;
            }
            Wait::Sleep { until_ns } => {
                self.busy = false;
                self.watch();
                timeout = self.sleep_until(now_ns, until_ns).saturating_sub(now_ns);
                match self.side.arm() {
                    Ok(true) => {}
                    Ok(false) => timeout = 0,
                    Err(e) => {
                        self.corrupt(&e);
                        timeout = 0;
                    }
                }
            }
        }
        if timeout > 0 {
            self.stats.sleeps += 1;
        }
        let (ports, carrier_ready) = (&mut self.ports, &mut self.carrier_ready);
        let result = self.poller.wait(timeout, |ready| match ready {
            crate::poller::Ready::Bell => bell(),
            crate::poller::Ready::Carrier => *carrier_ready = true,
            crate::poller::Ready::Port(number, error) => {
                if let Some(slot) = ports.get_mut(usize::from(number).wrapping_sub(1)) {
                    slot.ready = true;
                    if error && let Some(rx) = &slot.rx {
                        rx.take_error();
                    }
                }
            }
        });
        if let Err(e) = result {
            tracing::error!("epoll: {e}");
        }
        if matches!(wait, Wait::Sleep { .. }) {
            self.side.disarm();
        }
    }

    /// When something is to be done at the latest, even if nobody comes.
    fn sleep_until(&mut self, now_ns: u64, until_ns: u64) -> u64 {
        let mut until = until_ns
            .min(self.carrier_at)
            .min(self.age_at.max(now_ns + AGE_NS / 2));
        for due in self
            .processor
            .next_due()
            .into_iter()
            .chain(self.flaps.due())
        {
            until = until.min(due);
        }
        if let Some(due) = self.out.fabric.due(now_ns) {
            until = until.min(due);
        }
        for slot in &mut self.ports {
            if let Some(due) = slot.rx.as_mut().and_then(|rx| rx.due(now_ns))
                && self.fw.state.port(slot.number).is_some_and(|p| p.is_up())
            {
                until = until.min(due);
            }
        }
        until
    }

    /// Before it sleeps: descriptors that were taken out while frames came anyway are watched again. One that is ready
    /// already ends the sleep at once.
    fn watch(&mut self) {
        if !std::mem::take(&mut self.unwatched) {
            return;
        }
        for slot in self.ports.iter_mut().filter(|slot| !slot.watched) {
            if let Some(fd) = slot.rx.as_ref().and_then(RxPort::fd)
                && let Err(e) = self.poller.add_port(slot.number, fd)
            {
                tracing::error!("swp{}: epoll: {e}", slot.number);
            }
            slot.watched = true;
        }
    }

    /// What the carrier has to tell is heard before somebody is told who drives the chip.
    pub fn hear(&mut self, now_ns: u64) {
        if self.carrier_ready {
            self.carrier(now_ns);
        }
    }

    /// Connections, messages and requests of drivers.
    fn carrier(&mut self, now_ns: u64) -> bool {
        self.carrier_ready = false;
        self.carrier_at = now_ns + CARRIER_NS;
        let events = self.side.handle();
        let changed = !events.is_empty();
        for event in events {
            match event {
                DeviceEvent::Connected(holder) => {
                    tracing::info!("driver {holder} is here");
                    self.driver = Some(Driver {
                        name: holder.name,
                        pid: holder.pid,
                        since_ns: now_ns,
                    });
                    self.fail_reason = None;
                }
                DeviceEvent::Request(request) => self.request(request, now_ns),
                DeviceEvent::Gone { holder, reason } => {
                    tracing::info!("driver {holder} is gone: {reason}; forwarding goes on");
                    self.detached(now_ns);
                    self.driver = None;
                    self.fail_reason = Some(reason);
                }
            }
        }
        if let Err(e) = self.poller.set_carrier(self.side.poll_fds(), changed) {
            tracing::error!("epoll: {e}");
        }
        changed
    }

    fn request(&mut self, request: Request, now_ns: u64) {
        self.detached(now_ns);
        let warm = match request {
            Request::Detach => {
                self.side.acknowledge(Status::Ok);
                return;
            }
            Request::AttachCold | Request::Reset => false,
            Request::AttachWarm => true,
        };
        self.fw.attach(warm);
        let epoch = self.side.acknowledge(Status::Ok);
        let Some(pairs) = self.side.rings().map(|r| r.pairs.len()) else {
            return;
        };
        self.processor.reset(&mut self.fw, pairs, epoch);
        self.out.events.attach(epoch);
        // what was policed while nobody listened
        self.fw.state.police.take_unreported().for_each(drop);
        self.out.cpu.set_attached(true);
        self.cpl_stuck_since = None;
        self.stats.attaches += 1;
        if let Some(driver) = &mut self.driver {
            driver.since_ns = now_ns;
            let who = format!("{} (pid {})", driver.name, driver.pid);
            self.deadline.attached(who, warm, now_ns);
        }
        // The driver learns every port's link state first
        for slot in &self.ports {
            self.out.events.link(slot.number, slot.link);
        }
    }

    fn detached(&mut self, now_ns: u64) {
        self.deadline.detached(now_ns);
        self.processor.detach(&mut self.fw);
        self.out.events.detach();
        self.out.cpu.set_attached(false);
    }

    fn corrupt(&mut self, e: &Corrupt) {
        self.fail(raw::TND_FAIL_RING_INDEX, &e.to_string());
    }

    /// Ends the driver's session (`TND_FAIL_*`), with a line in the log; forwarding goes on.
    pub fn fail(&mut self, reason: u32, detail: &str) {
        self.side.fail(reason, detail);
        self.carrier_ready = true;
    }

    /// Takes commands from the rings and executes what is due.
    fn commands(&mut self, now_ns: u64) -> bool {
        let Some(rings) = self.side.rings() else {
            return false;
        };
        let mut budget = COMMAND_BURST;
        let mut taken = 0;
        let mut sign = false;
        let mut broken = None;
        'pairs: for pair in 0..rings.pairs.len() {
            let mut room = self.processor.room(pair).min(budget);
            while room > 0 {
                let Some(ring) = rings.pairs.get_mut(pair) else {
                    break;
                };
                let cmd = match ring.cmd.pop_struct::<raw::tnd_cmd>() {
                    Ok(Some(cmd)) => cmd,
                    Ok(None) => break,
                    Err(e) => {
                        broken = Some((raw::TND_FAIL_RING_INDEX, e.to_string()));
                        break 'pairs;
                    }
                };
                let result = submit(
                    &mut self.fw,
                    &mut self.processor,
                    &rings.arena,
                    pair,
                    &cmd,
                    now_ns,
                );
                if let Err(e) = result {
                    broken = Some(e);
                    break 'pairs;
                }
                taken += 1;
                sign |= cmd.op == raw::TND_OP_NOP;
                budget -= 1;
                room -= 1;
            }
        }
        if taken > 0 {
            self.deadline.heard(&mut self.fw.state, sign, now_ns);
        }
        let mut sink = Completions {
            rings,
            broken,
            stuck: false,
        };
        let ran = self
            .processor
            .run(&mut self.fw, now_ns, turn::TURN, &mut sink);
        let (broken, stuck) = (sink.broken.take(), sink.stuck);
        self.stats.commands += ran.executed as u64;
        if ran.reset {
            self.fail(raw::TND_FAIL_INTERNAL, "a fault plan said so");
        } else if let Some((reason, detail)) = broken {
            self.fail(reason, &detail);
        } else if stuck && ran.executed == 0 {
            let since = *self.cpl_stuck_since.get_or_insert(now_ns);
            if now_ns.saturating_sub(since) > CPL_STUCK_NS {
                self.fail(
                    raw::TND_FAIL_CPL_FULL,
                    "no completion was taken for 10 seconds",
                );
            }
        } else {
            self.cpl_stuck_since = None;
        }
        taken + ran.executed > 0
    }

    /// A burst from each port that has frames.
    fn receive(&mut self, now_ns: u64) -> bool {
        let Asic {
            fw,
            ports,
            out,
            scratch,
            ahead,
            poller,
            busy,
            unwatched,
            stats,
            ..
        } = self;
        let mut total = 0;
        let mut ended = None;
        for slot in ports.iter_mut() {
            let Some(rx) = &mut slot.rx else {
                continue;
            };
            let number = slot.number;
            match rx {
                // A look at the ring costs nothing; a TAP is read when epoll says so
                RxPort::Packet(_) | RxPort::Xdp(_) => {}
                RxPort::Tap(_) | RxPort::Dgram(_) if !slot.ready => continue,
                RxPort::Tap(_) | RxPort::Dgram(_) => {}
                // A capture starts to play when the driver has set the port up
                RxPort::Pcap(_) => {
                    if !fw.state.port(number).is_some_and(|p| p.is_up()) {
                        continue;
                    }
                }
            }
            ahead.begin(&fw.state, number);
            rx.lookahead(PORT_BURST, |bytes| ahead.see(&fw.state, bytes));
            ahead.finish(&fw.state);
            let mut nth = 0;
            let n = rx.receive(now_ns, PORT_BURST, scratch, &mut |frame| {
                out.ingress(number, frame, now_ns);
                let (state, hint) = (&mut fw.state, ahead.hint(nth));
                pipeline::process_seen(state, frame, number, now_ns, &mut out.at(now_ns), hint);
                nth += 1;
            });
            slot.ready = n == PORT_BURST;
            total += n;
            if rx.ended() && slot.cable.up {
                ended = Some(number);
            }
            if n > 0 && *busy {
                *unwatched |= slot.unwatch(poller);
            }
        }
        stats.frames += total as u64;
        if let Some(number) = ended {
            tracing::info!("swp{number}: the capture has ended, link down");
            self.set_link(number, Link::default());
        }
        total > 0
    }

    /// A burst of the driver's packets.
    fn transmit(&mut self, now_ns: u64) -> bool {
        let Asic {
            fw,
            side,
            out,
            tx_body,
            tx_buffer,
            stats,
            ports,
            deadline,
            ..
        } = self;
        let Some(rings) = side.rings() else {
            return false;
        };
        let epoch = rings.epoch;
        let mut n = 0;
        let mut broken = None;
        while n < TX_BURST {
            let head = match rings
                .tx
                .pop_packet::<raw::tnd_tx>(tx_body, |h| h.len as usize)
            {
                Ok(Some(head)) => head,
                Ok(None) => break,
                Err(e) => {
                    broken = Some(e);
                    break;
                }
            };
            if n == 0 {
                deadline.heard(&mut fw.state, false, now_ns);
            }
            n += 1;
            let whole = tx_body.len() == head.len as usize && tx_buffer.set(tx_body);
            let mut frame = tx_buffer.frame(Offload::NONE);
            let sent = if !whole || head.epoch != epoch {
                false
            } else if head.flags & raw::TND_TX_PIPELINE != 0 {
                out.ingress(head.port, &frame, now_ns);
                let sink = &mut out.at(now_ns);
                pipeline::process(&mut fw.state, &mut frame, head.port, now_ns, sink);
                true
            } else {
                if !out.captures.is_empty() {
                    out.captures.frame(CPU_PORT, &frame, now_ns);
                }
                out.fabric.begin_cpu();
                let sent =
                    pipeline::transmit(&mut fw.state, &frame, head.port, &mut out.at(now_ns));
                if let Some(slot) = ports.get_mut(usize::from(head.port).wrapping_sub(1)) {
                    slot.cpu_tx += u64::from(sent);
                }
                sent
            };
            if sent {
                stats.tx_packets += 1;
            } else {
                stats.tx_dropped += 1;
            }
        }
        if let Some(e) = broken {
            self.corrupt(&e);
        }
        n > 0
    }

    /// Events, then packets, then doorbells.
    fn feed_driver(&mut self, now_ns: u64) -> bool {
        let Some(rings) = self.side.rings() else {
            return false;
        };
        let events = self
            .out
            .events
            .drain(&mut rings.event, &mut self.fw.state.police, now_ns);
        let posted = self.out.events.posted();
        let result =
            events.and_then(|e| Ok(e + self.out.cpu.drain(&mut rings.rx, rings.epoch, posted)?));
        self.side.flush();
        match result {
            Ok(n) => n > 0,
            Err(PushError::Corrupt(e)) => {
                self.corrupt(&e);
                false
            }
            Err(_) => false,
        }
    }
}

/// Copies a command's body once and hands it to the processor; an error ends the session.
fn submit(
    fw: &mut Firmware,
    processor: &mut Processor,
    arena: &tandem_abi::Arena<Region>,
    pair: usize,
    cmd: &raw::tnd_cmd,
    now_ns: u64,
) -> Result<(), (u32, String)> {
    let bounds = |e: tandem_abi::memory::OutOfArena| (raw::TND_FAIL_BOUNDS, e.to_string());
    let size = cmd.body_size as usize;
    if cmd.out_size > 0 {
        arena
            .check(cmd.out_offset, cmd.out_size as usize)
            .map_err(bounds)?;
    }
    let mut long = Vec::new();
    let body = if cmd.flags & raw::TND_CMD_ARENA != 0 {
        arena.check(cmd.body_offset, size).map_err(bounds)?;
        // A longer one is no object of ours: the firmware refuses an empty body
        if size <= BODY_MAX {
            long.resize(size, 0);
            arena.read(cmd.body_offset, &mut long).map_err(bounds)?;
        }
        &long[..]
    } else {
        cmd.body.get(..size).unwrap_or(&[])
    };
    processor
        .submit(fw, pair, cmd, body, now_ns)
        .map_err(|e| match e {
            SubmitError::Sequence { .. } => (raw::TND_FAIL_SEQUENCE, e.to_string()),
            SubmitError::Busy | SubmitError::NoPair(_) => (raw::TND_FAIL_INTERNAL, e.to_string()),
        })
}

// SPDX-License-Identifier: Apache-2.0
//! The switch's thread: frames, controllers, requests, one after the other.

use std::collections::BTreeMap;

use crossbeam_channel::Receiver;
use std::sync::atomic::{AtomicBool, Ordering};
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_ofagent::{Agent, Lost};
use tandem_packet::{Buffer, Offload, segment};
use tandem_ports::{Change, Opened, RxPort, SCRATCH};

use tandem_ofchip::Chip;

use crate::args::PortArg;
use crate::asic::{Asic, FrontPort};
use crate::keeper::{Event, Update};
use crate::links::Links;
use crate::poller::{Poller, Ready, Token};
use crate::slots::Slots;

/// Frames of one port in one turn.
const FRAMES: usize = 64;
/// Requests of the API in one turn.
const JOBS: usize = 4;
/// It wakes up at least so often.
const SLEEP_NS: u64 = 1_000_000_000;
/// While a cable takes nothing, it is tried again after this time.
const FULL_NS: u64 = 1_000_000;
/// After it has sent a controller something it goes round for so long instead of sleeping: who waited for an answer often
/// asks again at once, and on an idle processor to wake up takes longer than all that the question needs.
const AWAKE_NS: u64 = 50_000;

/// Something to do between two turns.
pub type Job = tandem_mgmt::server::Job<Plant>;
/// The way for other threads to have it done by the switch's thread.
pub type Jobs = tandem_linux::jobs::Jobs<Job>;

/// A port.
pub struct Port {
    /// As it was asked for.
    pub arg: PortArg,
    /// None: its netdev is gone.
    rx: Option<RxPort>,
    /// Of earlier halves.
    before: Lost,
}

/// Everything that belongs to the thread.
pub struct Plant {
    /// The switch.
    pub agent: Agent,
    /// Its controllers.
    pub links: Links,
    /// Its ports.
    pub ports: BTreeMap<u32, Port>,
    /// The chip, if the switch is not of this machine's interfaces.
    pub asic: Option<Asic>,
    slots: Slots,
    poller: Poller,
    scratch: Vec<u8>,
    segments: Buffer,
    piece: Buffer,
}

impl Plant {
    /// Without ports.
    pub fn new(agent: Agent, links: Links, poller: Poller) -> Plant {
        Plant {
            agent,
            links,
            ports: BTreeMap::new(),
            asic: None,
            slots: Slots::default(),
            poller,
            scratch: vec![0; SCRATCH],
            segments: Buffer::new(),
            piece: Buffer::new(),
        }
    }

    /// A chip below the tables, with its ports.
    pub fn set_asic(&mut self, asic: Asic, chip: Chip, ports: Vec<FrontPort>, now_ns: u64) {
        for p in ports {
            if let Some(port) = chip.port(p.number) {
                self.slots.chip.insert(p.number, port);
            }
            let down = (false, 0);
            self.agent.add_port(p.number, &p.name, p.mac, down, now_ns);
        }
        self.agent.set_chip(chip);
        self.asic = Some(asic);
    }

    /// What the chip has to say, and what is to be said to it. When to be called again at the latest.
    fn turn_asic(&mut self, now_ns: u64) -> u64 {
        let Some(asic) = &mut self.asic else {
            return u64::MAX;
        };
        let (agent, slots) = (&mut self.agent, &mut self.slots);
        let more = asic.receive(agent, slots, now_ns);
        if let Some(chip) = agent.chip_mut() {
            chip.turn(now_ns);
        }
        let next = asic.look_after(agent, slots, &self.poller, now_ns);
        let due = agent.chip_mut().and_then(|c| c.next_ns());
        match more {
            true => now_ns,
            false => next.min(due.unwrap_or(u64::MAX)),
        }
    }

    /// Another port.
    pub fn add_port(&mut self, arg: PortArg, mac: [u8; 6], opened: Opened, now_ns: u64) {
        let number = arg.number;
        let link = (opened.link.up, opened.link.speed_mbps);
        self.agent.add_port(number, &arg.name(), mac, link, now_ns);
        self.ports.insert(
            number,
            Port {
                arg,
                rx: None,
                before: Lost::default(),
            },
        );
        self.plug(number, opened, now_ns);
    }

    fn plug(&mut self, number: u32, opened: Opened, now_ns: u64) {
        self.unplug(number);
        let Some(port) = self.ports.get_mut(&number) else {
            return;
        };
        let Opened { rx, tx, link, .. } = opened;
        if let Some(fd) = rx.fd()
            && let Err(e) = self.poller.add(Token::Port(number), fd, true, false)
        {
            tracing::error!("{}: {e}", port.arg.name());
        }
        port.rx = Some(rx);
        self.slots.put(number, tx);
        self.agent
            .set_link(number, link.up, link.speed_mbps, now_ns);
    }

    fn unplug(&mut self, number: u32) {
        let lost = self.lost(number);
        if let Some(port) = self.ports.get_mut(&number) {
            port.before = lost;
            if let Some(fd) = port.rx.as_ref().and_then(RxPort::fd) {
                self.poller.remove(fd);
            }
            port.rx = None;
        }
        self.slots.take(number);
    }

    /// What a port's cable lost since the start.
    fn lost(&mut self, number: u32) -> Lost {
        let tx = self.slots.dropped(number);
        let Some(port) = self.ports.get_mut(&number) else {
            return Lost::default();
        };
        let rx = port.rx.as_mut().map(RxPort::stats).unwrap_or_default();
        Lost {
            rx_dropped: port.before.rx_dropped + rx.overrun,
            rx_errors: port.before.rx_errors + rx.malformed,
            tx_dropped: port.before.tx_dropped + tx,
        }
    }

    fn update(&mut self, update: Update, now_ns: u64) {
        let number = update.number;
        match update.event {
            Event::Added(arg, mac, opened) => self.add_port(arg, mac, *opened, now_ns),
            Event::Removed => {
                self.unplug(number);
                self.ports.remove(&number);
                self.agent.remove_port(number);
            }
            Event::Cable(Change::Opened(opened)) => self.plug(number, *opened, now_ns),
            Event::Cable(Change::Gone) => {
                self.unplug(number);
                self.agent.set_link(number, false, 0, now_ns);
            }
            Event::Cable(Change::Link(l)) => {
                self.agent.set_link(number, l.up, l.speed_mbps, now_ns)
            }
        }
    }

    fn receive(&mut self, number: u32, error: bool, now_ns: u64) {
        let Plant {
            agent,
            ports,
            slots,
            scratch,
            segments,
            piece,
            ..
        } = self;
        let Some(rx) = ports.get_mut(&number).and_then(|p| p.rx.as_mut()) else {
            return;
        };
        if error {
            rx.take_error();
        }
        rx.receive(now_ns, FRAMES, scratch, &mut |frame| {
            if frame.offload.gso.is_none() {
                agent.frame(number, frame, now_ns, slots);
                return;
            }
            // what makes no sense as a super-frame is no frame
            let _ = segment::segment_frame(frame, segments, |bytes| {
                if piece.set(bytes) {
                    let mut one = piece.frame(Offload::NONE);
                    agent.frame(number, &mut one, now_ns, slots);
                }
            });
        });
    }

    /// Captures are not waited for but played; when the next frame is due.
    fn play(&mut self, now_ns: u64) -> u64 {
        let mut next = u64::MAX;
        let due: Vec<u32> = self
            .ports
            .iter_mut()
            .filter_map(|(n, p)| {
                let at = p.rx.as_mut()?.due(now_ns)?;
                next = next.min(at);
                (at <= now_ns).then_some(*n)
            })
            .collect();
        for n in due {
            self.receive(n, false, now_ns);
        }
        next
    }

    /// The controllers' counters are those of the cables, too.
    pub fn count(&mut self) {
        let numbers: Vec<u32> = self.ports.keys().copied().collect();
        for n in numbers {
            let lost = self.lost(n);
            self.agent.set_lost(n, lost);
        }
        for n in self.slots.chip.keys() {
            let lost = Lost {
                tx_dropped: self.slots.dropped(*n),
                ..Lost::default()
            };
            self.agent.set_lost(*n, lost);
        }
    }

    /// Goes on until it is told to stop.
    ///
    /// # Errors
    /// The kernel no longer says what is ready.
    pub fn run(
        &mut self,
        bell: &EventFd,
        updates: &Receiver<Update>,
        jobs: &Receiver<Job>,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        self.poller.add(Token::Bell, bell, true, false)?;
        let mut ready: Vec<Ready> = Vec::new();
        let mut next = 0;
        let mut counted = 0;
        let mut awake = 0;
        while !stop.load(Ordering::Relaxed) {
            let before = clock::now_ns();
            ready.clear();
            if self.asic.is_some() && !Asic::arm(&mut self.agent, &mut self.slots) {
                next = before;
            }
            self.poller
                .wait(u64::saturating_sub(next, before), &mut ready)?;
            if self.asic.is_some() {
                Asic::disarm(&mut self.agent, &mut self.slots);
            }
            let now = clock::now_ns();
            self.slots.now_ns = now;
            for r in &ready {
                match r.token {
                    Token::Port(n) => self.receive(n, r.error, now),
                    Token::Link(n) => {
                        let (links, agent) = (&mut self.links, &mut self.agent);
                        links.ready(n, *r, agent, &self.poller, now);
                    }
                    Token::Listener(n) => {
                        self.links.accept(n, &mut self.agent, &self.poller, now);
                    }
                    Token::Bell => {
                        bell.drain();
                    }
                    // looked at in every turn
                    Token::Chip => {}
                }
            }
            next = now + SLEEP_NS;
            for update in updates.try_iter() {
                self.update(update, now);
            }
            for job in jobs.try_iter().take(JOBS) {
                job(self);
            }
            if now.saturating_sub(counted) >= SLEEP_NS {
                counted = now;
                self.count();
            }
            next = next.min(self.turn_asic(now));
            next = next.min(self.play(now)).min(self.agent.tick(now));
            let (links, agent) = (&mut self.links, &mut self.agent);
            next = next.min(links.turn(agent, &mut self.slots, &self.poller, now));
            // what this turn's messages changed
            if self.agent.chip_mut().is_some_and(|c| c.turn(now)) {
                // somebody may have waited for that answer
                next = now;
            }
            if self.slots.flush() {
                next = next.min(now + FULL_NS);
            }
            if self.links.has_written() {
                awake = now + AWAKE_NS;
            }
            if self.links.has_more() || !jobs.is_empty() {
                next = now;
            } else if now < awake {
                next = now;
                if ready.is_empty() {
                    // who was answered may be waiting for this very processor
                    std::thread::yield_now();
                }
            }
        }
        Ok(())
    }
}

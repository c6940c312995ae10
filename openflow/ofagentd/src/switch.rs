// SPDX-License-Identifier: Apache-2.0
//! The switches' thread: frames, controllers, requests, one after the other.

use std::collections::BTreeMap;

use crossbeam_channel::Receiver;
use std::sync::atomic::{AtomicBool, Ordering};
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_ofagent::{Agent, Lost};
use tandem_packet::{Buffer, Offload, segment};
use tandem_ports::{Change, Opened, RxPort, SCRATCH};

use tandem_ofchip::{Chip, PortOf};

use crate::args::PortArg;
use crate::asic::{self, Asic, FrontPort};
use crate::keeper::{Event, Update};
use crate::kept::Kept;
use crate::links::Links;
use crate::lsi::At;
use crate::poller::{Poller, Ready, Token};
use crate::slots::{Out, Slots, ToChip};

/// Frames of one port in one turn.
const FRAMES: usize = 64;
/// Requests of the API in one turn.
const JOBS: usize = 4;
/// It wakes up at least so often.
const SLEEP_NS: u64 = 1_000_000_000;
/// While a cable takes nothing, it is tried again after this time.
const FULL_NS: u64 = 1_000_000;
/// After it has sent a controller something, or the chip, it goes round for so long instead of sleeping: who waited for an
/// answer often asks again at once, the chip answers soon, and on an idle processor to wake up takes longer than all that the
/// question needs.
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

/// A switch: the one of all ports, or a logical one of some.
pub struct Lsi {
    /// Empty: the one of all ports.
    pub name: String,
    /// Its tables.
    pub agent: Agent,
    /// Its controllers.
    pub links: Links,
    /// Its ports' cables, if they are this machine's.
    pub ports: BTreeMap<u32, Port>,
    /// Where frames leave.
    pub slots: Slots,
    /// What outlives the process.
    pub kept: Option<Kept>,
}

impl Lsi {
    /// Without ports.
    pub fn new(name: String, agent: Agent, links: Links) -> Lsi {
        Lsi {
            name,
            agent,
            links,
            ports: BTreeMap::new(),
            slots: Slots::default(),
            kept: None,
        }
    }

    /// `red's `; nothing of the one of all ports.
    fn prefix(&self) -> String {
        match self.name.as_str() {
            "" => String::new(),
            name => format!("{name}'s "),
        }
    }

    /// Name of the port that has this number.
    fn has(&self, number: u32) -> Option<String> {
        let mut ports = self.agent.datapath().ports();
        let found = ports.find(|e| e.port.number == number);
        found.map(|e| e.port.name.clone())
    }

    /// A chip below the tables, with its ports.
    pub fn set_chip(&mut self, chip: Chip, ports: Vec<FrontPort>, now_ns: u64) {
        for p in ports {
            if let Some(port) = chip.port(p.number) {
                self.slots.chip.insert(p.number, port);
            }
            let link = self.agent.past_link(p.number, &p.name);
            self.agent.add_port(p.number, &p.name, p.mac, link, now_ns);
        }
        self.agent.set_chip(chip, now_ns);
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

    fn plug(&mut self, at: At, opened: Opened, poller: &Poller, now_ns: u64) {
        let number = at.number;
        self.unplug(number, poller);
        let Some(port) = self.ports.get_mut(&number) else {
            return;
        };
        let Opened { rx, tx, link, .. } = opened;
        if let Some(fd) = rx.fd()
            && let Err(e) = poller.add(Token::Port(at), fd, true, false)
        {
            tracing::error!("{}: {e}", port.arg.name());
        }
        port.rx = Some(rx);
        self.slots.put(number, tx);
        self.agent
            .set_link(number, link.up, link.speed_mbps, now_ns);
    }

    fn unplug(&mut self, number: u32, poller: &Poller) {
        let lost = self.lost(number);
        if let Some(port) = self.ports.get_mut(&number) {
            port.before = lost;
            if let Some(fd) = port.rx.as_ref().and_then(RxPort::fd) {
                poller.remove(fd);
            }
            port.rx = None;
        }
        self.slots.take(number);
    }

    /// The controllers' counters are those of the cables, too.
    fn count(&mut self, to_chip: &ToChip) {
        let numbers: Vec<u32> = self.ports.keys().copied().collect();
        for n in numbers {
            let lost = self.lost(n);
            self.agent.set_lost(n, lost);
        }
        for (n, port) in &self.slots.chip {
            let lost = Lost {
                tx_dropped: to_chip.dropped(*port),
                ..Lost::default()
            };
            self.agent.set_lost(*n, lost);
        }
    }
}

/// Everything that belongs to the thread.
pub struct Plant {
    /// The switches.
    pub lsis: Vec<Lsi>,
    /// The chip, if the switches are not of this machine's interfaces.
    pub asic: Option<Asic>,
    /// Frames to it.
    pub to_chip: ToChip,
    poller: Poller,
    scratch: Vec<u8>,
    segments: Buffer,
    piece: Buffer,
}

impl Plant {
    /// Without ports.
    pub fn new(lsis: Vec<Lsi>, poller: Poller) -> Plant {
        Plant {
            lsis,
            asic: None,
            to_chip: ToChip::default(),
            poller,
            scratch: vec![0; SCRATCH],
            segments: Buffer::new(),
            piece: Buffer::new(),
        }
    }

    /// What the chip has to say, and what is to be said to it. `told`: it has rung, or its end. When to be called again at the
    /// latest.
    fn turn_asic(&mut self, told: bool, now_ns: u64) -> u64 {
        let Some(asic) = &mut self.asic else {
            return u64::MAX;
        };
        let (lsis, to_chip) = (&mut self.lsis, &mut self.to_chip);
        let more = asic.receive(lsis, to_chip, now_ns);
        for chip in lsis.iter_mut().filter_map(|l| l.agent.chip_mut()) {
            chip.turn(now_ns);
        }
        let next = asic.look_after(told, lsis, to_chip, &self.poller, now_ns);
        let chips = lsis.iter_mut().filter_map(|l| l.agent.chip_mut());
        let due = chips.filter_map(|c| c.next_ns()).min();
        match more {
            true => now_ns,
            false => next.min(due.unwrap_or(u64::MAX)),
        }
    }

    /// Another port.
    pub fn add_port(&mut self, lsi: u16, arg: PortArg, mac: [u8; 6], opened: Opened, now_ns: u64) {
        let number = arg.number;
        let Some(to) = self.lsis.get_mut(usize::from(lsi)) else {
            return;
        };
        let link = (opened.link.up, opened.link.speed_mbps);
        to.agent.add_port(number, &arg.name(), mac, link, now_ns);
        to.ports.insert(
            number,
            Port {
                arg,
                rx: None,
                before: Lost::default(),
            },
        );
        to.plug(At { lsi, number }, opened, &self.poller, now_ns);
    }

    /// A port of the chip, by the N of `swpN`, comes to a switch.
    ///
    /// # Errors
    /// It is not there, or somebody's; or its number is another's.
    pub fn add_chip_port(
        &mut self,
        lsi: u16,
        front: u16,
        number: Option<u32>,
        now_ns: u64,
    ) -> Result<String, String> {
        let no_chip = || "there is no chip".to_owned();
        let asic = self.asic.as_ref().ok_or_else(no_chip)?;
        let Some((port, p)) = asic.panel().port(front) else {
            return Err(format!("there is no port swp{front}"));
        };
        if let Some((other, number)) = asic::owner(&mut self.lsis, u16::from(port)) {
            let prefix = other.prefix();
            return Err(format!("swp{front} is {prefix}port {number} already"));
        }
        let leaves = |l: &Lsi| {
            l.agent
                .datapath()
                .chip()
                .is_some_and(|c| c.is_leaving(port))
        };
        if let Some(l) = self.lsis.iter().find(|l| leaves(l)) {
            let prefix = l.prefix();
            return Err(format!(
                "swp{front} was {prefix}port, and the chip does not know yet that it is not: try again"
            ));
        }
        let number = number.unwrap_or(p.number);
        let to = self.lsis.get_mut(usize::from(lsi)).ok_or_else(no_chip)?;
        if let Some(other) = to.has(number) {
            return Err(format!("{other} has the number {number} already"));
        }
        let of = PortOf {
            number,
            port,
            mac: p.mac,
        };
        to.slots.chip.insert(number, u16::from(port));
        let link = asic.link(u16::from(port));
        to.agent.add_chip_port(of, &p.name, link, now_ns);
        tracing::info!("{} is {}port {number} now", p.name, to.prefix());
        Ok(format!("{} is {}port {number}", p.name, to.prefix()))
    }

    /// A port of the chip is nobody's from here on; [`Plant::is_leaving`] until the chip knows.
    ///
    /// # Errors
    /// It is not there, or nobody's.
    pub fn remove_chip_port(&mut self, front: u16) -> Result<(u8, String), String> {
        let none = || format!("there is no port swp{front}");
        let panel = self.asic.as_ref().map(Asic::panel).ok_or_else(none)?;
        let (port, _) = panel.port(front).ok_or_else(none)?;
        let (of, number) = asic::owner(&mut self.lsis, u16::from(port)).ok_or_else(none)?;
        of.slots.chip.remove(&number);
        of.agent.remove_port(number);
        self.to_chip.forget(u16::from(port));
        tracing::info!("swp{front} is no port any more");
        Ok((port, format!("swp{front} is no port any more")))
    }

    /// Does the chip not know yet that a port is nobody's?
    pub fn is_leaving(&self, port: u8) -> bool {
        let chips = self.lsis.iter().filter_map(|l| l.agent.datapath().chip());
        chips.into_iter().any(|c| c.is_leaving(port))
    }

    fn update(&mut self, update: Update, now_ns: u64) {
        let At { lsi, number } = update.at;
        if let Event::Added(arg, mac, opened) = update.event {
            self.add_port(lsi, arg, mac, *opened, now_ns);
            return;
        }
        let Some(of) = self.lsis.get_mut(usize::from(lsi)) else {
            return;
        };
        match update.event {
            Event::Added(..) => {}
            Event::Removed => {
                of.unplug(number, &self.poller);
                of.ports.remove(&number);
                of.agent.remove_port(number);
            }
            Event::Cable(Change::Opened(opened)) => {
                of.plug(update.at, *opened, &self.poller, now_ns);
            }
            Event::Cable(Change::Gone) => {
                of.unplug(number, &self.poller);
                of.agent.set_link(number, false, 0, now_ns);
            }
            Event::Cable(Change::Link(l)) => of.agent.set_link(number, l.up, l.speed_mbps, now_ns),
        }
    }

    fn receive(&mut self, at: At, error: bool, now_ns: u64) {
        let Plant {
            lsis,
            to_chip,
            scratch,
            segments,
            piece,
            ..
        } = self;
        let Some(lsi) = lsis.get_mut(usize::from(at.lsi)) else {
            return;
        };
        let Lsi {
            agent,
            ports,
            slots,
            ..
        } = lsi;
        let number = at.number;
        let Some(rx) = ports.get_mut(&number).and_then(|p| p.rx.as_mut()) else {
            return;
        };
        if error {
            rx.take_error();
        }
        let mut out = Out {
            slots,
            chip: to_chip,
            now_ns,
        };
        rx.receive(now_ns, FRAMES, scratch, &mut |frame| {
            if frame.offload.gso.is_none() {
                agent.frame(number, frame, now_ns, &mut out);
                return;
            }
            // what makes no sense as a super-frame is no frame
            let _ = segment::segment_frame(frame, segments, |bytes| {
                if piece.set(bytes) {
                    let mut one = piece.frame(Offload::NONE);
                    agent.frame(number, &mut one, now_ns, &mut out);
                }
            });
        });
    }

    /// Captures are not waited for but played; when the next frame is due.
    fn play(&mut self, now_ns: u64) -> u64 {
        let mut next = u64::MAX;
        let mut due: Vec<At> = Vec::new();
        for (lsi, l) in (0..).zip(&mut self.lsis) {
            for (number, p) in &mut l.ports {
                let Some(at) = p.rx.as_mut().and_then(|rx| rx.due(now_ns)) else {
                    continue;
                };
                next = next.min(at);
                if at <= now_ns {
                    let number = *number;
                    due.push(At { lsi, number });
                }
            }
        }
        for at in due {
            self.receive(at, false, now_ns);
        }
        next
    }

    /// The controllers' counters are those of the cables, too.
    pub fn count(&mut self) {
        for lsi in &mut self.lsis {
            lsi.count(&self.to_chip);
        }
    }

    /// Who became ready.
    fn ready(&mut self, r: Ready, bell: &EventFd, now_ns: u64) {
        match r.token {
            Token::Port(at) => self.receive(at, r.error, now_ns),
            Token::Link(lsi, n) => {
                if let Some(l) = self.lsis.get_mut(usize::from(lsi)) {
                    l.links.ready(n, r, &mut l.agent, &self.poller, now_ns);
                }
            }
            Token::Listener(lsi, n) => {
                if let Some(l) = self.lsis.get_mut(usize::from(lsi)) {
                    l.links.accept(n, &mut l.agent, &self.poller, now_ns);
                }
            }
            Token::Bell => {
                bell.drain();
            }
            // looked at in every turn
            Token::Chip => {}
        }
    }

    /// Controllers' messages, and what follows from them in the chip. When to be called again at the latest.
    fn turn_switches(&mut self, now_ns: u64) -> u64 {
        let mut next = u64::MAX;
        for l in &mut self.lsis {
            next = next.min(l.agent.tick(now_ns));
            let mut out = Out {
                slots: &mut l.slots,
                chip: &mut self.to_chip,
                now_ns,
            };
            let (kept, mut writes) = (&mut l.kept, false);
            let mut settle = |agent: &mut Agent| {
                writes = kept.as_mut().is_some_and(|k| k.settle(agent, now_ns));
            };
            let (links, agent) = (&mut l.links, &mut l.agent);
            next = next.min(links.turn(agent, &mut out, &self.poller, &mut settle, now_ns));
            if writes {
                next = now_ns;
            }
            // what this turn's messages changed
            if l.agent.chip_mut().is_some_and(|c| c.turn(now_ns)) {
                // somebody may have waited for that answer
                next = now_ns;
            }
        }
        next
    }

    /// Lets go of all frames. True: some wait.
    fn flush(&mut self) -> bool {
        let mut waits = false;
        for l in &mut self.lsis {
            waits |= l.slots.flush();
        }
        waits | self.to_chip.flush()
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
        let (mut awake, mut posted) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            let before = clock::now_ns();
            ready.clear();
            // Who goes round looks for himself: the chip need not ring
            let sleeps = self.asic.is_some() && next > before;
            if sleeps && !Asic::arm(&mut self.lsis, &mut self.to_chip) {
                next = before;
            }
            self.poller
                .wait(u64::saturating_sub(next, before), &mut ready)?;
            if sleeps {
                Asic::disarm(&mut self.lsis, &mut self.to_chip);
            }
            let now = clock::now_ns();
            for r in &ready {
                self.ready(*r, bell, now);
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
            let told = ready.iter().any(|r| r.token == Token::Chip);
            next = next.min(self.turn_asic(told, now)).min(self.play(now));
            next = next.min(self.turn_switches(now));
            if self.flush() {
                next = next.min(now + FULL_NS);
            }
            let chips = self.lsis.iter_mut().filter_map(|l| l.agent.chip_mut());
            let posts = chips.map(|c| c.mark()).fold(0, u64::wrapping_add);
            if posts != posted || self.lsis.iter().any(|l| l.links.has_written()) {
                posted = posts;
                // from its end: a turn may take as long
                awake = clock::now_ns() + AWAKE_NS;
            }
            let more = self.lsis.iter().any(|l| l.links.has_more());
            if more || !jobs.is_empty() {
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

// SPDX-License-Identifier: Apache-2.0
//! The switch ASIC below the tables: attaching to asicd, its links, packets from it and to it.
//!
//! ```text
//!   agent ─► Chip ─► Part ─► SalControl ═► asicd    what the flows are in the chip
//!   agent ◄─ frames, links ◄─ SalIo ◄═              what it traps, cables
//!   agent ─► Slots ─► ToChip ─► SalIo ═►            straight out of a port
//! ```
//!
//! Logical switches share the chip: each has its ports, its list of rows, its domain. The first attach of a process that
//! has an earlier one's tables is warm: what the chip holds is compared with them, and what differs is written. All others
//! are cold: the tables of the chip are emptied and written anew.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use tandem_abi::raw;
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::process::Process;
use tandem_ofchip::{Chip, Limits, Lookup, PortOf, Setup, Slice, parts};
use tandem_packet::{Buffer, Offload};
use tandem_sal::{Device, Event, Sal, SalError, SalIo};

use crate::attempt::{self, Ask, Attempt, Made, Outcome};
use crate::lsi::Switch;
use crate::poller::{Poller, Token};
use crate::slots::{Out, ToChip};
use crate::switch::Lsi;

/// From the end of an attempt to the next one: the first time, and at most.
const RETRY_NS: [u64; 2] = [250_000_000, 8_000_000_000];
/// Frames of the CPU, and events, in one turn.
const FRAMES: usize = 256;

/// The connection to asicd.
pub struct Asic {
    socket: PathBuf,
    name: String,
    sal: Option<Sal>,
    /// What the chip holds may be an earlier process's: so many attempts may still be warm.
    warm: u8,
    retry_ns: u64,
    /// How long the next pause is. Each is twice the last, until the chip answers by itself: each attempt that gets on takes
    /// all links down and up.
    pause_ns: u64,
    /// The attempt that is under way, and what rings at its end.
    attempt: Option<Attempt>,
    bell: Option<Arc<EventFd>>,
    /// There was none yet. It is waited for: nobody is served before the chip's ports are.
    first: bool,
    /// asicd as it was attached to last, or connected to at the start.
    process: Option<Process>,
    error: String,
    /// By the chip's port: up, and how fast, of all ports that it has told of.
    links: BTreeMap<u16, (bool, u32)>,
    panel: Arc<Panel>,
    frame: Vec<u8>,
    buffer: Buffer,
}

/// A port of the front panel: number for controllers, name, address.
#[derive(PartialEq, Eq)]
pub struct FrontPort {
    pub number: u32,
    pub name: String,
    pub mac: [u8; 6],
}

/// What the chip is, and its ports.
#[derive(Default)]
pub struct Panel {
    profile: String,
    /// Can flow ports be members of domains?
    members: bool,
    /// Of such that have numbers of their own?
    pub domains: bool,
    /// Can lists classify their frames?
    classes: bool,
    /// And give them a form by the port that they leave by?
    forms: bool,
    /// By the N of `swpN`.
    ports: BTreeMap<u16, (u8, FrontPort)>,
}

/// What all switches of the chip have in common.
#[derive(Clone, Copy)]
pub struct Common {
    pub lookup: Lookup,
    pub chains: Limits,
}

impl Panel {
    /// Of a connection.
    pub fn of(sal: &Sal) -> Panel {
        let platform = sal.platform();
        let list = platform.ports.iter().filter_map(|p| {
            let port = u8::try_from(p.port).ok()?;
            let front = FrontPort {
                number: u32::from(p.front_panel),
                name: p.name.clone(),
                mac: p.mac.unwrap_or([2, 0, 0, 0, 0, port]),
            };
            Some((p.front_panel, (port, front)))
        });
        Panel {
            profile: platform.chip.clone(),
            members: sal.offered() & raw::TND_FEAT_FLOW_MEMBERS != 0,
            domains: sal.offered() & raw::TND_FEAT_FLOW_FIDS != 0,
            classes: sal.offered() & raw::TND_FEAT_FLOW_CLASS != 0,
            forms: sal.offered() & raw::TND_FEAT_FLOW_EGRESS != 0,
            ports: list.collect(),
        }
    }

    /// From here on only what these switches' parts use of what it can: what they do not, another one may lack.
    fn uses(&mut self, switches: usize, classes: bool, lookup: Lookup) {
        self.domains &= switches > 1 && lookup == Lookup::Address;
        self.classes &= classes;
        // what ports get is asked for behind what classifies
        self.forms &= classes;
        self.members &= lookup == Lookup::Vlan;
    }

    /// What of another chip is not as it is here. One that can more, as asicd was updated, is the same; so is one that
    /// lacks what nobody uses.
    pub fn other(&self, is: &Panel) -> Option<String> {
        if self.profile != is.profile {
            return Some(format!("{} instead of {}", is.profile, self.profile));
        }
        if self.domains && !is.domains {
            return Some("without domains of each switch's flow ports instead of with".into());
        }
        if self.classes && !is.classes {
            return Some("without lists that classify flow ports' frames instead of with".into());
        }
        if self.forms && !is.forms {
            return Some(
                "without lists for the form in which flow ports' frames leave instead of with"
                    .into(),
            );
        }
        if self.members && !is.members {
            return Some("without members of flow ports' domains instead of with".into());
        }
        let (had, has) = (self.ports.len(), is.ports.len());
        if had != has {
            return Some(format!("with {has} ports instead of {had}"));
        }
        let mut both = self.ports.values().zip(is.ports.values());
        let (_, (_, port)) = both.find(|(a, b)| a != b)?;
        Some(format!("whose {} has another number or address", port.name))
    }

    /// A port, by the N of `swpN`: the chip's own number, name and address.
    pub fn port(&self, front: u16) -> Option<(u8, &FrontPort)> {
        self.ports.get(&front).map(|(port, p)| (*port, p))
    }

    /// A switch's part of the chip, with its ports.
    ///
    /// # Errors
    /// A port that is not there, a chip that flows can't stand in.
    pub fn part(
        &self,
        of: &Switch,
        slice: Slice,
        common: Common,
    ) -> anyhow::Result<(Chip, Vec<FrontPort>)> {
        let mut own = Vec::new();
        let mut front = Vec::new();
        let own_numbers = || {
            self.ports
                .iter()
                .map(|(n, (_, p))| (*n, p.number))
                .collect()
        };
        let asked: Vec<(u16, u32)> = of.ports.clone().unwrap_or_else(own_numbers);
        for (n, number) in asked {
            let Some((port, p)) = self.ports.get(&n) else {
                let prefix = of.prefix();
                bail!(
                    "{prefix}there is no port swp{n}: a {} has not",
                    self.profile
                );
            };
            let mac = p.mac;
            own.push(PortOf {
                number,
                port: *port,
                mac,
            });
            let name = p.name.clone();
            front.push(FrontPort { number, name, mac });
        }
        let chip = Chip::new(Setup {
            profile: self.profile.clone(),
            lookup: common.lookup,
            version: of.newest(),
            ports: own,
            local: of.local.is_some(),
            chains: Limits {
                members: self.members,
                forms: self.forms,
                ..common.chains
            },
            classes: self.classes,
            slice,
        })?;
        for version in of.offers() {
            chip.has_room_for(version)?;
        }
        Ok((chip, front))
    }
}

impl Asic {
    /// Connects to the asicd of an instance: the chip that it is, and its ports.
    ///
    /// # Errors
    /// None is there, or one that flows can't stand in.
    pub fn connect(socket: PathBuf, name: String) -> anyhow::Result<Asic> {
        let sal = attempt::connect(&socket, &name)?;
        for w in &sal.platform().warnings {
            tracing::warn!("{w}");
        }
        let panel = Arc::new(Panel::of(&sal));
        let process = Process::of_peer(sal.socket()).ok();
        Ok(Asic {
            socket,
            name,
            sal: Some(sal),
            warm: 0,
            retry_ns: 0,
            pause_ns: RETRY_NS[0],
            attempt: None,
            bell: None,
            first: true,
            process,
            error: String::new(),
            links: BTreeMap::new(),
            panel,
            frame: Vec::new(),
            buffer: Buffer::new(),
        })
    }

    /// Its switches' parts: what they use of it is what it has to be able to from here on.
    pub fn used_by<'a>(&mut self, parts: impl Iterator<Item = &'a Chip>, lookup: Lookup) {
        let classes: Vec<bool> = parts.map(|c| c.class_name().is_some()).collect();
        // nobody else has it before the first attempt
        if let Some(panel) = Arc::get_mut(&mut self.panel) {
            panel.uses(classes.len(), classes.contains(&true), lookup);
        }
    }

    /// Is what it holds perhaps an earlier process's? `bell` wakes the switches' thread, which later attempts don't hold up.
    pub fn of_earlier(self, warm: bool, bell: &Arc<EventFd>) -> Asic {
        let bell = Some(Arc::clone(bell));
        let warm = if warm { attempt::WARM } else { 0 };
        Asic { warm, bell, ..self }
    }

    /// Its ports.
    pub fn panel(&self) -> &Panel {
        &self.panel
    }

    /// Up, and how fast, as it told last.
    pub fn link(&self, port: u16) -> (bool, u32) {
        self.links.get(&port).copied().unwrap_or_default()
    }

    /// The connection stands, or is made anew. `told`: one of its descriptors is readable, as they are when it ends. When to
    /// be called again at the latest.
    pub fn look_after(
        &mut self,
        told: bool,
        lsis: &mut [Lsi],
        to_chip: &mut ToChip,
        poller: &Poller,
        now_ns: u64,
    ) -> u64 {
        let sal = self.sal.as_ref().filter(|_| told);
        if let Some(e) = sal.and_then(|s| s.check().err()) {
            self.part(lsis, to_chip, poller, now_ns);
            lose(lsis, &e.to_string());
            self.sal = None;
        }
        if chips(lsis).any(|c| c.is_open()) {
            self.pause_ns = RETRY_NS[0];
        }
        let Some(why) = chips(lsis).find_map(|c| c.lost().map(ToOwned::to_owned)) else {
            return u64::MAX;
        };
        // An attach empties the chip: who shares it writes its part anew as well
        for chip in chips(lsis).filter(|c| c.lost().is_none()) {
            chip.lose(&why);
        }
        self.part(lsis, to_chip, poller, now_ns);
        self.look_for_its_end(lsis, poller);
        let Some(Outcome { done, warm }) = self.attempt_on(now_ns) else {
            return match self.attempt {
                // it rings
                Some(_) => u64::MAX,
                None => self.retry_ns,
            };
        };
        // what a switch finds there it finds again
        self.warm = if done.is_ok() { 0 } else { warm };
        let done = done.and_then(|made| self.attach(made, lsis, to_chip, poller, now_ns));
        self.wait(clock::now_ns());
        match done {
            Ok(how) => {
                self.error.clear();
                tracing::info!("attached to asicd: {how}");
                now_ns
            }
            Err(e) => {
                let said = format!("{e:#}");
                // said once
                if self.error != said {
                    tracing::warn!("the chip is not attached: {said}");
                    self.error.clone_from(&said);
                }
                lose(lsis, &said);
                self.sal = None;
                self.forget_links(lsis, now_ns);
                self.retry_ns
            }
        }
    }

    /// What became of an attempt; one begins when it is time.
    fn attempt_on(&mut self, now_ns: u64) -> Option<Outcome> {
        if let Some(attempt) = &self.attempt {
            let outcome = attempt.done()?;
            self.attempt = None;
            return Some(outcome);
        }
        if now_ns < self.retry_ns {
            return None;
        }
        let ask = Ask {
            socket: self.socket.clone(),
            name: self.name.clone(),
            sal: self.sal.take(),
            warm: self.warm,
            panel: Arc::clone(&self.panel),
        };
        let waits = std::mem::take(&mut self.first);
        let bell = match &self.bell {
            Some(bell) if !waits => Arc::clone(bell),
            _ => return Some(attempt::make(ask)),
        };
        match Attempt::begin(ask, bell) {
            Ok(attempt) => {
                self.attempt = Some(attempt);
                None
            }
            Err(e) => Some(Outcome {
                done: Err(e.into()),
                warm: self.warm,
            }),
        }
    }

    /// An asicd that has ended forwards nothing; one that only does not answer may.
    fn look_for_its_end(&mut self, lsis: &mut [Lsi], poller: &Poller) {
        if let Some(process) = self.process.take_if(|p| p.has_ended()) {
            poller.remove(process.as_fd());
            for chip in chips(lsis) {
                chip.gone();
            }
        }
    }

    fn attach(
        &mut self,
        made: Made,
        lsis: &mut [Lsi],
        to_chip: &mut ToChip,
        poller: &Poller,
        now_ns: u64,
    ) -> anyhow::Result<&'static str> {
        let Made {
            sal,
            control,
            io,
            warm,
            process,
        } = made;
        let sal = self.sal.insert(sal);
        let watch = |fd: BorrowedFd<'_>| poller.add(Token::Chip, fd, true, false);
        for fd in Device::fds(&control).into_iter().chain(io.fds()) {
            watch(fd)?;
        }
        watch(sal.socket())?;
        if let Some(old) = std::mem::replace(&mut self.process, process) {
            poller.remove(old.as_fd());
        }
        if let Some(process) = &self.process {
            watch(process.as_fd())?;
        }
        // one that has ended since it answered does not go on
        sal.check()?;
        to_chip.io = Some(io);
        let parts = parts(Box::new(control), lsis.len());
        let mut open = warm;
        for (chip, part) in chips(lsis).zip(parts) {
            if warm {
                open &= chip.adopt(Box::new(part), now_ns)?;
            } else {
                chip.attach(Box::new(part), now_ns)?;
            }
        }
        Ok(match (warm, open) {
            (true, true) => "the chip goes on as it is",
            (true, false) => "the chip goes on, and what differs is written to it",
            (false, _) => "all flows are written to the chip",
        })
    }

    /// The next attempt is not before a pause from now.
    fn wait(&mut self, now_ns: u64) {
        self.retry_ns = now_ns + self.pause_ns;
        self.pause_ns = (2 * self.pause_ns).min(RETRY_NS[1]);
    }

    /// What belonged to the attach is not looked after any more; links are not known. The session ends: with it the
    /// doorbells of both halves are closed, and so leave the poller.
    fn part(&mut self, lsis: &mut [Lsi], to_chip: &mut ToChip, poller: &Poller, now_ns: u64) {
        let Some(io) = to_chip.io.take() else {
            return;
        };
        for fd in io.fds() {
            poller.remove(fd);
        }
        if let Some(sal) = self.sal.take() {
            poller.remove(sal.socket());
            // asicd has to see its end before it takes another
            self.retry_ns = self.retry_ns.max(now_ns + RETRY_NS[0]);
        }
        self.forget_links(lsis, now_ns);
    }

    /// Nobody tells of them.
    fn forget_links(&mut self, lsis: &mut [Lsi], now_ns: u64) {
        self.links.clear();
        for l in lsis {
            for n in l.slots.chip.keys() {
                l.agent.set_link(*n, false, 0, now_ns);
            }
        }
    }

    /// Links that changed, and frames that the chip does not answer. True: there may be more.
    pub fn receive(&mut self, lsis: &mut [Lsi], to_chip: &mut ToChip, now_ns: u64) -> bool {
        match self.take(lsis, to_chip, now_ns) {
            Ok(more) => more,
            Err(e) => {
                lose(lsis, &e.to_string());
                true
            }
        }
    }

    fn take(
        &mut self,
        lsis: &mut [Lsi],
        to_chip: &mut ToChip,
        now_ns: u64,
    ) -> Result<bool, SalError> {
        let links = &mut self.links;
        let mut told = |lsis: &mut [Lsi], event: Event| {
            let Event::Link {
                port,
                up,
                speed_mbps,
            } = event
            else {
                return;
            };
            links.insert(port, (up, speed_mbps));
            if let Some((lsi, number)) = owner(lsis, port) {
                lsi.agent.set_link(number, up, speed_mbps, now_ns);
            }
        };
        for _ in 0..FRAMES {
            let event = to_chip.io.as_mut().map(SalIo::event);
            let Some(event) = event.transpose()?.flatten() else {
                break;
            };
            told(lsis, event);
        }
        for _ in 0..FRAMES {
            let Some(io) = &mut to_chip.io else {
                return Ok(false);
            };
            let Some(meta) = io.receive(&mut self.frame)? else {
                return Ok(false);
            };
            while let Some(event) = io.event_before(&meta)? {
                told(lsis, event);
            }
            // A copy of what the chip has dealt with is nobody's packet
            if !meta.forwarded()
                && let Some((lsi, number)) = owner(lsis, meta.port)
                && self.buffer.set(&self.frame)
            {
                let mut frame = self.buffer.frame(Offload::NONE);
                let mut out = Out {
                    slots: &mut lsi.slots,
                    chip: to_chip,
                    now_ns,
                };
                lsi.agent.frame(number, &mut frame, now_ns, &mut out);
            }
        }
        Ok(true)
    }

    /// Before sleeping. False: something waits.
    pub fn arm(lsis: &mut [Lsi], to_chip: &mut ToChip) -> bool {
        let mut quiet = true;
        for chip in chips(lsis) {
            quiet &= chip.arm();
        }
        match to_chip.io.as_mut().map(SalIo::arm) {
            Some(Ok(none)) => quiet && none,
            Some(Err(e)) => {
                lose(lsis, &e.to_string());
                false
            }
            None => quiet,
        }
    }

    /// After waking.
    pub fn disarm(lsis: &mut [Lsi], to_chip: &mut ToChip) {
        for chip in chips(lsis) {
            chip.disarm();
        }
        if let Some(io) = &mut to_chip.io {
            io.disarm();
        }
    }

    /// The end: the chip forwards on.
    pub fn close(&mut self) {
        if let Some(sal) = &mut self.sal {
            let _ = sal.detach();
        }
    }
}

/// Each switch's part of the chip.
fn chips(lsis: &mut [Lsi]) -> impl Iterator<Item = &mut Chip> {
    lsis.iter_mut().filter_map(|l| l.agent.chip_mut())
}

fn lose(lsis: &mut [Lsi], why: &str) {
    for chip in chips(lsis) {
        chip.lose(why);
    }
}

/// Whose port of the chip it is, by which number.
pub fn owner(lsis: &mut [Lsi], port: u16) -> Option<(&mut Lsi, u32)> {
    lsis.iter_mut().find_map(|l| {
        let number = l.agent.datapath().chip()?.number(port)?;
        Some((l, number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_chip_is_not_taken_for_the_one_that_was_there() {
        let panel = |profile: &str, ports: &[(u8, u8)]| Panel {
            members: false,
            domains: false,
            classes: false,
            forms: false,
            profile: profile.into(),
            ports: ports
                .iter()
                .map(|(n, last)| {
                    let port = FrontPort {
                        number: (*n).into(),
                        name: format!("swp{n}"),
                        mac: [2, 0, 0, 0, 0, *last],
                    };
                    (u16::from(*n), (*n, port))
                })
                .collect(),
        };
        let had = panel("tiny", &[(1, 1), (2, 2)]);
        assert_eq!(had.other(&panel("tiny", &[(1, 1), (2, 2)])), None);
        let said = |is: Panel| had.other(&is).unwrap();
        assert_eq!(
            said(panel("nxp-t1040", &[(1, 1), (2, 2)])),
            "nxp-t1040 instead of tiny"
        );
        assert_eq!(said(panel("tiny", &[(1, 1)])), "with 1 ports instead of 2");
        assert_eq!(
            said(panel("tiny", &[(1, 1), (2, 9)])),
            "whose swp2 has another number or address"
        );
        // an update brings more, and takes nothing
        let ports = [(1, 1), (2, 2)];
        let newer = Panel {
            members: true,
            domains: true,
            classes: true,
            forms: true,
            ..panel("tiny", &ports)
        };
        assert_eq!(had.other(&newer), None);
        let members = Panel {
            members: true,
            ..panel("tiny", &ports)
        };
        assert_eq!(
            newer.other(&members).unwrap(),
            "without domains of each switch's flow ports instead of with"
        );
        let classes = Panel {
            classes: true,
            ..panel("tiny", &ports)
        };
        assert_eq!(
            classes.other(&had).unwrap(),
            "without lists that classify flow ports' frames instead of with"
        );
        assert_eq!(
            members.other(&had).unwrap(),
            "without members of flow ports' domains instead of with"
        );
        let forms = Panel {
            forms: true,
            ..panel("tiny", &ports)
        };
        let said = forms.other(&had).unwrap_or_default();
        assert!(said.contains("without lists for the form"), "{said}");
        assert_eq!(forms.other(&newer), None);
        // an older asicd takes what nobody uses
        for (switches, classes, lookup, lacks) in [
            (1, false, Lookup::Address, None),
            (2, false, Lookup::Address, Some("domains of each switch's")),
            (2, false, Lookup::Vlan, Some("members of flow ports'")),
            (1, true, Lookup::Address, Some("lists that classify")),
        ] {
            let mut used = Panel {
                members: true,
                domains: true,
                classes: true,
                forms: true,
                ..panel("tiny", &ports)
            };
            used.uses(switches, classes, lookup);
            let said = used.other(&had).unwrap_or_default();
            assert!(
                said.contains(lacks.unwrap_or("")) && said.is_empty() == lacks.is_none(),
                "{said}"
            );
        }
    }

    #[test]
    fn pauses_between_attempts_grow_from_their_end() {
        let mut asic = Asic {
            socket: PathBuf::new(),
            name: String::new(),
            sal: None,
            warm: 0,
            retry_ns: 0,
            pause_ns: RETRY_NS[0],
            attempt: None,
            bell: None,
            first: true,
            process: None,
            error: String::new(),
            links: BTreeMap::new(),
            panel: Arc::default(),
            frame: Vec::new(),
            buffer: Buffer::new(),
        };
        let pauses = [0, 1, 2, 3, 4, 5, 6].map(|now_ns| {
            asic.wait(now_ns);
            (asic.retry_ns - now_ns) / 1_000_000
        });
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000]);
    }
}

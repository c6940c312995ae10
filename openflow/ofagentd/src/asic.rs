// SPDX-License-Identifier: Apache-2.0
//! The switch ASIC below the tables: attaching to asicd, its links, packets from it and to it.
//!
//! ```text
//!   agent ─► Chip ─► SalControl ═► asicd        what the flows are in the chip
//!   agent ◄─ frames, links ◄─ SalIo ◄═          what it traps, cables
//!   agent ─► Slots ─► SalIo ═►                  straight out of a port
//! ```
//!
//! An attach is always cold: the tables of the chip are this process's, and are written anew.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use tandem_abi::raw;
use tandem_linux::clock;
use tandem_ofagent::Agent;
use tandem_ofchip::{Chip, Limits, Lookup, PortOf, Setup};
use tandem_openflow::Version;
use tandem_packet::{Buffer, Offload};
use tandem_sal::{Attach, Device, Event, Platform, Sal, SalError, SalIo, Splits};

use crate::poller::{Poller, Token};
use crate::slots::Slots;

/// asicd answers within this time, or is asked again later.
const ANSWER: Duration = Duration::from_secs(1);
/// From the end of an attempt to the next one: the first time, and at most.
const RETRY_NS: [u64; 2] = [250_000_000, 8_000_000_000];
/// Frames of the CPU, and events, in one turn.
const FRAMES: usize = 256;

/// The connection to asicd.
pub struct Asic {
    socket: PathBuf,
    name: String,
    sal: Option<Sal>,
    retry_ns: u64,
    /// How long the next pause is. Each is twice the last, until the chip answers by itself: attempts are waited for by
    /// the thread that serves controllers, and each that gets on takes all links down and up.
    pause_ns: u64,
    error: String,
    frame: Vec<u8>,
    buffer: Buffer,
}

/// A port of the front panel: number for controllers, name, address.
pub struct FrontPort {
    pub number: u32,
    pub name: String,
    pub mac: [u8; 6],
}

fn ports(platform: &Platform) -> Vec<(PortOf, String)> {
    let list = platform.ports.iter().filter_map(|p| {
        let port = u8::try_from(p.port).ok()?;
        let of = PortOf {
            number: u32::from(p.front_panel),
            port,
            mac: p.mac.unwrap_or([2, 0, 0, 0, 0, port]),
        };
        Some((of, p.name.clone()))
    });
    list.collect()
}

/// A connection to a chip that has flow ports.
fn connect(socket: &Path, name: &str) -> anyhow::Result<Sal> {
    let sal = Sal::connect(socket, name, &Splits::new(), ANSWER)
        .with_context(|| format!("asicd, {}", socket.display()))?;
    let chip = &sal.platform().chip;
    // What does not know them takes their bits for nothing, and answers OK
    match sal.offered() & raw::TND_FEAT_FLOWS {
        0 => Err(anyhow!("a chip {chip} has no flow ports")),
        _ => Ok(sal),
    }
}

impl Asic {
    /// Connects to the asicd of an instance: the chip that it is, and its ports.
    ///
    /// # Errors
    /// None is there, or one that flows can't stand in.
    pub fn connect(
        socket: PathBuf,
        name: String,
        lookup: Lookup,
        version: Version,
        local: bool,
        chains: Limits,
    ) -> anyhow::Result<(Asic, Chip, Vec<FrontPort>)> {
        let sal = connect(&socket, &name)?;
        let platform = sal.platform();
        for w in &platform.warnings {
            tracing::warn!("{w}");
        }
        let ports = ports(platform);
        let chip = Chip::new(Setup {
            profile: platform.chip.clone(),
            lookup,
            version,
            ports: ports.iter().map(|(p, _)| *p).collect(),
            local,
            chains,
        })?;
        let front = ports.into_iter().map(|(p, name)| FrontPort {
            number: p.number,
            name,
            mac: p.mac,
        });
        let front = front.collect();
        let asic = Asic {
            socket,
            name,
            sal: Some(sal),
            retry_ns: 0,
            pause_ns: RETRY_NS[0],
            error: String::new(),
            frame: Vec::new(),
            buffer: Buffer::new(),
        };
        Ok((asic, chip, front))
    }

    /// The connection stands, or is made anew. When to be called again at the latest.
    pub fn look_after(
        &mut self,
        agent: &mut Agent,
        slots: &mut Slots,
        poller: &Poller,
        now_ns: u64,
    ) -> u64 {
        if let Some(e) = self.sal.as_ref().and_then(|s| s.check().err()) {
            self.part(agent, slots, poller, now_ns);
            if let Some(chip) = agent.chip_mut() {
                chip.lose(&e.to_string());
            }
            self.sal = None;
        }
        let chip = agent.chip_mut();
        let (lost, open) = chip.map_or((false, false), |c| (c.lost().is_some(), c.is_open()));
        if open {
            self.pause_ns = RETRY_NS[0];
        }
        if !lost {
            return u64::MAX;
        }
        self.part(agent, slots, poller, now_ns);
        if now_ns < self.retry_ns {
            return self.retry_ns;
        }
        let done = self.attach(agent, slots, poller, now_ns);
        self.wait(clock::now_ns());
        match done {
            Ok(()) => {
                self.error.clear();
                tracing::info!("attached to asicd: all flows are written to the chip");
                now_ns
            }
            Err(e) => {
                let said = format!("{e:#}");
                // said once
                if self.error != said {
                    tracing::warn!("the chip is not attached: {said}");
                    if let Some(chip) = agent.chip_mut() {
                        chip.lose(&said);
                    }
                    self.error = said;
                }
                self.sal = None;
                self.retry_ns
            }
        }
    }

    fn attach(
        &mut self,
        agent: &mut Agent,
        slots: &mut Slots,
        poller: &Poller,
        now_ns: u64,
    ) -> anyhow::Result<()> {
        let sal = match &mut self.sal {
            Some(sal) => sal,
            none => none.insert(connect(&self.socket, &self.name)?),
        };
        let (control, io) = sal.attach(Attach::Cold)?;
        let chip = agent.chip_mut().ok_or(anyhow!("no chip"))?;
        let watch = |fd: BorrowedFd<'_>| poller.add(Token::Chip, fd, true, false);
        for fd in Device::fds(&control).into_iter().chain(io.fds()) {
            watch(fd)?;
        }
        watch(sal.socket())?;
        slots.io = Some(io);
        chip.attach(Box::new(control), now_ns)?;
        Ok(())
    }

    /// The next attempt is not before a pause from now.
    fn wait(&mut self, now_ns: u64) {
        self.retry_ns = now_ns + self.pause_ns;
        self.pause_ns = (2 * self.pause_ns).min(RETRY_NS[1]);
    }

    /// What belonged to the attach is not looked after any more; links are not known. The session ends: with it the
    /// doorbells of both halves are closed, and so leave the poller.
    fn part(&mut self, agent: &mut Agent, slots: &mut Slots, poller: &Poller, now_ns: u64) {
        let Some(io) = slots.io.take() else {
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
        let numbers: Vec<u32> = slots.chip.keys().copied().collect();
        for n in numbers {
            agent.set_link(n, false, 0, now_ns);
        }
    }

    /// Links that changed, and frames that the chip does not answer. True: there may be more.
    pub fn receive(&mut self, agent: &mut Agent, slots: &mut Slots, now_ns: u64) -> bool {
        match self.take(agent, slots, now_ns) {
            Ok(more) => more,
            Err(e) => {
                if let Some(chip) = agent.chip_mut() {
                    chip.lose(&e.to_string());
                }
                true
            }
        }
    }

    fn take(
        &mut self,
        agent: &mut Agent,
        slots: &mut Slots,
        now_ns: u64,
    ) -> Result<bool, SalError> {
        let told = |agent: &mut Agent, event: Event| {
            if let Event::Link {
                port,
                up,
                speed_mbps,
            } = event
                && let Some(number) = agent.chip_mut().and_then(|c| c.number(port))
            {
                agent.set_link(number, up, speed_mbps, now_ns);
            }
        };
        for _ in 0..FRAMES {
            let Some(event) = slots.io.as_mut().map(SalIo::event).transpose()?.flatten() else {
                break;
            };
            told(agent, event);
        }
        for _ in 0..FRAMES {
            let Some(io) = &mut slots.io else {
                return Ok(false);
            };
            let Some(meta) = io.receive(&mut self.frame)? else {
                return Ok(false);
            };
            while let Some(event) = io.event_before(&meta)? {
                told(agent, event);
            }
            // A copy of what the chip has dealt with is nobody's packet
            let number = agent.chip_mut().and_then(|c| c.number(meta.port));
            if let Some(number) = number.filter(|_| !meta.forwarded())
                && self.buffer.set(&self.frame)
            {
                let mut frame = self.buffer.frame(Offload::NONE);
                agent.frame(number, &mut frame, now_ns, slots);
            }
        }
        Ok(true)
    }

    /// Before sleeping. False: something waits.
    pub fn arm(agent: &mut Agent, slots: &mut Slots) -> bool {
        let quiet = agent.chip_mut().is_none_or(Chip::arm);
        match slots.io.as_mut().map(SalIo::arm) {
            Some(Ok(none)) => quiet && none,
            Some(Err(e)) => {
                if let Some(chip) = agent.chip_mut() {
                    chip.lose(&e.to_string());
                }
                false
            }
            None => quiet,
        }
    }

    /// After waking.
    pub fn disarm(agent: &mut Agent, slots: &mut Slots) {
        if let Some(chip) = agent.chip_mut() {
            chip.disarm();
        }
        if let Some(io) = &mut slots.io {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_attempts_grow_from_their_end() {
        let mut asic = Asic {
            socket: PathBuf::new(),
            name: String::new(),
            sal: None,
            retry_ns: 0,
            pause_ns: RETRY_NS[0],
            error: String::new(),
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

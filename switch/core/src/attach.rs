//! Getting the device, losing it, getting it back.
//!
//! ```text
//!   connect ─► ports (kept TAPs or new ones) ─► attach warm | cold ─► Steady
//!                                                     ▲                 │ socket closed, ring dead,
//!      every 250 ms ─ connect, keep the TAPs again ───┘◄── lost ◄───────┘ device failed
//! ```
//!
//! Warm when the ports were taken over: the chip's tables are an earlier switchd's, and nothing in
//! them that is right is written again. Cold else: a new asicd has empty tables.

use std::collections::HashMap;
use std::time::Duration;

use tandem_abi::object::fixed;
use tandem_abi::raw;
use tandem_sal::{Attach, Device, SalError};
use tandem_store::model::FdbKey;
use tandem_store::{Config, Domain, Left, Policy};

use super::plant::{Attached, NotYet};
use super::{Core, Phase};
use crate::SECOND_NS;
use crate::io::Command;
use crate::source::{Source, Write};
use crate::view::{SharedView, vlan_of};

/// The io thread takes a command within this.
const IO_TIMEOUT: Duration = Duration::from_secs(1);
/// Between two attempts to reach a device that is gone.
const RETRY_NS: u64 = SECOND_NS / 4;
/// The ports keep their carrier for so long without a device: a restart of asicd shall not look
/// like a pulled cable, a dead switch shall.
const GRACE_NS: u64 = 10 * SECOND_NS;

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
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    lost_ns: Option<u64>,
    retry_ns: u64,
    dark: bool,
}

impl Link {
    pub(super) fn up() -> Link {
        Link {
            lost_ns: None,
            retry_ns: 0,
            dark: false,
        }
    }
}

/// What the store needs to know of the chip.
pub fn store_config(
    control: &mut dyn Device,
    policy: Policy,
    ports: usize,
) -> Result<Config, SalError> {
    let pools = control.snapshot()?;
    let costs = control.costs()?;
    let ports = u16::try_from(ports).unwrap_or(u16::MAX);
    let mut config = Config {
        policy,
        ..Config::of_chip(ports, &pools, &costs)
    };
    for (max, limit) in config
        .max_outstanding
        .iter_mut()
        .zip([control.limit(0), control.limit(1)])
    {
        // leave room for questions
        *max = (*max).min(limit.saturating_sub(16).max(1));
    }
    Ok(config)
}

/// What the chip has already, and what it has learned: after a warm attach. Whose addresses
/// these are is marked in `view`.
pub fn read_left(
    control: &mut dyn Device,
    how: Attach,
    view: &SharedView,
) -> Result<(Left, Vec<Found>), SalError> {
    let mut learned = Vec::new();
    let mut left = Left::default();
    if how == Attach::Warm {
        control.dump(|g: raw::tnd_nhg, tail| left.groups.push((g, fixed(tail).collect())))?;
        control.dump(|p: raw::tnd_port, _| left.ports.push(p))?;
        control.dump(|r: raw::tnd_rif, _| left.rifs.push(r))?;
        control.dump(|m: raw::tnd_vlan_member, _| {
            left.members.insert((m.port, m.vid), m.fid);
        })?;
        let vids: HashMap<(u16, u16), u16> = left
            .members
            .iter()
            .map(|((port, vid), fid)| ((*port, *fid), *vid))
            .collect();
        let mut view = view.lock();
        control.dump(|e: raw::tnd_fdb, _| {
            let somebodys = raw::TND_FDB_STATIC | raw::TND_FDB_NO_AGE;
            if e.action != raw::TND_ACT_FORWARD || e.flags & somebodys != 0 {
                return;
            }
            let Some(vid) = vids.get(&(e.port, e.fid)) else {
                return;
            };
            let vlan = vlan_of(*vid);
            view.set_found(vlan, e.mac);
            // one that a driver wrote is confirmed like everything else
            if e.flags & raw::TND_FDB_LEARNED != 0 {
                learned.push(Found {
                    vlan,
                    mac: e.mac,
                    port: e.port,
                    fid: e.fid,
                });
            }
        })?;
    }
    Ok((left, learned))
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
        if self.attach_due.is_some() {
            return;
        }
        if self.found_fdb.is_empty() {
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
        self.upkeep.device_lost();
        self.questions.lost(&format!("the ASIC is lost: {why}"));
        self.store.detach();
        let now = self.now;
        self.link.lost_ns = Some(now);
        self.link.retry_ns = now;
        if !self.send_io(Command::Detach) {
            // it finds out by itself: its rings are those of a device that is gone
            tracing::warn!("the packet thread takes no commands");
        }
    }

    /// The io thread takes commands at every turn and is never far behind. False: it did not take
    /// this one within a second.
    #[must_use]
    fn send_io(&self, command: Command) -> bool {
        self.io_wake.ring();
        let sent = self.io.send_timeout(command, IO_TIMEOUT).is_ok();
        self.io_wake.ring();
        sent
    }

    /// Looks after the connection.
    pub(super) fn watch_device(&mut self, now: u64) {
        if self.control.is_some() {
            if let Err(e) = self.plant.check() {
                self.lose(&e);
            }
            return;
        }
        if let Some(lost) = self.link.lost_ns
            && !self.link.dark
            && now >= lost + GRACE_NS
        {
            self.link.dark = true;
            self.warn("no ASIC for 10 s: the ports have no carrier".into());
            self.plant.set_carrier(false);
        }
        if now < self.link.retry_ns {
            return;
        }
        self.link.retry_ns = now + RETRY_NS;
        match self.reattach() {
            Ok(()) => {
                self.link = Link::up();
                self.warnings.retain(|w| !w.starts_with("no ASIC"));
                tracing::info!("attached again, epoch {}", self.epoch());
            }
            Err(e) => {
                self.plant.give_up();
                if e.warn {
                    self.warn(e.text);
                } else {
                    tracing::debug!("attach again: {}", e.text);
                }
            }
        }
    }

    fn reattach(&mut self) -> Result<(), NotYet> {
        let Attached {
            how,
            mut control,
            io,
        } = self.plant.attach(self.cold_next)?;
        (self.cold_next, self.replaying) = (false, false);
        let policy = self.plant.policy();
        let config = store_config(&mut *control, policy, self.plant.ports().len())?;
        self.store.set_config(config.clone());
        self.config = config;
        let (left, found_fdb) = read_left(&mut *control, how, &self.view)?;
        self.store.adopt(left);
        self.found_fdb = found_fdb;
        self.view.lock().forget_members();
        if let Some(io) = io
            && !self.send_io(Command::Attach(io))
        {
            // a chip without packet I/O is no switch: given back, and tried again
            return Err(NotYet {
                text: "no ASIC: the packet thread takes no commands".into(),
                warn: true,
            });
        }
        self.control = Some(control);
        self.attach_due = Some(match how {
            Attach::Warm => tandem_store::Attach::Warm,
            Attach::Cold => tandem_store::Attach::Cold,
        });
        Ok(())
    }
}

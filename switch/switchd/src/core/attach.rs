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
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tandem_abi::raw;
use tandem_linux::netlink::tc::Tc;
use tandem_sal::{Attach, Platform, Sal, SalControl, SalError, Splits};
use tandem_store::model::FdbKey;
use tandem_store::{Config, Domain, Policy};

use super::ids::{Ids, Left, dumped_members, preferred_fid};
use super::{Core, Phase};
use crate::clock::SECOND_NS;
use crate::forward_mark::ForwardMark;
use crate::io::Command;
use crate::ports::{Keeper, Port};
use crate::source::Write;
use crate::view::{SharedView, vlan_of};

/// A carrier call takes at most this long.
const CARRIER_TIMEOUT: Duration = Duration::from_secs(5);
/// The io thread takes a command within this.
const IO_TIMEOUT: Duration = Duration::from_secs(1);
/// Between two attempts to reach a device that is gone.
const RETRY_NS: u64 = SECOND_NS / 4;
/// The ports keep their carrier for so long without a device: a restart of asicd shall not look
/// like a pulled cable, a dead switch shall.
const GRACE_NS: u64 = 10 * SECOND_NS;

/// What an attach needs, and what is known of the board.
pub struct Plant {
    /// The carrier's socket.
    pub socket: PathBuf,
    /// What a refused second driver is told.
    pub name: String,
    /// What happens to what does not fit.
    pub policy: Policy,
    /// The ports' netdevs.
    pub ports: Arc<Vec<Port>>,
    /// Ports that are split.
    pub splits: Splits,
    /// The board, with them.
    pub platform: Platform,
    /// The programs at the ports.
    pub mark: ForwardMark,
    /// To look after them.
    pub tc: Tc,
}

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

/// Connects to asicd.
pub fn connect(socket: &std::path::Path, name: &str, splits: &Splits) -> Result<Sal, SalError> {
    Sal::connect(socket, name, splits, CARRIER_TIMEOUT)
}

impl Keeper for Sal {
    fn get(&mut self, name: &str) -> anyhow::Result<Option<OwnedFd>> {
        Ok(Sal::get(self, name)?)
    }
    fn keep(&mut self, name: &str, fd: BorrowedFd<'_>) -> anyhow::Result<()> {
        Ok(Sal::keep(self, name, fd)?)
    }
    fn kept(&mut self) -> anyhow::Result<Vec<String>> {
        Ok(Sal::kept(self)?)
    }
    fn forget(&mut self, name: &str) -> anyhow::Result<()> {
        Ok(Sal::forget(self, name).map(|_| ())?)
    }
}

/// What the store needs to know of the chip.
pub fn store_config(
    control: &mut SalControl,
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

/// The kernel's neighbour tables (one each for the whole machine) against what the chip can hold:
/// a kernel that forgets neighbours for want of room sends their packets to the CPU.
pub fn neighbour_limits(control: &mut SalControl) -> Result<Vec<String>, SalError> {
    let pools = control.snapshot()?;
    let mut warnings = Vec::new();
    for row in control.costs()? {
        let family = match row.family {
            raw::TND_AF_INET => "ipv4",
            raw::TND_AF_INET6 => "ipv6",
            _ => continue,
        };
        if row.cls != raw::TND_CLS_NEIGH {
            continue;
        }
        let Some(pool) = pools.iter().find(|p| p.pool == row.pool) else {
            continue;
        };
        let hosts = pool.size / row.cost.max(1);
        let key = format!("net.{family}.neigh.default.gc_thresh3");
        // only the initial namespace shows it; what can't be seen can't be warned about
        let limit = std::fs::read_to_string(format!("/proc/sys/{}", key.replace('.', "/")))
            .ok()
            .and_then(|t| t.trim().parse::<u32>().ok());
        if let Some(limit) = limit.filter(|l| *l < hosts) {
            warnings.push(format!(
                "{key} is {limit}, the chip holds {hosts} {family} hosts: raise it (sysctl -w {key}={hosts})"
            ));
        }
    }
    Ok(warnings)
}

/// Names of what the chip has already, and what it has learned: after a warm attach. Whose addresses
/// these are is marked in `view`.
pub fn read_left(
    control: &mut SalControl,
    how: Attach,
    view: &SharedView,
) -> Result<(Ids, Vec<Found>), SalError> {
    let mut learned = Vec::new();
    let mut left = Left::default();
    if how == Attach::Warm {
        control.dump(|g: raw::tnd_nhg, tail| left.groups.push((g, dumped_members(tail))))?;
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
            view.set_own(vlan, e.mac);
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
    Ok((Ids::new(left), learned))
}

impl Core {
    /// Tells the store about an attach that has just been made.
    pub(super) fn begin_attach(&mut self, now: u64) {
        if let Some(how) = self.attach_due.take() {
            self.store.attach(how, now);
            self.upkeep.read_fdb = true;
            self.restore_storms();
            if self.phase == Phase::Steady {
                self.seed_fdb(now);
            }
        }
    }

    /// What the chip had learned before a warm attach is newer than the kernel's entries: a station
    /// may have moved while nobody wrote its move to the kernel. The store learns it before it
    /// programs anything, and the kernel is told.
    pub(super) fn seed_fdb(&mut self, now: u64) {
        if self.attach_due.is_some() {
            return;
        }
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
            let Some(ifindex) =
                ifindex.filter(|_| key.bridge != 0 && preferred_fid(domain) == e.fid)
            else {
                // The port left that bridge while nobody listened. The sweep spares what the chip has learned.
                self.forget_station(e.fid, e.mac, now);
                continue;
            };
            if pinned {
                continue;
            }
            self.store.fdb_found(key, e.port, now);
            let kernel = self.shadow.learned.get(&key);
            if kernel.is_none_or(|l| l.0 != ifindex) {
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
        if self.sal.is_none() && self.control.is_none() {
            return;
        }
        tracing::warn!("the ASIC is lost: {why}");
        self.control = None;
        self.sal = None;
        self.unposted.clear();
        self.notes.clear();
        self.attach_due = None;
        self.upkeep.device_lost();
        self.store.detach();
        let now = crate::clock::now_ns();
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
        if let Some(sal) = &self.sal {
            if let Err(e) = sal.check() {
                self.lose(&e.to_string());
            }
            return;
        }
        if let Some(lost) = self.link.lost_ns
            && !self.link.dark
            && now >= lost + GRACE_NS
        {
            self.link.dark = true;
            self.warn("no ASIC for 10 s: the ports have no carrier".into());
            for port in self.plant.ports.iter() {
                let _ = port.set_carrier(false);
            }
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
                tracing::debug!("attach again: {e}");
            }
        }
    }

    fn reattach(&mut self) -> anyhow::Result<()> {
        let mut sal = connect(&self.plant.socket, &self.plant.name, &self.plant.splits)?;
        if sal.platform().ports != self.plant.platform.ports {
            // other ports mean other netdevs: that is a restart's business
            self.warn(format!(
                "the ASIC came back as {} with other ports: restart switchd",
                sal.platform().chip
            ));
            anyhow::bail!("other ports");
        }
        // an asicd that still keeps our ports is the one that we lost: its tables are ours
        let mut known = true;
        for port in self.plant.ports.iter() {
            if Port::is_kept(&port.name, &mut sal)? {
                continue;
            }
            known = false;
            port.keep(&mut sal)?;
        }
        let (how, store_how) = if known && !self.cold_next {
            (Attach::Warm, tandem_store::Attach::Warm)
        } else {
            (Attach::Cold, tandem_store::Attach::Cold)
        };
        let (mut control, io) = sal.attach(how)?;
        (self.cold_next, self.replaying) = (false, false);
        let config = store_config(&mut control, self.plant.policy, self.plant.ports.len())?;
        self.store.set_config(config.clone());
        self.config = config;
        (self.ids, self.found_fdb) = read_left(&mut control, how, &self.view)?;
        self.plant.platform = sal.platform().clone();
        self.view.lock().forget_members();
        if !self.send_io(Command::Attach(Box::new(io))) {
            // a chip without packet I/O is no switch: given back, and tried again
            self.warn("no ASIC: the packet thread takes no commands".into());
            anyhow::bail!("the packet thread takes no commands");
        }
        self.sal = Some(sal);
        self.control = Some(control);
        self.attach_due = Some(store_how);
        Ok(())
    }
}

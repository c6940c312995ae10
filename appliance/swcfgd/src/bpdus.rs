// SPDX-License-Identifier: Apache-2.0
//! BPDUs of engine `kernel`: a packet socket has those of all ports, and links are the kernel's to tell.
//!
//! ```text
//!   packet socket, for 01:80:c2:00:00:00 ─► Tree ─► the same socket
//!   something about links ─► how ports are ─► Tree ─► states of ports ─► kernel ─► switchd ─► chip
//!                              a port closed ─► POST /v1/sync to switchd ─► it is in the chip
//! ```

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossbeam_channel::bounded;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::{Value, json};
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::link_notify::LinkNotify;
use tandem_linux::wires::Wires;
use tandem_mgmt::client::Client;
use tandem_swkernel::{BRIDGES, States};
use tandem_swstack::tree::{Ask, Tree};

/// A port's state has to be in the chip within this, or its BPDUs are out of date.
const LIMIT: Duration = Duration::from_secs(2);
/// Without a word links are looked at so often: a notification may have been lost.
const LOOK: Duration = Duration::from_secs(10);
/// Where the kernel does not say how links are it is asked again then.
const AGAIN: Duration = Duration::from_secs(1);
/// After a look one waits so many times as long as it took: thousands of VLAN interfaces that come are as many notifications.
const SPARE: u32 = 4;
/// Frames that are sent in one go.
const BATCH: usize = 64;

/// What the daemon opens while it may.
pub struct Bpdus {
    wires: Wires,
    wake: Arc<EventFd>,
}

impl Bpdus {
    /// Opens the socket.
    ///
    /// # Errors
    /// One line.
    pub fn open() -> anyhow::Result<Bpdus> {
        Ok(Bpdus {
            wires: Wires::of_group(BRIDGES).context("a packet socket")?,
            wake: Arc::new(EventFd::new().context("eventfd")?),
        })
    }

    /// Rings when there is something to be sent.
    #[must_use]
    pub fn bell(&self) -> Arc<EventFd> {
        Arc::clone(&self.wake)
    }

    /// The thread that has them.
    ///
    /// # Errors
    /// There is none to be had.
    pub fn start(
        self,
        tree: Arc<Tree>,
        states: States,
        switchd: Client,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<()> {
        tree.set_ask(ask_of(switchd, Arc::clone(&tree))?);
        let notify = LinkNotify::open().context("netlink")?;
        let mut thread = Thread {
            wires: self.wires,
            wake: self.wake,
            notify,
            tree,
            states,
            ports: BTreeMap::new(),
            told: false,
            not_before: Instant::now(),
            last: Instant::now(),
        };
        std::thread::Builder::new()
            .name("bpdus".into())
            .spawn(move || {
                thread.look();
                while !stop.load(Relaxed) {
                    thread.turn();
                }
            })?;
        Ok(())
    }
}

/// How the tree asks whether what ports were told is in the chip: one question at a time.
fn ask_of(switchd: Client, tree: Arc<Tree>) -> anyhow::Result<Ask> {
    let (to, questions) = bounded::<u64>(1);
    let switchd = switchd.with_timeout(LIMIT * 2);
    std::thread::Builder::new()
        .name("settled".into())
        .spawn(move || {
            for number in questions {
                let limit = u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX);
                let done = switchd.post::<Value>("/v1/sync", &json!({"timeout_ms": limit}));
                if let Err(e) = &done {
                    tracing::debug!("spanning tree: {e}");
                }
                tree.passed(number, done.is_ok());
            }
        })?;
    Ok(Box::new(move |number| to.try_send(number).is_ok()))
}

struct Thread {
    wires: Wires,
    wake: Arc<EventFd>,
    notify: LinkNotify,
    tree: Arc<Tree>,
    states: States,
    /// Ports: their netdevs, and whether those are up.
    ports: BTreeMap<u16, (u32, bool)>,
    /// Something has changed since the last look,
    told: bool,
    /// and the next one is due then.
    not_before: Instant,
    /// The last one that came to something.
    last: Instant,
}

impl Thread {
    /// How links are now.
    fn look(&mut self) {
        let began = Instant::now();
        self.told = false;
        let all = match self.states.look() {
            Ok(all) => all,
            Err(e) => {
                // what was known holds until it is known better
                tracing::warn!("spanning tree: {e}");
                self.told = true;
                self.not_before = Instant::now() + AGAIN;
                return;
            }
        };
        self.last = Instant::now();
        self.not_before = self.last + began.elapsed() * SPARE;
        let now = clock::now_ns();
        let mut ports = BTreeMap::new();
        for link in all {
            let is = (link.ifindex, link.up);
            if self.ports.get(&link.port) != Some(&is) {
                self.tree.link(link.port, link.up, 0, now);
            }
            ports.insert(link.port, is);
        }
        for port in self.ports.keys().filter(|p| !ports.contains_key(p)) {
            self.tree.link(*port, false, 0, now);
        }
        self.ports = ports;
    }

    fn turn(&mut self) {
        let due = self.tree.tick(clock::now_ns());
        self.send();
        let now = clock::now_ns();
        let left = due.map_or(LOOK, |due| {
            Duration::from_nanos(due.saturating_sub(now)).min(LOOK)
        });
        let left = match self.told {
            true => left.min(self.not_before.saturating_duration_since(Instant::now())),
            false => left,
        };
        let (wires, wake, notify) = {
            let mut fds = [
                PollFd::from_borrowed_fd(self.wires.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.notify.as_fd(), PollFlags::IN),
            ];
            let left = Timespec::try_from(left).ok();
            match poll(&mut fds, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => {
                    tracing::error!("spanning tree: {e}");
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
            let [wires, wake, notify] = fds.map(|fd| !fd.revents().is_empty());
            (wires, wake, notify)
        };
        if wake {
            self.wake.drain();
        }
        self.told |= self.notify.drain() || notify;
        self.told |= self.tree.is_on() && self.last.elapsed() >= LOOK;
        if self.told && Instant::now() >= self.not_before {
            self.look();
        }
        if wires {
            self.receive();
        }
    }

    fn send(&mut self) {
        loop {
            let mut batch = Vec::new();
            while batch.len() < BATCH
                && let Some((port, frame)) = self.tree.next_out()
            {
                batch.extend(self.ports.get(&port).map(|(index, _)| (*index, frame)));
            }
            if batch.is_empty() {
                return;
            }
            let all: Vec<(u32, &[u8])> = batch.iter().map(|(i, f)| (*i, f.as_slice())).collect();
            if let Err(e) = self.wires.send(&all) {
                return tracing::warn!("spanning tree: {e}");
            }
        }
    }

    fn receive(&mut self) {
        let (tree, ports) = (&self.tree, &self.ports);
        let now = clock::now_ns();
        let taken = self.wires.receive(|index, frame| {
            // once by the port, and once more by what stands above it
            if let Some((port, _)) = ports.iter().find(|(_, (i, _))| *i == index) {
                tree.receive(*port, frame, now);
            }
        });
        if let Err(e) = taken {
            tracing::debug!("spanning tree: {e}");
        }
    }
}

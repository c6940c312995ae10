//! The Linux kernel as a source.
//!
//! ```text
//!  kernel ─ notifications ─► Monitor ─► backlog ─► KernelView ─► batches ─► bounded channel ─► core
//!     ▲                      (one socket, always read)      │ routes by key, links, next-hop objects:
//!     │                                                     │ numbers aliases, applies what the kernel
//!     └──────── dumps: full (resync) and filtered ──────────┘ removes in silence, then verifies
//! ```
//!
//! One thread. It never waits for the core: when the channel is full, notifications pile up in the
//! backlog (bounded in bytes); when that is full or the kernel had to drop some, everything is
//! dumped again.
//!
//! **Dumps and notifications.** While a dump runs, notifications are read into the backlog but not
//! applied: the dump's objects are older than the last of them and newer than some. Dump first,
//! then the backlog, ends in the kernel's state whatever the order was, because a notification
//! carries the whole new state of its object. Nothing is deleted before the dump ends, and a dump
//! during which the kernel's tables changed (NLM_F_DUMP_INTR) is repeated.
//!
//! **What the kernel removes in silence.** A link going down takes IPv4 routes and next-hop objects
//! (and the routes that use them) without a message, and marks next hops of multipath routes dead. The
//! view removes them as the kernel does, at the link's own message, and a moment later compares
//! with a dump filtered by that link.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod aliases;
mod convert;
mod dead;
mod doubts;
mod fib;
mod filter;
mod fuzz;
pub mod kernel;
mod listener;
mod lists;
mod pipe;
mod querier;
mod snapshot;
pub mod stepped;
mod sysctl;
mod view;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink::{Monitor, Requests};
use tandem_store::model::{Object, SourceId};

pub use fib::FILE as ROUTES6;
pub use filter::{HANDLE, PRIORITY};
pub use fuzz::fuzz_view;
pub use listener::DUMPS;
pub use stepped::{Origin, Stepped, Steps};
pub use sysctl::files;

use tandem_core::source::{Heard, Message, Source, SourceError, Status, Write, WriteBack};

/// How the netlink source shall work.
#[derive(Debug, Clone)]
pub struct Config {
    /// Front-panel port of each TAP, by interface index.
    pub ports: HashMap<u32, u16>,
    /// Kernel memory for notifications not yet read, bytes.
    pub receive_buffer: usize,
    /// Messages (of up to 256 events) in the channel at most.
    pub channel: usize,
    /// Bytes of notifications read but not yet sent on at most.
    pub backlog: usize,
    /// How long after the last cause a check for silent removals begins.
    pub verify_after: Duration,
    /// How often sysctls without a notification are read.
    pub sysctl_every: Duration,
    /// What passed through the CPU that the kernel tells nobody of.
    pub heard: Arc<Heard>,
    /// Rung after each message: the channel has no descriptor to sleep on.
    pub bell: Option<Arc<EventFd>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ports: HashMap::new(),
            receive_buffer: 32 << 20,
            channel: 256,
            backlog: 64 << 20,
            verify_after: Duration::from_millis(20),
            sysctl_every: Duration::from_secs(2),
            heard: Arc::default(),
            bell: None,
        }
    }
}

/// The kernel, watched by a thread of its own.
#[derive(Debug)]
pub struct NetlinkSource {
    messages: Receiver<Message>,
    commands: Sender<listener::Command>,
    wake: Arc<EventFd>,
    stop: Arc<AtomicBool>,
    status: Arc<Mutex<Status>>,
    ports: HashMap<u32, u16>,
    thread: Option<JoinHandle<()>>,
}

impl NetlinkSource {
    /// Opens the sockets in the caller's network namespace and begins with a full dump.
    ///
    /// # Errors
    /// When a socket or the thread can't be had.
    pub fn start(config: Config) -> Result<Self, SourceError> {
        // the monitor first: what changes from here on is seen
        let ears = Monitor::open(config.receive_buffer).map_err(|e| error(&e))?;
        let questions = Requests::open().map_err(|e| error(&e))?;
        Self::listen(config, ears, Box::new(questions))
    }

    /// The thread, with somebody to ask.
    fn listen(
        config: Config,
        ears: Monitor,
        questions: Box<dyn kernel::Questions>,
    ) -> Result<Self, SourceError> {
        let (to_core, messages) = crossbeam_channel::bounded(config.channel.max(2));
        let (commands, from_core) = crossbeam_channel::bounded(64);
        let wake =
            Arc::new(EventFd::new().map_err(|e| SourceError(format!("netlink source: {e}")))?);
        let status = Arc::new(Mutex::new(Status::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let ports = config.ports.clone();
        let worker = listener::Listener::new(
            config,
            (Box::new(ears), questions),
            to_core,
            from_core,
            Arc::clone(&wake),
            Arc::clone(&stop),
            Arc::clone(&status),
        );
        let thread = std::thread::Builder::new()
            .name("listener".into())
            .spawn(move || worker.run())
            .map_err(|e| SourceError(format!("netlink source: thread: {e}")))?;
        Ok(Self {
            messages,
            commands,
            wake,
            stop,
            status,
            ports,
            thread: Some(thread),
        })
    }

    fn tell(&self, command: listener::Command) {
        // 64 outstanding commands: the caller is far ahead of the thread, and waits for nothing but it
        let _ = self.commands.send_timeout(command, Duration::from_secs(5));
        self.wake.ring();
    }
}

impl Drop for NetlinkSource {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Source for NetlinkSource {
    fn id(&self) -> SourceId {
        SourceId::NETLINK
    }

    fn name(&self) -> &str {
        "netlink"
    }

    fn messages(&self) -> &Receiver<Message> {
        &self.messages
    }

    fn resync(&self) {
        self.tell(listener::Command::Resync);
    }

    fn barrier(&self, token: u64) {
        self.tell(listener::Command::Barrier(token));
    }

    fn snapshot(&self) -> Result<Vec<Object>, SourceError> {
        let mut requests = Requests::open().map_err(|e| error(&e))?;
        snapshot::snapshot(&mut requests, &self.ports)
    }

    fn writer(&self) -> Result<Box<dyn WriteBack>, SourceError> {
        Ok(Box::new(NetlinkWriter {
            requests: Requests::open().map_err(|e| error(&e))?,
            entries: Vec::new(),
        }))
    }

    fn limits(&self, hosts: [Option<u32>; 2]) -> Vec<String> {
        sysctl::neighbour_limits(hosts, &|path| std::fs::read_to_string(path).ok())
    }

    fn status(&self) -> Status {
        self.status.lock().map(|s| *s).unwrap_or_default()
    }
}

fn error(e: &tandem_linux::netlink::Error) -> SourceError {
    SourceError(e.to_string())
}

/// Writes to the kernel on a socket of its own.
#[derive(Debug)]
pub struct NetlinkWriter {
    requests: Requests,
    entries: Vec<(u32, [u8; 6], u16, bool)>,
}

impl NetlinkWriter {
    /// Writes the FDB entries gathered so far; the last of them has index `last`.
    fn flush(
        &mut self,
        last: usize,
        failed: &mut dyn FnMut(usize, SourceError),
    ) -> Result<(), SourceError> {
        let first = (last + 1).saturating_sub(self.entries.len());
        let result = self.requests.fdb_batch(&self.entries, |i, e| {
            if !e.is_gone() {
                failed(first + i, error(&e));
            }
        });
        self.entries.clear();
        result.map_err(|e| error(&e))
    }
}

impl WriteBack for NetlinkWriter {
    fn write(
        &mut self,
        writes: &[Write],
        failed: &mut dyn FnMut(usize, SourceError),
    ) -> Result<(), SourceError> {
        for (i, write) in writes.iter().enumerate() {
            let entry = match *write {
                Write::FdbLearned { ifindex, mac, vlan } => Some((ifindex, mac, vlan, true)),
                Write::FdbAged { ifindex, mac, vlan } => Some((ifindex, mac, vlan, false)),
                _ => None,
            };
            if let Some(entry) = entry {
                self.entries.push(entry);
                continue;
            }
            if i > 0 {
                self.flush(i - 1, failed)?;
            }
            let done = match *write {
                Write::FdbFlush { ifindex, vlan } => self.requests.fdb_flush(ifindex, vlan),
                Write::NeighUse { ifindex, addr } => self.requests.neigh_use(ifindex, &addr),
                Write::Learning { ifindex, on } => self.requests.port_learning(ifindex, on),
                Write::FdbLearned { .. } | Write::FdbAged { .. } => Ok(()),
            };
            match done {
                Err(e) if !e.is_gone() => failed(i, error(&e)),
                _ => {}
            }
        }
        match writes.len() {
            0 => Ok(()),
            n => self.flush(n - 1, failed),
        }
    }
}

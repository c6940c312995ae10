//! Sources: who says what the switch shall do.
//!
//! ```text
//!  kernel (netlink) ──┐  Message { Events, Barrier, Warning }   ┌──► store
//!  OpenFlow agent  ───┼──────────── bounded channel ────────────┤
//!  VLAN database   ───┘                                         └──► core
//!          ▲
//!          └── Write (what the chip learned, which neighbours it needs) ── io, core
//! ```
//!
//! The store, resync, audit and explain know sources by this trait alone. A port belongs to one
//! source at a time ([`crate::Sources`]).

use std::net::IpAddr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, OnceLock};

use crossbeam_channel::Receiver;
use tandem_linux::eventfd::EventFd;
use tandem_store::model::{Event, Object, SourceId};

/// What a source sends, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Changes, in the order in which they happened; at most [`BATCH`].
    Events(Vec<Event>),
    /// All that happened before [`Source::barrier`] was called has been sent before this.
    Barrier(u64),
    /// Something that a person should know: one line.
    Warning(String),
}

/// Events of one [`Message`] at most.
pub const BATCH: usize = 256;

/// What a source counts. All grow only, but for the last three.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Status {
    /// Notifications read.
    pub notifications: u64,
    /// Events sent.
    pub events: u64,
    /// Times that notifications were lost or had to be dropped.
    pub overruns: u64,
    /// Full dumps that were completed.
    pub resyncs: u64,
    /// Dumps that had to be repeated because the tables changed meanwhile.
    pub interrupted: u64,
    /// Filtered dumps that checked what the origin removed in silence.
    pub verifications: u64,
    /// Objects found gone by such a check, without a notification.
    pub silent: u64,
    /// A full dump is under way or due.
    pub syncing: bool,
    /// Bytes of notifications read but not yet sent on.
    pub backlog_bytes: u64,
    /// Route keys that the origin has, all tables.
    pub routes: u64,
}

/// Something that the switch tells a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// The chip learned a MAC, or saw it move to this port.
    FdbLearned {
        /// Interface index of the bridge port.
        ifindex: u32,
        /// The address.
        mac: [u8; 6],
        /// VLAN id; 0 without VLAN filtering.
        vlan: u16,
    },
    /// The chip aged a MAC.
    FdbAged {
        /// Interface index of the bridge port.
        ifindex: u32,
        /// The address.
        mac: [u8; 6],
        /// VLAN id; 0 without VLAN filtering.
        vlan: u16,
    },
    /// A port has left a VLAN: what the chip learned behind it there.
    FdbFlush {
        /// Interface index of the bridge port.
        ifindex: u32,
        /// VLAN id.
        vlan: u16,
    },
    /// Resolve or confirm this neighbour once, unless it is set by hand.
    NeighUse {
        /// Interface index.
        ifindex: u32,
        /// The neighbour.
        addr: IpAddr,
    },
    /// Let the origin's own bridge learn on this port, or not.
    Learning {
        /// Interface index of the bridge port.
        ifindex: u32,
        /// Learn or not.
        on: bool,
    },
}

/// Signs of queriers and multicast routers that passed through the CPU: whoever hands packets to the kernel leaves them
/// here, after the kernel has them.
#[derive(Debug, Default)]
pub struct Heard {
    /// Longest response time plus one, ms, of queries of IGMP and MLD; 0: none.
    delays: [AtomicU32; 2],
    any: AtomicBool,
    /// Rung when there is something.
    pub wake: OnceLock<Arc<EventFd>>,
}

impl Heard {
    /// A query with this response time (ms); family 0: IGMP, 1: MLD.
    pub fn query(&self, family: usize, delay: u32) {
        if let Some(d) = self.delays.get(family) {
            d.fetch_max(delay.saturating_add(1), Relaxed);
        }
        self.router();
    }

    /// A multicast router spoke.
    pub fn router(&self) {
        self.any.store(true, Release);
        if let Some(wake) = self.wake.get() {
            wake.ring();
        }
    }

    /// What there is, once.
    pub fn take(&self) -> Option<[Option<u64>; 2]> {
        if !self.any.swap(false, Acquire) {
            return None;
        }
        let delay = |d: &AtomicU32| d.swap(0, Relaxed).checked_sub(1).map(u64::from);
        let [a, b] = &self.delays;
        Some([delay(a), delay(b)])
    }
}

/// What went wrong, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError(pub String);

impl std::fmt::Display for SourceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SourceError {}

/// Tells a source what the chip knows. One per thread that writes.
pub trait WriteBack: Send {
    /// Writes all, in order; every refusal goes to `failed` with its index. An object that is gone
    /// is no refusal.
    ///
    /// # Errors
    /// When nothing can be written at all.
    fn write(
        &mut self,
        writes: &[Write],
        failed: &mut dyn FnMut(usize, SourceError),
    ) -> Result<(), SourceError>;
}

/// Who owns objects and says how they change.
pub trait Source: Send {
    /// Its number in every event.
    fn id(&self) -> SourceId;

    /// Its name, for people.
    fn name(&self) -> &str;

    /// Where its messages come out. The first are a full dump: `BeginSync(ALL)` … `EndSync`.
    fn messages(&self) -> &Receiver<Message>;

    /// Asks for a full dump: the next messages are `BeginSync(ALL)`, every object, `EndSync`.
    fn resync(&self);

    /// Asks for [`Message::Barrier`] with this token behind everything that has happened up to now.
    fn barrier(&self, token: u64);

    /// A fresh full dump, independent of what was sent. For audit: the position of a route counts
    /// only in relation to others of its key.
    ///
    /// # Errors
    /// When the origin can't be asked.
    fn snapshot(&self) -> Result<Vec<Object>, SourceError>;

    /// A way to write back, for one thread.
    ///
    /// # Errors
    /// When the origin can't be reached.
    fn writer(&self) -> Result<Box<dyn WriteBack>, SourceError>;

    /// Where the origin itself holds fewer neighbours of IPv4 and IPv6 than the chip (`hosts`; `None`: not known) does: one
    /// line each, for people.
    fn limits(&self, hosts: [Option<u32>; 2]) -> Vec<String> {
        let _ = hosts;
        Vec::new()
    }

    /// Counters.
    fn status(&self) -> Status;
}

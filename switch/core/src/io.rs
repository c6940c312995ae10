//! What the core and whoever moves the packets say to each other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tandem_abi::raw;
use tandem_sal::{Event, SalIo};

use crate::slow::SlowPath;

/// What the core tells the io thread.
#[derive(Debug)]
pub enum Command {
    /// A fresh attach, of this number: packets and events come from here.
    Attach(Box<SalIo>, u32),
    /// The device is gone.
    Detach,
    /// Set [`Signals::passed`] once the chip's events up to now are handled. Tokens grow.
    Barrier(u64),
}

/// What the io thread tells the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEvent {
    /// The chip's FDB changed; what the kernel had to know has been written.
    Fdb(Event),
    /// The chip's FDB must be read: events were lost, or came for a domain not known yet.
    ReadFdb,
}

/// Number of the attach with which a daemon begins.
pub const FIRST_ATTACH: u32 = 1;

/// What the core must not miss, however full the channel of [`IoEvent`] is.
#[derive(Debug, Default)]
pub struct Signals {
    /// A ring of the attach of this number is dead: attach again. 0: none. The number is this daemon's own count, from
    /// [`FIRST_ATTACH`] on: an epoch may be another chip's.
    pub dead: AtomicU32,
    /// The newest [`Command::Barrier`] that was passed; events of before are in the channel.
    pub passed: AtomicU64,
}

/// Counters, for status and metrics. All grow only.
#[derive(Debug, Default)]
pub struct IoStats {
    /// Packets from the chip to the kernel, trapped.
    pub rx_trapped: AtomicU64,
    /// Packets from the chip to the kernel, copies.
    pub rx_copies: AtomicU64,
    /// Packets for a port that is administratively down.
    pub rx_port_down: AtomicU64,
    /// Packets that the TAP did not take.
    pub rx_refused: AtomicU64,
    /// Packets with a port that is not there.
    pub rx_no_port: AtomicU64,
    /// Packets that an access list of their port ends.
    pub rx_denied: AtomicU64,
    /// Packets from the kernel to the chip.
    pub tx: AtomicU64,
    /// Packets from the kernel while no chip was attached.
    pub tx_detached: AtomicU64,
    /// Packets that the tx ring did not take (too long, or full at the last moment).
    pub tx_refused: AtomicU64,
    /// Times that the tx ring was full.
    pub tx_full: AtomicU64,
    /// FDB entries written to the kernel.
    pub fdb_written: AtomicU64,
    /// Of those, entries written again behind a frame that was older than what the chip had learned since.
    pub fdb_late: AtomicU64,
    /// FDB entries that the kernel refused.
    pub fdb_refused: AtomicU64,
    /// Events that found their channel full.
    pub events_lost: AtomicU64,
    /// Routed packets that the kernel has to forward, by destination.
    pub slow: SlowPath,
    /// Packets that the chip's last policers dropped, by trap class.
    pub policed: [AtomicU64; raw::TND_TC_COUNT as usize],
}

impl IoStats {
    /// By name, for `status`.
    pub fn rows(&self) -> BTreeMap<&'static str, u64> {
        let mut rows: BTreeMap<&'static str, u64> = [
            ("rx_trapped", &self.rx_trapped),
            ("rx_copies", &self.rx_copies),
            ("rx_port_down", &self.rx_port_down),
            ("rx_refused", &self.rx_refused),
            ("rx_no_port", &self.rx_no_port),
            ("rx_denied", &self.rx_denied),
            ("tx", &self.tx),
            ("tx_detached", &self.tx_detached),
            ("tx_refused", &self.tx_refused),
            ("tx_full", &self.tx_full),
            ("fdb_written", &self.fdb_written),
            ("fdb_late", &self.fdb_late),
            ("fdb_refused", &self.fdb_refused),
            ("events_lost", &self.events_lost),
            // its first name
            ("news_lost", &self.events_lost),
        ]
        .into_iter()
        .map(|(name, counter)| (name, counter.load(Relaxed)))
        .collect();
        let classes = [
            "policed_link",
            "policed_control",
            "policed_unresolved",
            "policed_data",
            "policed_discovery",
            "policed_flow",
        ];
        for (name, counter) in classes.into_iter().zip(&self.policed) {
            rows.insert(name, counter.load(Relaxed));
        }
        rows
    }
}

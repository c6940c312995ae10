//! The store: desired and installed state of every object.
//!
//! ```text
//!   sources ── model::Event ──► apply ─┐                       ┌─► plan ── Planned ──► SAL ──► ASIC
//!                                      ├─► desired / installed ┤
//!   ASIC ── DeviceEvent ───► device_event                      └─◄ complete ◄─ Completion ── SAL
//! ```
//!
//! Pure: no I/O, no thread, no clock (time is an argument).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod api;
pub mod model;

pub use api::*;

use std::net::IpAddr;

/// The store.
#[derive(Debug, Default)]
pub struct Store {
    config: Config,
    counters: Counters,
}

impl Store {
    /// An empty store.
    pub fn new(config: Config) -> Store {
        Store {
            config,
            counters: Counters::default(),
        }
    }

    /// Takes one event from a source.
    pub fn apply(&mut self, event: model::Event, now_ns: u64) {
        let _ = (event, now_ns);
        self.counters.events += 1;
    }

    /// Hands out commands to post, at most as many as the budget leaves. Call it until it returns 0, then again after
    /// events and completions.
    pub fn plan(&mut self, out: &mut Vec<Planned>, now_ns: u64) -> usize {
        let _ = (&self.config, now_ns);
        out.len()
    }

    /// The device answered. Unknown tokens (of an earlier attach) are ignored.
    pub fn complete(&mut self, token: u64, completion: &Completion, now_ns: u64) {
        let _ = (token, completion, now_ns);
    }

    /// A command got no answer in time: its key is unknown now. The store sends a compensating delete.
    pub fn timed_out(&mut self, token: u64, now_ns: u64) {
        let _ = (token, now_ns);
    }

    /// The chip reported an FDB change; returns what to write into the kernel.
    pub fn device_event(&mut self, event: DeviceEvent, now_ns: u64) -> Option<FdbWriteBack> {
        let _ = (event, now_ns);
        None
    }

    /// The driver attached: everything outstanding is void; every desired object is created again. Warm: between
    /// BEGIN_RESYNC and END_RESYNC, so that the chip sweeps what the kernel no longer has.
    pub fn attach(&mut self, how: Attach, now_ns: u64) {
        let _ = (how, now_ns);
    }

    /// The driver lost the device. Events are still taken; nothing is planned until [`Store::attach`].
    pub fn detach(&mut self) {}

    /// Nothing outstanding, nothing to plan, no sync running.
    pub fn idle(&self) -> bool {
        true
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Neighbours that the hardware needs, changed since the last call.
    pub fn take_wanted(&mut self) -> Vec<Wanted> {
        Vec::new()
    }

    /// Why is this prefix (or the best match of this address) in hardware, or not?
    pub fn explain_route(&self, prefix: ipnet::IpNet) -> Explanation {
        Explanation::unknown(prefix.to_string())
    }

    /// Why is this MAC in hardware, or not? All bridges that know it.
    pub fn explain_mac(&self, mac: [u8; 6]) -> Vec<Explanation> {
        let _ = mac;
        Vec::new()
    }

    /// Why is this neighbour in hardware, or not? All interfaces that know it.
    pub fn explain_neighbour(&self, addr: IpAddr) -> Vec<Explanation> {
        let _ = addr;
        Vec::new()
    }

    /// Up to `limit` routes of a family after `cursor` (0 = from the start); returns the next cursor, 0 = end.
    pub fn routes(
        &self,
        family: model::Family,
        cursor: u64,
        limit: usize,
        out: &mut Vec<RouteRow>,
    ) -> u64 {
        let _ = (family, cursor, limit, out);
        0
    }

    /// All neighbours.
    pub fn neighbours(&self) -> Vec<NeighRow> {
        Vec::new()
    }

    /// All FDB entries.
    pub fn fdb(&self) -> Vec<FdbRow> {
        Vec::new()
    }

    /// Interfaces (RIF ids) and hosts that hit bits were read for: TND_OP_ACTIVITY said this host entry was used.
    pub fn neighbour_used(&mut self, rif: u16, addr: IpAddr, now_ns: u64) {
        let _ = (rif, addr, now_ns);
    }
}

impl Explanation {
    /// For a key that nobody announced.
    pub(crate) fn unknown(key: String) -> Explanation {
        Explanation {
            key,
            known: false,
            in_hardware: false,
            action: "none",
            target: String::new(),
            cost: 0,
            table: String::new(),
            reason: String::from("the kernel does not have it"),
            since_ns: 0,
            cover: String::new(),
            waiting_for: String::new(),
            innocent: Vec::new(),
            source: 0,
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! One controller's connection: its bytes, what was agreed, what it is sent.

use std::collections::VecDeque;
use std::sync::Arc;

use tandem_openflow::model::{
    Aggregate, Async, FlowFilter, FlowRemoved, Reply, Role, TableFeatures,
};
use tandem_openflow::{Error, Framer, Version, encode};
use tandem_tables::bucket::Bucket;

use crate::below::Wait;

/// While more than this waits for a controller, nothing it says is looked at: it gets no more answers than it reads.
pub const ENOUGH: usize = 1 << 20;
/// Flows that went are told of as long as no more than this waits: packet-ins still find room.
const DRAWN: usize = ENOUGH / 4;
/// Messages that nobody asked for end here: packet-ins are dropped, and a controller that would miss others is
/// disconnected.
pub const MOST: usize = 16 << 20;
/// A controller that takes nothing of what waits for it for so long is disconnected.
const STUCK_NS: u64 = 30_000_000_000;
/// A peer that does not agree on a version for so long is disconnected.
const HELLO_NS: u64 = 10_000_000_000;

/// What a connection counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counts {
    pub received: u64,
    pub sent: u64,
    pub errors: u64,
    pub packet_ins: u64,
    pub packet_ins_dropped: u64,
}

/// Requests in several messages (`OFPMPF_REQ_MORE`).
#[derive(Debug)]
pub struct Parts {
    pub xid: u32,
    pub tables: Vec<TableFeatures>,
    pub messages: u32,
}

/// An answer about flows that goes on: whose, and from which number of a flow on.
#[derive(Debug)]
pub struct Listing {
    pub xid: u32,
    pub filter: FlowFilter,
    pub from: u32,
    /// Their sum so far, if that is what was asked for.
    pub sum: Option<Aggregate>,
}

/// Of lines that a peer may cause as often as it likes, one a second is for all to read.
#[derive(Debug, Default)]
pub struct Pace {
    next_ns: u64,
}

impl Pace {
    /// May it be said now?
    pub fn may(&mut self, now_ns: u64) -> bool {
        let may = now_ns >= self.next_ns;
        if may {
            self.next_ns = now_ns + 1_000_000_000;
        }
        may
    }
}

/// A connection to a controller.
#[derive(Debug)]
pub struct Conn {
    pub(crate) name: String,
    /// Taken out while one of its messages is looked at.
    pub(crate) framer: Option<Box<Framer>>,
    /// What our hello offered.
    pub(crate) offered: Vec<Version>,
    pub(crate) version: Option<Version>,
    pub(crate) role: Role,
    pub(crate) wants: Async,
    pub(crate) parts: Option<Parts>,
    /// A message that waits for the chip.
    pub(crate) held: Option<(Wait, Vec<u8>)>,
    /// Nobody hears its answers any more.
    pub(crate) deaf: bool,
    /// Goes on before its next message is looked at.
    pub(crate) listing: Option<Listing>,
    pub(crate) limit: Option<Bucket>,
    pub(crate) counts: Counts,
    /// Of what it says.
    pub(crate) pace: Pace,
    pub(crate) since_ns: u64,
    pub(crate) heard_ns: u64,
    probed_ns: Option<u64>,
    out: Vec<u8>,
    /// Flows that went, of which it is to be told when it has read what waits.
    removals: VecDeque<Arc<FlowRemoved>>,
    taken: usize,
    moved_ns: u64,
    xid: u32,
    end: Option<String>,
}

impl Conn {
    pub(crate) fn new(name: String, offered: Vec<Version>, packet_ins: u64, now_ns: u64) -> Conn {
        Conn {
            name,
            framer: Some(Box::default()),
            offered,
            version: None,
            role: Role::Equal,
            wants: Async::default(),
            parts: None,
            held: None,
            deaf: false,
            listing: None,
            limit: (packet_ins > 0).then(|| Bucket::new(packet_ins, (packet_ins / 10).max(64))),
            counts: Counts::default(),
            pace: Pace::default(),
            since_ns: now_ns,
            heard_ns: now_ns,
            probed_ns: None,
            out: Vec::new(),
            removals: VecDeque::new(),
            taken: 0,
            moved_ns: now_ns,
            xid: 0,
            end: None,
        }
    }

    /// Who it is, as the caller called it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version that was agreed on.
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// Its role; 1.0 has none, and everybody is equal.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What it counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Since when it is connected.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Why it has to end; output is sent first.
    pub fn end(&self) -> Option<&str> {
        self.end.as_deref()
    }

    /// Is anything of it looked at now?
    pub fn takes(&self) -> bool {
        self.held.is_none() && self.reads()
    }

    /// Does it read its answers, and is to have more of them?
    fn reads(&self) -> bool {
        self.end.is_none() && self.waiting() < ENOUGH && self.removals.is_empty()
    }

    /// Does a message of it wait for the chip?
    pub fn is_held(&self) -> bool {
        self.held.is_some() && self.reads()
    }

    /// Bytes that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.out.len() - self.taken
    }

    pub(crate) fn output(&self) -> &[u8] {
        self.out.get(self.taken..).unwrap_or_default()
    }

    pub(crate) fn sent(&mut self, bytes: usize, now_ns: u64) {
        if bytes > 0 {
            self.moved_ns = now_ns;
        }
        self.taken = (self.taken + bytes).min(self.out.len());
        if self.taken == self.out.len() {
            self.out.clear();
            self.taken = 0;
            // what one long answer needed is not kept for the next
            if self.out.capacity() > ENOUGH {
                self.out = Vec::new();
            }
        } else if self.taken > ENOUGH {
            self.out.drain(..self.taken);
            self.taken = 0;
        }
        self.draw();
    }

    /// It has to end, for the first reason that was given; who ends it says so.
    pub(crate) fn finish(&mut self, why: String) {
        if self.end.is_none() {
            tracing::debug!("controller {}: {why}", self.name);
            self.end = Some(why);
        }
    }

    /// A message that begins a transaction of ours.
    pub(crate) fn next_xid(&mut self) -> u32 {
        self.xid = self.xid.wrapping_add(1);
        self.xid
    }

    /// Appends a message. False: it would be longer than 64 KiB, and nothing was appended.
    pub(crate) fn reply(&mut self, xid: u32, reply: &Reply<'_>) -> bool {
        let version = self.spoken();
        let written = encode(version, xid, reply, &mut self.out).is_ok();
        self.counts.sent += u64::from(written);
        written
    }

    /// Appends what `f` writes.
    pub(crate) fn append(&mut self, f: impl FnOnce(&mut Vec<u8>)) {
        f(&mut self.out);
    }

    /// The version that is agreed on, or what our hello says.
    pub(crate) fn spoken(&self) -> Version {
        self.version
            .or_else(|| self.offered.iter().max().copied())
            .unwrap_or(Version::V13)
    }

    /// An error about a message.
    pub(crate) fn refuse(&mut self, xid: u32, error: Error, message: &[u8]) {
        self.counts.errors += 1;
        let data = message;
        self.reply(xid, &Reply::Error { error, data });
    }

    /// A message that nobody asked for and that must not be lost.
    pub(crate) fn tell(&mut self, reply: &Reply<'_>) {
        if self.waiting() > MOST {
            self.finish(format!(
                "disconnected: it does not read, {} MiB wait for it",
                self.waiting() >> 20
            ));
        }
        if self.end.is_none() {
            self.reply(0, reply);
        }
    }

    /// A flow that went, of which it wishes to hear; up to `most` wait for it.
    pub(crate) fn tell_removed(&mut self, flow: &Arc<FlowRemoved>, most: usize) {
        if self.removals.len() >= most {
            self.finish(format!(
                "disconnected: it does not read, {} messages of flows that went wait for it",
                self.removals.len()
            ));
            self.removals = VecDeque::new();
        }
        if self.end.is_none() {
            self.removals.push_back(Arc::clone(flow));
            self.draw();
        }
    }

    /// Flows that went become messages, as far as there is room.
    fn draw(&mut self) {
        while self.waiting() < DRAWN
            && let Some(flow) = self.removals.pop_front()
        {
            self.reply(0, &Reply::FlowRemoved(&flow));
        }
        // what one message had emptied is not kept for the next
        if self.removals.is_empty() && self.removals.capacity() > DRAWN / 64 {
            self.removals = VecDeque::new();
        }
    }

    /// Which half of an async filter counts.
    pub(crate) fn half(&self) -> usize {
        usize::from(self.role == Role::Slave)
    }

    /// Has agreed on a version, and is not about to go.
    pub(crate) fn is_up(&self) -> bool {
        self.version.is_some() && self.end.is_none()
    }

    /// Something came.
    pub(crate) fn heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
        self.probed_ns = None;
    }

    /// Looks whether it is still there; when to look again.
    pub(crate) fn look(&mut self, probe_ns: u64, now_ns: u64) -> u64 {
        let after = |since: u64| now_ns.saturating_sub(since);
        if self.waiting() > 0 && after(self.moved_ns) >= STUCK_NS {
            self.finish(format!(
                "disconnected: it has not read for {} s, {} bytes wait for it",
                after(self.moved_ns) / 1_000_000_000,
                self.waiting()
            ));
        }
        if self.waiting() == 0 {
            self.moved_ns = now_ns;
        }
        if self.version.is_none() {
            if after(self.since_ns) >= HELLO_NS {
                self.finish("disconnected: no hello in 10 s".into());
            }
            return self.since_ns + HELLO_NS;
        }
        // what waits on our side is no silence of its
        if !self.takes() {
            self.heard(now_ns);
        }
        match self.probed_ns {
            Some(at) if after(at) >= probe_ns => {
                self.finish(format!(
                    "disconnected: silent for {} s, and no answer to an echo request",
                    after(self.heard_ns) / 1_000_000_000
                ));
                now_ns + probe_ns
            }
            Some(at) => at + probe_ns,
            None if after(self.heard_ns) >= probe_ns => {
                self.probed_ns = Some(now_ns);
                let xid = self.next_xid();
                self.reply(xid, &Reply::Echo(&[]));
                now_ns + probe_ns
            }
            None => self.heard_ns + probe_ns,
        }
    }
}

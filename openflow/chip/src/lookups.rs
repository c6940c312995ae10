// SPDX-License-Identifier: Apache-2.0
//! What the chip has looked up in the place of tables. Each frame that it answered is a lookup of table 0; whether it met a
//! flow there is not known if the chip drops what meets none. Of tables behind the first, rows count as for flows.
//!
//! ```text
//!   all ports to the CPU ─► read: what came in and did not go to the CPU so far ─► ports open ─► read: what it is beyond that
//! ```

use tandem_ofcompose::FlowId;

/// Numbers that no flow has: a switch has far fewer.
pub(crate) const FIRST: FlowId = 0xffff_0000;

/// From where on frames count as answered: those that came before the ports were the switch's are not its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Since {
    /// The chip has answered nothing: it is not attached, or its ports are not open yet.
    #[default]
    Closed,
    /// Frames that came in before and did not go to the CPU.
    Open(u64),
    /// The device did not tell.
    Unknown,
}

/// What counts a table's packets that met a flow, among the numbers of flows.
pub(crate) fn matched(table: u8) -> FlowId {
    FIRST + 2 * FlowId::from(table)
}

/// And what counts those that met none.
pub(crate) fn missed(table: u8) -> FlowId {
    matched(table) + 1
}

/// Is it a number of a table?
pub(crate) fn is_table(id: FlowId) -> bool {
    (FIRST..=FIRST + 2 * 255 + 1).contains(&id)
}

/// Lookups of table 0.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    since: Since,
    /// What the attach read, for ports that are open already.
    seen: Option<u64>,
    /// Frames that came in and did not go to the CPU, as of the last read; `None`: that was refused.
    kept: Option<u64>,
    /// A chip that is gone has answered frames that were not read any more, or ports came or went.
    lost: bool,
    /// At some time the chip has dropped what meets no flow of table 0.
    misses: bool,
}

impl Lookups {
    /// Nobody knows what the device has answered since the last read: it can't be asked any more, or begins anew.
    pub fn ends(&mut self) {
        self.lost |= self.since != Since::Closed;
        self.since = Since::Closed;
    }

    /// As of an attach so many frames did not go to the CPU; `None`: the device does not tell.
    pub fn sees(&mut self, kept: Option<u64>) {
        self.seen = kept;
    }

    /// The ports were open at the attach, and stay so: what they answer from then on counts.
    pub fn goes_on(&mut self) {
        if self.since == Since::Closed {
            match self.seen {
                Some(kept) => self.read(kept),
                None => self.unread(),
            }
        }
    }

    /// The ports are others than those that were counted.
    pub fn others(&mut self) {
        self.lost = true;
    }

    /// Must all ports' counters be read before they open?
    pub fn is_awaited(&self) -> bool {
        self.since == Since::Closed
    }

    /// All ports' counters were read: so many frames did not go to the CPU. The first time no port is open yet.
    pub fn read(&mut self, kept: u64) {
        self.kept = Some(kept);
        if self.since == Since::Closed {
            self.since = Since::Open(kept);
        }
    }

    /// Frames that came in and did not go to the CPU, as of the last read; `None`: the device does not tell.
    pub fn kept(&self) -> Option<u64> {
        self.kept
    }

    /// The device does not tell.
    pub fn unread(&mut self) {
        self.kept = None;
        if self.since == Since::Closed {
            self.since = Since::Unknown;
        }
    }

    /// The chip answers what meets no flow of table 0.
    pub fn miss(&mut self) {
        self.misses = true;
    }

    /// How often the chip has looked something up in table 0, and found a flow; `None`: nobody knows.
    pub fn first(&self) -> (Option<u64>, Option<u64>) {
        let answered = match self.since {
            _ if self.lost => None,
            Since::Closed => Some(0),
            Since::Open(before) => self.kept.map(|k| k.saturating_sub(before)),
            Since::Unknown => None,
        };
        (answered, answered.filter(|_| !self.misses))
    }
}

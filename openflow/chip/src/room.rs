// SPDX-License-Identifier: Apache-2.0
//! Room in the MAC table, which is a hash: what of it is free does not say what fits. The device promises slots whatever
//! the keys are (leases), so many at a time as it can stand for; entries are written on these, and new ones asked for
//! before they are used up.
//!
//! Lines of the list, counters, port sets and domains are counted, and nobody else takes them.

use std::collections::VecDeque;

use tandem_abi::raw;
use tandem_openflow::Version;
use zerocopy::IntoBytes;

use crate::want::Command;
use crate::{Act, Chip, Slice, Unfit, row};

/// Slots to have ahead.
const AHEAD: u32 = 512;
/// Leases of which something is left, at most.
const LEASES: usize = 16;

impl Chip {
    /// What its list of rows is called.
    pub fn list_name(&self) -> &'static str {
        self.known.chip.acl.name
    }

    /// Entries of its MAC table, whoever writes them. What fits is asked for ahead: [`Chip::usage`] has what is promised.
    pub fn mac_size(&self) -> u32 {
        self.known.chip.mac.map_or(0, |m| m.size)
    }

    /// Known before it is attached to: is its part of the list more than the rows that always stand there, in a version that
    /// its tables may come to speak?
    ///
    /// # Errors
    /// It is not: no row of a flow would ever stand there.
    pub fn has_room_for(&self, version: Version) -> Result<(), Unfit> {
        let slice = self.setup.slice;
        let lines = self.known.chip.acl.size;
        let (part, needs) = (slice.part(lines), self.fixed_lines(slice, version));
        // 0: what it has depends on what else it is used for
        if lines == 0 || part > needs {
            return Ok(());
        }
        let fits = |of: &u8| {
            (0..*of).all(|index| {
                let slice = Slice {
                    index,
                    of: *of,
                    ..slice
                };
                slice.part(lines) > self.fixed_lines(slice, version)
            })
        };
        Err(Unfit::Part {
            chip: self.setup.profile.clone(),
            lines,
            of: slice.of,
            part,
            needs,
            version: version.name(),
            most: (1..slice.of).rev().find(fits).unwrap_or(0),
        })
    }

    /// Lines of the rows in front of all others, and of the one behind them where there is one.
    fn fixed_lines(&self, slice: Slice, version: Version) -> u32 {
        let mut fixed = row::guards(slice.table(), version, self.known.ports6());
        if !slice.has_mac() {
            fixed.push(row::last(slice.table(), Act::Cpu));
        }
        self.known.guard_lines(&fixed)
    }
}

/// What is promised.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Not more than so many, entries and what is promised, where others have the rest.
    part: Option<u32>,
    /// Number, and what is left of it.
    leases: VecDeque<(u32, u32)>,
    /// A lease of so many is on its way.
    asked: Option<u32>,
    /// So many were refused: fewer are asked for. 0: none at all, until something is deleted.
    most: Option<u32>,
}

impl Room {
    pub fn new(part: Option<u32>) -> Room {
        Room {
            part,
            ..Room::default()
        }
    }

    /// Entries that there may be, with so many that there are.
    pub fn size(&self, used: u32) -> u32 {
        self.within(used + self.left())
    }

    /// Of so many, those that its part has.
    fn within(&self, promised: u32) -> u32 {
        self.part.map_or(promised, |p| p.min(promised))
    }

    /// Entries that there may be where so many stand, and all that is to be had ahead is promised.
    pub fn at_rest(&self, used: u32) -> u32 {
        self.within(used + self.ahead())
    }

    /// Slots to have ahead. A device promises a sixteenth of the table and no more, so of its part each asks for as much.
    fn ahead(&self) -> u32 {
        self.part.map_or(AHEAD, |p| (p / 16).clamp(1, AHEAD))
    }

    /// Slots that may be asked for.
    fn spare(&self, used: u32) -> u32 {
        let promised = used + self.left();
        self.part.map_or(u32::MAX, |p| p.saturating_sub(promised))
    }

    pub fn left(&self) -> u32 {
        self.leases.iter().map(|(_, n)| n).sum()
    }

    /// The lease that a new entry is written on, and whether that is its last slot: it is to be given back behind the
    /// entry. `None`: on free slots.
    pub fn draw(&mut self) -> Option<(u32, bool)> {
        let (id, left) = self.leases.front_mut()?;
        *left -= 1;
        let drawn = (*id, *left == 0);
        if drawn.1 {
            self.leases.pop_front();
        }
        Some(drawn)
    }

    /// The next lease to ask for.
    pub fn ask(&mut self, used: u32) -> Option<Command> {
        let left = self.left();
        let ahead = self.ahead();
        if self.asked.is_some() || left > ahead / 2 || self.leases.len() >= LEASES {
            return None;
        }
        let count = (ahead - left)
            .min(self.most.unwrap_or(u32::MAX))
            .min(self.spare(used));
        if count == 0 {
            return None;
        }
        self.asked = Some(count);
        let item = raw::tnd_lease_item {
            cls: raw::TND_CLS_FDB,
            count,
            ..Default::default()
        };
        let head = raw::tnd_lease {
            struct_size: size_of::<raw::tnd_lease>() as u16,
            count: 1,
            ..Default::default()
        };
        Some(Command {
            op: raw::TND_OP_LEASE,
            cls: raw::TND_CLS_NONE,
            flags: 0,
            lease: 0,
            arg: 0,
            body: [head.as_bytes(), item.as_bytes()].concat(),
            output: false,
        })
    }

    /// Is nothing left of what was promised, and the device to be asked, or to answer?
    pub fn is_due(&self, used: u32) -> bool {
        let asks = self.most != Some(0) && self.spare(used) > 0;
        self.left() == 0 && (self.asked.is_some() || asks)
    }

    /// It was granted.
    pub fn granted(&mut self, id: u32) {
        if let Some(count) = self.asked.take() {
            self.leases.push_back((id, count));
        }
    }

    /// It was not.
    pub fn refused(&mut self) {
        if let Some(count) = self.asked.take() {
            self.most = Some(count / 2);
        }
    }

    /// Its answer was lost.
    pub fn lost(&mut self) {
        self.asked = None;
    }

    /// Slots were given back.
    pub fn freed(&mut self) {
        self.most = self.most.map(|m| m.max(1).saturating_mul(2));
    }

    /// Gives all back.
    pub fn forget(&mut self) -> Vec<Command> {
        let ids = self.leases.drain(..);
        ids.map(|(id, _)| release(id, 0)).collect()
    }

    /// Another attach: what was promised is void.
    pub fn void(&mut self) {
        *self = Room::new(self.part);
    }
}

/// Gives a lease back, or the one that the LEASE of this token was granted.
pub(crate) fn release(lease: u32, token: u64) -> Command {
    Command {
        op: raw::TND_OP_RELEASE,
        cls: raw::TND_CLS_NONE,
        flags: 0,
        lease,
        arg: token,
        body: Vec::new(),
        output: false,
    }
}

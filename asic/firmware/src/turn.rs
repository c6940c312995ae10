//! What one turn of commands may do, in units of work: the packet thread forwards between two turns.
//!
//! ```text
//!   Processor::run(…, units) ─► command ─► command ─► DELETE of a domain: 16384 entries looked at ─┐
//!                                                                                        turn over ┘ packets, then on
//! ```
//!
//! A unit is 4 ns or less on the machine of `docs/performance.md`, so a turn of [`TURN`] is an eighth of a millisecond, and twice
//! that with a DUMP as its last command; what still exceeds this is in `docs/findings.md`, A4;
//! `cargo run --release -p tandem-firmware --example units` says what the constants below are worth on yours. Nobody here
//! reads a clock: who calls says how much.

use crate::Firmware;
use crate::classes;
use crate::object::{Object, add_delta};
use crate::objects::fdb::Fdb;
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::entry::FdbValue;
use tandem_tables::exact::{Entry, Key};

/// Units of a turn between two bursts of packets.
pub const TURN: u64 = 32768;
/// A command, whatever it does: descriptor, checks, one entry, completion.
pub const COMMAND: u64 = 256;
/// Removing an entry on the way.
pub(crate) const REMOVE: u64 = 96;
/// Writing a record of a DUMP.
pub(crate) const RECORD: u64 = 12;
/// What one DUMP or ACTIVITY may look at, and may write as well; the driver comes back with the cursor.
pub(crate) const DUMP: u64 = 16384;

/// Entries of the exact-match table that go with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Entries {
    /// All addresses of a domain.
    OfFid(u16),
    /// All addresses behind a port.
    OfPort(u16),
}

impl Entries {
    fn has(self, e: &Entry) -> bool {
        match (self, e.key) {
            (Entries::OfFid(of), Key::Mac { fid, .. }) => fid == of,
            (Entries::OfPort(port), Key::Mac { .. }) => FdbValue::unpack(e.value).port == port,
            _ => false,
        }
    }
}

/// How far a walk through them is, over several turns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walk {
    cursor: u32,
    /// All have been looked at, none is the driver's: now they go.
    removing: bool,
    /// [`Firmware::named`] of these when it began.
    named: u64,
    /// How often it has begun.
    begun: u32,
    /// What the slices have given back: the completion tells.
    pub(crate) deltas: Vec<(PoolId, i64)>,
}

/// A walk that the driver throws back once more is refused: it has such an address whenever one looks.
const BEGUN: u32 = 3;

impl Firmware {
    /// Does what of a command can be done ahead, in slices: the sweep of END_RESYNC, the walk of a DELETE. True: what is
    /// left is short. What its descriptor refuses does nothing here.
    pub(crate) fn prepare(
        &mut self,
        cmd: &raw::tnd_cmd,
        body: &[u8],
        walk: &mut Walk,
        units: u64,
    ) -> bool {
        self.walked = None;
        let done = self.admissible(cmd, body).is_err()
            || match (cmd.op, cmd.cls) {
                (raw::TND_OP_END_RESYNC, _) => self.sweep_slice(units),
                (raw::TND_OP_DELETE, cls) => match classes::of(cls) {
                    Some(class) => (class.clear)(self, body, walk, units),
                    None => true,
                },
                _ => true,
            };
        if done {
            self.cx.ahead = std::mem::take(&mut walk.deltas);
        }
        done
    }

    /// The driver writes an entry of the exact-match table: a walk through those that it is among looks anew.
    pub(crate) fn name(&mut self, key: &Key, value: u64) {
        let Key::Mac { fid, .. } = *key else {
            return;
        };
        *self.named.entry(Entries::OfFid(fid)).or_default() += 1;
        let port = FdbValue::unpack(value).port;
        // only a group's port can go
        if port > self.state.port_count() {
            *self.named.entry(Entries::OfPort(port)).or_default() += 1;
        }
    }

    /// One slice of looking for the driver's entries, then of removing learned ones; true: done. Nobody learns meanwhile:
    /// there are no members.
    pub(crate) fn empty(&mut self, all: Entries, walk: &mut Walk, mut units: u64) -> bool {
        let named = self.named.get(&all).copied().unwrap_or(0);
        if walk.named != named {
            // the driver has named some of these since
            (walk.cursor, walk.removing, walk.named) = (0, false, named);
            walk.begun += 1;
            if walk.begun > BEGUN {
                self.walked = Some((all, true));
                return true;
            }
        }
        if let Entries::OfFid(fid) = all
            && self.state.exact.count_fid(fid) == 0
        {
            self.walked = Some((all, false));
            return true;
        }
        loop {
            let end = u64::from(walk.cursor).saturating_add(units);
            let end = u32::try_from(end).unwrap_or(u32::MAX);
            let next = self.state.exact.next_before(walk.cursor, end);
            let at = next.as_ref().map_or(end, |(next, _)| *next);
            let looked = u64::from(at.saturating_sub(walk.cursor));
            self.state.work.add(looked);
            units = units.saturating_sub(looked);
            walk.cursor = at;
            match next {
                Some((_, e)) if all.has(&e) => match Fdb::from_entry(&self.state, &e) {
                    Some(f) if walk.removing => {
                        let others = std::mem::take(&mut self.cx.deltas);
                        self.discard(&f);
                        for (pool, slots) in std::mem::replace(&mut self.cx.deltas, others) {
                            add_delta(&mut walk.deltas, pool, slots);
                        }
                        self.state.work.add(REMOVE);
                        units = units.saturating_sub(REMOVE);
                    }
                    Some(f) if !f.learned() => {
                        self.walked = Some((all, true));
                        return true;
                    }
                    _ => {}
                },
                Some(_) => {}
                None if at < self.state.exact.positions() => {}
                None if walk.removing => {
                    self.walked = Some((all, false));
                    return true;
                }
                None => (walk.cursor, walk.removing) = (0, true),
            }
            if units == 0 {
                return false;
            }
        }
    }

    /// The driver has an entry among these. A walk that has just ended knows.
    pub(crate) fn keeps(&self, all: Entries) -> bool {
        match self.walked {
            Some((walked, kept)) if walked == all => kept,
            _ => self.entries_of(all).any(|f| !f.learned()),
        }
    }

    /// Removes what goes with an object, when only learned addresses do.
    pub(crate) fn drop_entries<O: Object>(&mut self, object: &O) {
        let all = object.entries(self);
        let learned: Vec<Fdb> = all.map_or_else(Vec::new, |all| self.entries_of(all).collect());
        for f in learned {
            self.discard(&f);
        }
    }

    /// Entries that go with an object: none, if a walk has just seen to that.
    fn entries_of(&self, all: Entries) -> impl Iterator<Item = Fdb> + '_ {
        let none = self.walked == Some((all, false));
        let mut left = match all {
            _ if none => 0,
            Entries::OfFid(fid) => self.state.exact.count_fid(fid),
            Entries::OfPort(_) => u32::MAX,
        };
        let mut cursor = 0;
        std::iter::from_fn(move || {
            while left > 0 {
                let (next, e) = self.state.exact.next(cursor)?;
                self.state.work.add(u64::from(next - cursor));
                cursor = next;
                if all.has(&e) {
                    left -= 1;
                    return Fdb::from_entry(&self.state, &e);
                }
            }
            None
        })
    }
}

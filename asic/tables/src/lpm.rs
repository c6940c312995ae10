//! Longest-prefix match, keyed by (VRF, prefix), for IPv4 and IPv6 (seed 000 §2.7, figure 11).
//!
//! ```text
//!   accounting                          lookup, one tree per VRF
//!   ┌──────────────────────────┐        short[256] ──► /0 … /8, for cells that nothing longer has
//!   │ index: (VRF, prefix) ─┐  │        root: 2^24 or 2^16 cells of 4 bytes, for /9 …
//!   │ routes: slot ◄────────┘  │◄──┐     │   a cell is a route's slot, or names a fork: a slot and a node
//!   │   prefix · value · used  │   │     └► node: 16 cells (two cache lines) for 4 bits, somewhere below: bits
//!   └──────────────────────────┘   │         └► node …    that all routes below share are skipped, and compared there
//!                                  └──── the slot of the longest prefix that ends in this node and covers the cell:
//!                                        the last one seen on the way down is the answer
//! ```
//!
//! The value is in the route's slot alone (and the slot's three parts in arrays of their own: a lookup's loads shouldn't
//! bring prefixes into the cache), so that an update, and with it SET_TRAP, is one write however many cells a
//! prefix covers. A cell holds only prefixes that end in its own node, so an insert or delete touches one node, never
//! what is below: at worst 2^15 cells of a root, for a /9. Most IPv4 lookups are two loads: a root's cell and a route.
//! No node has less than two cells in use, so there are fewer nodes than routes. [`Lpm::lookup_bulk`] asks for all lines
//! of one kind before it reads the first, so that those of different addresses are under way at the same time.

mod addr;
mod node;
mod tree;

use crate::index::{Index, mix};
use crate::pool::{Full, Pool};
use crate::prefetch::prefetch;
pub use addr::Addr;
use node::{Cell, Node, Root};

/// Prefixes up to this length have an array of their own: in a root they would cover millions of cells.
const SHORT_BITS: u8 = 8;
const STRIDE: u8 = 4;
const NODE_CELLS: usize = 1 << STRIDE;
/// Bits that the root of VRF 0 resolves in a large table. Its pages are only touched where routes are.
const WIDE_ROOT: u8 = 24;
/// Bits that other roots resolve.
const ROOT: u8 = 16;
/// Tables of so many prefixes are large.
const LARGE: u32 = 16384;
/// In a root's cell: the rest is the number of a fork.
const FORK: u32 = 1 << 31;
/// Addresses whose loads [`Lpm::lookup_bulk`] has under way at a time.
const BULK: usize = 64;

/// Names a route as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteId(pub u32);

/// Answer of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// For [`Lpm::touch`].
    pub id: RouteId,
    /// What was stored.
    pub value: u32,
}

/// Answer of one lookup of many: [`Lpm::lookup_bulk`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Slot + 1, as cells have it; 0 = none.
    cell: u32,
    /// What was stored; 0 if nothing covers the address.
    pub value: u32,
}

impl Answer {
    /// The same as [`Lpm::lookup`] gives.
    #[inline]
    #[must_use]
    pub fn hit(self) -> Option<Hit> {
        let id = RouteId(self.cell.wrapping_sub(1));
        let value = self.value;
        (self.cell != 0).then_some(Hit { id, value })
    }
}

/// One route, as dumps see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<A> {
    /// The route.
    pub id: RouteId,
    /// Virtual router.
    pub vrf: u16,
    /// Prefix; bits beyond `plen` are zero.
    pub addr: A,
    /// Prefix length.
    pub plen: u8,
    /// What was stored.
    pub value: u32,
    /// Touched since [`Lpm::take_active`].
    pub active: bool,
}

/// Why an insert failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// No room.
    #[error("LPM {0}")]
    Full(Full),
    /// The prefix length is larger than the address.
    #[error("prefix length {0} is too long")]
    BadLength(u8),
}

#[derive(Clone, Copy, Debug)]
struct Record<A> {
    addr: A,
    vrf: u16,
    /// [`DEAD`] when the slot is free
    plen: u8,
}

const DEAD: u8 = u8::MAX;

/// The table. See the module.
#[derive(Clone, Debug)]
pub struct Lpm<A: Addr> {
    /// By slot.
    records: Vec<Record<A>>,
    /// By slot + 1, as cells have it; of 0, none, too.
    values: Vec<u32>,
    /// By slot, 64 in a word: a packet sets a bit that is set already, mostly, and should find it near.
    used: Vec<u64>,
    free_slots: Vec<u32>,
    index: Index,
    roots: Vec<Option<Box<Root>>>,
    /// Node 0 is never used: 0 means none.
    nodes: Vec<Node<A>>,
    free_nodes: Vec<u32>,
    /// Pool slots of one prefix.
    cost: u32,
    count: u32,
    pool: Pool,
}

/// IPv4 routes.
pub type Lpm4 = Lpm<u32>;
/// IPv6 routes.
pub type Lpm6 = Lpm<u128>;

impl<A: Addr> Lpm<A> {
    /// An empty table with `size` pool slots; one prefix costs `cost` (at least 1) of them.
    #[must_use]
    pub fn new(size: u32, cost: u32) -> Self {
        let cost = cost.max(1);
        Self {
            records: Vec::new(),
            values: vec![0],
            used: Vec::new(),
            free_slots: Vec::new(),
            index: Index::new((size / cost) as usize),
            roots: Vec::new(),
            nodes: vec![Node::new(A::ZERO, 0)],
            free_nodes: Vec::new(),
            cost,
            count: 0,
            pool: Pool::new(size),
        }
    }

    /// The counters.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
    /// The counters, for leases and commands in flight.
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }
    /// Pool slots of one prefix.
    #[must_use]
    pub fn cost(&self) -> u32 {
        self.cost
    }
    /// Prefixes in the table.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.count
    }
    /// No prefix at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Prefixes in one VRF.
    #[must_use]
    pub fn len_of(&self, vrf: u16) -> u32 {
        self.root(vrf).map_or(0, |r| r.routes)
    }

    /// The longest prefix that covers an address.
    #[inline]
    #[must_use]
    pub fn lookup(&self, vrf: u16, addr: A) -> Option<Hit> {
        let root = self.root(vrf)?;
        let top = root.first(addr);
        let best = if top & FORK == 0 {
            top
        } else {
            self.descend(root, top & !FORK, addr)
        };
        self.answer(best).hit()
    }

    /// The longest prefixes that cover many addresses, of as many as there are answers to write; several times as fast
    /// as one lookup after the other once the table is larger than the cache.
    #[inline]
    pub fn lookup_bulk(&self, vrf: u16, addrs: &[A], answers: &mut [Answer]) {
        let Some(root) = self.root(vrf) else {
            answers.fill(Answer::default());
            return;
        };
        for (addrs, answers) in addrs.chunks(BULK).zip(answers.chunks_mut(BULK)) {
            for addr in addrs {
                root.ask(*addr);
            }
            let mut forked = 0;
            for (addr, answer) in addrs.iter().zip(answers.iter_mut()) {
                let cell = root.first(*addr);
                forked |= cell;
                answer.cell = cell;
                prefetch(&self.values, (cell & !FORK) as usize);
            }
            for answer in answers.iter_mut() {
                *answer = self.answer(answer.cell);
            }
            if forked & FORK != 0 {
                self.descend_all(root, addrs, answers);
            }
        }
    }

    fn descend_all(&self, root: &Root, addrs: &[A], answers: &mut [Answer]) {
        for (addr, answer) in addrs.iter().zip(answers) {
            if answer.cell & FORK != 0 {
                *answer = self.answer(self.descend(root, answer.cell & !FORK, *addr));
            }
        }
    }

    /// The route of a cell: slot + 1, 0 = none.
    #[inline]
    fn answer(&self, cell: u32) -> Answer {
        let value = self.values.get(cell as usize).copied().unwrap_or(0);
        Answer { cell, value }
    }

    #[inline]
    fn descend(&self, root: &Root, fork: u32, addr: A) -> u32 {
        let Some(mut cell) = root.forks.get(fork as usize).copied() else {
            return 0;
        };
        let mut best = if cell.route != 0 {
            cell.route
        } else {
            root.fallback(addr)
        };
        while cell.below != 0 {
            let Some(node) = self.nodes.get(cell.below as usize) else {
                return best;
            };
            if addr.common(node.key) < node.at {
                return best;
            }
            cell = node.cells[node.choose(addr)];
            if cell.route != 0 {
                best = cell.route;
            }
        }
        best
    }

    /// Exactly this prefix.
    #[must_use]
    pub fn get(&self, vrf: u16, addr: A, plen: u8) -> Option<Hit> {
        if plen > A::BITS {
            return None;
        }
        self.answer(self.slot_of(vrf, addr.masked(plen), plen)? + 1)
            .hit()
    }

    /// Writes a prefix: a new one from free slots, or a new value in place if it is there. Gives the slots taken.
    /// Bits of `addr` beyond `plen` don't matter.
    ///
    /// # Errors
    /// [`InsertError`]; nothing has changed then.
    pub fn insert(&mut self, vrf: u16, addr: A, plen: u8, value: u32) -> Result<u32, InsertError> {
        self.insert_from(vrf, addr, plen, value, false)
    }

    /// As [`Self::insert`], from slots that were committed in [`Self::pool_mut`].
    ///
    /// # Errors
    /// [`InsertError`]; nothing has changed then.
    pub fn insert_committed(
        &mut self,
        vrf: u16,
        addr: A,
        plen: u8,
        value: u32,
    ) -> Result<u32, InsertError> {
        self.insert_from(vrf, addr, plen, value, true)
    }

    fn insert_from(
        &mut self,
        vrf: u16,
        addr: A,
        plen: u8,
        value: u32,
        promised: bool,
    ) -> Result<u32, InsertError> {
        if plen > A::BITS {
            return Err(InsertError::BadLength(plen));
        }
        let addr = addr.masked(plen);
        if let Some(slot) = self.slot_of(vrf, addr, plen) {
            self.write_value(slot, value);
            return Ok(0);
        }
        let taken = if promised {
            self.pool.take_committed(self.cost)
        } else {
            self.pool.take(self.cost)
        };
        taken.map_err(InsertError::Full)?;
        let record = Record { addr, vrf, plen };
        let slot = match self.free_slots.pop() {
            Some(s) => {
                if let Some(r) = self.records.get_mut(s as usize) {
                    *r = record;
                }
                s
            }
            None => {
                self.records.push(record);
                self.values.push(0);
                if self.used.len() * 64 < self.records.len() {
                    self.used.push(0);
                }
                self.records.len() as u32 - 1
            }
        };
        self.write_value(slot, value);
        self.take_active(RouteId(slot));
        self.index.add(hash(vrf, addr, plen), slot);
        self.count += 1;
        self.publish(slot);
        Ok(self.cost)
    }

    /// Changes the value of a prefix that is there. Takes no space.
    pub fn update(&mut self, vrf: u16, addr: A, plen: u8, value: u32) -> bool {
        match self.get(vrf, addr, plen) {
            Some(hit) => {
                self.write_value(hit.id.0, value);
                true
            }
            None => false,
        }
    }

    /// Changes the value of a route.
    pub fn set_value(&mut self, id: RouteId, value: u32) -> bool {
        let there = self
            .records
            .get(id.0 as usize)
            .is_some_and(|r| r.plen != DEAD);
        if there {
            self.write_value(id.0, value);
        }
        there
    }

    fn write_value(&mut self, slot: u32, value: u32) {
        if let Some(v) = self.values.get_mut(slot as usize + 1) {
            *v = value;
        }
    }

    /// Removes a prefix; gives its value and the slots that are free now.
    pub fn remove(&mut self, vrf: u16, addr: A, plen: u8) -> Option<(u32, u32)> {
        let hit = self.get(vrf, addr, plen)?;
        let slot = hit.id.0;
        self.withdraw(slot);
        let records = &self.records;
        self.index
            .del(hash(vrf, addr.masked(plen), plen), slot, |s| {
                records
                    .get(s as usize)
                    .map_or(0, |r| hash(r.vrf, r.addr, r.plen))
            });
        if let Some(r) = self.records.get_mut(slot as usize) {
            r.plen = DEAD;
        }
        self.free_slots.push(slot);
        self.count -= 1;
        self.pool.give(self.cost);
        Some((hit.value, self.cost))
    }

    /// The route was used: sets its activity bit.
    #[inline]
    pub fn touch(&mut self, id: RouteId) {
        let bit = 1 << (id.0 % 64);
        if let Some(used) = self.used.get_mut(id.0 as usize / 64)
            && *used & bit == 0
        {
            *used |= bit;
        }
    }

    /// Reads and clears a route's activity bit.
    pub fn take_active(&mut self, id: RouteId) -> bool {
        let was = self.is_active(id.0);
        if let Some(used) = self.used.get_mut(id.0 as usize / 64) {
            *used &= !(1 << (id.0 % 64));
        }
        was
    }

    fn is_active(&self, slot: u32) -> bool {
        let used = self.used.get(slot as usize / 64);
        used.is_some_and(|u| u >> (slot % 64) & 1 != 0)
    }

    /// The first route at or after `cursor`, and the cursor that goes on behind it. Starts at 0; `None` is the end.
    #[must_use]
    pub fn next(&self, cursor: u32) -> Option<(u32, Route<A>)> {
        self.next_before(cursor, u32::MAX)
    }

    /// Where positions end.
    #[must_use]
    pub fn positions(&self) -> u32 {
        self.records.len() as u32
    }

    /// As [`Self::next`], looking at no position at or after `end`: whoever may not look far goes on there.
    #[must_use]
    pub fn next_before(&self, cursor: u32, end: u32) -> Option<(u32, Route<A>)> {
        let end = (end as usize).min(self.records.len());
        let rest = self.records.get(cursor as usize..end)?;
        let n = rest.iter().position(|r| r.plen != DEAD)?;
        let r = rest.get(n)?;
        let slot = cursor + n as u32;
        let id = RouteId(slot);
        Some((
            slot + 1,
            Route {
                id,
                vrf: r.vrf,
                addr: r.addr,
                plen: r.plen,
                value: *self.values.get(slot as usize + 1)?,
                active: self.is_active(slot),
            },
        ))
    }

    /// Forgets all routes, promises and counters: a cold reset.
    pub fn clear(&mut self) {
        self.records.clear();
        self.values.truncate(1);
        self.used.clear();
        self.free_slots.clear();
        self.index.clear();
        self.roots.clear();
        self.nodes.truncate(1);
        self.free_nodes.clear();
        self.count = 0;
        self.pool.reset();
    }

    /// Counts the slots that are taken in the memory itself, for audits: must equal `pool().used()`.
    #[must_use]
    pub fn recount(&self) -> u32 {
        self.records.iter().filter(|r| r.plen != DEAD).count() as u32 * self.cost
    }

    /// Bytes of memory that lookup and accounting hold now.
    #[must_use]
    pub fn memory(&self) -> usize {
        let roots: usize = self
            .roots
            .iter()
            .flatten()
            .map(|r| r.cells.len() * size_of::<u32>() + r.forks.capacity() * size_of::<Cell>())
            .sum();
        self.records.capacity() * size_of::<Record<A>>()
            + self.values.capacity() * size_of::<u32>()
            + self.used.capacity() * size_of::<u64>()
            + self.index.memory()
            + self.nodes.capacity() * size_of::<Node<A>>()
            + roots
    }
}

fn hash<A: Addr>(vrf: u16, addr: A, plen: u8) -> u64 {
    mix(addr.hash() ^ (u64::from(vrf) << 40 | u64::from(plen) << 56))
}

#[cfg(test)]
mod tests;

//! The cover rule: what turns to CPU when something does not fit.
//!
//! ```text
//!   0.0.0.0/0 ─ installed ── would answer for 13/24: set to trap while anything below is uncovered
//!       │
//!       ├── 10.0.0.0/8 ─ installed ── stays as it is: nothing is missing below it
//!       │
//!       └── 13.0.0.0/24 ─ missing (the table is full) ── or an aggregate trap of the reserve here, and 0/0 stays
//! ```
//!
//! One [`Cover`] per VRF and family holds a trie of *all* kernel prefixes. The hardware's answer for an address is the
//! longest *installed* entry. For each node the trie keeps `uncovered`: how many missing prefixes lie in its subtree
//! with no installed entry between. An installed entry whose count is not zero would answer for a missing one, so it
//! must trap. Counts change along one path towards the root, up to the next installed entry: no list of who covers
//! whom is kept, and the work per change is bounded by the depth of the trie.
//!
//! Pure decisions: the caller programs the hardware. It asks [`Cover::forced`] and [`Cover::aggregate`] for each node that
//! [`Cover::take_touched`] names, and reports what it did. See docs/cover-rule.md.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod bits;
pub mod slab;
mod trie;

pub use bits::{Bits, V4, V6};
pub use slab::NONE;
use trie::{Node, ROOT, Trie};

/// A kernel prefix: part of the forwarding table as it should be.
const KERNEL: u8 = 1;
/// Its entry stands in hardware.
const INSTALLED: u8 = 1 << 1;
/// It should stand in hardware and does not, for want of space.
const MISSING: u8 = 1 << 2;
/// By itself it answers with a trap.
const TRAPS: u8 = 1 << 3;
/// An aggregate trap of the reserve is wanted here.
const AGGREGATE: u8 = 1 << 4;
/// The aggregate trap is in the hardware, or posted and sure to get there first.
const AGGREGATE_UP: u8 = 1 << 5;

/// Node of a [`Cover`]: valid while the prefix is in the kernel's table, the hardware's, or has a value.
pub type NodeId = u32;

/// The cover rule for one VRF and family.
#[derive(Debug, Clone, Default)]
pub struct Cover<B: Bits> {
    trie: Trie<B>,
    touched: Vec<NodeId>,
    relief: Vec<NodeId>,
    aggregates: Vec<NodeId>,
    /// Aggregate traps that are wanted no more, and are there still.
    leaving: Vec<NodeId>,
    units: usize,
    missing: usize,
}

fn shields<B>(n: &Node<B>) -> bool {
    n.flags & (INSTALLED | AGGREGATE_UP) != 0
}

impl<B: Bits> Cover<B> {
    /// No prefixes, no units.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many units for aggregate traps there are, in use or not. With two or more, one of them is scratch for
    /// make before break.
    pub fn set_units(&mut self, units: usize) {
        if units > self.units {
            self.relief.extend(self.marked_covers());
        }
        self.units = units;
    }

    /// Units.
    pub fn units(&self) -> usize {
        self.units
    }

    // -- nodes and values ------------------------------------------------------------------------------------------

    /// The node of a prefix, made if need be. It stays while it has a value, or the kernel or the hardware has it.
    pub fn node(&mut self, bits: B, len: u8) -> NodeId {
        self.trie.ensure(bits, len.min(B::WIDTH), shields)
    }

    /// The node of exactly this prefix, if there is one.
    pub fn find(&self, bits: B, len: u8) -> Option<NodeId> {
        self.trie.find(bits.mask(len), len)
    }

    /// Brings the nodes of these prefixes near, all together; which ones, or others on the way.
    pub fn approach(&self, wanted: &[(B, u8)], found: &mut [NodeId]) {
        self.trie.approach(wanted, found);
    }

    /// Brings near what is above these nodes, all of them together. `from` gets where each has come to.
    pub fn climb(&self, from: &mut [NodeId]) {
        self.trie.climb(from);
    }

    /// The caller's value, [`NONE`] if it has set none.
    pub fn value(&self, id: NodeId) -> u32 {
        self.trie.nodes[id].value
    }

    /// Sets the caller's value; [`NONE`] gives the node up, and it goes when nothing else needs it.
    pub fn set_value(&mut self, id: NodeId, value: u32) {
        self.trie.nodes[id].value = value;
        if value == NONE {
            self.trie.prune(id);
        }
    }

    /// The id stands for a node now. Ids in a list of [`Cover::take_touched`] may have gone since.
    pub fn alive(&self, id: NodeId) -> bool {
        id == ROOT || self.trie.nodes.get(id).is_some_and(|n| n.up != NONE)
    }

    /// The prefix of a node.
    pub fn prefix(&self, id: NodeId) -> (B, u8) {
        let n = &self.trie.nodes[id];
        (n.bits, n.len)
    }

    /// The longest kernel prefix that holds an address.
    pub fn kernel_match(&self, addr: B) -> Option<NodeId> {
        self.trie.longest(addr, B::WIDTH, |n| n.flags & KERNEL != 0)
    }

    /// The longest kernel prefix that strictly contains this node.
    pub fn kernel_parent(&self, id: NodeId) -> Option<NodeId> {
        self.ancestor(id, |n| n.flags & KERNEL != 0)
    }

    /// The longest strict ancestor with a value that satisfies `wanted`.
    pub fn ancestor_value(&self, id: NodeId, wanted: impl Fn(u32) -> bool) -> Option<NodeId> {
        self.ancestor(id, |n| n.value != NONE && wanted(n.value))
    }

    /// What the hardware would answer for an address: the longest entry that stands.
    pub fn hardware_match(&self, addr: B) -> Option<NodeId> {
        self.trie.longest(addr, B::WIDTH, shields)
    }

    /// The entry that catches this node's packets while it is not installed itself.
    pub fn cover_of(&self, id: NodeId) -> Option<NodeId> {
        if shields(&self.trie.nodes[id]) {
            Some(id)
        } else {
            self.ancestor(id, shields)
        }
    }

    /// The entry that would catch them if this one were not there.
    pub fn next_cover(&self, id: NodeId) -> Option<NodeId> {
        self.ancestor(id, shields)
    }

    fn ancestor(&self, id: NodeId, wanted: impl Fn(&Node<B>) -> bool) -> Option<NodeId> {
        let mut at = self.trie.nodes[id].up;
        while at != NONE {
            let n = &self.trie.nodes[at];
            if wanted(n) {
                return Some(at);
            }
            at = n.up;
        }
        None
    }

    /// Calls `f` with every value in the subtree of a prefix, itself included, in prefix order; `f` says whether to go
    /// on.
    pub fn each_below(&self, bits: B, len: u8, f: impl FnMut(NodeId, u32) -> bool) {
        self.each_behind(bits, len, None, f);
    }

    /// The first of them behind this prefix; that one need not be there.
    pub fn next_below(&self, bits: B, len: u8, after: Option<(B, u8)>) -> Option<(NodeId, u32)> {
        let mut found = None;
        self.each_behind(bits, len, after, |id, value| {
            found = Some((id, value));
            false
        });
        found
    }

    fn each_behind(
        &self,
        bits: B,
        len: u8,
        after: Option<(B, u8)>,
        mut f: impl FnMut(NodeId, u32) -> bool,
    ) {
        let bits = bits.mask(len);
        let mut at = match after {
            Some((bits, len)) => self.trie.behind(bits, len),
            None => (self.trie.find(bits, len)).or_else(|| self.trie.behind(bits, len)),
        };
        while let Some(id) = at {
            let n = &self.trie.nodes[id];
            if n.len < len || n.bits.mask(len) != bits || n.value != NONE && !f(id, n.value) {
                return;
            }
            at = self.trie.next_in(ROOT, id, true);
        }
    }

    // -- the kernel's side -----------------------------------------------------------------------------------------

    /// The kernel has (or no longer has) this prefix. A prefix that goes is no longer missing.
    pub fn set_kernel(&mut self, id: NodeId, has: bool) {
        if has {
            self.trie.nodes[id].flags |= KERNEL;
        } else {
            self.set_missing(id, false);
            self.trie.nodes[id].flags &= !(KERNEL | TRAPS);
            self.trie.prune(id);
        }
    }

    /// The kernel has this prefix.
    pub fn in_kernel(&self, id: NodeId) -> bool {
        self.trie.nodes[id].flags & KERNEL != 0
    }

    /// The entry of this prefix by itself answers with a trap, or no longer.
    pub fn set_traps(&mut self, id: NodeId, traps: bool) {
        let n = &mut self.trie.nodes[id];
        let was = n.flags & TRAPS != 0;
        if traps {
            n.flags |= TRAPS;
        } else {
            n.flags &= !TRAPS;
            if was && n.flags & INSTALLED != 0 && n.uncovered > 0 {
                self.relief.push(id);
            }
        }
    }

    // -- the hardware's side ---------------------------------------------------------------------------------------

    /// Must the entry start as trap, if it is installed now? True when it lies between a missing prefix and its cover.
    pub fn starts_as_trap(&self, id: NodeId) -> bool {
        let n = &self.trie.nodes[id];
        n.uncovered > u32::from(n.flags & MISSING != 0)
    }

    /// The entry of this prefix stands in hardware now. It is not missing any more; an aggregate trap at the same place
    /// has become this entry. Returns true if there was one.
    pub fn installed(&mut self, id: NodeId) -> bool {
        self.set_missing(id, false);
        let before = shields(&self.trie.nodes[id]);
        let n = &mut self.trie.nodes[id];
        let was_aggregate = n.flags & AGGREGATE_UP != 0;
        n.flags = n.flags & !(AGGREGATE | AGGREGATE_UP) | INSTALLED;
        self.aggregates.retain(|&a| a != id);
        self.shield_changed(id, before);
        if was_aggregate {
            self.has_left(id);
        }
        was_aggregate
    }

    /// The entry leaves the hardware (or is about to): what it covered is covered by the next one, which must trap
    /// before the delete is posted.
    pub fn withdrawn(&mut self, id: NodeId) {
        let before = shields(&self.trie.nodes[id]);
        self.trie.nodes[id].flags &= !INSTALLED;
        self.shield_changed(id, before);
        self.trie.prune(id);
    }

    /// The entry stands in hardware.
    pub fn is_installed(&self, id: NodeId) -> bool {
        self.trie.nodes[id].flags & INSTALLED != 0
    }

    /// The prefix did not fit. Decides who catches its packets: an aggregate trap of the reserve, else the longest
    /// installed cover; nobody if there is none, for then a lookup misses, and a miss traps.
    pub fn missing(&mut self, id: NodeId) {
        if self.trie.nodes[id].flags & MISSING != 0 {
            return;
        }
        if self.trie.nodes[id].flags & INSTALLED != 0 {
            self.withdrawn(id);
        }
        self.trie.nodes[id].flags |= KERNEL;
        let cover = self.cover_of(id);
        let wants_unit = match cover {
            // Nobody answers for it, or somebody who traps already.
            None => false,
            Some(c) => {
                let n = &self.trie.nodes[c];
                n.flags & AGGREGATE_UP == 0 && n.flags & TRAPS == 0 && n.uncovered == 0
            }
        };
        if let (true, Some(c)) = (wants_unit, cover) {
            self.place(id, c);
        }
        self.set_missing(id, true);
    }

    /// The prefix waits for space.
    #[cfg(feature = "testing")]
    pub fn is_missing(&self, id: NodeId) -> bool {
        self.trie.nodes[id].flags & MISSING != 0
    }

    /// This entry stands in hardware and must trap, because it would answer for this many missing prefixes.
    pub fn forced(&self, id: NodeId) -> u32 {
        let n = &self.trie.nodes[id];
        if n.flags & INSTALLED != 0 {
            n.uncovered
        } else {
            0
        }
    }

    /// An aggregate trap is wanted at this node.
    pub fn aggregate(&self, id: NodeId) -> bool {
        self.trie.nodes[id].flags & AGGREGATE != 0
    }

    /// Missing prefixes at or below this node that nothing between covers.
    pub fn uncovered(&self, id: NodeId) -> u32 {
        self.trie.nodes[id].uncovered
    }

    /// The aggregate trap is posted or there; `false`: it is gone, or about to be.
    pub fn aggregate_up(&mut self, id: NodeId, up: bool) {
        let before = shields(&self.trie.nodes[id]);
        let n = &mut self.trie.nodes[id];
        if up {
            n.flags |= AGGREGATE_UP;
        } else {
            n.flags &= !AGGREGATE_UP;
        }
        self.shield_changed(id, before);
        if !up {
            self.has_left(id);
            self.trie.prune(id);
        }
    }

    /// The aggregate trap could not be made: the cover above takes over.
    pub fn aggregate_failed(&mut self, id: NodeId) {
        self.unwant(id);
        self.aggregate_up(id, false);
    }

    /// Nodes whose answer to [`Cover::forced`] or [`Cover::aggregate`] may have changed, in the order in which they
    /// should be looked at.
    pub fn take_touched(&mut self) -> Vec<NodeId> {
        self.relieve();
        std::mem::take(&mut self.touched)
    }

    /// The chip is a new one: nothing stands, nothing is known to be missing. Kernel prefixes and values stay.
    pub fn forget_hardware(&mut self) {
        self.touched.clear();
        self.relief.clear();
        self.aggregates.clear();
        self.leaving.clear();
        self.missing = 0;
        let mut gone = Vec::new();
        for id in 0..self.trie.nodes.bound() {
            if !self.alive(id) {
                continue;
            }
            let n = &mut self.trie.nodes[id];
            n.flags &= KERNEL | TRAPS;
            n.uncovered = 0;
            if n.flags == 0 && n.value == NONE {
                gone.push(id);
            }
        }
        for id in gone {
            if self.alive(id) {
                self.trie.prune(id);
            }
        }
    }

    /// Something is in the list of [`Cover::take_touched`].
    pub fn has_touched(&self) -> bool {
        !self.touched.is_empty() || !self.relief.is_empty()
    }

    /// Bytes allocated.
    #[cfg(feature = "testing")]
    pub fn bytes(&self) -> usize {
        self.trie.nodes.bytes()
    }

    /// Nodes, branches and the root included.
    pub fn nodes(&self) -> usize {
        self.trie.nodes.len()
    }

    // -- inside ----------------------------------------------------------------------------------------------------

    fn set_missing(&mut self, id: NodeId, missing: bool) {
        let n = &mut self.trie.nodes[id];
        if (n.flags & MISSING != 0) == missing {
            return;
        }
        n.flags ^= MISSING;
        if missing {
            self.missing += 1;
            self.count(id, 1);
        } else {
            self.missing -= 1;
            self.count(id, -1);
        }
    }

    /// Adds to `uncovered` from `id` up to the first entry that answers.
    fn count(&mut self, id: NodeId, by: i64) {
        let mut at = id;
        while at != NONE {
            let n = &mut self.trie.nodes[at];
            let was = n.uncovered;
            n.uncovered = (i64::from(was) + by).max(0) as u32;
            let now = n.uncovered;
            let (flags, up) = (n.flags, n.up);
            if (was == 0) != (now == 0) && flags & (INSTALLED | AGGREGATE | AGGREGATE_UP) != 0 {
                self.touched.push(at);
                if now == 0 && flags & AGGREGATE != 0 {
                    self.unwant(at);
                }
            }
            if flags & (INSTALLED | AGGREGATE_UP) != 0 {
                if by < 0
                    && now > 0
                    && flags & (INSTALLED | TRAPS) == INSTALLED
                    && now as usize <= self.free_units()
                {
                    self.relief.push(at);
                }
                return;
            }
            at = up;
        }
    }

    fn shield_changed(&mut self, id: NodeId, before: bool) {
        let n = &self.trie.nodes[id];
        let (now, uncovered, up) = (shields(n), n.uncovered, n.up);
        if before != now && uncovered > 0 {
            self.touched.push(id);
            self.count(
                up,
                if now {
                    -i64::from(uncovered)
                } else {
                    i64::from(uncovered)
                },
            );
        }
    }

    fn unwant(&mut self, id: NodeId) {
        let n = &mut self.trie.nodes[id];
        if n.flags & AGGREGATE != 0 {
            n.flags &= !AGGREGATE;
            if n.flags & AGGREGATE_UP != 0 {
                self.leaving.push(id);
            }
            self.aggregates.retain(|&a| a != id);
            self.touched.push(id);
        }
    }

    /// The aggregate trap here is gone. What was to take over from it and others like it is needed no more, if nothing is missing
    /// below any of them by now.
    fn has_left(&mut self, id: NodeId) {
        self.leaving.retain(|&a| a != id);
        let Some(heir) = self.ancestor(id, |n| n.flags & (AGGREGATE | INSTALLED) != 0) else {
            return;
        };
        let needed = |&a: &NodeId| {
            self.trie.nodes[a].uncovered > 0
                && self.ancestor(a, |n| n.flags & (AGGREGATE | INSTALLED) != 0) == Some(heir)
        };
        if self.trie.nodes[heir].uncovered == 0 && !self.leaving.iter().any(needed) {
            self.unwant(heir);
        }
    }

    fn free_units(&self) -> usize {
        let scratch = usize::from(self.units >= 2);
        self.units.saturating_sub(scratch + self.aggregates.len())
    }

    fn want(&mut self, id: NodeId) {
        let n = &mut self.trie.nodes[id];
        if n.flags & (AGGREGATE | INSTALLED) == 0 {
            n.flags |= AGGREGATE;
            self.leaving.retain(|&a| a != id);
            self.aggregates.push(id);
            self.touched.push(id);
        }
    }

    /// Finds a place for an aggregate trap that catches `id`, strictly below its cover.
    fn place(&mut self, id: NodeId, cover: NodeId) {
        if self.free_units() > 0 {
            self.want(id);
            return;
        }
        if self.units < 2 {
            return;
        }
        // All in use: the tightest merge of two, the new one included, that stays below the cover.
        let cover_len = self.trie.nodes[cover].len;
        let mut at: Vec<(B, u8)> = self
            .aggregates
            .iter()
            .filter(|&&a| self.ancestor(a, shields) == Some(cover))
            .map(|&a| self.prefix(a))
            .collect();
        at.push(self.prefix(id));
        let mut best: Option<(B, u8)> = None;
        for (i, x) in at.iter().enumerate() {
            for y in at.iter().skip(i + 1) {
                let len = x.0.common(y.0).min(x.1).min(y.1);
                if len > cover_len && best.is_none_or(|b| len > b.1) {
                    best = Some((x.0.mask(len), len));
                }
            }
        }
        let Some((bits, len)) = best else { return };
        let node = self.node(bits, len);
        if self.trie.nodes[node].flags & INSTALLED != 0 {
            return;
        }
        self.want(node);
        // What lies below it and right under the same cover is not needed any more.
        for a in self.aggregates.clone() {
            let (b, l) = self.prefix(a);
            if a != node
                && l > len
                && b.mask(len) == bits
                && self.ancestor(a, shields) == Some(cover)
            {
                self.unwant(a);
            }
        }
        let (b, l) = self.prefix(id);
        if !(l >= len && b.mask(len) == bits) && self.free_units() > 0 {
            self.want(id);
        }
    }

    fn marked_covers(&self) -> Vec<NodeId> {
        let mut out = Vec::new();
        if self.missing == 0 {
            return out;
        }
        let mut at = Some(ROOT);
        while let Some(id) = at {
            let n = &self.trie.nodes[id];
            if n.flags & (INSTALLED | TRAPS) == INSTALLED && n.uncovered > 0 {
                out.push(id);
                if out.len() >= 64 {
                    break;
                }
            }
            at = self.trie.next_in(ROOT, id, true);
        }
        out
    }

    /// Gives a cover that traps for a few its answer back, when units are free for those few.
    fn relieve(&mut self) {
        for c in std::mem::take(&mut self.relief) {
            let Some(n) = self.trie.nodes.get(c) else {
                continue;
            };
            if n.flags & (INSTALLED | TRAPS) != INSTALLED || n.uncovered == 0 {
                continue;
            }
            if n.uncovered as usize > self.free_units() {
                continue;
            }
            let mut found = Vec::new();
            let mut at = self.trie.next_in(c, c, true);
            while let Some(id) = at {
                let k = &self.trie.nodes[id];
                if k.flags & MISSING != 0 && !shields(k) {
                    found.push(id);
                }
                at = self.trie.next_in(c, id, k.uncovered > 0 && !shields(k));
            }
            for id in found {
                self.want(id);
            }
        }
    }
}

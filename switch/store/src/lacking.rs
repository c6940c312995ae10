//! Own IPv4 prefixes that are not in hardware.
//!
//! ```text
//!   from 10.3.0.3 ──► port ──► chip: longest match of the source ──► LOCAL: to the CPU, which drops it
//!                                    nothing, or what is above it ──► forwarded: so the VRF's interfaces trap meanwhile
//! ```
//!
//! The kernel takes no packet from outside that claims to be from an own address (net/ipv4/fib_frontend.c
//! `__fib_validate_source`), and the chip knows own addresses by their entries alone.

use crate::Store;
use crate::fib::{Content, F_FAILED, Fam, SLOT_BITS, V4};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tandem_abi::raw::{TND_TRAP_LOCAL, tnd_route};
use tandem_cover::{Bits as _, NONE};

/// Entries of such prefixes, by the VRF that they are in.
pub(crate) type Lacking = BTreeMap<u8, BTreeSet<u32>>;

impl Store {
    /// This entry failed, stands, or shall be another one.
    pub(crate) fn look_lacking<F: Fam>(&mut self, e: u32) {
        if F::CLS != V4::CLS {
            return;
        }
        let fib = F::fib(&self.fibs);
        let Some(x) = fib.entries.get(e).filter(|x| x.node != NONE) else {
            return;
        };
        // with room its connected prefix would answer for it
        let above = || (fib.cover.kernel_parent(x.node)).and_then(|n| fib.at_node(n));
        let by_another =
            || self.is_soft(x) && above().is_some_and(|p| fib.entries[p].want.is_connected());
        let lacks = x.is(F_FAILED) && x.want == Content::trap(TND_TRAP_LOCAL) && !by_another();
        if !lacks && self.lacking.is_empty() {
            return;
        }
        let slot = fib.cover.prefix(x.node).0.slot();
        let before = self.lacking.contains_key(&slot);
        match lacks {
            true => _ = self.lacking.entry(slot).or_default().insert(e),
            false => {
                if let Some(all) = self.lacking.get_mut(&slot) {
                    all.remove(&e);
                }
                self.lacking.retain(|_, all| !all.is_empty());
            }
        }
        if before != self.lacking.contains_key(&slot) {
            self.interfaces_of_vrf(slot);
        }
    }

    /// Nothing is known of the chip any more.
    pub(crate) fn forget_lacking(&mut self) {
        for slot in std::mem::take(&mut self.lacking).into_keys() {
            self.interfaces_of_vrf(slot);
        }
    }

    fn interfaces_of_vrf(&mut self, slot: u8) {
        let all = self.topo.rif_of.keys().copied();
        let there: Vec<u32> = all.filter(|i| self.slot_of(*i) == slot).collect();
        self.topo.dirty.rifs.extend(there);
    }

    /// Those that are not in hardware, as the chip would have them.
    pub fn own_missing(&self) -> Vec<tnd_route> {
        let fib = V4::fib(&self.fibs);
        let entries = self.lacking.values().flatten();
        let there = entries.filter_map(|e| fib.entries.get(*e).filter(|x| x.node != NONE));
        there
            .map(|x| {
                let (bits, len) = fib.cover.prefix(x.node);
                tnd_route {
                    vrf: self.hw.ids.vrf(bits.slot()),
                    family: V4::AF,
                    prefix_len: len.saturating_sub(SLOT_BITS),
                    action: x.want.action,
                    reason: x.want.reason,
                    addr: bits.to_bytes(),
                    ..Default::default()
                }
            })
            .collect()
    }

    /// This prefix, as the chip would have it, is an own one here.
    pub fn is_own(&self, r: &tnd_route) -> bool {
        let fib = V4::fib(&self.fibs);
        let bits = (self.slot_of_vrf(r.vrf)).map(|slot| V4::new(slot, address(r)));
        let node = bits.and_then(|b| fib.cover.find(b, r.prefix_len + SLOT_BITS));
        let entry = node.and_then(|n| fib.at_node(n));
        entry.is_some_and(|e| fib.entries[e].want == Content::trap(TND_TRAP_LOCAL))
    }

    /// Why the chip can't tell whether an IPv4 packet claims to be from an own address.
    pub(crate) fn lacks_own(&self, slot: u8) -> bool {
        self.lacking.contains_key(&slot)
    }
}

fn address(r: &tnd_route) -> IpAddr {
    let [a, b, c, d, ..] = r.addr;
    [a, b, c, d].into()
}

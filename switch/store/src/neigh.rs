//! Neighbours: host entries of the chip, and the link-layer addresses of gateways.
//!
//! A host entry is looked up before the route table. It may stand only while the kernel's longest match for its address
//! is the connected route of its own interface; a more specific prefix, or one that goes, is followed.

use crate::Store;
use crate::fib::{Fam, V4, V6};
use crate::hw::bodies;
use crate::model::{Family, Neigh, SourceId, nud};
use std::net::IpAddr;
use tandem_cover::{Bits, NONE};

/// A neighbour as announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeighRec {
    pub mac: [u8; 6],
    pub state: u16,
    pub source: u8,
    pub generation: u16,
}

impl NeighRec {
    pub fn usable(&self) -> bool {
        Neigh {
            ifindex: 0,
            addr: IpAddr::from([0, 0, 0, 0]),
            mac: self.mac,
            state: self.state,
        }
        .usable()
    }
}

impl Store {
    pub(crate) fn upsert_neigh(&mut self, source: SourceId, n: Neigh, generation: u16, now: u64) {
        let key = (n.addr, n.ifindex);
        let rec = NeighRec {
            mac: n.mac,
            state: n.state,
            source: source.0,
            generation,
        };
        let old = self.neighs.insert(key, rec);
        self.neighs_on.insert((n.ifindex, n.addr));
        let same = old.is_some_and(|o| {
            o.usable() == rec.usable()
                && (o.mac == rec.mac || !rec.usable())
                && (o.state ^ rec.state) & nud::FAILED == 0
        });
        if same {
            self.counters.unchanged += 1;
            return;
        }
        self.neighbour_changed(n.addr, n.ifindex, now);
    }

    pub(crate) fn remove_neigh(&mut self, ifindex: u32, addr: IpAddr, now: u64) {
        if self.neighs.remove(&(addr, ifindex)).is_some() {
            self.neighs_on.remove(&(ifindex, addr));
            self.neighbour_changed(addr, ifindex, now);
        }
    }

    fn neighbour_changed(&mut self, addr: IpAddr, ifindex: u32, now: u64) {
        if let Some(&g) = self.paths.gateways.get(&(ifindex, addr)) {
            self.wanted.insert((ifindex, addr));
            self.update_gateway(g, now);
            // a group may leave it out, or take it in again
            let paths = match self.paths.gateway_info.get(g as usize) {
                Some(Some(i)) => i.paths.clone(),
                _ => Vec::new(),
            };
            for p in paths {
                if self.paths.sets[p].group != NONE {
                    self.paths.touch(p);
                }
            }
        }
        self.reeval_neighbour(addr, ifindex, now);
    }

    /// The host entry of one neighbour, as it should be now.
    pub(crate) fn reeval_neighbour(&mut self, addr: IpAddr, ifindex: u32, now: u64) {
        self.slices.look();
        let body = match (
            self.neighs.get(&(addr, ifindex)),
            self.topo.rif_of.get(&ifindex),
        ) {
            (Some(n), Some(&rif)) if n.usable() && self.on_connected(addr, ifindex) => {
                Some(bodies::Neigh {
                    rif,
                    addr,
                    mac: n.mac,
                })
            }
            _ => None,
        };
        let id = match self.neigh_ids.get(&(addr, ifindex)) {
            Some(&id) => id,
            None if body.is_none() => return,
            None => {
                let id = self.hw.neighs.take();
                self.neigh_ids.insert((addr, ifindex), id);
                self.neigh_keys.insert(id, (addr, ifindex));
                id
            }
        };
        self.hw.want(id, body, now);
    }

    /// The kernel's longest match of this address is the connected route of this interface.
    pub(crate) fn on_connected(&self, addr: IpAddr, ifindex: u32) -> bool {
        match Family::of(&addr) {
            // The parser sends link-local destinations to the CPU: an entry would never be hit.
            Family::V6 if V6::new(0, addr).parser_traps(V6::WIDTH) => false,
            Family::V4 => self.on_connected_of::<V4>(addr, ifindex),
            Family::V6 => self.on_connected_of::<V6>(addr, ifindex),
        }
    }

    fn on_connected_of<F: Fam>(&self, addr: IpAddr, ifindex: u32) -> bool {
        let fib = F::fib(&self.fibs);
        fib.cover
            .kernel_match(F::new(self.slot_of(ifindex), addr))
            .and_then(|n| fib.at_node(n))
            .is_some_and(|e| {
                let want = fib.entries[e].want;
                want.is_connected() && want.target == ifindex
            })
    }

    /// A prefix came, went, or became (or ceased to be) connected: the neighbours inside look again.
    pub(crate) fn neighbours_in<F: Fam>(&mut self, bits: F, len: u8, connected: bool, now: u64) {
        // A prefix shorter than every connected one is nobody's longest match that mattered.
        if !connected && len < F::fib(&self.fibs).shortest_connected() {
            return;
        }
        self.for_neighbours((bits.to_ip(), 0), (bits.last(len), u32::MAX), now);
    }
}

//! Cells, nodes and roots.

use super::{Addr, FORK, NODE_CELLS, SHORT_BITS, STRIDE};
use crate::prefetch::prefetch;

/// Slot of a route + 1, 0 = none; number of the node below, 0 = none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) route: u32,
    pub(super) below: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Node<A> {
    pub(super) cells: [Cell; NODE_CELLS],
    /// What all addresses that come here must begin with.
    pub(super) key: A,
    /// The first of the bits that choose a cell; so many bits of `key` count.
    pub(super) at: u8,
}

impl<A: Addr> Node<A> {
    pub(super) fn new(key: A, at: u8) -> Self {
        Self {
            cells: [Cell::default(); NODE_CELLS],
            key,
            at,
        }
    }

    /// Which cell an address chooses.
    #[inline]
    pub(super) fn choose(&self, addr: A) -> usize {
        addr.bits(self.at, STRIDE) & (NODE_CELLS - 1)
    }

    /// Where this prefix goes: the first cell and how many.
    pub(super) fn range(&self, addr: A, plen: u8) -> (usize, usize) {
        (self.choose(addr), 1 << (self.at + STRIDE - plen))
    }
}

/// Where the number of a node stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Link {
    /// The fork of this cell of the root.
    Root(usize),
    /// This cell of this node.
    Cell(u32, usize),
}

#[derive(Clone, Debug)]
pub(super) struct Root {
    /// Route slot + 1, 0 = none, or [`FORK`] and a number.
    pub(super) cells: Vec<u32>,
    pub(super) bits: u8,
    pub(super) forks: Vec<Cell>,
    pub(super) free_forks: Vec<u32>,
    /// The same for prefixes too short for a cell.
    pub(super) short: [u32; 1 << SHORT_BITS],
    pub(super) routes: u32,
}

impl Root {
    pub(super) fn new(bits: u8) -> Self {
        Self {
            cells: vec![0; 1 << bits],
            bits,
            forks: Vec::new(),
            free_forks: Vec::new(),
            short: [0; 1 << SHORT_BITS],
            routes: 0,
        }
    }

    /// The answer of prefixes too short for a cell.
    #[inline]
    pub(super) fn fallback<A: Addr>(&self, addr: A) -> u32 {
        self.short[addr.bits(0, SHORT_BITS) & ((1 << SHORT_BITS) - 1)]
    }

    /// Asks for the cell of an address.
    #[inline]
    pub(super) fn ask<A: Addr>(&self, addr: A) {
        prefetch(&self.cells, addr.bits(0, self.bits));
    }

    /// The cell of an address.
    #[inline]
    pub(super) fn cell<A: Addr>(&self, addr: A) -> u32 {
        let at = addr.bits(0, self.bits);
        self.cells.get(at).copied().unwrap_or(0)
    }

    /// The route of an address, or its fork.
    #[inline]
    pub(super) fn first<A: Addr>(&self, addr: A) -> u32 {
        self.or_fallback(self.cell(addr), addr)
    }

    /// What stands in for an empty cell. It is loaded in any case and nothing is jumped over: which addresses have a cell
    /// of their own can't be foretold.
    #[inline]
    pub(super) fn or_fallback<A: Addr>(&self, cell: u32, addr: A) -> u32 {
        let short = self.fallback(addr);
        if cell == 0 { short } else { cell }
    }

    /// The route of cell `i`.
    pub(super) fn route_mut(&mut self, i: usize) -> Option<&mut u32> {
        match self.cells.get_mut(i) {
            Some(c) if *c & FORK == 0 => Some(c),
            Some(c) => self
                .forks
                .get_mut((*c & !FORK) as usize)
                .map(|f| &mut f.route),
            None => None,
        }
    }

    /// The fork of cell `i`, made if need be.
    pub(super) fn fork(&mut self, i: usize) -> Option<&mut Cell> {
        let c = self.cells.get_mut(i)?;
        if *c & FORK == 0 {
            let fork = Cell {
                route: *c,
                below: 0,
            };
            let n = match self.free_forks.pop() {
                Some(n) => {
                    if let Some(f) = self.forks.get_mut(n as usize) {
                        *f = fork;
                    }
                    n
                }
                None => {
                    self.forks.push(fork);
                    self.forks.len() as u32 - 1
                }
            };
            *c = FORK | n;
        }
        self.forks.get_mut((*c & !FORK) as usize)
    }

    /// Nothing is below cell `i` any more.
    pub(super) fn unfork(&mut self, i: usize) {
        if let Some(c) = self.cells.get_mut(i)
            && *c & FORK != 0
        {
            let n = *c & !FORK;
            *c = self.forks.get(n as usize).map_or(0, |f| f.route);
            self.free_forks.push(n);
        }
    }

    pub(super) fn below(&self, i: usize) -> u32 {
        match self.cells.get(i) {
            Some(c) if c & FORK != 0 => self.forks.get((c & !FORK) as usize).map_or(0, |f| f.below),
            _ => 0,
        }
    }
}

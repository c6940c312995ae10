//! Keeping the lookup structure in step with the routes.

use super::node::{Cell, Link, Node, Root};
use super::{Addr, LARGE, Lpm, ROOT, Record, SHORT_BITS, STRIDE, WIDE_ROOT, hash};

impl<A: Addr> Lpm<A> {
    #[inline]
    pub(super) fn root(&self, vrf: u16) -> Option<&Root> {
        self.roots.get(vrf as usize)?.as_deref()
    }

    pub(super) fn slot_of(&self, vrf: u16, addr: A, plen: u8) -> Option<u32> {
        self.index.find(hash(vrf, addr, plen), |s| {
            self.records
                .get(s as usize)
                .is_some_and(|r| r.addr == addr && r.plen == plen && r.vrf == vrf)
        })
    }

    /// Puts a route into its cells where nothing longer is.
    pub(super) fn publish(&mut self, slot: u32) {
        let Some(&Record {
            addr, vrf, plen, ..
        }) = self.records.get(slot as usize)
        else {
            return;
        };
        if self.roots.len() <= vrf as usize {
            self.roots.resize(vrf as usize + 1, None);
        }
        let Some(place) = self.roots.get_mut(vrf as usize) else {
            return;
        };
        let wide = vrf == 0 && self.pool.size() / self.cost >= LARGE;
        let root =
            place.get_or_insert_with(|| Box::new(Root::new(if wide { WIDE_ROOT } else { ROOT })));
        root.routes += 1;
        let bits = root.bits;
        let records = &self.records;
        let shorter = |r: u32| r == 0 || records.get(r as usize - 1).is_none_or(|r| r.plen <= plen);
        if plen <= SHORT_BITS {
            let first = addr.bits(0, SHORT_BITS);
            for c in root
                .short
                .iter_mut()
                .skip(first)
                .take(1 << (SHORT_BITS - plen))
            {
                if shorter(*c) {
                    *c = slot + 1;
                }
            }
            return;
        }
        let top = addr.bits(0, bits);
        if plen <= bits {
            for i in top..top + (1 << (bits - plen)) {
                if let Some(c) = root.route_mut(i)
                    && shorter(*c)
                {
                    *c = slot + 1;
                }
            }
            return;
        }
        if root.fork(top).is_none() {
            return;
        }
        // the node where this prefix ends starts at this bit
        let end = (plen - 1) / STRIDE * STRIDE;
        let mut link = Link::Root(top);
        loop {
            let below = self.follow(vrf, link);
            let Some(node) = self
                .nodes
                .get(below as usize)
                .copied()
                .filter(|_| below != 0)
            else {
                let n = self.new_node(addr.masked(end), end);
                self.set_link(vrf, link, n);
                self.fill(n, slot, addr, plen);
                return;
            };
            let common = addr.common(node.key).min(node.at).min(end);
            if common < node.at {
                // they part before that node, or the prefix ends above it: a node between
                let at = common / STRIDE * STRIDE;
                let n = self.new_node(addr.masked(at), at);
                if let Some(between) = self.nodes.get_mut(n as usize) {
                    let i = between.choose(node.key);
                    between.cells[i].below = below;
                }
                self.set_link(vrf, link, n);
                if at == end {
                    self.fill(n, slot, addr, plen);
                    return;
                }
                link = Link::Cell(n, addr.bits(at, STRIDE));
            } else if node.at == end {
                self.fill(below, slot, addr, plen);
                return;
            } else {
                link = Link::Cell(below, node.choose(addr));
            }
        }
    }

    /// Writes a route into the node where its prefix ends.
    pub(super) fn fill(&mut self, node: u32, slot: u32, addr: A, plen: u8) {
        let records = &self.records;
        if let Some(n) = self.nodes.get_mut(node as usize) {
            let (first, count) = n.range(addr, plen);
            for c in n.cells.iter_mut().skip(first).take(count) {
                let old = (c.route as usize)
                    .checked_sub(1)
                    .and_then(|r| records.get(r));
                if old.is_none_or(|r| r.plen <= plen) {
                    c.route = slot + 1;
                }
            }
        }
    }

    pub(super) fn new_node(&mut self, key: A, at: u8) -> u32 {
        let node = Node::new(key, at);
        match self.free_nodes.pop() {
            Some(n) => {
                if let Some(x) = self.nodes.get_mut(n as usize) {
                    *x = node;
                }
                n
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    pub(super) fn follow(&self, vrf: u16, link: Link) -> u32 {
        match link {
            Link::Root(i) => self.root(vrf).map_or(0, |r| r.below(i)),
            Link::Cell(n, i) => self
                .nodes
                .get(n as usize)
                .and_then(|x| x.cells.get(i))
                .map_or(0, |c| c.below),
        }
    }

    pub(super) fn set_link(&mut self, vrf: u16, link: Link, to: u32) {
        match link {
            Link::Root(i) => {
                if let Some(root) = self
                    .roots
                    .get_mut(vrf as usize)
                    .and_then(|r| r.as_deref_mut())
                {
                    if to == 0 {
                        root.unfork(i);
                    } else if let Some(f) = root.fork(i) {
                        f.below = to;
                    }
                }
            }
            Link::Cell(n, i) => {
                if let Some(c) = self
                    .nodes
                    .get_mut(n as usize)
                    .and_then(|x| x.cells.get_mut(i))
                {
                    c.below = to;
                }
            }
        }
    }

    /// Takes a route out of its cells; the next shorter prefix that ends in the same node takes its place. Nodes that
    /// are empty then are freed.
    pub(super) fn withdraw(&mut self, slot: u32) {
        let Some(&Record {
            addr, vrf, plen, ..
        }) = self.records.get(slot as usize)
        else {
            return;
        };
        let Some(bits) = self.root(vrf).map(|r| r.bits) else {
            return;
        };
        // the shortest prefix that ends in the same node
        let shortest = match plen {
            0..=SHORT_BITS => 0,
            l if l <= bits => SHORT_BITS + 1,
            l => (l - 1) / STRIDE * STRIDE + 1,
        };
        let heir = (shortest..plen)
            .rev()
            .find_map(|l| self.slot_of(vrf, addr.masked(l), l))
            .map_or(0, |s| s + 1);
        let Some(root) = self
            .roots
            .get_mut(vrf as usize)
            .and_then(|r| r.as_deref_mut())
        else {
            return;
        };
        root.routes -= 1;
        let empty = root.routes == 0;
        let replace = |r: &mut u32| {
            if *r == slot + 1 {
                *r = heir;
            }
        };
        let top = addr.bits(0, bits);
        if plen <= SHORT_BITS {
            let first = addr.bits(0, SHORT_BITS);
            root.short
                .iter_mut()
                .skip(first)
                .take(1 << (SHORT_BITS - plen))
                .for_each(replace);
        } else if plen <= bits {
            for i in top..top + (1 << (bits - plen)) {
                if let Some(r) = root.route_mut(i) {
                    replace(r);
                }
            }
        } else {
            self.withdraw_below(vrf, addr, plen, slot, heir, top);
        }
        if empty && let Some(r) = self.roots.get_mut(vrf as usize) {
            *r = None;
        }
    }

    pub(super) fn withdraw_below(
        &mut self,
        vrf: u16,
        addr: A,
        plen: u8,
        slot: u32,
        heir: u32,
        top: usize,
    ) {
        let end = (plen - 1) / STRIDE * STRIDE;
        let mut path = [Link::Root(top); 1 + 128 / STRIDE as usize];
        let mut depth = 0;
        loop {
            let Some(link) = path.get(depth).copied() else {
                return;
            };
            let below = self.follow(vrf, link);
            let Some(node) = self.nodes.get_mut(below as usize).filter(|_| below != 0) else {
                return;
            };
            if node.at == end {
                let (first, count) = node.range(addr, plen);
                for c in node
                    .cells
                    .iter_mut()
                    .skip(first)
                    .take(count)
                    .filter(|c| c.route == slot + 1)
                {
                    c.route = heir;
                }
                break;
            }
            let next = Link::Cell(below, node.choose(addr));
            depth += 1;
            if let Some(p) = path.get_mut(depth) {
                *p = next;
            }
        }
        // a node that is empty goes; one that only leads to another is skipped
        for link in path.iter().take(depth + 1).rev() {
            let n = self.follow(vrf, *link);
            let Some(node) = self.nodes.get(n as usize).filter(|_| n != 0) else {
                return;
            };
            let mut used = node.cells.iter().filter(|c| **c != Cell::default());
            let to = match (used.next(), used.next()) {
                (None, _) => 0,
                (Some(c), None) if c.route == 0 => c.below,
                _ => return,
            };
            self.set_link(vrf, *link, to);
            self.free_nodes.push(n);
            if to != 0 {
                return;
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn nodes_in_use(&self) -> usize {
        self.nodes.len() - 1 - self.free_nodes.len()
    }
}

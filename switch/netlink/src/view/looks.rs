//! Looks at a family's routes, or at those by one device: what such a dump does not hold is gone.

use std::collections::HashMap;

use ipnet::IpNet;
use tandem_linux::netlink::{Found, Object};
use tandem_store::model::LinkKind;

use super::super::fib::{Change, Hiding, Lines, Missing};
use super::{KernelView, Sink, next_hop_flags6, say};

impl KernelView {
    /// A dump of one family's routes via `ifindex` begins (`None`: of all routes).
    pub fn begin_check(&mut self, ifindex: Option<u32>, v6: bool) {
        match ifindex {
            Some(i) => self.fib.unmark(|c| c.uses(i)),
            None => self.fib.unmark(|_| true),
        }
        self.fib.begin_look(ifindex, v6);
        if !v6 {
            self.fib
                .forget_twins4(|c| ifindex.is_none_or(|i| c.uses(i)));
        }
    }

    /// What the look at a device found has its place among the routes of other devices: all of the family are to be looked at instead.
    pub fn take_disorder(&mut self) -> bool {
        self.fib.take_disorder()
    }

    /// Where there may be IPv6 routes that no dump shows: [`Lines`] should be read of that.
    pub fn hiding(&self) -> Option<Hiding> {
        self.fib.hiding()
    }

    /// A dump of IPv6 routes ended: what may be hidden from it is spared. Whether the lines are wanted for that.
    pub fn spare_hidden(&mut self) -> bool {
        self.fib.spare_hidden()
    }

    /// What was spared, beside the lines that were read.
    pub fn check_spared(&mut self, lines: Option<&Lines>) {
        self.fib.check_spared(lines);
    }

    /// What a dump of IPv6 routes that counts has not shown, though it was known; at most so many.
    pub fn missing6(&self, device: Option<u32>, most: usize) -> Vec<Missing> {
        let vrfs = self.links.values().filter_map(|l| match l.model.kind {
            LinkKind::Vrf { table } => Some((table, l.model.ifindex)),
            _ => None,
        });
        let vrfs: HashMap<u32, u32> = vrfs.collect();
        let vrf = |table| vrfs.get(&table).copied().unwrap_or(0);
        self.fib.missing6(device, most, &vrf)
    }

    /// What a lookup of that gave.
    pub fn looked_up6(&mut self, of: &Missing, found: Found, out: &mut Sink<'_>) {
        let again = self.full.is_some();
        let (links, without6) = (&self.links, &self.without6);
        let flags = |i| next_hop_flags6(links, without6, i);
        let say = &mut |c: Change<'_>| say(out, &c);
        let other = (self.fib).looked_up6(of, found, again, &flags, say);
        if let Some(route) = other {
            // by itself: it stands behind no other one of its key that a dump has shown
            self.fib.begin_dump();
            self.dumped(Object::Route(route), out);
        }
    }

    /// See [`FibCopy::twins6`](super::super::fib::FibCopy::twins6).
    pub fn twins6(&self) -> Vec<(u32, IpNet, u32)> {
        self.fib.twins6()
    }

    /// The dump of one family ended: what it did not hold is gone. How many.
    pub fn end_check(&mut self, ifindex: Option<u32>, v6: bool, out: &mut Sink<'_>) -> usize {
        let emit = &mut |c: Change<'_>| say(out, &c);
        match ifindex {
            Some(i) => self.fib.sweep(Some(v6), |c| c.uses(i), emit),
            None => self.fib.sweep(Some(v6), |_| true, emit),
        }
    }
}

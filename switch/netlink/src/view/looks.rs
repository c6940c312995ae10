//! Looks at a family's routes, or at those by one device: what such a dump does not hold is gone.

use ipnet::IpNet;

use super::super::fib::{Change, Hiding, Lines};
use super::{KernelView, Sink, say};

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

//! A counted pool of slots, the unit of promise 3: `used + in_flight + committed + free == size`.
//!
//! The four numbers are counters of their own. Each event names the two that it moves between, none is computed from
//! the others; [`Pool::check`] holds them against each other, and a forgotten or doubled event shows.

use std::fmt;

/// Why slots can't be had: what was wanted and what is there. One line in [`fmt::Display`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Full {
    /// The table has no free slots, or it has some, but none for this key.
    pub kind: FullKind,
    /// Slots wanted.
    pub needed: u32,
    /// Slots free when it was tried.
    pub free: u32,
    /// Slots of the table.
    pub size: u32,
}

/// The two ways of being full (`TND_ST_TABLE_FULL`, `TND_ST_BUCKET_FULL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullKind {
    /// Fewer free slots than needed.
    Table,
    /// Enough free slots, but every place this key can hash to is taken and so is the overflow stash.
    Bucket,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FullKind::Table => "full",
            FullKind::Bucket => "bucket full",
        };
        write!(
            f,
            "{what} (needs {}, free {} of {})",
            self.needed, self.free, self.size
        )
    }
}

/// Counters of one physical pool, in slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    size: u32,
    used: u32,
    in_flight: u32,
    committed: u32,
    free: u32,
    high_watermark: u32,
}

impl Pool {
    /// An empty pool of `size` slots.
    #[must_use]
    pub fn new(size: u32) -> Self {
        Self {
            size,
            used: 0,
            in_flight: 0,
            committed: 0,
            free: size,
            high_watermark: 0,
        }
    }

    /// All slots.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }
    /// Slots of objects that are written.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }
    /// Slots of commands accepted and not completed yet.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
    /// Slots promised to leases.
    #[must_use]
    pub fn committed(&self) -> u32 {
        self.committed
    }
    /// Slots that nobody holds.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.free
    }
    /// Largest `used + in_flight` since the last reset.
    #[must_use]
    pub fn high_watermark(&self) -> u32 {
        self.high_watermark
    }

    /// The answer when `needed` slots are not free.
    #[must_use]
    pub fn full(&self, needed: u32) -> Full {
        Full {
            kind: FullKind::Table,
            needed,
            free: self.free,
            size: self.size,
        }
    }

    fn need_free(&self, n: u32) -> Result<(), Full> {
        if self.free < n {
            Err(self.full(n))
        } else {
            Ok(())
        }
    }

    fn mark(&mut self) {
        self.high_watermark = self
            .high_watermark
            .max(self.used.saturating_add(self.in_flight));
    }

    /// An object is written: free → used.
    ///
    /// # Errors
    /// [`Full`] when fewer than `n` slots are free.
    pub fn take(&mut self, n: u32) -> Result<(), Full> {
        self.need_free(n)?;
        self.free -= n;
        self.used += n;
        self.mark();
        Ok(())
    }

    /// An object is removed: used → free.
    pub fn give(&mut self, n: u32) {
        debug_assert!(self.used >= n, "gave back {n} of {} used", self.used);
        self.used = self.used.saturating_sub(n);
        self.free += n;
    }

    /// A lease is granted: free → committed.
    ///
    /// # Errors
    /// [`Full`] when fewer than `n` slots are free.
    pub fn commit(&mut self, n: u32) -> Result<(), Full> {
        self.need_free(n)?;
        self.free -= n;
        self.committed += n;
        Ok(())
    }

    /// A lease is given back: committed → free.
    pub fn release(&mut self, n: u32) {
        debug_assert!(
            self.committed >= n,
            "released {n} of {} committed",
            self.committed
        );
        self.committed = self.committed.saturating_sub(n);
        self.free += n;
    }

    /// A command is accepted: free → in flight.
    ///
    /// # Errors
    /// [`Full`] when fewer than `n` slots are free.
    pub fn begin(&mut self, n: u32) -> Result<(), Full> {
        self.need_free(n)?;
        self.free -= n;
        self.in_flight += n;
        self.mark();
        Ok(())
    }

    /// A command is done, well or not: in flight → free, from where a successful write takes.
    pub fn end(&mut self, n: u32) {
        debug_assert!(
            self.in_flight >= n,
            "ended {n} of {} in flight",
            self.in_flight
        );
        self.in_flight = self.in_flight.saturating_sub(n);
        self.free += n;
    }

    /// A command that uses a lease is accepted: committed → in flight.
    ///
    /// # Errors
    /// [`Full`] when fewer than `n` slots are committed; `free` says how many are.
    pub fn begin_committed(&mut self, n: u32) -> Result<(), Full> {
        if self.committed < n {
            return Err(Full {
                free: self.committed,
                ..self.full(n)
            });
        }
        self.committed -= n;
        self.in_flight += n;
        self.mark();
        Ok(())
    }

    /// A command that uses a lease is done: in flight → committed, from where a successful write takes.
    pub fn end_committed(&mut self, n: u32) {
        debug_assert!(
            self.in_flight >= n,
            "ended {n} of {} in flight",
            self.in_flight
        );
        self.in_flight = self.in_flight.saturating_sub(n);
        self.committed += n;
    }

    /// An object is written from a lease: committed → used.
    ///
    /// # Errors
    /// [`Full`] when fewer than `n` slots are committed; `free` says how many are.
    pub fn take_committed(&mut self, n: u32) -> Result<(), Full> {
        if self.committed < n {
            return Err(Full {
                free: self.committed,
                ..self.full(n)
            });
        }
        self.committed -= n;
        self.used += n;
        self.mark();
        Ok(())
    }

    /// Everything is forgotten: a cold reset.
    pub fn reset(&mut self) {
        *self = Self::new(self.size);
    }

    /// Holds the four counters against the size.
    #[must_use]
    pub fn check(&self) -> bool {
        u64::from(self.used)
            + u64::from(self.in_flight)
            + u64::from(self.committed)
            + u64::from(self.free)
            == u64::from(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn full_is_one_line() {
        let p = Pool::new(0);
        assert_eq!(p.full(1).to_string(), "full (needs 1, free 0 of 0)");
    }

    proptest! {
        #[test]
        fn sums_up(ops in prop::collection::vec((0u8..6, 1u32..9), 0..200)) {
            let mut p = Pool::new(50);
            for (op, n) in ops {
                let before = p.clone();
                let ok = match op {
                    0 => p.take(n).is_ok(),
                    1 => p.commit(n).is_ok(),
                    2 => p.begin(n).is_ok(),
                    3 => { p.give(n.min(p.used())); true }
                    4 => { p.release(n.min(p.committed())); true }
                    _ => { p.end(n.min(p.in_flight())); true }
                };
                prop_assert!(p.check());
                prop_assert!(p.high_watermark() >= p.used() + p.in_flight());
                if !ok {
                    prop_assert_eq!(&p, &before);
                    prop_assert!(p.free() < n);
                }
            }
        }
    }
}

//! How much a command has cost, without a clock.

use std::cell::Cell;

/// Positions of tables that commands have looked at or moved, beyond the entry that they name. Whoever walks counts: so a
/// test can say that a command costs what it changes, and a turn of commands can end when it has done enough.
#[derive(Debug, Clone, Default)]
pub struct Work(Cell<u64>);

impl Work {
    /// So many positions more.
    #[inline]
    pub fn add(&self, positions: u64) {
        self.0.set(self.0.get().wrapping_add(positions));
    }

    /// Positions since the chip was made; the difference of two is what was done in between.
    #[inline]
    pub fn done(&self) -> u64 {
        self.0.get()
    }
}

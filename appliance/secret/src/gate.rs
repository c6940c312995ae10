// SPDX-License-Identifier: Apache-2.0
//! How often somebody may be wrong: of each name, and in all.
//!
//! Names are counted in a table of a fixed size, by a hash that nobody outside can compute: a name that is there and one
//! that is not are the same to it, and no list of names makes it grow.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rows of the table.
const ROWS: usize = 1024;
/// So often a name may be wrong at once; one more each [`EACH`].
const OF_NAME: u32 = 5;
/// After this a name may be wrong once more.
const EACH: Duration = Duration::from_secs(10);
/// So often all names together.
const OF_ALL: u32 = 40;
/// After this all names may be wrong once more.
const EACH_OF_ALL: Duration = Duration::from_secs(1);

/// From where somebody comes. Who knocks from outside does not shut out who stands in front of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A line at the box itself.
    Near,
    /// From elsewhere.
    Far,
    /// From wherever: it is known who it is, and it wants to be more.
    Inside,
}

/// A bucket that fills itself: how many are missing, and since when.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    gone: u32,
    since: Instant,
}

impl Bucket {
    fn refill(&mut self, each: Duration, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        let back = u32::try_from(passed.as_millis() / each.as_millis().max(1)).unwrap_or(u32::MAX);
        if back >= self.gone {
            (self.gone, self.since) = (0, now);
        } else {
            self.gone -= back;
            self.since += each * back;
        }
    }
}

#[derive(Debug)]
struct Table {
    names: Vec<Bucket>,
    all: Bucket,
}

/// Counts who was wrong.
#[derive(Debug)]
pub struct Gate {
    hash: RandomState,
    near: Mutex<Table>,
    far: Mutex<Table>,
    inside: Mutex<Table>,
    delay: Duration,
    each: Duration,
    each_of_all: Duration,
}

impl Gate {
    /// Nobody was wrong yet. What is wrong is answered after `delay`, however long it took to find that out.
    #[must_use]
    pub fn new(delay: Duration) -> Gate {
        let bucket = Bucket {
            gone: 0,
            since: Instant::now(),
        };
        let table = || {
            Mutex::new(Table {
                names: vec![bucket; ROWS],
                all: bucket,
            })
        };
        Gate {
            hash: RandomState::new(),
            near: table(),
            far: table(),
            inside: table(),
            delay,
            each: EACH,
            each_of_all: EACH_OF_ALL,
        }
    }

    /// A name, and all together, may be wrong once more after this time: for tests that are not to hang on a clock.
    #[must_use]
    pub fn once_more_after(self, time: Duration) -> Gate {
        Gate {
            each: time,
            each_of_all: time,
            ..self
        }
    }

    /// After what time a wrong answer is said to be one.
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Takes a try, before it is known whether it is right: many at once are no more than one after the other. `false`:
    /// none is left, and nothing is to be looked at.
    #[must_use]
    pub fn take(&self, way: Way, name: &str, now: Instant) -> bool {
        let row = self.row(name);
        let mut table = self.table(way);
        table.all.refill(self.each_of_all, now);
        let all = table.all.gone;
        let Some(of_name) = table.names.get_mut(row) else {
            return false;
        };
        of_name.refill(self.each, now);
        if of_name.gone >= OF_NAME || all >= OF_ALL {
            return false;
        }
        of_name.gone += 1;
        table.all.gone += 1;
        true
    }

    /// It was right: the try was none of the wrong ones.
    pub fn right(&self, way: Way, name: &str) {
        let row = self.row(name);
        let mut table = self.table(way);
        table.all.gone = table.all.gone.saturating_sub(1);
        if let Some(of_name) = table.names.get_mut(row) {
            of_name.gone = of_name.gone.saturating_sub(1);
        }
    }

    fn table(&self, way: Way) -> std::sync::MutexGuard<'_, Table> {
        let table = match way {
            Way::Near => &self.near,
            Way::Far => &self.far,
            Way::Inside => &self.inside,
        };
        table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn row(&self, name: &str) -> usize {
        usize::try_from(self.hash.hash_one(name) % ROWS as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_wrong_five_times_and_then_each_ten_seconds() {
        let gate = Gate::new(Duration::ZERO);
        let begin = Instant::now();
        let wrong = |after: u64| gate.take(Way::Far, "bob", begin + Duration::from_secs(after));
        assert_eq!((0..10).filter(|_| wrong(0)).count(), 5);
        assert!(!wrong(9));
        assert!(wrong(11) && !wrong(11));
        assert!(wrong(29) && !wrong(29));
        // the line at the box is another one
        assert!(gate.take(Way::Near, "bob", begin));
        assert_eq!((0..10).filter(|_| wrong(10_000)).count(), 5);
    }

    #[test]
    fn who_is_right_takes_nothing() {
        let gate = Gate::new(Duration::ZERO);
        let now = Instant::now();
        for _ in 0..1000 {
            assert!(gate.take(Way::Far, "bob", now));
            gate.right(Way::Far, "bob");
        }
    }

    /// Names that nobody has are counted as any others, and together: the table does not grow.
    #[test]
    fn all_names_together_have_a_bound() {
        let gate = Gate::new(Duration::ZERO);
        let now = Instant::now();
        let may = (0..10_000).filter(|i| gate.take(Way::Far, &format!("user{i}"), now));
        assert!(may.count() <= 40);
        assert!(!gate.take(Way::Far, "bob", now));
        assert!(gate.take(Way::Far, "alice", now + Duration::from_secs(5)));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The order of rules: the software pipeline's, and the only one. Priority first, then the mask's rank
//! ([`Key::rank`]); what is equal in both never meets one packet, and stands by what it asks for, so that the order is the
//! same whoever came first. A chain of flows of several tables stands by its first flow, then by its second, as words do
//! in a dictionary.
use foldhash::{HashMap, HashSet};
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use tandem_ofpipeline::key::Key;

/// Where a flow stands among those of its table. Less is further in front.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// Priority and bits of the mask, negated: less goes first.
    high: u32,
    /// Shared, as each flow has several of its steps.
    mask: Reverse<Arc<Key>>,
}

impl Step {
    /// Of a flow with this priority and mask.
    pub fn new(priority: u16, mask: &Key) -> Step {
        let (bits, rank) = mask.rank();
        Step::ranked(priority, bits, Arc::new(rank))
    }

    fn ranked(priority: u16, bits: u32, rank: Arc<Key>) -> Step {
        Step {
            high: !(u32::from(priority) << 16 | bits),
            mask: Reverse(rank),
        }
    }
}

/// Masks, of flows, rows or steps, each once: thousands of flows have a few.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    all: HashSet<Arc<Key>>,
    /// With so many it is looked who of them is used.
    most: usize,
}

impl Masks {
    /// As [`Step::new`].
    pub fn step(&mut self, priority: u16, mask: &Key) -> Step {
        let (bits, rank) = mask.rank();
        Step::ranked(priority, bits, self.shared(rank))
    }

    /// The one that is kept of this mask.
    pub(crate) fn shared(&mut self, mask: Key) -> Arc<Key> {
        if let Some(known) = self.all.get(&mask) {
            return Arc::clone(known);
        }
        if self.all.len() >= self.most {
            self.all.retain(|m| Arc::strong_count(m) > 1);
            self.most = 2 * self.all.len() + 64;
        }
        let new = Arc::new(mask);
        self.all.insert(Arc::clone(&new));
        new
    }
}

/// Where a flow stands in the order; small, so that thousands are looked through at once. Less is further in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// [`Step::high`] of the first step.
    high: u32,
    /// Number of the rank.
    rank: u32,
    /// Of the values that are asked for.
    tie: u32,
    pub id: u32,
}

/// Values as one number. Of two that have the same one the flows' own numbers decide.
fn tie(value: &Key) -> u32 {
    let mix = |sum: u64, word: &u64| {
        let mixed = (sum ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ mixed >> 32
    };
    value.0.iter().fold(0, mix) as u32
}

impl Place {
    pub fn priority(self) -> u16 {
        (!self.high >> 16) as u16
    }
}

/// What decides among flows of one priority and as many bits: the mask, then what the flow goes on to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Rank {
    mask: Reverse<Arc<Key>>,
    then: Option<Arc<[Step]>>,
}

/// The same where it must be compared without the list of ranks.
pub(crate) type Full = (u32, Rank, u32, u32);

/// The ranks in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    ranks: Vec<Rank>,
    users: Vec<u32>,
    free: Vec<u32>,
    numbers: HashMap<Rank, u32>,
}

impl Order {
    /// The place of a flow, or of a chain of flows; the rank has a user more.
    pub fn enter(&mut self, first: Step, then: &[Step], value: &Key, id: u32) -> Place {
        let rank = Rank {
            mask: first.mask,
            then: (!then.is_empty()).then(|| then.into()),
        };
        let number = match self.numbers.get(&rank) {
            Some(n) => *n,
            None => {
                let n = self.free.pop().unwrap_or(self.ranks.len() as u32);
                if self.ranks.len() <= n as usize {
                    self.ranks.push(rank.clone());
                    self.users.push(0);
                } else {
                    self.ranks[n as usize] = rank.clone();
                }
                self.numbers.insert(rank, n);
                n
            }
        };
        self.users[number as usize] += 1;
        Place {
            high: first.high,
            rank: number,
            tie: tie(value),
            id,
        }
    }

    /// The flow is gone.
    pub fn leave(&mut self, p: Place) {
        if let Some(n) = self.users.get_mut(p.rank as usize) {
            *n -= 1;
            if *n == 0 {
                self.numbers.remove(&self.ranks[p.rank as usize]);
                self.free.push(p.rank);
            }
        }
    }

    #[inline]
    pub fn cmp(&self, a: Place, b: Place) -> Ordering {
        a.high.cmp(&b.high).then_with(|| {
            if a.rank == b.rank {
                return (a.tie, a.id).cmp(&(b.tie, b.id));
            }
            let of = |p: Place| self.ranks.get(p.rank as usize);
            of(a).cmp(&of(b))
        })
    }

    pub fn full(&self, p: Place) -> Full {
        let rank = self.ranks.get(p.rank as usize).cloned();
        (p.high, rank.unwrap_or_default(), p.tie, p.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of one mask share it, and one that no step has any more goes.
    #[test]
    fn masks_are_kept_once_and_no_longer_than_they_are_asked_for() {
        let mut masks = Masks::default();
        let mask = |n: u64| {
            let mut mask = Key::default();
            mask.0[1] = n;
            mask
        };
        let stay: Vec<Step> = (0..40).map(|n| masks.step(5, &mask(n))).collect();
        for n in 0..10_000 {
            let one = masks.step(5, &mask(n));
            assert_eq!(one, Step::new(5, &mask(n)));
        }
        assert!(masks.all.len() <= 2 * 40 + 64, "{}", masks.all.len());
        for (n, step) in (0..).zip(&stay) {
            let again = masks.step(6, &mask(n));
            assert!(Arc::ptr_eq(&step.mask.0, &again.mask.0));
        }
    }
}

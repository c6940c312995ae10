// SPDX-License-Identifier: Apache-2.0
//! The order of rules: the software pipeline's, and the only one. Priority first, then the mask's rank
//! ([`Key::rank`]); what is equal in both never meets one packet, and stands by number.
use foldhash::HashMap;
use std::cmp::Ordering;
use tandem_ofpipeline::key::Key;

/// Where a flow stands in the order; small, so that thousands are looked through at once. Less is further in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Priority and bits of the mask, negated: less goes first.
    high: u32,
    /// Number of the mask.
    mask: u32,
    pub id: u32,
}

impl Place {
    pub fn priority(self) -> u16 {
        (!self.high >> 16) as u16
    }
}

/// The same where it must be compared without the list of masks.
pub(crate) type Full = (u32, std::cmp::Reverse<Key>, u32);

/// The masks in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    masks: Vec<Key>,
    users: Vec<u32>,
    free: Vec<u32>,
    numbers: HashMap<Key, u32>,
}

impl Order {
    /// The place of a flow; the mask has a user more.
    pub fn enter(&mut self, priority: u16, mask: &Key, id: u32) -> Place {
        let (bits, rank) = mask.rank();
        let number = match self.numbers.get(&rank) {
            Some(n) => *n,
            None => {
                let n = self.free.pop().unwrap_or(self.masks.len() as u32);
                if self.masks.len() <= n as usize {
                    self.masks.push(rank);
                    self.users.push(0);
                } else {
                    self.masks[n as usize] = rank;
                }
                self.numbers.insert(rank, n);
                n
            }
        };
        self.users[number as usize] += 1;
        Place {
            high: !(u32::from(priority) << 16 | bits),
            mask: number,
            id,
        }
    }

    /// The flow is gone.
    pub fn leave(&mut self, p: Place) {
        if let Some(n) = self.users.get_mut(p.mask as usize) {
            *n -= 1;
            if *n == 0 {
                self.numbers.remove(&self.masks[p.mask as usize]);
                self.free.push(p.mask);
            }
        }
    }

    #[inline]
    pub fn cmp(&self, a: Place, b: Place) -> Ordering {
        a.high.cmp(&b.high).then_with(|| {
            if a.mask == b.mask {
                return a.id.cmp(&b.id);
            }
            let of = |p: Place| self.masks.get(p.mask as usize);
            of(b).cmp(&of(a))
        })
    }

    pub fn full(&self, p: Place) -> Full {
        let mask = self.masks.get(p.mask as usize).copied();
        (p.high, std::cmp::Reverse(mask.unwrap_or_default()), p.id)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Which matches meet a match: a hash table for each mask, as the pipeline has. A table whose mask the question has in
//! full is asked for one value; of another, what it has is looked through, if any of it stands on the side asked for.
use crate::order::{Order, Place};
use foldhash::HashMap;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tandem_ofpipeline::key::{Key, WORDS};

/// Which of those that meet it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Those in front of it in the order.
    Front,
    /// Those behind it.
    Behind,
}

#[derive(Clone, Debug)]
struct Item {
    value: Key,
    place: Place,
    /// Of flows: their traffic.
    weight: u64,
}

/// One that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub id: u32,
    /// Has the question all of its packets?
    pub whole: bool,
    pub weight: u64,
}

#[derive(Clone, Debug)]
struct Group {
    mask: Key,
    items: Vec<Item>,
    by_value: HashMap<Key, Vec<u32>>,
    /// How many of each priority, to see that none stands on a side.
    high: BTreeMap<u16, u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    groups: Vec<Group>,
    by_mask: HashMap<Key, usize>,
}

impl Index {
    pub fn insert(&mut self, value: &Key, mask: &Key, place: Place) {
        self.insert_weighed(value, mask, place, 0);
    }

    pub fn insert_weighed(&mut self, value: &Key, mask: &Key, place: Place, weight: u64) {
        let at = *self.by_mask.entry(*mask).or_insert_with(|| {
            self.groups.push(Group {
                mask: *mask,
                items: Vec::new(),
                by_value: HashMap::default(),
                high: BTreeMap::new(),
            });
            self.groups.len() - 1
        });
        let g = &mut self.groups[at];
        let n = g.items.len() as u32;
        g.items.push(Item {
            value: *value,
            place,
            weight,
        });
        g.by_value.entry(*value).or_default().push(n);
        *g.high.entry(place.priority()).or_default() += 1;
    }

    pub fn remove(&mut self, value: &Key, mask: &Key, id: u32) {
        let Some(&at) = self.by_mask.get(mask) else {
            return;
        };
        let g = &mut self.groups[at];
        let Some(list) = g.by_value.get_mut(value) else {
            return;
        };
        let Some(i) = list
            .iter()
            .position(|n| g.items[*n as usize].place.id == id)
        else {
            return;
        };
        let n = list.swap_remove(i);
        if list.is_empty() {
            g.by_value.remove(value);
        }
        let gone = g.items.swap_remove(n as usize);
        if let Some(moved) = g.items.get(n as usize) {
            let old = g.items.len() as u32;
            if let Some(list) = g.by_value.get_mut(&moved.value) {
                for m in list.iter_mut().filter(|m| **m == old) {
                    *m = n;
                }
            }
        }
        if let Some(c) = g.high.get_mut(&gone.place.priority()) {
            *c -= 1;
            if *c == 0 {
                g.high.remove(&gone.place.priority());
            }
        }
        if g.items.is_empty() {
            self.by_mask.remove(mask);
            self.groups.swap_remove(at);
            if let Some(moved) = self.groups.get(at) {
                self.by_mask.insert(moved.mask, at);
            }
        }
    }

    /// Those that some packet meets together with this match, and that stand on the side of it.
    pub fn meets(
        &self,
        order: &Order,
        value: &Key,
        mask: &Key,
        of: Place,
        side: Side,
        mut f: impl FnMut(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.find(order, value, mask, of, side, |found| f(found.id))
    }

    /// The same, with what is known of each.
    pub fn find(
        &self,
        order: &Order,
        value: &Key,
        mask: &Key,
        of: Place,
        side: Side,
        mut f: impl FnMut(Found) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let want = match side {
            Side::Front => Ordering::Less,
            Side::Behind => Ordering::Greater,
        };
        for g in self.groups.iter().filter(|g| g.has(of, side)) {
            let whole = g.mask.covers(mask);
            let found = |item: &Item| Found {
                id: item.place.id,
                whole,
                weight: item.weight,
            };
            let both = g.mask.and(mask);
            if both == g.mask {
                for n in g.by_value.get(&value.and(&both)).into_iter().flatten() {
                    let item = &g.items[*n as usize];
                    if order.cmp(item.place, of) == want {
                        f(found(item))?;
                    }
                }
                continue;
            }
            let (words, used) = used(&both);
            for item in &g.items {
                let differs = words[..used]
                    .iter()
                    .any(|w| (item.value.0[*w] ^ value.0[*w]) & both.0[*w] != 0);
                if !differs && order.cmp(item.place, of) == want {
                    f(found(item))?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The first found that stands in front and has all of this match's packets.
    pub fn covered_by(&self, order: &Order, value: &Key, mask: &Key, of: Place) -> Option<u32> {
        let mut found: Option<Place> = None;
        for g in self.groups.iter().filter(|g| g.has(of, Side::Front)) {
            if !mask.covers(&g.mask) {
                continue;
            }
            for n in g.by_value.get(&value.and(&g.mask)).into_iter().flatten() {
                let p = g.items[*n as usize].place;
                if order.cmp(p, of) == Ordering::Less
                    && found.is_none_or(|f| order.cmp(p, f) == Ordering::Less)
                {
                    found = Some(p);
                }
            }
        }
        found.map(|p| p.id)
    }

    /// Those behind it that have no packet beyond its own.
    pub fn covers(
        &self,
        order: &Order,
        value: &Key,
        mask: &Key,
        of: Place,
        mut f: impl FnMut(u32),
    ) {
        let (words, used) = used(mask);
        let behind = |g: &&Group| g.mask.covers(mask) && g.has(of, Side::Behind);
        for g in self.groups.iter().filter(behind) {
            let mut take = |item: &Item| {
                if order.cmp(item.place, of) == Ordering::Greater {
                    f(item.place.id);
                }
            };
            if g.mask == *mask {
                for n in g.by_value.get(value).into_iter().flatten() {
                    take(&g.items[*n as usize]);
                }
                continue;
            }
            for item in &g.items {
                let differs = words[..used]
                    .iter()
                    .any(|w| (item.value.0[*w] ^ value.0[*w]) & mask.0[*w] != 0);
                if !differs {
                    take(item);
                }
            }
        }
    }
}

impl Group {
    fn has(&self, of: Place, side: Side) -> bool {
        let end = match side {
            Side::Front => self.high.last_key_value().map(|(p, _)| *p >= of.priority()),
            Side::Behind => self
                .high
                .first_key_value()
                .map(|(p, _)| *p <= of.priority()),
        };
        end.unwrap_or(false)
    }
}

fn used(mask: &Key) -> ([usize; WORDS], usize) {
    let (mut words, mut n) = ([0; WORDS], 0);
    for (w, bits) in mask.0.iter().enumerate() {
        if *bits != 0 {
            words[n] = w;
            n += 1;
        }
    }
    (words, n)
}

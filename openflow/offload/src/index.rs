// SPDX-License-Identifier: Apache-2.0
//! Which matches meet a match: a hash table for each mask, as the pipeline has. A table whose mask the question has in
//! full is asked for one value; of another, what it has is looked through, if any of it stands on the side asked for.
use crate::order::{Order, Place};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::ops::ControlFlow;
use tandem_ofpipeline::key::Key;

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

/// Items whose values have one hash: as a rule one, so that it is kept without a list.
#[derive(Clone, Debug)]
enum Same {
    One(u32),
    Several(Vec<u32>),
}

impl Same {
    fn all(&self) -> &[u32] {
        match self {
            Same::One(n) => std::slice::from_ref(n),
            Same::Several(all) => all,
        }
    }

    fn push(&mut self, n: u32) {
        match self {
            Same::One(first) => *self = Same::Several(vec![*first, n]),
            Same::Several(all) => all.push(n),
        }
    }

    /// True: none is left.
    fn remove(&mut self, n: u32) -> bool {
        match self {
            Same::One(one) => *one == n,
            Same::Several(all) => {
                if let Some(at) = all.iter().position(|m| *m == n) {
                    all.swap_remove(at);
                }
                all.is_empty()
            }
        }
    }

    fn renumber(&mut self, from: u32, to: u32) {
        let all = match self {
            Same::One(n) => std::slice::from_mut(n),
            Same::Several(all) => all,
        };
        for n in all.iter_mut().filter(|n| **n == from) {
            *n = to;
        }
    }
}

#[derive(Clone, Debug)]
struct Group {
    mask: Key,
    /// Words that the mask touches: of thousands of values that are one word of many each, one word is kept.
    words: Vec<u8>,
    items: Vec<Item>,
    /// The values of the items, one behind the other, as many words of each.
    values: Vec<u64>,
    /// By the hash of these words.
    by_value: HashMap<u64, Same>,
    /// How many of each priority, to see that none stands on a side.
    high: BTreeMap<u16, u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    groups: Vec<Group>,
    by_mask: HashMap<Key, usize>,
    hasher: RandomState,
}

impl Index {
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub fn insert(&mut self, value: &Key, mask: &Key, place: Place) {
        self.insert_weighed(value, mask, place, 0);
    }

    pub fn insert_weighed(&mut self, value: &Key, mask: &Key, place: Place, weight: u64) {
        let at = *self.by_mask.entry(*mask).or_insert_with(|| {
            self.groups.push(Group {
                mask: *mask,
                words: (0..)
                    .zip(mask.0)
                    .filter(|(_, w)| *w != 0)
                    .map(|(n, _)| n)
                    .collect(),
                items: Vec::new(),
                values: Vec::new(),
                by_value: HashMap::default(),
                high: BTreeMap::new(),
            });
            self.groups.len() - 1
        });
        let g = &mut self.groups[at];
        let n = g.items.len() as u32;
        g.items.push(Item { place, weight });
        g.values.extend(g.words.iter().map(|w| value.word(*w)));
        let same = g.by_value.entry(hash(&self.hasher, g.value(n)));
        same.and_modify(|s| s.push(n)).or_insert(Same::One(n));
        *g.high.entry(place.priority()).or_default() += 1;
    }

    pub fn remove(&mut self, value: &Key, mask: &Key, id: u32) {
        let Some(&at) = self.by_mask.get(mask) else {
            return;
        };
        let g = &mut self.groups[at];
        let of = hash(&self.hasher, g.words.iter().map(|w| value.word(*w)));
        let Some(same) = g.by_value.get(&of) else {
            return;
        };
        let is = |n: &&u32| g.items[**n as usize].place.id == id && g.has_value(**n, value);
        let Some(&n) = same.all().iter().find(is) else {
            return;
        };
        if g.by_value.get_mut(&of).is_some_and(|s| s.remove(n)) {
            g.by_value.remove(&of);
        }
        let old = g.items.len() as u32 - 1;
        let gone = g.items.swap_remove(n as usize);
        if n != old {
            let moved = hash(&self.hasher, g.value(old));
            if let Some(same) = g.by_value.get_mut(&moved) {
                same.renumber(old, n);
            }
        }
        let (len, from, to) = (g.words.len(), old as usize, n as usize);
        g.values.copy_within(from * len..(from + 1) * len, to * len);
        g.values.truncate(from * len);
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

    /// Those of a group that have this value.
    fn of_value<'a>(&self, g: &'a Group, value: &Key) -> impl Iterator<Item = &'a Item> {
        let of = hash(&self.hasher, g.words.iter().map(|w| value.word(*w)));
        let all = g.by_value.get(&of).map_or(&[][..], Same::all).iter();
        let value = *value;
        all.filter(move |n| g.has_value(**n, &value))
            .filter_map(|n| g.items.get(*n as usize))
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
                for item in self.of_value(g, &value.and(&both)) {
                    if order.cmp(item.place, of) == want {
                        f(found(item))?;
                    }
                }
                continue;
            }
            for (item, own) in g.all() {
                if g.agrees(own, value, &both) && order.cmp(item.place, of) == want {
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
            for item in self.of_value(g, &value.and(&g.mask)) {
                let p = item.place;
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
        let behind = |g: &&Group| g.mask.covers(mask) && g.has(of, Side::Behind);
        for g in self.groups.iter().filter(behind) {
            let mut take = |item: &Item| {
                if order.cmp(item.place, of) == Ordering::Greater {
                    f(item.place.id);
                }
            };
            if g.mask == *mask {
                self.of_value(g, value).for_each(take);
                continue;
            }
            for (item, own) in g.all() {
                if g.agrees(own, value, mask) {
                    take(item);
                }
            }
        }
    }
}

impl Group {
    /// The words of an item's value.
    fn value(&self, n: u32) -> impl Iterator<Item = u64> {
        let (len, n) = (self.words.len(), n as usize);
        let own = self.values.get(n * len..(n + 1) * len);
        own.unwrap_or_default().iter().copied()
    }

    fn has_value(&self, n: u32, value: &Key) -> bool {
        self.value(n).eq(self.words.iter().map(|w| value.word(*w)))
    }

    /// All items, each with the words of its value.
    fn all(&self) -> impl Iterator<Item = (&Item, &[u64])> {
        let len = self.words.len();
        let own = (0..).map(move |n| self.values.get(n * len..(n + 1) * len));
        self.items.iter().zip(own.map(Option::unwrap_or_default))
    }

    /// Is a value the same as this one, in these bits of the mask?
    fn agrees(&self, own: &[u64], value: &Key, bits: &Key) -> bool {
        let mut words = self.words.iter().zip(own);
        words.all(|(w, v)| (v ^ value.word(*w)) & bits.word(*w) == 0)
    }

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

fn hash(by: &RandomState, words: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = by.build_hasher();
    words.for_each(|w| hasher.write_u64(w));
    hasher.finish()
}

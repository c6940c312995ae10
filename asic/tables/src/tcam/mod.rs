//! Ternary match: rules of value and mask with priorities, found as a TCAM finds them.
//!
//! ```text
//!   frame ─► kind (IPv4, IPv6, other) ─► tuples: rules with the same mask, a hash each, best priority first
//!                                          │ mask the key, probe; stop when no tuple can beat what was found
//!                                          ▼
//!                                        cell ─► rules of the same masked key by priority ─► ranges hold? ─► hit
//! ```
//!
//! A TCAM looks at all of its lines at once. Here one probe serves all rules of one mask (tuple space search,
//! Srinivasan, Suri, Varghese 1999); a bit per key says beforehand which tuples are worth a probe, and tuples are kept apart by the kind of frame that they can match at all. What a
//! rule costs in slots is not known here: see [`Width`] and the pool that the caller keeps.

#[cfg(test)]
mod tests;
mod tuple;

use std::collections::BTreeMap;
use tuple::{First, Tuple};

/// Words of a key.
pub const WORDS: usize = 9;

/// A key, or the mask of one. What each word holds is [`word`].
pub type Words = [u64; WORDS];

/// Where the fields of a frame are in [`Words`]. One TCAM line has room for all of them; two words do for the most
/// usual rules over IPv4.
pub mod word {
    /// IPv4: source in the high half, destination in the low.
    pub const IP4: usize = 0;
    /// Source port 16, destination port 16, protocol 8, TOS 8, TTL 8, TCP flags 8; from the top.
    pub const L4: usize = 1;
    /// Ethertype 16, tag control 16, ingress port 16, tag kind 8, fragment 8; from the top.
    pub const META: usize = 2;
    /// Destination MAC in the low 48 bits.
    pub const DST_MAC: usize = 3;
    /// Source MAC in the low 48 bits; above them the group that a frame was classified into, 8.
    pub const SRC_MAC: usize = 4;
    /// The group within [`SRC_MAC`].
    pub const GROUP_SHIFT: u32 = 48;
    /// IPv6 source, two words.
    pub const SRC_IP6: usize = 5;
    /// IPv6 destination, two words.
    pub const DST_IP6: usize = 7;
    /// Ethertype within [`META`].
    pub const ETHERTYPE_SHIFT: u32 = 48;
}

/// What a frame is, as far as rules are kept apart by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Ethertype 0x0800 behind the outer tag.
    Ip4 = 0,
    /// Ethertype 0x86dd.
    Ip6 = 1,
    /// Anything else.
    Other = 2,
}

impl FrameKind {
    /// All, in order.
    pub const ALL: [FrameKind; 3] = [FrameKind::Ip4, FrameKind::Ip6, FrameKind::Other];

    /// By the type behind the outer tag.
    #[must_use]
    #[inline]
    pub fn of(ethertype: u16) -> FrameKind {
        match ethertype {
            0x0800 => FrameKind::Ip4,
            0x86dd => FrameKind::Ip6,
            _ => FrameKind::Other,
        }
    }
}

/// How wide a rule's key is: it decides the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// Ethernet, tag and ingress port only.
    L2,
    /// IPv4 and transport, tag and ingress port; no MAC address.
    Ip4,
    /// The same for IPv6.
    Ip6,
    /// MAC addresses together with IP or transport fields.
    Full,
}

impl Width {
    /// All, in order of what they hold.
    pub const ALL: [Width; 4] = [Width::L2, Width::Ip4, Width::Ip6, Width::Full];
}

/// Inclusive ranges of transport ports; `None` is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Ranges {
    /// Source port.
    pub src: Option<(u16, u16)>,
    /// Destination port.
    pub dst: Option<(u16, u16)>,
}

impl Ranges {
    /// Both hold for the ports in a key.
    #[must_use]
    #[inline]
    pub fn hold(&self, key: &Words) -> bool {
        let l4 = key[word::L4];
        let holds = |range: Option<(u16, u16)>, port: u16| {
            range.is_none_or(|(low, high)| (low..=high).contains(&port))
        };
        holds(self.src, (l4 >> 48) as u16) && holds(self.dst, (l4 >> 32) as u16)
    }
}

/// What a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Zero where the mask is.
    pub value: Words,
    /// Bits that count.
    pub mask: Words,
    /// Transport ports.
    pub ranges: Ranges,
}

impl Match {
    /// Value and mask match a key, and the ranges hold.
    #[must_use]
    #[inline]
    pub fn matches(&self, key: &Words) -> bool {
        let masked = self.mask.iter().zip(key).map(|(m, k)| m & k);
        masked.eq(self.value.iter().copied()) && self.ranges.hold(key)
    }

    /// The mask's ethertype, if all of its bits count.
    fn ethertype(&self) -> Option<u16> {
        let at = |w: &Words| (w[word::META] >> word::ETHERTYPE_SHIFT) as u16;
        (at(&self.mask) == u16::MAX).then(|| at(&self.value))
    }

    /// Can a frame of this kind match?
    #[must_use]
    pub fn fits(&self, kind: FrameKind) -> bool {
        self.ethertype().is_none_or(|e| FrameKind::of(e) == kind)
    }

    /// How wide the key is.
    #[must_use]
    pub fn width(&self) -> Width {
        let any = |words: &[usize]| words.iter().any(|w| self.mask[*w] != 0);
        let ranged = self.ranges != Ranges::default();
        let fragment = self.mask[word::META] & 0xff != 0;
        let ip = any(&[word::IP4, word::L4]) || ranged || fragment;
        let ip6 = (word::SRC_IP6..WORDS).any(|w| self.mask[w] != 0);
        let mac = any(&[word::DST_MAC, word::SRC_MAC]);
        match (mac, ip6, ip) {
            (_, false, false) => Width::L2,
            (true, _, _) => Width::Full,
            (false, true, _) => Width::Ip6,
            (false, false, true) => match self.ethertype().map(FrameKind::of) {
                Some(FrameKind::Ip6) => Width::Ip6,
                _ => Width::Ip4,
            },
        }
    }
}

#[derive(Clone, Debug)]
struct Rule<T> {
    priority: u32,
    what: Match,
    /// Next rule with the same masked key, of a lower rank, by kind of frame.
    next: [u32; 3],
    data: T,
}

/// Tuples that are asked whether they may have a frame's key before the first of them is searched.
const TOGETHER: usize = 16;

/// No rule.
const NONE: u32 = u32::MAX;

/// The rules of one list. The lower priority number goes first; each number has one rule.
#[derive(Clone, Debug)]
pub struct Matcher<T> {
    rules: Vec<Option<Rule<T>>>,
    free: Vec<u32>,
    by_priority: BTreeMap<u32, u32>,
    tuples: [Vec<Tuple>; 3],
}

impl<T> Default for Matcher<T> {
    fn default() -> Self {
        Matcher {
            rules: Vec::new(),
            free: Vec::new(),
            by_priority: BTreeMap::new(),
            tuples: Default::default(),
        }
    }
}

impl<T> Matcher<T> {
    /// Writes the rule of a priority; the one that was there goes in the same step.
    pub fn put(&mut self, priority: u32, what: Match, data: T) -> Option<T> {
        let old = self.remove(priority);
        let rule = Rule {
            priority,
            what,
            next: [NONE; 3],
            data,
        };
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.rules.push(None);
                self.rules.len() as u32 - 1
            }
        };
        if let Some(r) = self.rules.get_mut(at as usize) {
            *r = Some(rule);
        }
        self.by_priority.insert(priority, at);
        for kind in FrameKind::ALL {
            if what.fits(kind) {
                self.link(kind, at, &what, priority);
            }
        }
        old
    }

    /// Removes the rule of a priority.
    pub fn remove(&mut self, priority: u32) -> Option<T> {
        let at = self.by_priority.remove(&priority)?;
        let what = self.rule(at)?.what;
        for kind in FrameKind::ALL {
            if what.fits(kind) {
                self.unlink(kind, at, &what, priority);
            }
        }
        self.free.push(at);
        self.rules.get_mut(at as usize)?.take().map(|r| r.data)
    }

    /// The rule of a priority.
    #[must_use]
    pub fn get(&self, priority: u32) -> Option<(&Match, &T)> {
        let rule = self.rule(*self.by_priority.get(&priority)?)?;
        Some((&rule.what, &rule.data))
    }

    /// Changes what a rule carries, not what it matches.
    pub fn get_mut(&mut self, priority: u32) -> Option<&mut T> {
        let at = *self.by_priority.get(&priority)?;
        self.rules
            .get_mut(at as usize)?
            .as_mut()
            .map(|r| &mut r.data)
    }

    /// All rules from a priority on, best first.
    pub fn iter(&self, from: u32) -> impl Iterator<Item = (u32, &Match, &T)> {
        self.by_priority
            .range(from..)
            .filter_map(|(p, at)| self.rule(*at).map(|r| (*p, &r.what, &r.data)))
    }

    /// Rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_priority.len()
    }

    /// No rule at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_priority.is_empty()
    }

    /// Probes that the worst frame of a kind costs.
    #[must_use]
    pub fn tuples(&self, kind: FrameKind) -> usize {
        self.tuples[kind as usize].len()
    }

    /// The first rule, by priority, that matches.
    #[must_use]
    #[inline]
    pub fn lookup(&self, kind: FrameKind, key: &Words) -> Option<(u32, &T)> {
        let mut best = First {
            rule: NONE,
            priority: u32::MAX,
        };
        let beaten = |best: First, priority| best.rule != NONE && priority > best.priority;
        for some in self.tuples[kind as usize].chunks(TOGETHER) {
            if some.first().is_some_and(|t| beaten(best, t.best)) {
                break;
            }
            let may = |all, (n, tuple): (usize, &Tuple)| all | (u32::from(tuple.may(key)) << n);
            let mut left = some.iter().enumerate().fold(0, may);
            while let Some(tuple) = some.get(left.trailing_zeros() as usize) {
                left &= left - 1;
                if beaten(best, tuple.best) {
                    break;
                }
                let first = tuple.find(key);
                if first.rule == NONE || beaten(best, first.priority) {
                    continue;
                }
                best = if tuple.sure {
                    first
                } else {
                    self.walk(kind, first.rule, key, best)
                };
            }
        }
        self.rule(best.rule).map(|r| (r.priority, &r.data))
    }

    /// The first rule of a chain that matches, or `best` if that is better.
    fn walk(&self, kind: FrameKind, mut at: u32, key: &Words, best: First) -> First {
        while let Some(r) = self.rule(at) {
            if best.rule != NONE && r.priority > best.priority {
                break;
            }
            if r.what.matches(key) {
                return First {
                    rule: at,
                    priority: r.priority,
                };
            }
            at = r.next[kind as usize];
        }
        best
    }

    #[inline]
    fn rule(&self, at: u32) -> Option<&Rule<T>> {
        self.rules.get(at as usize)?.as_ref()
    }

    /// The mask that tells frames of a kind apart: all that has the kind has its ethertype.
    fn mask(kind: FrameKind, what: &Match) -> Words {
        let mut mask = what.mask;
        if kind != FrameKind::Other && what.ethertype().is_some() {
            mask[word::META] &= !(0xffff << word::ETHERTYPE_SHIFT);
        }
        mask
    }

    fn link(&mut self, kind: FrameKind, at: u32, what: &Match, priority: u32) {
        let mask = Self::mask(kind, what);
        let list = &mut self.tuples[kind as usize];
        let place = match list.iter().position(|t| t.mask == mask) {
            Some(place) => place,
            None => {
                list.push(Tuple::new(mask));
                list.len() - 1
            }
        };
        let Some(tuple) = list.get_mut(place) else {
            return;
        };
        // into the chain of its key, by priority
        let head = tuple.find(&what.value).rule;
        let same = |h: u32| self.rules.get(h as usize).and_then(Option::as_ref);
        let mut before = NONE;
        let mut after = head;
        while let Some(r) = same(after) {
            if r.priority > priority {
                break;
            }
            before = after;
            after = r.next[kind as usize];
        }
        if before == NONE {
            tuple.set(&what.value, First { rule: at, priority });
        } else if let Some(Some(b)) = self.rules.get_mut(before as usize) {
            b.next[kind as usize] = at;
        }
        if let Some(Some(r)) = self.rules.get_mut(at as usize) {
            r.next[kind as usize] = after;
        }
        tuple.count(priority, what.ranges != Ranges::default(), true);
        list.sort_by_key(|t| t.best);
    }

    fn unlink(&mut self, kind: FrameKind, at: u32, what: &Match, priority: u32) {
        let k = kind as usize;
        let mask = Self::mask(kind, what);
        let Some(place) = self.tuples[k].iter().position(|t| t.mask == mask) else {
            return;
        };
        let next = self.rule(at).map_or(NONE, |r| r.next[k]);
        let after = self.rule(next).map(|r| r.priority);
        let Some(tuple) = self.tuples[k].get_mut(place) else {
            return;
        };
        let mut i = tuple.find(&what.value).rule;
        if i == at {
            match after {
                Some(priority) => tuple.set(
                    &what.value,
                    First {
                        rule: next,
                        priority,
                    },
                ),
                None => tuple.clear(&what.value),
            }
        } else {
            while let Some(Some(r)) = self.rules.get_mut(i as usize) {
                if r.next[k] == at {
                    r.next[k] = next;
                    break;
                }
                i = r.next[k];
            }
        }
        let Some(tuple) = self.tuples[k].get_mut(place) else {
            return;
        };
        tuple.count(priority, what.ranges != Ranges::default(), false);
        if tuple.is_empty() {
            self.tuples[k].remove(place);
            return;
        }
        self.tuples[k].sort_by_key(|t| t.best);
    }
}

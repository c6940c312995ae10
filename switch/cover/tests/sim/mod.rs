//! The cover rule on a chip that answers at once: the reference for the test vectors in `vectors/`, which any other
//! implementation of the rule can replay.
//!
//! Operations in, hardware commands out. The order of the commands is part of the contract: after each single one the
//! chip's answer for any address is the kernel's, or a trap.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use tandem_cover::{Bits, Cover, NONE, NodeId};

/// What an entry answers: a trap, or the caller's number for a next hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Answer {
    /// To the CPU.
    Trap,
    /// Next hop.
    Via(u32),
}

/// A command to the chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command<B> {
    /// A new entry.
    Create(B, u8, Answer),
    /// Another answer, in place.
    Update(B, u8, Answer),
    /// The entry goes.
    Delete(B, u8),
}

impl<B: Bits> fmt::Display for Command<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |b: &B, l: &u8| {
            let x = b.to_bytes();
            if B::WIDTH == 32 {
                format!("{}.{}.{}.{}/{l}", x[0], x[1], x[2], x[3])
            } else {
                format!("{}/{l}", std::net::Ipv6Addr::from(x))
            }
        };
        match self {
            Command::Create(b, l, Answer::Trap) => write!(f, "create {} trap", show(b, l)),
            Command::Create(b, l, Answer::Via(n)) => write!(f, "create {} via {n}", show(b, l)),
            Command::Update(b, l, Answer::Trap) => write!(f, "update {} trap", show(b, l)),
            Command::Update(b, l, Answer::Via(n)) => write!(f, "update {} via {n}", show(b, l)),
            Command::Delete(b, l) => write!(f, "delete {}", show(b, l)),
        }
    }
}

/// A kernel table, a chip with a fixed number of slots, and the cover rule between them.
#[derive(Debug)]
pub struct Sim<B: Bits> {
    /// The rule.
    pub cover: Cover<B>,
    /// What the kernel has.
    pub kernel: BTreeMap<(B, u8), Answer>,
    /// What the chip has.
    pub chip: BTreeMap<(B, u8), Answer>,
    /// Slots for all entries, the reserve included.
    pub slots: usize,
    /// Slots of the reserve for aggregate traps.
    pub units: usize,
    waiting: VecDeque<(B, u8)>,
    work: VecDeque<NodeId>,
    deferred: Vec<NodeId>,
    log: Vec<Command<B>>,
}

impl<B: Bits> Sim<B> {
    /// An empty chip.
    pub fn new(slots: usize, units: usize) -> Self {
        let mut cover = Cover::new();
        cover.set_units(units);
        Sim {
            cover,
            kernel: BTreeMap::new(),
            chip: BTreeMap::new(),
            slots,
            units,
            waiting: VecDeque::new(),
            work: VecDeque::new(),
            deferred: Vec::new(),
            log: Vec::new(),
        }
    }

    /// The kernel adds or replaces a prefix. Returns the commands that follow.
    pub fn add(&mut self, bits: B, len: u8, answer: Answer) -> Vec<Command<B>> {
        let bits = bits.mask(len);
        self.kernel.insert((bits, len), answer);
        let id = self.cover.node(bits, len);
        self.cover.set_value(id, 0);
        self.cover.set_kernel(id, true);
        self.cover.set_traps(id, answer == Answer::Trap);
        self.work.push_back(id);
        self.settle()
    }

    /// The kernel removes a prefix.
    pub fn remove(&mut self, bits: B, len: u8) -> Vec<Command<B>> {
        let bits = bits.mask(len);
        if self.kernel.remove(&(bits, len)).is_some()
            && let Some(id) = self.cover.find(bits, len)
        {
            self.waiting.retain(|&w| w != (bits, len));
            self.cover.set_kernel(id, false);
            self.work.push_back(id);
        }
        self.settle()
    }

    /// The chip's size changes; entries that stand stay. More room: what waits is tried again.
    pub fn resize(&mut self, slots: usize) -> Vec<Command<B>> {
        self.slots = slots;
        self.settle()
    }

    fn settle(&mut self) -> Vec<Command<B>> {
        loop {
            self.work.extend(self.cover.take_touched());
            if let Some(id) = self.work.pop_front() {
                self.step(id);
                continue;
            }
            if !self.deferred.is_empty() {
                let before = self.log.len();
                for id in std::mem::take(&mut self.deferred) {
                    self.step(id);
                }
                if self.log.len() > before {
                    continue;
                }
            }
            if !self.retry() {
                return std::mem::take(&mut self.log);
            }
        }
    }

    fn ordinary_used(&self) -> usize {
        let aggregates = self.chip.keys().filter(|k| {
            self.cover
                .find(k.0, k.1)
                .is_none_or(|id| !self.cover.is_installed(id))
        });
        self.chip.len() - aggregates.count()
    }

    fn retry(&mut self) -> bool {
        if self.ordinary_used() + self.units >= self.slots {
            return false;
        }
        let Some((b, l)) = self.waiting.pop_front() else {
            return false;
        };
        let id = self.cover.node(b, l);
        // An aggregate trap at the same place becomes the entry, in place; the reserve is refilled from the free slot.
        let start = self.content((b, l), self.cover.starts_as_trap(id));
        if self.chip.contains_key(&(b, l)) {
            self.run(Command::Update(b, l, start));
        } else {
            self.run(Command::Create(b, l, start));
        }
        self.cover.installed(id);
        self.work.push_back(id);
        true
    }

    fn content(&self, key: (B, u8), forced: bool) -> Answer {
        if forced {
            Answer::Trap
        } else {
            self.kernel.get(&key).copied().unwrap_or(Answer::Trap)
        }
    }

    /// Brings the chip's entry for one node in line with what the rule asks.
    fn step(&mut self, id: NodeId) {
        if !self.cover.alive(id) {
            return;
        }
        let key = self.cover.prefix(id);
        let in_kernel = self.cover.in_kernel(id);
        let in_chip = self.chip.contains_key(&key);
        let (b, l) = key;
        if in_kernel && self.cover.is_installed(id) {
            let want = self.content(key, self.cover.forced(id) > 0);
            if self.chip.get(&key) != Some(&want) {
                self.run(Command::Update(b, l, want));
            }
            return;
        }
        if in_kernel && !self.cover.is_missing(id) {
            if self.ordinary_used() + self.units < self.slots {
                let start = self.content(key, self.cover.starts_as_trap(id));
                self.run(if in_chip {
                    Command::Update(b, l, start)
                } else {
                    Command::Create(b, l, start)
                });
                self.cover.installed(id);
            } else {
                self.waiting.push_back(key);
                self.cover.missing(id);
            }
            return;
        }
        if self.cover.aggregate(id) {
            if !in_chip && self.chip.len() < self.slots {
                self.cover.aggregate_up(id, true);
                self.run(Command::Create(b, l, Answer::Trap));
            } else if in_chip {
                // A route whose prefix is now an aggregate: the slot stays, the answer becomes a trap.
                if self.chip.get(&key) != Some(&Answer::Trap) {
                    self.run(Command::Update(b, l, Answer::Trap));
                }
                self.cover.aggregate_up(id, true);
            }
            return;
        }
        if !in_chip {
            if !in_kernel {
                self.cover.set_value(id, NONE);
            }
            return;
        }
        // It goes: first whoever answers next must trap, if anything is uncovered.
        if self.cover.uncovered(id) > 0 {
            match self.cover.next_cover(id) {
                Some(c) if self.chip.get(&self.cover.prefix(c)) != Some(&Answer::Trap) => {
                    let (cb, cl) = self.cover.prefix(c);
                    self.run(Command::Update(cb, cl, Answer::Trap));
                }
                _ => {}
            }
        }
        self.run(Command::Delete(b, l));
        if self.cover.is_installed(id) {
            self.cover.withdrawn(id);
        } else {
            self.cover.aggregate_up(id, false);
        }
        if !in_kernel && self.cover.find(b, l) == Some(id) {
            self.cover.set_value(id, NONE);
        }
    }

    fn run(&mut self, c: Command<B>) {
        match c {
            Command::Create(b, l, a) | Command::Update(b, l, a) => {
                self.chip.insert((b, l), a);
            }
            Command::Delete(b, l) => {
                self.chip.remove(&(b, l));
            }
        }
        self.log.push(c);
    }
}

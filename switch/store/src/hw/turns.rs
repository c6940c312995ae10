//! Ports of one bridge, one after the other.
//!
//! ```text
//!   the kernel     swp3 joins swp1 and swp2          then swp2 leaves
//!   the chip       swp2 is out before swp3 is in: what swp1 sends to an unknown station is sent nowhere
//! ```
//!
//! A port joins by its own write and then by its memberships', and leaves by these first; the two are of two classes, each with a
//! turn of its own. So what the kernel has changed of a port of a bridge, memberships and all, has been answered before the next port
//! of that bridge has its turn. One that is tried again waits for nobody: it had its turn. Ports of a bridge that traps
//! ([`crate::topo`]'s guards) do not wait, nor do those that an event changes of which it says nothing (a bridge's own): these are on their way
//! together. What VLANs a port is in is no change of it: there may be many, and each is a domain of its own.

use super::classes::Member;
use super::table::{Obj, Sent};
use crate::Store;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Ports in the order in which the kernel has changed them, until nothing of that is queued or on its way. By table id.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// With the bridges that they are in, were, or are to be.
    all: BTreeMap<u64, (u32, BTreeSet<u32>)>,
    of: HashMap<u32, u64>,
    /// Those that were written since, and what the kernel has changed of them behind that.
    begun: HashMap<u32, Option<Next>>,
    next: u64,
    /// Those that wait, each with the one that it waits for.
    held: HashMap<u32, u32>,
}

/// A port's next turn.
#[derive(Debug)]
struct Next {
    turn: u64,
    bridges: BTreeSet<u32>,
    /// Memberships of its present turn were queued or on their way when it was given: those that have come since are not told apart.
    late: bool,
}

impl Turns {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The port that this one waits for.
    pub fn before(&self, port: u32) -> Option<u32> {
        self.held.get(&port).copied()
    }

    /// The kernel has changed a port of these bridges (0: none). One that changes once more before its turn has the place of its first change;
    /// one that does so in its turn has another place: the others would never be written else, as long as it changes. `late`: memberships
    /// of it are queued or on their way.
    fn take(&mut self, port: u32, bridges: [u32; 2], late: bool) {
        let turn = self.next;
        self.next += 1;
        let of_it = match self.begun.get_mut(&port) {
            Some(later) => {
                let next = || Next {
                    turn,
                    bridges: BTreeSet::new(),
                    late,
                };
                &mut later.get_or_insert_with(next).bridges
            }
            None => {
                let turn = *self.of.entry(port).or_insert(turn);
                let of_it = self.all.entry(turn);
                &mut of_it.or_insert_with(|| (port, BTreeSet::new())).1
            }
        };
        of_it.extend(bridges.iter().filter(|b| **b != 0));
    }

    /// This port is written, in its turn if it has one.
    pub fn begins(&mut self, port: u32) {
        if self.of.contains_key(&port) {
            self.begun.entry(port).or_default();
        }
    }

    /// It was written in its turn, and has not changed since.
    fn begins_anew(&self, port: u32) -> bool {
        matches!(self.begun.get(&port), Some(None))
    }

    /// Whether it has changed in its turn.
    fn has_next(&self, port: u32) -> bool {
        matches!(self.begun.get(&port), Some(Some(_)))
    }

    /// What is queued of this port's memberships is for its next turn.
    fn awaits_next(&self, port: u32) -> bool {
        matches!(self.begun.get(&port), Some(Some(next)) if !next.late)
    }

    /// A port's turn is over. Whether it has another one.
    fn ends(&mut self, turn: u64, port: u32) -> bool {
        self.all.remove(&turn);
        self.of.remove(&port);
        let Some(next) = self.begun.remove(&port).flatten() else {
            return false;
        };
        self.of.insert(port, next.turn);
        self.all.insert(next.turn, (port, next.bridges));
        true
    }

    /// Those that wait from now on; whether these are others.
    pub fn wait(&mut self, held: HashMap<u32, u32>) -> bool {
        let changes = self.held != held;
        self.held = held;
        changes
    }
}

impl Store {
    /// The kernel has changed a port of these bridges (0: none).
    pub(crate) fn takes_turn(&mut self, port: u32, bridges: [u32; 2]) {
        let asked = self.hw.behind.turns.begins_anew(port);
        // of one that goes between the two kinds of bridges, memberships of the other kind are still to come
        let number = u16::try_from(port + 1).unwrap_or(u16::MAX);
        let comes = self.topo.switching.contains(&number);
        let late = asked && (comes || self.members_move(port, |o| o.queued || flies(o)));
        self.hw.behind.turns.take(port, bridges, late);
    }

    /// Of the ports that the kernel has changed the first one of each bridge goes on. Whether others wait now than before.
    pub(crate) fn look_whose_turn(&mut self) -> bool {
        if self.hw.behind.turns.is_empty() {
            return false;
        }
        let mut first: HashMap<u32, u32> = HashMap::new();
        let (mut held, mut ended) = (HashMap::new(), Vec::new());
        for (turn, (port, bridges)) in &self.hw.behind.turns.all {
            let traps = |b: &&u32| self.topo.guards.contains_key(b);
            let bridges = || bridges.iter().filter(|b| !traps(b));
            match bridges().find_map(|b| first.get(b)) {
                Some(before) => _ = held.insert(*port, *before),
                None if !self.is_under_way(*port) => {
                    ended.push((*turn, *port));
                    continue;
                }
                // what is queued of it is for its next one
                None if self.hw.behind.turns.has_next(*port) && !self.is_on_way(*port) => {
                    ended.push((*turn, *port));
                    continue;
                }
                None => {}
            }
            for b in bridges() {
                first.entry(*b).or_insert(*port);
            }
        }
        let turns = &mut self.hw.behind.turns;
        let mut more = false;
        for (turn, port) in ended {
            more |= turns.ends(turn, port);
        }
        match more {
            true => self.look_whose_turn(),
            false => self.hw.turns_change(held),
        }
    }

    /// Something of this port or its memberships is queued, or on its way.
    fn is_under_way(&self, port: u32) -> bool {
        let o = self.hw.ports.get(port);
        o.is_some_and(|o| o.queued || flies(o)) || self.members_move(port, |o| o.queued || flies(o))
    }

    /// Something of this port's present turn is on its way, or of its memberships is queued.
    fn is_on_way(&self, port: u32) -> bool {
        let next = self.hw.behind.turns.awaits_next(port);
        self.hw.ports.get(port).is_some_and(flies)
            || self.members_move(port, |o| o.queued && !next || flies(o))
    }

    /// Whether this is so of a membership of a port that is to be another one.
    fn members_move(&self, port: u32, is: impl Fn(&Obj<Member>) -> bool) -> bool {
        let number = u16::try_from(port + 1).unwrap_or(u16::MAX);
        let members = self.topo.moving.range((number, 0)..=(number, u32::MAX));
        let mut members = members.filter_map(|(_, id)| self.hw.members.get(*id));
        members.any(is)
    }
}

fn flies<B>(o: &Obj<B>) -> bool {
    !matches!(o.sent, Sent::Nothing)
}

//! Whose turn it is.
//!
//! ```text
//!   the kernel     swp3 goes out of service        then a station is behind swp3, or swp4 floods no more
//!   the chip       swp3's write gets lost          the other one's is carried out: frames go as they never did in the kernel
//! ```
//!
//! So of what decides where a bridge's frames go a write waits for the answers to those before: a port for stations, a station for
//! ports and memberships, a membership for ports, as one that joins is the bridge's by then. A port waits for other ports of before
//! the last event, too: what follows from one event is on its way together. Stations do not wait for each other, nor memberships:
//! there may be many.

use super::{CLASSES, Cls, Hw, Ref};
use std::collections::{HashMap, HashSet, VecDeque};

/// Ports whose turn comes behind stations.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// When so many stations have had theirs, by table id; until the port has had its own.
    after: HashMap<u32, u64>,
    /// When the last one of a bridge that is queued will have had its own.
    last: HashMap<u32, u64>,
    /// None of those that wait is due before so many have.
    next: u64,
    /// So many at the front of the ports' queue wait.
    waiting: usize,
    /// Stations whose command got no answer, and that are queued again: by table id.
    again: HashSet<u32>,
}

impl Hw {
    /// The next object to look at, dependencies first.
    /// `neighbours`: theirs is the turn, too. `stations`: so many had their turn ever. `ordered`: what decides where a bridge's frames
    /// go waits for what is on its way of that.
    pub fn pop(&mut self, neighbours: bool, stations: u64, ordered: bool) -> Option<Ref> {
        if stations >= self.behind.next {
            self.look_behind(stations);
        }
        let on_way = |cls| ordered && self.flights.any_of(cls);
        let again = ordered && !self.behind.again.is_empty();
        let earlier = ordered && self.flights.any_before(Cls::Port);
        let port_waits = earlier || on_way(Cls::Fdb) || again;
        let mut member_waits = on_way(Cls::Port);
        let mut station_waits = member_waits || on_way(Cls::Member);
        let Behind {
            after,
            waiting,
            again: stations_again,
            ..
        } = &mut self.behind;
        for (cls, queue) in CLASSES.into_iter().zip(&mut self.queues) {
            let next = match cls {
                Cls::Neigh if !neighbours => None,
                Cls::Member if member_waits => None,
                Cls::Fdb if station_waits => None,
                Cls::Port => {
                    let due = |id: &u32| after.get(id).is_none_or(|a| *a <= stations);
                    while queue.get(*waiting).is_some_and(|id| !due(id)) {
                        *waiting += 1;
                    }
                    member_waits |= ordered && !queue.is_empty();
                    // one that is due waits for those on their way, and for none that come
                    station_waits |= ordered && !again && *waiting < queue.len();
                    let next = match port_waits {
                        true => None,
                        false => queue.remove(*waiting),
                    };
                    next.inspect(|id| _ = after.remove(id))
                }
                Cls::Fdb => (queue.pop_front()).inspect(|id| _ = stations_again.remove(id)),
                _ => queue.pop_front(),
            };
            if let Some(id) = next {
                return Some(Ref::new(cls, id));
            }
        }
        None
    }

    /// Some ports may be due: which of them wait, and for how many stations at least.
    fn look_behind(&mut self, stations: u64) {
        let ports = &self.ports;
        let queued = |id: &u32| ports.get(*id).is_some_and(|o| o.queued);
        let Behind { after, .. } = &mut self.behind;
        after.retain(|id, a| *a > stations || queued(id));
        let wait = after.values().filter(|a| **a > stations);
        self.behind.next = wait.min().copied().unwrap_or(u64::MAX);
        self.behind.waiting = 0;
    }

    /// A station of a bridge was queued, if it was not before. `stations`: so many had their turn ever.
    pub fn station_waits(&mut self, bridge: u32, stations: u64) {
        let waiting = self.queues.get(Cls::Fdb as usize).map_or(0, VecDeque::len);
        self.behind.last.insert(bridge, stations + waiting as u64);
    }

    /// A port is another one behind its bridge's stations whose turn is to come: the kernel has changed those before. One that
    /// changes once more before its turn has the place of its first change: it would never be written else, as long as it
    /// changes and stations come.
    pub fn goes_behind(&mut self, port: u32, bridge: u32, stations: u64) {
        self.behind.last.retain(|_, last| *last > stations);
        if let Some(&last) = self.behind.last.get(&bridge) {
            let after = *self.behind.after.entry(port).or_insert(last);
            self.behind.next = self.behind.next.min(after);
        }
    }

    /// A command about this object got no answer. It is written again before what was to come behind it.
    pub fn goes_again(&mut self, r: Ref) {
        self.queue(r);
        match r.cls {
            Cls::Port => {
                if let Some(ports) = self.queues.get_mut(Cls::Port as usize) {
                    ports.retain(|id| *id != r.id);
                    ports.push_front(r.id);
                }
                self.behind.after.remove(&r.id);
                self.behind.waiting = 0;
            }
            Cls::Fdb => _ = self.behind.again.insert(r.id),
            _ => {}
        }
    }

    /// None of this class is queued.
    pub fn is_queue_empty(&self, cls: Cls) -> bool {
        self.queues.get(cls as usize).is_none_or(VecDeque::is_empty)
    }

    /// Nothing is queued; `neighbours`: none of these, either.
    pub fn queues_empty(&self, neighbours: bool) -> bool {
        let empty = |(n, q): (usize, &VecDeque<u32>)| {
            q.is_empty() || !neighbours && n == Cls::Neigh as usize
        };
        self.queues.iter().enumerate().all(empty)
    }
}

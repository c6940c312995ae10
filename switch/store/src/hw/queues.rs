//! Whose turn it is.
//!
//! ```text
//!   the kernel     swp3 goes out of service        then a station is behind swp3, or swp4 floods no more
//!   the chip       swp3's write gets lost          the other one's is carried out: frames go as they never did in the kernel
//! ```
//!
//! So of what decides where a bridge's frames go a write waits for the answers to those before: a port for stations, a station for
//! ports and memberships, a membership for ports that are due, as one that joins is the bridge's by then. Its own port it awaits even
//! where that is behind stations; a port that is, and is another one, has nothing to do with it. A port waits for other ports of before
//! the last event, too: what follows from one event is on its way together. Stations do not wait for each other, nor memberships:
//! there may be many. One that changes while a command about it is on its way keeps those behind it back until that is answered.

use super::classes::Member;
use super::table::{Obj, Sent};
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
    /// And so many at the front of the memberships', for their ports.
    members_waiting: usize,
    /// Stations and memberships whose command got no answer, and that are queued again.
    again: HashSet<Ref>,
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
        let any_again = |cls| ordered && self.behind.again.iter().any(|r| r.cls == cls);
        let (again, members_again) = (any_again(Cls::Fdb), any_again(Cls::Member));
        let earlier = ordered && self.flights.any_before(Cls::Port);
        let port_waits = earlier || on_way(Cls::Fdb) || again;
        let port_on_way = on_way(Cls::Port);
        let mut member_waits = false;
        let mut station_waits = port_on_way || on_way(Cls::Member);
        let Behind {
            after,
            waiting,
            members_waiting,
            again: all_again,
            ..
        } = &mut self.behind;
        let due =
            |id: u32, after: &HashMap<u32, u64>| after.get(&id).is_none_or(|a| *a <= stations);
        let (ports, members, fdb) = (&self.ports, &self.members, &self.fdb);
        for (cls, queue) in CLASSES.into_iter().zip(&mut self.queues) {
            let next = match cls {
                Cls::Neigh if !neighbours => None,
                Cls::Member if port_on_way || member_waits && !members_again => None,
                Cls::Member => {
                    // one that got no answer waits for nothing that is to come
                    let goes = |id: &u32| {
                        let lost = all_again.contains(&Ref::new(cls, *id));
                        let body =
                            |o: &Obj<Member>| Some(o.want.as_ref().or(o.have.as_ref())?.port);
                        let port = members.get(*id).and_then(body).map(|p| u32::from(p) - 1);
                        let waits =
                            |p: u32| !due(p, after) && ports.get(p).is_some_and(|o| o.queued);
                        let held = member_waits || ordered && port.is_some_and(waits);
                        lost || !held
                    };
                    let from = *members_waiting;
                    let at = (from..queue.len()).find(|at| queue.get(*at).is_some_and(goes));
                    *members_waiting = match at {
                        _ if member_waits => from,
                        Some(at) => at,
                        None => queue.len(),
                    };
                    let next = at.and_then(|at| queue.remove(at));
                    next.inspect(|id| _ = all_again.remove(&Ref::new(cls, *id)))
                }
                Cls::Fdb if station_waits => None,
                Cls::Port => {
                    while queue.get(*waiting).is_some_and(|id| !due(*id, after)) {
                        *waiting += 1;
                    }
                    let any_due = ordered && *waiting < queue.len();
                    member_waits |= any_due;
                    // one that is due waits for those on their way, and for none that come
                    station_waits |= any_due && !again;
                    let next = match port_waits {
                        true => None,
                        false => queue.remove(*waiting),
                    };
                    if let Some(id) = &next {
                        after.remove(id);
                        *members_waiting = 0;
                    }
                    next
                }
                Cls::Fdb => {
                    // its answer says what is to be written, and those behind it come behind that
                    let idle =
                        |id: &u32| (fdb.get(*id)).is_none_or(|o| matches!(o.sent, Sent::Nothing));
                    let next = match queue.front().is_some_and(idle) {
                        true => queue.pop_front(),
                        false => None,
                    };
                    next.inspect(|id| _ = all_again.remove(&Ref::new(cls, *id)))
                }
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
        (self.behind.waiting, self.behind.members_waiting) = (0, 0);
    }

    /// A station of a bridge may have been queued: it is the last one, if it was not before. `stations`: so many had their turn ever.
    pub fn station_waits(&mut self, id: u32, bridge: u32, stations: u64) {
        if let Some(queue) = self.queues.get(Cls::Fdb as usize)
            && queue.back() == Some(&id)
        {
            self.behind
                .last
                .insert(bridge, stations + queue.len() as u64);
        }
    }

    /// A port is another one behind its bridges' stations whose turn is to come: the kernel has changed those before. One that
    /// changes once more before its turn has the place of its first change: it would never be written else, as long as it
    /// changes and stations come.
    pub fn goes_behind(&mut self, port: u32, bridges: [u32; 2], stations: u64) {
        self.behind.last.retain(|_, last| *last > stations);
        let last = bridges.iter().filter_map(|b| self.behind.last.get(b));
        if let Some(&last) = last.max() {
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
                (self.behind.waiting, self.behind.members_waiting) = (0, 0);
            }
            Cls::Fdb => _ = self.behind.again.insert(r),
            Cls::Member => {
                self.behind.again.insert(r);
                self.behind.members_waiting = 0;
            }
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

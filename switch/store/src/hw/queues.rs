//! Whose turn it is.
//!
//! ```text
//!   the kernel     swp3 goes out of service        then a station is behind swp3, or swp4 floods no more
//!   the chip       swp3's write gets lost          the other one's is carried out: frames go as they never did in the kernel
//! ```
//!
//! So of what decides where a bridge's frames go a write waits for the answers to those before: a port for stations, a station for
//! ports and memberships, a membership for stations and for ports that are due, as one that joins is the bridge's by then. Its own port
//! it awaits even where that is behind stations, and as long as that would be where the port leaves and so follows it; a port that is, and
//! is another one, has nothing to do with it. A port waits for other ports and for memberships of before the last event, too: what follows
//! from one event is on its way together, but for ports of one bridge, which come one after the other (`turns.rs`). Stations do not wait for
//! each other, nor memberships: there may be many. A station or a port
//! that changes while a command about it is on its way keeps those behind it back until that is answered. What got no answer, or is tried
//! again, is the first of its kind.

use super::classes::Member;
use super::table::{Obj, Sent};
use super::turns::Turns;
use super::{CLASSES, Cls, Hw, HwClass, Ref, with_class};
use crate::api::Planned;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// Ports whose turn comes behind stations.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// So many stations have had their turn.
    taken: u64,
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
    /// Stations, ports and memberships whose command got no answer, or failed, and that are queued again.
    again: BTreeSet<Ref>,
    /// Ports about which the command on its way is not that of their turn ([`Hw::shut`]).
    shut: HashSet<u32>,
    /// Ports that wait for another one of their bridge.
    pub turns: Turns,
}

impl Behind {
    fn any_again(&self, cls: Cls) -> bool {
        let of_it = Ref::new(cls, 0)..=Ref::new(cls, u32::MAX);
        self.again.range(of_it).next().is_some()
    }
}

impl Hw {
    /// The next object to look at, dependencies first.
    /// `neighbours`: theirs is the turn, too. `ordered`: what decides where a bridge's frames go waits for what is on its way of that.
    pub fn pop(&mut self, neighbours: bool, ordered: bool) -> Option<Ref> {
        let stations = self.behind.taken;
        if stations >= self.behind.next {
            self.look_behind();
        }
        let on_way = |cls| ordered && self.flights.any_of(cls);
        let any_again = |cls| ordered && self.behind.any_again(cls);
        let before = |cls| ordered && self.flights.any_before(cls);
        let members_again = any_again(Cls::Member);
        let stations_unanswered = on_way(Cls::Fdb) || any_again(Cls::Fdb);
        let port_waits =
            before(Cls::Port) || stations_unanswered || before(Cls::Member) || members_again;
        let port_on_way = on_way(Cls::Port);
        let station_waits = port_on_way || on_way(Cls::Member);
        // for a port that is due, or a membership: those that come do, not those that are tried again
        let (mut port_is_due, mut others_wait) = (false, false);
        let Behind {
            taken,
            after,
            waiting,
            members_waiting,
            again,
            turns,
            ..
        } = &mut self.behind;
        let due =
            |id: u32, after: &HashMap<u32, u64>| after.get(&id).is_none_or(|a| *a <= stations);
        let held = |port: u32| turns.before(port).filter(|_| ordered);
        let (ports, members, fdb) = (&self.ports, &self.members, &self.fdb);
        for (cls, queue) in CLASSES.into_iter().zip(&mut self.queues) {
            let is_again = |id: &u32| again.contains(&Ref::new(cls, *id));
            let next = match cls {
                Cls::Neigh if !neighbours => None,
                Cls::Member if port_on_way || port_is_due && !members_again => None,
                Cls::Member => {
                    // one that got no answer waits for nothing that is to come
                    let waits = |o: &Obj<Member>| {
                        port_of(o).is_some_and(|port| {
                            let queued = ports.get(port).is_some_and(|o| o.queued);
                            held(port).is_some() || !due(port, after) && (queued || leaves(o))
                        })
                    };
                    let goes = |id: &u32| {
                        let waits = || ordered && members.get(*id).is_some_and(waits);
                        is_again(id) || !port_is_due && !waits()
                    };
                    let from = *members_waiting;
                    let at = (from..queue.len()).find(|at| queue.get(*at).is_some_and(goes));
                    *members_waiting = match at {
                        _ if port_is_due => from,
                        Some(at) => at,
                        None => queue.len(),
                    };
                    // stations before it are answered first, and those behind it come behind it
                    let is_first = |at| queue.get(at).is_some_and(is_again);
                    match at {
                        Some(at) if stations_unanswered && !is_first(at) => {
                            others_wait = true;
                            None
                        }
                        _ => at.and_then(|at| queue.remove(at)),
                    }
                }
                Cls::Port => {
                    if !turns.is_empty() {
                        *waiting = 0;
                    }
                    while let Some(id) = queue.get(*waiting) {
                        let before = held(*id).filter(|_| !is_again(id));
                        if before.is_none() && due(*id, after) {
                            break;
                        }
                        // stations behind it come behind those that it waits for as well, which may be behind stations themselves
                        if before.is_some() && due(*id, after) {
                            let goes_on = |b: &u32| held(*b).filter(|_| !is_again(b));
                            let mut all = std::iter::successors(before, goes_on);
                            others_wait |= all.all(|b| due(b, after));
                        }
                        *waiting += 1;
                    }
                    let first = queue.get(*waiting);
                    port_is_due |= ordered && first.is_some();
                    others_wait |= port_is_due;
                    // its answer says what is to be written, and those behind it come behind that
                    let flies = |id: &u32| {
                        let o = ports.get(*id);
                        ordered && o.is_some_and(|o| !matches!(o.sent, Sent::Nothing))
                    };
                    let next = match port_waits || first.is_some_and(flies) {
                        true => None,
                        false => queue.remove(*waiting),
                    };
                    if let Some(id) = &next {
                        after.remove(id);
                        *members_waiting = 0;
                    }
                    next
                }
                Cls::Fdb if station_waits => None,
                Cls::Fdb => {
                    let idle =
                        |id: &u32| (fdb.get(*id)).is_none_or(|o| matches!(o.sent, Sent::Nothing));
                    let goes = |id: &u32| idle(id) && (!others_wait || is_again(id));
                    match queue.front().is_some_and(goes) {
                        true => {
                            *taken += 1;
                            queue.pop_front()
                        }
                        false => None,
                    }
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
    fn look_behind(&mut self) {
        let ports = &self.ports;
        let queued = |id: &u32| ports.get(*id).is_some_and(|o| o.queued);
        let Behind { after, taken, .. } = &mut self.behind;
        after.retain(|id, a| *a > *taken || queued(id));
        self.behind.look_for_next();
        (self.behind.waiting, self.behind.members_waiting) = (0, 0);
    }

    /// Who waits for another port's turn is another one: all that are queued are looked at again.
    pub fn turns_change(&mut self, held: HashMap<u32, u32>) -> bool {
        let changes = self.behind.turns.wait(held);
        if changes {
            (self.behind.waiting, self.behind.members_waiting) = (0, 0);
        }
        changes
    }

    /// A station of a bridge may have been queued: it is the last one, if it was not before.
    pub fn station_waits(&mut self, id: u32, bridge: u32) {
        if let Some(queue) = self.queues.get(Cls::Fdb as usize)
            && queue.back() == Some(&id)
        {
            let last = self.behind.taken + queue.len() as u64;
            self.behind.last.insert(bridge, last);
        }
    }

    /// A port is another one behind its bridges' stations whose turn is to come: the kernel has changed those before. One that
    /// changes once more before its turn has the place of its first change: it would never be written else, as long as it
    /// changes and stations come.
    pub fn goes_behind(&mut self, port: u32, bridges: [u32; 2]) {
        // One whose command is to be tried again had its turn, before what came since
        if self.behind.again.contains(&Ref::new(Cls::Port, port)) {
            return;
        }
        let stations = self.behind.taken;
        self.behind.last.retain(|_, last| *last > stations);
        let last = bridges.iter().filter_map(|b| self.behind.last.get(b));
        if let Some(&last) = last.max() {
            let after = *self.behind.after.entry(port).or_insert(last);
            self.behind.next = self.behind.next.min(after);
        }
    }

    /// A command about this object got no answer, or one that says nothing but that it is to be tried again. So it is, before what
    /// was to come behind it.
    pub fn goes_again(&mut self, r: Ref) {
        if !matches!(r.cls, Cls::Port | Cls::Fdb | Cls::Member)
            || self.behind.shut.contains(&r.id) && r.cls == Cls::Port
        {
            return self.queue(r);
        }
        self.flights.goes_again(r);
        let was_queued = with_class!(r.cls, T => {
            let o = T::table(self).at(r.id);
            std::mem::replace(&mut o.queued, true)
        });
        let Some(queue) = self.queues.get_mut(r.cls as usize) else {
            return;
        };
        let place = |queue: &VecDeque<u32>| queue.iter().position(|id| *id == r.id);
        let at = was_queued.then(|| place(queue)).flatten();
        if let Some(at) = at {
            queue.remove(at);
        }
        queue.push_front(r.id);
        let b = &mut self.behind;
        b.again.insert(r);
        b.members_waiting = 0;
        match r.cls {
            Cls::Port => {
                b.after.remove(&r.id);
                b.waiting = 0;
            }
            Cls::Fdb => b.comes_before(at),
            _ => {}
        }
    }

    /// This object has its turn. Whether it had one before, and is tried again.
    pub fn was_before(&mut self, r: Ref) -> bool {
        !self.behind.again.is_empty() && self.behind.again.remove(&r)
    }

    /// This port gives all to the CPU ahead of its turn, which is right at any time, and keeps its place.
    pub fn shut(&mut self, id: u32, now: u64) -> Option<Planned> {
        let posted = self.step(Ref::new(Cls::Port, id), true, now);
        self.ports.at(id).queued = true;
        if posted.is_some() {
            self.behind.shut.insert(id);
        }
        posted
    }

    /// A command about this one has ended.
    pub fn has_ended(&mut self, r: Ref) {
        if r.cls == Cls::Port && !self.behind.shut.is_empty() {
            self.behind.shut.remove(&r.id);
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

impl Behind {
    fn look_for_next(&mut self) {
        let wait = self.after.values().filter(|a| **a > self.taken);
        self.next = wait.min().copied().unwrap_or(u64::MAX);
    }

    /// A station comes before all others that are queued; it was queued, with so many before it. Those that came behind one of those
    /// have one more before them.
    fn comes_before(&mut self, at: Option<usize>) {
        let taken = self.taken;
        let to = at.map_or(u64::MAX, |at| taken + at as u64);
        let all = self.after.values_mut().chain(self.last.values_mut());
        for place in all.filter(|place| **place > taken && **place <= to) {
            *place += 1;
        }
        self.look_for_next();
    }
}

/// The port of a membership, by table id.
fn port_of(o: &Obj<Member>) -> Option<u32> {
    let body = o.want.as_ref().or(o.have.as_ref())?;
    u32::from(body.port).checked_sub(1)
}

/// It goes, or into another domain: its port follows it.
fn leaves(o: &Obj<Member>) -> bool {
    let domain = |m: &Member| m.vlan;
    o.have.is_some() && o.have.as_ref().map(domain) != o.want.as_ref().map(domain)
}

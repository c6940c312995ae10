//! What somebody would believe who only reads notifications, each by its flags as the manual has them: beside a dump it shows
//! what the kernel does in silence, and what it says otherwise than it does.
//!
//! ```text
//!   dump at rest n ─► tables ─► notifications of step n + 1, one by one ─► tables'  ══?══  dump at rest n + 1
//! ```
//!
//! This is no judge of the switch: [`Gap`]s are counted by what happened before them. Where the kernel promises to tell
//! (addresses, neighbours, rules) there are none.

use std::collections::BTreeMap;

use tandem_linux::netlink::{Event, NewMode, Nexthops, Object, Route, RouteNexthop};

use crate::normal::{self, is_nobody};
use crate::recording::{Recording, Step};

/// How tables and notifications disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gap {
    /// Gone, and no notification said so.
    Gone,
    /// There, and no notification said so.
    New,
    /// It is another one than was said.
    Other,
    /// The routes of a key are those that were said, in another order.
    Order,
}

/// A disagreement after one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// After which step.
    pub step: usize,
    /// Of what kind.
    pub gap: Gap,
    /// Which table.
    pub table: &'static str,
    /// Whose entry, and what is wrong with it.
    pub words: String,
}

/// Entries by key. Routes with one key are a list, in the kernel's order.
type Table = BTreeMap<String, Vec<Object>>;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Tables(BTreeMap<&'static str, Table>);

/// Table and key of what is followed here. Links change in too many ways that are told at once, and have no part in it.
fn place(object: &Object) -> Option<(&'static str, String)> {
    Some(match object {
        Object::Addr(a) => (
            "address",
            format!("{} {}/{}", a.ifindex, a.local, a.prefix_len),
        ),
        // of lo's the kernel does not tell (net/ipv4/arp.c `arp_constructor`): nobody asks for them
        Object::Neigh(n) if n.ifindex == 1 => return None,
        Object::Neigh(n) => ("neighbour", format!("{} {}", n.ifindex, n.addr)),
        Object::Nexthop(n) => ("nexthop", n.id.to_string()),
        Object::Rule(r) => ("rule", format!("{:?} {} {}", r.family, r.priority, r.text)),
        // a device's own filters (`self`) are not told of
        Object::Fdb(f) if f.master != 0 => ("fdb", format!("{} {:?} {}", f.master, f.mac, f.vlan)),
        // to groups: one for each device, in an order that nobody asks for
        Object::Route(r) if r.dst.addr().is_multicast() => return None,
        Object::Route(r) => {
            let table = if r.dst.addr().is_ipv4() {
                "route4"
            } else {
                "route6"
            };
            (
                table,
                format!("{} {} {} {}", r.table, r.dst, r.tos, r.metric),
            )
        }
        _ => return None,
    })
}

/// What of an entry counts: not the state of links, which has a table of its own.
fn plain(object: Object) -> Object {
    const STATE: u8 = 1 | 16; // RTNH_F_DEAD, RTNH_F_LINKDOWN
    let next_hop = |h: RouteNexthop| RouteNexthop {
        flags: h.flags & !STATE,
        ..h
    };
    match object {
        Object::Route(mut r) => {
            r.flags &= !u32::from(STATE);
            r.nexthops = match r.nexthops {
                // a route says what its next-hop object was when it was told
                _ if r.nh_id != 0 => Nexthops::None,
                Nexthops::One(h) => Nexthops::One(next_hop(h)),
                Nexthops::Many(hops) => {
                    let mut hops: Vec<RouteNexthop> = hops.iter().copied().map(next_hop).collect();
                    if r.dst.addr().is_ipv6() {
                        // the one that came last is told first
                        hops.sort_by_key(|h| (h.ifindex, h.gateway, h.weight, h.flags));
                    }
                    Nexthops::Many(hops.into())
                }
                Nexthops::None => Nexthops::None,
            };
            if r.nh_id != 0 {
                r.kind = 1;
            }
            Object::Route(r)
        }
        Object::Nexthop(mut n) => {
            n.flags &= !u32::from(STATE);
            Object::Nexthop(n)
        }
        other => other,
    }
}

/// The same route, for a notification that it went: the kernel fills in all of it.
fn same_route(a: &Route, b: &Route) -> bool {
    a.nh_id == b.nh_id && a.kind == b.kind && (a.nh_id != 0 || a.nexthops == b.nexthops)
}

/// The next hops of an IPv6 route.
fn next_hops(r: &Route) -> Vec<RouteNexthop> {
    match &r.nexthops {
        Nexthops::None => Vec::new(),
        Nexthops::One(h) => vec![*h],
        Nexthops::Many(hops) => hops.to_vec(),
    }
}

impl Tables {
    fn read(step: &Step) -> Self {
        let mut tables = Self::default();
        let state = normal::state(&step.dumps).0.into_iter().flatten();
        for object in state.filter(|o| !is_nobody(o)) {
            if let Some((table, key)) = place(&object) {
                let entries = tables.0.entry(table).or_default();
                entries.entry(key).or_default().push(plain(object));
            }
        }
        tables
    }

    fn apply(&mut self, event: Event) {
        let event = match event {
            Event::New(o, _) if is_nobody(&o) => Event::Del(o),
            event => event,
        };
        match event {
            Event::New(object, mode) => {
                let Some((table, key)) = place(&object) else {
                    return;
                };
                let list = self.0.entry(table).or_default().entry(key).or_default();
                let object = plain(object);
                match (table, mode) {
                    ("route4", NewMode::Append) => list.push(object),
                    ("route4", NewMode::Prepend | NewMode::Plain) => list.insert(0, object),
                    ("route4" | "route6", NewMode::Replace(_)) => match list.first_mut() {
                        Some(first) => *first = object,
                        None => list.push(object),
                    },
                    // one route of several ways is told as a whole when it grows
                    ("route6", _) => {
                        let grown = |old: &Object| match (old, &object) {
                            (Object::Route(a), Object::Route(b)) => {
                                let (a, b) = (next_hops(a), next_hops(b));
                                !a.is_empty()
                                    && a.len() < b.len()
                                    && a.iter().all(|l| b.contains(l))
                            }
                            _ => false,
                        };
                        match list.iter_mut().find(|o| grown(o)) {
                            Some(old) => *old = object,
                            None => list.push(object),
                        }
                    }
                    _ => *list = vec![object],
                }
            }
            Event::Del(object) => {
                let Some((table, key)) = place(&object) else {
                    return;
                };
                let Some(entries) = self.0.get_mut(table) else {
                    return;
                };
                let Some(list) = entries.get_mut(&key) else {
                    return;
                };
                match plain(object) {
                    Object::Route(gone) => remove_route(list, &gone),
                    _ => list.clear(),
                }
                if list.is_empty() {
                    entries.remove(&key);
                }
            }
            Event::Overrun => {}
        }
    }
}

fn remove_route(list: &mut Vec<Object>, gone: &Route) {
    let whole = list
        .iter()
        .position(|o| matches!(o, Object::Route(r) if same_route(r, gone)));
    if let Some(at) = whole {
        list.remove(at);
        return;
    }
    // one way of several
    let going = next_hops(gone);
    for object in list.iter_mut() {
        if let Object::Route(r) = object {
            let left: Vec<RouteNexthop> = next_hops(r)
                .into_iter()
                .filter(|l| !going.contains(l))
                .collect();
            if left.len() < next_hops(r).len() {
                r.nexthops = match left.as_slice() {
                    [one] => Nexthops::One(*one),
                    many => Nexthops::Many(many.into()),
                };
                return;
            }
        }
    }
}

fn compare(step: usize, told: &Tables, is: &Tables, findings: &mut Vec<Finding>) {
    let none = Table::new();
    let names: std::collections::BTreeSet<&'static str> =
        told.0.keys().chain(is.0.keys()).copied().collect();
    for table in names {
        let (a, b) = (
            told.0.get(table).unwrap_or(&none),
            is.0.get(table).unwrap_or(&none),
        );
        let mut found = |gap, key: &str, words: String| {
            findings.push(Finding {
                step,
                gap,
                table,
                words: format!("{key}: {words}"),
            });
        };
        let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for key in keys {
            let (said, there) = (
                a.get(key).map_or(&[][..], Vec::as_slice),
                b.get(key).map_or(&[][..], Vec::as_slice),
            );
            if said == there {
                continue;
            }
            let words = format!("told {said:?}, there {there:?}");
            let missing = said.iter().filter(|o| !there.contains(o)).count();
            let more = there.iter().filter(|o| !said.contains(o)).count();
            let gap = match (missing, more) {
                (0, 0) if said.len() == there.len() => Gap::Order,
                (_, 0) => Gap::Gone,
                (0, _) => Gap::New,
                _ => Gap::Other,
            };
            found(gap, key, words);
        }
    }
}

/// Where notifications and tables disagree. Each step begins with what the dump before it had, so that one disagreement
/// is found once.
#[must_use]
pub fn findings(recording: &Recording) -> Vec<Finding> {
    let mut found = Vec::new();
    for (n, pair) in recording.steps.windows(2).enumerate() {
        let [before, step] = pair else { continue };
        let mut tables = Tables::read(before);
        for event in normal::told(&step.told) {
            tables.apply(event);
        }
        compare(n + 1, &tables, &Tables::read(step), &mut found);
    }
    found
}

/// How many there are of each kind: table, gap, and the first two words of the command before it.
pub type Counts = BTreeMap<(&'static str, Gap, String), u64>;

/// Counts a recording's disagreements.
pub fn count(recording: &Recording, counts: &mut Counts) {
    for f in findings(recording) {
        let command = recording.steps.get(f.step).and_then(|s| s.command.as_ref());
        let text = command
            .map_or("", |c| c.text.as_str())
            .replace("ip -6", "ip");
        let words: Vec<&str> = text.split(' ').collect();
        let kind = match words.as_slice() {
            ["ip", "link", "set", _, how, ..] => format!("ip link set {how}"),
            ["bridge", "link", "set", "dev", _, what, ..] => format!("bridge link set {what}"),
            ["host", _, how] => format!("host {how}"),
            ["sysctl", what] => {
                let key = what.rsplit('/').next().unwrap_or(what);
                format!("sysctl {key}")
            }
            ["ip", "nexthop", verb, ..] => {
                let what = if text.contains("group") {
                    " group"
                } else if text.contains("blackhole") {
                    " blackhole"
                } else {
                    ""
                };
                format!("ip nexthop {verb}{what}")
            }
            [a, b, c, ..] => format!("{a} {b} {c}"),
            _ => text,
        };
        *counts.entry((f.table, f.gap, kind)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::op::{Target, Verb, Way};
    use crate::history::{Act, Op};
    use crate::recording::{Bytes, Dump, Socket, Told};

    fn message(verb: Verb, nhid: u32) -> Bytes {
        let way = Way {
            dst: "21.0.0.0/24".parse().unwrap(),
            table: 0,
            metric: 0,
            tos: 0,
            src: None,
            target: Target::Object(nhid),
        };
        match Op::route(verb, &way).act {
            Act::Message(m) => Bytes(m),
            _ => panic!(),
        }
    }

    fn step(told: &[(Verb, u32)], there: &[u32]) -> Step {
        Step {
            told: told
                .iter()
                .map(|(verb, id)| Told {
                    socket: Socket::Route,
                    data: message(*verb, *id),
                })
                .collect(),
            dumps: vec![Dump {
                socket: Socket::Route,
                request: Bytes::default(),
                data: there.iter().map(|id| message(Verb::Prepend, *id)).collect(),
            }],
            ..Step::default()
        }
    }

    fn gaps(steps: Vec<Step>) -> Vec<Gap> {
        let recording = Recording {
            steps,
            ..Recording::default()
        };
        findings(&recording).iter().map(|f| f.gap).collect()
    }

    #[test]
    fn told_and_there() {
        let first = || step(&[], &[1, 2]);
        let after = |told, there: &[u32]| gaps(vec![first(), step(told, there)]);
        assert_eq!(after(&[(Verb::Append, 3)], &[1, 2, 3]), []);
        assert_eq!(after(&[(Verb::Prepend, 3)], &[3, 1, 2]), []);
        assert_eq!(after(&[(Verb::Replace, 3)], &[3, 2]), []);
        assert_eq!(after(&[(Verb::Delete, 2)], &[1]), []);
        assert_eq!(after(&[(Verb::Append, 3)], &[3, 1, 2]), [Gap::Order]);
        assert_eq!(after(&[], &[2]), [Gap::Gone]);
        assert_eq!(after(&[], &[]), [Gap::Gone]);
        assert_eq!(after(&[], &[1, 2, 3]), [Gap::New]);
    }

    /// A next-hop object that is replaced has its routes told again with NLM_F_REPLACE, though each stays where it is.
    #[test]
    fn a_replaced_object_of_a_second_alias() {
        let steps = vec![step(&[], &[1, 2]), step(&[(Verb::Replace, 2)], &[1, 2])];
        assert_eq!(gaps(steps), [Gap::New]);
    }
}

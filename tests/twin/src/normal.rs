//! What two recordings of one history have in common, and what not: everything is compared as the decoder reads it, so
//! ages, timers, counters, ports of sockets and sequence numbers have no part in it.

use tandem_linux::netlink::{self as nl, Event, NewMode, Nexthops, Object, Protocol};

use crate::player::is_route_error;
use crate::recording::{Answer, Dump, Out, Recording, Socket, Step, is_older};

/// All tables, as the decoder reads them: one list for each dump, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State(pub Vec<Vec<Object>>);

impl State {
    /// All of them.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.0.iter().flatten()
    }
}

const fn protocol(socket: Socket) -> Protocol {
    match socket {
        Socket::Route => Protocol::Route,
        Socket::Netfilter => Protocol::Netfilter,
    }
}

/// By key; those of one key stay in the kernel's order. But the routes to groups, one for each device with IPv6, stand in
/// the order in which links came up, and nobody asks for it.
fn order(object: &Object) -> (u32, Option<ipnet::IpNet>, u8, u32, u32) {
    let Object::Route(r) = object else {
        return Default::default();
    };
    let dev = match &r.nexthops {
        Nexthops::One(hop) if r.dst.addr().is_multicast() => hop.ifindex,
        _ => 0,
    };
    (r.table, Some(r.dst), r.tos, r.metric, dev)
}

/// Reads dumps. Routes of one key stay in the kernel's order; what has none there (hash tables) is sorted.
#[must_use]
pub fn state(dumps: &[Dump]) -> State {
    let read = |dump: &Dump| {
        let mut objects = Vec::new();
        for data in &dump.data {
            nl::decode(protocol(dump.socket), &data.0, |event| {
                if let Event::New(object, _) = event
                    && !is_noise(&object)
                {
                    objects.push(plain(object));
                }
            });
        }
        match objects.first() {
            Some(Object::Neigh(_) | Object::Fdb(_)) => {
                objects.sort_by_cached_key(|o| format!("{o:?}"));
            }
            Some(Object::Route(_)) => objects.sort_by_key(order),
            _ => {}
        }
        objects
    };
    State(dumps.iter().map(read).collect())
}

/// A neighbour that is a multicast group: there since the kernel told routers of its memberships, which it does by a timer.
fn is_noise(object: &Object) -> bool {
    matches!(object, Object::Neigh(n) if n.addr.is_multicast())
}

/// As such a neighbour: a group that a bridge itself is in. Histories have groups of IPv4 alone.
const fn is_own_group(entry: &nl::MdbEntry) -> bool {
    matches!(entry.group, nl::MdbGroup::Ip(std::net::IpAddr::V6(_)))
}

/// What the kernel says differently each time, of the same thing.
fn plain(mut object: Object) -> Object {
    if let Object::Link(l) = &mut object {
        // a packet socket that is there or not
        l.promiscuity = 0;
    }
    if let Object::Mdb(m) = &mut object {
        m.entries.retain(|e| !is_own_group(e));
    }
    object
}

/// The notifications, as the decoder reads them.
#[must_use]
pub fn told(told: &[crate::recording::Told]) -> Vec<Event> {
    let mut events = Vec::new();
    for datagram in told {
        nl::decode(protocol(datagram.socket), &datagram.data.0, |event| {
            events.push(match event {
                Event::New(o, _) | Event::Del(o) if is_noise(&o) => return,
                Event::New(Object::Mdb(m), _) | Event::Del(Object::Mdb(m))
                    if m.entries.iter().any(is_own_group) =>
                {
                    return;
                }
                // whose request it was, is each recorder's own
                Event::New(o, NewMode::Replace(_)) => Event::New(plain(o), NewMode::Replace(0)),
                Event::New(o, mode) => Event::New(plain(o), mode),
                Event::Del(o) => Event::Del(plain(o)),
                other => other,
            });
        });
    }
    events
}

/// A neighbour that did not answer. The kernel throws such entries away when there are many on the whole machine
/// (net/core/neighbour.c `neigh_periodic_work`), and does not tell of one that it never asked for (`__neigh_event_send`).
#[must_use]
pub fn is_nobody(object: &Object) -> bool {
    matches!(object, Object::Neigh(n) if !n.usable())
}

/// The notifications that are not about such neighbours.
fn lasting(mut events: Vec<Event>) -> Vec<Event> {
    events.retain(|e| !matches!(e, Event::New(o, _) | Event::Del(o) if is_nobody(o)));
    events
}

/// Neighbours that go together, in the order of their words. Until Linux 6.13 a device's neighbours were found by walking a
/// hash table whose key is drawn at boot and whenever it grows (net/core/neighbour.c `neigh_flush_dev`, `neigh_hash_alloc`).
fn unhashed(mut events: Vec<Event>) -> Vec<Event> {
    let gone = |e: &Event| matches!(e, Event::Del(Object::Neigh(_)));
    for run in events.chunk_by_mut(|a, b| gone(a) && gone(b)) {
        run.sort_by_cached_key(|e| format!("{e:?}"));
    }
    events
}

/// Is it a kernel of that time?
fn hashes_neighbours(recording: &Recording) -> bool {
    is_older(&recording.kernel, (6, 13))
}

/// A frame without what the kernel draws at random: the IPv4 identification of what it made, and the header's checksum.
fn frame(out: &Out) -> Out {
    let mut out = out.clone();
    let tagged = out.frame.0.get(12..14) == Some(&[0x81, 0]);
    let ip = if tagged { 18 } else { 14 };
    if out.made && out.frame.0.get(ip - 2..ip) == Some(&[8, 0]) {
        for at in [ip + 4, ip + 5, ip + 10, ip + 11] {
            if let Some(b) = out.frame.0.get_mut(at) {
                *b = 0;
            }
        }
    }
    out
}

/// Are they the same, but for what the kernel may keep back?
fn same(a: &Answer, b: &Answer) -> bool {
    let limited = a.limited || b.limited;
    let plain = |a: &Answer| {
        let kept = |o: &&Out| !(limited && o.made && is_route_error(&o.frame.0));
        let mut out: Vec<Out> = a.out.iter().filter(kept).map(frame).collect();
        out.sort();
        out
    };
    plain(a) == plain(b)
}

/// What two recordings are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What commands were answered.
    Errnos,
    /// All tables at each rest.
    Dumps,
    /// Notifications, in their order.
    Notifications,
    /// What became of the probes.
    Answers,
    /// Files that say what no message does.
    Files,
}

/// All that the model has too: not the files.
pub const LEVELS: [Level; 4] = [
    Level::Errnos,
    Level::Dumps,
    Level::Notifications,
    Level::Answers,
];

/// Where one level differs between the same step of two recordings; `None`: nowhere.
fn step_difference(level: Level, hashes: bool, x: &Step, y: &Step) -> Option<String> {
    match level {
        Level::Errnos => {
            (x.command != y.command).then(|| format!("{:?} and {:?}", x.command, y.command))
        }
        Level::Dumps => {
            if x.dumps.len() != y.dumps.len() {
                return Some(format!("{} and {} dumps", x.dumps.len(), y.dumps.len()));
            }
            let lasting = |all: &[Object]| -> Vec<Object> {
                all.iter().filter(|o| !is_nobody(o)).cloned().collect()
            };
            let (p, q) = (state(&x.dumps), state(&y.dumps));
            let mut both = p.0.iter().zip(&q.0).map(|(p, q)| (lasting(p), lasting(q)));
            let (p, q) = both.find(|(p, q)| p != q)?;
            Some(format!("dumps {}", unlike(&p, &q)))
        }
        Level::Notifications => {
            let events = |s: &Step| match lasting(told(&s.told)) {
                events if hashes => unhashed(events),
                events => events,
            };
            let (p, q) = (events(x), events(y));
            (p != q).then(|| format!("told {}", unlike(&p, &q)))
        }
        Level::Answers => {
            let mut both = x.answers.iter().zip(&y.answers).enumerate();
            let (i, (p, q)) = both.find(|(_, (p, q))| !same(p, q))?;
            Some(format!("probe {i}: {p:?} and {q:?}"))
        }
        Level::Files => {
            (x.files != y.files).then(|| format!("files {:?} and {:?}", x.files, y.files))
        }
    }
}

/// Two lists, without what they begin and end with alike.
fn unlike<T: PartialEq + std::fmt::Debug>(p: &[T], q: &[T]) -> String {
    let alike = p.iter().zip(q).take_while(|(a, b)| a == b).count();
    let (p, q) = (p.split_at(alike).1, q.split_at(alike).1);
    let ends = p.iter().rev().zip(q.iter().rev());
    let ends = ends.take_while(|(a, b)| a == b).count();
    let (p, q) = (&p[..p.len() - ends], &q[..q.len() - ends]);
    format!("{p:?} and {q:?}, behind {alike} that are alike")
}

/// The first step where two recordings of one history differ at this level, and how. `None`: nowhere.
#[must_use]
pub fn difference_at(level: Level, a: &Recording, b: &Recording) -> Option<(usize, String)> {
    if a.probes != b.probes || a.steps.len() != b.steps.len() {
        return Some((0, "they are not of one history".into()));
    }
    let hashes = hashes_neighbours(a) || hashes_neighbours(b);
    let mut steps = a.steps.iter().zip(&b.steps).enumerate();
    steps.find_map(|(n, (x, y))| Some((n, step_difference(level, hashes, x, y)?)))
}

/// Where two recordings of one history differ first. `None`: nowhere.
#[must_use]
pub fn difference(a: &Recording, b: &Recording) -> Option<String> {
    let levels = LEVELS.iter().chain([&Level::Files]);
    let found = levels.filter_map(|l| difference_at(*l, a, b));
    let (n, words) = found.min_by_key(|(n, _)| *n)?;
    let command = a.steps.get(n).and_then(|s| s.command.as_ref());
    let command = command.map_or("", |c| c.text.as_str());
    Some(format!("step {n}, `{command}`: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Act, Op, Wait};
    use crate::recording::{Bytes, Told};

    /// Neighbours of an old kernel go in an order that nobody knows; of a new one in one that counts.
    #[test]
    fn neighbours_that_go_together() {
        let told = |lasts: [u8; 2]| {
            let one = |last| {
                let op = Op::neighbour(11, crate::history::v4(11, last), Some([2; 6]), true);
                let Op {
                    act: Act::Message(mut m),
                    wait: Wait::Nothing,
                    ..
                } = op
                else {
                    panic!()
                };
                m[4..6].copy_from_slice(&29u16.to_ne_bytes()); // RTM_DELNEIGH
                Told {
                    socket: Socket::Route,
                    data: Bytes(m),
                }
            };
            lasts.map(one).to_vec()
        };
        let of = |kernel: &str, lasts| Recording {
            kernel: kernel.into(),
            steps: vec![Step {
                told: told(lasts),
                ..Step::default()
            }],
            ..Recording::default()
        };
        let differ = |kernel| difference(&of(kernel, [2, 3]), &of(kernel, [3, 2])).is_some();
        assert!(differ("6.18.44") && differ("6.13.0-rc1") && differ("model"));
        assert!(!differ("6.12.117+deb13-amd64") && !differ("5.15"));
        let more = difference(&of("6.12.1", [2, 3]), &of("6.12.1", [2, 4]));
        assert!(more.is_some());
    }
}

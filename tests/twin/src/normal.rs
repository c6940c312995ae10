//! What two recordings of one history have in common, and what not: everything is compared as the decoder reads it, so
//! ages, timers, counters, ports of sockets and sequence numbers have no part in it.

use tandem_linux::netlink::{self as nl, Event, NewMode, Nexthops, Object, Protocol};

use crate::player::is_route_error;
use crate::recording::{Answer, Dump, Out, Recording, Socket};

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

/// What the kernel says differently each time, of the same thing.
fn plain(mut object: Object) -> Object {
    if let Object::Link(l) = &mut object {
        // a packet socket that is there or not
        l.promiscuity = 0;
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

/// A frame without what the kernel draws at random: the IPv4 identification of what it made, and the header's checksum.
fn frame(out: &Out) -> Out {
    let mut out = out.clone();
    if out.made && out.frame.0.get(12..14) == Some(&[8, 0]) {
        for at in [18, 19, 24, 25] {
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

/// Where two recordings of one history differ first. `None`: nowhere.
#[must_use]
pub fn difference(a: &Recording, b: &Recording) -> Option<String> {
    if a.probes != b.probes || a.steps.len() != b.steps.len() {
        return Some("they are not of one history".into());
    }
    for (n, (x, y)) in a.steps.iter().zip(&b.steps).enumerate() {
        let words = x.command.as_ref().map_or("", |c| c.text.as_str());
        if x.command != y.command {
            return Some(format!("step {n}: {:?} and {:?}", x.command, y.command));
        }
        let (told_x, told_y) = (lasting(told(&x.told)), lasting(told(&y.told)));
        if told_x != told_y {
            return Some(format!(
                "step {n}, `{words}`: told {told_x:?} and {told_y:?}"
            ));
        }
        for (p, q) in state(&x.dumps).0.iter().zip(&state(&y.dumps).0) {
            if p.iter()
                .filter(|o| !is_nobody(o))
                .ne(q.iter().filter(|o| !is_nobody(o)))
            {
                return Some(format!("step {n}, `{words}`: dumps {p:?} and {q:?}"));
            }
        }
        for (i, (p, q)) in x.answers.iter().zip(&y.answers).enumerate() {
            if !same(p, q) {
                return Some(format!("step {n}, `{words}`, probe {i}: {p:?} and {q:?}"));
            }
        }
    }
    None
}

//! Fuzz entry: what becomes of messages that no kernel would send, in an order in which it would not send them.

use std::collections::BTreeSet;

use tandem_linux::netlink::{self as nl, Protocol};
use tandem_store::model::Event;

use super::view::{KernelView, Sink};

/// Front-panel ports 1 to 8 are the interfaces 1 to 8.
const PORTS: u32 = 8;

/// `data` is a list of steps: what to do, how many bytes (two, little endian), a datagram of so many. Notifications,
/// dumps of everything or of a part, doubts; what comes of each step is given to `each`, at least the empty dumps of the
/// beginning and the end. The view must come through, and what it says must be within what the store can take.
pub fn fuzz_view(data: &[u8], each: &mut dyn FnMut(Vec<Event>)) {
    let ports = (1..=PORTS).map(|n| (n, n as u16)).collect();
    let mut view = KernelView::new(ports);
    let mut rest = data;
    let mut full = false;
    let mut said = Vec::new();
    view.begin_full(&mut |e| said.push(e));
    view.end_full(None, &mut |e| said.push(e));
    each(said);
    while let [op, lo, hi, more @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*lo, *hi]));
        let (datagram, next) = more.split_at(len.min(more.len()));
        rest = next;
        let mut said = Vec::new();
        step(&mut view, *op, datagram, &mut full, &mut |e| said.push(e));
        each(said);
    }
    let mut said = Vec::new();
    if full {
        view.end_full(None, &mut |e| said.push(e));
    }
    view.begin_full(&mut |e| said.push(e));
    view.end_full(None, &mut |e| said.push(e));
    each(said);
}

fn step(view: &mut KernelView, op: u8, datagram: &[u8], full: &mut bool, sink: &mut Sink<'_>) {
    let mut events = Vec::new();
    nl::decode(Protocol::Route, datagram, |e| events.push(e));
    nl::decode(Protocol::Netfilter, datagram, |e| events.push(e));
    let objects = events.iter().filter_map(|e| match e {
        nl::Event::New(object, _) => Some(object.clone()),
        _ => None,
    });
    match op % 8 {
        0..=2 => {
            for event in events {
                view.event(event, sink);
            }
        }
        3 => {
            let objects: Vec<_> = objects.collect();
            view.touch(&objects);
            for object in objects {
                view.dumped(object, sink);
            }
        }
        4 => {
            *full = !*full;
            if *full {
                view.begin_full(sink);
            } else {
                view.end_full(None, sink);
            }
        }
        5 => {
            // as the listener: a check of one device's routes, or of all
            let ifindex = Some(u32::from(op >> 3)).filter(|i| *i != 0);
            view.begin_check(ifindex, false);
            for object in objects.filter(|o| matches!(o, nl::Object::Route(_))) {
                view.dumped(object, sink);
            }
            view.end_check(ifindex, false, sink);
            view.end_check(ifindex, true, sink);
        }
        6 => {
            let nexthops = objects.filter_map(|o| match o {
                nl::Object::Nexthop(n) => Some(n),
                _ => None,
            });
            view.check_nexthops(nexthops.collect(), sink);
            for group in view.take_mixed() {
                view.end_buckets(group, sink);
            }
        }
        _ => {
            view.tick(u64::from(op) << 10);
            let _ = (view.has_doubts(), view.take_doubts(), view.take_reread());
            let _ = (
                view.routes(),
                view.interfaces().count(),
                view.filter_dumps(),
            );
            view.without_ipv6(BTreeSet::from([u32::from(op >> 3)]), sink);
        }
    }
}

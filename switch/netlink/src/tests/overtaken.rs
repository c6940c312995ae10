//! Messages that a dump of everything has overtaken: what they speak of may be gone, and so may what it was put in place of.

use std::collections::BTreeMap;

use tandem_linux::netlink as nl;
use tandem_linux::netlink::{NewMode, Nexthops, Route};
use tandem_store::model::Event;

use super::super::view::KernelView;
use super::order6::follow;
use super::told::{link, new, next_hop, of, route, said, single};

/// Links that are up, 1 to 3.
fn port(index: u32, up: bool) -> nl::Object {
    let flags = if up { 0x1_0041 } else { 0 };
    nl::Object::Link(nl::Link {
        flags,
        ..link(index, 0, nl::LinkKind::Tun)
    })
}

fn replaced(r: &Route) -> nl::Event {
    nl::Event::New(of(r), NewMode::Replace(7))
}

fn gone(r: &Route) -> nl::Event {
    nl::Event::Del(of(r))
}

/// A dump of everything has found links and these routes.
fn dumped(routes: &[&Route]) -> (KernelView, Vec<Event>) {
    let mut view = KernelView::default();
    let mut events = Vec::new();
    view.begin_full(&mut |e| events.push(e));
    let links = (1..=3).map(|i| port(i, true));
    for object in links.chain(routes.iter().map(|r| of(r))) {
        view.dumped(object, &mut |e| events.push(e));
    }
    view.end_full(None, &mut |e| events.push(e));
    view.take_doubts();
    (view, events)
}

/// The devices of a key's routes in their order, as whoever takes all events has them.
fn left(events: Vec<Event>) -> Vec<u32> {
    let mut at = BTreeMap::new();
    events.into_iter().for_each(|e| follow(&mut at, e));
    at.into_values().collect()
}

/// A route took the place of one that the dump no longer has, and is gone again as well: what is there beside them stays, and is asked
/// for.
#[test]
fn what_a_replacement_of_before_displaced_does_not_go_with_it() {
    for (prefix, [here, there]) in [
        ("172.16.0.0/16", ["10.0.1.2", "10.0.2.2"]),
        ("2001:db8::/64", ["fe80::1", "fe80::2"]),
        ("2001:db8::/64", ["", ""]),
    ] {
        let way = |device, gateway| route(prefix, Nexthops::One(next_hop(device, gateway)));
        let (stays, passing) = (way(1, here), way(2, there));
        let v6 = prefix.contains(':');
        // it is deleted, or goes with its device
        for deleted in [true, false] {
            let (mut view, mut events) = dumped(&[&stays]);
            events.extend(said(&mut view, replaced(&passing)));
            assert!(!view.is_lost() && !view.has_doubts(), "nothing is gone yet");
            match deleted {
                true => events.extend(said(&mut view, gone(&passing))),
                false if v6 => continue, // of IPv6 the kernel tells
                false => events.extend(said(&mut view, new(port(2, false)))),
            }
            assert!(view.take_doubts().routes, "{prefix} {deleted}");
            view.begin_check(None, v6);
            view.dumped(of(&stays), &mut |e| events.push(e));
            view.end_check(None, v6, &mut |e| events.push(e));
            assert_eq!(left(events), [1]);
            assert!(!view.has_doubts());
        }
        // of several IPv6 routes such a look does not say how they stand
        let other = way(3, here);
        let (mut view, _) = dumped(&[&stays, &other]);
        said(&mut view, replaced(&passing));
        said(&mut view, gone(&passing));
        // by gateways they are one route of several ways, and went as one
        assert_eq!(view.is_lost(), v6 && here.is_empty(), "{prefix} {here:?}");
        assert!(view.is_lost() || view.has_doubts());
        // what was replaced after the dump, and what a message had told of, is as the messages say
        let (mut view, mut events) = dumped(&[&stays]);
        view.caught_up();
        for event in [replaced(&passing), gone(&passing)] {
            events.extend(said(&mut view, event));
        }
        assert!(!view.is_lost() && !view.has_doubts());
        assert_eq!(left(events), [0; 0]);
    }
}

/// A route by an object came and went with it, in silence, before the dump: nothing else tells that it is not there.
#[test]
fn a_route_by_an_object_that_is_not_there_is_asked_for() {
    for (prefix, nh_id) in [("172.16.0.0/16", 5), ("2001:db8::/64", 5)] {
        let by = Route {
            nh_id,
            ..route(prefix, Nexthops::One(next_hop(1, "")))
        };
        let (mut view, _) = dumped(&[]);
        said(&mut view, new(of(&by)));
        assert!(view.take_doubts().routes);
        // one that is there
        said(&mut view, new(single(nh_id, 1)));
        said(&mut view, new(of(&by)));
        assert!(!view.has_doubts());
    }
}

/// A device went down, or away, before the dump, with all that led there: the messages of that are applied to a device which is down or
/// away already.
#[test]
fn what_went_with_its_device_before_the_dump_goes() {
    let (down, away) = (3, 4);
    for device in [down, away] {
        let mut view = KernelView::default();
        view.begin_full(&mut |_| {});
        view.dumped(port(down, false), &mut |_| {});
        view.end_full(None, &mut |_| {});
        view.take_doubts();
        let by = Route {
            nh_id: 5,
            ..route("172.16.0.0/16", Nexthops::None)
        };
        let plain = route("172.17.0.0/16", Nexthops::One(next_hop(device, "10.0.3.2")));
        for object in [single(5, device), of(&by), of(&plain)] {
            said(&mut view, new(object));
        }
        assert_eq!(view.routes(), 2);
        if device == away {
            said(&mut view, nl::Event::Del(port(away, false)));
            assert_eq!(view.routes(), 0);
            continue;
        }
        assert!(!view.has_doubts());
        said(&mut view, new(port(down, false)));
        let doubts = view.take_doubts();
        assert!(doubts.nexthops && doubts.links.contains(&down));
    }
}

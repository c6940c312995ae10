//! IPv6 routes that share a key stand in the order in which they came, which no message tells.

use std::collections::BTreeMap;

use super::super::view::KernelView;
use super::{Lab, batch, told};
use tandem_core::source::Source;
use tandem_linux::netlink::{self as nl, NewMode, Nexthops};
use tandem_store::model::{Event, Key, Object, RouteNextHops};

const PAIRS: usize = 800;

/// A second device is looked at again and again (a preferred source goes) while routes come, each to one device and then to
/// the other: what such a look finds may not overtake what was told before it.
#[test]
fn a_look_at_one_device_does_not_overtake_messages() {
    churn("order6", false, |i| {
        format!(
            "addr add 2001:db8:9::{i:x}/128 dev d2 nodad
route add 2001:db8:8::/64 dev d2 src 2001:db8:9::{i:x}
addr del 2001:db8:9::{i:x}/128 dev d2
route add 2001:db8:77:{i:x}::/64 dev d1 metric 50
route append 2001:db8:77:{i:x}::/64 dev d2 metric 50
route del 2001:db8:8::/64
"
        )
    });
}

/// The same where everything is looked at: both are found at the end of this, and then the first one's deletion is heard.
#[test]
fn a_look_at_everything_does_not_overtake_messages() {
    churn("all6", true, |i| {
        let route = format!("2001:db8:77:{i:x}::/64");
        format!(
            "route add {route} dev d1 metric 50
route del {route} dev d1 metric 50
route add {route} dev d1 metric 50
route append {route} dev d2 metric 50
"
        )
    });
}

/// Runs all `commands` while the source listens, and with `everything` looks at everything again and again; each prefix
/// then has a route to d1 and one to d2, in this order.
fn churn(what: &str, everything: bool, commands: impl Fn(usize) -> String) {
    let setup = "link add d1 type veth peer name p1
link add d2 type veth peer name p2
link set p1 up
link set p2 up
link set d1 up
link set d2 up
";
    let Some(mut lab) = Lab::with(what, setup, Default::default()) else {
        return;
    };
    lab.sync();
    let commands: String = (0..PAIRS).map(commands).collect();
    std::thread::scope(|s| {
        let name = lab.name.clone();
        let ip = s.spawn(move || batch(&name, &commands));
        while !ip.is_finished() {
            if everything {
                lab.source.resync();
            }
            lab.sync();
        }
    });
    lab.sync();
    let indexes: Vec<u32> = ["d1", "d2"].map(|d| index(&lab, d)).into();
    let mut found: BTreeMap<String, Vec<(u16, u32)>> = BTreeMap::new();
    for (prefix, at) in lab.mirror.get(|o| match o {
        Object::Route(r) if r.key.metric == 50 => {
            let RouteNextHops::One(hop) = &r.nexthops else {
                return None;
            };
            Some((r.key.prefix.to_string(), (r.key.position, hop.ifindex)))
        }
        _ => None,
    }) {
        found.entry(prefix).or_default().push(at);
    }
    assert_eq!(found.len(), PAIRS);
    for (prefix, mut aliases) in found {
        aliases.sort_unstable();
        let order: Vec<u32> = aliases.iter().map(|(_, index)| *index).collect();
        assert_eq!(order, indexes, "{prefix}");
    }
}

/// What was lost without a word: a dump of everything has the kernel's order, and brings it.
#[test]
fn a_dump_of_everything_brings_the_kernels_order() {
    let route = |ifindex, gateway: Option<&str>| {
        let hop = |gateway| told::next_hop(ifindex, gateway);
        let nexthops = match gateway {
            // two next hops: such a route joins, and its next hops may have changed meanwhile
            Some(g) => Nexthops::Many([hop(g), hop("fe80::99")].into()),
            None => Nexthops::One(hop("")),
        };
        nl::Object::Route(told::route("2001:db8:77::/64", nexthops))
    };
    let mut view = KernelView::new([(1, 1), (2, 2), (3, 3)].into());
    let mut at = BTreeMap::new();
    let mut said = Vec::new();
    for (ifindex, gateway) in [(1, None), (2, Some("fe80::1")), (3, None)] {
        let event = nl::Event::New(route(ifindex, gateway), NewMode::Append);
        view.event(event, &mut |e| said.push(e));
    }
    said.drain(..).for_each(|e| follow(&mut at, e));
    assert_eq!(at.values().copied().collect::<Vec<_>>(), [1, 2, 3]);
    for order in [[3, 2, 1], [2, 1, 3], [1, 3, 2], [2, 3, 1]] {
        view.begin_full(&mut |e| said.push(e));
        for ifindex in order {
            let gateway = (ifindex == 2).then(|| format!("fe80::{}", order[0]));
            view.dumped(route(ifindex, gateway.as_deref()), &mut |e| said.push(e));
        }
        view.end_full(None, &mut |e| said.push(e));
        view.caught_up();
        said.drain(..).for_each(|e| follow(&mut at, e));
        assert_eq!(at.values().copied().collect::<Vec<_>>(), order);
    }
}

/// Keeps which interface a route's first next hop leads to, by position.
pub(super) fn follow(at: &mut BTreeMap<u16, u32>, event: Event) {
    match event {
        Event::Upsert(_, Object::Route(r)) => {
            let ifindex = match &r.nexthops {
                RouteNextHops::One(hop) => hop.ifindex,
                RouteNextHops::Many(hops) => hops.first().map_or(0, |h| h.ifindex),
                _ => 0,
            };
            at.insert(r.key.position, ifindex);
        }
        Event::Remove(_, Key::Route(key)) => {
            at.remove(&key.position);
        }
        // what is not said again is gone
        Event::BeginSync(..) => at.clear(),
        _ => {}
    }
}

fn index(lab: &Lab, device: &str) -> u32 {
    let all = lab.json("link show");
    let links = all.as_array().unwrap().iter();
    let mut found = links.filter(|l| l["ifname"] == device);
    found.next().unwrap()["ifindex"].as_u64().unwrap() as u32
}

/// A look at one device finds a route before its own message says in whose place it stands.
#[test]
fn a_route_found_before_its_message_takes_the_place_that_it_names() {
    let way = |ifindex, gateway| {
        let hop = told::next_hop(ifindex, gateway);
        nl::Object::Route(told::route("2001:db8:77::/64", Nexthops::One(hop)))
    };
    // a route that joins, and one that does not, in the place of one of either kind
    for old in ["", "fe80::1"] {
        for new in ["", "fe80::2"] {
            let mut view = KernelView::new([(1, 1), (2, 2)].into());
            let mut at = BTreeMap::new();
            let mut said = Vec::new();
            let first = nl::Event::New(way(1, old), NewMode::Append);
            view.event(first, &mut |e| said.push(e));
            view.begin_check(Some(2), true);
            view.dumped(way(2, new), &mut |e| said.push(e));
            view.end_check(Some(2), true, &mut |e| said.push(e));
            let replaced = nl::Event::New(way(2, new), NewMode::Replace(7));
            view.event(replaced, &mut |e| said.push(e));
            said.drain(..).for_each(|e| follow(&mut at, e));
            let left: Vec<u32> = at.into_values().collect();
            assert_eq!(left, [2], "{old:?} replaced by {new:?}");
            assert!(!view.is_lost());
        }
    }
}

/// A dump of everything overtakes a route and what replaced it: it finds the second alone. Their messages put the first one back, and
/// all routes are asked for once more.
#[test]
fn what_was_replaced_before_a_dump_of_everything_does_not_stay() {
    let way = |ifindex| {
        let hop = told::next_hop(ifindex, "");
        nl::Object::Route(told::route("2001:db8:77::/64", Nexthops::One(hop)))
    };
    let replaced = || nl::Event::New(way(2), NewMode::Replace(7));
    let mut view = KernelView::new([(1, 1), (2, 2)].into());
    view.begin_full(&mut |_| {});
    view.dumped(way(2), &mut |_| {});
    view.end_full(None, &mut |_| {});
    view.take_doubts();
    view.event(nl::Event::New(way(1), NewMode::Plain), &mut |_| {});
    assert!(!view.take_doubts().routes);
    view.event(replaced(), &mut |_| {});
    assert!(view.take_doubts().routes);
    view.begin_check(None, true);
    view.dumped(way(2), &mut |_| {});
    view.end_check(None, true, &mut |_| {});
    assert_eq!(view.routes(), 1);
    view.caught_up();
    // nothing is asked for where no dump was
    view.event(nl::Event::New(way(1), NewMode::Append), &mut |_| {});
    view.event(replaced(), &mut |_| {});
    assert!(!view.take_doubts().routes);
}

/// A route took another's place, and both its message and the dump's are still to come or have come: none of those that the
/// kernel has beside it goes with the message.
#[test]
fn a_route_whose_predecessor_a_dump_has_lost_takes_no_other_ones_place() {
    let way = |ifindex, gateway| {
        let hop = told::next_hop(ifindex, gateway);
        nl::Object::Route(told::route("2001:db8:77::/64", Nexthops::One(hop)))
    };
    let event = |object, mode| nl::Event::New(object, mode);
    let left = |said: Vec<Event>| {
        let mut at = BTreeMap::new();
        said.into_iter().for_each(|e| follow(&mut at, e));
        at.into_values().collect::<Vec<u32>>()
    };
    // one that joins others beside one that does not, and two of which none joins
    for other in ["fe80::1", ""] {
        // a dump of everything finds what took the place of the route to 2; that one was known before, or not
        for known in [true, false] {
            let mut view = KernelView::new([(1, 1), (2, 2), (3, 3)].into());
            let mut said = Vec::new();
            if known {
                view.event(event(way(1, other), NewMode::Append), &mut |_| {});
                view.event(event(way(2, ""), NewMode::Append), &mut |_| {});
            }
            view.begin_full(&mut |e| said.push(e));
            view.dumped(way(1, other), &mut |e| said.push(e));
            view.dumped(way(3, ""), &mut |e| said.push(e));
            view.end_full(None, &mut |e| said.push(e));
            view.event(event(way(3, ""), NewMode::Replace(7)), &mut |e| {
                said.push(e)
            });
            assert_eq!(left(said), [1, 3], "{other:?}, known before: {known}");
        }
        // it went again, before the dump or after it
        for came in [false, true] {
            let mut view = KernelView::new([(1, 1), (2, 2), (3, 3)].into());
            let mut said = Vec::new();
            view.event(event(way(1, other), NewMode::Append), &mut |_| {});
            view.event(event(way(2, ""), NewMode::Append), &mut |_| {});
            view.begin_full(&mut |e| said.push(e));
            view.dumped(way(1, other), &mut |e| said.push(e));
            if came {
                view.dumped(way(3, ""), &mut |e| said.push(e));
            }
            view.end_full(None, &mut |e| said.push(e));
            let came = [
                event(way(3, ""), NewMode::Append),
                nl::Event::Del(way(3, "")),
                event(way(3, ""), NewMode::Replace(7)),
            ];
            came.into_iter()
                .for_each(|e| view.event(e, &mut |e| said.push(e)));
            assert!(view.is_lost(), "whose place it took is to be asked");
            assert_eq!(left(said), [1, 3], "{other:?}");
        }
    }
    // a look at its device finds it, and not the one of the same device in whose place it came
    let mut view = KernelView::new([(1, 1), (2, 2)].into());
    let mut said = Vec::new();
    let other = |gateway| way(2, gateway);
    view.event(event(way(1, ""), NewMode::Append), &mut |e| said.push(e));
    view.event(event(other("fe80::1"), NewMode::Append), &mut |e| {
        said.push(e)
    });
    view.begin_check(Some(2), true);
    view.dumped(other(""), &mut |e| said.push(e));
    view.end_check(Some(2), true, &mut |e| said.push(e));
    view.event(event(other(""), NewMode::Replace(7)), &mut |e| said.push(e));
    assert!(view.is_lost());
    assert_eq!(left(said), [1, 2]);
}

/// An address goes, and with it what a route preferred: it stays where it is, whatever comes behind it before a look.
#[test]
fn who_loses_a_preferred_source_keeps_its_place() {
    let address = |ifindex| {
        nl::Object::Addr(nl::Addr {
            ifindex,
            local: "fd00::1".parse().unwrap(),
            prefix_len: 64,
            peer: None,
            flags: 0,
            scope: 0,
        })
    };
    let way = |ifindex, prefers: bool| {
        let hop = told::next_hop(ifindex, "");
        nl::Object::Route(nl::Route {
            prefsrc: prefers.then(|| "fd00::1".parse().unwrap()),
            ..told::route("2001:db8:77::/64", Nexthops::One(hop))
        })
    };
    // alone as it goes, or with others
    for before in [false, true] {
        let mut view = KernelView::new([(1, 1), (2, 2)].into());
        let mut at = BTreeMap::new();
        let mut said = Vec::new();
        let other = || nl::Event::New(way(2, false), NewMode::Append);
        let mut events = vec![
            told::new(address(1)),
            nl::Event::New(way(1, true), NewMode::Plain),
            other(),
            nl::Event::Del(address(1)),
        ];
        if !before {
            events.swap(2, 3);
        }
        for event in events {
            view.event(event, &mut |e| said.push(e));
        }
        let sources = said.iter().filter_map(|e| match e {
            Event::Upsert(_, Object::Route(r)) => Some(r.prefsrc.is_some()),
            _ => None,
        });
        assert_eq!(sources.filter(|prefers| *prefers).count(), 1);
        assert!(!view.is_lost(), "where it stands is known");
        assert!(view.take_doubts().links.contains(&1));
        view.begin_check(Some(1), true);
        view.dumped(way(1, false), &mut |e| said.push(e));
        assert_eq!(view.end_check(Some(1), true, &mut |e| said.push(e)), 0);
        said.drain(..).for_each(|e| follow(&mut at, e));
        assert_eq!(at.into_values().collect::<Vec<u32>>(), [1, 2]);
    }
    // another device has the address as well: the kernel's version decides, and everything is asked for
    let mut view = KernelView::new([(1, 1), (2, 2)].into());
    for event in [
        told::new(address(1)),
        told::new(address(2)),
        nl::Event::New(way(1, true), NewMode::Plain),
        nl::Event::New(way(2, false), NewMode::Append),
        nl::Event::Del(address(1)),
    ] {
        view.event(event, &mut |_| {});
    }
    assert!(view.is_lost());
}

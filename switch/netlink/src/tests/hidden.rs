//! IPv6 routes between the next hops of another: no dump shows them, and `/proc/net/ipv6_route` says that they are there.

use std::collections::BTreeMap;

use super::super::fib::{Hiding, Lines};
use super::super::view::KernelView;
use super::{Lab, told};
use tandem_core::source::Source;
use tandem_linux::netlink::{self as nl, NewMode, Nexthops};
use tandem_store::model::{Event, Key, Object, RouteNextHops, RouteType, Unsupported};

const PREFIX: &str = "2001:db8:77::/64";

/// What stands at the prefix, in order.
fn at_prefix(lab: &Lab) -> Vec<String> {
    let found = lab.mirror.get(|o| match o {
        Object::Route(r) if r.key.prefix.to_string() == PREFIX => {
            Some((r.key.position, text(r.kind, &r.nexthops, r.unsupported)))
        }
        _ => None,
    });
    let found: BTreeMap<u16, String> = found.into_iter().collect();
    found.into_values().collect()
}

fn text(kind: RouteType, nexthops: &RouteNextHops, unsupported: Option<Unsupported>) -> String {
    match (unsupported, nexthops) {
        (Some(Unsupported::Hidden), _) => "hidden".to_owned(),
        (Some(other), _) => format!("{other:?}"),
        (None, RouteNextHops::Many(hops)) => format!("{} ways", hops.len()),
        (None, _) => format!("{kind:?}"),
    }
}

const LINKS: &str = "link add d1 type veth peer name p1
link add d2 type veth peer name p2
link set p1 up
link set p2 up
link set d1 up
link set d2 up
addr add 2001:db8:1::1/64 dev d1 nodad
addr add 2001:db8:2::1/64 dev d2 nodad
";

/// A new switchd and one that has lost messages find it, and what becomes of it when the other goes, shrinks, or is replaced.
#[test]
fn a_dump_of_everything_finds_what_the_kernel_hides() {
    let setup = format!(
        "{LINKS}route add {PREFIX} via 2001:db8:1::2 metric 50
route append unreachable {PREFIX} metric 50
route append {PREFIX} via 2001:db8:2::2 metric 50
"
    );
    let Some(mut lab) = Lab::with("hide6", &setup, Default::default()) else {
        return;
    };
    let main = ["2 ways".to_owned(), "hidden".to_owned()];
    lab.sync();
    assert_eq!(at_prefix(&lab), main);
    // one way goes: what is left does not hide the other
    lab.ip("route del 2001:db8:77::/64 via 2001:db8:2::2 metric 50");
    lab.sync();
    assert_eq!(at_prefix(&lab), ["Unicast", "Unreachable"]);
    lab.ip("route append 2001:db8:77::/64 via 2001:db8:2::2 metric 50");
    lab.sync();
    assert_eq!(at_prefix(&lab), ["2 ways", "Unreachable"], "as told");
    lab.source.resync();
    lab.sync();
    assert_eq!(at_prefix(&lab), main);
    // a route that joins none takes the hidden one's place
    lab.ip("route replace blackhole 2001:db8:77::/64 metric 50");
    lab.sync();
    assert_eq!(at_prefix(&lab), main);
    lab.ip("route del 2001:db8:77::/64 via 2001:db8:1::2 metric 50");
    lab.sync();
    assert_eq!(at_prefix(&lab), ["Blackhole", "Unicast"]);
}

/// A look at its device, or at all of them, leaves it.
#[test]
fn a_look_leaves_what_the_kernel_hides() {
    let Some(mut lab) = Lab::with("spare6", LINKS, Default::default()) else {
        return;
    };
    lab.sync();
    lab.ip("route add 2001:db8:77::/64 via 2001:db8:1::2 metric 50
route append 2001:db8:77::/64 dev d2 metric 50
route append 2001:db8:77::/64 via 2001:db8:2::2 metric 50
");
    lab.sync();
    assert_eq!(at_prefix(&lab), ["2 ways", "Unicast"]);
    for _ in 0..2 {
        // d2 is looked at
        lab.ip("link set p2 down");
        lab.sync();
        lab.ip("link set p2 up");
        lab.sync();
        assert_eq!(at_prefix(&lab), ["2 ways", "Unicast"]);
    }
    let silent = lab.source.status().silent;
    assert_eq!(silent, 0, "nothing went in silence");
}

const FD22: &str = "fd220000000000000000000000000000 40 00000000000000000000000000000000 00";
const REST: &str = "00000000 00000001 00000000 00000003 swp1";

/// The prefix and metrics that have several next hops here.
fn of() -> Hiding {
    let place = |metric| ("fd22::/64".parse().unwrap(), metric);
    [0x400, 0x10].map(place).into()
}

fn lines(metrics: &[&str]) -> Option<Lines> {
    let line = |metric: &&str| format!("{FD22} fd010000000000000000000000000002 {metric} {REST}\n");
    let text: String = metrics.iter().map(line).collect();
    Lines::read(&|_| Some(text.clone()), &of())
}

fn many(metric: u32) -> nl::Object {
    let ways = ["fd01::2", "fd01::3"].map(|gateway| told::next_hop(1, gateway));
    nl::Object::Route(nl::Route {
        metric,
        ..told::route("fd22::/64", Nexthops::Many(ways.into()))
    })
}

/// Which keys hide something, by metric: what a dump of two multipath routes and these lines tell.
fn hiding(metrics: &[&str]) -> Vec<u32> {
    let mut view = KernelView::new([(1, 1)].into());
    let mut said = Vec::new();
    view.begin_full(&mut |e| said.push(e));
    view.dumped(many(0x400), &mut |e| said.push(e));
    view.dumped(many(0x10), &mut |e| said.push(e));
    assert_eq!(view.hiding(), Some(of()));
    view.end_full(lines(metrics).as_ref(), &mut |e| said.push(e));
    let mut hiding = Vec::new();
    for event in said {
        if let Event::Upsert(_, Object::Route(r)) = event
            && r.unsupported == Some(Unsupported::Hidden)
        {
            hiding.push(r.key.metric);
        }
    }
    hiding
}

#[test]
fn more_lines_than_next_hops_are_a_hidden_route() {
    assert_eq!(
        hiding(&["00000400", "00000400", "00000010", "00000010"]),
        Vec::<u32>::new()
    );
    assert_eq!(hiding(&["00000400", "00000400", "00000400"]), [0x400]);
    let both = [
        "00000400", "00000400", "00000400", "00000010", "00000010", "00000010",
    ];
    let mut found = hiding(&both);
    found.sort_unstable();
    assert_eq!(found, [0x10, 0x400]);
    assert_eq!(hiding(&[]), Vec::<u32>::new());
}

/// Two routes that nothing tells apart are one here, and two lines.
#[test]
fn equal_routes_have_a_line_each() {
    let hidden = |n: usize| {
        let mut view = KernelView::new([(1, 1)].into());
        let mut said = Vec::new();
        view.begin_full(&mut |_| {});
        let alone = || {
            nl::Object::Route(nl::Route {
                metric: 0x400,
                ..told::route("fd22::/64", Nexthops::One(told::next_hop(1, "")))
            })
        };
        for object in [alone(), alone(), many(0x400)] {
            view.dumped(object, &mut |_| {});
        }
        view.end_full(lines(&vec!["00000400"; n]).as_ref(), &mut |e| said.push(e));
        said.iter().any(|e| matches!(e, Event::Upsert(_, Object::Route(r)) if r.unsupported == Some(Unsupported::Hidden)))
    };
    assert!(!hidden(4));
    assert!(hidden(5));
}

/// The file takes the kernel time that grows with the square of the routes.
#[test]
fn of_many_routes_the_file_is_not_read() {
    let mut view = KernelView::new([(1, 1)].into());
    view.begin_full(&mut |_| {});
    view.dumped(many(0x400), &mut |_| {});
    // a line for each of its two next hops
    for n in 1..4095 {
        let dst = format!("2001:db8:{n:x}::/48");
        let other = told::route(&dst, Nexthops::One(told::next_hop(1, "")));
        view.dumped(nl::Object::Route(other), &mut |_| {});
    }
    assert!(view.hiding().is_some());
    let one = told::route("2001:db9::/48", Nexthops::One(told::next_hop(1, "")));
    view.dumped(nl::Object::Route(one), &mut |_| {});
    assert!(view.hiding().is_none());
}

/// A file that never says the same twice of such a key is believed, and read again with another dump of everything.
#[test]
fn lines_that_do_not_stand_still_are_read_again() {
    let n = std::cell::Cell::new(2);
    let restless = |_: &str| {
        n.set(n.get() + 1);
        let line = format!("{FD22} fd010000000000000000000000000002 00000400 {REST}\n");
        Some(line.repeat(n.get()))
    };
    let mut view = KernelView::new([(1, 1)].into());
    let mut said = Vec::new();
    view.begin_full(&mut |_| {});
    view.dumped(many(0x400), &mut |_| {});
    let lines = Lines::read(&restless, &of());
    view.end_full(lines.as_ref(), &mut |e| said.push(e));
    let hidden = |e: &Event| matches!(e, Event::Upsert(_, Object::Route(r)) if r.unsupported == Some(Unsupported::Hidden));
    assert!(said.iter().any(hidden) && view.is_lost());
    view.begin_full(&mut |_| {});
    assert!(!view.is_lost());
    assert!(Lines::read(&|_| None, &of()).is_none());
}

/// What comes and goes elsewhere meanwhile says nothing of these keys.
#[test]
fn other_prefixes_need_not_stand_still() {
    let n = std::cell::Cell::new(0);
    let busy = |_: &str| {
        n.set(n.get() + 1);
        let other = FD22.replacen("fd22", "fd23", 1);
        let line = |dst: &str| format!("{dst} fd010000000000000000000000000002 00000400 {REST}\n");
        Some(line(FD22).repeat(3) + &line(&other).repeat(n.get()))
    };
    assert_eq!(Lines::read(&busy, &of()), lines(&["00000400"; 3]));
    assert_eq!(n.get(), 2);
}

/// Whatever is told of such a key, and whatever goes in silence, is a reason to look.
#[test]
fn messages_about_a_hidden_route_bring_a_look_at_everything() {
    let known = || {
        let mut view = KernelView::new([(1, 1)].into());
        view.begin_full(&mut |_| {});
        view.dumped(many(0x400), &mut |_| {});
        view.end_full(lines(&["00000400"; 3]).as_ref(), &mut |_| {});
        let link = nl::Object::Link(told::link(1, 0, nl::LinkKind::Tun));
        let _ = told::said(&mut view, told::new(link));
        assert!(!view.is_lost());
        view
    };
    let mut view = known();
    let gone = told::said(&mut view, nl::Event::Del(many(0x400)));
    assert!(view.is_lost());
    // the hidden one still traps
    assert!(matches!(gone.as_slice(), [Event::Remove(_, Key::Route(k))] if k.position == 0));
    let mut view = known();
    let other = nl::Route {
        metric: 0x400,
        ..told::route("fd22::/64", Nexthops::One(told::next_hop(1, "")))
    };
    let replaced = nl::Event::New(nl::Object::Route(other), NewMode::Replace(7));
    let _ = told::said(&mut view, replaced);
    assert!(view.is_lost());
    let mut view = known();
    let down = nl::Link {
        flags: 0,
        ..told::link(1, 0, nl::LinkKind::Tun)
    };
    let _ = told::said(&mut view, told::new(nl::Object::Link(down)));
    assert!(view.is_lost());
}

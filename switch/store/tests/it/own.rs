//! Own addresses: nobody may send from them, and the chip knows that by their entries alone.
//!
//! ```text
//!   from 10.3.0.3 ──► port ──► chip: longest match of the source
//!                                 LOCAL: to the CPU, which drops it (net/ipv4/fib_frontend.c __fib_validate_source)
//!                                 else:  forwarded
//! ```

use crate::common::*;
use std::net::IpAddr;
use tandem_abi::object::read_object;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

/// Why the chip's entry of an IPv4 prefix traps.
fn reason(r: &mut Rig, prefix: &str) -> Option<u8> {
    let key = key(prefix).prefix;
    let mut all = r.chip.dump::<tnd_route>(TND_CLS_ROUTE).into_iter();
    let is = |x: &tnd_route| {
        u32::from(x.family) == u32::from(TND_AF_INET)
            && x.prefix_len == key.prefix_len()
            && key.addr() == IpAddr::from([x.addr[0], x.addr[1], x.addr[2], x.addr[3]])
    };
    all.find(is)
        .filter(|x| x.action == TND_ACT_TRAP)
        .map(|x| x.reason)
}

#[test]
fn an_own_prefix_stays_own_beside_a_route_with_a_tos() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(local("10.9.0.0/25", 12, RouteType::Local));
    r.settle();
    assert_eq!(reason(&mut r, "10.9.0.0/25"), Some(TND_TRAP_LOCAL as u8));
    let mut other = route("10.9.0.0/25", RouteNextHops::None);
    other.kind = RouteType::Blackhole;
    other.key.tos = 0x10;
    other.key.table = TABLE_MAIN;
    r.up(Object::Route(other));
    r.settle();
    assert_eq!(reason(&mut r, "10.9.0.0/25"), Some(TND_TRAP_LOCAL as u8));
}

/// The audit asks a second store, which has all of it new.
#[test]
fn own_prefixes_that_lack_are_known_by_another_store() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    let of = tnd_route {
        family: TND_AF_INET,
        prefix_len: 25,
        addr: [10, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ..Default::default()
    };
    assert!(!r.store.is_own(&of));
    let own = local("10.9.0.0/25", 12, RouteType::Local);
    let Object::Route(route) = own.clone() else {
        panic!("no route")
    };
    r.up(own);
    assert!(r.store.is_own(&of));
    assert!(!r.store.is_own(&tnd_route { vrf: 7, ..of }));
    assert!(!r.store.is_own(&tnd_route {
        prefix_len: 24,
        ..of
    }));
    r.del(Key::Route(route.key));
    r.settle();
    assert!(!r.store.is_own(&of));
    r.up(via("10.9.0.0/25", 11, "10.1.0.2"));
    assert!(!r.store.is_own(&of));
}

#[test]
fn an_own_route_that_another_hides_makes_no_prefix_own() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    // in one table, with a larger metric than the one by a gateway; and one with a type of service
    r.up(via("10.9.0.0/25", 11, "10.1.0.2"));
    let mut hidden = route("10.9.0.0/25", RouteNextHops::One(hop(12, "")));
    hidden.kind = RouteType::Local;
    hidden.key.metric = 20;
    r.up(Object::Route(hidden));
    let mut other = route("10.9.0.0/25", RouteNextHops::None);
    other.kind = RouteType::Blackhole;
    other.key.tos = 0x10;
    r.up(Object::Route(other.clone()));
    r.settle();
    assert_eq!(reason(&mut r, "10.9.0.0/25"), Some(TND_TRAP_ROUTE as u8));
    // the one with a type of service is own
    r.del(Key::Route(other.key));
    other.kind = RouteType::Local;
    r.up(Object::Route(other));
    r.settle();
    assert_eq!(reason(&mut r, "10.9.0.0/25"), Some(TND_TRAP_LOCAL as u8));
}

/// Whatever else such a route asks for, and where a wider one of the local table answers first.
#[test]
fn what_the_chip_can_not_do_for_an_own_prefix_leaves_it_own() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    let mut odd = route("10.9.0.0/25", RouteNextHops::One(hop(12, "")));
    odd.kind = RouteType::Local;
    odd.key.table = TABLE_LOCAL;
    odd.unsupported = Some(Unsupported::Encap);
    r.up(Object::Route(odd));
    r.up(local("11.0.0.0/8", 12, RouteType::Local));
    let mut inside = route("11.9.0.0/25", RouteNextHops::One(hop(11, "10.1.0.2")));
    inside.key.tos = 0x10;
    r.up(Object::Route(inside));
    r.settle();
    assert_eq!(reason(&mut r, "10.9.0.0/25"), Some(TND_TRAP_LOCAL as u8));
    // left out below the wider one, which says the same
    let inside = reason(&mut r, "11.9.0.0/25");
    assert_eq!(inside.unwrap_or(TND_TRAP_LOCAL as u8), TND_TRAP_LOCAL as u8);
    assert_eq!(reason(&mut r, "11.0.0.0/8"), Some(TND_TRAP_LOCAL as u8));
}

#[test]
fn own_addresses_stand_before_anything_is_forwarded() {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    // in table main: it comes last, and is everybody's source who has no longer prefix
    let mut all = route("0.0.0.0/0", RouteNextHops::One(hop(12, "")));
    all.kind = RouteType::Local;
    r.up(Object::Route(all));
    r.up(via("40.0.0.0/8", 11, "10.1.0.2"));
    r.up(via("40.1.0.1/32", 11, "10.1.0.2"));
    r.settle();
    for first in [0, 1] {
        // its power failed
        r.chip.cold();
        r.store.attach(Attach::Cold, r.now);
        let mut done = Vec::new();
        let note = |p: &Planned| {
            if p.op == TND_OP_CREATE {
                done.push(match p.cls {
                    TND_CLS_NEIGH => "forwards",
                    TND_CLS_ROUTE => {
                        let (body, _) = read_object::<tnd_route>(p.body.bytes()).unwrap();
                        match (body.action, u16::from(body.reason)) {
                            (TND_ACT_TRAP, TND_TRAP_LOCAL) => "own",
                            (TND_ACT_TRAP, _) => "traps",
                            _ => "forwards",
                        }
                    }
                    _ => "refers",
                });
            }
            Fate::Done
        };
        r.play(first, note, |_| {});
        let own = done.iter().rposition(|x| *x == "own").unwrap();
        let forwards = done.iter().position(|x| *x == "forwards").unwrap();
        assert!(own < forwards, "{done:?}");
        // two gateways, two routes by them; two addresses, two broadcast addresses less, and the rest
        let count = |what| done.iter().filter(|x| **x == what).count();
        assert_eq!((count("forwards"), count("own")), (4, 3), "{done:?}");
    }
}

/// An own prefix has no room, and nothing above it is the switch's own: what comes in is the kernel's until it has.
#[test]
fn without_room_for_an_own_prefix_interfaces_trap() {
    let mut r = Rig::tiny(12, Policy::Trap);
    r.begin();
    interface(&mut r, 1);
    interface(&mut r, 2);
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    let are = |r: &Rig, routed: bool| {
        let is = |x: &tnd_rif| (x.flags & TND_RIF_V4 != 0) == routed;
        r.chip.rifs.len() == 2 && r.chip.rifs.values().all(is)
    };
    assert!(are(&r, true));
    // prefixes that no other one stands above, until two own ones have no room
    let own = |n: u8| local(&format!("{}.0.0.0/8", 30 + n), 12, RouteType::Local);
    let mut many = 0;
    while many < 30 && r.store.failures(100).len() < 2 {
        r.up(own(many));
        r.settle();
        many += 1;
    }
    assert!(many < 30);
    assert!(are(&r, false), "{:?}", r.chip.rifs);
    assert!(words(&r.store.port_reason(11)).contains("an own prefix is not in hardware"));
    // one goes that has none, then another one whose room the last one takes
    let del = |r: &mut Rig, n: u8| {
        let Object::Route(x) = own(n) else {
            unreachable!()
        };
        r.del(Key::Route(x.key));
        r.settle();
    };
    del(&mut r, many - 1);
    assert!(are(&r, false));
    del(&mut r, 0);
    assert!(are(&r, true), "{:?}", r.store.failures(10));
    assert_eq!(words(&r.store.port_reason(11)), "");
}

/// Another core has left interfaces that leave IPv4 to the kernel, as an own prefix has no room: they do until it is known that all have.
#[test]
fn what_an_earlier_core_left_to_the_kernel_stays_until_routes_stand() {
    for room in [false, true] {
        let mut r = Rig::tiny(12, Policy::Trap);
        r.begin();
        interface(&mut r, 1);
        interface(&mut r, 2);
        r.end();
        r.store.attach(Attach::Cold, 0);
        let own = |n: u8| local(&format!("{}.0.0.0/8", 30 + n), 12, RouteType::Local);
        let mut many = 0;
        while many < 30 && r.store.failures(100).len() < 2 {
            r.up(own(many));
            r.settle();
            many += 1;
        }
        assert!(r.chip.rifs.values().all(|x| x.flags & TND_RIF_V4 == 0));
        // the next core finds fewer, or as many
        for n in 0..if room { many } else { 0 } {
            let Object::Route(x) = own(n) else {
                unreachable!()
            };
            r.del(Key::Route(x.key));
        }
        r.attach_warm();
        let mut early = 0;
        let mut own_written = false;
        let fate = |p: &Planned| {
            if p.cls == TND_CLS_RIF {
                let (b, _) = read_object::<tnd_rif>(p.body.bytes()).unwrap();
                let early_or_wrong = !room || !own_written;
                early += u32::from(early_or_wrong && b.flags & TND_RIF_V4 != 0);
            }
            own_written |= p.cls == TND_CLS_ROUTE;
            Fate::Done
        };
        r.play(0, fate, |_| {});
        assert_eq!(early, 0, "room: {room}");
        let routed = r.chip.rifs.values().all(|x| x.flags & TND_RIF_V4 != 0);
        assert_eq!(routed, room);
        assert!(r.store.idle());
    }
}

/// An own prefix finds no room, and is written once more with what is kept for it. What covers it moves meanwhile: nobody is answered
/// by the new way for it.
#[test]
fn what_covers_an_own_prefix_waits_while_it_is_tried_again() {
    let other = |n: u8| via(&format!("{}.0.0.0/8", 60 + n), 11, "10.1.0.2");
    let filled = |many: u8| {
        let mut r = Rig::tiny(16, Policy::Trap);
        with_default(&mut r);
        (0..many).for_each(|n| r.up(other(n)));
        r.settle();
        r
    };
    let full = (0..30).take_while(|n| filled(*n).store.failures(10).is_empty());
    let mut r = filled(full.last().unwrap());
    let to: IpAddr = "40.1.0.1".parse().unwrap();
    assert!(by(101, &r.chip.lookup(to)));
    r.up(local("40.1.0.1/32", 12, RouteType::Local));
    r.plan();
    r.up(via("0.0.0.0/0", 12, "10.2.0.2"));
    let (mut answers, mut leased) = (Vec::new(), false);
    let note = |p: &Planned| {
        leased |= p.flags & TND_CMD_LEASE != 0 && p.cls == TND_CLS_ROUTE;
        Fate::Done
    };
    r.play(1, note, |r| answers.push(r.chip.lookup(to)));
    assert!(leased);
    assert_eq!(reason(&mut r, "40.1.0.1/32"), Some(TND_TRAP_LOCAL as u8));
    for a in answers {
        assert!(by(101, &a) || a == Answer::Trap, "{a:?}");
    }
}

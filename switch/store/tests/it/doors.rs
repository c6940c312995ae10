//! Interfaces that take more or less than they did, and routes of the same moment: two rings, and the kernel's order.

use crate::common::bridged::*;
use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

/// A policy rule that nobody is routed beside.
fn rule() -> Rule {
    Rule {
        family: Family::V4,
        priority: 100,
        table: 0,
        is_default: false,
        l3mdev: false,
        iif: String::new(),
        text: "from all blackhole".into(),
    }
}

fn rig() -> Rig {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    // its next hop is there
    r.up(via("50.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    r
}

fn routed(r: &Rig) -> bool {
    let lets = |x: &tnd_rif| x.flags & TND_RIF_V4 != 0;
    assert!(!r.chip.rifs.is_empty());
    r.chip.rifs.values().any(lets)
}

/// What waits on a ring.
fn waits(r: &Rig, ring: usize) -> usize {
    r.chip.rings[ring].len()
}

#[test]
fn no_route_is_written_while_an_interface_closes() {
    let mut r = rig();
    assert!(routed(&r));
    r.up(Object::Rule(rule()));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.plan();
    assert_eq!((waits(&r, 1), routed(&r)), (0, true));
    while routed(&r) {
        assert_eq!(waits(&r, 1), 0);
        assert!(r.run(0), "nothing is left to do");
    }
    // all of them are answered first; none is waited for that did not get through in the end
    r.settle();
    assert!(r.store.idle());
    assert!(by(101, &r.chip.lookup("20.0.0.1".parse().unwrap())));
}

/// A lost answer: it is not known to have closed.
#[test]
fn an_interface_that_got_no_answer_has_not_closed() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.plan();
    while let Some((token, _)) = r.chip.run(0) {
        r.store.timed_out(token, r.now);
    }
    r.plan();
    assert_eq!(waits(&r, 1), 0);
    r.settle();
    assert!(r.store.idle() && !routed(&r));
    assert!(by(101, &r.chip.lookup("20.0.0.1".parse().unwrap())));
}

/// What opens it is on its way still when it is to close again.
#[test]
fn who_is_to_close_while_it_opens_may_be_open() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    r.del(Key::Rule(rule()));
    r.plan();
    assert!(waits(&r, 0) > 0);
    r.up(Object::Rule(rule()));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    // the first answer, of what opened it, is lost
    for lost in [false, true] {
        r.plan();
        assert_eq!(waits(&r, 1), 0, "a route is written beside");
        match r.chip.run(0) {
            Some((token, _)) if lost => r.store.timed_out(token, r.now),
            Some((token, answer)) => r.store.complete(token, &answer, r.now),
            None => break,
        }
    }
    while routed(&r) {
        r.plan();
        assert_eq!(waits(&r, 1), 0, "a route is written beside");
        assert!(r.run(0), "it does not close");
    }
    r.settle();
    assert!(r.store.idle() && !routed(&r));
}

#[test]
fn an_interface_opens_behind_the_routes_of_before() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    assert!(!routed(&r));
    // by a gateway that is new: its next hop has to be made before it
    r.up(via("20.0.0.0/8", 11, "10.1.0.3"));
    r.up(neigh(11, "10.1.0.3", 13));
    r.del(Key::Rule(rule()));
    for _ in 0..50 {
        r.plan();
        let there = by(13, &r.chip.lookup("20.0.0.1".parse().unwrap()));
        assert!(there || !routed(&r));
        // the synchronous ring is ahead
        if !r.run(0) && !r.run(1) {
            break;
        }
    }
    r.settle();
    assert!(routed(&r) && r.store.idle());
}

/// A bridge that is down has no port in service, and comes up behind a route: who comes in there by then never meets the chip without it.
#[test]
fn a_bridge_that_comes_up_opens_behind_the_routes_of_before() {
    let mut r = rig();
    let in_service = |r: &mut Rig, up: bool| {
        let Object::Link(l) = bridge(300) else {
            panic!("no link");
        };
        r.up(Object::Link(Link { admin_up: up, ..l }));
        let state = [BR_STATE_DISABLED, BR_STATE_FORWARDING][usize::from(up)];
        r.up(in_state(3, state));
    };
    in_service(&mut r, true);
    r.up(forwarding(Family::V4, ConfScope::Interface(BRIDGE)));
    r.up(addr(BRIDGE, "10.9.0.1/24"));
    r.settle();
    let routed = |r: &Rig| {
        let of_it = |x: &&tnd_rif| x.kind == TND_RIF_FID;
        let rif = r.chip.rifs.values().find(of_it).unwrap();
        let port = r.chip.ports[&3];
        rif.flags & (TND_RIF_V4 | TND_RIF_TRAP_ALL) == TND_RIF_V4
            && port.stp_state == BR_STATE_FORWARDING
            && port.flags & TND_PORT_TRAP_ALL == 0
    };
    assert!(routed(&r));
    in_service(&mut r, false);
    r.settle();
    assert!(!routed(&r));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    in_service(&mut r, true);
    for _ in 0..50 {
        r.plan();
        let there = by(101, &r.chip.lookup("20.0.0.1".parse().unwrap()));
        assert!(there || !routed(&r));
        if !r.run(0) && !r.run(1) {
            break;
        }
    }
    r.settle();
    assert!(routed(&r) && r.store.idle());
}

/// Routes come without end: it opens all the same.
#[test]
fn an_interface_does_not_wait_for_routes_that_came_later() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.del(Key::Rule(rule()));
    for n in 0..200 {
        r.up(via(&format!("21.0.{n}.0/24"), 11, "10.1.0.2"));
        r.plan();
        r.run(0);
        r.run(1);
        if routed(&r) {
            return;
        }
    }
    panic!("it waits for all of them");
}

/// Another core has left interfaces shut, for a rule that has gone since, and so has a route come: they open behind it.
#[test]
fn what_was_left_shut_opens_behind_all_routes() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    assert!(!routed(&r));
    r.attach_warm();
    r.del(Key::Rule(rule()));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    loop {
        r.plan();
        let there = by(101, &r.chip.lookup("20.0.0.1".parse().unwrap()));
        assert!(there || !routed(&r));
        // the synchronous ring is ahead
        if !r.run(0) && !r.run(1) {
            break;
        }
    }
    r.settle();
    assert!(routed(&r) && r.store.idle());
}

/// A barrier asked for beside events without end: the interface has opened as well.
#[test]
fn a_barrier_waits_for_interfaces_that_wait() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.del(Key::Rule(rule()));
    let mut barrier = r.store.settling();
    for n in 0..2000 {
        r.up(via(
            &format!("21.{}.{}.0/24", n / 250, n % 250),
            11,
            "10.1.0.2",
        ));
        r.plan();
        if r.store.has_settled(&mut barrier) {
            assert!(!r.store.idle());
            let all = r.chip.rifs.values().all(|x| x.flags & TND_RIF_V4 != 0);
            assert!(all, "after {n} routes");
            return;
        }
        r.run(0);
        r.run(1);
    }
    panic!("never");
}

/// All lengths are programmed anew, an answer is still to come, and the phase is not over.
#[test]
fn at_the_end_of_a_replay_no_route_is_written_while_an_interface_closes() {
    let mut r = rig();
    r.chip.cold();
    r.store.attach(Attach::Cold, r.now);
    let last = |r: &Rig| !matches!(r.chip.lookup("50.0.0.1".parse().unwrap()), Answer::Trap);
    for n in 3..250 {
        r.plan();
        if waits(&r, 1) > 0 && waits(&r, 0) == 0 {
            // not answered until then
            r.up(neigh(11, &format!("10.1.0.{n}"), n));
            r.plan();
        }
        if last(&r) {
            break;
        }
        assert!(r.run(1) || r.run(0));
    }
    assert!(last(&r) && routed(&r) && waits(&r, 0) > 0);
    r.up(Object::Rule(rule()));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    while routed(&r) {
        r.plan();
        assert_eq!(waits(&r, 1), 0, "a route is written beside");
        assert!(r.run(0), "it does not close");
    }
    r.settle();
    assert!(by(101, &r.chip.lookup("20.0.0.1".parse().unwrap())));
}

/// Another source has begun a dump and says nothing: the interface waits as long as routes are held for that, and no longer.
#[test]
fn an_interface_does_not_wait_for_a_dump_without_end() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.del(Key::Rule(rule()));
    let other = SourceId(SRC.0 + 1);
    r.store.apply(Event::BeginSync(other, KindSet::ALL), r.now);
    r.settle_unsynced();
    r.now += 5_000_000_000;
    r.settle_unsynced();
    assert!(routed(&r));
    assert!(!r.store.idle(), "a barrier waits for the dump");
}

/// What an interface waits for that comes while another one waits.
#[test]
fn an_interface_opens_behind_its_routes_though_another_waits() {
    let mut r = rig();
    let forwards = |ifindex, yes| match forwarding(Family::V4, ConfScope::Interface(ifindex)) {
        Object::Netconf(n) => Object::Netconf(Netconf {
            forwarding: Some(yes),
            ..n
        }),
        _ => unreachable!(),
    };
    for i in [11, 12] {
        r.up(forwards(i, false));
    }
    r.settle();
    assert!(!routed(&r));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.up(forwards(12, true));
    r.plan();
    r.up(via("30.0.0.0/8", 12, "10.2.0.2"));
    r.up(forwards(11, true));
    let opens = |r: &Rig, port| {
        let mut all = r.chip.rifs.values();
        all.any(|x| x.port == port && x.flags & TND_RIF_V4 != 0)
    };
    for n in 0..400 {
        r.up(via(
            &format!("21.{}.{}.0/24", n / 250, n % 250),
            11,
            "10.1.0.2",
        ));
        r.plan();
        let there = |to: &str, station| by(station, &r.chip.lookup(to.parse().unwrap()));
        assert!(there("20.0.0.1", 101) || !opens(&r, 2));
        assert!(there("30.0.0.1", 102) || !opens(&r, 1));
        if opens(&r, 1) && opens(&r, 2) {
            return;
        }
        r.run(0);
        r.run(1);
    }
    panic!("they wait for all");
}

/// Its address of layer 2 changes while it waits: what comes to the new one is the kernel's until it opens, to the old one nobody's.
#[test]
fn what_else_changes_of_an_interface_that_waits_does_not_wait() {
    let mut r = rig();
    r.up(Object::Rule(rule()));
    r.settle();
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.plan();
    r.up(Object::Link(Link {
        mac: mac(77),
        mtu: 1400,
        ..swp(1)
    }));
    r.del(Key::Rule(rule()));
    let is_new = |r: &Rig| {
        let mut all = r.chip.rifs.values();
        all.any(|x| (x.mac, x.mtu) == (mac(77), 1400))
    };
    // the other ring stands still
    for _ in 0..20 {
        r.plan();
        r.run(0);
    }
    assert!(waits(&r, 1) > 0 && !routed(&r));
    assert!(is_new(&r));
    r.settle();
    assert!(routed(&r) && is_new(&r));
}

/// What an interface stands on has failed: it goes, and none stays open for want of that.
#[test]
fn no_interface_stays_open_on_a_domain_that_failed() {
    let mut r = bridged::bridged("spectrum-sn2700");
    for o in [
        forwarding(Family::V4, ConfScope::Interface(bridged::BRIDGE)),
        addr(bridged::BRIDGE, "10.1.0.1/24"),
        neigh(bridged::BRIDGE, "10.1.0.2", 101),
        via("50.0.0.0/8", bridged::BRIDGE, "10.1.0.2"),
    ] {
        r.up(o);
    }
    r.settle();
    assert!(routed(&r));
    r.up(bridged::bridge(77));
    r.up(Object::Rule(rule()));
    let faulty = |p: &Planned| match p.cls {
        TND_CLS_VLAN => Fate::Refused(TND_ST_FAULT),
        _ => Fate::Done,
    };
    r.play(0, faulty, |_| {});
    assert!(r.chip.rifs.is_empty());
}

/// It is to take IPv4 behind a route, and IPv6 no more: that does not wait, and a route of IPv6 waits for it.
#[test]
fn an_interface_closes_to_one_family_while_it_waits_for_the_other() {
    let mut r = rig();
    let six = |r: &Rig| r.chip.rifs.values().any(|x| x.flags & TND_RIF_V6 != 0);
    // without these all would be the CPU's
    for (family, table) in [Family::V4, Family::V6]
        .into_iter()
        .flat_map(|f| [(f, TABLE_LOCAL), (f, TABLE_MAIN)])
    {
        r.up(Object::Rule(Rule {
            family,
            table,
            is_default: true,
            ..rule()
        }));
    }
    r.up(Object::Rule(rule()));
    r.up(forwarding(Family::V6, ConfScope::All));
    r.up(forwarding(Family::V6, ConfScope::Interface(11)));
    r.settle();
    assert!(six(&r) && !routed(&r));
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.plan();
    r.del(Key::Rule(rule()));
    r.up(Object::Rule(Rule {
        family: Family::V6,
        ..rule()
    }));
    // the other ring stands still
    for _ in 0..20 {
        r.plan();
        r.run(0);
    }
    assert!(waits(&r, 1) > 0 && !routed(&r) && !six(&r));
    r.settle();
    assert!(routed(&r) && !six(&r));
}

/// A host entry goes, and then a rule that had closed the interfaces. The first DELETE gets lost: nobody meets the host where it was.
#[test]
fn an_interface_opens_behind_a_host_entry() {
    let mut r = rig();
    r.up(neigh(12, "10.2.0.9", 109));
    r.up(Object::Rule(rule()));
    r.settle();
    let host = "10.2.0.9".parse().unwrap();
    let known = |r: &Rig| by(109, &r.chip.lookup(host));
    assert!(known(&r) && !routed(&r));
    r.del(Key::Neigh(12, host));
    r.plan();
    r.del(Key::Rule(rule()));
    r.plan();
    assert_eq!(waits(&r, 0), 1);
    let lost = r.chip.rings[0].pop_front().unwrap();
    r.store.timed_out(lost.token, r.now);
    while !routed(&r) {
        r.plan();
        assert!(r.run(0), "it does not open");
        assert!(!known(&r) || !routed(&r));
    }
    r.settle();
    assert!(!known(&r) && routed(&r));
}

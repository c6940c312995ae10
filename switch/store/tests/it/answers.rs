//! What the chip answers, and what comes of it: refused, lost, or against what the store believes.

use crate::common;
use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

fn two_ports(profile: &str) -> Rig {
    common::two_ports(profile, Policy::Trap)
}

/// Commands at most until nothing more is to do.
const MANY: usize = 200;

/// Runs until nothing more is to do. What `answer` has a status for, the chip does not see. How many commands there were.
fn drive(r: &mut Rig, mut answer: impl FnMut(&Planned) -> Option<u16>) -> usize {
    let mut posted = 0;
    while posted < MANY {
        r.now += 1000;
        let mut out = Vec::new();
        let n = r.store.plan(&mut out, r.now);
        for p in out {
            posted += 1;
            match answer(&p) {
                None => r.chip.post(p),
                Some(status) => {
                    let c = Completion {
                        status,
                        ..Completion::default()
                    };
                    r.store.complete(p.token, &c, r.now);
                }
            }
        }
        let (a, b) = (r.run(0), r.run(1));
        if n == 0 && !a && !b {
            break;
        }
    }
    posted
}

fn forwards(p: &Planned) -> bool {
    let route = tandem_abi::object::read_object::<tnd_route>(p.body.bytes());
    p.cls == TND_CLS_ROUTE && route.is_ok_and(|(r, _)| r.action == TND_ACT_FORWARD)
}

fn way(n: u8) -> Answer {
    Answer::Ways([(u16::from(n), mac(100 + n))].into())
}

/// A group's next state has no room, and the one after is what stands: routes that trapped meanwhile forward again.
#[test]
fn a_group_wanted_as_it_stands_forwards() {
    let mut r = two_ports("tiny");
    let group = |id, members: &[(u32, u32)]| object(id, NexthopKind::Group(members.to_vec()));
    r.up(single(1, 11, "10.1.0.2"));
    r.up(single(2, 12, "10.2.0.2"));
    r.up(group(9, &[(1, 1), (2, 1)]));
    r.up(Object::Route(route("30.0.0.0/8", RouteNextHops::Object(9))));
    r.settle();
    let to = "30.0.0.1".parse().unwrap();
    let both = r.chip.lookup(to);
    assert!(matches!(&both, Answer::Ways(w) if w.len() == 2), "{both:?}");
    // larger than what the chip has room for
    r.up(group(9, &[(1, 256), (2, 255)]));
    let full = |p: &Planned| (p.cls == TND_CLS_NHG).then_some(TND_ST_TABLE_FULL);
    assert!(drive(&mut r, full) < MANY);
    assert_eq!(r.chip.lookup(to), Answer::Trap);
    r.up(group(9, &[(1, 1), (2, 1)]));
    r.settle();
    assert_eq!(r.chip.lookup(to), both);
    assert!(r.store.failures(10).is_empty());
}

/// A next hop fails, and so does the group that needs it: when it comes after all, the group does, too.
#[test]
fn a_group_follows_a_next_hop_that_failed() {
    let mut r = two_ports("spectrum-sn2700");
    let own = RouteNextHops::Many([hop(11, "10.1.0.2"), hop(12, "10.2.0.2")].into());
    r.up(Object::Route(route("31.0.0.0/8", own)));
    let mut nexthops = 0;
    let fault = |p: &Planned| {
        nexthops += usize::from(p.cls == TND_CLS_NEXTHOP);
        (p.cls == TND_CLS_NEXTHOP && nexthops <= 8).then_some(TND_ST_FAULT)
    };
    assert!(drive(&mut r, fault) < MANY);
    let to = "31.0.0.1".parse().unwrap();
    assert_eq!(r.chip.lookup(to), Answer::Trap);
    // another neighbour, another try
    r.up(neigh(11, "10.1.0.2", 103));
    r.up(neigh(12, "10.2.0.2", 104));
    r.settle();
    let ways = r.chip.lookup(to);
    assert!(matches!(&ways, Answer::Ways(w) if w.len() == 2), "{ways:?}");
}

/// The chip says that what a route leads to is not there. Once: it is looked after, and the route forwards.
#[test]
fn a_target_that_is_not_there_is_written_again() {
    let mut r = two_ports("spectrum-sn2700");
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    let mut first = true;
    let answer = |p: &Planned| (forwards(p) && std::mem::take(&mut first)).then_some(TND_ST_DEPEND);
    assert!(drive(&mut r, answer) < MANY);
    assert_eq!(r.chip.lookup("20.0.0.1".parse().unwrap()), way(1));
}

/// Always: it is not tried without end, the route traps, and a change of its target tries it anew.
#[test]
fn a_target_that_never_is_there_is_given_up() {
    let mut r = two_ports("spectrum-sn2700");
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.up(via("21.0.0.0/8", 11, "10.1.0.2"));
    let posted = drive(&mut r, |p| forwards(p).then_some(TND_ST_DEPEND));
    assert!(posted < MANY / 2, "{posted}");
    let to = "20.0.0.1".parse().unwrap();
    assert_eq!(r.chip.lookup(to), Answer::Trap);
    assert!(r.store.idle());
    r.up(neigh(11, "10.1.0.2", 0));
    r.del(Key::Neigh(11, "10.1.0.2".parse().unwrap()));
    r.settle();
    r.up(neigh(11, "10.1.0.2", 101));
    r.settle();
    assert_eq!(r.chip.lookup(to), way(1));
    assert_eq!(r.chip.lookup("21.0.0.1".parse().unwrap()), way(1));
}

/// A trap refers to nothing; a chip that says so all the same is not asked without end.
#[test]
fn a_trap_that_depends_is_given_up() {
    let mut r = two_ports("spectrum-sn2700");
    r.up(Object::Route(Route {
        kind: RouteType::Unreachable,
        ..route("20.0.0.0/8", RouteNextHops::None)
    }));
    let mut asked = 0;
    drive(&mut r, |p| {
        let route = p.cls == TND_CLS_ROUTE && p.op != TND_OP_DELETE;
        asked += usize::from(route);
        route.then_some(TND_ST_DEPEND)
    });
    assert!(asked < 10, "{asked}");
    let failures = r.store.failures(10);
    assert!(
        failures
            .iter()
            .any(|(what, why)| { what.contains("20.0.0.0/8") && *why == Reason::Depends }),
        "{failures:?}"
    );
}

/// A delete that the chip refuses because something refers to the object waits until something was taken away, and is
/// told of meanwhile.
#[test]
fn what_is_in_use_is_deleted_when_something_was_taken_away() {
    let mut r = two_ports("spectrum-sn2700");
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.up(via("21.0.0.0/8", 12, "10.2.0.2"));
    r.settle();
    r.del(Key::Route(key("20.0.0.0/8")));
    let mut deletes = 0;
    drive(&mut r, |p| {
        let delete = p.cls == TND_CLS_NEXTHOP && p.op == TND_OP_DELETE;
        deletes += usize::from(delete);
        delete.then_some(TND_ST_IN_USE)
    });
    assert_eq!(deletes, 1);
    assert!(r.store.idle());
    let failures = r.store.failures(10);
    assert!(
        failures
            .iter()
            .any(|(what, why)| { what.contains("still there") && *why == Reason::InUse }),
        "{failures:?}"
    );
    // what is wanted again is not among them, and whatever was refused twice counts once
    assert_eq!(r.store.undeletable(), 1);
    for _ in 0..2 {
        r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
        drive(&mut r, |_| None);
        assert_eq!(r.store.undeletable(), 0);
        r.del(Key::Route(key("20.0.0.0/8")));
        drive(&mut r, |p| {
            let delete = p.cls == TND_CLS_NEXTHOP && p.op == TND_OP_DELETE;
            delete.then_some(TND_ST_IN_USE)
        });
        assert_eq!(r.store.undeletable(), 1);
    }
    r.del(Key::Route(key("21.0.0.0/8")));
    r.settle();
    assert!(r.store.failures(10).is_empty());
    assert!(r.chip.dump::<tnd_nexthop>(TND_CLS_NEXTHOP).is_empty());
}

/// A chip that does not begin a replay sweeps nothing at its end: the attach is given up. An end whose answer got lost
/// has ended it.
#[test]
fn a_replay_that_the_chip_does_not_take() {
    let refused = |what: u16, status: u16, times: usize| {
        let mut r = two_ports("spectrum-sn2700");
        r.store.attach(Attach::Warm, 0);
        let mut n = 0;
        drive(&mut r, |p| {
            n += usize::from(p.op == what);
            (p.op == what && n <= times).then_some(status)
        });
        (r.store.take_resync_failed(), r.store.idle(), n)
    };
    for op in [TND_OP_BEGIN_RESYNC, TND_OP_END_RESYNC] {
        assert_eq!(refused(op, TND_ST_FAULT, 2), (false, true, 3), "{op}");
        let (failed, idle, n) = refused(op, TND_ST_FAULT, MANY);
        assert!(failed && !idle && n < 10, "{op}: {n}");
    }
    // none was begun
    assert_eq!(
        refused(TND_OP_END_RESYNC, TND_ST_INVALID, 1),
        (true, false, 1)
    );
    let mut r = two_ports("spectrum-sn2700");
    r.store.attach(Attach::Warm, 0);
    let mut lost = None;
    for _ in 0..2000 {
        r.now += 1000;
        let mut out = Vec::new();
        r.store.plan(&mut out, r.now);
        for p in out {
            if p.op == TND_OP_END_RESYNC && lost.is_none() {
                lost = Some(p.token);
            }
            r.chip.post(p);
        }
        if let Some(token) = lost.take_if(|t| *t != u64::MAX) {
            // carried out, and not heard of
            assert!(r.chip.run(0).is_some());
            r.store.timed_out(token, r.now);
            lost = Some(u64::MAX);
        }
        r.run(0);
        r.run(1);
    }
    assert!(!r.store.take_resync_failed() && r.store.idle());
}

/// Every class that the chip refuses is told of.
#[test]
fn failures_of_all_classes_are_told() {
    let mut r = two_ports("spectrum-sn2700");
    r.up(drops_all(11, 1));
    drive(&mut r, |p| {
        let acl = [TND_CLS_ACL_TABLE, TND_CLS_ACL_ENTRY, TND_CLS_ACL_COUNTER].contains(&p.cls);
        (acl && p.op != TND_OP_DELETE).then_some(TND_ST_FAULT)
    });
    let failures = r.store.failures(10);
    assert!(
        failures.iter().any(|(what, _)| what.starts_with("Acl")),
        "{failures:?}"
    );
}

/// What came before is done though more comes all the time, and not said to be before: the chain from an interface to a
/// route is long.
#[test]
fn what_came_before_is_done_under_churn() {
    let mut r = two_ports("spectrum-sn2700");
    interface(&mut r, 3);
    r.up(via("30.0.0.0/8", 13, "10.3.0.2"));
    let mut settling = r.store.settling();
    let to = "30.0.0.1".parse().unwrap();
    let mut last = None;
    for i in 0..2000 {
        // one command more than is answered, and the next before that
        for n in 0..2 {
            let gateway = ["10.1.0.2", "10.2.0.2"][(i + n) % 2];
            r.up(via("20.0.0.0/8", 11 + ((i + n) % 2) as u32, gateway));
            r.plan();
        }
        if r.store.has_settled(&mut settling) {
            last = Some(i);
            break;
        }
        assert!(!r.store.idle());
        r.run(0);
        r.run(1);
    }
    assert!(last.is_some(), "never");
    assert_eq!(
        r.chip.lookup(to),
        Answer::Ways([(3, mac(103))].into()),
        "{last:?}"
    );
}

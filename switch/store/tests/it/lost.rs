//! Commands whose answers get lost: what stands on the chip keeps its place.

use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

/// Two routed ports, a bridge of two others with a station, a rule; routes to next hops, to a group, and less specific
/// ones.
fn everything() -> Rig {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.begin();
    interface(&mut r, 1);
    interface(&mut r, 2);
    r.up(Object::Link(Link {
        ifindex: 30,
        name: "br0".into(),
        kind: LinkKind::Bridge(BridgeInfo {
            ageing_s: 300,
            ..BridgeInfo::default()
        }),
        mac: mac(200),
        ..swp(1)
    }));
    for n in 3..=4 {
        r.up(Object::Link(Link {
            master: 30,
            bridge_port: Some(BridgePort::default()),
            ..swp(n)
        }));
    }
    r.up(Object::Fdb(FdbEntry {
        bridge: 30,
        vlan: 0,
        mac: mac(50),
        ifindex: 13,
        kind: FdbKind::Static,
        sticky: false,
    }));
    r.up(via("0.0.0.0/0", 11, "10.1.0.2"));
    r.up(via("20.0.0.0/8", 12, "10.2.0.2"));
    let both = RouteNextHops::Many([hop(11, "10.1.0.2"), hop(12, "10.2.0.2")].into());
    r.up(Object::Route(route("30.0.0.0/8", both)));
    r.up(drops_all(11, 2));
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

/// Plays what the store plans, one command after the other. The answer of the `lost`th that is about an object gets lost,
/// carried out (`done`) or not. How many there were, and those that deleted something.
fn play(r: &mut Rig, lost: usize, done: bool, mut each: impl FnMut(&Rig)) -> (usize, Vec<String>) {
    let (mut n, mut deletes) = (0, Vec::new());
    for _ in 0..10_000 {
        r.now += 1000;
        let mut out = Vec::new();
        if r.store.plan(&mut out, r.now) == 0 {
            assert!(r.store.idle());
            return (n, deletes);
        }
        for p in out {
            let ring = usize::from(p.ring == Ring::Bulk);
            let mut goes = false;
            if p.cls != TND_CLS_NONE {
                goes = n == lost;
                n += 1;
                if p.op == TND_OP_DELETE {
                    deletes.push(format!("{p:?}"));
                }
            }
            let token = p.token;
            if !goes || done {
                r.chip.post(p);
                let (token, c) = r.chip.run(ring).unwrap();
                if !goes {
                    r.store.complete(token, &c, r.now);
                }
            }
            if goes {
                r.store.timed_out(token, r.now);
            }
            each(r);
        }
    }
    panic!("does not settle");
}

/// After a warm attach everything is there. Whichever answer gets lost: nothing is deleted, nothing is written anew, and no
/// packet is answered otherwise meanwhile.
#[test]
fn a_lost_answer_of_a_replay_deletes_nothing() {
    let mut r = everything();
    let stations = ["1.0.0.1", "20.0.0.1", "30.0.0.1"].map(|a| a.parse().unwrap());
    let before = stations.map(|a| r.chip.lookup(a));
    assert!(before.iter().all(|a| matches!(a, Answer::Ways(_))));
    for done in [true, false] {
        let mut lost = 0;
        loop {
            r.chip.fw.attach(true);
            r.store.attach(Attach::Warm, r.now);
            let writes = r.chip.writes;
            let (n, deletes) = play(&mut r, lost, done, |r| {
                assert_eq!(stations.map(|a| r.chip.lookup(a)), before, "{lost} {done}");
            });
            assert!(deletes.is_empty(), "{lost} {done}: {deletes:?}");
            assert_eq!(r.chip.writes, writes, "{lost} {done}");
            assert!(r.store.failures(10).is_empty());
            lost += 1;
            if lost > n {
                assert!(n > 20);
                break;
            }
        }
    }
}

/// The same on an empty chip: everything comes to stand.
#[test]
fn a_lost_answer_of_a_first_replay_leaves_nothing_out() {
    let mut r = everything();
    let stations = ["1.0.0.1", "20.0.0.1", "30.0.0.1"].map(|a| a.parse().unwrap());
    let before = stations.map(|a| r.chip.lookup(a));
    for done in [true, false] {
        let mut lost = 0;
        loop {
            r.chip.cold();
            r.store.attach(Attach::Cold, r.now);
            let (n, _) = play(&mut r, lost, done, |_| {});
            assert_eq!(stations.map(|a| r.chip.lookup(a)), before, "{lost} {done}");
            assert!(r.store.failures(10).is_empty());
            r.chip.accounting();
            lost += 1;
            if lost > n {
                break;
            }
        }
    }
}

/// A route's delete gets no answer, and it is wanted again: it keeps its place, and is not deleted once more.
#[test]
fn a_lost_delete_of_what_comes_back_is_not_repeated() {
    for done in [true, false] {
        let mut r = everything();
        let to = "20.0.0.1".parse().unwrap();
        r.del(Key::Route(key("20.0.0.0/8")));
        let mut out = Vec::new();
        r.store.plan(&mut out, r.now);
        let [p] = <[Planned; 1]>::try_from(out).unwrap();
        assert_eq!(p.op, TND_OP_DELETE);
        let token = p.token;
        if done {
            r.chip.post(p);
            r.chip.run(1);
        }
        r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
        r.store.timed_out(token, r.now);
        let (_, deletes) = play(&mut r, usize::MAX, false, |_| {});
        let routes = deletes
            .iter()
            .filter(|d| d.contains(&format!("cls: {TND_CLS_ROUTE},")));
        assert_eq!(routes.count(), 0, "{deletes:?}");
        assert_eq!(r.chip.lookup(to), Answer::Ways([(1, mac(101))].into()));
        assert!(r.store.idle() && r.store.failures(10).is_empty());
    }
}

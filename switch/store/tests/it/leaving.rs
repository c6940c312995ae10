//! A port that leaves its bridge, or is taken out of service there: one write decides. Where several are, all trap meanwhile.
//!
//! ```text
//!   swp2, isolated, in br0 ─► its membership goes ─► answered ─► the port's flags and state are those of a port by itself
//! ```

use crate::common::bridged::*;
use crate::common::*;
use tandem_abi::object::read_object;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

/// swp2 in the bridge, isolated and not forwarding.
fn shut(bridge: u32, state: u8) -> Object {
    Object::Link(Link {
        master: bridge,
        bridge_port: Some(BridgePort {
            isolated: true,
            state,
            ..BridgePort::default()
        }),
        ..swp(2)
    })
}

/// The bridge, or another one, up or not.
fn device(ifindex: u32, admin_up: bool) -> Object {
    match bridge(300) {
        Object::Link(l) => Object::Link(Link {
            ifindex,
            name: format!("br{ifindex}"),
            admin_up,
            ..l
        }),
        other => other,
    }
}

/// What of a port and its membership is posted until nothing is to do: flags, state, or the membership's fate.
fn posted(r: &mut Rig) -> Vec<String> {
    let mut all = Vec::new();
    let note = |p: &Planned| {
        match p.cls {
            TND_CLS_PORT => {
                let (b, _) = read_object::<tnd_port>(p.body.bytes()).unwrap();
                let isolated = b.flags & TND_PORT_ISOLATED != 0;
                all.push(format!("port {} {isolated} {}", b.port, b.stp_state));
            }
            TND_CLS_VLAN_MEMBER => {
                let (b, _) = read_object::<tnd_vlan_member>(p.body.bytes()).unwrap();
                let op = ["", "in", "moves to", "out of"][usize::from(p.op)];
                all.push(format!("{op} {}", b.fid));
            }
            _ => {}
        }
        Fate::Done
    };
    r.play(0, note, |_| {});
    all
}

fn flags(r: &mut Rig, port: u16) -> u32 {
    let all: Vec<tnd_port> = r.chip.dump(TND_CLS_PORT);
    all.iter().find(|p| p.port == port).unwrap().flags
}

#[test]
fn a_port_is_its_bridges_until_its_membership_is_gone() {
    let mut r = bridged("spectrum-sn2700");
    r.up(shut(BRIDGE, 4));
    r.settle();
    r.up(Object::Link(swp(2)));
    assert_eq!(posted(&mut r), ["out of 50", "port 2 false 3"]);
    // and comes back: nothing is flooded there before it is isolated
    r.up(shut(BRIDGE, 4));
    assert_eq!(posted(&mut r), ["port 2 true 4", "in 50"]);
}

/// Its stations go with it: one that went before would have its frames flooded, to this port as well. The first DELETE of the membership
/// gets lost.
#[test]
fn stations_go_after_their_port() {
    let mut r = bridged("spectrum-sn2700");
    let station = fdb(1, 12, FdbKind::Static);
    r.up(Object::Fdb(station));
    r.settle();
    r.del(key_of(&station));
    r.up(Object::Link(swp(2)));
    let (mut lost, mut done) = (false, Vec::new());
    let fate = |p: &Planned| {
        if p.op == TND_OP_DELETE
            && p.cls == TND_CLS_VLAN_MEMBER
            && !std::mem::replace(&mut lost, true)
        {
            return Fate::Lost(false);
        }
        done.extend((p.op == TND_OP_DELETE).then_some(p.cls));
        Fate::Done
    };
    r.play(0, fate, |_| {});
    assert!(lost);
    assert_eq!(done, [TND_CLS_VLAN_MEMBER, TND_CLS_FDB]);
}

/// A port that comes back before it has left keeps what is behind it; a station that goes meanwhile goes.
#[test]
fn a_station_goes_though_its_port_stays() {
    let mut r = bridged("spectrum-sn2700");
    let station = fdb(1, 12, FdbKind::Static);
    r.up(Object::Fdb(station));
    r.settle();
    r.del(key_of(&station));
    r.up(Object::Link(swp(2)));
    r.plan();
    r.up(joined(2));
    r.settle();
    assert!(r.chip.dump::<tnd_fdb>(TND_CLS_FDB).is_empty());
}

#[test]
fn a_port_moves_to_another_bridge() {
    let mut r = bridged("spectrum-sn2700");
    r.up(device(60, true));
    r.up(shut(BRIDGE, 4));
    r.up(shut(60, 4));
    r.settle();
    r.up(joined(2));
    assert_eq!(posted(&mut r).last().unwrap(), "port 2 false 3");
    r.up(shut(60, 4));
    // as closed as it will be before it is in the other one
    assert_eq!(posted(&mut r), ["port 2 true 4", "moves to 60"]);
    assert!(!flags(&mut r, 2) & TND_PORT_TRAP_ALL != 0);
}

#[test]
fn a_port_out_of_service_in_a_bridge_that_is_up_traps() {
    let mut r = bridged("spectrum-sn2700");
    let traps = |r: &mut Rig| flags(r, 2) & TND_PORT_TRAP_ALL != 0;
    r.up(shut(BRIDGE, 4));
    r.settle();
    assert!(!traps(&mut r), "spanning tree's own states do not");
    r.up(shut(BRIDGE, BR_STATE_DISABLED));
    r.settle();
    assert!(traps(&mut r));
    // it did not leave: that state is what somebody wants
    r.store.told_all(SourceId(9));
    r.settle();
    assert!(traps(&mut r), "another source's word");
    r.store.told_all(SRC);
    r.settle();
    assert!(!traps(&mut r));
    // and where its source has told all before that is looked at
    r.up(shut(BRIDGE, 4));
    r.settle();
    r.up(shut(BRIDGE, BR_STATE_DISABLED));
    r.store.told_all(SRC);
    r.settle();
    assert!(!traps(&mut r));
    // the bridge is down: nothing is to be heard
    r.up(device(BRIDGE, false));
    r.settle();
    assert!(!traps(&mut r));
    r.up(device(BRIDGE, true));
    r.settle();
    assert!(traps(&mut r));
}

/// A port that a dump has out of service stays so: a port without a carrier is.
#[test]
fn a_port_that_is_found_out_of_service_does_not_trap() {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.begin();
    r.up(bridge(300));
    r.up(joined(1));
    r.up(shut(BRIDGE, BR_STATE_DISABLED));
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    assert_eq!(flags(&mut r, 2) & TND_PORT_TRAP_ALL, 0);
}

/// All of the bridge is the kernel's, for what it can't have on the chip: so is who comes in by a port that is a member still.
#[test]
fn who_leaves_a_bridge_that_traps_traps_until_it_has_left() {
    let mut r = bridged("spectrum-sn2700");
    let Object::Link(bridge) = bridge(300) else {
        panic!("no link");
    };
    r.up(Object::Link(Link {
        promiscuous: true,
        ..bridge
    }));
    r.settle();
    let traps = |r: &mut Rig| flags(r, 2) & TND_PORT_TRAP_ALL != 0;
    assert!(traps(&mut r));
    r.up(Object::Link(swp(2)));
    let mut left = false;
    loop {
        r.plan();
        let members: Vec<tnd_vlan_member> = r.chip.dump(TND_CLS_VLAN_MEMBER);
        left |= members.iter().all(|m| m.port != 2);
        assert!(left || traps(&mut r));
        if !r.run(0) {
            break;
        }
    }
    r.settle();
    assert!(left && !traps(&mut r));
}

/// It left while nobody listened: the membership is there until the sweep.
#[test]
fn a_port_that_left_unheard_is_its_bridges_until_the_sweep() {
    let mut r = bridged("spectrum-sn2700");
    r.up(shut(BRIDGE, 4));
    r.settle();
    let left = left(&mut r);
    r.chip.reload();
    r.store.adopt(left);
    r.store.attach(Attach::Warm, r.now);
    r.up(Object::Link(swp(2)));
    let mut swept = false;
    let mut early = Vec::new();
    let fate = |p: &Planned| {
        swept |= p.op == TND_OP_END_RESYNC;
        if p.cls == TND_CLS_PORT && !swept {
            let (b, _) = read_object::<tnd_port>(p.body.bytes()).unwrap();
            let is = |flag| b.flags & flag != 0;
            let seen = (is(TND_PORT_ISOLATED), b.stp_state, is(TND_PORT_TRAP_ALL));
            early.extend((b.port == 2).then_some(seen));
        }
        Fate::Done
    };
    r.play(0, fate, |_| {});
    // who comes in there is the kernel's: what is said meanwhile came behind
    assert!(swept && !early.is_empty());
    assert!(early.iter().all(|e| *e == (true, 4, true)), "{early:?}");
    let ports: Vec<tnd_port> = r.chip.dump(TND_CLS_PORT);
    let port = ports.iter().find(|p| p.port == 2).unwrap();
    let apart = TND_PORT_ISOLATED | TND_PORT_TRAP_ALL;
    assert_eq!((port.flags & apart, port.stp_state), (0, 3));
}

/// Of the three ports of a bridge all are in service, or none, or none hears.
fn all_or_none(r: &Rig) {
    let of = |p: u16| {
        let port = r.chip.ports.get(&p);
        port.map_or((0, 3), |p| (p.flags, p.stp_state))
    };
    let all = [1, 2, 3].map(of);
    let open = all.iter().filter(|p| p.1 == TND_STP_FORWARDING).count();
    let heard = |p: &(u32, u8)| p.0 & TND_PORT_TRAP_ALL == 0 && p.1 == TND_STP_FORWARDING;
    assert!(open == 0 || open == 3 || !all.iter().any(heard), "{all:?}");
}

/// The bridge goes down, and comes up again: no two of its ports forward to each other while one of the others is out of service.
#[test]
fn a_bridge_that_goes_down_floods_to_all_ports_or_none() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    r.settle();
    let state = |r: &mut Rig, state: u8| {
        for n in 1..=3 {
            let bridge_port = Some(BridgePort {
                state,
                ..BridgePort::default()
            });
            r.up(Object::Link(Link {
                master: BRIDGE,
                bridge_port,
                ..swp(n)
            }));
        }
    };
    for (to, up) in [(BR_STATE_DISABLED, false), (BR_STATE_FORWARDING, true)] {
        // the kernel's order: what goes up says so first
        if up {
            r.up(device(BRIDGE, up));
            r.settle();
        }
        state(&mut r, to);
        r.up(device(BRIDGE, up));
        let mut seen = 0;
        let look = |r: &Rig| {
            all_or_none(r);
            seen += 1;
        };
        r.play(0, |_| Fate::Done, look);
        assert!(seen >= 6);
        let trapping = (1..=3).filter(|p| flags(&mut r, *p) & TND_PORT_TRAP_ALL != 0);
        assert_eq!(trapping.count(), 0);
    }
}

/// It does so while nobody listens: the next core does as much, though it never heard of the states of before.
#[test]
fn a_bridge_that_went_down_unheard_floods_to_all_ports_or_none() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    r.settle();
    for (to, up) in [(BR_STATE_DISABLED, false), (BR_STATE_FORWARDING, true)] {
        let left = left(&mut r);
        r.chip.reload();
        r.store = Store::new(r.chip.config(Policy::Trap));
        r.store.adopt(left);
        r.chip.fw.attach(true);
        r.begin();
        r.up(device(BRIDGE, up));
        for n in 1..=3 {
            r.up(in_state(n, to));
        }
        r.end();
        r.store.attach(Attach::Warm, r.now);
        r.play(0, |_| Fate::Done, all_or_none);
        let state = |p: u16| r.chip.ports.get(&p).map(|p| p.stp_state);
        assert_eq!([1, 2, 3].map(state), [Some(to); 3]);
        let trapping = (1..=3).filter(|p| flags(&mut r, *p) & TND_PORT_TRAP_ALL != 0);
        assert_eq!(trapping.count(), 0);
    }
}

/// Two ports of a bridge lose their carriers at once: what the third and the fourth say to each other is not held up.
#[test]
fn others_do_not_trap_where_two_carriers_are_lost() {
    let mut r = bridged("spectrum-sn2700");
    for n in [3, 4] {
        r.up(joined(n));
    }
    r.settle();
    for n in [1, 2] {
        r.up(Object::Link(Link {
            master: BRIDGE,
            carrier: false,
            bridge_port: Some(BridgePort {
                state: BR_STATE_DISABLED,
                ..BridgePort::default()
            }),
            ..swp(n)
        }));
    }
    let mut trapped = Vec::new();
    let fate = |p: &Planned| {
        if p.cls == TND_CLS_PORT {
            let (b, _) = read_object::<tnd_port>(p.body.bytes()).unwrap();
            trapped.extend((b.flags & TND_PORT_TRAP_ALL != 0).then_some(b.port));
        }
        Fate::Done
    };
    r.play(0, fate, |_| {});
    trapped.retain(|p| *p > 2);
    assert!(trapped.is_empty(), "{trapped:?}");
}

/// A port changes in its place between the stations: one that came before it is written before, one that came after it after.
#[test]
fn a_port_changes_between_the_stations() {
    let mut r = bridged("spectrum-sn2700");
    let [early, late] = [1, 2].map(|n| fdb(n, 11, FdbKind::Static));
    r.up(in_state(2, 4));
    r.settle();
    let written = |r: &mut Rig| {
        let mut all = Vec::new();
        let fate = |p: &Planned| {
            match p.cls {
                TND_CLS_PORT => all.push("port".to_owned()),
                TND_CLS_FDB => {
                    let (b, _) = read_object::<tnd_fdb>(p.body.bytes()).unwrap();
                    let op = ["", "in", "moves", "out"][usize::from(p.op)];
                    all.push(format!("{} {op}", b.mac[5]));
                }
                _ => {}
            }
            Fate::Done
        };
        r.play(0, fate, |_| {});
        all
    };
    for e in [early, late] {
        r.up(Object::Fdb(e));
        if e == early {
            r.up(in_state(2, BR_STATE_FORWARDING));
        }
    }
    assert_eq!(written(&mut r), ["1 in", "port", "2 in"]);
    r.del(key_of(&early));
    r.up(in_state(2, 4));
    r.del(key_of(&late));
    assert_eq!(written(&mut r), ["1 out", "port", "2 out"]);
    // nothing waits
    r.up(in_state(2, BR_STATE_FORWARDING));
    assert_eq!(written(&mut r), ["port"]);
    // and what else a bridge's port is told
    r.up(Object::Fdb(early));
    r.up(Object::Link(Link {
        master: BRIDGE,
        bridge_port: Some(BridgePort {
            hairpin: true,
            ..BridgePort::default()
        }),
        ..swp(2)
    }));
    r.up(Object::Fdb(late));
    assert_eq!(written(&mut r), ["1 in", "port", "2 in"]);
}

/// Of [`two_bridges`].
const OTHER: u32 = 60;

/// A bridge with its ports, and another without any.
fn two_bridges() -> Rig {
    let mut r = bridged("spectrum-sn2700");
    let Object::Link(other) = bridge(300) else {
        panic!("no link");
    };
    r.up(Object::Link(Link {
        ifindex: OTHER,
        name: "br1".into(),
        ..other
    }));
    r
}

/// Another bridge's stations are nothing to a port: it is written before them.
#[test]
fn a_port_waits_for_its_own_bridges_stations_alone() {
    let mut r = two_bridges();
    r.up(Object::Link(Link {
        master: OTHER,
        bridge_port: Some(BridgePort::default()),
        ..swp(3)
    }));
    r.settle();
    let own = fdb(1, 11, FdbKind::Static);
    let others = (2..100).map(|n| FdbEntry {
        bridge: OTHER,
        ..fdb(n, 13, FdbKind::Static)
    });
    r.up(Object::Fdb(own));
    for e in others {
        r.up(Object::Fdb(e));
    }
    // it has its place already
    r.up(Object::Fdb(fdb(1, 12, FdbKind::Static)));
    r.up(in_state(2, 4));
    let mut before = Vec::new();
    let mut is_written = false;
    let fate = |p: &Planned| {
        is_written |= p.cls == TND_CLS_PORT;
        if !is_written && p.cls == TND_CLS_FDB {
            let (b, _) = read_object::<tnd_fdb>(p.body.bytes()).unwrap();
            before.push(b.mac[5]);
        }
        Fate::Done
    };
    r.play(0, fate, |_| {});
    assert_eq!((is_written, before), (true, vec![1]));
}

/// A port goes from one bridge to another at once: it comes behind the stations of both.
#[test]
fn a_port_waits_for_the_stations_of_the_bridge_that_it_goes_to() {
    let mut r = two_bridges();
    let in_other = |n: u16, state: u8| {
        Object::Link(Link {
            master: OTHER,
            bridge_port: Some(BridgePort {
                state,
                ..BridgePort::default()
            }),
            ..swp(n)
        })
    };
    r.up(in_other(3, BR_STATE_FORWARDING));
    r.settle();
    r.up(Object::Fdb(FdbEntry {
        bridge: OTHER,
        ..fdb(1, 13, FdbKind::Static)
    }));
    r.up(in_other(2, 4));
    let mut first = None;
    let fate = |p: &Planned| {
        if matches!(p.cls, TND_CLS_PORT | TND_CLS_FDB) {
            first.get_or_insert(p.cls);
        }
        Fate::Done
    };
    r.play(0, fate, |_| {});
    assert_eq!(first, Some(TND_CLS_FDB));
}

/// A port changes again and again while stations come: it is written behind those that were queued at its first change.
#[test]
fn a_port_that_keeps_changing_has_the_place_of_its_first_change() {
    let mut r = bridged("spectrum-sn2700");
    let before = 300;
    for n in 0..before {
        r.up(Object::Fdb(fdb(n, 11, FdbKind::Static)));
    }
    r.plan();
    let (mut stations, mut port) = (0, None);
    for n in 0..400 {
        r.up(in_state(2, [4, 2][n % 2]));
        r.up(Object::Fdb(fdb(before + n as u16, 11, FdbKind::Static)));
        r.plan();
        match r.chip.rings[0].front().map(|p| p.cls) {
            Some(TND_CLS_FDB) => stations += 1,
            Some(TND_CLS_PORT) if port.is_none() => port = Some(stations),
            _ => {}
        }
        assert!(r.run(0));
    }
    assert_eq!(port, Some(before));
    r.settle();
}

/// The bridge comes up, and one of its ports was put into service by hand before: the others follow, and a write of theirs gets lost.
#[test]
fn a_bridge_that_comes_up_floods_to_all_ports_or_none_though_one_was_open() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    for n in 1..=3 {
        r.up(in_state(n, BR_STATE_DISABLED));
    }
    r.up(device(BRIDGE, false));
    r.up(in_state(1, BR_STATE_FORWARDING));
    r.settle();
    for n in [3, 2] {
        r.up(in_state(n, BR_STATE_FORWARDING));
    }
    r.up(device(BRIDGE, true));
    let mut lost = false;
    let fate = |p: &Planned| {
        if p.cls == TND_CLS_PORT {
            let (b, _) = read_object::<tnd_port>(p.body.bytes()).unwrap();
            let opens = b.port == 3 && b.stp_state == BR_STATE_FORWARDING;
            if opens && !std::mem::replace(&mut lost, true) {
                return Fate::Lost(false);
            }
        }
        Fate::Done
    };
    let look = |r: &Rig| {
        let of = |n: u16| r.chip.ports.get(&n).unwrap();
        let open = (1..=3).filter(|n| of(*n).stp_state == TND_STP_FORWARDING);
        let parts = open.count() == 2;
        let hears = |n: u16| {
            let p = of(n);
            p.flags & TND_PORT_TRAP_ALL == 0 && p.stp_state == TND_STP_FORWARDING
        };
        assert!(!parts || !(1..=3).any(hears));
    };
    r.play(0, fate, look);
    assert!(lost);
}

/// Two ports change: the one that the kernel changed first is written first, whatever its number.
#[test]
fn ports_are_written_in_the_kernels_order() {
    let mut r = bridged("spectrum-sn2700");
    let written = |r: &mut Rig| {
        let mut all = Vec::new();
        let fate = |p: &Planned| {
            if p.cls == TND_CLS_PORT {
                let (b, _) = read_object::<tnd_port>(p.body.bytes()).unwrap();
                all.push(b.port);
            }
            Fate::Done
        };
        r.play(0, fate, |_| {});
        all
    };
    for ports in [[2, 1], [1, 2]] {
        for n in ports {
            r.up(in_state(n, 4));
        }
        assert_eq!(written(&mut r), ports);
        for n in ports {
            r.up(in_state(n, 3));
        }
        assert_eq!(written(&mut r), ports);
    }
}

/// The chip has no room for a station, so what it does not know is the CPU's. The station goes with its port: the port has left before
/// the others are flooded to.
#[test]
fn a_domain_floods_again_when_the_port_of_its_last_stranger_has_left() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    r.settle();
    let station = fdb(1, 12, FdbKind::Static);
    r.up(Object::Fdb(station));
    let fate = |p: &Planned| match p.cls {
        TND_CLS_FDB => Fate::Refused(TND_ST_TABLE_FULL),
        _ => Fate::Done,
    };
    r.play(0, fate, |_| {});
    let traps = |r: &Rig| r.chip.vlans[&FID].flags & TND_VLAN_UC_TRAP != 0;
    assert!(traps(&r));
    r.del(key_of(&station));
    r.up(Object::Link(swp(2)));
    let mut lost = false;
    let fate = |p: &Planned| {
        let leaves = p.cls == TND_CLS_VLAN_MEMBER && p.op == TND_OP_DELETE;
        match leaves && !std::mem::replace(&mut lost, true) {
            true => Fate::Lost(false),
            false => Fate::Done,
        }
    };
    let look = |r: &Rig| assert!(traps(r) || !r.chip.members.keys().any(|k| k.0 == 2));
    r.play(0, fate, look);
    assert!(lost && !traps(&r));
    // a port that stays after all
    r.up(joined(2));
    r.settle();
    r.up(Object::Fdb(station));
    let full = |p: &Planned| match p.cls {
        TND_CLS_FDB => Fate::Refused(TND_ST_TABLE_FULL),
        _ => Fate::Done,
    };
    r.play(0, full, |_| {});
    assert!(traps(&r));
    r.del(key_of(&station));
    r.up(Object::Link(swp(2)));
    r.plan();
    r.up(joined(2));
    r.settle();
    assert!(!traps(&r));
}

/// The same where the port closes, behind a station that is on its way, before the stranger goes.
#[test]
fn a_domain_floods_again_when_its_ports_are_written() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    r.settle();
    let stranger = fdb(1, 12, FdbKind::Static);
    r.up(Object::Fdb(stranger));
    let full = |p: &Planned| match p.cls {
        TND_CLS_FDB => Fate::Refused(TND_ST_TABLE_FULL),
        _ => Fate::Done,
    };
    r.play(0, full, |_| {});
    let traps = |r: &Rig| r.chip.vlans[&FID].flags & TND_VLAN_UC_TRAP != 0;
    assert!(traps(&r));
    r.up(Object::Fdb(fdb(2, 11, FdbKind::Static)));
    r.plan();
    r.up(in_state(2, BR_STATE_DISABLED));
    r.del(key_of(&stranger));
    let shut = |r: &Rig| r.chip.ports[&2].stp_state == BR_STATE_DISABLED;
    assert!(!shut(&r));
    r.play(0, |_| Fate::Done, |r| assert!(traps(r) || shut(r)));
    assert!(shut(&r) && !traps(&r));
}

/// A station moves to a port that leaves, of which the chip has not heard when it goes with that: its entry goes after the port all the same.
#[test]
fn a_station_that_has_moved_to_a_port_that_leaves_goes_after_it() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    let station = fdb(1, 11, FdbKind::Static);
    r.up(Object::Fdb(station));
    r.settle();
    r.up(Object::Fdb(fdb(1, 12, FdbKind::Static)));
    r.up(Object::Link(swp(2)));
    r.del(key_of(&station));
    let known = |r: &Rig| r.chip.fdb.contains_key(&(FID, station.mac));
    assert!(known(&r));
    let look = |r: &Rig| assert!(known(r) || !r.chip.members.keys().any(|k| k.0 == 2));
    r.play(0, |_| Fate::Done, look);
    assert!(!known(&r));
}

/// What the chip holds, for the next process.
fn left(r: &mut Rig) -> Left {
    let members: Vec<tnd_vlan_member> = r.chip.dump(TND_CLS_VLAN_MEMBER);
    Left {
        ports: r.chip.dump(TND_CLS_PORT),
        members: members.iter().map(|m| ((m.port, m.vid), m.fid)).collect(),
        ..Left::default()
    }
}

/// One leaves between a warm attach and its sweep: the others of its bridge give all to the CPU from then on.
#[test]
fn who_leaves_before_the_sweep_makes_the_others_trap() {
    let mut r = bridged("spectrum-sn2700");
    r.up(joined(3));
    r.settle();
    let left = left(&mut r);
    r.chip.reload();
    r.store.adopt(left);
    r.store.attach(Attach::Warm, r.now);
    r.plan();
    r.judged = true;
    r.up(Object::Link(swp(2)));
    let mut trapped = 0;
    while r.plan() > 0 || r.run(0) || r.run(1) {
        trapped += usize::from(flags(&mut r, 1) & TND_PORT_TRAP_ALL != 0);
    }
    r.settle();
    assert!(trapped > 0);
    for port in [1, 3] {
        assert_eq!(flags(&mut r, port) & TND_PORT_TRAP_ALL, 0);
    }
}

/// One has left, and another one come, while nobody listened: who came is not flooded to the one that has left.
#[test]
fn who_comes_unheard_traps_until_who_left_unheard_has_gone() {
    let mut r = bridged("spectrum-sn2700");
    r.up(Object::Link(swp(3)));
    r.settle();
    let left = left(&mut r);
    r.chip.reload();
    r.store.adopt(left);
    r.store.attach(Attach::Warm, r.now);
    r.up(Object::Link(swp(2)));
    r.up(joined(3));
    let (mut swept, mut came) = (false, false);
    loop {
        r.plan();
        let ends = |p: &Planned| p.op == TND_OP_END_RESYNC;
        swept |= r.chip.rings[0].front().is_some_and(ends);
        if !r.run(0) && !r.run(1) {
            break;
        }
        let is_member = r.chip.members.contains_key(&(3, TND_VID_ANY));
        came |= is_member && !swept;
        assert!(swept || !is_member || flags(&mut r, 3) & TND_PORT_TRAP_ALL != 0);
    }
    r.settle();
    assert!(swept && came);
    for port in [1, 3] {
        assert_eq!(flags(&mut r, port) & TND_PORT_TRAP_ALL, 0);
    }
}

//! A group of the VLAN database's ports is one port of its bridge, on the very chip.
//!
//! ```text
//!   port 1 access 10 ─┐               ┌─ port 3 ─┐
//!   port 2 access 10 ─┴─ bridge ─ group 5, trunk │ one of them
//!                                     └─ port 4 ─┘
//! ```

use super::*;
use tandem_vlans::{Database, Mode, Port, State, Switch, Vlan, VlanSet, port_of_group, tagged};

const VLANS: u8 = 9;
const GROUP: u16 = 5;
const VID: u16 = 10;

fn port(n: u16, mode: Mode) -> Port {
    Port {
        name: format!("port {n}"),
        mac: mac(n as u8),
        mtu: 1500,
        up: true,
        mode,
    }
}

fn trunk() -> Mode {
    Mode::Trunk {
        native: 1,
        allowed: VlanSet::all(),
    }
}

fn switch() -> Switch {
    let mut d = Database::new(mac(199));
    let (name, active) = ("a".into(), true);
    d.set_vlan(VID, Vlan { name, active }).unwrap();
    for n in 1..=4 {
        d.set_port(n, port(n, Mode::Access(VID))).unwrap();
    }
    let group = port_of_group(GROUP);
    d.set_port(group, port(group, trunk())).unwrap();
    for n in [3, 4] {
        d.join(n, Some(GROUP)).unwrap();
    }
    Switch::new(d)
}

struct World {
    rig: Rig,
    switch: Switch,
}

impl World {
    fn on(chip: Shared, how: Attach, switch: Switch) -> World {
        let rules = [Family::V4, Family::V6].map(|f| rule(f, 32766, TABLE_MAIN, false));
        let kernel = Fake::told(KERNEL, "kernel", rules.to_vec());
        let (vlans, teller) = switch.source(SourceId(VLANS), None);
        let front = |port| Front {
            port,
            name: format!("port {port}"),
            ifindex: Database::device(port),
        };
        let kernel: Arc<dyn tandem_core::source::Source + Sync> = kernel;
        let seat = |source, ports: &[u16]| Seat {
            source,
            ports: ports.to_vec(),
            hold_ns: HOLD,
        };
        let seats = vec![seat(kernel, &[]), seat(Arc::new(vlans), &[1, 2, 3, 4])];
        let mut rig = Rig::seated(chip, how, (1..=4).map(front).collect(), seats);
        rig.teller = Some(teller);
        rig.settle();
        World { rig, switch }
    }

    fn new() -> World {
        World::on(chip(), Attach::Cold, switch())
    }

    /// By which ports a frame leaves that comes in by one.
    fn out(&mut self, port: u16, frame: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut passed = Passed::default();
        let now = self.rig.now;
        self.rig.chip.lock().look(port, frame, now, &mut passed);
        passed.out.sort();
        passed.out
    }

    fn ports(&mut self, port: u16, frame: &[u8]) -> Vec<u16> {
        self.out(port, frame).into_iter().map(|o| o.0).collect()
    }

    /// What floods from a host leaves by the other one, and by these ports of the group, now by one, now by another.
    fn floods_by(&mut self, members: &[u16]) {
        let mut seen = std::collections::BTreeSet::new();
        for flow in 0..64 {
            let frame = flow_of(flow);
            let out = self.out(1, &frame);
            let with = tagged(&frame, VID).unwrap();
            let group: Vec<_> = out.iter().filter(|o| o.0 != 2).collect();
            assert_eq!(out.len() - group.len(), 1, "the other host has it");
            assert_eq!(
                group.len(),
                members.len().min(1),
                "and the group once: {out:?}"
            );
            for (port, sent) in group {
                assert_eq!(*sent, with);
                seen.insert(*port);
            }
        }
        assert!(seen.iter().eq(members), "{seen:?}");
    }

    fn change(&mut self, f: impl FnOnce(&mut Database)) {
        self.switch.change(f);
        self.rig.settle();
        self.is_right();
    }

    /// The store and the chip have what the database says.
    fn is_right(&mut self) {
        let answer = tandem_core::api::audit_own(&mut self.rig.core).unwrap();
        assert!(answer.items.is_empty(), "{:?}", answer.items);
    }
}

/// To a station that nobody knows, from one of many.
fn flow_of(n: u8) -> Vec<u8> {
    let mut f = packet(mac(77), [10, 10, 0, n]);
    f[11] = n;
    f
}

#[test]
fn what_floods_leaves_by_one_port_of_a_group() {
    let mut w = World::new();
    w.is_right();
    w.floods_by(&[3, 4]);
    // by one of its ports, and not back by the other
    let with = tagged(&flow_of(1), VID).unwrap();
    for port in [3, 4] {
        assert_eq!(w.ports(port, &with), [1, 2]);
    }
    // a cable is cut: without a word of anybody
    w.rig.chip.lock().cables(&[3]);
    w.floods_by(&[4]);
    w.rig.chip.lock().cables(&[]);
    w.floods_by(&[3, 4]);
    // shut down
    w.change(|d| {
        let up = false;
        d.set_port(
            4,
            Port {
                up,
                ..port(4, Mode::Access(VID))
            },
        )
        .unwrap();
    });
    w.floods_by(&[3]);
    assert!(w.ports(4, &with).is_empty());
}

#[test]
fn a_group_has_stations_and_a_state() {
    let mut w = World::new();
    let group = port_of_group(GROUP);
    let to = mac(77);
    w.change(|d| d.fix(VID, to, Some(group)).unwrap());
    for flow in 0..16 {
        let out = w.ports(1, &flow_of(flow));
        assert!(out == [3] || out == [4], "{out:?}");
    }
    w.change(|d| _ = d.set_state(group, State::Blocking));
    assert!(w.ports(1, &flow_of(1)).is_empty());
    let with = tagged(&packet([0xff; 6], [10, 10, 0, 1]), VID).unwrap();
    assert!(w.ports(3, &with).is_empty());
    w.change(|d| _ = d.set_state(group, State::Forwarding));
    assert_eq!(w.ports(3, &with), [1, 2]);
    // another mode is that of all its ports
    w.change(|d| d.set_port(group, port(group, Mode::Access(VID))).unwrap());
    let bare = packet([0xff; 6], [10, 10, 0, 1]);
    assert_eq!(w.ports(4, &bare), [1, 2]);
    assert_eq!(w.out(1, &bare)[1].1, bare);
}

#[test]
fn ports_come_and_go() {
    let mut w = World::new();
    w.change(|d| d.join(3, None).unwrap());
    // an access port again, beside a group of one
    assert_eq!(w.ports(1, &flow_of(1)), [2, 3, 4]);
    w.change(|d| d.join(4, None).unwrap());
    assert_eq!(w.ports(4, &flow_of(1)), [1, 2, 3]);
    w.change(|d| d.remove_port(port_of_group(GROUP)).unwrap());
    assert_eq!(w.ports(4, &flow_of(1)), [1, 2, 3]);
    // of a group without ports nobody hears, and nothing traps for it
    let group = port_of_group(GROUP);
    w.change(|d| d.set_port(group, port(group, trunk())).unwrap());
    let mut passed = Passed::default();
    let now = w.rig.now;
    w.rig.chip.lock().look(1, &flow_of(1), now, &mut passed);
    assert_eq!((passed.out.len(), passed.cpu.len()), (3, 0));
    w.change(|d| {
        d.join(3, Some(GROUP)).unwrap();
        d.join(4, Some(GROUP)).unwrap();
    });
    w.floods_by(&[3, 4]);
}

#[test]
fn a_group_outlives_who_made_it() {
    let w = World::new();
    let (chip, switch) = (w.rig.chip.clone(), w.switch.clone());
    drop(w);
    chip.lock().changes = Some(Vec::new());
    let mut w = World::on(chip, Attach::Warm, switch);
    let changed = w.rig.changes();
    let written = changed.iter().filter(|c| c.0 != raw::TND_OP_END_RESYNC);
    let others: Vec<_> = written.filter(|c| c.0 != raw::TND_OP_CREATE).collect();
    assert!(others.is_empty(), "all is there: {others:?}");
    w.is_right();
    w.floods_by(&[3, 4]);
}

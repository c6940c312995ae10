//! What the database says is what it has, whenever somebody listens.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;

use proptest::prelude::*;
use tandem_core::source::{BATCH, Message, Source, Write};
use tandem_store::model::{BridgeVlan, Event, FdbKind, Key, Object, SourceId};
use tandem_vlans::{
    Database, Mode, Port, Refusal, STATIONS, Switch, TapMaker, TapOf, Teller, Turn, Vlan, VlanSet,
    Vlans,
};

const ID: SourceId = SourceId(9);

fn port(mode: Mode) -> Port {
    Port {
        name: "Gi1/0/1".into(),
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        up: true,
        mode,
    }
}

fn vlan(active: bool) -> Vlan {
    let name = "a".into();
    Vlan { name, active }
}

fn key(object: &Object) -> Key {
    match object {
        Object::Link(l) => Key::Link(l.ifindex),
        Object::BridgeVlan(v) => Key::BridgeVlan(v.ifindex, v.vid),
        Object::Fdb(f) => Key::Fdb(tandem_store::model::FdbKey {
            bridge: f.bridge,
            vlan: f.vlan,
            mac: f.mac,
        }),
        other => panic!("{other:?}"),
    }
}

/// A listener that keeps what it is told, as the store does.
#[derive(Default)]
struct Ear {
    /// By key, with whether it was confirmed.
    has: HashMap<String, (Object, bool)>,
    barriers: Vec<u64>,
    events: usize,
    dumps: usize,
}

impl Ear {
    fn listen(&mut self, source: &Vlans) {
        for message in source.messages().try_iter() {
            match message {
                Message::Events(events) => {
                    assert!((1..=BATCH).contains(&events.len()));
                    self.events += events.len();
                    events.into_iter().for_each(|e| self.hear(e));
                }
                Message::Barrier(token) => self.barriers.push(token),
                Message::Warning(text) => panic!("{text}"),
            }
        }
    }

    fn hear(&mut self, event: Event) {
        assert_eq!(event.source(), ID);
        match event {
            Event::BeginSync(..) => self.has.values_mut().for_each(|x| x.1 = false),
            Event::EndSync(_) => {
                self.dumps += 1;
                self.has.retain(|_, x| x.1);
            }
            Event::Upsert(_, object) => {
                let key = format!("{:?}", key(&object));
                self.has.insert(key, (object, true));
            }
            Event::Remove(_, key) => _ = self.has.remove(&format!("{key:?}")),
        }
    }

    fn agrees(&self, source: &Vlans) -> bool {
        let said = source.snapshot().unwrap();
        let has = |o: &Object| self.has.get(&format!("{:?}", key(o)));
        said.len() == self.has.len() && said.iter().all(|o| has(o).is_some_and(|x| x.0 == *o))
    }
}

fn listening(d: Database) -> (Switch, Vlans, Teller, Ear) {
    let switch = Switch::new(d);
    let (source, teller) = switch.source(ID, None);
    (switch, source, teller, Ear::default())
}

fn write(source: &Vlans, all: &[Write]) -> Vec<String> {
    let mut failed = Vec::new();
    let mut writer = source.writer().unwrap();
    writer.write(all, &mut |_, e| failed.push(e.0)).unwrap();
    failed
}

fn learned(port: u16, vlan: u16, n: u32) -> Write {
    let [a, b, c, d] = n.to_be_bytes();
    Write::FdbLearned {
        ifindex: Database::device(port),
        mac: [2, 7, a, b, c, d],
        vlan,
    }
}

fn trunk(native: u16, allowed: impl IntoIterator<Item = u16>) -> Mode {
    Mode::Trunk {
        native,
        allowed: allowed.into_iter().collect(),
    }
}

/// Memberships that are said of a device: VID, PVID, untagged.
fn members(source: &Vlans, device: u32) -> Vec<(u16, bool, bool)> {
    let all = source.snapshot().unwrap().into_iter();
    let of_it = all.filter_map(|o| match o {
        Object::BridgeVlan(BridgeVlan {
            ifindex,
            vid,
            pvid,
            untagged,
            ..
        }) if ifindex == device => Some((vid, pvid, untagged)),
        _ => None,
    });
    of_it.collect()
}

#[test]
fn a_port_is_in_those_vlans_that_there_are() {
    let mut d = Database::new([2; 6]);
    d.set_port(1, port(Mode::Access(10))).unwrap();
    d.set_port(2, port(trunk(1, [1, 10, 20]))).unwrap();
    let (switch, source, ..) = listening(d);
    let of = |n| members(&source, Database::device(n));
    assert_eq!(of(1), []);
    assert_eq!(of(2), [(1, true, true)]);
    switch.change(|d| d.set_vlan(10, vlan(true))).unwrap();
    switch.change(|d| d.set_vlan(20, vlan(false))).unwrap();
    assert_eq!(of(1), [(10, true, true)]);
    assert_eq!(of(2), [(1, true, true), (10, false, false)]);
    switch.change(|d| d.set_tag_native(true));
    assert_eq!(of(2), [(1, false, false), (10, false, false)]);
    switch.change(|d| d.set_vlan(20, vlan(true))).unwrap();
    assert_eq!(of(2).len(), 3);
    switch.change(|d| d.remove_vlan(10)).unwrap();
    assert_eq!(of(1), []);
}

#[test]
fn what_can_not_be_is_refused_in_words() {
    let mut d = Database::new([2; 6]);
    let words = |r: Result<(), Refusal>| r.unwrap_err().to_string();
    for vid in [0, 4095, u16::MAX] {
        let text = format!("{vid} is no VLAN id: 1 to 4094 are");
        assert_eq!(words(d.set_vlan(vid, vlan(true))), text);
        assert_eq!(words(d.set_port(1, port(Mode::Access(vid)))), text);
        assert_eq!(words(d.set_port(1, port(trunk(vid, [])))), text);
        assert_eq!(words(d.set_tap(vid, None)), text);
    }
    assert_eq!(
        words(d.set_vlan(1, vlan(false))),
        "VLAN 1 is the default VLAN: it stays, and is active"
    );
    assert_eq!(d.remove_vlan(1), Err(Refusal::DefaultVlan));
    assert_eq!(words(d.remove_vlan(7)), "VLAN 7 is not there");
    assert_eq!(
        words(d.remove_port(7)),
        "port 7 is not of the VLAN database"
    );
    let none = d.set_port(0, port(Mode::Access(1)));
    assert_eq!(words(none), "ports begin with 1");
    let tap = |device| {
        let mac = [2, 9, 9, 9, 9, 9];
        Some(TapOf { device, mac })
    };
    d.set_tap(10, tap(57)).unwrap();
    assert_eq!(
        words(d.set_tap(20, tap(57))),
        "device 57 is the TAP of VLAN 10 already"
    );
    d.set_tap(10, tap(58)).unwrap();
    d.set_tap(20, tap(57)).unwrap();
}

#[test]
fn stations_come_and_go_with_what_they_are_behind() {
    let mut d = Database::new([2; 6]);
    for vid in [10, 20] {
        d.set_vlan(vid, vlan(true)).unwrap();
    }
    d.set_port(1, port(trunk(1, [10, 20]))).unwrap();
    d.set_port(2, port(Mode::Access(10))).unwrap();
    let (switch, source, mut teller, mut ear) = listening(d);
    let n = || switch.change(|d| d.stations().count());
    let all = [
        learned(1, 10, 1),
        learned(1, 20, 1),
        learned(2, 10, 2),
        learned(1, 10, 3),
    ];
    assert_eq!(write(&source, &all), [""; 0]);
    assert_eq!(n(), 4);
    // what can't be, each by itself
    let multicast = Write::FdbLearned {
        ifindex: Database::device(1),
        mac: [1, 0, 0, 0, 0, 1],
        vlan: 10,
    };
    let elsewhere = Write::FdbLearned {
        ifindex: 57,
        mac: [2; 6],
        vlan: 10,
    };
    let wrong = [learned(2, 20, 9), multicast, elsewhere, learned(3, 10, 9)];
    let words = [
        "port 2 is not in VLAN 20",
        "[01, 00, 00, 00, 00, 01] is no station",
        "device 57 is no port of the VLAN database",
        &format!(
            "device {} is no port of the VLAN database",
            Database::device(3)
        ),
    ];
    assert_eq!(write(&source, &wrong), words);
    assert_eq!(n(), 4);
    // one that has moved is not forgotten by where it was
    let aged = |port| Write::FdbAged {
        ifindex: Database::device(port),
        mac: [2, 7, 0, 0, 0, 3],
        vlan: 10,
    };
    write(&source, &[learned(2, 10, 3), aged(1)]);
    assert_eq!(n(), 4);
    write(&source, &[aged(2)]);
    assert_eq!(n(), 3);
    assert_eq!(teller.turn(), Turn::Done);
    ear.listen(&source);
    let of_chip = |o: &Object| matches!(o, Object::Fdb(f) if f.kind == FdbKind::ExternLearn);
    assert_eq!(ear.has.values().filter(|x| of_chip(&x.0)).count(), 3);
    let on = Database::device(1);
    write(
        &source,
        &[Write::FdbFlush {
            ifindex: on,
            vlan: 20,
        }],
    );
    assert_eq!(n(), 2);
    switch
        .change(|d| d.set_port(2, port(Mode::Access(20))))
        .unwrap();
    assert_eq!(n(), 1);
    switch.change(|d| d.set_vlan(10, vlan(false))).unwrap();
    assert_eq!(n(), 0);
    teller.turn();
    ear.listen(&source);
    assert!(ear.agrees(&source));
}

/// However much changes while nobody reads, there is an end to what waits; and then all is there.
#[test]
fn what_waits_has_a_limit() {
    let mut d = Database::new([2; 6]);
    d.set_port(1, port(Mode::Access(1))).unwrap();
    let (_switch, source, mut teller, mut ear) = listening(d);
    assert_eq!(teller.turn(), Turn::Done);
    let most = STATIONS as u32;
    let all: Vec<Write> = (0..most + 3).map(|n| learned(1, 1, n)).collect();
    let failed = write(&source, &all);
    assert_eq!(failed, vec!["the database has 65536 stations"; 3]);
    assert_eq!(teller.turn(), Turn::Full);
    for _ in 0..3 {
        // one that the core hears of as it is at last, or not at all
        for n in 0..most {
            let mac = [2, 7, 0, (n >> 16) as u8, (n >> 8) as u8, n as u8];
            let ifindex = Database::device(1);
            let aged = Write::FdbAged {
                ifindex,
                mac,
                vlan: 1,
            };
            write(&source, &[aged]);
            if n % 3 == 0 {
                write(&source, &[learned(1, 1, n)]);
            }
        }
        // others, which were never there
        for n in most..2 * most {
            write(&source, &[learned(1, 1, n)]);
        }
        write(
            &source,
            &[Write::FdbFlush {
                ifindex: Database::device(1),
                vlan: 1,
            }],
        );
        write(&source, &all[..1000]);
    }
    let mut turns = 0;
    while teller.turn() == Turn::Full {
        ear.listen(&source);
        turns += 1;
        assert!(turns < 100);
    }
    ear.listen(&source);
    assert!(ear.dumps >= 2, "more than is remembered: all is said anew");
    assert!(ear.events < 10 * STATIONS);
    assert!(ear.agrees(&source));
}

#[test]
fn a_barrier_is_behind_what_was_before_it() {
    let (switch, source, mut teller, mut ear) = listening(Database::new([2; 6]));
    source.barrier(1);
    for vid in 2..4095 {
        switch.change(|d| d.set_vlan(vid, vlan(true))).unwrap();
    }
    let all = Mode::Trunk {
        native: 1,
        allowed: VlanSet::all(),
    };
    for n in 1..=8 {
        switch.change(|d| d.set_port(n, port(all.clone()))).unwrap();
    }
    source.barrier(2);
    while teller.turn() == Turn::Full {
        assert!(ear.barriers.is_empty());
        ear.listen(&source);
    }
    ear.listen(&source);
    assert_eq!(ear.barriers, [1, 2]);
    assert_eq!(ear.has.len(), 1 + 8 + 8 * 4094);
    assert!(ear.agrees(&source));
    // who asks and asks has given up on the oldest
    (0..100).for_each(|t| source.barrier(t));
    assert_eq!(teller.turn(), Turn::Done);
    ear.listen(&source);
    assert_eq!(ear.barriers.len(), 2 + 64);
    assert_eq!(ear.barriers.last(), Some(&99));
}

#[test]
fn one_speaks_at_a_time() {
    let (switch, source, mut teller, mut ear) = listening(Database::new([2; 6]));
    teller.turn();
    ear.listen(&source);
    assert!(ear.agrees(&source));
    let (second, mut new) = switch.source(ID, None);
    assert_eq!(teller.turn(), Turn::Over);
    drop(teller);
    assert_eq!(new.turn(), Turn::Done);
    let mut ear = Ear::default();
    ear.listen(&second);
    assert!(ear.agrees(&second));
    // the core is gone
    drop(second);
    switch.change(|d| d.set_ageing(10));
    assert_eq!(new.turn(), Turn::Over);
}

/// One whose core does not read is replaced while it holds what found no room.
#[test]
fn one_that_was_full_ends_as_well() {
    let (switch, source, mut teller, _) = listening(Database::new([2; 6]));
    let every = 2..4095;
    every.for_each(|vid| switch.change(|d| d.set_vlan(vid, vlan(true))).unwrap());
    for n in 1..=8 {
        let all = trunk(1, 1..4095);
        switch.change(|d| d.set_port(n, port(all))).unwrap();
    }
    assert_eq!(teller.turn(), Turn::Full);
    let (second, mut new) = switch.source(ID, None);
    assert_eq!(teller.turn(), Turn::Over);
    drop(source);
    let mut ear = Ear::default();
    while new.turn() == Turn::Full {
        ear.listen(&second);
    }
    ear.listen(&second);
    assert!(ear.agrees(&second));
}

/// A thread that speaks: it wakes up for what comes, and ends with the core.
#[test]
fn a_thread_speaks_until_the_core_is_gone() {
    let (switch, source, teller, mut ear) = listening(Database::new([2; 6]));
    let thread = std::thread::spawn(move || teller.run(|| false));
    while ear.dumps == 0 {
        ear.hear_one(&source);
    }
    switch.change(|d| d.set_vlan(10, vlan(true))).unwrap();
    switch
        .change(|d| d.set_port(1, port(Mode::Access(10))))
        .unwrap();
    source.barrier(7);
    while ear.barriers.is_empty() {
        ear.hear_one(&source);
    }
    assert!(ear.agrees(&source));
    drop(source);
    switch.change(|d| d.set_ageing(10));
    thread.join().unwrap();
}

impl Ear {
    fn hear_one(&mut self, source: &Vlans) {
        match source.messages().recv().unwrap() {
            Message::Events(events) => events.into_iter().for_each(|e| self.hear(e)),
            Message::Barrier(token) => self.barriers.push(token),
            Message::Warning(text) => panic!("{text}"),
        }
    }
}

/// Devices that are numbers alone.
#[derive(Default)]
struct Numbers {
    made: Vec<u16>,
    refuse: bool,
}

impl TapMaker for Numbers {
    fn make(&mut self, vid: u16) -> Result<TapOf, String> {
        if self.refuse {
            return Err("there are no TAPs here".into());
        }
        self.made.push(vid);
        let mac = [2, 9, 0, 0, 0, vid as u8];
        let device = 100 + u32::from(vid);
        Ok(TapOf { device, mac })
    }

    fn remove(&mut self, vid: u16) {
        self.made.retain(|v| *v != vid);
    }
}

#[test]
fn an_interface_has_a_device_and_its_vlan_may_come_later() {
    let (switch, source, ..) = listening(Database::new([2; 6]));
    let mut maker = Numbers::default();
    let taps = || {
        let all = source.snapshot().unwrap().into_iter();
        let of_it = all.filter_map(|o| match o {
            Object::BridgeVlan(v) if v.tap != 0 => Some((v.vid, v.tap)),
            _ => None,
        });
        of_it.collect::<Vec<_>>()
    };
    assert_eq!(switch.route(10, &mut maker), Ok(110));
    assert_eq!(taps(), []);
    let local =
        |o: &Object| matches!(o, Object::Fdb(f) if f.kind == FdbKind::Local && f.vlan == 10);
    assert!(!source.snapshot().unwrap().iter().any(local));
    switch.change(|d| d.set_vlan(10, vlan(true))).unwrap();
    assert_eq!(taps(), [(10, 110)]);
    assert!(source.snapshot().unwrap().iter().any(local));
    // neither is a device made for what is no VLAN
    assert!(switch.route(4095, &mut maker).is_err());
    assert_eq!(maker.made, [10]);
    maker.refuse = true;
    let error = switch.route(20, &mut maker).unwrap_err();
    assert_eq!(error, "there are no TAPs here");
    switch.unroute(10, &mut maker).unwrap();
    assert_eq!((taps(), maker.made), (vec![], vec![]));
    assert!(!source.snapshot().unwrap().iter().any(local));
}

#[test]
fn frames_of_the_cpu_go_as_the_ports_have_it() {
    let mut d = Database::new([2; 6]);
    d.set_vlan(10, vlan(true)).unwrap();
    d.set_port(1, port(Mode::Access(10))).unwrap();
    d.set_port(2, port(trunk(1, [1, 10]))).unwrap();
    d.set_port(3, port(Mode::Access(1))).unwrap();
    let down = Port {
        up: false,
        ..port(Mode::Access(10))
    };
    d.set_port(4, down).unwrap();
    let (switch, source, ..) = listening(d);
    write(&source, &[learned(2, 10, 1)]);
    let station = [2, 7, 0, 0, 0, 1];
    switch.change(|d| {
        assert_eq!(d.ways(10, station), [(2, true)]);
        assert_eq!(d.ways(10, [0xff; 6]), [(1, false), (2, true)]);
        assert_eq!(d.ways(1, station), [(2, false), (3, false)]);
        assert_eq!(d.ways(20, station), []);
        assert_eq!((d.vlan_at(1, 0), d.vlan_at(1, 10)), (Some(10), Some(10)));
        assert_eq!((d.vlan_at(2, 0), d.vlan_at(2, 10)), (Some(1), Some(10)));
        assert_eq!((d.vlan_at(1, 20), d.vlan_at(9, 0)), (None, None));
        d.set_tag_native(true);
        assert_eq!((d.vlan_at(2, 0), d.vlan_at(2, 1)), (None, Some(1)));
        assert_eq!(d.ways(1, station), [(2, true), (3, false)]);
    });
}

#[derive(Clone, Debug)]
enum Step {
    Vlan(u16, Option<bool>),
    Port(u16, Option<Mode>),
    Tap(u16, Option<u8>),
    Native(bool),
    Learned(u16, u16, u32),
    Aged(u16, u16, u32),
    Turn,
    Listen,
    Resync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let vid = || 1u16..5;
    let mode = prop_oneof![
        vid().prop_map(Mode::Access),
        (vid(), prop::collection::vec(vid(), 0..4)).prop_map(|(n, all)| trunk(n, all)),
    ];
    let state = prop_oneof![4 => Just(Some(true)), 1 => Just(Some(false)), 1 => Just(None)];
    let step = prop_oneof![
        (vid(), state).prop_map(|(v, s)| Step::Vlan(v, s)),
        (1u16..4, prop::option::weighted(0.8, mode)).prop_map(|(n, m)| Step::Port(n, m)),
        (vid(), prop::option::of(0u8..3)).prop_map(|(v, t)| Step::Tap(v, t)),
        any::<bool>().prop_map(Step::Native),
        (1u16..4, vid(), 0u32..4).prop_map(|(p, v, n)| Step::Learned(p, v, n)),
        (1u16..4, vid(), 0u32..4).prop_map(|(p, v, n)| Step::Learned(p, v, n)),
        (1u16..4, vid(), 0u32..4).prop_map(|(p, v, n)| Step::Aged(p, v, n)),
        Just(Step::Turn),
        Just(Step::Listen),
        Just(Step::Resync),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn who_listens_has_what_there_is(steps in steps()) {
        let (switch, source, mut teller, mut ear) = listening(Database::new([2; 6]));
        for step in steps {
            match step {
                Step::Vlan(v, Some(active)) => _ = switch.change(|d| d.set_vlan(v, vlan(active))),
                Step::Vlan(v, None) => _ = switch.change(|d| d.remove_vlan(v)),
                Step::Port(n, Some(mode)) => _ = switch.change(|d| d.set_port(n, port(mode))),
                Step::Port(n, None) => _ = switch.change(|d| d.remove_port(n)),
                Step::Tap(v, tap) => {
                    let tap = tap.map(|n| TapOf {
                        device: 57 + u32::from(n),
                        // one of them may have been a station's
                        mac: [2, 7, 0, 0, 0, n],
                    });
                    _ = switch.change(|d| d.set_tap(v, tap));
                }
                Step::Native(on) => switch.change(|d| d.set_tag_native(on)),
                Step::Learned(p, v, n) => _ = write(&source, &[learned(p, v, n)]),
                Step::Aged(p, v, n) => {
                    let ifindex = Database::device(p);
                    let mac = [2, 7, 0, 0, 0, n as u8];
                    write(&source, &[Write::FdbAged { ifindex, mac, vlan: v }]);
                }
                Step::Turn => _ = teller.turn(),
                Step::Listen => ear.listen(&source),
                Step::Resync => source.resync(),
            }
            // whoever is a station is behind a port that is in its VLAN
            let lost = switch.change(|d| {
                let mut all = d.stations();
                all.find(|(v, _, p)| d.vlan_at(*p, *v).is_none())
            });
            prop_assert_eq!(lost, None);
        }
        prop_assert_eq!(teller.turn(), Turn::Done);
        ear.listen(&source);
        prop_assert!(ear.agrees(&source));
    }
}

#[test]
fn a_station_set_by_hand_stays_where_it_was_set() {
    let mut d = Database::new([2, 0, 0, 0, 0, 0x99]);
    for n in [1, 2] {
        d.set_port(n, port(Mode::Access(1))).unwrap();
    }
    let mac = [2, 0, 0, 0, 0, 7];
    assert_eq!(d.fix(1, [3; 6], Some(1)), Err(Refusal::NoStation([3; 6])));
    assert_eq!(d.fix(0, mac, Some(1)), Err(Refusal::NoVlanId(0)));
    d.fix(1, mac, Some(1)).unwrap();
    let switch = Switch::new(d);
    let (vlans, mut teller) = switch.source(ID, None);
    let learn = |port, mac| Write::FdbLearned {
        ifindex: Database::device(port),
        mac,
        vlan: 1,
    };
    let mut writer = vlans.writer().unwrap();
    let other = [2, 0, 0, 0, 0, 8];
    let writes = [learn(2, mac), learn(2, other)];
    writer.write(&writes, &mut |_, e| panic!("{e}")).unwrap();
    assert_eq!(switch.ask(|d| d.ways(1, mac)), [(1, false)]);
    let learned: Vec<_> = switch.ask(|d| d.stations().collect());
    assert_eq!(learned, [(1, other, 2)]);
    let mut ear = Ear::default();
    let mut places = |teller: &mut Teller| {
        assert_eq!(teller.turn(), Turn::Done);
        ear.listen(&vlans);
        let mut all: Vec<_> = ear
            .has
            .values()
            .filter_map(|(o, _)| match o {
                Object::Fdb(f) => Some((f.mac[5], f.ifindex, f.kind, f.sticky)),
                _ => None,
            })
            .collect();
        all.sort_by_key(|x| x.0);
        all
    };
    let device = Database::device;
    let fixed = (7, device(1), FdbKind::Static, true);
    let learned = (8, device(2), FdbKind::ExternLearn, false);
    assert_eq!(places(&mut teller), [fixed, learned]);
    // its port leaves the VLAN, and comes back
    switch.change(|d| d.set_port(1, port(Mode::Access(2))).unwrap());
    assert_eq!(places(&mut teller), [learned]);
    switch.change(|d| d.set_port(1, port(Mode::Access(1))).unwrap());
    assert_eq!(places(&mut teller), [fixed, learned]);
    switch.change(|d| d.forget_stations(Some(1), None));
    assert_eq!(places(&mut teller), [fixed]);
    switch.change(|d| d.fix(1, mac, None).unwrap());
    assert_eq!(places(&mut teller), []);
}

#[test]
fn a_port_without_carrier_has_nobody_and_no_way() {
    let mut d = Database::new([2, 0, 0, 0, 0, 0x99]);
    for n in [1, 2] {
        d.set_port(n, port(Mode::Access(1))).unwrap();
    }
    let all = [0xff; 6];
    assert_eq!(d.is_alive(1), None, "nothing is known yet");
    assert_eq!(d.ways(1, all).len(), 2);
    d.set_carrier(1, false);
    assert_eq!((d.is_alive(1), d.ways(1, all)), (None, vec![(2, false)]));
    d.set_carrier(2, true);
    assert_eq!(d.is_alive(1), Some(true));
    assert_eq!(d.is_alive(2), Some(false), "it has no ports");
    let switch = Switch::new(d);
    let (vlans, _teller) = switch.source(ID, None);
    let mac = [2, 0, 0, 0, 0, 7];
    let learned = Write::FdbLearned {
        ifindex: Database::device(2),
        mac,
        vlan: 1,
    };
    let mut writer = vlans.writer().unwrap();
    writer.write(&[learned], &mut |_, e| panic!("{e}")).unwrap();
    assert_eq!(switch.ask(|d| d.stations().count()), 1);
    switch.change(|d| d.set_carrier(2, false));
    assert_eq!(
        switch.ask(|d| (d.stations().count(), d.is_alive(1))),
        (0, Some(false))
    );
    switch.change(|d| {
        d.set_carrier(2, true);
        d.set_port(
            2,
            Port {
                up: false,
                ..port(Mode::Access(1))
            },
        )
        .unwrap();
    });
    assert_eq!(switch.ask(|d| d.is_alive(1)), Some(false), "shut down");
}

/// Of a port whose frames all trap the chip learns nobody.
#[test]
fn who_is_heard_by_the_cpu_alone_is_known_for_a_while() {
    const SECOND: u64 = 1_000_000_000;
    let mut d = Database::new([2, 0, 0, 0, 0, 0x99]);
    for n in [1, 2] {
        d.set_port(n, port(Mode::Access(1))).unwrap();
    }
    let (mac, router) = ([2, 0, 0, 0, 0, 7], [2, 0, 0, 0, 0, 0x99]);
    d.set_tap(
        1,
        Some(TapOf {
            device: 57,
            mac: router,
        }),
    )
    .unwrap();
    let all = |d: &Database| d.stations().collect::<Vec<_>>();
    for nobody in [[3; 6], [0; 6], router] {
        d.heard(1, 1, nobody, 0);
    }
    d.heard(1, 2, mac, 0);
    assert_eq!(all(&d), [], "no station, or not in that VLAN");
    d.heard(1, 1, mac, SECOND);
    assert_eq!(
        (all(&d), d.ways(1, mac)),
        (vec![(1, mac, 1)], vec![(1, false)])
    );
    assert!(d.age(300 * SECOND));
    d.heard(2, 1, mac, 300 * SECOND);
    assert_eq!(d.ways(1, mac), [(2, false)], "it has moved");
    assert!(d.age(599 * SECOND));
    assert!(!d.age(600 * SECOND));
    assert_eq!(d.ways(1, mac).len(), 2);

    let switch = Switch::new(d);
    let (vlans, mut teller) = switch.source(ID, None);
    let mut ear = Ear::default();
    let mut told = |teller: &mut Teller| {
        assert_eq!(teller.turn(), Turn::Done);
        ear.listen(&vlans);
        let fdb = ear.has.values().filter_map(|(o, _)| match o {
            Object::Fdb(f) if f.mac == mac => Some(f.ifindex),
            _ => None,
        });
        fdb.collect::<Vec<_>>()
    };
    // the chip's word goes before, but for one that it does not see where it is now
    let mut writer = vlans.writer().unwrap();
    let learned = Write::FdbLearned {
        ifindex: Database::device(1),
        mac,
        vlan: 1,
    };
    switch.change(|d| d.heard(2, 1, mac, 0));
    assert!(told(&mut teller).is_empty(), "said to nobody");
    writer.write(&[learned], &mut |_, e| panic!("{e}")).unwrap();
    switch.change(|d| d.heard(1, 1, mac, 0));
    assert_eq!(told(&mut teller), [Database::device(1)]);
    assert_eq!(
        switch.change(|d| (all(d), d.age(0))),
        (vec![(1, mac, 1)], false)
    );
    switch.change(|d| d.heard(2, 1, mac, 0));
    assert!(told(&mut teller).is_empty());
    assert_eq!(switch.ask(|d| d.ways(1, mac)), [(2, false)]);
    switch.change(|d| d.set_carrier(2, false));
    assert_eq!(switch.ask(all), []);
    switch.change(|d| {
        d.set_ageing(0);
        d.heard(1, 1, mac, 0);
    });
    assert_eq!(switch.ask(all), [], "none is learned");
}
